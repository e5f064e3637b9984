"""post_message: what is stored, what it crossed, whom it reaches, and how a retry and a condition end."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from simplexmcp.rooms.tools.posting import _duration

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.rooms.client import InProcess, Server

    Servers = Callable[..., Server]

ANSWER = ["posted", "seq", "room_id", "room_name", "format", "priority", "to", "reply_to_seq", "supersedes_seq"]
ANSWER += ["crossed", "crossed_directed", "crossed_range", "recipients"]


def _stored(client: InProcess, seq: int) -> dict[str, Any]:
    row = client.database.one("SELECT * FROM messages WHERE room_id = 1 AND seq = ?", seq)
    assert row is not None
    return dict(row)


def test_a_plain_post_gets_the_next_number_and_counts_as_read(alice: InProcess) -> None:
    persona = alice.enter_room()
    posted = alice.call("post_message", content="hello")
    assert list(posted) == ANSWER
    assert posted == {
        "posted": True,
        "seq": 1,
        "room_id": 1,
        "room_name": "hall",
        "format": "text",
        "priority": False,
        "to": None,
        "reply_to_seq": None,
        "supersedes_seq": None,
        "crossed": 0,
        "crossed_directed": 0,
        "crossed_range": None,
        "recipients": [],
    }
    assert alice.call("post_message", content="")["seq"] == 2
    row = _stored(alice, 1)
    assert (row["agent_id"], row["body"], row["body_len"], row["mentions"]) == (persona.agent_id, "hello", 5, None)
    assert alice.call("whoami")["last_read_seq"] == 2


def test_everything_that_was_given_is_stored_and_told(alice: InProcess, bob: InProcess) -> None:
    other = bob.enter_room()
    bob.call("post_message", content="question")
    alice.enter_room()
    alice.call("mark_read")
    alice.call("post_message", content="first try")
    posted = alice.call(
        "post_message",
        content="better",
        to=[other.agent_id, "ghost", other.agent_id],
        reply_to_seq=1,
        supersedes_seq=2,
        priority=True,
        client_message_id="key-1",
    )
    assert list(posted) == [
        *("posted", "seq", "room_id", "room_name", "delivery_warnings", "format", "priority", "client_message_id"),
        *("to", "reply_to_seq", "supersedes_seq", "crossed", "crossed_directed", "crossed_range", "recipients"),
    ]
    assert posted["to"] == [other.agent_id, "ghost"]
    assert [recipient["id"] for recipient in posted["recipients"]] == [other.agent_id, "ghost"]
    row = _stored(bob, 3)
    assert json.loads(row["mentions"]) == [other.agent_id, "ghost"]
    assert (row["reply_to_seq"], row["reply_to_agent"], row["supersedes_seq"]) == (1, other.agent_id, 2)
    assert (row["priority"], row["client_message_id"]) == (1, "key-1")


@pytest.mark.parametrize(
    "content",
    [
        {"a": [1, 2.5, None, True, {"b": "ü😀"}]},
        [],
        {},
        {"__proto__": {"constructor": 1}, "toString": 2},
        {"nul": "a\x00b", "\x00": 1},
        [1e300, -0.5, 12345678901234567890],
    ],
)
def test_a_structured_content_comes_back_as_it_was(alice: InProcess, bob: InProcess, content: Any) -> None:
    alice.enter_room()
    bob.enter_room()
    assert alice.call("post_message", content=content)["format"] == "json"
    message = bob.call("catch_up")["messages"][0]
    assert (message["format"], message["content"]) == ("json", content)
    assert ", " not in _stored(bob, 1)["body"]


def test_a_structured_body_is_compact_json_without_needless_escapes(alice: InProcess) -> None:
    alice.enter_room()
    alice.call("post_message", content={"a": [1.0, "ü"], "b": "\x00"})
    assert _stored(alice, 1)["body"] == '{"a":[1,"ü"],"b":"\\u0000"}'
    alice.call("post_message", content="a😀ü")
    assert _stored(alice, 2)["body_len"] == 4


def test_an_author_who_has_not_read_all_is_told_what_was_crossed(alice: InProcess, bob: InProcess) -> None:
    persona = alice.enter_room()
    bob.enter_room()
    alice.call("post_message", content="mine")
    bob.call("post_message", content="one", to=[persona.agent_id])
    bob.call("post_message", content="two " * 100)
    posted = alice.call("post_message", content="blind")
    assert (posted["crossed"], posted["crossed_directed"]) == (2, 1)
    assert posted["crossed_range"] == {"from_seq": 2, "to_seq": 3}
    assert "crossed_messages" not in posted
    assert alice.call("whoami")["last_read_seq"] == 1
    shown = alice.call("post_message", content="again", crossed_preview_chars=10)
    assert list(shown) == [*ANSWER[:-1], "crossed_messages", "recipients"]
    assert [message["content"] for message in shown["crossed_messages"]] == ["one", "two two tw"]
    assert [message["directed"] for message in shown["crossed_messages"]] == [True, False]
    assert [message["content"][:4] for message in alice.call("catch_up")["messages"]] == ["one", "two "]


def test_only_the_oldest_crossed_messages_are_shown(alice: InProcess, bob: InProcess) -> None:
    alice.enter_room()
    bob.enter_room()
    for number in range(25):
        bob.call("post_message", content=str(number))
    posted = alice.call("post_message", content="blind", crossed_preview_chars=5)
    assert [message["content"] for message in posted["crossed_messages"]] == [str(number) for number in range(20)]
    assert posted["crossed_remaining"] == 5
    keys = list(posted)
    assert keys[keys.index("crossed_messages") + 1] == "crossed_remaining"


def test_nothing_crossed_shows_nothing(alice: InProcess) -> None:
    alice.enter_room()
    assert list(alice.call("post_message", content="x", crossed_preview_chars=2000)) == ANSWER


def test_one_never_crosses_oneself(alice: InProcess) -> None:
    alice.enter_room()
    alice.call("post_message", content="one")
    alice.call("mark_read", seq=0)
    assert alice.call("post_message", content="two")["crossed"] == 0
    assert alice.call("whoami")["last_read_seq"] == 2


def test_a_room_can_be_named_or_checked_but_not_both(alice: InProcess) -> None:
    alice.enter_room("one")
    alice.call("create_room", name="two")
    alice.call("join_room", room="two")
    assert alice.call("post_message", content="x", room="one")["room_name"] == "one"
    assert alice.call("whoami")["room_name"] == "two"
    assert alice.call("post_message", content="x", expected_room="two")["room_name"] == "two"
    assert alice.call("post_message", content="x", expected_room="2")["room_id"] == 2
    for other in ("one", "three"):
        error = alice.refused("post_message", content="x", expected_room=other)["error"]
        assert "does not match the active room" in error
    assert "cannot be combined" in alice.refused("post_message", content="x", room="two", expected_room="two")["error"]
    assert "no room" in alice.refused("post_message", content="x", room="three")["error"]
    assert alice.database.value("SELECT count(*) FROM messages") == 3


def test_without_an_active_room_one_is_asked_to_join(alice: InProcess) -> None:
    assert "no persona bound" in alice.refused("post_message", content="x")["error"]
    alice.persona()
    assert "join a room first with join_room" in alice.refused("post_message", content="x")["error"]
    assert "join a room first" in alice.refused("post_message", content="x", expected_room="hall")["error"]


def test_what_is_answered_or_superseded_must_be_there(alice: InProcess, bob: InProcess) -> None:
    alice.enter_room()
    bob.enter_room()
    bob.call("post_message", content="bob's")
    assert "reply_to_seq 2 does not exist" in alice.refused("post_message", content="x", reply_to_seq=2)["error"]
    assert "supersedes_seq 9 does not exist" in alice.refused("post_message", content="x", supersedes_seq=9)["error"]
    assert "only supersede your own" in alice.refused("post_message", content="x", supersedes_seq=1)["error"]
    assert alice.call("post_message", content="x", reply_to_seq=1)["seq"] == 2
    assert alice.call("post_message", content="y", supersedes_seq=2, reply_to_seq=2)["seq"] == 3


def test_a_retry_with_the_same_key_finds_the_first_copy(alice: InProcess, bob: InProcess) -> None:
    persona = alice.enter_room()
    payload: dict[str, Any] = {"content": {"b": 1, "a": 2}, "to": ["x", "y"], "priority": True}
    assert alice.call("post_message", client_message_id="k", **payload)["seq"] == 1
    alice.call("post_message", content="later")
    again = alice.call("post_message", client_message_id="k", **payload)
    assert list(again) == ["posted", "deduplicated", "seq", "room_id", "room_name", "client_message_id", "note"]
    assert (again["posted"], again["deduplicated"], again["seq"], again["client_message_id"]) == (True, True, 1, "k")
    assert alice.database.value("SELECT count(*) FROM messages") == 2
    bob.resume(persona)
    bob.call("join_room", room="hall")
    assert bob.call("post_message", client_message_id="k", **payload)["deduplicated"] is True


@pytest.mark.parametrize(
    "change",
    [
        {"content": "other"},
        {"content": ["base"]},
        {"priority": True},
        {"to": ["a", "b"]},
        {"to": ["b"]},
        {"to": []},
        {"reply_to_seq": 2},
        {"reply_to_seq": None},
        {"supersedes_seq": 2},
        {"supersedes_seq": None},
    ],
)
def test_the_same_key_for_another_message_is_an_error(alice: InProcess, change: dict[str, Any]) -> None:
    alice.enter_room()
    alice.call("post_message", content="one")
    alice.call("post_message", content="two")
    base = {"content": "base", "to": ["a"], "reply_to_seq": 1, "supersedes_seq": 1, "client_message_id": "k"}
    assert alice.call("post_message", **base)["seq"] == 3
    changed = {key: value for key, value in (base | change).items() if value is not None}
    assert "different stored payload" in alice.refused("post_message", **changed)["error"]
    assert alice.call("post_message", **base)["deduplicated"] is True
    assert alice.database.value("SELECT count(*) FROM messages") == 3


def test_a_text_is_not_the_json_that_it_looks_like(alice: InProcess) -> None:
    alice.enter_room()
    alice.call("post_message", content="[1]", client_message_id="k")
    assert "different stored payload" in alice.refused("post_message", content=[1], client_message_id="k")["error"]


def test_a_key_belongs_to_its_author_and_room_and_lives_as_long_as_its_message(
    alice: InProcess, bob: InProcess
) -> None:
    alice.enter_room()
    bob.enter_room()
    alice.call("post_message", content="one", client_message_id="k")
    assert bob.call("post_message", content="two", client_message_id="k")["seq"] == 2
    alice.call("create_room", name="other")
    alice.call("join_room", room="other")
    assert alice.call("post_message", content="three", client_message_id="k")["seq"] == 1
    alice.call("join_room", room="hall")
    alice.call("prune_messages", keep_last=1, force=True)
    assert alice.call("post_message", content="one", client_message_id="k")["seq"] == 3


def test_a_retry_is_found_before_its_condition_and_targets_are_checked(alice: InProcess, bob: InProcess) -> None:
    alice.enter_room()
    bob.enter_room()
    alice.call("post_message", content="base")
    sent: dict[str, Any] = {"content": "x", "client_message_id": "k", "reply_to_seq": 1, "if_last_read_seq": 1}
    assert alice.call("post_message", **sent)["seq"] == 2
    bob.call("post_message", content="news")
    bob.call("mark_read")
    alice.call("mark_read")
    alice.call("prune_messages", keep_last=2)
    assert alice.call("post_message", **sent)["deduplicated"] is True


def test_a_conditional_post_is_refused_when_there_is_more_to_read(alice: InProcess, bob: InProcess) -> None:
    persona = alice.enter_room()
    bob.enter_room()
    bob.call("post_message", content="old")
    read = alice.call("catch_up")["new_last_read_seq"]
    bob.call("post_message", content="news " * 100, to=[persona.agent_id])
    refused = alice.call("post_message", content="x", if_last_read_seq=read)
    assert list(refused) == [
        *("posted", "rejected", "room_id", "room_name", "crossed", "crossed_directed", "crossed_range"),
        *("crossed_messages", "retry"),
    ]
    assert (refused["posted"], refused["rejected"]) == (False, "stale_read")
    assert (refused["crossed"], refused["crossed_directed"]) == (1, 1)
    assert refused["crossed_range"] == {"from_seq": 2, "to_seq": 2}
    assert len(refused["crossed_messages"][0]["content"]) == 300
    assert "call catch_up" in refused["retry"]
    assert "re-send the SAME content" in refused["retry"]
    short = alice.call("post_message", content="x", if_last_read_seq=read, crossed_preview_chars=4)
    assert short["crossed_messages"][0]["content"] == "news"
    assert alice.call("whoami")["last_read_seq"] == read
    now = alice.call("catch_up")["new_last_read_seq"]
    assert alice.call("post_message", content="x", if_last_read_seq=now)["posted"] is True
    alice.call("post_message", content="mine do not count")
    assert alice.call("post_message", content="x", if_last_read_seq=now)["posted"] is True


def test_the_condition_is_about_the_number_given_not_the_marker(alice: InProcess, bob: InProcess) -> None:
    alice.enter_room()
    bob.enter_room()
    bob.call("post_message", content="one")
    alice.call("mark_read")
    refused = alice.call("post_message", content="x", if_last_read_seq=0)
    assert (refused["rejected"], refused["crossed"]) == ("stale_read", 1)
    error = alice.refused("post_message", content="x", if_last_read_seq=2)["error"]
    assert "ahead of the current read marker" in error


def test_a_conditional_post_is_refused_when_the_proof_is_gone(alice: InProcess, bob: InProcess) -> None:
    alice.enter_room()
    bob.enter_room()
    for number in range(5):
        bob.call("post_message", content=str(number))
    alice.call("mark_read")
    bob.call("prune_messages", keep_last=2)
    refused = alice.call("post_message", content="x", if_last_read_seq=2)
    assert list(refused) == [
        *("posted", "rejected", "room_id", "room_name", "oldest_retained_seq", "pruned_through_seq", "retry"),
    ]
    assert (refused["posted"], refused["rejected"]) == (False, "evidence_pruned")
    assert (refused["oldest_retained_seq"], refused["pruned_through_seq"]) == (4, 3)
    assert "cannot prove" in refused["retry"]
    assert alice.call("post_message", content="x", if_last_read_seq=3)["rejected"] == "stale_read"
    assert alice.call("post_message", content="x", if_last_read_seq=5)["posted"] is True


def test_a_condition_holds_in_an_empty_room(alice: InProcess) -> None:
    alice.enter_room()
    assert alice.call("post_message", content="x", if_last_read_seq=0)["posted"] is True


def test_recipients_are_told_apart_by_what_is_known_of_them(
    alice: InProcess, bob: InProcess, runtime: Callable[..., InProcess]
) -> None:
    mine = alice.enter_room().agent_id
    ids = {}
    for name, seconds in (("active", 0), ("idle", 400), ("stale", 7505), ("left", 0)):
        client = runtime()
        ids[name] = client.enter_room(model=name).agent_id
        if name == "left":
            client.call("leave_room")
        with bob.database.write():
            bob.database.run(
                "UPDATE memberships SET last_seen = datetime('now', ?) WHERE agent_id = ?",
                *(f"-{seconds} seconds", ids[name]),
            )
    alice.call("post_message", content="before")
    posted = alice.call("post_message", content="x", to=[*ids.values(), "ghost", mine])
    shown = {recipient["id"]: recipient for recipient in posted["recipients"]}
    for recipient in posted["recipients"]:
        assert list(recipient) == [
            *("id", "status", "present", "idle_seconds", "last_read_seq", "marker_behind", "watching"),
        ]
    status = {name: shown[agent_id]["status"] for name, agent_id in ids.items()}
    assert status == {"active": "active", "idle": "idle", "stale": "idle", "left": "left"}
    assert shown["ghost"] == {
        "id": "ghost",
        "status": "unknown",
        "present": False,
        "idle_seconds": None,
        "last_read_seq": None,
        "marker_behind": None,
        "watching": False,
    }
    assert (shown[ids["idle"]]["last_read_seq"], shown[ids["idle"]]["marker_behind"]) == (0, 2)
    assert (shown[mine]["status"], shown[mine]["marker_behind"]) == ("active", 0)
    warnings = {text.partition(": ")[0]: text for text in posted["delivery_warnings"]}
    assert warnings.keys() == {"ghost", ids["left"], ids["stale"]}
    assert "never joined" in warnings["ghost"]
    assert "left" in warnings[ids["left"]]
    assert "no MCP call or watcher heartbeat in this room for 2h05m" in warnings[ids["stale"]]
    assert "marker was 1 seq behind before this post" in warnings[ids["stale"]]


def test_an_open_wait_silences_the_warning_and_words_it_otherwise_for_who_left(
    alice: InProcess, bob: InProcess
) -> None:
    alice.enter_room()
    other = bob.enter_room().agent_id
    alice.call("post_message", content="before")
    with bob.database.write():
        bob.database.run(
            "INSERT INTO wait_leases (room_id, agent_id, epoch, expires_at)"
            " VALUES (1, ?, 1, datetime('now', '+60 seconds'))",
            other,
        )
        bob.database.run("UPDATE memberships SET last_seen = '2020-01-01 00:00:00' WHERE agent_id = ?", other)
    posted = alice.call("post_message", content="x", to=[other])
    assert "delivery_warnings" not in posted
    assert (posted["recipients"][0]["status"], posted["recipients"][0]["watching"]) == ("active", True)
    bob.runtime.touched[(1, other, True)] = float("inf")
    bob.call("leave_room")
    warning = alice.call("post_message", content="x", to=[other])["delivery_warnings"][0]
    assert "left" in warning
    assert "recorded" in warning


def test_who_was_not_behind_is_not_warned_about(alice: InProcess, bob: InProcess) -> None:
    alice.enter_room()
    other = bob.enter_room().agent_id
    with bob.database.write():
        bob.database.run("UPDATE memberships SET last_seen = '2020-01-01 00:00:00' WHERE agent_id = ?", other)
    assert "delivery_warnings" not in alice.call("post_message", content="x", to=[other])
    assert "delivery_warnings" in alice.call("post_message", content="x", to=[other])


def test_idle_times_are_said_briefly() -> None:
    assert [_duration(seconds) for seconds in (90, 119, 120, 2700, 3600, 7505, 100_000)] == [
        *("90s", "119s", "2m", "45m", "1h00m", "2h05m", "27h46m"),
    ]


def test_arguments_are_bounded(alice: InProcess) -> None:
    alice.enter_room()
    assert "Unrecognized key" in alice.invalid("post_message", content="x", too=["y"])
    alice.invalid("post_message")
    alice.invalid("post_message", content=5)
    alice.invalid("post_message", content=None)
    alice.invalid("post_message", content="x", to=["a"] * 101)
    alice.invalid("post_message", content="x", to=[""])
    alice.invalid("post_message", content="x", to=["a" * 201])
    alice.invalid("post_message", content="x", client_message_id="")
    alice.invalid("post_message", content="x", client_message_id="k" * 201)
    alice.invalid("post_message", content="x", reply_to_seq=0)
    alice.invalid("post_message", content="x", if_last_read_seq=-1)
    alice.invalid("post_message", content="x", crossed_preview_chars=2001)
    assert alice.call("post_message", content="x", to=["a" * 200], crossed_preview_chars=3.0)["seq"] == 1


def test_posting_works_the_same_through_a_real_server(server: Servers) -> None:
    one, two = server(), server()
    one.enter_room()
    reader = two.enter_room()
    posted = one.call("post_message", content={"text": "hello ü"}, to=[reader.agent_id])
    assert list(posted) == ANSWER
    message = two.call("catch_up")["messages"][0]
    assert (message["content"], message["to"]) == ({"text": "hello ü"}, [reader.agent_id])
