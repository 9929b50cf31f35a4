# SPDX-License-Identifier: Apache-2.0
"""The daemon as a program: where it is found, how it is replaced, what is said when it is silent."""

import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from machine import CONTROL_GROUPS, PATIENCE, Gate, Machine, appears
from terminal import Terminal, on_terminal

SOCKET = ("gflowd", ".sock")


@pytest.fixture
def stopped(bare):
    """The pid of a daemon that is stopped while it runs: a child, of which that is told."""
    ready, told = os.pipe()
    daemon = start(bare, "gflowd", "--devices", bare.devices, "--ready-fd", str(told), pass_fds=[told])
    os.close(told)
    with open(ready) as said:
        assert said.read() == "ready\n"
    os.kill(daemon.pid, signal.SIGSTOP)
    assert os.WIFSTOPPED(os.waitpid(daemon.pid, os.WUNTRACED)[1])
    try:
        yield daemon.pid
    finally:
        daemon.kill()
        daemon.wait()


def start(machine, *command, **more):
    return subprocess.Popen(command, env=machine.environment, cwd=machine.work, text=True, **more)


# -- where it is found


def test_a_removed_socket_is_made_again(machine):
    pid = machine.daemon_pid()
    machine.socket.unlink()
    appears(machine.socket.parent, *SOCKET)
    assert machine.daemon_pid() == pid
    assert machine.ok("gqueue").startswith("JOBID")


def test_a_replaced_socket_is_made_again(machine):
    pid = machine.daemon_pid()
    (machine.work / "other").write_text("")
    (machine.work / "other").rename(machine.socket)
    machine.socket.unlink()
    appears(machine.socket.parent, *SOCKET)
    assert machine.daemon_pid() == pid


def test_a_removed_directory_is_made_again(machine):
    pid = machine.daemon_pid()
    machine.socket.parent.rename(machine.state / "gone")
    appears(machine.state, "run")
    appears(machine.state / "run", *SOCKET)
    assert machine.daemon_pid() == pid


@pytest.mark.parametrize("shell", [{}, {"XDG_RUNTIME_DIR": ""}, {"XDG_RUNTIME_DIR": "/nowhere"}])
def test_every_shell_finds_the_daemon(bare, shell):
    """Also where it was started with a socket of its own."""
    place = bare.work / "place"
    place.mkdir()
    bare.ok("gflowd", "up", "--devices", bare.devices, env={"GFLOW_SOCKET": str(place / "s")})
    assert f"Socket: {place}/s\n" in bare.ok("gflowd", "status", env=shell)
    assert bare.ok("gqueue", env=shell).startswith("JOBID")
    assert bare.ok("gflowd", "up", env=shell).startswith("gflowd is already running")
    assert bare.ok("gflowd", "reload", env=shell) == "configuration reloaded\n"
    assert bare.ok("gflowd", "restart", env=shell).startswith("gflowd is up")
    assert bare.ok("gflowd", "down", env=shell) == "gflowd is down\n"
    assert bare.run("gflowd", "status", env=shell).out.startswith("Status: Not running\n")


def test_a_daemon_without_its_socket_is_acted_on(bare):
    """Where its socket cannot be made again the lock says who it is."""
    place = bare.root / "place"
    place.mkdir()
    bare.config(f'[daemon]\nsocket = "{place}/s"\n')
    bare.up()
    pid = int((bare.state / "gflowd.lock").read_text().split()[0])
    place.rename(bare.root / "gone")
    status = bare.run("gflowd", "status")
    assert status.code == 4, status
    assert status.out.startswith(f"Status: Not answering\nPID: {pid}\nSocket: {place}/s\n"), status
    assert f"gflowd (pid {pid}) is running but does not answer at {place}/s; its log is {bare.logs}/" in status.err
    for words in (["up"], ["restart"]):
        assert f"gflowd (pid {pid}) is running but does not answer" in bare.run("gflowd", *words).err
    assert bare.ok("gflowd", "down") == "gflowd is down\n"
    assert bare.run("gflowd", "status").out.startswith("Status: Not running\n")


def test_a_lock_that_was_copied_leads_to_nobody(bare):
    """Commands in a copy of a state directory used to act on the gflowd of the original."""
    bare.up()
    pid = bare.daemon_pid()
    copy = Machine(bare.devices)
    try:
        copy.state.mkdir(parents=True)
        shutil.copy(bare.state / "gflowd.lock", copy.state)
        status = copy.run("gflowd", "status")
        assert status.code == 4 and status.out.startswith("Status: Not running\n"), status
        for words in (["gflowd", "down"], ["gflowd", "reload"], ["gqueue"]):
            assert copy.run(*words).code == 4, words
        assert copy.up().startswith("gflowd is up")
        assert copy.daemon_pid() != pid
        copy.down()
    finally:
        copy.close()
    assert bare.daemon_pid() == pid


