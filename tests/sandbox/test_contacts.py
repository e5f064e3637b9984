"""Contacts: one-time links, addresses with and without automatic acceptance, incognito, business chats, deletion."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sandbox.world import Person, World

JsonObject = dict[str, Any]


def _address(person: Person, settings: JsonObject | None = None) -> JsonObject:
    link: JsonObject = person.do("/_address 1")["connLinkContact"]
    if settings is not None:
        person.do("/_address_settings 1", settings)
    return link


def _prepare(person: Person, link: JsonObject) -> JsonObject:
    plan = person.do(f"/_connect plan 1 {link['connShortLink']}")
    data = plan["connectionPlan"]["contactAddressPlan"]["contactSLinkData_"]
    found = plan["connLink"]
    prepared = person.do(f"/_prepare contact 1 {found['connFullLink']} {found['connShortLink']}", data)
    info: JsonObject = prepared["chat"]["chatInfo"]
    return info


AUTO = {"businessAddress": False, "autoAccept": {"acceptIncognito": False}}


def test_two_people_connect_by_a_one_time_link_and_write_to_each_other() -> None:
    world = World()
    alice, bob = world.person("Alice"), world.person("Bob")
    mine, yours = world.connect(alice, bob)
    alice.say(f"@{mine}", "hello")
    world.settle()
    bob.say(f"@{yours}", "hi")
    world.settle()
    assert alice.texts(f"@{mine}") == bob.texts(f"@{yours}") == ["hello", "hi"]


def test_a_used_one_time_link_cannot_be_used_again() -> None:
    world = World()
    alice, bob, carol = world.person("Alice"), world.person("Bob"), world.person("Carol")
    link = alice.do("/_connect 1")["connLinkInvitation"]
    bob.do(f"/_connect 1 {link['connFullLink']} {link['connShortLink']}")
    world.settle()
    response = carol.core.command(f"/_connect 1 {link['connFullLink']} {link['connShortLink']}")
    assert response["type"] == "chatCmdError"


def test_an_address_that_accepts_by_itself_connects_and_answers() -> None:
    world = World()
    alice, bob = world.person("Alice"), world.person("Bob")
    link = _address(alice, {**AUTO, "autoReply": {"type": "text", "text": "Welcome"}})
    contact = _prepare(bob, link)["contact"]["contactId"]
    bob.do(f"/_connect contact @{contact} incognito=off")
    world.settle()
    assert bob.got("contactConnected")[0]["contact"]["localDisplayName"] == "Alice"
    assert "Welcome" in bob.texts(f"@{contact}")
    assert "acceptingContactRequest" in alice.tags()


def test_a_request_waits_until_it_is_accepted_and_shows_its_message() -> None:
    world = World()
    alice, bob = world.person("Alice"), world.person("Bob")
    contact = _prepare(bob, _address(alice))["contact"]["contactId"]
    bob.do(f"/_connect contact @{contact} incognito=off text It is me")
    world.settle()
    assert "contactConnected" not in bob.tags()
    request = alice.got("receivedContactRequest")[0]["contactRequest"]
    assert request["localDisplayName"] == "Bob"
    alice.do(f"/_accept {request['contactRequestId']}")
    world.settle()
    assert "contactConnected" in bob.tags()
    accepted = alice.got("contactConnected")[0]["contact"]["contactId"]
    assert alice.texts(f"@{accepted}") == ["It is me"]


def test_a_rejected_request_leaves_nothing_with_the_owner_of_the_address() -> None:
    world = World()
    alice, bob = world.person("Alice"), world.person("Bob")
    contact = _prepare(bob, _address(alice))["contact"]["contactId"]
    bob.do(f"/_connect contact @{contact} incognito=off")
    world.settle()
    request = alice.got("receivedContactRequest")[0]["contactRequest"]["contactRequestId"]
    alice.do(f"/_reject {request}")
    world.settle()
    assert "contactConnected" not in bob.tags()
    assert alice.core.command(f"/_accept {request}")["type"] == "chatCmdError"


def test_incognito_shows_a_made_up_name_and_the_same_one_for_that_contact() -> None:
    world = World()
    alice, bob = world.person("Alice"), world.person("Bob")
    contact = _prepare(bob, _address(alice, AUTO))["contact"]["contactId"]
    bob.do(f"/_connect contact @{contact} incognito=on")
    world.settle()
    shown = alice.got("contactConnected")[0]["contact"]["localDisplayName"]
    assert shown != "Bob"
    assert bob.got("contactConnected")[0]["userCustomProfile"]["displayName"] == shown


def test_a_business_address_makes_a_group_of_the_two() -> None:
    world = World()
    shop, bob = world.person("Shop"), world.person("Bob")
    prepared = _prepare(bob, _address(shop, {**AUTO, "businessAddress": True}))
    assert prepared["type"] == "group"
    group = prepared["groupInfo"]["groupId"]
    bob.do(f"/_connect group #{group} incognito=off text Are you open?")
    world.settle()
    info = bob.do("/_groups 1")["groups"][0]
    assert info["businessChat"]["chatType"] == "business"
    theirs = shop.do("/_groups 1")["groups"][0]
    assert theirs["businessChat"]["chatType"] == "customer"
    assert theirs["localDisplayName"] == "Bob"
    shop.say(f"#{theirs['groupId']}", "From nine")
    world.settle()
    assert bob.texts(f"#{group}")[-1] == "From nine"


def test_deleting_a_contact_tells_the_other_who_can_no_longer_write() -> None:
    world = World()
    alice, bob = world.person("Alice"), world.person("Bob")
    mine, yours = world.connect(alice, bob)
    alice.do(f"/_delete @{mine} full notify=on")
    world.settle()
    assert bob.got("contactDeletedByContact")[0]["contact"]["contactId"] == yours
    send = f'/_send @{yours} json [{{"msgContent":{{"type":"text","text":"hi"}}}}]'
    assert bob.refused(send)["type"] == "contactNotReady"
    assert alice.refused(f"/_get chat @{mine} count=1")["type"] == "contactNotFound"


def test_the_id_of_the_last_contact_is_given_again_after_its_deletion() -> None:
    world = World()
    alice, bob, carol = world.person("Alice"), world.person("Bob"), world.person("Carol")
    mine, _ = world.connect(alice, bob)
    alice.do(f"/_delete @{mine} full notify=off")
    world.settle()
    again, _ = world.connect(alice, carol)
    assert again == mine


def test_a_deleted_address_is_gone_for_everybody() -> None:
    world = World()
    alice, bob = world.person("Alice"), world.person("Bob")
    link = _address(alice, AUTO)
    alice.do("/_delete_address 1")
    assert alice.refused("/_show_address 1")["type"] == "userContactLinkNotFound"
    assert bob.core.command(f"/_connect plan 1 {link['connShortLink']}")["type"] == "chatCmdError"


@pytest.mark.parametrize("target", ["hello", "https://example.org/a#b", "simplex:/contact#nonsense", "@nobody.simplex"])
def test_what_is_no_usable_link_is_refused(target: str) -> None:
    assert World().person("Alice").core.command(f"/_connect plan 1 {target}")["type"] == "chatCmdError"


def test_a_new_profile_reaches_the_contacts() -> None:
    world = World()
    alice, bob = world.person("Alice"), world.person("Bob")
    _, yours = world.connect(alice, bob)
    alice.do("/_profile 1", {"displayName": "Alicia", "fullName": ""})
    world.settle()
    assert bob.got("contactUpdated")[-1]["toContact"]["profile"]["displayName"] == "Alicia"
    assert bob.chat(f"@{yours}")["chatInfo"]["contact"]["localDisplayName"] == "Alicia"
