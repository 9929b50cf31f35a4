# SPDX-License-Identifier: Apache-2.0
"""GPUs of a cluster that programs hold: a Lease for each node, of its name, whose annotation says who holds how many.

Who takes some writes the Lease of that node as the version it had read. So of two that take the last GPU one is refused (409),
reads again, and finds none. Times are those of the API servers, which need one time among them: no other clock has to be right."""

from __future__ import annotations

import json
import logging
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from gflow._kube_api import KubernetesApi, Told, is_known_not_done, makes_no_sense, path_of
from gflow._kube_config import printable
from gflow._kube_objects import LEASE_LABEL
from gflow.errors import ConfigurationError, GflowError, NoGpus, NotFound, Unavailable, WrongState

ANNOTATION = "gflow/allocations"
_GRACE = 1  # seconds: times have no fractions
_MOST_TRIES = 100  # of which each lost to somebody who got something
_MOST_LOST = 3  # answers that did not come
_LONGEST_PAUSE = 0.2
_LONGEST = (1 << 31) - 1  # seconds that a Lease can tell
_ALL_OF_THEM = 1_000_000

logger = logging.getLogger("gpu_resource_manager")


@dataclass(frozen=True)
class Allocation:
    """GPUs of a node, held until `ttl` seconds after `renewed`, by the API server's clock."""

    id: int
    node: str
    resource: str
    gpus: int
    holder: str
    """Machine and process."""
    user: str
    renewed: int
    ttl: int
    pod: str = ""
    """What it is for, where that is one pod: "namespace/name"."""
    under: int = 0
    """The allocation whose GPUs that pod takes, while that is held."""
    _more: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def is_held(self, now: int) -> bool:
        """now: seconds since 1970, by that clock."""
        return now - self.renewed < self.ttl + _GRACE


_FIELDS = [one.name for one in fields(Allocation) if one.name not in ("node", "_more")]
_NUMBERS = {"id": 1 << 62, "gpus": _ALL_OF_THEM, "renewed": 1 << 62, "ttl": _LONGEST, "under": 1 << 62}


def _allocation_of(said: Any, node: str) -> Allocation:
    """What is not known of it, as of a newer version, stays with it. Errors: ValueError of what is none."""
    if not isinstance(said, dict):
        raise ValueError(f"{said!r} is no allocation")
    told = {"pod": "", "under": 0, **said}
    for name in _FIELDS:
        value = told.get(name)
        is_right = type(value) is int and 0 <= value <= _NUMBERS[name] if name in _NUMBERS else isinstance(value, str)
        if not is_right:
            raise ValueError(f"its {name} is {value!r}")
    return Allocation(node=node, **{name: told[name] for name in _FIELDS}, _more={name: value for name, value in said.items() if name not in _FIELDS})


@dataclass(frozen=True)
class Holding:
    """What a Lease says is held on its node, less what has expired."""

    node: str
    allocations: list[Allocation]
    unreadable: Sequence[Any] = ()
    """Entries that are no allocations: nobody knows which GPUs they hold."""
    why: str = ""
    """What cannot be read; "" where all can."""
    is_lost: bool = False
    """All of it cannot, so that it cannot be written anew."""

    def check_is_known(self) -> None:
        """Errors: NoGpus where nobody knows what is free there."""
        if self.why:
            raise NoGpus(self._unknown)

    def check_is_writable(self) -> None:
        """Errors: Unavailable."""
        if self.is_lost:
            raise Unavailable({"status": 503, "code": "failure", "detail": self._unknown}, f"Lease {self.node}")

    @property
    def _unknown(self) -> str:
        return (f"node {self.node}: who holds its GPUs cannot be read of annotation {ANNOTATION} of Lease {self.node}: {self.why}; "
                f"`kubectl annotate lease {self.node} {ANNOTATION}-` in its namespace forgets what is written there")


def holding_of(lease: Mapping[str, Any], now: int) -> Holding:
    """What is not gflow's has none."""
    node = str(lease["metadata"]["name"])
    written = (lease["metadata"].get("annotations") or {}).get(ANNOTATION)
    if not written:
        return Holding(node, [])
    try:
        entries = json.loads(written)
        if not isinstance(entries, list):
            raise ValueError(f"{type(entries).__name__} is no list")
    except (TypeError, ValueError, RecursionError) as error:
        return _warned(Holding(node, [], why=printable(error), is_lost=True))
    found, unreadable, why = [], [], ""
    for said in entries:
        try:
            one = _allocation_of(said, node)
        except ValueError as error:
            unreadable.append(said)
            why = printable(error)
            continue
        if one.is_held(now):
            found.append(one)
    return _warned(Holding(node, found, unreadable, why))


def _warned(holding: Holding) -> Holding:
    if holding.why:
        logger.warning("%s", holding._unknown)
    return holding


def _written(allocations: Sequence[Allocation], unreadable: Sequence[Any]) -> str:
    shown = [{**one._more, **{name: getattr(one, name) for name in _FIELDS}} for one in allocations]
    return json.dumps([*shown, *unreadable], separators=(",", ":"))


@dataclass(frozen=True)
class Moment:
    """When a Lease was read."""

    now: int
    """By the API server's clock."""
    asked: float
    """By this machine's time.monotonic(), before it."""
    is_unsure: bool
    """Whether what was written before may have been done, though nobody answered."""


Change = Callable[[Holding, Moment], list[Allocation]]
"""What is held on a node: what is to be held then. It raises what is to go to who asked."""


