# SPDX-License-Identifier: Apache-2.0
"""The resource manager over a kube-apiserver: GPUs of a cluster that programs hold, whatever becomes of them or of it."""

import contextlib
import json
import os
import signal
import subprocess
import threading
import time

import gflow
import pytest
import wheels
from cluster import path_of
from guide import PATHS
from machine import PATIENCE
from package import SOURCE
from pypi import program

pytestmark = pytest.mark.usefixtures("kube_package", "native")

# Takes GPUs, says whether it has them, and holds them until it is told to end.
HOLDER = """
import sys
from gflow.kubernetes import KubernetesClient
from gflow.manager import GPUResourceManager, TrainingGPUConfig
manager = GPUResourceManager(KubernetesClient(kubeconfig=sys.argv[1], lease_seconds=int(sys.argv[2])))
sys.stdin.readline()  # so that several begin at once
held = manager.hold(TrainingGPUConfig(gpu_count=int(sys.argv[3])))
print(held.node if held else "none", flush=True)
sys.stdin.readline()
"""


# Forks that each want a GPU at the same time: what each got, and what was held when all had been answered.
RACE = """
import json, multiprocessing, sys
from gflow.kubernetes import KubernetesClient
from gflow.manager import GPUResourceManager, TrainingGPUConfig

client = KubernetesClient(kubeconfig=sys.argv[1])
first = GPUResourceManager(client)  # what the package builds when it is first called is built before they begin
first.give_back(first.hold(TrainingGPUConfig(gpu_count=1)))

def race(start, end, answers):
    manager = GPUResourceManager(client)
    start.wait()
    held = manager.hold(TrainingGPUConfig(gpu_count=1))
    answers.put(held.node if held else "none")
    end.wait()
    if held:
        manager.give_back(held)

several = multiprocessing.get_context("fork")
count = int(sys.argv[2])
start, end, answers = several.Barrier(count), several.Event(), several.Queue()
racing = [several.Process(target=race, args=(start, end, answers)) for _ in range(count)]
for one in racing:
    one.start()
told = [answers.get() for _ in racing]
held = [(one.node, one.holder) for one in client.allocations()]
end.set()
for one in racing:
    one.join()
print(json.dumps({"answers": told, "held": held}))
"""


# Holds several at its end, when nobody answers any more.
AT_ITS_END = """
import sys
from gflow import _kube_source
from gflow.kubernetes import KubernetesClient
from gflow.manager import GPUResourceManager, TrainingGPUConfig

_kube_source._EXIT_SECONDS = 1
manager = GPUResourceManager(KubernetesClient(kubeconfig=sys.argv[1], timeout=3600, lease_seconds=3600))
print([manager.hold(TrainingGPUConfig()).node for _ in range(3)])
"""


@pytest.fixture
def manager(kubernetes_client):
    """Makes managers over a client of its own each."""
    made = []

    def make(**options):
        made.append(gflow.manager.GPUResourceManager(kubernetes_client(**options)))
        return made[-1]

    yield make
    for one in made:
        for held in list(one._held):
            one.give_back(held)


@pytest.fixture
def environment(bare):
    """Of a program beside the tests."""
    paths = (SOURCE, wheels.package(), PATHS)
    return bare.environment | {"PYTHONPATH": ":".join(map(str, paths)), "PYTHONDONTWRITEBYTECODE": "1"}


# The package's own sources, with the native module of the wheel beside them.
def program_of(script):
    return [program("python"), "-c", f"import gflow; gflow.__path__.append({str(wheels.package() / 'gflow')!r})\n{script}"]


