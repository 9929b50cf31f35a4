# SPDX-License-Identifier: Apache-2.0
"""The memory guard and the scheduler of the documents: the daemon's placement over what a program's client tells."""

import copy
import logging
from unittest.mock import Mock, patch

import gflow
import pytest
from gflow import (
    GPUMemoryGuard, GPUMemoryRequirement, GPUResource, GPUResourceParser, GPUScheduler, RequestError, SchedulingPolicy,
    SchedulingRequest,
)

pytestmark = pytest.mark.usefixtures("native")


def node(name, model="V100", count=4, **fields):
    return {
        "name": name, "ready": True, "schedulable": True, "labels": {"gpu-type": model} if model else {},
        "gpu_info": {"nvidia": {"allocatable": count, "available": count}}, "cpu_allocatable": 8.0, "memory_allocatable": 32.0,
        "used_cpu": 0.0, "used_memory": 0.0, **fields}


def pod(name, gpus, resource="nvidia.com/gpu", **fields):
    return {"node_name": name, "gpu_resources": {resource: gpus}, **fields}


class Cluster:
    """What a client of a cluster answers."""

    def __init__(self, nodes=(), pods=()):
        self.nodes = list(nodes)
        self.pods = list(pods)
        self.labels = []

    def get_nodes(self):
        return copy.deepcopy(self.nodes)

    def get_pods(self):
        return copy.deepcopy(self.pods)

    def label_node(self, names, labels):
        self.labels.append((names, labels))
        return True


def scheduler_of(cluster, policy=SchedulingPolicy.BALANCED):
    parser = GPUResourceParser()
    made = GPUScheduler(cluster, parser, GPUMemoryGuard(cluster, parser))
    made.scheduling_policy = policy
    return made


def wanted(text="1(V100)", gb=0.0, **fields):
    return SchedulingRequest(**{"pod_name": "pod", "namespace": "default", "gpu_requirement": text, "memory_requirement": gb, **fields})


def names(found):
    return [one["node"]["name"] for one in found]


def scores(cluster, policy, text="1(V100)"):
    made = scheduler_of(cluster, policy)
    found = made._find_suitable_nodes(wanted(text), made.gpu_parser.parse(text))
    return {one["node"]["name"]: one["score"] for one in found}


@pytest.mark.parametrize(("policy", "score"), [
    # With the pod there: 2 of 4 GPUs, 8 of 32 GB, 4 of 8 CPUs; nothing is on a GPU in part.
    (SchedulingPolicy.SPREAD, 0.4 * 50 + 0.3 * 75 + 0.2 * 50 + 0.1 * 100),
    (SchedulingPolicy.PACK, 0.4 * 50 + 0.3 * 25 + 0.2 * 50 + 0.1 * 100),
    (SchedulingPolicy.BALANCED, 0.4 * 91.6 + 0.3 * 83.4 + 0.2 * 91.6 + 0.1 * 100),
])
def test_the_score_is_the_documents_formula(policy, score):
    cluster = Cluster([node("n", used_memory=8.0, used_cpu=4.0)], [pod("n", 1)])
    assert scores(cluster, policy)["n"] == pytest.approx(score)
    made = scheduler_of(cluster, policy)
    assert made._calculate_node_score(cluster.nodes[0], made.gpu_parser.parse("1(V100)")) == pytest.approx(score)


def test_fragmentation_counts():
    """Half of a GPU beside another half leaves three whole ones; on an idle one, half of it is left over."""
    beside = Cluster([node("n")], [pod("n", 0.5)])
    alone = Cluster([node("n")], [pod("n", 1)])
    assert scores(beside, SchedulingPolicy.PACK, "0.5(V100)")["n"] == pytest.approx(0.4 * 25 + 0.1 * 100)
    assert scores(alone, SchedulingPolicy.PACK, "0.5(V100)")["n"] == pytest.approx(0.4 * 37.5 + 0.1 * 87.5)


