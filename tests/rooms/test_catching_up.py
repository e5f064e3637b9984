"""catch_up: every message of others once, in order, and the read marker with it."""

from __future__ import annotations

import json
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

BODIES = st.one_of(
    st.text(st.sampled_from('a \U0001f600"\\\n\x01é'), max_size=3000),
    st.integers(0, 4).map(lambda power: "x" * 10**power),
    st.lists(st.text(max_size=20), max_size=5),
)
PAGES = st.fixed_dictionaries(
    {},
    optional={
        "limit": st.integers(1, 5),
        "max_bytes": st.integers(1000, 3000),
        "preview_chars": st.sampled_from([1, 7, 5000]),
    },
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("theirs"), BODIES),
        st.tuples(st.just("mine"), BODIES),
        st.tuples(st.just("page"), PAGES),
    ),
    max_size=20,
)


def _set_marker(client: InProcess, agent_id: str, seq: int) -> None:
    with client.database.write():
        client.database.run("UPDATE memberships SET last_read_seq = ? WHERE agent_id = ?", seq, agent_id)


def _marker(client: InProcess) -> int:
    return int(client.call("whoami")["last_read_seq"])


@settings(max_examples=60, deadline=None)
@given(STEPS, PAGES)
def test_draining_gives_each_foreign_message_once_in_order_whatever_the_pages(
    steps: list[tuple[str, Any]], rest: dict[str, Any]
) -> None:
    database = open_database(":memory:")
    with InProcess(":memory:", database=database) as reader:
        writer = InProcess(":memory:", database=database)
        me = reader.enter_room().agent_id
        writer.enter_room()
        posted: list[Any] = []
        read: list[dict[str, Any]] = []

        def page(arguments: dict[str, Any]) -> dict[str, Any]:
            _failed, text = reader.text("catch_up", **arguments)
            assert units(text) <= arguments.get("max_bytes", 100_000)
            result = json.loads(text)
            assert len(result["messages"]) <= arguments.get("limit", 50)
            read.extend(result["messages"])
            assert result["remaining"] == len(posted) - len(read)
            assert bool(result["messages"]) or result["remaining"] == 0
            return result

        for kind, what in steps:
            if kind == "page":
                page(what)
                continue
            (writer if kind == "theirs" else reader).call("post_message", content=what)
            if kind == "theirs":
                posted.append(what)
        while page(rest)["remaining"]:
            pass
        assert [message["seq"] for message in read] == sorted({message["seq"] for message in read})
        assert me not in {message["from"] for message in read}
        for message, content in zip(read, posted, strict=True):
            assert "truncated" in message or message["content"] == content
        assert page({})["advanced"] is False


def test_a_page_has_these_keys_in_this_order(alice: InProcess, bob: InProcess) -> None:
    persona = alice.enter_room()
    bob.enter_room()
    bob.call("post_message", content="hello")
    result = alice.call("catch_up")
    assert list(result) == [
        *("agent_id", "room_id", "room_name", "messages", "new_last_read_seq", "remaining", "advanced"),
    ]
    assert (result["agent_id"], result["room_id"], result["room_name"]) == (persona.agent_id, 1, "hall")
    assert (result["new_last_read_seq"], result["remaining"], result["advanced"]) == (1, 0, True)


def test_a_message_has_its_keys_in_order_and_only_those_that_apply(alice: InProcess, bob: InProcess) -> None:
    me = alice.enter_room().agent_id
    them = bob.enter_room().agent_id
    bob.call("post_message", content="plain")
    bob.call("post_message", content={"é": [1, 2.0]}, to=[me], reply_to_seq=1, priority=True, supersedes_seq=1)
    plain, rich = alice.call("catch_up")["messages"]
    assert list(plain) == ["seq", "from", "format", "content", "to", "reply_to", "at", "unix", "superseded_by"]
    assert (plain["to"], plain["reply_to"], plain["superseded_by"]) == (None, None, 2)
    assert list(rich) == [
        *("seq", "from", "format", "priority", "content", "to", "reply_to", "at", "unix", "supersedes"),
    ]
    assert (rich["from"], rich["format"], rich["priority"]) == (them, "json", True)
    assert (rich["content"], rich["to"], rich["supersedes"]) == ({"é": [1, 2]}, [me], 1)
    assert rich["reply_to"] == {"seq": 1, "from": them, "preview": "plain"}


