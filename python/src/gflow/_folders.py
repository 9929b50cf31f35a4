# SPDX-License-Identifier: Apache-2.0
"""Where calls and what they come to lie: a folder of this user for each submission. It goes once each result was taken, or, where the program
that could have taken them has ended, with the next submission of another one after the end of its jobs."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pickle
import shutil
import threading
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast

from gflow import _worker
from gflow._servers import data_directory
from gflow.errors import GflowError

if TYPE_CHECKING:
    from gflow._calls import Calls
    from gflow._servers import Server
    from gflow._steps import Steps

_OWNER = ".owner"
_JOBS = "jobs"


class Left(NamedTuple):
    """What a call left."""

    is_well: bool
    value: Any
    """What it returned, or raised."""
    text: str
    attempt: int


class _Owner:
    """This process and those forked from it, as who holds a lock as long as one of them lives."""

    def __init__(self, home: Path) -> None:
        self.pid = os.getpid()
        self.name = uuid.uuid4().hex
        self.folders = 0
        self._path = home / f"{self.name}{_OWNER}"
        home.mkdir(parents=True, mode=0o700, exist_ok=True)
        unseen = home / f".{self.name}"
        self._file = os.open(unseen, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        with contextlib.suppress(OSError):  # a file system without locks: what is left there stays
            fcntl.flock(self._file, fcntl.LOCK_EX)
        unseen.rename(self._path)

    def close(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()
        os.close(self._file)


_lock = threading.Lock()
_owners: dict[Path, _Owner] = {}  # by where their folders are
_swept: set[tuple[int, Path]] = set()


class Folder:
    """The calls of one submission, by their index."""

    def __init__(self, count: int) -> None:
        self.lock = threading.RLock()
        """Held by who takes a result: of two one finds it."""
        self._home = data_directory() / "functions"
        self._waited = set(range(count))
        with _lock:
            self._owner = self._owner_there()
            self._owner.folders += 1
        self.path = self._home / f"{self._owner.name}-{uuid.uuid4().hex}"
        self.path.mkdir(mode=0o700)

    def _owner_there(self) -> _Owner:
        owner = _owners.get(self._home)
        if owner is None or owner.pid != os.getpid():
            owner = _owners[self._home] = _Owner(self._home)
        return owner

    def note_jobs(self, server: Server, jobs: Sequence[int]) -> None:
        """Whose end is that of the folder where nobody takes what they leave."""
        (self.path / _JOBS).write_text(json.dumps({"server": str(server), "jobs": list(jobs)}))

    def left(self, index: int) -> Left:
        """What a call came to. Errors: FileNotFoundError where it came to nothing, and what reading it raises."""
        with open(_worker.result_file(str(self.path), index), "rb") as file:
            is_well, text, attempt = pickle.load(file)
            if is_well:
                return Left(True, pickle.load(file), text, attempt)
            return Left(False, _exception_in(file, text), text, attempt)

    def drop(self, index: int) -> None:
        """Its result was taken, or nobody will. In a process that was forked from its own nothing happens."""
        if self._owner.pid != os.getpid():
            return
        with self.lock:
            if index not in self._waited:
                return
            self._waited.remove(index)
            if self._waited:
                with contextlib.suppress(OSError):
                    os.unlink(_worker.result_file(str(self.path), index))
                return
        self.remove()

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        with _lock:
            self._owner.folders -= 1
            if self._owner.folders == 0:
                _owners.pop(self._home, None)
                self._owner.close()


def _exception_in(file: BinaryIO, text: str) -> BaseException:
    """As it was raised; where it cannot be read here, as of a module that only the job has, what it said."""
    try:
        return cast("BaseException", pickle.load(file))
    except Exception as why:
        said = text.rstrip().rpartition("\n")[2]
        return RuntimeError(f"{said} (it cannot be read here: {why})")


@contextlib.contextmanager
def _left_alone(owner: Path) -> Iterator[bool]:
    """Whether the processes of an owner have ended. Nobody else sweeps behind them meanwhile."""
    try:
        file = os.open(owner, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        yield False
        return
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_alone = True
        except OSError:
            is_alone = False
        yield is_alone
    finally:
        os.close(file)


def swept(its: Calls, server: Server) -> Steps[None]:
    """Removes what programs that have ended left, of jobs that have, too. Once in a process."""
    home = data_directory() / "functions"
    if (os.getpid(), home) in _swept:
        return
    _swept.add((os.getpid(), home))
    for owner in home.glob(f"*{_OWNER}"):
        with _left_alone(owner) as is_alone:
            if is_alone:
                yield from _sweep_behind(its, server, owner)


def _sweep_behind(its: Calls, server: Server, owner: Path) -> Steps[None]:
    left = False
    for folder in owner.parent.glob(f"{owner.stem}-*"):
        try:
            is_over = yield from _is_over(its, server, folder)
        except (GflowError, OSError, ValueError):
            is_over = False
        if is_over:
            shutil.rmtree(folder, ignore_errors=True)
        left = left or not is_over
    if not left:
        owner.unlink(missing_ok=True)


def _is_over(its: Calls, server: Server, folder: Path) -> Steps[bool]:
    """Whether each of its jobs has ended; what gflowd does not know any more has."""
    told: dict[str, Any] = json.loads((folder / _JOBS).read_text())
    if told["server"] != str(server):
        return False
    return not (yield from its.unended(told["jobs"]))
