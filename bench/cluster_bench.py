#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pods bound in a second by gflow-kube and by kube-scheduler, beside what the API server takes of bindings alone: in turn, on
one control plane, made for it and without any kubelet.

    bench/cluster_bench.py                    1,000 nodes of 8 GPUs, 2,000 pods of one, three rounds
    --nodes N --pods N --rounds N             others
    --gang N                                  a gang of so many pods of 8 GPUs (512), of which no two are on a node

All pods are there before a scheduler is started; what counts is the time from the fifth hundredth of them that is bound to
the ninety-fifth, as a watch tells. kube-scheduler is that of the modules that the tests' API server is built of, with its defaults but for
what it may ask in a second (5,000 in place of 50); and once more with 'gflow-kube extender', which is asked about all nodes.

Of a gang, gflow-kube stands by, and what counts is the time from the last pod that the API server took to the last that is bound:
gflow-kube may not begin before that."""

import argparse
import http.client
import json
import os
import re
import signal
import ssl
import statistics
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests" / folder) for folder in ("python", "e2e", "contract")]
BIN = Path(os.environ.setdefault("GFLOW_BIN_DIR", str(ROOT / "build/release/bin")))

from cluster import ADMIN, Cluster, path_of  # noqa: E402

BINDINGS = BIN.parent / "bench/binding_loop"
THREADS = 16
GPU = "nvidia.com/gpu"


class Bench:
    def __init__(self, cluster, nodes, pods):
        self.cluster, self.nodes, self.pods = cluster, nodes, pods
        self.config = cluster.kubeconfig(ADMIN)
        self.trusted = ssl.create_default_context(cafile=cluster.root / "certs/apiserver.crt")
        self.own = threading.local()

    def connection(self):
        return http.client.HTTPSConnection("127.0.0.1", self.cluster.port, context=self.trusted, timeout=120)

    def post(self, path, body):
        """Over a connection that each thread keeps."""
        if not hasattr(self.own, "connection"):
            self.own.connection = self.connection()
        self.own.connection.request("POST", path, json.dumps(body), {
            "Authorization": f"Bearer {ADMIN}", "Content-Type": "application/json"})
        answer = self.own.connection.getresponse()
        said = answer.read()
        assert answer.status == 201, said

    def make_all(self, path, documents):
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(lambda document: self.post(path, document), documents))

    def make_nodes(self):
        has = {"cpu": "64", "memory": "512Gi", "pods": "110", GPU: "8"}
        self.make_all(path_of("Node"), [{
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": f"node-{at}", "labels": {"gpu-type": "H100"}},
            "status": {"allocatable": has, "capacity": has, "conditions": [{"type": "Ready", "status": "True", "reason": "Said", "message": ""}]},
        } for at in range(self.nodes)])

    @staticmethod
    def pod(scheduler, number, gpus=1, annotations=None):
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"pod-{number}", "annotations": annotations},
                "spec": {"schedulerName": scheduler, "terminationGracePeriodSeconds": 0, "containers": [
                    {"name": "main", "image": "none", "resources": {"limits": {GPU: str(gpus)}}}]}}

    def make_pods(self, scheduler, pods, gpus=1, **annotations):
        self.make_all(path_of("Pod", "default"), [self.pod(scheduler, number, gpus, annotations) for number in range(pods)])

    def delete_pods(self):
        self.cluster.ask("DELETE", path_of("Pod", "default") + "?gracePeriodSeconds=0")
        while self.cluster.ask("GET", path_of("Pod", "default") + "?limit=1")["items"]:
            time.sleep(0.1)  # there is nothing to be told by

    def bound(self, pods):
        """When each of so many was bound, as a watch tells."""
        watch = self.connection()
        watch.request("GET", path_of("Pod", "default") + "?watch=1&fieldSelector=spec.nodeName%21%3D&resourceVersion=0", headers={
            "Authorization": f"Bearer {ADMIN}"})
        times, seen = [], set()
        for line in watch.getresponse():
            event = json.loads(line)
            name = event["object"]["metadata"].get("name")
            if event["type"] == "ADDED" and name not in seen:
                seen.add(name)
                times.append(time.monotonic())
            if len(times) == pods:
                break
        watch.close()
        return times

    def rate(self):
        """Pods a second."""
        times = self.bound(self.pods)
        first, last = times[self.pods // 20], times[self.pods * 19 // 20]
        return (self.pods * 19 // 20 - self.pods // 20) / (last - first)

    def scheduled(self, scheduler, command):
        """Pods a second, and milliseconds of CPU that the program took for each."""
        self.make_pods(scheduler, self.pods)
        with open(self.cluster.root / f"{scheduler}.log", "ab") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            rate = self.rate()
        finally:
            os.kill(process.pid, signal.SIGTERM)  # not terminate(), which takes the status of one that has ended
            _, _, used = os.wait4(process.pid, 0)
            self.delete_pods()
        return rate, (used.ru_utime + used.ru_stime) * 1000 / self.pods

    def bindings(self):
        return self.scheduled("nobody", [BINDINGS, self.config, "pod", str(self.pods), str(self.nodes), str(THREADS)])

    def gflow_kube(self):
        return self.scheduled("gflow", [BIN / "gflow-kube", "--kubeconfig", self.config])

    def gang(self, size):
        """Seconds from the last pod that was made to the first that is bound, and to the last."""
        with open(self.cluster.root / "gang.log", "ab") as log:
            process = subprocess.Popen([BIN / "gflow-kube", "--kubeconfig", self.config], stdout=log, stderr=log)
        try:
            self.make_pods("gflow", size - 1, 8, **{"gflow/gang": "all", "gflow/gang-size": str(size)})
            self.until_told("pod-0", f"of which {size - 1} wait")
            with ThreadPoolExecutor(1) as threads:
                times = threads.submit(self.bound, size)
                self.post(path_of("Pod", "default"), self.pod("gflow", size - 1, 8, {"gflow/gang": "all", "gflow/gang-size": str(size)}))
                made = time.monotonic()
                return [at - made for at in (times.result()[0], times.result()[-1])]
        finally:
            process.terminate()
            process.wait()
            self.delete_pods()

    def until_told(self, name, text):
        while text not in json.dumps(self.cluster.ask("GET", f"{path_of('Pod', 'default')}/{name}").get("status", {})):
            time.sleep(0.1)  # it waits: nothing is measured yet

    def kube_scheduler(self, program, **more):
        asked = self.cluster.root / "scheduler.json"
        asked.write_text(json.dumps({
            "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
            "clientConnection": {"kubeconfig": str(self.config), "qps": 5000, "burst": 5000},
            "leaderElection": {"leaderElect": False}, **more}))
        return self.scheduled("default-scheduler", [program, f"--config={asked}", "--secure-port=0", "--v=0"])

    def extended(self, program):
        """Of kube-scheduler with its extender, which is there before; the CPU is kube-scheduler's."""
        log = self.cluster.root / "extender.log"
        with open(log, "wb") as out:
            process = subprocess.Popen(
                [BIN / "gflow-kube", "extender", "--kubeconfig", self.config, "--listen", "127.0.0.1:0"], stdout=out, stderr=out)
        try:
            while "knows all nodes and pods" not in log.read_text():
                assert process.poll() is None, log.read_text()
                time.sleep(0.05)  # its log is a file
            at = re.search(r"http://127\.0\.0\.1:\d+", log.read_text())[0]
            return self.kube_scheduler(program, percentageOfNodesToScore=100, extenders=[{
                "urlPrefix": at, "filterVerb": "filter", "prioritizeVerb": "prioritize", "bindVerb": "bind", "weight": 10,
                "nodeCacheCapable": True, "httpTimeout": "30s"}])
        finally:
            process.terminate()
            process.wait()


