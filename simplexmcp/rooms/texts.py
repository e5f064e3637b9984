"""Rules for every stored text: how long it may be, and what it may never hold."""

from __future__ import annotations

import re
from typing import Any

from simplexmcp.rooms.errors import RoomsError
from simplexmcp.rooms.jsontext import units

__all__ = ["CAPS", "MAX_BODY_BYTES", "check_text", "check_value", "has_controls", "is_unstorable", "preview"]

MAX_BODY_BYTES = 10_000_000
# Lengths in UTF-16 code units.
CAPS = {
    "room_name": 200,
    "room_description": 2000,
    "pinned_intro": 10_000,
    "agent_id": 200,
    "persona_brand": 100,
    "persona_model": 100,
    "persona_version": 100,
    "resume_word": 200,
    "room_role": 200,
    "agent_description": 2000,
    "claim_key": 500,
    "claim_note": 2000,
    "mentions_per_post": 100,
    "client_message_id": 200,
    "room_reference": 500,
    "search_query": 1000,
    "filter": 500,
}
_SURROGATE = re.compile("[\ud800-\udfff]")
_CONTROL = re.compile("[\x00-\x1f\x7f]")


def check_text(what: str, text: str, cap: int | None = None) -> str:
    """The text, checked before it is stored. Raises RoomsError: NUL, a lone surrogate, more than `cap` units."""
    if "\x00" in text:
        raise RoomsError(f"{what} holds a NUL character (U+0000), which cannot be stored. Take it out.")
    if _SURROGATE.search(text):
        raise RoomsError(f"{what} holds a lone surrogate, which is no text. Take it out.")
    if cap is not None and units(text) > cap:
        raise RoomsError(f"{what} exceeds {cap} characters. Shorten it.")
    return text


def is_unstorable(text: str) -> bool:
    """Whether a text can never be in the database, so that no row can match it: NUL, a lone surrogate."""
    return "\x00" in text or _SURROGATE.search(text) is not None


def check_value(what: str, value: Any) -> None:
    """Checks every text and key of a structured value at any depth. Raises RoomsError for a lone surrogate."""
    waiting = [value]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, str):
            if _SURROGATE.search(inner):
                raise RoomsError(f"{what} holds a lone surrogate, which is no text. Take it out.")
        elif isinstance(inner, dict):
            waiting += [*inner.keys(), *inner.values()]
        elif isinstance(inner, list):
            waiting += inner


def has_controls(text: str) -> bool:
    """Whether a text holds a control character (U+0000 to U+001F, U+007F)."""
    return _CONTROL.search(text) is not None


def preview(text: str, limit: int) -> tuple[str, bool]:
    """The first `limit` code points of a text, and whether that is less than all."""
    return text[:limit], len(text) > limit
