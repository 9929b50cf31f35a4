# SPDX-License-Identifier: Apache-2.0
"""gflow-device-plugin between a real kubelet and a real API server: a container has what gflow-kube chose for its pod, and is held to its part."""

import json
import os
import signal
import struct
import time

import pytest
from cluster import path_of
from containers import FAKE_LIBRARIES, LASTS, TELL, WORKS, cuda, given_out_twice, gpus, said
from fake_gpu import FAKE, GIB, Account
from kube_scheduler import NODE_SYSTEM, PLUGIN, chosen, end_lease, make_pod, until, until_in_force, until_told
from kubelet import ENDED, delete, state_of, until_ended, until_running
from machine import BIN, PATIENCE


class Plugin:
    """The program, on a node, with the rights of its service account."""

    def __init__(self, node, kube, devices, env=None):
        self._node, self._kube, self._devices, self._env = node, kube, devices, env
        self.up()

    def up(self):
        config = self._kube.kubeconfig(self._kube.token(PLUGIN, NODE_SYSTEM), f"of-{PLUGIN}")
        self._node.start(PLUGIN, BIN / PLUGIN, "--node", self._node.name, "--devices", self._devices, "--kubeconfig", config, env=self._env)

    def kill(self):
        self._node.stop(PLUGIN, signal.SIGKILL)

    def until_offered(self, gpus):
        """The node, once its kubelet offers so many and the list of devices is there."""
        return self._node.until(lambda node: offered(node) == (gpus, 256) and devices_of(node))

    def until_says(self, text, times=1):
        """It is a file: there is nothing to be told by."""
        end = time.monotonic() + PATIENCE
        while self._node.log_of(PLUGIN).read_text().count(text) < times:
            assert time.monotonic() < end, self._node.said()
            time.sleep(0.02)


def offered(node):
    """What the kubelet says there is: whole GPUs, and containers that may have an allocation."""
    there = node["status"]["allocatable"]
    return int(there.get("nvidia.com/gpu", -1)), int(there.get("gflow/allocation", -1))


def devices_of(node):
    return json.loads(node["metadata"].get("annotations", {}).get("gflow/devices", '{"devices": []}'))["devices"]


@pytest.fixture
def plugin(node, kube, with_node_rights):
    """Starts one, and waits until its kubelet offers its GPUs."""

    def begin(devices, gpus, env=None):
        made = Plugin(node, kube, devices, env)
        made.until_offered(gpus)
        return made

    return begin


def container(script, name="main", **limits):
    """Of $ a kubelet makes one again."""
    return {"name": name, "image": "host", "command": ["sh", "-c", script.replace("$", "$$")],
            "resources": {"limits": {resource.replace("_", "/"): str(count) for resource, count in limits.items()}}}


