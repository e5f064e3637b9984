"""Files that the agent wants to send: what is refused, and that what is sent is what was shown (cases S30 to S36)."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import shutil
import socket
import stat
import tracemalloc
from contextlib import contextmanager
from pathlib import Path

import pytest
import trio
from PIL import Image

from simplexmcp.errors import Refused
from simplexmcp.files import media, opening, outgoing
from simplexmcp.files.folders import Folders
from simplexmcp.files.opening import read_through
from simplexmcp.files.outgoing import (
    LARGEST,
    FileOffer,
    composed_file,
    content_of,
    copy_to_post,
    open_offer,
    private_copy,
)
from simplexmcp.files.paths import Rules
from tests.files.movies import movie

KEY = b"-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gt\n"


class Desk:
    """A home folder, an agent's data folder, and what can be sent from them."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.data = root / "agents" / "my-agent"
        self.home.mkdir()
        self.data.mkdir(parents=True)
        self.folders = Folders(self.data)
        self.rules = Rules(self.data, self.home)

    def file(self, name: str, data: bytes = b"some text\n") -> Path:
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    async def offer(self, path: Path | str, as_: outgoing.As = "auto") -> FileOffer:
        return await open_offer(str(path), as_, self.rules)

    async def refused(self, path: Path | str, as_: outgoing.As = "auto") -> str:
        with pytest.raises(Refused) as caught:
            await self.offer(path, as_)
        text = str(caught.value)
        assert "\n" not in text
        assert text.startswith("file: ")
        assert text.endswith(".")
        return text

    def copies(self) -> list[str]:
        return sorted(str(path.relative_to(self.data)) for path in self.data.rglob("*") if path.is_file())


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path.resolve())


@contextmanager
def on_read(monkeypatch: pytest.MonkeyPatch, change):
    """Lets something happen when a file was opened, at its first read."""
    real = os.pread
    state = {"done": False}

    def pread(fd: int, size: int, at: int) -> bytes:
        if not state["done"]:
            state["done"] = True
            change()
        return real(fd, size, at)

    with monkeypatch.context() as patch:
        patch.setattr(opening.os, "pread", pread)
        yield
    assert state["done"]


def photo(width: int = 300, height: int = 200) -> bytes:
    exif = Image.Exif()
    exif[0x010E] = "taken at home"
    out = io.BytesIO()
    Image.effect_noise((width, height), 60).convert("RGB").save(out, "JPEG", exif=exif)
    return out.getvalue()


# Usual files


async def test_a_text_is_offered_with_its_size_and_hash(desk: Desk):
    path = desk.file("notes.txt", b"hello\n")
    offer = await desk.offer(path)
    assert (offer.path, offer.name, offer.size, offer.kind) == (str(path), "notes.txt", 6, "file")
    assert offer.sha256 == hashlib.sha256(b"hello\n").hexdigest()
    assert not offer.metadata
    assert content_of(offer, "look") == {"type": "file", "text": "look"}


