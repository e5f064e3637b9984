"""Flow 13: `download`, over real HTTP and the sandbox, with the bytes compared."""

from __future__ import annotations

import errno
import json
import stat
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio

from simplexmcp.sandbox.relay import OTHER_SERVER
from tests.e2e.filing import REPORT, Filing, filing, give, picture
from tests.e2e.test_flow_04_send import join_trail
from tests.e2e.world import open_world

if TYPE_CHECKING:
    from pathlib import Path


async def download(scene: Filing, item: int, words: str, **more: Any) -> dict[str, Any]:
    """A download, and the owner's word on its card."""
    return await scene.result_of("download", "I want to download a file", words, chat=scene.chat, item=item, **more)


async def test_flow_13_a_file_is_asked_for_received_and_given_as_a_path(tmp_path: Path) -> None:
    async with filing(tmp_path) as scene:
        item = await scene.offered(text="the report")
        chat = scene.chat
        shown = (await scene.shown(item))["file"]
        assert shown == {"name": "report.pdf", "size": len(REPORT), "state": "offered"}
        result = await download(scene, item, f"receive {chat} 2")
        path = scene.data / "files" / f"group-{chat[1:]}" / "1.pdf"
        assert result == {
            "action": 2, "status": "done", "chat": chat, "item": item, "path": str(path), "decided_by": "Alice"
        }  # fmt: skip
        assert path.read_bytes() == REPORT
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert await scene.card("I downloaded") == (
            f"I downloaded a file from Bob in group Trail ({chat}): `report.pdf`, 225 KB\n"
            "Servers: known.\nApproved by Alice."
        )
        assert (await scene.shown(item))["file"] == shown | {"state": "received", "path": str(path)}
        again = await scene.agent.call("download", chat=chat, item=item)
        assert again == {"status": "known", "chat": chat, "item": item, "path": str(path)}
        assert scene.left_behind() == [f"files/group-{chat[1:]}/1.pdf"]


