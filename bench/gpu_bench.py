#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What jobs that share a GPU get of it: a private gflowd, real jobs, and kernels counted. Each figure stands beside what it
should be, and shares beside the same program with the whole GPU in the same run.

    bench/gpu_bench.py             the first NVIDIA GPU of this machine, which nobody else should use meanwhile
    bench/gpu_bench.py --simulated the driver of tests/fake_cuda: that the benchmark itself works
    --seconds N                    length of each measurement (10)"""

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "e2e"))

from fake_gpu import BIN, GIB, Gpus  # noqa: E402
from machine import Machine  # noqa: E402

LOAD = BIN.parent / "bench/gpu_load"
MEMORY = "2G"
KERNEL = 1000  # microseconds


class Bench:
    def __init__(self, machine, seconds):
        self.machine, self.seconds, self.rounds, self.whole = machine, seconds, 0, 0

    def jobs(self, *requests_and_words):
        """Each in a job of its own, all at once: the numbers it printed."""
        jobs = []
        begins = round((time.time() + 3) * 1000)
        for request, *words in requests_and_words:
            command, *rest = [begins if word == "FROM" else word for word in words]
            jobs.append(self.machine.submit("--gpus", request, LOAD, command, *rest))
        for job, ended in zip(jobs, self.machine.wait(*jobs), strict=True):
            if ended["status"] != "Finished":
                sys.exit(f"gpu_bench: job {job}: {ended['status']}\n{self.machine.log(job)}")
        return [[float(word) for word in self.machine.log(job).split()] for job in jobs]

    def busy(self, *shares, kernel=KERNEL, at_once=16, pauses=None):
        """Of what the whole GPU does, what jobs with these shares do."""
        pauses = pauses or [0] * len(shares)
        done = self.jobs(*(
            (share if share == "1" else f"{MEMORY},{share}", "busy", self.rounds, "FROM", self.seconds, kernel,
             at_once if pause == 0 else 1, pause)
            for share, pause in zip(shares, pauses, strict=True)
        ))
        return [count * kernel / 1e6 / self.seconds for (count,) in done]

    def begin(self):
        (calibrated,), = self.jobs(("1", "calibrate"))
        self.rounds = max(1, round(calibrated))
        (self.whole,) = self.busy("1")
        print(f"whole GPU: kernels of {KERNEL} us, {self.whole:.3f} of the time\n")

    def shares(self):
        print(f"{'shares':28}{'kernels of':>12}{'expected':>22}{'got':>22}")
        for shares, expected in (
            (["0.5"], [0.5]),
            (["0.1"], [0.1]),
            (["0.7", "0.3"], [0.7, 0.3]),
            (["0.9", "0.1"], [0.9, 0.1]),
            (["0.1..1"], [1]),
            (["0.3..1", "0.1..1"], [0.75, 0.25]),
            (["0.3..0.5", "0.1..1"], [0.5, 0.5]),
            (["0.4", "0.3", "0.2"], [0.4, 0.3, 0.2]),
        ):
            for kernel in (20, KERNEL, 20_000):
                got = self.busy(*shares, kernel=kernel, at_once=16 if kernel <= KERNEL else 2)
                parts = " ".join(f"{part / self.whole:.3f}" for part in got)
                print(f"{' + '.join(shares):28}{f'{kernel} us':>12}{' '.join(map(str, expected)):>22}{parts:>22}")

    def gaps(self):
        print("\na job of 0.9..1 that computes for 200 us after each kernel of 1 ms, beside one of 0.1..1 that does not:")
        alone, = self.busy("0.9..1", pauses=[200])
        beside, greedy = self.busy("0.9..1", "0.1..1", pauses=[200, 0])
        print(f"{beside / alone:.3f} of what it does alone; the other one {greedy / self.whole:.3f}")

    def latency(self):
        print("\na kernel of 100 us every 50 ms, launch to end, median and 99th percentile in us:")
        words = ("latency", self.rounds, "FROM", self.seconds, 100, 50_000)
        greedy = (f"{MEMORY},0.1..1", "busy", self.rounds, "FROM", self.seconds, KERNEL, 16, 0)
        for name, asked in (("whole GPU", [("1", *words)]), ("0.5, alone", [(f"{MEMORY},0.5", *words)]),
                            ("0.5, beside 0.1..1 that is busy", [(f"{MEMORY},0.5", *words), greedy])):
            median, worst = self.jobs(*asked)[0]
            print(f"{name:34}{median:10.0f}{worst:10.0f}")

    def memory(self):
        (given, total), = self.jobs((f"{MEMORY},0.5", "memory"))
        print(f"\nmemory, of a job with {MEMORY}: {given / GIB:.2f} GiB given, the GPU said to be {total / GIB:.2f} GiB")


def main():
    asks = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asks.add_argument("--simulated", action="store_true")
    asks.add_argument("--seconds", type=int, default=10)
    options = asks.parse_args()
    machine = Machine("nvml")
    try:
        if options.simulated:
            fake = Gpus(machine.work).environment
            machine.environment |= {name: fake[name] for name in ("GFLOW_FAKE_CUDA", "LD_LIBRARY_PATH")}
        machine.up()
        devices = machine.get("/api/v1/devices")["devices"]
        if not devices:
            print("gpu_bench: there is no NVIDIA GPU here: skipped (--simulated tries the benchmark itself)")
            return
        print(f"{devices[0].get('model', 'GPU')}, {options.seconds} s each")
        bench = Bench(machine, options.seconds)
        bench.begin()
        bench.shares()
        bench.gaps()
        bench.latency()
        bench.memory()
    finally:
        machine.close()


main()
