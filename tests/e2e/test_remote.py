# SPDX-License-Identifier: Apache-2.0
"""The commands against the gflowd of another machine: added once, pinned, and asked over TLS."""

import json
import os
import re
import select
import signal
import socket
import socketserver
import ssl
import subprocess
import threading
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from machine import PATIENCE, Gate, Machine, kill, processes_with


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
    document = laptop.ok("gctl", "remote", "list", "--json")
    assert json.loads(document) == {"apiVersion": "gflow/v1", "kind": "Remotes", "remotes": [
        {"name": "lab", "url": lab.url, "has_token": True, "fingerprint": lab.fingerprint}]} and secret not in document
    kept.chmod(0o640)
    ran = laptop.run("gqueue", "--server", "lab")
    assert ran.code == 5 and "chmod 600" in ran.err, ran
    kept.chmod(0o600)
    assert json.loads(laptop.ok("gctl", "remote", "remove", "lab", "--json"))["remotes"] == []
    assert not kept.exists()
    ran = laptop.run("gqueue", "--server", "lab")
    assert ran.code == 3 and "gctl remote add" in ran.err, ran
    assert laptop.run("gqueue", "--server", lab.url).code == 3
    assert laptop.run("gctl", "remote", "remove", "lab").code == 3


def test_a_token_file_others_can_read_is_refused(lab, laptop):
    """Before anything is said to be pinned."""
    file = token_file(lab, laptop)
    file.chmod(0o644)
    ran = laptop.run("gctl", "remote", "add", "lab", lab.url, "--token-file", file)
    assert ran.code == 5 and "chmod 600" in ran.err and not remote_file(laptop).exists(), ran
    assert "pinned" not in ran.err, ran


def test_a_token_comes_by_stdin_too(lab, laptop):
    secret = token_file(lab, laptop).read_text()
    laptop.ok("gctl", "remote", "add", "lab", lab.url, input=secret)
    assert "known_by" in laptop.ok("gctl", "whoami", "--server", "lab", "--json")
    for wrong in ("gflow_short\n", "password\n"):
        ran = laptop.run("gctl", "remote", "add", "other", lab.url, input=wrong)
        assert ran.code == 2 and not remote_file(laptop, "other").exists(), ran
    assert laptop.run("gctl", "remote", "add", "lab", lab.url, input=secret).code == 6


@contextmanager
def stranger(tmp_path, answer):
    """The URL of a server with TLS that is no gflowd: whatever it is asked, it answers so."""
    made = [tmp_path / "key", tmp_path / "certificate"]
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1",
         "-subj", "/CN=elsewhere", "-keyout", made[0], "-out", made[1]], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made[1], made[0])

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            with suppress(OSError), context.wrap_socket(self.request, server_side=True) as connection:
                while connection.recv(65536):
                    connection.sendall(answer)

    with Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"https://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()


def http_answer(status, body, *lines):
    return "\r\n".join([f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *lines, "", body]).encode()


@pytest.mark.parametrize("answer", [
    http_answer("200 OK", "{}"), http_answer("200 OK", "<html>hello</html>"), b"SSH-2.0-OpenSSH_9.2\r\n",
    http_answer("302 Found", "", "Location: http://127.0.0.1/"), http_answer("404 Not Found", "nothing here")])
@pytest.mark.parametrize("secret", ["gflow_" + "0" * 64, ""])
def test_what_is_no_gflowd_is_not_added(laptop, tmp_path, answer, secret):
    with stranger(tmp_path, answer) as url:
        ran = laptop.run("gctl", "remote", "add", "lab", url, input=secret + "\n")
        assert ran.code in (1, 3) and "nothing was added" in ran.err and "--help" not in ran.err, ran
        assert not remote_file(laptop).exists()


def test_a_token_that_is_nobodys_is_told_when_it_is_added(lab, laptop):
    file = token_file(lab, laptop)
    lab.ok("gctl", "token", "revoke", file.name)
    ran = laptop.run("gctl", "remote", "add", "lab", lab.url, "--token-file", file)
    assert ran.code == 5 and "revoked; nothing was added" in ran.err and not remote_file(laptop).exists(), ran


