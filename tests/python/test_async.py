# SPDX-License-Identifier: Apache-2.0
"""gflow.AsyncClient: the same steps on an event loop."""

import asyncio
import contextlib
import inspect
import os
import select
import threading

import gflow
import pytest
import work
from gflow import _async, _calls, _sync
from machine import Gate


def on_a_loop(test):
    def run(machine):
        async def body():
            async with gflow.AsyncClient(f"unix:{machine.socket}") as client:
                await test(machine, client)

        asyncio.run(body())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


def calls_of(kind):
    """Its calls with what they take; `close` is `aclose` where it is awaited."""
    found = {name: inspect.signature(member).replace(return_annotation=None) for name, member in vars(kind).items()
             if callable(member) and not name.startswith("_")}
    return {"close" if name == "aclose" else name: taken for name, taken in found.items()}


@pytest.mark.parametrize(("awaited", "plain"), [(gflow.AsyncClient, gflow.Client), (gflow.AsyncJob, gflow.Job)])
def test_each_call_of_the_one_is_a_call_of_the_other(awaited, plain):
    assert calls_of(awaited) == calls_of(plain)


@on_a_loop
async def test_what_is_told_of_the_machine(machine, client):
    job = await client.submit("true", project="p")
    assert (await client.newest()).id == job.id
    await job.wait()
    assert (await client.statistics(project="p"))["total"]["states"]["Finished"] == 1
    assert (await client.validate(1))["valid"] is True
    assert (await client.monitoring())["kind"] == "GpuMonitoring" and (await client.principal())["kind"] == "Principal"
    assert (await client.daemon())["socket"] == str(machine.socket)


@on_a_loop
async def test_jobs(machine, client):
    gate = Gate(machine)
    job = await client.submit(f"printf 'one\\303'; {gate.command}; printf '\\251\\ntwo\\n'", gpus="1(RTX3090)", name="a")
    pieces = job.follow()
    assert await pieces.__anext__() == "one"  # and half of a character
    with pytest.raises(gflow.WaitTimeout):
        await job.wait(timeout=0.05)
    await asyncio.get_running_loop().run_in_executor(None, gate.reached)
    await asyncio.get_running_loop().run_in_executor(None, gate.open)
    assert "".join([piece async for piece in pieces]) == "é\ntwo\n"
    assert (await job.result())["status"] == "Finished" and await job.log(tail=1) == "two\n"
    failing = await client.submit("exit 4", depends_on=job)
    with pytest.raises(gflow.JobFailed, match="exit code 4"):
        await failing.result()
    assert len(await client.jobs(state=["Failed"])) == 1
    with pytest.raises(gflow.NotFound):
        await client.job(99)


@on_a_loop
async def test_many_at_once(machine, client):
    jobs = await asyncio.gather(*(client.submit("true", name=f"n{i}") for i in range(20)))
    assert sorted(one.id for one in jobs) == list(range(1, 21))
    assert {one["status"] for one in await client.wait(*jobs)} == {"Finished"}


@on_a_loop
async def test_an_array(machine, client):
    jobs = await client.submit_array("echo $GFLOW_ARRAY_TASK_ID", [3, 5])
    await client.wait(*jobs)
    assert [await job.log() for job in jobs] == ["3\n", "5\n"]


@on_a_loop
async def test_functions(machine, client):
    """Results come as they are there, exceptions at their place, and nothing of them stays."""
    os.environ["HOME"], home = str(machine.home), os.environ["HOME"]
    try:
        results = await client.map(work.divide, [3, 0, 4], gpus=1)
        assert len(results) == 3 and await results.__anext__() == 4
        with pytest.raises(ZeroDivisionError):
            await results.__anext__()
        assert [one async for one in results] == [3] and list((machine.state / "functions").iterdir()) == []
        stops = await client.map(work.stops, [0])
        with pytest.raises(RuntimeError, match="the function raised StopAsyncIteration in job 4"):
            await stops.__anext__()
        killed = await client.map(work.killed_by, [0])
        with pytest.raises(gflow.JobFailed, match="by signal 9"):
            await killed.jobs[0].result()
        held = await client.map(work.divide, [1, 2], hold=True)
        await held.cancel()
        with pytest.raises(gflow.JobFailed, match="Cancelled"):
            await held.__anext__()
        await held.aclose()
        assert [one async for one in await client.map(work.divide, [])] == []
    finally:
        os.environ["HOME"] = home


