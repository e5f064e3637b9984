"""Display names as the core accepts them: what it makes of a name; a name is valid when nothing changes."""

from __future__ import annotations

import unicodedata

__all__ = ["LONGEST", "is_space", "valid_name"]

LONGEST = 50
"""Characters of the longest display name."""

NEVER = frozenset(".,;/\\#@'\"`~")
FIRST = frozenset(("Lu", "Ll", "Lt", "Lm", "Lo", "Nd", "So"))
MARKS = frozenset(("Mn", "Mc", "Me"))
# Brackets and quotation marks are left out of names; other punctuation and symbols may follow a letter, three
# in a row at most.
PUNCTUATION = frozenset(("Pc", "Pd", "Po", "Sm", "Sc", "Sk"))


def is_space(char: str) -> bool:
    """A space as the core counts them: blanks of any width, tab, line breaks; not U+0085 or zero width."""
    return char in "\t\n\v\f\r" or unicodedata.category(char) == "Zs"


def valid_name(name: str) -> str:
    """The valid display name nearest to `name`: single blanks, no controls, at most 50 characters, or ""."""
    kept: list[str] = []
    punctuation = 0
    for char in name:
        if len(kept) == LONGEST:
            break
        if not _may_follow(kept[-1] if kept else "", char, punctuation):
            continue
        if is_space(char):
            kept.append(" ")
            continue
        kept.append(char)
        punctuation = punctuation + 1 if unicodedata.category(char) in PUNCTUATION else 0
    return "".join(kept).rstrip(" ")


def _may_follow(previous: str, char: str, punctuation: int) -> bool:
    if char in NEVER:
        return False
    category = unicodedata.category(char)
    if category in FIRST:
        return True
    if previous == "":
        return False
    if previous == " ":
        return category in PUNCTUATION and punctuation == 0
    if unicodedata.category(previous) in PUNCTUATION:
        return is_space(char) or (category in PUNCTUATION and punctuation < 3)
    return is_space(char) or category in MARKS or category in PUNCTUATION
