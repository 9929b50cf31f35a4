# SPDX-License-Identifier: Apache-2.0
"""The path by which the documents import gflow.gpu_parser."""

from __future__ import annotations

from gflow.gpu_parser import GPUResource, GPUResourceParser, GPUResourceWarning

__all__ = ["GPUResource", "GPUResourceParser", "GPUResourceWarning"]
