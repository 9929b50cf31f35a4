# SPDX-License-Identifier: Apache-2.0
"""The chart of packaging/helm: that it is the manifests of packaging/kubernetes, and that helm and an API server take it."""

import contextlib
import json
import re
import shlex
import signal
import subprocess
import urllib.error

import pytest
import yaml
from cluster import ADMIN, Cluster, path_of
from helm import CHART, Helm
from kube_scheduler import NODE_SYSTEM, PLUGIN, SYSTEM, Scheduler, end_lease, make_pod, until, until_bound, until_in_force, until_told
from machine import BIN
from package import ROOT

MANIFESTS = ROOT / "packaging/kubernetes"
DOCUMENTS = [f"{name}{language}.md" for name in ("docs/cluster", "packaging/helm/gflow-kube/README") for language in ("", ".zh-CN")]
KUBERNETES = "1.36.3"  # of templates that ask no cluster
ADDED = {"app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/version", "app.kubernetes.io/managed-by", "helm.sh/chart"}

#: What of the manifests is by itself, by the value that has the chart make it.
OPTIONS = {"preempt": "rbac-preempt", "defrag": "rbac-defrag", "viewer.enabled": "rbac-viewer", "submitter.enabled": "rbac-submitter", "networkPolicy.enabled": "network-policy", "admissionPolicy.enabled": "admission-policy",
           "allocationPolicy.enabled": "allocation-policy"}

#: Values as platform engineers have them.
ALL = """
replicas: 3
image: {repository: registry.example.com:5000/gflow-kube, tag: "1.0", pullPolicy: Always, pullSecrets: [{name: registry}]}
preempt: true
defrag: true
extraArgs: [--lease-duration=30, --writers=32]
listen: {address: "[::]", port: 8443}
limits: {maxGpusPerNamespace: 4, maxGpusOf: {vision: 8, "2": 100000}}
topology: {levels: [example.com/topology-block, example.com/topology-rack]}
annotationPolicy: {otherSchedulers: [second]}
admissionPolicy: {enabled: true, namespaceSelector: {matchLabels: {gpus: shared}}}
allocationPolicy: {enabled: true, namespaceSelector: {matchLabels: {gpus: held}}}
webhook:
  enabled: true
  replicas: 3
  allocations: true
  namespaceSelector: {matchLabels: {gpus: shared}}
  port: 9443
  resources: {limits: {memory: 1Gi}}
devicePlugin:
  enabled: true
  namespace: nodes
  runtimeClassName: nvidia
  nodeSelector: {gpu: "true"}
  tolerations: [{operator: Exists}]
  resources: {limits: {memory: 1Gi}}
  updateStrategy: {rollingUpdate: {maxUnavailable: 10%}}
  kubeletDirectory: /data/kubelet
  extraArgs: [--devices=nvml]
draDriver:
  enabled: true
  namespace: claims
  nodeSelector: {gpu: claims}
  kubeletDirectory: /data/kubelet
  extraArgs: [--devices=nvml]
podDisruptionBudget: {maxUnavailable: 50%}
networkPolicy: {enabled: true, namespace: observability}
viewer: {enabled: true, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: eve}]}
submitter: {enabled: true}
namespace: {create: true, labels: {team: platform}}
resources: {requests: {cpu: "1"}, limits: {memory: null}}
priorityClassName: ""
nodeSelector: {kubernetes.io/arch: amd64}
tolerations: [{key: node-role.kubernetes.io/control-plane, effect: NoSchedule}]
affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: gpu, operator: DoesNotExist}]}]}}}
topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule}]
podAnnotations: {prometheus.io/scrape: "false", example.com/owner: platform}
podSecurityContext: {runAsUser: null, runAsGroup: null}
commonLabels: {example.com/cost-center: "42"}
"""


@pytest.fixture
def helm(tmp_path):
    """Of no cluster."""
    return Helm(tmp_path)


@pytest.fixture
def everything(tmp_path):
    path = tmp_path / "values.yaml"
    path.write_text(ALL)
    return path


def sets(values):
    return [word for name, value in values.items() for word in ("--set-json", f"{name}={json.dumps(value)}")]


def rendered(helm, *words, namespace=SYSTEM, release="gflow-kube", **values):
    made = helm("template", release, CHART, "--namespace", namespace, "--kube-version", KUBERNETES, *words, *sets(values))
    return {name_of(one): one for one in yaml.safe_load_all(made) if one}


def name_of(one):
    return one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"]


def of_manifests(*names):
    return {name_of(one): one for name in names for one in yaml.safe_load_all((MANIFESTS / f"{name}.yaml").read_text())}


def kustomized():
    """What kubectl apply -k applies: the files, and the image in the only place where one is."""
    read = yaml.safe_load((MANIFESTS / "kustomization.yaml").read_text())
    assert read.keys() == {"apiVersion", "kind", "resources", "images"}, "this knows of nothing else"
    objects = of_manifests(*(name.removesuffix(".yaml") for name in read["resources"]))
    (image,) = read["images"]
    (container,) = objects["Deployment", SYSTEM, "gflow-kube"]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == image["name"]
    container["image"] = f"{image['newName']}:{image['newTag']}"
    return objects


