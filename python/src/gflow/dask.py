# SPDX-License-Identifier: Apache-2.0
"""A Dask cluster whose workers are jobs: `with gflow.dask.GflowCluster(gpus=1) as cluster: cluster.scale(4)`."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Optional, cast

from gflow._servers import find_server
from gflow.aio import AsyncClient, AsyncJob
from gflow.aio_functions import AsyncEndings, ended_of
from gflow.errors import ConfigurationError, ConnectionLost, GflowError, JobFailed, NotFound, OptionError, ServerTimeout, Unreachable, WrongState
from gflow.submission import SubmitOptions, bytes_of, given_to_calls, whole_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

# Of what they inherit little is typed.
_config: Any = importlib.import_module("dask.config")
_spec: Any = importlib.import_module("distributed.deploy.spec")
_scheduler: Any = importlib.import_module("distributed.scheduler")
_security: Any = importlib.import_module("distributed.security")
_status: Any = importlib.import_module("distributed.core").Status

_LOGGER = logging.getLogger("gflow")
_DEATH_SECONDS = 60
_AWAY = (Unreachable, ConnectionLost, ServerTimeout)


class GflowWorker(_spec.ProcessInterface):  # type: ignore[misc]
    """A worker, which is a job; it is one of a cluster. `job` is None until it was submitted."""

    def __init__(self, scheduler: str, name: object, *, cluster: GflowCluster, nthreads: int, memory_limit: Optional[int]) -> None:
        super().__init__(scheduler, name)
        self.name = name
        self.job: Optional[AsyncJob] = None
        self.is_told = False
        """That it is gone."""
        self._cluster_of = cluster
        self._command = [sys.executable, "-m", "distributed.cli.dask_worker", scheduler, "--name", str(name), "--nthreads", str(nthreads),
                         *(["--memory-limit", str(memory_limit)] if memory_limit is not None else []), *cluster.worker_words]

    async def start(self) -> None:
        """Returns once it is in the queue."""
        try:
            self.job = await self._cluster_of.submit_worker(self._command, self.name)
        except BaseException:
            self.status = _status.failed
            raise
        await super().start()

    async def close(self) -> None:
        """Its GPUs are another's once this returns."""
        if self.job is not None and self.status != _status.closed:
            with contextlib.suppress(WrongState, NotFound):  # it has ended
                await self.job.cancel()
                await self.job.wait()
        await super().close()


