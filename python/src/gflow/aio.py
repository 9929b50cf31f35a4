# SPDX-License-Identifier: Apache-2.0
"""The client of gflowd for asyncio. Each call is that of `gflow.Client`, awaited.

>>> import asyncio
>>> async def main():
...     async with gflow.AsyncClient() as client:
...         jobs = [await client.submit(f"echo {word}", gpus=1) for word in ("first", "second")]
...         await client.wait(*jobs)
...         return [await job.log() for job in jobs]
>>> asyncio.run(main())
['first\\n', 'second\\n']
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Optional, TypeVar, Union

from gflow._async import Driver, Iteration
from gflow._calls import API, ENDED, Calls, query_of
from gflow._servers import find_server
from gflow._steps import Deadline
from gflow.client import RESTART_SECONDS, Client, Job
from gflow.devices import Devices, EnvironmentChange, devices_of_allocation, devices_of_choice
from gflow.errors import GflowError, JobFailed, LeaseLost, NotFound, WrongState
from gflow.leases import LeaseTerms, check_is_free, note_of_loss
from gflow.listing import JobList, some_ids
from gflow.submission import Submission, id_of, option_of_gpus

if TYPE_CHECKING:
    from datetime import datetime, timedelta
    from types import TracebackType

    from typing_extensions import Unpack

    from gflow import documents
    from gflow._events import Event
    from gflow.aio_functions import AsyncResults
    from gflow.changes import Explanation, JobChanges
    from gflow.listing import JobQuery
    from gflow.submission import Command, Gpus, JobRef, Seconds, SubmitOptions

R = TypeVar("R")

_LOGGER = logging.getLogger("gflow")


class AsyncClient:
    """As gflow.Client, with the same parameters. It belongs to one event loop."""

    def __init__(self, server: Optional[str] = None, *, token: Optional[str] = None,
                 fingerprint: Optional[str] = None, patience: float = RESTART_SECONDS) -> None:
        self.server = find_server(server, token, fingerprint)
        self._driver = Driver(self.server)
        self._calls = Calls(patience)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"<gflow.AsyncClient of {self.server}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self!r} belongs to an event loop of this process: make one where it is needed")

    async def aclose(self) -> None:
        self._driver.close()

    async def call(self, method: str, target: str, document: Optional[object] = None, *, key: Optional[str] = None) -> Any:
        return await self._driver.run(self._calls.call(method, target, document, key))

    async def submit(self, command: Command, /, *, key: Optional[str] = None,
                     **options: Unpack[SubmitOptions]) -> AsyncJob:
        return (await self.submit_all([Submission(command, **options)], key=key))[0]

    async def submit_all(self, submissions: Sequence[Submission], *, key: Optional[str] = None) -> list[AsyncJob]:
        answers = await self._driver.run(self._calls.submit(submissions, key))
        return [AsyncJob(self, one["id"], one["name"]) for one in answers]

    async def submit_array(self, command: Command, /, tasks: Iterable[int], *, key: Optional[str] = None,
                           **options: Unpack[SubmitOptions]) -> list[AsyncJob]:
        made = await self._driver.run(self._calls.submit_array(Submission(command, **options), list(tasks), key))
        return [AsyncJob(self, *one) for one in made]

    async def map(self, function: Callable[..., R], items: Iterable[Any], **options: Unpack[SubmitOptions]) -> AsyncResults[R]:
        """`async for result in await client.map(train, rates, gpus=1)`: all are submitted once it was awaited."""
        from gflow.aio_functions import map_calls

        return await map_calls(self, function, [((item,), {}) for item in items], options)

    async def check(self, command: Command, /, **options: Unpack[SubmitOptions]) -> None:
        await self._driver.run(self._calls.check([Submission(command, **options)]))

    async def job(self, job_id: int) -> AsyncJob:
        told = await self._driver.run(self._calls.job(job_id))
        return AsyncJob(self, told["id"], told["spec"]["name"])

    async def newest(self, back: int = 0) -> AsyncJob:
        told = await self.call("GET", f"{API}/jobs/newest{query_of({'back': back})}")
        return AsyncJob(self, told["id"], told["spec"]["name"])

    async def jobs(self, *, most: Optional[int] = None, **query: Unpack[JobQuery]) -> JobList:
        return JobList(await self._driver.run(self._calls.jobs(query, most)))

    async def cancel(self, *jobs: JobRef, signal: int = 0) -> list[int]:
        return await self._driver.run(self._calls.cancel(jobs, signal))

    async def signal(self, signal: int, *jobs: JobRef) -> list[int]:
        return await self._driver.run(self._calls.act("signal", jobs, signal=signal))

    async def hold(self, *jobs: JobRef) -> list[int]:
        return await self._driver.run(self._calls.act("hold", jobs))

    async def release(self, *jobs: JobRef, at: Union[datetime, timedelta, None] = None) -> list[int]:
        return await self._driver.run(self._calls.release(jobs, at))

    async def suspend(self, *jobs: JobRef) -> list[int]:
        return await self._driver.run(self._calls.act("suspend", jobs))

    async def resume(self, *jobs: JobRef) -> list[int]:
        return await self._driver.run(self._calls.act("resume", jobs))

    async def update(self, *jobs: JobRef, **changes: Unpack[JobChanges]) -> list[int]:
        return await self._driver.run(self._calls.update(jobs, changes))

    async def wait(self, *jobs: JobRef, timeout: Optional[float] = None) -> list[documents.Job]:
        waited = [self._driver.run(self._calls.wait(id_of(one), timeout)) for one in jobs]
        return list(await asyncio.gather(*waited))

    def events(self, *, job: Union[JobRef, Sequence[JobRef], None] = None, user: Union[str, Sequence[str], None] = None,
               type: Union[str, Sequence[str], None] = None,  # noqa: A002
               after: Optional[int] = None, follow: bool = True) -> Iteration[Event]:
        """What happens, as of gflow.Client. With `async with` it listens from there on, else from its first `async for` on."""
        query = {"job": some_ids(job), "user": user, "type": type, "follow": follow}
        return Iteration(self._driver, self._calls.events(query, after))

    def gpus(self, gpus: Gpus = 1, *, wait: bool = True, timeout: Optional[float] = None,
             ttl: Optional[Seconds] = None, set_environment: bool = True,
             on_lost: Optional[Callable[[str], object]] = None) -> AsyncLease:
        """As of gflow.Client: `async with client.gpus(2) as devices:`"""
        terms = LeaseTerms(self.server, {"gpus": option_of_gpus(gpus)}, wait=wait, ttl=ttl)
        return AsyncLease(self._driver, self._calls, terms, timeout, set_environment, on_lost)

    async def select(self, gpus: Gpus = 1) -> Devices:
        return devices_of_choice(*await self._driver.run(self._calls.select(gpus)))

    async def allocations(self) -> list[documents.GpuAllocationShown]:
        listed: list[documents.GpuAllocationShown] = (await self.call("GET", f"{API}/gpu/allocations"))["allocations"]
        return listed

    async def machine(self) -> documents.Machine:
        told: documents.Machine = await self.call("GET", f"{API}/machine")
        return told

    async def gpu_status(self) -> documents.GpuStatus:
        told: documents.GpuStatus = await self.call("GET", f"{API}/gpu/status")
        return told

    async def monitoring(self) -> documents.GpuMonitoring:
        told: documents.GpuMonitoring = await self.call("GET", f"{API}/gpu/monitoring")
        return told

    async def validate(self, gpus: Gpus = 1) -> documents.GpuValidation:
        return await self._driver.run(self._calls.validate(gpus))

    async def statistics(self, *, since: Optional[datetime] = None, until: Optional[datetime] = None,
                         user: Union[str, Sequence[str], None] = None, project: Optional[str] = None,
                         by: Optional[str] = None) -> documents.Statistics:
        return await self._driver.run(self._calls.statistics(since, until, {"user": user, "project": project, "by": by}))

    async def daemon(self) -> documents.Daemon:
        told: documents.Daemon = await self.call("GET", f"{API}/daemon")
        return told

    async def principal(self) -> documents.Principal:
        told: documents.Principal = await self.call("GET", f"{API}/principal")
        return told


class AsyncJob:
    """As gflow.Job."""

    def __init__(self, client: AsyncClient, job_id: int, name: str = "") -> None:
        self.client = client
        self.id = job_id
        self.name = name

    def __repr__(self) -> str:
        return f"<gflow.AsyncJob {self.id} {self.name}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self!r} belongs to an event loop of this process: send its id, which client.job({self.id}) takes there")

    async def show(self) -> documents.Job:
        return await self.client._driver.run(self.client._calls.job(self.id))

    async def status(self) -> str:
        return (await self.show())["status"]

    async def done(self) -> bool:
        return await self.status() in ENDED

    async def why(self) -> list[documents.BlockerView]:
        return (await self.show())["blockers"]

    async def explain(self) -> Explanation:
        return await self.client._driver.run(self.client._calls.explain(self.id))

    async def wait(self, timeout: Optional[float] = None) -> documents.Job:
        return (await self.client.wait(self, timeout=timeout))[0]

    async def result(self, timeout: Optional[float] = None) -> documents.Job:
        told = await self.wait(timeout)
        if told["status"] != "Finished":
            raise JobFailed(told, await self.log(tail=20) if told["started"] is not None else "")
        return told

    async def log(self, tail: Optional[int] = None) -> str:
        return (await self.client._driver.run(self.client._calls.log(self.id, tail))).decode(errors="replace")

    async def follow(self) -> AsyncIterator[str]:
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        pieces: Iteration[bytes] = Iteration(self.client._driver, self.client._calls.follow(self.id, 0))
        async with pieces:
            async for piece in pieces:
                if text := decoder.decode(piece):
                    yield text
        if rest := decoder.decode(b"", final=True):
            yield rest

    def changes(self) -> Iteration[documents.Job]:
        return Iteration(self.client._driver, self.client._calls.changes(self.id))

    async def cancel(self, signal: int = 0) -> None:
        await self.client.cancel(self, signal=signal)

    async def hold(self) -> None:
        await self.client.hold(self)

    async def release(self, at: Union[datetime, timedelta, None] = None) -> None:
        await self.client.release(self, at=at)

    async def suspend(self) -> None:
        await self.client.suspend(self)

    async def resume(self) -> None:
        await self.client.resume(self)

    async def update(self, **changes: Unpack[JobChanges]) -> None:
        await self.client.update(self, **changes)


class AsyncLease:
    """As gflow.leases.Lease; it is watched by a task, on which `on_lost` is called."""

    def __init__(self, driver: Driver, calls: Calls, terms: LeaseTerms, timeout: Optional[float],
                 set_environment: bool, on_lost: Optional[Callable[[str], object]]) -> None:
        self._driver = driver
        self._calls = calls
        self._terms = terms
        self._timeout = timeout
        self._sets_environment = set_environment
        self._on_lost = on_lost
        self._is_held = False  # or asked for

    async def __aenter__(self) -> Devices:
        check_is_free(self._is_held)
        self._is_held = True
        try:
            return await self._acquire()
        except BaseException:
            self._is_held = False
            raise

    async def _acquire(self) -> Devices:
        deadline = Deadline(self._timeout)
        told = await self._allocate(deadline)
        try:
            told = await self._driver.run(self._calls.await_allocation(told, deadline))
            self._devices = devices_of_allocation(told)
            self._change = EnvironmentChange(self._devices.environment) if self._sets_environment else None
        except BaseException:
            await asyncio.shield(self._give_back(told["allocation_id"]))
            raise
        self._watcher = asyncio.ensure_future(self._watch())
        return self._devices

    async def _allocate(self, deadline: Deadline) -> documents.GpuAllocation:
        """Who is cancelled while gflowd answers gives back what it answers: nobody else knows of it."""
        asked = asyncio.ensure_future(self._driver.run(self._calls.allocate(self._terms.need, deadline)))
        try:
            return await asyncio.shield(asked)
        except asyncio.CancelledError:
            with contextlib.suppress(GflowError):
                await self._give_back((await asked)["allocation_id"])
            raise

    async def __aexit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                        trace: Optional[TracebackType]) -> None:
        if self._change is not None:
            self._change.undo()
        self._watcher.cancel()
        try:
            lost = self._devices.lost or await asyncio.shield(self._give_back(self._devices.allocation_id))
            if lost:
                raise LeaseLost(self._devices.allocation_id or 0, lost)
        except GflowError:
            if kind is None:
                raise
            _LOGGER.warning("what went wrong while GPUs were given back", exc_info=True)
        finally:
            self._is_held = False

    async def _give_back(self, allocation_id: Optional[int]) -> str:
        """Why they were not held any more; "" if they were."""
        if allocation_id is None:
            return ""
        try:
            await self._driver.run(self._calls.give_back(allocation_id))
        except (WrongState, NotFound) as error:
            return error.detail
        return ""

    async def _watch(self) -> None:
        its = self._devices.allocation_id
        assert its is not None
        watched: Iteration[str] = Iteration(self._driver, self._calls.watch(its, self._terms.heartbeat))
        try:
            async with watched:
                async for why in watched:
                    note_of_loss(self._devices, why, self._on_lost)
                    return
        except GflowError as error:
            note_of_loss(self._devices, f"it cannot be kept: {error}", self._on_lost)


def _say_the_same(ours: type, theirs: type) -> None:
    """What is said of a call there, where nothing else is said of it here."""
    for name, one in vars(ours).items():
        if callable(one) and not name.startswith("_") and not one.__doc__:
            one.__doc__ = getattr(theirs, "close" if name == "aclose" else name).__doc__


_say_the_same(AsyncClient, Client)
_say_the_same(AsyncJob, Job)
