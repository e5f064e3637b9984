"""The control chat's inside: the counter, posts that cannot be edited, who is asked when, commands read once."""

from __future__ import annotations

import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from simplexmcp import commands
from simplexmcp.audit import Audit
from simplexmcp.cards import Card
from simplexmcp.control import ControlChat
from simplexmcp.core.link import LINK_UP
from simplexmcp.errors import CoreError, LinkLost, Refused
from simplexmcp.owners import OwnerRule
from simplexmcp.said import commands_in
from simplexmcp.standing import KEY
from tests.fakes import TrioClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from simplexmcp.standing import Approver

Wire = dict[str, Any]


def member(number: int, name: str, role: str = "owner", status: str = "connected", peer: str | None = None) -> Wire:
    profile = {"profileId": number, "displayName": name, "fullName": "", "localAlias": ""}
    if peer:
        profile["peerType"] = peer
    return {
        "groupMemberId": number, "memberId": f"id-{number}", "memberRole": role, "memberStatus": status,
        "memberProfile": profile,
    }  # fmt: skip


ALICE, BOB = member(2, "Alice"), member(3, "Bob", "member")


def said(number: int, text: str, by: Wire = ALICE, **meta: Any) -> Wire:
    """A message in the control chat as the core gives it."""
    return {
        "chatInfo": {"type": "group", "groupInfo": {"groupId": 1}},
        "chatItem": {
            "chatDir": {"type": "groupRcv", "groupMember": by},
            "meta": {"itemId": number, "itemText": text, "itemStatus": {"type": "rcvNew"}, **meta},
            "content": {"type": "rcvMsgContent", "msgContent": {"type": "text", "text": text}},
        },
    }


def new(*items: Wire) -> Wire:
    return {"type": "newChatItems", "chatItems": list(items)}


class Api:
    """The core's commands that the control chat uses; `fail` maps a method to its next errors."""

    def __init__(self) -> None:
        self.members = [ALICE, BOB]
        self.log: list[tuple[Any, ...]] = []
        self.fail: dict[str, list[Exception]] = {}
        self.unread: list[Wire] = []
        self.found: list[str] | None = None
        self.items = 100
        self.hold: trio.Event | None = None

    async def _do(self, name: str, *what: Any) -> None:
        self.log.append((name, *what))
        if self.hold is not None:
            await self.hold.wait()
        await trio.lowlevel.checkpoint()
        if errors := self.fail.get(name):
            raise errors.pop(0)

    def did(self, name: str) -> list[Any]:
        return [entry[1:] if len(entry) > 2 else entry[1] for entry in self.log if entry[0] == name]

    def _item(self, number: int, text: str) -> Wire:
        words = _commands(text) if self.found is None else self.found
        parts = [{"format": {"type": "command", "commandStr": word}, "text": word} for word in words]
        return {"chatDir": {"type": "groupSnd"}, "meta": {"itemId": number, "itemText": text}, "formattedText": parts}

    async def list_members(self, group_id: int) -> tuple[Wire, list[Wire]]:
        await self._do("list_members")
        return {}, list(self.members)

    async def send_text(self, ref: str, text: str) -> Wire:
        await self._do("post", text)
        self.items += 1
        return {"chatItem": self._item(self.items, text)}

    async def update_item(self, ref: str, item: int, content: Wire) -> Wire:
        await self._do("edit", item, content["text"])
        return {"chatItem": self._item(item, content["text"])}

    async def delete_items(self, ref: str, ids: list[int]) -> None:
        await self._do("delete", tuple(ids))

    async def set_custom(self, ref: str, data: Wire) -> None:
        await self._do("custom", data)

    async def read_items(self, ref: str, ids: list[int]) -> None:
        await self._do("read", tuple(ids))
        self.unread = [item for item in self.unread if item["meta"]["itemId"] not in ids]

    async def get_chat(self, ref: str, page: Any) -> Wire:
        await self._do("get_chat", str(page))
        info = {"type": "group", "groupInfo": {"groupId": 1}}
        if str(page).startswith("initial"):
            stats = {"unreadCount": len(self.unread), "minUnreadItemId": 0}
            if self.unread:
                stats["minUnreadItemId"] = self.unread[0]["meta"]["itemId"]
            return {"chatInfo": info, "chatItems": [], "chatStats": stats}
        first = int(str(page).partition("=")[2].split()[0])
        if str(page).startswith("around"):
            items = [item for item in self.unread if item["meta"]["itemId"] == first]
        else:
            items = [item for item in self.unread if item["meta"]["itemId"] > first]
        return {"chatInfo": info, "chatItems": items, "chatStats": {}}


