# SPDX-License-Identifier: Apache-2.0
"""gflow-park by itself: it takes the GPU memory of all processes below a supervisor to host memory, and gives it back."""

import os
import signal
import subprocess
import threading
from pathlib import Path

import pytest
from fake_gpu import CONTEXT, GIB, MIB, OLD_FAKE, UUIDS, Account, Gpus, stop
from machine import PATIENCE
from park_job import BROKEN, DONE, EACH, FAILED, LOCKED, NO_ROOM, PARK, PARKED, REFUSED, RUNNING, UNCLEAR, USAGE, Job


@pytest.fixture
def job(gpus):
    return Job(gpus, 2)


def test_all_of_a_job_is_parked_and_comes_back(gpus, job):
    assert job.ask("park") == (DONE, f"{UUIDS[0]} {2 * EACH}\n")
    assert job.standings() == {PARKED} and job.used() == 0
    room = ("--room", f"{UUIDS[0]}={2 * EACH}")
    with gpus.program() as urgent:
        urgent.start()
        block = urgent.get("alloc", 15 * GIB)
        filled = urgent.get("fill", block, MIB, 99)
        assert job.ask("unpark", *room) == (NO_ROOM, f"GPU {UUIDS[0]} has 724M free of the 2.59G that are to come back\n")
        assert job.standings() == {PARKED} and urgent.get("sum", block, MIB) == filled
    assert job.ask("unpark", *room) == (DONE, "")
    assert job.is_as_it_was()


def test_asked_twice_it_is_done_once(job):
    assert [status for status, _ in (job.ask("park"), job.ask("park"))] == [DONE, DONE] and job.standings() == {PARKED}
    assert [job.ask("unpark"), job.ask("unpark")] == [(DONE, "")] * 2 and job.is_as_it_was()


def test_half_of_a_job_never_runs(gpus, job):
    """Room for one of two: the one that has its memory back gives it up again. The other one never gets it, as of drivers 580."""
    assert job.ask("park")[0] == DONE
    with gpus.program() as other:
        other.start()
        other.get("alloc", 13 * GIB + 512 * MIB)
        status, why = job.ask("unpark")
        assert status == NO_ROOM and why in {f"the GPU of process {pid} has no room for its memory\n" for pid in job.pids()}
        assert job.standings() == {PARKED}
    status, why = job.ask("unpark")
    assert status == BROKEN and "cannot have its GPU memory back: CUDA_ERROR" in why and job.standings() == {PARKED}


def test_what_was_parked_before_is_not_given_back_where_another_cannot_be(gpus, job):
    """Somebody else has the room meanwhile: a restore that finds none is the last."""
    first, second = job.programs
    parked = job.pids()[0]
    assert job.watch.ask("lock", parked, 0) == [0] and job.watch.ask("checkpoint", parked) == [0]
    managed = second.get("managed", MIB)
    with gpus.program() as other:
        other.start()
        other.get("alloc", 14 * GIB)
        for _ in range(2):
            status, why = job.ask("park")
            assert status == UNCLEAR and why.endswith("; all its processes wait until it is unparked\n")
            assert job.standings() == {PARKED, LOCKED}
        assert job.ask("unpark", "--room", f"{UUIDS[0]}={EACH}")[0] == UNCLEAR and job.standings() == {PARKED, LOCKED}
    assert job.ask("unpark", "--room", f"{UUIDS[0]}={EACH}") == (DONE, "") and job.standings() == {RUNNING}
    second.get("free", managed)
    assert first.get("sum", job.blocks[0], MIB) == job.sums[0] and job.is_as_it_was()


def test_one_that_the_driver_does_not_know_keeps_its_memory_and_all_run_on(gpus):
    """NVML is asked whether it is done."""
    job = Job(gpus, 2, unknown=1)
    assert job.ask("park") == (REFUSED, "processes of it have GPU memory that the driver does not take away\n")
    assert job.is_as_it_was()
    why = job.ask("park", GFLOW_NVML_LIBRARY="/none")
    assert why[0] == REFUSED and "NVIDIA driver library libnvidia-ml.so.1 is not installed" in why[1]


def test_it_becomes_the_user_it_is_told(job):
    """Who may not open the fake driver's files, or may not be become."""
    assert job.ask("park", "--user", 65534)[0] == REFUSED and job.standings() == {RUNNING}
    assert job.ask("park", "--user", os.getuid())[0] == DONE and job.standings() == {PARKED}


def test_one_that_cannot_be_parked_lets_all_run_on(job):
    job.programs[1].get("managed", MIB)
    status, why = job.ask("park")
    assert status == REFUSED and why.startswith("the driver cannot take away what process ") and "several GPUs, or memory it shares" in why
    assert job.standings() == {RUNNING}
    assert [program.get("sum", block, MIB) for program, block in zip(job.programs, job.blocks, strict=True)] == job.sums


