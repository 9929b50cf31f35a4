#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long others wait for an answer while one user floods `gflowd --system`.

latency_bench.py [--seconds N] [--flood NAME]...: needs root (users and namespaces of its own, as tests/hostile).
bob asks for one page of one job, again and again, each time over a new connection, while mallory does her worst from
eight processes. Prints median, p99 and the longest of bob's answers for each flood, the most memory the
daemon had, and how many of mallory's requests were answered. FLOOR is the median of bob's same question to a server
that does nothing but answer, asked in turn with the daemon's. Mallory's processes are niced: what is measured is the
daemon, not how the kernel divides the CPUs among ten busy processes. The aim is a median of at most 5 ms under every
flood.
"""

import argparse
import json
import os
import signal
import socket
import statistics
import struct
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve()
SOCKET = "/run/gflow/gflowd.sock"
WORKERS = 8


# ---- in the town: what a process of a user does ------------------------------------------------------------------


def connect(patience=120, address=SOCKET):
    connection = socket.socket(socket.AF_UNIX)
    for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):  # connect(2) waits as well
        connection.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", patience, 0))
    connection.connect(address)
    return connection


def request(method, target, body=b"", more=""):
    return (f"{method} {target} HTTP/1.1\r\nHost: gflow\r\nConnection: close\r\n{more}"
            f"Content-Length: {len(body)}\r\n\r\n").encode() + body


def exchange(data, patience=120, address=SOCKET):
    with connect(patience, address) as connection:
        connection.sendall(data)
        answer = connection.recv(65536)
        while connection.recv(1 << 20):
            pass
    return int(answer.split()[1])


def job_body(count, **spec):
    item = {"spec": {"name": "flood", "work_dir": "/", "request": {"cpus": 0}, **spec}, "payload": {"argv": ["true"]}}
    return json.dumps({"items": [item] * count}).encode()


def big_lists(_):
    exchange(request("POST", "/api/v1/jobs", b"[" + b"1," * 1_000_000 + b"1]"))


def deep_lists(_):
    exchange(request("POST", "/api/v1/jobs", b"[" * 1_000_000))


def pages(_):
    exchange(request("GET", "/api/v1/jobs?limit=1000"))


def snapshots(_):
    exchange(request("GET", "/api/v1/snapshot"))


def unread_snapshots(kept):
    """Asks and does not read the answer."""
    connection = connect()
    connection.sendall(request("GET", "/api/v1/snapshot"))
    kept.append(connection)
    if len(kept) > 30:
        kept.pop(0).close()


def long_polls(_):
    """Asks to be told of news, and goes."""
    with connect() as connection:
        connection.sendall(request("GET", "/api/v1/changes?revision=999999999"))


def slow_connections(kept):
    """The start of a request, and never its end."""
    connection = connect()
    connection.sendall(b"POST /api/v1/jobs HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n[")
    kept.append(connection)
    if len(kept) > 120:
        kept.pop(0).close()


def submissions(_):
    exchange(request("POST", "/api/v1/jobs", job_body(10, hold=True)))


def starts(_):
    """Jobs that ask for nothing and can all start at once."""
    exchange(request("POST", "/api/v1/jobs", job_body(200)))


def places(_):
    size = 1 + int.from_bytes(os.urandom(4), "little")
    exchange(request("POST", "/api/v1/place", json.dumps({"request": {"gpus": 1, "memory_bytes": size}}).encode()))


def own_jobs():
    with connect() as connection:
        connection.sendall(request("GET", "/api/v1/jobs?limit=400"))
        answer = b""
        while chunk := connection.recv(1 << 20):
            answer += chunk
    return [job["id"] for job in json.loads(answer.split(b"\r\n\r\n", 1)[1])["jobs"]]


def edges(kept):
    """400 jobs that depend on 400, and their cancellation."""
    if not kept:
        kept.extend(own_jobs())
    items = [{"spec": {"name": "edge", "work_dir": "/", "request": {},
                       "dependencies": {"jobs": kept, "auto_cancel": False}}, "payload": {"argv": ["true"]}}] * 400
    exchange(request("POST", "/api/v1/jobs", json.dumps({"items": items}).encode()))


FLOODS = {flood.__name__: flood for flood in (
    big_lists, deep_lists, pages, snapshots, unread_snapshots, long_polls, slow_connections, submissions, places, edges,
    starts)}


def flood(name):
    """Until its input ends; then says how many rounds it had."""
    import select

    print("ready", flush=True)
    rounds, kept = 0, []
    while not select.select([sys.stdin], [], [], 0)[0]:
        try:
            FLOODS[name](kept)
        except OSError:
            # Turned away: that is what limits are for. A new try comes at once.
            rounds -= 1
        rounds += 1
    print(rounds, flush=True)


def answer_all(server):
    """A server that has nothing else to do."""
    while True:
        connection, _ = server.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


def asked(address):
    """Milliseconds until the answer; one that has not come after half a minute counts with that."""
    begin = time.perf_counter()
    try:
        status = exchange(request("GET", "/api/v1/jobs?limit=1"), 30, address)
        assert status == 200, status
    except OSError:
        pass
    return (time.perf_counter() - begin) * 1000


def measure(seconds):
    """Of the daemon and of a server that only answers."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("idle.sock")
        server.listen()
        if (child := os.fork()) == 0:
            answer_all(server)
    end = time.monotonic() + float(seconds)
    took, floor = [], []
    while time.monotonic() < end:
        took.append(asked(SOCKET))
        floor.append(asked("idle.sock"))
    os.kill(child, signal.SIGKILL)
    os.unlink("idle.sock")
    print(json.dumps([took, floor]))


