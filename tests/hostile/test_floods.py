# SPDX-License-Identifier: Apache-2.0
"""More than is good for one machine: what one user has too much of, the others still have.

How fast others are answered meanwhile is measured by bench/latency_bench.py.
"""

import collections
import json
import re
import subprocess

import pytest
from town import SOCKET


def still_well(town):
    """Somebody else is answered, and gets a GPU."""
    job = town.submit("bob", "--gpus", "1", "true")
    (ended,) = town.ended(job)
    assert ended["status"] == "Finished", ended


def test_connections_of_one_user_leave_room_for_others(town):
    holder = town.start("mallory", "python3", town.place / "syscalls.py", "hold_connections", SOCKET, "5000",
                        stdin=subprocess.PIPE)
    held = int(holder.stdout.readline())
    still_well(town)
    holder.stdin.close()
    assert 0 < held <= 5000
    assert holder.wait() == 0


def resident(town, figure="VmRSS"):
    """MiB that gflowd has in memory, or had at most ("VmHWM")."""
    daemon = town.get("root", "/api/v1/daemon")["pid"]
    status = town.ok("root", "cat", f"/proc/{daemon}/status")
    return int(re.search(rf"^{figure}:\s+(\d+) kB$", status, re.MULTILINE).group(1)) // 1024


def test_polls_that_nobody_waits_for_leave_nothing(town):
    """A hundred thousand of them: others are answered all the while, and gflowd is as large as before."""
    before = resident(town)
    revision = town.get("root", "/api/v1/jobs?limit=1")["revision"]
    flood = town.start("mallory", "python3", town.place / "syscalls.py", "abandon_polls", SOCKET, revision, "100000")
    answered = 0
    while flood.poll() is None:
        assert town.get("root", "/api/v1/daemon")["mode"] == "system"
        answered += 1
    assert flood.communicate() == (b"100000\n", b"") and answered > 10
    assert resident(town) < before + 128  # one that waits takes over 3 KiB: all of them would be 300 MiB
    still_well(town)


def test_many_large_bodies_at_once_are_taken_as_far_as_there_is_room(town):
    """800 MiB that one user sends: 64 MiB of that is taken in at a time, the rest is told to come again."""
    before = resident(town)
    flood = town.start("mallory", "python3", town.place / "syscalls.py", "large_bodies", SOCKET, "50", 16 << 20)
    while flood.poll() is None:
        assert town.get("root", "/api/v1/daemon")["mode"] == "system"
    statuses = collections.Counter(flood.communicate()[0].split())
    # None is refused but for four that are taken in.
    assert sum(statuses.values()) == 50 and set(statuses) <= {b"400", b"429"} and statuses[b"400"] >= 4, statuses
    assert resident(town, "VmHWM") < before + 512
    still_well(town)


@pytest.mark.parametrize("body", [
    b"[" * 100_000, b"[" + b"1," * 1_000_000 + b"1]", b'{"items":' + b"[" * 5000, b"\xff\xfe" * 1000, b"{" * 10,
    b'{"items":[' + b"{}," * 200_000 + b"{}]}", b'"' + b"\\u0000" * 100_000 + b'"', b'{"a":1e999999999}', b"",
], ids=["deep", "many numbers", "deep items", "no text", "cut", "many items", "zeros", "huge number", "nothing"])
@pytest.mark.parametrize("target", ["jobs", "jobs/cancel", "place"])
def test_a_body_that_makes_no_sense_is_refused(town, body, target):
    text = (f"POST /api/v1/{target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
            f"Content-Length: {len(body)}\r\n\r\n").encode() + body
    ran = town.python("mallory", "talk", SOCKET, input=text)
    assert ran.out.split()[1] in ("400", "413", "422", "507"), ran
    assert town.get("bob", "/api/v1/daemon")["mode"] == "system"


def test_a_queue_full_of_one_users_jobs(town):
    ids = [int(line.split()[-1]) for _ in range(5) for line in
           town.ok("mallory", "gbatch", "--gpus", "2", "--array", "1-200", "sleep", "infinity").splitlines()
           if line.startswith("Submitted")]
    assert ids
    job = town.submit("bob", "--name", "small", "true")
    (ended,) = town.ended(job)
    assert ended["status"] == "Finished"
    page = json.loads(town.ok("bob", "gqueue", "-u", "all", "-o", "json"))
    assert page
    town.ok("mallory", "gcancel", "--me")
    still_well(town)


def test_a_job_that_makes_processes_and_signals_everything(town):
    """kill -1, a fork storm held by its own limit, signals to the daemon and to shims."""
    daemon = town.get("root", "/api/v1/daemon")["pid"]
    job = town.script("mallory", f"""#!/bin/bash
        for signal in KILL TERM HUP STOP INT 40 41 42; do
          kill -$signal {daemon} 2>/dev/null && echo "could signal the daemon"
          kill -$signal $PPID 2>/dev/null && echo "could signal the shim"
        done
        python3 {town.place}/syscalls.py processes 200
        """)
    (ended,) = town.ended(job)
    assert "could" not in town.log(job)
    assert ended["status"] in ("Failed", "Finished"), ended
    assert town.get("root", "/api/v1/daemon")["pid"] == daemon
    assert town.run("root", "pgrep", "-u", "mallory", "sleep").code == 1, "something of the job is left"
    still_well(town)
