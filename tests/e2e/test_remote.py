# SPDX-License-Identifier: Apache-2.0
"""The commands against the gflowd of another machine: added once, pinned, and asked over TLS."""

import json
import socket
import threading
from pathlib import Path

import pytest
from machine import Machine


@pytest.fixture(scope="module")
def lab():
    made = Machine("sim:2xV100+2xA100")
    made.environment |= {"GFLOW_API__TLS_LISTEN": "127.0.0.1:0"}
    try:
        made.up()
        told = made.get("/api/v1/daemon")
        made.url, made.fingerprint = told["tls_url"], told["tls_fingerprint"]
        yield made
    finally:
        made.close()


@pytest.fixture
def laptop():
    """Another person's machine, without a gflowd."""
    made = Machine()
    try:
        yield made
    finally:
        made.close()


def token_file(lab, laptop, scope="submit", name=None):
    name = name or f"{laptop.root.name}-{scope}"
    path = laptop.work / name
    path.touch(mode=0o600)
    path.write_text(lab.ok("gctl", "token", "create", name, "--scope", scope))
    return path


def added(lab, laptop, scope="submit", name="lab"):
    laptop.ok("gctl", "remote", "add", name, lab.url, "--token-file", token_file(lab, laptop, scope))


def remote_file(laptop, name="lab"):
    return laptop.home / ".config/gflow/remotes" / name


def test_the_queue_of_the_lab_is_on_the_laptop(lab, laptop):
    added(lab, laptop)
    job = lab.submit("--name", "far-away", "sleep", "1000")
    lab.running(job)
    for server in (["--server", "lab"], ["--server", lab.url]):
        assert "far-away" in laptop.ok("gqueue", *server)
        assert "V100" in laptop.ok("ginfo", *server)
    assert "far-away" in laptop.ok("gqueue", env={"GFLOW_SERVER": "lab"})
    assert json.loads(laptop.ok("gjob", "show", str(job), "--server", "lab", "--json"))["id"] == job
    me = json.loads(laptop.ok("gctl", "whoami", "--server", "lab", "--json"))
    assert (me["known_by"], me["scope"], me["role"]) == ("token", "submit", "user")
    laptop.ok("gcancel", str(job), "--server", "lab")
    assert lab.wait(job)[0]["status"] == "Cancelled"
    assert laptop.run("gqueue").code == 4  # no gflowd of its own


def test_what_is_kept_is_for_its_owner_and_secrets_are_nowhere_else(lab, laptop):
    file = token_file(lab, laptop)
    secret = file.read_text().strip()
    ran = laptop.run("gctl", "remote", "add", "lab", lab.url, "--token-file", file)
    assert ran.code == 0 and lab.fingerprint in ran.err, ran
    assert secret not in ran.out + ran.err
    kept = remote_file(laptop)
    assert kept.stat().st_mode & 0o777 == 0o600 and kept.parent.stat().st_mode & 0o077 == 0
    listed = laptop.ok("gctl", "remote", "list")
    assert lab.url in listed and lab.fingerprint in listed and secret not in listed
    kept.chmod(0o640)
    ran = laptop.run("gqueue", "--server", "lab")
    assert ran.code == 5 and "chmod 600" in ran.err, ran
    kept.chmod(0o600)
    laptop.ok("gctl", "remote", "remove", "lab")
    assert not kept.exists()
    ran = laptop.run("gqueue", "--server", "lab")
    assert ran.code == 3 and "gctl remote add" in ran.err, ran
    assert laptop.run("gqueue", "--server", lab.url).code == 3
    assert laptop.run("gctl", "remote", "remove", "lab").code == 3


def test_a_token_file_others_can_read_is_refused(lab, laptop):
    file = token_file(lab, laptop)
    file.chmod(0o644)
    ran = laptop.run("gctl", "remote", "add", "lab", lab.url, "--token-file", file)
    assert ran.code == 5 and "chmod 600" in ran.err and not remote_file(laptop).exists(), ran


