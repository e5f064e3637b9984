"""Recorded commands with the ids and links of the simulated network in place of the recorded ones."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from simplexmcp.sandbox.targets import SHORT_HOST

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.sandbox.conformance.compare import Mapping

__all__ = ["links", "rewritten"]

_OTHER_FORM = re.compile(
    r"(?P<scheme>simplex:|https://127\.0\.0\.1)/(?P<kind>[acgri])#(?P<key>[\w/-]+)\?(?:h=127\.0\.0\.1&)?p=7001&c=[\w-]{43}(?!\S)"
)
LINK = re.compile(r"(?:simplex:|https://[\w.:-]+)/(?:contact|invitation|[acgri])#[^\s\"]+")
_KINDS = {"@": "contact", "#": "group", ":": "connection"}
_REF = r"[@#:]\d+(?:\(_support(?::\d+)?\))?"
_ITEMS = re.compile(
    rf"(/_(?:update item|delete item|delete member item|read chat items|reaction|get item info) {_REF} )([\d,]+)"
)
_MEMBERS = re.compile(r"(/_(?:member role|remove|block|accept member|create member contact) #\d+ )([\d,]+)")
_REQUESTS = re.compile(r"(/_(?:accept|reject)(?: incognito=\w+)? )(\d+)$")
_FILES = re.compile(r"(/(?:freceive|fcancel|fstatus) |r\.file_id = )(\d+)")
_ADDED = re.compile(r"(/_add #\d+ )(\d+)")
_PAGES = re.compile(r"( (?:after|around|before)=)(\d+)")
_REFS = re.compile(r"( [@#:])(\d+)")
_SUPPORT = re.compile(r"(_support:)(\d+)")
_QUOTED = re.compile(r'("quotedItemId": ?)(\d+)')
_MENTIONED = re.compile(r"(: ?)(\d+)")
_MENTIONS = re.compile(r'("mentions": ?\{)([^}]*)(?=\})')
_IN_HEAD = (
    (_ITEMS, "item"), (_MEMBERS, "member"), (_REQUESTS, "request"), (_ADDED, "contact"), (_PAGES, "item"),
    (_SUPPORT, "member"), (_FILES, "file"),
)  # fmt: skip


def links(text: str) -> list[str]:
    """The links in a command or in an answer."""
    return LINK.findall(text)


def rewritten(core: str, command: str, mapping: Mapping) -> str:
    """The command as it has to be given to the simulated core."""
    command = _OTHER_FORM.sub(lambda m: _short_link(m, mapping), mapping.rewritten(command))
    head, brace, body = command.partition("{")
    for pattern, kind in _IN_HEAD:
        head = pattern.sub(_numbers(core, kind, mapping), head)
    head = _REFS.sub(lambda m: m[1] + _number(core, _KINDS[m[1][1]], m[2], mapping), head)
    body = _QUOTED.sub(_numbers(core, "item", mapping), body)
    body = _MENTIONS.sub(lambda m: m[1] + _MENTIONED.sub(_numbers(core, "member", mapping), m[2]), body)
    return head + brace + body


def _short_link(m: re.Match[str], mapping: Mapping) -> str:
    """A short link of the recordings' server in a form that was never said: only its key is known, or nothing."""
    known = next((link for link in mapping.texts if f"#{m['key']}?" in link), None)
    key = m["key"] if known is None else mapping.texts[known].partition("#")[2].partition("?")[0]
    if m["scheme"] == "simplex:":
        return f"simplex:/{m['kind']}#{key}?h={SHORT_HOST}"
    return f"https://{SHORT_HOST}/{m['kind']}#{key}"


def _number(core: str, kind: str, recorded: str, mapping: Mapping) -> str:
    return str(mapping.numbers.get((core, kind, int(recorded)), recorded))


def _numbers(core: str, kind: str, mapping: Mapping) -> Callable[[re.Match[str]], str]:
    return lambda m: m[1] + ",".join(_number(core, kind, n, mapping) for n in m[2].split(","))