def test_the_latest_of_several_corrections_is_named(alice: InProcess, bob: InProcess) -> None:
    alice.enter_room()
    bob.enter_room()
    bob.call("post_message", content="x")
    for _ in range(2):
        bob.call("post_message", content="x", supersedes_seq=1)
    found = alice.call("catch_up")["messages"]
    assert [message.get("superseded_by") for message in found] == [3, None, None]


def test_a_reply_shows_the_start_of_its_parent_on_one_line(alice: InProcess, bob: InProcess) -> None:
    alice.enter_room()
    them = bob.enter_room().agent_id
    bob.call("post_message", content="  one \n\t two" + "\u00a0" * 3 + "three  ")
    bob.call("post_message", content="\U0001f600" * 101)
    bob.call("post_message", content="y" * 100)
    for seq in (1, 2, 3):
        bob.call("post_message", content="re", reply_to_seq=seq)
    previews = [message["reply_to"] for message in alice.call("catch_up")["messages"][3:]]
    assert previews == [
        {"seq": 1, "from": them, "preview": "one two three"},
        {"seq": 2, "from": them, "preview": "\U0001f600" * 100 + "..."},
        {"seq": 3, "from": them, "preview": "y" * 100},
    ]


def test_a_reply_to_a_pruned_message_still_names_its_number(alice: InProcess, bob: InProcess) -> None:
    alice.enter_room()
    bob.enter_room()
    bob.call("post_message", content="old")
    bob.call("post_message", content="re", reply_to_seq=1)
    bob.call("prune_messages", keep_last=1, force=True)
    assert alice.call("catch_up")["messages"][0]["reply_to"] == {"seq": 1, "from": None, "preview": ""}


def test_own_messages_are_passed_over_and_never_returned(alice: InProcess, bob: InProcess) -> None:
    alice.enter_room()
    bob.enter_room()
    bob.call("post_message", content="theirs")
    for text in ("mine", "mine too"):
        alice.call("post_message", content=text)
    bob.call("post_message", content="theirs again")
    first = alice.call("catch_up", limit=1)
    assert [message["content"] for message in first["messages"]] == ["theirs"]
    assert (first["new_last_read_seq"], first["remaining"]) == (3, 1)
    second = alice.call("catch_up")
    assert [message["content"] for message in second["messages"]] == ["theirs again"]
    assert second["new_last_read_seq"] == 4


def test_an_empty_page_may_still_advance_over_own_messages(alice: InProcess) -> None:
    persona = alice.enter_room()
    alice.call("post_message", content="mine")
    _set_marker(alice, persona.agent_id, 0)
    result = alice.call("catch_up")
    assert (result["messages"], result["advanced"], result["new_last_read_seq"]) == ([], True, 1)
    assert alice.call("catch_up")["advanced"] is False


def test_what_was_pruned_is_not_unread(alice: InProcess, bob: InProcess) -> None:
    alice.enter_room()
    bob.enter_room()
    for number in range(6):
        bob.call("post_message", content=str(number))
    bob.call("prune_messages", keep_last=2, force=True)
    first = alice.call("catch_up", limit=1)
    assert ([message["seq"] for message in first["messages"]], first["remaining"]) == ([5], 1)


