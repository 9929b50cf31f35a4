# SPDX-License-Identifier: Apache-2.0
"""What a program does with gflow.Client: submit, wait, read, listen, change."""

import copy
import os
import pickle
import signal
import threading
from datetime import datetime, timedelta, timezone
from pathlib import Path

import gflow
import pytest
from gflow import _http, submission
from gflow.changes import JobChanges, explanation_of
from gflow.submission import SubmitOptions
from machine import Gate


def test_a_job_and_its_end(client):
    job = client.submit("echo of $CUDA_VISIBLE_DEVICES; echo two >&2", gpus=2, name="first", env={"X": "1"})
    assert (job.id, job.name) == (1, "first")
    told = job.result()
    assert (told["status"], told["spec"]["request"]["gpus"], told["gpu_indices"]) == ("Finished", 2, [0, 1])
    assert job.log() == "of 0,1\ntwo\n" and job.log(tail=1) == "two\n"
    assert job.done() and client.job(1) == job and client.newest() == job


def test_one_that_fails_says_how_and_what_it_wrote(client):
    job = client.submit(["sh", "-c", "echo the reason >&2; exit 3"])
    with pytest.raises(gflow.JobFailed, match="job 1 Failed with exit code 3\nthe reason") as failed:
        job.result()
    assert failed.value.document["outcome"]["exit_code"] == 3 and failed.value.log == "the reason\n"
    killed = client.submit("kill -9 $$")
    with pytest.raises(gflow.JobFailed, match="by signal 9"):
        killed.result()
    held = client.submit("true", hold=True)
    held.cancel()
    with pytest.raises(gflow.JobFailed, match="job 3 Cancelled"):  # which has no log
        held.result()


def test_all_that_gbatch_can_say(client, machine, tmp_path):
    config = tmp_path / "c.yaml"
    config.write_text("lr: 1\n")
    first = client.submit("true")
    job = client.submit(
        ["python3", "-c", "print(1)"], gpus="8G,0.5(RTX3090)", cpus=2, memory="1G", nodes=1,
        time_limit=timedelta(hours=4), grace=5, name="all", project="p", priority=20, depends_on=[first],
        auto_cancel=False, begin=timedelta(hours=1), requeue=True, max_retries=2, preemption="requeue",
        preempt_signal=10, group="g", max_concurrent=3, cwd=tmp_path, config=config)
    spec = job.show()["spec"]
    assert spec["request"] == {
        "gpus": 1, "gpu_share_parts": 5000, "gpu_share_limit_parts": 0, "gpu_memory_bytes": 8 << 30,
        "gpu_mode": "fraction", "gpu_vendor": "", "gpu_models": ["RTX3090"], "see_all": False, "cpus": 2, "memory_bytes": 1 << 30, "nodes": 1,
        "selector": []}
    assert spec["dependencies"] == {"jobs": [1], "mode": "all", "auto_cancel": False}
    assert spec["begin"] is not None and spec["work_dir"] == str(tmp_path)
    del spec["request"], spec["dependencies"], spec["begin"], spec["work_dir"]
    assert spec == {
        "name": "all", "project": "p", "priority": 20, "time_limit_seconds": 14400, "grace_seconds": 5, "hold": False,
        "requeue": True, "max_retries": 2, "preemption": "requeue", "preempt_signal": 10, "group": "g",
        "max_concurrent": 3, "allocation": False, "command": "python3 -c 'print(1)'"}
    assert "all" in machine.ok("gqueue")


@pytest.mark.parametrize(("gpus", "shown"), [
    (0, "0"), (2, "2"), ("２（ＲＴＸ３０９０）", "2(RTX3090)"), (0.5, "0.5"), (1.0, "1"), ("2x0.25", "2x0.25"),
    ("gpu:rtx3090:2", "2(RTX3090)"), ("1(nvidia,RTX3090)", "1(nvidia,RTX3090)"), ("1(nvidia)", "1(nvidia)"),
    ("512M,0.25", "512M,0.25"), ("1,16G", "1,16G"), ("1.5GiB,0.1", "1.5G,0.1"), ("1.3G,0.1", "1332M,0.1"),
])
def test_a_request_means_what_it_means_to_gbatch(client, machine, gpus, shown):
    job = client.submit("true", gpus=gpus, hold=True)
    same = machine.submit("--hold", "--gpus", str(gpus), "true")
    assert job.show()["spec"]["request"] == client.job(same).show()["spec"]["request"]
    assert client.validate(gpus=str(gpus))["request"] == shown


