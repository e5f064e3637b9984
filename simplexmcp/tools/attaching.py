"""The file of a `send`: checked before the action is made, copied when it is performed (flow 15)."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, final

from simplexmcp import messages
from simplexmcp.cards import Attachment
from simplexmcp.errors import CoreError, Refused
from simplexmcp.files.outgoing import composed_file, open_offer, private_copy

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from simplexmcp.files.outgoing import FileOffer, SentCopy
    from simplexmcp.tools.arguments import Send
    from simplexmcp.tools.kit import Kit

__all__ = ["Parcel", "attachment", "ready_to_send", "take_file"]


async def take_file(kit: Kit, arguments: Send) -> FileOffer | None:
    """The file that the agent names, checked and hashed; None without one. Raises Refused: the owners are told too."""
    if arguments.file is None:
        return None
    try:
        return await open_offer(arguments.file, arguments.as_, kit.files.rules)
    except Refused as error:
        kit.files.refused(arguments.file, str(error))
        raise


def attachment(offer: FileOffer) -> Attachment:
    """What the card shows of a file."""
    return Attachment(
        kind=offer.kind, path=offer.path, size=offer.size, sha256=offer.sha256, metadata=offer.metadata,
        preview=offer.preview or None,
    )  # fmt: skip


@final
class Parcel:
    """A message's file on its way: the copy that is sent, and the message that carries it."""

    def __init__(self, kit: Kit, ref: str, offer: FileOffer, copy: SentCopy, text: str) -> None:
        self._kit, self._ref, self._offer, self._copy = kit, ref, offer, copy
        self.composed: dict[str, Any] = composed_file(offer, copy, text)

    def sent(self, entry: dict[str, Any]) -> None:
        """The core took it as `entry` (`chatInfo`, `chatItem`): the copy stays until it is uploaded."""
        if (file := messages.file_of(entry.get("chatItem"))) is not None:
            self._kit.files.sent(self._ref, file.file_id, self._offer, self._copy)


@asynccontextmanager
async def ready_to_send(kit: Kit, ref: str, offer: FileOffer | None, text: str) -> AsyncGenerator[Parcel | None]:
    """The parcel of a file; None without one. Raises Refused when the file changed. The copy goes when the block fails,
    unless the core may have taken it: after a lost link, or when the server stops, the next start deletes it."""
    if offer is None:
        yield None
        return
    copy = await private_copy(offer, kit.files.folders)
    try:
        yield Parcel(kit, ref, offer, copy, text)
    except Exception as error:
        if not (isinstance(error, CoreError) and error.tag == "link/lost"):
            kit.files.folders.discard_copy(copy.path)
        raise
