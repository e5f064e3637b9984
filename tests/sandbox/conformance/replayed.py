"""The replays that several tests look at, each done once."""

from __future__ import annotations

from functools import cache

from tests.sandbox.conformance.gaps import DIFFERENT
from tests.sandbox.conformance.recording import Recording
from tests.sandbox.conformance.replay import Finding, Outcome, replay

__all__ = ["RECORDINGS", "replayed", "unknown"]

RECORDINGS = (
    "01-first-start-lib", "01b-first-start-ws", "02-connect", "02b-cards-sql", "03-join", "04-send", "04b-size-limits",
    "05-read", "06-custom-data", "07-leave-delete", "08-owners", "08b-owner-leaves", "09a-files", "09b-files",
    "09c-files", "09d-files", "09e-xftp-down", "10-restart", "12-websocket", "13-ids", "14-misc", "15-more",
    "15b-lib", "15c-deleted-unread",
)  # fmt: skip
"""All recordings but that of a channel, which the sandbox does not model."""


PHASES = (0.0, 0.5, 0.1, 0.6, 0.2, 0.7, 0.3, 0.8, 0.4, 0.9)
"""Where in a second a replay begins. Received items have whole seconds, own ones fractions: which of two items of the
same second is first in a group, and so on which page it is, depends on that."""


@cache
def replayed(name: str) -> Outcome:
    """What the replay of the recording `name` found, at the phase that is most like the recording's."""
    recording = Recording.read(name)
    outcomes: list[Outcome] = []
    for phase in PHASES:
        outcomes.append(replay(recording, phase=phase))
        if not unknown(outcomes[-1]):
            break
    return min(outcomes, key=lambda outcome: len(unknown(outcome)))


def unknown(outcome: Outcome) -> list[Finding]:
    """The differences that no gap explains."""
    name = outcome.recording.name
    return [f for f in outcome.findings if not any(gap.covers(name, f) for gap in DIFFERENT)]
