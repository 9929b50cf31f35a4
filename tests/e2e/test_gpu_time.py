# SPDX-License-Identifier: Apache-2.0
"""Shares of a GPU's time, by the interposer alone: programs on the fake driver, whose GPU works for each process in turns of
two milliseconds, as one without MPS does. What each got is what that GPU says it worked for it, on a clock that goes while
all of them wait: how fast this machine is changes nothing."""

import contextlib
import fcntl
import os
import select
import signal

import pytest
from fake_gpu import GIB, UUIDS, Account, virtual_clock
from machine import PATIENCE

MILLISECOND = 1_000_000
SECOND = 1000 * MILLISECOND
LENGTH = 10 * SECOND


def launches(microseconds, at_once=16, command="keep_busy", pause=0):
    """All the time, waiting for the stream when there are so many, and then for so many microseconds."""
    return command, LENGTH // MILLISECOND, at_once, microseconds, pause


def got(programs, *commands):
    """Of the time, what each program got that does this."""
    for program, command in zip(programs, commands, strict=True):
        program.process.stdin.write(" ".join(map(str, command)) + "\n")
        program.process.stdin.flush()
    for program in programs:
        assert select.select([program.process.stdout], [], [], PATIENCE)[0]
    answers = [list(map(int, program.process.stdout.readline().split())) for program in programs]
    assert [result for result, *_ in answers] == [0] * len(commands)
    return [busy / LENGTH for _, busy in answers]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_gpu_works_for_all_programs_in_turns(gpus, count):
    clock = virtual_clock(gpus.folder / "clock", count)
    programs = [gpus.program(clock=clock) for _ in range(count)]
    for program in programs:
        program.start()
    for part in got(programs, *[launches(1000)] * count):
        assert abs(part - 1 / count) < 0.01


STRETCH = 1 << 59
LINE = STRETCH  # of those who want it; before it, who has it


@contextlib.contextmanager
def kept(turn, at=0):
    """As by a process that is stopped while it has the device."""
    with turn.open("r+") as file:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, at)
        yield


class Jobs:
    """One program of each job, with a share of the same GPU, or what is guaranteed of it and the most. With PARTIES, which
    are as many programs, on a virtual clock."""

    def __init__(self, gpus, *shares, parties=None):
        self.gpus = gpus
        self.turn = gpus.folder / "turn"
        self.clock = None if parties is None else virtual_clock(gpus.folder / "clock", parties)
        self.accounts = [
            Account(gpus.folder / f"share-{at}", {UUIDS[0]: 4 * GIB}, share, self.turn, most)
            for at, (share, most) in enumerate(part if isinstance(part, tuple) else (part, part) for part in shares)
        ]
        self.programs = []
        for account in self.accounts:
            self.start(account)

    def start(self, account):
        program = self.gpus.program(account, clock=self.clock)
        program.start()
        self.programs.append(program)
        return program

    def got(self, *commands):
        return got(self.programs, *commands)

    def end(self):
        """What they said on stderr."""
        said = [program.end() for program in self.programs]
        assert [program.process.returncode for program in self.programs] == [0] * len(said)
        return said


KERNELS = {
    "short": launches(20, 200),
    "usual": launches(200, 64),
    "long": launches(2000),
    "very long": launches(50_000, 4),
    "short, each waited for": launches(20, 1),
    "very long, each waited for": launches(50_000, 1),
}


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("kind", KERNELS)
def test_a_program_alone_gets_its_share_and_no_more(gpus, kind, share):
    jobs = Jobs(gpus, share, parties=1)
    (got,) = jobs.got(KERNELS[kind])
    assert abs(got - share) < 0.01
    assert jobs.end() == [""]


def test_graphs_count_as_what_they_take(gpus):
    jobs = Jobs(gpus, 0.5, parties=1)
    stream = jobs.programs[0].get("stream")
    graph = jobs.programs[0].get("graph", 20, 250, stream)  # of 5 ms
    (got,) = jobs.got(launches(graph, command="keep_busy_by_graph"))
    assert abs(got - 0.5) < 0.03
    assert jobs.end() == [""]


