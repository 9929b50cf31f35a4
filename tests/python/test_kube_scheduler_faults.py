# SPDX-License-Identifier: Apache-2.0
"""gflow-kube where the API server answers late, wrongly or not at all."""

import contextlib
import http.client
import re
import threading
import urllib.error

import pytest
from between import BROKEN, CONFLICT, LOST, Held, is_binding, lost_after, status
from cluster import path_of
from kube_scheduler import SYSTEM, chosen, make_limits, make_pod, node_of, pods_of, told, until, until_bound, until_told
from machine import PATIENCE


@pytest.mark.parametrize("how", [lost_after, lambda forward: LOST, lambda forward: BROKEN, lambda forward: forward() and BROKEN],
                         ids=["done and lost", "lost", "broken", "done and broken"])
def test_a_binding_whose_answer_says_nothing_is_done_once(kube, start, between, how):
    kube.node("n", 2)
    done = between.once(is_binding, how)
    start(server=between.url)
    make_pod(kube, "a", "1")
    make_pod(kube, "b", "1")
    pods = until_bound(kube, "a", "b")
    assert done and chosen(pods["a"]) != chosen(pods["b"])


def test_bindings_that_go_on_failing_keep_no_others_waiting(kube, start, between):
    """As where a webhook is broken that sees one namespace."""
    kube.node("n", 60)
    with contextlib.suppress(urllib.error.HTTPError):  # of an earlier test
        kube.raw("POST", path_of("Namespace"), {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "bad"}})
    between.hook = lambda method, path, forward: BROKEN if is_binding(method, path, "bad/") else forward()
    start(server=between.url)
    for i in range(40):
        make_pod(kube, f"p-{i}", "1", namespace="bad")
    for i in range(3):
        make_pod(kube, f"p-{i}", "1")
    until_bound(kube, "p-0", "p-1", "p-2")
    assert not any(map(node_of, pods_of(kube, "bad").values()))
    between.hook = lambda method, path, forward: forward()
    until_bound(kube, *(f"p-{i}" for i in range(40)), namespace="bad")
    kube.ask("DELETE", f"{path_of('Pod', 'bad')}?gracePeriodSeconds=0")


def test_a_pod_that_changes_while_it_is_bound_gets_what_it_asks_for_then(kube, start, between):
    kube.node("n", 2)
    held = Held(between, is_binding, lambda forward: CONFLICT)
    start(server=between.url)
    make_pod(kube, "a", "1")
    held.reached()
    kube.raw("PATCH", f"{path_of('Pod', 'default')}/a", {"metadata": {"annotations": {"gflow/gpu": "2"}}})
    make_pod(kube, "later", "8")
    until_told(kube, "later", "0/1 nodes are available")  # so the change is known, too
    held.go()
    assert len(chosen(until_bound(kube, "a")["a"])) == 2


def test_the_lease_is_kept_until_what_was_asked_for_has_its_end(kube, start, between):
    """Another must not decide by what is not there yet."""
    kube.node("n", 1)
    held = Held(between, is_binding)
    first = start(server=between.url)
    make_pod(kube, "a", "1")
    held.reached()
    decided = threading.Event()

    def hook(method, path, forward):
        is_ending = "ended by a signal" in first.said()
        told = forward()
        if is_ending and method == "PUT" and "/leases/" in path:
            decided.set()
        return told

    def end():
        first.end()
        decided.set()

    between.hook = hook
    ended = threading.Thread(target=end)
    ended.start()
    assert decided.wait(PATIENCE), "the lease is neither renewed nor given up"
    (lease,) = kube.ask("GET", path_of("Lease", SYSTEM))["items"]
    assert f"_{first.pid}_" in lease["spec"]["holderIdentity"]
    held.go()
    ended.join(PATIENCE)
    start()
    make_pod(kube, "b", "1")
    until_told(kube, "b", "0/1 nodes are available")
    pods = pods_of(kube)
    assert node_of(pods["a"]) == "n" and not node_of(pods["b"])


def is_eviction(method, path):
    return method == "POST" and path.endswith("/eviction")


def test_an_eviction_in_conflict_is_asked_for_again(kube, start, between, classes):
    kube.node("n", 1)
    done = between.once(is_eviction, lambda forward: CONFLICT)
    start("--preempt", server=between.url)
    make_pod(kube, "low", "1")
    until_bound(kube, "low")
    make_pod(kube, "vip", "1", priorityClassName="high")
    until_bound(kube, "vip")
    assert done


