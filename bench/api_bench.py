#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The HTTP API under load, beside a server that does nothing else and beside runqd, in one run.

api_bench.py [--seconds N] [--row NAME]...

Load comes from wrk (64 connections, one thread), on this machine, so that client and server share its processors. FLOOR is
bench/bare_server.cpp, which reads requests with the same library and answers each with as many bytes as gflowd does; runqd is
measured right after gflowd, with as many jobs, where it has such a route (bench/peers/install.sh runqd installs it); a row of it
that could not be measured says why. Everything is private to a directory that is removed. Nobody submits as root over TCP: as
root, servers and clients run as the user `daemon`, but for runqd.

  reads        answers a second, their median and 99th percentile, and the processor time of the server for each
  submissions  durable jobs a second: one by one from 64 clients, and in batches of 100
  listing      a page of 20 of 100,000 jobs, asked by one client
  hand-over    from the end of a job to the start of the next, idle and beside a flood of each kind
  idle         10,000 connections that say nothing, or as many as the limit of descriptors (ulimit -Hn) allows: memory of gflowd,
               and the median answer of another client
  events       500 listen to the stream of events: from before a job is submitted until each of them has read that it was
"""

import argparse
import json
import os
import pwd
import re
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path

from peers.processes import Ear, output, pause, small_environment
from peers.runqd import Runqd

BIN = Path(os.environ.get("GFLOW_BIN_DIR", Path(__file__).resolve().parents[1] / "build/release/bin"))
BARE = BIN.parent / "bench/bare_server"
CLIENTS = 64
HELD = 1000  # jobs that wait while answers are counted
FILES = min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], 65536)
JOB = {"spec": {"name": "j", "hold": True, "work_dir": "/", "request": {"cpus": 0}}, "payload": {"argv": ["true"]}}


def as_user():
    """What goes before a command to run it as somebody who may submit over TCP."""
    if os.geteuid() != 0:
        return []
    user = pwd.getpwnam("daemon")
    return ["setpriv", "--reuid", str(user.pw_uid), "--regid", str(user.pw_gid), "--clear-groups"]


class Gflow:
    """A private gflowd that listens at a port of its own."""

    def __init__(self, root):
        self.environment = small_environment(root) | {
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "GFLOW_API__LISTEN": "127.0.0.1:0",
            "GFLOW_API__MAX_CONNECTIONS": "20000",
            "GFLOW_API__MAX_CONNECTIONS_PER_USER": "20000",
        }
        self.call("prlimit", f"--nofile={FILES}", "gflowd", "up", "--devices", "sim:8xH100")
        status = json.loads(self.call("gflowd", "status", "--json"))
        self.pid = status["pid"]
        self.url = status["api_url"]
        self.port = int(self.url.rsplit(":", 1)[1])

    def call(self, *command):
        return output([*as_user(), *command], self.environment)

    def submit_held(self, count):
        for begin in range(0, count, 10_000):
            self.call("gbatch", "--hold", "--array", f"1-{min(10_000, count - begin)}", "true")

    def get(self, path):
        done = subprocess.run(["curl", "-sf", self.url + path], check=True, capture_output=True)
        return done.stdout

    def memory(self):
        rollup = Path(f"/proc/{self.pid}/smaps_rollup").read_text()
        return int(re.search(r"^Pss: +(\d+)", rollup, re.M)[1]) / 1024

    def close(self):
        self.call("gcancel", "--me")
        self.call("gflowd", "down")


@contextmanager
def gflow():
    with tempfile.TemporaryDirectory(prefix="gflow-bench-") as root:
        if os.geteuid() == 0:
            shutil.chown(root, "daemon", "daemon")
        daemon = Gflow(Path(root))
        try:
            yield daemon
        finally:
            daemon.close()


@contextmanager
def bare(size):
    with subprocess.Popen([BARE, str(size)], stdout=subprocess.PIPE, text=True) as server:
        try:
            yield f"http://127.0.0.1:{server.stdout.readline().strip()}", server.pid
        finally:
            server.kill()


def processor(pid):
    """Seconds of processor time of a process, all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Refused(Exception):
    """The server would not have these requests, or answered none."""


