# SPDX-License-Identifier: Apache-2.0
"""A full disk: new jobs are refused with the reason, what happens to running ones is still written."""

import os
import subprocess
import time

import pytest
from http_client import ask
from machine import ENDED, PATIENCE, Gate, Machine


@pytest.fixture
def small():
    """A machine whose state lies on a file system of 24 MiB."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    made = Machine("sim:1xH100", config="[store]\nballast = '4M'\n")
    made.state.mkdir(parents=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=24m", "none", str(made.state)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        made.close()
        pytest.skip(f"a tmpfs cannot be mounted here: {mounted.stderr.decode()}")
    try:
        yield made
    finally:
        for _ in range(2):
            made.run("gflowd", "down")
            subprocess.run(["umount", "-l", str(made.state)], capture_output=True, check=False)
        made.close()


def fill(directory):
    """Takes every byte that is left."""
    with open(directory / "filler", "wb", buffering=0) as filler:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while True:
                    filler.write(b"x" * size)
            except OSError:
                continue


def test_disk_full_while_a_job_runs(small):
    small.up()
    gate = Gate(small)
    job = small.submit("--gpus", "1", "bash", "-c", f"{gate.command}; exit 4")
    waiting = small.submit("--gpus", "1", "true")
    gate.reached()
    fill(small.state)
    pid = small.daemon_pid()
    # The state of what is there already can still be written, from the space set aside.
    big = "x" * 100_000
    for _ in range(60):
        ran = small.run("gbatch", "--hold", "echo", big)
        if ran.code != 0:
            break
    assert ran.code == 1 and "full" in ran.err and ran.out == "", ran
    not_ready = ask(small, "GET", "/readyz")
    assert not_ready.status == 503 and "is full: no new jobs are taken" in not_ready.document["detail"], not_ready
    assert ask(small, "GET", "/healthz").status == 200
    gate.open()
    ended = small.wait(job)[0]
    assert ended["status"] == "Failed" and ended["outcome"]["exit_code"] == 4
    assert small.daemon_pid() == pid
    (small.state / "filler").unlink()
    assert small.wait(waiting)[0]["status"] == "Finished"
    assert small.wait(small.submit("true"))[0]["status"] == "Finished"
    while ask(small, "GET", "/readyz").status != 200:
        small.ok("gflowd", "status")  # what was set aside is so again with a tick


@pytest.mark.parametrize("restarted", [False, True])
def test_it_is_ready_by_itself_once_there_is_room(small, restarted):
    """Nobody submits, and nothing happens to jobs."""
    small.up()
    fill(small.state)
    while small.run("gbatch", "--hold", "echo", "x" * 100_000).code == 0:  # what the database has left
        pass
    assert ask(small, "GET", "/readyz").status == 503
    if restarted:
        small.kill_daemon()
        small.up()
        assert ask(small, "GET", "/readyz").status == 503
    (small.state / "filler").unlink()
    give_up = time.monotonic() + PATIENCE
    while ask(small, "GET", "/readyz").status != 200:
        assert time.monotonic() < give_up, small.get("/api/v1/daemon")["warnings"]


def test_a_token_is_revoked_on_a_full_disk(small):
    small.up()
    names = [f"t{i}" for i in range(8)]
    for name in names:
        small.ok("gctl", "token", "create", name)
    fill(small.state)
    while small.run("gctl", "token", "create", names[-1] + "x").code == 0:  # what the database has left
        names.append(names[-1] + "x")
    for name in names:
        small.ok("gctl", "token", "revoke", name)
    assert small.get("/api/v1/tokens")["tokens"] == []


def test_a_job_whose_log_fills_the_disk(small):
    """The daemon stays, says who it is, and the job can be cancelled; also by a daemon started anew."""
    small.up()
    pid = small.daemon_pid()
    begin, gate = Gate(small, "begin"), Gate(small)
    endless = "while :; do dd if=/dev/zero bs=64k count=64 status=none; done"
    until_full = "until ! dd if=/dev/zero bs=64k count=64 status=none; do :; done"
    hog = small.submit("--gpus", "1", "bash", "-c", f"{begin.command}; {until_full} 2>/dev/null; {gate.command}; {endless}")
    waiting = small.submit("--gpus", "1", "true")
    begin.reached()
    begin.open()
    gate.reached()
    gate.open()
    # Each needs something written, and the job takes whatever is given back.
    for priority in range(1, 10):
        small.run("gjob", "update", waiting, "-p", priority)
    refused = small.run("gbatch", "echo", "x" * 100_000)
    assert refused.code == 1 and "is full" in refused.err and f"job {hog} of" in refused.err, refused
    assert small.daemon_pid() == pid
    warned = small.get("/api/v1/daemon")["warnings"]
    assert len(warned) == 1 and f"job {hog} of" in warned[0], warned
    assert f"job {hog} of" in small.run("ginfo").err
    small.ok("gflowd", "restart")
    assert small.daemon_pid() != pid
    assert small.job(hog)["status"] == "Running"
    small.ok("gcancel", hog)
    assert small.wait(hog)[0]["status"] == "Cancelled"
    # What it wrote is still there, and it is still said whose that is.
    assert f"job {hog} of" in small.run("ginfo").err and "which has ended" in small.run("ginfo").err
    (small.logs / f"{hog}.log").unlink()
    assert small.wait(waiting)[0]["status"] in ENDED
    assert small.wait(small.submit("true"))[0]["status"] == "Finished"


def test_more_is_kept_than_half_of_what_is_free(small):
    """What was asked for, and not twice as much, has to be free; a smaller setting gives back at the next start."""
    small.config("[store]\nballast = '15M'\n")
    small.up()
    small.wait(small.submit("true"))
    small.down()
    assert (small.state / "ballast").stat().st_size == 15 << 20
    small.config("[store]\nballast = '2M'\n")
    small.up()
    small.down()
    assert (small.state / "ballast").stat().st_size == 2 << 20


def test_more_is_kept_than_the_disk_has(small):
    small.config("[store]\nballast = '99999T'\n")
    ran = small.run("gflowd", "up", "--devices", small.devices)
    assert ran.code == 1 and "[store] ballast is 99999T" in ran.err and "free on the disk" in ran.err, ran
    assert not (small.state / "ballast").exists()