async def test_flow_13_a_file_of_a_contact(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, world.flow() as flow, world.person("Helper", bot=True) as helper:
        address = await helper.make_address()
        chat = (await flow.result_of("connect", "I want to connect", "approve 1", target=address, wait=20))["chat"]
        source = tmp_path / "a.bin"
        source.write_bytes(b"x" * 5000)
        await give(helper, await helper.contact(), source)
        item = (await flow.agent.call("receive", chat=chat, wait=30))["messages"][-1]["item"]
        result = await flow.result_of("download", "from bot Helper", f"receive {chat} 2", chat=chat, item=item)
        assert (tmp_path / "data" / "files" / f"contact-{chat[1:]}" / "1.bin").read_bytes() == b"x" * 5000
        assert result["status"] == "done"


async def test_flow_13_the_senders_upload_is_waited_for_without_a_card(tmp_path: Path) -> None:
    async with filing(tmp_path) as scene:
        scene.world.network.faults.upload_seconds = 20.0
        item = await scene.offered(upload=False)
        said = await scene.agent.call("download", chat=scene.chat, item=item, wait=1)
        assert said["error"] == (
            f"The sender is still uploading the file of item {item} in {scene.chat}; nothing was asked. "
            "Call download again later."
        )
        assert (await scene.agent.call("list"))["actions"] == []
        result = await download(scene, item, f"receive {scene.chat} 2")
        assert result["status"] == "done"
        assert any(
            text.startswith(f"The sender is uploading the file of item {item} in {scene.chat}; waiting until ")
            for text in scene.agent.said
        )


async def test_flow_13_a_long_download_goes_on_and_is_attached_to_again(tmp_path: Path) -> None:
    async with filing(tmp_path) as scene:
        path = scene.file("film.bin", REPORT * 90)
        item = await scene.offered(path)
        scene.world.network.faults.chunk_seconds = 4.0
        running = await download(scene, item, f"receive {scene.chat} 2", wait=1)
        assert running == {
            "action": 2, "status": "performing", "chat": scene.chat, "item": item, "decided_by": "Alice"
        }  # fmt: skip
        assert [a["state"] for a in (await scene.agent.call("list"))["actions"]] == ["performing"]
        done = await scene.agent.call("download", chat=scene.chat, item=item, wait=600)
        assert (done["action"], done["status"]) == (2, "done")
        assert (scene.data / "files" / f"group-{scene.chat[1:]}" / "1.bin").read_bytes() == path.read_bytes()
        percents = [text for text in scene.agent.said if text.startswith(f"Receiving the file of item {item} in ")]
        assert len(set(percents)) > 2


async def test_flow_13_an_approve_on_a_download_is_answered_with_its_commands(tmp_path: Path) -> None:
    async with filing(tmp_path) as scene:
        item, chat = await scene.offered(), scene.chat
        async with trio.open_nursery() as nursery:
            nursery.start_soon(download, scene, item, f"approve {chat} 2")
            assert await scene.card("is a download:") == (
                f"Action 2 is a download: /'receive {chat} 2', /'receive {chat} 2 all', /'forward {chat} 2' "
                f"or /'reject {chat} 2'"
            )
            assert [a["state"] for a in (await scene.agent.call("list"))["actions"]] == ["pending"]
            await scene.tap(f"receive {chat} 2")


async def test_flow_13_a_rejected_file_gets_a_card_again_also_under_a_files_approval(tmp_path: Path) -> None:
    async with filing(tmp_path) as scene:
        first, chat = await scene.offered(), scene.chat
        assert (await download(scene, first, f"reject {chat} 2"))["status"] == "rejected"
        second = await scene.offered(scene.file("b.pdf", b"second"), "another")
        result = await scene.result_of("download", "`b.pdf`", f"receive {chat} 3 all", chat=chat, item=second)
        assert result["status"] == "done"
        assert await scene.card("Files approved for group") == (
            f"Files approved for group Trail ({chat}) by Alice. /'receive {chat} off'"
        )
        again = await scene.result_of("download", f"'receive {chat} 4'", f"receive {chat} 4", chat=chat, item=first)
        assert (again["action"], again["status"]) == (4, "done")


async def test_flow_13_a_rejected_file_gets_a_card_again_after_a_restart_too(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, world.person("Bob") as bob:
        async with world.flow() as flow:
            group, chat = await join_trail(flow, bob)
            scene = Filing(world, flow.server, flow.alice, flow.ref, flow.agent, bob, group, chat)
            first = await scene.offered()
            assert (await download(scene, first, f"reject {chat} 2"))["status"] == "rejected"
            second = await scene.offered(scene.file("b.pdf", b"second"), "another")
            await scene.result_of("download", "`b.pdf`", f"receive {chat} 3 all", chat=chat, item=second)
            await scene.card("Files approved for group")
            third = await scene.offered(scene.file("c.pdf", b"third"), "a third")
        # The group's new name does not make it another one.
        profile = json.dumps({"displayName": "Trails", "fullName": ""})
        await bob.api.link.send(f"/_group_profile {group} {profile}")
        server = await world.serve()
        async with server.agent() as agent:
            result = await agent.call("download", chat=chat, item=third, wait=60)
            assert result["status"] == "done", result  # the approval of files holds
            with trio.move_on_after(30) as waiting:
                await agent.call("download", chat=chat, item=first)
            assert waiting.cancelled_caught
            assert [(a["action"], a["state"]) for a in (await agent.call("list"))["actions"]] == [(5, "pending")]
        await server.end()


async def test_flow_6_files_are_approved_for_a_chat_until_that_is_taken_back(tmp_path: Path) -> None:
    async with filing(tmp_path) as scene:
        first, chat = await scene.offered(), scene.chat
        other = await scene.offered(scene.file("b.pdf", b"b"), "b")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(scene.agent.call, "download", chat=chat, item=other))
            await scene.card("`b.pdf`")
            assert (await scene.result_of("download", "`report.pdf`", f"receive {chat} 3 all", chat=chat, item=first))[
                "status"
            ] == "done"
            actions = (await scene.agent.call("list"))["actions"]
            assert [(a["action"], a["state"]) for a in actions] == [(2, "pending")]
            await scene.tap(f"reject {chat} 2")
        third = await scene.offered(scene.file("c.pdf", b"c"), "c")
        assert (await scene.agent.call("download", chat=chat, item=third))["status"] == "done"
        assert (await scene.card("`c.pdf`")).endswith(f"Files approved for this chat by Alice. /'receive {chat} off'")
        # S33: neither messages nor files to others go under it.
        sent = await scene.result_of("send", "I want to send", f"reject {chat} 5", chat=chat, text="a message")
        assert sent["status"] == "rejected"
        await scene.tap(f"receive {chat} off")
        assert await scene.card("need approval again") == f"Files from group Trail ({chat}) need approval again."
        fourth = await scene.offered(scene.file("d.pdf", b"d"), "d")
        assert (await scene.result_of("download", "`d.pdf`", f"reject {chat} 6", chat=chat, item=fourth))[
            "status"
        ] == "rejected"


async def test_flow_13_unknown_servers_are_named_and_approved_for_one_file_only(tmp_path: Path) -> None:
    async with filing(tmp_path) as scene:
        await scene.bob.api.link.send(f"/xftp {OTHER_SERVER}")
        item, chat = await scene.offered(), scene.chat
        result = await download(scene, item, f"receive {chat} 2")
        assert result["status"] == "done"
        card = await scene.card("I downloaded")
        assert "that would see its IP address: `files.elsewhere.test`" in card
        second = await scene.offered(scene.file("b.pdf", b"second"), "b")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(scene.agent.call, "download", chat=chat, item=second))
            asked = await scene.card("I want to download")
            assert asked.endswith(f"Tap /'receive {chat} 3', /'forward {chat} 3' or /'reject {chat} 3'")
            await scene.tap(f"receive {chat} 3 all")
            await scene.card("approve it alone, without `all`.")
            assert [a["state"] for a in (await scene.agent.call("list"))["actions"]] == ["pending"]
            await scene.tap(f"reject {chat} 3")


