"""A server that is killed at any step, and the next start after it (cases U36, U41, S16, S43)."""

from __future__ import annotations

import signal
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
import trio
from mcp import MCPError

from tests.e2e.robust import Program
from tests.e2e.world import open_world

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from tests.e2e.world import Person, World

CANCELLED = "Cancelled: the server stopped."
INTERRUPTED = "interrupted: the server stopped. Check the chat before asking again."


class Killer:
    """Kills a program at the agent's command that begins with some words, done or not."""

    def __init__(self, world: World) -> None:
        self._core = world.network.core("agent")
        self._answer: Callable[[str], dict[str, Any]] = self._core.command
        self._core.command = self._command  # type: ignore[method-assign]
        self._at: tuple[Program, str, bool] | None = None

    def kill(self, program: Program, at: str, *, done: bool) -> None:
        self._at = (program, at, done)

    def _command(self, text: str) -> dict[str, Any]:
        if self._at is None or not text.startswith(self._at[1]):
            return self._answer(text)
        program, _, done = self._at
        self._at = None
        program.signal(signal.SIGKILL)
        return self._answer(text) if done else {"type": "cmdOk"}


@asynccontextmanager
async def started(world: World) -> AsyncIterator[Program]:
    """A program that listens; over when it has ended."""
    program = Program(world, "--stop-wait", "1")
    async with trio.open_nursery() as nursery:
        await nursery.start(program.run)
        await program.listening()
        yield program
        await program.ended.wait()
        assert program.errors.all == []


async def send_and_die(program: Program, text: str, chat: str) -> None:
    """A send whose server dies before it answers."""
    answered = False
    try:
        async with program.agent() as agent:
            await agent.call("send", chat=chat, text=text)
            answered = True
    except* (httpx2.TransportError, MCPError):
        await program.ended.wait()
    assert not answered


async def joined(program: Program, alice: Person, ref: str, link: str) -> str:
    """The agent joins a group by action 1; the chat."""
    result: dict[str, Any] = {}

    async def call() -> None:
        async with program.agent() as agent:
            result.update(await agent.call("connect", target=link, wait=30, idle=1))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(call)
        await alice.see(ref, "/'approve 1'")
        await alice.say(ref, "/approve 1")
    return str(result["chat"])


@pytest.mark.trio(run=trio.run)
async def test_the_next_start_gives_each_card_of_a_killed_server_its_last_line_and_goes_on_counting(
    tmp_path: Path,
) -> None:
    async with open_world(tmp_path) as world, world.person("Alice") as alice, world.person("Bob") as bob:
        killer = Killer(world)
        group, link = await bob.make_group("Trail")
        with trio.fail_after(60):
            # 1. Killed before the counter of action 3 is stored, with the card of action 2 open.
            async with started(world) as program:
                ref = await alice.join(await program.lines.see("https://"))
                await alice.see(ref, "I'm your agent.")
                chat = await joined(program, alice, ref, link)
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(send_and_die, program, "second", chat)
                    await alice.see(ref, f"`second`\nTap /'approve {chat} 2'")
                    killer.kill(program, "/_set custom #1", done=False)
                    nursery.start_soon(send_and_die, program, "third", chat)
            # 2. Killed when the card of action 4 is there and its number is not known yet.
            async with started(world) as program:
                assert (await alice.see(ref, f"`second`\n{CANCELLED}")).startswith("I want to send a message")
                await alice.say(ref, "/approve 2")
                assert await alice.see(ref, "Action 2 is") == "Action 2 is not pending."
                killer.kill(program, "/_send #1", done=True)
                await send_and_die(program, "fourth", chat)
            # 3. Killed when the approved action 5 has sent its message.
            async with started(world) as program:
                await alice.see(ref, f"`fourth`\n{CANCELLED}")
                killer.kill(program, f"/_send {chat}", done=True)
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(send_and_die, program, "fifth", chat)
                    await alice.see(ref, f"`fifth`\nTap /'approve {chat} 5'")
                    await alice.say(ref, "/approve 5")
            # 4. The same under a standing approval: action 6 never had a card.
            async with started(world) as program:
                await alice.see(ref, f"`fifth`\nApproved by Alice; {INTERRUPTED}")
                await alice.say(ref, f"/approve {chat} all")
                await alice.see(ref, "Approved for")
                killer.kill(program, f"/_send {chat}", done=True)
                await send_and_die(program, "sixth", chat)
            # It is told, and the approval still holds.
            server = await world.serve(stop_wait=1)
            await alice.see(ref, f"`sixth`\nApproved by Alice; {INTERRUPTED}")
            async with server.agent() as agent:
                assert (await agent.call("list"))["actions"] == []
                assert (await agent.call("send", chat=chat, text="seventh"))["action"] == 7
            await bob.see(group, "seventh")
            await server.end()
        cards = await alice.texts(ref)
        assert not any("third" in text for text in cards)
        assert not any("Tap /" in text for text in cards)
        for text, times in {"second": 0, "third": 0, "fourth": 0, "fifth": 1, "sixth": 1, "seventh": 1}.items():
            assert (await bob.texts(group)).count(text) == times, text
        assert (tmp_path / "data" / "actions.jsonl").read_text().count('"end":true') >= 1
