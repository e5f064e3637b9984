"""The WebSocket server: the client's protocol, who gets the events, faults, and a network shared with a link."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio_websocket import ConnectionClosed, ConnectionRejected, WebSocketConnection, wrap_client_stream

from simplexmcp.sandbox.driver import trio_clock
from simplexmcp.sandbox.link import open_sandbox
from simplexmcp.sandbox.network import Network
from simplexmcp.sandbox.server import serve_network

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

JsonObject = dict[str, Any]
USER = '/_create user {"profile":{"displayName":"Alice","fullName":""},"pastTimestamp":false}'


class Client:
    """A client that reads frame after frame."""

    def __init__(self, ws: WebSocketConnection) -> None:
        self.ws = ws
        self.count = 0

    async def frame(self) -> JsonObject:
        with trio.fail_after(30):
            frame: JsonObject = json.loads(await self.ws.get_message())
        return frame

    async def do(self, command: str) -> JsonObject:
        """The response to a command; events before it are thrown away."""
        self.count += 1
        await self.ws.send_message(json.dumps({"corrId": str(self.count), "cmd": command}))
        while (frame := await self.frame()).get("corrId") != str(self.count):
            assert "corrId" not in frame
        response: JsonObject = frame["resp"]
        return response

    async def event(self, tag: str) -> JsonObject:
        """The next event with this tag."""
        while True:
            frame = await self.frame()
            event: JsonObject = frame["resp"]
            assert "corrId" not in frame
            if event["type"] == tag:
                return event


@asynccontextmanager
async def served() -> AsyncGenerator[tuple[Network, str]]:
    """A network that is served, and the address of its server."""
    network = Network(trio_clock(), population=False)
    async with trio.open_nursery() as nursery:
        port = await nursery.start(serve_network, network, 0)
        yield network, f"ws://127.0.0.1:{port}"
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def client(address: str) -> AsyncGenerator[Client]:
    host, _, resource = address.removeprefix("ws://").partition("/")
    name, _, port = host.partition(":")
    # The stream is opened here, as the library leaves it open when the server closes first.
    async with await trio.open_tcp_stream(name, int(port)) as stream, trio.open_nursery() as nursery:
        ws = await wrap_client_stream(nursery, stream, host, f"/{resource}", max_message_size=1 << 30)
        yield Client(ws)
        await ws.aclose()


async def ready(one: Client) -> None:
    assert (await one.do(USER))["type"] == "activeUser"
    assert (await one.do("/_start"))["type"] == "chatStarted"


async def test_a_new_profile_is_a_core_without_a_user_and_not_started() -> None:
    async with served() as (_, address), client(f"{address}/alice") as alice:
        assert (await alice.do("/users"))["users"] == []
        assert (await alice.do("/_groups 1"))["chatError"]["errorType"] == {"type": "noActiveUser"}
        await ready(alice)
        assert (await alice.do("/_groups 1"))["groups"] == []


async def test_profiles_are_apart_and_connections_of_one_profile_share_it() -> None:
    async with served() as (_, address), client(f"{address}/alice") as one:
        await ready(one)
        async with client(f"{address}/alice") as two, client(f"{address}/bob") as bob:
            assert (await two.do("/user"))["user"]["localDisplayName"] == "Alice"
            assert (await bob.do("/users"))["users"] == []


async def test_a_response_carries_the_number_of_its_command() -> None:
    async with served() as (_, address), client(f"{address}/alice") as alice:
        await alice.ws.send_message('{"corrId":"x-1","cmd":"/users"}')
        assert await alice.frame() == {"corrId": "x-1", "resp": {"type": "usersList", "users": []}}


@pytest.mark.parametrize(
    "text", ["", "nonsense", "[]", "{}", '{"corrId":1,"cmd":"/users"}', '{"corrId":"1"}', '{"cmd":"/users"}']
)
async def test_a_frame_that_is_no_request_is_answered_without_a_number(text: str) -> None:
    async with served() as (_, address), client(f"{address}/alice") as alice:
        await alice.ws.send_message(text)
        frame = await alice.frame()
        assert "corrId" not in frame
        assert frame["resp"]["type"] == "chatCmdError"
        assert frame["resp"]["chatError"]["errorType"] == {"type": "commandError", "message": "invalid request"}
        assert (await alice.do("/users"))["type"] == "usersList"


async def test_a_parse_error_overtakes_the_commands_that_are_still_in_work() -> None:
    async with served() as (network, address), client(f"{address}/alice") as alice:
        network.faults.response_delay = 0.2
        await alice.ws.send_message('{"corrId":"1","cmd":"/users"}')
        await alice.ws.send_message('{"corrId":"2","cmd":"/nonsense"}')
        assert [(await alice.frame())["corrId"] for _ in range(2)] == ["2", "1"]


async def test_commands_of_one_connection_are_done_one_after_the_other_in_order() -> None:
    async with served() as (network, address), client(f"{address}/alice") as alice:
        await ready(alice)
        network.faults.response_delay = 0.01
        for number in range(5):
            group = json.dumps({"displayName": f"G{number}", "fullName": ""})
            await alice.ws.send_message(json.dumps({"corrId": str(number), "cmd": f"/_group 1 {group}"}))
        frames: list[JsonObject] = []
        while len(frames) < 5:
            frame = await alice.frame()
            if "corrId" in frame:
                frames.append(frame)
        assert [f["corrId"] for f in frames] == ["0", "1", "2", "3", "4"]
        assert [f["resp"]["groupInfo"]["groupId"] for f in frames] == [1, 2, 3, 4, 5]


async def _befriend(alice: Client, bob: Client) -> None:
    link = (await alice.do("/_connect 1"))["connLinkInvitation"]
    await bob.do(f"/_connect 1 {link['connFullLink']} {link['connShortLink']}")
    await bob.event("contactConnected")


async def test_each_event_goes_to_the_client_that_came_first_and_then_to_the_next() -> None:
    async with served() as (_, address), client(f"{address}/bob") as bob, client(f"{address}/alice") as second:
        await ready(bob)
        async with client(f"{address}/bob") as other:
            await ready(second)
            await _befriend(second, bob)
            await second.do('/_send @4 json [{"msgContent":{"type":"text","text":"one"}}]')
            event = await bob.event("newChatItems")
            while event["chatItems"][0]["chatItem"]["meta"]["itemText"] != "one":
                event = await bob.event("newChatItems")
            assert (await other.do("/users"))["type"] == "usersList"  # and nothing came before this answer
            assert other.count == 1
            await bob.ws.aclose()
            await second.do('/_send @4 json [{"msgContent":{"type":"text","text":"two"}}]')
            event = await other.event("newChatItems")
            assert event["chatItems"][0]["chatItem"]["meta"]["itemText"] == "two"


async def test_events_wait_while_no_client_is_connected() -> None:
    async with served() as (_, address), client(f"{address}/alice") as alice:
        await ready(alice)
        async with client(f"{address}/bob") as bob:
            await ready(bob)
            await _befriend(alice, bob)
        await alice.do('/_send @4 json [{"msgContent":{"type":"text","text":"while you were out"}}]')
        await alice.event("chatItemsStatusesUpdated")
        async with client(f"{address}/bob") as bob:
            event = await bob.event("newChatItems")
            while event["chatItems"][0]["chatItem"]["content"]["type"] != "rcvMsgContent":
                event = await bob.event("newChatItems")
            assert event["chatItems"][0]["chatItem"]["meta"]["itemText"] == "while you were out"


async def test_frames_may_be_large() -> None:
    async with served() as (_, address), client(f"{address}/alice") as alice:
        await ready(alice)
        group = json.dumps({"displayName": "Team", "fullName": ""})
        await alice.do(f"/_group 1 {group}")
        custom = json.dumps({"pad": "x" * 3_000_000})
        assert (await alice.do(f"/_set custom #1 {custom}"))["type"] == "cmdOk"
        assert len((await alice.do("/_groups 1"))["groups"][0]["customData"]["pad"]) == 3_000_000


@pytest.mark.parametrize("done", [False, True])
async def test_a_dropped_connection_leaves_the_command_done_or_not(done: bool) -> None:
    async with served() as (network, address), client(f"{address}/alice") as alice:
        await ready(alice)
        network.faults.drop("alice", "/_group 1", done=done)
        await alice.ws.send_message(
            '{"corrId":"9","cmd":"/_group 1 {\\"displayName\\":\\"T\\",\\"fullName\\":\\"\\"}"}'
        )
        with pytest.raises(ConnectionClosed):
            await alice.event("an answer, which does not come")
        async with client(f"{address}/alice") as again:
            assert len((await again.do("/_groups 1"))["groups"]) == int(done)


async def test_a_link_and_clients_share_one_network() -> None:
    async with (
        open_sandbox(None, "agent", port=0, population=False) as link,
        client(f"ws://127.0.0.1:{link.port}/alice") as alice,
    ):
        await ready(alice)
        await link.send(USER.replace("Alice", "My Agent"))
        await link.send("/_start")
        invitation = (await link.send("/_connect 1"))["connLinkInvitation"]
        await alice.do(f"/_connect 1 {invitation['connFullLink']} {invitation['connShortLink']}")
        await alice.event("contactConnected")
        await alice.do('/_send @4 json [{"msgContent":{"type":"text","text":"hello"}}]')
        with trio.fail_after(30):
            async for event in link.events:
                if event["type"] == "newChatItems":
                    item = event["chatItems"][0]["chatItem"]
                    if item["content"]["type"] == "rcvMsgContent":
                        assert item["meta"]["itemText"] == "hello"
                        break


async def test_the_links_own_profile_is_not_served_to_others() -> None:
    async with open_sandbox(None, "agent", port=0, population=False) as link:
        with pytest.raises(BaseExceptionGroup) as raised:
            async with client(f"ws://127.0.0.1:{link.port}/agent"):
                pass
        error: BaseException = raised.value
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        assert isinstance(error, ConnectionRejected)
        assert error.status_code == 403
