"""What one listener takes on at most, and its times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

__all__ = ["Limits"]


@final
@dataclass(frozen=True)
class Limits:
    """Sizes in bytes, times in seconds. Tests and benchmarks pass their own."""

    body: int = 4 * 1024 * 1024
    body_seconds: float = 30
    buffered: int = 64 * 1024 * 1024
    """Bodies of all requests together."""
    calls: int = 6000
    """Open calls of tools; one more is refused with a sentence."""
    connections: int = 8000
    first_byte: float = 0.2
    """A call that is still open after this becomes an event stream."""
    pulse: float = 20
    """A held call gives a sign of life at least this often."""
    idle: float = 75
    """A connection without a request is closed after this."""
    grace: float = 2
    """At the end, what is being written may take this long."""