@pytest.mark.parametrize(("before", "after"), [
    ({"gpus": 0.5}, 2), ({"gpus": "8G,0.5(RTX3090)"}, 2), ({"gpus": "1(RTX3090)"}, "4G,0.25"), ({"gpus": "2,8G"}, 0),
    ({"gpus": 1, "gpu_memory": "2G", "shared": True}, 1), ({"gpus": 2, "memory": "1G"}, "1(nvidia)"),
])
def test_an_update_of_gpus_means_what_it_means_to_gjob(client, machine, before, after):
    mine, theirs = (client.submit("true", hold=True, **before) for _ in range(2))
    mine.update(gpus=after)
    machine.ok("gjob", "update", f"--gpus={after}", theirs.id)
    assert mine.show()["spec"]["request"] == theirs.show()["spec"]["request"] != {}


@pytest.mark.parametrize(("words", "options"), [
    ({"time_limit": timedelta(hours=2)}, "--time-limit 2h"), ({"time_limit": None}, "--clear-time-limit"), ({"grace": 5}, "--grace 5s"),
    ({"name": "other", "project": "p", "priority": 7}, "--name other --project p --priority 7"),
    ({"gpu_memory": "2G"}, "--gpu-memory 2G"), ({"gpu_memory": None}, "--clear-gpu-memory-limit"),
    ({"gpus": "1(RTX3090)", "gpu_memory": "3G"}, "--gpus '1(RTX3090)' --gpu-memory 3G"), ({"shared": True}, "--shared"),
    ({"cpus": 2, "memory": "1G"}, "--cpus 2 --memory 1G"), ({"memory": None}, "--clear-memory-limit"),
    ({"depends_on": 1}, "--depends-on 1"), ({"depends_on_any": [1, 2]}, "--depends-on-any 1,2"), ({"depends_on": ()}, "--depends-on ''"),
    ({"depends_on": [1], "auto_cancel": False}, "--depends-on 1 --no-auto-cancel"),
    ({"max_retries": 2, "preemption": "requeue", "preempt_signal": 10}, "--max-retries 2 --preemptible --preempt-signal USR1"),
    ({"constraint": {}}, ""),
])
def test_an_update_is_said_as_a_submission_and_means_what_it_means_to_gjob(client, machine, words, options):
    before = {"hold": True, "gpus": 1, "gpu_memory": "1G", "memory": "2G", "time_limit": 60}
    client.submit_all([gflow.Submission("true", hold=True)] * 2)
    mine, theirs = (client.submit("true", name="n", depends_on=2, **before) for _ in range(2))
    mine.update(**words)
    if options:
        machine.bash(f"gjob update {options} {theirs.id}")
    assert mine.show()["spec"] == theirs.show()["spec"]


def test_names_of_the_api_are_told_the_word(client):
    job = client.submit("true", hold=True)
    with pytest.raises(TypeError, match="an update has no option 'time_limit_seconds'; it has 'time_limit'"):
        job.update(time_limit_seconds=5)
    with pytest.raises(TypeError, match="a submission has no option 'timelimit'; it has 'time_limit'"):
        client.submit("true", timelimit=5)
    with pytest.raises(gflow.OptionError, match="'2h' is not a time"):
        job.update(time_limit="2h")


@pytest.mark.parametrize(("options", "kind"), [
    ({"gpus": "2(RTX3090)"}, "gpus"), ({"gpus": 2, "gpu_memory": "2G", "shared": True}, "gpus"), ({"gpus": "0.5"}, "gpu_share"),
    ({"hold": True}, "hold"), ({"begin": timedelta(hours=1)}, "begin"), ({"gpus": 1, "priority": 3}, "priority"),
    ({"gpus": 1, "depends_on": 1, "auto_cancel": False}, "dependency"),
])
def test_what_is_suggested_can_be_done_in_the_words_of_an_update(client, machine, options, kind):
    """It is what the API calls it."""
    client.submit("exit 1").wait()
    client.submit("sleep 600", gpus="2x0.75" if kind == "gpu_share" else 2 if kind == "priority" else 1)
    machine.running(2)
    if kind == "priority":
        client.submit("sleep 600", gpus=1, priority=9)
    mine, theirs = (client.submit("true", name="same", **options) for _ in range(2))
    told, raw = mine.explain()["suggestions"], client.call("GET", f"/api/v1/jobs/{mine.id}/explain")["suggestions"]
    assert told and [one["command"] for one in told] == [one["command"] for one in raw], mine.why()
    for own, other in zip(told, raw):
        if own["action"] == "release":
            assert own["changes"] == {}
            continue
        for job in (mine, theirs):
            job.hold()
        before = mine.show()["spec"]
        mine.update(**own["changes"])
        client.call("PATCH", "/api/v1/jobs", {"jobs": [theirs.id], **other["changes"]})
        assert before != mine.show()["spec"] == theirs.show()["spec"], own


