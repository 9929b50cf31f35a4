# SPDX-License-Identifier: Apache-2.0
"""Moves of pods that an administrator asks for (gctl defrag --apply), against a kube-apiserver."""

import contextlib
import json
import re
import signal
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest
from cluster import ADMIN, path_of
from kube_person import Person, grant, make_account
from kube_scheduler import (
    SYSTEM,
    end_lease,
    make_budget,
    make_member,
    make_pod,
    node_of,
    pods_of,
    told,
    until,
    until_bound,
    until_events,
    until_told,
)
from machine import PATIENCE

MOVES = f"{path_of('ConfigMap', SYSTEM)}/gflow-kube-moves"


@pytest.fixture(scope="session")
def movers(control_plane, viewers):
    """A service account that may look and have pods moved."""
    make_account(control_plane, "mover")
    grant(control_plane, "gflow-viewer", "mover")
    control_plane.ask("POST", path_of("RoleBinding", SYSTEM), {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "mover"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "gflow-mover"},
        "subjects": [{"kind": "ServiceAccount", "name": "mover", "namespace": "default"}]})


@pytest.fixture
def mover(kube, movers):
    yield Person(kube, "mover")
    kube.ask("PATCH", MOVES, {"data": {"request": None, "answer": None}})


def written(kube, key):
    """What stands in the ConfigMap; None: nothing."""
    text = kube.ask("GET", MOVES).get("data", {}).get(key)
    return json.loads(text) if text else None


def until_answered(kube, state):
    def is_so(maps):
        text = maps.get("gflow-kube-moves", {}).get("data", {}).get("answer")
        return bool(text) and json.loads(text)["state"] == state

    until(kube, is_so, kind="ConfigMap", namespace=SYSTEM)
    return written(kube, "answer")


def request(kube, waiting, moves):
    """As gflow-kube serve writes it."""
    uids = {name: pod["metadata"]["uid"] for name, pod in pods_of(kube).items()}

    def named(names):
        return [{"namespace": "default", "name": name, "uid": uids[name]} for name in names]

    asked = {"id": uids[moves[0]], "pods": named(waiting), "moves": named(moves)}
    kube.ask("PATCH", MOVES, {"data": {"request": json.dumps(asked)}})


def make_movable(kube, name, node, gpus=1, grace=0, **labels):
    """On that node, and of a ReplicaSet, as it says; no controller is here that would make another."""
    kube.make({
        "apiVersion": "v1", "kind": "Pod", "metadata": {
            "name": name, "namespace": "default", "labels": labels,
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "set", "uid": f"of-{name}", "controller": True}]},
        "spec": {"schedulerName": "gflow", "terminationGracePeriodSeconds": grace,
                 "containers": [{"name": "main", "image": "none", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}]}})
    pods = until_bound(kube, name)
    assert node_of(pods[name]) == node
    return name


def is_going(pod):
    return "deletionTimestamp" in pod["metadata"]


def make_two_more(kube):
    """Pods that want a GPU each, where w has one left and v one that is kept: it is told of the one that waits for whom."""
    for name in ("third", "fourth"):
        make_pod(kube, name, None, 1)

    def one_waits(pods):
        both = [pods[name] for name in ("third", "fourth")]
        return any(map(node_of, both)) and any("It would delay pod default/large" in (told(pod) or "") for pod in both)

    pods = until(kube, one_waits)
    assert sorted(node_of(pods[name]) or "" for name in ("third", "fourth")) == ["", "w"], "beside is room for one"


@pytest.fixture
def in_pieces(kube, start, mover):
    """Two nodes with one of two GPUs left, and a pod that wants two; on v one that may move, which takes its time."""
    kube.node("v", 2)
    scheduler = start("--defrag")
    make_movable(kube, "slow", "v", grace=600)
    kube.node("w", 2)
    make_pod(kube, "filler", None, 1)
    make_pod(kube, "stays", None, 1)
    pods = until_bound(kube, "filler", "stays")
    for name in ("filler", "stays"):
        if node_of(pods[name]) == "v":
            kube.delete_pod(name)
    if sorted(map(node_of, pods_of(kube).values())) == ["v", "w", "w"]:
        kube.delete_pod("filler")
    make_pod(kube, "large", None, 2)
    until_told(kube, "large", "nodes are available")
    return scheduler


