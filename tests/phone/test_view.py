"""What the page shows of the core's objects: every shape that a real core was seen to give, and hostile ones."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplexmcp.phone.chatview import chat_view, member_views, plan_view, viewer_of
from simplexmcp.phone.player import encoded
from simplexmcp.phone.protocol import FileState, Mark, PartKind
from simplexmcp.phone.texts import iso_time, mention_of, menu_entries, order, parts, picture
from simplexmcp.phone.view import Viewer, item_view
from simplexmcp.sandbox.markdown import parse
from tests.recorded import WIRE, frames, oracle

HERE = Viewer(name="Bob", commands=True, writes=True, role="owner", me="me==", group=True)


@cache
def recorded() -> dict[str, list[dict[str, Any]]]:
    """All objects of the recordings that have one of these keys."""
    found: dict[str, list[dict[str, Any]]] = {"chatDir": [], "chatInfo": [], "connectionPlan": [], "members": []}

    def walk(node: Any) -> None:
        if isinstance(node, dict):
            for key in found.keys() & node.keys():
                found[key].append(node)
        for value in node.values() if isinstance(node, dict) else node:
            if isinstance(value, (dict, list)):
                walk(value)

    for path in sorted(WIRE.glob("*.jsonl.xz")):
        walk(frames(path.name.removesuffix(".jsonl.xz")))
    return found


def message(text: str, **item: Any) -> dict[str, Any]:
    """A received message of Alice, in a group."""
    base = {
        "chatDir": {
            "type": "groupRcv",
            "groupMember": {
                "groupMemberId": 3,
                "memberId": "alice==",
                "memberRole": "member",
                "memberProfile": {"displayName": "Alice"},
            },
        },
        "meta": {
            "itemId": 7,
            "itemTs": "2026-12-01T10:00:00Z",
            "createdAt": "2026-12-01T10:00:01.25Z",
            "itemText": text,
            "itemStatus": {"type": "rcvNew"},
        },
        "content": {"type": "rcvMsgContent", "msgContent": {"type": "text", "text": text}},
        "mentions": {},
        "formattedText": parse(text),
    }
    return {**base, **item}


def own(text: str, **meta: Any) -> dict[str, Any]:
    item = message(text, chatDir={"type": "groupSnd"})
    item["content"] = {"type": "sndMsgContent", "msgContent": {"type": "text", "text": text}}
    item["meta"] |= {"itemStatus": {"type": "sndNew"}, **meta}
    return item


# Recordings


def test_every_recorded_item_is_shown_or_left_out_by_its_kind() -> None:
    left_out: set[str] = set()
    for item in (node for node in recorded()["chatDir"] if "meta" in node and "content" in node):
        viewer = Viewer(name="Bob", commands=True, writes=True, group=item["chatDir"]["type"].startswith("group"))
        shown = item_view(item, viewer)
        kind = item["content"]["type"]
        if shown is None:
            left_out.add(kind)
            continue
        assert shown["id"] == item["meta"]["itemId"]
        assert shown["mine"] is item["chatDir"]["type"].endswith("Snd")
        assert shown["kind"] == ("message" if kind in ("rcvMsgContent", "sndMsgContent") else "event")
        assert len(shown["at"]) == len("2026-12-01T10:00:00.000Z")
        assert all(part["kind"] in get_args(PartKind) for part in shown["parts"])
        if "file" in shown:
            assert shown["file"]["state"] in get_args(FileState)
        if "status" in shown:
            assert shown["mine"]
            assert shown["status"]["mark"] in get_args(Mark)
        if kind == "rcvGroupInvitation":
            assert re.fullmatch("Bob invites you to the group .+ as member", shown["parts"][0]["text"])
        elif shown["kind"] == "event":
            told = item["meta"]["itemText"].replace("contact deleted", "deleted this contact")
            assert told in shown["parts"][0]["text"]
        if item["meta"].get("itemDeleted"):
            assert shown["deleted"]
            assert not shown["parts"]
        elif shown["kind"] == "message":
            assert shown["text"] == item["meta"]["itemText"]
            assert bool(shown["parts"]) is bool(shown["text"])
            assert ("image" in shown) is bool(
                item["content"]["msgContent"].get("image", "").startswith(("data:image/jp", "data:image/png"))
            )
            assert ("quote" in shown) is ("quotedItem" in item)
            assert ("file" in shown) is ("file" in item)
    assert left_out == {
        "chatBanner", "rcvChatFeature", "rcvGroupFeature", "sndGroupFeature",
        "rcvDirectE2EEInfo", "rcvGroupE2EEInfo", "sndGroupE2EEInfo",
    }  # fmt: skip


def test_every_recorded_chat_is_shown_as_the_core_has_it() -> None:
    kinds: set[str] = set()
    states: set[str] = set()
    for info in (node["chatInfo"] for node in recorded()["chatInfo"]):
        if info["type"] not in ("direct", "group"):
            continue
        shown = chat_view({"chatInfo": info, "chatItems": [], "chatStats": {"unreadCount": 3}})
        if shown is None:  # a card
            assert "activeConn" not in info["contact"]
            continue
        kinds.add(shown["kind"])
        states.add(shown["state"])
        assert shown["unread"] == 3
        assert ("cannot" in shown) is not viewer_of(info).writes
        assert shown["state"] == "connected" or "cannot" in shown
    assert kinds == {"contact", "bot", "group", "business"}
    assert states == {"connected", "connecting", "prepared", "deleted", "left", "removed"}


def test_every_recorded_plan_is_told_in_a_sentence() -> None:
    told: set[tuple[str, bool]] = set()
    for node in recorded()["connectionPlan"]:
        plan = plan_view(node["connectionPlan"])
        told.add((plan["text"], plan["can"]))
        assert plan["text"].endswith(".")
        assert "chat" in plan or "already" not in plan["text"] or not plan["can"]
    assert {
        ("You can join this group.", True),
        ("You can connect.", True),
        ("You are in this group already.", False),
        ("You are connected already.", False),
        ("This is your own address.", False),
    } <= told


def test_every_recorded_member_list_has_oneself_first_and_nobody_who_is_gone() -> None:
    for node in (each for each in recorded()["members"] if "groupInfo" in each):
        shown = member_views(node["groupInfo"], node["members"])
        assert [member["me"] for member in shown] == [True] + [False] * (len(shown) - 1)
        gone = {each["memberId"] for each in node["members"] if each["memberStatus"] in ("left", "removed", "deleted")}
        assert not gone & {member["memberId"] for member in shown[1:]}


def test_of_the_recorded_texts_exactly_the_cores_commands_are_tappable() -> None:
    seen = 0
    for text, formatted in oracle("markdown").items():
        shown = parts({"formattedText": formatted}, text, commands=True, me="")
        commands = [part["send"] for part in shown if part["kind"] == "command"]
        wanted = [
            "/" + part["format"]["commandStr"]
            for part in formatted or []
            if part.get("format", {}).get("type") == "command"
        ]
        assert commands == wanted
        inert = parts({"formattedText": formatted}, text, commands=False, me="")
        assert not any(part["kind"] == "command" for part in inert)
        seen += bool(wanted)
    assert seen > 20


# Texts


def test_a_command_is_shown_without_its_quotes_and_a_tap_sends_what_is_shown() -> None:
    shown = item_view(message("I want to send.\n/'approve 7' or /'reject 7'"), HERE)
    assert shown is not None
    assert shown["parts"] == [
        {"kind": "plain", "text": "I want to send.\n"},
        {"kind": "command", "text": "/approve 7", "send": "/approve 7"},
        {"kind": "plain", "text": " or "},
        {"kind": "command", "text": "/reject 7", "send": "/reject 7"},
    ]


def test_without_a_menu_commands_are_text_with_their_quotes() -> None:
    shown = item_view(message("tap /'approve 7'"), Viewer(writes=True, group=True))
    assert shown is not None
    assert [part["kind"] for part in shown["parts"]] == ["plain", "plain"]
    assert "".join(part["text"] for part in shown["parts"]) == "tap /'approve 7'"


def test_the_page_never_makes_a_command_of_its_own() -> None:
    item = message("/approve 7")
    item["formattedText"] = None
    shown = item_view(item, HERE)
    assert shown is not None
    assert shown["parts"] == [{"kind": "plain", "text": "/approve 7"}]


def test_formats_are_kinds_and_links_are_words_with_something_to_copy() -> None:
    text = "*b* _i_ ~s~ `c` #hidden# !1 red! [here](https://example.com/a) https://example.com +41 44 123 45 67 a@b.ch"
    shown = item_view(message(text), HERE)
    assert shown is not None
    kinds = {part["text"]: part for part in shown["parts"] if part["kind"] != "plain"}
    assert {text: part["kind"] for text, part in kinds.items()} == {
        "b": "bold", "i": "italic", "s": "strike", "c": "snippet", "hidden": "secret", "red": "colored",
        "here": "link", "https://example.com": "link", "+41 44 123 45 67": "link", "a@b.ch": "link",
    }  # fmt: skip
    assert kinds["here"].get("uri") == "https://example.com/a"
    assert kinds["red"].get("color") == "red"


def test_a_mention_shows_who_is_meant_and_whether_it_is_me() -> None:
    item = message("@Bob and @Eve and @nobody")
    item["mentions"] = {
        "Bob": {"memberId": "me==", "memberRef": {"displayName": "Bob B"}},
        "Eve": {"memberId": "eve=="},
    }
    shown = item_view(item, HERE)
    assert shown is not None
    assert [part for part in shown["parts"] if part["kind"] == "mention"] == [
        {"kind": "mention", "text": "@Bob B", "me": True},
        {"kind": "mention", "text": "@Eve"},
    ]
    assert shown["mentions"] == {"Bob": "me==", "Eve": "eve=="}


def test_a_menu_sends_what_is_whole_and_fills_in_what_is_not() -> None:
    deep: dict[str, Any] = {"type": "command", "keyword": "x", "label": "X"}
    for _ in range(9):
        deep = {"type": "menu", "label": "more", "commands": [deep]}
    entries = menu_entries(
        [
            {"type": "command", "keyword": "pending", "label": "Pending"},
            {"type": "command", "keyword": "leave", "label": "Leave", "params": "CHAT"},
            {"type": "menu", "label": "More", "commands": [{"type": "command", "keyword": "help", "label": "Help"}]},
            {"type": "command", "label": "without a keyword"},
            "damaged",
            deep,
        ]
    )
    assert entries[:3] == [
        {"label": "Pending", "send": "/pending"},
        {"label": "Leave", "fill": "/leave CHAT"},
        {"label": "More", "commands": [{"label": "Help", "send": "/help"}]},
    ]
    assert len(entries) == 4
    assert json.dumps(entries[3]).count("commands") <= 3
    assert menu_entries("no list") == []


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("Bob", "@Bob"),
        ("Bob B", "@'Bob B'"),
        ("a.simplex", "@'a.simplex'"),
        ("it's", ""),
        ("#1", ""),
        ("", ""),
        ("Zoë-2", "@Zoë-2"),
    ],
)
def test_a_name_is_written_so_that_the_core_finds_it(name: str, written: str) -> None:
    assert mention_of(name) == written
    if written:
        (part,) = [each for each in parse(f"hi {written}") or [] if each.get("format", {}).get("type") == "mention"]
        assert part["format"]["memberName"] == name


@pytest.mark.parametrize(
    "value",
    [
        "data:text/html;base64,PHNjcmlwdD4=", "data:image/svg+xml;base64,PHN2Zz4=", "https://example.com/a.png",
        "data:image/png;base64,AA\"onerror=", "data:image/png,AAAA", "data:image/png;base64,", "javascript:1",
        "data:image/png;base64," + "A" * 100_000, 7, None, ["data:image/png;base64,AAAA"],
    ],
)  # fmt: skip
def test_only_a_small_data_uri_of_a_jpeg_or_png_is_a_picture(value: object) -> None:
    assert picture(value) is None
    assert picture("data:image/jpg;base64,AAAA") == "data:image/jpg;base64,AAAA"


def test_times_have_one_form() -> None:
    assert iso_time("2026-12-01T10:00:00Z") == "2026-12-01T10:00:00.000Z"
    assert iso_time("2026-12-01T10:00:00.123456789Z") == "2026-12-01T10:00:00.123Z"
    assert iso_time("yesterday") == iso_time(None) == "1970-01-01T00:00:00.000Z"


def test_items_stand_in_the_order_in_which_a_person_lived_through_them() -> None:
    question = order("2026-12-01T10:00:00.7Z", "2026-12-01T10:00:00.7Z", 7, group=True)
    answer = order("2026-12-01T10:00:00Z", "2026-12-01T10:00:00.9Z", 8, group=True)
    history = order("2026-12-01T09:00:00Z", "2026-12-01T10:00:01Z", 9, group=True)
    assert history < question < answer
    assert order("2026-12-01T09:00:00Z", "2026-12-01T10:00:01Z", 9, group=False) > answer
    assert order("x", "2026-99-99T99:99:99Z", 9, group=True) == order(None, 7, 9, group=False)
    same = [order("2026-12-01T10:00:00Z", "2026-12-01T10:00:00.5Z", item, group=True) for item in (9, 10)]
    assert same == sorted(same)


# Items


def test_half_a_character_of_another_program_is_shown_like_any_text() -> None:
    shown = item_view(message("half \ud800 of one"), HERE)
    assert json.loads(encoded(shown).encode())["text"] == "half \ud800 of one"


def test_an_event_says_who_did_it() -> None:
    event = message("", content={"type": "rcvGroupEvent", "rcvGroupEvent": {"type": "memberConnected"}})
    event["meta"]["itemText"] = "connected"
    shown = item_view(event, HERE)
    assert shown is not None
    assert (shown["kind"], shown["parts"][0]["text"]) == ("event", "Alice connected")
    event["meta"]["itemText"] = "contact deleted"
    told = item_view(event, HERE)
    assert told is not None
    assert told["parts"][0]["text"] == "Alice deleted this contact"
    event["chatDir"] = {"type": "groupSnd"}
    event["meta"]["itemText"] = "changed role of Alice to owner"
    mine = item_view(event, HERE)
    assert mine is not None
    assert mine["parts"][0]["text"] == "You changed role of Alice to owner"


def test_what_may_be_done_depends_on_the_message_and_on_the_own_role() -> None:
    def can(item: dict[str, Any], viewer: Viewer = HERE) -> dict[str, Any]:
        shown = item_view(item, viewer)
        assert shown is not None
        return dict(shown["can"])

    fresh = {"editable": True, "deletable": True}
    assert can(own("x", **fresh)) == {"reply": True, "edit": True, "everyone": True}
    assert can(own("x")) == {"reply": True}
    assert can(own("x", itemLive=True, **fresh)) == {"edit": True, "everyone": True}
    assert can(own("x", itemDeleted={"type": "deleted"}, **fresh)) == {}
    assert can(message("x")) == {"reply": True, "everyone": True}
    assert can(message("x"), Viewer(writes=True, role="member", group=True)) == {"reply": True}
    assert can(message("x"), Viewer(writes=False, role="owner", group=True)) == {}
    boss = message("x")
    boss["chatDir"]["groupMember"]["memberRole"] = "owner"
    assert can(boss, Viewer(writes=True, role="moderator", group=True)) == {"reply": True}


def test_a_deleted_message_shows_nothing_of_its_content() -> None:
    item = message("the secret", quotedItem={"content": {"type": "text", "text": "quoted"}}, file={"fileId": 1})
    item["meta"]["itemDeleted"] = {"type": "moderated", "byGroupMember": {"memberProfile": {"displayName": "Mara"}}}
    shown = item_view(item, HERE)
    assert shown is not None
    assert shown["deleted"] == "deleted by Mara"
    assert "the secret" not in json.dumps(shown)
    assert "file" not in shown


@pytest.mark.parametrize(
    ("status", "mark", "words"),
    [
        ({"type": "sndNew"}, "sending", "being sent"),
        ({"type": "sndSent", "sndProgress": "partial"}, "sent", "sent to some"),
        ({"type": "sndSent", "sndProgress": "complete"}, "sent", "sent"),
        ({"type": "sndRcvd", "sndProgress": "partial"}, "sent", "got by some"),
        ({"type": "sndRcvd", "sndProgress": "complete"}, "received", "received"),
        ({"type": "sndWarning"}, "sending", "not sent yet, trying again"),
        ({"type": "sndError"}, "failed", "not delivered"),
        ({"type": "sndErrorAuth"}, "failed", "not delivered"),
    ],
)
def test_a_delivery_is_a_mark_and_words(status: dict[str, str], mark: str, words: str) -> None:
    shown = item_view(own("x", itemStatus=status), HERE)
    assert shown is not None
    assert shown["status"] == {"mark": mark, "text": words}


@pytest.mark.parametrize(
    ("status", "state", "can"),
    [
        ({"type": "rcvInvitation"}, "offered", "receive"),
        ({"type": "rcvAborted"}, "offered", "receive"),
        ({"type": "rcvAccepted"}, "receiving", "cancel"),
        ({"type": "rcvTransfer", "rcvProgress": 1, "rcvTotal": 4}, "receiving", "cancel"),
        ({"type": "sndTransfer", "sndProgress": 1, "sndTotal": 4}, "uploading", "cancel"),
        ({"type": "rcvComplete"}, "received", None),
        ({"type": "rcvError"}, "failed", None),
        ({"type": "sndCancelled"}, "cancelled", None),
        ({"type": "what is this"}, "failed", None),
    ],
)
def test_a_file_says_how_far_it_is_and_what_can_be_done(status: dict[str, Any], state: str, can: str | None) -> None:
    shown = item_view(message("", file={"fileId": 3, "fileName": "a\nb", "fileSize": 9, "fileStatus": status}), HERE)
    assert shown is not None
    file = shown["file"]
    assert (file["name"], file["size"], file["state"], file.get("can")) == ("a b", 9, state, can)
    if "Transfer" in status["type"]:
        assert file.get("progress") == 0.25


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
PATHS = [
    ("chatDir",), ("chatDir", "groupMember"), ("meta", "itemTs"), ("meta", "itemStatus"), ("meta", "itemDeleted"),
    ("content",), ("content", "msgContent"), ("content", "msgContent", "text"), ("content", "msgContent", "image"),
    ("mentions",), ("formattedText",), ("quotedItem",), ("file",), ("meta",),
]  # fmt: skip


@given(st.sampled_from(PATHS), JSON)
def test_a_damaged_item_is_shown_somehow_or_left_out(path: tuple[str, ...], value: Any) -> None:
    item = message(
        "hello *there*", file={"fileId": 3, "fileName": "a", "fileSize": 1, "fileStatus": {"type": "rcvInvitation"}}
    )
    node = item
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    shown = item_view(item, HERE)
    if shown is not None:
        json.dumps(shown)
        assert not any(part["kind"] == "command" for part in shown["parts"])


@given(JSON)
def test_a_damaged_chat_plan_or_member_is_no_error(value: Any) -> None:
    chat_view({"chatInfo": {"type": "group", "groupInfo": {"groupId": 1, "groupProfile": value, "membership": value}}})
    chat_view({"chatInfo": {"type": "direct", "contact": {"contactId": 1, "profile": value, "activeConn": value}}})
    plan_view(value)
    plan_view({"type": "groupLink", "groupLinkPlan": value})
    member_views(value, [{"memberProfile": value}])