def test_time_sliced(client):
    job = client.submit("true", gpus=1, shared=True, gpu_memory="2G", hold=True)
    request = job.show()["spec"]["request"]
    assert (request["gpu_mode"], request["gpu_memory_bytes"]) == ("time_slice", 2 << 30)


@pytest.mark.parametrize(("options", "error", "says"), [
    ({"gpus": "nope"}, gflow.RequestError, "^gpus: 'nope', column 1: 'nope' is neither"),
    ({"gpus": 1.5}, gflow.RequestError, "whole GPUs or a part"),
    ({"gpus": True}, gflow.OptionError, "gpus is a number"),
    ({"gpus": 9}, gflow.Infeasible, "requests 9 GPUs and this machine has 2"),
    ({"priority": 300}, gflow.UsageError, "0 to 255"),
    ({"memory": "much"}, gflow.OptionError, "memory='much' is not an amount of memory"),
    ({"depends_on": 99}, gflow.NotFound, "99"),
    ({"constraint": {"zone": "a"}}, gflow.Infeasible, "no single node"),
    ({"gpu": 1}, TypeError, "has no option 'gpu'"),
    ({"depends_on": 1, "depends_on_any": 2}, gflow.OptionError, "depends_on or depends_on_any"),
    ({"depends_on": "12"}, gflow.OptionError, "'12' is not a job"),
    ({"depends_on": [1.5]}, gflow.OptionError, "1.5 is not a job"),
    ({"time_limit": "2h"}, gflow.OptionError, "'2h' is not a time: seconds, or a timedelta"),
    ({"grace": float("inf")}, gflow.OptionError, "inf is not a time"),
    ({"env": {"A=B": "1"}}, gflow.OptionError, "'A=B' is not the name of a variable"),
    ({"launch": "mpi"}, gflow.OptionError, "launch='mpi' is none of ddp, torchrun, accelerate"),
    ({"launch": ""}, gflow.OptionError, "launch='' is none of"),
    ({"gpus": " "}, gflow.OptionError, "gpus=' ' asks for nothing"),
    ({"gpus": 1e-12}, gflow.OptionError, "gpus=1e-12 asks for nothing"),
    ({"preempt_signal": "USR3"}, gflow.OptionError, "preempt_signal='USR3' is not a signal"),
    ({"preempt_signal": "0"}, gflow.OptionError, "preempt_signal='0' is not a signal"),
    ({"preempt_signal": "65"}, gflow.OptionError, "preempt_signal='65' is not a signal"),
    ({"preempt_signal": 1.5}, gflow.OptionError, "preempt_signal=1.5 is not a whole number"),
    ({"begin": "tomorrow"}, gflow.OptionError, "begin='tomorrow' is no time: a datetime"),
    ({"constraint": "zone=b"}, gflow.OptionError, "constraint='zone=b' is not a dictionary"),
    ({"env": "A=1"}, gflow.OptionError, "env='A=1' is not a dictionary"),
    ({"env": {"A": None}}, gflow.OptionError, "env: 'A': None is not a name and a text"),
    ({"cpus": 1.5}, gflow.OptionError, "cpus=1.5 is not a whole number"),
    ({"priority": "high"}, gflow.OptionError, "priority='high' is not a whole number"),
    ({"depends_on": True}, gflow.OptionError, "True is not a job"),
    ({"config": "/no/such"}, gflow.OptionError, "config '/no/such' cannot be read: No such file"),
    ({"time_limit": 10**400}, gflow.OptionError, "time_limit: 10*.* is not a time"),
    ({"memory": "9" * 400 + "G"}, gflow.OptionError, "memory='9*G' is not an amount of memory"),
    ({"memory": "٣G"}, gflow.OptionError, "memory='٣G' is not an amount of memory"),
    ({"begin": timedelta.max}, gflow.OptionError, "begin=.* is out of the range of times"),
    ({"begin": datetime.min.replace(tzinfo=timezone(timedelta(hours=1)))}, gflow.OptionError, "begin=.* is out of the range of times"),
    ({"env": {"A": "x\ud800"}}, gflow.OptionError, r"'A=x\\ud800' is no text: '\\ud800' is half a character"),
    ({"cwd": "/tmp/\ud800"}, gflow.OptionError, "is half a character"),
    ({"name": "\ud800"}, gflow.OptionError, "is half a character"),
    ({"gpus": "1(\ud800)"}, gflow.OptionError, "is half a character"),
    ({"name": "\udcff"}, gflow.UsageError, "a job name"),
])
def test_what_is_wrong_is_an_exception_that_says_it(client, options, error, says):
    with pytest.raises(error, match=says):
        client.submit("true", **options)
    assert client.jobs() == []
    if error in (gflow.RequestError, gflow.OptionError):
        assert issubclass(error, ValueError) and issubclass(error, gflow.GflowError)


