# SPDX-License-Identifier: Apache-2.0
"""What is true of every route: methods, media types, conditions, compression, ids, problems."""

import http.client
import json
import re
import select
import socket
import urllib.parse
from contextlib import ExitStack

import pytest
from http_client import ask
from machine import PATIENCE

JOB = {"spec": {"name": "held", "work_dir": "/", "hold": True, "command": "true"}, "payload": {"argv": ["true"]}}


def submit(machine, **spec):
    body = {"items": [{**JOB, "spec": JOB["spec"] | spec}]}
    answer = ask(machine, "POST", "/api/v1/jobs", json.dumps(body))
    assert answer.status == 201, answer
    return answer.document["items"][0]["id"]


def raw(machine, text):
    """Bytes as they are, and all that comes back."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(machine.socket))
        connection.settimeout(PATIENCE)
        connection.sendall(text.encode())
        answer = b""
        while chunk := connection.recv(65536):
            answer += chunk
    return answer.decode()


def test_head_is_get_without_its_body(machine):
    whole, head = (ask(machine, method, "/api/v1/settings") for method in ("GET", "HEAD"))
    assert (head.status, head.body) == (200, b"")
    for name in ("Content-Length", "Content-Type", "ETag"):
        assert head.headers[name] == whole.headers[name], name
    assert ask(machine, "HEAD", "/api/v1/jobs/99").status == 404


def test_what_comes_after_a_head_has_its_body(machine):
    answer = raw(machine, "HEAD /healthz HTTP/1.1\r\nHost: x\r\n\r\nnonsense\r\n\r\n")
    assert answer.count("HTTP/1.1 ") == 2 and '"code":"usage"' in answer.replace(" ", ""), answer


def test_empty_lines_before_a_request_are_passed_over(machine):
    close = "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    assert raw(machine, "\r\n" + close).startswith("HTTP/1.1 200 ")
    body = json.dumps({"gpu_count": 1})
    first = f"POST /api/v1/gpu/validate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    assert raw(machine, first + "\r\n\r\n" + close).count("HTTP/1.1 200 ") == 2
    assert raw(machine, "\r\n" * 50 + close).startswith("HTTP/1.1 400 ")  # not for ever


def test_an_old_client_gets_no_answer_before_the_answer(machine):
    told = {}
    for version in ("1.0", "1.1"):
        told[version] = raw(machine, f"POST /api/v1/gpu/validate HTTP/{version}\r\nHost: x\r\nContent-Type: application/json\r\n"
                                     "Expect: 100-continue\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}").split()[1]
    assert told == {"1.0": "200", "1.1": "100"}


def test_what_a_path_takes_is_told(machine):
    allowed = {
        "/api/v1/jobs": "GET, HEAD, POST, PATCH, OPTIONS",
        "/api/v1/gpu/allocations/7": "GET, HEAD, DELETE, OPTIONS",
        "/api/v1/place": "POST, OPTIONS",
    }
    for path, methods in allowed.items():
        told = ask(machine, "OPTIONS", path)
        assert (told.status, told.body, told.headers["Allow"]) == (204, b"", methods)
        refused = ask(machine, "TRACE", path)
        assert (refused.status, refused.headers["Allow"]) == (405, methods)
    assert ask(machine, "OPTIONS", "*").headers["Allow"] == "GET, HEAD, POST, PATCH, DELETE, OPTIONS"
    assert ask(machine, "OPTIONS", "/nowhere").status == 404


def test_media_types_that_are_not_there_are_refused(machine):
    assert ask(machine, "GET", "/api/v1/jobs", Accept="text/html").status == 406
    assert ask(machine, "GET", "/api/v1/jobs", Accept="text/html, */*;q=0.1").status == 200
    assert ask(machine, "GET", "/healthz", Accept="text/plain").status == 200
    body = json.dumps({"request": {"gpus": 1}})
    assert ask(machine, "POST", "/api/v1/place", body, Content_Type="text/plain").status == 415
    assert ask(machine, "POST", "/api/v1/place", body, Content_Encoding="gzip").status == 415
    assert ask(machine, "POST", "/api/v1/place", body, Content_Type="Application/JSON; charset=utf-8").status == 200


def test_a_read_that_is_known_is_not_sent_again(machine):
    first = ask(machine, "GET", "/api/v1/settings")
    again = ask(machine, "GET", "/api/v1/settings", If_None_Match=first.headers["ETag"])
    assert (again.status, again.body, again.headers["ETag"]) == (304, b"", first.headers["ETag"])
    page = ask(machine, "GET", "/api/v1/jobs")
    submit(machine)
    news = ask(machine, "GET", "/api/v1/jobs", If_None_Match=page.headers["ETag"])
    assert news.status == 200 and len(news.document["jobs"]) == 1


def test_a_job_is_changed_only_if_it_is_as_it_was(machine):
    job = submit(machine)
    tag = ask(machine, "GET", f"/api/v1/jobs/{job}").headers["ETag"]
    change = json.dumps({"jobs": [job], "priority": 20})
    done = ask(machine, "PATCH", "/api/v1/jobs", change, If_Match=tag)
    assert done.status == 200, done
    late = ask(machine, "PATCH", "/api/v1/jobs", json.dumps({"jobs": [job], "priority": 30}), If_Match=tag)
    assert (late.status, late.document["code"]) == (412, "wrong_state"), late
    read = ask(machine, "GET", f"/api/v1/jobs/{job}")
    assert read.document["spec"]["priority"] == 20 and read.headers["ETag"] != tag
    assert ask(machine, "GET", f"/api/v1/jobs/{job}", If_None_Match=read.headers["ETag"]).status == 304


def test_an_allocation_is_given_back_only_if_it_is_as_it_was(machine):
    given = ask(machine, "POST", "/api/v1/gpu/allocate", "{}").document["allocation_id"]
    path = f"/api/v1/gpu/allocations/{given}"
    tag = ask(machine, "GET", path).headers["ETag"]
    assert ask(machine, "DELETE", path, If_Match='"another"').status == 412
    assert ask(machine, "GET", path).document["state"] == "Running"
    assert ask(machine, "DELETE", path, If_Match=tag).status == 200


def test_long_answers_are_compressed_for_who_takes_that(machine):
    plain = ask(machine, "GET", "/api/v1/openapi.json")
    small = ask(machine, "GET", "/api/v1/openapi.json", Accept_Encoding="gzip")
    assert plain.headers["Content-Encoding"] is None and small.headers["Content-Encoding"] == "gzip"
    assert int(small.headers["Content-Length"]) < int(plain.headers["Content-Length"]) / 4
    assert small.body == plain.body
    assert "Accept-Encoding" in small.headers["Vary"]
    short = ask(machine, "GET", "/healthz", Accept_Encoding="gzip")
    assert short.headers["Content-Encoding"] is None


def test_a_request_has_an_id_in_its_answer_and_in_the_log(machine):
    mine = ask(machine, "GET", "/api/v1/jobs/99", X_Request_Id="nightly-build_7")
    assert mine.headers["X-Request-Id"] == mine.document["instance"] == "nightly-build_7"
    made = ask(machine, "GET", "/nowhere", X_Request_Id="not one!")
    assert re.fullmatch("[0-9a-f]{16}", made.headers["X-Request-Id"]), made
    # The log is written by the same thread that answers: what came before is there.
    ask(machine, "GET", "/healthz")
    log = (machine.logs / "gpu_resource_manager.log").read_text()
    assert re.search(r"request nightly-build_7: GET /api/v1/jobs/99 of uid \d+ over the socket: 404", log), log
    assert f"request {made.headers['X-Request-Id']}: GET /nowhere" in log


def test_a_problem_names_each_field_that_is_wrong(machine):
    body = {"items": [{"spec": {"priority": 300, "work_dir": 7, "holdd": True}, "payload": {"argv": []}}]}
    answer = ask(machine, "POST", "/api/v1/jobs", json.dumps(body))
    problem = answer.document
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert (problem["status"], problem["code"], problem["type"]) == (400, "usage", "/docs#problem-usage")
    assert [error["pointer"] for error in problem["errors"]] == [
        "/items/0/spec/priority", "/items/0/spec/work_dir", "/items/0/spec/holdd"]
    assert "did you mean 'hold'" in problem["errors"][2]["detail"]
    assert all(error["detail"] in problem["detail"] for error in problem["errors"])
    page = ask(machine, "GET", "/docs").body.decode()
    for code in ("usage", "permission", "not_found", "wrong_state", "infeasible", "exhausted", "timeout",
                 "unreachable", "failure", "damaged", "key_reused"):
        assert f'id="problem-{code}"' in page


def changed(machine, job, priority, *lines, trailer=""):
    """The status of a change that is sent chunked, with these headers, and with some behind its body."""
    body = json.dumps({"priority": priority})
    answer = raw(machine, "\r\n".join([
        f"PATCH /api/v1/jobs/{job} HTTP/1.1", "Host: gflow", "Content-Type: application/json", "Connection: close",
        "Transfer-Encoding: chunked", *lines, "", f"{len(body):x}", body, "0", trailer, ""]) + ("\r\n" if trailer else ""))
    return int(answer.split()[1]), answer


@pytest.mark.parametrize("trailer", ['If-Match: "another"', "Content-Type: text/plain", "Content-Encoding: gzip",
                                     "Idempotency-Key: "])
def test_what_comes_behind_a_body_is_no_header(machine, trailer):
    status, answer = changed(machine, submit(machine), 7, trailer=trailer)
    assert status == 200, answer


def test_whatever_comes_behind_a_body_harms_nobody(machine):
    """Beast throws for a header of over 64 KiB, which only there can be so long."""
    pid = machine.daemon_pid()
    for length in (60_000, 70_000):
        status, answer = changed(machine, submit(machine), 7, trailer="X-Long: " + "x" * length)
        assert (status, machine.daemon_pid()) == (200, pid), answer
    with pytest.raises(OSError):  # it hangs up on one that is not all read
        changed(machine, submit(machine), 7, trailer="X-Long: " + "x" * 10_000_000)
    assert machine.daemon_pid() == pid


@pytest.mark.parametrize("name, values", [
    ("Content-Type", ["text/plain"]), ("Idempotency-Key", ["one", "another"]), ("Range", ["bytes=0-1", "bytes=2-3"]),
    ("If-Range", ["one", "another"]), ("Last-Event-ID", ["1", "2"]), ("Origin", ["http://a", "http://b"]),
    ("Sec-Fetch-Site", ["same-origin", "cross-site"]), ("X-Request-Id", ["one", "another"])])
def test_a_header_of_which_others_may_take_the_other_one_is_refused(machine, name, values):
    status, answer = changed(machine, submit(machine), 7, *(f"{name}: {value}" for value in values))
    assert status == 400 and f"the header '{name}' is given twice" in answer, answer


def test_a_list_in_several_lines_is_one(machine):
    job = submit(machine)
    tag = ask(machine, "GET", f"/api/v1/jobs/{job}").headers["ETag"]
    assert changed(machine, job, 7, 'If-Match: "another"', f"If-Match: {tag}")[0] == 200
    assert changed(machine, job, 8, 'If-Match: "another"', 'If-Match: "yet another"')[0] == 412
    assert changed(machine, job, 8, "Content-Encoding: identity", "Content-Encoding: gzip")[0] == 415


@pytest.mark.parametrize("name", ["Idempotency-Key", "If-Match"])
def test_a_condition_that_says_nothing_is_refused(machine, name):
    """As where the variable of a script is not set: what was meant is not known."""
    job = submit(machine)
    status, answer = changed(machine, job, 7, f"{name}:")
    assert status == 400 and f"the header '{name}' is empty" in answer, answer
    assert ask(machine, "GET", f"/api/v1/jobs/{job}").document["spec"]["priority"] != 7
    told = ask(machine, "GET", "/api/v1/openapi.json").document["components"]["parameters"]
    assert told[name.replace("-", "")]["schema"]["minLength"] == 1


def test_a_body_that_was_read_is_given_back_whatever_the_answer(machine):
    """A chunked one is counted as the most there may be, of which a user has four at a time."""
    chunked = "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(machine.socket))
        connection.settimeout(PATIENCE)
        for target in ("/a%0Ab", "/a%0Ab", "/nowhere", "/a%0Ab", "/a%zz", "/a%0Ab"):
            connection.sendall(f"POST {target} HTTP/1.1\r\nHost: x\r\n{chunked}".encode())
            first = http.client.HTTPResponse(connection)
            first.begin()
            assert first.status in (400, 404) and first.read(), target
        # With that connection still open:
        assert raw(machine, f"POST /nowhere HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{chunked}").startswith("HTTP/1.1 404")


@pytest.mark.parametrize(("target", "status"), [
    ("http://anything.example/healthz", 200),
    ("/api/v1/%6Aobs", 200),
    ("/api%2Fv1/jobs", 404),
    ("/api/v1/jobs%00", 400),
    ("/api/v1/jobs/%31", 404),
    ("/healthz%", 400),
    ("nonsense", 400),
    ("ftp://anything.example/healthz", 400),
])
def test_targets_are_understood_or_refused(machine, target, status):
    answer = raw(machine, f"GET {target} HTTP/1.1\r\nHost: gflow\r\nConnection: close\r\n\r\n")
    assert answer.startswith(f"HTTP/1.1 {status} "), answer


@pytest.mark.parametrize("name", ["a/b", "a%2Fb", "50%", "/", "..", "a b?c#d+e", "\u7ec4"])
def test_a_group_is_found_whatever_it_is_called(machine, name):
    submit(machine, hold=True, group=name)
    found = ask(machine, "GET", "/api/v1/groups/" + urllib.parse.quote(name, safe=""))
    assert found.status == 200 and found.document["name"] == name, found


def test_the_page_needs_nothing_from_elsewhere(machine):
    answer = ask(machine, "GET", "/docs")
    page = answer.body.decode()
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none';") and "unsafe" not in policy and "*" not in policy
    loaded = re.findall(r'(?:src|href)="([^"#][^"]*)"', page)
    assert sorted(loaded) == ["/api/v1/openapi.json", "/docs/script.js", "/docs/style.css"]
    for path in loaded:
        assert ask(machine, "GET", path).status == 200
    assert " style=" not in page and " on" + "click=" not in page
    # Every link within it leads somewhere, and every route is on it.
    for anchor in set(re.findall(r'href="#([^"]+)"', page)):
        assert f'id="{anchor}"' in page, anchor
    description = ask(machine, "GET", "/api/v1/openapi.json").document
    for methods in description["paths"].values():
        for operation in methods.values():
            assert f'<details id="{operation["operationId"]}">' in page


def test_the_page_is_in_the_language_of_who_asks(machine):
    for language in ("en", "en-GB, zh;q=0.5", "xx", "zh;q=0", "*"):
        assert b'<html lang="en">' in ask(machine, "GET", "/docs", Accept_Language=language).body, language
    for language in ("zh_CN", "zh-CN,zh;q=0.9", "zh", "xx, ZH-Hans-CN;q=0.1"):  # as browsers have it
        assert b'<html lang="en">' not in ask(machine, "GET", "/docs", Accept_Language=language).body, language
    page = ask(machine, "GET", "/docs", Accept_Language="zh_CN").body.decode()
    assert '<html lang="zh-CN">' in page and "列出任务" in page and "List jobs" not in page


@pytest.mark.parametrize(("start", "most"), [
    (["env", "GFLOW_API__MAX_CONNECTIONS=16"], 12),
    (["prlimit", "--nofile=128:128"], 18),  # clients have 30 of these, of which 7 are for logs
])
def test_who_finds_every_connection_in_use_is_told_when_to_try_again_and_commands_find_room(bare, start, most):
    bare.environment["GFLOW_API__LISTEN"] = "127.0.0.1:0"
    bare.ok(*start, "gflowd", "up", "--devices", bare.devices)
    host, port = json.loads(bare.ok("gflowd", "status", "--json"))["api_url"].removeprefix("http://").split(":")
    with ExitStack() as held:
        clients = [held.enter_context(socket.create_connection((host, int(port)), PATIENCE)) for _ in range(most + 1)]
        refused, *_ = select.select(clients, [], [], PATIENCE)[0]
        # Who sends head and body apart still writes when the answer is there, and gets it.
        refused.sendall(b"POST /api/v1/gpu/validate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n")
        refused.sendall(b"{}")
        head, _, body = b"".join(iter(lambda: refused.recv(65536), b"")).decode().partition("\r\n\r\n")
        assert bare.ok("gqueue", "--json")  # the socket has a quarter of its own
    assert head.startswith("HTTP/1.1 429 Too Many Requests\r\n") and "\r\nRetry-After: 1\r\n" in head, head
    assert json.loads(body)["detail"] == f"all {most} connections are in use; try again"
