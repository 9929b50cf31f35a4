# SPDX-License-Identifier: Apache-2.0
"""Waiting costs nothing: neither an idle daemon nor the supervisor of a quiet job is ever scheduled."""

import select

import pytest
from machine import Gate


def switches(pid):
    """How often a process has been put on a CPU."""
    with open(f"/proc/{pid}/status") as status:
        return sum(int(line.split()[1]) for line in status if "ctxt_switches" in line)


def switches_while_watched(*pids):
    before = [switches(pid) for pid in pids]
    select.select([], [], [], 1.5)  # the time that is looked at, not a wait for something
    return [switches(pid) - count for pid, count in zip(pids, before)]


@pytest.mark.parametrize("cgroups", ["true", "false"])
def test_nothing_runs_while_nothing_happens(bare, cgroups):
    bare.config(f"[runner]\ncgroups = {cgroups}\n")
    bare.up()
    gate = Gate(bare)
    job = bare.submit("--gpus", "2", "--time", "1:00:00", "bash", "-c", gate.command)
    waiting = bare.submit("--gpus", "1", "true")
    later = bare.submit("--begin", "now+2h", "true")
    gate.reached()
    with open(f"/proc/{bare.running(job)['pid']}/stat") as stat:
        supervisor = int(stat.read().rsplit(")", 1)[1].split()[1])
    counted = switches_while_watched(bare.daemon_pid(), supervisor)
    assert max(counted) <= 1, counted
    gate.open()
    bare.wait(job, waiting)
    assert bare.job(later)["status"] == "Queued"
