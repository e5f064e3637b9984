"""The audit log (`audit.jsonl`): what was asked, by whom it was decided, what happened. Append-only, one
object a line.

It never holds message texts of others, tokens or keys: callers pass ids, kinds, names and states. As a second
fence, secrets that the server knows are cut out of every line, and long values are cut short.
"""

from __future__ import annotations

import json
import logging
import os
from typing import TYPE_CHECKING, Any, final

from simplexmcp.clock import iso
from simplexmcp.folder import disk_error

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from simplexmcp.clock import Clock

__all__ = ["Audit", "read_audit"]

_log = logging.getLogger(__name__)

_VALUE_LIMIT = 500  # characters of one value


@final
class Audit:
    """The open audit log; one per data folder, under its lock."""

    def __init__(self, path: Path, clock: Clock, secrets: tuple[str, ...] = ()) -> None:
        """`secrets` never appear in a line, whatever the caller passes. Raises UserError."""
        self._clock = clock
        self._secrets = tuple(secret for secret in secrets if secret)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            self._fd = os.open(path, flags, 0o600)
            os.fchmod(self._fd, 0o600)
        except OSError as error:
            raise disk_error(path, error) from error

    def write(self, event: str, **fields: Any) -> None:
        """Appends `{"at": …, "event": event, …}`; fields that are None are left out.

        A full disk is logged and does not stop the program: the owner's card is the record that counts.
        """
        entry = {"at": iso(self._clock.now()), "event": event}
        entry.update((key, self._clean(value)) for key, value in fields.items() if value is not None)
        data = json.dumps(entry, separators=(",", ":"), default=str).encode() + b"\n"
        try:
            if os.write(self._fd, data) != len(data):
                os.write(self._fd, b"\n")  # keeps the torn line to itself
        except OSError as error:
            _log.warning("The audit log can't be written (%s): %s is missing in it.", error.strerror, event)

    def close(self) -> None:
        """Closes the file."""
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
