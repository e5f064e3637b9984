"""The whole server on a core that says anything: it lives, it does nothing that nobody asked for, and goes on after."""

from __future__ import annotations

import json
import tempfile
from collections import deque
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trio
from trio.testing import MockClock

from simplexmcp.core.link import LINK_UP
from simplexmcp.errors import core_error
from tests.e2e.stack import Sent, open_scene
from tests.fuzz.mutate import changed, recorded

if TYPE_CHECKING:
    from collections.abc import Generator
    from random import Random

    from tests.e2e.stack import Pending, Scene
    from tests.fuzz.budget import Budget

__all__ = ["answers", "events"]

Wire = dict[str, Any]

_TOGETHER = 25
"""Inputs between two looks whether the server still works."""


async def events(budget: Budget) -> None:
    """Mutated events of this network and of recordings, while calls wait."""
    elsewhere = [frame["resp"] for frame in recorded(events=True)]
    with tempfile.TemporaryDirectory() as folder:
        async with open_scene(Path(folder), _clock()) as scene:
            here: deque[Wire] = deque(maxlen=200)
            scene.stack.network.core("agent").react(lambda event: here.append(json.loads(json.dumps(event))))
            await _flow(scene, "before")
            waiting = [scene.stack.call("receive", wait=86_400), scene.stack.call("receive", chat=scene.chat, wait=600)]
            await scene.stack.settle()
            for random in budget:
                event = changed(random, random.choice((random.choice(here), random.choice(elsewhere))), list(here))
                if isinstance(event, dict) and isinstance(event.get("type"), str):
                    with _nothing_leaves(scene):
                        scene.stack.link._link._push.send_nowait(event)
                        await scene.stack.settle(0)
                assert scene.stack.running, scene.stack.lines
                if budget.tried % _TOGETHER == 0:
                    await _works(scene, f"at {budget.tried}")
            await _works(scene, "at last")
            for call in waiting:
                call.lose()


async def answers(budget: Budget) -> None:
    """Mutated answers to the commands of a send, a receive and an owner's words."""
    with tempfile.TemporaryDirectory() as folder:
        async with open_scene(Path(folder), _clock()) as scene:
            seen: deque[Wire] = deque(maxlen=50)
            send = scene.stack.link._link.send

            async def spoilt(command: str) -> Wire:
                response = await send(command)
                seen.append(response)
                if random is None or random.random() < 0.5:
                    return response
                said = changed(random, response, list(seen))
                if not isinstance(said, dict) or not isinstance(said.get("type"), str):
                    return {"type": "unreadable"}
                if said["type"] == "chatCmdError":
                    error = said.get("chatError")
                    raise core_error(error if isinstance(error, dict) else {})
                return said

            random: Random | None = None
            links = [scene.bob.make_address(), scene.bob.make_group("Ridge")[1]]
            scene.stack.link._link.send = spoilt  # type: ignore[method-assign]
            for random in budget:
                await _anything(scene, random, budget.tried, links)
                assert scene.stack.running, scene.stack.lines
                if budget.tried % _TOGETHER == 0:
                    random = None  # unspoilt for a while
                    await _works(scene, f"at {budget.tried}")
            random = None
            await _works(scene, "at last")


async def _anything(scene: Scene, random: Random, number: int, links: list[str]) -> None:
    """One thing that the agent or an owner does: it ends, with a sentence when it failed."""
    text = f"text {number}"
    calls: list[Pending] = []
    match random.randrange(6):
        case 0 | 1:
            before = [sent.text for sent in scene.stack.outward()]
            calls.append(await scene.ask(text))
            assert [sent.text for sent in scene.stack.outward()] == before
            for action in scene.stack.actions.pending():
                await scene.tap(random.choice((f"approve {action.number}", f"reject {action.number}")))
        case 2:
            scene.bob.say(scene.trail, text)
            calls.append(scene.stack.call("receive", wait=random.choice((0, 1))))
        case 3:
            calls.append(scene.stack.call(random.choice(("list", "history")), chat=scene.chat))
            calls.append(scene.stack.call("list"))
        case 4:
            await scene.tap(random.choice(("list", "pending", "help", "show 1", "revoke #2")))
        case _:
            calls.append(scene.stack.call("connect", target=random.choice(links), wait=1, idle=1))
            await scene.stack.settle()
            for action in scene.stack.actions.pending():
                await scene.tap(f"reject {action.number}")
    await scene.stack.settle(40)
    await scene.stack.pass_time(1)
    for call in calls:
        assert call.result is not None or call.scope.cancelled_caught or _waits(scene), (call.tool, call.arguments)
        told = str((call.result or {}).get("error", ""))
        assert told.isprintable(), told
        assert "Internal error" not in told, (call.tool, call.arguments)
        call.lose()
    for action in scene.stack.actions.pending():
        scene.stack.actions.reject(action.number, None, _owner(scene))
    await scene.stack.settle(40)


def _clock() -> MockClock:
    clock = trio.lowlevel.current_clock()
    assert isinstance(clock, MockClock)
    return clock


def _waits(scene: Scene) -> bool:
    """A card whose word did not come through is still to be decided."""
    return bool(scene.stack.actions.pending())


def _owner(scene: Scene) -> Any:
    return next(iter(scene.stack.control.approvers()))


async def _works(scene: Scene, text: str) -> None:
    """After a return of the link everything is read again, and a send goes its way. What the test noted is dropped."""
    for sent in scene.stack.sent:
        sent.response = None
    scene.stack.link._link._push.send_nowait({"type": LINK_UP})
    await scene.stack.settle(30)
    await _flow(scene, text)


async def _flow(scene: Scene, text: str) -> None:
    call = await scene.ask(text)
    for _ in range(5):
        # A message whose number was in a false event before is taken for a known one: the owner taps again.
        for action in scene.stack.actions.pending():
            await scene.tap(f"approve {action.number}")
    await scene.stack.settle(5)
    assert call.result is not None, (text, scene.alice.texts(scene.room)[-3:], scene.stack.lines[-5:])
    assert call.result.get("status") == "done", call.result
    assert scene.heard().count(text) == 1


@contextmanager
def _nothing_leaves(scene: Scene) -> Generator[None]:
    """Nothing reaches others: nobody asked for anything."""
    before: list[Sent] = scene.stack.outward()
    yield
    assert scene.stack.outward() == before, [sent.text for sent in scene.stack.outward()[len(before) :]]
