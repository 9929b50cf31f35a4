# SPDX-License-Identifier: Apache-2.0
"""What device plugins are tested with does what it is for: a real kubelet on both sides, and containers that are processes."""

import json
import signal
import threading
from concurrent import futures
from pathlib import Path

import cdi
import protocols
import pytest
from kube_scheduler import until, until_in_force
from kubelet import delete, state_of, until_ended, until_running
from machine import PATIENCE

RESOURCE = "example.com/gpu"

DEVICE = {"name": "one", "containerEdits": {"env": ["A=1"]}}


def specification(**more):
    return {"cdiVersion": "0.6.0", "kind": RESOURCE, "devices": [DEVICE], **more}


@pytest.mark.parametrize(("said", "why"), [
    (specification(cdiVersion="0.9"), "no version of CDI"),
    (specification(kind="gpu"), "no kind of devices"),
    (specification(devices=[]), "no devices"),
    (specification(devices=[DEVICE, DEVICE]), "one of two"),
    (specification(devices=[{"name": "one", "containerEdits": {}}]), "changes nothing"),
    (specification(device=[]), "no field of a specification: device"),
    (specification(containerEdits={"env": ["A"]}), "no variable"),
    (specification(containerEdits={"mounts": [{"hostPath": "/a"}]}), "mount without containerPath, hostPath"),
    (specification(containerEdits={"hooks": []}), "have no hooks"),
    (specification(cdiVersion="0.4.0", containerEdits={"deviceNodes": [{"path": "/dev/a", "hostPath": "/dev/b"}]}), "at least version 0.5.0"),
    (specification(cdiVersion="0.5.0", annotations={}), "at least version 0.6.0"),
])
def test_a_specification_that_is_wrong_is_as_good_as_none(tmp_path, said, why):
    (tmp_path / "one.json").write_text(json.dumps(said))
    with pytest.raises(cdi.Unresolvable, match=f"unresolvable CDI devices {RESOURCE}=one; .*{why}"):
        cdi.resolve([f"{RESOURCE}=one"], [tmp_path])


def test_which_specification_a_device_is_of(tmp_path):
    names = [f"{RESOURCE}=one", f"{RESOURCE}=two"]
    for name, value in (("etc", 1), ("run", 2)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.json").write_text(json.dumps(specification(
            containerEdits={"mounts": [{"hostPath": "/h", "containerPath": "/c", "options": ["ro", "rbind"]}]},
            devices=[{"name": device, "containerEdits": {"env": [f"{device}={value}"]}} for device in ("one", "two")])))
    found = cdi.resolve(names, [tmp_path / "etc", tmp_path / "run"])
    assert found == cdi.Edits({"one": "2", "two": "2"}, {}, {"/c": {"source": "/h", "target": "/c", "options": ["ro", "rbind"]}})
    (tmp_path / "run/b.json").write_text(json.dumps(specification()))
    with pytest.raises(cdi.Unresolvable, match=f"{RESOURCE}=one is in another file, too"):
        cdi.resolve(names, [tmp_path / "etc", tmp_path / "run"])


def test_a_mount_that_is_not_said_to_be_of_a_folder(tmp_path):
    (tmp_path / "one.json").write_text(json.dumps(specification(containerEdits={"mounts": [{"hostPath": "/h", "containerPath": "/c"}]})))
    with pytest.raises(cdi.Unresolvable, match="/h is to be bound"):
        cdi.resolve([f"{RESOURCE}=one"], [tmp_path])


def is_ready(pod):
    return pod is not None and any((one["type"], one["status"]) == ("Ready", "True") for one in pod["status"].get("conditions", ()))


class Plugin:
    """Two devices. What a container gets of them is in a file that is written when it is known whose they are."""

    def __init__(self, node):
        self._node = node
        self.messages, self._services = protocols.load(node.protocols, "deviceplugin")
        self._of_resources = protocols.load(node.protocols, "podresources")
        self.writes, self.owners = True, []
        self.up()

    def up(self):
        """When kubelet listens: what was there before it, it takes away."""
        import grpc

        folder = self._node.kubelet / "device-plugins"
        self._over = threading.Event()
        with grpc.insecure_channel(f"unix:{folder}/kubelet.sock") as kubelet:
            grpc.channel_ready_future(kubelet).result(PATIENCE)
            self._server = grpc.server(futures.ThreadPoolExecutor(4))
            self._services.add_DevicePluginServicer_to_server(self, self._server)
            self._server.add_insecure_port(f"unix:{folder}/two.sock")
            self._server.start()
            self._services.RegistrationStub(kubelet).Register(self.messages.RegisterRequest(
                version="v1beta1", endpoint="two.sock", resource_name=RESOURCE, options=self.messages.DevicePluginOptions(pre_start_required=True)))
        self._node.until(lambda node: node["status"]["allocatable"].get(RESOURCE) == "2")

    def GetDevicePluginOptions(self, request, context):
        return self.messages.DevicePluginOptions(pre_start_required=True)

    def ListAndWatch(self, request, context):
        yield self.messages.ListAndWatchResponse(devices=[self.messages.Device(ID=name, health="Healthy") for name in ("one", "two")])
        self._over.wait()

    def GetPreferredAllocation(self, request, context):
        raise AssertionError("nobody said that it may be asked")

    def Allocate(self, request, context):
        return self.messages.AllocateResponse(container_responses=[
            {"envs": {"ALLOCATED": ",".join(sorted(one.devices_ids))}, "cdi_devices": [{"name": f"{RESOURCE}={name}"} for name in one.devices_ids],
             "devices": [{"container_path": "/dev/of-all", "host_path": "/dev/zero", "permissions": "rw"}]}
            for one in request.container_requests])

    def PreStartContainer(self, request, context):
        self.owners += self.owners_of(*request.devices_ids)
        if self.writes:
            for device in request.devices_ids:
                self._write(device)
        return self.messages.PreStartContainerResponse()

    def owners_of(self, *devices):
        """The pods with a container that has these, as kubelet tells: each device in an entry of its own."""
        import grpc

        messages, services = self._of_resources
        with grpc.insecure_channel(f"unix:{self._node.kubelet}/pod-resources/kubelet.sock") as channel:
            told = services.PodResourcesListerStub(channel).List(messages.ListPodResourcesRequest())
        return [pod.name for pod in told.pod_resources for container in pod.containers
                if {name for has in container.devices if has.resource_name == RESOURCE for name in has.device_ids} == set(devices)]

    def _write(self, device):
        shared = self._node.run / "shared"
        shared.mkdir(exist_ok=True)
        (shared / device).write_text(f"of {device}\n")
        (self._node.run / f"cdi/{device}.json").write_text(json.dumps({
            "cdiVersion": "0.6.0", "kind": RESOURCE,
            "containerEdits": {"mounts": [{"hostPath": "/run/shared", "containerPath": "/shared", "options": ["ro", "noexec", "rbind"]}]},
            "devices": [{"name": device, "containerEdits": {
                "env": [f"DEVICE_{device}={self.owners[-1]}"], "deviceNodes": [{"path": f"/dev/{device}", "hostPath": "/dev/zero"}]}}]}))

    def close(self):
        self._over.set()
        self._server.stop(None).wait()


