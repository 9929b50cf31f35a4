# SPDX-License-Identifier: Apache-2.0
"""What all queues are run with: processes, a clock, and a FIFO in which jobs are heard."""

import os
import select
import shutil
import signal
import subprocess
import time
from pathlib import Path

NULL = os.open("/dev/null", os.O_RDWR)
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gflow-bench"


def small_environment(root):
    """Who has a large one pays for it with every submission, to every queue."""
    return {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "USER": "bench", "SHELL": "/bin/sh", "HOME": str(root),
            "XDG_RUNTIME_DIR": str(root), "XDG_STATE_HOME": str(root), "XDG_DATA_HOME": str(root), "XDG_CONFIG_HOME": str(root / "c")}


def run(arguments, environment, out=NULL):
    """Starts a program as cheaply as Python can; the caller waits."""
    actions = [(os.POSIX_SPAWN_DUP2, NULL, 0), (os.POSIX_SPAWN_DUP2, out, 1), (os.POSIX_SPAWN_DUP2, NULL, 2)]
    return os.posix_spawn(shutil.which(arguments[0], path=environment["PATH"]), arguments, environment, file_actions=actions)


def wait(pid):
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status != 0:
        raise RuntimeError(f"a client ended with {status}")


def output(arguments, environment):
    return subprocess.run(arguments, env=environment, check=True, capture_output=True, timeout=300).stdout.decode()


def call(arguments, environment):
    """Whether it succeeded."""
    return subprocess.run(arguments, env=environment, check=False, capture_output=True, timeout=300).returncode == 0


def until(is_so, what, seconds=60):
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what}: not after {seconds} s")
        pause(0.05)


def pause(seconds):
    select.select([], [], [], seconds)


def is_alive(pid):
    """A zombie is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def kill9(pid):
    os.kill(pid, signal.SIGKILL)
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:
        until(lambda: not is_alive(pid), "the death of a daemon")


class Daemon:
    """A program that stays in front, its output in a file."""

    def __init__(self, arguments, environment, log):
        with open(log, "ab") as out:
            self.process = subprocess.Popen(arguments, env=environment, stdin=NULL, stdout=out, stderr=out)
        self.pid = self.process.pid

    def kill9(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.kill9()


class Ear:
    """A FIFO in which jobs say that they live."""

    def __init__(self, root):
        self.path = str(root / "ear")
        os.mkfifo(self.path)
        self.fd = os.open(self.path, os.O_RDWR | os.O_NONBLOCK)

    def next(self, patience=120):
        """What was said, and when."""
        if not select.select([self.fd], [], [], patience)[0]:
            raise RuntimeError("a job said nothing")
        return os.read(self.fd, 1), time.monotonic()

    def rest(self):
        """What was said and not heard yet."""
        return os.read(self.fd, 65536) if select.select([self.fd], [], [], 0)[0] else b""

    def close(self):
        os.close(self.fd)
