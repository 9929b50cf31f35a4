# SPDX-License-Identifier: Apache-2.0
"""Who may do what, with real users: groups, priorities, roles, and what advice names."""

import json
import os
import shutil
import subprocess
import tempfile

import pytest
from machine import BIN, PATIENCE

CONFIG = """
[access]
operators = ["sys", "@tty"]
[priority]
users = "bin=100"
[scheduler]
order = "submission"
[runner]
cgroups = false
"""

# daemon is 1, bin 2, sys 3 on every Debian; each prints "KEY: VALUE" lines.
SCRIPT = r"""
set -eu
export PATH=$1:$PATH
unset HOME XDG_RUNTIME_DIR
mkdir -p /etc/gflow
for place in /run /var/lib /etc/gflow; do mount -t tmpfs none $place; done
printf '%s' "$2" > /etc/gflow/gflow.toml
cd /
trap 'gflowd down >/dev/null 2>&1 || true' EXIT
gflowd up --system --devices "$3" >/dev/null
as() { setpriv --reuid="$1" --regid="$1" --clear-groups "${@:2}"; }
POST='
import socket, sys
body = sys.argv[1].encode()
there = socket.socket(socket.AF_UNIX)
there.connect("/run/gflow/gflowd.sock")
there.sendall(b"POST /api/v1/jobs HTTP/1.1\r\nHost: gflow\r\nConnection: close\r\n"
              b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
print(there.makefile("rb").readline().split()[1].decode())
'
say() { local code=0 text; text=$("${@:2}" 2>&1) || code=$?; echo "$1: $code $(tr '\n' '|' <<<"$text")"; }
"""


def play(body, devices="sim:1xH100", config=CONFIG):
    """The output of the script by key."""
    if os.geteuid() != 0:
        pytest.skip("only root can run a daemon for all users")
    place = tempfile.mkdtemp(prefix="gflow-people-")
    try:
        os.chmod(place, 0o755)
        programs = shutil.copytree(BIN, f"{place}/bin", symlinks=True)
        ran = subprocess.run(
            # A namespace of processes, so that jobs that outlive the daemon end with it.
            ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
             "bash", "-c", SCRIPT + body, "bash", programs, config, devices],
            capture_output=True, text=True, timeout=PATIENCE, check=False, stdin=subprocess.DEVNULL,
        )
    finally:
        shutil.rmtree(place, ignore_errors=True)
    if "mount:" in ran.stderr or "unshare:" in ran.stderr:
        pytest.skip(f"no mount namespace here: {ran.stderr}")
    assert ran.returncode == 0, ran
    return dict(line.split(": ", 1) for line in ran.stdout.splitlines())


def test_priority_above_the_default_is_for_operators():
    said = play(r"""
as 1 gbatch --gpus 1 --name first sleep 1000 >/dev/null
say too_high as 1 gbatch -p 100 --gpus 1 true
say allowed as 2 gbatch -p 100 --gpus 1 true
say above as 2 gbatch -p 101 --gpus 1 true
say operator as 3 gbatch -p 255 --gpus 1 true
say by_group setpriv --reuid=4 --regid=4 --groups="$(getent group tty | cut -d: -f3)" gbatch -p 200 --gpus 1 true
as 1 gbatch --gpus 1 --name last true >/dev/null
say raise as 1 gjob update 5 -p 50
say raised as 3 gjob update 5 -p 50
say me as 2 gctl whoami
say me_too as 3 gctl whoami
say drain as 1 gctl drain gpu 0
say operator_drain as 3 gctl drain gpu 0 -r fan
say stop as 3 gflowd reload
""")
    assert said["too_high"].startswith("5 gbatch: priority 100 is above 10, the maximum for daemon; an operator")
    assert said["allowed"].startswith("0 Submitted batch job 2|")
    assert said["above"].startswith("5 gbatch: priority 101 is above 100, the maximum for bin")
    assert said["operator"].startswith("0 Submitted batch job 3|")
    assert said["by_group"].startswith("0 Submitted batch job 4|")
    assert said["raise"].startswith("5 "), said
    assert "is above 10" in said["raise"], said
    assert said["raised"].startswith("0 "), said
    assert said["me"] == "0 User: bin|Role: user|Known by: peer credentials|Highest priority: 100|"
    assert said["me_too"] == "0 User: sys|Role: operator|Known by: peer credentials|Highest priority: 255|"
    assert said["drain"].startswith("5 ") and "only an operator can drain" in said["drain"], said
    assert said["operator_drain"].startswith("0 "), said
    assert said["stop"].startswith("5 ") and "only an administrator" in said["stop"], said


