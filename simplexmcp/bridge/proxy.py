"""Which line of the client becomes which request, and what becomes of its answer.

Each request of the client is one POST, in a task of its own, and has exactly one answer unless the client cancels it:
then its connection is closed, which ends the wait in the server. An action that waits there for its owner stays; the
same call attaches to it again.
"""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import trio

from simplexmcp.bridge.events import EventReader, TooLongError
from simplexmcp.bridge.http import LostError, NotOpenedError, post
from simplexmcp.errors import UserError
from simplexmcp.listener import jsonrpc
from simplexmcp.terminal import printable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from simplexmcp.bridge.http import Answer
    from simplexmcp.listener.jsonrpc import Message, RequestId

__all__ = ["Place", "Proxy"]

LINE_LIMIT = 4 << 20  # bytes, as the server takes
READ_LIMIT = 4 * LINE_LIMIT  # bytes: up to here a refusal can name the request that is too long
_TOO_LONG = f"The message is longer than {LINE_LIMIT >> 20} MiB."
_ANSWER_LIMIT = 16 << 20  # bytes
_OPEN_LIMIT = 500  # requests at once
# Seconds. The server gives a held call a sign of life every 20.
_SILENCE = 90.0
_GRACE = 1.0
_PRINTABLE = re.compile(r"[!-~]([ -~]*[!-~])?")
_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
_LOST = (
    "The connection to the server was lost; whether the call was done is not known. "
    "Call again with the same arguments: a call that waits for an approval is found again."
)


@final
@dataclass(frozen=True)
class Place:
    """Where a server listens on 127.0.0.1, and what it wants to see."""

    port: int
    token: str


