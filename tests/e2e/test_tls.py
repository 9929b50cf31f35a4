# SPDX-License-Identifier: Apache-2.0
"""From another machine: TLS of today only, nobody without a token or a certificate, nobody held up by who is slow."""

import http.client
import json
import os
import pwd
import re
import select
import shutil
import socket
import ssl
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from machine import PATIENCE, Machine, as_no_root


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    """A CA, and certificates of root's, nobody's and of an account there is not; one of another CA, and for other uses."""
    place = tmp_path_factory.mktemp("ca")

    def run(*words):
        subprocess.run(["openssl", *words], cwd=place, check=True, capture_output=True)  # noqa: S603, S607

    for name in ("ca", "other-ca"):
        run("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
            "-keyout", f"{name}.key", "-out", f"{name}.crt", "-subj", f"/CN={name}")

    def issue(file, subject, ca="ca", use="extendedKeyUsage=clientAuth\n"):
        (place / f"{file}.ext").write_text(use)
        run("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{file}.key",
            "-out", f"{file}.csr", "-subj", subject)
        run("x509", "-req", "-in", f"{file}.csr", "-CA", f"{ca}.crt", "-CAkey", f"{ca}.key", "-CAcreateserial",
            "-days", "2", "-out", f"{file}.crt", "-extfile", f"{file}.ext")

    issue("root", "/CN=root")
    issue("daemon", "/CN=daemon")
    issue("me", f"/CN={pwd.getpwuid(os.geteuid()).pw_name}")
    issue("stranger", "/CN=no-such-account")
    issue("two", "/CN=daemon/CN=root")
    issue("foreign", "/CN=daemon", "other-ca")
    issue("both", "/CN=daemon", use="extendedKeyUsage=serverAuth,clientAuth\n")
    issue("any", "/CN=daemon", use="extendedKeyUsage=anyExtendedKeyUsage\n")
    issue("unsaid", "/CN=daemon", use="")
    issue("server", "/CN=daemon", use="extendedKeyUsage=serverAuth\n")
    issue("mail", "/CN=daemon", use="extendedKeyUsage=emailProtection,timeStamping\n")
    issue("any-but-signs-nothing", "/CN=daemon", use="extendedKeyUsage=anyExtendedKeyUsage\nkeyUsage=keyEncipherment\n")
    issue("unsaid-but-signs-nothing", "/CN=daemon", use="keyUsage=keyEncipherment\n")
    issue("any-foreign", "/CN=daemon", "other-ca", use="extendedKeyUsage=anyExtendedKeyUsage\n")
    return place


def find(machine):
    """Where it is reached, and by which certificate."""
    told = machine.get("/api/v1/daemon")
    machine.place = told["tls_url"].removeprefix("https://").split(":")[0], int(told["tls_url"].rsplit(":", 1)[1])
    machine.fingerprint = told["tls_fingerprint"]


@pytest.fixture(scope="module")
def served(authority):
    made = Machine("sim:2xV100+2xA100")
    made.environment |= {
        "GFLOW_API__TLS_LISTEN": "127.0.0.1:0",
        "GFLOW_API__CLIENT_CA": str(authority / "ca.crt"),
        "GFLOW_API__HOST_NAMES": "lab1.example.org",
    }
    try:
        made.up()
        find(made)
        made.tokens = {s: made.ok("gctl", "token", "create", s, "--scope", s).strip() for s in ("read", "submit", "admin")}
        yield made
    finally:
        made.close()


def context_of(machine, certificate=None):
    context = ssl.create_default_context(cafile=machine.state / "tls.crt")
    context.check_hostname = False
    if certificate:
        context.load_cert_chain(f"{certificate}.crt", f"{certificate}.key")
    return context


def ask(machine, method, path, body=None, token=None, certificate=None, **headers):
    connection = http.client.HTTPSConnection(*machine.place, context=context_of(machine, certificate), timeout=PATIENCE)
    if token:
        headers["Authorization"] = f"Bearer {token}"
    if body is not None:
        headers["Content-Type"] = "application/json"
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, answer.read(), answer.headers
    finally:
        connection.close()


