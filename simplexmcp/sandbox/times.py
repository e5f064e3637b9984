"""Times of the simulated core: ISO texts in UTC with nanoseconds (local) or whole seconds (from the relay)."""

from __future__ import annotations

from datetime import UTC, datetime

__all__ = ["broker_time", "is_time", "local_time", "order_key", "seconds_of"]


def local_time(seconds: float) -> str:
    """`2026-11-30T21:28:07.982517929Z`; a fraction's trailing zeros are left out, as the core does."""
    whole = int(seconds)
    fraction = f"{int((seconds - whole) * 1_000_000_000):09d}".rstrip("0")
    text = datetime.fromtimestamp(whole, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{fraction}Z" if fraction else f"{text}Z"


def broker_time(seconds: float) -> str:
    """`2026-11-30T21:28:07Z`: the relay stamps messages with whole seconds."""
    return local_time(int(seconds))


def seconds_of(text: str) -> float:
    """Seconds since the epoch of such a text."""
    whole, _, fraction = text[:-1].partition(".")
    base = datetime.fromisoformat(whole + "+00:00").timestamp()
    return base + (int(fraction[:9]) / 10 ** len(fraction[:9]) if fraction else 0.0)


def is_time(text: str) -> bool:
    """Whether a text is a time of the core."""
    try:
        seconds_of(text)
    except ValueError:
        return False
    return True


def order_key(text: str) -> str:
    """A text that sorts as the database sorts these times: a fraction comes after the whole second."""
    return text[:-1]
