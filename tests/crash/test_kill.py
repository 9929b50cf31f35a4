# SPDX-License-Identifier: Apache-2.0
"""kill -9 of the daemon, of a supervisor and of everything: jobs keep running, and the truth is told after."""

import os
import select
import shutil
import signal
import subprocess

import pytest
from machine import Gate, Machine, kill, processes_with


def parent(pid):
    with open(f"/proc/{pid}/stat") as stat:
        return int(stat.read().rsplit(")", 1)[1].split()[1])


def alive(pid):
    """Whether a process still runs; one that only waits to be reaped does not."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as pids:
        return [int(word) for word in pids.read().split()]


def gone(pid):
    """Blocks until a process has ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([descriptor], [], [], 60)[0]
    finally:
        os.close(descriptor)


def runs(machine):
    """How often the job's program was started, as it wrote down itself."""
    path = machine.work / "runs"
    return len(path.read_text().splitlines()) if path.exists() else 0


def counted(machine, rest):
    return ["bash", "-c", f"echo run >> {machine.work}/runs; {rest}"]


def test_a_running_job_does_not_notice(machine):
    gate = Gate(machine)
    job = machine.submit("--gpus", "1", *counted(machine, f"echo before; {gate.command}; echo after; exit 3"))
    gate.reached()
    pid = machine.running(job)["pid"]
    machine.kill_daemon()
    machine.up()
    again = machine.job(job)
    assert again["status"] == "Running" and again["pid"] == pid and again["gpu_indices"] == [0]
    assert "In use by job" in machine.ok("ginfo")
    gate.open()
    ended = machine.wait(job)[0]
    assert ended["status"] == "Failed" and ended["outcome"]["exit_code"] == 3
    assert machine.log(job) == "before\nafter\n"
    assert runs(machine) == 1


def test_a_job_that_ends_while_no_daemon_runs(machine):
    gate = Gate(machine)
    job = machine.submit(*counted(machine, f"{gate.command}; exit 7"))
    waiting = machine.submit("--depends-on", job, "--no-auto-cancel", "true")
    gate.reached()
    shim = parent(machine.running(job)["pid"])
    machine.kill_daemon()
    gate.open()
    gone(shim)
    machine.up()
    ended = machine.wait(job)[0]
    assert ended["outcome"]["exit_code"] == 7 and ended["outcome"]["reason"] == "exited"
    assert machine.job(waiting)["status"] == "Queued"
    assert runs(machine) == 1


def test_time_limit_holds_without_a_daemon(machine):
    """The supervisor takes notice of the limit when the daemon is gone: it is stopped until then."""
    gate = Gate(machine)
    job = machine.submit("--time", "1h", "--grace", "1s", *counted(machine, gate.command))
    gate.reached()
    shim = parent(machine.running(job)["pid"])
    os.kill(shim, signal.SIGSTOP)
    machine.ok("gjob", "update", job, "--time", "1s")
    machine.kill_daemon()
    os.kill(shim, signal.SIGCONT)
    gone(shim)
    machine.up()
    assert machine.wait(job)[0]["status"] == "Timeout"
    assert runs(machine) == 1


def test_cancel_is_final_even_if_the_daemon_dies_on_it(machine):
    gate = Gate(machine)
    stubborn = f"trap '' TERM; {gate.command}; read again < {gate.go}"
    job = machine.submit("--gpus", "2", "--grace", "2s", *counted(machine, stubborn))
    gate.reached()
    machine.running(job)
    machine.ok("gcancel", job)
    machine.kill_daemon()
    machine.up()
    assert machine.wait(job)[0]["status"] == "Cancelled"
    assert "Available GPUs: 2" in machine.ok("ginfo")


def test_supervisor_killed(machine):
    gate = Gate(machine)
    job = machine.submit("--gpus", "2", *counted(machine, gate.command))
    waiting = machine.submit("--gpus", "1", "true")
    gate.reached()
    pid = machine.running(job)["pid"]
    kill(parent(pid))
    ended = machine.wait(job)[0]
    assert ended["status"] == "Lost" and ended["outcome"]["reason"] == "supervisor_died"
    assert ended["reason"] == "its supervisor was killed; how the job ended is not known"
    assert ended["outcome"]["run_time_seconds"] > 0, "it ran until that was noticed"
    assert not alive(pid), "its GPUs were given on while it ran"
    assert machine.wait(waiting)[0]["status"] == "Finished"
    assert runs(machine) == 1


