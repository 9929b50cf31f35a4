#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What gflow costs on this machine: beside the machine's own floor and beside other queues, in one run.

machine_bench.py [--install] [--row E1]... [--jobs N] [--only QUEUE]...

The floor is what the machine itself needs, measured here: a process started and waited for, 512 bytes written and synced,
the directory and files of an attempt, a control group joined; what a row's floor is made of is in ROWS. gflow is measured
with everything on and without control groups, then its peers (bench/peers): those that are installed, the row of another
says why it is not there; `--install` installs what can be had. Everything that runs is private to a directory that is removed.
Times are wall time from before a client is started until the job's own first byte arrives. On a busy machine `chrt -r 1` in
front lets all of it run ahead of what else there is.
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

from peers.processes import Ear, call, output, pause, run, wait
from peers.gflow import Gflow, GflowWithoutGroups
from peers.pueue import Pueue
from peers.runqd import Runqd
from peers.slurm import Slurm
from peers.task_spooler import TaskSpooler

QUEUES = (Gflow, GflowWithoutGroups, TaskSpooler, Pueue, Runqd, Slurm)
TRUE = shutil.which("true")


def milliseconds(times):
    """Median and 99th percentile."""
    ordered = sorted(times)
    return statistics.median(ordered) * 1000, ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)] * 1000


# ---- the rows -------------------------------------------------------------------------------------------------------


def first_instruction(queue, ear, rounds=100):
    """E1: from before the client is started to the job's first byte."""
    times = []
    for _ in range(rounds):
        begin = time.monotonic()
        client = run(queue.submit(f"echo >{ear.path}"), queue.environment)
        times.append(ear.next()[1] - begin)
        wait(client)
        pause(0.02)  # an idle machine for the next one
    return milliseconds(times)


def next_start(queue, ear, rounds=150):
    """E2: from the last thing a job does to the first of the next on the same GPUs."""
    heard = []
    listener = threading.Thread(target=lambda: heard.extend(ear.next() for _ in range(2 * rounds)))
    listener.start()
    queue.chain(rounds, f"printf s >{ear.path}; printf e >{ear.path}")
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


def held_jobs(names, variables=()):
    """The request that submits one of each name."""
    items = [{"spec": {"name": name, "work_dir": "/", "hold": True, "request": {"cpus": 0}},
              "payload": {"argv": ["true", name], "environment": [f"{variable}={name}" for variable in variables]}} for name in names]
    body = json.dumps({"items": items}).encode()
    return b"POST /api/v1/jobs HTTP/1.1\r\nHost: gflow\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def connections(queue, seconds=1):
    """E4: submissions a second over 64 connections, by a client that does nothing else."""
    path, request = queue.socket(), held_jobs(["b"])
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
    done = subprocess.run(queue.array(count, ["true"], hold=True), env=queue.environment, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.decode().strip())
    return (time.monotonic() - begin) * 1000


def fill(queue, arrays=0, singles=0):
    """Arrays of 10,000 tasks that are held, and jobs submitted one by one, each with a name, a command and 3 variables of its own."""
    for _ in range(arrays):
        array(queue)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(queue.socket())
        for first in range(0, singles, 1000):
            connection.sendall(held_jobs([f"job-{number}" for number in range(first, first + 1000)], ("A", "B", "C")))
            receive(connection)


def listed(queue, rounds=9):
    """E5: milliseconds of four listings of 100,000 held jobs."""
    fill(queue, arrays=10)
    listings = (["-n", "20"], ["-n", "-20"], ["-r", "priority", "-n", "20"], [])
    return [timed(lambda _, words=words: wait(run(["gqueue", *words], queue.environment)), rounds)[0] for words in listings]


