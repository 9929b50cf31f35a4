#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A short tour of gflow-kube on a cluster of its own: a real kube-apiserver and etcd, and 200 nodes that no kubelet stands
behind, so that pods get their nodes and GPUs and never run. All of it is in a folder that is gone afterwards. Run it as
`./dev demo kube`."""

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests" / folder) for folder in ("python", "e2e", "contract")]
BIN = Path(os.environ["GFLOW_BIN_DIR"])

import helm  # noqa: E402
from cluster import ADMIN, Cluster, path_of  # noqa: E402
from kube_scheduler import SYSTEM, contradictions, node_of, pods_of, told, until  # noqa: E402

#: Of 200 nodes: how many, their GPUs, and the model.
NODES = ((120, 8, "V100", "Tesla-V100-SXM2-32GB", 32768), (60, 8, "A100", "NVIDIA-A100-SXM4-80GB", 81920), (20, 4, "T4", "Tesla-T4", 15360))
INSTALL = "helm upgrade --install gflow-kube packaging/helm/gflow-kube --namespace gflow-system --create-namespace"
HELD = 250  # pods that others have running when the tour begins


def say(text):
    print(f"\n\033[1m# {text}\033[0m", flush=True)


class Tour:
    def __init__(self, cluster):
        self.cluster = cluster
        self.config = cluster.kubeconfig(ADMIN)
        self.scheduler = None
        self.log = cluster.root / "gflow-kube.log"

    def show(self, command):
        """Prints a command as it would be typed, and runs it."""
        print(f"\033[32m$\033[0m {command}", flush=True)
        programs = f"{BIN}:{helm.program().parent}:{os.environ['PATH']}"
        environment = {**os.environ, "KUBECONFIG": str(self.config), "PATH": programs, "HOME": str(self.cluster.root)}
        subprocess.run(["bash", "-c", command], env=environment, cwd=ROOT, check=True)

    def make_all(self, documents):
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(self.cluster.make, documents))

    def start_scheduler(self):
        config = self.cluster.kubeconfig(self.cluster.token("gflow-kube", SYSTEM), "of-gflow-kube")
        with open(self.log, "ab") as log:
            self.scheduler = subprocess.Popen([BIN / "gflow-kube", "--kubeconfig", config], stdout=log, stderr=log)

    def kill_scheduler(self):
        self.scheduler.send_signal(signal.SIGKILL)
        self.scheduler.wait()

    def end(self):
        if self.scheduler is not None and self.scheduler.poll() is None:
            self.scheduler.terminate()
            self.scheduler.wait()


def nodes():
    number = 0
    for count, gpus, model, product, memory in NODES:
        for _ in range(count):
            number += 1
            has = {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
            yield {"apiVersion": "v1", "kind": "Node",
                   "metadata": {"name": f"{model.lower()}-{number:03}", "labels": {"nvidia.com/gpu.product": product, "nvidia.com/gpu.memory": str(memory)}},
                   "status": {"allocatable": has, "capacity": has, "conditions": [{"type": "Ready", "status": "True", "reason": "Said", "message": ""}]}}


def pod(name, request, namespace="default", **annotations):
    gpus = {} if "," in request or "." in request else {"nvidia.com/gpu": request.partition("(")[0]}
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "annotations": {"gflow/gpu": request, **annotations}},
            "spec": {"schedulerName": "gflow", "terminationGracePeriodSeconds": 0,
                     "containers": [{"name": "main", "image": "pytorch", "resources": {"limits": {"cpu": "4", "memory": "16Gi", **gpus}}}]}}


def gang(name, size, request):
    return [pod(f"{name}-{rank}", request, **{"gflow/gang": name, "gflow/gang-size": str(size)}) for rank in range(size)]


def tour(cluster):
    show = Tour(cluster)
    try:
        walk(show)
    finally:
        show.end()


def walk(self):
    cluster = self.cluster
    say("A cluster of 200 nodes with GPUs, and gflow-kube as the chart installs it.")
    self.show(INSTALL)
    print("  No kubelet runs its pods here: this tour runs gflow-kube, as the service account that the chart made.")
    self.make_all(nodes())
    cluster.make({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "vision"}})
    self.start_scheduler()
    self.make_all(pod(f"batch-{number}", "2(V100)" if number % 4 else "4(V100)", "vision") for number in range(HELD))
    until(cluster, lambda pods: sum(bool(node_of(one)) for one in pods.values()) == HELD, namespace="vision")
    self.show("ginfo --server kube | head -n 8")

    say("Three ways to ask: GPUs of a model, a part of one, and four pods that start together or not at all.")
    for line in ('train    gflow/gpu: "2(V100)"', 'notebook gflow/gpu: "8G,0.5"', 'llm-0..3 gflow/gpu: "8(A100)", gflow/gang: llm, gflow/gang-size: "4"'):
        print(f"  {line}")
    self.make_all([pod("train", "2(V100)"), pod("notebook", "8G,0.5"), *gang("llm", 4, "8(A100)")])
    until(cluster, lambda pods: len(pods) == 6 and all(node_of(one) for one in pods.values()))
    self.show("gqueue --server kube --user default")

    say("A gang for which there is no room holds nothing, and says what it waits for.")
    self.make_all(gang("huge", 64, "8(A100)"))
    until(cluster, lambda pods: "there is room for" in (told(pods.get("huge-0", {"status": {}})) or ""))
    self.show("gjob why huge-0 --server kube")

    say("The scheduler is killed while it binds 64 pods of a gang. The next one reads what is there, and goes on.")
    self.make_all(gang("sweep", 64, "1(V100)"))
    until(cluster, lambda pods: any(node_of(one) for name, one in pods.items() if name.startswith("sweep-")))
    self.kill_scheduler()
    bound = sum(bool(node_of(one)) for name, one in pods_of(cluster).items() if name.startswith("sweep-"))
    print(f"  killed (-9) with {bound} of 64 bound")
    cluster.ask("DELETE", path_of("Lease", SYSTEM))  # it would be free after its time, 15 s
    begun = time.monotonic()
    self.start_scheduler()
    until(cluster, lambda pods: all(node_of(one) for name, one in pods.items() if name.startswith("sweep-")))
    print(f"  all 64 bound {time.monotonic() - begun:.1f} s after the next one was started")
    wrong = contradictions(cluster)
    print(f"  GPUs given out twice, by the API server's own account: {len(wrong)}")
    if wrong:
        raise SystemExit("\n".join(wrong))

    say("What it wrote meanwhile, the end of it.")
    self.show(f"tail -n 5 {shlex.quote(str(self.log))}")
    say("That was all on a cluster of its own; it is stopped, and its files are removed.")


def main():
    with contextlib.closing(Cluster()) as cluster:
        cluster.up()
        tour(cluster)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with contextlib.suppress(KeyboardInterrupt):
        main()
