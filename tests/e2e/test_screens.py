# SPDX-License-Identifier: Apache-2.0
"""What people see: programs on a real terminal, of the sizes people have."""

import os
import re
import signal
import subprocess
import termios
from datetime import datetime, timedelta, timezone

import pytest
from commands import COMMANDS
from machine import PATIENCE
from terminal import Terminal, on_terminal, width_of

LONG = "a-name-as-long-as-people-make-them-" + "x" * 80


def fill(machine, waiting=30):
    machine.submit("--gpus", 2, "--time", "4:00:00", "--name", "runs", "sleep", "1000")
    machine.submit("--gpus", 1, "--name", LONG, "sleep", "1000")
    machine.submit("--gpus", 1, "--name", "训练任务" * 10, "sleep", "1000")
    for number in range(waiting - 2):
        machine.submit("--gpus", 1, "--name", f"waits-{number}", "sleep", "1000")
    machine.running(1)


def what_stays(text):
    """Of what is said of a moment, wherever its lines are broken: times that pass are all one."""
    joined = re.sub(r"\s", "", text)
    return re.sub(r"(\d+[dhms])+|\d\d:\d\d:\d\d", "T", joined)


class LateReader(Terminal):
    """As a test that gets no CPU until the program has ended."""

    def until(self, wanted):
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        super().until(wanted)


def test_a_terminal_loses_nothing_however_late_it_is_read(machine):
    with LateReader(machine, "printf", "first\nsecond") as terminal:
        assert terminal.ends() == 0 and terminal.screen.text() == "first\nsecond"


@pytest.mark.parametrize("columns", [40, 80, 120, 200])
def test_the_queue_fits(machine, columns):
    fill(machine)
    terminal, code = on_terminal(machine, "gqueue", "--no-pager", columns=columns, rows=60)
    text = terminal.screen.text()
    assert (code, terminal.screen.wrapped, terminal.screen.scrolled) == (0, 0, 0), text
    lines = text.splitlines()
    assert lines[0].split()[:2] == ["JOBID", "NAME"]
    assert lines[1].split()[:2] == ["1", "runs"] and lines[1].endswith(" 0,1"), text
    assert lines[2].startswith("2      a-name") and "…" in lines[2] or columns == 200, text
    assert lines[-2] == "1 running, 30 waiting", text
    assert lines[-1] == "Why it waits: gjob why 2"


def test_the_queue_stands_in_its_order_with_when_each_should_start(machine):
    """Not by number: who waits stands as it is considered; behind the first one it is told when, too, where limits say so."""
    machine.config("[scheduler]\norder = \"submission\"\n")
    machine.ok("gflowd", "reload")
    machine.submit("--gpus", 2, "--time", "1h", "sleep", "1000")
    machine.running(1)
    machine.submit("--gpus", 2, "--time", "2h", "--priority", 5, "true")
    machine.submit("--gpus", 2, "--time", "30m", "true")
    machine.submit("--gpus", 2, "true")
    terminal, _ = on_terminal(machine, "gqueue", "--no-pager", columns=100)
    # Behind midnight a start has its day: "~Sun 00:18".
    text = re.sub(r"(~\w+) (?=\d\d:)", r"\1-", terminal.screen.text())
    rows = [line.split() for line in text.splitlines()[1:5]]
    assert [row[0] for row in rows] == ["1", "3", "4", "2"], rows
    starts = [row[5] for row in rows]
    assert starts[1].startswith("~") and starts[2].startswith("~") and starts[1] != starts[2], rows
    assert starts[3] == "-", "the one ahead of it may run for ever"
    queue = machine.get("/api/v1/queue")["jobs"]
    assert [job["id"] for job in queue] == [3, 4, 2] and queue[2]["expected_start"] is None
    assert "Expected start: " in machine.ok("gjob", "why", 4)
    shown, _ = on_terminal(machine, "gjob", "show", 4, columns=100)
    lines = shown.screen.text().splitlines()
    assert any(line.startswith("  Start         expected ") for line in lines), lines
    assert lines[-1] == "Why it waits: gjob why 4", lines


