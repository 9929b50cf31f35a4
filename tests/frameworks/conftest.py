# SPDX-License-Identifier: Apache-2.0
"""Run by the Python of .venv-frameworks, a process for each framework (tools/dev/test.sh)."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / one) for one in ("python/src", "python/guide/src", "tests/python", "tests/e2e")]

import gflow  # noqa: E402
import guide  # noqa: E402
from gflow import manager  # noqa: E402
from gflow.frameworks import _integration  # noqa: E402
from gflow.train.engine import AlgorithmTrainingEngine  # noqa: E402


@pytest.fixture
def client(machine):
    with gflow.Client(f"unix:{machine.socket}") as made:
        yield made


@pytest.fixture
def resources(client, monkeypatch):
    """A manager of this machine, from whose allocations nothing stays in the environment, and that has said nothing yet."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(_integration, "_said", set())
    return manager.GPUResourceManager(client)


@pytest.fixture
def engine(resources):
    return AlgorithmTrainingEngine(resources)


@pytest.fixture
def session(machine, monkeypatch):
    """Runs snippets of the guide by their titles, after the one that has the imports, as a program of this machine's user would."""
    monkeypatch.setenv("GFLOW_SOCKET", str(machine.socket))
    monkeypatch.setenv("HOME", str(machine.home))
    monkeypatch.delenv("GFLOW_SERVER", raising=False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(manager, "_manager", None)
    monkeypatch.setattr(_integration, "_said", set())

    def run(*titles, blocks=(), **names):
        blocks = [*([title, guide.snippets()[title]] for title in ("基本使用", *titles)), *blocks]
        return guide.run_session(blocks, names), names

    return run
