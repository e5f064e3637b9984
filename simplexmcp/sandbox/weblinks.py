"""Links, addresses of web pages and e-mail addresses in the text of a message."""

from __future__ import annotations

import base64
import binascii
import re
import string
import unicodedata
from typing import Any
from urllib.parse import parse_qs

__all__ = ["hyperlink", "simplex_link", "word"]

SCHEMES = ("http://", "https://", "simplex:/")
SHORTEST_URI = 10
# The parts of an address as RFC 3986 has them, but for the letters that a query may hold beyond them.
CHAR = r"[A-Za-z0-9\-._~!$&'()*+,;=:@%]"
WEB = re.compile(
    rf"https?://(?:[^\s/?#@\[\]]*@)?(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9\-._~!$&'()*+,;=%]+)(?::[0-9]+)?"
    rf"(?:/(?:{CHAR}|/)*)?(?:\?(?:{CHAR}|[/?\[\]|])*)?(?:#(?:{CHAR}|[/?])*)?"
)
DOMAIN = re.compile(r"(?:[^.]{3,8}\.)?[A-Za-z]{1,24}\.[A-Za-z]{2,8}")
ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
EMAIL = re.compile(
    rf'(?P<local>(?:{ATOM}|"[^"\\]*")(?:\.(?:{ATOM}|"[^"\\]*"))*)@(?P<domain>{LABEL}(?:\.{LABEL})*\.?|\[[^\[\]\\\s]*\])'
)
SHORT = re.compile(
    r"(?P<scheme>simplex:|https://(?P<host>[A-Za-z0-9.\-]+))/(?P<kind>[acgriACGRI])#"
    r"(?P<key>[A-Za-z0-9_\-]+(?:/[A-Za-z0-9_\-]+)?)(?:\?(?P<query>[^\s#]*))?"
)
FULL = re.compile(r"(?:simplex:|https://simplex\.chat)/(?P<kind>contact|invitation)#/?\?(?P<query>[^\s#]*)")
QUEUE = re.compile(
    r"smp://(?P<hash>[A-Za-z0-9_\-]+=*)@(?P<hosts>[^/:]+)(?::[0-9]+)?/[A-Za-z0-9_\-]+=*#/?\?(?P<query>.*)"
)
KINDS = {"a": "contact", "c": "channel", "g": "group", "r": "relay", "i": "invitation"}
KEY_BYTES = 44  # a queue's public key in its DER form


def word(whole: str, bare: str) -> dict[str, Any] | None:
    """The format of a word; `bare`, the word without the punctuation at its end, is what is formatted."""
    if len(bare) >= SHORTEST_URI and bare.startswith(SCHEMES):
        return simplex_link(whole) or ({"type": "uri"} if _is_web(bare) else None)
    if DOMAIN.fullmatch(bare):
        return {"type": "uri"}
    return {"type": "email"} if _is_email(bare) else None


def hyperlink(text: str, uri: str) -> dict[str, Any] | None:
    """The format of `[text](uri)`; a text that looks like another address than the link's is refused."""
    misleading = any(c not in "-_" and unicodedata.category(c)[0] == "P" for c in text)
    if misleading and text != uri and "https://" + text != uri:
        return None
    if link := simplex_link(uri):
        return {**link, "showText": text} if SHORT.fullmatch(uri) else None
    return {"type": "hyperLink", "showText": text, "linkUri": uri} if _is_web(uri) else None


def _is_web(uri: str) -> bool:
    match = WEB.fullmatch(uri)
    return match is not None and "." in match["host"]


def _is_email(text: str) -> bool:
    match = EMAIL.fullmatch(text) if "@" in text else None
    return match is not None and len(match["local"]) <= 64 and len(match["domain"]) <= 253


def simplex_link(uri: str) -> dict[str, Any] | None:
    """The format of a SimpleX link, short or full; its `simplexUri` is always the `simplex:` form."""
    if match := SHORT.fullmatch(uri):
        return _short(match)
    if match := FULL.fullmatch(uri):
        return _full(match)
    return None


def _short(match: re.Match[str]) -> dict[str, Any] | None:
    kind = match["kind"].lower()
    if ("/" in match["key"]) != (kind == "i") or not all(_decoded(key) for key in match["key"].split("/")):
        return None
    query = parse_qs(match["query"] or "")
    hosts = ([match["host"]] if match["host"] else []) + query.get("h", [""])[0].split(",")
    hosts = [host for host in hosts if host]
    if not hosts:
        return None
    options = ["h=" + ",".join(hosts), *(f"{name}={query[name][0]}" for name in ("p", "c") if name in query)]
    link = f"simplex:/{kind}#{match['key']}?{'&'.join(options)}"
    return {"type": "simplexLink", "linkType": KINDS[kind], "simplexUri": link, "smpHosts": hosts}


def _full(match: re.Match[str]) -> dict[str, Any] | None:
    query = parse_qs(match["query"])
    queue = QUEUE.fullmatch(query.get("smp", [""])[0])
    if queue is None or "v" not in query or _decoded(queue["hash"]) is None:
        return None
    key = _decoded(parse_qs(queue["query"]).get("dh", [""])[0])
    if key is None or len(key) != KEY_BYTES:
        return None
    kind = match["kind"]
    if kind == "contact" and "groupLinkId" in query.get("data", [""])[0]:
        kind = "group"
    link = f"simplex:/{match['kind']}#/?{match['query']}"
    return {
        "type": "simplexLink",
        "linkType": kind,
        "simplexUri": link,
        "smpHosts": queue["hosts"].split(","),
    }


def _decoded(text: str) -> bytes | None:
    """The bytes of base64url text, with or without its padding; None when it is none."""
    bare = text.rstrip("=")
    padded = bare + "=" * (-len(bare) % 4)
    if not bare or text not in (bare, padded) or not set(bare) <= set(string.ascii_letters + string.digits + "-_"):
        return None
    try:
        return base64.urlsafe_b64decode(padded)
    except binascii.Error:
        return None
