"""The static files of a site, from the package: read once, served from memory."""

from __future__ import annotations

from importlib.resources import files
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from simplexmcp.web.answers import Answer

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["PREFIX", "load_assets"]

PREFIX = "/assets/"

_KINDS = {
    ".css": b"text/css; charset=utf-8",
    ".html": b"text/html; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".png": b"image/png",
    ".svg": b"image/svg+xml",
    ".webp": b"image/webp",
}


def load_assets(*packages: str) -> Mapping[str, Answer]:
    """The files of the folders `assets` of these packages, by name; those of `web` are always there."""
    found: dict[str, Answer] = {}
    for package in ("simplexmcp.web", *packages):
        for entry in files(package).joinpath("assets").iterdir():
            kind = _KINDS.get(PurePosixPath(entry.name).suffix)
            if entry.is_file() and kind is not None:
                found[entry.name] = Answer(body=entry.read_bytes(), kind=kind)
    return found