class GflowCluster(_spec.SpecCluster):  # type: ignore[misc]
    """A cluster of distributed (https://distributed.dask.org). Its scheduler runs in this process; each worker is a job, waits in the
    queue, is seen in `gqueue`, and holds its GPUs until it is scaled down or this process ends.

    >>> from gflow.dask import GflowCluster
    >>> with GflowCluster(1, gpus=1) as cluster, cluster.get_client() as client:
    ...     client.submit(pow, 2, 10).result()
    1024

    n_workers: how many to begin with; `scale(n)` and `adapt(minimum=0, maximum=8)` change that.
    nthreads: tasks a worker runs at once; as many as `cpus`, or 1.
    server: which gflowd, as of gflow.Client.
    token: as of gflow.Client.
    worker_extra_args: words for `dask worker`, as ["--resources", "GPU=1"].
    scheduler_options: of distributed.Scheduler, as {"dashboard_address": ":8787"}; it listens on 127.0.0.1, where it is not told of
        another "host", without a dashboard.
    security: distributed.security.Security; without one TLS by a key made for this cluster, as else every account of the machine
        could run what it likes as this one.
    death_timeout: seconds after which a worker that finds no scheduler ends.
    options: those of gflow.submit(), of the job of each worker.

    Errors: OptionError and those of Client.check(), before anything runs; ConfigurationError where gflowd may be on another machine and no "host" is said."""

    def __init__(self, n_workers: int = 0, *, nthreads: Optional[int] = None, server: Optional[str] = None, token: Optional[str] = None,
                 worker_extra_args: Sequence[str] = (), scheduler_options: Optional[Mapping[str, Any]] = None, security: Any = None,
                 death_timeout: int = _DEATH_SECONDS, asynchronous: bool = False, loop: Any = None,
                 **options: Unpack[SubmitOptions]) -> None:
        given = given_to_calls("a worker", options)
        _check_worker(nthreads, worker_extra_args, security, death_timeout)
        self._server = (server, token)
        self._client: Optional[AsyncClient] = None
        self._endings: Optional[AsyncEndings] = None
        self._listener: Optional[asyncio.Task[None]] = None
        self._arrived: set[object] = set()
        if "host" not in (scheduler_options or {}) and not (its_server := find_server(server, token)).is_here:
            raise ConfigurationError(f"workers of {its_server} may run on another machine, which cannot reach 127.0.0.1: "
                                     "say where they find the scheduler, scheduler_options={'host': ...}")
        safety = security if security is not None else _security.Security.temporary()
        its = {"host": "127.0.0.1", "port": 0, "dashboard": False, "dashboard_address": "127.0.0.1:0",
               "protocol": "tls://" if safety.tls_scheduler_cert else "tcp://", "security": safety, **(scheduler_options or {})}
        near = ["--host", "127.0.0.1"] if its["host"] == "127.0.0.1" else []
        self.worker_words = ["--death-timeout", str(death_timeout), "--no-dashboard", *near, *worker_extra_args]
        self._job_name = given.get("name", "dask-worker")
        self._options = cast("SubmitOptions", {**given, "env": {**given.get("env", {}), **_inherited(safety)}})
        memory = bytes_of(given["memory"], "memory") if "memory" in given else None
        worker = {"cls": GflowWorker, "options": {
            "cluster": self, "nthreads": nthreads or given.get("cpus") or 1, "memory_limit": memory}}
        try:
            super().__init__(workers={place: worker for place in range(n_workers)}, worker=worker, asynchronous=asynchronous, loop=loop,
                             scheduler={"cls": _scheduler.Scheduler, "options": its}, security=safety, silence_logs=logging.WARNING)
        except BaseException:
            if not asynchronous and hasattr(self, "_loop_runner"):
                self._loop_runner.stop()
            raise

    @property
    def job_ids(self) -> dict[object, int]:
        """The job of each worker, by the worker's name: `gflow.job(id).why()` says why it waits."""
        now = list(self.workers.items())  # it changes on the thread of the cluster
        return {name: one.job.id for name, one in now if one.job is not None and one.status == _status.running}

    def scale(self, n: int = 0, memory: Optional[str] = None, cores: Optional[int] = None) -> Any:
        """To so many workers; those that wait go first. What could not start is tried again."""
        self.loop.add_callback(self._forget_what_could_not_start)
        return super().scale(n, memory, cores)

    def _forget_what_could_not_start(self) -> None:
        for name in [one for one, its in self.workers.items() if its.status == _status.closed]:
            del self.workers[name]

    async def submit_worker(self, command: Sequence[str], name: object) -> AsyncJob:
        """For GflowWorker: its job."""
        assert self._client is not None
        return await self._client.submit(command, **cast("SubmitOptions", {**self._options, "name": f"{self._job_name}_{name}"}))

    # -- what SpecCluster asks of those made of it

    async def _start(self) -> None:
        if self._endings is None:
            self._client = AsyncClient(*self._server[:1], token=self._server[1])
            try:
                await self._client.check("dask worker", **self._options)
                self._endings = await AsyncEndings.begin(self._client)
            except BaseException:
                await self._client.aclose()
                self.status = _status.closed
                raise
        await super()._start()
        if self._listener is None:
            self._listener = asyncio.ensure_future(self._hear(self._endings))

    async def _close(self) -> None:
        await super()._close()
        if self._endings is not None:
            await self._endings.aclose()
        if self._listener is not None:
            self._listener.cancel()
        if self._client is not None:
            await self._client.aclose()

    async def _correct_state_internal(self) -> None:
        before = self.job_ids
        try:
            await super()._correct_state_internal()
        finally:  # what was refused is not planned any more
            for name in [one for one, its in self.workers.items() if its.status == _status.failed]:
                del self.workers[name]
                self.worker_spec.pop(name, None)
        if self._client is not None:  # one that ended before it was known here was not heard of
            with contextlib.suppress(*_AWAY):
                await self._note_ends(await ended_of(self._client, set(self.job_ids.values()) - set(before.values())))

    def _update_worker_status(self, op: str, msg: Any) -> None:
        """SpecCluster closes a worker that is away for a while. Here its job says whether it comes back, as one that was preempted."""
        if op == "add":
            self._arrived |= {one["name"] for one in msg["workers"].values()}
        super(_spec.SpecCluster, self)._update_worker_status(op, msg)

    # -- workers whose jobs end

    async def _hear(self, endings: AsyncEndings) -> None:
        try:
            while True:
                await self._note_ends(await self._ended(endings))
        except StopAsyncIteration:
            return
        except GflowError as error:
            _LOGGER.warning("whether workers of %s end is not known any more: %s", self.name, error)

    async def _ended(self, endings: AsyncEndings) -> set[int]:
        """Jobs that ended. A gflowd that is away is waited for: workers go on without it."""
        hear = endings.heard
        while True:
            try:
                return await hear(lambda: list(self.job_ids.values()))
            except _AWAY as error:  # for as long as a client is patient
                if hear != endings.asked_for:
                    _LOGGER.warning("whether workers of %s end is not known for now: %s", self.name, error)
                hear = endings.asked_for

    async def _note_ends(self, ended: set[int]) -> None:
        for name, worker in [(name, self.workers[name]) for name, job_id in self.job_ids.items() if job_id in ended]:
            await self._note_end(name, worker)

    async def _note_end(self, name: object, worker: GflowWorker) -> None:
        """It is not in the plan any more, so that adapt() may plan another. One that never came stays in it, as another would not come,
        either, until scale() is asked for."""
        if worker.is_told or name not in self.worker_spec:
            return  # it was closed
        worker.is_told = True
        if name in self._arrived:
            self._arrived.discard(name)
            del self.workers[name], self.worker_spec[name]
        told = await _how(worker.job)
        await worker.close()
        _LOGGER.warning("worker %s of %s is gone: %s", name, self.name, told)