def test_an_empty_page_names_the_other_rooms_with_unread_messages(alice: InProcess, bob: InProcess) -> None:
    me = alice.enter_room("first").agent_id
    bob.enter_room("first")
    for name, messages, directed in (("few", 1, 0), ("many", 3, 0), ("mine", 2, 1), ("same", 3, 0)):
        bob.call("create_room", name=name)
        for client in (bob, alice):
            client.call("join_room", room=name)
        for number in range(messages):
            bob.call("post_message", content="x", **({"to": [me]} if number < directed else {}))
    alice.call("join_room", room="first")
    result = alice.call("catch_up")
    assert list(result)[-1] == "rooms_with_unread"
    assert [(room["name"], room["unread"], room["directed"]) for room in result["rooms_with_unread"]] == [
        *(("mine", 2, 1), ("many", 3, 0), ("same", 3, 0), ("few", 1, 0)),
    ]
    assert list(result["rooms_with_unread"][0]) == ["room_id", "name", "unread", "directed"]


def test_at_most_twenty_other_rooms_are_named(alice: InProcess, bob: InProcess) -> None:
    alice.enter_room()
    bob.enter_room()
    for number in range(21):
        bob.call("create_room", name=f"room {number:02}" + "x" * 100)
        for client in (alice, bob):
            client.call("join_room", room=f"room {number:02}" + "x" * 100)
        bob.call("post_message", content="x")
    alice.call("join_room", room="hall")
    result = alice.call("catch_up")
    assert len(result["rooms_with_unread"]) == 20
    assert result["rooms_with_unread_truncated"] is True
    _failed, text = alice.text("catch_up", max_bytes=1000)
    assert units(text) <= 1000
    assert 0 < len(json.loads(text)["rooms_with_unread"]) < 8


def test_a_page_with_messages_names_no_other_rooms(alice: InProcess, bob: InProcess) -> None:
    alice.enter_room()
    bob.enter_room()
    bob.call("post_message", content="x")
    assert "rooms_with_unread" not in alice.call("catch_up")


def test_a_room_may_be_named_without_making_it_active(alice: InProcess, bob: InProcess) -> None:
    alice.enter_room("one")
    alice.call("create_room", name="two")
    alice.call("join_room", room="two")
    bob.enter_room("one")
    bob.call("post_message", content="x")
    assert alice.call("catch_up", room="one")["room_name"] == "one"
    assert alice.call("whoami")["room_name"] == "two"


@pytest.mark.parametrize("body", ["x" * 10_000_000, "\x01" * 1_600_000, "\U0001f600" * 2_500_000])
def test_a_huge_message_comes_cut_and_the_next_ones_follow(alice: InProcess, bob: InProcess, body: str) -> None:
    alice.enter_room()
    bob.enter_room()
    bob.call("post_message", content=body)
    bob.call("post_message", content="next")
    _failed, text = alice.text("catch_up", max_bytes=2000)
    assert 1985 <= units(text) <= 2000
    cut = json.loads(text)
    assert cut["byte_limited"] is True
    assert cut["remaining"] == 1
    assert cut["messages"][0]["length"] == len(body)
    assert body.startswith(cut["messages"][0]["content"])
    assert [message["content"] for message in alice.call("catch_up")["messages"]] == ["next"]


def test_previews_count_letters_and_let_many_messages_fit(alice: InProcess, bob: InProcess) -> None:
    alice.enter_room()
    bob.enter_room()
    for _ in range(5):
        bob.call("post_message", content="\U0001f600" * 50_000)
    result = alice.call("catch_up", preview_chars=3)
    assert [message["content"] for message in result["messages"]] == ["\U0001f600" * 3] * 5
    assert {message["length"] for message in result["messages"]} == {50_000}
    assert "byte_limited" not in result


def test_a_preview_that_a_text_just_fits_does_not_cut_it(alice: InProcess, bob: InProcess) -> None:
    alice.enter_room()
    bob.enter_room()
    bob.call("post_message", content="\U0001f600" * 3)
    message = alice.call("catch_up", preview_chars=3)["messages"][0]
    assert message["content"] == "\U0001f600" * 3
    assert "truncated" not in message


def test_a_body_cut_by_its_preview_is_text_even_when_it_is_structured(alice: InProcess, bob: InProcess) -> None:
    alice.enter_room()
    bob.enter_room()
    bob.call("post_message", content=[1, 2, 3])
    message = alice.call("catch_up", preview_chars=4)["messages"][0]
    assert (message["format"], message["content"], message["length"]) == ("json", "[1,2", 7)


