# SPDX-License-Identifier: Apache-2.0
"""Which gflowd is meant: as the commands find it; and what happens when it is not there, or not the right one."""

import contextlib
import os
import socket
import threading

import gflow
import pytest
from gflow._http import Answer, Ask
from gflow._servers import find_server
from gflow._steps import asked


def added(lab, machine, scope="submit"):
    """On this machine `gctl remote add` was done for the lab."""
    path = machine.work / "token"
    path.touch(mode=0o600)
    path.write_text(lab.ok("gctl", "token", "create", machine.root.name, "--scope", scope))
    machine.ok("gctl", "remote", "add", "lab", lab.tls_url, "--token-file", path)


def test_the_lab_from_a_laptop(lab, bare, python, monkeypatch):
    added(lab, bare)
    monkeypatch.setenv("HOME", str(bare.home))
    monkeypatch.delenv("GFLOW_SERVER", raising=False)
    for named in ("lab", lab.tls_url):
        client = gflow.Client(named)
        me = client.principal()
        assert (me["known_by"], me["scope"], str(client.server)) == ("token", "submit", lab.tls_url)
    monkeypatch.setenv("GFLOW_SERVER", "lab")
    assert gflow.Client().machine()["nodes"][0]["devices"][0]["model_short"].startswith("V100")
    for unknown in ("nolab", "https://nolab:1", "https://", "https://a/b", "../lab"):
        with pytest.raises(gflow.ConfigurationError, match="gctl remote add|is not the URL"):
            gflow.Client(unknown)
    (bare.home / ".config/gflow/remotes/lab").chmod(0o640)
    with pytest.raises(gflow.ConfigurationError, match="chmod 600"):
        gflow.Client()


def test_another_certificate_gets_nothing(lab):
    client = gflow.Client(lab.tls_url, token="gflow_secret", fingerprint="SHA256:" + "0" * 64)
    with pytest.raises(gflow.GflowError, match="another certificate than it had.*nothing was sent"):
        client.machine()


def test_a_token_that_is_not_valid_any_more(lab):
    token = lab.ok("gctl", "token", "create", "short").strip()
    client = gflow.Client(lab.tls_url, token=token, fingerprint=lab.fingerprint)
    assert client.machine()["kind"] == "Machine"
    lab.ok("gctl", "token", "revoke", "short")
    with pytest.raises(gflow.Unauthenticated, match="revoked") as refused:
        client.machine()
    assert refused.value.status == 401 and "gflow_" not in str(refused.value)
    with pytest.raises(PermissionError):
        client.submit("true")


def test_a_token_may_do_what_its_scope_says(lab):
    token = lab.ok("gctl", "token", "create", "reads", "--scope", "read").strip()
    with pytest.raises(gflow.PermissionDenied):
        gflow.Client(lab.api_url, token=token).submit("true")


def test_over_loopback(lab):
    client = gflow.Client(lab.api_url)
    assert client.principal()["known_by"] == "loopback connection"
    assert not client.server.is_here  # a port may be forwarded: what is held is kept by a heartbeat


