# SPDX-License-Identifier: Apache-2.0
"""gflow for programs: submit, wait, listen, and GPUs for as long as they are wanted.

    import gflow

    job = gflow.submit("python train.py", gpus="2(V100)")
    job.result()

    with gflow.gpus(2) as devices:
        ...
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gflow._default import default_client, events, function, gpus, job, jobs, map, select, submit, submit_array
    from gflow._version import __version__
    from gflow.aio import AsyncClient, AsyncJob
    from gflow.aio_functions import AsyncFunctionJob, AsyncResults
    from gflow.client import Client, Job
    from gflow.devices import Device, Devices
    from gflow.errors import (
        ConfigurationError, ConnectionLost, EventsGone, Exhausted, GflowError, Infeasible, JobFailed, LeaseLost,
        NativeModuleMissing, NoGpus, NotFound, OptionError, PermissionDenied, Problem, RequestError, ServerTimeout, Unauthenticated,
        Unavailable, Unreachable, UsageError, WaitTimeout, WrongState,
    )
    from gflow.functions import Executor, FunctionJob, Results
    from gflow.gpu_memory_guard import GPUMemoryGuard, GPUMemoryRequirement
    from gflow.gpu_parser import GPUResource, GPUResourceParser, GPUResourceWarning
    from gflow.gpu_scheduler import GPUScheduler, SchedulingPolicy, SchedulingRequest
    from gflow.notebook import load_ipython_extension as load_ipython_extension
    from gflow.submission import Submission

# What is not used is not imported: a program that only waits for a job starts without TLS and asyncio.
_HOMES = {
    "gflow._default": ["default_client", "events", "function", "gpus", "job", "jobs", "map", "select", "submit", "submit_array"],
    "gflow._version": ["__version__"],
    "gflow.aio": ["AsyncClient", "AsyncJob"],
    "gflow.aio_functions": ["AsyncFunctionJob", "AsyncResults"],
    "gflow.client": ["Client", "Job"],
    "gflow.devices": ["Device", "Devices"],
    "gflow.errors": [
        "ConfigurationError", "ConnectionLost", "EventsGone", "Exhausted", "GflowError", "Infeasible", "JobFailed",
        "LeaseLost", "NativeModuleMissing", "NoGpus", "NotFound", "OptionError", "PermissionDenied", "Problem",
        "RequestError", "ServerTimeout", "Unauthenticated", "Unavailable", "Unreachable", "UsageError", "WaitTimeout", "WrongState",
    ],
    "gflow.functions": ["Executor", "FunctionJob", "Results"],
    "gflow.gpu_memory_guard": ["GPUMemoryGuard", "GPUMemoryRequirement"],
    "gflow.gpu_parser": ["GPUResource", "GPUResourceParser", "GPUResourceWarning"],
    "gflow.gpu_scheduler": ["GPUScheduler", "SchedulingPolicy", "SchedulingRequest"],
    "gflow.notebook": ["load_ipython_extension"],
    "gflow.submission": ["Submission"],
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "AsyncClient", "AsyncFunctionJob", "AsyncJob", "AsyncResults", "Client", "ConfigurationError", "ConnectionLost",
    "Device", "Devices", "EventsGone", "Executor", "Exhausted", "FunctionJob", "GPUMemoryGuard", "GPUMemoryRequirement",
    "GPUResource", "GPUResourceParser", "GPUResourceWarning", "GPUScheduler", "GflowError", "Infeasible", "Job",
    "JobFailed", "LeaseLost", "NativeModuleMissing", "NoGpus", "NotFound", "OptionError", "PermissionDenied", "Problem", "RequestError",
    "Results", "SchedulingPolicy", "SchedulingRequest", "ServerTimeout", "Submission", "Unauthenticated", "Unavailable",
    "Unreachable", "UsageError", "WaitTimeout", "WrongState", "__version__", "default_client", "events", "function",
    "gpus", "job", "jobs", "map", "select", "submit", "submit_array",
]


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'gflow' has no attribute '{name}'")
    value: object = getattr(importlib.import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF})
