# SPDX-License-Identifier: Apache-2.0
"""What one user sees of another: docs/privacy.md."""

import pytest
from town import DAEMON_LOG, SOCKET, STATE, UIDS

SECRET = "swordfish"


@pytest.mark.parametrize("mask", ["000", "027", "077", "777"])
def test_the_umask_of_the_starter_changes_nothing(bare_town, mask):
    bare_town.up(before=["sh", "-c", f'umask {mask}; exec "$@"', "sh"])
    job = bare_town.script("alice", "#!/bin/sh\necho hello; umask\n", "--config", "job.sh")
    (ended,) = bare_town.ended(job)
    assert ended["status"] == "Finished", ended
    assert bare_town.log(job) == "hello\n0022\n"
    uid = UIDS["alice"]
    modes = {STATE: "0:0 711", f"{STATE}/logs": "0:0 711", f"{STATE}/attempts": "0:0 711", "/run/gflow": "0:0 755",
             SOCKET: "0:0 666", f"{STATE}/gflow.db": "0:0 600", f"{DAEMON_LOG}": "0:0 600",
             f"{STATE}/logs/{job}.log": f"{uid}:0 600"}
    assert {path: bare_town.stat(path) for path in modes} == modes
    others = bare_town.ok("root", "find", STATE, "-type", "f", "-perm", "/077")
    assert others == ""


def test_a_log_with_too_many_rights_is_mended_at_the_start(bare_town):
    bare_town.ok("root", "sh", "-c", f"mkdir -m 777 {STATE} {STATE}/logs; echo old > {DAEMON_LOG}; chmod 666 {DAEMON_LOG}")
    bare_town.up()
    assert bare_town.stat(f"{DAEMON_LOG}") == "0:0 600"
    assert bare_town.stat(STATE) == "0:0 755"
    assert bare_town.run("mallory", "sh", "-c", f"echo forged >> {DAEMON_LOG}").code != 0


def test_a_reason_has_a_public_form(town):
    """Names and states are everybody's; programs, directories, files, environment are not."""
    town.ok("alice", "mkdir", "-p", SECRET)
    env = {"SWORD": SECRET}
    jobs = [
        town.script("alice", f"#!/opt/{SECRET}/python\n", "--name", "failing", env=env),
        town.submit("alice", "--name", "queued", "--hold", "echo", SECRET, cwd=f"/home/alice/{SECRET}", env=env),
        town.submit("alice", "--name", "running", "sleep", "infinity", cwd=f"/home/alice/{SECRET}", env=env),
    ]
    town.ended(jobs[0])
    town.running(jobs[2])
    # What is open for writing cannot be run: tried again after a pause.
    program = f"/home/alice/{SECRET}/program"
    town.ok("alice", "install", "/bin/true", program)
    writer = town.start("alice", "sh", "-c", f"exec 3>>{program}; echo open; exec sleep infinity")
    assert writer.stdout.readline() == b"open\n"
    jobs.append(town.submit("alice", "--name", "again", program))
    town.until(jobs[3], lambda job: "LaunchBackoff" in job["reason"])
    seen = {}
    for user in ("alice", "root", "bob"):
        seen[user] = [town.run(user, *command).out for command in (
            ["gqueue", "-u", "all", "-a"], ["gqueue", "-u", "all", "-a", "-o", "json"], ["gqueue", "--tree", "-u", "all"],
            ["ginfo"], ["ginfo", "-o", "json"], ["gctl", "snapshot"],
            *(["gjob", what, job] for job in jobs for what in ("show", "why", "log")))]
        seen[user] += [town.ask(user, "GET", f"/api/v1/{what}")[1]
                       for what in ("jobs", "machine", "snapshot", "daemon", *(f"jobs/{job}" for job in jobs))]
    for text in seen["bob"]:
        assert SECRET not in text
    assert any("failing" in text for text in seen["bob"]), "names are public"
    mine = town.job("bob", jobs[0])
    assert mine["status"] == "Failed" and mine["reason"] == "launch failed"
    for user in ("alice", "root"):
        assert f"'/opt/{SECRET}/python': No such file" in town.job(user, jobs[0])["reason"]
        assert SECRET in town.ok(user, "gjob", "show", jobs[0])
    for words in (["log"], ["log", "-f"], ["log", "--path"]):
        refused = town.run("bob", "gjob", *words, jobs[2])
        assert refused.code == 5 and f"the log of job {jobs[2]} can be read by alice only" in refused.err, refused
    # Now and then it is tried again, and says nothing of why it waits.
    town.until(jobs[3], lambda job: "Text file busy" in job["reason"], "alice")
    town.until(jobs[3], lambda job: "its last attempt failed" in job["reason"], "bob")
    for user in seen:
        assert all("SWORD" not in text for text in seen[user]), "the environment is shown to nobody"
    town.ok("alice", "gcancel", *jobs[1:])


