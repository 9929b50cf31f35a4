# SPDX-License-Identifier: Apache-2.0
"""Frameworks are imported when they are used: `import gflow` needs none."""

from __future__ import annotations

import importlib
from typing import Any

from gflow.errors import ConfigurationError

_PACKAGES = {"torch": "torch", "tensorflow": "tensorflow", "keras": "tensorflow", "jax": "jax", "numpy": "numpy"}


def required(module: str) -> Any:
    """Errors: ConfigurationError where it is not installed."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        top = module.partition(".")[0]
        if error.name != top:
            raise  # it is there, and lacks something
        raise ConfigurationError(f"{top} is not installed: pip install {_PACKAGES.get(top, top)}") from error
