# SPDX-License-Identifier: Apache-2.0
"""gflowd --system: one daemon for all users; a job runs as the person who submitted it."""

import os
import re
import shutil
import subprocess
import tempfile

import pytest
from machine import BIN, PATIENCE

# A machine of its own, and users of it.
START = r"""
set -eu
export PATH=$1:$PATH
unset HOME XDG_RUNTIME_DIR
mkdir -p /run /var/lib /etc/gflow
mount -t tmpfs none /run
mount -t tmpfs none /var/lib
cd /
trap 'gflowd down >/dev/null 2>&1 || true' EXIT
as() { setpriv --reuid="$1" --regid="$1" --clear-groups "${@:2}"; }
"""

SCRIPT = START + r"""\
gflowd up --system --devices sim:2xH100
as 1 gbatch --gpus 1 --name mine bash -c 'id -u; id -g; echo "gpus $CUDA_VISIBLE_DEVICES"'
as 1 gjob wait 1
echo "log: $(tr '\n' ' ' < /var/lib/gflow/logs/1.log)"
echo "owner: $(stat -c '%u %a' /var/lib/gflow/logs/1.log)"
as 1 gbatch --hold --name private echo secret
code=0; as 2 gcancel 2 || code=$?
echo "cancel by another: $code"
as 2 gqueue -u all -o json | grep -c secret || true
as 1 gbatch --gpus 8G,0.5 bash -c 'stat -c "%u %a" $GFLOW_SHARE_DIR $GFLOW_SHARE_DIR/account $GFLOW_SHARE_DIR/turn; cat $GFLOW_SHARE_DIR/account | wc -c'
as 1 gjob wait 3
echo "account: $(tr '\n' ' ' < /var/lib/gflow/logs/3.log)"
echo "database: $(stat -c '%a' /var/lib/gflow/gflow.db)"
as 1 gcancel 2
gflowd status
"""

# The own daemon, then the same one killed: its socket and its lock lie there still.
BOTH = r"""
set -eu
export PATH=$1:$PATH
unset XDG_RUNTIME_DIR
mkdir -p /run /var/lib /etc/gflow
mount -t tmpfs none /run
mount -t tmpfs none /var/lib
cd /
trap 'HOME=/ gflowd down >/dev/null 2>&1 || true; mine gflowd down >/dev/null 2>&1 || true' EXIT
install -d -o 1 -g 1 /var/lib/home
mine() { HOME=/var/lib/home setpriv --reuid=1 --regid=1 --clear-groups "$@"; }
unset HOME
mine gflowd up --devices sim:1xA100
gflowd up --system --devices sim:2xH100
mine ginfo --json | grep -o '"model": *"[^"]*"' | sort -u
lock=/var/lib/home/.local/share/gflow
pid=$(head -n 1 $lock/gflowd.lock)
kill -9 "$pid"
tail --pid="$pid" -f /dev/null
test -S $lock/run/gflowd.sock
mine ginfo --json | grep -o '"model": *"[^"]*"' | sort -u
mine gflowd up --devices sim:1xV100
mine ginfo --json | grep -o '"model": *"[^"]*"' | sort -u
mine gflowd down
"""


# What root restarts without --system where it never had one of its own.
KILLED = r"""
set -eu
export PATH=$1:$PATH
unset XDG_RUNTIME_DIR GFLOW_SOCKET
mkdir -p /run /var/lib /etc/gflow
mount -t tmpfs none /run
mount -t tmpfs none /var/lib
install -d /var/lib/home
export HOME=/var/lib/home
cd /
trap 'gflowd down >/dev/null 2>&1 || true' EXIT
gflowd up --system --devices sim:2xH100
pid=$(head -n 1 /var/lib/gflow/gflowd.lock)
kill -9 "$pid"
tail --pid="$pid" -f /dev/null
gflowd restart
gflowd status | grep Mode
"""


# Both run: --system is the one for all, and without it one's own is meant.
NAMED = r"""
set -u
export PATH=$1:$PATH
unset XDG_RUNTIME_DIR GFLOW_SOCKET
mkdir -p /run /var/lib /etc/gflow
mount -t tmpfs none /run
mount -t tmpfs none /var/lib
install -d /var/lib/home
export HOME=/var/lib/home
cd /
trap 'gflowd down --system >/dev/null 2>&1 || true; gflowd down >/dev/null 2>&1 || true' EXIT
gflowd status --system 2>&1; echo "status: $?"
gflowd down --system 2>&1; echo "down: $?"
gflowd down 2>&1; echo "down: $?"
gflowd up --devices sim:1xA100 >/dev/null
gflowd up --system --devices sim:2xH100 >/dev/null
gflowd status --system | grep Mode
gflowd status | grep Mode
gflowd reload --system
gflowd down --system
gflowd status | grep Mode
gflowd down
gflowd up --system --devices sim:2xH100 >/dev/null
gflowd up | sed 's/[0-9][0-9]*/PID/'
gflowd up --system | sed 's/[0-9][0-9]*/PID/'
gflowd up --devices sim:1xT4 2>&1 | sed 's/pid [0-9]*/pid PID/'
gflowd up --system --devices sim:1xT4 2>&1 | sed 's/pid [0-9]*/pid PID/'
"""


