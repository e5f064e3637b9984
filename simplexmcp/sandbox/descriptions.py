"""File descriptions of XFTP: which chunks a file has, and the YAML text that tells a recipient where they lie."""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["PART", "chunk_sizes", "description", "servers_of", "total_of"]

KB = 1024
MB = 1024 * KB

_SIZES = (64 * KB, 256 * KB, MB, 4 * MB)
_OVERHEAD = 160
"""Bytes that encryption adds: length, tag and a header with the name."""
_KEY_HEAD = bytes.fromhex("302e020100300506032b657004220420")
"""Before the 32 bytes of an Ed25519 key in its binary form."""

PART = 14_000
"""Characters of a description that fit into one message."""

_SERVER = re.compile(r"^ {2}server: (\S+)$", re.MULTILINE)
_TOTAL = re.compile(r"^size: (\d+)(kb|mb)?$", re.MULTILINE)


def chunk_sizes(size: int) -> list[int]:
    """Bytes of each chunk of a file of `size` bytes: one size and for the rest a smaller one, filled up."""
    rest = size + _OVERHEAD
    big = next((n for n in (3, 2) if rest > _three_quarters(_SIZES[n])), 1)
    large, small = _SIZES[big], _SIZES[big - 1]
    out = [large] * (rest // large)
    rest %= large
    if rest > _three_quarters(large):
        out.append(large)
    elif rest:
        out += [small] * -(-rest // small)
    return out


def _three_quarters(size: int) -> int:
    return size * 3 // 4


def _shown(size: int) -> str:
    if size % MB == 0:
        return f"{size // MB}mb"
    return f"{size // KB}kb" if size % KB == 0 else str(size)


def description(
    sizes: list[int], servers: list[str], shared: list[str], replica: Callable[[int], bytes], *, party: str
) -> str:
    """The text for one party ("sender" or "recipient"). `shared` are digest, key, nonce and the digests of the chunks,
    as `random_texts` makes them: equal for all parties; `replica` gives new random bytes."""
    digest, key, nonce, *chunks = shared
    lines = [f"chunkSize: {_shown(sizes[0])}", f"digest: {digest}", f"key: {key}", f"nonce: {nonce}"]
    lines += [f"party: {party}", "replicas:"]
    for place, server in enumerate(servers):
        numbers = range(place, len(sizes), len(servers))
        if not numbers:
            continue
        lines.append("- chunks:")
        for n in numbers:
            name = urlsafe_b64encode(replica(16)).decode()
            secret = urlsafe_b64encode(_KEY_HEAD + replica(32)).decode()
            other = "" if sizes[n] == sizes[0] else f":{_shown(sizes[n])}"
            lines.append(f"  - {n + 1}:{name}:{secret}:{chunks[n]}{other}")
        lines.append(f"  server: {server}")
    return "\n".join([*lines, f"size: {_shown(sum(sizes))}", ""])


def random_texts(chunks: int, replica: Callable[[int], bytes]) -> list[str]:
    """What all descriptions of one upload have in common."""
    lengths = [64, 32, 24, *[32] * chunks]
    return [urlsafe_b64encode(replica(length)).decode() for length in lengths]


def servers_of(text: str) -> list[str]:
    """The servers that a description names."""
    return list(dict.fromkeys(_SERVER.findall(text)))


def total_of(text: str) -> int:
    """The bytes that a description announces, of the encrypted file."""
    match = _TOTAL.search(text)
    unit = {None: 1, "kb": KB, "mb": MB}
    return 0 if match is None else int(match[1]) * unit[match[2]]
