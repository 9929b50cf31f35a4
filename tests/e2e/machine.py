# SPDX-License-Identifier: Apache-2.0
"""A private gflowd in a directory of its own, and the commands of the suite against it.

Nothing here sleeps or polls: `wait()` and `until()` ride on the daemon's own long poll.
"""

import ctypes
import json
import os
import pwd
import re
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.parse
from pathlib import Path

BIN = Path(os.environ.get("GFLOW_BIN_DIR", Path(__file__).parents[2] / "build/dev/bin"))
CONTROL_GROUPS = Path("/sys/fs/cgroup")
PATIENCE = 120  # seconds: only ever reached when something is broken

ENDED = {"Finished", "Failed", "Cancelled", "Timeout", "Lost"}


class Ran:
    """What a command left: exit code and both streams."""

    def __init__(self, code, out, err):
        self.code = code
        self.out = out.decode(errors="surrogateescape")
        self.err = err.decode(errors="surrogateescape")

    def __repr__(self):
        return f"exit {self.code}\n--- stdout\n{self.out}--- stderr\n{self.err}"


class Machine:
    """One user's gflow: HOME, state, socket. `close()` leaves no process, no file and no control group."""

    def __init__(self, devices="sim:2xRTX3090", config=""):
        self.root = Path(tempfile.mkdtemp(prefix="gflow-"))
        self.home = self.root / "home"
        self.work = self.root / "work"
        self.devices = devices
        for directory in (self.home, self.work, self.root / "run"):
            directory.mkdir()
        keep = ("PATH", "LANG", "LC_ALL", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TZ")
        self.environment = {k: v for k, v in os.environ.items() if k in keep}
        self.environment |= {
            "HOME": str(self.home),
            "XDG_RUNTIME_DIR": str(self.root / "run"),
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "USER": "tester",
            "GFLOW_API__LISTEN": "",  # not the one port all would listen on
        }
        self.state = self.home / ".local/share/gflow"
        self.logs = self.state / "logs"
        self.socket = self.state / "run/gflowd.sock"
        if config:
            self.config(config)

    def config(self, text):
        path = self.home / ".config/gflow/gflow.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run(self, *command, input=None, cwd=None, env=None, shell=False):
        with subprocess.Popen(
            command[0] if shell else [str(part) if not isinstance(part, bytes) else part for part in command],
            shell=shell,
            executable="/bin/bash" if shell else None,
            stdin=subprocess.DEVNULL if input is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd or self.work,
            env=self.environment | (env or {}),
            process_group=0,
        ) as process:
            try:
                streams = process.communicate(input.encode() if isinstance(input, str) else input, timeout=PATIENCE)
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)  # a child that outlived it would keep the pipes open, and us here
                raise
        return Ran(process.returncode, *streams)

    def ok(self, *command, **more):
        ran = self.run(*command, **more)
        assert ran.code == 0, f"{command}: {ran}"
        return ran.out

    def up(self, *more):
        return self.ok("gflowd", "up", "--devices", self.devices, *more)

    def down(self):
        return self.ok("gflowd", "down")

    def bash(self, script, **more):
        """A piece of a document, typed into a shell."""
        return self.ok(script, shell=True, **more)

    def submit(self, *words, **more):
        out = self.ok("gbatch", *words, **more)
        found = re.fullmatch(r"Submitted batch job (\d+)\n", out)
        assert found, out
        return int(found.group(1))

    # -- the API over the socket, for what tests need to know exactly

    def get(self, target):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self.socket))
            connection.settimeout(PATIENCE)  # not before: connect() waits for its turn
            connection.sendall(f"GET {target} HTTP/1.1\r\nHost: gflow\r\nConnection: close\r\n\r\n".encode())
            answer = b""
            while chunk := connection.recv(65536):
                answer += chunk
        if not answer:
            raise ConnectionResetError("the daemon went away")
        head, body = answer.split(b"\r\n\r\n", 1)
        assert head.split()[1] == b"200", answer
        return json.loads(body)

    def job(self, job_id):
        return self.get(f"/api/v1/jobs/{job_id}")

    def until(self, job_id, wanted):
        """The job once `wanted(job)` is true, asked again whenever it changed."""
        while True:
            revision = self.get("/api/v1/jobs?limit=1")["revision"]
            job = self.job(job_id)
            if wanted(job):
                return job
            query = urllib.parse.urlencode({"revision": revision, "job": job_id})
            self.get(f"/api/v1/changes?{query}")

    def wait(self, *job_ids):
        return [self.until(job_id, lambda job: job["status"] in ENDED) for job_id in job_ids]

    def running(self, job_id):
        return self.until(job_id, lambda job: job["status"] == "Running" and job["pid"])

    def log(self, job_id):
        return (self.logs / f"{job_id}.log").read_text(errors="surrogateescape")

    def daemon_pid(self):
        return self.get("/api/v1/daemon")["pid"]

    def kill_daemon(self):
        """As the out-of-memory killer does."""
        kill(self.daemon_pid())

    def control_groups(self):
        """The directories in which gflowd makes those of its jobs: one in each tree."""
        try:
            attempts = (self.state / "attempts").stat()
        except OSError:
            return []
        name = f"gflow-{attempts.st_dev:x}-{attempts.st_ino:x}"
        own = {line.split(":", 2)[2].lstrip("/") for line in Path("/proc/self/cgroup").read_text().splitlines()}
        trees = [CONTROL_GROUPS, *CONTROL_GROUPS.iterdir()]
        return sorted({tree / path / name for tree in trees for path in own if (tree / path / name).is_dir()})

    def close(self):
        groups = self.control_groups()
        while left := processes_with(str(self.root)):
            for pid in left:
                try:
                    kill(pid)
                except ProcessLookupError:
                    pass
        for group in groups:
            remove_group(group)
        shutil.rmtree(self.root, ignore_errors=True)


