"""What the description of a file says of the servers that hold it. Pure.

The description is the text that a sender gives with a file: it holds the key of the file, so nothing here keeps it,
and no error quotes it. Its author may be hostile: only the plain form that SimpleX writes is read as complete; any
other spelling, which could hide a server from this reader and not from the core, is marked as unreadable.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Description", "read_description"]

_LIMIT = 1 << 20  # characters; a file of 5 GiB needs about 200,000
_SERVERS = 32
_SERVER_LENGTH = 500
_PLAIN = r"[A-Za-z0-9_=+/.:-]+"
_FIELD = re.compile(rf"(?:chunkSize|digest|key|nonce|party|size): (?:{_PLAIN}|'{_PLAIN}')")
_REDIRECT_FIELD = re.compile(rf"  (?:digest|size): (?:{_PLAIN}|'{_PLAIN}')")
_SERVER = re.compile(r"(?:- |  )server: ([^\s'\"\\{}#&*!|>%`]+)")
_CHUNK = re.compile(rf"  - (?:{_PLAIN}|'{_PLAIN}')")
_HEADS = frozenset({"replicas:", "- chunks:", "  chunks:", "replicas: []", "- chunks: []", "  chunks: []"})


@dataclass(frozen=True, slots=True)
class Description:
    """The servers (`xftp://…`) that a description names. `redirects`: it leads to a second description, whose servers
    it does not name. `readable` False: it may name others too; `given` False: the core did not show it."""

    servers: tuple[str, ...]
    redirects: bool = False
    readable: bool = True
    given: bool = True


def read_description(text: str) -> Description:
    """The servers of a description, in its order and each once."""
    servers: dict[str, None] = {}
    redirects, readable = False, len(text) <= _LIMIT
    for line in text[:_LIMIT].split("\n"):
        if found := _SERVER.fullmatch(line):
            if len(found[1]) > _SERVER_LENGTH or len(servers | {found[1]: None}) > _SERVERS:
                readable = False
            else:
                servers[found[1]] = None
        elif line == "redirect:":
            redirects = True
        elif not (line in _HEADS or line == "" or _FIELD.fullmatch(line) or _CHUNK.fullmatch(line)):
            readable = readable and redirects and _REDIRECT_FIELD.fullmatch(line) is not None
    return Description(tuple(servers), redirects, readable and bool(servers))
