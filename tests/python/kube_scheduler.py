# SPDX-License-Identifier: Apache-2.0
"""gflow-kube as tests run it, and an oracle that reads nothing but the API server."""

import contextlib
import json
import os
import signal
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from fractions import Fraction

import pytest
from cluster import ADMIN, path_of, programs
from machine import BIN, PATIENCE
from package import ROOT
from pypi import needed

SYSTEM = "gflow-system"  # its namespace
NODE_SYSTEM, PLUGIN = "gflow-node", "gflow-device-plugin"
CLAIMS_SYSTEM, DRIVER = "gflow-dra", "gflow-dra-driver"
GPUS = ("nvidia.com/gpu", "amd.com/gpu")
SUFFIXES = {"": 1, "m": Fraction(1, 1000), "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}


def amount(text):
    number = text.rstrip("Kimg" + "MG")
    return Fraction(number) * SUFFIXES[text[len(number):]]


class Scheduler:
    """One process."""

    def __init__(self, kube, *options, command=(), account="gflow-kube", namespace=SYSTEM, user=None, server=None):
        config = kube.kubeconfig("" if user else kube.token(account, namespace), f"of-{account}", user, server)
        self.log = kube.root / f"gflow-kube-{time.monotonic_ns()}.log"
        with open(self.log, "wb") as log:
            self._process = subprocess.Popen(
                [BIN / "gflow-kube", *command, "--kubeconfig", config, *options], stderr=log, stdout=log,
                env={"PATH": os.environ["PATH"], "HOME": str(kube.root)})

    @property
    def pid(self):
        return self._process.pid

    def said(self):
        return self.log.read_text()

    def says(self, text):
        """Whether it does before long. Its log is a file: there is nothing to be told by."""
        end = time.monotonic() + 30
        while text not in self.said() and time.monotonic() < end:
            time.sleep(0.02)
        return text in self.said()

    def is_running(self):
        return self._process.poll() is None

    def wait(self):
        """Until it ends, however long that takes."""
        return self._process.wait()

    def send(self, how):
        if self.is_running():
            self._process.send_signal(how)

    def end(self, how=signal.SIGTERM):
        self.send(how)
        return self._process.wait(PATIENCE)


def end_lease(kube):
    """Of one that was killed: as its time does, and sooner."""
    kube.ask("DELETE", path_of("Lease", SYSTEM))


def make_pod(kube, name, gpu=None, count=0, *, cpu=None, memory=None, priority=None, namespace="default", scheduler="gflow", **spec):
    limits = {**({"nvidia.com/gpu": str(count)} if count else {}), **({"cpu": cpu} if cpu else {}), **({"memory": memory} if memory else {})}
    return kube.make({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "annotations": {"gflow/gpu": gpu} if gpu else {}},
        "spec": {"schedulerName": scheduler, "terminationGracePeriodSeconds": 0, **spec,
                 "containers": spec.get("containers", [{"name": "main", "image": "none", "resources": {"limits": limits}}])}})


def make_member(kube, name, gpus=1, *, size=None, gang="train", metadata=None, spec=None):
    """A pod that starts together with others."""
    own = {"annotations": {"gflow/gang": gang, "gflow/gang-size": str(size)}} if size else {}
    return kube.make({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default", **own, **(metadata or {})},
        "spec": {"schedulerName": "gflow", "terminationGracePeriodSeconds": 0, **(spec or {}),
                 "containers": [{"name": "main", "image": "none", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}]}})


