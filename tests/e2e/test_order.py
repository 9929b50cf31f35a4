# SPDX-License-Identifier: Apache-2.0
"""In which order jobs start, with real programs on one GPU."""

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
