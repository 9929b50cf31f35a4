# SPDX-License-Identifier: Apache-2.0
"""PyTorch, TensorFlow and JAX on the GPUs that gflow gives (docs/python.md). Each is imported when it is used."""

from __future__ import annotations

from gflow.frameworks._models import ModelConfig
from gflow.frameworks.jax import JaxGPUIntegration, get_jax_gpu_integration
from gflow.frameworks.pytorch import PyTorchGPUIntegration, get_pytorch_gpu_integration
from gflow.frameworks.tensorflow import TensorFlowGPUIntegration, get_tensorflow_gpu_integration

__all__ = [
    "JaxGPUIntegration", "ModelConfig", "PyTorchGPUIntegration", "TensorFlowGPUIntegration", "get_jax_gpu_integration",
    "get_pytorch_gpu_integration", "get_tensorflow_gpu_integration",
]