def test_results_are_cancelled_by_one_request(machine, cancellations, monkeypatch):
    monkeypatch.setenv("HOME", str(machine.home))

    async def body():
        async with gflow.AsyncClient(f"unix:{machine.socket}") as client:
            results = await client.map(work.divide, [1, 2, 3, 4], hold=True)
            await results.jobs[1].cancel()
            await results.cancel()
            assert cancellations == [[2], [1, 3, 4]] and {one["status"] for one in await client.jobs()} == {"Cancelled"}

    asyncio.run(body())


@on_a_loop
async def test_after_a_cancelled_wait_results_go_on(machine, client):
    """Also where the news came in that moment and was lost."""
    gate = machine.work / "gate"
    os.mkfifo(gate)
    os.environ["HOME"], home = str(machine.home), os.environ["HOME"]
    try:
        results = await client.map(work.wait_for, [str(gate)])
        connection = results._endings._stream._stream
        receive = connection._receive

        async def receive_too_late(silence, patience):
            while b"job.ended" not in await receive(silence, patience):
                pass
            raise asyncio.CancelledError

        connection._receive = receive_too_late
        machine.running(results.jobs[0].id)
        gate.write_text("read")
        with pytest.raises(asyncio.CancelledError):
            await results.__anext__()
        del connection._receive
        assert [one async for one in results] == ["read"]
    finally:
        os.environ["HOME"] = home


@on_a_loop
async def test_results_whose_events_are_gone_are_asked_for(machine, client):
    os.environ["HOME"], home = str(machine.home), os.environ["HOME"]
    try:
        results = await client.map(work.divide, [3, 4])
        await client.wait(*results.jobs)
        await results._endings.aclose()

        class Gone:
            async def __anext__(self):
                raise gflow.EventsGone({"status": 410, "after": 1}, "GET")

        results._endings._stream = Gone()
        assert [one async for one in results] == [4, 3]
    finally:
        os.environ["HOME"] = home


@on_a_loop
async def test_events_and_changes(machine, client):
    job = await client.submit("sleep 600", hold=True)
    assert (await job.why())[0]["kind"] == "hold"
    await job.update(priority=3)
    await job.release()
    await job.cancel()
    await job.wait()
    first = await client.events(follow=False).__anext__()
    types = []
    async with client.events(job=job, after=first["id"]) as events:
        async for event in events:
            types.append(event["type"])
            if types[-1] == "job.ended":
                break
    assert types[:2] == ["job.changed", "job.released"]


@on_a_loop
async def test_suspend_and_resume(machine, client):
    job = await client.submit("sleep 600")
    machine.running(job.id)
    await job.suspend()
    assert await client.suspend(job) == [] and await job.status() == "Suspended"
    await job.resume()
    assert await client.resume(job) == [] and await job.status() == "Running"


@on_a_loop
async def test_leases(machine, client):
    async with client.gpus(2) as devices:
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "0,1" and devices.indices == [0, 1]
        with pytest.raises(gflow.NoGpus):
            async with client.gpus(1, wait=False):
                pass
        with pytest.raises(gflow.WaitTimeout):
            async with client.gpus(1, timeout=0.05):
                pass
    assert "CUDA_VISIBLE_DEVICES" not in os.environ and await client.allocations() == []
    lost = asyncio.get_running_loop().create_future()
    with pytest.raises(gflow.LeaseLost, match="cancelled"):
        async with client.gpus(1, on_lost=lost.set_result) as devices:
            await client.cancel(devices.allocation_id)
            assert await lost == "cancelled"
    assert (await client.select(1)).indices == [0]


