"""Serving an ASGI app on 127.0.0.1: one listening socket, and hypercorn's protocol on each connection.

hypercorn's own accept loop is not used: an exception of one connection would end them all, and a write to a client
that does not read could be ended by nobody.
"""

from __future__ import annotations

import errno
import logging
import socket
from functools import partial
from typing import TYPE_CHECKING, Any, cast, final

import trio
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ConnectionState
from hypercorn.utils import wrap_app

from simplexmcp.errors import UserError
from simplexmcp.web.connection import Connection

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypercorn.config import Config

__all__ = ["Connections", "base_config", "listen", "no_port"]

log = logging.getLogger(__name__)

_HOST = "127.0.0.1"
_BACKLOG = 1024
_BUSY = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 5\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
_SOCKET_OPTIONS = (
    # A client that vanished without a word is noticed within 35 seconds: 12 after the next sign of life of its call.
    (socket.SOL_SOCKET, "SO_KEEPALIVE", 1),
    (socket.IPPROTO_TCP, "TCP_KEEPIDLE", 20),
    (socket.IPPROTO_TCP, "TCP_KEEPINTVL", 5),
    (socket.IPPROTO_TCP, "TCP_KEEPCNT", 3),
    (socket.IPPROTO_TCP, "TCP_USER_TIMEOUT", 12_000),
)


@final
class Connections:
    """The open connections, each with hypercorn's protocol. `limit` bounds them; one more is answered 503."""

    def __init__(
        self,
        app: Callable[..., Any],
        config: Config,
        *,
        limit: int,
        grace: float,
        kind: Callable[[trio.SocketStream], Connection] = Connection,
    ) -> None:
        self._app = wrap_app(cast("Any", app), 0, "asgi")
        self._config, self._limit, self._grace, self._kind = config, limit, grace, kind
        self._context = WorkerContext(None)
        self._open: set[Connection] = set()
        self._closed = trio.Event()

    async def run(self, listener: trio.SocketListener, finished: trio.Event, started: Callable[[], None]) -> None:
        """Accepts until `finished`; then what is being written has `grace` seconds to end."""
        async with trio.open_nursery() as connections:
            try:
                async with trio.open_nursery() as accepting:
                    await accepting.start(
                        partial(trio.serve_listeners, self._serve, [listener], handler_nursery=connections)
                    )
                    started()
                    await finished.wait()
                    accepting.cancel_scope.cancel()
                # On this sign idle connections close, and the others after their answer.
                await self._context.terminated.set()
                with trio.move_on_after(self._grace):
                    while self._open:
                        self._closed = trio.Event()
                        await self._closed.wait()
            finally:
                # hypercorn shields its writes: only a closed socket ends one to a client that does not read.
                for connection in list(self._open):
                    connection.abort()
                connections.cancel_scope.cancel()

    async def _serve(self, stream: trio.SocketStream) -> None:
        connection = self._kind(stream)
        try:
            if len(self._open) >= self._limit:
                with trio.move_on_after(1):
                    await stream.send_all(_BUSY)
                return
            self._open.add(connection)
            state = ConnectionState(cast("Any", {"connection": connection}))
            with connection.scope:
                await TCPServer(self._app, self._config, self._context, state, cast("Any", connection))
        except* (trio.BrokenResourceError, trio.ClosedResourceError):
            log.debug("A client went while it was answered")
        except* Exception:
            # A defect on one connection, such as bytes that hypercorn's parser does not expect, ends that one only.
            log.exception("A connection failed")
        finally:
            self._open.discard(connection)
            self._closed.set()


def base_config(config: Config, idle: float) -> Config:
    """What every server here has in common; `idle` seconds without a request close a connection."""
    config.keep_alive_timeout = idle
    config.keep_alive_max_requests = 10**9
    config.include_server_header = False
    # Its log would show requests with their token; defects are logged by the apps.
    config.errorlog = config.accesslog = None
    return config


def listen(port: int, option: str = "--port") -> socket.socket:
    """A listening socket on 127.0.0.1; port 0 takes a free one. UserError, which names the option, when it can't."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        for level, name, value in _SOCKET_OPTIONS:
            # Accepted sockets inherit them (on Linux; elsewhere some do not exist).
            if hasattr(socket, name):
                listener.setsockopt(level, getattr(socket, name), value)
        listener.bind((_HOST, port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise no_port(port, error, option) from error
    listener.setblocking(False)
    return listener


def no_port(port: int, error: OSError, option: str = "--port") -> UserError:
    """Why a port cannot be had, and what to do."""
    if error.errno == errno.EADDRINUSE:
        return UserError(
            f"Port {port} is in use by another program: end that program, or choose another port with {option}."
        )
    if error.errno == errno.EACCES:
        return UserError(f"Port {port} needs root: choose one from 1024 to 65535 with {option}.")
    return UserError(f"Port {port} cannot be opened ({error.strerror}): choose another one with {option}.")
