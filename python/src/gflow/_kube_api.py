# SPDX-License-Identifier: Apache-2.0
"""Kubernetes' API, as JSON and in pages, and what goes wrong in gflow's words. Every request goes through KubernetesApi.ask()."""

from __future__ import annotations

import contextlib
import email.utils
import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from typing import TYPE_CHECKING, Any, Optional, TypeVar, Union
from urllib.parse import quote, urlencode

from gflow._kube_config import Loader, authorization, host_of, imported, meant, printable
from gflow.errors import (
    ConnectionLost, GflowError, Problem, ServerTimeout, Unauthenticated, Unavailable, Unreachable, problem_of,
)

if TYPE_CHECKING:
    from gflow._kube_http import Answer

T = TypeVar("T")

_GONE, _MISSING, _UNAUTHORIZED, _TOO_MANY, _UNAVAILABLE, _BAD_ANSWER = 410, 404, 401, 429, 503, 502
_MOST_STARTS = 3  # of a list whose pages expired while they were read
_PAUSES = (0.0, 0.2, 0.4, 0.8, 1.6)  # before it is tried again, where nobody says how long
_OLDEST = 1577836800  # 2020: what a server says that is before it is no time
_CODES = {400: "usage", 403: "permission", 404: "not_found", 409: "wrong_state", 422: "usage", 429: "exhausted"}
_WAYS_OUT = {
    401: "the credentials are wrong or have expired: try `kubectl auth whoami`",
    403: "packaging/kubernetes/rbac.yaml has what gflow needs",
}


def path_of(*words: str) -> str:
    """A path of its parts, none of which is several."""
    return "/" + "/".join(quote(word, safe="") for word in words)


@dataclass(frozen=True)
class Told:
    """An answer, and when the API server gave it, by its own clock, in whole seconds (0 where it does not say), and when it was asked, by
    this machine's time.monotonic()."""

    document: Any
    time: int
    asked: float


def is_known_not_done(error: GflowError) -> bool:
    """Whether what was asked is certainly not done, and will not be. All else may have been, or may still be."""
    if error._is_of_a_look:
        return True
    if isinstance(error, Problem):
        return error.status < 500 or (error.status == _UNAVAILABLE and error.retry_after is not None)
    return not isinstance(error, (ConnectionLost, ServerTimeout))


def _time_of(headers: Mapping[str, str]) -> int:
    try:
        told = int(email.utils.parsedate_to_datetime(str(headers.get("Date"))).timestamp())
    except (TypeError, ValueError, OverflowError, IndexError):
        return 0
    return told if told >= _OLDEST else 0


def _seconds_of(written: str) -> Optional[float]:
    """Of Retry-After; None where it makes no sense."""
    if written.isascii() and written.isdecimal() and len(written) < 10:
        return float(written)
    try:
        return max(email.utils.parsedate_to_datetime(written).timestamp() - time.time(), 0.0)
    except (TypeError, ValueError, OverflowError, IndexError):
        return None


def _read(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _problem(answer: Answer, asked: str) -> Problem:
    """Of what the API server refused with."""
    told = _read(answer.body)
    said = told.get("message") if isinstance(told, dict) else None
    status = answer.status
    way_out = f"; {_WAYS_OUT[status]}" if status in _WAYS_OUT else ""
    if 300 <= status < 400:
        way_out = ": it sends to another address, where no credentials are taken"
    document = {"status": status, "detail": printable(said or answer.reason or "refused") + way_out, "code": _CODES.get(status, "failure")}
    after = _seconds_of(str(answer.headers.get("Retry-After", "")).strip())
    return Unavailable(document, asked, after) if status >= 500 else problem_of(document, asked, after)


def makes_no_sense(what: str, asked: str) -> Problem:
    """Of an answer that is none of Kubernetes: something else is there, or between."""
    return Unavailable({"status": _BAD_ANSWER, "code": "failure", "detail": f"this is no answer of a Kubernetes API server: {printable(what)}"}, asked)


def understood(asked: str, read: Callable[[], T]) -> T:
    """What is read of an answer. Errors: Problem of one that lacks what each has."""
    try:
        return read()
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError, RecursionError) as error:
        raise makes_no_sense(f"{type(error).__name__}: {error}", asked) from None


