#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What sharing is on the first NVIDIA GPU of this machine, which nobody else should use meanwhile: programs of PyTorch, JAX
and CuPy as they are, as jobs of a private gflowd, each beside the same program with the whole GPU in the same run.

    bench/sharing_bench.py                    all of it, about eight minutes
    bench/sharing_bench.py --row pairs        these only: --row may be given again
    --seconds N                               length of each measurement (2)
    --limits L,L                              of a share, one after another (1,0.1,0.5,0.9)

A row that fails says so and the next one runs. Programs are run by the same python and need what sharing_load.py imports."""

import argparse
import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "e2e"))

from machine import BIN, ENDED, Machine  # noqa: E402

LOAD = BIN.parent / "bench/gpu_load"
PROGRAM = Path(__file__).with_name("sharing_load.py")
GIB = 1 << 30
MEMORY = "16G"
TURNS = ("--shared", "--gpu-memory", MEMORY)  # held to memory, and to no share of the time
UNHELD = ("env", "-u", "LD_PRELOAD")  # as if gflow only placed it
ROWS = {}


def row(function):
    ROWS[function.__name__] = function
    return function


class Bench:
    def __init__(self, machine, seconds, limits):
        self.machine, self.seconds, self.limits = machine, seconds, limits

    def submit(self, request, *words, environment=(), more=()):
        exported = ",".join(["ALL", f"BENCH_MEMORY={MEMORY}", *(f"{name}={value}" for name, value in environment)])
        return self.machine.submit("--gpus", request, *more, "--export", exported, *words)

    def end(self, job):
        (ended,) = self.machine.wait(job)
        log = self.machine.log(job)
        if ended["status"] != "Finished":
            raise RuntimeError(f"job {job}: {ended['status']}\n{log[-3000:]}")
        said = [line for line in log.splitlines() if line.startswith("gflow:")]
        if said:
            print(f"    said: {said}")
        return log

    def program(self, request, *words, **more):
        """The objects it printed."""
        return self.objects(self.end(self.submit(request, sys.executable, PROGRAM, *words, **more)))

    @staticmethod
    def objects(log):
        return [json.loads(line) for line in log.splitlines() if line.startswith("{")]

    def holder(self, request, folder, gib, more=()):
        """A job below bash that holds memory until the file `go` is in the folder: the job and the pid, once it has it."""
        script = f"{sys.executable} {PROGRAM} hold {folder} {gib}; exit $?"
        job = self.submit(request, "bash", "-c", script, more=more)
        while not (folder / "pid").exists():
            if self.machine.job(job)["status"] in ENDED:
                self.end(job)
            time.sleep(0.05)
        return job, int((folder / "pid").read_text())

    @contextlib.contextmanager
    def folder(self):
        with tempfile.TemporaryDirectory(dir=self.machine.root) as folder:
            yield Path(folder)


class Outside:
    """The most memory of the GPU that was in use, by the driver, not by what programs are told."""

    def __enter__(self):
        import pynvml

        pynvml.nvmlInit()
        gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
        self.used = lambda: pynvml.nvmlDeviceGetMemoryInfo(gpu).used
        self.before, self.most, self.over = self.used(), 0, threading.Event()
        self.thread = threading.Thread(target=self.look)
        self.thread.start()
        return self

    def look(self):
        while not self.over.wait(0.01):
            self.most = max(self.most, self.used())

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    @property
    def gib(self):
        return (self.most - self.before) / GIB


@row
def smoke(bench):
    for request in ("1", "8G,0.5"):
        (facts,) = bench.program(request, "smoke")
        print(f"    {request:8} {facts}")


@row
def launches(bench):
    for request, more in (("1", ()), ("1", TURNS), ("8G,0.1..1", ()), ("8G,0.5", ())):
        took = [float(bench.end(bench.submit(request, LOAD, "launches", more=more))) for _ in range(3)]
        print(f"    a launch, {' '.join((request, *more[:1])):16} {sorted(took)} ns")


@row
def starts(bench):
    """From fork to the end of a program that makes a context and computes for some milliseconds, with a share for longer."""
    for request, more in (("1", ()), ("1", TURNS), ("8G,0.5", ())):
        took = []
        for _ in range(5):
            job = bench.submit(request, "bash", "-c", f"exec 3>&1; TIMEFORMAT=%R; time {LOAD} calibrate 2>&1 >&3", more=more)
            took.append(float(bench.end(job).split()[-1]))
        print(f"    a start, {' '.join((request, *more[:1])):16} {sorted(took)} s")


@row
def memory(bench):
    for how in ("", "expandable_segments:True", "backend:cudaMallocAsync"):
        with Outside() as outside:
            environment = [("PYTORCH_CUDA_ALLOC_CONF", how)] if how else []
            (facts,) = bench.program("8G,0.5", "memory", environment=environment)
        print(f"    {how or 'as it comes'}: most in use, outside: {outside.gib:.2f} GiB; {facts}")


@row
def graph_memory(bench):
    with Outside() as outside:
        (facts,) = bench.program("8G,0.5", "graph_memory")
    print(f"    {facts}; most in use, outside: {outside.gib:.2f} GiB")


@row
def two(bench):
    """Two processes of one job, each asking for 5 of 8 GiB; one is killed, and a third asks."""
    (facts,) = bench.program("8G,0.5", "one_of_two", "5")
    print(f"    {facts}")


@row
def frameworks(bench):
    for name in ("jax", "cupy"):
        (facts,) = bench.program("8G,0.5", name)
        print(f"    {name}: {facts}")


@row
def captures(bench):
    for request in ("1", "8G,0.3"):
        print(f"    {request:8} {bench.program(request, 'captures')}")


def rates_of(bench, *names):
    """Of the whole GPU's rate, under each limit."""
    whole = {each["workload"]: each["rate"] for each in bench.program("1", "rates", bench.seconds, "-", *names)}
    got = bench.program(f"{MEMORY},0.1..1", "rates", bench.seconds, bench.limits, *names)
    print(f"    | {'workload':20} | {'whole, per s':>12} |" + "".join(f"{limit:>7} |" for limit in bench.limits.split(",")))
    for name, rate in whole.items():
        parts = {each["limit"]: each["rate"] / rate for each in got if each["workload"] == name}
        print(f"    | {name:20} | {rate:12.2f} |" + "".join(f"{parts[limit]:7.3f} |" for limit in bench.limits.split(",")))