def _commands(text: str) -> list[str]:
    return re.findall(r"/'([^']*)'", text)


class Decider:
    def __init__(self) -> None:
        self.obeyed: list[tuple[commands.Command, str]] = []

    async def obey(self, command: commands.Command, by: Approver) -> list[Card]:
        await trio.lowlevel.checkpoint()
        self.obeyed.append((command, by.name))
        return [Card(f"reply {len(self.obeyed)}")]


class Room:
    """A control chat on a fake core."""

    def __init__(self, folder: Path, custom: Any = None, rule: OwnerRule | None = None) -> None:
        self.api, self.lines, self.decider = Api(), [], Decider()
        self.lines: list[str] = []
        self.audit = Audit(folder / "audit.jsonl", TrioClock())
        group = {"groupId": 1, "customData": custom, "membership": {"memberId": "agent"}}
        self.control = ControlChat(
            self.api, group, rule or OwnerRule(), self.audit, self.lines.append  # type: ignore[arg-type]
        )  # fmt: skip

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Room]:
        await self.control.load_members()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.control.run, self.decider)
            await wait_all_tasks_blocked()
            yield self
            nursery.cancel_scope.cancel()
        self.audit.close()

    async def hear(self, event: Wire) -> None:
        self.control.on_event(event)
        await wait_all_tasks_blocked()


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(tmp_path)


# The counter


async def test_the_counter_is_stored_once_for_all_numbers_that_were_taken(room: Room) -> None:
    control = room.control
    assert [control.take_number() for _ in range(3)] == [1, 2, 3]
    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(control.save_counter)
    assert room.api.did("custom") == [{KEY: {"control": True, "nextAction": 4}}]
    assert control.next_action == 4


async def test_a_counter_that_could_not_be_stored_is_stored_with_the_next_number(room: Room) -> None:
    room.api.fail["custom"] = [LinkLost("link/down", "down")]
    room.control.take_number()
    with pytest.raises(LinkLost):
        await room.control.save_counter()
    assert room.control.take_number() == 2
    await room.control.save_counter()
    assert room.api.did("custom")[-1][KEY]["nextAction"] == 3


@pytest.mark.parametrize(
    ("custom", "number"),
    [
        (None, 1),
        ("x", 1),
        ({KEY: "x"}, 1),
        ({KEY: {"nextAction": "7"}}, 1),
        ({KEY: {"nextAction": -3}}, 1),
        ({KEY: {"control": True, "nextAction": 7}, "other": 1}, 7),
    ],
)
async def test_the_counter_goes_on_where_the_chat_says_and_keeps_other_data(
    tmp_path: Path, custom: Any, number: int
) -> None:
    room = Room(tmp_path, custom)
    assert room.control.take_number() == number
    await room.control.save_counter()
    stored = room.api.did("custom")[0]
    assert stored[KEY]["nextAction"] == number + 1
    if isinstance(custom, dict):
        assert stored.get("other") == custom.get("other")


# Posts


async def test_a_post_in_which_the_core_finds_other_commands_is_deleted_and_refused(room: Room) -> None:
    room.api.found = ["approve 7", "approve 8"]
    with pytest.raises(Refused, match="other commands"):
        await room.control.post(Card("Tap /'approve 7'", ("approve 7",)))
    assert room.api.did("delete") == [(101,)]


