"""`simplexmcp completion`: the scripts that the shells read. They are generated from the parsers (docs/generate.py) and
come with the package."""

from __future__ import annotations

from pathlib import Path

from simplexmcp.errors import UserError

__all__ = ["FILES", "completion_script"]

FILES = {"bash": "simplexmcp.bash", "zsh": "_simplexmcp", "fish": "simplexmcp.fish"}
"""The name of each shell's script."""

_HERE = Path(__file__).resolve().parent
# Inside an installed package, or beside it in a checkout.
_FOLDERS = (_HERE / "completions", _HERE.parent / "completions")


def completion_script(shell: str) -> str:
    """The script of a shell in FILES. Raises UserError when the package came without it."""
    for folder in _FOLDERS:
        if (file := folder / FILES[shell]).is_file():
            return file.read_text("utf-8")
    raise UserError(f"The completion script of {shell} is missing in this installation. Install simplexmcp again.")
