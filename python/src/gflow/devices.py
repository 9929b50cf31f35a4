# SPDX-License-Identifier: Apache-2.0
"""GPUs that were given to this program, or chosen for it."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Optional, Union, overload

if TYPE_CHECKING:
    from gflow import documents


@dataclass(frozen=True)
class Device:
    """One GPU."""

    index: int
    """On its node, in the order of the PCI bus."""
    uuid: str
    gpu_type: str
    memory_gb: Optional[float]
    """What may be used of it; None where that is not known."""
    compute_ratio: float = 1.0
    """The part of it that was asked for."""


class Devices(Sequence[Device]):
    """The GPUs of one allocation, or of a choice, as a sequence. The first of them is `cuda:0` to a program that has `environment`.

    >>> gflow.select(1)[0].gpu_type
    'RTX3090'
    """

    def __init__(self, node: str, devices: Sequence[Device], environment: Mapping[str, str],
                 allocation: Optional[documents.GpuAllocation] = None) -> None:
        self.node = node
        self.environment = dict(environment)
        """What makes a program see these GPUs and no other."""
        self.allocation = allocation
        self.lost: Optional[str] = None
        """Why they are not held any more."""
        self._devices = tuple(devices)

    @property
    def allocation_id(self) -> Optional[int]:
        """The job that holds them; None of a choice."""
        return None if self.allocation is None else self.allocation["allocation_id"]

    @property
    def indices(self) -> list[int]:
        """Of each on its node."""
        return [one.index for one in self._devices]

    @overload
    def __getitem__(self, place: int) -> Device: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Device]: ...
    def __getitem__(self, place: Union[int, slice]) -> Union[Device, Sequence[Device]]:
        return self._devices[place]

    def __len__(self) -> int:
        return len(self._devices)

    def __iter__(self) -> Iterator[Device]:
        return iter(self._devices)

    def __repr__(self) -> str:
        listed = ", ".join(f"{one.index} {one.gpu_type}" for one in self._devices)
        return f"<GPUs of {self.node}: {listed or 'none'}>"


def devices_of_allocation(allocation: documents.GpuAllocation) -> Devices:
    config = allocation["gpu_config"]
    assert config is not None
    devices = [Device(one["index"], one["uuid"], one["gpu_type"], one["memory_gb"], one["compute_ratio"])
               for one in config["devices"]]
    return Devices(allocation["node_name"] or "", devices, config["environment"], allocation)


def devices_of_choice(node: str, gpus: Sequence[documents.MonitoredGpuShown]) -> Devices:
    devices = [Device(one["index"], one["uuid"], one["gpu_type"], one["memory_total_gb"]) for one in gpus]
    listed = ",".join(str(one.index) for one in devices)
    return Devices(node, devices, {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": listed})


class EnvironmentChange:
    """Variables of this process, set and put back. Of several that are held the newest counts, in whatever order they
    are undone; what was there before the first is there after the last."""

    _lock = threading.Lock()
    _held: ClassVar[list[EnvironmentChange]] = []  # in the order they were made
    _before: ClassVar[dict[str, Optional[str]]] = {}

    def __init__(self, environment: Mapping[str, str]) -> None:
        torch = sys.modules.get("torch")
        if torch is not None and torch.cuda.is_initialized():
            warnings.warn("CUDA was started before these GPUs were given: this process goes on with those it saw then",
                          RuntimeWarning, stacklevel=4)
        self._environment = dict(environment)
        with self._lock:
            for name in environment:
                self._before.setdefault(name, os.environ.get(name))
            self._held.append(self)
            os.environ.update(environment)

    def undo(self) -> None:
        with self._lock:
            if self not in self._held:
                return
            self._held.remove(self)
            for name in self._environment:
                others = [one._environment[name] for one in self._held if name in one._environment]
                value = others[-1] if others else self._before.pop(name)
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value