async def test_the_commands_of_a_post_are_compared_in_their_order() -> None:
    parts = [{"format": {"type": "command", "commandStr": w}, "text": w} for w in ("a", "b")]
    assert commands_in({"formattedText": [{"text": "x"}, *parts, {"format": {"type": "bold"}, "text": "y"}]}) == (
        "a",
        "b",
    )
    assert commands_in({"formattedText": None}) == commands_in({}) == ()


@pytest.mark.parametrize("tag", ["error/invalidChatItemUpdate", "errorStore/chatItemNotFound"])
async def test_a_card_that_cannot_be_edited_any_more_gets_its_outcome_as_a_new_message(room: Room, tag: str) -> None:
    room.api.fail["edit"] = [CoreError(tag, tag)]
    await room.control.edit(50, Card("the outcome"))
    assert room.api.did("post") == ["the outcome"]


async def test_an_edit_that_fails_for_another_reason_says_so_and_posts_nothing(room: Room) -> None:
    room.api.fail["edit"] = [LinkLost("link/lost", "lost")]
    with pytest.raises(LinkLost):
        await room.control.edit(50, Card("the outcome"))
    assert room.api.did("post") == []


async def test_an_edit_in_which_the_core_finds_other_commands_loses_its_text(room: Room) -> None:
    room.api.found = ["approve 8"]
    await room.control.edit(50, Card("`foreign`\nApproved by Alice."))
    assert room.api.did("edit")[-1] == (50, "The text was taken out.\nApproved by Alice.")


# Who is told what


async def test_a_member_that_becomes_an_owner_and_one_that_is_none_any_more_are_told(room: Room) -> None:
    async with room.running():
        room.api.members = [ALICE, BOB | {"memberRole": "owner"}]
        await room.hear({"type": "memberRole", "groupInfo": {"groupId": 1}, "member": BOB, "toRole": "owner"})
        assert room.api.did("post") == ["Bob (member 3) is now an owner."]
        assert room.control.approver("id-3") is not None
        room.api.members = [BOB | {"memberRole": "owner"}]
        await room.hear({"type": "leftMember", "groupInfo": {"groupId": 1}, "member": ALICE | {"memberStatus": "left"}})
        assert room.lines[-1] == "Alice (member 2) is no longer an owner."
        room.api.members = []
        await room.hear({"type": "deletedMember", "groupInfo": {"groupId": 1}, "deletedMember": BOB})
        assert room.lines[-1].endswith("No owners remain: restart the server with --reset-owners")


async def test_with_a_list_a_new_owner_is_told_the_restart_line_and_decides_nothing(tmp_path: Path) -> None:
    room = Room(tmp_path, rule=OwnerRule(frozenset({"id-2"})))
    async with room.running():
        room.api.members = [ALICE, BOB | {"memberRole": "owner"}]
        await room.hear({"type": "memberRole", "groupInfo": {"groupId": 1}, "member": BOB, "toRole": "owner"})
        line = "is now an owner and can't approve actions yet. Restart the server with --owners 2:Alice,3:Bob"
        assert room.lines == [f"Bob (member 3) {line}"]
        await room.hear(new(said(7, "/approve 1", BOB | {"memberRole": "owner"})))
        assert room.decider.obeyed == []
        assert room.api.did("post")[-1] == "Only the owners listed in --owners approve actions."


async def test_a_bot_that_is_an_owner_decides_nothing_and_is_announced_to_nobody(room: Room) -> None:
    robot = member(9, "Robot", peer="bot")
    async with room.running():
        room.api.members = [ALICE, robot]
        await room.hear({"type": "memberRole", "groupInfo": {"groupId": 1}, "member": robot, "toRole": "owner"})
        await room.hear(new(said(7, "/approve 1", robot)))
        assert room.decider.obeyed == []
        assert room.api.did("post") == ["Only owners approve actions."]


