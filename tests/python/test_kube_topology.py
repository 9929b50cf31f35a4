# SPDX-License-Identifier: Apache-2.0
"""Gangs in racks, by gflow-kube against a kube-apiserver: what their annotations ask for, what is said, and a scheduler that is killed."""

import signal

import pytest
from kube_scheduler import end_lease, make_limits, make_member, node_of, pods_of, until_bound, until_told

BLOCK = "example.com/topology-block"
RACK = "example.com/topology-rack"


@pytest.fixture
def racks(kube):
    """Rack 1 of block a has two nodes of two GPUs, rack 2 has four; and so rack 1 of block b has one."""
    path = make_limits(kube, topology_levels=f"{BLOCK}, {RACK}")
    for name, block, rack in [("a1", "a", "1"), ("a2", "a", "1"), ("a3", "a", "2"), ("a4", "a", "2"), ("a5", "a", "2"), ("a6", "a", "2"),
                              ("b1", "b", "1")]:
        kube.node(name, 2, **{BLOCK: block, RACK: rack})
    yield path
    kube.ask("DELETE", path)


def make_gang(kube, names, size=None, gpus=2, **says):
    near = {f"gflow/topology-{key}": level for key, level in says.items()}
    for name in names:
        make_member(kube, name, gpus, metadata={"annotations": {"gflow/gang": "train", "gflow/gang-size": str(size or len(names)), **near}})


def places(kube, names):
    pods = pods_of(kube)
    return {node_of(pods[name]) for name in names}


def test_a_gang_is_in_one_rack(kube, start, racks):
    start()
    make_gang(kube, ["a", "b"], required="rack")
    until_bound(kube, "a", "b")
    assert places(kube, ["a", "b"]) == {"a1", "a2"}, "the smallest that holds both"


def test_a_gang_waits_for_a_rack_and_says_so(kube, start, racks):
    start()
    names = ["a", "b", "c", "d", "e"]
    make_gang(kube, names, required=RACK)
    assert f"5 pods of its gang train start together in one rack ({RACK}), and the one with most room has room for 4." in until_told(
        kube, "a", "room for 4")
    assert places(kube, names) == {None}
    kube.node("a7", 2, **{BLOCK: "a", RACK: "2"})
    until_bound(kube, *names)
    assert places(kube, names) == {"a3", "a4", "a5", "a6", "a7"}


def test_a_gang_that_only_prefers_a_rack_goes_to_few(kube, start, racks):
    start()
    names = ["a", "b", "c", "d", "e"]
    make_gang(kube, names, preferred="rack")
    until_bound(kube, *names)
    assert places(kube, names) < {"a1", "a2", "a3", "a4", "a5", "a6"}, "in one block, where no rack holds all"


def test_a_level_that_there_is_not_is_said(kube, start, racks):
    start()
    make_gang(kube, ["a"], required="row")
    assert until_told(kube, "a", "is 'row'").endswith(
        f"gflow/topology-required is 'row', which is not one of the levels of ConfigMap gflow-kube-limits: {BLOCK}, {RACK}.")
    kube.ask("PATCH", racks, {"data": {"topology_levels": f"{BLOCK}, {RACK}, row"}})
    assert f"one row (row), and no node has all of {BLOCK}, {RACK}, row." in until_told(kube, "a", "one row")


def test_a_pod_made_anew_goes_to_the_rack_of_its_gang_after_a_kill(kube, start, racks):
    scheduler = start()
    make_gang(kube, ["a", "b"], required="rack")
    until_bound(kube, "a", "b")
    lost = node_of(pods_of(kube)["b"])
    scheduler.end(signal.SIGKILL)
    kube.delete_pod("b")
    make_gang(kube, ["c"], size=2, required="rack")
    end_lease(kube)
    start()
    until_bound(kube, "c")
    assert node_of(pods_of(kube)["c"]) == lost
