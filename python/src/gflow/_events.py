# SPDX-License-Identifier: Apache-2.0
"""What happens, as gflowd tells it: server-sent events."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Optional, Union

if TYPE_CHECKING:
    from gflow import documents

Event = Union["documents.JobEvent", "documents.DeviceEvent", "documents.NodeEvent"]
"""What happened to a job has an `id` that only goes up, and `events(after=id)` goes on behind it; what happened to devices and nodes has
none and is not kept."""


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
