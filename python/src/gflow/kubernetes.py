# SPDX-License-Identifier: Apache-2.0
"""A Kubernetes cluster as the scheduler, the memory guard and the resource manager want it (docs/python.md):
`pip install 'gflow[kubernetes]'`."""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, NoReturn, Optional, Union

from gflow._kube_api import KubernetesApi, is_known_not_done, path_of, understood
from gflow._kube_leases import Allocation, Leases, as_pods
from gflow._kube_objects import node_of, obstacle, pod_of
from gflow._kube_taking import PodHold, Taking
from gflow.errors import ConfigurationError, GflowError, NoGpus, NotFound, OptionError, WrongState
from gflow.submission import is_number, whole_of

__all__ = ["GPU_RESOURCES", "Allocation", "KubernetesClient"]

logger = logging.getLogger("gpu_resource_manager")

GPU_RESOURCES = ("nvidia.com/gpu", "amd.com/gpu", "intel.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe", "huawei.com/npu")
"""What pods ask for to get a GPU, by vendor."""
_NOT_ENDED = "status.phase!=Succeeded,status.phase!=Failed"
_ENDED = ("Succeeded", "Failed")
_MOST_SECONDS = 86400
_MOST_TRIES = 20
_NAME = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")
_NODES = path_of("api", "v1", "nodes")
_ALL_PODS = path_of("api", "v1", "pods")


def _name_of(value: object, what: str) -> str:
    """Errors: OptionError of what names nothing."""
    if not isinstance(value, str) or not _NAME.fullmatch(value) or ".." in value:
        raise OptionError(f"{what}={value!r} is not a name of Kubernetes: small letters, digits, '-' and '.'")
    return value


def _names_of(values: object, what: str, instead: str) -> frozenset[str]:
    """Errors: OptionError."""
    if isinstance(values, str):
        raise OptionError(f"{what}={values!r} is one text: {what}=[{values!r}]")
    names = list(values) if isinstance(values, Iterable) else [values]
    if not all(isinstance(one, str) for one in names):
        raise OptionError(f"{what}={values!r}: {instead}")
    return frozenset(str(one) for one in names)


