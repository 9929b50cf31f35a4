# SPDX-License-Identifier: Apache-2.0
"""One gflowd for several users, asked over TCP and TLS: as another user, with a token, or as nobody."""

import http.client
import itertools
import json
import os
import ssl
import subprocess
import urllib.parse

from machine import PATIENCE

SCOPES = ("read", "submit", "operate", "admin")
LISTEN = {"GFLOW_API__LISTEN": "127.0.0.1:0", "GFLOW_API__TLS_LISTEN": "127.0.0.1:0"}
SECRET = "alice-only"  # stands in whatever nobody else may see of hers
CALLED = "swordfish"  # stands in what her jobs are called: their names, projects and groups
TOML = "/etc/gflow/gflow.toml"

# Asks as whoever runs it, a request a line: of a port of this machine.
MOUTH = """
import http.client, json, sys
for line in sys.stdin:
    port, method, target, body, accept = json.loads(line)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request(method, target, body, {"Accept": accept} | ({"Content-Type": "application/json"} if body else {}))
    answer = connection.getresponse()
    print(json.dumps([answer.status, answer.read().decode(errors="replace")]), flush=True)
"""


class Mouth:
    """Through which a user asks, whose the connection is."""

    def __init__(self, lab, user):
        self.lab = lab
        self.process = lab.town.start(user, "python3", "-c", MOUTH, stdin=subprocess.PIPE)

    def ask(self, method, target, body=None, accept="*/*"):
        text = None if body is None else json.dumps(body)
        self.process.stdin.write(json.dumps([self.lab.port, method, target, text, accept]).encode() + b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


class Lab:
    """A machine of several users, of whom alice is an administrator: a token of hers may have any scope."""

    def __init__(self, town):
        self.town = town
        self.strangers = itertools.count(70_000)
        self.names = itertools.count(1)
        town.ok("root", "tee", "-a", TOML, input="[access]\nadministrators = ['alice']\noperators = ['mallory']\nothers_jobs = 'all'\n"
                "[limits]\nmax_gpus_of = 'alice=64'\n")
        town.ok("alice", "mkdir", f"/home/alice/{SECRET}")
        self.up()
        self.alice, self.bob = Mouth(self, "alice"), Mouth(self, "bob")
        self.tokens = {scope: self.token(scope, "--scope", scope) for scope in SCOPES}
        self.operator = town.ok("mallory", "gctl", "token", "create", "operator", "--scope", "operate").strip()
        self.expired = self.token("expired", "--scope", "admin", "--expires", "1s")
        while not next(one for one in self.of_alice("/api/v1/tokens")["tokens"] if one["name"] == "expired")["expired"]:
            pass  # each round asks gflowd, whose clock it is

    def up(self):
        self.town.ok("root", "gflowd", "up", "--system", "--devices", "sim:32xH100", env=LISTEN)
        told = self.town.get("root", "/api/v1/daemon")
        self.port = urllib.parse.urlsplit(told["api_url"]).port
        self.tls_port = urllib.parse.urlsplit(told["tls_url"]).port

    def show_of_others(self, level):
        """[access] others_jobs, taken up by the gflowd that runs."""
        self.town.ok("root", "sed", "-i", f"s/^others_jobs.*/others_jobs = '{level}'/", TOML)
        self.town.ok("root", "gctl", "config", "reload")

    def token(self, name, *words):
        return self.town.ok("alice", "gctl", "token", "create", name, *words).strip()

    def mouth(self, user):
        return self.alice if user == "alice" else self.bob

    @staticmethod
    def of(mouth, target):
        status, text = mouth.ask("GET", target)
        assert status == 200, text
        return json.loads(text)

    def of_alice(self, target):
        return self.of(self.alice, target)

    # -- what of alice's is asked for

    def make(self, what):
        """Something of hers, as names of what stands in targets and bodies; of more fields a job of these."""
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
        if what in ("node", "device"):
            there = self.of_alice("/api/v1/devices")["devices"][0]
            return {"name": there["node"], "uuid": there["uuid"]}
        kinds = {"job": {"hold": True}, "group": {"hold": True}, "waiting": {"begin": "2099-01-01T00:00:00Z"}, "running": {}}
        more = what if isinstance(what, dict) else kinds[what]
        called = f"{CALLED}-{next(self.names)}"
        item = {"spec": {"work_dir": f"/home/alice/{SECRET}", "command": SECRET, "name": called, "project": called, "group": called, **more},
                "payload": {"argv": ["sh", "-c", f"trap : USR1; echo {SECRET}; sleep 600 & wait; wait"], "environment": [f"MARK={SECRET}"]}}
        status, text = self.alice.ask("POST", "/api/v1/jobs", {"items": [item]})
        assert status == 201, text
        job = json.loads(text)["items"][0]["id"]
        if what == "running":
            self.town.running(job)
        return {"id": job, "name": called} if what == "group" else {"id": job}

    def seen(self, what, names):
        """All of it that a request might have changed."""
        drains = self.of_alice("/api/v1/drain")["drains"]
        if what == "token":
            return drains, names["name"] in [one["name"] for one in self.of_alice("/api/v1/tokens")["tokens"]]
        if what in (None, "node", "device"):
            return drains, self.of_alice("/api/v1/jobs?state=Hold&fields=status")["jobs"]
        job = self.of_alice(f"/api/v1/jobs/{names['id']}")
        return drains, job["status"] if what != "allocation" else job["ended"], job["spec"]

    def take_away(self, what, names):
        if "id" in names:
            self.alice.ask("POST", "/api/v1/jobs/cancel", {"jobs": [names["id"]]})

    # -- who asks

    def ask(self, who, method, target, body, accept="*/*"):
        """Status and text of the answer that one of WHO gets."""
        if who in ("owner", "other"):
            return (self.alice if who == "owner" else self.bob).ask(method, target, body, accept)
        if who in ("nobody", "expired"):
            connection = http.client.HTTPSConnection(
                "127.0.0.1", self.tls_port, timeout=PATIENCE, context=ssl._create_unverified_context())  # noqa: S323
            # An account of its own each: after ten tries that fail, one is not told 401 any more.
            os.seteuid(next(self.strangers))
            try:
                connection.connect()
            finally:
                os.seteuid(0)
        else:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        headers = {"Accept": accept} | ({} if body is None else {"Content-Type": "application/json"})
        if who == "expired":
            headers["Authorization"] = f"Bearer {self.expired}"
        if who in SCOPES:
            headers["Authorization"] = f"Bearer {self.tokens[who]}"
        if who == "operator":
            headers["Authorization"] = f"Bearer {self.operator}"
        if who == "host":
            headers |= {"Host": "gflow.evil.example", "Authorization": f"Bearer {self.tokens['admin']}"}
        if who == "origin":
            headers |= {"Origin": "https://evil.example", "Authorization": f"Bearer {self.tokens['admin']}"}
        connection.request(method, target, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(errors="replace")
