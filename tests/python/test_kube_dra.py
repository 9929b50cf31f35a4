# SPDX-License-Identifier: Apache-2.0
"""gflow-dra-driver between a real kubelet, kube-scheduler and API server: a container has what was allocated to the claim it names, and is held to its part."""

import json
import os
import re
import shutil
import signal
import struct

import pytest
import yaml
from cluster import path_of
from containers import FAKE_LIBRARIES, LASTS, TELL, WORKS, cuda, given_out_twice, gpus, said
from fake_gpu import FAKE, GIB, Account
from kube_scheduler import CLAIMS_SYSTEM, DRIVER, until, until_in_force, until_told
from kubelet import ENDED, delete, until_ended, until_running
from machine import BIN, PATIENCE
from package import ROOT

CLASS = "gpu.gflow"
USER = f"system:serviceaccount:{CLAIMS_SYSTEM}:{DRIVER}"


class Driver:
    """The program, on a node, with the rights of its service account."""

    def __init__(self, node, kube, devices, env=None):
        self._node, self._kube, self._devices, self._env = node, kube, devices, env
        self.up()

    def up(self):
        config = self._kube.kubeconfig(self._kube.token(DRIVER, CLAIMS_SYSTEM), f"of-{DRIVER}")
        self._node.start(DRIVER, BIN / DRIVER, "--node", self._node.name, "--devices", self._devices, "--kubeconfig", config, env=self._env)

    def kill(self):
        self._node.stop(DRIVER, signal.SIGKILL)

    def until_told(self, gpus, is_so=lambda devices: True):
        """The devices of its slices, once it tells of so many and that is so of them."""
        return devices_of(until(self._kube, lambda slices: len(devices_of(slices)) == gpus and is_so(devices_of(slices)), kind="ResourceSlice"))


def devices_of(slices):
    return [device for one in slices.values() if one["spec"]["driver"] == CLASS for device in one["spec"].get("devices", ())]


def uuid_of(device):
    return device["attributes"]["uuid"]["string"]


@pytest.fixture
def driver(node, kube, with_driver, kube_scheduler):
    """Starts one, and waits until the cluster knows its GPUs. Claims are made of templates, and are free when their pods have ended."""
    kube.start_controllers("resourceclaim-controller", "device-taint-eviction-controller")

    def begin(devices, gpus, env=None):
        made = Driver(node, kube, devices, env)
        made.until_told(gpus)
        return made

    yield begin
    forget_claims(kube)
    kube.stop_controllers()


def forget_claims(kube):
    """With the pods that have them: the controller lets claims of pods that are gone go."""
    kube.ask("DELETE", f"{path_of('Pod', 'default')}?gracePeriodSeconds=0")
    for kind in ("ResourceClaimTemplate", "ResourceClaim"):
        kube.ask("DELETE", path_of(kind, "default"))
    until(kube, lambda claims: not claims, kind="ResourceClaim")
    kube.ask("DELETE", path_of("ResourceSlice"))


def listed(kube, kind):
    return {one["metadata"]["name"]: one for one in kube.ask("GET", path_of(kind, "default"))["items"]}


def request(name="gpu", memory=None, share=None, count=1, **more):
    wanted = {key: value for key, value in (("memory", memory), ("share", share)) if value}
    exactly = {"deviceClassName": CLASS, "count": count, **({"capacity": {"requests": wanted}} if wanted else {}), **more}
    return {"name": name, "exactly": exactly}


def devices(*requests, **config):
    return {"devices": {"requests": list(requests), **config}}


def make_template(kube, name, *requests, **config):
    kube.make({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": name, "namespace": "default"},
               "spec": {"spec": devices(*requests, **config)}})


def make_claim(kube, name, *requests, **config):
    kube.make({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name, "namespace": "default"},
               "spec": devices(*requests, **config)})


def container(script, *claims, name="main"):
    """Each claim by the name that the pod has for it, or "name/request"."""
    named = [dict(zip(("name", "request"), one.split("/"))) for one in claims]
    return {"name": name, "image": "host", "command": ["sh", "-c", script.replace("$", "$$")], "resources": {"claims": named}}


