# SPDX-License-Identifier: Apache-2.0
"""gflow-kube against a kube-apiserver, as the service account of packaging/kubernetes."""

import base64
import contextlib
import json
import signal
import time
import urllib.error

import pytest
from cluster import path_of
from kube_scheduler import (
    SYSTEM,
    chosen,
    contradictions,
    end_lease,
    make_budget,
    make_limits,
    make_pod,
    node_of,
    pods_of,
    told,
    until,
    until_bound,
    until_events,
    until_told,
)

GROUPS = ("scheduling.k8s.io", "scheduling.run.ai", "scheduling.volcano.sh", "scheduling.x-k8s.io")  # whose PodGroups it reads
DEDICATED = {"key": "team", "value": "vision", "effect": "NoSchedule"}


def test_pods_get_the_devices_that_they_ask_for(kube, start):
    kube.node("v", 4, "V100")
    kube.node("a", 4, "A100", **{"nvidia.com/gpu.memory": "40960"})
    start()
    make_pod(kube, "model", "2(V100)")
    make_pod(kube, "part", "8G,0.5(A100)")
    make_pod(kube, "count", None, 2)
    make_pod(kube, "plain", cpu="500m", memory="1Gi")
    pods = until_bound(kube, "model", "part", "count", "plain")
    assert node_of(pods["model"]) == "v" and len(chosen(pods["model"])) == 2
    assert node_of(pods["part"]) == "a"
    assert chosen(pods["part"])[0][2] == 5000 and '"memory_bytes":8589934592' in pods["part"]["metadata"]["annotations"]["gflow/allocation"]
    assert [parts for _, _, parts in chosen(pods["count"])] == [10_000, 10_000]
    assert chosen(pods["plain"]) == []
    scheduled = [one for one in pods["model"]["status"]["conditions"] if one["type"] == "PodScheduled"]
    assert scheduled[0]["status"] == "True"


def test_two_halves_share_a_device_and_a_third_waits(kube, start):
    kube.node("v", 1, "V100")
    start()
    for name in ("x", "y"):
        make_pod(kube, name, "0.5")
    pods = until_bound(kube, "x", "y")
    assert chosen(pods["x"]) == chosen(pods["y"]) == [("nvidia.com/gpu", 0, 5000)]
    make_pod(kube, "z", "0.5")
    until_told(kube, "z", "Insufficient share of a GPU")
    kube.delete_pod("x")
    until_bound(kube, "z")


def test_why_a_pod_waits_is_told(kube, start):
    kube.node("full", 1, "V100")
    kube.node("cordoned", 4, unschedulable=True)
    kube.node("dedicated", 4, taints=[DEDICATED])
    kube.node("other", 4, "A100")
    start()
    make_pod(kube, "first", "1(V100)")
    until_bound(kube, "first")
    make_pod(kube, "second", "1(V100)")
    text = until_told(kube, "second", "nodes are available")
    assert text == ("0/4 nodes are available: "
                    "1 Insufficient nvidia.com/gpu, 1 node(s) had too few GPUs of the model, "
                    "1 node(s) had untolerated taint(s), 1 node(s) were unschedulable.")
    events = until_events(kube, "second")
    assert [(one["reason"], one["type"], one["note"]) for one in events] == [("FailedScheduling", "Warning", text)]
    assert [one["reason"] for one in until_events(kube, "first")] == ["Scheduled"]


@pytest.mark.parametrize(("spec", "node"), [
    ({}, "plain"),
    ({"nodeSelector": {"disk": "ssd"}}, "ssd"),
    ({"tolerations": [{"key": "team", "operator": "Equal", "value": "vision", "effect": "NoSchedule"}], "nodeSelector": {"of": "vision"}}, "vision"),
    ({"tolerations": [{"operator": "Exists"}], "nodeSelector": {"of": "cordoned"}}, "cordoned"),
    ({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "disk", "operator": "Exists"}, {"key": "speed", "operator": "Gt", "values": ["9"]}]}]}}}}, "ssd"),
    ({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["ssd"]}]}]}}}}, "ssd"),
    ({"nodeSelector": {"of": "nothing"}}, None),
    ({"nodeSelector": {"of": "vision"}}, None),
    ({"nodeSelector": {"of": "cordoned"}}, None),
])
def test_nodes_are_those_that_a_pod_allows_and_that_allow_it(kube, start, spec, node):
    kube.node("cordoned", 1, unschedulable=True, of="cordoned")
    kube.node("vision", 1, taints=[DEDICATED, {"key": "old", "effect": "PreferNoSchedule"}], of="vision")
    if node:
        kube.node("ssd", 1, disk="ssd", speed="10")
    if node != "ssd":
        kube.node("plain", 1)
    start()
    make_pod(kube, "p", None, 1, **spec)
    if node is None:
        assert told(until(kube, lambda pods: told(pods["p"]))["p"]).startswith("0/3 nodes are available: ")
    else:
        assert node_of(until_bound(kube, "p")["p"]) == node


