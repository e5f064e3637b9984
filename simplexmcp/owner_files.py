"""What the owner's commands about files do (flows 6, 13, 14, 16), and what the owners are told of files unasked.

`/forward` takes its time, so it runs in a nursery of its own; everything else is done when its reply is posted.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Protocol, final, runtime_checkable

import trio

from simplexmcp import cards, filecards
from simplexmcp.chats import Chat
from simplexmcp.commands import Bound
from simplexmcp.core.limits import MAX_MESSAGE, Quote, carried, encoded_size
from simplexmcp.errors import CoreError, LinkLost, Refused
from simplexmcp.files.outgoing import copy_to_post
from simplexmcp.messages import file_of
from simplexmcp.terminal import printable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from simplexmcp.action import Action
    from simplexmcp.actions import Actions
    from simplexmcp.audit import Audit
    from simplexmcp.core.api import ChatApi, Wire
    from simplexmcp.files.folders import Kept
    from simplexmcp.files.outgoing import SentCopy
    from simplexmcp.files.relays import Relays
    from simplexmcp.files.room import FileRoom
    from simplexmcp.messages import ChatFile
    from simplexmcp.standing import Approver

__all__ = ["Fetch", "OwnerFiles", "OwnerNews"]

_log = logging.getLogger(__name__)

_MARGIN = 50
_PREVIEWED = frozenset({"image", "video"})
_BACKLOG = 100
_TRIES = 5  # of a post whose link was lost
_INTERNAL = "Internal error; look at the server's log."


@runtime_checkable
class Fetch(Protocol):
    """The perform of a download, as far as a `/forward` needs it."""

    @property
    def file(self) -> ChatFile:
        """What is fetched."""
        ...

    relays: Relays


@final
class OwnerNews:
    """What the owners are told of files without a question: posted one after the other while `run` runs."""

    def __init__(self, post: Callable[[cards.Card], Awaitable[int]], out: Callable[[str], None]) -> None:
        self._post, self._out = post, out
        self._in, self._news = trio.open_memory_channel[tuple[cards.Card, trio.Event | None]](_BACKLOG)
        self._back = trio.Event()

    async def run(self) -> None:
        """Post until cancelled."""
        async for card, after in self._news:
            if after is not None:
                await after.wait()
            try:
                await self._post_surely(card)
            except (CoreError, Refused) as error:
                self._out(f"A message about files was not sent to the control chat: {printable(str(error))}")
            except Exception:  # noqa: BLE001 - a defect in one post must not end the server, nor the next ones
                _log.exception("a message about files")
                self._out(f"A message about files was not sent to the control chat: {_INTERNAL}")

    def link_is_back(self) -> None:
        """The link to the core is there again: what could not be told is told now."""
        self._back.set()
        self._back = trio.Event()

    async def _post_surely(self, card: cards.Card) -> None:
        """Post, over a lost link when it is back: rather twice than never. Raises CoreError, Refused."""
        for _ in range(_TRIES - 1):
            back = self._back
            try:
                await self._post(card)
            except LinkLost:
                await back.wait()
            else:
                return
        await self._post(card)

    def refused(self, path: str, reason: str, *, last: bool) -> None:
        """The agent wanted to send a file that it may not send."""
        self._tell(filecards.refused_file(path, reason, last=last))

    def failed(self, line: str) -> None:
        """A file was not uploaded, after its message was sent."""
        self._tell(cards.Card(line))

    def kept(self, chat: Chat, folder: Path, kept: Kept, after: trio.Event) -> None:
        """A chat was left and its files stay; told `after` the outcome of the leave."""
        self._tell(filecards.kept(chat, str(folder), kept.files, kept.size), after)

    def _tell(self, card: cards.Card, after: trio.Event | None = None) -> None:
        try:
            self._in.send_nowait((card, after))
        except trio.WouldBlock:
            self._out(f"The control chat was not told: {printable(card.text)}")


@final
class OwnerFiles:
    """The file commands of the control chat `control_ref`."""

    def __init__(
        self, actions: Actions, api: ChatApi, audit: Audit, files: FileRoom,
        post: Callable[[cards.Card], Awaitable[int]], *, control_ref: str,
    ) -> None:  # fmt: skip
        self._actions, self._api, self._audit, self._files, self._post = actions, api, audit, files, post
        self._control_ref = control_ref
        self._nursery: trio.Nursery | None = None
        self._forwarding: set[int] = set()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Forward until cancelled."""
        async with trio.open_nursery() as self._nursery:
            task_status.started()
            await trio.sleep_forever()

    def redirected(self, number: int) -> list[cards.Card] | None:
        """The answer to `/approve` of a pending download; None for every other action."""
        action = self._actions.get(number)
        if action is None or self._actions.not_pending(number, None) is not None:
            return None
        subject = action.request.subject
        return [filecards.is_a_download(subject, number)] if isinstance(subject, cards.DownloadSubject) else None

    async def receive(self, ref: str, number: int, by: Approver, *, every: bool) -> list[cards.Card]:
        """`/receive CHAT N`, `/receive CHAT N all`. Raises CoreError."""
        if (reply := self._no_download(ref, number)) is not None:
            return reply
        action = self._actions.get(number)
        assert action is not None
        subject, chat = action.request.subject, action.request.chat
        assert isinstance(subject, cards.DownloadSubject)
        assert chat is not None
        done: list[cards.Card] = []
        if every:
            if subject.hosts:
                return [cards.Card("The file is on servers that are not known: approve it alone, without `all`.")]
            if self._actions.mode == "host":
                return [cards.Card("The server runs with --approve host: nothing asks for approval here.")]
            await self._actions.files.grant(chat.base, by, Bound())
            self._audit.write("standing-approval", chat=chat.base, by=by.name, member=by.member, files=True)
            done = [filecards.files_approved(chat, by.name)]
        reply_text = self._actions.approve(number, ref, by)
        return [cards.Card(reply_text), *done] if reply_text else done

    async def off(self, chat: Chat, by: Approver) -> list[cards.Card]:
        """`/receive CHAT off`. Raises CoreError."""
        had = await self._actions.files.revoke(chat.base)
        self._audit.write("revoked", chat=chat.base, by=by.name, member=by.member, files=True)
        return [filecards.files_need_approval(chat, had=had)]

    def forward(self, ref: str, number: int, by: Approver) -> list[cards.Card]:
        """`/forward CHAT N`: no reply when it begins."""
        if (reply := self._no_download(ref, number)) is not None:
            return reply
        action = self._actions.get(number)
        assert action is not None
        assert self._nursery is not None
        if number not in self._forwarding:
            self._audit.write("forward", action=number, chat=action.ref, by=by.name, member=by.member)
            self._forwarding.add(number)
            self._nursery.start_soon(self._forward, action)
        return []

    def kept(self, chat: Chat, kept: Kept) -> cards.Card:
        """What a `/leave` says of the files that stay."""
        return filecards.kept(chat, str(self._files.folders.folder(chat.ref)), kept.files, kept.size)

    async def delete(self, ref: str, by: Approver) -> list[cards.Card]:
        """`/delete CHAT files`: of a current chat, or of one that was left. Raises CoreError, Refused."""
        chat = Chat(ref=ref, kind="chat", name="", state="unknown")
        await self._files.downloads.cancel_chat(chat)
        try:
            deleted = await trio.to_thread.run_sync(self._files.folders.delete, ref)
        except OSError as error:
            raise Refused(f"The files of {ref} were not all deleted: {error.strerror}.") from error
        self._audit.write("files-deleted", chat=ref, by=by.name, member=by.member, files=deleted.files)
        return [filecards.deleted(ref, deleted.files, deleted.size)]

    def _no_download(self, ref: str, number: int) -> list[cards.Card] | None:
        """The answer when action N is no pending download of this chat."""
        if reply := self._actions.not_pending(number, ref):
            return [cards.Card(reply)]
        action = self._actions.get(number)
        if action is None or not isinstance(action.request.subject, cards.DownloadSubject):
            return [filecards.is_no_download(number)]
        return None

    # Forwarding

    async def _forward(self, action: Action) -> None:
        job, chat = action.request.perform, action.request.chat
        assert isinstance(job, Fetch)
        assert chat is not None
        try:
            async with self._files.downloads.fetch(chat, job.file, "forwarded", job.relays) as transfer:
                path = await transfer.done()
                copy = await copy_to_post(path, job.file.name, self._files.folders)
            await self._post_file(action, job.file, copy)
        except (CoreError, Refused) as error:
            self._audit.write("forward-failed", action=action.number, error=str(error))
            await self._tell_failed(action.number, str(error))
        except Exception:  # noqa: BLE001 - a defect must not end the server, and the owners must have an answer
            _log.exception("action %d: its file was not forwarded", action.number)
            self._audit.write("forward-failed", action=action.number, error=_INTERNAL)
            await self._tell_failed(action.number, _INTERNAL)
        else:
            self._audit.write("forwarded", action=action.number, chat=action.ref)
        finally:
            self._forwarding.discard(action.number)

    async def _post_file(self, action: Action, file: ChatFile, copy: SentCopy) -> None:
        """Post the copy as a reply to the card, when both fit. Raises CoreError; then the copy is gone."""
        composed = _composed(action, file, copy)
        try:
            entry = (await self._api.send_messages(self._control_ref, [composed]))[0]
        except Exception as error:
            if not (isinstance(error, CoreError) and error.tag == "link/lost"):
                self._files.folders.discard_copy(copy.path)
            raise
        if (sent := file_of(entry.get("chatItem"))) is not None:
            self._files.uploads.track(sent.file_id, copy, self._control_ref)

    async def _tell_failed(self, number: int, error: str) -> None:
        try:
            await self._post(filecards.not_received(number, error))
        except (CoreError, Refused) as failed:
            _log.warning("action %d: the owners were not told that the file was not received: %s", number, failed)


def _composed(action: Action, file: ChatFile, copy: SentCopy) -> Wire:
    """The message that brings a file to the owners, with the sender's preview, as a reply to the action's card when the
    core would take that."""
    content: dict[str, Any] = {"type": "file", "text": filecards.forwarded(action.number)}
    if file.kind in _PREVIEWED and (preview := cards.picture(file.content.get("image"))):
        content |= {"type": file.kind, "image": preview}
        if file.kind == "video":
            content["duration"] = _seconds(file.content.get("duration"))
    composed: Wire = {"fileSource": {"filePath": str(copy.path)}, "msgContent": content}
    if action.card is None:
        return composed
    asked = cards.asking(action.request.subject, action.number)
    more = {key: value for key, value in content.items() if key not in ("type", "text")}
    quote = carried(Quote(asked.content(), own=True), content["type"])
    size = encoded_size(
        content["text"], kind=content["type"], quote=quote, group=True, file=(copy.path.name, copy.size), **more
    )
    return composed | {"quotedItemId": action.card} if size <= MAX_MESSAGE - _MARGIN else composed


def _seconds(value: object) -> int:
    return value if isinstance(value, int) and 0 < value < 100_000 else 0
