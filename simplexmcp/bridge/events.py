"""Messages out of a stream of server-sent events. Pure: bytes in, the data of whole events out."""

from __future__ import annotations

from typing import final

__all__ = ["EventReader", "TooLongError"]


class TooLongError(Exception):
    """An event is longer than the limit."""


@final
class EventReader:
    """Collects the bytes of one stream. Comments, names and ids of events are skipped."""

    def __init__(self, limit: int) -> None:
        """`limit`: bytes of an event that are kept at most."""
        self._limit = limit
        self._rest = bytearray()
        self._data: list[bytes] = []

    def feed(self, part: bytes) -> list[bytes]:
        """The data of the events that are whole now. Raises TooLongError."""
        # A line ends with \r\n, \n or \r; a last \r may be half of the first.
        self._rest += part
        text = bytes(self._rest)
        held = b"\r" if text.endswith(b"\r") else b""
        *lines, rest = text.removesuffix(held).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._rest = bytearray(rest + held)
        found = [data for line in lines if (data := self._line(line)) is not None]
        if len(self._rest) + sum(map(len, self._data)) > self._limit:
            raise TooLongError
        return found

    def _line(self, line: bytes) -> bytes | None:
        if not line:
            data, self._data = b"\n".join(self._data), []
            return data or None
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
        return None
