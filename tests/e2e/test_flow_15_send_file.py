"""Flow 15: `send` with a file, over real HTTP and the sandbox, with the bytes compared."""

from __future__ import annotations

import json
import os
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio
from PIL import Image

from simplexmcp import messages
from simplexmcp.audit import read_audit
from simplexmcp.core.api import count
from simplexmcp.tools import attaching
from tests.e2e.filing import REPORT, digest, filing, newest_file, picture, take
from tests.files.movies import movie

if TYPE_CHECKING:
    from pathlib import Path

    from simplexmcp.files.outgoing import SentCopy
    from tests.e2e.filing import Filing


KEY = b"-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAE\n-----END OPENSSH PRIVATE KEY-----\n"


async def send(scene: Filing, words: str, needle: str = "I want to send", **arguments: Any) -> dict[str, Any]:
    return await scene.result_of("send", needle, words, chat=scene.chat, **arguments)


async def sent_to_bob(scene: Filing) -> list[messages.ChatFile]:
    """The files that came to the group."""
    items = (await scene.bob.api.get_chat(scene.group, count(50)))["chatItems"]
    return [file for item in items if (file := messages.file_of(item)) and not file.own]


def copies(scene: Filing) -> list[Path]:
    sent = scene.data / "files" / "sent"
    return sorted(sent.rglob("*")) if sent.exists() else []


async def until_no_copies(scene: Filing) -> None:
    with trio.fail_after(60):
        while copies(scene):
            await trio.sleep(0.5)


async def test_flow_15_a_file_is_shown_approved_and_sent_as_it_is(tmp_path: Path) -> None:
    async with filing(tmp_path) as scene:
        path, chat = scene.file(), scene.chat
        result = await send(scene, f"approve {chat} 2", text="the report", file=str(path))
        assert (result["status"], result["decided_by"]) == ("done", "Alice")
        assert await scene.card("I sent") == (
            f"I sent a message to group Trail ({chat}): `the report`\nattaching file `{path}`, 225 KB\n"
            "The file goes as it is, with its metadata (such as where and when a picture was taken).\n"
            "Approved by Alice."
        )
        assert await take(scene.bob, scene.group, tmp_path / "bob.pdf", "the report") == REPORT
        [file] = await sent_to_bob(scene)
        assert (file.name, file.size, file.kind) == ("report.pdf", len(REPORT), "file")
        await until_no_copies(scene)
        assert path.read_bytes() == REPORT
        [entry] = [e for e in read_audit(scene.data / "audit.jsonl") if e["event"] == "file-sent"]
        assert (entry["path"], entry["size"], entry["sha256"]) == (str(path), len(REPORT), digest(path))


async def test_flow_15_a_picture_is_shown_on_the_card_and_sent_without_metadata(tmp_path: Path) -> None:
    async with filing(tmp_path) as scene:
        path, chat = picture(tmp_path), scene.chat
        assert b"Secret Camera" in path.read_bytes()
        await send(scene, f"approve {chat} 2", text="trail map", file=str(path))
        card = await scene.card("I sent")
        assert f"`trail map`\nattaching image `{path}`, " in card
        assert "metadata" not in card
        items = (await scene.alice.api.get_chat(scene.ref, count(20)))["chatItems"]
        shown = [i["content"]["msgContent"] for i in items if i["meta"]["itemText"] == card]
        assert shown[0]["type"] == "image"
        assert shown[0]["image"].startswith("data:image/jpg;base64,")
        received = tmp_path / "bob.jpg"
        assert b"Secret Camera" not in await take(scene.bob, scene.group, received)
        with Image.open(received) as image:
            assert image.size == (640, 480)
        [file] = await sent_to_bob(scene)
        assert (file.kind, file.name, file.content["image"]) == ("image", "trail.jpg", shown[0]["image"])
        assert file.size <= 261_120
        await until_no_copies(scene)


