# SPDX-License-Identifier: Apache-2.0
"""Pods with ResourceClaims by gflow-kube against a kube-apiserver, with kube-scheduler beside it as the oracle of which devices selectors take."""

import signal

import pytest
from cluster import path_of
from kube_scheduler import end_lease, node_of, pods_of, until, until_bound, until_in_force, until_told

DRIVER = "gpu.example.com"
CLASS = "gpu.example.com"


@pytest.fixture
def claims(kube):
    """A class of devices, and the controller that makes claims of templates and takes away whom they are reserved for."""
    kube.start_controllers("resourceclaim-controller")
    kube.make({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": CLASS},
               "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]}})
    yield kube
    kube.ask("DELETE", f"{path_of('Pod', 'default')}?gracePeriodSeconds=0")
    for kind in ("ResourceClaimTemplate", "ResourceClaim"):
        kube.ask("DELETE", path_of(kind, "default"))
    until(kube, lambda left: not left, kind="ResourceClaim")
    kube.ask("DELETE", path_of("ResourceSlice"))
    kube.ask("DELETE", f"{path_of('DeviceClass')}/{CLASS}")
    kube.stop_controllers()


def gpu(name, memory="80Gi", model="H200", shared=False, **attributes):
    told = {"model": {"string": model}, **{key: {"int": value} for key, value in attributes.items()}}
    return {"name": name, "attributes": told, "capacity": {"memory": {"value": memory}},
            **({"allowMultipleAllocations": True} if shared else {})}


def make_node(kube, name, *devices, **labels):
    kube.node(name, 0, **labels)
    kube.make({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": name},
               "spec": {"driver": DRIVER, "nodeName": name, "pool": {"name": name, "generation": 1, "resourceSliceCount": 1}, "devices": list(devices)}})


def spec(count=1, memory=None, selectors=(), **more):
    exactly = {"deviceClassName": CLASS, "count": count, **({"capacity": {"requests": {"memory": memory}}} if memory else {}),
               **({"selectors": [{"cel": {"expression": one}} for one in selectors]} if selectors else {})}
    return {"devices": {"requests": [{"name": "gpu", "exactly": exactly}], **more}}


def make_template(kube, name, asked):
    kube.make({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": name, "namespace": "default"},
               "spec": {"spec": asked}})


def make_claim(kube, name, asked):
    kube.make({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name, "namespace": "default"}, "spec": asked})


def make_pod(kube, name, template=None, claim=None, scheduler="gflow", **more):
    of = {"resourceClaimTemplateName": template} if template else {"resourceClaimName": claim}
    kube.make({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
               "spec": {"schedulerName": scheduler, "terminationGracePeriodSeconds": 0, "resourceClaims": [{"name": "gpus", **of}],
                        "containers": [{"name": "main", "image": "none", "resources": {"claims": [{"name": "gpus"}]}}], **more}})


def claims_of(kube):
    return {one["metadata"]["name"]: one for one in kube.ask("GET", path_of("ResourceClaim", "default"))["items"]}


def claim_of(kube, pod):
    """Of a pod by its template."""
    name = pods_of(kube)[pod]["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
    return claims_of(kube)[name]


def results(claim):
    return claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])


def devices_of(kube, pod):
    return {one["device"] for one in results(claim_of(kube, pod))}


def given_twice(kube):
    """Devices that two claims have, of those that one may have."""
    had = [(one["pool"], one["device"]) for claim in claims_of(kube).values() for one in results(claim) if "shareID" not in one]
    return len(had) != len(set(had))


def test_claims_of_templates_are_given_devices_with_their_nodes(claims, start):
    make_node(claims, "m", gpu("a"), gpu("b"))
    make_node(claims, "n", gpu("c"))
    make_template(claims, "one", spec())
    make_template(claims, "two", spec(2))
    start()
    make_pod(claims, "pair", "two")
    until_bound(claims, "pair")
    make_pod(claims, "single", "one")
    until_bound(claims, "single")
    pods = pods_of(claims)
    assert (node_of(pods["pair"]), node_of(pods["single"])) == ("m", "n")
    assert devices_of(claims, "pair") == {"a", "b"} and not given_twice(claims)
    claim = claim_of(claims, "single")
    assert [one["name"] for one in claim["status"]["reservedFor"]] == ["single"]
    assert "resource.kubernetes.io/delete-protection" in claim["metadata"]["finalizers"]
    assert claim["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"][0]["matchFields"][0]["values"] == ["n"]

    make_pod(claims, "waits", "one")
    until_told(claims, "waits", f"0/2 nodes are available: 2 Insufficient devices of class {CLASS} for resourceclaim gpus.")
    claims.delete_pod("pair")
    until_bound(claims, "waits")


def test_a_claim_that_is_shared_has_its_pods_on_one_node(claims, start):
    make_node(claims, "m", gpu("a"))
    make_node(claims, "n", gpu("b"))
    make_claim(claims, "shared", spec())
    start()
    for i in range(4):
        make_pod(claims, f"p{i}", claim="shared")
    pods = until_bound(claims, *[f"p{i}" for i in range(4)])
    assert len({node_of(pod) for pod in pods.values()}) == 1
    assert len(claims_of(claims)["shared"]["status"]["reservedFor"]) == 4


