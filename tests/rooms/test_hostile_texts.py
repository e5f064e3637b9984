"""Texts that want to break something: refused with a reason, or stored and shown as they are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from simplexmcp.rooms.errors import RoomsError
from simplexmcp.rooms.texts import MAX_BODY_BYTES
from simplexmcp.rooms.tools.posting import make_body
from tests.rooms.client import MODEL

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.rooms.client import InProcess, Server

    Servers = Callable[..., Server]

# Every text that is stored, with what else the call needs.
STORED: list[tuple[str, str, dict[str, Any]]] = [
    ("create_persona", "brand", MODEL),
    ("create_persona", "model", MODEL),
    ("create_persona", "version", MODEL),
    ("create_persona", "description", MODEL),
    ("create_room", "name", {}),
    ("create_room", "description", {"name": "new"}),
    ("create_room", "pinned", {"name": "new"}),
    ("join_room", "role", {"room": "hall"}),
    ("set_role", "role", {}),
    ("set_room_intro", "text", {}),
    ("post_message", "content", {}),
    ("post_message", "client_message_id", {"content": "x"}),
    ("claim", "key", {}),
    ("claim", "note", {"key": "k"}),
    ("release_claim", "key", {}),
]


def _caller(alice: InProcess, bob: InProcess, tool: str) -> InProcess:
    alice.enter_room()
    return bob if tool == "create_persona" else alice


def _stored(client: InProcess) -> list[tuple[Any, ...]]:
    # Without the sign of life, which any call gives.
    member = "m.room_id, m.agent_id, m.joined_at, m.last_read_seq, m.left_at, m.role"
    return [
        tuple(row) for row in client.database.all(f"SELECT a.*, r.*, {member} FROM agents a, rooms r, memberships m")
    ]


@pytest.mark.parametrize(("tool", "field", "others"), STORED)
@pytest.mark.parametrize(
    ("text", "reason"),
    [("a\x00b", "NUL character"), ("a\ud800b", "lone surrogate"), ("\udc00", "lone surrogate")],
    ids=["nul", "high", "low"],
)
def test_no_stored_text_holds_a_nul_or_half_a_character(
    alice: InProcess, bob: InProcess, tool: str, field: str, others: dict[str, Any], text: str, reason: str
) -> None:
    client = _caller(alice, bob, tool)
    before = _stored(alice)
    assert reason in client.refused(tool, **(others | {field: text}))["error"]
    assert _stored(alice) == before
    for table in ("messages", "claims"):
        assert alice.database.value(f"SELECT count(*) FROM {table}") == 0


@pytest.mark.parametrize("mention", ["a\x00b", "a\ud800", "a\nb", "\x7f"])
def test_mentions_and_keys_hold_no_controls(alice: InProcess, mention: str) -> None:
    alice.enter_room()
    alice.refused("post_message", content="x", to=["fine", mention])
    alice.refused("post_message", content="x", client_message_id=mention)
    assert alice.database.value("SELECT count(*) FROM messages") == 0


@pytest.mark.parametrize(
    "content",
    [{"a": "\ud800"}, {"\udfff": 1}, ["ok", ["deep", {"er": "\ud83d"}]], {"a": {"b": {"c": "x\ude00\ud83d"}}}],
)
def test_half_characters_in_structured_content_are_found_at_any_depth(alice: InProcess, content: Any) -> None:
    alice.enter_room()
    assert "lone surrogate" in alice.refused("post_message", content=content)["error"]


def test_content_that_json_cannot_carry_is_refused_and_the_session_lives_on(alice: InProcess) -> None:
    alice.enter_room()
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(RoomsError, match="nested too deeply"):
        make_body(deep)
    outcome = alice.session.call("post_message", {"content": [float("inf")]})
    assert isinstance(outcome, dict)
    assert "number" in outcome["content"][0]["text"]
    assert alice.call("post_message", content="still here")["posted"] is True


@pytest.mark.parametrize(
    "content",
    [
        "'; DROP TABLE messages; --",
        "\x01\x02\x1b[31mred\x1b]0;title\x07",
        "\u202e\u2066\ufeff\u2028",
        "👩‍👩‍👧‍👦 \U0010ffff \ufffe",
        "<script>alert(1)</script>",
        "\\u0000 \\ud800 {}",
        "\r\n\t ",
    ],
)
def test_any_other_text_comes_back_to_the_letter(alice: InProcess, bob: InProcess, content: str) -> None:
    alice.enter_room()
    bob.enter_room()
    alice.call("post_message", content=content)
    alice.call("post_message", content={content: content})
    plain, structured = bob.call("catch_up")["messages"]
    assert plain["content"] == content
    assert structured["content"] == {content: content}


def test_names_may_be_as_strange_as_they_like(alice: InProcess, bob: InProcess) -> None:
    names = ["'" * 200, "😀" * 100, '"}],{"x":', "__proto__", "a\nb", "\x01" * 200, "%_\\", "-1", "0x10", "1e3"]
    alice.persona()
    for name in names:
        room = alice.call("create_room", name=name)["room_id"]
        assert alice.call("join_room", room=name)["room_id"] == room
        assert alice.call("post_message", content="x", room=name)["room_name"] == name
    assert [room["name"] for room in alice.call("list_rooms")["rooms"]] == names
    bob.persona(brand="__proto__", model="'; -- x", version='"1"')
    bob.call("join_room", room="__proto__", role="__proto__")
    assert bob.call("list_agents", filter="__PROTO__")["total"] == 1


@pytest.mark.parametrize(
    ("tool", "field", "cap", "others"),
    [
        ("create_persona", "brand", 100, MODEL),
        ("create_persona", "description", 2000, MODEL),
        ("create_room", "name", 200, {}),
        ("create_room", "description", 2000, {"name": "new"}),
        ("create_room", "pinned", 10_000, {"name": "new"}),
        ("set_role", "role", 200, {}),
        ("set_room_intro", "text", 10_000, {}),
        ("claim", "key", 500, {}),
        ("claim", "note", 2000, {"key": "k"}),
        ("post_message", "client_message_id", 200, {"content": "x"}),
    ],
)
def test_lengths_count_in_utf_16_units(
    alice: InProcess, bob: InProcess, tool: str, field: str, cap: int, others: dict[str, Any]
) -> None:
    client = _caller(alice, bob, tool)
    error = client.invalid(tool, **(others | {field: "😀" * (cap // 2) + "x"}))
    assert "too_big" in error
    assert f"at most {cap}" in error
    client.call(tool, **(others | {field: "x" + "😀" * (cap // 2 - 1) + "y"}))


def test_a_body_has_at_most_ten_million_bytes(server: Servers) -> None:
    one = server()
    one.enter_room()
    assert one.call("post_message", content="x" * MAX_BODY_BYTES)["posted"] is True
    assert "too large" in one.refused("post_message", content="x" * (MAX_BODY_BYTES + 1))["error"]
    assert "too large" in one.refused("post_message", content="é" * (MAX_BODY_BYTES // 2 + 1))["error"]
    assert "too large" in one.refused("post_message", content=["x" * (MAX_BODY_BYTES - 3)])["error"]
    assert one.call("list_rooms")["rooms"][0]["messages"] == 1


def test_a_lone_surrogate_on_the_wire_is_answered_with_an_error(server: Servers) -> None:
    one = server()
    one.enter_room()
    request = {"jsonrpc": "2.0", "id": 900, "method": "tools/call"}
    params = {"name": "post_message", "arguments": {"content": "SPLIT"}}
    line = json.dumps(request | {"params": params}).replace("SPLIT", "\\ud800")
    one.send_raw(line.encode() + b"\n")
    result = one.answer(900)["result"]
    assert result["isError"] is True
    assert "lone surrogate" in result["content"][0]["text"]
    assert one.call("post_message", content="fine")["seq"] == 1


def test_a_refusal_shows_the_callers_text_only_as_json(alice: InProcess) -> None:
    alice.persona()
    for reference in ('x" } \x1b[2J', "\ud800", "a\x00b"):
        _, text = alice.text("join_room", room=reference)
        text.encode()
        assert "\x1b" not in text
        assert "no room" in json.loads(text)["error"]


@pytest.mark.parametrize("stored", ["no list: {me}", "{me}", '{{"a":{me}}}', "[1,null,[{me}]]", "[" * 5000])
def test_mentions_that_are_no_list_of_names_keep_nobody_from_reading(
    alice: InProcess, bob: InProcess, stored: str
) -> None:
    me = alice.enter_room().agent_id
    bob.enter_room()
    for content in ("one", "two"):
        bob.call("post_message", content=content, to=[me])
    with bob.database.write():
        junk = stored.format(me=json.dumps(me))
        bob.database.run("UPDATE messages SET mentions = ? WHERE seq = 1", junk)

    assert {row["agent_id"] for row in alice.call("pending_work")["pending"]} == {me}
    assert alice.call("my_mentions")["messages"][-1]["content"] == "two"
    assert alice.call("get_message", seq=1)["to"] in (None, [])
    assert len(alice.call("read_history")["messages"]) == 2
    assert alice.call("post_message", content="x", crossed_preview_chars=9)["crossed"] == 2
    assert [message["content"] for message in alice.call("catch_up")["messages"]] == ["one", "two"]
