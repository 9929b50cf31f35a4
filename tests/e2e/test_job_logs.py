# SPDX-License-Identifier: Apache-2.0
"""GET /api/v1/jobs/{id}/log: whole, by range, the last lines, followed."""

import json
import os
import socket
import subprocess

import pytest
from answers import Answer, Cut
from http_client import ask
from machine import Gate, as_no_root


def log_of(machine, job, query="", **headers):
    return Answer(machine.socket, f"/api/v1/jobs/{job}/log{query}", **headers)


@pytest.fixture
def written(machine):
    """A machine, a job that has ended, and what it wrote: lines of different length, no UTF-8 in one."""
    job = machine.submit("printf 'one\\n\\377two\\n\\nfour'")
    machine.wait(job)
    return machine, job, b"one\n\xfftwo\n\nfour"


def test_the_whole_log_and_parts_of_it(written):
    machine, job, text = written
    whole = log_of(machine, job)
    assert (whole.status, whole.headers["content-length"], whole.headers["accept-ranges"]) == (200, str(len(text)), "bytes")
    assert whole.headers["content-type"] == "text/plain; charset=utf-8"
    assert whole.rest() == text
    for asked, part in {"bytes=0-3": text[:4], "bytes=4-": text[4:], "bytes=-4": text[-4:], "bytes=2-999": text[2:],
                        "bytes=-999": text}.items():
        answer = log_of(machine, job, Range=asked)
        first = text.index(part)
        assert answer.status == 206, asked
        assert answer.headers["content-range"] == f"bytes {first}-{first + len(part) - 1}/{len(text)}"
        assert answer.rest() == part
    for ignored in ("lines=0-1", "bytes=0-1,3-4", "bytes=5-2", "bytes=x"):
        assert (answer := log_of(machine, job, Range=ignored)).status == 200, ignored
        assert answer.rest() == text
    for outside in (f"bytes={len(text)}-", "bytes=-0"):
        answer = log_of(machine, job, Range=outside)
        assert (answer.status, answer.headers["content-range"]) == (416, f"bytes */{len(text)}")
        assert json.loads(answer.rest())["code"] == "usage"


def test_the_head_of_a_log_tells_its_length(written):
    machine, job, text = written
    head = ask(machine, "HEAD", f"/api/v1/jobs/{job}/log")
    assert (head.status, head.headers["Content-Length"], head.body) == (200, str(len(text)), b"")
    part = ask(machine, "HEAD", f"/api/v1/jobs/{job}/log", Range="bytes=2-4")  # a range is of GET alone
    assert (part.status, part.headers["Content-Length"], part.headers["Content-Range"]) == (200, str(len(text)), None)
    followed = ask(machine, "HEAD", f"/api/v1/jobs/{job}/log?follow=true")
    assert (followed.status, followed.headers["Content-Length"]) == (200, None)


def test_logs_are_read_where_no_more_threads_can_be_had(bare):
    account, _ = as_no_root(bare)
    bare.ok(*account, "gflowd", "up", "--devices", bare.devices)
    bare.ok(*account, "gbatch", "echo here")
    bare.wait(1)
    bare.ok(*account, "prlimit", f"--pid={bare.daemon_pid()}", "--nproc=1")
    assert log_of(bare, 1).rest() == b"here\n"
    assert log_of(bare, 1, "?follow=true").rest() == b"here\n"


def test_a_log_that_cannot_be_followed_is_said_so_and_can_be_read(bare):
    own = ["unshare", "--user", "--map-root-user"]  # limits are counted for each user namespace
    if bare.run(*own, "true").code != 0:
        pytest.skip("no user namespaces here")
    bare.ok(*own, "gflowd", "up", "--devices", bare.devices)
    job = bare.submit("echo here")
    bare.wait(job)
    limit = "/proc/sys/user/max_inotify_instances"
    bare.ok("nsenter", f"--user=/proc/{bare.daemon_pid()}/ns/user", "--preserve-credentials", "sh", "-c", f"echo 0 > {limit}")
    assert log_of(bare, job).rest() == b"here\n"
    refused = log_of(bare, job, "?follow=true")
    assert (refused.status, refused.headers["retry-after"]) == (503, "5")
    assert b"cannot be followed" in refused.rest()
    bare.ok("nsenter", f"--user=/proc/{bare.daemon_pid()}/ns/user", "--preserve-credentials", "sh", "-c", f"echo 100 > {limit}")
    assert log_of(bare, job, "?follow=true").rest() == b"here\n"


