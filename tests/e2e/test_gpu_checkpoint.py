# SPDX-License-Identifier: Apache-2.0
"""The checkpoint calls of the fake driver: what one process does to another, as NVIDIA documents them."""

import os
import signal
import threading

import pytest
from fake_gpu import CONTEXT, GIB, INTERPOSER, MIB, OUT_OF_MEMORY, UUIDS, Account, stop

INVALID_VALUE, OPERATING_SYSTEM, ILLEGAL_STATE, NOT_READY, NOT_SUPPORTED, UNKNOWN = [1], [304], [401], [600], [801], [999]
RUNNING, LOCKED, CHECKPOINTED, FAILED = range(4)


class Other:
    """A program that asks the driver about another one, which need not have a context."""

    def __init__(self, gpus, target):
        self.program = gpus.program()
        self.program.get("init")
        self.pid = target.process.pid

    def ask(self, command, *numbers):
        return self.program.ask(command, self.pid, *numbers)

    def does(self, *commands):
        for command in commands:
            assert self.ask(command, 0) == [0], command

    def state(self):
        return self.program.get("state_of", self.pid)

    def used(self):
        return self.program.get("used", 0)[0]


@pytest.fixture
def target(gpus):
    with gpus.program() as program:
        program.start()
        yield program


@pytest.fixture
def other(gpus, target):
    return Other(gpus, target)


def test_memory_goes_to_the_host_and_comes_back_as_it_was(gpus, target, other):
    block = target.get("alloc", 4 * GIB)
    edge = block + 4 * GIB - 8 * MIB
    sums = [target.get("fill", block, MIB, 7), target.get("fill", edge, 8 * MIB, 9)]
    assert sums[0] != sums[1] and other.used() == 4 * GIB + CONTEXT
    assert other.state() == RUNNING
    other.does("lock")
    assert other.state() == LOCKED and other.used() == 4 * GIB + CONTEXT
    other.does("checkpoint")
    assert other.state() == CHECKPOINTED and other.used() == 0
    with gpus.program() as third:
        third.start()
        third.get("alloc", 15 * GIB)
    other.does("restore")
    assert other.state() == LOCKED and other.used() == 4 * GIB + CONTEXT
    other.does("unlock")
    assert other.state() == RUNNING
    assert [target.get("sum", block, MIB), target.get("sum", edge, 8 * MIB)] == sums
    target.get("free", block)


def test_what_is_checkpointed_is_on_the_gpu_no_more(target, other):
    """What the program reads once it goes on is what was restored, and not what had stayed."""
    block = target.get("alloc", MIB)
    filled = target.get("fill", block, MIB, 1)
    other.does("lock", "checkpoint")
    content = f"/proc/{other.pid}/fd"
    [memory] = [f"{content}/{name}" for name in os.listdir(content) if "fake device memory" in os.readlink(f"{content}/{name}")]
    assert os.stat(memory).st_size == 0
    other.does("restore", "unlock")
    assert os.stat(memory).st_size == MIB and target.get("sum", block, MIB) == filled


def test_one_that_was_refused_for_want_of_room_is_never_given_back(gpus, target, other):
    """As drivers 580 do."""
    target.get("alloc", 4 * GIB)
    other.does("lock", "checkpoint")
    with gpus.program() as third:
        third.start()
        third.get("alloc", 15 * GIB)
        assert other.ask("restore") == OUT_OF_MEMORY and other.state() == CHECKPOINTED
    assert other.ask("restore") == OPERATING_SYSTEM and other.state() == CHECKPOINTED
    assert other.ask("unlock") == ILLEGAL_STATE


def test_calls_of_a_locked_process_wait(target, other):
    other.does("lock")
    answers = []
    asks = threading.Thread(target=lambda: answers.append(target.ask("alloc", MIB)))
    asks.start()
    other.does("checkpoint", "restore")
    assert asks.is_alive() and not answers and other.used() == CONTEXT
    other.does("unlock")
    asks.join()
    assert answers[0][0] == 0 and other.used() == CONTEXT + MIB


