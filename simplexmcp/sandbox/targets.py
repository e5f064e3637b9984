"""What can be connected to: full links, short links and names, as a core reads them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote

from simplexmcp.sandbox.errors import SERVER

__all__ = ["SHORT_HOST", "Target", "full_link", "link_identity", "parse_target", "short_link"]

SHORT_HOST = SERVER.rpartition("@")[2]
"""The host in the short links of this network."""

_HASH = SERVER.removeprefix("smp://").partition("@")[0]
_SHORT = re.compile(
    r"(?:https://(?P<host>[^/?#\s]+)/|simplex:/)(?P<kind>[agcri])#(?P<key>[A-Za-z0-9_/-]+)(?:\?(?P<query>\S*))?\Z"
)
_FULL = re.compile(
    r"(?:https://simplex\.chat/|simplex:/)(?P<kind>contact|invitation)#/\?v=[0-9-]+&smp=(?P<queue>\S+)\Z"
)
_NAME = re.compile(r"(?:simplex:/name)?(?P<sign>[@#])(?P<name>[a-z0-9]+(?:[.-][a-z0-9]+)*)\Z")
_KEY_LENGTH = 43


@dataclass(frozen=True)
class Target:
    """A readable target: `form` is full, short or name; `kind` contact, group, channel, relay or invitation."""

    form: str
    kind: str
    text: str
    host: str | None = None


def parse_target(text: str) -> Target | None:
    """The target in a text; None when the core would answer invalidConnReq."""
    if m := _FULL.match(text):
        return Target("full", "invitation" if m["kind"] == "invitation" else "contact", text)
    if m := _SHORT.match(text):
        return _short_target(m, text)
    if m := _NAME.match(text):
        labels = m["name"].split(".")
        if m["sign"] == "@" and len(labels) < 2:
            return None
        return Target("name", "contact" if m["sign"] == "@" else "group", text.removeprefix("simplex:/name"))
    return None


def _short_target(m: re.Match[str], text: str) -> Target | None:
    kind = {"a": "contact", "g": "group", "c": "channel", "r": "relay", "i": "invitation"}[m["kind"]]
    query: dict[str, str] = {}
    for part in (m["query"] or "").split("&"):
        key, _, value = part.partition("=")
        query[key] = value
    if m["host"] is None and not query.get("h"):
        return None
    if "/" not in m["key"] and kind == "invitation":
        return None
    if "c" in query and len(query["c"]) != _KEY_LENGTH:
        return None
    return Target("short", kind, text, m["host"] or query["h"])


def link_identity(text: str) -> str:
    """The part of a link that is the same in all spellings; the text itself for a name."""
    if m := _FULL.match(text):
        return "full:" + m["queue"].partition("%23")[0]
    if m := _SHORT.match(text):
        return "short:" + m["key"]
    return text


def full_link(kind: str, queue: str, key: str, *, group_link_id: str | None = None, e2e: str | None = None) -> str:
    """A full link of this network: `kind` contact or invitation."""
    server = quote(f"{SERVER}/{queue}", safe="")
    mode = "c" if kind == "contact" else "m%26k%3Ds"
    text = f"simplex:/{kind}#/?v=2-7&smp={server}%23%2F%3Fv%3D1-4%26dh%3DMCowBQYDK2VuAyEA{key}%253D%26q%3D{mode}"
    if e2e is not None:
        text += f"&e2e=v%3D2-3%26x3dh%3D{e2e}"
    if group_link_id is not None:
        text += "&data=" + quote(f'{{"groupLinkId":"{group_link_id}"}}', safe="")
    return text


def short_link(kind: str, key: str, link_id: str | None = None) -> str:
    """A short link of this network: `kind` a, g or i (an invitation has an id before its key)."""
    return f"https://{SHORT_HOST}/{kind}#{link_id + '/' if link_id else ''}{key}"
