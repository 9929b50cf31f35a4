# SPDX-License-Identifier: Apache-2.0
"""A container runtime for a kubelet in tests: container_runtime.py FOLDER PROTOCOLS.

It serves CRI at FOLDER/runtime.sock, says so by a line, and ends, its containers with it, when it is killed. A container is a process
in a mount and a PID namespace of its own, over the host's own files (container_process.py). It has what ContainerConfig says of command,
environment, mounts, devices, CDI devices, user and log. There are no images (any name is that of the host's files), no networks but the
host's, no control groups, no limits and no capabilities taken, and nobody can attach to one.
"""

import dataclasses
import itertools
import sys
import time
from concurrent import futures
from pathlib import Path

import cdi
import grpc
import protocols
from container import Container

FOLDER = Path(sys.argv[1])
SOCKET = FOLDER / "runtime.sock"
CDI = ("/etc/cdi", "/var/run/cdi")  # a file of the last is preferred
IMAGE = "sha256:" + "0" * 64
messages, services = protocols.load(Path(sys.argv[2]), "runtime")


@dataclasses.dataclass
class Sandbox:
    id: str
    config: object
    made: int
    state: int = messages.SANDBOX_READY

    @property
    def status(self):
        """What PodSandbox and PodSandboxStatus have in common."""
        return {"id": self.id, "metadata": self.config.metadata, "state": self.state, "created_at": self.made,
                "labels": self.config.labels, "annotations": self.config.annotations}


def state_of(container):
    if container.is_over:
        return messages.CONTAINER_EXITED
    return messages.CONTAINER_RUNNING if container.is_running else messages.CONTAINER_CREATED


def status_of(container):
    """What Container and ContainerStatus have in common."""
    return {"id": container.id, "metadata": container.config.metadata, "state": state_of(container), "created_at": container.made,
            "image": container.config.image, "image_ref": IMAGE, "image_id": IMAGE,
            "labels": container.config.labels, "annotations": container.config.annotations}


def selects(labels, of):
    return all(of.get(name) == value for name, value in labels.items())


