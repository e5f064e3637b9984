"""What a message of the control chat says: the commands that the core found in it, and whether it can be one. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["commands_in", "why_no_command"]


def commands_in(item: Mapping[str, Any]) -> tuple[str, ...]:
    """The commands that the core found in a message, in order."""
    parts = item.get("formattedText")
    formats = [part.get("format") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    commands = [each for each in formats if isinstance(each, dict) and each.get("type") == "command"]
    return tuple(str(each.get("commandStr")) for each in commands)


def why_no_command(item: Mapping[str, Any]) -> str | None:
    """Why a message is no command whatever it says; None when it was said here, now, and by its sender."""
    meta = item["meta"]
    if meta.get("itemForwarded") or meta.get("forwardedByMember") is not None:
        return "it was forwarded"
    if item.get("quotedItem"):
        return "it is a reply with a quote"
    if meta.get("itemLive"):
        return "it is a live message"
    if meta.get("itemEdited") or meta.get("itemDeleted"):
        return "it was edited or deleted"
    return None
