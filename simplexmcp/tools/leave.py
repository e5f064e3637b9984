"""`leave`: leave a group, or delete a contact, after an owner's word (flow 7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simplexmcp.action import Request
from simplexmcp.cards import LeaveSubject
from simplexmcp.core.api import count
from simplexmcp.errors import CoreError, Refused
from simplexmcp.tools.outcome import fields, settled
from simplexmcp.tools.trouble import GONE_TAGS, clearly

if TYPE_CHECKING:
    from simplexmcp.action import Action, Progress
    from simplexmcp.chats import Chat
    from simplexmcp.core.api import ChatApi
    from simplexmcp.tooling import ToolResult
    from simplexmcp.tools.arguments import Leave
    from simplexmcp.tools.kit import Kit

__all__ = ["leave", "leave_chat"]

_MEMBER = frozenset({"connected", "connecting", "pending"})


async def leave(kit: Kit, arguments: Leave, call: Progress) -> ToolResult:
    """Flow 7. Raises Refused, CoreError."""
    key = ("leave", arguments.chat)
    # Before the chat is read: it is gone when the action is done, and the call may come again.
    action = kit.actions.find(key)
    if action is None:
        chat = await kit.chat(arguments.chat)
        if chat.scoped:
            raise Refused(f"{chat.ref} belongs to {chat.base}; leave {chat.base}.")
        action = kit.actions.ask(_request(kit, key, chat))
    with kit.actions.attached(action):
        await kit.actions.finished(action, call)
        return settled(kit, action, fields(action) | {"chat": arguments.chat}, [])


async def leave_chat(api: ChatApi, chat: Chat) -> None:
    """Leave a group, or delete a contact, and tell the other side (flows 7 and 16). `chat` was just read.
    Raises CoreError."""
    if chat.is_group and chat.state in _MEMBER:
        await api.leave_group(chat.number)
    await api.delete_chat(chat.ref, notify=True)


def _request(kit: Kit, key: tuple[Any, ...], chat: Chat) -> Request:
    async def perform(action: Action) -> dict[str, Any]:
        with clearly():
            now = await _again(kit, chat)
            await kit.actions.confirm(action, now)
            await leave_chat(kit.api, now)
        if kept := kit.chat_gone(now):
            kit.files.news.kept(now, kit.files.folders.folder(now.ref), kept, action.ended)
        kit.actions.chat_gone(now, but=action)
        return {"chat": now.ref}

    return Request(
        tool="leave", key=key, input={"chat": chat.ref}, subject=LeaveSubject(chat), chat=chat, perform=perform
    )


async def _again(kit: Kit, chat: Chat) -> Chat:
    try:
        return kit.checked(chat.ref, await kit.api.get_chat(chat.ref, count(0)))
    except CoreError as error:
        if error.tag in GONE_TAGS:
            raise Refused(f"{chat.title} is gone.") from error
        raise
