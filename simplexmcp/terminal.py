"""Foreign text on a terminal: nothing in it may steer the terminal or hide what it says."""

from __future__ import annotations

import logging
import unicodedata
from typing import final

__all__ = ["PrintableFormatter", "printable"]

# Controls (escape sequences begin with one), formats (bidi, zero width, tags), surrogates, private use,
# unassigned, line and paragraph separators.
_ACTIVE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def printable(text: str) -> str:
    """`text` on one line, each character that is not plainly visible written as `<U+202E>`."""
    return "".join(f"<U+{ord(c):04X}>" if unicodedata.category(c) in _ACTIVE else c for c in text)


@final
class PrintableFormatter(logging.Formatter):
    """Log lines whose foreign parts are inert; a traceback keeps its lines."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of `record`, and its traceback when it has one."""
        return "\n".join(printable(line) for line in super().format(record).split("\n"))
