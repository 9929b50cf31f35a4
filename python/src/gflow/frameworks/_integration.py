# SPDX-License-Identifier: Apache-2.0
"""What the integrations of all frameworks have in common: where the GPUs come from, and what is said where there are none."""

from __future__ import annotations

import logging
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Optional

from gflow._terms import framework_terms
from gflow.manager import GPUAllocation, GPUResourceManager, TrainingGPUConfig, get_gpu_resource_manager

if TYPE_CHECKING:
    from collections.abc import Mapping

logger = logging.getLogger("gpu_resource_manager")

_said: set[str] = set()
_lock = threading.Lock()


def say_once(text: str, *values: object) -> None:
    """A warning of this process; who asks again finds it at the level of details."""
    said = text % values
    with _lock:
        is_new = said not in _said
        _said.add(said)
    logger.log(logging.WARNING if is_new else logging.DEBUG, "%s", said)


class GPUIntegration:
    """Trains on the newest allocation of this process that has as many GPUs, on those of the job it runs in, or on new ones, which
    go with cleanup() or with the process; without any on the CPU."""

    title = ""
    terms = "pytorch"  # as gflowd knows the framework, or one that is told the same

    def __init__(self, manager: Optional[GPUResourceManager] = None) -> None:
        self._manager = manager
        self._mine: list[GPUAllocation] = []
        self._set_up: Optional[tuple[TrainingGPUConfig, dict[str, Any]]] = None

    @property
    def manager(self) -> GPUResourceManager:
        return self._manager or get_gpu_resource_manager()

    def cleanup(self) -> None:
        """Gives back what was allocated here; allocations of the manager stay."""
        mine, self._mine = self._mine, []
        self._set_up = None
        for one in mine:
            self.manager.give_back(one)

    def configure(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """Tells the framework; what has become of it."""
        raise NotImplementedError

    def _setup(self, config: TrainingGPUConfig) -> dict[str, Any]:
        told = self.configure(self._told(config))
        self._set_up = replace(config), told
        logger.info("%s GPU环境设置完成: %s", self.title, ", ".join(told["devices"]))
        return told

    def _as_set_up(self, config: TrainingGPUConfig) -> dict[str, Any]:
        """What it was set up with for such a configuration; else it is now."""
        if self._set_up is not None and self._set_up[0] == config:
            return self._set_up[1]
        return self._setup(config)

    def _told(self, config: TrainingGPUConfig) -> dict[str, Any]:
        allocation = self.manager.newest(config.gpu_count)
        if allocation is None:
            allocation = self.manager.hold(config)
            if allocation is not None:
                self._mine.append(allocation)
        if allocation is None:
            say_once("GPU资源不足，使用CPU训练")
            return {**framework_terms(self.terms, config, 0), "environment": {}, "node_name": None}
        return {**allocation.setup(self.terms, config), "node_name": allocation.node}