def test_parts_of_a_device_are_given_to_several(claims, start):
    make_node(claims, "n", gpu("a", shared=True))
    make_template(claims, "part", spec(memory="30Gi"))
    start()
    for name in ("p0", "p1"):
        make_pod(claims, name, "part")
    until_bound(claims, "p0", "p1")
    make_pod(claims, "p2", "part")
    until_told(claims, "p2", "Insufficient devices")
    taken = [results(claim_of(claims, name))[0] for name in ("p0", "p1")]
    assert [one["consumedCapacity"] for one in taken] == [{"memory": "30Gi"}] * 2
    assert len({one["shareID"] for one in taken}) == 2


def test_who_may_not_read_claims_says_so(claims, start):
    """As after an upgrade for which the rights were not applied anew."""
    make_node(claims, "n", gpu("a"))
    make_template(claims, "one", spec())
    path = f"{path_of('ClusterRole')}/gflow-kube"
    role = claims.ask("GET", path)
    rules = [rule for rule in role["rules"] if rule["apiGroups"] != ["resource.k8s.io"]]
    claims.ask("PATCH", path, {"rules": rules})
    try:
        start()
        make_pod(claims, "p", "one")
        claims.make({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "other", "namespace": "default"},
                     "spec": {"schedulerName": "gflow", "containers": [{"name": "main", "image": "none"}]}})
        until_bound(claims, "other")
        until_told(claims, "p", "resourceclaims cannot be read")
    finally:
        claims.ask("PATCH", path, {"rules": role["rules"]})
    until_bound(claims, "p")


def test_one_that_is_killed_gives_nothing_twice(claims, start):
    for name in ("m", "n"):
        make_node(claims, name, *[gpu(f"{name}{i}") for i in range(4)])
    make_template(claims, "one", spec())
    running = start()
    for i in range(12):
        make_pod(claims, f"p{i:02}", "one")
        if i % 4 == 1:
            until(claims, lambda found: any(results(one) for one in found.values()), kind="ResourceClaim")
            running.end(signal.SIGKILL)
            end_lease(claims)
            running = start()
    until(claims, lambda pods: sum(bool(node_of(pod)) for pod in pods.values()) == 8)
    assert not given_twice(claims)
    for name, pod in pods_of(claims).items():
        if node_of(pod):
            assert {one["pool"] for one in results(claim_of(claims, name))} == {node_of(pod)}


GPU = f'device.attributes["{DRIVER}"]'
MEMORY = f'device.capacity["{DRIVER}"].memory'
SELECTORS = [
    f'{GPU}.model == "H200"',
    f'{GPU}.model.startsWith("H") && {GPU}.index > 1',
    f"{GPU}.index in [1, 3]",
    f'{MEMORY}.isGreaterThan(quantity("80Gi"))',
    f'{MEMORY}.compareTo(quantity("40960Mi")) == 0',
    f"has({GPU}.extra) && {GPU}.extra == 7",
    f"cel.bind(gpu, {GPU}, gpu.index % 2 == 1 && !gpu.model.contains('A100'))",
    f'{GPU}.?extra.orValue(0) == 7 || {GPU}.model.lowerAscii() == "none"',
    f'{GPU}.model == "none"',
    f'"{DRIVER}" in device.attributes && !("x" in device.attributes)',
    "device.allowMultipleAllocations",
    f"[{GPU}.index].exists(i, i == 2)",
]


@pytest.mark.parametrize("selector", SELECTORS)
def test_selectors_take_the_devices_that_they_take_by_kube_scheduler(claims, start, kube_scheduler, selector):
    """All that it takes, so that the order does not matter."""
    devices = [gpu("d0", index=0), gpu("d1", "40Gi", "A100", index=1), gpu("d2", "141Gi", index=2, extra=7), gpu("d3", "40Gi", index=3)]
    make_node(claims, "ours", *devices, by="gflow")
    make_node(claims, "theirs", *devices, by="default-scheduler")
    asked = spec(selectors=[selector])
    exactly = asked["devices"]["requests"][0]["exactly"]
    exactly["allocationMode"] = "All"
    del exactly["count"]
    make_template(claims, "all", asked)
    start()
    for scheduler in ("gflow", "default-scheduler"):
        make_pod(claims, scheduler, "all", scheduler=scheduler, nodeSelector={"by": scheduler})

    def are_decided(pods):
        return all(node_of(pod) or any(one["type"] == "PodScheduled" and one["status"] == "False" and "not created" not in one.get("message", "")
                                       and "waiting" not in one.get("message", "") for one in pod["status"].get("conditions", ()))
                   for pod in pods.values())

    until(claims, lambda pods: len(pods) == 2 and are_decided(pods))
    found = {}

    def are_the_same():
        found.update({name: devices_of(claims, name) for name in ("gflow", "default-scheduler")})
        return found["gflow"] == found["default-scheduler"]

    until_in_force(are_the_same)
    assert found["gflow"] == found["default-scheduler"], found