class Load:
    """What wrk said."""

    UNITS = {"us": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4}

    def __init__(self, url, pid, seconds, body=None, connections=CLIENTS, pause=None):
        """pause: least and most milliseconds between an answer and the next question of its client."""
        script = []
        if body is not None or pause is not None:
            file = tempfile.NamedTemporaryFile("w", suffix=".lua")  # gone with this function
            if body is not None:
                file.write('wrk.method = "POST"\nwrk.headers["Content-Type"] = "application/json"\n')
                file.write(f"wrk.body = [==[{body}]==]\n")
            if pause is not None:
                file.write(f"function delay() return math.random({pause[0]}, {pause[1]}) end\n")
            file.flush()
            os.chmod(file.name, 0o644)
            script = ["-s", file.name]
        before = processor(pid)
        said = output([*as_user(), "wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", *script, url], os.environ)
        used = processor(pid) - before
        if re.search("Non-2xx", said):
            raise Refused(f"{url} refused requests:\n{said}")
        count = int(re.search(r"(\d+) requests in", said)[1])
        if count == 0:
            raise Refused(f"no answer from {url} in {seconds} s")
        self.rate = float(re.search(r"Requests/sec: +([\d.]+)", said)[1])
        self.median, self.p99 = self.at(said, 50), self.at(said, 99)
        self.microseconds = used / count * 1e6

    def at(self, said, percent):
        number, unit = re.search(rf"^ +{percent}% +([\d.]+)(us|ms|s|m) *$", said, re.M).groups()
        return float(number) * self.UNITS[unit]

    def __str__(self):
        return f"{self.rate:9,.0f}/s  p50 {self.median:7.2f} ms  p99 {self.p99:7.2f} ms  {self.microseconds:6.0f} us each"


def say(name, text):
    print(f"  {name:34} {text}", flush=True)


# ---- the rows ------------------------------------------------------------------------------------------------------


# What is read: the path here, and that of runqd where it has one for the same.
READ = {"/healthz": "/health", "/api/v1/gpu/status": None, "/api/v1/jobs/1": "/jobs/1", "/api/v1/jobs?limit=20": "/jobs?limit=20"}


def reads(seconds):
    with gflow() as daemon, Peer() as peer:
        daemon.submit_held(HELD)
        peer.submit_held(HELD)
        for path, theirs in READ.items():
            size = len(daemon.get(path))
            ours = Load(daemon.url + path, daemon.pid, seconds)
            say(f"gflow {path}", ours)
            with bare(size) as (url, pid):
                floor = Load(url, pid, seconds)
            say(f"FLOOR {size} bytes", f"{floor}  gflow/FLOOR {ours.rate / floor.rate:.2f}")
            peer.beside(ours, theirs, seconds)


def submissions(seconds):
    for name, count in (("one by one", 1), ("in batches of 100", 100)):
        with gflow() as daemon, Peer() as peer:
            load = Load(daemon.url + "/api/v1/jobs", daemon.pid, seconds, json.dumps({"items": [JOB] * count}))
            say(f"gflow {name}", f"{load}  {load.rate * count:,.0f} jobs/s")
            path, body = ("/jobs", peer.held_job()) if count == 1 else ("/jobs/batch", [peer.held_job()] * count)
            peer.beside(load, path, seconds, json.dumps(body))


def listing(seconds):
    with gflow() as daemon:
        daemon.submit_held(100_000)
        for path in ("/api/v1/jobs?limit=20", "/api/v1/jobs?limit=20&reverse=true", "/api/v1/jobs?limit=20&sort=-priority"):
            say(f"gflow {path[8:]}", Load(daemon.url + path, daemon.pid, seconds, connections=1))


def handing_over(daemon, ear, rounds):
    """Median and 99th percentile of the time between two jobs on the same GPUs, in ms."""
    heard = []
    listener = threading.Thread(target=lambda: heard.extend(ear.next() for _ in range(2 * rounds)))
    listener.start()
    daemon.call("gbatch", "--gpus", "8", "--array", f"1-{rounds}", "sh", "-c", f"printf s >{ear.path}; printf e >{ear.path}")
    listener.join()
    times = [later - when for (said, when), (_, later) in zip(heard, heard[1:]) if said == b"e"]
    return statistics.median(times) * 1e3, statistics.quantiles(times, n=100)[98] * 1e3


