# SPDX-License-Identifier: Apache-2.0
"""Requests over urllib3 that end in time, however slowly the other side speaks."""

from __future__ import annotations

import contextlib
import io
import math
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPResponse
from typing import Any, Optional

import urllib3
import urllib3.connection

_CONNECT_SECONDS = 5
_LEAST_SECONDS = 0.001
_PIECE = 1 << 16


class _Limit(threading.local):
    until = math.inf  # by time.monotonic()


_limit = _Limit()


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """What this thread asks meanwhile takes no longer all together, and no longer than others around it allow."""
    before = _limit.until
    _limit.until = min(before, time.monotonic() + seconds)
    try:
        yield
    finally:
        _limit.until = before


def left() -> float:
    """Seconds, 0 when time is up."""
    return max(_limit.until - time.monotonic(), 0.0)


class _Bounded(io.RawIOBase):
    """A socket's stream whose reads all together end in time: a socket's own timeout begins anew with each byte."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._until = _limit.until

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> Optional[int]:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        self._stream._sock.settimeout(None if left == math.inf else max(left, _LEAST_SECONDS))
        read: Optional[int] = self._stream.readinto(into)
        return read

    def close(self) -> None:
        super().close()
        self._stream.close()


class _Response(HTTPResponse):
    def __init__(self, sock: Any, *words: Any, **options: Any) -> None:
        super().__init__(sock, *words, **options)
        if hasattr(getattr(self.fp, "raw", None), "_sock"):
            self.fp = io.BufferedReader(_Bounded(self.fp.detach()))


class HTTPConnection(urllib3.connection.HTTPConnection):
    response_class = _Response


class HTTPSConnection(urllib3.connection.HTTPSConnection):
    response_class = _Response


class _HTTPPool(urllib3.HTTPConnectionPool):
    ConnectionCls: Any = HTTPConnection


class _HTTPSPool(urllib3.HTTPSConnectionPool):
    ConnectionCls: Any = HTTPSConnection


@dataclass(frozen=True)
class Answer:
    status: int
    reason: str
    headers: Mapping[str, str]
    body: bytes


def bound(manager: Any) -> Any:
    """The same pool manager: its answers are read in time."""
    if not type(manager).__name__.startswith("SOCKS"):  # which has connections of its own
        manager.pool_classes_by_scheme = {"http": _HTTPPool, "https": _HTTPSPool}
    return manager


def send(manager: Any, method: str, url: str, headers: Mapping[str, str], body: Optional[bytes]) -> Answer:
    """Once, and as far as within() allows: neither repeated nor redirected. Errors: those of urllib3."""
    seconds = min(max(left(), _LEAST_SECONDS), threading.TIMEOUT_MAX)
    timeout = urllib3.Timeout(connect=min(seconds, _CONNECT_SECONDS), read=seconds)
    answer = manager.urlopen(method, url, body=body, headers=dict(headers), timeout=timeout, retries=False, redirect=False, preload_content=False)
    try:
        pieces = list(answer.stream(_PIECE))
    except BaseException:
        answer.close()  # what else comes is no answer to the next request
        raise
    answer.release_conn()
    return Answer(int(answer.status), str(answer.reason or ""), answer.headers, b"".join(pieces))
