# SPDX-License-Identifier: Apache-2.0
"""What is submitted: a command, and all that `gbatch` can say of it."""

from __future__ import annotations

import base64
import math
import numbers
import os
import reprlib
import re
import secrets
import shlex
import signal
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, Literal, Optional, Protocol, TypedDict, Union, cast

from gflow.errors import ConfigurationError, GflowError, OptionError

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from gflow import documents

Command = Union[str, "os.PathLike[str]", Sequence[Union[str, "os.PathLike[str]"]]]
Gpus = Union[int, float, str]
Memory = Union[int, str]
Seconds = Union[int, float, timedelta]
Signal = Union[int, str]


class HasId(Protocol):
    @property
    def id(self) -> int: ...


JobRef = Union[int, HasId]


class SubmitOptions(TypedDict, total=False):
    """What may be said of a job; what is not said, or None, is as `gbatch` has it."""

    gpus: Optional[Gpus]
    """2, 0.5, or a request: "2(V100)", "8G,0.5", "1(A100|H100)" (docs/requests.md)"""
    gpu_memory: Optional[Memory]
    """that has to be free on each GPU: "16G", or bytes"""
    shared: Optional[bool]
    """takes turns on its GPUs with others; needs gpu_memory"""
    cpus: Optional[int]
    memory: Optional[Memory]
    """host memory, reserved and, where the machine can, enforced: "20G", or bytes"""
    nodes: Optional[int]
    constraint: Optional[Mapping[str, str]]
    """labels each of its nodes must have"""
    time_limit: Optional[Seconds]
    grace: Optional[Seconds]
    """between SIGTERM and SIGKILL when it is stopped"""
    name: Optional[str]
    project: Optional[str]
    priority: Optional[int]
    """0 to 255, higher goes first"""
    depends_on: Optional[Union[JobRef, Submission, Sequence[Union[JobRef, Submission]]]]
    """jobs, or others of the same submit_all(), that have to finish well first"""
    depends_on_any: Optional[Union[JobRef, Submission, Sequence[Union[JobRef, Submission]]]]
    """one of these has to"""
    auto_cancel: Optional[bool]
    """cancelled once that cannot happen any more; True"""
    begin: Optional[Union[datetime, timedelta]]
    hold: Optional[bool]
    requeue: Optional[bool]
    max_retries: Optional[int]
    preemption: Optional[Literal["none", "requeue", "suspend"]]
    preempt_signal: Optional[Signal]
    """that it gets instead of SIGTERM when it is preempted: "USR1", or signal.SIGUSR1"""
    group: Optional[str]
    max_concurrent: Optional[int]
    """of the jobs of its group"""
    cwd: Optional[Union[str, os.PathLike[str]]]
    env: Optional[Mapping[str, str]]
    """set besides the environment of this process"""
    inherit_env: Optional[bool]
    """False: HOME, PATH and the like are all it has of this process"""
    conda_env: Optional[str]
    """its environment is that of this process as `conda activate` would leave it"""
    launch: Optional[Literal["ddp", "torchrun", "accelerate"]]
    """a process for each of its GPUs, as `gbatch --launch` (docs/environment.md); not of functions"""
    config: Optional[Union[str, os.PathLike[str]]]
    """a file, copied now; GFLOW_JOB_CONFIG in the job is its path"""


class Submission:
    """A job for submit_all(), also one that others of it depend on.

    command: text is run by bash, a list is a program and its arguments, a Path is a script, which is copied now."""

    def __init__(self, command: Command, /, **options: Unpack[SubmitOptions]) -> None:
        check_names("a submission", options, SubmitOptions)
        self.command = command
        self.options = given_of(options)


def check_names(what: str, said: Mapping[str, object], kind: type) -> None:
    """Errors: TypeError with the word that is meant."""
    for name in sorted(set(said) - set(kind.__annotations__)):
        import difflib

        near = difflib.get_close_matches(name, kind.__annotations__, 1)
        raise TypeError(f"{what} has no option '{name}'" + (f"; it has '{near[0]}'" if near else ""))


Given = Mapping[str, Any]
"""Options that something is said of, without None."""


