"""Pages that fit a budget: how many messages go into an answer, and how one that is too big is made small.

Every size is the length of the compact JSON text in UTF-16 code units. A page is never empty because of its size: its
first message is cut until it fits, and 500 units are enough for any message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from simplexmcp.rooms.errors import RoomsError
from simplexmcp.rooms.jsontext import dumps, size, units

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["DEFAULT_BUDGET", "FLOOR", "LISTING_BUDGET", "Draft", "Page", "fill", "fit", "remainder", "shrink", "trim"]

DEFAULT_BUDGET = 100_000
FLOOR = 500  # what the smallest form of any message fits into
LISTING_BUDGET = 96_000
_ORDER = {
    key: place
    for place, key in enumerate(
        (
            *("seq", "from", "format", "priority", "content", "to", "reply_to", "at", "unix", "truncated", "length"),
            *("supersedes", "superseded_by", "to_truncated", "to_total", "oversized", "offset", "next_offset"),
            *("depth", "directed", "room_id", "room_name"),
        )
    )
}


class Draft(NamedTuple):
    """A message as it should be answered, and what it is cut from: `body` is the start of the stored text (all of it,
    or more than the budget), `length` the whole text's length in code points."""

    message: dict[str, Any]
    body: str
    length: int


class Page(NamedTuple):
    """Messages that fit; `byte_limited`: more were there, but the budget was full. `used`: the list's size."""

    messages: list[dict[str, Any]]
    byte_limited: bool
    used: int


def fill(drafts: Iterable[Draft], budget: int) -> Page:
    """As many messages as fit, in their order. When the first one alone is too big, it is shrunk and the only one
    (budget: at least FLOOR + 2)."""
    messages: list[dict[str, Any]] = []
    used = 2
    waiting = iter(drafts)
    for draft in waiting:
        wanted = size(draft.message) + bool(messages)
        if used + wanted <= budget:
            messages.append(draft.message)
            used += wanted
            continue
        if messages:
            return Page(messages, byte_limited=True, used=used)
        messages.append(shrink(draft, budget - used))
        return Page(messages, byte_limited=next(waiting, None) is not None, used=used + size(messages[0]))
    return Page(messages, byte_limited=False, used=used)


def shrink(draft: Draft, budget: int) -> dict[str, Any]:
    """The message within the budget: its content cut, then its mentions halved, then a stub of what it was."""
    message = draft.message
    if size(message) <= budget:
        return message
    if draft.body:
        cut = {**message, "content": "", "truncated": True, "length": draft.length}
        cut["content"] = fit(draft.body, budget - size(cut))
        message = _in_order(cut if cut["content"] else {**cut, "oversized": True})
    mentions = message["to"] or []
    while size(message) > budget and len(mentions) > 1:
        mentions = mentions[: len(mentions) // 2]
        total = len(draft.message["to"])
        message = _in_order({**message, "to": mentions, "to_truncated": True, "to_total": total})
    return message if size(message) <= budget else _stub(draft, budget)


def fit(text: str, room: int) -> str:
    """The longest start of a text whose JSON form, without its quotes, has at most `room` units."""
    text = text[: max(room, 0)]
    if units(dumps(text)) - 2 <= room:
        return text
    fits, too_many, used = 0, len(text), 0
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        wanted = units(dumps(text[fits:middle])) - 2
        if used + wanted <= room:
            fits = middle
            used += wanted
        else:
            too_many = middle
    return text[:fits]


def remainder(budget: int, fixed: dict[str, Any]) -> int:
    """What an answer's other fields leave for its list of messages. Raises RoomsError when that is too little."""
    left = budget - size(fixed) + 2
    if left < FLOOR + 2:
        needed = budget + FLOOR + 2 - left
        raise RoomsError(f"max_bytes {budget} is too small for this answer: it needs at least {needed}.")
    return left


def trim(rows: list[dict[str, Any]], budget: int = LISTING_BUDGET) -> tuple[list[dict[str, Any]], bool]:
    """The first rows of a listing that fit (at least one), and whether rows were dropped."""
    used = 2
    for count, row in enumerate(rows):
        used += size(row) + bool(count)
        if used > budget and count:
            return rows[:count], True
    return rows, False


def _stub(draft: Draft, budget: int) -> dict[str, Any]:
    message: dict[str, Any] = {
        **draft.message,
        "content": "",
        "to": None,
        "reply_to": None,
        "truncated": True,
        "length": draft.length,
        "oversized": True,
    }
    for key in ("room_name", "from"):
        while size(message) > budget and message.get(key):
            message[key] = message[key][: len(message[key]) // 2]
    return _in_order(message)


def _in_order(message: dict[str, Any]) -> dict[str, Any]:
    return {key: message[key] for key in sorted(message, key=_ORDER.__getitem__)}