def test_who_may_not_evict_does_not_try_it_with_all(kube, start, between, classes):
    kube.node("n", 40)
    between.hook = lambda method, path, forward: status(403, "no right to evict") if is_eviction(method, path) else forward()
    one = start("--preempt", server=between.url)
    for i in range(40):
        make_pod(kube, f"low-{i}", "1")
    until_bound(kube, *(f"low-{i}" for i in range(40)))
    make_pod(kube, "vip", "1", priorityClassName="high")
    assert one.says("no right to evict")
    make_pod(kube, "later", "1", priorityClassName="high")
    until_told(kube, "later", "0/1 nodes are available")
    assert sum(is_eviction(method, path) for method, path, _ in between.seen) == 1


def test_a_pod_that_is_never_bound_is_not_made_room_for_again(kube, start, between, classes):
    kube.node("n", 1)
    tries = []

    def hook(method, path, forward):
        if is_binding(method, path) and "/vip/" in path:
            tries.append(path)
            return status(403, "a policy denies it")
        return forward()

    between.hook = hook
    start("--preempt", server=between.url)
    make_pod(kube, "low-0", "1")
    until_bound(kube, "low-0")
    make_pod(kube, "vip", "1", priorityClassName="high")
    until(kube, lambda pods: "low-0" not in pods)
    make_pod(kube, "low-1", "1")
    until_bound(kube, "low-1")
    until(kube, lambda pods: "Binding" not in (told(pods["vip"]) or "Binding"))  # its pause is over
    assert "Insufficient" in told(pods_of(kube)["vip"]) and "low-1" in pods_of(kube) and tries


def test_what_was_to_be_written_while_the_lease_was_slow_is_not_lost(kube, start, between):
    """Each request of the lease takes most of its time: it is renewed, or given up."""
    kube.node("n", 60)
    slow, passed = threading.Event(), threading.Semaphore(0)

    def hook(method, path, forward):
        if "/leases" in path and slow.is_set():
            threading.Event().wait(0.8)  # of the second that it may take
            passed.release()
        return forward()

    between.hook = hook
    one = start("--lease-duration", "3", server=between.url)
    make_pod(kube, "first", "1")
    until_bound(kube, "first")
    slow.set()
    for i in range(30):
        make_pod(kube, f"p-{i}", "1")
        if i % 3 == 0 and one.is_running():
            passed.acquire(timeout=2)
    slow.clear()
    start()  # as who gave it up is started again
    until_bound(kube, *(f"p-{i}" for i in range(30)))


def test_limits_made_anew_between_two_lists_are_in_force(kube, start, between):
    """The list tells of the new ones before it tells that the old ones are gone."""
    kube.node("n", 4)
    path = make_limits(kube, max_gpus_per_namespace="1")
    first, go, again = threading.Event(), threading.Event(), threading.Event()

    def watch(path):
        if "configmaps" not in path:
            return None
        if first.is_set():
            again.set()
            return None
        first.set()
        assert go.wait(PATIENCE)
        return status(410, "too old resource version")

    between.watch_hook = watch
    try:
        start(server=between.url)
        assert first.wait(PATIENCE)
        kube.ask("DELETE", path)
        make_limits(kube, max_gpus_per_namespace="1")
        go.set()
        assert again.wait(PATIENCE)
        make_pod(kube, "a", "1")
        until_bound(kube, "a")
        make_pod(kube, "b", "1")
        until_told(kube, "b", "holds 1 GPUs and may hold 1 at once")
    finally:
        go.set()
        kube.ask("DELETE", path)


def test_what_it_may_not_read_is_what_it_waits_for(kube, start, between):
    """As after an upgrade without the new rights."""
    between.hook = lambda method, path, forward: status(403, "configmaps is forbidden") if "configmaps" in path else forward()
    one = start("--listen", "127.0.0.1:0", server=between.url)
    assert one.says("configmaps is forbidden")
    address = re.search(r"http://([0-9.]+):([0-9]+)", one.said())
    kube.node("n", 1)
    make_pod(kube, "a", "1")

    def page(path):
        with contextlib.closing(http.client.HTTPConnection(*address.groups(), timeout=PATIENCE)) as connection:
            connection.request("GET", path)
            return connection.getresponse().read().decode()

    assert "configmaps is forbidden" in page("/readyz")
    assert 'gflow_kube_leader{scheduler="gflow"} 0' in page("/metrics"), "so that the alert is heard"
    between.hook = lambda method, path, forward: forward()
    until_bound(kube, "a")
    assert 'gflow_kube_leader{scheduler="gflow"} 1' in page("/metrics")
