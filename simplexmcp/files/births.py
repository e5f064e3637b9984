"""When each chat was made, over restarts: what tells a chat from an older one that had its number, also when the core
gave the number again while the server was down. It is in `DATA/chats.json`, which is private."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any, final

from simplexmcp.errors import UserError
from simplexmcp.folder import read_private, write_private

if TYPE_CHECKING:
    from collections.abc import Container
    from pathlib import Path

__all__ = ["Births"]

_log = logging.getLogger(__name__)

_SECONDS = len("2026-12-01T10:00:00")  # the core tells fractions of a second in one place and not in another


@final
class Births:
    """The times when chats were made, by their references."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._born = _read(file)

    def another(self, ref: str, born: str) -> bool:
        """True when the chat `ref` that is known was made at another time than `born`, which is empty when the core did
        not tell it."""
        known = self._born.get(ref, "")
        return bool(known and born) and known[:_SECONDS] != born[:_SECONDS]

    def note(self, ref: str, born: str) -> None:
        """The chat `ref` was made at `born`."""
        if born and (ref not in self._born or self.another(ref, born)):
            self._born[ref] = born
            self._save()

    def replace(self, born: dict[str, str], also: Container[str]) -> None:
        """These are all chats; what is known of others is forgotten, but for `also`."""
        new = {ref: known for ref, known in self._born.items() if ref in also} | born
        if new != self._born:
            self._born = new
            self._save()

    def _save(self) -> None:
        try:
            write_private(self._file, json.dumps(self._born, indent=0).encode())
        except OSError as error:  # without it only a number that is given again is not seen
            _log.warning("%s was not written: %s", self._file.name, error.strerror)


def _read(file: Path) -> dict[str, str]:
    try:
        read: Any = json.loads(read_private(file))
    except FileNotFoundError:
        return {}
    except (OSError, UserError, ValueError) as error:
        _log.warning("%s is not used: %s", file.name, error)
        return {}
    entries = read.items() if isinstance(read, dict) else ()
    return {ref: born for ref, born in entries if isinstance(ref, str) and isinstance(born, str)}
