# SPDX-License-Identifier: Apache-2.0
"""gflow.kubernetes over a kube-apiserver whose answers come late, not at all, or are none; and over what others wrote there."""

import contextlib
import copy
import dataclasses
import json
import logging
import os
import pickle
import re
import socket
import ssl
import subprocess
import threading
import time
from pathlib import Path

import gflow
import pytest
from between import LOST, lost_after
from cluster import ADMIN, path_of
from gflow import _kube_api, GPUMemoryGuard, GPUResourceParser, GPUScheduler, SchedulingRequest
from machine import PATIENCE
from package import ROOT

pytestmark = pytest.mark.usefixtures("kube_package", "native")

LEASES = "/apis/coordination.k8s.io/v1/namespaces/gflow/leases"


@pytest.fixture
def manager():
    """Makes managers; what they hold at the end of a test is given back."""
    made = []

    def make(client):
        made.append(gflow.manager.GPUResourceManager(client))
        return made[-1]

    yield make
    for one in made:
        for held in list(one._held):
            one.give_back(held)


def config(count=1, **more):
    return gflow.manager.TrainingGPUConfig(gpu_count=count, **more)


def scheduler_of(client):
    parser = GPUResourceParser()
    made = GPUScheduler(client, parser, GPUMemoryGuard(client, parser))
    made.scheduling_policy = "pack"
    return made


def is_bind(method, path):
    return path.endswith("/binding")


def is_put(method, path):
    return method == "PUT" and path.startswith(LEASES)


def lease(kube, written, node="a"):
    kube.make({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
               "metadata": {"name": node, "namespace": "gflow", "annotations": {"gflow/allocations": written}}})


def said(**more):
    return {"id": 1, "resource": "nvidia.com/gpu", "gpus": 1, "holder": "x/1", "user": "u", "renewed": int(time.time()), "ttl": 60, "pod": "", **more}


