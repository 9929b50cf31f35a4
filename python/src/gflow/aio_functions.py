# SPDX-License-Identifier: Apache-2.0
"""Functions as jobs, for asyncio: as `gflow.functions`, awaited."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Generic, Optional, TypeVar, cast

from gflow._folders import Folder, Left
from gflow.aio import AsyncClient, AsyncJob
from gflow.errors import EventsGone, GflowError, JobFailed
from gflow.functions import check_attempt, returned, steps_of_calls

if TYPE_CHECKING:
    from gflow import documents
    from gflow._async import Iteration
    from gflow.submission import SubmitOptions

R = TypeVar("R")


class AsyncFunctionJob(AsyncJob, Generic[R]):
    """The job of one call."""

    def __init__(self, client: AsyncClient, job_id: int, name: str, folder: Folder, index: int) -> None:
        super().__init__(client, job_id, name)
        self.folder = folder
        self.index = index
        self._left: Optional[Left] = None
        self._is_given = False

    async def result(self, timeout: Optional[float] = None) -> R:  # type: ignore[override] # pyright: ignore[reportIncompatibleMethodOverride]
        """What the function returned; what it raised is raised. Errors: JobFailed where it came to neither, WaitTimeout."""
        if self._left is None:
            if self._is_given:
                raise GflowError(f"the result of job {self.id} was taken before, as one of the results of its map")
            told = await self.wait(timeout)
            self._left = self._left or await self._read(told)
            self.folder.drop(self.index)
        return cast("R", returned(self._left))

    async def given(self) -> R:
        """The same of a job that has ended, once: it is not kept for another time."""
        left = self._left or await self._read(None)
        self._is_given = self._left is None
        self.folder.drop(self.index)
        return cast("R", returned(left))

    async def _read(self, told: Optional[documents.Job]) -> Left:
        try:
            left = self.folder.left(self.index)
            if told is None and not left.is_well:
                told = await self.show()
            check_attempt(left, told)
        except FileNotFoundError:
            told = told or await self.show()
            self.folder.drop(self.index)
            raise JobFailed(told, await self.log(tail=20) if told["started"] is not None else "") from None
        return left


class AsyncEndings:
    """Which jobs have ended, by listening; begin before they are submitted."""

    def __init__(self, client: AsyncClient, stream: Iteration[Any]) -> None:
        self._client = client
        self._stream = stream

    @classmethod
    async def begin(cls, client: AsyncClient) -> AsyncEndings:
        return cls(client, await _listen(client))

    async def heard(self, waited: Callable[[], Iterable[int]]) -> set[int]:
        """Those that ended since. Where too much happened to be told, those `waited` for are asked for.
        Errors: StopAsyncIteration once it is closed."""
        try:
            return {(await self._stream.__anext__())["job"]}
        except EventsGone:
            return await self.asked_for(waited)

    async def asked_for(self, waited: Callable[[], Iterable[int]]) -> set[int]:
        """Of these, those that have ended; it listens anew."""
        self._stream = await _listen(self._client)
        return await ended_of(self._client, waited())

    async def aclose(self) -> None:
        await self._stream.aclose()


async def ended_of(client: AsyncClient, jobs: Iterable[int]) -> set[int]:
    """Of these, those that have ended."""
    ids = list(jobs)
    return set(ids) - set(await client._driver.run(client._calls.unended(ids)))


async def _listen(client: AsyncClient) -> Iteration[Any]:
    return await client.events(type="job.ended").__aenter__()


class AsyncResults(AsyncIterator[R]):
    """What the calls of a map return, in their order, as they come. What one of them raised is raised at its place;
    the next `anext()` goes on behind it."""

    def __init__(self, client: AsyncClient, jobs: Sequence[AsyncFunctionJob[R]], endings: AsyncEndings) -> None:
        self._client = client
        self.jobs = list(jobs)
        self._endings = endings
        self._place = 0
        self._ended: set[int] = set()

    def __len__(self) -> int:
        return len(self.jobs)

    def __aiter__(self) -> AsyncResults[R]:
        return self

    async def __anext__(self) -> R:
        if self._place == len(self.jobs):
            await self.aclose()
            raise StopAsyncIteration
        job = self.jobs[self._place]
        try:
            while job.id not in self._ended:
                await self._hear(job)
        except BaseException:
            await self._endings.aclose()  # what was being read is lost: from here on each job is waited for
            raise
        self._place += 1
        try:
            return await job.given()
        except StopAsyncIteration as error:  # which would end the results, and not say so
            raise RuntimeError(f"the function raised StopAsyncIteration in job {job.id}") from error

    async def _hear(self, waited: AsyncFunctionJob[R]) -> None:
        """That a job has ended."""
        try:
            self._ended |= await self._endings.heard(
                lambda: [job.id for job in self.jobs[self._place:] if job.id not in self._ended])
        except StopAsyncIteration:  # it was closed
            await waited.wait()
            self._ended.add(waited.id)

    async def cancel(self) -> None:
        """Those that have not ended."""
        await self._client._driver.run(self._client._calls.cancel_unended(self.jobs[self._place:]))

    async def aclose(self) -> None:
        """Listens no more. Each of `jobs` has its result until that was taken."""
        await self._endings.aclose()


async def map_calls(client: AsyncClient, function: Callable[..., R], calls: Sequence[tuple[Sequence[Any], Any]],
                    options: SubmitOptions) -> AsyncResults[R]:
    endings = await AsyncEndings.begin(client)  # before there is anything to hear
    try:
        made = await client._driver.run(steps_of_calls(client._calls, client.server, function, calls, options))
    except BaseException:
        await endings.aclose()
        raise
    return AsyncResults(client, [AsyncFunctionJob(client, *one) for one in made], endings)
