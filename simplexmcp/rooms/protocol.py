"""MCP for the rooms server: what a message asks for, and its answer. No input or output here.

Both ways to speak are served: with the handshake (`initialize`), and the newest revision without one, whose requests
carry their version along. A call that waits is parked until its tool has a result.
"""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING, Any, NamedTuple, final

from simplexmcp import __version__
from simplexmcp.rooms.errors import BadArguments, PersonaLost, RoomsError
from simplexmcp.rooms.fields import check, schema
from simplexmcp.rooms.jsontext import dumps, loads, sendable
from simplexmcp.rooms.program import emit_error
from simplexmcp.rooms.store.members import touch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from simplexmcp.rooms.runtime import Runtime, Tool, Waiting

__all__ = ["Request", "Session", "decode", "read_result"]

SERVER = {"name": "agent-chat-mcp", "version": __version__}
# Versions with a handshake, newest first; then those without one.
_HANDSHAKE = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
_MODERN = ("2026-07-28",)
_CAPABILITIES = {"tools": {"listChanged": True}}
_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
_CLIENT_KEY = "io.modelcontextprotocol/clientInfo"
_SERVER_KEY = "io.modelcontextprotocol/serverInfo"
# The tools never change while the server runs; the newest revision wants to know how long that holds (ms).
_CACHE = {"ttlMs": 3_600_000, "cacheScope": "public"}
INSTRUCTIONS = (
    "A chat room for agents and people on this machine. {}Start: create_persona once (keep the id and the resume "
    "word), or resume_persona in a later session; then list_rooms, join_room, catch_up. Whoever resumed last holds the "
    "persona: on persona_lost stop writing. catch_up gives a room's new messages in order and marks them read; "
    "my_mentions only looks for what is directed at you, in all rooms. join_room, resume_persona and "
    "wait_for_messages give the command of a background watcher that ends when there is news."
)
# The reference program has no `enter`, and its clients may ask for its tools alone.
_SHORT_WAY = "enter puts you into a room with one call; or step by step. "
_PARSE_ERROR, _INVALID_REQUEST, _NO_METHOD, _BAD_PARAMS, _INTERNAL = -32700, -32600, -32601, -32602, -32603
_UNSUPPORTED_VERSION = -32022
_ID_ROOM = 64  # bytes that an ID at the end of a line is in
_ID = rb'"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(\d{1,15})\s*'
_ID_FIRST, _ID_LAST = re.compile(rb"\s*\{\s*" + _ID + rb"[,}]"), re.compile(_ID + rb"\}\s*$")
# They settle who this runtime is; whatever room was active is none of theirs.
_UNTOUCHING = ("create_persona", "resume_persona")


class Request(NamedTuple):
    """A request, or a notification when `id` is None."""

    id: str | int | None
    method: str
    params: dict[str, Any]


