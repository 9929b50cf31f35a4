# SPDX-License-Identifier: Apache-2.0
"""Whether GPUs have the memory a program needs, and where there are such."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Optional, Union

from gflow._cluster import Catalogue, Cluster, Pods, Reservation, is_open, listed, logger
from gflow._engine import native
from gflow.gpu_parser import amount, memory_in, plain

__all__ = ["GPUMemoryGuard", "GPUMemoryRequirement"]


@dataclass
class GPUMemoryRequirement:
    """GPU memory a program needs, of all its GPUs together."""

    min_memory_gb: float
    """GB."""
    preferred_memory_gb: Optional[float] = None
    """GB; nodes that have it come first."""
    gpu_type: Optional[str] = None
    """A model; None is any."""


Requirement = Union[float, GPUMemoryRequirement]


def requirement_of(said: Requirement) -> GPUMemoryRequirement:
    """One that makes sense."""
    found = said if isinstance(said, GPUMemoryRequirement) else GPUMemoryRequirement(said)
    least = amount(found.min_memory_gb, "min_memory_gb")
    preferred = None if found.preferred_memory_gb is None else amount(found.preferred_memory_gb, "preferred_memory_gb")
    return GPUMemoryRequirement(least, preferred, found.gpu_type)


class GPUMemoryGuard:
    """Memory of the GPUs of a cluster. It may be used by several threads.

    k8s_client: has `get_nodes()` and `get_pods()`; with `label_node(names, labels)` reservations show in the cluster, too.
    gpu_parser: a GPUResourceParser, or what has its calls."""

    def __init__(self, k8s_client: Any, gpu_parser: Any) -> None:
        self.k8s_client = k8s_client
        self.gpu_parser = gpu_parser
        self._catalogue = Catalogue(gpu_parser)
        self._lock = threading.RLock()
        self._reservations: list[Reservation] = []

    @property
    def reservations(self) -> list[Reservation]:
        """What reserve_gpu_memory() set aside."""
        with self._lock:
            return list(self._reservations)

    def validate_memory_requirement(self, gpu_resource: str, memory_requirement: Requirement) -> bool:
        """Whether the GPUs a request asks for have so much memory, all together. True, and a warning, where nothing says
        what they have."""
        need = requirement_of(memory_requirement)
        info = plain(self.gpu_parser.parse_gpu_resource(gpu_resource))
        models = info.gpu_type.split("|") if info.gpu_type else []
        if models and not any(_is_of(need.gpu_type, one) or _is_of(one, need.gpu_type) for one in models):
            logger.warning("GPU型号不符: %s 不是 %s", info.gpu_type, need.gpu_type)
            return False
        model = info.gpu_type or need.gpu_type
        has = memory_in(info, self._catalogue.memory_of(model) if model else None)
        if has is None:
            logger.warning("无法验证GPU资源 %s 的显存需求", gpu_resource)
            return True
        return has >= need.min_memory_gb

    def find_suitable_nodes(self, memory_requirement: Requirement) -> list[dict[str, Any]]:
        """Nodes with GPUs of so much memory that nobody is on: `node_name`, `gpu_type`, `available_gpus`, `memory_per_gpu`,
        `total_available_memory`. Those that have what is preferred first, then those with most. None, and the error in the
        log, where the cluster does not answer."""
        need = requirement_of(memory_requirement)
        try:
            cluster = self._cluster(self.k8s_client.get_nodes())
        except Exception as error:
            logger.error("查找节点失败: %s", error)
            return []
        found = []
        for index, node in enumerate(cluster.nodes):
            for gpus in cluster.gpus[index]:
                if gpus.memory_gb is None or not _is_of(need.gpu_type, gpus.model):
                    continue
                count = cluster.idle(index, gpus.model, need.min_memory_gb)
                if count > 0:
                    found.append({"node_name": node["name"], "gpu_type": gpus.model, "available_gpus": count,
                                  "memory_per_gpu": gpus.memory_gb, "total_available_memory": gpus.memory_gb * count})
        preferred = need.preferred_memory_gb or 0.0
        found.sort(key=lambda one: (one["memory_per_gpu"] < preferred, -one["total_available_memory"]))
        return found

    def reserve_gpu_memory(self, node_name: str, gpu_count: int, memory_gb: float) -> bool:
        """Sets so much memory aside on each of so many GPUs of a node, for what this guard and its scheduler choose
        afterwards. False where they do not have it, or the cluster does not take the label.

        Errors: ValueError of numbers that are none."""
        one = _reservation(node_name, gpu_count, memory_gb)
        with self._lock:
            try:
                told = self.k8s_client.get_nodes()
                is_told = isinstance(told, (list, tuple, Iterator))  # and not a stand-in that was told nothing
                if is_told and not self._cluster(told).reserve(one):
                    logger.warning("预留GPU显存失败: %s 没有 %s 个各有 %sGB 可用显存的GPU", node_name, one.gpu_count, one.memory_gb)
                    return False
                if not self._label(one, 1, [*self._reservations, one]):
                    return False
            except Exception as error:
                logger.error("预留GPU显存失败: %s", error)
                return False
            self._reservations.append(one)
        return True

    def release_gpu_memory(self, node_name: str, gpu_count: int, memory_gb: float) -> bool:
        """Gives back what reserve_gpu_memory() set aside; False if there is no such reservation."""
        one = _reservation(node_name, gpu_count, memory_gb)
        with self._lock:
            if one not in self._reservations:
                return False
            self._reservations.remove(one)
            try:
                self._label(one, -1, self._reservations)
            except Exception as error:
                logger.error("移除显存预留标签失败: %s", error)
        return True

    def _label(self, one: Reservation, sign: int, held: Sequence[Reservation]) -> bool:
        """Says on its node what is held there, if the client can: GPUs by their memory. Of none the label is taken away. Where others may count
        with the same label it is added to what they have."""
        from gflow.kubernetes import KubernetesClient

        if isinstance(self.k8s_client, KubernetesClient):
            self.k8s_client._add_to_label(one.node_name, f"gflow/{_label_name(one)}", sign * one.gpu_count)
            return True
        label = getattr(self.k8s_client, "label_node", None)
        if label is None:
            return True
        name = _label_name(one)
        gpus = sum(other.gpu_count for other in held if (other.node_name, _label_name(other)) == (one.node_name, name))
        return bool(label([one.node_name], {name: str(gpus) if gpus else None}))

    def _cluster(self, told: Any) -> Cluster:
        nodes = [node for node in listed(told, "get_nodes()") if is_open(node)]
        return Cluster(self._catalogue, nodes, Pods(listed(self.k8s_client.get_pods(), "get_pods()")), self.reservations)


def _reservation(node_name: str, gpu_count: Any, memory_gb: Any) -> Reservation:
    """Errors: ValueError."""
    gpus = amount(gpu_count, "gpu_count")
    if not gpus.is_integer():
        raise ValueError(f"gpu_count: {gpu_count!r} is not a number of whole GPUs")
    return Reservation(node_name, int(gpus), amount(memory_gb, "memory_gb"))


def _label_name(one: Reservation) -> str:
    return f"reserved-gpu-memory-{int(one.memory_gb)}gb"


def _is_of(gpu_type: Optional[str], model: Optional[str]) -> bool:
    return not gpu_type or not model or native().answers(gpu_type, model)
