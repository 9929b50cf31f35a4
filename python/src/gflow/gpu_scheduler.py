# SPDX-License-Identifier: Apache-2.0
"""Which node a pod goes to: the daemon's placement, over a cluster that a program's client describes."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Optional

from gflow._cluster import Catalogue, Cluster, Pods, is_open, listed, logger, selects
from gflow.errors import NoGpus, OptionError
from gflow.gpu_memory_guard import GPUMemoryGuard, Requirement, requirement_of
from gflow.gpu_parser import GPUResource, GPUResourceParser, amount, plain
from gflow.submission import is_number

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gflow._cluster import Node

__all__ = ["GPUScheduler", "SchedulingPolicy", "SchedulingRequest"]


class SchedulingPolicy(Enum):
    """What makes a node a good one."""

    SPREAD = "spread"
    """The emptiest."""
    PACK = "pack"
    """The fullest."""
    BALANCED = "balanced"
    """Where GPUs, memory and CPUs run out together."""


@dataclass
class SchedulingRequest:
    """A pod, and what it needs."""

    pod_name: str
    namespace: str
    gpu_requirement: str
    """docs/requests.md"""
    memory_requirement: Requirement = 0.0
    """GB of GPU memory, of all its GPUs together."""
    priority: int = 0
    """Higher first."""
    node_selector: Optional[dict[str, str]] = None
    """Labels a node must have."""


class _Pass(threading.local):
    """Over the pending requests, by this thread: what the client said when it was first asked, and what was chosen since."""

    def __init__(self) -> None:
        self.end()

    def begin(self) -> None:
        self.is_on = True

    def end(self) -> None:
        self.is_on = False
        self.chosen: list[Mapping[str, Any]] = []  # as pods
        self._said: dict[str, list[Mapping[str, Any]]] = {}

    def once(self, what: str, ask: Callable[[], list[Mapping[str, Any]]]) -> list[Mapping[str, Any]]:
        if not self.is_on:
            return ask()
        if what not in self._said:
            self._said[what] = ask()
        return self._said[what]


class GPUScheduler:
    """Chooses nodes, and puts pods there where it is asked to; else it holds nothing. It may be used by several threads.

    >>> class Cluster:
    ...     def get_nodes(self):
    ...         return [{"name": f"n{free}", "labels": {"gpu-type": "V100"}, "gpu_info": {"nvidia": {"allocatable": free}}} for free in (2, 4)]
    ...     def get_pods(self):
    ...         return []
    >>> parser = gflow.GPUResourceParser()
    >>> scheduler = gflow.GPUScheduler(Cluster(), parser, gflow.GPUMemoryGuard(Cluster(), parser))
    >>> scheduler.scheduling_policy = gflow.SchedulingPolicy.PACK
    >>> scheduler.schedule_pod(gflow.SchedulingRequest("train-1", "default", "2(V100)", 32.0))
    'n2'

    k8s_client: has `get_nodes()` and `get_pods()` (docs/python.md says which dictionaries), as gflow.kubernetes.KubernetesClient; with
        `bind_pod(namespace, name, node)`, which answers the node the pod is on, pods can be bound.
    gpu_parser: a GPUResourceParser, or what has its calls.
    memory_guard: a GPUMemoryGuard, or what has its calls."""

    def __init__(self, k8s_client: Any, gpu_parser: Any, memory_guard: Any) -> None:
        self.k8s_client = k8s_client
        self.gpu_parser = gpu_parser
        self.memory_guard = memory_guard
        self.scheduling_policy = SchedulingPolicy.BALANCED
        self.pending_requests: list[SchedulingRequest] = []
        """Those with the highest priority first, then in the order they came."""
        self._catalogue = Catalogue(gpu_parser)
        self._lock = threading.RLock()
        self._passing = threading.RLock()  # one pass at a time, during which requests may be added
        self._pass = _Pass()

    @property
    def scheduling_policy(self) -> SchedulingPolicy:
        """Or its value, as "pack". Errors, where it is set: OptionError of what is none."""
        return self._policy

    @scheduling_policy.setter
    def scheduling_policy(self, policy: SchedulingPolicy) -> None:
        try:
            self._policy = SchedulingPolicy(policy)
        except ValueError:
            raise OptionError(f"scheduling_policy={policy!r} is none of {', '.join(one.value for one in SchedulingPolicy)}") from None

    def schedule_pod(self, request: SchedulingRequest, *, bind: bool = False) -> Optional[str]:
        """The node it should go to; None, and why in the log, if there is none now. Nothing is held there.

        bind: the pod, which is there and waits (its `schedulerName` is not one that runs), is put on that node, or on the next best where somebody
            else took the GPUs meanwhile. Where somebody else put it on a node, that is the answer."""
        try:
            info = self._read(request.gpu_requirement)
            if not self.memory_guard.validate_memory_requirement(request.gpu_requirement, request.memory_requirement):
                logger.warning("Pod %s: GPU显存需求不满足", request.pod_name)
                return None
            found = self._find_suitable_nodes(request, info)
        except Exception as error:
            logger.error("Pod %s: 调度失败: %s", request.pod_name, error)
            return None
        if not found:
            logger.warning("Pod %s: 未找到满足需求的节点", request.pod_name)
            return None
        names = [str(one["node"]["name"]) for one in found]
        node = self._bind(request, names) if bind else names[0]
        if node:
            logger.info("Pod %s: 选择节点 %s", request.pod_name, node)
        return node

    def _bind(self, request: SchedulingRequest, nodes: list[str]) -> Optional[str]:
        """To the first that still has what it needs; where it is then."""
        for node in nodes:
            try:
                return str(self.k8s_client.bind_pod(request.namespace, request.pod_name, node))
            except NoGpus as error:
                logger.warning("Pod %s: %s", request.pod_name, error)
            except Exception as error:
                logger.error("Pod %s: 绑定失败: %s", request.pod_name, error)
                return None
        return None

    def add_scheduling_request(self, request: SchedulingRequest) -> None:
        """Queues it. Errors: OptionError of a priority that is no number."""
        if not is_number(request.priority) or math.isnan(request.priority):
            raise OptionError(f"priority={request.priority!r} of pod {request.pod_name} is not a number")
        with self._lock:
            self.pending_requests.append(request)
            self.pending_requests.sort(key=lambda one: -one.priority)

    def process_pending_requests(self, *, bind: bool = False) -> list[tuple[SchedulingRequest, str]]:
        """Finds a node for each that waits, the most urgent first, and takes those that got one out of the queue: they and
        their nodes. The cluster is listed once. In one pass none gets what another got; the pods are to be there before the next one, as they are with `bind`, which
        is schedule_pod's."""
        placed: list[tuple[SchedulingRequest, str]] = []
        with self._passing:
            with self._lock:
                waiting = list(self.pending_requests)
            self._pass.begin()
            try:
                for request in waiting:
                    node = self.schedule_pod(request, bind=True) if bind else self.schedule_pod(request)
                    if node:
                        placed.append((request, node))
                        self._choose(request, node)
            finally:
                self._pass.end()
                done = {id(request) for request, _ in placed}
                with self._lock:
                    self.pending_requests[:] = [one for one in self.pending_requests if id(one) not in done]
        return placed

    def _read(self, text: str) -> Any:
        """As strictly as the parser can: a mistake is not a pod without GPUs."""
        if isinstance(self.gpu_parser, GPUResourceParser):
            return self.gpu_parser.parse(text)
        return self.gpu_parser.parse_gpu_resource(text)

    def _choose(self, request: SchedulingRequest, node: str) -> None:
        try:
            info = plain(self._read(request.gpu_requirement))
        except Exception as error:  # a subclass, or a stand-in, chose without reading it
            logger.warning("Pod %s: 不知道占用多少GPU: %s", request.pod_name, error)
            return
        self._pass.chosen.append({"node_name": node, "gpu_resources": {info.resource_name: max(info.gpu_num, 0)}})

    def _nodes(self) -> list[Node]:
        return self._pass.once("nodes", lambda: listed(self.k8s_client.get_nodes(), "get_nodes()"))

    def _pods(self) -> Pods:
        return Pods([*self._pass.once("pods", lambda: listed(self.k8s_client.get_pods(), "get_pods()")), *self._pass.chosen])

    def _find_suitable_nodes(self, request: SchedulingRequest, gpu_info: Any) -> list[dict[str, Any]]:
        """`node`, `score`, `available_gpus` of each that has what is needed, the best first."""
        nodes = [node for node in self._nodes()
                 if is_open(node) and selects(request.node_selector, node)]
        pods = self._pods()
        reserved = self.memory_guard.reservations if isinstance(self.memory_guard, GPUMemoryGuard) else ()
        cluster = Cluster(self._catalogue, nodes, pods, reserved)
        found = self._rank(cluster, plain(gpu_info), requirement_of(request.memory_requirement).min_memory_gb)
        return [{"node": node, "score": score, "available_gpus": pods.available(node)} for node, score in found]

    def _rank(self, cluster: Cluster, need: GPUResource, memory_gb: float) -> list[tuple[Node, float]]:
        amount(max(need.gpu_num, 0), "gpu_num")
        amount(need.devices, "devices")
        each = max(memory_gb / need.devices if need.devices else 0.0, amount(need.memory_gb or 0, "memory_gb"))
        return cluster.rank(need, each, self.scheduling_policy.value)

    def _get_available_gpus(self, node: Node) -> float:
        """Those that can be given out, less what pods there hold."""
        return self._pods().available(node)

    def _calculate_node_score(self, node: Node, gpu_info: Any) -> float:
        """0 to 100, by the policy: 0.4 GPU + 0.3 memory + 0.2 CPU utilisation + 0.1 fragmentation as they would be with the
        pod there. 0 where it does not fit, whatever the models."""
        need = plain(gpu_info)
        anywhere = GPUResource(need.gpu_num, None, "", compute_ratio=need.compute_ratio)
        found = self._rank(Cluster(self._catalogue, [node], self._pods()), anywhere, 0.0)
        return found[0][1] if found else 0.0
