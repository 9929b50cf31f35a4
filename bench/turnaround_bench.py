#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long a person waits for gflow: submit, start, the next job after one ended; beside task-spooler
(Debian package task-spooler), the usual queue of one machine, in the same run. Prints ratios."""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = 100
CHAIN = 100


class Gflow:
    name = "gflow"

    def __init__(self, root):
        self.environment = os.environ | {"HOME": str(root), "XDG_RUNTIME_DIR": str(root)}
        subprocess.run(["gflowd", "up", "--devices", "sim:1xH100"], env=self.environment, check=True, stdout=subprocess.DEVNULL)

    def submit(self, *command):
        # One GPU, so that jobs run one after another as task-spooler's do.
        done = subprocess.run(["gbatch", "--gpus", "1", *command], env=self.environment, check=True, capture_output=True)
        return done.stdout.split()[-1].decode()

    def wait(self, job):
        subprocess.run(["gjob", "wait", job], env=self.environment, check=True, stdout=subprocess.DEVNULL)

    def close(self):
        subprocess.run(["gflowd", "down"], env=self.environment, check=True, stdout=subprocess.DEVNULL)


class TaskSpooler:
    name = "task-spooler"

    def __init__(self, root):
        self.environment = os.environ | {"TS_SOCKET": str(root / "ts.socket"), "TMPDIR": str(root)}

    def submit(self, *command):
        done = subprocess.run(["tsp", *command], env=self.environment, check=True, capture_output=True)
        return done.stdout.decode().strip()

    def wait(self, job):
        subprocess.run(["tsp", "-w", job], env=self.environment, check=False, stdout=subprocess.DEVNULL)

    def close(self):
        subprocess.run(["tsp", "-K"], env=self.environment, check=False)


def measure(make):
    root = Path(tempfile.mkdtemp(prefix="gflow-bench-"))
    queue = make(root)
    try:
        submit, start = [], []
        mark = root / "mark"
        for _ in range(ROUNDS):
            begin = time.time()
            job = queue.submit("sh", "-c", f"date +%s.%N > {mark}")
            submit.append(time.time() - begin)
            queue.wait(job)
            start.append(float(mark.read_text()) - begin)
        begin = time.time()
        for _ in range(CHAIN):
            job = queue.submit("true")
        queue.wait(job)
        return statistics.median(submit), statistics.median(start), (time.time() - begin) / CHAIN
    finally:
        queue.close()
        shutil.rmtree(root, ignore_errors=True)


def main():
    rows = [(Gflow.name, measure(Gflow))]
    if shutil.which("tsp"):
        rows.append((TaskSpooler.name, measure(TaskSpooler)))
    print(f"{'median, ms':14} {'submit':>10} {'submit to run':>14} {'per job, queued':>16}")
    for name, figures in rows:
        print(f"{name:14} " + " ".join(f"{1000 * value:>{width}.1f}" for value, width in zip(figures, (10, 14, 16))))
    if len(rows) == 2:
        ratios = [ours / theirs for ours, theirs in zip(rows[0][1], rows[1][1])]
        print(f"{'ratio':14} " + " ".join(f"{value:>{width}.2f}" for value, width in zip(ratios, (10, 14, 16))))
    else:
        print("task-spooler is not installed (apt install task-spooler): no peer to compare with")
    return 0


if __name__ == "__main__":
    sys.exit(main())
