"""The arguments of a command after its pattern matched: typed reading, with the core's one answer to bad values."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from simplexmcp.sandbox import errors

__all__ = ["Arguments", "is_text", "preferences_argument", "profile_argument", "strict_json"]

JsonObject = dict[str, Any]

LARGEST_EXPONENT = 1024


class Arguments:
    """Named groups of the matched pattern."""

    def __init__(self, groups: dict[str, str | None]) -> None:
        self._groups = groups

    def has(self, name: str) -> bool:
        """Whether the argument was given."""
        return self._groups.get(name) is not None

    def text(self, name: str, default: str = "") -> str:
        """The argument as it was written."""
        value = self._groups.get(name)
        return default if value is None else value

    def number(self, name: str) -> int:
        """A whole number; the pattern has seen to it that it is one."""
        return int(self.text(name))

    def numbers(self, name: str) -> list[int]:
        """A list `3,7,12`."""
        return [int(part) for part in self.text(name).split(",")]

    def on(self, name: str, *, default: bool = False) -> bool:
        """An option `name=on|off`."""
        return default if not self.has(name) else self.text(name) == "on"

    def json(self, name: str = "json") -> Any:
        """A JSON argument; bad JSON is a parse error."""
        return strict_json(self.text(name))

    def object(self, name: str = "json") -> JsonObject:
        """A JSON argument that must be an object."""
        value = self.json(name)
        if not isinstance(value, dict):
            raise errors.parse_error()
        return value


def is_text(text: str) -> bool:
    """Whether a string can be written out: half a surrogate pair cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def strict_json(text: str) -> Any:
    """Parse JSON as the core does; anything else is a parse error of the command."""
    try:
        value = json.loads(
            text, parse_constant=_no_constant, parse_float=_number, object_pairs_hook=_first_of_equal_keys
        )
        if "\\u" in text:
            _ = json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise errors.parse_error() from None
    return value


def _number(text: str) -> int | float:
    """`1e30` is a whole number, up to the size that the core writes out."""
    exponent = Decimal(text).as_tuple().exponent
    whole = isinstance(exponent, int) and 0 <= exponent <= LARGEST_EXPONENT
    return int(Decimal(text)) if whole else float(text)


def _first_of_equal_keys(pairs: list[tuple[str, Any]]) -> JsonObject:
    return dict(reversed(pairs))


def _no_constant(text: str) -> None:
    raise ValueError(text)


_WORDS = {"allow": ("always", "yes", "no"), "enable": ("on", "off")}


def preferences_argument(value: Any, key: str) -> JsonObject:
    """Preferences of a profile (`key` "allow") or of a group ("enable"); else a parse error."""
    if not isinstance(value, dict):
        raise errors.parse_error()
    given: JsonObject = {name: one for name, one in value.items() if one is not None}
    commands = given.get("commands", [])
    if not isinstance(commands, list) or not all(isinstance(command, dict) for command in commands):
        raise errors.parse_error()
    for name, one in given.items():
        if name != "commands" and not _is_preference(one, key):
            raise errors.parse_error()
    return given


def _is_preference(value: Any, key: str) -> bool:
    if not isinstance(value, dict) or value.get(key) not in _WORDS[key]:
        return False
    role, ttl = value.get("role"), value.get("ttl")
    return (role is None or isinstance(role, str)) and (ttl is None or isinstance(ttl, int))


_OPTIONAL_TEXTS = ("shortDescr", "image", "contactLink")


def profile_argument(value: Any) -> JsonObject:
    """A PROFILE from a command, with only the keys that this version knows; else a parse error."""
    if not isinstance(value, dict):
        raise errors.parse_error()
    if not isinstance(value.get("displayName"), str) or not isinstance(value.get("fullName"), str):
        raise errors.parse_error()
    out: JsonObject = {"displayName": value["displayName"], "fullName": value["fullName"]}
    for key in _OPTIONAL_TEXTS:
        if (text := value.get(key)) is not None:
            if not isinstance(text, str):
                raise errors.parse_error()
            out[key] = text
    if (preferences := value.get("preferences")) is not None:
        out["preferences"] = preferences_argument(preferences, "allow")
    if (kind := value.get("peerType")) is not None:
        if kind not in ("human", "bot"):
            raise errors.parse_error()
        out["peerType"] = kind
    return out
