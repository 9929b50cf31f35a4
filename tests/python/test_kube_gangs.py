# SPDX-License-Identifier: Apache-2.0
"""Pods that start together, by gflow-kube against a kube-apiserver: as they say themselves, and as PodGroups of other APIs say."""

import signal

import pytest
from kube_scheduler import end_lease, make_limits, make_member, node_of, pods_of, told, until, until_bound, until_told

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
#: Of each API with PodGroups that Kubernetes does not serve itself: its version, and what a pod says of its group.
APIS = {
    "scheduling.x-k8s.io": ("v1alpha1", {"labels": {"scheduling.x-k8s.io/pod-group": "train"}}),
    "scheduling.volcano.sh": ("v1beta1", {"annotations": {"scheduling.k8s.io/group-name": "train"}}),
    "scheduling.run.ai": ("v2alpha2", {"annotations": {"pod-group-name": "train"}}),
}


def make_crd(kube, group, version):
    """As little of it as the API server takes."""
    kube.ask("POST", CRDS, {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {
            "name": f"podgroups.{group}",
            **({"annotations": {"api-approved.kubernetes.io": "unapproved, for a test"}} if group.endswith("k8s.io") else {})},
        "spec": {"group": group, "scope": "Namespaced", "names": {"kind": "PodGroup", "plural": "podgroups"}, "versions": [{
            "name": version, "served": True, "storage": True,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}})


@pytest.fixture
def crds(kube):
    made = []

    def make(group, version):
        make_crd(kube, group, version)
        made.append(group)

    yield make
    for group in made:
        kube.ask("DELETE", f"{CRDS}/podgroups.{group}")


def test_pods_of_a_gang_start_together(kube, start):
    for name in ("n0", "n1"):
        kube.node(name, 2)
    scheduler = start()
    make_member(kube, "a", size=3)
    assert "3 pods of its gang train start together, of which 1 waits." in until_told(kube, "a", "gang")
    make_member(kube, "b", size=3)
    make_member(kube, "c", 2, size=3)
    until_bound(kube, "a", "b", "c")
    assert scheduler.is_running()


def test_a_gang_without_room_holds_nothing(kube, start):
    kube.node("n0", 4)
    start()
    make_member(kube, "other", 2)
    until_bound(kube, "other")
    for name in ("a", "b", "c"):
        make_member(kube, name, size=3)
    text = until_told(kube, "c", "there is room for 2")
    assert text == "1/1 nodes are available. 3 pods of its gang train start together, and there is room for 2."
    make_member(kube, "small")
    until_bound(kube, "small")
    assert not any(node_of(pods_of(kube)[name]) for name in ("a", "b", "c"))
    kube.delete_pod("other")
    until_bound(kube, "a", "b", "c")


def test_a_size_that_is_none_is_said(kube, start):
    kube.node("n0", 4)
    start()
    make_member(kube, "a", metadata={"annotations": {"gflow/gang": "train", "gflow/gang-size": "many"}})
    make_member(kube, "b", metadata={"annotations": {"gflow/gang": "train"}})
    assert until_told(kube, "a", "gang-size") == "gflow/gang-size is 'many', and no number from 1 to 1000000"
    assert until_told(kube, "b", "gang-size") == "gflow/gang says with whom it starts, and gflow/gang-size is missing, which says how many they are"


@pytest.mark.parametrize("group", APIS)
def test_a_pod_group_of_another_api_says_how_many_start(kube, start, crds, group):
    version, metadata = APIS[group]
    kube.node("n0", 4)
    start()
    for name in ("a", "b"):
        make_member(kube, name, metadata=metadata)
    assert until_told(kube, "a", "PodGroup") == (
        f"It starts together with others, and the PodGroup default/train of {group}/{version} that says with how many is not there.")
    crds(group, version)  # the API itself comes only now
    until_served(kube, f"/apis/{group}/{version}/namespaces/default/podgroups")
    kube.ask("POST", f"/apis/{group}/{version}/namespaces/default/podgroups", {
        "apiVersion": f"{group}/{version}", "kind": "PodGroup", "metadata": {"name": "train"}, "spec": {"minMember": 3}})
    until_told(kube, "a", "3 pods of its gang train start together, of which 2 wait.")
    make_member(kube, "c", metadata=metadata)
    until_bound(kube, "a", "b", "c")


def until_served(kube, path):
    """An API server serves what a definition names some time after it took that: nothing tells when but asking."""
    import contextlib
    import time
    import urllib.error

    end = time.monotonic() + 30
    while time.monotonic() < end:
        with contextlib.suppress(urllib.error.HTTPError):
            return kube.raw("GET", path)
        time.sleep(0.1)
    raise AssertionError(path)


def test_a_pod_group_of_kubernetes_says_how_many_start(kube, start):
    kube.node("n0", 4)
    start()
    group = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": {"name": "train"}}
    groups = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups"
    kube.ask("POST", groups, {**group, "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}}})
    try:
        for name in ("a", "b"):
            make_member(kube, name, spec={"schedulingGroup": {"podGroupName": "train"}})
        until_told(kube, "a", "3 pods of its gang train start together, of which 2 wait.")
        make_member(kube, "c", spec={"schedulingGroup": {"podGroupName": "train"}})
        until_bound(kube, "a", "b", "c")
    finally:
        kube.ask("DELETE", f"{groups}/train")


def test_pods_of_a_pod_group_keep_their_age_when_the_scheduler_starts_anew(kube, start, crds):
    crds("scheduling.volcano.sh", "v1beta1")
    groups = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
    until_served(kube, groups)
    kube.ask("POST", groups, {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": "train"}, "spec": {"minMember": 2}})
    kube.node("n0", 2)
    scheduler = start()
    make_member(kube, "other", 2)
    until_bound(kube, "other")
    for name in ("a", "b"):
        make_member(kube, name, metadata=APIS["scheduling.volcano.sh"][1])
    until_told(kube, "b", "there is room for 0")
    make_member(kube, "young", 2)
    until_told(kube, "young", "Insufficient")
    scheduler.end(signal.SIGKILL)
    end_lease(kube)
    assert start().says("known")
    kube.delete_pod("other")
    until_bound(kube, "a", "b")
    assert not node_of(pods_of(kube)["young"])


def test_a_gang_that_is_made_anew_waits_for_all_of_the_old_one(kube, start):
    """As controllers do: the new pods are there while the old ones still clean up."""
    kube.node("n0", 6)
    start()
    old = [f"old-{rank}" for rank in range(4)]
    for name in old:
        make_member(kube, name, size=4, spec={"terminationGracePeriodSeconds": 600})
    until_bound(kube, *old)
    for name in old:
        kube.ask("DELETE", f"/api/v1/namespaces/default/pods/{name}")
    new = [f"new-{rank}" for rank in range(4)]
    for name in new:
        make_member(kube, name, size=4)
    until_told(kube, "new-3", "4 pods of its gang train start together, and there is room for 2.")
    for name in old[:2]:
        kube.delete_pod(name)
    until_bound(kube, *new)
    for name in old[2:]:
        kube.delete_pod(name)


def test_the_limit_of_a_namespace_is_for_the_whole(kube, start):
    kube.node("n0", 4)
    limits = make_limits(kube, max_gpus_per_namespace="2")
    try:
        start()
        for name in ("a", "b", "c"):
            make_member(kube, name, size=3)
        text = until_told(kube, "c", "may hold 2 at once")
        assert "Its namespace default holds 0 GPUs and may hold 2 at once; 3 pods of its gang train start together." in text
        kube.ask("PATCH", limits, {"data": {"max_gpus_per_namespace": "3"}})
        until_bound(kube, "a", "b", "c")
    finally:
        kube.ask("DELETE", limits)


def test_a_gang_is_whole_whenever_the_scheduler_is_killed(kube, start):
    """Killed while the bindings of 64 pods are written, at another moment each time: the next one binds those that are left."""
    for number in range(8):
        kube.node(f"n{number}", 8)
    for turn in range(4):
        names = [f"t{turn}-{number}" for number in range(64)]
        scheduler = start()
        for name in names:
            make_member(kube, name, size=64, gang=f"train-{turn}")
        until(kube, lambda pods, names=names, least=1 + 16 * turn: sum(bool(node_of(pods[name])) for name in names if name in pods) >= least)
        scheduler.end(signal.SIGKILL)
        end_lease(kube)
        start()
        until_bound(kube, *names)
        for name in names:
            kube.delete_pod(name)
        end_lease(kube)


def test_without_the_right_to_read_pod_groups_the_rest_is_decided(kube, start):
    role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/gflow-kube"
    rules = kube.ask("GET", role)["rules"]
    kube.ask("PATCH", role, {"rules": [rule for rule in rules if rule["resources"] != ["podgroups"]]})
    try:
        kube.node("n0", 4)
        scheduler = start()
        make_member(kube, "a", metadata=APIS["scheduling.volcano.sh"][1])
        make_member(kube, "other")
        until_bound(kube, "other")
        assert "PodGroup" in told(until(kube, lambda pods: told(pods["a"]))["a"])
        assert scheduler.says("podgroups.scheduling.volcano.sh is forbidden")
    finally:
        kube.ask("PATCH", role, {"rules": rules})
