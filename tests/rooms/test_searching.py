"""Search: FTS5 as it is, ordinary text word by word, and nothing but the messages that one may see."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simplexmcp.rooms.jsontext import units
from simplexmcp.rooms.store.database import open_database
from tests.rooms.client import InProcess

if TYPE_CHECKING:
    from collections.abc import Callable

    Runtimes = Callable[..., InProcess]


def _post(client: InProcess, *texts: str, **more: Any) -> None:
    for text in texts:
        client.call("post_message", content=text, **more)


def _found(client: InProcess, query: str, **more: Any) -> list[Any]:
    return [match["content"] for match in client.call("search_messages", query=query, **more)["matches"]]


@pytest.fixture
def hall(alice: InProcess) -> InProcess:
    """A room with a few messages."""
    alice.enter_room()
    _post(alice, "red apple", "green apple pie", "red car", "src/db.ts is broken", "POL-358: TODO: fix it")
    return alice


@pytest.mark.parametrize(
    ("query", "seqs"),
    [
        ("apple", [1, 2]),
        ("red apple", [1]),
        ("red OR pie", [1, 2, 3]),
        ("red NOT car", [1]),
        ('"apple pie"', [2]),
        ("app*", [1, 2]),
        ("body: pie", [2]),
        ("NEAR(green pie)", [2]),
        ("RED", [1, 3]),
        ("nothing", []),
    ],
)
def test_the_language_of_fts5_is_understood(hall: InProcess, query: str, seqs: list[int]) -> None:
    result = hall.call("search_messages", query=query)
    assert sorted(match["seq"] for match in result["matches"]) == seqs
    assert list(result) == ["matches"]


@pytest.mark.parametrize(
    ("query", "seqs", "asked"),
    [
        ("src/db.ts", [4], '"src/db.ts"'),
        ("POL-358", [5], '"POL-358"'),
        ("TODO: fix", [5], '"TODO:" "fix"'),
        ("db.t*", [4], '"db.t"*'),
        ("apple, - pie!", [2], '"apple," "pie!"'),
        ("*.ts", [4], '"*.ts"'),
        ("fix(it)", [5], '"fix(it)"'),
        ("x:y", [], '"x:y"'),
    ],
)
def test_ordinary_text_is_searched_word_by_word_and_says_so(
    hall: InProcess, query: str, seqs: list[int], asked: str
) -> None:
    result = hall.call("search_messages", query=query)
    assert [match["seq"] for match in result["matches"]] == seqs
    assert result["interpreted_as"] == asked


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ('"apple', "unterminated string"),
        ('a-"b', "unterminated string"),
        ("apple AND", "fts5: syntax error near"),
        ("AND", "fts5: syntax error near"),
        ("apple OR OR pie", "fts5: syntax error near"),
        ("(apple", "fts5: syntax error near"),
        ("NEAR(", "fts5: syntax error near"),
        ("...", "fts5: syntax error near"),
        ("*", "unknown special query"),
        ("nobody: AND", "no such column"),
        ('nobody: "x"', "no such column"),
    ],
)
def test_a_faulty_expression_is_refused_in_the_words_of_sqlite(hall: InProcess, query: str, words: str) -> None:
    error = hall.refused("search_messages", query=query)["error"]
    assert words in error
    assert str(hall.database.path) not in error


@pytest.mark.parametrize(
    "query",
    ["x\x00y", "\ud800", "", "x" * 1001, "'; DROP TABLE messages; --", "% _ \\", "rank:1", "( " * 500, "- " * 400],
)
def test_hostile_queries_give_matches_or_a_clear_error(hall: InProcess, query: str) -> None:
    failed, text = hall.text("search_messages", query=query)
    assert "unexpected" not in text
    assert str(hall.database.path) not in text
    assert failed or json.loads(text)["matches"] == []
    assert _found(hall, "apple") == ["red apple", "green apple pie"]


@settings(max_examples=150, deadline=None)
@given(st.text(st.sampled_from('ab"*():-+^{}.,&|\\/ \n\u00e9\U0001f600ANDORT'), min_size=1, max_size=30))
def test_any_text_is_a_query_or_a_clear_error(query: str) -> None:
    with InProcess(":memory:", database=open_database(":memory:")) as client:
        client.enter_room()
        _post(client, "a b", query)
        failed, text = client.text("search_messages", query=query)
        assert "unexpected" not in text
        if failed:
            assert "cannot be read" in text
            assert (
                '"' in query
                or "(" in query
                or ")" in query
                or not any(map(str.isalnum, query))
                or ({"AND", "OR", "NOT"} & set(query.split()))
            )


def test_a_thousand_signs_between_words_are_a_query(hall: InProcess) -> None:
    assert _found(hall, "a-b " * 250) == []


def test_better_matches_come_first_and_equal_ones_by_age(alice: InProcess) -> None:
    alice.enter_room()
    _post(alice, "word " + "other " * 50, "word here", "word here", "word word")
    assert [match["seq"] for match in alice.call("search_messages", query="word")["matches"]] == [4, 2, 3, 1]


def test_pages_follow_each_other_without_gap_or_overlap(alice: InProcess) -> None:
    alice.enter_room()
    _post(alice, *(f"word {number}" for number in range(7)))
    seen: list[int] = []
    offset = 0
    while True:
        result = alice.call("search_messages", query="word", limit=3, offset=offset)
        seen += [match["seq"] for match in result["matches"]]
        if "next_offset" not in result:
            break
        assert result["next_offset"] == len(seen)
        offset = result["next_offset"]
    assert seen == [1, 2, 3, 4, 5, 6, 7]


def test_the_budget_ends_a_page_and_the_next_one_goes_on(alice: InProcess) -> None:
    alice.enter_room()
    _post(alice, *("word " + f"{number}" * 60_000 for number in range(3)))
    seen: list[str] = []
    offset = 0
    while True:
        _failed, text = alice.text("search_messages", query="word", offset=offset)
        result = json.loads(text)
        assert units(text) <= 100_000
        seen += [match["content"][5] for match in result["matches"]]
        if "next_offset" not in result:
            break
        assert result["byte_limited"] is True
        offset = result["next_offset"]
    assert sorted(seen) == ["0", "1", "2"]


def test_only_the_active_room_is_searched_unless_all_are_asked_for(alice: InProcess, bob: InProcess) -> None:
    alice.enter_room("one")
    bob.enter_room("secret")
    _post(alice, "word one")
    _post(bob, "word secret")
    alice.call("create_room", name="two")
    alice.call("join_room", room="two")
    _post(alice, "word two")
    assert _found(alice, "word") == ["word two"]
    everywhere = alice.call("search_messages", query="word", rooms="all")["matches"]
    assert [(match["content"], match["room_id"], match["room_name"]) for match in everywhere] == [
        *(("word one", 1, "one"), ("word two", 3, "two")),
    ]
    alice.call("leave_room")
    assert _found(alice, "word", rooms="all") == ["word one"]
    assert "join a room first" in alice.refused("search_messages", query="word")["error"]
    alice.invalid("search_messages", query="word", rooms="some")


def test_a_room_with_few_of_many_matches_is_searched_completely(alice: InProcess, bob: InProcess) -> None:
    alice.enter_room("small")
    writer = bob.enter_room("large").agent_id
    with bob.database.write():
        bob.database.run_many(
            "INSERT INTO messages (room_id, seq, agent_id, body, body_len) VALUES (2, ?, ?, 'word', 4)",
            [(seq, writer) for seq in range(1, 2001)],
        )
    _post(alice, "a longer message with the word")
    assert _found(alice, "word", limit=1) == ["a longer message with the word"]


def test_matches_can_be_of_one_author_or_since_a_time(alice: InProcess, bob: InProcess) -> None:
    me = alice.enter_room().agent_id
    bob.enter_room()
    _post(alice, "word mine")
    _post(bob, "word theirs")
    with alice.database.write():
        alice.database.run("UPDATE messages SET created_at = '2026-01-02 03:04:05' WHERE seq = 1")
        alice.database.run("UPDATE messages SET created_at = '2026-01-02 03:04:06' WHERE seq = 2")
    assert _found(alice, "word", **{"from": me}) == ["word mine"]
    assert _found(alice, "word", **{"from": "nobody"}) == []
    unix = alice.call("read_history")["messages"][1]["unix"]
    assert _found(alice, "word", since=unix) == ["word theirs"]
    assert _found(alice, "word", since="2026-01-02T03:04:06+00:00") == ["word theirs"]
    assert _found(alice, "word", since="2026-01-02T04:04:05+01:00") == ["word mine", "word theirs"]
    local = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(unix))
    assert _found(alice, "word", since=local) == ["word theirs"]
    assert _found(alice, "word", since=unix + 0.5) == ["word theirs"]
    assert _found(alice, "word", since=unix + 1) == []


@pytest.mark.parametrize("since", ["yesterday", -1, True, None, [], 1e300, "2026-13-01", "9999-12-31T23:59:59-12:00"])
def test_a_time_that_is_none_is_refused(hall: InProcess, since: Any) -> None:
    assert "since" in hall.invalid("search_messages", query="apple", since=since)


def test_a_pruned_message_is_no_longer_found(hall: InProcess) -> None:
    hall.call("prune_messages", keep_last=1, force=True)
    assert _found(hall, "apple") == []


def test_search_moves_no_marker(alice: InProcess, bob: InProcess) -> None:
    alice.enter_room()
    bob.enter_room()
    _post(bob, "word")
    assert _found(alice, "word") == ["word"]
    assert alice.call("whoami")["unread"] == 1
