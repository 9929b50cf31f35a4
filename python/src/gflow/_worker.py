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


def _outcome(folder: str, index: int) -> tuple[bool, str, bytes]:
    """Whether it went well, the traceback if it did not, and what it returned or raised."""
    dumps = pickler().dumps
    try:
        function, arguments, named = _call_of(folder, index)
        return True, "", dumps(function(*arguments, **named))
    except Exception as error:
        text = traceback.format_exc()
        sys.stderr.write(text)
        return False, text, _written(error, text)


def _written(error: Exception, text: str) -> bytes:
    """Some can be written and not read, or are something else then."""
    try:
        told: bytes = pickler().dumps(error)
        if type(pickle.loads(told)) is type(error):
            return told
    except Exception:
        pass
    try:
        said = repr(error)
    except Exception:
        said = text.rstrip().rpartition("\n")[2]
    return pickle.dumps(RuntimeError(said))


def main(folder: str) -> int:
    """Its result is there whole or not at all."""
    index = int(os.environ["GFLOW_ARRAY_TASK_ID"])
    if not os.path.isdir(folder):
        sys.exit("this call is not there any more, as its result was taken, or its program has ended: call the function again")
    try:
        os.unlink(result_file(folder, index))  # of the attempt before
    except FileNotFoundError:
        pass
    is_well, text, told = _outcome(folder, index)
    part = f"{result_file(folder, index)}.{os.getpid()}"
    with open(part, "wb") as file:
        file.write(pickle.dumps((is_well, text, int(os.environ.get("GFLOW_ATTEMPT", "1")))))
        file.write(told)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, result_file(folder, index))
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
