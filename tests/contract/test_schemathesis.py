# SPDX-License-Identifier: Apache-2.0
"""The API against its own description: schemathesis makes up requests, right and wrong ones, as different people.

No answer may be a fault of the server (5xx), nor one that the description does not have, and nothing of somebody else's may have
changed. Of those who are let in each asks some of the operations, the others the examples of all; `./dev test --full` has everyone ask
everything, and goes on at random.
"""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from machine import PATIENCE, Ran
from pypi import program
from shared_lab import Lab

FULL = bool(os.environ.get("GFLOW_TEST_FULL"))
# Made up at random of each operation, in full; what the examples and the limits of the schemas give comes before.
CASES = int(os.environ.get("GFLOW_CONTRACT_CASES", "40"))
LEAST_CASES_IN_FULL = 5000  # of all together
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


class Identity:
    """Who asks: a user of the town, what they show, and whose things they must not change."""

    def __init__(self, name, user="alice", token=None, headers=(), victim="alice"):
        self.name = name
        self.user = user
        self.token = token  # of alice's: its name
        self.headers = headers
        self.victim = victim  # nobody: they may

    @property
    def is_let_in(self):
        return self.name not in ("expired", "anonymous", "page")


IDENTITIES = [
    Identity("owner", victim="bob"),
    Identity("other", user="bob"),
    Identity("read", token="read"),  # not even what is her own
    Identity("submit", token="submit", victim="bob"),
    Identity("operate", token="operate", victim=None),
    Identity("admin", token="admin", victim=None),
    Identity("expired", token="expired"),
    # Over TLS the kernel cannot say who it is.
    Identity("anonymous", user="bob"),
    # A page in a browser, which is nobody whoever looks at it.
    Identity("page", headers=("Origin: https://elsewhere.example",)),
]
LET_IN = [one for one in IDENTITIES if one.is_let_in]


@pytest.fixture
def lab(town):
    return Lab(town)


def make_things(lab, user):
    """Jobs 1 to 10, which the examples and whoever counts from one name, and the token 'ci' of the examples."""
    mouth = lab.mouth(user)
    status, text = mouth.ask("POST", "/api/v1/gpu/allocate", {"gpu_count": 1, "ttl_seconds": 80000})
    assert status == 200, text
    items = [{"spec": {"work_dir": "/", "command": "sleep", **more},
              "payload": {"argv": ["sleep", "infinity"], "environment": ["PATH=/usr/bin:/bin"]}}
             for more in ({"request": {"gpus": 1}}, *({"hold": True} for _ in range(8)))]
    status, text = mouth.ask("POST", "/api/v1/jobs", {"items": items})
    assert status == 201 and [one["id"] for one in json.loads(text)["items"]] == list(range(2, 11)), text
    lab.town.running(1)
    lab.town.running(2)
    lab.town.ok(user, "gctl", "token", "create", "ci")


def things(lab, user):
    """All of a user's that somebody could have changed or taken away, or made in their name."""
    mouth = lab.mouth(user)
    jobs = lab.of(mouth, f"/api/v1/jobs?user={user}&limit=1000")["jobs"]
    allocations = lab.of(mouth, "/api/v1/gpu/allocations")["allocations"]
    return ([(job["id"], job["status"], job["spec"]) for job in jobs],
            [(one["allocation_id"], one["state"], one["expires_at"]) for one in allocations],
            [(one["name"], one["scope"]) for one in lab.of(mouth, "/api/v1/tokens")["tokens"]])


def operations(description, identity):
    """Those an identity asks; those who are let in together all."""
    ids = [one["operationId"] for methods in description["paths"].values() for one in methods.values()]
    if identity.name == "admin":
        ids.remove("stop_daemon")  # which would do as it is told: tests/e2e/test_rights.py
    return ids if FULL or not identity.is_let_in else ids[LET_IN.index(identity)::len(LET_IN)]


def phases(identity):
    if FULL:
        return "examples,coverage,fuzzing"
    return "examples,coverage" if identity.is_let_in else "examples"


def generated(report):
    """How many requests were made, as the report has it."""
    found = re.search(r"(\d+) generated", report)
    assert found, report
    return int(found[1])


def ask_everything(lab, identity, description, ids):
    path = f"/home/{identity.user}/openapi.json"
    lab.town.ok(identity.user, "tee", path, input=json.dumps(description))
    url = f"http://127.0.0.1:{lab.port}"
    if identity.name == "anonymous":
        url = f"https://127.0.0.1:{lab.tls_port}"
    headers = list(identity.headers)
    if identity.token:
        secret = lab.expired if identity.token == "expired" else lab.tokens[identity.token]
        headers.append(f"Authorization: Bearer {secret}")
    # Who is not known is told so, and not which methods there are.
    checks = [one for one in CHECKS if identity.is_let_in or one != "unsupported_method"]
    started = lab.town.start(
        identity.user, program("st"), "--config-file", Path(__file__).with_name("schemathesis.toml"), "run", path,
        "--url", url, "--no-color", "--workers", "1", "--tls-verify", "false",
        "--phases", phases(identity), "--max-examples", CASES,
        "--checks", ",".join(checks), "--generation-deterministic", "--generation-with-security-parameters", "false",
        "--suppress-health-check", "all", "--warnings", "off", "--request-timeout", 90,
        *(word for header in headers for word in ("--header", header)),
        *(word for one in ids for word in ("--include-operation-id", one)),
        env={"SCHEMATHESIS_HOOKS": "bounded", "PYTHONPATH": str(Path(__file__).parent)},
    )
    out, err = started.communicate(timeout=3600 if FULL else PATIENCE)
    return Ran(started.returncode, out, err)


@pytest.mark.parametrize("identity", IDENTITIES, ids=lambda one: one.name)
def test_every_answer_is_as_described(lab, identity):
    if identity.victim:
        make_things(lab, identity.victim)
        before = things(lab, identity.victim)
    description = lab.of_alice("/api/v1/openapi.json")
    ids = operations(description, identity)
    ran = ask_everything(lab, identity, description, ids)
    if ran.code != 0:
        pytest.fail(f"{ran.out[-50000:]}\n{ran.err}", pytrace=False)
    least = LEAST_CASES_IN_FULL / len(IDENTITIES) if FULL else 10 * len(ids) if identity.is_let_in else len(ids) / 3
    assert generated(ran.out) >= least, ran
    print(f"{identity.name}: {generated(ran.out)} cases of {len(ids)} operations")
    if identity.victim:
        assert things(lab, identity.victim) == before, "another's things were touched"
    assert lab.of_alice("/api/v1/daemon")["pid"] > 0