def _lost(error: Exception, who: str, asked: str) -> GflowError:
    """Of urllib3's."""
    import urllib3.exceptions as http

    cause: Any = getattr(error, "reason", None) if isinstance(error, http.MaxRetryError) else error
    said = printable(cause)
    # A connection that breaks while it is used may break after the request was done.
    broke = isinstance(cause, http.SSLError) and any(word in said.upper() for word in ("BAD_RECORD_MAC", "EOF", "BAD RECORD MAC"))
    if not broke and isinstance(cause, (http.NewConnectionError, http.ConnectTimeoutError, http.ProxyError, http.SSLError)):
        return Unreachable(f"{who} cannot be reached: {said} ({asked})")
    if isinstance(cause, (http.ReadTimeoutError, TimeoutError)):
        return ServerTimeout(f"{who} does not answer ({asked})")
    return ConnectionLost(f"{who} went away before it had answered: {said} ({asked})")


def _wait_before_again(error: GflowError, method: str, pause: float) -> Optional[float]:
    """Seconds; None where it is not to be tried again."""
    import urllib3.exceptions as http

    if isinstance(error, Problem):
        return error.retry_after if error.status in (_TOO_MANY, _UNAVAILABLE) else None
    if isinstance(error, Unreachable):  # a certificate that is wrong stays so
        return pause if isinstance(error.__cause__, (http.NewConnectionError, http.ConnectTimeoutError)) else None
    return pause if isinstance(error, ConnectionLost) and method == "GET" else None


class _Connection:
    """Of one process: connections are not shared with forks."""

    def __init__(self, load: Loader, seconds: Callable[[], float]) -> None:
        from gflow._kube_http import bound

        self.pid = os.getpid()
        package = imported()
        self._configuration = package.client.Configuration()
        load(self._configuration, seconds)
        self.host = host_of(self._configuration)
        self._configuration.retries = False
        self.manager = bound(package.client.rest.RESTClientObject(self._configuration).pool_manager)

    def headers(self) -> dict[str, str]:
        return {"Accept": "application/json", "User-Agent": "gflow", **authorization(self._configuration)}

    def send(self, method: str, target: str, headers: Mapping[str, str], body: Optional[Mapping[str, Any]], asked: str) -> Answer:
        """Errors: GflowError."""
        import urllib3.exceptions as http

        from gflow._kube_http import send

        kind = {"Content-Type": "application/merge-patch+json" if method == "PATCH" else "application/json"} if body is not None else {}
        written = None if body is None else json.dumps(body).encode()
        try:
            return send(self.manager, method, self.host + target, {**headers, **kind}, written)
        except (http.HTTPError, HTTPException, OSError, ValueError) as error:
            raise _lost(error, f"Kubernetes at {self.host}", asked) from error


