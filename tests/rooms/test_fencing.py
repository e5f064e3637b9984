"""One persona, one writer: what a fenced-out session may not do, and races of real processes with one winner."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from tests.rooms.client import MODEL, read_result

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.rooms.client import InProcess, Server

    Servers = Callable[..., Server]

WRITES: list[tuple[str, dict[str, Any]]] = [
    ("create_room", {"name": "another"}),
    ("join_room", {"room": "hall"}),
    ("join_room", {"room": "2"}),
    ("set_role", {"role": "x"}),
    ("leave_room", {}),
    ("set_room_intro", {"text": "x"}),
    ("delete_room", {"room": "hall", "confirm": True}),
    ("post_message", {"content": "x"}),
    ("post_message", {"content": "sent", "client_message_id": "k"}),
    ("post_message", {"content": "x", "if_last_read_seq": 99}),
    ("post_message", {"content": "x", "room": "hall"}),
    ("catch_up", {}),
    ("catch_up", {"room": "hall", "priority_only": True}),
    ("catch_up", {"wait_seconds": 5}),
    ("mark_read", {}),
    ("mark_read", {"seq": 0}),
    ("claim", {"key": "k"}),
    ("release_claim", {"key": "mine"}),
    ("prune_messages", {"keep_last": 1, "force": True}),
]


def _content(client: InProcess) -> list[list[tuple[Any, ...]]]:
    tables = ("rooms", "agents", "memberships", "messages", "claims", "wait_leases")
    return [[tuple(row) for row in client.database.all(f"SELECT * FROM {table}")] for table in tables]


@pytest.mark.parametrize(("tool", "arguments"), WRITES, ids=[f"{tool}-{n}" for n, (tool, _) in enumerate(WRITES)])
def test_a_fenced_session_changes_nothing_whatever_it_calls(
    alice: InProcess, bob: InProcess, runtime: Callable[..., InProcess], tool: str, arguments: dict[str, Any]
) -> None:
    persona = alice.enter_room()
    alice.call("post_message", content="sent", client_message_id="k")
    alice.call("claim", key="mine")
    other = runtime()
    other.enter_room("second")
    other.call("join_room", room="hall")
    other.call("post_message", content="news")
    bob.resume(persona)
    before = _content(bob)
    lost = alice.refused(tool, **arguments)
    assert (lost["code"], lost["your_epoch"], lost["current_epoch"]) == ("persona_lost", 1, 2)
    assert _content(bob) == before
    assert alice.call("whoami") == {"bound": False, "joined": False}


def test_a_fenced_session_is_fenced_also_where_its_successor_left(alice: InProcess, bob: InProcess) -> None:
    persona = alice.enter_room()
    bob.resume(persona)
    bob.call("join_room", room="hall")
    bob.call("leave_room")
    assert alice.refused("post_message", content="x")["code"] == "persona_lost"


def test_the_loss_of_an_earlier_tenure_does_not_end_a_later_one(alice: InProcess, bob: InProcess) -> None:
    persona = alice.enter_room()
    waiting = alice.waits("catch_up", wait_seconds=20)
    bob.resume(persona)
    alice.resume(persona)
    assert waiting.probe() is None
    result = waiting.expire()
    assert (result["code"], result["your_epoch"], result["current_epoch"]) == ("persona_lost", 1, 3)
    assert alice.call("whoami")["runtime_epoch"] == 3


def test_nobody_can_speak_as_a_persona_without_its_word(alice: InProcess, bob: InProcess) -> None:
    persona = alice.enter_room()
    for word in ("", persona.resume_word[:-1], persona.resume_word + "0", persona.agent_id):
        failed, _ = bob.text("resume_persona", agent_id=persona.agent_id, resume_word=word, **MODEL)
        assert failed
    assert "no persona bound" in bob.refused("post_message", content="as alice", room="hall")["error"]
    assert "persona_lost" not in alice.call("whoami")
    made = bob.call("create_persona", **MODEL)
    assert made["agent_id"] != persona.agent_id


def _outcomes(servers: list[Server], tool: str, **arguments: Any) -> list[tuple[bool, str]]:
    """Each server's answer to the same call, which all get at about the same moment."""
    keys = [server.start(tool, **arguments) for server in servers]
    return [read_result(server.answer(key)["result"]) for server, key in zip(servers, keys, strict=True)]