@pytest.mark.parametrize("way", range(4), ids=["plain", "extended", "cooperative", "grid"])
def test_every_way_to_launch_counts(gpus, way):
    jobs = Jobs(gpus, 0.5, parties=1)
    for _ in range(100):
        jobs.programs[0].get("launch", 3000, 0, way)
        jobs.programs[0].get("sync")
    # What the last ones took is not counted yet.
    assert 250 * MILLISECOND < jobs.accounts[0].busy() < 350 * MILLISECOND


def test_a_context_that_others_hold_is_measured_on(gpus):
    """Who gives back a primary context does not end it, nor what was launched in it."""
    jobs = Jobs(gpus, 0.5, parties=1)
    program = jobs.programs[0]
    program.get("primary", 0)
    for _ in range(100):
        program.get("primary", 0)
        program.get("launch", 3000)
        program.get("unretain", 0)
        program.get("sync")
    assert 250 * MILLISECOND < jobs.accounts[0].busy() < 350 * MILLISECOND
    assert program.get("calls", "cuEventCreate") == 1  # for one stream, however often


def test_who_has_the_whole_gpu_is_not_measured(gpus):
    jobs = Jobs(gpus, 1, parties=1)
    (got,) = jobs.got(launches(1000))
    assert got > 0.97
    assert jobs.accounts[0].busy() == 0
    assert jobs.programs[0].text("calls", "cuEventRecord") == "0 0\n"


SHARES = {
    "7 to 3": ((0.7, 0.3), (1000, 1000)),
    "9 to 1": ((0.9, 0.1), (1000, 1000)),
    "very long beside short": ((0.6, 0.3), (50_000, 1000)),
    "three": ((0.4, 0.3, 0.2), (1000, 200, 5000)),
}


@pytest.mark.parametrize("case", SHARES)
def test_jobs_that_want_all_of_it_get_their_shares(gpus, case):
    shares, kernels = SHARES[case]
    jobs = Jobs(gpus, *shares, parties=len(shares))
    got = jobs.got(*map(launches, kernels))
    for share, part in zip(shares, got, strict=True):
        assert abs(part / sum(got) - share / sum(shares)) < 0.03, got
        assert abs(part - share) < 0.03, got
    assert jobs.programs[0].get("contested", 0) == 0
    assert jobs.end() == [""] * len(shares)


GUARANTEES = {
    "3 to 1": ((0.3, 1), (0.1, 1)),
    "three, all of it": ((0.5, 1), (0.3, 1), (0.2, 1)),
    "beside a cap": ((0.3, 1), 0.2, (0.1, 1)),
    "up to a cap of its own": ((0.3, 0.5), (0.1, 1)),
}


@pytest.mark.parametrize(
    "case, expected",
    [
        ("3 to 1", (0.75, 0.25)),
        ("three, all of it", (0.5, 0.3, 0.2)),
        ("beside a cap", (0.6, 0.2, 0.2)),
        ("up to a cap of its own", (0.5, 0.5)),
    ],
)
@pytest.mark.parametrize("kernel", [200, 1000, 5000])
def test_what_nobody_is_guaranteed_is_shared_as_the_guarantees_are(gpus, case, expected, kernel):
    """And nothing of it is left."""
    jobs = Jobs(gpus, *GUARANTEES[case], parties=len(expected))
    got = jobs.got(*[launches(kernel)] * len(expected))
    assert sum(got) > 0.96, got
    for part, its in zip(got, expected, strict=True):
        assert abs(part - its) < 0.03, got
    assert jobs.end() == [""] * len(expected)


@pytest.mark.parametrize("kind", KERNELS)
def test_a_program_alone_has_all_up_to_its_limit(gpus, kind):
    (got,) = Jobs(gpus, (0.1, 1), parties=1).got(KERNELS[kind])
    assert got > (0.96 if "waited" not in kind else 0.9)


@pytest.mark.parametrize("small, kernel", [(0.1, 200_000), (0.05, 20_000), (0.01, 50_000), (0.01, 1000)])
def test_long_kernels_of_a_small_share_take_nothing_from_others(gpus, small, kernel):
    jobs = Jobs(gpus, (small, 1), (0.9, 1), parties=2)
    got = jobs.got(launches(kernel, 1), launches(1000))
    assert abs(got[0] - small / (small + 0.9)) < 0.03 and sum(got) > 0.96, got


