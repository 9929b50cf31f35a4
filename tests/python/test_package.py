# SPDX-License-Identifier: Apache-2.0
"""The package as it is installed, and as type checkers see it."""

import subprocess

import pytest
import wheels
from package import ROOT
from pypi import program


def run(*words, cwd=ROOT):
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=wheels.PATIENCE, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_types(checker, tmp_path):
    options = ["--config-file", "pyproject.toml", "--cache-dir", tmp_path] if checker == "mypy" else []
    run(program(checker), *options)
