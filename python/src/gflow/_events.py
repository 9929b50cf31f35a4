# SPDX-License-Identifier: Apache-2.0
"""What happens, as gflowd tells it: server-sent events."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal, Optional, TypedDict, Union

if TYPE_CHECKING:
    from gflow import documents

JobEventType = Literal[
    "job.submitted", "job.held", "job.released", "job.changed", "job.starting", "job.started", "job.stopping",
    "job.suspended", "job.resumed", "job.requeued", "job.ended",
]


class Ending(TypedDict):
    reason: str
    exit_code: int
    signal: int


class JobEvent(TypedDict):
    """Something that happened to a job. `id` only goes up; `events(after=id)` goes on behind it."""

    id: int
    type: JobEventType
    time: str
    job: int
    user: documents.UserShown
    name: str
    allocation: bool
    status: str
    status_code: str
    attempt: int
    node: Optional[str]
    gpu_indices: list[int]
    outcome: Optional[Ending]


class DeviceEvent(TypedDict):
    """A GPU that came, went, broke or moved: measured, so it has no id and is not kept."""

    type: Literal["device.changed"]
    time: str
    node: str
    gpu: int
    uuid: str
    quantity: Literal["present", "usable", "utilization", "memory_used", "power"]
    before: Optional[int]
    now: Optional[int]


Event = Union[JobEvent, DeviceEvent]


class Reader:
    """Reads events of the bytes of a stream."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[str] = []
        self._id: Optional[int] = None
        self.last_id: Optional[int] = None
        """Beyond which to go on: of the last event that came whole."""

    def feed(self, piece: bytes) -> list[Event]:
        *lines, self._rest = (self._rest + piece).split(b"\n")
        events: list[Event] = []
        for line in lines:
            self._take(line.rstrip(b"\r").decode(errors="replace"), events)
        return events

    def _take(self, line: str, events: list[Event]) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            if self._id is not None:
                self.last_id = self._id
            if self._data:
                events.append(json.loads("\n".join(self._data)))
            self._data = []
        elif name == "data":
            self._data.append(value)
        elif name == "id" and value.isdigit():
            self._id = int(value)