def _check_worker(nthreads: Optional[int], words: Sequence[str], security: Any, death_timeout: int) -> None:
    """Else each worker would end at once, and only its log would say why. Errors: OptionError."""
    if isinstance(words, str):
        raise OptionError(f"worker_extra_args={words!r} is a text, not its words: {shlex.split(words)!r}")
    if security is not None and not isinstance(security, _security.Security):
        raise OptionError(f"security={security!r} is no distributed.security.Security; without one there is TLS by a key of this cluster")
    for what, number in (("nthreads", 1 if nthreads is None else nthreads), ("death_timeout", death_timeout)):
        if whole_of(number, what) < 1:
            raise OptionError(f"{what}={number!r} is below 1")


async def _how(job: Optional[AsyncJob]) -> str:
    assert job is not None
    try:
        told = await job.show()
        return str(JobFailed(told, await job.log(tail=20) if told["status"] == "Failed" else ""))
    except GflowError as error:
        return f"job {job.id}, of which no more is known: {error}"


def _inherited(security: Any) -> dict[str, str]:
    """What this process has set of Dask, and by which key workers are known, in the variable that Dask reads."""
    own: dict[str, Any] = {"distributed": {"comm": {"require-encryption": security.require_encryption, "tls": {
        "ca-file": _whole_path(security.tls_ca_file),
        "worker": {"cert": _whole_path(security.tls_worker_cert), "key": _whole_path(security.tls_worker_key)}}}}}
    return {"DASK_INTERNAL_INHERIT_CONFIG": _config.serialize(_config.merge(_config.global_config, own))}


def _whole_path(place: Optional[str]) -> Optional[str]:
    """Of a file; what has lines is the key itself."""
    return place if place is None or "\n" in place else os.path.abspath(place)


__all__ = ["GflowCluster", "GflowWorker"]
