# SPDX-License-Identifier: Apache-2.0
"""The path by which the documents import gflow.gpu_scheduler."""

from __future__ import annotations

from gflow.gpu_scheduler import GPUScheduler, SchedulingPolicy, SchedulingRequest

__all__ = ["GPUScheduler", "SchedulingPolicy", "SchedulingRequest"]
