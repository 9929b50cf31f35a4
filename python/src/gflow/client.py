# SPDX-License-Identifier: Apache-2.0
"""The client of gflowd for programs with threads."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Optional, TypeVar, Union

from gflow._calls import API, ENDED, Calls, query_of
from gflow._servers import find_server
from gflow._sync import Driver, Iteration
from gflow.devices import Devices, devices_of_choice
from gflow.errors import GflowError, JobFailed
from gflow.leases import Lease, LeaseTerms
from gflow.listing import JobList, some_ids
from gflow.submission import Submission, id_of, option_of_gpus

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime, timedelta

    from typing_extensions import Unpack

    from gflow import documents
    from gflow._events import Event
    from gflow.functions import Results
    from gflow.changes import Explanation, JobChanges
    from gflow.listing import JobQuery
    from gflow.submission import Command, Gpus, JobRef, Seconds, SubmitOptions

R = TypeVar("R")

RESTART_SECONDS = 30.0


class Client:
    """Talks to gflowd: that of this machine, or of `server` (a name or URL of `gctl remote`, GFLOW_SERVER, unix:/path,
    http://127.0.0.1:8000, which is for this machine only). It may be used by several threads.

    patience: seconds a gflowd that is away, as while it restarts, is tried again where asking twice is asking once:
    all that only looks, submissions and allocations, which have a key, and giving GPUs back.
    """

    def __init__(self, server: Optional[str] = None, *, token: Optional[str] = None,
                 fingerprint: Optional[str] = None, patience: float = RESTART_SECONDS) -> None:
        self.server = find_server(server, token, fingerprint)
        self._driver = Driver(self.server)
        self._calls = Calls(patience)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<gflow.Client of {self.server}>"

    def close(self) -> None:
        self._driver.close()

    def call(self, method: str, target: str, document: Optional[object] = None, *, key: Optional[str] = None) -> Any:
        """Any route of the API: the document it answers. Errors: Problem."""
        return self._driver.run(self._calls.call(method, target, document, key))

    # -- jobs

    def submit(self, command: Command, /, *, key: Optional[str] = None, **options: Unpack[SubmitOptions]) -> Job:
        """Text is run by bash, a list is a program and its arguments, a Path is a script, which is copied now.

        key: of your choice: a submission repeated with it within 24 hours gives the same job."""
        return self.submit_all([Submission(command, **options)], key=key)[0]

    def submit_all(self, submissions: Sequence[Submission], *, key: Optional[str] = None) -> list[Job]:
        """All of them or none."""
        answers = self._driver.run(self._calls.submit(submissions, key))
        return [Job(self, one["id"], one["name"]) for one in answers]

    def submit_array(self, command: Command, /, tasks: Iterable[int], *, key: Optional[str] = None,
                     **options: Unpack[SubmitOptions]) -> list[Job]:
        """A job for each task: GFLOW_ARRAY_TASK_ID in it is its number. All of them or none; max_concurrent: so many at once."""
        answers = self._driver.run(self._calls.submit_array(Submission(command, **options), list(tasks), key))
        return [Job(self, one["id"], one["name"]) for one in answers]

    def map(self, function: Callable[..., R], items: Iterable[Any], **options: Unpack[SubmitOptions]) -> Results[R]:
        """A job for each item; what the function returns for each, in their order, as it comes. What it raises is raised."""
        from gflow.functions import map_calls

        return map_calls(self, function, [((item,), {}) for item in items], options)

    def check(self, command: Command, /, **options: Unpack[SubmitOptions]) -> None:
        """Nothing if such a job would be taken now; refused as it would be."""
        self._driver.run(self._calls.check([Submission(command, **options)]))

    def job(self, job_id: int) -> Job:
        """Errors: NotFound."""
        told = self._driver.run(self._calls.job(job_id))
        return Job(self, told["id"], told["spec"]["name"])

    def newest(self, back: int = 0) -> Job:
        """The last job of yours, or the one so many before it."""
        told = self.call("GET", f"{API}/jobs/newest{query_of({'back': back})}")
        return Job(self, told["id"], told["spec"]["name"])

    def jobs(self, *, most: Optional[int] = None, **query: Unpack[JobQuery]) -> JobList:
        """What is listed of jobs, page by page."""
        return JobList(self._driver.run(self._calls.jobs(query, most)))

    def cancel(self, *jobs: JobRef, signal: int = 0) -> list[int]:
        """Those it was done to. signal: sent in place of SIGTERM."""
        return self._driver.run(self._calls.act("cancel", jobs, signal=signal))

    def signal(self, signal: int, *jobs: JobRef) -> list[int]:
        """Sent to all processes of jobs that run."""
        return self._driver.run(self._calls.act("signal", jobs, signal=signal))

    def hold(self, *jobs: JobRef) -> list[int]:
        return self._driver.run(self._calls.act("hold", jobs))

    def release(self, *jobs: JobRef, at: Union[datetime, timedelta, None] = None) -> list[int]:
        return self._driver.run(self._calls.release(jobs, at))

    def update(self, *jobs: JobRef, **changes: Unpack[JobChanges]) -> list[int]:
        """In the words of submit(): gpus="2(A100)", priority=20, time_limit=None, ... (gflow.changes.JobChanges)."""
        return self._driver.run(self._calls.update(jobs, changes))

    def wait(self, *jobs: JobRef, timeout: Optional[float] = None) -> list[documents.Job]:
        """Until all of them have ended. Errors: WaitTimeout, for each after so many seconds."""
        return [self._driver.run(self._calls.wait(id_of(one), timeout)) for one in jobs]

    def events(self, *, job: Union[JobRef, Sequence[JobRef], None] = None, user: Union[str, Sequence[str], None] = None,
               type: Union[str, Sequence[str], None] = None,  # noqa: A002
               after: Optional[int] = None, follow: bool = True) -> Iteration[Event]:
        """What happens, from now on or beyond the event `after`; each once, also while gflowd is restarted.

        Errors: EventsGone where what followed `after` is not kept any more."""
        query = {"job": some_ids(job), "user": user, "type": type, "follow": follow}
        listened: Iteration[Event] = Iteration(self._driver, self._calls.events(query, after))
        return listened.begin()

    # -- GPUs

    def gpus(self, gpus: Gpus = 1, *, wait: bool = True, timeout: Optional[float] = None,
             ttl: Optional[Seconds] = None, set_environment: bool = True,
             on_lost: Optional[Callable[[str], object]] = None) -> Lease:
        """`with client.gpus(2) as devices:` GPUs for this program, given back at the end, whatever that is.

        wait: in the queue where nothing is free; timeout: so many seconds. ttl: given back after so long. Without one
        they are this program's as long as it lives. Errors: NoGpus, WaitTimeout; at the end LeaseLost."""
        terms = LeaseTerms(self.server, {"gpus": option_of_gpus(gpus)}, wait=wait, ttl=ttl)
        return Lease(self._driver, self._calls, terms, timeout=timeout, set_environment=set_environment, on_lost=on_lost)

    def select(self, gpus: Gpus = 1) -> Devices:
        """The GPUs that would be given now, best first. Nothing is held. Errors: NoGpus; Infeasible where there never
        could be."""
        return devices_of_choice(*self._driver.run(self._calls.select(gpus)))

    def allocations(self) -> list[documents.GpuAllocationShown]:
        """Yours."""
        listed: list[documents.GpuAllocationShown] = self.call("GET", f"{API}/gpu/allocations")["allocations"]
        return listed

    # -- the machine

    def machine(self) -> documents.Machine:
        told: documents.Machine = self.call("GET", f"{API}/machine")
        return told

    def gpu_status(self) -> documents.GpuStatus:
        told: documents.GpuStatus = self.call("GET", f"{API}/gpu/status")
        return told

    def monitoring(self) -> documents.GpuMonitoring:
        told: documents.GpuMonitoring = self.call("GET", f"{API}/gpu/monitoring")
        return told

    def validate(self, gpus: Gpus = 1) -> documents.GpuValidation:
        """Whether that can be met here, ever and now."""
        return self._driver.run(self._calls.validate(gpus))

    def statistics(self, *, since: Optional[datetime] = None, until: Optional[datetime] = None,
                   user: Union[str, Sequence[str], None] = None, project: Union[str, Sequence[str], None] = None,
                   by: Optional[str] = None) -> documents.Statistics:
        """Waits, run times and GPU time of jobs, `by` "user" or "project" besides."""
        return self._driver.run(self._calls.statistics(since, until, {"user": user, "project": project, "by": by}))

    def daemon(self) -> documents.Daemon:
        told: documents.Daemon = self.call("GET", f"{API}/daemon")
        return told

    def principal(self) -> documents.Principal:
        """Who gflowd takes you for."""
        told: documents.Principal = self.call("GET", f"{API}/principal")
        return told


class Job:
    """A job of a client's gflowd."""

    def __init__(self, client: Client, job_id: int, name: str = "") -> None:
        self.client = client
        self.id = job_id
        self.name = name

    def __repr__(self) -> str:
        return f"<gflow.Job {self.id} {self.name}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Job) and (self.id, self.client.server) == (other.id, other.client.server)

    def __hash__(self) -> int:
        return hash((self.id, self.client.server))

    def show(self) -> documents.Job:
        """All that is known of it now."""
        return self.client._driver.run(self.client._calls.job(self.id))

    def status(self) -> str:
        return self.show()["status"]

    def done(self) -> bool:
        """Whether it has ended, well or not."""
        return self.status() in ENDED

    def why(self) -> list[documents.BlockerView]:
        """All reasons it waits: branch on `kind`, show `text`."""
        return self.show()["blockers"]

    def explain(self) -> Explanation:
        """Why it waits, when it should start, and what you may do so that it starts sooner: `update(**suggestion["changes"])`."""
        return self.client._driver.run(self.client._calls.explain(self.id))

    def wait(self, timeout: Optional[float] = None) -> documents.Job:
        """What is known of it once it has ended, well or not. Errors: WaitTimeout."""
        return self.client.wait(self, timeout=timeout)[0]

    def result(self, timeout: Optional[float] = None) -> documents.Job:
        """The same where it ended well. Errors: JobFailed with the end of its log, WaitTimeout."""
        told = self.wait(timeout)
        if told["status"] != "Finished":
            raise JobFailed(told, self._last_words(told))
        return told

    def _last_words(self, told: documents.Job) -> str:
        return self.log(tail=20) if told["started"] is not None else ""

    def log(self, tail: Optional[int] = None) -> str:
        """What it wrote until now, or the last lines of that."""
        return self.client._driver.run(self.client._calls.log(self.id, tail)).decode(errors="replace")

    def follow(self) -> Iterator[str]:
        """What it writes, as it writes it, from its beginning until it has ended."""
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        pieces: Iteration[bytes] = Iteration(self.client._driver, self.client._calls.follow(self.id, 0))
        with pieces:
            for piece in pieces:
                yield decoder.decode(piece)

    def changes(self) -> Iteration[documents.Job]:
        """All that is known of it, and again whenever that is otherwise, until it has ended."""
        return Iteration(self.client._driver, self.client._calls.changes(self.id))

    def _repr_html_(self) -> str:
        """What notebooks show."""
        from gflow._html import escaped, job_html

        try:
            return job_html(self.show())
        except GflowError as error:
            return f"{escaped(self)}: {escaped(error)}"

    def cancel(self, signal: int = 0) -> None:
        self.client.cancel(self, signal=signal)

    def hold(self) -> None:
        self.client.hold(self)

    def release(self, at: Union[datetime, timedelta, None] = None) -> None:
        self.client.release(self, at=at)

    def update(self, **changes: Unpack[JobChanges]) -> None:
        self.client.update(self, **changes)


