"""Mentions in a text, as the core finds them: `@name`, or `@'name with blanks'`. Pure; flow 4."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["mention_keys", "with_mentions"]

_UNFIT = re.compile(r"[\s.,;/\\#@'\"`~*_!\x00-\x1f\x7f]+")
_FORMATS = frozenset("`*_~#!")


def mention_keys(names: Mapping[int, str]) -> dict[str, int]:
    """For each member number its name as it can stand in a text, each another: the core wants distinct names,
    and shows the member's own name whatever stands there."""
    keys: dict[str, int] = {}
    for number, name in names.items():
        base = _UNFIT.sub(" ", name).strip() or f"member {number}"
        key, again = base, 2
        while key in keys:
            key, again = f"{base} {again}", again + 1
        keys[key] = number
    return keys


def with_mentions(text: str, keys: Mapping[str, int]) -> str:
    """The text with each name in it as a mention: those that it lacks are put before it."""
    missing = [_mark(key) for key in keys if not _stands_in(text, key)]
    return " ".join([*missing, text]) if missing else text


def _mark(key: str) -> str:
    quoted = any(char.isspace() for char in key) or not key[-1].isalnum()
    return f"@'{key}'" if quoted else f"@{key}"


def _stands_in(text: str, key: str) -> bool:
    """Whether the core finds the mention: at the start of a word, in a line without formatting before it."""
    pattern = re.compile(rf"(?:^|(?<=[ \n])){re.escape(_mark(key))}(?=[.,;:!?]*(?:[ \n]|$))")
    for found in pattern.finditer(text):
        line = text[text.rfind("\n", 0, found.start()) + 1 : found.start()]
        if not _FORMATS & set(line):
            return True
    return False
