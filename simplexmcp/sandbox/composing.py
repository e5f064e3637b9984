"""What a command says about messages: their contents, mentions and quotes, and the chat they are for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from simplexmcp.sandbox import errors
from simplexmcp.sandbox.arguments import strict_json

if TYPE_CHECKING:
    from simplexmcp.sandbox.arguments import Arguments

__all__ = ["KNOWN", "Composed", "composed", "mentions_argument", "message_content", "ref_parts"]

JsonObject = dict[str, Any]

KNOWN: dict[str, tuple[tuple[str, type], ...]] = {
    "text": (),
    "link": (("preview", dict),),
    "image": (("image", str),),
    "video": (("image", str), ("duration", int)),
    "voice": (("duration", int),),
    "file": (),
    "report": (("reason", str),),
    "chat": (("chatLink", dict),),
}
_KEPT: dict[str, tuple[str, ...]] = {
    "text": ("text",),
    "link": ("text", "preview"),
    "image": ("text", "image"),
    "video": ("text", "image", "duration"),
    "voice": ("text", "duration"),
    "file": ("text",),
}


@dataclass
class Composed:
    """One message of a `/_send`."""

    content: JsonObject
    mentions: dict[str, int]
    quoted: int | None
    file: str | None = None


def message_content(value: Any) -> JsonObject:
    """A MSGCONTENT from a command: known types are checked and cut to their keys, others are kept as they are."""
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        raise errors.parse_error()
    kind = value["type"]
    if kind not in KNOWN:
        return value
    if not isinstance(value.get("text"), str):
        raise errors.parse_error()
    for key, needed in KNOWN[kind]:
        if not isinstance(value.get(key), needed):
            raise errors.parse_error()
    kept = {key: value[key] for key in _KEPT.get(kind, tuple(value)) if key in value and key != "type"}
    if kind in ("image", "video") and not kept["image"].startswith("data:"):
        kept["image"] = ""
    return {"type": kind, **kept}


def _mentions(value: Any) -> dict[str, int]:
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(type(key) is int for key in value.values()):
        raise errors.parse_error()
    return value


def mentions_argument(value: Any) -> dict[str, int]:
    """`mentions` of an edit, which must be there."""
    if value is None:
        raise errors.parse_error()
    return _mentions(value)


def composed(a: Arguments) -> list[Composed]:
    """The messages of a `/_send`."""
    if not a.has("json"):
        return [Composed({"type": "text", "text": a.text("text")}, {}, None)]
    value = strict_json(a.text("json"))
    if not isinstance(value, list) or not value:
        raise errors.parse_error()
    out: list[Composed] = []
    for one in value:
        if not isinstance(one, dict):
            raise errors.parse_error()
        quoted = one.get("quotedItemId")
        if quoted is not None and type(quoted) is not int:
            raise errors.parse_error()
        source = one.get("fileSource")
        if source is not None and (not isinstance(source, dict) or not isinstance(source.get("filePath"), str)):
            raise errors.parse_error()
        content = message_content(one.get("msgContent"))
        path = None if source is None else source["filePath"]
        out.append(Composed(content, _mentions(one.get("mentions")), quoted, path))
    return out


def ref_parts(text: str) -> tuple[str, int, int | None]:
    """`#5(_support:13)` → ("#", 5, 13); `(_support)` is scope 0, none None."""
    head, _, scope = text.removesuffix("(as_group=on)").partition("(")
    if not scope:
        return head[0], int(head[1:]), None
    _, _, member = scope.rstrip(")").partition(":")
    return head[0], int(head[1:]), int(member) if member else 0
