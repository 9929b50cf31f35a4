# SPDX-License-Identifier: Apache-2.0
"""The OpenAPI document gflowd serves: it is one, its examples do what they say, answers are as it says."""

import http.client
import json
import re
import urllib.parse
from pathlib import Path

import jsonschema
import pytest
from described import headers_of, operation_at, resolved, untold
from http_client import Answer, ask
from machine import PATIENCE, Machine


API = Path(__file__).parents[2] / "docs/format/api.md"


@pytest.fixture
def served():
    made = Machine("sim:4xV100+4xA100")
    try:
        made.up()
        yield made
    finally:
        made.close()


def operations(description):
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def validator(description, schema):
    """References in it are to the whole description."""
    return jsonschema.Draft202012Validator({**schema, "components": description["components"]})


def check_answer(description, method, target, answer):
    """Whether an answer is one of those described."""
    operation = operation_at(description, method, target)
    told = operation["responses"].get(str(answer.status))
    assert told, (operation["operationId"], answer)
    headers = headers_of(description, operation, answer.status)
    assert ("Location" in headers) == ("Location" in answer.headers), (operation["operationId"], answer)
    assert not untold(description, method, target, answer.status, answer.headers), (operation["operationId"], answer)
    for name, header in headers.items():
        assert name in answer.headers or not header["required"], (operation["operationId"], name, answer)
        for said in answer.headers.get_all(name, []):
            is_number = header["schema"]["type"] == "integer"
            validator(description, header["schema"]).validate(int(said) if is_number else said)
    content = resolved(description, told).get("content", {})
    if not content:
        assert answer.body == b"", answer
        return
    media = answer.headers["Content-Type"].partition(";")[0]
    assert media in content, (operation["operationId"], answer)
    schema = content[media]["schema"]
    if media.endswith("json"):
        validator(description, schema).validate(answer.document)
    if media == "text/event-stream":
        lines = answer.body.decode().splitlines()
        told = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
        assert told, answer
        kinds = {option["$ref"].rpartition("/")[2]: option for option in schema["properties"]["data"]["contentSchema"]["anyOf"]}
        for event in told:
            validator(description, kinds[event["kind"]]).validate(event)


def target_of(path, operation, **segments):
    query = []
    for parameter in operation["parameters"]:
        if parameter.get("in") != "query" or "example" not in parameter:
            continue
        value = parameter["example"]
        if isinstance(value, list) and not parameter["explode"]:
            value = ",".join(value)
        for one in value if isinstance(value, list) else [value]:
            query.append((parameter["name"], json.dumps(one) if isinstance(one, bool) else one))
    path = re.sub(r"\{(\w+)\}", lambda name: str(segments[name[1]]), path)
    return path + ("?" + urllib.parse.urlencode(query) if query else "")


def test_it_is_a_description(served):
    answer = ask(served, "GET", "/api/v1/openapi.json")
    assert answer.status == 200 and answer.headers["Content-Type"] == "application/json", answer
    description = answer.document
    assert description["openapi"] == "3.1.0"
    names = [operation["operationId"] for _, _, operation in operations(description)]
    assert len(names) == len(set(names)) > 30
    for name, schema in description["components"]["schemas"].items():
        jsonschema.Draft202012Validator.check_schema(schema)
        assert "$ref" not in schema, name
    # Whatever is referred to is there, and whatever is there is referred to.
    told = set(re.findall(r'"\$ref": ?"#/([^"]+)"', json.dumps(description)))
    told |= {f"components/securitySchemes/{name}" for _, _, operation in operations(description)
             for any_of in operation["security"] for name in any_of}
    there = {f"components/{kind}/{name}" for kind, parts in description["components"].items() for name in parts}
    assert told == there, told ^ there


def test_it_says_who_may(served):
    description = ask(served, "GET", "/api/v1/openapi.json").document
    schemes = description["components"]["securitySchemes"]
    assert schemes["token"]["type"] == "http" and schemes["token"]["scheme"] == "bearer"
    assert schemes["certificate"]["type"] == "mutualTLS"
    told = {}
    for method, path, operation in operations(description):
        told[method, path] = [operation.get(name) for name in ("x-who", "x-role", "x-scope")]
        if operation["security"]:
            # The socket and loopback: a request carries nothing.
            by_credential = [{"token": [operation["x-scope"]]}, {"certificate": []}] if "x-scope" in operation else []
            assert operation["security"] == [{}, *by_credential], path
    assert told["POST", "/api/v1/tokens"][2] is None, "it is for the socket"
    assert told["GET", "/healthz"] == ["everyone, known or not", None, None]
    assert told["GET", "/api/v1/jobs"] == ["everyone who may connect", "user", "read"]
    assert told["PATCH", "/api/v1/jobs"] == ["the owner, operators", "user", "submit"]
    assert told["POST", "/api/v1/drain"] == ["operators", "operator", "operate"]
    assert told["POST", "/api/v1/daemon/stop"] == ["administrators", "administrator", "admin"]
    page = ask(served, "GET", "/docs").body.decode()
    assert "operators; with a token: scope operate" in page and "Bearer gflow_..." in page
    told = ask(served, "GET", "/docs", Accept_Language="zh_CN").body.decode()
    assert "操作员" in told and "everyone" not in told


