from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from simplexmcp.rooms import check

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.rooms.client import InProcess

    Ask = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def me(alice: InProcess, bob: InProcess) -> str:
    persona = alice.enter_room()
    bob.enter_room()
    return persona.agent_id


@pytest.fixture
def ask(path: Path, capsys: pytest.CaptureFixture[str]) -> Ask:
    def asked(*words: str) -> tuple[int, dict[str, Any]]:
        code = check.run([*words, "--db", str(path)])
        out, err = capsys.readouterr()
        assert err == ""
        return code, json.loads(out)

    return asked


@pytest.fixture
def refusal(path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def asked(*words: str) -> str:
        assert check.run([*words, "--db", str(path)]) == 2
        out, err = capsys.readouterr()
        assert (out, err.startswith("agent-chat-check: ")) == ("", True)
        return err

    return asked


def test_all_rooms_are_counted_and_those_with_news_are_listed(alice: InProcess, bob: InProcess, me: str, ask: Ask):
    bob.call("create_room", name="attic")
    for runtime in (alice, bob):
        runtime.call("join_room", room="attic")
    nothing = {"agent": me, "rooms": 2, "unread": 0, "unread_mentions": 0, "mentions_only": False, "has_updates": False}
    assert ask("--agent", me) == (1, nothing)

    bob.call("post_message", content="x", room="hall")
    bob.call("post_message", content="x", room="attic", to=[me])
    alice.call("post_message", content="my own", room="hall")

    code, answer = ask("--agent", me)
    assert (code, list(answer)) == (0, [*nothing, "rooms_with_updates"])
    assert (answer["unread"], answer["unread_mentions"]) == (2, 1)
    assert answer["rooms_with_updates"] == [
        {"room_id": 2, "name": "attic", "unread": 1, "directed": 1},
        {"room_id": 1, "name": "hall", "unread": 1, "directed": 0},
    ]
    assert [room["room_id"] for room in ask("--agent", me, "--mentions-only")[1]["rooms_with_updates"]] == [2]
    alice.call("catch_up", room="attic")
    code, answer = ask("--agent", me, "--mentions-only")
    assert (code, answer["unread"], answer["has_updates"]) == (1, 1, False)


def test_at_most_twenty_rooms_are_listed(alice: InProcess, bob: InProcess, me: str, ask: Ask):
    for number in range(21):
        bob.call("create_room", name=f"room {number}")
        for runtime in (alice, bob):
            runtime.call("join_room", room=f"room {number}")
        bob.call("post_message", content="x")
    answer = ask("--agent", me)[1]
    assert (answer["unread"], len(answer["rooms_with_updates"])) == (21, 20)
    assert answer["rooms_with_updates_truncated"] is True


def test_one_room_is_counted_from_the_marker_or_from_a_number(alice: InProcess, bob: InProcess, me: str, ask: Ask):
    for _ in range(3):
        bob.call("post_message", content="x", to=[me])
    alice.call("catch_up", limit=2)
    for reference in ("hall", "1"):
        assert ask("--agent", me, "--room", reference) == (
            0,
            {
                "room_id": 1,
                "agent": me,
                "baseline_seq": 2,
                "latest_seq": 3,
                "unread": 1,
                "unread_mentions": 1,
                "mentions_only": False,
                "has_updates": True,
            },
        )
    assert ask("--agent", me, "--room", "hall", "--since", "0")[1]["unread"] == 3
    code, answer = ask("--room", "hall", "--since", "1")
    assert (code, answer["agent"], answer["unread"], answer["unread_mentions"]) == (0, None, 2, 0)
    assert ask("--room", "hall", "--since", "9")[0] == 1


def test_a_room_named_by_digits_is_looked_up_as_an_id_first(alice: InProcess, me: str, ask: Ask):
    alice.database.run("INSERT INTO rooms (name) VALUES ('1'), ('77')")
    assert ask("--room", "1", "--since", "0")[1]["room_id"] == 1
    assert ask("--room", "77", "--since", "0")[1]["room_id"] == 3


def test_asking_changes_nothing(path: Path, alice: InProcess, bob: InProcess, me: str, ask: Ask):
    bob.call("post_message", content="x")
    alice.database.run("UPDATE memberships SET last_seen = '2001-01-01 00:00:00'")
    version = alice.database.data_version()
    for _ in range(2):
        assert ask("--agent", me)[1]["unread"] == 1
    assert alice.database.data_version() == version


def test_what_cannot_be_counted_is_exit_2_with_its_name(alice: InProcess, me: str, refusal: Callable[..., str]):
    assert "no_room_memberships" in refusal("--agent", "nobody")
    assert 'no room "cellar"' in refusal("--agent", me, "--room", "cellar")
    assert "not a member" in refusal("--agent", "nobody", "--room", "hall")
    alice.call("leave_room")
    assert "left_all_rooms" in refusal("--agent", me)
    assert 'has LEFT room "hall"' in refusal("--agent", me, "--room", "hall")


def test_without_a_database_it_is_exit_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert check.run(["--agent", "a", "--db", str(tmp_path / "none.db")]) == 2
    assert "none.db" in capsys.readouterr().err
    assert not (tmp_path / "none.db").exists()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "--agent is required"),
        (["--room", "hall"], "--since"),
        (["--agent", "a", "--since", "1"], "--since requires --room"),
        (["--room", "hall", "--since", "9007199254740992"], "too large"),
        (["--room", "hall", "--since", "-1"], "--since must be a non-negative integer"),
        (["--room", "hall", "--since", "1", "--mentions-only"], "--mentions-only requires --agent"),
        (["--loud"], "unknown argument: --loud"),
    ],
)
def test_a_wrong_command_line_is_exit_2_with_the_usage(words: list[str], text: str, refusal: Callable[..., str]):
    err = refusal(*words)
    assert text in err
    assert "Usage:" in err


def test_help_is_exit_0(capsys: pytest.CaptureFixture[str]):
    assert check.run(["--help"]) == 0
    assert capsys.readouterr().out.startswith("Usage: ")


def test_a_database_in_memory_is_refused(capsys: pytest.CaptureFixture[str]):
    assert check.run(["--agent", "a", "--db", ":memory:"]) == 2
    assert "in memory" in capsys.readouterr().err


def test_a_closed_or_broken_stderr_does_not_change_the_exit_code(tmp_path: Path):
    code = (
        f"import sys; from simplexmcp.rooms.check import run; sys.exit(run(['--agent', 'a', '--db', '{tmp_path}/x']))"
    )
    reader, broken = os.pipe()
    os.close(reader)
    try:
        assert subprocess.run([sys.executable, "-c", code], stderr=broken, check=False).returncode == 2
    finally:
        os.close(broken)
    closed = ["sh", "-c", 'exec "$0" -c "$1" 2>&-', sys.executable, code]
    assert subprocess.run(closed, check=False).returncode == 2
