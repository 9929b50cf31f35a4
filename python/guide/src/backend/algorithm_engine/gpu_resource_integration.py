# SPDX-License-Identifier: Apache-2.0
"""The path by which the guide imports gflow.manager and gflow.frameworks."""

from __future__ import annotations

from gflow.frameworks import get_jax_gpu_integration, get_pytorch_gpu_integration, get_tensorflow_gpu_integration
from gflow.manager import GPUNode, GPUResourceManager, TrainingGPUConfig, get_gpu_resource_manager

__all__ = [
    "GPUNode", "GPUResourceManager", "TrainingGPUConfig", "get_gpu_resource_manager", "get_jax_gpu_integration",
    "get_pytorch_gpu_integration", "get_tensorflow_gpu_integration",
]