class Leases:
    """Those of a namespace."""

    def __init__(self, api: KubernetesApi, namespace: str) -> None:
        self._api = api
        self._namespace = namespace

    def _path(self, *name: str) -> str:
        return path_of("apis", "coordination.k8s.io", "v1", "namespaces", self._namespace, "leases", *name)

    def all(self) -> list[Holding]:
        """What is held in the cluster. Errors: GflowError."""
        found, now = self._api.listed_at(self._path())
        if found:
            self._check_time(now)
        return [holding_of(one, now) for one in found]

    def change(self, node: str, change: Change) -> list[Allocation]:
        """What is held on the node after it. Who was faster is heard first; where an answer does not come, what is there then is looked at.
        Errors: GflowError."""
        lost: list[GflowError] = []
        for _ in range(_MOST_TRIES):
            try:
                told = self._api.ask("GET", self._path(node), may_be_missing=True)
                self._check_time(told.time)
            except GflowError as error:
                raise lost[0] if lost else error
            holding = holding_of(told.document, told.time) if told.document else Holding(node, [])
            wanted = change(holding, Moment(told.time, told.asked, bool(lost)))
            if wanted == holding.allocations:
                return wanted
            holding.check_is_writable()
            try:
                self._write(told, holding, wanted)
                return wanted
            except WrongState:
                time.sleep(random.uniform(0, _LONGEST_PAUSE))  # so that those who met do not meet again
            except GflowError as error:
                lost.append(error)
                if is_known_not_done(error) or len(lost) >= _MOST_LOST:
                    raise lost[0]
        raise NoGpus(f"node {node}: others take and give back GPUs there all the time; try again")

    def _check_time(self, now: int) -> None:
        """Errors: Problem of an answer without a time, by which nobody could tell what is held."""
        if not now:
            error = makes_no_sense("it has no Date, by which leases end", f"GET {self._path()}")
            error._is_of_a_look = True
            raise error

    def _write(self, told: Told, holding: Holding, wanted: Sequence[Allocation]) -> None:
        """As the version that was read, or as the first one. Errors: WrongState where it is not that any more."""
        spec: dict[str, Any] = {}
        if wanted:  # for who looks with kubectl
            spec = {"holderIdentity": ", ".join(one.holder for one in wanted), "leaseDurationSeconds": max(1, *(one.ttl for one in wanted))}
        written = {ANNOTATION: _written(wanted, holding.unreadable)}
        if told.document is None:
            named = {"name": holding.node, "namespace": self._namespace, "labels": {"app.kubernetes.io/managed-by": "gflow"}}
            return self._create({"metadata": {**named, "annotations": written}, "spec": spec})
        metadata = {name: value for name, value in told.document["metadata"].items() if name != "managedFields"}
        annotations = {**(metadata.get("annotations") or {}), **written}
        try:
            self._api.ask("PUT", self._path(holding.node), {"metadata": {**metadata, "annotations": annotations}, "spec": spec})
        except NotFound as error:  # it was deleted meanwhile: as one that somebody changed
            raise WrongState({"status": 409, "code": "wrong_state", "detail": error.detail}, error.asked) from error
        return None

    def _create(self, document: Mapping[str, Any]) -> None:
        """Of a node of which nobody held any before."""
        try:
            self._api.ask("POST", self._path(), document)
        except NotFound as error:
            raise ConfigurationError(f"{error.detail}: packaging/kubernetes/rbac.yaml makes namespace gflow; namespace= names another") from error


def renewed(held: Sequence[Allocation], number: int, now: int) -> list[Allocation]:
    return [replace(one, renewed=now) if one.id == number else one for one in held]


def _pod_name(pod: Mapping[str, Any]) -> str:
    return f"{pod['namespace']}/{pod['name']}"


def taken_under(number: int, held: Iterable[Allocation], pods: Iterable[Mapping[str, Any]], but: str) -> dict[str, int]:
    """By resource, what the pods of a node take of an allocation: those there, and those that are being put there; except one."""
    names, taken = set(), []
    for pod in pods:
        if pod["labels"].get(LEASE_LABEL) == str(number) and _pod_name(pod) != but:
            names.add(_pod_name(pod))
            taken += pod["gpu_resources"].items()
    taken += [(one.resource, one.gpus) for one in held if one.under == number and one.pod not in {*names, but}]
    return {resource: sum(count for name, count in taken if name == resource) for resource, _ in taken}


def as_pods(holding: Holding, pods: Iterable[Mapping[str, Any]], resources: Iterable[str]) -> list[dict[str, Any]]:
    """What allocations hold of a node beyond what pods under them do: a pod under one uses GPUs of it, so they are not counted twice. What
    cannot be read holds all there is."""
    used: dict[tuple[str, str, str], int] = {}
    for pod in pods:
        for name in (pod["labels"].get(LEASE_LABEL), _pod_name(pod)):
            for resource, count in pod["gpu_resources"].items():
                key = (str(name), str(pod["node_name"]), resource)
                used[key] = used.get(key, 0) + count
    held = {one.id for one in holding.allocations}
    shown = [(f"lease {one.id}", {one.resource: one.gpus - used.get((one.pod or str(one.id), one.node, one.resource), 0)})
             for one in holding.allocations if one.under not in held]
    if holding.why:
        shown.append(("lease that cannot be read", dict.fromkeys(resources, _ALL_OF_THEM)))
    return [{
        "name": name, "namespace": "", "labels": {}, "node_name": holding.node, "phase": "Leased", "cpu": 0.0, "memory": 0.0, "gpu_resources": holds,
    } for name, holds in shown if any(count > 0 for count in holds.values())]
