"""What programs ask the page's server, and what it answers: the reference viewer's interface."""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest
import trio

from simplexmcp.rooms.view.people import mentions
from tests.rooms.view.view import viewing

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.rooms.client import InProcess

UNSAFE = 2**53
ROW = ["seq", "from", "brand", "model", "version", "is_human", "body", "format", "priority", "mentions",
       "reply_to_seq", "reply_to_agent", "supersedes_seq", "at", "superseded_by"]  # fmt: skip


@pytest.fixture
def agent(alice: InProcess) -> str:
    """An agent that wrote two messages in room 1, "hall"."""
    persona = alice.enter_room()
    alice.call("post_message", content="first")
    alice.call("post_message", content={"second": 2}, priority=True)
    return persona.agent_id


async def test_without_a_database_reads_are_empty_and_say_why_and_nothing_can_be_written(path: Path) -> None:
    async with viewing(path) as view:
        for ask, query, key, empty in (
            ("rooms", {}, "rooms", []),
            ("room", {"id": 1}, "room", None),
            ("room-exists", {"id": 1}, "exists", None),
            ("messages", {"room": 1}, "messages", []),
            ("me", {"room": 1, "name": "ann"}, "joined", False),
            ("search", {"room": 1, "q": "x"}, "matches", []),
        ):
            status, answer = await view.get(ask, **query)
            assert (status, answer[key]) == (200, empty)
            assert "no database" in answer["error"]
            assert str(path) in answer["error"]
        status, answer = await view.post("join", room=1, name="ann")
        assert status == 503
        assert "no database" in answer["error"]
    assert not path.exists()


async def test_a_database_that_is_made_or_replaced_while_the_page_is_served_is_used(
    path: Path, runtime: Callable[..., InProcess]
) -> None:
    async with viewing(path) as view:
        assert (await view.get("rooms"))[1]["rooms"] == []
        runtime().enter_room("first")
        assert [room["name"] for room in (await view.get("rooms"))[1]["rooms"]] == ["first"]
        with sqlite3.connect(path) as old:
            old.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        for file in path.parent.iterdir():
            file.unlink()
        runtime().enter_room("second")
        assert [room["name"] for room in (await view.get("rooms"))[1]["rooms"]] == ["second"]


async def test_rooms_are_listed_by_their_latest_message_with_who_is_present(path: Path, alice: InProcess) -> None:
    alice.enter_room("quiet")
    alice.call("create_room", name="busy", description="d" * 300, pinned="p" * 5000)
    alice.call("join_room", room="busy")
    alice.call("post_message", content="hello")
    async with viewing(path) as view:
        _, listed = await view.get("rooms")
        assert [list(room) for room in listed["rooms"]] == [
            ["id", "name", "description", "members", "last_activity"]
        ] * 2
        assert [(room["name"], room["members"], room["description"]) for room in listed["rooms"]] == [
            ("busy", 1, "d" * 200),
            ("quiet", 1, None),
        ]
        _, one = await view.get("room", id=2)
        assert list(one["room"]) == ["id", "name", "description", "pinned", "members", "last_activity"]
        assert (one["room"]["pinned"], len(one["room"]["description"])) == ("p" * 5000, 300)
        assert (await view.get("room", id=9))[1] == {"room": None}
        assert (await view.get("room-exists", id=1))[1] == {"exists": True}
        assert (await view.get("room-exists", id=9))[1] == {"exists": False}


async def test_a_message_is_a_row_with_its_author_and_what_it_refers_to(
    path: Path, alice: InProcess, agent: str
) -> None:
    alice.call("post_message", content="third", to=[agent, "ann"], reply_to_seq=1, supersedes_seq=2)
    async with viewing(path) as view:
        first, second, third = await view.rows(1)
    assert list(first) == ROW
    assert first["from"] == agent
    assert (first["brand"], first["model"], first["version"], first["is_human"]) == ("Acme", "Talker One", "1.0", 0)
    assert (first["body"], first["format"], first["priority"], first["mentions"]) == ("first", "text", False, None)
    assert (second["body"], second["format"], second["priority"]) == ('{"second":2}', "json", True)
    assert second["superseded_by"] == 3
    assert third["supersedes_seq"] == 2
    assert (third["reply_to_seq"], third["reply_to_agent"], third["mentions"]) == (1, agent, [agent, "ann"])


