#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What gflow costs on this machine: beside the machine's own floor and beside other queues, in one run.

machine_bench.py [--row E1]... [--jobs N] [--only QUEUE]...: the rows E1, E2, E3, E4, E9, E10 and E11 of the aims.

FLOOR is what the machine itself needs, measured here: a process started and waited for, 512 bytes written and synced,
the directory and files of an attempt, a control group joined. gflow is measured with everything on and without control
groups, in turn. Peers are those that are installed: task-spooler (Debian package task-spooler) and runqd (PyPI; GFLOW_RUNQD names its
folder of programs); the row of one that is not says so. Everything that runs is private to a directory that is removed. Times are
wall time from before a client is started until the job's own first byte arrives. On a busy machine `chrt -r 1` in front
lets all of it run ahead of what else there is.
"""

import argparse
import json
import os
import select
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

NULL = os.open("/dev/null", os.O_RDWR)
TRUE = shutil.which("true")


def milliseconds(times):
    """Median and 99th percentile."""
    ordered = sorted(times)
    return statistics.median(ordered) * 1000, ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)] * 1000


def small_environment():
    """Who has a large one pays for it with every submission, to every queue."""
    return {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "USER": "bench", "SHELL": "/bin/sh"}


def run(arguments, environment, out=NULL):
    """Starts a program as cheaply as Python can; the caller waits."""
    actions = [(os.POSIX_SPAWN_DUP2, NULL, 0), (os.POSIX_SPAWN_DUP2, out, 1), (os.POSIX_SPAWN_DUP2, NULL, 2)]
    return os.posix_spawn(shutil.which(arguments[0], path=environment["PATH"]), arguments, environment, file_actions=actions)


def wait(pid):
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status != 0:
        raise RuntimeError(f"a client ended with {status}")


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

    def close(self):
        os.close(self.fd)


# ---- queues: how each is started, given a job, and waited for -------------------------------------------------------


class Gflow:
    kill9 = "nothing that was acknowledged; jobs go on"
    name = "gflow"
    groups = "true"

    def __init__(self, root):
        self.root = root
        self.environment = small_environment() | {
            "HOME": str(root), "XDG_RUNTIME_DIR": str(root), "XDG_STATE_HOME": str(root), "XDG_CONFIG_HOME": str(root / "c"),
            "GFLOW_RUNNER__CGROUPS": self.groups}
        subprocess.run(["gflowd", "up", "--devices", "sim:8xH100"], env=self.environment, check=True, stdout=subprocess.DEVNULL)
        status = subprocess.run(["gflowd", "status", "--json"], env=self.environment, check=True, capture_output=True)
        self.status = json.loads(status.stdout)
        self.pid = self.status["pid"]

    def socket(self):
        return self.status["socket"]

    def submit(self, *command, gpus=1):
        return ["gbatch", "--gpus", str(gpus), *command]

    def held(self):
        return ["gbatch", "--hold", "--gpus", "1", "true"]

    def chain(self, count, command):
        """`count` jobs, one at a time."""
        wait(run(["gbatch", "--gpus", "8", "--array", f"1-{count}", *command], self.environment))

    def many(self, count):
        """That many jobs of `true`, on 8 GPUs."""
        done = subprocess.run(["gbatch", "--gpus", "1", "--array", f"1-{count}", "true"], env=self.environment, check=True,
                              capture_output=True)
        ids = [line.split()[-1] for line in done.stdout.decode().splitlines()[:1]]
        self.wait(int(ids[0].split("-")[0]), count)

    def wait(self, first, count):
        """For all of them; who watches each as it ends takes part of what is measured."""
        for which in (f"{first + count - 1}", f"{first}-{first + count - 1}"):
            subprocess.run(["gjob", "wait", which], env=self.environment, check=True, stdout=subprocess.DEVNULL)

    def processor(self):
        """Seconds of processor time of the daemon."""
        return int(Path(f"/proc/{self.pid}/schedstat").read_text().split()[0]) / 1e9

    def memory(self):
        line = [line for line in Path(f"/proc/{self.pid}/smaps_rollup").read_text().splitlines() if line.startswith("Pss:")][0]
        return int(line.split()[1])

    def close(self):
        # Jobs outlive the daemon: what is left of them here would be left for ever.
        subprocess.run(["gcancel", "--me"], env=self.environment, check=False, capture_output=True)
        while subprocess.run(["gqueue", "-s", "R,CG", "--noheader", "-n", "1"], env=self.environment, check=True,
                             capture_output=True).stdout.strip():
            select.select([], [], [], 0.2)
        subprocess.run(["gflowd", "down"], env=self.environment, check=True, stdout=subprocess.DEVNULL)


class GflowWithoutGroups(Gflow):
    name = "gflow, no cgroups"
    groups = "false"


class TaskSpooler:
    kill9 = "everything; it keeps nothing on disk"
    name = "task-spooler"
    slots = None
    missing = None if shutil.which("tsp") else "not installed: apt-get install task-spooler"

    def __init__(self, root):
        self.environment = small_environment() | {"HOME": str(root), "TS_SOCKET": str(root / "ts.socket"), "TMPDIR": str(root), "TS_MAXFINISHED": "20000"}

    def set_slots(self, count):
        wait(run(["tsp", "-S", str(count)], self.environment))

    def submit(self, *command, gpus=1):
        return ["tsp", "-n", *command]

    def held(self):
        return ["tsp", "-n", "true"]

    def chain(self, count, command):
        self.set_slots(1)
        for _ in range(count):
            wait(run(self.submit(*command), self.environment))

    def many(self, count):
        self.set_slots(8)
        for _ in range(count):
            wait(run(self.submit("true"), self.environment))
        wait(run(["tsp", "-w"], self.environment))

    def close(self):
        subprocess.run(["tsp", "-K"], env=self.environment, check=False, capture_output=True)


class Runqd:
    kill9 = "up to 30 s of what it acknowledged"
    name = "runqd"
    programs = os.environ.get("GFLOW_RUNQD", "")
    missing = None if programs and Path(programs, "gflowd").exists() else (
        "not installed: pip install runqd, and GFLOW_RUNQD=the folder of its programs")

    def __init__(self, root):
        self.environment = small_environment() | {"HOME": str(root), "XDG_RUNTIME_DIR": str(root), "XDG_CONFIG_HOME": str(root / "c"),
                                         "XDG_DATA_HOME": str(root), "PATH": f"{self.programs}:{os.environ['PATH']}"}
        subprocess.run(["gflowd", "up"], env=self.environment, check=True, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 20
        while subprocess.run(["gqueue"], env=self.environment, capture_output=True).returncode != 0:
            if time.monotonic() > deadline:
                raise RuntimeError("runqd does not answer")
            select.select([], [], [], 0.2)

    def submit(self, *command, gpus=0):
        return ["gbatch", *command]

    def held(self):
        return ["gbatch", "--begin", "now+1d", "true"]

    def close(self):
        subprocess.run(["gflowd", "down"], env=self.environment, check=False, capture_output=True)


# ---- the rows -------------------------------------------------------------------------------------------------------


def first_instruction(queue, ear, rounds=100):
    """E1: from before the client is started to the job's first byte."""
    times = []
    for _ in range(rounds):
        begin = time.monotonic()
        client = run(queue.submit("sh", "-c", f"echo >{ear.path}"), queue.environment)
        times.append(ear.next()[1] - begin)
        wait(client)
        select.select([], [], [], 0.02)  # an idle machine for the next one
    return milliseconds(times)