def test_policies_choose():
    cluster = Cluster([node("empty"), node("half"), node("full")], [pod("half", 2), pod("full", 4)])
    assert scheduler_of(cluster, SchedulingPolicy.SPREAD).schedule_pod(wanted()) == "empty"
    assert scheduler_of(cluster, SchedulingPolicy.PACK).schedule_pod(wanted()) == "half"
    assert scheduler_of(cluster).scheduling_policy is SchedulingPolicy.BALANCED
    uneven = Cluster([node("idle", used_memory=32.0), node("even", used_cpu=4.0, used_memory=16.0)], [pod("even", 1)])
    assert scheduler_of(uneven).schedule_pod(wanted()) == "even"
    assert scheduler_of(Cluster([node("b"), node("a")])).schedule_pod(wanted()) == "b"  # of equals the first


def test_a_policy_by_its_name_and_one_that_is_none():
    made = scheduler_of(Cluster([node("n")]), "pack")
    assert made.schedule_pod(wanted()) == "n"
    for policy in ("fastest", "PACK", None):
        with pytest.raises(gflow.OptionError, match=f"scheduling_policy={policy!r} is none of spread, pack, balanced"):
            made.scheduling_policy = policy
    assert made.scheduling_policy is SchedulingPolicy.PACK


@pytest.mark.parametrize(("changed", "text", "fits"), [
    ({"ready": False}, "1", False),
    ({"schedulable": False}, "1", False),
    ({"labels": {}}, "1", True),
    ({"labels": {}}, "1(V100)", False),
    ({"labels": None}, "1", True),
    ({"labels": {"gpu-type": "Tesla V100-SXM2-32GB"}}, "1(V100)", True),
    ({"labels": {"nvidia.com/gpu.product": "Tesla-V100-SXM2-32GB"}}, "1(V100)", True),
    ({"labels": {"gpu-type": "A100"}}, "1(V100|A100)", True),
    ({"labels": {"gpu-type": "A100"}}, "1(V100)", False),
    ({"gpu_info": {"V100": {"allocatable": 2}, "A100": {"allocatable": 1}}}, "1(A100)", True),
    ({"gpu_info": {"V100": {"allocatable": 2}, "A100": {"allocatable": 1}}}, "2(A100)", False),
    ({"gpu_info": {"amd": {"allocatable": 4}}, "labels": {}}, "1", False),
    ({"gpu_info": {"amd": {"allocatable": 4}}, "labels": {}}, "1(amd)", True),
    ({"gpu_info": {}}, "1", False),
    ({"gpu_info": {}}, "0", True),
    ({}, "4(V100)", True),
    ({}, "5(V100)", False),
])
def test_which_nodes_suit(changed, text, fits):
    cluster = Cluster([node("n", **changed)])
    assert scheduler_of(cluster).schedule_pod(wanted(text)) == ("n" if fits else None)


def test_a_node_that_says_only_its_name_and_gpus():
    bare = {"name": "n", "gpu_info": {"nvidia": {"allocatable": 1}}}
    assert scheduler_of(Cluster([bare])).schedule_pod(wanted("1")) == "n"


def test_a_selector_and_what_is_told_of_a_node():
    cluster = Cluster([node("a", labels={"gpu-type": "V100", "zone": "a"}), node("b", labels={"gpu-type": "V100", "zone": "b"})],
                      [pod("b", 1.5)])
    made = scheduler_of(cluster)
    found = made._find_suitable_nodes(wanted(node_selector={"zone": "b"}), made.gpu_parser.parse("1(V100)"))
    assert names(found) == ["b"] and found[0]["available_gpus"] == 2.5 and found[0]["node"] == cluster.nodes[1]
    assert made._find_suitable_nodes(wanted(node_selector={"zone": "c"}), made.gpu_parser.parse("1(V100)")) == []


