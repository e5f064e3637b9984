"""Chats as the core shows them: kinds, states, identity, references."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplexmcp.chats import Chat, chat_of, chat_of_contact, chat_of_group, is_ref, scope_of
from tests.recorded import frames, oracle

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "contact",
                    "groupInfo",
                    "contactId",
                    "groupId",
                    "profile",
                    "groupProfile",
                    "activeConn",
                    "connStatus",
                    "membership",
                    "memberStatus",
                    "groupChatScope",
                    "groupMember_",
                    "customData",
                    "simplexMcp",
                    "publicGroup",
                    "preparedGroup",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


def recorded(name: str, core: str = "agent") -> dict[str, list[Chat]]:
    """Every chat of one core in a recording, by reference, in the order in which it was seen."""
    seen: dict[str, list[Chat]] = {}

    def look(node: Any) -> None:
        if isinstance(node, dict):
            if (chat := chat_of(node.get("chatInfo"))) is not None:
                seen.setdefault(chat.ref, []).append(chat)
            for value in node.values():
                look(value)
        elif isinstance(node, list):
            for value in node:
                look(value)

    for frame in frames(name):
        if frame["core"] == core:
            look(frame.get("resp") or frame.get("result"))
    return seen


def states(chats: list[Chat]) -> list[str]:
    return [
        chat.state
        for chat, before in zip(chats, [None, *chats], strict=False)
        if before is None or before.state != chat.state
    ]


def test_a_recorded_contact_goes_from_prepared_to_connected() -> None:
    chats = recorded("02-connect")["@4"]
    assert states(chats)[:3] == ["prepared", "connecting", "connected"]
    assert (chats[0].kind, chats[0].name, chats[0].role) == ("bot", "Helper Bot", None)


def test_preset_cards_are_no_chats_to_write_to() -> None:
    chats = recorded("05-read")
    assert {chats["@2"][0].state, chats["@3"][0].state} == {"card"}
    assert (chats["@2"][0].kind, chats["@3"][0].kind) == ("bot", "contact")


def test_recorded_ends_of_chats_have_their_words() -> None:
    chats = recorded("07-leave-delete")
    seen = {chat.state for known in chats.values() for chat in known}
    assert {"connected", "left", "removed", "deleted"} <= seen


def test_recorded_businesses_and_support_conversations_are_told_apart() -> None:
    kinds = {chat.kind for known in recorded("03-join").values() for chat in known}
    assert {"group", "business", "contact"} <= kinds
    assert {"#1", "#1(_support)"} <= recorded("05-read").keys()
    assert "#1(_support:2)" in recorded("05-read", "alice")


def test_the_recorded_control_chat_is_known_by_its_custom_data() -> None:
    chats = recorded("01b-first-start-ws")
    assert any(chat.is_control for known in chats.values() for chat in known)


@pytest.mark.parametrize(
    "status", [*oracle("shapes")["values"]["memberStatus"], "pending_approval", "rejected", "complete"]
)
def test_every_member_status_has_a_word(status: str) -> None:
    chat = chat_of_group({"groupId": 1, "membership": {"memberStatus": status}})
    assert chat is not None
    assert (chat.state == "unknown") == (status == "unknown")


@pytest.mark.parametrize("status", oracle("shapes")["values"]["connStatus.type"])
def test_every_connection_status_has_a_word(status: str) -> None:
    chat = chat_of_contact({"contactId": 1, "contactStatus": "active", "activeConn": {"connStatus": {"type": status}}})
    assert chat is not None
    assert chat.state == {"ready": "connected", "sndReady": "connected", "deleted": "deleted"}.get(status, "connecting")


def test_a_contact_whose_relay_refuses_is_disabled() -> None:
    connection = {"connStatus": {"type": "ready"}, "authErrCounter": 10}
    chat = chat_of_contact({"contactId": 1, "activeConn": connection})
    assert chat is not None
    assert chat.state == "disabled"


def test_a_channel_needs_relays_and_its_type() -> None:
    for relays, kind, expected in [(True, "channel", "channel"), (False, "channel", "group"), (True, "group", "group")]:
        chat = chat_of_group({"groupId": 1, "useRelays": relays, "groupProfile": {"publicGroup": {"groupType": kind}}})
        assert chat is not None
        assert chat.kind == expected


def test_a_prepared_group_whose_request_is_sent_is_connecting() -> None:
    for started, expected in [(True, "connecting"), (False, "prepared")]:
        prepared = {"connLinkStartedConnection": started}
        chat = chat_of_group({"groupId": 1, "membership": {"memberStatus": "unknown"}, "preparedGroup": prepared})
        assert chat is not None
        assert chat.state == expected


def test_the_same_number_after_a_deletion_is_another_identity() -> None:
    old = chat_of_contact({"contactId": 4, "profile": {"displayName": "Bob"}, "activeConn": {"agentConnId": "a"}})
    new = chat_of_contact({"contactId": 4, "profile": {"displayName": "Bob"}, "activeConn": {"agentConnId": "b"}})
    assert old is not None
    assert new is not None
    assert old.ref == new.ref
    assert old.identity != new.identity


@pytest.mark.parametrize("ref", ["@4", "#15", "#15(_support)", "#15(_support:44)"])
def test_references(ref: str) -> None:
    chat = Chat(ref, "group", "Trail", "connected")
    assert is_ref(ref)
    assert (chat.scoped, chat.base, chat.number) == ("(" in ref, ref.partition("(")[0], int(ref[1:].partition("(")[0]))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "@",
        "#",
        "4",
        "@0",
        "@04",
        "@4 ",
        " @4",
        "@4\n",
        "#15(_support:0)",
        "@4(_support)",
        "#15(x)",
        "@٤",
        "Bob",
        "#" + "9" * 40,
    ],
)
def test_what_is_no_reference(text: str) -> None:
    assert not is_ref(text)


def test_an_unknown_scope_is_no_chat() -> None:
    assert scope_of({"type": "newThing"}) is None
    assert chat_of({"type": "group", "groupInfo": {"groupId": 1}, "groupChatScope": {"type": "newThing"}}) is None


@pytest.mark.parametrize("number", [0, -1, 10**18, 10**30, True, 1.0, "1", None])
def test_a_number_that_no_reference_can_name_is_no_chat(number: Any) -> None:
    assert chat_of_group({"groupId": number}) is None
    assert chat_of_contact({"contactId": number}) is None


@pytest.mark.parametrize("odd", [[], {}, 3, True])
def test_what_should_be_a_word_may_be_anything(odd: Any) -> None:
    chat = chat_of_contact({"contactId": 4, "profile": {"peerType": odd, "displayName": odd}})
    assert chat is not None
    assert (chat.kind, chat.name) == ("contact", "")


@given(JSON)
def test_reading_never_fails(node: Any) -> None:
    chat = chat_of(node)
    assert chat is None or is_ref(chat.ref)
    for reader in (chat_of_contact, chat_of_group):
        assert reader(node) is None or isinstance(node, dict)
