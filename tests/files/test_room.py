"""The files of an agent put together: chats that are gone, and what the owners are told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio

from simplexmcp.audit import Audit, read_audit
from simplexmcp.chats import Chat, chat_of_contact
from simplexmcp.core.api import ChatApi
from simplexmcp.files.room import FileRoom
from tests.fakes import News, TrioClock
from tests.tools.world import FakeCore, contact, group, info

if TYPE_CHECKING:
    from pathlib import Path

BORN = "2026-11-30T21:00:00Z"
LATER = "2026-12-01T10:00:00Z"


class Room:
    """A file room without a core."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.news = folder, News()
        self.audit = Audit(folder / "audit.jsonl", TrioClock())
        self.files = FileRoom(ChatApi(FakeCore()), folder, self.audit, TrioClock(), self.news)  # type: ignore[arg-type]

    def put(self, folder: str, name: str = "1.pdf") -> Path:
        path = self.folder / folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"12345")
        return path

    def folders(self) -> list[str]:
        return sorted(path.name for path in (self.folder / "files").iterdir())


def chat(number: int, created: str = BORN) -> Chat:
    found = chat_of_contact(contact(number, createdAt=created))
    assert found is not None
    return found


def arrival(number: int, created: str) -> dict[str, Any]:
    item = {"chatInfo": info(contact(number, createdAt=created)), "chatItem": {}}
    return {"type": "newChatItems", "chatItems": [item]}


async def test_files_of_a_chat_that_is_left_stay_and_what_was_forwarded_goes(tmp_path: Path) -> None:
    room = Room(tmp_path)
    room.put("files/contact-4")
    room.put("forwarded/contact-4")
    kept = room.files.left(chat(4))
    assert (kept.files, kept.size) == (1, 5)
    assert room.folders() == ["contact-4"]
    assert not (tmp_path / "forwarded" / "contact-4").exists()


async def test_a_late_event_of_the_chat_that_was_left_does_not_set_its_files_aside(tmp_path: Path) -> None:
    room = Room(tmp_path)
    room.put("files/contact-4")
    room.files.left(chat(4))
    room.files.on_event(arrival(4, "2026-11-30T21:00:00Z"))
    assert room.folders() == ["contact-4"]


async def test_the_first_event_of_a_new_chat_with_the_number_sets_the_old_files_aside_once(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    room = Room(tmp_path)
    room.put("files/contact-4")
    room.files.left(chat(4))
    room.files.on_event(arrival(4, "2026-12-01T10:00:00Z"))
    [aside] = room.folders()
    assert aside.startswith("contact-4-left-2026-11-30")
    room.put("files/contact-4", "2.pdf")
    room.files.on_event(arrival(4, "2026-12-01T10:00:00Z"))
    assert room.folders() == ["contact-4", aside]
    assert [entry["folder"] for entry in read_audit(tmp_path / "audit.jsonl")] == [aside]


async def test_a_group_that_arrives_in_any_event_counts(tmp_path: Path) -> None:
    room = Room(tmp_path)
    room.put("files/group-9")
    room.files.know({})
    room.files.on_event({"type": "userJoinedGroup", "groupInfo": group(9)})
    assert room.folders()[0].startswith("group-9-left-")


async def test_at_a_start_only_folders_without_a_chat_are_those_of_chats_that_are_gone(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    room = Room(tmp_path)
    for name in ("contact-4", "contact-5", "group-4", "sent", "group-4-left-2026-01-01", "something"):
        room.put(f"files/{name}")
    room.files.know({"@4": BORN, "#9": BORN})
    for number in (4, 5):
        room.files.arrived(chat(number))
    assert room.folders() == [
        "contact-4", "contact-5-left-2026-11-30", "group-4", "group-4-left-2026-01-01", "sent", "something"
    ]  # fmt: skip


async def test_damaged_events_are_ignored(tmp_path: Path) -> None:
    room = Room(tmp_path)
    room.files.know({})
    room.put("files/contact-4")
    room.files.left(chat(4))
    broken: list[Any] = [None, 5, [], {"chatInfo": 5}, {"chatInfo": {"type": "direct", "contact": {"contactId": "4"}}}]
    for value in broken:
        room.files.on_event({"type": "newChatItems", "chatItems": value})
        room.files.on_event({"type": "newChatItems", "chatItems": [value], "chatItem": value, "contact": value})
    assert room.folders() == ["contact-4"]


async def test_refusals_are_told_once_an_hour_and_never_more_than_twenty_of_them(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    room = Room(tmp_path)
    for number in range(50):
        for _ in range(2):
            room.files.refused(f"/{number}", "no")
    assert len(room.news.told) == 20
    assert [last for *_, last in room.news.told] == [False] * 19 + [True]
    assert len(list(read_audit(tmp_path / "audit.jsonl"))) == 100
    await trio.sleep(3601)
    room.files.refused("/1", "no")
    assert room.news.told[-1] == ("refused", "/1", "no", False)


async def test_a_disk_that_refuses_does_not_undo_a_leave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    room = Room(tmp_path)
    room.put("files/contact-4")

    def refuse(*_: Any) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("simplexmcp.files.folders._remove", refuse)
    room.put("forwarded/contact-4")
    assert room.files.left(chat(4)).files == 0
    room.files.on_event(arrival(4, "2026-12-01T10:00:00Z"))
    assert room.folders() == ["contact-4"]


def test_a_path_below_a_linked_folder_is_one_for_downloads_and_for_sends(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "real" / "data").mkdir()
    room = Room(tmp_path / "link" / "data")
    path = room.files.folders.target("#9", 1, "a.pdf")
    assert path == tmp_path / "real" / "data" / "files" / "group-9" / "1.pdf"
    assert path.is_relative_to(room.files.rules.received)


async def test_a_number_that_was_given_again_while_the_server_was_down_has_an_empty_folder(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    room = Room(tmp_path)
    room.files.know({"@4": BORN, "@5": BORN, "@6": BORN})
    for number in (4, 5, 6, 7):
        room.put(f"files/contact-{number}")
    room.files.on_event(arrival(7, BORN))
    again = Room(tmp_path)
    again.files.know({"@4": BORN, "@5": LATER, "@7": LATER})
    assert again.folders() == ["contact-4", "contact-5-left-2026-11-30", "contact-6", "contact-7-left-2026-11-30"]
    again.put("files/contact-5")
    last = Room(tmp_path)
    last.files.know({"@4": BORN, "@5": LATER, "@6": LATER, "@7": LATER})
    assert "contact-5" in last.folders()
    assert "contact-6" not in last.folders()
    assert (tmp_path / "chats.json").stat().st_mode & 0o777 == 0o600


async def test_a_number_that_was_given_again_without_a_word_of_the_core_is_seen_at_the_next_event(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    room = Room(tmp_path)
    room.files.know({"@4": BORN})
    room.put("files/contact-4")
    room.files.on_event(arrival(4, "2026-11-30T21:00:00.123Z"))  # the same, told more exactly
    assert room.folders() == ["contact-4"]
    room.files.on_event(arrival(4, LATER))
    assert room.folders() == ["contact-4-left-2026-11-30"]


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"@4": 5}', b"\xff"])
async def test_a_damaged_list_of_chats_sets_nothing_aside(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "chats.json").write_bytes(content)
    (tmp_path / "chats.json").chmod(0o600)
    room = Room(tmp_path)
    room.put("files/contact-4")
    room.files.know({"@4": BORN})
    assert room.folders() == ["contact-4"]
