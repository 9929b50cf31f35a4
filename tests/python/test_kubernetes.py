# SPDX-License-Identifier: Apache-2.0
"""gflow.kubernetes against a kube-apiserver, as the service account of packaging/kubernetes: what it answers, and pods that are bound."""

import contextlib
import socket
from concurrent.futures import ThreadPoolExecutor

import gflow
import pytest
from cluster import ADMIN, path_of
from gflow import GPUMemoryGuard, GPUResourceParser, GPUScheduler, SchedulingPolicy, SchedulingRequest
from package import ROOT

pytestmark = pytest.mark.usefixtures("kube_package", "native")

DEDICATED = {"key": "team", "value": "vision", "effect": "NoSchedule"}
OF_GPUS = {"key": "nvidia.com/gpu", "effect": "NoSchedule"}
PREFERRED = {"key": "cheap", "effect": "PreferNoSchedule"}


def container(name, gpus=0, cpu=None, **more):
    limits = {**({"nvidia.com/gpu": str(gpus)} if gpus else {}), **({"cpu": cpu} if cpu else {})}
    return {"name": name, "image": "none", "resources": {"limits": limits}, **more}


def scheduler_of(client, policy=SchedulingPolicy.PACK):
    parser = GPUResourceParser()
    made = GPUScheduler(client, parser, GPUMemoryGuard(client, parser))
    made.scheduling_policy = policy
    return made


def wanted(pod, text="1(V100)"):
    return SchedulingRequest(pod, "default", text)


@pytest.mark.parametrize("page_size", [1, 2, 500])
def test_nodes_are_the_dictionaries_of_the_documents(kube, kubernetes_client, page_size):
    kube.node("a", 4)
    kube.node("b", 8, None, **{"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"})
    kube.node("c", ready=False)
    kube.node("d", unschedulable=True)
    kube.node("e", taints=[DEDICATED])
    kube.node("f", taints=[OF_GPUS, PREFERRED])
    kube.node("g", 2, "MI300X", resource="amd.com/gpu")
    kube.node("h", 0, None)
    kube.pod("p", 1, "a", spec={"containers": [container("main", 1, "1500m"), container("side", 0, "500m")]})
    nodes = {one["name"]: one for one in kubernetes_client(page_size=page_size).get_nodes()}
    assert nodes["a"] == {
        "name": "a", "ready": True, "schedulable": True, "labels": {"gpu-type": "V100"}, "gpu_info": {"nvidia.com/gpu": {"allocatable": 4}},
        "cpu_allocatable": 8.0, "used_cpu": 2.0, "memory_allocatable": 32.0, "used_memory": 0.0}
    assert {name: (one["ready"], one["schedulable"]) for name, one in nodes.items()} == {
        "a": (True, True), "b": (True, True), "c": (False, True), "d": (True, False), "e": (True, False), "f": (True, True),
        "g": (True, True), "h": (True, True)}
    assert nodes["g"]["gpu_info"] == {"amd.com/gpu": {"allocatable": 2}} and nodes["h"]["gpu_info"] == {}
    assert [one["schedulable"] for one in kubernetes_client(tolerated=["team"]).get_nodes() if one["name"] == "e"] == [True]


def test_a_list_whose_pages_expired_is_read_anew(kube, kubernetes_client, monkeypatch):
    """A server that keeps old versions for a short time only answers 410 in the middle of a list."""
    from gflow.errors import problem_of

    for name in "abcd":
        kube.node(name)
    client = kubernetes_client(page_size=2)
    ask, refused = client._api.ask, []

    def asked(method, path, *words, **options):
        if "continue" in (options.get("query") or {}) and len(refused) < 2:
            refused.append(path)
            raise problem_of({"status": 410, "detail": "The provided continue parameter is too old"}, method)
        return ask(method, path, *words, **options)

    monkeypatch.setattr(client._api, "ask", asked)
    assert [one["name"] for one in client.get_nodes()] == ["a", "b", "c", "d"] and refused == ["/api/v1/nodes"] * 2
    refused.clear()
    monkeypatch.setattr("gflow._kube_api._MOST_STARTS", 1)
    with pytest.raises(gflow.Unavailable, match="expires before it is read: The provided continue parameter is too old"):
        client.get_nodes()