def test_cpus_and_memory_are_counted_as_kubernetes_counts_them(kube, start):
    kube.node("n", 0, None)  # 8 CPUs, 32Gi
    start()
    make_pod(kube, "first", containers=[
        {"name": "a", "image": "none", "resources": {"requests": {"cpu": "2500m", "memory": "1Gi"}}},
        {"name": "b", "image": "none", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}],
        initContainers=[{"name": "i", "image": "none", "resources": {"limits": {"cpu": "6500m"}}}])
    until_bound(kube, "first")
    make_pod(kube, "second", cpu="1501m")
    assert until_told(kube, "second", "cpu") == "0/1 nodes are available: 1 Insufficient cpu."
    make_pod(kube, "third", cpu="1500m", memory="30Gi")
    until_bound(kube, "third")
    make_pod(kube, "fourth", memory="1Mi")
    assert until_told(kube, "fourth", "memory") == "0/1 nodes are available: 1 Insufficient memory."
    kube.end_pod("first")
    until_bound(kube, "second", "fourth")
    kube.delete_pod("first")


def test_what_the_engine_does_not_count_keeps_a_node_closed(kube, start):
    """Numbers of pods, further resources and host ports; in one decision there is room for all."""
    kube.make({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"},
               "status": {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "4", "example.com/link": "1"}}})
    for name in ("a", "b", "c"):
        make_pod(kube, name, containers=[{"name": "main", "image": "none", "resources": {}, "ports": [{"containerPort": 80, "hostPort": 80}]}])
    for name in ("d", "e"):
        make_pod(kube, name, containers=[{"name": "main", "image": "none", "resources": {"limits": {"example.com/link": "1"}}}])
    start()
    pods = until(kube, lambda pods: sum(bool(node_of(pod)) for pod in pods.values()) == 2 and sum(bool(told(pod)) for pod in pods.values()) == 3)
    waits = sorted(told(pod) for pod in pods.values() if told(pod))
    assert waits == ["0/1 nodes are available: 1 Insufficient example.com/link.",
                     *["0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports."] * 2]
    for i in range(3):
        make_pod(kube, f"more-{i}")
    until(kube, lambda pods: sum("Too many pods" in (told(pod) or "") for name, pod in pods.items() if name.startswith("more")) == 1)


@pytest.mark.parametrize(("spec", "gpu", "count", "text"), [
    ({}, "1.5", 0, "a job has whole GPUs or a part of one"),
    ({}, "0.5", 1, "gflow/gpu asks for 0.5 and its containers for 1 GPUs"),
    ({"resourceClaims": [{"name": "r", "resourceClaimName": "c"}]}, None, 1, 'resourceclaim "c" not found'),
    ({"resourceClaims": [{"name": "r", "resourceClaimTemplateName": "t"}]}, None, 1, 'resourceclaim for "r" not created yet'),
])
def test_what_cannot_be_judged_is_not_placed(kube, start, spec, gpu, count, text):
    kube.node("n", 4)
    start()
    make_pod(kube, "p", gpu, count, **spec)
    until_told(kube, "p", text)
    assert not node_of(pods_of(kube)["p"])


def test_pods_of_others_are_left_alone_and_what_they_have_is_theirs(kube, start):
    kube.node("n", 4)
    kube.pod("theirs", 3, "n")
    make_pod(kube, "waits", None, 1, scheduler="default-scheduler")
    start()
    make_pod(kube, "one", None, 1)
    make_pod(kube, "two", None, 1)
    pods = until(kube, lambda pods: sorted((bool(node_of(pods[name])), bool(told(pods[name]))) for name in ("one", "two")) == [(False, True), (True, False)])
    assert not node_of(pods["waits"]) and not told(pods["waits"])
    kube.delete_pod("theirs")
    until_bound(kube, "one", "two")


