# SPDX-License-Identifier: Apache-2.0
"""The GPU resource manager of the guide (docs/python.md): GPUs for a training program, by gflowd or, where none runs, of
this machine as its driver shows them; or those of a Kubernetes cluster."""

from __future__ import annotations

import logging
import math
import os
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Optional, Protocol, Union
from urllib.parse import quote

from gflow._calls import API, Calls, query_of
from gflow._own import OwnGpus
from gflow.client import Client
from gflow.devices import EnvironmentChange
from gflow.errors import GflowError, Infeasible, LeaseLost, NoGpus, NotFound, OptionError, Unavailable, Unreachable
from gflow.leases import Lease, LeaseTerms
from gflow.submission import is_number, whole_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gflow import documents
    from gflow._local import LocalSource
    from gflow.kubernetes import KubernetesClient

__all__ = [
    "MEMORY_STRATEGIES", "GPUAllocation", "GPUNode", "GPUResourceManager", "TrainingGPUConfig", "get_gpu_resource_manager",
]

logger = logging.getLogger("gpu_resource_manager")

MEMORY_STRATEGIES = {"conservative": 0.8, "aggressive": 0.95}
"""Parts of a GPU's memory. The third one, "dynamic", follows the size of the model."""
_PARAMETER_COPIES = 4  # weights, gradients, and the two moments of Adam
_LEAST_FRACTION = 0.1


@dataclass
class TrainingGPUConfig:
    """What a training needs. It may be changed, as by who tries again with less."""

    gpu_count: int = 1
    gpu_type: str = "any"
    """A model, several ("A100|H100"), or "any"."""
    memory_gb: Optional[float] = None
    """GB, of each GPU."""
    compute_ratio: float = 1.0
    """The part of each GPU, 0 to 1."""
    distributed_training: bool = False
    mixed_precision: bool = True
    gpu_memory_fraction: float = 0.9
    """The part of each GPU's memory a framework may take, 0 to 1."""

    def need(self) -> dict[str, Any]:
        """As the API has it. Errors: OptionError of a number that is none, of no GPUs, or of a type that is no text."""
        count = whole_of(self.gpu_count, "gpu_count")
        if count < 1:
            raise OptionError(f"gpu_count={count}: an allocation has at least 1 GPU")
        return {
            "gpu_count": count,
            "gpu_type": _type_of(self.gpu_type),
            "memory_gb": 0 if self.memory_gb is None else _gb_of(self.memory_gb, "memory_gb"),
            "compute_ratio": _part_of(self.compute_ratio, "compute_ratio"),
            "distributed_training": self.distributed_training,
            "mixed_precision": self.mixed_precision,
            "gpu_memory_fraction": _part_of(self.gpu_memory_fraction, "gpu_memory_fraction"),
        }


def _type_of(value: Optional[str]) -> str:
    """Errors: OptionError."""
    if value is not None and not isinstance(value, str):
        raise OptionError(f"gpu_type={value!r} is not a text: 'A100', 'A100|H100' or 'any'")
    return value or ""


def _gb_of(value: Any, what: str) -> float:
    """Errors: OptionError."""
    if not is_number(value) or not 0 <= value < math.inf:
        raise OptionError(f"{what}={value!r} is not an amount of memory in GB")
    return float(value)


def _part_of(value: Any, what: str) -> float:
    """Errors: OptionError."""
    if not is_number(value) or not 0 < value <= 1:
        raise OptionError(f"{what}={value!r} is not a part of a GPU: above 0 and at most 1")
    return float(value)


@dataclass(frozen=True)
class GPUNode:
    """GPUs of one model on a node. What is not measured is NaN, never 0."""

    node_name: str
    gpu_type: str
    available_gpus: int
    memory_per_gpu: float
    utilization: float


class Held(Protocol):
    """GPUs that were given to this process, and why they are not held any more."""

    node: str
    count: int
    environment: dict[str, str]
    allocation_id: Optional[int]
    on_lost: Optional[Callable[[str], object]]

    @property
    def lost(self) -> Optional[str]: ...
    def release(self) -> None: ...
    def setup(self, framework: str, config: TrainingGPUConfig) -> dict[str, Any]: ...


