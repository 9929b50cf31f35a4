# SPDX-License-Identifier: Apache-2.0
"""Logs of jobs over REST, where gflowd is root and its users are not each other's friends."""

from town import STATE


def log_of(town, user, job, query=""):
    return town.ask(user, "GET", f"/api/v1/jobs/{job}/log{query}")


def test_a_log_is_for_its_owner_and_who_looks_after_all(town):
    job = town.submit("alice", "echo swordfish")
    town.ended(job)
    for query in ("", "?tail=1", "?follow=true"):
        for user in ("alice", "root"):
            status, text = log_of(town, user, job, query)
            assert (status, "swordfish" in text) == (200, True), (user, query, text)
        for user in ("bob", "mallory"):
            status, text = log_of(town, user, job, query)
            assert (status, "swordfish" in text) == (403, False), (user, query, text)


def test_a_link_in_place_of_a_log_is_not_followed(town):
    job = town.submit("alice", "echo hello")
    town.ended(job)
    log = f"{STATE}/logs/{job}.log"
    for target, how in (("/etc/shadow", "-s"), ("/etc/shadow", ""), (f"{STATE}/gflow.db", "-s")):
        # No user can do this: the directory is root's. If one ever could, it must not help.
        town.run("root", "rm", "-f", log)
        made = town.run("root", "sh", "-c", f"ln {how} {target} {log} || cp {target} {log}")
        assert made.code == 0, made
        for user in ("alice", "root"):
            for query in ("", "?tail=3", "?follow=true"):
                status, text = log_of(town, user, job, query)
                assert status >= 400 and "root:" not in text, (target, how, user, query, text)


def test_a_user_cannot_make_the_log_of_a_job_another_file(town):
    job = town.submit("mallory", "echo x; rm -f $GFLOW_LOG_FILE; ln -sf /etc/shadow $GFLOW_LOG_FILE; echo y")
    town.ended(job)
    status, text = log_of(town, "mallory", job)
    assert status == 200 and text.endswith("y\n") and "root:" not in text


def test_a_lease_on_a_log_makes_nobody_wait(town):
    """Whoever opens a file with a lease on it waits until the lease is given back."""
    job = town.submit("mallory", "echo x")
    town.ended(job)
    holder = town.start("mallory", "python3", "-c", f"""
import fcntl, os, signal, time
signal.signal(signal.SIGIO, signal.SIG_IGN)
log = os.open("{STATE}/logs/{job}.log", os.O_RDWR)
fcntl.fcntl(log, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print("held", flush=True)
signal.pause()
""")
    assert holder.stdout.readline() == b"held\n"
    try:
        status, _ = log_of(town, "mallory", job)
        assert status >= 400
        other = town.submit("alice", "echo mine")
        town.ended(other)
        assert log_of(town, "alice", other)[1].endswith("mine\n")
    finally:
        holder.kill()
        holder.wait()
