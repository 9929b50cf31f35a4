# SPDX-License-Identifier: Apache-2.0
"""gjob move: gflowd, gflow-park and jobs on the machine of tests/fake_cuda, whose driver restores on another GPU."""

import contextlib

import pytest
from fake_gpu import CONTEXT, GIB, MIB, UUIDS
from terminal import on_terminal
from test_parked_jobs import GpuJob, becomes, parking

EACH = GIB + CONTEXT
WHOLE = ("--gpus", "1", "--gpu-memory", "4G")
MOVE = ("gjob", "move", "--running-only")
THIRD = "GPU-aaaaaaaa-2222-3333-4444-555555555555"


def start(machine):
    machine.up()
    becomes(lambda: parking(machine) is not None)


def killed(machine):
    machine.kill_daemon()
    start(machine)


def up(machine, driver="13000", more=""):
    """Jobs start on its first GPU; the others may be moved to later."""
    file = machine.fake.file
    file.write_text(file.read_text().replace("driver 12090", f"driver {driver}") + more)
    start(machine)
    for gpu in range(1, file.read_text().count("device ")):
        machine.ok("gctl", "drain", "gpu", str(gpu))


def started(machine, name="one", *more):
    """A job on the first GPU that has memory of it, with the second one free."""
    job = GpuJob(machine, name, *WHOLE, *more).fill(GIB)
    machine.ok("gctl", "resume", "gpu", "1")
    return job


def used(machine):
    """Of the first two GPUs, by all processes."""
    with machine.fake.program() as watch:
        watch.get("init")
        return [watch.get("used", gpu)[0] for gpu in (0, 1)]


def settled(job):
    return job.machine.until(job.job, lambda its: its["move"] is None)


def is_on(job, gpu):
    shown = settled(job)
    there = [EACH if number == gpu else 0 for number in (0, 1)]
    return shown["gpu_indices"] == [gpu] and used(job.machine) == there and job.has_its_memory() and shown["status"] == "Running"


@contextlib.contextmanager
def under_way(job):
    """A move to the second GPU that waits for what the first one computes until it is left."""
    job.get("launch", 0)
    job.machine.ok(*MOVE, "--to", "1", job.job)
    yield
    job.get("tell", 0)


def refused(machine, *words):
    ran = machine.run(*words)
    assert ran.code != 0, ran
    return ran.err


def test_a_job_moves_with_what_it_has_in_its_gpu(gpu_machine):
    up(gpu_machine)
    job = started(gpu_machine)
    assert gpu_machine.ok(*MOVE, "--to", "1", job.job) == f"Job {job.job} moves from GPU 0 to GPU 1.\n"
    assert is_on(job, 1)
    assert not list(gpu_machine.state.glob("attempts/*/park*"))
    other = GpuJob(gpu_machine, "other", *WHOLE)
    assert gpu_machine.running(other.job)["gpu_indices"] == [0]
    other.cancel()
    gpu_machine.ok(*MOVE, job.job)
    assert is_on(job, 0)


def test_it_has_both_gpus_until_it_is_there_and_that_is_told(gpu_machine):
    up(gpu_machine)
    job = started(gpu_machine)
    with under_way(job):
        shown = job.shown()
        assert (shown["move"], shown["gpu_indices"], shown["status"]) == ({"source": 0, "target": 1}, [0, 1], "Running")
        assert "Move          from GPU 0 to GPU 1\n" in gpu_machine.ok("gjob", "show", job.job)
        assert "runs, and moves from GPU 0 to GPU 1" in gpu_machine.ok("gjob", "why", job.job)
        assert "0,1 (to 1)" in on_terminal(gpu_machine, "gqueue")[0].screen.text()
        waits = GpuJob(gpu_machine, "waits", *WHOLE)
        assert waits.shown()["status"] == "Queued"
        assert "moves to GPU 1: try again when it is there" in refused(gpu_machine, "gjob", "suspend", job.job)
        assert "it moves to GPU 1 already" in refused(gpu_machine, *MOVE, job.job)
        gpu_machine.ok("gctl", "drain", "gpu", "1")
    assert is_on(job, 1)
    assert gpu_machine.running(waits.job)["gpu_indices"] == [0]