class KubernetesApi:
    """It may be used by several threads, and after a fork.

    timeout: seconds for each request: for all tries of it, and what it waits for between them."""

    def __init__(self, context: Optional[str], kubeconfig: Union[str, os.PathLike[str], None], timeout: float, page_size: int) -> None:
        self._load = meant(context, kubeconfig)
        self.timeout = timeout
        self._page_size = page_size
        self._connection = self._connect()

    def _connect(self) -> _Connection:
        from gflow._kube_http import left

        def seconds() -> float:
            return min(left(), self.timeout)

        with self.within(self.timeout):
            return _Connection(self._load, seconds)

    @property
    def host(self) -> str:
        return self._connection.host

    def close(self) -> None:
        self._connection.manager.clear()

    def within(self, seconds: float) -> contextlib.AbstractContextManager[None]:
        """What this thread asks meanwhile takes no longer all together."""
        from gflow._kube_http import within

        return within(seconds)

    def ask(self, method: str, path: str, body: Optional[Mapping[str, Any]] = None, *,
            query: Optional[Mapping[str, object]] = None, may_be_missing: bool = False) -> Told:
        """What is known not to be done is tried again, and what only looks, as long as there is time. A document of None: there is no such
        thing, where that was asked. Errors: GflowError; is_known_not_done() says which of them nothing was done with."""
        asked = f"{method} {path}"
        with self.within(self.timeout):
            try:
                return self._asked(asked, method, path + (f"?{urlencode(query)}" if query else ""), body, may_be_missing)
            except GflowError as error:
                error._is_of_a_look = method == "GET"
                raise

    def _asked(self, asked: str, method: str, target: str, body: Optional[Mapping[str, Any]], may_be_missing: bool) -> Told:
        from gflow._kube_http import left

        is_reloaded = False
        for pause in _PAUSES:
            connection = self._here()
            headers = connection.headers()
            began = time.monotonic()
            try:
                return self._once(connection.send(method, target, headers, body, asked), asked, began, may_be_missing)
            except GflowError as error:
                wait = _wait_before_again(error, method, pause)
                if isinstance(error, Unauthenticated) and not is_reloaded and self._has_other_credentials(headers):
                    is_reloaded, wait = True, 0.0
                if wait is None or wait >= left() or pause == _PAUSES[-1]:
                    raise
            time.sleep(wait)
        raise AssertionError("a request that was neither answered nor refused")

    def _here(self) -> _Connection:
        """That of this process. Of threads that come at once each may make one, and one of them stays."""
        connection = self._connection
        if connection.pid != os.getpid():
            connection = self._connection = self._connect()
        return connection

    def _has_other_credentials(self, refused: Mapping[str, str]) -> bool:
        """Whether there are by now, as a token of a file that was replaced."""
        connection = self._connect()
        if connection.headers() == refused:
            return False
        self._connection = connection
        return True

    def _once(self, answer: Answer, asked: str, began: float, may_be_missing: bool) -> Told:
        document = _read(answer.body)
        if not isinstance(document, dict) and answer.status < 300:
            raise makes_no_sense(answer.body[:200].decode(errors="replace") or "nothing", asked)
        if answer.status < 300:
            return Told(document, _time_of(answer.headers), began)
        if may_be_missing and answer.status == _MISSING and isinstance(document, dict) and document.get("reason") == "NotFound":
            return Told(None, _time_of(answer.headers), began)
        raise _problem(answer, asked)

    def listed(self, path: str, **query: Any) -> list[dict[str, Any]]:
        """All of a kind. Errors: GflowError."""
        return self.listed_at(path, **query)[0]

    def listed_at(self, path: str, **query: Any) -> tuple[list[dict[str, Any]], int]:
        """The same, and when that was: read page by page, as they were at one time; anew where pages expired meanwhile."""
        for start in range(1, _MOST_STARTS + 1):
            try:
                return self._pages(path, **query)
            except Problem as error:
                if error.status != _GONE:
                    raise
                if start == _MOST_STARTS:
                    detail = f"the list expires before it is read: {error.detail}"
                    raise Unavailable({"status": _UNAVAILABLE, "code": "failure", "detail": detail}, error.asked) from error
        raise AssertionError("a list that was neither read nor refused")

    def _pages(self, path: str, **query: Any) -> tuple[list[dict[str, Any]], int]:
        found: list[dict[str, Any]] = []
        more: Optional[str] = None
        time: Optional[int] = None
        while True:
            told = self.ask("GET", path, query={"limit": self._page_size, **({"continue": more} if more else {}), **query})
            time = told.time if time is None else time
            items, metadata = told.document.get("items"), told.document.get("metadata")
            if not isinstance(items, list) or not isinstance(metadata, dict):
                raise makes_no_sense("a list without items", f"GET {path}")
            found += items
            if more and more == metadata.get("continue"):
                raise makes_no_sense("a list that goes on with itself", f"GET {path}")
            more = metadata.get("continue")
            if not more:
                return found, time