@pytest.mark.parametrize(("pods", "available"), [
    ([], 4.0), ([pod("n", 1)], 3.0), ([pod("n", "2")], 2.0), ([pod("n", 0.5), pod("n", 0.25)], 3.25), ([pod("other", 4)], 4.0),
    ([pod("n", 9)], 0.0), ([pod("n", 1, phase="Succeeded"), pod("n", 1, phase="Running")], 3.0), ([{"node_name": "n"}], 4.0),
])
def test_available_gpus(pods, available):
    cluster = Cluster([node("n")], pods)
    assert scheduler_of(cluster)._get_available_gpus(cluster.nodes[0]) == available


@pytest.mark.parametrize(("pods", "text", "fits"), [
    ([pod("n", 3)], "1", True),
    ([pod("n", 4)], "1", False),
    ([pod("n", 0.5)], "4", False),  # one is not whole any more
    ([pod("n", 0.5)], "3", True),
    ([pod("n", 3.5)], "0.5", True),
    ([pod("n", 3.5)], "0.6", False),
    ([pod("n", 0.5), pod("n", 0.5)], "3", True),  # both halves are of one
    ([pod("n", 0.6), pod("n", 0.6)], "3", False),
    ([pod("n", 4, "amd.com/gpu")], "1", False),  # a resource the node does not have: of which GPUs is not known
])
def test_what_pods_leave(pods, text, fits):
    cluster = Cluster([node("n")], pods)
    assert (scheduler_of(cluster).schedule_pod(wanted(text)) == "n") is fits


def test_memory_of_a_pod():
    """Of all its GPUs together, and really on the node it goes to."""
    cluster = Cluster([node("small", "V100-16G"), node("large", "V100-32G")])
    made = scheduler_of(cluster)
    assert made.schedule_pod(wanted("1(V100)", 20.0)) == "large"
    assert made.schedule_pod(wanted("2(V100)", 32.0)) == "small"
    assert made.schedule_pod(wanted("1(V100)", 33.0)) is None
    assert made.schedule_pod(wanted("20G,0.5", GPUMemoryRequirement(20.0))) == "large"
    unknown = scheduler_of(Cluster([node("n", None)]))
    assert unknown.schedule_pod(wanted("1", 64.0)) == "n"


def test_mocks_of_parser_and_guard():
    cluster, parser, guard = Mock(), Mock(), Mock()
    cluster.get_nodes.return_value = [node("n")]
    cluster.get_pods.return_value = []
    parser.parse_gpu_resource.return_value = Mock(gpu_num=1, gpu_type="V100")
    guard.validate_memory_requirement.return_value = True
    made = GPUScheduler(cluster, parser, guard)
    assert made.schedule_pod(wanted("anything", 16.0)) == "n"
    guard.validate_memory_requirement.assert_called_once_with("anything", 16.0)
    guard.validate_memory_requirement.return_value = False
    assert made.schedule_pod(wanted("anything", 16.0)) is None
    assert isinstance(made._calculate_node_score({"name": "x", "gpu_info": {"nvidia": {"allocatable": 4}}}, parser.parse_gpu_resource("")), float)


def test_a_client_that_was_told_nothing_and_one_that_raises(caplog):
    assert scheduler_of(Mock()).schedule_pod(wanted()) is None
    assert "get_nodes(): 没有返回列表" in caplog.text
    raising = Mock()
    raising.get_nodes.side_effect = ConnectionError("no route to the cluster")
    made = scheduler_of(raising)
    assert made.schedule_pod(wanted()) is None and made.memory_guard.find_suitable_nodes(1.0) == []
    assert made.memory_guard.reserve_gpu_memory("n", 1, 1.0) is False
    assert caplog.text.count("no route to the cluster") == 3
    made.add_scheduling_request(wanted())
    assert made.process_pending_requests() == [] and len(made.pending_requests) == 1


