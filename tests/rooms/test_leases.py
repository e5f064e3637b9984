"""Leases of open waits: who has one, when it ends, and whose it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from simplexmcp.rooms.errors import PersonaLost, RoomsError
from simplexmcp.rooms.store.leases import close_lease, has_lease, open_lease

if TYPE_CHECKING:
    from collections.abc import Callable

    from simplexmcp.rooms.runtime import Binding
    from tests.rooms.client import InProcess


class Seat:
    """A persona in room 1 and its connection."""

    def __init__(self, client: InProcess) -> None:
        self.persona = client.enter_room("hall")
        self.client = client
        self.db = client.database

    @property
    def binding(self) -> Binding:
        return self.client.runtime.bound()

    def rows(self) -> list[tuple[Any, ...]]:
        return [
            tuple(row)
            for row in self.db.all(
                "SELECT agent_id, epoch, CAST(round((julianday(expires_at) - julianday('now')) * 86400) AS INTEGER)"
                " FROM wait_leases ORDER BY agent_id"
            )
        ]

    def waits(self) -> bool:
        return has_lease(self.db, 1, self.persona.agent_id)


@pytest.fixture
def seat(alice: InProcess) -> Seat:
    return Seat(alice)


def test_a_lease_lasts_as_long_as_the_wait_and_a_little_longer(seat: Seat):
    assert not seat.waits()
    open_lease(seat.db, seat.binding, 1, 20)
    ((agent, epoch, left),) = seat.rows()
    assert (agent, epoch) == (seat.persona.agent_id, 1)
    assert 23 <= left <= 26
    assert seat.waits()
    close_lease(seat.db, seat.binding, 1)
    assert (seat.rows(), seat.waits()) == ([], False)


def test_two_waits_share_a_lease_that_ends_with_the_later_one(seat: Seat):
    open_lease(seat.db, seat.binding, 1, 100)
    open_lease(seat.db, seat.binding, 1, 1)
    assert len(seat.rows()) == 1
    assert seat.rows()[0][2] > 90
    close_lease(seat.db, seat.binding, 1)
    assert seat.waits()
    close_lease(seat.db, seat.binding, 1)
    assert not seat.waits()
    open_lease(seat.db, seat.binding, 1, 1)
    assert seat.rows()[0][2] < 10


def test_a_new_lease_forgets_those_that_are_over(seat: Seat, bob: InProcess):
    other = Seat(bob)
    open_lease(other.db, other.binding, 1, 1)
    with seat.db.write():
        seat.db.run("UPDATE wait_leases SET expires_at = datetime('now', '-1 second')")
    assert not other.waits()
    open_lease(seat.db, seat.binding, 1, 1)
    assert [row[0] for row in seat.rows()] == [seat.persona.agent_id]


def test_a_runtime_that_lost_its_persona_opens_none_and_takes_none_away(seat: Seat, bob: InProcess):
    old = seat.binding
    open_lease(seat.db, old, 1, 20)
    bob.resume(seat.persona)
    new = bob.runtime.bound()
    open_lease(bob.database, new, 1, 1)
    assert [(row[1], row[2] < 10) for row in seat.rows()] == [(2, True)]
    close_lease(seat.db, old, 1)
    assert seat.waits()
    with pytest.raises(PersonaLost):
        open_lease(seat.db, old, 1, 20)
    close_lease(bob.database, new, 1)
    assert not seat.waits()


def test_only_a_present_member_can_wait(seat: Seat, runtime: Callable[..., InProcess]):
    stranger = runtime()
    stranger.persona()
    with pytest.raises(RoomsError, match="never joined"):
        open_lease(stranger.database, stranger.runtime.bound(), 1, 1)
    seat.client.call("leave_room")
    with pytest.raises(RoomsError, match="LEFT"):
        open_lease(seat.db, seat.binding, 1, 1)
    stranger.call("delete_room", room="hall", confirm=True)
    with pytest.raises(RoomsError, match="no longer exists"):
        open_lease(seat.db, seat.binding, 1, 1)
    assert seat.db.leases.total() == 0
