# SPDX-License-Identifier: Apache-2.0
"""Nodes and pods of Kubernetes as the dictionaries of docs/python.md."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Optional

from gflow._kube_config import imported

LEASE_LABEL = "gflow/lease"
"""A pod with it uses GPUs of that allocation, and holds no others."""
_GIB = 1 << 30
_ROUNDING = 1e-9  # of sums of fractions

Amounts = dict[str, float]  # by resource


@functools.lru_cache(maxsize=4096)
def _quantity(written: str) -> float:
    """0.5 of "500m"."""
    return float(imported().utils.quantity.parse_quantity(written))


def _amounts(written: Any) -> Amounts:
    return {str(name): _quantity(str(value)) for name, value in (written or {}).items()}


def _requests(container: Mapping[str, Any]) -> Amounts:
    """What is not requested is what it is limited to, as the API server has it."""
    resources = container.get("resources") or {}
    return _amounts({**(resources.get("limits") or {}), **(resources.get("requests") or {})})


def _sum(one: Amounts, other: Amounts) -> Amounts:
    return {name: one.get(name, 0) + other.get(name, 0) for name in {*one, *other}}


def _most(one: Amounts, other: Amounts) -> Amounts:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in {*one, *other}}


def held_by(spec: Mapping[str, Any]) -> Amounts:
    """What a pod holds of its node, as kube-scheduler counts it: its containers together with those that run beside them, or the
    largest of what comes before; and what the pod says of itself stands for that."""
    beside: Amounts = {}
    first: Amounts = {}
    for container in spec.get("initContainers") or ():
        needs = _requests(container)
        if container.get("restartPolicy") == "Always":
            beside = _sum(beside, needs)
            first = _most(first, beside)
        else:
            first = _most(first, _sum(beside, needs))
    running = beside
    for container in spec.get("containers") or ():
        running = _sum(running, _requests(container))
    return _sum({**_most(first, running), **_requests(spec)}, _amounts(spec.get("overhead")))


def pod_of(document: Mapping[str, Any], gpu_resources: Collection[str]) -> dict[str, Any]:
    spec, metadata = document["spec"], document["metadata"]
    held = held_by(spec)
    return {
        "name": metadata["name"],
        "namespace": metadata["namespace"],
        "labels": metadata.get("labels") or {},
        "node_name": spec.get("nodeName"),
        "phase": document.get("status", {}).get("phase"),
        "gpu_resources": {name: int(count) for name, count in held.items() if name in gpu_resources and count},
        "cpu": held.get("cpu", 0.0),
        "memory": held.get("memory", 0.0) / _GIB,
    }


def _is_ready(status: Mapping[str, Any]) -> bool:
    return any(one["type"] == "Ready" and one["status"] == "True" for one in status.get("conditions") or ())


def _taints(spec: Mapping[str, Any], tolerated: Collection[str]) -> list[Mapping[str, Any]]:
    """Those that keep pods away."""
    return [one for one in spec.get("taints") or () if one["effect"] in ("NoSchedule", "NoExecute") and one["key"] not in tolerated]


def _takes_pods(spec: Mapping[str, Any], tolerated: Collection[str]) -> bool:
    return not spec.get("unschedulable") and not _taints(spec, tolerated)


def _tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return toleration.get("key") in (None, "", taint["key"])
    return (toleration.get("key"), toleration.get("value") or "") == (taint["key"], taint.get("value") or "")


def obstacle(pod: Mapping[str, Any], node: Mapping[str, Any], tolerated: Collection[str], here: Collection[Mapping[str, Any]]) -> Optional[str]:
    """Why a pod cannot be on a node, GPUs aside: both as documents, and the pods that are there. None where nothing that is looked at keeps it
    away: whether the node is ready and cordoned, taints, the pod's nodeSelector, and what is left there of CPU, memory and pods."""
    spec, of_node, status = pod["spec"], node.get("spec") or {}, node.get("status") or {}
    labels = node["metadata"].get("labels") or {}
    tolerations = spec.get("tolerations") or ()
    if not _is_ready(status):
        return "it is not ready"
    if of_node.get("unschedulable"):
        return "it is cordoned"
    taint = next((one for one in _taints(of_node, tolerated) if not any(_tolerates(it, one) for it in tolerations)), None)
    if taint is not None:
        return f"it has the taint {taint['key']}, which the pod does not tolerate"
    for name, value in (spec.get("nodeSelector") or {}).items():
        if labels.get(name) != value:
            return f"it has not the label {name}={value} of the pod's nodeSelector"
    has, needs = _amounts(status.get("allocatable")), held_by(spec)
    used = {"cpu": sum(one["cpu"] for one in here), "memory": sum(one["memory"] for one in here) * _GIB, "pods": float(len(here))}
    for name, amount in {"cpu": needs.get("cpu", 0.0), "memory": needs.get("memory", 0.0), "pods": 1.0}.items():
        if amount and name in has and used[name] + amount > has[name] * (1 + _ROUNDING):
            return f"it has not so much {name} left: {used[name]:g} of {has[name]:g} are in use, and the pod asks for {amount:g}"
    return None


def node_of(document: Mapping[str, Any], gpu_resources: Collection[str], tolerated: Collection[str],
            pods: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """pods: those on it."""
    spec, status, metadata = document.get("spec") or {}, document.get("status") or {}, document["metadata"]
    has = _amounts(status.get("allocatable"))
    here = list(pods)
    return {
        "name": metadata["name"],
        "ready": _is_ready(status),
        "schedulable": _takes_pods(spec, {*tolerated, *gpu_resources}),
        "labels": metadata.get("labels") or {},
        "gpu_info": {name: {"allocatable": int(count)} for name, count in has.items() if name in gpu_resources and count},
        "cpu_allocatable": has.get("cpu", 0.0),
        "used_cpu": sum(one["cpu"] for one in here),
        "memory_allocatable": has.get("memory", 0.0) / _GIB,
        "used_memory": sum(one["memory"] for one in here),
    }
