# SPDX-License-Identifier: Apache-2.0
"""The package as it is built: its sources, and a wheel for each Python that is here, made once in a session of tests."""

import contextlib
import fcntl
import functools
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from package import ROOT
from pypi import PROGRAMS, program

BUILD = ROOT / "build/python"
SUPPORTED = ("3.10", "3.11", "3.12", "3.13")
STABLE = "3.12"  # one wheel for this and all that come after it
OWN = "%d.%d" % sys.version_info[:2]
SESSION = os.environ.get("PYTEST_XDIST_TESTRUNUID") or f"{os.getpid()} {Path('/proc/self/stat').read_text().split()[21]}"
PATIENCE = 900  # s: compilers beside compilers


def _candidates(version):
    yield Path(f"/usr/bin/python{version}")
    yield Path(f"/usr/local/bin/python{version}")
    yield from sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}"))
    if found := shutil.which(f"python{version}"):
        yield Path(found)


def _is_usable(python, version):
    """It runs, and has what modules are compiled with."""
    script = ("import sys, sysconfig, os, venv, ensurepip; print('%d.%d' % sys.version_info[:2], "
              "os.path.exists(sysconfig.get_path('include') + '/Python.h'))")
    with contextlib.suppress(OSError):
        done = subprocess.run([python, "-c", script], capture_output=True, text=True, check=False)
        return done.stdout.split() == [version, "True"]
    return False


@functools.lru_cache(maxsize=None)
def pythons():
    """By version; that of the tests is always one of them."""
    found = {version: next((one for one in _candidates(version) if _is_usable(one, version)), None) for version in SUPPORTED}
    return {version: one for version, one in {**found, OWN: found.get(OWN) or Path(sys.executable)}.items() if one}


def run(*words, cwd=ROOT, env=None):
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=PATIENCE, check=False,
                          env={**os.environ, **(env or {})})
    assert done.returncode == 0, f"{words}\n{done.stdout[-8000:]}\n{done.stderr[-8000:]}"
    return done.stdout


@contextlib.contextmanager
def _once(folder):
    """Whether it is still to be made in this session; others wait for who makes it."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = folder / "session"
        wanted = not done.exists() or done.read_text() != SESSION
        yield wanted
        if wanted:
            done.write_text(SESSION)


def _backend(python, call, cwd, build=None):
    """The build backend, called as pip would. It is pure Python, so any version can use that of the tests' environment."""
    tools = run(program("python"), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    program("auditwheel")  # says what to do where the tools are older
    path = f"{python.parent}:{PROGRAMS}:{os.environ['PATH']}"
    alike = {"CCACHE_BASEDIR": str(build), "CCACHE_NOHASHDIR": "1"} if build else {}  # what knows nothing of Python
    return run(python, "-c", f"import scikit_build_core.build as backend; {call}", cwd=cwd,
               env={"PYTHONPATH": tools, "PATH": path, "PYTHONDONTWRITEBYTECODE": "1"} | alike)


def sources():
    """The source distribution, and where it lies unpacked: what did not change is left as it is, for compilers."""
    folder = BUILD / "source"
    with _once(folder) as wanted:
        if wanted:
            shutil.rmtree(folder / "dist", ignore_errors=True)
            _backend(pythons()[OWN], f"backend.build_sdist({str(folder / 'dist')!r})", ROOT)
            _unpack(next((folder / "dist").glob("gflow-*.tar.gz")), folder / "tree")
        return next((folder / "dist").glob("gflow-*.tar.gz")), folder / "tree"


def _unpack(archive, tree):
    with tempfile.TemporaryDirectory() as fresh, tarfile.open(archive) as packed:
        packed.extractall(fresh)
        top = next(Path(fresh).iterdir())
        files = {path.relative_to(top) for path in top.rglob("*") if path.is_file()}
        for file in [path.relative_to(tree) for path in tree.rglob("*") if path.is_file()]:
            if file not in files:
                (tree / file).unlink()
        for file in files:
            content = (top / file).read_bytes()
            there = tree / file
            if not there.exists() or there.read_bytes() != content:
                there.parent.mkdir(parents=True, exist_ok=True)
                there.write_bytes(content)


def wheel(version):
    """That for this version of Python, built from the source distribution."""
    if tuple(map(int, version.split("."))) >= tuple(map(int, STABLE.split("."))):
        version = STABLE if STABLE in pythons() else version
    if version != OWN:
        wheel(OWN)  # first, so that the compiler's cache has most of it
    _, tree = sources()
    folder = BUILD / version
    with _once(folder) as wanted:
        if wanted:
            shutil.rmtree(folder / "dist", ignore_errors=True)
            settings = {"build-dir": str(folder / "cmake")}
            _backend(pythons()[version], f"backend.build_wheel({str(folder / 'dist')!r}, {settings!r})", tree, folder / "cmake")
            shutil.rmtree(folder / "package", ignore_errors=True)
            zipfile.ZipFile(next((folder / "dist").glob("*.whl"))).extractall(folder / "package")
        return next((folder / "dist").glob("*.whl"))


def pure(folder):
    """A wheel for where no compiler is, put into this folder."""
    settings = {"wheel.cmake": "false", "wheel.py-api": "py3"}
    _backend(pythons()[OWN], f"backend.build_wheel({str(folder)!r}, {settings!r})", sources()[1])
    return next(folder.glob("*.whl"))


def guide(folder):
    """The wheel of the documents' module paths, put into this folder."""
    settings = {"build-dir": str(folder / "build")}
    _backend(pythons()[OWN], f"backend.build_wheel({str(folder)!r}, {settings!r})", ROOT / "python/guide")
    return next(folder.glob("*.whl"))


def environment(folder, version, *made):
    """A clean one with these wheels in it, without the network; its interpreter."""
    inside = folder / "bin/python"
    run(program("uv"), "venv", "-q", "--offline", "-p", pythons()[version], folder)
    run(program("uv"), "pip", "install", "-q", "--offline", "--no-deps", "-p", inside, *made)
    return inside


def package():
    """Where the package lies with its native module for the Python of the tests."""
    return wheel(OWN).parents[1] / "package"