@row
def exact(bench):
    """Kernels that take as long whatever power there is: the share of the rate is that of the time."""
    rates_of(bench, "spin, 20 us", "spin, 1 ms", "spin, 50 ms", "spin, graph of 5 ms")


@row
def rates(bench):
    """Programs: one that is held back by power does more in its share of the time than in the whole of it."""
    rates_of(bench)


@row
def compiled(bench):
    rates_of(bench, "torch.compile")


@row
def unlimited(bench):
    """Held to its memory and to no share of the time, and a share up to all of it: what is lost."""
    names = ("kernels of 3 us", "training, small", "graph, 2 ms")
    for request, more in (("1", ()), ("1", TURNS), (f"{MEMORY},0.1..1", ())):
        got = bench.program(request, "rates", bench.seconds, "-", *names, more=more)
        print(f"    {' '.join((request, *more[:1])):16} " + ", ".join(f"{each['workload']}: {each['rate']:.2f}" for each in got))


@row
def pairs(bench):
    """Each of the rate that it has alone, on the whole GPU."""
    name, product = "spin, 1 ms", "product, 1.4 ms"

    def together(shares, names, before=()):
        with bench.folder() as folder:
            jobs = [
                bench.submit(share, *before, sys.executable, PROGRAM, "pair", folder, len(shares), bench.seconds, its)
                for share, its in zip(shares, names, strict=True)
            ]
            return [bench.objects(bench.end(job))[0]["rate"] for job in jobs]

    alone = {its: together(["1"], [its])[0] for its in (name, product, "kernels of 3 us", "spin, 50 ms")}
    for shares, names in (
        (["8G,0.7", "8G,0.3"], [name, name]),
        (["8G,0.5", "8G,0.5"], [name, name]),
        (["8G,0.9", "8G,0.1"], [name, name]),
        (["8G,0.7", "8G,0.3"], ["kernels of 3 us", name]),
        (["8G,0.7", "8G,0.3"], [name, "spin, 50 ms"]),
        (["8G,0.7", "8G,0.3"], [product, product]),
        (["8G,0.6", "8G,0.3", "8G,0.1"], [name, name, name]),
        (["8G,0.3..1", "8G,0.1..1"], [name, name]),
    ):
        got = together(shares, names)
        parts = " ".join(f"{rate / alone[its]:.3f}" for rate, its in zip(got, names))
        print(f"    {' + '.join(shares):30} {' + '.join(names):40} {parts}")
    got = together(["8G,0.7", "8G,0.3"], [product, product], UNHELD)
    print(f"    not held, {product}: {' '.join(f'{rate / alone[product]:.3f}' for rate in got)}")