@final
class _Refusal(Exception):  # noqa: N818 - the request's fault
    """A JSON-RPC error as the answer."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


@final
class _Parked:
    def __init__(self, request: Request, tool: str, waiting: Waiting) -> None:
        self.request = request
        self.tool = tool
        self.waiting = waiting


def decode(line: bytes) -> Request | str | None:
    """What one line asks for: a request; the answer to a line that is none; None when nothing is to be done."""
    if not line.strip():
        return None
    try:
        message = loads(line.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError) as error:
        return _error(_id_of(line), _PARSE_ERROR, f"Parse error: {error}")
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return _error(None, _INVALID_REQUEST, "Invalid Request: one JSON-RPC 2.0 object a line")
    key = message.get("id")
    if "id" in message and not _is_id(key):
        return _error(None, _INVALID_REQUEST, "Invalid Request: an id is a text or a whole number")
    method = message.get("method")
    if not isinstance(method, str):
        # An answer to a request of ours, which sends none, is nobody's.
        is_answer = "result" in message or "error" in message
        return None if is_answer else _error(key, _INVALID_REQUEST, "Invalid Request: no method")
    params = message.get("params")
    if params is None:
        params = {}
    if not isinstance(params, dict):
        return None if key is None else _error(key, _BAD_PARAMS, "Invalid params: an object is wanted")
    return Request(key, method, params)


@final
class Session:
    """Answers the requests of one client. Each answer is one line of JSON without its end."""

    def __init__(self, runtime: Runtime, tools: Mapping[str, Tool]) -> None:
        self._runtime = runtime
        self._tools = tools
        self._instructions = INSTRUCTIONS.format(_SHORT_WAY if "enter" in tools else "")
        self._parked: list[_Parked] = []
        self._methods: dict[str, Callable[[Request], dict[str, Any] | None]] = {
            "initialize": self._initialize,
            "server/discover": self._discover,
            "ping": self._ping,
            "notifications/cancelled": self._cancelled,
            "tools/list": self._list,
            "tools/call": self._call,
        }

    @property
    def waits(self) -> int:
        """How many calls are parked."""
        return len(self._parked)

    def start(self, request: Request) -> str | None:
        """Runs a request's handler: its answer, or None for a notification and for a call that waits now."""
        if request.id is None:
            return None
        try:
            result = self._handler(request)(request)
            return None if result is None else _answer(request, result)
        except _Refusal as refusal:
            return _error(request.id, refusal.code, str(refusal), refusal.data)
        except Exception as error:  # noqa: BLE001 - no request stays unanswered
            _report(request.method, error)
            return _error(request.id, _INTERNAL, f"Internal error: {type(error).__name__}")

    def _handler(self, request: Request) -> Callable[[Request], dict[str, Any] | None]:
        version = _meta(request).get(_VERSION_KEY, _MODERN[0])
        if version not in _MODERN:
            data = {"supported": [*_MODERN, *_HANDSHAKE], "requested": version}
            raise _Refusal(_UNSUPPORTED_VERSION, "Unsupported protocol version", data)
        if request.method not in self._methods:
            raise _Refusal(_NO_METHOD, f"Method not found: {request.method}")
        return self._methods[request.method]

    def cancel(self, key: Any) -> None:
        """Ends the parked calls with this request ID, without an answer."""
        for parked in [parked for parked in self._parked if parked.request.id == key and _is_id(key)]:
            self._unpark(parked)

    def next_deadline(self) -> float | None:
        """When the next parked call is over (time.monotonic)."""
        return min((parked.waiting.deadline for parked in self._parked), default=None)

    def probe(self) -> list[str]:
        """Asks the parked calls again: the answers of those that have a result, or whose time is over."""
        now = time.monotonic()
        answers: list[str] = []
        for parked in list(self._parked):
            waiting = parked.waiting
            ask = waiting.expire if now >= waiting.deadline else waiting.probe
            outcome = self._guarded(parked.tool, ask)
            if outcome is not None:
                self._unpark(parked)
                answers.append(_answer(parked.request, outcome))
        return answers

    def end(self) -> None:
        """Ends every parked call: nothing more is answered."""
        for parked in list(self._parked):
            self._unpark(parked)

    def call(self, name: str, arguments: Any) -> dict[str, Any] | Waiting:
        """Runs a tool: the result of `tools/call`, or what waits for one."""
        tool = self._tools.get(name)
        if tool is None:
            return _failed(f"MCP error {_BAD_PARAMS}: Tool {name} not found")
        runtime = self._runtime
        issues: list[dict[str, Any]] = []
        checked = check(tool.fields, arguments, [], issues)
        if issues:
            return _bad_arguments(BadArguments(name, issues))
        waiting: list[Waiting] = []

        def run() -> dict[str, Any] | None:
            if runtime.binding is not None and runtime.room_id is not None and name not in _UNTOUCHING:
                touch(runtime, runtime.room_id, active=True)
            outcome = tool.call(runtime, checked)
            if isinstance(outcome, dict):
                return outcome
            waiting.append(outcome)
            return None

        result = self._guarded(name, run)
        return waiting[0] if result is None else result

    def _guarded(self, name: str, work: Callable[[], dict[str, Any] | None]) -> dict[str, Any] | None:
        """The result of `tools/call` for what a tool returns or raises; None when it returned None."""
        try:
            outcome = work()
            return None if outcome is None else {"content": [{"type": "text", "text": dumps(outcome)}]}
        except PersonaLost as error:
            self._runtime.lose(error)
            return _refused(error.payload())
        except BadArguments as error:
            return _bad_arguments(error)
        except RoomsError as error:
            return _refused(error.payload())
        except Exception as error:  # noqa: BLE001 - one faulty call must not end the server, nor stay unanswered
            _report(name, error)
            return _refused({"error": f"{name} failed: unexpected {type(error).__name__}. Nothing more is known."})

    def _unpark(self, parked: _Parked) -> None:
        self._parked.remove(parked)
        self._runtime.waits_open = len(self._parked)
        try:
            parked.waiting.end()
        except Exception as error:  # noqa: BLE001 - nobody asks any more
            _report(parked.tool, error)

    def _initialize(self, request: Request) -> dict[str, Any]:
        self._note_client(request.params.get("clientInfo"))
        asked = request.params.get("protocolVersion")
        return {
            "protocolVersion": asked if asked in _HANDSHAKE else _HANDSHAKE[0],
            "capabilities": _CAPABILITIES,
            "serverInfo": SERVER,
            "instructions": self._instructions,
        }

    def _note_client(self, info: Any) -> None:
        if isinstance(info, dict) and isinstance(info.get("name"), str):
            self._runtime.client = info["name"]

    def _discover(self, _request: Request) -> dict[str, Any]:
        return {
            "supportedVersions": [*_MODERN, *_HANDSHAKE],
            "capabilities": _CAPABILITIES,
            "instructions": self._instructions,
            **_CACHE,
        }

    def _ping(self, _request: Request) -> dict[str, Any]:
        return {}

    def _cancelled(self, request: Request) -> dict[str, Any]:
        self.cancel(request.params.get("requestId"))
        return {}

    def _list(self, request: Request) -> dict[str, Any]:
        tools = [
            {"name": tool.name, "description": tool.description, "inputSchema": schema(tool.fields)}
            for tool in self._tools.values()
        ]
        return {"tools": tools, **(_CACHE if _VERSION_KEY in _meta(request) else {})}

    def _call(self, request: Request) -> dict[str, Any] | None:
        name, arguments = request.params.get("name"), request.params.get("arguments")
        if not isinstance(name, str):
            raise _Refusal(_BAD_PARAMS, "Invalid params: name is the name of a tool")
        if not isinstance(arguments, dict | None):
            raise _Refusal(_BAD_PARAMS, "Invalid params: arguments is an object")
        self._note_client(_meta(request).get(_CLIENT_KEY))
        outcome = self.call(name, arguments or {})
        if isinstance(outcome, dict):
            return outcome
        self._parked.append(_Parked(request, name, outcome))
        self._runtime.waits_open = len(self._parked)
        return None


