"""The manual pages: what the parsers and helps say (`commands`), and the prose in `docs/man/PAGE.md`.

The prose is a little Markdown: `## SECTION`, paragraphs, commands as indented blocks, and lists of terms, each a line
with its text indented below it. A section that the page has already is added to.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from docs.commands import Command, Option, commands, rooms_commands
from simplexmcp import cli

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["SECTIONS", "examples", "manual_pages"]

_PROSE = Path(__file__).resolve().parent / "man"
_DATE = "2026-12-01"  # of the last change that readers of the pages notice
SECTIONS = (
    "NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "COMMANDS", "EXAMPLES", "FILES", "ENVIRONMENT", "EXIT STATUS",
    "SECURITY", "SEE ALSO",
)  # fmt: skip
"""The order of the sections of every page."""

# What the help says below a heading, in words that stand alone.
_WHOLE = {
    "install-service": "keep an agent running, as a service of this user",
    "status": "is an agent running, since when, what waits",
    "unregister": "take an agent out of Claude Code",
}
_EXITS = "0 done, 1 failed, 2 wrong usage or a value that does not fit, 130 interrupted."


def manual_pages() -> dict[str, str]:
    """The text of every page by its file name."""
    rooms, *rooms_rest = rooms_commands()
    pages = [_main(commands(), rooms), *map(_page, commands()), _rooms(rooms, rooms_rest), *map(_page, rooms_rest)]
    return dict(pages)


def examples(page: str) -> list[str]:
    """The commands in the examples of a page, a line each."""
    section = dict(_prose(page)).get("EXAMPLES", "")
    return [line.strip() for line in section.splitlines() if re.match(r" {4}\S", line)]


def _main(parsed: list[Command], rooms: Command) -> tuple[str, str]:
    usage, description = cli.HELP.split("\n\n")[:2]
    sections = {
        "NAME": "simplexmcp - a presence in SimpleX for an AI agent, approved by its owner",
        "SYNOPSIS": usage.removeprefix("usage: "),
        "DESCRIPTION": description,
        "COMMANDS": "\n\n".join(f"{_reference(command)}\n    {command.what}" for command in (*parsed, rooms)),
        "EXIT STATUS": _EXITS,
        "SEE ALSO": ", ".join(map(_reference, (*parsed, rooms))),
    }
    return _written("simplexmcp", sections)


def _rooms(rooms: Command, rest: list[Command]) -> tuple[str, str]:
    sections = _described(rooms)
    sections["COMMANDS"] = "\n\n".join(f"{_reference(command)}\n    {command.what}" for command in rest)
    sections["SEE ALSO"] = ", ".join(["**simplexmcp**(1)", *map(_reference, rest)])
    return _written(rooms.name, sections)


def _page(command: Command) -> tuple[str, str]:
    return _written(command.name, _described(command))


def _described(command: Command) -> dict[str, str]:
    sections = {
        "NAME": f"{command.name} - {_WHOLE.get(command.words[-1], command.what).replace('? ', ', ')}",
        "SYNOPSIS": "\n\n".join(command.usage),
        "DESCRIPTION": "\n\n".join(command.description),
        "OPTIONS": "\n\n".join(map(_listed, command.options)),
        "EXIT STATUS": command.exits or _EXITS,
        "SEE ALSO": ", ".join(["**simplexmcp**(1)"] + ["**simplexmcp-rooms**(1)"] * (len(command.words) > 1)),
    }
    for heading, rows in command.lists:
        if heading == "environment":
            sections["ENVIRONMENT"] = "\n\n".join(f"{name}\n    {does}" for name, does in rows)
    return {name: text for name, text in sections.items() if text}


def _reference(command: Command) -> str:
    return f"**{command.name}**(1)"


def _listed(option: Option) -> str:
    if option.positional:
        return f"{option.names[0]}\n    {option.help}"
    names = ", ".join(f"**{name}**" for name in option.names)
    return f"{names}{f' {option.value}' if option.value else ''}\n    {option.help}"


def _written(page: str, sections: dict[str, str]) -> tuple[str, str]:
    for name, text in _prose(page):
        # An exit status or a list to see is said once; what else the prose says comes after the rest.
        joined = ", " if name == "SEE ALSO" else "\n\n"
        before = "" if name == "EXIT STATUS" else sections.get(name, "")
        sections[name] = f"{before}{joined if before else ''}{text}"
    unknown = set(sections) - set(SECTIONS)
    assert not unknown, (page, unknown)
    lines = [
        rf".\" Written by docs/generate.py; the prose is in docs/man/{page}.md.",
        f'.TH {page.upper()} 1 {_DATE} simplexmcp "User Commands"',
    ]
    for name in SECTIONS:
        if name in sections:
            lines += [f".SH {name}", *_body(sections[name], synopsis=name == "SYNOPSIS")]
    return f"{page}.1", "\n".join(lines) + "\n"


def _prose(page: str) -> list[tuple[str, str]]:
    file = _PROSE / f"{page}.md"
    parts = re.split(r"(?m)^## (.+)\n", file.read_text("utf-8")) if file.exists() else [""]
    assert not parts[0].strip(), page
    return [(name, text.strip("\n")) for name, text in zip(parts[1::2], parts[2::2], strict=True)]


def _body(text: str, *, synopsis: bool) -> Iterable[str]:
    first = True
    for block in text.split("\n\n"):
        lines = block.split("\n")
        if lines[0].startswith("    "):
            yield from (
                *(() if first else (".PP",)),
                ".RS 4",
                ".nf",
                *(_roff(line[4:]) for line in lines),
                ".fi",
                ".RE",
            )
        elif len(lines) > 1 and lines[1].startswith("    "):
            yield from (".TP", _marked(lines[0], term=True), _marked(" ".join(line.strip() for line in lines[1:])))
        else:
            if not first:
                yield ".PP"
            yield _synopsis(block) if synopsis else _marked(" ".join(lines))
        first = False


def _synopsis(text: str) -> str:
    """A usage line: words to type are bold, words that stand for others are italic."""
    shown = re.sub(r"(?<![\w-])(--?[a-z][a-z-]*|[a-z][a-z-]*)(?![\w-])", r"**\1**", text)
    shown = shown.replace("[**options**]", "[OPTION ...]")
    return _marked(shown, term=True)


def _marked(text: str, *, term: bool = False) -> str:
    """A line with `**bold**` and code; in a term, words in capitals are italic."""
    shown = _roff(text)
    shown = re.sub(r"\*\*(.+?)\*\*", r"\\fB\1\\fR", shown)
    shown = re.sub(r"`([^`]+)`", r"\\fB\1\\fR", shown)
    if term:
        shown = re.sub(r"(?<![\w(])([A-Z][A-Z_]*)(?![\w)])", r"\\fI\1\\fR", shown)
        shown = re.sub(r"\\f([BR])\\fI", r"\\fI", shown)
    return shown


def _roff(text: str) -> str:
    """Text as roff shows it unchanged, on one line."""
    escaped = text.replace("\\", r"\e").replace("-", r"\-").replace("'", r"\(aq").replace('"', r"\(dq")
    escaped = escaped.replace("~", r"\(ti").replace("^", r"\(ha").replace("…", r"\&...")
    return rf"\&{escaped}" if escaped.startswith((".", "'")) else escaped
