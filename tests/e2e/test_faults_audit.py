"""The audit log: complete, on the disk before anything is done, without texts of others or secrets; and a full disk."""

from __future__ import annotations

import json
import os
import resource
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import MockClock

from tests.e2e.robust import Program
from tests.e2e.stack import open_scene
from tests.e2e.world import open_world

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.stack import Scene, Sent
    from tests.e2e.world import Agent


@pytest.fixture(autouse=True)
def fast_clock() -> MockClock:
    return MockClock()


def entries(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def of(number: int, scene: Scene) -> list[str]:
    return [entry["event"] for entry in scene.stack.audit() if entry.get("action") == number]


@pytest.mark.parametrize("mode", ["requests", "host"])
async def test_who_decided_is_on_the_disk_before_anything_leaves(
    tmp_path: Path, fast_clock: MockClock, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    log = tmp_path / "data" / "audit.jsonl"
    durable, fsync = [""], os.fsync

    def snapshot(fd: int) -> None:
        fsync(fd)
        if os.fstat(fd).st_ino == log.stat().st_ino:
            durable[0] = log.read_text()

    async with open_scene(tmp_path, fast_clock, approve=mode) as scene:
        monkeypatch.setattr(os, "fsync", snapshot)
        seen: list[list[dict[str, Any]]] = []

        def before(sent: Sent) -> None:
            if sent.text.startswith(("/_leave", "/_send #2")):
                seen.append(entries(durable[0]))

        scene.stack.on_sent = before
        await scene.ask("first")
        if mode == "requests":
            await scene.tap("approve 2")
            await scene.tap("approve #2 all")
            await scene.ask("second")
            await scene.tap("leave #2")
            last = [{"event": "decided", "by": "Alice"}, {"event": "created", "by": "Alice"}, {"event": "leave"}]
        else:
            scene.stack.call("leave", chat="#2")
            await scene.stack.settle()
            last = [{"event": "created", "tool": "send"}, {"event": "created", "tool": "leave"}]
        assert [known[-1]["event"] for known in seen] == [entry["event"] for entry in last]
        for known, entry in zip(seen, last, strict=True):
            assert entry.items() <= known[-1].items()


async def test_each_action_is_in_the_log_from_its_request_to_its_outcome_and_nothing_is_ever_changed(
    tmp_path: Path, fast_clock: MockClock
) -> None:
    log = tmp_path / "data" / "audit.jsonl"
    async with open_scene(tmp_path, fast_clock) as scene:
        before = log.read_text()
        for text in ("approved", "rejected", "changed", "expired"):
            await scene.ask(text)
        await scene.tap("approve 2")
        await scene.tap("reject 3")
        scene.bob.set_role(scene.trail, "My Agent", "observer")
        await scene.stack.settle()
        await scene.tap("approve 4")
        scene.bob.set_role(scene.trail, "My Agent", "member")
        await scene.stack.pass_time(23 * 3600 + 60)
        await scene.tap("approve #2 all")
        await scene.ask("standing")
        scene.stack.link.hold("/_send #2")
        await scene.ask("interrupted")
        scene.stack.call("leave", chat="#2")
        await scene.stack.settle()
        await scene.stack.stop()
        assert log.read_text().startswith(before)
        assert [of(number, scene) for number in range(2, 9)] == [
            ["created", "decided", "performed"],
            ["created", "decided", "rejected"],
            ["created", "decided", "failed"],
            ["created", "expired"],
            ["created", "performed"],
            ["created", "interrupted"],
            ["created", "cancelled"],
        ]
        assert of(6, scene) != []
        standing = next(entry for entry in scene.stack.audit() if entry.get("action") == 6)
        assert (standing["by"], standing["standing"], standing["state"]) == ("Alice", True, "performing")


async def test_no_text_of_anybody_no_link_and_no_secret_is_in_the_log(tmp_path: Path, fast_clock: MockClock) -> None:
    async with open_scene(tmp_path, fast_clock) as scene:
        said = scene.bob.say(scene.trail, "WORDS of Bob")
        await scene.stack.settle()
        await scene.stack.use("receive", chat="#2")
        await scene.ask("WORDS of the agent", wait=5)
        await scene.tap("approve 2")
        scene.bob.say(scene.trail, "WORDS as an answer", quotedItemId=said)
        await scene.tap("WORDS of Alice")
        await scene.tap("approve 99 WORDS")
        scene.bob.say(scene.trail, "/approve 2 WORDS")
        link = scene.bob.make_address()
        scene.stack.call("connect", target=link, message="WORDS of a request")
        await scene.stack.settle()
        await scene.tap("approve 3")
        await scene.stack.settle(10)
        await scene.stack.stop()
        text = (tmp_path / "data" / "audit.jsonl").read_text()
        assert "WORDS" not in text
        assert (tmp_path / "data" / "token").read_text().strip() not in text
        assert "https://" not in text
        assert "simplex:/" not in text
        assert len(entries(text)) > 5


async def test_an_action_that_a_crash_ended_has_its_end_in_the_log_of_the_next_run(
    tmp_path: Path, fast_clock: MockClock
) -> None:
    async with open_scene(tmp_path, fast_clock) as scene:
        await scene.ask("pending")
        scene.stack.link.hold("/_send #2")
        await scene.ask("performing")
        await scene.tap("approve 3")
        await scene.stack.kill()
        await scene.stack.start()
        await scene.stack.settle()
        assert (of(2, scene), of(3, scene)) == (["created", "cancelled"], ["created", "decided", "interrupted"])
        assert [
            entry["crashed"] for entry in scene.stack.audit() if entry["event"] in ("cancelled", "interrupted")
        ] == [
            True,
            True,
        ]


@pytest.mark.trio(run=trio.run)
async def test_a_full_disk_stops_what_was_approved_and_what_is_asked_and_it_goes_on_when_there_is_room(
    tmp_path: Path,
) -> None:
    async with (
        open_world(tmp_path) as world,
        world.person("Alice") as alice,
        world.person("Bob") as bob,
        trio.open_nursery() as nursery,
    ):
        group, link = await bob.make_group("Trail")
        program = Program(world)
        program.forked = True
        await nursery.start(program.run)
        ref = await alice.join(await program.lines.see("https://"))
        log = tmp_path / "data" / "audit.jsonl"

        async def decided(agent: Agent, needle: str, tool: str, **arguments: Any) -> dict[str, Any]:
            """A call whose card Alice approves; in between the disk fills up to what the log holds."""
            result: dict[str, Any] = {}

            async def call() -> None:
                result.update(await agent.call(tool, **arguments))

            async with trio.open_nursery() as calls:
                calls.start_soon(call)
                card = await alice.see(ref, needle)
                if needle == "`full`":
                    room(log.stat().st_size)
                await alice.say(ref, "/" + card.partition("/'")[2].partition("'")[0])
            return result

        def room(size: int) -> None:
            limits = (size, resource.RLIM_INFINITY)
            resource.prlimit(program.process.pid, resource.RLIMIT_FSIZE, limits)

        async with program.agent() as agent:
            chat = (await decided(agent, "connect to group Trail", "connect", target=link, wait=30, idle=1))["chat"]
            failed = await decided(agent, "`full`", "send", chat=chat, text="full")
            why = "The server can't write its audit log (File too large), so nothing was done"
            assert failed["status"] == "failed"
            assert failed["error"].startswith(why)
            assert why in await alice.see(ref, "`full`\nApproved by Alice; failed: ")
            room(0)
            refused = await agent.call("send", chat=chat, text="asked")
            assert "The server can't write its journal (File too large), so nothing was done" in refused["error"]
            room(resource.RLIM_INFINITY)
            assert (await decided(agent, "`room`", "send", chat=chat, text="room"))["status"] == "done"
        await bob.see(group, "room")
        assert not {"full", "asked"} & set(await bob.texts(group))
        assert await program.end(15, within=10) == 0
        events = [(entry.get("action"), entry["event"]) for entry in entries(log.read_text()) if "action" in entry]
        assert events == [
            *((1, event) for event in ("created", "decided", "performed")),
            *((2, event) for event in ("created", "decided", "failed")),
            *((3, event) for event in ("created", "failed")),
            *((4, event) for event in ("created", "decided", "performed")),
        ]
        assert all("WARNING" in line or "can't be written" in line for line in program.errors.all)
