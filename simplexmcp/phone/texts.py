"""Texts as the SimpleX apps render them, from the core's own parts of a text. Pure.

What the core marks as a command is a command, and nothing else: the page decides nothing. All other formats are inert.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simplexmcp.phone.protocol import Color, MenuEntry, Part, PartKind

__all__ = [
    "Wire",
    "iso_time",
    "mention_of",
    "menu_entries",
    "number",
    "obj",
    "one_line",
    "order",
    "parts",
    "picture",
    "plain",
    "text_of",
]

Wire = dict[str, Any]
"""An object of the core, as it came."""

_JUST_NOW = 3  # seconds
_NAME_LIMIT = 120  # characters
_PICTURE_LIMIT = 64_000  # characters of a preview
_MENU_DEPTH, _MENU_LENGTH = 3, 50
_PLAIN_FORMATS: dict[str, PartKind] = {
    "bold": "bold",
    "italic": "italic",
    "strikeThrough": "strike",
    "snippet": "snippet",
    "secret": "secret",
    "small": "small",
}
_COLORS: dict[str, Color] = {
    "red": "red",
    "green": "green",
    "blue": "blue",
    "yellow": "yellow",
    "cyan": "cyan",
    "magenta": "magenta",
}
_WORDS = ("simplexName", "email", "phone", "uri")
_PICTURE = re.compile(r"data:image/(?:jpe?g|png);base64,[A-Za-z0-9+/]+={0,2}")
_TIME = re.compile(r"(\d{4}-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-5]\d)(?:\.(\d+))?Z", re.ASCII)
_BARE = re.compile(r"\w+(?:-\w+)*")


def parts(item: Wire, text: str, *, commands: bool, me: str) -> list[Part]:
    """The parts of an item's text. `commands`: whether the chat makes commands tappable; `me`: the own memberId."""
    formatted = item.get("formattedText")
    if not isinstance(formatted, list):
        return [{"kind": "plain", "text": text}] if text else []
    mentions = obj(item, "mentions")
    return [_part(entry, mentions, commands=commands, me=me) for entry in formatted if isinstance(entry, dict)]


def plain(text: str) -> Part:
    """A part that is only shown."""
    return {"kind": "plain", "text": text}


def _part(entry: Wire, mentions: Wire, *, commands: bool, me: str) -> Part:
    text = text_of(entry, "text")
    form = obj(entry, "format")
    kind = text_of(form, "type")
    if kind in _PLAIN_FORMATS:
        return {"kind": _PLAIN_FORMATS[kind], "text": text}
    if kind == "colored" and (color := _COLORS.get(text_of(form, "color"))):
        return {"kind": "colored", "text": text, "color": color}
    if kind == "command" and commands:
        shown = f"/{text_of(form, 'commandStr')}"
        return {"kind": "command", "text": shown, "send": shown}
    if kind == "mention":
        return _mention(text, obj(mentions, text_of(form, "memberName")), me)
    if kind in _WORDS:
        return {"kind": "link", "text": text, "uri": text}
    if kind in ("hyperLink", "simplexLink"):
        uri = text_of(form, "linkUri") or text_of(form, "simplexUri") or text
        return {"kind": "link", "text": text_of(form, "showText") or text, "uri": uri}
    return plain(text)


def _mention(text: str, mentioned: Wire, me: str) -> Part:
    """A mention of a member; a name that nobody is mentioned by is only text."""
    member = text_of(mentioned, "memberId")
    if not member:
        return plain(text)
    name = text_of(obj(mentioned, "memberRef"), "displayName")
    part: Part = {"kind": "mention", "text": f"@{one_line(name)}" if name else text}
    return {**part, "me": True} if member == me else part


def menu_entries(commands: Any, depth: int = _MENU_DEPTH) -> list[MenuEntry]:
    """A command menu as the apps offer it: with parameters it is completed by the person, without it is sent."""
    entries: list[MenuEntry] = []
    for command in commands[:_MENU_LENGTH] if isinstance(commands, list) else ():
        label, keyword = text_of(command, "label"), text_of(command, "keyword")
        if text_of(command, "type") == "menu" and depth:
            entries.append({"label": label, "commands": menu_entries(command.get("commands"), depth - 1)})
        elif keyword and (params := text_of(command, "params")):
            entries.append({"label": label, "fill": f"/{keyword} {params}"})
        elif keyword:
            entries.append({"label": label, "send": f"/{keyword}"})
    return entries


def mention_of(name: str) -> str:
    """A name as it stands in a text that mentions it; "" for one that no text can hold."""
    if _BARE.fullmatch(name) and not unicodedata.category(name[-1]).startswith("P"):
        return f"@{name}"
    return "" if not name or "'" in name or "\n" in name or name[0] in " #@" else f"@'{name}'"


def picture(value: Any) -> str | None:
    """A preview that may be shown: a data URI of a JPEG or PNG; None for everything else."""
    fits = isinstance(value, str) and len(value) <= _PICTURE_LIMIT and _PICTURE.fullmatch(value)
    return value if fits else None


def iso_time(value: Any) -> str:
    """A time of the core with milliseconds; 1970 when it is damaged."""
    found = _TIME.fullmatch(value) if isinstance(value, str) else None
    return f"{found[1]}.{(found[2] or '')[:3]:0<3}Z" if found else "1970-01-01T00:00:00.000Z"


def order(told: Any, made: Any, item: int, *, group: bool) -> str:
    """What puts items in the order in which a person lived through them: contacts by when the item was made here,
    groups by the time that the message tells. That has whole seconds only, which would put a quick answer before its
    question: what was just told counts from when it was made."""
    at, here = (_TIME.fullmatch(each) if isinstance(each, str) else None for each in (told, made))
    try:
        assert at is not None
        assert here is not None
        seconds = (datetime.fromisoformat(here[1]) - datetime.fromisoformat(at[1])).total_seconds()
    except (AssertionError, ValueError):
        return f"/{item:018d}"
    moment = here if not group or 0 <= seconds < _JUST_NOW else at
    return f"{moment[1]}.{(moment[2] or '')[:9]:0<9}/{item:018d}"


def one_line(text: str) -> str:
    """A foreign name in one line, cut when it is very long."""
    line = " ".join(text.split())
    return line if len(line) <= _NAME_LIMIT else line[:_NAME_LIMIT] + "…"


def obj(node: Any, key: str) -> Wire:
    """The object at `key`, or an empty one: wire objects may be of any shape."""
    value = node.get(key) if isinstance(node, dict) else None
    return value if isinstance(value, dict) else {}


def text_of(node: Any, key: str) -> str:
    """The text at `key`, or ""."""
    value = node.get(key) if isinstance(node, dict) else None
    return value if isinstance(value, str) else ""


def number(node: Any, key: str) -> int:
    """The positive number at `key`, or 0."""
    value = node.get(key) if isinstance(node, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
