# SPDX-License-Identifier: Apache-2.0
"""Changes of more jobs than one request names: others are not kept waiting, and nothing of it is seen by who asks."""

import json
import re
import threading

import pytest
from http_client import ask
from machine import PATIENCE
from relay import Relay
from terminal import Terminal


@pytest.fixture
def tasks(machine):
    """2100 jobs on hold."""
    machine.ok("gbatch", "--hold", "--array", "1-2100", "true")
    return range(1, 2101)


def test_jobs_end_with_those_they_depend_on(machine, tasks):
    machine.submit("--depends-on", tasks[0], "true")
    assert machine.ok("gcancel", f"1-{len(tasks) + 1}") == "".join(
        f"Job {job} cancelled.\n" for job in range(1, len(tasks) + 2))
    assert machine.ok("gqueue") == machine.ok("gqueue", "-j", "1", "-s", "Running")  # the header alone


def test_those_that_cannot_keep_none_of_the_others(machine, tasks):
    ended = (5, 1500, 2100)
    machine.ok("gcancel", *ended)
    ran = machine.run("gjob", "update", "--priority", "70", f"1-{len(tasks)}")
    assert ran.code == 6
    errors = [line for line in ran.err.splitlines() if ": note: " not in line]  # a busy machine takes its time
    assert errors == [f"gjob update: job {job} has ended" for job in ended]
    assert ran.out == "".join(f"Job {job} updated successfully.\n" for job in tasks if job not in ended)
    ran = machine.run("gjob", "hold", f"1-{len(tasks)}", "--json")
    assert ran.code == 6 and json.loads(ran.out)["jobs"] == [job for job in tasks if job not in ended]


def test_those_that_end_meanwhile_cost_a_request_more(machine, tasks):
    """It used to ask for ever fewer, down to each alone: a queue of 10,000 went on starting while it was cancelled."""

    def end_every_other(target):
        if target == "/api/v1/jobs/cancel" and relay.asked.count(target) == 1:
            assert ask(machine, "POST", target, json.dumps({"jobs": list(tasks)[1::2]})).status == 200

    relay = Relay(machine, end_every_other)
    out = machine.ok("gcancel", "--me", env={"GFLOW_SOCKET": relay.path})
    assert out == "".join(f"Job {job} cancelled.\n" for job in list(tasks)[::2])
    assert relay.asked.count("/api/v1/jobs/cancel") == 6, relay.asked  # each of three parts twice
    listings = [target for target in relay.asked if target.startswith("/api/v1/jobs?")]
    assert listings and all("fields=" in target for target in listings), "more than it looks at is made and read"


def test_who_waits_long_is_told_how_far_it_is(machine, tasks):
    heard = threading.Event()

    def when_silence_was_said(target):
        if target == "/api/v1/jobs/cancel":
            assert heard.wait(PATIENCE)

    relay = Relay(machine, when_silence_was_said)
    with Terminal(machine, "gcancel", "--me", env={"GFLOW_SOCKET": relay.path}) as terminal:
        terminal.shows("does not answer")
        heard.set()
        assert terminal.ends() == 0 and re.search(rb"(?<!\d)100 of 2100 jobs so far", terminal.raw), terminal.raw  # the newest first
        assert re.findall(rb"Job (\d+) cancelled\.", terminal.raw) == [b"%d" % job for job in range(1, 20)]
        assert terminal.screen.text().endswith("\n... 2081 more"), "2100 lines of the same"


def test_more_than_the_maximum_in_one_request_is_refused(machine):
    body = {"jobs": list(range(1, 10_002))}
    for method, target in (("POST", "jobs/cancel"), ("POST", "jobs/hold"), ("PATCH", "jobs")):
        answer = ask(machine, method, f"/api/v1/{target}", json.dumps(body))
        assert answer.status == 400 and "/jobs: names 10001 jobs; the maximum is 10000" in answer.document["detail"]


def test_completion_asks_for_no_more_than_it_shows(machine):
    machine.submit("--hold", "--name", "first", "true")
    relay = Relay(machine)
    assert "1\tH first\n" in machine.ok("gcancel", "__complete", "", env={"GFLOW_SOCKET": relay.path})
    assert [target.split("&fields=")[1] for target in relay.asked] == ["user,status,spec.name"], relay.asked
