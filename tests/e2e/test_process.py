"""The program as a process: signals, exit codes, what it prints (flow 11, cases S45, U23)."""

from __future__ import annotations

import json
import os
import signal
import socket
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from simplexmcp import cli, serve
from tests.e2e.robust import Program, nothing_left, open_files, taken_port, tasks
from tests.e2e.test_flow_04_send import join_trail
from tests.e2e.world import open_world

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.world import Person, World

on_the_wall = pytest.mark.trio(run=trio.run)
"""Time as a process has it."""


async def owned(world: World, program: Program, alice: Person) -> str:
    """The control chat on the owner's side."""
    ref = await alice.join(await program.lines.see("https://"))
    await alice.see(ref, "I'm your agent.")
    return ref


@on_the_wall
async def test_a_signal_ends_every_call_with_its_result_and_the_last_line_is_stopped(tmp_path: Path) -> None:
    async with (
        open_world(tmp_path) as world,
        world.person("Alice") as alice,
        world.person("Bob") as bob,
        trio.open_nursery() as nursery,
    ):
        program = Program(world)
        await nursery.start(program.run)
        ref = await owned(world, program, alice)
        address = (await bob.api.link.send(f"/_address {bob.api.user_id}"))["connLinkContact"]["connShortLink"]
        results: dict[str, dict[str, Any]] = {}
        _, link = await bob.make_group("Trail")
        async with program.agent() as agent:

            async def call(tool: str, **arguments: Any) -> None:
                results[tool + arguments.get("message", "")] = await agent.call(tool, **arguments)

            async with trio.open_nursery() as calls:
                calls.start_soon(lambda: call("connect", target=address, message="hi", wait=600))
                await alice.see(ref, "/'approve 1'")
                await alice.say(ref, "/approve 1")
                await bob.wait(lambda e: e.get("contactRequest"))
                calls.start_soon(lambda: call("connect", target=link))
                await alice.see(ref, "/'approve 2'")
                calls.start_soon(lambda: call("receive", wait=600))
                await trio.sleep(0.3)
                assert await program.end(signal.SIGINT, within=10) == 0
        assert results["connecthi"]["status"] == "interrupted"
        assert results["connect"]["status"] == "cancelled"
        assert results["receive"]["messages"] == []
        assert program.lines.all[-3:] == [
            "Cancelled 2 actions.",
            "Stopping: sending 2 cancelled cards, up to 10 s. Ctrl-C to stop now.",
            "Stopped.",
        ]
        assert program.errors.all == []
        assert await alice.see(ref, "Cancelled: the server stopped.")
        assert await alice.see(ref, "Approved by Alice; interrupted: the server stopped.")