def next_start(queue, ear, rounds=150):
    """E2: from the last thing a job does to the first of the next on the same GPUs."""
    heard = []
    listener = threading.Thread(target=lambda: heard.extend(ear.next() for _ in range(2 * rounds)))
    listener.start()
    queue.chain(rounds, ["sh", "-c", f"printf s >{ear.path}; printf e >{ear.path}"])
    listener.join()
    times, ended = [], None
    for said, when in heard:
        if said == b"s" and ended is not None:
            times.append(when - ended)
        ended = when if said == b"e" else None
    return milliseconds(times)


def many(queue, count):
    """E3: jobs a second, and the processor time of all that ran, for each of them."""
    machine = busy()
    begin = time.monotonic()
    queue.many(count)
    took = time.monotonic() - begin
    return count / took, (busy() - machine) / count * 1000


def busy():
    """Seconds the machine's processors have worked, for whomever."""
    fields = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    return (sum(fields[:3]) + fields[5] + fields[6]) / os.sysconf("SC_CLK_TCK")


def processes(queue, count=300):
    """E4: submissions a second, a client after the other."""
    begin = time.monotonic()
    for _ in range(count):
        wait(run(queue.held(), queue.environment))
    return count / (time.monotonic() - begin)


def held_job():
    """The request that submits one."""
    body = json.dumps({"items": [{"spec": {"name": "b", "work_dir": "/", "hold": True, "request": {"cpus": 0}},
                                  "payload": {"argv": ["true"]}}]}).encode()
    return b"POST /api/v1/jobs HTTP/1.1\r\nHost: gflow\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def connections(queue, seconds=1):
    """E4: submissions a second over 64 connections, by a client that does nothing else."""
    path, request = queue.socket(), held_job()
    poll = select.epoll()
    open_ones = {}
    for _ in range(64):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(path)
        open_ones[connection.fileno()] = connection
        poll.register(connection.fileno(), select.EPOLLIN)
        connection.sendall(request)
    done, begin = 0, time.monotonic()
    while time.monotonic() - begin < seconds:
        for fd, _ in poll.poll(1):
            answer = open_ones[fd].recv(65536)
            if not answer.startswith(b"HTTP/1.1 2"):
                raise RuntimeError(answer[:300].decode())
            done += 1
            open_ones[fd].sendall(request)
    return done / (time.monotonic() - begin)


