"""Writes what is generated: the manual page, the completions, the table of states in flows.md.

`python docs/generate.py` writes the files, `--check` only says which are out of date (exit code 1).
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

import shtab

from simplexmcp import cli
from simplexmcp.arguments import PARSERS
from simplexmcp.states import table_as_markdown

ROOT = Path(__file__).resolve().parent.parent
SHELLS = {"bash": "simplexmcp.bash", "zsh": "_simplexmcp", "fish": "simplexmcp.fish"}
FILES = {"DIR": shtab.DIRECTORY, "FILE": shtab.FILE}

TAIL = r"""
.SH FILES
.TP
.I ~/.local/share/simplexmcp/NAME
The data folder of agent NAME on Linux: keys, databases, token, logs. Mode 0700; symlinks are refused.
.TP
.I DIR/token
The secret that an MCP client sends as
.BR "Authorization: Bearer" .
.TP
.I DIR/audit.jsonl
What was asked, by whom it was decided, what happened; one JSON object a line.
.SH EXIT STATUS
0 done, 1 failed, 2 wrong usage or a value that does not fit, 130 interrupted during start.
.SH SECURITY
With
.BR "\-\-core native" ,
the default, no other program can send as the agent. The port of a running
.B simplex\-chat
has no password: with
.B \-\-core ws://
every program that can open it sends without approval.
"""


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
    files = {
        ROOT / "completions" / name: shtab.complete(whole_parser(), shell) + "\n" for shell, name in SHELLS.items()
    }
    files[ROOT / "man" / "simplexmcp.1"] = manual()
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
        for action in part.options():
            if action.metavar in FILES:
                action.complete = FILES[action.metavar]  # type: ignore[attr-defined]
        commands.add_parser(name, help=first_sentence(part), parents=[part], add_help=False)
    return whole


def manual() -> str:
    """The manual page."""
    lines = [
        '.TH SIMPLEXMCP 1 "" simplexmcp "User Commands"',
        ".SH NAME",
        r"simplexmcp \- a presence in SimpleX for an AI agent, approved by its owner",
        ".SH SYNOPSIS",
        r".B simplexmcp",
        r".I COMMAND",
        r"[\fIoptions\fR]",
        ".SH DESCRIPTION",
        roff(cli.HELP.split("\n\n")[1]),
        ".SH COMMANDS",
    ]
    for name, parser in PARSERS.items():
        part = parser(prog=f"simplexmcp {name}")
        lines += [f".SS {roff(part.usage or name)}", roff(part.description or "")]
        for action in part.options():
            lines += [".TP", heading(action), roff(action.help or "")]
    return "\n".join(lines) + TAIL


def heading(action: argparse.Action) -> str:
    """An option with its value."""
    names = ", ".join(rf"\fB{roff(option)}\fR" for option in action.option_strings)
    value = "|".join(str(choice) for choice in action.choices) if action.choices else str(action.metavar or "")
    if not names:
        return rf"\fI{roff(value)}\fR"
    if action.nargs == 0 or not value:
        return names
    shown = rf"\fI{roff(value)}\fR"
    return f"{names} {f'[{shown}]' if action.nargs == '?' else shown}{' ...' if action.nargs == '+' else ''}"


def first_sentence(parser: argparse.ArgumentParser) -> str:
    """What a command does, in short."""
    return (parser.description or "").split(". ")[0].split(": ")[0].rstrip(".")


def roff(text: str) -> str:
    """Text as roff shows it unchanged, on one line."""
    escaped = " ".join(text.split()).replace("\\", r"\e").replace("-", r"\-").replace("'", r"\(aq")
    return rf"\&{escaped}" if escaped.startswith((".", "'")) else escaped


if __name__ == "__main__":
    sys.exit(main())
