# SPDX-License-Identifier: Apache-2.0
"""Programs of PyPI that a test needs; `./dev setup` puts them into .venv."""

import os
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parents[2] / ".venv/bin"


def missing(reason):
    """Skipped, and a failure where everything has to run."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def needed(path, name):
    """The path. Where nothing is there: skipped with the reason, and a failure where everything has to run."""
    if not path.exists():
        missing(f"{name} is not installed (./dev setup)")
    return path


def module(name):
    """That Python there has it."""
    inside = program("python").parents[1]
    needed(next(inside.glob(f"lib/python*/site-packages/{name}"), inside / name), name)


def program(name):
    """Where it is."""
    return needed(PROGRAMS / name, name)
