# SPDX-License-Identifier: Apache-2.0
"""The API against its own description: schemathesis makes up requests, right and wrong ones, as different people.

No answer may be a fault of the server (5xx), nor one that the description does not have. `./dev test --full` asks
thousands of times (GFLOW_CONTRACT_CASES).
"""

import json
import os
import re
import subprocess

import pytest
from machine import PATIENCE, Ran
from pypi import program

FULL = bool(os.environ.get("GFLOW_TEST_FULL"))
# Of each operation. What the examples and the limits of the schemas give comes on top.
CASES = int(os.environ.get("GFLOW_CONTRACT_CASES", "60" if FULL else "4"))
LISTEN = {"GFLOW_API__LISTEN": "127.0.0.1:0"}
CHECKS = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "unsupported_method",
    "allow_header_conformance",
]
# What answers with news, or for as long as a job runs.
WAITING = ["/api/v1/changes", "/api/v1/events", "/api/v1/jobs/{id}/log"]
JOBS = {
    "items": [
        {
            "spec": {"name": name, "work_dir": "/", "command": "sleep 600", **spec},
            "payload": {"argv": ["sleep", "600"], "environment": ["PATH=/usr/bin:/bin"]},
        }
        for name, spec in (("runs", {"request": {"gpus": 1}}), ("held", {"hold": True}))
    ]
}


class Identity:
    """Who asks: a user of the town, and what makes their requests theirs (headers of a token, say)."""

    def __init__(self, name, user, daemon="root", headers=()):
        self.name = name
        self.user = user
        self.daemon = daemon  # whose gflowd is asked: root's serves everybody
        self.headers = headers


IDENTITIES = [
    Identity("owner", "alice"),
    Identity("other", "bob"),
    # Someone this gflowd does not serve, whoever it is, is as good as nobody.
    Identity("anonymous", "bob", daemon="alice"),
    # A page in a browser, which is nobody whoever looks at it.
    Identity("page", "alice", headers=("Origin: http://elsewhere.example",)),
]


def start(town, user):
    """A daemon of `user`; where it listens."""
    mode = ["--system"] if user == "root" else []
    town.ok(user, "gflowd", *mode, "up", "--devices", "sim:4xV100+4xA100", env=LISTEN)
    return json.loads(town.ok(user, "gflowd", *mode, "status", "--json"))["api_url"]


def curl(town, user, *words):
    return json.loads(town.ok(user, "curl", "-sS", "--fail-with-body", *words))


def shown(jobs):
    return [(job["id"], job["status"], job["spec"]["name"], job["spec"]["priority"]) for job in jobs]


def generated(report):
    """How many requests were made, as the report has it."""
    found = re.search(r"(\d+) generated", report)
    assert found, report
    return int(found[1])


def ask_everything(town, identity, url, description):
    path = f"/home/{identity.user}/openapi.json"
    town.ok(identity.user, "tee", path, input=json.dumps(description))
    headers = [word for header in identity.headers for word in ("--header", header)]
    started = town.start(
        identity.user, program("st"), "run", path, "--url", url, "--no-color", "--workers", "2",
        "--phases", "examples,coverage,fuzzing" if FULL else "examples,fuzzing",
        "--max-examples", CASES, "--checks", ",".join(CHECKS), "--generation-deterministic",
        "--suppress-health-check", "all", "--request-timeout", 90,
        *headers, *[word for path in WAITING for word in ("--exclude-path", path)],
    )
    out, err = started.communicate(timeout=3600 if FULL else PATIENCE)
    return Ran(subprocess.CompletedProcess("st", started.returncode, out, err))


@pytest.mark.parametrize("identity", IDENTITIES, ids=lambda one: one.name)
def test_every_answer_is_as_described(town, identity):
    url = start(town, identity.daemon)
    whose = "alice"
    curl(town, whose, "-H", "Content-Type: application/json", "-d", json.dumps(JOBS), f"{url}/api/v1/jobs")
    description = curl(town, whose, f"{url}/api/v1/openapi.json")
    before = curl(town, whose, f"{url}/api/v1/jobs?user={whose}")["jobs"]
    ran = ask_everything(town, identity, url, description)
    if ran.code != 0:
        pytest.fail(f"{ran.out[-50000:]}\n{ran.err}", pytrace=False)
    assert generated(ran.out) >= CASES * 10, ran
    print(f"{identity.name}: {generated(ran.out)} cases")
    if identity.name != "owner":
        after = curl(town, whose, f"{url}/api/v1/jobs?user={whose}")["jobs"]
        assert shown(after) == shown(before), "another's jobs were touched"
    assert curl(town, whose, f"{url}/api/v1/daemon")["pid"] > 0