def test_nodes_come_change_and_go(kube, start):
    start()
    make_pod(kube, "p", "1(V100)")
    assert until_told(kube, "p", "0/0") == "0/0 nodes are available: there are none."
    kube.node("n", 1, "A100")
    until_told(kube, "p", "0/1 nodes are available: 1 node(s) had too few GPUs of the model.")
    kube.ask("DELETE", "/api/v1/nodes/n")
    kube.node("m", 1, "V100", unschedulable=True)
    until_told(kube, "p", "unschedulable")
    kube.ask("PATCH", "/api/v1/nodes/m", {"spec": {"unschedulable": None}})
    assert node_of(until_bound(kube, "p")["p"]) == "m"


def test_a_gate_a_change_and_a_deletion_are_heard_of(kube, start):
    kube.node("n", 2)
    start()
    make_pod(kube, "gated", None, 1, schedulingGates=[{"name": "example.com/wait"}])
    make_pod(kube, "much", None, 3)
    until_told(kube, "much", "Insufficient nvidia.com/gpu")
    assert not node_of(pods_of(kube)["gated"])
    kube.delete_pod("much")
    kube.ask("PATCH", f"{path_of('Pod', 'default')}/gated", {"spec": {"schedulingGates": None}})
    until_bound(kube, "gated")
    make_pod(kube, "asks", "4")
    until_told(kube, "asks", "Insufficient")
    kube.ask("PATCH", f"{path_of('Pod', 'default')}/asks", {"metadata": {"annotations": {"gflow/gpu": "1"}}})
    until_bound(kube, "asks")


def test_higher_priorities_go_first(kube, start, classes):
    kube.node("n", 1)
    make_pod(kube, "first", None, 1, priorityClassName="low")
    make_pod(kube, "second", None, 1, priorityClassName="high")
    start()
    pods = until_bound(kube, "second")
    assert not node_of(pods["first"])


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_another_goes_on_where_one_ended(kube, start, how):
    """It keeps nothing: what was given out is known from the cluster."""
    kube.node("a", 4)
    kube.node("b", 4)
    one = start()
    for i in range(3):
        make_pod(kube, f"before-{i}", "2")
    make_pod(kube, "half", "0.5")
    before = until_bound(kube, "half", *(f"before-{i}" for i in range(3)))
    one.end(how)
    if how == signal.SIGKILL:
        end_lease(kube)
    make_pod(kube, "after", "2")
    make_pod(kube, "other", "0.5")
    start()
    pods = until_bound(kube, "other")
    assert until_told(kube, "after", "Insufficient nvidia.com/gpu") == "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
    assert {name: chosen(pods[name]) for name in before} == {name: chosen(pod) for name, pod in before.items()}
    assert chosen(pods["other"]) == chosen(pods["half"]) and node_of(pods["other"]) == node_of(pods["half"])


@pytest.mark.parametrize("gpu", ["1", "0.5"])
def test_a_pod_whose_annotation_was_removed_keeps_its_gpu(kube, start, gpu):
    kube.node("n", 1)
    one = start()
    uid = make_pod(kube, "a", gpu)["metadata"]["uid"]
    until_bound(kube, "a")
    kube.ask("PATCH", f"{path_of('Pod', 'default')}/a", {"metadata": {"annotations": {"gflow/allocation": None}}})
    one.end()
    other = start()
    make_pod(kube, "b", "1")
    until_told(kube, "b", "Insufficient nvidia.com/gpu")
    assert other.says("default/a: it is on n without a word of which GPUs it has there (gflow/allocation): 1 of the node is given to nobody else")
    assert until_events(kube, "a", uid, "AllocationUnknown")[0]["type"] == "Warning"
    kube.delete_pod("a")
    until_bound(kube, "b")


def test_a_lease_lasts_as_long_as_leases_do_whatever_is_written_there(kube, start):
    kube.node("n", 1)
    kube.make({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "gflow-kube", "namespace": SYSTEM},
               "spec": {"holderIdentity": "gone", "leaseDurationSeconds": 2**31 - 1, "renewTime": "2026-01-01T00:00:00.000000Z"}})
    make_pod(kube, "p", "1")
    one = start("--lease-duration", "3")
    assert one.says("gone has the lease")
    until_bound(kube, "p")


