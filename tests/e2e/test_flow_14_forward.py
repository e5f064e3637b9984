"""Flow 14: `/forward`, the file for the owner's eyes first."""

from __future__ import annotations

import errno
from functools import partial
from typing import TYPE_CHECKING, Any

import trio

from simplexmcp import messages
from simplexmcp.core.api import count
from simplexmcp.sandbox.relay import OTHER_SERVER
from tests.e2e.filing import REPORT, filing, newest_file, take

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.filing import Filing


async def posted(scene: Filing) -> dict[str, Any]:
    """The post that brings the file, as Alice has it."""
    await newest_file(scene.alice, scene.ref)
    items = (await scene.alice.api.get_chat(scene.ref, count(50)))["chatItems"]
    return next(item for item in reversed(items) if messages.file_of(item) is not None)


async def test_flow_14_the_owner_gets_the_file_and_the_agent_only_after_the_approval(tmp_path: Path) -> None:
    async with filing(tmp_path) as scene:
        item, chat = await scene.offered(), scene.chat
        results: list[dict[str, Any]] = []

        async def call() -> None:
            results.append(await scene.agent.call("download", chat=chat, item=item))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            await scene.card("I want to download")
            await scene.tap(f"forward {chat} 2")
            post = await posted(scene)
            assert post["file"]["fileName"] == "report.pdf"
            assert post["quotedItem"]["content"]["text"].startswith("I want to download a file from Bob")
            assert await take(scene.alice, scene.ref, tmp_path / "phone.pdf") == REPORT
            # The agent has nothing of it yet: neither a path nor a file that `send` would take.
            assert [a["state"] for a in (await scene.agent.call("list"))["actions"]] == ["pending"]
            assert (await scene.shown(item))["file"]["state"] == "offered"
            forwarded = scene.data / "forwarded" / f"group-{chat[1:]}" / "1.pdf"
            assert forwarded.read_bytes() == REPORT
            refused = await scene.agent.call("send", chat=chat, file=str(forwarded))
            assert refused["error"].endswith("is in the agent's own data folder.")
            await scene.tap(f"receive {chat} 2")
        path = scene.data / "files" / f"group-{chat[1:]}" / "1.pdf"
        assert results[0]["path"] == str(path)
        assert path.read_bytes() == REPORT
        assert scene.left_behind() == [f"files/group-{chat[1:]}/1.pdf"]


async def test_flow_14_a_picture_is_forwarded_with_its_preview(tmp_path: Path) -> None:
    async with filing(tmp_path) as scene:
        preview = "data:image/jpg;base64,/9j/4AAQSkZJRg=="
        item, chat = await scene.offered(scene.file("a.jpg", b"jpeg"), type="image", image=preview), scene.chat
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(scene.agent.call, "download", chat=chat, item=item))
            await scene.card("I want to download")
            await scene.tap(f"forward {chat} 2")
            content = (await posted(scene))["content"]["msgContent"]
            assert (content["type"], content["image"]) == ("image", preview)
            await scene.tap(f"reject {chat} 2")


async def test_flow_14_a_file_that_does_not_come_is_told_and_the_card_stays_pending(tmp_path: Path) -> None:
    async with filing(tmp_path) as scene:
        item, chat = await scene.offered(), scene.chat
        scene.world.network.faults.download_errors["agent"] = errno.ENOSPC
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(scene.agent.call, "download", chat=chat, item=item))
            await scene.card("I want to download")
            await scene.tap(f"forward {chat} 2")
            assert (await scene.card("was not received")).startswith("Action 2: the file was not received: `")
            assert [a["state"] for a in (await scene.agent.call("list"))["actions"]] == ["pending"]
            await scene.tap(f"reject {chat} 2")
        assert scene.left_behind() == []


async def test_flow_14_forwarding_twice_brings_one_file(tmp_path: Path) -> None:
    async with filing(tmp_path) as scene:
        item, chat = await scene.offered(), scene.chat
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(scene.agent.call, "download", chat=chat, item=item))
            await scene.card("I want to download")
            await scene.tap(f"forward {chat} 2")
            await scene.tap(f"forward {chat} 2")
            await posted(scene)
            await scene.tap(f"reject {chat} 2")
            await scene.tap("help")
            await scene.card("I know `/approve")
        items = (await scene.alice.api.get_chat(scene.ref, count(50)))["chatItems"]
        assert len([item for item in items if messages.file_of(item)]) == 1


async def test_flow_14_a_file_on_unknown_servers_is_forwarded_at_the_owners_word(tmp_path: Path) -> None:
    async with filing(tmp_path) as scene:
        await scene.bob.api.link.send(f"/xftp {OTHER_SERVER}")
        item, chat = await scene.offered(), scene.chat
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(scene.agent.call, "download", chat=chat, item=item))
            await scene.card("would see its IP address")
            await scene.tap(f"forward {chat} 2")
            assert await take(scene.alice, scene.ref, tmp_path / "phone.pdf") == REPORT
            await scene.tap(f"reject {chat} 2")
        assert scene.left_behind() == [f"forwarded/group-{chat[1:]}/1.pdf"]


async def test_flow_14_a_rejected_action_is_forwarded_no_more(tmp_path: Path) -> None:
    async with filing(tmp_path) as scene:
        item, chat = await scene.offered(), scene.chat
        result = await scene.result_of("download", "I want to download", f"reject {chat} 2", chat=chat, item=item)
        assert result["status"] == "rejected"
        await scene.tap(f"forward {chat} 2")
        assert await scene.card("already rejected") == "Action 2 was already rejected by Alice."
        assert scene.left_behind() == []


async def test_flow_14_only_owners_receive_forward_and_delete(tmp_path: Path) -> None:
    async with filing(tmp_path) as scene:
        item, chat = await scene.offered(), scene.chat
        async with scene.world.person("Mallory") as mallory:
            made = await scene.alice.api.create_group_link(int(scene.ref[1:]), "member")
            room = await mallory.join(made["connLinkContact"]["connShortLink"])
            async with trio.open_nursery() as nursery:
                nursery.start_soon(partial(scene.agent.call, "download", chat=chat, item=item))
                await mallory.see(room, "I want to download")
                for words in (
                    f"receive {chat} 2",
                    f"receive {chat} 2 all",
                    f"forward {chat} 2",
                    f"delete {chat} files",
                ):
                    await mallory.say(room, f"/{words}")
                await mallory.say(room, "done")
                await scene.alice.see(scene.ref, "done")
                await scene.tap("help")
                await scene.card("I know")
                texts = await scene.alice.texts(scene.ref)
                assert texts.count("Only owners approve actions.") == 4
                assert [a["state"] for a in (await scene.agent.call("list"))["actions"]] == ["pending"]
                assert scene.left_behind() == []
                await scene.tap(f"reject {chat} 2")
