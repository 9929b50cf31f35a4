# SPDX-License-Identifier: Apache-2.0
"""What can go wrong: each with what was asked and what gflowd, or the API server of a Kubernetes cluster, said."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gflow import documents


_MOST_SHOWN = 200  # of a text that was taken for a request


class GflowError(Exception):
    """Of all of them."""

    _is_of_a_look = False  # which did nothing


class ConfigurationError(GflowError):
    """Which gflowd is meant, and how to reach it, cannot be told: a remote that is not known, a file others can read."""


class RequestError(GflowError, ValueError):
    """A text that asks for no GPUs: what is wrong with it, and where."""

    def __init__(self, text: str, what: str, instead: str = "", begin: int = 0, end: int = 0, is_whole: bool = False) -> None:
        self.text = text
        self.what = what
        self.instead = instead
        self.begin = begin
        """The characters that are wrong are text[begin:end]."""
        self.end = end
        self.is_whole = is_whole
        """`what` is all of it, as gflowd tells it, with text, place and a way out."""
        super().__init__(text, what, instead, begin, end, is_whole)

    def __str__(self) -> str:
        if self.is_whole:
            return self.what
        hint = f"; {self.instead}" if self.instead else ""
        shown = repr(self.text) if len(self.text) <= _MOST_SHOWN else f"{self.text[:_MOST_SHOWN]!r}..."
        return f"{shown}, column {self.begin + 1}: {self.what}{hint}"


class OptionError(GflowError, ValueError):
    """What a job is submitted with makes no sense: an amount of memory, a time, a job it waits for, a file."""


class NativeModuleMissing(GflowError, ImportError):
    """This installation of gflow has no native module for this Python."""


class Unreachable(GflowError):
    """Nobody answers there. Nothing was done."""


class ConnectionLost(GflowError):
    """gflowd went away in the middle of an answer. What may be asked twice was; of the rest nobody can say whether it
    was done: look before you ask again."""


class ServerTimeout(GflowError):
    """gflowd is there and does not answer."""


class WaitTimeout(GflowError, TimeoutError):
    """What was waited for did not happen in the time given. It goes on."""


class Problem(GflowError):
    """gflowd, or the API server of a Kubernetes cluster, refused. `code` is what to branch on; `request_id` finds the request in gflowd's log."""

    def __init__(self, document: Mapping[str, Any], asked: str, retry_after: Optional[float] = None) -> None:
        self._document = document
        self.asked = asked
        self.retry_after = retry_after
        """Seconds after which it may be otherwise, where gflowd says so: nothing was done."""
        self.status = int(document.get("status", 0))
        self.code = str(document.get("code", "failure"))
        self.detail = str(document.get("detail", ""))
        self.errors: list[documents.FieldErrorShown] = list(document.get("errors", []))
        self.request_id: Optional[str] = document.get("instance")
        super().__init__(self.detail)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._document, self.asked, self.retry_after), self.__dict__

    def __str__(self) -> str:
        request = f", request {self.request_id}" if self.request_id else ""
        return f"{self.detail} ({self.asked}: {self.status} {self.code}{request})"


class UsageError(Problem, ValueError):
    """What was asked is not right; `errors` has each field that is wrong."""


class Unauthenticated(Problem, PermissionError):
    """gflowd does not know who asks: a token that is wrong, was revoked or has expired."""


class PermissionDenied(Problem, PermissionError):
    """It is not for you."""


class NotFound(Problem, LookupError):
    """There is no such thing."""


class EventsGone(Problem):
    """What followed that event is not kept any more: read what you need anew, then listen from `after`."""

    def __init__(self, document: Mapping[str, Any], asked: str, retry_after: Optional[float] = None) -> None:
        super().__init__(document, asked, retry_after)
        self.after: Optional[int] = document.get("after")


class WrongState(Problem):
    """It is not in a state for that, or somebody changed it first (412)."""


class Infeasible(Problem):
    """It could never be done here, or is against a policy."""


class Exhausted(Problem):
    """Too much, or too many."""


class Unavailable(Problem):
    """gflowd cannot say now, as before its GPUs are known."""


_BY_CODE: dict[str, type[Problem]] = {
    "usage": UsageError,
    "permission": PermissionDenied,
    "not_found": NotFound,
    "wrong_state": WrongState,
    "exhausted": Exhausted,
    "unreachable": Unavailable,
    "key_reused": UsageError,
}
_BY_STATUS: dict[int, type[Problem]] = {401: Unauthenticated, 410: EventsGone, 503: Unavailable}


def problem_of(document: Mapping[str, Any], asked: str, retry_after: Optional[float] = None) -> Problem:
    """The exception of a problem document."""
    kind = _BY_STATUS.get(int(document.get("status", 0))) or _BY_CODE.get(str(document.get("code")), Problem)
    if kind is Problem and document.get("status") == 422:
        kind = Infeasible
    return kind(document, asked, retry_after)


class JobFailed(GflowError):
    """A job ended otherwise than well: `document` is all that is known of it, `log` the end of what it wrote."""

    def __init__(self, document: documents.Job, log: str = "") -> None:
        self.document = document
        self.log = log
        super().__init__(document, log)

    def __str__(self) -> str:
        outcome = self.document["outcome"]
        how = str(self.document["status"])
        if how == "Finished":
            how += " without a result: it ended its process itself, as sys.exit() and os._exit() do"
        elif outcome is not None and outcome["message"]:
            how += f": {outcome['message']}"
        elif outcome is not None and outcome["signal"]:
            how += f" by signal {outcome['signal']}"
        elif outcome is not None and outcome["exit_code"]:
            how += f" with exit code {outcome['exit_code']}"
        text = f"job {self.document['id']} {how}"
        return f"{text}\n{self.log}" if self.log else text


class NoGpus(GflowError):
    """What was asked for is not free, and was not waited for."""


class LeaseLost(GflowError):
    """The GPUs were taken back before they were given back, and others may have had them since."""

    def __init__(self, allocation_id: int, why: str) -> None:
        self.allocation_id = allocation_id
        self.why = why
        super().__init__(allocation_id, why)

    def __str__(self) -> str:
        return f"allocation {self.allocation_id} ended before it was given back: {self.why}"