async def test_messages_come_ascending_after_a_number_before_it_or_the_newest(path: Path, alice: InProcess) -> None:
    alice.enter_room()
    for number in range(1, 8):
        alice.call("post_message", content=str(number))
    async with viewing(path) as view:

        async def seqs(**query: Any) -> list[int]:
            return [row["seq"] for row in await view.rows(1, **query)]

        assert await seqs() == [1, 2, 3, 4, 5, 6, 7]
        assert await seqs(limit=2) == [6, 7]
        assert await seqs(before=4, limit=2) == [2, 3]
        assert await seqs(after=4, limit=2) == [5, 6]
        assert await seqs(after=4, before=3) == [5, 6, 7]
        assert await seqs(limit="1.5") == [7]
        assert await seqs(limit=-3) == [7]
        assert await seqs(limit="many") == [1, 2, 3, 4, 5, 6, 7]
        assert await seqs(limit="NaN") == [1, 2, 3, 4, 5, 6, 7]
        assert await seqs(after="", before="") == [1, 2, 3, 4, 5, 6, 7]


async def test_a_body_over_100000_characters_is_cut_and_says_its_length(path: Path, alice: InProcess) -> None:
    alice.enter_room()
    alice.call("post_message", content="y" * 150_000)
    alice.call("post_message", content="𝄞" * 100_000)
    async with viewing(path) as view:
        long, exact = await view.rows(1)
    assert (len(long["body"]), long["body_truncated"], long["body_length"]) == (100_000, True, 150_000)
    assert len(exact["body"]) == 100_000
    assert "body_truncated" not in exact
    assert "body_length" not in exact


async def test_an_answer_holds_two_million_bytes_and_says_when_it_is_short_of_rows(
    path: Path, alice: InProcess
) -> None:
    alice.enter_room()
    for _ in range(8):
        alice.call("post_message", content="字" * 100_000)
    async with viewing(path) as view:
        _, newest = await view.get("messages", room=1)
        assert [row["seq"] for row in newest["messages"]] == [3, 4, 5, 6, 7, 8]
        assert newest["trimmed"] is True
        assert len(json.dumps(newest["messages"], ensure_ascii=False, separators=(",", ":")).encode()) <= 2_000_000
        _, rest = await view.get("messages", room=1, before=3)
        assert [row["seq"] for row in rest["messages"]] == [1, 2]
        assert "trimmed" not in rest


async def test_a_person_joins_posts_and_leaves_and_agents_hear_it(path: Path, alice: InProcess, agent: str) -> None:
    async with viewing(path) as view:
        status, joined = await view.post("join", room=1, name=" ann ")
        assert (status, joined) == (200, {"joined": True, "agent_id": "ann", "room_id": 1, "last_read_seq": 0})
        assert await view.post("post", room=1, name="ann", body=f"  hi @{agent}.  ", reply_to_seq=1) == (
            200,
            {"seq": 3},
        )
        heard = alice.call("catch_up")["messages"][-1]
        assert (heard["from"], heard["content"], heard["to"]) == ("ann", f"hi @{agent}.", [agent])
        assert heard["reply_to"]["seq"] == 1
        row = (await view.rows(1))[-1]
        assert (row["is_human"], row["brand"], row["model"], row["version"]) == (1, None, None, None)
        people = {one["id"]: one for one in alice.call("list_agents")["agents"]}
        assert (people["ann"]["is_human"], people["ann"]["present"], people["ann"]["active"]) == (True, True, True)
        assert await view.post("leave", room=1, name="ann") == (200, {"left": True, "room_id": 1})
        assert await view.post("leave", room=1, name="ann") == (200, {"left": False, "room_id": 1})
        status, refused = await view.post("post", room=1, name="ann", body="still here?")
        assert (status, "join the room first" in refused["error"]) == (400, True)
        assert (await view.post("join", room=1, name="ann"))[0] == 200
        assert await view.post("post", room=1, name="ann", body="back") == (200, {"seq": 4})


async def test_a_name_is_unknown_until_somebody_joins_with_it(path: Path, agent: str) -> None:
    async with viewing(path) as view:
        assert await view.get("me", room=1, name="ghost") == (200, {"joined": False, "last_read_seq": 0})
        assert (await view.post("post", room=1, name="ghost", body="hi"))[0] == 400
        assert (await view.post("read", room=1, name="ghost", seq=1))[0] == 400


