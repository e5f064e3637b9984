from __future__ import annotations

import sys
from pathlib import Path

import pytest

from simplexmcp import cli
from simplexmcp.agents import agent_names, check_name, data_folder, default_data
from simplexmcp.errors import UserError


@pytest.mark.parametrize("name", ["my-agent", "Мой агент", "it's $(me)", "a.b", "1", "x" * 64])
def test_names_that_make_a_folder_are_accepted(name: str):
    assert check_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        " a",
        "a ",
        ".",
        "..",
        ".hidden",
        "-x",
        "a/b",
        "../a",
        "/a",
        "a\\b",
        "a\nb",
        "a\0b",
        "a\u202eb",
        "a\u200b",
        "\ud800",
        "a\u2028b",
        "x" * 65,
    ],
)
def test_other_names_are_refused_with_one_inert_line(name: str):
    with pytest.raises(UserError) as refused:
        check_name(name)
    assert refused.value.code == 2
    assert str(refused.value).isprintable()


def test_the_default_folder_is_in_the_user_s_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    if sys.platform == "linux":
        assert default_data("my-agent") == tmp_path / "simplexmcp" / "my-agent"
    assert data_folder("my-agent", None) == default_data("my-agent")


def test_a_relative_folder_becomes_absolute_without_following_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert data_folder("my-agent", Path("-x/../y")) == tmp_path / "y"


def test_a_path_that_no_client_can_be_told_is_refused(tmp_path: Path):
    with pytest.raises(UserError, match="not valid UTF-8"):
        data_folder("my-agent", tmp_path / "\udcff")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return default_data("x").parent


def test_the_agents_are_those_that_were_started_and_can_be_named(root: Path):
    for name in ("zoe", "my agent", "Мой", ".hidden", "evil\x1b[2J"):
        (root / name).mkdir(parents=True)
        (root / name / "lock").touch()
    (root / "other").mkdir()
    (root / "file").touch()
    assert agent_names() == ["my agent", "zoe", "Мой"]


def test_before_the_first_start_there_are_no_agents(root: Path):
    assert agent_names() == []


def test_a_folder_that_can_not_be_read_is_told(root: Path):
    root.parent.mkdir(exist_ok=True)
    root.touch()
    with pytest.raises(UserError, match="can't be read: Not a directory"):
        agent_names()


def test_the_hidden_command_for_completion_prints_a_name_a_line(root: Path, capsys: pytest.CaptureFixture[str]):
    for name in ("b", "a c"):
        (root / name).mkdir(parents=True)
        (root / name / "lock").touch()
    assert cli.run(["_names"]) == 0
    assert capsys.readouterr() == ("a c\nb\n", "")
