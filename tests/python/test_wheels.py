# SPDX-License-Identifier: Apache-2.0
"""The package as it is built and installed: by each Python that is here, from what a source distribution has."""

import email
import os
import re
import subprocess
import sys
import tarfile
import zipfile

import pytest
import wheels
from package import ROOT, blessed
from pypi import program
from wheels import OWN, run

VERSION = (ROOT / "CMakeLists.txt").read_text().split("project(gflow VERSION ")[1].split()[0]

STUB_HEAD = """# SPDX-License-Identifier: Apache-2.0
# Made by nanobind's stubgen of the module: run tests/python/test_wheels.py with GFLOW_BLESS=1.
"""

# What a program does with it, and that it is what was installed.
PROGRAM = """
import sys, gflow
assert not [one for one in sys.modules if one.startswith("gflow.")], sys.modules
print(gflow.__version__, gflow.Client("unix:/nowhere"))
print(gflow.GPUResourceParser().parse("2(A100-80G),40G"))
node = {"name": "n", "labels": {"gpu-type": "A100-80G"}, "gpu_info": {"nvidia": {"allocatable": 4}}}
class Cluster:
    def get_nodes(self): return [node]
    def get_pods(self): return []
parser = gflow.GPUResourceParser()
scheduler = gflow.GPUScheduler(Cluster(), parser, gflow.GPUMemoryGuard(Cluster(), parser))
print(scheduler.schedule_pod(gflow.SchedulingRequest("pod", "default", "2(A100)", 80.0)))
print(gflow.__file__.startswith(sys.prefix), "numpy" in sys.modules, "torch" in sys.modules)
"""
SAYS = f"""{VERSION} <gflow.Client of /nowhere>
GPUResource(gpu_num=2, gpu_type='A100-80G', resource_name='nvidia.com/gpu', memory_gb=40.0, compute_ratio=None)
n
True False False
"""

# The same with a gflowd.
TALKS = """
import asyncio, gflow
job = gflow.submit("echo done", gpus=1)
print(job.result()["status"], job.log(), end="")
print(list(gflow.map(abs, [-1, 2], gpus=1)))
with gflow.gpus(2) as devices:
    print(devices.indices)
async def main():
    async with gflow.AsyncClient() as client, client.events(type="job.ended") as ended:
        job = await client.submit("exit 3")
        return (await job.wait())["status"], (await ended.__anext__())["job"] == job.id
print(asyncio.run(main()))
"""
ANSWERS = "Finished done\n[1, 2]\n[0, 1]\n('Failed', True)\n"


def test_the_sources_are_complete():
    archive, _ = wheels.sources()
    names = {name.split("/", 1)[1] for name in tarfile.open(archive).getnames() if "/" in name}
    tracked = run("git", "ls-files", "python", "src/base", "src/core", "src/placement", "pyproject.toml", "LICENSE").split()
    assert not [name for name in tracked if name.endswith((".py", ".cpp", ".h", ".toml", ".pyi", "LICENSE")) and name not in names]
    assert not [name for name in names if name.startswith(("build/", ".venv/", "tests/"))], names


@pytest.mark.parametrize("version", sorted(wheels.pythons(), key=lambda one: int(one.split(".")[1])))
def test_it_installs(version, machine, tmp_path):
    """In an environment of its own, without the network; there it talks to gflowd, too."""
    made = wheels.wheel(version)
    stable = int(version.split(".")[1]) >= 12
    tag = "cp312-abi3" if stable else "cp{0}-cp{0}".format(version.replace(".", ""))
    assert made.name.startswith(f"gflow-{VERSION}-{tag}-linux_"), made.name
    names = zipfile.ZipFile(made).namelist()
    assert {"gflow/py.typed", "gflow/_native.pyi", "gflow/__init__.py"} <= set(names)
    assert len([one for one in names if one.startswith("gflow/_native.") and one.endswith(".so")]) == 1, names
    assert not [one for one in names if "tests" in one or "__pycache__" in one or one.endswith((".cpp", ".h"))], names
    inside = wheels.environment(tmp_path / "clean", version, made)
    assert run(inside, "-c", PROGRAM, cwd=tmp_path) == SAYS
    assert run(inside, "-c", TALKS, cwd=machine.work, env=machine.environment) == ANSWERS