def test_who_answers_otherwise_later_is_not_said_to_be_typed_wrong(lab, laptop, tmp_path):
    added(lab, laptop)
    kept = remote_file(laptop)
    with stranger(tmp_path, http_answer("200 OK", "{}")) as url:
        ran = laptop.run("gctl", "remote", "add", "stranger", url, input="\n")
        fingerprint = re.search("SHA256:[0-9a-f]{64}", ran.err)[0]
        kept.write_text(kept.read_text().replace(lab.fingerprint, fingerprint).replace(lab.url, url))
        for command in (["gqueue"], ["ginfo"], ["gctl", "token", "list"]):
            ran = laptop.run(*command, "--server", "lab")
            assert ran.code == 1 and "what answers is no gflowd that this program knows: " in ran.err and "--help" not in ran.err, ran


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


# -- what is about a machine is done on it -----------------------------------------------------------------------------


@pytest.mark.parametrize(("words", "way_out"), [
    (["gbatch", "true"], "log in there"),
    (["galloc", "true"], "/api/v1/gpu/allocate"),
    (["gflow", "doctor"], "log in there"),
    (["gctl", "token", "create", "more"], "tokens are made on the machine itself"),
    (["gflow", "doctor", "--recover"], "log in there"),
    (["gctl", "config", "set", "scheduler.max_queued", "7"], "gctl config set scheduler.max_queued 7"),
    (["gctl", "config", "set", "access.operators", "bob, @ops"], "gctl config set access.operators 'bob, @ops'"),
    (["gctl", "config", "unset", "max_queued"], "gctl config unset scheduler.max_queued"),
    (["gctl", "config", "check"], "name a FILE"),
])
def test_what_is_about_this_machine_is_refused_for_another(lab, laptop, words, way_out):
    added(lab, laptop, "admin")
    before = lab.get("/api/v1/settings")
    program, *rest = words
    for env, server in (({}, ["--server", "lab"]), ({"GFLOW_SERVER": "lab"}, [])):
        command = [program, *server, *rest] if program in ("gbatch", "galloc") else [*words, *server]
        ran = laptop.run(*command, env=env)
        assert ran.code == 2 and way_out in ran.err and "(lab)" in ran.err and ran.out == "", ran
    # Neither the one nor the other machine has changed.
    assert not (laptop.home / ".config/gflow/gflow.toml").exists() and not laptop.state.exists()
    assert lab.get("/api/v1/settings") == before and not (lab.home / ".config/gflow/gflow.toml").exists()


def test_a_configuration_is_read_again_there(lab, laptop):
    added(lab, laptop, "admin")
    lab.config("[scheduler]\nmax_queued = 4711\n")
    try:
        assert laptop.ok("gctl", "config", "reload", "--server", "lab") == "configuration reloaded\n"
        shown = laptop.ok("gctl", "config", "show", "scheduler.max_queued", "--server", "lab")
        assert "4711" in shown
    finally:
        (lab.home / ".config/gflow/gflow.toml").unlink()
        laptop.ok("gctl", "config", "reload", "--server", "lab")
    added(lab, laptop, "operate", "less")
    assert laptop.run("gctl", "config", "reload", "--server", "less").code == 5
    # A file that is named is one of the laptop.
    file = laptop.work / "new.toml"
    file.write_text("[scheduler]\nmax_queued = -1\n")
    assert laptop.run("gctl", "config", "check", file, "--server", "lab").code == 1


def test_remotes_are_added_also_where_one_is_the_usual_server(lab, laptop):
    secret = token_file(lab, laptop).read_text()
    laptop.ok("gctl", "remote", "add", "lab", lab.url, input=secret, env={"GFLOW_SERVER": "lab"})
    assert lab.url in laptop.ok("gctl", "remote", "list", env={"GFLOW_SERVER": "gone"})
    assert laptop.run("gctl", "remote", "list", "--server", "lab").code == 2


def test_a_server_that_is_not_known_is_told_by_what_asks_it(lab, laptop):
    nowhere = {"GFLOW_SERVER": "nowhere"}
    ran = laptop.run("gqueue", env=nowhere)
    assert ran.code == 3 and "'nowhere' is not known here" in ran.err, ran
    laptop.ok("gflow", "spec", "2", env=nowhere)
    secret = token_file(lab, laptop).read_text()
    laptop.ok("gctl", "remote", "add", "nowhere", lab.url, input=secret, env=nowhere)
    laptop.ok("gqueue", env=nowhere)