def plan_of(person):
    (plan,) = json.loads(person.says("gctl", "defrag", "--json"))["jobs"]
    return plan


def test_whoever_moves_runs_elsewhere(kube, start, mover, replicas):
    kube.node("v", 2, host="v")
    kube.node("w", 2, host="w")
    scheduler = start("--defrag")
    first = replicas("first")
    make_pod(kube, "filler", "1", nodeSelector={"host": kube.node_of(first)})
    until_bound(kube, "filler")
    replicas("second")
    kube.delete_pod("filler")
    make_pod(kube, "large", "2")
    until_told(kube, "large", "nodes are available")
    plan = plan_of(mover)
    uids = {name: pod["metadata"]["uid"] for name, pod in pods_of(kube).items()}
    said = mover.says("gctl", "defrag", "--apply", "large")
    assert re.match(r"room is being made for pod default/large \(2 GPUs\): these are evicted, made anew, and wait behind it:\n"
                    r"  pod default/(first|second)-\w+ on GPU \w:\d \(loses \S+ of run time\)\n$", said), said
    (moved,) = re.findall(r"pod default/((?:first|second)-\w+) on", said)
    pods = until(kube, lambda pods: moved not in pods and len(pods) == 3 and all(map(node_of, pods.values())))
    assert node_of(pods["large"]) == plan["target"][0]["node"]
    assert until_answered(kube, "started")["id"] == written(kube, "request")["id"]
    assert scheduler.said().count("evicted ") == 1 and scheduler.says(f"evicted default/{moved} for a pod of default")
    assert until_events(kube, moved, uids[moved], "Moved")
    assert scheduler.says("moves for pod default/large: making") and scheduler.says("moves for pod default/large: started")
    assert mover.says("gctl", "defrag") == "no job waits for room\n"
    asked = kube.asked_by("system:serviceaccount:default:mover")
    assert {one for one in asked if one[0] not in ("list", "watch")} == {("get", "", "configmaps"), ("patch", "", "configmaps")}


def test_nobody_else_has_the_room_meanwhile(kube, in_pieces, mover):
    mover.says("gctl", "defrag", "--apply", "default/large")
    assert "It waits for default/slow to leave, which make room for it." in until_told(kube, "large", "slow")
    assert is_going(pods_of(kube)["slow"])
    make_two_more(kube)
    kube.delete_pod("slow")
    assert node_of(until_bound(kube, "large")["large"]) == "v"
    until_answered(kube, "started")


@pytest.mark.parametrize("is_gone", [False, True])
def test_a_scheduler_that_comes_later_goes_on(kube, in_pieces, start, mover, is_gone):
    mover.says("gctl", "defrag", "--apply", "large")
    until(kube, lambda pods: is_going(pods["slow"]))
    in_pieces.end(signal.SIGKILL)
    if is_gone:
        kube.delete_pod("slow")
        for name in ("third", "fourth", "fifth"):
            make_pod(kube, name, None, 1)
    end_lease(kube)
    start("--defrag")
    if not is_gone:
        make_two_more(kube)
        assert not kube.node_of("large")
        kube.delete_pod("slow")
    pods = until_bound(kube, "large")
    assert node_of(pods["large"]) == "v"
    until_answered(kube, "started")


def test_moves_that_would_not_do_any_more_are_refused(kube, in_pieces, mover):
    plan = plan_of(mover)
    asked = {"id": plan["id"], "moves": [plan["moves"][0]["job"]]}
    with mover.serves() as url:
        make_pod(kube, "third", None, 1)
        pods = until_bound(kube, "third")
        assert node_of(pods["third"]), "where the one that moves was to go, or beside it"
        revision = 0
        while not any(job["spec"]["name"] == "third" and job["status"] == "Running" for job in get(f"{url}/api/v1/jobs")["jobs"]):
            revision = get(f"{url}/api/v1/changes?revision={revision}")["revision"]
        with pytest.raises(urllib.error.HTTPError) as refused:
            post(f"{url}/api/v1/defrag", asked)
        assert refused.value.code == 409, refused.value.read()
    assert written(kube, "request") is None, "it was not even asked for"
    # As one does whose picture of the cluster is old: the scheduler looks itself.
    request(kube, ["large"], ["slow"])
    assert "moves" in until_answered(kube, "refused")["why"]
    assert not is_going(pods_of(kube)["slow"]) and "evicted" not in in_pieces.said()


