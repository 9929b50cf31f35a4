# SPDX-License-Identifier: Apache-2.0
"""GET /api/v1/events: what happens, as it happens, and what happened meanwhile."""

import itertools
import json
import sqlite3
import threading

import pytest
from answers import Answer, Cut
from http_client import ask
from machine import Gate


class Events:
    """One stream. Iterates over what is told: (id or None, type, data)."""

    def __init__(self, machine, query="", **headers):
        self.answer = Answer(machine.socket, f"/api/v1/events{query}", **headers)
        self.text = b""
        self.last = None

    def block(self):
        while b"\n\n" not in self.text:
            piece = self.answer.read()
            if not piece:
                raise StopIteration
            self.text += piece
        block, self.text = self.text.split(b"\n\n", 1)
        return dict(line.split(": ", 1) for line in block.decode().splitlines() if ": " in line)

    def hello(self):
        first = self.block()
        assert set(first) == {"retry", "id"}, first
        self.last = int(first["id"])
        return self.last

    def __iter__(self):
        return self

    def __next__(self):
        while "data" not in (fields := self.block()):
            pass
        data = json.loads(fields["data"])
        assert data["type"] == fields["event"]
        assert fields.get("id") == (str(data["id"]) if "id" in data else None)
        if "id" in data:
            assert data["id"] > self.last
            self.last = data["id"]
        return data

    def until(self, job, kind):
        """What is told up to that."""
        told = []
        for event in self:
            told.append(event)
            if (event.get("job"), event["type"]) == (job, kind):
                return told
        raise AssertionError(told)


def listen(machine, query="", **headers):
    events = Events(machine, query, **headers)
    assert events.answer.status == 200, events.answer.head
    assert events.answer.headers["content-type"] == "text/event-stream"
    events.hello()
    return events


def kinds(events, job):
    return [event["type"] for event in events if event.get("job") == job]


def test_the_life_of_a_job_is_told(machine):
    events = listen(machine)
    gate = Gate(machine)
    job = machine.submit("--hold", "--gpus", "1", "--name", "train", f"{gate.command}; exit 3")
    machine.ok("gjob", "update", job, "--priority", "5")
    machine.ok("gjob", "release", job)
    gate.reached()
    gate.open()
    told = [event for event in events.until(job, "job.ended") if event.get("job") == job]
    assert [event["type"] for event in told] == [
        "job.submitted", "job.changed", "job.released", "job.starting", "job.started", "job.ended"]
    assert [event["status"] for event in told] == ["Hold", "Hold", "Queued", "Starting", "Running", "Failed"]
    assert [event["attempt"] for event in told] == [0, 0, 0, 1, 1, 1]
    first, last = told[0], told[-1]
    assert (first["kind"], first["name"], first["allocation"], first["node"], first["gpu_indices"], first["outcome"]) == (
        "JobEvent", "train", False, None, [], None)
    assert (last["gpu_indices"], last["outcome"]) == ([0], {"reason": "exited", "exit_code": 3, "signal": 0})
    assert last["status"] == machine.job(job)["status"]


def test_what_is_asked_for_is_told(machine):
    jobs = listen(machine, "?job=2-3,9")
    ends = listen(machine, "?type=job.ended,job.held")
    nobody = listen(machine, "?user=nobody-here")
    for _ in range(4):
        machine.wait(machine.submit("true"))
    assert kinds(jobs.until(2, "job.ended"), 2) == ["job.submitted", "job.starting", "job.started", "job.ended"]
    assert {event["job"] for event in jobs.until(3, "job.ended")} == {3}
    assert [event["job"] for event in ends.until(4, "job.ended")] == [1, 2, 3, 4]
    assert nobody.text == b""
    by_now = listen(machine, "?follow=false&type=job.ended&job=1")
    assert [event["job"] for event in by_now] == [1]
    for wrong, near in {"type=job.endet": "did you mean 'job.ended'", "job=x": "x", "follow=1": "follow", "after=x": "after"}.items():
        answer = Answer(machine.socket, f"/api/v1/events?{wrong}")
        assert answer.status == 400 and near in answer.rest().decode(), wrong
    answer = Answer(machine.socket, "/api/v1/events", Last_Event_ID="yesterday")
    assert answer.status == 400 and b"Last-Event-ID" in answer.rest()


def test_what_becomes_of_a_node_is_told(machine):
    events = listen(machine, "?type=node.changed")
    for drain in ({"reason": "dust"}, {"gpu": 1, "reason": "fan"}, {"resume": True}, {"gpu": 1, "resume": True}):
        assert ask(machine, "POST", "/api/v1/drain", json.dumps(drain)).status == 200
    told = list(itertools.islice(events, 4))
    assert [(one["change"], one["gpu"], one["reason"]) for one in told] == [
        ("drained", None, "dust"), ("drained", 1, "fan"), ("resumed", None, None), ("resumed", 1, None)]
    assert {one["node"] for one in told} == {machine.get("/api/v1/nodes")["nodes"][0]["name"]}
    assert "id" not in told[0] and told[0]["by"]


def test_a_stream_ends_in_order_when_gflowd_stops(machine):
    events = listen(machine)
    job = machine.submit("true")
    events.until(job, "job.ended")
    machine.down()
    with pytest.raises(StopIteration):
        while True:
            events.block()


