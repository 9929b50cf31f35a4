# SPDX-License-Identifier: Apache-2.0
"""JAX on the GPUs of an allocation: its part of their memory, models on all of them, batches split among them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Optional, Union

from gflow.frameworks._imports import required
from gflow.frameworks._integration import GPUIntegration, say_once
from gflow.frameworks._models import ModelConfig, model_config

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gflow.manager import GPUResourceManager, TrainingGPUConfig


def configure(told: Mapping[str, Any]) -> dict[str, Any]:
    """The devices there really are. What JAX may take of their memory is said in the environment, which it reads when it starts them."""
    wanted = 0 if told["devices"] == ["cpu"] else len(told["devices"])
    limits = {"XLA_PYTHON_CLIENT_MEM_FRACTION": f"{told['memory_fraction']:.4f}", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    if wanted:
        os.environ.update(limits)
    jax = required("jax")
    devices = [one for one in jax.devices() if one.platform != "cpu"][:wanted]
    if wanted and not devices:
        say_once("JAX看不到分配的GPU (%s)，使用CPU训练", ", ".join(told["devices"]))
    kept = {name: told[name] for name in ("node_name", "environment") if name in told}
    if not devices:
        names = [f"cpu:{one.id}" for one in jax.devices("cpu")] if told["distributed"] else ["cpu:0"]
        return {**kept, "devices": names, "memory_fraction": None, "dtype": "float32", "gpu_available": False}
    return {**kept, "devices": [f"{one.platform}:{one.id}" for one in devices], "memory_fraction": told["memory_fraction"],
            "dtype": "bfloat16" if told["amp"] else "float32", "gpu_available": True,
            "environment": {**told.get("environment", {}), **limits}}


def devices_of(told: Mapping[str, Any]) -> list[Any]:
    jax = required("jax")
    platform = told["devices"][0].partition(":")[0]
    by_name = {f"{one.platform}:{one.id}": one for one in jax.devices(platform)}
    return [by_name[name] for name in told["devices"]]


class JaxModel:
    """`model(x)` computes with `model.params`; `model.apply(params, x)` is the function of them, to be differentiated."""

    def __init__(self, config: ModelConfig, told: Mapping[str, Any], seed: int = 0) -> None:
        jax = required("jax")
        self.config = config
        self._dtype = told["dtype"]
        mesh = jax.sharding.Mesh(devices_of(told), ("data",))
        spec = jax.sharding.PartitionSpec
        self._everywhere = jax.sharding.NamedSharding(mesh, spec())
        self._split = jax.sharding.NamedSharding(mesh, spec("data"))
        self._count = len(told["devices"])
        self.params: list[Any] = jax.device_put(_parameters(config, seed), self._everywhere)
        self._compiled = jax.jit(self.apply)

    def __call__(self, x: Any) -> Any:
        return self._compiled(self.params, self.batch(x))

    def batch(self, x: Any) -> Any:
        """On the devices: split among them where it can be split evenly, else whole on each."""
        is_even = len(x) % self._count == 0
        return required("jax").device_put(x, self._split if is_even else self._everywhere)

    def apply(self, params: Sequence[Mapping[str, Any]], x: Any) -> Any:
        jax = required("jax")
        config, dtype = self.config, self._dtype
        activation = {"relu": jax.nn.relu, "gelu": jax.nn.gelu, "tanh": jax.numpy.tanh, "sigmoid": jax.nn.sigmoid}[config.activation]
        params = jax.tree.map(lambda one: one.astype(dtype), params)
        x = jax.numpy.asarray(x).astype(dtype)
        if config.type == "mlp":
            x, dense = x.reshape(len(x), -1), params
        else:
            split = len(config.filters)
            dense = params[split:]
            for layer, is_pooled in zip(params[:split], config.pooled(config.input_shape[:-1])):
                x = activation(_convolution(x, layer["w"]) + layer["b"])
                x = _pooled(x) if is_pooled else x
            x = x.mean(axis=tuple(range(1, x.ndim - 1)))
        for layer in dense[:-1]:
            x = activation(x @ layer["w"] + layer["b"])
        return (x @ dense[-1]["w"] + dense[-1]["b"]).astype("float32")


def _convolution(x: Any, weights: Any) -> Any:
    numbers = ("NWC", "WIO", "NWC") if x.ndim == 3 else ("NHWC", "HWIO", "NHWC")
    return required("jax").lax.conv_general_dilated(x, weights, (1,) * (x.ndim - 2), "SAME", dimension_numbers=numbers)


def _pooled(x: Any) -> Any:
    jax = required("jax")
    window = (1, *(2 for _ in range(x.ndim - 2)), 1)
    return jax.lax.reduce_window(x, -jax.numpy.inf, jax.lax.max, window, window, "VALID")


def _parameters(config: ModelConfig, seed: int) -> list[dict[str, Any]]:
    """As He et al. begin: normal, with a variance of two by the number of inputs."""
    jax = required("jax")
    shapes: list[tuple[int, ...]] = []
    width = config.input_shape[0]
    if config.type == "cnn":
        channels = config.input_shape[-1]
        for width in config.filters:
            shapes.append((*(config.kernel_size for _ in range(config.dimensions)), channels, width))
            channels = width
    for units in (*config.hidden_units, config.output_dim):
        shapes.append((width, units))
        width = units
    keys = jax.random.split(jax.random.key(seed), len(shapes))
    made = []
    for key, shape in zip(keys, shapes):
        inputs = 1
        for size in shape[:-1]:
            inputs *= size
        made.append({"w": jax.random.normal(key, shape) * (2 / inputs) ** 0.5, "b": jax.numpy.zeros(shape[-1])})
    return made


class JaxGPUIntegration(GPUIntegration):
    """Models of JAX on the newest allocation of this process that has as many GPUs, on those of the job it runs in, or on new ones,
    which go with cleanup() or with the process; on the CPU where there is none, which is said once.

    Errors: ConfigurationError where JAX is not installed; LeaseLost."""

    title = "JAX"

    def configure(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """Tells the framework; what is in force."""
        return configure(told)

    def setup_jax_gpu(self, config: TrainingGPUConfig) -> dict[str, Any]:
        """What is in force: `devices`, `memory_fraction` and growth (set in the environment: before the first computation), `dtype`,
        `gpu_available`, `node_name`, and the `environment`, which is set."""
        return self._setup(config)

    def create_jax_model_with_gpu(self, model: Union[Mapping[str, Any], ModelConfig], config: TrainingGPUConfig) -> JaxModel:
        """On its devices. Errors: ValueError of a model that is none."""
        wanted = model_config(model)
        return JaxModel(wanted, self._as_set_up(config))


def get_jax_gpu_integration(manager: Optional[GPUResourceManager] = None) -> JaxGPUIntegration:
    """JAX on the GPUs of this manager, or of that of this process."""
    return JaxGPUIntegration(manager)