def forked(call):
    """What it answers in a fork of this process."""
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            told = call()
        except BaseException as error:
            told = f"{type(error).__name__}: {error}"
        os.write(write, json.dumps(told).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        told = json.loads(pipe.read())
    os.waitpid(pid, 0)
    return told


# Who asks

@pytest.mark.parametrize("ending", ["", "\n", " \r\n"])
def test_a_token_may_end_with_a_line(kube, kubeconfig_of, kubernetes_client, tmp_path, ending):
    token = kube.token("gflow", "gflow") + ending
    (tmp_path / "token").write_text(token)
    for user in ({"token": token}, {"tokenFile": str(tmp_path / "token")}):
        assert kubernetes_client(kubeconfig=kubeconfig_of(user)).user() == "system:serviceaccount:gflow:gflow"


@pytest.mark.parametrize("token", ["SECRET\u4e2d", "SECRET\nX-Evil: 1", "SECRET\x00", "SECRET\u00e9"])
def test_a_token_that_is_none_is_not_shown(kubeconfig_of, kubernetes_client, caplog, token):
    client = kubernetes_client(kubeconfig=kubeconfig_of({"token": token}))
    with pytest.raises(gflow.ConfigurationError, match="characters that no token has") as caught:
        client.user()
    told, seen = [], caught.value
    while seen is not None:
        told.append(str(seen))
        seen = seen.__cause__
    assert scheduler_of(client).schedule_pod(SchedulingRequest("p", "default", "1(V100)")) is None
    assert "SECRET" not in caplog.text + "".join(told)


def test_threads_of_a_fork_have_connections_of_their_own(kube, kubernetes_client):
    kube.node("a")
    client = kubernetes_client()
    client.get_nodes()
    of_parent = client._api._connection.manager.urlopen
    used = []

    def noted(*words, **options):
        used.append(os.getpid())
        return of_parent(*words, **options)

    client._api._connection.manager.urlopen = noted

    def asked():
        start, errors = threading.Barrier(8), []

        def ask():
            start.wait()
            try:
                client.get_nodes()
            except gflow.GflowError as error:
                errors.append(str(error))

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        return [len(used), errors]

    assert forked(asked) == [0, []]


def test_a_fork_asks_the_cluster_that_was_meant(kube, between, kubeconfig_of, kubernetes_client):
    """Whatever has become of the file since, and not with the parent's connections."""
    kube.node("a")
    path = kubeconfig_of()
    client = kubernetes_client(kubeconfig=path)
    path.write_text(kubeconfig_of(server=between.url).read_text())
    names = lambda: [one["name"] for one in client.get_nodes()]
    assert forked(names) == ["a"]
    path.unlink()
    assert forked(names) == ["a"] and between.seen == []


# What is held

@pytest.mark.parametrize("gpus, resource", [(4, "nvidia.com/gpu"), (2, "nvidia.com/gpu"), (1, "amd.com/gpu")])
def test_a_pod_takes_no_more_than_its_allocation_has(kube, manager, kubernetes_client, gpus, resource):
    kube.node("a", 4)
    client = kubernetes_client()
    held = manager(client).hold(config(1))
    limits = {"containers": [{"name": "main", "image": "none", "resources": {"limits": {resource: str(gpus)}}}]}
    kube.pod("greedy", labels={"gflow/lease": str(held.allocation_id)}, spec=limits)
    left = 1 if resource == "nvidia.com/gpu" else 0
    with pytest.raises(gflow.NoGpus, match=f"allocation {held.allocation_id}.* has {left} {resource} left on node a, not {gpus}"):
        client.bind_pod("default", "greedy", "a")
    assert kube.node_of("greedy") is None and [one.id for one in client.allocations()] == [held.allocation_id]


def test_pods_share_what_their_allocation_has(kube, manager, kubernetes_client):
    kube.node("a", 4)
    client = kubernetes_client()
    held = manager(client).hold(config(2))
    for name in ("one", "two", "three"):
        kube.pod(name, 1, labels={"gflow/lease": str(held.allocation_id)})
    assert [client.bind_pod("default", name, "a") for name in ("one", "two")] == ["a", "a"]
    with pytest.raises(gflow.NoGpus, match="has 0 nvidia.com/gpu left"):
        client.bind_pod("default", "three", "a")
    assert [one["name"] for one in client.get_pods() if one["phase"] == "Leased"] == [], "pods have all of it"


def test_an_allocation_given_back_while_its_pod_is_bound_is_nobody_elses(kube, manager, kubernetes_client):
    kube.node("a", 2)
    client = kubernetes_client()
    first, other = manager(client), manager(kubernetes_client())
    held = first.hold(config(2))
    kube.pod("under", 2, labels={"gflow/lease": str(held.allocation_id)})
    bind, got = client._bind, []

    def meanwhile(*words):
        assert first.give_back(held) is True
        got.append(other.hold(config(1)))
        bind(*words)

    client._bind = meanwhile
    assert client.bind_pod("default", "under", "a") == "a" and got == [None]
    assert client.allocations() == []


def test_gpus_stay_held_while_a_pod_may_still_be_bound(kube, between, through, manager, kubernetes_client):
    """A binding that nobody answers in time, and that is done later."""
    kube.node("a", 1)
    kube.pod("slow", 1)
    go_on, done = threading.Event(), threading.Event()

    def late(forward):
        go_on.wait(PATIENCE)
        told = forward()
        done.set()
        return told

    between.once(is_bind, late)
    with pytest.raises(gflow.ServerTimeout):
        through(timeout=1).bind_pod("default", "slow", "a")
    other = manager(kubernetes_client())
    assert other.hold(config()) is None
    go_on.set()
    assert done.wait(PATIENCE) and kube.node_of("slow") == "a"
    assert other.hold(config()) is None
    (one,) = kubernetes_client().allocations()
    assert one.pod == "default/slow" and one.ttl == 63, "three requests, and how long the API server may take"
    assert [told["name"] for told in kubernetes_client().get_pods()] == ["slow"]


def test_a_pod_whose_binding_failed_unanswered_may_be_bound_again(kube, between, through):
    kube.node("a", 1)
    kube.pod("p", 1)
    between.once(is_bind, lambda forward: LOST)
    client = through(timeout=2)
    with pytest.raises(gflow.ConnectionLost):
        client.bind_pod("default", "p", "a")
    assert len(client.allocations()) == 1
    assert client.bind_pod("default", "p", "a") == "a" and client.allocations() == []


def test_a_binding_that_was_done_unanswered_is_done(kube, between, through):
    kube.node("a", 1)
    kube.pod("p", 1)
    between.once(is_bind, lost_after)
    client = through()
    assert scheduler_of(client).schedule_pod(SchedulingRequest("p", "default", "1(V100)"), bind=True) == "a"
    assert client.allocations() == []


def test_a_pod_is_not_bound_when_its_hold_may_end_before(kube, kubernetes_client):
    kube.node("a", 1)
    kube.pod("p", 1)
    client = kubernetes_client()
    for_pod = client._taking.for_pod
    client._taking.for_pod = lambda *words: dataclasses.replace(for_pod(*words), until=time.monotonic())
    with pytest.raises(gflow.NoGpus, match="took too long"):
        client.bind_pod("default", "p", "a")
    assert kube.node_of("p") is None and client.allocations() == []


def test_a_second_cleanup_takes_nothing_of_another_program(kube, manager, kubernetes_client):
    kube.node("a", 4)
    one, other = manager(kubernetes_client()), manager(kubernetes_client())
    held = other.hold(config(1))
    assert one.allocate_gpu_resources(config(1)) == "a"
    assert [one.cleanup_gpu_resources("a", 1), one.cleanup_gpu_resources("a", 1), one.cleanup_gpu_resources("a")] == [True, False, False]
    assert [it.id for it in kubernetes_client().allocations()] == [held.allocation_id] and held.lost is None


# What others wrote

@pytest.mark.parametrize("written", [
    "{", "5", "null", '"x"', json.dumps(said()), "[" * 100_000, "[5]", '[{"id": 1, "gpus": NaN}]',
    *(json.dumps([said(**bad)]) for bad in (
        {"ttl": 10 ** 18}, {"gpus": -3}, {"gpus": "1"}, {"gpus": 0.5}, {"gpus": True}, {"renewed": None}, {"holder": 5}, {"id": 10 ** 40}))],
    ids=lambda text: re.sub(r'"renewed": [0-9]+, ', "", text)[:90])  # which every process that runs tests has to find alike
def test_what_cannot_be_read_makes_one_node_unusable(kube, manager, kubernetes_client, caplog, written):
    """Its GPUs are nobody's to take; those of others are."""
    kube.node("a", 1)
    kube.node("b", 4)
    lease(kube, written)
    client = kubernetes_client()
    kube.pod("p")
    resources = manager(client)
    assert resources.initialized is True and {one.node_name: one.available_gpus for one in resources.get_available_gpu_nodes()} == {"b": 4}
    assert resources.allocate_gpu_resources(config(1)) == "b"
    assert scheduler_of(client).schedule_pod(SchedulingRequest("p", "default", "1(V100)"), bind=True) == "b"
    kube.pod("q")
    with pytest.raises(gflow.NoGpus, match="node a: who holds its GPUs cannot be read of annotation gflow/allocations of Lease a"):
        client.bind_pod("default", "q", "a")
    assert "cannot be read" in caplog.text
    assert kube.ask("GET", f"{LEASES}/a")["metadata"]["annotations"]["gflow/allocations"] == written


def test_what_a_newer_version_wrote_stays(kube, manager, kubernetes_client):
    kube.node("a", 4)
    lease(kube, json.dumps([said(devices=[0, 3])]))
    resources = manager(kubernetes_client())
    assert resources.allocate_gpu_resources(config(4)) is None and resources.allocate_gpu_resources(config(3)) == "a"
    (one, _) = json.loads(kube.ask("GET", f"{LEASES}/a")["metadata"]["annotations"]["gflow/allocations"])
    assert one["devices"] == [0, 3] and one["gpus"] == 1


def test_a_renewal_goes_on_when_what_was_written_can_be_read_again(kube, manager, frequent_renewals, kubernetes_client, caplog):
    kube.node("a", 2)
    resources = manager(kubernetes_client())
    held = resources.hold(config(1))
    caplog.set_level(logging.WARNING)
    right = kube.ask("GET", f"{LEASES}/a")["metadata"]["annotations"]["gflow/allocations"]
    kube.ask("PATCH", f"{LEASES}/a", {"metadata": {"annotations": {"gflow/allocations": "{"}}})
    end = time.monotonic() + PATIENCE
    while "GPU资源续期失败，将重试" not in caplog.text and time.monotonic() < end:
        time.sleep(0.05)
    kube.ask("PATCH", f"{LEASES}/a", {"metadata": {"annotations": {"gflow/allocations": right}}})
    before = json.loads(right)[0]["renewed"]
    while kubernetes_client().allocations()[0].renewed == before and time.monotonic() < end:
        time.sleep(0.05)
    assert held.lost is None and resources.give_back(held) is True


# Time

@pytest.fixture
def dripping():
    """The URL of a server that answers a byte at a time."""
    ended = threading.Event()

    def drip(connection, head):
        with connection, contextlib.suppress(OSError):
            connection.recv(65536)
            connection.sendall(head)
            while not ended.wait(0.05):
                connection.sendall(b" ")

    def serve(server, head):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=drip, args=(server.accept()[0], head), daemon=True).start()

    servers = []

    def make(head):
        servers.append(socket.create_server(("127.0.0.1", 0)))
        threading.Thread(target=serve, args=(servers[-1], head), daemon=True).start()
        return f"http://127.0.0.1:{servers[-1].getsockname()[1]}"

    yield make
    ended.set()
    for one in servers:
        one.close()


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", b"HTTP/1.1 200 OK\r\nX: "])
def test_who_answers_for_ever_is_not_heard_for_ever(kube, dripping, kubeconfig_of, kubernetes_client, head):
    client = kubernetes_client(kubeconfig=kubeconfig_of(server=dripping(head)), timeout=1)
    with pytest.raises(gflow.ServerTimeout, match="does not answer"):
        client.get_nodes()


