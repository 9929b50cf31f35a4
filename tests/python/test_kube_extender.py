# SPDX-License-Identifier: Apache-2.0
"""kube-scheduler itself, with gflow-kube as its extender, configured as docs/cluster.md has it, and with kube-scheduler's own rights."""

import contextlib
import http.server
import json
import os
import queue
import re
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request

import pytest
import yaml
from between import LOST, is_binding
from cluster import ADMIN, programs
from kube_person import Person
from kube_scheduler import Scheduler, chosen, contradictions, make_pod, node_of, pods_of, until, until_bound, until_told
from machine import PATIENCE
from package import ROOT
from pypi import needed

USER = "system:kube-scheduler"
DOCUMENTS = ("cluster.md", "cluster.zh-CN.md")
NOBODY = 65534


def documented(document):
    """The configuration of kube-scheduler."""
    blocks = re.findall(r"^```yaml\n(.*?)^```", (ROOT / "docs" / document).read_text(), re.MULTILINE | re.DOTALL)
    [config] = [block for block in blocks if "KubeSchedulerConfiguration" in block]
    return yaml.safe_load(config)


class Extender:
    """One, which answers at the same port as often as it is started."""

    def __init__(self, kube, user, server=None):
        self._kube, self._user, self._server = kube, user, server
        self.port = 0
        self.start()

    def start(self):
        self._one = Scheduler(self._kube, "--listen", f"127.0.0.1:{self.port}", command=("extender",), user=self._user, server=self._server)
        assert self._one.says("knows all nodes and pods"), self._one.said()
        self.port = int(re.search(r"at http://127\.0\.0\.1:(\d+)", self._one.said())[1])

    def end(self, how=signal.SIGKILL):
        return self._one.end(how)

    def said(self):
        return self._one.said()

    def answers(self, path, body=None, method=None):
        """The status and the text."""
        asked = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data=body, method=method)
        try:
            with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()


@pytest.fixture
def user(kube):
    certificate, key = kube.certificate(USER)
    return {"client-certificate": str(certificate), "client-key": str(key)}


@pytest.fixture
def extender(kube, user):
    one = Extender(kube, user)
    yield one
    one.end()


@contextlib.contextmanager
def asking(kube, user, extender):
    """A kube-scheduler that asks it."""
    program = needed(programs() / "kube-scheduler", "kube-scheduler")
    config = documented("cluster.md")
    config["clientConnection"]["kubeconfig"] = str(kube.kubeconfig("", "of-extended", user))
    config["leaderElection"] = {"leaderElect": False}
    config["extenders"][0]["urlPrefix"] = f"http://127.0.0.1:{extender.port}"
    path = kube.root / "extended.json"
    path.write_text(json.dumps(config))
    with open(kube.root / "extended.log", "wb") as log:
        process = subprocess.Popen([programs() / program.name, f"--config={path}", "--secure-port=0", "--v=0"], stdout=log, stderr=log)
    try:
        yield
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE)
    assert contradictions(kube) == []


@pytest.fixture
def extended(kube, user, extender):
    """A cluster with both."""
    with asking(kube, user, extender):
        yield kube


def ask(kube, name, gpu=None, count=0, **more):
    return make_pod(kube, name, gpu, count, scheduler="default-scheduler", **more)


def test_both_documents_have_the_same_configuration():
    assert documented(DOCUMENTS[0]) == documented(DOCUMENTS[1])


def test_pods_have_what_they_ask_for(extended, extender, viewers):
    extended.node("a", 2, "A100")
    extended.node("v", 4, "V100")
    ask(extended, "train", "2(V100)")
    ask(extended, "half", "8G,0.5(A100)")
    ask(extended, "rest", "0.5(A100)")
    ask(extended, "counted", None, 1)
    ask(extended, "plain")
    pods = until_bound(extended, "train", "half", "rest", "counted", "plain")
    assert (node_of(pods["train"]), node_of(pods["half"]), node_of(pods["rest"])) == ("v", "a", "a")
    assert [parts for _, _, parts in chosen(pods["train"])] == [10000, 10000]
    assert [parts for _, _, parts in chosen(pods["half"]) + chosen(pods["rest"])] == [5000, 5000]
    assert len(chosen(pods["counted"])) == 1 and chosen(pods["plain"]) == []
    # Why others wait, in the words of both.
    ask(extended, "large", "4(V100)")
    ask(extended, "never", "2(H100)")
    ask(extended, "wrong", "1.5(V100)")
    assert "Insufficient nvidia.com/gpu" in until_told(extended, "large", "nodes are available")
    assert "2 node(s) had too few GPUs of the model" in until_told(extended, "never", "nodes are available")
    assert "gflow/gpu: " in until_told(extended, "wrong", "nodes are available")
    shown = Person(extended).queue(GFLOW_KUBE_SCHEDULER="default-scheduler")
    assert shown["default/train"]["status"] == "Running" and shown["default/large"]["status"] == "Queued"
    extended.delete_pod("train")
    extended.delete_pod("counted")
    assert len(chosen(until_bound(extended, "large")["large"])) == 4
    asked = extended.asked_by(USER)
    assert ("create", "", "pods/binding") in asked


