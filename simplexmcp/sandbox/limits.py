"""The core's limits as the sandbox enforces them: the message length is the rule of `core.limits`."""

from __future__ import annotations

from typing import Any

from simplexmcp.core.limits import MAX_MESSAGE, MENTIONS_SENT, message_size

__all__ = ["MENTIONS_SENT", "fits"]


def fits(event: str, params: dict[str, Any]) -> bool:
    """Whether the core sends a message with these parameters; else it answers `largeMsg`."""
    return message_size(event, params) <= MAX_MESSAGE
