"""What one download does: it asks the core, waits, takes the file into the agent's charge, and leaves nothing after a
failure (flow 13).

It reads the item before and every minute, so that what no event tells (a message deleted, relays refused in a group, a
link that was lost) ends it too. What the core goes on receiving after a restart is joined, not begun again.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import trio

from simplexmcp.errors import CoreError, LinkLost, Refused
from simplexmcp.files import places as disk
from simplexmcp.files.describing import CHECK
from simplexmcp.files.items import ended_by, read_file, unknown_servers
from simplexmcp.files.names import shown_size

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from simplexmcp.chats import Chat
    from simplexmcp.core.api import ChatApi
    from simplexmcp.files.describing import Describing
    from simplexmcp.files.places import Places
    from simplexmcp.files.transfer import Receiving
    from simplexmcp.messages import ChatFile

__all__ = ["BUSY", "INTERNAL", "STALL", "Carrier"]

_log = logging.getLogger(__name__)

STALL = 30 * 60.0
"""Seconds without more of a file, after which its download fails."""

BUSY = frozenset({"rcvAccepted", "rcvTransfer", "rcvWarning"})
"""Statuses of a file that the core is receiving."""

INTERNAL = "Internal error; look at the server's log, and ask again."
"""What is said of a defect."""

_TOLERANCE = 10 << 20  # bytes more than announced, as the core takes them; encryption and padding are in it
_SPARE = 64 << 20  # bytes of the disk that a download leaves
_CANCEL_WAIT = 10.0
_UNANSWERED = "The link to the SimpleX core was lost while the file was received; ask again when it is back."


@final
class Carrier:
    """Carries files from the core to their places."""

    def __init__(self, api: ChatApi, places: Places, describing: Describing, free: Callable[[Path], int]) -> None:
        self._api, self._places, self._describing, self._free = api, places, describing, free
        self._moving = trio.Lock()
        self._to_cancel: dict[int, Receiving] = {}

    async def carry(self, receiving: Receiving) -> None:
        """A download from its beginning until nobody works with the file any more; after a failure nothing of it is
        left, and `receiving.error` says why."""
        try:
            await self._receive(receiving)
            await self._hand_over(receiving)
        except (Refused, CoreError) as error:
            receiving.fail(error)
        except OSError as error:
            why = error.strerror or type(error).__name__
            receiving.fail(Refused(f"The file cannot be kept on the disk: {why}."), cancel=True)
        except Exception:  # noqa: BLE001 - a defect must not leave a part of a file behind
            _log.exception("file %d", receiving.file.file_id)
            receiving.fail(Refused(INTERNAL), cancel=True)
        if receiving.error is not None:
            await self._clean_up(receiving)

    async def _receive(self, receiving: Receiving) -> None:
        """Until the core has the file and it is where nobody else writes. Raises Refused, CoreError, OSError."""
        chat = receiving.chat
        file = receiving.file = await read_file(self._api, chat, receiving.file)
        if file.status == "rcvComplete":
            found = await trio.to_thread.run_sync(self._places.find, chat, file)
            if found is None:
                raise Refused("The file was received, but it is not in its folder any more.")
            await self._accept(receiving, found)
            return
        if error := ended_by(file):
            raise error
        if file.status in BUSY:
            receiving.target = Path(file.source) if file.source else None
            receiving.rise(*file.progress)
        else:
            await self._ask(receiving)
        await self._accept(receiving, await self._wait(receiving), most=file.size + _TOLERANCE)

    async def _ask(self, receiving: Receiving) -> None:
        """Ask the core to receive the file. It is the core that refuses relays which nobody approved."""
        chat, file = receiving.chat, receiving.file
        approve = bool(receiving.approved) and await self._may_approve(receiving)
        target = self._places.folders.target(chat.ref, file.file_id, file.name, receiving.place)
        room = self._free(target.parent) - _SPARE
        # The encrypted file and the decrypted one are on the disk at the same time.
        if 2 * file.size > room:
            raise Refused(f"The disk has no room for a file of {shown_size(file.size)}.")
        await trio.to_thread.run_sync(self._places.clear, chat, file)
        if receiving.error is not None:
            raise receiving.error
        receiving.target = target
        try:
            await self._api.receive_file(file.file_id, str(target), approve)
        except CoreError as error:
            if error.tag == "link/lost":
                receiving.check()  # nobody knows whether it was done: the item tells
            elif (text := _tag(error)) == "fileAlreadyReceiving":
                receiving.check()
            elif text == "fileNotApproved":
                self._remember_refusal(receiving, error.error)
                raise _not_approved(receiving.file) from None
            else:
                raise _acceptance(error) from None

    async def _may_approve(self, receiving: Receiving) -> bool:
        """Whether relays have to be approved: never others than those of the card. Raises Refused."""
        now = await self._describing.look(receiving.chat, receiving.file)
        if now is None:
            raise Refused("The sender has not uploaded the file yet; ask again.")
        if not now.certain or not receiving.approved.issuperset(now.unknown):
            raise Refused("The file servers changed after the request.")
        return bool(now.unknown)

    async def _wait(self, receiving: Receiving) -> Path:
        """Where the core put the whole file. Raises Refused, CoreError."""
        look_at, lost = trio.current_time() + CHECK, False
        while receiving.complete is None:
            if receiving.error is not None:
                raise receiving.error
            if not receiving.unsure and trio.current_time() < look_at:
                with trio.move_on_at(look_at):
                    await receiving.woken()
                continue
            receiving.unsure, look_at = False, trio.current_time() + CHECK
            try:
                await self._check(receiving)
            except LinkLost:
                if lost:
                    receiving.fail(Refused(_UNANSWERED), cancel=True)
                lost = True
            except CoreError as error:
                _log.info("File %d: reading its item failed, trying again: %s", receiving.file.file_id, error.tag)
            else:
                lost = False
        return receiving.complete

    async def _check(self, receiving: Receiving) -> None:
        """Read the item: what no event told. Raises Refused, CoreError."""
        file = await read_file(self._api, receiving.chat, receiving.file)
        if file.status == "rcvComplete":
            receiving.complete = Path(file.source)
            return
        if error := ended_by(file):
            raise error
        if file.status not in BUSY:
            raise await self._given_up(receiving)
        self.risen(receiving, *file.progress)
        if trio.current_time() - receiving.risen_at >= STALL:
            receiving.fail(Refused("The download made no progress for 30 minutes and was cancelled."), cancel=True)

    async def _accept(self, receiving: Receiving, complete: Path, most: int | None = None) -> None:
        """Take the whole file into the agent's charge; one that came now, with at most `most` bytes. Raises Refused,
        OSError."""
        file = receiving.file
        try:
            if not complete.is_absolute():
                raise FileNotFoundError
            if not self._places.is_ours(complete):
                await self.hold(receiving.chat, file, complete)
                complete = self._places.held(receiving.chat, file)
            size = await trio.to_thread.run_sync(disk.secure, complete)
        except FileNotFoundError:
            raise Refused("The core received the file, but it is not on this computer.") from None
        if most is not None and size > most:
            await trio.to_thread.run_sync(complete.unlink)
            raise Refused(f"The file is larger than its sender said ({shown_size(size)}); it was deleted.")
        receiving.arrived = complete
        # A download that began for the owner, or that the core made, is not in the agent's place yet.
        own = self._places.path(receiving.chat, file)
        receiving.place = "received" if complete == own else "forwarded"
        receiving.tell()

    async def _hand_over(self, receiving: Receiving) -> None:
        """Give the file to those who wait, and move it to the agent's place when it may have it. Raises OSError."""
        while receiving.takers():
            if receiving.error is not None:
                raise receiving.error
            if receiving.takers("received") and not receiving.in_place and not receiving.takers("forwarded"):
                await self._place(receiving)
            else:
                await receiving.woken()

    async def _place(self, receiving: Receiving) -> None:
        chat, file, source = receiving.chat, receiving.file, receiving.arrived
        target = self._places.folders.target(chat.ref, file.file_id, file.name)
        async with self._moving:
            if source is not None:
                await trio.to_thread.run_sync(disk.move, source, target)
        receiving.arrived, receiving.place = target, "received"
        receiving.tell()

    async def hold(self, chat: Chat, file: ChatFile, source: Path) -> None:
        """Move a file that the core received by itself into its chat's folder, where no result names it. Raises
        Refused, OSError."""
        async with self._moving:
            if not await trio.to_thread.run_sync(self._places.hold, chat, file, source):
                raise Refused("The file did not come in full.")

    async def _clean_up(self, receiving: Receiving) -> None:
        """After a failure: nothing of it is left in the core and on the disk."""
        with trio.CancelScope(shield=True, deadline=trio.current_time() + _CANCEL_WAIT):
            if receiving.to_cancel and receiving.arrived is None:
                try:
                    if not await self.cancel(receiving.file.file_id):
                        self._remove(receiving)  # it was complete a moment before
                except LinkLost:
                    self._to_cancel[receiving.file.file_id] = receiving
        if receiving.target is not None:
            self.remove_empty(receiving.target)

    async def cancel(self, file_id: int) -> bool:
        """Tell the core that a file is not wanted any more; False when it had ended. Raises LinkLost."""
        try:
            await self._api.cancel_file(file_id)
        except LinkLost:
            raise
        except CoreError as error:
            _log.info("File %d was not cancelled: %s", file_id, error.tag)
            return False
        return True

    def _remove(self, receiving: Receiving) -> None:
        target = receiving.target
        try:
            if target is not None and self._places.is_ours(target):
                target.unlink(missing_ok=True)
        except OSError as error:
            _log.warning("File %d stays on the disk: %s", receiving.file.file_id, error)

    def remove_empty(self, path: Path) -> None:
        """Removes the empty file that stands for a download that ended; other files stay."""
        try:
            self._places.remove_empty(path)
        except OSError as error:
            _log.warning("An empty file stays at %s: %s", path, error.strerror)

    def risen(self, receiving: Receiving, received: int, total: int) -> None:
        """So many bytes came, of all, as the servers store them."""
        if total > receiving.file.size + _TOLERANCE:
            receiving.fail(Refused("The file is larger than its sender said; the download was cancelled."), cancel=True)
        receiving.rise(received, total)

    async def cancel_late(self, again: Container[int]) -> None:
        """After the link came back: what failed while it was down is not to come later, but for what is wanted
        `again`."""
        for file_id, receiving in list(self._to_cancel.items()):
            try:
                now = await read_file(self._api, receiving.chat, receiving.file)
                if now.status in BUSY and file_id not in again:
                    await self.cancel(file_id)
            except LinkLost:
                return
            except (CoreError, Refused) as error:
                _log.info("File %d was not cancelled: %s", file_id, error)
            self._to_cancel.pop(file_id, None)

    def _remember_refusal(self, receiving: Receiving, error: dict[str, Any]) -> None:
        if (refused := unknown_servers(error)) is not None:
            self._describing.refused(receiving.file, refused[1])

    async def _given_up(self, receiving: Receiving) -> Refused:
        """The core does not receive a file any more, without a word: mostly for relays that nobody approved."""
        found = await self._describing.look(receiving.chat, receiving.file)
        if found is not None and not receiving.approved.issuperset(found.unknown):
            return _not_approved(receiving.file)
        return Refused("The SimpleX core does not receive the file, and does not say why; ask again.")


def _not_approved(file: ChatFile) -> Refused:
    return Refused(
        f"The file of item {file.item} is on file servers that are not known here and were not approved; ask again: "
        "your owner is asked about them."
    )


def _tag(error: CoreError) -> str:
    return error.tag.removeprefix("error/")


def _acceptance(error: CoreError) -> Refused | CoreError:
    """Why the core does not begin to receive a file."""
    match _tag(error):
        case "fileCancelled":
            return Refused("The sender cancelled the file.")
        case "fileAlreadyExists":
            return Refused("There is a file in the place of the download already.")
        case "fileRcvChunk":
            return Refused("The file is larger than its sender said; it is not received.")
        case "fileWrite":
            return Refused("The core cannot write the file: the disk is full, or refuses.")
        case _:
            return error
