"""What the owner's commands do (flows 3, 4, 6, 9, 16): each gives exactly one outcome and a clear reply.

Commands come one at a time, from an approver, already parsed; replies are cards, so that nothing foreign in them is
active.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from simplexmcp import cards, commands, inert
from simplexmcp.chats import Chat, chat_of
from simplexmcp.clock import hhmm
from simplexmcp.core.api import count
from simplexmcp.errors import CoreError, LinkLost, Refused
from simplexmcp.terminal import printable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from simplexmcp.actions import Actions
    from simplexmcp.audit import Audit
    from simplexmcp.clock import Clock
    from simplexmcp.core.api import ChatApi
    from simplexmcp.files.folders import Kept
    from simplexmcp.owner_files import OwnerFiles
    from simplexmcp.standing import Approver

__all__ = ["Owner"]

_NEWEST = 200


@final
class Owner:
    """The decider of the control chat."""

    def __init__(
        self, actions: Actions, api: ChatApi, audit: Audit, clock: Clock, out: Callable[[str], None], *,
        control_ref: str, leave: Callable[[Chat], Awaitable[Kept]], files: OwnerFiles,
    ) -> None:  # fmt: skip
        self._files = files
        self._actions, self._api, self._audit, self._clock, self._out = actions, api, audit, clock, out
        self._control_ref, self._leave = control_ref, leave

    async def obey(self, command: commands.Command, by: Approver) -> list[cards.Card]:
        """Do one command; the reply to post. Raises CoreError when the core refuses what is not about a chat."""
        self._actions.expire_due()
        match command:
            case commands.Approve(number, chat):
                return self._files.redirected(number) or _reply(self._actions.approve(number, chat, by))
            case commands.Reject(number, chat):
                return _reply(self._actions.reject(number, chat, by))
            case commands.ApproveAll(ref, bound):
                return await self._with_chat(ref, lambda chat: self._approve_all(chat, bound, by))
            case commands.Revoke(ref):
                if ref != self._control_ref:
                    self._actions.standing.stop(ref)  # at once, whatever the core has to say
                done = cards.Card(f"Messages to chat ({ref}) need approval again.")
                return await self._with_chat(ref, lambda chat: self._revoke(chat, by), when_lost=done)
            case commands.Receive() | commands.ReceiveOff() | commands.Forward() | commands.DeleteFiles():
                return await self._about_files(command, by)
            case commands.Leave(ref):
                return await self._with_chat(ref, lambda chat: self._leave_now(chat, by))
            case commands.Show(number):
                return self._show(number)
            case commands.Simple("pending"):
                return self._pending()
            case commands.Simple("list"):
                return await self._list()
            case commands.Simple():
                return [cards.Card(commands.USAGE)]

    async def _about_files(
        self, command: commands.Receive | commands.ReceiveOff | commands.Forward | commands.DeleteFiles, by: Approver
    ) -> list[cards.Card]:
        match command:
            case commands.Receive(ref, number, every):
                return await self._files.receive(ref, number, by, every=every)
            case commands.ReceiveOff(ref):
                if ref != self._control_ref:
                    self._actions.files.stop(ref)  # at once, whatever the core has to say
                done = cards.Card(f"Files from chat ({ref}) need approval again.")
                return await self._with_chat(ref, lambda chat: self._files.off(chat, by), when_lost=done)
            case commands.Forward(ref, number):
                return self._files.forward(ref, number, by)
            case commands.DeleteFiles(ref):
                if ref == self._control_ref:
                    return [cards.Card("That is this chat: the agent control chat is not a chat of the agent.")]
                return await self._files.delete(ref, by)

    async def _with_chat(
        self, ref: str, do: Callable[[Chat], Awaitable[list[cards.Card]]], when_lost: cards.Card | None = None
    ) -> list[cards.Card]:
        if ref == self._control_ref:
            return [cards.Card("That is this chat: the agent control chat is not a chat of the agent.")]
        try:
            chat = chat_of((await self._api.get_chat(ref, count(0)))["chatInfo"])
            if chat is None:
                return [cards.Card(f"There is no chat ({ref}).")]
            return await do(chat)
        except (CoreError, Refused) as error:
            if isinstance(error, LinkLost) and when_lost is not None:
                return [when_lost]
            if isinstance(error, CoreError) and error.tag.endswith(("contactNotFound", "groupNotFound")):
                return [cards.Card(f"There is no chat ({ref}).")]
            return [cards.Card(f"Not done: {inert.span(str(error))}")]

    async def _approve_all(self, chat: Chat, bound: commands.Bound, by: Approver) -> list[cards.Card]:
        if self._actions.mode == "host":
            return [cards.Card("The server runs with --approve host: nothing asks for approval here.")]
        grant = await self._actions.standing.grant(chat.ref, by, bound)
        self._audit.write("standing-approval", chat=chat.ref, by=by.name, member=by.member, messages=grant.left)
        self._actions.approve_sends(chat.ref, by)
        until = hhmm(grant.until, self._clock.now()) if grant.until else None
        return [cards.approved_for(chat, by.name, until, grant.left)]

    async def _revoke(self, chat: Chat, by: Approver) -> list[cards.Card]:
        had = await self._actions.standing.revoke(chat.ref)
        self._audit.write("revoked", chat=chat.ref, by=by.name, member=by.member)
        label = cards.chat_label(chat)
        if not had:
            return [cards.Card(f"Messages to {label} had no standing approval.")]
        return [cards.Card(f"Messages to {label} need approval again.")]

    async def _leave_now(self, chat: Chat, by: Approver) -> list[cards.Card]:
        self._audit.write("leave", chat=chat.ref, by=by.name, member=by.member)
        self._audit.secure()
        kept = await self._leave(chat)
        verb = "Deleted" if chat.ref.startswith("@") else "Left"
        label, who = cards.chat_label(chat), inert.name(by.name)
        self._audit.write("left", chat=chat.ref, by=by.name, member=by.member)
        for action in self._actions.pending():
            if action.base == chat.base:
                self._actions.reject(action.number, action.ref, by)
        self._actions.chat_gone(chat)
        self._out(printable(f"{verb} {chat.title}, requested by {by.name}."))
        reply = cards.Card(f"{verb} {label}, requested by {who}.")
        return [reply, self._files.kept(chat, kept)] if kept else [reply]

    def _show(self, number: int) -> list[cards.Card]:
        action = self._actions.get(number)
        subject = action.request.subject if action else None
        if isinstance(subject, cards.SendSubject) and subject.text:
            return cards.pieces(number, subject.text)
        if action is None:
            return [cards.Card(f"Action {number} is not kept: its result was delivered, or there is no such number.")]
        return [cards.Card(f"The card of action {number} shows everything.")]

    def _pending(self) -> list[cards.Card]:
        now = self._clock.now()
        lines = [
            cards.pending_line(action.request.subject, action.number, hhmm(action.expires, now))
            for action in self._actions.pending()
        ]
        return cards.listing(lines, "No action is pending.")

    async def _list(self) -> list[cards.Card]:
        lines: list[cards.Card] = []
        for wire in await self._api.list_chats(_NEWEST):
            chat = chat_of(wire.get("chatInfo"))
            if chat is None or chat.is_control or chat.state == "card":
                continue
            grant = self._actions.standing.holds(chat.ref, chat.custom)
            until = hhmm(grant.until, self._clock.now()) if grant and grant.until else None
            files = self._actions.files.holds(chat.ref, chat.custom)
            lines.append(
                cards.chat_line(
                    chat, grant.by.name if grant else None, until, grant.left if grant else None,
                    files.by.name if files else None,
                )
            )  # fmt: skip
        return cards.listing(lines, "The agent has no chats.")


def _reply(text: str | None) -> list[cards.Card]:
    return [cards.Card(text)] if text else []
