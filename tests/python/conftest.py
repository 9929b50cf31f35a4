# SPDX-License-Identifier: Apache-2.0
import contextlib
import subprocess
import sys

import pytest
from package import ROOT, SOURCE

sys.path.insert(0, str(SOURCE))
sys.path.insert(0, str(ROOT / "tests/contract"))  # pypi.py

import gflow  # noqa: E402
import wheels  # noqa: E402
from containers import nvidia  # noqa: E402, F401
from gflow import _calls  # noqa: E402
from kube import between, control_plane, frequent_renewals, kube, kube_package, kubeconfig_of, kubernetes_client, through  # noqa: E402, F401
from kubelet import node  # noqa: E402, F401
from kube_person import viewers  # noqa: E402, F401
from kube_scheduler import applied, classes, kube_scheduler, replicas, start, with_driver, with_node_rights, with_rights  # noqa: E402, F401
from machine import PATIENCE, Machine  # noqa: E402
from pypi import module, program  # noqa: E402

DASK_ALONE = """
import distributed
from distributed.security import Security
if __name__ == "__main__":
    with distributed.LocalCluster(n_workers=0, security=Security.temporary(), protocol="tls://", dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            for count in (1, 2, 3, 1, 2):
                cluster.scale(count)
                client.wait_for_workers(count)
                for _ in range(50):
                    cluster.sync(cluster.scheduler_comm.identity)
"""


@pytest.fixture
def client(machine):
    with gflow.Client(f"unix:{machine.socket}") as made:
        yield made


@pytest.fixture
def few_connections():
    """A machine that gives a user so few that they are all in use soon."""
    made = Machine(config="[api]\nmax_connections_per_user = 16\n")
    try:
        made.up()
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def lab():
    with a_lab() as made:
        yield made


@contextlib.contextmanager
def a_lab():
    """A machine that serves others, too."""
    made = Machine("sim:2xV100+2xA100")
    made.environment |= {"GFLOW_API__TLS_LISTEN": "127.0.0.1:0", "GFLOW_API__LISTEN": "127.0.0.1:0"}
    try:
        made.up()
        told = made.get("/api/v1/daemon")
        made.tls_url, made.api_url, made.fingerprint = told["tls_url"], told["api_url"], told["tls_fingerprint"]
        yield made
    finally:
        made.close()


@pytest.fixture
def python(machine):
    """Runs Python as the machine's user, who has the package and no other setting."""

    def run(*words, script=None, env=None, program=sys.executable):
        done = subprocess.run(
            [program, *(["-c", script] if script else []), *words],
            env=machine.environment | {"PYTHONPATH": str(SOURCE), "PYTHONDONTWRITEBYTECODE": "1"} | (env or {}),
            cwd=machine.work, capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    return run


@pytest.fixture(scope="session")
def dask_over_tls(tmp_path_factory):
    """Where Dask's own cluster loses its connections over TLS, as with OpenSSL 3.5, that of gflow does: docs/python.md."""
    module("distributed")
    alone = tmp_path_factory.mktemp("dask") / "alone.py"
    alone.write_text(DASK_ALONE)
    done = subprocess.run([program("python"), alone], cwd=alone.parent, capture_output=True, text=True, timeout=PATIENCE, check=False)
    if "CommClosedError" in done.stderr:
        pytest.skip(f"Dask's LocalCluster loses its connections over TLS here: {done.stderr.splitlines()[-1]}")


@pytest.fixture
def cancellations(monkeypatch):
    """The jobs of each request that cancels."""
    found = []
    cancel = _calls.Calls.cancel

    def noted(self, jobs, signal):
        found.append([getattr(one, "id", one) for one in jobs])
        return (yield from cancel(self, jobs, signal))

    monkeypatch.setattr(_calls.Calls, "cancel", noted)
    return found


@pytest.fixture(scope="session")
def native():
    """The package that tests import has its native module, built of this tree."""
    folder = str(wheels.package() / "gflow")
    if folder not in gflow.__path__:
        gflow.__path__.append(folder)


def pytest_terminal_summary(terminalreporter):
    missing = [version for version in wheels.SUPPORTED if version not in wheels.pythons()]
    if missing:
        terminalreporter.write_line(f"wheels are not tried with Python {', '.join(missing)}: not here, or without Python.h")
