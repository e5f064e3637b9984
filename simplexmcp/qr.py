"""A link as a QR code for the terminal, readable by a phone on dark and light themes."""

from __future__ import annotations

from itertools import groupby
from typing import Literal, TypeAlias

__all__ = ["QrSize", "qr_code"]

QrSize: TypeAlias = Literal["large", "small", "none"]

# Modules of light border, as the standard asks; they are part of the code, so that no theme can take them.
_QUIET = 4
# Colours of the fixed part of the 256-colour palette: a theme changes the named ones.
_DARK = "\x1b[48;5;16m"
_LIGHT = "\x1b[48;5;231m"
_DARK_ON_LIGHT = "\x1b[38;5;16;48;5;231m"
_RESET = "\x1b[0m"
# Without colours the ground is taken to be dark: what is light must be drawn.
_INVERTED = str.maketrans(" █▀▄", "█ ▄▀")


def qr_code(link: str, size: QrSize, *, columns: int = 0, colour: bool = True) -> str | None:
    """The lines of a QR code for `link`; None when none is wanted or it does not fit: then show the link
    alone.

    `large` has two columns a module, `small` two modules a character cell. A large code that is wider than
    `columns` (0: unknown) becomes a small one. Without `colour` it is drawn in blocks, for light text on a
    dark ground.
    """
    if size == "none":
        return None
    rows = _modules(link)
    if rows is None:
        return None
    if size == "large" and columns and 2 * len(rows) > columns:
        size = "small"
    if columns and len(rows) > columns:
        return None
    if size == "large":
        return "\n".join(_coloured(row) if colour else _blocks(row).translate(_INVERTED) for row in rows)
    lines = _half_blocks(rows)
    if colour:
        return "\n".join(f"{_DARK_ON_LIGHT}{line}{_RESET}" for line in lines)
    return "\n".join(line.translate(_INVERTED) for line in lines)


def _modules(link: str) -> list[list[bool]] | None:
    """Rows of modules with the quiet zone, dark ones true; None when the link is too long for a QR code."""
    import segno

    try:
        code = segno.make_qr(link, error="l", boost_error=False)
    except segno.DataOverflowError:
        return None
    return [[bool(module) for module in row] for row in code.matrix_iter(border=_QUIET)]


def _coloured(row: list[bool]) -> str:
    """Blanks on coloured ground: unlike glyphs they leave no gap between the lines."""
    runs = ((_DARK if dark else _LIGHT) + "  " * len(list(run)) for dark, run in groupby(row))
    return "".join(runs) + _RESET


def _blocks(row: list[bool]) -> str:
    return "".join("██" if dark else "  " for dark in row)


def _half_blocks(rows: list[list[bool]]) -> list[str]:
    lower = [*rows[1::2], [False] * len(rows[0])]  # an odd last row is paired with a light one
    return [
        "".join(" ▄▀█"[2 * above + below] for above, below in zip(top, bottom, strict=True))
        for top, bottom in zip(rows[::2], lower, strict=False)
    ]
