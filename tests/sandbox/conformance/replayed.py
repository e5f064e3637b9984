"""The replays that several tests look at, each done once."""

from __future__ import annotations

from functools import cache

from tests.sandbox.conformance.recording import Recording
from tests.sandbox.conformance.replay import Outcome, replay

__all__ = ["RECORDINGS", "replayed"]

RECORDINGS = (
    "01-first-start-lib", "01b-first-start-ws", "02-connect", "02b-cards-sql", "03-join", "04-send", "04b-size-limits",
    "05-read", "06-custom-data", "07-leave-delete", "08-owners", "08b-owner-leaves", "10-restart", "12-websocket",
    "13-ids", "14-misc", "15-more", "15b-lib", "15c-deleted-unread",
)  # fmt: skip
"""All recordings but those of channels and files, which the sandbox does not model."""


@cache
def replayed(name: str) -> Outcome:
    """What the replay of the recording `name` found."""
    return replay(Recording.read(name))