def test_it_is_killed_while_pods_come(extended, extender):
    """More halves of GPUs than there is room for: as many run as fit, and all in the end."""
    extended.node("v", 2)
    extended.node("w", 2)
    for i in range(20):
        ask(extended, f"p{i}", "0.5")
        if i % 5 == 4:
            extender.end()
            extender.start()
    for left in (20, 12, 4):
        pods = until(extended, lambda pods, least=min(left, 8): sum(1 for pod in pods.values() if node_of(pod)) >= least, patience=120)
        assert contradictions(extended) == []
        there = [name for name, pod in pods.items() if node_of(pod)]
        assert len(there) == min(left, 8) and len(pods) == left, there
        extender.end()
        for name in there:
            extended.delete_pod(name)
        extender.start()


def test_kube_scheduler_makes_room_for_what_it_counts(extended, classes):
    """And for nothing else: it would evict for nothing."""
    extended.node("v", 1)
    ask(extended, "low", None, 1, priorityClassName="low")
    until_bound(extended, "low")
    ask(extended, "part", "0.5", priorityClassName="high")
    assert "Preemption is not helpful" in until_told(extended, "part", "Insufficient")
    extended.delete_pod("part")  # the room would not be kept from it
    ask(extended, "high", None, 1, priorityClassName="high")
    pods = until(extended, lambda pods: "low" not in pods and "high" in pods and node_of(pods["high"]))
    assert len(chosen(pods["high"])) == 1


