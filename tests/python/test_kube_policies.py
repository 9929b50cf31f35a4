# SPDX-License-Identifier: Apache-2.0
"""What packaging/kubernetes has of the API server's own policies: how urgent gflow-kube is, and which pods are its."""

import re
import urllib.error

import pytest
from cluster import ADMIN, path_of
from kube_scheduler import CLAIMS_SYSTEM, DRIVER, NODE_SYSTEM, PLUGIN, SYSTEM, chosen, make_pod, until_bound, until_in_force, until_told
from package import ROOT


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


@pytest.fixture
def asked(kube):
    """What the containers of a pod ask for once it was admitted, by name; it is not made."""

    def ask(*containers, scheduler="gflow", gpu="8G,0.5", initContainers=()):
        def named(one):
            name, limits = one if isinstance(one, tuple) else (one, {})
            # Names twice, as some charts make them: what is applied to such a container must not stumble over them.
            return {"name": name, "image": "none", "resources": {"limits": limits}, "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}],
                    "ports": [{"containerPort": 80}, {"containerPort": 80, "name": "again"}]}

        made = kube.ask("POST", path_of("Pod", "default") + "?dryRun=All", {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "annotations": {"gflow/gpu": gpu} if gpu else {}},
            "spec": {"schedulerName": scheduler, "containers": [named(one) for one in containers], "initContainers": [named(one) for one in initContainers]}})
        has = {}
        for one in made["spec"]["containers"] + made["spec"].get("initContainers", []):
            has[one["name"]] = one["resources"].get("limits", {})
            assert one["resources"].get("requests", {}) == has[one["name"]], "what is asked for is what a scheduler counts"
            assert len(one["env"]) == len(one["ports"]) == 2
        return has

    return ask


ALL_CHOSEN = {"gflow/allocation": "1"}


def test_a_pod_that_asks_by_the_annotation_alone_asks_for_what_was_chosen(applied, asked):
    applied("allocation-policy.yaml")
    until_in_force(lambda: asked("main") == {"main": ALL_CHOSEN})
    limits = {"cpu": "4", "memory": "16Gi", "example.com/dongle": "1"}
    assert asked(("main", limits)) == {"main": {**limits, **ALL_CHOSEN}}
    assert asked("b", ("a", {"cpu": "1"})) == {"b": ALL_CHOSEN, "a": {"cpu": "1"}}, "of the first in the pod alone, and in their order"
    assert list(asked("b", "a")) == ["b", "a"]
    assert asked("main", initContainers=["before"]) == {"main": ALL_CHOSEN, "before": {}}
    assert asked("main", gpu="2(V100)") == {"main": ALL_CHOSEN}
    assert asked("main", gpu=None) == asked("main", scheduler="another") == asked("main", scheduler="default-scheduler") == {"main": {}}
    # Who says something of GPUs knows what he wants.
    assert asked("a", ("b", ALL_CHOSEN)) == {"a": {}, "b": ALL_CHOSEN}
    assert asked("a", initContainers=[("sidecar", ALL_CHOSEN)]) == {"a": {}, "sidecar": ALL_CHOSEN}
    assert asked(("main", {"gflow/allocation": "0"})) == {"main": {"gflow/allocation": "0"}}
    resources = re.findall(r'{"([^"]+)", "\w+"}', (ROOT / "src/kube/want.h").read_text().partition("kGpuResources")[2])
    assert len(resources) == 6
    for resource in resources:
        assert asked("a", ("b", {resource: "1"}), gpu="1") == {"a": {}, "b": {resource: "1"}}


@pytest.mark.parametrize("name", ["a-first", "gflow-allocation", "z-last"])
def test_it_asks_for_what_was_chosen_also_where_another_policy_made_it_its_pod(applied, asked, name):
    """Whichever of the two the API server asks first."""
    applied("allocation-policy.yaml", name)
    applied("admission-policy.yaml")
    until_in_force(lambda: asked("main", scheduler="default-scheduler") == {"main": ALL_CHOSEN})
    assert asked("main", scheduler="another") == {"main": {}}


ALLOCATION = '{"node":"n","devices":[{"resource":"nvidia.com/gpu","index":0,"share_parts":10000}]}'


def refusal(kube, method, path, body, token=ADMIN):
    """Why the API server does not do that; "" if it would."""
    try:
        kube.raw(method, path + "?dryRun=All", body, token)
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


