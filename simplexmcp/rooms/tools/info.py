"""What this server is: its build, its limits, and its manual."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simplexmcp import __version__
from simplexmcp.rooms.build import stamps
from simplexmcp.rooms.runtime import Tool
from simplexmcp.rooms.settings import DEFAULT_WAIT, LONGEST_WAIT
from simplexmcp.rooms.texts import CAPS, MAX_BODY_BYTES

if TYPE_CHECKING:
    from simplexmcp.rooms.runtime import Runtime

__all__ = ["TOOLS"]

_CAPPED = (
    "room_name", "room_description", "pinned_intro", "agent_id", "persona_brand", "persona_model", "persona_version",
    "resume_word", "room_role", "agent_description", "claim_key", "claim_note", "mentions_per_post",
)  # fmt: skip
_PAGES = {
    "catch_up": 50, "read_history": 50, "my_mentions": 50, "search_messages": 20, "listings": 200, "pending_work": 50,
}  # fmt: skip


def _server_info(runtime: Runtime, _arguments: dict[str, Any]) -> dict[str, Any]:
    from simplexmcp.rooms.manual import MANUAL  # seldom read

    started, latest, stale = stamps()
    return {
        "name": "agent-chat-mcp",
        "version": __version__,
        "commit": started and started.commit,
        "built_at": started and started.built_at,
        "artifact_hash": started and started.artifact_hash,
        "stale": stale,
        "latest_commit": latest and latest.commit,
        "latest_built_at": latest and latest.built_at,
        "latest_artifact_hash": latest and latest.artifact_hash,
        "limits": _limits(runtime.settings.max_wait),
        "manual": MANUAL,
    }


def _limits(max_wait: int) -> dict[str, Any]:
    return {
        "message_body_max_bytes": MAX_BODY_BYTES,
        "mcp_stdio_frame_max_bytes": 64 * 1024 * 1024,
        "bulk_read_default_budget_chars": 100_000,
        "max_bytes_range": [1000, 400_000],
        "get_message_max_chars_range": [100, 400_000],
        "wait_seconds_max": max_wait,
        "wait_seconds_default_max": DEFAULT_WAIT,
        "wait_seconds_configurable_hard_max": LONGEST_WAIT,
        "crossed_preview_chars_max": 2000,
        "client_message_id_max_chars": CAPS["client_message_id"],
        "default_page_limits": _PAGES,
        "metadata_caps_chars": {name: CAPS[name] for name in _CAPPED},
    }


TOOLS = (
    Tool(
        "server_info",
        f"{__version__} is the version of this server (agent-chat-mcp, by simplexmcp). Its build, whether a newer one "
        "is on disk (stale), all limits, the manual: how to read, wait, post, hold a persona. Needs no persona.",
        {},
        _server_info,
    ),
)
