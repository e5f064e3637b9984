"""A core whose link goes and comes back while messages and approvals are under way (cases U7, U25, S10, S43)."""

from __future__ import annotations

import math
import random
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio

from simplexmcp import serve
from simplexmcp.core import websocket
from simplexmcp.errors import UserError
from simplexmcp.sandbox.driver import trio_clock
from simplexmcp.sandbox.network import Network
from simplexmcp.sandbox.server import serve_network
from tests.clocks import within
from tests.e2e.robust import Cable, told
from tests.e2e.test_flow_04_send import join_trail
from tests.e2e.world import DEADLINE, Lines, open_world
from tests.fakes import TrioClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.e2e.world import Flow, World

LOST = "The link to the SimpleX core was lost; trying again until it is back."
BACK = "The link to the SimpleX core is back."
UNKNOWN = "nobody knows whether it was done: check the chat"


@asynccontextmanager
async def cabled(folder: Path) -> AsyncIterator[tuple[World, Cable, str]]:
    """A world, and a cable to the agent's core with its address."""
    async with open_world(folder) as world:
        cable = Cable(world.nursery, world.port)
        await world.nursery.start(cable.run)
        yield world, cable, f"ws://127.0.0.1:{cable.port}/agent"


async def cutting(cable: Cable, chance: random.Random, times: int) -> None:
    """Cut the cable now and then, also while the server is just back."""
    for _ in range(times):
        await trio.sleep(chance.choice((0.05, 0.3, 1.0)) * chance.uniform(0.5, 1.5))
        cable.cut()


async def approving(flow: Flow) -> None:
    """The owner approves every card that asks, once."""
    tapped: set[str] = set()
    while True:
        changed = flow.alice._changed
        for text in await flow.alice.texts(flow.ref):
            asks = text.rpartition("Tap /'")[2].partition("'")[0] if "\nTap /'" in text else ""
            if asks and asks not in tapped:
                tapped.add(asks)
                await flow.tap(asks)
        await changed.wait()


async def patiently(flow: Flow, tool: str, **arguments: Any) -> dict[str, Any]:
    """A call, again while the core cannot be reached."""
    with within(DEADLINE):
        while "cannot be reached" in (result := await flow.agent.call(tool, **arguments)).get("error", ""):
            await trio.sleep(0.2)
    return result


async def until_back(flow: Flow, times: int = 1) -> None:
    """Wait until the link came back so often."""
    with within(DEADLINE):
        while flow.server.lines.all.count(BACK) < times:
            await trio.sleep(0.05)