async def test_the_end_of_the_chat_ends_every_approver_at_once(room: Room) -> None:
    async with room.running():
        room.control.on_event({"type": "groupDeleted", "groupInfo": {"groupId": 1}})
        assert room.control.approvers() == []
        assert room.control.refusal() is not None
        await wait_all_tasks_blocked()
        assert room.lines == ["The agent control chat is gone: restart the server with --reset-owners."]


async def test_events_of_other_groups_change_nothing(room: Room) -> None:
    async with room.running():
        before = list(room.api.log)
        other = {"groupId": 2}
        await room.hear({"type": "groupDeleted", "groupInfo": other})
        await room.hear({"type": "leftMember", "groupInfo": other, "member": ALICE | {"memberStatus": "left"}})
        item = said(7, "/approve 1")
        await room.hear(new(item | {"chatInfo": {"type": "group", "groupInfo": other}}))
        await room.hear(new(item | {"chatInfo": item["chatInfo"] | {"groupChatScope": {"type": "memberSupport"}}}))
        await room.hear(new(item | {"chatInfo": {"type": "direct", "contact": {"contactId": 1}}}))
        await room.hear({"type": "contactConnected"})
        assert room.api.log == before
        assert room.control.approver("id-2") is not None


async def test_members_whose_reading_failed_are_doubted_until_they_are_read(room: Room) -> None:
    async with room.running():
        room.api.fail["list_members"] = [LinkLost("link/down", "down")]
        room.api.members = [BOB]
        await room.hear({"type": "leftMember", "groupInfo": {"groupId": 1}, "member": ALICE | {"memberStatus": "left"}})
        assert room.control.approver("id-2") is None
        room.api.members = [ALICE, BOB]
        await room.hear({"type": LINK_UP})
        assert room.control.approver("id-2") is not None


# Commands


async def test_a_command_is_obeyed_once_however_often_the_core_tells_it(room: Room) -> None:
    async with room.running():
        for _ in range(3):
            await room.hear(new(said(7, "/approve 1")))
        room.api.unread = [said(7, "/approve 1")["chatItem"]]
        await room.hear({"type": LINK_UP})
        assert room.decider.obeyed == [(commands.Approve(1), "Alice")]
        assert (7,) in room.api.did("read")


async def test_unread_commands_are_obeyed_in_order_at_the_start_and_marked_read(room: Room) -> None:
    room.api.unread = [
        said(5, "/approve 1")["chatItem"],
        said(6, "hello")["chatItem"],
        said(7, "/reject 2")["chatItem"],
        said(8, "/approve 3", itemEdited=True)["chatItem"],
    ]
    async with room.running():
        assert room.decider.obeyed == [(commands.Approve(1), "Alice"), (commands.Reject(2), "Alice")]
        assert room.api.did("read") == [(5, 6, 7, 8)]
        assert room.api.did("post") == [
            "reply 1", "reply 2", "That is no command: it was edited or deleted. Send it as a message of its own.",
        ]  # fmt: skip


@pytest.mark.parametrize("stats", [None, [], {}, {"unreadCount": 1}, {"unreadCount": 1, "minUnreadItemId": "5"}])
async def test_a_core_that_does_not_say_what_is_unread_ends_nothing(room: Room, stats: Any) -> None:
    asked = room.api.get_chat

    async def get_chat(ref: str, page: Any) -> Wire:
        return {**await asked(ref, page), "chatStats": stats}

    room.api.get_chat = get_chat  # type: ignore[method-assign]
    async with room.running():
        await room.hear(new(said(7, "/approve 1")))
        assert room.decider.obeyed == [(commands.Approve(1), "Alice")]


@pytest.mark.parametrize("text", ["/approve #9 all", "/leave #9", "/receive #9 3 all", "/delete #9 files"])
async def test_what_was_written_for_another_run_opens_and_ends_nothing(room: Room, text: str) -> None:
    room.api.unread = [said(5, text)["chatItem"], said(6, "/revoke #9")["chatItem"]]
    async with room.running():
        assert room.decider.obeyed == [(commands.Revoke("#9"), "Alice")]
        assert room.api.did("post")[0] == (
            "That was written before this start of the server and was not done: send it again."
        )
        await room.hear(new(said(7, text)))
        assert room.decider.obeyed[1] == (commands.parse(text), "Alice")


