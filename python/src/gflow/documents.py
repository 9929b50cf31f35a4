# SPDX-License-Identifier: Apache-2.0
# Made by tools/python_documents.py from /api/v1/openapi.json: change what is described, not this.
"""The documents of the API, as gflowd describes them. They are what JSON gives: dictionaries, lists, text, numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict, Union

if TYPE_CHECKING:
    from typing_extensions import NotRequired

__all__ = [
    "AllocationPart",
    "AllocationShown",
    "BlockerView",
    "BlockerViewPart",
    "Bytes",
    "BytesOf1",
    "Changes",
    "Daemon",
    "Defrag",
    "DefragMoveShown",
    "DefragPlanShown",
    "DefragRequest",
    "DefragStartShown",
    "Dependencies",
    "DependenciesPart",
    "DependenciesShown",
    "Device",
    "DeviceEvent",
    "DeviceOnNodeView",
    "DeviceProcessPart",
    "DeviceProcessShown",
    "DeviceShown",
    "DeviceView",
    "Devices",
    "Drain",
    "DrainShown",
    "DrainView",
    "Drains",
    "EndingShown",
    "ExpectedStartShown",
    "Explanation",
    "FieldErrorShown",
    "GpuAllocation",
    "GpuAllocationShown",
    "GpuAllocations",
    "GpuCleanup",
    "GpuConfigShown",
    "GpuHealth",
    "GpuLimitsPart",
    "GpuLimitsShown",
    "GpuMemoryUsePart",
    "GpuMemoryUseShown",
    "GpuMonitoring",
    "GpuNeed",
    "GpuNodeShown",
    "GpuRenewal",
    "GpuSetShown",
    "GpuStatus",
    "GpuUtilizationShown",
    "GpuValidation",
    "GrantedGpuShown",
    "Group",
    "GroupPage",
    "GroupView",
    "HolderPart",
    "HolderShown",
    "Job",
    "JobEvent",
    "JobIds",
    "JobMove",
    "JobMovingPart",
    "JobMovingShown",
    "JobPage",
    "JobSpec",
    "JobSpecPart",
    "JobSpecShown",
    "JobStartShown",
    "JobUpdate",
    "JobView",
    "JobViewPart",
    "Jobs",
    "Label",
    "LabelPart",
    "LabelShown",
    "Machine",
    "MigDeviceShown",
    "MigRoomView",
    "MonitoredGpuShown",
    "MonitoredNodeShown",
    "Node",
    "NodeEvent",
    "NodeStateView",
    "NodeTopologyView",
    "NodeView",
    "Nodes",
    "NumaCpusShown",
    "OutcomePart",
    "OutcomeShown",
    "ParkedMemoryPart",
    "ParkedMemoryShown",
    "PatchDependencies",
    "PatchDependenciesShown",
    "PatchJobSpecShown",
    "PatchRequest",
    "PatchRequestShown",
    "PathSpeedsShown",
    "Payload",
    "Place",
    "Placement",
    "Principal",
    "PrincipalViewProjectShown",
    "Problem",
    "PytorchConfigShown",
    "Queue",
    "QueuedJobShown",
    "RankedNodeShown",
    "Request",
    "RequestPart",
    "RequestShown",
    "ScoreTermShown",
    "SettingView",
    "Settings",
    "Snapshot",
    "SnapshotHealthShown",
    "SnapshotJobShown",
    "SnapshotNodeShown",
    "StartPlaceShown",
    "Statistics",
    "StatusCountsShown",
    "Submit",
    "SubmitAnswer",
    "SubmitAnswerItemShown",
    "SubmitRequestItem",
    "SubmitRequestItemOf",
    "SubmitRequestItemOf1",
    "SuggestionShown",
    "TaskRange",
    "TensorflowConfigShown",
    "TimeSliceShareShown",
    "TimesView",
    "Token",
    "TokenRequest",
    "TokenView",
    "Tokens",
    "Topology",
    "TopologyView",
    "UnhealthyNodeShown",
    "UnusablePart",
    "UnusableShown",
    "Update",
    "UsageView",
    "UserPart",
    "UserShown",
    "Version",
]


class AllocationPart(TypedDict):
    node: NotRequired[str]
    """name of the node"""
    gpus: NotRequired[list[int]]
    """GPUs it holds there, by index"""
    cpus: NotRequired[list[int]]
    """CPUs chosen for it there; empty: any"""


class AllocationShown(TypedDict):
    node: str
    """name of the node"""
    gpus: list[int]
    """GPUs it holds there, by index"""
    cpus: list[int]
    """CPUs chosen for it there; empty: any"""


class BlockerView(TypedDict):
    kind: Literal["hold", "begin", "dependency", "gpus", "gpu_memory", "gpu_share", "nodes", "node_closed", "node_unhealthy", "preemption", "memory", "cpus", "priority", "group_limit", "launch_backoff", "user_limit", "suspended", "gpu_limit", "gang", "slice"]
    code: str
    text: str
    need: Union[int, None]
    available: Union[int, None]
    gpu_kind: str
    holders: list[HolderShown]
    unusable: list[UnusableShown]
    jobs: list[int]
    mode: Union[Literal["all", "any"], None]
    never: bool
    end: Union[Literal["Queued", "Hold", "Starting", "Running", "Suspended", "Completing", "Finished", "Failed", "Cancelled", "Timeout", "Lost"], None]
    at: Union[str, None]


class BlockerViewPart(TypedDict):
    kind: NotRequired[Literal["hold", "begin", "dependency", "gpus", "gpu_memory", "gpu_share", "nodes", "node_closed", "node_unhealthy", "preemption", "memory", "cpus", "priority", "group_limit", "launch_backoff", "user_limit", "suspended", "gpu_limit", "gang", "slice"]]
    code: NotRequired[str]
    text: NotRequired[str]
    need: NotRequired[Union[int, None]]
    available: NotRequired[Union[int, None]]
    gpu_kind: NotRequired[str]
    holders: NotRequired[list[HolderPart]]
    unusable: NotRequired[list[UnusablePart]]
    jobs: NotRequired[list[int]]
    mode: NotRequired[Union[Literal["all", "any"], None]]
    never: NotRequired[bool]
    end: NotRequired[Union[Literal["Queued", "Hold", "Starting", "Running", "Suspended", "Completing", "Finished", "Failed", "Cancelled", "Timeout", "Lost"], None]]
    at: NotRequired[Union[str, None]]


class BytesOf1(TypedDict):
    base64: str


Bytes = Union[str, "BytesOf1"]


class Changes(TypedDict):
    apiVersion: Literal["gflow/v1"]
    kind: Literal["Changes"]
    revision: int


class Daemon(TypedDict):
    apiVersion: Literal["gflow/v1"]
    kind: Literal["Daemon"]
    version: str
    pid: int
    started: str
    up_time_seconds: int
    mode: str
    socket: str
    api_url: str
    tls_url: Union[str, None]
    tls_fingerprint: Union[str, None]
    tls_expires: Union[str, None]
    state_dir: str
    log_path: str
    config_path: str
    settings_for_restart: list[str]
    devices: str
    enforcement_kill: str
    enforcement_memory: str
    enforcement_cpu: str
    enforcement_processes: str
    enforcement_suspend: str
    enforcement_binding: str
    enforcement_gpu_memory: str
    enforcement_gpu_compute: str
    enforcement_gpu_isolation: str
    enforcement_parking: str
    warnings: list[str]


class Defrag(TypedDict):
    apiVersion: Literal["gflow/v1"]
    kind: Literal["Defrag"]
    jobs: list[DefragPlanShown]


class DefragMoveShown(TypedDict):
    job: int
    source: list[AllocationShown]
    target: list[AllocationShown]
    lost_seconds: int


class DefragPlanShown(TypedDict):
    id: int
    outcome: Literal["moves", "has_room", "waits_for_more", "not_enough_free", "nothing_movable", "no_move_helps", "not_searched"]
    moves: list[DefragMoveShown]
    other_moves: int
    target: list[AllocationShown]
    together: list[DefragStartShown]
    is_behind: bool
    behind: Union[int, None]


class DefragRequest(TypedDict):
    apiVersion: NotRequired[Literal["gflow/v1"]]
    kind: NotRequired[Literal["DefragRequest"]]
    id: int
    moves: list[int]


class DefragStartShown(TypedDict):
    job: int
    target: list[AllocationShown]


class Dependencies(TypedDict):
    jobs: NotRequired[list[int]]
    """jobs that have to finish first"""
    mode: NotRequired[Literal["all", "any"]]
    """whether all of them have to, or any"""
    auto_cancel: NotRequired[bool]
    """cancelled once that cannot happen any more"""


class DependenciesPart(TypedDict):
    jobs: NotRequired[list[int]]
    """jobs that have to finish first"""
    mode: NotRequired[Literal["all", "any"]]
    """whether all of them have to, or any"""
    auto_cancel: NotRequired[bool]
    """cancelled once that cannot happen any more"""


class DependenciesShown(TypedDict):
    jobs: list[int]
    """jobs that have to finish first"""
    mode: Literal["all", "any"]
    """whether all of them have to, or any"""
    auto_cancel: bool
    """cancelled once that cannot happen any more"""


class Device(TypedDict):
    apiVersion: Literal["gflow/v1"]
    kind: Literal["Device"]
    node: str
    index: int
    """number of the device on its node, in PCI bus order"""
    vendor: str
    """nvidia, amd, intel or ascend"""
    model: str
    """as the driver reports it"""
    uuid: str
    """as the driver reports it"""
    pci_address: Union[str, None]
    """where it is on the PCI bus"""
    numa_node: Union[int, None]
    """the NUMA node it is near to"""
    memory_total_bytes: Union[int, None]
    """memory it has"""
    memory_used_bytes: Union[int, None]
    """memory in use"""
    utilization_percent: Union[int, None]
    """part of the time any kernel ran"""
    temperature_celsius: Union[int, None]
    """now"""
    power_milliwatts: Union[int, None]
    """now"""
    power_limit_milliwatts: Union[int, None]
    """most it may draw"""
    usable: bool
    """whether it works at all"""
    trouble: str
    """why it does not, or a reading is missing"""
    processes: list[DeviceProcessShown]
    """that are on it"""
    mig: Union[MigDeviceShown, None]
    """what it is of a GPU cut by MIG; null: a GPU"""
    available: bool
    unavailable_because: Literal["none", "broken", "drained", "in_use"]
    jobs: list[int]
    other_jobs: int
    drained: bool
    drained_reason: str
    gpu_mode: Union[Literal["whole", "fraction", "time_slice"], None]
    time_slices: list[TimeSliceShareShown]
    share_free_parts: int
    memory_free_bytes: Union[int, None]
    model_short: str
    foreign: list[DeviceProcessShown]


class DeviceEvent(TypedDict):
    apiVersion: Literal["gflow/v1"]
    kind: Literal["DeviceEvent"]
    type: Literal["device.changed"]
    time: str
    node: str
    gpu: int
    uuid: str
    quantity: str
    before: Union[int, None]
    now: Union[int, None]


class DeviceOnNodeView(TypedDict):
    node: str
    index: int
    """number of the device on its node, in PCI bus order"""
    vendor: str
    """nvidia, amd, intel or ascend"""
    model: str
    """as the driver reports it"""
    uuid: str
    """as the driver reports it"""
    pci_address: Union[str, None]
    """where it is on the PCI bus"""
    numa_node: Union[int, None]
    """the NUMA node it is near to"""
    memory_total_bytes: Union[int, None]
    """memory it has"""
    memory_used_bytes: Union[int, None]
    """memory in use"""
    utilization_percent: Union[int, None]
    """part of the time any kernel ran"""
    temperature_celsius: Union[int, None]
    """now"""
    power_milliwatts: Union[int, None]
    """now"""
    power_limit_milliwatts: Union[int, None]
    """most it may draw"""
    usable: bool
    """whether it works at all"""
    trouble: str
    """why it does not, or a reading is missing"""
    processes: list[DeviceProcessShown]
    """that are on it"""
    mig: Union[MigDeviceShown, None]
    """what it is of a GPU cut by MIG; null: a GPU"""
    available: bool
    unavailable_because: Literal["none", "broken", "drained", "in_use"]
    jobs: list[int]
    other_jobs: int
    drained: bool
    drained_reason: str
    gpu_mode: Union[Literal["whole", "fraction", "time_slice"], None]
    time_slices: list[TimeSliceShareShown]
    share_free_parts: int
    memory_free_bytes: Union[int, None]
    model_short: str
    foreign: list[DeviceProcessShown]


class DeviceProcessPart(TypedDict):
    pid: NotRequired[int]
    """number of the process"""
    user: NotRequired[Union[str, None]]
    """user"""
    name: NotRequired[Union[str, None]]
    """its program"""
    memory_bytes: NotRequired[Union[int, None]]
    """memory of the device it uses"""
    job: NotRequired[Union[int, None]]
    """it belongs to, which does not hold the device"""


class DeviceProcessShown(TypedDict):
    pid: int
    """number of the process"""
    user: Union[str, None]
    """user"""
    name: Union[str, None]
    """its program"""
    memory_bytes: Union[int, None]
    """memory of the device it uses"""
    job: Union[int, None]
    """it belongs to, which does not hold the device"""


class DeviceShown(TypedDict):
    index: int
    """number of the device on its node, in PCI bus order"""
    vendor: str
    """nvidia, amd, intel or ascend"""
    model: str
    """as the driver reports it"""
    uuid: str
    """as the driver reports it"""
    pci_address: Union[str, None]
    """where it is on the PCI bus"""
    numa_node: Union[int, None]
    """the NUMA node it is near to"""
    memory_total_bytes: Union[int, None]
    """memory it has"""
    memory_used_bytes: Union[int, None]
    """memory in use"""
    utilization_percent: Union[int, None]
    """part of the time any kernel ran"""
    temperature_celsius: Union[int, None]
    """now"""
    power_milliwatts: Union[int, None]
    """now"""
    power_limit_milliwatts: Union[int, None]
    """most it may draw"""
    usable: bool
    """whether it works at all"""
    trouble: str
    """why it does not, or a reading is missing"""
    processes: list[DeviceProcessShown]
    """that are on it"""
    mig: Union[MigDeviceShown, None]
    """what it is of a GPU cut by MIG; null: a GPU"""


class DeviceView(TypedDict):
    index: int
    """number of the device on its node, in PCI bus order"""
    vendor: str
    """nvidia, amd, intel or ascend"""
    model: str
    """as the driver reports it"""
    uuid: str
    """as the driver reports it"""
    pci_address: Union[str, None]
    """where it is on the PCI bus"""
    numa_node: Union[int, None]
    """the NUMA node it is near to"""
    memory_total_bytes: Union[int, None]
    """memory it has"""
    memory_used_bytes: Union[int, None]
    """memory in use"""
    utilization_percent: Union[int, None]
    """part of the time any kernel ran"""
    temperature_celsius: Union[int, None]
    """now"""
    power_milliwatts: Union[int, None]
    """now"""
    power_limit_milliwatts: Union[int, None]
    """most it may draw"""
    usable: bool
    """whether it works at all"""
    trouble: str
    """why it does not, or a reading is missing"""
    processes: list[DeviceProcessShown]
    """that are on it"""
    mig: Union[MigDeviceShown, None]
    """what it is of a GPU cut by MIG; null: a GPU"""
    available: bool
    unavailable_because: Literal["none", "broken", "drained", "in_use"]
    jobs: list[int]
    other_jobs: int
    drained: bool
    drained_reason: str
    gpu_mode: Union[Literal["whole", "fraction", "time_slice"], None]
    time_slices: list[TimeSliceShareShown]
    share_free_parts: int
    memory_free_bytes: Union[int, None]
    model_short: str
    foreign: list[DeviceProcessShown]


class Devices(TypedDict):
    apiVersion: Literal["gflow/v1"]
    kind: Literal["Devices"]
    devices: list[DeviceOnNodeView]


class Drain(TypedDict):
    apiVersion: NotRequired[Literal["gflow/v1"]]
    kind: NotRequired[Literal["Drain"]]
    node: NotRequired[str]
    gpu: NotRequired[Union[int, None]]
    uuid: NotRequired[str]
    reason: NotRequired[str]
    resume: NotRequired[bool]


class DrainShown(TypedDict):
    node: str
    """name of the node"""
    gpu: Union[int, None]
    """a device of it; none: the whole node, or where `uuid` is there the GPU with it"""
    reason: str
    """why it was drained"""
    by: str
    """who asked for it"""
    uuid: Union[str, None]
    """of the device"""


class DrainView(TypedDict):
    node: str
    """name of the node"""
    gpu: Union[int, None]
    """a device of it; none: the whole node, or where `uuid` is there the GPU with it"""
    reason: str
    """why it was drained"""
    by: str
    """who asked for it"""
    uuid: Union[str, None]
    """of the device"""
    present: bool


class Drains(TypedDict):
    apiVersion: Literal["gflow/v1"]
    kind: Literal["Drains"]
    drains: list[DrainView]


class EndingShown(TypedDict):
    reason: Literal["exited", "signalled", "time_limit", "cancelled", "out_of_memory", "launch_failed", "supervisor_died", "rebooted", "dependency_failed", "not_started", "preempted"]
    exit_code: int
    signal: int


class ExpectedStartShown(TypedDict):
    at: str
    by: Literal["time_limits", "begin_time", "run_times", "not_before"]


class Explanation(TypedDict):
    apiVersion: Literal["gflow/v1"]
    kind: Literal["Explanation"]
    job: JobView
    told: NotRequired[str]
    expected_start: Union[ExpectedStartShown, None]
    suggestions: list[SuggestionShown]


class FieldErrorShown(TypedDict):
    pointer: str
    detail: str


class GpuAllocation(TypedDict):
    apiVersion: Literal["gflow/v1"]
    kind: Literal["GpuAllocation"]
    success: bool
    node_name: Union[str, None]
    error_message: Union[str, None]
    allocation_id: Union[int, None]
    state: Union[str, None]
    owner: Union[str, None]
    expires_at: Union[str, None]
    gpu_config: Union[GpuConfigShown, None]
    pytorch_config: NotRequired[PytorchConfigShown]
    tensorflow_config: NotRequired[TensorflowConfigShown]


class GpuAllocationShown(TypedDict):
    success: bool
    node_name: Union[str, None]
    error_message: Union[str, None]
    allocation_id: Union[int, None]
    state: Union[str, None]
    owner: Union[str, None]
    expires_at: Union[str, None]
    gpu_config: Union[GpuConfigShown, None]
    pytorch_config: NotRequired[PytorchConfigShown]
    tensorflow_config: NotRequired[TensorflowConfigShown]


class GpuAllocations(TypedDict):
    apiVersion: Literal["gflow/v1"]
    kind: Literal["GpuAllocations"]
    allocations: list[GpuAllocationShown]


class GpuCleanup(TypedDict):
    apiVersion: Literal["gflow/v1"]
    kind: Literal["GpuCleanup"]
    success: bool
    node_name: str
    gpu_count: int
    released: list[int]


class GpuConfigShown(TypedDict):
    gpu_count: int
    gpu_type: str
    memory_gb: Union[float, None]
    compute_ratio: float
    distributed_training: NotRequired[bool]
    mixed_precision: NotRequired[bool]
    gpu_memory_fraction: NotRequired[float]
    devices: list[GrantedGpuShown]
    environment: dict[str, str]


class GpuHealth(TypedDict):
    apiVersion: Literal["gflow/v1"]
    kind: Literal["GpuHealth"]
    status: Literal["healthy", "degraded", "unhealthy"]
    initialized: bool
    total_gpus: int
    usable_gpus: int
    total_nodes: int
    problems: list[str]
    timestamp: str


class GpuLimitsPart(TypedDict):
    memory: NotRequired[Literal["none", "interposer"]]
    compute: NotRequired[Literal["none", "interposer"]]


class GpuLimitsShown(TypedDict):
    memory: Literal["none", "interposer"]
    compute: Literal["none", "interposer"]


class GpuMemoryUsePart(TypedDict):
    node: NotRequired[str]
    gpu: NotRequired[int]
    used_bytes: NotRequired[int]
    reserved_bytes: NotRequired[int]


class GpuMemoryUseShown(TypedDict):
    node: str
    gpu: int
    used_bytes: int
    reserved_bytes: int


class GpuMonitoring(TypedDict):
    apiVersion: Literal["gflow/v1"]
    kind: Literal["GpuMonitoring"]
    utilization: GpuUtilizationShown
    nodes: list[MonitoredNodeShown]
    timestamp: str


class GpuNeed(TypedDict):
    apiVersion: NotRequired[Literal["gflow/v1"]]
    kind: NotRequired[Literal["GpuNeed"]]
    gpu_count: NotRequired[Union[int, None]]
    gpu_type: NotRequired[Union[str, None]]
    memory_gb: NotRequired[Union[float, None]]
    compute_ratio: NotRequired[Union[float, None]]
    distributed_training: NotRequired[Union[bool, None]]
    mixed_precision: NotRequired[Union[bool, None]]
    gpu_memory_fraction: NotRequired[Union[float, None]]
    gpus: NotRequired[Union[str, None]]
    wait: NotRequired[Union[bool, None]]
    ttl_seconds: NotRequired[Union[int, None]]
    pid: NotRequired[Union[int, None]]
    wait_pid: NotRequired[Union[int, None]]
    allocation_id: NotRequired[Union[int, None]]


class GpuNodeShown(TypedDict):
    node_name: str
    gpu_type: str
    available_gpus: int
    total_gpus: int
    memory_per_gpu: Union[float, None]
    utilization: Union[float, None]
    gpus: list[int]


class GpuRenewal(TypedDict):
    apiVersion: NotRequired[Literal["gflow/v1"]]
    kind: NotRequired[Literal["GpuRenewal"]]
    ttl_seconds: int


class GpuSetShown(TypedDict):
    gpu_indices: list[int]
    links_percent: Union[int, None]
    because: str


class GpuStatus(TypedDict):
    apiVersion: Literal["gflow/v1"]
    kind: Literal["GpuStatus"]
    utilization: NotRequired[GpuUtilizationShown]
    available_nodes: list[GpuNodeShown]
    total_nodes: int
    timestamp: str


class GpuUtilizationShown(TypedDict):
    gpu_utilization: Union[float, None]
    gpu_memory_usage: Union[float, None]


class GpuValidation(TypedDict):
    apiVersion: Literal["gflow/v1"]
    kind: Literal["GpuValidation"]
    valid: bool
    available: bool
    error_message: Union[str, None]
    request: Union[str, None]


class GrantedGpuShown(TypedDict):
    index: int
    uuid: str
    gpu_type: str
    compute_ratio: float
    memory_gb: Union[float, None]


class Group(TypedDict):
    apiVersion: Literal["gflow/v1"]
    kind: Literal["Group"]
    name: str
    user: UserShown
    max_concurrent: Union[int, None]
    jobs: int
    first_job: int
    last_job: int
    states: StatusCountsShown


class GroupPage(TypedDict):
    apiVersion: Literal["gflow/v1"]
    kind: Literal["GroupPage"]
    groups: list[GroupView]
    next: Union[str, None]


class GroupView(TypedDict):
    name: str
    user: UserShown
    max_concurrent: Union[int, None]
    jobs: int
    first_job: int
    last_job: int
    states: StatusCountsShown


class HolderPart(TypedDict):
    job: int
    user: NotRequired[str]
    gpus: NotRequired[list[int]]
    ends: NotRequired[Union[str, None]]


class HolderShown(TypedDict):
    job: int
    user: str
    gpus: list[int]
    ends: Union[str, None]


class Job(TypedDict):
    apiVersion: Literal["gflow/v1"]
    kind: Literal["Job"]
    id: int
    user: UserShown
    status: Literal["Queued", "Hold", "Starting", "Running", "Suspended", "Completing", "Finished", "Failed", "Cancelled", "Timeout", "Lost"]
    status_code: str
    reason: str
    submitted: str
    started: Union[str, None]
    ended: Union[str, None]
    run_time_seconds: int
    node: str
    gpu_indices: list[int]
    cpu_indices: list[int]
    peers: list[AllocationShown]
    node_list: str
    placed_because: Union[str, None]
    gpu_memory: list[GpuMemoryUseShown]
    gpu_limits: Union[GpuLimitsShown, None]
    gpu_isolation: Union[Literal["none", "filter", "landlock"], None]
    parked: Union[ParkedMemoryShown, None]
    lends: bool
    move: Union[JobMovingShown, None]
    move_refused: str
    gpu_idle_seconds: Union[int, None]
    attempt: int
    retries: int
    pid: Union[int, None]
    log_path: Bytes
    spec: JobSpecShown
    outcome: Union[OutcomeShown, None]
    blockers: list[BlockerView]


class JobEvent(TypedDict):
    apiVersion: Literal["gflow/v1"]
    kind: Literal["JobEvent"]
    id: int
    type: Literal["job.submitted", "job.held", "job.released", "job.changed", "job.starting", "job.started", "job.stopping", "job.suspended", "job.resumed", "job.requeued", "job.ended", "job.lent", "job.moving", "job.moved"]
    time: str
    job: int
    user: UserShown
    name: str
    allocation: bool
    status: Literal["Queued", "Hold", "Starting", "Running", "Suspended", "Completing", "Finished", "Failed", "Cancelled", "Timeout", "Lost"]
    status_code: str
    attempt: int
    node: Union[str, None]
    gpu_indices: list[int]
    outcome: Union[EndingShown, None]


class JobIds(TypedDict):
    apiVersion: Literal["gflow/v1"]
    kind: Literal["JobIds"]
    jobs: list[int]


class JobMove(TypedDict):
    apiVersion: NotRequired[Literal["gflow/v1"]]
    kind: NotRequired[Literal["JobMove"]]
    gpu: NotRequired[Union[int, None]]
    running_only: NotRequired[bool]


class JobMovingPart(TypedDict):
    source: int
    target: int


class JobMovingShown(TypedDict):
    source: int
    target: int


class JobPage(TypedDict):
    apiVersion: Literal["gflow/v1"]
    kind: Literal["JobPage"]
    jobs: list[JobViewPart]
    next: Union[str, None]
    next_after: Union[int, None]
    revision: int


class JobSpec(TypedDict):
    name: NotRequired[str]
    """its name; one is made up for an empty one"""
    project: NotRequired[str]
    """the project it belongs to"""
    request: NotRequired[Request]
    """what it holds while it runs"""
    priority: NotRequired[int]
    """0 to 255, higher goes first"""
    time_limit_seconds: NotRequired[Union[int, None]]
    """time limit"""
    grace_seconds: NotRequired[int]
    """between SIGTERM and SIGKILL when it is stopped"""
    begin: NotRequired[Union[str, None]]
    """not before this time"""
    dependencies: NotRequired[Dependencies]
    """which jobs have to finish first"""
    hold: NotRequired[bool]
    """submitted on hold"""
    requeue: NotRequired[bool]
    """runs again if the machine or its supervisor goes down"""
    max_retries: NotRequired[int]
    """runs again up to so many times if it fails"""
    preemption: NotRequired[Literal["none", "requeue", "suspend"]]
    """what may be done to it for a job ahead of it"""
    preempt_signal: NotRequired[int]
    """sent instead of SIGTERM when it is preempted; 0 is SIGTERM"""
    group: NotRequired[str]
    """jobs of one group share max_concurrent"""
    max_concurrent: NotRequired[int]
    """most jobs of its group running at once; 0: no limit"""
    allocation: NotRequired[bool]
    """it runs nothing, and holds its GPUs for a program outside (galloc)"""
    command: NotRequired[Bytes]
    """the command in one line; one is made of argv for an empty one"""
    work_dir: NotRequired[Bytes]
    """the directory it runs in, absolute"""


class JobSpecPart(TypedDict):
    name: NotRequired[str]
    """its name; one is made up for an empty one"""
    project: NotRequired[str]
    """the project it belongs to"""
    request: NotRequired[RequestPart]
    """what it holds while it runs"""
    priority: NotRequired[int]
    """0 to 255, higher goes first"""
    time_limit_seconds: NotRequired[Union[int, None]]
    """time limit"""
    grace_seconds: NotRequired[int]
    """between SIGTERM and SIGKILL when it is stopped"""
    begin: NotRequired[Union[str, None]]
    """not before this time"""
    dependencies: NotRequired[DependenciesPart]
    """which jobs have to finish first"""
    hold: NotRequired[bool]
    """submitted on hold"""
    requeue: NotRequired[bool]
    """runs again if the machine or its supervisor goes down"""
    max_retries: NotRequired[int]
    """runs again up to so many times if it fails"""
    preemption: NotRequired[Literal["none", "requeue", "suspend"]]
    """what may be done to it for a job ahead of it"""
    preempt_signal: NotRequired[int]
    """sent instead of SIGTERM when it is preempted; 0 is SIGTERM"""
    group: NotRequired[str]
    """jobs of one group share max_concurrent"""
    max_concurrent: NotRequired[int]
    """most jobs of its group running at once; 0: no limit"""
    allocation: NotRequired[bool]
    """it runs nothing, and holds its GPUs for a program outside (galloc)"""
    command: NotRequired[Bytes]
    """the command in one line; one is made of argv for an empty one"""
    work_dir: NotRequired[Bytes]
    """the directory it runs in, absolute"""


class JobSpecShown(TypedDict):
    name: str
    """its name; one is made up for an empty one"""
    project: str
    """the project it belongs to"""
    request: RequestShown
    """what it holds while it runs"""
    priority: int
    """0 to 255, higher goes first"""
    time_limit_seconds: Union[int, None]
    """time limit"""
    grace_seconds: int
    """between SIGTERM and SIGKILL when it is stopped"""
    begin: Union[str, None]
    """not before this time"""
    dependencies: DependenciesShown
    """which jobs have to finish first"""
    hold: bool
    """submitted on hold"""
    requeue: bool
    """runs again if the machine or its supervisor goes down"""
    max_retries: int
    """runs again up to so many times if it fails"""
    preemption: Literal["none", "requeue", "suspend"]
    """what may be done to it for a job ahead of it"""
    preempt_signal: int
    """sent instead of SIGTERM when it is preempted; 0 is SIGTERM"""
    group: str
    """jobs of one group share max_concurrent"""
    max_concurrent: int
    """most jobs of its group running at once; 0: no limit"""
    allocation: bool
    """it runs nothing, and holds its GPUs for a program outside (galloc)"""
    command: Bytes
    """the command in one line; one is made of argv for an empty one"""
    work_dir: Bytes
    """the directory it runs in, absolute"""


class JobStartShown(TypedDict):
    places: list[StartPlaceShown]


class JobUpdate(TypedDict):
    apiVersion: NotRequired[Literal["gflow/v1"]]
    kind: NotRequired[Literal["JobUpdate"]]
    name: NotRequired[str]
    """its name; one is made up for an empty one"""
    project: NotRequired[str]
    """the project it belongs to"""
    request: NotRequired[PatchRequest]
    """what it holds while it runs"""
    priority: NotRequired[int]
    """0 to 255, higher goes first"""
    time_limit_seconds: NotRequired[Union[int, None]]
    """time limit"""
    grace_seconds: NotRequired[int]
    """between SIGTERM and SIGKILL when it is stopped"""
    dependencies: NotRequired[PatchDependencies]
    """which jobs have to finish first"""
    requeue: NotRequired[bool]
    """runs again if the machine or its supervisor goes down"""
    max_retries: NotRequired[int]
    """runs again up to so many times if it fails"""
    preemption: NotRequired[Literal["none", "requeue", "suspend"]]
    """what may be done to it for a job ahead of it"""
    preempt_signal: NotRequired[int]
    """sent instead of SIGTERM when it is preempted; 0 is SIGTERM"""
    max_concurrent: NotRequired[int]
    """most jobs of its group running at once; 0: no limit"""


class JobView(TypedDict):
    id: int
    user: UserShown
    status: Literal["Queued", "Hold", "Starting", "Running", "Suspended", "Completing", "Finished", "Failed", "Cancelled", "Timeout", "Lost"]
    status_code: str
    reason: str
    submitted: str
    started: Union[str, None]
    ended: Union[str, None]
    run_time_seconds: int
    node: str
    gpu_indices: list[int]
    cpu_indices: list[int]
    peers: list[AllocationShown]
    node_list: str
    placed_because: Union[str, None]
    gpu_memory: list[GpuMemoryUseShown]
    gpu_limits: Union[GpuLimitsShown, None]
    gpu_isolation: Union[Literal["none", "filter", "landlock"], None]
    parked: Union[ParkedMemoryShown, None]
    lends: bool
    move: Union[JobMovingShown, None]
    move_refused: str
    gpu_idle_seconds: Union[int, None]
    attempt: int
    retries: int
    pid: Union[int, None]
    log_path: Bytes
    spec: JobSpecShown
    outcome: Union[OutcomeShown, None]
    blockers: list[BlockerView]


class JobViewPart(TypedDict):
    id: int
    user: NotRequired[UserPart]
    status: NotRequired[Literal["Queued", "Hold", "Starting", "Running", "Suspended", "Completing", "Finished", "Failed", "Cancelled", "Timeout", "Lost"]]
    status_code: NotRequired[str]
    reason: NotRequired[str]
    submitted: NotRequired[str]
    started: NotRequired[Union[str, None]]
    ended: NotRequired[Union[str, None]]
    run_time_seconds: NotRequired[int]
    node: NotRequired[str]
    gpu_indices: NotRequired[list[int]]
    cpu_indices: NotRequired[list[int]]
    peers: NotRequired[list[AllocationPart]]
    node_list: NotRequired[str]
    placed_because: NotRequired[Union[str, None]]
    gpu_memory: NotRequired[list[GpuMemoryUsePart]]
    gpu_limits: NotRequired[Union[GpuLimitsPart, None]]
    gpu_isolation: NotRequired[Union[Literal["none", "filter", "landlock"], None]]
    parked: NotRequired[Union[ParkedMemoryPart, None]]
    lends: NotRequired[bool]
    move: NotRequired[Union[JobMovingPart, None]]
    move_refused: NotRequired[str]
    gpu_idle_seconds: NotRequired[Union[int, None]]
    attempt: NotRequired[int]
    retries: NotRequired[int]
    pid: NotRequired[Union[int, None]]
    log_path: NotRequired[Bytes]
    spec: NotRequired[JobSpecPart]
    outcome: NotRequired[Union[OutcomePart, None]]
    blockers: NotRequired[list[BlockerViewPart]]


class Jobs(TypedDict):
    apiVersion: NotRequired[Literal["gflow/v1"]]
    kind: NotRequired[Literal["Jobs"]]
    jobs: list[int]
    signal: NotRequired[int]
    at: NotRequired[Union[str, None]]


class Label(TypedDict):
    key: NotRequired[str]
    """name of the label"""
    value: NotRequired[str]
    """what it has to be"""


class LabelPart(TypedDict):
    key: NotRequired[str]
    """name of the label"""
    value: NotRequired[str]
    """what it has to be"""


class LabelShown(TypedDict):
    key: str
    """name of the label"""
    value: str
    """what it has to be"""


class Machine(TypedDict):
    apiVersion: Literal["gflow/v1"]
    kind: Literal["Machine"]
    nodes: list[NodeView]
    unhealthy: list[UnhealthyNodeShown]
    cpus: int
    cpus_free: int
    memory_bytes: int
    memory_free_bytes: int
    running: list[JobView]
    queued: int
    held: int
    revision: int


class MigDeviceShown(TypedDict):
    parent: str
    """UUID of the GPU it is cut from"""
    profile: str
    """how large it is, as 3g.20gb"""
    gpu_instance: int
    """number of the GPU instance"""
    compute_instance: int
    """number of the compute instance within it"""


class MigRoomView(TypedDict):
    gpu: str
    model_short: str
    profiles: list[str]
    trouble: str
    refused: str
    drained: bool
    drained_reason: str


class MonitoredGpuShown(TypedDict):
    index: int
    uuid: str
    gpu_type: str
    available: bool
    trouble: Union[str, None]
    gpu_utilization: Union[float, None]
    gpu_memory_usage: Union[float, None]
    memory_used_gb: Union[float, None]
    memory_total_gb: Union[float, None]
    temperature_celsius: Union[int, None]
    power_watts: Union[float, None]
    jobs: list[int]
    processes: int


class MonitoredNodeShown(TypedDict):
    node_name: str
    gpus: list[MonitoredGpuShown]


class Node(TypedDict):
    apiVersion: Literal["gflow/v1"]
    kind: Literal["Node"]
    name: str
    unreachable: Union[str, None]
    removed: Union[str, None]
    drained: bool
    drained_reason: str
    source: str
    note: str
    driver: Union[str, None]
    labels: list[LabelShown]
    devices: list[DeviceView]
    mig_room: list[MigRoomView]
    drained_absent: list[DrainShown]
    topology: TopologyView
    cpus: int
    cpus_free: int
    memory_bytes: int
    memory_free_bytes: int
    ready: bool
    unhealthy: Union[UnhealthyNodeShown, None]


class NodeEvent(TypedDict):
    apiVersion: Literal["gflow/v1"]
    kind: Literal["NodeEvent"]
    type: Literal["node.changed"]
    time: str
    node: str
    change: str
    gpu: Union[int, None]
    uuid: str
    reason: Union[str, None]
    by: Union[str, None]


class NodeStateView(TypedDict):
    name: str
    unreachable: Union[str, None]
    removed: Union[str, None]
    drained: bool
    drained_reason: str
    source: str
    note: str
    driver: Union[str, None]
    labels: list[LabelShown]
    devices: list[DeviceView]
    mig_room: list[MigRoomView]
    drained_absent: list[DrainShown]
    topology: TopologyView
    cpus: int
    cpus_free: int
    memory_bytes: int
    memory_free_bytes: int
    ready: bool
    unhealthy: Union[UnhealthyNodeShown, None]


class NodeTopologyView(TypedDict):
    node: str
    gpu_indices: list[int]
    topology: TopologyView


class NodeView(TypedDict):
    name: str
    unreachable: Union[str, None]
    removed: Union[str, None]
    drained: bool
    drained_reason: str
    source: str
    note: str
    driver: Union[str, None]
    labels: list[LabelShown]
    devices: list[DeviceView]
    mig_room: list[MigRoomView]
    drained_absent: list[DrainShown]
    topology: TopologyView
    cpus: int
    cpus_free: int
    memory_bytes: int
    memory_free_bytes: int


class Nodes(TypedDict):
    apiVersion: Literal["gflow/v1"]
    kind: Literal["Nodes"]
    nodes: list[NodeStateView]


class NumaCpusShown(TypedDict):
    node: int
    cpus: str


class OutcomePart(TypedDict):
    reason: NotRequired[Literal["exited", "signalled", "time_limit", "cancelled", "out_of_memory", "launch_failed", "supervisor_died", "rebooted", "dependency_failed", "not_started", "preempted"]]
    """why it ended"""
    exit_code: NotRequired[int]
    """of its first process"""
    signal: NotRequired[int]
    """that ended it; 0: none"""
    message: NotRequired[str]
    """what else is known"""
    run_time_seconds: NotRequired[float]
    """how long it ran, without suspension"""
    cpu_time_seconds: NotRequired[float]
    """CPU time of all its processes"""
    peak_memory_bytes: NotRequired[Union[int, None]]
    """most host memory it used"""
    peak_gpu_memory_bytes: NotRequired[Union[int, None]]
    """most memory it used on one of its GPUs"""


class OutcomeShown(TypedDict):
    reason: Literal["exited", "signalled", "time_limit", "cancelled", "out_of_memory", "launch_failed", "supervisor_died", "rebooted", "dependency_failed", "not_started", "preempted"]
    """why it ended"""
    exit_code: int
    """of its first process"""
    signal: int
    """that ended it; 0: none"""
    message: str
    """what else is known"""
    run_time_seconds: float
    """how long it ran, without suspension"""
    cpu_time_seconds: float
    """CPU time of all its processes"""
    peak_memory_bytes: Union[int, None]
    """most host memory it used"""
    peak_gpu_memory_bytes: Union[int, None]
    """most memory it used on one of its GPUs"""


class ParkedMemoryPart(TypedDict):
    state: NotRequired[Literal["none", "begun", "parked", "ending"]]
    bytes: NotRequired[int]
    refused: NotRequired[str]


class ParkedMemoryShown(TypedDict):
    state: Literal["none", "begun", "parked", "ending"]
    bytes: int
    refused: str


class PatchDependencies(TypedDict):
    jobs: NotRequired[list[int]]
    """jobs that have to finish first"""
    mode: NotRequired[Literal["all", "any"]]
    """whether all of them have to, or any"""
    auto_cancel: NotRequired[bool]
    """cancelled once that cannot happen any more"""


class PatchDependenciesShown(TypedDict):
    jobs: NotRequired[list[int]]
    """jobs that have to finish first"""
    mode: NotRequired[Literal["all", "any"]]
    """whether all of them have to, or any"""
    auto_cancel: NotRequired[bool]
    """cancelled once that cannot happen any more"""


class PatchJobSpecShown(TypedDict):
    name: NotRequired[str]
    """its name; one is made up for an empty one"""
    project: NotRequired[str]
    """the project it belongs to"""
    request: NotRequired[PatchRequestShown]
    """what it holds while it runs"""
    priority: NotRequired[int]
    """0 to 255, higher goes first"""
    time_limit_seconds: NotRequired[Union[int, None]]
    """time limit"""
    grace_seconds: NotRequired[int]
    """between SIGTERM and SIGKILL when it is stopped"""
    dependencies: NotRequired[PatchDependenciesShown]
    """which jobs have to finish first"""
    requeue: NotRequired[bool]
    """runs again if the machine or its supervisor goes down"""
    max_retries: NotRequired[int]
    """runs again up to so many times if it fails"""
    preemption: NotRequired[Literal["none", "requeue", "suspend"]]
    """what may be done to it for a job ahead of it"""
    preempt_signal: NotRequired[int]
    """sent instead of SIGTERM when it is preempted; 0 is SIGTERM"""
    max_concurrent: NotRequired[int]
    """most jobs of its group running at once; 0: no limit"""


class PatchRequest(TypedDict):
    gpus: NotRequired[int]
    """GPUs on each node"""
    gpu_share_parts: NotRequired[int]
    """share of each GPU (JSON: 10,000ths)"""
    gpu_share_limit_parts: NotRequired[int]
    """most of each GPU, where other jobs leave it (JSON: 10,000ths); 0: the share"""
    gpu_memory_bytes: NotRequired[int]
    """memory of each GPU that has to be free; 0: not declared"""
    gpu_mode: NotRequired[Literal["whole", "fraction", "time_slice"]]
    """whole devices, a share of them, or time slices"""
    gpu_vendor: NotRequired[str]
    """vendor of the GPUs; empty is any"""
    gpu_models: NotRequired[list[str]]
    """models of which any will do; empty is any"""
    see_all: NotRequired[bool]
    """sees every GPU and holds none"""
    cpus: NotRequired[int]
    """CPUs on each node; 0 is not counted"""
    memory_bytes: NotRequired[int]
    """host memory on each node; 0 is neither counted nor limited"""
    nodes: NotRequired[int]
    """nodes, all of them at once"""
    selector: NotRequired[list[Label]]
    """labels each of its nodes must have"""


class PatchRequestShown(TypedDict):
    gpus: NotRequired[int]
    """GPUs on each node"""
    gpu_share_parts: NotRequired[int]
    """share of each GPU (JSON: 10,000ths)"""
    gpu_share_limit_parts: NotRequired[int]
    """most of each GPU, where other jobs leave it (JSON: 10,000ths); 0: the share"""
    gpu_memory_bytes: NotRequired[int]
    """memory of each GPU that has to be free; 0: not declared"""
    gpu_mode: NotRequired[Literal["whole", "fraction", "time_slice"]]
    """whole devices, a share of them, or time slices"""
    gpu_vendor: NotRequired[str]
    """vendor of the GPUs; empty is any"""
    gpu_models: NotRequired[list[str]]
    """models of which any will do; empty is any"""
    see_all: NotRequired[bool]
    """sees every GPU and holds none"""
    cpus: NotRequired[int]
    """CPUs on each node; 0 is not counted"""
    memory_bytes: NotRequired[int]
    """host memory on each node; 0 is neither counted nor limited"""
    nodes: NotRequired[int]
    """nodes, all of them at once"""
    selector: NotRequired[list[LabelShown]]
    """labels each of its nodes must have"""


class PathSpeedsShown(TypedDict):
    PIX: int
    PXB: int
    PHB: int
    NODE: int
    SYS: int


class Payload(TypedDict):
    argv: list[Bytes]
    script: NotRequired[Union[Bytes, None]]
    environment: NotRequired[list[Bytes]]
    config_name: NotRequired[Union[Bytes, None]]
    config: NotRequired[Bytes]
    umask: NotRequired[int]


class Place(TypedDict):
    apiVersion: NotRequired[Literal["gflow/v1"]]
    kind: NotRequired[Literal["Place"]]
    request: Request
    name: NotRequired[str]
    priority: NotRequired[int]
    time_limit_seconds: NotRequired[Union[int, None]]
    hold: NotRequired[bool]
    begin: NotRequired[Union[str, None]]
    dependencies: NotRequired[Dependencies]
    group: NotRequired[str]
    max_concurrent: NotRequired[int]
    most: NotRequired[int]
    jobs: NotRequired[int]


class Placement(TypedDict):
    apiVersion: Literal["gflow/v1"]
    kind: Literal["Placement"]
    request: str
    words: str
    policy: str
    nodes: int
    fits: bool
    ranked: list[RankedNodeShown]
    starts: list[JobStartShown]
    limit: Union[BlockerView, None]
    blockers: list[BlockerView]
    cancelled: bool
    expected_start: Union[ExpectedStartShown, None]
    jobs_ahead: Union[int, None]


class Principal(TypedDict):
    apiVersion: Literal["gflow/v1"]
    kind: Literal["Principal"]
    name: str
    role: Literal["user", "operator", "administrator"]
    known_by: str
    scope: str
    credential: Union[str, None]
    max_priority: int
    projects: list[PrincipalViewProjectShown]
    gpus_held: float
    max_gpus: Union[int, None]


class PrincipalViewProjectShown(TypedDict):
    name: str
    max_priority: int


class Problem(TypedDict):
    apiVersion: Literal["gflow/v1"]
    kind: Literal["Problem"]
    type: str
    title: str
    status: int
    detail: str
    code: str
    exit_code: int
    errors: list[FieldErrorShown]
    after: NotRequired[int]
    instance: NotRequired[str]


class PytorchConfigShown(TypedDict):
    devices: list[str]
    memory_fraction: float
    amp: bool
    distributed: bool
    backend: str
    init_method: Union[str, None]
    world_size: int


class Queue(TypedDict):
    apiVersion: Literal["gflow/v1"]
    kind: Literal["Queue"]
    jobs: list[QueuedJobShown]


class QueuedJobShown(TypedDict):
    id: int
    expected_start: Union[ExpectedStartShown, None]


class RankedNodeShown(TypedDict):
    node: str
    gpu_indices: list[int]
    links_percent: Union[int, None]
    because: str
    score: int
    terms: list[ScoreTermShown]
    others: list[GpuSetShown]


class Request(TypedDict):
    gpus: NotRequired[int]
    """GPUs on each node"""
    gpu_share_parts: NotRequired[int]
    """share of each GPU (JSON: 10,000ths)"""
    gpu_share_limit_parts: NotRequired[int]
    """most of each GPU, where other jobs leave it (JSON: 10,000ths); 0: the share"""
    gpu_memory_bytes: NotRequired[int]
    """memory of each GPU that has to be free; 0: not declared"""
    gpu_mode: NotRequired[Literal["whole", "fraction", "time_slice"]]
    """whole devices, a share of them, or time slices"""
    gpu_vendor: NotRequired[str]
    """vendor of the GPUs; empty is any"""
    gpu_models: NotRequired[list[str]]
    """models of which any will do; empty is any"""
    see_all: NotRequired[bool]
    """sees every GPU and holds none"""
    cpus: NotRequired[int]
    """CPUs on each node; 0 is not counted"""
    memory_bytes: NotRequired[int]
    """host memory on each node; 0 is neither counted nor limited"""
    nodes: NotRequired[int]
    """nodes, all of them at once"""
    selector: NotRequired[list[Label]]
    """labels each of its nodes must have"""


class RequestPart(TypedDict):
    gpus: NotRequired[int]
    """GPUs on each node"""
    gpu_share_parts: NotRequired[int]
    """share of each GPU (JSON: 10,000ths)"""
    gpu_share_limit_parts: NotRequired[int]
    """most of each GPU, where other jobs leave it (JSON: 10,000ths); 0: the share"""
    gpu_memory_bytes: NotRequired[int]
    """memory of each GPU that has to be free; 0: not declared"""
    gpu_mode: NotRequired[Literal["whole", "fraction", "time_slice"]]
    """whole devices, a share of them, or time slices"""
    gpu_vendor: NotRequired[str]
    """vendor of the GPUs; empty is any"""
    gpu_models: NotRequired[list[str]]
    """models of which any will do; empty is any"""
    see_all: NotRequired[bool]
    """sees every GPU and holds none"""
    cpus: NotRequired[int]
    """CPUs on each node; 0 is not counted"""
    memory_bytes: NotRequired[int]
    """host memory on each node; 0 is neither counted nor limited"""
    nodes: NotRequired[int]
    """nodes, all of them at once"""
    selector: NotRequired[list[LabelPart]]
    """labels each of its nodes must have"""


class RequestShown(TypedDict):
    gpus: int
    """GPUs on each node"""
    gpu_share_parts: int
    """share of each GPU (JSON: 10,000ths)"""
    gpu_share_limit_parts: int
    """most of each GPU, where other jobs leave it (JSON: 10,000ths); 0: the share"""
    gpu_memory_bytes: int
    """memory of each GPU that has to be free; 0: not declared"""
    gpu_mode: Literal["whole", "fraction", "time_slice"]
    """whole devices, a share of them, or time slices"""
    gpu_vendor: str
    """vendor of the GPUs; empty is any"""
    gpu_models: list[str]
    """models of which any will do; empty is any"""
    see_all: bool
    """sees every GPU and holds none"""
    cpus: int
    """CPUs on each node; 0 is not counted"""
    memory_bytes: int
    """host memory on each node; 0 is neither counted nor limited"""
    nodes: int
    """nodes, all of them at once"""
    selector: list[LabelShown]
    """labels each of its nodes must have"""


class ScoreTermShown(TypedDict):
    name: str
    weight: float
    value: float


class SettingView(TypedDict):
    name: str
    value: str
    default: str
    origin: str
    type: str
    range: str
    applies: Literal["reload", "restart"]
    environment: str
    help: str


class Settings(TypedDict):
    apiVersion: Literal["gflow/v1"]
    kind: Literal["Settings"]
    settings: list[SettingView]


class Snapshot(TypedDict):
    apiVersion: Literal["gflow/v1"]
    kind: Literal["Snapshot"]
    version: int
    taken: str
    hostname: str
    next_id: int
    lived_seconds: Union[float, None]
    policy: list[LabelShown]
    nodes: list[SnapshotNodeShown]
    drains: list[DrainShown]
    unhealthy: list[SnapshotHealthShown]
    jobs: list[SnapshotJobShown]
    left_out: int


class SnapshotHealthShown(TypedDict):
    node: str
    reason: str
    failures: int
    retry_at_lived_seconds: float
    trial: Union[int, None]
    tried: list[int]


class SnapshotJobShown(TypedDict):
    id: int
    user: UserShown
    spec: JobSpecShown
    status: Literal["Queued", "Hold", "Starting", "Running", "Suspended", "Completing", "Finished", "Failed", "Cancelled", "Timeout", "Lost"]
    submitted: str
    attempts: int
    preemptions: int
    served_seconds: float
    served_gpu_seconds: Union[float, None]
    started: Union[str, None]
    run_time_seconds: float
    ended: Union[str, None]
    allocations: list[AllocationShown]
    lived_seconds: Union[float, None]
    ended_lived_seconds: Union[float, None]
    retries: int
    requeues: int
    not_before_lived_seconds: Union[float, None]
    preemption_lived_seconds: Union[float, None]
    victims: list[int]
    requeue_why: str
    held_why: str
    stop: Union[Literal["exited", "signalled", "time_limit", "cancelled", "out_of_memory", "launch_failed", "supervisor_died", "rebooted", "dependency_failed", "not_started", "preempted"], None]
    suspended: bool
    suspended_by_hand: bool
    suspended_seconds: float
    lends: bool
    reason: Union[Literal["exited", "signalled", "time_limit", "cancelled", "out_of_memory", "launch_failed", "supervisor_died", "rebooted", "dependency_failed", "not_started", "preempted"], None]
    peak_gpu_memory_bytes: int


class SnapshotNodeShown(TypedDict):
    name: str
    labels: list[LabelShown]
    source: str
    cpus: int
    memory_bytes: int
    devices: list[DeviceShown]
    topology: str
    link_mb_per_second: int
    path_mb_per_second: list[int]
    unreachable: Union[str, None]


class StartPlaceShown(TypedDict):
    node: str
    gpu_indices: list[int]


class Statistics(TypedDict):
    apiVersion: Literal["gflow/v1"]
    kind: Literal["Statistics"]
    time: str
    since: Union[str, None]
    until: Union[str, None]
    known_since: Union[str, None]
    others_jobs: Literal["none", "usage", "all"]
    total: UsageView
    by: Literal["none", "user", "project"]
    parts: list[UsageView]


class StatusCountsShown(TypedDict):
    Queued: int
    Hold: int
    Starting: int
    Running: int
    Suspended: int
    Completing: int
    Finished: int
    Failed: int
    Cancelled: int
    Timeout: int
    Lost: int


class Submit(TypedDict):
    apiVersion: NotRequired[Literal["gflow/v1"]]
    kind: NotRequired[Literal["Submit"]]
    items: list[SubmitRequestItem]


class SubmitAnswer(TypedDict):
    apiVersion: Literal["gflow/v1"]
    kind: Literal["SubmitAnswer"]
    items: list[SubmitAnswerItemShown]


class SubmitAnswerItemShown(TypedDict):
    id: int
    count: int
    name: str
    status: Literal["Queued", "Hold", "Starting", "Running", "Suspended", "Completing", "Finished", "Failed", "Cancelled", "Timeout", "Lost"]
    status_code: str
    reason: str
    advice: Union[str, None]


class SubmitRequestItemOf(TypedDict):
    spec: JobSpec
    payload: Payload
    tasks: NotRequired[Union[TaskRange, None]]
    depends_on_siblings: NotRequired[list[int]]


class SubmitRequestItemOf1(TypedDict):
    like: int
    name: NotRequired[str]
    command: NotRequired[Bytes]
    argv: NotRequired[list[Bytes]]
    environment: NotRequired[list[Bytes]]
    tasks: NotRequired[Union[TaskRange, None]]
    depends_on_siblings: NotRequired[list[int]]


SubmitRequestItem = Union["SubmitRequestItemOf", "SubmitRequestItemOf1"]


class SuggestionShown(TypedDict):
    action: Literal["update", "release", "resume"]
    changes: PatchJobSpecShown
    command: str
    text: str


class TaskRange(TypedDict):
    first: NotRequired[int]
    count: int
    step: NotRequired[int]


class TensorflowConfigShown(TypedDict):
    devices: list[str]
    memory_growth: bool
    memory_limit_mb: Union[int, None]
    mixed_precision_policy: str
    strategy: str


class TimeSliceShareShown(TypedDict):
    job: int
    time_parts: int


class TimesView(TypedDict):
    count: int
    mean: Union[float, None]
    p50: Union[float, None]
    p90: Union[float, None]
    p99: Union[float, None]
    max: Union[float, None]


class Token(TypedDict):
    apiVersion: Literal["gflow/v1"]
    kind: Literal["Token"]
    name: str
    user: str
    scope: Literal["read", "submit", "operate", "admin"]
    created: str
    expires: Union[str, None]
    expired: bool
    token: str


class TokenRequest(TypedDict):
    apiVersion: NotRequired[Literal["gflow/v1"]]
    kind: NotRequired[Literal["TokenRequest"]]
    name: str
    scope: NotRequired[Literal["read", "submit", "operate", "admin"]]
    expires_in_seconds: NotRequired[Union[int, None]]


class TokenView(TypedDict):
    name: str
    user: str
    scope: Literal["read", "submit", "operate", "admin"]
    created: str
    expires: Union[str, None]
    expired: bool


class Tokens(TypedDict):
    apiVersion: Literal["gflow/v1"]
    kind: Literal["Tokens"]
    tokens: list[TokenView]


class Topology(TypedDict):
    apiVersion: Literal["gflow/v1"]
    kind: Literal["Topology"]
    nodes: list[NodeTopologyView]


class TopologyView(TypedDict):
    gpus: int
    link_name: str
    links: list[list[int]]
    switch_links: list[int]
    paths: list[list[Literal["X", "PIX", "PXB", "PHB", "NODE", "SYS"]]]
    link_mb_per_second: int
    path_mb_per_second: PathSpeedsShown
    numa_nodes: list[Union[int, None]]
    numa_cpus: list[NumaCpusShown]


class UnhealthyNodeShown(TypedDict):
    node: str
    reason: str
    failures: int
    retry_at: Union[str, None]


class UnusablePart(TypedDict):
    gpu: NotRequired[int]
    trouble: NotRequired[str]
    drained: NotRequired[bool]
    drained_reason: NotRequired[str]
    processes: NotRequired[list[DeviceProcessPart]]


class UnusableShown(TypedDict):
    gpu: int
    trouble: str
    drained: bool
    drained_reason: str
    processes: list[DeviceProcessShown]


class Update(TypedDict):
    apiVersion: NotRequired[Literal["gflow/v1"]]
    kind: NotRequired[Literal["Update"]]
    jobs: list[int]
    name: NotRequired[str]
    """its name; one is made up for an empty one"""
    project: NotRequired[str]
    """the project it belongs to"""
    request: NotRequired[PatchRequest]
    """what it holds while it runs"""
    priority: NotRequired[int]
    """0 to 255, higher goes first"""
    time_limit_seconds: NotRequired[Union[int, None]]
    """time limit"""
    grace_seconds: NotRequired[int]
    """between SIGTERM and SIGKILL when it is stopped"""
    dependencies: NotRequired[PatchDependencies]
    """which jobs have to finish first"""
    requeue: NotRequired[bool]
    """runs again if the machine or its supervisor goes down"""
    max_retries: NotRequired[int]
    """runs again up to so many times if it fails"""
    preemption: NotRequired[Literal["none", "requeue", "suspend"]]
    """what may be done to it for a job ahead of it"""
    preempt_signal: NotRequired[int]
    """sent instead of SIGTERM when it is preempted; 0 is SIGTERM"""
    max_concurrent: NotRequired[int]
    """most jobs of its group running at once; 0: no limit"""


class UsageView(TypedDict):
    name: str
    states: StatusCountsShown
    wait_seconds: TimesView
    run_time_seconds: TimesView
    gpu_seconds: float
    cpu_seconds: float
    gpus_held: float


class UserPart(TypedDict):
    uid: NotRequired[int]
    """number of the account"""
    name: NotRequired[str]
    """name of the account"""


class UserShown(TypedDict):
    uid: int
    """number of the account"""
    name: str
    """name of the account"""


class Version(TypedDict):
    apiVersion: Literal["gflow/v1"]
    kind: Literal["Version"]
    version: str