def test_its_own_certificate_is_kept_and_told(served):
    pem = (served.state / "tls.crt").read_text()
    digest = subprocess.run(["openssl", "x509", "-noout", "-fingerprint", "-sha256"], input=pem.encode(),  # noqa: S607
                            capture_output=True, check=True).stdout.decode()
    assert digest.split("=")[1].strip().replace(":", "").lower() == served.fingerprint.removeprefix("SHA256:")
    assert (served.state / "tls.key").stat().st_mode & 0o777 == 0o600
    text = subprocess.run(["openssl", "x509", "-noout", "-text"], input=pem.encode(), capture_output=True,  # noqa: S607
                          check=True).stdout.decode()
    assert "ecdsa-with-SHA256" in text and "prime256v1" in text and "CA:FALSE" in text
    status = served.ok("gflowd", "status")
    assert served.fingerprint in status and "https://127.0.0.1:" in status
    ends = subprocess.run(["openssl", "x509", "-noout", "-enddate", "-dateopt", "iso_8601"], input=pem.encode(),  # noqa: S607
                          capture_output=True, check=True).stdout.decode().split("=")[1].strip()
    told = served.get("/api/v1/daemon")["tls_expires"]
    assert told.replace("T", " ").split(".")[0].rstrip("Z") == ends.rstrip("Z"), (told, ends)
    checks = {check["name"]: check for check in json.loads(served.run("gflow", "doctor", "--json").out)["checks"]}
    assert checks["TLS"]["level"] == "ok" and served.fingerprint in checks["TLS"]["text"] and told in checks["TLS"]["text"]
    assert checks["socket"]["text"] == str(served.socket) and checks["API"]["level"] == "ok"
    assert checks["tokens"]["level"] == "ok", checks["tokens"]
    served.ok("gctl", "token", "create", "--expires", "never", "endless")
    checks = {check["name"]: check for check in json.loads(served.run("gflow", "doctor", "--json").out)["checks"]}
    assert checks["tokens"]["level"] == "warn" and "endless" in checks["tokens"]["text"], checks["tokens"]
    served.ok("gflowd", "restart")
    told = served.get("/api/v1/daemon")
    assert told["tls_fingerprint"] == served.fingerprint
    served.place = "127.0.0.1", int(told["tls_url"].rsplit(":", 1)[1])


def test_without_identity_there_is_nothing_but_health(served):
    assert ask(served, "GET", "/healthz")[0] == 200
    for path in ("/api/v1/jobs", "/metrics", "/api/v1/openapi.json", "/api/v1/principal", "/nothing"):
        status, _, headers = ask(served, "GET", path)
        assert status == 401 and headers["WWW-Authenticate"].startswith("Bearer"), path
    assert ask(served, "POST", "/healthz", {})[0] == 401
    assert ask(served, "GET", "/api/v1/jobs", token="gflow_" + "1" * 64)[0] == 401
    # Nor is it asked of who shows one: a token that is none is no failed try there.
    for path in ("/healthz", "/readyz") * 8:
        assert ask(served, "GET", path, token="gflow_" + "1" * 64)[0] == 200, path
    assert ask(served, "GET", "/api/v1/jobs", token=served.tokens["read"])[0] == 200


def test_a_token_is_its_owner_within_its_scope(served):
    me = json.loads(ask(served, "GET", "/api/v1/principal", token=served.tokens["submit"])[1])
    assert (me["known_by"], me["role"], me["credential"]) == ("token", "user", "submit")
    assert ask(served, "POST", "/api/v1/gpu/allocate", {}, token=served.tokens["read"])[0] == 403
    assert ask(served, "POST", "/api/v1/daemon/reload", token=served.tokens["submit"])[0] == 403
    assert ask(served, "POST", "/api/v1/daemon/reload", token=served.tokens["admin"])[0] == 204
    log = (served.logs / "gpu_resource_manager.log").read_text()
    assert "(token 'admin') from 127.0.0.1:" in log and served.tokens["admin"] not in log


