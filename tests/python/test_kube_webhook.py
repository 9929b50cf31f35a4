# SPDX-License-Identifier: Apache-2.0
"""gflow-kube webhook, asked by a real API server: packaging/kubernetes/webhook.yaml, but for the Service, behind which nothing runs here."""

import base64
import concurrent.futures
import contextlib
import json
import re
import signal
import socket
import ssl
import subprocess
import urllib.error
import urllib.request

import pytest
import yaml
from cluster import path_of
from kube_scheduler import SYSTEM, Scheduler, make_pod, until_bound, until_in_force
from machine import PATIENCE
from package import ROOT

NAME = "gflow-kube-webhook"
CONFIGURATION = f"{path_of('MutatingWebhookConfiguration')}/{NAME}"
BEGIN = b"-----BEGIN CERTIFICATE-----"


def port_of(webhook):
    assert webhook.says("answers for new pods at "), webhook.said()
    return int(re.search(r"answers for new pods at \S+:(\d+)", webhook.said())[1])


def is_ready(webhook):
    context = ssl._create_unverified_context()  # noqa: S323 -- as a kubelet probes
    with contextlib.suppress(OSError), urllib.request.urlopen(f"https://127.0.0.1:{port_of(webhook)}/readyz", timeout=PATIENCE, context=context) as answer:
        return answer.status == 200
    return False


def apply(kube, one):
    """As kubectl does."""
    path = f"{path_of(one['kind'], one['metadata'].get('namespace', ''))}/{one['metadata']['name']}"
    kube.ask("PATCH", f"{path}?fieldManager=test&fieldValidation=Strict&force=true", one, content_type="application/apply-patch+yaml")


def bundle(kube):
    """What the API server trusts in."""
    (one,) = kube.ask("GET", CONFIGURATION)["webhooks"]
    return base64.b64decode(one["clientConfig"].get("caBundle", ""))


@pytest.fixture
def manifest():
    return {one["kind"]: one for one in yaml.safe_load_all((ROOT / "packaging/kubernetes/webhook.yaml").read_text())}


@pytest.fixture
def webhooks(kube, with_rights, manifest):
    """Starts one; the API server is told of the first, by its address. With exactly the rights of the manifest."""
    made = []
    for kind in ("ServiceAccount", "ClusterRole", "ClusterRoleBinding"):
        apply(kube, manifest[kind])

    def start(*options):
        webhook = Scheduler(kube, "--listen=0.0.0.0:0", "--host=127.0.0.1", *options, command=["webhook"], account=NAME)
        made.append(webhook)
        if len(made) == 1:
            point_at(port_of(webhook))
        return webhook

    def point_at(port):
        configuration = json.loads(json.dumps(manifest["MutatingWebhookConfiguration"]))
        configuration["webhooks"][0]["clientConfig"] = {"url": f"https://127.0.0.1:{port}/pods"}
        apply(kube, configuration)

    start.point_at = point_at
    yield start
    for each in made:
        each.end(signal.SIGKILL)
    with contextlib.suppress(urllib.error.HTTPError):
        kube.raw("DELETE", CONFIGURATION)


def pod(gpu="8G,0.5", scheduler=None, containers=({},), annotations=None, **spec):
    """Its containers have these limits."""
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "p", "annotations": annotations or ({"gflow/gpu": gpu} if gpu is not None else {})},
            "spec": {"containers": [{"name": f"c{i}", "image": "none", "resources": {"limits": limits}, "env": [{"name": "A", "value": "1"}]}
                                    for i, limits in enumerate(containers)],
                     **({"schedulerName": scheduler} if scheduler else {}), **spec}}


def admitted(kube, *words, **more):
    """A pod as it would be made: its scheduler, the limits of its containers, and what who made it is warned of."""
    with kube.answer("POST", path_of("Pod", "default") + "?dryRun=All", pod(*words, **more)) as answer:
        made = json.loads(answer.read())["spec"]
        warnings = answer.headers.get_all("Warning") or []
    for one in made["containers"]:
        resources = one["resources"]
        assert resources.get("requests", {}) == resources.get("limits", {}) and one["env"] == [{"name": "A", "value": "1"}]
    return made["schedulerName"], [one["resources"].get("limits", {}) for one in made["containers"]], warnings


def scheduler_of(kube, *words, **more):
    return admitted(kube, *words, **more)[0]


def answers(kube):
    """The API server knows of the webhook, and trusts it, a moment after both were written."""
    try:
        return scheduler_of(kube) != "default-scheduler"
    except urllib.error.HTTPError:
        return False


def test_pods_with_the_annotation_are_its_unless_somebody_chose(kube, start, webhooks):
    webhook = webhooks()
    until_in_force(lambda: is_ready(webhook))
    until_in_force(lambda: answers(kube))
    assert scheduler_of(kube) == scheduler_of(kube, scheduler="default-scheduler") == "gflow"
    assert scheduler_of(kube, scheduler="another") == "another"
    assert scheduler_of(kube, gpu=None) == "default-scheduler"
    assert scheduler_of(kube, nodeName="n") == "default-scheduler"
    assert scheduler_of(kube, gpu=None, annotations={"else": "where"}) == "default-scheduler"
    assert admitted(kube)[1:] == ([{}], []), "no container asks for what no node offers"
    kube.node("n", 2)
    start()
    make_pod(kube, "half", "0.5", scheduler="default-scheduler")
    until_bound(kube, "half")