async def test_people_and_agents_never_mix(path: Path, alice: InProcess, agent: str) -> None:
    async with viewing(path) as view:
        status, refused = await view.post("join", room=1, name=agent)
        assert (status, "LLM persona" in refused["error"]) == (400, True)
        assert (await view.get("me", room=1, name=agent))[1]["joined"] is False
        before = alice.call("whoami")["last_read_seq"]
        assert (await view.post("post", room=1, name=agent, body="forged"))[0] == 400
        assert (await view.post("read", room=1, name=agent, seq=99))[0] == 400
        status, refused = await view.post("leave", room=1, name=agent)
        assert (status, "LLM persona" in refused["error"]) == (400, True)
        assert alice.call("whoami")["last_read_seq"] == before
        assert alice.call("list_agents")["agents"][0]["present"] is True
        await view.post("join", room=1, name="ann")
        error = alice.refused("resume_persona", agent_id="ann", resume_word="x", brand="b", model="m", version="v")
        assert "already holds" in error["error"]
    assert [row["body"] for row in alice.database.all("SELECT body FROM messages WHERE body = 'forged'")] == []


async def test_the_read_marker_of_a_person_only_rises_and_never_past_the_newest(path: Path, agent: str) -> None:
    async with viewing(path) as view:
        await view.post("join", room=1, name="ann")
        assert await view.post("read", room=1, name="ann", seq=1) == (200, {"last_read_seq": 1})
        assert await view.post("read", room=1, name="ann", seq=0) == (200, {"last_read_seq": 1})
        assert await view.post("read", room=1, name="ann", seq=10**9) == (200, {"last_read_seq": 2})
        assert await view.get("me", room=1, name="ann") == (200, {"joined": True, "last_read_seq": 2})


async def test_posting_reads_nothing_for_a_person_who_has_unread_messages(path: Path, agent: str) -> None:
    async with viewing(path) as view:
        await view.post("join", room=1, name="ann")
        await view.post("post", room=1, name="ann", body="did not look")
        assert (await view.get("me", room=1, name="ann"))[1]["last_read_seq"] == 0
        await view.post("read", room=1, name="ann", seq=3)
        await view.post("post", room=1, name="ann", body="looked")
        assert (await view.get("me", room=1, name="ann"))[1]["last_read_seq"] == 4


async def test_a_search_finds_best_first_and_tells_when_there_is_more(path: Path, alice: InProcess) -> None:
    alice.enter_room("other")
    alice.call("post_message", content="needle in another room")
    alice.call("create_room", name="hall")
    alice.call("join_room", room="hall")
    for text in ("a needle", "needle needle", "hay", "one more needle in a long haystack of words"):
        alice.call("post_message", content=text)
    async with viewing(path) as view:
        _, found = await view.get("search", room=2, q=" needle ")
        assert [row["seq"] for row in found["matches"]] == [2, 1, 4]
        assert found["q"] == "needle"
        assert "trimmed" not in found
        assert list(found["matches"][0]) == ROW
        _, cut = await view.get("search", room=2, q="needle", limit=2)
        assert (len(cut["matches"]), cut["trimmed"]) == (2, True)
        _, whole = await view.get("search", room=2, q="needle", limit=3)
        assert "trimmed" not in whole


@pytest.mark.parametrize("query", ['"unbalanced (', "NEAR(foo bar, nope)", "AND", "*", ""])
async def test_a_query_that_cannot_be_read_is_refused(path: Path, agent: str, query: str) -> None:
    async with viewing(path) as view:
        status, answer = await view.get("search", room=1, q=query)
    assert status == 400
    assert answer["error"]


async def test_a_deleted_room_takes_everything_in_it_along(path: Path, alice: InProcess, bob: InProcess) -> None:
    alice.enter_room("kept")
    bob.enter_room("doomed")
    bob.call("post_message", content="to be erased")
    bob.call("claim", key="file:x")
    bob.waits("catch_up", wait_seconds=20)  # its lease is there
    async with viewing(path) as view:
        assert (await view.post("delete-room", room=2))[0] == 400
        assert (await view.post("delete-room", room=2, confirm=1))[0] == 400
        status, deleted = await view.post("delete-room", room=2, confirm=True)
        assert (status, deleted) == (200, {"deleted_room": 2, "name": "doomed", "messages": 1, "members": 1})
        for table in ("messages", "memberships", "claims", "wait_leases"):
            assert alice.database.value(f"SELECT count(*) FROM {table} WHERE room_id = 2") == 0
        status, gone = await view.post("delete-room", room=2, confirm=True)
        assert (status, "no room" in gone["error"]) == (400, True)
        assert [room["name"] for room in (await view.get("rooms"))[1]["rooms"]] == ["kept"]


