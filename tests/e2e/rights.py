# SPDX-License-Identifier: Apache-2.0
"""Every route, and what each who asks is answered: a route of openapi.json that is not here fails the tests.

A line: method, target, what of alice's is made for it (its id or name stands for {id}, {name}), the body, and the status for each of
WHO. For a new route write what each has to get; all of it is asked of a real gflowd (test_rights.py).

    nobody   shows nothing, over TLS                   read .. admin  a token of alice's of that scope
    expired  a token that was right once               owner          alice herself on this machine, over loopback: a user
    host     another name than this machine's          other          bob, as she
    origin   a web page of elsewhere                   operator  mallory, with a token of scope operate

The statuses are those where users are shown all of others' jobs; at_level() says what is otherwise where they are shown less.
"""

import re

from shared_lab import SCOPES

WHO = ("nobody", "expired", "host", "origin", *SCOPES, "owner", "other", "operator")
LEVELS = ("all", "usage", "none")  # [access] others_jobs

JOBS = {"items": [{"spec": {"work_dir": "/", "command": "true", "hold": True},
                   "payload": {"argv": ["true"], "environment": []}}]}
THIS = {"jobs": ["{id}"]}
PLACE = {"request": {"gpus": 1}}
NEED = {"gpu_count": 1, "ttl_seconds": 600}
DRAIN = {"gpu": 31, "reason": "loud"}

