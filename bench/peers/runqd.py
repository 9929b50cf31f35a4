# SPDX-License-Identifier: Apache-2.0
"""runqd: the gflow written in Rust, from PyPI. Jobs run in sessions of tmux."""

import os
from pathlib import Path

from .processes import CACHE, call, kill9, output, small_environment, until

FOLDER = CACHE / "runqd" / "bin"


class Runqd:
    name = "runqd"
    missing = None if (FOLDER / "gflowd").exists() else "not installed (bench/peers/install.sh)"

    def __init__(self, root):
        self.environment = small_environment(root) | {"PATH": f"{FOLDER}:{os.environ['PATH']}", "TMUX_TMPDIR": str(root)}
        self.root = root
        self.start()

    def start(self):
        call(["tmux", "kill-session", "-t", "gflow_server"], self.environment)  # what a killed one leaves; jobs have their own
        call(["gflowd", "up"], self.environment)
        until(lambda: call(["gqueue"], self.environment), "an answer of runqd", 30)

    def kill9(self):
        for pid in filter(str.isdigit, (path.name for path in Path("/proc").iterdir())):
            if self.is_daemon(pid):
                return kill9(int(pid))
        raise RuntimeError("no daemon of runqd is there")

    def is_daemon(self, pid):
        try:
            ours = f"HOME={self.root}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            return ours and b"gflowd" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[1:]
        except OSError:
            return False

    def submit(self, command, gpus=0):
        return ["gbatch", "sh", "-c", command]

    def held(self):
        return ["gbatch", "--begin", "now+1d", "true"]

    def known(self):
        """Those that wait or run: what it lists if nothing else is asked for."""
        return sum(word.isdigit() for word in output(["gqueue", "-f", "JOBID", "-n", "0"], self.environment).split())

    def close(self):
        call(["gflowd", "down"], self.environment)
        call(["tmux", "kill-server"], self.environment)
