"""Foreign text on a terminal: nothing in it may steer the terminal or hide what it says."""

from __future__ import annotations

import os
import unicodedata
from typing import TYPE_CHECKING, TextIO, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["Paint", "has_colours", "nearest", "painted", "plain", "printable"]

Paint: TypeAlias = "Callable[[str, str], str]"
"""Gives a text the look of a kind in `_LOOKS`, or leaves it as it is."""

_LOOKS = {"good": "32", "doubtful": "33", "bad": "31", "faint": "2"}

# Controls (escape sequences begin with one), formats (bidi, zero width, tags), surrogates, private use,
# unassigned, line and paragraph separators.
_ACTIVE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def printable(text: str) -> str:
    """`text` on one line, each character that is not plainly visible written as `<U+202E>`."""
    return "".join(f"<U+{ord(c):04X}>" if unicodedata.category(c) in _ACTIVE else c for c in text)


def nearest(word: str, known: Iterable[str]) -> str:
    """` Did you mean X?` for the known word that is most like `word`; empty when none is."""
    import difflib  # only a mistake costs its start time

    found = difflib.get_close_matches(word, known, 1)
    return f" Did you mean {found[0]}?" if found else ""


def has_colours(stream: TextIO) -> bool:
    """Whether a person sees colours there and wants them: a terminal, and no NO_COLOR."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def painted(text: str, look: str) -> str:
    """`text` in the colour of a look: good, doubtful, bad or faint."""
    return f"\x1b[{_LOOKS[look]}m{text}\x1b[0m"


def plain(text: str, _look: str) -> str:
    """`text` as it is."""
    return text