def make_budget(kube, name, allowed, **labels):
    """What the disruption controller would write of it is given."""
    path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    made = kube.ask("POST", path, {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}}})
    kube.ask("PATCH", f"{path}/{name}/status", {"status": {
        "observedGeneration": made["metadata"]["generation"], "disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}})
    return f"{path}/{name}"


def make_limits(kube, **data):
    path = "/api/v1/namespaces/gflow-system/configmaps"
    kube.ask("POST", path, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "gflow-kube-limits"}, "data": data})
    return f"{path}/gflow-kube-limits"


def pods_of(kube, namespace="default"):
    listed = kube.ask("GET", path_of("Pod", namespace))
    return {one["metadata"]["name"]: one for one in listed["items"]}


def node_of(pod):
    return pod["spec"].get("nodeName")


def told(pod):
    """Why it waits, as its condition says."""
    for one in pod.get("status", {}).get("conditions", ()):
        if one["type"] == "PodScheduled" and one["status"] == "False":
            return one["message"]
    return None


def chosen(pod):
    """(resource, index, parts) of each device that it has."""
    written = pod["metadata"].get("annotations", {}).get("gflow/allocation")
    if written is None:
        return []
    return [(one["resource"], one["index"], one["share_parts"]) for one in json.loads(written)["devices"]]


def until(kube, is_so, patience=60, namespace="default", kind="Pod"):
    """The pods by name once that is so of them, or what else of that kind: a list, and a watch from there on."""
    end = time.monotonic() + patience
    trusted = ssl.create_default_context(cafile=kube.root / "certs/apiserver.crt")
    pods = {}
    while True:
        with contextlib.suppress(OSError):  # the server is down just now
            listed = json.loads(kube.raw("GET", path_of(kind, namespace)))
            pods = {one["metadata"]["name"]: one for one in listed["items"]}
            version = listed["metadata"]["resourceVersion"]
            if is_so(pods):
                return pods
            asked = urllib.request.Request(
                f"{kube.url}{path_of(kind, namespace)}?watch=1&timeoutSeconds=2&resourceVersion={version}",
                headers={"Authorization": f"Bearer {ADMIN}"})
            with urllib.request.urlopen(asked, timeout=PATIENCE, context=trusted) as answer:
                for line in answer:
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        break
                    name = event["object"]["metadata"]["name"]
                    pods.pop(name, None)
                    if event["type"] != "DELETED":
                        pods[name] = event["object"]
                    if is_so(pods):
                        return pods
        assert time.monotonic() < end, {name: (node_of(pod), told(pod)) for name, pod in pods.items()}


def until_bound(kube, *names, **more):
    return until(kube, lambda pods: all(name in pods and node_of(pods[name]) for name in names), **more)


def until_told(kube, name, text, **more):
    return told(until(kube, lambda pods: name in pods and text in (told(pods[name]) or ""), **more)[name])


def until_in_force(is_so):
    """What was applied or taken back is in force or not any more a moment later, and nobody tells when."""
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.05)


def held(pod):
    """What its containers ask for; the pods here have no others."""
    sums = {}
    for container in pod["spec"]["containers"]:
        for name, text in container["resources"].get("limits", {}).items():
            sums[name] = sums.get(name, 0) + amount(text)
    return sums


def contradictions(kube):
    """What cannot be: a device or a node that has more than it is. From the API server alone."""
    nodes = {one["metadata"]["name"]: one for one in kube.ask("GET", "/api/v1/nodes")["items"]}
    found, parts, sums = [], {}, {}
    for pod in kube.ask("GET", "/api/v1/pods")["items"]:
        node = node_of(pod)
        if not node or pod["status"].get("phase") in ("Succeeded", "Failed"):
            continue
        name = pod["metadata"]["name"]
        if node not in nodes:
            found.append(f"{name} is on {node}, which is not there")
            continue
        has = nodes[node]["status"]["allocatable"]
        for what, much in [*held(pod).items(), ("pods", 1)]:
            sums[node, what] = sums.get((node, what), 0) + much
            if sums[node, what] > amount(has.get(what, "0")):
                found.append(f"{node} has {sums[node, what]} of {what} given out, {name} the last")
        devices = chosen(pod)
        if len({device[:2] for device in devices}) != len(devices):
            found.append(f"{name} has a device twice")
        for resource, index, much in devices:
            listed = nodes[node]["metadata"].get("annotations", {}).get("gflow/devices")
            known = [(one["resource"], one["index"]) for one in json.loads(listed)["devices"]] if listed else []
            if index >= int(has.get(resource, 0)) and (resource, index) not in known:
                found.append(f"{name} has {resource} {index} of {node}, which is not there")
            key = (node, resource, index)
            parts[key] = parts.get(key, 0) + much
            if parts[key] > 10_000:
                found.append(f"{key} is given out {parts[key] / 10_000} times, {name} the last")
    return found


@pytest.fixture(scope="session")
def with_rights(control_plane):
    for name in ("namespace", "rbac-scheduler", "rbac-preempt", "rbac-defrag"):
        control_plane.apply(ROOT / f"packaging/kubernetes/{name}.yaml")


@pytest.fixture(scope="session")
def with_node_rights(control_plane):
    control_plane.apply(ROOT / "packaging/kubernetes/device-plugin.yaml")
    # There is no kubelet to run it in: tests start the program.
    control_plane.ask("DELETE", f"{path_of('DaemonSet', NODE_SYSTEM)}/{PLUGIN}")


@pytest.fixture(scope="session")
def with_driver(control_plane):
    control_plane.apply(ROOT / "packaging/kubernetes/dra-driver.yaml")
    control_plane.ask("DELETE", f"{path_of('DaemonSet', CLAIMS_SYSTEM)}/{DRIVER}")  # as that of the plugin