@pytest.mark.parametrize("columns", [40, 80, 200])
@pytest.mark.parametrize("language", ["C.UTF-8", "zh_CN.UTF-8"])
def test_why_a_job_waits_fits(machine, columns, language):
    machine.submit("--gpus", 1, "--time", "3-0:00:00", "--name", "runs", "sleep", "1000")
    machine.submit("--gpus", 1, "--name", "has-no-limit", "sleep", "1000")
    machine.submit("--gpus", 2, "--name", "waits", "sleep", "1000")
    machine.running(2)
    chosen = {"LC_ALL": language}

    long = ("gbatch", "--dry-run", "--gpus", 1, "--array", "1-5", "--name", "a-name-of-its-own", "true")
    for words in (("gjob", "why", 3), ("gbatch", "--dry-run", "--gpus", 1, "true"), long):
        terminal, code = on_terminal(machine, *words, columns=columns, rows=60, env=chosen)
        text = terminal.screen.text()
        assert (code, terminal.screen.wrapped, terminal.screen.scrolled) == (0, 0, 0), text
        in_a_pipe = machine.ok(*words, env=chosen)
        assert what_stays(text) == what_stays(in_a_pipe), "nothing is lost"
    said = machine.ok("gbatch", "--dry-run", "--gpus", 1, "true", env={"LANG": "C.UTF-8"})
    assert "No waiting job is ahead of it." in said, "one for fewer GPUs goes first"
    said = machine.ok("gbatch", "--dry-run", "--gpus", 2, "true", env={"LANG": "C.UTF-8"})
    assert "1 waiting job is ahead of it." in said and "behind job 3" in said, said


@pytest.mark.parametrize("columns", [40, 80])
@pytest.mark.parametrize("language", ["C.UTF-8", "zh_CN.UTF-8"])
def test_what_would_be_cancelled_fits(machine, columns, language):
    fill(machine, 3)
    machine.submit("--depends-on", 2, "--name", "等待的任务", "true")
    terminal, code = on_terminal(machine, "gcancel", "--dry-run", "1-3", columns=columns, env={"LC_ALL": language})
    text = terminal.screen.text()
    assert (code, terminal.screen.wrapped) == (0, 0), text
    assert [line.split()[0] for line in text.splitlines()[1:]] == ["1", "2", "3", "5"] and "…" in text, text


