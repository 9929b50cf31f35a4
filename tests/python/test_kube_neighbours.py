# SPDX-License-Identifier: Apache-2.0
"""Where pods may go, as far as other pods go: gflow-kube against kube-scheduler itself, on one API server.

A world is a few nodes with topology keys of their own, and pods on them in namespaces of their own. To learn which nodes a scheduler
allows a pod, the pod is made, the node that it is bound to is cordoned, which neither counts for any rule, and so on until the pod has to wait;
why, node by node, it says then. Many worlds are in the cluster at once. GFLOW_TEST_FULL=1 makes ten times as many."""

import contextlib
import http.client
import json
import os
import random
import re
import ssl
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from between import status
from cluster import ADMIN
from kube_scheduler import make_pod, node_of, told, until_bound, until_told
from machine import PATIENCE

WORLDS = 16
BATCHES = 50 if os.environ.get("GFLOW_TEST_FULL") else 5
SEED = int(os.environ.get("GFLOW_NEIGHBOURS_SEED", "1"))
NODES = 4  # of a world
DEDICATED = {"key": "team", "value": "vision", "effect": "NoSchedule"}
ASKING = "/api/v1/pods?labelSelector=asks"
REASON = re.compile(r"(\d+) (node\(s\) didn't (?:match pod|satisfy existing pods) [^,.]+)")


class Api:
    """Connections that are kept, one a thread."""

    def __init__(self, kube):
        self._port = kube.port
        self._trusted = ssl.create_default_context(cafile=kube.root / "certs/apiserver.crt")
        self._own = threading.local()

    def ask(self, method, path, body=None):
        if not hasattr(self._own, "connection"):
            self._own.connection = http.client.HTTPSConnection("127.0.0.1", self._port, context=self._trusted, timeout=PATIENCE)
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        self._own.connection.request(method, path, body and json.dumps(body), {"Authorization": f"Bearer {ADMIN}", "Content-Type": kind})
        answer = self._own.connection.getresponse()
        said = answer.read()
        assert answer.status < 300, f"{method} {path} {body}: {answer.status} {said.decode()}"
        return json.loads(said)

    def all(self, calls):
        with ThreadPoolExecutor(4) as threads:
            return list(threads.map(lambda call: self.ask(*call), calls))

    def lines(self, path):
        connection = http.client.HTTPSConnection("127.0.0.1", self._port, context=self._trusted, timeout=PATIENCE)
        with contextlib.closing(connection):
            connection.request("GET", path, headers={"Authorization": f"Bearer {ADMIN}"})
            yield from connection.getresponse()


