"""A running `simplex-chat -p PORT` as the core: one WebSocket, opened again for ever when it is lost.

- Each command has one outcome: its answer, or LinkLost when the connection ended first. It is never sent
  twice, for nobody can tell whether the core did it.
- Only the writer task touches the socket, so that a cancelled `send` cannot leave half a frame on it.
- The core works on the commands of a connection one after the other, and reads nothing more, not even pings,
  while two wait.
- The core gives each event to one of its clients. Another client on the same port takes events away: it is
  looked for, and reported as a LINK_SHARED event.
"""

from __future__ import annotations

import logging
import math
import random
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar, final

import trio
from trio_websocket import ConnectionClosed
from wsproto.utilities import ProtocolError

from simplexmcp.core import dial as dialing
from simplexmcp.core.address import websocket_address
from simplexmcp.core.decode import REQUEST_ERROR, Answer, UnreadableError, frame
from simplexmcp.core.grammar import checked_command, to_json
from simplexmcp.core.link import LINK_DOWN, LINK_SHARED, LINK_UP
from simplexmcp.core.neighbours import other_clients
from simplexmcp.core.pending import Pending, background
from simplexmcp.errors import LinkLost, UserError, core_error

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from trio_websocket import WebSocketConnection

    from simplexmcp.core.address import WebSocketAddress
    from simplexmcp.core.dial import Dial, NotOpenedError
    from simplexmcp.core.link import Event, Link
    from simplexmcp.core.pending import Command

__all__ = ["open_websocket"]

# Seconds.
_OPEN_WAIT = 20.0
_CLOSE_WAIT = 2.0
_PING_EVERY = 20.0
_PONG_WAIT = 30.0
_BUSY_PONG_WAIT = 300.0
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 30.0
# A connection that held so long was a good one: the next pause is short again.
_STEADY = 10.0

T = TypeVar("T")

_log = logging.getLogger(__name__)


@asynccontextmanager
async def open_websocket(
    url: str | WebSocketAddress,
    *,
    dial: Dial = dialing.dial,
    now: Callable[[], float] = time.time,
    others: Callable[[WebSocketAddress], int | None] = other_clients,
) -> AsyncGenerator[Link, None]:
    """A link over `ws://HOST:PORT[/PATH]` (this machine only) or `wss://USER:PASSWORD@HOST`. UserError when
    it does not open at first. `dial` opens the byte stream; `now` is wall time; `others` counts the other clients."""
    address = websocket_address(url) if isinstance(url, str) else url
    link = _WebSocketLink(address, dial, now, others)
    async with background(link.run, link.close, _CLOSE_WAIT):
        yield link


