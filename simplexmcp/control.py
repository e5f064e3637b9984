"""The agent control chat: posts, commands and owners (flows 1, 6, 9, 12).

One worker handles what concerns the chat, in the order of the core. A command counts when its sender is an approver
in the members' list and in the message itself; what is forwarded, quoted, edited, live or history is never one.
"""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Any, Protocol, final

import trio

from simplexmcp import cards, commands
from simplexmcp.core.api import after, around, count, initial
from simplexmcp.core.link import LINK_UP
from simplexmcp.errors import CoreError, LinkLost, Refused
from simplexmcp.owners import OwnerRule, Roster, member_of
from simplexmcp.said import commands_in, why_no_command
from simplexmcp.standing import KEY
from simplexmcp.terminal import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from simplexmcp.audit import Audit
    from simplexmcp.core.api import ChatApi, Wire
    from simplexmcp.core.link import Event
    from simplexmcp.owners import Member
    from simplexmcp.standing import Approver

__all__ = ["ControlChat", "Decider"]

_log = logging.getLogger(__name__)

_MEMBER_EVENTS = frozenset(
    {"memberRole", "deletedMember", "leftMember", "groupMemberUpdated", "connectedToGroupMember", "deletedMemberUser",
     "groupDeleted", "joinedGroupMember", "memberBlockedForAll", "joinedGroupMemberConnecting"}
)  # fmt: skip
_SEEN = 2000
_LOOK_BACK = 200
_UNSAID = 100
_UNEDITABLE = ("error/invalidChatItemUpdate", "errorStore/chatItemNotFound", "error/groupMemberUserRemoved")

# What opens or ends something for good is not done when it was written for another run of the server, in another mode.
_NOT_WHEN_OLD = (
    commands.ApproveAll, commands.Leave, commands.Receive, commands.Forward, commands.DeleteFiles
)  # fmt: skip


class Decider(Protocol):
    """What the owner's commands do."""

    async def obey(self, command: commands.Command, by: Approver) -> list[cards.Card]:
        """Do a command of an approver; what to post as the reply."""
        ...


