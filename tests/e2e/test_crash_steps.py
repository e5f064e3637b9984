"""A server that ends at any of the commands that an action leads to, before or after the core does it: whatever the
step, nothing is done twice or without a word, and what the cards say is true (product 5, Journal)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from trio.testing import MockClock

from tests.e2e.stack import is_outward, open_scene

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.stack import Pending, Scene, Sent

CANCELLED = "\nCancelled: the server stopped."
INTERRUPTED = "interrupted: the server stopped. Check the chat before asking again."

OUTWARD = {"connect": "/_connect", "leave": "/_leave", "send": "/_send", "standing": "/_send"}


@pytest.fixture(autouse=True)
def fast_clock() -> MockClock:
    return MockClock()


class Freeze:
    """Lets the server give its core so many commands, then no more, and no answer to the last when that is done."""

    def __init__(self, scene: Scene, steps: int, *, done: bool) -> None:
        self._link, self._left, self._done = scene.stack.link, steps, done
        self.reached = False
        scene.stack.on_sent = self._count

    def _count(self, _sent: Sent) -> None:
        self._left -= 1
        if self._left == 0:
            self.reached = True
            self._link.hold("", done=self._done)
        elif self._left == -1:
            self._link.hold("")


@dataclass
class Trial:
    """One action of the agent, about a text or a group that no other is about."""

    scene: Scene
    tool: str
    step: int
    number: int = 0
    chat: str = ""

    @property
    def about(self) -> str:
        return f"group Other {self.step}" if self.tool in ("connect", "leave") else f"`hello {self.step}`"

    async def prepare(self) -> None:
        """A group to join, or to leave."""
        if self.tool in ("connect", "leave"):
            self.link = self.scene.bob.make_group(f"Other {self.step}")[1]
        if self.tool == "leave":
            call = self.scene.stack.call("connect", target=self.link, wait=10, idle=1)
            await self.scene.stack.settle()
            await self.scene.tap(f"approve {self.pending}")
            await self.scene.stack.settle(10)
            assert call.result is not None
            self.chat = call.result["chat"]

    @property
    def pending(self) -> int:
        return max(action.number for action in self.scene.stack.actions.pending())

    def ask(self) -> Pending:
        match self.tool:
            case "connect":
                return self.scene.stack.call("connect", target=self.link, wait=5, idle=1)
            case "leave":
                return self.scene.stack.call("leave", chat=self.chat)
            case _:
                return self.scene.stack.call("send", chat=self.scene.chat, text=f"hello {self.step}")

    async def crash(self, *, done: bool) -> bool:
        """The action, its server ended at a step of it and started again; False when it had no such step."""
        stack = self.scene.stack
        await self.prepare()
        stack.sent.clear()
        self.number = stack.control.next_action
        freeze = Freeze(self.scene, self.step, done=done)
        call = self.ask()
        await stack.settle()
        if self.tool != "standing" and not freeze.reached:
            await self.scene.tap(f"approve {self.number}")
            await stack.settle(10)
        call.lose()
        await stack.kill()
        stack.on_sent = lambda _sent: None
        await stack.start()
        await stack.settle(10)
        return freeze.reached

    def outcome(self) -> str:
        """How it ended, by its card; that is held against what others got of it, and against the log."""
        told = [text for text in self.scene.alice.texts(self.scene.room) if self.about in text]
        if self.tool == "leave":
            told = [text for text in told if "connect" not in text]
        assert len(told) <= 1 or (self.tool == "standing" and told == told[:1] * 2), told
        assert not any("Tap /" in text for text in told), told
        log = [entry for entry in self.scene.stack.audit() if entry.get("action") == self.number]
        outcome = "nothing" if not told else _named(told[0])
        count = self._carried_out()
        assert count in {"nothing": [0], "cancelled": [0], "interrupted": [0, 1], "done": [1]}[outcome], told
        if outcome in ("interrupted", "done"):
            assert "Alice" in [entry.get("by") for entry in log]
        if log:
            assert log[-1]["event"] == {"nothing": "cancelled", "done": "performed"}.get(outcome, outcome)
            assert self.scene.stack.control.next_action > self.number
        return outcome

    def _carried_out(self) -> int:
        control = self.scene.stack.control.ref
        done = [sent.text for sent in self.scene.stack.sent if sent.done and is_outward(sent.text, control)]
        count = sum(text.startswith(OUTWARD[self.tool]) for text in done)
        if self.tool in ("send", "standing"):
            assert self.scene.heard().count(f"hello {self.step}") == count
        return count


def _named(card: str) -> str:
    if card.endswith(CANCELLED):
        return "cancelled"
    if card.endswith(INTERRUPTED):
        return "interrupted"
    assert "Approved" in card
    return "done"


@pytest.mark.parametrize(
    ("tool", "done"),
    [("send", False), ("send", True), ("standing", False), ("standing", True), ("connect", True), ("leave", True)],
)
async def test_whatever_the_step_nothing_is_done_twice_or_without_a_word_and_the_card_is_true(
    tmp_path: Path, fast_clock: MockClock, tool: str, done: bool
) -> None:
    outcomes: Counter[str] = Counter()
    async with open_scene(tmp_path, fast_clock) as scene:
        if tool == "standing":
            await scene.tap(f"approve {scene.chat} all")
        for step in range(1, 40):
            trial = Trial(scene, tool, step)
            reached = await trial.crash(done=done)
            outcomes[trial.outcome()] += 1
            if not reached:
                break
        else:
            pytest.fail("it never came to its end")
    expected = {"nothing", "interrupted", "done"} | ({"cancelled"} if done and tool != "standing" else set())
    assert set(outcomes) == expected
