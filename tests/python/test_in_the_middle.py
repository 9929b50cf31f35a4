# SPDX-License-Identifier: Apache-2.0
"""What waits while something ends: gflowd, or the token it is asked with. Each call says which, by the type of what it raises."""

import asyncio
import threading

import gflow
import pytest
from conftest import a_lab
from gflow import _async, _steps, _sync
from machine import PATIENCE


async def all_of(stream):
    return [one async for one in stream]


# What waits without end where the job does, synchronous and awaited, and what it asks gflowd for then.
WAITS = {
    "wait": (lambda client, job: gflow.Job(client, job).wait(), lambda client, job: gflow.AsyncJob(client, job).wait(), "/changes?"),
    "result": (lambda client, job: gflow.Job(client, job).result(), lambda client, job: gflow.AsyncJob(client, job).result(), "/changes?"),
    "follow": (lambda client, job: list(gflow.Job(client, job).follow()), lambda client, job: all_of(gflow.AsyncJob(client, job).follow()),
               "/log?"),
    "changes": (lambda client, job: list(gflow.Job(client, job).changes()),
                lambda client, job: all_of(gflow.AsyncJob(client, job).changes()), "/changes?"),
    "events": (lambda client, job: list(client.events(job=job)), lambda client, job: all_of(client.events(job=job)), "/events?"),
    "gpus": (lambda client, job: client.gpus(2).acquire(), lambda client, job: client.gpus(2).__aenter__(), "/changes?"),
}


@pytest.fixture
def asked(monkeypatch):
    """`asked[part]` is set once gflowd was asked for a target with that part."""
    found = {part: threading.Event() for _, _, part in WAITS.values()}

    def note(ask):
        for part, event in found.items():
            if part in ask.target:
                event.set()

    ask_now, ask_awaited = _sync.Connection.ask, _async.Connection.ask

    def ask(self, what):  # it returns with the answer
        note(what)
        ask_now(self, what)

    async def awaited(self, what):
        note(what)
        await ask_awaited(self, what)

    monkeypatch.setattr(_sync.Connection, "ask", ask)
    monkeypatch.setattr(_async.Connection, "ask", awaited)
    return found


def raised_by(kind, name, job, end, *where, **how):
    """What such a wait raises; `end(part)` is called once it has begun."""
    plain, awaited, part = WAITS[name]
    raised = []

    async def on_a_loop():
        async with gflow.AsyncClient(*where, **how) as client:
            await awaited(client, job)

    def wait():
        try:
            if kind == "asyncio":
                asyncio.run(on_a_loop())
            else:
                plain(gflow.Client(*where, **how), job)
        except gflow.GflowError as error:
            raised.append(error)

    waits = threading.Thread(target=wait, daemon=True)
    waits.start()
    end(part)
    waits.join(PATIENCE)
    return raised[0]


def in_its_middle(asked, end):
    """`end()`, once gflowd was asked for what does not come."""

    def when_asked(part):
        assert asked[part].wait(PATIENCE)
        end()

    return when_asked


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
@pytest.mark.parametrize("name", WAITS)
def test_gflowd_goes_away(machine, client, asked, kind, name):
    """And does not come back for as long as is waited for that."""
    job = client.submit("sleep 600", gpus=2)
    machine.running(job.id)
    error = raised_by(kind, name, job.id, in_its_middle(asked, machine.kill_daemon), f"unix:{machine.socket}", patience=0)
    assert isinstance(error, (gflow.Unreachable, gflow.ConnectionLost)) and str(error), repr(error)


@pytest.fixture
def missed(machine, monkeypatch):
    """gflowd is away, and comes back once it was missed."""
    lost = _steps.Patience.lost

    def comes_back(self, error):
        monkeypatch.undo()
        machine.up()
        return lost(self, error)

    machine.kill_daemon()
    monkeypatch.setattr(_steps.Patience, "lost", comes_back)
    monkeypatch.setenv("HOME", str(machine.home))


def test_what_happens_is_heard_from_the_call_on_though_gflowd_was_away(machine, client, missed):
    with client.events(type="job.ended") as events:
        job = client.submit("true")
        job.wait()
        heard = threading.Thread(target=lambda: found.append(next(events)["job"]), daemon=True)
        found = []
        heard.start()
        heard.join(PATIENCE)
        assert found == [job.id]


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
def test_a_map_is_whole_though_gflowd_was_away(machine, client, missed, kind):
    """Also where its jobs end before its first result is wanted."""

    async def on_a_loop():
        async with gflow.AsyncClient(f"unix:{machine.socket}") as awaited:
            results = await awaited.map(abs, [-1, -2])
            await awaited.wait(*results.jobs)
            return await asyncio.wait_for(all_of(results), PATIENCE)

    if kind == "asyncio":
        assert asyncio.run(on_a_loop()) == [1, 2]
        return
    results = client.map(abs, [-1, -2])
    client.wait(*results.jobs)
    taken = []
    takes = threading.Thread(target=lambda: taken.extend(results), daemon=True)
    takes.start()
    takes.join(PATIENCE)
    assert taken == [1, 2]


@pytest.mark.parametrize("ask", [
    lambda client: client.submit("true", gpus="1(RTX3090)").result(), lambda client: client.submit("true", gpus=0.5).result(),
    lambda client: client.validate("1(RTX3090)"), lambda client: client.check("true", gpus=1), lambda client: client.select(1),
])
def test_what_changes_nothing_or_has_a_key_is_asked_again(client, missed, ask):
    ask(client)


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
def test_who_listens_is_told_that_gflowd_stays_away(machine, kind):
    """At once, and not when the first event is wanted."""

    async def on_a_loop():
        async with gflow.AsyncClient(f"unix:{machine.socket}", patience=0) as client:
            await client.events().__aenter__()

    machine.kill_daemon()
    with pytest.raises(gflow.Unreachable):
        asyncio.run(on_a_loop()) if kind == "asyncio" else gflow.Client(f"unix:{machine.socket}", patience=0).events()


@pytest.fixture
def lab():
    """Its own for each test: who asks with tokens that are not valid is refused for a while."""
    with a_lab() as made:
        yield made


@pytest.fixture
def held(lab):
    """A job of the lab that has all its GPUs."""
    job = lab.submit("--gpus", 4, "sleep", 600)
    lab.running(job)
    return job


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
@pytest.mark.parametrize("name", WAITS)
def test_a_token_is_revoked(lab, held, asked, kind, name):
    """It ends with it, and not with what was waited for."""
    token = lab.ok("gctl", "token", "create", f"{kind}-{name}", "--scope", "submit").strip()
    revoke = in_its_middle(asked, lambda: lab.ok("gctl", "token", "revoke", f"{kind}-{name}"))
    error = raised_by(kind, name, held, revoke, lab.tls_url, token=token, fingerprint=lab.fingerprint)
    assert isinstance(error, gflow.Unauthenticated) and isinstance(error, PermissionError), repr(error)
    assert error.status == 401 and "revoked" in error.detail and token not in f"{error!r} {error}"


@pytest.mark.parametrize("name", ["wait", "events"])
def test_a_token_expires(lab, held, name):
    """Whether gflowd has been asked by then or not."""
    token = lab.ok("gctl", "token", "create", f"expires-{name}", "--expires", "2s").strip()
    error = raised_by("threads", name, held, lambda _: None, lab.tls_url, token=token, fingerprint=lab.fingerprint)
    assert isinstance(error, gflow.Unauthenticated) and "expired" in error.detail, repr(error)
