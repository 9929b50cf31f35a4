# SPDX-License-Identifier: Apache-2.0
"""HTTP over sockets that block."""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import ssl
import struct
import threading
import time
from collections.abc import Iterator
from typing import Any, Optional, TypeVar

from gflow._http import Answer, Ask, Reader
from gflow._loopback import is_stranger, server_uid
from gflow._servers import Server
from gflow._steps import Course, Give, More, Opened, Pause, Step, Steps
from gflow.errors import ConnectionLost, GflowError, ServerTimeout, Unreachable

T = TypeVar("T")

CONNECT_SECONDS = 10
KEPT_SECONDS = 20  # gflowd closes what is idle for 30 s
MOST_IDLE = 8
PIECE = 65536


def unreachable(server: Server, why: object) -> Unreachable:
    way = "start it with 'gflowd up'" if server.socket else "'gflowd status' says there where it listens"
    return Unreachable(f"gflowd does not answer at {server}: {why}; {way}")


def tls_context() -> ssl.SSLContext:
    """Whom to believe is said by the fingerprint, not by an authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def check_certificate(server: Server, certificate: Optional[bytes]) -> None:
    """Nothing was sent yet: neither is the token."""
    met = "SHA256:" + hashlib.sha256(certificate or b"").hexdigest()
    if met.lower() != server.fingerprint.lower():
        raise GflowError(
            f"{server} shows another certificate than it had ({met}, not {server.fingerprint}): nothing was sent. "
            "Compare with 'gflowd status' there; if it is right, 'gctl remote remove' and 'gctl remote add'")


def check_port(server: Server, connection: socket.socket) -> None:
    """Nothing was sent yet, as to a socket of somebody else."""
    uid = server_uid(connection)
    if is_stranger(uid):
        raise GflowError(f"user {uid} serves {server} and is neither root nor you, so nothing is sent there: 'gflowd status' says where "
                         "gflowd listens, and that another program has its port")


def connect_unix(server: Server, *, may_wait: bool = True) -> socket.socket:
    """Waits for its turn. One that may not wait is turned away while many connect: BlockingIOError."""
    try:
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    except OSError as error:
        raise Unreachable(f"no connection to {server} can be made: {error.strerror}; 'ulimit -n' says how many files a process "
                          "may have open, and raises it") from error
    try:
        made.setblocking(may_wait)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", CONNECT_SECONDS, 0))
        made.connect(server.socket)
        _, uid = _peer_of(made)
        if uid not in (0, os.geteuid()):
            raise GflowError(f"user {uid} listens at {server.socket} and is neither root nor you, so nothing is sent "
                             "there: unset GFLOW_SOCKET, or check who made that socket")
    except OSError as error:
        made.close()
        if isinstance(error, BlockingIOError) and not may_wait:
            raise
        raise unreachable(server, error.strerror or error) from error
    except GflowError:
        made.close()
        raise
    return made


def _peer_of(connection: socket.socket) -> tuple[int, int]:
    """Pid and uid of who listens there; the pid is 0 where it is none of the pids this process can name."""
    pid, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return pid, uid


def shares_processes(server: Server) -> bool:
    """Whether a pid means to gflowd what it means here, which it does not from a container with pids of its own."""
    if not server.is_here:
        return False
    try:
        with connect_unix(server) as connection:
            return _peer_of(connection)[0] != 0
    except Unreachable:
        return True  # whatever is asked next says so


def _connect(server: Server) -> socket.socket:
    if server.socket:
        return connect_unix(server)
    try:
        made = socket.create_connection((server.host, server.port), CONNECT_SECONDS)
        try:
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if not server.fingerprint:
                check_port(server, made)
                return made
            wrapped = tls_context().wrap_socket(made, server_hostname=server.host)
        except BaseException:
            made.close()
            raise
    except OSError as error:
        raise unreachable(server, error.strerror or error) from error
    try:
        check_certificate(server, wrapped.getpeercert(binary_form=True))
    except GflowError:
        wrapped.close()
        raise
    return wrapped


class Connection:
    """One, and the answer that is being read from it."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._socket = _connect(server)
        self._lock = threading.RLock()  # of close(), which may come from another thread, and of:
        self._is_closed = False
        self._is_used = False
        self._pid = os.getpid()
        self.idle_since = 0.0
        self.reader: Reader

    def ask(self, ask: Ask) -> None:
        """Returns once the head of the answer is there; what came of its body with it is in `begun`."""
        self.reader = Reader(ask)
        try:
            with self._used():
                self._socket.settimeout(ask.patience)
                self._socket.sendall(ask.encoded(self._server.authority, self._server.token))
        except TimeoutError as error:
            raise ServerTimeout(f"{self._server} does not take {ask!s}") from error
        except OSError:
            pass  # one that refuses early stops reading: its answer may be there
        self.begun = b""
        while self.reader.headers is None:
            self.begun = self._receive(f"does not answer {ask!s}")

    @contextlib.contextmanager
    def _used(self) -> Iterator[None]:
        """Who closes it meanwhile wakes this one, and leaves it its socket: its number would be another's at once, which this one would wait for.

        Errors: ConnectionLost where it was closed before."""
        with self._lock:
            if self._is_closed:
                raise ConnectionLost(f"the connection to {self._server} was closed")
            self._is_used = True
        try:
            yield
        finally:
            with self._lock:
                self._is_used = False
                if self._is_closed:
                    self._socket.close()

    def _receive(self, silence: str, patience: Optional[float] = None) -> bytes:
        if self._pid != os.getpid():  # what was read here would be missing there
            raise ConnectionLost(f"this connection to {self._server} is of the process that this one was forked from")
        try:
            with self._used():
                if patience is not None:
                    self._socket.settimeout(patience)
                data = self._socket.recv(PIECE)
        except TimeoutError as error:
            raise ServerTimeout(f"{self._server} {silence}") from error
        except OSError as error:
            raise ConnectionLost(f"the connection to {self._server} broke: {error.strerror or error}") from error
        if not data:
            self.reader.end()
            return b""
        return self.reader.feed(data)

    def read(self, patience: float) -> Optional[bytes]:
        """The next piece of the body: b"" at its end, None where there was none in time."""
        piece, self.begun = self.begun, b""
        while not piece and not self.reader.is_done:
            try:
                piece = self._receive("is silent", patience or 0.001)
            except ServerTimeout:
                return None
        return piece

    def answer(self) -> Answer:
        """All of it."""
        answer = self.reader.answer
        pieces = [self.begun]
        while not self.reader.is_done:
            pieces.append(self._receive("does not go on with its answer"))
        answer.body = b"".join(pieces)
        return answer

    def close(self) -> None:
        """Also from another thread, which wakes the one that reads."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            try:
                if self._pid == os.getpid():  # to the process this one was forked from it stays open
                    self._socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            if not self._is_used or self._pid != os.getpid():
                self._socket.close()


class Driver:
    """Takes the steps of calls, on whatever thread they come from."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._lock = threading.Lock()
        self._idle: list[Connection] = []
        self._pid = os.getpid()

    def run(self, steps: Steps[T]) -> T:
        """What a call returns."""
        try:
            step = next(steps)
            while True:
                try:
                    came = self._take(step)
                except GflowError as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(came)
        except StopIteration as done:
            result: T = done.value
            return result
        finally:
            steps.close()

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _take(self, step: Step) -> Any:
        if isinstance(step, Pause):
            return time.sleep(step.seconds)
        if isinstance(step, Ask):
            return self._exchange(step)
        raise AssertionError(step)

    def _exchange(self, ask: Ask) -> Answer:
        connection = self._kept() if ask.may_be_repeated else None
        if connection is not None:
            try:
                return self._exchange_on(connection, ask)
            except ConnectionLost:
                if connection.reader.has_begun:
                    raise
        return self._exchange_on(Connection(self.server), ask)

    def _exchange_on(self, connection: Connection, ask: Ask) -> Answer:
        try:
            connection.ask(ask)
            answer = connection.answer()
        except BaseException:
            connection.close()
            raise
        self._keep(connection)
        return answer

    def _kept(self) -> Optional[Connection]:
        with self._lock:
            if self._pid != os.getpid():  # those of a process this one was forked from are its own
                self._idle, self._pid = [], os.getpid()
            while self._idle:
                connection = self._idle.pop()
                if time.monotonic() - connection.idle_since < KEPT_SECONDS:
                    return connection
                connection.close()
        return None

    def _keep(self, connection: Connection) -> None:
        connection.idle_since = time.monotonic()
        with self._lock:
            if connection.reader.may_go_on and len(self._idle) < MOST_IDLE and self._pid == os.getpid():
                self._idle.append(connection)
                return
        connection.close()