@final
class ControlChat:
    """The control chat of this agent: group `group_id` of the core."""

    def __init__(
        self, api: ChatApi, group: Wire, rule: OwnerRule, audit: Audit, out: Callable[[str], None], *,
        restart: str = "--owners",
    ) -> None:  # fmt: skip
        self._api, self._audit, self._out, self._roster = api, audit, out, Roster(rule)
        self.group_id = int(group["groupId"])
        self.ref = f"#{self.group_id}"
        self.member_id = str((group.get("membership") or {}).get("memberId", ""))
        """The agent's identity in the chat: no other group has it."""
        custom = group.get("customData")
        self._custom: dict[str, Any] = dict(custom) if isinstance(custom, dict) else {}
        marker = self._custom.get(KEY)
        number = marker.get("nextAction") if isinstance(marker, dict) else None
        self._next = number if isinstance(number, int) and number > 0 else 1
        self._stored = self._next
        self._counter = trio.Lock()
        self._restart = restart
        self._inward, self._queue = trio.open_memory_channel[Any](math.inf)
        self._seen: dict[int, None] = {}
        self._old: set[int] = set()
        self._to_read: list[int] = []
        self._unsaid: list[cards.Card] = []
        self._noted: list[Wire] | None = None
        self.on_joined: Callable[[Member], Any] | None = None

    # Owners

    @property
    def rule(self) -> OwnerRule:
        """Who of the people approves."""
        return self._roster.rule

    @rule.setter
    def rule(self, rule: OwnerRule) -> None:
        self._roster.rule = rule

    def approver(self, member_id: str) -> Approver | None:
        """The approver with this identity; None when it is none (any more)."""
        return self._roster.approver(member_id)

    def approvers(self) -> list[Member]:
        """Everybody who decides now."""
        return self._roster.approvers()

    def people(self) -> list[Member]:
        """The people in the chat."""
        return self._roster.people()

    def refusal(self) -> str | None:
        """Why nothing can be asked: nobody would approve it."""
        return self._roster.refusal()

    async def load_members(self) -> None:
        """Read the members again. Raises CoreError."""
        doubted = self._roster.doubted()
        _, wires = await self._api.list_members(self.group_id)
        self._roster.replace(wires, doubted)
        if self._noted is not None:
            self.note_approvers()

    def note_approvers(self) -> None:
        """The audit log knows at each moment who decides."""
        who: list[Wire] = [{"member": member.number, "name": member.name} for member in self.approvers()]
        if who != self._noted:
            self._noted = who
            self._audit.write("owners", owners=who)

    # The counter of actions

    @property
    def next_action(self) -> int:
        """The number of the next action."""
        return self._next

    def take_number(self) -> int:
        """The next number, given once; `save_counter` stores that."""
        number = self._next
        self._next += 1
        return number

    def skip_numbers(self, last: int) -> None:
        """Give only numbers above `last`."""
        self._next = max(self._next, last + 1)

    async def save_counter(self) -> None:
        """Store the counter in the chat's custom data. Raises CoreError."""
        async with self._counter:
            if self._stored >= self._next:
                return
            following = self._next
            marker = self._custom.get(KEY)
            ours = dict(marker) if isinstance(marker, dict) else {}
            self._custom[KEY] = ours | {"control": True, "nextAction": following}
            await self._api.set_custom(self.ref, self._custom)
            self._stored = following

    # Posts

    async def post(self, card: cards.Card) -> int:
        """Post a card; its item ID. Raises CoreError; Refused when the core finds other commands in it than meant: the
        message is deleted then."""
        if card.picture is None:
            item = (await self._api.send_text(self.ref, card.text))["chatItem"]
        else:
            item = (await self._api.send_messages(self.ref, [{"msgContent": card.content()}]))[0]["chatItem"]
        number = int(item["meta"]["itemId"])
        if commands_in(item) != card.commands:
            self._audit.write("card-refused", item=number, found=list(commands_in(item)), meant=list(card.commands))
            # The apps can show a deleted message again: what it said goes first.
            await self._api.update_item(self.ref, number, card.content("This card was taken back."))
            await self._api.delete_items(self.ref, [number])
            raise Refused("The core reads other commands in the card than the server meant; the card was deleted.")
        return number

    async def find(self, text: str, *, starts: bool = False) -> int | None:
        """The newest own post with this text, or that starts with it, among the last ones. Raises CoreError."""
        items = (await self._api.get_chat(self.ref, count(_LOOK_BACK)))["chatItems"]
        for item in reversed(items):
            own = (item.get("chatDir") or {}).get("type") == "groupSnd"
            shown = str(item["meta"].get("itemText", ""))
            if own and (shown.startswith(text) if starts else shown == text):
                return int(item["meta"]["itemId"])
        return None

    async def text_of(self, item: int) -> str | None:
        """What a post shows now; None when it is gone. Raises CoreError."""
        wire = await self._own(item)
        return None if wire is None else str(wire["meta"].get("itemText", ""))

    async def picture_of(self, item: int) -> str | None:
        """The picture of a post, which its edit must keep. Raises CoreError."""
        content = ((await self._own(item) or {}).get("content") or {}).get("msgContent") or {}
        return cards.picture(content.get("image"))

    async def _own(self, item: int) -> Wire | None:
        try:
            items = (await self._api.get_chat(self.ref, around(item, 0)))["chatItems"]
        except CoreError as error:
            if error.tag == "errorStore/chatItemNotFound":
                return None
            raise
        return next((wire for wire in items if wire["meta"]["itemId"] == item), None)

    async def edit(self, item: int, card: cards.Card) -> None:
        """Give a card its new text; what cannot be edited any more gets it as a new message. Raises CoreError."""
        try:
            wire = await self._api.update_item(self.ref, item, card.content())
        except CoreError as error:
            if error.tag not in _UNEDITABLE:
                raise
            await self.post(card)
            return
        if commands_in(wire["chatItem"]) != card.commands:
            self._audit.write("card-refused", item=item, meant=list(card.commands))
            last = card.text.rpartition("\n")[2] if not card.commands else "The action ended."
            await self._api.update_item(self.ref, item, card.content(f"The text was taken out.\n{last}"))

    async def announce(self, line: str, card: cards.Card | None = None) -> None:
        """Print a line at the terminal, and post it (or the card) in the chat."""
        self._out(line)
        try:
            await self.post(card or cards.Card(line))
        except (CoreError, Refused) as error:
            self._out(f"The control chat was not told: {printable(str(error))}")

    # Events

    def on_event(self, event: Event) -> None:
        """Queue what concerns this chat; called in the order of the core."""
        tag = event.get("type")
        if tag == LINK_UP:
            self._roster.doubt_all()  # who left while the link was down is not known yet
            self._inward.send_nowait(event)
        elif tag == "newChatItems":
            for entry in event.get("chatItems") or []:
                if isinstance(entry, dict) and _group_id(entry.get("chatInfo")) == self.group_id:
                    self._inward.send_nowait(entry)
        elif tag in _MEMBER_EVENTS and _id_of(event.get("groupInfo")) == self.group_id:
            self._roster.doubt(event)
            self._inward.send_nowait(event)

    async def run(self, decider: Decider) -> None:
        """Work the queue until cancelled; first what came while nobody listened."""
        await self._catch_up(decider, old=True)
        while True:
            try:
                event = self._queue.receive_nowait()
            except trio.WouldBlock:
                await self._mark_read()
                event = await self._queue.receive()
            await self._attempt(event, decider)

    async def _attempt(self, event: Any, decider: Decider) -> None:
        try:
            await self._handle(event, decider)
        except (CoreError, Refused) as error:
            self._out(f"The control chat: {printable(str(error))}")
        except Exception as error:  # noqa: BLE001 - what is in a shape that no core had must not end the server
            _log.error("A message or event of the control chat was not understood: %r", error)
            _log.debug("What was not understood", exc_info=error)

    async def _catch_up(self, decider: Decider, *, old: bool = False) -> None:
        """Handle the unread messages, commands whose events were lost among them: before what the queue holds, which
        is later in the chat, and each once. At the start they are `old`: written while no server of ours listened."""
        try:
            unread = await self._unread()
        except CoreError as error:
            _log.warning("the control chat's unread messages were not read: %s", error)
            return
        for item in unread:
            if old:
                self._old.add(int(item["meta"]["itemId"]))
            await self._attempt({"chatItem": item}, decider)

    async def _unread(self) -> list[Wire]:
        stats = (await self._api.get_chat(self.ref, initial(1))).get("chatStats")
        if not isinstance(stats, dict) or not isinstance(first := stats.get("minUnreadItemId"), int):
            raise CoreError("unexpected/apiChat", "The core does not say what is unread.")
        first = first if stats.get("unreadCount") else 0
        page = around(first, 0) if first else None
        unread: list[Wire] = []
        while page is not None:
            items = (await self._api.get_chat(self.ref, page))["chatItems"]
            unread += [item for item in items if item["meta"]["itemStatus"]["type"] == "rcvNew"]
            page = after(items[-1]["meta"]["itemId"], 100) if items else None
        return unread

    async def _mark_read(self) -> None:
        if self._to_read:
            numbers, self._to_read = self._to_read, []
            try:
                await self._api.read_items(self.ref, numbers)
            except CoreError as error:
                # They stay unread for now: the next start would obey them again.
                self._to_read = numbers
                _log.warning("marking commands as read: %s", error)

    async def _handle(self, event: Any, decider: Decider) -> None:
        if "chatItem" in event:
            await self._handle_item(event["chatItem"], decider)
            return
        if event["type"] == LINK_UP:
            await self._members_changed()
            await self._catch_up(decider)
            unsaid, self._unsaid = self._unsaid, []
            await self._say(unsaid)
            return
        if event["type"] in ("deletedMemberUser", "groupDeleted"):
            self._roster.clear()
            self._out("The agent control chat is gone: restart the server with --reset-owners.")
            return
        joined = member_of(event.get("member")) if event["type"] == "joinedGroupMember" else None
        await self._members_changed(quiet=joined)
        if joined and self.on_joined and (member := self._roster.member(joined.member_id)):
            await self.on_joined(member)

    async def _handle_item(self, item: Wire, decider: Decider) -> None:
        direction, meta = item.get("chatDir") or {}, item["meta"]
        number = int(meta["itemId"])
        if direction.get("type") != "groupRcv" or number in self._seen:
            return
        self._seen[number] = None
        while len(self._seen) > _SEEN:
            del self._seen[next(iter(self._seen))]
        self._to_read.append(number)
        content = item.get("content") or {}
        message = content.get("msgContent") or {}
        if content.get("type") != "rcvMsgContent" or message.get("type") != "text":
            return
        command = commands.parse(str(message.get("text", "")))
        sender = member_of(direction.get("groupMember"))
        if command is None or sender is None:
            return
        try:
            reply = await self._answer(item, command, sender, decider)
        except CoreError as error:
            reply = [cards.Card(f"Not done: {cards.as_code(str(error))}")]
        await self._say(reply)

    async def _say(self, reply: list[cards.Card]) -> None:
        """Post a reply; what a lost link keeps back is said when it is there again."""
        for place, card in enumerate(reply):
            try:
                await self.post(card)
            except LinkLost:
                self._unsaid = [*self._unsaid, *reply[place:]][-_UNSAID:]
                return

    async def _answer(self, item: Wire, command: Any, sender: Member, decider: Decider) -> list[cards.Card]:
        by = self.approver(sender.member_id)
        if by is None or sender.role != "owner" or not sender.person:
            self._audit.write("refused-command", member=sender.number, name=sender.name, reason="not an approver")
            listed = self.rule.listed is not None
            who = "Only the owners listed in --owners approve actions." if listed else "Only owners approve actions."
            return [cards.Card(who)]
        if reason := why_no_command(item):
            self._audit.write("refused-command", member=sender.number, name=sender.name, reason=reason)
            return [cards.Card(f"That is no command: {reason}. Send it as a message of its own.")]
        if command == "usage":
            return [cards.Card(commands.USAGE)]
        if int(item["meta"]["itemId"]) in self._old and isinstance(command, _NOT_WHEN_OLD):
            self._audit.write("refused-command", member=sender.number, name=sender.name, reason="from before the start")
            return [cards.Card("That was written before this start of the server and was not done: send it again.")]
        return await decider.obey(command, by)

    async def _members_changed(self, quiet: Member | None = None) -> None:
        before = self._roster.owners()
        await self.load_members()
        now = self._roster.owners()
        for member_id in now.keys() - before.keys():
            if quiet is None or quiet.member_id != member_id:
                await self._tell_new_owner(now[member_id])
        for member_id, member in before.items():
            if member_id not in now:
                await self._tell_lost_owner(member)

    async def _tell_new_owner(self, member: Member) -> None:
        who = f"{member.entry.name} (member {member.number})"
        shown = f"{cards.shown_name(member.entry.name)} (member {member.number})"
        self._audit.write("owner-added", member=member.number, name=member.name)
        if self.rule.listed is None:
            await self.announce(f"{who} is now an owner.", cards.Card(f"{shown} is now an owner."))
        elif member.member_id not in self.rule.listed:
            listed = [m for m in self.people() if m.member_id in (self.rule.listed or ())]
            restart = self.restart_line([*listed, member])
            text = "is now an owner and can't approve actions yet. Restart the server with"
            await self.announce(f"{who} {text} {restart}", cards.Card(f"{shown} {text} {cards.as_code(restart)}"))

    async def _tell_lost_owner(self, member: Member) -> None:
        self._audit.write("owner-removed", member=member.number, name=member.name)
        left = "" if self.approvers() else self._nobody_left()
        who, shown = member.entry.name, cards.shown_name(member.entry.name)
        text = f"(member {member.number}) is no longer an owner.{left}"
        await self.announce(f"{who} {text}", cards.Card(f"{shown} {text}"))

    def _nobody_left(self) -> str:
        if self.rule.listed is None:
            return " No owners remain: restart the server with --reset-owners"
        return " No owners remain: restart the server with --reset-owners --owners"

    def restart_line(self, members: Iterable[Member]) -> str:
        """The options that make these members the approvers: `--owners 3:Alice,7:Bob`."""
        return f"{self._restart} " + ",".join(str(member.entry) for member in members)


def _id_of(info: Any) -> int | None:
    return info.get("groupId") if isinstance(info, dict) else None


def _group_id(info: Any) -> int | None:
    if not isinstance(info, dict) or info.get("type") != "group" or info.get("groupChatScope"):
        return None
    return _id_of(info.get("groupInfo"))
