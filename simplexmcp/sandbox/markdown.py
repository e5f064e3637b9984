"""The formats that the core finds in the text of a message (`formattedText`).

Rules, line by line (a newline ends every format):

* A message of one line that begins with `/` after blanks is one command.
* At the start of a word (only the ASCII space separates words, and the end of a format begins a new one) the
  first character decides what is tried: a mark, a mention, a name, a command, a link, a phone number; else it
  is a word.
* A mark (`*_~` and the backquote) takes everything up to the next of its kind: a format, unless that is empty
  or has a blank at either end, then it is plain text *as a whole*. Without a second mark the rest of the line
  is plain.
* A word is plain unless it is, without the punctuation at its end, a link or an e-mail address.

Neighbouring parts with the same format are one part. Every line is read once, from left to right.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from simplexmcp.sandbox import weblinks
from simplexmcp.sandbox.names import is_space

__all__ = ["parse"]

Format = dict[str, Any]
Piece = tuple[str, Format | None]
Found = tuple[list[Piece], int]  # what was found, and where reading goes on

MARKS: dict[str, Format] = {
    "*": {"type": "bold"},
    "_": {"type": "italic"},
    "~": {"type": "strikeThrough"},
    "`": {"type": "snippet"},
}
SECRET: Format = {"type": "secret"}
COLORS = ("red", "green", "blue", "yellow", "cyan", "magenta")
STYLE = re.compile(r"!(?:(-)|([1-6])|r(?:ed)?|g(?:reen)?|b(?:lue)?|y(?:ellow)?|c(?:yan)?|m(?:agenta)?)")
PHONE_START = re.compile(r"(?:\+[0-9]+)?(?:[ .-]?\([0-9]+\))?")
PHONE_REST = re.compile(r"(?:[ .-]?[0-9]+)*")
PHONE_LENGTHS = range(7, 23)
NAME_LABEL = re.compile(r"[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*")


def parse(text: str) -> list[dict[str, Any]] | None:
    """The parts of a message: `{"text": …, "format"?: {"type": …}}`; None when nothing in it is formatted."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    if len(lines) == 1:
        start = lines[0].lstrip(" ")
        if len(start) < 2:
            return None
        if start[0] == "/":
            return [_part((lines[0], {"type": "command", "commandStr": start[1:]}))]
    pieces: list[Piece] = []
    for number, line in enumerate(lines):
        if number:
            pieces.append(("\n", None))
        pieces.extend(_line(line))
    if all(piece[1] is None for piece in pieces):
        return None
    return [_part(piece) for piece in _joined(pieces)]


def _part(piece: Piece) -> dict[str, Any]:
    text, form = piece
    return {"text": text} if form is None else {"text": text, "format": dict(form)}


def _joined(pieces: list[Piece]) -> list[Piece]:
    joined: list[tuple[list[str], Format | None]] = []
    for text, form in pieces:
        if joined and joined[-1][1] == form:
            joined[-1][0].append(text)
        elif text:
            joined.append(([text], form))
    return [("".join(texts), form) for texts, form in joined]


def _line(line: str) -> list[Piece]:
    pieces: list[Piece] = []
    at = 0
    while at < len(line):
        found, at = _fragment(line, at)
        pieces.extend(found)
    return pieces


def _fragment(line: str, at: int) -> Found:
    char = line[at]
    found: Found | None = None
    if char == " ":
        end = at + 1
        while end < len(line) and line[end] == " ":
            end += 1
        return [(line[at:end], None)], end
    if char in MARKS:
        return _marked(line, at)
    if char == "#":
        return _secret_or_name(line, at)
    if char == "!":
        found = _styled(line, at)
    elif char == "@":
        found = _mention(line, at)
    elif char == "/":
        found = _command(line, at)
    elif char == "[":
        found = _hyperlink(line, at)
    elif char == "+" or "0" <= char <= "9":
        found = _phone(line, at)
    return found or _word(line, at)


def _marked(line: str, at: int) -> Found:
    end = line.find(line[at], at + 1)
    if end < 0:
        return [(line[at:], None)], len(line)
    inner = line[at + 1 : end]
    if not _tight(inner):
        return [(line[at : end + 1], None)], end + 1
    return [(inner, MARKS[line[at]])], end + 1


def _tight(text: str) -> bool:
    return text != "" and text[0] != " " and text[-1] != " "


def _secret_or_name(line: str, at: int) -> Found:
    start = _run(line, at + 1)
    close = line.find("#", start)
    content_end = len(line) if close < 0 else close
    end = _run(line, content_end)
    if close >= 0 and _tight(line[start:close]):
        return [(line[at + 1 : end - 1], SECRET)], end
    token_end = _token_end(line, at + 1)
    token, punctuation = _split(line[at + 1 : token_end])
    if name := _simplex_name(token, "publicGroup"):
        return [("#" + token, name), (punctuation, None)], token_end
    return [(line[at:end], None)], end


def _run(line: str, at: int) -> int:
    while at < len(line) and line[at] == "#":
        at += 1
    return at