def test_what_was_refused_for_now_is_asked_again_in_time(kube, between, through, manager):
    kube.node("a")
    busy = []

    def each_second(method, path, forward):
        busy.append(path)
        return (429, {"Retry-After": "0"}, b"{}") if len(busy) % 2 else forward()

    between.hook = each_second
    resources = manager(through())
    held = resources.hold(config(1))
    assert held.node == "a" and resources.give_back(held) is True
    between.hook = lambda method, path, forward: (429, {"Retry-After": "3600"}, b'{"message": "later"}')
    between.seen.clear()
    with pytest.raises(gflow.Exhausted, match="later") as caught:
        through().get_nodes()
    assert caught.value.retry_after == 3600 and len(between.seen) == 1


@pytest.mark.parametrize("after", ["soon", "-1", "", "9" * 400, "1e3"])
def test_a_time_to_wait_that_is_none(kube, between, through, after):
    between.hook = lambda method, path, forward: (429, {"Retry-After": after}, b"{}")
    with pytest.raises(gflow.Exhausted):
        through().get_nodes()
    assert len(between.seen) == 1


@pytest.mark.parametrize("date", [None, "rubbish", "Thu, 01 Jan 1970 00:00:00 GMT", "Thu, 26 Nov 99999 21:00:00 GMT"])
def test_nothing_is_held_by_a_time_that_is_none(kube, between, through, manager, kubernetes_client, date):
    kube.node("a")

    def undated(method, path, forward):
        status, headers, body = forward()
        kept = {name: value for name, value in headers.items() if name != "Date"}
        return status, kept | ({"Date": date} if date else {}), body

    between.hook = undated
    with pytest.raises(gflow.Unavailable, match="it has no Date"):
        manager(through()).hold(config(1))
    assert kubernetes_client().allocations() == []


