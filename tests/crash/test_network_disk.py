# SPDX-License-Identifier: Apache-2.0
"""A state directory on a network file system, which locks and syncs cannot be relied on: refused, with the way out."""

import shutil
import subprocess

import pytest

STRACE = shutil.which("strace")
NFS = "6969000000000000"  # f_type of statfs(2), as it lies in memory


@pytest.mark.skipif(not STRACE, reason="strace is not installed (./dev setup)")
def test_a_network_file_system_is_refused(bare):
    ran = subprocess.run(
        [STRACE, "-f", "-qq", "-o", "/dev/null", "-e", "trace=statfs",
         "-e", f"inject=statfs:poke_exit=@arg2={NFS}", "gflowd", "--devices", bare.devices],
        capture_output=True, text=True, env=bare.environment, cwd=bare.work, check=False,
    )
    assert ran.returncode == 1, ran
    assert f"'{bare.state}' lies on a network file system (nfs)" in ran.stderr
    assert "set XDG_DATA_HOME to a local disk" in ran.stderr
    log = (bare.logs / "gpu_resource_manager.log").read_text()
    assert "lies on a network file system (nfs)" in log
    bare.up()