@pytest.mark.parametrize("said", ["USR1", "SIGUSR1", " usr1", "10", 10, signal.SIGUSR1])
def test_a_signal_is_said_as_to_gbatch(client, said):
    job = client.submit("true", hold=True, preemption="requeue", preempt_signal=said)
    assert job.show()["spec"]["preempt_signal"] == signal.SIGUSR1
    job.update(preempt_signal="KILL")
    job.update(preempt_signal=said)
    assert job.show()["spec"]["preempt_signal"] == signal.SIGUSR1


def test_none_is_as_if_it_was_not_said(client):
    nothing = dict.fromkeys(SubmitOptions.__annotations__)
    plain, silent = client.submit_all([gflow.Submission("true"), gflow.Submission("true", **nothing)])
    specs = [{**job.show()["spec"], "name": ""} for job in (plain, silent)]
    assert specs[0] == specs[1]
    assert list(client.map(abs, [-1], **nothing)) == [gflow.Executor(client, **nothing).submit(abs, -1).result()] == [1]


@pytest.mark.parametrize("name", JobChanges.__annotations__)
def test_what_is_taken_away_can_be_without(client, name):
    job = client.submit("true", hold=True, gpus=1, gpu_memory="8G", memory="1G", time_limit=60)
    if name in ("gpu_memory", "memory", "time_limit"):
        job.update(**{name: None})
        field = job.show()["spec"]
        assert not (field["time_limit_seconds"] if name == "time_limit" else field["request"][f"{name}_bytes"])
        return
    with pytest.raises(gflow.OptionError, match=f"^{name}=None: only gpu_memory, memory, time_limit can be taken away"):
        job.update(**{name: None})


@pytest.mark.parametrize(("command", "error", "says"), [
    (b"true", TypeError, "a command is a text, a list of a program and its arguments, or a Path to a script, not b'true'"),
    (5, TypeError, "a command is a text"), (None, TypeError, "a command is a text"), (["sleep", 1], TypeError, "not int"),
    ("echo \ud800", gflow.OptionError, "is half a character"), (["echo", "\ud800"], gflow.OptionError, "is half a character"),
    ([], gflow.OptionError, "there is no command"),
])
def test_what_is_no_command(client, command, error, says):
    with pytest.raises(error, match=says):
        client.submit(command)
    assert client.jobs() == []


def test_bytes_are_what_they_are(client, machine):
    """As words, paths and values of variables, also where they are no UTF-8."""
    there = os.fsencode(machine.work) + b"/caf\xe9"
    os.mkdir(there)
    job = client.submit([b"bash", "-c", b'printf "%s|$PWD|$A|$B|$C" "$1"', "x", b"w\xf6rd"], cwd=there, env={"A": b"v\xe4lue", "B": machine.work, "C": 5})
    job.result()
    assert (machine.logs / f"{job.id}.log").read_bytes() == b"w\xf6rd|" + there + b"|v\xe4lue|" + os.fsencode(machine.work) + b"|5"


@pytest.mark.parametrize("number", ["newest", "1/../2", None, 1.0, True])
def test_what_is_no_number_of_a_job(client, number):
    client.submit("true")
    with pytest.raises(gflow.OptionError, match="is not a job"):
        client.job(number)


def test_nobody_is_called_what_is_no_text(client):
    client.submit("true")
    assert client.jobs(user="\ud800") == [] == client.jobs(user="\udcff")


@pytest.mark.parametrize(("body", "detail"), [
    (b'{"detail":"Not Found"}', "Not Found"), (b'[1]', "[1]"), (b'"no"', '"no"'), (b"<html>", "<html>"), (b"", ""),
    (b'{"detail":"odd","status":"many"}', "odd"),
])
def test_a_refusal_of_another_program_is_one(body, detail):
    answer = _http.Answer(_http.Ask("GET", "/api/v1/jobs"), 404, {}, body)
    with pytest.raises(gflow.Problem) as refused:
        answer.checked()
    assert (refused.value.status, refused.value.detail) == (404, detail)


