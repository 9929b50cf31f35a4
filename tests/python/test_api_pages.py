# SPDX-License-Identifier: Apache-2.0
"""The pages of the Python API (python/docs): they build without a warning, have every name, and their examples do what they say."""

import json
import re
import subprocess

import pytest
import wheels
from package import ROOT
from pypi import module, program

PAGES = ROOT / "python/docs"

# What is public: what `__all__` of the package and its modules names, and of classes what they have. As a page may have it from where
# it is made or from where it is to be imported, both names of each.
PUBLIC = """
import gflow, importlib, inspect, json, pkgutil
from sphinx.util.inventory import InventoryFile
import sys

def is_public(name):
    return not any(part.startswith("_") for part in name.split("."))

def public(module):
    for name in getattr(module, "__all__", []):
        one = getattr(module, name)
        homes = {module.__name__, getattr(one, "__module__", module.__name__)}
        if inspect.isclass(one) or inspect.isfunction(one):
            yield {f"{home}.{name}" for home in homes}
        for member, its in vars(one).items() if inspect.isclass(one) else ():
            if is_public(member) and (inspect.isfunction(its) or isinstance(its, (property, classmethod, staticmethod))):
                yield {f"{home}.{name}.{member}" for home in homes}

with open(sys.argv[1], "rb") as file:
    there = {name for names in InventoryFile.load(file, "", lambda base, path: path).values() for name in names}
modules = [one.name for one in pkgutil.walk_packages(gflow.__path__, "gflow.") if is_public(one.name) and one.name != "gflow.documents"]
wanted = [names for module in ["gflow", *modules] for names in public(importlib.import_module(module))]
print(json.dumps([len(wanted), [sorted(names) for names in wanted if not names & there]]))
"""


def run(*words, env, cwd):
    done = subprocess.run(words, env=env, cwd=cwd, capture_output=True, text=True, timeout=wheels.PATIENCE, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def environment(bare):
    """Of a program that has the package as it is installed."""
    module("distributed")
    return bare.environment | {"PYTHONPATH": str(wheels.package()), "PYTHONDONTWRITEBYTECODE": "1"}


def test_every_name_has_its_place(environment, tmp_path):
    run(program("sphinx-build"), "-q", "-W", "--keep-going", "-b", "html", PAGES, tmp_path / "html", env=environment, cwd=tmp_path)
    count, missing = json.loads(run(program("python"), "-c", PUBLIC, tmp_path / "html/objects.inv", env=environment, cwd=tmp_path))
    assert missing == [] and count > 150, "these have no docstring, or no page"


def test_every_example_does_what_it_says(environment, machine, dask_over_tls, tmp_path):
    said = run(program("sphinx-build"), "-W", "-b", "doctest", PAGES, tmp_path / "doctest", env=environment, cwd=machine.work)
    ran = sum(map(int, re.findall(r"(?m)^ *(\d+) tests?$", said.split("Doctest summary")[1])))
    there = sum(len(re.findall(r"(?m)^ *>>> ", path.read_text())) for path in (ROOT / "python/src/gflow").rglob("*.py"))
    assert ran >= there > 40, said