def given_of(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def given_to_calls(what: str, options: SubmitOptions) -> dict[str, Any]:
    """Of jobs that run something of gflow and no command. Errors: those of check_names(); OptionError of `launch`."""
    check_names(what, options, SubmitOptions)
    given = given_of(options)
    if "launch" in given:
        raise OptionError(f"launch={given['launch']!r} is for commands: a job of {what} is one process")
    return given


def option_of_gpus(gpus: Gpus) -> str:
    """As the grammar of requests has it. Numbers may be NumPy's, here as in other options."""
    if not isinstance(gpus, str) and not is_number(gpus):
        raise OptionError(f"gpus is a number or a request as '2(V100)', not {gpus!r}")
    if isinstance(gpus, str):
        text = gpus.strip()
    elif isinstance(gpus, numbers.Integral):
        text = str(int(gpus))
    else:
        text = f"{float(gpus):.10f}".rstrip("0").rstrip(".") if gpus else "0"
    if not text or (text in ("0", "-0") and not isinstance(gpus, str) and gpus):
        raise OptionError(f"gpus={gpus!r} asks for nothing: 0 is a job without GPUs")
    wire_text(text)
    return text


def is_number(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def whole_of(number: object, what: str) -> int:
    """Errors: OptionError of what is no whole number."""
    if isinstance(number, bool) or not isinstance(number, numbers.Integral):
        raise OptionError(f"{what}={number!r} is not a whole number")
    return int(number)


def signal_of(number: Signal, what: str) -> int:
    """Of "USR1", "SIGUSR1", "10" or a number, as gbatch reads them. Errors: OptionError of what is no signal."""
    if not isinstance(number, str):
        return whole_of(number, what)
    name = number.strip().upper().removeprefix("SIG")
    named = signal.Signals.__members__.get(f"SIG{name}")
    if named is None and not (is_plain(name) and 0 < int(name) <= signal.SIGRTMAX):
        raise OptionError(f"{what}={number!r} is not a signal, as 'TERM', 'INT', 'USR1', 'KILL' or a number")
    return int(named or name)


_WHOLE_NUMBERS = {"priority", "max_retries", "max_concurrent"}


def plain_of(options: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Those of a specification that are said as they are written there."""
    return {name: _plain(name, value) for name, value in options.items() if name in names}


def _plain(name: str, value: object) -> object:
    if name in _WHOLE_NUMBERS:
        return whole_of(value, name)
    if name == "preempt_signal":
        return signal_of(cast("Signal", value), name)
    return wire_text(value) if isinstance(value, str) else value


def pairs_of(named: Mapping[str, str], what: str) -> list[tuple[str, str]]:
    """Errors: OptionError of what is no dictionary, or has no value."""
    if not isinstance(named, Mapping):
        raise OptionError(f"{what}={named!r} is not a dictionary")
    for name, value in named.items():
        if not isinstance(name, str) or value is None:
            raise OptionError(f"{what}: {name!r}: {value!r} is not a name and a text")
    return list(named.items())


def is_plain(text: str) -> bool:
    """A number of whole GPUs."""
    return text.isascii() and text.isdigit()


# -- requests, in the one form gflowd writes them in (POST /api/v1/gpu/validate)

_VENDORS = {"nvidia", "amd", "intel", "npu"}
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_WHOLE = 10_000


def request_of(canonical: str) -> documents.Request:
    """Of "2(A100),40G", "8G,0.5(T4)", "0.3..1", "2x0.5", "-1": gflowd read what was written, this is how it writes it."""
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


def gpus_of(request: Mapping[str, Any]) -> Gpus:
    """As people write it: the other way round, but for memory."""
    if request.get("see_all"):
        return -1
    count, share = request.get("gpus", 0), request.get("gpu_share_parts", _WHOLE) / _WHOLE
    limit = request.get("gpu_share_limit_parts", 0) / _WHOLE
    amount = str(count) if share == 1 else f"{share:g}" if count == 1 else f"{count}x{share:g}"
    amount += f"..{limit:g}" if limit else ""
    kind = ",".join(filter(None, [request.get("gpu_vendor", ""), "|".join(request.get("gpu_models", ()))]))
    return f"{amount}({kind})" if kind else count if share == 1 else amount


def whole_gpu_part(request: documents.Request) -> documents.Request:
    """All that a job asks of GPUs, for one that asked otherwise before; only memory stays where none is named."""
    part: documents.Request = {
        "gpus": 0, "gpu_share_parts": _WHOLE, "gpu_share_limit_parts": 0, "gpu_mode": "whole", "gpu_vendor": "",
        "gpu_models": [], "see_all": False}
    if not request.get("gpus"):
        part["gpu_memory_bytes"] = 0
    part.update(request)
    return part


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
    share, _, limit = share.partition("..")
    request["gpu_share_parts"] = round(float(share) * _WHOLE)
    if limit:
        request["gpu_share_limit_parts"] = round(float(limit) * _WHOLE)
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
    if isinstance(memory, numbers.Integral) and not isinstance(memory, bool):
        return int(memory)
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT])(?:i?B)?", str(memory).strip(), re.IGNORECASE | re.ASCII)
    amount = float(found[1]) * _UNITS[found[2].upper()] if found else math.nan
    if not math.isfinite(amount):
        raise OptionError(f"{what}={memory!r} is not an amount of memory, as '16G', '512M' or a number of bytes")
    return math.ceil(amount)


def seconds_of(time: Seconds, what: str) -> int:
    seconds = time.total_seconds() if isinstance(time, timedelta) else time
    if not is_number(seconds) or not _is_finite(seconds):
        raise OptionError(f"{what}: {time!r} is not a time: seconds, or a timedelta")
    return math.ceil(seconds)


def _is_finite(number: Any) -> bool:
    """Of whole numbers those are not that no time has."""
    try:
        return math.isfinite(number)
    except OverflowError:
        return False


def time_of(time: Union[datetime, timedelta], what: str) -> str:
    """In UTC; a time without a zone is this machine's."""
    if not isinstance(time, (datetime, timedelta)):
        raise OptionError(f"{what}={time!r} is no time: a datetime, or a timedelta from now on")
    try:
        moment = datetime.now(timezone.utc) + time if isinstance(time, timedelta) else time
        return moment.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        raise OptionError(f"{what}={time!r} is out of the range of times: years 1 to 9999, in UTC") from None


def wire_text(text: str) -> documents.Bytes:
    """What is not UTF-8 is wrapped. Errors: OptionError of half a character, which no bytes are."""
    try:
        text.encode()
    except UnicodeEncodeError:
        try:
            return {"base64": base64.b64encode(os.fsencode(text)).decode()}
        except UnicodeEncodeError as error:
            raise OptionError(f"{reprlib.repr(text)} is no text: {text[error.start]!r} is half a character") from None
    return text


_MINE = re.compile(r"GFLOW_(JOB_|ARRAY_|PARAM_|GPU|LOG_|PORT_|ATTEMPT|LAUNCH)")
_BASIC = {"HOME", "USER", "LOGNAME", "SHELL", "PATH", "LANG", "TZ", "XDG_RUNTIME_DIR"}


def environment_of(options: Given) -> list[documents.Bytes]:
    """What of this process a job gets, and what is set besides. What gflow set for a job this runs in is that job's."""
    everything = options.get("inherit_env", True)
    given = activated(options["conda_env"]) if "conda_env" in options else os.environ
    passed = {k: v for k, v in given.items() if not _MINE.match(k) and (everything or k in _BASIC)}
    set_besides = dict(pairs_of(options.get("env", {}), "env"))
    for name in set_besides:
        if not name or "=" in name or "\0" in name:
            raise OptionError(f"env: {name!r} is not the name of a variable")
    if "launch" in options:
        set_besides["GFLOW_LAUNCH"] = _launch_of(options["launch"])
    return [wire_text(f"{name}={_text_of(value)}") for name, value in {**passed, **set_besides}.items()]


def _text_of(value: object) -> str:
    """Of a value, a word or a path, which may be bytes."""
    return os.fsdecode(value) if isinstance(value, (bytes, os.PathLike)) else str(value)


def _launch_of(how: str) -> str:
    if how not in _LAUNCHES:
        raise OptionError(f"launch={how!r} is none of {', '.join(_LAUNCHES)}")
    return how


_LAUNCHES = ("ddp", "torchrun", "accelerate")


# As gbatch has it (src/cli/submit/conda.cpp): only a shell runs the activation scripts of packages.
_ACTIVATE = r"""
hook=$("${CONDA_EXE:-conda}" shell.bash hook 2>&1) || { echo "$hook" >&2; exit 1; }
eval "$hook"
conda activate "$1" >&2 || exit 1
printf 'gflow-environment\0'
exec env -0
"""


def activated(conda: str) -> dict[str, str]:
    """The environment of this process as `conda activate` leaves it. Errors: ConfigurationError with what conda said."""
    done = subprocess.run(["bash", "-c", _ACTIVATE, "gflow", conda], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    _, found, text = done.stdout.partition(b"gflow-environment\0")
    if done.returncode or not found:
        said = done.stderr.decode(errors="replace").strip()
        raise ConfigurationError(f"the conda environment '{conda}' cannot be activated: {said}")
    pairs = (os.fsdecode(one).partition("=") for one in text.split(b"\0") if one)
    return {name: value for name, _, value in pairs if name not in ("_", "SHLVL")}


def _umask() -> int:
    """Read, as asking the kernel for it would set it for a moment."""
    with open("/proc/self/status", encoding="utf-8", errors="replace") as status:
        return next((int(line.split()[1], 8) for line in status if line.startswith("Umask:")), 0o22)


_LONGEST_LINE = 4000


def shown_line(words: str) -> str:
    """One line for people."""
    line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in words)
    return line if len(line) <= _LONGEST_LINE else line[:_LONGEST_LINE] + "..."


def _content(path: Union[str, os.PathLike[str]], what: str) -> documents.Bytes:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return wire_text(file.read())
    except OSError as error:
        raise OptionError(f"{what} '{os.fspath(path)}' cannot be read: {error.strerror or error}") from error


def payload_of(command: Command, options: Given) -> tuple[str, documents.Payload]:
    """The command in one line, and what is run."""
    payload: documents.Payload = {"argv": [], "environment": environment_of(options), "umask": _umask()}
    if isinstance(command, str):
        line, argv = command, ["bash", "-c", command]
    elif isinstance(command, os.PathLike):
        line, argv = shlex.quote(_text_of(command)), [_text_of(command)]
        payload["script"] = _content(command, "the script")
    elif isinstance(command, (bytes, bytearray)) or not isinstance(command, Iterable):
        raise TypeError(f"a command is a text, a list of a program and its arguments, or a Path to a script, not {reprlib.repr(command)}")
    else:
        argv = [os.fsdecode(word) for word in command]
        line = shlex.join(argv)
    if not argv or not line.strip():
        raise OptionError("there is no command to submit")
    payload["argv"] = [wire_text(word) for word in argv]
    if "config" in options:
        payload["config_name"] = wire_text(os.fsdecode(os.path.basename(options["config"])))
        payload["config"] = _content(options["config"], "config")
    return shown_line(line), payload


def complete(request: documents.Request, options: Given) -> documents.Request:
    """With what else is asked of a node."""
    request["cpus"] = 0 if request.get("gpus") else 1
    request.update(node_part(options))
    return request


def node_part(options: Given) -> documents.Request:
    """What is said there of a request, besides its GPUs."""
    part: documents.Request = {}
    if "gpu_memory" in options:
        part["gpu_memory_bytes"] = whole_mib(bytes_of(options["gpu_memory"], "gpu_memory"))
    if "shared" in options:
        part["gpu_mode"] = "time_slice" if options["shared"] else "whole"
    if "cpus" in options:
        part["cpus"] = whole_of(options["cpus"], "cpus")
    if "memory" in options:
        part["memory_bytes"] = bytes_of(options["memory"], "memory")
    if "nodes" in options:
        part["nodes"] = whole_of(options["nodes"], "nodes")
    if "constraint" in options:
        part["selector"] = [{"key": key, "value": value} for key, value in pairs_of(options["constraint"], "constraint")]
    return part


def spec_of(options: Given, request: documents.Request, line: str) -> documents.JobSpec:
    plain = ("name", "project", "priority", "hold", "requeue", "max_retries", "preemption", "preempt_signal", "group",
             "max_concurrent")
    spec = cast("documents.JobSpec", plain_of(options, plain))
    spec["request"] = request
    spec["command"] = line
    spec["work_dir"] = wire_text(os.fsdecode(os.path.abspath(options.get("cwd", os.curdir))))
    if "time_limit" in options:
        spec["time_limit_seconds"] = seconds_of(options["time_limit"], "time_limit")
    if "grace" in options:
        spec["grace_seconds"] = seconds_of(options["grace"], "grace")
    if "begin" in options:
        spec["begin"] = time_of(options["begin"], "begin")
    return spec


def id_of(job: JobRef) -> int:
    its = job if isinstance(job, numbers.Integral) else getattr(job, "id", None)
    if isinstance(its, bool) or not isinstance(its, numbers.Integral):
        raise OptionError(f"{reprlib.repr(job)} is not a job: one that was submitted, or its number")
    return int(its)


def dependencies_of(options: Given, places: Mapping[int, int]) -> tuple[documents.Dependencies, list[int]]:
    """Jobs it waits for, and the positions of those that are submitted with it: `places`, by their id()."""
    if "depends_on" in options and "depends_on_any" in options:
        raise OptionError("a job waits for all of some jobs or for any of them: depends_on or depends_on_any")
    named = options.get("depends_on_any", options.get("depends_on", ()))
    several = isinstance(named, Sequence) and not isinstance(named, str)
    listed = cast("Sequence[Union[JobRef, Submission]]", named if several else [named])
    jobs = [id_of(one) for one in listed if not isinstance(one, Submission)]
    siblings = []
    for one in listed:
        if isinstance(one, Submission):
            if id(one) not in places:
                raise OptionError("a job can wait for one that is submitted before it, or with it and ahead of it")
            siblings.append(places[id(one)])
    mode: Literal["all", "any"] = "any" if "depends_on_any" in options else "all"
    return {"jobs": jobs, "mode": mode, "auto_cancel": options.get("auto_cancel", True)}, siblings


def tasks_of(item: documents.SubmitRequestItem, tasks: Sequence[int]) -> list[documents.SubmitRequestItem]:
    """Of an array, as gbatch names and groups them: an item for each stretch of numbers with one step between them.

    Errors: OptionError of tasks that are no numbers of their own."""
    tasks = [whole_of(task, "a task") for task in tasks]
    if min(tasks) < 0:
        raise OptionError(f"there is no task {min(tasks)}: they are numbered from 0 on")
    if len(set(tasks)) < len(tasks):
        raise OptionError(f"task {Counter(tasks).most_common(1)[0][0]} is there twice")
    whole = cast("documents.SubmitRequestItemOf", item)
    whole["payload"].setdefault("environment", []).extend(
        [f"GFLOW_ARRAY_TASK_COUNT={len(tasks)}", f"GFLOW_ARRAY_TASK_MIN={min(tasks)}", f"GFLOW_ARRAY_TASK_MAX={max(tasks)}"])
    if len(tasks) > 1:
        whole["spec"].setdefault("group", f"group-{secrets.token_hex(4)}")
    first, *others = ranges_of(tasks)
    whole["tasks"] = first
    alike: list[documents.SubmitRequestItem] = [{"like": 0, "tasks": one} for one in others]
    return [item, *alike]


def ranges_of(tasks: Sequence[int]) -> list[documents.TaskRange]:
    """In their order."""
    ranges: list[documents.TaskRange] = []
    place = 0
    while place < len(tasks):
        first = tasks[place]
        step = max(tasks[place + 1] - first, 1) if place + 1 < len(tasks) else 1
        count = 1
        while place + count < len(tasks) and tasks[place + count] == first + count * step:
            count += 1
        ranges.append({"first": first, "count": count, "step": step})
        place += count
    return ranges
