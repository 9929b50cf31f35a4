# SPDX-License-Identifier: Apache-2.0
"""Which moves of running jobs would start one that waits, and whether they do: docs/queue.md."""

import json
import re

import pytest
from http_client import ask


@pytest.fixture
def lab(bare):
    bare.devices = "sim:8xH100"
    bare.up()
    return bare


def halves(machine, *words, command=("sleep", 1000)):
    """A job on half of each GPU, whose other half is free."""
    pairs = {}
    for _ in range(16):
        job = machine.submit("--gpus", "0.5", *words, *command)
        pairs.setdefault(tuple(machine.running(job)["gpu_indices"]), []).append(job)
    assert sorted(pairs) == [(gpu,) for gpu in range(8)] and {len(pair) for pair in pairs.values()} == {2}, pairs
    leave = [pair[1] for pair in pairs.values()]
    machine.ok("gcancel", *leave)
    machine.wait(*leave)
    return {gpu: pair[0] for (gpu,), pair in pairs.items()}


def test_moves_are_told_and_start_the_job_that_waits(lab):
    stay = halves(lab, "--preemptible")
    waits = lab.submit("--gpus", 2, "sleep", 1000)
    plan = json.loads(lab.ok("gctl", "defrag", "--plan", "--json"))
    assert plan["kind"] == "Defrag", plan
    (job,) = plan["jobs"]
    assert (job["id"], job["outcome"], job["is_behind"], job["other_moves"]) == (waits, "moves", False, 0), job
    target = job["target"][0]["gpus"]
    assert len(target) == 2 and len(job["moves"]) == 2, job
    for move in job["moves"]:
        (here,), (there,) = move["source"][0]["gpus"], move["target"][0]["gpus"]
        assert stay[here] == move["job"] and here in target and there not in target, move
    told = lab.ok("gctl", "defrag")
    assert told.startswith(f"job {waits} (2 GPUs) would start:\n"), told
    # Which are the cheapest changes as they run on.
    moves = re.findall(r"^  move job (\d+) from GPU (\d+) to GPU (\d+) \(requeue, loses \d+s of run time\)$", told, re.M)
    assert len(moves) == 2 and all(stay[int(here)] == int(job) for job, here, _ in moves), told
    assert "\nNothing was changed.\n" in told, told
    assert lab.job(waits)["status"] == "Queued"  # nor was it
    # What it says to do does just that.
    (command,) = re.findall(rf"'(gctl defrag --apply {waits})'", told)
    said = lab.ok(*command.split())
    assert said.startswith(f"job {waits} (2 GPUs) has priority 11 now and starts when these have stopped, "), said
    asked = sorted(int(job) for job in re.findall(r"^  job (\d+) on GPU ", said, re.M))
    assert len(asked) == 2, said
    lab.running(waits)
    moved = [job for job in stay.values() if (lab.job(job)["status"], lab.job(job)["attempt"]) != ("Running", 1)]
    assert sorted(moved) == asked, moved
    for job in moved:
        lab.until(job, lambda job: job["status"] == "Running" and job["pid"] and job["attempt"] == 2)
    assert lab.ok("gctl", "defrag") == "no job waits for room\n"


def test_only_what_was_told_is_done(lab):
    may_stop = lab.root / "may-stop"
    may_stop.touch()
    stops = f"trap 'until [ -e {may_stop} ]; do sleep 0.1; done; exit' TERM; sleep 1000 & wait"
    halves(lab, "--preemptible", "--grace", 600, command=("sh", "-c", stops))
    first, second = lab.submit("--gpus", 2, "sleep", 1000), lab.submit("--gpus", 2, "sleep", 1000)
    (plan,) = (job for job in json.loads(lab.ok("gctl", "defrag", "--json"))["jobs"] if job["id"] == first)
    moves = [move["job"] for move in plan["moves"]]
    for words, code, why in [
        ((first, second), 2, "--apply takes one job"),
        ((), 2, "--apply takes one job"),
        ((second,), 6, f"the moves for job {first} come before those for job {second}"),
        ((moves[0],), 6, f"job {moves[0]} is none of the first 100 that wait for room"),
        ((999,), 3, "there is no job 999"),
    ]:
        ran = lab.run("gctl", "defrag", "--apply", *words)
        assert (ran.code, why in ran.err) == (code, True), ran
    refused = ask(lab, "POST", "/api/v1/defrag", json.dumps({"id": first, "moves": moves[:1]}))
    assert refused.status == 409 and f"these moves would not start job {first} now" in refused.document["detail"], refused
    assert all(lab.job(job)["attempt"] == 1 and lab.job(job)["status"] == "Running" for job in moves)
    lab.ok("gcancel", second)  # behind which those who move would wait
    # A daemon that is killed while they stop is followed by one that brings it to its end.
    may_stop.unlink()
    moves = json.loads(lab.ok("gctl", "defrag", "--apply", first, "--json"))["jobs"]
    assert len(moves) == 2, moves
    lab.kill_daemon()
    lab.up()
    may_stop.touch()
    lab.running(first)
    for job in moves:
        lab.until(job, lambda job: job["status"] == "Running" and job["pid"] and job["attempt"] == 2)


def test_why_no_move_helps(lab):
    assert lab.ok("gctl", "defrag") == "no job waits for room\n"
    stay = halves(lab)
    waits = lab.submit("--gpus", 2, "sleep", 1000)
    beyond = lab.submit("--gpus", 8, "sleep", 1000)
    told = lab.ok("gctl", "defrag").splitlines()
    assert told[:3] == [
        f"job {waits} (2 GPUs): no move helps: none of the jobs that run there may be moved",
        f"job {beyond} (8 GPUs): no move helps: not enough is free in all",
        "",
    ], told
    assert told[3] == "Nothing was changed." and "'gjob update JOB --preemptible'" in told[4], told
    # As it says, that lets one be moved.
    lab.ok("gjob", "update", *[stay[gpu] for gpu in (0, 1)], "--preemptible")
    told = lab.ok("gctl", "defrag", waits)
    assert told.startswith(f"job {waits} (2 GPUs) would start:\n") and f"job {beyond} " not in told, told
    ran = lab.run("gctl", "defrag", stay[0])
    assert ran.code == 0 and f"job {stay[0]} is none of the first 100 that wait for room" in ran.err, ran
    assert lab.run("gctl", "defrag", 999).code == 3