class GPUAllocation:
    """GPUs as this process has them: seen by itself, unless it has them for others."""

    def __init__(self, held: Held, *, is_seen: bool) -> None:
        self._held = held
        self._is_seen = is_seen
        self._changes = [EnvironmentChange(held.environment)] if is_seen else []
        self.node = held.node
        self.count = held.count
        self.environment = held.environment
        self.allocation_id = held.allocation_id
        """None of GPUs that gflowd does not know of, or that are the job's own."""

    @property
    def lost(self) -> Optional[str]:
        """Why they are not held any more."""
        return self._held.lost

    def on_lost(self, call: Callable[[str], object]) -> None:
        """It is called with the reason, on another thread, when they are taken back; at once if they were."""
        self._held.on_lost = call
        if self._held.lost is not None:
            call(self._held.lost)

    def setup(self, framework: str, config: TrainingGPUConfig) -> dict[str, Any]:
        """What "pytorch" or "tensorflow" is to be told, and the `environment`."""
        told = self._held.setup(framework, config)
        changed = {name: value for name, value in told["environment"].items() if os.environ.get(name) != value}
        if self._is_seen and changed:
            self._changes.append(EnvironmentChange(changed))
        return told

    def release(self) -> None:
        """Errors: LeaseLost where they had been taken back before."""
        self._is_seen = False
        while self._changes:
            self._changes.pop().undo()
        self._held.release()


class Source(Protocol):
    """Who has the GPUs. Errors of all of them: GflowError."""

    def is_ready(self) -> bool: ...
    def validation(self, need: Mapping[str, Any]) -> tuple[bool, str]: ...
    def allocate(self, need: Mapping[str, Any]) -> Held: ...
    def clean_up(self, node: str, count: Optional[int]) -> None: ...
    def monitoring(self) -> dict[str, Any]: ...
    def nodes(self, gpu_type: str, min_memory_gb: float) -> Sequence[Mapping[str, Any]]: ...


class _DaemonHeld:
    """A lease, which gflowd knows of."""

    def __init__(self, client: Client, terms: LeaseTerms, count: int) -> None:
        self.on_lost: Optional[Callable[[str], object]] = None
        self._client = client
        self._lease = Lease(client._driver, client._calls, terms, set_environment=False, on_lost=self._note)
        self._devices = self._lease.acquire()
        self.node = self._devices.node
        self.count = count
        self.environment = self._devices.environment
        self.allocation_id = self._devices.allocation_id

    @property
    def lost(self) -> Optional[str]:
        return self._devices.lost

    def release(self) -> None:
        self._lease.release()

    def _note(self, why: str) -> None:
        logger.error("GPU资源已被收回: %s", why)
        if self.on_lost is not None:
            self.on_lost(why)

    def setup(self, framework: str, config: TrainingGPUConfig) -> dict[str, Any]:
        need = {**config.need(), "allocation_id": self._devices.allocation_id}
        told = self._client._driver.run(self._client._calls.setup(framework, need))
        granted = told["gpu_config"]
        if granted is None:
            raise LeaseLost(self._devices.allocation_id or 0, told["error_message"] or "")
        terms: Any = told.get("pytorch_config") or told.get("tensorflow_config") or {}
        return {**terms, "environment": granted["environment"]}