def test_a_kernel_that_does_not_end_is_not_waited_for(job):
    job.programs[0].get("launch", 0)
    status, why = job.ask("park", seconds=20)
    assert status == REFUSED and why.endswith(" was not done with what its GPU computes after 10 s\n")
    job.programs[0].get("tell", 0)
    assert job.is_as_it_was()


def test_one_that_is_stopped_does_not_answer_and_is_found_again(job):
    """A thread of the driver in it does the work: where one is stopped nothing is begun, and it is waited for."""
    first, second = job.pids()
    stop(second)
    assert job.ask("park") == (REFUSED, f"its process {second} is stopped\n")
    os.kill(second, signal.SIGCONT)
    assert job.ask("park")[0] == DONE and job.standings() == {PARKED}
    stop(first)
    assert job.ask("unpark", seconds=1) == (UNCLEAR, "the driver did not answer within 1 s\n")
    os.kill(first, signal.SIGCONT)
    assert job.ask("unpark") == (DONE, "") and job.is_as_it_was()


def test_what_was_asked_before_and_is_done_late_is_done(job):
    """Two wait for the same process: what the second asks of it is done by then."""
    first, _ = job.pids()
    assert job.ask("park")[0] == DONE
    stop(first)
    assert job.ask("unpark", seconds=1)[0] == UNCLEAR
    second = job.begin("unpark")
    while job.watch.get("asked_of", first) < 2:
        assert second.poll() is None
    os.kill(first, signal.SIGCONT)
    assert job.answer(second) == (DONE, "") and job.is_as_it_was()


def test_no_more_is_taken_than_may_be_and_each_is_noted_before_it_is_taken(job, tmp_path):
    """Whoever is killed leaves no less in the record than was taken."""
    record = tmp_path / "record"

    def park(most, **more):
        with record.open("ab") as file:
            start_time = Path(f"/proc/{job.process.pid}/stat").read_text().rsplit(")")[1].split()[19]
            arguments = [PARK, "park", str(job.process.pid), start_time, str(PATIENCE), "--most", str(most), "--record", str(file.fileno())]
            done = subprocess.run(
                arguments, env=job.environment | more, pass_fds=[file.fileno()], capture_output=True, text=True, timeout=2 * PATIENCE, check=False
            )
        return done.returncode, done.stdout

    assert park(EACH) == (REFUSED, "its processes have 2.59G of GPU memory, and 1.29G may be taken\n")
    assert record.read_text() == "" and job.is_as_it_was()
    killed_at = 0
    noted = []
    while not noted:
        killed_at += 1
        assert park(2 * EACH, GFLOW_FAKE_CUDA_KILLED_AT=str(killed_at))[0] == -signal.SIGKILL
        noted = record.read_text().splitlines()
    each = {f"{pid} {UUIDS[0]} {EACH}" for pid in job.pids()}
    assert set(noted) <= each  # both, where what was asked before was done meanwhile
    assert job.used() >= (2 - len(noted)) * EACH
    assert park(2 * EACH) == (DONE, f"{UUIDS[0]} {EACH}\n") and job.standings() == {PARKED}
    assert len(record.read_text().splitlines()) == 2 and set(record.read_text().splitlines()) == each
    assert job.ask("unpark", "--room", f"{UUIDS[0]}={2 * EACH}") == (DONE, "") and job.is_as_it_was()


def test_one_that_the_driver_lost_is_told(gpus):
    gpus.file.write_text(gpus.file.read_text() + "checkpoint spoils\n")
    job = Job(gpus, 2)
    status, why = job.ask("park")
    assert status == BROKEN and why.startswith("the driver lost the GPU memory of process ") and "CUDA_ERROR" in why
    assert job.standings() == {RUNNING, FAILED}
    assert job.ask("park")[0] == BROKEN


@pytest.mark.parametrize("verb", ["park", "unpark"])
def test_whoever_is_killed_anywhere_is_followed_by_one_who_brings_it_on(job, verb):
    """Killed in each call of the driver; what was asked in the last one is done all the same."""
    opposite = "unpark" if verb == "park" else "park"
    assert job.ask(opposite)[0] == DONE
    call = 1
    while job.ask(verb, GFLOW_FAKE_CUDA_KILLED_AT=str(call))[0] == -signal.SIGKILL:
        then = ["park", "unpark"][call % 2]
        assert job.ask(then)[0] == DONE, call
        assert job.standings() == {PARKED} if then == "park" else job.is_as_it_was(), call
        if then == verb:
            assert job.ask(opposite)[0] == DONE, call
        call += 1
    assert call > 8
    assert job.ask("unpark")[0] == DONE and job.is_as_it_was()


