# SPDX-License-Identifier: Apache-2.0
"""Every system call of the programs fails once, at every place: of the daemon while it starts and takes over what
runs, while it launches a job, sees its end and removes what is left of it, and while it copies the database; of the
supervisor from its start to its end; of the recovery of a database. Afterwards, with the fault gone, nothing is
lost, falsely ended, run twice, or given away under a running process.

An ordinary run takes some of the places, others on each day of the year; GFLOW_FAULTS=17 takes those of that day,
GFLOW_FAULTS=all all of them.
"""

import collections
import contextlib
import ctypes
import json
import os
import re
import resource
import select
import shutil
import socket
import sqlite3
import struct
import time

import pytest
from faults import (STRACE, Kept, Sweep, Traced, children, executable, is_alive, parent, places, places_each_time, strace,
                    wait_gone)
from machine import BIN, PATIENCE, Gate, Machine

pytestmark = pytest.mark.skipif(not STRACE, reason="strace is not installed (./dev setup)")


def test_taking_over():
    """One job runs, one ended while no daemon was there, one waits for the GPU of the first."""
    machine = Machine("sim:1xH100")
    try:
        machine.up()
        gates = [Gate(machine, name) for name in "ab"]
        runs = machine.submit("--gpus", "1", "bash", "-c", gates[0].command)
        ended = machine.submit("bash", "-c", f"{gates[1].command}; exit 7")
        waits = machine.submit("--gpus", "1", "bash", "-c", f"echo ran >> {machine.work}/stolen")
        for gate in gates:
            gate.reached()
        pid = machine.running(runs)["pid"]
        shim = parent(machine.running(ended)["pid"])
        machine.kill_daemon()
        gates[1].open()
        wait_gone(shim)
        kept = Kept(machine, f"attempts/{ended}.1")

        whole = Traced(machine)
        assert whole.said, "it does not start even without a fault"
        whole.end()
        found = places(whole.trace)
        assert len(found) > 200, found
        sweep = Sweep(found, most=40)
        for place in sweep.places:
            kept.back()
            faulty = Traced(machine, inject=place)
            faulty.end()
            sweep.note(place, faulty.trace)
            again = Traced(machine)
            try:
                assert is_alive(pid), f"{place}: the job that ran was ended"
                jobs = [machine.until(ended, lambda job: job["status"] not in ("Running", "Starting"))]
                jobs += [machine.job(job) for job in (runs, waits)]
                told = [(job["status"], (job.get("outcome") or {}).get("exit_code")) for job in jobs]
                assert told == [("Failed", 7), ("Running", None), ("Queued", None)], (place, told)
                assert jobs[1]["pid"] == pid and jobs[1]["gpu_indices"] == [0], (place, jobs[1])
                assert not (machine.work / "stolen").exists(), f"{place}: its GPU was given away"
            finally:
                again.end()
        sweep.check()
        machine.up()
        gates[0].open()
        assert [job["status"] for job in machine.wait(runs, waits)] == ["Finished", "Finished"]
    finally:
        machine.close()


def request(machine, body):
    """A submission over the socket; the id, or nothing if it was not acknowledged."""
    text = json.dumps(body)
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(20)
            connection.connect(str(machine.socket))
            head = f"POST /api/v1/jobs HTTP/1.1\r\nHost: gflow\r\nConnection: close\r\nContent-Length: {len(text)}\r\n"
            connection.sendall((head + "Content-Type: application/json\r\n\r\n" + text).encode())
            answer = b""
            while chunk := connection.recv(65536):
                answer += chunk
    except OSError:
        return None
    if not answer.startswith(b"HTTP/1.1 2"):
        return None
    return json.loads(answer.split(b"\r\n\r\n", 1)[1])["items"][0]["id"]