def test_supervisor_killed_while_no_daemon_runs():
    """What is left of the job has no parent, session, variable or descriptor of it any more, and no
    control group: it is known all the same, and gone before its GPU is given on."""
    machine = Machine("sim:1xH100", config="[runner]\ncgroups = false\n")
    try:
        machine.up()
        gate = Gate(machine)
        hidden = "for fd in /proc/self/fd/*; do eval \"exec ${fd##*/}>&-\"; done 2> /dev/null; "
        hidden += f"echo $$ > {machine.work}/hidden; {gate.command}; read never < {gate.go}"
        script = machine.work / "hidden.sh"
        script.write_text(hidden)
        job = machine.submit("--gpus", "1", "bash", "-c", f"env -i setsid /bin/bash {script} & wait")
        gate.reached()
        pid = int((machine.work / "hidden").read_text())
        shim = parent(machine.running(job)["pid"])
        is_gone = f"case $(cut -d ' ' -f 3 /proc/{pid}/stat) in Z | '') ;; *) exit 1 ;; esac"
        waiting = machine.submit("--gpus", "1", "bash", "-c", is_gone)
        machine.kill_daemon()
        kill(shim)
        assert alive(pid) and parent(pid) != shim
        machine.up()
        ended, after = machine.wait(job, waiting)
        assert ended["status"] == "Lost" and ended["outcome"]["reason"] == "supervisor_died"
        assert after["status"] == "Finished", "its GPU was given on while it ran"
        assert not alive(pid)
    finally:
        machine.close()


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed (./dev setup)")
def test_the_lock_of_a_killed_daemon_goes_with_the_last_copy():
    """A daemon is killed while a supervisor it starts is still a copy of it, with all its descriptors:
    the next one waits for it rather than say that a dead one is already running."""
    machine = Machine(config="[runner]\ncgroups = false\n")
    try:
        traces = [machine.root / "first", machine.root / "second"]
        for trace in traces:
            os.mkfifo(trace)
        first = subprocess.Popen(
            ["strace", "-f", "-q", "-o", traces[0], "-e", "trace=setsid", "-e", "inject=setsid:signal=SIGSTOP",
             "gflowd", "--devices", machine.devices, "--ready-fd", "1"],
            stdout=subprocess.PIPE, env=machine.environment, cwd=machine.work,
        )
        with open(traces[0]) as calls:
            assert first.stdout.readline() == b"ready\n"
            daemon = machine.daemon_pid()
            job = machine.submit(*counted(machine, "true"))
            while "stopped by SIGSTOP" not in calls.readline():
                pass
            (copy,) = children(daemon)
            kill(daemon)
            first.kill()  # the tracer: the copy stays as it is
            first.wait(60)
        second = subprocess.Popen(
            ["strace", "-qq", "-o", traces[1], "-e", "trace=flock",
             "gflowd", "--devices", machine.devices, "--ready-fd", "1"],
            stdout=subprocess.PIPE, env=machine.environment, cwd=machine.work,
        )
        with open(traces[1]) as calls:
            assert "EAGAIN" in calls.readline(), "nobody held the lock"
            assert "EAGAIN" in calls.readline(), "it did not wait"
            os.kill(copy, signal.SIGCONT)
            calls.read(1)
            assert second.stdout.readline() == b"ready\n"
            assert machine.wait(job)[0]["status"] == "Finished"
            assert runs(machine) == 1
            machine.down()
            calls.read()
        assert second.wait(60) == 0
    finally:
        machine.close()


def test_supervisor_killed_and_run_again_if_the_job_said_so(machine):
    gate = Gate(machine)
    job = machine.submit("--requeue", *counted(machine, gate.command))
    gate.reached()
    kill(parent(machine.running(job)["pid"]))
    gate.reached()
    gate.open()
    ended = machine.wait(job)[0]
    assert ended["status"] == "Finished" and ended["attempt"] == 2
    assert runs(machine) == 2


def test_stop_and_start_leave_jobs_alone(machine):
    gate = Gate(machine)
    job = machine.submit("--gpus", "1", *counted(machine, gate.command))
    gate.reached()
    assert "1 job keeps running" in machine.down()
    machine.up()
    assert machine.job(job)["status"] == "Running"
    machine.ok("gflowd", "restart")
    os.kill(machine.daemon_pid(), signal.SIGHUP)
    gate.open()
    assert machine.wait(job)[0]["status"] == "Finished"
    assert runs(machine) == 1


def test_queue_survives(machine):
    gate = Gate(machine)
    first = machine.submit("--gpus", "2", "bash", "-c", gate.command)
    gate.reached()
    names = [f"job{n}" for n in range(5)]
    jobs = [machine.submit("--gpus", "1", "--priority", n * 10, "--name", name, "true") for n, name in enumerate(names)]
    held = machine.submit("--hold", "true")
    before = machine.ok("gqueue", "-s", "PD,H")
    machine.kill_daemon()
    machine.up()
    assert machine.ok("gqueue", "-s", "PD,H") == before
    machine.ok("gjob", "release", held)
    gate.open()
    assert {job["status"] for job in machine.wait(first, held, *jobs)} == {"Finished"}
    assert machine.submit("true") == held + 1


