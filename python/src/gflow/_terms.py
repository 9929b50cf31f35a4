# SPDX-License-Identifier: Apache-2.0
"""What a framework is to be told of GPUs that no gflowd tells of: the documents of /api/v1/gpu/setup-pytorch and setup-tensorflow."""

from __future__ import annotations

import math
import socket
from typing import TYPE_CHECKING, Any, Optional

if TYPE_CHECKING:
    from gflow.manager import TrainingGPUConfig

_DIGITS = 10_000
_MB_PER_GB = 1024


def framework_terms(framework: str, config: TrainingGPUConfig, count: int, memory_gb: Optional[float] = None,
                    part: float = 1.0) -> dict[str, Any]:
    """For so many GPUs, 0 being the CPU; each has `memory_gb` for this program, which are that part of the device."""
    if framework == "tensorflow":
        return _tensorflow(config, count, memory_gb)
    return _pytorch(config, count, part)


def _pytorch(config: TrainingGPUConfig, count: int, part: float) -> dict[str, Any]:
    distributed = config.distributed_training
    return {
        "devices": [f"cuda:{place}" for place in range(count)] or ["cpu"],
        "memory_fraction": math.floor(config.gpu_memory_fraction * part * _DIGITS + 1e-9) / _DIGITS,
        "amp": config.mixed_precision and count > 0,
        "distributed": distributed,
        "backend": "nccl" if count else "gloo",
        "init_method": "env://" if distributed else None,
        "world_size": max(count, 1) if distributed else 1,
    }


def _tensorflow(config: TrainingGPUConfig, count: int, memory_gb: Optional[float]) -> dict[str, Any]:
    limit = math.floor(memory_gb * _MB_PER_GB * config.gpu_memory_fraction) if memory_gb and count else None
    return {
        "devices": [f"/GPU:{place}" for place in range(count)] or ["/CPU:0"],
        "memory_limit_mb": limit,
        "memory_growth": limit is None,
        "mixed_precision_policy": "mixed_float16" if config.mixed_precision and count else "float32",
        "strategy": "MirroredStrategy" if count > 1 else "OneDeviceStrategy",
    }


def rendezvous(count: int) -> dict[str, str]:
    """Where the processes of a distributed training meet: a port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    return {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(max(count, 1))}
