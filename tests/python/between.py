# SPDX-License-Identifier: Apache-2.0
"""A proxy between a client and the API server of a test, where answers are delayed, lost and changed."""

import contextlib
import http.server
import json
import ssl
import threading
import urllib.error
import urllib.request

from machine import PATIENCE

LOST = None
"""In place of an answer: the connection is closed without one."""


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """Who went away has."""


class Asked(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        """Nobody reads it."""

    def answer(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length) if length else None
        between = self.server.between
        between.seen.append((self.command, self.path, self.headers.get("Authorization", "")))
        if "watch=" in self.path:
            told = between.watch_hook(self.path)
            if told is None:
                self.pass_on()
                return
        else:
            told = between.hook(self.command, self.path, lambda: between.forward(self, body))
        if told is LOST:
            self.close_connection = True
            return
        status, headers, body = told
        self.send_response_only(status)
        for name, value in headers.items():
            if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(body)

    def pass_on(self):
        """A watch, line by line, for as long as both sides have it."""
        self.close_connection = True
        with contextlib.suppress(OSError), self.server.between.ask(self, None) as answer:
            self.send_response_only(answer.status)
            self.send_header("Connection", "close")
            self.end_headers()
            for line in answer:
                assert self.server.between.watches_flow.wait(PATIENCE)
                self.wfile.write(line)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer


class Between:
    """hook: (method, path, forward) -> (status, headers, body) or LOST; forward() asks the API server. watch_hook: of a watch,
    path -> the same, or None for that of the API server. While watches_flow is not set, these tell nothing."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.hook = lambda method, path, forward: forward()
        self.watch_hook = lambda path: None
        self.watches_flow = threading.Event()
        self.watches_flow.set()
        self.seen = []
        self._server = Server(("127.0.0.1", 0), Asked)
        self._server.between = self
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def ask(self, handler, body):
        kept = {name: value for name, value in handler.headers.items() if name.lower() in ("authorization", "content-type", "accept")}
        asked = urllib.request.Request(self.cluster.url + handler.path, data=body, method=handler.command, headers=kept)
        trusted = ssl.create_default_context(cafile=self.cluster.root / "certs/apiserver.crt")
        return urllib.request.urlopen(asked, context=trusted, timeout=PATIENCE)

    def forward(self, handler, body):
        try:
            with self.ask(handler, body) as answer:
                return answer.status, dict(answer.headers), answer.read()
        except urllib.error.HTTPError as error:
            return error.code, dict(error.headers), error.read()

    def once(self, which, told):
        """Answers the first request that is `which` with what told(forward) does, and lets all others through."""
        done = []

        def hook(method, path, forward):
            if not done and which(method, path):
                done.append(path)
                return told(forward)
            return forward()

        self.hook = hook
        return done

    def close(self):
        self._server.shutdown()
        self._server.server_close()


def lost_after(forward):
    """Done, and nobody hears of it."""
    forward()
    return LOST


def status(code, message):
    return code, {"Content-Type": "application/json"}, json.dumps({"kind": "Status", "code": code, "message": message}).encode()


BROKEN = status(500, "a webhook failed")
CONFLICT = status(409, "the object has been modified")


def is_binding(method, path, namespace=""):
    return method == "POST" and path.endswith("/binding") and f"/namespaces/{namespace}" in path


class Held:
    """The first request that is `which` waits at the proxy, and is answered by told(forward) when it goes on."""

    def __init__(self, between, which, told=lambda forward: forward()):
        self.there = threading.Event()
        self._go = threading.Event()

        def wait(forward):
            self.there.set()
            assert self._go.wait(PATIENCE)
            return told(forward)

        between.once(which, wait)

    def reached(self):
        assert self.there.wait(PATIENCE)

    def go(self):
        self._go.set()