@pytest.mark.parametrize("columns", [40, 80])
@pytest.mark.parametrize("language", ["C.UTF-8", "zh_CN.UTF-8"])
def test_what_is_known_of_a_job_fits(machine, columns, language):
    """But for what people copy, which the terminal itself goes on with below."""
    machine.running(machine.submit("--gpus", "20G,0.5", "--name", "训练任务", "sleep", "1000"))
    chosen = {"LC_ALL": language}
    terminal, code = on_terminal(machine, "gjob", "show", 1, columns=columns, rows=60, env=chosen)
    in_a_pipe = machine.ok("gjob", "show", 1, env=chosen)
    to_copy = [line for line in in_a_pipe.splitlines() if str(machine.root) in line]
    text = terminal.screen.text()
    assert len(to_copy) == 2 and code == 0
    assert terminal.screen.wrapped == sum((sum(map(width_of, line)) - 1) // columns for line in to_copy), text
    assert what_stays(text) == what_stays(in_a_pipe), "nothing is lost"


def test_a_name_that_is_too_long_for_the_title_is_a_line_of_its_own(machine):
    machine.running(machine.submit("--name", LONG, "sleep", "1000"))
    terminal, code = on_terminal(machine, "gjob", "show", 1, columns=80, rows=60)
    lines = terminal.screen.text().splitlines()
    assert code == 0 and lines[0].startswith("Job 1: a-name-as-long") and "…" in lines[0] and lines[0].endswith("x")
    assert "".join(lines[1:3]) == f"  Name          {LONG}", lines
    wide, _ = on_terminal(machine, "gjob", "show", 1, columns=200, rows=60)
    assert wide.screen.text().splitlines()[0] == f"Job 1: {LONG}" and "Name" not in wide.screen.text()


SCREENS = [("ginfo", "-l"), ("gctl", "show"), ("gctl", "config", "show", "gpu_config"), ("gflowd", "status"), ("gflow", "doctor"),
           ("gflow", "spec", "8G,0.5")]


@pytest.mark.parametrize("columns", [40, 80, 120])
@pytest.mark.parametrize("language", ["C.UTF-8", "zh_CN.UTF-8"])
@pytest.mark.parametrize("words", SCREENS, ids=" ".join)
def test_no_line_is_too_long_but_for_what_has_no_spaces(machine, words, columns, language):
    """A path or a UUID stays whole, to be copied; the terminal goes on with it below."""
    machine.running(machine.submit("--gpus", "20G,0.5", "--name", "训练任务" * 8, "sleep", "1000"))
    machine.ok("gctl", "drain", "gpu", 1, "--reason", "the fan is loud, and nobody has had the time to look at it yet")
    chosen = {"LC_ALL": language, "PAGER": "cat"}
    terminal, _ = on_terminal(machine, *words, columns=columns, rows=100, env=chosen)
    text = terminal.screen.text()
    in_a_pipe = machine.run(*words, env=chosen).out
    margin = 26 if words == ("gflow", "doctor") and columns > 40 else 6
    long = [len(word) + margin for word in in_a_pipe.split() if word.isascii() and len(word) + margin > columns]
    assert terminal.screen.wrapped <= sum((width - 1) // columns for width in long), text
    if language == "C.UTF-8" and words[0] not in ("gctl", "gflow"):
        assert what_stays(text) == what_stays(in_a_pipe), "nothing is lost"


@pytest.mark.parametrize("columns", [40, 80])
def test_why_a_gpu_is_drained_is_told_whole(machine, columns):
    reason = "the fan is loud and nobody has had the time to look at it yet"
    machine.ok("gctl", "drain", "gpu", 1, "--reason", reason)
    terminal, code = on_terminal(machine, "gctl", "show", columns=columns)
    text = terminal.screen.text()
    assert (code, terminal.screen.wrapped) == (0, 0), text
    assert " ".join(text.split()).endswith(reason), text


@pytest.mark.parametrize("language", ["C.UTF-8", "zh_CN.UTF-8"])
@pytest.mark.parametrize("program", COMMANDS)
def test_help_fits_a_narrow_terminal(machine, program, language):
    terminal, code = on_terminal(machine, program, "--help", columns=40, rows=1000, env={"LC_ALL": language})
    assert (code, terminal.screen.wrapped) == (0, 0), terminal.screen.text()


def test_a_queue_of_twenty_columns_still_says_where(machine):
    fill(machine, 3)
    terminal, code = on_terminal(machine, "gqueue", "--no-pager", columns=20, rows=60)
    lines = terminal.screen.text().splitlines()
    assert (code, terminal.screen.wrapped) == (0, 1), lines  # the hint at the end, which is a sentence
    assert len(lines[0].split()) == 4 and lines[1].split() == ["1", "runs", "R", "0,1"], lines
    assert lines[2].split()[2] == "PD" and lines[2].endswith("…"), lines


def test_what_programs_read_stays(machine):
    fill(machine, 3)
    out = machine.ok("gqueue")
    lines = out.splitlines()
    assert lines[0].split() == ["JOBID", "NAME", "ST", "TIME", "NODES", "NODELIST(REASON)"]
    assert LONG in lines[2] and lines[2].endswith("(Resources)")
    asked, _ = on_terminal(machine, "gqueue", "-f", "JOBID,NODES,NODELIST", env={"NO_COLOR": "1"})
    assert asked.screen.text() == machine.ok("gqueue", "-f", "JOBID,NODES,NODELIST").rstrip()
    assert asked.screen.text().startswith("JOBID    NODES    NODELIST(REASON)\n1        2        0,1\n")


@pytest.mark.parametrize("name", ["gbatch", "gflowd"])
def test_a_man_page_is_read_on_a_terminal(machine, name):
    reader = machine.work / "man"
    reader.write_text('#!/bin/sh\necho "read by man $*: $(head -c 10)"\n')
    reader.chmod(0o755)
    shown, _ = on_terminal(machine, "gflow", "man", name, env={"PATH": f"{reader.parent}:{machine.environment['PATH']}"})
    assert f"read by man -l -: .TH {name.upper()}" in shown.screen.text()


def test_times_are_those_of_the_reader(machine):
    """As of everything else a person reads, also until when GPUs are held."""
    east = timezone(timedelta(hours=8))
    earliest = datetime.now(east).replace(microsecond=0)
    shown, code = on_terminal(machine, "galloc", "--ttl", "1h", "true", columns=200, env={"TZ": "<+08>-8"})
    found = re.search(r"until (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)", shown.screen.text())
    assert code == 0 and found, shown.screen.text()
    until = datetime.strptime(found[1], "%Y-%m-%d %H:%M:%S").replace(tzinfo=east)
    assert earliest + timedelta(hours=1) <= until <= datetime.now(east) + timedelta(hours=1, seconds=1)


def test_the_pager_is_for_what_is_longer_than_the_screen(machine):
    fill(machine)
    seen = machine.work / "seen"
    pager = {"PAGER": f"cat > {seen}"}
    on_terminal(machine, "gqueue", rows=60, env=pager)
    on_terminal(machine, "gqueue", "--no-pager", env=pager)
    assert not seen.exists()
    assert "NODELIST" in machine.ok("gqueue", env=pager)
    assert not seen.exists()
    terminal, code = on_terminal(machine, "gqueue", env=pager)
    assert code == 0 and "JOBID" not in terminal.screen.text()
    assert seen.read_text().count("\n") == 34 and seen.read_text().endswith("\n1 running, 30 waiting\n")
    terminal, code = on_terminal(machine, "gqueue", rows=30, env={"PAGER": "no-such-pager"})
    assert code == 0 and "1 running, 30 waiting" in terminal.screen.text()
    terminal, code = on_terminal(machine, "gqueue", rows=30, env={"PAGER": "head -n 1"})
    assert code == 0 and terminal.screen.text().splitlines()[0].startswith("JOBID")


def watching(machine, *options, **more):
    return Terminal(machine, "gqueue", "-w", *options, **more)


def stop(terminal, how):
    """Stops the view by `how()`, and waits until it has."""
    how()
    _, status = os.waitpid(terminal.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)


def is_as_before(terminal):
    screen = terminal.screen
    return screen.other is None and screen.cursor and termios.tcgetattr(terminal.master) == terminal.before


@pytest.mark.parametrize("columns, rows", [(80, 24), (40, 12)])
def test_the_live_view_keeps_its_head_and_what_runs(machine, columns, rows):
    fill(machine)
    with watching(machine, columns=columns, rows=rows) as terminal:
        text = terminal.shows("more")
        lines = text.splitlines()
        assert len(lines) == rows, text
        assert lines[0][8:].startswith("  1 running, 30 waiting"), text
        assert lines[2].startswith("JOBID") and lines[3].split()[:2] == ["1", "runs"], text
        assert lines[-1] == f"... {31 - (rows - 4)} more", text
        machine.ok("gcancel", 30)
        terminal.shows("1 running, 29 waiting")
        assert (terminal.screen.scrolled, terminal.screen.wrapped) == (0, 0)
        terminal.press("q")
        assert terminal.ends() == 0
        assert is_as_before(terminal) and terminal.screen.text() == ""


def test_the_live_view_follows_the_size_of_the_terminal(machine):
    fill(machine)
    with watching(machine) as terminal:
        terminal.shows("... 11 more")
        terminal.resize(100, 40)
        text = terminal.shows(lambda text: "more" not in text and "waits-27" in text)
        assert len(text.splitlines()) == 34
        terminal.resize(40, 10)
        text = terminal.shows("... 25 more")
        assert len(text.splitlines()) == 10
        terminal.press("q")
        assert terminal.ends() == 0


@pytest.mark.parametrize("columns, rows, gpus", [(80, 24, 2), (40, 12, 2), (120, 10, 2), (80, 6, 0)])
def test_gtop_shows_the_gpus_above_the_queue(machine, columns, rows, gpus):
    fill(machine)
    with Terminal(machine, "gtop", columns=columns, rows=rows) as terminal:
        text = terminal.shows("more")
        lines = text.splitlines()
        assert len(lines) == rows, text
        assert lines[0][8:].startswith("  1 running, 30 waiting"), text
        assert lines[2].startswith("2 GPUs"), text
        if gpus:
            assert lines[3].split()[:2] == ["GPU", "STATUS"] and "1 runs" in lines[4] and lines[6] == "", text
            assert lines[7].startswith("JOBID") and lines[8].split()[:2] == ["1", "runs"], text
        machine.ok("gcancel", 30)
        terminal.shows("1 running, 29 waiting")
        machine.ok("gctl", "drain", "gpu", 1, "--reason", "fan")
        terminal.shows("draining")
        assert (terminal.screen.scrolled, terminal.screen.wrapped) == (0, 0)
        terminal.press("q")
        assert terminal.ends() == 0
        assert is_as_before(terminal) and terminal.screen.text() == ""


def test_gtop_needs_a_terminal(machine):
    told = machine.run("gtop")
    assert told.code == 2 and told.out == "" and "'ginfo' and 'gqueue' print once" in told.err, told
    assert machine.run("gtop", "--json").code == 2


@pytest.mark.parametrize("key, code", [("\x03", 130), ("\x1c", 131)])
def test_keys_that_end_it_leave_the_terminal_as_it_was(machine, key, code):
    fill(machine, 3)
    with watching(machine) as terminal:
        terminal.shows("3 waiting")
        terminal.press(key)
        assert terminal.ends() == code
        assert is_as_before(terminal)


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE, signal.SIGALRM, signal.SIGTERM,
                                    signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU, signal.SIGXFSZ, signal.SIGVTALRM,
                                    signal.SIGPROF, signal.SIGPOLL, signal.SIGPWR, signal.SIGRTMIN, signal.SIGRTMAX])
