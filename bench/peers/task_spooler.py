# SPDX-License-Identifier: Apache-2.0
"""task-spooler, the usual queue of one machine: in memory, by the first client that comes."""

import shutil
from pathlib import Path

from .processes import call, kill9, output, run, small_environment, wait


class TaskSpooler:
    name = "task-spooler"
    missing = None if shutil.which("tsp") else "not installed (bench/peers/install.sh)"

    def __init__(self, root):
        self.environment = small_environment(root) | {"TS_SOCKET": str(root / "ts.socket"), "TMPDIR": str(root), "TS_MAXFINISHED": "20000"}

    def start(self):
        Path(self.environment["TS_SOCKET"]).unlink(missing_ok=True)  # the next client starts another

    def kill9(self):
        socket = self.environment["TS_SOCKET"]
        for pid in filter(str.isdigit, (path.name for path in Path("/proc").iterdir())):
            if is_server(pid, socket):
                return kill9(int(pid))
        raise RuntimeError("no server of task-spooler is there")

    def slots(self, count):
        wait(run(["tsp", "-S", str(count)], self.environment))

    def submit(self, command, gpus=1):
        return ["tsp", "-n", "sh", "-c", command]

    def held(self):
        """It has none: what is behind jobs that run waits."""
        return ["tsp", "-n", "true"]

    def known(self):
        return sum(line.split()[1] in ("queued", "running") for line in output(["tsp", "-l"], self.environment).splitlines()[1:])

    def chain(self, count, command):
        self.slots(1)
        for _ in range(count):
            wait(run(self.submit(command), self.environment))

    def many(self, count):
        self.slots(8)
        for _ in range(count):
            wait(run(self.submit("true"), self.environment))
        wait(run(["tsp", "-w"], self.environment))

    def close(self):
        call(["tsp", "-K"], self.environment)


def is_server(pid, socket):
    """The server is a client that stayed: its parent is gone, its socket is in its environment."""
    try:
        ours = f"TS_SOCKET={socket}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        return ours and Path(f"/proc/{pid}/comm").read_text().strip() == "tsp" and Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1] == "1"
    except OSError:
        return False