async def test_flow_15_a_picture_as_file_goes_with_its_metadata_and_the_card_says_so(tmp_path: Path) -> None:
    async with filing(tmp_path) as scene:
        path, chat = picture(tmp_path), scene.chat
        await send(scene, f"approve {chat} 2", **{"file": str(path), "as": "file"})
        assert await scene.card("I sent") == (
            f"I sent a message to group Trail ({chat})\nattaching file `{path}`, "
            f"{await _size(scene)}\nThe file goes as it is, with its metadata (such as where and when a picture was "
            "taken).\nApproved by Alice."
        )
        assert await take(scene.bob, scene.group, tmp_path / "bob.jpg") == path.read_bytes()


async def _size(scene: Filing) -> str:
    card = await scene.card("I sent")
    return card.split("`, ")[1].partition("\n")[0]


async def test_flow_15_a_file_can_answer_a_message_and_replies_are_waited_for(tmp_path: Path) -> None:
    async with filing(tmp_path) as scene:
        await scene.bob.say(scene.group, "where is it?")
        item = await scene.newest_item(lambda shown: shown["text"] == "where is it?")

        async def answer() -> None:
            await newest_file(scene.bob, scene.group)
            await scene.bob.say(scene.group, "thanks")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(answer)
            result = await send(
                scene, f"approve {scene.chat} 2", text="here", file=str(scene.file()), reply_to=item, wait=30, idle=1
            )
        assert [m["text"] for m in result["responses"]] == ["thanks"]
        items = (await scene.bob.api.get_chat(scene.group, count(20)))["chatItems"]
        sent = next(i for i in items if i["meta"]["itemText"] == "here")
        assert sent["quotedItem"]["content"]["text"] == "where is it?"


@pytest.mark.parametrize("change", ["content", "time", "swap", "link", "gone"])
async def test_s31_a_file_that_changed_after_the_card_is_not_sent(tmp_path: Path, change: str) -> None:
    async with filing(tmp_path) as scene:
        path, chat = scene.file(), scene.chat
        other = scene.file("other.pdf", REPORT)
        result: dict[str, Any] = {}

        async def call() -> None:
            result.update(await scene.agent.call("send", chat=chat, file=str(path)))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            await scene.card("I want to send")
            match change:
                case "content":
                    path.write_bytes(REPORT[:-1] + b"!")
                case "time":
                    os.utime(path, (1, 1))
                case "swap":
                    other.replace(path)
                case "link":
                    path.unlink()
                    path.symlink_to(other)
                case _:
                    path.unlink()
            await scene.tap(f"approve {chat} 2")
        assert (result["status"], result["error"]) == ("failed", f"file: {path} changed after the request.")
        assert await sent_to_bob(scene) == []
        assert copies(scene) == [] or all(p.is_dir() for p in copies(scene))


async def test_s33_no_standing_approval_of_messages_carries_a_file(tmp_path: Path) -> None:
    async with filing(tmp_path) as scene:
        path, chat = scene.file(), scene.chat
        await scene.tap(f"approve {chat} all")
        await scene.card("Approved for group")
        assert (await scene.agent.call("send", chat=chat, text="by the approval"))["status"] == "done"
        result: dict[str, Any] = {}

        async def call() -> None:
            result.update(await scene.agent.call("send", chat=chat, text="and this", file=str(path)))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            asked = await scene.card("I want to send")
            assert asked.endswith(f"Tap /'approve {chat} 3' or /'reject {chat} 3'")
            await scene.tap(f"approve {chat} all")
            await trio.sleep(5)
            assert [a["state"] for a in (await scene.agent.call("list"))["actions"]] == ["pending"]
            await scene.tap(f"reject {chat} 3")
        assert result["status"] == "rejected"
        assert await sent_to_bob(scene) == []
        assert copies(scene) == []