@pytest.fixture
def token_on(kube, with_node_rights, with_driver):
    """Makes tokens of a service account, the plugin's, as a kubelet has them for a pod of its node."""

    def make(node, account=PLUGIN, namespace=NODE_SYSTEM):
        pod = kube.make({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"{account}-{node}", "namespace": namespace},
                         "spec": {"serviceAccountName": account, "nodeName": node, "containers": [{"name": "main", "image": "none"}]}})
        made.append((pod["metadata"]["name"], namespace))
        bound = {"apiVersion": "v1", "kind": "Pod", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
        return kube.ask("POST", f"{path_of('ServiceAccount', namespace)}/{account}/token", {
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"boundObjectRef": bound}})["status"]["token"]

    made = []
    yield make
    for name, namespace in made:
        kube.delete_pod(name, namespace)


def test_a_device_plugin_annotates_its_node_and_nothing_else(kube, token_on, applied):
    for name in ("own", "other"):
        kube.node(name, 2)
        kube.ask("PATCH", f"{path_of('Node')}/{name}", {"metadata": {"annotations": {"kept": "so", "gflow/devices": "{}"}, "labels": {"kept": "so"}}})
    token = token_on("own")
    applied("device-plugin-policy.yaml")

    def patch(change, node="own", token=token):
        return refusal(kube, "PATCH", f"{path_of('Node')}/{node}", change, token)

    def annotates(**annotations):
        return {"metadata": {"annotations": {name.replace("_", "/"): value for name, value in annotations.items()}}}

    of_another = "annotates the node that it runs on and no other"
    until_in_force(lambda: of_another in patch(annotates(gflow_devices="x"), "other"))
    assert patch(annotates(gflow_devices="x")) == patch(annotates(gflow_devices=None)) == ""
    assert of_another in patch(annotates(gflow_devices="x"), token=kube.token(PLUGIN, NODE_SYSTEM)), "a token of no pod names no node"
    more = [annotates(another="x"), annotates(kept="x"), annotates(kept=None), annotates(gflow_devices="x", kept="x"),
            {"metadata": {"labels": {"gpu-type": "H100"}}}, {"metadata": {"labels": {"kept": None}}}, {"metadata": {"finalizers": ["example.com/stays"]}},
            {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "other", "uid": "1"}]}},
            {"spec": {"unschedulable": True}}, {"spec": {"taints": [{"key": "a", "effect": "NoExecute"}]}}]
    for change in more:
        assert "changes the annotation gflow/devices of its node and nothing else" in patch(change), change
        assert patch(change, token=ADMIN) == "", "others are not meant"
    assert "forbidden" in refusal(kube, "PATCH", f"{path_of('Node')}/own/status", {"status": {"capacity": {"nvidia.com/gpu": "8"}}}, token)


def test_a_driver_of_claims_writes_the_slices_of_its_node_and_no_others(kube, token_on, applied):
    for name in ("own", "other"):
        kube.node(name, 2)
    token = token_on("own", DRIVER, CLAIMS_SYSTEM)
    applied("dra-driver-policy.yaml")
    path = path_of("ResourceSlice")

    def slice_of(node, driver="gpu.gflow", **more):
        return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": f"{node}-{driver}"},
                "spec": {"driver": driver, "nodeName": node, "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}, **more}}

    def make(body, token=token):
        return refusal(kube, "POST", path, body, token)

    of_others = "on the node that it runs on and no others"
    until_in_force(lambda: of_others in make(slice_of("other")))
    assert of_others in make(slice_of("own", "gpu.nvidia.com"))
    assert of_others in make(slice_of("own", pool={"name": "other", "generation": 1, "resourceSliceCount": 1}))
    assert "does not say on which node" in make(slice_of("own"), kube.token(DRIVER, CLAIMS_SYSTEM)), "a token of no pod names no node"
    assert make(slice_of("own")) == make(slice_of("other"), ADMIN) == ""
    for node, refused in (("own", False), ("other", True)):
        made = kube.make(slice_of(node))
        its = f"{path}/{made['metadata']['name']}"
        made["spec"]["pool"]["generation"] = 2
        for method, body in (("PUT", made), ("DELETE", None)):
            why = refusal(kube, method, its, body, token)
            assert of_others in why if refused else why == "", (method, node, why)
        kube.ask("DELETE", its)