def test_each_name_of_a_url_has_its_own_token(lab, laptop):
    added(lab, laptop, "read", "aaa")
    added(lab, laptop, "submit", "lab")
    ran = laptop.run("gqueue", "--server", lab.url)
    assert ran.code == 2 and "'aaa' and 'lab'" in ran.err, ran
    held = lab.submit("--hold", "true")
    laptop.ok("gcancel", str(held), "--server", "lab")
    # One that others can read spoils itself only.
    remote_file(laptop, "aaa").chmod(0o644)
    laptop.ok("gqueue", "--server", "lab")
    laptop.ok("gqueue", "--server", lab.url)
    listed = laptop.run("gctl", "remote", "list")
    assert listed.code == 0 and lab.url in listed.out and "aaa" in listed.err, listed


def test_a_fingerprint_is_taken_as_openssl_writes_it(lab, laptop):
    digits = lab.fingerprint.removeprefix("SHA256:").upper()
    written = "sha256 Fingerprint=" + ":".join(digits[i : i + 2] for i in range(0, len(digits), 2))
    add = ["gctl", "remote", "add", "lab", lab.url, "--token-file", token_file(lab, laptop), "--fingerprint"]
    wrong = written.replace(digits[-2:], f"{int(digits[-2:], 16) ^ 1:02X}")
    assert laptop.run(*add, wrong).code == 5
    assert laptop.run(*add, "SHA256:12").code == 2
    laptop.ok(*add, written)


def test_me_is_whom_the_token_is_of(lab, laptop):
    """Of an account here of another name."""
    added(lab, laptop)
    me = json.loads(laptop.ok("gctl", "whoami", "--server", "lab", "--json"))["name"]
    as_another = ["unshare", "--user", "--map-user=4711", "--map-group=4711"]
    if laptop.run(*as_another, "true").code != 0:
        pytest.skip("no user namespaces here")
    assert laptop.run(*as_another, "id", "-un").out != f"{me}\n"
    mine, other = lab.submit("--hold", "--name", "of-mine", "true"), lab.submit("--hold", "true")
    listed = laptop.ok(*as_another, "gqueue", "--me", "--server", "lab", "-f", "JOBID")
    assert {str(mine), str(other)} <= set(listed.split())
    ran = laptop.run(*as_another, "gcancel", "--me", "--names", "of-mine", "--server", "lab")
    assert ran.code == 0 and lab.wait(mine)[0]["status"] == "Cancelled", ran
    assert lab.job(other)["status"] == "Hold"
    lab.ok("gcancel", str(other))


# -- the log of a job there --------------------------------------------------------------------------------------------


def test_a_log_is_shown_from_there(lab, laptop):
    added(lab, laptop)
    job = lab.submit("bash", "-c", "for i in $(seq 30000); do echo line $i; done; printf '\\377end'")
    lab.wait(job)
    whole = (lab.logs / f"{job}.log").read_bytes()
    assert len(whole) > 300_000

    def shown(*words):
        ran = subprocess.run(["gjob", "log", str(job), "--server", "lab", *words], capture_output=True, check=True,
                             env=laptop.environment, timeout=PATIENCE)
        assert ran.stderr == b""
        return ran.stdout

    lines = whole.splitlines(keepends=True)
    assert shown() == whole and shown("--follow") == whole
    assert shown("--first", "3") == b"line 1\nline 2\nline 3\n" and shown("--first", "0") == b""
    assert shown("--first", "99999") == whole
    for count in (0, 1, 2, 20_000, 99_999):
        last = b"".join(lines[len(lines) - min(count, len(lines)):])
        assert shown("--last", str(count)) == last
        assert shown("--last", str(count), "--follow") == last
    assert shown("--path").decode().strip() == str(lab.logs / f"{job}.log")
    assert shown("--follow") == whole


