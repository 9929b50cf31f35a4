# SPDX-License-Identifier: Apache-2.0
"""Hooks of schemathesis (SCHEMATHESIS_HOOKS): whose job or allocation a request that is right names.

Numbers that are made up name hardly ever anything that is there. In turn the one of such a request becomes one of the asker's own,
as the verb wants it, one of somebody else's, without If-Match, and stays made up. What became of it is a line of the file `met`.
GFLOW_TARGETS is a JSON document: where and as whom to ask, whose is what.
"""

import collections
import http.client
import json
import os
import urllib.parse

import bounded  # noqa: F401: its hooks, too
import schemathesis
import told_headers  # noqa: F401: its check, too
from schemathesis.generation import GenerationMode
from targets import KINDS, STATUS, Maker

TOLD = json.loads(os.environ["GFLOW_TARGETS"])
times = collections.Counter()
own = {}  # by kind: the one that was made last
last = None  # case, whose


def ask(method, target, body):
    """As the asker, over the same way."""
    at = urllib.parse.urlsplit(TOLD["url"])
    connection = http.client.HTTPConnection(at.hostname, at.port, timeout=90)
    headers = dict(TOLD["headers"]) | ({} if body is None else {"Content-Type": "application/json"})
    connection.request(method, target, None if body is None else json.dumps(body), headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def take_drains_back():
    """What may drain has drained something by now, where nothing starts any more."""
    for one in json.loads(ask("GET", "/api/v1/drain", None)[1])["drains"]:
        whole = {"node": one["node"], "gpu": one["gpu"], "uuid": one["uuid"]}
        ask("POST", "/api/v1/drain", {key: value for key, value in whole.items() if value} | {"resume": True})


def own_one(operation, kind):
    """The asker's; made anew where the one before is not as it has to be any more."""
    if not TOLD["may_make"]:
        return TOLD["own"][operation]
    maker = Maker(ask)
    if kind not in own or maker.status(own[kind]) != STATUS[kind]:
        take_drains_back()
        own[kind] = maker.make(kind)
    return own[kind]


def chosen(operation, kind):
    """Whose it is to be, and its number; none: as it was made up."""
    turn = times[operation] % 3
    times[operation] += 1
    if turn == 0:
        return "own", own_one(operation, kind)
    return ("other", TOLD["other"][operation]) if turn == 1 else None


def spare(case):
    """What is made up must not happen to name, and end, what a verb is to meet as somebody else's."""
    def spared(number):
        return int(number) + 1_000_000 if str(number) in map(str, TOLD["other"].values()) else number

    if "id" in (case.path_parameters or {}):
        case.path_parameters = dict(case.path_parameters) | {"id": spared(case.path_parameters["id"])}
    if isinstance(case.body, dict) and isinstance(case.body.get("jobs"), list):
        case.body = dict(case.body) | {"jobs": [spared(one) for one in case.body["jobs"]]}


@schemathesis.hook
def before_call(context, case, kwargs):
    global last
    last = None
    operation = f"{case.operation.method.upper()} {case.operation.path}"
    kind = KINDS.get((case.operation.method.upper(), case.operation.path))
    if kind is None or case.meta is None:
        return
    # A case may be wrong in its headers alone; gflowd ignores those it does not know.
    found = chosen(operation, kind) if case.meta.generation.mode == GenerationMode.POSITIVE else None
    if found is None:
        return spare(case)
    whose, number = found
    if "{id}" in case.operation.path:
        case.path_parameters = dict(case.path_parameters) | {"id": number}
    else:
        case.body = dict(case.body) | {"jobs": [number]}
    # Under a condition that is made up nothing is done, nor is it asked who may.
    case.headers = {name: value for name, value in (case.headers or {}).items() if name.lower() != "if-match"}
    last = case, operation, whose


@schemathesis.hook
def after_call(context, case, response):
    if last is None or last[0] is not case:
        return
    with open(TOLD["met"], "a") as met:
        met.write(json.dumps([last[1], last[2], response.status_code]) + "\n")
