# SPDX-License-Identifier: Apache-2.0
"""gflow.submitit: what programs written for submitit call."""

import gflow
import pytest
import work
from gflow.submitit import AutoExecutor


@pytest.fixture
def executor(client, machine, monkeypatch):
    monkeypatch.setenv("HOME", str(machine.home))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    return AutoExecutor(folder="logs", client=client)


def test_a_program_for_submitit(executor, client, machine):
    executor.update_parameters(timeout_min=4, mem_gb=0.5, gpus_per_node=1, cpus_per_task=1, name="fit", slurm_partition="dev", nodes=1)
    job = executor.submit(divmod, 7, 2)
    assert job.result() == (3, 1) and job.results() == [(3, 1)] and job.done() and job.state == "COMPLETED" and job.exception() is None
    spec = client.job(int(job.job_id)).show()["spec"]
    assert (spec["name"], spec["time_limit_seconds"], spec["request"]["memory_bytes"], spec["request"]["gpus"]) == ("fit", 240, 1 << 29, 1)
    failed = executor.submit(work.divide, 0)
    assert isinstance(failed.exception(), ZeroDivisionError) and "ZeroDivisionError" in failed.stdout() and failed.state == "FAILED"
    assert list((machine.state / "functions").iterdir()) == []


def test_arrays(executor, client):
    executor.update_parameters(slurm_array_parallelism=1, gflow_project="p")
    jobs = executor.map_array(pow, [2, 3], [3, 2])
    assert [job.result() for job in jobs] == [8, 9]
    assert {client.job(int(job.job_id)).show()["spec"]["max_concurrent"] for job in jobs} == {1}
    assert client.job(1).show()["spec"]["project"] == "p" and executor.map_array(pow, [], []) == []


@pytest.mark.parametrize(("name", "time", "seconds"), [
    ("timeout_min", 4, 240), ("timeout_min", 0.5, 30), ("slurm_time", 90, 5400), ("slurm_time", "90", 5400), ("slurm_time", "1:30", 90),
    ("slurm_time", "1:00:00", 3600), ("slurm_time", "2-12", 216_000), ("slurm_time", "1-0:30", 88_200), ("slurm_time", "0-0:0:7", 7)])
def test_times_are_those_of_sbatch(executor, client, name, time, seconds):
    executor.update_parameters(gflow_hold=True, **{name: time})
    job = executor.submit(divmod, 7, 2)
    assert client.job(int(job.job_id)).show()["spec"]["time_limit_seconds"] == seconds
    job.cancel()


@pytest.mark.parametrize("time", ["1h", "", "1:2:3:4", None])
def test_what_is_no_time_is_refused(executor, time):
    with pytest.raises(gflow.OptionError, match="slurm_time=.* is not a time: minutes, or a text"):
        executor.update_parameters(slurm_time=time)


@pytest.mark.parametrize("gb", ["16", None, -1, float("nan"), float("inf")])
def test_memory_that_is_none_is_refused(executor, gb):
    with pytest.raises(gflow.OptionError, match="mem_gb=.* is not an amount of memory in GB"):
        executor.update_parameters(mem_gb=gb)


def test_what_is_left_out_is_logged(executor, caplog):
    caplog.set_level("INFO", logger="gflow")
    executor.update_parameters(slurm_partition="dev")
    assert "slurm_partition='dev' of submitit is left out" in caplog.text


def test_what_has_no_meaning_here_is_refused(executor):
    with pytest.raises(NameError, match="no parameter 'slurm_constraint'"):
        executor.update_parameters(slurm_constraint="v100")
    with pytest.raises(NameError, match="no parameter 'slurm_qos'"):
        executor.update_parameters(slurm_qos="high")
    with pytest.raises(ValueError, match="tasks_per_node=2: a function is one process"):
        executor.update_parameters(tasks_per_node=2)
    executor.update_parameters(gflow_hold=True)
    job = executor.submit(divmod, 7, 2)
    assert job.state == "PENDING" and not job.done()
    job.cancel()
    job.wait()
    assert job.state == "CANCELLED" and "fit" not in repr(job)