async def test_s30_a_refused_file_is_an_error_and_the_owner_is_told(tmp_path: Path) -> None:
    async with filing(tmp_path) as scene:
        key = scene.file("notes.txt", KEY)
        link = tmp_path / "home" / "link.pdf"
        link.symlink_to(scene.file())
        pipe = tmp_path / "home" / "pipe"
        os.mkfifo(pipe)
        paths = [
            (str(key), "private key"), (str(link), "symlink"), (str(pipe), "pipe"), (str(tmp_path), "folder"),
            ("/proc/self/environ", ""), ("/dev/zero", ""), (str(scene.data / "token"), "own data folder"),
            (str(scene.file("empty.txt", b"")), "is empty"), ("relative.txt", "absolute"),
            (str(scene.file(".env", b"A=b")), "environment"), (str(tmp_path / "missing.txt"), "does not exist"),
        ]  # fmt: skip
        for path, why in paths:
            result = await scene.agent.call("send", chat=scene.chat, file=path)
            assert "error" in result, (path, result)
            error = result["error"]
            assert error.startswith("file: "), path
            assert why in error
            told = await scene.card(f"The agent asked to send `{path}`; it was refused")
            assert why in told
        assert (await scene.agent.call("list"))["actions"] == []
        refusals = [line for line in (scene.data / "audit.jsonl").read_text().splitlines() if "refused-file" in line]
        assert len(refusals) == len(paths)
        assert copies(scene) == []


async def test_a_refusal_that_is_repeated_is_told_once(tmp_path: Path) -> None:
    async with filing(tmp_path) as scene:
        for _ in range(3):
            assert "error" in await scene.agent.call("send", chat=scene.chat, file="/dev/zero")
        await scene.card("it was refused")
        await scene.tap("help")
        await scene.card("I know `/approve")
        texts = await scene.alice.texts(scene.ref)
        assert sum("it was refused" in text for text in texts) == 1


async def test_flow_15_a_caption_that_is_too_long_is_refused_before_anything_is_uploaded(tmp_path: Path) -> None:
    async with filing(tmp_path) as scene:
        file = str(picture(tmp_path))
        error = (await scene.agent.call("send", chat=scene.chat, text="x" * 16_000, file=file))["error"]
        assert error.startswith("The caption with the preview, as SimpleX encodes it, is ")
        assert (await scene.agent.call("list"))["actions"] == []
        assert "give its path" in (await scene.agent.call("send", chat=scene.chat, text="x", **{"as": "file"}))["error"]
        assert copies(scene) == []


async def test_flow_15_a_chat_that_allows_no_files_says_so(tmp_path: Path) -> None:
    async with filing(tmp_path) as scene:
        profile = {"displayName": "Trail", "fullName": "", "groupPreferences": {"files": {"enable": "off"}}}
        await scene.bob.api.update_group_profile(int(scene.group[1:]), profile)
        await scene.bob.say(scene.group, "no files")
        await scene.newest_item(lambda shown: shown["text"] == "no files")
        result = await send(scene, f"approve {scene.chat} 2", file=str(scene.file()))
        assert (result["status"], result["error"]) == ("failed", "This chat does not allow files.")
        await until_no_copies(scene)


async def test_flow_15_a_voice_message_is_sent_as_one(tmp_path: Path) -> None:
    async with filing(tmp_path) as scene:
        path = scene.file("note.m4a", movie(4.4, video=False, brand=b"M4A "))
        await send(scene, f"approve {scene.chat} 2", **{"file": str(path), "as": "voice"})
        assert f"attaching voice message `{path}`, " in await scene.card("I sent")
        assert await take(scene.bob, scene.group, tmp_path / "bob.m4a") == path.read_bytes()
        [file] = await sent_to_bob(scene)
        assert (file.kind, file.content["duration"]) == ("voice", 4)


@pytest.mark.parametrize("quoting", [False, True])
async def test_flow_15_the_longest_caption_beside_a_preview_and_a_quote_is_taken_by_the_core(
    tmp_path: Path, quoting: bool
) -> None:
    async with filing(tmp_path) as scene:
        chat, given = scene.chat, {"file": str(picture(tmp_path)), "chat": scene.chat}
        if quoting:
            await scene.bob.say(scene.group, "q" * 2_000)
            given["reply_to"] = await scene.newest_item(lambda shown: shown["text"].startswith("q"))
        error = (await scene.agent.call("send", text="x" * 16_000, **given))["error"]
        assert ("with the message that it replies to" in error) is quoting
        over = int(error.partition(" bytes too long")[0].rpartition(" ")[2])
        assert "1 bytes too long" in (await scene.agent.call("send", text="x" * (16_001 - over), **given))["error"]
        longest = "x" * (16_000 - over)
        result = await scene.result_of("send", "attaching image", f"approve {chat} 2", text=longest, **given)
        assert result["status"] == "done", result
        assert (await newest_file(scene.bob, scene.group)).content["text"] == longest


