"""The copies of files that are being sent: deleted when the core does not need them any more, and the owner is told
when a file did not get through (flow 15).

The core reads a copy after it has answered, until the event that ends the upload. That event names the copy's path, so
a copy is found also when the event comes before `track`. What a crashed run left is deleted at the next start.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from simplexmcp import inert
from simplexmcp.chats import chat_of
from simplexmcp.terminal import printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from simplexmcp.files.folders import Folders
    from simplexmcp.files.offer import SentCopy

__all__ = ["Uploads"]

_log = logging.getLogger(__name__)

_ENDS = frozenset({"sndFileCompleteXFTP", "sndFileError", "sndFileCancelled"})
_DELETIONS = frozenset({"chatItemsDeleted"})
_ERROR_CHARS = 300


@dataclass(frozen=True)
class _Upload:
    path: Path
    ref: str


@final
class Uploads:
    """The uploads of this run. `report` gets one line for the owner for each that failed."""

    def __init__(self, folders: Folders, report: Callable[[str], None]) -> None:
        self._folders = folders
        self._report = report
        self._running: dict[int, _Upload] = {}

    def track(self, file_id: int, copy: SentCopy, ref: str) -> None:
        """`copy` was given to the core as file `file_id` of chat `ref`. Its upload may have ended already."""
        if copy.path.exists():
            self._running[file_id] = _Upload(copy.path, ref)

    def on_event(self, event: dict[str, Any]) -> None:
        """Every event of the core, in its order, and the answer to `/fcancel`; others than those of uploads are
        ignored."""
        kind = event.get("type")
        if kind in _DELETIONS:
            for deletion in _list(event.get("chatItemDeletions")):
                file = _object(_object(_object(deletion).get("deletedChatItem")).get("chatItem")).get("file")
                self._end(_object(file).get("fileId"), _object(_object(file).get("fileSource")).get("filePath"))
        elif kind in _ENDS:
            meta = _object(event.get("fileTransferMeta"))
            ended = self._end(meta.get("fileId"), meta.get("filePath"))
            if kind == "sndFileError":
                self._failed(event, meta, ended)

    def chat_gone(self, ref: str) -> None:
        """A chat was left or deleted: its uploads have ended without an event."""
        base = ref.partition("(")[0]
        for file_id, upload in list(self._running.items()):
            if upload.ref.partition("(")[0] == base:
                self._end(file_id, None)

    def _end(self, file_id: Any, path: Any) -> _Upload | None:
        """Deletes a copy that is not needed any more; what was known of it."""
        upload = self._running.get(file_id) if isinstance(file_id, int) else None
        if upload is not None and isinstance(path, str) and Path(path) != upload.path:
            upload = None  # the core gives the numbers of deleted files again
        if upload is not None:
            del self._running[file_id]
        ended = upload.path if upload else Path(path) if isinstance(path, str) and path else None
        if ended is not None:
            try:
                self._folders.delete_copy(ended)
            except OSError as error:
                _log.warning("The copy of a sent file can't be deleted: %s.", error.strerror)
        return upload

    def _failed(self, event: dict[str, Any], meta: dict[str, Any], upload: _Upload | None) -> None:
        item = _object(event.get("chatItem_") or event.get("chatItem"))
        chat = chat_of(item.get("chatInfo"))
        number = _object(_object(_object(item.get("chatItem")).get("meta"))).get("itemId")
        if chat is not None:
            where = f" in {chat.kind} {inert.name(chat.name)} ({chat.ref})"
        else:
            where = f" in chat ({upload.ref})" if upload else ""  # `#15` alone is active in the core's markdown
        name, error = _text(meta.get("fileName")), _text(event.get("errorMessage"))[:_ERROR_CHARS]
        message = f" of message {number}" if isinstance(number, int) else ""
        self._report(f"The file {inert.span(name)}{message}{where} was not sent: {inert.span(error)}.")
        _log.warning("The file %s%s was not sent: %s.", printable(name), message, printable(error))


def _object(node: Any) -> dict[str, Any]:
    return node if isinstance(node, dict) else {}


def _list(node: Any) -> list[Any]:
    return node if isinstance(node, list) else []


def _text(node: Any) -> str:
    return node if isinstance(node, str) else ""
