"""Names of agents, and where their data folders are. Light: the completion of names waits for it."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

from simplexmcp.errors import UserError
from simplexmcp.terminal import printable

__all__ = ["agent_names", "check_name", "data_folder", "data_root", "default_data", "quoted"]

_NAME_LIMIT = 64  # characters; four bytes each fit a file name


def check_name(name: str) -> str:
    """`name`, when it can be an agent's: it becomes a folder and part of a server's name. Raises UserError
    (code 2)."""
    why = _name_fault(name)
    if why:
        raise UserError(f"Agent name {quoted(name)} {why}. Choose another, such as my-agent.", 2)
    return name


def agent_names() -> list[str]:
    """The agents in the user's data folder, sorted: those that a server was started for. Raises UserError."""
    root = data_root()
    try:
        with os.scandir(root) as entries:
            names = [entry.name for entry in entries if not _name_fault(entry.name) and entry.is_dir()]
        return sorted(name for name in names if (root / name / "lock").exists())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise UserError(f"{printable(str(root))} can't be read: {error.strerror}. Repair it.") from error


def data_root() -> Path:
    """The folder of the data folders: the user's data folder of this system."""
    from platformdirs import user_data_path

    return user_data_path("simplexmcp", appauthor=False)


def default_data(name: str) -> Path:
    """The data folder of agent `name` when `--data` is not given."""
    return data_root() / name


def data_folder(name: str, data: Path | None) -> Path:
    """The absolute data folder that `--data` or the agent's name gives. Symlinks stay as they are. Raises
    UserError."""
    path = Path(os.path.normpath(Path.cwd() / (data if data is not None else default_data(name))))
    try:
        os.fspath(path).encode()
    except UnicodeEncodeError:
        raise UserError(f"Data folder {quoted(path)}: its path is not valid UTF-8. Choose another.", 2) from None
    return path


def quoted(text: object) -> str:
    """A foreign name in quotes, inert and not too long."""
    return f'"{printable(str(text))[:200]}"'


def _name_fault(name: str) -> str | None:
    if not name or name != name.strip():
        return "is empty, or begins or ends with a blank"
    if len(name) > _NAME_LIMIT:
        return f"is longer than {_NAME_LIMIT} characters"
    if "/" in name or "\\" in name:
        return "has a path separator"
    if name[0] in ".-":
        return "begins with a dot or a dash"
    if any(unicodedata.category(c)[0] == "C" or unicodedata.category(c) in ("Zl", "Zp") for c in name):
        return "has a character that is not visible"
    return None
