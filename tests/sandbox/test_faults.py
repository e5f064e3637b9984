"""Faults in the model: refusals on order, events at other times than expected, and things nobody has heard of."""

from __future__ import annotations

from tests.sandbox.world import Person, World

LARGE = {"type": "errorStore", "storeError": {"type": "largeMsg"}}


def _contacts() -> tuple[World, Person, Person]:
    world = World()
    agent, bob = world.person("My Agent"), world.person("Bob")
    world.connect(agent, bob)
    agent.forget()
    bob.forget()
    return world, agent, bob


def test_the_next_command_with_a_prefix_is_refused_as_often_as_wanted() -> None:
    world, agent, bob = _contacts()
    world.network.faults.fail("/_send", LARGE, core=agent.core.name, times=2)
    send = '/_send @4 json [{"msgContent":{"type":"text","text":"hi"}}]'
    bob.say("@4", "not me")
    assert agent.refused(send) == {"type": "largeMsg"}
    agent.do("/_groups 1")
    assert agent.refused(send) == {"type": "largeMsg"}
    agent.do(send)


def test_events_may_be_held_back() -> None:
    world, agent, bob = _contacts()
    world.network.faults.event_delay = 5.0
    bob.say("@4", "hello")
    for _ in range(10):
        world.now += 0.1
        world.network.deliver()
    assert agent.events == []
    assert agent.texts("@4") == ["hello"]
    world.settle()
    assert agent.tags() == ["newChatItems"]


def test_events_of_a_command_may_come_before_or_after_its_response() -> None:
    leave: dict[str, list[str]] = {"events": [], "response": []}
    for order in leave:
        world = World()
        agent = world.person("My Agent")
        world.group(agent, "Team")
        agent.forget()
        world.network.faults.response_first = order == "response"
        world.network.faults.events_first = order == "events"
        agent.do("/_leave #1")
        leave[order] = agent.tags()
        world.settle()
        assert "newChatItems" in agent.tags()
    assert "newChatItems" in leave["events"]
    assert leave["response"] == []


def test_every_object_of_an_event_may_have_a_field_that_nobody_knows_but_data_is_left_alone() -> None:
    world, agent, bob = _contacts()
    agent.do("/_set custom @4", {"mine": {"a": 1}})
    world.network.faults.unknown_fields = True
    bob.say("@4", "hello")
    world.settle()
    event = agent.got("newChatItems")[0]
    entry = event["chatItems"][0]
    for value in (event, event["user"], entry, entry["chatInfo"], entry["chatItem"]["meta"]["itemStatus"]):
        assert "sandboxUnknownField" in value
    assert entry["chatInfo"]["contact"]["customData"] == {"mine": {"a": 1}}


def test_events_that_nobody_knows_may_come_before_each_event() -> None:
    world, agent, bob = _contacts()
    world.network.faults.unknown_events = 2
    bob.say("@4", "hello")
    world.settle()
    assert agent.tags() == ["sandboxUnknownEvent", "sandboxUnknownEvent", "newChatItems"]


def test_a_core_that_nobody_listens_to_takes_no_more_messages_once_its_queue_is_full_and_goes_on_later() -> None:
    world, agent, bob = _contacts()
    agent.core.queue_size = 3
    agent.core.subscribe(None)
    for number in range(6):
        bob.say("@4", f"message {number}")
        world.settle()
    assert len(agent.texts("@4")) == 3
    agent.core.subscribe(agent.events.append)
    world.settle()
    assert agent.texts("@4") == [f"message {number}" for number in range(6)]
    assert agent.tags() == ["newChatItems"] * 6