def without_labels(value):
    """Without those that Helm adds, wherever labels are or are matched."""
    if isinstance(value, dict):
        kept = {key: without_labels(one) for key, one in value.items()}
        for key in ("labels", "matchLabels", "selector"):
            if key in kept:
                kept[key] = {name: label for name, label in kept[key].items() if name not in ADDED}
                if not kept[key]:
                    del kept[key]
        return kept
    return [without_labels(one) for one in value] if isinstance(value, list) else value


# -- templates


@pytest.mark.parametrize("values", ["default", "everything"])
def test_lint_finds_nothing_to_say(helm, everything, values):
    words = ["--values", everything] if values == "everything" else []
    helm("lint", CHART, "--strict", "--kube-version", KUBERNETES, *words)


def test_the_chart_is_the_kustomization(helm):
    """Helm keeps the release in a namespace that is there, so that it is made on demand alone."""
    expected = kustomized()
    assert without_labels(rendered(helm, **{"namespace.create": True})) == without_labels(expected)
    (namespace,) = (name for name in expected if name[0] == "Namespace")
    del expected[namespace]
    assert without_labels(rendered(helm)) == without_labels(expected)


@pytest.mark.parametrize("option", OPTIONS)
def test_an_option_is_a_manifest_that_is_by_itself(helm, option):
    plain = rendered(helm)
    with_it = rendered(helm, **{option: True})
    beside = {name: one for name, one in with_it.items() if name not in plain}
    assert without_labels(beside) == without_labels(of_manifests(OPTIONS[option]))
    changed = [name for name, one in plain.items() if with_it[name] != one]
    assert changed == ([("Deployment", SYSTEM, "gflow-kube")] if option in ("preempt", "defrag") else [])


def test_the_device_plugin_is_its_manifests(helm):
    """With the image of the scheduler; its namespace is made, as Helm makes only that of the release."""
    plain = rendered(helm)
    with_it = rendered(helm, **{"devicePlugin.enabled": True})
    expected = of_manifests("device-plugin", "device-plugin-policy")
    expected["DaemonSet", NODE_SYSTEM, PLUGIN]["spec"]["template"]["spec"]["containers"][0]["image"] = "gflow-kube:0.1.0"
    assert without_labels({name: one for name, one in with_it.items() if name not in plain}) == without_labels(expected)
    assert all(with_it[name] == one for name, one in plain.items())
    less = rendered(helm, **{"devicePlugin.enabled": True, "devicePlugin.createNamespace": False, "devicePlugin.policy": False})
    assert with_it.keys() - less.keys() == {("Namespace", None, NODE_SYSTEM), ("ValidatingAdmissionPolicy", None, PLUGIN),
                                            ("ValidatingAdmissionPolicyBinding", None, PLUGIN)}


DRIVER, CLAIMS = "gflow-dra-driver", "gflow-dra"


def test_the_driver_of_claims_is_its_manifests(helm):
    """As the device plugin."""
    plain = rendered(helm)
    with_it = rendered(helm, **{"draDriver.enabled": True})
    expected = of_manifests("dra-driver", "dra-driver-policy")
    expected["DaemonSet", CLAIMS, DRIVER]["spec"]["template"]["spec"]["containers"][0]["image"] = "gflow-kube:0.1.0"
    assert without_labels({name: one for name, one in with_it.items() if name not in plain}) == without_labels(expected)
    assert all(with_it[name] == one for name, one in plain.items())
    less = rendered(helm, **{"draDriver.enabled": True, "draDriver.createNamespace": False, "draDriver.policy": False})
    assert with_it.keys() - less.keys() == {("Namespace", None, CLAIMS), ("ValidatingAdmissionPolicy", None, DRIVER),
                                            ("ValidatingAdmissionPolicyBinding", None, DRIVER)}


def test_values_of_the_driver_of_claims_come_where_they_belong(helm, everything):
    objects = rendered(helm, "--values", everything)
    pod = objects["DaemonSet", "claims", DRIVER]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["hostPID"] and pod["nodeSelector"] == {"gpu": "claims"}
    assert container["args"] == ["--kubelet=/data/kubelet", "--devices=nvml"]
    paths = {volume["name"]: volume["hostPath"]["path"] for volume in pod["volumes"]}
    assert {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]} == paths
    assert paths["plugins"] == "/data/kubelet/plugins" and paths["plugins-registry"] == "/data/kubelet/plugins_registry"
    assert "serviceaccount:claims:gflow-dra-driver" in json.dumps(objects["ValidatingAdmissionPolicy", None, DRIVER])


WEBHOOK = "gflow-kube-webhook"


