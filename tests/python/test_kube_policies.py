# SPDX-License-Identifier: Apache-2.0
"""What packaging/kubernetes has of the API server's own policies: how urgent gflow-kube is, and which pods are its."""

import time

import pytest
import yaml
from cluster import path_of
from kube_scheduler import make_pod, until_bound
from machine import PATIENCE
from package import ROOT

MANIFESTS = ROOT / "packaging/kubernetes"


@pytest.fixture
def applied(kube):
    """Applies a manifest as kubectl does, strictly, and takes its objects back at the end."""
    made = []

    def apply(name):
        for one in yaml.safe_load_all((MANIFESTS / name).read_text()):
            path = f"{path_of(one['kind'])}/{one['metadata']['name']}"
            made.append(path)
            yield kube.ask("PATCH", f"{path}?fieldManager=test&fieldValidation=Strict&force=true", one, content_type="application/apply-patch+yaml")

    yield lambda name: list(apply(name))
    for path in made:
        kube.ask("DELETE", path)


def until_in_force(is_so):
    """What was applied is in force a moment later, and nobody tells when."""
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_what_it_asks_is_as_urgent_as_what_kube_scheduler_asks(kube, with_rights, applied):
    schemas = {one["metadata"]["uid"]: one["metadata"]["name"] for one in applied("flowschema.yaml")}

    def schema_of(method, path, body=None, account="gflow-kube"):
        with kube.answer(method, path, body, token=kube.token(account, "gflow")) as answer:
            return schemas.get(answer.headers["X-Kubernetes-PF-FlowSchema-UID"])

    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "gflow-kube"}, "spec": {}}
    until_in_force(lambda: schema_of("GET", "/api/v1/nodes") == "gflow-kube")
    until_in_force(lambda: schema_of("POST", path_of("Lease", "gflow") + "?dryRun=All", lease) == "gflow-kube-lease")
    assert schema_of("GET", "/api/v1/pods?limit=1") == schema_of("GET", "/version") == "gflow-kube"
    assert schema_of("GET", "/api/v1/nodes", account="gflow") is None, "that is somebody else"
    levels = {one["metadata"]["name"]: one["spec"]["priorityLevelConfiguration"]["name"] for one in kube.ask("GET", path_of("FlowSchema"))["items"]}
    assert levels["gflow-kube"] == levels["kube-scheduler"] and levels["gflow-kube-lease"] == levels["system-leader-election"]


def scheduler_of(kube, name, scheduler="default-scheduler", gpu="1", **spec):
    """Of a pod as it would be made."""
    annotations = {"gflow/gpu": gpu} if gpu else {"else": "where"}
    return kube.ask("POST", path_of("Pod", "default") + "?dryRun=All", {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "annotations": annotations},
        "spec": {"containers": [{"name": "main", "image": "none"}], **({"schedulerName": scheduler} if scheduler else {}), **spec}})["spec"]["schedulerName"]


def test_pods_with_the_annotation_are_its_unless_somebody_chose(kube, start, applied):
    applied("admission-policy.yaml")
    until_in_force(lambda: scheduler_of(kube, "p") == "gflow")
    assert scheduler_of(kube, "p", scheduler=None) == "gflow"
    assert scheduler_of(kube, "p", scheduler="another") == "another"
    assert scheduler_of(kube, "p", gpu=None) == "default-scheduler"
    assert scheduler_of(kube, "p", nodeName="n") == "default-scheduler"
    without = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "main", "image": "none"}]}}
    assert kube.ask("POST", path_of("Pod", "default") + "?dryRun=All", without)["spec"]["schedulerName"] == "default-scheduler"
    kube.node("n", 2)
    start()
    make_pod(kube, "half", "0.5", scheduler="default-scheduler")
    until_bound(kube, "half")