@row
def gangs(bench):
    """Jobs with parts of the first two GPUs, a process for each with an all-reduce (NCCL) in each step, beside each other and
    beside jobs on one of them: each of the rate that it has alone with the whole of both, or of one."""
    if len(bench.machine.get("/api/v1/devices")["devices"]) < 2:
        print("    there is one GPU here: skipped")
        return
    both, one, single = "gang", "pair", "spin, 1 ms"

    def together(*jobs):
        with bench.folder() as folder:
            made = []
            for request, kind in jobs:
                words = (single,) if kind == one else ()
                made.append(bench.submit(request, sys.executable, PROGRAM, kind, folder, len(jobs), bench.seconds, *words))
            return [bench.objects(bench.end(job))[0]["rate"] for job in made]

    alone = {both: together(("2", both))[0], one: together(("1", one))[0]}
    for jobs in (
        ((f"{MEMORY},2x0.5", both),),
        ((f"{MEMORY},2x0.7", both), (f"{MEMORY},2x0.3", both)),
        ((f"{MEMORY},2x0.6", both), (f"{MEMORY},0.4", one)),
        ((f"{MEMORY},2x0.5", both), (f"{MEMORY},0.5", one), (f"{MEMORY},0.5", one)),
    ):
        got = together(*jobs)
        parts = " ".join(f"{rate / alone[kind]:.3f}" for rate, (_, kind) in zip(got, jobs, strict=True))
        print(f"    {' + '.join(request for request, _ in jobs):40} {parts}")


@row
def urgency(bench):
    """An inference every 50 ms, milliseconds: alone, and beside products that never end."""

    def beside(*requests, before=()):
        with bench.folder() as folder:
            words = (*before, sys.executable, PROGRAM)
            others = ("pair", folder, len(requests), bench.seconds, "product, 1.4 ms")
            jobs = [bench.submit(requests[0], *words, "latency", *others[1:4])]
            jobs += [bench.submit(request, *words, *others) for request in requests[1:]]
            return [bench.objects(bench.end(job)) for job in jobs][0][0]

    print(f"    whole GPU: {beside('1')}")
    print(f"    0.5, alone: {beside('8G,0.5')}")
    print(f"    0.5 beside 0.1..1: {beside('8G,0.5', '8G,0.1..1')}")
    print(f"    not held: {beside('8G,0.5', '8G,0.1..1', before=UNHELD)}")


@row
def many(bench):
    """Thirty-two processes at once, each with a hundredth."""
    begin = time.monotonic()
    jobs = [bench.submit("2G,0.01", LOAD, "memory") for _ in range(32)]
    got = sorted(bench.end(job).strip() for job in jobs)
    print(f"    {time.monotonic() - begin:.1f} s; {got[0]} .. {got[-1]}")


@row
def mps(bench):
    """What the driver's own service gives, which gflow does not set up."""
    with bench.folder() as folder:
        here = [("CUDA_MPS_PIPE_DIRECTORY", folder), ("CUDA_MPS_LOG_DIRECTORY", folder)]
        service = {**os.environ, **{name: str(value) for name, value in here}}
        subprocess.run(["nvidia-cuda-mps-control", "-d"], env=service, check=True)
        try:
            for percent in (100, 50, 25):
                limit = [("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", percent), ("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=8G")]
                got = bench.program("1", "rates", bench.seconds, "-", "product, 1.4 ms", "bandwidth, 0.5 ms", "spin, 1 ms",
                                    environment=here + limit)
                print(f"    {percent} % of the threads: {got}")
            print(f"    pinned limit 8G: {bench.program('1', 'smoke', environment=here + limit)}")
        finally:
            subprocess.run(["nvidia-cuda-mps-control"], input="quit\n", text=True, env=service, check=True)


@row
def calls(bench):
    """Nanoseconds of the driver's calls that a gated launch makes."""
    print("    " + bench.end(bench.submit("1", LOAD, "calls")).replace("\n", "\n    "))


