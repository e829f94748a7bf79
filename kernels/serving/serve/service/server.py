"""Runs a service's application on a socket, and shuts it down so that nothing that was accepted is lost.

SIGTERM or Ctrl-C    1. new requests get 503, and connections end with their answers, so that clients go elsewhere
                     2. what was accepted is answered
                     3. the socket closes, and the process ends with 0
Ctrl-C after that    the process ends at once, with 1, and says how many it leaves unanswered

uvicorn by itself closes the socket first: then clients that come too late see a refused connection and no reason.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import json
import os
import signal
import socket
import sys
import threading
from dataclasses import asdict
from http import HTTPStatus
from types import FrameType
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

if TYPE_CHECKING:
    from starlette.responses import Response

    from kernels.serving.serve.service.application import Service

# asyncio accepts as many connections in one go before it looks at anything else: at uvicorn's 2,048 answers, and the
# engine's next batch, wait for seconds behind the clients that are to be turned away.
ACCEPTED_AT_ONCE = 32
# Connections that wait in the kernel meanwhile. It drops what comes beyond them, or beyond its own limit, 4,096 by
# default (net.core.somaxconn), and a client's TCP asks again after 1, 3 and 7 s: then that is the time to a refusal.
BACKLOG = 4096
HEAD_SECONDS = 10.0  # for a request's head to arrive; uvicorn waits for ever
REFUSED_SECONDS = 5.0  # for a client that is turned away to send the rest, read the answer and close
UNREAD_SECONDS = 10.0  # in which a client takes nothing of its answer: it is gone, or holds its place for ever
SERVING, CLOSED = "serving ", "closed "  # what the two lines on standard output begin with


class ServiceError(RuntimeError):
    """A service that cannot start: the message says why, and what to do."""


def bind(host: str, port: int) -> socket.socket:
    """Bind a socket that nobody can connect to yet; ServiceError if the address cannot be had. Port 0: any."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError:
        raise ServiceError(f"there is no address {host!r}: choose one of this machine, such as 127.0.0.1") from None
    bound = socket.socket(family, kind)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind(address)
    except OSError as error:
        bound.close()
        raise _refused(host, port, error) from None
    return bound


def run(service: Service, listener: socket.socket, grace: float | None = None, until_stdin_closes: bool = False) -> int:
    """Serve on `listener` until a signal comes, or standard input ends; then shut down as the module says.

    `grace`: seconds for step 2; None: as long as it takes. Prints a line when it serves, and what it did when it has
    closed. Returns 0, or 1 if requests were left unanswered. To be called in the main thread.
    """
    server = _Server(service, listener, grace)
    if until_stdin_closes:
        threading.Thread(target=server.leave_with_stdin, daemon=True).start()
    host, port = listener.getsockname()[:2]
    _handle(server.handle_exit)  # to which uvicorn gives the signals back when it has served
    try:
        server.run([listener])
    except OSError as error:
        raise _refused(host, port, error) from None
    _handle(signal.SIG_IGN)  # or a second SIGTERM would end the process while Python cleans up, with another status
    print(CLOSED + server.counts(), flush=True)
    return 0


def _handle(handler: Any) -> None:
    for sig in (signal.SIGTERM, signal.SIGINT):
        signal.signal(sig, handler)


def _refused(host: str, port: int, error: OSError) -> ServiceError:
    if error.errno == errno.EADDRINUSE:
        why = f"port {port} of {host} is in use by another program: stop that one, or choose another port (0: any free)"
    elif error.errno == errno.EACCES:
        why = f"port {port} is for the administrator: choose one above 1023"
    elif error.errno == errno.EADDRNOTAVAIL:
        why = f"this machine has no address {host}: choose one that it has, or 0.0.0.0 for all"
    else:
        why = f"cannot listen on port {port} of {host}: {error}"
    return ServiceError(why)


