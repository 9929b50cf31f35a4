# SPDX-License-Identifier: Apache-2.0
"""Jobs with parts of several GPUs have the turn on all of them at once (docs/design/0033), by the interposer alone: programs
on the fake driver, whose kernels may wait for one another across GPUs, on a clock that goes while all of them wait."""

import contextlib
import fcntl
import select
import signal
import threading
import time

import pytest
from fake_gpu import GIB, Account, Gpus, stop, uuids, virtual_clock
from machine import PATIENCE

MILLISECOND = 1_000_000
SECOND = 1000 * MILLISECOND
LENGTH = 4 * SECOND
COLLECTIVE = 100  # microseconds, of which one comes after each kernel


class World:
    """GPUs, and jobs with parts of some of them. PARTIES: programs that run on one virtual clock."""

    def __init__(self, folder, gpus, parties=None):
        self.gpus = Gpus(folder, count=gpus)
        self.uuids = uuids(gpus)
        self.clock = None if parties is None else virtual_clock(folder / "clock", parties)
        self.jobs = 0

    def job(self, devices, share, most=None):
        """Its account, in which the devices stand in this order."""
        self.jobs += 1
        turns = [self.gpus.folder / f"turn.{self.uuids[device]}" for device in devices]
        limits = {self.uuids[device]: 4 * GIB for device in devices}
        how = {"turn": turns[0]} if len(devices) == 1 else {"turns": turns}
        return Account(self.gpus.folder / f"job-{self.jobs}", limits, share, share_limit=most, **how)

    def process(self, account, *devices):
        """With a context on each."""
        program = self.gpus.program(account, clock=self.clock)
        program.get("init")
        program.contexts = [(program.get("context", device), device) for device in devices]
        return program


@pytest.fixture
def world(tmp_path):
    made = []

    def make(gpus, parties=None):
        made.append(World(tmp_path, gpus, parties))
        return made[-1]

    yield make
    for each in made:
        each.gpus.end()


