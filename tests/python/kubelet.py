# SPDX-License-Identifier: Apache-2.0
"""A real kubelet as a node of a test's cluster, in a mount namespace where its directories are the test's.

It takes root, and no more: it leaves control groups alone, asks for no systemd, has container_runtime.py for a runtime and the host's
network, and changes nothing of the machine.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest
from cluster import ADMIN, path_of, programs
from kube import packages
from kube_scheduler import until
from machine import PATIENCE
from pypi import missing, module, needed, program

# What kubelet would set in the kernel: it is shown files that say so already.
TUNABLES = {
    "vm/overcommit_memory": 1, "vm/panic_on_oom": 0, "kernel/panic": 10, "kernel/panic_on_oops": 1,
    "kernel/keys/root_maxkeys": 1000000, "kernel/keys/root_maxbytes": 25000000}

# It is there while its input is open. Of /etc and /var/lib programs need what is there; layers over them have the folders that may be missing.
NAMESPACE = """
set -eu
cd "$1"
for path in /etc /var/lib; do
  mkdir -p "layers$path" "work$path"
  mount -t overlay overlay -o "lowerdir=$path,upperdir=$1/layers$path,workdir=$1/work$path" "$path"
done
mkdir -p /etc/cdi /var/lib/kubelet
mount --bind etc-cdi /etc/cdi
mount --bind kubelet /var/lib/kubelet
mount --bind log /var/log
mount --bind run /run
for path in $(cd tunables && find . -type f); do mount --bind "tunables/$path" "/proc/sys/$path"; done
echo ready
exec cat
"""

CONFIGURATION = {
    "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
    "failCgroupV1": False, "cgroupsPerQOS": False, "enforceNodeAllocatable": [], "cgroupDriver": "cgroupfs", "failSwapOn": False,
    "localStorageCapacityIsolation": False, "makeIPTablesUtilChains": False, "oomScoreAdj": 0, "resolvConf": "",
    "volumePluginDir": "/var/lib/kubelet/volume-plugins",
    "readOnlyPort": 0, "healthzPort": 0,
    "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": False}}, "authorization": {"mode": "AlwaysAllow"},
    "containerRuntimeEndpoint": "unix:///run/containers/runtime.sock",
    "evictionHard": {name: "0%" for name in ("memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available")},
    # It is looked at each second and written where it changed: devices that come and go are seen soon, and nothing else is said.
    "nodeStatusUpdateFrequency": "1s", "nodeStatusReportFrequency": "1h", "nodeLeaseDurationSeconds": 3600, "syncFrequency": "1s",
}

ENDED = ("Succeeded", "Failed")


class Node:
    """The namespace, and in it the runtime, the kubelet and what else a test starts there.

    Its folders, from outside: `kubelet` is /var/lib/kubelet, `run` is /run, `etc_cdi` is /etc/cdi; there is `run`/cdi for the specifications.
    """

    def __init__(self, kube, name="node"):
        self._kube, self.name = kube, name
        self.programs = programs()
        needed(self.programs / "kubelet", "kubelet")
        module("grpc_tools")
        if os.geteuid() != 0:
            missing("a kubelet runs as root")
        self.root = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=kube.root))
        self.kubelet, self.run, self.etc_cdi = self.root / "kubelet", self.root / "run", self.root / "etc-cdi"
        self._make_folders()
        self._namespace = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "sh", "-c", NAMESPACE, "sh", self.root],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        if self._namespace.stdout.readline() != "ready\n":
            missing(f"a mount namespace cannot be made: {self._namespace.communicate()[1]}")
        self._running = {}

    def _make_folders(self):
        for folder in ("kubelet/device-plugins", "log", "run/cdi", "run/containers", "run/gflow", "etc-cdi"):
            (self.root / folder).mkdir(parents=True)
        for path, value in TUNABLES.items():
            told = self.root / "tunables" / path
            told.parent.mkdir(parents=True, exist_ok=True)
            told.write_text(f"{value}\n")
        # Its API server reads logs of it, and shows a certificate: nobody else is answered.
        with socket.create_server(("", 0)) as held:
            port = held.getsockname()[1]
        known = {**CONFIGURATION["authentication"], "x509": {"clientCAFile": f"{self._kube.root}/clients.crt"}}
        (self.root / "kubelet.json").write_text(json.dumps({**CONFIGURATION, "port": port, "authentication": known}))

    @property
    def protocols(self):
        return self.programs / "protocols"

    def log_of(self, name):
        return self.root / "log" / f"{name}.log"

    def start(self, name, *command, env=None, stdout=None):
        """A program within, which ends with this process at the latest. What it says is kept under that name."""
        assert name not in self._running, f"{name} runs"
        with open(self.log_of(name), "ab") as log:
            self._running[name] = subprocess.Popen(
                ["nsenter", f"--mount=/proc/{self._namespace.pid}/ns/mnt", "setpriv", "--pdeathsig", "KILL", *command],
                stdin=subprocess.DEVNULL, stdout=stdout or log, stderr=log, start_new_session=True,
                env={"PATH": os.environ["PATH"], "HOME": "/root", **(env or {})})
        return self._running[name]

    def stop(self, name, how=signal.SIGTERM):
        """Its exit code."""
        process = self._running.pop(name)
        process.send_signal(how)
        return process.wait(PATIENCE)

    def up(self):
        self._start_runtime()
        self.start_kubelet()
        self.until(lambda node: any(one["type"] == "Ready" and one["status"] == "True" for one in node["status"]["conditions"]))

    def _start_runtime(self):
        served = self.start("runtime", program("python"), Path(__file__).with_name("container_runtime.py"), "/run/containers", self.protocols,
                            stdout=subprocess.PIPE)
        with served.stdout as told:
            assert told.readline() == b"ready\n", self.said()

    def start_kubelet(self):
        self.start("kubelet", self.programs / "kubelet", f"--config={self.root}/kubelet.json",
                   f"--kubeconfig={self._kube.kubeconfig(ADMIN, f'of-{self.name}')}", f"--hostname-override={self.name}", "--v=2")

    def until(self, is_so):
        """The node, once that is so of it."""

        def found(nodes):
            for name, process in self._running.items():
                assert process.poll() is None, f"{name} ended\n{self.said()}"
            return self.name in nodes and is_so(nodes[self.name])

        return until(self._kube, found, PATIENCE, kind="Node")[self.name]

    def pod(self, name, script, limits=None, **container):
        """A pod that is bound to it, whose container runs this by a shell, and what else is said of that."""
        self._kube.make({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
            "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "schedulerName": "none",
                     "containers": [{
                         "name": "main", "image": "host", "command": ["sh", "-c", script.replace("$", "$$")],  # of which kubelet makes one again
                         "resources": {"limits": {resource: str(count) for resource, count in (limits or {}).items()}}, **container}]}})
        self._kube.ask("POST", f"{path_of('Pod', 'default')}/{name}/binding", {
            "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"kind": "Node", "name": self.name}})

    def said(self):
        """The end of what each program within did."""
        return "\n".join(f"--- {path.name}\n{path.read_text(errors='replace')[-5000:]}" for path in sorted((self.root / "log").glob("*.log")))

    def close(self):
        for name in list(self._running):
            self.stop(name, signal.SIGKILL)
        self._namespace.communicate()


def until_ended(kube, *names):
    return until(kube, lambda pods: all(name in pods and pods[name]["status"].get("phase") in ENDED for name in names))


def until_running(kube, name):
    return until(kube, lambda pods: name in pods and pods[name]["status"].get("phase") == "Running")[name]


def state_of(pod):
    """What its container is, and more of that."""
    [container] = pod["status"].get("containerStatuses", [{"state": {"none": {}}}])
    [(state, more)] = container["state"].items()
    return state, more


def delete(kube, name):
    """As people do it: it is gone when its container is, whose last state this is. From before it is asked for on it is watched."""
    seen = {}

    def is_gone(pods):
        if not seen:
            kube.ask("DELETE", f"{path_of('Pod', 'default')}/{name}")
        seen.update(pods)
        return name not in pods

    until(kube, is_gone)
    return state_of(seen[name])


@pytest.fixture
def node(kube):
    made = Node(kube)
    try:
        made.up()
        with packages():
            yield made
    finally:
        made.close()
        print(made.said())  # which is shown where the test failed
        shutil.rmtree(made.root, ignore_errors=True)  # what its containers had goes with the cluster, where they just end
