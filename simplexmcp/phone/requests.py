"""What a page asks, checked: everything that comes from it is untrusted. Pure."""

from __future__ import annotations

import json
from typing import Any, final

from simplexmcp.chats import is_ref
from simplexmcp.errors import Refused

__all__ = ["LINK", "NAME", "TEXT", "BadFrame", "Fields", "read_request"]

NAME, LINK, TEXT = 100, 4000, 16_000
"""Characters of a name, a link and a message, at most."""
_ID_LIMIT = 1 << 53
_ITEMS = 1000
_MENTIONS = 3


@final
class BadFrame(Exception):  # noqa: N818 - the page's fault, not an error of the program
    """A frame that is no request: what speaks there is not our page."""


@final
class Fields:
    """The fields of a request. Each reading raises Refused with a sentence when a field does not fit."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = fields

    def has(self, key: str) -> bool:
        """Whether the field is there; null is absent."""
        return self._fields.get(key) is not None

    def text(self, key: str, limit: int) -> str:
        """A text of at most `limit` characters, which every core can carry."""
        value = self._fields.get(key)
        if not isinstance(value, str):
            raise Refused(f"`{key}` must be a text.")
        if len(value) > limit:
            raise Refused(f"This is too long: at most {limit:,} characters.")
        return _carried(value)

    def word(self, key: str) -> str:
        """A short text that is not empty."""
        value = self.text(key, NAME).strip()
        if not value:
            raise Refused(f"The {key} is empty.")
        return value

    def ref(self) -> str:
        """The reference in `chat`."""
        value = self._fields.get("chat")
        if not isinstance(value, str) or not is_ref(value):
            raise Refused("There is no such chat.")
        return value

    def group(self) -> int:
        """The number of the group in `chat`."""
        ref = self.ref()
        if not ref.startswith("#"):
            raise Refused("This is no group.")
        return int(ref.partition("(")[0][1:])

    def number(self, key: str) -> int:
        """A number of the core, from 1 on."""
        return _number(self._fields.get(key), key)

    def count(self) -> int:
        """How many items a page has: 1 to 100."""
        return min(100, self.number("count")) if self.has("count") else 50

    def numbers(self, key: str) -> list[int]:
        """A list of numbers of the core."""
        value = self._fields.get(key)
        if not isinstance(value, list) or len(value) > _ITEMS:
            raise Refused(f"`{key}` must be a list of at most {_ITEMS} numbers.")
        return [_number(each, key) for each in value]

    def flag(self, key: str) -> bool:
        """A boolean, false when absent."""
        value = self._fields.get(key)
        if value is not None and not isinstance(value, bool):
            raise Refused(f"`{key}` must be true or false.")
        return value is True

    def mentions(self) -> dict[str, str]:
        """NAME → memberId."""
        value = self._fields.get("mentions")
        if value is None:
            return {}
        if not isinstance(value, dict) or len(value) > _MENTIONS:
            raise Refused(f"A message mentions at most {_MENTIONS} members.")
        if not all(
            isinstance(member, str) and len(member) <= NAME and len(name) <= NAME for name, member in value.items()
        ):
            raise Refused("`mentions` must map names to members.")
        return {_carried(name): member for name, member in value.items()}


def read_request(frame: str) -> tuple[int, str, Fields]:
    """Id, `do` and the fields of a frame. Raises BadFrame."""
    try:
        value = json.loads(frame)
    except (ValueError, RecursionError):
        raise BadFrame("no JSON") from None
    if not isinstance(value, dict):
        raise BadFrame("no object")
    number, do = value.get("id"), value.get("do")
    if not isinstance(number, int) or isinstance(number, bool) or abs(number) > _ID_LIMIT or not isinstance(do, str):
        raise BadFrame("no request")
    return number, do, Fields(value)


def _number(value: Any, key: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < _ID_LIMIT:
        raise Refused(f"`{key}` must be a number from 1 on.")
    return value


def _carried(text: str) -> str:
    if "\0" in text:
        raise Refused("The text holds a NUL character, which SimpleX cannot carry; remove it.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Refused("The text holds half of a character, which SimpleX cannot carry; remove it.") from None
    return text