def get(url):
    with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
        return json.loads(answer.read())


def post(url, document):
    asked = urllib.request.Request(url, data=json.dumps(document).encode(), headers={"Content-Type": "application/json"}, method="POST")
    with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
        return json.loads(answer.read())


def test_of_two_who_ask_at_once_one_is_refused(kube, in_pieces, mover):
    plan = plan_of(mover)
    asked = {"id": plan["id"], "moves": [plan["moves"][0]["job"]]}

    def ask(url):
        try:
            return post(f"{url}/api/v1/defrag", asked)
        except urllib.error.HTTPError as refused:
            return refused.code, json.loads(refused.read())["detail"]

    with mover.serves() as one, mover.serves() as other, ThreadPoolExecutor(2) as both:
        answers = list(both.map(ask, (one, other)))
    refused = [one for one in answers if isinstance(one, tuple)]
    assert len(refused) == 1 and refused[0][0] == 409, answers
    assert re.search("somebody else asked|room is being made", refused[0][1]), refused
    assert in_pieces.says("evicted default/slow") and in_pieces.said().count("evicted ") == 1
    late = mover.run("gctl", "defrag", "--apply", "large", ok=False)
    assert late.returncode != 0
    kube.delete_pod("slow")
    until_bound(kube, "large")


def make_ready(kube, name):
    """Others may go in spite of a budget."""
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    kube.raw("PATCH", f"{path_of('Pod', 'default')}/{name}/status", {"status": status})


def test_whom_a_budget_keeps_is_not_moved(kube, start, mover):
    kube.node("v", 2)
    scheduler = start("--defrag")
    make_movable(kube, "kept", "v", app="kept")
    kube.node("w", 2)
    kube.pod("theirs", 1, "w")
    make_ready(kube, "kept")
    make_pod(kube, "large", None, 2)
    until_told(kube, "large", "nodes are available")
    assert plan_of(mover)["outcome"] == "moves"
    budget = make_budget(kube, "kept", 0, app="kept")
    try:
        assert plan_of(mover)["outcome"] == "nothing_movable"
        refused = mover.run("gctl", "defrag", "--apply", "large", ok=False)
        assert "none of the jobs that run there may be moved" in refused.stderr
        # One that comes after it was looked for one: it is told, and asked again.
        request(kube, ["large"], ["kept"])
        until_answered(kube, "making")
        assert "A disruption budget keeps default/kept, which is asked again each minute." in until_told(kube, "large", "budget")
        assert not is_going(pods_of(kube)["kept"])
    finally:
        kube.ask("DELETE", budget)
    pods = until_bound(kube, "large", patience=90)
    assert "kept" not in pods and node_of(pods["large"]) == "v"
    assert scheduler.says("evicted default/kept")


def test_a_gang_of_four_over_two_nodes(kube, start, mover):
    """Of three nodes n0 and n1 have three GPUs left, and n2 two."""
    scheduler = start("--defrag")
    for name in ("n0", "n1"):
        kube.node(name, 4)
        make_movable(kube, f"on-{name}", name)
        kube.pod(f"filler-{name}", 3, name)  # so that the next one goes elsewhere
    kube.node("n2", 4)
    kube.pod("theirs", 2, "n2")
    for name in ("n0", "n1"):
        kube.delete_pod(f"filler-{name}")
    for i in range(4):
        make_member(kube, f"w{i}", 2, size=4)
    until_told(kube, "w3", "there is room for 3")
    plan = plan_of(mover)
    assert plan["outcome"] == "moves" and len(plan["together"]) == 3 and len(plan["moves"]) == 1, plan
    said = mover.says("gctl", "defrag")
    assert re.match(r"pod default/w\d \(2 nvidia GPUs\) and 3 that start together with it would start: move pod default/on-n", said), said
    mover.says("gctl", "defrag", "--apply", "w2")
    pods = until_bound(kube, "w0", "w1", "w2", "w3")
    assert until_answered(kube, "started")
    assert scheduler.said().count("evicted ") == 1 and len(pods) == 6
    assert sorted(node_of(pods[f"w{i}"]) for i in range(4)).count("n2") == 1


