# SPDX-License-Identifier: Apache-2.0
"""gstats beside what happened: jobs whose GPUs, ends and times are known from the start."""

import json

import pytest
from clock import Clock
from http_client import ask
from machine import Gate, Machine
from terminal import on_terminal


@pytest.fixture
def machine():
    made = Machine("sim:2xRTX3090")
    try:
        made.up()
        yield made
    finally:
        made.close()


def rows(machine, *options):
    """Of the table: {name: {column: cell}}."""
    head, *lines = [line.split() for line in machine.ok("gstats", *options).splitlines()]
    return {cells[0]: dict(zip(head[1:], cells[1:], strict=True)) for cells in lines}


def test_who_used_what_is_counted_from_the_jobs(machine):
    for project, command in (("vision", "true"), ("vision", "false"), ("speech", "true")):
        machine.wait(machine.submit("-P", project, "--gpus", "1", command))
    gate = Gate(machine)
    held = machine.submit("--gpus", "0.5", "-P", "speech", "bash", "-c", gate.command)
    gate.reached()
    machine.submit("--hold", "-P", "speech", "true")
    by_project = rows(machine, "--by", "project")
    assert {name: (row["ENDED"], row["FAILED"], row["RUNNING"], row["WAITING"], row["GPUS"])
            for name, row in by_project.items()} == {
        "vision": ("2", "1", "0", "0", "0"), "speech": ("1", "0", "1", "1", "0.5")}
    assert list(rows(machine, "--by", "none")) == ["all"]
    assert rows(machine, "-P", "vision", "--by", "none")["all"]["ENDED"] == "2"
    assert rows(machine, "--me", "--by", "none")["all"]["ENDED"] == "3"
    assert rows(machine, "-u", "nobody", "--by", "none")["all"]["ENDED"] == "0"
    assert rows(machine, "--since", "1d", "--until", "1h", "--by", "none")["all"]["ENDED"] == "0"
    # As the jobs themselves have it.
    told = json.loads(machine.ok("gstats", "--json", "--by", "project"))
    vision, = (part for part in told["parts"] if part["name"] == "vision")
    seconds = [machine.job(job)["run_time_seconds"] for job in (1, 2)]
    assert vision["run_time_seconds"]["count"] == 2
    assert sum(seconds) <= vision["gpu_seconds"] < sum(seconds) + len(seconds)  # each in whole seconds, cut off
    gate.open()
    machine.wait(held)


def test_what_ran_and_was_cancelled_while_it_waited_again_is_counted(machine):
    gate, ahead = Gate(machine), Gate(machine, "ahead")
    first = machine.submit("--gpus", "2", "--preemptible", "--priority", "5", "bash", "-c", gate.command)
    gate.reached()
    second = machine.submit("--gpus", "2", "--priority", "200", "--time", "1h", "bash", "-c", ahead.command)
    ahead.reached()
    assert machine.job(first)["status"] == "Queued"
    machine.ok("gcancel", first)
    told = json.loads(machine.ok("gstats", "--json"))["total"]
    assert told["gpu_seconds"] > 0 and told["run_time_seconds"]["count"] == 0
    ahead.open()
    machine.wait(second)


def test_an_attempt_counts_by_what_was_asked_for_it(machine):
    """Also after another request, and a restart of the daemon."""
    gate, ahead = Gate(machine), Gate(machine, "ahead")
    first = machine.submit("-P", "first", "--gpus", "2", "--preemptible", "--priority", "5", "bash", "-c", gate.command)
    gate.reached()
    second = machine.submit("--gpus", "2", "--priority", "200", "--time", "1h", "bash", "-c", ahead.command)
    ahead.reached()
    machine.ok("gjob", "update", first, "--gpus", "0.5")
    machine.kill_daemon()
    machine.up()
    served, = (job["served_seconds"] for job in json.loads(machine.ok("gctl", "snapshot"))["jobs"] if job["id"] == first)
    machine.ok("gcancel", first)
    assert json.loads(machine.ok("gstats", "--json", "-P", "first"))["total"]["gpu_seconds"] == pytest.approx(2 * served) != 0
    ahead.open()
    machine.wait(second)


def test_a_clock_that_is_set_makes_no_wait_longer(bare):
    clock = Clock(bare)
    bare.up()
    gate = Gate(bare)
    first = bare.submit("--gpus", "1", "bash", "-c", gate.command)
    gate.reached()
    second = bare.submit("--depends-on", first, "true")
    clock.set(10 * 86400)
    gate.open()
    bare.wait(second)
    waits = json.loads(bare.ok("gstats", "--json", "--since", "all"))["total"]["wait_seconds"]
    assert waits["count"] == 2 and waits["max"] < 3600
    metrics = ask(bare, "GET", "/metrics").body.decode()
    waited, = (line.split()[1] for line in metrics.splitlines() if line.startswith("gflow_job_wait_seconds_sum"))
    assert float(waited) < 3600


