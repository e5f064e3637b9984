"""Looking without moving a marker: history, one message, and threads."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simplexmcp.rooms.jsontext import dumps, units
from simplexmcp.rooms.store.database import open_database
from tests.rooms.client import InProcess

if TYPE_CHECKING:
    from collections.abc import Callable

    Runtimes = Callable[..., InProcess]


def _post(client: InProcess, *texts: Any, **more: Any) -> list[int]:
    return [client.call("post_message", content=text, **more)["seq"] for text in texts]


def _contents(result: dict[str, Any]) -> list[Any]:
    return [message["content"] for message in result["messages"]]


def test_history_is_the_newest_page_oldest_first_with_own_messages(alice: InProcess, bob: InProcess) -> None:
    alice.enter_room()
    bob.enter_room()
    _post(bob, "one", "two")
    _post(alice, "three")
    result = alice.call("read_history", limit=2)
    assert list(result) == ["messages", "oldest_seq", "has_more"]
    assert (_contents(result), result["oldest_seq"], result["has_more"]) == (["two", "three"], 2, True)
    before = alice.call("read_history", before_seq=2)
    assert (_contents(before), before["oldest_seq"], before["has_more"]) == (["one"], 1, False)
    assert alice.call("catch_up")["remaining"] == 0


def test_an_empty_history_has_no_oldest_message(alice: InProcess) -> None:
    alice.enter_room()
    assert alice.call("read_history") == {"messages": [], "oldest_seq": None, "has_more": False}
    _post(alice, "x")
    assert alice.call("read_history", before_seq=1) == {"messages": [], "oldest_seq": None, "has_more": False}


def test_the_budget_keeps_the_newest_messages(alice: InProcess) -> None:
    alice.enter_room()
    _post(alice, *(f"{number}" * 400 for number in range(5)))
    failed, text = alice.text("read_history", max_bytes=1500)
    result = json.loads(text)
    assert not failed
    assert units(text) <= 1500
    assert [content[0] for content in _contents(result)] == ["3", "4"]
    assert (result["has_more"], result["byte_limited"]) == (True, True)


def test_paging_back_gives_every_message_once(alice: InProcess) -> None:
    alice.enter_room()
    _post(alice, *(f"{number} " + "x" * 100 * number for number in range(20)))
    seen: list[int] = []
    before: dict[str, int] = {}
    while True:
        result = alice.call("read_history", limit=3, max_bytes=2000, **before)
        seen = [message["seq"] for message in result["messages"]] + seen
        if not result["has_more"]:
            break
        before = {"before_seq": result["oldest_seq"]}
    assert seen == list(range(1, 21))


def test_history_tells_of_a_lost_persona_inside_its_budget(alice: InProcess, runtime: Runtimes) -> None:
    persona = alice.enter_room()
    _post(alice, "x" * 5000)
    runtime().resume(persona)
    _failed, text = alice.text("read_history", max_bytes=1000)
    result = json.loads(text)
    assert list(result)[:3] == ["persona_lost", "your_epoch", "current_epoch"]
    assert (result["your_epoch"], result["current_epoch"]) == (1, 2)
    assert units(text) <= 1000
    assert result["messages"][0]["truncated"] is True


def test_reading_needs_a_persona_and_a_room(alice: InProcess) -> None:
    for tool, arguments in (("read_history", {}), ("get_message", {"seq": 1}), ("get_thread", {"seq": 1})):
        assert "no persona bound" in alice.refused(tool, **arguments)["error"]
    alice.persona()
    for tool, arguments in (("read_history", {}), ("get_message", {"seq": 1}), ("get_thread", {"seq": 1})):
        assert "join a room first with join_room" in alice.refused(tool, **arguments)["error"]


def test_a_deleted_room_is_told_and_no_longer_active(alice: InProcess, bob: InProcess) -> None:
    alice.enter_room()
    bob.persona()
    bob.call("delete_room", room="hall", confirm=True)
    assert "no longer exists" in alice.refused("read_history")["error"]
    assert "join a room first" in alice.refused("read_history")["error"]


def test_a_whole_message_comes_as_it_is_in_every_read(alice: InProcess) -> None:
    me = alice.enter_room().agent_id
    _post(alice, {"key": ["a"]}, to=[me])
    message = alice.call("get_message", seq=1)
    assert message == alice.call("read_history")["messages"][0]
    assert message["content"] == {"key": ["a"]}


def test_a_message_that_is_not_there_is_named(alice: InProcess) -> None:
    alice.enter_room()
    assert 'no message 7 in room "hall"' in alice.refused("get_message", seq=7)["error"]
    assert 'no message 7 in room "hall"' in alice.refused("get_thread", seq=7)["error"]
    alice.invalid("get_message", seq=0)
    alice.invalid("get_message", seq=1, max_chars=99)


def test_a_long_message_is_read_in_windows(alice: InProcess) -> None:
    alice.enter_room()
    _post(alice, "0123456789" * 25)
    first = alice.call("get_message", seq=1, max_chars=100)
    assert list(first)[-4:] == ["truncated", "length", "offset", "next_offset"]
    assert (first["truncated"], first["length"], first["offset"], first["next_offset"]) == (True, 250, 0, 100)
    last = alice.call("get_message", seq=1, max_chars=100, offset=200)
    assert (last["content"], last["truncated"], last["next_offset"]) == ("0123456789" * 5, False, 250)
    beyond = alice.call("get_message", seq=1, offset=251)
    assert (beyond["content"], beyond["truncated"], beyond["length"], beyond["offset"]) == ("", False, 250, 251)


def test_a_window_of_a_structured_body_is_its_text(alice: InProcess) -> None:
    alice.enter_room()
    _post(alice, ["x" * 50, "y" * 100])
    window = alice.call("get_message", seq=1, max_chars=100)
    assert window["content"] == dumps(["x" * 50, "y" * 100])[:97]  # three of the four quotes before are escaped


@settings(max_examples=60, deadline=None)
@given(st.text(st.sampled_from('ab\U0001f600"\x01é\n'), max_size=1500), st.integers(100, 300))
def test_windows_joined_are_the_message_whatever_it_holds(body: str, max_chars: int) -> None:
    with InProcess(":memory:", database=open_database(":memory:")) as client:
        client.enter_room()
        _post(client, body)
        joined, offset = "", 0
        while True:
            window = client.call("get_message", seq=1, offset=offset, max_chars=max_chars)
            assert units(dumps(window["content"])) - 2 <= max_chars
            joined += window["content"]
            if not window.get("truncated"):
                break
            assert window["next_offset"] > offset
            offset = window["next_offset"]
        assert joined == body


def test_ten_megabytes_are_read_back_in_windows(alice: InProcess) -> None:
    alice.enter_room()
    body = "line é \n" * 1_100_000
    _post(alice, body)
    offset, size, more = 0, 0, True
    while more:
        window = alice.call("get_message", seq=1, offset=offset, max_chars=400_000)
        assert body.startswith(window["content"], offset)
        size += len(window["content"])
        assert window["next_offset"] > offset
        offset, more = window["next_offset"], window["truncated"]
    assert size == len(body)


def test_who_left_can_still_read_messages_and_threads(alice: InProcess, bob: InProcess) -> None:
    alice.enter_room()
    bob.enter_room("other")
    _post(alice, "x")
    alice.call("leave_room")
    assert alice.call("get_message", room="hall", seq=1)["content"] == "x"
    assert alice.call("get_thread", room="hall", seq=1)["message"]["content"] == "x"
    assert "never joined" in bob.refused("get_message", room="hall", seq=1)["error"]


def test_a_thread_shows_the_parent_and_each_reply_below_what_it_answers(alice: InProcess) -> None:
    alice.enter_room()
    _post(alice, "root")
    _post(alice, "focus", reply_to_seq=1)  # 2
    _post(alice, "a", "b", reply_to_seq=2)  # 3, 4
    _post(alice, "a1", reply_to_seq=3)  # 5
    _post(alice, "b1", reply_to_seq=4)  # 6
    _post(alice, "a2", reply_to_seq=3)  # 7
    _post(alice, "a11", reply_to_seq=5)  # 8
    _post(alice, "a111", reply_to_seq=8)  # 9
    thread = alice.call("get_thread", seq=2)
    assert list(thread) == ["message", "parent", "replies", "replies_capped"]
    assert (thread["message"]["content"], thread["parent"]["content"]) == ("focus", "root")
    assert [(reply["content"], reply["depth"]) for reply in thread["replies"]] == [
        *(("a", 1), ("a1", 2), ("a11", 3), ("a2", 2), ("b", 1), ("b1", 2)),
    ]
    assert thread["replies_capped"] is False
    assert [reply["content"] for reply in alice.call("get_thread", seq=2, max_depth=1)["replies"]] == ["a", "b"]
    deep = alice.call("get_thread", seq=2, max_depth=10)["replies"]
    assert [reply["depth"] for reply in deep] == [1, 2, 3, 4, 2, 1, 2]


def test_a_thread_without_a_parent_says_null(alice: InProcess) -> None:
    alice.enter_room()
    _post(alice, "root")
    _post(alice, "reply", reply_to_seq=1)
    assert alice.call("get_thread", seq=1)["parent"] is None
    alice.call("prune_messages", keep_last=1, force=True)
    thread = alice.call("get_thread", seq=2)
    assert (thread["parent"], thread["message"]["reply_to"]["from"]) == (None, None)


def test_a_preview_cuts_only_the_replies(alice: InProcess) -> None:
    alice.enter_room()
    _post(alice, "x" * 100)
    _post(alice, "y" * 100, reply_to_seq=1)
    thread = alice.call("get_thread", seq=1, preview_chars=5)
    assert (len(thread["message"]["content"]), thread["replies"][0]["content"]) == (100, "yyyyy")


def test_at_most_five_hundred_replies_are_shown(alice: InProcess) -> None:
    me = alice.enter_room(brand="A", model="B", version="1").agent_id  # so short that the budget is not reached
    _post(alice, "root")
    with alice.database.write():
        alice.database.run_many(
            "INSERT INTO messages (room_id, seq, agent_id, body, body_len, reply_to_seq) VALUES (1, ?, ?, 'x', 1, 1)",
            [(seq, me) for seq in range(2, 503)],
        )
    thread = alice.call("get_thread", seq=1)
    assert (len(thread["replies"]), thread["replies_capped"]) == (500, True)
    assert [reply["seq"] for reply in thread["replies"]] == list(range(2, 502))


@pytest.mark.parametrize("sizes", [(200_000, 200_000, 200_000), (10, 200_000, 10), (99_000, 10, 10), (10, 10, 99_000)])
def test_a_thread_fits_its_budget_whatever_is_big_in_it(alice: InProcess, sizes: tuple[int, int, int]) -> None:
    alice.enter_room()
    for seq, size in enumerate(sizes):
        _post(alice, "\\" * size, **({"reply_to_seq": seq} if seq else {}))
    _failed, text = alice.text("get_thread", seq=2)
    thread = json.loads(text)
    assert units(text) <= 100_000
    assert thread["message"]["seq"] == 2
    assert thread["parent"]["seq"] == 1
    assert [reply["seq"] for reply in thread["replies"]] == [3] or thread["byte_limited"] is True


def test_what_is_too_big_for_a_thread_leaves_room_for_its_answers(alice: InProcess) -> None:
    alice.enter_room()
    for seq in range(2):
        _post(alice, "x" * 150_000, **({"reply_to_seq": seq} if seq else {}))
    _post(alice, "short", reply_to_seq=2)
    thread = alice.call("get_thread", seq=2)
    assert (thread["message"]["truncated"], thread["parent"]["truncated"]) == (True, True)
    assert (thread["message"]["length"], len(thread["parent"]["content"]) > 5000) == (150_000, True)
    assert [reply["content"] for reply in thread["replies"]] == ["short"]
    assert "byte_limited" not in thread


def test_a_read_tells_of_a_lost_persona_first(alice: InProcess, runtime: Runtimes) -> None:
    persona = alice.enter_room()
    _post(alice, "x")
    runtime().resume(persona)
    for tool, arguments in (
        ("get_message", {"seq": 1}),
        ("get_thread", {"seq": 1}),
        ("my_mentions", {}),
        ("search_messages", {"query": "x"}),
    ):
        result = alice.call(tool, **arguments)
        assert list(result)[:3] == ["persona_lost", "your_epoch", "current_epoch"]


def _meanwhile(client: InProcess, act: Callable[[], object]) -> None:
    """Runs `act` once, between the first and the second statement of the client's next snapshot."""
    seen: list[str] = []

    def trace(statement: str) -> None:
        if seen or statement == "BEGIN":
            seen.append(statement)
        if len(seen) == 3:
            act()

    client.database._connection.set_trace_callback(trace)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("read_history", {}),
        ("get_message", {"seq": 1, "max_chars": 100}),
        ("get_thread", {"seq": 1}),
        ("my_mentions", {}),
        ("pending_work", {}),
        ("search_messages", {"query": "word"}),
    ],
)
def test_an_answer_shows_one_moment_whatever_others_do_meanwhile(
    alice: InProcess, bob: InProcess, tool: str, arguments: dict[str, Any]
) -> None:
    me = alice.enter_room().agent_id
    bob.enter_room()
    _post(bob, "word " * 100, to=[me])
    before = alice.call(tool, **arguments)
    acted: list[bool] = []

    def act() -> None:
        _post(bob, "word word", to=[me], reply_to_seq=1, supersedes_seq=1)
        bob.call("prune_messages", keep_last=1, force=True)
        acted.append(True)

    _meanwhile(alice, act)
    during = alice.call(tool, **arguments)
    alice.database._connection.set_trace_callback(None)
    assert acted
    for row in [*before.get("pending", []), *during.get("pending", [])]:
        del row["idle_seconds"]
    assert during == before
