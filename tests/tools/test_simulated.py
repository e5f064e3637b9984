"""The tools with real commands on the simulated network: other people see what was done, and nothing else."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
import trio

from tests.tools.simulated import Simulation, simulation

if TYPE_CHECKING:
    from pathlib import Path

    from trio.testing import MockClock


def texts(messages: list[dict[str, Any]]) -> list[str]:
    return [message["text"] for message in messages]


async def befriend(world: Simulation, name: str = "Bob", *, bot: bool = False) -> tuple[Any, str]:
    """A person with an address, connected; the chat's reference on the agent's side."""
    person = world.person(name, bot=bot)
    content = await world.use("connect", target=person.address(), wait=60, idle=1)
    assert content["connected"] is True
    await world.use("receive", chat=content["chat"])
    return person, content["chat"]


async def test_connecting_to_a_bot_gives_its_welcome_once(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with simulation(tmp_path) as world:
        helper = world.person("Helper Bot", bot=True)
        link = helper.address(reply="Welcome! Send /help")
        content = await world.use("connect", target=link, wait=60, idle=2)
        assert (content["status"], content["connected"], content["kind"], content["name"]) == (
            "done",
            True,
            "bot",
            "Helper Bot",
        )
        assert texts(content["messages"]) == ["Welcome! Send /help"]
        assert (await world.use("receive"))["messages"] == []
        assert (await world.use("connect", target=link))["status"] == "known"


async def test_a_message_goes_along_with_a_prepared_request(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with simulation(tmp_path) as world:
        helper = world.person("Helper Bot", bot=True)
        content = await world.use(
            "connect", target=helper.address(reply="Welcome!"), message="please accept", wait=60, idle=2
        )
        assert content["connected"] is True
        assert texts(content["messages"]) == ["Welcome!"]
        assert helper.texts() == ["please accept"]


async def test_a_business_is_a_chat_of_its_kind(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with simulation(tmp_path) as world:
        shop = world.person("Shop")
        content = await world.use("connect", target=shop.address(business=True), message="open?", wait=60, idle=2)
        assert (content["kind"], content["connected"], content["chat"][0]) == ("business", True, "#")
        sent = await world.use("send", chat=content["chat"], text="hello")
        await trio.sleep(1)
        assert sent["status"] == "done"
        assert shop.texts() == ["open?", "hello"]


async def test_a_one_time_link_connects(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with simulation(tmp_path) as world:
        bob = world.person("Bob")
        link = bob.do("/_connect 1 incognito=off")["connLinkInvitation"]["connShortLink"]
        content = await world.use("connect", target=link, wait=60, idle=1)
        assert (content["connected"], content["name"], content["kind"]) == (True, "Bob", "contact")


async def test_nobody_answers_and_then_somebody_does(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with simulation(tmp_path) as world:
        bob = world.person("Bob")
        link = bob.do("/_address 1")["connLinkContact"]["connShortLink"]
        content = await world.use("connect", target=link, message="hi", wait=5)
        assert (content["connected"], content["status"]) == (False, "done")
        again = await world.use("connect", target=link, message="hi")
        assert (again["status"], again["connected"], again["state"]) == ("known", False, "connecting")
        [request] = [e["contactRequest"] for e in bob.events if e["type"] == "receivedContactRequest"]
        bob.do(f"/_accept {request['contactRequestId']}")
        await trio.sleep(2)
        assert (await world.use("connect", target=link, message="hi"))["connected"] is True


async def test_a_sent_message_gets_its_replies_and_leaves_nothing_unread(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with simulation(tmp_path) as world:
        bob, ref = await befriend(world)

        async def answer() -> None:
            while "hello" not in bob.texts():
                await trio.sleep(0.5)
            bob.say("@4", "one", "two")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(answer)
            content = await world.use("send", chat=ref, text="hello", wait=60, idle=3)
        assert texts(content["responses"]) == ["one", "two"]
        chats = (await world.use("list"))["chats"]
        assert [(c["chat"], c["unread"]) for c in chats] == [(ref, 0)]


async def test_a_group_with_history_quotes_and_mentions(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with simulation(tmp_path) as world:
        alice = world.person("Alice")
        link = alice.group("Trail")
        alice.say("#1", "old news", "older question")
        content = await world.use("connect", target=link, wait=60, idle=3)
        ref = content["chat"]
        assert (content["kind"], content["name"], content["connected"]) == ("group", "Trail", True)
        assert texts(content["messages"]) == ["old news", "older question"]
        question = content["messages"][1]
        sender = question["from"]["member"]
        sent = await world.use("send", chat=ref, text="yes", reply_to=question["item"], mention=[sender])
        assert sent["status"] == "done", sent
        await trio.sleep(1)
        [got] = [
            e["chatItem"]
            for event in alice.events
            if event["type"] == "newChatItems"
            for e in event["chatItems"]
            if e["chatItem"]["content"]["type"] == "rcvMsgContent"
        ]
        assert got["meta"]["itemText"] == "@Alice yes"
        assert got["quotedItem"]["content"]["text"] == "older question"
        assert got["meta"]["userMention"] is True
        assert (await world.use("send", chat=ref, text="x", reply_to=99999))["error"].startswith(
            "Item 99999 is no message"
        )


async def test_many_unread_messages_come_in_pages(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with simulation(tmp_path) as world:
        bob, ref = await befriend(world)
        bob.say("@4", *(f"m{i}" for i in range(230)))
        await trio.sleep(5)
        seen: list[str] = []
        mores: list[int] = []
        while (content := await world.use("receive", limit=60))["messages"]:
            assert content["chat"] == ref
            seen += texts(content["messages"])
            mores.append(content["more"])
        assert seen == [f"m{i}" for i in range(230)]
        assert mores == [170, 110, 50, 0]


async def test_edits_live_messages_and_deletions_are_as_their_sender_left_them(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with simulation(tmp_path) as world:
        bob, ref = await befriend(world)
        edited, deleted = bob.say("@4", "wrong", "secret")
        bob.edit("@4", edited, "right")
        bob.do(f"/_delete item @4 {deleted} broadcast")
        live = bob.do('/_send @4 live=on json [{"msgContent":{"type":"text","text":"ty"}}]')
        number = live["chatItems"][0]["chatItem"]["meta"]["itemId"]
        await trio.sleep(1)
        content = await world.use("receive", chat=ref)
        assert [(m["text"], m.get("edited"), m.get("deleted")) for m in content["messages"]] == [
            ("right", True, None),
            ("", None, True),
        ]
        assert content["more"] == 1
        bob.edit("@4", number, "typed")
        assert texts((await world.use("receive", chat=ref, wait=60))["messages"]) == ["typed"]


async def test_leaving_tells_the_other_side_and_the_number_starts_afresh(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with simulation(tmp_path) as world:
        bob, ref = await befriend(world)
        bob.say("@4", "unread when it went")
        await trio.sleep(1)
        assert (await world.use("leave", chat=ref))["status"] == "done"
        await trio.sleep(1)
        assert [e["type"] for e in bob.events if e["type"] == "contactDeletedByContact"] == ["contactDeletedByContact"]
        _, again = await befriend(world, "Carol")
        assert again == ref
        assert (await world.use("history", chat=again))["messages"] == []


async def test_a_left_group_is_gone_and_its_members_see_it(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with simulation(tmp_path) as world:
        alice = world.person("Alice")
        content = await world.use("connect", target=alice.group("Trail"), wait=60, idle=1)
        assert (await world.use("leave", chat=content["chat"]))["status"] == "done"
        await trio.sleep(1)
        assert [e["type"] for e in alice.events if e["type"] == "leftMember"] == ["leftMember"]
        assert (await world.use("list"))["chats"] == []


async def test_a_deleted_link_is_refused_without_an_action(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with simulation(tmp_path) as world:
        bob = world.person("Bob")
        link = bob.address()
        bob.do("/_delete_address 1")
        assert (await world.use("connect", target=link))[
            "error"
        ] == "The link was deleted, or it is a one-time link that was used."
        assert world.actions.listed() == []


async def test_a_send_lost_with_the_link_is_not_sent_again(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with simulation(tmp_path) as world:
        bob, ref = await befriend(world)
        world.network.faults.drop("agent", "/_send", done=True)
        content = await world.use("send", chat=ref, text="once")
        assert content["status"] == "failed"
        assert "nobody knows" in content["error"]
        await trio.sleep(5)
        assert bob.texts() == ["once"]


@pytest.mark.parametrize("seed", range(8))
async def test_with_a_link_that_is_lost_at_random_each_message_comes_once(
    tmp_path: Path, autojump_clock: MockClock, seed: int
) -> None:
    chance = random.Random(seed)
    async with simulation(tmp_path, mode="host") as world:
        bob, ref = await befriend(world)
        expected = [f"m{i}" for i in range(40)]

        async def talk() -> None:
            for text in expected:
                bob.say("@4", text)
                await trio.sleep(chance.choice([0, 0, 0.01, 0.3, 2]))
                if chance.random() < 0.4:
                    command = chance.choice(["/_get chat", "/_read", "/_get chats"])
                    world.network.faults.drop("agent", command, done=chance.random() < 0.5)

        seen: list[str] = []
        start = trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(talk)
            while len(seen) < len(expected):
                arguments: dict[str, Any] = {"wait": chance.choice([0, 1, 5]), "limit": chance.choice([1, 5, 50])}
                if chance.random() < 0.5:
                    arguments["chat"] = ref
                with trio.move_on_after(chance.choice([0.05, 0.5, 10])):
                    content = await world.use("receive", **arguments)
                    seen += texts(content.get("messages", []))
                await trio.sleep(0.05)
                assert trio.current_time() < start + 2000, seen
        assert seen == expected
        await trio.sleep(5)
        world.network.faults = type(world.network.faults)()
        assert (await world.use("receive"))["messages"] == []
