# SPDX-License-Identifier: Apache-2.0
"""Functions as jobs: map, executor and decorator; results and exceptions come back."""

import concurrent.futures
import functools
import inspect
import os
import pickle
import resource
import signal
import subprocess
import sys
import threading

import gflow
import pytest
import work
from gflow import _calls, _default, _folders, _sync, functions
from machine import PATIENCE, kill
from package import ROOT, SOURCE
from pypi import program


@pytest.fixture(autouse=True)
def here(request, monkeypatch):
    """Files and the default client are those of the test's machine."""
    if "client" not in request.fixturenames:
        return
    machine = request.getfixturevalue("machine")
    monkeypatch.setenv("HOME", str(machine.home))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setattr(_default, "_made", request.getfixturevalue("client"))


def folders(machine):
    """Where calls and results are, and what says whose they are."""
    return list((machine.state / "functions").iterdir())


def test_map(client, machine):
    results = gflow.map(work.visible, "abc", gpus=1, max_concurrent=1)
    assert len(results) == 3 and [job.name for job in results.jobs] == ["visible_0", "visible_1", "visible_2"]
    assert client.job(2).show()["spec"]["command"] == "visible('b')"
    assert list(results) == [("a", "0", 1), ("b", "0", 2), ("c", "0", 3)]
    assert folders(machine) == []  # read, and gone
    assert list(gflow.map(work.visible, [])) == []


def test_what_was_raised_is_raised_where_its_result_would_be(client):
    results = gflow.map(work.divide, [3, 0, 4])
    assert next(results) == 4
    with pytest.raises(ZeroDivisionError) as raised:
        next(results)
    assert "work.py" in str(raised.value.__cause__) and "return 12 / item" in str(raised.value.__cause__)
    assert next(results) == 3 and list(results) == []
    assert client.job(2).status() == "Failed" and "ZeroDivisionError" in client.job(2).log()


def test_what_gflowd_refuses_in_a_job_is_raised_here(client, machine):
    with pytest.raises(gflow.NotFound, match="99") as refused:
        next(gflow.map(work.asks_for_none, [f"unix:{machine.socket}"]))
    assert refused.value.status == 404 and refused.value.asked == "GET /api/v1/jobs/99"


def test_a_call_that_raises_stopiteration_does_not_end_the_results(client):
    results = gflow.map(work.taken_of, [[1], [], [3]])
    assert next(results) == 1
    with pytest.raises(RuntimeError, match="the function raised StopIteration in job 2"):
        next(results)
    assert list(results) == [3]