@row
def tools(bench):
    for tool in ("compute-sanitizer", "ncu --target-processes all"):
        job = bench.submit("8G,0.5", "bash", "-c", f"{tool} {LOAD} memory 2>&1 | tail -n 4")
        print(f"    {tool}: {bench.end(job).strip()}")


COUNT = (
    "import ctypes; cuda = ctypes.CDLL('libcuda.so.1'); n = ctypes.c_int(-1); "
    "print('cuInit', cuda.cuInit(0), 'count', cuda.cuDeviceGetCount(ctypes.byref(n)), n.value)"
)


@row
def isolation(bench):
    """What a job without a GPU and one with it can open, though it takes the variables away; and what a launch costs more."""
    tell = f'echo "visible $CUDA_VISIBLE_DEVICES"; unset CUDA_VISIBLE_DEVICES; nvidia-smi -L; {sys.executable} -c "{COUNT}"'
    for by in ("none", "filter", "landlock"):
        machine = Machine("nvml", config=f'[runner]\ngpu_isolation = "{by}"\n')
        try:
            machine.up()
            for words in ((), ("--gpus", "1")):
                job = machine.submit(*words, "bash", "-c", tell)
                machine.wait(job)
                print(f"    {by:9} {' '.join(words) or 'no GPU':8} {machine.log(job).strip().splitlines()}")
            begin = time.monotonic()
            machine.wait(*[machine.submit("true") for _ in range(20)])
            print(f"    {by:9} 20 jobs, one after another, in {time.monotonic() - begin:.2f} s")
        finally:
            machine.close()


class Checkpoint:
    """The driver's calls that take a process off the GPU, by another process, one at a time."""

    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")
        self.library.cuInit(0)

    def call(self, name, pid):
        begin = time.monotonic()
        code = getattr(self.library, f"cuCheckpointProcess{name}")(pid, None)
        return f"{name} {code} in {time.monotonic() - begin:.3f} s"

    def state(self, pid):
        state = ctypes.c_int(-1)
        code = self.library.cuCheckpointProcessGetState(pid, ctypes.byref(state))
        return f"state {state.value} ({code})"


@row
def checkpoint(bench):
    its = Checkpoint()
    for request, gib in (("1", 2), (f"{MEMORY},0.5", 6)):
        with bench.folder() as folder, Outside() as outside:
            job, pid = bench.holder(request, folder, gib)
            steps = [f"{outside.used() / GIB:.2f} GiB", its.state(pid), its.call("Lock", pid), its.state(pid),
                     its.call("Checkpoint", pid), its.state(pid), f"{outside.used() / GIB:.2f} GiB"]
            subprocess.run(["kill", "-STOP", str(pid)], check=True)
            time.sleep(0.2)
            subprocess.run(["kill", "-CONT", str(pid)], check=True)
            steps += [its.call("Restore", pid), its.state(pid), its.call("Unlock", pid), its.state(pid),
                      f"{outside.used() / GIB:.2f} GiB"]
            (folder / "go").touch()
            print(f"    {request}, {gib} GiB: {'; '.join(steps)}; {bench.objects(bench.end(job))}")


class Parked:
    """What gflow-park does to the job of a process, whose bash does not use the GPU."""

    def __init__(self, bench, job):
        first = bench.machine.job(job)["pid"]
        self.supervisor = self.stat(first)[1]
        self.start_time = self.stat(self.supervisor)[19]

    @staticmethod
    def stat(pid):
        """Fields of /proc/PID/stat, from the third on."""
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()

    def ask(self, verb, *options):
        begin = time.monotonic()
        words = [BIN / "gflow-park", verb, self.supervisor, self.start_time, "120", *options]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        said = (done.stdout + done.stderr).strip()
        return done.returncode, f"{verb} {done.returncode} in {time.monotonic() - begin:.3f} s: {said}", said


@row
def park(bench):
    """By gflow-park: asked twice, stopped meanwhile, and asked for more room than there is before it has its own."""
    for request, gib in (("1", 2), (f"{MEMORY},0.5", 6)):
        with bench.folder() as folder, Outside() as outside:
            job, pid = bench.holder(request, folder, gib)
            its, steps = Parked(bench, job), [f"{outside.used() / GIB:.2f} GiB"]
            code, text, taken = its.ask("park")
            steps += [text, f"{outside.used() / GIB:.2f} GiB", its.ask("park")[1]]
            subprocess.run(["kill", "-STOP", str(pid)], check=True)
            time.sleep(0.2)
            subprocess.run(["kill", "-CONT", str(pid)], check=True)
            if code == 0:
                gpu, size = taken.split()
                steps.append(its.ask("unpark", "--room", f"{gpu}={1 << 50}")[1])
                steps.append(its.ask("unpark", "--room", f"{gpu}={size}")[1])
            steps += [its.ask("unpark")[1], f"{outside.used() / GIB:.2f} GiB"]
            (folder / "go").touch()
            print(f"    {request}, {gib} GiB: {'; '.join(steps)}; {bench.objects(bench.end(job))}")