# Answers that are lost, or are none

BAD_ANSWERS = [b'{"items":[', b"<html>log in</html>", b"[]", b"null", b'{"metadata": {}, "items": null}', b'{"kind": "Status"}', b"\xff\xfe{}", b"",
               b'{"metadata": {}, "items": [5]}', b'{"metadata": {}, "items": [{"metadata": {}}]}', b"[" * 100_000]


@pytest.mark.parametrize("body", BAD_ANSWERS, ids=range(len(BAD_ANSWERS)))
def test_what_is_no_answer_of_kubernetes_is_said_to_be_none(kube, between, through, manager, body):
    between.hook = lambda method, path, forward: (200, {}, body)
    client = through()
    for ask in (client.get_nodes, client.get_pods, client.allocations, client.user, lambda: client.bind_pod("default", "p", "a")):
        with pytest.raises(gflow.GflowError, match="no answer of a Kubernetes API server"):
            ask()
    assert manager(client).initialized is False


@pytest.mark.parametrize("status, kind", [(500, gflow.Unavailable), (502, gflow.Unavailable), (504, gflow.Unavailable), (302, gflow.Problem)])
def test_a_status_is_shown_as_it_was(kube, between, through, status, kind):
    between.hook = lambda method, path, forward: (status, {"Location": "http://127.0.0.1:1/"}, b'{"message": "no"}')
    with pytest.raises(kind, match=rf"GET /api/v1/pods: {status} failure"):
        through().get_nodes()


def test_what_a_server_says_is_fit_to_be_shown(kube, between, through):
    said = {"message": "no\x1b]0;evil\x07\r\nFAKE LINE" + "x" * 5_000_000}
    between.hook = lambda method, path, forward: (403, {}, json.dumps(said).encode())
    with pytest.raises(gflow.PermissionDenied) as caught:
        through().get_nodes()
    assert str(caught.value).isprintable() and len(str(caught.value)) < 1000


def test_what_only_looks_is_asked_again(kube, between, through):
    kube.node("a")
    lost = between.once(lambda method, path: True, lambda forward: LOST)
    assert [one["name"] for one in through().get_nodes()] == ["a"] and lost


