#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python package: importing it, reading requests, choosing a node. Of the gflow that is installed for this Python, else of
one that is built of this tree (tests/python/wheels.py)."""

import resource
import statistics
import subprocess
import sys
import time
import timeit
from pathlib import Path

ROOT = Path(__file__).parents[1]
RUNS = 15
NODES = 1000


def the_package():
    try:
        import gflow._native  # noqa: F401
    except ImportError:
        sys.path[:0] = [str(ROOT / "tests/python"), str(ROOT / "tests/contract")]
        import wheels

        for name in [one for one in sys.modules if one.split(".")[0] == "gflow"]:
            del sys.modules[name]
        sys.path.insert(0, str(wheels.package()))
    import gflow

    return gflow


def seconds_to_import(what, path):
    """Processor time of a new interpreter, less that of one that imports nothing."""
    def run(script):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", script], env={"PYTHONPATH": path}, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    return statistics.median(run(f"import {what}") for _ in range(RUNS)) - statistics.median(run("pass") for _ in range(RUNS))


def per_second(call, number):
    """Of processor time."""
    return number / min(timeit.repeat(call, number=number, repeat=7, timer=time.process_time))


def main():
    gflow = the_package()
    home = str(Path(gflow.__file__).parents[1])
    for what in ("gflow", "gflow._native", "gflow.gpu_scheduler"):
        print(f"import {what:22} {1000 * seconds_to_import(what, home):6.1f} ms")
    parser = gflow.GPUResourceParser()
    for text in ("2", "8G,0.5", "2(V100)", "1(nvidia,V100)", "2(A100|H100),40G"):
        print(f"parse_gpu_resource({text!r}) {per_second(lambda: parser.parse_gpu_resource(text), 20_000):12,.0f} /s")

    class Cluster:
        nodes = [{"name": f"n{i}", "labels": {"gpu-type": "V100"}, "gpu_info": {"nvidia": {"allocatable": 8}},
                  "cpu_allocatable": 64.0, "memory_allocatable": 512.0} for i in range(NODES)]
        pods = [{"node_name": f"n{i}", "gpu_resources": {"nvidia.com/gpu": i % 8}} for i in range(NODES)]

        def get_nodes(self):
            return self.nodes

        def get_pods(self):
            return self.pods

    scheduler = gflow.GPUScheduler(Cluster(), parser, gflow.GPUMemoryGuard(Cluster(), parser))
    request = gflow.SchedulingRequest("pod", "default", "2(V100)", 32.0)
    assert scheduler.schedule_pod(request)
    print(f"schedule_pod over {NODES} nodes, 8 GPUs each: {1000 / per_second(lambda: scheduler.schedule_pod(request), 1):.1f} ms")


if __name__ == "__main__":
    main()
