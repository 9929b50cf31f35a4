# SPDX-License-Identifier: Apache-2.0
"""The commands that show something, and the REST API, about a cluster that gflow-kube schedules."""

import json
import re
import socket
import subprocess
import urllib.error
import urllib.request

import pytest
from kube_person import Person
from kube_scheduler import make_limits, make_pod, node_of, pods_of, until, until_bound, until_in_force, until_told
from machine import BIN, PATIENCE


@pytest.fixture
def viewer(kube, viewers):
    return Person(kube)


@pytest.fixture
def scheduled(kube, start):
    """Two pods on a node, one that waits for room, one that is not judged, one with a gate and one of another scheduler."""
    kube.node("a", 2, "A100")
    kube.node("v", 4, "V100")
    kube.node("closed", 4, "V100", unschedulable=True)
    start()
    make_pod(kube, "train", "2(V100)", cpu="1500m", memory="2Gi")
    make_pod(kube, "part", "8G,0.5(A100)")
    kube.pod("theirs", 1, "v")
    until_bound(kube, "train", "part")
    make_pod(kube, "large", "4(V100)", priority=None)
    make_pod(kube, "asks", "1.5")
    make_pod(kube, "gated", None, 1, schedulingGates=[{"name": "example.com/wait"}])
    make_pod(kube, "others", None, 1, scheduler="default-scheduler")
    until_told(kube, "large", "nodes are available")
    until_told(kube, "asks", "whole GPUs")
    return kube


def test_the_queue_is_that_of_the_cluster(scheduled, viewer):
    jobs = viewer.queue()
    assert {name: job["status"] for name, job in jobs.items()} == {
        "default/train": "Running", "default/part": "Running", "default/large": "Queued", "default/asks": "Hold", "default/gated": "Hold"}
    train = jobs["default/train"]
    assert (train["node"], len(train["gpu_indices"]), train["spec"]["request"]["gpus"]) == ("v", 2, 2)
    assert train["spec"]["request"]["cpus"] == 1 and train["spec"]["request"]["memory_bytes"] == 2 << 30
    assert 0 <= train["run_time_seconds"] < 600
    assert jobs["default/part"]["spec"]["request"]["gpu_share_parts"] == 5000
    assert jobs["default/large"]["reason"].startswith("Resources: Need 4 V100 GPUs, only 1 available")
    assert "scheduling gates" in jobs["default/gated"]["reason"]
    listed = viewer.says("gqueue", "-f", "NAME,USER,ST,NODES,NODELIST(REASON)").splitlines()
    assert re.search(r"train +default +R +2 +v:\d,\d", "\n".join(listed)), listed
    assert viewer.queue("-s", "Queued").keys() == {"default/large"} == viewer.queue("--user", "default", "-N", "lar*").keys()
    assert viewer.queue("--me").keys() == jobs.keys()


def test_numbers_stay_and_are_in_the_order_of_age(scheduled, viewer):
    first = {name: job["id"] for name, job in viewer.queue().items()}
    make_pod(scheduled, "young", None, 1)
    until_bound(scheduled, "young")
    second = {name: job["id"] for name, job in viewer.queue().items()}
    young = second.pop("default/young")
    assert second == first and all(number >> 23 <= young >> 23 < 2**30 for number in first.values())
    created = {f"default/{name}": pod["metadata"]["creationTimestamp"] for name, pod in pods_of(scheduled).items()}
    ages = [created[name] for name, _ in sorted(first.items(), key=lambda one: one[1])]
    assert ages == sorted(ages)
    assert json.loads(viewer.says("gjob", "show", "--json", str(young)))["spec"]["name"] == "young"


def test_why_a_pod_waits(scheduled, viewer):
    said = viewer.says("gjob", "why", "large")
    assert "has been waiting since" in said and "Need 4 V100 GPUs, only 1 available" in said
    assert f"The scheduler of the cluster says: {until_told(scheduled, 'large', 'nodes')}" in said
    assert "has GPU" in said and "gjob update" not in said
    assert "default/train" in said, "who has what it waits for is named"
    assert "1.5" in viewer.says("gjob", "why", "default/asks")
    assert "runs on GPU" in viewer.says("gjob", "why", "train")
    shown = viewer.says("gjob", "show", "default/train", "large")
    assert "V100" in shown and "admits" not in shown, shown
    lost = viewer.run("gjob", "why", "elsewhere/train", ok=False)
    assert lost.returncode == 3 and "no pod 'train' in the namespace 'elsewhere'" in lost.stderr


def test_nodes_and_devices(scheduled, viewer):
    machine = json.loads(viewer.says("ginfo", "--json"))
    nodes = {node["name"]: node for node in machine["nodes"]}
    assert nodes.keys() == {"a", "v", "closed"} and nodes["closed"]["drained"] and nodes["closed"]["drained_reason"] == "cordoned"
    assert (nodes["v"]["cpus"], nodes["v"]["cpus_free"], nodes["a"]["cpus"]) == (7, 6, 8)
    on_v = [bool(device["jobs"]) for device in nodes["v"]["devices"]]
    assert sum(on_v) == 2 and [one["name"] for device in nodes["v"]["devices"] for one in device["foreign"]] == ["default/theirs"]
    assert "V100" in viewer.says("ginfo") and "default/theirs" in viewer.says("ginfo")


