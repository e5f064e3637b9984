"""Files of the page: uploads, previews, progress, and that nothing but the network's own files can be read."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
import trio

from simplexmcp.core.api import ChatApi
from simplexmcp.phone import files
from tests.phone.tabs import RefusedError
from tests.phone.world import group, pair, phone, png

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


async def test_a_file_goes_from_one_person_to_another_with_its_progress() -> None:
    content = os.urandom(9_000_000)
    async with phone() as world, world.browser.tab("Ann") as ann, world.browser.tab("Bob") as bob:
        mine, theirs = await pair(ann, bob)
        uploaded = await world.browser.upload("r%C3%A9port.bin", content)
        assert (uploaded["name"], uploaded["size"]) == ("réport.bin", len(content))
        item = (await ann.ask("send", chat=mine, text="for you", upload=uploaded["upload"]))["item"]
        got = await bob.see("for you")
        assert got["file"]["state"] == "offered"
        assert got["file"]["can"] == "receive"
        sent = await ann.push("progress", lambda push: push["item"] == item and 0 < push["progress"] <= 1)
        assert sent["chat"] == mine
        await ann.push("item", lambda push: push["item"]["id"] == item and push["item"]["file"]["state"] == "sent")
        await bob.ask("receive", chat=theirs, item=got["id"])
        await bob.push("progress", lambda push: push["item"] == got["id"])
        done = await bob.push("item", lambda push: push["item"].get("file", {}).get("state") == "received")
        answer = await world.browser.http.get(done["item"]["file"]["url"])
        assert answer.content == content
        assert answer.headers["content-disposition"].endswith("r%C3%A9port.bin")
        with pytest.raises(RefusedError, match="already"):
            await bob.ask("receive", chat=theirs, item=got["id"])


async def test_a_picture_is_sent_with_its_preview_and_a_damaged_one_as_a_file() -> None:
    async with phone() as world, world.browser.tab("Ann") as ann, world.browser.tab("Bob") as bob:
        mine, _ = await pair(ann, bob)
        uploaded = await world.browser.upload("hill.png", png())
        assert uploaded["image"].startswith("data:image/")
        await ann.ask("send", chat=mine, text="", upload=uploaded["upload"])
        got = await bob.push("item", lambda push: "image" in push["item"])
        assert got["item"]["image"] == uploaded["image"]
        assert got["item"]["parts"] == []
        damaged = await world.browser.upload("hill.png", b"no picture")
        assert "image" not in damaged
        await ann.ask("send", chat=mine, text="damaged", upload=damaged["upload"])
        assert "image" not in await bob.see("damaged")


async def test_a_transfer_is_stopped_on_both_sides() -> None:
    async with phone() as world, world.browser.tab("Ann") as ann, world.browser.tab("Bob") as bob:
        mine, theirs = await pair(ann, bob)
        world.network.files.stall("bob")
        uploaded = await world.browser.upload("a.bin", b"x" * 1000)
        item = (await ann.ask("send", chat=mine, text="one", upload=uploaded["upload"]))["item"]
        there = (await bob.see("one"))["id"]
        await ann.push("item", lambda push: push["item"]["id"] == item and push["item"]["file"]["state"] == "sent")
        await bob.ask("receive", chat=theirs, item=there)
        await bob.push("item", lambda push: push["item"].get("file", {}).get("can") == "cancel")
        seen = len(bob.pushed)
        await bob.ask("cancel", chat=theirs, item=there)
        await bob.until(
            lambda: any(p["push"] == "item" and p["item"]["file"]["state"] == "offered" for p in bob.pushed[seen:])
        )
        await ann.ask("cancel", chat=mine, item=item)
        await bob.push("item", lambda push: push["item"].get("file", {}).get("state") == "cancelled")
        with pytest.raises(RefusedError, match="took this file back"):
            await bob.ask("receive", chat=theirs, item=there)


async def test_an_upload_is_taken_once_but_kept_when_its_message_is_refused() -> None:
    async with phone() as world, world.browser.tab("Ann") as ann:
        (ref,) = await group(ann)
        uploaded = (await world.browser.upload("a.txt", b"hello"))["upload"]
        with pytest.raises(RefusedError):
            await ann.ask("send", chat="#99", text="", upload=uploaded)
        await ann.ask("send", chat=ref, text="", upload=uploaded)
        with pytest.raises(RefusedError, match="Choose the file again"):
            await ann.ask("send", chat=ref, text="", upload=uploaded)


async def test_uploads_that_come_at_once_are_bounded() -> None:
    async with phone() as world, trio.open_nursery() as nursery:
        enough = trio.Event()
        folder = world.network.files.place("phone") / "uploads"

        async def slowly() -> AsyncIterator[bytes]:
            yield b"hello"
            await enough.wait()

        for _ in range(8):
            nursery.start_soon(world.browser.upload, "a.txt", slowly())
        while not folder.exists() or len(list(folder.iterdir())) < 8:
            await trio.sleep(0.005)
        with pytest.raises(RefusedError, match="Too many"):
            await world.browser.upload("a.txt", b"hello")
        enough.set()


async def test_of_too_many_uploads_that_nobody_sends_the_oldest_gives_way() -> None:
    async with phone() as world, world.browser.tab("Ann") as ann:
        uploaded = [(await world.browser.upload("a.txt", b"hello"))["upload"] for _ in range(9)]
        (ref,) = await group(ann)
        with pytest.raises(RefusedError, match="Choose the file again"):
            await ann.ask("send", chat=ref, text="", upload=uploaded[0])
        await ann.ask("send", chat=ref, text="", upload=uploaded[1])


async def test_uploads_that_nobody_sends_are_dropped(mock_clock: trio.testing.MockClock) -> None:
    async with phone() as world:
        for _ in range(9):
            await world.browser.upload("a.txt", b"hello")
        folder = world.network.files.place("phone") / "uploads"
        assert len(list(folder.iterdir())) == 8
        mock_clock.jump(601)
        await world.browser.upload("a.txt", b"hello")
        assert len(list(folder.iterdir())) == 1


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("..%2F..%2Fetc%2Fpasswd", "passwd"),
        ("%00%0a", "file"),
        ("", "file"),
        (".bashrc", "bashrc"),
        ("x" * 400, "x" * 255),
    ],
)
async def test_the_name_of_an_upload_is_only_a_name(name: str, stored: str) -> None:
    async with phone() as world:
        assert (await world.browser.upload(name, b"hello"))["name"] == stored
        (path,) = (world.network.files.place("phone") / "uploads").rglob("*/*")
        assert (path.name, path.stat().st_mode & 0o777) == (stored, 0o600)


async def test_an_empty_or_too_large_upload_is_refused_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async with phone() as world:
        monkeypatch.setattr("simplexmcp.phone.server.LARGEST", 1000)
        with pytest.raises(RefusedError, match="empty"):
            await world.browser.upload("a", b"")
        with pytest.raises(RefusedError, match="larger than 1,000 bytes"):
            await world.browser.upload("a", b"x" * 1001)
        assert list((world.network.files.place("phone") / "uploads").iterdir()) == []
    assert files.LARGEST > 1000


async def test_a_file_outside_of_the_network_is_never_given_whatever_the_core_says(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    async with phone() as world, world.client("ann") as link:
        api = ChatApi(link)
        await api.create_user("Ann", "human")
        await api.start()
        async with world.browser.tab("Ann") as ann:
            (ref,) = await group(ann)
            inside = world.network.files.place("link")
            inside.symlink_to(tmp_path / "secret")
            for path in (tmp_path / "secret", inside):
                content = {"type": "file", "text": str(path)}
                await api.send_messages(ref, [{"msgContent": content, "fileSource": {"filePath": str(path)}}])
                item = await ann.see(str(path))
                assert "url" not in item["file"]
                query = {"person": "ann", "chat": ref, "item": item["id"]}
                assert (await world.browser.http.get("/file", params=query)).status_code == 404


@pytest.mark.parametrize(
    "query",
    [
        {}, {"person": "ann"}, {"person": "ann", "chat": "#1"}, {"person": "ann", "chat": "#1", "item": "x"},
        {"person": "ann", "chat": "/etc", "item": "1"}, {"person": "nobody", "chat": "#1", "item": "1"},
        {"person": "ann", "chat": "#1", "item": "9" * 40}, {"person": "ann", "chat": "#1", "item": "1"},
        {"person": "ann", "chat": "#1 count=1", "item": "1"}, {"person": "agent", "chat": "#1", "item": "1"},
    ],
)  # fmt: skip
async def test_a_file_that_is_not_there_is_not_found(query: dict[str, str]) -> None:
    async with phone() as world, world.browser.tab("Ann") as ann:
        await group(ann)
        assert (await world.browser.http.get("/file", params=query)).status_code == 404


async def test_files_are_for_who_has_the_cookie() -> None:
    async with phone() as world, world.browser.tab("Ann") as ann:
        (ref,) = await group(ann)
        uploaded = (await world.browser.upload("a.txt", b"hello"))["upload"]
        await ann.ask("send", chat=ref, text="here", upload=uploaded)
        url = (await ann.see("here"))["file"]["url"]
        assert (await world.browser.http.get(url)).content == b"hello"
        del world.browser.http.headers["cookie"]
        world.browser.http.cookies.clear()
        assert (await world.browser.http.get(url)).status_code == 401
        headers = {"origin": world.browser.origin}
        assert (await world.browser.http.post("/upload?name=a", content=b"x", headers=headers)).status_code == 401