# fmt: off
TABLE = [
    # method, target                            of alice's    body      nobody exp. host orig | read subm oper admin | owner other oper
    ("GET", "/healthz",                             None, None,         (200, 200, 421, 403,    200, 200, 200, 200,    200, 200, 200)),
    ("GET", "/readyz",                              None, None,         (200, 200, 421, 403,    200, 200, 200, 200,    200, 200, 200)),
    ("GET", "/version",                             None, None,         (401, 401, 421, 403,    200, 200, 200, 200,    200, 200, 200)),
    ("GET", "/metrics",                             None, None,         (401, 401, 421, 403,    200, 200, 200, 200,    200, 200, 200)),
    ("GET", "/docs",                                None, None,         (401, 401, 421, 403,    200, 200, 200, 200,    200, 200, 200)),
    ("GET", "/docs/script.js",                      None, None,         (401, 401, 421, 403,    200, 200, 200, 200,    200, 200, 200)),
    ("GET", "/docs/style.css",                      None, None,         (401, 401, 421, 403,    200, 200, 200, 200,    200, 200, 200)),
    ("GET", "/api/v1/openapi.json",                 None, None,         (401, 401, 421, 403,    200, 200, 200, 200,    200, 200, 200)),
    ("GET", "/api/v1/principal",                    None, None,         (401, 401, 421, 403,    200, 200, 200, 200,    200, 200, 200)),
    ("GET", "/api/v1/settings",                     None, None,         (401, 401, 421, 403,    200, 200, 200, 200,    200, 200, 200)),
    ("GET", "/api/v1/daemon",                       None, None,         (401, 401, 421, 403,    200, 200, 200, 200,    200, 200, 200)),
    ("POST", "/api/v1/daemon/reload",               None, None,         (401, 401, 421, 403,    403, 403, 403, 204,    403, 403, 403)),
    ("POST", "/api/v1/daemon/stop",                 None, None,         (401, 401, 421, 403,    403, 403, 403, 204,    403, 403, 403)),
    ("GET", "/api/v1/changes?revision=0",           None, None,         (401, 401, 421, 403,    200, 200, 200, 200,    200, 200, 200)),
    ("GET", "/api/v1/events?follow=false",         "job", None,         (401, 401, 421, 403,    200, 200, 200, 200,    200, 200, 200)),
    # What somebody looks at.
    ("GET", "/api/v1/jobs",                        "job", None,         (401, 401, 421, 403,    200, 200, 200, 200,    200, 200, 200)),
    ("GET", "/api/v1/jobs/newest",                 "job", None,         (401, 401, 421, 403,    200, 200, 200, 200,    200, 404, 404)),
    ("GET", "/api/v1/jobs/{id}",                   "job", None,         (401, 401, 421, 403,    200, 200, 200, 200,    200, 200, 200)),
    ("GET", "/api/v1/jobs/{id}/explain",           "job", None,         (401, 401, 421, 403,    200, 200, 200, 200,    200, 200, 200)),
    ("GET", "/api/v1/jobs/{id}/log",           "running", None,         (401, 401, 421, 403,    200, 200, 200, 200,    200, 403, 200)),
    ("GET", "/api/v1/snapshot",                    "job", None,         (401, 401, 421, 403,    200, 200, 200, 200,    200, 200, 200)),
    ("GET", "/api/v1/queue",                     "waiting", None,         (401, 401, 421, 403,    200, 200, 200, 200,    200, 200, 200)),
    ("GET", "/api/v1/defrag",                    "waiting", None,         (401, 401, 421, 403,    200, 200, 200, 200,    200, 200, 200)),
    ("GET", "/api/v1/groups",                "group", None,         (401, 401, 421, 403,    200, 200, 200, 200,    200, 200, 200)),
    ("GET", "/api/v1/groups/{name}",         "group", None,         (401, 401, 421, 403,    200, 200, 200, 200,    200, 200, 200)),
    ("GET", "/api/v1/statistics",              "job", None,         (401, 401, 421, 403,    200, 200, 200, 200,    200, 200, 200)),
    ("GET", "/api/v1/nodes",               "running", None,         (401, 401, 421, 403,    200, 200, 200, 200,    200, 200, 200)),
    ("GET", "/api/v1/nodes/{name}",           "node", None,         (401, 401, 421, 403,    200, 200, 200, 200,    200, 200, 200)),
    ("GET", "/api/v1/devices",             "running", None,         (401, 401, 421, 403,    200, 200, 200, 200,    200, 200, 200)),
    ("GET", "/api/v1/devices/{uuid}",       "device", None,         (401, 401, 421, 403,    200, 200, 200, 200,    200, 200, 200)),
    ("GET", "/api/v1/topology",                 None, None,         (401, 401, 421, 403,    200, 200, 200, 200,    200, 200, 200)),
    ("GET", "/api/v1/machine",                 "running", None,         (401, 401, 421, 403,    200, 200, 200, 200,    200, 200, 200)),
    ("GET", "/api/v1/drain",                        None, None,         (401, 401, 421, 403,    200, 200, 200, 200,    200, 200, 200)),
    ("GET", "/api/v1/tokens",                    "token", None,         (401, 401, 421, 403,    200, 200, 200, 200,    200, 200, 200)),
    ("POST", "/api/v1/jobs/check",                  None, JOBS,         (401, 401, 421, 403,    200, 200, 200, 200,    200, 200, 200)),
    ("POST", "/api/v1/place",                       None, PLACE,        (401, 401, 421, 403,    200, 200, 200, 200,    200, 200, 200)),
    ("GET", "/api/v1/gpu/status",                   None, None,         (401, 401, 421, 403,    200, 200, 200, 200,    200, 200, 200)),
    ("GET", "/api/v1/gpu/nodes",                    None, None,         (401, 401, 421, 403,    200, 200, 200, 200,    200, 200, 200)),
    ("GET", "/api/v1/gpu/health",                   None, None,         (401, 401, 421, 403,    200, 200, 200, 200,    200, 200, 200)),
    ("GET", "/api/v1/gpu/monitoring",               None, None,         (401, 401, 421, 403,    200, 200, 200, 200,    200, 200, 200)),
    ("POST", "/api/v1/gpu/validate",                None, NEED,         (401, 401, 421, 403,    200, 200, 200, 200,    200, 200, 200)),
    ("GET", "/api/v1/gpu/allocations",      "allocation", None,         (401, 401, 421, 403,    200, 200, 200, 200,    200, 200, 200)),
    ("GET", "/api/v1/gpu/allocations/{id}", "allocation", None,         (401, 401, 421, 403,    200, 200, 200, 200,    200, 403, 200)),
    # What somebody makes, in their own name.
    ("POST", "/api/v1/jobs",                        None, JOBS,         (401, 401, 421, 403,    403, 201, 201, 201,    201, 201, 201)),
    ("POST", "/api/v1/gpu/allocate",                None, NEED,         (401, 401, 421, 403,    403, 200, 200, 200,    200, 200, 200)),
    ("POST", "/api/v1/gpu/setup-pytorch",           None, NEED,         (401, 401, 421, 403,    403, 200, 200, 200,    200, 200, 200)),
    ("POST", "/api/v1/gpu/setup-tensorflow",        None, NEED,         (401, 401, 421, 403,    403, 200, 200, 200,    200, 200, 200)),
    ("POST", "/api/v1/tokens",                      None, {"name": "x"},  (401, 401, 421, 403,  403, 403, 403, 403,    403, 403, 403)),
    # What changes something of alice's.
    ("PATCH", "/api/v1/jobs",                      "job", THIS | {"name": "changed"},
                                                                        (401, 401, 421, 403,    403, 200, 200, 200,    200, 403, 200)),
    ("PATCH", "/api/v1/jobs/{id}",                 "job", {"name": "changed"},
                                                                        (401, 401, 421, 403,    403, 200, 200, 200,    200, 403, 200)),
    ("DELETE", "/api/v1/jobs/{id}",                "job", None,         (401, 401, 421, 403,    403, 200, 200, 200,    200, 403, 200)),
    ("POST", "/api/v1/jobs/cancel",                "job", THIS,         (401, 401, 421, 403,    403, 200, 200, 200,    200, 403, 200)),
    ("POST", "/api/v1/jobs/signal",            "running", THIS | {"signal": 10},
                                                                        (401, 401, 421, 403,    403, 200, 200, 200,    200, 403, 200)),
    ("POST", "/api/v1/jobs/hold",              "waiting", THIS,         (401, 401, 421, 403,    403, 200, 200, 200,    200, 403, 200)),
    ("POST", "/api/v1/jobs/release",               "job", THIS,         (401, 401, 421, 403,    403, 200, 200, 200,    200, 403, 200)),
    ("POST", "/api/v1/jobs/suspend",           "running", THIS,         (401, 401, 421, 403,    403, 200, 200, 200,    200, 403, 200)),
    ("POST", "/api/v1/jobs/resume",            "running", THIS,         (401, 401, 421, 403,    403, 200, 200, 200,    200, 403, 200)),
    ("POST", "/api/v1/defrag",                 "waiting", {"id": "{id}", "moves": ["{id}"]},
                                                                        (401, 401, 421, 403,    403, 409, 409, 409,    409, 403, 409)),
    ("POST", "/api/v1/jobs/{id}/suspend",      "running", None,         (401, 401, 421, 403,    403, 200, 200, 200,    200, 403, 200)),
    ("POST", "/api/v1/jobs/{id}/resume",       "running", None,         (401, 401, 421, 403,    403, 200, 200, 200,    200, 403, 200)),
    ("POST", "/api/v1/jobs/{id}/move",         "running", {"gpu": 1},   (401, 401, 421, 403,    403, 409, 409, 409,    409, 403, 409)),
    ("DELETE", "/api/v1/tokens/{name}",          "token", None,         (401, 401, 421, 403,    403, 403, 403, 204,    204, 404, 403)),
    ("DELETE", "/api/v1/gpu/cleanup/{node_name}?gpu_count=1",
                                            "allocation", None,         (401, 401, 421, 403,    403, 200, 200, 200,    200, 404, 404)),
    ("DELETE", "/api/v1/gpu/allocations/{id}",
                                            "allocation", None,         (401, 401, 421, 403,    403, 200, 200, 200,    200, 403, 200)),
    ("POST", "/api/v1/gpu/allocations/{id}/renew",
                                            "allocation", {"ttl_seconds": 900},
                                                                        (401, 401, 421, 403,    403, 200, 200, 200,    200, 403, 200)),
    # What is the machine's. Over loopback everybody is a user.
    ("POST", "/api/v1/drain",                       None, DRAIN,        (401, 401, 421, 403,    403, 403, 200, 200,    403, 403, 200)),
]
# fmt: on