@pytest.mark.parametrize("broken", [
    {"gpu_info": {"nvidia": {"allocatable": -1}}}, {"gpu_info": {"nvidia": {"allocatable": "many"}}}, {"gpu_info": {"nvidia": 4}},
    {"gpu_info": ["nvidia"]}, {"cpu_allocatable": float("nan")}, {"name": None, "cpu_allocatable": "x"}, {"name": "good"},
    {"labels": ["gpu-type=V100"]}, {"labels": "V100"}, {"name": ["bad"]},
])
@pytest.mark.parametrize("selector", [None, {"gpu-type": "V100"}])
def test_a_node_that_makes_no_sense_is_left_out(broken, selector, caplog):
    cluster = Cluster([node("good"), {**node("bad"), **broken}])
    assert scheduler_of(cluster).schedule_pod(wanted("2(V100)", node_selector=selector)) == "good"
    assert "忽略节点" in caplog.text


@pytest.mark.parametrize("nowhere", [["n"], {"n": 1}])
def test_a_pod_that_is_on_no_node_is_left_out(nowhere, caplog):
    cluster = Cluster([node("n")], [{"name": "p", "node_name": nowhere, "gpu_resources": {"nvidia.com/gpu": 4}}])
    assert scheduler_of(cluster).schedule_pod(wanted("2(V100)")) == "n"
    assert "忽略Pod p: node_name: " in caplog.text


@pytest.mark.parametrize(("said", "where"), [
    ({"phase": "Succeeded"}, "n"), ({"status": "Failed"}, "n"), ({"status": {"phase": "Succeeded"}}, "n"), ({"status": {"phase": "Running"}}, None),
    ({"status": {}}, None), ({}, None),
])
def test_a_pod_that_has_ended_holds_nothing(said, where):
    cluster = Cluster([node("n")], [{"node_name": "n", "gpu_resources": {"nvidia.com/gpu": 4}, **said}])
    assert scheduler_of(cluster).schedule_pod(wanted("2(V100)")) == where


@pytest.mark.parametrize("priority", ["high", None, float("nan")])
def test_a_priority_that_is_none_keeps_nobody_else_waiting(priority):
    made = scheduler_of(Cluster([node("n")]))
    with pytest.raises(gflow.OptionError, match="priority=.* of pod wrong is not a number"):
        made.add_scheduling_request(wanted(pod_name="wrong", priority=priority))
    made.add_scheduling_request(wanted(pod_name="right", priority=1.5))
    assert [one.pod_name for one, _ in made.process_pending_requests()] == ["right"] and made.pending_requests == []


def test_a_mistake_is_not_a_pod_without_gpus(caplog):
    assert scheduler_of(Cluster([node("n")])).schedule_pod(wanted("2(nvdia)")) is None
    assert "did you mean nvidia?" in caplog.text


def test_pending_requests():
    cluster = Cluster([node("n", count=2)])
    made = scheduler_of(cluster)
    for name, priority, text in (("late", 0, "1"), ("large", 1, "3"), ("first", 2, "1"), ("second", 2, "1")):
        made.add_scheduling_request(wanted(text, pod_name=name, priority=priority))
    assert [one.pod_name for one in made.pending_requests] == ["first", "second", "large", "late"]
    placed = made.process_pending_requests()
    assert [(one.pod_name, where) for one, where in placed] == [("first", "n"), ("second", "n")]  # neither has what another got
    assert [one.pod_name for one in made.pending_requests] == ["large", "late"]
    cluster.pods = [pod("n", 1), pod("n", 1)]
    assert made.process_pending_requests() == []
    cluster.pods = []
    assert [one.pod_name for one, _ in made.process_pending_requests()] == ["late"]


def test_pending_requests_of_a_scheduler_that_chooses_otherwise():
    made = scheduler_of(Mock())
    made.add_scheduling_request(wanted("what is no request"))
    with patch.object(made, "schedule_pod", return_value="gpu-node-1"):
        made.process_pending_requests()
    assert made.pending_requests == []


def test_an_interrupted_pass_keeps_what_it_did():
    made = scheduler_of(Cluster([node("n")]))
    for name in ("a", "b"):
        made.add_scheduling_request(wanted(pod_name=name))
    with patch.object(made, "schedule_pod", side_effect=["n", KeyboardInterrupt]), pytest.raises(KeyboardInterrupt):
        made.process_pending_requests()
    assert [one.pod_name for one in made.pending_requests] == ["b"] and made._get_available_gpus(node("n")) == 4.0


