# SPDX-License-Identifier: Apache-2.0
"""What gflow-kube tells of itself: health, metrics, and the manifests of packaging/kubernetes that have it probed and scraped."""

import contextlib
import re
import resource
import shutil
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import yaml
from between import BROKEN, CONFLICT, LOST, Held, is_binding, status
from cluster import path_of
from kube_scheduler import SYSTEM, end_lease, make_budget, make_pod, until, until_bound, until_told
from machine import BIN, PATIENCE
from package import ROOT

PACKAGING = ROOT / "packaging"
MANIFESTS = PACKAGING / "kubernetes"
DOCUMENTS = ("cluster.md", "cluster.zh-CN.md")
ANYWHERE = ("--listen", "127.0.0.1:0")

needs_promtool = pytest.mark.skipif(not shutil.which("promtool"), reason="needs promtool (package prometheus)")


def url_of(one):
    assert one.says("health and metrics at http://")
    return re.search(r"health and metrics at (http://\S+)", one.said())[1]


def ask(one, path, method="GET"):
    """The status and the body."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url_of(one) + path, method=method), timeout=PATIENCE) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def metrics_of(one, scheduler="gflow"):
    """The values by series, as they are written, without the label that all have."""
    code, text = ask(one, "/metrics")
    assert code == 200
    found = {}
    for series, value in (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#")):
        assert series.startswith("process_") or f'scheduler="{scheduler}"' in series, series
        found[re.sub(r'scheduler="[^"]*",?', "", series).removesuffix("{}")] = float(value)
    return found


def by_label(metrics, name):
    """{"room": 1, ...} of a family whose series have one label."""
    return {found[1]: value for series, value in metrics.items() if (found := re.fullmatch(name + r'\{\w+="(\w+)"\}', series))}


def test_metrics_are_what_happened(kube, start):
    kube.node("n", 3)
    kube.node("cordoned", 1, unschedulable=True)
    kube.node("gone", 4, taints=[{"key": "node.kubernetes.io/unreachable", "effect": one} for one in ("NoSchedule", "NoExecute")])
    one = start(*ANYWHERE)
    names = ("a", "b", "c")
    for name in names:
        make_pod(kube, name, "1")
    until_bound(kube, *names)
    assert all(one.says(f"bound default/{name}") for name in names)
    make_pod(kube, "waits", "1")
    make_pod(kube, "never", "8")
    make_pod(kube, "mistake", "1.5")
    until(kube, lambda pods: all(pods[name]["status"].get("conditions") for name in ("waits", "never", "mistake")))
    metrics = metrics_of(one)
    assert metrics["gflow_kube_leader"] == 1 and metrics["gflow_kube_nodes"] == 3
    assert by_label(metrics, "gflow_kube_gpus") == {"held": 3, "others": 0, "closed": 5, "free": 0}
    assert by_label(metrics, "gflow_kube_pods_waiting") == {"room": 1, "node": 1, "request": 1, "binding": 0, "limit": 0, "gang": 0}
    assert metrics["gflow_kube_pods_bound_total"] == metrics["gflow_kube_scheduling_duration_seconds_count"] == 3
    assert set(by_label(metrics, "gflow_kube_bind_failures_total").values()) == {0}
    assert metrics["gflow_kube_evictions_total"] == 0
    assert metrics["gflow_kube_decision_duration_seconds_count"] >= 2
    assert metrics["process_resident_memory_bytes"] > 1 << 20
    assert not [series for series in metrics if "default" in series or "cordoned}" in series]


def test_series_say_whose_pods_they_are_of(kube, start):
    one = start(*ANYWHERE, "--scheduler-name", "second")
    assert one.says("cannot get resource")
    assert metrics_of(one, scheduler="second")["gflow_kube_leader"] == 0


@needs_promtool
def test_promtool_finds_nothing_to_say(kube, start):
    one = start(*ANYWHERE)
    assert one.says("known")
    checked = subprocess.run(["promtool", "check", "metrics"], input=ask(one, "/metrics")[1], text=True, capture_output=True, check=False)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, ""), checked


def names_in(text):
    return set(re.findall(r"\b(?:gflow_kube|process)_[a-z_]+", text))


def values_served(text):
    """{"gflow_kube_gpus": {"state": {"free", ...}}, ...}, but for what no document can list: versions, bounds, and who schedules."""
    values = {}
    for name, labels in re.findall(r"^(\w+)\{(.*)\} \S+$", text, re.MULTILINE):
        for label, value in re.findall(r'(\w+)="([^"]*)"', labels):
            if label not in ("le", "version", "scheduler"):
                values.setdefault(name, {}).setdefault(label, set()).add(value)
    return values


def values_told(document):
    """The same, of the table: what stands in backquotes in the row of a metric, its labels first."""
    values = {}
    for name, labels, told in re.findall(r"^\| `(gflow_kube_\w+)` \| (.*?) \| (.*) \|$", document, re.MULTILINE):
        names = re.findall(r"`(\w+)`", labels)
        if names:
            values[name] = (set(names), set(re.findall(r"`(\w+)`", told)))
    return values


def matchers(expression):
    """(metric, label, what a value has to match) of each matcher in an expression."""
    for name, inside in re.findall(r"\b(gflow_kube_\w+)\{([^}]*)\}", expression):
        for label, how, value in re.findall(r'(\w+)(=~|!~|!=|=)"([^"]*)"', inside):
            yield name, label, value.split("|") if "~" in how else [value]


def test_documents_and_alerts_name_the_metrics_that_there_are(kube, start):
    kube.node("n", 1)
    one = start(*ANYWHERE)
    make_pod(kube, "p", "1")
    until_bound(kube, "p")
    make_pod(kube, "waits", "1")
    until_told(kube, "waits", "Insufficient")
    text = ask(one, "/metrics")[1]
    served = set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))
    values = values_served(text)
    assert {"gflow_kube_gpus", "gflow_kube_pods_waiting", "gflow_kube_watch_restarts_total"} <= values.keys()
    for name in DOCUMENTS:
        document = (ROOT / "docs" / name).read_text()
        assert names_in(document) == served, name
        told = values_told(document)
        for metric, labels in values.items():
            assert told[metric] == (set(labels), set().union(*labels.values())), (name, metric)
    rules = (PACKAGING / "prometheus/gflow-kube.rules.yml").read_text()
    assert names_in(rules) <= served | {f"{name}_bucket" for name in served}
    asked = [one for group in yaml.safe_load(rules)["groups"] for rule in group["rules"] for one in matchers(rule["expr"])]
    assert len(asked) >= 3
    for metric, label, alternatives in asked:
        assert set(alternatives) <= values[metric][label], (metric, label)


@needs_promtool
@pytest.mark.parametrize("words", [("check", "rules", "gflow-kube.rules.yml"), ("test", "rules", "gflow-kube.rules.test.yml")])
def test_promtool_takes_the_alerts(words):
    done = subprocess.run(["promtool", *words], cwd=PACKAGING / "prometheus", text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("how", "kind"), [
    (CONFLICT, "conflict"), (status(403, "a policy denies it"), "refused"), (BROKEN, "server"), (LOST, "unanswered")])
def test_tries_that_fail_are_counted_by_how(kube, start, between, how, kind):
    kube.node("n", 1)
    between.once(is_binding, lambda forward: how)
    one = start(*ANYWHERE, server=between.url)
    make_pod(kube, "a", "1")
    until_bound(kube, "a")
    assert one.says("bound default/a")
    metrics = metrics_of(one)
    assert by_label(metrics, "gflow_kube_bind_failures_total") == {"conflict": 0, "refused": 0, "server": 0, "unanswered": 0, kind: 1}
    assert metrics["gflow_kube_pods_bound_total"] == 1


def test_evictions_are_counted(kube, start, classes):
    kube.node("n", 2)
    one = start("--preempt", *ANYWHERE)
    for name in ("free", "kept"):
        make_pod(kube, name, "1")
        until_bound(kube, name)
        kube.raw("PATCH", f"{path_of('Pod', 'default')}/{name}", {"metadata": {"labels": {"app": name}}})
        kube.raw("PATCH", f"{path_of('Pod', 'default')}/{name}/status", {
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}})
    budget = make_budget(kube, "kept", 0, app="kept")
    try:
        make_pod(kube, "vip", "1", priorityClassName="high")
        until_bound(kube, "vip")
    finally:
        kube.ask("DELETE", budget)
    metrics = metrics_of(one)
    assert metrics["gflow_kube_evictions_total"] == 1
    assert by_label(metrics, "gflow_kube_eviction_refusals_total") == {"budget": 1, "other": 0}


def test_a_watch_that_breaks_is_counted(kube, start):
    one = start(*ANYWHERE, "--lease-duration", "60")
    assert one.says("known")
    kube.stop_apiserver()
    kube.up()
    kube.node("n", 1)
    make_pod(kube, "p", "1")
    until_bound(kube, "p")
    restarts = {series: value for series, value in metrics_of(one).items() if series.startswith("gflow_kube_watch_restarts_total")}
    assert len(restarts) == 21  # of seven resources, how each ended
    for resource in ("nodes", "pods"):
        assert sum(value for series, value in restarts.items() if f'resource="{resource}"' in series) >= 1, restarts
    one.end()  # gives its lease up


# -- health


def test_who_stands_by_is_ready_and_takes_over(kube, start):
    kube.node("n", 1)
    leader = start(*ANYWHERE)
    assert leader.says("known") and ask(leader, "/readyz") == (200, "ok")
    standby = start(*ANYWHERE)
    assert standby.says("waiting for it")
    assert ask(standby, "/readyz") == ask(standby, "/healthz") == (200, "ok")
    metrics = metrics_of(standby)
    assert metrics["gflow_kube_leader"] == 0 and metrics["gflow_kube_pods_bound_total"] == 0
    assert not {"gflow_kube_nodes", 'gflow_kube_gpus{state="free"}', 'gflow_kube_pods_waiting{reason="room"}'} & metrics.keys()
    leader.end(signal.SIGKILL)
    end_lease(kube)
    make_pod(kube, "p", "1")
    until_bound(kube, "p")
    assert ask(standby, "/readyz") == (200, "ok") and metrics_of(standby)["gflow_kube_leader"] == 1


def test_who_waits_for_the_api_server_is_alive_and_not_ready(kube, start):
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # and does not listen
        one = start(*ANYWHERE, server=f"https://127.0.0.1:{nobody.getsockname()[1]}")
        assert one.says("trying again")
        code, text = ask(one, "/readyz")
        assert code == 503 and text.startswith("it waits for the API server: "), text
        assert ask(one, "/healthz") == (200, "ok")


def test_who_may_not_have_the_lease_is_not_ready(kube, start):
    with contextlib.suppress(urllib.error.HTTPError):
        kube.raw("POST", path_of("ServiceAccount", SYSTEM), {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "nobody", "namespace": SYSTEM}})
    one = start(*ANYWHERE, account="nobody")
    assert one.says("cannot get resource")
    code, text = ask(one, "/readyz")
    assert code == 503 and text.startswith("nobody says whose the Lease is: ") and "cannot get resource" in text, text


def test_who_has_not_read_the_cluster_yet_is_not_ready(kube, start, between):
    held = Held(between, lambda method, path: path.startswith("/api/v1/nodes?limit="))
    one = start(*ANYWHERE, server=between.url)
    held.reached()
    assert ask(one, "/readyz") == (503, "it waits for the first lists of nodes, pods and limits\n")
    assert ask(one, "/healthz") == (200, "ok")
    assert metrics_of(one)["gflow_kube_leader"] == 0
    held.go()
    assert one.says("known") and ask(one, "/readyz") == (200, "ok")
    assert metrics_of(one)["gflow_kube_leader"] == 1


def test_who_ends_is_not_ready(kube, start, between):
    kube.node("n", 1)
    held = Held(between, is_binding)
    one = start(*ANYWHERE, server=between.url)
    make_pod(kube, "a", "1")
    held.reached()
    url = url_of(one)
    one.send(signal.SIGTERM)
    assert one.says("ended by a signal")
    assert ask(one, "/readyz") == (503, "it ends\n")
    held.go()
    one.end()
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(url + "/healthz", timeout=PATIENCE)


@pytest.fixture
def many_descriptors():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 2048)), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_thousand_who_never_ask_and_much_that_is_no_question_disturb_nothing(kube, start, many_descriptors):
    kube.node("n", 1)
    one = start(*ANYWHERE)
    host, port = url_of(one).removeprefix("http://").split(":")
    with contextlib.ExitStack() as stack:
        for _ in range(1200):
            idle = stack.enter_context(socket.create_connection((host, int(port)), timeout=PATIENCE))
            idle.sendall(b"GET /metrics HTTP/1.1\r\n")
        much = stack.enter_context(socket.create_connection((host, int(port)), timeout=PATIENCE))
        with contextlib.suppress(OSError):  # it is hung up on before all is sent
            much.sendall(b"GET /metrics HTTP/1.1\r\nX: " + b"a" * (1 << 20))
        make_pod(kube, "p", "1")
        until_bound(kube, "p")
        assert ask(one, "/healthz") == ask(one, "/readyz") == (200, "ok")
        files = list(Path(f"/proc/{one.pid}/fd").iterdir())
        assert len(files) < 1024 + 64, len(files)


def test_out_of_descriptors_it_is_still_probed(kube, start):
    """As a kubelet probes: in five seconds. Whoever is connected and asks nothing is hung up on after ten."""
    one = start(*ANYWHERE)
    assert one.says("known")
    host, port = url_of(one).removeprefix("http://").split(":")
    resource.prlimit(one.pid, resource.RLIMIT_NOFILE, (len(list(Path(f"/proc/{one.pid}/fd").iterdir())) + 16,) * 2)
    with contextlib.ExitStack() as stack:
        for _ in range(64):
            stack.enter_context(socket.create_connection((host, int(port)), timeout=PATIENCE))
        with urllib.request.urlopen(url_of(one) + "/healthz", timeout=5) as answer:
            assert answer.read() == b"ok"


@pytest.mark.parametrize("address", ["10259", "localhost:10259", "127.0.0.1", "127.0.0.1:65536", "example.com:1", ""])
def test_what_is_no_address_is_a_usage_error(kube, start, address):
    one = start("--listen", address)
    assert one.end(signal.SIGCONT) == 2 and "--listen" in one.said()


def test_an_address_that_is_taken_is_named_at_once(kube, start):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        one = start("--listen", address)
        assert one.end(signal.SIGCONT) == 1 and f"listen at '{address}': Address already in use" in one.said()


# -- manifests


def manifests():
    for name in yaml.safe_load((MANIFESTS / "kustomization.yaml").read_text())["resources"]:
        yield from yaml.safe_load_all((MANIFESTS / name).read_text())


def beside():
    """Those of the scheduler that are applied by themselves."""
    for name in ("rbac-preempt", "rbac-defrag", "network-policy", "admission-policy"):
        yield from yaml.safe_load_all((MANIFESTS / f"{name}.yaml").read_text())


def deployment():
    (found,) = (one for one in manifests() if one["kind"] == "Deployment")
    return found


@needs_promtool
def test_prometheus_finds_it_by_the_lines_that_are_commented_out(tmp_path):
    read = yaml.safe_load(re.sub(r"^  # (?= |-)", "  ", (PACKAGING / "prometheus/prometheus.yml").read_text(), flags=re.MULTILINE))
    assert "gflow-kube.rules.yml" in read["rule_files"]
    (job,) = (one for one in read["scrape_configs"] if one["job_name"] == "gflow-kube")
    (found,) = job.pop("kubernetes_sd_configs")
    assert found == {"role": "pod", "namespaces": {"names": [deployment()["metadata"]["namespace"]]}}
    (port,) = deployment()["spec"]["template"]["spec"]["containers"][0]["ports"]
    assert port["name"] in [one.get("regex") for one in job["relabel_configs"]]
    job["static_configs"] = [{"targets": ["127.0.0.1:10259"]}]  # Debian's knows no other discovery
    for rules in (PACKAGING / "prometheus").glob("*.rules.yml"):
        shutil.copy(rules, tmp_path)
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(read))
    checked = subprocess.run(["promtool", "check", "config", "prometheus.yml"], cwd=tmp_path, text=True, capture_output=True, check=False)
    assert checked.returncode == 0, checked


def test_the_api_server_takes_each_object_of_the_kustomization(kube, with_rights):
    """As kubectl apply --server-side has it check them: no field that there is not."""
    kinds = set()
    for one in (*manifests(), *beside()):
        metadata = one["metadata"]
        path = f"{path_of(one['kind'], metadata.get('namespace', ''))}/{metadata['name']}"
        kube.ask("PATCH", f"{path}?fieldManager=test&dryRun=All&fieldValidation=Strict&force=true", one, content_type="application/apply-patch+yaml")
        kinds.add(one["kind"])
    assert kinds == {"Namespace", "ServiceAccount", "ConfigMap", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "Deployment", "FlowSchema",
                     "PodDisruptionBudget", "NetworkPolicy", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
                     "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"}


def test_nothing_but_the_scheduler_is_where_the_scheduler_is(kube, with_rights):
    """Who may make pods or write Leases there is the scheduler: programs that use gflow are elsewhere."""
    of_system = [one for one in (*manifests(), *beside()) if one["metadata"].get("namespace") is not None]
    assert {one["metadata"]["namespace"] for one in of_system} == {SYSTEM}
    (namespace,) = (one["metadata"] for one in manifests() if one["kind"] == "Namespace")
    assert (namespace["name"], namespace["labels"]["pod-security.kubernetes.io/enforce"]) == (SYSTEM, "restricted")
    program = kube.token("gflow", "gflow")
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "gflow-kube"}, "spec": {}}
    kube.raw("POST", path_of("Lease", "gflow") + "?dryRun=All", lease, token=program)
    with pytest.raises(urllib.error.HTTPError, match="403"):
        kube.raw("POST", path_of("Lease", SYSTEM) + "?dryRun=All", lease, token=program)


@pytest.mark.skipif(not shutil.which("kubectl"), reason="needs kubectl")
def test_kubectl_puts_them_together():
    made = subprocess.run(["kubectl", "kustomize", MANIFESTS], text=True, capture_output=True, check=True)
    objects = list(yaml.safe_load_all(made.stdout))

    def named(found):
        return {(one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"]) for one in found}

    assert named(objects) == named(manifests())


def test_the_image_is_of_this_version_wherever_it_is_named():
    version = subprocess.run([BIN / "gflow-kube", "--version"], text=True, capture_output=True, check=True).stdout.split()[-1]
    (image,) = yaml.safe_load((MANIFESTS / "kustomization.yaml").read_text())["images"]
    assert image == {"name": "gflow-kube", "newName": "gflow-kube", "newTag": version}
    (container,) = deployment()["spec"]["template"]["spec"]["containers"]
    assert container["image"] == image["name"]
    places = [*(MANIFESTS / name for name in ("Dockerfile", "README.md", "README.zh-CN.md")), *(ROOT / "docs" / name for name in DOCUMENTS)]
    for place in places:
        assert set(re.findall(r"gflow-kube:(\d[\w.]*\w)", place.read_text())) == {version}, place


@pytest.mark.skipif(not shutil.which("kubectl"), reason="needs kubectl")
@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_image_of_a_registry_is_one_command(tmp_path, document):
    """The line of the documents that says where it is."""
    place = tmp_path / "packaging/kubernetes"
    shutil.copytree(MANIFESTS, place)
    (line,) = re.findall(r"^sed .*$", (ROOT / "docs" / document).read_text(), re.MULTILINE)
    subprocess.run(["bash", "-c", line], cwd=tmp_path, check=True)
    made = subprocess.run(["kubectl", "kustomize", place], text=True, capture_output=True, check=True)
    assert re.search(r"image: registry\.example\.com/gflow-kube:\d", made.stdout)


def test_its_pods_are_what_the_strictest_pod_security_admits(kube, with_rights):
    """As its namespace enforces. They are as urgent as a cluster's own, and one at a time is taken away."""
    template = deployment()["spec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": template["metadata"]["labels"]}, "spec": template["spec"]}
    path = path_of("Pod", SYSTEM) + "?dryRun=All"
    assert kube.ask("POST", path, pod)["spec"]["priority"] == 2_000_000_000
    (budget,) = (one for one in manifests() if one["kind"] == "PodDisruptionBudget")
    assert budget["spec"]["selector"] == deployment()["spec"]["selector"] and budget["spec"]["maxUnavailable"] < deployment()["spec"]["replicas"]
    del pod["spec"]["securityContext"]
    with pytest.raises(AssertionError, match="violates PodSecurity"):
        kube.ask("POST", path, pod)


def test_what_the_manifest_probes_and_scrapes_is_there(kube, start):
    template = deployment()["spec"]["template"]
    (container,) = template["spec"]["containers"]
    (port,) = container["ports"]
    annotations = template["metadata"]["annotations"]
    assert container["args"] == [f"--listen=0.0.0.0:{port['containerPort']}"]
    assert annotations["prometheus.io/port"] == str(port["containerPort"])
    assert template["spec"]["serviceAccountName"] == "gflow-kube"
    probes = [container[name]["httpGet"] for name in ("livenessProbe", "readinessProbe")]
    assert {probe["port"] for probe in probes} == {port["name"]}
    one = start(*ANYWHERE)
    assert one.says("known")
    for path in (*(probe["path"] for probe in probes), annotations["prometheus.io/path"]):
        assert ask(one, path)[0] == 200, path