@pytest.mark.parametrize(("tasks", "says"), [
    ([1.5], "a task=1.5 is not a whole number"), (["a"], "a task='a' is not"), ([True], "a task=True is not"),
    ([0, -1], "there is no task -1"), ([1, 2, 1], "task 1 is there twice")])
def test_tasks_that_are_none_are_refused(client, tasks, says):
    with pytest.raises(gflow.OptionError, match=says):
        client.submit_array("true", tasks)
    assert client.jobs() == []


def test_numbers_of_numpy_are_numbers(client):
    numpy = pytest.importorskip("numpy")
    first = client.submit("true", gpus=numpy.int64(1), gpu_memory=numpy.int64(2 << 30), cpus=numpy.int32(2), priority=numpy.int64(7),
                          time_limit=numpy.float32(60), hold=True)
    spec = client.submit("true", gpus=numpy.float32(0.5), depends_on=numpy.int64(first.id), hold=True).show()["spec"]
    told = first.show()["spec"]
    assert (told["request"]["gpus"], told["request"]["cpus"], told["priority"], told["time_limit_seconds"]) == (1, 2, 7, 60)
    assert spec["request"]["gpu_share_parts"] == 5000 and spec["dependencies"]["jobs"] == [first.id]
    assert len(client.submit_array("true", numpy.arange(2), hold=True)) == 2


def test_options_that_there_are_not_are_told_where_they_are_said(client):
    for make in (gflow.function, lambda **options: gflow.Executor(client, **options)):
        with pytest.raises(TypeError, match="has no option 'gpu'; it has 'gpus'"):
            make(gpu=1)


def test_a_problem_has_what_was_asked_and_the_request(client, machine):
    with pytest.raises(gflow.UsageError) as wrong:
        client.submit("true", priority=300)
    problem = wrong.value
    assert (problem.status, problem.code, problem.asked) == (400, "usage", "POST /api/v1/jobs")
    assert problem.errors[0]["pointer"] == "/items/0/spec/priority"
    assert problem.request_id and problem.request_id in str(problem)
    with pytest.raises(ValueError, match="no command"):
        client.submit(" ")


PROBLEMS = [gflow.UsageError, gflow.Unauthenticated, gflow.PermissionDenied, gflow.NotFound, gflow.EventsGone, gflow.WrongState,
            gflow.Infeasible, gflow.Exhausted, gflow.Unavailable]


@pytest.mark.parametrize("kind", PROBLEMS)
def test_a_problem_can_be_sent_to_another_process(kind):
    """By concurrent.futures and multiprocessing, and by a job to whom its result is."""
    document = {"status": 418, "code": "odd", "detail": "why", "errors": [{"pointer": "/a"}], "instance": "r1", "after": 3}
    problem = kind(document, "GET /x", 2.0)
    problem.noted = "by the program"
    for again in (pickle.loads(pickle.dumps(problem)), copy.copy(problem)):
        assert type(again) is kind and vars(again) == vars(problem) and str(again) == str(problem) and again.args == problem.args


def test_an_array_is_as_gbatch_makes_it(client, machine):
    """The same names, group and variables; all of them in one submission."""
    told = "echo $GFLOW_ARRAY_TASK_ID of $GFLOW_ARRAY_TASK_COUNT from $GFLOW_ARRAY_TASK_MIN to $GFLOW_ARRAY_TASK_MAX"
    jobs = client.submit_array(told, range(1, 8, 3), name="sweep", max_concurrent=2, cwd=machine.work)
    client.wait(*jobs)
    assert [(job.name, job.log()) for job in jobs] == [(f"sweep_{task}", f"{task} of 3 from 1 to 7\n") for task in (1, 4, 7)]
    machine.ok("gbatch", "--array", "1-7:3%2", "--name", "sweep", "--wait", "--wrap", told)
    mine, theirs = jobs[1].show()["spec"], client.job(5).show()["spec"]
    assert mine.pop("group") != theirs.pop("group") and mine == theirs and client.job(5).log() == jobs[1].log()
    assert client.submit_array("true", []) == []
    turned = client.submit_array(told, [3, 1, 2], cwd=machine.work)
    client.wait(*turned)
    assert [job.log() for job in turned] == [f"{task} of 3 from 1 to 3\n" for task in (3, 1, 2)]
    assert [job.show()["spec"]["group"] for job in client.submit_array("true", [5])] == [""]
    unnamed = client.submit_array("true", [5, 6, 7, 1], hold=True)
    assert [job.name for job in unnamed] == [job.show()["spec"]["name"] for job in unnamed] and all(job.name for job in unnamed)


