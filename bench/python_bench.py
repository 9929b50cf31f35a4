#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python package: importing it, reading requests, choosing a node, submitting functions. Of the gflow that is installed for this
Python, else of one that is built of this tree (tests/python/wheels.py).

The floor of `map` is its own request, as bytes that were made before, over a bare socket until it is answered: what is gflowd's of it."""

import os
import resource
import secrets
import socket
import statistics
import subprocess
import sys
import time
import timeit
from pathlib import Path

ROOT = Path(__file__).parents[1]
RUNS = 15
NODES = 1000
CALLS = 10_000
MAPS = 7


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


class Maps:
    """Functions as jobs of a private gflowd, all of whose GPUs another job has."""

    def __init__(self, gflow):
        sys.path.insert(0, str(ROOT / "tests/e2e"))
        from machine import Machine

        self.machine = Machine("sim:2xV100")
        os.environ.update(HOME=str(self.machine.home))
        os.environ.pop("XDG_DATA_HOME", None)
        self.machine.up()
        self.client = gflow.Client(f"unix:{self.machine.socket}")
        self.client.submit("sleep 100000", gpus=2)
        self._asked = []
        take = self.client._driver._exchange
        self.client._driver._exchange = lambda ask: (self._asked.append(ask), take(ask))[1]

    def map(self):
        """Seconds until CALLS jobs are submitted, and the request."""
        self._asked.clear()
        begin = time.perf_counter()
        results = self.client.map(abs, range(CALLS), gpus=1)
        took = time.perf_counter() - begin
        self.client.cancel(*results.jobs)
        results.close()
        return took, max((ask.encoded("gflow", "") for ask in self._asked), key=len)

    def floor(self, request):
        """Seconds until gflowd has answered it, by a key of its own."""
        head, body = request.split(b"\r\n\r\n", 1)
        lines = [line for line in head.split(b"\r\n") if not line.lower().startswith((b"idempotency-key", b"connection"))]
        lines += [f"Idempotency-Key: {secrets.token_hex(8)}".encode(), b"Connection: close"]
        request = b"\r\n".join([*lines, b"", body])
        with socket.socket(socket.AF_UNIX) as bare:
            bare.connect(str(self.machine.socket))
            begin = time.perf_counter()
            bare.sendall(request)
            pieces = []
            while piece := bare.recv(1 << 20):
                pieces.append(piece)
            took = time.perf_counter() - begin
        answer = b"".join(pieces)
        assert b" 201 " in answer.split(b"\r\n", 1)[0] and answer.count(b'"id"') == CALLS, answer[:1000]
        self.client.cancel(*[job["id"] for job in self.client.jobs(state="Queued", fields=["id"])])
        return took

    def close(self):
        self.client.close()
        self.machine.close()


def submissions(gflow):
    maps = Maps(gflow)
    try:
        _, request = maps.map()
        took, floors = zip(*[(maps.map()[0], maps.floor(request)) for _ in range(MAPS)])
    finally:
        maps.close()
    median, floor = statistics.median(took), statistics.median(floors)
    print(f"map of {CALLS:,} calls: {median:.2f} s ({min(took):.2f} to {max(took):.2f}), floor {floor:.2f} s, ratio {median / floor:.2f}; "
          f"the request is {len(request) / 1e6:.1f} MB")


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
    submissions(gflow)


if __name__ == "__main__":
    main()
