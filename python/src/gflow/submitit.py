# SPDX-License-Identifier: Apache-2.0
"""What programs written for submitit call: `from gflow.submitit import AutoExecutor`.

Jobs are gflow's, so is the queue. A parameter that gflow has no word for is refused by name; one that changes nothing of
what is computed (a partition, a comment) is left out, which is logged."""

from __future__ import annotations

import logging
import math
import os
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Optional, cast

from gflow._default import default_client
from gflow.errors import OptionError
from gflow.functions import FunctionJob, submit_calls
from gflow.submission import is_number

if TYPE_CHECKING:
    from gflow.client import Client
    from gflow.submission import SubmitOptions

_LOGGER = logging.getLogger("gflow")
_MINUTE = 60
_GIB = 1 << 30
# As sbatch(1) takes them: "minutes", "minutes:seconds", "hours:minutes:seconds", "days-hours[:minutes[:seconds]]".
_TIME = re.compile(r"(?:(?P<m>\d+)(?::(?P<s>\d+))?|(?P<H>\d+):(?P<M>\d+):(?P<S>\d+)|(?P<d>\d+)-(?P<h>\d+)(?::(?P<dm>\d+)(?::(?P<ds>\d+))?)?)")
_SECONDS = {"m": 60, "s": 1, "H": 3600, "M": 60, "S": 1, "d": 86400, "h": 3600, "dm": 60, "ds": 1}
_STATES = {"Queued": "PENDING", "Hold": "PENDING", "Starting": "CONFIGURING", "Finished": "COMPLETED", "Lost": "NODE_FAIL"}
# What of submitit is what of gflow.
_SAME = {"name": "name", "cpus_per_task": "cpus", "gpus_per_node": "gpus", "slurm_gpus_per_node": "gpus",
         "slurm_job_name": "name", "slurm_array_parallelism": "max_concurrent"}
_IGNORED = {"slurm_partition", "slurm_comment", "slurm_signal_delay_s"}
_ONE = {"nodes", "tasks_per_node", "slurm_ntasks_per_node"}


def _seconds_of(name: str, time: object) -> float:
    """Of minutes, or of a text as sbatch takes it."""
    if isinstance(time, (int, float)):
        return time * _MINUTE
    read = _TIME.fullmatch(time) if isinstance(time, str) else None
    if read is None:
        raise OptionError(f"{name}={time!r} is not a time: minutes, or a text such as '90', '1:30:00' and '2-12'")
    return sum(int(value) * _SECONDS[unit] for unit, value in read.groupdict().items() if value)


def _bytes_of(name: str, gb: Any) -> int:
    if not is_number(gb) or not 0 <= gb < math.inf:
        raise OptionError(f"{name}={gb!r} is not an amount of memory in GB")
    return int(gb * _GIB)


class SubmititJob:
    """As submitit.Job."""

    def __init__(self, job: FunctionJob[Any]) -> None:
        self.job = job

    @property
    def job_id(self) -> str:
        """The job's number, as text."""
        return str(self.job.id)

    @property
    def state(self) -> str:
        """In the words of Slurm: "PENDING", "RUNNING", "COMPLETED", ..."""
        status = self.job.status()
        return _STATES.get(status, status.upper())

    def result(self) -> Any:
        """What the function returned; what it raised is raised. Errors: JobFailed where it came to neither."""
        return self.job.result()

    def results(self) -> list[Any]:
        """The same, as the list of it: a function is one process."""
        return [self.job.result()]

    def exception(self) -> Optional[BaseException]:
        """What result() would raise, or None. It is waited for."""
        try:
            self.job.result()
        except Exception as error:
            return error
        return None

    def done(self) -> bool:
        """Whether it has ended, well or not."""
        return self.job.done()

    def wait(self) -> None:
        """Until it has ended, well or not."""
        self.job.wait()

    def cancel(self, check: bool = True) -> None:
        """Ends it; `check` is submitit's and not heeded."""
        self.job.cancel()

    def stdout(self) -> str:
        """stderr is with it: a job has one log."""
        return self.job.log()

    def __repr__(self) -> str:
        return f"<SubmititJob of {self.job!r}>"


class AutoExecutor:
    """As submitit.AutoExecutor. `folder` is not needed: logs are gflow's (`gjob log`).

    >>> from gflow.submitit import AutoExecutor
    >>> executor = AutoExecutor(folder="logs")
    >>> executor.update_parameters(timeout_min=5, gpus_per_node=1)
    >>> [job.result() for job in executor.map_array(pow, [2, 3], [3, 2])]
    [8, 9]
    """

    def __init__(self, folder: os.PathLike[str] | str = "", client: Optional[Client] = None, **_: object) -> None:
        self._client = client or default_client()
        self._options: dict[str, Any] = {}

    def update_parameters(self, **parameters: Any) -> None:
        """timeout_min, mem_gb, gpus_per_node, cpus_per_task, name, slurm_array_parallelism, ..., and options of gflow.submit()
        as `gflow_OPTION`.

        Errors: NameError of what gflow has no word for; OptionError of a time or memory that is none; ValueError of more than one process."""
        for name, value in parameters.items():
            if name in _ONE and value != 1:
                raise ValueError(f"{name}={value!r}: a function is one process; processes of one training are `gbatch --launch`")
            if name in ("timeout_min", "slurm_time"):
                self._options["time_limit"] = _seconds_of(name, value)
            elif name == "mem_gb":
                self._options["memory"] = _bytes_of(name, value)
            elif name.startswith("gflow_"):
                self._options[name.removeprefix("gflow_")] = value
            elif name in _SAME:
                self._options[_SAME[name]] = value
            elif name in _IGNORED:
                _LOGGER.info("%s=%r of submitit is left out: gflow has no such thing", name, value)
            elif name not in _ONE:
                raise NameError(f"gflow has no parameter '{name}' of submitit; options of gflow.submit() are gflow_OPTION")

    def submit(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> SubmititJob:
        """A job that calls it. Errors: those of gflow.Client.map()."""
        return self._submit(fn, [(args, kwargs)])[0]

    def map_array(self, fn: Callable[..., Any], *iterables: Iterable[Any]) -> list[SubmititJob]:
        """All of them or none."""
        return self._submit(fn, [(arguments, {}) for arguments in zip(*iterables)])

    def _submit(self, fn: Callable[..., Any], calls: list[tuple[Any, dict[str, Any]]]) -> list[SubmititJob]:
        return [SubmititJob(job) for job in submit_calls(self._client, fn, calls, cast("SubmitOptions", dict(self._options)))]