def test_the_webhook_is_its_manifest(helm):
    """With the image of the scheduler."""
    plain = rendered(helm)
    with_it = rendered(helm, **{"webhook.enabled": True})
    expected = of_manifests("webhook")
    expected["Deployment", SYSTEM, WEBHOOK]["spec"]["template"]["spec"]["containers"][0]["image"] = "gflow-kube:0.1.0"
    assert without_labels({name: one for name, one in with_it.items() if name not in plain}) == without_labels(expected)
    assert all(with_it[name] == one for name, one in plain.items())
    less = rendered(helm, **{"webhook.enabled": True, "podDisruptionBudget.enabled": False})
    assert with_it.keys() - less.keys() == {("PodDisruptionBudget", SYSTEM, name) for name in ("gflow-kube", WEBHOOK)}


def test_values_of_the_webhook_come_where_they_belong(helm, everything):
    objects = rendered(helm, "--values", everything, schedulerName="second", namespace="lab")
    name = "gflow-kube-second-webhook"
    deployment = objects["Deployment", "lab", name]["spec"]
    pod = deployment["template"]["spec"]
    (container,) = pod["containers"]
    assert deployment["replicas"] == 3 and "priorityClassName" not in pod
    assert container["args"] == ["webhook", "--listen=[::]:9443", "--scheduler-name=second", "--namespace=lab", "--allocations"]
    assert container["ports"] == [{"name": "https", "containerPort": 9443}]
    assert container["image"] == "registry.example.com:5000/gflow-kube:1.0" and container["imagePullPolicy"] == "Always"
    assert container["resources"] == {"requests": {"cpu": "20m", "memory": "32Mi"}, "limits": {"memory": "1Gi"}}
    assert pod["imagePullSecrets"] == [{"name": "registry"}] and pod["nodeSelector"] == {"kubernetes.io/arch": "amd64"}
    found = {"app.kubernetes.io/name": WEBHOOK, "app.kubernetes.io/instance": "gflow-kube"}
    assert deployment["selector"]["matchLabels"] == objects["Service", "lab", name]["spec"]["selector"] == found, "no pods of the scheduler"
    assert deployment["template"]["metadata"]["labels"] == {**found, "example.com/cost-center": "42"}
    assert pod["topologySpreadConstraints"][0]["labelSelector"]["matchLabels"] == found
    (webhook,) = objects["MutatingWebhookConfiguration", None, name]["webhooks"]
    assert webhook["clientConfig"] == {"service": {"name": name, "namespace": "lab", "path": "/pods"}}
    assert webhook["namespaceSelector"] == {"matchLabels": {"gpus": "shared"}}
    assert objects["ClusterRole", None, name]["rules"][0]["resourceNames"] == [name]


@pytest.mark.parametrize(("version", "works"), [("1.27.9", False), ("1.28.0-eks.2", True)])
def test_a_webhook_takes_conditions_of_1_28(helm, version, works):
    older = {"annotationPolicy.enabled": False, "flowSchema.enabled": False, "webhook.enabled": True}
    done = helm.run("template", "gflow-kube", CHART, "--kube-version", version, *sets(older))
    assert (done.returncode == 0) == works and ("webhook.enabled needs" in done.stderr) == (not works), done


def test_values_of_the_device_plugin_come_where_they_belong(helm, everything):
    objects = rendered(helm, "--values", everything)
    values = yaml.safe_load(ALL)["devicePlugin"]
    made = objects["DaemonSet", "nodes", PLUGIN]["spec"]
    pod = made["template"]["spec"]
    (container,) = pod["containers"]
    assert made["updateStrategy"] == values["updateStrategy"]
    for name in ("runtimeClassName", "nodeSelector", "tolerations"):
        assert pod[name] == values[name]
    assert pod["imagePullSecrets"] == [{"name": "registry"}]
    assert container["image"] == "registry.example.com:5000/gflow-kube:1.0" and container["imagePullPolicy"] == "Always"
    assert container["args"] == ["--kubelet=/data/kubelet", "--devices=nvml"]
    assert container["resources"] == {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "1Gi"}}
    paths = {volume["name"]: volume["hostPath"]["path"] for volume in pod["volumes"]}
    assert {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]} == paths
    assert paths["device-plugins"] == "/data/kubelet/device-plugins" and paths["pod-resources"] == "/data/kubelet/pod-resources"
    assert "serviceaccount:nodes:gflow-device-plugin" in json.dumps(objects["ValidatingAdmissionPolicy", None, PLUGIN])
    found = {"app.kubernetes.io/name": PLUGIN, "app.kubernetes.io/instance": "gflow-kube"}
    assert made["selector"]["matchLabels"] == found, "no pods of the scheduler"
    assert made["template"]["metadata"]["labels"] == {**found, "example.com/cost-center": "42"}


