"""Private keys, found by what a file holds, whatever its name: read in one pass as the file is hashed. Pure.

A file that only mentions the first line of a key (documentation, source code) is none: what must follow is the key
itself. Keys inside archives or in other encodings are not found.
"""

from __future__ import annotations

import re
from typing import final

__all__ = ["KeyScan"]

_OVERLAP = 4096  # bytes that are looked at again with the next chunk; longer than what a pattern needs
# No pattern tries one stretch of bytes twice: possessive (`+`) or bounded, as a file may be made to keep them busy.
_SPACE = rb"(?:\s|\\[nrt])*+"  # also as it is written inside a JSON string
_HEADER = rb"[A-Za-z\-]{1,40}+: [^\r\n\\]{0,200}+" + _SPACE
_PEM = re.compile(
    rb"-----? ?BEGIN (?:[A-Z0-9 ]{1,40} )?(?:PRIVATE|SECRET) KEY(?: BLOCK)? ?-----?"
    + _SPACE + rb"(?:" + _HEADER + rb"){0,8}+[A-Za-z0-9+/=]{16}"
)  # fmt: skip
# What to find first, because that is fast, the faster the longer it is; what it then must be; how it is called.
_TEXTS: tuple[tuple[bytes, re.Pattern[bytes], str], ...] = (
    (b"PRIVATE KEY", _PEM, "a private key"),
    (b"SECRET KEY BLOCK", _PEM, "a private key"),
    (b"AGE-SECRET-KEY-", re.compile(rb"AGE-SECRET-KEY-(?:PQ-)?1[02-9A-Z]{50}"), "an age key"),
    (b"age-secret-key-", re.compile(rb"age-secret-key-(?:pq-)?1[02-9a-z]{50}"), "an age key"),
    (b"PuTTY-User-Key-File-", re.compile(rb"PuTTY-User-Key-File-[0-9]+: \S+"), "a PuTTY key"),
    (b"PrivateKey", re.compile(rb"(?<![A-Za-z])PrivateKey[ \t]{0,9}=[ \t]{0,9}[A-Za-z0-9+/]{43}="), "a WireGuard key"),
    (b"private-key", re.compile(rb"(?:^|\n)Key: \((?:protected-|shadowed-)?private-key\s{0,9}\("), "a GnuPG key"),
)
_PGP = rb"[\x03-\x06].{4}[\x01-\x03\x10-\x13\x16\x19-\x1c]"  # version, time, algorithm
_HEADS: tuple[tuple[re.Pattern[bytes], str], ...] = (
    (re.compile(rb"openssh-key-v1\0"), "a private key"),
    (re.compile(rb"untrusted comment: [^\n]{0,200}secret key[^\n]{0,200}\n[A-Za-z0-9+/]{16}"), "a signing key"),
    (re.compile(rb"\((?:11:private-key|21:protected-private-key|20:shadowed-private-key)\("), "a GnuPG key"),
    (re.compile(rb"\x30(?:\x82..|\x81.|[\x20-\x7f])\x02\x01[\x00\x01]\x30.{1,3}\x06", re.DOTALL), "a private key"),
    (
        re.compile(rb"\x30(?:\x82..|\x81.)\x02\x01\x00\x02(?:\x82..|\x81.|[\x10-\x7f])[\x00-\xff]", re.DOTALL),
        "a private key",
    ),
    (re.compile(rb"\x30(?:\x81.|[\x20-\x7f])\x02\x01\x01\x04[\x18-\x42]", re.DOTALL), "a private key"),
    (re.compile(rb"\x30(?:\x82..|\x83...)\x02\x01\x03\x30", re.DOTALL), "a key store"),
    (re.compile(rb"\xfe\xed\xfe\xed\0\0\0[\x01\x02]|\xce\xce\xce\xce\0\0\0[\x01\x02]"), "a key store"),
    (re.compile(rb"\x03\xd9\xa2\x9a[\x65-\x67]\xfb\x4b\xb5"), "a password store"),
    (
        re.compile(rb"(?:\x95..|\x94.|\x96....|\xc5(?:[\x00-\xbf]|[\xc0-\xdf].|\xff....))" + _PGP, re.DOTALL),
        "a PGP key",
    ),
)


@final
class KeyScan:
    """Looks at a file's bytes in order, chunk by chunk."""

    def __init__(self) -> None:
        self._before = b""
        self._begun = False

    def feed(self, chunk: bytes) -> str | None:
        """What key the bytes so far hold, such as "an age key"; None when none."""
        if not self._begun and chunk:
            self._begun = True
            for head, what in _HEADS:
                if head.match(chunk):
                    return what
        data = self._before + chunk
        self._before = data[-_OVERLAP:]
        return _text_key(data) or _wide_key(data)


def _text_key(data: bytes) -> str | None:
    for sign, pattern, what in _TEXTS:
        if sign in data and pattern.search(data):
            return what
    return None


def _wide_key(data: bytes) -> str | None:
    """A key as UTF-16 text, of either byte order."""
    wide = b"P\0R\0I\0V\0A\0T\0E\0 \0K\0E\0Y"
    return _text_key(data.replace(b"\0", b"")) if wide in data else None