def test_it_goes_by_the_names_it_has(served):
    port = served.place[1]
    token = served.tokens["read"]
    for host in (f"lab1.example.org:{port}", "LAB1.example.org", "10.1.2.3", "[fe80::1]:8443", socket.gethostname(), "localhost"):
        assert ask(served, "GET", "/api/v1/jobs", token=token, Host=host)[0] == 200, host
        assert f"curl &#39;https://{host}/version&#39;" in ask(served, "GET", "/docs", token=token, Host=host)[1].decode(), host
    for host in ("evil.example", "lab1.example.org.evil.example", "10.1.2.3.evil.example"):
        assert ask(served, "GET", "/api/v1/jobs", token=token, Host=host)[0] == 421, host
    assert ask(served, "GET", "/api/v1/jobs", token=token, Host="")[0] == 400
    assert ask(served, "GET", "/api/v1/jobs", token=token, Origin="https://lab1.example.org")[0] == 403


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: accounts other than one's own are served in system mode only")
def test_a_certificate_names_an_account(served, authority):
    # In user mode only the own account and root may come, and root not this way.
    for name, why in (("daemon", b"serves only the user"), ("root", b"no account"), ("stranger", b"no account")):
        status, body, _ = ask(served, "GET", "/api/v1/principal", certificate=authority / name)
        assert status == 401 and why in body, (name, body)
    status, body, _ = ask(served, "GET", "/api/v1/principal", certificate=authority / "two")
    assert status == 401 and b"a token is needed" in body
    # With a token it is who the token says.
    assert ask(served, "GET", "/api/v1/principal", certificate=authority / "daemon", token=served.tokens["read"])[0] == 200


def test_a_certificate_of_the_own_account_is_that_account(bare, authority):
    """Its name in the log, its rights, and no token made with it."""
    shutil.copy(authority / "ca.crt", bare.work)
    account, name = as_no_root(bare)
    bare.environment |= {"GFLOW_API__TLS_LISTEN": "127.0.0.1:0", "GFLOW_API__CLIENT_CA": str(bare.work / "ca.crt")}
    bare.ok(*account, "gflowd", "up", "--devices", bare.devices)
    find(bare)
    for certificate in [authority / which for which in (["any", "unsaid", "daemon"] if account else ["me"])]:
        status, body, _ = ask(bare, "GET", "/api/v1/principal", certificate=certificate)
        me = json.loads(body)
        assert (status, me["name"], me["known_by"], me["credential"], me["role"]) == (200, name, "certificate", name, "administrator")
    job = {"spec": {"name": "far", "work_dir": "/", "hold": True, "command": "true"}, "payload": {"argv": ["true"]}}
    status, body, _ = ask(bare, "POST", "/api/v1/jobs", {"items": [job]}, certificate=certificate)
    assert status == 201 and json.loads(body)["items"][0]["id"] == 1, body
    assert ask(bare, "POST", "/api/v1/tokens", {"name": "x"}, certificate=certificate)[0] == 403
    assert ask(bare, "GET", "/healthz")[0] == 200  # after those the log is written
    log = (bare.logs / "gpu_resource_manager.log").read_text()
    assert re.search(rf"audit: request [0-9a-f]+: {name} \(certificate '{name}'\) from 127\.0\.0\.1:\d+: POST /api/v1/jobs: 201", log), log
    assert re.search(rf"POST /api/v1/tokens of {name} \(certificate '{name}'\), 127\.0\.0\.1:\d+, over TLS: 403", log), log