async def test_flow_13_unknown_servers_are_refused_in_mode_host(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, world.flow(approve="host") as flow, world.person("Bob") as bob:
        group, link = await bob.make_group("Trail")
        chat = (await flow.agent.call("connect", target=link, wait=30, idle=1))["chat"]
        await bob.api.link.send(f"/xftp {OTHER_SERVER}")
        source = tmp_path / "a.bin"
        source.write_bytes(b"x")
        await give(bob, group, source, "here")
        item = (await flow.agent.call("receive", chat=chat, wait=60))["messages"][-1]["item"]
        result = await flow.agent.call("download", chat=chat, item=item)
        assert "in mode host none is approved" in result["error"]


async def test_flow_13_the_card_of_a_picture_shows_its_preview_and_keeps_it(tmp_path: Path) -> None:
    async with filing(tmp_path) as scene:
        preview = "data:image/jpg;base64,/9j/4AAQSkZJRg=="
        item = await scene.offered(picture(tmp_path), "look", type="image", image=preview)
        assert (await download(scene, item, f"receive {scene.chat} 2"))["status"] == "done"
        text = await scene.card("I downloaded")
        items = [
            i for e in scene.alice.events if e["type"] in ("newChatItems", "chatItemUpdated")
            for i in (e.get("chatItems") or [e.get("chatItem")])
        ]  # fmt: skip
        cards = [i["chatItem"]["content"]["msgContent"] for i in items if "trail.jpg" in str(i["chatItem"]["meta"])]
        assert [c["type"] for c in cards] == ["image", "image"]
        assert {c["image"] for c in cards} == {preview}
        assert cards[-1]["text"] == text


@pytest.mark.parametrize(
    ("name", "kept"), [("../../.bashrc", "1"), ("gpj.\u202eexe", "1.exe"), ("CON", "1"), ("-rf *.sh", "1.sh")]
)
async def test_s36_a_hostile_name_is_shown_escaped_and_kept_under_a_number(
    tmp_path: Path, name: str, kept: str
) -> None:
    async with filing(tmp_path) as scene:
        # The sandbox sends the last part of the path as the name, as a hostile core would send anything.
        source = scene.file(name.replace("/", "\\"))
        item = await scene.offered(source)
        result = await download(scene, item, f"receive {scene.chat} 2")
        assert result["status"] == "done"
        folder = scene.data / "files" / f"group-{scene.chat[1:]}"
        assert result["path"] == str(folder / kept)
        assert [p.name for p in folder.iterdir()] == [kept]
        assert (folder / kept).read_bytes() == REPORT
        assert "\u202e" not in await scene.card("I downloaded")


async def test_flow_13_a_message_that_is_deleted_ends_its_download(tmp_path: Path) -> None:
    async with filing(tmp_path) as scene:
        item = await scene.offered()
        scene.world.network.files.stall("agent")
        result = await scene.in_the_middle(item, lambda: scene.bob.api.delete_items(scene.group, [scene.sent]))
        assert result["status"] == "failed"
        assert result["error"] == f"The message of item {item} in {scene.chat} was deleted."
        assert (await scene.card("failed:")).startswith("I want to download")
        assert scene.left_behind() == []


async def test_flow_13_a_sender_who_cancels_ends_the_download(tmp_path: Path) -> None:
    async with filing(tmp_path) as scene:
        item = await scene.offered()
        scene.world.network.files.stall("agent")
        result = await scene.in_the_middle(item, lambda: scene.bob.api.cancel_file(1))
        assert (result["status"], result["error"]) == ("failed", "The sender cancelled the file.")
        assert scene.left_behind() == []


async def test_flow_13_a_chat_that_is_left_ends_its_downloads(tmp_path: Path) -> None:
    async with filing(tmp_path) as scene:
        item = await scene.offered()
        scene.world.network.files.stall("agent")
        result = await scene.in_the_middle(item, lambda: scene.tap(f"leave {scene.chat}"))
        assert (result["status"], result["error"]) == ("failed", f"The chat {scene.chat} is gone.")
        assert scene.left_behind() == []


async def test_flow_13_a_stalled_download_fails_after_30_minutes_and_is_cancelled(tmp_path: Path) -> None:
    async with filing(tmp_path) as scene:
        item = await scene.offered()
        scene.world.network.files.stall("agent")
        result = await download(scene, item, f"receive {scene.chat} 2", wait=3600)
        assert result["status"] == "failed"
        assert result["error"] == "The download made no progress for 30 minutes and was cancelled."
        assert scene.left_behind() == []
        scene.world.network.files.resume("agent")
        again = await scene.result_of(
            "download", f"'receive {scene.chat} 3'", f"receive {scene.chat} 3", chat=scene.chat, item=item
        )
        assert again["status"] == "done"


async def test_s32_a_full_disk_fails_the_download_and_nothing_is_left(tmp_path: Path) -> None:
    async with filing(tmp_path) as scene:
        scene.world.network.faults.download_errors["agent"] = errno.ENOSPC
        item = await scene.offered()
        result = await download(scene, item, f"receive {scene.chat} 2")
        assert result["status"] == "failed"
        assert "could not be" in result["error"]
        assert scene.left_behind() == []
        assert (await scene.agent.call("list"))["actions"] == []


async def test_what_is_no_file_to_fetch_is_refused_without_a_card(tmp_path: Path) -> None:
    async with filing(tmp_path) as scene:
        chat = scene.chat
        await scene.bob.say(scene.group, "no file")
        plain = await scene.newest_item(lambda shown: shown["text"] == "no file")
        call = scene.agent.call
        assert (await call("download", chat=chat, item=plain))["error"] == f"Item {plain} in {chat} has no file."
        assert "is no message of" in (await call("download", chat=chat, item=999_999))["error"]
        assert "is the chat of your owners" in (await call("download", chat="#1", item=1))["error"]
        assert "is a name" in (await call("download", chat="Trail", item=plain))["error"]
        assert "There is no chat" in (await call("download", chat="#77", item=plain))["error"]
        assert (await call("list"))["actions"] == []


async def test_a_receive_of_another_action_and_of_another_chat_is_refused(tmp_path: Path) -> None:
    async with filing(tmp_path) as scene:
        chat = scene.chat
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(scene.agent.call, "send", chat=chat, text="hello"))
            await scene.card("I want to send")
            await scene.tap(f"receive {chat} 2")
            assert await scene.card("is no download") == "Action 2 is no download; its card shows its commands."
            await scene.tap(f"forward {chat} 2")
            await scene.tap("receive #99 2")
            assert await scene.card("is not for") == "Action 2 is not for chat (#99)."
            await scene.tap(f"receive {chat} 7")
            assert await scene.card("Action 7") == "Action 7 is not pending."
            await scene.tap(f"reject {chat} 2")
        assert scene.left_behind() == []
