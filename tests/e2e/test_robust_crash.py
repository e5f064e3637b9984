"""The program is killed at each step of an action, and the next start tells the truth (cases U36, U41, S16, S43).

The core's side of the socket kills it at an exact command, before or after that is carried out: no step is met by
chance.
"""

from __future__ import annotations

import json
import signal
from collections import Counter
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
import trio
from mcp import MCPError
from trio.testing import MockClock

from tests.e2e.robust import Program
from tests.e2e.world import free_port, open_world

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from tests.e2e.world import Person, World

CANCELLED = "Cancelled: the server stopped."
INTERRUPTED = "Approved by Alice; interrupted: the server stopped. Check the chat before asking again."

pytestmark = pytest.mark.trio(run=trio.run)


class Killer:
    """Kills a program at a command of its core that begins with some words, done or not, or at an event of it."""

    def __init__(self, world: World) -> None:
        core = world.network.core("agent")
        self._answer: Callable[[str], dict[str, Any]] = core.command
        self._publish: Callable[[dict[str, Any]], None] = core._publish
        core.command = self._command  # type: ignore[method-assign]
        core._publish = self._event  # type: ignore[method-assign]
        self._program: Program | None = None
        self._at, self._done, self._told = "", False, ""

    def at(self, program: Program, command: str, *, done: bool) -> None:
        """Kill it at its next command that begins so, before or after that is done."""
        self._program, self._at, self._done, self._told = program, command, done, ""

    def before(self, program: Program, told: str) -> None:
        """Kill it before it hears of what has this text."""
        self._program, self._at, self._told = program, "", told

    def _command(self, text: str) -> dict[str, Any]:
        if self._program is None or not self._at or not text.startswith(self._at):
            return self._answer(text)
        self._kill()
        return self._answer(text) if self._done else {"type": "cmdOk"}

    def _event(self, event: dict[str, Any]) -> None:
        if self._program is not None and self._told and self._told in json.dumps(event):
            self._kill()
        self._publish(event)

    def _kill(self) -> None:
        assert self._program is not None
        self._program.signal(signal.SIGKILL)
        self._program = None


