# SPDX-License-Identifier: Apache-2.0
"""Functions as jobs: each call runs in a job of its own, and what it returns or raises comes back.

The function and its arguments are pickled into a folder of this user, where the jobs leave their results."""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import pickle
import sys
import threading
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Optional, TypeVar, cast

from gflow import _worker
from gflow._folders import Folder, Left, swept
from gflow._function import by_place
from gflow.client import Client, Job
from gflow.errors import ConfigurationError, EventsGone, GflowError, JobFailed
from gflow.submission import Given, Submission, SubmitOptions, given_to_calls, shown_line

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from gflow import documents
    from gflow._calls import Calls
    from gflow._servers import Server
    from gflow._steps import Steps
    from gflow._sync import Iteration

R = TypeVar("R")

_MOST_SHOWN = 80


class RemoteTraceback(Exception):
    """Where an exception of a job was raised: the cause of it here."""

    def __str__(self) -> str:
        return f'\n"""\n{self.args[0]}"""'


class FunctionJob(Job, Generic[R]):
    """The job of one call.

    >>> job = gflow.function(gpus=1)(pow).submit(2, 10)
    >>> job.result()
    1024
    """

    def __init__(self, client: Client, job_id: int, name: str, folder: Folder, index: int) -> None:
        super().__init__(client, job_id, name)
        self.folder = folder
        self.index = index
        self._left: Optional[Left] = None
        self._is_given = False

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"what job {self.id} returns comes to the process that called the function: send its result(), or "
                        f"gflow.job({self.id}), by which it can be watched and cancelled")

    def result(self, timeout: Optional[float] = None) -> R:  # type: ignore[override] # pyright: ignore[reportIncompatibleMethodOverride]
        """What the function returned; what it raised is raised, with its traceback there as the cause.

        >>> gflow.function()(int).submit("many").result()
        Traceback (most recent call last):
        ValueError: invalid literal for int() with base 10: 'many'

        timeout: seconds.

        Errors: JobFailed where it came to neither, WaitTimeout."""
        if self._left is None:
            if self._is_given:
                raise GflowError(f"the result of job {self.id} was taken before, as one of the results of its map or by its future")
            told = self.wait(timeout)
            with self.folder.lock:
                self._left = self._left or self._read(told)
                self.folder.drop(self.index)
        return cast("R", returned(self._left))

    def given(self) -> R:
        """The same of a job that has ended, once: it is not kept for another time."""
        left = self._left or self._read(None)
        self._is_given = self._left is None
        self.folder.drop(self.index)
        return cast("R", returned(left))

    def _read(self, told: Optional[documents.Job]) -> Left:
        try:
            left = self.folder.left(self.index)
            if told is None and not left.is_well:
                told = self.show()
            check_attempt(left, told)
        except FileNotFoundError:
            told = told or self.show()
            self.folder.drop(self.index)
            raise JobFailed(told, self._last_words(told)) from None
        return left


def check_attempt(left: Left, told: Optional[documents.Job]) -> None:
    """Errors: FileNotFoundError where that was left by another attempt than the last, which came to nothing."""
    if told is not None and told["attempt"] != left.attempt:
        raise FileNotFoundError


def returned(left: Left) -> Any:
    """What the function returned; what it raised is raised."""
    if left.is_well:
        return left.value
    raise left.value from RemoteTraceback(left.text)


_UNSENT = (pickle.PicklingError, AttributeError, TypeError)  # by what pickle says no


def pickled(function: Callable[..., Any]) -> bytes:
    pickler = _worker.pickler()
    if pickler is pickle and getattr(function, "__module__", "") == "__main__":
        raise ConfigurationError("a function of a script or notebook cannot be found by a job: pip install 'gflow[cloudpickle]', "
                                 "or put it into a module")
    try:
        return cast("bytes", pickler.dumps(by_place(function)))
    except _UNSENT as error:
        raise _not_sent(repr(function), error) from error


def _not_sent(what: str, error: Exception) -> TypeError:
    way = "; pip install 'gflow[cloudpickle]' takes most" if _worker.pickler() is pickle else ""
    return TypeError(f"{what} cannot be sent to a job: {error}{way}")


def _write_calls(folder: Path, function: Callable[..., Any], calls: Sequence[tuple[Sequence[Any], Any]]) -> None:
    dumps = _worker.pickler().dumps
    path = [os.path.abspath(one or os.curdir) for one in sys.path]
    places = array("Q")
    with open(_worker.calls_file(str(folder)), "wb") as file:
        file.write(pickle.dumps((path, pickled(function))))
        for arguments, named in calls:
            places.append(file.tell())
            try:
                file.write(dumps((tuple(arguments), dict(named))))
            except _UNSENT as error:
                raise _not_sent(f"what call {len(places) - 1} is given", error) from error
        places.append(file.tell())
    with open(_worker.places_file(str(folder)), "wb") as file:
        places.tofile(file)


