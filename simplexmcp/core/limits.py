"""How long a message may be: the size of a message as the core encodes it, before it is sent.

The core refuses a message whose whole JSON is over `MAX_MESSAGE` bytes, and says so only after the fact. The
sizes here are those of the core to the byte where they are determined; what is not (the fraction of a quoted
time) is counted at its longest, so that a message that fits here fits there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["MAX_MESSAGE", "MENTIONS_SENT", "Quote", "carried", "encoded_size", "json_length", "message_size"]

MAX_MESSAGE = 15602
"""Bytes of the largest encoded message."""

MENTIONS_SENT = 3
"""Members that one message may mention."""

_PLAIN_QUOTES = ("image", "video", "link")

CHAT_VERSION = "1-19"
ID = "x" * 24  # a message or member id: 16 base64 characters, encoded once more
SECONDS = "2026-11-30T21:00:00Z"  # a received message has whole seconds,
FRACTION = "2026-11-30T21:00:00.123456789Z"  # an own one up to nine digits more


def json_length(text: str) -> int:
    """Bytes of `text` inside a JSON string, with the core's escapes (quotation mark, backslash, controls)."""
    size = len(text.encode("utf-8", "surrogatepass"))
    for char in text:
        if char in '"\\\n\r\t':
            size += 1
        elif char < " ":
            size += 5
    return size


def _size(value: Any) -> int:
    """Bytes of the compact JSON of `value`, with the core's escapes."""
    if isinstance(value, str):
        return json_length(value) + 2
    if isinstance(value, bool):
        return 4 if value else 5
    if value is None:
        return 4
    if isinstance(value, dict):
        return 2 + sum(_size(str(k)) + 1 + _size(v) for k, v in value.items()) + max(len(value) - 1, 0)
    if isinstance(value, list):
        return 2 + sum(_size(v) for v in value) + max(len(value) - 1, 0)
    return len(str(value))


def message_size(event: str, params: dict[str, Any]) -> int:
    """Bytes of the whole encoded message, such as `message_size("x.msg.new", {"content": …})`."""
    return _size({"v": CHAT_VERSION, "msgId": ID, "event": event, "params": params})


@dataclass(frozen=True)
class Quote:
    """What a reply quotes: the quoted content as it goes over the wire, and whether it is our own message."""

    content: dict[str, Any]
    own: bool = False


def carried(quote: Quote, kind: str) -> Quote:
    """The quote as a message of `kind` carries it: a message with a picture of its own takes none along."""
    if kind in _PLAIN_QUOTES:
        return Quote({"type": "text", "text": quote.content.get("text", "")}, quote.own)
    return quote


def _quote(quote: Quote, group: bool) -> dict[str, Any]:
    sent_at = FRACTION if quote.own else SECONDS
    reference: dict[str, Any] = {"msgId": ID, "sentAt": sent_at, "sent": quote.own}
    if group:
        reference["memberId"] = ID
    return {"msgRef": reference, "content": quote.content}


def _file(name: str, size: int) -> dict[str, Any]:
    description = {"fileDescrText": "", "fileDescrPartNo": 0, "fileDescrComplete": False}
    return {"fileName": name, "fileSize": size, "fileDescr": description}


def encoded_size(
    text: str,
    *,
    kind: str = "text",
    image: str | None = None,
    quote: Quote | None = None,
    mentions: tuple[str, ...] = (),
    live: bool = False,
    ttl: int | None = None,
    scope: bool = False,
    edit: bool = False,
    group: bool = False,
    file: tuple[str, int] | None = None,
    **more: Any,
) -> int:
    """Bytes of the message with this text as the core would send it; at most `MAX_MESSAGE` fit.

    `image` is a preview (data URI), `mentions` the names, `ttl` seconds, `scope` a group's support scope,
    `file` a name and a size in bytes; `more` goes into the content (a link's preview, a duration).
    """
    content: dict[str, Any] = {"type": kind, "text": text, **more}
    params: dict[str, Any] = {"content": content}
    if image is not None:
        content.update(type="image", image=image)
    if edit:
        params["msgId"] = ID
    if edit and group:
        params["asGroup"] = False
    if quote is not None:
        params["quote"] = _quote(quote, group)
    if mentions:
        params["mentions"] = {name: {"memberId": ID} for name in mentions}
    if file is not None:
        params["file"] = _file(*file)
    if live:
        params["live"] = True
    if ttl is not None:
        params["ttl"] = ttl
    if scope:
        params["scope"] = {"type": "member", "memberId": ID}
    return message_size("x.msg.update" if edit else "x.msg.new", params)
