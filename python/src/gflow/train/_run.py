# SPDX-License-Identifier: Apache-2.0
"""What a training is to the function that does it, in a process of its own."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Optional

_OUT_OF_MEMORY_TYPES = ("OutOfMemoryError", "ResourceExhaustedError")
_OUT_OF_MEMORY_WORDS = ("RESOURCE_EXHAUSTED", "DefaultCPUAllocator", "CUDA out of memory", "out of memory")


@dataclass
class TrainingRun:
    """One try, with what it may use."""

    name: str
    algorithm: str
    data: Any
    params: Mapping[str, Any] = field(default_factory=dict)
    framework: str = "pytorch"
    told: Mapping[str, Any] = field(default_factory=dict)
    """The devices and what else the framework is told, as by the set-up of its integration."""
    epochs: int = 10
    batch_size: int = 32
    accumulation_steps: int = 1
    """In so many parts a batch is computed, as there is no memory for it at once."""
    learning_rate: float = 1e-3
    seed: int = 0
    rank: int = 0
    """Of `world_size` processes that do this together; what the first returns counts."""
    world_size: int = 1
    progress: Optional[int] = None
    """The file descriptor of who listens."""

    @property
    def part_size(self) -> int:
        """How much of a batch is computed at once."""
        return max(self.batch_size // self.accumulation_steps, 1)

    def report(self, epoch: int, **values: float) -> None:
        """Logged by who waits for the training: `第1轮 loss=0.1`. Numbers may be NumPy's, or tensors of one."""
        if self.progress is not None and self.rank == 0:
            numbers = {name: float(value) for name, value in values.items()}
            os.write(self.progress, json.dumps([int(epoch), numbers]).encode() + b"\n")

    def on(self, rank: int, progress: Optional[int]) -> TrainingRun:
        """The same, for one of its processes."""
        return dataclasses.replace(self, rank=rank, progress=progress)


Algorithm = Callable[[TrainingRun], Any]


def is_out_of_memory(error: Optional[BaseException]) -> bool:
    """Of a GPU or of the machine, whatever framework says it."""
    while error is not None:
        words = str(error)
        if isinstance(error, MemoryError) or type(error).__name__ in _OUT_OF_MEMORY_TYPES:
            return True
        if isinstance(error, RuntimeError) and any(one in words for one in _OUT_OF_MEMORY_WORDS):
            return True
        error = error.__cause__ or error.__context__
    return False
