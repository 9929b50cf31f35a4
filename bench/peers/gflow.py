# SPDX-License-Identifier: Apache-2.0
"""gflow itself, with everything on, and without control groups."""

import json
import subprocess
from pathlib import Path

from .processes import call, kill9, output, pause, run, small_environment, wait


class Gflow:
    name = "gflow"
    missing = None
    groups = "true"

    def __init__(self, root):
        self.root = root
        self.environment = small_environment(root) | {"GFLOW_RUNNER__CGROUPS": self.groups, "GFLOW_API__LISTEN": ""}
        self.start()

    def start(self):
        output(["gflowd", "up", "--devices", "sim:8xH100"], self.environment)
        self.ask_status()

    def ask_status(self):
        self.status = json.loads(output(["gflowd", "status", "--json"], self.environment))
        self.pid = self.status["pid"]

    def socket(self):
        return self.status["socket"]

    def kill9(self):
        kill9(self.pid)

    def submit(self, command, gpus=1):
        return ["gbatch", "--gpus", str(gpus), "sh", "-c", command]

    def held(self):
        return ["gbatch", "--hold", "--gpus", "1", "true"]

    def known(self):
        """Jobs it has that have not ended."""
        return len(output(["gqueue", "--noheader", "-f", "JOBID", "-n", "0"], self.environment).split())

    def array(self, count, command, gpus=1, hold=False):
        return ["gbatch", *(["--hold"] if hold else []), "--gpus", str(gpus), "--array", f"1-{count}", *command]

    def chain(self, count, command):
        """`count` jobs, one at a time."""
        wait(run(self.array(count, ["sh", "-c", command], gpus=8), self.environment))

    def many(self, count):
        """That many jobs of `true`, on 8 GPUs; returns when all have ended."""
        first = int(output(self.array(count, ["true"]), self.environment).splitlines()[0].split()[-1].split("-")[0])
        self.wait(first, count)

    def wait(self, first, count):
        """For all of them; who watches each as it ends takes part of what is measured."""
        for which in (f"{first + count - 1}", f"{first}-{first + count - 1}"):
            output(["gjob", "wait", which], self.environment)

    def processor(self):
        """Seconds of processor time of the daemon."""
        return int(Path(f"/proc/{self.pid}/schedstat").read_text().split()[0]) / 1e9

    def memory(self):
        line = [line for line in Path(f"/proc/{self.pid}/smaps_rollup").read_text().splitlines() if line.startswith("Pss:")][0]
        return int(line.split()[1])

    def close(self):
        # Jobs outlive the daemon: what is left of them here would be left for ever.
        call(["gcancel", "--me"], self.environment)
        while output(["gqueue", "-s", "R,CG", "--noheader", "-n", "1"], self.environment).strip():
            pause(0.2)
        subprocess.run(["gflowd", "down"], env=self.environment, check=True, stdout=subprocess.DEVNULL)


class GflowWithoutGroups(Gflow):
    name = "gflow, no cgroups"
    groups = "false"