def test_signals_that_end_it_leave_the_terminal_as_it_was(machine, number):
    fill(machine, 3)
    with watching(machine) as terminal:
        terminal.shows("3 waiting")
        os.kill(terminal.pid, number)
        assert terminal.ends() == 128 + number
        assert is_as_before(terminal)


@pytest.mark.parametrize("number", [signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL,
                                    signal.SIGTRAP, signal.SIGSYS])
def test_a_fault_leaves_the_terminal_as_it_was(machine, number):
    fill(machine, 3)
    with watching(machine) as terminal:
        terminal.shows("3 waiting")
        os.kill(terminal.pid, number)
        # As without the view: by that signal, or with the report of a sanitizer.
        assert terminal.ends() in (-number, 1)
        assert is_as_before(terminal)


def test_a_fault_of_a_view_that_was_stopped_draws_nothing(machine):
    fill(machine, 3)
    with watching(machine) as terminal:
        terminal.shows("3 waiting")
        stop(terminal, lambda: terminal.press("\x1a"))
        os.kill(terminal.pid, signal.SIGABRT)
        os.kill(terminal.pid, signal.SIGCONT)
        assert terminal.ends() == -signal.SIGABRT
        assert terminal.raw.count(b"\x1b[?1049l") == 1 and is_as_before(terminal)


