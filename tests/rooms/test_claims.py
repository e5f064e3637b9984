"""Claims: one holder at a time, until they release it or it expires."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from simplexmcp.rooms.jsontext import units

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.rooms.client import InProcess, Server

    Servers = Callable[..., Server]


def _expire(client: InProcess) -> None:
    with client.database.write():
        client.database.run("UPDATE claims SET expires_at = datetime('now', '-1 seconds')")


def test_a_claim_is_granted_to_one_and_refused_to_others(alice: InProcess, bob: InProcess) -> None:
    holder = alice.enter_room().agent_id
    bob.enter_room()
    granted = alice.call("claim", key="file:a", ttl_seconds=60, note="refactoring")
    assert list(granted) == ["room_id", "room_name", "granted", "key", "expires_at", "renewed"]
    assert (granted["granted"], granted["key"], granted["renewed"]) == (True, "file:a", False)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", granted["expires_at"])
    refused = bob.call("claim", key="file:a", note="me too")
    assert list(refused) == [
        *("room_id", "room_name", "granted", "key", "holder", "note", "expires_at", "expires_in_seconds"),
    ]
    assert (refused["granted"], refused["holder"], refused["note"]) == (False, holder, "refactoring")
    assert refused["expires_at"] == granted["expires_at"]
    assert 50 <= refused["expires_in_seconds"] <= 60
    assert bob.call("claim", key="file:A")["granted"] is True


def test_claiming_again_renews_also_after_expiry(alice: InProcess) -> None:
    alice.enter_room()
    alice.call("claim", key="k", note="one")
    again = alice.call("claim", key="k", ttl_seconds=86_400)
    assert again["renewed"] is True
    assert alice.call("list_claims")["claims"][0]["note"] is None
    assert alice.call("list_claims")["claims"][0]["expires_in_seconds"] > 86_000
    _expire(alice)
    assert alice.call("claim", key="k")["renewed"] is True


def test_an_expired_claim_is_free(alice: InProcess, bob: InProcess) -> None:
    alice.enter_room()
    bob.enter_room()
    alice.call("claim", key="k")
    _expire(alice)
    taken = bob.call("claim", key="k")
    assert (taken["granted"], taken["renewed"]) == (True, False)
    assert alice.call("claim", key="k")["granted"] is False


def test_a_claim_that_expires_while_its_holder_works_goes_to_the_next(alice: InProcess, bob: InProcess) -> None:
    alice.enter_room()
    other = bob.enter_room().agent_id
    alice.call("claim", key="k", ttl_seconds=1)
    _expire(alice)
    bob.call("claim", key="k")
    released = alice.call("release_claim", key="k")
    assert (released["released"], other in released["reason"]) == (False, True)
    assert bob.call("list_claims")["claims"][0]["holder"] == other


def test_releasing_frees_what_is_ones_own_or_expired(alice: InProcess, bob: InProcess) -> None:
    holder = alice.enter_room().agent_id
    bob.enter_room()
    alice.call("claim", key="k")
    refused = bob.call("release_claim", key="k")
    assert list(refused) == ["room_id", "room_name", "released", "key", "reason"]
    assert (refused["released"], holder in refused["reason"]) == (False, True)
    released = alice.call("release_claim", key="k")
    assert list(released) == ["room_id", "room_name", "released", "key"]
    assert released["released"] is True
    assert alice.call("release_claim", key="k")["released"] is False
    alice.call("claim", key="k")
    _expire(alice)
    assert bob.call("release_claim", key="k")["released"] is True


def test_claims_survive_leaving_and_a_takeover(alice: InProcess, bob: InProcess) -> None:
    persona = alice.enter_room()
    alice.call("claim", key="a")
    alice.call("claim", key="b")
    alice.call("leave_room")
    assert alice.call("release_claim", room="hall", key="a")["released"] is True
    assert [claim["key"] for claim in alice.call("list_claims", room="hall")["claims"]] == ["b"]
    bob.resume(persona)
    bob.call("join_room", room="hall")
    assert bob.call("claim", key="b")["renewed"] is True


def test_who_never_joined_sees_no_claims(alice: InProcess, bob: InProcess) -> None:
    alice.enter_room()
    bob.persona()
    for tool, arguments in (("list_claims", {}), ("release_claim", {"key": "k"})):
        assert "never joined" in bob.refused(tool, room="hall", **arguments)["error"]


def test_claims_are_listed_by_key_in_pages_without_the_expired(alice: InProcess) -> None:
    alice.enter_room()
    alice.call("claim", key="gone")
    _expire(alice)
    for key in ("b", "a", "Z", "é", "c"):
        alice.call("claim", key=key, note="n" * (301 if key == "a" else 1))
    listed = alice.call("list_claims", limit=2)
    assert list(listed) == ["room_id", "room_name", "claims", "total", "next_key", "truncated"]
    assert [claim["key"] for claim in listed["claims"]] == ["Z", "a"]
    assert list(listed["claims"][0]) == ["key", "holder", "note", "expires_at", "expires_in_seconds"]
    assert listed["claims"][1]["note"] == "n" * 300
    assert listed["claims"][1]["note_truncated"] is True
    assert (listed["total"], listed["next_key"]) == (5, "a")
    rest = alice.call("list_claims", after_key="a")
    assert [claim["key"] for claim in rest["claims"]] == ["b", "c", "é"]
    assert (rest["total"], "next_key" in rest) == (5, False)
    assert alice.database.value("SELECT count(*) FROM claims") == 5


def test_a_long_list_of_claims_is_cut_and_goes_on(alice: InProcess) -> None:
    persona = alice.enter_room()
    with alice.database.write():
        alice.database.run_many(
            "INSERT INTO claims (room_id, key, agent_id, note, expires_at)"
            " VALUES (1, ?, ?, ?, datetime('now', '+1 hour'))",
            [(f"{number:03}" + "\x01" * 400, persona.agent_id, "\x02" * 300) for number in range(60)],
        )
    seen: list[str] = []
    after: dict[str, str] = {}
    while True:
        assert units(alice.text("list_claims", limit=1000, **after)[1]) <= 100_000
        page = alice.call("list_claims", limit=1000, **after)
        seen += [claim["key"][:3] for claim in page["claims"]]
        if "next_key" not in page:
            break
        assert page["size_trimmed"] is True
        after = {"after_key": page["next_key"]}
    assert seen == [f"{number:03}" for number in range(60)]


def test_bounds(alice: InProcess) -> None:
    alice.enter_room()
    assert "too_big" in alice.invalid("claim", key="k" * 501)
    alice.invalid("claim", key="")
    alice.invalid("claim", key="k", ttl_seconds=0)
    alice.invalid("claim", key="k", ttl_seconds=86_401)
    alice.invalid("claim", key="k", note="n" * 2001)
    assert alice.call("claim", key="k" * 500, note="n" * 2000)["granted"] is True


def test_claims_work_the_same_through_a_real_server(server: Servers) -> None:
    one, two = server(), server()
    one.enter_room()
    two.enter_room()
    assert one.call("claim", key="k")["granted"] is True
    assert two.call("claim", key="k")["granted"] is False
    assert one.call("release_claim", key="k")["released"] is True
    assert two.call("claim", key="k")["granted"] is True