def test_since_when_all_that_ended_is_known_is_told(bare):
    """Also by the next gflowd: what was forgotten is in no sum."""
    bare.config("[scheduler]\nmax_ended = 1\n")
    bare.up()

    def told():
        return json.loads(bare.ok("gstats", "--json", "--since", "all"))
    ends = [bare.wait(bare.submit("true"))[0]["ended"] for _ in range(2)]
    assert told()["known_since"] is None
    ends += [bare.wait(bare.submit("true"))[0]["ended"] for _ in range(3)]
    bare.submit("--hold", "true")
    known = told()
    counted = known["total"]["states"]["Finished"]
    assert 1 <= counted < len(ends) and known["known_since"] == ends[-counted - 1]
    bare.kill_daemon()
    bare.up()
    assert told()["known_since"] == known["known_since"]
    terminal, _ = on_terminal(bare, "gstats")
    assert "gflow has forgotten some that ended until" in " ".join(terminal.screen.text().split())


def test_what_runs_counts_with_what_it_held_until_now(machine):
    gate = Gate(machine)
    job = machine.submit("--gpus", "1", "bash", "-c", gate.command)
    gate.reached()
    total = json.loads(machine.ok("gstats", "--json", "--since", "1h"))["total"]
    assert 0 < total["gpu_seconds"] == round(total["gpu_seconds"], 3)
    gate.open()
    machine.wait(job)
    answer = ask(machine, "GET", "/api/v1/statistics?since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z")
    assert answer.status == 400 and answer.document["detail"] == "until is not later than since"


def test_a_project_may_have_any_name(machine):
    """Also that of the totals on a terminal, and of what has no project."""
    for project in ("all", "(none)"):
        machine.wait(machine.submit("-P", project, "true"))
    machine.wait(machine.submit("true"))
    assert {name: row["ENDED"] for name, row in rows(machine, "--by", "project").items()} == {"all": "1", "(none)": "1", "-": "1"}
    assert rows(machine, "--by", "none")["all"]["ENDED"] == "3"


def test_a_terminal_reads_chinese(machine):
    me = machine.wait(machine.submit("true"))[0]["user"]["name"]
    chinese = {"LC_ALL": "zh_CN.UTF-8"}
    lines = on_terminal(machine, "gstats", columns=150, env=chinese)[0].screen.text().splitlines()
    head, row = (next(line for line in lines if line.startswith(name)) for name in ("用户", me))
    assert head.split()[1:4] == ["结束", "失败", "运行"] and row.split()[1] == "1"
    assert machine.run("gstats", env=chinese).out.startswith("USER "), "what programs read is English"


def test_who_is_asked_for_and_has_no_jobs_is_named(machine):
    me = machine.wait(machine.submit("true"))[0]["user"]["name"]

    def words_of(*options):
        terminal, code = on_terminal(machine, "gstats", *options)
        assert code == 0
        return [line for line in terminal.screen.text().splitlines() if line.startswith("No jobs")]
    assert words_of("-u", f"nosuch,{me},other") == ["No jobs of nosuch, other."]
    assert words_of("-u", "nosuch", "--by", "none", "--since", "all") == ["No jobs of nosuch."]
    assert words_of("-P", "nosuch") == ["No jobs."]
    assert words_of() == words_of("--me") == []


@pytest.mark.parametrize("options, words", [
    (["--since", "soon"], "'soon' is not a time"),
    (["--since", "2026-02-30"], "'2026-02-30' is not a time; write 2h"),
    (["--until", "-5h"], "'-5h' is not a time; write 2h"),
    (["--since", "1h", "--until", "2h"], "--until is not later than --since"),
    (["--by", "week"], "week"),
    (["--me", "-u", "bob"], "--me"),
    (["bob"], "unexpected argument"),
    (["--user", ""], "--user names nothing; leave it out, or name one"),
    (["--group", ""], "--group names nothing"),
    (["-P", ""], "--project names nothing"),
])
def test_what_it_cannot_answer_is_said(machine, options, words):
    ran = machine.run("gstats", *options)
    assert ran.code == 2 and words in ran.err and ran.out == ""


def test_a_filter_that_says_nothing_is_refused(machine):
    for option in ("--user", "--group", "--project", "--names", "--states"):
        ran = machine.run("gqueue", option, "")
        assert ran.code == 2 and f"{option} names nothing" in ran.err and ran.out == ""
    for route in ("jobs", "statistics", "groups"):
        answer = ask(machine, "GET", f"/api/v1/{route}?user=")
        assert answer.status == 400 and answer.document["detail"].startswith("user is empty")
