# SPDX-License-Identifier: Apache-2.0
"""Every system call of the daemon fails once, at every place: while it starts and takes over what runs, and
while it launches a job, sees its end and removes what is left of it. Afterwards, with the fault gone, nothing
is lost, falsely ended, run twice, or given away under a running process.

An ordinary run takes some of the places, others on each day of the year; GFLOW_FAULTS=all takes all.
"""

import collections
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import time

import pytest
from machine import Gate, Machine

STRACE = shutil.which("strace")
ALL = os.environ.get("GFLOW_FAULTS") == "all"
PLACES = 40  # of each sweep in an ordinary run

pytestmark = pytest.mark.skipif(not STRACE, reason="strace is not installed (./dev setup)")

# What each call can fail with when a machine is in trouble. Others only ask what cannot fail, or belong to the
# loader and the memory of the process, where any failure is its end.
ERRORS = {
    "openat": ("EMFILE", "ENFILE", "EIO", "EACCES", "ENOMEM"),
    "read": ("EIO", "EINTR"),
    "pread64": ("EIO",),
    "write": ("ENOSPC", "EIO"),
    "pwrite64": ("ENOSPC", "EIO"),
    "fdatasync": ("EIO",),
    "fsync": ("EIO",),
    "ftruncate": ("ENOSPC", "EIO"),
    "fallocate": ("ENOSPC",),
    "mkdir": ("ENOSPC", "EACCES"),
    "rmdir": ("EIO",),
    "unlink": ("EIO", "EACCES"),
    "unlinkat": ("EIO", "EACCES"),
    "link": ("ENOSPC", "EIO"),
    "rename": ("ENOSPC", "EIO"),
    "flock": ("EINTR", "ENOLCK"),
    "newfstatat": ("EIO", "EACCES", "ENOMEM"),
    "stat": ("EIO",),
    "access": ("EIO", "EACCES"),
    "getdents64": ("EIO", "ENOMEM"),
    "readlink": ("EIO",),
    "pipe2": ("EMFILE", "ENFILE"),
    "pidfd_open": ("EMFILE", "ENOMEM"),
    "pidfd_send_signal": ("EAGAIN",),
    "epoll_create1": ("EMFILE",),
    "epoll_ctl": ("ENOMEM", "ENOSPC"),
    "eventfd2": ("EMFILE",),
    "timerfd_create": ("EMFILE", "ENOMEM"),
    "socket": ("EMFILE",),
    "bind": ("ENOSPC", "EACCES"),
    "listen": ("EACCES",),
    "accept": ("EMFILE",),
    "accept4": ("EMFILE",),
    "clone": ("EAGAIN", "ENOMEM"),
    "clone3": ("EAGAIN", "ENOMEM"),
    "vfork": ("EAGAIN", "ENOMEM"),
    "waitid": ("EINTR",),
    "fcntl": ("EMFILE",),
    "chmod": ("EIO", "EACCES"),
}


