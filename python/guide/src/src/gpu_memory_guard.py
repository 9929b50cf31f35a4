# SPDX-License-Identifier: Apache-2.0
"""The path by which the documents import gflow.gpu_memory_guard."""

from __future__ import annotations

from gflow.gpu_memory_guard import GPUMemoryGuard, GPUMemoryRequirement

__all__ = ["GPUMemoryGuard", "GPUMemoryRequirement"]
