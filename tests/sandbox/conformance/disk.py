"""The disk of the machine on which the recordings were made, below a folder of this one: `/srv/CORE/…` and `/mnt`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

__all__ = ["Disk"]

_PATH = re.compile(r"(?<![\w.])/(srv|mnt)/")
_SOURCE = re.compile(r'"filePath":("(?:[^"\\]|\\.)+")')
_RELATIVE = '"filePath":"files/'
TOO_LARGE = (1 << 30) + 1
UNSAID = 3000
"""Bytes of a file of which the recording does not say the size."""


class Disk:
    """Files as the recorded commands need them, made just before."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def folder(self, core: str, name: str) -> Path:
        """A folder of a core, which is made."""
        folder = self.root / "srv" / core / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def command(self, core: str, command: str, answer: dict[str, Any] | None) -> str:
        """The command with the paths of this disk; what it needs is there, or not, as the answer says."""
        command = command.replace(_RELATIVE, f'"filePath":"/srv/{core}/files/')
        command = _PATH.sub(lambda m: f"{self.root}/{m[1]}/", command)
        if command.startswith("/_send ") and (source := _SOURCE.search(command)):
            self._make(Path(json.loads(source[1])), _size(answer))
        if command.startswith("/freceive ") and "fileAlreadyExists" in json.dumps(answer):
            Path(command.split(" ", 2)[2]).touch()
        return command

    def _make(self, path: Path, size: int | None) -> None:
        if size is not None and not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                file.truncate(size)

    def back(self, said: dict[str, Any]) -> dict[str, Any]:
        """What a core said, with the paths of the recording."""
        text = json.dumps(said)
        root = json.dumps(str(self.root))[1:-1]
        return json.loads(text.replace(root, "")) if root in text else said


def _size(answer: dict[str, Any] | None) -> int | None:
    """The size of the file that was sent; None when it was not there."""
    if answer is None:
        return UNSAID
    if answer["type"] == "newChatItems":
        return int(answer["chatItems"][0]["chatItem"]["file"]["fileSize"])
    text = json.dumps(answer)
    return None if "fileNotFound" in text else TOO_LARGE if '"fileSize"' in text else 1000