async def test_what_was_not_marked_read_is_marked_with_the_next(room: Room) -> None:
    async with room.running():
        room.api.fail["read"] = [CoreError("x", "x")]
        await room.hear(new(said(7, "hello")))
        await room.hear(new(said(8, "hello")))
        assert room.api.did("read") == [(7,), (7, 8)]


@pytest.mark.parametrize(
    "change",
    [
        {"quotedItem": {"chatDir": {}}},
        {"meta": {"itemForwarded": {"type": "unknown"}}},
        {"meta": {"forwardedByMember": 3}},
        {"meta": {"itemLive": True}},
        {"meta": {"itemEdited": True}},
        {"meta": {"itemDeleted": {"type": "deleted"}}},
    ],
    ids=str,
)
async def test_what_was_not_said_here_and_now_is_no_command(room: Room, change: Wire) -> None:
    async with room.running():
        entry = said(7, "/approve 1", **change.get("meta", {}))
        if "quotedItem" in change:
            entry["chatItem"] |= change
        await room.hear(new(entry))
        assert room.decider.obeyed == []
        assert room.api.did("post")[0].startswith("That is no command: ")


@pytest.mark.parametrize(
    "change",
    [
        {"chatDir": {"type": "groupSnd"}},
        {"chatDir": {"type": "channelRcv"}},
        {"content": {"type": "rcvGroupEvent"}},
        {"content": {"type": "rcvMsgContent", "msgContent": {"type": "image", "text": "/approve 1"}}},
        {"content": {"type": "rcvModerated"}},
        {"chatDir": {"type": "groupRcv"}},
        {"chatDir": {"type": "groupRcv", "groupMember": {"memberId": "id-2"}}},
    ],
    ids=str,
)
async def test_what_is_no_text_of_a_member_is_ignored(room: Room, change: Wire) -> None:
    async with room.running():
        entry = said(7, "/approve 1")
        entry["chatItem"] |= change
        await room.hear(new(entry))
        assert room.decider.obeyed == []
        assert room.api.did("post") == []


async def test_a_sender_whose_role_the_message_itself_denies_is_refused(room: Room) -> None:
    async with room.running():
        await room.hear(new(said(7, "/approve 1", ALICE | {"memberRole": "admin"})))
        await room.hear(new(said(8, "/approve 1", ALICE | {"memberId": "id-99"})))
        assert room.decider.obeyed == []
        assert room.api.did("post") == ["Only owners approve actions."] * 2


async def test_a_reply_that_a_lost_link_keeps_back_is_said_when_it_is_there_again(room: Room) -> None:
    async with room.running():
        room.api.fail["post"] = [LinkLost("link/down", "down"), LinkLost("link/lost", "lost")]
        await room.hear(new(said(7, "/approve 1")))
        await room.hear({"type": LINK_UP})
        assert room.decider.obeyed == [(commands.Approve(1), "Alice")]
        await room.hear({"type": LINK_UP})
        assert room.api.did("post") == ["reply 1"] * 3
        await room.hear({"type": LINK_UP})
        assert room.api.did("post") == ["reply 1"] * 3


async def test_a_shape_that_no_core_had_ends_nothing(room: Room) -> None:
    async with room.running():
        broken = said(7, "/approve 1")
        del broken["chatItem"]["meta"]["itemId"]
        await room.hear(new(broken))
        await room.hear({"type": "memberRole", "groupInfo": {"groupId": 1}, "member": "nobody"})
        await room.hear(new(said(8, "/approve 1")))
        assert room.decider.obeyed == [(commands.Approve(1), "Alice")]


async def test_a_word_that_is_no_command_gets_the_usage(room: Room) -> None:
    async with room.running():
        await room.hear(new(said(7, "/approve")))
        assert room.api.did("post") == [commands.USAGE]
