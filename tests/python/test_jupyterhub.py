# SPDX-License-Identifier: Apache-2.0
"""gflow.jupyterhub in a real JupyterHub, with a proxy and single-user servers: as a user's browser asks them."""

import contextlib
import json
import os
import secrets
import socket
import subprocess
import threading
import urllib.error
import urllib.request

import gflow
import pytest
from machine import PATIENCE, kill
from package import SOURCE
from pypi import program

CONFIG = """
import os
c.JupyterHub.spawner_class = "gflow.jupyterhub.GflowSpawner"
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = True
c.JupyterHub.bind_url = "http://127.0.0.1:{front}"
c.JupyterHub.hub_port = {hub}
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{proxy}"
c.ConfigurableHTTPProxy.command = ["{program}"]
c.JupyterHub.cleanup_servers = False
c.JupyterHub.init_spawners_timeout = -1
c.JupyterHub.services = [dict(name="tests", api_token="{token}")]
c.JupyterHub.load_roles = [dict(name="tests", services=["tests"], scopes=["admin:users", "admin:servers", "access:servers"])]
c.Spawner.environment = dict(PYTHONPATH="{source}", PYTHONDONTWRITEBYTECODE="1", JUPYTER_RUNTIME_DIR="{runtime}", FROM_CONFIG="yes")
c.Spawner.args = ["--allow-root"]
c.Spawner.http_timeout = 120
c.GflowSpawner.profiles = [
    dict(name="One GPU", options=dict(gpus=1)),
    dict(name="All <GPUs>", options=dict(gpus=2, name="all", time_limit=3600)),
    dict(name="Broken", options=dict(gpus=0, cwd="/", env=dict(JUPYTERHUB_API_URL="http://127.0.0.1:1"))),
]
"""


def free_ports(count):
    """A hub cannot take port 0. Not of those the kernel gives others meanwhile, nor of those gflowd gives jobs."""
    found = []
    with contextlib.ExitStack() as stack:
        while len(found) < count:
            port = 11_000 + secrets.randbelow(9_000)
            with contextlib.suppress(OSError):
                stack.enter_context(socket.create_server(("127.0.0.1", port)))
                found.append(port)
    return found


