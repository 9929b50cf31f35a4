# SPDX-License-Identifier: Apache-2.0
"""What is submitted: a command, and all that `gbatch` can say of it."""

from __future__ import annotations

import base64
import math
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Literal, Protocol, TypedDict, Union, cast

from gflow.errors import GflowError

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from gflow import documents

Command = Union[str, "os.PathLike[str]", Sequence[Union[str, "os.PathLike[str]"]]]
Gpus = Union[int, float, str]
Memory = Union[int, str]
Seconds = Union[int, float, timedelta]


class HasId(Protocol):
    @property
    def id(self) -> int: ...


JobRef = Union[int, HasId]


class SubmitOptions(TypedDict, total=False):
    """What may be said of a job; what is not said is as `gbatch` has it."""

    gpus: Gpus
    """2, 0.5, or a request: "2(V100)", "8G,0.5", "1(A100|H100)" (docs/requests.md)"""
    gpu_memory: Memory
    """that has to be free on each GPU: "16G", or bytes"""
    shared: bool
    """takes turns on its GPUs with others; needs gpu_memory"""
    cpus: int
    memory: Memory
    """host memory, reserved and, where the machine can, enforced: "20G", or bytes"""
    nodes: int
    constraint: Mapping[str, str]
    """labels each of its nodes must have"""
    time_limit: Seconds
    grace: Seconds
    """between SIGTERM and SIGKILL when it is stopped"""
    name: str
    project: str
    priority: int
    """0 to 255, higher goes first"""
    depends_on: Union[JobRef, Submission, Sequence[Union[JobRef, Submission]]]
    """jobs, or others of the same submit_all(), that have to finish well first"""
    depends_on_any: Union[JobRef, Submission, Sequence[Union[JobRef, Submission]]]
    """one of these has to"""
    auto_cancel: bool
    """cancelled once that cannot happen any more; True"""
    begin: Union[datetime, timedelta]
    hold: bool
    requeue: bool
    max_retries: int
    preemption: Literal["none", "requeue", "suspend"]
    preempt_signal: int
    group: str
    max_concurrent: int
    """of the jobs of its group"""
    cwd: Union[str, os.PathLike[str]]
    env: Mapping[str, str]
    """set besides the environment of this process"""
    inherit_env: bool
    """False: HOME, PATH and the like are all it has of this process"""
    config: Union[str, os.PathLike[str]]
    """a file, copied now; GFLOW_JOB_CONFIG in the job is its path"""


class Submission:
    """A job for submit_all(), also one that others of it depend on.

    command: text is run by bash, a list is a program and its arguments, a Path is a script, which is copied now."""

    def __init__(self, command: Command, /, **options: Unpack[SubmitOptions]) -> None:
        unknown = sorted(set(options) - set(SubmitOptions.__annotations__))
        if unknown:
            raise TypeError(f"a submission has no option '{unknown[0]}'")
        self.command = command
        self.options = options


def option_of_gpus(gpus: Gpus) -> str:
    """As the grammar of requests has it."""
    if isinstance(gpus, bool) or not isinstance(gpus, (int, float, str)):
        raise TypeError(f"gpus is a number or a request as '2(V100)', not {gpus!r}")
    return f"{gpus:.10f}".rstrip("0").rstrip(".") if isinstance(gpus, float) else str(gpus).strip()


def is_plain(text: str) -> bool:
    """A number of whole GPUs."""
    return text.isascii() and text.isdigit()


# -- requests, in the one form gflowd writes them in (POST /api/v1/gpu/validate)

_VENDORS = {"nvidia", "amd", "intel", "npu"}
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_WHOLE = 10_000


def request_of(canonical: str) -> documents.Request:
    """Of "2(A100),40G", "8G,0.5(T4)", "2x0.5", "-1": gflowd read what was written, this is how it writes it."""
    found = re.fullmatch(r"([^()]*)(?:\(([^()]*)\))?([^()]*)", canonical)
    if not found:
        raise GflowError(f"gflowd wrote a request as '{canonical}', which this version does not know")
    request: documents.Request = {}
    for part in filter(None, f"{found[1]}{found[3]}".split(",")):
        if part[-1] in _UNITS:
            request["gpu_memory_bytes"] = whole_mib(float(part[:-1]) * _UNITS[part[-1]])
        else:
            _set_amount(request, part)
    _set_kind(request, found[2] or "")
    return request


def whole_mib(amount: float) -> int:
    """Rounded up, as memory of a GPU is counted."""
    return math.ceil(amount / _UNITS["M"]) * _UNITS["M"]


def _set_amount(request: documents.Request, amount: str) -> None:
    if amount == "-1":
        request["see_all"] = True
        return
    count, _, share = amount.rpartition("x")
    if not count and "." not in amount:
        request["gpus"] = int(amount)
        return
    request["gpus"] = int(count or 1)
    request["gpu_share_parts"] = round(float(share) * _WHOLE)
    request["gpu_mode"] = "fraction"


def _set_kind(request: documents.Request, kind: str) -> None:
    vendor, comma, models = kind.rpartition(",")
    if not comma and models in _VENDORS:
        vendor, models = models, ""
    if vendor:
        request["gpu_vendor"] = vendor
    if models:
        request["gpu_models"] = models.split("|")


# -- the rest of a specification


def bytes_of(memory: Memory, what: str) -> int:
    """Of "16G", "512M", "1.5GiB" or a number of bytes."""
    if isinstance(memory, int) and not isinstance(memory, bool):
        return memory
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT])(?:i?B)?", str(memory).strip(), re.IGNORECASE)
    if not found:
        raise ValueError(f"{what}={memory!r} is not an amount of memory, as '16G', '512M' or a number of bytes")
    return math.ceil(float(found[1]) * _UNITS[found[2].upper()])