def ask_for(kube, name, gpu, *containers, **spec):
    return make_pod(kube, name, gpu, containers=list(containers), **{"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, **spec})


def uuids_of(kube, node, pod):
    """Of the devices that were chosen for it, as the node lists them."""
    listed = {(one["resource"], one["index"]): one["uuid"] for one in devices_of(kube.ask("GET", f"{path_of('Node')}/{node.name}"))}
    return [listed[resource, index] for resource, index, _ in chosen(pod)]


WHOLE = {"nvidia.com_gpu": 1}
ALLOCATION = {"gflow_allocation": 1}


def gpus_told(node, kube, pod):
    """By its container, which runs: that it does is known before its first word is."""
    until_running(kube, pod)
    until_in_force(lambda: said(node, pod))
    return said(node, pod)[0][0]


def test_each_container_has_what_was_chosen_for_its_pod_whoever_starts_beside_it(node, kube, start, plugin):
    plugin("sim:4xH100", 4)
    for i in range(3):
        ask_for(kube, f"half-{i}", "0.5", container(f"{TELL}; {LASTS}", **ALLOCATION))
        ask_for(kube, f"quarter-{i}", "8G,0.25", container(f"{TELL}; {LASTS}", **ALLOCATION))
    ask_for(kube, "whole", None, container(f"{TELL}; {LASTS}", **WHOLE))
    ask_for(kube, "none", None, container(TELL))
    start()
    pods = until(kube, lambda pods: all(one["status"].get("phase") in ("Running", "Succeeded") for one in pods.values()))
    assert len(pods) == 8
    shares = {"half": "0.5", "quarter": "0.25", "whole": "1"}
    for name, pod in pods.items():
        share = shares.get(name.partition("-")[0])
        assert said(node, name) == [[*uuids_of(kube, node, pod), share, "void"] if share else []], name
    assert len({tuple(chosen(pod)) for name, pod in pods.items() if name != "none"}) > 2


def test_the_annotation_alone_is_enough_with_the_policy_for_that(node, kube, start, plugin, applied):
    plugin("sim:2xH100", 2)
    applied("allocation-policy.yaml")
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "annotations": {"gflow/gpu": "0.5"}},
           "spec": {"schedulerName": "gflow", "containers": [{"name": "main", "image": "none"}]}}
    until_in_force(lambda: "gflow/allocation" in str(kube.ask("POST", path_of("Pod", "default") + "?dryRun=All", pod)["spec"]))
    ask_for(kube, "half", "8G,0.5", container(TELL), container(TELL, "beside"))
    start()
    pod = until_ended(kube, "half")["half"]
    assert said(node, "half") == [[*uuids_of(kube, node, pod), "0.5", "void"]] and said(node, "half", "beside") == [[]]


def test_containers_of_a_pod_share_out_its_whole_gpus(node, kube, start, plugin):
    plugin("sim:4xH100", 4)
    start()
    sidecar = container(f"{TELL}; {LASTS}", "sidecar", **WHOLE) | {"restartPolicy": "Always"}
    ask_for(kube, "pod", None, container(TELL, "a", **{"nvidia.com_gpu": 2}), container(TELL, "b", **WHOLE), initContainers=[sidecar])
    pod = until_ended(kube, "pod")["pod"]
    given = [said(node, "pod", name)[0][0] for name in ("sidecar", "a", "b")]
    assert ",".join(given) == ",".join(uuids_of(kube, node, pod)), given
    ask_for(kube, "all", "3(H100)", container(TELL, **ALLOCATION))
    pod = until_ended(kube, "all")["all"]
    assert said(node, "all") == [[",".join(uuids_of(kube, node, pod)), "1", "void"]]


def test_one_that_gflow_kube_did_not_place_is_not_started_and_says_so(node, kube, plugin):
    plugin("sim:2xH100", 2)
    node.pod("stranger", "true", {"nvidia.com/gpu": 1})
    pod = until(kube, lambda pods: "gflow" in state_of(pods["stranger"])[1].get("message", ""))["stranger"]
    assert ("no GPU was chosen for it: pods that use GPUs of this node need gflow-kube as their scheduler, or as an extender of it, and this one has 'none'"
            in state_of(pod)[1]["message"])
    delete(kube, "stranger")


def test_a_container_is_held_to_its_part_whatever_its_environment(node, kube, start, plugin, nvidia):
    plugin("nvml", 2, nvidia)
    start()
    asks = cuda(f"alloc {8 * GIB}", f"alloc {6 * GIB}", f"alloc {2 * GIB}", "info")
    bare, else_where = (f"env {how} GFLOW_FAKE_CUDA=$GFLOW_FAKE_CUDA {FAKE_LIBRARIES} sh -c \"{asks}\"" for how in ("-i", "GFLOW_SHARE_DIR=/nowhere"))
    ask_for(kube, "part", "7G,0.5", container(f"ls /dev | grep nvidia >&2; {asks}; {bare}; {else_where}", **ALLOCATION))
    pod = until_ended(kube, "part")["part"]
    assert pod["status"]["phase"] == "Succeeded", node.said()
    answers = said(node, "part")
    for first in (0, 6, 12):
        refused, given, again, (_, free, total) = answers[first + 2:first + 6]
        assert (refused, given[0], again) == (["2"], "0", ["2"])
        assert (int(total) - int(free), int(total)) == (6 * GIB, 7 * GIB)
    assert said(node, "part", stream="stderr") == [[f"nvidia{chosen(pod)[0][1]}"], ["nvidiactl"]]


