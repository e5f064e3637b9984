"""What is directed at somebody in all rooms, and how unread messages are counted."""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from simplexmcp.rooms.jsontext import units
from simplexmcp.rooms.store.database import open_database
from simplexmcp.rooms.store.messages import crossed_page
from simplexmcp.rooms.store.schema import TABLES
from simplexmcp.rooms.store.unread import directed_count, latest_seq, oldest_seq, unread_count

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from simplexmcp.rooms.store.database import Database
    from tests.rooms.client import InProcess

    Runtimes = Callable[..., InProcess]

# Who writes, whom they name, and whether the message answers the first one.
POSTS = st.lists(
    st.tuples(st.sampled_from("abc"), st.lists(st.sampled_from("abc"), max_size=2), st.booleans()), max_size=15
)


def _fill(db: Database, posts: list[tuple[str, list[str], bool]]) -> None:
    for name in "abc":
        db.run("INSERT INTO agents (id, is_human) VALUES (?, 1)", name)
    db.run("INSERT INTO rooms (name) VALUES ('hall')")
    for seq, (author, to, replies) in enumerate(posts, 1):
        db.run(
            "INSERT INTO messages (room_id, seq, agent_id, body, body_len, mentions, reply_to_agent)"
            " VALUES (1, ?, ?, 'x', 1, ?, ?)",
            *(seq, author, json.dumps(to) if to else None, posts[0][0] if replies and seq > 1 else None),
        )


@settings(deadline=None)
@given(POSTS, st.integers(0, 15), st.integers(0, 14))
def test_counts_are_those_of_a_walk_through_the_backlog(
    posts: list[tuple[str, list[str], bool]], marker: int, pruned: int
) -> None:
    db = open_database(":memory:")
    _fill(db, posts)
    pruned = min(pruned, max(len(posts) - 1, 0))  # the newest message always stays
    marker = min(marker, len(posts))
    db.run("DELETE FROM messages WHERE seq <= ?", pruned)
    kept = list(enumerate(posts, 1))[pruned:]
    assert latest_seq(db, 1) == len(posts)
    assert oldest_seq(db, 1) == (kept[0][0] if kept else 0)
    for me in "abcd":
        unread = [(seq, post) for seq, post in kept if seq > marker and post[0] != me]
        assert unread_count(db, 1, me, marker) == len(unread)
        directed = [
            seq for seq, (_author, to, replies) in unread if me in to or (replies and seq > 1 and posts[0][0] == me)
        ]
        assert directed_count(db, 1, me, marker) == len(directed)
    db.close()


def test_counting_walks_an_index_never_the_messages() -> None:
    db = open_database(":memory:")
    _fill(db, [])
    plans: list[str] = []
    db._connection.set_trace_callback(plans.append)
    unread_count(db, 1, "a", 0)
    directed_count(db, 1, "a", 0)
    db._connection.set_trace_callback(None)
    steps = [row[3] for sql in plans for row in db.all(f"EXPLAIN QUERY PLAN {sql}")]
    searched = [step for step in steps if " messages " in step]
    assert len(searched) == 4
    assert not [step for step in searched if step.startswith("SCAN")]
    assert sum("simplexmcp_messages_author" in step for step in searched) == 1
    assert sum("idx_messages_directed_candidates" in step for step in searched) == 1
    db.close()


def test_a_file_without_our_indexes_is_counted_just_as_well(tmp_path: Path) -> None:
    path = tmp_path / "chat.db"
    made = sqlite3.connect(path)
    made.executescript(TABLES)
    made.close()
    writer = open_database(str(path))
    _fill(writer, [("a", [], False), ("b", ["a"], False), ("c", [], False)])
    for index in ("simplexmcp_messages_author", "simplexmcp_messages_superseding"):
        writer.run(f"DROP INDEX {index}")
    writer.close()
    db = open_database(str(path), create=False, read_only=True)
    assert (unread_count(db, 1, "a", 0), directed_count(db, 1, "a", 0)) == (2, 1)
    messages, remaining = crossed_page(db, 1, "a", 0, 10)
    assert ([message["directed"] for message in messages], remaining) == ([True, False], 0)
    db.close()


