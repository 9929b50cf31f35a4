# SPDX-License-Identifier: Apache-2.0
"""In which order jobs start, with real programs on one GPU."""

import pytest
from clock import Clock
from machine import Gate

ONE_GPU = "sim:1xH100"


def started(machine):
    return (machine.work / "order").read_text().split()


def test_jobs_alike_start_in_the_order_of_submission(bare):
    bare.devices = ONE_GPU
    bare.up()
    count = 30
    jobs = [bare.submit("--gpus", "1", "bash", "-c", f"echo {n} >> order; sleep 0.1") for n in range(1, count + 1)]
    bare.wait(*jobs)
    assert started(bare) == [str(n) for n in range(1, count + 1)]


def test_a_daemon_that_is_killed_between_them_changes_no_order(bare):
    bare.devices = ONE_GPU
    bare.up()
    gate = Gate(bare)
    bare.submit("--gpus", "1", "bash", "-c", gate.command)
    gate.reached()
    count = 10
    jobs = []
    for n in range(1, count + 1):
        jobs.append(bare.submit("--gpus", "1", "bash", "-c", f"echo {n} >> order"))
        if n % 4 == 0:
            bare.kill_daemon()
            bare.up()
    gate.open()
    bare.wait(*jobs)
    assert started(bare) == [str(n) for n in range(1, count + 1)]


def test_a_clock_that_is_set_changes_no_order_and_forgets_nothing(bare):
    clock = Clock(bare)
    bare.devices = ONE_GPU
    bare.up()
    first = bare.submit("true")
    bare.wait(first)
    gate = Gate(bare)
    jobs = [bare.submit("--gpus", "1", "bash", "-c", gate.command)]
    gate.reached()
    submitted = set()
    for n, seconds in enumerate([0, -7200, 400 * 86400, 3600], start=1):
        clock.set(seconds)
        jobs.append(bare.submit("--gpus", "1", "bash", "-c", f"echo {n} >> order"))
        submitted.add(bare.job(jobs[-1])["submitted"][:13])
        if n == 3:
            bare.kill_daemon()
            bare.up()
    assert len(submitted) == 4, "the clock was never set"
    gate.open()
    bare.wait(*jobs)
    assert started(bare) == ["1", "2", "3", "4"]
    clock.set(400 * 86400)
    assert bare.wait(first)[0]["status"] == "Finished"
    assert bare.ok("gqueue", "-a", "-f", "JOBID").split() == ["JOBID", *(str(job) for job in [first, *jobs])]
