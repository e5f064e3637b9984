"""What is answered: the headers that every answer has, and the forms of its body."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias, final
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["STRICT", "Answer", "Headers", "HttpRefusal", "download", "json_answer", "text_answer"]

Headers: TypeAlias = "tuple[tuple[bytes, bytes], ...]"

_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

STRICT: Headers = (
    (b"content-security-policy", _POLICY),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
"""On every answer, the server's own errors too: nothing foreign is loaded, nobody frames it, nothing is kept."""


@final
class HttpRefusal(Exception):  # noqa: N818 - a no is no error of the program
    """A handler's no: the status, and a sentence that is answered as `{"error": SENTENCE}`."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@final
@dataclass(frozen=True, slots=True)
class Answer:
    """An answer: its whole body, or a `file` of `size` bytes, which is sent from where it is and closed."""

    status: int = 200
    body: bytes = b""
    kind: bytes = b"text/plain; charset=utf-8"
    headers: Headers = ()
    file: BinaryIO | None = None
    size: int = 0

    def fields(self) -> Sequence[tuple[bytes, bytes]]:
        """Its headers but those of STRICT."""
        length = self.size if self.file is not None else len(self.body)
        return [(b"content-type", self.kind), (b"content-length", b"%d" % length), *self.headers]


def text_answer(status: int, text: str, headers: Headers = ()) -> Answer:
    """A plain text for a person."""
    return Answer(status, f"{text}\n".encode(), headers=headers)


def json_answer(value: Any, status: int = 200) -> Answer:
    """A value as JSON."""
    body = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    return Answer(status, body, b"application/json")


def download(file: BinaryIO, size: int, name: str) -> Answer:
    """A file that the browser saves under `name`, whatever is in it; it never shows it."""
    disposition = f"attachment; filename*=UTF-8''{quote(name.encode('utf-8', 'replace'), safe='')}"
    sandbox = (b"content-security-policy", b"sandbox; default-src 'none'")
    headers = ((b"content-disposition", disposition.encode()), sandbox)
    return Answer(200, kind=b"application/octet-stream", headers=headers, file=file, size=size)
