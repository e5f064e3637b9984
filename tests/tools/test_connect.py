"""`connect` (flow 3): every join method, the wait for the other side, and what was shown is what is joined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from simplexmcp.errors import CoreError, LinkLost
from tests.fakes import Call
from tests.tools.world import LINK, World, contact, group, member

if TYPE_CHECKING:
    from pathlib import Path

    from trio.testing import MockClock

DIRECTORY = "@directory.simplex"
ADDRESS = "https://relay.example/a#KEY"
GROUP = "https://relay.example/g#KEY"
FULL, SHORT = LINK["connFullLink"], LINK["connShortLink"]


def address(name: str = "Helper", inner: str = "ok", *, business: bool = False, **more: Any) -> dict[str, Any]:
    data = {"profile": {"displayName": name, "fullName": "", "peerType": "bot"}, "business": business}
    plan = {"type": inner, **({"contactSLinkData_": data} if inner == "ok" else {}), **more}
    return {"connectionPlan": {"type": "contactAddress", "contactAddressPlan": plan}}


def group_link(inner: str = "ok", *, direct: bool = True, **more: Any) -> dict[str, Any]:
    data = {"groupProfile": {"displayName": "Trail", "fullName": ""}}
    offered = (
        {"groupSLinkInfo_": {"direct": direct, "groupRelays": []}, "groupSLinkData_": data} if inner == "ok" else {}
    )
    return {"connectionPlan": {"type": "groupLink", "groupLinkPlan": {"type": inner, **offered, **more}}}


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path)
    made.core.plans = {
        DIRECTORY: address(
            "SimpleX Directory", verifiedDomain={"nameTLD": "simplex", "domain": "directory", "subDomain": []}
        ),
        ADDRESS: address(),
        GROUP: group_link(),
    }
    return made


def accept(world: World, ref: str, *texts: str, conn_id: int | None = None) -> None:
    """The other side accepts: the event, then its messages."""
    info = world.core.chats[ref].info
    if "contact" in info:
        info["contact"] |= contact(int(ref[1:]), info["contact"]["profile"]["displayName"])
        if conn_id:
            info["contact"]["activeConn"]["connId"] = conn_id
        world.core.emit("contactConnected", contact=info["contact"])
    else:
        info["groupInfo"]["membership"]["memberStatus"] = "connected"
        host = member(2, "Host", **({"activeConn": {"connId": conn_id}} if conn_id else {}))
        world.core.emit("userJoinedGroup", groupInfo=info["groupInfo"], hostMember=host)
    world.core.arrive(ref, *texts, **({"by": member(44, "Bob")} if ref[0] == "#" else {}))


async def test_a_name_is_prepared_and_connected_after_the_owners_word(world: World, autojump_clock: MockClock) -> None:
    async with world.running():
        call = Call()
        running = world.start("connect", call, target=DIRECTORY, wait=60, idle=5)
        await world.posted()
        await wait_all_tasks_blocked()
        assert world.board.posts[0].startswith("I want to connect to bot")
        assert world.core.did("/_prepare") == []
        await world.approve()
        await wait_all_tasks_blocked()
        await trio.sleep(10)
        accept(world, "@4", "hello")
        content = await running.result()
        assert [m["text"] for m in content.pop("messages")] == ["Welcome!", "hello"]
        assert content == {
            "action": 1,
            "status": "done",
            "decided_by": "Alice",
            "chat": "@4",
            "name": "SimpleX Directory",
            "kind": "bot",
            "connected": True,
            "more": 0,
        }
        assert [c.partition(" {")[0] for c in world.core.commands if "onnect" in c or "repare" in c] == [
            f"/_connect plan 1 {DIRECTORY}",
            f"/_connect plan 1 {DIRECTORY}",
            f"/_prepare contact 1 {FULL} {SHORT} domain=directory.simplex",
            "/_connect contact @4 incognito=off",
        ]
        assert call.said == [
            "Action 1 waits for an approver until 1 Dec 11:00.",
            "Action 1 waits for the connection until 12:01.",
            "2 messages in @4; waiting until 12:01.",
        ]
        assert trio.current_time() == pytest.approx(15)
        assert world.core.chats["@4"].unread() == []
        assert world.board.cards[101].startswith("I connected to bot")


@pytest.mark.parametrize(
    ("target", "arguments", "plan", "commands"),
    [
        (ADDRESS, {}, address(), [f"/_connect 1 incognito=off {FULL} {SHORT}"]),
        (ADDRESS, {"incognito": True}, address(), [f"/_connect 1 incognito=on {FULL} {SHORT}"]),
        (
            ADDRESS,
            {"message": "hi"},
            address(),
            [
                f"/_prepare contact 1 {FULL} {SHORT}",
                '/_connect contact @4 incognito=off json {"type":"text","text":"hi"}',
            ],
        ),
        (
            ADDRESS,
            {"message": "hi"},
            address("Shop", business=True),
            [
                f"/_prepare contact 1 {FULL} {SHORT}",
                '/_connect group #4 incognito=off json {"type":"text","text":"hi"}',
            ],
        ),
        (GROUP, {}, group_link(), [f"/_connect 1 incognito=off {FULL} {SHORT}"]),
        (
            GROUP,
            {},
            group_link(direct=False),
            [f"/_prepare group 1 {FULL} {SHORT} direct=off", "/_connect group #4 incognito=off"],
        ),
        (ADDRESS, {}, address(inner="connectingConfirmReconnect"), [f"/_connect 1 incognito=off {FULL} {SHORT}"]),
    ],
)
async def test_each_plan_has_its_join_method(
    world: World, target: str, arguments: dict, plan: dict, commands: list[str]
) -> None:
    async with world.running():
        world.core.plans[target] = plan
        running = world.start("connect", target=target, wait=0, **arguments)
        await world.approve()
        content = await running.result()
        assert (content["status"], content["connected"]) == ("done", False)
        sent = [c for c in world.core.commands if c.startswith(("/_prepare", "/_connect")) and " plan " not in c]
        assert [c.partition(' {"')[0] if c.startswith("/_prepare") else c for c in sent] == commands


async def test_a_contact_card_is_asked_by_its_address(world: World, autojump_clock: MockClock) -> None:
    async with world.running():
        card = contact(
            2, "Status", status=None, profile={"displayName": "Status", "peerType": "bot", "contactLink": "x"}
        )
        ref = world.core.add(card)
        world.core.plans[ADDRESS] = address(inner="contactViaAddress", contact=card)
        running = world.start("connect", target=ADDRESS)
        await world.approve()
        await wait_all_tasks_blocked()
        assert world.core.did("/_connect contact 1") == ["/_connect contact 1 incognito=off 2"]
        accept(world, ref)
        assert (await running.result())["chat"] == "@2"


async def test_a_card_of_a_business_becomes_a_group(world: World, autojump_clock: MockClock) -> None:
    async with world.running():
        card = contact(3, "Ask", status=None, profile={"displayName": "Ask", "contactLink": "x"})
        world.core.add(card)
        world.core.plans[ADDRESS] = address(inner="contactViaAddress", contact=card)
        running = world.start("connect", target=ADDRESS)
        await world.approve()
        await wait_all_tasks_blocked()
        ref = world.core.add(group(7, "Ask", status="accepted", businessChat={"chatType": "business"}))
        world.core.emit(
            "businessLinkConnecting", groupInfo=world.core.chats[ref].info["groupInfo"], hostMember={}, fromContact=card
        )
        accept(world, ref)
        content = await running.result()
        assert (content["chat"], content["kind"], content["connected"]) == ("#7", "business", True)


@pytest.mark.parametrize("ref", ["@8", "#8"])
async def test_a_pending_connection_is_matched_by_its_number(world: World, autojump_clock: MockClock, ref: str) -> None:
    async with world.running():
        running = world.start("connect", target=ADDRESS, idle=1)
        await world.approve()
        await wait_all_tasks_blocked()
        other = world.core.add(contact(5, "Somebody else"))
        accept(world, other, conn_id=76)
        world.core.add(contact(8, status="joined") if ref == "@8" else group(8, status="accepted"))
        world.core.arrive(ref, "early", quiet=True, **({"by": member(44, "Bob")} if ref == "#8" else {}))
        accept(world, ref, conn_id=77)
        content = await running.result()
        assert (content["chat"], content["connected"]) == (ref, True)
        assert [m["text"] for m in content["messages"]] == ["early"]


async def test_nobody_accepts_in_time(world: World, autojump_clock: MockClock) -> None:
    async with world.running():
        running = world.start("connect", target=DIRECTORY, wait=60)
        await world.approve()
        content = await running.result()
        assert (content["connected"], content["chat"]) == (False, "@4")
        assert trio.current_time() == pytest.approx(60)
        assert world.core.did("/_delete") == []


async def test_the_wait_ends_while_the_card_can_be_edited(world: World, autojump_clock: MockClock) -> None:
    async with world.running():
        running = world.start("connect", target=DIRECTORY, wait=86400)
        await world.posted()
        await trio.sleep(22 * 3600)
        await world.approve()
        assert (await running.result())["connected"] is False
        assert trio.current_time() == pytest.approx(23 * 3600 + 50 * 60)


async def test_a_call_that_attaches_waits_as_long_as_it_wants(world: World, autojump_clock: MockClock) -> None:
    async with world.running():
        lost = world.start("connect", target=DIRECTORY, wait=60)
        await world.approve()
        await trio.sleep(30)
        lost.scope.cancel()
        running = world.start("connect", target=DIRECTORY, wait=600, idle=1)
        await trio.sleep(300)
        accept(world, "@4", "at last")
        content = await running.result()
        assert (content["connected"], len(content["messages"])) == (True, 2)


async def test_with_a_message_the_first_reply_is_waited_for(world: World, autojump_clock: MockClock) -> None:
    async with world.running():
        running = world.start("connect", target=ADDRESS, message="hi", wait=600, idle=5)
        await world.approve()
        await wait_all_tasks_blocked()
        world.core.chats["@4"].items.clear()
        accept(world, "@4")
        await trio.sleep(100)
        assert not running.done.is_set()
        world.core.arrive("@4", "answer")
        assert [m["text"] for m in (await running.result())["messages"]] == ["answer"]
        assert trio.current_time() == pytest.approx(105)


async def test_a_review_of_newcomers_is_waited_for(world: World, autojump_clock: MockClock) -> None:
    async with world.running():
        running = world.start("connect", target=GROUP, wait=600, idle=1)
        await world.approve()
        await wait_all_tasks_blocked()
        pending = group(8, status="pending_review")
        world.core.add(pending)
        host = member(2, "Host", activeConn={"connId": 77})
        world.core.emit("userJoinedGroup", groupInfo=pending, hostMember=host)
        await trio.sleep(60)
        assert not running.done.is_set()
        accept(world, "#8", conn_id=77)
        assert (await running.result())["connected"] is True


async def test_a_rejected_join_fails_and_its_prepared_chat_goes(world: World, autojump_clock: MockClock) -> None:
    async with world.running():
        world.core.plans[GROUP] = group_link(direct=False)
        running = world.start("connect", target=GROUP, wait=600)
        await world.approve()
        await wait_all_tasks_blocked()
        info = world.core.chats["#4"].info["groupInfo"]
        info["membership"]["memberStatus"] = "rejected"
        world.core.emit("groupLinkConnecting", groupInfo=info, hostMember=member(2, "Host"))
        content = await running.result()
        assert (content["status"], content["error"]) == ("failed", "channel Trail rejected the request.")
        assert world.core.did("/_delete") == ["/_delete #4 full notify=off"]


async def test_a_failed_connect_deletes_what_it_prepared(world: World) -> None:
    async with world.running():
        running = world.start("connect", target=DIRECTORY)
        await world.posted()
        world.core.fail["/_connect contact"] = CoreError("errorAgent/SMP/AUTH", "x")
        await world.approve()
        content = await running.result()
        assert content["error"] == "The link was deleted, or it is a one-time link that was used."
        assert world.core.did("/_delete") == ["/_delete @4 full notify=off"]


async def test_after_a_link_lost_in_the_connect_nothing_is_deleted(world: World) -> None:
    async with world.running():
        running = world.start("connect", target=DIRECTORY)
        await world.posted()
        world.core.fail["/_connect contact"] = LinkLost("link/lost", "x")
        await world.approve()
        assert "nobody knows whether it was done" in (await running.result())["error"]
        assert world.core.did("/_delete") == []


@pytest.mark.parametrize("target", [DIRECTORY, ADDRESS, GROUP])
async def test_an_acceptance_missed_in_a_lost_link_is_read_afterwards(
    world: World, autojump_clock: MockClock, target: str
) -> None:
    async with world.running():
        running = world.start("connect", target=target, wait=600, idle=1)
        await world.approve()
        await wait_all_tasks_blocked()
        if target == DIRECTORY:
            world.core.chats["@4"].info["contact"] |= contact(4, "SimpleX Directory")
        elif target == ADDRESS:
            world.core.add(contact(67))
        else:
            world.core.add(group(6, viaGroupLinkUri=FULL))
        world.core.emit("linkUp")
        content = await running.result()
        assert (content["connected"], trio.current_time() < 10) == (True, True)


# Known, refused, changed


async def test_a_known_target_is_a_result_without_an_action(world: World) -> None:
    async with world.running():
        world.core.plans[ADDRESS] = address(inner="known", contact=contact(4))
        assert await world.use("connect", target=ADDRESS) == {
            "status": "known",
            "chat": "@4",
            "name": "Helper",
            "kind": "bot",
            "connected": True,
            "state": "connected",
        }
        assert world.actions.listed() == []


async def test_a_prepared_chat_is_connected_and_not_prepared_again(world: World, autojump_clock: MockClock) -> None:
    async with world.running():
        prepared = contact(4, status=None, preparedContact={"uiConnLinkType": "con"})
        world.core.add(prepared)
        world.core.plans[ADDRESS] = address(inner="known", contact=prepared)
        running = world.start("connect", target=ADDRESS, idle=1)
        await world.approve()
        await wait_all_tasks_blocked()
        assert (world.core.did("/_prepare"), world.core.did("/_connect contact")) == (
            [],
            ["/_connect contact @4 incognito=off"],
        )
        accept(world, "@4")
        assert (await running.result())["connected"] is True


async def test_a_target_that_was_connected_meanwhile_is_done_without_a_command(
    world: World, autojump_clock: MockClock
) -> None:
    async with world.running():
        running = world.start("connect", target=ADDRESS)
        await world.posted()
        world.core.add(contact(4))
        world.core.plans[ADDRESS] = address(inner="known", contact=contact(4))
        await world.approve()
        content = await running.result()
        assert (content["status"], content["chat"], content["connected"]) == ("done", "@4", True)
        assert [c for c in world.core.did("/_connect") if " plan " not in c] == []


@pytest.mark.parametrize(
    "changed",
    [
        address("Mallory"),
        address(business=True),
        {**address(), "connLink": {"connFullLink": "simplex:/other"}},
        group_link(),
    ],
)
async def test_a_link_that_leads_elsewhere_after_the_request_is_not_connected(world: World, changed: dict) -> None:
    async with world.running():
        running = world.start("connect", target=ADDRESS)
        await world.posted()
        world.core.plans[ADDRESS] = changed
        await world.approve()
        assert (await running.result())["error"] == "bot Helper changed after the request."
        assert [c for c in world.core.did("/_connect") if " plan " not in c] == []
        assert world.core.did("/_prepare") == []


async def test_what_is_no_simplex_link_is_refused_before_the_core_is_asked(world: World) -> None:
    async with world.running():
        world.core.commands.clear()
        for target in (
            "javascript:alert(1)",
            "https://example.com/",
            "two words",
            "@4",
            "#15",
            "http://relay.example/a#K",
        ):
            result = await world.call("connect", target=target)
            assert result.is_error, target
        assert world.core.commands == []


async def test_the_owners_chat_cannot_be_joined(world: World) -> None:
    async with world.running():
        control = group(1, "My Agent", customData={"simplexMcp": {"control": True}})
        world.core.plans[GROUP] = group_link("known", groupInfo=control)
        assert (await world.use("connect", target=GROUP))["error"].startswith("This is the link of your owners' chat")
        world.core.plans[GROUP] = group_link("ownLink", groupInfo=control)
        assert (await world.use("connect", target=GROUP))["error"] == "This is the agent's own link."


async def test_a_message_to_a_group_is_refused(world: World) -> None:
    async with world.running():
        refused = await world.use("connect", target=GROUP, message="hi")
        assert refused["error"].startswith("A request to join a group carries no message")
        too_long = await world.use("connect", target=ADDRESS, message="x" * 10_001)
        assert too_long["error"].startswith("`message` is too long")


async def test_a_deleted_link_is_one_clear_line(world: World) -> None:
    async with world.running():
        refused = await world.use("connect", target="https://relay.example/a#OTHER")
        assert refused["error"] == "The link was deleted, or it is a one-time link that was used."
        assert world.actions.listed() == []


async def test_equal_targets_with_other_words_are_other_actions(world: World) -> None:
    async with world.running():
        for arguments in ({}, {"incognito": True}, {"message": "hi"}):
            world.start("connect", target=ADDRESS, **arguments)
        for number in (1, 2, 3):
            await world.posted(number)
        assert len(world.board.posts) == 3


async def test_cancelled_at_any_await_there_is_one_request_and_each_message_once(tmp_path: Path) -> None:
    for step in range(1, 60):
        (tmp_path / str(step)).mkdir()
        world = World(tmp_path / str(step), mode="host")
        world.core.plans[DIRECTORY] = address("SimpleX Directory")
        async with world.running():
            world.core.on_command["/_connect contact"] = lambda world=world: accept(world, "@4", "hello")
            cut = await world.cancelled_after(step, "connect", target=DIRECTORY, wait=60, limit=2)
            seen = [m["text"] for m in cut.content["messages"]] if cut.content else []
            await wait_all_tasks_blocked()
            if cut.content is None:
                seen += [m["text"] for m in (await world.use("connect", target=DIRECTORY, limit=2))["messages"]]
            seen += [m["text"] for m in (await world.use("receive", chat="@4"))["messages"]]
            assert seen == ["Welcome!", "hello"]
            assert len(world.core.did("/_prepare")) == len(world.core.did("/_connect contact")) == 1
            if cut.content is not None:
                assert step > 4
                return
    raise AssertionError("the call never ended")