def test_the_log_is_named(bare):
    log = f"Log: {bare.logs}/gpu_resource_manager.log\n"
    assert log in bare.up()
    assert log in bare.ok("gflowd", "status")
    assert bare.get("/api/v1/daemon")["log_path"] == f"{bare.logs}/gpu_resource_manager.log"
    bare.down()
    assert log in bare.run("gflowd", "status").out


# -- how it is replaced


def test_a_restart_that_cannot_be_leaves_the_old_one(machine):
    pid = machine.daemon_pid()
    job = machine.submit("--hold", "true")
    bad = machine.work / "bad.yaml"
    bad.write_text("nonsense: [")
    for words in (["--devices", "sim:bad.yaml"], ["--devices", "sim:2xNothing"], ["--devices", "sim:absent.yaml"]):
        ran = machine.run("gflowd", "restart", *words)
        assert ran.code != 0 and f"; gflowd (pid {pid}) keeps running unchanged" in ran.err, ran
        assert machine.daemon_pid() == pid
    machine.config("[scheduler]\nmax_queued = many\n")
    ran = machine.run("gflowd", "restart")
    assert ran.code != 0 and "gflow.toml:2" in ran.err, ran
    assert machine.job(job)["status"] == "Hold"


def test_what_would_fail_later_fails_before_the_old_one_is_ended(machine):
    machine.down()  # what the database begins with is in its file then, and not in its log
    machine.up()
    pid = machine.daemon_pid()

    def is_refused(why):
        ran = machine.run("gflowd", "restart")
        assert ran.code != 0 and why in ran.err and f"; gflowd (pid {pid}) keeps running unchanged" in ran.err, ran
        assert machine.daemon_pid() == pid

    for path in (machine.logs / "gpu_resource_manager.log", machine.state / "attempts/revoked"):
        aside = path.rename(f"{path}.aside")
        path.mkdir()
        is_refused(path.name)
        path.rmdir()
        aside.rename(path)
    database = machine.state / "gflow.db"
    for place, garbage, why in ((0, b"garbage", "is damaged"), (60, b"\0\0\0\x63", "newer gflow (schema 99")):
        with open(database, "r+b", buffering=0) as file:
            was = os.pread(file.fileno(), len(garbage), place)
            os.pwrite(file.fileno(), garbage, place)
            is_refused(why)
            os.pwrite(file.fileno(), was, place)
    assert machine.ok("gflowd", "restart").startswith("gflowd is up")


def test_a_restart_starts_anew_as_it_was(bare):
    other = bare.work / "other.toml"
    other.write_text("[scheduler]\nmax_submit = 3\n")
    bare.ok("gflowd", "up", "--devices", "sim:3xH100", "--gflow-config", "other.toml")
    pid = bare.daemon_pid()
    assert "3 GPUs" in bare.ok("gflowd", "restart")
    assert bare.daemon_pid() != pid
    said = bare.ok("gctl", "config", "show", "--origin", "--json")
    assert f"{other}:2" in said
    assert "5 GPUs" in bare.ok("gflowd", "restart", "--devices", "sim:5xH100")


def test_a_restart_keeps_what_the_environment_said(bare):
    bare.ok("gflowd", "up", env={"GFLOW_DAEMON__DEVICES": "sim:3xA100", "GFLOW_SCHEDULER__MAX_ENDED": "77"})
    assert "3 GPUs" in bare.ok("gflowd", "restart")
    settings = {one["name"]: one for one in json.loads(bare.ok("gctl", "config", "show", "--origin", "--json"))["settings"]}
    assert settings["scheduler.max_ended"]["value"] == "77"
    assert settings["scheduler.max_ended"]["origin"] == "GFLOW_SCHEDULER__MAX_ENDED"
    assert "5 GPUs" in bare.ok("gflowd", "restart", env={"GFLOW_DAEMON__DEVICES": "sim:5xA100"})
    assert "2 GPUs" in bare.ok("gflowd", "restart", "--devices", "sim:2xA100")


