# SPDX-License-Identifier: Apache-2.0
"""Who may do what from where: tokens, their scopes and their end, and what web pages get."""

import getpass
import json
import re
import select
import socket
import urllib.error
import urllib.request

import http_client
import pytest
import rights
from described import check_told
from machine import PATIENCE, Gate, Machine
from rights import least_scope, path_of

NOBODYS = "gflow_" + "0" * 64
SCOPES = ["read", "submit", "operate", "admin"]


@pytest.fixture(scope="module")
def served():
    """A machine whose API is at a port of its own, and a token of each scope."""
    made = Machine("sim:2xV100+2xA100")
    made.environment |= {"GFLOW_API__LISTEN": "127.0.0.1:0", "GFLOW_API__ALLOWED_ORIGINS": "https://board.lab"}
    try:
        made.up()
        made.url = json.loads(made.ok("gflowd", "status", "--json"))["api_url"]
        made.tokens = {scope: made.ok("gctl", "token", "create", scope, "--scope", scope).strip() for scope in SCOPES}
        made.expired = made.ok("gctl", "token", "create", "expired", "--scope", "admin", "--expires", "1s").strip()
        while not next(t for t in tokens_of(made) if t["name"] == "expired")["expired"]:
            pass  # each round asks gflowd, whose clock it is
        yield made
    finally:
        made.close()


def tokens_of(machine):
    return machine.get("/api/v1/tokens")["tokens"]