def test_it_says_which_headers_are_read(served):
    description = ask(served, "GET", "/api/v1/openapi.json").document
    reads = {}
    for _, _, operation in operations(description):
        for parameter in operation["parameters"]:
            reads.setdefault(parameter.get("$ref", "").rpartition("/")[2], set()).add(operation["operationId"])
    assert reads["Range"] == {"show_job_log"} and reads["LastEventID"] == {"listen_to_events"}
    assert "update_job" in reads["IfMatch"] and "submit_jobs" in reads["IdempotencyKey"]
    page = ask(served, "GET", "/docs").body.decode()
    for name in ("Range", "Last-Event-ID", "If-Match", "Idempotency-Key"):
        assert f"<code>{name}</code>" in page, name
    # Whatever is read and has a tag is asked for again by it.
    tagged = 0
    for method, path, operation in operations(description):
        answer = ask(served, "GET", target_of(path, operation)) if method == "GET" and "{" not in path else None
        if answer and answer.status == 200:
            has_tag = "ETag" in answer.headers
            assert has_tag == ("304" in operation["responses"]) == (operation["operationId"] in reads["IfNoneMatch"]), path
            tagged += has_tag
    assert tagged > 15


def test_it_says_where_what_was_made_is_shown(served):
    """Of each answer that has Location, the route it leads to, which there is."""
    description = ask(served, "GET", "/api/v1/openapi.json").document
    told = {(operation["operationId"], status): answer["headers"]["Location"]
            for _, _, operation in operations(description) for status, answer in operation["responses"].items()
            if "Location" in answer.get("headers", {})}
    job, allocation = "^/api/v1/jobs/[0-9]+$", "^/api/v1/gpu/allocations/[0-9]+$"
    assert {key: header["schema"]["pattern"] for key, header in told.items()} == {
        ("submit_jobs", "201"): job,
        **{(name, "202"): allocation for name in ("allocate_gpus", "set_up_pytorch", "set_up_tensorflow",
                                                  "clean_up_gpus", "release_gpu_allocation")}}
    # What is repeated under a key has none once what was made is forgotten.
    keyed = {"submit_jobs", "allocate_gpus", "set_up_pytorch", "set_up_tensorflow"}
    assert {name for (name, _), header in told.items() if not header["required"]} == keyed
    assert all(header["schema"]["format"] == "uri-reference" for header in told.values())
    shown = [re.sub("{id}", "[0-9]+", path) for method, path, _ in operations(description) if method == "GET"]
    assert {header["schema"]["pattern"] for header in told.values()} <= {f"^{path}$" for path in shown}


def prepare(machine):
    """Job 1 runs, 2 is on hold, 3 waits and is all of a group; there is an allocation."""
    wait = "2099-01-01T00:00:00Z"
    specs = [{"request": {"gpus": 0}}, {"hold": True}, {"begin": wait, "group": "sweep"}]
    for spec in specs:
        body = {"items": [{"spec": {"work_dir": "/", "command": "sleep 600", **spec},
                           "payload": {"argv": ["sleep", "600"], "environment": ["PATH=/usr/bin:/bin"]}}]}
        assert ask(machine, "POST", "/api/v1/jobs", json.dumps(body)).status == 201
    machine.running(1)
    given = ask(machine, "POST", "/api/v1/gpu/allocate", "{}").document
    device = ask(machine, "GET", "/api/v1/devices").document["devices"][0]
    return {"allocation": given["allocation_id"], "node": given["node_name"], "uuid": device["uuid"]}


