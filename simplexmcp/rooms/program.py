"""What the small programs share: options in (`--name VALUE`, `--name=VALUE`, flags), lines out.

A parser library costs them their start time.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, final

from simplexmcp.errors import SimplexMcpError
from simplexmcp.rooms.jsontext import units

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Options", "UsageError", "complain", "emit", "emit_error", "parse"]


@final
class UsageError(SimplexMcpError):
    """The command line does not fit: what is wrong with it."""


@final
class Options:
    """The options that were given, and the words that belong to none of them."""

    def __init__(self, values: dict[str, str], flags: set[str], words: list[str]) -> None:
        self.words = words
        self._values = values
        self._flags = flags

    def flag(self, name: str) -> bool:
        """Whether the flag was given."""
        return name in self._flags

    def text(self, name: str, longest: int) -> str | None:
        """A value of at most `longest` UTF-16 units; None when it was not given. Raises UsageError."""
        value = self._values.get(name)
        if value is not None and units(value) > longest:
            raise UsageError(f"{name} is too long: at most {longest} characters.")
        return value

    def number(self, name: str, lowest: int, highest: int, unit: str = "") -> int | None:
        """A whole number, written in digits alone; None when it was not given. Raises UsageError."""
        value = self._values.get(name)
        if value is None:
            return None
        if not (value.isascii() and value.isdigit()):
            raise UsageError(f'{name} must be {"an" if lowest else "a non-negative"} integer, not "{value[:40]}".')
        digits = value.lstrip("0") or "0"
        if len(digits) <= len(str(highest)) and lowest <= int(digits) <= highest:
            return int(digits)
        if unit:
            raise UsageError(f"{name} must be between {lowest} and {highest} {unit}.")
        if len(digits) > len(str(highest)) or int(digits) > highest:
            raise UsageError(f"{name} is too large: at most {highest}.")
        raise UsageError(f"{name} must be at least {lowest}.")


def parse(argv: Sequence[str], valued: Sequence[str], flags: Sequence[str], *, words: int = 0) -> Options:
    """The options in `argv`, with at most so many `words` before, between or behind them; the last of several values
    counts. Raises UsageError."""
    values: dict[str, str] = {}
    given: set[str] = set()
    found: list[str] = []
    rest = list(argv)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if name in flags:
            if equals:
                raise UsageError(f"{name} takes no value.")
            given.add("--help" if name == "-h" else name)
            continue
        if name not in valued:
            if len(found) == words or word.startswith("--"):
                raise UsageError(f"unknown argument: {name[:80]}.")
            found.append(word)
            continue
        if not equals:
            if not rest or rest[0].startswith("--"):
                raise UsageError(f"{name} requires a value.")
            value = rest.pop(0)
        if not (value := value.strip()):
            raise UsageError(f"{name} requires a non-empty value.")
        values[name] = value
    return Options(values, given, found)


def emit(line: str) -> None:
    """Writes one line to stdout, as UTF-8 whatever the locale says. Raises BrokenPipeError when nobody reads it."""
    stdout: Any = sys.stdout
    if stdout is None:
        raise BrokenPipeError
    try:
        stdout.flush()
        stdout.buffer.write(line.encode("utf-8", "replace") + b"\n")
        stdout.buffer.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # nothing may write to the closed pipe again, not even at exit
        raise


def emit_error(line: str) -> None:
    """Writes one line to stderr. A closed one changes nothing: the exit code tells, too."""
    stderr: Any = sys.stderr
    if stderr is not None:
        with suppress(OSError, ValueError):
            stderr.write(f"{line}\n")
            stderr.flush()


def complain(program: str, text: str) -> None:
    """Writes `PROGRAM: text` to stderr, without characters that steer a terminal."""
    emit_error("".join(letter if letter.isprintable() or letter == "\n" else " " for letter in f"{program}: {text}"))