def make_pod(kube, name, claims, *containers, **spec):
    """`claims`: by the pod's names for them, of a template ("+name") or one that is there."""
    kube.make({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
        "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": list(containers),
                 "resourceClaims": [{"name": its, **({"resourceClaimTemplateName": of[1:]} if of.startswith("+") else {"resourceClaimName": of})}
                                    for its, of in claims.items()], **spec}})


def one_claim(kube, name, claim, script, **spec):
    """A pod of one container with one claim."""
    make_pod(kube, name, {"gpu": claim}, container(script, "gpu"), **spec)


def gpus_told(node, kube, pod, container="main"):
    until_running(kube, pod)
    until_in_force(lambda: said(node, pod, container))
    return said(node, pod, container)[0]


def until_event(kube, name, text):
    """Of a pod that does not start."""
    def is_told(events):
        return any(one["involvedObject"]["name"] == name and text in one["message"] for one in events.values())

    until(kube, is_told, kind="Event")


def test_the_cluster_knows_what_each_gpu_is(kube, driver):
    made = driver("sim:2xH100+1xV100", 3)
    told = made.until_told(3)
    assert sorted(one["attributes"]["model"]["string"] for one in told) == ["H100", "H100", "V100"]
    assert [one["attributes"]["index"]["int"] for one in told] == [0, 1, 2]
    for one in told:
        assert one["name"] == uuid_of(one).lower()
        assert one["allowMultipleAllocations"] and one["capacity"]["share"]["value"] == "1"
        assert one["capacity"]["memory"]["requestPolicy"]["default"] == one["capacity"]["memory"]["value"]
    [owner] = {json.dumps(one["metadata"]["ownerReferences"]) for one in listed(kube, "ResourceSlice").values()}
    assert '"kind": "Node"' in owner


def test_containers_have_what_was_allocated_to_their_claims(node, kube, driver):
    driver("sim:3xH100", 3)
    make_template(kube, "half", request(memory="8Gi", share="500m"))
    make_template(kube, "two", request(count=2))
    make_template(kube, "whole", request())
    for name in ("half-0", "half-1"):
        one_claim(kube, name, "+half", f"{TELL}; {LASTS}")
    first, second = (gpus_told(node, kube, name) for name in ("half-0", "half-1"))
    assert first[1:] == second[1:] == ["0.5", "void"]
    one_claim(kube, "two", "+two", f"{TELL}; {LASTS}")
    both = gpus_told(node, kube, "two")
    assert len(set(both[0].split(","))) == 2 and both[1] == "1"
    if first[0] == second[0]:
        assert first[0] not in both[0]
    one_claim(kube, "whole", "+whole", f"{TELL}; {LASTS}")
    until_told(kube, "whole", "cannot allocate all claims")
    delete(kube, "two")
    assert gpus_told(node, kube, "whole")[0] in both[0]
    assert sorted(one for verb, _, one in kube.asked_by(USER) if verb in ("create", "list")) == ["resourceslices", "resourceslices"]
    for name in ("half-0", "half-1", "whole"):
        delete(kube, name)
    until_in_force(lambda: left(node) == [])


def left(node):
    """What there is of claims."""
    return sorted([one.name for one in (node.run / "cdi").glob("gflow-*")] + [one.name for one in (node.run / DRIVER / "containers").iterdir()])


def test_a_container_is_given_the_request_that_it_names(node, kube, driver):
    driver("sim:3xH100", 3)
    make_claim(kube, "both", request("large", count=2), request("small", "8Gi", "0.25"))
    make_pod(kube, "pod", {"all": "both"}, container(TELL, "all/large", name="a"), container(TELL, "all/small", name="b"), container(TELL, name="c"))
    until_ended(kube, "pod")
    large, small, none = (said(node, "pod", name)[0] for name in "abc")
    assert len(large[0].split(",")) == 2 and large[1] == "1"
    assert small[1] == "0.25" and small[0] not in large[0]
    assert none == []


