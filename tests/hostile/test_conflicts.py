# SPDX-License-Identifier: Apache-2.0
"""Two users who want the other's jobs, names, groups and numbers."""

import json

import pytest


@pytest.fixture
def alices(town):
    """A job of alice's on hold and one that runs."""
    held = town.submit("alice", "--hold", "--name", "shared", "true")
    runs = town.submit("alice", "--name", "shared", "sleep", "infinity")
    town.running(runs)
    yield held, runs
    town.ok("alice", "gcancel", held, runs)
    town.ended(held, runs)


@pytest.mark.parametrize("words", [
    ["gcancel"], ["gcancel", "-S", "KILL"], ["gjob", "hold"], ["gjob", "release"], ["gjob", "update", "--priority", "0"],
    ["gjob", "update", "--time-limit", "1"],
], ids=" ".join)
def test_nobody_acts_on_anothers_job(town, alices, words):
    for job in alices:
        before = town.job("root", job)
        ran = town.run("mallory", *words, job)
        assert ran.code != 0, ran
        after = town.job("root", job)
        for said in ("run_time_seconds",):
            before.pop(said), after.pop(said)
        assert before == after


def test_a_list_with_one_job_of_another_changes_none(town, alices):
    own = town.submit("mallory", "--hold", "true")
    body = json.dumps({"jobs": [own, *alices]})
    for path in ("cancel", "release", "hold"):
        status, text = town.ask("mallory", "POST", f"/api/v1/jobs/{path}", body)
        assert status == 403, text
    assert town.job("root", own)["status"] == "Hold"
    town.ok("mallory", "gcancel", own)


def test_the_same_name_and_key_are_each_ones_own(town):
    body = ('{"items":[{"spec":{"name":"same","work_dir":"/","hold":true,"request":{}},'
            '"payload":{"argv":["true"]}}]}')
    key = "Idempotency-Key: the-same\r\n"
    ids = {}
    for user in ("alice", "mallory"):
        answers = [town.ask(user, "POST", "/api/v1/jobs", body, key) for _ in range(2)]
        assert {status for status, _ in answers} <= {200, 201}
        ids[user] = {json.loads(text)["items"][0]["id"] for _, text in answers}
        assert len(ids[user]) == 1
    assert ids["alice"].isdisjoint(ids["mallory"])
    town.run("mallory", "gcancel", "--name", "same")  # her own, and it says whose the other is
    (alices,) = ids["alice"]
    assert town.job("root", alices)["status"] == "Hold"
    for user in ids:
        town.run(user, "gcancel", *ids[user])


def test_administration_is_not_for_users(town):
    for words in (["gctl", "drain", "gpu", "0", "--reason", "mine"], ["gctl", "drain", "node", "--reason", "mine"],
                  ["gflowd", "down"], ["gflowd", "reload"], ["gflowd", "restart"]):
        ran = town.run("mallory", *words, env={"GFLOW_SOCKET": "/run/gflow/gflowd.sock"})
        assert ran.code != 0, f"{words}: {ran}"
    assert "Mode: system" in town.ok("mallory", "gflowd", "status")


def test_no_name_hides_what_a_killed_supervisor_leaves(town):
    """A program called as one of gflow's, with no parent, session or variable of the job."""
    town.ok("mallory", "mkfifo", "left")
    job = town.script("mallory", """#!/bin/bash
        cp /bin/sleep gflow-shim
        (env -i setsid ./gflow-shim infinity >/dev/null 2>&1 & echo $! >left)
        exec sleep infinity
        """, "--gpus", "2")
    left = town.ok("mallory", "cat", "left").strip()
    assert town.run("root", "test", "-d", f"/proc/{left}").code == 0
    supervisor = town.ok("root", "ps", "-o", "ppid=", "-p", town.running(job)["pid"]).strip()
    town.ok("root", "kill", "-KILL", supervisor)
    assert town.gone(job)["status"] == "Lost"
    assert town.run("root", "test", "-d", f"/proc/{left}").code != 0, "its GPUs were given on while it ran"


def test_who_is_asked_of_the_kernel(town):
    """What a request says of its user is not believed."""
    body = ('{"items":[{"spec":{"name":"x","work_dir":"/","user":{"uid":0,"name":"root"},"hold":true,"request":{}},'
            '"payload":{"argv":["id","-u"]}}]}')
    status, text = town.ask("mallory", "POST", "/api/v1/jobs", body, "X-User: root\r\nAuthorization: Bearer root\r\n")
    if status == 201:
        job = json.loads(text)["items"][0]["id"]
        assert town.job("root", job)["user"]["name"] == "mallory"
        town.ok("mallory", "gcancel", job)
    else:
        assert status == 400, text