def test_its_examples_do_what_they_say(served):
    description = ask(served, "GET", "/api/v1/openapi.json").document
    there = prepare(served)
    # What stands for {name} is of what the path is.
    names = {"groups": "sweep", "nodes": there["node"], "tokens": "ci"}
    # What ends something comes after what needs it.
    last = ["signal_jobs", "renew_gpu_allocation", "release_gpu_allocation", "clean_up_gpus", "revoke_token", "cancel_jobs",
            "cancel_job", "stop_daemon"]
    order = sorted(operations(description),
                   key=lambda one: last.index(one[2]["operationId"]) if one[2]["operationId"] in last else -1)
    for method, path, operation in order:
        name = operation["operationId"]
        job = 3 if name in ("update_job", "cancel_job") else 1  # which is there until then
        segments = {"id": there["allocation"] if "allocations" in path else job, "node_name": there["node"],
                    "uuid": there["uuid"], "name": next((names[part] for part in path.split("/") if part in names), None)}
        if name == "clean_up_gpus":
            assert ask(served, "POST", "/api/v1/gpu/allocate", "{}").document["success"]
        body = None
        if "requestBody" in operation:
            content = operation["requestBody"]["content"]["application/json"]
            validator(description, content["schema"]).validate(content["example"])
            body = json.dumps(content["example"])
        target = target_of(path, operation, **segments)
        answer = ask(served, method, target, body)
        # Nobody waits here for room that a move would make: test_defrag.py. No driver moves: test_moving_jobs.py.
        if name in ("apply_defrag", "move_job"):
            assert answer.status == 409, answer
            continue
        assert 200 <= answer.status < 300, (name, answer)
        check_answer(description, method, target, answer)


def over_tcp(machine, method, target, **headers):
    """Over loopback."""
    at = urllib.parse.urlsplit(machine.get("/api/v1/daemon")["api_url"])
    connection = http.client.HTTPConnection(at.hostname, at.port, timeout=PATIENCE)
    connection.request(method, target, None, headers)
    answer = Answer(connection.getresponse())
    connection.close()
    return answer


@pytest.fixture
def on_loopback():
    made = Machine("sim:2xV100")
    made.environment["GFLOW_API__LISTEN"] = "127.0.0.1:0"
    try:
        made.up()
        yield made
    finally:
        made.close()


def answers_with_headers(machine):
    """Requests, and answers to them that have all the headers that any has."""
    def asked(status, method, target, body=None, **headers):
        answer = ask(machine, method, target, body, **headers)
        assert answer.status == status, answer
        return method, target, answer

    machine.wait(machine.submit("--wrap", "echo written"))
    machine.submit("--hold", "--wrap", "true")
    yield asked(200, "GET", "/api/v1/jobs?limit=1")
    spec = {"spec": {"work_dir": "/", "hold": True}, "payload": {"argv": ["true"]}}
    yield asked(201, "POST", "/api/v1/jobs", json.dumps({"items": [spec]}))
    job = asked(200, "GET", "/api/v1/jobs/2")
    yield job
    yield asked(304, "GET", "/api/v1/jobs/2", If_None_Match=job[2].headers["ETag"])
    yield asked(200, "PATCH", "/api/v1/jobs/2", '{"priority": 3}')
    yield asked(206, "GET", "/api/v1/jobs/1/log", Range="bytes=0-3")
    yield asked(416, "GET", "/api/v1/jobs/1/log", Range="bytes=1000-")
    yield asked(200, "GET", "/api/v1/events?follow=false")
    yield asked(200, "GET", "/docs")
    for status in [401] * 10 + [429]:  # by then too often
        told = over_tcp(machine, "GET", "/api/v1/queue", Authorization="Bearer gflow_nobodys")
        assert told.status == status, told
        yield "GET", "/api/v1/queue", told


def test_every_header_it_tells_of_comes(on_loopback):
    description = on_loopback.get("/api/v1/openapi.json")
    seen = set()
    for method, target, answer in answers_with_headers(on_loopback):
        check_answer(description, method, target, answer)
        seen |= set(answer.headers)
    told = {name for _, _, operation in operations(description) for status in operation["responses"]
            for name in headers_of(description, operation, status)}
    assert told <= seen, told - seen
    # One beside those is told for each.
    assert len(description["components"]["headers"]) == len(told - {"Location"})
    page = ask(on_loopback, "GET", "/docs").body.decode()
    for name in told | {"Allow"}:
        assert f'id="header-{name}"' in page, name
    table = API.read_text().partition("\n| header of answers |")[2].partition("\n\n")[0]
    rows = [row.split("|")[1] for row in table.splitlines()[2:]]
    assert sorted(re.findall("`([^`]+)`", " ".join(rows))) == sorted(told | {"Allow"})


@pytest.mark.parametrize(("target", "near"), [
    ("/api/v1/jobs?stat=Queued", "did you mean 'state'?"),
    ("/api/v1/machine?limit=1", "there are none here"),
    ("/api/v1/gpu/nodes?gpu_typ=V100", "did you mean 'gpu_type'?"),
])
def test_an_unknown_parameter_is_refused_with_the_nearest(served, target, near):
    answer = ask(served, "GET", target)
    assert answer.status == 400 and near in answer.document["detail"], answer
