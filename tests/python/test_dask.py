# SPDX-License-Identifier: Apache-2.0
"""gflow.dask in programs with the real distributed: its scheduler, its workers, which are jobs."""

import os
import subprocess
import sys

import pytest
from machine import PATIENCE, kill
from package import SOURCE
from pypi import program

HEAD = """
import asyncio, logging, os, ssl, socket, sys
import dask, distributed, gflow
from gflow.dask import GflowCluster

logging.basicConfig(stream=sys.stdout, format="%(name)s: %(message)s")
for quiet in ("distributed", "tornado", "asyncio"):
    logging.getLogger(quiet).setLevel(logging.CRITICAL)

def where(x):
    return x, os.environ["CUDA_VISIBLE_DEVICES"], int(os.environ["GFLOW_JOB_ID"])
"""


@pytest.fixture
def dask(python, dask_over_tls):
    """Runs a program that has distributed."""
    return lambda script, **more: python(script=HEAD + script, program=program("python"), **more)


def test_workers_are_jobs(dask, machine, client):
    """Each on a GPU of its own; who finds none free waits, and says why; at the end nothing is left."""
    said = dask("""
with GflowCluster(2, gpus=1, memory="1G", name="sums") as cluster, cluster.get_client() as client:
    client.wait_for_workers(2)
    found = client.gather(client.map(where, range(8)))
    assert [one[0] for one in found] == list(range(8))
    assert client.submit(where, 1, workers=[0], pure=False).result()[1] != client.submit(where, 1, workers=[1], pure=False).result()[1]
    assert {one[2] for one in found} <= set(cluster.job_ids.values()) == {1, 2}, cluster.job_ids
    with gflow.events(type="job.submitted") as submitted:
        cluster.scale(3)
        waiting = gflow.job(next(submitted)["job"])
    print(waiting.name, [one["kind"] for one in waiting.why()])
    with gflow.events(type="job.ended") as ended:
        cluster.scale(2)
        assert next(ended)["job"] == waiting.id
    print(sorted(one["nthreads"] for one in cluster.scheduler_info["workers"].values()), cluster.scheduler_address[:16])
""")
    reason, threads = said.splitlines()
    assert reason == "sums_2 ['gpus']" and threads == "[1, 1] tls://127.0.0.1:"
    jobs = [client.job(job).show() for job in (1, 2, 3)]
    assert {one["spec"]["request"]["memory_bytes"] for one in jobs} == {1 << 30}
    assert [one["spec"]["name"] for one in jobs] == ["sums_0", "sums_1", "sums_2"]
    assert all(one["status"] in ("Cancelled", "Finished") for one in jobs), jobs


def test_as_many_as_there_is_work_for(dask, client):
    dask("""
async def main():
    async with GflowCluster(gpus=1, asynchronous=True) as cluster, distributed.Client(cluster, asynchronous=True) as client:
        async with gflow.AsyncClient() as lab, lab.events(type="job.ended") as ended:
            cluster.adapt(minimum=0, maximum=2, interval="50ms", wait_count=1)
            assert (await client.submit(where, 1))[0] == 1
            assert cluster.job_ids
            async for event in ended:
                assert event["job"] in (1, 2)
                break
asyncio.run(main())
""")
    assert all(one["status"] in ("Cancelled", "Finished") for one in client.jobs())


def test_a_worker_that_is_taken_away_is_told_and_replaced(dask):
    """Also over a restart of gflowd."""
    said = dask("""
async def main():
    async with GflowCluster(gpus=1, asynchronous=True) as cluster, distributed.Client(cluster, asynchronous=True) as client:
        cluster.adapt(minimum=1, maximum=1, interval="50ms")
        await client.wait_for_workers(1)
        for words in (["gflowd", "down"], ["gflowd", "up", "--devices", "sim:2xRTX3090"]):
            await (await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.DEVNULL)).wait()
        async with gflow.AsyncClient() as lab, lab.events(type="job.submitted") as submitted:
            await lab.cancel(1)
            assert (await submitted.__anext__())["job"] == 2
        print((await client.submit(where, 1))[2])
asyncio.run(main())
""")
    warning, replaced = said.splitlines()
    assert warning.startswith("gflow: worker 0 of ") and ": job 1 Cancelled" in warning and replaced == "2", said