def kube_scheduler():
    """Where it is: built once, of the modules of the tests."""
    print("kube-scheduler is built where it is not yet: minutes", file=sys.stderr)
    made = subprocess.run([ROOT / "tests/cluster/build.sh", "--kube-scheduler"], stdout=subprocess.PIPE, text=True, check=True)
    return Path(made.stdout.strip()) / "kube-scheduler"


def main():
    asks = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asks.add_argument("--nodes", type=int, default=1000)
    asks.add_argument("--pods", type=int, default=2000)
    asks.add_argument("--rounds", type=int, default=3)
    asks.add_argument("--gang", type=int, default=512)
    options = asks.parse_args()
    program = kube_scheduler()
    cluster = Cluster()
    try:
        cluster.up()
        cluster.make({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gflow-system"}})
        bench = Bench(cluster, options.nodes, options.pods)
        bench.make_nodes()
        print(f"{options.nodes} nodes, {options.pods} pods; in a second, round by round:")
        rows = {"bindings alone": bench.bindings, "gflow-kube": bench.gflow_kube, "kube-scheduler": lambda: bench.kube_scheduler(program),
                "with extender": lambda: bench.extended(program)}
        got = {name: [] for name in rows}
        for _ in range(options.rounds):
            for name, run in rows.items():
                got[name].append(run())
        floor = statistics.median(rate for rate, _ in got["bindings alone"])
        for name, rounds in got.items():
            rate, used = (statistics.median(each) for each in zip(*rounds, strict=True))
            print(f"{name:16}{rate:8.0f}  {rate / floor:5.2f} of bindings alone  {used:6.2f} ms of CPU a pod   "
                  f"{' '.join(f'{rate:.0f}' for rate, _ in rounds)}")
        gangs = [bench.gang(options.gang) for _ in range(options.rounds)]
        print(f"a gang of {options.gang}: seconds from its last pod to the first binding, and to the last: "
              f"{', '.join(f'{first:.2f} {last:.2f}' for first, last in gangs)}")
    finally:
        cluster.close()


main()