def test_of_gpus_that_were_taken_unanswered_it_is_known(kube, between, through, manager):
    kube.node("a", 1)
    client = through()
    resources = manager(client)
    resources.give_back(resources.hold(config(1)))
    lost = between.once(is_put, lost_after)
    held = resources.hold(config(1))
    assert lost and [one.id for one in client.allocations()] == [held.allocation_id]
    lost = between.once(is_put, lost_after)
    assert resources.give_back(held) is True and lost and client.allocations() == []


def test_gpus_that_were_given_back_unheard_are_given_back(kube, between, through, manager):
    """Also where nobody can be asked about it until it is tried again."""
    kube.node("a", 1)
    resources = manager(through())
    held = resources.hold(config(1))
    gone = []

    def down(method, path, forward):
        if is_put(method, path):
            gone.append(path)
            forward()
        return LOST if gone else forward()

    between.hook = down
    with pytest.raises(gflow.ConnectionLost):
        resources.give_back(held)
    between.hook = lambda method, path, forward: forward()
    assert resources.give_back(held) is True and held.lost is None


def test_who_could_not_give_back_still_holds(kube, between, through, manager, frequent_renewals):
    """It is renewed until it is tried again; what somebody else takes away meanwhile is lost."""
    kube.node("a", 2)
    client = through()
    resources = manager(client)
    one, other = resources.hold(config(1)), resources.hold(config(1))
    lost = threading.Event()
    other.on_lost(lambda _: lost.set())
    between.hook = lambda method, path, forward: (500, {}, b"{}")
    for held in (one, other):
        with pytest.raises(gflow.Unavailable, match="500"):
            resources.give_back(held)
    between.hook = lambda method, path, forward: forward()
    before = {it.id: it.renewed for it in client.allocations()}
    end = time.monotonic() + PATIENCE
    while any(it.renewed == before[it.id] for it in client.allocations()) and time.monotonic() < end:
        time.sleep(0.1)
    client.give_back(next(it for it in client.allocations() if it.id == other.allocation_id))
    assert lost.wait(PATIENCE) and resources.give_back(other) is False
    assert one.lost is None and resources.give_back(one) is True


def test_who_hears_of_a_loss_may_give_it_back(kube, manager, frequent_renewals, kubernetes_client):
    kube.node("a", 1)
    client = kubernetes_client()
    resources = manager(client)
    held = resources.hold(config(1))
    told, heard = [], threading.Event()

    def on_lost(_):
        told.append(resources.give_back(held))
        heard.set()

    held.on_lost(on_lost)
    client.give_back(client.allocations()[0])
    assert heard.wait(PATIENCE) and told == [False]


def test_a_fork_gives_back_nothing_of_its_parent(kube, manager, kubernetes_client):
    kube.node("a", 2)
    resources = manager(kubernetes_client())
    held = resources.hold(config(1))
    assert forked(lambda: resources.cleanup_gpu_resources("a")) is False
    assert [one.id for one in kubernetes_client().allocations()] == [held.allocation_id]
    assert held.lost is None and resources.give_back(held) is True


# Credentials

def exec_of(script):
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/sh", "args": ["-c", script], "interactiveMode": "Never"}}


@pytest.mark.parametrize("script, why", [
    ("echo SECRET; echo SECRET >&2; exit 3", "ended with exit code 3"), ("echo SECRET", "answers no ExecCredential"), ("exec sleep 3600", "did not answer in 1 s"),
    ("echo '{\"apiVersion\": \"client.authentication.k8s.io/v1\", \"status\": {}, \"x\": \"SECRET\"}'", "tells neither a token nor a certificate")])
def test_a_program_for_credentials_that_is_of_no_use(kubeconfig_of, kubernetes_client, caplog, script, why):
    """Nobody asks as nobody instead, and nothing of what it wrote is shown."""
    with pytest.raises(gflow.ConfigurationError, match=f"program for credentials, /bin/sh, is of no use: it {why}") as caught:
        kubernetes_client(kubeconfig=kubeconfig_of(exec_of(script)), timeout=1)
    assert "SECRET" not in str(caught.value) + caplog.text


def test_a_program_for_credentials(kube, kubeconfig_of, kubernetes_client, tmp_path):
    told = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": kube.token("gflow", "gflow")}}
    (tmp_path / "told").write_text(json.dumps(told))
    assert kubernetes_client(kubeconfig=kubeconfig_of(exec_of(f"cat {tmp_path}/told"))).user() == "system:serviceaccount:gflow:gflow"


