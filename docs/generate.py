"""Writes what is generated: the manual pages, the completions, the table of states in flows.md.

`python -m docs.generate` writes the files, `--check` only says which are out of date (exit code 1).
"""

from __future__ import annotations

import argparse
import dataclasses
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import shtab

from docs.commands import Option, rooms_commands
from docs.manpages import manual_pages
from simplexmcp import cli
from simplexmcp.arguments import PARSERS
from simplexmcp.completion import FILES
from simplexmcp.states import table_as_markdown

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).resolve().parent.parent
# How a shell finds the names of agents: it asks the program, which knows where their folders are.
NAMES = {
    "bash": "_simplexmcp_names",
    "zsh": "_simplexmcp_names",
    "fish": "(simplexmcp _names 2>/dev/null)",
    "preamble": {
        "bash": r"""
_simplexmcp_names() {
  local name
  simplexmcp _names 2>/dev/null | while IFS= read -r name; do
    if [[ "$name" == "$1"* ]]; then printf '%q\n' "$name"; fi
  done
}
""",
        "zsh": r"""
_simplexmcp_names() {
  local -a names
  names=(${(f)"$(simplexmcp _names 2>/dev/null)"})
  compadd -a names
}
""",
    },
}
CORES = {
    "bash": "_simplexmcp_cores",
    "zsh": "(native sandbox)",
    "fish": "native sandbox",
    "preamble": {"bash": '_simplexmcp_cores() {\n  compgen -W "native sandbox" -- "$1"\n}\n'},
}
# What completes a value, by the word that stands for it in the help.
VALUES = {"DIR": shtab.DIRECTORY, "FILE": shtab.FILE, "NAME": NAMES, "CORE": CORES}


def main() -> int:
    """Writes or checks the files; the exit code."""
    check = sys.argv[1:] == ["--check"]
    stale = [path for path, text in generated().items() if not path.exists() or path.read_text() != text]
    for path in stale:
        if check:
            print(f"{path.relative_to(ROOT)} is out of date: make docs", file=sys.stderr)
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(generated()[path])
    return 1 if check and stale else 0


def generated() -> dict[Path, str]:
    """Every generated file and its text."""
    files = {ROOT / "completions" / name: shtab.complete(whole_parser(), shell) + "\n" for shell, name in FILES.items()}
    files |= {ROOT / "man" / name: text for name, text in manual_pages().items()}
    flows = ROOT / "docs" / "flows.md"
    files[flows] = re.sub(
        r"(?s)(<!-- states: .*? -->\n).*?(<!-- end -->)",
        lambda found: f"{found[1]}{table_as_markdown()}\n{found[2]}",
        flows.read_text(),
    )
    return files


def whole_parser() -> argparse.ArgumentParser:
    """All commands in one parser: the program itself makes only the one that it needs."""
    whole = argparse.ArgumentParser(prog="simplexmcp", description=cli.HELP.split("\n\n")[1])
    whole.add_argument("--version", action="store_true", help="print the version")
    commands = whole.add_subparsers()
    for name, parser in PARSERS.items():
        part = parser(prog=f"simplexmcp {name}")
        add_command(commands, name, part, part.options())
    add_rooms(commands)
    return whole


def add_command(commands: Any, name: str, parser: argparse.ArgumentParser, actions: Iterable[argparse.Action]) -> None:
    """Adds a command with its options to the whole; their values are completed by VALUES."""
    for action in actions:
        if isinstance(action.metavar, str) and not action.choices and action.metavar in VALUES:
            action.complete = VALUES[action.metavar]  # type: ignore[attr-defined]
    commands.add_parser(name, help=first_sentence(parser), parents=[parser], add_help=False)


def add_rooms(commands: Any) -> None:
    """Adds the commands of the rooms, which have no parsers: what their help says."""
    first, *rest = rooms_commands()
    rooms = commands.add_parser("rooms", help=first.what, description=first.what).add_subparsers()
    for command in rest:
        part = rooms.add_parser(command.words[-1], help=command.what, description=command.what)
        for option in merged(command.options):
            add_option(part, option)


def merged(options: Iterable[Option]) -> list[Option]:
    """Options that the help explains value by value, once each; `--help` is the parser's own."""
    found = dict[str, Option]()
    for option in options:
        if (before := found.get(option.names[0])) is not None:
            found[option.names[0]] = dataclasses.replace(before, choices=(before.value, option.value))
        elif option.names[0] != "--help":
            found[option.names[0]] = option
    return list(found.values())


def add_option(part: argparse.ArgumentParser, option: Option) -> None:
    """One option of a command of the rooms."""
    name, does = option.names[0], option.help.split("; ")[0]
    if not option.positional and not option.value:
        part.add_argument(name, action="store_true", help=does)
        return
    choices = {"choices": option.choices} if option.choices else {}
    metavar = name if option.positional else option.value
    added = part.add_argument(name, help=does, metavar=metavar, **choices)
    if option.value == "PATH":
        added.complete = shtab.FILE  # type: ignore[attr-defined]


def first_sentence(parser: argparse.ArgumentParser) -> str:
    """What a command does, in short."""
    return (parser.description or "").split(". ")[0].split(": ")[0].rstrip(".")


if __name__ == "__main__":
    sys.exit(main())
