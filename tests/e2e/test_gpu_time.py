# SPDX-License-Identifier: Apache-2.0
"""Programs on the fake driver, whose GPU works for each process in turns of two milliseconds, as one without MPS does, on a
clock that goes while all of them wait: how fast this machine is changes nothing."""

import select

import pytest
from fake_gpu import Gpus, virtual_clock
from machine import PATIENCE

MILLISECOND = 1_000_000
SECOND = 1000 * MILLISECOND
LENGTH = 10 * SECOND


@pytest.fixture
def gpus(tmp_path):
    made = Gpus(tmp_path)
    yield made
    made.end()


def launches(microseconds, at_once=16, command="keep_busy"):
    """All the time, waiting for the stream when there are so many."""
    return command, LENGTH // MILLISECOND, at_once, microseconds


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
