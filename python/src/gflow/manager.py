# SPDX-License-Identifier: Apache-2.0
"""The GPU resource manager of the guide (docs/python.md): GPUs for a training program, by gflowd or, where none runs, of
this machine as its driver shows them."""

from __future__ import annotations

import logging
import math
import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional, Protocol, Union
from urllib.parse import quote

from gflow._calls import API, Calls, query_of
from gflow.client import Client
from gflow.devices import EnvironmentChange
from gflow.errors import GflowError, Infeasible, LeaseLost, NoGpus, NotFound, Unavailable, Unreachable
from gflow.leases import Lease, LeaseTerms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gflow import documents

__all__ = ["MEMORY_STRATEGIES", "GPUNode", "GPUResourceManager", "TrainingGPUConfig", "get_gpu_resource_manager"]

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
    memory_gb: Optional[float] = None
    compute_ratio: float = 1.0
    distributed_training: bool = False
    mixed_precision: bool = True
    gpu_memory_fraction: float = 0.9

    def need(self) -> dict[str, Any]:
        """As the API has it."""
        return {
            "gpu_count": self.gpu_count,
            "gpu_type": self.gpu_type or "",
            "memory_gb": self.memory_gb or 0,
            "compute_ratio": self.compute_ratio,
            "distributed_training": self.distributed_training,
            "mixed_precision": self.mixed_precision,
            "gpu_memory_fraction": self.gpu_memory_fraction,
        }


@dataclass(frozen=True)
class GPUNode:
    """GPUs of one model on a node. What is not measured is NaN, never 0."""

    node_name: str
    gpu_type: str
    available_gpus: int
    memory_per_gpu: float
    utilization: float


class Held(Protocol):
    """GPUs of this process."""

    node: str
    count: int

    def release(self) -> None: ...
    def distributed(self, config: TrainingGPUConfig) -> dict[str, Any]: ...


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

    def __init__(self, client: Client, lease: Lease, count: int) -> None:
        self._client = client
        self._lease = lease
        self._devices = lease.acquire()
        self._rendezvous: Optional[EnvironmentChange] = None
        self.node = self._devices.node
        self.count = count

    def release(self) -> None:
        if self._rendezvous is not None:
            self._rendezvous.undo()
        self._lease.release()

    def distributed(self, config: TrainingGPUConfig) -> dict[str, Any]:
        need = {**config.need(), "allocation_id": self._devices.allocation_id, "distributed_training": True}
        told: documents.GpuAllocation = self._client.call("POST", f"{API}/gpu/setup-pytorch", need)
        granted = told["gpu_config"]
        if granted is None:
            raise LeaseLost(self._devices.allocation_id or 0, told["error_message"] or "")
        if self._rendezvous is not None:
            self._rendezvous.undo()
        added = {name: value for name, value in granted["environment"].items() if os.environ.get(name) != value}
        self._rendezvous = EnvironmentChange(added)
        return {**told.get("pytorch_config", {}), "environment": granted["environment"]}