def test_mentions_of_all_rooms_come_in_the_order_of_posting(alice: InProcess, bob: InProcess) -> None:
    me = alice.enter_room("one").agent_id
    bob.enter_room("one")
    alice.call("post_message", content="mine")
    for client in (alice, bob):
        client.text("create_room", name="two")
        client.call("join_room", room="two")
    bob.call("post_message", content="first", to=[me], room="two")
    bob.call("post_message", content="noise", room="one")
    bob.call("post_message", content="second", reply_to_seq=1, room="one")
    bob.call("post_message", content="third", to=[me], room="two")
    result = alice.call("my_mentions")
    assert list(result) == ["messages", "total_directed", "next_after_id", "by_room"]
    assert [message["content"] for message in result["messages"]] == ["first", "second", "third"]
    assert list(result["messages"][0])[-2:] == ["room_id", "room_name"]
    assert [message["room_name"] for message in result["messages"]] == ["two", "one", "two"]
    assert result["by_room"] == [
        {"room_id": 2, "name": "two", "unread": 2, "directed": 2},
        {"room_id": 1, "name": "one", "unread": 2, "directed": 1},
    ]
    assert alice.call("my_mentions") == result


def test_mentions_page_by_the_id_of_the_last_one(alice: InProcess, bob: InProcess) -> None:
    me = alice.enter_room().agent_id
    bob.enter_room()
    for number in range(5):
        bob.call("post_message", content=str(number), to=[me])
    seen: list[str] = []
    after = 0
    while True:
        result = alice.call("my_mentions", limit=2, after_id=after)
        assert result["total_directed"] == 5
        seen += [message["content"] for message in result["messages"]]
        after = result["next_after_id"]
        if "byte_limited" not in result:
            break
    assert seen == list("01234")
    assert alice.call("my_mentions", after_id=after)["next_after_id"] == after


def test_mentions_keep_to_their_budget_with_many_rooms_and_a_lost_persona(
    alice: InProcess, bob: InProcess, runtime: Runtimes
) -> None:
    persona = alice.enter_room("\\" * 200)
    bob.enter_room("\\" * 200)
    for number in range(15):
        name = f"{number} " + "x" * 100
        bob.call("create_room", name=name)
        for client in (alice, bob):
            client.call("join_room", room=name)
        bob.call("post_message", content="y" * 3000, to=[persona.agent_id])
    runtime().resume(persona)
    for max_bytes in (1000, 1500, 6000):
        _failed, text = alice.text("my_mentions", max_bytes=max_bytes)
        result = json.loads(text)
        assert units(text) <= max_bytes
        assert next(iter(result)) == "persona_lost"
        assert (result["by_room_truncated"], result["byte_limited"]) == (True, True)
        assert len(result["messages"]) >= 1
        assert units(json.dumps(result["by_room"], separators=(",", ":"))) <= max_bytes // 3


def test_what_was_read_or_left_is_no_mention(alice: InProcess, bob: InProcess) -> None:
    me = alice.enter_room().agent_id
    bob.enter_room()
    bob.call("post_message", content="read", to=[me])
    alice.call("catch_up")
    assert alice.call("my_mentions")["messages"] == []
    bob.call("post_message", content="left", to=[me])
    alice.call("leave_room")
    assert alice.call("my_mentions") == {"messages": [], "total_directed": 0, "next_after_id": 0, "by_room": []}


