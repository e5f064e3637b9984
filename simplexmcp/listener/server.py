"""The HTTP server: one listening socket on 127.0.0.1, hypercorn's protocol on each connection, and its end.

hypercorn's own accept loop is not used: an exception of one connection would end them all, and a write to a client
that does not read could be ended by nobody. The nurseries, from the outside in: the SDK's manager, the calls' writers,
the connections, the accept loop; they end from the inside out.
"""

from __future__ import annotations

import errno
import gc
import logging
import resource
import socket
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, cast, final

import trio
from hypercorn.config import Config
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ConnectionState
from hypercorn.utils import wrap_app

from simplexmcp.errors import UserError
from simplexmcp.listener.calls import Calls, Closing
from simplexmcp.listener.connection import Connection
from simplexmcp.listener.endpoint import Endpoint
from simplexmcp.listener.guard import Guard
from simplexmcp.listener.kernel import INSTRUCTIONS, Kernel
from simplexmcp.listener.limits import Limits
from simplexmcp.listener.modern import Modern

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from simplexmcp.tooling import Tools

__all__ = ["check_port", "serve"]

log = logging.getLogger(__name__)

_HOST = "127.0.0.1"
_BACKLOG = 1024
_COLLECT_AFTER = (20_000, 20, 50)
_BUSY = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 5\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
_SOCKET_OPTIONS = (
    # A client that vanished without a word is noticed within half a minute, also while data waits for it.
    (socket.SOL_SOCKET, "SO_KEEPALIVE", 1),
    (socket.IPPROTO_TCP, "TCP_KEEPIDLE", 30),
    (socket.IPPROTO_TCP, "TCP_KEEPINTVL", 10),
    (socket.IPPROTO_TCP, "TCP_KEEPCNT", 3),
    (socket.IPPROTO_TCP, "TCP_USER_TIMEOUT", 30_000),
)


async def serve(
    tools: Tools,
    *,
    port: int,
    token: str,
    ready: Callable[[], bool],
    closing: Closing,
    instructions: str = INSTRUCTIONS,
    limits: Limits | None = None,
    task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serves the tools on http://127.0.0.1:PORT/mcp until `closing.finish`; port 0 takes a free one.

    Reports the port as soon as connections are accepted. UserError when the port cannot be had. Cancelled, it leaves
    at once.
    """
    limits = limits or Limits()
    kernel = Kernel(tools, instructions)
    calls = Calls(limits)
    modern = Modern(kernel, calls, limits)
    _allow_files(limits.connections)
    listener = _listen(port)
    port = listener.getsockname()[1]
    guard = Guard(
        Endpoint(kernel, calls, modern).handle,
        port=port,
        token=token,
        ready=ready,
        closing=closing,
        limits=limits,
    )
    connections = _Connections(guard, limits)
    async with (
        trio.SocketListener(trio.socket.from_stdlib_socket(listener)) as accepting,
        modern.running(),
        trio.open_nursery() as helpers,
    ):
        await helpers.start(calls.run)
        closing.attach(calls)
        with _rare_collections():
            await connections.run(accepting, closing, partial(task_status.started, port))
        helpers.cancel_scope.cancel()


@final
class _Connections:
    """The open connections, each with hypercorn's protocol."""

    def __init__(self, app: Guard, limits: Limits) -> None:
        self._app = wrap_app(cast("Any", app), limits.body, "asgi")
        self._limits = limits
        self._config = _config(limits)
        self._context = WorkerContext(None)
        self._open: set[Connection] = set()
        self._closed = trio.Event()

    async def run(self, listener: trio.SocketListener, closing: Closing, started: Callable[[], None]) -> None:
        """Accepts until the closing is finished; then what is being written has the time of `grace` to end."""
        async with trio.open_nursery() as connections:
            try:
                async with trio.open_nursery() as accepting:
                    await accepting.start(
                        partial(trio.serve_listeners, self._serve, [listener], handler_nursery=connections)
                    )
                    started()
                    await closing.finished.wait()
                    accepting.cancel_scope.cancel()
                # On this sign idle connections close, and the others after their answer.
                await self._context.terminated.set()
                with trio.move_on_after(self._limits.grace):
                    while self._open:
                        self._closed = trio.Event()
                        await self._closed.wait()
            finally:
                # hypercorn shields its writes: only a closed socket ends one to a client that does not read.
                for connection in list(self._open):
                    connection.abort()
                connections.cancel_scope.cancel()

    async def _serve(self, stream: trio.SocketStream) -> None:
        connection = Connection(stream)
        try:
            if len(self._open) >= self._limits.connections:
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


def _config(limits: Limits) -> Config:
    config = Config()
    config.keep_alive_timeout = limits.idle
    config.keep_alive_max_requests = 10**9
    config.include_server_header = False
    # Its log would show requests with their token; defects are logged by the guard.
    config.errorlog = config.accesslog = None
    return config


def _listen(port: int) -> socket.socket:
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
        raise _no_port(port, error) from error
    listener.setblocking(False)
    return listener


def check_port(port: int) -> None:
    """Look whether `serve` could have this port now, before anything else is begun. UserError when it can't."""
    _listen(port).close()


def _no_port(port: int, error: OSError) -> UserError:
    if error.errno == errno.EADDRINUSE:
        return UserError(
            f"Port {port} is in use by another program: end that program, or choose another port with --port."
        )
    if error.errno == errno.EACCES:
        return UserError(f"Port {port} needs root: choose one from 1024 to 65535 with --port.")
    return UserError(f"Port {port} cannot be opened ({error.strerror}): choose another one with --port.")


@contextmanager
def _rare_collections() -> Generator[None]:
    """Lets Python look for cyclic garbage less often. With thousands of held calls each search goes through all their
    objects: when 5,000 clients leave at once, two thirds of the time were that."""
    before = gc.get_threshold()
    gc.set_threshold(*_COLLECT_AFTER)
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)


def _allow_files(wanted: int) -> None:
    """Each held call is an open socket: raises the soft limit of open files as far as the hard one lets it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted += 256
    if soft != resource.RLIM_INFINITY and soft < wanted:
        new = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (new, hard))
