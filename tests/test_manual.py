"""The manual pages: complete, in order, well-formed, and their examples are taken by the program."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from docs.commands import Command, commands, rooms_commands
from docs.manpages import SECTIONS, examples
from simplexmcp.arguments import PARSERS, serve_options

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "man").glob("*.1"))
COMMANDS = [*commands(), *rooms_commands()]
NAMES = [command.name for command in COMMANDS]


def shown(page: Path) -> str:
    """A page as a reader sees it."""
    done = subprocess.run(
        ["mandoc", "-T", "utf8", "-O", "width=400", page], capture_output=True, text=True, timeout=60, check=True
    )
    return re.sub(".\b", "", done.stdout)


def test_every_command_has_a_page_and_every_page_a_command():
    assert {page.stem for page in PAGES} == {"simplexmcp", *NAMES}
    assert {page.stem for page in (ROOT / "docs" / "man").glob("*.md")} == {page.stem for page in PAGES}


@pytest.mark.needs("mandoc", "groff")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_is_well_formed(page: Path):
    for words in (["mandoc", "-T", "lint", "-W", "warning"], ["groff", "-ww", "-man", "-Tutf8", "-z"]):
        done = subprocess.run([*words, page], capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.needs("mandoc")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_its_sections_in_the_usual_order(page: Path):
    found = re.findall(r"(?m)^\.SH (.+)$", page.read_text())
    assert found == [section for section in SECTIONS if section in found]
    assert {"NAME", "SYNOPSIS", "DESCRIPTION", "EXAMPLES", "EXIT STATUS", "SEE ALSO"} <= set(found)
    assert re.search(rf"(?m)^ +{page.stem} [-–−] \S", shown(page))


@pytest.mark.needs("mandoc")
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_a_page_explains_every_option(command: Command):
    text = shown(ROOT / "man" / f"{command.name}.1")
    for option in command.options:
        for name in option.names:
            assert re.search(rf"(?m)^ +(-\w, )?{re.escape(name)}(,? .*)?$", text), name


def test_what_the_pages_refer_to_exists():
    foreign = {"systemctl", "journalctl"}
    for page in PAGES:
        for name in re.findall(r"([\w-]+)\(1\)", page.read_text().replace("\\-", "-").replace("\\fR", "")):
            assert name.removeprefix("fB") in {"simplexmcp", *NAMES, *foreign, page.stem.upper()}, page.name


def lines() -> list[str]:
    return [line for page in PAGES for line in examples(page.stem) if line.startswith("simplexmcp ")]


@pytest.mark.parametrize("line", lines())
def test_an_example_is_taken(line: str):
    _, *words = shlex.split(line)
    if words[0] == "rooms":
        command = next(command for command in rooms_commands() if command.words == ("rooms", words[1]))
        known = {name for option in command.options for name in option.names}
        assert {word for word in words if word.startswith("--")} <= known
        return
    args = PARSERS[words[0]](prog=f"simplexmcp {words[0]}").parse_args(words[1:])
    if words[0] == "serve":
        assert serve_options(args)
