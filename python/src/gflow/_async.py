# SPDX-License-Identifier: Apache-2.0
"""HTTP by asyncio: the same steps as `_sync` takes on threads."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Awaitable
from typing import Any, Optional, TypeVar

from gflow._http import Answer, Ask, Reader
from gflow._servers import Server
from gflow._steps import Course, Give, More, Opened, Pause, Step, Steps
from gflow._sync import CONNECT_SECONDS, KEPT_SECONDS, MOST_IDLE, PIECE, check_certificate, check_port, connect_unix, tls_context, unreachable
from gflow.errors import ConnectionLost, GflowError, ServerTimeout

T = TypeVar("T")


async def _within(awaited: Awaitable[T], seconds: float) -> T:
    """asyncio.wait_for(), but one that is cancelled is, also in the moment its answer comes (until Python 3.12)."""
    task = asyncio.ensure_future(awaited)
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
    except BaseException:
        task.cancel()
        raise
    if not done:
        task.cancel()
        raise asyncio.TimeoutError
    return task.result()


class _Heard(asyncio.StreamReaderProtocol):
    """Of a connection that breaks as something is written there, what came before is read all the same: who refuses early says why."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.reader = asyncio.StreamReader(loop=loop)
        super().__init__(self.reader, loop=loop)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._its = transport
        super().connection_made(transport)

    def connection_lost(self, exc: Optional[Exception]) -> None:
        if isinstance(exc, OSError):
            if piece := _unread(self._its):
                self.reader.feed_data(piece)
            exc = None
        super().connection_lost(exc)


def _unread(transport: asyncio.BaseTransport) -> bytes:
    if transport.get_extra_info("ssl_object"):
        return b""
    try:
        with socket.socket(fileno=os.dup(transport.get_extra_info("socket").fileno())) as same:
            return same.recv(PIECE, socket.MSG_DONTWAIT)
    except OSError:
        return b""


async def _connect(server: Server) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    transport, protocol = await _connected(server)
    return protocol.reader, asyncio.StreamWriter(transport, protocol, protocol.reader, asyncio.get_running_loop())


async def _connected(server: Server) -> tuple[asyncio.Transport, _Heard]:
    loop = asyncio.get_running_loop()
    if server.socket:
        try:  # on no other thread: at the end of a program there are none to be had
            made = connect_unix(server, may_wait=False)
        except BlockingIOError:  # on another it waits for its turn
            made = await loop.run_in_executor(None, connect_unix, server)
        made.setblocking(False)
        return await loop.create_unix_connection(_Heard, sock=made)
    tls = tls_context() if server.fingerprint else None
    try:
        transport, protocol = await _within(
            loop.create_connection(_Heard, server.host, server.port, ssl=tls, server_hostname=server.host if tls else None),
            CONNECT_SECONDS)
    except (OSError, asyncio.TimeoutError) as error:
        raise unreachable(server, getattr(error, "strerror", None) or error or "no answer") from error
    transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        if tls:
            check_certificate(server, transport.get_extra_info("ssl_object").getpeercert(binary_form=True))
        else:
            check_port(server, transport.get_extra_info("socket"))
    except GflowError:
        transport.abort()
        raise
    return transport, protocol


