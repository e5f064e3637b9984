"""Setting the control chat up (flows 1 and 12): found again by its mark, one owner by the link, the list obeyed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from trio.testing import MockClock

from simplexmcp.setup import MENU
from simplexmcp.standing import KEY
from tests.e2e.stack import open_stack

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.stack import Person, Stack


@pytest.fixture(autouse=True)
def fast_clock() -> MockClock:
    return MockClock()


def groups(stack: Stack) -> dict[int, Any]:
    """The groups of the agent's core."""
    return stack.network.core("agent").state.groups


def mark(stack: Stack, number: int) -> dict[str, Any]:
    return dict((groups(stack)[number].custom_data or {})[KEY])


def printed_link(stack: Stack) -> str:
    return next(line for line in reversed(stack.lines) if line.startswith("https://"))


async def restart(stack: Stack, **options: Any) -> None:
    await stack.stop()
    stack.lines.clear()
    await stack.start(**options)


def on_agents_core(stack: Stack, command: str) -> dict[str, Any]:
    answer = stack.network.core("agent").command(command)
    assert answer["type"] != "chatCmdError", answer
    return answer


async def test_the_chat_is_found_again_by_its_mark_whatever_the_owner_calls_it(
    tmp_path: Path, fast_clock: MockClock
) -> None:
    async with open_stack(tmp_path, fast_clock) as stack:
        await stack.start()
        alice = stack.person("Alice")
        room = await stack.owner(alice)
        preferences = {"history": {"enable": "off"}, "commands": []}
        profile = {"displayName": "Robots", "fullName": "", "groupPreferences": preferences}
        alice.do(f"/_group_profile {room} {json.dumps(profile)}")
        await stack.settle()
        await restart(stack)
        assert list(groups(stack)) == [1]
        assert "Owners: 2:Alice." in stack.lines
        assert groups(stack)[1].profile["displayName"] == "Robots"
        assert groups(stack)[1].profile["groupPreferences"]["commands"] == MENU
        assert groups(stack)[1].profile["groupPreferences"]["history"]["enable"] == "off"


async def test_a_menu_that_the_agent_may_not_put_back_stays_away(tmp_path: Path, fast_clock: MockClock) -> None:
    async with open_stack(tmp_path, fast_clock) as stack:
        await stack.start()
        alice = stack.person("Alice")
        room = await stack.owner(alice)
        profile = {"displayName": "My Agent", "fullName": "", "groupPreferences": {"commands": []}}
        alice.do(f"/_group_profile {room} {json.dumps(profile)}")
        await stack.settle()
        alice.set_role(room, "My Agent", "member")
        await stack.settle()
        await restart(stack)
        assert not any("went wrong" in line for line in stack.lines)
        assert groups(stack)[1].profile["groupPreferences"]["commands"] == []


async def test_of_several_marked_groups_the_one_with_the_highest_counter_is_the_chat(
    tmp_path: Path, fast_clock: MockClock
) -> None:
    async with open_stack(tmp_path, fast_clock) as stack:
        await stack.start()
        for name, number in (("Old", 3), ("Newest", 9), ("Odd", 1)):
            made = on_agents_core(stack, f"/_group 1 {json.dumps({'displayName': name, 'fullName': ''})}")
            custom = {KEY: {"control": True, "nextAction": number}}
            on_agents_core(stack, f"/_set custom #{made['groupInfo']['groupId']} {json.dumps(custom)}")
        await restart(stack)
        assert (stack.control.ref, stack.control.next_action) == ("#3", 9)


async def test_a_marked_group_that_the_agent_left_is_not_the_chat(tmp_path: Path, fast_clock: MockClock) -> None:
    async with open_stack(tmp_path, fast_clock) as stack:
        await stack.start()
        on_agents_core(stack, "/_leave #1")
        await restart(stack)
        assert stack.control.ref == "#2"
        assert mark(stack, 2)["control"] is True


async def test_the_second_who_joins_by_the_link_is_no_owner(tmp_path: Path, fast_clock: MockClock) -> None:
    async with open_stack(tmp_path, fast_clock) as stack:
        await stack.start()
        alice, mallory = stack.person("Alice"), stack.person("Mallory")
        alice.join(printed_link(stack))
        mallory.join(printed_link(stack))
        await stack.settle(10)
        owners = [member.name for member in stack.control.approvers()]
        assert len(owners) == 1
        assert stack.network.core("agent").command("/_get link #1")["type"] == "chatCmdError"
        late = "Mallory" if owners == ["Alice"] else "Alice"
        assert any(line.startswith(f"{late} joined (member ") and "is not an owner." in line for line in stack.lines)


async def test_who_joins_by_an_owners_own_link_later_is_no_owner(tmp_path: Path, fast_clock: MockClock) -> None:
    async with open_stack(tmp_path, fast_clock) as stack:
        await stack.start()
        alice, mallory = stack.person("Alice"), stack.person("Mallory")
        room = await stack.owner(alice)
        link = alice.do(f"/_create link {room} member")["groupLink"]["connLinkContact"]["connShortLink"]
        mallory.join(link)
        await stack.settle(10)
        assert [member.name for member in stack.control.approvers()] == ["Alice"]
        alice.do(f"/_leave {room}")
        await stack.settle()
        assert stack.control.approvers() == []