def test_a_token_comes_by_stdin_too(lab, laptop):
    secret = token_file(lab, laptop).read_text()
    laptop.ok("gctl", "remote", "add", "lab", lab.url, input=secret)
    assert "known_by" in laptop.ok("gctl", "whoami", "--server", "lab", "--json")
    for wrong in ("gflow_short\n", "password\n"):
        ran = laptop.run("gctl", "remote", "add", "other", lab.url, input=wrong)
        assert ran.code == 2 and not remote_file(laptop, "other").exists(), ran
    assert laptop.run("gctl", "remote", "add", "lab", lab.url, input=secret).code == 6


def test_another_certificate_is_refused_before_anything_is_sent(lab, laptop):
    wrong = "SHA256:" + "0" * 64
    ran = laptop.run("gctl", "remote", "add", "lab", lab.url, "--fingerprint", wrong, input="\n")
    assert ran.code == 5 and not remote_file(laptop).exists(), ran
    added(lab, laptop)
    kept = remote_file(laptop)
    kept.write_text(kept.read_text().replace(lab.fingerprint, wrong))
    ran = laptop.run("gqueue", "--server", "lab")
    assert ran.code == 5 and "gctl remote remove lab" in ran.err, ran
    assert lab.fingerprint in ran.err and wrong in ran.err


def test_a_certificate_made_anew_is_noticed(laptop):
    lab = Machine()
    try:
        lab.environment["GFLOW_API__TLS_LISTEN"] = "127.0.0.1:0"
        lab.up()
        lab.url = lab.get("/api/v1/daemon")["tls_url"]
        added(lab, laptop)
        lab.down()
        (lab.state / "tls.key").unlink()
        lab.environment["GFLOW_API__TLS_LISTEN"] = lab.url.removeprefix("https://")
        lab.up()
        ran = laptop.run("gqueue", "--server", "lab")
        assert ran.code == 5 and "another one" in ran.err, ran
    finally:
        lab.close()


def test_a_scope_and_a_revoked_token_are_told(lab, laptop):
    added(lab, laptop, "read")
    ran = laptop.run("gcancel", "1", "--server", "lab")
    assert ran.code == 5 and "--scope submit" in ran.err, ran
    lab.ok("gctl", "token", "revoke", f"{laptop.root.name}-read")
    ran = laptop.run("gqueue", "--server", "lab")
    assert ran.code == 5 and "revoked" in ran.err, ran


@pytest.mark.parametrize("url", ["http://lab1:8000", "lab1:8000", "https://", "https://lab1:0", "https://lab1:99999", "https://a b", "https://u@lab1"])
def test_what_is_no_url_is_refused(laptop, url):
    ran = laptop.run("gctl", "remote", "add", "lab", url, input="\n")
    assert ran.code == 2, ran


@pytest.mark.parametrize("name", ["../x", ".hidden", "a/b", "", "x" * 65])
def test_what_is_no_name_is_refused(laptop, name):
    ran = laptop.run("gctl", "remote", "add", name, "https://lab1", input="\n")
    assert ran.code == 2, ran


def test_nobody_there_and_no_tls_there_are_told(laptop):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ran = laptop.run("gctl", "remote", "add", "lab", f"https://127.0.0.1:{port}", input="\n")
    assert ran.code == 4 and "does not answer" in ran.err, ran
    with socket.create_server(("127.0.0.1", 0)) as plain:
        def answer():
            connection, _ = plain.accept()
            connection.recv(10)
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            connection.close()

        thread = threading.Thread(target=answer)
        thread.start()
        ran = laptop.run("gctl", "remote", "add", "lab", f"https://127.0.0.1:{plain.getsockname()[1]}", input="\n")
        thread.join()
        assert ran.code == 4 and "TLS" in ran.err, ran


def test_a_job_is_submitted_where_it_runs(lab, laptop):
    added(lab, laptop)
    ran = laptop.run("gbatch", "--server", "lab", "true")
    assert ran.code == 2 and "log in there" in ran.err, ran
    assert laptop.run("galloc", "--server", "lab", "true").code == 2
    assert Path(laptop.work).exists() and lab.get("/api/v1/jobs")["jobs"] is not None
