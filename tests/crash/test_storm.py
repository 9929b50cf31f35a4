# SPDX-License-Identifier: Apache-2.0
"""What storm.py does to gflow leaves no acknowledged job lost, run twice, sharing a GPU or falsely ended.

GFLOW_STORM_KILLS is how many processes are killed, GFLOW_STORM_SEED what is drawn.
"""

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from machine import BIN, processes_with

KILLS = int(os.environ.get("GFLOW_STORM_KILLS", "300"))
SEED = int(os.environ.get("GFLOW_STORM_SEED") or random.SystemRandom().randrange(10**6))
SECONDS_A_KILL = 10  # only ever reached when something is broken

# Processes of its own, too: the storm kills what it finds in /proc, and other daemons use the same paths in
# namespaces of theirs. The shell stays to reap what loses its parent.
UNSHARE = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c"]
NAMESPACE = 'mount -t tmpfs none /run && mkdir -p /var/lib && mount -t tmpfs none /var/lib && "$@"; exit $?'


def namespaces_work():
    probe = [*UNSHARE, NAMESPACE, "sh", "true"]
    return os.geteuid() == 0 and subprocess.run(probe, capture_output=True, check=False).returncode == 0


def test_storm():
    place = Path(tempfile.mkdtemp(prefix="gflow-storm-"))
    print(f"GFLOW_STORM_SEED={SEED} GFLOW_STORM_KILLS={KILLS}")
    try:
        place.chmod(0o755)
        shutil.copytree(BIN, place / "bin", symlinks=True)
        (place / "work").mkdir()
        storm = [sys.executable, str(Path(__file__).parent / "storm.py"), "--bin", str(place / "bin"),
                 "--work", str(place / "work"), "--seed", str(SEED), "--kills", str(KILLS)]
        if namespaces_work():
            storm = [*UNSHARE, NAMESPACE, "sh", *storm, "--system"]
        ran = subprocess.run(
            storm, capture_output=True, text=True, timeout=120 + KILLS * SECONDS_A_KILL, check=False,
            stdin=subprocess.DEVNULL,
        )
        print(ran.stderr)
        assert ran.returncode == 0, ran.stderr
        result = json.loads(ran.stdout)
        print(json.dumps(result, indent=1))
        killed = sum(n for what, n in result["injected"].items() if what.endswith("killed"))
        assert killed >= KILLS and result["acknowledged"] > KILLS // 3, result
        assert result["wrong"] == [], result["wrong"]
    finally:
        for pid in processes_with(str(place)):
            try:
                os.kill(pid, 9)
            except ProcessLookupError:
                pass
        shutil.rmtree(place, ignore_errors=True)