@pytest.fixture
def guard():
    cluster = Cluster([node("v", "V100", 2), node("a", "A100", 2), node("x", None, 8), node("down", "H100", ready=False)], [pod("a", 1)])
    return GPUMemoryGuard(cluster, GPUResourceParser())


@pytest.mark.parametrize(("text", "need", "enough"), [
    ("1(V100)", 16.0, True), ("1(V100)", 64.0, False), ("2(V100)", 64.0, True), ("8G,0.5", 8.0, True), ("8G,0.5", 9.0, False),
    ("1(V100)", GPUMemoryRequirement(16.0), True), ("1(V100)", GPUMemoryRequirement(33.0, 64.0), False),
    ("1(V100)", GPUMemoryRequirement(16.0, gpu_type="A100"), False), ("1", GPUMemoryRequirement(16.0, gpu_type="T4"), True),
    ("1", GPUMemoryRequirement(17.0, gpu_type="T4"), False), ("1(A100-80G)", GPUMemoryRequirement(80.0, gpu_type="A100"), True),
])
def test_validating_memory(guard, text, need, enough):
    assert guard.validate_memory_requirement(text, need) is enough


def test_validating_what_is_not_known(guard, caplog):
    assert guard.validate_memory_requirement("1", 500.0) is True
    assert "无法验证GPU资源 1 的显存需求" in caplog.text
    with pytest.raises(ValueError, match="min_memory_gb: -1 is not an amount"):
        guard.validate_memory_requirement("1", -1)


def test_finding_nodes_with_memory(guard):
    assert guard.find_suitable_nodes(16.0) == [
        {"node_name": "a", "gpu_type": "A100", "available_gpus": 1, "memory_per_gpu": 80.0, "total_available_memory": 80.0},
        {"node_name": "v", "gpu_type": "V100", "available_gpus": 2, "memory_per_gpu": 32.0, "total_available_memory": 64.0}]
    assert [one["node_name"] for one in guard.find_suitable_nodes(33.0)] == ["a"]
    assert [one["node_name"] for one in guard.find_suitable_nodes(GPUMemoryRequirement(16.0, gpu_type="V100"))] == ["v"]
    guard.k8s_client.pods = [pod("a", 2)]
    guard.k8s_client.nodes.append(node("t", "T4", 8))
    assert [one["node_name"] for one in guard.find_suitable_nodes(GPUMemoryRequirement(16.0, 32.0))] == ["v", "t"]
    assert guard.find_suitable_nodes(100.0) == []


def test_reserving_memory(guard, caplog):
    scheduler = GPUScheduler(guard.k8s_client, guard.gpu_parser, guard)
    assert guard.reserve_gpu_memory("v", 2, 20.0) is True
    assert guard.k8s_client.labels == [(["v"], {"reserved-gpu-memory-20gb": "2"})]
    assert [one["node_name"] for one in guard.find_suitable_nodes(16.0)] == ["a"]
    assert scheduler.schedule_pod(wanted("1(V100)", 16.0)) is None
    assert scheduler.schedule_pod(wanted("1(V100)", 12.0)) == "v"
    for too_much in (("v", 1, 20.0), ("v", 3, 1.0), ("nowhere", 1, 1.0), ("down", 1, 1.0)):
        assert guard.reserve_gpu_memory(*too_much) is False
    assert "没有 1 个各有 20.0GB 可用显存的GPU" in caplog.text
    assert guard.release_gpu_memory("v", 2, 20.0) is True and guard.release_gpu_memory("v", 2, 20.0) is False
    assert guard.k8s_client.labels[-1] == (["v"], {"reserved-gpu-memory-20gb": None})
    assert scheduler.schedule_pod(wanted("1(V100)", 16.0)) == "v"