def hand_over(seconds, rounds=1000):
    status, page, submission = ("/api/v1/gpu/status", None), ("/api/v1/jobs?limit=20", None), ("/api/v1/jobs", json.dumps({"items": [JOB]}))
    reading, submitting = (2, 3), (10, 13)  # 64 clients then ask the 20,000 times, and submit the 5,000 times a second of the aims
    floods = {
        "idle": None,
        "reads of gpu/status": (*status, reading),
        "reads of jobs?limit=20": (*page, reading),
        "submissions": (*submission, submitting),
        "as many reads of gpu/status as go": (*status, None),
        "as many reads of jobs?limit=20": (*page, None),
        "as many submissions": (*submission, None),
    }
    idle = None
    for name, flood in floods.items():
        with gflow() as daemon, tempfile.TemporaryDirectory(prefix="gflow-ear-") as folder:
            os.chmod(folder, 0o755)
            ear = Ear(Path(folder))
            os.chmod(ear.path, 0o666)
            over = threading.Event()
            loads = []

            def keep_up(over=over, daemon=daemon, flood=flood, loads=loads):
                while not over.is_set():
                    loads.append(Load(daemon.url + flood[0], daemon.pid, seconds, flood[1], pause=flood[2]))

            flooder = threading.Thread(target=keep_up)
            if flood:
                flooder.start()
            median, p99 = handing_over(daemon, ear, rounds)
            over.set()
            if flood:
                flooder.join()
            idle = idle or p99
            beside = f"  beside {statistics.mean(load.rate for load in loads):,.0f}/s" if flood else ""
            say(name, f"p50 {median:.2f} ms  p99 {p99:.2f} ms  p99/idle {p99 / idle:.2f}{beside}")
            ear.close()


