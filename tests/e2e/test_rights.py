# SPDX-License-Identifier: Apache-2.0
"""The table of rights.py, asked line by line: of gflowd for several users, as other users, over TCP and TLS, with real tokens."""

import json
import sys
from pathlib import Path

import pytest
from rights import SCOPES, TABLE, WHO, filled, missing, path_of
from shared_lab import SECRET, Lab

sys.path.insert(0, str(Path(__file__).parents[1] / "hostile"))

from make_town import make_town  # noqa: E402


@pytest.fixture(scope="module")
def lab():
    town = make_town()
    try:
        yield Lab(town)
    finally:
        town.close()


def test_every_route_has_its_line(lab):
    description = lab.of_alice("/api/v1/openapi.json")
    assert missing(description) == set(), "a route needs its line in rights.py, and a line its route"
    assert len({(method, path_of(target)) for method, target, *_ in TABLE}) == len(TABLE)


def test_what_is_looked_for_in_the_answers_of_others_is_there(lab):
    names = lab.make("job")
    for who, told in (("owner", True), ("read", True), ("other", False)):
        status, text = lab.ask(who, "GET", f"/api/v1/jobs/{names['id']}", None)
        assert status == 200 and (SECRET in text) == told, (who, text)
    lab.take_away("job", names)


def put_right(lab, method, target, made):
    """What was done once is not to stand in the way of the next."""
    if target == "/api/v1/daemon/stop":
        lab.town.run("root", "gflowd", "down", "--system")  # until it has ended
        lab.up()
    if (method, target) == ("POST", "/api/v1/drain"):
        assert lab.ask("admin", method, target, {"gpu": 31, "resume": True})[0] == 200
    if "allocation_id" in made:
        assert lab.ask("admin", "DELETE", f"/api/v1/gpu/allocations/{made['allocation_id']}", None)[0] == 200
        lab.town.run("root", "gjob", "wait", str(made["allocation_id"]))  # its GPUs are free, too


@pytest.mark.parametrize(("method", "target", "what", "body", "statuses"), TABLE, ids=lambda one: one if isinstance(one, str) else "")
def test_each_gets_what_is_theirs(lab, method, target, what, body, statuses):
    names = None
    for who, status in zip(WHO, statuses, strict=True):
        names = names or lab.make(what)
        before = lab.seen(what, names)
        got, text = lab.ask(who, method, filled(target, names), filled(body, names))
        assert got == status, (who, text)
        if who != "owner" and who not in SCOPES:
            assert SECRET not in text.replace(names.get("name", "-"), ""), (who, text)
        if got >= 400 or method == "GET":
            assert lab.seen(what, names) == before, who
            continue
        put_right(lab, method, target, json.loads(text) if "allocate" in target or "setup" in target else {})
        lab.take_away(what, names)
        names = None
    if names:
        lab.take_away(what, names)