def test_a_job_from_its_start_to_its_removal():
    """A fault while a job is launched, ends and is removed costs it nothing but time."""
    machine = Machine("sim:1xH100", config="[runner]\nlaunch_backoff = '1s'\n")
    marks = machine.work / "marks"
    try:
        Traced(machine).end()  # what the first start makes is there at each later one

        def submit(name):
            script = f"echo {name} >> {marks}; exit 3"
            return request(machine, {"items": [{
                "spec": {"name": name, "request": {"gpus": 1}, "work_dir": str(machine.work)},
                "payload": {"argv": ["/bin/sh", "-c", script], "environment": ["PATH=/usr/bin:/bin"]}}]})

        def calls_of_a_life(name):
            """All that comes after the daemon is ready."""
            whole = Traced(machine)
            assert machine.wait(submit(name))[0]["outcome"]["exit_code"] == 3
            whole.end()
            return places(whole.trace, after="accept")

        # How often it asks for news of its connections hangs on what comes together: more lives leave out more of that.
        found = places_each_time(*(calls_of_a_life(f"life{number}") for number in range(6)))
        assert len(found) > 40, found  # fewer where a busy machine makes lives differ
        acknowledged = 0
        sweep = Sweep(found, most=40)
        for number, place in enumerate(sweep.places):
            name = f"job{number}"
            faulty = Traced(machine, inject=place)
            job = submit(name) if faulty.said else None
            acknowledged += job is not None
            if job is not None:
                try:
                    machine.wait(job)
                except OSError:
                    pass  # a fault of the database is its end; the next one knows
            faulty.end()
            sweep.note(place, faulty.trace)
            again = Traced(machine)
            try:
                if job is not None:
                    end = machine.wait(job)[0]
                    assert (end["status"], end["outcome"]["exit_code"]) == ("Failed", 3), (place, end)
                    assert marks.read_text().split().count(name) == 1, f"{place}: it did not run once"
                assert machine.wait(submit(f"after{number}"))[0]["outcome"]["exit_code"] == 3, place
            finally:
                again.end()
        sweep.check()
        assert acknowledged > len(sweep.places) // 2, "most faults did not let it be submitted"
        for _ in range(20):  # each start sweeps; what is on its way out when it stops goes with the next
            machine.up()
            machine.down()
            left = {path.name for path in (machine.state / "attempts").iterdir()} - {"revoked", "shim.log"}  # of all of them
            if not left:
                break
        assert not left, "something of an attempt is left for ever"
        counts = collections.Counter(marks.read_text().split())
        assert set(counts.values()) == {1}, counts
    finally:
        machine.close()


@pytest.mark.parametrize("cgroups", ["false", "true"])
def test_a_supervisor_from_its_start_to_its_end(cgroups):
    """A fault of the supervisor, or of its child until that is the job, costs the job nothing but time."""
    machine = Machine("sim:1xH100", config=f"[runner]\ncgroups = {cgroups}\nlaunch_backoff = '1s'\n")
    marks = machine.work / "marks"
    try:
        programs = machine.root / "bin"
        shutil.copytree(BIN, programs, symlinks=True)
        machine.environment["PATH"] = f"{programs}:{machine.environment['PATH']}"
        shim, trace = programs / "gflow-shim", machine.root / "trace"

        def trace_next(inject=None):
            """The next supervisor is traced, and no other after it; it keeps its pid. One that was started before is
            none: it has looked whether it is to be."""
            deadline = time.monotonic() + PATIENCE
            while any(executable(pid) == shell for pid in children(daemon)):
                assert time.monotonic() < deadline, "a supervisor does not begin"
            words = " ".join([*strace(trace, inject), "-D", "-f", "-b", "execve"])
            (machine.root / "next").write_text(words)
            trace.write_text("")

        shim.unlink()
        shim.write_text(f"""#!/bin/sh
if mv {machine.root}/next {machine.root}/now 2>/dev/null; then
  read -r tracer < {machine.root}/now
  exec $tracer {BIN}/gflow-shim "$@"
fi
exec {BIN}/gflow-shim "$@"
""")
        shim.chmod(0o755)
        machine.up()
        daemon = machine.daemon_pid()
        shell = os.path.realpath("/bin/sh")

        def run(name):
            if cgroups == "true":  # the one kept ready is used up: the next one kept ready is traced
                machine.wait(machine.submit("--gpus", "1", "true"))
            return machine.wait(machine.submit("--gpus", "1", "sh", "-c", f"echo {name} >> {marks}; exit 3"))[0]

        def calls_of_a_life(name):
            trace_next()
            assert run(name)["outcome"]["exit_code"] == 3
            assert "clone" in trace.read_text()
            return places(trace)

        wholes = ("first", "second", "third")
        found = places_each_time(*map(calls_of_a_life, wholes))
        assert len(found) > 30, found
        sweep = Sweep(found, most=30)
        for number, place in enumerate(sweep.places):
            trace_next(inject=place)
            end = run(f"job{number}")
            sweep.note(place, trace)
            assert (end["status"], end["outcome"]["exit_code"]) == ("Failed", 3), (place, end)
        sweep.check()
        counts = collections.Counter(marks.read_text().split())
        assert set(counts.values()) == {1} and len(counts) == len(sweep.places) + len(wholes), counts
    finally:
        machine.close()


