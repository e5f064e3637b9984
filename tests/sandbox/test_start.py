"""A new profile: what is there before a user, before the start, and what the start brings."""

from __future__ import annotations

import pytest

from tests.sandbox.world import World

BOT = {"profile": {"displayName": "My Agent", "fullName": "", "peerType": "bot"}, "pastTimestamp": False}


def test_a_core_without_a_user_lists_none_and_names_no_active_user() -> None:
    agent = World().stranger("agent")
    assert agent.do("/users")["users"] == []
    assert agent.refused("/user") == {"type": "noActiveUser"}
    assert agent.refused("/_start") == {"type": "noActiveUser"}


def test_a_core_that_is_not_started_refuses_work_but_answers_questions() -> None:
    agent = World().stranger("agent")
    agent.do("/_create user", BOT)
    assert agent.refused("/_groups 1") == {"type": "chatNotStarted"}
    assert agent.refused("/_send @4 json []") == {"type": "chatNotStarted"}
    assert agent.do("/user")["user"]["localDisplayName"] == "My Agent"
    assert agent.do("/version")["versionInfo"]["version"]


def test_starting_twice_says_that_it_runs_already() -> None:
    agent = World().stranger("agent")
    agent.do("/_create user", BOT)
    assert agent.do("/_start")["type"] == "chatStarted"
    assert agent.do("/_start")["type"] == "chatRunning"
    assert agent.do("/_stop")["type"] == "chatStopped"
    assert agent.refused("/_groups 1") == {"type": "chatNotStarted"}


def test_a_new_user_has_the_two_preset_contacts_and_notes_so_that_its_first_contact_is_number_four() -> None:
    world = World()
    agent, bob = world.person("My Agent"), world.person("Bob")
    chats = agent.do("/_get chats 1 count=20")["chats"]
    assert {c["chatInfo"]["contact"]["contactId"] for c in chats if c["chatInfo"]["type"] == "direct"} == {2, 3}
    assert world.connect(agent, bob) == (4, 4)


def test_a_bot_is_marked_in_its_user() -> None:
    agent = World().stranger("agent")
    assert agent.do("/_create user", BOT)["user"]["profile"]["peerType"] == "bot"


def test_a_command_for_another_user_is_refused_with_both_ids() -> None:
    agent = World().person("My Agent")
    assert agent.refused("/_groups 2") == {"type": "differentActiveUser", "commandUserId": 2, "activeUserId": 1}


@pytest.mark.parametrize(
    "command",
    [
        "",
        "hello",
        "/_groups",
        "/_get chat #1",
        "/_get chat #1 count=x",
        "/_send #1",
        "/_member role #1 2 king",
        "/_nonsense",
    ],
)
def test_what_is_no_command_is_a_parse_error_that_does_not_say_where(command: str) -> None:
    agent = World().person("My Agent")
    error = agent.refused(command)
    assert error["type"] == "commandError"
    assert error["message"] == "Failed reading: empty"


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("/_forward #1 @4 1", "/_forward"),
        ("/sql chat SELECT * FROM users", "SQL"),
        ("/_invite member contact @4 text hi", "/_invite"),
    ],
)
def test_what_is_not_modelled_is_refused_in_words(command: str, named: str) -> None:
    world = World()
    agent, bob = world.person("My Agent"), world.person("Bob")
    world.group(agent, "Team", bob)
    error = agent.refused(command)
    assert error["type"] == "commandError"
    assert error["message"].startswith("the sandbox does not model ")
    assert named in error["message"]


def test_a_second_user_has_its_own_chats() -> None:
    world = World()
    agent = world.person("My Agent")
    world.group(agent, "Team")
    agent.do("/_create user", {**BOT, "profile": {"displayName": "Second", "fullName": ""}})
    assert agent.do("/_groups 2")["groups"] == []
    agent.do("/_user 1")
    assert len(agent.do("/_groups 1")["groups"]) == 1


def test_messages_for_a_stopped_core_wait_until_it_starts() -> None:
    world = World()
    agent, bob = world.person("My Agent"), world.person("Bob")
    world.connect(agent, bob)
    agent.do("/_stop")
    bob.say("@4", "are you there?")
    world.settle()
    agent.forget()
    agent.do("/_start")
    world.settle()
    assert agent.texts("@4") == ["are you there?"]


def test_what_comes_for_a_user_who_is_not_active_is_that_users() -> None:
    world = World()
    agent, bob, carol = world.person("My Agent"), world.person("Bob"), world.person("Carol")
    world.connect(agent, bob)
    world.group(agent, "Team", bob, carol)
    agent.do("/_create user", {**BOT, "profile": {"displayName": "Second", "fullName": ""}})
    agent.forget()
    bob.say("@4", "hello")
    carol.say("#1", "@'My Agent' hello", mentions={"My Agent": carol.member_id("My Agent")})
    world.settle()
    users = [(event["user"]["userId"], event["user"]["activeUser"]) for event in agent.got("newChatItems")]
    assert users == [(1, False), (1, False)]
    assert agent.refused("/_get chat @4 count=1")["type"] == "contactNotFound"
    agent.do("/_user 1")
    assert agent.texts("@4") == ["hello"]
    assert agent.chat("#1", "initial=1")["chatStats"]["unreadMentions"] == 1
