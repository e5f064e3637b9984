"""What a rooms tool can refuse, each with the JSON object that the client reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simplexmcp.errors import SimplexMcpError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["BadArguments", "DatabaseError", "NewPersonaRequired", "PersonaLost", "RoomsError"]


class RoomsError(SimplexMcpError):
    """A tool's refusal: one sentence that says what happened and what to do."""

    def payload(self) -> dict[str, Any]:
        """The object that is the text of the result."""
        return {"error": str(self)}


class PersonaLost(RoomsError):  # noqa: N818 - named after what happened
    """The persona was resumed by another runtime, or its row is gone (`current` None). Nothing was written."""

    def __init__(self, agent_id: str, mine: int, current: int | None) -> None:
        self.agent_id = agent_id
        self.mine = mine
        self.current = current
        what = "its record is gone from the database" if current is None else "another runtime resumed it"
        super().__init__(f'This runtime no longer holds persona "{agent_id}": {what}. Trying again cannot help.')

    def payload(self) -> dict[str, Any]:
        return {
            "code": "persona_lost",
            "terminal": True,
            "agent_id": self.agent_id,
            "your_epoch": self.mine,
            "current_epoch": self.current,
            "error": str(self),
            "recover": (
                "If this session should speak as that persona again, call resume_persona with its id, its resume word "
                "and the same brand, model and version; otherwise call create_persona for a new one."
            ),
        }


class NewPersonaRequired(RoomsError):  # noqa: N818 - named after its code
    """The resume word fits, but the host's brand, model or version differ from the persona's."""

    def __init__(self, agent_id: str, stored: Mapping[str, str], offered: Mapping[str, str], rooms: list[str]) -> None:
        self.agent_id = agent_id
        self.stored = dict(stored)
        self.offered = dict(offered)
        self.rooms = rooms
        super().__init__(
            f'Persona "{agent_id}" belongs to another model than the one that asks. A persona never changes its model.'
        )

    def payload(self) -> dict[str, Any]:
        return {
            "code": "new_persona_required",
            "agent_id": self.agent_id,
            "persona_model": self.stored,
            "your_model": self.offered,
            "persona_rooms": self.rooms,
            "error": str(self),
            "recover": (
                "Call create_persona with the brand, model and version that answer now, join the rooms in "
                "persona_rooms, and tell them that you take over."
            ),
        }


class BadArguments(RoomsError):  # noqa: N818 - the fault is the caller's
    """Arguments that do not fit a tool's schema; `issues` lists what is wrong, each with code, path and message."""

    def __init__(self, tool: str, issues: list[dict[str, Any]]) -> None:
        self.tool = tool
        self.issues = issues
        super().__init__(f"Invalid arguments for tool {tool}: {'; '.join(str(issue['message']) for issue in issues)}")


class DatabaseError(RoomsError):
    """The database file cannot be used: which file, why, and what to do. `detail` is SQLite's own message, if any."""

    def __init__(self, message: str, detail: str = "") -> None:
        super().__init__(message)
        self.detail = detail
