"""`receive`: what is unread in a chat, or the next thing that arrives (flow 5).

Collecting begins before reading, so nothing falls between the two, and what both see is one message. A
message is marked read when a result takes it; what a lost result took is given first by the next call.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import trio

from simplexmcp import messages
from simplexmcp.chats import chat_of, is_ref
from simplexmcp.errors import CoreError, Refused
from simplexmcp.tooling import ToolResult
from simplexmcp.tools.kit import ALL_CHATS
from simplexmcp.tools.trouble import GONE_TAGS, is_link_trouble
from simplexmcp.tools.unread import read_unread
from simplexmcp.tools.waiting import Taken, wall_time

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from simplexmcp.action import Progress
    from simplexmcp.chats import Chat
    from simplexmcp.inbox import Arrival, Inbox
    from simplexmcp.tools.arguments import Receive
    from simplexmcp.tools.kit import Kit

__all__ = ["receive", "unread_chats"]


@dataclass
class _Found:
    """What a look found in chat `ref`."""

    ref: str
    arrivals: list[Arrival] = field(default_factory=list)
    service: list[int] = field(default_factory=list)
    remaining: int = 0


async def receive(kit: Kit, arguments: Receive, call: Progress) -> ToolResult:
    """Flow 5. Raises Refused, CoreError."""
    ref = arguments.chat
    if ref is not None and not is_ref(ref):
        await kit.chat(ref)  # tells which chats have such a name
    with kit.watch.collect(ref) as inbox:
        found = await _wait_for(kit, inbox, arguments, call)
        if found is None:
            return ToolResult({"chat": ref, "messages": [], "more": inbox.live()})
        return await _result(kit, found, arguments.limit)


async def _wait_for(kit: Kit, inbox: Inbox, arguments: Receive, call: Progress) -> _Found | None:
    """The first look that finds messages; None when the time is over."""
    deadline = trio.current_time() + arguments.wait
    look = _look_everywhere if inbox.ref is None else _look
    found = await look(kit, inbox, arguments.limit)
    where = "any chat" if inbox.ref is None else inbox.ref
    while found is None:
        if inbox.gone:
            raise Refused(f"{inbox.ref} is gone; call list to see the chats.")
        if inbox.gap:
            found = await _after_gap(kit, inbox, arguments.limit, look)
            continue
        found = _arrived(kit, inbox)
        if found is not None or inbox.ended or trio.current_time() >= deadline:
            break
        call.say(f"No new messages in {where}; waiting until {wall_time(kit.clock.now(), deadline)}.")
        with trio.move_on_at(deadline):
            await inbox.changed()
    return found


async def _after_gap(
    kit: Kit, inbox: Inbox, limit: int, look: Callable[[Kit, Inbox, int], Awaitable[_Found | None]]
) -> _Found | None:
    """A look after the link came back; when it goes again, the next reconnect brings the next look."""
    try:
        return await look(kit, inbox, limit)
    except CoreError as error:
        if is_link_trouble(error):
            inbox.unread()
            return None
        raise


async def _look(kit: Kit, inbox: Inbox, limit: int) -> _Found | None:
    assert inbox.ref is not None
    inbox.gap = False
    return await _look_into(kit, inbox.ref, inbox, limit)


async def _look_everywhere(kit: Kit, inbox: Inbox, limit: int) -> _Found | None:
    """The chat whose unread messages are oldest."""
    inbox.gap = False
    for ref in await unread_chats(kit):
        try:
            if found := await _look_into(kit, ref, inbox, limit):
                return found
        except CoreError as error:
            if error.tag not in GONE_TAGS:  # left a moment ago
                raise
    return None


async def _look_into(kit: Kit, ref: str, inbox: Inbox, limit: int) -> _Found | None:
    """What is unread in a chat. Service items without a message are marked read, as nothing else would do
    it."""
    unread = await read_unread(kit, ref, limit + 1, inbox)
    held = kit.shelf.held(ref)
    known = {messages.item_id(a.item) for a in held}
    arrivals = [*held, *(a for a in unread.found if _is_new(kit, a, known))]
    more = inbox.numbers(ref) - unread.seen - unread.counted
    if not unread.beyond:
        later = [a for a in inbox.ready(ref) if messages.item_id(a.item) in more and _is_new(kit, a, known)]
        arrivals += later
        more -= {messages.item_id(a.item) for a in later}
    remaining = unread.beyond + len(unread.live) + len(more)
    if arrivals:
        return _Found(ref, arrivals, unread.service, remaining)
    if unread.service:
        await kit.api.read_items(ref, unread.service)
    return None


def _arrived(kit: Kit, inbox: Inbox) -> _Found | None:
    """What arrived while waiting, of the chat that got something first."""
    fresh = [a for a in inbox.ready() if _is_new(kit, a, set())]
    if not fresh:
        return None
    ref = fresh[0].chat.ref
    return _Found(ref, [a for a in fresh if a.chat.ref == ref], [], inbox.live(ref) + inbox.overflow(ref))


async def _result(kit: Kit, found: _Found, limit: int) -> ToolResult:
    taken = Taken.of(kit, found.arrivals, limit, found.remaining)
    given = await kit.give(found.ref, taken.arrivals, found.service)
    content: dict[str, Any] = {"chat": found.ref, "messages": taken.shown, "more": taken.more}
    return ToolResult(content, settle=lambda: kit.gave(given))


async def unread_chats(kit: Kit) -> list[str]:
    """The chats that have something unread or undelivered, the oldest unread first."""
    chats = [a.chat.ref for a in kit.shelf.held()]
    starts: list[tuple[int, str]] = []
    for entry in await kit.api.list_chats(ALL_CHATS):
        chat = chat_of(entry.get("chatInfo"))
        if chat is None or chat.is_control:
            continue
        stats = entry.get("chatStats")
        if isinstance(stats, dict) and stats.get("unreadCount"):
            starts.append((stats.get("minUnreadItemId") or 0, chat.ref))
        chats += await _unread_scopes(kit, chat)
    return list(dict.fromkeys([*chats, *(ref for _, ref in sorted(starts))]))


async def _unread_scopes(kit: Kit, chat: Chat) -> list[str]:
    """Conversations with the admins of a group that have something unread: the own one, and those of members
    that need attention."""
    if not chat.is_group:
        return []
    scopes = [f"{chat.ref}(_support)"] if _support_unread(chat.info.get("membership")) else []
    if chat.info.get("membersRequireAttention"):
        _, members = await kit.api.list_members(chat.number)
        scopes += [f"{chat.ref}(_support:{m.get('groupMemberId')})" for m in members if _support_unread(m)]
    return scopes


def _support_unread(member: Any) -> bool:
    support = member.get("supportChat") if isinstance(member, dict) else None
    return isinstance(support, dict) and bool(support.get("unread"))


def _is_new(kit: Kit, arrival: Arrival, known: set[int | None]) -> bool:
    number = messages.item_id(arrival.item)
    return number is not None and number not in known and not kit.shelf.is_taken(number)
