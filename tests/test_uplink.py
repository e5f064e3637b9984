"""A link over its loss: the gate, what waits behind it, and what the person at the terminal reads."""

from __future__ import annotations

import math
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from simplexmcp.audit import Audit, read_audit
from simplexmcp.core.link import LINK_DOWN, LINK_SHARED, LINK_UP
from simplexmcp.errors import CoreError, LinkLost
from simplexmcp.uplink import Gate, Uplink
from tests.fakes import TrioClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from trio.testing import MockClock

LOST = "The link to the SimpleX core was lost; trying again until it is back."
BACK = "The link to the SimpleX core is back."


class Link:
    """A link that does as it is told."""

    def __init__(self) -> None:
        self.commands: list[str] = []
        self.down_since: float | None = None
        self.say, self.events = trio.open_memory_channel[dict[str, Any]](math.inf)

    async def send(self, command: str) -> dict[str, Any]:
        await trio.lowlevel.checkpoint()
        self.commands.append(command)
        return {"type": "cmdOk"}


class Stage:
    """An uplink and what becomes of it. `trouble`: what the next tries of getting the core ready raise."""

    def __init__(self, folder: Path) -> None:
        self.link = Link()
        self.gate = Gate(self.link)
        self.file = folder / "audit.jsonl"
        self.audit = Audit(self.file, TrioClock())
        self.said: list[str] = []
        self.got: list[str] = []
        self.tries: list[float] = []
        self.trouble: list[Exception] = []
        self.hold: trio.Event | None = None
        self.uplink = Uplink(
            self.link, self.gate, self.audit, self.said.append,
            prepare=self._prepare, hand_on=self._hand_on, now=trio.current_time,
        )  # fmt: skip

    async def _prepare(self) -> None:
        self.tries.append(trio.current_time())
        await trio.lowlevel.checkpoint()
        if self.trouble:
            raise self.trouble.pop(0)
        if self.hold is not None:
            await self.hold.wait()

    def _hand_on(self, event: dict[str, Any]) -> None:
        if event.get("type") == "odd":
            raise KeyError("chatItem")
        self.got.append(event["type"])

    async def tell(self, *events: str | dict[str, Any]) -> None:
        for event in events:
            self.link.say.send_nowait({"type": event} if isinstance(event, str) else event)
        await wait_all_tasks_blocked()

    async def passes(self) -> bool:
        try:
            await self.gate.send("/x")
        except LinkLost as error:
            return error.tag != "link/down"
        return True


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with running(tmp_path) as there:
        yield there


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[Stage]:
    there = Stage(folder)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(there.uplink.run)
        await wait_all_tasks_blocked()
        yield there
        nursery.cancel_scope.cancel()
    there.audit.close()


async def test_events_go_on_in_order(stage: Stage, autojump_clock: MockClock) -> None:
    await stage.tell("a", "b", "c")
    assert stage.got == ["a", "b", "c"]
    assert stage.said == []


async def test_nothing_passes_from_the_loss_until_the_core_is_ready_again(
    stage: Stage, autojump_clock: MockClock
) -> None:
    stage.hold = trio.Event()
    assert await stage.passes()
    await stage.tell(LINK_DOWN)
    assert not await stage.passes()
    assert stage.gate.down_since == 0.0
    await stage.tell(LINK_UP)
    assert not await stage.passes()
    assert stage.said == [LOST]
    stage.hold.set()
    await wait_all_tasks_blocked()
    assert await stage.passes()
    assert stage.gate.down_since is None
    assert stage.said == [LOST, BACK]
    assert stage.link.commands == ["/x", "/x"]


async def test_what_comes_while_the_core_is_made_ready_follows_the_news_of_the_return(
    stage: Stage, autojump_clock: MockClock
) -> None:
    stage.hold = trio.Event()
    await stage.tell("a", LINK_DOWN, LINK_UP, "b", "c")
    assert stage.got == ["a"]
    stage.hold.set()
    await stage.tell("d")
    assert stage.got == ["a", LINK_UP, "b", "c", "d"]


