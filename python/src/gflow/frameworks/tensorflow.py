# SPDX-License-Identifier: Apache-2.0
"""TensorFlow on the GPUs of an allocation: memory limit or growth, a strategy over its devices, mixed precision."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Optional, Union

from gflow.frameworks._imports import required
from gflow.frameworks._integration import GPUIntegration, logger, say_once
from gflow.frameworks._models import ModelConfig, model_config

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import keras  # pyright: ignore[reportMissingImports]
    from gflow.manager import GPUResourceManager, TrainingGPUConfig


def configure(told: Mapping[str, Any]) -> dict[str, Any]:
    """The devices there really are; on each its memory limit, or growth. Both are for before TensorFlow has started its devices."""
    tf = required("tensorflow")
    wanted = [one for one in told["devices"] if "GPU" in one]
    seen = tf.config.list_physical_devices("GPU")[:len(wanted)] if wanted else []
    if wanted and not seen:
        say_once("TensorFlow看不到分配的GPU (%s)，使用CPU训练", ", ".join(wanted))
    if not seen:
        cpu = {"devices": ["/CPU:0"], "mixed_precision_policy": "float32", "strategy": "OneDeviceStrategy"} if wanted else {}
        return {**told, **cpu, "memory_limit_mb": None, "memory_growth": False, "gpu_available": False}
    try:
        _limit(tf, seen, told["memory_limit_mb"])
    except (RuntimeError, ValueError) as error:
        logger.warning("TensorFlow已经启动，显存设置未改变: %s", error)
    devices = wanted[:len(seen)]
    return {**told, "devices": devices, "gpu_available": True,
            "strategy": "MirroredStrategy" if len(devices) > 1 else "OneDeviceStrategy"}


def _limit(tf: Any, gpus: Sequence[Any], megabytes: Optional[int]) -> None:
    for gpu in gpus:
        if megabytes is None:
            tf.config.experimental.set_memory_growth(gpu, True)
        else:
            limit = tf.config.LogicalDeviceConfiguration(memory_limit=megabytes)
            tf.config.set_logical_device_configuration(gpu, [limit])


def strategy_of(told: Mapping[str, Any]) -> Any:
    """Copies on all devices, or one on the one there is."""
    tf = required("tensorflow")
    if told["strategy"] == "MirroredStrategy":
        return tf.distribute.MirroredStrategy(told["devices"])
    return tf.distribute.OneDeviceStrategy(told["devices"][0])


@contextlib.contextmanager
def _policy(name: str) -> Iterator[None]:
    """What is made within computes so: also the model itself, by which its loss is scaled where 16 bits are too few for it."""
    keras = required("keras")
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(name)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)


def build(config: ModelConfig, policy: str = "float32") -> keras.Model:
    """With channels last. What comes out is of 32 bits, whatever is computed with."""
    keras = required("keras")
    layers = keras.layers
    with _policy(policy):
        made: list[Any] = [layers.Input(config.input_shape)]
        if config.type == "cnn":
            convolution = (layers.Conv1D, layers.Conv2D)[config.dimensions - 1]
            pooling = (layers.MaxPooling1D, layers.MaxPooling2D)[config.dimensions - 1]
            for width, is_pooled in zip(config.filters, config.pooled(config.input_shape[:-1])):
                made.append(convolution(width, config.kernel_size, padding="same", activation=config.activation))
                made += [pooling(2)] if is_pooled else []
            made.append((layers.GlobalAveragePooling1D, layers.GlobalAveragePooling2D)[config.dimensions - 1]())
        for units in config.hidden_units:
            made.append(layers.Dense(units, activation=config.activation))
            made += [layers.Dropout(config.dropout)] if config.dropout else []
        return keras.Sequential([*made, layers.Dense(config.output_dim, dtype="float32")])


class TensorFlowGPUIntegration(GPUIntegration):
    """Models of TensorFlow on the newest allocation of this process that has as many GPUs, on those of the job it runs in, or on new ones,
    which go with cleanup() or with the process; on the CPU where there is none, which is said once.

    Errors: ConfigurationError where TensorFlow is not installed; LeaseLost."""

    title = "TensorFlow"
    terms = "tensorflow"

    def __init__(self, manager: Optional[GPUResourceManager] = None) -> None:
        super().__init__(manager)
        self.strategy: Any = None
        """The tf.distribute.Strategy of what was set up: compile models within its scope()."""

    def configure(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """Tells the framework; what is in force."""
        told = configure(told)
        self.strategy = strategy_of(told)
        return told

    def setup_tensorflow_gpu(self, config: TrainingGPUConfig) -> dict[str, Any]:
        """What is in force: `devices`, `memory_limit_mb` or `memory_growth` (set on each), `mixed_precision_policy`, `strategy`,
        `gpu_available`, `node_name`, and the `environment`, which is set."""
        return self._setup(config)

    def create_tensorflow_model_with_gpu(self, model: Union[Mapping[str, Any], ModelConfig],
                                         config: TrainingGPUConfig) -> keras.Model:
        """A keras.Sequential on its devices, to be compiled. Errors: ValueError of a model that is none."""
        wanted = model_config(model)
        told = self._as_set_up(config)
        with self.strategy.scope():
            return build(wanted, told["mixed_precision_policy"])


def get_tensorflow_gpu_integration(manager: Optional[GPUResourceManager] = None) -> TensorFlowGPUIntegration:
    """TensorFlow on the GPUs of this manager, or of that of this process."""
    return TensorFlowGPUIntegration(manager)