def test_pending_work_lists_who_has_not_read_what_was_directed_at_them(alice: InProcess, bob: InProcess) -> None:
    a, b = alice.enter_room().agent_id, bob.enter_room().agent_id
    alice.call("post_message", content="q", to=[b])
    alice.call("post_message", content="q", to=[b, a, "nobody"])
    bob.call("post_message", content="re", reply_to_seq=1)
    result = alice.call("pending_work")
    assert list(result) == ["pending"]
    rows = {row["agent_id"]: row for row in result["pending"]}
    assert list(rows) == sorted([a, b])
    assert list(rows[a]) == [
        *("agent_id", "room_id", "room_name", "directed_unread", "oldest_seq", "oldest_unix", "idle_seconds"),
        "last_read_seq",
    ]
    assert (rows[b]["directed_unread"], rows[b]["oldest_seq"]) == (2, 1)
    assert (rows[a]["directed_unread"], rows[a]["oldest_seq"]) == (1, 3)
    bob.call("catch_up")
    assert [row["agent_id"] for row in alice.call("pending_work")["pending"]] == [a]
    alice.call("leave_room")
    assert alice.call("pending_work") == {"pending": []}


def test_pending_work_needs_no_persona_and_pages_strictly(runtime: Runtimes) -> None:
    clients = [runtime() for _ in range(5)]
    names = [client.enter_room().agent_id for client in clients]
    clients[0].call("post_message", content="all", to=names)
    outsider = runtime()
    seen: list[str] = []
    more: dict[str, Any] = {}
    while True:
        result = outsider.call("pending_work", limit=2, **more)
        seen += [row["agent_id"] for row in result["pending"]]
        if "next_after" not in result:
            break
        assert result["truncated"] is True
        more = {"after": result["next_after"]}
    assert seen == sorted(names[1:])
    outsider.invalid("pending_work", after={"oldest_unix": 1, "agent_id": "a"})
    outsider.invalid("pending_work", after={"oldest_unix": 1, "agent_id": "a", "room_id": 1, "more": 1})


def test_a_long_list_of_pending_work_is_trimmed_to_its_budget_and_goes_on(alice: InProcess) -> None:
    me = alice.enter_room("\x01" * 200).agent_id
    with alice.database.write():
        for number in range(200):
            alice.database.run("INSERT INTO agents (id, is_human) VALUES (?, 1)", f"human-{number:03}")
            alice.database.run("INSERT INTO memberships (room_id, agent_id) VALUES (1, ?)", f"human-{number:03}")
        alice.database.run(
            "INSERT INTO messages (room_id, seq, agent_id, body, body_len, mentions) VALUES (1, 1, ?, 'x', 1, ?)",
            *(me, json.dumps([f"human-{number:03}" for number in range(200)])),
        )
    seen: list[str] = []
    more: dict[str, Any] = {}
    while True:
        failed, text = alice.text("pending_work", limit=500, **more)
        assert not failed
        assert units(text) <= 100_000
        result = json.loads(text)
        seen += [row["agent_id"] for row in result["pending"]]
        if "next_after" not in result:
            break
        assert (result["size_trimmed"], result["truncated"]) == (True, True)
        more = {"after": result["next_after"]}
    assert seen == [f"human-{number:03}" for number in range(200)]


def test_crossed_messages_are_few_short_and_say_what_is_directed(alice: InProcess, bob: InProcess) -> None:
    me = alice.enter_room().agent_id
    bob.enter_room()
    bob.call("post_message", content="x" * 5000, to=[me])
    for number in range(30):
        bob.call("post_message", content=str(number))
    messages, remaining = crossed_page(alice.database, 1, me, 0, 10)
    assert (len(messages), remaining) == (20, 11)
    assert (messages[0]["content"], messages[0]["directed"], messages[1]["directed"]) == ("x" * 10, True, False)
    assert alice.call("catch_up")["messages"][0]["seq"] == 1
    for _ in range(20):
        bob.call("post_message", content="\\" * 2000)
    messages, remaining = crossed_page(alice.database, 1, me, 31, 2000)
    assert units(json.dumps(messages, separators=(",", ":"))) <= 20_000
    assert len(messages) + remaining == 20