def test_no_manifest_is_forgotten(helm):
    """The others are of gflow.kubernetes."""
    of_package = {"rbac.yaml", "rbac-binder.yaml", "rbac-labels.yaml"}
    manifests = {path.name for path in MANIFESTS.glob("*.yaml")} - of_package - {"kustomization.yaml"}
    assert {path.name for path in (CHART / "templates").glob("*.yaml")} - {"limits.yaml"} == manifests


def test_what_is_labelled_and_selected_is_the_release(helm):
    for release in ("gflow-kube", "another"):
        objects = rendered(helm, release=release, **{"networkPolicy.enabled": True})
        for name, one in objects.items():
            labels = one["metadata"]["labels"]
            assert labels.keys() == ADDED and labels["app.kubernetes.io/instance"] == release, name
        found = {"app.kubernetes.io/name": "gflow-kube", "app.kubernetes.io/instance": release}
        deployment = objects["Deployment", SYSTEM, "gflow-kube"]["spec"]
        selectors = [deployment["selector"], deployment["template"]["spec"]["topologySpreadConstraints"][0]["labelSelector"],
                     objects["PodDisruptionBudget", SYSTEM, "gflow-kube"]["spec"]["selector"],
                     objects["NetworkPolicy", SYSTEM, "gflow-kube"]["spec"]["podSelector"]]
        assert [one["matchLabels"] for one in selectors] == [found] * 4
        assert deployment["template"]["metadata"]["labels"] == found, "a new version of the chart alone restarts nobody"


def test_names_follow_the_scheduler(helm):
    """All of two releases of one namespace; what the program asks for by name it is granted by name."""
    options = dict.fromkeys([*OPTIONS, "webhook.enabled"], True) | {"limits.maxGpusPerNamespace": 2}
    first, second = (rendered(helm, release=name, schedulerName=name, **options) for name in ("gflow", "second"))
    assert len(first) == len(second) and not first.keys() & second.keys()
    assert {name.replace("-second", "") for _, _, name in second} == {name for _, _, name in first}
    role = second["Role", SYSTEM, "gflow-kube-second"]
    assert [rule.get("resourceNames") for rule in role["rules"]] == [None, ["gflow-kube-second"], ["gflow-kube-second-limits"]]
    text = json.dumps(list(second.values())).replace("gflow-kube:0.1.0", "")
    assert set(re.findall(r"\bgflow(?:-kube)?(?:-[a-z]+)*", text)) <= {
        name for _, _, name in second} | {"gflow-kube", WEBHOOK, "gflow", SYSTEM, "gflow-viewers"}, "the program's own name, annotations, and who looks"
    assert "schedulerName: 'second'" in text and "in ['second']" in text and "'gflow'" not in text


def test_options_of_the_program_are_what_the_values_say(helm):
    def args(**words):
        objects = rendered(helm, **words)
        (deployment,) = (one for one in objects.values() if one["kind"] == "Deployment")
        return deployment["spec"]["template"]["spec"]["containers"][0]["args"]

    listens = "--listen=0.0.0.0:10259"
    assert args() == [listens]
    assert args(namespace="lab") == [listens, "--namespace=lab"]
    assert args(schedulerName="second", preempt=True, defrag=True, extraArgs=["--writers=2"]) == [
        listens, "--scheduler-name=second", "--preempt", "--defrag", "--writers=2"]


