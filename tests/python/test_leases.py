# SPDX-License-Identifier: Apache-2.0
"""GPUs for a program: held while it wants them, given back whatever happens, and told when they are lost."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading

import gflow
import pytest
from package import SOURCE
from gflow import _calls, _http, _sync, leases
from machine import PATIENCE, kill


def test_they_are_held_and_given_back(client, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    with client.gpus(2) as devices:
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "0,1" and os.environ["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
        assert [(one.index, one.gpu_type, one.compute_ratio) for one in devices] == [(0, "RTX3090", 1), (1, "RTX3090", 1)]
        assert len(devices) == 2 and devices[0].uuid.startswith("GPU-") and devices.indices == [0, 1]
        assert client.allocations()[0]["allocation_id"] == devices.allocation_id and devices.lost is None
        with pytest.raises(gflow.NoGpus, match="GPU"), client.gpus(1, wait=False):
            pass
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "7" and "CUDA_DEVICE_ORDER" not in os.environ
    assert client.allocations() == []


@pytest.mark.parametrize("first_back", [0, 1])
def test_whatever_the_order_they_are_given_back_in_those_that_are_held_are_visible(client, monkeypatch, first_back):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    held = [client.gpus(1), client.gpus(1)]
    assert [lease.acquire().indices for lease in held] == [[0], [1]]
    held.pop(first_back).release()
    assert os.environ["CUDA_VISIBLE_DEVICES"] == str(1 - first_back)
    held.pop().release()
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "7"


def test_many_that_wait_leave_room_for_who_gives_back(few_connections, monkeypatch):
    """Each that listens has a connection, of which gflowd gives a user so many."""
    monkeypatch.setattr(_calls, "_listening", threading.BoundedSemaphore(4))
    client = gflow.Client(f"unix:{few_connections.socket}")
    given = []

    def wait():
        with client.gpus(2, set_environment=False) as devices:
            given.append(devices.indices)

    waiting = [threading.Thread(target=wait) for _ in range(24)]
    with client.gpus(2), client.events(type="job.submitted") as submitted:
        for one in waiting:
            one.start()
        for _ in waiting:
            next(submitted)
    for one in waiting:
        one.join()
    assert given == [[0, 1]] * len(waiting) and client.allocations() == []


def test_the_time_to_wait_is_that_for_gflowd_too(machine):
    client = gflow.Client(f"unix:{machine.socket}", patience=PATIENCE)
    machine.down()
    with pytest.raises(gflow.Unreachable), client.gpus(1, timeout=0.05):
        pass

    async def body():
        async with gflow.AsyncClient(f"unix:{machine.socket}", patience=PATIENCE) as awaited, awaited.gpus(1, timeout=0.05):
            pass

    with pytest.raises(gflow.Unreachable):
        asyncio.run(body())


def test_a_connection_that_is_closed_before_it_asks_is_lost(client):
    """As that of who watches a lease which is given back at once."""
    closed = _sync.Connection(client.server)
    closed.close()
    with pytest.raises(gflow.ConnectionLost):
        closed.ask(_http.Ask("GET", "/api/v1/events", is_stream=True))


def test_one_that_is_closed_while_it_is_read_keeps_its_number_until_it_was(client):
    """Else a connection that is made meanwhile has it, and is waited for: it was 45 s until a lease was given back."""

    class Watched:
        def __init__(self):
            self.done, self.is_read, self.may_go_on = [], threading.Event(), threading.Event()

        def recv(self, _):
            self.is_read.set()
            assert self.may_go_on.wait(PATIENCE)
            return b""

        def shutdown(self, _):
            self.done.append("shutdown")

        def close(self):
            self.done.append("close")

    connection = _sync.Connection(client.server)
    connection.reader = _http.Reader(_http.Ask("GET", "/"))
    connection._socket.close()
    connection._socket = watched = Watched()
    lost = []

    def read():
        with pytest.raises(gflow.ConnectionLost):
            connection.answer()
        lost.append(True)

    connection.begun = b""
    reads = threading.Thread(target=read)
    reads.start()
    watched.is_read.wait()
    connection.close()
    assert watched.done == ["shutdown"]
    watched.may_go_on.set()
    reads.join()
    assert watched.done == ["shutdown", "close"] and lost == [True]


def test_a_lease_that_has_its_gpus_takes_no_others(client):
    """Nobody would give back the first."""
    lease = client.gpus(1)
    for _ in range(2):
        devices = lease.acquire()
        with pytest.raises(gflow.GflowError, match="this lease has its GPUs already"):
            lease.acquire()
        assert [one["allocation_id"] for one in client.allocations()] == [devices.allocation_id]
        lease.release()
        assert client.allocations() == []
    refused = client.gpus(9)
    for _ in range(2):
        with pytest.raises(gflow.Infeasible):
            refused.acquire()


FORKS = """
import os, sys, gflow
client = gflow.default_client()
with client.gpus(2) as devices:
    if os.fork() == 0:
        sys.exit(0)
    os.wait()
    assert [one["allocation_id"] for one in client.allocations()] == [devices.allocation_id]
