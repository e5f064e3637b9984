"""What the guide says of clients that give up a call, held against the clients that the program knows."""

from __future__ import annotations

import re
from pathlib import Path

from simplexmcp.clients import CLIENTS

GUIDE = (Path(__file__).parents[1] / "docs" / "agent-guide.md").read_text("utf-8")
SECTIONS = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", GUIDE, re.MULTILINE | re.DOTALL))


def rows(section: str) -> dict[str, list[str]]:
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.split("\n") if line[:2] == "| "]
    return {row[0]: row[1:] for row in cells[1:]}


def test_the_guide_says_for_each_client_how_long_it_waits_and_how_to_attach_again() -> None:
    limits = rows(SECTIONS["Time limits of clients"])
    known = {
        name.lower().split(" ", 1)[0] if "Claude" not in name else name.lower().replace(" ", "-") for name in limits
    }
    assert {client.replace("vscode", "vs") for client in CLIENTS} | {"claude-code"} == known
    assert all(wait and done for wait, done in limits.values())
    assert "The same call with the same arguments attaches to it" in SECTIONS["Attaching again"]