def test_advice_is_what_the_asker_may_do():
    said = play(r"""
as 1 gbatch --gpus 1 --time 1h sleep 1000 >/dev/null
as 1 gbatch --gpus 2 --name ahead sleep 1000 >/dev/null
as 1 gbatch --gpus 1 --name behind --time 2h sleep 1000 >/dev/null
say owner as 1 gjob why 3
say stranger as 2 gjob why 3
say operator as 3 gjob why 3
""", devices="sim:2xH100")
    for who in ("owner", "stranger", "operator"):
        assert "Priority: " in said[who], said
    assert "--priority" not in said["owner"], said
    assert "gjob update" not in said["stranger"], said
    assert "gjob update 3 --priority 11" in said["operator"], said


def test_a_group_is_its_owners():
    said = play(r"""
as 1 gbatch --array 1-3%1 --parsable sleep 1000 2>/tmp/gflow-group-$$ >/dev/null
group=$(grep -o 'group-[0-9a-f]*' /tmp/gflow-group-$$ | head -n 1); rm /tmp/gflow-group-$$
echo "group: $group"
body='{"items":[{"spec":{"name":"b","work_dir":"/","command":"x","group":"'$group'","max_concurrent":9},"payload":{"argv":["sleep","1000"]}}]}'
say theirs as 2 /usr/bin/python3 -c "$POST" "$body"
say states gqueue --group "$group" -f JOBID,USER,GROUP,ST --noheader
as 1 gjob update 2 --max-concurrent 2 >/dev/null
gflowd restart >/dev/null
say kept gqueue --group "$group" -u daemon -f JOBID,ST --noheader
say cancelled as 1 gcancel --group "$group"
say left gqueue --group "$group" -f JOBID --noheader
""")
    group = said["group"]
    assert group.startswith("group-")
    assert said["theirs"] == "0 201|"
    rows = [row.split() for row in said["states"].split(" ", 1)[1].split("|") if row]
    assert [(row[0], row[1], row[2]) for row in rows] == [
        ("1", "daemon", group), ("2", "daemon", group), ("3", "daemon", group), ("4", "bin", group)]
    assert [row[3] == "PD" for row in rows] == [False, True, True, False], said
    kept = [row.split()[1] == "PD" for row in said["kept"].split(" ", 1)[1].split("|") if row]
    assert kept == [False, False, True], said
    assert said["cancelled"].startswith("0 "), said
    left = [row.strip() for row in said["left"].split(" ", 1)[1].split("|") if row]
    assert "4" in left and "3" not in left, said


def test_settings_say_where_they_come_from():
    said = play(r"""
say names gctl config show --origin access
say mistake gctl config show acess
printf '[access]\noperators = "no-such-person"\n' > /etc/gflow/gflow.toml
gflowd reload >/dev/null
say status gflowd status
say json gctl config show access.operators --json
""")
    assert "access.operators" in said["names"] and "/etc/gflow/gflow.toml:3" in said["names"], said
    assert said["mistake"].endswith("did you mean 'access'?|"), said
    assert "access.operators: this machine has no user 'no-such-person'" in said["status"], said
    document = json.loads(said["json"].split(" ", 1)[1].rstrip("|"))
    assert document["settings"][0]["value"] == "no-such-person", document
    assert document["settings"][0]["environment"] == "GFLOW_ACCESS__OPERATORS", document


def test_the_first_job_of_another_person_waits_for_one_job_to_end():
    said = play(r"""
mkdir -m 777 /run/order; install -m 666 /dev/null /run/order/started
mkfifo -m 666 /run/order/gate
as 1 gbatch --gpus 1 bash -c 'cat /run/order/gate; sleep 2; echo 1 >> /run/order/started' >/dev/null
for n in 2 3 4 5 6 7 8; do as 1 gbatch --gpus 1 bash -c "echo $n >> /run/order/started" >/dev/null; done
as 2 gbatch --gpus 1 bash -c 'echo other >> /run/order/started' >/dev/null
echo go > /run/order/gate
gjob wait 1-9 >/dev/null
say order cat /run/order/started
""", config=CONFIG.replace('order = "submission"', 'order = "learned"'))
    assert said["order"] == "0 1|other|2|3|4|5|6|7|8|"
