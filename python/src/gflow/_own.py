# SPDX-License-Identifier: Apache-2.0
"""The GPUs of the job this program runs in: it asks for no others while these do."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Optional

from gflow._terms import framework_terms, rendezvous

if TYPE_CHECKING:
    from gflow.manager import TrainingGPUConfig


class _OwnHeld:
    def __init__(self, own: OwnGpus, chosen: Sequence[str]) -> None:
        self.node = os.environ.get("GFLOW_NODE") or socket.gethostname()
        self.count = len(chosen)
        self.environment = {"CUDA_VISIBLE_DEVICES": ",".join(chosen)}
        self.allocation_id: Optional[int] = None
        self.lost: Optional[str] = None  # nobody takes them back
        self.on_lost: Optional[Callable[[str], object]] = None
        self.chosen = chosen
        self._own = own

    def release(self) -> None:
        self._own.give_back(self.chosen)

    def setup(self, framework: str, config: TrainingGPUConfig) -> dict[str, Any]:
        memory = os.environ.get("GFLOW_GPU_MEMORY_MIB")
        told = framework_terms(framework, config, self.count, float(memory) / 1024 if memory else None, _share())
        # who was started as one of several processes has met the others there
        meeting = rendezvous(self.count) if config.distributed_training and "RANK" not in os.environ else {}
        return {**told, "environment": {**self.environment, **meeting}}


class OwnGpus:
    """Those that are visible to a job, as long as it has GPUs of its own. Without one: none."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        has_any = int(os.environ.get("GFLOW_GPUS") or 0) > 0 and "GFLOW_JOB_ID" in os.environ
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "") if has_any else ""
        self._free = [one for one in visible.split(",") if one]

    def take(self, count: int) -> Optional[_OwnHeld]:
        """None where it has not so many left."""
        with self._lock:
            if not 0 < count <= len(self._free):
                return None
            chosen, self._free = self._free[:count], self._free[count:]
            return _OwnHeld(self, chosen)

    def give_back(self, chosen: Sequence[str]) -> None:
        with self._lock:
            self._free = [*chosen, *self._free]


def _share() -> float:
    try:
        return float(os.environ.get("GFLOW_GPU_SHARE") or 1)
    except ValueError:
        return 1.0