def packed(queue, count=100_000):
    """E6: bytes of memory that each of so many waiting jobs takes, of arrays and single ones, after a restart."""
    taken = []
    for wish in ({"arrays": count // 10_000}, {"singles": count}):
        output(["gflowd", "restart"], queue.environment)
        queue.ask_status()
        before = queue.memory()
        fill(queue, **wish)
        output(["gflowd", "restart"], queue.environment)
        queue.ask_status()
        taken.append((queue.memory() - before) * 1024 / count)
    return taken


def restarted(queue, rounds=5, **wish):
    """E7: seconds from `kill -9` until `gflowd up` is back, and kB of memory at most."""
    fill(queue, **wish)
    times = []
    for _ in range(rounds):
        queue.kill9()
        begin = time.monotonic()
        queue.start()
        times.append(time.monotonic() - begin)
    peak = next(line for line in Path(f"/proc/{queue.pid}/status").read_text().splitlines() if line.startswith("VmHWM:"))
    return min(times), int(peak.split()[1])


def killed(queue, ear, waiting=100, running=8):
    """What `kill -9` of its daemon costs: acknowledged jobs that neither wait nor run after its next start, and starts of
    jobs that ran already."""
    if hasattr(queue, "slots"):
        queue.slots(running)
    for _ in range(running):
        wait(run(queue.submit(f"printf s >{ear.path}; exec sleep 60"), queue.environment))
    for _ in range(running):
        ear.next()
    for _ in range(waiting):
        wait(run(queue.held(), queue.environment))
    if queue.known() != waiting + running:
        raise RuntimeError(f"it shows {queue.known()} of {waiting + running} jobs before it is killed")
    queue.kill9()
    queue.start()
    pause(3)
    left = queue.known()
    return waiting + running - left, len(ear.rest())


def cancel_running(queue, ear, count=1000):
    """E10: seconds until so many running jobs are gone after they were cancelled."""
    wait(run(["gbatch", "--cpus", "0", "--array", f"1-{count}", "sh", "-c", f"printf s >{ear.path}; exec sleep 1000"],
             queue.environment))
    for _ in range(count):
        ear.next()
    shims = [pid for pid in os.listdir("/proc") if pid.isdigit() and is_shim(pid, str(queue.root))]
    memory = statistics.median(pss(pid) for pid in shims[:20])
    idle = queue.processor()
    pause(5)
    idle = queue.processor() - idle
    ids = output(["gqueue", "-s", "R", "-f", "JOBID", "--noheader", "-n", "0"], queue.environment).split()
    begin = time.monotonic()
    wait(run(["gcancel", "--me"], queue.environment))
    call(["gjob", "wait", *ids], queue.environment)
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
    pause(10)
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
        pause(0.03)  # the next one is to find the kernel at rest, as a lone job does
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

PROCESS, SYNCED, FILES = "start a process, wait for it", "write 512 bytes, fdatasync", "a directory and 7 files, made and removed"

# (row, what a queue needs for it, how it is measured, whether more is better, what its floor is made of). One of the last
# figures is a time in ms or a number in a second; the floor is the sum of these, or so many in a second.
ROWS = [
    ("E11 idle: ms of CPU a minute, kB", ("processor",), lambda queue, *_: idle(queue), False, ()),
    ("E1 submit to first instruction, ms", ("submit",), lambda queue, ear, _: first_instruction(queue, ear), False,
     (PROCESS, SYNCED, PROCESS)),
    ("E2 end to the next start, ms", ("chain",), lambda queue, ear, _: next_start(queue, ear), False, (SYNCED, PROCESS)),
    ("E3 jobs of `true`, 8 at once: per s, ms of CPU each", ("many",), lambda queue, _, options: many(queue, options.jobs), True,
     (SYNCED, PROCESS, FILES)),
    ("E4 submissions, clients in turn, per s", ("held",), lambda queue, *_: (processes(queue),), True, (SYNCED, PROCESS)),
    ("E4 submissions, 64 connections, per s", ("processor",), lambda queue, *_: (connections(queue),), True, ()),
    ("E4 array of 10,000, ms", ("array",), lambda queue, *_: (array(queue),), False, (SYNCED, PROCESS)),
    ("E5 100,000 held jobs, ms: first 20, last 20, first 20 by priority, all", ("processor",), lambda queue, *_: listed(queue), False, ()),
    ("E6 bytes a waiting job: a task of an array, one submitted alone", ("processor",), lambda queue, *_: packed(queue), False, ()),
    ("E7 start after kill -9, s, kB: 100,000 jobs in ten arrays", ("processor",), lambda queue, *_: restarted(queue, arrays=10), False, ()),
    ("E7 the same: 1,000,000 in a hundred arrays", ("processor",), lambda queue, *_: restarted(queue, arrays=100), False, ()),
    ("E7 the same: 100,000 submitted one by one", ("processor",), lambda queue, *_: restarted(queue, singles=100_000), False, ()),
    ("E9 others while 1,500 jobs can start: page p50, p99, longest, ms; submission; starts per s", ("processor",),
     lambda queue, *_: startable(queue, 1500), False, ()),
    ("E9 the same, 5,000", ("processor",), lambda queue, *_: startable(queue, 5000), False, ()),
    ("E9 the same, 10,000", ("processor",), lambda queue, *_: startable(queue, 10_000), False, ()),
    ("E10 cancel 4,000 of 5,000 on which one depends, ms", ("processor",), lambda queue, *_: (cancel_waiting(queue),), False, ()),
    ("E10 cancel 1,000 running, s; shim PSS, kB; idle, ms of CPU a minute", ("processor",),
     lambda queue, ear, _: cancel_running(queue, ear), False, ()),
]
NOT_MEASURED = {
    "HyperQueue": "its program is in no registry, to be built from its repository",
}
KILLED = "kill -9 of its daemon: lost of 108 acknowledged jobs; started twice"


def measure(make, options):
    """Figures by row, or why there are none."""
    found = {}
    for name, needs, what, _, _ in ROWS:
        if options.row and name.split()[0] not in options.row:
            continue
        if all(hasattr(make, need) for need in needs):
            in_private(make, name, found, lambda queue, ear, what=what: what(queue, ear, options))
    if not options.row or "kill" in options.row:
        in_private(make, KILLED, found, killed)
    return found


def in_private(make, name, found, what):
    """A fresh queue for each row: what one leaves behind costs the next nothing."""
    root = Path(tempfile.mkdtemp(prefix="gflow-bench-"))
    ear = Ear(root)
    queue = None
    try:
        queue = make(root)
        found[name] = what(queue, ear)
    except (RuntimeError, OSError, subprocess.SubprocessError) as why:
        found[name] = f"not measured: {why}"
    finally:
        if queue is not None:
            queue.close()
        ear.close()
        shutil.rmtree(root, ignore_errors=True)


def show(make, found, ours, least):
    print(make.name)
    for name, figures in found.items():
        if isinstance(figures, str):
            print(f"  {name:70} {figures}")
            continue
        line = f"  {name:70} " + " ".join(f"{figure:10.2f}" for figure in figures)
        _, _, _, more_is_better, parts = next((row for row in ROWS if row[0] == name), (0, 0, 0, False, ()))
        if parts:
            bottom = sum(least[part][0] for part in parts)
            line += f"   floor x {(1000 / bottom) / figures[0] if more_is_better else figures[0] / bottom:6.2f}"
        first = ours.get(name)
        if first and not isinstance(first, str) and make is not Gflow and name != KILLED and figures[0]:
            line += f"   gflow x {first[0] / figures[0]:6.2f}"
        print(line)
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--install", action="store_true", help="install the peers first (bench/peers/install.sh)")
    parser.add_argument("--row", action="append", help="only this one: E1 to E7, E9, E10, E11, kill")
    parser.add_argument("--jobs", type=int, default=int(os.environ.get("GFLOW_BENCH_JOBS", "2000")), help="of E3 (2000)")
    parser.add_argument("--only", action="append", help="only this queue, by its name")
    options = parser.parse_args()
    if options.install:
        subprocess.run([Path(__file__).parent / "peers" / "install.sh"], check=False)
        os.execv(sys.executable, [sys.executable, *(word for word in sys.argv if word != "--install")])
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors, Linux {os.uname().release}")
    root = Path(tempfile.mkdtemp(prefix="gflow-bench-"))
    try:
        least = floor(root)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    for name, (middle, worst) in least.items():
        print(f"floor: {name:65} {middle:9.2f} {worst:9.2f}")
    for name, why in NOT_MEASURED.items():
        print(f"{name}: not measured: {why}")
    ours = {}
    for make in QUEUES:
        if options.only and make.name not in options.only:
            continue
        if make.missing:
            print(f"{make.name}: not measured: {make.missing}")
            continue
        found = measure(make, options)
        if make is Gflow:
            ours = found
        show(make, found, ours, least)
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main())