@row
def parked(bench):
    """By gflowd: an urgent job wants the whole GPU, beside one that holds memory and may be suspended."""
    machine, suspends = bench.machine, ("--preemptible=suspend",)
    request = f"{MEMORY},0.5"
    for gib in (2, 6, 12):
        with bench.folder() as folder, bench.folder() as urgent_folder, Outside() as outside:
            job, _ = bench.holder(request, folder, gib, more=suspends)
            steps, begin = [f"{outside.used() / GIB:.2f} GiB"], time.monotonic()
            urgent, _ = bench.holder("1", urgent_folder, 1, more=("--priority", "200"))
            steps.append(f"the urgent one has its memory after {time.monotonic() - begin:.2f} s")
            steps.append(f"{outside.used() / GIB:.2f} GiB; {machine.job(job)['parked']}")
            begin = time.monotonic()
            (urgent_folder / "go").touch()
            bench.end(urgent)
            machine.until(job, lambda its: its["status"] == "Running" and its["parked"] is None)
            steps.append(f"the first runs on {time.monotonic() - begin:.2f} s after its end")
            (folder / "go").touch()
            print(f"    {request}, {gib} GiB: {'; '.join(steps)}; {bench.objects(bench.end(job))}")


@row
def lent(bench):
    """By gflowd: a job that leaves the GPU idle, one that borrows it meanwhile, and the first call of the former after that."""
    machine = bench.machine
    machine.ok("gctl", "config", "set", "sharing.lend_idle_after", "3s")
    for gib in (2, 12):
        with bench.folder() as folder, bench.folder() as borrowers, Outside() as outside:
            job, _ = bench.holder("1", folder, gib)
            steps, begin = [f"{outside.used() / GIB:.2f} GiB"], time.monotonic()
            borrower, _ = bench.holder("1", borrowers, 1, more=("--preemptible",))
            steps.append(f"the borrower has its memory after {time.monotonic() - begin:.2f} s, 3 of them idle")
            steps.append(f"{outside.used() / GIB:.2f} GiB; {machine.job(job)['parked']}")
            begin = time.monotonic()
            (folder / "go").touch()
            said = bench.objects(bench.end(job))
            steps.append(f"the owner has read its memory and ended {time.monotonic() - begin:.2f} s after its call")
            machine.ok("gcancel", borrower)
            machine.wait(borrower)
            print(f"    1, {gib} GiB: {'; '.join(steps)}; {said}")
    machine.ok("gctl", "config", "set", "sharing.lend_idle_after", "0s")


def main():
    asks = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asks.add_argument("--row", action="append", choices=ROWS)
    asks.add_argument("--seconds", default="2")
    asks.add_argument("--limits", default="1,0.1,0.5,0.9")
    options = asks.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # as of timeout(1): nothing is to stay
    machine = Machine("nvml")
    if "LD_LIBRARY_PATH" in os.environ:
        machine.environment["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
    try:
        machine.up()
        devices = machine.get("/api/v1/devices")["devices"]
        if not devices:
            print("sharing_bench: there is no NVIDIA GPU here: skipped")
            return
        if devices[0]["foreign"]:
            sys.exit(f"sharing_bench: others use the GPU: {devices[0]['foreign']}")
        print(f"{devices[0].get('model', 'GPU')}, {options.seconds} s each")
        bench = Bench(machine, options.seconds, options.limits)
        for name in options.row or ROWS:
            begin = time.monotonic()
            print(f"\n## {name}", flush=True)
            try:
                ROWS[name](bench)
            except Exception:  # noqa: BLE001: whatever it is, the other rows are worth having
                print(f"    failed: {traceback.format_exc(limit=-2)}")
            print(f"    ({time.monotonic() - begin:.0f} s)", flush=True)
    finally:
        machine.close()


main()
