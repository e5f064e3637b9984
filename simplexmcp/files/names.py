"""Names of files: a name from a peer or a path made safe for a disk, and sizes as a card shows them. Pure."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["NAME_BYTES", "extension", "safe_name", "shown_size", "stored_name"]

NAME_BYTES = 255
"""UTF-8 bytes of the longest file name, on every system that the program runs on."""

_FALLBACK = "file"
_EXTENSION = re.compile(r"[A-Za-z0-9]{1,16}")
# Not seen by a reader, or of a meaning that a name must not have: controls, bidi and zero width, surrogates, private
# use, unassigned, line separators.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_BLANK_LETTERS = frozenset("\u115f\u1160\u2800\u3164\uffa0\u034f\u17b4\u17b5")
_FORBIDDEN = frozenset('<>:"|?*')  # by Windows, where the receiver may be
_DEVICES = re.compile(r"(?:CON|PRN|AUX|NUL|CLOCK\$|CONIN\$|CONOUT\$|(?:COM|LPT)[0-9¹²³])(?=[. ]|$)", re.IGNORECASE)


def safe_name(name: str) -> str:
    """The name of a file that can be made in any folder of any system, near to `name`: its last path component,
    without what is unseen, no leading dot or dash, at most 255 bytes, no name of a device. Never empty (S36)."""
    name = re.split(r"[/\\]", name)[-1]
    name = unicodedata.normalize("NFC", "".join(char for char in name if _is_seen(char)))
    name = "".join("_" if char in _FORBIDDEN else " " if unicodedata.category(char) == "Zs" else char for char in name)
    # Normalising never makes an unseen character of seen ones, but may make a blank at an end.
    name = re.sub(" {2,}", " ", name).strip(" ").lstrip(".-~ ").rstrip(". ")
    if not name:
        return _FALLBACK
    if _DEVICES.match(name):
        name = f"_{name}"
    return _shortened(name)


def stored_name(file_id: int, name: str) -> str:
    """The name under which a received file is kept: its number, and the extension of `name` when it is a plain one
    (`7.pdf`)."""
    kind = extension(name)
    return f"{file_id}.{kind}" if kind else str(file_id)


def extension(name: str) -> str:
    """The extension of `name` without its dot, in small letters; "" when it has none of plain letters and digits."""
    stem, dot, kind = safe_name(name).rpartition(".")
    return kind.lower() if stem and dot and _EXTENSION.fullmatch(kind) else ""


def shown_size(size: int) -> str:
    """A size in bytes as a card shows it: `512 bytes`, `24 KB`, `2.4 MB`, `1 GB`; a KB has 1,024 bytes."""
    if size < 1024:
        return "1 byte" if size == 1 else f"{size} bytes"
    value, unit = size / 1024, "KB"
    for larger in ("MB", "GB", "TB"):
        if value < 999.5:  # what would be shown as 1000 is shown in the next unit
            break
        value, unit = value / 1024, larger
    text = f"{value:.1f}" if value < 99.95 else f"{value:.0f}"
    return f"{text.removesuffix('.0')} {unit}"


def _is_seen(char: str) -> bool:
    return unicodedata.category(char) not in _UNSEEN and char not in _BLANK_LETTERS


def _shortened(name: str) -> str:
    """`name` cut to the longest that a disk takes; a short extension stays."""
    if len(name.encode()) <= NAME_BYTES:
        return name
    stem, dot, kind = name.rpartition(".")
    tail = f".{kind}" if dot and stem and len(kind.encode()) <= 32 else ""
    body = (stem if tail else name).encode()[: NAME_BYTES - len(tail.encode())].decode(errors="ignore")
    return (body.rstrip(". ") or _FALLBACK) + tail