@pytest.mark.parametrize(("tasks", "ranges"), [
    (range(10_000), [(0, 10_000, 1)]), ([1, 4, 7], [(1, 3, 3)]), ([3, 1, 2], [(3, 1, 1), (1, 2, 1)]), ([5], [(5, 1, 1)]),
    ([3, 2, 1], [(3, 1, 1), (2, 1, 1), (1, 1, 1)]), ([0, 100, 101, 102], [(0, 2, 100), (101, 2, 1)])])
def test_an_array_is_sent_as_stretches_of_tasks(tasks, ranges):
    item = {"spec": {"name": "a"}, "payload": {"argv": ["true"]}}
    items = submission.tasks_of(item, tasks)
    assert [(one["tasks"]["first"], one["tasks"]["count"], one["tasks"]["step"]) for one in items] == ranges
    assert [one["like"] for one in items[1:]] == [0] * (len(ranges) - 1)


def test_a_job_can_be_sent_to_another_process(client, machine, python):
    """By its number and where its gflowd is; what is of this process says so."""
    job = client.submit("echo there")
    again = pickle.loads(pickle.dumps(job))
    assert again == job and (again.name, again.result()["status"]) == (job.name, "Finished") and copy.copy(job) == job
    said = python(script=f"import pickle; print(pickle.loads({pickle.dumps(job)!r}).result()['id'])")
    assert said == f"{job.id}\n"
    with pytest.raises(TypeError, match=r"is of this process: make one where it is needed, gflow.Client\('unix:/"):
        pickle.dumps(client)
    with pytest.raises(TypeError, match=r"belongs to an event loop of this process: send its id, which client.job\(7\) takes"):
        pickle.dumps(gflow.AsyncJob(gflow.AsyncClient(f"unix:{machine.socket}"), 7))
    with pytest.raises(TypeError, match="belongs to an event loop of this process"):
        pickle.dumps(gflow.AsyncClient(f"unix:{machine.socket}"))
    secret = gflow.Client(f"unix:{machine.socket}", token="gflow_secret")
    assert b"secret" not in pickle.dumps(gflow.Job(secret, 1))


def test_a_process_for_each_gpu(client, monkeypatch):
    monkeypatch.setenv("GFLOW_LAUNCH", "torchrun")  # of another job
    job = client.submit("echo $RANK of $WORLD_SIZE", gpus=2, launch="ddp")
    job.result()
    assert sorted(job.log().splitlines()) == ["0 of 2", "1 of 2"]
    one = client.submit("echo ${RANK-one}", gpus=2)
    one.result()
    assert one.log() == "one\n"


CONDA = """#!/bin/bash
cat <<'END'
conda() { [ "$2" = lab ] || { echo "EnvironmentNameNotFound: $2" >&2; return 1; }; export CONDA_DEFAULT_ENV=lab MULTI=$'a\nb'; }
END
"""


def test_a_conda_environment_is_activated_now(client, tmp_path, monkeypatch):
    conda = tmp_path / "conda"
    conda.write_text(CONDA)
    conda.chmod(0o755)
    monkeypatch.setenv("CONDA_EXE", str(conda))
    job = client.submit('echo "$CONDA_DEFAULT_ENV-$MULTI"', conda_env="lab")
    job.result()
    assert job.log() == "lab-a\nb\n"
    with pytest.raises(gflow.ConfigurationError, match="'nope' cannot be activated: EnvironmentNameNotFound: nope"):
        client.submit("true", conda_env="nope")
    assert len(client.jobs()) == 1


def test_a_script_is_copied(client, machine):
    script = machine.work / "train.sh"
    script.write_text("#!/bin/bash\necho before\n")
    job = client.submit(Path(script), hold=True)
    script.write_text("echo after\n")
    job.release()
    assert job.result()["spec"]["command"] == str(script) and job.log() == "before\n"


def test_words_that_are_no_text_reach_the_job(client, machine):
    name = os.fsdecode(b"caf\xe9")
    job = client.submit(["sh", "-c", 'printf %s "$1" "$ODD"', "sh", name], env={"ODD": name})
    job.result()
    assert (machine.logs / "1.log").read_bytes() == b"caf\xe9caf\xe9"


