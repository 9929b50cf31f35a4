# SPDX-License-Identifier: Apache-2.0
"""The API against its own description: schemathesis makes up requests, right and wrong ones, as different people.

No answer may be a fault of the server (5xx), nor one that the description does not have, and nothing of somebody else's may have
changed. Each has jobs and allocations of their own beside somebody else's, and a third each of the right requests names one of
these (targeted.py): verbs do what they are for with what is one's own, and nothing with the other's.
Of those who are let in each asks some of the operations, the others the examples of all; `./dev test --full` has everyone ask
everything, and goes on at random.
"""

import collections
import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from machine import PATIENCE, Ran
from pypi import program
from shared_lab import Lab
from targets import KINDS, NEVER_DONE, Maker

FULL = bool(os.environ.get("GFLOW_TEST_FULL"))
# Made up at random of each operation, in full; what the examples and the limits of the schemas give comes before.
CASES = int(os.environ.get("GFLOW_CONTRACT_CASES", "40"))
MODULES = [Path(__file__).parent, Path(__file__).parents[1] / "e2e"]
LEAST_CASES_IN_FULL = 5000  # of all together
CHECKS = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "no_untold_header",  # told_headers.py
    "response_schema_conformance",
    "negative_data_rejection",
    "unsupported_method",
    "allow_header_conformance",
]


class Identity:
    """Who asks: a user of the town, what they show, and whose things they may change: nobody's, their own or all."""

    def __init__(self, name, user="alice", token=None, headers=(), may="none"):
        self.name = name
        self.user = user
        self.token = token  # of alice's: its name
        self.headers = headers
        self.may = may

    @property
    def stranger(self):
        return "bob" if self.user == "alice" else "alice"

    @property
    def victims(self):
        """Whose things stay as they are."""
        return {"none": [self.stranger, self.user], "own": [self.stranger], "all": []}[self.may]

    @property
    def is_let_in(self):
        return self.name not in ("expired", "anonymous", "page")


IDENTITIES = [
    Identity("owner", may="own"),
    Identity("other", user="bob", may="own"),
    Identity("read", token="read"),  # not even what is her own
    Identity("submit", token="submit", may="own"),
    Identity("operate", token="operate", may="all"),
    Identity("admin", token="admin", may="all"),
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
    """One for each operation that names a job or an allocation, by operation, and the token 'ci' of the examples."""
    maker = Maker(lab.mouth(user).ask)
    made = {f"{method} {path}": maker.make(kind) for (method, path), kind in KINDS.items()}
    lab.town.ok(user, "gctl", "token", "create", "ci")
    return made


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


def check_verbs(identity, asked, met):
    """That verbs met what is one's own and what is not, and did something with what one may change alone."""
    statuses = collections.defaultdict(list)
    for operation, whose, status in met:
        statuses[operation, whose].append(status)
    for method, path in KINDS:
        if (method, path) not in asked or method == "GET":
            continue
        for whose in ("own", "other"):
            told = statuses[f"{method} {path}", whose]
            if identity.may == "all" or identity.may == whose:
                is_done = (lambda status: status == 409) if (method, path) in NEVER_DONE else (lambda status: status < 300)
                assert any(is_done(status) for status in told), (method, path, whose, told)
            else:
                assert all(status >= 400 for status in told), (method, path, whose, told)
                if identity.is_let_in:
                    assert {403, 404} & set(told), (method, path, whose, told)


def ask_everything(lab, identity, description, ids, targets):
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
        env={"SCHEMATHESIS_HOOKS": "targeted", "PYTHONPATH": os.pathsep.join(map(str, MODULES)),
             "GFLOW_TARGETS": json.dumps(targets | {"url": url, "headers": [header.split(": ", 1) for header in headers]})},
    )
    out, err = started.communicate(timeout=3600 if FULL else PATIENCE)
    return Ran(started.returncode, out, err)


@pytest.mark.parametrize("identity", IDENTITIES, ids=lambda one: one.name)
def test_every_answer_is_as_described(lab, identity):
    # First the stranger's: whoever counts from one names them.
    targets = {"other": make_things(lab, identity.stranger), "may_make": identity.may != "none", "met": f"/home/{identity.user}/met"}
    targets["own"] = {} if targets["may_make"] else make_things(lab, identity.user)
    before = {user: things(lab, user) for user in identity.victims}
    description = lab.of_alice("/api/v1/openapi.json")
    ids = operations(description, identity)
    ran = ask_everything(lab, identity, description, ids, targets)
    if ran.code != 0:
        pytest.fail(f"{ran.out[-50000:]}\n{ran.err}", pytrace=False)
    least = LEAST_CASES_IN_FULL / len(IDENTITIES) if FULL else 10 * len(ids) if identity.is_let_in else len(ids) / 3
    assert generated(ran.out) >= least, ran
    lab.town.ok(identity.user, "touch", targets["met"])
    met = [json.loads(line) for line in lab.town.ok(identity.user, "cat", targets["met"]).splitlines()]
    print(f"{identity.name}: {generated(ran.out)} cases of {len(ids)} operations, {len(met)} of them about what is there")
    assert {user: things(lab, user) for user in identity.victims} == before, "another's things were touched"
    asked = {(method.upper(), path) for path, methods in description["paths"].items()
             for method, one in methods.items() if one["operationId"] in ids}
    check_verbs(identity, asked, met)
    assert lab.of_alice("/api/v1/daemon")["pid"] > 0