def test_a_gflowd_that_is_away_for_long_is_waited_for(dask):
    """Workers go on without it; what ended meanwhile is replaced."""
    said = dask("""
import functools
gflow.dask.AsyncClient = functools.partial(gflow.AsyncClient, patience=0.1)
async def run(*words):
    await (await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.DEVNULL)).wait()
async def main():
    told = asyncio.Event()
    logging.getLogger("gflow").addFilter(lambda record: told.set() or True)
    async with GflowCluster(2, gpus=1, asynchronous=True) as cluster, distributed.Client(cluster, asynchronous=True) as client:
        await client.wait_for_workers(2)
        async with gflow.AsyncClient() as lab:
            pid = (await (await lab.job(cluster.job_ids[0])).show())["pid"]
        await run("gflowd", "down")
        await told.wait()
        os.kill(pid, 9)
        assert (await client.submit(where, 1))[0] == 1
        told.clear()
        await run("gflowd", "up", "--devices", "sim:2xRTX3090")
        await told.wait()
        async with gflow.AsyncClient() as lab, lab.events(type="job.submitted") as submitted:
            cluster.scale(2)
            assert (await submitted.__anext__())["job"] == 3
asyncio.run(main())
""")
    away, gone = said.splitlines()[:2]
    assert away.startswith("gflow: whether workers of ") and "is not known for now" in away and " is gone: job " in gone, said


def test_a_worker_that_comes_back_is_waited_for(dask, client):
    """A job that is run again is not cancelled meanwhile, however long it waits."""
    dask("""
async def main():
    dask.config.set({"distributed.deploy.lost-worker-timeout": "1 ms"})
    async with GflowCluster(1, gpus=1, max_retries=1, asynchronous=True) as cluster, distributed.Client(cluster, asynchronous=True) as client:
        await client.wait_for_workers(1)
        async with gflow.AsyncClient() as lab:
            job = await lab.job(1)
            async with job.changes() as changes:
                os.kill((await job.show())["pid"], 9)
                async for told in changes:
                    assert told["status"] != "Cancelled", told
                    if told["attempt"] == 2 and told["status"] == "Running":
                        break
        assert await client.submit(lambda: os.environ["GFLOW_ATTEMPT"]) == "2"
asyncio.run(main())
""")
    assert client.job(1).show()["attempt"] == 2


def test_a_worker_that_cannot_start_is_told_and_not_tried_without_end(dask, client):
    said = dask("""
async def main():
    told = asyncio.Event()
    logging.getLogger("gflow").addFilter(lambda record: told.set() or True)
    async with GflowCluster(gpus=1, env={"PYTHONHOME": "/nowhere"}, asynchronous=True) as cluster:
        adaptive = cluster.adapt(minimum=1, maximum=1, interval=3600)
        async with gflow.AsyncClient() as lab:
            await adaptive.adapt()
            await told.wait()
            for _ in range(3):
                await adaptive.adapt()
            async with lab.events(type="job.submitted") as submitted:
                cluster.scale(1)
                assert (await submitted.__anext__())["job"] == 2
asyncio.run(main())
""")
    assert said.startswith("gflow: worker 0 of ") and "job 1 Failed" in said and "No module named 'encodings'" in said
    assert len(client.jobs()) == 2


def test_a_worker_that_ends_before_its_submission_is_answered_is_told(dask):
    said = dask("""
class Slow(gflow.AsyncClient):
    async def submit(self, command, **options):
        job = await super().submit(command, **options)
        await job.wait()
        return job
gflow.dask.AsyncClient = Slow
async def main():
    told = asyncio.Event()
    logging.getLogger("gflow").addFilter(lambda record: told.set() or True)
    async with GflowCluster(1, gpus=1, env={"PYTHONHOME": "/nowhere"}, asynchronous=True) as cluster:
        await told.wait()
        print(cluster.job_ids, cluster.plan)
asyncio.run(main())
""")
    assert said.startswith("gflow: worker 0 of ") and said.count("is gone: job 1 Failed") == 1 and said.endswith("{} {0}\n"), said