async def test_who_is_around_comes_with_claims_and_unread_mentions_of_that_room_alone(
    path: Path, alice: InProcess, bob: InProcess
) -> None:
    agent, other = alice.enter_room(), bob.enter_room("elsewhere")
    bob.call("post_message", content="not here", to=[other.agent_id])
    bob.call("join_room", room="hall", role="reviewer")
    bob.call("claim", key="file:a.py", note="mine")
    bob.call("post_message", content="look", to=[agent.agent_id])
    async with viewing(path) as view:
        _, around = await view.get("around", room=1)
    assert [(one["id"], one["role"], one["present"]) for one in around["agents"]] == [
        (agent.agent_id, None, True),
        (other.agent_id, "reviewer", True),
    ]
    assert [(claim["key"], claim["holder"], claim["note"]) for claim in around["claims"]] == [
        ("file:a.py", other.agent_id, "mine")
    ]
    assert [(one["agent_id"], one["directed_unread"]) for one in around["pending"]] == [(agent.agent_id, 1)]
    assert "resume_word" not in json.dumps(around)


@pytest.mark.parametrize(
    ("path_", "query"),
    [
        ("room", {}),
        ("room", {"id": "x"}),
        ("room", {"id": 0}),
        ("room", {"id": UNSAFE}),
        ("room-exists", {"id": "1.5"}),
        ("messages", {"room": -1}),
        ("messages", {"room": 1, "after": UNSAFE}),
        ("messages", {"room": 1, "before": -1}),
        ("messages", {"room": 1, "after": "9" * 5000}),
        ("me", {"room": 1}),
        ("me", {"room": 1, "name": "a\0b"}),
        ("search", {"room": 1, "q": "\0"}),
        ("search", {"q": "x"}),
        ("around", {"room": "१"}),
    ],
)
async def test_a_parameter_that_makes_no_sense_is_refused(
    path: Path, agent: str, path_: str, query: dict[str, Any]
) -> None:
    async with viewing(path) as view:
        status, answer = await view.get(path_, **query)
    assert status == 400
    assert answer["error"]


@pytest.mark.parametrize(
    ("to", "fields", "reason"),
    [
        ("join", {"room": True, "name": "ann"}, "safe integer"),
        ("join", {"room": "1", "name": "ann"}, "safe integer"),
        ("join", {"room": [1], "name": "ann"}, "safe integer"),
        ("join", {"room": UNSAFE, "name": "ann"}, "safe integer"),
        ("join", {"room": 1.5, "name": "ann"}, "safe integer"),
        ("join", {"name": "ann"}, "safe integer"),
        ("join", {"room": 9, "name": "ann"}, "no room"),
        ("join", {"room": 1}, "name"),
        ("join", {"room": 1, "name": "bad name!"}, "name"),
        ("join", {"room": 1, "name": "-ann"}, "name"),
        ("join", {"room": 1, "name": "änn"}, "name"),
        ("join", {"room": 1, "name": "ann\nbob"}, "name"),
        ("join", {"room": 1, "name": "a" * 201}, "name"),
        ("join", {"room": 1, "name": ["ann"]}, "name"),
        ("read", {"room": 1, "name": "ann", "seq": None}, "seq"),
        ("read", {"room": 1, "name": "ann", "seq": UNSAFE}, "safe integer"),
        ("read", {"room": 1, "name": "ann", "seq": -1}, "seq"),
        ("post", {"room": 1, "name": "ann", "body": " \n\ufeff "}, "empty"),
        ("post", {"room": 1, "name": "ann", "body": 5}, "empty"),
        ("post", {"room": 1, "name": "ann", "body": "a\0b"}, "NUL"),
        ("post", {"room": 1, "name": "ann", "body": "x\ud800y"}, "surrogate"),
        ("post", {"room": 1, "name": "ann", "body": "a" * 100_001}, "exceeds"),
        ("post", {"room": 1, "name": "ann", "body": "𝄞" * 50_001}, "exceeds"),
        ("post", {"room": 1, "name": "ann", "body": "x", "reply_to_seq": 999}, "does not exist"),
        ("post", {"room": 1, "name": "ann", "body": "x", "reply_to_seq": "1"}, "safe integer"),
    ],
)
async def test_input_that_cannot_be_taken_is_refused_with_the_reason(
    path: Path, agent: str, to: str, fields: dict[str, Any], reason: str
) -> None:
    async with viewing(path) as view:
        await view.post("join", room=1, name="ann")
        status, answer = await view.post(to, **fields)
        assert status == 400
        assert reason in answer["error"]
        assert len(await view.rows(1)) == 2


