"""The folders of files: made private, summed, deleted and set aside, never through a link (flow 16)."""

from __future__ import annotations

import os
import stat
from datetime import date
from pathlib import Path

import pytest

from simplexmcp.files.folders import Folders, Kept, folder_name

DAY = date(2026, 12, 1)


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    data = tmp_path / "data"
    data.mkdir()
    return Folders(data)


def fill(folders: Folders, ref: str, **files: int) -> None:
    for name, size in files.items():
        folders.target(ref, 1, "").with_name(name).write_bytes(b"x" * size)


@pytest.mark.parametrize(
    ("ref", "name"),
    [("#9", "group-9"), ("@4", "contact-4"), ("#9(_support)", "group-9"), ("#9(_support:44)", "group-9")],
)
def test_a_chats_folder_is_named_by_its_type_and_number(ref: str, name: str):
    assert folder_name(ref) == name


@pytest.mark.parametrize("ref", ["", "9", "#", "#0", "#9/../x", "#9\n", "@4(_support)x", "#-1"])
def test_what_is_no_reference_names_no_folder(ref: str):
    with pytest.raises(ValueError, match="reference"):
        folder_name(ref)


def test_a_target_is_named_by_the_files_number_in_a_private_folder(folders: Folders):
    before = os.umask(0)
    try:
        received = folders.target("#15", 7, "report.pdf")
        forwarded = folders.target("#15", 7, "report.pdf", "forwarded")
    finally:
        os.umask(before)
    assert received == folders.data / "files" / "group-15" / "7.pdf"
    assert forwarded == folders.data / "forwarded" / "group-15" / "7.pdf"
    for folder in (received.parent, received.parent.parent, forwarded.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not received.exists()


@pytest.mark.parametrize("part", ["files", "files/group-15"])
def test_a_link_in_the_place_of_a_folder_is_refused(folders: Folders, tmp_path: Path, part: str):
    (folders.data / part).parent.mkdir(exist_ok=True)
    (tmp_path / "elsewhere").mkdir()
    (folders.data / part).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NotADirectoryError):
        folders.target("#15", 7, "x")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_files_are_counted_in_both_places_and_links_are_not(folders: Folders, tmp_path: Path):
    fill(folders, "#9", a=10, b=20)
    folders.target("#9", 8, "c", "forwarded").write_bytes(b"x" * 5)
    (tmp_path / "big").write_bytes(b"x" * 1000)
    (folders.folder("#9") / "link").symlink_to(tmp_path / "big")
    (folders.folder("#9") / "link to a folder").symlink_to(tmp_path)
    (folders.folder("#9") / "deep").mkdir()
    (folders.folder("#9") / "deep" / "d").write_bytes(b"x")
    assert folders.kept("#9") == Kept(4, 36)
    assert folders.kept("#9", "received") == Kept(3, 31)
    assert folders.kept("#9(_support:3)") == Kept(4, 36)
    assert not folders.kept("#10")


def test_deleting_the_files_of_a_chat_leaves_those_of_others(folders: Folders):
    fill(folders, "#9", a=10)
    fill(folders, "@9", a=10)
    fill(folders, "#90", a=10)
    folders.target("#9", 8, "c", "forwarded").write_bytes(b"x")
    assert folders.delete("#9") == Kept(2, 11)
    assert not folders.folder("#9").exists()
    assert not folders.folder("#9", "forwarded").exists()
    assert folders.kept("@9") == folders.kept("#90") == Kept(1, 10)
    assert folders.delete("#9") == Kept(0, 0)


def test_only_what_was_forwarded_can_be_deleted(folders: Folders):
    fill(folders, "#9", a=10)
    folders.target("#9", 8, "c", "forwarded").write_bytes(b"x")
    assert folders.delete("#9", "forwarded") == Kept(1, 1)
    assert folders.kept("#9") == Kept(1, 10)


