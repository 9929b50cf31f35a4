# SPDX-License-Identifier: Apache-2.0
"""Requests for GPUs ("2(V100)", "8G,0.5"), read by the daemon's own grammar in this process (docs/requests.md)."""

from __future__ import annotations

import math
import reprlib
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional, Union

from gflow._engine import native
from gflow.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gflow import _native

__all__ = ["GPUResource", "GPUResourceParser", "GPUResourceWarning"]

_MOST = 1e9  # more is a mistake, and no number of the native module
_NAMES = {
    "gpu": "nvidia.com/gpu",
    "nvidia": "nvidia.com/gpu",
    "amd": "amd.com/gpu",
    "intel": "intel.com/gpu",
    "npu": "huawei.com/npu",
}


class GPUResourceWarning(UserWarning):
    """A text that is no request was taken for 0 GPUs."""


@dataclass
class GPUResource:
    """What a request asks for."""

    gpu_num: Union[int, float]
    """GPUs in all: 0.5 is half of one; -1 sees all of them and holds none."""
    gpu_type: Optional[str]
    """A model, or several ("A100|H100"); None is any."""
    resource_name: str
    """What a cluster calls them: "nvidia.com/gpu"."""
    memory_gb: Optional[float] = None
    """Of each GPU."""
    compute_ratio: Optional[float] = None
    """Of each GPU, where it is not a whole one."""

    @property
    def devices(self) -> int:
        """On how many GPUs it is."""
        each = self.compute_ratio or min(self.gpu_num, 1)
        return round(self.gpu_num / each) if each > 0 else 0


class GPUResourceParser:
    """Reads requests. It may be used by several threads.

    config: what gpu_config.yaml has: `gpu_resource`, `default_gpu_resource_name`, `gpu_memory_specs`, in letters of either case.

    Errors: NativeModuleMissing; ValueError of memory that is no number of GB."""

    def __init__(self, config: Optional[Mapping[str, Any]] = None) -> None:
        said = {name.lower(): value for name, value in (config or {}).items()}
        self.config: Mapping[str, Any] = config or {}
        self.gpu_resource_mapping: dict[str, str] = dict(said.get("gpu_resource") or _NAMES)
        self.default_gpu_resource_name: str = said.get("default_gpu_resource_name") or "nvidia.com/gpu"
        self._read = native().read_request
        self._resources: _native.Resources = native().Resources(self.gpu_resource_mapping, self.default_gpu_resource_name)
        self.gpu_memory_mapping: dict[str, float] = native().memory_of_models()
        """GB of one GPU, by its model. It may be changed."""
        for model, gb in (said.get("gpu_memory_specs") or {}).items():
            self.gpu_memory_mapping[self._model_of(model)] = amount(gb, f"gpu_memory_specs: {model}")

    def __reduce__(self) -> tuple[type[GPUResourceParser], tuple[Mapping[str, Any]]]:
        return GPUResourceParser, (self.config,)

    def parse(self, text: str, resource_name: Optional[str] = None) -> GPUResource:
        """What a request asks for.

        >>> parser = gflow.GPUResourceParser()
        >>> request = parser.parse("2(V100),16G")
        >>> request.gpu_num, request.gpu_type, request.memory_gb, request.resource_name
        (2, 'V100', 16.0, 'nvidia.com/gpu')
        >>> parser.parse("2(V100")
        Traceback (most recent call last):
        gflow.errors.RequestError: ...

        Errors: RequestError, which says where, of what is none; TypeError of what is no text."""
        if not isinstance(text, str):
            raise TypeError(f"a request for GPUs is a text such as '2(V100)', not {reprlib.repr(text)}")
        # Half a character cannot be read natively; it is none of a request anyway.
        read = self._read(text if text.isascii() else text.encode("utf-8", "replace").decode(), self._resources)
        if not isinstance(read, tuple):
            raise RequestError(text, read.what, read.instead, read.begin, read.end)
        resource = GPUResource(*read)
        if resource_name and resource.resource_name == self.default_gpu_resource_name:
            resource.resource_name = resource_name
        return resource

    def parse_gpu_resource(self, resource_gpu: str, resource_name: Optional[str] = None) -> GPUResource:
        """The same, but what is no request is 0 GPUs and a GPUResourceWarning. No errors."""
        try:
            return self.parse(resource_gpu, resource_name)
        except (RequestError, TypeError) as error:
            warnings.warn(f"taken for 0 GPUs: {error}", GPUResourceWarning, stacklevel=2)
            return GPUResource(0, None, resource_name or self.default_gpu_resource_name)

    def memory_of(self, gpu_type: str) -> Optional[float]:
        """GB of one GPU of this model, the smallest where there are several; None where it is not known."""
        sizes = [self.gpu_memory_mapping.get(one) or native().memory_of_model(one) for one in gpu_type.split("|")]
        return None if None in sizes else min(size for size in sizes if size is not None)

    def _model_of(self, written: str) -> str:
        """As requests have it: "V100" of "v100"."""
        try:
            return self.parse(f"1({written})").gpu_type or written
        except RequestError:
            return written

    def resource_of_model(self, model: str) -> str:
        """What a cluster calls GPUs of this model."""
        try:
            return self.parse(f"1({model})").resource_name
        except RequestError:
            return self.default_gpu_resource_name

    def validate_gpu_memory(self, gpu_resource: GPUResource, min_memory_gb: float) -> bool:
        """Whether its GPUs have so much memory, all together. True where that is not known.

        >>> parser = gflow.GPUResourceParser()
        >>> parser.validate_gpu_memory(parser.parse("2(V100)"), 64.0)
        True

        min_memory_gb: GB."""
        has = memory_in(gpu_resource, self.memory_of(gpu_resource.gpu_type) if gpu_resource.gpu_type else None)
        return has is None or has >= amount(min_memory_gb, "min_memory_gb")


def memory_in(resource: GPUResource, each: Optional[float]) -> Optional[float]:
    """GB of all GPUs of a request, one having so much; None where it is not known."""
    if resource.gpu_num <= 0:
        return 0.0
    if resource.memory_gb:
        return resource.memory_gb * resource.devices
    return None if each is None else each * resource.gpu_num


def plain(info: Any) -> GPUResource:
    """What another parser read, or a stand-in for one: what it does not say is not said."""
    if isinstance(info, GPUResource):
        return info

    def said(name: str, kind: Any) -> Any:
        value = getattr(info, name, None)
        return value if isinstance(value, kind) else None

    number = (int, float)
    return GPUResource(amount(info.gpu_num, "gpu_num"), said("gpu_type", str), said("resource_name", str) or "",
                       said("memory_gb", number), said("compute_ratio", number))


def amount(value: Any, name: str) -> float:
    """A number that can be one of gigabytes or GPUs. Errors: ValueError."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not 0 <= number < _MOST:
        raise ValueError(f"{name}: {value!r} is not an amount")
    return number
