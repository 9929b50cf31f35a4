# SPDX-License-Identifier: Apache-2.0
"""What a job has of root, who started the daemon: nothing."""

import re

from town import TEAM, UIDS

CAPS = "+chown,+dac_override,+setuid,+sys_admin"
FACTS = r"""#!/bin/bash
echo "ids $(grep -E '^(Uid|Gid):' /proc/self/status | tr -s '\t' ' ' | tr '\n' ' ')"
echo "groups $(id -G)"
grep -E '^(Cap(Inh|Prm|Eff|Amb)|NoNewPrivs|SigBlk|SigIgn)' /proc/self/status | tr '\t' ' '
echo "nice $(nice) class $(chrt -p $$ | sed -n 's/.*policy: //p' | tr '\n' ' ')"
echo "score $(cat /proc/self/oom_score_adj)"
echo "umask $(umask)"
ls /proc/$$/fd >~/open  # not through a pipe, which is open meanwhile
echo "open" $(cat ~/open)
echo "terminal $(ps -o tty= -p $$)"
echo "session $(( $(ps -o sid= -p $$) == $$ ))"
env | grep -c OF_ROOT
echo "cwd $PWD"
"""


def start_as_badly_as_possible(town):
    """A daemon whose starter hands on everything that can be."""
    before = ["python3", town.place / "syscalls.py", "with_session",
              "setpriv", "--groups", "0,4,27", "--inh-caps", CAPS, "--ambient-caps", CAPS,
              "nice", "-n", "-5", "env", "SECRET_OF_ROOT=swordfish",
              "sh", "-c", 'trap "" HUP INT USR1; exec 9</etc/shadow; exec "$@"', "sh"]
    return town.up(before=before, cwd="/root")


def test_a_job_has_nothing_of_root(bare_town):
    said = start_as_badly_as_possible(bare_town)
    job = bare_town.script("alice", FACTS)
    (ended,) = bare_town.ended(job)
    assert ended["status"] == "Finished", bare_town.log(job)
    uid = UIDS["alice"]
    none = "0000000000000000"
    assert bare_town.log(job).splitlines() == [
        f"ids Uid: {uid} {uid} {uid} {uid} Gid: {uid} {uid} {uid} {uid} ",
        f"groups {uid} {TEAM}",
        f"SigBlk: {none}", f"SigIgn: {none}",
        f"CapInh: {none}", f"CapPrm: {none}", f"CapEff: {none}", f"CapAmb: {none}",
        "NoNewPrivs: 0",
        "nice 0 class SCHED_OTHER ",
        "score 200",
        "umask 0022",
        "open 0 1 2 255",
        "terminal ?",
        "session 1",
        "0",
        "cwd /home/alice",
    ]
    key = re.search(r"key (\d+)", said)
    assert key, said
    program = f"{bare_town.place}/syscalls.py"
    job = bare_town.submit("alice", "python3", program, "find_key", key.group(1))
    again = bare_town.submit("alice", "python3", program, "find_key", key.group(1))
    other = bare_town.submit("bob", "python3", program, "find_key", key.group(1))
    for ended in bare_town.ended(job, again, other):
        assert bare_town.log(ended["id"]) == "search no read no own yes\n"


def test_the_keyring_of_a_job_is_not_the_next_ones(bare_town):
    """Jobs of root, too, have one of their own: its key is not in that of the one after it."""
    bare_town.up()
    program = f"{bare_town.place}/syscalls.py"
    for user in ("root", "alice"):
        bare_town.ok(user, "mkfifo", "there")
        first = bare_town.submit(user, "python3", program, "with_key", "sh", "-c", "echo > there; sleep infinity")
        bare_town.ok(user, "cat", "there")
        assert bare_town.job("root", first)["status"] in ("Starting", "Running"), bare_town.log(first)
        key = re.search(r"key (\d+)", bare_town.log(first)).group(1)
        second = bare_town.submit(user, "python3", program, "find_key", key)
        bare_town.ended(second)
        bare_town.ok(user, "rm", "there")
        bare_town.ok(user, "gcancel", first)
        assert "search no" in bare_town.log(second)
