# SPDX-License-Identifier: Apache-2.0
"""What the sweeps of test_faults.py share: programs under strace, one of whose system calls fails."""

import collections
import contextlib
import os
import re
import select
import shutil
import signal
import subprocess
import time

STRACE = shutil.which("strace")
WHICH = os.environ.get("GFLOW_FAULTS") or str(time.localtime().tm_yday)  # "all", or which of the sweeps there are

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
    "linkat": ("ENOSPC", "EIO"),
    "rename": ("ENOSPC", "EIO"),
    "renameat": ("ENOSPC", "EIO"),
    "flock": ("EINTR", "ENOLCK"),
    "newfstatat": ("EIO", "EACCES", "ENOMEM"),
    "stat": ("EIO",),
    "lstat": ("EIO", "ENOMEM"),
    "access": ("EIO", "EACCES"),
    "getdents64": ("EIO", "ENOMEM"),
    "readlink": ("EIO", "ENOMEM"),
    "pipe2": ("EMFILE", "ENFILE"),
    "pidfd_open": ("EMFILE", "ENOMEM"),
    "pidfd_send_signal": ("EAGAIN",),
    "signalfd4": ("EMFILE", "ENOMEM"),
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
    "wait4": ("EINTR",),
    "waitid": ("EINTR",),
    "fcntl": ("EMFILE",),
    "chmod": ("EIO", "EACCES"),
    "copy_file_range": ("EIO", "ENOSPC"),
    "sendfile": ("EIO",),
}


def strace(trace, inject=None):
    """The start of a command line: with the n-th call of a kind failing, or all that can fail written down."""
    calls = inject[0] if inject else ",".join(ERRORS)
    failing = ["-e", f"inject={inject[0]}:error={inject[1]}:when={inject[2]}"] if inject else []
    return [STRACE, "-qq", "-o", str(trace), "-e", f"trace={calls}", *failing]


def places(trace, after=None, until=None):
    """(call, error, n) for every call of a trace, in its order; those from a mark to another only."""
    counts = collections.Counter()
    found = []
    marked = after is None
    for line in trace.read_text(errors="replace").splitlines():
        call = re.match(r"(?:(\d+) +)?(\w+)\(", line)
        if not call:
            continue
        name = call.group(2)
        counts[call.group(1), name] += 1
        marked = marked or after in line
        if marked:
            found += [(name, error, counts[call.group(1), name]) for error in ERRORS.get(name, ())]
        if marked and until is not None and until in line:
            break
    return list(dict.fromkeys(found))


def places_each_time(first, *others):
    """What every run has: how often a program reads, accepts and looks for the end of its children depends on what
    comes together."""
    return [place for place in first if all(place in other for other in others)]


class Sweep:
    """Some places, spread over the whole, each kind of call among them, on each day of the year others; those of day 17
    again with GFLOW_FAULTS=17, all of them with GFLOW_FAULTS=all. Counts the faults that happened: a run in which one kind never did is no test."""

    def __init__(self, found, most):
        print(f"repeated by GFLOW_FAULTS={WHICH}")  # shown where it fails
        self.places = found if WHICH == "all" or len(found) <= most else self.some_of(found, most)
        self.tried, self.happened = collections.Counter(), collections.Counter()

    @staticmethod
    def some_of(found, most):
        first = {}
        for place in found:
            first.setdefault(place[0], place)
        firsts = list(first.values())
        step = -(-len(found) // max(most - len(firsts), most // 2))
        return list(dict.fromkeys([*found[int(WHICH) % step :: step], *firsts]))

    def note(self, place, trace):
        self.tried[place[0]] += 1
        self.happened[place[0]] += "(INJECTED)" in trace.read_text(errors="replace")

    def check(self):
        assert sum(self.tried.values()) == len(self.places)
        never = sorted(set(self.tried) - set(+self.happened))
        assert not never, f"these never failed: {never}"
        missed = self.tried - self.happened
        del missed["bind"]  # how many ports are tried hangs on which ones the other daemons of the machine have
        assert sum(missed.values()) * 20 <= len(self.places), f"faults that did not happen: {missed} of {self.tried}"


class Traced:
    """A daemon under strace, one of whose system calls fails."""

    def __init__(self, machine, inject=None, trace=None, threads=()):
        self.trace = trace or machine.root / "trace"
        self.process = subprocess.Popen(
            [*strace(self.trace, inject), *threads, "gflowd", "--devices", machine.devices, "--ready-fd", "1"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=machine.environment, cwd=machine.work,
        )
        self.said = self.process.stdout.readline()  # that it answers, or why it cannot; nothing if it died

    def end(self):
        """Kills the daemon, and with it the tracer ends."""
        for pid in children(self.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(60)
        self.process.stdout.close()
        self.process.stderr.close()


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def parent(pid):
    with open(f"/proc/{pid}/stat") as stat:
        return int(stat.read().rsplit(")", 1)[1].split()[1])


def children(pid):
    """None if it is gone."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as pids:
            return [int(child) for child in pids.read().split()]
    except FileNotFoundError:
        return []


def executable(pid):
    """The program it runs; "" if it is gone."""
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except FileNotFoundError:
        return ""


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
