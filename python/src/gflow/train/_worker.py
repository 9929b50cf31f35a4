# SPDX-License-Identifier: Apache-2.0
"""One process of a training: python -m gflow.train._worker FOLDER RANK. It lives no longer than who started it."""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import sys
import threading
import traceback
from typing import Any, Optional

from gflow._worker import pickler
from gflow.train._run import is_out_of_memory


def run_file(folder: str) -> str:
    return os.path.join(folder, "run")


def result_file(folder: str, rank: int) -> str:
    return os.path.join(folder, f"{rank}.result")


def _end_with_parent(folder: str) -> None:
    """Its end of the pipe at standard input is closed when it is gone, whatever killed it. Nobody else removes the data then."""
    while os.read(0, 4096):
        pass
    shutil.rmtree(folder, ignore_errors=True)
    os.killpg(os.getpgid(0), signal.SIGKILL)


def _outcome(folder: str, rank: int, progress: Optional[int]) -> tuple[bool, bytes]:
    dumps = pickler().dumps
    try:
        with open(run_file(folder), "rb") as file:
            sys.path[:] = pickle.load(file)
            function = pickle.loads(pickle.load(file))
            run = pickle.load(file)
        value = function(run.on(rank, progress))
        return True, dumps((True, value if rank == 0 else None, "", False))
    except Exception as error:
        text = traceback.format_exc()
        is_memory = is_out_of_memory(error)
        told: Any = error
        try:
            pickle.loads(dumps(error))  # some can be written and not read
        except Exception:
            told = RuntimeError(f"{type(error).__name__}: {error}")
        return False, dumps((False, told, text, is_memory))


def main(folder: str, rank: int, progress: int) -> int:
    threading.Thread(target=_end_with_parent, args=(folder,), daemon=True).start()
    is_well, told = _outcome(folder, rank, progress)
    with open(result_file(folder, rank) + ".part", "wb") as file:
        file.write(told)
    os.replace(result_file(folder, rank) + ".part", result_file(folder, rank))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0 if is_well else 1)  # without the ends of frameworks, which may wait for processes that are gone


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