class Runtime(services.RuntimeServiceServicer):
    def __init__(self):
        self._sandboxes, self._containers = {}, {}
        self._numbers = itertools.count(1)

    def Version(self, request, context):
        return messages.VersionResponse(version="0.1.0", runtime_name="processes", runtime_version="1.0.0", runtime_api_version="v1")

    def Status(self, request, context):
        conditions = [messages.RuntimeCondition(type=name, status=True) for name in ("RuntimeReady", "NetworkReady")]
        return messages.StatusResponse(status=messages.RuntimeStatus(conditions=conditions), runtime_handlers=[messages.RuntimeHandler()])

    def RuntimeConfig(self, request, context):
        return messages.RuntimeConfigResponse(linux=messages.LinuxRuntimeConfiguration(cgroup_driver=messages.CGROUPFS))

    def UpdateRuntimeConfig(self, request, context):
        return messages.UpdateRuntimeConfigResponse()

    def _identity(self):
        return f"{next(self._numbers):064x}"

    def RunPodSandbox(self, request, context):
        made = Sandbox(self._identity(), request.config, time.time_ns())
        self._sandboxes[made.id] = made
        return messages.RunPodSandboxResponse(pod_sandbox_id=made.id)

    def _of_sandbox(self, name):
        return [one for one in list(self._containers.values()) if one.sandbox == name]

    def StopPodSandbox(self, request, context):
        for container in self._of_sandbox(request.pod_sandbox_id):
            container.stop()
        if request.pod_sandbox_id in self._sandboxes:
            self._sandboxes[request.pod_sandbox_id].state = messages.SANDBOX_NOTREADY
        return messages.StopPodSandboxResponse()

    def RemovePodSandbox(self, request, context):
        for container in self._of_sandbox(request.pod_sandbox_id):
            self._remove(container.id)
        self._sandboxes.pop(request.pod_sandbox_id, None)
        return messages.RemovePodSandboxResponse()

    def PodSandboxStatus(self, request, context):
        found = self._sandboxes.get(request.pod_sandbox_id) or context.abort(grpc.StatusCode.NOT_FOUND, f"no sandbox {request.pod_sandbox_id}")
        status = messages.PodSandboxStatus(**found.status, network=messages.PodSandboxNetworkStatus(ip="127.0.0.1"))
        status.linux.namespaces.options.CopyFrom(found.config.linux.security_context.namespace_options)
        return messages.PodSandboxStatusResponse(status=status)

    def ListPodSandbox(self, request, context):
        wanted = request.filter
        found = [one for one in list(self._sandboxes.values())
                 if wanted.id in ("", one.id) and (not wanted.HasField("state") or wanted.state.state == one.state)
                 and selects(wanted.label_selector, one.config.labels)]
        return messages.ListPodSandboxResponse(items=[messages.PodSandbox(**one.status) for one in found])

    def CreateContainer(self, request, context):
        config, name = request.config, self._identity()
        try:
            edits = cdi.resolve([one.name for one in config.CDI_devices], CDI)
            edits.nodes = {one.container_path: cdi.device_node(one.container_path, one.host_path) for one in config.devices} | edits.nodes
        except (OSError, cdi.Unresolvable) as error:
            context.abort(grpc.StatusCode.UNKNOWN, str(error))
        if not config.command and not config.args:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "no command specified")
        log = Path(request.sandbox_config.log_directory) / config.log_path
        self._containers[name] = Container(FOLDER / name, request.pod_sandbox_id, config, log, edits)
        return messages.CreateContainerResponse(container_id=name)

    def _found(self, name, context):
        return self._containers.get(name) or context.abort(grpc.StatusCode.NOT_FOUND, f"no container {name}")

    def StartContainer(self, request, context):
        try:
            self._found(request.container_id, context).start()
        except OSError as error:
            context.abort(grpc.StatusCode.UNKNOWN, str(error))
        return messages.StartContainerResponse()

    def StopContainer(self, request, context):
        if request.container_id in self._containers:
            self._containers[request.container_id].stop(request.timeout)
        return messages.StopContainerResponse()

    def _remove(self, name):
        container = self._containers.pop(name, None)
        if container is not None:
            container.remove()

    def RemoveContainer(self, request, context):
        self._remove(request.container_id)
        return messages.RemoveContainerResponse()

    def ListContainers(self, request, context):
        wanted = request.filter
        found = [one for one in list(self._containers.values())
                 if wanted.id in ("", one.id) and (not wanted.HasField("state") or wanted.state.state == state_of(one))
                 and wanted.pod_sandbox_id in ("", one.sandbox) and selects(wanted.label_selector, one.config.labels)]
        return messages.ListContainersResponse(containers=[messages.Container(pod_sandbox_id=one.sandbox, **status_of(one)) for one in found])

    def ContainerStatus(self, request, context):
        one = self._found(request.container_id, context)
        status = messages.ContainerStatus(
            **status_of(one), started_at=one.started, finished_at=one.finished, exit_code=one.exit_code, log_path=str(one.log), mounts=one.config.mounts,
            reason="" if not one.is_over else "Completed" if one.exit_code == 0 else "Error")
        return messages.ContainerStatusResponse(status=status)

    def ExecSync(self, request, context):
        done = self._found(request.container_id, context).run(request.cmd, request.timeout)
        if done is None:
            context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, f"longer than {request.timeout} s")
        return messages.ExecSyncResponse(stdout=done.stdout, stderr=done.stderr, exit_code=done.returncode)

    def ReopenContainerLog(self, request, context):
        self._found(request.container_id, context).open_log()
        return messages.ReopenContainerLogResponse()

    def UpdateContainerResources(self, request, context):
        return messages.UpdateContainerResourcesResponse()

    def ListContainerStats(self, request, context):
        return messages.ListContainerStatsResponse()  # nobody counts

    def ListPodSandboxStats(self, request, context):
        return messages.ListPodSandboxStatsResponse()


class Images(services.ImageServiceServicer):
    """One, of any name."""

    def ImageStatus(self, request, context):
        return messages.ImageStatusResponse(image=messages.Image(id=IMAGE, repo_tags=[request.image.image], size=1, spec=request.image, pinned=True))

    def ListImages(self, request, context):
        return messages.ListImagesResponse()

    def PullImage(self, request, context):
        return messages.PullImageResponse(image_ref=IMAGE)

    def RemoveImage(self, request, context):
        return messages.RemoveImageResponse()

    def ImageFsInfo(self, request, context):
        used = messages.FilesystemUsage(
            timestamp=time.time_ns(), fs_id=messages.FilesystemIdentifier(mountpoint=str(FOLDER)),
            used_bytes=messages.UInt64Value(value=0), inodes_used=messages.UInt64Value(value=0))
        return messages.ImageFsInfoResponse(image_filesystems=[used], container_filesystems=[used])


def main():
    server = grpc.server(futures.ThreadPoolExecutor(16))  # its threads stay: a container ends with that by which it was started
    services.add_RuntimeServiceServicer_to_server(Runtime(), server)
    services.add_ImageServiceServicer_to_server(Images(), server)
    server.add_insecure_port(f"unix:{SOCKET}")
    server.start()
    print("ready", flush=True)
    server.wait_for_termination()


main()