def test_certificates_that_are_not_taken_are_counted_and_written(authority):
    made = Machine()
    made.environment |= {"GFLOW_API__TLS_LISTEN": "127.0.0.1:0", "GFLOW_API__CLIENT_CA": str(authority / "ca.crt")}
    try:
        made.up()
        find(made)
        answers = [ask(made, "GET", "/api/v1/jobs", certificate=authority / "stranger") for _ in range(12)]
        assert [status for status, _, _ in answers] == [401] * 10 + [429] * 2
        assert len(answers[-1][2].get_all("Retry-After")) == 1
        lines = [line for line in (made.logs / "gpu_resource_manager.log").read_text().splitlines() if " audit: " in line]
        assert len(lines) == 11 and "no-such-account" in lines[0] and "too many failed tries" in lines[-1], lines
    finally:
        made.close()


def test_what_is_refused_is_in_the_log_with_where_it_came_from(served):
    assert ask(served, "GET", "/nowhere", token=served.tokens["read"], **{"X-Request-Id": "with-a-token"})[0] == 404
    assert ask(served, "GET", "/nowhere", **{"X-Request-Id": "with-nothing"})[0] == 401
    served.get("/api/v1/daemon")  # after those the log is written
    log = (served.logs / "gpu_resource_manager.log").read_text()
    assert re.search(r"request with-a-token: GET /nowhere of \S+ \(token 'read'\), 127\.0\.0\.1:\d+, over TLS: 404", log), log
    assert re.search(r"request with-nothing: GET /nowhere of 127\.0\.0\.1:\d+ over TLS: 401", log), log


