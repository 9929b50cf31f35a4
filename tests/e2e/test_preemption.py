# SPDX-License-Identifier: Apache-2.0
"""Making room for a job ahead: by standing still, or by stopping and coming back."""

import json

import pytest
from machine import Gate, stands

CGROUPS = pytest.mark.parametrize("cgroups", ["true", "false"])


def suspendable(machine, command):
    return machine.submit(
        "--gpus", "2", "--gpu-memory", "8G", "--preemptible=suspend", "--priority", "5", "bash", "-c", command
    )


def urgent(machine, command):
    return machine.submit("--gpus", "2", "--gpu-memory", "12G", "--priority", "200", "bash", "-c", command)


@CGROUPS
def test_a_job_stands_still_until_there_is_room_again(bare, cgroups):
    bare.config(f"[runner]\ncgroups = {cgroups}\n")
    bare.up()
    gate, ahead = Gate(bare), Gate(bare, "ahead")
    first = suspendable(bare, gate.command + "; echo went on")
    gate.reached()
    pid = bare.running(first)["pid"]
    second = urgent(bare, ahead.command)
    bare.until(first, lambda job: job["status"] == "Suspended")
    ahead.reached()
    # Whoever lists jobs by state knows this one, too.
    assert f"{first}\t" in bare.ok("gjob", "__complete", "show", "")
    preview = bare.ok("gcancel", "--me", "--dry-run")
    assert [line.split()[2:] for line in preview.splitlines() if line.split()[0] == str(first)] == [
        ["S", "would", "be", "stopped"]
    ]
    assert "would be sent SIGKILL when it resumes" in bare.ok("gcancel", "--dry-run", "--signal", "KILL", first)
    told = bare.ok("gcancel", "--signal", "WINCH", first)  # which a shell does not notice
    assert told == f"Job {first} is suspended and is sent SIGWINCH when it resumes.\n"
    file = bare.work / "live.json"
    bare.ok("gctl", "snapshot", "-o", file)
    replayed = json.loads(bare.ok("gflow", "lab", "replay", file, "--json"))["runs"][0]
    assert 0 < replayed["utilization_percent"] <= 100
    # Neither a daemon that is killed nor the next one changes that.
    bare.kill_daemon()
    bare.up()
    assert bare.job(first)["status"] == "Suspended" and bare.job(first)["pid"] == pid
    ahead.open()
    assert bare.wait(second)[0]["status"] == "Finished"
    bare.until(first, lambda job: job["status"] == "Running")
    gate.open()
    ended = bare.wait(first)[0]
    assert ended["status"] == "Finished" and ended["attempt"] == 1
    assert bare.log(first) == "went on\n"


@CGROUPS
def test_a_job_that_stands_still_can_be_cancelled_and_cleans_up(bare, cgroups):
    bare.config(f"[runner]\ncgroups = {cgroups}\n")
    bare.up()
    gate, ahead = Gate(bare), Gate(bare, "ahead")
    first = suspendable(bare, "trap 'echo clean; exit' TERM; " + gate.command + " & wait")
    gate.reached()
    bare.running(first)
    second = urgent(bare, ahead.command)
    bare.until(first, lambda job: job["status"] == "Suspended")
    ahead.reached()
    bare.ok("gcancel", first)
    assert bare.wait(first)[0]["status"] == "Cancelled"
    assert bare.log(first) == "clean\n"
    ahead.open()
    assert bare.wait(second)[0]["status"] == "Finished"


@CGROUPS
def test_a_job_that_keeps_its_supervisor_stopped_does_not_run_beside_the_urgent_one(bare, cgroups):
    bare.config(f"[runner]\ncgroups = {cgroups}\n")
    bare.up()
    gate, ahead = Gate(bare), Gate(bare, "ahead")
    stopper = "while :; do kill -STOP $PPID; done"
    first = suspendable(bare, f"{gate.command}; for i in 1 2 3; do {stopper} & done; {stopper}")
    gate.reached()
    pid = bare.running(first)["pid"]
    gate.open()
    second = urgent(bare, ahead.command)
    ahead.reached()
    # It stands, or the daemon ends it: where nothing freezes it it may win every time.
    bare.until(first, lambda job: job["status"] == "Lost" or stands(pid))
    job = bare.job(first)
    assert job["status"] in ("Suspended", "Lost"), job
    if job["status"] == "Lost":
        assert job["outcome"]["message"] == "it ran on while it was suspended, and was killed"
    ahead.open()
    assert bare.wait(second)[0]["status"] == "Finished"
    bare.run("gcancel", "--now", first)


@pytest.mark.parametrize("said", ["when submitted", "while it runs"])
def test_a_job_makes_room_and_comes_back(machine, said):
    gate = Gate(machine)
    script = machine.work / "train.sh"
    script.write_text(
        "#!/bin/bash\n"
        "trap 'echo checkpoint; exit 0' USR1\n"
        'echo "run $GFLOW_RESTART_COUNT $GFLOW_PREEMPTIONS"\n'
        "[ $GFLOW_PREEMPTIONS = 1 ] && exit 0\n"
        f"echo there > {gate.there}\n"
        f"while :; do read -t 0.1 line <> {gate.go}; done\n"
    )
    how = ["--preemptible", "--preempt-signal", "USR1"]
    at_once = how if said == "when submitted" else []
    first = machine.submit("--gpus", "2", *at_once, "--grace", "10m", "--priority", "5", script)
    gate.reached()
    machine.running(first)
    if not at_once:
        machine.ok("gjob", "update", first, *how)
    assert "sent signal 10 (SIGUSR1), stopped and requeued" in machine.ok("gjob", "show", first)
    second = machine.submit("--gpus", "1", "--priority", "200", "true")
    assert machine.wait(second)[0]["status"] == "Finished"
    ended = machine.wait(first)[0]
    assert ended["status"] == "Finished" and ended["attempt"] == 2
    assert machine.log(first) == "run 0 0\ncheckpoint\nrun 1 1\n"


def test_what_keeps_a_suspended_job_is_told_and_a_drain_does_not(bare):
    """Drained, the GPU gets empty: what is suspended there goes on when nobody computes there."""
    bare.up()
    gate, ahead = Gate(bare), Gate(bare, "ahead")
    first = suspendable(bare, gate.command)
    gate.reached()
    second = urgent(bare, ahead.command)
    bare.until(first, lambda job: job["status"] == "Suspended")
    ahead.reached()
    bare.ok("gctl", "drain", "gpu", "0", "--reason", "fan")
    name = bare.get(f"/api/v1/jobs/{first}")["spec"]["name"]
    assert bare.ok("gjob", "why", first) == (
        f"Job {first} ({name}) is suspended and keeps its memory.\n"
        "\n"
        "Blocked by:\n"
        "   1.  Resources\n"
        "       Need 2 GPUs, none available\n"
        f"       job {second} of root has GPU 0,1, has no time limit\n"
    )
    ahead.open()
    bare.wait(second)
    bare.until(first, lambda job: job["status"] == "Running")
    gate.open()
    assert bare.wait(first)[0]["status"] == "Finished"
