# SPDX-License-Identifier: Apache-2.0
"""The package as it is installed, and as type checkers see it."""

import subprocess
import zipfile

import pytest
from package import ROOT
from machine import PATIENCE
from pypi import program


def run(*words, cwd=ROOT):
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_types(checker, tmp_path):
    options = ["--config-file", "pyproject.toml", "--cache-dir", tmp_path] if checker == "mypy" else []
    run(program(checker), *options)


def test_it_installs(tmp_path):
    """A wheel, in an environment of its own, without the network: what is in it, and that it works there."""
    python = program("python")
    build = "import scikit_build_core"
    if subprocess.run([python, "-c", build], capture_output=True, check=False).returncode:
        program("scikit-build-core")  # says what to do
    source = tmp_path / "source"
    run("git", "clone", "-q", "--no-hardlinks", ROOT, source)
    for file in subprocess.run(["git", "ls-files", "-mo", "--exclude-standard", "python", "pyproject.toml", "docs/python.md"],
                               cwd=ROOT, capture_output=True, text=True, check=True).stdout.split():
        (source / file).parent.mkdir(parents=True, exist_ok=True)
        (source / file).write_bytes((ROOT / file).read_bytes())
    run(python, "-m", "pip", "wheel", "-q", "--no-build-isolation", "--no-deps", "--no-index", "-w", tmp_path, source)
    wheel = next(tmp_path.glob("gflow-*-py3-none-any.whl"))
    names = zipfile.ZipFile(wheel).namelist()
    assert "gflow/py.typed" in names and "gflow/__init__.py" in names and not [one for one in names if "tests" in one or "__pycache__" in one], names
    run(python, "-m", "venv", tmp_path / "clean")
    inside = tmp_path / "clean/bin/python"
    run(inside, "-m", "pip", "install", "-q", "--no-index", wheel)
    said = run(inside, "-c", "import gflow; print(gflow.__version__, gflow.Client('unix:/nowhere'))", cwd=tmp_path)
    version = (ROOT / "CMakeLists.txt").read_text().split("project(gflow VERSION ")[1].split()[0]
    assert said == f"{version} <gflow.Client of /nowhere>\n"


