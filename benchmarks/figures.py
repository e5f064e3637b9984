"""A figure: what was measured, its median and p99, what it is compared with, and the bar it has to meet."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Bar", "Figure", "percentile"]


@dataclass(frozen=True)
class Bar:
    """What the figure must reach: `value` at least or at most `limit`. `of` names it: a ratio (`ours : theirs`), or a
    quantity in `unit`."""

    value: float
    limit: float
    at_least: bool
    of: str
    unit: str = ""

    @property
    def met(self) -> bool:
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    @property
    def ratio(self) -> float:
        """Of the value to the bar."""
        return self.value / self.limit

    def __str__(self) -> str:
        sign, verdict = "≥" if self.at_least else "≤", "met" if self.met else "MISSED"
        if self.unit:
            value, bar = f"{_short(self.value)} {self.unit}", f"{sign} {self.limit:g} {self.unit}"
            return f"{self.of} {value}, bar {bar}: {verdict} ({self.of} : bar {self.ratio:.2f})"
        return f"{self.of} {self.value:.2f}, bar {sign} {self.limit:g}: {verdict}"


@dataclass(frozen=True)
class Figure:
    """One entry of the report. `median` and `p99` are in `unit`; `note` says what they are taken over."""

    name: str
    unit: str
    median: float
    p99: float
    bar: Bar | None = None
    note: str = ""

    def __str__(self) -> str:
        numbers = f"median {_short(self.median)} {self.unit}, p99 {_short(self.p99)} {self.unit}"
        lines = [f"{self.name}: {numbers}", *([str(self.bar)] if self.bar else []), *([self.note] if self.note else [])]
        return "\n    ".join(lines)

    def as_json(self) -> dict[str, Any]:
        """The figure as plain data; `bar.met` and `bar.ratio` included."""
        data = asdict(self)
        if self.bar is not None:
            data["bar"] |= {"met": self.bar.met, "ratio": self.bar.ratio}
        return data


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` (0 to 1) of all values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