def read_result(result: Mapping[str, Any]) -> tuple[bool, str]:
    """Whether a result of `tools/call` is an error, and its text."""
    return bool(result.get("isError")), str(result["content"][0]["text"])


def _id_of(line: bytes) -> int | None:
    """The ID of a request that cannot be read, so that nobody waits for its answer: clients write it first or last."""
    found = _ID_FIRST.match(line) or _ID_LAST.search(line, max(0, len(line) - _ID_ROOM))
    return None if found is None else int(found[1])


def _is_id(key: Any) -> bool:
    return isinstance(key, str | int) and not isinstance(key, bool)


def _meta(request: Request) -> dict[str, Any]:
    meta = request.params.get("_meta")
    return meta if isinstance(meta, dict) else {}


def _answer(request: Request, result: dict[str, Any]) -> str:
    if _VERSION_KEY in _meta(request):
        result = {**result, "resultType": "complete", "_meta": {_SERVER_KEY: SERVER}}
    return dumps({"jsonrpc": "2.0", "id": request.id, "result": result})


def _error(key: str | int | None, code: int, message: str, data: Any = None) -> str:
    error = {"code": code, "message": message, **({} if data is None else {"data": data})}
    return dumps({"jsonrpc": "2.0", "id": key, "error": error})


def _refused(payload: dict[str, Any]) -> dict[str, Any]:
    return _failed(json.dumps(payload, ensure_ascii=False, indent=2))


def _bad_arguments(error: BadArguments) -> dict[str, Any]:
    issues = json.dumps(error.issues, ensure_ascii=False, indent=2)
    text = f"Input validation error: Invalid arguments for tool {error.tool}: {issues}"
    return _failed(f"MCP error {_BAD_PARAMS}: {text}")


def _failed(text: str) -> dict[str, Any]:
    # Strict clients take no half of a character, not even as an escape that stands for one.
    return {"content": [{"type": "text", "text": sendable(text)}], "isError": True}


def _report(name: str, error: Exception) -> None:
    """One line per place on stderr. Never the error's own words: they may hold a message or a resume word."""
    places: list[str] = []
    trace = error.__traceback__
    while trace is not None:
        places.append(f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}")
        trace = trace.tb_next
    emit_error(f"simplexmcp rooms: {name} failed: {type(error).__name__} at {', '.join(places)}")