class _FailedError(Exception):
    """Why a request has no answer of the server: the JSON-RPC code and a sentence."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


@final
class Proxy:
    """Passes the messages of one client on. `find` says where the server is, at each request, and raises UserError when
    it does not run; `say` gets a line for people when that changes."""

    def __init__(
        self, find: Callable[[], Place], out: trio.MemorySendChannel[bytes], say: Callable[[str], None]
    ) -> None:
        self._find, self._out, self._say = find, out, say
        self._open: dict[RequestId, trio.CancelScope] = {}
        self._tasks = 0
        self._idle = trio.Event()
        self._session = ""
        self._version = ""
        self._said = ""

    async def run(self, lines: AsyncIterator[bytes | None]) -> None:
        """Work until the client has no more lines; what is open then has a last moment."""
        async with trio.open_nursery() as nursery:
            async for line in lines:
                if refusal := self._take(nursery, line):
                    await self._out.send(refusal)
            with trio.move_on_after(_GRACE):
                while self._tasks:
                    self._idle = trio.Event()
                    await self._idle.wait()
            nursery.cancel_scope.cancel()

    def _take(self, nursery: trio.Nursery, line: bytes | None) -> bytes | None:
        """Begin what a line asks for; the answer when it is refused."""
        if line is None:
            return jsonrpc.error_body(None, jsonrpc.INVALID_REQUEST, _TOO_LONG)
        message = jsonrpc.read_message(line)
        if isinstance(message, jsonrpc.Complaint):
            return jsonrpc.error_body(message.id, message.code, message.text)
        if len(line) > LINE_LIMIT:
            return jsonrpc.error_body(message.id, jsonrpc.INVALID_REQUEST, _TOO_LONG)
        if message.method == "notifications/cancelled":
            wanted = message.params.get("requestId")
            scope = self._open.get(wanted) if isinstance(wanted, str | int) else None
            if scope is not None:
                scope.cancel()
            return None
        if message.id in self._open:
            return jsonrpc.error_body(message.id, jsonrpc.INVALID_REQUEST, "A request with this id is open.")
        if self._tasks >= _OPEN_LIMIT:
            text = f"{_OPEN_LIMIT} requests are open; wait for some of them."
            if message.id is not None:
                return jsonrpc.error_body(message.id, jsonrpc.REFUSED, text)
            self._say(f"{printable(message.method)[:100]} was not passed on: {text}")
            return None
        scope = trio.CancelScope()
        if message.id is not None:
            self._open[message.id] = scope
        self._tasks += 1
        nursery.start_soon(self._pass_on, message, line, scope)
        return None

    async def _pass_on(self, message: Message, line: bytes, scope: trio.CancelScope) -> None:
        try:
            with scope:
                try:
                    await self._exchange(message, line)
                except _FailedError as error:
                    if message.id is not None:
                        await self._out.send(jsonrpc.error_body(message.id, error.code, str(error)))
        finally:
            if message.id is not None:
                del self._open[message.id]
            self._tasks -= 1
            self._idle.set()

    async def _exchange(self, message: Message, line: bytes) -> None:
        try:
            place = self._find()
        except UserError as error:
            raise self._not_there(str(error)) from error
        try:
            async with post(place.port, "/mcp", self._headers(place, message), line, silence=_SILENCE) as answer:
                self._is_there()
                if message.id is not None:
                    await self._hear(answer, message, message.id)
                elif answer.status >= 400:
                    self._say(f"The server refused {printable(message.method)[:100]} with HTTP status {answer.status}.")
        except NotOpenedError as error:
            raise self._not_there("The server does not answer: it is starting or stopping. Try again.") from error
        except (LostError, TooLongError) as error:
            raise _FailedError(jsonrpc.REFUSED, _LOST) from error

    async def _hear(self, answer: Answer, message: Message, request_id: RequestId) -> None:
        """Pass on what the server says to one request, to its answer. Raises _FailedError when it is none."""
        if answer.headers.get(b"content-type", b"").startswith(b"text/event-stream"):
            events = EventReader(_ANSWER_LIMIT)
            async for part in answer.parts:
                for data in events.feed(part):
                    said = _object(data)
                    if not said:
                        continue  # what is no message would end the client, not this call alone
                    await self._out.send(_line(data, said))
                    if said.get("id") == request_id and "method" not in said:
                        return
            raise LostError
        data = await answer.whole(_ANSWER_LIMIT)
        said = _object(data)
        if said.get("id") != request_id:
            error = said.get("error")
            error = error if isinstance(error, dict) else {}
            code = error.get("code")
            text = str(error.get("message") or f"The server answered with HTTP status {answer.status}.")
            raise _FailedError(code if isinstance(code, int) else jsonrpc.INTERNAL, text)
        if message.method == "initialize" and isinstance(result := said.get("result"), dict):
            self._session = answer.headers.get(b"mcp-session-id", b"").decode("ascii", "replace")
            self._version = str(result.get("protocolVersion") or "")
        await self._out.send(_line(data, said))

    def _headers(self, place: Place, message: Message) -> dict[str, str]:
        headers = {
            "Authorization": f"Bearer {place.token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        meta = message.params.get("_meta")
        version = meta.get(_VERSION_KEY) if isinstance(meta, dict) else None
        if isinstance(version, str):
            # From this version on, each message says its own, and the headers repeat what a message is about.
            headers["MCP-Protocol-Version"] = _field(version)
            headers["Mcp-Method"] = _field(message.method)
            if isinstance(name := message.params.get("name", message.params.get("uri")), str):
                headers["Mcp-Name"] = _field(name)
        elif message.method != "initialize":
            headers |= {"MCP-Protocol-Version": _field(self._version)} if self._version else {}
            headers |= {"Mcp-Session-Id": _field(self._session)} if self._session else {}
        return headers

    def _not_there(self, why: str) -> _FailedError:
        if why != self._said:
            self._said = why
            self._say(why)
        return _FailedError(jsonrpc.REFUSED, why)

    def _is_there(self) -> None:
        if self._said:
            self._said = ""
            self._say("The server is there again.")


def _object(data: bytes) -> dict[str, Any]:
    try:
        said: Any = json.loads(data)
    except (ValueError, RecursionError):
        said = None
    return said if isinstance(said, dict) else {}


def _line(data: bytes, said: dict[str, Any]) -> bytes:
    """A message of the server as one line."""
    return jsonrpc.dump(said).encode("ascii") if b"\n" in data or b"\r" in data else data


def _field(text: str) -> str:
    """The value of a header, in the form that the protocol gives what a header cannot hold."""
    if _PRINTABLE.fullmatch(text) and not text.startswith("=?"):
        return text
    return f"=?base64?{base64.b64encode(text.encode()).decode('ascii')}?="