class DaemonSource:
    """GPUs of the machines of a gflowd."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def is_ready(self) -> bool:
        try:
            return bool(self._client.call("GET", f"{API}/gpu/health")["initialized"])
        except Unavailable:
            return False

    def validation(self, need: Mapping[str, Any]) -> tuple[bool, str]:
        told = self._client.validate(**need)
        return told["valid"], told["error_message"] or ""

    def allocate(self, need: Mapping[str, Any]) -> Held:
        client = self._client
        terms = LeaseTerms(client.server, need, wait=False, ttl=None)
        lease = Lease(client._driver, client._calls, terms, on_lost=lambda why: logger.error("GPU资源已被收回: %s", why))
        return _DaemonHeld(client, lease, need["gpu_count"])

    def clean_up(self, node: str, count: Optional[int]) -> None:
        self._client.call("DELETE", f"{API}/gpu/cleanup/{quote(node, safe='')}{query_of({'gpu_count': count})}")

    def monitoring(self) -> dict[str, Any]:
        return {**self._client.monitoring()}

    def nodes(self, gpu_type: str, min_memory_gb: float) -> Sequence[Mapping[str, Any]]:
        query = {"gpu_type": gpu_type or None, "min_memory_gb": min_memory_gb or None}
        told: documents.GpuStatus = self._client.call("GET", f"{API}/gpu/nodes{query_of(query)}")
        return told["available_nodes"]


class GPUResourceManager:
    """Allocations are leases of this process: its environment shows the GPUs it has, and no other."""

    def __init__(self, client: Optional[Client] = None) -> None:
        self._client = client
        self._lock = threading.RLock()
        self._source: Optional[Source] = None
        self._held: list[Held] = []

    @property
    def initialized(self) -> bool:
        """Whether there are GPUs that are known: False while gflowd looks for them, or cannot reach them."""
        try:
            return self._gpus().is_ready()
        except GflowError as error:
            logger.warning("GPU资源管理器未初始化: %s", error)
            return False

    def _gpus(self) -> Source:
        """gflowd's where one answers or was named, else those of this machine."""
        with self._lock:
            if self._source is not None:
                return self._source
            client = self._client or Client()
            is_named = self._client is not None or bool(os.environ.get("GFLOW_SERVER"))
            try:
                client._driver.run((client._calls if is_named else Calls(0)).call("GET", f"{API}/daemon"))
            except Unreachable as error:
                if is_named:
                    raise
                from gflow._local import LocalSource

                logger.warning("%s. 使用本机GPU，不排队也不与其他用户协调", error)
                self._source = LocalSource()
            else:
                self._source = DaemonSource(client)
            return self._source

    def validate_gpu_requirements(self, config: TrainingGPUConfig) -> bool:
        """Whether it can be met here, now or later. Why not is logged."""
        valid, why = self._gpus().validation(config.need())
        if not valid:
            logger.warning("GPU需求无法满足: %s", why)
        return valid

    def allocate_gpu_resources(self, config: TrainingGPUConfig) -> Optional[str]:
        """The node; None where there are none free now, or never could be: why is logged."""
        try:
            held = self._gpus().allocate(config.need())
        except (NoGpus, Infeasible) as error:
            logger.warning("GPU资源不足: %s", error.detail if isinstance(error, Infeasible) else error)
            return None
        except GflowError as error:
            logger.error("GPU资源分配失败: %s", error)
            raise
        with self._lock:
            self._held.append(held)
        logger.info("GPU资源分配成功: %s (%s个GPU)", held.node, held.count)
        return held.node

    def cleanup_gpu_resources(self, node_name: Optional[str], gpu_count: Optional[int] = None) -> bool:
        """Gives back the newest allocation of so many GPUs there, or all; first of this process, then of this user.
        False where there is none, as after an allocation that failed."""
        mine = self._take(node_name, gpu_count)
        try:
            for held in mine:
                held.release()
            if not mine and node_name:
                self._gpus().clean_up(node_name, gpu_count)
        except (LeaseLost, NotFound) as error:
            logger.warning("GPU资源清理: %s", error.detail if isinstance(error, NotFound) else error)
            return False
        return bool(node_name)

    def _take(self, node: Optional[str], count: Optional[int]) -> list[Held]:
        with self._lock:
            found = [one for one in self._held if one.node == node and count in (None, one.count)]
            found = found[-1:] if count is not None else found
            self._held = [one for one in self._held if one not in found]
        return found[::-1]

    def get_gpu_monitoring_data(self) -> dict[str, Any]:
        """Of all GPUs. What is not measured of `utilization` is not there, so that `.get(name, 0.0)` is what it says."""
        told = self._gpus().monitoring()
        measured = {name: value for name, value in told["utilization"].items() if value is not None}
        return {**told, "utilization": measured}

    def get_available_gpu_nodes(self, gpu_type: str = "", min_memory_gb: float = 0) -> list[GPUNode]:
        """Those that have such a GPU free."""
        return [GPUNode(one["node_name"], one["gpu_type"], one["available_gpus"], _or_nan(one["memory_per_gpu"]),
                        _or_nan(one["utilization"])) for one in self._gpus().nodes(gpu_type, min_memory_gb)]

    def setup_distributed_training(self, config: TrainingGPUConfig) -> dict[str, Any]:
        """`world_size`, `backend`, `init_method`, `devices` and the `environment`, which is set: MASTER_ADDR, MASTER_PORT (free now),
        WORLD_SIZE. For the newest allocation of this process. Errors: NoGpus without one."""
        with self._lock:
            if not self._held:
                raise NoGpus("there is no allocation: allocate_gpu_resources() comes first")
            held = self._held[-1]
        return held.distributed(config)

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
            wanted = model_memory_gb * _PARAMETER_COPIES * 1.25 / self._memory_of(config)
            config.gpu_memory_fraction = min(max(wanted, _LEAST_FRACTION), MEMORY_STRATEGIES["aggressive"])
        return config.gpu_memory_fraction

    def _memory_of(self, config: TrainingGPUConfig) -> float:
        """Of the smallest GPU that would do."""
        sizes = [one.memory_per_gpu for one in self.get_available_gpu_nodes(config.gpu_type, config.memory_gb or 0)]
        sizes = [one for one in sizes if not math.isnan(one)] or [config.memory_gb or 0]
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