@pytest.mark.parametrize(("environment", "config", "found"), [
    ({}, "", "home/.local/share/gflow/run/gflowd.sock"),
    ({}, '[daemon]\nsocket = "{root}/b.sock"', "b.sock"),
    ({"XDG_DATA_HOME": "elsewhere"}, "[daemon]\n", "elsewhere/gflow/run/gflowd.sock"),
    ({"XDG_DATA_HOME": "x" * 120}, "", "run/gflow/gflowd.sock"),  # a path that is too long for a socket
])
def test_the_socket_is_found_as_gflowd_chooses_it(bare, monkeypatch, environment, config, found):
    environment = {name: f"{bare.root}/{path}" for name, path in environment.items()}
    bare.environment |= environment
    if config:
        bare.config(config.format(root=bare.root))
    for name in ("GFLOW_SERVER", "GFLOW_SOCKET", "GFLOW_CONFIG", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HOME", "XDG_RUNTIME_DIR", *environment):
        monkeypatch.setenv(name, bare.environment[name])
    bare.up()
    assert find_server().socket == f"{bare.root}/{found}"
    assert gflow.Client(patience=0).daemon()["socket"] == f"{bare.root}/{found}"
    monkeypatch.setenv("GFLOW_SOCKET", "/named.sock")
    assert find_server().socket == "/named.sock"


@pytest.mark.parametrize("url", ["http://10.9.9.9:8000", "http://lab1", "http://localhost.lab:8000"])
def test_nothing_goes_to_other_machines_in_clear(url):
    with pytest.raises(gflow.ConfigurationError, match="another machine, which is asked over TLS only: 'gctl remote add"):
        gflow.Client(url, token="gflow_secret")
    for here in ("http://127.0.0.1:8000", "http://127.1.2.3", "http://[::1]:8000", "http://localhost:8000"):
        assert find_server(here, "t").token == "t"


def test_a_wrong_setting_is_said(bare, monkeypatch):
    monkeypatch.setenv("HOME", str(bare.home))
    monkeypatch.delenv("GFLOW_SOCKET", raising=False)
    bare.config("[daemon\n")
    with pytest.raises(gflow.ConfigurationError, match="gflow.toml"):
        gflow.Client()
    monkeypatch.setenv("GFLOW_CONFIG", "/nowhere.toml")
    with pytest.raises(gflow.ConfigurationError, match="there is no file '/nowhere.toml'"):
        gflow.Client()


def test_nobody_there(bare):
    with pytest.raises(gflow.Unreachable, match="gflowd up"):
        gflow.Client(f"unix:{bare.socket}", patience=0).machine()
    with socket.socket() as taken:  # and nobody listens there
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(gflow.Unreachable, match="Connection refused"):
            gflow.Client(f"http://127.0.0.1:{taken.getsockname()[1]}", patience=0).machine()


def test_while_gflowd_restarts_what_may_be_asked_twice_is(machine):
    client = gflow.Client(f"unix:{machine.socket}")
    job = client.submit("sleep 600")
    client.machine()  # keeps a connection
    machine.kill_daemon()
    done = []
    waits = threading.Thread(target=lambda: done.append((client.submit("true").id, job.wait()["status"])))
    waits.start()
    machine.up()
    machine.running(job.id)
    machine.ok("gcancel", job.id)
    waits.join()
    assert done == [(2, "Cancelled")]


def test_logs_and_events_go_on_over_a_restart(machine):
    client = gflow.Client(f"unix:{machine.socket}")
    fifo = machine.work / "fifo"
    os.mkfifo(fifo)
    job = client.submit(f"echo before; cat {fifo}")
    pieces, events = job.follow(), client.events(job=job, after=next(client.events(follow=False))["id"])
    assert next(pieces) == "before\n"
    seen = [next(events)["type"], next(events)["type"]]
    machine.kill_daemon()
    machine.up()
    fifo.write_text("after\n")
    assert "".join(pieces) == "after\n"
    while seen[-1] != "job.ended":
        seen.append(next(events)["type"])
    assert seen == ["job.starting", "job.started", "job.ended"]


class Wire:
    """Who answers as told, the last of it again and again, and hangs up each time."""

    def __init__(self, path, *answers):
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen()
        self.path, self.answers, self.asked = path, list(answers), []
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection:
                request = b""
                while b"\r\n\r\n" not in request and (more := connection.recv(65536)):
                    request += more
                self.asked.append(request)
                with contextlib.suppress(BrokenPipeError):  # one that has seen enough
                    connection.sendall(self.answers[0] if len(self.answers) == 1 else self.answers.pop(0))


BODY = b'{"kind": "Machine"}'
LENGTH = b"HTTP/1.1 200 OK\r\nContent-Length: 19\r\n\r\n"


@pytest.mark.parametrize(("answer", "error"), [
    (b"", gflow.ConnectionLost),
    (b"HTTP/1.1 200 OK\r\n", gflow.ConnectionLost),
    (LENGTH + BODY[:5], gflow.ConnectionLost),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"kin", gflow.ConnectionLost),
    (b"SSH-2.0-OpenSSH\r\n\r\n", gflow.GflowError),
    (b"x" * 100_000, gflow.GflowError),
    (b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n", gflow.GflowError),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", gflow.GflowError),
    (b"HTTP/1.1 200 OK\r\n\r\n<html>", gflow.GflowError),
    (LENGTH + BODY, None),
    (b"HTTP/1.1 100 Continue\r\n\r\n" + LENGTH + BODY, None),
    (b"HTTP/1.1 200 OK\r\n\r\n" + BODY, None),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{\"k\r\n10;x=1\r\nind\": \"Machine\"}\r\n0\r\nA: b\r\n\r\n", None),
])
def test_answers_that_break_off_are_told_from_whole_ones(tmp_path, answer, error):
    wire = Wire(tmp_path / "s", answer)
    client = gflow.Client(f"unix:{wire.path}", patience=0)
    if error is None:
        assert client.machine() == {"kind": "Machine"}
    else:
        with pytest.raises(error):
            client.machine()
    wire.listener.close()


def test_what_must_not_be_done_twice_is_asked_once(tmp_path):
    wire = Wire(tmp_path / "s", b"")
    client = gflow.Client(f"unix:{wire.path}", patience=0.2)
    with pytest.raises(gflow.ConnectionLost, match="before it had answered POST /api/v1/jobs/signal"):
        client.signal(15, 1)
    assert len(wire.asked) == 1
    with pytest.raises(gflow.ConnectionLost):
        client.submit("true")
    keys = {line for request in wire.asked[1:] for line in request.split(b"\r\n") if line.startswith(b"Idempotency-Key")}
    assert len(wire.asked) > 2 and len(keys) == 1  # the same submission each time
    with pytest.raises(gflow.GflowError, match="several lines"):
        client.call("GET", "/a\r\nX: y")
    wire.listener.close()


def refusal(status, code):
    body = b'{"status": %d, "code": "%s", "detail": "no"}' % (status, code.encode())
    return b"HTTP/1.1 %d No\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (status, len(body), body)