@final
class _WebSocketLink:
    def __init__(
        self,
        address: WebSocketAddress,
        dial: Dial,
        now: Callable[[], float],
        others: Callable[[WebSocketAddress], int | None],
    ) -> None:
        self._address = address
        self._dial = dial
        self._now = now
        self._others = others
        self._clients = 0
        self._pending = Pending()
        self._outbox: trio.MemorySendChannel[tuple[Command, str]] | None = None
        self._down_since: float | None = None
        self._closing = trio.Event()
        self._reason = "it is closed"
        self._to_reader, self._events = trio.open_memory_channel["Event"](math.inf)

    @property
    def events(self) -> trio.MemoryReceiveChannel[Event]:
        return self._events

    @property
    def down_since(self) -> float | None:
        return self._down_since

    async def send(self, command: str) -> Event:
        checked_command(command)
        # Somebody who is cancelled already sends nothing.
        await trio.lowlevel.checkpoint()
        if self._outbox is None:
            raise LinkLost("link/down", f"The link to SimpleX is down ({self._reason}); nothing was done.")
        with self._pending.command() as waiting:
            text = to_json({"corrId": waiting.corr_id, "cmd": command})
            self._outbox.send_nowait((waiting, text))
            return await waiting.answer()

    async def run(self, task_status: trio.TaskStatus[None]) -> None:
        """Keeps a connection open until `close`. `started` with the first; UserError when that fails."""
        pauses = _Pauses()
        try:
            await self._run_once(task_status.started, first=True)
            while not await self._closed_within(pauses.next()):
                opened_at = trio.current_time()
                if await self._run_once(self._is_up) and trio.current_time() - opened_at >= _STEADY:
                    pauses.reset()
        finally:
            self._pending.lose_all("it was closed")
            self._to_reader.close()

    def close(self) -> None:
        """Ends `run` in order: the core is told, then the connection ends."""
        self._closing.set()

    async def _closed_within(self, seconds: float) -> bool:
        with trio.move_on_after(seconds):
            await self._closing.wait()
        return self._closing.is_set()

    async def _run_once(self, opened: Callable[[], None], *, first: bool = False) -> bool:
        """One connection from its opening to its loss; False when it did not open."""
        was_open = False

        def is_open() -> None:
            nonlocal was_open
            was_open = True
            opened()

        try:
            self._reason = await self._connection(is_open)
        except dialing.NotOpenedError as error:
            if first:
                raise self._not_there(error) from None
            if str(error) != self._reason:
                self._reason = str(error)
                _log.info("SimpleX at %s does not open: %s.", self._address, error)
        finally:
            self._outbox = None
            self._pending.lose_all(self._reason)
        if was_open and not self._closing.is_set():
            self._is_down()
        return was_open

    def _is_up(self) -> None:
        self._down_since = None
        self._to_reader.send_nowait({"type": LINK_UP})
        _log.info("The link to SimpleX at %s is there again.", self._address)

    def _is_down(self) -> None:
        self._down_since = self._now()
        self._to_reader.send_nowait({"type": LINK_DOWN, "reason": self._reason})
        _log.info("The link to SimpleX at %s was lost: %s. It is opened again.", self._address, self._reason)

    def _not_there(self, error: NotOpenedError) -> UserError:
        if error.status in (401, 403):
            advice = "Check the user and password in --core."
        elif self._address.tls:
            advice = "Check the address, and that simplex-chat and the TLS proxy before it run."
        else:
            start = f"simplex-chat -p {self._address.port} -d FOLDER/simplex --create-bot-display-name NAME"
            advice = f"Start it with: {start}"
        return UserError(f"No SimpleX core at {self._address}: {error}. {advice}")

    async def _connection(self, opened: Callable[[], None]) -> str:
        """Opens one connection, serves it, and gives the reason of its end."""
        stream = await _in_time(self._dial(self._address))
        outcome: str | NotOpenedError = ""
        try:
            async with trio.open_nursery() as nursery:
                try:
                    connection = await _in_time(dialing.handshake(nursery, stream, self._address))
                    outcome = await self._converse(connection, opened)
                except dialing.NotOpenedError as error:
                    outcome = error
                nursery.cancel_scope.cancel()
        finally:
            await trio.aclose_forcefully(stream)
        if isinstance(outcome, dialing.NotOpenedError):
            raise outcome
        return outcome

    async def _converse(self, connection: WebSocketConnection, opened: Callable[[], None]) -> str:
        """Commands, events and pings over an open connection, until it ends; gives the reason."""
        self._outbox, outbox = trio.open_memory_channel[tuple["Command", str]](math.inf)
        self._reason = "it was closed"
        opened()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._write, connection, outbox)
            nursery.start_soon(self._watch, connection, nursery.cancel_scope)
            nursery.start_soon(self._close, nursery.cancel_scope)
            await self._read(connection)
            nursery.cancel_scope.cancel()
        self._outbox = None
        self._pending.lose_all(self._reason)
        with trio.move_on_after(_CLOSE_WAIT):
            await connection.aclose()
        return self._reason

    async def _close(self, conversation: trio.CancelScope) -> None:
        await self._closing.wait()
        conversation.cancel()

    async def _read(self, connection: WebSocketConnection) -> None:
        """Takes frames until the connection ends."""
        try:
            while True:
                data = await connection.get_message()
                try:
                    what = frame(data)
                except UnreadableError as error:
                    _log.warning("SimpleX sent %s (%d characters); ignored.", error, len(data))
                    continue
                if isinstance(what, Answer):
                    if not self._pending.settle(what.corr_id, what.outcome):
                        _log.warning("SimpleX answered a command that was not asked; ignored.")
                elif what["type"] == REQUEST_ERROR:
                    if not self._unread_request(what):
                        return
                else:
                    self._to_reader.send_nowait(what)
        except ConnectionClosed:
            self._reason = "the core closed the connection"

    def _unread_request(self, error: Event) -> bool:
        """The core could not read a request and does not say which; False when it could be one of several."""
        if self._pending.refuse_only(core_error(error.get("chatError") or {})):
            return True
        if not self._pending.outstanding:
            _log.warning("SimpleX refused a request that was not made; ignored.")
            return True
        self._reason = "the core could not read one of several requests"
        return False

    async def _write(
        self, connection: WebSocketConnection, outbox: trio.MemoryReceiveChannel[tuple[Command, str]]
    ) -> None:
        try:
            async for command, text in outbox:
                if self._pending.leaves(command):
                    await connection.send_message(text)
        except (ConnectionClosed, ProtocolError):
            # The reader sees the end too, after the frames that came before it.
            await trio.sleep_forever()

    async def _watch(self, connection: WebSocketConnection, conversation: trio.CancelScope) -> None:
        """Ends the conversation with a core that is gone without a word, and looks for other clients."""
        try:
            while True:
                self._look_around()
                await trio.sleep(_PING_EVERY)
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._alarm, conversation)
                    await connection.ping()
                    nursery.cancel_scope.cancel()
        except* (ConnectionClosed, ProtocolError):
            await trio.sleep_forever()

    def _look_around(self) -> None:
        clients = self._others(self._address) or 0
        if clients == self._clients:
            return
        self._clients = clients
        self._to_reader.send_nowait({"type": LINK_SHARED, "clients": clients})
        if clients:
            _log.warning(
                "Another program (%d) is connected to SimpleX at %s: it takes messages away from the agent, and "
                "can send without approval.",
                clients,
                self._address,
            )

    async def _alarm(self, conversation: trio.CancelScope) -> None:
        await trio.sleep(_PONG_WAIT)
        if self._pending.outstanding >= 2:
            # It may be there, and not read: a slow command would be lost with the connection.
            await trio.sleep(_BUSY_PONG_WAIT - _PONG_WAIT)
        self._reason = "the core does not answer"
        conversation.cancel()


async def _in_time(opening: Awaitable[T]) -> T:
    try:
        with trio.fail_after(_OPEN_WAIT):
            return await opening
    except trio.TooSlowError:
        raise dialing.NotOpenedError("it does not answer") from None


@final
class _Pauses:
    """Seconds between tries: 0.1, doubled up to 30, each shortened by up to half at random."""

    def __init__(self) -> None:
        self._longest = _FIRST_PAUSE

    def next(self) -> float:
        longest = self._longest
        self._longest = min(_LONGEST_PAUSE, longest * 2)
        return random.uniform(longest / 2, longest)  # noqa: S311 - spreads load, keeps no secret

    def reset(self) -> None:
        self._longest = _FIRST_PAUSE