def test_a_log_that_cannot_be_watched_is_followed_all_the_same(bare):
    """There may be no more files watched on this machine: then it is looked at from time to time."""
    own = ["unshare", "--user", "--map-root-user"]
    if bare.run(*own, "true").code != 0:
        pytest.skip("no user namespaces here")
    bare.ok(*own, "gflowd", "up", "--devices", bare.devices)
    gate = Gate(bare)
    job = bare.submit(f"echo one; {gate.command}; echo two; {gate.command}")
    limit = "/proc/sys/user/max_inotify_watches"
    bare.ok("nsenter", f"--user=/proc/{bare.daemon_pid()}/ns/user", "--preserve-credentials", "sh", "-c", f"echo 0 > {limit}")
    gate.reached()
    followed = log_of(bare, job, "?follow=true")
    assert followed.status == 200
    assert followed.until(b"\n") == b"one\n"
    gate.open()
    assert followed.until(b"\n") == b"two\n"
    gate.reached()
    gate.open()
    assert followed.rest() == b""  # and its end, in order


def test_who_sends_on_and_goes_away_is_noticed(bare):
    """What is sent on is read after the answer, which has no end: neither the connection nor the log stays open for it."""
    bare.environment["GFLOW_API__LISTEN"] = "127.0.0.1:0"
    bare.up()
    job = bare.submit("sleep 1000")
    bare.running(job)
    told = bare.get("/api/v1/daemon")
    host, port = told["api_url"].removeprefix("http://").rsplit(":", 1)
    ask_log = f"GET /api/v1/jobs/{job}/log?follow=true HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    descriptors = f"/proc/{told['pid']}/fd"
    with log_of(bare, job, "?follow=true").connection:
        before = len(os.listdir(descriptors))  # with what the first follower brings
        ways = [socket.create_connection((host, int(port))) for _ in range(5)] + [socket.socket(socket.AF_UNIX) for _ in range(5)]
        for one in ways[5:]:
            one.connect(str(bare.socket))
        for one in ways:
            one.sendall(ask_log)
            assert one.recv(4096).startswith(b"HTTP/1.1 200")
            one.sendall(b"G")
        bare.get("/api/v1/daemon")  # asked after: what was sent on has been seen
        assert len(os.listdir(descriptors)) >= before + 2 * len(ways)
        for one in ways:
            one.close()
        while len(os.listdir(descriptors)) > before:
            bare.get("/api/v1/daemon")


def test_so_many_logs_are_read_at_once_and_the_next_is_told_to_come_again(bare):
    """They have a quarter of the descriptors of clients, which are 30 of so few."""
    bare.ok("prlimit", "--nofile=128:128", "gflowd", "up", "--devices", bare.devices)
    job = bare.submit("echo one; exec sleep 1000")
    bare.running(job)
    followed = [log_of(bare, job, "?follow=true") for _ in range(7)]
    assert [one.status for one in followed] == [200] * 7
    for again in ("", "?follow=true", "?tail=1"):
        refused = log_of(bare, job, again)
        assert refused.status == 503 and b"as many logs are read as may be at once" in refused.rest(), again
    assert bare.get("/api/v1/daemon")["pid"] == bare.daemon_pid()
    followed.pop().connection.close()
    while (one := log_of(bare, job, "?tail=1")).status == 503:
        one.connection.close()
    assert one.status == 200 and one.rest() == b"one\n"


def test_the_last_lines(written):
    machine, job, text = written
    for lines, part in {0: b"", 1: b"four", 2: b"\nfour", 3: text[4:], 4: text, 99: text}.items():
        assert log_of(machine, job, f"?tail={lines}").rest() == part, lines
    assert log_of(machine, job, "?from=4").rest() == text[4:]
    assert log_of(machine, job, f"?from={len(text)}").rest() == b""
    assert log_of(machine, job, f"?from={len(text) + 1}").status == 416
    for wrong in ("tail=x", "tail=1&from=2", "follow=yes", "tail=1&tail=2", "lines=3"):
        answer = log_of(machine, job, f"?{wrong}")
        assert answer.status == 400, wrong
    assert log_of(machine, job, "?tail=1", Range="bytes=0-1").status == 400


def test_many_lines_are_found_from_the_end(machine):
    job = machine.submit("seq 300000")
    machine.wait(job)
    text = machine.log(job).encode()
    assert log_of(machine, job, "?tail=100000").rest() == b"".join(text.splitlines(keepends=True)[-100000:])
    assert log_of(machine, job).rest() == text


def test_a_connection_goes_on_after_a_log(written):
    machine, job, text = written
    answer = log_of(machine, job, "?follow=true")
    assert answer.rest() == text
    answer.connection.sendall(f"GET /api/v1/jobs/{job}/log HTTP/1.1\r\nHost: gflow\r\n\r\n".encode())
    assert answer._until(b"\r\n\r\n").startswith(b"HTTP/1.1 200")
    assert answer._take(len(text)) == text


