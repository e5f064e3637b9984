"""The core's envelopes, made equal: a response, an error or an event, whatever transport carried it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from simplexmcp.errors import CoreError, core_error

if TYPE_CHECKING:
    from simplexmcp.core.link import Event

__all__ = ["REQUEST_ERROR", "Answer", "UnreadableError", "event_text", "frame", "json_object", "result_text"]

REQUEST_ERROR = "chatCmdError"
"""Tag of an error that answers a command. Without an id, it says that a request could not be read at all."""

_EVENT_ERROR = "chatError"


class UnreadableError(Exception):
    """What came is not in the core's shape. Its text says how, without the content."""


@final
@dataclass(frozen=True)
class Answer:
    """What the core said to the command with the id `corr_id`."""

    corr_id: str
    outcome: Event | CoreError


def frame(data: str | bytes) -> Answer | Event:
    """A frame of the WebSocket: an answer, or an event. UnreadableError when it is neither."""
    envelope = json_object(data)
    body = _body(envelope, "resp")
    corr_id = envelope.get("corrId")
    if corr_id is None:
        return body
    if not isinstance(corr_id, str):
        raise UnreadableError("an answer whose id is no text")
    return Answer(corr_id, _outcome(body))


def result_text(text: str | bytes) -> Event | CoreError:
    """What libsimplex returned for a command."""
    return _outcome(_body(json_object(text), "result"))


def event_text(text: str | bytes) -> Event:
    """An event that libsimplex returned. An asynchronous error is a `chatError`, as over the WebSocket."""
    return _body(json_object(text), "result")


def _body(envelope: dict[str, Any], usual: str) -> Event:
    """The tagged object inside. Both transports may use the keys of the other: `resp`; `result`, `error`."""
    for key in (usual, "resp", "result"):
        if isinstance(body := envelope.get(key), dict) and isinstance(body.get("type"), str):
            return body
    if isinstance(error := envelope.get("error"), dict):
        return {"type": _EVENT_ERROR, "chatError": error}
    raise UnreadableError("an object without a response")


def _outcome(body: Event) -> Event | CoreError:
    if body["type"] not in (REQUEST_ERROR, _EVENT_ERROR):
        return body
    error = body.get("chatError")
    return core_error(error if isinstance(error, dict) else {})


def json_object(data: str | bytes) -> dict[str, Any]:
    """The object that `data` is as JSON. UnreadableError when it is none."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise UnreadableError("something that is no JSON") from None
    if not isinstance(value, dict):
        raise UnreadableError("JSON that is no object")
    return value
