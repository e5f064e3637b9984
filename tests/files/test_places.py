"""Where received files lie: names of the peer, links, files in the way, other file systems."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simplexmcp.chats import Chat
from simplexmcp.files.folders import Folders
from simplexmcp.files.places import Places, free_bytes, is_file, move, secure
from simplexmcp.messages import ChatFile

if TYPE_CHECKING:
    from pathlib import Path

CHAT = Chat("#15", "group", "Trail", "connected")
CONTACT = Chat("@4", "contact", "Bob", "connected")


def a_file(name: str = "report.pdf", *, status: str = "rcvComplete", size: int = 5, source: str = "") -> ChatFile:
    return ChatFile(7, 30, name, size, "file", status, source=source)


@pytest.fixture
def places(tmp_path: Path) -> Places:
    (tmp_path / "DATA").mkdir()
    return Places(Folders(tmp_path / "DATA"))


def put(path: Path, content: bytes = b"12345") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


HOSTILE = [
    "../../.bashrc",
    "/etc/passwd",
    "..\\x",
    ".hidden",
    "-rf",
    "a\0b",
    "x" * 300,
    "CON",
    "gpj.\u202eexe",
    "a.txt...",
    "",
    "a.p\ndf",
    "a.sh;rm -rf",
    "a.tar.gz",
    "..",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_stays_in_the_chats_folder(places: Places, name: str) -> None:
    for path in (places.path(CHAT, a_file(name)), places.held(CHAT, a_file(name))):
        assert path.parent == places.folders.data / "files" / "group-15"
        assert path.name.startswith("7")
        assert "\n" not in path.name
        assert path.name.isascii()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text())
def test_any_name_gives_a_plain_path(places: Places, name: str) -> None:
    path = places.path(CHAT, a_file(name))
    assert path.parent == places.folders.data / "files" / "group-15"
    assert path.name.replace(".", "").isalnum()
    assert path.name == path.name.rstrip()


def test_a_chat_with_the_admins_shares_the_groups_folder(places: Places) -> None:
    scoped = Chat("#15(_support:3)", "group", "Trail", "connected")
    assert places.path(scoped, a_file()) == places.path(CHAT, a_file())
    assert places.path(CONTACT, a_file()).parent.name == "contact-4"


def test_a_file_is_received_only_in_its_place(places: Places) -> None:
    assert places.look(CHAT, a_file()) == ("failed", None)
    put(places.path(CHAT, a_file(), "forwarded"))
    assert places.look(CHAT, a_file()) == ("offered", None)
    path = put(places.path(CHAT, a_file()))
    assert places.look(CHAT, a_file()) == ("received", path)


@pytest.mark.parametrize("status", ["rcvInvitation", "rcvAborted", "rcvTransfer", "rcvCancelled", "rcvError"])
def test_a_file_in_the_place_is_no_received_one_while_the_core_has_not_completed_it(
    places: Places, status: str
) -> None:
    file = a_file(status=status, source=str(put(places.path(CHAT, a_file()))))
    assert places.look(CHAT, file) == (file.state, None)


def test_an_own_file_has_no_path(places: Places) -> None:
    put(places.path(CHAT, a_file()))
    own = ChatFile(7, 30, "report.pdf", 5, "file", "sndComplete", own=True)
    assert places.look(CHAT, own) == ("offered", None)


def test_a_link_in_the_place_is_no_received_file(places: Places, tmp_path: Path) -> None:
    path = places.path(CHAT, a_file())
    path.parent.mkdir(parents=True)
    path.symlink_to(put(tmp_path / "secret"))
    assert places.look(CHAT, a_file()) == ("failed", None)


def test_a_file_in_the_cores_own_folder_is_offered_when_it_is_whole(places: Places, tmp_path: Path) -> None:
    source = put(tmp_path / "Downloads" / "voice.m4a")
    assert places.look(CHAT, a_file(source=str(source))) == ("offered", None)
    assert places.look(CHAT, a_file(source=str(source), size=6)) == ("failed", None)
    assert places.look(CHAT, a_file(source=str(tmp_path / "none"))) == ("failed", None)


def test_paths_that_leave_the_folders_are_not_ours(places: Places, tmp_path: Path) -> None:
    data = places.folders.data
    assert places.is_ours(data / "files" / "group-1" / "1")
    assert places.is_ours(data / "forwarded" / "group-1" / "1")
    assert not places.is_ours(data / "files" / ".." / "token")
    assert not places.is_ours(data / "tmp" / "1")
    assert not places.is_ours(tmp_path)


def test_older_files_with_the_number_are_moved_out_of_the_way_and_links_and_empty_ones_removed(places: Places) -> None:
    path, held, forwarded = (
        places.path(CHAT, a_file()),
        places.held(CHAT, a_file()),
        places.path(CHAT, a_file(), "forwarded"),
    )
    for round_ in (b"one", b"two"):
        put(path, round_)
        places.clear(CHAT, a_file())
    put(held, b"")
    forwarded.parent.mkdir(parents=True)
    forwarded.symlink_to(path)
    places.clear(CHAT, a_file())
    assert {p.name: p.read_bytes() for p in path.parent.iterdir()} == {"7-old.pdf": b"one", "7-old-2.pdf": b"two"}
    assert list(forwarded.parent.iterdir()) == []


def test_only_empty_files_of_ours_are_removed(places: Places, tmp_path: Path) -> None:
    whole, foreign = put(places.path(CHAT, a_file())), put(tmp_path / "foreign", b"")
    empty = put(places.path(CHAT, a_file("x.txt")), b"")
    for path in (whole, foreign, empty, tmp_path / "none"):
        places.remove_empty(path)
    assert (whole.exists(), foreign.exists(), empty.exists()) == (True, True, False)


def test_a_file_that_came_by_itself_is_held_once_and_in_full(places: Places, tmp_path: Path) -> None:
    part = put(tmp_path / "part.m4a", b"1")
    assert not places.hold(CHAT, a_file("v.m4a"), part)
    assert part.exists()
    source = put(tmp_path / "v.m4a")
    source.chmod(0o755)
    assert places.hold(CHAT, a_file("v.m4a"), source)
    held = places.held(CHAT, a_file("v.m4a"))
    assert held.name == "7.held.m4a"
    assert (held.read_bytes(), held.stat().st_mode & 0o777, source.exists()) == (b"12345", 0o600, False)
    assert places.hold(CHAT, a_file("v.m4a"), source)
    with pytest.raises(FileNotFoundError):
        places.hold(CONTACT, a_file("v.m4a"), source)


def test_a_move_never_writes_over_a_file(tmp_path: Path) -> None:
    source, target = put(tmp_path / "a", b"new"), put(tmp_path / "b", b"old")
    with pytest.raises(FileExistsError):
        move(source, target)
    assert (source.read_bytes(), target.read_bytes()) == (b"new", b"old")
    move(source, source)
    assert source.read_bytes() == b"new"


@pytest.mark.parametrize("no", [errno.EXDEV, errno.EPERM])
def test_a_move_to_another_file_system_copies(tmp_path: Path, no: int, monkeypatch: pytest.MonkeyPatch) -> None:
    _no_links(monkeypatch, no)
    source, target = put(tmp_path / "a", bytes(3 << 20)), tmp_path / "b"
    source.chmod(0o777)
    move(source, target)
    assert not source.exists()
    assert (target.stat().st_size, target.stat().st_mode & 0o777) == (3 << 20, 0o600)
    with pytest.raises(FileExistsError):
        move(put(source), target)


def test_a_disk_that_gets_full_during_a_copy_leaves_the_source_and_no_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    _no_links(monkeypatch, errno.EXDEV)
    monkeypatch.setattr("shutil.copyfileobj", full)
    source = put(tmp_path / "a")
    with pytest.raises(OSError, match="No space"):
        move(source, tmp_path / "b")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_disk_that_refuses_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _no_links(monkeypatch, errno.EACCES)
    source = put(tmp_path / "a")
    with pytest.raises(PermissionError):
        move(source, tmp_path / "b")
    assert source.exists()


def _no_links(monkeypatch: pytest.MonkeyPatch, no: int) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(no, os.strerror(no))

    monkeypatch.setattr("os.link", refuse)


def test_links_folders_and_pipes_are_not_taken_for_files(tmp_path: Path) -> None:
    real = put(tmp_path / "real")
    link = tmp_path / "link"
    link.symlink_to(real)
    os.mkfifo(tmp_path / "pipe")
    for path in (link, tmp_path / "pipe", tmp_path):
        assert not is_file(path)
        with pytest.raises(OSError):
            secure(path)
        with pytest.raises(OSError):
            move(path, tmp_path / "target")
    assert secure(real) == 5
    assert not (tmp_path / "target").exists()


def test_the_room_of_a_disk_is_known(tmp_path: Path) -> None:
    assert free_bytes(tmp_path) > 0