class Hub:
    def __init__(self, machine, more=""):
        self.token = secrets.token_hex(16)
        front, hub, proxy = free_ports(3)
        self.url = f"http://127.0.0.1:{front}"
        self.inner = f"http://127.0.0.1:{hub}"
        self.work = machine.root / "hub"
        self.work.mkdir()
        (self.work / "config.py").write_text(CONFIG.format(
            front=front, hub=hub, proxy=proxy, program=program("configurable-http-proxy"), token=self.token, source=SOURCE,
            runtime=machine.home / "runtime") + more)
        self._environment = machine.environment | {
            "PYTHONPATH": str(SOURCE), "PYTHONDONTWRITEBYTECODE": "1", "SECRET_OF_THE_HUB": "1",
            "PATH": f"{program('jupyterhub').parent}:{machine.environment['PATH']}"}
        self.up()

    def up(self):
        self._process = subprocess.Popen([program("jupyterhub"), "-f", "config.py"], cwd=self.work, env=self._environment, text=True,
                                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self._lines = []
        for line in self._process.stderr:
            self._lines.append(line)
            if "JupyterHub is now running" in line:
                break
        else:
            pytest.fail("".join(self._lines))
        self._reader = threading.Thread(target=lambda: self._lines.extend(self._process.stderr))
        self._reader.start()

    def down(self):
        kill(self._process.pid)
        self._process.wait()

    def close(self):
        self._process.terminate()
        self._process.wait(60)

    def log(self):
        return "".join(self._lines)

    def ask(self, method, target, document=None, token=None):
        body = None if document is None else json.dumps(document).encode()
        request = urllib.request.Request(self.url + target, body, {"Authorization": f"token {token or self.token}"}, method=method)
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.status, answer.read().decode()

    def progress(self, user, begun=lambda: None):
        """What the waiting page is told, until the server is there or is not going to be. Of the hub itself: this proxy keeps
        answers until they are whole."""
        request = urllib.request.Request(f"{self.inner}/hub/api/users/{user}/server/progress", headers={"Authorization": f"token {self.token}"})
        with urllib.request.urlopen(request, timeout=PATIENCE) as stream:
            begun()
            for line in stream:
                if line.startswith(b"data: "):
                    yield json.loads(line[6:])


@pytest.fixture
def hub(machine):
    made = Hub(machine)
    try:
        yield made
    finally:
        made.close()


def test_a_notebook_through_the_queue(hub, machine, client):
    """It waits and says why, runs where it was given GPUs, answers through the hub's proxy, outlives the hub, and ends."""
    holder = client.submit("sleep 600", gpus=2)
    machine.running(holder.id)
    hub.ask("POST", "/hub/api/users/root")
    with client.events(type="job.submitted") as submitted:
        assert hub.ask("POST", "/hub/api/users/root/server", {"profile": "All <GPUs>"})[0] == 202
        job = client.job(next(submitted)["job"])
    told = hub.progress("root")
    reason = job.why()[0]["text"]
    waiting = next(one["message"] for one in told if "waits" in one["message"])
    assert waiting == f"Job {job.id} waits: {reason}" and job.name == "all"
    holder.cancel()
    *running, ready = [one for one in told]
    assert any(one["message"] == f"Job {job.id} runs on GPU 0,1" for one in running) and ready["ready"], (running, ready, hub.log())
    status, text = hub.ask("GET", "/user/root/api/status")
    assert status == 200 and json.loads(text)["kernels"] == 0
    with open(f"/proc/{machine.job(job.id)['pid']}/environ") as environ:
        environment = dict(one.split("=", 1) for one in environ.read().split("\0") if one)
    assert environment["CUDA_VISIBLE_DEVICES"] == "0,1" and environment["FROM_CONFIG"] == "yes"
    assert not {"SECRET_OF_THE_HUB", "CONFIGPROXY_AUTH_TOKEN"} & set(environment)

    hub.down()
    hub.up()
    assert job.status() == "Running" and hub.ask("GET", "/user/root/api/status")[0] == 200
    assert hub.ask("DELETE", "/hub/api/users/root/server")[0] in (202, 204)
    assert job.wait()["status"] == "Cancelled"


def waiting_server(hub, client, profile="0"):
    """The job of a user's server, of which the hub knows."""
    with client.events(type="job.submitted") as submitted:
        hub.ask("POST", "/hub/api/users/root/server", {"profile": profile})
        return client.job(next(submitted)["job"])


def test_a_server_that_waits_for_a_hub_that_was_killed_is_cancelled(hub, client):
    """Another hub does not hear from it: it would take GPUs for nobody. The user may ask for one again."""
    client.submit("sleep 600", gpus=2)
    hub.ask("POST", "/hub/api/users/root")
    job = waiting_server(hub, client)
    next(hub.progress("root"))
    hub.down()
    hub.up()
    assert job.wait()["status"] == "Cancelled" and job.show()["started"] is None
    assert waiting_server(hub, client).id == job.id + 1


CULLER = """
c.JupyterHub.services.append(dict(name="culler", command=["jupyterhub-idle-culler", "--timeout=2", "--cull-every=1"]))
c.JupyterHub.load_roles.append(dict(
    name="culler", services=["culler"], scopes=["list:users", "read:users:activity", "read:servers", "delete:servers"]))
"""


def test_a_server_that_nobody_uses_gives_its_gpus_back(machine, client):
    """To who waits for them, by the culler that hubs have for that."""
    program("jupyterhub-idle-culler")
    hub = Hub(machine, CULLER)
    try:
        hub.ask("POST", "/hub/api/users/root")
        job = waiting_server(hub, client, "1")
        next_one = client.submit("true", gpus=2)
        assert job.wait()["status"] == "Cancelled", hub.log()
        assert job.show()["started"] is not None and next_one.wait()["status"] == "Finished"
    finally:
        hub.close()


IMPATIENT = """
c.JupyterHub.tornado_settings = dict(slow_stop_timeout=0)
from gflow import jupyterhub
_AsyncClient = jupyterhub.AsyncClient
jupyterhub.AsyncClient = lambda *arguments, **named: _AsyncClient(*arguments, **named, patience=0)
"""


def test_a_gflowd_that_is_away_for_long(machine, client):
    """Who waits goes on when it is back, and what is to be stopped is, though the hub's patience with it is over."""
    hub = Hub(machine, IMPATIENT)
    try:
        holder = client.submit("sleep 600", gpus=2)
        hub.ask("POST", "/hub/api/users/root")
        job = waiting_server(hub, client)
        told = hub.progress("root")
        next(told)
        machine.kill_daemon()
        machine.up()
        holder.cancel()
        *_, ready = told
        assert ready.get("ready"), (ready, hub.log())

        # It has told where it listens, and only that is taken.
        with open(f"/proc/{machine.job(job.id)['pid']}/environ") as environ:
            environment = dict(one.split("=", 1) for one in environ.read().split("\0") if one)
        token, port = environment["JUPYTERHUB_API_TOKEN"], int(environment["JUPYTERHUB_SERVICE_URL"].split(":")[2].split("/")[0])
        assert hub.ask("POST", "/hub/api/gflow", {"port": port}, token)[0] == 204
        with pytest.raises(urllib.error.HTTPError) as refused:
            hub.ask("POST", "/hub/api/gflow", {"port": port + 1}, token)
        assert refused.value.code == 409 and "not waited for any more" in refused.value.read().decode()

        machine.kill_daemon()
        assert hub.ask("DELETE", "/hub/api/users/root/server")[0] == 202
        machine.up()
        assert job.wait()["status"] == "Cancelled"
    finally:
        hub.close()


HOOKED = """
import asyncio
async def hook(spawner):
    await asyncio.get_running_loop().run_in_executor(None, lambda: open({gate!r}).read())
c.Spawner.pre_spawn_hook = hook
"""


def test_a_page_that_is_opened_before_there_is_a_job(machine, client):
    gate = machine.work / "gate"
    os.mkfifo(gate)
    hub = Hub(machine, HOOKED.format(gate=str(gate)))
    try:
        client.submit("sleep 600", gpus=2)
        hub.ask("POST", "/hub/api/users/root")
        hub.ask("POST", "/hub/api/users/root/server", {})
        told = hub.progress("root", lambda: gate.write_text("go"))
        assert next(one for one in told if "waits: " in one["message"])
        machine.ok("gcancel", 2)
        *_, last = told
        assert last["failed"]
    finally:
        hub.close()


def failing(hub, document, user="root"):
    with pytest.raises(urllib.error.HTTPError) as refused:
        hub.ask("POST", f"/hub/api/users/{user}/server", document)
    return refused.value.code, refused.value.read().decode()


def test_what_goes_wrong(hub, machine, client):
    hub.ask("POST", "/hub/api/users/root")
    code, said = failing(hub, {"profile": "nonsense"})
    assert code == 400 and "there is no profile 'nonsense'; there are: One GPU, All <GPUs>, Broken" in json.loads(said)["message"]
    with client.events(type="job.ended") as ended:
        with contextlib.suppress(urllib.error.HTTPError):
            hub.ask("POST", "/hub/api/users/root/server", {"profile": "2"})
        next(ended)
    assert "Connection refused" in client.job(1).log()
    # A token of somebody who has no such server says where none is.
    with pytest.raises(urllib.error.HTTPError) as refused:
        hub.ask("POST", "/hub/api/gflow", {"port": 80})
    assert refused.value.code == 403
    # One that is cancelled while it waits is not there.
    client.submit("sleep 600", gpus=2)
    with client.events(type="job.submitted") as submitted:
        hub.ask("POST", "/hub/api/users/root/server", {"profile": "0"})
        waiting = client.job(next(submitted)["job"])
    told = hub.progress("root")
    next(told)
    machine.ok("gcancel", waiting.id)
    *_, last = told
    assert last["failed"], last
    if os.geteuid() == 0:  # nobody else's notebook runs as root
        hub.ask("POST", "/hub/api/users/alice")
        with pytest.raises(urllib.error.HTTPError):
            hub.ask("POST", "/hub/api/users/alice/server", {})
        assert "the hub runs as root" in hub.log()
        assert len(client.jobs()) == 3


def test_nobody_without_a_token_of_their_own_is_served_as_the_hub(machine, client):
    """Also where the function of the hub has one for others, or gflowd would not look at it."""
    hub = Hub(machine, "c.GflowSpawner.token = lambda spawner: dict(alice='', bob=None, carol=' ', dave='gflow_x')[spawner.user.name]\n")
    try:
        for user, why in (("alice", "has none for 'alice'"), ("bob", "has none for 'bob'"), ("carol", "has none for 'carol'"),
                          ("erin", "has none for 'erin': KeyError"), ("dave", "on a socket gflowd looks at no token")):
            hub.ask("POST", f"/hub/api/users/{user}")
            code, said = failing(hub, {}, user)
            assert code == 500 and why in json.loads(said)["message"]
    finally:
        hub.close()
    assert client.jobs() == []


ROTATED = """
import asyncio, sys, types
from gflow.jupyterhub import GflowSpawner

async def main(url, *tokens):
    left = iter(tokens)
    spawner = GflowSpawner(gflowd=url, token=lambda _: next(left))
    spawner.user = types.SimpleNamespace(name="alice")
    for _ in tokens:
        print((await spawner.client.call("GET", "/api/v1/principal"))["credential"])

asyncio.run(main(*sys.argv[1:]))
"""


def test_a_token_that_is_another_now_is_taken(lab):
    tokens = [lab.ok("gctl", "token", "create", name, "--scope", "submit").strip() for name in ("before", "after")]
    said = subprocess.run([program("python"), "-c", ROTATED, lab.api_url, *tokens], capture_output=True, text=True, check=True,
                          env=lab.environment | {"PYTHONPATH": str(SOURCE)}).stdout
    assert said.split() == ["before", "after"]


def test_a_server_by_the_token_of_its_user(lab):
    """Whose jobs they are says the token; the hub's account is not asked for."""
    token = lab.ok("gctl", "token", "create", "alice", "--scope", "submit").strip()
    made = Hub(lab, f"c.GflowSpawner.gflowd = '{lab.api_url}'\n"
                    f"c.GflowSpawner.token = lambda spawner: {{'alice': '{token}'}}[spawner.user.name]\n")
    try:
        made.ask("POST", "/hub/api/users/alice")
        if os.geteuid() == 0:  # who the token says, which root may not over TCP
            code, said = failing(made, {"profile": "One GPU"}, "alice")
            assert code == 500 and "root cannot submit jobs over TCP" in json.loads(said)["message"]
            return
        made.ask("POST", "/hub/api/users/alice/server", {"profile": "One GPU"})
        *_, ready = made.progress("alice")
        assert ready["ready"], (ready, made.log())
    finally:
        made.close()
    with gflow.Client(f"unix:{lab.socket}") as near:
        assert [(one["spec"]["name"], one["status"]) for one in near.jobs()] == [("jupyter-alice", "Running")]
        near.cancel(1)
