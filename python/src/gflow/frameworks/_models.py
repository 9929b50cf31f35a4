# SPDX-License-Identifier: Apache-2.0
"""What a model is, for every framework: `{"type": "mlp", "input_dim": 10, "hidden_units": [128, 64], "output_dim": 1}`."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional, Union

ACTIVATIONS = ("relu", "gelu", "tanh", "sigmoid")
TYPES = ("mlp", "cnn")
_KEYS = ("type", "input_dim", "input_shape", "hidden_units", "output_dim", "filters", "kernel_size", "activation", "dropout")
_BYTES_PER_PARAMETER = 4


@dataclass(frozen=True)
class ModelConfig:
    """An mlp takes `input_dim` numbers; a cnn takes `input_shape`, a signal or a picture with its channels where the framework
    has them: first in PyTorch, last in TensorFlow and JAX. Each of `filters` is a convolution and a pooling by two; then their
    mean over all places, the `hidden_units`, and the output."""

    type: str
    input_shape: tuple[int, ...]
    output_dim: int = 1
    hidden_units: tuple[int, ...] = ()
    filters: tuple[int, ...] = (16, 32)
    kernel_size: int = 3
    activation: str = "relu"
    dropout: float = 0.0

    @property
    def dimensions(self) -> int:
        """Of a convolution: 1 for signals, 2 for pictures."""
        return len(self.input_shape) - 1

    def pooled(self, lengths: Sequence[int]) -> list[bool]:
        """After which convolution there is something left to be halved."""
        shortest, found = min(lengths), []
        for _ in self.filters:
            found.append(shortest >= 2)
            shortest = max(shortest // 2, 1)
        return found

    def parameters(self, channels: int) -> int:
        """How many numbers it has to learn."""
        widths = [self.input_shape[0]] if self.type == "mlp" else [self.filters[-1]]
        widths += [*self.hidden_units, self.output_dim]
        dense = sum((before + 1) * after for before, after in zip(widths, widths[1:]))
        if self.type == "mlp":
            return dense
        places = math.prod([self.kernel_size] * self.dimensions)
        maps = [channels, *self.filters]
        return dense + sum((before * places + 1) * after for before, after in zip(maps, maps[1:]))

    def memory_gb(self, channels: int = 1) -> float:
        """Of its parameters, in 32 bits."""
        return self.parameters(channels) * _BYTES_PER_PARAMETER / (1 << 30)


def model_config(given: Union[Mapping[str, Any], ModelConfig]) -> ModelConfig:
    """Errors: ValueError, which names what is wrong."""
    if isinstance(given, ModelConfig):
        return given
    for key in given:
        if key not in _KEYS:
            near = difflib.get_close_matches(str(key), _KEYS, 1)
            raise ValueError(f"a model has no '{key}'" + (f"; '{near[0]}'?" if near else f": {', '.join(_KEYS)}"))
    kind = given.get("type", "mlp")
    if kind not in TYPES:
        raise ValueError(f"there is no model type '{kind}': {', '.join(TYPES)}")
    activation = given.get("activation", "relu")
    if activation not in ACTIVATIONS:
        raise ValueError(f"there is no activation '{activation}': {', '.join(ACTIVATIONS)}")
    dropout = float(given.get("dropout", 0.0))
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout {dropout} is not from 0 to below 1")
    filters = _sizes("filters", given.get("filters", (16, 32)))
    if not filters:
        raise ValueError("filters: a cnn has at least one")
    return ModelConfig(kind, _input_shape(kind, given), _size("output_dim", given.get("output_dim", 1)),
                       _sizes("hidden_units", given.get("hidden_units", ())), filters,
                       _size("kernel_size", given.get("kernel_size", 3)), activation, dropout)


def _input_shape(kind: str, given: Mapping[str, Any]) -> tuple[int, ...]:
    shape: Optional[Any] = given.get("input_shape")
    if kind == "mlp":
        if "input_dim" in given:
            return (_size("input_dim", given["input_dim"]),)
        if shape is None:
            raise ValueError("an mlp needs its input_dim")
        return (math.prod(_sizes("input_shape", shape)),)
    if shape is None:
        raise ValueError("a cnn needs its input_shape: a length or a height and a width, with the channels")
    sizes = _sizes("input_shape", shape)
    if len(sizes) not in (2, 3):
        raise ValueError(f"input_shape {list(sizes)} of a cnn has {len(sizes)} sizes: 2 for signals, 3 for pictures, channels counted")
    return sizes


def _size(name: str, value: Any) -> int:
    if isinstance(value, bool) or int(value) != value or value < 1:
        raise ValueError(f"{name}: {value!r} is not a whole number from 1 on")
    return int(value)


def _sizes(name: str, values: Any) -> tuple[int, ...]:
    return tuple(_size(name, value) for value in values)
