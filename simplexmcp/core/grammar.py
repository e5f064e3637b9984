"""How a command of the core is written: pages, references, links, JSON, and what must never stand in one.

A command is one text whose last argument runs to its end, so what comes from outside is checked here before
it becomes part of one: a blank in a link would start the next option, a NUL would cut the command.
"""

from __future__ import annotations

import json
import re
import unicodedata
from typing import TYPE_CHECKING, Any, NewType

from simplexmcp.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "Page",
    "after",
    "around",
    "before",
    "checked_command",
    "checked_ref",
    "checked_word",
    "count",
    "id_list",
    "initial",
    "link_words",
    "on_off",
    "to_json",
]

Page = NewType("Page", str)
"""Which items of a chat `/_get chat` reads; made by the functions below."""

_REF = re.compile(r"[@#*:][0-9]{1,18}(\(_support(:[0-9]{1,18})?\))?")
_DOMAIN = re.compile(r"[^\s@#]+")


def count(n: int) -> Page:
    """The last `n` items, oldest first; 0 reads only what is known of the chat. chatStats are all zero."""
    return Page(f"count={n}")


def after(item: int, n: int) -> Page:
    """The `n` items that follow `item` in the order of the chat (ids are not in that order in groups)."""
    return Page(f"after={item} count={n}")


def before(item: int, n: int) -> Page:
    """The `n` items that precede `item`."""
    return Page(f"before={item} count={n}")


def around(item: int, n: int) -> Page:
    """`item` with `n` items on each side, real chatStats and navInfo; 0 reads just that item."""
    return Page(f"around={item} count={n}")


def initial(n: int) -> Page:
    """Where an app would open the chat: around the latest viewed item, real chatStats and navInfo."""
    return Page(f"initial={n}")


def on_off(value: bool) -> str:
    """A boolean as the core writes it."""
    return "on" if value else "off"


def to_json(value: object) -> str:
    """Strict compact JSON on one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def id_list(ids: Iterable[int]) -> str:
    """`3,7,12`. Refused when there is none: the core cannot parse an empty list."""
    text = ",".join(str(int(i)) for i in ids)
    if not text:
        raise Refused("At least one id is needed.")
    return text


def checked_ref(ref: str) -> str:
    """`ref` when it is the reference of a chat (`@4`, `#15`, `#15(_support)`, `:7`), else Refused."""
    if not _REF.fullmatch(ref):
        raise Refused(f"{_shown(ref)} is not the reference of a chat; references look like @4 or #15.")
    return ref


def checked_word(text: str, what: str) -> str:
    """`text` when it is one word that a command can hold, else Refused; `what` names it: "a SimpleX link"."""
    if not text or any(c.isspace() or unicodedata.category(c) in ("Cc", "Cs") for c in text):
        raise Refused(f"{_shown(text)} is not {what}: it must be one word without blanks.")
    return text


def link_words(conn_link: dict[str, Any], domain: str | None = None, *, direct: bool = True) -> str:
    """`FULL [SHORT] [direct=off] [domain=D]` of a link pair as `/_connect plan` gave it."""
    full = conn_link.get("connFullLink")
    if not isinstance(full, str):
        raise Refused("This link has no full form; look it up again.")
    words = [checked_word(full, "a SimpleX link")]
    if isinstance(short := conn_link.get("connShortLink"), str):
        words.append(checked_word(short, "a SimpleX link"))
    if not direct:
        words.append("direct=off")
    if domain is not None:
        if not _DOMAIN.fullmatch(domain):
            raise Refused(f"{_shown(domain)} is not a SimpleX name without its sign, such as directory.simplex.")
        words.append(f"domain={checked_word(domain, 'a SimpleX name')}")
    return " ".join(words)


def checked_command(command: str) -> str:
    """`command` when every link can carry it, else Refused: lone surrogates and raw NUL cannot be sent."""
    if "\0" in command:
        raise Refused("The text holds a NUL character, which SimpleX cannot carry here; remove it.")
    try:
        command.encode()
    except UnicodeEncodeError:
        raise Refused(
            "The text holds half of a character (a lone surrogate), which SimpleX cannot carry; remove it."
        ) from None
    return command


def _shown(text: str) -> str:
    """A foreign text in an error: escaped, and cut at 60 characters."""
    cut = text if len(text) <= 60 else text[:60] + "…"
    return ascii(cut) if not cut.isprintable() else f'"{cut}"'
