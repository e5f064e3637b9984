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
    """What the figure must reach: `value` at least or at most `limit`. `value` is a ratio when `of` names one."""

    value: float
    limit: float
    at_least: bool
    of: str

    @property
    def met(self) -> bool:
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def __str__(self) -> str:
        sign = "≥" if self.at_least else "≤"
        return f"{self.of} {self.value:.2f} (bar {sign} {self.limit:g}) {'met' if self.met else 'MISSED'}"


@dataclass(frozen=True)
class Figure:
    """One line of the report. `median` and `p99` are in `unit`; `note` says what they are taken over."""

    name: str
    unit: str
    median: float
    p99: float
    bar: Bar | None = None
    note: str = ""

    def __str__(self) -> str:
        numbers = f"median {_short(self.median)} {self.unit}, p99 {_short(self.p99)} {self.unit}"
        parts = [f"{self.name}: {numbers}", *([str(self.bar)] if self.bar else []), *([self.note] if self.note else [])]
        return "; ".join(parts)

    def as_json(self) -> dict[str, Any]:
        """The figure as plain data; `bar.met` included."""
        data = asdict(self)
        if self.bar is not None:
            data["bar"]["met"] = self.bar.met
        return data


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` (0 to 1) of all values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