def array(queue, count=10_000):
    """E4: milliseconds one submission of so many tasks takes."""
    begin = time.monotonic()
    done = subprocess.run(["gbatch", "--hold", "--gpus", "1", "--array", f"1-{count}", "true"], env=queue.environment,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.decode().strip())
    return (time.monotonic() - begin) * 1000


def cancel_running(queue, ear, count=1000):
    """E10: seconds until so many running jobs are gone after they were cancelled."""
    wait(run(["gbatch", "--cpus", "0", "--array", f"1-{count}", "sh", "-c", f"printf s >{ear.path}; exec sleep 1000"],
             queue.environment))
    for _ in range(count):
        ear.next()
    shims = [pid for pid in os.listdir("/proc") if pid.isdigit() and is_shim(pid, str(queue.root))]
    memory = statistics.median(pss(pid) for pid in shims[:20])
    idle = queue.processor()
    select.select([], [], [], 5)
    idle = queue.processor() - idle
    ids = subprocess.run(["gqueue", "-s", "R", "-f", "JOBID", "--noheader", "-n", "0"], env=queue.environment, check=True,
                         capture_output=True).stdout.decode().split()
    begin = time.monotonic()
    wait(run(["gcancel", "--me"], queue.environment))
    subprocess.run(["gjob", "wait", *ids], env=queue.environment, check=False, stdout=subprocess.DEVNULL)
    return time.monotonic() - begin, memory, idle / 5 * 60_000


def startable(queue, count):
    """E9: milliseconds others wait for an answer while so many jobs can start at once, from one event on: a page, a submission."""
    gate = submitted(queue, "--hold", "--cpus", "0", "true")
    last = submitted(queue, "--cpus", "0", "--array", f"1-{count}", "--depends-on", str(gate), "true")
    path, over = queue.socket(), threading.Event()
    page = b"GET /api/v1/jobs?limit=1 HTTP/1.1\r\nHost: gflow\r\n\r\n"
    waited = {page: [], held_job(): []}

    def ask(what):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(path)
            while not over.is_set():
                begin = time.monotonic()
                connection.sendall(what)
                if not receive(connection).startswith(b"HTTP/1.1 2"):
                    raise RuntimeError("it answered with an error")
                waited[what].append(time.monotonic() - begin)
                over.wait(0.005)

    askers = [threading.Thread(target=ask, args=(what,)) for what in waited]
    for asker in askers:
        asker.start()
    begin = time.monotonic()
    wait(run(["gjob", "release", str(gate)], queue.environment))
    queue.wait(last - count + 1, count)
    took = time.monotonic() - begin
    over.set()
    for asker in askers:
        asker.join()
    return [figure for times in waited.values() for figure in (*milliseconds(times), max(times) * 1000)] + [count / took]


