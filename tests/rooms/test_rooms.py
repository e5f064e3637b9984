"""Rooms as such: making, finding, listing, describing and deleting them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from simplexmcp.rooms.jsontext import units

if TYPE_CHECKING:
    from tests.rooms.client import InProcess


def test_a_room_is_made_once_and_entered_by_nobody(alice: InProcess) -> None:
    alice.persona()
    assert alice.call("create_room", name="hall") == {"room_id": 1, "name": "hall"}
    assert alice.refused("create_room", name="hall")["error"].startswith('a room named "hall" already exists')
    assert alice.call("create_room", name="Hall")["room_id"] == 2
    assert alice.call("whoami")["joined"] is False
    assert alice.call("list_rooms")["rooms"][0]["members"] == 0


@pytest.mark.parametrize("name", ["42", "0", " hall", "hall ", "\thall", "   "])
def test_a_name_is_not_digits_alone_nor_surrounded_by_blanks(alice: InProcess, name: str) -> None:
    alice.persona()
    assert "name must" in alice.refused("create_room", name=name)["error"]
    assert alice.call("list_rooms")["total"] == 0


def test_a_room_needs_a_persona_but_listing_does_not(alice: InProcess) -> None:
    assert "no persona bound" in alice.refused("create_room", name="hall")["error"]
    assert alice.call("list_rooms") == {"rooms": [], "total": 0}


def test_a_room_is_found_by_its_id_first_and_then_by_its_name(alice: InProcess) -> None:
    alice.persona()
    with alice.database.write():
        alice.database.run_many("INSERT INTO rooms (name) VALUES (?)", [("one",), ("1",), ("77",), ("９",), ("٣",)])
    for reference, found in (("1", "one"), ("0001", "one"), ("2", "1"), ("77", "77"), ("９", "９"), ("٣", "٣")):
        assert alice.call("join_room", room=reference)["room_name"] == found
    for reference in ("ONE", " one", "one ", "6", "0", "-1", "9" * 40, str(2**63), "o\x00ne", "\ud800"):
        assert "no room" in alice.refused("join_room", room=reference)["error"]


def test_the_list_of_rooms_tells_what_is_in_them(alice: InProcess, bob: InProcess) -> None:
    alice.enter_room("one")
    alice.call("set_room_intro", text="be kind")
    bob.enter_room("two", brand="Other")
    bob.call("join_room", room="one")
    bob.call("post_message", content="hello")
    bob.call("post_message", content="again")
    bob.call("leave_room")
    listed = alice.call("list_rooms")
    assert list(listed) == ["rooms", "total"]
    first, second = listed["rooms"]
    assert list(first) == [
        *("id", "name", "description", "pinned", "created_at", "members", "messages", "last_activity"),
    ]
    assert (first["id"], first["name"], first["pinned"], first["members"], first["messages"]) == (
        *(1, "one", "be kind", 1, 2),
    )
    assert first["last_activity"] >= first["created_at"]
    assert (second["members"], second["messages"], second["last_activity"]) == (1, 0, None)


def test_long_texts_are_cut_in_the_list_and_whole_after_joining(alice: InProcess) -> None:
    alice.persona()
    alice.call("create_room", name="hall", description="😀" * 301, pinned="x" * 10_000)
    room = alice.call("list_rooms")["rooms"][0]
    assert room["description"] == "😀" * 300
    assert room["pinned"] == "x" * 300
    assert list(room)[-2:] == ["description_truncated", "pinned_truncated"]
    assert room["description_truncated"] is room["pinned_truncated"] is True
    joined = alice.call("join_room", room="hall")
    assert joined["room_description"] == "😀" * 301
    assert joined["pinned"] == "x" * 10_000
    alice.call("create_room", name="short", description="y" * 300)
    assert "description_truncated" not in alice.call("list_rooms", after_id=1)["rooms"][0]


def test_rooms_are_listed_in_pages(alice: InProcess) -> None:
    alice.persona()
    for number in range(5):
        alice.call("create_room", name=f"room {number}")
    page = alice.call("list_rooms", limit=2)
    assert list(page) == ["rooms", "total", "next_id", "truncated"]
    assert (page["total"], page["next_id"], page["truncated"]) == (5, 2, True)
    page = alice.call("list_rooms", limit=3, after_id=page["next_id"])
    assert [room["id"] for room in page["rooms"]] == [3, 4, 5]
    assert (page["total"], "next_id" in page, "truncated" in page) == (5, False, False)
    assert alice.call("list_rooms", after_id=5) == {"rooms": [], "total": 5}


def test_a_list_that_would_be_too_big_is_cut_and_goes_on_where_it_ended(alice: InProcess) -> None:
    alice.persona()
    with alice.database.write():
        alice.database.run_many(
            "INSERT INTO rooms (name, description, pinned) VALUES (?, ?, ?)",
            [(f"room {number}", "\x01" * 2000, "\x02" * 2000) for number in range(60)],
        )
    seen: list[int] = []
    after, cut = 0, 0
    while True:
        _, text = alice.text("list_rooms", limit=1000, after_id=after)
        page = alice.call("list_rooms", limit=1000, after_id=after)
        assert units(text) <= 100_000
        seen += [room["id"] for room in page["rooms"]]
        if "next_id" not in page:
            break
        assert page["size_trimmed"] is page["truncated"] is True
        after, cut = page["next_id"], cut + 1
    assert seen == list(range(1, 61))
    assert cut == 2


def test_the_intro_is_set_and_removed(alice: InProcess, bob: InProcess) -> None:
    alice.enter_room()
    assert alice.call("set_room_intro", text="read this") == {"room_id": 1, "pinned": "read this"}
    bob.persona()
    assert bob.call("join_room", room="hall")["pinned"] == "read this"
    assert alice.call("set_room_intro", text="") == {"room_id": 1, "pinned": None}
    assert bob.call("join_room", room="hall")["pinned"] is None


def test_deleting_a_room_needs_a_yes_and_takes_everything(alice: InProcess, bob: InProcess) -> None:
    alice.enter_room()
    bob.enter_room()
    alice.call("post_message", content="hello", to=["someone"])
    bob.call("claim", key="file:a")
    with bob.database.write():
        bob.database.run("INSERT INTO simplexmcp_retention (room_id, keep_last) VALUES (1, 5)")
    assert "confirm" in alice.refused("delete_room", room="hall", confirm=False)["error"]
    alice.invalid("delete_room", room="hall")
    gone = alice.call("delete_room", room="hall", confirm=True)
    assert gone == {"deleted_room": 1, "name": "hall", "messages": 1, "members": 2}
    for table in ("rooms", "messages", "memberships", "claims", "wait_leases", "simplexmcp_retention"):
        assert bob.database.value(f"SELECT count(*) FROM {table}") == 0
    assert bob.database.value("SELECT count(*) FROM messages_fts_docsize") == 0
    assert bob.database.value("SELECT count(*) FROM agents") == 2
    assert "no room" in alice.refused("delete_room", room="hall", confirm=True)["error"]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("post_message", {"content": "x"}),
        ("set_role", {"role": "x"}),
        ("set_room_intro", {"text": "x"}),
        ("leave_room", {}),
        ("list_agents", {}),
        ("mark_read", {}),
        ("claim", {"key": "x"}),
        ("release_claim", {"key": "x"}),
        ("list_claims", {}),
        ("prune_messages", {"keep_last": 1}),
    ],
)
def test_a_tool_whose_room_was_deleted_says_so_and_lets_go_of_it(
    alice: InProcess, bob: InProcess, tool: str, arguments: dict[str, object]
) -> None:
    alice.enter_room()
    bob.persona()
    bob.call("delete_room", room="hall", confirm=True)
    error = alice.refused(tool, **arguments)["error"]
    assert "no longer exists" in error
    assert "list_rooms" in error
    assert "create_room" in error
    assert "join a room first with join_room" in alice.refused(tool, **arguments)["error"]
    assert alice.call("whoami")["bound"] is True


def test_deleting_another_room_keeps_the_active_one(alice: InProcess) -> None:
    alice.enter_room("one")
    alice.call("create_room", name="two")
    alice.call("delete_room", room="two", confirm=True)
    assert alice.call("whoami")["room_name"] == "one"
    alice.call("delete_room", room="1", confirm=True)
    assert alice.call("whoami")["joined"] is False
    assert alice.call("create_room", name="three")["room_id"] == 3


def test_an_id_is_never_given_to_another_room(alice: InProcess) -> None:
    alice.persona()
    alice.call("create_room", name="one")
    alice.call("delete_room", room="one", confirm=True)
    assert alice.call("create_room", name="one")["room_id"] == 2


def test_the_space_of_a_deleted_room_is_given_back_to_the_disk(alice: InProcess) -> None:
    alice.enter_room()
    for _ in range(40):
        alice.call("post_message", content="x" * 40_000)
    pages = alice.database.value("PRAGMA page_count")
    alice.call("delete_room", room="hall", confirm=True)
    assert alice.database.value("PRAGMA page_count") < pages / 2