def accounts(node):
    """Of containers with a part of a GPU: what their processes have of it."""
    found = sorted((node.run / PLUGIN / "containers").glob("*/account"))
    return [struct.unpack_from("<Q", one.read_bytes(), Account.DEVICES + 56)[0] for one in found]


def keys(node):
    """Of all containers of which something is left."""
    of_files = {one.name.removeprefix("gflow-allocation-").removesuffix(".json") for one in (node.run / "cdi").glob("gflow-*")}
    return of_files | {one.name for one in (node.run / PLUGIN / "containers").iterdir()}


class Holder:
    """A container that holds memory of its GPU, from when it runs until it is let go; then it starts again."""

    def __init__(self, node, kube, name="part", gpu="7G,0.5", much=6 * GIB):
        self._node, self._kube, self._name, self._much = node, kube, name, much
        self._gate = node.run / "driver/end"
        os.mkfifo(self._gate)
        asks = f"{{ printf 'init\\ncontext 0\\nalloc {much}\\n'; read x < /driver/end; }} | {FAKE}/cuda_client proc"
        ask_for(kube, name, gpu, container(f"{TELL}; {asks}", **ALLOCATION), restartPolicy="Always")

    def until_held(self, run):
        """What it was told of its GPU, once it holds its memory and has been started again so often."""
        def runs(pods):
            return any("running" in one["state"] and one["restartCount"] == run for one in pods[self._name]["status"].get("containerStatuses", ()))

        def told():
            return said(self._node, self._name, run=run)  # what a container says is in its log a little later

        until(self._kube, lambda pods: runs(pods) and self._much in accounts(self._node) and told())
        return told()[0]

    def end(self):
        self._gate.write_text("")


@pytest.mark.parametrize("away", ["nobody", "plugin", "kubelet", "server"])
def test_one_that_is_started_again_has_the_same_and_nothing_is_taken_whoever_is_away(node, kube, start, plugin, nvidia, away):
    made = plugin("nvml", 2, nvidia)
    start()
    holder = Holder(node, kube)
    first = holder.until_held(0)
    if away == "plugin":
        made.kill()
    elif away == "kubelet":
        node.stop("kubelet", signal.SIGKILL)
        node.start_kubelet()
        made.until_says("is offered to the kubelet", times=4)  # of both resources, or it refuses who starts anew
    elif away == "server":
        kube.stop_apiserver()
    holder.end()
    if away == "plugin":
        made.up()
    elif away == "server":
        made.until_says("what it had, as the API server does not answer")
        kube.up()
    assert holder.until_held(1) == first
    delete(kube, "part")


def test_what_is_left_of_containers_goes_with_them(node, kube, start, plugin, nvidia):
    made = plugin("nvml", 2, nvidia)
    start()
    ask_for(kube, "gone", "7G,0.5", container("true", **ALLOCATION))
    until_ended(kube, "gone")
    holder = Holder(node, kube, "stays")
    holder.until_held(0)
    assert len(keys(node)) == 2
    kube.ask("DELETE", f"{path_of('Pod', 'default')}/gone")
    until(kube, lambda pods: "gone" not in pods)
    made.kill()
    made.up()  # one that starts looks for what is left
    until(kube, lambda _: len(keys(node)) == 1)
    assert accounts(node) == [6 * GIB]
    holder.end()
    delete(kube, "stays")


