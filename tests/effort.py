"""How much is tried: enough each time the tests run, far more with `--hypothesis-profile=thorough`."""

from __future__ import annotations

from hypothesis import settings

__all__ = ["effort"]


def effort(quick: int, thorough: int) -> int:
    """The number for this run."""
    return thorough if settings.get_current_profile_name() == "thorough" else quick