def test_a_room_whose_name_leaves_no_room_for_a_message_needs_a_larger_page(alice: InProcess, bob: InProcess) -> None:
    name = '"' * 200
    alice.enter_room(name)
    bob.enter_room(name)
    bob.call("post_message", content="x")
    error = alice.refused("catch_up", max_bytes=1000)["error"]
    assert "too small" in error
    assert _marker(alice) == 0
    needed = int(error.split("at least ")[1].rstrip("."))
    assert len(alice.call("catch_up", max_bytes=needed)["messages"]) == 1


def test_triage_returns_what_is_marked_or_directed_and_passes_over_the_rest(alice: InProcess, bob: InProcess) -> None:
    me = alice.enter_room().agent_id
    bob.enter_room()
    alice.call("post_message", content="mine")
    for number in range(10):
        more: dict[str, Any] = {2: {"priority": True}, 4: {"to": [me]}, 6: {"reply_to_seq": 1}}.get(number, {})
        bob.call("post_message", content=str(number), **more)
    first = alice.call("catch_up", priority_only=True, limit=2)
    assert list(first)[7:] == ["lossy", "priority_only", "skipped_count", "qualifying_remaining", "cutoff_seq"]
    assert [message["content"] for message in first["messages"]] == ["2", "4"]
    assert (first["new_last_read_seq"], first["skipped_count"], first["qualifying_remaining"]) == (6, 3, 1)
    assert (first["remaining"], first["cutoff_seq"]) == (5, 6)
    second = alice.call("catch_up", priority_only=True)
    assert [message["content"] for message in second["messages"]] == ["6"]
    assert (second["new_last_read_seq"], second["skipped_count"], second["qualifying_remaining"]) == (11, 4, 0)
    third = alice.call("catch_up", priority_only=True)
    assert (third["messages"], third["advanced"], third["rooms_with_unread"]) == ([], False, [])


def test_a_single_message_that_was_cut_is_not_called_a_cut_page(alice: InProcess, bob: InProcess) -> None:
    alice.enter_room()
    bob.enter_room()
    bob.call("post_message", content="x" * 5000)
    alone = alice.call("catch_up", max_bytes=1000)
    assert (alone["messages"][0]["truncated"], alone["remaining"], "byte_limited" in alone) == (True, 0, False)
    for _ in range(2):
        bob.call("post_message", content="x" * 5000)
    first = alice.call("catch_up", max_bytes=1000)
    assert (len(first["messages"]), first["remaining"], first["byte_limited"]) == (1, 1, True)


def test_another_room_is_named_even_where_its_name_is_too_long(alice: InProcess, bob: InProcess) -> None:
    name = "\x01" * 200
    alice.enter_room(name)
    bob.enter_room(name)
    bob.call("post_message", content="x")
    alice.call("create_room", name="hall")
    alice.call("join_room", room="hall")
    _failed, text = alice.text("catch_up", max_bytes=1000)
    assert units(text) <= 1000
    (room,) = json.loads(text)["rooms_with_unread"]
    assert (room["room_id"], room["unread"], name.startswith(room["name"])) == (1, 1, True)
    assert json.loads(text)["rooms_with_unread_truncated"] is True


def test_triage_keeps_what_its_budget_cut(alice: InProcess, bob: InProcess) -> None:
    alice.enter_room()
    bob.enter_room()
    for number in range(4):
        bob.call("post_message", content=str(number) * 900, priority=True)
    seen: list[str] = []
    while True:
        _failed, text = alice.text("catch_up", priority_only=True, max_bytes=1800)
        assert units(text) <= 1800
        result = json.loads(text)
        seen += [message["content"][0] for message in result["messages"]]
        assert result["qualifying_remaining"] == 4 - len(seen)
        if not result["qualifying_remaining"]:
            break
        assert result["byte_limited"] is True
    assert seen == ["0", "1", "2", "3"]