class Copies:
    """What becomes of copies of the database: begun as gflow.db.backup-part, moved to their name when they are whole."""

    def __init__(self, directory):
        libc = ctypes.CDLL(None, use_errno=True)
        self.watch = libc.inotify_init1(os.O_CLOEXEC)
        moved_to, create = 0x80, 0x100
        assert libc.inotify_add_watch(self.watch, str(directory).encode(), moved_to | create) >= 0

    def wait(self, process):
        """Until there is one, or the process has ended, or a third is begun: a thread of its own moves each to its
        name, and strace counts the calls of each thread, so that the fault may come again with each."""
        end = os.pidfd_open(process.pid)
        begun = 0
        try:
            while begun < 3:
                ready = select.select([self.watch, end], [], [], PATIENCE)[0]
                assert ready, "neither is there a copy, nor is one begun, nor has the daemon ended"
                if self.watch not in ready:
                    return
                events = os.read(self.watch, 65536)
                while events:
                    size = 16 + struct.unpack_from("I", events, 12)[0]
                    name = events[16:size].rstrip(b"\0")
                    if name.startswith(b"gflow.db.backup-2"):
                        return
                    begun += name == b"gflow.db.backup-part"
                    events = events[size:]
        finally:
            os.close(end)

    def close(self):
        os.close(self.watch)


def content(database):
    """What a database, closed or copied, has of jobs; that it is whole."""
    connection = sqlite3.connect(f"file:{database}?mode=ro&immutable=1", uri=True)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)], database
        jobs = connection.execute(
            "SELECT id, name, status, argv FROM jobs LEFT JOIN payloads ON job = id ORDER BY id").fetchall()
        return jobs, connection.execute("SELECT next_id FROM meta").fetchone()
    finally:
        connection.close()


def test_a_copy_of_the_database():
    """A fault while the database is copied loses nothing, and a copy that is there is whole."""
    machine = Machine("sim:1xH100", config="[store]\nbackup_interval = '1s'\n")
    try:
        machine.up()
        jobs = [machine.submit("--hold", "--name", f"job{n}", "true") for n in range(5)]
        machine.down()
        for path in machine.state.glob("gflow.db.backup-*"):
            path.unlink()
        kept = Kept(machine)

        def copy_once(inject=None):
            kept.back()
            copies = Copies(machine.state)
            daemon = Traced(machine, inject=inject, threads=("-f",))
            if daemon.said == b"ready\n":
                request(machine, {"items": [{"spec": {"name": "new", "work_dir": "/", "hold": True},
                                             "payload": {"argv": ["true"]}}]})
                copies.wait(daemon.process)
            daemon.end()
            copies.close()
            return daemon.trace

        found = places(copy_once(), after="backup-part", until="rename(")
        assert len(found) > 20 and content(next(machine.state.glob("gflow.db.backup-2*"))), found
        sweep = Sweep(found, most=12)
        for place in sweep.places:
            sweep.note(place, copy_once(place))
            for path in machine.state.glob("gflow.db.backup-2*"):
                assert [row[0] for row in content(path)[0]][:5] == jobs, (place, path)
            machine.up()
            known = [job["id"] for job in machine.get("/api/v1/jobs")["jobs"]]
            assert known[:5] == jobs, (place, known)
            machine.down()
        sweep.check()
    finally:
        machine.close()


def test_the_recovery_of_a_database():
    """What cannot be read now is not taken for damaged: with the fault gone all is recovered that can be, and a
    recovery that says it is done has it all."""
    machine = Machine("sim:1xH100")
    try:
        machine.up()
        gate = Gate(machine)
        script = machine.work / "job.sh"
        script.write_text(f"#!/bin/bash\n{gate.command}\n")
        for n in range(4):
            machine.submit("--hold", "--name", f"job{n}", "true")
        machine.down()  # and a copy is made
        machine.up()
        machine.submit("--gpus", "1", "--name", "runs", script)
        gate.reached()
        machine.submit("--hold", "--name", "lost", "true")
        machine.kill_daemon()
        for suffix in ("", "-wal"):
            (machine.state / f"gflow.db{suffix}").unlink()
        kept = Kept(machine)
        database = machine.state / "gflow.db"
        trace = machine.root / "trace"
        command = ["gflow", "doctor", "--recover", "--json"]

        machine.ok(*strace(trace), *command)
        expected = content(database)
        assert [row[1] for row in expected[0]] == ["job0", "job1", "job2", "job3", "runs"], expected
        found = places(trace, after="gflow.db")
        assert len(found) > 100, found
        sweep = Sweep(found, most=40)
        done = 0
        for place in sweep.places:
            kept.back()
            faulty = machine.run(*strace(trace, place), *command)
            sweep.note(place, trace)
            if faulty.code == 0:
                done += 1
                assert content(database) == expected, f"{place}: it said it was done: {faulty}"
            machine.ok(*command)
            assert content(database) == expected, (place, faulty)
        sweep.check()
        assert 0 < done < len(sweep.places), done
        machine.up()
        gate.open()
        assert [job["status"] for job in machine.wait(5)] == ["Finished"]
    finally:
        machine.close()


