# SPDX-License-Identifier: Apache-2.0
"""What packaging/kubernetes has of the API server's own policies: how urgent gflow-kube is, and which pods are its."""

import urllib.error

import pytest
import yaml
from cluster import path_of
from kube_scheduler import SYSTEM, chosen, make_pod, until_bound, until_in_force, until_told
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


def test_what_it_asks_is_as_urgent_as_what_kube_scheduler_asks(kube, with_rights, applied):
    schemas = {one["metadata"]["uid"]: one["metadata"]["name"] for one in applied("flowschema.yaml")}

    def schema_of(method, path, body=None, account="gflow-kube", namespace=SYSTEM):
        with kube.answer(method, path, body, token=kube.token(account, namespace)) as answer:
            return schemas.get(answer.headers["X-Kubernetes-PF-FlowSchema-UID"])

    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "gflow-kube"}, "spec": {}}
    until_in_force(lambda: schema_of("GET", "/api/v1/nodes") == "gflow-kube")
    until_in_force(lambda: schema_of("POST", path_of("Lease", SYSTEM) + "?dryRun=All", lease) == "gflow-kube-lease")
    assert schema_of("GET", "/api/v1/pods?limit=1") == schema_of("GET", "/version") == "gflow-kube"
    assert schema_of("GET", "/api/v1/nodes", account="gflow", namespace="gflow") is None, "that is somebody else"
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


ALLOCATION = '{"node":"n","devices":[{"resource":"nvidia.com/gpu","index":0,"share_parts":10000}]}'


def refusal(kube, method, path, body):
    """Why the API server does not do that; "" if it would."""
    try:
        kube.raw(method, path + "?dryRun=All", body)
    except urllib.error.HTTPError as error:
        return error.read().decode()
    return ""


def annotated(kube, name, annotations, subresource=""):
    return refusal(kube, "PATCH", f"{path_of('Pod', 'default')}/{name}{subresource}", {"metadata": {"annotations": annotations}})


def made_with(kube, annotations, **spec):
    return refusal(kube, "POST", path_of("Pod", "default"), {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "forged", "annotations": annotations},
        "spec": {"containers": [{"name": "main", "image": "none"}], **spec}})


def test_nobody_else_says_what_a_pod_was_given(kube, start, applied):
    """Whoever asks here may do all that there is."""
    kube.node("n", 2)
    applied("annotation-policy.yaml")
    until_in_force(lambda: "gflow/allocation" in made_with(kube, {"gflow/allocation": ALLOCATION}))
    assert "gflow/allocation" in made_with(kube, {"gflow/allocation": ALLOCATION, "gflow/gpu": "1"}, schedulerName="gflow", nodeName="n")
    assert made_with(kube, {"gflow/gpu": "1", "else": "where"}, schedulerName="gflow") == made_with(kube, {}) == ""
    assert "does not name its node" in made_with(kube, {"gflow/gpu": "1"}, schedulerName="gflow", nodeName="n")
    assert made_with(kube, {"gflow/gpu": "1"}, schedulerName="another", nodeName="n") == made_with(kube, {}, nodeName="n") == ""

    start()
    make_pod(kube, "a", "1")
    make_pod(kube, "waits", "3")
    make_pod(kube, "of-others", None, scheduler="another")
    assert chosen(until_bound(kube, "a")["a"]), "its binding is not refused"
    until_told(kube, "waits", "Insufficient nvidia.com/gpu")
    for subresource in ("", "/status"):
        for annotations in ({"gflow/allocation": None}, {"gflow/allocation": ALLOCATION.replace("10000", "1")}, {"gflow/allocation": ""}):
            assert "comes with its binding" in annotated(kube, "a", annotations, subresource), annotations
        for gpu in (None, "0.5"):
            assert "before it was on its node" in annotated(kube, "a", {"gflow/gpu": gpu}, subresource)
        assert annotated(kube, "a", {"else": "where"}, subresource) == ""
    assert "comes with its binding" in annotated(kube, "waits", {"gflow/allocation": ALLOCATION})
    assert annotated(kube, "waits", {"gflow/gpu": "2"}) == annotated(kube, "waits", {"gflow/gpu": None}) == ""
    assert "is not the scheduler of this pod" in annotated(kube, "of-others", {"gflow/gpu": "1"})
    assert annotated(kube, "of-others", {"else": "where"}) == ""
    kube.end_pod("a")