GIVEN = {"gflow/allocation": "1"}


def test_with_allocations_a_pod_that_asks_by_the_annotation_alone_asks_for_what_was_chosen(kube, webhooks):
    webhooks("--allocations")
    until_in_force(lambda: answers(kube))
    assert admitted(kube) == ("gflow", [GIVEN], [])
    assert admitted(kube, scheduler="gflow", containers=({"cpu": "1"}, {})) == ("gflow", [{"cpu": "1", **GIVEN}, {}], [])
    for named in ({"nvidia.com/gpu": "1"}, {"gflow/allocation": "0"}, {"amd.com/gpu": "1"}, {"huawei.com/npu": "1"}):
        assert admitted(kube, gpu="1", containers=({}, named))[:2] == ("gflow", [{}, named])
    within = pod(gpu="1")["spec"]["containers"][0] | {"name": "init", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    assert admitted(kube, gpu="1", initContainers=[within])[1] == [{}]
    assert admitted(kube, scheduler="another")[1] == admitted(kube, gpu=None)[1] == [{}]


def test_the_two_policies_of_1_36_say_the_same(kube, webhooks, applied):
    """Whatever the pod: of both in turn."""
    pods = [{"gpu": gpu, "scheduler": scheduler, "containers": containers, **more}
            for gpu in (None, "", "1", "8G,0.5") for scheduler in (None, "default-scheduler", "gflow", "another")
            for containers in (({},), ({"cpu": "1"}, {"memory": "1Gi"}), ({}, {"nvidia.com/gpu": "1"}), ({"gflow/allocation": "0"},))
            for more in ({}, {"nodeName": "n"})]
    webhook = webhooks("--allocations")
    until_in_force(lambda: answers(kube))
    by_webhook = [admitted(kube, **one)[:2] for one in pods]
    webhook.end()
    kube.raw("DELETE", CONFIGURATION)
    until_in_force(lambda: not answers(kube))
    applied("admission-policy.yaml")
    applied("allocation-policy.yaml")
    until_in_force(lambda: admitted(kube)[:2] == ("gflow", [GIVEN]))
    assert [admitted(kube, **one)[:2] for one in pods] == by_webhook


def test_who_asks_for_what_makes_no_sense_is_warned(kube, webhooks):
    webhooks()
    until_in_force(lambda: answers(kube))
    name, _, (warning,) = admitted(kube, gpu="2(V100")
    assert name == "gflow" and "gflow cannot schedule it: gflow/gpu: " in warning and "2(V100" in warning
    assert "it asks for GPUs of two resources" in admitted(kube, gpu="1", containers=({"nvidia.com/gpu": "1"}, {"amd.com/gpu": "1"}))[2][0]


def test_without_one_that_answers_pods_with_the_annotation_are_refused_and_no_others(kube, webhooks):
    webhook = webhooks()
    until_in_force(lambda: answers(kube))
    webhook.end(signal.SIGKILL)
    with pytest.raises(urllib.error.HTTPError) as refused:
        scheduler_of(kube)
    assert refused.value.code == 500 and 'failed calling webhook \\"pods.webhook.gflow\\"' in refused.value.read().decode()
    assert scheduler_of(kube, gpu=None) == "default-scheduler"


def test_each_that_starts_is_trusted_beside_the_others_and_those_gone_go_in_time(kube, webhooks):
    first = webhooks()
    until_in_force(lambda: answers(kube))
    assert bundle(kube).count(BEGIN) == 1
    others = [webhooks() for _ in range(3)]  # at once: what one writes the others do not undo
    until_in_force(lambda: all(map(is_ready, others)))
    assert bundle(kube).count(BEGIN) == 4
    for one in others:
        webhooks.point_at(port_of(one))
        until_in_force(lambda: answers(kube))
    for one in (first, *others):
        one.end(signal.SIGKILL)
    for _ in range(14):
        last = webhooks()
        until_in_force(lambda: is_ready(last))
        last.end(signal.SIGKILL)
    assert bundle(kube).count(BEGIN) == 16
    last = webhooks()
    webhooks.point_at(port_of(last))
    until_in_force(lambda: answers(kube))


def test_what_somebody_took_away_is_written_again(kube, webhooks):
    webhook = webhooks()
    until_in_force(lambda: answers(kube))
    kube.raw("DELETE", CONFIGURATION)
    assert webhook.says("mutatingwebhookconfigurations.admissionregistration.k8s.io \"gflow-kube-webhook\" not found"), webhook.said()
    until_in_force(lambda: not is_ready(webhook))
    webhooks.point_at(port_of(webhook))
    until_in_force(lambda: answers(kube))
    assert is_ready(webhook)


def test_it_waits_for_what_it_may_not_read(kube, webhooks, manifest):
    kube.raw("DELETE", f"{path_of('ClusterRoleBinding')}/{NAME}")
    webhook = webhooks()
    assert webhook.says("apply packaging/kubernetes/webhook.yaml"), webhook.said()
    assert not is_ready(webhook) and webhook.is_running()
    apply(kube, manifest["ClusterRoleBinding"])
    until_in_force(lambda: answers(kube))


def test_a_signal_ends_it(kube, webhooks):
    webhook = webhooks()
    until_in_force(lambda: is_ready(webhook))
    assert webhook.end(signal.SIGTERM) == 0


def shown(port):
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as plain:
        context = ssl._create_unverified_context()  # noqa: S323 -- what is shown is looked at
        with context.wrap_socket(plain) as tls:
            return ssl.DER_cert_to_PEM_cert(tls.getpeercert(binary_form=True)), tls.version()


def test_its_certificate_names_its_service(kube, with_rights):
    for options, name in (((), f"{NAME}.{SYSTEM}.svc"), (("--namespace=lab", "--scheduler-name=second"), "gflow-kube-second-webhook.lab.svc")):
        webhook = Scheduler(kube, "--listen=0.0.0.0:0", *options, command=["webhook"])
        certificate, version = shown(port_of(webhook))
        said = subprocess.run(["openssl", "x509", "-noout", "-ext", "subjectAltName"], input=certificate, capture_output=True, text=True, check=True).stdout
        assert f"DNS:{name}" in said and version == "TLSv1.3"
        webhook.end(signal.SIGKILL)


# -- whoever reaches its port


@pytest.fixture
def door(kube, with_rights):
    webhook = Scheduler(kube, "--listen=0.0.0.0:0", command=["webhook"])
    port = port_of(webhook)

    def ask(body=b"", method="POST", path="/pods"):
        context = ssl._create_unverified_context()  # noqa: S323
        asked = urllib.request.Request(f"https://127.0.0.1:{port}{path}", method=method, data=body)
        try:
            with urllib.request.urlopen(asked, timeout=PATIENCE, context=context) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read().decode()

    ask.port = port
    yield ask
    assert webhook.is_running(), webhook.said()
    assert webhook.end(signal.SIGTERM) == 0, webhook.said()


def asked_of(request, **more):
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request, **more}).encode()