assert client.allocations() == []
"""


def test_a_child_that_leaves_gives_back_nothing_of_its_parent(machine):
    subprocess.run([sys.executable, "-c", FORKS], check=True, env={**machine.environment, "PYTHONPATH": str(SOURCE)})


class Interrupted(BaseException):
    """As KeyboardInterrupt, but that pytest takes it for no wish to end."""


@contextlib.contextmanager
def interrupted(daemon):
    """What is asked within gets no answer from gflowd before a signal interrupts it."""

    def interrupt(*_):
        raise Interrupted

    before = signal.signal(signal.SIGALRM, interrupt)
    os.kill(daemon, signal.SIGSTOP)
    try:
        with pytest.raises(Interrupted):
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            yield
    finally:
        os.kill(daemon, signal.SIGCONT)
        signal.signal(signal.SIGALRM, before)


def test_one_that_is_interrupted_while_it_is_asked_for_is_given_back(client, machine):
    with client.events(type="job.ended") as ended:
        with interrupted(machine.daemon_pid()):
            client.gpus(2).acquire()
        assert next(ended)["status"] == "Cancelled"
    assert client.allocations() == []


def test_one_whose_giving_back_is_interrupted_is_given_back(client, machine):
    lease = client.gpus(2)
    lease.acquire()
    with client.events(type="job.ended") as ended:
        with interrupted(machine.daemon_pid()):
            lease.release()
        assert next(ended)["status"] == "Cancelled"
    assert client.allocations() == []


def test_an_exception_gives_them_back_and_comes_through(client):
    with pytest.raises(KeyError, match="mine"), client.gpus("0.5", set_environment=False) as devices:
        assert devices[0].compute_ratio == 0.5 and "CUDA_VISIBLE_DEVICES" not in os.environ
        raise KeyError("mine")
    assert client.allocations() == []


def test_they_are_waited_for(client):
    holder = client.gpus(2)
    holder.acquire()
    with pytest.raises(gflow.WaitTimeout, match="no GPUs: Need 1 GPU, none available"), client.gpus(1, timeout=0.05):
        pass
    assert len(client.allocations()) == 1  # who gave up does not stand in the queue
    given = []

    def wait():
        with client.gpus(1, set_environment=False) as devices:
            given.append(devices.indices)

    waits = threading.Thread(target=wait)
    with client.events(type="job.submitted") as submitted:
        waits.start()
        next(submitted)
    holder.release()
    waits.join()
    assert given == [[0]]
    with pytest.raises(gflow.Infeasible, match="could never start"), client.gpus(9):
        pass
    with pytest.raises(gflow.UsageError, match="column 1"), client.gpus("nope"):
        pass


def test_one_that_is_taken_back_is_told_at_once_and_at_the_end(client, machine, caplog):
    told = threading.Event()
    with pytest.raises(gflow.LeaseLost, match="ended before it was given back: cancelled") as lost:
        with client.gpus(1, on_lost=lambda why: told.set()) as devices:
            machine.ok("gcancel", devices.allocation_id)
            assert told.wait(60) and devices.lost == "cancelled"
    assert lost.value.allocation_id == devices.allocation_id
    # An exception of the program goes before it.
    with pytest.raises(KeyError), client.gpus(1) as devices:
        machine.ok("gcancel", devices.allocation_id)
        client.wait(devices.allocation_id)
        raise KeyError
    assert "what went wrong while GPUs were given back" in caplog.text


def test_a_time_to_live_is_one(client):
    with pytest.raises(gflow.LeaseLost, match="Timeout|time limit"), client.gpus(1, ttl=1) as devices:
        assert devices.allocation["expires_at"]
        assert client.wait(devices.allocation_id)[0]["status"] == "Timeout"


HOLDS = """
import sys, gflow
lease = gflow.gpus(2)
print(lease.acquire().allocation_id, flush=True)
sys.stdin.read()
"""


def test_a_program_that_is_killed_holds_nothing(client, machine):
    environment = machine.environment | {"PYTHONPATH": str(SOURCE)}
    with subprocess.Popen([sys.executable, "-c", HOLDS], env=environment, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as program:
        held = int(program.stdout.readline())
        assert client.allocations()[0]["allocation_id"] == held
        kill(program.pid)
    assert client.wait(held)[0]["status"] in ("Finished", "Cancelled")
    assert client.allocations() == []


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make a namespace of pids")
def test_a_container_with_pids_of_its_own_names_none_of_them(client, machine, python):
    """There this program may be pid 1, which to gflowd is another one that never ends: a heartbeat keeps what it has."""
    script = "import gflow, os; print(os.getpid(), bool(gflow.gpus(1).acquire().allocation['expires_at']))"
    out = python("--pid", "--fork", "--kill-child", sys.executable, "-c", script, program="unshare")
    assert out == "1 True\n"
    assert client.allocations()[0]["expires_at"]
    assert python(script=script.replace("os.getpid()", "0")) == "0 False\n"


def test_they_outlive_gflowd(client, machine):
    with client.gpus(1) as devices:
        machine.kill_daemon()
        machine.up()
        assert client.allocations()[0]["allocation_id"] == devices.allocation_id
    assert client.allocations() == [] and devices.lost is None


def test_they_are_given_back_to_a_gflowd_that_comes_back(client, machine):
    with client.gpus(2):
        machine.kill_daemon()
        comes = threading.Thread(target=machine.up)
        comes.start()
    comes.join()
    assert client.allocations() == []


def test_what_could_not_be_given_back_can_be_later(client, machine):
    lease = gflow.Client(f"unix:{machine.socket}", patience=0).gpus(1)
    lease.acquire()
    machine.kill_daemon()
    with pytest.raises(gflow.Unreachable):
        lease.release()
    machine.up()
    assert len(client.allocations()) == 1
    lease.release()
    assert client.allocations() == []
    lease.release()


def test_cuda_that_was_started_before_is_told(client, monkeypatch):
    class Torch:
        class cuda:
            is_initialized = staticmethod(lambda: True)

    monkeypatch.setitem(sys.modules, "torch", Torch)
    with pytest.warns(RuntimeWarning, match="CUDA was started before"), client.gpus(1):
        pass


def test_from_elsewhere_a_heartbeat_keeps_them_and_its_end_is_a_loss(lab, monkeypatch):
    """With a token of a machine elsewhere no process can be watched: they are renewed, until the token is revoked."""
    monkeypatch.setattr(leases, "HEARTBEAT_SECONDS", 15)  # renewed each 5 s
    token = lab.ok("gctl", "token", "create", "lease", "--scope", "submit").strip()
    told = threading.Event()
    near = gflow.Client(f"unix:{lab.socket}")
    far = gflow.Client(lab.tls_url, token=token, fingerprint=lab.fingerprint)
    with near.events(type="job.changed") as renewals, pytest.raises(gflow.LeaseLost, match="cannot be kept"):
        with far.gpus(1, on_lost=lambda why: told.set()) as devices:
            assert devices.allocation["expires_at"]
            assert next(renewals)["job"] == devices.allocation_id
            lab.ok("gctl", "token", "revoke", "lease")
            assert told.wait(60) and "token" in devices.lost
    near.cancel(devices.allocation_id)  # it would go back by itself


def test_a_choice_holds_nothing(client):
    chosen = client.select(2)
    assert chosen.indices == [0, 1] and chosen[0].gpu_type == "RTX3090" and chosen[0].memory_gb == 24
    assert chosen.environment["CUDA_VISIBLE_DEVICES"] == "0,1" and chosen.allocation_id is None
    with client.gpus(1, set_environment=False):
        assert client.select(1).indices == [1]
        with pytest.raises(gflow.NoGpus, match="Need 2 GPUs, only 1 available"):
            client.select(2)
        with pytest.raises(gflow.Infeasible, match="3 GPUs"):
            client.select(3)


