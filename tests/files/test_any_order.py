"""Whatever happens in whatever order: each who waits gets the file or a reason, and nothing half is left."""

from __future__ import annotations

import errno
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simplexmcp.errors import CoreError, Refused
from simplexmcp.sandbox.relay import OTHER_SERVER
from tests.clocks import run_skipping
from tests.files.scene import Scene, open_scene

if TYPE_CHECKING:
    from simplexmcp.messages import ChatFile

SIZE = 6_000_000
HAPPENINGS = st.lists(
    st.one_of(
        st.sampled_from(["agent", "forward", "agent", "restart", "cancel", "delete", "stall", "resume", "down", "up"]),
        st.sampled_from(["full", "gone", "cancel chat", "left", "lost done", "lost undone", "lost read"]),
        st.sampled_from([0.05, 1.0, 70.0, 200.0]),
    ),
    max_size=10,
)


class Takers:
    """Everybody who wanted the file, and what they got."""

    def __init__(self, scene: Scene, file: ChatFile, relays: Any) -> None:
        self.scene, self.file, self.relays = scene, file, relays
        self.waiting = 0
        self.got: list[int] = []
        self.reasons: list[str] = []

    async def take(self, place: Any) -> None:
        self.waiting += 1
        try:
            async with self.scene.downloads.fetch(self.scene.chat, self.file, place, self.relays) as transfer:
                path = await transfer.done()
                self.got.append(path.stat().st_size)
        except (Refused, CoreError) as error:
            self.reasons.append(str(error))
        self.waiting -= 1


async def _happen(takers: Takers, what: str | float, number: int) -> None:
    scene = takers.scene
    faults, relay = scene.network.faults, scene.network.files
    match what:
        case "agent" | "forward":
            scene.nursery.start_soon(takers.take, "received" if what == "agent" else "forwarded")
        case "restart":
            await scene.restart()
        case "cancel":
            scene.bob.core.command("/fcancel 1")
        case "delete":
            scene.bob.core.command(f"/_delete item {scene.to_agent} {number} broadcast")
        case "stall":
            relay.stall("agent")
        case "resume":
            relay.resume("agent")
        case "down":
            relay.down()
        case "up":
            relay.up()
        case "full":
            faults.download_errors["agent"] = errno.ENOSPC
        case "gone":
            relay.remove_all()
        case "cancel chat":
            with suppress(CoreError):
                await scene.downloads.cancel_chat(scene.chat)
        case "left":
            scene.downloads.chat_gone(scene.chat)
        case "lost done" | "lost undone" | "lost read":
            prefix = "/_get chat" if what == "lost read" else "/freceive"
            faults.drop("agent", prefix, done=what == "lost done")
        case _:
            await trio.sleep(float(what))


async def _live(happenings: list[str | float], *, group: bool, unknown: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with open_scene(Path(folder), group=group) as scene:
            if unknown:
                scene.bob.do(f"/xftp {OTHER_SERVER}")
            number = scene.send(scene.make(SIZE))
            await trio.sleep(20)
            file = await scene.newest()
            takers = Takers(scene, file, await scene.downloads.relays(scene.chat, file))
            scene.network.faults.chunk_seconds = 0.5
            for what in happenings:
                await _happen(takers, what, number)
            scene.network.files.resume("agent")
            await trio.sleep(60 * 60)
            with trio.move_on_after(600):
                while takers.waiting or scene.downloads._receiving:
                    await trio.sleep(1)
            assert takers.waiting == 0, happenings
            assert scene.downloads._receiving == {}
            assert set(takers.got) <= {SIZE}
            assert all(takers.reasons)
            assert all((scene.folders.data / path).stat().st_size == SIZE for path in scene.left())
            assert len(scene.left()) <= 1


@pytest.mark.parametrize("unknown", [False, True], ids=["known", "unknown"])
@pytest.mark.parametrize("group", [False, True], ids=["direct", "group"])
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(happenings=HAPPENINGS)
def test_everybody_gets_the_file_or_a_reason(happenings: list[str | float], group: bool, unknown: bool) -> None:
    async def run() -> None:
        await _live(happenings, group=group, unknown=unknown)

    run_skipping(run)


@pytest.mark.parametrize("steps", range(0, 60, 6))
async def test_a_server_that_stops_at_any_step_can_go_on_later(direct: Scene, steps: int) -> None:
    file = await direct.offer(SIZE)
    whole = (direct.folder / "bob" / "report.pdf").read_bytes()
    takers = Takers(direct, file, None)
    direct.nursery.start_soon(takers.take, "received")
    for _ in range(steps):
        await trio.lowlevel.checkpoint()
    await direct.restart()
    while takers.waiting:
        await trio.sleep(1)
    assert (await direct.get(file)).read_bytes() == whole
    assert len(direct.left()) == 1