@pytest.mark.parametrize("how", ["\x1a", signal.SIGTTIN, signal.SIGTTOU])
def test_what_stops_it_gives_the_terminal_to_the_shell(machine, how):
    fill(machine, 3)
    with watching(machine) as terminal:
        terminal.shows("3 waiting")
        stop(terminal, lambda: terminal.press(how) if isinstance(how, str) else os.kill(terminal.pid, how))
        terminal.until(lambda: terminal.screen.cursor)
        assert is_as_before(terminal)
        os.kill(terminal.pid, signal.SIGCONT)
        terminal.shows("3 waiting")
        terminal.press("q")
        assert terminal.ends() == 0
        assert is_as_before(terminal)


def test_it_goes_on_whoever_stopped_it(machine):
    fill(machine, 3)
    with watching(machine) as terminal:
        terminal.shows("3 waiting")
        stop(terminal, lambda: os.kill(terminal.pid, signal.SIGSTOP))
        # As a shell does that finds itself on the second screen, and makes its line editable.
        termios.tcsetattr(terminal.master, termios.TCSANOW, terminal.before)
        os.kill(terminal.pid, signal.SIGCONT)
        terminal.until(lambda: terminal.raw.count(b"\x1b[?1049h") == 2)
        terminal.shows("3 waiting")
        terminal.press("q")
        assert terminal.ends() == 0
        assert is_as_before(terminal)