def test_after_an_interrupt_results_go_on(client, machine, monkeypatch):
    gates = [machine.work / "a", machine.work / "b"]
    for gate in gates:
        os.mkfifo(gate)
    results = gflow.map(work.wait_for, [str(gate) for gate in gates])
    with monkeypatch.context() as patch:
        patch.setattr(results._endings._stream._stream, "_receive", lambda *_: signal.raise_signal(signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            next(results)
    for gate in gates:
        gate.write_text(gate.name)
    assert list(results) == ["a", "b"]
    assert folders(machine) == []


@pytest.mark.parametrize(("function", "error", "says"), [
    (work.killed, gflow.JobFailed, "by signal 9"),
    (work.leaves, gflow.JobFailed, r"job 1 Finished without a result: .* os\._exit\(\)"),
    (work.odd, RuntimeError, r"Odd\(1\)"),
    (work.becomes_text, RuntimeError, r"^BecomesText\('gone'\)$"),
    (work.says_nothing, RuntimeError, "^work.SaysNothing: what it says$"),
    (work.of_the_job_alone, RuntimeError, r"^of_the_job.Alone: why \(it cannot be read here: No module named 'of_the_job'\)$"),
])
def test_what_came_to_nothing_says_so(client, function, error, says):
    with gflow.Executor() as executor, pytest.raises(error, match=says):
        executor.submit(function).result()


def test_what_cannot_come_back_says_so(client):
    if functions._worker.pickler().__name__ == "cloudpickle":
        pytest.skip("cloudpickle takes it")
    with gflow.Executor() as executor, pytest.raises((AttributeError, RuntimeError), match="pickle|local object"):
        executor.submit(work.unreadable).result()
    with pytest.raises(TypeError, match="cloudpickle"):
        gflow.map(lambda item: item, [1])
    assert len(client.jobs()) == 1


def test_an_exception_that_is_another_here_has_its_traceback(client):
    job = gflow.function()(work.of_the_job_alone).submit()
    with pytest.raises(RuntimeError) as raised:
        job.result(timeout=60)
    assert "in of_the_job_alone" in str(raised.value.__cause__)


def test_a_call_is_one_process(client):
    """What `launch` starts would be several, with one result."""
    says = "launch='ddp' is for commands: a job of a.* is one process"
    for make in (gflow.function, lambda **options: gflow.Executor(client, **options), lambda **options: gflow.map(work.divide, [1], **options),
                 lambda **options: gflow.map(work.divide, [], **options)):
        with pytest.raises(gflow.OptionError, match=says):
            make(gpus=2, launch="ddp")
    assert client.jobs() == []


def test_a_result_is_not_to_be_sent(client):
    job = gflow.function()(work.divide).submit(3)
    with pytest.raises(TypeError, match=r"what job 1 returns comes to the process that called the function: send its result\(\), or gflow.job\(1\)"):
        pickle.dumps(job)
    assert job.result(timeout=60) == 4


def test_executor(client, machine):
    gates = [machine.work / "a", machine.work / "b"]
    for gate in gates:
        os.mkfifo(gate)
    with gflow.Executor(gpus=2) as executor:
        first, second, third = [executor.submit(work.wait_for, path=str(gate)) for gate in [*gates, gates[1]]]
        machine.running(first.job.id)
        assert not first.done() and third.cancel() and third.cancelled()
        assert client.wait(third.job)[0]["status"] == "Cancelled"
        gates[0].write_text("one")
        assert first.result(timeout=60) == "one"
        with pytest.raises(concurrent.futures.TimeoutError):
            second.result(timeout=0)
        machine.running(second.job.id)
        gates[1].write_text("two")
        done = concurrent.futures.as_completed([first, second])
        assert sorted(one.result() for one in done) == ["one", "two"]
        assert list(executor.map(divmod, [7, 9], [2, 5])) == [(3, 1), (1, 4)]
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(work.killed)
    assert folders(machine) == []


def test_a_result_that_exits_is_the_matter_of_its_own_future(client, machine):
    with gflow.Executor() as executor:
        exits, well = executor.submit(work.exits), executor.submit(work.divide, 3)
        with pytest.raises(SystemExit):
            exits.result(timeout=60)
        assert well.result(timeout=60) == 4
    assert folders(machine) == []


def test_what_ends_the_listener_is_told_to_all(client):
    """Also to who waits for one that was cancelled, whose job was not seen to end."""
    executor = gflow.Executor(hold=True)
    with executor:
        first, cancelled, left = [executor.submit(work.divide, 3) for _ in range(3)]
        first.add_done_callback(lambda _: sys.exit(5))
        with executor._lock:  # what its end would tell is not heard before that of the first
            first.job.cancel()
            first.job.wait()
            assert cancelled.cancel()
        with pytest.raises(SystemExit):
            left.result(timeout=60)
        assert concurrent.futures.wait([cancelled], timeout=60).not_done == set()
        with pytest.raises(RuntimeError, match="after shutdown"):
            executor.submit(work.divide, 3)


def test_a_process_with_no_file_left_says_so(client):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    client.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        with pytest.raises(gflow.Unreachable, match="Too many open files; 'ulimit -n'"):
            _sync.connect_unix(client.server)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_job_that_somebody_cancels_is_no_result(client, machine):
    with gflow.Executor(hold=True) as executor:
        future = executor.submit(work.killed)
        machine.ok("gcancel", future.job.id)
        with pytest.raises(gflow.JobFailed, match="Cancelled"):
            future.result(timeout=60)


def test_shutting_down_with_cancelled_futures(client):
    executor = gflow.Executor(hold=True)
    futures = [executor.submit(work.killed) for _ in range(2)]
    executor.shutdown(cancel_futures=True)
    assert all(future.cancelled() for future in futures)


def test_all_that_have_not_ended_are_cancelled_by_one_request(client, cancellations):
    results = gflow.map(work.divide, range(1, 1201), hold=True)
    client.cancel(results.jobs[0], results.jobs[1100])
    results.cancel()
    assert sorted(map(len, cancellations)) == [2, 1198] and {one["status"] for one in client.jobs()} == {"Cancelled"}
    results.close()
    executor = gflow.Executor(hold=True)
    jobs = [executor.submit(work.divide, item).job.id for item in range(4)]
    del cancellations[:]
    executor.shutdown(cancel_futures=True)
    assert cancellations == [jobs] and {one["status"] for one in client.jobs()} == {"Cancelled"}


def test_those_that_end_while_all_are_cancelled_keep_no_other(client, monkeypatch):
    results = gflow.map(work.divide, range(1, 8), hold=True)
    client.cancel(results.jobs[1], results.jobs[5])

    def seen_before(self, jobs):
        yield from ()
        return list(jobs)

    monkeypatch.setattr(_calls.Calls, "unended", seen_before)
    results.cancel()
    assert {one["status"] for one in client.jobs()} == {"Cancelled"}


def test_executor_over_a_restart(client, machine):
    gate = machine.work / "gate"
    os.mkfifo(gate)
    with gflow.Executor() as executor:
        future = executor.submit(work.wait_for, str(gate))
        machine.running(future.job.id)
        machine.kill_daemon()
        machine.up()
        gate.write_text("still")
        assert future.result(timeout=60) == "still"


def test_decorator(client):
    assert work.train(2, epochs=3) == (6, os.environ.get("CUDA_VISIBLE_DEVICES")) and work.train.__doc__ == "Trains."
    job = work.train.submit(2, epochs=4)
    assert job.result(timeout=60) == (8, "0") and job.name == "trained"
    assert [one for one, _ in work.train.map([1, 2])] == [1, 2]


def test_decorated_methods(client):
    model = work.Model(3)
    assert (model.fit(2), work.Model.fit(model, 2), model.fit.__doc__, model.plain(1), work.Deep.named(4)) == (
        6, 6, "Fits.", (1, "plain"), ("Deep", 4))
    job = model.fit.submit(5)
    assert job.result(timeout=60) == 15 and job.name == "fit"
    assert list(model.fit.map([1, 2])) == [3, 6]
    assert work.Model.fit.submit(model, x=2).result(timeout=60) == 6
    assert work.Deep.named.submit(4).result(timeout=60) == ("Deep", 4)
    assert work.Deep(1).named.submit(4).result(timeout=60) == ("Deep", 4)
    assert work.Model.plain.submit(1).result(timeout=60) == model.plain.submit(1).result(timeout=60) == (1, "plain")
    assert super(work.Deep, work.Deep(2)).fit.submit(4).result(timeout=60) == 8  # which its class has by another meaning
    assert list(gflow.map(model.bare, [1])) == [8] and list(gflow.map(model.fit, [2])) == [6]


def here_only(x):
    return x, __name__


def test_a_function_of_a_module_is_found_by_its_name(client):
    """Also where that name leads to what a decorator made of it."""
    divide = gflow.function(name="division")(work.divide)
    assert divide.submit(3).result(timeout=60) == 4 and client.newest().name == "division"
    assert inspect.signature(divide) == inspect.signature(work.divide) and divide.__wrapped__ is work.divide
    assert [gflow.function()(one).submit(4).result(timeout=60) for one in (work.inside, work.outside)] == [10, 10]
    inner = work.inside.__wrapped__
    assert [one.submit(4).result(timeout=60) for one in (inner, work.outside)] == [5, 10]
    assert list(gflow.map(inner.__wrapped__, [4])) == [5]
    assert gflow.function()(inner.__wrapped__).submit(4).result(timeout=60) == 5
    assert gflow.function()(functools.partial(work.divide, 6)).submit().result(timeout=60) == 2
    assert gflow.function()(here_only).submit(1).result(timeout=60) == (1, __name__)


def test_a_decorated_function_is_pickled_by_its_name():
    for one in (work.train, work.Model.fit, work.Model(1).fit, work.inside.__wrapped__):
        for dumps in (pickle.dumps, functions._worker.pickler().dumps):
            assert len(dumps(functions.by_place(one))) < 200
    assert pickle.loads(pickle.dumps(work.train)) is work.train


def test_retries_count_until_one_is_well(client, machine):
    """The result is that of the last attempt."""
    job = functions.submit_calls(client, work.divide, [((0,), {})], {"max_retries": 1})[0]
    with pytest.raises(ZeroDivisionError):
        job.result(timeout=60)
    assert job.show()["attempt"] == 2
    job = functions.submit_calls(client, work.killed_at_last, [((), {})], {"max_retries": 1})[0]
    with pytest.raises(gflow.JobFailed, match="by signal 9"):
        job.result(timeout=60)


def test_an_attempt_that_dies_before_it_begins_has_no_result(client, machine):
    """That of the attempt before is not its own."""
    for take in (lambda job: job.result(timeout=60), lambda job: (job.wait(), job.given())):
        machine.ok("rm", "-f", "gflow.py")
        job = functions.submit_calls(client, work.spoils_the_next, [((), {})], {"max_retries": 1, "cwd": machine.work})[0]
        with pytest.raises(gflow.JobFailed, match="exit code 3"):
            take(job)
        assert job.show()["attempt"] == 2
    assert folders(machine) == []


def test_a_result_is_kept_by_its_job_and_its_folder_goes(client, machine):
    job = functions.submit_calls(client, work.divide, [((3,), {})], {})[0]
    assert [job.result(timeout=60), job.result()] == [4, 4] and folders(machine) == []
    failing = functions.submit_calls(client, work.divide, [((0,), {})], {"max_retries": 1})[0]
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            failing.result(timeout=60)
    killed = functions.submit_calls(client, work.killed, [((), {})], {})[0]
    for _ in range(2):
        with pytest.raises(gflow.JobFailed, match="by signal 9"):
            killed.result(timeout=60)
    assert folders(machine) == []


def test_of_a_map_each_result_is_taken_once(client, machine):
    results = gflow.map(work.divide, [3, 4, 6])
    assert results.jobs[2].result(timeout=60) == 2 and next(results) == 4
    with pytest.raises(gflow.GflowError, match="job 1 was taken before, as one of the results of its map"):
        results.jobs[0].result()
    results.close()
    assert len(folders(machine)) == 2
    assert results.jobs[1].result(timeout=60) == 3 and folders(machine) == []
    assert list(results) == [3, 2]


def test_what_a_fork_takes_is_left_to_its_parent(client, machine):
    job = functions.submit_calls(client, work.divide, [((3,), {})], {})[0]
    child = os.fork()
    if child == 0:
        os._exit(0 if job.result(timeout=60) == 4 else 1)
    assert os.waitpid(child, 0)[1] == 0 and len(folders(machine)) == 2
    assert job.result(timeout=60) == 4 and folders(machine) == []


FORKS = """
import os, sys, gflow, work
gates = sys.argv[1:]
results = gflow.map(work.wait_for, gates)
events = gflow.events(type="job.ended")
if child := os.fork():
    for gate in gates:
        with open(gate, "w") as file:
            file.write("x")
    status = os.waitpid(child, 0)[1]
print(list(results), sorted(next(events)["job"] for _ in gates), flush=True)
if not child:
    os._exit(0)
print(status)
"""


def test_results_and_events_in_a_forked_process_are_its_own(machine):
    """Both have all of them."""
    gates = [machine.work / "a", machine.work / "b"]
    for gate in gates:
        os.mkfifo(gate)
    environment = machine.environment | {"PYTHONPATH": f"{SOURCE}:{ROOT}/tests/python"}
    done = subprocess.run([sys.executable, "-c", FORKS, *map(str, gates)], env=environment, capture_output=True, text=True,
                          timeout=PATIENCE, check=False)
    assert (done.stdout, done.stderr) == ("['x', 'x'] [1, 2]\n" * 2 + "0\n", "")


LEAVES = """
import sys, gflow, work
job = gflow.function()(work.wait_for).submit(sys.argv[1])
print(job.id, flush=True)
sys.stdin.read()
"""


def test_what_a_program_left_goes_with_the_next_one(client, machine, monkeypatch):
    """Once it has ended, and its jobs."""
    gate = machine.work / "gate"
    os.mkfifo(gate)
    environment = machine.environment | {"PYTHONPATH": f"{SOURCE}:{ROOT}/tests/python"}

    def left_after_a_call():
        monkeypatch.setattr(_folders, "_swept", set())
        assert list(gflow.map(work.divide, [3])) == [4]
        return len([one for one in folders(machine) if one.is_dir()])

    with subprocess.Popen([sys.executable, "-c", LEAVES, str(gate)], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        job = client.job(int(program.stdout.readline()))
        machine.running(job.id)
        assert left_after_a_call() == 1
        kill(program.pid)
    assert left_after_a_call() == 1  # which its job still reads
    gate.write_text("x")
    assert job.result()["status"] == "Finished"
    assert left_after_a_call() == 0 and folders(machine) == []


def test_events_that_are_gone_are_asked_for(client, monkeypatch):
    told = iter([gflow.EventsGone({"status": 410, "after": 1}, "GET")])

    class Gone:
        def __iter__(self):
            raise next(told)

    endings = functions.Endings(client)
    endings._stream.close()
    endings._stream = Gone()
    job = client.submit("true")
    job.wait()
    held = client.submit("true", hold=True)
    many = range(10**15, 10**15 + 10_000)  # more than a request has room for, which ended so long ago that they are not kept
    heard = endings.heard(lambda: [held.id, *many, job.id])
    assert [next(heard) for _ in range(10_001)] == [(one, True) for one in [*many, job.id]]
    endings.close()


def test_for_another_machine_it_is_refused(lab):
    far = gflow.Client(lab.tls_url, token="gflow_x", fingerprint=lab.fingerprint)
    with pytest.raises(gflow.ConfigurationError, match="may be another one"):
        functions.submit_calls(far, work.divide, [((1,), {})], {})


SCRIPT = """
import gflow
def square(x):
    return x * x
@gflow.function()
def cube(x):
    return x ** 3
class Model:
    def __init__(self, weight):
        self.weight = weight
    @gflow.function()
    def fit(self, x):
        return self.weight * x
    @gflow.function()
    @classmethod
    def named(cls):
        return cls.__name__
if __name__ == "__main__":
    print(list(gflow.map(square, range(3))), list(gflow.map(lambda x: -x, [1])), cube.submit(2).result(),
          Model(2).fit.submit(4).result(), Model.named.submit().result())
"""


def test_functions_of_a_script_with_cloudpickle(machine, python):
    out = python(script=SCRIPT, program=program("python"))
    assert out == "[0, 1, 4] [-1] 8 8 Model\n"


def test_functions_of_a_script_without_it(machine, python):
    out = python("-S", "-c", SCRIPT.replace("    print(list", "    try: print(list") + "    except gflow.ConfigurationError as e: print(e)")
    assert "pip install 'gflow[cloudpickle]'" in out


def test_ten_thousand_are_submitted_at_once(client):
    """All of them in one request and one transaction."""
    jobs = functions.submit_calls(client, work.divide, [((item,), {}) for item in range(10_000)], {"hold": True})
    assert len(jobs) == 10_000 and jobs[-1].name == "divide_9999"


def test_which_call_cannot_be_sent_is_said(client, machine):
    with pytest.raises(TypeError, match="what call 1 is given cannot be sent to a job: .*lock"):
        client.map(len, ["well", threading.Lock(), "well"])
    assert client.jobs() == [] and folders(machine) == []
