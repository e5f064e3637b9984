"""`send`: a message to a chat, perhaps with a file, after an owner's word, and the replies to it (flows 4, 6, 15).

Everything is checked before the action is made. The approved send reads the chat, and the file, again: what was
shown is what is sent. No standing approval of messages carries a file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import trio

from simplexmcp import messages
from simplexmcp.action import Request
from simplexmcp.cards import SendSubject
from simplexmcp.core.api import count
from simplexmcp.core.limits import MAX_MESSAGE, Quote, carried, encoded_size
from simplexmcp.errors import CoreError, Refused
from simplexmcp.files.outgoing import content_of
from simplexmcp.states import State
from simplexmcp.tools.attaching import attachment, ready_to_send, take_file
from simplexmcp.tools.items import item_of
from simplexmcp.tools.mentions import mention_keys, with_mentions
from simplexmcp.tools.outcome import fields, settled
from simplexmcp.tools.trouble import GONE_TAGS, clearly
from simplexmcp.tools.waiting import Patience, Taken, until_quiet

if TYPE_CHECKING:
    from simplexmcp.action import Action, Progress
    from simplexmcp.chats import Chat
    from simplexmcp.files.outgoing import FileOffer
    from simplexmcp.inbox import Inbox
    from simplexmcp.tooling import ToolResult
    from simplexmcp.tools.arguments import Send
    from simplexmcp.tools.kit import Kit

__all__ = ["send"]

_MARGIN = 50
_SILENT_ROLES = frozenset({"observer", "relay"})
_PRESENT = ("introduced", "intro-inv", "accepted", "announced", "connected", "complete", "creator")


async def send(kit: Kit, arguments: Send, call: Progress) -> ToolResult:
    """Flows 4 and 15. Raises Refused, CoreError."""
    key: tuple[Any, ...] = ("send", arguments.chat, arguments.text, arguments.reply_to, arguments.mention)
    if arguments.file is not None:
        key += (arguments.file, arguments.as_)
    action = kit.actions.find(key)
    if action is None:
        draft = await _draft(kit, arguments)
        action = kit.actions.ask(_request(kit, key, draft, arguments))
    patience = Patience(arguments.wait, arguments.idle, arguments.limit)
    with kit.actions.attached(action):
        return await _follow(kit, action, patience, call)


@dataclass(frozen=True)
class _Draft:
    """A message that was checked: what the card shows and what is sent."""

    chat: Chat
    text: str
    quoted: messages.Quoted | None
    names: dict[int, str]
    reply_to: int | None
    file: FileOffer | None = None

    @property
    def mentions(self) -> dict[str, int]:
        return mention_keys(self.names)

    def composed(self, content: dict[str, Any] | None = None) -> dict[str, Any]:
        """The message as `/_send` takes it; `content`: that of a message with a file."""
        composed = content or {"msgContent": {"type": "text", "text": self.text}}
        if self.names:
            composed["mentions"] = self.mentions
        if self.reply_to is not None:
            composed["quotedItemId"] = self.reply_to
        return composed


async def _draft(kit: Kit, arguments: Send) -> _Draft:
    """Read and check everything that the message names. Raises Refused."""
    chat = await kit.chat(arguments.chat)
    _refuse_silent(chat)
    quoted = None if arguments.reply_to is None else await _quoted(kit, chat, arguments.reply_to)
    names = await _names(kit, chat, arguments.mention)
    text = with_mentions(arguments.text, mention_keys(names))
    draft = _Draft(chat, text, quoted, names, arguments.reply_to, await take_file(kit, arguments))
    _refuse_long(draft)
    return draft


def _request(kit: Kit, key: tuple[Any, ...], draft: _Draft, arguments: Send) -> Request:
    given: dict[str, Any] = {"chat": draft.chat.ref, "text": arguments.text}
    if arguments.reply_to is not None:
        given["reply_to"] = arguments.reply_to
    if arguments.mention:
        given["mention"] = list(arguments.mention)
    if arguments.file is not None:
        given |= {"file": arguments.file, "as": arguments.as_}
    quote = draft.quoted.text if draft.quoted else None
    file = attachment(draft.file) if draft.file else None
    return Request(
        tool="send",
        key=key,
        input=given,
        subject=SendSubject(draft.chat, draft.text, quote, tuple(draft.names.values()), file),
        chat=draft.chat,
        perform=_SendJob(kit, draft),
        # An approval of messages to a group is not one of messages to its admins or to one member, nor of files.
        standing=not draft.chat.scoped and file is None,
    )


@final
class _SendJob:
    """The perform of a send, and what its calls need to know of it afterwards."""

    def __init__(self, kit: Kit, draft: _Draft) -> None:
        self._kit, self._draft = kit, draft
        self.inbox: Inbox | None = None
        self.sent_at = 0.0

    async def __call__(self, action: Action) -> dict[str, Any]:
        kit, draft = self._kit, self._draft
        ref = draft.chat.ref
        with clearly():
            async with (
                kit.lanes.turn(ref, action.number),
                ready_to_send(kit, ref, draft.file, draft.text) as parcel,
            ):
                # The chat is read after the copy, which can take long.
                await kit.actions.confirm(action, await _again(kit, draft))
                # From before the send: a reply may be seen before the core's answer to it.
                inbox = action.kept.enter_context(kit.watch.collect(ref))
                composed = draft.composed(parcel.composed if parcel else None)
                sent = await kit.api.send_messages(ref, [composed])
                if parcel:
                    parcel.sent(sent[0])
        number = messages.item_id(sent[0].get("chatItem"))
        if number is None:
            raise Refused("The core took the message but did not tell its number; look at the chat.")
        inbox.start_after(number)
        self.inbox, self.sent_at = inbox, trio.current_time()
        return {"chat": ref, "item": number}


async def _again(kit: Kit, draft: _Draft) -> Chat:
    """The chat just before the send, with everything that the card showed. Raises Refused when something
    changed."""
    chat = draft.chat
    try:
        read = kit.checked(chat.ref, await kit.api.get_chat(chat.ref, count(0)))
    except CoreError as error:
        if error.tag in GONE_TAGS:
            raise Refused(f"{chat.title} is gone.") from error
        raise
    if draft.reply_to is not None and await _quoted(kit, read, draft.reply_to) != draft.quoted:
        raise Refused("The message to reply to changed after the request.")
    if draft.names and await _names(kit, read, tuple(draft.names)) != draft.names:
        raise Refused("A mentioned member changed after the request.")
    return read


async def _follow(kit: Kit, action: Action, patience: Patience, call: Progress) -> ToolResult:
    """Wait for the outcome, then for replies; marks what is given read."""
    ended_before = action.ended.is_set()
    await kit.actions.finished(action, call)
    job, ref = action.request.perform, action.ref
    result = fields(action) | {"chat": ref}
    if action.state is not State.DONE:
        return settled(kit, action, result, [])
    assert isinstance(job, _SendJob)
    assert job.inbox is not None
    assert ref is not None
    since = trio.current_time() if ended_before else job.sent_at
    await until_quiet(kit, ref, job.inbox, patience, call, since=since, quiet_from=None)
    taken = Taken.of(kit, job.inbox.ready(), patience.limit, job.inbox.live() + job.inbox.overflow())
    given: list[int] = []
    if taken.arrivals and not job.inbox.gone:
        given = await kit.give(ref, taken.arrivals, keep=job.inbox)
    result |= action.result | {"responses": taken.shown, "more": taken.more}
    return settled(kit, action, result, given)


def _refuse_silent(chat: Chat) -> None:
    if chat.state != "connected" and not (chat.scoped and chat.state == "pending"):
        raise Refused(f"{chat.ref} is not connected ({chat.state}), so no message can be sent.")
    if chat.role in _SILENT_ROLES:
        raise Refused(f"The agent is {chat.role} in {chat.ref} and cannot send messages there.")


def _refuse_long(draft: _Draft) -> None:
    size = _encoded_size(draft)
    if size > MAX_MESSAGE - _MARGIN:
        over = size - MAX_MESSAGE + _MARGIN
        what = "The caption with the preview" if draft.file and draft.file.preview else "The text"
        also = ", with the message that it replies to," if draft.quoted else ""
        raise Refused(
            f"{what}, as SimpleX encodes it,{also} is {over} bytes too long for one message; send it in parts."
        )


def _encoded_size(draft: _Draft) -> int:
    """Bytes of the message as the core will encode it: with its quote, its mentions and its file's preview."""
    quote = None if draft.quoted is None else Quote(draft.quoted.content, draft.quoted.own)
    mentions, scope, group = tuple(draft.mentions), draft.chat.scoped, draft.chat.is_group
    if (offer := draft.file) is None:
        return encoded_size(draft.text, quote=quote, mentions=mentions, scope=scope, group=group)
    content = content_of(offer, draft.text)
    more = {key: value for key, value in content.items() if key not in ("type", "text")}
    return encoded_size(
        draft.text, kind=offer.kind, quote=quote and carried(quote, offer.kind), mentions=mentions, scope=scope,
        group=group, file=(offer.name, offer.size), **more,
    )  # fmt: skip


async def _quoted(kit: Kit, chat: Chat, number: int) -> messages.Quoted:
    """What a reply to item `number` of this chat quotes. Raises Refused when it is none of its messages."""
    quoted = messages.quoted(await item_of(kit, chat, number))
    if quoted is None:
        raise Refused(f"Item {number} is no message of {chat.ref}; use history to find the message.")
    return quoted


async def _names(kit: Kit, chat: Chat, numbers: tuple[int, ...]) -> dict[int, str]:
    """The names of members to mention. Raises Refused when one is not there."""
    if not numbers:
        return {}
    if not chat.is_group:
        raise Refused(f"{chat.ref} is no group, so nobody can be mentioned there.")
    _, members = await kit.api.list_members(chat.number)
    present = {member.get("groupMemberId"): member for member in members if member.get("memberStatus") in _PRESENT}
    names: dict[int, str] = {}
    for number in numbers:
        member = present.get(number)
        if member is None:
            raise Refused(f"Member {number} is not in {chat.ref}.")
        profile = member.get("memberProfile")
        name = profile.get("displayName") if isinstance(profile, dict) else None
        names[number] = name if isinstance(name, str) else ""
    return names
