# SPDX-License-Identifier: Apache-2.0
"""A job whose log takes every byte of the disk that gflow's own state lies on."""

import pytest
from town import STATE


@pytest.fixture
def small_town(bare_town):
    bare_town.ok("root", "sh", "-c", "mount -o remount,size=24m /var/lib; "
                                     "printf '[store]\\nballast = \"4M\"\\n' >>/etc/gflow/gflow.toml")
    bare_town.up()
    return bare_town


def test_who_fills_the_disk_can_be_stopped(small_town):
    """The daemon stays, says who it is, starts nothing it cannot write down, and obeys a cancellation."""
    pid = small_town.get("root", "/api/v1/daemon")["pid"]
    waits = small_town.submit("bob", "--gpus", "2", "--hold", "true")
    small_town.ok("mallory", "mkfifo", "full")
    job = small_town.submit("mallory", "python3", small_town.place / "syscalls.py", "fill")
    assert small_town.ok("mallory", "cat", "full") == "full\n"
    # Each of these has to be written, and cannot be: the space set aside is eaten as it is given back.
    refused = 0
    for words in [["gjob", "release", waits]] + [["gbatch", "--hold", "echo", "x" * 60_000]] * 20:
        refused += small_town.run("bob", *words).code != 0
    assert refused > 0
    assert small_town.get("bob", "/api/v1/daemon")["pid"] == pid
    status = small_town.run("root", "gflowd", "status").err
    assert f"job {job} of mallory" in status, status
    small_town.run("mallory", "gcancel", job)
    ended = small_town.gone(job)
    assert ended["status"] == "Cancelled", ended
    small_town.ok("root", "truncate", "-s", "0", f"{STATE}/logs/{job}.log")
    after = small_town.submit("bob", "--gpus", "2", "true")
    (done,) = small_town.ended(after)
    assert done["status"] == "Finished"
    assert small_town.get("root", "/api/v1/daemon")["pid"] == pid
