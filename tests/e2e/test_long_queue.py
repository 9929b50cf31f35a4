# SPDX-License-Identifier: Apache-2.0
"""A queue that is longer than a page: what is asked of the daemon is what is shown."""

import json
import re

import pytest
from http_client import ask
from relay import Relay
from terminal import Terminal, on_terminal

WAITING = 6000  # more pages than a pipe holds


@pytest.fixture
def long_queue(machine):
    """One that runs, and many that differ and wait."""
    machine.submit("--gpus", 2, "--name", "runs", "sleep", "1000")
    machine.running(1)
    first = {"spec": {"name": "waits-0", "request": {"gpus": 1}, "command": "true", "work_dir": str(machine.work)},
             "payload": {"argv": ["true"], "environment": []}}
    others = [{"like": 0, "name": f"waits-{number}", "argv": ["echo", str(number)]} for number in range(1, WAITING)]
    assert ask(machine, "POST", "/api/v1/jobs", json.dumps({"items": [first, *others]})).status == 201
    return machine


def pages_of(relay):
    return [target for target in relay.asked if target.startswith("/api/v1/jobs?")]


def ids_on(text):
    """Of the rows: the line of counts has one space behind its numbers."""
    return [int(line.split()[0]) for line in text.splitlines() if re.match(r"\d+  ", line)]


def test_a_pager_is_given_what_it_reads(long_queue):
    relay = Relay(long_queue)
    terminal, code = on_terminal(long_queue, "gqueue", env={"GFLOW_SOCKET": relay.path, "PAGER": "head -n 5"})
    # On a busy machine it may say first that it waits.
    lines = [line for line in terminal.screen.text().splitlines() if " does not answer" not in line]
    assert code == 0 and lines[0].startswith("JOBID") and ids_on("\n".join(lines)) == [1, 2, 3, 4], lines
    assert len(pages_of(relay)) <= 7, relay.asked  # of eleven: one on its way, and one that is asked for meanwhile
    assert all("fields=" in target for target in pages_of(relay)), "more than it looks at is made and read"


def test_all_of_it_is_there_once(long_queue):
    seen = long_queue.work / "seen"
    _, code = on_terminal(long_queue, "gqueue", env={"PAGER": f"cat > {seen}"})
    text = seen.read_text()
    assert code == 0 and ids_on(text) == list(range(1, WAITING + 2))
    assert text.endswith(f"\n\n1 running, {WAITING} waiting\n") and text.count("JOBID") == 1
    assert [line for line in text.splitlines() if len(re.sub(r"\x1b\[\d*m", "", line)) > 80] == []
    on_terminal(long_queue, "gqueue", "-r", "-id", env={"PAGER": f"cat > {seen}"})
    assert ids_on(seen.read_text()) == list(range(WAITING + 1, 0, -1))
    terminal, code = on_terminal(long_queue, "gqueue", env={"PAGER": "no-such-pager"})
    assert code == 0 and f"1 running, {WAITING} waiting" in terminal.screen.text()


def test_few_of_many_are_counted_as_few_of_many(long_queue):
    counts = f"3 of {WAITING + 1} jobs listed; in all: 1 running, {WAITING} waiting"
    terminal, _ = on_terminal(long_queue, "gqueue", "-n", "3")
    assert ids_on(terminal.screen.text()) == [1, 2, 3] and counts in terminal.screen.text()
    terminal, _ = on_terminal(long_queue, "gqueue", "-n", "-2", "-N", "waits-1*")
    assert re.search(r"2 of (\d+) jobs listed; in all: \1 waiting", terminal.screen.text())


def test_a_live_view_asks_for_what_has_room(long_queue):
    relay = Relay(long_queue)
    with Terminal(long_queue, "gqueue", "-w", env={"GFLOW_SOCKET": relay.path}) as terminal:
        text = terminal.shows(" more jobs")
        terminal.press("q")
        assert terminal.ends() == 0
    shown = ids_on("\n".join(text.splitlines()[2:]))
    assert f"1 running, {WAITING} waiting" in text.splitlines()[0] and shown[:2] == [1, 2]
    assert text.endswith(f"... {WAITING + 1 - len(shown)} more jobs")
    assert not any("after=" in target for target in pages_of(relay)), relay.asked


def test_programs_are_given_all_of_it_page_by_page(long_queue):
    relay = Relay(long_queue)
    asked = {"GFLOW_SOCKET": relay.path}
    assert long_queue.ok("gqueue", "-f", "{jobid}", env=asked).split() == [str(job) for job in range(1, WAITING + 2)]
    assert all(target.endswith("fields=id") or "fields=id&" in target for target in pages_of(relay)), relay.asked
    document = json.loads(long_queue.ok("gqueue", "--json"))
    assert [job["id"] for job in document["jobs"]] == list(range(1, WAITING + 2))
    assert document["next"] is None and document["jobs"][7] == {
        name: value for name, value in long_queue.job(8).items() if name not in ("apiVersion", "kind")}
