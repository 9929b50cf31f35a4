# SPDX-License-Identifier: Apache-2.0
"""gqueue --start: the jobs that wait, in the order in which they should start."""

import csv
import datetime
import io
import json

import pytest
from terminal import on_terminal


@pytest.fixture
def queue(machine):
    """A job that runs, and behind it in the order of their starts 3, 4, 2, then 5 and 6, of which nothing is known."""
    machine.config('[scheduler]\norder = "submission"\n')
    machine.ok("gflowd", "reload")
    machine.running(machine.submit("--gpus", 2, "--time", "1h", "sleep", "1000"))
    machine.submit("--gpus", 2, "--time", "2h", "--priority", 5, "--name", "last", "true")
    machine.submit("--gpus", 2, "--time", "30m", "--name", "next", "true")
    machine.submit("--gpus", 2, "--time", "30m", "true")
    machine.submit("--gpus", 2, "--priority", 1, "--hold", "true")
    machine.submit("--gpus", 1, "--hold", "true")
    return machine


def listed(machine, *options):
    return machine.ok("gqueue", "--start", "-f", "JOBID", "--noheader", *options).split()


def test_those_that_wait_stand_as_they_should_start(queue):
    rows = list(csv.DictReader(io.StringIO(queue.ok("gqueue", "--start", "-o", "csv"))))
    assert list(rows[0]) == ["JOBID", "NAME", "USER", "ST", "NODES", "START", "START_BY", "NODELIST(REASON)"]
    assert [row["JOBID"] for row in rows] == ["3", "4", "2", "6", "5"]
    starts = [row["START"] for row in rows]
    assert starts[:3] == sorted(starts[:3]) and starts[3:] == ["-", "-"], rows
    moment = datetime.datetime.strptime(starts[0], "%Y-%m-%d %H:%M:%S")
    assert moment > datetime.datetime.now(), "the job that runs has an hour"
    assert rows[0]["NODELIST(REASON)"] == "(Resources)" and rows[4]["START_BY"] == "-"
    told = {one["id"]: one["expected_start"] for one in queue.get("/api/v1/queue")["jobs"]}
    assert [row["START_BY"] for row in rows[:3]] == [told[int(row["JOBID"])]["by"] for row in rows[:3]]


def test_the_order_holds_for_what_is_selected(queue):
    everyone = listed(queue)
    assert len(everyone) == 5 and everyone[:3] == ["3", "4", "2"]
    assert listed(queue, "--me") == everyone
    assert listed(queue, "--name", "last") == ["2"]
    assert listed(queue, "-n", "2") == everyone[:2] and listed(queue, "-n", "-2") == everyone[-2:]
    assert listed(queue, "-j", "2,3") == ["3", "2"]
    assert listed(queue, "-u", "nobody-of-that-name") == []
    assert queue.ok("gqueue", "--start", "-f", "{jobid} {start_by}", "-j", "5") == "5 -\n"


def test_who_names_a_job_is_told_why_it_is_not_listed(queue):
    ran = queue.run("gqueue", "--start", "-j", "1,3", "-f", "JOBID", "--noheader")
    assert (ran.code, ran.out) == (0, "3\n") and "job 1 does not wait: it is Running" in ran.err, ran
    for _ in range(3):
        queue.submit("--gpus", 0, "true")
    queue.ok("gjob", "wait", "7-9")
    ran = queue.run("gqueue", "--start", "-j", "1-9", "-f", "JOBID", "--noheader")
    assert ran.out.split() == listed(queue)
    assert [line.split("note: ")[-1] for line in ran.err.splitlines()] == [
        "job 1 does not wait: it is Running", "jobs 7-9 do not wait: they are Finished"], ran
    ran = queue.run("gqueue", "--start", "-j", "3,99", "-o", "json")
    assert ran.code == 3 and "there is no job 99" in ran.err, ran
    assert [job["id"] for job in json.loads(ran.out)["jobs"]] == [3]


def test_json_has_the_jobs_with_their_starts(queue):
    document = json.loads(queue.ok("gqueue", "--start", "--json"))
    assert (document["apiVersion"], document["kind"]) == ("gflow/v1", "WaitingJobs")
    told = {one["id"]: one["expected_start"] for one in queue.get("/api/v1/queue")["jobs"]}
    assert [job["id"] for job in document["jobs"]][:3] == [3, 4, 2]
    for job in document["jobs"]:
        start = job.pop("expected_start")
        # Each answer is worked out at its own moment, and so are the ends in its blockers.
        assert (start or {}).get("by") == (told.get(job["id"]) or {}).get("by"), job["id"]
        assert [why["text"] for why in job.pop("blockers")] == [why["text"] for why in queue.job(job["id"])["blockers"]]
        assert job == {key: queue.job(job["id"])[key] for key in job}
    lines = queue.ok("gqueue", "--start", "-o", "jsonl", "-n", "1").splitlines()
    assert [(line["kind"], line["id"]) for line in map(json.loads, lines)] == [("WaitingJob", 3)]


@pytest.mark.parametrize("columns", [40, 80])
def test_on_a_terminal_the_start_stays_however_narrow_it_is(queue, columns):
    terminal, code = on_terminal(queue, "gqueue", "--start", "--no-pager", columns=columns)
    text = terminal.screen.text()
    lines = text.splitlines()
    assert (code, terminal.screen.wrapped) == (0, 0), text
    assert "START" in lines[0] and [line.split()[0] for line in lines[1:4]] == ["3", "4", "2"], text
    assert all("~" in line for line in lines[1:4]), text
    assert "Why it waits: gjob why 3" in text


def test_what_says_another_order_or_other_jobs_is_refused(machine):
    for option in ("-a", "-c", "-t", "-g", "-w", "-sRunning", "-rname"):
        ran = machine.run("gqueue", "--start", option)
        assert ran.code == 2 and "mutually exclusive" in ran.err, ran
    ran = machine.run("gqueue", "-f", "JOBID,START")
    assert ran.code == 2 and "START" in ran.err, ran
    terminal, _ = on_terminal(machine, "gqueue", "--start")
    assert "No job waits." in terminal.screen.text()