def test_a_job_that_is_made_anew_without_a_failure_moves(kube, start, mover):
    kube.node("v", 2)
    scheduler = start("--defrag")
    kube.start_controllers("job")
    try:
        admin = Person(kube, config=kube.kubeconfig(ADMIN, "of-admin"))
        admin.says("gbatch", "--gpus", "1", "--requeue", "--image", "none", "--name", "train", "true")
        (first,) = until(kube, lambda pods: len(pods) == 1 and all(map(node_of, pods.values())))
        kube.node("w", 2)
        kube.pod("theirs", 1, "w")
        make_pod(kube, "large", None, 2)
        until_told(kube, "large", "nodes are available")
        said = mover.says("gctl", "defrag", "--apply", "large")
        assert "  pod default/train on GPU v:" in said, said
        until(kube, lambda pods: is_going(pods[first]))
        kube.end_pod(first, "Failed")  # as its kubelet would say
        kube.delete_pod(first)
        pods = until(kube, lambda pods: first not in pods and len(pods) == 3 and all(map(node_of, pods.values())))
        assert node_of(pods["large"]) == "v" and scheduler.says(f"evicted default/{first}")
        assert admin.queue()["default/train"]["status"] == "Running"
    finally:
        kube.stop_controllers()


def test_where_nobody_makes_moves_that_is_said(kube, start, mover):
    kube.node("v", 2)
    start()
    make_movable(kube, "a", "v")
    kube.node("w", 2)
    kube.pod("theirs", 1, "w")
    make_pod(kube, "large", None, 2)
    until_told(kube, "large", "nodes are available")
    refused = mover.run("gctl", "defrag", "--apply", "large", ok=False)
    assert "no scheduler answered in 20 s, and nothing was changed: moves are made by 'gflow-kube --defrag'" in refused.stderr
    assert written(kube, "request") is None
    assert "a" in pods_of(kube)


def test_with_an_extender_there_are_none(kube, mover):
    kube.node("v", 2)
    kube.node("w", 2)
    for node, name in (("v", "a"), ("w", "b")):
        given = {"node": node, "devices": [{"resource": "nvidia.com/gpu", "index": 0, "share_parts": 10_000}]}
        kube.make({
            "apiVersion": "v1", "kind": "Pod", "metadata": {
                "name": name, "namespace": "default", "annotations": {"gflow/allocation": json.dumps(given)},
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "set", "uid": name, "controller": True}]},
            "spec": {"nodeName": node, "schedulerName": "default-scheduler",
                     "containers": [{"name": "main", "image": "none", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}})
    make_pod(kube, "large", None, 2, scheduler="default-scheduler")
    plan = mover.says("gctl", "defrag", GFLOW_KUBE_SCHEDULER="default-scheduler")
    assert plan.startswith("pod default/large (2 nvidia GPUs) would start: move pod default/"), plan
    refused = mover.run("gctl", "defrag", "--apply", "large", ok=False, GFLOW_KUBE_SCHEDULER="default-scheduler")
    assert "an extender of kube-scheduler makes none" in refused.stderr
    assert {"a", "b", "large"} == pods_of(kube).keys()


RBAC = "/apis/rbac.authorization.k8s.io/v1"
MERGE = "application/merge-patch+json"


@contextlib.contextmanager
def rules_of(kube, path, change):
    """A role that says something else meanwhile."""
    before = kube.ask("GET", path)["rules"]
    kube.ask("PATCH", path, {"rules": change(before)}, content_type=MERGE)
    try:
        yield
    finally:
        kube.ask("PATCH", path, {"rules": before}, content_type=MERGE)


def test_what_is_written_late_is_looked_at_again(kube, in_pieces, mover):
    def without_patch(rules):
        return [{**rule, "verbs": [verb for verb in rule["verbs"] if verb != "patch"]} for rule in rules]

    with rules_of(kube, f"{RBAC}/namespaces/{SYSTEM}/roles/gflow-kube-defrag", without_patch):
        request(kube, ["large"], ["slow"])
        assert in_pieces.says("answer who asked for moves for pod default/large")
        for name in ("third", "fourth"):
            make_pod(kube, name, None, 1)
        until_bound(kube, "third", "fourth")
    until_answered(kube, "given_up")
    assert not is_going(pods_of(kube)["slow"]) and "evicted" not in in_pieces.said()