def test_a_token_that_was_replaced_is_read_again(kube, between, kubeconfig_of, kubernetes_client, tmp_path):
    old, new = ADMIN, kube.token("gflow", "gflow")
    (tmp_path / "token").write_text(old)
    client = kubernetes_client(kubeconfig=kubeconfig_of({"tokenFile": str(tmp_path / "token")}, between.url))
    assert client.user() == "admin"
    (tmp_path / "token").write_text(new)
    between.hook = lambda method, path, forward: forward() if between.seen[-1][2].endswith(new) else (401, {}, b"{}")
    assert client.user() == "system:serviceaccount:gflow:gflow"
    between.hook = lambda method, path, forward: (401, {}, b"{}")
    between.seen.clear()
    with pytest.raises(gflow.Unauthenticated):
        client.user()
    assert len(between.seen) == 1, "the same token is not tried twice"


@pytest.mark.parametrize("server", ["https://", "ftp://127.0.0.1", "https://127.0.0.1:99999", "127.0.0.1:6443", "http://u:SECRET@:1", "ftp://u:SECRET@h"])
def test_a_server_that_is_none(kubeconfig_of, kubernetes_client, server):
    with pytest.raises(gflow.ConfigurationError, match="is not the URL of an API server") as caught:
        kubernetes_client(kubeconfig=kubeconfig_of(server=server))
    assert "SECRET" not in str(caught.value)


def test_a_password_of_a_server_is_not_shown(kubeconfig_of, kubernetes_client):
    client = kubernetes_client(kubeconfig=kubeconfig_of(server="http://u:SECRET@127.0.0.1:1"), timeout=1)
    with pytest.raises(gflow.Unreachable) as caught:
        client.get_nodes()
    assert "SECRET" not in str(caught.value) + client.server


