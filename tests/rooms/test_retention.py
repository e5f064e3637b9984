"""`rooms retention`: a room's own rule on old messages, which never takes what somebody has not read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from simplexmcp.rooms.cli import run
from simplexmcp.rooms.store import pruning
from simplexmcp.rooms.store.pruning import Retention, apply_retention, set_retention

if TYPE_CHECKING:
    from pathlib import Path

    from tests.rooms.client import InProcess


@pytest.fixture(autouse=True)
def _database(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMPLEXMCP_ROOMS_DB", str(path))


def _said(capfd: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert run(["retention", *words]) == 0
    out, err = capfd.readouterr()
    assert err == ""
    return out.splitlines()


def _fill(client: InProcess, count: int, age_days: int = 0) -> None:
    persona = client.call("whoami")["agent_id"]
    with client.database.write():
        first = client.database.value("SELECT coalesce(max(seq), 0) + 1 FROM messages WHERE room_id = 1")
        client.database.run_many(
            "INSERT INTO messages (room_id, seq, agent_id, body, body_len, created_at)"
            " VALUES (1, ?, ?, 'x', 1, datetime('now', ?))",
            [(first + number, persona, f"-{age_days} days") for number in range(count)],
        )


def _kept(client: InProcess) -> tuple[int, int]:
    row = client.database.one("SELECT coalesce(min(seq), 0), coalesce(max(seq), 0) FROM messages")
    assert row is not None
    return row[0], row[1]


def _rule(client: InProcess, keep_last: int | None, max_age_days: int | None) -> None:
    with client.database.write():
        set_retention(client.database, 1, Retention(keep_last, max_age_days))


def test_a_rule_is_set_shown_applied_and_taken_away(alice: InProcess, capfd: pytest.CaptureFixture[str]) -> None:
    alice.enter_room()
    _fill(alice, 5)
    assert _said(capfd, "hall") == ['Room "hall" keeps all its messages.']
    assert _said(capfd, "hall", "--keep-last", "2") == [
        'Room "hall" keeps the newest 2 messages.',
        "Deleted now: 3. What a member has not read is kept.",
    ]
    assert _kept(alice) == (4, 5)
    assert _said(capfd, "1") == ['Room "hall" keeps the newest 2 messages.']
    both = _said(capfd, "1", "--keep-last=9", "--max-age=30")
    assert both[0] == 'Room "hall" keeps the newest 9 messages, of these what is at most 30 days old.'
    assert _said(capfd, "hall", "--off") == ['Room "hall" keeps all its messages.']
    _fill(alice, 50, age_days=99)
    assert apply_retention(alice.database, 1) == 0


def test_a_post_applies_the_rule_at_most_once_an_hour(alice: InProcess) -> None:
    alice.enter_room()
    _fill(alice, 9)
    alice.call("post_message", content="no rule yet")
    assert _kept(alice) == (1, 10)
    _rule(alice, 3, None)
    alice.call("post_message", content="asked a moment ago")
    assert _kept(alice) == (1, 11)
    alice.runtime.pruned[1] -= 3601
    alice.call("post_message", content="an hour later")
    assert _kept(alice) == (10, 12)
    assert alice.call("post_message", content="on")["seq"] == 13


def test_much_to_delete_is_deleted_in_portions(alice: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    alice.enter_room()
    _fill(alice, 2500)
    _rule(alice, 10, None)
    for oldest in (1001, 2001, 2494):
        alice.call("post_message", content="x")
        assert _kept(alice)[0] == oldest


def test_old_messages_go_and_the_newest_stays_however_old(alice: InProcess) -> None:
    alice.enter_room()
    _fill(alice, 4, age_days=10)
    _fill(alice, 2, age_days=2)
    _rule(alice, None, 5)
    assert apply_retention(alice.database, 1) == 4
    assert _kept(alice) == (5, 6)
    _rule(alice, None, 1)
    assert apply_retention(alice.database, 1) == 1
    assert _kept(alice) == (6, 6)


def test_either_bound_suffices(alice: InProcess) -> None:
    alice.enter_room()
    _fill(alice, 5, age_days=10)
    _fill(alice, 5)
    _rule(alice, 8, 5)
    assert apply_retention(alice.database, 1) == 5
    _rule(alice, 2, 5)
    assert apply_retention(alice.database, 1) == 3


def test_what_a_member_has_not_read_is_kept_also_for_who_left(alice: InProcess, bob: InProcess) -> None:
    alice.enter_room()
    bob.enter_room()
    _fill(alice, 6)
    bob.call("mark_read", seq=2)
    bob.call("leave_room")
    _rule(alice, 1, 1)
    assert apply_retention(alice.database, 1) == 2
    assert _kept(alice) == (3, 6)
    bob.call("join_room", room="hall")
    assert [message["seq"] for message in bob.call("catch_up")["messages"]] == [3, 4, 5, 6]
    assert apply_retention(alice.database, 1) == 3


def test_a_rule_in_an_empty_room_does_nothing(alice: InProcess) -> None:
    alice.enter_room()
    _rule(alice, 1, 1)
    assert apply_retention(alice.database, 1) == 0


def test_a_failure_to_delete_does_not_fail_the_post(alice: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    alice.enter_room()
    _fill(alice, 5)
    _rule(alice, 1, None)
    monkeypatch.setattr(pruning, "_DELETE", "DELETE FROM nowhere WHERE room_id = ? AND seq <= ?")
    assert alice.call("post_message", content="x")["posted"] is True
    assert _kept(alice) == (1, 6)


def test_the_room_may_stand_behind_the_options(alice: InProcess, capfd: pytest.CaptureFixture[str]) -> None:
    alice.enter_room()
    assert _said(capfd, "--keep-last", "5", "hall")[0] == 'Room "hall" keeps the newest 5 messages.'
    assert _said(capfd, "--off", "1") == ['Room "hall" keeps all its messages.']


def test_wrong_usage_is_refused(alice: InProcess, capsys: pytest.CaptureFixture[str]) -> None:
    alice.enter_room()
    for words, code in (
        (["hall", "--keep-last", "0"], 2),
        (["hall", "--keep-last", "x"], 2),
        (["hall", "--max-age", "99999"], 2),
        (["hall", "--off", "--keep-last", "1"], 2),
        (["hall", "--off", "--max-age", "1"], 2),
        (["hall", "more"], 2),
        (["--keep-last", "1"], 2),
        (["nowhere", "--off"], 1),
    ):
        assert run(["retention", *words]) == code
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("simplexmcp rooms: ")
    assert run(["retention", "-h"]) == run(["retention", "hall", "--help"]) == 0
    assert run(["retention"]) == 2


def test_a_hostile_room_name_is_shown_inert(alice: InProcess, capfd: pytest.CaptureFixture[str]) -> None:
    alice.persona()
    alice.call("create_room", name="a\x1b[2J\u202e")
    assert _said(capfd, "1") == ['Room "a<U+001B>[2J<U+202E>" keeps all its messages.']
