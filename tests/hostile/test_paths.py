# SPDX-License-Identifier: Apache-2.0
"""Paths that a user chooses or changes: root opens none of them."""

import json
import subprocess

import pytest
from town import DAEMON_LOG, STATE, UIDS

SECRET = "swordfish"


def reason(job):
    return job["outcome"]["message"]


def test_a_script_cannot_be_swapped_under_its_job(town):
    """What made a root shim read a file for its user: the script replaced between two looks at it."""
    job = town.script("mallory", """#!/bin/bash
        here=$(dirname "$0")
        echo "I am $(id -un), the directory is of $(stat -c %U "$here")"
        for try in "rm -f $0" "mv $0 $0.old" "ln -sf /etc/shadow $0" "mkfifo $here/fifo" \\
                   "touch $here/file" "rm -rf $here" "mv $here $here.old" "mkdir $here/../more"; do
          $try 2>/dev/null && echo "could $try"
        done
        exit 0
        """)
    (ended,) = town.ended(job)
    assert ended["status"] == "Finished"
    assert town.log(job) == "I am mallory, the directory is of root\n"


@pytest.mark.parametrize("interpreter, says", [
    ("/no/such/interpreter", "'/no/such/interpreter': No such file"),
    ("/etc/shadow", "'/etc/shadow': Permission denied"),
    ("/home/mallory/fifo", "'/home/mallory/fifo': Permission denied"),
    ("/" + "x" * 3000, "xxx': File name too long"),
])
def test_an_interpreter_is_named_as_its_user_found_it(town, interpreter, says):
    town.ok("mallory", "sh", "-c", "test -p fifo || mkfifo fifo")
    job = town.script("mallory", f"#!{interpreter}\n")
    (ended,) = town.ended(job)
    assert ended["status"] == "Failed"
    assert says in reason(ended)
    assert SECRET not in town.log(job)


@pytest.fixture
def traps(town):
    """In mallory's home: a FIFO nobody writes to, links to what is root's alone, a loop of links."""
    town.ok("root", "sh", "-c", f"mkdir -p /mnt/vault && echo {SECRET} > /mnt/vault/key && chmod -R go= /mnt/vault")
    town.ok("mallory", "sh", "-c", """
        rm -rf traps && mkdir traps && cd traps
        mkfifo fifo; ln -s /mnt/vault vault; ln -s /mnt/vault/key key; ln -s loop loop
        ln -s /proc/1/root root; ln -s /proc/1/cwd cwd; touch plain""")
    return "/home/mallory/traps"


@pytest.mark.parametrize("name", ["fifo", "vault", "key", "loop", "root/mnt/vault", "cwd", "plain", "none"])
def test_a_working_directory_is_entered_as_its_user(town, traps, name):
    """And a job that cannot enter it gives its GPU back: the next one of somebody else gets it."""
    body = ('{"items":[{"spec":{"name":"trap","work_dir":"%s/%s","request":{"gpus":2}},'
            '"payload":{"argv":["cat","key"],"environment":["PATH=/bin:/usr/bin"]}}]}' % (traps, name))
    status, text = town.ask("mallory", "POST", "/api/v1/jobs", body)
    assert status == 201, text
    after = town.submit("bob", "--gpus", "2", "true")
    trapped, free = town.ended(after - 1, after)
    assert trapped["status"] == "Failed", trapped
    assert "change to the working directory" in reason(trapped)
    assert free["status"] == "Finished"
    assert SECRET not in town.log(after - 1)


@pytest.mark.parametrize("program", ["./fifo", "./key", "./vault", "./loop", "./plain", "/dev/zero", "."])
def test_a_program_is_run_as_its_user(town, traps, program):
    job = town.submit("mallory", "--gpus", "1", "--", "env", program, cwd=traps)
    direct = town.ask("mallory", "POST", "/api/v1/jobs",
                      '{"items":[{"spec":{"name":"direct","work_dir":"%s","request":{}},"payload":{"argv":["%s"],'
                      '"environment":["PATH=%s"]}}]}' % (traps, program, traps))
    assert direct[0] == 201, direct
    for ended in town.ended(job, job + 1):
        assert ended["status"] == "Failed", ended
    assert SECRET not in town.log(job) + town.log(job + 1)


