"""`download`: the file of a message, after an owner's word (flow 13).

Before the card, the description of the file must be there: it names the servers, which see the address of whoever
fetches from them. The approved download reads the chat and the message again; it runs on when nobody waits for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import trio

from simplexmcp import cards, messages
from simplexmcp.action import Request
from simplexmcp.cards import DownloadSubject
from simplexmcp.errors import Refused
from simplexmcp.tooling import ToolResult
from simplexmcp.tools.items import item_of
from simplexmcp.tools.outcome import fields, settled
from simplexmcp.tools.trouble import clearly
from simplexmcp.tools.waiting import wall_time

if TYPE_CHECKING:
    from simplexmcp.action import Action, Progress
    from simplexmcp.chats import Chat
    from simplexmcp.files.relays import Relays
    from simplexmcp.files.transfer import Transfer
    from simplexmcp.messages import ChatFile
    from simplexmcp.tools.arguments import Download
    from simplexmcp.tools.kit import Kit

__all__ = ["DownloadJob", "download"]

_ANY_NUMBER = 10**9  # an action's number, at its longest
_HOSTS = 32  # unknown servers that an owner can be asked about at once
_AT_ONCE = 5.0  # seconds: what is known of a file is told, however short the wait


async def download(kit: Kit, arguments: Download, call: Progress) -> ToolResult:
    """Flow 13. Raises Refused, CoreError."""
    key = ("download", arguments.chat, arguments.item)
    action = kit.actions.find(key)
    if action is None:
        offer = await _offer(kit, arguments.chat, arguments.item)
        _, path = kit.files.downloads.look(offer.chat, offer.file)
        if path is not None:
            here = {"status": "known", "chat": arguments.chat, "item": arguments.item, "path": str(path)}
            return ToolResult(here)
        _refuse_missing(kit, offer)
        relays = await _relays(kit, offer, arguments.wait, call)
        # The approvals are those of now: the upload may have taken its time.
        offer = await _offer(kit, arguments.chat, arguments.item)
        action = kit.actions.ask(_request(kit, key, offer, relays))
    with kit.actions.attached(action):
        return await _follow(kit, action, arguments, call)


@dataclass(frozen=True)
class _Offer:
    """A file that somebody offers, as it was read: `sender` is a member of a group."""

    chat: Chat
    file: ChatFile
    sender: str | None
    sender_id: str | None

    @property
    def shown(self) -> tuple[Any, ...]:
        """What must be the same when it is fetched."""
        file = self.file
        return (file.file_id, file.item, file.name, file.size, file.kind, self.sender_id, self.sender)


async def _offer(kit: Kit, ref: str, number: int) -> _Offer:
    """The file of a message now. Raises Refused when there is none to fetch."""
    chat = await kit.chat(ref)
    item = await item_of(kit, chat, number)
    file = messages.file_of(item, chat)
    if (item.get("meta") or {}).get("itemDeleted") is not None:
        raise Refused(f"The message of item {number} in {ref} was deleted.")
    if file is None:
        raise Refused(f"Item {number} in {ref} has no file.")
    member = (item.get("chatDir") or {}).get("groupMember") or {}
    name = (member.get("memberProfile") or {}).get("displayName") or member.get("localDisplayName")
    return _Offer(chat, file, str(name) if member else None, str(member.get("memberId")) if member else None)


def _refuse_missing(kit: Kit, offer: _Offer) -> None:
    """A file that was received and is nowhere any more can't be received again: its owner is not asked. Raises
    Refused."""
    state, _ = kit.files.downloads.look(offer.chat, offer.file)
    if offer.file.status == "rcvComplete" and state == "failed":
        raise Refused(
            f"The file of item {offer.file.item} in {offer.chat.ref} was received before and is not there any more; "
            "it can be received again only when its sender sends it again."
        )


async def _relays(kit: Kit, offer: _Offer, wait: float, call: Progress) -> Relays:
    """The servers of the file: waits for the end of its upload. Raises Refused when it does not end in time, or when
    the file cannot be fetched at all."""
    where = f"of item {offer.file.item} in {offer.chat.ref}"
    with trio.move_on_after(max(wait, _AT_ONCE)) as patience:
        until = wall_time(kit.clock.now(), patience.deadline)
        text = f"The sender is uploading the file {where}; waiting until {until}."
        return await kit.files.downloads.relays(offer.chat, offer.file, lambda: call.say(text))
    raise Refused(f"The sender is still uploading the file {where}; nothing was asked. Call download again later.")


def _request(kit: Kit, key: tuple[Any, ...], offer: _Offer, relays: Relays) -> Request:
    chat, file = offer.chat, offer.file
    if relays.hosts and kit.actions.mode == "host":
        hosts = ", ".join(messages.shown_name(host) for host in relays.hosts[:5])
        raise Refused(f"The file is on servers that the agent does not know ({hosts}); in mode host none is approved.")
    subject = DownloadSubject(
        chat, file.item, offer.sender, file.name, file.size, relays.hosts, file.content.get("image")
    )
    if relays.hosts and (len(relays.hosts) > _HOSTS or not cards.fits(cards.asking(subject, _ANY_NUMBER))):
        raise Refused(
            f"The file is on {len(relays.hosts)} servers that the agent does not know; a card cannot name them all, so "
            "it is not received."
        )
    return Request(
        tool="download", key=key, input={"chat": chat.ref, "item": file.item}, subject=subject, chat=chat,
        perform=DownloadJob(kit, offer, relays),
        # An approval of later files is none of unknown servers, and none of what an owner rejected.
        files=not relays.hosts and not kit.actions.was_rejected(chat, file.item),
    )  # fmt: skip


@final
class DownloadJob:
    """The perform of a download, and what its calls and a `/forward` need to know of it."""

    def __init__(self, kit: Kit, offer: _Offer, relays: Relays) -> None:
        self._kit, self._offer = kit, offer
        self.relays = relays
        self.transfer: Transfer | None = None
        self.started = trio.Event()
        self.started_at = 0.0

    @property
    def file(self) -> ChatFile:
        """What is fetched."""
        return self._offer.file

    async def __call__(self, action: Action) -> dict[str, Any]:
        kit, offer = self._kit, self._offer
        self.started_at = trio.current_time()
        with clearly():
            now = await _offer(kit, offer.chat.ref, offer.file.item)
            if now.shown != offer.shown:
                raise Refused(f"The file of item {offer.file.item} in {offer.chat.ref} changed after the request.")
            await kit.actions.confirm(action, now.chat)
            async with kit.files.downloads.fetch(now.chat, now.file, "received", self.relays) as self.transfer:
                self.started.set()
                path = await self.transfer.done()
        return {"chat": offer.chat.ref, "item": offer.file.item, "path": str(path)}


async def _follow(kit: Kit, action: Action, arguments: Download, call: Progress) -> ToolResult:
    """Wait for the outcome: for the approver without an end, for the download `wait` seconds."""
    content = {"chat": arguments.chat, "item": arguments.item}
    job = action.request.perform
    assert isinstance(job, DownloadJob)
    with trio.CancelScope() as patience:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_tell_receiving, kit, action, job, arguments.wait, patience, call)
            await kit.actions.finished(action, call)
            nursery.cancel_scope.cancel()
    if not action.ended.is_set():
        return ToolResult(fields(action) | content)
    return settled(kit, action, fields(action) | content | action.result, [])


async def _tell_receiving(
    kit: Kit, action: Action, job: DownloadJob, wait: float, patience: trio.CancelScope, call: Progress
) -> None:
    """Bound the wait once the download runs, and tell how far it is."""
    since = trio.current_time()
    await action.decided.wait()
    await job.started.wait()
    patience.deadline = max(since, job.started_at) + wait
    until = wall_time(kit.clock.now(), patience.deadline)
    assert job.transfer is not None
    told = -1
    while True:
        if (percent := job.transfer.percent) != told:
            told = percent
            call.say(f"Receiving the file of item {job.file.item} in {action.ref}: {percent} %; waiting until {until}.")
        await job.transfer.changed()