def test_of_two_resumes_at_once_exactly_one_holds_the_persona(server: Servers) -> None:
    maker, *rivals = (server() for _ in range(3))
    persona = maker.enter_room()
    for number in range(10):
        outcomes = _outcomes(
            rivals, "resume_persona", agent_id=persona.agent_id, resume_word=persona.resume_word, **MODEL
        )
        assert not any(failed for failed, _ in outcomes)
        epochs = [rival.call("whoami")["runtime_epoch"] for rival in rivals]
        assert len(set(epochs)) == 2
        holder, loser = sorted(rivals, key=lambda rival: -rival.call("whoami")["runtime_epoch"])
        assert loser.refused("create_room", name="never")["code"] == "persona_lost"
        holder.call("create_room", name=f"room {number}")
    assert maker.refused("post_message", content="x")["code"] == "persona_lost"


def test_of_two_claimers_at_once_exactly_one_wins(server: Servers) -> None:
    rivals = [server() for _ in range(3)]
    for rival in rivals:
        rival.enter_room()
    for number in range(20):
        outcomes = _outcomes(rivals, "claim", key=f"file:{number}")
        assert sorted('"granted":true' in text for _, text in outcomes) == [False, False, True]


def test_a_room_name_goes_to_exactly_one_of_those_who_want_it_at_once(server: Servers) -> None:
    rivals = [server() for _ in range(2)]
    for rival in rivals:
        rival.persona()
    for number in range(20):
        outcomes = _outcomes(rivals, "create_room", name=f"room {number}")
        assert sorted(failed for failed, _ in outcomes) == [False, True]
        assert "already exists" in next(text for failed, text in outcomes if failed)


def test_a_post_races_the_deletion_of_its_room_to_a_clean_end(server: Servers) -> None:
    poster, deleter = server(), server()
    poster.persona()
    deleter.persona()
    for number in range(10):
        deleter.call("create_room", name=f"room {number}")
        poster.call("join_room", room=f"room {number}")
        posts = [poster.start("post_message", content=str(place)) for place in range(5)]
        deleted = deleter.call("delete_room", room=f"room {number}", confirm=True)
        results = [read_result(poster.answer(key)["result"]) for key in posts]
        stored = [failed for failed, _ in results].count(False)
        assert deleted["messages"] == stored
        for failed, text in results:
            assert not failed or "no longer exists" in text or "join a room first" in text
    assert deleter.call("list_rooms")["total"] == 0


def test_a_post_that_follows_a_leave_is_never_stored(server: Servers) -> None:
    one = server()
    one.enter_room()
    for _ in range(10):
        one.call("join_room", room="hall")
        keys = [
            one.start("post_message", content="before", room="hall"),
            one.start("leave_room"),
            one.start("post_message", content="after", room="hall"),
        ]
        first, left, after = (read_result(one.answer(key)["result"]) for key in keys)
        assert not first[0]
        assert not left[0]
        assert after[0]
        assert "have LEFT room" in after[1]
    assert one.call("list_rooms")["rooms"][0]["messages"] == 10


def test_a_retry_by_two_sessions_at_once_is_stored_once(server: Servers) -> None:
    one, two = server(), server()
    persona = one.enter_room()
    two.resume(persona)
    two.call("join_room", room="hall")
    one.resume(persona)
    one.call("join_room", room="hall")
    outcomes = Counter(
        "persona_lost" in text
        for _ in range(3)
        for _, text in _outcomes([one, two], "post_message", content="x", client_message_id="k", room="hall")
    )
    assert outcomes[True] == 1
    assert one.call("list_rooms")["rooms"][0]["messages"] == 1
