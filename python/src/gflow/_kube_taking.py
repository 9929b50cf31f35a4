# SPDX-License-Identifier: Apache-2.0
"""GPUs of a node are taken and given back: counted against what is allocatable there, less pods, less what programs hold."""

from __future__ import annotations

import contextlib
import math
import os
import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gflow._kube_leases import Allocation, Holding, Leases, Moment, as_pods, renewed, taken_under
from gflow._kube_objects import LEASE_LABEL
from gflow.errors import NoGpus

if TYPE_CHECKING:
    from gflow.kubernetes import KubernetesClient

_NUMBERS = 1 << 53  # of allocations: JSON has them everywhere
_LATE_SECONDS = 60  # after which an API server ends what it was asked, unless told otherwise


@dataclass(frozen=True)
class PodHold:
    """What a pod needs, held while it is put on its node."""

    node: str
    ids: frozenset[int]
    until: float
    """By time.monotonic(): when the request that puts it there has to have ended, so that it is not done after this has."""


class Taking:
    def __init__(self, cluster: KubernetesClient, leases: Leases) -> None:
        self._cluster = cluster
        self._leases = leases

    def _new(self, node: str, resource: str, gpus: int, ttl: int, *, pod: str = "", under: int = 0) -> Allocation:
        holder = f"{socket.gethostname()}/{os.getpid()}"
        return Allocation(1 + secrets.randbelow(_NUMBERS - 1), node, resource, gpus, holder, self._cluster._me(), 0, ttl, pod, under)

    def take(self, node: str, resource: str, gpus: int, ttl: int) -> Allocation:
        """ttl: seconds, after which they are free again where it is not renewed. Errors: NoGpus, and others of GflowError."""
        taken = self._new(node, resource, gpus, ttl)

        def add(holding: Holding, at: Moment) -> list[Allocation]:
            if any(one.id == taken.id for one in holding.allocations):  # it was, though nobody answered
                return holding.allocations
            holding.check_is_known()
            # Pods are read after the Lease: who bound one meanwhile has changed the Lease, so that this is not written.
            document, pods = self._cluster._node_document(node), self._cluster._pods(node)
            self._cluster._check_is_open(node, document)
            self._check_are_free(document, holding, pods, {resource: gpus})
            return [*holding.allocations, *renewed([taken], taken.id, at.now)]

        return next(one for one in self._leases.change(node, add) if one.id == taken.id)

    def _check_are_free(self, document: Mapping[str, Any], holding: Holding, pods: list[dict[str, Any]], wanted: Mapping[str, int]) -> None:
        has = self._cluster._gpus_of(document)
        for resource, gpus in wanted.items():
            held = sum(pod["gpu_resources"].get(resource, 0) for pod in [*pods, *as_pods(holding, pods, ())])
            free = max(has.get(resource, 0) - held, 0)
            if free < gpus:
                raise NoGpus(f"node {holding.node}: {free} {resource} free, not {gpus}")

    def within(self, seconds: float) -> contextlib.AbstractContextManager[None]:
        """What this thread asks meanwhile takes no longer all together."""
        return self._cluster._api.within(seconds)

    def renew(self, allocation: Allocation) -> bool:
        """False where it is not held any more. Errors: GflowError."""
        is_held = True

        def change(holding: Holding, at: Moment) -> list[Allocation]:
            nonlocal is_held
            is_held = any(one.id == allocation.id for one in holding.allocations)
            if not is_held:
                holding.check_is_writable()  # nobody knows
            return renewed(holding.allocations, allocation.id, at.now)

        self._leases.change(allocation.node, change)
        return is_held

    def give_back(self, *allocations: Allocation) -> bool:
        """Of one node. False where they were not held any more. Errors: GflowError."""
        ids = {one.id for one in allocations}
        were_held = False

        def change(holding: Holding, at: Moment) -> list[Allocation]:
            nonlocal were_held
            holding.check_is_writable()
            were_held = any(one.id in ids for one in holding.allocations) or (were_held and at.is_unsure)
            return [one for one in holding.allocations if one.id not in ids]

        self._leases.change(allocations[0].node, change)
        return were_held

    def for_pod(self, document: Mapping[str, Any], pod: Mapping[str, Any], node: str) -> PodHold:
        """So that nobody else takes what it asks for while it is put there, for as long as that may take. Errors: NoGpus, also where it cannot
        be there for other reasons."""
        ttl = math.ceil(3 * self._cluster._api.timeout) + _LATE_SECONDS
        name = f"{pod['namespace']}/{pod['name']}"
        lease = str(pod["labels"].get(LEASE_LABEL) or "")
        under = int(lease) if lease.isascii() and lease.isdecimal() and len(lease) < 20 else -1
        taken = [self._new(node, resource, gpus, ttl, pod=name, under=max(under, 0)) for resource, gpus in pod["gpu_resources"].items()]
        ids = frozenset(one.id for one in taken)
        until = math.inf

        def add(holding: Holding, at: Moment) -> list[Allocation]:
            nonlocal until
            until = at.asked + ttl - _LATE_SECONDS
            others = [one for one in holding.allocations if one.pod != name]  # of this pod: of somebody else who puts it there, or tried to
            of_node, pods = self._cluster._node_document(node), self._cluster._pods(node)
            self._cluster._check_fits(document, of_node, pods)
            if lease:
                self._check_is_under(under, lease, pod, Holding(node, others, holding.unreadable, holding.why, holding.is_lost), pods)
            if not taken:
                return holding.allocations
            holding.check_is_known()
            if not lease:
                self._check_are_free(of_node, Holding(node, others), pods, pod["gpu_resources"])
            return [*others, *(one for it in taken for one in renewed([it], it.id, at.now))]

        self._leases.change(node, add)
        return PodHold(node, ids, until)

    def _check_is_under(self, under: int, lease: str, pod: Mapping[str, Any], holding: Holding, pods: list[dict[str, Any]]) -> None:
        """What a pod may take under an allocation: GPUs of its kind, as many as others under it leave. Errors: NoGpus."""
        allocation = next((one for one in holding.allocations if one.id == under and not one.pod), None)
        if allocation is None:
            raise NoGpus(f"allocation {lease}, which the pod's label {LEASE_LABEL} names, holds nothing on node {holding.node}")
        others = taken_under(under, holding.allocations, pods, f"{pod['namespace']}/{pod['name']}")
        for resource, gpus in pod["gpu_resources"].items():
            left = allocation.gpus - others.get(resource, 0) if resource == allocation.resource else 0
            if gpus > left:
                raise NoGpus(f"allocation {lease}, which the pod's label {LEASE_LABEL} names, has {max(left, 0)} {resource} left on node "
                             f"{holding.node}, not {gpus}")

    def end(self, hold: PodHold) -> None:
        """Of what for_pod() held. Errors: GflowError."""

        def change(holding: Holding, at: Moment) -> list[Allocation]:
            return [one for one in holding.allocations if one.id not in hold.ids]

        if hold.ids:
            self._leases.change(hold.node, change)