@pytest.mark.parametrize(
    "body", [b"null", b"[1]", b'"x"', b"", b"{", b'{"room":NaN}', b"\xff", b"[" * 100_000, b'{"room":' + b"9" * 5000]
)
async def test_a_request_that_is_no_json_object_is_refused(path: Path, agent: str, body: bytes) -> None:
    async with viewing(path) as view:
        status, answer = await view.post_raw("post", body)
        assert status == 400
        assert "JSON" in answer["error"]


async def test_a_whole_number_may_be_written_with_a_fraction_of_zero(path: Path, agent: str) -> None:
    async with viewing(path) as view:
        status, _ = await view.post_raw("join", b'{"room":1.0,"name":"ann"}')
    assert status == 200


async def test_a_request_over_700000_bytes_gets_an_answer_and_the_server_goes_on(path: Path, agent: str) -> None:
    async with viewing(path) as view:
        body = json.dumps({"room": 1, "name": "ann", "body": "a" * 800_000}).encode()
        reply = await view.ask("POST", "/api/post", body, origin=None)
        assert (reply.status, reply.one("connection")) == (413, "close")
        assert "too large" in json.loads(reply.body)["error"]
        assert (await view.get("rooms"))[0] == 200


async def test_the_longest_message_fits_in_a_request(path: Path, agent: str) -> None:
    async with viewing(path) as view:
        await view.post("join", room=1, name="ann")
        assert await view.post("post", room=1, name="ann", body="字" * 100_000) == (200, {"seq": 3})


async def test_a_file_that_others_keep_busy_is_an_answer_to_try_again(
    path: Path, agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("simplexmcp.rooms.store.database._BUSY_MS", 100)
    locker = sqlite3.connect(path, isolation_level=None)
    async with viewing(path) as view:
        await view.post("join", room=1, name="ann")
        locker.execute("BEGIN IMMEDIATE")
        answers: list[tuple[int, Any]] = []

        async def post() -> None:
            answers.append(await view.post("post", room=1, name="ann", body="x"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(post)
            assert len(await view.rows(1)) == 2
            assert answers == []  # who writes waits, who reads does not
        ((status, answer),) = answers
        assert (status, "busy" in answer["error"]) == (503, True)
        locker.execute("ROLLBACK")
        locker.close()
        assert (await view.post("post", room=1, name="ann", body="x"))[0] == 200


async def test_a_file_of_another_program_is_an_error_that_names_it(path: Path) -> None:
    path.parent.mkdir()
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE notes (text)")
    other.close()
    async with viewing(path) as view:
        status, answer = await view.get("rooms")
    assert (status, str(path) in answer["error"]) == (500, True)


async def test_what_is_not_served_is_not_found(path: Path, agent: str) -> None:
    async with viewing(path) as view:
        assert (await view.ask("GET", "/api/nothing")).status == 404
        assert (await view.ask("POST", "/api/nothing", b"{}")).status == 404
        assert (await view.ask("GET", "/api/post")).status == 404


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ("thanks @bot.", ["bot"]),
        ("@a-b_c.d, @A and @a-b_c.d", ["a-b_c.d", "A"]),
        ("mail me@example.org", ["example.org"]),
        ("@ @. @- @é", []),
        (f"@{'b' * 201} and @carol--", ["carol"]),
        (f"@{'b' * 200}.", ["b" * 200]),
        (" ".join(f"@n{number}" for number in range(150)), [f"n{number}" for number in range(100)]),
    ],
)
def test_names_after_an_at_are_mentions(body: str, named: list[str]) -> None:
    assert mentions(body) == named
