"""The population of a new network: a directory, an echo bot, a business, a group with people in it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from PIL import Image

from tests.sandbox.world import Person, World

if TYPE_CHECKING:
    from pathlib import Path

JsonObject = dict[str, Any]


def _world() -> tuple[World, Person]:
    world = World(population=True)
    return world, world.person("My Agent")


def _connect(world: World, person: Person, target: str, message: str = "") -> str:
    """Connect to an address as a program does; the reference of the chat."""
    plan = person.do(f"/_connect plan 1 {target}")
    data = plan["connectionPlan"]["contactAddressPlan"]["contactSLinkData_"]
    links = f"{plan['connLink']['connFullLink']} {plan['connLink']['connShortLink']}"
    chat = person.do(f"/_prepare contact 1 {links} {json.dumps(data)}")["chat"]["chatInfo"]
    said = f" text {message}" if message else ""
    if chat["type"] == "group":
        ref = f"#{chat['groupInfo']['groupId']}"
        person.do(f"/_connect group {ref} incognito=off{said}")
    else:
        ref = f"@{chat['contact']['contactId']}"
        person.do(f"/_connect contact {ref} incognito=off{said}")
    world.settle()
    return ref


def test_the_population_does_not_touch_the_ids_of_a_user() -> None:
    _, agent = _world()
    assert agent.do("/_group 1", {"displayName": "Team", "fullName": ""})["groupInfo"]["groupId"] == 1
    assert agent.do("/user")["user"]["userId"] == 1


def test_everybody_is_found_in_the_directory_of_the_network() -> None:
    world, _ = _world()
    found = world.network.directory()
    assert {label: entry["kind"] for label, entry in found.items()} == {
        "directory": "address",
        "echo": "address",
        "ridgeline": "address",
        "trail": "group",
        "lantern": "group",
    }
    assert found["directory"]["name"] == "@directory.simplex"
    assert all(entry["short"].startswith("https://") for entry in found.values())


def test_the_directory_welcomes_searches_and_says_when_there_is_nothing() -> None:
    world, agent = _world()
    ref = _connect(world, agent, "@directory.simplex")
    assert agent.texts(ref)[-1].startswith("Welcome!")
    agent.say(ref, "hiking")
    world.settle()
    answer = agent.texts(ref)[-1]
    assert "Trail" in answer
    assert "Lantern" not in answer
    assert world.network.directory()["trail"]["short"] in answer
    agent.say(ref, "submarines")
    world.settle()
    assert agent.texts(ref)[-1].startswith("No groups found")


def test_the_link_that_the_directory_gives_can_be_joined() -> None:
    world, agent = _world()
    ref = _connect(world, agent, "@directory.simplex")
    agent.say(ref, "/all")
    world.settle()
    link = next(line for line in agent.texts(ref)[-1].splitlines() if line.startswith("https://"))
    group = world.join(agent, {"connShortLink": link})
    assert agent.do("/_groups 1")["groups"][0]["groupId"] == group


def test_the_echo_bot_repeats() -> None:
    world, agent = _world()
    ref = _connect(world, agent, "@echo.simplex")
    agent.say(ref, "one\ntwo 🧗")
    world.settle()
    assert agent.texts(ref)[-2:] == ["one\ntwo 🧗", "one\ntwo 🧗"]


def test_the_business_answers_in_a_business_chat_and_to_a_question_with_its_hours() -> None:
    world, agent = _world()
    ref = _connect(world, agent, "@ridgeline.simplex", "Are you open on Sunday?")
    assert ref.startswith("#")
    assert agent.do("/_groups 1")["groups"][0]["businessChat"]["chatType"] == "business"
    assert "9 to 18" in agent.texts(ref)[-1]
    agent.say(ref, "I want boots")
    world.settle()
    assert agent.texts(ref)[-1].startswith("Thank you.")


def test_the_group_has_members_of_all_roles_and_history_and_greets() -> None:
    world, agent = _world()
    world.join(agent, {"connShortLink": world.network.directory()["trail"]["short"]})
    roles = {name: row["memberRole"] for name, row in agent.members().items()}
    assert roles == {"Mara": "owner", "Switchback": "moderator", "Juniper": "member"}
    texts = agent.texts("#1")
    assert "It was dry on Sunday." in texts
    assert texts[-1] == "Welcome, My Agent."


def test_a_member_answers_when_it_is_mentioned_and_only_then() -> None:
    world, agent = _world()
    world.join(agent, {"connShortLink": world.network.directory()["trail"]["short"]})
    agent.say("#1", "nice weather")
    world.settle()
    assert agent.texts("#1")[-1] == "nice weather"
    agent.say("#1", "@Switchback which way?", mentions={"Switchback": agent.member_id("Switchback")})
    world.settle()
    last = agent.chat("#1")["chatItems"][-1]
    assert last["meta"]["itemText"] == "Take the path on the left, it is dry."
    assert last["quotedItem"]["content"]["text"] == "@Switchback which way?"
    assert last["meta"]["userMention"] is True


def test_two_users_and_the_population_do_not_talk_for_ever() -> None:
    world, agent = _world()
    bob = world.person("Bob")
    link = {"connShortLink": world.network.directory()["trail"]["short"]}
    world.join(agent, link)
    world.join(bob, link)
    for person in (agent, bob):
        person.say("#1", "@Mara and @Juniper?", mentions={n: person.member_id(n) for n in ("Mara", "Juniper")})
    began = world.now
    world.settle()
    assert world.now - began < 30


def _send_file(agent: Person, ref: str, path: Path, text: str = "") -> None:
    message = {"msgContent": {"type": "file", "text": text}, "fileSource": {"filePath": str(path)}}
    agent.do(f"/_send {ref} json", [message])


def _receive(world: World, agent: Person, ref: str, target: Path) -> JsonObject:
    """Receive the newest file of a chat; its item."""
    item: JsonObject = [i for i in agent.chat(ref)["chatItems"] if "file" in i][-1]
    agent.do(f"/freceive {item['file']['fileId']} {target}")
    world.settle()
    return item


def test_the_echo_bot_sends_back_a_file(tmp_path: Path) -> None:
    world, agent = _world()
    agent.do(f"/_temp_folder {tmp_path}/tmp")
    ref = _connect(world, agent, "@echo.simplex")
    path, target = tmp_path / "notes.txt", tmp_path / "back.txt"
    path.write_text("a\nb\n" * 9000)
    _send_file(agent, ref, path, "keep this")
    world.settle()
    item = _receive(world, agent, ref, target)
    assert item["chatDir"]["type"] == "directRcv"
    assert item["meta"]["itemText"] == "keep this"
    assert target.read_bytes() == path.read_bytes()
    assert len([i for i in agent.chat(ref)["chatItems"] if "file" in i]) == 2


def test_a_member_of_the_group_sends_its_map_to_who_asks_for_it(tmp_path: Path) -> None:
    world, agent = _world()
    agent.do(f"/_temp_folder {tmp_path}/tmp")
    world.join(agent, {"connShortLink": world.network.directory()["trail"]["short"]})
    agent.say("#1", "@Juniper do you have a map?", mentions={"Juniper": agent.member_id("Juniper")})
    world.settle()
    item = _receive(world, agent, "#1", tmp_path / "map.png")
    assert item["content"]["msgContent"]["type"] == "image"
    assert item["content"]["msgContent"]["image"].startswith("data:image/png;base64,")
    assert item["file"]["fileName"] == "trail-map.png"
    with Image.open(tmp_path / "map.png") as picture:
        picture.load()
        assert picture.size == (480, 320)