def test_a_daemon_short_of_descriptors_holds_no_job():
    """With as few as gflowd starts with, jobs that come and go find some left and others none; with fewer it does not
    start, and says why. (Here, and not beside the other failures, as a sanitizer needs descriptors of its own.)"""
    machine = Machine(config="[runner]\nlaunch_backoff = '1s'\n")
    oracle = machine.work / "ran"
    go = machine.work / "go"
    os.mkfifo(go)
    try:
        for most in (7, 20, 127):
            refused = machine.run(f"ulimit -n {most}; gflowd up --devices {machine.devices}", shell=True)
            assert refused.code == 1 and f"needs at least 128 open files and may have {most} here" in refused.err, refused
        machine.bash("ulimit -n 128; gflowd up --devices " + machine.devices)
        jobs = [machine.submit("--cpus", "0", "bash", "-c", f"read x < {go}; echo $GFLOW_JOB_ID >> {oracle}") for _ in range(60)]
        machine.until(jobs[-1], is_refused)
        with open(go, "w") as gate:  # stays open until the last of them has read its line
            gate.write("go\n" * len(jobs))
            gate.flush()
            ended = machine.wait(*jobs)
        assert {job["status"] for job in ended} == {"Finished"}, ended
        assert sorted(map(int, oracle.read_text().split())) == jobs
    finally:
        machine.close()


def held_connection(machine):
    """One that says nothing more once it was answered, and that answer."""
    one = socket.socket(socket.AF_UNIX)
    one.connect(str(machine.socket))
    one.settimeout(PATIENCE)
    with contextlib.suppress(ConnectionError):  # who is turned away may be told before asking
        one.sendall(b"GET /healthz HTTP/1.1\r\nHost: gflow\r\n\r\n")
    return one, one.recv(4096)


def held_processes(machine):
    """How many the daemon holds."""
    directory = f"/proc/{machine.daemon_pid()}/fd"
    return sum("pidfd" in os.readlink(f"{directory}/{name}") for name in os.listdir(directory))


def held_connections(machine):
    """As many as are let in, and who is turned away."""
    held = [held_connection(machine)]
    while b" 200 OK" in held[-1][1]:
        assert len(held) < 128, "all are let in"
        held.append(held_connection(machine))
    assert b" 429 " in held[-1][1], held[-1]
    return [one for one, _ in held]


def give_back(machine, held):
    """Some of them, for commands: until that is noticed."""
    for one in held[-6:]:
        one.close()
    last = time.monotonic() + PATIENCE
    answer = b""
    while b" 200 OK" not in answer:
        assert time.monotonic() < last, answer
        one, answer = held_connection(machine)
        one.close()


@pytest.mark.parametrize("first", ["jobs", "connections"])
def test_jobs_and_connections_leave_descriptors_to_each_other(first):
    """As many as there can be of one, and then of the other, of a gflowd that may open hardly any files."""
    machine = Machine()
    held = []
    try:
        machine.bash("ulimit -n 128; gflowd up --devices " + machine.devices)
        if first == "connections":
            held = held_connections(machine)
            give_back(machine, held)
        jobs = [machine.submit("--cpus", "0", "bash", "-c", "echo begun; sleep 1000") for _ in range(40)]
        machine.until(jobs[-1], is_refused)
        running = [job for job in jobs if machine.job(job)["pid"]]
        assert len(running) > 10, running
        while held_processes(machine) < 2 * len(running):  # of each its supervisor and, after a while, its first process
            machine.ok("gqueue")
        assert machine.log(running[-1]) == "begun\n"
        if first == "jobs":
            held = held_connections(machine)
            assert len(held) > 20, len(held)
            give_back(machine, held)
        machine.ok("gcancel", *map(str, jobs))
        assert {job["status"] for job in machine.wait(*jobs)} == {"Cancelled"}
    finally:
        for one in held:
            one.close()
        machine.close()


def answer_on(one):
    """Whole, in as many pieces as it comes."""
    answer = b""
    while not (end := re.search(rb"Content-Length: (\d+)\b.*?\r\n\r\n", answer, re.S)) or len(answer) < end.end() + int(end[1]):
        piece = one.recv(65536)
        assert piece, answer
        answer += piece
    return answer.decode()


