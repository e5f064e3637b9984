"""`simplexmcp log`: the audit log for people or as it is, and following it.

Nothing here writes: the log is read while a server appends to it. A last line without its end may still be being
written: while following it is waited for, else it counts as damaged unless it is whole.
"""

from __future__ import annotations

import os
import re
import select
import stat
import sys
import time
from collections import deque
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, final

from simplexmcp.auditlines import line_of, moment_of, parse_entry
from simplexmcp.errors import UserError
from simplexmcp.folder import disk_error
from simplexmcp.terminal import plain, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from simplexmcp.terminal import Paint

__all__ = ["LogOptions", "newest_lines", "parse_since", "show_log"]

_BLOCK = 1 << 16  # bytes
_LINE_LIMIT = 1 << 20  # bytes of a line; longer ones are not the server's
_LOOKS: dict[str, str] = {
    **dict.fromkeys(("failed", "refused-file", "refused-command", "card-refused", "upload-failed", "link-lost"), "bad"),
    **dict.fromkeys(("expired", "cancelled", "interrupted"), "doubtful"),
    "performed": "good",
}
_PAUSE = 0.5  # seconds between two looks
_AGO = re.compile(r"([0-9]{1,6})([mhd])", re.ASCII)
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}


@final
@dataclass(frozen=True)
class LogOptions:
    """What `simplexmcp log` was asked for."""

    json: bool = False
    follow: bool = False
    last: int | None = None
    """Only so many of the entries that are there."""
    since: datetime | None = None
    paint: Paint = plain


def parse_since(text: str, now: datetime) -> datetime:
    """The moment of `--since`: `30m`, `2h`, `7d` ago, or an ISO 8601 time, local without a zone. Raises UserError
    (code 2)."""
    try:
        if ago := _AGO.fullmatch(text):
            return now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        return datetime.fromisoformat(text).astimezone(now.tzinfo)
    except (ValueError, OverflowError):
        raise UserError("--since is a time such as 2026-12-01T08:00, or so long ago: 30m, 2h, 7d.", 2) from None


def show_log(path: Path, options: LogOptions, write: Callable[[str], None], complain: Callable[[str], None]) -> None:
    """Gives the entries in the log at `path` to `write`, a line each, oldest first; what can't be read of it is told
    by `complain`. With `follow` until interrupted, or until the reader of stdout is gone. Raises UserError."""
    tail = _Tail(path)
    try:
        first = _shown(tail.lines(), options, complain, whole=not options.follow)
        for line in first if options.last is None else deque(first, maxlen=options.last):
            write(line)
        while options.follow and _wait():
            for line in _shown(tail.lines(), options, complain, whole=False):
                write(line)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise disk_error(path, error) from error
    finally:
        tail.close()


def newest_lines(path: Path, limit: int) -> Iterator[bytes]:
    """The lines in the last `limit` bytes of a file, newest first, read block by block. Raises OSError."""
    fd = _open(path)
    try:
        position = os.fstat(fd).st_size
        end, rest = max(0, position - limit), b""
        while position > end:
            start = max(end, position - _BLOCK)
            *lines, oldest = (os.pread(fd, position - start, start) + rest).split(b"\n")[::-1]
            yield from lines
            position, rest = start, oldest
        if position == 0:
            yield rest
    finally:
        os.close(fd)


def _shown(
    lines: Iterator[bytes], options: LogOptions, complain: Callable[[str], None], *, whole: bool
) -> Iterator[str]:
    """The lines as they are printed; those that are damaged are counted."""
    damaged = 0
    for line in lines:
        if not line.endswith(b"\n") and not whole:
            continue
        entry = parse_entry(line)
        if entry is None:
            damaged += 1 if line.strip() else 0
        elif options.since is None or _is_since(entry, options.since):
            yield line.decode("utf-8", "replace").rstrip("\r\n") if options.json else _line(entry, options)
    if damaged:
        what = "1 line is" if damaged == 1 else f"{damaged} lines are"
        complain(f"{what} damaged, by a crash or a full disk, and left out.")


def _line(entry: dict[str, Any], options: LogOptions) -> str:
    at, blank, sentence = line_of(entry).partition("  ")
    if look := _LOOKS.get(str(entry.get("event"))):
        sentence = options.paint(sentence, look)
    return f"{options.paint(at, 'faint')}{blank}{sentence}"


def _is_since(entry: dict[str, Any], since: datetime) -> bool:
    at = moment_of(entry)
    return at is not None and at >= since


@final
class _Tail:
    """What was appended since the last look, also when the file was replaced, or is not there (yet)."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd: int | None = None
        self._position = 0
        self._rest = b""

    def lines(self) -> Iterator[bytes]:
        """The new lines, each with its end; last the beginning of one that has no end yet, if there is one."""
        yield from self._new_lines()
        if self._is_replaced():
            yield from self._new_lines()
            self.close()
            yield from self._new_lines()
        if self._rest:
            yield self._rest

    def close(self) -> None:
        """Closes the file; the next look opens it again."""
        if self._fd is not None:
            os.close(self._fd)
        self._fd, self._position, self._rest = None, 0, b""

    def _new_lines(self) -> Iterator[bytes]:
        if self._fd is None:
            try:
                self._fd = _open(self._path)
            except FileNotFoundError:
                return
        while block := os.pread(self._fd, _BLOCK, self._position):
            self._position += len(block)
            *lines, self._rest = (self._rest + block).split(b"\n")
            yield from (line + b"\n" for line in lines)
            if len(self._rest) > _LINE_LIMIT:
                self._rest = self._rest[:1]  # it is damaged whatever follows

    def _is_replaced(self) -> bool:
        if self._fd is None:
            return False
        try:
            found = self._path.lstat()
        except FileNotFoundError:
            return False  # moved away: the server still writes to it
        mine = os.fstat(self._fd)
        return (found.st_dev, found.st_ino) != (mine.st_dev, mine.st_ino) or mine.st_size < self._position


def _open(path: Path) -> int:
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise UserError(f"{printable(str(path))} is not a regular file. Move it away.")
    return fd


def _wait() -> bool:
    """Waits for the next look; False as soon as nobody reads stdout any more."""
    try:
        out = sys.stdout.fileno()
        kind = os.fstat(out).st_mode
    except (OSError, ValueError):
        kind, out = 0, -1
    if not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)):
        time.sleep(_PAUSE)
        return True
    closed = select.poll()
    closed.register(out, 0)
    return not closed.poll(_PAUSE * 1000)
