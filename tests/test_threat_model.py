"""The threat model keeps its word: each "cannot" names its tests; each exception to a rule of security has a reason."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.test_requirements import collected

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "threat-model.md").read_text("utf-8")
SECTIONS = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
ROWS = [
    (title, *(cell.strip() for cell in row.strip("|").split("|")))
    for title, text in SECTIONS.items()
    for row in text.split("\n")
    if row.startswith("| ") and not row.startswith("| Cannot |")
]
ADVERSARIES = [
    "The agent", "A peer in a chat", "Another owner, and one who was removed", "Whoever gets the owner's link first",
    "Another program of the same user", "Another user of the computer", "A web page in the user's browser",
    "SimpleX relays, and who watches the network", "A core that says anything",
    "A thief of the data folder, or of a backup", "Agents and people in a room",
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=[f"{row[0]}: {row[1]}" for row in ROWS])
def test_each_cannot_names_tests_that_there_are(row: tuple[str, ...]) -> None:
    _, _, shown = row
    names = re.findall(r"`([^`]+)`", shown)
    assert names
    assert re.sub(r"`[^`]+`(, )?", "", shown) == ""
    for named in names:
        file, _, name = named.partition("::")
        assert name in collected(file), named


def test_each_adversary_has_its_section_and_what_it_cannot_do() -> None:
    assert [title for title in SECTIONS if "| Cannot |" in SECTIONS[title]] == ADVERSARIES
    assert {row[0] for row in ROWS} == set(ADVERSARIES)


def test_what_is_linked_is_there() -> None:
    for file in (ROOT / "docs" / "threat-model.md", ROOT / "SECURITY.md"):
        for path, anchor in re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)", file.read_text("utf-8")):
            target = file.parent / path if path else file
            titles = re.findall(r"^#+ (.+)$", target.read_text("utf-8"), re.MULTILINE)
            anchors = {re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-") for title in titles}
            assert not anchor or anchor in anchors, (path, anchor)


def test_what_is_not_promised_is_said() -> None:
    for said in ("without approval", "asks for no password", "is no authentication", "How to put it elsewhere"):
        assert said in PAGE
    assert "run the server as" in (ROOT / "SECURITY.md").read_text("utf-8")


def test_each_exception_to_a_rule_of_security_has_its_reason_beside_it() -> None:
    excepted = [
        (str(file.relative_to(ROOT)), line.partition("# noqa")[2])
        for folder in ("simplexmcp", "docs", "benchmarks")
        for file in (ROOT / folder).rglob("*.py")
        for line in file.read_text("utf-8").split("\n")
        if re.search(r"# noqa(\s*$|:[^-]*\bS\d)", line)
    ]
    assert len(excepted) > 5
    assert [where for where in excepted if not re.fullmatch(r": [A-Z0-9, ]+ - \w+.*", where[1])] == []


def test_each_rule_of_security_that_files_are_excepted_from_has_its_reason_above_it() -> None:
    lines = (ROOT / "pyproject.toml").read_text("utf-8").split("\n")
    start = lines.index("[tool.ruff.lint.per-file-ignores]")
    for number, line in enumerate(lines[start + 1 :], start + 1):
        if line.startswith("["):
            break
        if re.search(r'"S\d*"', line):
            assert lines[number - 1].startswith("# "), line
