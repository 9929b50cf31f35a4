# SPDX-License-Identifier: Apache-2.0
"""The native module, imported when it is first needed: the client never needs it."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Optional, Protocol, Union, cast

from gflow.errors import NativeModuleMissing

if TYPE_CHECKING:
    from collections.abc import Callable

    from gflow import _native

    class Native(Protocol):
        """What is used of it."""

        Cluster: type[_native.Cluster]
        Resources: type[_native.Resources]
        read_request: Callable[[str, _native.Resources], Union[_Read, _native.Mistake]]
        memory_of_model: Callable[[str], Optional[float]]
        memory_of_models: Callable[[], dict[str, float]]
        answers: Callable[[str, str], bool]

    _Read = tuple[Union[int, float], Optional[str], str, Optional[float], Optional[float]]


def native() -> Native:
    """The module; NativeModuleMissing where this installation has none."""
    try:
        return cast("Native", importlib.import_module("gflow._native"))
    except ImportError as error:
        version = ".".join(map(str, sys.version_info[:2]))
        raise NativeModuleMissing(
            f"this needs gflow's native module, which this installation does not have for Python {version} ({error}). "
            "It is built by `pip install` of gflow's sources with g++ 12 or newer and libfmt-dev, unless it was told "
            "wheel.cmake=false. What talks to gflowd works without it", name="gflow._native") from error