def test_deleting_follows_no_link(folders: Folders, tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_bytes(b"x")
    fill(folders, "#9", a=10)
    (folders.folder("#9") / "link").symlink_to(outside)
    folders.delete("#9")
    folders.folder("#8").symlink_to(outside)
    assert folders.delete("#8") == Kept(0, 0)
    assert not os.path.lexists(folders.folder("#8"))
    assert (outside / "precious").exists()


def test_files_of_a_chat_that_is_gone_are_set_aside_under_a_name_of_their_own(folders: Folders):
    fill(folders, "#9", a=10)
    folders.target("#9", 8, "c", "forwarded").write_bytes(b"x")
    first = folders.set_aside("#9", DAY)
    assert first == folders.data / "files" / "group-9-left-2026-12-01"
    assert not folders.folder("#9", "forwarded").exists()
    fill(folders, "#9", b=20)
    second = folders.set_aside("#9", DAY)
    assert second == folders.data / "files" / "group-9-left-2026-12-01-2"
    assert (first / "a").exists()
    assert (second / "b").exists()
    assert folders.set_aside("#9", DAY) is None


@pytest.mark.parametrize("mask", [0, 0o277])
def test_a_copy_has_a_private_folder_that_goes_with_it(folders: Folders, mask: int):
    before = os.umask(mask)
    try:
        folder = folders.new_copy()
    finally:
        os.umask(before)
    assert folder.parent == folders.data / "files" / "sent"
    assert folder.name.startswith("send-")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    (folder / "trail.jpg").write_bytes(b"x")
    assert folders.delete_copy(folder / "trail.jpg")
    assert not folder.exists()
    assert not folders.delete_copy(folder / "trail.jpg")


def test_nothing_else_than_a_copy_is_deleted_as_one(folders: Folders, tmp_path: Path):
    fill(folders, "#9", a=10)
    folders.sent.mkdir()
    (folders.sent / "x").write_bytes(b"x")
    (tmp_path / "send-1").mkdir()
    (tmp_path / "send-1" / "x").write_bytes(b"x")
    for path in (folders.folder("#9") / "a", folders.sent / "x", tmp_path / "send-1" / "x", Path("/"), Path("x")):
        assert not folders.delete_copy(path)
    assert not folders.delete_copy(folders.sent / "send-1" / ".." / ".." / "group-9" / "a")
    assert folders.kept("#9") == Kept(1, 10)
    assert (tmp_path / "send-1" / "x").exists()


def test_copies_of_the_last_run_are_deleted_at_start(folders: Folders, tmp_path: Path):
    folders.empty_sent()  # nothing was ever sent
    (folders.new_copy() / "a").write_bytes(b"x")
    (folders.sent / "stray").write_bytes(b"x")
    (tmp_path / "precious").write_bytes(b"x")
    (folders.sent / "link").symlink_to(tmp_path)
    fill(folders, "#9", a=10)
    folders.empty_sent()
    assert list(folders.sent.iterdir()) == []
    assert (tmp_path / "precious").exists()
    assert folders.kept("#9") == Kept(1, 10)


def test_a_link_in_the_place_of_the_copies_is_not_emptied(folders: Folders, tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_bytes(b"x")
    folders.sent.parent.mkdir()
    folders.sent.symlink_to(outside)
    folders.empty_sent()
    assert (outside / "precious").exists()
    assert folders.new_copy().parent == folders.sent
    assert not folders.sent.is_symlink()


def test_nothing_is_done_through_a_link_in_the_place_of_all_files(tmp_path: Path):
    mine = tmp_path / "mine"
    for name in ("sent/send-a/x", "group-9/1.pdf"):
        (mine / name).parent.mkdir(parents=True)
        (mine / name).write_bytes(b"x")
    data = tmp_path / "data"
    data.mkdir()
    for name in ("files", "forwarded"):
        (data / name).symlink_to(mine)
    folders = Folders(data)
    folders.empty_sent()
    assert not folders.kept("#9")
    assert not folders.delete("#9")
    assert folders.set_aside("#9", DAY) is None
    assert not folders.delete_copy(data / "files" / "sent" / "send-a" / "x")
    assert (mine / "sent/send-a/x").exists()
    assert (mine / "group-9/1.pdf").exists()