def _name_of(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__qualname__", type(function).__name__)).replace("<locals>.", "")


def _shown(function: Callable[..., Any], arguments: Sequence[Any]) -> str:
    text = ", ".join(repr(one)[:_MOST_SHOWN] for one in arguments)
    return shown_line(f"{_name_of(function)}({text[:_MOST_SHOWN]})")


def steps_of_calls(its: Calls, server: Server, function: Callable[..., Any], calls: Sequence[tuple[Sequence[Any], Any]],
                   options: SubmitOptions) -> Steps[list[tuple[int, str, Folder, int]]]:
    """A job for each call, all of them or none: id, name, the folder of its result and its index there."""
    given = given_to_calls("a function", options)
    if not calls:
        return []
    if not server.is_here:
        raise ConfigurationError(f"functions and results are files of this machine, and {server} may be another one: "
                                 "use its socket, or submit a command")
    yield from swept(its, server)
    folder = Folder(len(calls))
    try:
        _write_calls(folder.path, function, calls)
        items = yield from its.items([_submission(folder.path, function, given)])
        answers = yield from its.submit_items(_alike(items[0], function, calls))
        folder.note_jobs(server, [one["id"] for one in answers])
    except BaseException:
        folder.remove()
        raise
    return [(one["id"], one["name"], folder, index) for index, one in enumerate(answers)]


def submit_calls(client: Client, function: Callable[..., R], calls: Sequence[tuple[Sequence[Any], Any]],
                 options: SubmitOptions) -> list[FunctionJob[R]]:
    made = client._driver.run(steps_of_calls(client._calls, client.server, function, calls, options))
    return [FunctionJob(client, *one) for one in made]


def _submission(folder: Path, function: Callable[..., Any], options: Given) -> Submission:
    package = str(Path(__file__).parents[1])
    environment = {**options.get("env", {})}
    kept = environment.get("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [package, kept]))
    given = cast("SubmitOptions", {"name": _name_of(function).replace("<lambda>", "lambda"), **options, "env": environment})
    if "max_concurrent" in given:
        given.setdefault("group", folder.name)
    return Submission([sys.executable, "-m", "gflow._worker", folder], **given)


def _alike(first: documents.SubmitRequestItem, function: Callable[..., Any],
           calls: Sequence[tuple[Sequence[Any], Any]]) -> list[documents.SubmitRequestItem]:
    """The others are said by what differs from the first."""
    whole = cast("documents.SubmitRequestItemOf", first)
    base = whole["spec"].get("name", "")
    shown = [_shown(function, arguments) for arguments, _ in calls]
    names = [base if len(calls) == 1 else f"{base}_{index}" for index in range(len(calls))]
    whole["spec"]["name"], whole["spec"]["command"] = names[0], shown[0]
    whole["payload"].setdefault("environment", []).append("GFLOW_ARRAY_TASK_ID=0")
    rest: list[documents.SubmitRequestItem] = [
        {"like": 0, "name": names[index], "command": shown[index], "environment": [f"GFLOW_ARRAY_TASK_ID={index}"]}
        for index in range(1, len(calls))]
    return [whole, *rest]


class Endings:
    """Which jobs have ended, by listening; begin before they are submitted."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._stream: Iteration[Any] = client.events(type=["job.started", "job.ended"])

    def heard(self, waited: Callable[[], Iterable[int]]) -> Iterator[tuple[int, bool]]:
        """Jobs that started (False) or ended (True). Where too much happened to be told, those `waited` for are asked for."""
        while True:
            try:
                for event in self._stream:
                    yield event["job"], event["type"] == "job.ended"
                return
            except EventsGone:
                self._stream = self._client.events(type=["job.started", "job.ended"])
                ids = list(waited())
                unended = set(self._client._driver.run(self._client._calls.unended(ids)))
                for job_id in ids:
                    if job_id not in unended:
                        yield job_id, True

    def close(self) -> None:
        self._stream.close()


class Results(Iterator[R]):
    """What the calls of a map return, in their order, as they come. What one of them raised is raised at its place;
    `next()` goes on behind it. For one thread at a time."""

    def __init__(self, client: Client, jobs: Sequence[FunctionJob[R]], endings: Endings) -> None:
        self._client = client
        self.jobs = list(jobs)
        self._endings = endings
        self._place = 0
        self._ended: set[int] = set()
        self._heard = endings.heard(lambda: [job.id for job in self.jobs if job.id not in self._ended])

    def __len__(self) -> int:
        return len(self.jobs)

    def __iter__(self) -> Results[R]:
        return self

    def __next__(self) -> R:
        if self._place == len(self.jobs):
            self.close()
            raise StopIteration
        job = self.jobs[self._place]
        try:
            while job.id not in self._ended:
                self._ended.add(self._next_ended(job))
        except BaseException:
            self._endings.close()  # what was being read is lost: from here on each job is waited for
            raise
        self._place += 1
        try:
            return job.given()
        except StopIteration as error:  # which would end the results, and not say so
            raise RuntimeError(f"the function raised StopIteration in job {job.id}") from error

    def _next_ended(self, waited: FunctionJob[R]) -> int:
        for job_id, has_ended in self._heard:
            if has_ended:
                return job_id
        waited.wait()
        return waited.id

    def cancel(self) -> None:
        """Ends those that have not ended.

        Errors: those of a gflowd that is away; PermissionDenied."""
        self._client._driver.run(self._client._calls.cancel_unended(self.jobs))

    def close(self) -> None:
        """Listens no more. Each of `jobs` has its result until that was taken."""
        self._endings.close()


def map_calls(client: Client, function: Callable[..., R], calls: Sequence[tuple[Sequence[Any], Any]],
              options: SubmitOptions) -> Results[R]:
    endings = Endings(client)
    try:
        return Results(client, submit_calls(client, function, calls, options), endings)
    except BaseException:
        endings.close()
        raise


class JobFuture(concurrent.futures.Future[R]):
    """A concurrent.futures.Future of a call; `job` is the job that makes it."""

    job: FunctionJob[R]

    def __init__(self, lock: threading.RLock) -> None:
        super().__init__()
        self._guard = lock

    def cancel(self) -> bool:
        """True where it had not started, which it will not any more."""
        if not self._withdraw():
            return False
        try:
            self.job.cancel()
        except GflowError:
            pass  # it has ended meanwhile
        return True

    def _withdraw(self) -> bool:
        """The same, but that its job is left to be cancelled."""
        with self._guard:  # not between the news that it started and that being noted
            return super().cancel()


class Executor(concurrent.futures.Executor):
    """concurrent.futures by jobs. It may be used by several threads.

    >>> with gflow.Executor(gpus=1) as executor:
    ...     futures = [executor.submit(pow, 2, power) for power in (3, 4)]
    ...     [future.result() for future in futures]
    [8, 16]

    client: gflow.default_client() without one.
    options: of each job, gflow.submission.SubmitOptions.

    Errors: TypeError of an option that there is not, OptionError of `launch`: a call is one process."""

    def __init__(self, client: Optional[Client] = None, **options: Unpack[SubmitOptions]) -> None:
        from gflow._default import default_client

        given_to_calls("an executor", options)
        self._client = client or default_client()
        self._options = options
        self._lock = threading.RLock()
        self._futures: dict[int, JobFuture[Any]] = {}
        self._endings: Optional[Endings] = None
        self._listener: Optional[threading.Thread] = None
        self._is_shut = False

    def submit(self, fn: Callable[..., R], /, *args: Any, **kwargs: Any) -> JobFuture[R]:
        """A job that calls it. Errors: those of Client.map(); RuntimeError after shutdown()."""
        future: JobFuture[R] = JobFuture(self._lock)
        with self._lock:  # who listens waits until it is known whose the job is
            if self._is_shut:
                raise RuntimeError("cannot schedule new futures after shutdown")
            self._listen()
            future.job = submit_calls(self._client, fn, [(args, kwargs)], self._options)[0]
            self._futures[future.job.id] = future
        return future

    def map(self, fn: Callable[..., R], *iterables: Iterable[Any], timeout: Optional[float] = None,
            chunksize: int = 1) -> Iterator[R]:
        """All jobs at once. `timeout` and `chunksize` are not heeded: each call is a job, with a time limit of its own."""
        return map_calls(self._client, fn, [(arguments, {}) for arguments in zip(*iterables)], self._options)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Takes no more calls; with `wait` it returns once all have ended. `cancel_futures`: those that have not started do not."""
        with self._lock:
            self._is_shut = True
            pending = list(self._futures.values())
            if not pending:
                self._stop()
        if cancel_futures:
            withdrawn = [future.job for future in pending if future._withdraw()]
            with contextlib.suppress(GflowError):  # as of one that is cancelled alone
                self._client._driver.run(self._client._calls.cancel_unended(withdrawn))
        if wait:
            concurrent.futures.wait(pending)
            if self._listener is not None and self._listener is not threading.current_thread():
                self._listener.join()

    def _listen(self) -> None:
        if self._endings is None:
            self._endings = Endings(self._client)
            self._listener = threading.Thread(target=self._hear, args=(self._endings,), name="gflow-executor", daemon=True)
            self._listener.start()

    def _stop(self) -> None:
        if self._endings is not None:
            self._endings.close()

    def _hear(self, endings: Endings) -> None:
        try:
            for job_id, has_ended in endings.heard(lambda: list(self._futures)):
                self._note(job_id, has_ended)
        except BaseException as error:  # nobody would tell those that are left
            self._give_up(error)

    def _give_up(self, error: BaseException) -> None:
        with self._lock:
            lost, self._futures, self._is_shut = self._futures, {}, True
            self._stop()
        for future in lost.values():
            if future.running() or future.set_running_or_notify_cancel():
                future.set_exception(error)

    def _note(self, job_id: int, has_ended: bool) -> None:
        with self._lock:
            future = self._futures.get(job_id)
            if future is None:
                return
            # One that was cancelled is done once its job has ended.
            if not future.running() and (has_ended or not future.cancelled()):
                future.set_running_or_notify_cancel()
            if not has_ended:
                return
            del self._futures[job_id]
        _settle(future)
        with self._lock:
            if self._is_shut and not self._futures:
                self._stop()


def _settle(future: JobFuture[Any]) -> None:
    """By what its job, which has ended, came to."""
    if future.running():
        try:
            result = future.job.given()
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)
    future.job.folder.drop(future.job.index)