class Iteration(Iterator[T]):
    """What the steps of a call give, one by one. `close()` ends it, also from another thread."""

    def __init__(self, driver: Driver, steps: Steps[None]) -> None:
        self._driver = driver
        self._course = Course(steps)
        self._stream: Optional[Connection] = None
        self.is_closed = False

    def __iter__(self) -> Iteration[T]:
        return self

    def __enter__(self) -> Iteration[T]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def __next__(self) -> T:
        while not self.is_closed:
            try:
                step = self._course.next_step()
            except BaseException:
                self.close()
                raise
            if isinstance(step, Give):
                given: T = step.value
                return given
            self._answer(step)
        raise StopIteration

    def begin(self) -> Iteration[T]:
        """Asks now, and not when the first is wanted: what happens from here on is in it, also in a process that is forked before.

        Errors: those of the first, as Unreachable of a gflowd that stays away."""
        try:
            while (step := self._course.opening_step()) is not None:
                self._answer(step)
        except BaseException:
            self.close()
            raise
        return self

    def _answer(self, step: Step) -> None:
        try:
            self._course.came = self._take(step)
        except GflowError as error:
            self._course.came = error

    def _take(self, step: Step) -> Any:
        if isinstance(step, More):
            return step.stream.read(step.patience)
        if not isinstance(step, Ask) or not step.is_stream:
            return self._driver._take(step)
        if self._stream is not None:
            self._stream.close()
        self._stream = Connection(self._driver.server)
        self._stream.ask(step)
        answer = self._stream.reader.answer
        if answer.status >= 400:
            answer = self._stream.answer()
        return Opened(answer, self._stream)

    def close(self) -> None:
        self.is_closed = True
        if self._stream is not None:
            self._stream.close()