def test_one_that_was_stopped_can_be_ended(machine):
    fill(machine, 3)
    with watching(machine) as terminal:
        terminal.shows("3 waiting")
        stop(terminal, lambda: terminal.press("\x1a"))
        os.kill(terminal.pid, signal.SIGTERM)
        os.kill(terminal.pid, signal.SIGCONT)
        assert terminal.ends() == 143
        assert is_as_before(terminal)


def test_in_the_background_the_terminal_is_the_shells(machine):
    fill(machine, 3)
    # In a shell with jobs `wait` returns when one stops, which it does as it may not draw.
    shell = "set -m; gqueue -w; bg; wait %1; echo background; read line; fg"
    with Terminal(machine, "bash", "--norc", "-c", shell) as terminal:
        terminal.shows("3 waiting")
        terminal.press("\x1a")
        terminal.shows(lambda text: text.endswith("background"))
        assert terminal.screen.other is None and terminal.raw.count(b"\x1b[?1049h") == 1
        terminal.press("\n")
        terminal.shows("3 waiting")
        terminal.press("q")
        assert terminal.ends() == 0
        assert terminal.screen.other is None and terminal.screen.cursor


@pytest.mark.parametrize("mode", ["tostop", "-tostop"])
def test_one_that_is_started_in_the_background_leaves_the_terminal_alone(machine, mode):
    fill(machine, 3)
    shell = f"set -m; stty {mode}; gqueue -w & wait %1; echo background; read line; fg"
    with Terminal(machine, "bash", "--norc", "-c", shell) as terminal:
        terminal.shows(lambda text: text.endswith("background"))
        assert terminal.raw.count(b"\x1b[?1049h") == 0
        terminal.press("\n")
        terminal.shows("3 waiting")
        terminal.press("q")
        assert terminal.ends() == 0
        assert terminal.screen.other is None and terminal.screen.cursor


def test_the_live_view_answers_though_the_daemon_does_not(machine):
    fill(machine, 3)
    daemon = machine.daemon_pid()
    with watching(machine, "--interval", 1) as terminal:
        terminal.shows("3 waiting")
        os.kill(daemon, signal.SIGSTOP)
        try:
            terminal.resize(60, 20)
            terminal.shows(lambda text: "waiting\n" in text)
            terminal.press("q")
            assert terminal.ends() == 0
        finally:
            os.kill(daemon, signal.SIGCONT)


def test_the_live_view_can_be_left_though_the_daemon_never_answered(machine):
    daemon = machine.daemon_pid()
    os.kill(daemon, signal.SIGSTOP)
    try:
        with watching(machine, columns=120) as terminal:
            terminal.shows("no answer from gflowd for")
            terminal.press("q")
            assert terminal.ends() == 0
            assert is_as_before(terminal)
    finally:
        os.kill(daemon, signal.SIGCONT)


def test_the_live_view_of_no_daemon_ends_at_once(bare):
    with watching(bare) as terminal:
        assert terminal.ends() == 4
        assert is_as_before(terminal) and "start it with 'gflowd up'" in terminal.screen.text()