def test_a_restart_of_one_that_was_killed_starts_it_as_it_was(bare):
    (bare.work / "other.toml").write_text("[scheduler]\nmax_submit = 3\n")
    bare.ok("gflowd", "up", "--devices", "sim:3xH100", "--gflow-config", "other.toml")
    said = ("gflowd restart: note: gflowd was not running; it starts with the options it had last: "
            f"--gflow-config={bare.work}/other.toml --devices=")
    for words, gpus, err in (([], 3, f"{said}sim:3xH100\n"),
                             (["--devices", "sim:5xH100"], 5, f"{said.removesuffix(' --devices=')}\n"),
                             ([], 5, f"{said}sim:5xH100\n")):
        bare.kill_daemon()
        ran = bare.run("gflowd", "restart", *words)
        assert ran.code == 0 and ran.err.startswith(err), ran
        assert f"{gpus} GPUs" in ran.out
        assert f"{bare.work}/other.toml:2" in bare.ok("gctl", "config", "show", "--origin", "--json")
    bare.down()
    assert "5 GPUs" in bare.ok("gflowd", "restart")


def test_a_start_that_waits_says_for_what(bare):
    bare.up()
    bare.down()
    with open(bare.state / "gflowd.lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waiting = start(bare, "gflowd", "up", "--devices", bare.devices,
                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        said = waiting.stderr.readline()
        assert said.startswith(f"gflowd up: note: waiting for process {os.getpid()} ("), said
        assert f"which has {bare.state}/gflowd.lock locked; the log is {bare.logs}/" in said
    out, err = waiting.communicate(timeout=PATIENCE)
    assert out.startswith("gflowd is up") and err == "" and waiting.returncode == 0, (out, err)


def test_all_who_start_it_at_once_have_it(bare):
    """Those that were a moment late used to fail."""
    started = [subprocess.Popen(["gflowd", "up", "--devices", bare.devices], env=bare.environment, cwd=bare.work,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
               for _ in range(8)]
    said = [(*one.communicate(timeout=PATIENCE), one.returncode) for one in started]
    assert all(code == 0 for _, _, code in said), said
    outs = [out.splitlines()[0] for out, _, _ in said]
    pid = bare.daemon_pid()
    assert sum(out.startswith(f"gflowd is up (pid {pid}): ") for out in outs) == 1, outs
    assert outs.count(f"gflowd is already running (pid {pid})") == 7, outs


def test_a_port_that_is_taken_is_told_with_what_helps(bare):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        bare.environment["GFLOW_API__LISTEN"] = "127.0.0.1:%d" % taken.getsockname()[1]
        bare.up()
        said = bare.run("ginfo").err
    assert said.startswith("ginfo: note: the API is not served everywhere it should be: "), said
    assert said.endswith("; set [api] listen to a free port, or to \"\", and run 'gflowd restart'\n"), said
    for words in (["ginfo"], ["gflowd", "status"]):
        terminal, _ = on_terminal(bare, *words, columns=400, rows=60, env={"LC_ALL": "zh_CN.UTF-8"})
        said = terminal.screen.text()
        assert "API 未能在所有应有的地址上提供服务" in said and "gflowd restart" in said, said


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP, signal.SIGPIPE])
def test_signals_that_ask_for_no_end_end_nothing(machine, number):
    """It used to die of a SIGUSR1, without a line in its log."""
    pid = machine.daemon_pid()
    for _ in range(200):
        os.kill(pid, number)
        assert machine.get("/api/v1/daemon")["pid"] == pid
    job = machine.submit("bash", "-c", f"kill -{number.name[3:]} $$")
    assert machine.wait(job)[0]["outcome"]["signal"] == number, "a job takes them as always"


def test_a_storm_of_signals_that_ask_for_its_end_is_one_end(machine):
    job = machine.submit("--gpus", 1, "sleep", "1000")
    machine.running(job)
    daemon = os.pidfd_open(machine.daemon_pid())
    with contextlib.suppress(ProcessLookupError):
        for _ in range(100):
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
                signal.pidfd_send_signal(daemon, number)
    assert select.select([daemon], [], [], PATIENCE)[0]
    os.close(daemon)
    machine.up()
    assert machine.job(job)["status"] == "Running"


# -- what is said when it is silent