def test_one_of_two_decides_and_the_other_takes_over(kube, start):
    kube.node("n", 8)
    one = start()
    make_pod(kube, "a", "1")
    until_bound(kube, "a")
    two = start()
    make_pod(kube, "b", "1")
    until_bound(kube, "b")
    assert one.says("bound default/b") and "bound" not in two.said()
    one.end(signal.SIGKILL)
    make_pod(kube, "c", "1")
    until_bound(kube, "c")
    assert two.says("bound default/c")


def test_kills_in_the_middle_give_nothing_out_twice(kube, start):
    """While pods come and end, the scheduler is killed again and again, and so is the API server."""
    for name in ("a", "b", "c"):
        kube.node(name, 4)
    wants = ["1", "0.5", "2", "0.25", "1"]
    made = 0
    for turn in range(8):
        one = start()
        for _ in range(6):
            make_pod(kube, f"p-{made}", wants[made % len(wants)])
            made += 1
        until(kube, lambda pods: any(node_of(pod) for pod in pods.values()))
        if turn == 4:
            kube.stop_apiserver()
            kube.up()
        one.end(signal.SIGKILL)
        end_lease(kube)
        assert contradictions(kube) == []
        for name, pod in list(pods_of(kube).items())[::2]:
            if node_of(pod):
                kube.delete_pod(name)
    start()
    while True:
        pods = until(kube, lambda pods: all(node_of(pod) or told(pod) for pod in pods.values()))
        assert contradictions(kube) == []
        bound = [name for name, pod in pods.items() if node_of(pod)]
        if len(bound) == len(pods):
            return
        for name in bound:
            kube.delete_pod(name)
        until(kube, lambda pods: any(node_of(pod) for pod in pods.values()))


def test_the_server_comes_back_and_nothing_is_lost(kube, start):
    """All watches break, and what they go on from is forgotten (410)."""
    kube.node("n", 4)
    one = start("--lease-duration", "60")
    make_pod(kube, "before", "1")
    until_bound(kube, "before")
    kube.stop_apiserver()
    kube.up()
    make_pod(kube, "after", "1")
    until_bound(kube, "after")
    assert one.is_running() and one.says("bound default/after")
    one.end()  # gives its lease up: the next test need not wait for it


def test_a_pod_that_is_deleted_while_it_is_bound_gives_its_device_back(kube, start):
    kube.node("n", 1)
    start()
    for i in range(20):
        make_pod(kube, f"p-{i}", "1")
        kube.delete_pod(f"p-{i}")
    make_pod(kube, "last", "1")
    until_bound(kube, "last")


