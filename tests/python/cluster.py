# SPDX-License-Identifier: Apache-2.0
"""A Kubernetes control plane of a test: etcd and kube-apiserver in a directory and on ports of their own, without any kubelet. Nodes and pods
are what tests say they are."""

import contextlib
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from machine import PATIENCE
from package import ROOT
from pypi import needed

ADMIN = "admin-token"
_PATHS = {
    "Namespace": "/api/v1/namespaces", "Node": "/api/v1/nodes", "Pod": "/api/v1/namespaces/{}/pods",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts", "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "Event": "/api/v1/namespaces/{}/events",
    "Service": "/api/v1/namespaces/{}/services",
    "PersistentVolumeClaim": "/api/v1/namespaces/{}/persistentvolumeclaims", "PersistentVolume": "/api/v1/persistentvolumes",
    "ResourceQuota": "/api/v1/namespaces/{}/resourcequotas",
    "StorageClass": "/apis/storage.k8s.io/v1/storageclasses",
    "Job": "/apis/batch/v1/namespaces/{}/jobs",
    "Lease": "/apis/coordination.k8s.io/v1/namespaces/{}/leases",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "DaemonSet": "/apis/apps/v1/namespaces/{}/daemonsets",
    "ReplicaSet": "/apis/apps/v1/namespaces/{}/replicasets",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies",
    "DeviceClass": "/apis/resource.k8s.io/v1/deviceclasses",
    "ResourceSlice": "/apis/resource.k8s.io/v1/resourceslices",
    "ResourceClaim": "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims",
    "ResourceClaimTemplate": "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaimtemplates",
    "FlowSchema": "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
    "ValidatingAdmissionPolicy": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
    "MutatingWebhookConfiguration": "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
    "MutatingAdmissionPolicy": "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies",
    "MutatingAdmissionPolicyBinding": "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings",
}


def programs():
    """Where kube-apiserver and etcd are. Not built: skipped, and a failure where everything has to run."""
    where = Path(subprocess.run([ROOT / "tests/cluster/build.sh", "--where"], capture_output=True, text=True, check=True).stdout.strip())
    needed(where / "complete", "a Kubernetes control plane")
    return where