@pytest.fixture
def run_program(environment):
    """What a program that has the package prints."""

    def run(script, *words, **env):
        done = subprocess.run([*program_of(script), *words], env=environment | env, capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


class Holder:
    def __init__(self, environment, kubeconfig, ttl, count):
        self.process = subprocess.Popen(
            [*program_of(HOLDER), kubeconfig, str(ttl), str(count)], env=environment, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def begin(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def answer(self):
        """The node, or "none"."""
        said = self.process.stdout.readline().strip()
        assert said, self.process.stderr.read()
        return said

    def end(self):
        self.begin()
        assert self.process.wait(PATIENCE) == 0, self.process.stderr.read()


@pytest.fixture
def holder(kube, environment):
    made = []

    def make(count=1, ttl=60):
        made.append(Holder(environment, str(kube.kubeconfig(kube.token("gflow", "gflow"), "holder")), ttl, count))
        return made[-1]

    yield make
    for one in made:
        with contextlib.suppress(OSError):
            one.process.kill()
        one.process.communicate(timeout=PATIENCE)


def config(count=1, **more):
    return gflow.manager.TrainingGPUConfig(gpu_count=count, **more)


def free(manager):
    return {one.node_name: one.available_gpus for one in manager.get_available_gpu_nodes()}


def eventually(ask):
    """Its first answer that is one. Nothing tells a test what the API server's clock says."""
    end = time.monotonic() + PATIENCE
    while not (told := ask()):
        assert time.monotonic() < end, "it never was"
        time.sleep(0.1)
    return told


def test_gpus_are_held_and_given_back(kube, manager, kubernetes_client, monkeypatch):
    kube.node("a", 4)
    kube.node("b", 8, "A100")
    kube.node("cordoned", 8, unschedulable=True)
    kube.pod("p", 1, "a")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    resources = manager()
    assert resources.initialized is True
    assert resources.validate_gpu_requirements(config(4, gpu_type="V100", memory_gb=32.0)) is True, "once the pod has ended"
    assert resources.validate_gpu_requirements(config(9)) is False
    assert resources.validate_gpu_requirements(config(1, compute_ratio=0.5)) is False
    assert resources.allocate_gpu_resources(config(4, gpu_type="V100")) is None
    assert resources.allocate_gpu_resources(config(2, gpu_type="V100")) == "a"
    assert resources.allocate_gpu_resources(config(2, gpu_type="V100")) is None
    assert resources.allocate_gpu_resources(config(1, memory_gb=80.0)) == "b"
    assert free(resources) == {"a": 1, "b": 7}
    nodes = resources.get_available_gpu_nodes("A100", 40)
    assert [(one.node_name, one.gpu_type, one.memory_per_gpu) for one in nodes] == [("b", "A100", 80.0)]
    assert resources.get_gpu_monitoring_data()["nodes"][0]["gpus"] == [
        {"gpu_type": "V100", "resource": "nvidia.com/gpu", "total": 4, "available": 1, "memory_total_gb": 32.0}]
    assert resources.newest().setup("pytorch", config(1))["devices"] == ["cuda:0"]
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "7", "they are not those of this machine"
    lease = kube.ask("GET", f"{path_of('Lease', 'gflow')}/a")
    assert lease["spec"]["holderIdentity"].endswith(f"/{os.getpid()}") and lease["spec"]["leaseDurationSeconds"] == 60
    assert [(one.node, one.gpus, one.user) for one in kubernetes_client().allocations()] == [
        ("a", 2, "system:serviceaccount:gflow:gflow"), ("b", 1, "system:serviceaccount:gflow:gflow")]
    assert resources.cleanup_gpu_resources("a", 2) is True and resources.cleanup_gpu_resources("a", 2) is False
    assert resources.cleanup_gpu_resources("b") is True
    assert free(resources) == {"a": 3, "b": 8}
    assert resources.cleanup_gpu_resources("a", 1) is False


def test_a_pod_under_an_allocation_is_not_counted_twice(kube, manager, kubernetes_client):
    """And no other gets its GPUs."""
    kube.node("a", 4)
    resources = manager()
    held = resources.hold(config(3))
    kube.pod("mine", 2, labels={"gflow/lease": str(held.allocation_id)})
    assert kubernetes_client().bind_pod("default", "mine", "a") == "a"
    assert free(resources) == {"a": 1}
    kube.pod("other", 2)
    with pytest.raises(gflow.NoGpus, match="node a: 1 nvidia.com/gpu free, not 2"):
        kubernetes_client().bind_pod("default", "other", "a")
    resources.give_back(held)
    assert free(resources) == {"a": 2}
    kube.pod("late", 1, labels={"gflow/lease": str(held.allocation_id)})
    with pytest.raises(gflow.NoGpus, match="holds nothing on node a"):
        kubernetes_client().bind_pod("default", "late", "a")


def test_of_those_who_race_each_gets_others(kube, run_program, kubernetes_client):
    """Ten processes at once for five GPUs of two nodes: five have one each."""
    kube.node("a", 2)
    kube.node("b", 4)
    kube.pod("p", 1, "b")
    told = json.loads(run_program(RACE, str(kube.kubeconfig(kube.token("gflow", "gflow"))), "10"))
    assert sorted(told["answers"]) == ["a"] * 2 + ["b"] * 3 + ["none"] * 5
    assert sorted(node for node, _ in told["held"]) == ["a", "a", "b", "b", "b"] and len({holder for _, holder in told["held"]}) == 5
    assert kubernetes_client().allocations() == []


def test_what_a_killed_program_held_is_free_when_its_lease_ends(kube, holder, manager):
    kube.node("a", 2)
    one = holder(2, ttl=10)
    one.begin()
    assert one.answer() == "a"
    resources = manager()
    one.process.kill()
    one.process.wait(PATIENCE)
    assert resources.allocate_gpu_resources(config()) is None, "nobody knows yet whether it lives"
    assert eventually(lambda: resources.allocate_gpu_resources(config(2))) == "a"


def test_who_was_stopped_too_long_hears_that_it_has_lost_them(kube, holder, manager, kubernetes_client):
    kube.node("a", 1)
    one = holder(1, ttl=2)
    one.begin()
    assert one.answer() == "a"
    one.process.send_signal(signal.SIGSTOP)
    resources = manager()
    assert eventually(lambda: resources.allocate_gpu_resources(config())) == "a"
    one.process.send_signal(signal.SIGCONT)
    assert "GPU资源已被收回" in iter(one.process.stderr.readline, "").__next__()
    one.end()
    assert [held.holder.endswith(f"/{os.getpid()}") for held in kubernetes_client().allocations()] == [True], "it took nothing of the other's"


def test_what_another_program_holds_is_given_back_on_purpose_only(kube, manager, frequent_renewals, kubernetes_client):
    """Both are one service account."""
    kube.node("a", 4)
    mine, other = manager(), manager()
    lost = threading.Event()
    held = mine.hold(config(2))
    held.on_lost(lambda _: lost.set())
    assert other.allocate_gpu_resources(config(2)) == "a"
    assert other.cleanup_gpu_resources("a", 2) is True
    assert other.cleanup_gpu_resources("a", 2) is False and other.cleanup_gpu_resources("a") is False
    assert free(other) == {"a": 2}
    (one,) = kubernetes_client().allocations()
    assert kubernetes_client().give_back(one) is True and kubernetes_client().give_back(one) is False
    assert free(other) == {"a": 4}
    assert lost.wait(PATIENCE), "the next renewal finds that it is gone"
    assert mine.give_back(held) is False


def test_an_api_server_that_restarts_loses_nothing(kube, manager, frequent_renewals, kubernetes_client):
    kube.node("a", 2)
    resources = manager()
    held = resources.hold(config(1))
    client = kubernetes_client()
    kube.stop_apiserver()
    with pytest.raises((gflow.Unreachable, gflow.ConnectionLost)):
        client.get_nodes()
    assert resources.initialized is False
    kube.up()
    before = client.allocations()
    assert [one.id for one in before] == [held.allocation_id]
    eventually(lambda: client.allocations()[0].renewed > before[0].renewed)
    assert held.lost is None and free(resources) == {"a": 1}
    assert resources.give_back(held) is True


def test_who_cannot_renew_in_time_has_lost_them(kube, manager, caplog):
    kube.node("a", 2)
    resources = manager(lease_seconds=2)
    held = resources.hold(config(1))
    lost = threading.Event()
    held.on_lost(lambda _: lost.set())
    kube.stop_apiserver()
    try:
        assert lost.wait(PATIENCE)
        assert held.lost.startswith("it could not be renewed in 2 s: ") and f"GPU资源已被收回: {held.lost}" in caplog.text
    finally:
        kube.up()
    assert resources.give_back(held) is False


def test_a_program_ends_though_nobody_answers(kube, between, kubeconfig_of, run_program):
    kube.node("a", 4)
    ended, written = threading.Event(), []

    def silent(method, path, forward):
        if len(written) == 3:
            ended.wait()
        if method in ("POST", "PUT") and "/leases" in path:
            written.append(path)
        return forward()

    between.hook = silent
    try:
        assert run_program(AT_ITS_END, str(kubeconfig_of(server=between.url))) == "['a', 'a', 'a']\n"
    finally:
        ended.set()


def test_the_environment_chooses_the_cluster(kube, run_program):
    """The guide's own words, where GFLOW_KUBERNETES names a context, or says to look for one."""
    kube.node("gpu-node-1", 4)
    script = """
from backend.algorithm_engine.gpu_resource_integration import get_gpu_resource_manager, TrainingGPUConfig
gpu_manager = get_gpu_resource_manager()
gpu_config = TrainingGPUConfig(gpu_count=2, gpu_type='V100', memory_gb=32.0, distributed_training=True)
if gpu_manager.validate_gpu_requirements(gpu_config):
    allocated_node = gpu_manager.allocate_gpu_resources(gpu_config)
    print(allocated_node, [one.available_gpus for one in gpu_manager.get_available_gpu_nodes()])
    print(gpu_manager.cleanup_gpu_resources(allocated_node, gpu_config.gpu_count))
"""
    for named in ("auto", "test"):
        config = str(kube.kubeconfig(kube.token("gflow", "gflow")))
        assert run_program(script, GFLOW_KUBERNETES=named, KUBECONFIG=config) == "gpu-node-1 [2]\nTrue\n"


def test_in_a_pod_it_is_the_service_account(kube, manager, tmp_path, monkeypatch):
    """Its token and its authority are files, which are read again when they are replaced."""
    from kubernetes.config import incluster_config

    kube.node("a", 1)
    token = tmp_path / "token"
    token.write_text(kube.token("gflow", "gflow"))
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(token))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(kube.root / "certs/apiserver.crt"))
    for name, value in (("HOME", str(tmp_path)), ("KUBERNETES_SERVICE_HOST", "127.0.0.1"), ("KUBERNETES_SERVICE_PORT", str(kube.port))):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    with gflow.kubernetes.KubernetesClient() as client:
        assert client.user() == "system:serviceaccount:gflow:gflow"
        assert [one["name"] for one in client.get_nodes()] == ["a"]


def test_what_is_written_there_by_others_stays(kube, manager):
    """A Lease of the node's name that has labels and annotations of others, and none of ours."""
    kube.node("a", 2)
    kube.make({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
               "metadata": {"name": "a", "namespace": "gflow", "annotations": {"team": "vision"}, "labels": {"keep": "this"}}})
    resources = manager()
    assert resources.allocate_gpu_resources(config(2)) == "a"
    metadata = kube.ask("GET", f"{path_of('Lease', 'gflow')}/a")["metadata"]
    assert (metadata["annotations"]["team"], metadata["labels"]) == ("vision", {"keep": "this"})
    assert len(json.loads(metadata["annotations"]["gflow/allocations"])) == 1
    assert resources.cleanup_gpu_resources("a") is True