NEW = {"uid": "42", "operation": "CREATE", "kind": {"group": "", "version": "v1", "kind": "Pod"}}


@pytest.mark.parametrize("body", [
    b"", b"{", b"null", b"[]", b"\xff\xfe", b"[" * 100_000, asked_of({}), asked_of(None), asked_of({**NEW, "uid": 7}),
    asked_of(NEW, apiVersion="admission.k8s.io/v1beta1")], ids=range(10))
def test_what_is_no_review_is_refused(door, body):
    status, said = door(body)
    assert status == 400 and "AdmissionReview of admission.k8s.io/v1" in said


@pytest.mark.parametrize("pod", [
    None, [], "pod", {}, {"metadata": 7}, {"metadata": {"annotations": []}}, {"metadata": {"annotations": {"gflow/gpu": 1}}},
    {"metadata": {"annotations": {"gflow/gpu": "1"}}, "spec": None},
    {"metadata": {"annotations": {"gflow/gpu": "1"}}, "spec": {"schedulerName": 3, "containers": {"a": 1}}},
    {"metadata": {"annotations": {"gflow/gpu": "1"}}, "spec": {"containers": [None, 7, {"resources": {"limits": "all"}}]}}], ids=range(10))
def test_a_pod_that_is_none_is_let_through(door, pod):
    """The API server knows what a pod is."""
    status, said = door(asked_of({**NEW, "object": pod}))
    answer = json.loads(said)
    assert status == 200 and answer["response"]["uid"] == "42" and answer["response"]["allowed"] is True


def test_other_pages_and_methods(door):
    assert door(None, "GET", "/healthz") == (200, "ok")
    assert door(None, "GET", "/readyz")[0] == 503, "nobody trusts it"
    assert door(None, "GET", "/pods")[0] == 405 and door(b"", "POST", "/")[0] == 404
    assert door(None, "GET", "/pods?timeout=5s")[0] == 405


def test_what_is_too_large_is_cut_and_others_are_answered(door):
    with pytest.raises(OSError, match=""):
        door(b"x" * (9 << 20))
    assert door(asked_of(NEW))[0] == 200


def test_hundreds_at_once_are_answered(door):
    with concurrent.futures.ThreadPoolExecutor(200) as threads:
        said = list(threads.map(lambda _: door(asked_of({**NEW, "object": pod()}))[0], range(600)))
    assert said == [200] * 600


def test_who_is_silent_keeps_nobody_waiting(door):
    with contextlib.ExitStack() as open_ones:
        for _ in range(100):
            open_ones.enter_context(socket.create_connection(("127.0.0.1", door.port), PATIENCE))
        assert door(asked_of(NEW))[0] == 200

