# SPDX-License-Identifier: Apache-2.0
"""A machine in trouble, with the real programs: no fault of it ends a job, and everybody is told."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from machine import Gate, Machine

CGROUPS = pytest.mark.parametrize("cgroups", ["true", "false"])


def test_doctor_says_once_how_to_start_the_daemon(bare):
    told = bare.run("gflow", "doctor")
    assert told.code == 1 and told.out.count("start it") == 1, told
    assert "start it with 'gflowd up'" in told.out.splitlines()[0]


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
        health = machine.get("/api/v1/gpu/health")
        assert health["status"] == "degraded" and "launches fail: " in health["problems"][0], health
        attempts.unlink()
        (machine.state / "put away").rename(attempts)
        ended = machine.wait(*jobs)
        assert {job["status"] for job in ended} == {"Finished"}
        assert {job["retries"] for job in ended} == {0}
        assert json.loads(machine.ok("ginfo", "--json"))["unhealthy"] == []
        assert machine.get("/api/v1/gpu/health")["status"] == "healthy"
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


def groups_of(pid):
    """The control groups gflow made that a process is in, as directories."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    mounts = [(mount[1], mount[3].split(",") if mount[2] == "cgroup" else [""]) for mount in mounts
              if mount[2] in ("cgroup", "cgroup2")]
    groups = []
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, group = line.split(":", 2)
        if "gflow-" in group:
            groups += [Path(point + group) for point, options in mounts if controllers.split(",")[0] in options]
    return groups


def test_daemons_of_different_mount_namespaces_have_different_groups():
    """Both keep their state under the same path, which is not the same directory."""
    machines = [Machine(), Machine()]
    daemons = []
    try:
        machines[1].environment["HOME"] = str(machines[0].home)
        machines[0].state.mkdir(parents=True)
        groups = []
        for machine in machines:
            # Where it would be, it is seen from within only.
            machine.socket = machine.root / "run/s"
            machine.environment["GFLOW_SOCKET"] = str(machine.socket)
            daemon = f"mount -t tmpfs none {machines[0].state} && exec gflowd --devices sim:1xT4 --ready-fd 1"
            daemons.append(subprocess.Popen(
                ["unshare", "--mount", "sh", "-c", daemon], stdout=subprocess.PIPE, env=machine.environment))
            if daemons[-1].stdout.readline() != b"ready\n":
                pytest.skip("nothing can be mounted here")
        for machine in machines:
            gate = Gate(machine)
            job = machine.submit("bash", "-c", gate.command)
            assert job == 1
            gate.reached()
            groups.append({group.parent for group in groups_of(machine.running(job)["pid"])})
            machine.gate = gate
        if not any(groups):
            pytest.skip("no control groups can be made here")
        assert groups[0] and groups[1] and groups[0].isdisjoint(groups[1])
        # Neither removes what is the other's when it starts or ends.
        machines[0].down()
        assert all(group.is_dir() for group in groups[1])
        machines[1].gate.open()
        assert machines[1].wait(1)[0]["status"] == "Finished"
    finally:
        for machine in machines:
            machine.close()
        for daemon in daemons:
            daemon.wait(60)


def test_a_group_that_is_there_already_fails_no_job(machine):
    """With a process in it, as another daemon's or an older database's."""
    gate = Gate(machine)
    first = machine.submit("bash", "-c", gate.command)
    gate.reached()
    groups = groups_of(machine.running(first)["pid"])
    gate.open()
    machine.wait(first)
    if not groups:
        pytest.skip("no control groups can be made here")
    taken = [Path(str(group).replace(f"job-{first}.1", f"job-{first + 1}.1")) for group in groups]
    stranger = subprocess.Popen(["sleep", "1000"])
    try:
        for group in taken:
            group.mkdir()
            (group / "cgroup.procs").write_text(str(stranger.pid))
        job = machine.submit("bash", "-c", gate.command)
        assert job == first + 1
        gate.reached()
        assert set(groups_of(machine.running(job)["pid"])).isdisjoint(taken)
        gate.open()
        assert machine.wait(job)[0]["status"] == "Finished"
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()
        for group in taken:
            if group.is_dir():
                group.rmdir()