class KubernetesClient:
    """The `k8s_client` of GPUScheduler and GPUMemoryGuard, and a client of GPUResourceManager. It may be used by several threads.

    context: of the kubeconfig file; without one its current context, or the service account of the pod this runs in, where there is no file.
    kubeconfig: the file; without one that of KUBECONFIG, or ~/.kube/config.
    namespace: where the Leases are that say which GPUs programs hold; packaging/kubernetes/rbac.yaml makes it.
    timeout: seconds for each request: for all tries of it, what is waited for between them, and a program for credentials.
    page_size: how many nodes, pods or Leases a request asks for.
    lease_seconds: how long GPUs that GPUResourceManager took are held without being renewed, as by a program that was killed.
    gpu_resources: names of resources that are whole GPUs.
    tolerated: keys of taints that do not keep pods away; those named as a GPU resource never do.

    Errors: ConfigurationError where no cluster is named, or the package of Kubernetes is not installed. Of all calls: Unreachable, ServerTimeout,
    ConnectionLost; Unauthenticated, PermissionDenied and other kinds of Problem, with what the API server said."""

    def __init__(self, context: Optional[str] = None, *, kubeconfig: Union[str, os.PathLike[str], None] = None, namespace: str = "gflow",
                 timeout: float = 30.0, page_size: int = 500, lease_seconds: int = 60, gpu_resources: Iterable[str] = GPU_RESOURCES,
                 tolerated: Iterable[str] = ()) -> None:
        if not is_number(timeout) or not 0 < timeout <= _MOST_SECONDS:
            raise OptionError(f"timeout={timeout!r} is not a time in seconds: above 0, and at most a day")
        for name, value, most in (("page_size", page_size, 1 << 31), ("lease_seconds", lease_seconds, _MOST_SECONDS * 365)):
            if not 1 <= whole_of(value, name) <= most:
                raise OptionError(f"{name}={value}: at least 1, and at most {most}")
        self.namespace = _name_of(namespace, "namespace")
        self.lease_seconds = int(lease_seconds)
        self._gpu_resources = _names_of(gpu_resources, "gpu_resources", "names of resources, as in GPU_RESOURCES")
        self._tolerated = _names_of(tolerated, "tolerated", "keys of taints")
        self._user = ""
        self._api = KubernetesApi(context, kubeconfig, float(timeout), int(page_size))
        self._leases = Leases(self._api, namespace)
        self._taking = Taking(self, self._leases)

    def __enter__(self) -> KubernetesClient:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a KubernetesClient has connections and credentials, which do not go to other processes: make one there")

    def close(self) -> None:
        """Its connections. What is held with it stays so until its lease ends."""
        self._api.close()

    @property
    def server(self) -> str:
        """The URL of the API server."""
        return self._api.host

    def get_nodes(self) -> list[dict[str, Any]]:
        """`name`, `ready`, `schedulable`, `labels`, `gpu_info` (by resource: `allocatable`), `cpu_allocatable`, `used_cpu`, `memory_allocatable`,
        `used_memory` (GB). A node is not schedulable where it is cordoned, or has a taint that is not tolerated."""
        return self._nodes(self._pods())

    def _nodes(self, pods: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        by_node: dict[Optional[str], list[Mapping[str, Any]]] = {}
        for pod in pods:
            by_node.setdefault(pod["node_name"], []).append(pod)

        found = self._api.listed(_NODES)
        return understood(f"GET {_NODES}", lambda: [
            node_of(one, self._gpu_resources, self._tolerated, by_node.get(one["metadata"]["name"], ())) for one in found])

    def get_pods(self) -> list[dict[str, Any]]:
        """Those that have not ended: `name`, `namespace`, `labels`, `node_name`, `phase`, `gpu_resources`, `cpu`, `memory` (GB). What programs hold
        with Leases and have no pods for is there, too, with the `phase` "Leased"."""
        return self._held(self._pods())

    def _held(self, pods: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return pods + [one for holding in self._leases.all() for one in as_pods(holding, pods, self._gpu_resources)]

    def _look(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Both, of one list of pods."""
        pods = self._pods()
        return self._nodes(pods), self._held(pods)

    def _pods(self, node: Optional[str] = None) -> list[dict[str, Any]]:
        """All, or those on a node."""
        which = _NOT_ENDED if node is None else f"{_NOT_ENDED},spec.nodeName={node}"
        found = self._api.listed(_ALL_PODS, fieldSelector=which)
        return understood(f"GET {_ALL_PODS}", lambda: [pod_of(one, self._gpu_resources) for one in found])

    def _node_document(self, name: str) -> Mapping[str, Any]:
        """Errors: NoGpus of a node that is not there."""
        told = self._api.ask("GET", f"{_NODES}/{name}", may_be_missing=True).document
        if told is None:
            raise NoGpus(f"there is no node {name}")
        return told  # type: ignore[no-any-return]

    def _check_is_open(self, name: str, document: Mapping[str, Any]) -> None:
        """Errors: NoGpus of a node that takes no pods."""
        node = understood(f"GET {_NODES}/{name}", lambda: node_of(document, self._gpu_resources, self._tolerated, ()))
        if not node["ready"] or not node["schedulable"]:
            raise NoGpus(f"node {name} takes no pods now: it is not ready, cordoned, or has a taint")

    def _check_fits(self, pod: Mapping[str, Any], node: Mapping[str, Any], here: list[dict[str, Any]]) -> None:
        """Errors: NoGpus of a node that the pod cannot be on, whatever GPUs are free there."""
        tolerated = {*self._tolerated, *self._gpu_resources}
        why = understood(f"GET {_NODES}", lambda: obstacle(pod, node, tolerated, here))
        if why is not None:
            raise NoGpus(f"node {node['metadata']['name']}: {why}")

    def _gpus_of(self, document: Mapping[str, Any]) -> dict[str, int]:
        """What a node has, by resource."""
        node = understood(f"GET {_NODES}", lambda: node_of(document, self._gpu_resources, self._tolerated, ()))
        return {resource: int(told["allocatable"]) for resource, told in node["gpu_info"].items()}

    def label_node(self, names: Sequence[str], labels: Mapping[str, Optional[str]]) -> bool:
        """Sets labels of nodes; one of None is taken away. Labels without a domain are put under gflow/. Errors: OptionError of names that are
        one text."""
        named = {name if "/" in name else f"gflow/{name}": value for name, value in labels.items()}
        if isinstance(names, str):
            raise OptionError(f"names={names!r} is one text: names=[{names!r}]")
        nodes = [_name_of(name, "names") for name in names]
        for name in nodes:
            self._api.ask("PATCH", f"{_NODES}/{name}", {"metadata": {"labels": named}})
        return True

    def _add_to_label(self, node: str, name: str, count: int) -> None:
        """A label that counts, also for other programs that count with it at once; of none it is taken away. Errors: GflowError."""
        path = f"{_NODES}/{_name_of(node, 'node_name')}"
        for turn in range(_MOST_TRIES):
            metadata = self._api.ask("GET", path).document["metadata"]
            written = str((metadata.get("labels") or {}).get(name, ""))
            now = max((int(written) if written.isascii() and written.isdecimal() else 0) + count, 0)
            body = {"metadata": {"resourceVersion": metadata["resourceVersion"], "labels": {name: str(now) if now else None}}}
            try:
                self._api.ask("PATCH", path, body)
                return
            except WrongState:  # the node was changed meanwhile, as it is all the time
                if turn + 1 == _MOST_TRIES:
                    raise

    def bind_pod(self, namespace: str, name: str, node: str) -> str:
        """Puts a pod that waits on a node, if what it asks for is free there. The node it is on then: another one where somebody else was
        faster. Looked at are GPUs, whether the node is ready, cordoned and tainted, the pod's nodeSelector, CPU, memory and how many pods it takes.

        Errors: NoGpus where others have them by now, or the pod cannot be there; NotFound of a pod that is not there; WrongState of one that has
        ended. Where it is not known whether it was put there (ServerTimeout, ConnectionLost, Unavailable) its GPUs stay held until that cannot
        happen any more."""
        path = path_of("api", "v1", "namespaces", _name_of(namespace, "namespace"), "pods", _name_of(name, "name"))
        _name_of(node, "node")
        document = self._api.ask("GET", path).document
        if where := self._where(path, document):
            return where
        pod = understood(f"GET {path}", lambda: pod_of(document, self._gpu_resources))
        if pod["phase"] in _ENDED:
            raise WrongState({"status": 409, "code": "wrong_state", "detail": f"pod {namespace}/{name} has ended: {pod['phase']}"}, f"bind {path}")
        hold = self._taking.for_pod(document, pod, node)
        try:
            where = self._bound(path, document["metadata"], node, hold)
        except GflowError as error:
            if is_known_not_done(error):
                self._end(hold)
            raise
        self._end(hold)
        return where

    def _where(self, path: str, document: Mapping[str, Any]) -> str:
        """The node a pod is on, or ""."""
        return understood(f"GET {path}", lambda: str(document["spec"].get("nodeName") or ""))

    def _bound(self, path: str, metadata: Mapping[str, Any], node: str, hold: PodHold) -> str:
        """Where it is then. Errors: those of which is_known_not_done() are of a pod that this will not put anywhere."""
        try:
            if time.monotonic() >= hold.until:
                raise NoGpus(f"node {node}: what was to be looked at took too long; try again")
            with self._api.within(hold.until - time.monotonic()):
                self._bind(metadata, node)
            return node
        except GflowError as error:
            if is_known_not_done(error) and not isinstance(error, WrongState):
                raise
            try:
                now = self._api.ask("GET", path).document
            except NotFound:
                raise WrongState(_gone(metadata), f"bind {path}") from error
            except GflowError:
                raise error from None
            if now.get("metadata", {}).get("uid") != metadata["uid"]:
                raise (error if isinstance(error, WrongState) else WrongState(_gone(metadata), f"bind {path}")) from None
            where = self._where(path, now)  # where somebody put it, or this did, unanswered
            if not where:
                raise
            return where

    def _end(self, hold: PodHold) -> None:
        try:
            self._taking.end(hold)
        except GflowError as error:  # it ends by itself
            logger.warning("节点 %s: 绑定时占用的GPU稍后自动释放: %s", hold.node, error)

    def _bind(self, metadata: Mapping[str, Any], node: str) -> None:
        """This very pod, and not one of its name that was made meanwhile."""
        named = {"name": metadata["name"], "namespace": metadata["namespace"], "uid": metadata["uid"]}
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": named, "target": target}
        self._api.ask("POST", path_of("api", "v1", "namespaces", metadata["namespace"], "pods", metadata["name"], "binding"), body)

    def user(self) -> str:
        """Who this is, as the API server has it. Errors: ConfigurationError of one that is older than Kubernetes 1.28."""
        path = path_of("apis", "authentication.k8s.io", "v1", "selfsubjectreviews")
        try:
            told = self._api.ask("POST", path, {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}).document
        except NotFound as error:
            why = "it is older than 1.28, which gflow needs, or no API server"
            raise ConfigurationError(f"Kubernetes at {self.server} has no SelfSubjectReview: {why}") from error
        self._user = understood(f"POST {path}", lambda: str(told["status"]["userInfo"]["username"]))
        return self._user

    def _me(self) -> str:
        """The same, asked once."""
        return self._user or self.user()

    def give_back(self, allocation: Allocation) -> bool:
        """Gives back what a program holds, also another's, which hears that it has lost it: one of allocations(). False where it is not held any
        more."""
        return self._taking.give_back(allocation)

    def allocations(self) -> list[Allocation]:
        """What programs hold now: `id`, `node`, `resource`, `gpus`, `holder` (machine and process), `user`."""
        return [one for holding in self._leases.all() for one in holding.allocations]


def _gone(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {"status": 409, "code": "wrong_state", "detail": f"pod {metadata['namespace']}/{metadata['name']} was deleted meanwhile"}
