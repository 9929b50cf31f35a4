# SPDX-License-Identifier: Apache-2.0
"""HTTP over the socket of a machine's gflowd, as the user who runs it."""

import gzip
import http.client
import json
import socket

from described import check_told
from machine import PATIENCE


class Connection(http.client.HTTPConnection):
    """HTTP over the socket: as the user who runs gflowd."""

    def __init__(self, path):
        super().__init__("localhost", timeout=PATIENCE)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)
        self.sock.settimeout(PATIENCE)


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()
        if self.headers["Content-Encoding"] == "gzip":
            self.body = gzip.decompress(self.body)

    @property
    def document(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"{self.status} {dict(self.headers)} {self.body[:2000]}"


def ask(machine, method, target, body=None, **headers):
    connection = Connection(machine.socket)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    if body is not None and "Content-Type" not in named:
        named["Content-Type"] = "application/json"
    connection.request(method, target, body, named)
    answer = Answer(connection.getresponse())
    connection.close()
    check_told(method, target, answer.status, answer.headers)
    return answer
