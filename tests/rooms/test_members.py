"""Being in a room: joining, leaving, roles, read markers, and signs of life."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from simplexmcp.rooms.jsontext import units
from simplexmcp.rooms.store.members import presence

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.rooms.client import InProcess, Server

    Runtimes = Callable[..., InProcess]
    Servers = Callable[..., Server]


def _age(client: InProcess, agent_id: str, seconds: int) -> None:
    """Moves the last sign of life of a member into the past."""
    with client.database.write():
        client.database.run(
            "UPDATE memberships SET last_seen = datetime('now', ?) WHERE agent_id = ?", f"-{seconds} seconds", agent_id
        )


def _idle(client: InProcess, agent_id: str) -> int:
    found = presence(client.database, 1, agent_id)
    assert found is not None
    return int(found["idle_seconds"])


def test_the_first_join_starts_at_the_beginning(alice: InProcess, bob: InProcess) -> None:
    bob.enter_room()
    for text in ("one", "two"):
        bob.call("post_message", content=text)
    persona = alice.persona()
    joined = alice.call("join_room", room="hall", role="scribe")
    assert list(joined)[:15] == [
        *("agent_id", "brand", "model", "version", "persona_description"),
        *("room_id", "room_name", "room_description", "pinned", "role", "new_membership"),
        *("last_read_seq", "unread", "members", "poller_cmd"),
    ]
    assert list(joined)[15] == "server_build"
    assert joined["agent_id"] == persona.agent_id
    assert (joined["role"], joined["new_membership"]) == ("scribe", True)
    assert (joined["last_read_seq"], joined["unread"], joined["members"]) == (0, 2, 2)
    assert "--room" not in joined["poller_cmd"]
    assert "--epoch '1'" in joined["poller_cmd"]


def test_a_first_join_at_the_latest_message_skips_what_is_older(alice: InProcess, bob: InProcess) -> None:
    bob.enter_room()
    bob.call("post_message", content="old")
    alice.persona()
    joined = alice.call("join_room", room="hall", cursor_start="latest")
    keys = list(joined)
    assert keys[keys.index("new_membership") :][:4] == ["new_membership", "cursor_start", "note", "last_read_seq"]
    assert (joined["cursor_start"], joined["last_read_seq"], joined["unread"]) == ("latest", 1, 0)
    bob.call("post_message", content="new")
    again = alice.call("join_room", room="hall", cursor_start="latest")
    assert "cursor_start" not in again
    assert (again["new_membership"], again["last_read_seq"], again["unread"]) == (False, 1, 1)
    plain = bob.call("join_room", room="hall", cursor_start="beginning")
    assert "cursor_start" not in plain


def test_coming_back_keeps_marker_and_role(alice: InProcess) -> None:
    persona = alice.enter_room()
    alice.call("set_role", role="scribe")
    alice.call("post_message", content="mine")
    assert alice.call("leave_room") == {"left": True, "room_id": 1, "agent_id": persona.agent_id}
    assert "join a room first with join_room" in alice.refused("leave_room")["error"]
    back = alice.call("join_room", room="hall")
    assert (back["role"], back["last_read_seq"], back["new_membership"], back["members"]) == ("scribe", 1, False, 1)
    assert alice.call("join_room", room="hall", role="lead")["role"] == "lead"


def test_leaving_and_taking_a_role_are_signs_of_life(alice: InProcess) -> None:
    persona = alice.enter_room()
    for tool, arguments in (("set_role", {"role": "x"}), ("leave_room", {}), ("join_room", {"room": "hall"})):
        alice.runtime.touched[(1, persona.agent_id, True)] = float("inf")
        _age(alice, persona.agent_id, 1000)
        alice.call(tool, **arguments)
        assert _idle(alice, persona.agent_id) < 100


def test_a_role_is_set_changed_and_cleared(alice: InProcess) -> None:
    persona = alice.enter_room()
    done = alice.call("set_role", role="scribe", room="hall")
    assert done == {
        "agent_id": persona.agent_id,
        "room_id": 1,
        "room_name": "hall",
        "role": "scribe",
        "cleared": False,
    }
    assert list(done) == ["agent_id", "room_id", "room_name", "role", "cleared"]
    assert alice.call("whoami")["role"] == "scribe"
    assert alice.call("set_role", role=None)["cleared"] is True
    assert alice.call("whoami")["role"] is None
    for tool, arguments in (("set_role", {}), ("join_room", {"room": "hall"})):
        assert "non-blank" in alice.invalid(tool, role=" \t", **arguments)
    alice.invalid("set_role")
    alice.invalid("set_role", role="")


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("post_message", {"content": "x"}),
        ("set_role", {"role": "x"}),
        ("claim", {"key": "x"}),
    ],
)
def test_what_writes_to_a_room_needs_a_present_member(
    alice: InProcess, bob: InProcess, tool: str, arguments: dict[str, object]
) -> None:
    bob.enter_room()
    alice.persona()
    never = alice.refused(tool, room="hall", **arguments)["error"]
    assert "never joined" in never
    assert "join_room" in never
    alice.call("join_room", room="hall")
    alice.call("leave_room")
    left = alice.refused(tool, room="hall", **arguments)["error"]
    assert "have LEFT room" in left
    assert "join_room" in left
    alice.call("join_room", room="hall")
    alice.call(tool, room="hall", **arguments)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("set_room_intro", {"text": "x"}),
        ("mark_read", {}),
        ("prune_messages", {"keep_last": 1}),
        ("post_message", {"content": "x"}),
    ],
)
def test_a_member_who_was_taken_out_of_the_active_room_cannot_write_to_it(
    alice: InProcess, tool: str, arguments: dict[str, object]
) -> None:
    alice.enter_room()
    with alice.database.write():
        alice.database.run("UPDATE memberships SET left_at = datetime('now')")
    assert "LEFT room" in alice.refused(tool, **arguments)["error"]
    assert alice.call("whoami")["joined"] is False
    assert alice.call("leave_room")["left"] is False


def test_the_list_of_agents_tells_who_is_there(alice: InProcess, bob: InProcess) -> None:
    first = alice.persona()
    alice.call("create_room", name="hall")
    alice.call("join_room", room="hall", role="lead")
    bob.call("create_persona", brand="Other", model="M", version="2", description="d" * 301)
    second = bob.call("whoami")["agent_id"]
    bob.call("join_room", room="hall")
    bob.call("leave_room")
    listed = alice.call("list_agents")
    assert list(listed) == ["agents", "total"]
    one, two = listed["agents"]
    columns = [
        *("id", "brand", "model", "version", "is_human", "role", "description"),
        *("joined_at", "last_read_seq", "last_seen", "idle_seconds"),
    ]
    assert list(one) == [*columns, "present", "active", "watching"]
    assert list(two) == [*columns, "description_truncated", "present", "active", "watching"]
    assert (one["id"], one["role"], one["present"], one["active"], one["watching"]) == (
        *(first.agent_id, "lead", True, True, False),
    )
    assert (two["id"], two["description"], two["present"], two["active"]) == (second, "d" * 300, False, False)
    assert listed["total"] == 2


def test_agents_are_filtered_by_a_plain_text_in_any_case(alice: InProcess, bob: InProcess) -> None:
    alice.call("create_persona", brand="Acme", model="50%_x", version="1", description="Writes Docs")
    alice.call("create_room", name="hall")
    alice.call("join_room", room="hall", role="Reviewer")
    bob.enter_room(model="50 y", brand="Other")
    mine = alice.call("whoami")["agent_id"]

    def found(text: str) -> list[str]:
        return [agent["id"] for agent in alice.call("list_agents", filter=text)["agents"]]

    for text in (" reviewer ", "DOCS", "50%_", "%_x", "acme-50"):
        assert found(text) == [mine]
    assert len(found("  ")) == len(found("50")) == 2
    assert found("\\") == found("50%y") == found("\x00") == found("\ud800") == []
    assert alice.call("list_agents", filter="other")["total"] == 1


def test_agents_are_listed_in_pages_in_the_order_of_joining(runtime: Runtimes) -> None:
    clients = [runtime() for _ in range(5)]
    ids = [client.enter_room().agent_id for client in clients]
    clients[0].call("leave_room")
    clients[0].call("join_room", room="hall")
    page = clients[0].call("list_agents", limit=2)
    assert list(page) == ["agents", "total", "next_after", "truncated"]
    rest = clients[0].call("list_agents", limit=3, after=page["next_after"])
    assert [agent["id"] for agent in page["agents"] + rest["agents"]] == ids
    assert (page["total"], rest["total"], "next_after" in rest) == (5, 5, False)


def test_a_long_list_of_agents_is_cut_and_goes_on(alice: InProcess) -> None:
    alice.enter_room()
    with alice.database.write():
        for number in range(120):
            alice.database.run(
                "INSERT INTO agents (id, brand, model, version, resume_word, description)"
                " VALUES (?, 'b', 'm', '1', 'w', ?)",
                *(f"agent {number:03}", "\x01" * 300),
            )
            alice.database.run("INSERT INTO memberships (room_id, agent_id) VALUES (1, ?)", f"agent {number:03}")
    seen: list[str] = []
    after: dict[str, int] = {}
    while True:
        page = alice.call("list_agents", limit=1000, **after)
        assert units(alice.text("list_agents", limit=1000, **after)[1]) <= 100_000
        seen += [agent["id"] for agent in page["agents"]]
        if "next_after" not in page:
            break
        assert page["size_trimmed"] is True
        after = {"after": page["next_after"]}
    assert len(seen) == len(set(seen)) == 121


def test_active_means_seen_lately_or_waiting_now(alice: InProcess, bob: InProcess) -> None:
    alice.enter_room()
    other = bob.enter_room().agent_id
    _age(alice, other, 301)

    def state(**window: float) -> tuple[bool, bool, int]:
        agent = alice.call("list_agents", filter=other, **window)["agents"][0]
        return agent["active"], agent["watching"], agent["idle_seconds"]

    assert state()[:2] == (False, False)
    assert 301 <= state()[2] < 310
    assert state(active_within_minutes=6)[0] is True
    assert state(active_within_minutes=0.5)[0] is False
    with alice.database.write():
        alice.database.run(
            "INSERT INTO wait_leases (room_id, agent_id, epoch, expires_at)"
            " VALUES (1, ?, 1, datetime('now', '+30 seconds'))",
            other,
        )
    assert state()[:2] == (True, True)
    with alice.database.write():
        alice.database.run("UPDATE wait_leases SET expires_at = datetime('now', '-1 seconds')")
    assert state()[:2] == (False, False)
    alice.invalid("list_agents", active_within_minutes=0)
    alice.invalid("list_agents", active_within_minutes=1441)


def test_each_call_is_a_sign_of_life_but_not_more_often_than_every_30_seconds(alice: InProcess) -> None:
    persona = alice.enter_room()
    _age(alice, persona.agent_id, 1000)
    alice.call("whoami")
    assert _idle(alice, persona.agent_id) < 100
    _age(alice, persona.agent_id, 1000)
    alice.call("whoami")
    assert _idle(alice, persona.agent_id) >= 1000
    key = (1, persona.agent_id, True)
    alice.runtime.touched[key] -= 31
    alice.call("list_rooms")
    assert _idle(alice, persona.agent_id) < 100


def test_a_call_on_another_room_is_a_sign_of_life_there(alice: InProcess) -> None:
    persona = alice.enter_room("one")
    alice.call("create_room", name="two")
    alice.call("join_room", room="two")
    for tool, arguments in (
        ("post_message", {"content": "x"}),
        ("claim", {"key": "x"}),
        ("release_claim", {"key": "x"}),
        ("list_claims", {}),
    ):
        _age(alice, persona.agent_id, 1000)
        alice.runtime.touched.clear()
        alice.call(tool, room="one", **arguments)
        assert _idle(alice, persona.agent_id) < 100


def test_a_call_about_a_room_is_a_sign_of_life_though_the_room_was_active_just_before(alice: InProcess) -> None:
    persona = alice.enter_room("one")
    alice.call("whoami")
    alice.call("create_room", name="two")
    alice.call("join_room", room="two")
    _age(alice, persona.agent_id, 1000)
    alice.call("catch_up", room="one")
    idle = alice.database.value(
        "SELECT strftime('%s', 'now') - strftime('%s', last_seen) FROM memberships WHERE room_id = 1"
    )
    assert idle < 100


def test_a_taken_over_or_departed_session_gives_no_sign_of_life(alice: InProcess, bob: InProcess) -> None:
    persona = alice.enter_room()
    bob.resume(persona)
    _age(bob, persona.agent_id, 1000)
    alice.call("list_agents")
    assert _idle(bob, persona.agent_id) >= 1000
    bob.call("join_room", room="hall")
    bob.call("leave_room")
    _age(bob, persona.agent_id, 1000)
    bob.runtime.touched.clear()
    bob.call("list_claims", room="hall")
    assert _idle(bob, persona.agent_id) >= 1000


def test_the_read_marker_moves_to_the_end_and_back(alice: InProcess, bob: InProcess) -> None:
    bob.enter_room()
    for text in ("one", "two", "three"):
        bob.call("post_message", content=text)
    alice.enter_room()
    assert alice.call("mark_read") == {"previous": 0, "new": 3, "latest": 3}
    assert alice.call("catch_up")["messages"] == []
    assert alice.call("mark_read", seq=1) == {"previous": 3, "new": 1, "latest": 3}
    assert [message["content"] for message in alice.call("catch_up")["messages"]] == ["two", "three"]
    assert alice.call("mark_read", seq=999) == {"previous": 3, "new": 3, "latest": 3}
    assert alice.call("mark_read", seq=0)["new"] == 0
    assert alice.call("whoami")["unread"] == 3
    alice.invalid("mark_read", seq=-1)


def test_membership_works_the_same_through_a_real_server(server: Servers) -> None:
    one, two = server(), server()
    first = one.enter_room()
    second = two.enter_room()
    one.call("set_role", role="lead")
    agents = two.call("list_agents")["agents"]
    assert [(agent["id"], agent["role"]) for agent in agents] == [(first.agent_id, "lead"), (second.agent_id, None)]
    assert one.call("leave_room")["left"] is True
    assert "have LEFT room" in one.refused("post_message", content="x", room="hall")["error"]
