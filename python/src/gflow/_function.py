# SPDX-License-Identifier: Apache-2.0
"""`@gflow.function`: a function that can be sent to jobs, and how a job finds it again."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Optional, TypeVar, cast, overload

if TYPE_CHECKING:
    from typing_extensions import Concatenate, ParamSpec

    from gflow.functions import FunctionJob, Results
    from gflow.submission import SubmitOptions

    P = ParamSpec("P")
    Q = ParamSpec("Q")
else:
    P = TypeVar("P")

R = TypeVar("R")

_MOST_DECORATORS = 100


class _Place(NamedTuple):
    """What is so many `__wrapped__` below that which a module has by this name."""

    module: str
    name: str
    depth: int


def found_again(module: str, name: str, depth: int) -> Any:
    """In a job, which imports the module."""
    __import__(module)
    return functools.reduce(getattr, [*name.split("."), *["__wrapped__"] * depth], cast("Any", sys.modules[module]))


def _place_of(function: object) -> Optional[_Place]:
    """None of what a job could not import: what a script, a notebook or another function has."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if module not in sys.modules or module == "__main__" or not isinstance(name, str):
        return None
    try:
        found = found_again(module, name, 0)
    except AttributeError:
        return None
    for depth in range(_MOST_DECORATORS):
        if found is function:
            return _Place(module, name, depth)
        if not hasattr(found, "__wrapped__"):
            break
        found = found.__wrapped__
    return None


class _ByPlace:
    """Read back, it is what is at that place."""

    def __init__(self, place: _Place) -> None:
        self._place = place

    def __reduce__(self) -> tuple[Any, ...]:
        return found_again, tuple(self._place)


def by_place(function: Any) -> Any:
    """Itself where its own name leads to it or nothing does; else, as where that leads to what was made of it by decorators, what can be
    pickled in its place."""
    place = _place_of(function)
    return _ByPlace(place) if place is not None and place.depth else function


class Function(Generic[P, R]):
    """A function or method that knows what it needs as a job. Called, it runs here."""

    __name__: str
    __qualname__: str
    __wrapped__: Callable[P, R]

    def __init__(self, function: Callable[P, R], options: SubmitOptions) -> None:
        self._given: Any = function
        called: Any = function.__func__ if isinstance(function, (classmethod, staticmethod)) else function
        self._function: Callable[P, R] = called
        self._options = options
        functools.update_wrapper(self, called, updated=())

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._function(*args, **kwargs)

    @overload
    def __get__(self, instance: None, owner: Optional[type] = None) -> Function[P, R]: ...
    @overload
    def __get__(self: Function[Concatenate[Any, Q], R], instance: object, owner: Optional[type] = None) -> Function[Q, R]: ...
    def __get__(self, instance: object, owner: Optional[type] = None) -> Function[Any, R]:
        """As a method: a job gets its object, too."""
        whose = (owner or type(instance)) if isinstance(self._given, classmethod) else instance
        if whose is None or isinstance(self._given, staticmethod):
            return self
        return Function(types.MethodType(self, whose), self._options)

    def submit(self, *args: P.args, **kwargs: P.kwargs) -> FunctionJob[R]:
        from gflow._default import default_client
        from gflow.functions import submit_calls

        return submit_calls(default_client(), self, [(args, kwargs)], self._options)[0]

    def map(self, items: Iterable[Any]) -> Results[R]:
        from gflow._default import default_client
        from gflow.functions import map_calls

        return map_calls(default_client(), self, [((item,), {}) for item in items], self._options)

    def __reduce__(self) -> tuple[Any, ...]:
        """By its place where it has one, else as what it is made of."""
        place = _place_of(self)
        if place is not None:
            return found_again, tuple(place)
        method = self._given
        if isinstance(method, types.MethodType) and isinstance(method.__func__, Function):
            if isinstance(method.__self__, type):
                return getattr, (method.__self__, self.__name__)
            return Function.__get__, (method.__func__, method.__self__)
        return Function, (by_place(method), self._options)
