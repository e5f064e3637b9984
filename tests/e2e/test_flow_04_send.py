"""Flow 4: `send` with responses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from tests.e2e.world import open_world

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.world import Flow, Person


async def join_trail(flow: Flow, bob: Person) -> tuple[str, str]:
    """The agent joins Bob's group; its reference on Bob's and on the agent's side."""
    group, link = await bob.make_group("Trail")
    result = await flow.result_of("connect", "group Trail", "approve 1", target=link, wait=30, idle=1)
    return group, result["chat"]


async def test_flow_4_a_send_is_asked_sent_and_gives_the_replies(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, world.flow() as flow, world.person("Bob") as bob:
        group, chat = await join_trail(flow, bob)
        question = await bob.say(group, "who is there?")
        received = await flow.agent.call("receive", chat=chat, wait=10)
        item = next(m["item"] for m in received["messages"] if m["text"] == "who is there?")
        members = (await flow.agent.call("history", chat=chat))["messages"]
        bob_member = next(m["from"]["member"] for m in members if m["from"] != "me" and m["from"]["name"] == "Bob")

        async def answer() -> None:
            await bob.see(group, "I am")
            await bob.say(group, "welcome")
            await bob.say(group, "to the trail")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(answer)
            result = await flow.result_of(
                "send", "I want to send a message to group Trail", f"approve {chat} 2",
                chat=chat, text="I am", reply_to=item, mention=[bob_member], wait=30, idle=1,
            )  # fmt: skip
        assert (result["status"], result["chat"], result["more"]) == ("done", chat, 0)
        assert [m["text"] for m in result["responses"]] == ["welcome", "to the trail"]
        assert all(m["item"] > result["item"] for m in result["responses"])
        card = await flow.card("I sent a message to group Trail")
        assert card == (
            f"I sent a message to group Trail ({chat}): `@Bob I am`\nreplying to `who is there?`\n"
            "mentioning @Bob\nApproved by Alice."
        )
        seen = [i for i in (await bob.api.get_chat(group, "count=20"))["chatItems"] if "I am" in i["meta"]["itemText"]]  # type: ignore[arg-type]
        assert seen[0]["quotedItem"]["itemId"] == question
        assert seen[0]["meta"]["userMention"] is True
        assert (await flow.agent.call("receive", chat=chat))["messages"] == []


async def test_flow_4_the_card_shows_the_commands_with_the_chat(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, world.flow() as flow, world.person("Bob") as bob:
        _, chat = await join_trail(flow, bob)
        result: dict[str, object] = {}

        async def call() -> None:
            result.update(await flow.agent.call("send", chat=chat, text="hello"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            card = await flow.card("I want to send")
            assert card == (
                f"I want to send a message to group Trail ({chat}): `hello`\n"
                f"Tap /'approve {chat} 2', /'approve {chat} all' or /'reject {chat} 2'"
            )
            await flow.tap(f"reject {chat} 2")
        assert result["status"] == "rejected"


async def test_flow_4_what_cannot_be_sent_is_refused_without_a_card(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, world.flow() as flow, world.person("Bob") as bob:
        _, chat = await join_trail(flow, bob)
        refused: list[dict[str, object]] = [
            {"chat": chat, "text": ""},
            {"chat": chat},
            {"chat": chat, "text": "x" * 20_000},
            {"chat": "#99", "text": "hello"},
            {"chat": "Trail", "text": "hello"},
            {"chat": "#1", "text": "to my owners"},
            {"chat": chat, "text": "hello", "reply_to": 999_999},
            {"chat": chat, "text": "hello", "mention": [999]},
            {"chat": chat, "text": "hello", "unknown": True},
        ]
        for arguments in refused:
            assert "error" in await flow.agent.call("send", **arguments), arguments
        assert "Trail" in (await flow.agent.call("send", chat="Trail", text="hello"))["error"]
        assert (await flow.agent.call("list"))["actions"] == []
        assert not any("I want to send" in text for text in await flow.alice.texts(flow.ref))
