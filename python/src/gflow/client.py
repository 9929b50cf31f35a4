# SPDX-License-Identifier: Apache-2.0
"""The client of gflowd for programs with threads."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Optional, TypeVar, Union

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

    server: which gflowd; without one that of GFLOW_SERVER, else that of this user or machine.
    token: of `gctl token create`, where it is not kept for that server.
    fingerprint: SHA-256 of the certificate an https:// server has to have, where it is not kept.
    patience: seconds a gflowd that is away, as while it restarts, is tried again where asking twice is asking once:
        all that only looks, submissions and allocations, which have a key, cancelling, and giving GPUs back.

    Errors: ConfigurationError where it cannot be told which gflowd is meant. Nothing is asked yet."""

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

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self!r} is of this process: make one where it is needed, gflow.Client({self.server.url!r})")

    def close(self) -> None:
        """Connections that are kept for the next call; it may be used again."""
        self._driver.close()

    def call(self, method: str, target: str, document: Optional[object] = None, *, key: Optional[str] = None) -> Any:
        """Any route of the API (docs/rest.md): the document it answers.

        >>> gflow.default_client().call("GET", "/api/v1/gpu/health")["status"]
        'healthy'

        target: path and query.
        document: sent as JSON.
        key: an Idempotency-Key, so that it may be asked again.

        Errors: Problem."""
        return self._driver.run(self._calls.call(method, target, document, key))

    # -- jobs

    def submit(self, command: Command, /, *, key: Optional[str] = None, **options: Unpack[SubmitOptions]) -> Job:
        """A job, which is in the queue when this returns.

        >>> job = gflow.submit("echo trained", gpus=1, time_limit=600)
        >>> job.result()["status"], job.log()
        ('Finished', 'trained\\n')

        command: text is run by bash, a list is a program and its arguments, a Path is a script, which is copied now.
        key: of your choice: a submission repeated with it within 24 hours gives the same job.
        options: gflow.submission.SubmitOptions.

        Errors: OptionError and TypeError of an option that makes no sense, RequestError of `gpus`; Infeasible where there
        never could be so much, Exhausted beyond a limit, PermissionDenied. Nothing was submitted then."""
        return self.submit_all([Submission(command, **options)], key=key)[0]

    def submit_all(self, submissions: Sequence[Submission], *, key: Optional[str] = None) -> list[Job]:
        """Several jobs in one transaction: all of them or none.

        >>> prepare = gflow.Submission("echo prepared")
        >>> train = gflow.Submission("echo trained", gpus=1, depends_on=[prepare])
        >>> [job.result()["status"] for job in gflow.default_client().submit_all([prepare, train])]
        ['Finished', 'Finished']

        Errors: those of submit()."""
        answers = self._driver.run(self._calls.submit(submissions, key))
        return [Job(self, one["id"], one["name"]) for one in answers]

    def submit_array(self, command: Command, /, tasks: Iterable[int], *, key: Optional[str] = None,
                     **options: Unpack[SubmitOptions]) -> list[Job]:
        """A job for each task: GFLOW_ARRAY_TASK_ID in it is its number. All of them or none; with max_concurrent so many at once.

        >>> [job.result() and job.log() for job in gflow.submit_array("echo fold $GFLOW_ARRAY_TASK_ID", range(2))]
        ['fold 0\\n', 'fold 1\\n']

        Errors: those of submit()."""
        made = self._driver.run(self._calls.submit_array(Submission(command, **options), list(tasks), key))
        return [Job(self, *one) for one in made]

    def map(self, function: Callable[..., R], items: Iterable[Any], **options: Unpack[SubmitOptions]) -> Results[R]:
        """A job for each item; what the function returns for each, in their order, as it comes. What it raises is raised.

        >>> list(gflow.map(abs, [-1, 2], gpus=1))
        [1, 2]

        Errors: those of submit(), and OptionError of `launch`, as a call is one process; TypeError of a function or an item that cannot be
        pickled; ConfigurationError where gflowd is not on this machine. From the results: what the function raises, JobFailed where a job came to neither."""
        from gflow.functions import map_calls

        return map_calls(self, function, [((item,), {}) for item in items], options)

    def check(self, command: Command, /, **options: Unpack[SubmitOptions]) -> None:
        """Nothing if such a job would be taken now.

        >>> gflow.default_client().check("python train.py", gpus=99)
        Traceback (most recent call last):
        gflow.errors.Infeasible: ...

        Errors: those of submit()."""
        self._driver.run(self._calls.check([Submission(command, **options)]))

    def job(self, job_id: int) -> Job:
        """The job of that number.

        Errors: NotFound; OptionError of what is no number."""
        told = self._driver.run(self._calls.job(job_id))
        return Job(self, told["id"], told["spec"]["name"])

    def newest(self, back: int = 0) -> Job:
        """The last job of yours, or the one so many before it.

        Errors: NotFound."""
        told = self.call("GET", f"{API}/jobs/newest{query_of({'back': back})}")
        return Job(self, told["id"], told["spec"]["name"])

    def jobs(self, *, most: Optional[int] = None, **query: Unpack[JobQuery]) -> JobList:
        """What is listed of jobs; all pages of it.

        >>> job = gflow.submit("true", name="listed")
        >>> [one["spec"]["name"] for one in gflow.jobs(job=job)]
        ['listed']

        most: no more than so many.
        query: gflow.listing.JobQuery; without any all jobs that are kept.

        Errors: TypeError and UsageError of a query that is none."""
        return JobList(self._driver.run(self._calls.jobs(query, most)))

    def cancel(self, *jobs: JobRef, signal: int = 0) -> list[int]:
        """Ends jobs, with SIGTERM and, after their grace, SIGKILL; one that waits is not started. All of them or none. Where gflowd goes away
        before it answers, it is asked again, and who has ended by then is no error.

        signal: sent in place of SIGTERM.

        Errors: NotFound, WrongState of one that has ended, PermissionDenied of somebody else's."""
        return self._driver.run(self._calls.cancel(jobs, signal))

    def signal(self, signal: int, *jobs: JobRef) -> list[int]:
        """Sent to all processes of jobs that run. The ids of these.

        Errors: those of cancel(); WrongState of one that does not run."""
        return self._driver.run(self._calls.act("signal", jobs, signal=signal))

    def hold(self, *jobs: JobRef) -> list[int]:
        """Jobs that wait are not started until they are released. The ids of these.

        Errors: those of cancel(); WrongState of one that runs."""
        return self._driver.run(self._calls.act("hold", jobs))

    def release(self, *jobs: JobRef, at: Union[datetime, timedelta, None] = None) -> list[int]:
        """Jobs that are held may start. The ids of these.

        at: then, or so long from now; now without it.

        Errors: those of cancel(); WrongState of one that is not held."""
        return self._driver.run(self._calls.release(jobs, at))

    def suspend(self, *jobs: JobRef) -> list[int]:
        """Stopped where they stand, in memory, until they are resumed. Those it was done to: not those that were suspended already.

        Errors: those of cancel(); WrongState of one that does not run."""
        return self._driver.run(self._calls.act("suspend", jobs))

    def resume(self, *jobs: JobRef) -> list[int]:
        """They go on once their compute is free. Those it was done to: not those that nobody had suspended.

        Errors: those of cancel(); WrongState of one that does not run."""
        return self._driver.run(self._calls.act("resume", jobs))

    def update(self, *jobs: JobRef, **changes: Unpack[JobChanges]) -> list[int]:
        """In the words of submit(): gpus="2(A100)", priority=20, time_limit=None, ... All of them or none.

        >>> job = gflow.submit("true", hold=True)
        >>> job.update(gpus=2, time_limit=3600, priority=20)
        >>> job.show()["spec"]["request"]["gpus"]
        2
        >>> job.cancel()

        changes: gflow.changes.JobChanges.

        Errors: those of submit() and of cancel(); WrongState of what cannot be changed while a job runs, or where somebody else changed it
        meanwhile."""
        return self._driver.run(self._calls.update(jobs, changes))

    def wait(self, *jobs: JobRef, timeout: Optional[float] = None) -> list[documents.Job]:
        """What is known of each once all of them have ended, well or not. Nothing is polled.

        timeout: seconds, for each.

        Errors: WaitTimeout, after which they go on; NotFound."""
        return [self._driver.run(self._calls.wait(id_of(one), timeout)) for one in jobs]

    def events(self, *, job: Union[JobRef, Sequence[JobRef], None] = None, user: Union[str, Sequence[str], None] = None,
               type: Union[str, Sequence[str], None] = None,  # noqa: A002
               after: Optional[int] = None, follow: bool = True) -> Iteration[Event]:
        """What happens, from now on or beyond the event `after`; each once, also while gflowd is restarted.

        >>> with gflow.events(type="job.submitted") as events:
        ...     job = gflow.submit("true")
        ...     event = next(events)
        >>> event["job"] == job.id, event["status"]
        (True, 'Queued')

        job: only of these; `user`, `type` alike.
        after: the id of an event that was seen.
        follow: False: what is kept until now, and no more.

        It is for one thread at a time; `close()` from another ends it. Errors: EventsGone where what followed `after` is not kept any more."""
        query = {"job": some_ids(job), "user": user, "type": type, "follow": follow}
        listened: Iteration[Event] = Iteration(self._driver, self._calls.events(query, after))
        return listened.begin()

    # -- GPUs

    def gpus(self, gpus: Gpus = 1, *, wait: bool = True, timeout: Optional[float] = None,
             ttl: Optional[Seconds] = None, set_environment: bool = True,
             on_lost: Optional[Callable[[str], object]] = None) -> Lease:
        """GPUs for this program, given back at the end, whatever that is. CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER of this process are
        set and put back: do it before CUDA is started.

        >>> with gflow.gpus(2) as devices:
        ...     devices.indices
        [0, 1]

        wait: in the queue, where nothing is free.
        timeout: so many seconds.
        ttl: they are given back after so many seconds; without one they are this program's as long as it lives.
        set_environment: False leaves that of this process as it is; `devices.environment` is for programs it starts.
        on_lost: called with the reason, on another thread, when they are taken back before.

        Errors: NoGpus, WaitTimeout, Infeasible, RequestError; at the end LeaseLost."""
        terms = LeaseTerms(self.server, {"gpus": option_of_gpus(gpus)}, wait=wait, ttl=ttl)
        return Lease(self._driver, self._calls, terms, timeout=timeout, set_environment=set_environment, on_lost=on_lost)

    def select(self, gpus: Gpus = 1) -> Devices:
        """The GPUs that would be given now, best first. Nothing is held.

        >>> gflow.select(2).indices
        [0, 1]

        Errors: NoGpus; Infeasible where there never could be."""
        return devices_of_choice(*self._driver.run(self._calls.select(gpus)))

    def allocations(self) -> list[documents.GpuAllocationShown]:
        """GPUs that are held or waited for: yours."""
        listed: list[documents.GpuAllocationShown] = self.call("GET", f"{API}/gpu/allocations")["allocations"]
        return listed

    # -- the machine

    def machine(self) -> documents.Machine:
        """Nodes, their GPUs, and who has them, as `ginfo` shows them."""
        told: documents.Machine = self.call("GET", f"{API}/machine")
        return told

    def gpu_status(self) -> documents.GpuStatus:
        """The GPUs of each model on each node: how many there are and which are free; memory in GB."""
        told: documents.GpuStatus = self.call("GET", f"{API}/gpu/status")
        return told

    def monitoring(self) -> documents.GpuMonitoring:
        """What is measured of each GPU: memory in GB, temperature in degrees Celsius, power in watts; None where it is not."""
        told: documents.GpuMonitoring = self.call("GET", f"{API}/gpu/monitoring")
        return told

    def validate(self, gpus: Gpus = 1) -> documents.GpuValidation:
        """Whether that can be met here, ever and now.

        Errors: RequestError."""
        return self._driver.run(self._calls.validate(gpus))

    def statistics(self, *, since: Optional[datetime] = None, until: Optional[datetime] = None,
                   user: Union[str, Sequence[str], None] = None, project: Optional[str] = None,
                   by: Optional[str] = None) -> documents.Statistics:
        """Waits and run times of jobs with their percentiles, in seconds, and the GPU time they held.

        since: jobs that ended then or later.
        until: before then.
        by: "user" or "project": of each, besides."""
        return self._driver.run(self._calls.statistics(since, until, {"user": user, "project": project, "by": by}))

    def daemon(self) -> documents.Daemon:
        """Version, process and addresses of gflowd."""
        told: documents.Daemon = self.call("GET", f"{API}/daemon")
        return told

    def principal(self) -> documents.Principal:
        """Who gflowd takes you for."""
        told: documents.Principal = self.call("GET", f"{API}/principal")
        return told


