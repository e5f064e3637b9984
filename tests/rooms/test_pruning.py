"""Deleting old messages: by hand, never what somebody has not read, and never so that numbers start again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simplexmcp.rooms.store.database import open_database
from simplexmcp.rooms.store.pruning import prune

if TYPE_CHECKING:
    from tests.rooms.client import InProcess


def _seqs(client: InProcess) -> list[int]:
    return [row["seq"] for row in client.database.all("SELECT seq FROM messages ORDER BY seq")]


def _fill(client: InProcess, count: int) -> None:
    for number in range(count):
        client.call("post_message", content=f"word{number}")


def test_all_but_the_newest_are_deleted_and_numbers_go_on(alice: InProcess) -> None:
    alice.enter_room()
    _fill(alice, 5)
    assert alice.call("prune_messages", keep_last=2) == {"room_id": 1, "deleted": 3, "kept": 2}
    assert _seqs(alice) == [4, 5]
    assert alice.call("post_message", content="next")["seq"] == 6
    assert alice.call("prune_messages", keep_last=1)["deleted"] == 2
    assert alice.call("post_message", content="next")["seq"] == 7
    assert alice.call("search_messages", query="word4")["matches"] == []


def test_a_room_with_fewer_messages_is_left_as_it_is(alice: InProcess) -> None:
    alice.enter_room()
    assert alice.call("prune_messages", keep_last=1) == {"room_id": 1, "deleted": 0, "kept": 0}
    _fill(alice, 3)
    assert alice.call("prune_messages", keep_last=3, force=True) == {"room_id": 1, "deleted": 0, "kept": 3}
    alice.invalid("prune_messages", keep_last=0)
    alice.invalid("prune_messages")


def test_what_a_member_has_not_read_is_kept_unless_forced(alice: InProcess, bob: InProcess) -> None:
    alice.enter_room()
    bob.enter_room()
    _fill(alice, 6)
    bob.call("mark_read", seq=2)
    bob.call("leave_room")
    refused = alice.call("prune_messages", keep_last=1)
    assert list(refused) == ["room_id", "deleted", "kept", "refused", "would_delete_unread", "min_read_seq"]
    assert refused == {
        "room_id": 1,
        "deleted": 0,
        "kept": 6,
        "refused": True,
        "would_delete_unread": 3,
        "min_read_seq": 2,
    }
    assert alice.call("prune_messages", keep_last=4)["deleted"] == 2
    assert alice.call("prune_messages", keep_last=1, force=True) == {"room_id": 1, "deleted": 3, "kept": 1}
    assert bob.call("join_room", room="hall")["unread"] == 1


def test_ones_own_messages_are_never_unread(alice: InProcess) -> None:
    alice.enter_room()
    _fill(alice, 3)
    alice.call("mark_read", seq=0)
    assert alice.call("prune_messages", keep_last=1)["deleted"] == 2


def test_an_answer_outlives_the_message_that_it_answers(alice: InProcess, bob: InProcess) -> None:
    persona = alice.enter_room()
    bob.enter_room()
    alice.call("post_message", content="question")
    bob.call("post_message", content="answer", reply_to_seq=1)
    bob.call("mark_read")
    alice.call("prune_messages", keep_last=1)
    message = alice.call("catch_up")["messages"][0]
    assert message["reply_to"] == {"seq": 1, "from": None, "preview": ""}
    row = alice.database.one("SELECT reply_to_agent FROM messages WHERE seq = 2")
    assert row is not None
    assert row["reply_to_agent"] == persona.agent_id


def test_pruning_is_seen_by_the_others_at_once(alice: InProcess, bob: InProcess) -> None:
    alice.enter_room()
    bob.enter_room()
    _fill(alice, 10)
    assert bob.call("whoami")["unread"] == 10
    alice.call("prune_messages", keep_last=3, force=True)
    assert bob.call("whoami")["unread"] == 3
    assert len(bob.call("catch_up")["messages"]) == 3


def test_deleted_space_is_given_back_to_the_disk(alice: InProcess) -> None:
    alice.enter_room()
    for _ in range(40):
        alice.call("post_message", content="x" * 40_000)
    pages = alice.database.value("PRAGMA page_count")
    alice.call("prune_messages", keep_last=1)
    assert alice.database.value("PRAGMA page_count") < pages / 2
    assert alice.database.value("PRAGMA integrity_check") == "ok"


@given(
    authors=st.lists(st.integers(0, 2), max_size=12),
    markers=st.tuples(st.integers(0, 12), st.integers(0, 12), st.integers(0, 12)),
    keep_last=st.integers(1, 12),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_pruning_counts_exactly_what_somebody_would_lose(
    authors: list[int], markers: tuple[int, int, int], keep_last: int
) -> None:
    db = open_database(":memory:")
    with db.write():
        db.run("INSERT INTO rooms (name) VALUES ('hall')")
        for member, marker in enumerate(markers):
            db.run(
                "INSERT INTO agents (id, brand, model, version, resume_word) VALUES (?, 'b', 'm', '1', 'w')",
                str(member),
            )
            db.run(
                "INSERT INTO memberships (room_id, agent_id, last_read_seq) VALUES (1, ?, ?)",
                *(str(member), min(marker, len(authors))),
            )
        for seq, author in enumerate(authors, 1):
            db.run(
                "INSERT INTO messages (room_id, seq, agent_id, body, body_len) VALUES (1, ?, ?, 'x', 1)",
                *(seq, str(author)),
            )
    doomed = [(seq, author) for seq, author in enumerate(authors, 1) if seq <= len(authors) - keep_last]
    losers = {
        seq: [min(marker, len(authors)) for who, marker in enumerate(markers) if who != author and marker < seq]
        for seq, author in doomed
    }
    unread = {seq: lowest for seq, lowest in losers.items() if lowest}
    with db.write():
        done = prune(db, 1, keep_last, force=False)
    if unread:
        assert (done.deleted, done.unread) == (0, len(unread))
        assert done.lowest_marker == min(min(lowest) for lowest in unread.values())
    else:
        assert (done.deleted, done.unread) == (len(doomed), 0)
    assert done.kept == db.value("SELECT count(*) FROM messages")
    db.close()