def test_another_boot(machine):
    """The machine goes down under its jobs: lost, run again if they said so, finished if they had."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a process another boot id")
    gates = [Gate(machine, name) for name in "abc"]
    lost = machine.submit(*counted(machine, gates[0].command))
    again = machine.submit("--requeue", "--gpus", "1", "bash", "-c", gates[1].command)
    done = machine.submit("bash", "-c", f"{gates[2].command}; exit 5")
    for gate in gates:
        gate.reached()
    shim = parent(machine.running(done)["pid"])
    machine.running(lost), machine.running(again)
    machine.kill_daemon()
    gates[2].open()
    gone(shim)
    for pid in processes_with(str(machine.root)):
        try:
            kill(pid)
        except ProcessLookupError:
            pass
    boot_id = machine.root / "boot_id"
    boot_id.write_text("11111111-2222-3333-4444-555555555555\n")
    start = f"mount --bind {boot_id} /proc/sys/kernel/random/boot_id && exec gflowd up --devices {machine.devices}"
    up = machine.run("unshare", "--mount", "sh", "-c", start)
    if up.code != 0 and "mount" in up.err:
        pytest.skip(f"another boot id cannot be mounted: {up.err}")
    assert up.code == 0, up
    gates[1].reached()
    gates[1].open()
    ended = machine.wait(lost, again, done)
    assert [job["status"] for job in ended] == ["Lost", "Finished", "Failed"]
    assert ended[0]["outcome"]["reason"] == "rebooted"
    assert ended[1]["attempt"] == 2
    assert ended[2]["outcome"]["exit_code"] == 5
    assert runs(machine) == 1


CONTAINER = """
mount -t tmpfs none "$HOME" && mount -t tmpfs none "$XDG_RUNTIME_DIR" || exit 77
gflowd up --devices sim:1xRTX3090 >&2 && gbatch bash -c "$1" && read go && gqueue -f ST && read end
"""


def test_a_job_in_a_container_is_not_taken_for_its_own(machine):
    """There, attempts are kept under the same paths, and its supervisors show in /proc out here."""
    if os.geteuid() != 0:
        pytest.skip("only root can make a container")
    here, there = Gate(machine, "here"), Gate(machine, "there")
    job = machine.submit("bash", "-c", here.command)
    here.reached()
    container = subprocess.Popen(
        ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", CONTAINER, "sh",
         there.command],
        env=machine.environment, cwd=machine.work, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )
    try:
        said = container.stdout.readline()
        if not said and container.wait() == 77:
            pytest.skip("no namespaces here")
        assert said == f"Submitted batch job {job}\n"
        there.reached()
        pid = machine.running(job)["pid"]
        machine.kill_daemon()
        kill(parent(pid))
        gone(pid)
        shutil.rmtree(machine.state / f"attempts/{job}.1")
        machine.up()
        assert machine.job(job)["status"] == "Lost"
        container.stdin.write("go\n")
        container.stdin.flush()
        assert container.stdout.readline() == "ST\n" and container.stdout.readline() == "R\n"
    finally:
        container.kill()
        container.communicate()


STRACE = shutil.which("strace")


@pytest.mark.skipif(not STRACE, reason="strace is not installed (./dev setup)")
@pytest.mark.parametrize("call", ["fdatasync", "pwrite64", "clone,clone3,vfork", "rename", "sendmsg,sendto,write"])
@pytest.mark.parametrize("when", [1, 2, 3, 5, 8, 13])
def test_daemon_killed_at_a_system_call(bare, call, when):
    """The daemon dies at the n-th call of a kind while jobs are submitted, run and finish. What was
    acknowledged is there afterwards and has run once."""
    machine = bare
    machine.up()
    machine.down()
    traced = subprocess.Popen(
        [STRACE, "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:signal=SIGKILL:when={when}",
         "gflowd", "--devices", machine.devices, "--ready-fd", "1"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=machine.environment, cwd=machine.work,
    )
    traced.stdout.readline()  # it answers, or it is dead already
    acknowledged = []
    for number in range(4):
        ran = machine.run("gbatch", "--gpus", "1", "bash", "-c", f"echo {number} >> {machine.work}/runs")
        if ran.code == 0:
            acknowledged.append((number, int(ran.out.split()[-1])))
    try:
        machine.wait(*[job for _, job in acknowledged])
    except OSError:
        pass  # it died while it was asked
    if machine.run("gflowd", "status").code == 0:
        machine.down()
    traced.wait(60)
    traced.stdout.close()
    machine.up()
    jobs = {job["id"]: job for job in machine.get("/api/v1/jobs")["jobs"]}
    for number, job in acknowledged:
        assert job in jobs, f"job {job} was acknowledged and is lost"
    ended = machine.wait(*jobs)
    assert {job["status"] for job in ended} <= {"Finished"}, ended
    written = (machine.work / "runs").read_text().split() if jobs else []
    assert len(written) == len(set(written)) == len(jobs)


def test_a_copy_of_the_state_directory_leaves_the_jobs_of_the_original_alone(machine):
    gate = Gate(machine)
    job = machine.submit("--gpus", "1", "--requeue", *counted(machine, gate.command))
    gate.reached()
    pid = machine.running(job)["pid"]
    machine.down()
    copy = Machine(machine.devices)
    try:
        shutil.copytree(machine.state, copy.state, symlinks=True, ignore=shutil.ignore_patterns("*.sock"))
        machine.up()
        copy.up()
        ended = copy.wait(job)[0]
        assert ended["status"] == "Lost" and "of which this one is a copy" in str(ended), ended
        assert alive(pid) and machine.job(job)["status"] == "Running"
    finally:
        copy.close()
    gate.open()
    assert machine.wait(job)[0]["status"] == "Finished"
    assert runs(machine) == 1
