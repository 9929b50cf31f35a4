# SPDX-License-Identifier: Apache-2.0
"""The processes of a training: begun together, ended together, and never left behind."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Optional

from gflow._worker import pickler
from gflow.errors import GflowError
from gflow.functions import RemoteTraceback, pickled
from gflow.train import _worker

if TYPE_CHECKING:
    from gflow.train._run import Algorithm, TrainingRun


_OF_OTHERS = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")  # this process may be one of several itself


class TrainingFailed(GflowError):
    """A process of a training ended otherwise than well, as by a signal."""


class OutOfMemory(TrainingFailed):
    """There was too little memory for it."""


class TrainingStopped(GflowError):
    """Nobody wants it any more."""


class Processes:
    """Started with `environment`, they are ended by `stop()`, which may be called from any thread."""

    def __init__(self, function: Algorithm, run: TrainingRun, environment: Mapping[str, str]) -> None:
        self._run = run
        self._folder = tempfile.mkdtemp(prefix="gflow-training-")
        self._environment = environment
        self._started: list[subprocess.Popen[bytes]] = []
        self._failed: Optional[tuple[int, int]] = None  # the first that did, and how
        self._stop_lock = threading.Lock()
        self._stop_reader, self._stop_writer = os.pipe()
        try:
            self._write(function)
        except BaseException:
            self._clean_up()
            raise

    def stop(self) -> None:
        """Errors: none, also after its end."""
        with self._stop_lock:
            if self._stop_writer >= 0:
                os.write(self._stop_writer, b"x")

    def outcome(self, on_progress: Callable[[int, Mapping[str, float]], object]) -> Any:
        """What the first of them returned. Errors: what one of them raised, OutOfMemory, TrainingFailed, TrainingStopped."""
        progress_reader, progress_writer = os.pipe()
        try:
            try:
                for rank in range(self._run.world_size):
                    self._started.append(self._start(rank, progress_writer))
            finally:
                os.close(progress_writer)
            self._wait(progress_reader, on_progress)
            return self._result()
        finally:
            os.close(progress_reader)
            self._clean_up()

    def _write(self, function: Algorithm) -> None:
        path = [os.path.abspath(one or os.curdir) for one in sys.path]
        with open(_worker.run_file(self._folder), "wb") as file:
            pickle.dump(path, file)
            pickle.dump(pickled(function), file)
            file.write(pickler().dumps(self._run, protocol=5))

    def _start(self, rank: int, progress: int) -> subprocess.Popen[bytes]:
        environment = {name: value for name, value in os.environ.items() if name not in _OF_OTHERS} | {**self._environment}
        package = str(Path(__file__).parents[2])
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [package, environment.get("PYTHONPATH", "")]))
        if self._run.world_size > 1:
            environment.setdefault("OMP_NUM_THREADS", str(max(len(os.sched_getaffinity(0)) // self._run.world_size, 1)))
            environment |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(self._run.world_size)}
        command = [sys.executable, "-m", "gflow.train._worker", self._folder, str(rank), str(progress)]
        return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, pass_fds=[progress], start_new_session=True)

    def _wait(self, progress: int, on_progress: Callable[[int, Mapping[str, float]], object]) -> None:
        """Until all have ended well, one has not, or nobody wants them."""
        with contextlib.ExitStack() as closed:
            selector = closed.enter_context(selectors.DefaultSelector())
            reader = closed.enter_context(os.fdopen(os.dup(progress), "rb", buffering=0))
            selector.register(self._stop_reader, selectors.EVENT_READ)
            selector.register(reader, selectors.EVENT_READ)
            for rank, one in enumerate(self._started):
                ended = os.pidfd_open(one.pid)
                closed.callback(os.close, ended)
                selector.register(ended, selectors.EVENT_READ, rank)
            left, told = len(self._started), Lines(on_progress)
            while left:
                for key, _ in selector.select():
                    if key.fd == self._stop_reader:
                        raise TrainingStopped("the training was stopped")
                    if key.fileobj is reader:
                        if not told.read(reader):
                            selector.unregister(reader)
                        continue
                    selector.unregister(key.fileobj)
                    left -= 1
                    code = _code(self._started[key.data])
                    if code != 0:
                        self._failed = key.data, code
                        return
            while reader in selector.get_map() and told.read(reader):
                pass

    def _result(self) -> Any:
        rank, code = self._failed or (0, 0)
        try:
            with open(_worker.result_file(self._folder, rank), "rb") as file:
                is_well, value, text, is_memory = pickle.load(file)
        except FileNotFoundError:
            raise TrainingFailed(f"process {rank} of the training ended {_how(code)}") from None
        if is_well:
            return value
        if is_memory:
            raise OutOfMemory(str(value)) from RemoteTraceback(text)
        raise value from RemoteTraceback(text)

    def _clean_up(self) -> None:
        for one in self._started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(one.pid, signal.SIGKILL)  # also what it has started
            one.wait()
            assert one.stdin is not None
            one.stdin.close()
        with self._stop_lock:
            os.close(self._stop_reader)
            os.close(self._stop_writer)
            self._stop_writer = -1
        shutil.rmtree(self._folder, ignore_errors=True)


class Lines:
    """Reports, as they come in pieces."""

    def __init__(self, on_progress: Callable[[int, Mapping[str, float]], object]) -> None:
        self._on_progress = on_progress
        self._rest = b""

    def read(self, reader: IO[bytes]) -> bool:
        """False at their end."""
        piece = reader.read(65536)
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            epoch, values = json.loads(line)
            self._on_progress(epoch, values)
        return bool(piece)


def _code(ended: subprocess.Popen[bytes]) -> int:
    """As Popen has it. It is left to be waited for, so that its process group is its own until then."""
    told = os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    assert told is not None
    return told.si_status if told.si_code == os.CLD_EXITED else -told.si_status


def _how(code: int) -> str:
    return f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