def test_a_binding_of_somebody_else_is_seen(kube, start):
    """Conflicts (409): another scheduler is faster."""
    kube.node("a", 1)
    kube.node("b", 1)
    start()
    for i in range(20):
        name = f"p-{i}"
        make_pod(kube, name, None, 1)
        with contextlib.suppress(urllib.error.HTTPError):
            kube.raw("POST", f"{path_of('Pod', 'default')}/{name}/binding", {
                "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"apiVersion": "v1", "kind": "Node", "name": "a"}})
        until_bound(kube, name)
        kube.delete_pod(name)
    make_pod(kube, "last-a", None, 1)
    make_pod(kube, "last-b", None, 1)
    until_bound(kube, "last-a", "last-b")


def test_its_rights_are_those_that_it_uses(kube, start):
    kube.node("n", 1)
    one = start()
    make_pod(kube, "p", "1")
    make_pod(kube, "q", "1")
    until_bound(kube, "p")
    until_told(kube, "q", "Insufficient")
    until_events(kube, "q")
    one.end()
    storage = (("", "persistentvolumeclaims"), ("", "persistentvolumes"), ("storage.k8s.io", "storageclasses"))
    devices = (("resource.k8s.io", "resourceslices"), ("resource.k8s.io", "deviceclasses"), ("resource.k8s.io", "resourceclaims"))
    granted = {*((verb, *kind) for verb in ("list", "watch") for kind in devices), *((verb, "", "configmaps") for verb in ("list", "watch", "get", "patch")), *((verb, *kind) for verb in ("list", "watch") for kind in storage),
               ("list", "", "nodes"), ("watch", "", "nodes"), ("list", "", "namespaces"), ("watch", "", "namespaces"),
               *((verb, group, "podgroups") for verb in ("list", "watch") for group in GROUPS), ("list", "", "pods"), ("watch", "", "pods"), ("get", "", "pods"),
               ("create", "", "pods/binding"), ("create", "", "pods/eviction"), ("patch", "", "pods/status"), ("create", "events.k8s.io", "events"),
               ("get", "coordination.k8s.io", "leases"), ("create", "coordination.k8s.io", "leases"), ("update", "coordination.k8s.io", "leases")}
    assert kube.asked_by("system:serviceaccount:gflow-system:gflow-kube") <= granted


def test_without_rights_it_says_what_is_missing(kube, start):
    with contextlib.suppress(urllib.error.HTTPError):
        kube.raw("POST", path_of("ServiceAccount", SYSTEM), {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "nobody", "namespace": SYSTEM}})
    one = start(account="nobody")
    assert one.says("apply packaging/kubernetes/rbac-scheduler.yaml") and "cannot get resource" in one.said()
    assert one.is_running() and one.end() == 0


def in_base64(path):
    return base64.b64encode(path.read_bytes()).decode()


def by_token_file(kube):
    (kube.root / "token").write_text(kube.token("gflow-kube", SYSTEM) + "\n")
    return {"tokenFile": "token"}  # beside the kubeconfig


def by_plugin(kube):
    credential = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": kube.token("gflow-kube", SYSTEM)}}
    (kube.root / "credential").write_text(json.dumps(credential))
    words = ["-c", 'case $KUBERNETES_EXEC_INFO in *ExecCredential*) test "$WHO" = me && cat "$0" ;; esac', str(kube.root / "credential")]
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "args": words, "env": [{"name": "WHO", "value": "me"}],
                     "interactiveMode": "Never"}}


