"""Flow 16: `/leave` and `/delete CHAT files`; flow 7 with files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from tests.e2e.filing import REPORT, Filing, filing, give
from tests.e2e.test_flow_04_send import join_trail
from tests.e2e.world import open_world

if TYPE_CHECKING:
    from pathlib import Path


async def received(scene: Filing, count: int = 2) -> Path:
    """Files that the agent has received; their folder."""
    for number in range(count):
        item = await scene.offered(scene.file(f"{number}.pdf", REPORT))
        action = number + 2
        await scene.result_of(
            "download", f"`{number}.pdf`", f"receive {scene.chat} {action}", chat=scene.chat, item=item
        )
    return scene.data / "files" / f"group-{scene.chat[1:]}"


async def test_flow_16_files_are_kept_after_an_owners_leave_until_they_are_deleted(tmp_path: Path) -> None:
    async with filing(tmp_path) as scene:
        folder, chat = await received(scene), scene.chat
        await scene.tap(f"leave {chat}")
        assert await scene.card("requested by") == f"Left group Trail ({chat}), requested by Alice."
        assert await scene.card("are kept in") == (
            f"Files from group Trail ({chat}) are kept in `{folder}`: 2 files, 450 KB. /'delete {chat} files'"
        )
        texts = await scene.alice.texts(scene.ref)
        assert texts.index(f"Left group Trail ({chat}), requested by Alice.") < next(
            i for i, text in enumerate(texts) if "are kept in" in text
        )
        assert sorted(path.name for path in folder.iterdir()) == ["1.pdf", "2.pdf"]
        await scene.tap(f"delete {chat} files")
        assert await scene.card("Deleted 2") == f"Deleted 2 files from chat ({chat}), 450 KB."
        assert not folder.exists()
        await scene.tap(f"delete {chat} files")
        assert await scene.card("There are no files") == f"There are no files from chat ({chat})."


@pytest.mark.parametrize("mode", ["requests", "host"])
async def test_flow_7_files_are_kept_after_the_agents_leave_in_every_mode(tmp_path: Path, mode: str) -> None:
    async with (
        open_world(tmp_path) as world, world.flow(approve=mode) as flow, world.person("Bob") as bob
    ):  # fmt: skip
        group, link = await bob.make_group("Trail")
        asking = mode == "requests"

        async def act(tool: str, needle: str, words: str, **given: object) -> dict[str, object]:
            if asking:
                return await flow.result_of(tool, needle, words, **given)
            return await flow.agent.call(tool, **given)

        chat = str((await act("connect", "group Trail", "approve 1", target=link, wait=30, idle=1))["chat"])
        source = tmp_path / "a.pdf"
        source.write_bytes(REPORT)
        await give(bob, group, source, "here")
        shown = (await flow.agent.call("receive", chat=chat, wait=60))["messages"]
        item = next(m["item"] for m in shown if "file" in m)
        assert (await act("download", "`a.pdf`", f"receive {chat} 2", chat=chat, item=item))["status"] == "done"
        assert (await act("leave", "I want to leave", f"approve {chat} 3", chat=chat))["status"] == "done"
        kept = await flow.card("are kept in")
        assert kept.endswith(f"group-{chat[1:]}`: 1 file, 225 KB. /'delete {chat} files'")


async def test_flow_7_nothing_is_told_when_there_are_no_files(tmp_path: Path) -> None:
    async with filing(tmp_path) as scene:
        await scene.result_of("leave", "I want to leave", f"approve {scene.chat} 2", chat=scene.chat)
        await scene.card("I left group Trail")
        await scene.tap("help")
        await scene.card("I know")
        assert not any("are kept in" in text for text in await scene.alice.texts(scene.ref))


async def test_flow_16_what_was_forwarded_goes_with_the_chat(tmp_path: Path) -> None:
    async with filing(tmp_path) as scene:
        item, chat = await scene.offered(), scene.chat
        async with trio.open_nursery() as nursery:
            nursery.start_soon(scene.result_of_download, item)
            await scene.card("I want to download")
            await scene.tap(f"forward {chat} 2")
            await scene.posted_file()
            assert any(path.startswith("forwarded/") for path in scene.left_behind())
            await scene.tap(f"leave {chat}")
        assert not (scene.data / "forwarded" / f"group-{chat[1:]}").exists()


async def test_flow_16_deleting_ends_a_running_download(tmp_path: Path) -> None:
    async with filing(tmp_path) as scene:
        item = await scene.offered()
        scene.world.network.files.stall("agent")
        result = await scene.in_the_middle(item, lambda: scene.tap(f"delete {scene.chat} files"))
        assert (result["status"], result["error"]) == ("failed", "Your owner deleted the files of this chat.")
        assert scene.left_behind() == []
        await scene.card("There are no files")
        assert (await scene.shown(item))["file"]["state"] == "offered"


async def test_flow_16_deleting_ends_a_download_that_the_core_goes_on_with_after_a_restart(tmp_path: Path) -> None:
    async with filing(tmp_path) as scene:
        item, chat = await scene.offered(), scene.chat
        scene.world.network.files.stall("agent")
        result = await scene.in_the_middle(item, scene.server.end)
        assert result["status"] == "interrupted"
        again = await scene.world.serve()
        async with again.agent() as agent:
            shown = (await agent.call("history", chat=chat))["messages"]
            assert next(m for m in shown if m["item"] == item)["file"]["state"] == "receiving"
            await scene.tap(f"delete {chat} files")
            await scene.card(f"from chat ({chat})")
            shown = (await agent.call("history", chat=chat))["messages"]
            assert next(m for m in shown if m["item"] == item)["file"]["state"] == "offered"
        assert scene.left_behind() == []
        await again.end()


async def test_flow_16_a_new_chat_with_the_number_does_not_find_the_old_files(tmp_path: Path) -> None:
    async with filing(tmp_path) as scene:
        folder, chat = await received(scene, 1), scene.chat
        await scene.tap(f"leave {chat}")
        await scene.card("are kept in")
        _, link = await scene.bob.make_group("Other")
        result = await scene.result_of("connect", "group Other", "approve 3", target=link, wait=30, idle=1)
        assert result["chat"] == chat
        await scene.agent.call("history", chat=chat)
        assert not folder.exists()
        [aside] = [path for path in folder.parent.iterdir() if path.name != "sent"]
        assert aside.name.startswith(f"{folder.name}-left-")
        assert (aside / "1.pdf").read_bytes() == REPORT
        await scene.tap(f"delete {chat} files")
        assert await scene.card("There are no files") == f"There are no files from chat ({chat})."
        assert (aside / "1.pdf").exists()


async def test_flow_16_old_files_are_set_aside_also_after_a_restart(tmp_path: Path) -> None:
    async with filing(tmp_path) as scene:
        folder, chat = await received(scene, 1), scene.chat
        await scene.tap(f"leave {chat}")
        await scene.card("are kept in")
        await scene.server.end()
        again = await scene.world.serve()
        _, link = await scene.bob.make_group("Other")
        async with again.agent() as agent:
            async with trio.open_nursery() as nursery:

                async def call() -> None:
                    assert (await agent.call("connect", target=link, wait=30, idle=1))["chat"] == chat

                nursery.start_soon(call)
                await scene.card("group Other")
                await scene.tap("approve 3")
            await agent.call("history", chat=chat)
        assert not folder.exists()
        await again.end()


async def test_the_control_chat_has_no_files_to_delete_or_approve(tmp_path: Path) -> None:
    async with filing(tmp_path) as scene:
        for words in ("delete #1 files", "receive #1 off", "leave #1"):
            await scene.tap(words)
        await scene.card("That is this chat")
        await scene.tap("pending")
        await scene.card("No action is pending.")
        texts = await scene.alice.texts(scene.ref)
        assert sum(text.startswith("That is this chat") for text in texts) == 3


async def test_flow_16_a_number_given_again_while_the_server_is_down_does_not_find_the_old_files(
    tmp_path: Path,
) -> None:
    async with open_world(tmp_path) as world, world.person("Bob") as bob:
        async with world.flow() as flow:
            group, chat = await join_trail(flow, bob)
            scene = Filing(world, flow.server, flow.alice, flow.ref, flow.agent, bob, group, chat)
            folder = await received(scene, 1)
            await scene.tap(f"leave {chat}")
            await scene.card("are kept in")
        async with world.person("Agent") as core:
            _, link = await bob.make_group("Other")
            assert await core.join(link) == chat
        server = await world.serve()
        with trio.fail_after(60):
            while folder.exists():
                await trio.sleep(0.5)
        [aside] = [path.name for path in folder.parent.iterdir() if path.name.startswith(folder.name)]
        assert aside.startswith(f"{folder.name}-left-")
        await server.end()