def test_a_name_inside_another_name_is_not_mentioned(alice: InProcess, bob: InProcess) -> None:
    me = alice.enter_room().agent_id
    bob.enter_room()
    bob.call("post_message", content="x", to=[me + "x", f'"{me}"', f'a","{me}', f"x{me}"])
    assert alice.call("catch_up", priority_only=True)["messages"] == []


def test_triage_and_waiting_cannot_be_combined(alice: InProcess) -> None:
    alice.enter_room()
    assert "cannot be combined" in alice.refused("catch_up", priority_only=True, wait_seconds=1)["error"]
    assert alice.call("catch_up", priority_only=True, wait_seconds=0)["lossy"] is True


def test_who_left_or_never_joined_reads_nothing(alice: InProcess, bob: InProcess) -> None:
    alice.enter_room()
    bob.enter_room("other")
    assert "never joined" in alice.refused("catch_up", room="other")["error"]
    alice.call("leave_room")
    assert "join_room" in alice.refused("catch_up")["error"]
    assert "LEFT room" in alice.refused("catch_up", room="hall")["error"]
    assert "no room" in alice.refused("catch_up", room="nowhere")["error"]


def test_a_runtime_that_lost_its_persona_moves_no_marker(alice: InProcess, runtime: Runtimes) -> None:
    persona = alice.enter_room()
    writer = runtime()
    writer.enter_room()
    writer.call("post_message", content="x")
    holder = runtime()
    holder.resume(persona)
    refused = alice.refused("catch_up")
    assert (refused["code"], refused["your_epoch"], refused["current_epoch"]) == ("persona_lost", 1, 2)
    holder.call("join_room", room="hall")
    assert _marker(holder) == 0
    assert len(holder.call("catch_up")["messages"]) == 1


def test_arguments_out_of_bounds_are_refused_and_nothing_moves(alice: InProcess, bob: InProcess) -> None:
    alice.enter_room()
    bob.enter_room()
    bob.call("post_message", content="x")
    for arguments in ({"limit": 0}, {"limit": 501}, {"max_bytes": 999}, {"preview_chars": 0}, {"wait_seconds": 26}):
        alice.invalid("catch_up", **arguments)
    assert "Unrecognized key" in alice.invalid("catch_up", wait=1)
    assert _marker(alice) == 0


def test_a_message_that_is_too_deep_to_be_written_again_comes_as_text(alice: InProcess, bob: InProcess) -> None:
    alice.enter_room()
    writer = bob.enter_room()
    bodies = ["[" * 5000 + "]" * 5000, "[" * 400 + "]" * 400, "[1e999]", "[" + "9" * 5000 + "]", '{"a":[{}]}']
    with bob.database.write():
        for seq, body in enumerate(bodies, 1):
            bob.database.run(
                "INSERT INTO messages (room_id, seq, agent_id, format, body, body_len) VALUES (1, ?, ?, 'json', ?, ?)",
                *(seq, writer.agent_id, body, len(body)),
            )
    found = [message["content"] for message in alice.call("catch_up")["messages"]]
    assert found == [*bodies[:4], {"a": [{}]}]


def test_what_other_processes_post_while_one_drains_is_read_once_and_in_order(server: Callable[..., Any]) -> None:
    reader, *writers = (server() for _ in range(3))
    for client in (reader, *writers):
        client.enter_room()
    sent = [
        (writer, writer.start("post_message", content=f"{number} {place} " + "x" * 200))
        for number in range(40)
        for place, writer in enumerate(writers)
    ]
    seen: list[dict[str, Any]] = []
    while len(seen) < len(sent):
        seen += reader.call("catch_up", max_bytes=3000)["messages"]
    for writer, key in sent:
        assert writer.result(key)["posted"] is True
    assert [message["seq"] for message in seen] == list(range(1, 81))
    for place in (0, 1):
        numbers = [message["content"].split()[0] for message in seen if message["content"].split()[1] == str(place)]
        assert numbers == [str(number) for number in range(40)]
    assert reader.call("catch_up")["messages"] == []
