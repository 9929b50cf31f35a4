# SPDX-License-Identifier: Apache-2.0
# Made by nanobind's stubgen of the module: run tests/python/test_wheels.py with GFLOW_BLESS=1.
"""
What the package has of the daemon, in the process. Use gflow.gpu_parser and its like.
"""

from collections.abc import Mapping, Sequence


class Resources:
    """What a cluster calls the GPUs of a vendor."""

    def __init__(self, names: Mapping[str, str], default_name: str) -> None: ...

class Mistake:
    """What is wrong with a request, and where: [begin, end) in characters."""

    @property
    def begin(self) -> int: ...

    @property
    def end(self) -> int: ...

    @property
    def what(self) -> str: ...

    @property
    def instead(self) -> str: ...

def read_request(text: str, resources: Resources) -> tuple[int | float, str | None, str, float | None, float | None] | Mistake:
    """
    gpu_num, gpu_type, resource_name, memory_gb, compute_ratio of a request, or what is wrong with it.
    """

def memory_of_model(model: str) -> float | None:
    """In GB; None if it is not known."""

def memory_of_models() -> dict[str, float]:
    """Of every model that is known, in GB."""

def answers(wanted: str, device: str) -> bool:
    """Whether a device of this model is one of those wanted ('A100|H100')."""

class Cluster:
    """
    Nodes, what of them is in use, and which are the best for what is needed.
    """

    def __init__(self) -> None: ...

    def add(self, name: str, gpus: Sequence[tuple[str, str, int, float | None]], cpus: tuple[float, float], memory_gb: tuple[float, float]) -> int:
        """
        gpus: resource, model, count, GB of each; cpus and memory_gb: in all, in use. The index of the node.
        """

    def use(self, node: int, resource: str, gpus: float) -> None:
        """What pods hold there."""

    def reserve(self, node: int, gpus: int, memory_gb: float) -> bool:
        """
        Sets so much memory aside on each of so many GPUs; False if they do not have it.
        """

    def idle(self, node: int, model: str, memory_gb: float) -> int:
        """
        GPUs nobody is on, of this model ('' is any), with so much memory left.
        """

    def rank(self, gpus: int, share: float, memory_gb: float, resource: str, models: Sequence[str], policy: str) -> list[tuple[int, float]]:
        """
        The nodes that have so many GPUs, so much of each: index and score, the best first.
        """