def test_what_begins_to_use_the_gpu_later_is_none_of_it(gpus, job):
    """Nor is a job without GPU processes."""
    with gpus.program() as stranger:
        stranger.start()
        assert job.ask("park")[0] == DONE and job.used() == CONTEXT
        assert stranger.get("info")[1] == 16 * GIB
        assert job.ask("unpark") == (DONE, "")
    idle = subprocess.Popen(["sleep", "600"])
    try:
        job.process = idle
        assert [job.ask("park"), job.ask("unpark")] == [(DONE, "")] * 2
    finally:
        idle.kill()
        idle.wait()


def test_behind_the_interposer_the_account_stays_the_jobs(gpus, tmp_path):
    """All of the job is parked or nothing: what its processes are charged is theirs when they go on."""
    account = Account(tmp_path / "share", {UUIDS[0]: 8 * GIB}, share=0.5, turn=tmp_path / "turn")
    job = Job(gpus, 2, account)
    assert account.used() == 2 * GIB
    assert job.ask("park")[0] == DONE and job.used() == 0 and account.used() == 2 * GIB
    assert job.ask("unpark") == (DONE, "") and job.is_as_it_was()
    assert job.programs[0].get("info") == [6 * GIB, 8 * GIB]
    for program, block in zip(job.programs, job.blocks, strict=True):
        program.get("launch", 100)
        program.get("free", block)
    assert account.used() == 0


def test_one_that_launches_all_the_time_is_parked_between_two_launches(gpus, tmp_path):
    account = Account(tmp_path / "share", {UUIDS[0]: 8 * GIB}, share=0.5, turn=tmp_path / "turn")
    job = Job(gpus, 2, account)
    answers = []
    busy = threading.Thread(target=lambda: answers.append(job.programs[0].ask("keep_busy", 1000, 4, 1000)))
    busy.start()
    for _ in range(3):
        assert job.ask("park")[0] == DONE and job.used() == 0
        assert job.ask("unpark") == (DONE, "")
    busy.join()
    assert answers[0][0] == 0 and job.is_as_it_was()


def test_others_have_the_turn_of_one_that_was_parked_with_it(gpus, tmp_path):
    turn = tmp_path / "turn"
    job = Job(gpus, 1, Account(tmp_path / "share", {UUIDS[0]: 8 * GIB}, share=0.5, turn=turn))
    with gpus.program(Account(tmp_path / "other", {UUIDS[0]: 8 * GIB}, share=0.5, turn=turn)) as other:
        other.start()
        job.programs[0].get("launch", 5000)
        assert job.ask("park")[0] == DONE
        for _ in range(20):
            other.get("launch", 100)
        other.get("sync_context")
        assert job.standings() == {PARKED} and job.ask("unpark") == (DONE, "")
    job.programs[0].get("launch", 100)
    job.programs[0].get("sync_context")
    assert job.is_as_it_was()


def test_a_driver_that_cannot_is_told(tmp_path):
    gpus = Gpus(tmp_path)

    def probe(**more):
        done = subprocess.run([PARK, "probe"], env=gpus.environment | more, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    cannot_move = "the NVIDIA driver is older than 580, the first that can move a process to another GPU\n"
    assert probe() == (DONE, cannot_move)
    gpus.file.write_text(gpus.file.read_text().replace("driver 12090", "driver 13000"))
    assert probe() == (DONE, "")
    old = "the NVIDIA driver is older than 570, the first that can take the GPU memory of a process to host memory\n"
    assert probe(LD_LIBRARY_PATH=f"{OLD_FAKE}") == (REFUSED, old)
    status, why = probe(LD_LIBRARY_PATH=str(tmp_path))
    assert status == REFUSED and why.startswith("cannot load libcuda.so.1: ")


def test_a_supervisor_that_is_gone_is_told_and_so_is_what_is_not_understood(gpus):
    own = os.getpid()
    done = subprocess.run([PARK, "park", str(own), "1", "5"], env=gpus.environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (REFUSED, "the supervisor of the job is gone\n")
    understood = ["park", "1", "1", "1"]
    wrong_numbers = [["park", "x", "1", "1"], ["park", "1", "1", "0"], ["park", "1", "1", str(2**63 - 1)], ["park", str(2**32), "1", "1"]]
    wrong_numbers += [["park", "1", "1", "1", "--user", str(2**32)], ["unpark", "1", "1", "1", "--room", f"GPU={2**64 - 1}"]]
    wrong_options = [[*understood, *more] for more in (["--user"], ["--user", "me"], ["--room", "GPU=1"], ["--all", "1"])]
    wrong_options += [[*understood, "--watched", ""], ["unpark", "1", "1", "1", "--watched", "account"]]
    for words in ([], ["park"], ["stop", "1", "1", "1"], *wrong_numbers, *wrong_options):
        done = subprocess.run([PARK, *words], env=gpus.environment, capture_output=True, text=True, check=False)
        assert done.returncode == USAGE and done.stdout == "" and done.stderr.startswith("Usage: gflow-park probe\n")
