# SPDX-License-Identifier: Apache-2.0
"""helm as tests and the demo run it, and the chart that it installs."""

import os
import subprocess
from pathlib import Path

from package import ROOT
from pypi import needed

CHART = ROOT / "packaging/helm/gflow-kube"
ANY = Path("/nonexistent")  # of no cluster


def program():
    """Where helm is. Not built: skipped, and a failure where everything has to run."""
    where = subprocess.run([ROOT / "tests/cluster/build.sh", "--where", "--helm"], capture_output=True, text=True, check=True).stdout.strip()
    return needed(Path(where) / "helm", "helm")


class Helm:
    """Of a user with this home and this kubeconfig."""

    def __init__(self, home, kubeconfig=ANY):
        self._program = program()
        self._environment = {"PATH": os.environ["PATH"], "HOME": str(home), "KUBECONFIG": str(kubeconfig)}

    def run(self, *words):
        return subprocess.run([self._program, *words], env=self._environment, text=True, capture_output=True, check=False)

    def __call__(self, *words):
        """What it says."""
        done = self.run(*words)
        assert done.returncode == 0, f"helm {words}\n{done.stdout}{done.stderr}"
        return done.stdout
