"""`rooms export`: all messages of a room, for people and for programs, with nothing in them that acts."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from simplexmcp.rooms.cli import run

if TYPE_CHECKING:
    from pathlib import Path

    from tests.rooms.client import InProcess


@pytest.fixture(autouse=True)
def _database(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMPLEXMCP_ROOMS_DB", str(path))


def _lines(capfdbinary: pytest.CaptureFixture[bytes], *words: str) -> list[str]:
    assert run(["export", *words]) == 0
    out, err = capfdbinary.readouterr()
    assert err == b""
    return out.decode().split("\n")[:-1]


def test_lines_of_json_hold_each_message_whole(
    alice: InProcess, bob: InProcess, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    first = alice.enter_room()
    second = bob.enter_room(model="Other")
    alice.call("post_message", content="hello\nü😀", to=[second.agent_id], priority=True, client_message_id="k")
    bob.call("post_message", content={"a": [1, None]}, reply_to_seq=1)
    bob.call("post_message", content="better", supersedes_seq=2)
    one, two, three = (json.loads(line) for line in _lines(capfdbinary, "hall", "--format", "jsonl"))
    assert list(one) == [
        *("seq", "from", "brand", "model", "version", "is_human", "format", "priority", "content", "to"),
        *("reply_to_seq", "reply_to_agent", "supersedes_seq", "client_message_id", "at", "unix"),
    ]
    assert (one["seq"], one["from"], one["content"], one["to"]) == (1, first.agent_id, "hello\nü😀", [second.agent_id])
    assert (one["priority"], one["client_message_id"], one["is_human"]) == (True, "k", False)
    assert (two["format"], two["content"], two["reply_to_seq"], two["reply_to_agent"]) == (
        *("json", {"a": [1, None]}, 1, first.agent_id),
    )
    assert (three["supersedes_seq"], three["to"]) == (2, None)
    assert one["at"].endswith("Z")


def test_the_room_may_stand_behind_the_options(alice: InProcess, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    alice.enter_room("a=b")
    alice.call("post_message", content="x")
    assert _lines(capfdbinary, "--format", "jsonl", "a=b") == _lines(capfdbinary, "a=b", "--format=jsonl")


def test_markdown_quotes_what_was_written(
    alice: InProcess, bob: InProcess, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    alice.persona()
    alice.call("create_room", name="the *hall*", description="about", pinned="one\n# two")
    author = alice.call("join_room", room="1")["agent_id"]
    other = bob.persona()
    alice.call("post_message", content="# 99. fake heading\u2028## fake\r\x0b> x\n\ttab", to=[other.agent_id, "<b>"])
    alice.call("post_message", content={"code": "````"}, reply_to_seq=1, supersedes_seq=1, priority=True)
    lines = _lines(capfdbinary, "1")
    assert lines[:6] == ["# the \\*hall\\*", "", "> about", "", "> one", "> # two"]
    assert lines[7].startswith(f"## 1. {author}, 2")
    assert lines[7].endswith(f"; to {other.agent_id}, \\<b\\>")
    assert lines[9:14] == ["> # 99. fake heading", "> ## fake", ">", "> > x", ">     tab"]
    assert lines[15].endswith("; priority; answers 1; replaces 1")
    assert lines[17:] == ["`````json", '{"code":"````"}', "`````"]


def test_controls_are_spelled_out_in_a_file_and_other_letters_kept(
    alice: InProcess, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    alice.enter_room()
    alice.call("post_message", content="a\x1b[2Jb \x9b1m 👩‍👧 \u202e")
    assert _lines(capfdbinary, "hall")[-1] == "> a<U+001B>[2Jb <U+009B>1m 👩‍👧 \u202e"


def test_a_message_that_another_program_stored_as_broken_json_is_exported_as_it_is(
    alice: InProcess, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    persona = alice.enter_room()
    with alice.database.write():
        alice.database.run(
            "INSERT INTO messages (room_id, seq, agent_id, format, body, body_len) VALUES (1, 1, ?, 'json', '{', 1)",
            persona.agent_id,
        )
    assert json.loads(_lines(capfdbinary, "hall", "--format=jsonl")[0])["content"] == "{"


def _on_a_terminal(path: Path, *words: str) -> str:
    """What the command writes to a terminal."""
    reader, writer = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "simplexmcp", "rooms", "export", *words],
        stdout=writer,
        env=os.environ | {"SIMPLEXMCP_ROOMS_DB": str(path)},
    )
    os.close(writer)
    shown = b""
    while True:
        try:
            chunk = os.read(reader, 65536)
        except OSError:  # the other end is closed
            break
        if not chunk:
            break
        shown += chunk
    os.close(reader)
    assert process.wait(20) == 0
    return shown.decode()


def test_on_a_terminal_nothing_of_a_message_is_active(alice: InProcess, path: Path) -> None:
    alice.persona()
    alice.call("create_room", name="\x1b]0;owned\x07 \u202ehall")
    alice.call("join_room", room="1")
    alice.call("post_message", content="\x1b[31mred\u202e \x9b2J")
    alice.call("post_message", content={"\x1b": "\u202e"}, to=["a\u202eb"])
    for form in ("md", "jsonl"):
        shown = _on_a_terminal(path, "1", "--format", form)
        assert not {letter for letter in shown if letter in "\x1b\x07\x9b\u202e"}
        assert "red" in shown


def test_wrong_usage_is_one_line_and_code_2(
    alice: InProcess, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    alice.enter_room()
    for words, code in (
        (["hall", "--format", "xml"], 2),
        (["hall", "--what"], 2),
        (["hall", "--format"], 2),
        (["hall", "more"], 2),
        (["--format", "md"], 2),
        (["nowhere"], 1),
        (["hall", "--db", str(tmp_path / "none.db")], 1),
    ):
        assert run(["export", *words]) == code
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("simplexmcp rooms: ")
        assert err.count("\n") == 1
    assert not (tmp_path / "none.db").exists()
    assert run(["export", "--help"]) == run(["export", "hall", "--help"]) == 0
    assert run(["export"]) == 2


def test_a_reader_that_stops_early_ends_the_export(alice: InProcess, path: Path) -> None:
    alice.enter_room()
    for _ in range(20):
        alice.call("post_message", content="x" * 50_000)
    process = subprocess.Popen(
        [sys.executable, "-m", "simplexmcp", "rooms", "export", "hall"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"SIMPLEXMCP_ROOMS_DB": str(path)},
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == b"# hall\n"
    process.stdout.close()
    errors = process.stderr.read().decode()
    process.stderr.close()
    assert process.wait(20) == 1
    assert errors == "simplexmcp rooms: nobody reads the output any more; the export is not complete.\n"


def test_the_export_is_one_moment_of_the_room(
    alice: InProcess, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    alice.enter_room()
    for number in range(3):
        alice.call("post_message", content=f"before {number}")
    from simplexmcp.rooms import export

    emit = export.emit

    def emit_and_post(line: str) -> None:
        emit(line)
        if "before 0" in line:
            alice.call("post_message", content="meanwhile")

    monkeypatch.setattr(export, "emit", emit_and_post)
    lines = _lines(capfdbinary, "hall", "--format", "jsonl")
    contents: list[Any] = [json.loads(line)["content"] for line in lines]
    assert contents == ["before 0", "before 1", "before 2"]
