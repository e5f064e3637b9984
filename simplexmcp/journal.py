"""The journal of actions (`actions.jsonl`): what the next start must know of a run that crashed.

Each line is a record `{"n": NUMBER, …}`; the records of a number add up to its entry, a later field replacing
an earlier one, until a record with `"end": true` takes the entry out. An action is written before its card is
posted, so that no card is ever left without somebody who finishes it.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
from typing import TYPE_CHECKING, Any, final

from simplexmcp.errors import Refused
from simplexmcp.folder import disk_error, write_private

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Entry", "Journal", "read_journal"]

Entry = dict[str, Any]

_log = logging.getLogger(__name__)

_EMPTY_ABOVE = 1 << 18  # bytes: a journal without open entries is emptied when it is longer


@final
class Journal:
    """The open journal; one per data folder, under its lock. Not thread-safe: call it from one task at a
    time."""

    def __init__(self, path: Path) -> None:
        """Reads what the last run left, and rewrites the file to just that. Raises UserError."""
        try:
            self._open: dict[int, Entry] = _read(path)
            write_private(path, b"".join(_line(entry) for entry in self._open.values()))
            self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            raise disk_error(path, error) from error
        self.left: tuple[Entry, ...] = tuple(dict(entry) for entry in self._open.values())
        """The entries that the last run did not end, oldest first; each has its number as `n`."""
        self._torn = False

    def write(self, number: int, *, durable: bool = True, **fields: Any) -> None:
        """Adds `fields` to the entry of action `number`. On the disk when it returns; with `durable` false it
        outlives the process but not the machine, and takes microseconds. Raises Refused when the disk
        refuses."""
        self._append({"n": number, **fields}, durable=durable)
        self._open.setdefault(number, {"n": number}).update(fields)

    def end(self, number: int) -> None:
        """Takes the entry of action `number` out: its card has its outcome. When the disk refuses, the next start takes
        it out."""
        if self._open.pop(number, None) is None:
            return
        try:
            self._append({"n": number, "end": True}, durable=False)
        except Refused as error:
            _log.warning("The end of action %d is not in the journal: %s", number, error)
            return
        if not self._open and os.fstat(self._fd).st_size > _EMPTY_ABOVE:
            os.ftruncate(self._fd, 0)

    def close(self) -> None:
        """Closes the file; what is not ended is found by the next start."""
        os.close(self._fd)

    def _append(self, record: Entry, *, durable: bool) -> None:
        data = (b"\n" if self._torn else b"") + _line(record)
        self._torn = True
        try:
            written = os.write(self._fd, data)
            if written == len(data):
                self._torn = False
            else:
                raise OSError(28, os.strerror(28))
            if durable:
                os.fsync(self._fd)
        except OSError as error:
            raise Refused(
                f"The server can't write its journal ({error.strerror}), so nothing was done; "
                "ask your owner to look at the disk."
            ) from error


def read_journal(path: Path) -> list[Entry]:
    """The open entries in a journal that somebody else may be writing; [] when there is none. Raises
    OSError."""
    return list(_read(path).values())


def _line(record: Entry) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def _read(path: Path) -> dict[int, Entry]:
    """Entries that have no end. A line that a crash or a full disk tore is skipped: what it said was not done
    yet."""
    entries: dict[int, Entry] = {}
    with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
        for line in file:
            record = _record(line)
            if record is None:
                continue
            if record.pop("end", False):
                entries.pop(record["n"], None)
            else:
                entries.setdefault(record["n"], {}).update(record)
    return entries


def _record(line: bytes) -> Entry | None:
    try:
        record: Any = json.loads(line)
    except ValueError:
        return None
    if not isinstance(record, dict) or type(record.get("n")) is not int:
        return None
    return record