def post(one, target, body):
    """Over a connection there is; the answer."""
    one.sendall(f"POST {target} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n{body}".encode())
    return answer_on(one)


def test_what_cannot_be_answered_for_want_of_descriptors_can_be_asked_again():
    """A log that is to be opened, a process that is to be looked at, and whose a connection over TCP is."""
    machine = Machine()
    machine.environment["GFLOW_API__LISTEN"] = "127.0.0.1:0"
    try:
        machine.up()
        job = machine.submit("echo", "here")
        machine.wait(job)
        one, _ = held_connection(machine)
        log = f"GET /api/v1/jobs/{job}/log HTTP/1.1\r\nHost: gflow\r\n\r\n".encode()
        held = json.dumps({"pid": os.getpid()})
        host, port = json.loads(machine.ok("gflowd", "status", "--json"))["api_url"].removeprefix("http://").split(":")
        pid = machine.daemon_pid()
        before = resource.prlimit(pid, resource.RLIMIT_NOFILE)

        def is_told_to_try_again(answer):
            return (answer.startswith("HTTP/1.1 503 ") and "as many files open as it may" in answer
                    and "Retry-After: 5\r\n" in answer)

        leave_descriptors(pid, 0)
        one.sendall(log)
        assert is_told_to_try_again(refused := answer_on(one)), refused
        assert is_told_to_try_again(refused := post(one, "/api/v1/gpu/allocate", held)), refused
        assert is_told_to_try_again(refused := post(one, "/api/v1/gpu/validate", held)), refused
        leave_descriptors(pid, 1)  # for the connection itself
        with socket.create_connection((host, int(port)), PATIENCE) as other:
            assert is_told_to_try_again(refused := post(other, "/api/v1/gpu/allocate", "{}")), refused
            assert "Connection: close\r\n" in refused, refused
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
        with socket.create_connection((host, int(port)), PATIENCE) as other:
            assert " 200 OK" in post(other, "/api/v1/gpu/validate", "{}")
        one.sendall(log)
        assert answer_on(one).endswith("\r\n\r\nhere\n")
        assert '"success":true' in post(one, "/api/v1/gpu/allocate", held)
        one.close()
    finally:
        machine.close()


def is_refused(job):
    return re.search("Too many open files|may open no more files", job["reason"])


def leave_descriptors(pid, count):
    """To a process, so many beside those it has."""
    taken = {int(name) for name in os.listdir(f"/proc/{pid}/fd")}
    free = sorted(set(range(len(taken) + count + 1)) - taken)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (free[count], resource.prlimit(pid, resource.RLIMIT_NOFILE)[1]))


def test_a_daemon_short_of_descriptors_is_heard():
    """Jobs that come one after the other until there are none for the next: some are left for who asks."""
    machine = Machine()
    held = []
    try:
        machine.up()
        pid = machine.daemon_pid()
        held = [held_connection(machine)[0] for _ in range(100)]  # or jobs had no more than their share of so few
        leave_descriptors(pid, 34)
        jobs = []
        while not jobs or not is_refused(machine.until(jobs[-1], lambda job: job["pid"] or is_refused(job))):
            jobs.append(machine.submit("sleep", "1000"))
        assert len(jobs) > 3, "it is not so that hardly any can run"
        left = resource.prlimit(pid, resource.RLIMIT_NOFILE)[0] - len(os.listdir(f"/proc/{pid}/fd"))
        assert left >= 4, (left, len(jobs))
        assert "Too many open files" in machine.job(jobs[-1])["reason"]
        machine.ok("gcancel", *map(str, jobs))
        assert {job["status"] for job in machine.wait(*jobs)} == {"Cancelled"}
    finally:
        for one in held:
            one.close()
        machine.close()


def test_a_daemon_that_lets_nobody_in_is_stopped():
    machine = Machine()
    try:
        machine.up()
        job = machine.submit("sleep", "1000")
        machine.running(job)
        pid = machine.daemon_pid()
        leave_descriptors(pid, 0)
        with socket.socket(socket.AF_UNIX) as last:  # who comes by the one that is kept for that
            last.connect(str(machine.socket))
            down = machine.run("gflowd", "down")
        assert (down.code, down.out) == (0, "gflowd is down\n"), down
        assert f"gflowd (pid {pid}) does not answer" in down.err and "stopping it by a signal" in down.err, down
        assert "no connection can be accepted: Too many open files" in (machine.logs / "gpu_resource_manager.log").read_text()
        machine.up()
        assert machine.job(job)["status"] == "Running"
    finally:
        machine.close()