def admits_as_it_is(kube, scheduler):
    """Whether no policy refuses or changes a pod that asks for a GPU and says what it was given."""
    asked = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "annotations": {"gflow/gpu": "1", "gflow/allocation": "{}"}},
             "spec": {"schedulerName": scheduler, "containers": [{"name": "main", "image": "none"}]}}
    try:
        made = json.loads(kube.raw("POST", path_of("Pod", "default") + "?dryRun=All", asked))
    except urllib.error.HTTPError:
        return False
    return made["spec"]["schedulerName"] == scheduler and not made["spec"]["containers"][0]["resources"]


@pytest.fixture
def applied(kube):
    """Applies a manifest as kubectl does, strictly, and takes its objects back at the end, when none is in force for the next test."""
    import yaml

    made = []

    def apply(name, called):
        for one in yaml.safe_load_all((ROOT / "packaging/kubernetes" / name).read_text()):
            if called:
                one["metadata"]["name"] = called
                if "policyName" in one["spec"]:
                    one["spec"]["policyName"] = called
            path = f"{path_of(one['kind'])}/{one['metadata']['name']}"
            made.append(path)
            yield kube.ask("PATCH", f"{path}?fieldManager=test&fieldValidation=Strict&force=true", one, content_type="application/apply-patch+yaml")

    yield lambda name, called=None: list(apply(name, called))
    for path in made:
        kube.ask("DELETE", path)
    until_in_force(lambda: admits_as_it_is(kube, "gflow") and admits_as_it_is(kube, "default-scheduler"))


@pytest.fixture
def start(kube, with_rights):
    """Starts a scheduler; all end with the test, whose cluster has no contradiction then."""
    made = []

    def one(*options, **more):
        made.append(Scheduler(kube, *options, **more))
        return made[-1]

    yield one
    for each in made:
        each.end(signal.SIGKILL)
    assert contradictions(kube) == [], "\n".join(each.said() for each in made)


@pytest.fixture
def kube_scheduler(kube):
    """kube-scheduler, with its defaults but for what it may ask in a second."""
    program = needed(programs() / "kube-scheduler", "kube-scheduler")
    config = kube.root / "kube-scheduler.json"
    config.write_text(json.dumps({
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": str(kube.kubeconfig(ADMIN, "of-kube-scheduler")), "qps": 5000, "burst": 5000}}))
    with open(kube.root / "kube-scheduler.log", "wb") as log:
        process = subprocess.Popen([program, f"--config={config}", "--secure-port=0", "--v=0"], stdout=log, stderr=log)
    yield process
    process.send_signal(signal.SIGKILL)
    process.wait(PATIENCE)


@pytest.fixture(scope="session")
def classes(control_plane):
    """Of priority: low, high, and polite, which is as high and has nobody make room."""
    for name, value, policy in (("low", 5, "PreemptLowerPriority"), ("high", 1000, "PreemptLowerPriority"), ("polite", 1000, "Never")):
        control_plane.ask("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value, "preemptionPolicy": policy})


@pytest.fixture
def replicas(kube):
    """Makes ReplicaSets of one pod with one GPU, by the controller of Kubernetes."""
    made = []

    def one(name):
        made.append(name)
        spec = {"schedulerName": "gflow", "terminationGracePeriodSeconds": 0, "containers": [{"name": "main", "image": "none"}]}
        template = {"metadata": {"labels": {"set": name}, "annotations": {"gflow/gpu": "1"}}, "spec": spec}
        kube.make({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name, "namespace": "default"},
                   "spec": {"replicas": 1, "selector": {"matchLabels": {"set": name}}, "template": template}})
        def bound(pods):
            return [pod for pod in pods if pod.startswith(f"{name}-") and node_of(pods[pod])]

        return bound(until(kube, bound))[0]

    kube.start_controllers("replicaset")
    yield one
    for name in made:
        kube.ask("DELETE", f"{path_of('ReplicaSet', 'default')}/{name}")
    kube.stop_controllers()


def until_events(kube, pod, uid=None, reason=None):
    """Those of the pod, or of that uid, as soon as there are some."""
    end = time.monotonic() + 30
    uid = uid or pods_of(kube)[pod]["metadata"]["uid"]
    while True:
        listed = kube.ask("GET", f"/apis/events.k8s.io/v1/namespaces/default/events?fieldSelector=regarding.name={pod}")["items"]
        found = [one for one in listed if one["regarding"]["uid"] == uid and reason in (None, one["reason"])]
        if found or time.monotonic() > end:
            return found
        time.sleep(0.05)  # events are not among what a scheduler may watch
