# SPDX-License-Identifier: Apache-2.0
"""The client that `gflow.submit()` and the like use: that of this process, made when it is first needed."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Optional, TypeVar, Union

from gflow.client import Client, Job
from gflow.listing import JobList

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import ParamSpec, Unpack

    from gflow._sync import Iteration
    from gflow.devices import Devices
    from gflow._events import Event
    from gflow._function import Function
    from gflow.functions import Results
    from gflow.leases import Lease
    from gflow.listing import JobQuery
    from gflow.submission import Command, Gpus, JobRef, Seconds, SubmitOptions

    P = ParamSpec("P")

R = TypeVar("R")

_lock = threading.Lock()
_made: Optional[Client] = None
_others: dict[str, Client] = {}  # by URL


def default_client() -> Client:
    """The client that gflow.submit() and the like use: of the gflowd that GFLOW_SERVER names, or of this machine's."""
    global _made
    with _lock:
        if _made is None:
            _made = Client()
        return _made


def sent_job(url: str, job_id: int, name: str) -> Job:
    """One that another process has sent. Errors: ConfigurationError where its gflowd is not known here."""
    client = default_client()
    if client.server.url != url:
        with _lock:
            client = _others.get(url) or _others.setdefault(url, Client(url))
    return Job(client, job_id, name)


def submit(command: Command, /, *, key: Optional[str] = None, **options: Unpack[SubmitOptions]) -> Job:
    return default_client().submit(command, key=key, **options)


def job(job_id: int) -> Job:
    return default_client().job(job_id)


def jobs(*, most: Optional[int] = None, **query: Unpack[JobQuery]) -> JobList:
    return default_client().jobs(most=most, **query)


def events(*, job: Union[JobRef, Sequence[JobRef], None] = None, user: Union[str, Sequence[str], None] = None,
           type: Union[str, Sequence[str], None] = None,  # noqa: A002
           after: Optional[int] = None, follow: bool = True) -> Iteration[Event]:
    return default_client().events(job=job, user=user, type=type, after=after, follow=follow)


def gpus(gpus: Gpus = 1, *, wait: bool = True, timeout: Optional[float] = None, ttl: Optional[Seconds] = None,
         set_environment: bool = True, on_lost: Optional[Callable[[str], object]] = None) -> Lease:
    return default_client().gpus(
        gpus, wait=wait, timeout=timeout, ttl=ttl, set_environment=set_environment, on_lost=on_lost)


def select(gpus: Gpus = 1) -> Devices:
    return default_client().select(gpus)


def map(function: Callable[..., R], items: Iterable[Any], **options: Unpack[SubmitOptions]) -> Results[R]:  # noqa: A001
    return default_client().map(function, items, **options)


def submit_array(command: Command, /, tasks: Iterable[int], *, key: Optional[str] = None,
                 **options: Unpack[SubmitOptions]) -> list[Job]:
    return default_client().submit_array(command, tasks, key=key, **options)


def function(**options: Unpack[SubmitOptions]) -> Callable[[Callable[P, R]], Function[P, R]]:
    """`@gflow.function(gpus=1)`: the function can be called as before, and `train.submit(lr=0.1)` and `train.map(items)` run it in jobs.

    >>> power = gflow.function(gpus=1, time_limit=60)(pow)
    >>> power(2, 3), power.submit(2, 3).result()
    (8, 8)

    options: of each job, gflow.submission.SubmitOptions.

    Errors: TypeError of one that there is not, OptionError of `launch`: a call is one process."""
    from gflow._function import Function
    from gflow.submission import given_to_calls

    given_to_calls("a function", options)
    return lambda one: Function(one, options)


submit.__doc__ = Client.submit.__doc__
submit_array.__doc__ = Client.submit_array.__doc__
map.__doc__ = Client.map.__doc__
job.__doc__ = Client.job.__doc__
jobs.__doc__ = Client.jobs.__doc__
events.__doc__ = Client.events.__doc__
gpus.__doc__ = Client.gpus.__doc__
select.__doc__ = Client.select.__doc__