def test_who_may_ask_has_no_other_evicted(kube, in_pieces, start, mover):
    """As the ConfigMap says by somebody else that all is under way: with one that is made anew by nobody, and one that is not there."""
    uids = {name: pod["metadata"]["uid"] for name, pod in pods_of(kube).items()} | {"nobody": "nobody"}

    def named(*names):
        return [{"namespace": "default", "name": name, "uid": uids[name]} for name in names]

    forged = {"data": {"request": json.dumps({"id": "forged", "pods": named("large"), "moves": named("slow", "stays", "nobody")}),
                       "answer": json.dumps({"id": "forged", "state": "making", "priority": 100_000})}}
    kube.ask("PATCH", MOVES, forged)
    assert "it is not this scheduler" in until_answered(kube, "given_up")["why"]
    in_pieces.end(signal.SIGKILL)
    kube.ask("PATCH", MOVES, forged)
    end_lease(kube)
    other = start("--defrag")
    assert until_answered(kube, "given_up")["why"] == "pod default/stays may not be moved"
    assert not any(map(is_going, pods_of(kube).values())) and "evicted" not in other.said()


def test_several_pods_of_one_budget(kube, start, mover):
    kube.node("v", 4)
    scheduler = start("--defrag")
    for name in ("a", "b"):
        make_movable(kube, name, "v", app="web")
        make_ready(kube, name)
    kube.node("w", 4)
    kube.pod("theirs", 2, "w")
    make_pod(kube, "large", None, 4)
    until_told(kube, "large", "nodes are available")
    budget = make_budget(kube, "web", 1, app="web")
    try:
        refused = mover.run("gctl", "defrag", "--apply", "large", ok=False)
        assert "the disruption budget default/web lets 1 pods go now" in refused.stderr
        assert written(kube, "request") is None and "evicted" not in scheduler.said()
    finally:
        kube.ask("DELETE", budget)


def test_without_the_role_all_else_goes_on(kube, start, mover):
    kube.node("v", 2)
    path = f"{RBAC}/namespaces/{SYSTEM}/rolebindings/gflow-kube-defrag"
    binding = kube.ask("GET", path)
    kube.ask("DELETE", path)
    try:
        scheduler = start("--defrag")
        make_pod(kube, "plain", None, 1)
        until_bound(kube, "plain")
        assert scheduler.says("apply packaging/kubernetes/rbac-defrag.yaml")
    finally:
        binding["metadata"] = {"name": "gflow-kube-defrag", "namespace": SYSTEM}
        kube.ask("POST", path.rsplit("/", 1)[0], binding)


def test_a_request_that_nobody_waits_for_is_taken_over(kube, start, mover):
    kube.node("v", 2)
    start()
    make_movable(kube, "a", "v")
    kube.node("w", 2)
    kube.pod("theirs", 1, "w")
    make_pod(kube, "large", None, 2)
    until_told(kube, "large", "nodes are available")
    request(kube, ["large"], ["a"])  # and whoever wrote that is gone
    refused = mover.run("gctl", "defrag", "--apply", "large", ok=False)
    assert "no scheduler answered in 20 s, and nothing was changed" in refused.stderr
    assert written(kube, "request") is None


def test_with_an_old_role_of_viewers_no_moves_are_asked_for(kube, in_pieces, mover):
    def without_budgets(rules):
        return [rule for rule in rules if "policy" not in rule["apiGroups"]]

    with rules_of(kube, f"{RBAC}/clusterroles/gflow-viewer", without_budgets):
        assert "disruption budgets" not in mover.run("ginfo").stderr
        with mover.serves() as url, urllib.request.urlopen(f"{url}/readyz", timeout=PATIENCE) as answer:
            assert answer.status == 200
        refused = mover.run("gctl", "defrag", "--apply", "large", ok=False)
        assert "list disruption budgets" in refused.stderr and "rbac-viewer.yaml" in refused.stderr, refused.stderr
        assert written(kube, "request") is None
