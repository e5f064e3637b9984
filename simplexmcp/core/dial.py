"""From an address to an open WebSocket, and why it did not open in words that a person understands."""

from __future__ import annotations

import logging
import socket
import ssl
from typing import TYPE_CHECKING, TypeAlias, cast, final

import h11
import trio
from trio_websocket import ConnectionClosed, ConnectionRejected, HandshakeError, wrap_client_stream
from wsproto.utilities import ProtocolError as WebSocketProtocolError

from simplexmcp.core.address import is_loopback

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from trio_websocket import WebSocketConnection

    from simplexmcp.core.address import WebSocketAddress

__all__ = ["Dial", "NotOpenedError", "dial", "handshake"]

Dial: TypeAlias = "Callable[[WebSocketAddress], Awaitable[trio.abc.Stream]]"
"""Opens the byte stream to an address, TLS done. Raises NotOpenedError."""

_MAX_MESSAGE = 2**31 - 1
_RECEIVE = 64 * 1024
_log = logging.getLogger(__name__)

_NO_WEBSOCKET = "what listens there is no WebSocket"


@final
class NotOpenedError(Exception):
    """The connection did not open: why, and the HTTP status when that was the answer."""

    def __init__(self, reason: str, status: int | None = None) -> None:
        super().__init__(reason)
        self.status = status


async def dial(address: WebSocketAddress) -> trio.abc.Stream:
    """TCP, and TLS with a verified certificate for `wss`."""
    try:
        stream = await trio.open_tcp_stream(address.host, address.port)
    except OSError as error:
        raise NotOpenedError(_os_reason(error)) from None
    if not address.tls:
        # A name is resolved only now, and may lead elsewhere.
        if not is_loopback(str(stream.socket.getpeername()[0])):
            await trio.aclose_forcefully(stream)
            raise NotOpenedError("the name does not lead to this machine")
        return stream
    secure = trio.SSLStream(stream, ssl.create_default_context(), server_hostname=address.host, https_compatible=True)
    try:
        await secure.do_handshake()
    except BaseException as error:
        await trio.aclose_forcefully(secure)
        if isinstance(error, (trio.BrokenResourceError, OSError)):
            raise NotOpenedError(_tls_reason(error)) from None
        raise
    return secure


async def handshake(nursery: trio.Nursery, stream: trio.abc.Stream, address: WebSocketAddress) -> WebSocketConnection:
    """The WebSocket over an open stream; its reader runs in `nursery`, and never fails."""
    reader = _Reader(nursery)
    with reader.opening:
        try:
            return await wrap_client_stream(
                cast("trio.Nursery", reader),
                cast("trio.SocketStream", stream),
                address.host_and_port,
                address.resource,
                extra_headers=address.headers,
                max_message_size=_MAX_MESSAGE,
                receive_buffer_size=_RECEIVE,
            )
        except (HandshakeError, ConnectionClosed):
            raise NotOpenedError(_NO_WEBSOCKET) from None
    if (status := reader.rejected_with) is not None:
        raise NotOpenedError(f"it answered HTTP {status} instead of opening a WebSocket", status)
    raise NotOpenedError(_NO_WEBSOCKET)


@final
class _Reader:
    """Stands in for the nursery where trio-websocket starts a connection's reader. The reader raises what a
    strange peer makes it raise, and a handshake without a reader waits for ever: its end ends `opening`."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self.opening = trio.CancelScope()
        self.rejected_with: int | None = None
        self._nursery = nursery

    def start_soon(self, reader: Callable[[], Awaitable[None]]) -> None:
        self._nursery.start_soon(self._run, reader)

    async def _run(self, reader: Callable[[], Awaitable[None]]) -> None:
        try:
            await reader()
        except ConnectionRejected as error:
            self.rejected_with = error.status_code
        except (ConnectionClosed, WebSocketProtocolError, h11.ProtocolError) as error:
            _log.debug("The connection broke: %s", type(error).__name__)
        self.opening.cancel()


def _os_reason(error: BaseException) -> str:
    if isinstance(error, socket.gaierror):
        return "the host is not known"
    if isinstance(error, BaseExceptionGroup):
        return _os_reason(error.exceptions[0])
    if isinstance(error, ConnectionRefusedError):
        return "nothing listens there"
    if error.__cause__ is not None:
        return _os_reason(error.__cause__)
    text = error.strerror if isinstance(error, OSError) else None
    return (text or "it cannot be reached").lower()


def _tls_reason(error: BaseException) -> str:
    cause = error.__cause__ or error
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"its certificate is not valid: {cause.verify_message}"
    return "it does not speak TLS"
