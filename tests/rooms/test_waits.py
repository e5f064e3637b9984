"""catch_up with wait_seconds: what ends a wait, and that only a page that is answered moves the marker."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from simplexmcp.rooms.protocol import read_result

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.rooms.client import InProcess, Server

    Runtimes = Callable[..., InProcess]
    Servers = Callable[..., Server]


def _leases(client: InProcess) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in client.database.all("SELECT room_id, agent_id, epoch FROM wait_leases")]


def _marker(client: InProcess, agent_id: str) -> int:
    return int(client.database.value("SELECT last_read_seq FROM memberships WHERE agent_id = ?", agent_id))


def test_what_is_there_already_is_answered_at_once(alice: InProcess, bob: InProcess) -> None:
    alice.enter_room()
    bob.enter_room()
    bob.call("post_message", content="there")
    result = alice.call("catch_up", wait_seconds=25)
    assert [message["content"] for message in result["messages"]] == ["there"]
    assert result["waited_ms"] == 0
    assert "timed_out" not in result
    assert _leases(alice) == []


def test_a_message_ends_the_wait(alice: InProcess, bob: InProcess) -> None:
    me = alice.enter_room().agent_id
    bob.enter_room()
    parked = alice.waits("catch_up", wait_seconds=25)
    assert parked.probe() is None
    assert _leases(bob) == [(1, me, 1)]
    bob.call("post_message", content="news")
    result = parked.probe()
    assert result is not None
    assert [message["content"] for message in result["messages"]] == ["news"]
    assert list(result)[-2:] == ["advanced", "waited_ms"]
    assert (result["new_last_read_seq"], result["advanced"]) == (1, True)
    assert _leases(bob) == []


def test_own_messages_and_other_rooms_do_not_end_it(alice: InProcess, bob: InProcess) -> None:
    alice.enter_room()
    bob.enter_room("other")
    parked = alice.waits("catch_up", wait_seconds=25)
    alice.call("post_message", content="mine")
    bob.call("post_message", content="elsewhere")
    assert parked.probe() is None
    parked.cancel()


def test_at_the_deadline_the_answer_says_so_and_names_the_other_rooms(alice: InProcess, bob: InProcess) -> None:
    alice.enter_room("other")
    bob.enter_room("other")
    alice.call("create_room", name="hall")
    alice.call("join_room", room="hall")
    parked = alice.waits("catch_up", wait_seconds=25)
    assert 24 < parked.waiting.deadline - time.monotonic() <= 25
    bob.call("post_message", content="elsewhere")
    result = parked.expire()
    assert list(result)[-4:] == ["rooms_with_unread", "waited_ms", "timed_out", "call_again"]
    assert (result["messages"], result["timed_out"], result["call_again"]) == ([], True, True)
    assert [room["name"] for room in result["rooms_with_unread"]] == ["other"]


def test_a_message_at_the_deadline_is_still_answered(alice: InProcess, bob: InProcess) -> None:
    alice.enter_room()
    bob.enter_room()
    parked = alice.waits("catch_up", wait_seconds=1)
    bob.call("post_message", content="late")
    result = parked.expire()
    assert [message["content"] for message in result["messages"]] == ["late"]
    assert "timed_out" not in result


def test_a_short_wait_ends_by_itself(alice: InProcess) -> None:
    alice.enter_room()
    result = alice.call("catch_up", wait_seconds=1)
    assert result["timed_out"] is True
    assert 1000 <= result["waited_ms"] < 3000


def test_a_cancelled_wait_moves_nothing(alice: InProcess, bob: InProcess) -> None:
    me = alice.enter_room().agent_id
    bob.enter_room()
    parked = alice.waits("catch_up", wait_seconds=25)
    bob.call("post_message", content="news")
    parked.cancel()
    parked.waiting.end()
    assert _marker(alice, me) == 0
    assert _leases(alice) == []
    assert len(alice.call("catch_up")["messages"]) == 1


def test_a_takeover_ends_the_wait_and_the_new_holder_reads_what_came(
    alice: InProcess, bob: InProcess, runtime: Runtimes
) -> None:
    persona = alice.enter_room()
    bob.enter_room()
    parked = alice.waits("catch_up", wait_seconds=25)
    holder = runtime()
    holder.resume(persona)
    holder.call("join_room", room="hall")
    bob.call("post_message", content="news")
    assert parked.probe() is None
    assert parked.waiting.deadline - time.monotonic() <= 0.5
    lost = parked.expire()
    assert (lost["code"], lost["current_epoch"]) == ("persona_lost", 2)
    assert alice.call("whoami") == {"bound": False, "joined": False}
    assert len(holder.call("catch_up")["messages"]) == 1


def test_the_lease_of_a_fenced_wait_leaves_the_new_holders_lease_alone(alice: InProcess, runtime: Runtimes) -> None:
    persona = alice.enter_room()
    old = alice.waits("catch_up", wait_seconds=25)
    holder = runtime()
    holder.resume(persona)
    holder.call("join_room", room="hall")
    new = holder.waits("catch_up", wait_seconds=25)
    old.cancel()
    assert _leases(holder) == [(1, persona.agent_id, 2)]
    new.cancel()
    assert _leases(holder) == []


def test_a_deleted_room_ends_the_wait(alice: InProcess, bob: InProcess) -> None:
    alice.enter_room()
    bob.persona()
    for ask in ("probe", "expire"):
        parked = alice.waits("catch_up", wait_seconds=25)
        bob.call("delete_room", room="hall", confirm=True)
        refused = getattr(parked, ask)()
        assert "deleted while waiting" in refused["error"]
        assert "list_rooms" in refused["error"]
        assert "create_room" in refused["error"]
        alice.call("create_room", name="hall")
        alice.call("join_room", room="hall")


def test_leaving_ends_the_wait(alice: InProcess) -> None:
    alice.enter_room()
    parked = alice.waits("catch_up", wait_seconds=25)
    alice.call("leave_room")
    refused = parked.probe()
    assert refused is not None
    assert "LEFT room" in refused["error"]


def test_a_later_join_does_not_redirect_the_wait(alice: InProcess, bob: InProcess) -> None:
    alice.enter_room("one")
    bob.enter_room("one")
    parked = alice.waits("catch_up", wait_seconds=25)
    alice.call("create_room", name="two")
    alice.call("join_room", room="two")
    bob.call("post_message", content="x")
    result = parked.probe()
    assert result is not None
    assert result["room_name"] == "one"
    assert alice.call("whoami")["room_name"] == "two"


def test_of_two_waits_one_gets_the_message_and_the_other_keeps_waiting(alice: InProcess, bob: InProcess) -> None:
    me = alice.enter_room().agent_id
    bob.enter_room()
    first, second = (alice.waits("catch_up", wait_seconds=25) for _ in range(2))
    bob.call("post_message", content="x")
    assert first.probe() is not None
    assert _leases(alice) == [(1, me, 1)]
    assert second.probe() is None
    second.cancel()
    assert _leases(alice) == []


def test_only_four_calls_wait_at_once(alice: InProcess, bob: InProcess) -> None:
    me = alice.enter_room().agent_id
    bob.enter_room()
    waits = [alice.waits("catch_up", wait_seconds=25) for _ in range(4)]
    bob.call("post_message", content="x")
    assert "4 calls wait already" in alice.refused("catch_up", wait_seconds=1)["error"]
    assert _marker(alice, me) == 0
    waits[0].cancel()
    assert len(alice.call("catch_up", wait_seconds=1)["messages"]) == 1
    for parked in waits[1:]:
        parked.cancel()


def test_who_waits_is_seen_as_watching(alice: InProcess, bob: InProcess) -> None:
    me = alice.enter_room().agent_id
    bob.enter_room()
    parked = alice.waits("catch_up", wait_seconds=25)
    watching = {agent["id"]: agent["watching"] for agent in bob.call("list_agents")["agents"]}
    assert watching[me] is True
    parked.cancel()
    watching = {agent["id"]: agent["watching"] for agent in bob.call("list_agents")["agents"]}
    assert watching[me] is False


def test_the_wait_is_bounded_by_the_servers_setting(runtime: Runtimes) -> None:
    patient = runtime(max_wait=120)
    patient.enter_room()
    patient.waits("catch_up", wait_seconds=120).cancel()
    patient.invalid("catch_up", wait_seconds=121)


@pytest.mark.parametrize("count", [1, 4])
def test_a_real_server_answers_its_waits_soon_after_the_message(server: Servers, count: int) -> None:
    reader, writer = server(), server()
    reader.enter_room()
    writer.enter_room()
    waits = {reader.start("catch_up", wait_seconds=25) for _ in range(count)}
    reader.call("whoami")
    for number in range(count):
        writer.call("post_message", content=str(number))
        answer = reader.receive()  # to whichever of them saw it first, before any wait is over
        assert answer is not None
        waits.remove(answer["id"])
        _failed, text = read_result(answer["result"])
        assert [message["content"] for message in json.loads(text)["messages"]] == [str(number)]


def test_a_real_server_forgets_a_cancelled_wait(server: Servers) -> None:
    reader, writer = server(), server()
    reader.enter_room()
    writer.enter_room()
    reader.cancel(reader.start("catch_up", wait_seconds=25))
    reader.call("whoami")
    writer.call("post_message", content="x")
    assert len(reader.call("catch_up")["messages"]) == 1
