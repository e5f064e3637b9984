from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplexmcp.errors import Refused, UserError
from simplexmcp.journal import Journal


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "actions.jsonl"


def left(file: Path) -> list[dict]:
    journal = Journal(file)
    journal.close()
    return list(journal.left)


def test_a_new_journal_is_empty_and_private(file: Path):
    assert left(file) == []
    assert file.stat().st_mode & 0o777 == 0o600


def test_the_next_start_finds_what_a_crash_left_with_its_latest_fields(file: Path):
    journal = Journal(file)
    journal.write(7, state="pending", card="I want …")
    journal.write(8, state="pending")
    journal.write(7, item=55)
    journal.write(7, durable=False, state="performing", by="Alice")
    assert left(file) == [
        {"n": 7, "state": "performing", "card": "I want …", "item": 55, "by": "Alice"},
        {"n": 8, "state": "pending"},
    ]
    journal.close()


def test_an_ended_action_is_not_found_again(file: Path):
    journal = Journal(file)
    journal.write(7, state="pending")
    journal.write(8, state="pending")
    journal.end(7)
    journal.close()
    assert left(file) == [{"n": 8, "state": "pending"}]


def test_a_start_that_crashes_too_loses_nothing(file: Path):
    journal = Journal(file)
    journal.write(7, state="pending")
    journal.close()
    assert left(file) == left(file) == [{"n": 7, "state": "pending"}]


def test_starting_keeps_only_what_is_open(file: Path):
    journal = Journal(file)
    for number in range(100):
        journal.write(number, durable=False, state="pending")
        journal.end(number)
    journal.write(100, state="pending")
    journal.close()
    Journal(file).close()
    assert [json.loads(line) for line in file.read_text().splitlines()] == [{"n": 100, "state": "pending"}]


@pytest.mark.parametrize("torn", [b'{"n":9,"sta', b"\x00\x00\x00", b"[1]\n", b'{"n":"9"}\n', b'{"n":true}\n', b"\n"])
def test_a_torn_or_foreign_line_is_skipped(file: Path, torn: bytes):
    file.write_bytes(b'{"n":7,"state":"pending"}\n' + torn)
    assert left(file) == [{"n": 7, "state": "pending"}]


def test_a_record_after_a_torn_line_is_kept(file: Path):
    file.write_bytes(b'{"n":7,"state":"pending"}\n{"n":8,"st')
    journal = Journal(file)
    journal.write(9, state="pending")
    journal.close()
    assert [entry["n"] for entry in left(file)] == [7, 9]


def test_a_record_is_on_the_disk_when_it_is_durable(file: Path, monkeypatch: pytest.MonkeyPatch):
    journal = Journal(file)
    synced: list[bytes] = []
    monkeypatch.setattr(os, "fsync", lambda _: synced.append(file.read_bytes()))
    journal.write(7, state="pending")
    journal.write(7, durable=False, state="performing")
    assert synced == [b'{"n":7,"state":"pending"}\n']
    journal.close()


def test_a_full_disk_refuses_the_action_and_does_not_spoil_the_next_record(file: Path, monkeypatch: pytest.MonkeyPatch):
    journal = Journal(file)
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:10]))
    with pytest.raises(Refused, match="No space left"):
        journal.write(7, state="pending")
    monkeypatch.undo()
    journal.write(8, state="pending")
    journal.close()
    assert left(file) == [{"n": 8, "state": "pending"}]


def test_an_end_that_a_full_disk_refuses_is_left_to_the_next_start(
    file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    journal = Journal(file)
    journal.write(7, state="pending")
    with monkeypatch.context() as disk:
        disk.setattr(os, "write", lambda fd, data: 0)
        journal.end(7)
    assert "The end of action 7 is not in the journal" in caplog.text
    journal.close()
    assert left(file) == [{"n": 7, "state": "pending"}]


def test_a_long_journal_without_open_actions_is_emptied(file: Path):
    journal = Journal(file)
    journal.write(1, durable=False, card="x" * 300_000)
    journal.end(1)
    assert file.stat().st_size == 0
    journal.write(2, state="pending")
    journal.close()
    assert left(file) == [{"n": 2, "state": "pending"}]


def test_a_symlink_is_not_followed(file: Path, tmp_path: Path):
    other = tmp_path / "other"
    other.write_text("mine\n")
    file.symlink_to(other)
    Journal(file).close()
    assert other.read_text() == "mine\n"


def test_a_disk_that_refuses_the_start_gives_one_line(file: Path):
    file.mkdir()
    with pytest.raises(UserError, match=r"actions\.jsonl: Is a directory"):
        Journal(file)


@given(
    st.lists(st.tuples(st.integers(1, 4), st.sampled_from(["write", "end"]), st.integers())),
    st.integers(0, 400),
)
def test_whatever_was_cut_off_the_rest_is_a_state_that_was(steps: list[tuple[int, str, int]], cut: int):
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "actions.jsonl"
        journal = Journal(file)
        model: dict[int, dict] = {}
        states: list[list[dict]] = [[]]
        for number, step, value in steps:
            if step == "write":
                journal.write(number, durable=False, value=value)
                model[number] = {"n": number, "value": value}
            else:
                journal.end(number)
                model.pop(number, None)
            states.append(sorted((dict(e) for e in model.values()), key=lambda e: e["n"]))
        journal.close()
        data = file.read_bytes()
        file.write_bytes(data[: max(0, len(data) - cut)])
        assert sorted(left(file), key=lambda e: e["n"]) in states