def test_a_log_stays_where_it_is_and_its_owners(town):
    others = town.script("alice", "#!/bin/sh\necho mine\n")
    town.ended(others)
    job = town.script("mallory", """#!/bin/bash
        ln -s /etc/passwd ~/elsewhere 2>/dev/null
        for try in "rm -f $GFLOW_LOG_FILE" "mv $HOME/elsewhere $GFLOW_LOG_FILE" "ln -sf /etc/passwd $GFLOW_LOG_FILE" \\
                   "ls $(dirname "$GFLOW_LOG_FILE")" "ln $GFLOW_LOG_FILE $GFLOW_LOG_FILE.2"; do
          $try >/dev/null 2>&1 && echo "could $try"
        done
        chmod 666 "$GFLOW_LOG_FILE"   # its own harm
        exit 1
        """, "--max-retries", "1")
    (ended,) = town.ended(job)
    assert ended["attempt"] == 2
    assert town.log(job) == ""
    assert town.stat(f"{STATE}/logs/{job}.log") == f"{UIDS['mallory']}:0 666"
    assert town.run("bob", "cat", f"{STATE}/logs/{others}.log").code != 0


def test_nobody_reads_or_writes_anothers_files(town):
    job = town.script("alice", "#!/bin/sh\necho mine; exec sleep infinity\n", "--config", "job.sh", name="job.sh")
    attempt = f"{STATE}/attempts/{job}.1"
    town.running(job)
    for path in (f"{STATE}/gflow.db", f"{DAEMON_LOG}", f"{attempt}/order", f"{attempt}/script/job.sh",
                 f"{attempt}/config/job.sh", f"{attempt}/exit", f"{attempt}/lock", f"{STATE}/logs/{job}.log"):
        for how in ("<", ">>"):
            ran = town.run("mallory", "sh", "-c", f"exec 3{how} {path}")
            assert ran.code != 0 and "ermission denied" in ran.err, f"{how} {path}: {ran}"
    for directory in (STATE, f"{STATE}/logs", f"{STATE}/attempts", attempt, f"{attempt}/script", "/run/gflow"):
        for user in ("mallory", "alice"):
            assert town.run(user, "touch", f"{directory}/new").code != 0, directory
        if directory != "/run/gflow":
            assert town.run("mallory", "ls", directory).code != 0, directory
    town.ok("alice", "gcancel", job)
    town.ended(job)


def test_what_a_job_leaves_is_removed_without_walking_it(town):
    """Nothing but gflow's own files is ever in an attempt's directory."""
    job = town.script("mallory", """#!/bin/bash
        mkdir -p deep; for i in {1..200}; do mkdir d && cd d || break; done
        ln -s "$(dirname "$0")" ~/back
        """)
    town.ended(job)
    assert town.run("root", "ls", f"{STATE}/attempts/{job}.1").code != 0
    assert town.ok("mallory", "ls", "-d", "d").strip() == "d"


def test_a_path_that_changes_all_the_time(town, traps):
    """Between every look and every use: a directory, a link to root's directory, a FIFO, nothing."""
    flip = town.start("mallory", "python3", town.place / "syscalls.py", "flip", "w", "/mnt/vault", cwd=traps,
                      stdin=subprocess.PIPE)
    assert flip.stdout.readline() == b"flipping\n"
    body = ('{"items":[%s]}' % ",".join(['{"spec":{"name":"flip","work_dir":"%s/w","request":{}},"payload":{"argv":["./run"],'
            '"environment":["PATH=%s/w:/bin"]}}' % (traps, traps)] * 20))
    status, text = town.ask("mallory", "POST", "/api/v1/jobs", body)
    assert status == 201, text
    jobs = [item["id"] for item in json.loads(text)["items"]]
    for ended in town.ended(*jobs):
        assert ended["status"] in ("Finished", "Failed"), ended
        log = town.log(ended["id"])
        assert SECRET not in log and SECRET not in json.dumps(ended)
        assert "uid=0" not in log
    flip.stdin.close()
    assert flip.wait() == 0
