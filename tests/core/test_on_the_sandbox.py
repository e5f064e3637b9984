"""The same conversation over each link, with a simulated core at the other end: flow 1, a card, an owner's command."""

from __future__ import annotations

import json
import math
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio

from simplexmcp.core.api import ChatApi, around, count, initial
from simplexmcp.core.native import open_native
from simplexmcp.core.websocket import open_websocket
from simplexmcp.errors import CoreError, LinkLost, Refused
from simplexmcp.sandbox.driver import drive
from simplexmcp.sandbox.link import SandboxLink
from simplexmcp.sandbox.network import Network
from simplexmcp.sandbox.server import serve_clients
from tests.core.fakelib import LibraryCore

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from simplexmcp.core.link import Link


def _envelope(response: dict[str, Any]) -> str:
    """As libsimplex wraps a response or an event."""
    if response["type"] in ("chatCmdError", "chatError"):
        return json.dumps({"error": response["chatError"]})
    return json.dumps({"result": response})


@asynccontextmanager
async def by_websocket(network: Network, _: Path) -> AsyncIterator[Link]:
    async with trio.open_nursery() as nursery:
        port = await nursery.start(serve_clients, network, 0)
        async with open_websocket(f"ws://127.0.0.1:{port}/agent") as link:
            yield link
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def in_process(network: Network, _: Path) -> AsyncIterator[Link]:
    async with trio.open_nursery() as nursery:
        yield SandboxLink(network, network.core("agent"), nursery)
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def by_library(network: Network, folder: Path) -> AsyncIterator[Link]:
    core = network.core("agent")

    async def on_command(text: str) -> str:
        return _envelope(core.command(text))

    async with trio.open_nursery() as nursery:
        there = LibraryCore(on_command)
        core.subscribe(lambda event: there.say.send_nowait(_envelope(event)))
        await nursery.start(there.serve, folder / "core")
        async with open_native(folder / "simplex") as link:
            yield link
        nursery.cancel_scope.cancel()


class Alice:
    """A person with an app, driven by commands."""

    def __init__(self, network: Network) -> None:
        self.core = network.core("alice")
        self._told, self.events = trio.open_memory_channel[dict[str, Any]](math.inf)
        self.core.subscribe(self._told.send_nowait)

    def do(self, command: str) -> dict[str, Any]:
        response = self.core.command(command)
        assert response["type"] != "chatCmdError", response
        return response

    async def until(self, tag: str) -> dict[str, Any]:
        return await _until(self.events, tag)


async def _until(events: trio.MemoryReceiveChannel[dict[str, Any]], tag: str) -> dict[str, Any]:
    async for event in events:
        if event["type"] == tag:
            return event
    raise AssertionError(tag)


async def _text(events: trio.MemoryReceiveChannel[dict[str, Any]]) -> dict[str, Any]:
    """The next message that somebody else sent."""
    while True:
        event = await _until(events, "newChatItems")
        for item in event["chatItems"]:
            if item["chatItem"]["content"]["type"] == "rcvMsgContent":
                return item["chatItem"]


async def _start(api: ChatApi, folder: Path) -> int:
    """Flow 1 up to the control chat; its group id."""
    assert (await api.version()).startswith("7.")
    assert await api.active_user() is None
    await api.create_user("My Agent")
    assert api.user_id == 1
    with pytest.raises(CoreError) as caught:
        await api.list_groups()
    assert caught.value.tag == "error/chatNotStarted"
    await api.set_network()
    await api.set_temp_folder(str(folder / "tmp"))
    assert await api.start() is True
    assert await api.start() is False
    assert await api.list_groups() == []
    group = await api.new_group({"displayName": "My Agent", "fullName": ""})
    await api.set_custom(f"#{group['groupId']}", {"simplexMcp": {"control": True, "nextAction": 1}})
    assert (await api.list_groups())[0]["customData"]["simplexMcp"]["control"] is True
    return group["groupId"]