def test_there_is_no_log(machine):
    waiting = machine.submit("--hold", "echo never")
    answer = log_of(machine, waiting)
    assert answer.status == 404 and b"has no log" in answer.rest()
    assert log_of(machine, 99).status == 404
    follower = log_of(machine, waiting, "?follow=true")
    machine.ok("gcancel", waiting)
    assert follower.rest() == b""


def test_following_a_job_from_before_it_starts_to_its_end(machine):
    gates = [Gate(machine, f"gate{i}") for i in range(3)]
    job = machine.submit("--hold", "; ".join(f"{gate.command}; echo line {i}" for i, gate in enumerate(gates)))
    followers = [log_of(machine, job, "?follow=true"), log_of(machine, job, "?follow=true&tail=5")]
    machine.ok("gjob", "release", job)
    old = log_of(machine, job, "?follow=true", version="1.0")
    assert (old.headers.get("transfer-encoding"), old.headers["connection"]) == (None, "close")
    for i, gate in enumerate(gates):
        gate.reached()
        gate.open()
        for follower in (*followers, old):
            assert follower.until(b"\n") == f"line {i}\n".encode()
    for follower in (*followers, old):
        assert follower.rest() == b""


def test_following_ends_with_the_daemon_and_goes_on_from_where_it_was(machine):
    first, second = Gate(machine, "first"), Gate(machine, "second")
    job = machine.submit(f"echo one; {first.command}; echo two; {second.command}; echo three")
    first.reached()
    follower = log_of(machine, job, "?follow=true")
    seen = follower.until(b"one\n")
    machine.down()
    with pytest.raises(Cut):  # not an end in order: there is more to come
        follower.rest()
    first.open()
    second.reached()
    machine.up()
    follower = log_of(machine, job, f"?follow=true&from={len(seen)}")
    assert follower.until(b"\n") == b"two\n"
    machine.kill_daemon()
    with pytest.raises((Cut, ConnectionResetError)):
        follower.rest()
    second.open()
    machine.up()
    assert log_of(machine, job, "?follow=true&from=8").rest() == b"three\n"


def test_who_does_not_read_keeps_nobody_waiting(machine):
    """A reader that stops costs a piece of the log: it is neither read ahead nor are others kept from theirs."""
    job = machine.submit("yes | head -c 50000000")
    machine.wait(job)
    before = resident(machine)
    slow = [log_of(machine, job) for _ in range(100)]
    assert all(answer.status == 200 for answer in slow)
    assert log_of(machine, job, "?tail=1").rest() == b"y\n"
    assert resident(machine) - before < 64 << 20
    quick = log_of(machine, job, Range="bytes=-1000000")
    assert len(quick.rest()) == 1000000
    for answer in slow:
        answer.close()


def resident(machine):
    with open(f"/proc/{machine.daemon_pid()}/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_log_that_is_made_shorter_meanwhile_is_cut(machine):
    job = machine.submit("yes | head -c 50000000")
    machine.wait(job)
    answer = log_of(machine, job)
    os.truncate(machine.logs / f"{job}.log", 0)
    with pytest.raises(Cut):
        answer.rest()


def test_a_log_that_is_made_shorter_while_it_is_followed_is_cut(machine):
    """Not taken for whole: what is written after it is not what followed."""
    gate = Gate(machine)
    job = machine.submit(f"echo one; echo two; {gate.command}; : > /proc/$$/fd/1; echo three")
    follower = log_of(machine, job, "?follow=true")
    follower.until(b"two\n")
    gate.reached()
    gate.open()
    with pytest.raises(Cut):
        follower.rest()


@pytest.mark.parametrize("instead", ["link", "directory", "fifo"])
def test_what_is_no_log_is_not_read(written, instead):
    machine, job, _ = written
    path = machine.logs / f"{job}.log"
    path.unlink()
    {"link": lambda: path.symlink_to("/etc/hostname"), "directory": path.mkdir, "fifo": lambda: os.mkfifo(path)}[instead]()
    for query in ("", "?follow=true", "?tail=1"):
        answer = log_of(machine, job, query)
        assert answer.status >= 400, instead
        assert "apiVersion" in json.loads(answer.rest())


def test_curl_as_the_document_has_it(machine):
    gate = Gate(machine)
    job = machine.submit(f"echo begin; {gate.command}; echo end")
    curl = subprocess.Popen(  # noqa: S603
        ["curl", "-sN", "--unix-socket", machine.socket, f"http://gflow/api/v1/jobs/{job}/log?follow=true"],
        stdout=subprocess.PIPE, text=True,
    )
    assert curl.stdout.readline() == "begin\n"
    gate.reached()
    gate.open()
    assert curl.stdout.read() == "end\n"
    assert curl.wait() == 0