@pytest.mark.parametrize("shares", [(0.2, 0.3, 0.5), (0.1, 0.9), (0.9, 0.1)])
def test_after_a_kernel_of_more_than_a_second_turns_come_back(gpus, shares):
    """Others go on beside it meanwhile; it pays for that."""
    jobs = Jobs(gpus, *((share, 1) for share in shares), parties=len(shares))
    jobs.programs[0].get("launch", 1_500_000)
    got = jobs.got(*[launches(1000)] * len(shares))
    for share, part in zip(shares, got, strict=True):
        assert abs(part / sum(got) - share) < 0.12, got  # 0.45 where they did not
    for said in jobs.end()[1:]:
        assert said.count("\n") == 1 and said.endswith("/turn: it is not given back by another process\n")


@pytest.mark.parametrize("old", [0, 1])
def test_what_a_job_had_while_nobody_else_wanted_it_counts_for_nothing(gpus, old):
    jobs = Jobs(gpus, (0.1, 1), (0.6, 1), parties=2)
    jobs.accounts[old].set_progress(1000 * SECOND)
    got = jobs.got(launches(1000), launches(1000))
    assert abs(got[0] - 0.1 / 0.7) < 0.03 and abs(got[1] - 0.6 / 0.7) < 0.03, got


def test_who_computes_between_kernels_keeps_what_is_guaranteed(gpus):
    """A short while: the device stays its own, which counts as use."""
    jobs = Jobs(gpus, (0.9, 1), (0.1, 1), parties=2)
    got = jobs.got(launches(1000, 1, pause=200), launches(1000))
    assert got[0] > 0.9 * 1000 / 1200 - 0.03, got


@pytest.mark.parametrize("where", ["first", "last"])
def test_who_is_stopped_in_line_is_passed(gpus, where):
    """As by a process that is stopped before it had the device."""
    jobs = Jobs(gpus, (0.7, 1), (0.3, 1), parties=2)
    with kept(jobs.turn, LINE if where == "first" else LINE + (3600 * SECOND >> 16)):
        got = jobs.got(launches(1000), launches(1000))
    assert abs(got[0] / sum(got) - 0.7) < 0.03
    assert sum(got) > 0.9
    assert jobs.programs[0].get("contested", 0) == 0
    assert jobs.end() == [""] * 2


def test_processes_of_a_job_have_one_share(gpus):
    jobs = Jobs(gpus, 0.5, parties=2)
    jobs.start(jobs.accounts[0])
    assert abs(sum(jobs.got(launches(500), launches(500))) - 0.5) < 0.03
    assert jobs.end() == [""] * 2


def test_an_idle_neighbour_keeps_nobody_waiting(gpus):
    """It had the device, and gave it back when its work was done, not when its turn was over."""
    jobs = Jobs(gpus, 0.5, 0.5, parties=2)
    got, _ = jobs.got(launches(1000), ("keep_busy", 1, 1, 1000))
    assert abs(got - 0.5) < 0.03


def test_a_killed_neighbour_gives_its_turn_back(gpus):
    """Wherever it was: with the turn, in line for it, or between."""
    jobs = Jobs(gpus, 0.5, 0.5)
    for at in range(8):
        victim = gpus.program(jobs.accounts[1])
        victim.start()
        victim.process.stdin.write("keep_busy 600000 8 1000\n")
        victim.process.stdin.flush()
        before = jobs.accounts[1].busy()
        while jobs.accounts[1].busy() <= before + at * MILLISECOND:
            jobs.programs[0].get("launch", 100)  # until it has been at it
        victim.process.send_signal(signal.SIGKILL)
        victim.process.communicate()
        jobs.programs[0].get("launch", 1000)
        jobs.programs[0].get("sync")
    assert jobs.programs[0].end() == ""


def test_a_stopped_neighbour_is_waited_for_once(gpus):
    """A second; and when it goes on its turn is everybody's again."""
    jobs = Jobs(gpus, 0.5, parties=1)
    program = jobs.programs[0]
    began = program.get("time")
    with kept(jobs.turn):
        for _ in range(100):
            program.get("launch", 1000)
            program.get("sync")
        assert SECOND < program.get("time") - began < 1.3 * SECOND
    assert not is_locked(jobs.turn)
    program.get("launch", 30_000)
    program.get("sync")
    program.get("launch", 1000)  # which waits until that is paid for
    assert is_locked(jobs.turn)
    (said,) = jobs.end()
    assert said.count("\n") == 1 and said.endswith("/turn: it is not given back by another process\n")