def submitted(queue, *words):
    """The last id of one submission."""
    done = subprocess.run(["gbatch", *words], env=queue.environment, check=True, capture_output=True)
    return int(done.stdout.decode().split()[-1].split("-")[-1])


def receive(connection):
    """One whole answer."""
    answer = b""
    while b"\r\n\r\n" not in answer:
        part = connection.recv(65536)
        if not part:
            raise RuntimeError("the daemon went away")
        answer += part
    head, body = answer.split(b"\r\n\r\n", 1)
    size = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
    while len(body) < size:
        body += connection.recv(65536)
    return head


def cancel_waiting(queue, count=5000, cancelled=4000):
    """E10: milliseconds to cancel so many of the jobs one job waits for."""
    last = submitted(queue, "--hold", "--gpus", "1", "--array", f"1-{count}", "true")
    first = last - count + 1
    submitted(queue, "--gpus", "1", "--no-auto-cancel", "--depends-on", f"{first}-{last}", "true")
    begin = time.monotonic()
    wait(run(["gcancel", f"{first}-{first + cancelled - 1}"], queue.environment))
    return (time.monotonic() - begin) * 1000


def idle(queue):
    """E11: milliseconds of processor time a minute, and kB."""
    begin = queue.processor()
    select.select([], [], [], 10)
    return (queue.processor() - begin) * 6000, queue.memory()


def is_shim(pid, root):
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return len(words) > 1 and words[0].endswith(b"gflow-shim") and words[1].startswith(root.encode())


def pss(pid):
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("Pss:")).split()[1])


# ---- the floor ------------------------------------------------------------------------------------------------------


def timed(what, rounds):
    times = []
    for number in range(rounds):
        begin = time.monotonic()
        what(number)
        times.append(time.monotonic() - begin)
    return milliseconds(times)


def joined(tree, rounds=40):
    times = []
    for number in range(rounds):
        place = Path(tree, f"gflow-floor-{os.getpid()}-{number}")
        begin = time.monotonic()
        place.mkdir()
        child = os.fork()
        if child == 0:
            Path(place, "cgroup.procs").write_text("0")
            os._exit(0)
        os.waitpid(child, 0)
        times.append(time.monotonic() - begin)
        place.rmdir()
        select.select([], [], [], 0.03)  # the next one is to find the kernel at rest, as a lone job does
    return milliseconds(times)