def by_certificate(kube):
    certificate, key = kube.certificate("scheduler")
    for kind, group in (("ClusterRoleBinding", ""), ("RoleBinding", SYSTEM)):
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind.removesuffix("Binding"), "name": "gflow-kube"}
        with contextlib.suppress(urllib.error.HTTPError):
            kube.raw("POST", path_of(kind, group), {
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": "scheduler", **({"namespace": group} if group else {})},
                "roleRef": role, "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "scheduler"}]})
    return {"client-certificate": str(certificate), "client-key-data": in_base64(key)}


@pytest.mark.parametrize("who", [by_token_file, by_plugin, by_certificate])
def test_who_asks_is_what_a_kubeconfig_says(kube, start, who):
    kube.node("n", 1)
    one = start(user=who(kube))
    make_pod(kube, "p", "1")
    until_bound(kube, "p")
    one.end()


@pytest.mark.parametrize(("user", "text"), [
    ({"token": "wrong"}, "does not know who asks"),
    ({"exec": {"apiVersion": "v1", "command": "true"}}, "printed no ExecCredential"),
    ({"exec": {"apiVersion": "v1", "command": "no-such-program"}}, "is not installed here"),
    ({"client-certificate-data": "eA==", "client-key-data": "eA=="}, "do not go together"),
    ({"tokenFile": "nowhere"}, "nowhere"),
    ({"auth-provider": {"name": "old"}}, "'auth-provider' of a user is not supported"),
])
def test_what_is_wrong_with_a_kubeconfig_is_said(kube, start, user, text):
    one = start(user=user)
    assert one.end(signal.SIGCONT) != 0 and text in one.said()


def test_a_server_of_another_certificate_is_not_trusted(kube, start):
    config = kube.kubeconfig(kube.token("gflow-kube", SYSTEM), "distrusted")
    config.write_text(config.read_text().replace("certs/apiserver.crt", "clients.crt"))
    one = start("--kubeconfig", str(config))
    assert one.end(signal.SIGCONT) == 5 and "is not trusted" in one.said()


def test_higher_priorities_have_lower_ones_make_room(kube, start, classes):
    kube.node("n", 2)
    log = start("--preempt")
    for name in ("first", "last"):
        made = make_pod(kube, name, None, 1)
        until_bound(kube, name)
    make_pod(kube, "equal", None, 1)
    make_pod(kube, "vip", None, 1, priorityClassName="high")
    pods = until_bound(kube, "vip")
    assert sorted(pods) == ["equal", "first", "vip"]
    assert log.says("evicted default/last for a pod of default")
    assert until_events(kube, "last", made["metadata"]["uid"], "Preempted")


def test_a_pod_whose_class_never_preempts_waits(kube, start, classes):
    kube.node("n", 1)
    start("--preempt")
    make_pod(kube, "low", "1")
    until_bound(kube, "low")
    make_pod(kube, "polite", "1", priorityClassName="polite")
    until_told(kube, "polite", "0/1 nodes are available")
    assert "low" in pods_of(kube)
    kube.delete_pod("low")
    until_bound(kube, "polite")


def test_a_disruption_budget_is_kept(kube, start, classes):
    kube.node("n", 2)
    start("--preempt")
    for name in ("free", "kept"):
        make_pod(kube, name, "1")
        until_bound(kube, name)
        kube.raw("PATCH", f"{path_of('Pod', 'default')}/{name}", {"metadata": {"labels": {"app": name}}})
        kube.raw("PATCH", f"{path_of('Pod', 'default')}/{name}/status", {
                "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}})  # others may go in spite of a budget
    budget = make_budget(kube, "kept", 0, app="kept")
    try:
        make_pod(kube, "vip", "1", priorityClassName="high")
        pods = until_bound(kube, "vip")
        assert "kept" in pods and "free" not in pods
        make_pod(kube, "second", "1", priorityClassName="high")
        assert "Insufficient" in until_told(kube, "second", "0/1 nodes are available")
        assert "kept" in pods_of(kube)
    finally:
        kube.ask("DELETE", budget)


def test_who_makes_room_is_named_until_it_is_gone(kube, start, classes):
    kube.node("n", 1)
    start("--preempt")
    make_pod(kube, "slow", "1", terminationGracePeriodSeconds=60)
    until_bound(kube, "slow")
    make_pod(kube, "vip", "1", priorityClassName="high")
    assert "It waits for default/slow to leave, which make room for it." in until_told(kube, "vip", "slow")
    assert pods_of(kube)["slow"]["metadata"]["deletionTimestamp"]
    kube.delete_pod("slow")
    until_bound(kube, "vip")


def test_a_namespace_is_held_to_its_limit(kube, start):
    kube.node("v", 4, "V100")
    path = make_limits(kube, max_gpus_per_namespace="2", nonsense="1")
    try:
        scheduler = start()
        make_pod(kube, "first", "2")
        until_bound(kube, "first")
        make_pod(kube, "second", "1")
        text = until_told(kube, "second", "Its namespace")
        assert [one["reason"] for one in pods_of(kube)["second"]["status"]["conditions"]] == ["LimitReached"], "more nodes would not help"
        assert text == "1/1 nodes are available. Its namespace default holds 2 GPUs and may hold 2 at once."
        assert [one["note"] for one in until_events(kube, "second")] == [text]
        make_pod(kube, "never", "3")
        assert until_told(kube, "never", "may hold") == "It asks for 3 GPUs, and its namespace default may hold 2 at once."
        assert scheduler.says("configmap gflow-system/gflow-kube-limits: there is no limit 'nonsense', ignoring it"), scheduler.said()
        kube.ask("PATCH", path, {"data": {"max_gpus_per_namespace": "many"}})
        assert scheduler.says("max_gpus_per_namespace is not a number from 0 to 100000, keeping 2"), scheduler.said()
        kube.ask("PATCH", path, {"data": {"max_gpus_of.default": "3"}})
        until_bound(kube, "second")
        assert node_of(pods_of(kube)["first"]) == "v", "what runs goes on"
    finally:
        kube.ask("DELETE", path)
    kube.delete_pod("first")
    until_bound(kube, "never")


def test_a_limit_that_was_mistyped_before_it_started_is_told_not_to_be_in_force(kube, start):
    path = make_limits(kube, max_gpus_per_namespace="many")
    try:
        scheduler = start()
        assert scheduler.says("max_gpus_per_namespace is not a number from 0 to 100000, and there was none to keep"), scheduler.said()
        assert scheduler.says("configmap gflow-system/gflow-kube-limits: limits in force: none"), scheduler.said()
    finally:
        kube.ask("DELETE", path)