async def test_a_core_that_is_not_ready_is_tried_for_ever_with_longer_pauses_and_said_once(
    stage: Stage, autojump_clock: MockClock
) -> None:
    refusal = CoreError("error/chatNotStarted", "error/chatNotStarted")
    stage.trouble = [*[refusal] * 8, CoreError("x", "another")]
    began = trio.current_time()
    await stage.tell(LINK_DOWN, LINK_UP)
    await trio.sleep(300)
    assert [round(at - began) for at in stage.tries] == [0, 1, 3, 7, 15, 31, 61, 91, 121, 151]
    assert stage.said == [
        LOST,
        "The SimpleX core is there again but refuses (error/chatNotStarted); trying again.",
        "The SimpleX core is there again but refuses (another); trying again.",
        BACK,
    ]


async def test_a_link_that_is_lost_again_meanwhile_begins_anew_at_its_next_return(
    stage: Stage, autojump_clock: MockClock
) -> None:
    stage.hold = trio.Event()
    await stage.tell(LINK_DOWN, LINK_UP, "a", LINK_DOWN)
    stage.hold.set()
    await trio.sleep(100)
    assert not await stage.passes()
    assert len(stage.tries) == 1
    await stage.tell(LINK_UP, "b")
    assert await stage.passes()
    assert stage.got == [LINK_UP, "a", "b"]
    assert stage.said == [LOST, BACK]


async def test_a_link_lost_in_the_middle_of_a_try_is_no_refusal_of_the_core(
    stage: Stage, autojump_clock: MockClock
) -> None:
    stage.trouble = [LinkLost("link/lost", "gone")]
    await stage.tell(LINK_DOWN, LINK_UP)
    await trio.sleep(2)
    assert stage.said == [LOST, BACK]


async def test_whoever_waits_for_the_return_hears_of_each(stage: Stage, autojump_clock: MockClock) -> None:
    first = stage.uplink.returned
    await stage.tell(LINK_DOWN)
    assert not first.is_set()
    await stage.tell(LINK_UP)
    assert first.is_set()
    assert not stage.uplink.returned.is_set()


async def test_another_program_at_the_port_is_a_warning_and_its_end_means_to_read_again(
    stage: Stage, autojump_clock: MockClock
) -> None:
    await stage.tell({"type": LINK_SHARED, "clients": 1}, "a")
    await stage.tell({"type": LINK_SHARED, "clients": 2})
    await stage.tell({"type": LINK_SHARED, "clients": 0}, "b")
    assert stage.said[0].startswith("Warning: Another program is connected to the port of the SimpleX core")
    assert "send as the agent without approval" in stage.said[0]
    assert stage.said[1].startswith("Warning: 2 other programs are connected")
    assert stage.said[2] == "No other program is connected to the SimpleX core any more."
    assert stage.got == ["a", LINK_UP, "b"]
    assert [entry.get("clients") for entry in read_audit(stage.file)] == [1, 2, 0]


async def test_losses_and_returns_are_in_the_audit_log(stage: Stage, autojump_clock: MockClock) -> None:
    await stage.tell({"type": LINK_DOWN, "reason": "the core closed the connection"}, LINK_DOWN, LINK_UP)
    entries = [(entry["event"], entry.get("reason")) for entry in read_audit(stage.file)]
    assert entries == [("link-lost", "the core closed the connection"), ("link-back", None)]


async def test_an_event_that_nobody_understands_ends_nothing(
    stage: Stage, caplog: pytest.LogCaptureFixture, autojump_clock: MockClock
) -> None:
    await stage.tell("a", "odd", "b")
    assert stage.got == ["a", "b"]
    assert [record.getMessage() for record in caplog.records] == [
        "An event odd was not understood: KeyError('chatItem')"
    ]


async def test_a_stop_does_not_wait_for_a_core_that_is_not_ready(tmp_path: Path, autojump_clock: MockClock) -> None:
    for holds in (False, True):
        async with running(tmp_path) as stage:
            stage.hold = trio.Event() if holds else None
            stage.trouble = [] if holds else [CoreError("x", "no")] * 1000
            await stage.tell(LINK_DOWN, LINK_UP)
            began = trio.current_time()
        assert trio.current_time() == began


async def test_a_link_without_events_any_more_is_an_error_and_no_silence(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    stage = Stage(tmp_path)
    stage.link.say.close()
    with pytest.raises(CoreError, match="no events"):
        await stage.uplink.run()
    stage.audit.close()