@pytest.mark.parametrize("ending", ["cancel", "limit"])
def test_one_that_ends_meanwhile_leaves_both(gpu_machine, ending):
    up(gpu_machine)
    job = started(gpu_machine)
    job.get("launch", 0)
    gpu_machine.ok(*MOVE, "--to", "1", job.job)
    if ending == "cancel":
        gpu_machine.ok("gcancel", job.job)
    else:
        gpu_machine.ok("gjob", "update", job.job, "--time-limit", "1s")
    gpu_machine.wait(job.job)
    both = gpu_machine.submit("--gpus", "2", "sleep", "600")
    assert gpu_machine.running(both)["gpu_indices"] == [0, 1]
    becomes(lambda: used(gpu_machine) == [0, 0])


def test_two_do_not_move_to_one_gpu(gpu_machine):
    up(gpu_machine, more=f"device {THIRD} 16384 NVIDIA H100\n")
    job = started(gpu_machine)
    other = GpuJob(gpu_machine, "second", *WHOLE).fill(GIB, 1)  # the fake driver hides no GPU
    second = other.job
    assert gpu_machine.running(second)["gpu_indices"] == [1]
    gpu_machine.ok("gctl", "resume", "gpu", "2")
    job.get("launch", 0)
    gpu_machine.ok(*MOVE, "--to", "2", job.job)
    assert "GPU 2 is not free" in refused(gpu_machine, *MOVE, "--to", "2", second)
    assert "no other GPU like GPU 1 is free" in refused(gpu_machine, *MOVE, second)
    job.get("tell", 0)
    assert settled(job)["gpu_indices"] == [2] and job.has_its_memory()
    becomes(lambda: gpu_machine.run("ginfo", "--free", "1").out == "0\n")  # a reading has seen that it left
    gpu_machine.ok(*MOVE, "--to", "0", second)
    assert gpu_machine.until(second, lambda its: its["move"] is None)["gpu_indices"] == [0]


def test_one_that_cannot_be_moved_stays_and_says_why(gpu_machine):
    up(gpu_machine)
    job = started(gpu_machine)
    managed = job.get("managed", MIB)
    gpu_machine.ok(*MOVE, job.job)
    why = settled(job)["move_refused"]
    assert why.startswith("the driver cannot take away what process ")
    assert f"Move          it stayed where it was: {why[:20]}" in gpu_machine.ok("gjob", "show", job.job)
    job.get("free", managed)
    assert is_on(job, 0)
    # That is tried again by whoever asks for it again.
    gpu_machine.run(*MOVE, job.job)
    assert is_on(job, 1)


def test_one_that_does_not_use_its_gpu_yet_would_begin_on_the_old_one_and_stays(gpu_machine):
    up(gpu_machine)
    job = GpuJob(gpu_machine, "one", *WHOLE)
    assert gpu_machine.running(job.job)["gpu_indices"] == [0]
    gpu_machine.ok("gctl", "resume", "gpu", "1")
    gpu_machine.run(*MOVE, job.job)
    shown = settled(job)
    assert (shown["gpu_indices"], shown["move_refused"]) == ([0], "none of its programs uses its GPU yet")
    job.fill(GIB)
    gpu_machine.run(*MOVE, job.job)
    assert is_on(job, 1)


def test_a_move_that_the_store_knows_nothing_of_comes_back(gpu_machine):
    """It is one of before the move that was put back: there the job has its old GPU, and the new one is another's."""
    up(gpu_machine)
    job = started(gpu_machine)
    record = f"most {16 * GIB}\n1 {UUIDS[0]} {EACH}\nonto {UUIDS[0]} {UUIDS[1]} \n"
    gpu_machine.kill_daemon()
    (next(gpu_machine.state.glob("attempts/*")) / "parking").write_text(record)
    start(gpu_machine)
    assert is_on(job, 0)
    becomes(lambda: not list(gpu_machine.state.glob("attempts/*/park*")) and not job.shown()["parked"])
    assert job.shown()["move_refused"] == ""


