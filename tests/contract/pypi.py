# SPDX-License-Identifier: Apache-2.0
"""Programs of PyPI that a test needs; `./dev setup` puts them into .venv."""

import os
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parents[2] / ".venv/bin"


def program(name):
    """Where it is. Where it is not: skipped with the reason, and a failure where everything has to run."""
    path = PROGRAMS / name
    if path.exists():
        return path
    reason = f"{name} is not installed (./dev setup)"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
