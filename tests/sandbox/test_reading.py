"""Reading: pages of a chat, statistics, marks of what was read, the list of chats."""

from __future__ import annotations

from typing import Any

from tests.sandbox.world import Person, World


def _filled(count: int) -> tuple[World, Person, Person, list[int]]:
    """Two contacts; `count` messages from Bob to the agent; their ids with the agent."""
    world = World()
    agent, bob = world.person("My Agent"), world.person("Bob")
    world.connect(agent, bob)
    for number in range(count):
        bob.say("@4", f"message {number}")
        world.settle()
    ids = [agent.item_id("@4", f"message {number}") for number in range(count)]
    return world, agent, bob, ids


def _ids(chat: dict[str, Any]) -> list[int]:
    return [item["meta"]["itemId"] for item in chat["chatItems"]]


def test_the_pages_of_a_chat_fit_together() -> None:
    _, agent, _, ids = _filled(7)
    assert _ids(agent.chat("@4", "count=3")) == ids[-3:]
    assert _ids(agent.chat("@4", f"after={ids[1]} count=2")) == ids[2:4]
    assert _ids(agent.chat("@4", f"before={ids[4]} count=2")) == ids[2:4]
    assert _ids(agent.chat("@4", f"around={ids[3]} count=1")) == ids[2:5]
    assert _ids(agent.chat("@4", f"after={ids[-1]} count=5")) == []
    assert _ids(agent.chat("@4", "count=0")) == []


def test_a_page_around_an_item_that_does_not_exist_is_refused() -> None:
    _, agent, _, _ = _filled(1)
    assert agent.refused("/_get chat @4 around=999 count=1")["type"] == "chatItemNotFound"
    assert agent.refused("/_get chat @4 after=999 count=1")["type"] == "chatItemNotFound"


def test_the_first_page_begins_at_the_first_unread_message_and_counts_what_follows() -> None:
    _, agent, _, ids = _filled(6)
    agent.do(f"/_read chat items @4 {ids[0]},{ids[1]}")
    page = agent.do("/_get chat @4 initial=2")
    assert page["chat"]["chatStats"]["unreadCount"] == 4
    assert page["chat"]["chatStats"]["minUnreadItemId"] == ids[2]
    assert ids[2] in _ids(page["chat"])
    assert page["navInfo"] == {"afterUnread": 2, "afterTotal": 2}


def test_reading_a_chat_leaves_nothing_unread() -> None:
    _, agent, _, _ = _filled(3)
    agent.do("/_read chat @4")
    chats = agent.do("/_get chats 1 count=20")["chats"]
    stats = next(c["chatStats"] for c in chats if c["chatInfo"].get("contact", {}).get("contactId") == 4)
    assert stats["unreadCount"] == 0
    assert agent.item("@4", "message 0")["meta"]["itemStatus"] == {"type": "rcvRead"}


def test_reading_is_not_told_to_the_sender() -> None:
    world, agent, bob, _ = _filled(1)
    bob.forget()
    agent.do("/_read chat @4")
    world.settle()
    assert bob.events == []


def test_a_search_finds_texts_in_any_case() -> None:
    _, agent, bob, _ = _filled(2)
    world = agent.world
    bob.say("@4", "the Saddle Hut")
    world.settle()
    found = agent.do("/_get chat @4 count=10 search=saddle")["chat"]
    assert [item["meta"]["itemText"] for item in found["chatItems"]] == ["the Saddle Hut"]


def test_the_chats_are_listed_with_the_latest_first_and_their_last_item() -> None:
    world, agent, bob, _ = _filled(1)
    world.group(agent, "Team", bob)
    world.now += 60
    bob.say("#1", "in the group")
    world.settle()
    first, second, *_ = agent.do("/_get chats 1 count=20")["chats"]
    assert first["chatInfo"]["groupInfo"]["localDisplayName"] == "Team"
    assert first["chatItems"][0]["meta"]["itemText"] == "in the group"
    assert second["chatInfo"]["contact"]["localDisplayName"] == "Bob"
    assert len(agent.do("/_get chats 1 count=1")["chats"]) == 1


def test_deleted_items_leave_the_pages_and_the_counts_and_their_ids_are_not_given_again() -> None:
    world, agent, bob, ids = _filled(3)
    agent.do(f"/_delete item @4 {ids[2]} internal")
    assert _ids(agent.chat("@4", "count=2")) == ids[:2]
    assert agent.chat("@4", f"around={ids[0]} count=0")["chatStats"]["unreadCount"] == 2
    bob.say("@4", "again")
    world.settle()
    assert agent.item_id("@4", "again") > ids[2]


def test_an_unknown_chat_is_named_in_the_error() -> None:
    agent = World().person("My Agent")
    assert agent.refused("/_get chat @77 count=1") == {"type": "contactNotFound", "contactId": 77}
    assert agent.refused("/_get chat #77 count=1") == {"type": "groupNotFound", "groupId": 77}
