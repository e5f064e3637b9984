"""JSON as the rooms tools write it: compact, letters unescaped, measured in UTF-16 code units."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any

__all__ = ["dumps", "loads", "sendable", "size", "units"]

_EXACT = 2**53  # up to here a float without a fraction is the integer that it shows


def dumps(value: Any) -> str:
    """Compact JSON, non-ASCII letters as they are, lone surrogates as escapes; a number like 3.0 becomes 3."""
    text = _encoder.encode(value)
    if ".0" in text:  # as a float without a fraction ends; looking costs less than walking through every value
        text = _encoder.encode(_whole(value))
    return sendable(text)


def loads(text: str | bytes) -> Any:
    """The value of a JSON text. Raises ValueError, also for NaN, Infinity and numbers beyond all floats."""
    return json.loads(text, parse_constant=_refuse, parse_float=_finite)


def sendable(text: str) -> str:
    """The text with lone surrogates as JSON escapes: what else it is made of can be written as UTF-8."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return "".join(f"\\u{ord(letter):04x}" if "\ud800" <= letter <= "\udfff" else letter for letter in text)
    return text


def size(value: Any) -> int:
    """The length of `dumps(value)` in UTF-16 code units: the unit of every budget."""
    return units(dumps(value))


def units(text: str) -> int:
    """The length of a text in UTF-16 code units."""
    if text.isascii():
        return len(text)
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _whole(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer() and abs(value) <= _EXACT:
        return int(value)
    if isinstance(value, dict):
        return {key: _whole(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_whole(inner) for inner in value]
    return value


def _finite(digits: str) -> float:
    number = float(digits)
    return number if isfinite(number) else _refuse(digits)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON value")
