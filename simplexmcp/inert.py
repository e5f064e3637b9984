"""Foreign text made inert: what peers and agents wrote, shown on a card so that nothing of it is active or hidden.

The core's markdown works line by line, and a code span is the only quoting it has: no escape, no crossing of lines.
So each line becomes a span of its own, backquotes become ˋ, and characters that a reader cannot see become
`<U+202E>`. A span is one only at the start of a line or after a blank.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

__all__ = ["Cut", "code", "cut", "name", "span", "visible"]

NAME_LIMIT = 120
"""Characters of a name that are shown; core names have at most 50, a hostile core's may be longer."""

_BLANK_LETTERS = frozenset("\u115f\u1160\u2800\u3164\uffa0\u034f\u17b4\u17b5")
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_EMOJI_ELSEWHERE = frozenset("#*0123456789‼⁉ℹ〰")  # what a selector makes an emoji, beside symbols
_MARKS_IN_A_ROW = 4
_BLANKS = " \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_MANY_BLANKS = re.compile(f"[{_BLANKS}]{{9,}}")
_PLAIN_NAME = re.compile(r"[^\W\d_]+(?:[ -][^\W\d_]+)*(?: \d{1,3})?", re.UNICODE)


def visible(text: str) -> str:
    """The text with control, bidi, zero-width and other unseen characters as `<U+…>`; newlines stay."""
    out: list[str] = []
    marks = 0
    previous = ""
    for char in text:
        marks = marks + 1 if unicodedata.combining(char) else 0
        if char == "\n" or not (_is_hidden(char, previous) or marks > _MARKS_IN_A_ROW):
            out.append(char)
        else:
            out.append(f"<U+{ord(char):04X}>")
        previous = char
    return "".join(out)


def _is_hidden(char: str, previous: str) -> bool:
    if char in "\ufe0e\ufe0f":  # emoji presentation: part of a symbol, smuggled data anywhere else
        return not (
            previous in _EMOJI_ELSEWHERE or (previous > "\x7f" and unicodedata.category(previous) in ("So", "Sm"))
        )
    if char in _BLANK_LETTERS or 0xFE00 <= ord(char) <= 0xFE0D or 0xE0100 <= ord(char) <= 0xE01EF:
        return True
    return unicodedata.category(char) in _HIDDEN_CATEGORIES


def span(line: str) -> str:
    """One line of foreign text as a code span; blanks at its ends and long runs of blanks are drawn (␣)."""
    line = visible(line.replace("\n", "⏎")).replace("`", "ˋ")
    line = _MANY_BLANKS.sub(lambda run: f"␣×{len(run.group())}", line)
    body = line.strip(" ")
    if not line.strip(_BLANKS):
        return "`" + ("␣" * len(line) or "␀") + "`"
    left, right = len(line) - len(line.lstrip(" ")), len(line) - len(line.rstrip(" "))
    return "`" + "␣" * left + body + "␣" * right + "`"


def code(text: str) -> str:
    """Foreign text as code spans, one a line; a run of empty lines is one span that counts them."""
    if not text:
        return "`␀`"
    lines: list[str] = []
    empty = 0
    for line in text.split("\n"):
        if line:
            if empty:
                lines.append(_empty_lines(empty))
                empty = 0
            lines.append(span(line))
        else:
            empty += 1
    if empty:
        lines.append(_empty_lines(empty))
    return "\n".join(lines)


def _empty_lines(count: int) -> str:
    return "`⏎`" if count == 1 else f"`⏎×{count}`"


def name(text: str) -> str:
    """A display name on a card, in one line: as it is when it is plain words, else as a code span."""
    text = " ".join(text.split("\n"))
    if len(text) > NAME_LIMIT:
        text = f"{text[:NAME_LIMIT]}… ({len(text)} characters)"
    return text if _PLAIN_NAME.fullmatch(text) and visible(text) == text else span(text)


@dataclass(frozen=True)
class Cut:
    """A long text for a card: its beginning and end, and how many characters are between them."""

    head: str
    tail: str
    hidden: int


def cut(text: str, keep: int = 1000) -> Cut:
    """The first and last `keep` characters; the cut never parts a character from its combining marks."""
    if len(text) <= 2 * keep:
        return Cut(text, "", 0)
    start, end = keep, len(text) - keep
    while start > keep - 20 and _joins(text[start]):
        start -= 1
    while end < len(text) - keep + 20 and _joins(text[end]):
        end += 1
    return Cut(text[:start], text[end:], end - start)


def _joins(char: str) -> bool:
    return bool(unicodedata.combining(char)) or char in "\u200d\ufe0e\ufe0f" or "\U0001f3fb" <= char <= "\U0001f3ff"