def as_no_root(machine):
    """What runs a command as an account that is not root, whose the machine is from now on; and its name."""
    if os.geteuid() != 0:
        return [], pwd.getpwuid(os.geteuid()).pw_name
    account = pwd.getpwnam("daemon")
    if not all(folder.stat().st_mode & 0o001 for folder in (BIN, *BIN.parents)):
        # A checkout in a home that only its owner enters.
        programs = shutil.copytree(BIN, machine.root / "programs", symlinks=True)
        machine.environment["PATH"] = f"{programs}:{machine.environment['PATH']}"
    for path in (machine.root, *machine.root.rglob("*")):
        os.chown(path, account.pw_uid, account.pw_gid)
    return ["setpriv", "--reuid", account.pw_uid, "--regid", account.pw_gid, "--clear-groups"], account.pw_name


def kill(pid):
    """Kills with SIGKILL and returns once the process is gone, whoever's child it is."""
    descriptor = os.pidfd_open(pid)
    try:
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        assert select.select([descriptor], [], [], PATIENCE)[0], f"process {pid} does not die"
    finally:
        os.close(descriptor)


def remove_group(group):
    """Removes a control group and those in it, once the kernel lets go of the processes that have ended in them."""
    inner = [Path(directory) for directory, _, _ in os.walk(group, topdown=False)]
    deadline = time.monotonic() + PATIENCE
    while left := [directory for directory in inner if not removed(directory)]:
        for directory in left:
            for pid in members(directory):  # of a job, without the environment it was given
                try:
                    kill(pid)
                except ProcessLookupError:
                    pass
        assert time.monotonic() < deadline, f"something is left in {left}"
        os.sched_yield()


def members(group):
    try:
        return [int(pid) for pid in (group / "cgroup.procs").read_text().split()]
    except OSError:
        return []


def removed(directory):
    try:
        directory.rmdir()
    except FileNotFoundError:
        pass
    except OSError:
        return False
    return True


def processes_with(marker):
    """Processes whose environment or arguments name this machine's directory."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            text = (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if marker.encode() in text:
            found.append(int(entry.name))
    return found


def appears(directory, prefix, suffix=""):
    """Blocks until a file whose name begins and ends so was made in or moved into the directory; its path."""
    libc = ctypes.CDLL(None, use_errno=True)
    moved_to, create = 0x80, 0x100
    watch = libc.inotify_init1(os.O_CLOEXEC)
    try:
        assert libc.inotify_add_watch(watch, str(directory).encode(), moved_to | create) >= 0, os.strerror(ctypes.get_errno())
        while not (found := [path for path in Path(directory).iterdir() if path.name.startswith(prefix) and path.name.endswith(suffix)]):
            assert select.select([watch], [], [], PATIENCE)[0], f"no {prefix} in {directory}"
            os.read(watch, 65536)
        return min(found)
    finally:
        os.close(watch)


def stands(pid):
    """Whether every process of a job that was started as this one is stopped or frozen."""
    try:
        group = Path(f"/proc/{pid}/cgroup").read_text().splitlines()[-1].split(":", 2)[2]
    except OSError:
        return False
    for events in Path("/sys/fs/cgroup").glob(f"*{group}/cgroup.events"):
        if "frozen 1" in events.read_text():
            return True
    states = subprocess.run(["ps", "-o", "state=", "-s", str(pid)], stdout=subprocess.PIPE, text=True, check=False)
    return not set(states.stdout.split()) - set("TtZ")


class Gate:
    """A FIFO a job waits at: the job says it is there, the test lets it go on."""

    def __init__(self, machine, name="gate"):
        self.there = machine.work / f"{name}.there"
        self.go = machine.work / f"{name}.go"
        os.mkfifo(self.there)
        os.mkfifo(self.go)

    @property
    def command(self):
        """For the job's shell: tells that it got here and waits until it may go on."""
        return f"echo there > {self.there}; read line < {self.go}"

    def reached(self):
        """Blocks until the job opened its end, which one that ended before never does."""
        with open(self.there, opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK)) as there:
            assert select.select([there], [], [], PATIENCE)[0], f"the job did not come to {self.there}"
            os.set_blocking(there.fileno(), True)
            there.read()  # to its end: what is left would be found by the next that waits

    def open(self):
        # Both ends, so that it does not wait for who reads; what is written stays as long as one is open.
        self.opened = open(self.go, "r+b", buffering=0)
        self.opened.write(b"go\n")