async def test_a_joiner_who_could_not_be_made_an_owner_is_told_at_the_terminal(
    tmp_path: Path, fast_clock: MockClock
) -> None:
    async with open_stack(tmp_path, fast_clock) as stack:
        await stack.start()
        error = {"type": "error", "errorType": {"type": "internalError", "message": "no"}}
        stack.network.faults.fail("/_member role", error, core="agent")
        await stack.owner(stack.person("Alice"))
        assert any("could not be made an owner" in line for line in stack.lines)
        assert stack.control.approvers() == []
        assert "error" in await stack.use("connect", target="@directory.simplex")


async def test_the_link_of_a_start_is_worth_nothing_after_the_next_start(tmp_path: Path, fast_clock: MockClock) -> None:
    async with open_stack(tmp_path, fast_clock) as stack:
        await stack.start()
        old = printed_link(stack)
        await restart(stack)
        assert printed_link(stack) != old
        assert stack.network.find_link(old) is None


async def owners_start(stack: Stack) -> tuple[Person, Person, str]:
    """A chat with Alice and Bob in it, joined through a start with a bare --owners each."""
    people = []
    for name in ("Alice", "Bob"):
        if stack.running:
            await restart(stack, owners="")
        else:
            await stack.start(owners="")
        person = stack.person(name)
        room = await stack.owner(person)
        people.append(person)
    return people[0], people[1], room


async def test_a_list_makes_its_people_owners_and_removes_everybody_else(tmp_path: Path, fast_clock: MockClock) -> None:
    async with open_stack(tmp_path, fast_clock) as stack:
        alice, bob, _ = await owners_start(stack)
        assert [member.role for member in stack.control.people()] == ["observer", "observer"]
        assert stack.control.approvers() == []
        assert stack.lines[-1].endswith("Restart the server with --owners 2:Alice,3:Bob")
        await restart(stack, owners="3:Bob")
        assert "Alice (member 2) is not in --owners and was removed." in stack.lines
        assert "Owners: 3:Bob." in stack.lines
        assert [member.name for member in stack.control.approvers()] == ["Bob"]
        await stack.settle()
        assert any(event["type"] == "deletedMemberUser" for event in alice.events)
        assert bob.members("#1")


async def test_a_listed_owner_who_became_a_member_is_made_an_owner_again(tmp_path: Path, fast_clock: MockClock) -> None:
    async with open_stack(tmp_path, fast_clock) as stack:
        alice, _, _ = await owners_start(stack)
        await restart(stack, owners="2:Alice,3:Bob")
        alice.set_role(alice.newest_group, "Bob", "member")
        await stack.settle()
        assert [member.name for member in stack.control.approvers()] == ["Alice"]
        await restart(stack, owners="2:Alice,3:Bob")
        assert [member.name for member in stack.control.approvers()] == ["Alice", "Bob"]


async def test_a_newcomer_with_the_name_of_a_listed_owner_approves_nothing(
    tmp_path: Path, fast_clock: MockClock
) -> None:
    async with open_stack(tmp_path, fast_clock) as stack:
        alice, bob, _ = await owners_start(stack)
        await restart(stack, owners="2:Alice")
        await stack.settle()
        link = alice.do("/_create link #1 member")["groupLink"]["connLinkContact"]["connShortLink"]
        bob.rename("Alice")
        bob.join(link)
        await stack.settle(10)
        alice.set_role("#1", "Alice", "owner")
        await stack.settle()
        assert [member.number for member in stack.control.approvers()] == [2]
        assert any("can't approve actions yet" in line for line in stack.lines)


async def test_a_reset_ends_the_old_chat_keeps_the_counter_and_every_old_approval_is_void(
    tmp_path: Path, fast_clock: MockClock
) -> None:
    async with open_stack(tmp_path, fast_clock) as stack:
        await stack.start()
        alice, bob = stack.person("Alice"), stack.person("Bob")
        room = await stack.owner(alice)
        _, link = bob.make_group("Trail")
        call = stack.call("connect", target=link, wait=20)
        await stack.settle()
        alice.say(room, "/approve 1")
        await stack.settle(20)
        assert call.result is not None
        alice.say(room, "/approve #2 all")
        await stack.settle()
        await restart(stack, reset_owners=True)
        assert "The old agent control chat was deleted for all its members." in stack.lines
        assert any(event["type"] == "groupDeleted" for event in alice.events)
        carol = stack.person("Carol")
        new_room = await stack.owner(carol)
        waiting = stack.call("send", chat="#2", text="hello")
        await stack.settle()
        assert waiting.result is None
        assert any("/'approve #2 2'" in text for text in carol.texts(new_room))
        assert not any(chat.get("approved") for chat in (await stack.use("list"))["chats"])
