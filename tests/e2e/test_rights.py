# SPDX-License-Identifier: Apache-2.0
"""The table of rights.py, asked line by line: of gflowd for several users, as other users, over TCP and TLS, with real tokens."""

import http.client
import itertools
import json
import ssl
import subprocess
import sys
import urllib.parse
from pathlib import Path

import pytest
from machine import PATIENCE
from rights import SCOPES, TABLE, WHO, filled, missing, path_of

sys.path.insert(0, str(Path(__file__).parents[1] / "hostile"))

from make_town import make_town  # noqa: E402

LISTEN = {"GFLOW_API__LISTEN": "127.0.0.1:0", "GFLOW_API__TLS_LISTEN": "127.0.0.1:0"}
SECRET = "alice-only"  # stands in whatever nobody else may see of hers

# Asks as whoever runs it, a request a line: of a port of this machine.
MOUTH = """
import http.client, json, sys
for line in sys.stdin:
    port, method, target, body = json.loads(line)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request(method, target, body, {"Content-Type": "application/json"} if body else {})
    answer = connection.getresponse()
    print(json.dumps([answer.status, answer.read().decode(errors="replace")]), flush=True)
"""


class Mouth:
    """Through which a user asks, whose the connection is."""

    def __init__(self, lab, user):
        self.lab = lab
        self.process = lab.town.start(user, "python3", "-c", MOUTH, stdin=subprocess.PIPE)

    def ask(self, method, target, body=None):
        text = None if body is None else json.dumps(body)
        self.process.stdin.write(json.dumps([self.lab.port, method, target, text]).encode() + b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


class Lab:
    """A machine of several users, of whom alice is an administrator: a token of hers may have any scope."""

    def __init__(self, town):
        self.town = town
        self.sources = itertools.count(2)
        self.names = itertools.count(1)
        town.ok("root", "tee", "-a", "/etc/gflow/gflow.toml", input="[access]\nadministrators = ['alice']\n")
        self.up()
        self.alice, self.bob = Mouth(self, "alice"), Mouth(self, "bob")
        self.tokens = {scope: self.token(scope, "--scope", scope) for scope in SCOPES}
        self.expired = self.token("expired", "--scope", "admin", "--expires", "1s")
        while not next(one for one in self.of_alice("/api/v1/tokens")["tokens"] if one["name"] == "expired")["expired"]:
            pass  # each round asks gflowd, whose clock it is

    def up(self):
        self.town.ok("root", "gflowd", "up", "--system", "--devices", "sim:32xH100", env=LISTEN)
        told = self.town.get("root", "/api/v1/daemon")
        self.port = urllib.parse.urlsplit(told["api_url"]).port
        self.tls_port = urllib.parse.urlsplit(told["tls_url"]).port

    def token(self, name, *words):
        return self.town.ok("alice", "gctl", "token", "create", name, *words).strip()

    def of_alice(self, target):
        status, text = self.alice.ask("GET", target)
        assert status == 200, text
        return json.loads(text)

    # -- what of alice's is asked for

    def make(self, what):
        """Something of hers, as names of what stands in targets and bodies."""
        if what is None:
            return {}
        if what == "token":
            name = f"{SECRET}-{next(self.names)}"
            self.token(name)
            return {"name": name}
        if what == "allocation":
            status, text = self.alice.ask("POST", "/api/v1/gpu/allocate", {"gpu_count": 1, "ttl_seconds": 600})
            assert status == 200, text
            given = json.loads(text)
            return {"id": given["allocation_id"], "node_name": given["node_name"]}
        more = {"job": {"hold": True}, "waiting": {"begin": "2099-01-01T00:00:00Z"}, "running": {}}[what]
        item = {"spec": {"work_dir": "/", "command": SECRET, **more},
                "payload": {"argv": ["sh", "-c", f"trap : USR1; echo {SECRET}; sleep 600 & wait; wait"], "environment": []}}
        status, text = self.alice.ask("POST", "/api/v1/jobs", {"items": [item]})
        assert status == 201, text
        job = json.loads(text)["items"][0]["id"]
        if what == "running":
            self.town.running(job)
        return {"id": job}

    def seen(self, what, names):
        """All of it that a request might have changed."""
        drains = self.of_alice("/api/v1/drain")["drains"]
        if what == "token":
            return drains, names["name"] in [one["name"] for one in self.of_alice("/api/v1/tokens")["tokens"]]
        if what is None:
            return drains, self.of_alice("/api/v1/jobs?state=Hold&fields=status")["jobs"]
        job = self.of_alice(f"/api/v1/jobs/{names['id']}")
        return drains, job["status"] if what != "allocation" else job["ended"], job["spec"]

    def take_away(self, what, names):
        if what not in (None, "token"):
            self.alice.ask("POST", "/api/v1/jobs/cancel", {"jobs": [names["id"]]})

    # -- who asks

    def ask(self, who, method, target, body):
        """Status and text of the answer that one of WHO gets."""
        if who in ("owner", "other"):
            return (self.alice if who == "owner" else self.bob).ask(method, target, body)
        if who in ("nobody", "expired"):
            # Of an address of its own each: after ten tries that fail, one is not told 401 any more.
            source = next(self.sources)
            connection = http.client.HTTPSConnection(
                "127.0.0.1", self.tls_port, timeout=PATIENCE, context=ssl._create_unverified_context(),  # noqa: S323
                source_address=(f"127.0.{1 + source // 250}.{1 + source % 250}", 0))
        else:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        headers = {} if body is None else {"Content-Type": "application/json"}
        if who == "expired":
            headers["Authorization"] = f"Bearer {self.expired}"
        if who in SCOPES:
            headers["Authorization"] = f"Bearer {self.tokens[who]}"
        if who == "host":
            headers |= {"Host": "gflow.evil.example", "Authorization": f"Bearer {self.tokens['admin']}"}
        if who == "origin":
            headers |= {"Origin": "https://evil.example", "Authorization": f"Bearer {self.tokens['admin']}"}
        connection.request(method, target, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(errors="replace")


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
