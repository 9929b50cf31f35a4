# SPDX-License-Identifier: Apache-2.0
"""A machine in trouble, with the real programs: no fault of it ends a job, and everybody is told."""

import json

from machine import Gate, Machine


def test_a_fault_of_the_machine_ends_no_job():
    machine = Machine(config="[runner]\nlaunch_backoff = '1s'\n")
    try:
        machine.up()
        attempts = machine.state / "attempts"
        attempts.rename(machine.state / "put away")
        attempts.write_text("not a directory")
        jobs = [machine.submit("--gpus", "1", "true") for _ in range(4)]
        jobs.append(machine.submit("--depends-on", jobs[0], "true"))
        blocked = machine.until(jobs[0], lambda job: job["reason"].startswith("NodeUnhealthy"))
        assert "Not a directory" in blocked["reason"] and blocked["status"] == "Queued"
        assert "NodeUnhealthy" in machine.ok("gqueue")
        assert "Not a directory" in machine.ok("gjob", "why", jobs[0])
        assert "Unhealthy: " in machine.ok("ginfo") and "Not a directory" in machine.ok("ginfo", "-1")
        assert json.loads(machine.ok("ginfo", "--json"))["unhealthy"][0]["failures"] >= 1
        assert "jobs cannot be started" in machine.run("gflow", "doctor").out
        attempts.unlink()
        (machine.state / "put away").rename(attempts)
        ended = machine.wait(*jobs)
        assert {job["status"] for job in ended} == {"Finished"}
        assert {job["retries"] for job in ended} == {0}
        assert json.loads(machine.ok("ginfo", "--json"))["unhealthy"] == []
    finally:
        machine.close()


def test_ports_of_jobs_taken_over_are_theirs(machine):
    gates = [Gate(machine, name) for name in "ab"]
    for number, gate in enumerate(gates):
        # Nobody listens on them yet: only the daemon can know that they are taken.
        machine.submit("bash", "-c", f"echo $GFLOW_PORT_BASE > {machine.work}/port{number}; {gate.command}")
        gate.reached()
        machine.kill_daemon()
        machine.up()
    ports = [int((machine.work / f"port{number}").read_text()) for number in range(2)]
    assert abs(ports[0] - ports[1]) >= 8, ports
    for gate in gates:
        gate.open()