def at_level(level, method, target, body, who, status):
    """The same where users are shown less of others' jobs: what they do not see is answered as what does not exist."""
    if who != "other":
        return status
    is_named = "{id}" in target or "{id}" in str(body)
    if target == "/api/v1/groups/{name}" and level != "all":
        return 404
    return 404 if level == "none" and is_named else status


def path_of(target):
    return target.partition("?")[0]


def least_scope(statuses):
    """The least scope of a token that is let in; "open" where nobody has to show anything."""
    told = dict(zip(WHO, statuses, strict=True))
    if told["nobody"] not in (401, 403):
        return "open"
    let_in = [scope for scope in SCOPES if told[scope] != 403]
    return let_in[0] if let_in else None


def who_may(statuses):
    """The same for people, as openapi.json has it (x-who). Whose name leads to something of their own (404 for others) is everyone."""
    told = dict(zip(WHO, statuses, strict=True))
    if told["nobody"] not in (401, 403):
        return "everyone, known or not"
    if told["owner"] == 403:
        return "administrators" if told["operator"] == 403 else "operators"
    if told["operator"] == 403:
        return "the owner, administrators"
    return "the owner, operators" if told["other"] == 403 else "everyone who may connect"


def missing(description):
    """The routes that one of the two has and the other has not."""
    served = {(method.upper(), path) for path, methods in description["paths"].items() for method in methods}
    return served ^ {(method, path_of(target)) for method, target, *_ in TABLE}


def filled(value, names):
    """A target or a body with what is made for it in place of {id} and {name}."""
    if isinstance(value, dict):
        return {key: filled(one, names) for key, one in value.items()}
    if isinstance(value, list):
        return [filled(one, names) for one in value]
    if value == "{id}":
        return names["id"]
    return re.sub(r"\{(\w+)\}", lambda found: str(names[found[1]]), value) if isinstance(value, str) else value
