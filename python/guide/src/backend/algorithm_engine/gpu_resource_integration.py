# SPDX-License-Identifier: Apache-2.0
"""The path by which the guide imports gflow.manager."""

from __future__ import annotations

from gflow.manager import GPUNode, GPUResourceManager, TrainingGPUConfig, get_gpu_resource_manager

__all__ = ["GPUNode", "GPUResourceManager", "TrainingGPUConfig", "get_gpu_resource_manager"]