def test_a_certificate_that_is_wrong_is_tried_once(kube, kubeconfig_of, kubernetes_client, tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", tmp_path / "key", "-out", tmp_path / "other", "-subj", "/CN=x"]
    subprocess.run(made, check=True, capture_output=True)
    client = kubernetes_client(kubeconfig=kubeconfig_of(server=kube.url, **{"certificate-authority": str(tmp_path / "other")}))
    with pytest.raises(gflow.Unreachable, match="CERTIFICATE_VERIFY_FAILED"):
        client.get_nodes()
    assert caplog.text.count("Starting new HTTPS connection") == 1 and "Retrying" not in caplog.text


def test_which_file_is_meant(kube, kubernetes_client, kubeconfig_of, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", "/nowhere")
    with pytest.raises(gflow.ConfigurationError, match="there is no file /nowhere"):
        gflow.kubernetes.KubernetesClient()
    monkeypatch.setenv("KUBECONFIG", f"/nowhere:{kubeconfig_of()}")
    with gflow.kubernetes.KubernetesClient() as client:
        assert client.server == kube.url
    assert gflow.kubernetes.KubernetesClient(kubeconfig=Path(kubeconfig_of())).server == kube.url
    (tmp_path / "broken").write_text("users:\n- token: SECRET\n  - x: [")
    with pytest.raises(gflow.ConfigurationError, match="line [0-9]+ is not YAML") as caught:
        kubernetes_client(kubeconfig=tmp_path / "broken")
    assert "SECRET" not in str(caught.value)


def test_without_a_home(kube_package, monkeypatch):
    def home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", home)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    with pytest.raises(gflow.ConfigurationError, match="name a file with KUBECONFIG"):
        gflow.kubernetes.KubernetesClient()


# What is asked for

@pytest.mark.parametrize("bad", [
    {"timeout": float("inf")}, {"timeout": 1e20}, {"timeout": float("nan")}, {"namespace": None}, {"namespace": "a/b"}, {"namespace": ".."},
    {"gpu_resources": "nvidia.com/gpu"}, {"gpu_resources": 5}, {"tolerated": "team"}, {"lease_seconds": 2 ** 31}, {"kubeconfig": 5}, {"context": 5}])
def test_what_makes_no_sense_is_refused_at_once(kube, kubernetes_client, bad):
    with pytest.raises(gflow.OptionError, match=next(iter(bad))):
        gflow.kubernetes.KubernetesClient(**bad)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../pods/a", "a?x=1", "a%2fb", "A B", "a\nb", "\x00", "x" * 300, "\u4e2d", None])
def test_names_that_are_none_are_not_asked_about(kube, between, through, name):
    client = through()
    for ask in (lambda: client.bind_pod("default", name, "a"), lambda: client.bind_pod(name, "p", "a"), lambda: client.bind_pod("default", "p", name),
                lambda: client.label_node([name], {"x": "y"})):
        with pytest.raises(gflow.OptionError, match="is not a name of Kubernetes"):
            ask()
    with pytest.raises(gflow.OptionError, match=r"names=\['a'\]"):
        client.label_node("a", {"x": "y"})
    assert between.seen == []


def test_a_client_does_not_go_to_other_processes(kubernetes_client):
    for take in (pickle.dumps, copy.copy):
        with pytest.raises(TypeError, match="make one there"):
            take(kubernetes_client())


def test_an_api_server_that_cannot_say_who_asks(kube, between, through, manager):
    kube.node("a")
    missing = (404, {"Date": "Thu, 26 Nov 2026 21:00:00 GMT"}, b'{"kind": "Status", "reason": "NotFound", "message": "no such resource"}')
    between.hook = lambda method, path, forward: missing if "selfsubjectreviews" in path else forward()
    with pytest.raises(gflow.ConfigurationError, match=r"older than 1\.28"):
        manager(through()).hold(config(1))


def test_who_asks_is_asked_once(kube, between, through, manager):
    kube.node("a")
    resources = manager(through())
    for _ in range(3):
        resources.give_back(resources.hold(config(1)))
    assert [path for _, path, _ in between.seen if "selfsubjectreviews" in path] == ["/apis/authentication.k8s.io/v1/selfsubjectreviews"]


def test_gpus_of_any_resource_are_found_by_model(kube, manager, kubernetes_client):
    kube.node("i", 2, "Max1550", resource="gpu.intel.com/i915")
    kube.node("x", 2, "V100", resource="example.com/gpu")
    resources = manager(kubernetes_client(gpu_resources=["gpu.intel.com/i915", "example.com/gpu"]))
    for kind, node in (("Max1550", "i"), ("V100", "x"), ("example.com/gpu", "x"), ("A100|V100", "x")):
        assert [one.node_name for one in resources.get_available_gpu_nodes(kind)] == [node]
        assert resources.validate_gpu_requirements(config(1, gpu_type=kind)) is True
        held = resources.hold(config(2, gpu_type=kind))
        assert held.node == node and resources.give_back(held) is True
    assert resources.validate_gpu_requirements(config(1, gpu_type="A100")) is False


# Nodes that change, and pods that do not fit

def meanwhile(between, call):
    """Once a node has been chosen, and before it is looked at again."""
    between.once(lambda method, path: "selfsubjectreviews" in path, lambda forward: (forward(), call())[0])


def test_the_next_best_node_where_the_best_is_gone(kube, between, through, manager):
    for change in ("deleted", "cordoned"):
        kube.clear()
        kube.node("a", 2)
        kube.node("b", 4)
        kube.pod("p")
        patch = {"spec": {"unschedulable": True}}
        meanwhile(between, lambda: kube.ask("DELETE", "/api/v1/nodes/a") if change == "deleted" else kube.ask("PATCH", "/api/v1/nodes/a", patch))
        held = manager(through()).hold(config(1))
        assert held.node == "b"
        kube.clear()
        kube.node("a", 2)
        kube.node("b", 4)
        kube.pod("p")
        meanwhile(between, lambda: kube.ask("DELETE", "/api/v1/nodes/a") if change == "deleted" else kube.ask("PATCH", "/api/v1/nodes/a", patch))
        assert scheduler_of(through()).schedule_pod(SchedulingRequest("p", "default", "1(V100)"), bind=True) == "b"


def needing(**resources):
    return {"containers": [{"name": "main", "image": "none", "resources": {"limits": resources}}]}


TEAM = {"key": "team", "value": "vision", "effect": "NoSchedule"}


@pytest.mark.parametrize("node, spec, why", [
    ({"ready": False}, {}, "it is not ready"),
    ({"unschedulable": True}, {}, "it is cordoned"),
    ({"taints": [TEAM]}, {}, "it has the taint team"),
    ({"taints": [TEAM]}, {"tolerations": [{"key": "team", "value": "other"}]}, "it has the taint team"),
    ({"taints": [TEAM]}, {"tolerations": [{"key": "team", "value": "vision"}]}, None),
    ({"taints": [TEAM]}, {"tolerations": [{"operator": "Exists", "effect": "NoExecute"}]}, "it has the taint team"),
    ({"taints": [TEAM]}, {"tolerations": [{"operator": "Exists"}]}, None),
    ({"taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]}, {}, None),
    ({}, {"nodeSelector": {"zone": "eu"}}, "it has not the label zone=eu"),
    ({"zone": "eu"}, {"nodeSelector": {"zone": "eu"}}, None),
    ({}, needing(cpu="900"), "it has not so much cpu left"),
    ({}, needing(memory="33Gi"), "it has not so much memory left"),
    ({}, needing(cpu="8", memory="32Gi"), None),
])
def test_a_pod_is_put_only_where_its_node_takes_it(kube, kubernetes_client, node, spec, why):
    kube.node("a", 2, **node)
    kube.pod("p", 1, spec=spec)
    client = kubernetes_client()
    if why is None:
        assert client.bind_pod("default", "p", "a") == "a"
    else:
        with pytest.raises(gflow.NoGpus, match=f"node a: {why}"):
            client.bind_pod("default", "p", "a")
        assert kube.node_of("p") is None
    assert client.allocations() == []


def test_what_is_nowhere_leaves_nothing_behind(kube, kubernetes_client):
    kube.node("a", 2)
    client = kubernetes_client()
    for name, gpus in (("p", 1), ("none", 0)):
        kube.pod(name, gpus)
        with pytest.raises(gflow.NoGpus, match="there is no node nowhere"):
            client.bind_pod("default", name, "nowhere")
    kube.end_pod("p")
    with pytest.raises(gflow.WrongState, match="pod default/p has ended"):
        client.bind_pod("default", "p", "a")
    assert kube.ask("GET", path_of("Lease", "gflow"))["items"] == []


# The scheduler and the guard

def test_requests_are_added_while_others_are_placed(kube, between, through):
    kube.node("a", 4)
    scheduler = scheduler_of(through())
    scheduler.add_scheduling_request(SchedulingRequest("one", "default", "1(V100)"))
    asked, go_on = threading.Event(), threading.Event()

    def slow(forward):
        asked.set()
        go_on.wait(PATIENCE)
        return forward()

    between.once(lambda method, path: True, slow)
    placed = []
    passing = threading.Thread(target=lambda: placed.extend(scheduler.process_pending_requests()))
    passing.start()
    assert asked.wait(PATIENCE)
    scheduler.add_scheduling_request(SchedulingRequest("two", "default", "1(V100)"))
    go_on.set()
    passing.join(PATIENCE)
    assert [request.pod_name for request, _ in placed] == ["one"] and [one.pod_name for one in scheduler.pending_requests] == ["two"]


def test_a_pass_lists_the_cluster_once(kube, between, through):
    kube.node("a", 4)
    scheduler = scheduler_of(through())
    for turn in range(5):
        scheduler.add_scheduling_request(SchedulingRequest(f"p{turn}", "default", "1(V100)"))
    assert len(scheduler.process_pending_requests()) == 4
    assert sorted(path.split("?")[0] for _, path, _ in between.seen) == [
        "/api/v1/nodes", "/api/v1/pods", "/api/v1/pods", "/apis/coordination.k8s.io/v1/namespaces/gflow/leases"]


def test_reservations_of_two_programs_are_counted_together(kube, kubernetes_client):
    kube.node("a", 4)
    one, other = (GPUMemoryGuard(kubernetes_client(kubeconfig=kube.kubeconfig(ADMIN, "admin")), GPUResourceParser()) for _ in range(2))
    told = lambda: kube.ask("GET", f"{path_of('Node')}/a")["metadata"]["labels"].get("gflow/reserved-gpu-memory-16gb")
    assert one.reserve_gpu_memory("a", 1, 16.0) and other.reserve_gpu_memory("a", 2, 16.0) and told() == "3"
    assert other.release_gpu_memory("a", 2, 16.0) and told() == "1"
    assert one.release_gpu_memory("a", 1, 16.0) and told() is None


@pytest.mark.parametrize("page", ["docs/python.md", "docs/python.zh-CN.md"])
def test_the_example_of_the_documents_runs_as_it_is(kube, kubeconfig_of, monkeypatch, page):
    kube.node("a", 4)
    kube.pod("train-1")
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig_of()))
    (example,) = [one for one in re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL) if "KubernetesClient()" in one]
    names = {}
    exec(example, names)
    assert names["node"] == "a" and names["allocation"].node == "a"


@pytest.mark.parametrize("error, kind", [
    (ssl.SSLError(1, "[SSL: DECRYPTION_FAILED_OR_BAD_RECORD_MAC]"), gflow.ConnectionLost), (ssl.SSLCertVerificationError(1, "no"), gflow.Unreachable)])
def test_a_connection_that_breaks_in_use_may_have_carried_the_request(kubernetes_client, error, kind):
    import urllib3.exceptions

    assert type(_kube_api._lost(urllib3.exceptions.SSLError(error), "the API server", "GET /")) is kind
