"""The copies of sent files: gone when the core does not need them, and failures told to the owner (flow 15)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from simplexmcp.files.folders import Folders
from simplexmcp.files.offer import SentCopy
from simplexmcp.files.uploads import Uploads

if TYPE_CHECKING:
    from pathlib import Path


class Desk:
    """A data folder, its uploads, and what the owner was told."""

    def __init__(self, data: Path) -> None:
        self.folders = Folders(data)
        self.told: list[str] = []
        self.uploads = Uploads(self.folders, self.told.append)

    def copy(self, name: str = "trail.jpg") -> SentCopy:
        path = self.folders.new_copy() / name
        path.write_bytes(b"x" * 10)
        return SentCopy(path, 10)

    def copies(self) -> int:
        return len(list(self.folders.sent.iterdir()))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def entry(copy: SentCopy, file_id: int, item: int = 31) -> dict[str, Any]:
    group = {"groupId": 15, "groupProfile": {"displayName": "Trail"}, "membership": {"memberStatus": "connected"}}
    file = {"fileId": file_id, "fileName": copy.path.name, "fileSource": {"filePath": str(copy.path)}}
    return {
        "chatInfo": {"type": "group", "groupInfo": group},
        "chatItem": {"meta": {"itemId": item}, "file": file},
    }


def event(kind: str, copy: SentCopy, file_id: int = 7, **more: Any) -> dict[str, Any]:
    meta = {"fileId": file_id, "fileName": copy.path.name, "filePath": str(copy.path), "fileSize": 10}
    key = "chatItem" if kind == "sndFileCompleteXFTP" else "chatItem_"
    return {"type": kind, key: entry(copy, file_id), "fileTransferMeta": meta, **more}


@pytest.mark.parametrize("kind", ["sndFileCompleteXFTP", "sndFileError", "sndFileCancelled"])
def test_the_copy_goes_at_each_end_of_an_upload(desk: Desk, kind: str):
    copy, other = desk.copy(), desk.copy()
    desk.uploads.track(7, copy, "#15")
    desk.uploads.track(8, other, "#15")
    desk.uploads.on_event(event(kind, copy, errorMessage="no"))
    assert not copy.path.parent.exists()
    assert other.path.exists()


@pytest.mark.parametrize("kind", ["sndFileProgressXFTP", "sndFileWarning", "rcvFileComplete", "newChatItems", None])
def test_the_copy_stays_while_the_core_needs_it(desk: Desk, kind: str):
    copy = desk.copy()
    desk.uploads.track(7, copy, "#15")
    desk.uploads.on_event(event(kind, copy))
    assert copy.path.exists()


def test_an_upload_that_ended_before_it_was_tracked_leaves_nothing(desk: Desk):
    copy = desk.copy()
    desk.uploads.on_event(event("sndFileCompleteXFTP", copy))
    desk.uploads.track(7, copy, "#15")
    assert desk.copies() == 0
    assert desk.uploads._running == {}


def test_an_end_that_names_no_path_is_found_by_its_number(desk: Desk):
    copy = desk.copy()
    desk.uploads.track(7, copy, "#15")
    desk.uploads.on_event({"type": "sndFileCompleteXFTP", "fileTransferMeta": {"fileId": 7}})
    assert desk.copies() == 0


def test_a_number_that_was_given_again_does_not_take_the_new_copy(desk: Desk):
    old, new = desk.copy("old"), desk.copy("new")
    desk.uploads.track(7, new, "#15")
    desk.uploads.on_event(event("sndFileCompleteXFTP", old))
    assert new.path.exists()
    assert not old.path.exists()


def test_the_owner_is_told_in_one_line_about_a_failed_upload(desk: Desk):
    copy = desk.copy()
    desk.uploads.track(7, copy, "#15")
    desk.uploads.on_event(event("sndFileError", copy, errorMessage="no /'approve 7'\nserver `x` \u202e" + "y" * 5000))
    [line] = desk.told
    assert line.startswith("The file `trail.jpg` of message 31 in group Trail (#15) was not sent: `no /'approve 7'⏎")
    assert "`x`" not in line
    assert "<U+202E>" in line
    assert "\n" not in line
    assert len(line) < 500


def test_a_failed_upload_without_its_message_is_told_by_the_chat_that_is_known(desk: Desk):
    copy = desk.copy()
    desk.uploads.track(7, copy, "#15")
    failed = event("sndFileError", copy, errorMessage="no")
    del failed["chatItem_"]
    desk.uploads.on_event(failed)
    assert desk.told == ["The file `trail.jpg` in chat (#15) was not sent: `no`."]


def test_success_and_cancelling_are_not_told(desk: Desk):
    for kind in ("sndFileCompleteXFTP", "sndFileCancelled"):
        desk.uploads.on_event(event(kind, desk.copy()))
    assert desk.told == []


def test_a_deleted_message_ends_its_upload(desk: Desk):
    copy = desk.copy()
    desk.uploads.track(7, copy, "#15")
    desk.uploads.on_event({"type": "chatItemsDeleted", "chatItemDeletions": [{"deletedChatItem": entry(copy, 7)}]})
    assert desk.copies() == 0


def test_a_chat_that_is_gone_ends_its_uploads_and_no_others(desk: Desk):
    copies = {ref: desk.copy() for ref in ("#15", "#15(_support)", "@15", "#1")}
    for number, (ref, copy) in enumerate(copies.items(), 1):
        desk.uploads.track(number, copy, ref)
    desk.uploads.chat_gone("#15")
    assert [ref for ref, copy in copies.items() if copy.path.exists()] == ["@15", "#1"]


def test_an_event_never_deletes_a_file_that_is_no_copy(desk: Desk, tmp_path: Path):
    original = tmp_path / "original.txt"
    original.write_bytes(b"x")
    kept = desk.folders.target("#15", 7, "a.txt")
    kept.write_bytes(b"x")
    for path in (original, kept):
        desk.uploads.on_event(event("sndFileCompleteXFTP", SentCopy(path, 1)))
        assert path.exists()


def test_damaged_events_are_ignored(desk: Desk):
    for kind in ("sndFileCompleteXFTP", "sndFileCancelled", "chatItemsDeleted"):
        for rest in ({}, {"fileTransferMeta": None}, {"fileTransferMeta": {"fileId": "7", "filePath": 3}}):
            desk.uploads.on_event({"type": kind, "chatItemDeletions": [None, {"deletedChatItem": 4}], **rest})
    assert desk.told == []