def ask(machine, method, path, body=None, token=None, **headers):
    """Status, document and headers of the answer."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(machine.url + path, data=data, method=method, headers=headers)
    if data is not None:
        request.add_header("Content-Type", "application/json")
    if token is not None:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answered:
            answer = answered.status, answered.read(), answered.headers
    except urllib.error.HTTPError as refused:
        answer = refused.code, refused.read(), refused.headers
    check_told(method, path, answer[0], answer[2])
    return answer


def log(machine):
    return (machine.logs / "gpu_resource_manager.log").read_text()


def audited(machine):
    return [line.split(" audit: ", 1)[1] for line in log(machine).splitlines() if " audit: " in line]


def test_a_token_is_shown_once_and_kept_as_a_digest(served):
    ran = served.run("gctl", "token", "create", "once", "--expires", "1h")
    assert re.fullmatch(r"gflow_[0-9a-f]{64}\n", ran.out), ran
    secret = ran.out.strip()
    assert secret not in ran.err and "once" in ran.err
    listed = served.ok("gctl", "token", "list")
    assert "once" in listed and secret not in listed
    for path in served.state.rglob("*"):
        if path.is_file():
            assert secret.encode() not in path.read_bytes(), path
    status, body, _ = ask(served, "GET", "/api/v1/principal", token=secret)
    me = json.loads(body)
    assert (status, me["known_by"], me["credential"], me["scope"], me["role"]) == (200, "token", "once", "read", "user")
    assert served.run("gctl", "token", "create", "once").code == 6  # the name is taken
    served.ok("gctl", "token", "revoke", "once")
    status, body, headers = ask(served, "GET", "/api/v1/principal", token=secret)
    assert status == 401 and headers["WWW-Authenticate"].startswith("Bearer "), body
    assert served.run("gctl", "token", "revoke", "once").code == 3


def test_tokens_outlive_the_daemon_and_a_revoked_one_does_not(served):
    kept = served.ok("gctl", "token", "create", "kept").strip()
    gone = served.ok("gctl", "token", "create", "gone").strip()
    served.ok("gctl", "token", "revoke", "gone")
    served.kill_daemon()
    served.up()
    served.url = json.loads(served.ok("gflowd", "status", "--json"))["api_url"]
    assert ask(served, "GET", "/api/v1/jobs", token=kept)[0] == 200
    assert ask(served, "GET", "/api/v1/jobs", token=gone)[0] == 401
    served.ok("gctl", "token", "revoke", "kept")


def test_a_token_expires_and_leaves_its_name(served):
    secret = served.ok("gctl", "token", "create", "short", "--expires", "1s").strip()
    while not next(t for t in tokens_of(served) if t["name"] == "short")["expired"]:
        pass
    status, body, _ = ask(served, "GET", "/api/v1/jobs", token=secret)
    assert status == 401 and b"has expired" in body, body
    assert "(expired)" in served.ok("gctl", "token", "list")
    served.ok("gctl", "token", "create", "short", "--expires", "1h")
    served.ok("gctl", "token", "revoke", "short")


@pytest.mark.parametrize("words", [
    ["a/b"], ["x" * 65], ["ok", "--scope", "root"], ["ok", "--expires", "0s"], ["ok", "--expires", "soon"], [], ["a", "b"],
])
def test_a_token_that_makes_no_sense_is_refused(served, words):
    ran = served.run("gctl", "token", "create", *words)
    assert ran.code == 2 and ran.out == "", ran


def test_no_token_makes_another(served):
    for scope in SCOPES:
        status, body, _ = ask(served, "POST", "/api/v1/tokens", {"name": "more"}, token=served.tokens[scope])
        assert status == 403, (scope, body)
    assert ask(served, "POST", "/api/v1/tokens", {"name": "more"})[0] == 403  # nor what may be forwarded


def test_a_token_revokes_only_what_its_scope_lets_it(served):
    served.ok("gctl", "token", "create", "leaked")
    for scope in ("read", "submit", "operate"):  # or one that leaked could cut its owner off
        assert ask(served, "DELETE", "/api/v1/tokens/leaked", token=served.tokens[scope])[0] == 403
    assert ask(served, "DELETE", "/api/v1/tokens/leaked", token=served.tokens["admin"])[0] == 204
    assert ask(served, "DELETE", "/api/v1/tokens/leaked", token=served.tokens["admin"])[0] == 404


# -- every route, for everyone ---------------------------------------------------------------------------------------

# rights.py has the table, and test_rights.py asks as several users; this here needs no root.
TABLE = {(method, path_of(target)): least_scope(statuses) for method, target, _, _, statuses in rights.TABLE}
NEED = {"read": 0, "submit": 1, "operate": 2, "admin": 3}


def test_the_table_has_every_route_with_its_scope(served):
    description = served.get("/api/v1/openapi.json")
    assert rights.missing(description) == set(), "a route needs its line in rights.py, and a line its route"
    for (method, path), scope in TABLE.items():
        operation = description["paths"][path][method.lower()]
        told = operation.get("x-scope") if "x-role" in operation else "open"
        assert told == scope, path


def concrete(path):
    """A path of the route at which there is nothing, so that being let in changes nothing."""
    return re.sub(r"\{\w+\}", "nothing", path.replace("{id}", "999999999"))


def body_of(method):
    # Refused by whoever reads it, so that being let in does nothing: 400.
    return {"no_such_field": 1} if method in ("POST", "PATCH") else None


def rows():
    for (method, path), scope in TABLE.items():
        if path == "/api/v1/changes":
            path += "?revision=0"  # answered at once
        if path == "/api/v1/events":
            path += "?after=nothing"  # else it has no end
        yield pytest.param(method, concrete(path), scope, id=f"{method} {path}")


@pytest.mark.parametrize(("method", "path", "scope"), rows())
def test_every_route_for_everyone(served, method, path, scope):
    def status(**more):
        return ask(served, method, path, body_of(method), **more)[0]

    # Who is let in and has nothing there gets something else than these.
    barred = {401, 403, 421, 429}
    if scope != "open":
        # 429 once there were too many of them: test_failed_tries_are_told_limited...
        assert status(token=NOBODYS) in (401, 429)
        assert status(token=served.expired) in (401, 429)
        assert status(Authorization="Basic cm9vdDp4") in (401, 429)
    assert status(Host="gflow.evil.example") == 421
    assert status(Origin="http://localhost:8000") == 403
    assert status(Origin="null") == 403
    assert status(**{"Sec-Fetch-Site": "cross-site"}) == 403
    # An allowed page is nobody by the browser it is in, and lets in who brings a token.
    if scope != "open":
        assert status(Origin="https://board.lab") == 401
    for held in SCOPES:
        answers_stop = path in ("/api/v1/daemon/stop", "/api/v1/daemon/reload")
        if answers_stop and NEED[held] >= NEED["admin"]:
            continue  # does what it says: test_an_admin_token_administers
        got = status(token=served.tokens[held])
        if scope is None:
            assert got in (400, 403), held  # what the body lacks may be said first
        elif scope != "open" and NEED[held] < NEED[scope]:
            assert got == 403, held
        else:
            assert got not in barred, (held, got)


def test_an_admin_token_administers(served):
    assert ask(served, "POST", "/api/v1/daemon/reload", token=served.tokens["admin"])[0] == 204
    assert any(line.endswith("POST /api/v1/daemon/reload: 204") and "token 'admin'" in line for line in audited(served))


def test_an_allowed_page_may_ask_and_no_other(served):
    page = {"Origin": "https://board.lab"}
    status, _, headers = ask(served, "OPTIONS", "/api/v1/jobs", **page, **{"Access-Control-Request-Method": "POST"})
    assert status == 204 and headers["Access-Control-Allow-Origin"] == "https://board.lab"
    description = served.get("/api/v1/openapi.json")
    read = {one["name"] for one in description["components"]["parameters"].values() if one["in"] == "header"}
    assert {"Authorization", "Content-Type", "X-Request-Id"} | read == set(headers["Access-Control-Allow-Headers"].split(", "))
    methods = {method.upper() for path in description["paths"].values() for method in path}
    assert methods == set(headers["Access-Control-Allow-Methods"].split(", "))
    status, _, headers = ask(served, "GET", "/api/v1/jobs", token=served.tokens["read"], **page, **{"Sec-Fetch-Site": "cross-site"})
    assert (status, headers["Access-Control-Allow-Origin"], headers["Vary"]) == (200, "https://board.lab", "Origin")
    assert headers["Access-Control-Allow-Credentials"] is None
    assert "ETag" in headers["Access-Control-Expose-Headers"]
    for origin in ("https://board.lab.evil.example", "http://board.lab", "https://BOARD.lab", "null"):
        status, _, headers = ask(served, "OPTIONS", "/api/v1/jobs", Origin=origin)
        assert status in (401, 403, 405) and headers["Access-Control-Allow-Origin"] is None, origin


def test_failed_tries_are_told_limited_and_do_not_keep_out_who_has_a_token(served):
    served.ok("gflowd", "restart")
    served.url = json.loads(served.ok("gflowd", "status", "--json"))["api_url"]
    before = len(audited(served))
    answers = [ask(served, "GET", "/api/v1/jobs", token="gflow_" + f"{i:064x}") for i in range(15)]
    assert [status for status, _, _ in answers] == [401] * 10 + [429] * 5
    [wait] = answers[-1][2].get_all("Retry-After")
    assert 1 <= int(wait) <= 60
    assert ask(served, "GET", "/api/v1/jobs", token=served.tokens["read"])[0] == 200
    lines = audited(served)[before:]
    assert len(lines) == 11 and "too many failed tries" in lines[-1], lines
    assert all("GET /api/v1/jobs: 401" in line and "127.0.0.1:" in line for line in lines[:10]), lines


def raw(machine, head):
    """The answer to a request as it is typed, over TCP."""
    host, port = machine.url.removeprefix("http://").rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
        connection.sendall(f"{head}Host: localhost\r\nConnection: close\r\n\r\n".encode())
        answer = b""
        while chunk := connection.recv(65536):
            answer += chunk
    return answer.decode()


@pytest.mark.parametrize("shown", ["", " ", "Bearer", "Bearer ", "Basic", "Bearer\tx", "Bearer {read}\r\nAuthorization: Bearer {read}"])
def test_who_shows_nothing_that_is_understood_is_not_taken_for_who_shows_nothing(bare, shown):
    bare.environment["GFLOW_API__LISTEN"] = "127.0.0.1:0"
    bare.up()
    bare.url = json.loads(bare.ok("gflowd", "status", "--json"))["api_url"]
    token = bare.ok("gctl", "token", "create", "read", "--scope", "read").strip()
    assert raw(bare, "GET /api/v1/principal HTTP/1.1\r\n").startswith("HTTP/1.1 200 ")
    answer = raw(bare, f"GET /api/v1/principal HTTP/1.1\r\nAuthorization:{shown.format(read=token)}\r\n")
    assert answer.startswith("HTTP/1.1 401 ") and "WWW-Authenticate: Bearer" in answer, answer


def test_refusals_are_in_the_language_of_who_asks_and_the_log_is_not(bare):
    bare.environment["GFLOW_API__LISTEN"] = "127.0.0.1:0"
    bare.up()
    bare.url = json.loads(bare.ok("gflowd", "status", "--json"))["api_url"]
    chinese = {"Accept-Language": "zh-CN,zh;q=0.9,en;q=0.8"}
    answers = [ask(bare, "GET", "/api/v1/jobs", token=NOBODYS, **chinese) for _ in range(11)]
    assert [status for status, _, _ in answers] == [401] * 10 + [429]
    for _, body, _ in answers:
        assert re.search("[\u4e00-\u9fff]", json.loads(body)["detail"]), body
    # The first of several that is known counts, by its weight.
    for wanted in ("en, zh;q=0.5", "zh;q=0.1, en;q=0.2", "zh;q=0", "tlh"):
        _, body, _ = ask(bare, "GET", "/api/v1/jobs", token=NOBODYS, **{"Accept-Language": wanted})
        assert json.loads(body)["detail"].isascii(), (wanted, body)
    assert all(line.isascii() for line in audited(bare)), audited(bare)


def test_what_tokens_change_is_in_the_log_and_no_secret_is(served):
    status, _, _ = ask(served, "POST", "/api/v1/gpu/allocate", {"no": 1}, token=served.tokens["submit"])
    assert status == 400
    line = audited(served)[-1]
    assert "(token 'submit')" in line and line.endswith("POST /api/v1/gpu/allocate: 400"), line
    served.ok("gctl", "token", "create", "noted")
    assert audited(served)[-1].endswith("POST /api/v1/tokens: 201") and "from the socket, uid " in audited(served)[-1]
    served.ok("gctl", "token", "revoke", "noted")
    assert audited(served)[-1].endswith("DELETE /api/v1/tokens/noted: 204")
    assert not re.search(r"gflow_[0-9a-f]{16}", log(served))


def test_what_is_wrong_with_a_token_is_said_with_the_route_beside_the_command(served):
    _, body, _ = ask(served, "POST", "/api/v1/tokens", {"name": "x"})
    refusals = [json.loads(body), *(http_client.ask(served, *asked).document for asked in (
        ("POST", "/api/v1/tokens", '{"name": "read"}'), ("DELETE", "/api/v1/tokens/nobodys")))]
    assert [one["status"] for one in refusals] == [403, 409, 404]
    advice = [("gctl token create", "POST /api/v1/tokens to the socket"), ("gctl token revoke read", "DELETE /api/v1/tokens/read"),
              ("gctl token list", "GET /api/v1/tokens")]
    for refusal, words in zip(refusals, advice, strict=True):
        assert all(word in refusal["detail"] for word in words), refusal


def test_who_looks_after_gflowd_needs_no_name(served):
    """What is open to all tells of nobody; all else does not answer whom it does not know."""
    for path in ("/healthz", "/readyz"):
        for method in ("GET", "HEAD"):
            assert ask(served, method, path)[:2] == (200, b"" if method == "HEAD" else b"ok\n")
    assert json.loads(ask(served, "GET", "/version")[1])["version"] == served.get("/api/v1/daemon")["version"]


def test_a_line_of_the_log_has_the_request_id_of_its_answer(bare):
    """What the client chose, else what it was told: in the lines of who did what, and in those of what was refused."""
    bare.environment["GFLOW_API__LISTEN"] = "127.0.0.1:0"
    bare.up()
    bare.url = json.loads(bare.ok("gflowd", "status", "--json"))["api_url"]
    submit = bare.ok("gctl", "token", "create", "submit", "--scope", "submit").strip()
    need = {"no": 1}
    status, _, headers = ask(bare, "POST", "/api/v1/gpu/allocate", need, token=submit, **{"X-Request-Id": "build-42"})
    assert status == 400 and headers["X-Request-Id"] == "build-42"
    assert audited(bare)[-1].startswith("request build-42: ") and "(token 'submit')" in audited(bare)[-1]
    bare.get("/api/v1/daemon")  # asked after: what was refused before is written
    assert f"request build-42: POST /api/v1/gpu/allocate of {getpass.getuser()} (token 'submit')" in log(bare)
    told = []
    for token, status in ((submit, 400), (NOBODYS, 401)):
        answer = ask(bare, "POST", "/api/v1/gpu/allocate", need, token=token)
        assert answer[0] == status
        told.append(answer[2]["X-Request-Id"])
        assert audited(bare)[-1].startswith(f"request {told[-1]}: "), audited(bare)[-1]
        bare.get("/api/v1/daemon")
        assert f" request {told[-1]}: POST /api/v1/gpu/allocate of " in log(bare)
    made = http_client.ask(bare, "POST", "/api/v1/tokens", '{"name": "traced"}').headers["X-Request-Id"]
    told.append(made)
    assert audited(bare)[-1].startswith(f"request {made}: ") and audited(bare)[-1].endswith("POST /api/v1/tokens: 201")
    assert len(set(told)) == 3


def test_what_is_refused_does_not_fill_the_log_and_what_is_done_is_in_it(served):
    """By whatever connections: each request has its own here."""
    served.ok("gflowd", "restart")
    served.url = json.loads(served.ok("gflowd", "status", "--json"))["api_url"]
    before = len(audited(served))
    submit = served.tokens["submit"]
    for _ in range(80):
        assert ask(served, "POST", "/api/v1/jobs/99/cancel", token=submit)[0] in (403, 404)
    assert ask(served, "POST", "/api/v1/gpu/validate", {}, token=submit)[0] == 200  # which changes nothing
    assert ask(served, "POST", "/api/v1/gpu/allocate", {"ttl_seconds": 60}, token=submit)[0] == 200
    lines = audited(served)[before:]
    assert len(lines) == 62 and "too many refused requests" in lines[60], lines
    assert all(re.match("request [0-9a-f]{16}: ", line) for line in lines), lines
    assert lines[61].endswith("POST /api/v1/gpu/allocate: 200") and "(token 'submit') from 127.0.0.1:" in lines[61], lines


@pytest.mark.parametrize("level", ["warning", "error"])
def test_who_did_what_is_written_at_any_level(bare, level):
    bare.environment["GFLOW_API__LISTEN"] = "127.0.0.1:0"
    bare.config(f'[daemon]\nlog_level = "{level}"\n')
    bare.up()
    bare.url = json.loads(bare.ok("gflowd", "status", "--json"))["api_url"]
    bare.ok("gctl", "token", "create", "quiet")
    assert ask(bare, "GET", "/api/v1/jobs", token=NOBODYS)[0] == 401
    bare.ok("gctl", "config", "reload")
    assert ask(bare, "GET", "/nowhere")[0] == 404
    lines = audited(bare)
    assert [line.rsplit(": ", 2)[-1] for line in (lines[0], lines[2])] == ["201", "204"] and "401" in lines[1], lines
    assert "/nowhere" not in log(bare)  # else nothing is


def test_tokens_are_changed_so_often_and_no_more(machine):
    """Each change is written: who could write as fast as they can would hide what was done before."""
    most = 200
    answers = [http_client.ask(machine, "DELETE", f"/api/v1/tokens/none-{i}") for i in range(most + 20)]
    assert [answer.status for answer in answers] == [404] * most + [429] * 20
    [wait] = answers[-1].headers.get_all("Retry-After")
    assert 1 <= int(wait) <= 60
    lines = audited(machine)
    assert len(lines) == 62 and "too many refused requests" in lines[-2] and "too many changes of tokens" in lines[-1], lines[-2:]
    assert http_client.ask(machine, "GET", "/api/v1/tokens").status == 200


class Streaming:
    """An answer over TCP that goes on."""

    def __init__(self, machine, target, token=None, body=None):
        host, port = machine.url.removeprefix("http://").rsplit(":", 1)
        self.connection = socket.create_connection((host, int(port)), timeout=PATIENCE)
        shown = f"Authorization: Bearer {token}\r\n" if token else ""
        text = "" if body is None else json.dumps(body)
        kind = f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n" if text else ""
        self.connection.sendall(
            f"{'POST' if text else 'GET'} {target} HTTP/1.1\r\nHost: localhost\r\n{shown}{kind}\r\n{text}".encode())
        self.got = b""

    def until(self, text):
        while text not in self.got:
            chunk = self.connection.recv(65536)
            assert chunk, self.got
            self.got += chunk

    def rest(self):
        """What comes until it is cut."""
        while chunk := self.connection.recv(65536):
            self.got += chunk
        return self.got


@pytest.mark.parametrize("how", ["revoked", "expired"])
def test_what_is_sent_for_a_token_ends_with_it(served, how):
    gate = Gate(served, f"gate-{how}")
    job = served.submit(f"echo one; {gate.command}; echo SECRET; sleep 1000")
    gate.reached()
    life = ["--expires", "5s"] if how == "expired" else []
    token = served.ok("gctl", "token", "create", f"leak-{how}", "--scope", "read", *life).strip()
    streams = [Streaming(served, "/api/v1/events", token), Streaming(served, f"/api/v1/jobs/{job}/log?follow=true", token)]
    other = Streaming(served, f"/api/v1/jobs/{job}/log?follow=true", served.tokens["read"])
    streams[0].until(b"retry:")
    streams[1].until(b"one\n")
    other.until(b"one\n")
    if how == "revoked":
        served.ok("gctl", "token", "revoke", f"leak-{how}")
    # Both end while nothing comes, and not in order: there would be more.
    for stream in streams:
        assert not stream.rest().endswith(b"0\r\n\r\n")
    gate.open()
    other.until(b"SECRET")  # what others have goes on
    served.ok("gcancel", job)
    assert other.rest().endswith(b"0\r\n\r\n")


@pytest.mark.parametrize("how", ["revoked", "expired"])
def test_what_is_waited_for_with_a_token_ends_with_it(served, how):
    """A held answer is a 401 then, at once."""
    life = ["--expires", "5s"] if how == "expired" else []
    token = served.ok("gctl", "token", "create", f"held-{how}", "--scope", "read", *life).strip()
    job = served.ok("gbatch", "--hold", "true").split()[-1]
    revision = served.get("/api/v1/jobs?limit=1")["revision"]
    changes = f"/api/v1/changes?revision={revision}&job={job}"  # nobody touches it
    waits = [Streaming(served, changes, token) for _ in range(2)]
    others = Streaming(served, changes, served.tokens["read"])
    served.get("/api/v1/principal")  # what was asked before was looked at before
    if how == "revoked":
        served.ok("gctl", "token", "revoke", f"held-{how}")
    for wait in waits:
        wait.until(b"HTTP/1.1 401 ")
    assert not select.select([others.connection], [], [], 0)[0], "it has its answer, too"


def test_there_may_be_so_many_tokens_of_one_user(served):
    made = []
    while (ran := served.run("gctl", "token", "create", f"many-{len(made)}")).code == 0:
        made.append(f"many-{len(made)}")
        assert len(made) <= 64, "there is no limit"
    assert "64" in ran.err and "revoke" in ran.err, ran
    served.ok("gctl", "token", "revoke", *made)
