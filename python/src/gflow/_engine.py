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


# Of Python 3.13 and newer, and of those before.
_INTERPRETERS = ("_interpreters", "_xxsubinterpreters")


def _check_interpreter() -> None:
    """ImportError in a subinterpreter, as mod_wsgi has them: nanobind has one set of types in a process, and would take the first's."""
    for name in _INTERPRETERS:
        try:
            current = importlib.import_module(name).get_current()
        except ImportError:
            continue
        if int(current[0] if isinstance(current, tuple) else current) != 0:
            raise ImportError("it is for the main interpreter of a process, and this is a subinterpreter")
        return


def native() -> Native:
    """The module; NativeModuleMissing where this installation has none."""
    try:
        _check_interpreter()
        return cast("Native", importlib.import_module("gflow._native"))
    except ImportError as error:
        version = ".".join(map(str, sys.version_info[:2]))
        raise NativeModuleMissing(
            f"this needs gflow's native module, which this installation does not have for Python {version} ({error}). "
            "It is built by `pip install` of gflow's sources with g++ 12 or newer and libfmt-dev, unless it was told "
            "wheel.cmake=false. What talks to gflowd works without it", name="gflow._native") from error