def test_a_gpu_that_breaks_is_not_given_out_and_the_others_stay_who_they_are(node, kube, start, plugin):
    machine = node.run / "machine.yaml"
    machine.write_text(gpus("GPU-a", "GPU-b", "GPU-c"))
    made = plugin("sim:/run/machine.yaml", 3)
    start()
    for name in ("a", "b"):
        ask_for(kube, name, None, container(f"{TELL}; {LASTS}", **WHOLE))
        until_running(kube, name)
    assert [gpus_told(node, kube, name) for name in ("a", "b")] == ["GPU-a", "GPU-b"]
    machine.write_text(gpus("GPU-a", "GPU-b", "GPU-c", lost=["GPU-a"]))
    listed = devices_of(node.until(lambda node: any("trouble" in one for one in devices_of(node))))
    assert [(one["index"], one["uuid"], bool(one.get("trouble"))) for one in listed] == [(0, "GPU-a", True), (1, "GPU-b", False), (2, "GPU-c", False)]
    ask_for(kube, "next", None, container(f"{TELL}; {LASTS}", **WHOLE))
    until_running(kube, "next")
    ask_for(kube, "then", None, container(f"{TELL}; {LASTS}", **WHOLE))
    until_told(kube, "then", "Insufficient")
    delete(kube, "b")  # its kubelet takes one for what works, though another keeps what does not
    assert [gpus_told(node, kube, name) for name in ("next", "then")] == ["GPU-c", "GPU-b"]
    delete(kube, "a")
    # It is taken out, another comes, and the plugin is another one.
    machine.write_text(gpus("GPU-b", "GPU-c", "GPU-d"))
    made.kill()
    made.up()
    made.until_offered(4)
    listed = devices_of(node.until(lambda node: len(devices_of(node)) == 4))
    assert [(one["index"], one["uuid"]) for one in listed] == [(0, "GPU-a"), (1, "GPU-b"), (2, "GPU-c"), (3, "GPU-d")]
    ask_for(kube, "last", None, container(f"{TELL}; {LASTS}", **WHOLE))
    assert gpus_told(node, kube, "last") == "GPU-d"


def test_a_gpu_whose_driver_nobody_describes_is_told_with_what_helps(node, kube, start, plugin, nvidia):
    (node.etc_cdi / "nvidia.json").unlink()
    plugin("nvml", 2, nvidia)
    start()
    ask_for(kube, "pod", None, container("true", **WHOLE))
    pod = until(kube, lambda pods: "gflow" in state_of(pods["pod"])[1].get("message", ""))["pod"]
    assert "'nvidia-ctk cdi generate --output /var/run/cdi/nvidia.yaml' on the node makes one" in state_of(pod)[1]["message"]
    delete(kube, "pod")


def refused_by_kubelet(status):
    """A kubelet that starts again refuses pods, also those it had, while its plugins have not come back
    (UnexpectedAdmissionError). Where the container had ended well by then it drops that reason, as it is that of
    another phase, and leaves the phase Failed (generateAPIPodStatus of Kubernetes 1.36, kubelet_pods.go)."""
    if status["phase"] != "Failed":
        return False
    ended = [one["state"].get("terminated") for one in status.get("containerStatuses", [])]
    ended_well = bool(ended) and all(one and one["exitCode"] == 0 for one in ended)
    return status.get("reason", "") == "UnexpectedAdmissionError" or ("reason" not in status and ended_well)


def test_no_gpu_is_given_out_twice_while_all_are_killed(node, kube, start, plugin):
    made = plugin("sim:4xH100", 4)
    scheduler = start()
    names = []
    for i in range(12):
        for gpu in ("0.5", "8G,0.25", "1", "2"):
            names.append(f"pod-{len(names)}")
            ask_for(kube, names[-1], gpu, container(WORKS, **ALLOCATION))
    for i in range(1, 10):
        pods = until(kube, lambda pods: sum(one["status"].get("phase") in ENDED for one in pods.values()) >= 4 * i)
        if i % 3 == 0:
            made.kill()
            made.up()
        elif i % 3 == 1:
            node.stop("kubelet", signal.SIGKILL)
            node.start_kubelet()
        else:
            scheduler.end(signal.SIGKILL)
            end_lease(kube)
            scheduler = start()
    pods = until_ended(kube, *names)
    twice, uses = given_out_twice(node, names)
    assert twice == []
    refused = [name for name, one in pods.items() if refused_by_kubelet(one["status"])]
    assert {name: one["status"] for name, one in pods.items() if one["status"]["phase"] != "Succeeded" and name not in refused} == {}
    assert uses >= len(names) - len(refused) and len(refused) < len(names) / 2, refused
