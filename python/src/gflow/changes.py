# SPDX-License-Identifier: Apache-2.0
"""What may be changed of a job, in the words it is submitted with, and what gflowd suggests to change, in the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Optional, TypedDict, Union, cast

from gflow import submission as written
from gflow.errors import OptionError

if TYPE_CHECKING:
    from typing_extensions import NotRequired

    from gflow import documents
    from gflow.submission import Gpus, JobRef, Memory, Seconds, Signal


class JobChanges(TypedDict, total=False):
    """As the options of `gjob update`. None takes a limit or a memory away; the others cannot be without."""

    gpus: Gpus
    """all that is asked of GPUs; a memory that it does not name stays"""
    gpu_memory: Optional[Memory]
    shared: bool
    cpus: int
    memory: Optional[Memory]
    nodes: int
    constraint: Mapping[str, str]
    time_limit: Optional[Seconds]
    """of jobs that run, too"""
    grace: Seconds
    name: str
    project: str
    priority: int
    depends_on: Union[JobRef, Sequence[JobRef]]
    """() for none"""
    depends_on_any: Union[JobRef, Sequence[JobRef]]
    auto_cancel: bool
    requeue: bool
    max_retries: int
    preemption: Literal["none", "requeue", "suspend"]
    preempt_signal: Signal
    max_concurrent: int


class Suggestion(TypedDict):
    """What would start a job sooner."""

    action: Literal["update", "release", "resume"]
    changes: JobChanges
    """for `job.update(**changes)`; empty where it is `job.release()` or `job.resume()`"""
    command: str
    text: str


class Explanation(TypedDict):
    """Why a job waits, and what may be done."""

    job: documents.JobView
    told: NotRequired[str]
    """about a Kubernetes cluster: what its scheduler says of the pod"""
    expected_start: Union[documents.ExpectedStartShown, None]
    suggestions: list[Suggestion]


_PLAIN = ("name", "project", "priority", "requeue", "max_retries", "preemption", "preempt_signal", "max_concurrent")
_CAN_BE_WITHOUT = {"gpu_memory", "memory", "time_limit"}
_OF_GPUS = {"gpus", "gpu_share_parts", "gpu_share_limit_parts", "gpu_mode", "gpu_vendor", "gpu_models", "see_all"}


def document_of(changes: JobChanges, gpus: documents.Request) -> dict[str, Any]:
    """As the API has them; `gpus` is what gflowd read of those. Errors: OptionError, TypeError."""
    written.check_names("an update", changes, JobChanges)
    for name, value in changes.items():
        if value is None and name not in _CAN_BE_WITHOUT:
            raise OptionError(f"{name}=None: only {', '.join(sorted(_CAN_BE_WITHOUT))} can be taken away")
    document = written.plain_of(changes, _PLAIN)
    if "time_limit" in changes:
        limit = changes["time_limit"]
        document["time_limit_seconds"] = None if limit is None else written.seconds_of(limit, "time_limit")
    if "grace" in changes:
        document["grace_seconds"] = written.seconds_of(changes["grace"], "grace")
    if dependencies := _dependencies_of(changes):
        document["dependencies"] = dependencies
    said = {name: 0 if value is None else value for name, value in changes.items()}
    if request := {**gpus, **written.node_part(said)}:
        document["request"] = request
    return document


def _dependencies_of(changes: JobChanges) -> dict[str, Any]:
    """Only what was said of them."""
    said = {"depends_on", "depends_on_any", "auto_cancel"} & set(changes)
    if not said:
        return {}
    options = {name: value for name, value in changes.items() if name in said}
    whole, _ = written.dependencies_of(options, {})
    named = {} if said == {"auto_cancel"} else {"jobs": whole.get("jobs", []), "mode": whole.get("mode", "all")}
    return {**named, **({"auto_cancel": whole.get("auto_cancel", True)} if "auto_cancel" in said else {})}


def explanation_of(told: documents.Explanation) -> Explanation:
    asked = told["job"]["spec"]["request"]
    explanation: Explanation = {"job": told["job"], "expected_start": told["expected_start"], "suggestions": [
        {"action": one["action"], "changes": _words_of(one["changes"], asked), "command": one["command"], "text": one["text"]}
        for one in told["suggestions"]]}
    if "told" in told:
        explanation["told"] = told["told"]
    return explanation


def _words_of(patch: Mapping[str, Any], asked: Mapping[str, Any]) -> JobChanges:
    """A change of a job that asks for that. What a newer gflowd has and this version has no word for is left out."""
    changes: dict[str, Any] = {name: value for name, value in patch.items() if name in _PLAIN}
    if "time_limit_seconds" in patch:
        changes["time_limit"] = patch["time_limit_seconds"]
    if "grace_seconds" in patch:
        changes["grace"] = patch["grace_seconds"]
    dependencies = patch.get("dependencies", {})
    if "jobs" in dependencies:
        changes["depends_on_any" if dependencies.get("mode") == "any" else "depends_on"] = dependencies["jobs"]
    if "auto_cancel" in dependencies:
        changes["auto_cancel"] = dependencies["auto_cancel"]
    changes.update(_words_of_request(patch.get("request", {}), asked))
    return cast("JobChanges", changes)


def _words_of_request(patch: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    words: dict[str, Any] = {name: patch[name] for name in ("cpus", "nodes") if name in patch}
    if _OF_GPUS & set(patch):
        whole = {**asked, **patch}
        words["gpus"] = written.gpus_of(whole)
        if whole["gpu_mode"] == "time_slice":
            words["shared"] = True
    if "gpu_memory_bytes" in patch:
        words["gpu_memory"] = patch["gpu_memory_bytes"]
    if "memory_bytes" in patch:
        words["memory"] = patch["memory_bytes"]
    if "selector" in patch:
        words["constraint"] = {one["key"]: one["value"] for one in patch["selector"]}
    return words