class Connection:
    """One, and the answer that is being read from it."""

    def __init__(self, server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._server = server
        self._from = reader
        self._to = writer
        self.idle_since = 0.0
        self.reader: Reader
        self.begun = b""

    @classmethod
    async def open(cls, server: Server) -> Connection:
        return cls(server, *await _connect(server))

    async def ask(self, ask: Ask) -> None:
        self.reader = Reader(ask)
        self._patience = ask.patience
        try:
            self._to.write(ask.encoded(self._server.authority, self._server.token))
            await _within(self._to.drain(), ask.patience)
        except asyncio.TimeoutError as error:
            raise ServerTimeout(f"{self._server} does not take {ask!s}") from error
        except OSError:
            pass  # one that refuses early stops reading: its answer may be there
        self.begun = b""
        while self.reader.headers is None:
            self.begun = await self._receive(f"does not answer {ask!s}", ask.patience)

    async def _receive(self, silence: str, patience: float) -> bytes:
        try:
            data = await _within(self._from.read(PIECE), patience)
        except asyncio.TimeoutError as error:
            raise ServerTimeout(f"{self._server} {silence}") from error
        except OSError as error:
            raise ConnectionLost(f"the connection to {self._server} broke: {error.strerror or error}") from error
        if not data:
            self.reader.end()
            return b""
        return self.reader.feed(data)

    async def read(self, patience: float) -> Optional[bytes]:
        """The next piece of the body: b"" at its end, None where there was none in time."""
        piece, self.begun = self.begun, b""
        while not piece and not self.reader.is_done:
            try:
                piece = await self._receive("is silent", patience)
            except ServerTimeout:
                return None
        return piece

    async def answer(self) -> Answer:
        """All of it."""
        answer = self.reader.answer
        pieces = [self.begun]
        while not self.reader.is_done:
            pieces.append(await self._receive("does not go on with its answer", self._patience))
        answer.body = b"".join(pieces)
        return answer

    def close(self) -> None:
        self._to.transport.abort()


class Driver:
    """Takes the steps of calls, on the event loop that runs."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._idle: list[Connection] = []

    async def run(self, steps: Steps[T]) -> T:
        """What a call returns."""
        try:
            step = next(steps)
            while True:
                try:
                    came = await self.take(step)
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
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    async def take(self, step: Step) -> Any:
        if isinstance(step, Pause):
            return await asyncio.sleep(step.seconds)
        if isinstance(step, Ask):
            return await self._exchange(step)
        raise AssertionError(step)

    async def _exchange(self, ask: Ask) -> Answer:
        connection = self._kept() if ask.may_be_repeated else None
        if connection is not None:
            try:
                return await self._exchange_on(connection, ask)
            except ConnectionLost:
                if connection.reader.has_begun:
                    raise
        return await self._exchange_on(await Connection.open(self.server), ask)

    async def _exchange_on(self, connection: Connection, ask: Ask) -> Answer:
        try:
            await connection.ask(ask)
            answer = await connection.answer()
        except BaseException:
            connection.close()
            raise
        connection.idle_since = asyncio.get_running_loop().time()
        if connection.reader.may_go_on and len(self._idle) < MOST_IDLE:
            self._idle.append(connection)
        else:
            connection.close()
        return answer

    def _kept(self) -> Optional[Connection]:
        while self._idle:
            connection = self._idle.pop()
            if asyncio.get_running_loop().time() - connection.idle_since < KEPT_SECONDS:
                return connection
            connection.close()
        return None


class Iteration(AsyncIterator[T]):
    """What the steps of a call give, one by one."""

    def __init__(self, driver: Driver, steps: Steps[None]) -> None:
        self._driver = driver
        self._course = Course(steps)
        self._stream: Optional[Connection] = None
        self._is_closed = False

    def __aiter__(self) -> Iteration[T]:
        return self

    async def __aenter__(self) -> Iteration[T]:
        """Asks now, and not when the first is wanted: what happens from here on is in it."""
        try:
            while (step := self._course.opening_step()) is not None:
                await self._answer(step)
        except BaseException:
            await self.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def __anext__(self) -> T:
        while not self._is_closed:
            try:
                step = self._course.next_step()
            except StopIteration:
                break
            except BaseException:
                await self.aclose()
                raise
            if isinstance(step, Give):
                given: T = step.value
                return given
            await self._answer(step)
        await self.aclose()
        raise StopAsyncIteration

    async def _answer(self, step: Step) -> None:
        try:
            self._course.came = await self._take(step)
        except GflowError as error:
            self._course.came = error

    async def _take(self, step: Step) -> Any:
        if isinstance(step, More):
            return await step.stream.read(step.patience)
        if not isinstance(step, Ask) or not step.is_stream:
            return await self._driver.take(step)
        if self._stream is not None:
            self._stream.close()
        self._stream = await Connection.open(self._driver.server)
        await self._stream.ask(step)
        answer = self._stream.reader.answer
        if answer.status >= 400:
            answer = await self._stream.answer()
        return Opened(answer, self._stream)

    async def aclose(self) -> None:
        self._is_closed = True
        if self._stream is not None:
            self._stream.close()