def test_pip_installs_it(tmp_path):
    run(wheels.pythons()[OWN], "-m", "venv", tmp_path / "clean")
    inside = tmp_path / "clean/bin/python"
    run(inside, "-m", "pip", "install", "-q", "--no-index", wheels.wheel(OWN))
    assert run(inside, "-c", PROGRAM, cwd=tmp_path) == SAYS
    metadata = email.message_from_bytes(next((tmp_path / "clean").glob("lib/python*/site-packages/gflow-*/METADATA")).read_bytes())
    assert metadata.get_all("Requires-Dist") == [one for one in metadata.get_all("Requires-Dist") if "extra ==" in one or "tomli" in one]


@pytest.mark.parametrize("version", [OWN, wheels.STABLE] if wheels.STABLE in wheels.pythons() and OWN != wheels.STABLE else [OWN])
def test_it_runs_on_other_machines(version):
    """By the rules of manylinux: of the libraries it needs, none but the C library's, and no newer a one than that of the machines it
    is for."""
    said = run(program("auditwheel"), "show", wheels.wheel(version))
    assert "manylinux_2_" in said, said
    needed = run("readelf", "-d", next((wheels.wheel(version).parents[1] / "package").glob("gflow/_native*.so")))
    libraries = {line.split("[")[1].rstrip("]") for line in needed.splitlines() if "(NEEDED)" in line}
    assert {one.split(".")[0] for one in libraries} <= {"libc", "libm", "ld-linux-x86-64", "ld-linux-aarch64", "libpthread"}, libraries


def test_the_stub_is_that_of_the_module():
    there = {"PYTHONPATH": str(wheels.package())}
    made = wheels.BUILD / OWN / "_native.pyi"
    run(program("python"), "-m", "nanobind.stubgen", "-q", "-m", "gflow._native", "-o", made, env=there)
    blessed(ROOT / "python/src/gflow/_native.pyi", STUB_HEAD + made.read_text())


def test_stubtest():
    """Of all of the package that can be imported here: frameworks are not. In what is written in Python, names for type checkers only
    are not there when it runs."""
    words = [program("python"), "-m", "mypy.stubtest", "gflow", "--concise", "--mypy-config-file", ROOT / "pyproject.toml",
             "--allowlist", ROOT / "tests/python/stubtest.allow", "--ignore-unused-allowlist"]
    done = subprocess.run(words, cwd=wheels.package(), env=os.environ | {"PYTHONPATH": str(wheels.package())}, capture_output=True,
                          text=True, timeout=wheels.PATIENCE, check=False)
    wrong = [line for line in done.stdout.splitlines()
             if line.startswith("gflow._native") or not re.search("is not present at runtime$|^Success|: No module named '(?!gflow)", line)]
    assert done.stderr == "" and wrong == [], done


def test_without_the_native_module(tmp_path):
    """A wheel that was made where no compiler is: the client works, and what needs the module says what to do."""
    made = wheels.pure(tmp_path)
    assert made.name == f"gflow-{VERSION}-py3-none-any.whl"
    script = ("import gflow\nprint(gflow.Client('unix:/nowhere'), [getattr(gflow, name) for name in gflow.__all__] != [])\n"
              "for make in (gflow.GPUResourceParser, lambda: gflow.GPUMemoryGuard(None, None), lambda: gflow.GPUScheduler(None, None, None)):\n"
              "    try: make()\n"
              "    except ImportError as error: print(type(error).__name__, error.name, error)\n")
    done = subprocess.run([sys.executable, "-c", script], env={"PYTHONPATH": str(made)}, capture_output=True, text=True, check=False)
    first, *others = done.stdout.splitlines()
    assert first == "<gflow.Client of /nowhere> True" and len(others) == 3, done
    for said in others:
        assert said.startswith("NativeModuleMissing gflow._native this needs gflow's native module"), said
        assert "libfmt-dev" in said
