"""Every command of the program as data, for what is generated: from the parsers, and for the rooms from their help."""

from __future__ import annotations

import contextlib
import io
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from simplexmcp import cli
from simplexmcp.arguments import PARSERS
from simplexmcp.rooms import cli as rooms_cli

if TYPE_CHECKING:
    import argparse

__all__ = ["Command", "Option", "commands", "rooms_commands"]

_ROW = re.compile(r"  (\S.*?)(?:  +(\S.*))?")
_EXITS = re.compile(r"Exit codes: (.*)", re.DOTALL)
_USAGE = re.compile(r"[Uu]sage:? *")
_LISTED = re.compile(r"^  (\w[\w-]*)(?: \S+)*?  +(\S.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Option:
    """An option, or a positional argument when it has no dashes."""

    names: tuple[str, ...]
    value: str
    """What follows it, as in the help; empty for a flag."""
    help: str
    choices: tuple[str, ...] = ()
    positional: bool = False


@dataclass(frozen=True)
class Command:
    """A command: its words after `simplexmcp`, what it does in one line, and its help in parts."""

    words: tuple[str, ...]
    what: str
    usage: tuple[str, ...]
    description: tuple[str, ...]
    """Paragraphs."""
    options: tuple[Option, ...]
    lists: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()
    """Further lists of the help, with their headings: names and what they mean."""
    exits: str = ""

    @property
    def name(self) -> str:
        """As in `simplexmcp-rooms-watch`."""
        return "-".join(("simplexmcp", *self.words))


def commands() -> list[Command]:
    """The commands with parsers, in the order of the help."""
    listed = dict(_LISTED.findall(cli.HELP))
    return [_parsed(name, listed[name]) for name in PARSERS]


def rooms_commands() -> list[Command]:
    """`rooms`, and each of its commands."""
    overview = _help()
    listed = dict(_LISTED.findall(overview))
    first = _read(("rooms",), "chat rooms for agents and people on one computer", overview)
    return [first, *(_read(("rooms", name), does, _help(name)) for name, does in listed.items())]


def _parsed(name: str, what: str) -> Command:
    parser = PARSERS[name](prog=f"simplexmcp {name}")
    options = tuple(sorted(map(_option, parser.options()), key=lambda option: not option.positional))
    return Command((name,), what, (parser.usage or "",), (" ".join((parser.description or "").split()),), options)


def _option(action: argparse.Action) -> Option:
    choices = tuple(str(choice) for choice in action.choices or ())
    value = "|".join(choices) if choices and action.option_strings else str(action.metavar or "")
    if action.option_strings and action.nargs == 0:
        value = ""
    if action.nargs == "?" and action.option_strings:
        value = f"[{value}]"
    if action.nargs == "+":
        value += " ..."
    return Option(
        tuple(action.option_strings) or (value,), value if action.option_strings else "", action.help or "", choices,
        positional=not action.option_strings,
    )  # fmt: skip


def _help(*words: str) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = rooms_cli.run([*words, "--help"])
    assert code == 0, words
    return printed.getvalue()


def _read(words: tuple[str, ...], what: str, text: str) -> Command:
    """The parts of a help text: usage, paragraphs, options, other lists, exit codes."""
    usage: tuple[str, ...] = ()
    description, options, lists, exits = [], list[Option](), [], ""
    for block in text.strip().split("\n\n"):
        lines = block.splitlines()
        if _USAGE.match(block):
            usage = tuple(_USAGE.sub("", line.strip()) for line in lines)
            continue
        if lines[0].endswith(":") and len(lines) > 1 and lines[1].startswith("  "):
            lists.append((lines[0][:-1], tuple(_rows(lines[1:]))))
        elif lines[0].startswith("  "):
            options += [_rooms_option(name, does) for name, does in _rows(lines)]
        else:
            paragraph = " ".join(lines)
            if found := _EXITS.search(paragraph):
                exits, paragraph = found[1], paragraph[: found.start()].rstrip()
            if paragraph:
                description.append(paragraph)
    options = [*_positional(words, usage), *options]
    return Command(words, what, usage, tuple(description), tuple(options), tuple(lists), exits)


def _positional(words: tuple[str, ...], usage: tuple[str, ...]) -> list[Option]:
    """What stands right after the command in its usage, when that is no option."""
    after = usage[0].removeprefix(f"simplexmcp {' '.join(words)}").split()
    if not after or not re.fullmatch(r"[A-Z]+|[a-z]+(\|[a-z]+)+", after[0]) or after[0] == "COMMAND":
        return []
    choices = tuple(after[0].split("|")) if "|" in after[0] else ()
    name = "CLIENT" if choices else after[0]
    text = f"{', '.join(choices[:-1])} or {choices[-1]}" if choices else f"ID or exact name of a {name.lower()}"
    return [Option((name,), "", text, choices, positional=True)]


def _rows(lines: list[str]) -> list[tuple[str, str]]:
    rows = list[tuple[str, str]]()
    for line in lines:
        if line.startswith("   "):
            name, does = rows.pop()
            rows.append((name, f"{does} {line.strip()}"))
        else:
            found = _ROW.fullmatch(line)
            assert found, line
            rows.append((found[1], found[2] or ""))
    return rows


def _rooms_option(heading: str, does: str) -> Option:
    name, _, value = heading.partition(" ")
    choices = tuple(value.split("|")) if re.fullmatch(r"[a-z]+(\|[a-z]+)+", value) else ()
    return Option((name,), value, does, choices)
