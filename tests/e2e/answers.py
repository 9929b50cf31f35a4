# SPDX-License-Identifier: Apache-2.0
"""HTTP over the daemon's socket as it comes: answers that are read bit by bit."""

import socket

from described import check_told
from machine import PATIENCE


class Cut(Exception):
    """The connection ended before the answer did."""


class Answer:
    """One request and what comes back. `read()` gives a piece at a time; b"" is the end."""

    def __init__(self, path, target, version="1.1", **headers):
        self.connection = socket.socket(socket.AF_UNIX)
        self.connection.connect(str(path))
        self.connection.settimeout(PATIENCE)
        lines = [f"GET {target} HTTP/{version}", "Host: gflow"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.connection.sendall("\r\n".join([*lines, "", ""]).encode())
        self.waiting = b""
        self.head = self._until(b"\r\n\r\n").decode()
        first, *rest = self.head.split("\r\n")
        self.status = int(first.split()[1])
        self.headers = {name.lower(): value.strip() for name, value in (line.split(":", 1) for line in rest if line)}
        self.left = int(self.headers["content-length"]) if "content-length" in self.headers else None
        check_told("GET", target, self.status, self.headers)
        self.is_chunked = self.headers.get("transfer-encoding") == "chunked"

    def _more(self):
        got = self.connection.recv(65536)
        if not got:
            raise Cut(self.waiting)
        self.waiting += got

    def _until(self, end):
        while end not in self.waiting:
            self._more()
        found, self.waiting = self.waiting.split(end, 1)
        return found

    def _take(self, size):
        while len(self.waiting) < size:
            self._more()
        taken, self.waiting = self.waiting[:size], self.waiting[size:]
        return taken

    def read(self):
        if self.is_chunked:
            piece = self._take(int(self._until(b"\r\n"), 16))
            assert self._take(2) == b"\r\n"
            return piece
        if self.left is not None:
            if self.left and not self.waiting:
                self._more()
            piece = self._take(min(self.left, len(self.waiting)))
            self.left -= len(piece)
            return piece
        try:
            while not self.waiting:
                self._more()
        except Cut:
            return b""
        return self._take(len(self.waiting))

    def rest(self):
        """All that comes until the end."""
        text = b""
        while piece := self.read():
            text += piece
        return text

    def until(self, end):
        """What comes until it ends with `end`."""
        text = b""
        while not text.endswith(end):
            piece = self.read()
            assert piece, text
            text += piece
        return text

    def close(self):
        self.connection.close()