def test_a_watch_on_a_pipe_says_why_it_waits(machine):
    """Of one that hangs, and then of one that is gone."""
    fill(machine, 3)
    daemon = machine.daemon_pid()
    watch = subprocess.Popen(["gqueue", "-w"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             stdin=subprocess.DEVNULL, env=machine.environment, cwd=machine.work)
    try:
        assert watch.stdout.readline().startswith("JOBID")
        os.kill(daemon, signal.SIGSTOP)
        hangs = watch.stderr.readline()
        assert f"gflowd (pid {daemon}) does not answer; it is stopped (T)" in hangs, hangs
        assert hangs.endswith("; waiting for it to come back (jobs keep running)\n"), hangs
        os.kill(daemon, signal.SIGCONT)
        assert "the daemon answers again" in watch.stderr.readline()
        machine.kill_daemon()
        gone = watch.stderr.readline()
        assert "gflowd" in gone and "; waiting for it to come back (jobs keep running)" in gone, gone
    finally:
        watch.kill()
        watch.communicate()


@pytest.mark.parametrize("term", ["xterm", "dumb", ""])
def test_a_daemon_that_says_nothing_is_not_one_without_news(machine, term):
    fill(machine, 3)
    daemon = machine.daemon_pid()
    # Counts times on once an hour: what is shown meanwhile is shown because it happened.
    with watching(machine, "--interval", 3600, env={"TERM": term}) as terminal:
        terminal.shows("3 waiting")
        os.kill(daemon, signal.SIGSTOP)
        try:
            terminal.shows("no answer from gflowd for" if term == "xterm" else "waiting for it to come back")
            why = f"gflowd (pid {daemon}) does not answer; it is stopped (T): 'kill -CONT {daemon}' resumes it"
            # Where it is broken, may be within a word: that hangs on how long the pid is.
            terminal.shows(lambda text: "".join(why.split()) in "".join(text.split()))
        finally:
            os.kill(daemon, signal.SIGCONT)
        if term == "xterm":
            terminal.shows(lambda text: "no answer" not in text and "3 waiting" in text)
        else:
            terminal.shows("the daemon answers again")
        machine.ok("gcancel", 4)
        terminal.shows("2 waiting")
        terminal.press("\x03")
        assert terminal.ends() == (130 if term == "xterm" else -signal.SIGINT)


@pytest.mark.parametrize("term", ["dumb", ""])
def test_where_nothing_can_be_drawn_each_change_is_written_below(machine, term):
    fill(machine, 3)
    with watching(machine, columns=60, rows=60, env={"TERM": term}) as terminal:
        first = terminal.shows("1 running, 3 waiting")
        machine.ok("gcancel", 4)
        both = terminal.shows("1 running, 2 waiting")
        assert b"\x1b" not in terminal.raw and terminal.screen.wrapped == 0, both
    blocks = both.split("\n\n")
    assert blocks[0] == first.split("\n\n")[0] and blocks[1] == "1 running, 3 waiting", both
    for block, jobs in ((blocks[0], 4), (blocks[2], 3)):
        clock, header, *rows = block.splitlines()
        assert re.fullmatch(r"\d\d:\d\d:\d\d", clock) and header.startswith("JOBID  NAME "), both
        assert len(rows) == jobs and rows[0].split()[:3] == ["1", "runs", "R"], both


def test_the_live_view_waits_for_a_daemon_that_was_killed(machine):
    fill(machine, 3)
    with watching(machine, "--interval", 1) as terminal:
        terminal.shows("3 waiting")
        machine.kill_daemon()
        terminal.shows("no answer from gflowd for")
        machine.up()
        terminal.shows(lambda text: "no answer" not in text and "3 waiting" in text)
        terminal.press("q")
        assert terminal.ends() == 0


def test_a_watch_nobody_reads_ends(machine):
    fill(machine, 3)
    daemon = machine.daemon_pid()
    watch = subprocess.Popen(["gqueue", "-w"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             stdin=subprocess.DEVNULL, env=machine.environment, cwd=machine.work)
    assert watch.stdout.readline().startswith(b"JOBID")
    # No news comes any more, so that only the closed pipe can end it.
    os.kill(daemon, signal.SIGSTOP)
    try:
        watch.stdout.close()
        assert watch.wait(PATIENCE) == 0, watch.stderr.read()
    finally:
        os.kill(daemon, signal.SIGCONT)
        watch.stderr.close()


@pytest.mark.devices("sim:8xH100")
@pytest.mark.parametrize("columns", [40, 80, 120, 200])
def test_a_gpu_is_a_line(machine, columns):
    machine.submit("--gpus", 4, "--time", "4:00:00", "--name", LONG, "sleep", "1000")
    machine.submit("--gpus", "0.5", "--name", "half", "sleep", "1000")
    machine.submit("--gpus", 8, "--name", "waits", "sleep", "1000")
    machine.running(2)
    terminal, code = on_terminal(machine, "ginfo", columns=columns)
    text = terminal.screen.text()
    assert (code, terminal.screen.wrapped, terminal.screen.scrolled) == (0, 0, 0), text
    lines = text.splitlines()
    assert lines[0].startswith("8 GPUs") and lines[0].endswith(": 3 free, 4 in use, 1 shared"), text
    assert [line.split()[0] for line in lines[2:11]] == ["GPU", *map(str, range(8))], text
    assert "1 a-name" in lines[3] and "2 half (0.5)" in lines[7] and "free" in lines[8], text
    assert lines[-1] == "jobs: 2 running, 1 waiting"
    brief, code = on_terminal(machine, "ginfo", "-1", columns=columns)
    assert (code, brief.screen.wrapped) == (0, 0)
    assert brief.screen.text().splitlines() == lines[2:11]


@pytest.mark.devices("sim:8xH100")
def test_the_links_of_eight_gpus_fit(machine):
    for columns in (80, 40, 30):
        terminal, code = on_terminal(machine, "ginfo", "--topo", columns=columns, rows=60)
        text = terminal.screen.text()
        assert (code, terminal.screen.wrapped) == (0, 0), text
        assert ("NUMA Affinity" in text.splitlines()[0]) == (columns == 80), text
        assert text.count("NUMA Affinity") == 1 and text.count(" GPU7") == 1, text


def test_ginfo_gives_the_block_of_the_documents_where_it_is_asked_for(machine):
    machine.submit("--gpus", 1, "sleep", "1000")
    machine.running(1)
    block = machine.ok("ginfo")
    assert block.startswith("Scheduler Status: Running\nTotal GPUs: 2\nAvailable GPUs: 1\n\nGPU 0: ")
    assert machine.ok("ginfo", "--long") == block
    terminal, code = on_terminal(machine, "ginfo", "-l", rows=60, env={"NO_COLOR": "1"})
    assert (code, terminal.screen.text()) == (0, block.rstrip())
    assert machine.ok("ginfo", "-1").splitlines()[0].split() == ["GPU", "MODEL", "UTIL", "MEMORY", "STATUS"]


def test_colours_are_not_the_only_sign(machine):
    fill(machine, 3)
    for command in ("gqueue", "ginfo"):
        painted, _ = on_terminal(machine, command, env={"PAGER": "cat"})
        plain, _ = on_terminal(machine, command, env={"PAGER": "cat", "NO_COLOR": "1"})
        assert b"\x1b[3" in painted.raw and b"\x1b" not in plain.raw
        # One is a moment later than the other: how long jobs have run and when they end is left out, as wide as it was.
        shown = [re.sub(r"\b[0-9]+s(/\S+)? *|\b[0-9]{2}:[0-9]{2}\b", lambda found: "~" * len(found[0]), screen.text())
                 for screen in (painted.screen, plain.screen)]
        assert shown[0] == shown[1]
        assert (painted.screen.wrapped, painted.screen.scrolled) == (0, 0)
