"""A relay that is not there: messages wait, are counted as pending, and leave when it is back."""

from __future__ import annotations

from tests.sandbox.world import Person, World

PENDING = "/sql agent SELECT count(*) FROM snd_message_deliveries WHERE failed = 0"


def _pending(person: Person) -> int:
    name, count = person.do(PENDING)["rows"]
    assert name == "count(*)"
    return int(count)


def test_messages_wait_while_the_relay_is_down_and_are_delivered_in_order_when_it_is_up() -> None:
    world = World()
    agent, bob = world.person("My Agent"), world.person("Bob")
    world.connect(agent, bob)
    world.network.relay_up(False)
    agent.say("@4", "one")
    agent.say("@4", "two")
    world.settle()
    assert bob.texts("@4") == []
    assert _pending(agent) == 2
    assert agent.item("@4", "one")["meta"]["itemStatus"] == {"type": "sndNew"}
    world.network.relay_up()
    world.settle()
    assert bob.texts("@4") == ["one", "two"]
    assert _pending(agent) == 0
    assert agent.item("@4", "one")["meta"]["itemStatus"]["type"] == "sndRcvd"


def test_a_message_is_pending_for_the_moment_it_needs_to_leave() -> None:
    world = World()
    agent, bob = world.person("My Agent"), world.person("Bob")
    world.connect(agent, bob)
    agent.say("@4", "one")
    assert _pending(agent) == 1
    world.settle()
    assert _pending(agent) == 0


def test_a_group_message_is_pending_for_each_member_and_can_be_counted_for_one_group() -> None:
    world = World()
    agent, bob, carol = world.person("My Agent"), world.person("Bob"), world.person("Carol")
    world.group(agent, "Team", bob, carol)
    world.connect(agent, bob)
    world.network.relay_up(False)
    agent.say("#1", "to both")
    assert _pending(agent) == 2
    columns = "SELECT c.agent_conn_id FROM connections c JOIN group_members m USING (group_member_id)"
    rows = agent.do(f"/sql chat {columns} WHERE m.group_id = 1")["rows"]
    assert rows[0] == "agent_conn_id"
    ids = ",".join(f"CAST('{row}' AS BLOB)" for row in rows[1:])
    assert agent.do(f"{PENDING} AND conn_id IN ({ids})")["rows"][1] == "2"
    assert agent.do(f"{PENDING} AND conn_id IN (CAST('nobody' AS BLOB))")["rows"][1] == "0"


def test_what_needs_the_relay_at_once_is_refused_without_it() -> None:
    world = World()
    agent = world.person("My Agent")
    world.network.relay_up(False)
    assert agent.core.command("/_connect 1")["type"] == "chatCmdError"
    world.network.relay_up()
    agent.do("/_connect 1")