class _Front(AutoHTTPProtocol):
    """Turns a new connection's request away by its first bytes where the service has no room, and closes connections
    over which half a request's head has come, or nothing at all, or whose client does not read its answer.

    To parse a small request first, and to ask the application, took twice the processor time (operating.md).
    """

    _timer: asyncio.TimerHandle | None = None
    _begun = _refused = False

    def __init__(self, service: Service, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._service = service

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        connection = transport.get_extra_info("socket")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(1000 * UNREAD_SECONDS))
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        if self._refused:  # the rest of a body
            return
        new, self._begun = not self._begun, True
        # Whoever asks how it is, or for its metrics, is answered.
        if new and data.startswith(b"POST ") and (refusal := self._service.turned_away()) is not None:
            self._refuse(refusal)
            return
        super().data_received(data)
        self._wait_for_head()

    def connection_lost(self, error: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(error)

    def _refuse(self, refusal: Response) -> None:
        """Answer, and read what still comes until the client has read the answer: a connection that is closed before
        its body has come is reset, and the answer lost."""
        self._refused = True
        self.transport.write(_message(refusal))
        self.transport.write_eof()
        self._stop_waiting()
        self._timer = self.loop.call_later(REFUSED_SECONDS, self.transport.abort)

    def _wait_for_head(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()
        elif self._timer is None:
            self._timer = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _message(response: Response) -> bytes:
    """Return a response that ends its connection as it is sent."""
    status = HTTPStatus(response.status_code)
    head = [f"HTTP/1.1 {status} {status.phrase}".encode(), b"connection: close"]
    head += [name + b": " + value for name, value in response.raw_headers]
    return b"\r\n".join([*head, b"", response.body])


class _Server(uvicorn.Server):
    def __init__(self, service: Service, listener: socket.socket, grace: float | None) -> None:
        super().__init__(
            uvicorn.Config(
                service.application,
                log_level="warning",
                access_log=False,
                lifespan="on",
                ws="none",
                http=functools.partial(_Front, service),  # type: ignore[arg-type]
                loop="asyncio",  # uvloop, where it is installed, keeps the wait limit to whole milliseconds
                backlog=ACCEPTED_AT_ONCE,
            )
        )
        self._service, self._grace, self._listener = service, grace, listener
        self._loop: asyncio.AbstractEventLoop | None = None
        self._leaving: asyncio.Task | None = None
        self._stdin_closed = False

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        self._listener.listen(BACKLOG)
        host, port = self._listener.getsockname()[:2]
        address = f"[{host}]" if ":" in host else host
        print(f"{SERVING}{self._service.engine.name} on http://{address}:{port}", flush=True)
        if self._stdin_closed:
            self._leave()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Shut down on SIGTERM or SIGINT: uvicorn calls this in the main thread, between any two instructions."""
        if self._loop is None:  # not serving yet
            raise SystemExit(1)
        if self._loop.is_closed():  # all is done
            return
        insists = sig == signal.SIGINT and self._leaving is not None
        self._loop.call_soon_threadsafe(self._give_up if insists else self._leave)

    def leave_with_stdin(self) -> None:
        """Wait for the end of standard input, then shut down: whoever started this process is gone."""
        with contextlib.suppress(OSError):
            while os.read(0, 4096):  # not sys.stdin, whose lock this thread would hold when the process ends
                pass
        self._stdin_closed = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._leave)

    def counts(self) -> str:
        """Say what became of the samples, as JSON."""
        batcher = self._service.batcher
        return json.dumps(asdict(batcher.counts) if batcher else {})

    def _leave(self) -> None:
        if self._leaving is None:
            self._leaving = asyncio.get_running_loop().create_task(self._drain())

    async def _drain(self) -> None:
        try:
            async with asyncio.timeout(self._grace):
                await self._service.drain()
        except TimeoutError:
            self._give_up()
        self.should_exit = True

    def _give_up(self) -> None:
        if self.should_exit:  # all are answered; some clients have not closed their connections
            self.force_exit = True
            return
        print(f"error: {self._service.requests} requests are left unanswered", file=sys.stderr, flush=True)
        print(CLOSED + self.counts(), flush=True)
        os._exit(1)  # the engine may hang in its thread, and Python would wait for that
