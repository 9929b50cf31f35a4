# SPDX-License-Identifier: Apache-2.0
"""Schedulers, API server and etcd are killed again and again while pods come and go: no device is ever given out twice.

GFLOW_TEST_FULL=1 makes it 1,000 kills; GFLOW_KUBE_STORM=SEED:KILLS plays one again."""

import contextlib
import http.client
import json
import os
import random
import signal
import ssl
import threading
import urllib.request
from collections import Counter

from cluster import ADMIN, path_of
from kube_scheduler import SYSTEM, chosen, end_lease, make_member, make_pod, node_of, pods_of, told, until
from machine import PATIENCE

KILLS = 1000 if os.environ.get("GFLOW_TEST_FULL") else 20
SEED, KILLS = (int(one) for one in os.environ.get("GFLOW_KUBE_STORM", f"1:{KILLS}").split(":"))
NODES, GPUS = 4, 4
WHOLE = 10_000  # parts of a device
AHEAD = 24  # pods that are there and have not ended
ENDED = ("Succeeded", "Failed")
LEASE = ("--lease-duration", "3")
LEASE_NAME = "gflow-kube"


class Witness:
    """Reads each change of each pod in the order in which etcd has them, from the API server alone, and counts what is given out.

    One that was killed does not tell what came before it: then all there is counts, as one list has it."""

    def __init__(self, kube):
        self._kube = kube
        self._changed = threading.Condition()
        self._holds = {}  # devices and parts of a pod that is on a node, by uid
        self._given = Counter()  # parts, by node, resource and index
        self._undecided = set()  # uids of those that are not bound, and were not told why
        self._ends = False
        self._trusted = ssl.create_default_context(cafile=kube.root / "certs/apiserver.crt")
        self.bound = set()  # names of all that ever were
        self.twice = []  # what was given out beyond what there is
        self.trouble = None  # why it saw nothing more
        self._list()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self):
        try:
            while not self._ends:
                # Broken off, also in the middle of a line, it goes on behind the last whole one.
                with contextlib.suppress(OSError, http.client.HTTPException, json.JSONDecodeError):
                    self._follow()
        except BaseException as error:  # noqa: BLE001 -- told by await_bound() and end()
            with self._changed:
                self.trouble = error
                self._changed.notify_all()

    def _follow(self):
        asked = urllib.request.Request(f"{self._kube.url}/api/v1/pods?watch=1&timeoutSeconds=3&resourceVersion={self._version}",
                                       headers={"Authorization": f"Bearer {ADMIN}"})
        with urllib.request.urlopen(asked, timeout=PATIENCE, context=self._trusted) as answer:
            for line in answer:
                event = json.loads(line)
                if event["type"] == "ERROR":
                    assert event["object"]["code"] == 410, event
                    return self._list()
                self._take(event["type"], event["object"])
                self._version = event["object"]["metadata"]["resourceVersion"]

    def _list(self):
        listed = json.loads(self._kube.raw("GET", "/api/v1/pods"))
        with self._changed:
            self._holds.clear()
            self._given.clear()
            self._undecided.clear()
        for pod in listed["items"]:
            self._take("ADDED", pod)
        self._version = listed["metadata"]["resourceVersion"]

    def _take(self, kind, pod):
        uid, name, node = pod["metadata"]["uid"], pod["metadata"]["name"], node_of(pod)
        holds = node and kind != "DELETED" and pod["status"].get("phase") not in ENDED
        with self._changed:
            for device, parts in self._holds.pop(uid, ()):
                self._given[device] -= parts
            self._undecided.discard(uid)
            if node:
                self.bound.add(name)
            elif kind != "DELETED" and not told(pod):
                self._undecided.add(uid)
            if holds:
                self._holds[uid] = [((node, resource, index), parts) for resource, index, parts in chosen(pod)]
                assert self._holds[uid], f"{name} is on {node} with no device"
            for device, parts in self._holds.get(uid, ()):
                self._given[device] += parts
                if self._given[device] > WHOLE:
                    self.twice.append((name, device, self._given[device]))
            self._changed.notify_all()

    def saw(self, name):
        """Somebody else did, and takes it away."""
        with self._changed:
            self.bound.add(name)

    def await_bound(self, count):
        """Whether it has seen before long that so many pods were bound, or that each that waits was told why."""
        with self._changed:
            done = self._changed.wait_for(lambda: len(self.bound) >= count or not self._undecided or self.trouble, PATIENCE)
            assert self.trouble is None, self.trouble
            return done

    def end(self):
        self._ends = True
        self._thread.join(PATIENCE)
        assert self.trouble is None, self.trouble