def test_a_client_sends_nothing_to_a_stranger(bare_town):
    """A socket of another user where gflowd is looked for: not one byte reaches it."""
    fake = "/run/shared/fake.sock"
    server = bare_town.start("mallory", "python3", f"{bare_town.place}/syscalls.py", "listen", fake)
    assert server.stdout.readline() == b"listening\n"
    ran = bare_town.run("alice", "gbatch", "echo", "x", env={"GFLOW_SOCKET": fake, "SWORD": SECRET})
    assert ran.code == 5, ran
    assert "mallory listens at /run/shared/fake.sock and is neither root nor you" in ran.err
    assert server.communicate()[0] == b"got 0 bytes\n"


def test_a_run_directory_of_another_is_refused(bare_town):
    run = "/home/alice/.local/share/gflow/run"
    bare_town.ok("alice", "mkdir", "-p", "/home/alice/.local/share/gflow")
    bare_town.ok("root", "sh", "-c", f"mkdir -m 777 {run}; chown mallory: {run}")
    ran = bare_town.run("alice", "gflowd", "up", "--devices", "none")
    assert ran.code != 0
    assert f"'{run}' belongs to mallory (uid {UIDS['mallory']})" in ran.err
    bare_town.ok("root", "rmdir", run)


def test_a_runtime_directory_of_another_is_not_used(bare_town):
    """su and sudo leave the variable of who called them."""
    bare_town.ok("root", "sh", "-c", "mkdir -m 777 /run/mallory; chown mallory: /run/mallory")
    env = {"XDG_RUNTIME_DIR": "/run/mallory"}
    bare_town.ok("alice", "gflowd", "up", "--devices", "none", env=env)
    assert "Socket: /home/alice/" in bare_town.ok("alice", "gflowd", "status", env=env)
    assert bare_town.ok("root", "ls", "/run/mallory") == ""
    bare_town.ok("alice", "gflowd", "down", env=env)


def test_what_would_be_refused_is_refused_when_it_is_only_asked(town):
    job = town.submit("alice", "sleep", "infinity")
    town.running(job)
    for words in (["--signal", "KILL"], []):
        real = town.run("bob", "gcancel", *words, job)
        asked = town.run("bob", "gcancel", "--dry-run", *words, job)
        assert asked.code == real.code != 0, (asked, real)
        assert f"job {job} belongs to alice" in asked.err and "would" not in asked.out, asked
        assert "would" in town.ok("root", "gcancel", "--dry-run", *words, job)
    town.ok("alice", "gcancel", job)


def test_who_loses_a_role_loses_what_is_being_sent(bare_town):
    """An operator follows the log of another: it ends with the role, while the job writes on."""
    toml = "/etc/gflow/gflow.toml"
    bare_town.ok("root", "sh", "-c", f"printf '[access]\\noperators = [\"bob\"]\\n' >> {toml}")
    bare_town.up()
    job = bare_town.submit("alice", "sh", "-c", "echo one; sleep infinity")
    bare_town.running(job)
    follow = ["curl", "-sN", "--unix-socket", SOCKET, f"http://gflow/api/v1/jobs/{job}/log?follow=true"]
    operator, owner = (bare_town.start(user, *follow) for user in ("bob", "alice"))
    for one in (operator, owner):
        assert one.stdout.readline() == b"one\n"
    bare_town.ok("root", "sed", "-i", "/operators/d", toml)
    bare_town.ok("root", "gctl", "config", "reload")
    assert operator.communicate()[0] == b"" and operator.returncode != 0  # cut, and not at the end
    assert bare_town.ask("bob", "GET", f"/api/v1/jobs/{job}/log")[0] == 403
    bare_town.ok("alice", "gcancel", job)
    assert owner.communicate()[0] == b"" and owner.returncode == 0