def test_a_snapshot_is_replayed_in_the_lab(scheduled, viewer, tmp_path):
    file = tmp_path / "cluster.json"
    file.write_text(viewer.says("gctl", "snapshot"))
    snapshot = json.loads(file.read_text())
    assert {job["spec"]["name"]: job["status"] for job in snapshot["jobs"]} == {
        "train": "Running", "part": "Running", "large": "Queued", "asks": "Hold", "gated": "Hold"}
    replayed = subprocess.run([BIN / "gflow", "lab", "replay", file], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert replayed.returncode == 0, replayed.stderr
    assert re.search(r"jobs +5\n +nodes +3\n +gpus +10\n", replayed.stdout), replayed.stdout
    assert "1 job never started: JobHeld: gflow-kube does not take it: it has scheduling gates" in replayed.stdout
    assert "Need 4 V100 GPUs, only 3 available on v" in replayed.stdout


def test_the_limits_of_namespaces_are_known(kube, start, viewer):
    kube.node("v", 4)
    path = make_limits(kube, max_gpus_per_namespace="2")
    try:
        start()
        make_pod(kube, "first", None, 2)
        until_bound(kube, "first")
        make_pod(kube, "second", None, 1)
        until_told(kube, "second", "may hold 2")
        assert viewer.queue()["default/second"]["reason"].startswith("GpuLimit: Need 1 GPU, its user holds 2 and may hold 2 at once")
    finally:
        kube.ask("DELETE", path)


def test_which_moves_would_start_a_pod(kube, start, viewer, replicas):
    kube.node("v", 2, host="v")
    kube.node("w", 2, host="w")
    start()
    first = replicas("first")
    make_pod(kube, "filler", "1", nodeSelector={"host": kube.node_of(first)})
    until_bound(kube, "filler")
    second = replicas("second")
    kube.delete_pod("filler")
    make_pod(kube, "large", "2")
    until_told(kube, "large", "nodes are available")
    told = viewer.says("gctl", "defrag")
    assert re.match(r"pod default/large \(2 GPUs\) would start: move pod default/(first|second)-\w+ from GPU \w:\d to GPU \w:\d "
                    r"\(made anew, loses \S+ of run time\)\n\nNothing was changed.\n"
                    r"'gctl defrag --apply default/large' does it: ", told), told
    assert viewer.says("gctl", "defrag", "default/large").startswith("pod default/large (2 GPUs) would start: move ")
    [plan] = json.loads(viewer.says("gctl", "defrag", "--json"))["jobs"]
    assert (plan["outcome"], len(plan["moves"])) == ("moves", 1), plan
    refused = viewer.run("gctl", "defrag", "--apply", "large", ok=False)
    assert 'cannot get resource "configmaps"' in refused.stderr, refused.stderr
    assert "the Role gflow-mover of packaging/kubernetes/rbac-defrag.yaml" in refused.stderr, refused.stderr
    # As it says, what made it makes it anew, and both have room.
    moved = {"first": first, "second": second}[re.search(r"move pod default/(\w+)-", told)[1]]
    kube.delete_pod(moved)
    pods = until(kube, lambda pods: moved not in pods and len(pods) == 3 and all(map(node_of, pods.values())))
    assert node_of(pods["large"]) == plan["target"][0]["node"]
    assert viewer.says("gctl", "defrag") == "no job waits for room\n"


def test_why_no_move_starts_a_pod(scheduled, viewer):
    told = viewer.says("gctl", "defrag")
    assert told.startswith("pod default/large (4 V100 GPUs): no move helps: "), told
    assert "Nothing was changed." in told and "--preemptible" not in told and "--apply" not in told


def test_nothing_is_changed_there(scheduled, viewer):
    for words, instead in [
        (("gjob", "hold", "large"), "a pod that gbatch did not make"),
        (("gjob", "update", "large", "--priority", "50"), "kubectl edit pod"),
        (("gjob", "log", "train"), "has no log"),
        (("gctl", "drain", "node", "v"), "kubectl cordon"),
        (("gbatch", "--gpus", "1", "--depends-on", "7", "--image", "i", "sleep", "1"), "gjob wait"),
        (("gstats",), "gqueue -a"),
    ]:
        refused = viewer.run(*words, ok=False)
        assert instead in refused.stderr, (words, refused.stderr)
    asked = scheduled.asked_by("system:serviceaccount:default:viewer")
    assert {what for verb, _, what in asked if verb != "get"} == {"nodes", "pods", "configmaps", "jobs", "poddisruptionbudgets"}
    assert {verb for verb, _, _ in asked} - {"list", "watch"} <= {"get"}, "of the moves that it may not ask for, which are refused"


def get(url, **headers):
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=PATIENCE) as answer:
        return json.loads(answer.read())