@pytest.mark.parametrize("mask", [0, 0o277])
async def test_the_copy_has_exactly_the_bytes_that_were_offered_and_is_private(desk: Desk, mask: int):
    data = os.urandom(3 * 1024 * 1024 + 17)
    offer = await desk.offer(desk.file("a.bin", data))
    before = os.umask(mask)
    try:
        copy = await private_copy(offer, desk.folders)
    finally:
        os.umask(before)
    assert copy.path.read_bytes() == data
    assert copy.size == len(data)
    assert copy.path.name == "a.bin"
    assert copy.path.parent.parent == desk.data / "files" / "sent"
    assert stat.S_IMODE(copy.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(copy.path.parent.stat().st_mode) == 0o700
    assert composed_file(offer, copy, "x")["fileSource"] == {"filePath": str(copy.path)}


async def test_the_same_file_gives_the_same_binding_and_a_changed_one_another(desk: Desk):
    path = desk.file("a.txt", b"one")
    first, second = await desk.offer(path), await desk.offer(path)
    path.write_bytes(b"two")
    assert first.binding == second.binding != (await desk.offer(path)).binding
    hash(first.binding)


async def test_a_large_file_is_read_and_copied_with_flat_memory(desk: Desk):
    path = desk.file("large.bin", b"")
    with path.open("wb") as file:
        for _ in range(64):
            file.write(os.urandom(1 << 20))
    tracemalloc.start()
    try:
        copy = await private_copy(await desk.offer(path), desk.folders)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert copy.size == 64 << 20
    assert peak < 8 << 20


async def test_a_script_gets_no_executable_bit_in_its_copy(desk: Desk):
    path = desk.file("run.sh", b"#!/bin/sh\n")
    path.chmod(0o755)
    copy = await private_copy(await desk.offer(path), desk.folders)
    assert stat.S_IMODE(copy.path.stat().st_mode) == 0o600


async def test_a_name_that_receivers_could_not_store_is_made_safe(desk: Desk):
    offer = await desk.offer(desk.file("-\u202egpj.exe:x. "))
    assert offer.name == "gpj.exe_x"
    assert (await private_copy(offer, desk.folders)).path.name == "gpj.exe_x"


async def test_a_received_file_can_be_sent_on(desk: Desk):
    path = desk.folders.target("#15", 7, "report.pdf")
    path.write_bytes(b"%PDF-1.7 x")
    assert (await desk.offer(path)).name == "7.pdf"


# Paths that are refused


@pytest.mark.parametrize("path", ["", "notes.txt", "~/notes.txt", "/a\0b", "/tmp/../etc/hostname", "/tmp/./x", "/tmp/"])
async def test_what_is_no_real_absolute_path_is_refused(desk: Desk, path: str):
    await desk.refused(path)


@pytest.mark.parametrize(
    "path", ["/proc/self/environ", "/proc/self/fd/0", "/dev/zero", "/dev/stdin", "/sys/kernel/notes"]
)
async def test_a_file_of_the_system_is_refused(desk: Desk, path: str):
    assert "system" in await desk.refused(path)


async def test_a_file_that_does_not_exist_is_refused(desk: Desk):
    assert "does not exist" in await desk.refused(desk.home / "none.txt")
    assert "does not exist" in await desk.refused(desk.file("notes.txt") / "below")
    assert "can't be read" in await desk.refused(desk.home / ("n" * 300))


async def test_a_link_is_refused_as_the_last_part(desk: Desk):
    target = desk.file("notes.txt")
    (desk.home / "link.txt").symlink_to(target)
    assert "is a symlink; give the real path" in await desk.refused(desk.home / "link.txt")


async def test_a_link_is_refused_as_a_middle_part_and_named(desk: Desk):
    desk.file("real/deep/notes.txt")
    (desk.home / "link").symlink_to(desk.home / "real")
    text = await desk.refused(desk.home / "link" / "deep" / "notes.txt")
    assert f"leads through the symlink {desk.home}/link; give the real path" in text


async def test_a_link_to_a_secret_is_refused(desk: Desk):
    desk.file(".ssh/id_ed25519", KEY)
    (desk.home / "photo.jpg").symlink_to(desk.home / ".ssh" / "id_ed25519")
    (desk.home / "photos").symlink_to(desk.file(".ssh/config").parent)
    assert "symlink" in await desk.refused(desk.home / "photo.jpg")
    assert "symlink" in await desk.refused(desk.home / "photos" / "config")


async def test_a_folder_is_refused(desk: Desk):
    assert "is a folder" in await desk.refused(desk.home)


async def test_a_pipe_is_refused_without_waiting_for_a_writer(desk: Desk):
    os.mkfifo(desk.home / "pipe")
    with trio.fail_after(10):
        assert "is a pipe" in await desk.refused(desk.home / "pipe")


async def test_a_socket_is_refused(desk: Desk, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(desk.home)  # a socket's path is short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("s")
        assert "is a socket" in await desk.refused(desk.home / "s")


async def test_a_device_is_refused_wherever_it_is(desk: Desk):
    try:
        os.mknod(desk.home / "zero", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    except (PermissionError, OSError):
        pytest.skip("needs the right to make a device")
    assert "is a device" in await desk.refused(desk.home / "zero")


async def test_a_file_that_may_not_be_read_is_refused(desk: Desk):
    path = desk.file("private.txt")
    path.chmod(0)
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        assert "can't be read: Permission denied" in await desk.refused(path)
    finally:
        os.seteuid(user)


@pytest.mark.parametrize(
    "name", ["token", "simplex_chat.db", "tmp/x", "forwarded/group-15/7.pdf", "files/sent/send-a/x"]
)
async def test_a_file_of_the_data_folder_is_refused(desk: Desk, name: str):
    (desk.data / name).parent.mkdir(parents=True, exist_ok=True)
    (desk.data / name).write_bytes(b"x")
    await desk.refused(desk.data / name)


@pytest.mark.parametrize(
    "name", [".ssh/config", ".config/gh/hosts.yml", ".mozilla/firefox/x/prefs.js", "p/.env", "x.pem", ".bash_history"]
)
async def test_a_file_of_secrets_is_refused(desk: Desk, name: str):
    await desk.refused(desk.file(name))


async def test_a_second_name_of_a_folder_of_secrets_is_refused_by_what_it_is(desk: Desk):
    # As a second mount, or a disk that ignores case, would show it: another path, the same folder.
    path = desk.file("harmless/config")
    rules = Rules(desk.data, desk.home)
    rules.__dict__["roots"] = (desk.home / "harmless",)
    with pytest.raises(Refused, match="secrets, under another name"):
        await open_offer(str(path), "auto", rules)


@pytest.mark.parametrize(("name", "why"), [("token", "own data"), ("files/sent/send-a/x", "being sent")])
async def test_a_second_name_of_the_data_folder_is_refused_by_what_it_is(
    desk: Desk, tmp_path: Path, name: str, why: str
):
    (desk.data / name).parent.mkdir(parents=True, exist_ok=True)
    (desk.data / name).write_bytes(b"x")
    (tmp_path / "alias").symlink_to(desk.data)
    rules = Rules(tmp_path / "alias", desk.home)  # the same folder by identity, not by name
    with pytest.raises(Refused, match=why):
        await open_offer(str(desk.data / name), "auto", rules)


async def test_received_files_can_be_sent_when_the_data_folder_has_two_names(desk: Desk, tmp_path: Path):
    path = desk.folders.target("#15", 7, "a.txt")
    path.write_bytes(b"x")
    (tmp_path / "alias").symlink_to(desk.data)
    assert (await open_offer(str(path), "auto", Rules(tmp_path / "alias", desk.home))).size == 1


async def test_a_hard_link_is_refused_as_its_other_name_may_be_a_secret(desk: Desk):
    desk.file(".ssh/known_hosts")
    os.link(desk.home / ".ssh" / "known_hosts", desk.home / "list.txt")
    assert "hard links" in await desk.refused(desk.home / "list.txt")


async def test_a_hostile_path_is_shown_in_one_printable_line(desk: Desk):
    text = await desk.refused(desk.home / "a\n\u202eb\x1b[2J")
    assert "<U+000A><U+202E>b<U+001B>" in text
    assert len(await desk.refused("/" + "a" * 20_000)) < 500


async def test_a_path_that_is_swapped_for_a_link_while_it_is_opened_is_not_followed(desk: Desk, monkeypatch):
    secret = desk.file(".ssh/id", b"secret")
    path = desk.file("notes.txt")
    real, real_open = os.lstat, os.open
    opens = []

    def open_(name, *flags, **options):
        fd = real_open(name, *flags, **options)
        opens.append(name)
        return fd

    def lstat(name, **options):
        found = real(name, **options)
        if name == "notes.txt":
            path.unlink()
            path.symlink_to(secret)
        return found

    monkeypatch.setattr(opening.os, "lstat", lstat)
    monkeypatch.setattr(opening.os, "open", open_)
    assert "changed while it was opened" in await desk.refused(path)
    assert "home" in opens
    assert "notes.txt" not in opens


async def test_a_folder_that_is_swapped_for_a_link_while_it_is_opened_is_not_followed(desk: Desk, monkeypatch):
    path = desk.file("folder/notes.txt")
    desk.file("elsewhere/notes.txt", b"a secret")
    real = os.lstat

    def lstat(name, **options):
        found = real(name, **options)
        if name == "folder":
            path.parent.rename(desk.home / "moved")
            path.parent.symlink_to(desk.home / "elsewhere")
        return found

    monkeypatch.setattr(opening.os, "lstat", lstat)
    assert "no folder" in await desk.refused(path)


async def test_a_path_that_is_swapped_for_another_file_while_it_is_opened_is_refused(desk: Desk, monkeypatch):
    path, other = desk.file("notes.txt"), desk.file("other.txt")
    real = os.lstat

    def lstat(name, **options):
        found = real(name, **options)
        if name == "notes.txt":
            other.replace(path)
        return found

    monkeypatch.setattr(opening.os, "lstat", lstat)
    assert "changed while it was opened" in await desk.refused(path)


# Content that is refused


async def test_an_empty_file_is_refused(desk: Desk):
    assert "is empty" in await desk.refused(desk.file("empty.txt", b""))


@pytest.mark.parametrize("name", ["harmless.txt", "photo.jpg", "noname"])
async def test_a_private_key_is_refused_under_any_name(desk: Desk, name: str):
    assert "holds a private key" in await desk.refused(desk.file(name, KEY))


async def test_a_private_key_is_found_at_the_end_of_a_large_file(desk: Desk):
    assert "holds a private key" in await desk.refused(desk.file("log.txt", b"a line\n" * 500_000 + KEY))


async def test_a_file_over_one_gigabyte_is_refused_before_it_is_read(desk: Desk, monkeypatch):
    path = desk.file("huge.bin")
    os.truncate(path, 1 << 40)
    monkeypatch.setattr(outgoing, "read_through", lambda *_: pytest.fail("it was read"))
    assert "at most 1 GB" in await desk.refused(path)
    os.truncate(path, LARGEST + 1)
    assert "at most 1 GB" in await desk.refused(path)


async def test_a_sparse_file_is_refused_before_it_is_read(desk: Desk, monkeypatch):
    path = desk.file("sparse.bin")
    os.truncate(path, 500 << 20)
    monkeypatch.setattr(outgoing, "read_through", lambda *_: pytest.fail("it was read"))
    assert "sparse" in await desk.refused(path)


async def test_a_file_that_grows_while_it_is_read_is_refused_and_read_to_its_first_size_only(desk: Desk):
    path = desk.file("log.txt", b"x" * 5000)
    got = bytearray()

    def sink(chunk: bytes) -> None:
        got.extend(chunk)
        with path.open("ab") as file:
            file.write(b"y" * 100_000)

    fd = os.open(path, os.O_RDONLY)
    assert await trio.to_thread.run_sync(read_through, fd, 5000, sink) is None
    os.close(fd)
    assert bytes(got) == b"x" * 5000


@pytest.mark.parametrize("size", [0, 10, 20_000])
async def test_a_file_that_is_rewritten_while_it_is_read_is_refused(desk: Desk, monkeypatch, size: int):
    path = desk.file("notes.txt", b"x" * 5000)
    with on_read(monkeypatch, lambda: path.write_bytes(b"y" * size)):
        assert "changed while it was read" in await desk.refused(path)


async def test_a_file_that_is_touched_while_it_is_read_is_refused(desk: Desk, monkeypatch):
    path = desk.file("notes.txt", b"x" * 5000)
    with on_read(monkeypatch, lambda: path.chmod(0o640)):
        assert "changed while it was read" in await desk.refused(path)


async def test_a_disk_that_fails_while_reading_is_told(desk: Desk, monkeypatch):
    def broken(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(opening.os, "pread", broken)
    assert "can't be read: Input/output error" in await desk.refused(desk.file("notes.txt"))


async def test_reading_ends_when_the_call_is_cancelled(desk: Desk):
    path = desk.file("large.bin", b"x" * (8 << 20))
    chunks = []
    with trio.CancelScope() as scope:

        def sink(chunk: bytes) -> None:
            chunks.append(len(chunk))
            trio.from_thread.run_sync(scope.cancel)

        fd = os.open(path, os.O_RDONLY)
        await trio.to_thread.run_sync(read_through, fd, 8 << 20, sink)
    os.close(fd)
    assert scope.cancelled_caught
    assert len(chunks) == 1


# Between the card and the perform


def replaced(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(path.read_bytes())
    other.replace(path)


def linked(path: Path) -> None:
    moved = path.rename(path.with_name("moved"))
    path.symlink_to(moved)


def reached_by_a_link(path: Path) -> None:
    moved = path.parent.rename(path.parent.with_name("moved"))
    path.parent.symlink_to(moved)


def same_size_and_times(path: Path) -> None:
    before = path.stat()
    path.write_bytes(b"X" * before.st_size)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


CHANGES = {
    "grown": lambda path: path.write_bytes(path.read_bytes() + b"more"),
    "shrunk": lambda path: os.truncate(path, 3),
    "same size and times": same_size_and_times,
    "replaced by an equal one": replaced,
    "replaced by a link": linked,
    "reached by a link": reached_by_a_link,
    "touched": lambda path: path.chmod(0o640),
    "deleted": lambda path: path.unlink(),
    "replaced by a folder": lambda path: (path.unlink(), path.mkdir()),
    "replaced by a pipe": lambda path: (path.unlink(), os.mkfifo(path)),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_a_file_that_changed_after_the_request_is_not_sent(desk: Desk, change: str):
    path = desk.file("folder/notes.txt", b"some notes")
    offer = await desk.offer(path)
    CHANGES[change](path)
    with pytest.raises(Refused) as caught:
        await private_copy(offer, desk.folders)
    assert str(caught.value) == f"file: {path} changed after the request."
    assert desk.copies() == []


async def test_a_file_with_other_bytes_and_the_same_identity_is_not_sent(desk: Desk):
    # What a write through a mapping of the memory can do: the change time comes later.
    from dataclasses import replace

    path = desk.file("notes.txt", b"some notes")
    offer = await desk.offer(path)
    path.write_bytes(b"evil notes")
    changed = replace(offer, identity=(await desk.offer(path)).identity)
    with pytest.raises(Refused, match="changed after the request"):
        await private_copy(changed, desk.folders)
    assert desk.copies() == []


async def test_a_file_that_changed_is_not_even_copied(desk: Desk, monkeypatch):
    path = desk.file("notes.txt", b"x" * 5000)
    offer = await desk.offer(path)
    path.write_bytes(b"y" * 5000)
    monkeypatch.setattr(outgoing, "read_through", lambda *_: pytest.fail("it was read"))
    with pytest.raises(Refused, match="changed after the request"):
        await private_copy(offer, desk.folders)


@pytest.mark.parametrize("change", [lambda path: path.write_bytes(b"y" * 90_000), lambda path: path.chmod(0o640)])
async def test_a_file_that_changes_while_it_is_copied_is_not_sent(desk: Desk, monkeypatch, change):
    path = desk.file("notes.txt", b"x" * 5000)
    offer = await desk.offer(path)
    with (
        on_read(monkeypatch, lambda: change(path)),
        pytest.raises(Refused, match="changed after the request"),
    ):
        await private_copy(offer, desk.folders)
    assert desk.copies() == []


async def test_a_change_after_the_copy_changes_nothing(desk: Desk):
    path = desk.file("notes.txt", b"approved")
    copy = await private_copy(await desk.offer(path), desk.folders)
    path.write_bytes(b"something else")
    assert copy.path.read_bytes() == b"approved"


async def test_a_full_disk_is_told_and_leaves_nothing(desk: Desk, monkeypatch):
    offer = await desk.offer(desk.file("large.bin", b"x" * (3 << 20)))
    real = os.write
    written = []

    def full(fd: int, data: memoryview) -> int:
        if written:
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(len(data))
        return real(fd, data)

    monkeypatch.setattr(outgoing.os, "write", full)
    with pytest.raises(Refused, match="no room"):
        await private_copy(offer, desk.folders)
    assert written
    assert desk.copies() == []
    assert list(desk.folders.sent.iterdir()) == []


async def test_a_disk_that_takes_no_folder_is_told(desk: Desk, monkeypatch):
    offer = await desk.offer(desk.file("notes.txt"))
    (desk.data / "files").write_bytes(b"in the way")
    with pytest.raises(Refused, match="no copy of it can be made"):
        await private_copy(offer, desk.folders)


async def test_a_copy_that_is_cancelled_leaves_nothing(desk: Desk, monkeypatch):
    offer = await desk.offer(desk.file("large.bin", b"x" * (8 << 20)))
    real = outgoing._write
    with trio.CancelScope() as scope:

        def write(fd: int, data: bytes) -> None:
            real(fd, data)
            trio.from_thread.run_sync(scope.cancel)

        monkeypatch.setattr(outgoing, "_write", write)
        await private_copy(offer, desk.folders)
    assert scope.cancelled_caught
    assert list(desk.folders.sent.iterdir()) == []


async def test_open_files_are_closed_whatever_happens(desk: Desk):
    def count() -> int:
        return len(list(Path("/dev/fd").iterdir()))

    path = desk.file("notes.txt")
    offer = await desk.offer(path)
    os.link(path, desk.home / "second")
    await desk.offer(desk.file("photo.jpg", photo()))  # what trio keeps open from the first process on
    before = count()
    await desk.offer(desk.home / "photo.jpg")
    await desk.refused(path)
    await desk.refused(desk.file("photo.jpg", b"\xff\xd8\xff"))
    await desk.refused(desk.file("empty", b""))
    with pytest.raises(Refused):
        await private_copy(offer, desk.folders)
    (desk.home / "second").unlink()
    await private_copy(await desk.offer(path), desk.folders)
    assert count() == before


# Kinds


async def test_a_photo_is_sent_as_a_picture_without_its_metadata(desk: Desk):
    data = photo()
    offer = await desk.offer(desk.file("trail.jpg", data))
    copy = await private_copy(offer, desk.folders)
    sent = copy.path.read_bytes()
    assert (offer.kind, offer.rewritten, offer.metadata) == ("image", True, False)
    assert b"taken at home" in data
    assert b"taken at home" not in sent
    assert Image.open(io.BytesIO(sent)).size == (300, 200)
    assert copy.size == len(sent) <= media.PICTURE_BYTES
    assert desk.copies() == [str(copy.path.relative_to(desk.data))]
    content = composed_file(offer, copy, "map")["msgContent"]
    assert (content["type"], content["text"]) == ("image", "map")
    assert content["image"].startswith("data:image/jpg;base64,")


async def test_a_photo_that_gets_smaller_leaves_no_rest_of_the_original(desk: Desk):
    data = photo(1500, 1000)
    copy = await private_copy(await desk.offer(desk.file("trail.jpg", data)), desk.folders)
    sent = copy.path.read_bytes()
    assert len(sent) < len(data)
    assert sent.endswith(b"\xff\xd9")


async def test_a_photo_as_file_is_sent_as_it_is_and_the_card_can_say_so(desk: Desk):
    data = photo()
    offer = await desk.offer(desk.file("trail.jpg", data), "file")
    copy = await private_copy(offer, desk.folders)
    assert (offer.kind, offer.metadata, offer.rewritten, offer.preview) == ("file", True, False, "")
    assert copy.path.read_bytes() == data


async def test_a_picture_is_named_after_what_it_is_sent_as(desk: Desk):
    out = io.BytesIO()
    Image.new("RGB", (20, 20)).save(out, "PNG")
    assert (await desk.offer(desk.file("screen.png", out.getvalue()))).name == "screen.jpg"
    assert (await desk.offer(desk.file("screen.txt", photo()))).name == "screen.jpg"
    assert (await desk.offer(desk.file("Screen.JPEG", photo()))).name == "Screen.JPEG"
    assert (await desk.offer(desk.file("n" * 250, photo()))).name.endswith("nn.jpg")


@pytest.mark.parametrize(("kind", "mime"), [("GIF", "gif"), ("WEBP", "webp")])
async def test_a_gif_or_webp_is_sent_as_it_is_with_the_fixed_preview(desk: Desk, kind: str, mime: str):
    out = io.BytesIO()
    Image.new("RGB", (20, 20)).save(out, kind)
    offer = await desk.offer(desk.file(f"a.{mime}", out.getvalue()))
    assert (offer.kind, offer.preview, offer.metadata) == ("image", media.FIXED_PREVIEW, True)
    assert (await private_copy(offer, desk.folders)).path.read_bytes() == out.getvalue()


@pytest.mark.parametrize("as_", ["auto", "image"])
async def test_a_picture_that_can_not_be_shown_is_refused_with_a_way_out(desk: Desk, as_: outgoing.As):
    path = desk.file("a.jpg", b"\xff\xd8\xff\xe0 not a picture")
    assert (await desk.refused(path, as_)).endswith("send it as file.")
    assert (await desk.offer(path, "file")).kind == "file"


async def test_a_picture_that_breaks_at_the_perform_is_not_sent(desk: Desk, monkeypatch):
    offer = await desk.offer(desk.file("trail.jpg", photo()))

    async def broken(_fd: int) -> bytes:
        raise media.Unfit("takes too long")

    monkeypatch.setattr(media, "rewritten", broken)
    with pytest.raises(Refused, match="can't be sent as a picture: it takes too long"):
        await private_copy(offer, desk.folders)
    assert desk.copies() == []


@pytest.mark.parametrize(
    ("as_", "data"),
    [
        ("image", b"some text"),
        ("image", movie()),
        ("image", b"\0\0\0\x18ftypheic"),
        ("video", b"some text"),
        ("video", photo(20, 20)),
        ("video", b"#EXTM3U\nfile:///etc/passwd\n"),
        ("voice", b"some text"),
        ("voice", movie()),
        ("voice", movie(video=False, audio=b"Opus")),
        ("voice", movie(0, video=False)),
        ("voice", movie(301, video=False)),
        ("voice", b"OggS"),
    ],
)
async def test_what_is_not_what_it_is_sent_as_is_refused_with_a_way_out(desk: Desk, as_: outgoing.As, data: bytes):
    assert (await desk.refused(desk.file("a.jpg", data), as_)).endswith("send it as file.")


async def test_a_voice_message_has_its_length_in_whole_seconds(desk: Desk):
    offer = await desk.offer(desk.file("note.m4a", movie(4.4, video=False, brand=b"M4A ")), "voice")
    assert (offer.kind, offer.duration, offer.metadata) == ("voice", 4, True)
    assert content_of(offer, "") == {"type": "voice", "text": "", "duration": 4}
    short = await desk.offer(desk.file("short.m4a", movie(0.2, video=False, brand=b"M4A ")), "voice")
    assert short.duration == 1


async def test_a_voice_file_is_a_file_when_it_is_not_asked_for_as_voice(desk: Desk):
    assert (await desk.offer(desk.file("note.m4a", movie(4, video=False, brand=b"M4A ")))).kind == "file"


@pytest.mark.parametrize("as_", ["auto", "video"])
async def test_a_video_without_ffmpeg_is_a_plain_file(desk: Desk, monkeypatch, as_: outgoing.As):
    monkeypatch.setattr(media.shutil, "which", lambda _: None)
    offer = await desk.offer(desk.file("film.mp4", movie()), as_)
    assert (offer.kind, offer.preview, offer.metadata) == ("file", "", True)


async def test_a_video_has_a_preview_and_its_length(desk: Desk, monkeypatch):
    async def film(_fd: int) -> media.Film:
        return media.Film(media.FIXED_PREVIEW, 12)

    monkeypatch.setattr(media, "film", film)
    offer = await desk.offer(desk.file("film.mp4", movie()))
    assert content_of(offer, "look") == {
        "type": "video",
        "text": "look",
        "image": media.FIXED_PREVIEW,
        "duration": 12,
    }


async def test_ffmpeg_never_sees_what_has_no_pictures_in_it(desk: Desk, monkeypatch):
    monkeypatch.setattr(media, "film", lambda _: pytest.fail("it was asked"))
    assert (await desk.offer(desk.file("film.mp4", movie(video=False)))).kind == "file"
    assert (await desk.offer(desk.file("cut.mp4", movie()[:100]))).kind == "file"


# The post of a forwarded file


async def test_a_forwarded_file_is_copied_under_its_senders_name_made_safe(desk: Desk):
    path = desk.folders.target("#15", 7, "x.pdf", "forwarded")
    path.write_bytes(b"%PDF")
    copy = await copy_to_post(path, "../../.Report\u202e.pdf", desk.folders)
    assert copy.path.name == "Report.pdf"
    assert copy.path.read_bytes() == b"%PDF"
    assert copy.size == 4


async def test_a_forwarded_file_that_is_gone_or_a_link_is_not_copied(desk: Desk):
    path = desk.folders.target("#15", 7, "x.pdf", "forwarded")
    with pytest.raises(Refused, match="no copy of it can be made"):
        await copy_to_post(path, "x.pdf", desk.folders)
    path.symlink_to(desk.file("secret.txt"))
    with pytest.raises(Refused, match="no copy of it can be made"):
        await copy_to_post(path, "x.pdf", desk.folders)
    assert list(desk.folders.sent.iterdir()) == []


@pytest.mark.skipif(shutil.which("mount") is None or os.geteuid() != 0, reason="needs the right to mount")
async def test_a_disk_that_is_really_full_leaves_nothing(desk: Desk):
    import subprocess

    offer = await desk.offer(desk.file("large.bin", os.urandom(3 << 20)))
    small = desk.data / "files"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", small], capture_output=True).returncode:
        pytest.skip("needs the right to mount")
    try:
        with pytest.raises(Refused, match="no room"):
            await private_copy(offer, desk.folders)
        assert list(desk.folders.sent.iterdir()) == []
    finally:
        subprocess.run(["umount", small], check=True)


async def test_a_file_with_a_secret_of_the_server_is_refused_under_each_of_its_names(desk: Desk):
    key = desk.file("notes/core.txt", b"the database key\n")
    for name in (key, desk.home / "link.txt"):
        if name != key:
            name.symlink_to(key)
        rules = Rules(desk.data, desk.home, secrets=(name,))
        with pytest.raises(Refused, match="secret of this server"):
            await open_offer(str(key), "auto", rules)


async def test_the_data_folder_of_another_agent_is_refused_wherever_it_is(desk: Desk):
    path = desk.file("other/files/group-1/7.pdf")
    desk.file("other/token")
    assert await desk.offer(path)
    desk.file("other/headers.json")
    assert "another agent" in await desk.refused(path)
    assert "another agent" in await desk.refused(desk.home / "other" / "token")


async def test_files_that_this_agent_received_are_not_those_of_another_one(desk: Desk):
    for name in ("token", "headers.json"):
        (desk.data / name).write_bytes(b"x")
    path = desk.folders.target("#15", 7, "a.txt")
    path.write_bytes(b"x")
    assert (await desk.offer(path)).size == 1