@pytest.fixture
def plugin(node):
    made = Plugin(node)
    yield made
    made.close()


def log_of(node, pod):
    """What its container said: when, where, whether it is a whole line, and what."""
    [log] = (node.root / "log/pods").glob(f"default_{pod}_*/main/0.log")
    return [line.split(" ", 3)[1:] for line in log.read_text().splitlines()]


def test_what_becomes_of_a_pod_is_what_its_process_did(node, kube):
    node.pod("good", "echo as $(id -u), process $$; echo aside >&2; echo $(ls /dev | tr '\\n' ' ') >/dev/termination-log; touch /etc/of-container")
    node.pod("bad", "exit 3")
    pods = until_ended(kube, "good", "bad")
    assert pods["good"]["status"]["phase"] == "Succeeded"
    assert state_of(pods["good"])[1]["message"] == "fd full null random shm termination-log urandom zero\n"
    assert sorted(log_of(node, "good")) == [["stderr", "F", "aside"], ["stdout", "F", "as 0, process 1"]]
    assert not Path("/etc/of-container").exists()
    assert pods["bad"]["status"]["phase"] == "Failed"
    assert state_of(pods["bad"])[1]["exitCode"] == 3


def test_a_container_is_probed_asked_to_end_and_killed(node, kube):
    node.pod("asked", "trap 'exit 5' TERM; touch /tmp/is-up; while :; do sleep 0.1; done",
             readinessProbe={"exec": {"command": ["test", "-e", "/tmp/is-up"]}, "periodSeconds": 1})
    node.pod("deaf", "exec sleep 1000")  # to the first process of a PID namespace no signal comes that it does not wait for
    until(kube, lambda pods: all(is_ready(pods.get(name)) for name in ("asked", "deaf")))
    assert not Path("/tmp/is-up").exists()
    assert delete(kube, "asked")[1]["exitCode"] == 5
    assert delete(kube, "deaf")[1]["exitCode"] == 137


def test_a_container_gets_what_the_device_plugin_said_of_its_pod(node, kube, plugin):
    node.pod("job", "echo $ALLOCATED $DEVICE_one $DEVICE_two; cat /shared/*; cat /dev/of-all /dev/one | head -c 4 | wc -c; test -c /dev/two && echo two; findmnt -no OPTIONS /shared", {RESOURCE: 2})
    until_ended(kube, "job")
    assert plugin.owners == ["job"]
    *said, options = [text for _, _, text in log_of(node, "job")]
    assert said == ["one,two job job", "of one", "of two", "4", "two"]
    assert options.startswith("ro,noexec,")


def test_a_container_is_not_made_where_nobody_says_what_its_device_is(node, kube, plugin):
    plugin.writes = False
    node.pod("job", "true", {RESOURCE: 1})
    pod = until(kube, lambda pods: "CDI" in state_of(pods["job"])[1].get("message", ""))["job"]
    state, more = state_of(pod)
    assert (state, more["reason"]) == ("waiting", "CreateContainerError")
    assert f"unresolvable CDI devices {RESOURCE}=" in more["message"]
    delete(kube, "job")


def test_kubelet_that_was_killed_finds_its_pods_and_who_has_which_device(node, kube, plugin):
    node.pod("job", "trap 'exit 5' TERM; while :; do sleep 0.1; done", {RESOURCE: 2})
    before = until_running(kube, "job")
    node.stop("kubelet", signal.SIGKILL)
    node.start_kubelet()
    plugin.close()
    plugin.up()
    until_in_force(lambda: plugin.owners_of("one", "two") == ["job"])  # it answers before it has looked at its pods
    node.pod("after", "true")
    after = until_ended(kube, "after")["job"]
    assert state_of(after) == state_of(before)
    assert delete(kube, "job")[1]["exitCode"] == 5
    node.pod("next", "true", {RESOURCE: 2})
    assert until_ended(kube, "next")["next"]["status"]["phase"] == "Succeeded"
