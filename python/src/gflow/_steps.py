# SPDX-License-Identifier: Apache-2.0
"""What a call does, apart from how: a generator of steps, which a thread (`_sync`) or an event loop (`_async`) takes.

Each step is answered with what came of it, or what went wrong is thrown into the generator."""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Optional, TypeVar, Union

from gflow._http import Answer, Ask
from gflow.errors import ConnectionLost, GflowError, Problem, Unreachable, WaitTimeout

T = TypeVar("T")

_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 1.0
_NOT_NOW = (429, 503)


@dataclass
class Pause:
    """Some seconds of nothing."""

    seconds: float


@dataclass
class Opened:
    """An answer that comes piece by piece."""

    answer: Answer
    stream: Any


@dataclass
class More:
    """The next piece of a body: b"" at its end, None where there was none within `patience` seconds."""

    stream: Any
    patience: float


@dataclass
class Give:
    """Something for whoever iterates."""

    value: Any


Step = Union[Ask, Pause, More, Give]
Steps = Generator[Step, Any, T]


class Course:
    """The steps of an iteration, one after the other."""

    def __init__(self, steps: Steps[None]) -> None:
        self._steps = steps
        self._given: Optional[Give] = None
        self.came: Any = None
        """Of the last step, or what went wrong with it."""

    def next_step(self) -> Step:
        """Errors: StopIteration behind the last; what the steps raise."""
        given, self._given = self._given, None
        if given is not None:
            return given
        came, self.came = self.came, None
        return self._steps.throw(came) if isinstance(came, GflowError) else self._steps.send(came)

    def opening_step(self) -> Optional[Step]:
        """The next, until something is there: a first piece, which of events says where they begin, or what is given. Nothing is lost.

        Errors: what the steps raise."""
        if isinstance(self.came, bytes) and self.came:
            return None
        try:
            step = self.next_step()
        except StopIteration:
            return None
        if isinstance(step, Give):
            self._given = step
            return None
        return step


class Deadline:
    """When waiting is over; None is never."""

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._end = None if seconds is None else time.monotonic() + seconds

    def left(self, most: float) -> float:
        return most if self._end is None else max(0.0, min(most, self._end - time.monotonic()))

    @property
    def is_over(self) -> bool:
        return self._end is not None and time.monotonic() >= self._end

    def check(self, what: str) -> None:
        if self.is_over:
            raise WaitTimeout(f"{what} within {self._seconds:g} s")


class Patience:
    """For a gflowd that is away: how long it is tried again, with longer and longer pauses."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.found()

    def found(self) -> None:
        """It is there."""
        self._deadline: Deadline | None = None
        self._pause = _FIRST_PAUSE

    def lost(self, error: Exception) -> Pause:
        """It is not: the pause before the next try, or the error where these were enough."""
        self._deadline = self._deadline or Deadline(self._seconds)
        if self._deadline.is_over:
            raise error
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)
        return Pause(self._deadline.left(self._pause))

    def refused(self, problem: Problem) -> Pause:
        """It is there and has no time (429, 503): the pause it asks for, or the problem where that would be too long, or is no matter of time."""
        if problem.retry_after is None or problem.status not in _NOT_NOW:
            raise problem
        self._deadline = self._deadline or Deadline(self._seconds)
        pause = max(problem.retry_after, _FIRST_PAUSE)
        if self._deadline.left(pause) < pause:
            raise problem
        return Pause(pause)


def asked(ask: Ask, patience: float) -> Steps[Answer]:
    """Its answer, the problem it carries raised. What may be asked twice is, while gflowd restarts; whatever it had no time for is."""
    waiting = Patience(patience)
    while True:
        try:
            answer: Answer = yield ask
            return answer.checked()
        except (Unreachable, ConnectionLost) as error:
            if not ask.may_be_repeated:
                raise
            pause = waiting.lost(error)
        except Problem as problem:
            pause = waiting.refused(problem)
        yield pause