def test_silence_is_said_as_what_it_is(bare, stopped):
    command = start(bare, "gqueue", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    note = command.stderr.readline()
    assert note == (
        f"gqueue: note: gflowd (pid {stopped}) does not answer; it is stopped (T): 'kill -CONT {stopped}' resumes it\n"
    )
    os.kill(stopped, signal.SIGCONT)
    out, err = command.communicate(timeout=PATIENCE)
    assert (command.returncode, err) == (0, "") and out.startswith("JOBID")


def test_silence_is_said_where_nobody_is_let_in(bare, stopped):
    """So many ask already that a connection has to wait."""
    waiting = [start(bare, "gqueue", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for _ in range(40)]
    notes = {one.stderr.readline().split(": note: ")[1] for one in waiting}
    assert notes == {
        f"gflowd (pid {stopped}) does not answer; it is stopped (T): 'kill -CONT {stopped}' resumes it\n",
        f"gflowd at {bare.socket} accepts no connections\n",
    }
    os.kill(stopped, signal.SIGCONT)
    for one in waiting:
        one.communicate(timeout=PATIENCE)
        assert one.returncode == 0


@pytest.mark.parametrize("verb", ["up", "down", "restart", "status"])
def test_a_stopped_daemon_is_told_at_once(bare, stopped, verb):
    ran = bare.run("gflowd", verb)
    assert ran.code != 0
    assert f"gflowd (pid {stopped}) does not answer; it is stopped (T)" in ran.err
    assert f"'kill -KILL {stopped}' ends it, and jobs keep running either way" in ran.err
    assert ran.out.startswith("Status: Not answering\n") == (verb == "status")


def test_who_waits_for_a_job_is_told_for_what(machine):
    gate = Gate(machine)
    job = machine.submit("bash", "-c", gate.command)
    gate.reached()
    machine.running(job)
    with Terminal(machine, "bash", "-c", f"exec gjob wait {job} > /dev/null") as terminal:
        terminal.shows(f"Waiting for job {job}: Running")
        gate.open()
        assert terminal.ends() == 0


def test_who_waits_for_a_job_that_fails_is_told_how_and_where_to_look(machine):
    job = machine.submit("bash", "-c", "exit 2")
    quiet = machine.run("gjob", "wait", job)
    assert (quiet.code, quiet.out, quiet.err) == (2, "", "")
    terminal, code = on_terminal(machine, "bash", "-c", f"exec gjob wait {job} > /dev/null", columns=200)
    shown = terminal.screen.text()
    assert code == 2 and f"Job {job} exited with code 2" in shown and f"'gjob log {job}' shows its output" in shown, shown


# -- who goes


@pytest.mark.parametrize("words", [["gqueue", "-w"], ["gjob", "log", "-f", "1"]])
def test_a_command_ends_with_its_reader(machine, words):
    """Nothing happens meanwhile, so that it has nothing to write."""
    gate = Gate(machine)
    job = machine.submit("bash", "-c", "echo begun; " + gate.command)
    gate.reached()
    machine.running(job)
    command = start(machine, *words, stdout=subprocess.PIPE)
    assert command.stdout.readline()
    command.stdout.close()
    assert command.wait(PATIENCE) in (0, -signal.SIGPIPE)
    gate.open()


# -- what it reads


OTHER = """timezone = "Asia/Shanghai"
[daemon]
host = "localhost"
port = 59000
gpus = [0, 2]
gpu_allocation_strategy = "sequential"
gpu_poll_interval_secs = 10
[daemon.fair_share]
enabled = true
half_life_secs = 604800
[executor]
type = "tmux"
[projects]
known_projects = ["a"]
require_project = false
[quota.default_user]
max_running_jobs = 3
max_queued_jobs = 1
[notifications]
enabled = true
[[notifications.webhooks]]
url = "http://localhost/hook"
"""


def test_the_configuration_of_the_other_gflow_is_read(bare):
    bare.config(OTHER)
    ran = bare.run("gflowd", "up", "--devices", bare.devices)
    assert ran.code == 0, ran
    for ignored in ("timezone", "daemon.host", "daemon.port", "daemon.gpus ('gctl drain gpu N' keeps a GPU back)",
                    "daemon.gpu_allocation_strategy", "daemon.fair_share.half_life_secs", "executor.type",
                    "projects.known_projects", "quota.default_user.max_running_jobs", "notifications.webhooks"):
        assert ignored in ran.err, ran.err
    assert ":18: quota.default_user.max_queued_jobs is read as limits.max_queued_per_user" in ran.err
    assert ":7: daemon.gpu_poll_interval_secs is read as gpu_config.monitor_update_interval" in ran.err
    assert "daemon.port" in bare.run("gflowd", "status").err
    bare.submit("--hold", "true")
    assert bare.run("gbatch", "true").code != 0


def test_a_key_that_nobody_has_is_still_an_error(bare):
    bare.config("[daemon]\nprot = 59000\n")
    assert "gflow.toml:2" in bare.run("gflowd", "up").err


# -- many tasks


def test_ten_thousand_tasks_with_a_large_environment(machine):
    """What they have in common is sent and kept once."""
    large = {f"LARGE_{n}": "x" * 1000 for n in range(90)}
    out = machine.ok("gbatch", "--hold", "--array", "1-10000", "bash", "-c", "echo $GFLOW_ARRAY_TASK_ID $LARGE_89", env=large)
    assert out.count("Submitted batch job") == 10000
    assert sum(file.stat().st_size for file in machine.state.glob("gflow.db*")) < 64 << 20
    machine.kill_daemon()
    machine.up()
    machine.ok("gcancel", *range(1, 9000))
    machine.ok("gjob", "release", "9000", "10000")
    machine.wait(9000, 10000)
    for task in (9000, 10000):
        assert machine.log(task) == f"{task} {large['LARGE_89']}\n"


# -- what is left of it


def test_a_test_leaves_no_control_groups():
    """Thousands of them, of daemons that were killed, made every later test and benchmark slower."""
    machine = Machine()
    try:
        machine.up()
        machine.running(machine.submit("sh", "-c", "env -i sleep 1000"))
        groups = machine.control_groups()
        machine.kill_daemon()
    finally:
        machine.close()
    assert not [group for group in groups if group.exists()]


def test_a_supervisor_loads_nothing_but_the_c_library():
    """There is one for each job, started with it: what it loads is time of every start and memory of every job. Asked of a release
    build, which is what is installed: others load what their compiler did not leave out, or a sanitizer."""
    program = Path(__file__).parents[2] / "build/release/bin/gflow-shim"
    if not program.exists():
        reason = "there is no release build (./dev build)"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    libraries = subprocess.run(["ldd", program], capture_output=True, check=True, text=True).stdout
    names = {line.split()[0].rsplit("/", 1)[-1].split(".so")[0] for line in libraries.splitlines()}
    assert names <= {"linux-vdso", "libc", "ld-linux-x86-64", "ld-linux-aarch64"}, libraries


FREEZER = CONTROL_GROUPS / "freezer"


@pytest.mark.skipif(not os.access(FREEZER / "cgroup.procs", os.W_OK), reason="nothing here holds a dying process")
def test_one_that_was_killed_and_has_not_ended_is_waited_for(machine):
    """A frozen process of cgroup v1 is killed once it is thawed; a large one is while its memory is taken back."""
    daemon = int(machine.daemon_pid())
    group = FREEZER / f"gflow-test-{daemon}"
    group.mkdir()
    try:
        (group / "cgroup.procs").write_text(str(daemon))
        (group / "freezer.state").write_text("FROZEN")
        while (group / "freezer.state").read_text().strip() != "FROZEN":
            pass
        os.kill(daemon, signal.SIGKILL)
        up = subprocess.Popen(
            ["gflowd", "up", "--devices", machine.devices],
            env=machine.environment,
            cwd=machine.work,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert f"gflowd (pid {daemon}) was killed and has not quite ended yet" in up.stderr.readline()
        (group / "freezer.state").write_text("THAWED")
        out, err = up.communicate(timeout=PATIENCE)
        assert up.returncode == 0 and "gflowd is up" in out, (out, err)
        assert int(machine.daemon_pid()) != daemon
    finally:
        (group / "freezer.state").write_text("THAWED")
        group.rmdir()


HOLD_LOCK = """
import fcntl, os, sys
lock = open(sys.argv[1], "r+")
fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
lock.write(sys.argv[2].replace(sys.argv[3], str(os.getpid()), 1))
lock.truncate()
lock.flush()
print("held", flush=True)
sys.stdin.read()
"""


def test_one_that_is_ending_is_waited_for(machine):
    """It has its lock, for a moment, when nobody answers at its socket any more."""
    [lock] = machine.state.glob("*.lock")
    pid, text = str(machine.daemon_pid()), lock.read_text()
    assert pid in text
    machine.down()
    ending = start(machine, sys.executable, "-c", HOLD_LOCK, lock, text, pid, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert ending.stdout.readline() == "held\n"
    up = start(machine, "gflowd", "up", "--devices", machine.devices, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert f"gflowd (pid {ending.pid}) is starting or stopping" in up.stderr.readline()
    ending.communicate()
    out, err = up.communicate(timeout=PATIENCE)
    assert up.returncode == 0 and "gflowd is up" in out, (out, err)