def test_the_environment_is_this_processes(client, monkeypatch):
    monkeypatch.setenv("MINE", "yes")
    monkeypatch.setenv("GFLOW_JOB_ID", "77")
    job = client.submit("echo $MINE $GFLOW_JOB_ID")
    bare = client.submit("echo [$MINE] $SET", inherit_env=False, env={"SET": "1"})
    client.wait(job, bare)
    assert (job.log(), bare.log()) == ("yes 1\n", "[] 1\n")


def test_several_at_once_and_what_waits_for_what(client):
    first = gflow.Submission("echo 1")
    second = gflow.Submission("echo 2", depends_on=[first])
    either = gflow.Submission("echo 3", depends_on_any=(first, second))
    jobs = client.submit_all([first, second, either])
    assert [one["status"] for one in client.wait(*jobs)] == ["Finished"] * 3
    assert jobs[2].show()["spec"]["dependencies"] == {"jobs": [1, 2], "mode": "any", "auto_cancel": True}
    with pytest.raises(ValueError, match="ahead of it"):
        client.submit_all([second, first])
    with pytest.raises(gflow.Infeasible):
        client.submit_all([first, gflow.Submission("true", gpus=9)])
    assert len(client.jobs()) == 3 and client.submit_all([]) == []


def test_a_key_makes_it_once(client):
    once = client.submit("true", key="nightly")
    assert client.submit("true", key="nightly") == once
    with pytest.raises(gflow.UsageError, match="use a new key") as refused:
        client.submit("false", key="nightly")
    assert (refused.value.status, refused.value.code) == (422, "key_reused")
    assert len(client.jobs()) == 1


def test_waiting_has_an_end(client, machine):
    gate = Gate(machine)
    job = client.submit(gate.command)
    with pytest.raises(gflow.WaitTimeout, match="job 1 has not ended within 0.05 s"):
        job.wait(timeout=0.05)
    with pytest.raises(TimeoutError):
        job.result(timeout=0)
    gate.reached()
    waited = []
    thread = threading.Thread(target=lambda: waited.append(job.wait()["status"]))
    thread.start()
    gate.open()
    thread.join()
    assert waited == ["Finished"]


def test_a_log_is_followed_while_it_is_written(client, machine):
    gate = Gate(machine)
    job = client.submit(f"printf 'h\\303'; {gate.command}; printf '\\251'")
    pieces = job.follow()
    gate.reached()
    assert next(pieces) == "h"
    gate.open()
    assert "".join(pieces) == "é"
    assert list(client.submit("printf 'h\\303'").follow())[-1:] == ["\ufffd"]
    with pytest.raises(gflow.NotFound):
        next(gflow.Job(client, 99).follow())


def test_hold_release_update_signal_and_why(client, machine):
    all_of_it = client.submit("sleep 600", gpus=2)
    job = client.submit("sleep 600", gpus=1)
    assert [(one["kind"], one["holders"][0]["job"]) for one in job.why()] == [("gpus", 1)]
    told = job.explain()
    assert told["job"]["id"] == 2 and told["job"]["blockers"] and told["expected_start"] is None
    job.hold()
    assert job.status() == "Hold"
    job.update(gpus="1(RTX3090)", priority=20, time_limit=60)
    told = job.show()["spec"]
    assert (told["priority"], told["time_limit_seconds"], told["request"]["gpu_models"]) == (20, 60, ["RTX3090"])
    job.release(at=timedelta(hours=1))
    assert [one["kind"] for one in job.why()] == ["begin", "gpus"]
    machine.running(1)
    assert client.signal(15, all_of_it) == [1]
    assert all_of_it.wait()["outcome"]["signal"] == 15
    with pytest.raises(gflow.WrongState):
        all_of_it.hold()
    assert client.cancel() == []


def test_more_jobs_are_changed_than_one_request_names(client):
    jobs = client.submit_array("true", range(10_000), hold=True)
    jobs.append(client.submit("true", depends_on=jobs[:1]))  # ends with the first, which is of another request
    ids = [job.id for job in jobs]
    assert client.update(*jobs, priority=20) == ids and client.hold(*jobs) == ids
    assert client.cancel(*jobs) == ids


def test_suspend_and_resume(client, machine):
    job = client.submit("sleep 600", gpus=1)
    with pytest.raises(gflow.WrongState):
        client.suspend(client.submit("true", hold=True))
    machine.running(job.id)
    assert client.suspend(job) == [job.id] and client.suspend(job) == []
    assert job.status() == "Suspended" and [one["kind"] for one in job.why()] == ["suspended"]
    assert [one["action"] for one in job.explain()["suggestions"]] == ["resume"]
    job.resume()
    assert job.status() == "Running" and client.resume(job) == []
    job.suspend()
    assert job.status() == "Suspended" and client.resume(job) == [job.id]


