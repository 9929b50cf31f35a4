# SPDX-License-Identifier: Apache-2.0
"""Files of checkpoints: there whole or not at all, the newest few of them, each with its sum in its name."""

from __future__ import annotations

import logging
import os
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Optional

_LOGGER = logging.getLogger("gflow")
_NAME = re.compile(r"step-(\d{10})-([0-9a-f]{8})\.(\w+)")
_PIECE = 1 << 20


def sum_of(path: Path) -> str:
    total = 0
    with open(path, "rb") as file:
        while piece := file.read(_PIECE):
            total = zlib.crc32(piece, total)
    return f"{total:08x}"


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Files:
    """The checkpoints of a training in a directory."""

    def __init__(self, directory: os.PathLike[str] | str, suffix: str, keep: int) -> None:
        if keep < 1:
            raise ValueError(f"keep={keep}: at least one checkpoint has to be kept")
        self.directory = Path(directory)
        self._suffix = suffix
        self._keep = keep

    def _found(self) -> list[tuple[int, Path]]:
        """Newest first."""
        if not self.directory.is_dir():
            return []
        matches = ((_NAME.fullmatch(path.name), path) for path in self.directory.iterdir())
        found = [(int(match[1]), path) for match, path in matches if match and match[3] == self._suffix]
        return sorted(found, key=lambda one: (one[0], one[1].stat().st_mtime_ns), reverse=True)

    def whole(self) -> Iterator[tuple[int, Path]]:
        """Newest first, without those that are broken."""
        for step, path in self._found():
            name = _NAME.fullmatch(path.name)
            assert name is not None
            if sum_of(path) == name[2]:
                yield step, path
            else:
                _LOGGER.warning("checkpoint '%s' is broken and ignored", path)

    def newest(self) -> Optional[tuple[int, Path]]:
        return next(self.whole(), None)

    def tidy(self) -> None:
        """What a process that was killed had begun is removed; call it where no other writes."""
        for path in self.directory.glob(f".part-*.{self._suffix}"):
            path.unlink(missing_ok=True)

    def save(self, step: int, write: Callable[[Path], object]) -> Path:
        """`write` fills the file it is given."""
        self.directory.mkdir(parents=True, exist_ok=True)
        part = self.directory / f".part-{os.getpid()}.{self._suffix}"
        try:
            write(part)
            _sync(part)
            path = self.directory / f"step-{step:010}-{sum_of(part)}.{self._suffix}"
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)
        _sync(self.directory)
        self._forget_all_but(path)
        return path

    def _forget_all_but(self, saved: Path) -> None:
        others = [path for _, path in self._found() if path != saved]
        for path in others[self._keep - 1:]:
            path.unlink(missing_ok=True)