def _styled(line: str, at: int) -> Found | None:
    style = STYLE.match(line, at)
    if style is None or style.end() >= len(line) or not is_space(line[style.end()]):
        return None
    start = style.end() + 1
    end = line.find("!", start)
    if end < 0 or not _tight(inner := line[start:end]):
        return None
    return [(inner, _style(style))], end + 1


def _style(style: re.Match[str]) -> Format:
    if style[1]:
        return {"type": "small"}
    color = COLORS[int(style[2]) - 1] if style[2] else next(c for c in COLORS if c[0] == style[0][1])
    return {"type": "colored", "color": color}


def _mention(line: str, at: int) -> Found | None:
    name = _name(line, at + 1)
    if name is None:
        return None
    text, quoted, punctuation, end = name
    shown = f"@'{text}'" if quoted else "@" + text
    form = None if quoted else _simplex_name(text, "contact")
    return [(shown, form or {"type": "mention", "memberName": text}), (punctuation, None)], end


def _command(line: str, at: int) -> Found | None:
    name = _name(line, at + 1)
    if name is None:
        return None
    text, quoted, punctuation, end = name
    keyword = text[: _token_end(text, _blank_end(text))].lstrip()
    if not keyword or not all(_is_letter(c) or "0" <= c <= "9" or c == "_" for c in keyword):
        return None
    shown = f"/'{text}'" if quoted else "/" + text
    return [(shown, {"type": "command", "commandStr": text}), (punctuation, None)], end


def _name(line: str, at: int) -> tuple[str, bool, str, int] | None:
    """A name or command at `at`: its text, whether it is quoted, the punctuation behind it, and its end."""
    quoted = line[at : at + 1] == "'"
    start = at + 1 if quoted else at
    if start >= len(line) or line[start] <= " " or line[start] in "#@'":
        return None
    if quoted:
        end = line.find("'", start)
        return None if end < 0 else (line[start:end], True, "", end + 1)
    end = _token_end(line, start)
    text, punctuation = _split(line[start:end])
    return text, False, punctuation, end


def _token_end(line: str, at: int) -> int:
    while at < len(line) and not is_space(line[at]):
        at += 1
    return at


def _blank_end(text: str) -> int:
    at = 0
    while at < len(text) and is_space(text[at]):
        at += 1
    return at


def _split(token: str) -> tuple[str, str]:
    end = len(token)
    while end and _is_punctuation(token[end - 1]):
        end -= 1
    return token[:end], token[end:]


def _is_punctuation(char: str) -> bool:
    return unicodedata.category(char)[0] == "P"


def _is_letter(char: str) -> bool:
    return unicodedata.category(char)[0] == "L"


def _simplex_name(name: str, kind: str) -> Format | None:
    """The format of a SimpleX name (`@bob.simplex`, `#team`); only a group may leave out `.simplex`."""
    labels = name.lower().split(".") if name.isascii() and len(name) <= 253 else []
    if not labels or not all(len(label) <= 63 and NAME_LABEL.fullmatch(label) for label in labels):
        return None
    domain: dict[str, Any]
    if len(labels) == 1:
        if kind == "contact":
            return None
        domain = {"nameTLD": "simplex", "domain": labels[0], "subDomain": []}
    elif labels[-1] in ("simplex", "testing"):
        domain = {"nameTLD": labels[-1], "domain": labels[-2], "subDomain": labels[-3::-1]}
    else:
        domain = {"nameTLD": "web", "domain": ".".join(labels), "subDomain": []}
    return {"type": "simplexName", "nameInfo": {"nameType": kind, "nameDomain": domain}}


def _hyperlink(line: str, at: int) -> Found | None:
    middle = line.find("]", at + 1)
    if middle <= at + 1 or line[middle + 1 : middle + 2] != "(":
        return None
    end = line.find(")", middle + 2)
    if end <= middle + 2:
        return None
    form = weblinks.hyperlink(line[at + 1 : middle], line[middle + 2 : end])
    return None if form is None else ([(line[at : end + 1], form)], end + 1)


def _phone(line: str, at: int) -> Found | None:
    start = PHONE_START.match(line, at)
    assert start is not None
    longest = PHONE_LENGTHS.stop
    # A number that is too long is none: reading not much more than that keeps a long line of digits linear.
    rest = PHONE_REST.match(line, start.end(), min(len(line), at + longest + 1))
    assert rest is not None
    if rest.end() - at not in PHONE_LENGTHS:
        return None
    return [(line[at : rest.end()], {"type": "phone"})], rest.end()


def _word(line: str, at: int) -> Found:
    end = line.find(" ", at)
    end = len(line) if end < 0 else end
    word = line[at:end]
    bare_end = len(word)
    while bare_end and word[bare_end - 1] not in "/)" and _is_punctuation(word[bare_end - 1]):
        bare_end -= 1
    form = weblinks.word(word, word[:bare_end])
    if form is None:
        return [(word, None)], end
    return [(word[:bare_end], form), (word[bare_end:], None)], end