def not_now(status, seconds):
    return refusal(status, "exhausted" if status == 429 else "unreachable").replace(b"Connection: close", b"Retry-After: %d" % seconds)


@pytest.mark.parametrize("status", [429, 503])
def test_who_has_no_time_is_asked_again_when_it_says(tmp_path, status):
    """Also for what must not be done twice: it was not done."""
    done = b'HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n{"jobs": [1]}'
    wire = Wire(tmp_path / "s", not_now(status, 0), not_now(status, 0), done)
    client = gflow.Client(f"unix:{wire.path}")
    assert client.cancel(1) == [1] and len(wire.asked) == 3
    wire.listener.close()


@pytest.mark.parametrize(("status", "after", "patience", "pauses"), [
    (429, "1", 30, [1]), (503, "5", 30, [5]), (503, "29", 30, [29]),
    (503, "31", 30, None), (429, "1", 0, None), (503, "Wed, 21 Oct 2026 07:28:00 GMT", 30, None), (503, None, 30, None), (507, "1", 30, None),
])
def test_it_is_waited_for_as_long_as_it_says_and_no_longer_than_the_caller_has(status, after, patience, pauses):
    ask = Ask("POST", "/api/v1/jobs/cancel")
    steps = asked(ask, patience)
    assert next(steps) is ask
    headers = {} if after is None else {"retry-after": after}
    refused = Answer(ask, status, headers, b'{"status": %d, "code": "x", "detail": "no"}' % status)
    if pauses is None:
        with pytest.raises(gflow.Problem) as raised:
            steps.send(refused)
        assert raised.value.retry_after == (float(after) if after and after.isdigit() else None)
        return
    assert [steps.send(refused).seconds] == pauses
    assert steps.send(None) is ask
    with pytest.raises(StopIteration):
        steps.send(Answer(ask, 200, {}))


def test_waiting_for_a_job_has_the_callers_limit_also_where_nobody_is(tmp_path):
    client = gflow.Client(f"unix:{tmp_path}/nobody", patience=3600)
    with pytest.raises(gflow.Unreachable):
        gflow.Job(client, 1).wait(timeout=0)


@pytest.mark.parametrize("refused", [(404, "not_found"), (409, "wrong_state")])
def test_what_was_given_back_and_not_answered_is_given_back(tmp_path, refused):
    wire = Wire(tmp_path / "s", b"", refusal(*refused))
    client = gflow.Client(f"unix:{wire.path}")
    client._driver.run(client._calls.give_back(1))
    assert [request.split(b" ")[0] for request in wire.asked] == [b"DELETE"] * 2
    with pytest.raises((gflow.NotFound, gflow.WrongState)):  # of one that was asked once
        client._driver.run(client._calls.give_back(1))
    wire.listener.close()


LISTED = b'{"jobs": [{"id": 1, "status": "Cancelled"}, {"id": 2, "status": "Running"}], "next": null}'


def answer(body):
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(body), body)


def test_what_was_cancelled_and_not_answered_is_cancelled(tmp_path):
    """One that waited has ended by the first request; one that runs is in its grace."""
    wire = Wire(tmp_path / "s", b"", refusal(409, "wrong_state"), answer(LISTED), answer(b'{"jobs": [2]}'), refusal(409, "wrong_state"))
    client = gflow.Client(f"unix:{wire.path}")
    assert client.cancel(1, 2) == [1, 2]
    assert [request.split(b" ")[1].split(b"?")[0] for request in wire.asked] == [
        b"/api/v1/jobs/cancel", b"/api/v1/jobs/cancel", b"/api/v1/jobs", b"/api/v1/jobs/cancel"]
    with pytest.raises(gflow.WrongState):  # of one that was asked once
        client.cancel(1)
    wire.listener.close()


def test_a_cancel_that_gflowd_heard_before_it_was_killed(machine, client, monkeypatch):
    """It is on disk, and its answer was lost: the same call goes on with the next gflowd."""
    jobs = [client.submit("sleep 600", gpus=2), client.submit("true", gpus=2)]
    machine.running(jobs[0].id)
    exchange = client._driver._exchange
    killed = []

    def lost(ask):
        found = exchange(ask)
        if ask.target.endswith("/cancel") and not killed:
            killed.append(ask)
            machine.kill_daemon()
            machine.up()
            raise gflow.ConnectionLost("gflowd went away")
        return found

    monkeypatch.setattr(client._driver, "_exchange", lost)
    assert client.cancel(*jobs) == [1, 2] and len(killed) == 1
    assert [one["status"] for one in client.wait(*jobs)] == ["Cancelled"] * 2


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to listen as somebody else")
def test_a_stranger_at_the_socket_gets_nothing(tmp_path):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        os.seteuid(65534)
        try:
            listener.listen()  # who does is who the kernel says is there
        finally:
            os.seteuid(0)
        with pytest.raises(gflow.GflowError, match="neither root nor you"):
            gflow.Client(f"unix:{tmp_path}/s", patience=0).machine()
