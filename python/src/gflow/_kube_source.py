# SPDX-License-Identifier: Apache-2.0
"""GPUs of a Kubernetes cluster for the resource manager: held by Leases, which a thread renews."""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional

from gflow._cluster import Catalogue, Cluster, Pods, is_open
from gflow._engine import native
from gflow._kube_api import is_known_not_done
from gflow._kube_leases import Allocation
from gflow._terms import framework_terms, rendezvous
from gflow.errors import GflowError, LeaseLost, NoGpus, NotFound, RequestError, Unavailable, Unreachable
from gflow.gpu_parser import GPUResource, GPUResourceParser

if TYPE_CHECKING:
    from gflow._kube_taking import Taking
    from gflow.kubernetes import KubernetesClient
    from gflow.manager import Held, TrainingGPUConfig

logger = logging.getLogger("gpu_resource_manager")

_RENEWALS = 3  # while a lease is held without them
_EXIT_SECONDS = 10.0  # for all allocations that a program has at its end
_POLICY = "pack"  # as the daemon's allocations: nodes that are empty stay so for who needs all of one


class _KubernetesHeld:
    """An allocation that is renewed until it is given back, or could not be renewed in time."""

    def __init__(self, taking: Taking, allocation: Allocation, began: float, memory_gb: Optional[float]) -> None:
        self.node = allocation.node
        self.count = allocation.gpus
        self.allocation_id: Optional[int] = allocation.id
        self.environment: dict[str, str] = {}  # which devices they are, the pods that use them are told
        self.lost: Optional[str] = None
        self.on_lost: Optional[Callable[[str], object]] = None
        self._taking = taking
        self._allocation = allocation
        self._memory_gb = memory_gb
        self._pid = os.getpid()
        self._failure = ""
        self._is_given_back = threading.Event()
        self._is_unsure = False  # whether it was, though nobody answered
        self._telling = threading.Lock()  # the alarm and a renewal may both find that they are lost
        self._asking = threading.Lock()  # so that it is not renewed while it is given back
        self._alarm = self._armed(began)
        self._renewer = threading.Thread(target=self._renew, name=f"gflow allocation {allocation.id}", daemon=True)
        self._renewer.start()
        atexit.register(self._give_back_at_exit)

    def _armed(self, began: float) -> threading.Timer:
        """Goes off when it has not been renewed in time, whatever a request waits for meanwhile."""
        left = max(began + self._allocation.ttl - time.monotonic(), 0)
        alarm = threading.Timer(min(left, threading.TIMEOUT_MAX), self._expire)
        alarm.daemon = True
        alarm.start()
        return alarm

    def _expire(self) -> None:
        self._note(f"it could not be renewed in {self._allocation.ttl} s: {self._failure or 'no answer'}")

    def _renew(self) -> None:
        while not self._is_given_back.wait(self._allocation.ttl / _RENEWALS) and self.lost is None:
            with self._asking:
                is_lost = not self._is_given_back.is_set() and not self._renew_once()
            if is_lost:  # who hears of it may give it back
                self._note("it was not renewed in time, or taken away")

    def _renew_once(self) -> bool:
        """False where it is lost."""
        began = time.monotonic()
        try:
            is_held = self._taking.renew(self._allocation)
        except Exception as error:  # whatever it is, it is tried again while there is time
            self._failure = str(error)
            logger.warning("GPU资源续期失败，将重试: %s", error)
            return True
        if is_held:
            self._alarm.cancel()
            self._alarm = self._armed(began)
        elif self._is_unsure:
            self._is_back()
        return is_held or self._is_unsure

    def _note(self, why: str) -> None:
        with self._telling:
            if self._is_given_back.is_set() or self.lost is not None:
                return
            self.lost = why
        logger.error("GPU资源已被收回: %s", why)
        if self.on_lost is not None:
            self.on_lost(why)

    def _is_back(self) -> None:
        self._is_given_back.set()
        self._alarm.cancel()
        atexit.unregister(self._give_back_at_exit)

    def release(self) -> None:
        """Where it fails it stays held, and is renewed, so that it can be tried again. Errors: LeaseLost, and others of GflowError."""
        if os.getpid() != self._pid:
            raise LeaseLost(self._allocation.id, f"it is that of process {self._pid}, of which this one is a fork")
        with self._asking:
            self._release()
        if threading.current_thread() is not self._renewer:
            self._renewer.join()

    def _release(self) -> None:
        if self._is_given_back.is_set():
            return
        try:
            was_held = self._taking.give_back(self._allocation)
        except GflowError as error:
            self._is_unsure = self._is_unsure or not is_known_not_done(error)
            raise
        self._is_back()
        if self.lost is not None or not (was_held or self._is_unsure):
            raise LeaseLost(self._allocation.id, self.lost or "it was not renewed in time, or taken away")

    def _give_back_at_exit(self) -> None:
        if os.getpid() != self._pid:  # a fork, whose they are not
            return
        left = _left_at_exit()
        if not self._asking.acquire(timeout=left):
            return logger.warning("GPU资源清理: %s", "API服务器没有应答")
        try:
            with self._taking.within(left):
                self._release()
        except GflowError as error:
            logger.warning("GPU资源清理: %s", error)
        finally:
            self._asking.release()

    def setup(self, framework: str, config: TrainingGPUConfig) -> dict[str, Any]:
        meeting = rendezvous(self.count) if config.distributed_training else {}
        return {**framework_terms(framework, config, self.count, self._memory_gb), "environment": meeting}


_exit_ends: Optional[float] = None


def _left_at_exit() -> float:
    """Seconds, for all allocations together: who does not answer one does not answer the next."""
    global _exit_ends
    if _exit_ends is None:
        _exit_ends = time.monotonic() + _EXIT_SECONDS
    return max(_exit_ends - time.monotonic(), 0.0)


