"""A computer's clock that jumps: what has an end ends, never later than it was said, and once."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
import trio
from trio.testing import MockClock

from tests.e2e.stack import open_scene
from tests.fakes import START, TrioClock

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

HOUR = 3600.0


@pytest.fixture(autouse=True)
def fast_clock() -> MockClock:
    return MockClock()


class Wall:
    """The computer's clock, which a test sets forward and back; the time that goes by is trio's."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def now(self) -> datetime:
        return START + timedelta(seconds=trio.current_time() + self.ahead)


@pytest.fixture
def wall(monkeypatch: pytest.MonkeyPatch) -> Wall:
    wall = Wall()
    monkeypatch.setattr(TrioClock, "now", lambda _clock: wall.now())
    return wall


async def test_a_clock_set_forward_expires_at_once_what_is_over_by_it(
    tmp_path: Path, fast_clock: MockClock, wall: Wall
) -> None:
    async with open_scene(tmp_path, fast_clock) as scene:
        call = await scene.ask("hello")
        wall.ahead += 24 * HOUR
        await scene.stack.pass_time(61)
        assert call.result is not None
        assert call.result["status"] == "expired"
        assert scene.card("`hello`").endswith("\nExpired.")
        await scene.tap("approve 2")
        assert scene.card("Action 2 expired at ")
        assert scene.heard() == []
        assert not scene.sees("Action 2 expires")


async def test_a_clock_set_back_gives_an_action_no_more_time_than_its_card_can_be_edited(
    tmp_path: Path, fast_clock: MockClock, wall: Wall
) -> None:
    async with open_scene(tmp_path, fast_clock) as scene:
        call = await scene.ask("hello")
        wall.ahead -= 48 * HOUR
        await scene.stack.pass_time(23 * HOUR - 120)
        assert call.result is None
        await scene.stack.pass_time(240)
        assert call.result is not None
        assert call.result["status"] == "expired"
        assert scene.card("`hello`").endswith("\nExpired.")
        await scene.tap("approve 2")
        assert scene.heard() == []


@pytest.mark.parametrize("jumps", [(22.6, -1.0, 1.0), (22.6, -22.6, 22.6)])
async def test_a_clock_that_jumps_around_the_time_of_a_reminder_reminds_once(
    tmp_path: Path, fast_clock: MockClock, wall: Wall, jumps: tuple[float, ...]
) -> None:
    async with open_scene(tmp_path, fast_clock) as scene:
        await scene.ask("hello")
        for jump in jumps:
            wall.ahead += jump * HOUR
            await scene.stack.pass_time(61)
        reminders = [text for text in scene.alice.texts(scene.room) if "Action 2 expires at" in text]
        assert len(reminders) == 1
        await scene.tap("approve 2")
        assert scene.heard() == ["hello"]


async def test_a_bounded_approval_ends_by_the_clock_that_was_set_forward(
    tmp_path: Path, fast_clock: MockClock, wall: Wall
) -> None:
    async with open_scene(tmp_path, fast_clock) as scene:
        await scene.tap("approve #2 all 2h")
        wall.ahead += 3 * HOUR
        assert (await scene.ask("hello")).result is None  # a card asks
        await scene.stack.pass_time(61)
        assert scene.sees("need approval again")
        assert scene.heard() == []


@pytest.mark.parametrize("restarted", [False, True])
async def test_a_bounded_approval_ends_in_its_time_though_the_clock_was_set_back(
    tmp_path: Path, fast_clock: MockClock, wall: Wall, restarted: bool
) -> None:
    async with open_scene(tmp_path, fast_clock) as scene:
        await scene.tap("approve #2 all 2h")
        if restarted:
            await scene.stack.stop()
            await scene.stack.start()
        wall.ahead -= 10 * HOUR
        assert (await scene.stack.use("send", chat="#2", text="one"))["status"] == "done"
        await scene.stack.pass_time(2 * HOUR)
        assert scene.sees("need approval again")
        assert (await scene.ask("two")).result is None
        assert scene.heard() == ["one"]
        assert "approved" not in (await scene.stack.use("list"))["chats"][0]