@pytest.mark.parametrize("seed", range(3))
async def test_each_message_reaches_the_agent_exactly_once_and_in_order_whenever_the_link_goes(
    tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    async with cabled(tmp_path) as (world, cable, core), world.flow(core=core) as flow, world.person("Bob") as bob:
        group, chat = await join_trail(flow, bob)
        said = [f"message {n}" for n in range(30)]
        heard: list[str] = []

        async def speak() -> None:
            for text in said:
                await bob.say(group, text)
                await trio.sleep(chance.uniform(0, 0.3))

        async def listen() -> None:
            while len(set(heard)) < len(said):
                anywhere = chance.random() < 0.5
                result = await flow.agent.call("receive", **({} if anywhere else {"chat": chat}), wait=20, limit=7)
                heard.extend(m["text"] for m in result.get("messages", ()) if m["text"] in said)
                if "error" in result:
                    assert "link" in result["error"] or "cannot be reached" in result["error"]
                    await trio.sleep(0.2)

        with within(DEADLINE * 2):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(speak)
                nursery.start_soon(cutting, cable, chance, 8)
                nursery.start_soon(listen)
        assert heard == said
        assert cable.made >= 2
        assert (await patiently(flow, "receive", chat=chat))["messages"] == []


@pytest.mark.parametrize("seed", [11])
@pytest.mark.parametrize("standing", [False, True])
async def test_each_approved_send_goes_out_at_most_once_and_its_result_is_the_truth(
    tmp_path: Path, seed: int, standing: bool
) -> None:
    chance = random.Random(seed)
    async with cabled(tmp_path) as (world, cable, core), world.flow(core=core) as flow, world.person("Bob") as bob:
        group, chat = await join_trail(flow, bob)
        results: dict[str, dict[str, Any]] = {}

        async def send(text: str) -> None:
            await trio.sleep(chance.uniform(0, 3))
            results[text] = await flow.agent.call("send", chat=chat, text=text)

        if standing:
            await flow.tap(f"approve {chat} all")
            await flow.card("Approved for")
        with within(DEADLINE * 2):
            async with trio.open_nursery() as helpers:
                if not standing:
                    helpers.start_soon(approving, flow)
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(cutting, cable, chance, 6)
                    for n in range(8):
                        nursery.start_soon(send, f"word {n}")
                results["the last"] = await patiently(flow, "send", chat=chat, text="the last")
                helpers.cancel_scope.cancel()
        assert results["the last"]["status"] == "done"
        await bob.see(group, "the last")
        there = await bob.texts(group)
        for text, result in results.items():
            count = there.count(text)
            if result.get("status") == "done":
                assert count == 1, (text, result)
            elif UNKNOWN in result["error"]:
                assert count <= 1, (text, result)
            else:
                assert count == 0, (text, result)
        assert (await flow.agent.call("list"))["actions"] == []


@pytest.mark.parametrize("done", [True, False])
async def test_a_send_in_flight_at_the_loss_fails_with_check_the_chat_and_is_not_repeated(
    tmp_path: Path, done: bool
) -> None:
    async with open_world(tmp_path) as world, world.flow() as flow, world.person("Bob") as bob:
        group, chat = await join_trail(flow, bob)
        commands = told(world)
        world.network.faults.drop("agent", f"/_send {chat}", done=done)
        result = await flow.result_of("send", "`hello`", f"approve {chat} 2", chat=chat, text="hello")
        assert (result["status"], result["decided_by"]) == ("failed", "Alice")
        assert UNKNOWN in result["error"]
        card = await flow.card("failed")
        assert "`hello`\nApproved by Alice; failed: " in card
        assert "check the chat" in card
        await until_back(flow)
        await trio.sleep(1)
        assert (await bob.texts(group)).count("hello") == int(done)
        assert sum(text.startswith(f"/_send {chat}") for text in commands) == int(done)
        again = await flow.result_of("send", f"/'approve {chat} 3'", f"reject {chat} 3", chat=chat, text="hello")
        assert (again["action"], again["status"]) == (3, "rejected")


async def test_an_approval_given_while_the_link_is_down_is_found_and_performed_once(tmp_path: Path) -> None:
    async with cabled(tmp_path) as (world, cable, core), world.flow(core=core) as flow, world.person("Bob") as bob:
        group, chat = await join_trail(flow, bob)
        result: dict[str, Any] = {}

        async def call() -> None:
            result.update(await flow.agent.call("send", chat=chat, text="hello", wait=30, idle=2))

        async def answer() -> None:
            await bob.see(group, "hello")
            cable.cut()
            await bob.say(group, "welcome")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            nursery.start_soon(answer)
            await flow.card("`hello`")
            cable.cut()
            await flow.tap(f"approve {chat} 2")
        assert (result["status"], [m["text"] for m in result["responses"]]) == ("done", ["welcome"])
        assert (await bob.texts(group)).count("hello") == 1
        assert (await flow.agent.call("receive", chat=chat))["messages"] == []
        assert LOST in flow.server.lines.all


async def test_a_connect_that_waits_over_a_loss_sees_its_connection(tmp_path: Path) -> None:
    async with cabled(tmp_path) as (world, cable, core), world.flow(core=core) as flow, world.person("Bob") as bob:
        address = (await bob.api.link.send(f"/_address {bob.api.user_id}"))["connLinkContact"]["connShortLink"]

        async def accept() -> None:
            request = await bob.wait(lambda e: e.get("contactRequest"))
            cable.cut()
            await bob.api.link.send(f"/_accept {request['contactRequestId']}")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(accept)
            result = await flow.result_of("connect", "contact Bob", "approve 1", target=address, wait=60, idle=1)
        assert (result["status"], result["connected"], result["name"]) == ("done", True, "Bob")


async def test_who_approves_is_read_again_after_a_loss(tmp_path: Path) -> None:
    async with cabled(tmp_path) as (world, cable, core), world.flow(core=core) as flow, world.person("Bob") as bob:
        _, chat = await join_trail(flow, bob)
        cable.cut()
        await flow.alice.api.leave_group(int(flow.ref[1:]))
        line = await flow.server.lines.see("no longer an owner")
        assert line.startswith("Alice (member 2) is no longer an owner. No owners remain")
        assert "no approving owner" in (await flow.agent.call("send", chat=chat, text="hello"))["error"]


async def test_a_core_with_another_database_ends_the_server_and_is_not_touched(tmp_path: Path) -> None:
    async with cabled(tmp_path) as (world, cable, core), trio.open_nursery() as nursery:
        other = Network(trio_clock(), population=False)
        other_port = await nursery.start(serve_network, other, 0)
        stop, lines, ready = serve.Stop(), Lines(), trio.Event()
        errors: list[str] = []

        async def run() -> None:
            with pytest.raises(UserError) as caught:
                await serve.serve(
                    world.options(core=core), stop, out=lines, clock=TrioClock(), on_ready=lambda _: ready.set()
                )
            errors.append(str(caught.value))

        with within(DEADLINE):
            async with trio.open_nursery() as running:
                running.start_soon(run)
                await ready.wait()
                cable._target = other_port
                cable.cut()
        assert "another database" in errors[0]
        assert other.core("agent").state.users == {}
        assert other.core("agent").state.groups == {}
        nursery.cancel_scope.cancel()


async def test_another_client_at_the_port_is_told_to_the_person_and_what_it_took_is_read_when_it_goes(
    tmp_path: Path,
) -> None:
    async with open_world(tmp_path) as world:
        # Alone on its port, as a simplex-chat is: only there can others be seen.
        own = Network(trio_clock(), population=False)
        port = await world.nursery.start(serve_network, own, 0)
        server = await world.serve(core=f"ws://127.0.0.1:{port}")
        warning = "Warning: Another program is connected to the port of the SimpleX core"
        assert not any(warning in line for line in server.lines.all)
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        await server.lines.see(warning)
        await stream.aclose()
        await server.lines.see("No other program is connected to the SimpleX core any more.")
        events = [
            line for line in (tmp_path / "data" / "audit.jsonl").read_text().splitlines() if "core-shared" in line
        ]
        assert [line.partition('"clients":')[2] for line in events] == ["1}", "0}"]
        await server.end()


async def test_a_command_that_a_lost_link_left_unread_is_not_obeyed_again_after_a_restart(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, world.person("Bob") as bob:
        async with world.flow() as flow:
            _, chat = await join_trail(flow, bob)
            await trio.sleep(1)
            world.network.faults.drop("agent", "/_read chat items #1", done=False)
            await flow.tap(f"approve {chat} all")
            await flow.card("Approved for")
            await until_back(flow)
            await flow.tap(f"revoke {chat}")
            await flow.card("need approval again")
        server = await world.serve()
        await trio.sleep(2)
        async with server.agent() as agent:
            assert "approved" not in (await agent.call("list"))["chats"][0]
        await server.end()


async def test_a_message_in_a_shape_that_no_core_had_ends_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_world(tmp_path) as world, world.flow() as flow:
        core = world.network.core("agent")
        info = {"type": "group", "groupInfo": core.group_json(core.group(1))}
        odd: list[dict[str, Any]] = [
            {"type": "newChatItems", "chatItems": [{"chatInfo": info, "chatItem": {"chatDir": {"type": "groupRcv"}}}]},
            {"type": "newChatItems", "chatItems": [{"chatInfo": info, "chatItem": None}, 7]},
            {"type": "newChatItems", "chatItems": 7},
            {"type": "joinedGroupMember", "groupInfo": info["groupInfo"], "member": {"groupMemberId": "x"}},
            {"type": "contactConnected", "contact": []},
            {"type": 7},
            {},
        ]
        for event in odd:
            core._publish(event)
        await flow.tap("pending")
        assert await flow.card("No action is pending.")
        assert not any("Traceback" in record.getMessage() for record in caplog.records)


async def test_commands_are_obeyed_in_the_order_of_the_chat_though_the_event_of_the_first_was_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with cabled(tmp_path) as (world, cable, core), world.flow(core=core) as flow, world.person("Bob") as bob:
        _, chat = await join_trail(flow, bob)
        agent = world.network.core("agent")
        publish = agent._publish
        with monkeypatch.context() as losing:
            losing.setattr(agent, "_publish", lambda event: None if "approve" in str(event) else publish(event))
            await flow.tap(f"approve {chat} all")
            await trio.sleep(1)
        world.network.faults.response_delay = 0.5
        cable.cut()
        await flow.server.lines.see(LOST)
        await flow.tap(f"revoke {chat}")
        await until_back(flow)
        world.network.faults.response_delay = 0
        await flow.card("Approved for")
        await flow.card("need approval again")
        assert "approved" not in (await flow.agent.call("list"))["chats"][0]


async def test_a_loss_at_each_step_of_a_send_leaves_one_outcome_and_no_card_that_still_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websocket, "_LONGEST_PAUSE", 0.2)
    async with open_world(tmp_path) as world, world.flow() as flow, world.person("Bob") as bob:
        group, chat = await join_trail(flow, bob)
        await flow.agent.call("list")
        core = world.network.core("agent")
        answer, left = core.command, math.inf

        def count_down(text: str) -> dict[str, Any]:
            # Of the commands in flight, the next one meets the loss: the shell looks before the core is asked.
            nonlocal left
            left -= 1
            if left == 0:
                world.network.faults.drop("agent", done=done)
            return answer(text)

        core.command = count_down  # type: ignore[method-assign]
        async with trio.open_nursery() as helpers:
            helpers.start_soon(approving, flow)
            losses = 0
            for step in range(6):
                for done in (True, False):
                    text = f"step {step} {done}"
                    left = step + 1
                    result = await flow.agent.call("send", chat=chat, text=text)
                    left = math.inf
                    world.network.faults.drops.clear()
                    await patiently(flow, "list")
                    losses = max(losses, flow.server.lines.all.count(BACK))
                    await trio.sleep(1)
                    sent = (await bob.texts(group)).count(text)
                    assert "could not be asked" not in result.get("error", "") or "Nothing was done" in result["error"]
                    if result.get("status") == "done":
                        assert sent == 1, (step, done, result)
                    else:
                        assert sent <= (UNKNOWN in result["error"]), (step, done, result)
                    asking = [t for t in await flow.alice.texts(flow.ref) if f"`{text}`\nTap /" in t]
                    assert asking == [], (step, done, result)
            helpers.cancel_scope.cancel()
        assert losses == 10


async def test_a_stop_without_a_core_ends_soon_and_the_next_start_finishes_its_cards(tmp_path: Path) -> None:
    async with cabled(tmp_path) as (world, cable, core), world.person("Bob") as bob, world.person("Alice") as alice:
        server = await world.serve(core=core, stop_wait=60)
        ref = await world.owner(server, alice)
        _, link = await bob.make_group("Trail")
        result: dict[str, Any] = {}

        async def call() -> None:
            async with server.agent() as agent:
                await agent.call("list")
                result.update(await agent.call("connect", target=link))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            await alice.see(ref, "/'approve 1'")
            cable.unplug()
            await server.lines.see(LOST)
            began = trio.current_time()
            server.stop.asked.set()
            await server.ended.wait()
            assert trio.current_time() - began < 10
        assert result["status"] == "cancelled"
        assert "Cancelled 1 action." in server.lines.all
        assert any("its card could not be updated" in line for line in server.lines.all)
        await (again := await world.serve()).lines.see("Listening")
        assert (await alice.see(ref, "Cancelled: the server stopped.")).startswith("I want to connect to group Trail")
        await again.end()