@dataclass(frozen=True)
class _Kind:
    """GPUs of one kind on a node."""

    node: str
    resource: str
    model: str
    count: int
    memory_gb: Optional[float]
    free: int


@dataclass(frozen=True)
class _Look:
    """At the cluster, once."""

    nodes: Sequence[Mapping[str, Any]]
    pods: Pods
    kinds: Sequence[_Kind]


class KubernetesSource:
    def __init__(self, cluster: KubernetesClient) -> None:
        self._cluster = cluster
        self._taking = cluster._taking
        self._parser = GPUResourceParser()
        self._catalogue = Catalogue(self._parser)

    def is_ready(self) -> bool:
        try:
            return any(one.count for one in self._look().kinds)
        except (Unreachable, Unavailable):
            return False

    def _look(self) -> _Look:
        """Nodes that take pods, and what is held there."""
        told, held = self._cluster._look()
        nodes, pods = [node for node in told if is_open(node)], Pods(held)
        return _Look(nodes, pods, [kind for node in nodes for kind in self._kinds_on(node, pods)])

    def _kinds_on(self, node: Mapping[str, Any], pods: Pods) -> Iterator[_Kind]:
        used = pods.on(node)
        for one in self._catalogue.gpus(node):
            held = sum(count for resource, count in used if resource == one.resource)
            yield _Kind(str(node["name"]), one.resource, one.model, one.count, one.memory_gb, max(int(one.count - held), 0))

    def _wanted(self, look: _Look, need: Mapping[str, Any]) -> GPUResource:
        """By the names that nodes have for their GPUs, whichever resource they are. Errors: RequestError of a model that there is none of."""
        kind, count = need["gpu_type"].strip(), need.get("gpu_count", 1)
        if kind.lower() in ("", "any"):
            return GPUResource(count, None, "")
        if any(one.resource == kind for one in look.kinds):
            return GPUResource(count, None, kind)
        try:
            wanted = self._parser.parse(f"{count}({kind})")
        except RequestError:
            if not any(one.model and native().answers(kind, one.model) for one in look.kinds):
                raise
            return GPUResource(count, kind, "")
        return GPUResource(count, wanted.gpu_type, "") if wanted.gpu_type else wanted

    def _fitting(self, look: _Look, need: Mapping[str, Any]) -> list[_Kind]:
        wanted = self._wanted(look, need)
        return [one for one in look.kinds
                if wanted.resource_name in ("", one.resource) and (not wanted.gpu_type or native().answers(wanted.gpu_type, one.model))
                if not need["memory_gb"] or (one.memory_gb or 0) >= need["memory_gb"]]

    def validation(self, need: Mapping[str, Any]) -> tuple[bool, str]:
        return self._valid(self._fitting(self._look(), need), need)

    def _valid(self, fitting: Sequence[_Kind], need: Mapping[str, Any]) -> tuple[bool, str]:
        if need["compute_ratio"] < 1:
            return False, "a part of a GPU needs gflowd: Kubernetes gives out whole ones"
        most = max((one.count for one in fitting), default=0)
        if most >= need["gpu_count"]:
            return True, ""
        return False, f"no node of the cluster has {need['gpu_count']} such GPUs: at most {most}"

    def allocate(self, need: Mapping[str, Any]) -> Held:
        look = self._look()
        fitting = self._fitting(look, need)
        valid, why = self._valid(fitting, need)
        if not valid:
            raise NoGpus(why)
        why = f"no node of the cluster has {need['gpu_count']} such GPUs free"
        for node in self._best(look, need):
            kind = next((one for one in fitting if one.node == node and one.free >= need["gpu_count"]), None)
            if kind is None:
                continue
            began = time.monotonic()
            try:
                allocation = self._taking.take(node, kind.resource, need["gpu_count"], self._cluster.lease_seconds)
                return _KubernetesHeld(self._taking, allocation, began, kind.memory_gb)
            except NoGpus as error:  # somebody was faster
                why = str(error)
        raise NoGpus(why)

    def _best(self, look: _Look, need: Mapping[str, Any]) -> list[str]:
        """Nodes that have them free, by the daemon's own placement."""
        found = Cluster(self._catalogue, look.nodes, look.pods).rank(self._wanted(look, need), need["memory_gb"], _POLICY)
        return [str(node["name"]) for node, _ in found]

    def clean_up(self, node: str, count: Optional[int]) -> None:
        """Never another program's, which may be this user's, too: one service account is many programs'. KubernetesClient.give_back() does."""
        problem = {"status": 404, "detail": f"this program has no such allocation on node '{node}'", "code": "not_found"}
        raise NotFound(problem, "cleanup_gpu_resources")

    def monitoring(self) -> dict[str, Any]:
        """How many there are and are free. Kubernetes measures nothing of them."""
        by_node: dict[str, list[dict[str, Any]]] = {}
        for one in self._look().kinds:
            by_node.setdefault(one.node, []).append({
                "gpu_type": one.model, "resource": one.resource, "total": one.count, "available": one.free, "memory_total_gb": one.memory_gb})
        utilization = {"gpu_utilization": None, "gpu_memory_usage": None}
        return {"utilization": utilization, "nodes": [{"node_name": name, "gpus": gpus} for name, gpus in by_node.items()]}

    def nodes(self, gpu_type: str, min_memory_gb: float) -> Sequence[Mapping[str, Any]]:
        fitting = self._fitting(self._look(), {"gpu_type": gpu_type, "memory_gb": min_memory_gb})
        return [{"node_name": one.node, "gpu_type": one.model, "available_gpus": one.free, "memory_per_gpu": one.memory_gb, "utilization": None}
                for one in fitting if one.free]