def test_a_log_that_is_empty_or_not_there(lab, laptop):
    added(lab, laptop)
    empty = lab.submit("true")
    lab.wait(empty)
    for words in ([], ["--last", "3"], ["--first", "3"], ["--follow"], ["--follow", "--last", "3"]):
        assert laptop.ok("gjob", "log", str(empty), "--server", "lab", *words) == ""
    held = lab.submit("--hold", "true")
    ran = laptop.run("gjob", "log", str(held), "--server", "lab")
    assert ran.code == 3 and "has not started" in ran.err, ran
    ran = laptop.run("gjob", "log", "999999", "--follow", "--server", "lab")
    assert ran.code == 3 and "999999" in ran.err, ran
    lab.ok("gcancel", str(held))
    assert laptop.ok("gjob", "log", str(held), "--server", "lab", "--follow") == ""


class Following:
    """'gjob log --follow' from a laptop, read as it comes."""

    def __init__(self, laptop, job, *words):
        self.process = subprocess.Popen(
            ["gjob", "log", "--follow", str(job), "--server", "lab", *words],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=laptop.environment)
        self.out = b""

    def until(self, text):
        while text not in self.out:
            assert select.select([self.process.stdout], [], [], PATIENCE)[0], self.out
            chunk = os.read(self.process.stdout.fileno(), 65536)
            assert chunk, self.out
            self.out += chunk

    def end(self):
        rest, err = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, self.out + rest, err.decode()


def test_a_log_is_followed_from_before_it_is_there(lab, laptop):
    added(lab, laptop)
    gate = Gate(lab)
    job = lab.submit("--hold", "bash", "-c", f"echo one; echo two; {gate.command}; echo three")
    whole = Following(laptop, job)
    lab.ok("gjob", "release", str(job))
    gate.reached()
    whole.until(b"two\n")
    last = Following(laptop, job, "--last", "1")
    last.until(b"two\n")
    gate.open()
    assert whole.end() == (0, b"one\ntwo\nthree\n", "")
    assert last.end() == (0, b"two\nthree\n", "")


def test_ctrl_c_and_a_reader_that_leaves_end_it(lab, laptop):
    added(lab, laptop)
    job = lab.submit("bash", "-c", "echo here; sleep 1000")
    followed = Following(laptop, job)
    followed.until(b"here\n")
    followed.process.send_signal(signal.SIGINT)
    code, out, err = followed.end()
    assert (code, out) == (-signal.SIGINT, b"here\n"), err
    assert laptop.bash(f"gjob log -f {job} --server lab | head -n 1") == "here\n"
    # Also gflow-tls, which carries it, is gone.
    for pid in processes_with(str(laptop.root)):
        assert select.select([os.pidfd_open(pid)], [], [], PATIENCE)[0]
    lab.ok("gcancel", str(job))


def tunnels(laptop):
    """The processes of gflow-tls that carry for a laptop."""
    return [pid for pid in processes_with(str(laptop.root))
            if Path(f"/proc/{pid}/comm").read_text() == "gflow-tls\n"]


def test_a_connection_that_is_cut_goes_on_where_it_was(lab, laptop):
    added(lab, laptop)
    gates = [Gate(lab, name) for name in ("cut", "gone")]
    job = lab.submit("bash", "-c", f"echo one; {gates[0].command}; echo two; {gates[1].command}; echo three")
    gates[0].reached()
    followed = Following(laptop, job)
    followed.until(b"one\n")
    [tunnel] = tunnels(laptop)
    kill(tunnel)
    gates[0].open()
    followed.until(b"two\n")
    gates[1].reached()
    # Its gflowd ends, and comes back where it was.
    lab.environment["GFLOW_API__TLS_LISTEN"] = lab.url.removeprefix("https://")
    lab.kill_daemon()
    lab.up()
    gates[1].open()
    code, out, err = followed.end()
    assert (code, out) == (0, b"one\ntwo\nthree\n"), err
    assert "the connection was lost; continuing at byte 4" in err and "continuing at byte 8" in err, err


def test_the_log_of_another_is_theirs(lab, laptop):
    added(lab, laptop, "read")
    job = lab.submit("bash", "-c", "echo secret")
    lab.wait(job)
    assert laptop.ok("gjob", "log", str(job), "--server", "lab") == "secret\n"  # one's own, with the least scope
    lab.ok("gctl", "token", "revoke", f"{laptop.root.name}-read")
    ran = laptop.run("gjob", "log", str(job), "--server", "lab")
    assert ran.code == 5 and ran.out == "" and "revoked" in ran.err, ran
