# SPDX-License-Identifier: Apache-2.0
"""PyTorch on the GPUs of an allocation: memory fractions, models on their devices, mixed precision, accumulation, DDP."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any, Optional, Union

from gflow.frameworks._imports import required
from gflow.frameworks._integration import GPUIntegration, say_once
from gflow.frameworks._models import ModelConfig, model_config

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import torch  # pyright: ignore[reportMissingImports]
    from gflow.manager import GPUResourceManager, TrainingGPUConfig


def is_one_of_several() -> bool:
    """Whether torchrun, or who does as it does, has started this process as one of several."""
    return "RANK" in os.environ and int(os.environ.get("WORLD_SIZE", "1")) > 1


def configure(told: Mapping[str, Any]) -> dict[str, Any]:
    """The devices there really are, and on each the part of its memory that may be used."""
    torch = required("torch")
    kind = told["devices"][0].partition(":")[0]
    wanted = 0 if kind == "cpu" else len(told["devices"])
    backend = getattr(torch, kind, None) if wanted else None
    seen = backend.device_count() if backend is not None and backend.is_available() else 0
    if wanted and not seen:
        say_once("PyTorch看不到分配的GPU (%s)，使用CPU训练", ", ".join(told["devices"]))
    if not seen:
        return {**told, "devices": ["cpu"], "amp": False, "backend": "gloo", "memory_fraction": None, "gpu_available": False}
    assert backend is not None
    devices = list(told["devices"][:seen])
    if hasattr(backend, "set_per_process_memory_fraction"):
        for place in range(len(devices)):
            backend.set_per_process_memory_fraction(told["memory_fraction"], place)
    return {**told, "devices": devices, "gpu_available": True}


def device_of(told: Mapping[str, Any]) -> str:
    """Of this process: by LOCAL_RANK where it is one of several."""
    place = int(os.environ.get("LOCAL_RANK", "0")) if is_one_of_several() else 0
    return str(told["devices"][place % len(told["devices"])])


def build(config: ModelConfig) -> torch.nn.Module:
    """On the CPU, with channels first."""
    torch = required("torch")
    nn = torch.nn
    activation = {"relu": nn.ReLU, "gelu": nn.GELU, "tanh": nn.Tanh, "sigmoid": nn.Sigmoid}[config.activation]
    layers: list[Any] = []
    if config.type == "mlp":
        layers.append(nn.Flatten())
        width = config.input_shape[0]
    else:
        convolution = (nn.Conv1d, nn.Conv2d)[config.dimensions - 1]
        pooling = (nn.MaxPool1d, nn.MaxPool2d)[config.dimensions - 1]
        channels = config.input_shape[0]
        for width, is_pooled in zip(config.filters, config.pooled(config.input_shape[1:])):
            layers += [convolution(channels, width, config.kernel_size, padding="same"), activation()]
            layers += [pooling(2)] if is_pooled else []
            channels = width
        layers += [(nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d)[config.dimensions - 1](1), nn.Flatten()]
        width = config.filters[-1]
    for units in config.hidden_units:
        layers += [nn.Linear(width, units), activation()]
        layers += [nn.Dropout(config.dropout)] if config.dropout else []
        width = units
    return nn.Sequential(*layers, nn.Linear(width, config.output_dim))


def join(told: Mapping[str, Any]) -> None:
    """The processes of this training meet, once."""
    distributed = required("torch.distributed")
    if not distributed.is_initialized():
        distributed.init_process_group(told["backend"], init_method="env://")


def placed(module: torch.nn.Module, told: Mapping[str, Any]) -> torch.nn.Module:
    """On its device; in several processes DistributedDataParallel, in one with several GPUs DataParallel."""
    torch = required("torch")
    device = device_of(told)
    module = module.to(device)
    if not told["distributed"]:
        return module
    ids = [torch.device(device).index] if told["gpu_available"] else None
    if is_one_of_several():
        if ids is not None:
            getattr(torch, device.partition(":")[0]).set_device(ids[0])
        join(told)
        return torch.nn.parallel.DistributedDataParallel(module, device_ids=ids)
    if len(told["devices"]) > 1:
        return torch.nn.DataParallel(module, device_ids=list(range(len(told["devices"]))))
    if told["world_size"] > 1:
        say_once("只有一个进程：用torchrun（或gbatch --launch ddp）启动才能分布式训练")
    return module


class TrainingSteps:
    """Steps of an optimizer, each over one batch or, where there is no memory for it at once, over several: their gradients are
    accumulated. Mixed precision where it is on, in the 16-bit form the device has; `amp` overrules what was set up, and is
    bfloat16 on the CPU."""

    def __init__(self, model: torch.nn.Module, optimizer: torch.optim.Optimizer, told: Mapping[str, Any], *,
                 amp: Optional[bool] = None) -> None:
        torch = required("torch")
        self._torch = torch
        self._model = model
        self._optimizer = optimizer
        self._kind = device_of(told).partition(":")[0]
        self._amp = bool(told["amp"] if amp is None else amp)
        is_half = self._kind == "cuda" and not torch.cuda.is_bf16_supported()
        self._type = torch.float16 if is_half else torch.bfloat16
        self._scaler = torch.amp.GradScaler(self._kind, enabled=self._amp and is_half)

    def __call__(self, loss_of: Callable[..., torch.Tensor], batches: Sequence[Sequence[Any]]) -> float:
        """One step over all of the batches, each given to `loss_of(model, *batch)`. Their mean loss."""
        self._optimizer.zero_grad(set_to_none=True)
        total = 0.0
        for place, batch in enumerate(batches):
            with self._exchange(is_last=place == len(batches) - 1):
                with self._torch.autocast(self._kind, dtype=self._type, enabled=self._amp):
                    loss = loss_of(self._model, *batch) / len(batches)
                self._scaler.scale(loss).backward()
            total += float(loss.detach())
        self._scaler.step(self._optimizer)
        self._scaler.update()
        return total

    def _exchange(self, *, is_last: bool) -> contextlib.AbstractContextManager[None]:
        """Processes tell each other their gradients once a step."""
        alone = getattr(self._model, "no_sync", None)
        return alone() if alone is not None and not is_last else contextlib.nullcontext()


class PyTorchGPUIntegration(GPUIntegration):
    """Models of PyTorch on the newest allocation of this process that has as many GPUs, on those of the job it runs in, or on new ones,
    which go with cleanup() or with the process; on the CPU where there is none, which is said once.

    Errors: ConfigurationError where PyTorch is not installed; LeaseLost."""

    title = "PyTorch"

    def configure(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """Tells the framework; what is in force."""
        return configure(told)

    def setup_pytorch_gpu(self, config: TrainingGPUConfig) -> dict[str, Any]:
        """What is in force: `devices`, `memory_fraction` (set on each), `amp`, `distributed`, `backend`, `world_size`, `gpu_available`,
        `node_name`, and the `environment`, which is set."""
        return self._setup(config)

    def create_pytorch_model_with_gpu(self, model: Union[Mapping[str, Any], ModelConfig],
                                      config: TrainingGPUConfig) -> torch.nn.Module:
        """On its devices. Errors: ValueError of a model that is none."""
        wanted = model_config(model)
        return placed(build(wanted), self._as_set_up(config))

    def training_steps(self, model: torch.nn.Module, optimizer: torch.optim.Optimizer, config: TrainingGPUConfig, *,
                       amp: Optional[bool] = None) -> TrainingSteps:
        """For a loop of one's own: mixed precision and gradient accumulation."""
        return TrainingSteps(model, optimizer, self._as_set_up(config), amp=amp)


def get_pytorch_gpu_integration(manager: Optional[GPUResourceManager] = None) -> PyTorchGPUIntegration:
    """PyTorch on the GPUs of this manager, or of that of this process."""
    return PyTorchGPUIntegration(manager)
