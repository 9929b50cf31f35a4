# SPDX-License-Identifier: Apache-2.0
"""The algorithm that trains a model of gflow.frameworks on data as it comes: numbers to be found, or classes."""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional

from gflow.frameworks._imports import required
from gflow.frameworks._models import ModelConfig, model_config

if TYPE_CHECKING:
    from gflow.train._run import TrainingRun

FRAMEWORKS = ("pytorch", "tensorflow", "jax")
_DEFAULT_HIDDEN = (128, 64)
_PAIRS = (("x", "y"), ("features", "labels"), ("features", "targets"), ("inputs", "labels"), ("inputs", "targets"))


@dataclass
class Samples:
    """`x` as 32-bit floats, channels last; `y` as such, or as indices of `classes`."""

    x: Any
    y: Any
    classes: Optional[list[Any]] = None

    @property
    def outputs(self) -> int:
        return len(self.classes) if self.classes is not None else int(self.y.shape[1])


@dataclass
class TrainedModel:
    """What a model has learned: `weights` in the order its framework has them."""

    framework: str
    config: ModelConfig
    weights: list[Any]
    losses: list[float]
    """Of each epoch."""
    devices: list[str]
    classes: Optional[list[Any]] = None
    """What the outputs stand for, where they are classes."""

    def build(self) -> Any:
        """The model itself, on the CPU: a torch.nn.Module, a keras.Model or a JaxModel."""
        return importlib.import_module(f"gflow.train._{self.framework}").rebuilt(self)


def samples_of(data: Any, algorithm: str) -> Samples:
    """Of `(x, y)`, a dictionary of them, or x alone, which is then to be given back. Errors: ValueError."""
    np = required("numpy")
    x, y = _pair_of(data)
    x = np.asarray(x, dtype="float32")
    if x.ndim == 0 or len(x) == 0:
        raise ValueError("the data have no samples")
    if y is None:
        return Samples(x, x.reshape(len(x), -1))
    y = np.asarray(y)
    if len(y) != len(x):
        raise ValueError(f"the data have {len(x)} samples and {len(y)} labels")
    if algorithm == "classification" or (algorithm != "regression" and y.dtype.kind in "iubUSO"):
        names, places = np.unique(y.reshape(-1) if y.ndim > 1 and y.shape[1:] == (1,) else y, return_inverse=True)
        if len(places) != len(x):
            raise ValueError(f"labels have the shape {list(y.shape)}: one for each sample")
        return Samples(x, places.astype("int64"), names.tolist())
    return Samples(x, y.astype("float32").reshape(len(y), -1))


def _pair_of(data: Any) -> tuple[Any, Any]:
    if isinstance(data, Mapping):
        for x, y in _PAIRS:
            if x in data:
                return data[x], next((data[one] for first, one in _PAIRS if first == x and one in data), data.get(y))
        raise ValueError(f"the data have {', '.join(map(str, data))}: x and y are wanted")
    if isinstance(data, tuple) and len(data) == 2:
        return data[0], data[1]
    if data is None:
        raise ValueError("there are no data")
    return data, None


def model_for(given: Optional[Mapping[str, Any]], samples: Samples, framework: str) -> ModelConfig:
    """What was asked for, with the sizes of the data; without a wish an mlp."""
    wished = {"type": "mlp", **(given or {})}
    if given is None:
        wished["hidden_units"] = _DEFAULT_HIDDEN
    shape = tuple(int(one) for one in samples.x.shape[1:]) or (1,)
    if wished["type"] == "cnn":
        shape = shape if len(shape) > 1 else (*shape, 1)
        wished.setdefault("input_shape", (shape[-1], *shape[:-1]) if framework == "pytorch" else shape)
    else:
        wished.setdefault("input_dim", math.prod(shape))
    wished.setdefault("output_dim", samples.outputs)
    return model_config(wished)


def inputs_for(x: Any, config: ModelConfig, framework: str) -> Any:
    """The samples as the model takes them."""
    np = required("numpy")
    if config.type == "mlp":
        return x.reshape(len(x), -1)
    if x.ndim == 2:
        x = x[..., None]
    return np.ascontiguousarray(np.moveaxis(x, -1, 1)) if framework == "pytorch" else x


def batches_of(count: int, run: TrainingRun, epoch: int) -> list[list[Any]]:
    """Which samples each step of this process takes, in how many parts: all processes as many, in an order of the epoch."""
    np = required("numpy")
    order = np.random.default_rng((run.seed, epoch)).permutation(count)
    found = []
    for start in range(0, count, run.batch_size):
        batch = order[start:start + run.batch_size]
        batch = np.resize(batch, math.ceil(len(batch) / run.world_size) * run.world_size)[run.rank::run.world_size]
        size = max(math.ceil(run.part_size / run.world_size), 1)
        found.append([batch[part:part + size] for part in range(0, len(batch), size)])
    return found


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def fit(run: TrainingRun) -> TrainedModel:
    """What AlgorithmTrainingEngine runs where no other function was registered."""
    samples = samples_of(run.data, run.algorithm)
    config = model_for(run.params.get("model"), samples, run.framework)
    trained = importlib.import_module(f"gflow.train._{run.framework}").fit(run, config, samples)
    assert isinstance(trained, TrainedModel)
    return trained