def test_a_daemon_that_cannot_say_that_it_answers_ends(machine):
    """Who starts it would take it for one that failed, or wait for ever."""
    machine.down()
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            ["gflowd", "--devices", machine.devices, "--ready-fd", "1"], stdout=full, stderr=subprocess.PIPE,
            text=True, env=machine.environment, timeout=60, check=False,
        )
    assert ended.returncode == 1 and "No space left" in ended.stderr, ended
    assert "who started gflowd" in ended.stderr, ended.stderr


@CGROUPS
def test_a_job_that_stops_its_supervisor_ends_at_its_limit(bare, cgroups):
    bare.config(f"[runner]\ncgroups = {cgroups}\n")
    bare.up()
    jobs = []
    for name in ("before", "changed"):
        # Once it is known to run: a supervisor that is stopped at once says nothing of the start.
        gate, stopped = Gate(bare, name), Gate(bare, name + "-stopped")
        command = f"{gate.command}; kill -STOP $PPID; {stopped.command}; sleep 1000"
        jobs.append(bare.submit("--time-limit", "1h", "bash", "-c", command))
        gate.reached()
        bare.running(jobs[-1])
        gate.open()
        stopped.reached()
        stopped.open()
    # The next daemon knows the limit as well, and a changed one.
    before, changed = jobs
    bare.ok("gjob", "update", before, "--time-limit", "3s")
    bare.kill_daemon()
    bare.up()
    bare.ok("gjob", "update", changed, "--time-limit", "3s")
    for ended in bare.wait(before, changed):
        assert ended["status"] == "Timeout", ended
        assert ended["outcome"]["reason"] == "time_limit", ended


# Its supervisor's pid is that of its parent; 41 is the daemon's order of a time limit, 0 being none, and 42 that to go on.
ORDERS = """
import ctypes, os, sys
for number, value in ((41, 0), (41, 3600), (42, 0), (43, 15)):
    ctypes.CDLL(None).sigqueue(os.getppid(), number, ctypes.c_void_p(value))
open(sys.argv[1]).read()
"""


def test_a_job_gives_its_supervisor_no_orders(machine):
    gate = machine.work / "never"
    os.mkfifo(gate)
    job = machine.submit("--time-limit", "2s", "/usr/bin/python3", "-c", ORDERS, gate)
    ended = machine.wait(job)[0]
    assert (ended["status"], ended["outcome"]["reason"]) == ("Timeout", "time_limit"), ended


# The same in the daemon's name: who writes the siginfo of such an order itself (SI_QUEUE) can write another's pid into it.
FORGED = """
import ctypes, os, platform, struct, sys
number = {"x86_64": 129}.get(platform.machine(), 138)  # rt_sigqueueinfo(2)
info = ctypes.create_string_buffer(struct.pack("<iiiiiiq", 41, 0, -1, 0, 1, 0, 0), 128)
told = ctypes.CDLL(None, use_errno=True).syscall(number, os.getppid(), 41, info)
print("told", told, flush=True)
open(sys.argv[1]).read()
"""


def test_a_forged_order_does_not_take_the_limit_of_a_job_away(machine):
    gate = machine.work / "never"
    os.mkfifo(gate)
    job = machine.submit("--time-limit", "8s", "/usr/bin/python3", "-c", FORGED, gate)  # enough to have told it by then
    ended = machine.wait(job)[0]
    assert (ended["status"], ended["outcome"]["reason"]) == ("Timeout", "time_limit"), ended
    assert "told 0" in machine.log(job)


@CGROUPS
def test_a_job_whose_first_thread_has_ended_is_stopped_like_any_other(bare, cgroups):
    """The kernel calls it a zombie then, though its other threads run on."""
    bare.config(f"[runner]\ncgroups = {cgroups}\n")
    bare.up()
    go = bare.work / "threads"
    os.mkfifo(go)
    program = (
        "import ctypes, platform, signal, sys, threading\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "threading.Thread(target=lambda: open(sys.argv[1]).read()).start()\n"
        "ctypes.CDLL(None).syscall({'x86_64': 60}.get(platform.machine(), 93), 0)\n"  # exit(2) of this thread alone
    )
    job = bare.submit("--grace", "1s", "/usr/bin/python3", "-c", program, go)
    pid = bare.running(job)["pid"]
    while Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z":
        pass
    bare.ok("gcancel", job)
    assert bare.wait(job)[0]["status"] == "Cancelled"