# ---- outside -----------------------------------------------------------------------------------------------------


def prepare(town):
    """A queue as a busy machine has it: 2,000 jobs that wait, of mallory's."""
    program = town.place / "latency_bench.py"
    program.write_bytes(HERE.read_bytes())
    town.up()
    for _ in range(10):
        town.ok("mallory", "gbatch", "--hold", "--array", "1-200", "true")
    return program


def memory_mib(town):
    status = town.ok("root", "sh", "-c", "cat /proc/$(cat /var/lib/gflow/gflowd.lock)/status")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")) / 1024


def run(name, seconds):
    from town import Town

    import subprocess

    town = Town()
    try:
        program = prepare(town)
        workers = [town.start("mallory", "nice", "-n", "19", "python3", program, "--in-town", "flood", name, stdin=subprocess.PIPE)
                   for _ in range(WORKERS if name != "idle" else 0)]
        for worker in workers:
            worker.stdout.readline()
        took, floor = json.loads(town.ok("bob", "python3", program, "--in-town", "measure", seconds))
        for worker in workers:
            worker.stdin.close()
        memory = memory_mib(town)
        rounds = 0
        for worker in workers:
            try:
                worker.wait(timeout=30)
                rounds += int(worker.stdout.read() or 0)
            except subprocess.TimeoutExpired:
                pass  # its last request still waits; the town ends it
        return sorted(took), floor, memory, rounds
    finally:
        town.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--flood", action="append", choices=["idle", *FLOODS])
    parser.add_argument("--in-town", nargs="+", help=argparse.SUPPRESS)
    typed = parser.parse_args()
    if typed.in_town:
        return {"flood": flood, "measure": measure}[typed.in_town[0]](*typed.in_town[1:])
    sys.path[:0] = [str(HERE.parents[1] / "tests" / folder) for folder in ("hostile", "e2e")]
    print(f"{'flood':<18} {'median ms':>10} {'floor ms':>9} {'p99 ms':>10} {'longest ms':>11} {'answers':>8} {'MiB':>6} {'rounds':>8}")
    for name in typed.flood or ["idle", *FLOODS]:
        took, floor, memory, rounds = run(name, typed.seconds)
        print(f"{name:<18} {statistics.median(took):>10.2f} {statistics.median(floor):>9.2f} {took[int(len(took) * 0.99)]:>10.2f} {took[-1]:>11.2f} "
              f"{len(took):>8} {memory:>6.0f} {rounds:>8}", flush=True)


if __name__ == "__main__":
    main()
