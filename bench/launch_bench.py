#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What libgflow-share.so costs a launch that it does not limit, as those of a job which is held to its memory only, and of one
with a whole GPU that may be lent: beside a driver whose launches do nothing, in turn, the median of five. The aim is at most
20 ns, and 2 ns of the latter."""

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "e2e"))

from fake_gpu import BIN, GIB, INTERPOSER, UUIDS, Account  # noqa: E402

BENCH = BIN.parent / "bench"


def nanoseconds(environment):
    done = subprocess.run([BENCH / "launch_loop"], env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == "", done.stderr
    return float(done.stdout)


with tempfile.TemporaryDirectory() as folder:
    limited = Account(Path(folder) / "limited", {UUIDS[0]: 8 * GIB})
    whole = Account(Path(folder) / "whole", {})
    plain = os.environ | {"LD_LIBRARY_PATH": str(BENCH / "launch_driver")}
    behind = [plain | {"LD_PRELOAD": str(INTERPOSER), "GFLOW_SHARE_DIR": str(account.folder)} for account in (limited, whole)]
    rounds = [[nanoseconds(environment) for environment in (plain, *behind)] for _ in range(5)]
without, *with_it = map(statistics.median, zip(*rounds))
for kind, each in zip(("held to its memory", "with a whole GPU"), with_it):
    print(f"a launch: {without:.1f} ns, of a job {kind} {each:.1f} ns: {each - without:.1f} ns more")
