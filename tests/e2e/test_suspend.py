# SPDX-License-Identifier: Apache-2.0
"""Suspending and resuming a job by hand."""

import json
import time

import pytest
from http_client import ask
from machine import PATIENCE, stands

COUNTS = "while :; do echo tick; sleep 0.01; done"


def becomes(condition):
    """Returns once it is so: of what nothing tells when it changes."""
    latest = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < latest, "it did not become so"


@pytest.mark.parametrize("cgroups", ["true", "false"])
def test_a_job_stands_from_suspend_to_resume_whatever_happens_to_gflowd(bare, cgroups):
    bare.config(f"[runner]\ncgroups = {cgroups}\n")
    bare.up()
    first = bare.submit("--gpus", "2", "--gpu-memory", "8G", "--time", "1h", "--name", "counts", "bash", "-c", COUNTS)
    pid = bare.running(first)["pid"]
    becomes(lambda: bare.log(first))
    assert bare.ok("gjob", "suspend", first) == f"Job {first} suspended.\n"
    becomes(lambda: stands(pid))
    written = bare.log(first)
    assert bare.ok("gjob", "suspend", first) == f"Job {first} has already been suspended.\n"
    job = bare.job(first)
    user = job["user"]["name"]
    assert (job["status"], job["reason"]) == ("Suspended", f"Suspended by {user}")
    assert [one["kind"] for one in job["blockers"]] == ["suspended"]
    assert f"(Suspended by {user})" in bare.ok("gqueue")
    assert bare.ok("gjob", "why", first) == (
        f"Job {first} (counts) is suspended and keeps its memory.\n"
        "\n"
        "Blocked by:\n"
        f"   1.  Suspended by {user}\n"
        "\n"
        "What would continue it:\n"
        f"  {f'gjob resume {first}':<34}  continues it\n"
    )
    file = bare.work / "live.json"
    bare.ok("gctl", "snapshot", "-o", file)
    shown = json.loads(file.read_text())["jobs"][0]
    assert shown["suspended"] and shown["suspended_by_hand"]
    assert json.loads(bare.ok("gflow", "lab", "replay", file, "--json"))["runs"][0]["ended"] == 0
    # Its GPUs compute for others meanwhile, and that they are free again does not make it go on.
    second = bare.submit("--gpus", "2", "--gpu-memory", "8G", "true")
    assert bare.wait(second)[0]["status"] == "Finished"
    bare.kill_daemon()
    bare.up()
    again = bare.job(first)
    assert (again["status"], again["pid"], again["run_time_seconds"]) == ("Suspended", pid, job["run_time_seconds"])
    third = bare.submit("--gpus", "2", "--gpu-memory", "8G", "true")
    assert bare.wait(third)[0]["status"] == "Finished"
    assert stands(pid) and bare.log(first) == written
    assert bare.ok("gjob", "resume", first) == f"Job {first} resumed.\n"
    becomes(lambda: bare.log(first) != written)
    assert bare.ok("gjob", "resume", first) == f"Job {first} was not suspended by hand.\n"
    assert bare.running(first)["pid"] == pid
    bare.ok("gjob", "suspend", first)
    becomes(lambda: stands(pid))
    bare.ok("gcancel", first)
    assert bare.wait(first)[0]["status"] == "Cancelled"


def test_a_resumed_job_waits_for_who_got_its_gpus(machine):
    first = machine.submit("--gpus", "2", "--gpu-memory", "8G", "sleep", "600")
    pid = machine.running(first)["pid"]
    machine.ok("gjob", "suspend", first)
    second = machine.submit("--gpus", "2", "--gpu-memory", "8G", "sleep", "600")
    machine.running(second)
    assert machine.ok("gjob", "resume", first) == f"Job {first} resumes when there is room for it.\n"
    assert machine.job(first)["blockers"][0]["holders"][0]["job"] == second
    machine.ok("gcancel", second)
    assert machine.running(first)["pid"] == pid


def test_what_cannot_be_suspended_is_told(machine):
    waits = machine.submit("--hold", "true")
    for verb, wanted in [("suspend", "running"), ("resume", "suspended")]:
        refused = machine.run("gjob", verb, waits)
        assert refused.code == 6 and refused.err.endswith(f"job {waits} is Hold: only a {wanted} job can be {verb}{'ed' if verb == 'suspend' else 'd'}\n")
    given = ask(machine, "POST", "/api/v1/gpu/allocate", "{}").document["allocation_id"]
    assert "job 2 is an allocation" in machine.run("gjob", "suspend", given).err
    # All or none; then each by itself.
    runs = machine.submit("sleep", "600")
    machine.running(runs)
    body = json.dumps({"jobs": [runs, waits]})
    assert ask(machine, "POST", "/api/v1/jobs/suspend", body).status == 409
    assert machine.job(runs)["status"] == "Running"
    both = machine.run("gjob", "suspend", runs, waits)
    assert both.code == 6 and both.out == f"Job {runs} suspended.\n"
    assert json.loads(machine.ok("gjob", "suspend", runs, "--json"))["jobs"] == []


def test_one_by_its_path_and_only_as_it_was_seen(machine):
    job = machine.submit("sleep", "600")
    machine.running(job)
    path = f"/api/v1/jobs/{job}"
    tag = ask(machine, "GET", path).headers["ETag"]
    assert ask(machine, "POST", f"{path}/suspend", If_Match=tag).document["jobs"] == [job]
    assert ask(machine, "POST", f"{path}/suspend").document["jobs"] == []
    assert ask(machine, "POST", f"{path}/resume", If_Match=tag).status == 412
    assert machine.job(job)["status"] == "Suspended"
    assert ask(machine, "POST", f"{path}/resume").document["jobs"] == [job]
    machine.running(job)
    assert ask(machine, "POST", "/api/v1/jobs/99/suspend").status == 404


def test_who_suspended_it_is_part_of_what_was_seen(machine):
    """Suspended it is before and after: by hand, then until there is room, then by hand again."""
    first = machine.submit("--gpus", "2", "--gpu-memory", "8G", "sleep", "600")
    machine.running(first)
    machine.ok("gjob", "suspend", first)
    machine.running(machine.submit("--gpus", "2", "--gpu-memory", "8G", "sleep", "600"))
    path = f"/api/v1/jobs/{first}"
    for verb in ("resume", "suspend"):
        tag = ask(machine, "GET", path).headers["ETag"]
        assert ask(machine, "POST", f"{path}/{verb}", If_Match=tag).document["jobs"] == [first]
        assert machine.job(first)["status"] == "Suspended"
        assert ask(machine, "POST", f"{path}/{verb}", If_Match=tag).status == 412