def training(program, kernel=1000, at_once=16, circle=0, size=0, length=LENGTH):
    """Kernels on each of its GPUs all the time, and with a CIRCLE a collective of so many GPUs after each."""
    where = [word for pair in program.contexts for word in pair]
    return ["train", length // MILLISECOND, at_once, kernel, circle, size, COLLECTIVE, *where]


def computing(kernel, pause, length=LENGTH):
    """A kernel at a time on its first GPU, and so many microseconds without."""
    return ["keep_busy", length // MILLISECOND, 1, kernel, pause]


def begin(program, command):
    program.process.stdin.write(" ".join(map(str, command)) + "\n")
    program.process.stdin.flush()


def answer(program):
    assert select.select([program.process.stdout], [], [], PATIENCE)[0]
    result, *numbers = map(int, program.process.stdout.readline().split())
    assert result == 0
    return numbers


def parts(programs, *commands):
    """Of the time, what each program had of each of its GPUs, on which no two jobs had work at once."""
    for program, command in zip(programs, commands, strict=True):
        begin(program, command)
    got = [[busy / LENGTH for busy in answer(program)] for program in programs]
    assert contested(programs) == 0, got
    return [each[:-1] if command[0] == "train" else each for each, command in zip(got, commands, strict=True)]


def contested(programs):
    """Nanoseconds for which GPUs of theirs worked while several jobs had work."""
    return sum(program.get("contested", device) for program in programs for _, device in program.contexts)


def said(programs):
    return [program.end() for program in programs]


def near(got, expected, within=0.03):
    return all(abs(part - expected) < within for part in got)


@pytest.mark.parametrize("circle", [0, 2], ids=["alone", "collective"])
def test_a_job_alone_has_its_share_of_each_gpu(world, circle):
    it = world(2, parties=1)
    program = it.process(it.job([0, 1], 0.5), 0, 1)
    (got,) = parts([program], training(program, circle=circle, size=2))
    assert near(got, 0.5), got
    assert said([program]) == [""]


OPPOSITE = {
    "7 to 3": ((0.7, 1), (0.3, 1), 1000),
    "9 to 1": ((0.9, 1), (0.1, 1), 1000),
    "short kernels": ((0.7, 1), (0.3, 1), 200),
    "long kernels": ((0.7, 1), (0.3, 1), 5000),
    "no more than that": ((0.7, 0.7), (0.3, 0.3), 1000),
    "not all of it": ((0.3, 0.3), (0.4, 0.4), 1000),
}


@pytest.mark.parametrize("case", OPPOSITE)
def test_two_jobs_on_the_same_gpus_in_opposite_order(world, case):
    """A kernel of a collective waits on one GPU for that on the other."""
    *shares, kernel = OPPOSITE[case]
    it = world(2, parties=2)
    programs = [it.process(it.job(order, *share), 0, 1) for order, share in zip(([0, 1], [1, 0]), shares, strict=True)]
    commands = [training(program, kernel, circle=2 + at, size=2) for at, program in enumerate(programs)]
    got = parts(programs, *commands)
    assert near(got[0], shares[0][0]) and near(got[1], shares[1][0]), got
    assert said(programs) == [""] * 2


def test_one_beside_a_job_on_one_of_its_gpus(world):
    it = world(2, parties=2)
    gang = it.process(it.job([0, 1], 0.6, 1), 0, 1)
    single = it.process(it.job([1], 0.4, 1), 1)
    got = parts([gang, single], training(gang, circle=2, size=2), training(single))
    assert near(got[0], 0.6) and near(got[1], 0.4), got
    assert said([gang, single]) == [""] * 2


@pytest.mark.parametrize("share", [0.5, 0.7])
def test_a_process_for_each_of_four_gpus_beside_a_greedy_job_on_each(world, share):
    """As torchrun starts them, with a collective each millisecond."""
    it = world(4, parties=8)
    account = it.job([0, 1, 2, 3], share, 1)
    ranks = [it.process(account, device) for device in range(4)]
    singles = [it.process(it.job([device], 1 - share, 1), device) for device in range(4)]
    commands = [training(rank, circle=2, size=4) for rank in ranks] + [training(single) for single in singles]
    got = parts(ranks + singles, *commands)
    for rank in got[:4]:
        assert near(rank, share), got
    for single in got[4:]:
        assert near(single, 1 - share), got
    assert said(ranks + singles) == [""] * 8


@pytest.mark.parametrize("is_beside_another", [False, True], ids=["alone", "beside another"])
def test_kernels_of_a_process_that_are_longer_than_a_turn_count(world, is_beside_another):
    """Whoever leads, has done its own and begins anew meanwhile."""
    it = world(2, parties=2 + is_beside_another)
    account = it.job([0, 1], 0.5)
    programs = [it.process(account, device) for device in range(2)]
    for program in programs:
        program.get("alloc", 1)  # so it is known from the beginning that both are used
    commands = [computing(1000, 500), training(programs[1], kernel=100_000, at_once=1)]
    if is_beside_another:
        programs.append(it.process(it.job([1], 0.5, 1), 1))
        commands.append(training(programs[2]))
    got = parts(programs, *commands)
    assert near(got[1], 0.5, 0.05), got
    assert said(programs) == [""] * len(programs)


@pytest.mark.parametrize("quick", [computing(1000, 200), None], ids=["now and then", "all the time"])
def test_who_waits_for_one_gpu_is_seen_in_the_line_of_the_other(world, quick):
    """Also by those who did not wait for it, as it did not take theirs for longer than they wait for anybody."""
    it = world(2, parties=4)
    account = it.job([0, 1], 0.5, 1)
    programs = [it.process(account, device) for device in range(2)]
    programs += [it.process(it.job([device], 0.5, 1), device) for device in range(2)]
    commands = [computing(1000, 7000)] * 2 + [training(programs[2], 45_000, 1), quick or training(programs[3])]
    got = parts(programs, *commands)
    assert got[0][0] > 0.01, got
    assert said(programs) == [""] * 4


@contextlib.contextmanager
def suspended_in_line(world, device):
    """As by a process that came before all others, and is stopped since."""
    with (world.gpus.folder / f"turn.{world.uuids[device]}").open("r+") as file:
        fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB, 1, 1 << 59)
        yield


@pytest.mark.parametrize("gangs", [1, 2])
def test_one_that_is_suspended_in_line_keeps_a_job_from_its_gpus_for_a_second(world, gangs):
    it = world(2, parties=gangs + 1)
    jobs = [it.process(it.job([0, 1], 0.6 / gangs, 1), 0, 1) for _ in range(gangs)]
    greedy = it.process(it.job([0], 0.4, 1), 0)
    with suspended_in_line(it, 0):
        got = parts([*jobs, greedy], *[training(job, at_once=1) for job in jobs], training(greedy, at_once=1))
    assert all(part > 0.35 / gangs for job in got[:-1] for part in job), got
    assert said([*jobs, greedy]) == [""] * (gangs + 1)


def test_who_waits_long_for_the_last_of_its_gpus_is_not_taken_for_stopped(world):
    it = world(2, parties=3)
    gang = it.process(it.job([0, 1], 0.5, 1), 0, 1)
    slow = it.process(it.job([1], 0.5, 1), 1)
    waits = it.process(it.job([0], 0.5, 1), 0)
    gang.get("alloc", 1)  # so it is known from the beginning that it uses both
    commands = [training(gang, 600_000, at_once=1), training(slow, 600_000, at_once=1), training(waits)]
    parts([gang, slow, waits], *commands)
    assert said([gang, slow, waits]) == [""] * 3


def test_three_jobs_in_a_ring(world):
    """Each with a GPU in common with each of the others."""
    it = world(3, parties=3)
    rings = [[0, 1], [1, 2], [2, 0]]
    programs = [it.process(it.job(ring, 0.5, 1), *ring) for ring in rings]
    got = parts(programs, *[training(program, circle=2 + at, size=2) for at, program in enumerate(programs)])
    # Of any two of them one has a turn at a time.
    for job in got:
        assert near(job, 1 / 3), got
    assert said(programs) == [""] * 3


def test_a_job_takes_turns_only_on_gpus_that_it_uses(world):
    it = world(2, parties=2)
    gang = it.process(it.job([0, 1], 0.5, 1), 0)
    single = it.process(it.job([1], 0.5, 1), 1)
    got = parts([gang, single], training(gang), training(single))
    assert got[0][0] > 0.95 and got[1][0] > 0.95, got
    assert said([gang, single]) == [""] * 2


def test_ranks_that_are_not_alike(world):
    """One has a kernel more in each round, and one is asked for all of its launches at once."""
    it = world(2, parties=3)
    account = it.job([0, 1], 0.5, 1)
    ranks = [it.process(account, device) for device in range(2)]
    single = it.process(it.job([1], 0.5, 1), 1)
    commands = [training(ranks[0], kernel=0, circle=2, size=2), training(ranks[1], circle=2, size=2)]
    got = parts([*ranks, single], *commands, training(single))
    assert near(got[1], 0.5) and near(got[2], 0.5), got
    assert said([*ranks, single]) == [""] * 3


def test_sixteen_gpus(world):
    it = world(16, parties=2)
    everything = list(range(16))
    programs = [it.process(it.job(order, share, 1), *everything)
                for order, share in ((everything, 0.7), (everything[::-1], 0.3))]
    got = parts(programs, *[training(program, 2000, circle=2 + at, size=16) for at, program in enumerate(programs)])
    assert near(got[0], 0.7) and near(got[1], 0.3), got
    assert said(programs) == [""] * 2


def test_several_processes_on_one_gpu_have_one_share(world):
    it = world(2, parties=4)
    account = it.job([0, 1], 0.5, 1)
    ranks = [it.process(account, 0), it.process(account, 0), it.process(account, 1)]
    single = it.process(it.job([0], 0.5, 1), 0)
    got = parts([*ranks, single], *map(training, [*ranks, single]))
    assert abs(got[0][0] + got[1][0] - 0.5) < 0.03 and near(got[3], 0.5), got
    assert said([*ranks, single]) == [""] * 4


def busy_until(program, account, index, nanoseconds):
    """Launches until a GPU was used for so much longer."""
    before = account.busy(index)
    while account.busy(index) < before + nanoseconds:
        program.get("launch", 500)
        program.get("sync")


@pytest.mark.parametrize("victims", [[0], [1], [0, 1]])
def test_killed_members_keep_nobody_waiting(world, victims):
    """Whoever of them leads, wherever it was."""
    it = world(2)
    account, other = it.job([0, 1], 0.5, 1), it.job([0], 0.5, 1)
    single = it.process(other, 0)
    for at in range(4):
        ranks = [it.process(account, device) for device in range(2)]
        for rank in ranks:
            begin(rank, training(rank, length=3600 * SECOND))
        busy_until(single, other, 0, (at + 1) * 5 * MILLISECOND)
        for victim in victims:
            ranks[victim].process.send_signal(signal.SIGKILL)
            ranks[victim].process.wait()
        busy_until(single, other, 0, 20 * MILLISECOND)
        for victim in {0, 1} - set(victims):
            # The other goes on alone.
            before = account.busy(victim)
            while account.busy(victim) < before + 20 * MILLISECOND:
                single.get("launch", 100)
            ranks[victim].process.kill()
            ranks[victim].process.wait()
    assert single.end() == ""


@pytest.mark.parametrize("which", [0, 1])
def test_a_stopped_member_keeps_nobody_waiting_for_ever(world, which):
    it = world(2)
    account, other = it.job([0, 1], 0.5, 1), it.job([0], 0.5, 1)
    single = it.process(other, 0)
    ranks = [it.process(account, device) for device in range(2)]
    for rank in ranks:
        begin(rank, training(rank, length=3600 * SECOND))
    busy_until(single, other, 0, 10 * MILLISECOND)
    stop(ranks[which].process.pid)
    busy_until(single, other, 0, 50 * MILLISECOND)
    before = account.busy(1 - which)
    while account.busy(1 - which) < before + 20 * MILLISECOND:
        single.get("launch", 100)
    ranks[which].process.send_signal(signal.SIGCONT)
    before = account.busy(which)
    while account.busy(which) < before + 20 * MILLISECOND:
        single.get("launch", 100)


@pytest.mark.parametrize("how", ["killed", "ended"])
def test_what_others_launched_counts_when_the_one_that_leads_ends(world, how):
    it = world(2)
    account = it.job([0, 1], 0.5)
    leader, other = (it.process(account, device) for device in range(2))
    for program in (leader, other):
        program.get("alloc", 1)  # so it is known from the beginning that both are used
    leader.get("launch", 0)  # until it is told to end
    other.get("launch", 300_000)
    if how == "killed":
        leader.process.kill()
        leader.process.wait()
    else:
        leader.end()
    other.get("sync")
    latest = time.monotonic() + PATIENCE
    while account.busy(1) < 290 * MILLISECOND and time.monotonic() < latest:
        time.sleep(0.01)
    assert 290 * MILLISECOND <= account.busy(1) < 3 * SECOND
    assert other.end() == ""


@pytest.mark.parametrize("first", [0, 1])
def test_who_was_stopped_with_the_one_that_leads_waits_for_it(world, first):
    it = world(2)
    account = it.job([0, 1], 0.5, 1)
    ranks = [it.process(account, device) for device in range(2)]
    for rank in ranks:
        begin(rank, training(rank, length=3600 * SECOND))
    for _ in range(3):
        before = account.busy(1)
        while account.busy(1) < before + 20 * MILLISECOND:
            time.sleep(0.01)
        for rank in ranks:
            stop(rank.process.pid)
        time.sleep(1.1)
        for rank in (ranks[first], ranks[1 - first]):
            rank.process.send_signal(signal.SIGCONT)
            time.sleep(0.05)
    for rank in ranks:
        rank.process.kill()
        assert rank.process.communicate()[1] == ""


def test_an_account_of_an_older_gflow_is_used_without_turns(world):
    it = world(2, parties=1)
    account = Account(it.gpus.folder / "old", dict.fromkeys(it.uuids, 4 * GIB), 0.5)
    program = it.process(account, 0, 1)
    (got,) = parts([program], training(program))
    assert near(got, 0.5), got
    assert said([program]) == [""]


@pytest.mark.parametrize("spoil", ["cut", "other"])
def test_without_its_file_each_gpu_is_kept_by_itself(world, spoil):
    it = world(2, parties=1)
    account = it.job([0, 1], 0.5)
    gang = account.folder / "gang"
    gang.write_bytes(b"" if spoil == "cut" else bytes(len(gang.read_bytes())))
    program = it.process(account, 0, 1)
    (got,) = parts([program], training(program))
    assert near(got, 0.5), got
    assert "gang cannot be used" in program.end()


def test_a_file_that_is_cut_short_ends_nobody(world):
    it = world(2)
    account = it.job([0, 1], 0.9)
    program = it.process(account, 0, 1)
    thread = threading.Timer(0.2, lambda: (account.folder / "gang").write_bytes(b""))
    thread.start()
    begin(program, training(program, length=SECOND))
    answer(program)
    assert "gang cannot be used" in program.end()
    assert program.process.returncode == 0