def test_the_rest_api(scheduled, viewer):
    with viewer.serves() as url:
        assert len(get(f"{url}/api/v1/jobs")["jobs"]) == 5
        large = next(job for job in get(f"{url}/api/v1/jobs?name=large")["jobs"])
        why = get(f"{url}/api/v1/jobs/{large['id']}/explain")
        assert why["job"]["blockers"][0]["kind"] == "gpus" and why["told"].startswith("0/3 nodes are available")
        assert why["suggestions"] == []
        assert {node["name"] for node in get(f"{url}/api/v1/nodes")["nodes"]} == {"a", "v", "closed"}
        assert len(get(f"{url}/api/v1/devices")["devices"]) == 10
        status = {(one["node_name"], one["available_gpus"]) for one in get(f"{url}/api/v1/gpu/status")["available_nodes"]}
        assert ("v", 1) in status and get(f"{url}/api/v1/gpu/nodes")["total_nodes"] >= 2
        assert get(f"{url}/api/v1/snapshot")["jobs"] and "/api/v1/jobs" in get(f"{url}/api/v1/openapi.json")["paths"]
        assert get(f"{url}/api/v1/daemon")["mode"] == "kubernetes"
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(urllib.request.Request(f"{url}/api/v1/jobs/{large['id']}/suspend", method="POST"), timeout=PATIENCE)
        assert refused.value.code == 501 and "kubectl delete pod" in json.loads(refused.value.read())["detail"]
        # What changes is news.
        page = get(f"{url}/api/v1/jobs")
        scheduled.delete_pod("large")
        while get(f"{url}/api/v1/changes?revision={page['revision']}")["revision"] == page["revision"]:
            pass
        until_gone(url, "large", page["revision"])


def readiness(url):
    try:
        with urllib.request.urlopen(f"{url}/readyz", timeout=PATIENCE) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, json.loads(refused.read())["detail"]


def test_it_is_ready_while_it_follows_the_cluster(kube, viewer):
    kube.node("n", 1)
    with viewer.serves() as url:
        assert readiness(url) == (200, "ok\n") and get(f"{url}/version")["version"]
        kube.stop_apiserver()
        until_in_force(lambda: readiness(url) == (503, "parts of what is shown here cannot be read now"))
        kube.up()
        until_in_force(lambda: readiness(url)[0] == 200)


def until_gone(url, name, revision):
    while any(job["spec"]["name"] == name for job in get(f"{url}/api/v1/jobs")["jobs"]):
        revision = get(f"{url}/api/v1/changes?revision={revision}")["revision"]


def test_what_keeps_it_from_reading_is_said(kube, viewers, tmp_path):
    visitor = Person(kube, "visitor").run("gqueue", ok=False)
    assert visitor.returncode == 5 and 'cannot list resource "nodes"' in visitor.stderr and "rbac-viewer.yaml" in visitor.stderr
    nobody = Person(kube, config=tmp_path / "none").run("gqueue", ok=False)
    assert nobody.returncode != 0 and "none" in nobody.stderr
    viewer = Person(kube)
    lost = viewer.run("gqueue", "--server", "kube:elsewhere", ok=False)
    assert lost.returncode == 3 and "there is no context 'elsewhere'" in lost.stderr
    away = Person(kube, config=kube.kubeconfig("x", "away", server="https://127.0.0.1:1")).run("gqueue", ok=False)
    assert away.returncode == 4 and "127.0.0.1:1" in away.stderr


def test_what_it_waits_for_is_said(kube, viewers):
    with socket.create_server(("127.0.0.1", 0)) as mute:
        server = f"http://127.0.0.1:{mute.getsockname()[1]}"
        person = Person(kube, config=kube.kubeconfig("x", "mute", server=server))
        process = subprocess.Popen([BIN / "gqueue"], env=person.env, stderr=subprocess.PIPE, text=True)
        try:
            assert process.stderr.readline() == f"gqueue: note: asking {server}\n"
        finally:
            process.kill()
            process.wait(PATIENCE)


def test_a_cluster_without_gflow_kube_shows_its_nodes(kube, viewer):
    kube.node("v", 4)
    kube.pod("theirs", 1, "v")
    assert viewer.queue() == {}
    assert "V100" in viewer.says("ginfo", "--server", "kube:test")


def test_of_another_scheduler_by_name(kube, start, viewer):
    kube.node("v", 4)
    make_pod(kube, "night", None, 1, scheduler="night")
    assert viewer.queue() == {}
    assert viewer.queue(GFLOW_KUBE_SCHEDULER="night").keys() == {"default/night"}


def test_a_pod_nobody_placed_waits_and_is_not_placed_here(kube, viewer):
    """Room there is, and a scheduler is not."""
    kube.node("v", 4)
    make_pod(kube, "p", None, 1)
    job = viewer.queue()["default/p"]
    assert job["status"] == "Queued" and job["gpu_indices"] == []
    assert "Nothing blocks it" in viewer.says("gjob", "why", "p")