def test_listing_goes_on_from_page_to_page(client):
    client.submit_all([gflow.Submission("true", hold=True, name=f"n{i}") for i in range(1100)])
    assert len(client.jobs(fields=["status"])) == 1100
    assert [one["id"] for one in client.jobs(most=3, sort="-id")] == [1100, 1099, 1098]
    assert [one["id"] for one in client.jobs(sort="-id", fields=["status"])] == list(range(1100, 0, -1))
    assert [one["spec"]["name"] for one in client.jobs(job=[2, 5], state=["Hold"])] == ["n1", "n4"]
    assert client.jobs(name="n109*", most=2)[1]["id"] == 1091


def test_statistics(client):
    client.submit("true", gpus=1, project="p").result()
    told = client.statistics(since=datetime.now() - timedelta(hours=1), by="project")
    assert told["total"]["states"]["Finished"] == 1 and [one["name"] for one in told["parts"]] == ["p"]
    assert len(client.jobs(since=datetime.now() - timedelta(hours=1))) == 1
    assert client.jobs(since=datetime.now() + timedelta(hours=1)) == []
    assert client.statistics(project="p", user=["root", client.principal()["name"]])["total"]["states"]["Finished"] == 1


@pytest.mark.parametrize("ask", [gflow.Client.statistics, gflow.Client.jobs])
def test_of_several_projects_nothing_is_told_that_is_of_none(client, ask):
    """They were asked for as one with a comma in its name, of which there are no jobs."""
    with pytest.raises(gflow.OptionError, match="only one project can be asked for"):
        ask(client, project=["a", "b"])


def test_what_the_scheduler_of_a_cluster_says_is_in_the_explanation(client):
    job = client.submit("true", hold=True)
    told = client.call("GET", f"/api/v1/jobs/{job.id}/explain")
    assert "told" not in told and "told" not in job.explain()
    assert explanation_of({**told, "told": "0/3 nodes are available"}) == {**job.explain(), "told": "0/3 nodes are available"}


def test_a_stream_that_another_thread_closes_ends(client):
    events = client.events()
    stream = events._stream
    stream.close()
    with pytest.raises(gflow.ConnectionLost):
        while stream.read(1) is not None:  # what came with the head of the answer is read first
            pass
    events.close()
    assert list(events) == []


def test_events_come_once_and_go_on_where_one_was(client):
    with client.events(type=["job.ended"]) as events:
        job = client.submit("true")
        assert next(events)["job"] == job.id
    seen = list(client.events(job=job, follow=False))
    assert [one["type"] for one in seen] == ["job.submitted", "job.starting", "job.started", "job.ended"]
    rest = client.events(job=job, after=seen[1]["id"])
    assert [next(rest)["id"], next(rest)["id"]] == [seen[2]["id"], seen[3]["id"]]
    rest.close()
    assert list(rest) == [] and list(events) == []
    with pytest.raises(gflow.EventsGone) as gone:
        next(client.events(after=1))
    assert gone.value.after == seen[-1]["id"]
    with pytest.raises(gflow.UsageError, match="there are no events 'job.end'"):
        next(client.events(type="job.end"))


def test_it_works_as_a_person_types_it(python, machine):
    out = python(script="""
import gflow
job = gflow.submit("echo hello", gpus=1)
print(job.result()["status"], job.log(), [one["id"] for one in gflow.jobs()], gflow.job(1))
with gflow.gpus(1) as devices:
    import os
    print(devices, os.environ["CUDA_VISIBLE_DEVICES"])
print(gflow.select(2).indices, next(gflow.events(follow=False))["type"])
""")
    assert out.splitlines() == [
        "Finished hello", " [1] <gflow.Job 1 " + machine.job(1)["spec"]["name"] + ">",
        out.splitlines()[2], "[0, 1] job.submitted"]
    assert out.splitlines()[2].startswith("<GPUs of ") and out.splitlines()[2].endswith(": 0 RTX3090> 0")


def test_a_forked_process_has_connections_of_its_own(client):
    client.machine()  # keeps one
    child = os.fork()
    if child == 0:
        os._exit(0 if client.submit("true").result()["status"] == "Finished" else 1)
    assert client.machine()["kind"] == "Machine"
    assert os.waitpid(child, 0)[1] == 0


