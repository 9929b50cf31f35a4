# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests of gflow.kubernetes: a control plane, and clients of the service account of packaging/kubernetes."""

import contextlib
import importlib
import json
import sys
import uuid

import pytest
from between import Between
from cluster import Cluster
from package import ROOT
from pypi import module, program


@contextlib.contextmanager
def packages():
    """What ./dev setup puts into .venv can be imported."""
    module("kubernetes")
    place = str(next(program("python").parents[1].glob("lib/python*/site-packages")))
    sys.path.append(place)
    try:
        yield
    finally:
        sys.path.remove(place)


@pytest.fixture(scope="module")
def kube_package():
    """Kubernetes' own package is there, and so gflow.kubernetes."""
    with packages():
        for name in ("gflow.kubernetes", "gflow.manager"):
            importlib.import_module(name)
        yield


@pytest.fixture(scope="session")
def control_plane():
    made = Cluster()
    try:
        made.up()
        with packages():
            for name in ("rbac.yaml", "rbac-binder.yaml"):
                made.apply(ROOT / "packaging/kubernetes" / name)
        yield made
    finally:
        made.close()


@pytest.fixture
def kube(control_plane):
    """A cluster without nodes."""
    control_plane.clear()
    return control_plane


@pytest.fixture
def kubernetes_client(kube):
    """Makes clients, of the service account where nothing else is said."""
    made = []

    def make(**options):
        from gflow.kubernetes import KubernetesClient

        options.setdefault("kubeconfig", str(kube.kubeconfig(kube.token("gflow", "gflow"))))
        made.append(KubernetesClient(**{name: str(value) if name == "kubeconfig" else value for name, value in options.items()}))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def between(kube):
    """A proxy before the API server."""
    made = Between(kube)
    yield made
    made.close()


@pytest.fixture
def kubeconfig_of(kube):
    """The path of a kubeconfig file with this user, and this server or the cluster's."""

    def make(user=None, server=None, **of_cluster):
        document = json.loads(kube.kubeconfig(kube.token("gflow", "gflow"), f"config-{uuid.uuid4()}").read_text())
        if user is not None:
            document["users"][0]["user"] = user
        if server is not None:
            document["clusters"][0]["cluster"] = {"server": server, **of_cluster}
        path = kube.root / f"config-{uuid.uuid4()}"
        path.write_text(json.dumps(document))
        return path

    return make


@pytest.fixture
def through(between, kubeconfig_of, kubernetes_client):
    """Makes clients that ask through the proxy."""
    return lambda **options: kubernetes_client(kubeconfig=kubeconfig_of(server=between.url), **options)


@pytest.fixture
def frequent_renewals(monkeypatch):
    """A minute's lease, renewed each half second."""
    from gflow import _kube_source

    monkeypatch.setattr(_kube_source, "_RENEWALS", 120)