def test_a_label_says_what_all_reservations_hold(guard):
    assert guard.reserve_gpu_memory("v", 1, 8.0) and guard.reserve_gpu_memory("v", 2, 8.5) and guard.reserve_gpu_memory("a", 1, 8.0)
    assert guard.release_gpu_memory("v", 1, 8.0) and guard.release_gpu_memory("v", 2, 8.5)
    assert guard.k8s_client.labels == [([where], {"reserved-gpu-memory-8gb": value})
                                       for where, value in (("v", "1"), ("v", "3"), ("a", "1"), ("v", "2"), ("v", None))]


def test_reservations_of_a_client_that_gives_one_node_after_the_other(guard):
    with patch.object(guard.k8s_client, "get_nodes", lambda: iter([node("v")])):
        assert [guard.reserve_gpu_memory(*one) for one in (("nowhere", 1, 1.0), ("v", 99, 1.0), ("v", 1, 1.0))] == [False, False, True]


def test_a_part_of_a_gpu_is_not_set_aside(guard):
    for call in (guard.reserve_gpu_memory, guard.release_gpu_memory):
        with pytest.raises(ValueError, match="gpu_count: 1.9 is not a number of whole GPUs"):
            call("v", 1.9, 1.0)
    assert guard.reservations == []


@pytest.mark.parametrize("answer", [False, ConnectionError("down")])
def test_a_label_that_is_not_taken(guard, answer):
    guard.k8s_client.label_node = Mock(side_effect=[answer] if isinstance(answer, Exception) else None, return_value=answer)
    assert guard.reserve_gpu_memory("v", 1, 1.0) is False and guard.reservations == []


@pytest.mark.parametrize("much", [2**70, 2**2000, float("nan"), float("inf"), None, "much", 1e9], ids=["2**70", "2**2000", "nan", "inf", "None", "text", "1e9"])
def test_a_number_that_is_none_is_said_in_our_words(guard, caplog, much):
    """And not in those of the native module, which has numbers of 32 bits."""
    for call in (lambda: guard.reserve_gpu_memory("v", much, 1.0), lambda: guard.reserve_gpu_memory("v", 1, much),
                 lambda: guard.validate_memory_requirement("1(V100)", much)):
        with pytest.raises(ValueError, match="(gpu_count|memory_gb|min_memory_gb): .* is not an amount"):
            call()
    made = scheduler_of(Cluster([node("n"), dict(node("m"), gpu_info={"nvidia": {"allocatable": much or 2**70}})]))
    assert names(made._find_suitable_nodes(wanted(), made.gpu_parser.parse("1(V100)"))) == ["n"]
    assert "忽略节点 m: allocatable: " in caplog.text and "is not an amount" in caplog.text
    if much is not None:
        with pytest.raises(ValueError, match="gpu_num: .* is not an amount") if not isinstance(much, str) else pytest.raises(TypeError):
            made._find_suitable_nodes(wanted(), GPUResource(gpu_num=much, gpu_type=None, resource_name=""))
    guard.gpu_parser.gpu_memory_mapping["T9"] = much or 2**70
    guard.k8s_client.nodes.append(node("t9", "T9"))
    assert [one["node_name"] for one in guard.find_suitable_nodes(33.0)] == ["a"]
    assert "incompatible function arguments" not in caplog.text


def test_the_log_is_that_of_the_documents(caplog):
    caplog.set_level(logging.INFO)
    scheduler_of(Cluster([node("n")])).schedule_pod(wanted())
    assert caplog.record_tuples == [("gpu_resource_manager", logging.INFO, "Pod pod: 选择节点 n")]


def test_a_resource_made_by_hand():
    made = scheduler_of(Cluster([node("n")]))
    assert names(made._find_suitable_nodes(wanted(), GPUResource(gpu_num=1, gpu_type="V100", resource_name="nvidia.com/gpu"))) == ["n"]
    with pytest.raises(RequestError):
        made.gpu_parser.parse("")