def seconds_of(time: Seconds) -> int:
    return math.ceil(time.total_seconds() if isinstance(time, timedelta) else time)


def time_of(time: Union[datetime, timedelta]) -> str:
    """In UTC; a time without a zone is this machine's."""
    moment = datetime.now(timezone.utc) + time if isinstance(time, timedelta) else time
    return moment.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def wire_text(text: str) -> documents.Bytes:
    """What is not UTF-8 is wrapped."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return {"base64": base64.b64encode(os.fsencode(text)).decode()}
    return text


_MINE = re.compile(r"GFLOW_(JOB_|ARRAY_|PARAM_|GPU|LOG_|PORT_|ATTEMPT)")
_BASIC = {"HOME", "USER", "LOGNAME", "SHELL", "PATH", "LANG", "TZ", "XDG_RUNTIME_DIR"}


def environment_of(options: SubmitOptions) -> list[documents.Bytes]:
    """What of this process a job gets, and what is set besides. What gflow set for a job this runs in is that job's."""
    everything = options.get("inherit_env", True)
    passed = {k: v for k, v in os.environ.items() if not _MINE.match(k) and (everything or k in _BASIC)}
    return [wire_text(f"{name}={value}") for name, value in {**passed, **options.get("env", {})}.items()]


def _umask() -> int:
    """Read, as asking the kernel for it would set it for a moment."""
    with open("/proc/self/status", encoding="utf-8", errors="replace") as status:
        return next((int(line.split()[1], 8) for line in status if line.startswith("Umask:")), 0o22)


_LONGEST_LINE = 4000


def shown_line(words: str) -> str:
    """One line for people."""
    line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in words)
    return line if len(line) <= _LONGEST_LINE else line[:_LONGEST_LINE] + "..."


def payload_of(command: Command, options: SubmitOptions) -> tuple[str, documents.Payload]:
    """The command in one line, and what is run."""
    payload: documents.Payload = {"argv": [], "environment": environment_of(options), "umask": _umask()}
    if isinstance(command, str):
        line, argv = command, ["bash", "-c", command]
    elif isinstance(command, os.PathLike):
        line, argv = shlex.quote(os.fspath(command)), [os.fspath(command)]
        with open(command, encoding="utf-8", errors="surrogateescape") as script:
            payload["script"] = wire_text(script.read())
    else:
        argv = [os.fspath(word) for word in command]
        line = shlex.join(argv)
    if not argv or not line.strip():
        raise ValueError("there is no command to submit")
    payload["argv"] = [wire_text(word) for word in argv]
    if "config" in options:
        payload["config_name"] = wire_text(os.path.basename(os.fspath(options["config"])))
        with open(options["config"], encoding="utf-8", errors="surrogateescape") as file:
            payload["config"] = wire_text(file.read())
    return shown_line(line), payload


def complete(request: documents.Request, options: SubmitOptions) -> documents.Request:
    """With what else is asked of a node."""
    if "gpu_memory" in options:
        request["gpu_memory_bytes"] = whole_mib(bytes_of(options["gpu_memory"], "gpu_memory"))
    if options.get("shared"):
        request["gpu_mode"] = "time_slice"
    request["cpus"] = options.get("cpus", 0 if request.get("gpus") else 1)
    if "memory" in options:
        request["memory_bytes"] = bytes_of(options["memory"], "memory")
    if "nodes" in options:
        request["nodes"] = options["nodes"]
    if "constraint" in options:
        request["selector"] = [{"key": key, "value": value} for key, value in options["constraint"].items()]
    return request


def spec_of(options: SubmitOptions, request: documents.Request, line: str) -> documents.JobSpec:
    plain = ("name", "project", "priority", "hold", "requeue", "max_retries", "preemption", "preempt_signal", "group",
             "max_concurrent")
    spec = cast("documents.JobSpec", {name: value for name, value in options.items() if name in plain})
    spec["request"] = request
    spec["command"] = line
    spec["work_dir"] = wire_text(os.path.abspath(options.get("cwd", os.curdir)))
    if "time_limit" in options:
        spec["time_limit_seconds"] = seconds_of(options["time_limit"])
    if "grace" in options:
        spec["grace_seconds"] = seconds_of(options["grace"])
    if "begin" in options:
        spec["begin"] = time_of(options["begin"])
    return spec


def id_of(job: JobRef) -> int:
    return job if isinstance(job, int) else job.id


def dependencies_of(options: SubmitOptions, places: Mapping[int, int]) -> tuple[documents.Dependencies, list[int]]:
    """Jobs it waits for, and the positions of those that are submitted with it: `places`, by their id()."""
    if "depends_on" in options and "depends_on_any" in options:
        raise ValueError("a job waits for all of some jobs or for any of them: depends_on or depends_on_any")
    named = options.get("depends_on_any", options.get("depends_on", ()))
    listed = named if isinstance(named, Sequence) else [named]
    jobs = [id_of(one) for one in listed if not isinstance(one, Submission)]
    siblings = []
    for one in listed:
        if isinstance(one, Submission):
            if id(one) not in places:
                raise ValueError("a job can wait for one that is submitted before it, or with it and ahead of it")
            siblings.append(places[id(one)])
    mode: Literal["all", "any"] = "any" if "depends_on_any" in options else "all"
    return {"jobs": jobs, "mode": mode, "auto_cancel": options.get("auto_cancel", True)}, siblings
