"""Personas: who may speak as whom, and since when.

The stored epoch rises with every takeover. Whoever holds an older one can read, but never write again.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, NamedTuple

from simplexmcp.rooms.errors import NewPersonaRequired, PersonaLost, RoomsError
from simplexmcp.rooms.runtime import Binding
from simplexmcp.rooms.texts import CAPS, check_text, is_unstorable
from simplexmcp.rooms.words import draw_word, slug

if TYPE_CHECKING:
    import sqlite3

    from simplexmcp.rooms.store.database import Database

__all__ = ["Identity", "check_epoch", "create", "disclosure", "profile", "reattach", "take_over"]

_DRAWS = 40
_LISTED_ROOMS = 50


class Identity(NamedTuple):
    """The model that answers, as its host names it; compared as exact texts."""

    brand: str
    model: str
    version: str

    def parts(self) -> dict[str, str]:
        """The three as a JSON object."""
        return {"brand": self.brand, "model": self.model, "version": self.version}


def check_epoch(db: Database, binding: Binding) -> None:
    """Inside a transaction, before anything else: raises PersonaLost unless the persona is still held as bound."""
    current = _epoch(db, binding.agent_id)
    if current != binding.epoch:
        raise PersonaLost(binding.agent_id, binding.epoch, current)


def disclosure(db: Database, binding: Binding) -> dict[str, Any]:
    """What a read says first when the persona was taken over; nothing while it is held."""
    current = _epoch(db, binding.agent_id)
    if current == binding.epoch:
        return {}
    return {"persona_lost": True, "your_epoch": binding.epoch, "current_epoch": current}


def profile(db: Database, agent_id: str) -> sqlite3.Row | None:
    """The stored persona, without its resume word."""
    return db.one(
        "SELECT id, is_human, brand, model, version, description, runtime_epoch FROM agents WHERE id = ?", agent_id
    )


def create(db: Database, identity: Identity, description: str | None) -> tuple[str, str]:
    """Stores a new persona at epoch 1: its ID and its resume word. Raises RoomsError for texts that make no ID."""
    _check_identity(identity)
    if description is not None:
        check_text("description", description, CAPS["agent_description"])
    stem = _stem(identity)
    word = draw_word()
    with db.write():
        for _ in range(_DRAWS):
            agent_id = f"{stem}-{secrets.token_hex(3)}"
            added = db.run(
                "INSERT INTO agents (id, is_human, brand, model, version, resume_word, description)"
                " VALUES (?, 0, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
                agent_id,
                identity.brand,
                identity.model,
                identity.version,
                word,
                description,
            )
            if added.rowcount:
                return agent_id, word
    raise RoomsError("No free persona id was found for this brand, model and version. Try again.")


def reattach(db: Database, binding: Binding, word: str, identity: Identity) -> bool:
    """Whether the persona is still held as bound; if so, checks the word and the model. Raises RoomsError."""
    row = db.one("SELECT resume_word, brand, model, version, runtime_epoch FROM agents WHERE id = ?", binding.agent_id)
    if row is None or row["runtime_epoch"] != binding.epoch:
        return False
    if not _same_word(row["resume_word"], word):
        raise RoomsError(
            f'The resume word does not fit persona "{binding.agent_id}". This runtime still holds that persona; '
            "nothing was fenced."
        )
    _check_model(db, binding.agent_id, row, identity)
    return True


def take_over(db: Database, agent_id: str, word: str, identity: Identity) -> Binding:
    """Raises the epoch, so that every other holder is fenced out. Raises RoomsError and NewPersonaRequired."""
    with db.write():
        row = None
        if not is_unstorable(agent_id):
            row = db.one(
                "SELECT resume_word, brand, model, version, runtime_epoch FROM agents WHERE id = ? AND is_human = 0",
                agent_id,
            )
        if row is None:
            raise RoomsError(
                f'There is no LLM persona "{agent_id}". Check the id, or call create_persona for a new persona.'
            )
        if not _same_word(row["resume_word"], word):
            raise RoomsError(
                f'resume rejected: the resume word does not fit persona "{agent_id}". Nothing was changed. Check the '
                "word, or call create_persona for a new persona."
            )
        _check_model(db, agent_id, row, identity)
        epoch = row["runtime_epoch"] + 1
        db.run("UPDATE agents SET runtime_epoch = ? WHERE id = ?", epoch, agent_id)
    return Binding(agent_id, epoch)


def _epoch(db: Database, agent_id: str) -> int | None:
    epoch: int | None = db.value("SELECT runtime_epoch FROM agents WHERE id = ?", agent_id)
    return epoch


def _check_identity(identity: Identity) -> None:
    for name, text in identity.parts().items():
        check_text(name, text, CAPS[f"persona_{name}"])
        if not text.strip():
            raise RoomsError(f"{name} must be non-blank.")


def _stem(identity: Identity) -> str:
    slugs = {name: slug(text) for name, text in identity.parts().items()}
    for name, text in slugs.items():
        if not text:
            raise RoomsError(f"{name} needs at least one letter a-z or digit, since the persona's id is made of it.")
    stem = f"{slugs['brand']}-{slugs['model']}-v{slugs['version']}"
    longest = CAPS["agent_id"] - len("-000000")
    if len(stem) > longest:
        raise RoomsError(
            f"brand, model and version make an id that exceeds {CAPS['agent_id']} characters. "
            f"Shorten them by {len(stem) - longest} characters."
        )
    return stem


def _same_word(stored: str | None, given: str) -> bool:
    # Compared as bytes in constant time: a word with letters that no word has is simply wrong.
    return secrets.compare_digest((stored or "").encode(), given.encode("utf-8", "surrogatepass"))


def _check_model(db: Database, agent_id: str, row: sqlite3.Row, identity: Identity) -> None:
    stored = Identity(row["brand"], row["model"], row["version"])
    if stored == identity:
        return
    rooms = db.all(
        "SELECT r.name FROM memberships m JOIN rooms r ON r.id = m.room_id"
        " WHERE m.agent_id = ? AND m.left_at IS NULL ORDER BY r.id LIMIT ?",
        agent_id,
        _LISTED_ROOMS,
    )
    raise NewPersonaRequired(agent_id, stored.parts(), identity.parts(), [room["name"] for room in rooms])