def floor(root):
    """What the machine itself needs, in milliseconds."""
    rows = {}
    rows["start a process, wait for it"] = timed(lambda _: wait(run([TRUE], os.environ)), 300)
    fd = os.open(root / "floor", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def synced(_):
        os.write(fd, bytes(512))
        os.fdatasync(fd)

    rows["write 512 bytes, fdatasync"] = timed(synced, 300)
    os.close(fd)

    def files(number):
        place = root / f"attempt{number}"
        os.mkdir(place)
        for name in "abcdefg":
            os.close(os.open(place / name, os.O_WRONLY | os.O_CREAT))
        shutil.rmtree(place)

    rows["a directory and 7 files, made and removed"] = timed(files, 300)
    for version, tree in (("v2", "/sys/fs/cgroup/unified"), ("v2", "/sys/fs/cgroup"), ("v1", "/sys/fs/cgroup/pids")):
        if Path(tree, "cgroup.procs").exists() and os.geteuid() == 0:
            rows[f"a control group ({version}) made and joined by a child, at rest"] = joined(tree)
    return rows


# ---- the table ------------------------------------------------------------------------------------------------------


def measure(make, rows, options):
    root = Path(tempfile.mkdtemp(prefix="gflow-bench-"))
    found = {}
    queue = make(root)
    ear = Ear(root)
    try:
        for name, needs, what in rows:
            if not all(hasattr(queue, need) for need in needs):
                continue
            if options.row and name.split()[0] not in options.row:
                continue
            try:
                found[name] = what(queue, ear, options)
            except (RuntimeError, OSError, subprocess.SubprocessError) as why:
                print(f"{queue.name}: {name}: not measured: {why}")
    finally:
        queue.close()
        ear.close()
        shutil.rmtree(root, ignore_errors=True)
    return found


NOT_MEASURED = (
    "Slurm: needs a key, a configuration and two daemons of its own user",
    "pueue, HyperQueue: not installed; they have to be built from source first",
    "E2 and E3 of runqd: it gives jobs GPUs only where NVML finds some",
)

ROWS = [
    ("E11 idle: ms of CPU a minute, kB", ("processor",), lambda queue, *_: idle(queue)),
    ("E1 submit to first instruction, ms", ("submit",), lambda queue, ear, _: first_instruction(queue, ear)),
    ("E2 end to the next start, ms", ("chain",), lambda queue, ear, _: next_start(queue, ear)),
    ("E3 jobs of `true`, 8 at once: per s, ms of CPU each", ("many",), lambda queue, _, options: many(queue, options.jobs)),
    ("E4 submissions, clients in turn, per s", ("held",), lambda queue, *_: (processes(queue),)),
    ("E4 submissions, 64 connections, per s", ("processor",), lambda queue, *_: (connections(queue),)),
    ("E4 array of 10,000, ms", ("processor",), lambda queue, *_: (array(queue),)),
    ("E9 others while 1,500 jobs can start: page p50, p99, longest, ms; submission; starts per s", ("processor",),
     lambda queue, *_: startable(queue, 1500)),
    ("E9 the same, 5,000", ("processor",), lambda queue, *_: startable(queue, 5000)),
    ("E9 the same, 10,000", ("processor",), lambda queue, *_: startable(queue, 10_000)),
    ("E10 cancel 4,000 of 5,000 on which one depends, ms", ("processor",), lambda queue, *_: (cancel_waiting(queue),)),
    ("E10 cancel 1,000 running, s; shim PSS, kB; idle, ms of CPU a minute", ("processor",),
     lambda queue, ear, _: cancel_running(queue, ear)),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--row", action="append", help="only this one: E1, E2, E3, E4, E9, E10, E11")
    parser.add_argument("--jobs", type=int, default=int(os.environ.get("GFLOW_BENCH_JOBS", "2000")), help="of E3 (2000)")
    parser.add_argument("--only", action="append", help="only this queue")
    options = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors, Linux {os.uname().release}")
    root = Path(tempfile.mkdtemp(prefix="gflow-bench-"))
    try:
        for name, (middle, worst) in floor(root).items():
            print(f"floor: {name:55} {middle:9.2f} {worst:9.2f}")
    finally:
        shutil.rmtree(root, ignore_errors=True)
    for reason in NOT_MEASURED:
        print(f"not measured: {reason}")
    table = {}
    for make in (Gflow, GflowWithoutGroups, TaskSpooler, Runqd):
        if options.only and make.name not in options.only:
            continue
        if getattr(make, "missing", None):
            print(f"{make.name}: {make.missing}")
            continue
        table[make.name] = measure(make, ROWS, options)
        print(f"{make.name} (kill -9 of its daemon loses: {make.kill9})")
        for name, figures in table[make.name].items():
            first = table.get("gflow", {}).get(name)
            ratio = f"   gflow: {first[0] / figures[0]:6.2f} x" if first and make is not Gflow and figures[0] else ""
            print(f"  {name:70} " + " ".join(f"{figure:10.2f}" for figure in figures) + ratio)
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main())