class Storm:
    def __init__(self, kube, start, seed):
        self._kube, self._start = kube, start
        self.chance = random.Random(seed)
        self.witness = Witness(kube)
        self.made = 0
        self._gangs = {}  # all members, by the name of each
        self.blows = []
        self.schedulers = [self._start(*LEASE) for _ in range(2)]
        self._is_over = False
        self._keepers = [threading.Thread(target=self._keep, args=(i,), daemon=True) for i in range(len(self.schedulers))]
        for one in self._keepers:
            one.start()

    def _keep(self, number):
        """As a Deployment does: also one that ends by itself, having lost its lease, comes back."""
        while not self._is_over:
            self.schedulers[number].wait()
            # Who gives it its token may be the one that is killed just now: then it is asked again.
            with contextlib.suppress(OSError):
                if not self._is_over:
                    self.schedulers[number] = self._start(*LEASE)

    def end(self):
        self._is_over = True
        for one in self.schedulers:
            one.send(signal.SIGKILL)
        for one in self._keepers:
            one.join(PATIENCE)
        self.witness.end()

    def feed(self):
        """New pods up to what there is to be, alone and in gangs; of those that run half end, in one way or another."""
        pods = pods_of(self._kube)
        for name, pod in pods.items():
            if pod["status"].get("phase") in ENDED:
                self._kube.delete_pod(name)
            elif self._may_end(pods, name) and self.chance.random() < 0.5:
                self.witness.saw(name)
                self.chance.choice((self._kube.end_pod, self._kube.delete_pod))(name)
        alive = sum(pod["status"].get("phase") not in ENDED for pod in pods.values())
        while alive < AHEAD:
            count = 4 if self.chance.random() < 0.2 else 1
            names = [f"p-{self.made + i}" for i in range(count)]
            for name in names:
                if count == 1:
                    make_pod(self._kube, name, self.chance.choice(("1", "0.5", "0.25", "2", "4", "2x0.5")))
                else:
                    make_member(self._kube, name, gang=names[0], size=count)
                    self._gangs[name] = names
            self.made += count
            alive += count

    def _may_end(self, pods, name):
        """It runs, and all who start with it do, or have been seen to."""
        return all(other in self.witness.bound or (other in pods and node_of(pods[other])) for other in self._gangs.get(name, [name]))

    def calm(self):
        """What runs ends, until nobody waits any more."""
        while pods := pods_of(self._kube):
            for name in pods:
                if self._may_end(pods, name):
                    self.witness.saw(name)
                    self._kube.delete_pod(name)
            until(self._kube, lambda pods: not pods or any(self._may_end(pods, name) for name in pods))

    def said(self):
        """How to play it again, and what was said."""
        logs = "\n".join(f"-- pid {one.pid}\n{one.said()[-3000:]}" for one in self.schedulers)
        return f"GFLOW_KUBE_STORM={SEED}:{len(self.blows)}, the last {self.blows[-4:]}\n{logs}"

    def leader(self):
        """Who has the lease; None where nobody that is here has."""
        lease = until(self._kube, lambda leases: LEASE_NAME in leases and leases[LEASE_NAME]["spec"].get("holderIdentity"),
                      namespace=SYSTEM, kind="Lease")[LEASE_NAME]
        pid = int(lease["spec"]["holderIdentity"].split("_")[-2])
        return next((one for one in self.schedulers if one.pid == pid), None)

    def kill_leader(self):
        (self.leader() or self.schedulers[0]).send(signal.SIGKILL)
        end_lease(self._kube)

    def kill_leader_whose_lease_has_to_end(self):
        (self.leader() or self.schedulers[0]).send(signal.SIGKILL)

    def kill_who_stands_by(self):
        leader = self.leader()
        next(one for one in self.schedulers if one is not leader).send(signal.SIGKILL)

    def kill_apiserver(self):
        self._kube.stop_apiserver()
        self._kube.up()

    def kill_etcd(self):
        self._kube.stop_etcd()
        self._kube.up()

    def have_leader_sleep(self):
        """It wakes when another has the lease, with all that it was about to write."""
        leader = self.leader() or self.schedulers[0]
        leader.send(signal.SIGSTOP)
        until(self._kube, lambda leases: LEASE_NAME in leases and f"_{leader.pid}_" not in leases[LEASE_NAME]["spec"].get("holderIdentity", f"_{leader.pid}_"),
              namespace=SYSTEM, kind="Lease")
        leader.send(signal.SIGCONT)


BLOWS = (Storm.kill_leader, Storm.kill_leader, Storm.kill_leader, Storm.kill_leader_whose_lease_has_to_end, Storm.kill_who_stands_by,
         Storm.kill_apiserver, Storm.kill_etcd, Storm.have_leader_sleep)


def test_no_device_is_given_out_twice_while_all_are_killed(kube, start):
    for i in range(NODES):
        kube.node(f"n{i}", GPUS)
    storm = Storm(kube, start, SEED)
    try:
        rage(storm)
        storm.calm()
    finally:
        storm.end()
    assert storm.witness.twice == [], storm.said()
    assert storm.witness.bound == {f"p-{i}" for i in range(storm.made)}, "each had its turn"


def rage(storm):
    while len(storm.blows) < KILLS:
        blow = storm.chance.choice(BLOWS)
        storm.feed()
        # In the middle of the others.
        assert storm.witness.await_bound(len(storm.witness.bound) + storm.chance.randrange(6)), storm.said()
        storm.blows.append(blow.__name__)
        blow(storm)
        assert storm.witness.twice == [], storm.said()



def test_the_witness_sees_a_device_that_was_given_out_twice(kube):
    kube.node("n", 1)
    witness = Witness(kube)
    for name in ("a", "b"):
        make_pod(kube, name, "0.75")
        kube.ask("POST", f"{path_of('Pod', 'default')}/{name}/binding", {
            "apiVersion": "v1", "kind": "Binding", "target": {"apiVersion": "v1", "kind": "Node", "name": "n"},
            "metadata": {"name": name, "annotations": {"gflow/allocation": json.dumps(
                {"node": "n", "devices": [{"resource": "nvidia.com/gpu", "index": 0, "share_parts": 7500}]})}}})
    assert witness.await_bound(2)
    witness.end()
    assert witness.twice == [("b", ("n", "nvidia.com/gpu", 0), 15_000)]
