# SPDX-License-Identifier: Apache-2.0
"""HTTP/1.1 without a socket: what is sent, and a reader of what comes back."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Optional

from gflow.errors import ConnectionLost, GflowError, problem_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_MOST_HEAD = 64 * 1024


@dataclass
class Ask:
    """A request."""

    method: str
    target: str
    document: Optional[object] = None
    headers: dict[str, str] = field(default_factory=dict)
    patience: float = 60.0
    """Seconds gflowd may be silent."""
    is_stream: bool = False
    """Answered piece by piece."""
    is_idempotent: bool = False
    """Twice is the same as once, though neither its method nor a key says so."""
    times_sent: int = 0

    @property
    def may_be_repeated(self) -> bool:
        """Whether twice is the same as once."""
        return self.method in ("GET", "HEAD") or "Idempotency-Key" in self.headers or self.is_idempotent

    def __str__(self) -> str:
        return f"{self.method} {self.target}"

    def encoded(self, host: str, token: str) -> bytes:
        """As it is sent, which is counted."""
        self.times_sent += 1
        body = b""
        headers = {"Host": host, "Accept": "*/*", **self.headers}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        if self.document is not None:
            body = json.dumps(self.document, separators=(",", ":")).encode("utf-8", "surrogateescape")
            headers["Content-Type"] = "application/json"
        if self.method not in ("GET", "HEAD"):
            headers["Content-Length"] = str(len(body))
        lines = [f"{self.method} {self.target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
        if any(not line.isprintable() for line in lines):
            raise GflowError(f"not to be sent as it would be several lines: {self!s}")
        return "\r\n".join([*lines, "", ""]).encode() + body


@dataclass
class Answer:
    """What came back."""

    asked: Ask
    status: int
    headers: Mapping[str, str]
    body: bytes = b""

    def document(self) -> Any:
        try:
            return json.loads(self.body) if self.body else None
        except ValueError as error:
            raise GflowError(f"the answer to {self.asked!s} is no JSON: {error}") from error

    def checked(self) -> Answer:
        """Itself; the problem it carries is raised."""
        if self.status < 400:
            return self
        document: dict[str, Any] = {"detail": self.body[:500].decode(errors="replace")}
        try:
            told = json.loads(self.body)
        except ValueError:
            told = None
        if isinstance(told, dict):  # else another program listens there
            document.update(told)
        document["status"] = self.status
        after = self.headers.get("retry-after", "")
        raise problem_of(document, str(self.asked), float(after) if after.isascii() and after.isdigit() else None)


class Reader:
    """Reads one answer of what a connection brings."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._buffer = bytearray()
        self._left: Optional[int] = None  # of a body or chunk whose length is told
        self._is_chunked = False
        self._status = 0
        self.headers: Optional[dict[str, str]] = None
        self.is_done = False
        self.has_begun = False

    @property
    def answer(self) -> Answer:
        return Answer(self._ask, self._status, self.headers or {})

    @property
    def may_go_on(self) -> bool:
        """Whether the connection can take another request."""
        return self.is_done and not self._buffer and (self.headers or {}).get("connection", "").lower() != "close"

    def feed(self, data: bytes) -> bytes:
        """More of it; what of the body is known now."""
        self.has_begun = self.has_begun or bool(data)
        self._buffer += data
        try:
            if self.headers is None and not self._read_head():
                return b""
            return self._chunks() if self._is_chunked else self._plain()
        except ValueError as error:  # a length that is no number
            raise GflowError(f"the answer to {self._ask!s} is no HTTP: {error}") from error

    def end(self) -> None:
        """The connection is over."""
        if self.headers is not None and self._left is None and not self._is_chunked:
            self.is_done = True
        if not self.is_done:
            raise ConnectionLost(f"gflowd went away before it had answered {self._ask!s}")

    def _read_head(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > _MOST_HEAD:
                raise GflowError("what answers there does not speak HTTP")
            return False
        first, *lines = self._buffer[:end].decode("latin-1").split("\r\n")
        del self._buffer[: end + 4]
        words = first.split(" ", 2)
        if len(words) < 2 or not words[0].startswith("HTTP/1.") or not words[1].isdigit():
            raise GflowError("what answers there does not speak HTTP")
        self._status = int(words[1])
        if self._status == 100:
            return self._read_head()
        self.headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        self._is_chunked = self.headers.get("transfer-encoding", "").lower() == "chunked"
        if self._ask.method == "HEAD" or self._status in (204, 304):
            self._is_chunked, self._left = False, 0
        elif "content-length" in self.headers:
            self._left = int(self.headers["content-length"])
        return True

    def _take(self, most: int) -> bytes:
        taken = bytes(self._buffer[:most])
        del self._buffer[:most]
        return taken

    def _plain(self) -> bytes:
        if self._left is None:
            return self._take(len(self._buffer))
        taken = self._take(self._left)
        self._left -= len(taken)
        self.is_done = self._left == 0
        return taken

    def _chunks(self) -> bytes:
        pieces = []
        while not self.is_done:
            if self._left is None and not self._begin_chunk():
                break
            if self._left:
                taken = self._take(self._left)
                self._left -= len(taken)
                pieces.append(taken)
            if self._left or len(self._buffer) < 2:
                break
            del self._buffer[:2]  # its line end
            self._left = None
        return b"".join(pieces)

    def _begin_chunk(self) -> bool:
        end = self._buffer.find(b"\r\n")
        if end < 0:
            return False
        size = int(self._buffer[:end].split(b";")[0], 16)
        if size:
            del self._buffer[: end + 2]
            self._left = size
            return True
        trailer = self._buffer.find(b"\r\n\r\n", end)
        if trailer >= 0:
            del self._buffer[: trailer + 4]
            self.is_done = True
        return False