class Told(http.server.ThreadingHTTPServer):
    """Between kube-scheduler and its extender: which pod was refused all nodes."""

    daemon_threads = True

    def __init__(self, port):
        super().__init__(("127.0.0.1", 0), _Passed)
        self.extender, self.port, self.refused = port, self.server_port, queue.SimpleQueue()
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _Passed(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        """Nobody reads it."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        asked = urllib.request.Request(f"http://127.0.0.1:{self.server.extender}{self.path}", data=body)
        with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
            told = answer.read()
        self.send_response_only(200)
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)
        if self.path == "/filter" and not json.loads(told)["NodeNames"]:
            self.server.refused.put(json.loads(body)["Pod"]["metadata"]["name"])


def test_room_that_it_hears_of_late(kube, user, between):
    """kube-scheduler knows of it before, asks at once, is told that there is none, and would not ask again for minutes."""
    kube.node("v", 1)
    extender = Extender(kube, {"token": ADMIN}, between.url)
    told = Told(extender.port)
    with contextlib.ExitStack() as ends:
        ends.callback(extender.end)
        ends.callback(told.shutdown)
        ends.callback(between.watches_flow.set)
        ends.enter_context(asking(kube, user, told))
        ask(kube, "first", "1")
        until_bound(kube, "first")
        ask(kube, "second", "1")
        assert told.refused.get(timeout=PATIENCE) == "second"
        until_told(kube, "second", "Insufficient")
        between.watches_flow.clear()
        kube.delete_pod("first")
        assert told.refused.get(timeout=PATIENCE) == "second"
        between.watches_flow.set()
        pods = until_bound(kube, "second")
        assert "gflow/room-seen" in pods["second"]["metadata"]["annotations"]


def test_a_binding_is_sent_no_longer_than_kube_scheduler_surely_leads(kube, between):
    """Nobody knows whether it arrived, so its GPU stays its own; and it does not arrive later, when another may have been given that."""
    kube.node("v", 1)
    extender = Extender(kube, {"token": ADMIN}, between.url)
    try:
        for name in ("first", "second"):
            ask(kube, name, "1")
        pods = pods_of(kube)

        def asks(what, name):
            metadata = pods[name]["metadata"]
            args = {"Pod": pods[name], "NodeNames": ["v"]} if what == "/filter" else {
                "PodName": name, "PodNamespace": "default", "PodUID": metadata["uid"], "Node": "v"}
            return json.loads(extender.answers(what, json.dumps(args).encode())[1])

        assert asks("/filter", "first")["NodeNames"] == ["v"] == asks("/filter", "second")["NodeNames"]
        between.hook = lambda method, path, forward: LOST if is_binding(method, path) else forward()
        assert "nobody knows yet" in asks("/bind", "first")["Error"]
        between.hook = lambda method, path, forward: forward()
        since, looks = len(between.seen), 0
        end = time.monotonic() + PATIENCE
        while looks < 3:
            assert time.monotonic() < end, between.seen[since:]
            time.sleep(0.05)  # it is seen by what passes
            looks = sum(path.endswith("/pods/first") for _, path, _ in between.seen[since:])
        assert not [path for method, path, _ in between.seen[since:] if is_binding(method, path)]
        assert asks("/filter", "second")["NodeNames"] == [] and "Insufficient" in asks("/bind", "second")["Error"]
        assert "is about to be on v" in asks("/bind", "first")["Error"]
        assert not any(node_of(pod) for pod in pods_of(kube).values())
        assert extender.end(signal.SIGTERM) == 0, "also in the middle of it"
    finally:
        extender.end()


def test_it_answers_nothing_it_does_not_understand(extender):
    assert extender.answers("/healthz") == (200, "ok") == extender.answers("/readyz")
    assert extender.answers("/")[0] == 404 == extender.answers("/preempt", b"{}")[0]
    assert extender.answers("/filter")[0] == 405 == extender.answers("/healthz", b"{}")[0] == extender.answers("/bind", b"{}", "PUT")[0]
    for path in ("/filter", "/prioritize", "/bind"):
        for body in (b"", b"{}", b"[" * 100_000, b"\xff\xfe", b'{"Pod": 5, "NodeNames": {}}'):
            status, told = extender.answers(path, body)
            assert status == 400 and "these are no Extender" in told, (path, body[:20], told)
    status, told = extender.answers("/bind", json.dumps({"PodName": "p", "PodNamespace": "default", "PodUID": "u", "Node": "n"}).encode())
    assert status == 200 and "is not known to gflow-kube yet" in json.loads(told)["Error"]


def test_others_of_the_machine_are_not_answered(extender):
    """Who asks could have pods bound."""
    if os.geteuid() != 0:
        pytest.skip("to be another user takes root")
    code = f"""
import os, socket
os.setgid({NOBODY})
os.setuid({NOBODY})
with socket.create_connection(("127.0.0.1", {extender.port}), 30) as asks:
    asks.sendall(b"GET /healthz HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
    print(asks.recv(100))
"""
    done = subprocess.run(["/usr/bin/python3", "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert "200" not in done.stdout, done.stdout
    end = time.monotonic() + PATIENCE
    while f"the user with uid {NOBODY} is not answered" not in extender.said():
        assert time.monotonic() < end, extender.said()
        time.sleep(0.02)  # its log is a file: there is nothing to be told by
    assert extender.answers("/healthz")[0] == 200


def test_before_it_knows_the_cluster_it_says_so(kube, user):
    """And whoever asks later is answered by what is there then."""
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as silent:  # nobody answers there
        nowhere = Scheduler(kube, "--listen", "127.0.0.1:0", command=("extender",), user=user, server=f"https://127.0.0.1:{silent.getsockname()[1]}")
        try:
            assert nowhere.says("answers a kube-scheduler at"), nowhere.said()
            port = int(re.search(r"at http://127\.0\.0\.1:(\d+)", nowhere.said())[1])
            for path, body in (("/readyz", None), ("/filter", b"{}"), ("/bind", b"{}")):
                with pytest.raises(urllib.error.HTTPError) as refused:
                    urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}{path}", data=body), timeout=PATIENCE)
                assert refused.value.code == 503 and b"it waits for" in refused.value.read()
        finally:
            nowhere.end(signal.SIGKILL)


@pytest.mark.parametrize("where", ["0.0.0.0:10260", "10.0.0.1:1", "nowhere", "127.0.0.1:99999"])
def test_it_listens_to_this_machine_alone(kube, user, where):
    one = Scheduler(kube, "--listen", where, command=("extender",), user=user)
    assert one.wait() == 2 and "--listen" in one.said(), one.said()