# /dev/zero stands for one GPU, /dev/full for the other.
ISOLATED = START + r"""
printf 'gpus:\n- {model: H100, device_nodes: ["1:5"]}\n- {model: H100, device_nodes: ["1:7"]}\n' > /var/lib/machine.yaml
gflowd up --system --devices sim:/var/lib/machine.yaml
mkfifo -m 666 /run/there /run/go
as 1 gbatch --gpus 1 bash -c 'echo there > /run/there; read line < /run/go'
read line < /run/there
as 2 gbatch --gpus 1 bash -c 'echo $GFLOW_GPU_INDICES $CUDA_VISIBLE_DEVICES; : < /dev/full; : < /dev/zero' || true
as 2 gjob wait 2 || true
cat /var/lib/gflow/logs/2.log
as 1 gjob show 1 | grep Isolation
echo go > /run/go
as 1 gjob wait 1
"""


def run_in_namespace(script):
    if os.geteuid() != 0:
        pytest.skip("only root can run a daemon for all users")
    place = tempfile.mkdtemp(prefix="gflow-system-")
    try:
        os.chmod(place, 0o755)
        programs = shutil.copytree(BIN, f"{place}/bin", symlinks=True)
        ran = subprocess.run(
            ["unshare", "--mount", "bash", "-c", script, "bash", programs],
            capture_output=True, text=True, timeout=PATIENCE, check=False, stdin=subprocess.DEVNULL,
        )
    finally:
        shutil.rmtree(place, ignore_errors=True)
    if "mount:" in ran.stderr or "unshare:" in ran.stderr:
        pytest.skip(f"no mount namespace here: {ran.stderr}")
    assert ran.returncode == 0, ran
    return ran


def test_one_that_was_killed_does_not_hide_the_one_for_all():
    ran = run_in_namespace(BOTH)
    models = [line.split('"')[3] for line in ran.stdout.splitlines() if '"model"' in line]
    assert [re.search("[AHV]100", model)[0] for model in models] == ["A100", "H100", "V100"], ran


def test_the_one_for_all_that_was_killed_is_the_one_that_root_restarts():
    ran = run_in_namespace(KILLED)
    assert "Mode: system" in ran.stdout and "2 GPUs" in ran.stdout, ran


def test_jobs_run_as_their_owners():
    ran = run_in_namespace(SCRIPT)
    assert "Submitted batch job 1\n" in ran.stdout
    assert "log: 1 1 gpus 0 \n" in ran.stdout, ran
    assert "owner: 1 600\n" in ran.stdout
    assert "cancel by another: 5\n" in ran.stdout
    assert "\n0\n" in ran.stdout, "another user sees the command"
    assert "database: 600\n" in ran.stdout
    # The account of a job that shares a GPU is its user's, in a directory of root's, as is the lock of the GPU.
    assert "account: 0 711 1 600 0 666 38976 \n" in ran.stdout, ran
    assert "Mode: system\n" in ran.stdout


def test_a_job_does_not_open_the_gpu_of_another_user():
    ran = run_in_namespace(ISOLATED)
    assert "\n1 0\n" in ran.stdout, ran
    assert "/dev/zero: Operation not permitted" in ran.stdout and "/dev/full:" not in ran.stdout, ran
    assert re.search("Isolation +device filter of its control group", ran.stdout), ran


def test_the_one_for_all_is_named_by_an_option():
    ran = run_in_namespace(NAMED)
    start = "the gflowd of this machine is not running: 'sudo gflowd up --system' starts it\n"
    own = "gflowd is not running: 'gflowd up' starts one of your own, 'sudo gflowd up --system' one for all users of this machine\n"
    assert ran.stdout == (
        f"Status: Not running\ngflowd status: {start}status: 4\n"
        f"gflowd down: {start}down: 4\n"
        f"gflowd down: {own}down: 4\n"
        "Mode: system\nMode: user\nconfiguration reloaded\ngflowd is down\nMode: user\ngflowd is down\n"
        "the gflowd of this machine is already running (pid PID), for all its users\n"
        "gflowd is already running (pid PID)\n"
        "gflowd up: the gflowd of this machine is already running (pid PID), for all its users, with devices 'sim:2xH100'; "
        "as root 'gflowd restart --system --devices sim:1xT4' changes them for all, and jobs keep running\n"
        "gflowd up: gflowd is already running (pid PID) with devices 'sim:2xH100'; "
        "'gflowd restart --system --devices sim:1xT4' changes them, and jobs keep running\n"
    ), ran