def test_values_come_where_they_belong(helm, everything):
    objects = rendered(helm, "--values", everything)
    deployment = objects["Deployment", SYSTEM, "gflow-kube"]
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    values = yaml.safe_load(ALL)
    assert deployment["spec"]["replicas"] == 3
    assert container["image"] == "registry.example.com:5000/gflow-kube:1.0" and container["imagePullPolicy"] == "Always"
    assert container["args"] == ["--listen=[::]:8443", "--preempt", "--defrag", "--lease-duration=30", "--writers=32"]
    assert container["ports"][0]["containerPort"] == 8443
    assert container["resources"] == {"requests": {"cpu": "1", "memory": "128Mi"}, "limits": {}}
    assert pod["imagePullSecrets"] == [{"name": "registry"}]
    assert pod["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert "priorityClassName" not in pod
    for name in ("nodeSelector", "tolerations", "affinity"):
        assert pod[name] == values[name]
    (spread,) = pod["topologySpreadConstraints"]
    assert spread["topologyKey"] == "topology.kubernetes.io/zone" and spread["labelSelector"]
    assert deployment["spec"]["template"]["metadata"]["annotations"] == {
        "prometheus.io/scrape": "false", "prometheus.io/port": "8443", "prometheus.io/path": "/metrics", "example.com/owner": "platform"}
    assert all(one["metadata"]["labels"]["example.com/cost-center"] == "42" for one in objects.values())
    assert objects["ConfigMap", SYSTEM, "gflow-kube-limits"]["data"] == {
        "max_gpus_per_namespace": "4", "max_gpus_of.vision": "8", "max_gpus_of.2": "100000",
        "topology_levels": "example.com/topology-block,example.com/topology-rack"}
    assert objects["PodDisruptionBudget", SYSTEM, "gflow-kube"]["spec"]["maxUnavailable"] == "50%"
    (rule,) = objects["NetworkPolicy", SYSTEM, "gflow-kube"]["spec"]["ingress"]
    assert rule["ports"][0]["port"] == 8443
    assert rule["from"][0]["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": "observability"}
    assert objects["MutatingAdmissionPolicyBinding", None, "gflow"]["spec"]["matchResources"]["namespaceSelector"] == {"matchLabels": {"gpus": "shared"}}
    assert objects["MutatingAdmissionPolicyBinding", None, "gflow-allocation"]["spec"]["matchResources"]["namespaceSelector"] == {"matchLabels": {"gpus": "held"}}
    assert "in ['gflow', 'second']" in json.dumps(objects["ValidatingAdmissionPolicy", None, "gflow-annotations"])
    labels = objects["Namespace", None, SYSTEM]["metadata"]["labels"]
    assert labels["team"] == "platform" and labels["pod-security.kubernetes.io/enforce"] == "restricted"
    digest = f"sha256:{'0' * 64}"
    by_digest = rendered(helm, **{"image.digest": digest})["Deployment", SYSTEM, "gflow-kube"]
    assert by_digest["spec"]["template"]["spec"]["containers"][0]["image"] == f"gflow-kube:0.1.0@{digest}"


def test_a_limit_of_none_is_one(helm):
    """0 is any number, and overrides nothing that is not there; without either there is no ConfigMap."""
    limits = ("ConfigMap", SYSTEM, "gflow-kube-limits")
    assert limits not in rendered(helm)
    assert rendered(helm, **{"limits.maxGpusPerNamespace": 0})[limits]["data"] == {"max_gpus_per_namespace": "0"}
    assert rendered(helm, **{"limits.maxGpusOf": {"vision": 2}})[limits]["data"] == {"max_gpus_of.vision": "2"}
    assert rendered(helm, **{"topology.levels": ["block", "rack"]})[limits]["data"] == {"topology_levels": "block,rack"}


SCHEMA = json.loads((CHART / "values.schema.json").read_text())


@pytest.mark.parametrize(("values", "named"), [
    ({"replica": 2}, "additional properties 'replica'"),
    ({"replicas": "two"}, "/replicas"),
    ({"image.tag": 1.0}, "/image/tag"),
    ({"image.digest": "sha256:0"}, "/image/digest"),
    ({"image.pullPolicy": "Sometimes"}, "/image/pullPolicy"),
    ({"schedulerName": "It's"}, "/schedulerName"),
    ({"preempt": "yes"}, "/preempt"),
    ({"listen.port": 65536}, "/listen/port"),
    ({"limits.maxGpusPerNamespace": -1}, "/limits/maxGpusPerNamespace"),
    ({"limits.maxGpusPerNamespace": 100_001}, "/limits/maxGpusPerNamespace"),
    ({"limits.maxGpusOf": {"vision": "4"}}, "/limits/maxGpusOf/vision"),
    ({"limits.maxGpusOf": {"Vision": 4}}, "at '/limits/maxGpusOf': additional properties 'Vision'"),
    ({"topology.levels": ["a rack"]}, "/topology/levels/0"),
    ({"topology.levels": ["rack", "rack"]}, "/topology/levels"),
    ({"annotationPolicy.otherSchedulers": ["it's"]}, "/annotationPolicy/otherSchedulers/0"),
    ({"admissionPolicy.enable": True}, "at '/admissionPolicy': additional properties 'enable'"),
    ({"devicePlugin.enable": True}, "at '/devicePlugin': additional properties 'enable'"),
    ({"devicePlugin.kubeletDirectory": "/var/lib/kubelet/"}, "/devicePlugin/kubeletDirectory"),
    ({"devicePlugin.enabled": True, "devicePlugin.extraArgs": ["--state=/tmp"]}, "devicePlugin.extraArgs has --state=/tmp"),
    ({"devicePlugin.enabled": True, "devicePlugin.namespace": "default"}, "devicePlugin.namespace is default, that of the release"),
    ({"draDriver.enabled": True, "draDriver.extraArgs": ["--cdi=/tmp"]}, "draDriver.extraArgs has --cdi=/tmp"),
    ({"draDriver.enabled": True, "draDriver.namespace": "default"}, "draDriver.namespace is default, that of the release"),
    ({"draDriver.enabled": True, "devicePlugin.enabled": True, "devicePlugin.nodeSelector": {"a": "b"}}, "would both give out the GPUs of a node"),
    ({"podDisruptionBudget.maxUnavailable": "some"}, "/podDisruptionBudget/maxUnavailable"),
    ({"networkPolicy.namespace": ""}, "/networkPolicy/namespace"),
    ({"nodeSelector": ["gpu"]}, "/nodeSelector"),
    ({"commonLabels": {"app.kubernetes.io/name": "mine"}}, "/commonLabels/app.kubernetes.io~1name"),
    ({"extraArgs": ["--preempt"]}, "extraArgs has --preempt"),
    ({"extraArgs": ["--scheduler-name=second"]}, "extraArgs has --scheduler-name=second"),
    ({"extraArgs": "--writers=2"}, "/extraArgs"),
])
def test_values_that_cannot_be_are_named(helm, values, named):
    refused = helm.run("template", "gflow-kube", CHART, "--kube-version", KUBERNETES, *sets(values))
    assert refused.returncode != 0 and named in refused.stderr, refused


@pytest.mark.parametrize(("version", "values", "named"), [
    ("1.28.0", {"annotationPolicy.enabled": False}, "flowSchema.enabled needs flowcontrol.apiserver.k8s.io/v1/FlowSchema, which Kubernetes has since 1.29"),
    ("1.29.0", {}, "annotationPolicy.enabled needs admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy, which Kubernetes has since 1.30"),
    ("1.29.0", {"annotationPolicy.enabled": False}, None),
    ("1.35.9", {"admissionPolicy.enabled": True}, "admissionPolicy.enabled needs"),
    ("1.36.0-gke.1", {"admissionPolicy.enabled": True}, None),
    ("1.35.9", {"allocationPolicy.enabled": True}, "allocationPolicy.enabled needs"),
    ("1.33.9", {"draDriver.enabled": True}, "draDriver.enabled needs resource.k8s.io/v1/DeviceClass, which Kubernetes has since 1.34"),
    ("1.34.0", {"draDriver.enabled": True}, None),
    ("1.29.0", {"annotationPolicy.enabled": False, "devicePlugin.enabled": True}, "devicePlugin.policy needs"),
    ("1.29.0", {"annotationPolicy.enabled": False, "devicePlugin.enabled": True, "devicePlugin.policy": False}, None),
])
def test_a_cluster_that_is_too_old_is_told_of_what(helm, version, values, named):
    words = ("template", "gflow-kube", CHART, "--kube-version", version, *sets(values))
    done = helm.run(*words)
    assert (done.returncode == 0) == (named is None) and (named or "") in done.stderr, done
    if named:
        api = re.search(r"needs (\S+)[,:]", done.stderr)[1]
        assert helm.run(*words, "--api-versions", api).returncode == 0, "what the cluster has counts more than its version"


def schema_of(path):
    found = SCHEMA
    for name in path:
        found = found["properties"][name]
        if "$ref" in found:
            found = SCHEMA["definitions"][found["$ref"].rpartition("/")[2]]
    return found


def own_names(path):
    """Those that the chart gives its values there; none where they are Kubernetes' own."""
    names = schema_of(path).get("properties", {}).keys()
    return set() if path and path[-1] in ("resources", "namespaceSelector", "commonLabels") else names - {"global"}


def test_each_value_is_in_the_schema_and_told_of():
    """In the line above it; of those that have values of their own, above each."""
    path, told, seen = [], False, set()
    for line in (CHART / "values.yaml").read_text().splitlines():
        key = re.match(r"( *)(\w+):", line)
        if key:
            inside = path[:len(key[1]) // 2]
            if key[2] in own_names(inside):
                path = [*inside, key[2]]
                seen.add(tuple(path))
                assert told or own_names(path), path
        told = line.lstrip().startswith("#")
    wanted = {(name,) for name in own_names([])}
    wanted |= {(*outer, name) for outer in wanted for name in own_names(list(outer))}
    assert seen == wanted


def test_it_is_of_the_version_of_the_program():
    version = subprocess.run([BIN / "gflow-kube", "--version"], text=True, capture_output=True, check=True).stdout.split()[-1]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (version, version)


# -- a cluster


@pytest.fixture(scope="module")
def own():
    """A control plane where nobody applied the manifests."""
    made = Cluster()
    try:
        made.up()
        yield made
    finally:
        made.close()


@pytest.fixture
def kube(own):
    own.clear()
    return own


class Releases:
    """Of a cluster; all of them are gone after the test."""

    def __init__(self, kube, home):
        self._kube = kube
        self._helm = Helm(home, kube.kubeconfig(ADMIN, "of-helm"))
        self._made = {}

    def put(self, name, *words, namespace=SYSTEM, **values):
        """Installs or upgrades it, and says what that says."""
        self._made[name] = namespace
        return self._helm("upgrade", "--install", name, CHART, "--namespace", namespace, "--create-namespace", "--reset-values", *words, *sets(values))

    def type(self, line):
        """A command that puts the release gflow-kube there."""
        self._made["gflow-kube"] = SYSTEM
        words = shlex.split(line.replace("\\\n", "").replace("packaging/helm/gflow-kube", str(CHART)), comments=True)
        self._helm(*words[1:])

    def refused(self, name, namespace=SYSTEM):
        """Why it is not installed."""
        done = self._helm.run("install", name, CHART, "--namespace", namespace, "--create-namespace")
        assert done.returncode != 0
        return done.stderr

    def take_back(self, name):
        self._helm("uninstall", name, "--namespace", self._made.pop(name))

    def objects(self, name):
        return [one for one in yaml.safe_load_all(self._helm("get", "manifest", name, "--namespace", self._made[name])) if one]

    def deployment(self, name):
        """As it is in the cluster."""
        (made,) = (one for one in self.objects(name) if one["kind"] == "Deployment")
        return self._kube.ask("GET", f"{path_of('Deployment', self._made[name])}/{made['metadata']['name']}")

    def close(self):
        for name in list(self._made):
            self.take_back(name)


@pytest.fixture
def releases(kube, tmp_path):
    made = Releases(kube, tmp_path)
    yield made
    made.close()


@pytest.fixture
def run(kube, releases):
    """Starts what a pod of the Deployment of a release would: its service account, its options, and nothing else."""
    made = []

    def start(release):
        deployment = releases.deployment(release)
        pod = deployment["spec"]["template"]["spec"]
        options = [one if not one.startswith("--listen=") else "--listen=127.0.0.1:0" for one in pod["containers"][0]["args"]]
        made.append(Scheduler(kube, *options, account=pod["serviceAccountName"], namespace=deployment["metadata"]["namespace"]))
        return made[-1]

    yield start
    for one in made:
        one.end(signal.SIGKILL)
    end_lease(kube)


def there(kube, objects):
    """The names of those that the cluster has."""
    found = []
    for one in objects:
        with contextlib.suppress(urllib.error.HTTPError):
            kube.raw("GET", f"{path_of(one['kind'], one['metadata'].get('namespace', ''))}/{one['metadata']['name']}")
            found.append(name_of(one))
    return found


def test_it_is_installed_upgraded_and_taken_back(kube, releases, run):
    kube.node("n", 2)
    notes = releases.put("gflow-kube")
    assert "schedulerName: gflow\n" in notes and "kubectl label namespace gflow-system pod-security" in notes
    plain = releases.objects("gflow-kube")
    assert there(kube, plain) == [name_of(one) for one in plain]
    run("gflow-kube")
    make_pod(kube, "a", "2")
    until_bound(kube, "a")
    make_pod(kube, "b", "1")
    until_told(kube, "b", "Insufficient")

    kube.raw("PATCH", f"{path_of('Namespace')}/{SYSTEM}", {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}})
    notes = releases.put("gflow-kube", preempt=True, **{"limits.maxGpusPerNamespace": 1, "replicas": 3})
    assert "kubectl label" not in notes
    until_told(kube, "b", "holds 2 GPUs and may hold 1 at once")
    assert releases.deployment("gflow-kube")["spec"]["replicas"] == 3
    more = releases.objects("gflow-kube")
    assert there(kube, more) == [name_of(one) for one in more] and len(more) == len(plain) + 3

    releases.put("gflow-kube")
    assert sorted(there(kube, more)) == sorted(name_of(one) for one in plain), "what a value made goes with it"
    releases.take_back("gflow-kube")
    assert there(kube, more) == []
    assert set(until(kube, lambda pods: True)) == {"a", "b"}, "pods stay"


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_what_the_documents_type_installs_it(kube, releases, document):
    """Whatever of it is a command of helm, of a clone."""
    typed = re.findall(r"^helm (?:.*\\\n)*.*$", (ROOT / document).read_text(), re.MULTILINE)
    assert typed
    for line in typed:
        releases.type(line)
        (container,) = releases.deployment("gflow-kube")["spec"]["template"]["spec"]["containers"]
        assert container["image"] == "registry.example.com/gflow-kube:0.1.0"
    releases.take_back("gflow-kube")


def test_the_device_plugin_is_put_beside_it_and_taken_back(kube, releases):
    """Its namespace with it; that nothing is in one any more says a controller that is not here."""
    assert "vendor has to go" in releases.put("gflow-kube", **{"devicePlugin.enabled": True, "allocationPolicy.enabled": True})
    made = releases.objects("gflow-kube")
    namespace = ("Namespace", None, NODE_SYSTEM)
    names = [name_of(one) for one in made]
    assert there(kube, made) == names and namespace in names and ("DaemonSet", NODE_SYSTEM, PLUGIN) in names
    daemons = kube.ask("GET", f"{path_of('DaemonSet', NODE_SYSTEM)}/{PLUGIN}")["spec"]["template"]
    kube.ask("POST", path_of("Pod", NODE_SYSTEM) + "?dryRun=All", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": daemons["spec"]})
    releases.take_back("gflow-kube")
    assert there(kube, made) == [namespace]
    assert kube.ask("GET", f"{path_of('Namespace')}/{NODE_SYSTEM}")["status"]["phase"] == "Terminating"


def test_with_preempt_it_may_evict(kube, releases, run):
    kube.node("n", 1)
    for name, value in (("low", 5), ("high", 1000)):
        kube.ask("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value})
    releases.put("gflow-kube", preempt=True)
    run("gflow-kube")
    make_pod(kube, "a", "1", priorityClassName="low")
    until_bound(kube, "a")
    make_pod(kube, "vip", "1", priorityClassName="high")
    until_bound(kube, "vip")


def test_policies_are_of_the_scheduler_that_the_values_name(kube, releases):
    kube.node("n", 2)
    releases.put("second", schedulerName="second", **{
        "annotationPolicy.otherSchedulers": ["third"], "admissionPolicy.enabled": True,
        "admissionPolicy.namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}})

    def scheduler_of(namespace):
        """Of a pod with the annotation, as it would be made there."""
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "annotations": {"gflow/gpu": "1"}},
               "spec": {"containers": [{"name": "main", "image": "none"}]}}
        return kube.ask("POST", path_of("Pod", namespace) + "?dryRun=All", pod)["spec"]["schedulerName"]

    until_in_force(lambda: scheduler_of("default") == "second")
    assert scheduler_of("kube-public") == "default-scheduler"

    def may_ask(pod):
        """Whether it may be given the annotation yet."""
        path = f"{path_of('Pod', 'default')}/{pod}?dryRun=All"
        try:
            kube.raw("PATCH", path, {"metadata": {"annotations": {"gflow/gpu": "1"}}})
        except urllib.error.HTTPError as error:
            assert "is not the scheduler of this pod" in error.read().decode()
            return False
        return True

    for scheduler in ("second", "third", "gflow"):
        make_pod(kube, scheduler, scheduler=scheduler)
    until_in_force(lambda: not may_ask("gflow"))
    assert may_ask("second") and may_ask("third")


def test_two_are_beside_each_other(kube, releases, run):
    """In namespaces of their own; each has its pods, and a Lease by its name."""
    kube.node("n", 2)
    releases.put("gflow-kube")
    releases.put("second", namespace="lab", schedulerName="second")
    for name in ("gflow-kube", "second"):
        assert run(name).says("known")
    make_pod(kube, "a", "1")
    make_pod(kube, "b", "1", scheduler="second")
    until_bound(kube, "a", "b")
    assert [one["metadata"]["name"] for one in kube.ask("GET", path_of("Lease", "lab"))["items"]] == ["gflow-kube-second"]


def test_what_the_manifests_made_becomes_the_release(kube, releases, run):
    """As the README of the chart says, of the Deployment that goes, too."""
    for one in kustomized().values():
        kind, namespace, name = name_of(one)
        kube.ask("PATCH", f"{path_of(kind, namespace or '')}/{name}?fieldManager=kubectl&force=true", one, content_type="application/apply-patch+yaml")
    kube.node("n", 2)
    make_pod(kube, "a", "1")
    assert "invalid ownership metadata" in releases.refused("gflow-kube")
    kube.ask("DELETE", f"{path_of('Deployment', SYSTEM)}/gflow-kube")
    releases.put("gflow-kube", "--take-ownership")
    run("gflow-kube")
    until_bound(kube, "a")
    made = releases.objects("gflow-kube")
    assert {one["metadata"].get("namespace") for one in made} == {None, SYSTEM}
    releases.take_back("gflow-kube")
    assert there(kube, made) == []


def test_two_of_one_scheduler_are_refused(kube, releases):
    """In whatever namespace: they would not see each other's Lease."""
    releases.put("gflow-kube")
    assert "invalid ownership metadata" in releases.refused("again", namespace="lab")


RESTRICTED = "restricted"


@pytest.fixture(scope="module")
def restricted(own):
    """A namespace as that of the scheduler should be, and nobody is in it."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    own.make({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": RESTRICTED, "labels": labels}})


@pytest.mark.parametrize("values", ["default", "everything"])
def test_the_api_server_takes_each_object_and_admits_its_pods(kube, helm, restricted, everything, values):
    """No field that there is not, and nothing that the strictest Pod Security Standard forbids."""
    words = ["--values", everything] if values == "everything" else []
    objects = rendered(helm, *words, namespace=RESTRICTED)
    namespaces = {one["metadata"].get("namespace") for one in objects.values()} - {None, RESTRICTED}
    for name in namespaces - {one["metadata"]["name"] for one in kube.ask("GET", path_of("Namespace"))["items"]}:
        kube.make({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})  # a dry run made none
    for one in objects.values():
        metadata = one["metadata"]
        path = f"{path_of(one['kind'], metadata.get('namespace', ''))}/{metadata['name']}"
        kube.ask("PATCH", f"{path}?fieldManager=test&dryRun=All&fieldValidation=Strict&force=true", one, content_type="application/apply-patch+yaml")
    template = objects["Deployment", RESTRICTED, "gflow-kube"]["spec"]["template"]
    kube.ask("POST", path_of("Pod", RESTRICTED) + "?dryRun=All", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": template["spec"]})
