# SPDX-License-Identifier: Apache-2.0
"""A cluster as a program's client describes it, in dictionaries, for the native scheduler.

A node: `name`, `ready`, `schedulable`, `labels` (`gpu-type`), `gpu_info` (by vendor or model: `allocatable`),
`cpu_allocatable`, `used_cpu`, `memory_allocatable`, `used_memory` (GB). A pod: `node_name`, `gpu_resources` (by name of the
resource: how many). What a node does not say is not held against it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional

from gflow._engine import native
from gflow.gpu_parser import GPUResource, GPUResourceParser, amount

logger = logging.getLogger("gpu_resource_manager")

Node = Mapping[str, Any]

_TYPE_LABELS = ("gpu-type", "nvidia.com/gpu.product")
_ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True)
class GPUs:
    """Those of one kind on a node."""

    resource: str
    model: str
    count: int
    memory_gb: Optional[float]


@dataclass(frozen=True)
class Reservation:
    """Memory set aside on so many GPUs of a node."""

    node_name: str
    gpu_count: int
    memory_gb: float


def listed(told: Any, what: str) -> list[Mapping[str, Any]]:
    """What a client answered; what is no list of dictionaries, as of a stand-in that was told nothing, is none."""
    if not isinstance(told, Iterable) or isinstance(told, (str, Mapping)):
        logger.warning("%s: 没有返回列表 (%r)", what, told)
        return []
    return [one for one in told if isinstance(one, Mapping)]


def is_open(node: Node) -> bool:
    return bool(node.get("ready", True)) and bool(node.get("schedulable", True))


def selects(selector: Optional[Mapping[str, str]], node: Node) -> bool:
    labels = node.get("labels") or {}
    if not isinstance(labels, Mapping):
        return True  # a node that makes no sense, which is said where it is added
    return all(labels.get(name) == value for name, value in (selector or {}).items())


def _number(record: Mapping[str, Any], name: str) -> float:
    return amount(record.get(name) or 0, name)


def _kinds(node: Node) -> Iterable[tuple[str, float]]:
    """How many can be given out, by vendor or model."""
    for kind, told in (node.get("gpu_info") or {}).items():
        yield str(kind), _number(told, "allocatable")


def _phase_of(pod: Mapping[str, Any]) -> Any:
    """As `phase` or `status`, also as Kubernetes has it: a `phase` within `status`."""
    said = pod.get("phase") or pod.get("status")
    return said.get("phase") if isinstance(said, Mapping) else said


class Pods:
    """What pods hold on the nodes they are on."""

    def __init__(self, pods: Iterable[Mapping[str, Any]]) -> None:
        self._by_node: dict[Any, list[Mapping[str, Any]]] = {}
        for pod in pods:
            if _phase_of(pod) in _ENDED:
                continue
            try:
                self._by_node.setdefault(pod.get("node_name"), []).append(pod.get("gpu_resources") or {})
            except TypeError as error:  # a name that is none
                logger.warning("忽略Pod %s: node_name: %s", pod.get("name"), error)

    def on(self, node: Node) -> list[tuple[str, float]]:
        """By the name of the resource."""
        held = self._by_node.get(node["name"], ())
        return [(str(resource), _number(resources, resource)) for resources in held for resource in resources]

    def available(self, node: Node) -> float:
        """GPUs of the node that can be given out, less what pods there hold."""
        left = sum(count for _, count in _kinds(node)) - sum(count for _, count in self.on(node))
        return float(max(left, 0))


class Catalogue:
    """Names of models and resources, by the parser of the program if it has them."""

    def __init__(self, parser: Any) -> None:
        self._parser = parser if isinstance(parser, GPUResourceParser) else GPUResourceParser()

    def memory_of(self, model: str) -> Optional[float]:
        found = self._parser.memory_of(model) if model else None
        return None if found is None else amount(found, f"memory of {model}")

    def resource_of(self, kind: str) -> str:
        """What pods ask for to get a GPU of this vendor, or of this model."""
        mapping = self._parser.gpu_resource_mapping
        if kind.lower() in mapping:
            return mapping[kind.lower()]
        return kind if "/" in kind else self._parser.resource_of_model(kind)

    def gpus(self, node: Node) -> list[GPUs]:
        labels = node.get("labels") or {}
        label = next((str(labels[name]) for name in _TYPE_LABELS if labels.get(name)), "")
        found = []
        for kind, count in _kinds(node):
            is_vendor = "/" in kind or kind.lower() in self._parser.gpu_resource_mapping
            model = label if is_vendor else kind
            found.append(GPUs(self.resource_of(kind), model, int(count), self.memory_of(model)))
        return found


class Cluster:
    """Nodes and what is in use of them. A node that says what makes no sense is left out, with a warning."""

    def __init__(self, catalogue: Catalogue, nodes: Iterable[Node], pods: Pods,
                 reservations: Sequence[Reservation] = ()) -> None:
        self._native = native().Cluster()
        self._catalogue = catalogue
        self.nodes: list[Node] = []
        self.gpus: list[list[GPUs]] = []
        for node in nodes:
            try:
                self._add(node, pods)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                logger.warning("忽略节点 %s: %s", node.get("name"), error)
        for one in reservations:
            self.reserve(one)

    def _add(self, node: Node, pods: Pods) -> None:
        gpus = self._catalogue.gpus(node)
        used = pods.on(node)
        index = self._native.add(
            str(node["name"]), [(one.resource, one.model, one.count, one.memory_gb) for one in gpus],
            (_number(node, "cpu_allocatable"), _number(node, "used_cpu")),
            (_number(node, "memory_allocatable"), _number(node, "used_memory")))
        here = {one.resource for one in gpus}
        for resource, count in used:
            self._native.use(index, resource if resource in here else "", count)
        self.nodes.append(node)
        self.gpus.append(gpus)

    def index_of(self, name: str) -> Optional[int]:
        return next((index for index, node in enumerate(self.nodes) if node["name"] == name), None)

    def reserve(self, reservation: Reservation) -> bool:
        index = self.index_of(reservation.node_name)
        return index is not None and self._native.reserve(index, reservation.gpu_count, reservation.memory_gb)

    def idle(self, index: int, model: str, memory_gb: float) -> int:
        return self._native.idle(index, model, memory_gb)

    def rank(self, need: GPUResource, memory_gb: float, policy: str) -> list[tuple[Node, float]]:
        """The nodes that have it, each of its GPUs with so much memory, and their scores: the best first."""
        models = need.gpu_type.split("|") if need.gpu_type else []
        each = need.gpu_num / need.devices if need.devices else 1.0
        found = self._native.rank(need.devices, each, memory_gb, need.resource_name, models, policy)
        return [(self.nodes[index], score) for index, score in found]