@pytest.mark.parametrize("is_lost", [False, True])
def test_the_next_gflowd_knows_where_it_moved_to(gpu_machine, is_lost):
    """Also one whose database is made anew of what the job has on disk, where nothing else tells."""
    up(gpu_machine)
    job = started(gpu_machine)
    gpu_machine.ok(*MOVE, "--to", "1", job.job)
    assert is_on(job, 1)
    gpu_machine.kill_daemon()
    if is_lost:
        for file in gpu_machine.state.glob("gflow.db*"):
            file.unlink()
        gpu_machine.ok("gflow", "doctor", "--recover")
    start(gpu_machine)
    assert is_on(job, 1)
    other = GpuJob(gpu_machine, "other", *WHOLE)
    assert gpu_machine.running(other.job)["gpu_indices"] == [0]


def test_a_record_that_names_other_gpus_than_the_store_does_not_keep_it_parked(gpu_machine):
    up(gpu_machine)
    job = started(gpu_machine)
    job.get("launch", 0)
    gpu_machine.ok(*MOVE, "--to", "1", job.job)
    gpu_machine.kill_daemon()
    record = next(gpu_machine.state.glob("attempts/*/parking"))
    with record.open("a") as file:
        file.write("onto GPU-x GPU-y \n")
    job.get("tell", 0)
    start(gpu_machine)
    assert is_on(job, 1)


def test_where_there_is_no_room_after_all_it_comes_back(gpu_machine):
    """Somebody else takes it meanwhile."""
    up(gpu_machine)
    job = started(gpu_machine)
    with gpu_machine.fake.program() as foreign:
        with under_way(job):
            foreign.start(1)
            foreign.get("alloc", 15 * GIB)
        shown = settled(job)
        assert shown["gpu_indices"] == [0] and "that are to come back" in shown["move_refused"]
        assert job.has_its_memory()
    assert is_on(job, 0)
    becomes(lambda: not gpu_machine.get("/api/v1/nodes")["nodes"][0]["devices"][1]["foreign"])
    gpu_machine.ok(*MOVE, job.job)
    assert is_on(job, 1) and job.shown()["move_refused"] == ""


def test_it_is_refused_where_it_cannot_be(gpu_machine):
    up(gpu_machine, driver="12090")
    job = started(gpu_machine)
    assert "the NVIDIA driver is older than 580" in refused(gpu_machine, *MOVE, job.job)
    assert "only a running job can be moved" in refused(gpu_machine, *MOVE, gpu_machine.submit("--hold", *WHOLE, "true"))
    file = gpu_machine.fake.file
    file.write_text(file.read_text().replace("driver 12090", "driver 13000"))
    killed(gpu_machine)
    assert "programs that begin to use a GPU later would use GPU 0 all the same" in refused(gpu_machine, "gjob", "move", job.job)
    assert "node " in refused(gpu_machine, *MOVE, "--to", "7", job.job)
    assert "'x' is not the number of a GPU" in refused(gpu_machine, *MOVE, "--to", "x", job.job)
    gpu_machine.ok("gctl", "drain", "gpu", "1")
    assert "GPU 1 is not free" in refused(gpu_machine, *MOVE, "--to", "1", job.job)
    assert is_on(job, 0)


@pytest.mark.parametrize("first", [1, 2])
def test_whoever_is_killed_anywhere_is_followed_by_one_who_brings_it_there(gpu_machine, first):
    """gflow-park in each of its calls of the driver, and gflowd after it."""
    up(gpu_machine)
    job = started(gpu_machine)
    on = 0
    for call in range(first, 26, 2):
        gpu_machine.environment["GFLOW_FAKE_CUDA_KILLED_AT"] = str(call)
        killed(gpu_machine)
        gpu_machine.ok(*MOVE, "--to", str(1 - on), job.job)
        becomes(lambda: gpu_machine.get("/api/v1/daemon")["warnings"] or job.shown()["move"] is None)
        del gpu_machine.environment["GFLOW_FAKE_CUDA_KILLED_AT"]
        killed(gpu_machine)
        on = settled(job)["gpu_indices"][0]
        assert is_on(job, on), call


def test_gflowd_killed_again_and_again_moves_it_once(gpu_machine):
    up(gpu_machine)
    job = started(gpu_machine)
    on = 0
    for _ in range(4):
        job.get("launch", 0)
        gpu_machine.ok(*MOVE, job.job)
        killed(gpu_machine)
        assert job.shown()["move"] == {"source": on, "target": 1 - on}
        job.get("tell", 0)
        killed(gpu_machine)
        on = 1 - on
        assert is_on(job, on)
