"""Where a core keeps files: the folder for received ones, and the one for those that are half there.

A folder is made when the first file comes into it, so that a simulated core leaves nothing behind on the machine
before there is something to write.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from simplexmcp.sandbox import errors

if TYPE_CHECKING:
    from simplexmcp.sandbox.arguments import Arguments
    from simplexmcp.sandbox.core import Event, SimulatedCore

__all__ = ["set_files", "set_paths", "set_temporary"]

_PATHS = ("appFilesFolder", "appTempFolder", "appAssetsFolder")


def set_temporary(core: SimulatedCore, a: Arguments) -> Event:
    """`/_temp_folder PATH`."""
    core.temp_folder = Path(a.text("path"))
    return {"type": "cmdOk"}


def set_files(core: SimulatedCore, a: Arguments) -> Event:
    """`/_files_folder PATH`: from now on paths of files are relative to it, and files go with their messages."""
    core.files_folder = Path(a.text("path"))
    return {"type": "cmdOk"}


def set_paths(core: SimulatedCore, a: Arguments) -> Event:
    """`/set file paths {…}`: both at once."""
    paths: dict[str, Any] = a.object()
    if not all(isinstance(paths.get(key), str) for key in _PATHS):
        raise errors.parse_error()
    core.files_folder, core.temp_folder = Path(paths["appFilesFolder"]), Path(paths["appTempFolder"])
    return {"type": "cmdOk"}