def test_only_in_its_order(target, other):
    def refused(*commands):
        return all(other.ask(command, 0) == ILLEGAL_STATE for command in commands)

    assert refused("checkpoint", "restore", "unlock")
    other.does("lock")
    assert refused("lock", "restore")
    other.does("checkpoint")
    assert refused("lock", "checkpoint", "unlock")
    other.does("restore")
    assert refused("lock", "restore")
    other.does("unlock")
    assert other.state() == RUNNING


def test_a_lock_waits_for_what_was_launched_and_not_for_longer_than_it_is_told(target, other):
    target.get("launch", 0)
    assert other.ask("lock", 1) == NOT_READY and other.state() == RUNNING
    target.get("tell", 0)
    other.does("lock", "unlock")


def test_a_process_that_does_not_use_the_driver_has_no_state(gpus, other):
    assert other.program.ask("state_of", os.getpid()) == INVALID_VALUE
    with gpus.program() as without:
        assert other.program.ask("lock", without.process.pid, 0) == INVALID_VALUE
        without.get("init")
        assert other.program.ask("state_of", without.process.pid) == [0, RUNNING]


def test_what_cannot_be_checkpointed_is_refused(gpus, target, other):
    target.get("managed", MIB)
    other.does("lock")
    assert other.ask("checkpoint") == NOT_SUPPORTED and other.state() == LOCKED
    with gpus.program() as exports:
        exports.start()
        exports.get("export", exports.get("alloc", MIB))
        exporter = Other(gpus, exports)
        exporter.does("lock")
        assert exporter.ask("checkpoint") == NOT_SUPPORTED
    with gpus.program() as several:
        several.start(0)
        several.get("context", 1)
        on_two = Other(gpus, several)
        on_two.does("lock")
        assert on_two.ask("checkpoint") == NOT_SUPPORTED
        on_two.does("unlock")
        assert several.get("info")[1] == 16 * GIB


def test_one_that_fails_has_failed(gpus):
    gpus.file.write_text(gpus.file.read_text() + "checkpoint spoils\n")
    with gpus.program() as target:
        target.start()
        other = Other(gpus, target)
        other.does("lock")
        assert other.ask("checkpoint") == UNKNOWN and other.state() == FAILED
        assert all(other.ask(command, 0) == ILLEGAL_STATE for command in ("lock", "checkpoint", "restore", "unlock"))


def test_what_was_asked_is_done_if_who_asked_is_killed(gpus, target, other):
    """And a process that is stopped does it when it goes on: its own thread of the driver does it."""
    target.get("alloc", GIB)
    other.does("lock")
    thread = other.program.get("restore_thread_of", other.pid)
    assert os.path.exists(f"/proc/{other.pid}/task/{thread}") and thread != other.pid
    stop(other.pid)
    other.program.process.stdin.write(f"checkpoint {other.pid}\n")
    other.program.process.stdin.flush()
    watch = Other(gpus, target)
    while watch.ask("asked_of") != [0, 1]:
        pass
    assert watch.state() == LOCKED
    other.program.process.kill()
    other.program.process.wait()
    os.kill(other.pid, signal.SIGCONT)
    watch.does("restore")
    assert watch.state() == LOCKED


@pytest.mark.parametrize("how", ["proc", "dlsym", "within"])
def test_a_process_behind_the_interposer_keeps_its_account(gpus, tmp_path, how):
    account = Account(tmp_path / "share", {UUIDS[0]: 8 * GIB}, share=0.5, turn=tmp_path / "turn")
    assert INTERPOSER.exists()
    with gpus.program(account, how) as target:
        target.start()
        block = target.get("alloc", 6 * GIB)
        filled = target.get("fill", block, MIB, 3)
        target.get("launch", 100)
        other = Other(gpus, target)
        other.does("lock", "checkpoint")
        assert other.used() == 0 and account.used() == 6 * GIB
        other.does("restore", "unlock")
        assert other.used() == CONTEXT + 6 * GIB
        assert target.get("info") == [2 * GIB, 8 * GIB] and target.get("sum", block, MIB) == filled
        target.get("launch", 100)
        assert target.ask("alloc", 3 * GIB) == OUT_OF_MEMORY
        target.get("free", block)
        assert account.used() == 0
