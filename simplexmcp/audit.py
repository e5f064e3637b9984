"""The audit log (`audit.jsonl`): what was asked, by whom it was decided, what happened. Append-only, one
object a line.

It never holds message texts of others, tokens or keys: callers pass ids, kinds, names and states. As a second
fence, secrets that the server knows are cut out of every line, and long values are cut short.

A line that the disk refuses is kept and written before the next one, so that the log has no hole once there is room
again. Nothing is done for the agent while one is missing: `secure` is called before each perform.
"""

from __future__ import annotations

import json
import logging
import os
from typing import TYPE_CHECKING, Any, final

from simplexmcp.clock import iso
from simplexmcp.errors import Refused
from simplexmcp.folder import disk_error

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from simplexmcp.clock import Clock

__all__ = ["Audit", "read_audit"]

_log = logging.getLogger(__name__)

_VALUE_LIMIT = 500  # characters of one value
_UNWRITTEN_LIMIT = 1 << 20  # bytes that a full disk may keep waiting


@final
class Audit:
    """The open audit log; one per data folder, under its lock."""

    def __init__(self, path: Path, clock: Clock, secrets: tuple[str, ...] = ()) -> None:
        """`secrets` never appear in a line, whatever the caller passes. Raises UserError."""
        self._path, self._clock = path, clock
        self._secrets = tuple(secret for secret in secrets if secret)
        self._unwritten = bytearray()
        self._unsynced = False
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            self._fd = os.open(path, flags, 0o600)
            os.fchmod(self._fd, 0o600)
            size = os.fstat(self._fd).st_size
            if size and os.pread(self._fd, 1, size - 1) != b"\n":
                self._unwritten += b"\n"  # a crash tore the last line: the next one is a line of its own
        except OSError as error:
            raise disk_error(path, error) from error

    def write(self, event: str, **fields: Any) -> None:
        """Appends `{"at": …, "event": event, …}`; fields that are None are left out.

        What a full disk refuses is logged and kept for the next write or `secure`.
        """
        entry = {"at": iso(self._clock.now()), "event": event}
        entry.update((key, self._clean(value)) for key, value in fields.items() if value is not None)
        line = json.dumps(entry, separators=(",", ":"), default=str).encode() + b"\n"
        if len(self._unwritten) + len(line) > _UNWRITTEN_LIMIT:
            _log.error("The audit log can't be written: %s will be missing in it.", event)
            return
        self._unwritten += line
        try:
            self._flush()
        except OSError as error:
            _log.warning("The audit log can't be written (%s): %s is kept until it can.", error.strerror, event)

    def entries(self) -> Iterator[dict[str, Any]]:
        """What it holds, oldest first. Raises OSError."""
        return read_audit(self._path)

    def secure(self) -> None:
        """Every line is on the disk when it returns. Raises Refused when the disk refuses: then nothing may be done
        that the log would not know."""
        try:
            self._flush()
            if self._unsynced:
                os.fsync(self._fd)
                self._unsynced = False
        except OSError as error:
            raise Refused(
                f"The server can't write its audit log ({error.strerror}), so nothing was done; "
                "ask your owner to look at the disk."
            ) from error

    def _flush(self) -> None:
        while self._unwritten:
            self._unsynced = True
            written = os.write(self._fd, self._unwritten)
            del self._unwritten[:written]

    def close(self) -> None:
        """Closes the file; what a full disk kept waiting is tried once more."""
        try:
            self._flush()
        except OSError as error:
            _log.error("The audit log can't be written (%s): its last lines are missing.", error.strerror)
        os.close(self._fd)

    def _clean(self, value: Any) -> Any:
        if isinstance(value, str):
            for secret in self._secrets:
                value = value.replace(secret, "…")
            return value if len(value) <= _VALUE_LIMIT else f"{value[:_VALUE_LIMIT]}…"
        if isinstance(value, dict):
            return {str(self._clean(str(key))): self._clean(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._clean(item) for item in value]
        return value


def read_audit(path: Path) -> Iterator[dict[str, Any]]:
    """The entries, oldest first; lines that a crash tore are skipped. Raises OSError."""
    with path.open("rb") as file:
        for line in file:
            try:
                entry: Any = json.loads(line)
            except ValueError:
                continue
            if isinstance(entry, dict):
                yield entry