@on_the_wall
async def test_a_second_signal_ends_the_wait_for_the_delivery_at_once(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, world.person("Alice") as alice, trio.open_nursery() as nursery:
        program = Program(world, "--stop-wait", "60")
        await nursery.start(program.run)
        ref = await owned(world, program, alice)
        _, link = await alice.make_group("Trail")
        async with program.agent() as agent, trio.open_nursery() as calls:
            calls.start_soon(lambda: agent.call("connect", target=link))
            await alice.see(ref, "/'approve 1'")
            world.network.relay_up(False)
            program.signal(signal.SIGINT)
            await program.lines.see("Stopping: sending 1 cancelled card, up to 60 s.")
            with trio.move_on_after(0.4):
                await program.ended.wait()
                raise AssertionError("it did not wait for the delivery")
            assert await program.end(signal.SIGINT, within=3) == 0
        assert program.lines.all[-1] == "Stopped."
        assert program.errors.all == []


async def test_a_client_that_reads_nothing_delays_the_stop_by_seconds_only(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        server = await world.serve()
        host = f"127.0.0.1:{server.port}"
        call = {"name": "receive", "arguments": {"wait": 600}}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}).encode()
        head = (
            f"POST /mcp HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {server.token}\r\n"
            f"Content-Type: application/json\r\n"
            f"Accept: application/json, text/event-stream\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        deaf = trio.socket.socket()
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        await deaf.connect(("127.0.0.1", server.port))
        stream = trio.SocketStream(deaf)
        for _ in range(50):
            await stream.send_all(head.encode() + body)
        await trio.sleep(1)
        began = trio.current_time()
        await server.end()
        assert trio.current_time() - began < 10
        await stream.aclose()


@on_the_wall
async def test_a_signal_during_the_start_is_130_and_says_nothing(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, trio.open_nursery() as nursery:
        with taken_port() as silent:  # takes the connection and says nothing
            program = Program(world, core=f"ws://127.0.0.1:{silent.getsockname()[1]}")
            await nursery.start(program.run)
            await program.lines.see("has no approval")
            assert await program.end(signal.SIGINT, within=3) == 130
        assert "Stopped." not in program.lines.all
        assert program.errors.all == []


@on_the_wall
async def test_others_on_its_folder_or_port_are_refused_and_it_serves_on_when_its_terminal_is_gone(
    tmp_path: Path,
) -> None:
    async with open_world(tmp_path) as world, world.person("Alice") as alice, trio.open_nursery() as nursery:
        program = Program(world)
        await nursery.start(program.run)
        port = (await program.listening()).split(":")[2].split("/")[0]
        on_folder = Program(world)
        on_port = Program(world, "--port", port, data=tmp_path / "other", core="other")
        nursery.start_soon(on_folder.run)
        await on_port.run()
        await on_folder.ended.wait()
        assert (on_folder.code, on_port.code) == (1, 1)
        assert on_folder.errors.all == [f"Agent my-agent is already running (process {program.process.pid})."]
        assert [line.partition(":")[0] for line in on_port.errors.all] == [f"Port {port} is in use by another program"]
        joining = await program.lines.see("https://")
        await program.lose_terminal()
        await alice.see(await alice.join(joining), "I'm your agent.")
        async with program.agent() as agent:
            assert (await agent.call("list"))["agent"] == "My Agent"
        assert await program.end(signal.SIGTERM, within=10) == 0
        assert program.errors.all == []


async def test_signals_are_the_steps_of_a_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    exits: list[int] = []
    monkeypatch.setattr(os, "_exit", exits.append)
    for ready, cancelled in ((True, [False, True, True]), (False, [True, True, True])):
        stop = serve.Stop()
        stop.ready = ready
        async with trio.open_nursery() as nursery:
            await nursery.start(stop.listen)
            seen: list[bool] = []
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGINT):
                os.kill(os.getpid(), number)
                await trio.sleep(0.01)
                await wait_all_tasks_blocked()
                assert stop.asked.is_set()
                seen.append(stop.everything.cancel_called)
            assert seen == cancelled
            assert exits == [130]
            exits.clear()
            nursery.cancel_scope.cancel()


async def test_the_wait_for_the_delivery_ends_when_the_relay_took_everything(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, world.flow(stop_wait=60) as flow, world.person("Bob") as bob:
        _, chat = await join_trail(flow, bob)
        began = 0.0
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: flow.agent.call("send", chat=chat, text="hello"))
            await flow.card("`hello`")
            world.network.relay_up(False)
            began = trio.current_time()
            flow.server.stop.asked.set()
            await flow.server.lines.see("Stopping: sending 1 cancelled card, up to 60 s.")
            await trio.sleep(0.5)
            assert not flow.server.ended.is_set()
            world.network.relay_up()
        await flow.server.ended.wait()
        assert trio.current_time() - began < 5
        assert await flow.card("Cancelled: the server stopped.")


async def test_the_wait_for_the_delivery_is_over_after_stop_wait(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, world.flow(stop_wait=1) as flow, world.person("Bob") as bob:
        _, chat = await join_trail(flow, bob)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: flow.agent.call("send", chat=chat, text="hello"))
            await flow.card("`hello`")
            world.network.relay_up(False)
            flow.server.stop.asked.set()
        with trio.fail_after(5):
            await flow.server.ended.wait()


async def test_everything_cancelled_at_once_leaves_no_task_and_no_open_file(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        world.network.core("agent")
        files, running = open_files(), tasks()
        with trio.CancelScope() as everything:
            async with trio.open_nursery() as nursery:
                stop = serve.Stop()
                nursery.start_soon(lambda: serve.serve(world.options(), stop, on_ready=lambda _: everything.cancel()))
        await nothing_left(running, files)


def test_a_defect_is_one_line_and_exit_code_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    async def broken(*_: Any) -> None:
        await trio.lowlevel.checkpoint()
        raise RuntimeError("boom\x1b[31m")

    monkeypatch.setattr(serve, "open_control_chat", broken)
    assert cli.run(["serve", "x", "--data", str(tmp_path / "data"), "--core", "sandbox", "--port", "0"]) == 1
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("Unexpected RuntimeError: boom")
    assert lines[0].isprintable()