@pytest.mark.parametrize("shown", ["", "Authorization: Bearer gflow_" + "2" * 64 + "\r\n", "Authorization: Basic eDp5\r\n"])
@pytest.mark.parametrize("length", ["Content-Length: 16000000", "Content-Length: 65537", "Transfer-Encoding: chunked"])
def test_nobody_has_a_large_request_read(served, shown, length):
    """The answer is there before a byte of it was sent."""
    context = context_of(served)
    for path in ("/api/v1/jobs", "/healthz", "/nowhere"):
        with context.wrap_socket(socket.create_connection(served.place, timeout=PATIENCE)) as client:
            client.sendall(f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{shown}{length}\r\n\r\n".encode())
            answer = http.client.HTTPResponse(client)
            answer.begin()
            assert answer.status in (401, 429) and answer.headers["Connection"] == "close", path
    with context.wrap_socket(socket.create_connection(served.place, timeout=PATIENCE)) as client:
        client.sendall(f"POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {served.tokens['submit']}\r\n"
                       f"Expect: 100-continue\r\n{length}\r\n\r\n".encode())
        assert client.recv(100).startswith(b"HTTP/1.1 100")  # of who is known it is


class Bodies:
    """Large requests of an account of this machine, begun and not ended, each from another of its addresses."""

    PROGRAM = r"""
import socket, ssl, sys
host, port, token = sys.argv[1:]
context = ssl.create_default_context()
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
kept = []
for number, line in enumerate(sys.stdin):
    if line == "end\n":
        kept.pop(0).close()
        continue
    plain = socket.create_connection((host, int(port)), source_address=(f"127.0.{number}.2", 0))
    one = context.wrap_socket(plain)
    one.sendall(f"POST /api/v1/jobs/check HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
                "Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n".encode())
    answer = one.recv(4096)
    while not answer.startswith(b"HTTP/1.1 100") and b"}" not in answer:
        answer += one.recv(4096)
    print(answer.decode().replace("\r", "").replace("\n", " "), flush=True)
    kept.append(one)
"""

    def __init__(self, machine, account=None):
        become = ["setpriv", "--reuid", account, "--regid", account, "--clear-groups"] if account else []
        words = [sys.executable, "-c", self.PROGRAM, machine.place[0], str(machine.place[1]), machine.tokens["submit"]]
        self.process = subprocess.Popen(  # noqa: S603
            [*become, *words], cwd="/", stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.communicate()  # which ends it

    def begin(self):
        """The answer so far."""
        print("begin", file=self.process.stdin, flush=True)
        return self.process.stdout.readline()

    def fill(self):
        """All that one account may have."""
        assert [self.begin().split()[1] for _ in range(4)] == ["100"] * 4
        refused = self.begin()
        assert refused.split()[1] == "429" and "over TLS already use 64M" in refused, refused

    def end(self):
        """The first of them, which gives back what it took."""
        print("end", file=self.process.stdin, flush=True)


def test_bodies_from_elsewhere_are_bounded_for_each(served):
    """Four of the largest of each who asks, of this machine by account."""
    with Bodies(served) as mine:
        mine.fill()
        mine.end()
        while mine.begin().split()[1] != "100":
            pass


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: three accounts")
def test_bodies_from_elsewhere_are_bounded_together(served):
    """Eight of the largest of all; this machine has room of its own."""
    with Bodies(served, "daemon") as first, Bodies(served, "bin") as second, Bodies(served) as third:
        first.fill()
        second.fill()
        refused = third.begin()
        assert refused.split()[1] == "429" and "of all already use 128M" in refused, refused
        assert served.ok("gbatch", "--hold", "true").startswith("Submitted")
        first.end()
        while third.begin().split()[1] != "100":
            pass


def test_who_sends_on_behind_which_nothing_is_seen_is_hung_up_on(served):
    """Its end could not be noticed while it waits for what may never come."""
    job = served.submit("sleep 1000")
    served.running(job)
    with context_of(served).wrap_socket(socket.create_connection(served.place, timeout=PATIENCE)) as client:
        client.sendall(f"GET /api/v1/jobs/{job}/log?follow=true HTTP/1.1\r\nHost: localhost\r\n"
                       f"Authorization: Bearer {served.tokens['read']}\r\n\r\n".encode())
        assert client.recv(4096).startswith(b"HTTP/1.1 200")
        with pytest.raises((ssl.SSLError, ConnectionError)):
            while True:
                client.sendall(b"G" * 65536)
    served.ok("gcancel", job)


def test_strangers_leave_the_connections_of_this_machine():
    made = Machine()
    made.environment |= {"GFLOW_API__TLS_LISTEN": "127.0.0.1:0", "GFLOW_API__MAX_CONNECTIONS": "16"}
    silent = []
    try:
        made.up()
        find(made)
        context = context_of(made)
        silent = [context.wrap_socket(socket.create_connection(made.place, timeout=PATIENCE)) for _ in range(16)]
        with pytest.raises((ssl.SSLError, ConnectionError)):  # there are no more of them than that
            context.wrap_socket(socket.create_connection(made.place, timeout=PATIENCE))
        assert "JOBID" in made.ok("gqueue")
        # Of whose every one is met by the server, which now answers who has one.
        silent[0].sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert silent[0].recv(100).startswith(b"HTTP/1.1 200")
    finally:
        for one in silent:
            one.close()
        made.close()


@pytest.mark.parametrize("which", ["daemon", "both", "any", "unsaid"])
def test_a_certificate_for_clients_for_any_use_or_that_says_none_is_taken(served, authority, which):
    """RFC 5280, 4.2.1.12: without the extension it may be used for anything."""
    assert ask(served, "GET", "/healthz", certificate=authority / which)[0] == 200


REFUSED = ["foreign", "any-foreign", "server", "mail", "any-but-signs-nothing", "unsaid-but-signs-nothing"]


@pytest.mark.parametrize("which", REFUSED)
def test_a_certificate_of_another_authority_or_for_another_use_is_no_connection(served, authority, which):
    assert ask(served, "GET", "/healthz", certificate=authority / "both")[0] == 200
    with pytest.raises((ssl.SSLError, ConnectionError, http.client.HTTPException)):
        ask(served, "GET", "/healthz", certificate=authority / which)


def s_client(machine, *words):
    """Whether openssl shakes hands this way, and what it says."""
    ran = subprocess.run(  # noqa: S603
        ["openssl", "s_client", "-connect", "%s:%d" % machine.place, *words], stdin=subprocess.DEVNULL,  # noqa: S607
        capture_output=True, check=False, timeout=PATIENCE)
    return ran.returncode == 0, ran.stdout.decode() + ran.stderr.decode()


@pytest.mark.parametrize("words", [
    ["-tls1_2"], ["-tls1_3"],
    ["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-GCM-SHA256"],
    ["-tls1_2", "-cipher", "ECDHE-ECDSA-AES256-GCM-SHA384"],
    ["-tls1_2", "-cipher", "ECDHE-ECDSA-CHACHA20-POLY1305"],
])
def test_tls_of_today_is_spoken(served, words):
    done, said = s_client(served, *words)
    assert done and "verify error" in said.lower().replace("verification", "verify"), said  # by itself signed: pinned, not believed


@pytest.mark.parametrize("words", [
    ["-tls1", "-cipher", "ALL:@SECLEVEL=0"], ["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"],
    ["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA256:@SECLEVEL=0"],
    ["-tls1_2", "-cipher", "ECDHE-ECDSA-AES256-SHA:@SECLEVEL=0"],
    ["-tls1_2", "-cipher", "AES128-GCM-SHA256:@SECLEVEL=0"],
    ["-tls1_2", "-cipher", "aNULL:@SECLEVEL=0"],
    ["-tls1_2", "-cipher", "eNULL:@SECLEVEL=0"],
    ["-tls1_2", "-psk", "00112233445566778899aabbccddeeff", "-cipher", "PSK:@SECLEVEL=0"],
    ["-tls1_2", "-cipher", "DHE:@SECLEVEL=0"],
])
def test_tls_of_yesterday_is_not(served, words):
    done, said = s_client(served, *words)
    assert not done or "Cipher is (NONE)" in said, said
    # It was asked, and said no.
    read, written = re.search(r"SSL handshake has read (\d+) bytes and written (\d+) bytes", said).groups()
    assert int(read) > 0 and int(written) > 50, said
    assert "alert" in said, said


def test_nothing_is_renegotiated(served):
    """A client that wants to is refused by an alert, and what it asks after that is answered by nobody."""
    with subprocess.Popen(  # noqa: S603
            ["openssl", "s_client", "-connect", "%s:%d" % served.place, "-tls1_2"], stdin=subprocess.PIPE,  # noqa: S607
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as client:
        said = b""
        while b"---\n" not in said[-4:] or b"Verify return code" not in said:
            said += client.stdout.read1(65536)
        client.stdin.write(b"R\n")
        client.stdin.flush()
        said = client.communicate(timeout=PATIENCE)[0]
    assert b"RENEGOTIATING" in said and b"no renegotiation" in said, said


def test_plain_http_gets_nothing(served):
    with socket.create_connection(served.place, timeout=PATIENCE) as client:
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        got = b""
        try:
            while chunk := client.recv(4096):
                got += chunk
        except ConnectionResetError:
            pass
        assert b"HTTP/" not in got


def none_left(machine):
    """Waits until gflowd has let go of every connection of the tests before: it says farewell to some for 2 s."""
    here = f":{machine.place[1]:04X}"
    held = {"01", "08"}  # ESTABLISHED, CLOSE_WAIT
    while any(line.split()[1].endswith(here) and line.split()[3] in held
              for line in Path("/proc/net/tcp").read_text().splitlines()[1:]):
        pass


def test_who_is_slow_to_shake_hands_keeps_nobody_waiting(served):
    none_left(served)
    silent = [socket.create_connection(served.place) for _ in range(32)]  # say nothing at all
    half = [socket.create_connection(served.place) for _ in range(16)]  # begin, and stop
    for one in half:
        one.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
    for _ in range(5):
        assert ask(served, "GET", "/api/v1/jobs", token=served.tokens["read"])[0] == 200
    # Each is hung up on, in its time.
    for one in silent + half:
        one.settimeout(PATIENCE)
        try:
            while one.recv(100):
                pass
        except ConnectionResetError:
            pass
        one.close()


def test_who_hangs_up_before_the_farewell_is_let_go_of_at_once(served):
    """A client that does not read to the end resets the connection, and is not to fill what one address may have."""
    none_left(served)
    context = context_of(served)
    clients = [context.wrap_socket(socket.create_connection(served.place, timeout=PATIENCE)) for _ in range(64)]
    for client in clients:
        client.sendall(b"POST /nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: 16000000\r\n\r\n")
    for client in clients:
        assert client.recv(12) == b"HTTP/1.1 401"
    for client in clients:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
    assert ask(served, "GET", "/healthz")[0] == 200


def test_one_address_has_so_many_connections(served):
    none_left(served)
    open_ones = [socket.create_connection(served.place) for _ in range(80)]
    refused = 0
    for one in open_ones[64:]:
        one.settimeout(PATIENCE)
        try:
            refused += one.recv(1) == b""
        except ConnectionResetError:
            refused += 1
    assert refused == 16
    for one in open_ones[:64]:
        one.shutdown(socket.SHUT_WR)
        assert one.recv(1) == b""  # it is closed there, too
    for one in open_ones:
        one.close()
    assert ask(served, "GET", "/healthz")[0] == 200


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: two accounts")
def test_who_has_many_addresses_of_this_machine_is_one(bare):
    """All of 127.0.0.0/8 is at the hand of every account: they are counted by that, and leave others theirs."""
    bare.environment["GFLOW_API__TLS_LISTEN"] = "127.0.0.1:0"
    bare.up()
    find(bare)
    mine = [socket.create_connection(bare.place, timeout=PATIENCE, source_address=(f"127.0.0.{2 + i}", 0)) for i in range(64)]
    with socket.create_connection(bare.place, timeout=PATIENCE, source_address=("127.0.1.1", 0)) as one_more:
        assert one_more.recv(1) == b""  # closed at once: the others have 10 s
        ready, _, _ = select.select(mine, [], [], 0)
        assert not ready, "they were closed before"
    words = ["curl", "-s", "-k", "https://%s:%d/healthz" % bare.place]
    other = bare.run("setpriv", "--reuid", "daemon", "--regid", "daemon", "--clear-groups", *words, cwd="/")
    assert other.out == "ok\n" or other.out == "ok", other
    for one in mine:
        one.close()


def test_a_large_answer_and_a_large_request_come_whole(served):
    token = served.tokens["submit"]
    status, body, _ = ask(served, "GET", "/api/v1/openapi.json", token=token)
    assert status == 200 and json.loads(body)["openapi"] == "3.1.0" and len(body) > 60_000
    status, body, _ = ask(served, "POST", "/api/v1/jobs/check", {"items": [], "padding": "x" * 3_000_000}, token=token)
    assert status == 400 and b"padding" in body, body


def test_many_requests_go_over_one_connection(served):
    connection = http.client.HTTPSConnection(*served.place, context=context_of(served), timeout=PATIENCE)
    for _ in range(20):
        connection.request("GET", "/api/v1/jobs", headers={"Authorization": f"Bearer {served.tokens['read']}"})
        answer = connection.getresponse()
        assert answer.status == 200 and answer.read()
    connection.close()


@pytest.mark.parametrize(("settings", "says"), [
    ({"TLS_LISTEN": "lab1"}, "lab1"),
    ({"TLS_LISTEN": "lab1:8443"}, "lab1:8443"),
    ({"TLS_LISTEN": "127.0.0.1:0", "TLS_CERTIFICATE": "/etc/hostname"}, "go together"),
    ({"TLS_LISTEN": "127.0.0.1:0", "TLS_CERTIFICATE": "relative.crt"}, "relative"),
    ({"TLS_LISTEN": "127.0.0.1:0", "CLIENT_CA": "/etc/hostname"}, "/etc/hostname"),
    ({"LISTEN": "0.0.0.0:8000"}, "tls_listen"),
    ({"ALLOWED_ORIGINS": "*"}, "'*'"),
])
def test_what_would_leave_it_open_keeps_it_from_starting(settings, says):
    made = Machine()
    try:
        ran = made.run("gflowd", "up", "--devices", made.devices, env={f"GFLOW_API__{k}": v for k, v in settings.items()})
        assert ran.code != 0 and says in ran.err, ran
    finally:
        made.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: two networks, as of two machines")
def test_from_another_machine():
    """gflowd in one network namespace, who asks in another, a cable between them."""
    spaces = []
    made = Machine("sim:2xV100")
    try:
        for _ in range(2):
            space = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo up; exec sleep infinity"], stdout=subprocess.PIPE)  # noqa: S603, S607
            assert space.stdout.readline() == b"up\n"
            spaces.append(space)
        lab, laptop = ([*"nsenter --net=".split()[:1], f"--net=/proc/{space.pid}/ns/net"] for space in spaces)

        def inside(where, *words):
            return made.ok(*where, *words)

        inside(lab, "ip", "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", str(spaces[1].pid))
        for where, address in ((lab, "10.213.0.1/24"), (laptop, "10.213.0.2/24")):
            inside(where, "ip", "address", "add", address, "dev", "cable")
            inside(where, "ip", "link", "set", "cable", "up")
            inside(where, "ip", "link", "set", "lo", "up")
        made.environment |= {"GFLOW_API__TLS_LISTEN": "10.213.0.1:8000", "GFLOW_API__LISTEN": "localhost:8000"}
        inside(lab, "gflowd", "up", "--devices", made.devices)
        token = made.ok("gctl", "token", "create", "laptop").strip()
        secret = made.work / "header"
        secret.write_text(f"Authorization: Bearer {token}\n")
        curl = ["curl", "-s", "--cacert", str(made.state / "tls.crt"), "--resolve", f"{socket.gethostname().lower()}:8000:10.213.0.1"]
        url = f"https://{socket.gethostname().lower()}:8000/api/v1/jobs"
        assert json.loads(inside(laptop, *curl, "-H", f"@{secret}", url))["jobs"] == []
        assert json.loads(inside(laptop, *curl, url))["status"] == 401
        # What is for this machine only is not there from elsewhere.
        assert made.run(*laptop, "curl", "-s", "--max-time", "5", "http://10.213.0.1:8000/healthz").code != 0
        log = (made.logs / "gpu_resource_manager.log").read_text()
        assert "https://10.213.0.1:8000" in log
    finally:
        for space in spaces:
            space.kill()
            space.wait()
        made.close()


# Behind a document that is not read, through a window of some KB: its answer cannot have come.
UNREAD = ("GET /api/v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n{0}\r\nPOST /api/v1/gpu/allocate HTTP/1.1\r\nHost: localhost\r\n"
          "{0}Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}")


@pytest.mark.parametrize("way", ["tcp", "tls"])
def test_who_hangs_up_without_the_answer_holds_nothing(authority, way):
    made = Machine("sim:1xV100")
    made.environment |= {"GFLOW_API__TLS_LISTEN": "127.0.0.1:0", "GFLOW_API__LISTEN": "127.0.0.1:0"}
    try:
        made.up()
        find(made)
        token = made.ok("gctl", "token", "create", "t", "--scope", "submit").strip()
        host, port = made.get("/api/v1/daemon")["api_url"].removeprefix("http://").split(":")
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        client.connect(made.place if way == "tls" else (host, int(port)))
        shown = f"Authorization: Bearer {token}\r\n" if way == "tls" else ""
        if way == "tls":
            client = context_of(made).wrap_socket(client)
        client.sendall(UNREAD.format(shown).encode())
        page = made.get("/api/v1/jobs")
        while [job["status"] for job in page["jobs"]] != ["Running"]:
            made.get(f"/api/v1/changes?revision={page['revision']}")
            page = made.get("/api/v1/jobs")
        os.close(client.detach())  # without a farewell
        (ended,) = made.wait(1)
        assert ended["status"] == "Cancelled", ended
    finally:
        made.close()