def test_pods_hold_what_kubernetes_says_they_hold(kube, kubernetes_client):
    """What runs together is added up, what comes before it is not; who has ended holds nothing."""
    kube.node("a", 8)
    specs = {
        "together": ({"containers": [container("x", 1), container("y", 2)]}, 3),
        "before": ({"containers": [container("x", 1)], "initContainers": [container("i", 4), container("j", 2)]}, 4),
        "beside": ({"containers": [container("x", 1)], "initContainers": [container("s", 2, restartPolicy="Always"), container("i", 1)]}, 3),
        "none": ({"containers": [container("x")]}, 0),
    }
    for name, (spec, _) in specs.items():
        kube.pod(name, node="a", spec=spec)
    kube.pod("over", 1, "a")
    kube.end_pod("over")
    kube.pod("waits", 2)
    pods = {one["name"]: one for one in kubernetes_client(page_size=2).get_pods()}
    assert {name: one["gpu_resources"].get("nvidia.com/gpu", 0) for name, one in pods.items()} == {
        **{name: gpus for name, (_, gpus) in specs.items()}, "waits": 2}
    assert pods["together"] == {
        "name": "together", "namespace": "default", "labels": {}, "node_name": "a", "phase": "Pending", "gpu_resources": {"nvidia.com/gpu": 3},
        "cpu": 0.0, "memory": 0.0}
    assert pods["waits"]["node_name"] is None


def test_the_scheduler_and_the_guard_see_the_cluster(kube, kubernetes_client):
    kube.node("full", 2)
    kube.node("half", 4)
    kube.node("empty", 4)
    kube.node("other", 4, "A100")
    kube.node("cordoned", 4, unschedulable=True)
    kube.pod("p", 2, "full")
    kube.pod("q", 2, "half")
    client = kubernetes_client()
    assert scheduler_of(client).schedule_pod(wanted("new")) == "half"
    assert scheduler_of(client, "spread").schedule_pod(wanted("new")) == "empty"
    assert scheduler_of(client).schedule_pod(wanted("new", "8(V100)")) is None
    found = GPUMemoryGuard(client, GPUResourceParser()).find_suitable_nodes(40.0)
    assert [(one["node_name"], one["available_gpus"], one["memory_per_gpu"]) for one in found] == [("other", 4, 80.0)]


def test_a_pod_is_bound(kube, kubernetes_client):
    kube.node("a", 2)
    kube.node("b", 4)
    scheduler = scheduler_of(kubernetes_client())
    for name in ("one", "two", "three"):
        kube.pod(name)
        scheduler.add_scheduling_request(wanted(name))
    scheduler.add_scheduling_request(wanted("missing"))
    placed = scheduler.process_pending_requests(bind=True)
    assert [(request.pod_name, node) for request, node in placed] == [("one", "a"), ("two", "a"), ("three", "b")]
    assert [kube.node_of(name) for name in ("one", "two", "three")] == ["a", "a", "b"]
    assert [one.pod_name for one in scheduler.pending_requests] == ["missing"]
    assert scheduler.schedule_pod(wanted("one"), bind=True) == "a", "where it is"
    assert kubernetes_client().allocations() == [], "nothing is held beyond the pods"


@contextlib.contextmanager
def meanwhile(client, call):
    """What somebody else does after a pod was read and before it is bound."""
    bind = client._bind
    client._bind = lambda *words: (call(), bind(*words))[1]
    yield
    client._bind = bind


def test_a_pod_that_somebody_else_bound_is_where_they_put_it(kube, kubernetes_client, caplog):
    kube.node("a")
    kube.node("b")
    kube.pod("p")
    client = kubernetes_client()
    scheduler = scheduler_of(client)
    binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "b"}}
    with meanwhile(client, lambda: kube.ask("POST", f"{path_of('Pod', 'default')}/p/binding", binding)):
        assert scheduler.schedule_pod(wanted("p"), bind=True) == "b"
    assert kube.node_of("p") == "b"

    def made_anew():
        kube.delete_pod("q")
        kube.pod("q")

    kube.pod("q")
    with meanwhile(client, made_anew):  # this is another pod, which nobody asked about
        assert scheduler.schedule_pod(wanted("q"), bind=True) is None
    assert kube.node_of("q") is None and "409 wrong_state" in caplog.text
    assert client.allocations() == []


def test_a_pod_goes_to_the_next_node_where_gpus_were_taken_meanwhile(kube, kubernetes_client):
    kube.node("a", 1)
    kube.node("b", 2)
    kube.pod("p")
    client = kubernetes_client()
    find = client.get_nodes

    def taken_meanwhile():
        told = find()
        kube.pod("faster", 1, "a")
        return told

    client.get_nodes = taken_meanwhile
    pods = client.get_pods()
    client.get_pods = lambda: pods  # as they were before
    assert scheduler_of(client).schedule_pod(wanted("p"), bind=True) == "b"
    assert kube.node_of("p") == "b"


def test_of_two_schedulers_that_bind_at_once_one_gets_the_last_gpu(kube, kubernetes_client):
    """However often they are asked at the same time."""
    for turn in range(5):
        kube.clear()
        kube.node("a", 1)
        pods = [f"p{turn}", f"q{turn}"]
        for name in pods:
            kube.pod(name)
        schedulers = [scheduler_of(kubernetes_client()) for _ in pods]
        with ThreadPoolExecutor() as both:
            found = list(both.map(lambda one: one[0].schedule_pod(wanted(one[1]), bind=True), zip(schedulers, pods)))
        assert sorted(map(str, found)) == ["None", "a"] and [kube.node_of(name) for name in pods] == found