def test_many_that_wait_leave_room_for_who_gives_back(few_connections, monkeypatch):
    monkeypatch.setattr(_calls, "_listening", threading.BoundedSemaphore(4))

    async def body():
        async with gflow.AsyncClient(f"unix:{few_connections.socket}") as client:

            async def wait():
                async with client.gpus(2, set_environment=False) as devices:
                    return devices.indices

            async with client.gpus(2), client.events(type="job.submitted") as submitted:
                waiting = [asyncio.ensure_future(wait()) for _ in range(24)]
                for _ in waiting:
                    await submitted.__anext__()
            assert await asyncio.gather(*waiting) == [[0, 1]] * len(waiting) and await client.allocations() == []

    asyncio.run(body())


@pytest.mark.parametrize("turns", [0, 3])  # of the loop, which may read first
def test_who_is_refused_before_it_asked_is_told_why(few_connections, monkeypatch, caplog, turns):
    opened = _async.Connection.open

    async def open_and_be_refused(server):
        connection = await opened(server)
        select.select([connection._to.get_extra_info("socket").fileno()], [], [])
        for _ in range(turns):
            await asyncio.sleep(0)
        return connection

    async def body():
        async with gflow.AsyncClient(f"unix:{few_connections.socket}", patience=0) as client:
            monkeypatch.setattr(_async.Connection, "open", open_and_be_refused)
            with pytest.raises(gflow.Exhausted, match="has 16 connections open"):
                await client.jobs()

    with contextlib.ExitStack() as stack:
        for _ in range(16):
            stack.enter_context(contextlib.closing(_sync.Connection(gflow.Client(f"unix:{few_connections.socket}").server)))
        asyncio.run(body())
    assert caplog.text == ""  # nothing went wrong behind it


@on_a_loop
async def test_a_lease_that_has_its_gpus_takes_no_others(machine, client):
    lease = client.gpus(1)
    for _ in range(2):
        async with lease as devices:
            with pytest.raises(gflow.GflowError, match="this lease has its GPUs already"):
                await lease.__aenter__()
            assert [one["allocation_id"] for one in await client.allocations()] == [devices.allocation_id]
        assert await client.allocations() == []


@on_a_loop
async def test_a_task_that_is_cancelled_gives_back_what_it_has(machine, client):
    held = asyncio.Event()

    async def work():
        async with client.gpus(2):
            held.set()
            await asyncio.sleep(3600)

    task = asyncio.ensure_future(work())
    await held.wait()
    async with client.events(type="job.submitted") as submitted:
        waits = asyncio.ensure_future(client.gpus(1).__aenter__())
        await submitted.__anext__()
    waits.cancel()
    task.cancel()
    for one in (waits, task):
        with pytest.raises(asyncio.CancelledError):
            await one
    assert await client.allocations() == []


@on_a_loop
async def test_gflowd_goes_away_and_comes_back(machine, client):
    job = await client.submit("sleep 600")
    machine.kill_daemon()
    waits = asyncio.ensure_future(job.wait())
    again = asyncio.ensure_future(client.submit("true"))
    await asyncio.get_running_loop().run_in_executor(None, machine.up)
    assert (await again).id == 2
    await job.cancel()
    assert (await waits)["status"] == "Cancelled"


def test_over_tls(lab):
    async def body():
        token = lab.ok("gctl", "token", "create", "aio", "--scope", "read").strip()
        async with gflow.AsyncClient(lab.tls_url, token=token, fingerprint=lab.fingerprint) as client:
            assert (await client.machine())["kind"] == "Machine" and (await client.gpu_status())["total_nodes"] == 1
        async with gflow.AsyncClient(lab.tls_url, token=token, fingerprint="SHA256:0") as client:
            with pytest.raises(gflow.GflowError, match="another certificate"):
                await client.machine()
        async with gflow.AsyncClient("http://127.0.0.1:1", patience=0) as client:
            with pytest.raises(gflow.Unreachable):
                await client.machine()

    asyncio.run(body())