class Stage:
    """Alice's control chat and Bob's group with the agent in it, over all runs of the program."""

    def __init__(self, world: World, alice: Person, bob: Person) -> None:
        self.world, self.alice, self.bob, self.killer = world, alice, bob, Killer(world)
        self.ref = self.chat = self.group = ""

    def program(self, *options: str) -> Program:
        """The program for one run."""
        program = Program(self.world, "--stop-wait", "1", *options)
        program.forked = True
        return program

    @asynccontextmanager
    async def run(self, *options: str) -> AsyncIterator[Program]:
        """A run of the program, from its listening to its end, however that comes."""
        program = self.program(*options)
        async with trio.open_nursery() as nursery:
            await nursery.start(program.run)
            await program.listening()
            yield program
            await program.ended.wait()
            assert program.errors.all == []

    async def set(self) -> None:
        """Alice owns the agent, which joins Trail by action 1."""
        self.group, link = await self.bob.make_group("Trail")
        async with self.run() as program:
            self.ref = await self.alice.join(await program.lines.see("https://"))
            await self.alice.see(self.ref, "I'm your agent.")
            async with program.agent() as agent, trio.open_nursery() as nursery:

                async def connect() -> None:
                    self.chat = (await agent.call("connect", target=link, wait=30, idle=1))["chat"]

                nursery.start_soon(connect)
                await self.alice.see(self.ref, "/'approve 1'")
                await self.alice.say(self.ref, "/approve 1")
            program.signal(signal.SIGKILL)

    async def send(
        self, program: Program, text: str, then: Callable[[], Awaitable[None]] | None = None, *, untold: bool = True
    ) -> None:
        """A send whose server dies, before it answers when the agent is to be `untold`; `then` is done while it
        waits."""
        answer = ""
        params = {"name": "send", "arguments": {"chat": self.chat, "text": text}}
        headers = {
            "Authorization": f"Bearer {(program.data / 'token').read_text().strip()}",
            "Accept": "application/json, text/event-stream",
        }
        async with httpx2.AsyncClient(timeout=None) as http, trio.open_nursery() as nursery:
            if then is not None:
                nursery.start_soon(then)
            url, body = await program.listening(), {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            with suppress(httpx2.TransportError):
                answer = (await http.post(url, headers=headers, json=body)).text
            await program.ended.wait()
        answered = '"status"' in answer
        assert not (answered and untold)

    def approve(self, number: int, text: str, before: Callable[[], None]) -> Callable[[], Awaitable[None]]:
        """Alice approves action `number` as soon as she sees its card; `before` she does, something is prepared."""

        async def tap() -> None:
            await self.asked(number, text)
            before()
            await self.alice.say(self.ref, f"/approve {number}")

        return tap

    async def asked(self, number: int, text: str) -> None:
        """Its card asks Alice."""
        await self.alice.see(self.ref, f"`{text}`\nTap /'approve {self.chat} {number}'")

    async def is_told(self, text: str, outcome: str) -> str:
        """The card of this text has this last line; the card."""
        return await self.alice.see(self.ref, f"`{text}`\n{outcome}")

    async def truth(self, sent: dict[str, int], numbers: list[int]) -> None:
        """After the last run: each text went out so often, these numbers were given, no card still asks, and the log
        knows for each action one request, an owner's word when it was performed, and one outcome."""
        heard = Counter(await self.bob.texts(self.group))
        assert {text: heard[text] for text in sent} == sent
        assert not any("Tap /" in text for text in await self.alice.texts(self.ref))
        log = [json.loads(line) for line in (self.world.folder / "data" / "audit.jsonl").read_text().splitlines()]
        assert [entry["action"] for entry in log if entry["event"] == "created"] == numbers
        for number in numbers:
            events = [entry["event"] for entry in log if entry.get("action") == number]
            assert sum(event in ("performed", "cancelled", "interrupted") for event in events) == 1, events
            if events[-1] != "cancelled":
                carried = next(entry for entry in log if entry.get("action") == number and "by" in entry)
                assert carried["by"] == "Alice"


@asynccontextmanager
async def staged(folder: Path) -> AsyncIterator[Stage]:
    async with open_world(folder) as world, world.person("Alice") as alice, world.person("Bob") as bob:
        with trio.fail_after(60):
            stage = Stage(world, alice, bob)
            await stage.set()
            yield stage


async def test_killed_while_it_asks_it_has_asked_nothing_or_the_card_is_cancelled(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        kill = stage.killer
        async with stage.run() as program:
            kill.at(program, f"/_get chat {stage.chat}", done=True)  # before the journal knows of it
            await stage.send(program, "unknown")
        async with stage.run() as program:
            # The journal knows action 3, the core does not yet; action 2 is pending.
            async def another() -> None:
                await stage.asked(2, "pending")
                kill.at(program, "/_set custom #1", done=False)
                await stage.send(program, "journaled")

            await stage.send(program, "pending", another)
        async with stage.run() as program:
            await stage.is_told("pending", CANCELLED)
            await stage.alice.say(stage.ref, "/approve 2")
            assert await stage.alice.see(stage.ref, "Action 2 is") == "Action 2 is not pending."
            kill.at(program, "/_send #1", done=False)
            await stage.send(program, "counted")
        async with stage.run() as program:
            kill.at(program, "/_send #1", done=True)  # the card is there, the answer with its number is not
            await stage.send(program, "posted")
        async with stage.run() as program:
            await stage.is_told("posted", CANCELLED)
            assert await program.end(signal.SIGINT, within=10) == 0
        cards = "\n".join(await stage.alice.texts(stage.ref))
        assert not any(f"`{text}`" in cards for text in ("unknown", "journaled", "counted"))
        await stage.truth(
            {"unknown": 0, "pending": 0, "journaled": 0, "counted": 0, "posted": 0}, numbers=[1, 2, 3, 4, 5]
        )


async def test_killed_between_the_word_and_the_send_it_has_done_nothing_twice_and_tells_what_it_knows(
    tmp_path: Path,
) -> None:
    async with staged(tmp_path) as stage:
        kill = stage.killer
        async with stage.run() as program:
            word = stage.approve(2, "unheard", lambda: kill.before(program, "/approve 2"))
            await stage.send(program, "unheard", word)
        async with stage.run() as program:
            await stage.is_told("unheard", CANCELLED)
            assert await stage.alice.see(stage.ref, "Action 2 is") == "Action 2 is not pending."
            # The first thing that a perform does is to read the chat again: now the decision is on the disk.
            word = stage.approve(3, "decided", lambda: kill.at(program, f"/_get chat {stage.chat}", done=True))
            await stage.send(program, "decided", word)
        async with stage.run() as program:
            await stage.is_told("decided", INTERRUPTED)
            word = stage.approve(4, "unsent", lambda: kill.at(program, f"/_send {stage.chat}", done=False))
            await stage.send(program, "unsent", word)
        async with stage.run() as program:
            await stage.is_told("unsent", INTERRUPTED)
            word = stage.approve(5, "sent", lambda: kill.at(program, f"/_send {stage.chat}", done=True))
            await stage.send(program, "sent", word)
        async with stage.run() as program:
            await stage.is_told("sent", INTERRUPTED)
            await stage.alice.say(stage.ref, f"/approve {stage.chat} all")
            await stage.alice.see(stage.ref, "Approved for")
            kill.at(program, f"/_send {stage.chat}", done=True)  # action 6 never had a card
            await stage.send(program, "uncarded")
        async with stage.run() as program:
            await stage.is_told("uncarded", INTERRUPTED)
            async with program.agent() as agent:
                assert (await agent.call("list"))["actions"] == []
                assert (await agent.call("send", chat=stage.chat, text="carried"))["action"] == 7
            await stage.bob.see(stage.group, "carried")
            assert await program.end(signal.SIGINT, within=10) == 0
        await stage.truth(
            {"unheard": 0, "decided": 0, "unsent": 0, "sent": 1, "uncarded": 1, "carried": 1},
            numbers=[1, 2, 3, 4, 5, 6, 7],
        )


async def test_killed_after_the_send_or_in_its_stop_or_in_the_next_start_each_card_gets_its_outcome_once(
    tmp_path: Path,
) -> None:
    async with staged(tmp_path) as stage:
        kill, done = stage.killer, "Approved by Alice."
        async with stage.run() as program:
            word = stage.approve(2, "untold", lambda: kill.at(program, "/_update item #1", done=False))
            await stage.send(program, "untold", word, untold=False)
        async with stage.run() as program:
            assert (await stage.is_told("untold", done)).startswith("I sent a message to group Trail")
            word = stage.approve(3, "told", lambda: kill.at(program, "/_update item #1", done=True))
            await stage.send(program, "told", word, untold=False)
        async with stage.run() as program:
            assert (await stage.is_told("told", done)).startswith("I sent a message to group Trail")

            async def second() -> None:
                await stage.asked(4, "first")
                await stage.send(program, "second", stop, untold=False)

            async def stop() -> None:
                await stage.asked(5, "second")
                kill.at(program, "/_update item #1", done=False)
                program.signal(signal.SIGINT)

            await stage.send(program, "first", second, untold=False)
        # Killed again at the first of the two edits that the next start owes.
        killed_again = stage.program()
        kill.at(killed_again, "/_update item #1", done=True)
        await killed_again.run()
        async with stage.run() as program:
            await stage.is_told("first", CANCELLED)
            await stage.is_told("second", CANCELLED)
            assert await program.end(signal.SIGINT, within=10) == 0
        cards = await stage.alice.texts(stage.ref)
        for text in ("untold", "told", "first", "second"):
            assert sum(f"`{text}`" in card for card in cards) == 1
        await stage.truth({"untold": 1, "told": 1, "first": 0, "second": 0}, numbers=[1, 2, 3, 4, 5])


@pytest.mark.trio(run=lambda *args, **options: trio.run(*args, **{**options, "clock": MockClock(rate=4)}))
async def test_a_call_whose_server_was_killed_ends_within_seconds_of_the_restart(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        port = ("--port", str(free_port()))
        async with stage.run(*port) as program, program.agent() as agent:
            errors: list[str] = []

            async def call() -> None:
                with pytest.raises(MCPError) as caught:
                    await agent.call("send", chat=stage.chat, text="pending")
                errors.append(str(caught.value))

            async with trio.open_nursery() as nursery:
                nursery.start_soon(call)
                await stage.asked(2, "pending")
                await program.end(signal.SIGKILL, within=10)
                async with stage.run(*port) as again:
                    with trio.fail_after(8):
                        while not errors:
                            await trio.sleep(0.1)
                    assert "Make the same call again" in errors[0]
                    await stage.is_told("pending", CANCELLED)
                    assert (await agent.call("list"))["actions"] == []
                    again.signal(signal.SIGINT)
