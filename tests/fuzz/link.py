"""A core that says anything: the WebSocket link keeps its command, its order and its memory."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import trio
from trio.testing import wait_all_tasks_blocked

from simplexmcp.core.websocket import open_websocket
from simplexmcp.errors import CoreError
from tests.core.fakes import FakeCore
from tests.fuzz.mutate import as_text, changed, damaged, junk, recorded

if TYPE_CHECKING:
    from random import Random

    from simplexmcp.core.link import Link
    from tests.fuzz.budget import Budget

__all__ = ["link"]

_TOGETHER = 20
"""Frames between two looks whether the link still serves."""


async def link(budget: Budget) -> None:
    """Mutated frames and bytes that are none, on one link after the other. Needs a clock that jumps."""
    frames = recorded()
    inputs = iter(budget)
    random = next(inputs, None)
    while random is not None:
        async with trio.open_nursery() as nursery:
            core = FakeCore(nursery)
            async with open_websocket("ws://127.0.0.1:5225", dial=core.dial, others=lambda _: None) as opened:
                nursery.start_soon(_drain, opened)
                for _ in range(_TOGETHER):
                    await _say(core, random, frames)
                    random = next(inputs, None)
                    if random is None:
                        break
                await _still_serves(opened, core)
            nursery.cancel_scope.cancel()


async def _say(core: FakeCore, random: Random, frames: list[Any]) -> None:
    kind = random.randrange(20)
    text = as_text(changed(random, random.choice(frames), frames) if kind < 14 else junk(random))
    if kind == 18:
        # What no WebSocket says: the connection ends, and is opened again.
        opened = core.opened
        await core.stream.send_all(damaged(random, b"\x81\x05hello\x82\x03abc\x88\x02\x03\xe8"))
        core.break_connection()
        while core.opened == opened:
            await trio.sleep(0.1)
    elif kind == 19:
        await core.say(random.randbytes(random.randrange(200)))
    elif kind % 3:
        await core.say(text)
    else:
        data = damaged(random, text.encode())
        await core.say(data.decode("utf-8", "replace") if kind % 2 else data)


async def _still_serves(opened: Link, core: FakeCore) -> None:
    """A command gets its own answer, whatever was said before."""
    while not core.requests.statistics().tasks_waiting_receive and core.requests.statistics().current_buffer_used:
        core.requests.receive_nowait()
    async with trio.open_nursery() as nursery:
        outcomes: list[Any] = []

        async def ask() -> None:
            try:
                outcomes.append(await opened.send("/user"))
            except CoreError as error:
                outcomes.append(error.tag)

        with trio.fail_after(120):
            await wait_all_tasks_blocked()
            while opened.down_since is not None:
                await trio.sleep(1)
            nursery.start_soon(ask)
            request = await core.request()
            assert request["cmd"] == "/user", json.dumps(request)
            await core.answer(request, type="activeUser", user={"userId": 7})
            while not outcomes:
                await trio.sleep(0.1)
    assert outcomes == [{"type": "activeUser", "user": {"userId": 7}}]


async def _drain(opened: Link) -> None:
    async for event in opened.events:
        assert isinstance(event["type"], str)