class World:
    def __init__(self, number, seed):
        self.number, self.random = number, random.Random(f"{seed} {number}")
        self.spaces = [f"w{number}-x", f"w{number}-y"]
        self.keys = [f"zone-{number}", f"host-{number}"]
        self.nodes = [self._node(i) for i in range(NODES)]
        self.pods = [self._running(i) for i in range(self.random.randint(0, 7))]
        self.leaving = [pod["metadata"] for pod in self.pods if self._one_in(6)]
        self.asks = self._asking()

    def _one_in(self, count):
        return self.random.randrange(count) == 0

    def _node(self, i):
        name = f"w{self.number}-n{i}"
        labels = {"world": str(self.number), "disk": self.random.choice(["ssd", "hdd"])}
        if not self._one_in(8):
            labels[self.keys[0]] = self.random.choice("abc")
        if not self._one_in(12):
            labels[self.keys[1]] = name
        has = {"cpu": "8", "memory": "32Gi", "pods": "110"}
        return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
                "spec": {"taints": [DEDICATED] if self._one_in(5) else []}, "status": {"allocatable": has, "capacity": has}}

    def _labels(self):
        return {"app": self.random.choice(["web", "web", "db"]), "rev": self.random.choice("12")}

    def _pod(self, name, labels, spec):
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": self.random.choice(self.spaces), "labels": labels},
                "spec": {"containers": [{"name": "main", "image": "none"}], **spec}}

    def _selector(self):
        return self.random.choice([
            {"matchLabels": {"app": "web"}}, {"matchLabels": {"app": "web"}}, {"matchLabels": {"app": "db"}}, {}, None,
            {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]},
            {"matchExpressions": [{"key": "app", "operator": "In", "values": ["db", "web"]}, {"key": "none", "operator": "DoesNotExist"}]},
            {"matchExpressions": [{"key": "app", "operator": "Exists"}]}])

    def _term(self):
        term = {"topologyKey": self.random.choice(self.keys), "labelSelector": self._selector()}
        if term["labelSelector"] is not None and self._one_in(4):
            term[self.random.choice(["matchLabelKeys", "mismatchLabelKeys"])] = ["rev"]
        if self._one_in(4):
            term["namespaces"] = [self.random.choice(self.spaces)]
        if self._one_in(4):
            term["namespaceSelector"] = self.random.choice([{}, {"matchLabels": {"of": "vision"}}, {"matchExpressions": [
                {"key": "of", "operator": "NotIn", "values": ["vision"]}, {"key": "world", "operator": "In", "values": [str(self.number)]}]}])
        return term

    def _terms(self):
        return {"requiredDuringSchedulingIgnoredDuringExecution": [self._term() for _ in range(self.random.choice([1, 1, 2]))]}

    def _spread(self, key):
        rule = {"topologyKey": key, "maxSkew": self.random.choice([1, 1, 2]), "labelSelector": self._selector(),
                "whenUnsatisfiable": "ScheduleAnyway" if self._one_in(6) else "DoNotSchedule"}
        if rule["whenUnsatisfiable"] == "DoNotSchedule" and self._one_in(3):
            rule["minDomains"] = self.random.randint(1, 4)
        for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if self._one_in(3):
                rule[policy] = self.random.choice(["Honor", "Ignore"])
        if rule["labelSelector"] is not None and self._one_in(4):
            rule["matchLabelKeys"] = ["rev"]
        return rule

    def _rules(self, kinds):
        affinity = {kind: self._terms() for kind in ("podAffinity", "podAntiAffinity") if kind in kinds}
        keys = self.random.sample(self.keys, self.random.choice([1, 1, 2])) if "spread" in kinds else []
        return {"affinity": affinity, "topologySpreadConstraints": [self._spread(key) for key in keys]}

    def _kinds(self, most):
        return self.random.sample(["podAffinity", "podAntiAffinity", "spread"], self.random.randint(0, most))

    def _running(self, i):
        kinds = self._kinds(1) if self._one_in(2) else ["podAntiAffinity"]
        spec = self._rules(kinds) if self._one_in(3) else {}
        return self._pod(f"runs-{i}", self._labels(), {**spec, "nodeName": self.random.choice(self.nodes)["metadata"]["name"]})

    def _asking(self):
        spec = self._rules(self._kinds(3))
        # The pods of a world keep to its nodes, which are all that have its keys.
        spec["nodeSelector"] = {"world": str(self.number), **({"disk": "ssd"} if self._one_in(4) else {})}
        if self._one_in(3):
            spec["tolerations"] = [{"key": "team", "operator": "Exists"}]
        return self._pod("asks", {**self._labels(), "asks": "yes"}, spec)

    def made(self):
        """Namespaces have labels, and stay: nobody here removes them."""
        yield from (("POST", "/api/v1/nodes", node) for node in self.nodes)
        yield from (("POST", f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods", pod) for pod in self.pods)

    def __repr__(self):
        """All of it, for who looks into a difference."""
        nodes = [(node["metadata"]["labels"], node["spec"]["taints"]) for node in self.nodes]
        return json.dumps({"nodes": nodes, "pods": self.pods, "leaving": self.leaving, "asks": self.asks})


class Cluster:
    """All worlds."""

    def __init__(self, api, worlds):
        self._api, self._worlds = api, worlds
        self._cordoned = set()

    def make(self):
        self._api.all(call for world in self._worlds for call in world.made())
        for world in self._worlds:
            for one in world.leaving:
                self._api.ask("DELETE", f"/api/v1/namespaces/{one['namespace']}/pods/{one['name']}?gracePeriodSeconds=600")

    def clear(self):
        self._api.all(("DELETE", f"/api/v1/namespaces/{space}/pods?gracePeriodSeconds=0") for world in self._worlds for space in world.spaces)
        self._api.ask("DELETE", "/api/v1/nodes")

    def _cordon(self, nodes, is_cordoned):
        self._api.all([("PATCH", f"/api/v1/nodes/{node}", {"spec": {"unschedulable": is_cordoned or None}}) for node in nodes])
        self._cordoned = self._cordoned | nodes if is_cordoned else self._cordoned - nodes

    def allowed(self, scheduler):
        """By world, which nodes, and why the others are not."""
        found = {world.number: set() for world in self._worlds}
        why = {}
        turn = 0
        while len(why) < len(self._worlds):
            turn += 1
            asking = [world for world in self._worlds if world.number not in why]
            self._api.all([("POST", self._path(world), self._asking(world, scheduler, turn)) for world in asking])
            bound = set()
            for world, pod in zip(asking, self._until_judged(asking, f"asks-{turn}"), strict=True):
                if node_of(pod):
                    bound.add(node_of(pod))
                    found[world.number].add(node_of(pod))
                elif self._is_of_now(told(pod)):
                    why[world.number] = {reason: int(count) for count, reason in REASON.findall(told(pod).partition("preemption:")[0])}
            self._api.all([("DELETE", f"{self._path(world)}/asks-{turn}?gracePeriodSeconds=0") for world in asking])
            self._cordon(bound, True)
        self._cordon(set(self._cordoned), False)
        return {number: (sorted(nodes), why[number]) for number, nodes in found.items()}

    def _path(self, world):
        return f"/api/v1/namespaces/{world.asks['metadata']['namespace']}/pods"

    def _asking(self, world, scheduler, turn):
        asks = world.asks
        return {**asks, "metadata": {**asks["metadata"], "name": f"asks-{turn}"}, "spec": {**asks["spec"], "schedulerName": scheduler}}

    def _is_judged(self, pod):
        return bool(node_of(pod)) or (told(pod) or "").startswith(f"0/{NODES * len(self._worlds)} nodes")

    def _is_of_now(self, text):
        """Whoever was told of a pod before it was told of a node that is cordoned judged that node, and need not judge again."""
        cordoned = re.search(r"(\d+) node\(s\) were unschedulable", text)
        return int(cordoned[1] if cordoned else 0) == len(self._cordoned)

    def _until_judged(self, worlds, name):
        spaces = [world.asks["metadata"]["namespace"] for world in worlds]
        end = time.monotonic() + PATIENCE
        while True:
            listed = self._api.ask("GET", ASKING)
            pods = {pod["metadata"]["namespace"]: pod for pod in listed["items"] if pod["metadata"]["name"] == name}
            lines = self._api.lines(f"{ASKING}&watch=1&timeoutSeconds=2&resourceVersion={listed['metadata']['resourceVersion']}")
            while not all(space in pods and self._is_judged(pods[space]) for space in spaces):
                line = next(lines, None)
                if line is None:
                    break
                pod = json.loads(line)["object"]
                if pod["metadata"].get("name") == name:
                    pods[pod["metadata"]["namespace"]] = pod
            else:
                return [pods[space] for space in spaces]
            assert time.monotonic() < end, {space: told(pod) for space, pod in pods.items() if not self._is_judged(pod)}


def test_nodes_are_those_that_kube_scheduler_allows(kube, start, kube_scheduler):
    api = Api(kube)
    for number in range(WORLDS):
        for space, team in ((f"w{number}-x", "vision"), (f"w{number}-y", "audio")):
            kube.make({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space, "labels": {"of": team, "world": str(number)}}})
    start()
    reasons = set()
    for batch in range(SEED, SEED + BATCHES):
        worlds = [World(number, batch) for number in range(WORLDS)]
        cluster = Cluster(api, worlds)
        cluster.make()
        try:
            theirs, ours = (cluster.allowed(scheduler) for scheduler in ("default-scheduler", "gflow"))
            for world in worlds:
                assert ours[world.number] == theirs[world.number], f"GFLOW_NEIGHBOURS_SEED={batch}: {world}"
                reasons.update(ours[world.number][1])
        finally:
            cluster.clear()
    assert len(reasons) == 5, f"there is something to tell apart: {reasons}"


def near_web(**more):
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}, **more}
    return {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def test_labels_change_and_who_waits_hears_of_it(kube, start):
    kube.node("a", 1, zone="a")
    kube.node("b", 1, zone="b")
    kube.pod("web", 0, "a", labels={"app": "other"})
    start()
    make_pod(kube, "waits", None, 1, **near_web())
    assert until_told(kube, "waits", "nodes are") == "0/2 nodes are available: 2 node(s) didn't match pod affinity rules."
    kube.ask("PATCH", "/api/v1/namespaces/default/pods/web", {"metadata": {"labels": {"app": "web"}}})
    assert node_of(until_bound(kube, "waits")["waits"]) == "a"
    make_pod(kube, "next", None, 1, **near_web())
    until_told(kube, "next", "1 Insufficient nvidia.com/gpu, 1 node(s) didn't match pod affinity rules")
    kube.ask("PATCH", "/api/v1/nodes/b", {"metadata": {"labels": {"zone": "a"}}})
    assert node_of(until_bound(kube, "next")["next"]) == "b"


def test_who_goes_by_labels_of_namespaces_waits_until_they_can_be_read(kube, start, between):
    """As after an upgrade without the new rights: nobody else waits."""
    kube.node("a", 4, zone="a")
    kube.pod("web", 0, "a", labels={"app": "web"})
    between.hook = lambda method, path, forward: status(403, "namespaces is forbidden") if path.startswith("/api/v1/namespaces?") else forward()
    one = start(server=between.url)
    make_pod(kube, "selects", None, 1, **near_web(namespaceSelector={"matchLabels": {"kubernetes.io/metadata.name": "default"}}))
    make_pod(kube, "plain", None, 1, **near_web())
    until_bound(kube, "plain")
    assert until_told(kube, "selects", "nodes are") == "0/1 nodes are available: 1 node(s) were not judged, as labels of namespaces cannot be read."
    assert one.says("namespaces is forbidden") and one.says("pods with a namespaceSelector wait for that")
    between.hook = lambda method, path, forward: forward()
    until_bound(kube, "selects")


def test_who_goes_by_labels_of_namespaces_hears_of_their_change(kube, start):
    kube.node("a", 4, zone="a")
    kube.pod("web", 0, "a", labels={"app": "web"})
    start()
    make_pod(kube, "selects", None, 1, **near_web(namespaceSelector={"matchLabels": {"of": "nobody-yet"}}))
    until_told(kube, "selects", "1 node(s) didn't match pod affinity rules")
    kube.ask("PATCH", "/api/v1/namespaces/default", {"metadata": {"labels": {"of": "nobody-yet"}}})
    try:
        until_bound(kube, "selects")
    finally:
        kube.ask("PATCH", "/api/v1/namespaces/default", {"metadata": {"labels": {"of": None}}})
