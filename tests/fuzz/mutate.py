"""Inputs that were nearly right: recorded values with some parts changed, and bytes with some bits changed.

Everything comes from one `Random`, so that a seed gives the same inputs again.
"""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

from tests.recorded import WIRE, frames

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

__all__ = ["as_text", "changed", "damaged", "junk", "recorded"]

_NUMBERS = (0, 1, -1, 2, 4, 15, 255, 2**31, 2**53, 2**63, -(2**63), 10**30, 0.5, -0.0, 1e308)
_TEXTS = (
    "", " ", "\0", "\n", "a", "text", "owner", "/approve 1", "/'approve 1'", "@4", "#1", "#15(_support:4)", "\ud800",
    "\u202e", "`", "2026-12-01T00:00:00Z", "../../x", "direct", "group", "rcvMsgContent", "x" * 70_000, "é\u0301" * 40,
)  # fmt: skip
_FORMS = ("[" * 2_000, '{"a":' * 2_000, "]", "}", '"', ",", ":", "NaN", "1e999", "-", "\\u0000", "\\ud800", "\ufeff")


def junk(random: Random, depth: int = 2) -> Any:
    """Some value of JSON."""
    kind = random.randrange(7 if depth else 5)
    if kind == 0:
        return random.choice((None, True, False))
    if kind == 1:
        return random.choice(_NUMBERS)
    if kind <= 4:
        return random.choice(_TEXTS)
    if kind == 5:
        return [junk(random, depth - 1) for _ in range(random.randrange(4))]
    keys = ("type", "chatInfo", "chatItem", "meta", "itemId", "user", "", "\ud800", "x" * 300)
    return {random.choice(keys): junk(random, depth - 1) for _ in range(random.randrange(4))}


def changed(random: Random, value: Any, others: list[Any]) -> Any:
    """A copy of a JSON value with one to four parts replaced, removed, repeated, or taken from one of the others."""
    copy = json.loads(json.dumps(value))
    for _ in range(random.choice((1, 1, 2, 4))):
        places = list(_places(copy))
        if not places:
            return junk(random)
        node, key = random.choice(places)
        what = random.randrange(6)
        if what == 0:
            del node[key]
        elif what == 1 and others:
            donors = list(_places(random.choice(others)))
            node[key] = json.loads(json.dumps(_at(random.choice(donors)))) if donors else None
        elif what == 2:
            node[key] = [node[key]] * random.choice((0, 1, 2, 50))
        elif what == 3:
            node[key] = {"type": node[key]} if not isinstance(node[key], dict) else list(node[key].values())
        else:
            node[key] = junk(random)
    return copy


def damaged(random: Random, data: bytes) -> bytes:
    """Bytes with some of them flipped, cut out, repeated, or replaced by what parsers dislike."""
    out = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 5))):
        at, size = random.randrange(len(out) + 1), random.choice((1, 1, 2, 8, 200))
        what = random.randrange(6)
        if what == 0 and out:
            out[min(at, len(out) - 1)] ^= 1 << random.randrange(8)
        elif what == 1:
            del out[at : at + size]
        elif what == 2:
            out[at:at] = out[at : at + size] * random.choice((1, 2, 20))
        elif what == 3:
            out[at:at] = random.randbytes(size)
        elif what == 4:
            out[at:at] = random.choice(_FORMS).encode("utf-8", "surrogatepass")
        else:
            del out[at:]
    return bytes(out)


def as_text(value: Any) -> str:
    """The JSON of a value; halves of characters as escapes."""
    return json.dumps(value, ensure_ascii=True)


@cache
def recorded(*, events: bool | None = None) -> list[dict[str, Any]]:
    """What a core was seen to say, as frames: all, or events or answers alone. Not to be changed."""
    found: list[dict[str, Any]] = []
    for file in sorted(WIRE.glob("*.jsonl.xz")):
        for frame in frames(file.name.removesuffix(".jsonl.xz")):
            said = frame.get("resp")
            if isinstance(said, dict) and frame["dir"] in ("resp", "event") and len(json.dumps(said)) < 20_000:
                event = frame["dir"] == "event"
                if events in (None, event):
                    found.append({"resp": said} if event else {"corrId": "1", "resp": said})
    return found


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every part of a value, as its container and its key."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(entries):
        yield value, key
        yield from _places(inner)


def _at(place: tuple[Any, Any]) -> Any:
    return place[0][place[1]]
