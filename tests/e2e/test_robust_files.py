"""Files while the link goes, while the server stops or dies, and much of them."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio
from mcp import MCPError

from simplexmcp.core.api import count
from simplexmcp.files.names import shown_size
from tests.clocks import within
from tests.e2e.filing import REPORT, Filing, filing, newest_file, picture, take
from tests.e2e.robust import Cable, told
from tests.e2e.test_flow_04_send import join_trail
from tests.e2e.world import DEADLINE, open_world

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@asynccontextmanager
async def cabled_filing(folder: Path) -> AsyncIterator[tuple[Filing, Cable]]:
    """A filing scene whose server has its core at the end of a cable."""
    async with open_world(folder) as world:
        cable = Cable(world.nursery, world.port)
        await world.nursery.start(cable.run)
        async with (
            world.flow(core=f"ws://127.0.0.1:{cable.port}/agent") as flow, world.person("Bob") as bob
        ):  # fmt: skip
            group, chat = await join_trail(flow, bob)
            yield Filing(world, flow.server, flow.alice, flow.ref, flow.agent, bob, group, chat), cable


async def test_a_download_goes_on_over_a_lost_link(tmp_path: Path) -> None:
    async with cabled_filing(tmp_path) as (scene, cable):
        item = await scene.offered()
        scene.world.network.files.stall("agent")

        async def lose() -> None:
            cable.cut()
            await trio.sleep(1)
            scene.world.network.files.resume("agent")  # completes while nobody listens, or just after

        result = await scene.in_the_middle(item, lose)
        assert result["status"] == "done", result
        assert (scene.data / "files" / f"group-{scene.chat[1:]}" / "1.pdf").read_bytes() == REPORT


@pytest.mark.parametrize("done", [False, True])
async def test_a_download_that_the_loss_asked_for_happens_once(tmp_path: Path, done: bool) -> None:
    async with filing(tmp_path) as scene:
        item = await scene.offered()
        commands = told(scene.world)
        scene.world.network.faults.drop("agent", "/freceive", done=done)
        result = await scene.result_of(
            "download", "I want to download", f"receive {scene.chat} 2", chat=scene.chat, item=item
        )
        assert sum(command.startswith("/freceive") for command in commands) <= 1
        if done:
            assert result["status"] == "done"
        else:
            assert result["status"] == "failed"
            assert scene.left_behind() == []


@pytest.mark.parametrize("done", [False, True])
async def test_a_send_with_a_file_is_never_repeated(tmp_path: Path, done: bool) -> None:
    async with filing(tmp_path) as scene:
        scene.world.network.faults.drop("agent", f"/_send {scene.chat}", done=done)
        result = await scene.result_of(
            "send", "I want to send", f"approve {scene.chat} 2", chat=scene.chat, file=str(scene.file())
        )
        assert result["status"] == "failed"
        assert "nobody knows whether it was done" in result["error"]
        if done:
            assert await take(scene.bob, scene.group, tmp_path / "bob.pdf") == REPORT
        await scene.bob.say(scene.group, "after")
        await scene.newest_item(lambda shown: shown["text"] == "after")


async def test_a_stop_in_the_middle_interrupts_and_the_next_start_finds_the_download_again(tmp_path: Path) -> None:
    async with filing(tmp_path) as scene:
        item, chat = await scene.offered(), scene.chat
        scene.world.network.files.stall("agent")
        result = await scene.in_the_middle(item, scene.server.end)
        assert (result["status"], result["action"]) == ("interrupted", 2)
        assert await scene.card("interrupted: the server stopped.")
        again = await scene.world.serve()
        async with again.agent() as agent:
            asked: dict[str, Any] = {}

            async def call() -> None:
                asked.update(await agent.call("download", chat=chat, item=item))

            async with trio.open_nursery() as nursery:
                nursery.start_soon(call)
                await scene.card(f"'receive {chat} 3'")
                await scene.tap(f"receive {chat} 3")
                scene.world.network.files.resume("agent")
            assert asked["status"] == "done"
            assert (scene.data / "files" / f"group-{chat[1:]}" / "1.pdf").read_bytes() == REPORT
        await again.end()


async def test_a_download_that_ends_while_no_server_runs_is_there_after_the_approval(tmp_path: Path) -> None:
    async with filing(tmp_path) as scene:
        item, chat = await scene.offered(), scene.chat
        scene.world.network.files.stall("agent")
        await scene.in_the_middle(item, scene.server.end)
        scene.world.network.files.resume("agent")
        await trio.sleep(10)
        again = await scene.world.serve()
        async with again.agent() as agent:
            shown = (await agent.call("history", chat=chat))["messages"]
            assert next(m for m in shown if m["item"] == item)["file"]["state"] in ("received", "receiving")
            with within(DEADLINE):
                while (result := await agent.call("download", chat=chat, item=item, wait=0)).get("status") != "known":
                    await trio.sleep(1)
            assert Path(result["path"]).read_bytes() == REPORT
        await again.end()


async def test_a_stop_while_an_upload_runs_keeps_its_copy_for_the_core(tmp_path: Path) -> None:
    async with filing(tmp_path) as scene:
        scene.world.network.files.stall("agent")
        result = await scene.result_of(
            "send", "I want to send", f"approve {scene.chat} 2", chat=scene.chat, file=str(scene.file())
        )
        assert result["status"] == "done"
        copies = [path for path in scene.left_behind() if path.startswith("files/sent/")]
        assert len(copies) == 1
        await scene.server.end()
        assert [path for path in scene.left_behind() if path.startswith("files/sent/")] == copies


async def test_many_downloads_at_once_come_whole_and_in_their_places(tmp_path: Path) -> None:
    async with filing(tmp_path) as scene:
        contents = {f"{n}.bin": os.urandom(10_000 + n) for n in range(12)}
        items = {name: await scene.offered(scene.file(name, data), name) for name, data in contents.items()}
        results: dict[str, Any] = {}

        async def call(name: str) -> None:
            results[name] = await scene.agent.call("download", chat=scene.chat, item=items[name])

        async with trio.open_nursery() as nursery:
            for name in contents:
                nursery.start_soon(call, name)
                await scene.card(f"`{name}`")
            for number in range(2, 14):
                await scene.tap(f"receive {scene.chat} {number}")
        for name, data in contents.items():
            assert Path(results[name]["path"]).read_bytes() == data
        assert len(scene.left_behind()) == 12


async def test_files_sent_one_after_the_other_arrive_in_order(tmp_path: Path) -> None:
    async with filing(tmp_path) as scene:
        async with trio.open_nursery() as nursery:
            for number in range(2, 6):
                path = scene.file(f"{number}.pdf", REPORT[:-number])
                nursery.start_soon(
                    partial(scene.agent.call, "send", chat=scene.chat, text=f"part {number}", file=str(path))
                )
                await scene.card(f"`part {number}`")
            for number in range(2, 6):
                await scene.tap(f"approve {scene.chat} {number}")
        await newest_file(scene.bob, scene.group, "part 5")
        texts = [text for text in await scene.bob.texts(scene.group) if text.startswith("part")]
        assert texts == [f"part {number}" for number in range(2, 6)]


async def test_a_crash_leaves_the_picture_on_its_card_and_no_copy_of_a_file(tmp_path: Path) -> None:
    async with filing(tmp_path) as scene:
        path = picture(tmp_path)
        async with trio.open_nursery() as nursery:

            async def call() -> None:
                with suppress(MCPError):
                    await scene.agent.call("send", chat=scene.chat, text="trail map", file=str(path))

            nursery.start_soon(call)
            await scene.card("I want to send")
            scene.server.stop.everything.cancel()
            await scene.server.ended.wait()
            nursery.cancel_scope.cancel()
        again = await scene.world.serve()
        text = await scene.card("Cancelled: the server stopped.")
        assert text.endswith(
            f"attaching image `{path}`, {shown_size(path.stat().st_size)}\n{text.rpartition(chr(10))[2]}"
        )
        items = (await scene.alice.api.get_chat(scene.ref, count(20)))["chatItems"]
        content = next(i["content"]["msgContent"] for i in items if i["meta"]["itemText"] == text)
        assert content["type"] == "image"
        assert content["image"].startswith("data:image/jpg;base64,")
        assert scene.left_behind() == []
        await again.end()