class Job:
    """A job of a client's gflowd. It is made without asking; calls of one that is not there raise NotFound. Pickled, it is its number and
    where its gflowd is, which whoever reads it asks as themselves: no token is in it."""

    def __init__(self, client: Client, job_id: int, name: str = "") -> None:
        self.client = client
        self.id = job_id
        self.name = name

    def __repr__(self) -> str:
        return f"<gflow.Job {self.id} {self.name}>"

    def __reduce__(self) -> tuple[Any, ...]:
        from gflow._default import sent_job

        return sent_job, (self.client.server.url, self.id, self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Job) and (self.id, self.client.server) == (other.id, other.client.server)

    def __hash__(self) -> int:
        return hash((self.id, self.client.server))

    def show(self) -> documents.Job:
        """All that is known of it now."""
        return self.client._driver.run(self.client._calls.job(self.id))

    def status(self) -> str:
        """"Queued", "Hold", "Starting", "Running", "Suspended", "Completing", "Finished", "Failed", "Cancelled", "Timeout" or "Lost"."""
        return self.show()["status"]

    def done(self) -> bool:
        """Whether it has ended, well or not."""
        return self.status() in ENDED

    def why(self) -> list[documents.BlockerView]:
        """All reasons it waits: branch on `kind`, show `text`.

        >>> job = gflow.submit("true", hold=True)
        >>> [reason["kind"] for reason in job.why()]
        ['hold']
        >>> job.cancel()
        """
        return self.show()["blockers"]

    def explain(self) -> Explanation:
        """Why it waits, when it should start, and what you may do so that it starts sooner: `update(**suggestion["changes"])`."""
        return self.client._driver.run(self.client._calls.explain(self.id))

    def wait(self, timeout: Optional[float] = None) -> documents.Job:
        """What is known of it once it has ended, well or not.

        timeout: seconds.

        Errors: WaitTimeout, after which it goes on."""
        return self.client.wait(self, timeout=timeout)[0]

    def result(self, timeout: Optional[float] = None) -> documents.Job:
        """The same where it ended well.

        >>> gflow.submit("echo no data; exit 3").result()
        Traceback (most recent call last):
        gflow.errors.JobFailed: ...

        timeout: seconds.

        Errors: JobFailed with the end of its log, WaitTimeout."""
        told = self.wait(timeout)
        if told["status"] != "Finished":
            raise JobFailed(told, self._last_words(told))
        return told

    def _last_words(self, told: documents.Job) -> str:
        return self.log(tail=20) if told["started"] is not None else ""

    def log(self, tail: Optional[int] = None) -> str:
        """What it wrote until now, to its output and its errors.

        tail: only so many lines, the last."""
        return self.client._driver.run(self.client._calls.log(self.id, tail)).decode(errors="replace")

    def follow(self) -> Iterator[str]:
        """What it writes, as it writes it, from its beginning until it has ended; it goes on where it was when gflowd is restarted.

        >>> "".join(gflow.submit("echo first; echo second").follow())
        'first\\nsecond\\n'
        """
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        pieces: Iteration[bytes] = Iteration(self.client._driver, self.client._calls.follow(self.id, 0))
        with pieces:
            for piece in pieces:
                if text := decoder.decode(piece):
                    yield text
        if rest := decoder.decode(b"", final=True):
            yield rest

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
        """Ends it, as Client.cancel(); it has ended when wait() says so."""
        self.client.cancel(self, signal=signal)

    def hold(self) -> None:
        """As Client.hold()."""
        self.client.hold(self)

    def release(self, at: Union[datetime, timedelta, None] = None) -> None:
        """As Client.release()."""
        self.client.release(self, at=at)

    def suspend(self) -> None:
        """As Client.suspend()."""
        self.client.suspend(self)

    def resume(self) -> None:
        """As Client.resume()."""
        self.client.resume(self)

    def update(self, **changes: Unpack[JobChanges]) -> None:
        """As Client.update()."""
        self.client.update(self, **changes)


