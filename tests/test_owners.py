"""Who approves: people that are owners, cut to the list (flow 12)."""

from __future__ import annotations

from typing import Any

import pytest

from simplexmcp.errors import UserError
from simplexmcp.owners import Entry, Member, OwnerRule, entries_of, listed_members, member_of, parse_owners


def wire(
    number: int, name: str, role: str = "owner", status: str = "connected", peer: str | None = None
) -> dict[str, Any]:
    profile: dict[str, Any] = {"profileId": 9, "displayName": name, "fullName": "", "localAlias": ""}
    if peer:
        profile["peerType"] = peer
    return {
        "groupMemberId": number, "memberId": f"id-{number}", "memberRole": role, "memberStatus": status,
        "memberProfile": profile, "localDisplayName": f"{name}_1",
    }  # fmt: skip


def member(*args: Any, **kwargs: Any) -> Member:
    found = member_of(wire(*args, **kwargs))
    assert found is not None
    return found


@pytest.mark.parametrize("odd", [[], {}, 1, True])
def test_what_should_be_a_word_and_is_none_makes_nobody_an_approver(odd: Any) -> None:
    for key in ("memberStatus", "memberRole"):
        found = member_of({**wire(3, "Alice"), key: odd})
        assert found is not None
        assert not OwnerRule().approves(found)
    assert not OwnerRule().approves(member(3, "Alice", peer=odd or "x"))


def test_an_owner_that_is_a_person_approves() -> None:
    rule = OwnerRule()
    assert rule.approves(member(3, "Alice"))
    assert not rule.approves(member(3, "Alice", role="admin"))
    assert not rule.approves(member(3, "Alice", peer="bot"))
    assert not rule.approves(member(3, "Alice", peer="agent"))
    assert not rule.approves(member(3, "Alice", status="left"))
    assert not rule.approves(member(3, "Alice", status="removed"))


def test_a_list_cuts_the_owners_by_their_identity_and_not_by_their_name() -> None:
    rule = OwnerRule(frozenset({"id-3"}))
    assert rule.approves(member(3, "Renamed"))
    assert not rule.approves(member(7, "Alice"))
    assert not OwnerRule(frozenset()).approves(member(3, "Alice"))


def test_the_list_is_read_as_it_is_printed() -> None:
    people = [member(3, "Alice"), member(7, "Bob  B."), member(8, "a,9:b")]
    assert parse_owners(entries_of(people[:2])) == (Entry(3, "Alice"), Entry(7, "Bob B."))
    assert listed_members(parse_owners("7:Bob B.,3:Alice"), people) == [people[1], people[0]]


@pytest.mark.parametrize("text", ["Alice", "3", "3:", "x:Alice", "0:Alice", "03:Alice", "3:Alice,Bob:7", "-3:Alice"])
def test_what_is_no_list_ends_with_code_2(text: str) -> None:
    with pytest.raises(UserError) as raised:
        listed_members(parse_owners(text), [member(3, "Alice")])
    assert raised.value.code == 2


@pytest.mark.parametrize("entry", ["4:Alice", "3:Bob", "5:Robot", "6:Gone"])
def test_an_entry_that_matches_nobody_ends_with_code_2_and_names_who_is_there(entry: str) -> None:
    members = [member(3, "Alice"), member(5, "Robot", peer="bot"), member(6, "Gone", status="left")]
    with pytest.raises(UserError, match="there: 3:Alice") as raised:
        listed_members(parse_owners(entry), members)
    assert raised.value.code == 2


def test_a_damaged_member_is_nobody() -> None:
    assert member_of(None) is None
    assert member_of({"groupMemberId": "3"}) is None
    assert member_of(wire(3, "Alice") | {"memberProfile": None}) is None
