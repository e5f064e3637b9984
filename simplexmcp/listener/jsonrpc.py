"""JSON-RPC as the endpoint reads and writes it: strict about what comes in, plain ASCII going out.

Strict: one object, UTF-8, no key twice, no NaN or infinity, no half of a surrogate pair, no nesting that could exhaust
a stack. A body that two readers could understand differently is refused before anybody acts on it.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, final

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "CANCELLED",
    "INTERNAL",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "PARSE_ERROR",
    "REFUSED",
    "Complaint",
    "Message",
    "RequestId",
    "dump",
    "error_body",
    "progress_body",
    "read_message",
    "result_body",
    "whole",
]

RequestId: TypeAlias = "str | int"

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
INVALID_PARAMS = -32602
INTERNAL = -32603
REFUSED = -32000
CANCELLED = -32800

MAX_DEPTH = 64
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")


@final
@dataclass(frozen=True, slots=True)
class Message:
    """A message of a client. A notification has no `id`; a posted response has the method ""."""

    method: str
    params: dict[str, Any]
    id: RequestId | None


@final
@dataclass(frozen=True, slots=True)
class Complaint:
    """Why a body is not a message: the JSON-RPC code, one sentence, and the id when it could be read."""

    code: int
    text: str
    id: RequestId | None = None


def read_message(body: bytes) -> Message | Complaint:
    """The one message in `body`, or what is wrong with it. Never raises."""
    try:
        value = json.loads(
            body.decode("utf-8"),
            object_pairs_hook=_object,
            parse_constant=_constant,
            parse_float=_finite,
        )
    except RecursionError:
        return Complaint(PARSE_ERROR, _TOO_DEEP)
    except ValueError as error:
        return Complaint(PARSE_ERROR, f"The body is not the JSON of one message: {_reason(error)}.")
    if body.count(b"{") + body.count(b"[") > MAX_DEPTH and _depth_exceeds(value, MAX_DEPTH):
        return Complaint(INVALID_REQUEST, _TOO_DEEP)
    if isinstance(value, list):
        return Complaint(INVALID_REQUEST, "Batches are not served: send each message in a POST of its own.")
    if not isinstance(value, dict) or value.get("jsonrpc") != "2.0":
        return Complaint(INVALID_REQUEST, 'The body is not a JSON-RPC message: "jsonrpc": "2.0" is missing.')
    return _message(value, body)


def _message(value: dict[str, Any], body: bytes) -> Message | Complaint:
    request_id = value.get("id")
    if "id" in value and (isinstance(request_id, bool) or not isinstance(request_id, str | int)):
        return Complaint(INVALID_REQUEST, "The id of a request is a string or a whole number.")
    if _HALF.search(body) and _has_half(value):
        readable = None if isinstance(request_id, str) and _has_half(request_id) else request_id
        return Complaint(
            INVALID_REQUEST,
            "The message holds half of a surrogate pair (such as \\ud83d alone): send whole characters.",
            readable,
        )
    method = value.get("method")
    if method is None and ("result" in value or "error" in value):
        return Message("", {}, None)
    if not isinstance(method, str) or not method:
        return Complaint(INVALID_REQUEST, "The method of a message is a string.", request_id)
    params = value.get("params")
    if params is None:
        params = {}
    if not isinstance(params, dict):
        return Complaint(INVALID_REQUEST, "The params of a message are an object.", request_id)
    return Message(method, params, request_id)


def result_body(request_id: RequestId, result: str) -> bytes:
    """A response with the JSON text `result` (ASCII)."""
    return f'{{"jsonrpc":"2.0","id":{dump(request_id)},"result":{result}}}'.encode("ascii")


def error_body(request_id: RequestId | None, code: int, text: str, data: Any = None) -> bytes:
    """An error response; `id` is null when the request's is not known."""
    error: dict[str, Any] = {"code": code, "message": text}
    if data is not None:
        error["data"] = data
    return dump({"jsonrpc": "2.0", "id": request_id, "error": error}).encode("ascii")


def progress_body(token: RequestId, value: int, text: str) -> bytes:
    """A progress notification; without a text it has no message."""
    params: dict[str, Any] = {"progressToken": token, "progress": value}
    if text:
        params["message"] = text
    return dump({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}).encode("ascii")


def dump(value: Any) -> str:
    """Compact JSON in ASCII, so that no reader of lines stumbles over U+2028 and the like.

    Raises TypeError or ValueError for what is not JSON.
    """
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def whole(text: str) -> str:
    """`text` with "?" for each half of a surrogate pair: readers of JSON refuse those."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


_TOO_DEEP = f"The message is nested deeper than {MAX_DEPTH} levels."


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("an object has the same key twice")
    return value


def _constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError("a number is too large")
    return number


def _reason(error: ValueError) -> str:
    """What to tell about a failed decoding: never the body itself, which may be long or secret."""
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at character {error.pos}"
    if isinstance(error, UnicodeDecodeError):
        return f"no UTF-8 at byte {error.start}"
    return str(error) if len(str(error)) < 60 else "a number has too many digits"


def _depth_exceeds(value: Any, limit: int) -> bool:
    level: list[Any] = [value]
    for _ in range(limit):
        level = [child for parent in level for child in _children(parent)]
        if not level:
            return False
    return True


def _children(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return (v for v in value.values() if isinstance(v, dict | list))
    return (v for v in value if isinstance(v, dict | list)) if isinstance(value, list) else ()


def _has_half(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False
