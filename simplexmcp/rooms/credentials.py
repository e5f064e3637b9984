"""Personas that this machine keeps for an agent, so that no model has to remember an id and a word.

One file for each place: the client, its working directory, the room, the role, the model and the database. Several
sessions at once in one place have several slots: a persona that a living server holds is never taken away from it.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from simplexmcp.errors import UserError
from simplexmcp.rooms.seats import seated
from simplexmcp.rooms.state import alter, digest, file_in

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

__all__ = ["Place", "slot"]

_SLOTS = 64


class Place(NamedTuple):
    """Where an agent works: what its persona is kept under."""

    path: str
    client: str
    folder: str
    room: str
    role: str
    model: str


@contextmanager
def slot(place: Place) -> Generator[dict[str, Any]]:
    """What is kept in the first slot of a place whose persona no other server holds: `agent_id` and `resume_word`, or
    nothing yet. Locked until the block ends; what is changed in it is stored. Raises UserError."""
    for file in _files(place):
        with alter(file) as kept:
            holder = seated(place.path, kept["agent_id"]) if "agent_id" in kept else None
            if holder is None or holder == os.getpid():
                yield kept
                return
    raise UserError(f"{_SLOTS} sessions of this client in {place.folder} hold a persona for this room already.")


def _files(place: Place) -> Iterator[str]:
    name = digest(*place)
    for number in range(_SLOTS):
        yield file_in("personas", f"{name}-{number}.json")
