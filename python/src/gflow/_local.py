# SPDX-License-Identifier: Apache-2.0
"""GPUs of this machine where no gflowd runs, as nvidia-smi tells of them. Nobody else knows what is taken here."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional

from gflow._engine import native
from gflow._terms import framework_terms, rendezvous
from gflow.errors import NoGpus, NotFound

if TYPE_CHECKING:
    from gflow.manager import Held, TrainingGPUConfig

_FIELDS = ("index", "uuid", "name", "memory.total", "memory.used", "utilization.gpu", "temperature.gpu", "power.draw")
_IDLE_MIB = 512  # what a desktop has on a GPU that nobody computes on


@dataclass(frozen=True)
class _Gpu:
    index: int
    uuid: str
    name: str
    total_mib: Optional[float]
    used_mib: Optional[float]
    utilization: Optional[float]
    temperature: Optional[float]
    power: Optional[float]

    @property
    def memory_gb(self) -> Optional[float]:
        return None if self.total_mib is None else float(round(self.total_mib / 1024))


def _number(text: str) -> Optional[float]:
    try:
        return float(text)
    except ValueError:  # "[N/A]"
        return None


def read_gpus() -> list[_Gpu]:
    """None where there is no driver, or it does not answer."""
    command = ["nvidia-smi", f"--query-gpu={','.join(_FIELDS)}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    rows = ([word.strip() for word in line.split(",")] for line in done.stdout.splitlines())
    return [_Gpu(int(row[0]), row[1], row[2], *(_number(word) for word in row[3:8])) for row in rows if len(row) == 8]


class _Visible:
    """Those that CUDA_VISIBLE_DEVICES left to this program when it asked for its first: a container, or who started it, has the others."""

    def __init__(self) -> None:
        said = os.environ.get("CUDA_VISIBLE_DEVICES")
        self._names = None if said is None else [name.strip() for name in said.split(",")]

    def has(self, gpu: _Gpu) -> bool:
        """By its number, its UUID, or the beginning of it."""
        return self._names is None or any(
            name == str(gpu.index) or (name.startswith("GPU-") and gpu.uuid.startswith(name)) for name in self._names)


class _LocalHeld:
    def __init__(self, source: LocalSource, gpus: Sequence[_Gpu]) -> None:
        self.node = socket.gethostname()
        self.count = len(gpus)
        self.allocation_id: Optional[int] = None
        self.lost: Optional[str] = None  # nobody takes them back
        self.on_lost: Optional[Callable[[str], object]] = None
        self.indices = [one.index for one in gpus]
        self.environment = {
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
            "CUDA_VISIBLE_DEVICES": ",".join(str(one) for one in self.indices),
        }
        self._source = source
        self._memory = gpus[0].memory_gb

    def release(self) -> None:
        self._source.give_back(self.indices)

    def setup(self, framework: str, config: TrainingGPUConfig) -> dict[str, Any]:
        meeting = rendezvous(self.count) if config.distributed_training else {}
        return {**framework_terms(framework, config, self.count, self._memory), "environment": {**self.environment, **meeting}}


class LocalSource:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken: set[int] = set()
        self._visible = _Visible()

    @property
    def is_idle(self) -> bool:
        """Whether this process holds none of them."""
        with self._lock:
            return not self._taken

    def is_ready(self) -> bool:
        return bool(self._read())

    def _read(self) -> list[_Gpu]:
        return [one for one in read_gpus() if self._visible.has(one)]

    def validation(self, need: Mapping[str, Any]) -> tuple[bool, str]:
        fitting = self._fitting(self._read(), need)
        if need["compute_ratio"] < 1:
            return False, "a part of a GPU needs gflowd"
        if len(fitting) >= need["gpu_count"]:
            return True, ""
        return False, f"{len(fitting)} such GPUs on this machine, not {need['gpu_count']}"

    def allocate(self, need: Mapping[str, Any]) -> Held:
        gpus = self._read()
        valid, why = self.validation(need)
        with self._lock:
            free = [one for one in self._fitting(gpus, need) if self._is_free(one)]
            if not valid or len(free) < need["gpu_count"]:
                raise NoGpus(why or f"{len(free)} such GPUs free on this machine, not {need['gpu_count']}")
            chosen = free[: need["gpu_count"]]
            self._taken |= {one.index for one in chosen}
        return _LocalHeld(self, chosen)

    def give_back(self, indices: Sequence[int]) -> None:
        with self._lock:
            self._taken -= set(indices)

    def clean_up(self, node: str, count: Optional[int]) -> None:
        problem = {"status": 404, "detail": f"this process has no allocation on node '{node}'", "code": "not_found"}
        raise NotFound(problem, "cleanup_gpu_resources")

    def monitoring(self) -> dict[str, Any]:
        gpus = self._read()
        shown = [{"index": one.index, "uuid": one.uuid, "gpu_type": one.name, "available": self._is_free(one),
                  "gpu_utilization": None if one.utilization is None else one.utilization / 100,
                  "gpu_memory_usage": _part(one), "memory_total_gb": one.memory_gb,
                  "memory_used_gb": None if one.used_mib is None else one.used_mib / 1024,
                  "temperature_celsius": one.temperature, "power_watts": one.power} for one in gpus]
        utilization = {"gpu_utilization": _mean([one["gpu_utilization"] for one in shown]),
                       "gpu_memory_usage": _mean([one["gpu_memory_usage"] for one in shown])}
        return {"utilization": utilization, "nodes": [{"node_name": socket.gethostname(), "gpus": shown}]}

    def nodes(self, gpu_type: str, min_memory_gb: float) -> Sequence[Mapping[str, Any]]:
        wanted = self._fitting(self._read(), {"gpu_type": gpu_type, "memory_gb": min_memory_gb})
        free = [one for one in wanted if self._is_free(one)]
        return [{"node_name": socket.gethostname(), "gpu_type": name,
                 "available_gpus": sum(one.name == name for one in free),
                 "memory_per_gpu": next(one.memory_gb for one in free if one.name == name),
                 "utilization": _mean([None if one.utilization is None else one.utilization / 100
                                       for one in free if one.name == name])}
                for name in dict.fromkeys(one.name for one in free)]

    def _is_free(self, gpu: _Gpu) -> bool:
        return gpu.index not in self._taken and (gpu.used_mib or 0) < _IDLE_MIB

    def _fitting(self, gpus: Sequence[_Gpu], need: Mapping[str, Any]) -> list[_Gpu]:
        """Errors: NativeModuleMissing where a model is named, as the daemon's catalogue says which device is one."""
        kind = need["gpu_type"].strip()
        any_kind = kind.lower() in ("", "any", "nvidia")
        return [one for one in gpus if any_kind or native().answers(kind, one.name)
                if not need["memory_gb"] or (one.memory_gb or 0) >= need["memory_gb"]]


def _part(gpu: _Gpu) -> Optional[float]:
    return gpu.used_mib / gpu.total_mib if gpu.used_mib is not None and gpu.total_mib else None


def _mean(values: Sequence[Any]) -> Optional[float]:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