class DaemonSource:
    """GPUs of the machines of a gflowd."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def is_ready(self) -> bool:
        try:
            return bool(self._client._driver.run(Calls(0).call("GET", f"{API}/gpu/health"))["initialized"])
        except Unavailable:
            return False

    def validation(self, need: Mapping[str, Any]) -> tuple[bool, str]:
        told: documents.GpuValidation = self._client._driver.run(self._client._calls.look(f"{API}/gpu/validate", need))
        return told["valid"], told["error_message"] or ""

    def allocate(self, need: Mapping[str, Any]) -> Held:
        client = self._client
        terms = LeaseTerms(client.server, need, wait=False, ttl=None)
        return _DaemonHeld(client, terms, need["gpu_count"])

    def clean_up(self, node: str, count: Optional[int]) -> None:
        self._client.call("DELETE", f"{API}/gpu/cleanup/{quote(node, safe='', errors='surrogatepass')}{query_of({'gpu_count': count})}")

    def monitoring(self) -> dict[str, Any]:
        return {**self._client.monitoring()}

    def nodes(self, gpu_type: str, min_memory_gb: float) -> Sequence[Mapping[str, Any]]:
        query = {"gpu_type": gpu_type or None, "min_memory_gb": min_memory_gb or None}
        told: documents.GpuStatus = self._client.call("GET", f"{API}/gpu/nodes{query_of(query)}")
        return told["available_nodes"]


class GPUResourceManager:
    """Allocations are leases of this process: its environment shows the GPUs it has, and no other. It may be used by several threads.

    >>> from gflow.manager import TrainingGPUConfig, get_gpu_resource_manager
    >>> manager = get_gpu_resource_manager()
    >>> node = manager.allocate_gpu_resources(TrainingGPUConfig(gpu_count=2))
    >>> manager.get_available_gpu_nodes()
    []
    >>> manager.cleanup_gpu_resources(node, 2)
    True

    client: which gflowd; without one that of gflow.default_client(), or the GPUs of this machine as its driver shows them, where none
        runs, which is said once. It is found when it comes, as soon as this program holds none of these, which it would not know of.
        A KubernetesClient: GPUs of its cluster, which are held for pods: the environment of this process stays as it is. Without a client it is
        one where GFLOW_KUBERNETES names a context of the kubeconfig file, or is "auto", as KubernetesClient() finds it.

    Errors: of all calls, what gflowd says that is about it and not about GPUs: Unreachable, Unauthenticated; OptionError of numbers that are none."""

    def __init__(self, client: Union[Client, KubernetesClient, None] = None) -> None:
        self._client = client
        self._lock = threading.RLock()
        self._source: Optional[Source] = None
        self._local: Optional[LocalSource] = None  # while no gflowd was found
        self._own = OwnGpus()
        self._held: list[GPUAllocation] = []

    @property
    def initialized(self) -> bool:
        """Whether there are GPUs that are known: False while gflowd looks for them, or cannot reach them."""
        try:
            return self._gpus().is_ready()
        except GflowError as error:
            logger.warning("GPU资源管理器未初始化: %s", error)
            return False

    def _gpus(self) -> Source:
        """A cluster's where one was named, gflowd's where one answers or was named, else those of this machine."""
        with self._lock:
            if self._source is None:
                self._source = self._cluster()
            if self._source is not None:
                return self._source
            if self._local is not None and not self._local.is_idle:
                return self._local
            client = self._client if isinstance(self._client, Client) else Client()
            is_named = self._client is not None or bool(os.environ.get("GFLOW_SERVER"))
            try:
                client._driver.run((client._calls if is_named else Calls(0)).call("GET", f"{API}/daemon"))
            except Unreachable as error:
                if is_named:
                    raise
                return self._gpus_here(error)
            if self._local is not None:
                logger.info("gflowd已启动: %s", client.server)
            self._source = DaemonSource(client)
            return self._source

    def _cluster(self) -> Optional[Source]:
        """That of Kubernetes, where it is meant."""
        context = os.environ.get("GFLOW_KUBERNETES", "")
        if isinstance(self._client, Client) or (self._client is None and not context):
            return None
        from gflow._kube_source import KubernetesSource
        from gflow.kubernetes import KubernetesClient

        return KubernetesSource(self._client or KubernetesClient(None if context == "auto" else context))

    def _gpus_here(self, why: Unreachable) -> Source:
        """Those of this machine, which is said once."""
        if self._local is None:
            from gflow._local import LocalSource

            logger.warning("%s. 使用本机GPU，不排队也不与其他用户协调", why)
            self._local = LocalSource()
        return self._local

    def validate_gpu_requirements(self, config: TrainingGPUConfig) -> bool:
        """Whether it can be met here, now or later. Why not is logged."""
        valid, why = self._gpus().validation(config.need())
        if not valid:
            logger.warning("GPU需求无法满足: %s", why)
        return valid

    def allocate_gpu_resources(self, config: TrainingGPUConfig) -> Optional[str]:
        """The node; None where there are none free now, or never could be: why is logged."""
        allocation = self.hold(config)
        return None if allocation is None else allocation.node

    def hold(self, config: TrainingGPUConfig, *, is_seen: bool = True) -> Optional[GPUAllocation]:
        """The same, as an object; `is_seen=False` leaves the environment of this process as it is, for programs that it starts."""
        try:
            need = config.need()
            held = self._own_gpus(need["gpu_count"]) or self._gpus().allocate(need)
        except (NoGpus, Infeasible) as error:
            logger.warning("GPU资源不足: %s", error.detail if isinstance(error, Infeasible) else error)
            return None
        except GflowError as error:
            logger.error("GPU资源分配失败: %s", error)
            raise
        allocation = GPUAllocation(held, is_seen=is_seen)
        with self._lock:
            self._held.append(allocation)
        logger.info("GPU资源分配成功: %s (%s个GPU)", held.node, held.count)
        return allocation

    def _own_gpus(self, count: int) -> Optional[Held]:
        """Those of the job this runs in, unless others were named."""
        return self._own.take(count) if self._client is None or isinstance(self._client, Client) else None

    def newest(self, gpu_count: Optional[int] = None) -> Optional[GPUAllocation]:
        """That this process has and sees, of so many GPUs."""
        with self._lock:
            fitting = [one for one in self._held
                       if one._is_seen and one.lost is None and gpu_count in (None, one.count)]
            return fitting[-1] if fitting else None

    def give_back(self, allocation: GPUAllocation) -> bool:
        """Of two that give it back one does, and the other hears False, as who gives back what was taken away before."""
        with self._lock:
            if allocation not in self._held:
                return False
            self._held.remove(allocation)
        try:
            allocation.release()
        except (LeaseLost, NotFound) as error:
            logger.warning("GPU资源清理: %s", error.detail if isinstance(error, NotFound) else error)
            return False
        except GflowError:
            with self._lock:
                self._held.append(allocation)  # so that it can be tried again
            raise
        return True

    def cleanup_gpu_resources(self, node_name: Optional[str], gpu_count: Optional[int] = None) -> bool:
        """Gives back the newest allocation of so many GPUs there, or all; first of this process, then of this user.
        False where there is none, as after an allocation that failed. Errors: OptionError of a node that is no text."""
        if node_name is not None and not isinstance(node_name, str):
            raise OptionError(f"node_name={node_name!r} is not the name of a node")
        mine = self._of(node_name, None if gpu_count is None else whole_of(gpu_count, "gpu_count"))
        if mine or not node_name:
            return all([self.give_back(one) for one in mine]) and bool(mine)
        try:
            self._gpus().clean_up(node_name, gpu_count)
        except NotFound as error:
            logger.warning("GPU资源清理: %s", error.detail)
            return False
        return True

    def _of(self, node: Optional[str], count: Optional[int]) -> list[GPUAllocation]:
        """The newest first."""
        with self._lock:
            found = [one for one in self._held if one.node == node and count in (None, one.count)]
        return found[::-1] if count is None else found[-1:]

    def get_gpu_monitoring_data(self) -> dict[str, Any]:
        """Of all GPUs. What is not measured of `utilization` is not there, so that `.get(name, 0.0)` is what it says."""
        told = self._gpus().monitoring()
        measured = {name: value for name, value in told["utilization"].items() if value is not None}
        return {**told, "utilization": measured}

    def get_available_gpu_nodes(self, gpu_type: str = "", min_memory_gb: float = 0) -> list[GPUNode]:
        """Those that have such a GPU free."""
        return [GPUNode(one["node_name"], one["gpu_type"], one["available_gpus"], _or_nan(one["memory_per_gpu"]),
                        _or_nan(one["utilization"])) for one in self._gpus().nodes(_type_of(gpu_type), _gb_of(min_memory_gb, "min_memory_gb"))]

    def setup_distributed_training(self, config: TrainingGPUConfig) -> dict[str, Any]:
        """`world_size`, `backend`, `init_method`, `devices` and the `environment`, which is set: MASTER_ADDR, MASTER_PORT (free now),
        WORLD_SIZE. For the newest allocation of this process. Errors: NoGpus without one."""
        allocation = self.newest()
        if allocation is None:
            raise NoGpus("there is no allocation: allocate_gpu_resources() comes first")
        return allocation.setup("pytorch", replace(config, distributed_training=True))

    def set_memory_strategy(self, config: TrainingGPUConfig, strategy: str,
                            model_memory_gb: Optional[float] = None) -> float:
        """gpu_memory_fraction by "conservative" (0.8), "aggressive" (0.95), or "dynamic": as much as a model whose parameters take
        `model_memory_gb` needs for training on each GPU (weights, gradients, optimizer, a quarter more), 0.1 to 0.95."""
        if strategy in MEMORY_STRATEGIES:
            config.gpu_memory_fraction = MEMORY_STRATEGIES[strategy]
        elif strategy != "dynamic":
            raise ValueError(f"there is no memory strategy '{strategy}': conservative, aggressive, dynamic")
        elif not model_memory_gb:
            raise ValueError("the dynamic strategy follows the size of the model: model_memory_gb=")
        else:
            wanted = _gb_of(model_memory_gb, "model_memory_gb") * _PARAMETER_COPIES * 1.25 / self._memory_of(config)
            config.gpu_memory_fraction = min(max(wanted, _LEAST_FRACTION), MEMORY_STRATEGIES["aggressive"])
        return config.gpu_memory_fraction

    def _memory_of(self, config: TrainingGPUConfig) -> float:
        """Of the smallest GPU that would do."""
        need = config.need()
        sizes = [one.memory_per_gpu for one in self.get_available_gpu_nodes(config.gpu_type, need["memory_gb"])]
        sizes = [one for one in sizes if not math.isnan(one)] or [need["memory_gb"]]
        if not min(sizes):
            raise NoGpus("how much memory the GPUs have is not known: memory_gb=")
        return min(sizes)


def _or_nan(value: Union[int, float, None]) -> float:
    return math.nan if value is None else float(value)


_lock = threading.Lock()
_manager: Optional[GPUResourceManager] = None


def get_gpu_resource_manager() -> GPUResourceManager:
    """That of this process."""
    global _manager
    with _lock:
        if _manager is None:
            _manager = GPUResourceManager()
        return _manager