class Traced:
    """A daemon under strace, one of whose system calls fails."""

    def __init__(self, machine, inject=None, trace="/dev/null"):
        what = ["-e", f"inject={inject[0]}:error={inject[1]}:when={inject[2]}"] if inject else []
        calls = inject[0] if inject else ",".join(ERRORS)
        self.process = subprocess.Popen(
            [STRACE, "-qq", "-o", trace, "-e", f"trace={calls}", *what,
             "gflowd", "--devices", machine.devices, "--ready-fd", "1"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=machine.environment, cwd=machine.work,
        )
        self.said = self.process.stdout.readline()  # that it answers, or why it cannot; nothing if it died

    def end(self):
        """Kills the daemon, and with it the tracer ends."""
        children = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        try:
            with open(children) as pids:
                for pid in pids.read().split():
                    os.kill(int(pid), signal.SIGKILL)
        except (FileNotFoundError, ProcessLookupError):
            pass
        self.process.wait(60)
        self.process.stdout.close()
        self.process.stderr.close()


def places(trace, after=None):
    """(call, error, n) for every call of a trace, in its order; those after a mark only."""
    counts = collections.Counter()
    found = []
    marked = after is None
    for line in trace.read_text(errors="replace").splitlines():
        call = re.match(r"(\w+)\(", line)
        if not call:
            continue
        name = call.group(1)
        counts[name] += 1
        if not marked and after in line:
            marked = True
        errors = ERRORS.get(name)
        if marked and errors:
            found += [(name, error, counts[name]) for error in errors]
    return found


def chosen(found):
    """All of them, or some spread over the whole, each kind of call among them."""
    if ALL or len(found) <= PLACES:
        return found
    first = {}
    for place in found:
        first.setdefault(place[0], place)
    step = len(found) // (PLACES - min(len(first), PLACES // 2))
    some = found[time.localtime().tm_yday % step :: step]
    return list(dict.fromkeys([*some, *list(first.values())[: PLACES // 2]]))


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def parent(pid):
    with open(f"/proc/{pid}/stat") as stat:
        return int(stat.read().rsplit(")", 1)[1].split()[1])


def wait_gone(pid):
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    assert select.select([descriptor], [], [], 60)[0]
    os.close(descriptor)


class Kept:
    """Files of a state directory put aside, to begin from the same again. What belongs to a running
    attempt is left alone: its locks are those of the files themselves."""

    def __init__(self, machine, *names):
        self.machine = machine
        self.copy = machine.root / "kept"
        self.copy.mkdir()
        self.names = [path.name for path in machine.state.iterdir() if path.name.startswith("gflow.db")]
        self.names += names
        for name in self.names:
            self.duplicate(machine.state / name, self.copy / name)

    @staticmethod
    def duplicate(source, target):
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copy2(source, target)

    def back(self):
        for path in self.machine.state.iterdir():
            if path.name.startswith("gflow.db"):
                path.unlink()
        for name in self.names:
            target = self.machine.state / name
            if target.is_dir():
                shutil.rmtree(target)
            self.duplicate(self.copy / name, target)


def test_taking_over(tmp_path):
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

        trace = tmp_path / "trace"
        whole = Traced(machine, trace=str(trace))
        assert whole.said, "it does not start even without a fault"
        whole.end()
        found = places(trace)
        assert len(found) > 200, found
        tried = 0
        for place in chosen(found):
            kept.back()
            faulty = Traced(machine, inject=place)
            faulty.end()
            tried += 1
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
        assert tried == len(chosen(found))
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


def test_a_job_from_its_start_to_its_removal(tmp_path):
    """A fault while a job is launched, ends and is removed costs it nothing but time."""
    machine = Machine("sim:1xH100", config="[runner]\nlaunch_backoff = '1s'\n")
    marks = machine.work / "marks"
    try:
        machine.up()
        machine.down()

        def submit(name):
            script = f"echo {name} >> {marks}; exit 3"
            return request(machine, {"items": [{
                "spec": {"name": name, "request": {"gpus": 1}, "work_dir": str(machine.work)},
                "payload": {"argv": ["/bin/sh", "-c", script], "environment": ["PATH=/usr/bin:/bin"]}}]})

        trace = tmp_path / "trace"
        whole = Traced(machine, trace=str(trace))
        assert machine.wait(submit("whole"))[0]["outcome"]["exit_code"] == 3
        whole.end()
        # All that comes after the daemon is ready; a later start has no more calls than this one.
        found = places(trace, after="accept")
        assert len(found) > 60, found
        acknowledged = 0
        for number, place in enumerate(chosen(found)):
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
            again = Traced(machine)
            try:
                if job is not None:
                    end = machine.wait(job)[0]
                    assert (end["status"], end["outcome"]["exit_code"]) == ("Failed", 3), (place, end)
                    assert marks.read_text().split().count(name) == 1, f"{place}: it did not run once"
                assert machine.wait(submit(f"after{number}"))[0]["outcome"]["exit_code"] == 3, place
            finally:
                again.end()
        assert acknowledged > len(chosen(found)) // 2, "most faults did not let it be submitted"
        for _ in range(20):  # each start sweeps; what is on its way out when it stops goes with the next
            machine.up()
            machine.down()
            if not list((machine.state / "attempts").iterdir()):
                break
        assert not list((machine.state / "attempts").iterdir()), "something of an attempt is left for ever"
        counts = collections.Counter(marks.read_text().split())
        assert set(counts.values()) == {1}, counts
    finally:
        machine.close()
