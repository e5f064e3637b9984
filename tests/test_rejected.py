"""Files that an owner rejected are known again after a restart, whatever their chat is called by then."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from simplexmcp.audit import Audit, read_audit
from simplexmcp.chats import Chat
from simplexmcp.rejected import RejectedFiles
from tests.fakes import ALICE, Desk, TrioClock
from tests.test_standing_files import download

if TYPE_CHECKING:
    from pathlib import Path

TRAIL = Chat("#15", "group", "Trail", "connected", info={"createdAt": "2026-11-30T21:00:00Z"})


def entry(**fields: Any) -> dict[str, Any]:
    rejected = {"event": "decided", "decision": "rejected", "chat": "#15", "chat_created": "", "item": 30}
    return rejected | fields


@pytest.mark.parametrize(
    ("chat", "item", "held"),
    [
        (replace(TRAIL, name="Other", identity=("another",)), 30, True),
        (replace(TRAIL, ref="#15(_support:4)"), 30, True),
        (TRAIL, 31, False),
        (replace(TRAIL, ref="#16"), 30, False),
        (replace(TRAIL, info={"createdAt": "2026-12-01T21:00:00Z"}), 30, False),
    ],
)
async def test_a_file_is_known_by_its_chat_and_its_item(tmp_path: Path, chat: Chat, item: int, held: bool) -> None:
    path = tmp_path / "audit.jsonl"
    audit, rejected = Audit(path, TrioClock()), RejectedFiles()
    audit.write("decided", action=1, decision="rejected", **rejected.add(TRAIL, 30))
    audit.close()
    assert rejected.holds(chat, item) is held
    assert RejectedFiles(read_audit(path)).holds(chat, item) is held


@pytest.mark.parametrize(
    "other",
    [{"decision": "approved"}, {"event": "created"}, {"item": "30"}, {"item": None}, {"chat": None}, {"chat": ["#15"]}],
)
def test_other_and_damaged_entries_are_none_of_a_rejected_file(other: dict[str, Any]) -> None:
    chat = replace(TRAIL, info={})
    assert RejectedFiles([entry()]).holds(chat, 30)
    assert not RejectedFiles([entry(**other)]).holds(chat, 30)


def test_the_newest_thousand_are_kept() -> None:
    rejected = RejectedFiles(entry(item=number) for number in range(1, 1_002))
    chat = replace(TRAIL, info={})
    assert [rejected.holds(chat, number) for number in (1, 2, 1_001)] == [False, True, True]


async def test_a_reject_writes_the_file_of_a_download_only(tmp_path: Path, autojump_clock: object) -> None:
    async with Desk(tmp_path).running() as desk:
        for request in (download(desk), desk.request()):
            action = desk.actions.ask(request)
            await action.posted.wait()
            assert desk.actions.reject(action.number, "#15", ALICE) is None
    decided = [line for line in read_audit(tmp_path / "audit.jsonl") if line["event"] == "decided"]
    assert [line.get("item") for line in decided] == [30, None]
    assert RejectedFiles(decided).holds(desk.chat(), 30)
