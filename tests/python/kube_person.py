# SPDX-License-Identifier: Apache-2.0
"""People with a kubeconfig, who run gflow's commands about a cluster."""

import contextlib
import json
import os
import re
import signal
import subprocess

import pytest
from cluster import path_of
from machine import BIN, PATIENCE
from package import ROOT


def make_account(kube, name, namespace="default"):
    kube.make({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}})


def grant(kube, role, account, namespace="default", within=None):
    """A ClusterRole, everywhere or in one namespace."""
    kind = "RoleBinding" if within else "ClusterRoleBinding"
    kube.ask("POST", path_of(kind, within or ""), {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": f"{role}-{namespace}-{account}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}]})


@pytest.fixture(scope="session")
def viewers(control_plane, with_rights):
    """Service accounts: one with the rights of rbac-viewer.yaml, one with none."""
    control_plane.apply(ROOT / "packaging/kubernetes/rbac-viewer.yaml")
    for name in ("viewer", "visitor"):
        make_account(control_plane, name)
    grant(control_plane, "gflow-viewer", "viewer")


class Person:
    """Somebody with a kubeconfig."""

    def __init__(self, kube, account="viewer", config=None, namespace="default"):
        self._config = config or kube.kubeconfig(kube.token(account, namespace), f"of-{namespace}-{account}", namespace=namespace)
        self.env = {"PATH": os.environ["PATH"], "HOME": str(kube.root), "KUBECONFIG": str(self._config), "GFLOW_SERVER": "kube", "TZ": "UTC"}

    def run(self, *words, ok=True, stdin=None, **env):
        done = subprocess.run([BIN / words[0], *words[1:]], env={**self.env, **env}, capture_output=True, text=True, timeout=PATIENCE, check=False,
                              input=stdin)
        assert (done.returncode == 0) is ok, (words, done.returncode, done.stdout, done.stderr)
        return done

    def begins(self, *words):
        return subprocess.Popen([BIN / words[0], *words[1:]], env=self.env, stdout=subprocess.PIPE, text=True)

    def says(self, *words, **env):
        return self.run(*words, **env).stdout

    def queue(self, *words, **env):
        return {f"{job['user']['name']}/{job['spec']['name']}": job for job in json.loads(self.says("gqueue", "--json", *words, **env))["jobs"]}

    @contextlib.contextmanager
    def serves(self):
        """The REST API: what it is at."""
        process = subprocess.Popen([BIN / "gflow-kube", "serve", "--listen", "127.0.0.1:0"], env=self.env, stdout=subprocess.PIPE, text=True)
        try:
            yield re.findall(r"http://[0-9.:]+", process.stdout.readline())[-1]
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0