def test_nothing_is_lost_and_nothing_told_twice_over_kills(machine):
    """What a client sees that comes back after each kill is what the database says happened."""
    events = listen(machine)
    begin, seen, gates, jobs = events.last, [], [], []
    for round in range(4):
        gates.append(Gate(machine, f"gate{round}"))
        jobs.append(machine.submit(gates[-1].command))
        jobs += [machine.submit("true") for _ in range(3)]
        gates[-1].reached()
        if round == 1:  # what is read and what is on the way
            seen += events.until(jobs[-1], "job.submitted")
        machine.kill_daemon()
        if round % 2:
            gates[-1].open()
        with pytest.raises((Cut, ConnectionResetError, StopIteration)):
            while True:
                seen.append(next(events))
        machine.up()
        events = listen(machine, Last_Event_ID=str(events.last))
    for gate in (gates[0], gates[2]):
        gate.open()
    machine.wait(*jobs)
    for job in jobs:
        if not any(event["job"] == job and event["type"] == "job.ended" for event in seen if "job" in event):
            seen += events.until(job, "job.ended")
    told = [event for event in seen if "job" in event]
    again = [event for event in listen(machine, f"?after={begin}&follow=false") if "job" in event]
    assert told == again[:len(told)]
    ids = [event["id"] for event in again]
    assert ids == list(range(begin + 1, begin + 1 + len(ids)))
    for job in jobs:
        steps = kinds(again, job)
        assert (steps[0], steps[-1]) == ("job.submitted", "job.ended"), steps
        # One that ended while there was no daemon was never seen to run; one that had not begun by then starts once more.
        assert [steps.count(step) for step in ("job.submitted", "job.ended")] == [1, 1], steps
        assert steps.count("job.starting") == 1 + steps.count("job.requeued"), steps
        assert steps.count("job.started") <= 1, steps
        last = [event for event in again if event["job"] == job][-1]
        now = machine.job(job)
        assert last["status"] == now["status"]
        assert last["outcome"] == {name: now["outcome"][name] for name in ("reason", "exit_code", "signal")}


def test_who_listened_before_the_first_job_goes_on_after_a_restart(machine):
    begin = listen(machine).last
    for _ in range(2):
        machine.kill_daemon()
        machine.up()
        events = listen(machine, Last_Event_ID=str(begin))
    job = machine.submit("true")
    seen = events.until(job, "job.ended")
    assert next(event["id"] for event in seen if "id" in event) == begin + 1


def test_what_is_not_known_any_more_is_gone(machine):
    """Also an id that there was not yet, as of a database that was lost."""
    machine.wait(machine.submit("true"))
    newest = listen(machine).last
    machine.kill_daemon()
    with sqlite3.connect(machine.state / "gflow.db") as database:
        rows = database.execute("SELECT first, count FROM events ORDER BY first").fetchall()
        assert sum(count for _, count in rows) == 4
        assert rows[-1][0] + rows[-1][1] - 1 == newest
        database.execute("DELETE FROM events WHERE first < ?", (rows[-1][0],))
    database.close()
    machine.up()
    assert listen(machine, Last_Event_ID=str(rows[-1][0] - 1))
    assert listen(machine, f"?after={newest}")
    for gone in (rows[0][0], newest + 1, 2**64 - 1, 0):
        answer = Answer(machine.socket, "/api/v1/events", Last_Event_ID=str(gone))
        problem = json.loads(answer.rest())
        assert (answer.status, problem["code"]) == (410, "not_found"), gone
        assert problem["after"] == newest and f"after={newest}" in problem["detail"]


def test_a_large_submission_is_told_in_pieces_and_trimmed(machine):
    """More than is kept: those who were away too long are told so, those who follow miss nothing."""
    events = listen(machine, "?type=job.submitted")
    begin = events.last
    count = 0

    def read():
        nonlocal count
        for event in events:
            count += 1
            if event["name"] == "last":
                return

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(7):
        machine.ok("gbatch", "--hold", "--array", "1-10000", "true")
    machine.ok("gbatch", "--hold", "--name", "last", "true")
    reader.join()
    assert count == 70001
    answer = Answer(machine.socket, "/api/v1/events", Last_Event_ID=str(begin))
    assert answer.status == 410
    answer.close()
    kept = list(listen(machine, "?follow=false"))
    assert 60000 < len(kept) <= 65536


def test_who_does_not_read_is_dropped_and_comes_back(machine):
    slow = listen(machine)
    seen = slow.last
    for _ in range(8):
        machine.ok("gbatch", "--hold", "--array", "1-10000", "true")
    with pytest.raises((StopIteration, Cut)):  # in order, and not all; or cut off as it took so long
        while True:
            next(slow)
    assert slow.last > seen
    answer = Answer(machine.socket, "/api/v1/events", Last_Event_ID=str(slow.last))
    assert answer.status == 410
    newest = json.loads(answer.rest())["after"]
    again = listen(machine, f"?after={newest}")
    job = machine.submit("true")
    assert again.until(job, "job.ended")


def test_a_browser_is_told_when_to_come_back_and_that_all_is_well(machine):
    answer = Answer(machine.socket, "/api/v1/events")
    assert answer.read().startswith(b"retry: 1000\nid: ")
    old = Answer(machine.socket, "/api/v1/events", version="1.0")
    assert "transfer-encoding" not in old.headers
    assert old.read().startswith(b"retry: 1000\n")
    machine.wait(machine.submit("true"))
    assert b"event: job.submitted\nid: " in old.until(b"\n\n")


def test_many_listen(machine):
    """As many as one user may: each is told all of it, in order."""
    streams = [listen(machine) for _ in range(200)]
    jobs = [machine.submit("true") for _ in range(5)]
    machine.wait(*jobs)
    told = [[event["id"] for event in events.until(jobs[-1], "job.ended")] for events in streams]
    shortest = min(map(len, told))
    assert shortest >= 4 and len({tuple(ids[:shortest]) for ids in told}) == 1
    for events in streams:
        events.answer.close()
    assert machine.get("/api/v1/daemon")["pid"]