def idle(seconds):
    # Of the descriptors of gflowd 128 are for jobs and the store, and a quarter of the rest for logs; others connect, too.
    count = min(IDLE, (FILES - 128) * 3 // 4 - 200)
    if count < IDLE:
        say("as many as go", f"the limit of descriptors here is {FILES:,} (ulimit -Hn)")
    with gflow() as daemon:
        path = "/api/v1/gpu/status"
        alone, before = Load(daemon.url + path, daemon.pid, seconds, connections=1), daemon.memory()
        hold = "import socket, sys\n" \
               "port, count = int(sys.argv[1]), int(sys.argv[2])\n" \
               "open = [socket.create_connection(('127.0.0.1', port)) for _ in range(count)]\n" \
               "print(len(open), flush=True)\nsys.stdin.read()\n"
        command = ["prlimit", f"--nofile={FILES}", *as_user(), sys.executable, "-c", hold, str(daemon.port), str(count)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
            holder.stdout.readline()
            crowded, after = Load(daemon.url + path, daemon.pid, seconds, connections=1), daemon.memory()
            holder.stdin.close()
        say("alone", f"p50 {alone.median:.3f} ms  {before:.0f} MiB")
        say(f"beside {count:,} that say nothing", f"p50 {crowded.median:.3f} ms  {after:.0f} MiB  p50/alone {crowded.median / alone.median:.2f}")


IDLE = 10_000

# Listens COUNT times to the events of the server at PORT, submits ROUNDS jobs one after another, and prints how long after its
# submission began each listener had read of each job, in ms.
LISTENERS = """
import json, resource, select, socket, sys, time
port, count, rounds, job = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4].encode()
resource.setrlimit(resource.RLIMIT_NOFILE, (count + 100, count + 100))

def ask(request):
    made = socket.create_connection(("127.0.0.1", port))
    made.sendall(request)
    return made

def answered(made, end):
    text = b""
    while end not in text:
        piece = made.recv(65536)
        if not piece:
            sys.exit(f"the connection ended: {text!r}")
        text += piece

listening = {}
poll = select.epoll()
for _ in range(count):
    made = ask(b"GET /api/v1/events?type=job.submitted HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")
    answered(made, b"retry: 1000")
    listening[made.fileno()] = made
    poll.register(made.fileno(), select.EPOLLIN)
took = []
for _ in range(rounds):
    begin, waiting = time.monotonic(), set(listening)
    submitted = ask(b"POST /api/v1/jobs HTTP/1.1\\r\\nHost: localhost\\r\\nContent-Type: application/json\\r\\n"
                    b"Content-Length: %d\\r\\n\\r\\n%s" % (len(job), job))
    while waiting:
        for at, _ in poll.poll():
            if b"event: job.submitted" in listening[at].recv(65536):
                waiting.discard(at)
                took.append((time.monotonic() - begin) * 1e3)
    answered(submitted, b"\\r\\n\\r\\n")
    submitted.close()
print(json.dumps(took))
"""


def events(_seconds, rounds=100):
    job = json.dumps({"items": [JOB]})
    for count in (1, 500):
        with gflow() as daemon:
            before = processor(daemon.pid)
            limits = ["prlimit", f"--nofile={FILES}"]
            told = output([*limits, *as_user(), sys.executable, "-c", LISTENERS, str(daemon.port), str(count), str(rounds), job],
                          os.environ)
            used = (processor(daemon.pid) - before) / rounds * 1e3
        times = json.loads(told)
        p99 = statistics.quantiles(times, n=100)[98]
        say(f"{count} listening", f"p50 {statistics.median(times):.2f} ms  p99 {p99:.2f} ms  {used:.2f} ms of gflowd an event")


class Peer:
    """runqd at its port, or why there is none: that is said in each of its rows."""

    URL = "http://localhost:59000"

    def __init__(self):
        self.missing = Runqd.missing or self._is_taken()
        self._root = None

    def _is_taken(self):
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", 59000)) == 0:
                return "another program listens at port 59000"
        return None

    def __enter__(self):
        if not self.missing:
            self._root = tempfile.TemporaryDirectory(prefix="gflow-runqd-")
            try:
                self._runqd = Runqd(Path(self._root.name))
                self.pid = next(int(pid.name) for pid in Path("/proc").iterdir() if pid.name.isdigit() and self._runqd.is_daemon(pid.name))
            except (RuntimeError, OSError, StopIteration) as error:
                self.missing = f"it did not start: {error!r}"
        return self

    def __exit__(self, *_):
        if self._root is not None:
            if not self.missing:
                self._runqd.close()
            self._root.cleanup()

    def held_job(self):
        """Waits until tomorrow: a job that is submitted on hold runs."""
        tomorrow = {"secs_since_epoch": int(time.time()) + 86_400, "nanos_since_epoch": 0}
        return {"command": "true", "gpus": 0, "run_dir": "/", "submitted_by": "daemon", "scheduled_at": tomorrow}

    def submit_held(self, count):
        if self.missing:
            return
        jobs = json.dumps([self.held_job()] * count)
        command = ["curl", "-sf", "-H", "Content-Type: application/json", "-d", "@-", self.URL + "/jobs/batch"]
        done = subprocess.run(command, input=jobs, text=True, capture_output=True, check=False)
        if done.returncode != 0 or len(json.loads(done.stdout)) != count:
            self.missing = f"it does not take {count} jobs: curl ended with {done.returncode}: {done.stdout[:200]}"

    def beside(self, ours, path, seconds, body=None):
        """Its row, with how many times as much gflow did."""
        name = f"runqd {path or ''}"
        if self.missing or path is None:
            return say(name, self.missing or "has no such route")
        try:
            load = Load(self.URL + path, self.pid, seconds, body)
        except (Refused, subprocess.CalledProcessError) as error:
            return say(name, f"not measured: {str(error).splitlines()[0]}")
        # Of medians and answers alike: by how much gflow is the faster.
        say(name, f"{load}  gflow/runqd {ours.rate / load.rate:.1f}  p50 runqd/gflow {load.median / ours.median:.1f}")


ROWS = {"reads": reads, "submissions": submissions, "listing": listing, "hand-over": hand_over, "idle": idle,
        "events": events}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--row", action="append", choices=ROWS, default=[])
    options = parser.parse_args()
    for needed in ("wrk", "curl"):
        if shutil.which(needed) is None:
            sys.exit(f"api_bench: {needed} is not installed: apt install {needed}")
    begin = os.getloadavg()[0]
    for name, row in ROWS.items():
        if not options.row or name in options.row:
            print(f"{name}:", flush=True)
            row(options.seconds)
    print(f"load average before {begin:.1f}, after {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
