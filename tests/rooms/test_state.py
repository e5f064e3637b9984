from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from simplexmcp.errors import UserError
from simplexmcp.rooms import state

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state" / "simplexmcp" / "rooms" / "x" / "y.json"


def test_the_files_are_where_the_system_says_and_private(file: Path, monkeypatch: pytest.MonkeyPatch):
    assert state.file_in("x", "y.json") == str(file)
    state.write(str(file), {"a": "\u00e4"})
    assert json.loads(file.read_text("utf-8")) == {"a": "\u00e4"}
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert [other.name for other in file.parent.iterdir()] == ["y.json"]
    monkeypatch.delenv("XDG_STATE_HOME")
    assert state.file_in("x", "y.json") == str(Path.home() / ".local/state/simplexmcp/rooms/x/y.json")


def test_a_missing_file_is_empty_and_a_damaged_one_is_named(file: Path):
    assert state.read(str(file)) == {}
    file.parent.mkdir(parents=True)
    for text in ("", "{", "[]"):
        file.write_text(text)
        with pytest.raises(UserError, match=r"y\.json is damaged"):
            state.read(str(file))


def test_a_change_is_stored_unless_the_block_fails(file: Path):
    with state.alter(str(file)) as value:
        value["a"] = 1
    with pytest.raises(ZeroDivisionError), state.alter(str(file)) as value:
        value.update(a=2, b=1 // 0)
    with pytest.raises(KeyError), state.alter(str(file)) as value:
        assert value.pop("a") == value["a"]
    assert state.read(str(file)) == {"a": 1}


def test_what_nobody_changed_is_not_written(file: Path):
    with state.alter(str(file)) as value:
        assert value == {}
    assert not file.exists()


def test_a_lock_that_never_opens_is_given_up(file: Path, monkeypatch: pytest.MonkeyPatch):
    moments: Iterator[float] = iter(range(0, 100, 2))
    monkeypatch.setattr(state, "time", SimpleNamespace(monotonic=lambda: next(moments), sleep=lambda _seconds: None))
    with state.alter(str(file)) as value:
        value["a"] = 1
        with pytest.raises(UserError, match=r"keeps .*y\.json locked"), state.alter(str(file)):
            pytest.fail("two at once")
    assert state.read(str(file)) == {"a": 1}


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path):
    (tmp_path / "state").rmdir()
    (tmp_path / "state").write_text("")
    for act in (lambda path: state.write(path, {}), lambda path: state.alter(path).__enter__()):
        with pytest.raises(UserError, match=r"Cannot write .*y\.json"):
            act(state.file_in("x", "y.json"))
