# SPDX-License-Identifier: Apache-2.0
"""pueue, a queue of shell commands in Rust, from its crate: one daemon a user, its state in a file."""

import json
import os
from pathlib import Path

from .processes import CACHE, call, kill9, output, run, small_environment, until, wait

FOLDER = CACHE / "pueue" / "bin"
NOT_ENDED = ("Queued", "Stashed", "Running", "Paused", "Locked")


class Pueue:
    name = "pueue"
    missing = None if (FOLDER / "pueued").exists() else "not installed (bench/peers/install.sh)"

    def __init__(self, root):
        self.environment = small_environment(root) | {"PATH": f"{FOLDER}:{os.environ['PATH']}"}
        self.root = root
        self.start()

    def start(self):
        for left in self.root.rglob("pueue*.socket"):
            left.unlink()
        wait(run(["pueued", "--daemonize"], self.environment))  # it keeps what it was started with open
        until(lambda: call(["pueue", "status"], self.environment), "an answer of pueued", 30)

    def kill9(self):
        kill9(int(next(self.root.rglob("pueue.pid")).read_text()))

    def slots(self, count):
        wait(run(["pueue", "parallel", str(count)], self.environment))

    def submit(self, command, gpus=1):
        return ["pueue", "add", "--", command]

    def held(self):
        return ["pueue", "add", "--stashed", "--", "true"]

    def known(self):
        tasks = json.loads(output(["pueue", "status", "--json"], self.environment))["tasks"].values()
        return sum(any(state in NOT_ENDED for state in (task["status"] if isinstance(task["status"], dict) else [task["status"]]))
                   for task in tasks)

    def chain(self, count, command):
        self.slots(1)
        for _ in range(count):
            wait(run(self.submit(command), self.environment))

    def many(self, count):
        self.slots(8)
        for _ in range(count):
            wait(run(self.submit("true"), self.environment))
        wait(run(["pueue", "wait", "--quiet"], self.environment))

    def close(self):
        call(["pueue", "kill", "--all"], self.environment)
        call(["pueue", "shutdown"], self.environment)
        until(lambda: not any(is_daemon_of(pid, self.root) for pid in os.listdir("/proc") if pid.isdigit()), "the end of pueued", 10)


def is_daemon_of(pid, root):
    try:
        return (Path(f"/proc/{pid}/comm").read_text().strip() == "pueued"
                and f"HOME={root}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"))
    except OSError:
        return False