def test_reservations_are_labels_of_nodes(kube, kubernetes_client):
    """Which needs a right of its own."""
    kube.node("a")
    guard = GPUMemoryGuard(kubernetes_client(), GPUResourceParser())
    assert guard.reserve_gpu_memory("a", 1, 16.0) is False
    as_admin = GPUMemoryGuard(kubernetes_client(kubeconfig=kube.kubeconfig(ADMIN, "admin")), GPUResourceParser())
    assert as_admin.reserve_gpu_memory("a", 1, 16.0) is True
    labels = lambda: kube.ask("GET", f"{path_of('Node')}/a")["metadata"]["labels"]
    assert labels() == {"gpu-type": "V100", "gflow/reserved-gpu-memory-16gb": "1"}
    assert as_admin.release_gpu_memory("a", 1, 16.0) is True
    assert labels() == {"gpu-type": "V100"}


def test_what_is_not_allowed_has_a_way_out(kube, kubernetes_client):
    if "stranger" not in kube.strangers:
        kube.make({"kind": "ServiceAccount", "metadata": {"name": "stranger", "namespace": "default"}})
        kube.strangers.add("stranger")
    stranger = kubernetes_client(kubeconfig=kube.kubeconfig(kube.token("stranger", "default"), "stranger"))
    with pytest.raises(gflow.PermissionDenied, match=r"pods is forbidden: User .*stranger.*rbac\.yaml.*403 permission"):
        stranger.get_nodes()
    wrong = kubernetes_client(kubeconfig=kube.kubeconfig("no-token", "wrong"))
    with pytest.raises(gflow.Unauthenticated, match="kubectl auth whoami"):
        wrong.get_pods()


def test_a_namespace_that_is_not_there(kube, kubernetes_client):
    kube.node("a")
    resources = gflow.manager.GPUResourceManager(kubernetes_client(kubeconfig=kube.kubeconfig(ADMIN, "admin"), namespace="nowhere"))
    with pytest.raises(gflow.ConfigurationError, match=r'namespaces "nowhere" not found: .*rbac\.yaml'):
        resources.allocate_gpu_resources(gflow.manager.TrainingGPUConfig())


def test_which_cluster_is_meant(kube, kubernetes_client, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    with pytest.raises(gflow.ConfigurationError, match="this is no pod, and there is no ~/.kube/config"):
        gflow.kubernetes.KubernetesClient()
    with pytest.raises(gflow.ConfigurationError, match="nowhere.*kubectl config view"):
        kubernetes_client(context="nowhere")
    for bad in ({"timeout": 0}, {"page_size": 0}, {"lease_seconds": 1.5}):
        with pytest.raises(gflow.OptionError, match=next(iter(bad))):
            kubernetes_client(**bad)
    kube.node("a")
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube/config").write_text(kube.kubeconfig(ADMIN, "admin").read_text())
    with gflow.kubernetes.KubernetesClient() as found:
        assert found.server == kube.url and [one["name"] for one in found.get_nodes()] == ["a"]
        assert found.user() == "admin"


def test_nobody_there_and_nobody_who_answers(kube, kubernetes_client):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        config = kube.kubeconfig(ADMIN, "silent")
        config.write_text(config.read_text().replace(str(kube.port), str(silent.getsockname()[1])))
        with pytest.raises((gflow.ServerTimeout, gflow.Unreachable), match="Kubernetes at https://127.0.0.1"):
            kubernetes_client(kubeconfig=config, timeout=0.2).get_nodes()
    with pytest.raises(gflow.Unreachable, match="cannot be reached: .*refused"):
        kubernetes_client(kubeconfig=config, timeout=1).get_nodes()


def test_the_rights_are_those_that_are_used(kube, kubernetes_client):
    """Nothing that packaging/kubernetes grants is never asked for, and it was enough for all that these tests do."""
    import yaml

    granted = {
        (verb, group, resource)
        for name in ("rbac.yaml", "rbac-binder.yaml")
        for document in yaml.safe_load_all((ROOT / "packaging/kubernetes" / name).read_text())
        for rule in document.get("rules", ())
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    kube.node("a", 2)
    kube.pod("p")
    client = kubernetes_client()
    manager = gflow.manager.GPUResourceManager(client)
    node = manager.allocate_gpu_resources(gflow.manager.TrainingGPUConfig(gpu_count=1))
    assert scheduler_of(client).schedule_pod(wanted("p"), bind=True) == node == "a"
    assert manager.cleanup_gpu_resources("a", 1) is True
    asked = kube.asked_by("system:serviceaccount:gflow:gflow")
    assert asked - {("create", "authentication.k8s.io", "selfsubjectreviews"), ("patch", "", "nodes")} == granted