def test_what_is_refused_is_refused_at_once(dask, client):
    said = dask("""
for options in (dict(gpus=99), dict(gpus="nonsense"), dict(memory="much"), dict(gpu=1), dict(security=True),
                dict(worker_extra_args="--resources GPU=1"), dict(nthreads="x"), dict(death_timeout=None)):
    try:
        GflowCluster(2, **options)
    except Exception as error:
        print(type(error).__name__, error)
for server in ("nobody", "http://127.0.0.1:1"):
    try:
        GflowCluster(server=server)
    except gflow.ConfigurationError as error:
        print("ConfigurationError", error)
""").splitlines()
    assert [one.split()[0] for one in said] == ["Infeasible", "RequestError", "OptionError", "TypeError", *["OptionError"] * 4, *["ConfigurationError"] * 2], said
    assert "['--resources', 'GPU=1']" in said[5]
    assert "a worker has no option 'gpu'; it has 'gpus'" in said[3] and "say where they find the scheduler" in said[9]
    assert client.jobs() == []


def test_a_worker_that_is_refused_is_not_planned(dask, machine, client):
    """Else it would be counted on."""
    machine.config("[limits]\nmax_queued_per_user = 1\n")
    machine.ok("gctl", "config", "reload")
    client.submit("sleep 600", gpus=2)
    dask("""
async def main():
    async with GflowCluster(1, gpus=1, asynchronous=True) as cluster:
        cluster.scale(3)
        try:
            await cluster
            raise SystemExit("it was taken")
        except gflow.Exhausted:
            assert cluster.plan == cluster.requested == {0} and cluster.job_ids == {0: 2}, cluster.worker_spec
asyncio.run(main())
""")


def test_nobody_else_can_use_it(dask):
    """Who has not the key of the cluster is not let in."""
    said = dask("""
with GflowCluster(1, gpus=1) as cluster, cluster.get_client() as client:
    client.wait_for_workers(1)
    places = [cluster.scheduler_address, *cluster.scheduler_info["workers"]]
    for place in places:
        open_to_all = ssl.create_default_context()
        open_to_all.check_hostname, open_to_all.verify_mode = False, ssl.CERT_NONE
        host, port = place.removeprefix("tls://").split(":")
        try:
            with open_to_all.wrap_socket(socket.create_connection((host, int(port)))) as plain:
                plain.sendall(bytes(64))
                assert plain.recv(1) == b"", "it was let in"
        except (ssl.SSLError, ConnectionResetError) as error:
            print("refused")
    with open("/proc/net/tcp") as table:
        assert host == "127.0.0.1" and len(places) == 2
""")
    assert said == "refused\nrefused\n"


def test_workers_end_with_a_program_that_is_killed(machine, dask_over_tls):
    script = HEAD + """
cluster = GflowCluster(1, gpus=1)
cluster.get_client().wait_for_workers(1)
print("ready", flush=True)
sys.stdin.read()
"""
    environment = machine.environment | {"PYTHONPATH": str(SOURCE), "PYTHONDONTWRITEBYTECODE": "1"}
    with subprocess.Popen([program("python"), "-c", script], env=environment, cwd=machine.work, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout.readline() == "ready\n"
        kill(running.pid)
    assert machine.wait(1)[0]["status"] in ("Finished", "Failed")


def test_a_program_that_ends_without_closing_it_leaves_nothing(machine, client, dask_over_tls):
    """Neither workers nor those that wait, and it says nothing of it."""
    script = HEAD + """
cluster = GflowCluster(3, gpus=1)
print(cluster.get_client().submit(pow, 2, 10).result())
"""
    environment = machine.environment | {"PYTHONPATH": str(SOURCE), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([program("python"), "-c", script], env=environment, cwd=machine.work, capture_output=True, text=True,
                          timeout=PATIENCE, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1024\n", "")
    assert len(client.jobs()) == 3 and all(one["status"] in ("Cancelled", "Finished") for one in client.jobs())