async def _owner_joins(api: ChatApi, alice: Alice, group_id: int) -> None:
    assert await api.delete_group_link(group_id) is False
    assert await api.get_group_link(group_id) is None
    link = await api.create_group_link(group_id, "member")
    alice.do('/_create user {"profile":{"displayName":"Alice","fullName":""},"pastTimestamp":false}')
    alice.do("/_start")
    alice.do(f"/_connect 1 {link['connLinkContact']['connFullLink']}")
    joined = await _until(api.link.events, "joinedGroupMember")
    member = joined["member"]["groupMemberId"]
    assert await api.delete_group_link(group_id) is True
    assert [m["memberRole"] for m in await api.set_member_role(group_id, member, "owner")] == ["owner"]
    assert await api.set_member_role(group_id, member, "owner") == []
    _, members = await api.list_members(group_id)
    assert [(m["groupMemberId"], m["memberRole"]) for m in members] == [(member, "owner")]


async def _card_and_command(api: ChatApi, alice: Alice, group_id: int) -> None:
    ref = f"#{group_id}"
    sent = await api.send_text(ref, "I want to send `x`.\n/'approve 1'")
    card = sent["chatItem"]["meta"]["itemId"]
    seen = await _text(alice.events)
    assert seen["content"]["msgContent"]["text"] == "I want to send `x`.\n/'approve 1'"
    alice.do('/_send #1 json [{"msgContent":{"type":"text","text":"/approve 1"}}]')
    command = await _text(api.link.events)
    item = command["meta"]["itemId"]
    assert (await api.get_chat(ref, initial(1)))["chatStats"]["minUnreadItemId"] == item
    assert [i["meta"]["itemId"] for i in (await api.get_chat(ref, around(item, 0)))["chatItems"]] == [item]
    await api.read_items(ref, [item])
    assert (await api.get_chat(ref, around(item, 0)))["chatStats"]["unreadCount"] == 0
    edited = await api.update_item(ref, card, {"type": "text", "text": "I sent `x`. Approved by Alice."})
    assert edited["chatItem"]["meta"]["itemEdited"] is True
    await alice.until("chatItemUpdated")
    connections = await api.connection_ids(group_id)
    assert len(connections) == 1
    assert await api.pending_deliveries(connections) == 0
    # Received messages have whole seconds, own ones fractions: not in the order of their numbers.
    last = (await api.get_chat(ref, count(100)))["chatItems"]
    assert {card, item} <= {entry["meta"]["itemId"] for entry in last}


@pytest.mark.parametrize("open_link", [by_websocket, by_library, in_process])
@pytest.mark.usefixtures("library")
async def test_the_conversation_of_flow_1_is_the_same_over_each_link(
    open_link: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_CORE", str(tmp_path / "core"))
    network = Network(time.time, population=False)
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(drive, network)
            async with open_link(network, tmp_path) as link:
                api, alice = ChatApi(link), Alice(network)
                group_id = await _start(api, tmp_path)
                await _owner_joins(api, alice, group_id)
                await _card_and_command(api, alice, group_id)
                await api.stop()
            nursery.cancel_scope.cancel()


@pytest.mark.parametrize("done", [True, False])
async def test_a_message_whose_answer_was_lost_is_found_or_missed_by_reading_and_never_sent_twice(
    done: bool, tmp_path: Path
) -> None:
    network = Network(time.time, population=False)
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(drive, network)
            async with by_websocket(network, tmp_path) as link:
                api = ChatApi(link)
                ref = f"#{await _start(api, tmp_path)}"
                network.faults.drop("agent", "/_send", done=done)
                with pytest.raises(LinkLost) as caught:
                    await api.send_text(ref, "once")
                assert caught.value.tag == "link/lost"
                await _until(link.events, "linkDown")
                await _until(link.events, "linkUp")
                items = (await api.get_chat(ref, count(100)))["chatItems"]
                sent = [i for i in items if i["content"]["type"] == "sndMsgContent"]
                assert [i["content"]["msgContent"]["text"] for i in sent] == ["once"] * done
            nursery.cancel_scope.cancel()


async def test_a_lone_surrogate_gets_past_the_link_to_no_core(tmp_path: Path) -> None:
    network = Network(time.time, population=False)
    async with by_websocket(network, tmp_path) as link:
        with pytest.raises(Refused):
            await link.send('/_send @4 json [{"msgContent":{"type":"text","text":"\ud800"}}]')
        assert (await link.send("/version"))["type"] == "versionInfo"
