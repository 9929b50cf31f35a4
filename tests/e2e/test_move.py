# SPDX-License-Identifier: Apache-2.0
"""gflow-park by itself: what a job has of one GPU is given back to it on another one."""

import os
import signal
import subprocess

import pytest
from fake_gpu import GIB, MIB, UUIDS, Gpus
from park_job import DONE, EACH, NO_ROOM, PARK, PARKED, RUNNING, UNCLEAR, USAGE, Job

FIRST, SECOND = UUIDS
ONTO = ("--onto", f"{FIRST}={SECOND}")
IS_SO = f"GPU {FIRST} is NVIDIA H100 with 16G, and GPU {SECOND} is"
BACK = ("--back", f"{SECOND}={FIRST}")


def of_driver_580(gpus):
    gpus.file.write_text(gpus.file.read_text().replace("driver 12090", "driver 13000"))
    return gpus


@pytest.fixture
def job(gpus):
    return Job(of_driver_580(gpus), 2)


def room(gpu, amount=2 * EACH):
    return ("--room", f"{gpu}={amount}")


def used(job):
    """Of both GPUs."""
    return [job.watch.get("used", gpu)[0] for gpu in (0, 1)]


def is_on(job, gpu):
    """All of it runs there, and its memory holds what it held."""
    there = [2 * EACH if number == gpu else 0 for number in (0, 1)]
    assert job.standings() == {RUNNING} and used(job) == there
    return [program.get("sum", block, MIB) for program, block in zip(job.programs, job.blocks, strict=True)] == job.sums


def test_all_of_a_job_moves_there_and_back(job):
    assert job.ask("park")[0] == DONE
    assert job.ask("unpark", *room(SECOND), *ONTO) == (DONE, "")
    assert is_on(job, 1)
    first = job.programs[0]
    first.get("free", first.get("alloc", 5 * GIB))
    assert job.ask("park") == (DONE, f"{SECOND} {2 * EACH}\n")
    assert job.ask("unpark", *room(FIRST), "--onto", f"{SECOND}={FIRST}") == (DONE, "")
    assert is_on(job, 0)


def test_it_is_refused_where_it_cannot_be_and_all_of_it_stays_parked(gpus, job):
    assert job.ask("park")[0] == DONE
    with gpus.program() as other:
        other.start(1)
        other.get("alloc", 15 * GIB)
        assert job.ask("unpark", *room(SECOND), *ONTO) == (NO_ROOM, f"GPU {SECOND} has 724M free of the 2.59G that are to come back\n")
    unknown = "GPU-99999999-2222-3333-4444-555555555555"
    assert job.ask("unpark", "--onto", f"{FIRST}={unknown}") == (NO_ROOM, f"there is no GPU {unknown}\n")
    assert job.standings() == {PARKED}
    assert job.ask("unpark", *room(FIRST), *BACK) == (DONE, "") and is_on(job, 0)


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("driver 13000", "driver 12090", "the NVIDIA driver is older than 580, the first that can move a process to another GPU"),
        (f"{SECOND} 16384 NVIDIA H100", f"{SECOND} 16384 NVIDIA A100", f"{IS_SO} NVIDIA A100 with 16G"),
        (f"{SECOND} 16384 NVIDIA H100", f"{SECOND} 32768 NVIDIA H100", f"{IS_SO} NVIDIA H100 with 32G"),
    ],
)
def test_only_a_new_driver_moves_and_only_to_a_gpu_alike(gpus, before, after, why):
    of_driver_580(gpus).file.write_text(gpus.file.read_text().replace(before, after))
    job = Job(gpus, 2)
    assert job.ask("park")[0] == DONE
    assert job.ask("unpark", *room(SECOND), *ONTO) == (NO_ROOM, why + "\n")
    assert job.standings() == {PARKED}
    assert job.ask("unpark", *room(FIRST), *BACK) == (DONE, "") and is_on(job, 0)


def test_whoever_is_killed_anywhere_is_followed_by_one_who_brings_all_of_it_there(job):
    """Killed in each call of the driver, there and on the way back; half of it runs nowhere."""
    on, call = 0, 1
    while True:
        assert job.ask("park")[0] == DONE
        there = UUIDS[1 - on]
        onto = (*room(there), "--onto", f"{UUIDS[on]}={there}")
        if job.ask("unpark", *onto, GFLOW_FAKE_CUDA_KILLED_AT=str(call))[0] != -signal.SIGKILL:
            break
        if call % 2 == 0:
            assert job.ask("unpark", *onto) == (DONE, ""), call
            on = 1 - on
        else:
            back = ("--back", f"{there}={UUIDS[on]}")
            assert job.ask("unpark", *room(UUIDS[on]), *back) == (DONE, ""), call
        assert is_on(job, on), call
        call += 1
    assert call > 10 and is_on(job, 1 - on)


def test_what_began_to_use_the_gpu_meanwhile_moves_with_the_others(gpus):
    job = Job(of_driver_580(gpus), 2, late=1)
    assert job.ask("park") == (DONE, f"{FIRST} {EACH}\n")
    late = job.programs[1]
    late.start()
    job.blocks.append(late.get("alloc", GIB))
    job.sums.append(late.get("fill", job.blocks[1], MIB, 2))
    assert job.ask("unpark", *room(SECOND, EACH), *ONTO) == (DONE, "")
    assert is_on(job, 1)


def test_one_that_cannot_be_taken_any_more_keeps_all_where_they_were(gpus):
    """It began meanwhile, and has managed memory: the others come back to it."""
    job = Job(of_driver_580(gpus), 2, late=1)
    assert job.ask("park")[0] == DONE
    late = job.programs[1]
    late.start()
    late.get("managed", MIB)
    status, why = job.ask("unpark", *room(SECOND, EACH), *ONTO)
    assert status == UNCLEAR and why.startswith("the driver cannot take away what process ")
    assert job.ask("unpark", *room(FIRST, EACH), *BACK) == (DONE, "")
    assert job.standings() == {RUNNING} and used(job)[1] == 0
    assert job.programs[0].get("sum", job.blocks[0], MIB) == job.sums[0]


def test_what_is_not_understood_is_told(tmp_path):
    environment = Gpus(tmp_path).environment
    unpark = ["unpark", "1", "1", "1"]
    wrong = [["--onto", FIRST], ["--back", f"{FIRST}="], ["--onto"], [*ONTO, *BACK]]
    for words in (["park", "1", "1", "1", *ONTO], *[[*unpark, *more] for more in wrong]):
        done = subprocess.run([PARK, *words], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == USAGE and done.stderr.startswith("Usage: gflow-park probe\n"), words
    words = [PARK, "unpark", str(os.getpid()), "1", "5", "--onto", "a=b"]
    own = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert own.stdout == "the supervisor of the job is gone\n"