def test_a_container_is_held_to_its_part(node, kube, driver, nvidia):
    driver("nvml", 2, nvidia)
    make_claim(kube, "part", request(memory="7Gi", share="0.5"))
    asks = cuda(f"alloc {8 * GIB}", f"alloc {6 * GIB}", f"alloc {2 * GIB}", "info")
    one_claim(kube, "pod", "part", f"ls /dev | grep 'nvidia[0-9]' >&2; {asks}; env -i GFLOW_FAKE_CUDA=$GFLOW_FAKE_CUDA {FAKE_LIBRARIES} sh -c \"{asks}\"")
    assert until_ended(kube, "pod")["pod"]["status"]["phase"] == "Succeeded", node.said()
    answers = said(node, "pod")
    for first in (0, 6):
        refused, given, again, (_, free, total) = answers[first + 2:first + 6]
        assert (refused, given[0], again) == (["2"], "0", ["2"])
        assert (int(total) - int(free), int(total)) == (6 * GIB, 7 * GIB)
    [[given]] = said(node, "pod", stream="stderr")
    assert given in ("nvidia0", "nvidia1")


def accounts(node):
    """Of claims with a part of a GPU: what the processes of their containers have of it."""
    found = sorted((node.run / DRIVER / "containers").glob("*/account"))
    return [struct.unpack_from("<Q", one.read_bytes(), Account.DEVICES + 56)[0] for one in found]


def holder(gate, much, then=""):
    """What holds memory until it is let go by a word."""
    return f"{{ printf 'init\\ncontext 0\\nalloc {much}\\n'; read x < /driver/{gate}; }} | {FAKE}/cuda_client proc{then}"


def test_who_lives_keeps_what_it_has_whoever_else_has_the_claim(node, kube, driver, nvidia):
    driver("nvml", 2, nvidia)
    make_claim(kube, "part", request(memory="7Gi", share="0.5"))
    os.mkfifo(node.run / "driver/a")
    one_claim(kube, "holds", "part", holder("a", 5 * GIB))
    until(kube, lambda _: accounts(node) == [5 * GIB])
    one_claim(kube, "next", "part", cuda(f"alloc {5 * GIB}", f"alloc {GIB}"))
    until_ended(kube, "next")
    assert [words[0] for words in said(node, "next")[-2:]] == ["2", "0"]
    # Nor is there another account where its specification was lost and it is made ready again.
    for one in (node.run / "cdi").glob("gflow-claim-*"):
        one.unlink()
    node.stop("kubelet", signal.SIGKILL)
    node.start_kubelet()
    one_claim(kube, "then", "part", cuda(f"alloc {5 * GIB}", f"alloc {GIB}"))
    until_ended(kube, "then")
    assert [words[0] for words in said(node, "then")[-2:]] == ["2", "0"]
    (node.run / "driver/a").write_text("x\n")
    until_ended(kube, "holds")


def test_what_one_had_that_was_killed_is_given_back_to_those_in_other_containers(node, kube, driver, nvidia):
    driver("nvml", 2, nvidia)
    make_claim(kube, "part", request(memory="7Gi", share="0.5"))
    for gate in ("a", "b", "c"):
        os.mkfifo(node.run / f"driver/{gate}")
    one_claim(kube, "beside", "part", holder("c", GIB))  # of another pod, all the time
    until(kube, lambda _: accounts(node) == [GIB])
    one_claim(kube, "killed", "part", holder("a", 5 * GIB))
    until(kube, lambda _: accounts(node) == [6 * GIB])
    delete(kube, "killed")  # its grace over, by SIGKILL: it gives nothing back itself
    one_claim(kube, "next", "part", f"until {cuda(f'alloc {5 * GIB}')} | tail -n 1 | grep -q '^0 '; do sleep 0.1; done; echo has it")
    assert until_ended(kube, "next")["next"]["status"]["phase"] == "Succeeded", node.said()
    assert said(node, "next") == [["has", "it"]]
    (node.run / "driver/c").write_text("x\n")
    until_ended(kube, "beside")


def test_one_with_several_parts_is_not_started_and_says_so(node, kube, driver):
    driver("sim:2xH100", 2)
    make_template(kube, "part", request(memory="8Gi", share="0.5"))
    make_pod(kube, "pod", {"a": "+part", "b": "+part"}, container(TELL, "a", "b"))
    until_event(kube, "pod", "container main would have parts of GPUs by several requests")
    delete(kube, "pod")
    make_pod(kube, "pod", {"a": "+part", "b": "+part"}, container(TELL, "a", name="x"), container(TELL, "b", name="y"))
    assert until_ended(kube, "pod")["pod"]["status"]["phase"] == "Succeeded"