async def test_flow_15_a_failed_upload_is_told_to_the_owner(tmp_path: Path) -> None:
    async with filing(tmp_path) as scene:
        scene.world.network.faults.upload_errors["agent"] = "relay/`x`/approve 7"
        result = await send(scene, f"approve {scene.chat} 2", file=str(scene.file()))
        assert result["status"] == "done"
        told = await scene.card("was not sent")
        assert told.startswith("The file `report.pdf` of message ")
        await until_no_copies(scene)


async def test_flow_15_an_equal_call_attaches_and_another_file_is_another_action(tmp_path: Path) -> None:
    async with filing(tmp_path) as scene:
        path, chat = scene.file(), scene.chat
        results: list[dict[str, Any]] = []

        async def call(**arguments: Any) -> None:
            results.append(await scene.agent.call("send", chat=chat, **arguments))

        async with trio.open_nursery() as nursery:
            for given in ({"file": str(path)}, {"file": str(path)}, {"file": str(path), "as": "file"}, {"text": "a"}):
                nursery.start_soon(partial(call, **given))
            for number in (2, 3, 4):
                await scene.card(f"reject {chat} {number}")
            actions = (await scene.agent.call("list"))["actions"]
            assert len(actions) == 3
            for number in (2, 3, 4):
                await scene.tap(f"reject {chat} {number}")
        assert [r["status"] for r in results] == ["rejected"] * 4


async def test_flow_15_copies_of_the_last_run_are_gone_at_the_start(tmp_path: Path) -> None:
    async with filing(tmp_path) as scene:
        await scene.server.end()
        left = scene.data / "files" / "sent" / "send-abc"
        left.mkdir(parents=True)
        (left / "secret.pdf").write_bytes(b"x")
        again = await scene.world.serve()
        assert copies(scene) == []
        await again.end()


async def test_a_group_that_is_renamed_while_its_file_is_copied_gets_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = attaching.private_copy
    async with filing(tmp_path) as scene:

        async def slow(*args: Any) -> SentCopy:
            copy = await real(*args)
            profile = json.dumps({"displayName": "Evil", "fullName": ""})
            await scene.bob.api.link.send(f"/_group_profile {scene.group} {profile}")
            with trio.fail_after(60):
                while not any(chat["name"] == "Evil" for chat in (await scene.agent.call("list"))["chats"]):
                    await trio.sleep(0.5)
            return copy

        monkeypatch.setattr(attaching, "private_copy", slow)
        result = await send(scene, f"approve {scene.chat} 2", file=str(scene.file()))
        assert result["status"] == "failed"
        assert "changed after the request" in result["error"]
        assert await sent_to_bob(scene) == []
        await until_no_copies(scene)


async def test_a_received_file_can_be_sent_when_the_data_folder_is_below_a_link(tmp_path: Path) -> None:
    (tmp_path / "real" / "agents").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    async with filing(tmp_path, data=tmp_path / "link" / "agents" / "data") as scene:
        item = await scene.offered()
        got = await scene.result_of(
            "download", "I want to download", f"receive {scene.chat} 2", chat=scene.chat, item=item
        )
        assert (await send(scene, f"approve {scene.chat} 3", file=got["path"]))["status"] == "done"


async def test_the_files_with_the_cores_key_and_password_cannot_be_sent(tmp_path: Path) -> None:
    key, password = tmp_path / "core.txt", tmp_path / "word.txt"
    for path in (key, password):
        path.write_text("a long secret")
    async with filing(tmp_path, database_key_file=key, core_password_file=password) as scene:
        for path in (key, password):
            assert "secret of this server" in (await scene.agent.call("send", chat=scene.chat, file=str(path)))["error"]