def test_others_have_their_shares_beside_a_stopped_one(gpus):
    """They wait for it once, a second, and then have turns among themselves."""
    jobs = Jobs(gpus, 0.7, 0.3, parties=2)
    with kept(jobs.turn):
        got = jobs.got(launches(1000), launches(1000))
    assert abs(got[0] / sum(got) - 0.7) < 0.03
    assert sum(got) > 0.85
    for said in jobs.end():
        assert said.count("\n") == 1 and said.endswith("/turn: it is not given back by another process\n")


def is_locked(file):
    """Whether a process has the first bytes of it, as the kernel tells."""
    inode = file.stat().st_ino
    with open("/proc/locks") as locks:
        return any(f":{inode} 0 " in line and "WRITE" in line for line in locks)


@pytest.mark.parametrize("spoil, words", [("remove", "No such file"), ("replace", "symbolic links")])
def test_without_its_turn_a_program_keeps_to_its_share_and_says_so(gpus, spoil, words):
    jobs = Jobs(gpus, 0.5, parties=1)
    turn = jobs.accounts[0].folder / "turn"
    turn.unlink()
    if spoil == "replace":
        turn.symlink_to(jobs.turn)
    (got,) = jobs.got(launches(1000))
    assert abs(got - 0.5) < 0.03
    (said,) = jobs.end()
    assert said.count("\n") == 1
    assert said.startswith("gflow: this process uses the GPU while others do: ") and words in said


def test_parts_of_several_gpus_are_used_without_turns(gpus):
    account = Account(gpus.folder / "share", dict.fromkeys(UUIDS, 4 * GIB), 0.5)
    clock = virtual_clock(gpus.folder / "clock", 1)
    with gpus.program(account, clock=clock) as program:
        program.start()
        _, busy = program.ask(*launches(1000))
        assert abs(busy / LENGTH - 0.5) < 0.03
        assert program.end() == ""


def test_a_kernel_that_waits_for_another_launch_gets_it(gpus):
    """After a second, which it has to pay for as any other."""
    jobs = Jobs(gpus, 0.5, parties=1)
    program = jobs.programs[0]
    began = program.get("time")
    program.get("launch", 0)  # until it is told to end
    program.get("launch", 100)
    assert 2 * SECOND < program.get("time") - began < 2.1 * SECOND
    program.get("tell", 0)
    program.get("sync")
    assert program.end() == ""


def test_captures_are_not_disturbed(gpus):
    """While a stream captures, nobody may ask what is done; what is captured waits for nothing."""
    jobs = Jobs(gpus, 0.25)
    program = jobs.programs[0]
    stream = program.get("stream")
    for _ in range(20):
        program.get("launch", 2000)
        program.get("capture", stream)
        for _ in range(50):
            program.get("launch", 1000, stream)
        program.get("captured", stream)
    assert program.end() == ""


def test_a_forked_child_has_a_gate_of_its_own(gpus):
    jobs = Jobs(gpus, 0.5)
    program = jobs.programs[0]
    program.get("launch", 1000)
    while jobs.accounts[0].busy() == 0 or is_locked(jobs.turn):
        # Until the device is idle: the fake driver cannot be forked while another thread is in it.
        assert program.process.poll() is None
    assert program.text("fork") == "0 child\n"
    program.get("context", 0)
    program.get("launch", 1000)
    program.get("sync")
    assert program.text("bye") == "no such command\n"


def test_without_its_account_a_program_runs_on(gpus):
    jobs = Jobs(gpus, 0.1, parties=1)
    program = jobs.programs[0]
    for _ in range(2):
        program.get("launch", 30_000)  # the next would wait for 300 ms
    os.truncate(jobs.accounts[0].file, 4096)
    began = program.get("time")
    for _ in range(100):
        program.get("launch", 30_000)
    program.get("sync")
    assert program.get("time") - began < 4 * SECOND
    assert program.end().endswith("account: it was cut short\n")