def test_what_is_configured_is_told_or_refused(node, kube, driver):
    driver("sim:2xH100", 2)

    def configured(**parameters):
        return {"config": [{"opaque": {"driver": CLASS, "parameters": {"apiVersion": "gpu.gflow/v1", "kind": "Part", **parameters}}}]}

    make_claim(kube, "up", request(memory="8Gi", share="0.3"), **configured(shareLimit="1"))
    one_claim(kube, "good", "up", "echo $GFLOW_GPU_SHARE $GFLOW_GPU_SHARE_LIMIT $GFLOW_GPU_MEMORY_MIB")
    until_ended(kube, "good")
    assert said(node, "good") == [["0.3", "1", "8192"]]
    make_claim(kube, "wrong", request(memory="8Gi", share="0.3"), **configured(sharelimit="1"))
    one_claim(kube, "bad", "wrong", TELL)
    until_event(kube, "bad", "'sharelimit' of its configuration is not known")
    delete(kube, "bad")


@pytest.mark.parametrize(("document", "section"), [("cluster.md", "## By claims: gflow-dra-driver"), ("cluster.zh-CN.md", "## 用 ResourceClaim 申请：gflow-dra-driver")])
def test_the_example_of_the_documents_is_taken(node, kube, driver, document, section):
    _, _, text = (ROOT / "docs" / document).read_text().partition(f"\n{section}\n")
    example, config = re.findall(r"^```yaml\n(.*?)^```", text.partition("\n## ")[0], re.MULTILINE | re.DOTALL)
    template, pod = yaml.safe_load_all(example)
    template["spec"]["spec"]["devices"].update(yaml.safe_load(config))
    [container] = pod["spec"]["containers"]
    container["command"] = ["sh", "-c", "echo $$GFLOW_GPU_SHARE $$GFLOW_GPU_SHARE_LIMIT $$GFLOW_GPU_MEMORY_MIB"]
    del container["resources"]["limits"]  # this node may have fewer CPUs
    pod["spec"]["restartPolicy"] = "Never"
    driver("sim:1xV100+1xH100", 2)
    for one in (template, pod):
        one["metadata"]["namespace"] = "default"
        kube.make(one)
    name = pod["metadata"]["name"]
    assert until_ended(kube, name)[name]["status"]["phase"] == "Succeeded"
    assert said(node, name) == [["0.5", "1", "8192"]]


def health_of(pod):
    """Of the devices that its container has by claims."""
    [container] = pod["status"].get("containerStatuses", [{}])
    return [device["health"] for one in container.get("allocatedResourcesStatus", ()) for device in one["resources"]]


def test_a_gpu_that_breaks_is_not_allocated(node, kube, driver):
    machine = node.run / "machine.yaml"
    machine.write_text(gpus("GPU-a", "GPU-b"))
    made = driver("sim:/run/machine.yaml", 2)
    make_template(kube, "whole", request())
    one_claim(kube, "first", "+whole", f"{TELL}; {LASTS}")
    [its, *_] = gpus_told(node, kube, "first")
    other = {"GPU-a": "GPU-b", "GPU-b": "GPU-a"}[its]
    machine.write_text(gpus("GPU-a", "GPU-b", lost=[other]))
    [broken] = [one for one in made.until_told(2, lambda devices: any("taints" in one for one in devices)) if "taints" in one]
    assert uuid_of(broken) == other and broken["attributes"]["trouble"]["string"]
    until(kube, lambda pods: health_of(pods["first"]) == ["Healthy"])
    one_claim(kube, "next", "+whole", TELL)
    until_told(kube, "next", "cannot allocate all claims")
    machine.write_text(gpus("GPU-a", "GPU-b"))
    until_ended(kube, "next")
    assert said(node, "next")[0][0] == other
    machine.write_text(gpus("GPU-a", "GPU-b", lost=[its]))
    until(kube, lambda pods: health_of(pods["first"]) == ["Unhealthy"])  # it goes on, and its owner sees it
    delete(kube, "first")


