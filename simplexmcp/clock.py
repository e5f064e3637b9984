"""Wall time as an object that is passed in, and the two forms in which times are written.

Results carry ISO 8601 in UTC; people read local hours and minutes, with the day when it is not today.
"""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from typing import Protocol, final

__all__ = ["Clock", "SystemClock", "hhmm", "iso", "parse_iso"]

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class Clock(Protocol):
    """Wall time. For durations use trio's clock: this one may jump."""

    def now(self) -> datetime:
        """The time, aware, in UTC."""
        ...


@final
class SystemClock:
    """The computer's clock."""

    def now(self) -> datetime:
        """The time, aware, in UTC."""
        return datetime.now(UTC)


def hhmm(moment: datetime, now: datetime, tz: tzinfo | None = None) -> str:
    """Local `HH:MM`, with the day when `moment` is not on the day of `now` (`1 Dec 22:18`, `1 Dec 2027, 22:18`); `tz`
    None is the computer's zone. No form of it is a phone number to the core's markdown."""
    local, today = moment.astimezone(tz), now.astimezone(tz)
    time = f"{local:%H:%M}"
    if local.date() == today.date():
        return time
    day = f"{local.day} {_MONTHS[local.month - 1]}"
    return f"{day} {time}" if local.year == today.year else f"{day} {local.year}, {time}"


def iso(moment: datetime) -> str:
    """ISO 8601 in UTC to the second: `2026-11-30T21:04:05Z`."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


def parse_iso(text: str) -> datetime:
    """The moment of an ISO 8601 text, in UTC; one without a zone is UTC. Raises ValueError."""
    moment = datetime.fromisoformat(text)
    return (moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment).astimezone(UTC)
