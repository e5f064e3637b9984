"""Changes to other programs' settings: planned first, then made as a whole or not at all.

What is not ours stays as it is: other keys, their order, the indentation, the file's mode, and a link to it. A file
that does not read as what it should be is refused and left alone.
"""

from __future__ import annotations

import json
import os
import re
import stat
import tempfile
import tomllib
from contextlib import suppress
from difflib import unified_diff
from pathlib import Path
from typing import Any, NamedTuple

from simplexmcp.errors import UserError

__all__ = ["Edit", "apply", "difference", "json_edit", "parse_toml", "read_json", "read_toml", "toml_edit"]

# What we put into a TOML file is between two such lines. Where the file had no line break at its end, the joined form
# remembers that.
_BEGIN = "# simplexmcp rooms, {}: begin\n"
_JOINED = "# simplexmcp rooms, {}: begin (joined)\n"
_END = "# simplexmcp rooms, {}: end\n"


class Edit(NamedTuple):
    """A file and its text before (None: there is none) and after (None: it goes)."""

    path: Path
    before: str | None
    after: str | None


def read_json(path: Path) -> dict[str, Any]:
    """The object in a settings file; {} when there is none or it is empty. Raises UserError."""
    return _parsed(path, _text(path) or "")


def read_toml(path: Path) -> dict[str, Any]:
    """The table in a settings file; {} when there is none. Raises UserError."""
    return parse_toml(path, _text(path) or "")


def parse_toml(path: Path, text: str) -> dict[str, Any]:
    """The table that `text` is, as the content of a file. Raises UserError."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path} is no valid TOML ({error}), so it was left alone. Repair it first.") from None


def json_edit(path: Path, value: dict[str, Any]) -> Edit:
    """The edit that makes `value` the file's object; an empty object takes the file away."""
    before = _text(path)
    if value == _parsed(path, before or ""):
        return Edit(path, before, before)
    return Edit(path, before, _formatted(value, before or "") if value else None)


def toml_edit(path: Path, part: str, text: str, *, first: bool) -> Edit:
    """The edit that makes `text` our `part` of the file, before everything else or behind it; an empty one takes it
    out. Raises UserError when the result would not read."""
    before = _text(path)
    parse_toml(path, before or "")
    begin, joined, end = (form.format(part) for form in (_BEGIN, _JOINED, _END))
    block = f"(?:\\n{re.escape(joined)}|^{re.escape(begin)}).*?^{re.escape(end)}"
    others = re.sub(block, "", before or "", flags=re.DOTALL | re.MULTILINE)
    after = others
    if text and first:
        after = f"{begin}{text}{end}{others}"
    elif text:
        after = (
            f"{others}\n{joined}{text}{end}" if others and not others.endswith("\n") else f"{others}{begin}{text}{end}"
        )
    parse_toml(path, after)
    return Edit(path, before, after if after or before == "" else None)


def apply(edit: Edit) -> None:
    """Makes the edit, in place of the file behind a link too. Raises UserError, with nothing changed."""
    if edit.before == edit.after:
        return
    target = Path(os.path.realpath(edit.path))
    if _text(edit.path) != edit.before:
        raise UserError(f"{edit.path} was changed by another program just now. Nothing was done; try again.")
    try:
        if edit.after is None:
            target.unlink()
        else:
            _replace(target, edit.after)
    except OSError as error:
        raise UserError(f"Cannot write {edit.path}: {error.strerror}. Nothing was changed in it.") from error


def difference(edit: Edit) -> str:
    """What the edit changes, as a person reads it; empty when nothing."""
    before, after = ((text or "").splitlines(keepends=True) for text in (edit.before, edit.after))
    lines = unified_diff(before, after, str(edit.path), str(edit.path), n=2)
    return "".join(line if line.endswith("\n") else line + "\n" for line in lines)


def _replace(target: Path, text: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o600
    fd, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with open(fd, "w", encoding="utf-8", newline="") as file:  # noqa: PTH123 - a descriptor, not a path
            file.write(text)
            file.flush()
            os.fsync(fd)
            os.fchmod(fd, mode)
        Path(temporary).replace(target)
    except BaseException:
        with suppress(OSError):
            Path(temporary).unlink()
        raise


def _text(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UserError(f"Cannot read {path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is no UTF-8 text, so it was left alone. Repair it first.") from error


def _parsed(path: Path, text: str) -> dict[str, Any]:
    if not text.strip():
        return {}
    try:
        value = json.loads(text, object_pairs_hook=_without_doubles)
    except ValueError as error:
        raise UserError(
            f"{path} is no plain JSON ({error}), so it was left alone. Repair it, or add it by hand."
        ) from None
    if not isinstance(value, dict):
        raise UserError(f"{path} holds no JSON object, so it was left alone. Repair it first.")
    return value


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError("a key is there twice")
    return value


def _formatted(value: dict[str, Any], like: str) -> str:
    """JSON in the form that the file has; new files as most programs write them."""
    found = re.search(r'^([ \t]+)"', like, re.MULTILINE)
    if like.strip() and found is None and "\n" not in like.strip():
        separators = (",", ":") if '": ' not in like else (", ", ": ")
        return json.dumps(value, ensure_ascii=False, separators=separators) + ("\n" if like.endswith("\n") else "")
    indent = found.group(1) if found is not None else "  "
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return text if like.strip() and not like.endswith("\n") else text + "\n"
