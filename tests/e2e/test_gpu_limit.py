# SPDX-License-Identifier: Apache-2.0
"""What one user may hold of GPUs at once: docs/configuration.md."""

import getpass
import json
import re

import pytest
from terminal import on_terminal
from test_people import play


def replayed(machine, *words):
    return json.loads(machine.ok("gflow", "lab", "replay", *words, "--json"))["runs"]


@pytest.fixture
def lab(bare):
    bare.devices = "sim:4xRTX3090"
    bare.config("[limits]\nmax_gpus_per_user = 2\n")
    bare.up()
    return bare


def test_a_job_beyond_it_waits_and_says_for_what(lab):
    holds = lab.submit("--gpus", 2, "--time", "1h", "sleep", 1000)
    waits = lab.submit("--gpus", 1, "--time", "1h", "--name", "more", "sleep", 1000)
    lab.running(holds)
    free = lab.submit("--name", "cpu", "true")
    lab.wait(free)
    job = lab.job(waits)
    text = "GpuLimit: Need 1 GPU, its user holds 2 and may hold 2 at once"
    assert job["reason"] == text, job
    (blocker,) = job["blockers"]
    held = [(one["job"], one["user"], one["gpus"]) for one in blocker["holders"]]
    assert held == [(holds, getpass.getuser(), [0, 1])], blocker
    assert (blocker["kind"], blocker["need"], blocker["available"]) == ("gpu_limit", 10000, 0), blocker
    assert blocker["at"] == blocker["holders"][0]["ends"], blocker
    why = lab.ok("gjob", "why", waits)
    assert f"1.  {text}\n       job {holds} of {getpass.getuser()} has GPU 0,1, ends at the latest " in why, why
    assert re.search("Expected start: .*, estimated from ", why), "as the queue stands, in which others of its user may be ahead"
    assert "(GpuLimit 0/1)" in on_terminal(lab, "gqueue")[0].screen.text()
    assert "you hold 2 of at most 2 GPUs" in on_terminal(lab, "ginfo")[0].screen.text()
    assert "GPUs: 2 held, at most 2\n" in lab.ok("gctl", "whoami")
    dry = lab.ok("gbatch", "--dry-run", "--gpus", 1, "true")
    assert f"It would wait: {text}.\n" in dry, dry


def test_it_is_in_force_at_once_and_ends_no_job(lab):
    jobs = [lab.submit("--gpus", 2, "sleep", 1000) for _ in range(2)]
    lab.running(jobs[0])
    lab.ok("gctl", "config", "set", "limits.max_gpus_of", f"{getpass.getuser()}=4")
    lab.running(jobs[1])
    lab.ok("gctl", "config", "set", "limits.max_gpus_of", f"{getpass.getuser()}=1")
    assert {lab.job(job)["status"] for job in jobs} == {"Running"}
    lab.ok("gctl", "config", "unset", "limits.max_gpus_of")
    lab.ok("gctl", "config", "unset", "limits.max_gpus_per_user")
    assert "max_gpus" in lab.ok("gctl", "whoami", "--json")
    assert json.loads(lab.ok("gctl", "whoami", "--json"))["max_gpus"] is None


def test_what_it_never_allows_is_refused(lab):
    for words in (["gbatch", "--gpus", 3, "true"], ["gbatch", "--dry-run", "--gpus", 3, "true"], ["galloc", "--gpus", 3, "true"]):
        ran = lab.run(*words)
        assert ran.code != 0 and "may hold 2 at once: it could never start; request 2 or fewer" in ran.err, ran
    waits = lab.submit("--hold", "--gpus", 1, "true")
    ran = lab.run("gjob", "update", waits, "--gpus", 3)
    assert ran.code != 0 and "may hold 2 at once" in ran.err, ran


def test_each_user_has_their_own():
    said = play(r"""
as 1 gbatch --gpus 3 --name large sleep 1000 >/dev/null
as 1 gbatch --gpus 1 --name more sleep 1000 >/dev/null
as 2 gbatch --gpus 1 --name other sleep 1000 >/dev/null
as 3 gbatch --gpus 4 --name operator sleep 1000 >/dev/null
say queue as 2 gqueue -f NAME,REASON
say mine as 1 gctl whoami
say theirs as 2 gctl whoami
say refused as 2 gbatch --gpus 4 true
""", devices="sim:8xH100", config="""
[access]
operators = "sys"
[limits]
max_gpus_per_user = 3
[limits.max_gpus_of]
sys = 0
[runner]
cgroups = false
""")
    assert "more GpuLimit: Need 1 GPU, its user holds 3 and may hold 3 at once|" in " ".join(said["queue"].split()), said
    assert "GPUs: 3 held, at most 3|" in said["mine"] and "GPUs: 1 held, at most 3|" in said["theirs"], said
    assert "bin may hold 3 at once" in said["refused"], said


def test_a_replay_has_it(lab):
    me = getpass.getuser()
    lab.ok("gctl", "config", "set", "limits.max_gpus_of", f"{me}=1, nobody-else=0")
    lab.running(lab.submit("--gpus", 1, "--time", "1h", "sleep", 1000))
    lab.submit("--gpus", 1, "--time", "1h", "sleep", 1000)
    lab.ok("gctl", "snapshot", "-o", "now.json")
    lab.ok("gctl", "snapshot", "--anonymous", "-o", "hidden.json")
    hidden = (lab.work / "hidden.json").read_text()
    policy = {setting["key"]: setting["value"] for setting in json.loads(hidden)["policy"]}
    assert sorted(policy["limits.max_gpus_of"].split(", ")) == ["user1=1", "user2=0"], policy
    assert "nobody-else" not in hidden
    for file in ("now.json", "hidden.json"):
        limited, free = replayed(lab, file, "--set", "limits.max_gpus_of=")
        assert limited["mean_wait_seconds"] > 1000 > free["mean_wait_seconds"], file


def test_a_trace_is_replayed_within_it(bare):
    (bare.work / "trace.csv").write_text("submit,duration,gpus,user\n" + "".join(f"{i},600,2,u{i % 2}\n" for i in range(8)))
    free, limited = replayed(bare, "trace.csv", "--nodes", "1x8", "--set", "limits.max_gpus_per_user=2")
    assert free["ended"] == limited["ended"] == 8 and free["mean_wait_seconds"] < limited["mean_wait_seconds"], limited


def test_the_other_gflows_quota_is_read(bare):
    bare.config("[quota.default_user]\nmax_running_gpus = 3\n[quota.users.bob]\nmax_running_gpus = 1\n")
    ran = bare.run("gctl", "config", "check")
    assert ran.code == 0 and "quota.default_user.max_running_gpus is read as limits.max_gpus_per_user" in ran.err, ran
    assert "quota.users.bob.max_running_gpus (see max_gpus_of in [limits])" in ran.err, ran
