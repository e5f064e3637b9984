"""What the sandbox does not do like a real core, by name, and why. A gap that is closed must leave this table."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.sandbox.conformance.replay import Finding

__all__ = ["DIFFERENT", "REFUSED", "Gap", "Refusal"]


@dataclass(frozen=True)
class Refusal:
    """Commands of a step that the sandbox refuses, saying that it does not model them."""

    recording: str
    step: str
    command: str

    def covers(self, recording: str, step: str, command: str) -> bool:
        """Whether this refusal was listed for the command."""
        return recording == self.recording and step == self.step and command.startswith(self.command)


@dataclass(frozen=True)
class Gap:
    """Differences that are known: `recording` and `step` ("" for all), and a pattern for what differs and where."""

    recording: str
    step: str
    what: str
    reason: str

    def covers(self, recording: str, finding: Finding) -> bool:
        """Whether the difference is one of these."""
        if self.recording not in ("", recording) or self.step not in ("", finding.step):
            return False
        return (
            re.search(self.what, f"{finding.what} | {finding.path} | {finding.recorded} | {finding.simulated}")
            is not None
        )


REFUSED: tuple[Refusal, ...] = ()

DIFFERENT: tuple[Gap, ...] = (
    Gap("", "", r"\| (chat|agent)Migrations \(length\)", "a simulated core has no database schema to list"),
    Gap("", "", r"profile\.image \|.*AAAAEAAAABCAYAAAAf", "the preset contact cards have a picture of one point"),
    Gap(
        "",
        "",
        r"^/network .*\| networkConfig\.",
        "the defaults are the library's, not the client's",
    ),
    Gap("", "", r"^/_servers 1 \| userServers", "there is one relay server, and no preset operator"),
)
