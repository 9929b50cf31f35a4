# SPDX-License-Identifier: Apache-2.0
"""What a job of a function runs: python -m gflow._worker FOLDER. Which call it is says GFLOW_ARRAY_TASK_ID."""

from __future__ import annotations

import os
import pickle
import sys
import traceback
from array import array
from typing import Any


def calls_file(folder: str) -> str:
    return os.path.join(folder, "calls")


def places_file(folder: str) -> str:
    """Where in the file of calls each begins, and where the last one ends."""
    return os.path.join(folder, "places")


def result_file(folder: str, index: int) -> str:
    return os.path.join(folder, f"{index}.result")


def pickler() -> Any:
    """cloudpickle, which takes functions of notebooks and scripts, where it is installed."""
    try:
        import cloudpickle  # type: ignore[import-not-found,import-untyped,unused-ignore] # pyright: ignore[reportMissingImports]
    except ModuleNotFoundError:
        return pickle
    return cloudpickle


def _call_of(folder: str, index: int) -> Any:
    places = array("Q")
    with open(places_file(folder), "rb") as file:
        places.frombytes(file.read())
    with open(calls_file(folder), "rb") as file:
        shared = file.read(places[0])
        file.seek(places[index])
        own = file.read(places[index + 1] - places[index])
    path, function = pickle.loads(shared)  # the path first, as the function is looked for on it
    sys.path[:] = path
    arguments, named = pickle.loads(own)
    return pickle.loads(function), arguments, named


def _outcome(folder: str, index: int) -> tuple[bool, bytes]:
    """Whether it went well, and what is left: that, the value or the exception, its traceback and the attempt."""
    dumps = pickler().dumps
    attempt = int(os.environ.get("GFLOW_ATTEMPT", "1"))
    try:
        function, arguments, named = _call_of(folder, index)
        return True, dumps((True, function(*arguments, **named), "", attempt))
    except Exception as error:
        text = traceback.format_exc()
        sys.stderr.write(text)
        try:
            told = dumps((False, error, text, attempt))
            pickle.loads(told)  # some can be written and not read
        except Exception:
            told = dumps((False, RuntimeError(repr(error)), text, attempt))
        return False, told


def main(folder: str) -> int:
    """Its result is there whole or not at all."""
    index = int(os.environ["GFLOW_ARRAY_TASK_ID"])
    if not os.path.isdir(folder):
        sys.exit("this call is not there any more, as its result was taken, or its program has ended: call the function again")
    try:
        os.unlink(result_file(folder, index))  # of the attempt before
    except FileNotFoundError:
        pass
    is_well, told = _outcome(folder, index)
    part = f"{result_file(folder, index)}.{os.getpid()}"
    with open(part, "wb") as file:
        file.write(told)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, result_file(folder, index))
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