def port_of_ours():
    """A socket that holds a port, where nobody else is given it; a server that shares ports listens there, as often as it is started."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    held.bind(("127.0.0.1", 0))
    return held


def path_of(kind, namespace=""):
    return _PATHS[kind].format(namespace)


class Cluster:
    def __init__(self):
        self._programs = programs()
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.root = Path(tempfile.mkdtemp(prefix="gflow-cluster-", dir=memory))
        self._running = {}
        self.strangers = set()
        self._held = [port_of_ours() for _ in range(3)]
        self.port, self._etcd_port, self._peer_port = (held.getsockname()[1] for held in self._held)
        self.url = f"https://127.0.0.1:{self.port}"
        (self.root / "audit.json").write_text(json.dumps({
            "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["ResponseStarted", "ResponseComplete", "Panic"],
            "rules": [{"level": "Metadata"}]}))
        (self.root / "tokens").write_text(f"{ADMIN},admin,1,system:masters\n")
        subprocess.run(["openssl", "genrsa", "-out", self.root / "accounts.key", "2048"], check=True, capture_output=True)
        self._openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "clients.key", "-out", "clients.crt", "-subj", "/CN=clients", "-days", "2")

        self.certificate("of-apiserver")  # by which a kubelet knows it

    def _openssl(self, *words):
        subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=self.root)

    def certificate(self, name):
        """The files of a certificate and of its key, by which the API server knows a user of that name."""
        self._openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        self._openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "clients.crt", "-CAkey", "clients.key", "-CAcreateserial", "-out", f"{name}.crt",
                      "-days", "2")
        return self.root / f"{name}.crt", self.root / f"{name}.key"

    def up(self):
        if "etcd" not in self._running:
            self._start("etcd", *self._of_etcd())
        if "kube-apiserver" not in self._running:
            self._start("kube-apiserver", *self._of_apiserver())
        self._wait_until_ready()

    def _of_etcd(self):
        client, peer = (f"http://127.0.0.1:{port}" for port in (self._etcd_port, self._peer_port))
        return (f"--data-dir={self.root}/etcd", f"--listen-client-urls={client}", f"--advertise-client-urls={client}",
                f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=default={peer}",
                "--socket-reuse-port", "--unsafe-no-fsync", "--log-level=warn")

    def _of_apiserver(self):
        # No kubelet and no controller is here to say that a node is ready, or to make a service account for each namespace.
        return (f"--etcd-servers=http://127.0.0.1:{self._etcd_port}", f"--secure-port={self.port}", "--permit-port-sharing", "--bind-address=127.0.0.1",
                f"--cert-dir={self.root}/certs", f"--client-ca-file={self.root}/clients.crt", f"--token-auth-file={self.root}/tokens", "--authorization-mode=RBAC",
                "--service-account-issuer=https://kubernetes.default.svc", f"--service-account-key-file={self.root}/accounts.key",
                f"--service-account-signing-key-file={self.root}/accounts.key", "--service-cluster-ip-range=10.0.0.0/24",
                "--endpoint-reconciler-type=none", "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
                "--feature-gates=GenericWorkload=true", "--runtime-config=scheduling.k8s.io/v1alpha2=true",
                f"--audit-policy-file={self.root}/audit.json", f"--audit-log-path={self.root}/asked", "--allow-privileged=true",
                "--kubelet-preferred-address-types=InternalIP", f"--kubelet-client-certificate={self.root}/of-apiserver.crt", f"--kubelet-client-key={self.root}/of-apiserver.key", "--profiling=false", "--v=0")

    def start_controllers(self, *names):
        """What makes pods of Jobs, and has what was made by something go with it."""
        needed(self._programs / "kube-controller-manager", "kube-controller-manager")
        self._start("kube-controller-manager", f"--kubeconfig={self.kubeconfig(ADMIN, 'of-controllers')}", f"--controllers={','.join(names)}",
                    "--bind-address=127.0.0.1", "--secure-port=0", "--leader-elect=false", "--use-service-account-credentials=false",
                    "--kube-api-qps=1000", "--kube-api-burst=1000")

    def stop_controllers(self):
        self._stop("kube-controller-manager")

    def _start(self, name, *flags):
        with open(self.root / f"{name}.log", "ab") as log:
            self._running[name] = subprocess.Popen([self._programs / name, *flags], stdout=log, stderr=log, start_new_session=True)

    def _wait_until_ready(self):
        end = time.monotonic() + PATIENCE
        while True:
            with contextlib.suppress(OSError):
                if self.raw("GET", "/readyz") == b"ok":
                    return
            for name, process in self._running.items():
                assert process.poll() is None, f"{name} ended:\n{(self.root / f'{name}.log').read_text()[-3000:]}"
            assert time.monotonic() < end, (self.root / "kube-apiserver.log").read_text()[-3000:]
            time.sleep(0.1)  # there is nothing to be told by

    def stop_apiserver(self, how=signal.SIGKILL):
        self._stop("kube-apiserver", how)

    def stop_etcd(self, how=signal.SIGKILL):
        self._stop("etcd", how)

    def _stop(self, name, how=signal.SIGKILL):
        process = self._running.pop(name)
        process.send_signal(how)
        process.wait(PATIENCE)

    def close(self):
        for process in self._running.values():
            process.kill()
        for process in self._running.values():
            process.wait(PATIENCE)
        for held in self._held:
            held.close()
        shutil.rmtree(self.root, ignore_errors=True)

    def raw(self, method, path, body=None, token=ADMIN, content_type=None):
        """The body. Errors: OSError, of which urllib's HTTPError is one."""
        with self.answer(method, path, body, token, content_type) as answer:
            return answer.read()

    def answer(self, method, path, body=None, token=ADMIN, content_type=None):
        usual = "application/merge-patch+json" if method == "PATCH" else "application/json"
        asked = urllib.request.Request(self.url + path, method=method, data=None if body is None else json.dumps(body).encode(), headers={
            "Authorization": f"Bearer {token}",
            "Content-Type": content_type or usual})
        trusted = ssl.create_default_context(cafile=self.root / "certs/apiserver.crt")
        return urllib.request.urlopen(asked, timeout=PATIENCE, context=trusted)

    def ask(self, method, path, body=None, token=ADMIN, content_type=None):
        try:
            return json.loads(self.raw(method, path, body, token, content_type))
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.code} {error.read().decode()}") from error

    def make(self, document):
        return self.ask("POST", path_of(document["kind"], document["metadata"].get("namespace", "")), document)

    def apply(self, path):
        """A manifest."""
        import yaml

        for document in yaml.safe_load_all(path.read_text()):
            self.make(document)

    def node(self, name, gpus=4, model="V100", *, ready=True, taints=(), unschedulable=False, resource="nvidia.com/gpu", **labels):
        """A node with GPUs."""
        has = {"cpu": "8", "memory": "32Gi", "pods": "110", **({resource: str(gpus)} if gpus else {})}
        return self.make({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {**({"gpu-type": model} if model else {}), **labels}},
            "spec": {"taints": list(taints), "unschedulable": unschedulable},
            "status": {"allocatable": has, "capacity": has,
                       "conditions": [{"type": "Ready", "status": "True" if ready else "False", "reason": "Said", "message": ""}]}})

    def pod(self, name, gpus=1, node=None, *, namespace="default", labels=None, spec=None):
        """A pod, on a node or waiting."""
        has = {"nvidia.com/gpu": str(gpus)} if gpus else {}
        made = {"containers": [{"name": "main", "image": "none", "resources": {"limits": has}}], "terminationGracePeriodSeconds": 0}
        return self.make({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace, "labels": labels or {}},
            "spec": {**made, **(spec or {}), **({"nodeName": node} if node else {})}})

    def end_pod(self, name, phase="Succeeded", namespace="default"):
        self.ask("PATCH", f"{path_of('Pod', namespace)}/{name}/status", {"status": {"phase": phase}})

    def delete_pod(self, name, namespace="default"):
        self.ask("DELETE", f"{path_of('Pod', namespace)}/{name}?gracePeriodSeconds=0")

    def node_of(self, pod, namespace="default"):
        return self.ask("GET", f"{path_of('Pod', namespace)}/{pod}")["spec"].get("nodeName")

    def clear(self):
        """Jobs, nodes, pods and Leases go, also those whose finalizer is the business of controllers that do not run any more."""
        for kind, namespace in (("Job", "default"), ("Pod", "default"), ("Node", ""), ("Lease", "gflow"), ("Lease", "gflow-system")):
            end = time.monotonic() + PATIENCE
            while True:
                self.ask("DELETE", f"{path_of(kind, namespace)}?gracePeriodSeconds=0&propagationPolicy=Background")
                left = [one["metadata"]["name"] for one in self.ask("GET", path_of(kind, namespace))["items"]]
                if not left:
                    break
                assert time.monotonic() < end, left
                for name in left:
                    with contextlib.suppress(urllib.error.HTTPError):  # it is gone
                        self.raw("PATCH", f"{path_of(kind, namespace)}/{name}", {"metadata": {"finalizers": None}})

    def token(self, account, namespace):
        """Of a service account."""
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        return self.ask("POST", f"{path_of('ServiceAccount', namespace)}/{account}/token", body)["status"]["token"]

    def asked_by(self, user):
        """Each verb, group and resource that it asked for, and its subresource. It is written before it is answered."""
        whole, _, _ = (self.root / "asked").read_text().rpartition("\n")  # of others a line is being written
        asked = [json.loads(line) for line in whole.splitlines()]
        objects = [(one["verb"], one["objectRef"]) for one in asked if one["user"].get("username") == user and "objectRef" in one]
        return {(verb, it.get("apiGroup", ""), "/".join(filter(None, (it["resource"], it.get("subresource"))))) for verb, it in objects}

    def kubeconfig(self, token, name="config", user=None, server=None, namespace="default"):
        """The path of a file whose one context has it, or that user; of this server or the cluster's own."""
        path = self.root / name
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": server or self.url, "certificate-authority": str(self.root / "certs/apiserver.crt")}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test", "namespace": namespace}}],
            "users": [{"name": "test", "user": user or {"token": token}}]}))
        path.chmod(0o600)
        return path