def of_uuid(uuid):
    return {"selectors": [{"cel": {"expression": f"device.attributes['gpu.gflow'].uuid == '{uuid}'"}}]}


def test_a_claim_that_is_allocated_anew_has_what_it_has_now(node, kube, driver):
    (node.run / "machine.yaml").write_text(gpus("GPU-a", "GPU-b"))
    driver("sim:/run/machine.yaml", 2)
    make_claim(kube, "first", request())
    one_claim(kube, "gone", "first", f"{TELL}; {LASTS}")
    its = gpus_told(node, kube, "gone")[0]
    node.stop("kubelet", signal.SIGKILL)  # which so tells of no end
    kube.ask("DELETE", f"{path_of('Pod', 'default')}/gone?gracePeriodSeconds=0")
    until(kube, lambda claims: not claims["first"].get("status", {}).get("allocation"), kind="ResourceClaim")
    make_claim(kube, "second", request(**of_uuid(its)))
    for pod, claim in (("takes", "second"), ("again", "first")):
        one_claim(kube, pod, claim, f"{TELL}; {LASTS}")
        until(kube, lambda claims: claims[claim].get("status", {}).get("allocation"), kind="ResourceClaim")
    node.start_kubelet()
    assert gpus_told(node, kube, "takes")[0] == its
    assert gpus_told(node, kube, "again")[0] == {"GPU-a": "GPU-b", "GPU-b": "GPU-a"}[its]
    for pod in ("takes", "again"):
        delete(kube, pod)


def test_pods_end_also_where_the_state_is_gone(node, kube, driver):
    driver("sim:2xH100", 2)
    make_claim(kube, "claim", request())
    one_claim(kube, "pod", "claim", f"{TELL}; {LASTS}")
    gpus_told(node, kube, "pod")
    shutil.rmtree(node.run / DRIVER)
    delete(kube, "pod")


def test_a_machine_with_many_gpus_has_as_many_slices_as_it_takes(node, kube, driver):
    machine = node.run / "machine.yaml"
    machine.write_text(gpus(*(f"GPU-{i}" for i in range(70))))
    made = driver("sim:/run/machine.yaml", 70)
    assert len(listed(kube, "ResourceSlice")) == 2
    machine.write_text(gpus(*(f"GPU-{i}" for i in range(70)), lost=["GPU-3"]))
    made.until_told(70, lambda devices: any("taints" in one for one in devices))
    pools = until(kube, lambda slices: {one["spec"]["pool"]["generation"] for one in slices.values()} == {2}, kind="ResourceSlice").values()
    assert [one["spec"]["pool"]["resourceSliceCount"] for one in pools] == [2, 2]


def test_slices_that_somebody_took_away_come_back(node, kube, driver):
    made = driver("sim:2xH100", 2)
    kube.ask("DELETE", path_of("ResourceSlice"))
    made.until_told(2)


def test_no_gpu_is_given_out_twice_while_all_are_killed(node, kube, driver):
    made = driver("sim:4xH100", 4)
    make_template(kube, "half", request(memory="8Gi", share="500m"))
    make_template(kube, "quarter", request(memory="8Gi", share="250m"))
    make_template(kube, "one", request())
    make_template(kube, "two", request(count=2))
    names = []
    for _ in range(8):
        for template in ("half", "quarter", "one", "two"):
            names.append(f"pod-{len(names)}")
            one_claim(kube, names[-1], f"+{template}", WORKS)
    for i in range(1, 7):
        until(kube, lambda pods: sum(one["status"].get("phase") in ENDED for one in pods.values()) >= 4 * i, PATIENCE)
        if i % 2:
            made.kill()
            made.up()
        else:
            node.stop("kubelet", signal.SIGKILL)
            node.start_kubelet()
    pods = until_ended(kube, *names)
    twice, uses = given_out_twice(node, names)
    assert twice == []
    assert {name: one["status"] for name, one in pods.items() if one["status"]["phase"] != "Succeeded"} == {}
    assert uses >= len(names)
