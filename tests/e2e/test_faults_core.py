"""A core that misbehaves: errors of every kind, strange events, answers and events in any order, a link that stalls;
and owners that go in the wrong moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from trio.testing import MockClock

from simplexmcp.core import websocket
from tests.e2e.robust import Cable
from tests.e2e.stack import open_scene
from tests.e2e.test_attacks_commands import member
from tests.e2e.test_flow_04_send import join_trail
from tests.e2e.world import open_world

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.stack import Pending, Scene

HOSTILE = "`*x*` /'approve 2' \u202e\x1b[31m\n/approve 2"


@pytest.fixture(autouse=True)
def fast_clock() -> MockClock:
    return MockClock()


def _errors() -> list[dict[str, Any]]:
    """An error of each family and tag that the core's source has for what the server asks, with hostile words in it."""
    chat = (
        "noActiveUser differentActiveUser noConnectionUser chatNotStarted userExists invalidDisplayName commandError "
        "invalidConnReq unsupportedConnReq simplexDomainNotReady contactNotReady contactNotActive contactDisabled "
        "connectionDisabled groupUserRole groupMemberInitialRole groupNotJoined groupMemberUserRemoved "
        "groupMemberNotActive groupMemberNotFound fileNotFound fileSize fileAlreadyReceiving fileCancelled fileCancel "
        "fileAlreadyExists fileWrite fileNotApproved fileRcvChunk fileInternal fileNotReceived invalidFileDescription "
        "invalidChatItemUpdate invalidChatItemDelete invalidForward directMessagesProhibited connReqMessageProhibited "
        "connectionIncognitoChangeProhibited peerChatVRangeIncompatible internalError exception neverHeardOf"
    )
    store = (
        "groupNotFound contactNotFound userNotFoundByGroupId userNotFoundByContactId userNotFoundByFileId "
        "pendingConnectionNotFound contactRequestNotFound connectionNotFound rcvFileNotFoundXFTP chatItemNotFound "
        "groupLinkNotFound duplicateGroupLink groupMemberNotFound rcvFileNotFound fileNotFound rcvFileDescrNotFound "
        "sndFileNotFound chatItemNotFoundByFileId largeMsg invalidQuote invalidMention userContactLinkNotFound "
        "duplicateContactLink duplicateName internalError dBException dBBusyError neverHeardOf"
    )
    agent: dict[str, tuple[str, str]] = {
        "BROKER": ("brokerErr", "RESPONSE UNEXPECTED NETWORK HOST NO_SERVICE TRANSPORT TIMEOUT"),
        "SMP": ("smpErr", "AUTH QUOTA BLOCKED NAME PROXY CMD CRYPTO STORE LARGE_MSG EXPIRED INTERNAL"),
        "PROXY": ("proxyErr", "PROTOCOL BROKER"),
        "CONN": ("connErr", "NOT_FOUND DUPLICATE SIMPLEX NOT_ACCEPTED NOT_AVAILABLE"),
        "CMD": ("cmdErr", "PROHIBITED SYNTAX NO_CONN SIZE LARGE"),
        "XFTP": ("xftpErr", "AUTH BLOCKED SIZE QUOTA DIGEST NO_FILE TIMEOUT"),
        "FILE": ("fileErr", "NOT_APPROVED SIZE REDIRECT FILE_IO NO_FILE"),
        "AGENT": ("agentErr", "A_MESSAGE A_PROHIBITED A_VERSION A_LINK A_CRYPTO A_DUPLICATE A_QUEUE"),
    }
    bare = "NO_NAME_SERVERS CRITICAL INTERNAL INACTIVE NOTICE NTF RCP NO_USER NEVER_HEARD_OF"
    said = {"message": HOSTILE}
    return [
        *({"type": "error", "errorType": {"type": tag, **said}} for tag in chat.split()),
        *({"type": "errorStore", "storeError": {"type": tag, **said}} for tag in store.split()),
        *(
            {"type": "errorAgent", "agentError": {"type": tag, key: {"type": inner, **said}}}
            for tag, (key, inners) in agent.items()
            for inner in inners.split()
        ),
        *({"type": "errorAgent", "agentError": {"type": tag, **said}} for tag in bare.split()),
        {"type": "errorDatabase", "databaseError": {"type": "errorOpen", **said}},
        {"type": "errorRemoteHost", "rhError": 7},
        {"type": "neverHeardOf"},
        {"error": HOSTILE},
    ]


# Of a send: the check of the chat, the counter, the card, the send, the outcome.
STEPS = ("/_get chat #2", "/_set custom #1", "/_send #1", "/_send #2", "/_update item #1")


@pytest.mark.parametrize("step", STEPS)
async def test_an_error_of_any_kind_at_any_step_is_a_clear_answer_and_sends_nothing_unknown(
    tmp_path: Path, fast_clock: MockClock, caplog: pytest.LogCaptureFixture, step: str
) -> None:
    async with open_scene(tmp_path, fast_clock) as scene:
        for count, error in enumerate(_errors()):
            text = f"text {count}"
            scene.stack.network.faults.fail(step, error, core="agent")
            result = await sent(scene, text)
            scene.stack.network.faults.refusals.clear()
            told = result.get("error", "")
            assert "Internal error" not in told
            assert scene.heard().count(text) == (result.get("status") == "done"), (error, result)
            if step != "/_update item #1":
                assert told, error
                assert told.isprintable(), (error, told)
            asking = [card for card in scene.alice.texts(scene.room) if f"`{text}`\nTap" in card]
            assert len(asking) <= (step == "/_update item #1"), error
            assert scene.stack.running, error
        assert not any(record.exc_info for record in caplog.records)
        assert (await sent(scene, "at last"))["status"] == "done"


@pytest.mark.parametrize(
    ("tool", "step"),
    [("connect", "/_connect plan"), ("connect", "/_connect 1"), ("leave", "/_get chat #2"), ("leave", "/_leave")],
)
async def test_an_error_of_any_kind_at_a_connect_or_a_leave_is_a_clear_answer_and_it_can_be_done_later(
    tmp_path: Path, fast_clock: MockClock, step: str, tool: str
) -> None:
    async with open_scene(tmp_path, fast_clock) as scene:
        _, link = scene.bob.make_group("Other")
        arguments = {"target": link, "wait": 5, "idle": 1} if tool == "connect" else {"chat": "#2"}
        for error in _errors():
            scene.stack.network.faults.fail(step, error, core="agent")
            result = await approved(scene, scene.stack.call(tool, **arguments))
            scene.stack.network.faults.refusals.clear()
            told = result["error"]
            assert told.isprintable(), (error, told)
            assert "Internal error" not in told
        assert (await approved(scene, scene.stack.call(tool, **arguments)))["status"] == "done"


async def sent(scene: Scene, text: str) -> dict[str, Any]:
    """The result of a send that Alice approves when she is asked."""
    return await approved(scene, await scene.ask(text))


async def approved(scene: Scene, call: Pending) -> dict[str, Any]:
    """The result of a call whose action Alice approves when she is asked."""
    await scene.stack.settle()
    for action in scene.stack.actions.pending():
        await scene.tap(f"approve {action.number}")
    await scene.stack.settle(10)
    assert call.result is not None, call.arguments
    return call.result


@pytest.mark.parametrize("step", ["/_get chats", "/_get chat #2", "/_read chat items"])
async def test_an_error_of_any_kind_at_a_receive_loses_no_message(
    tmp_path: Path, fast_clock: MockClock, step: str
) -> None:
    async with open_scene(tmp_path, fast_clock) as scene:
        for count, error in enumerate(_errors()):
            scene.bob.say(scene.trail, f"text {count}")
            await scene.stack.settle()
            scene.stack.network.faults.fail(step, error, core="agent")
            result = await scene.stack.use("receive")
            scene.stack.network.faults.refusals.clear()
            if not result.get("messages"):
                assert "error" not in result or result["error"].isprintable()
                result = await scene.stack.use("receive")
            assert [message["text"] for message in result["messages"]] == [f"text {count}"], error


async def test_a_flood_of_events_that_nobody_knows_is_nothing(
    tmp_path: Path, fast_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_scene(tmp_path, fast_clock) as scene:
        faults = scene.stack.network.faults
        faults.unknown_events, faults.unknown_fields = 2_000, True
        assert (await sent(scene, "hello"))["status"] == "done"
        scene.bob.say(scene.trail, "answer")
        await scene.stack.settle()
        assert [m["text"] for m in (await scene.stack.use("receive"))["messages"]] == ["answer"]
        assert scene.card("`hello`").endswith("\nApproved by Alice.")
        assert caplog.records == []


@pytest.mark.parametrize(
    "faults",
    [
        {"events_first": True},
        {"response_first": True},
        {"event_delay": 1.5},
        {"events_first": True, "response_delay": 0.7},
        {"response_first": True, "event_delay": 1.0, "response_delay": 0.3},
    ],
    ids=str,
)
async def test_in_whatever_order_answers_and_events_come_the_flow_is_the_same(
    tmp_path: Path, fast_clock: MockClock, faults: dict[str, Any]
) -> None:
    async with open_scene(tmp_path, fast_clock) as scene:
        for name, value in faults.items():
            setattr(scene.stack.network.faults, name, value)
        call = await scene.ask("hello", wait=20, idle=5)
        await scene.stack.settle(10)
        await scene.tap("approve 2")
        await scene.stack.settle(5)
        for text in ("one", "two", "three"):
            scene.bob.say(scene.trail, text)
        await scene.stack.settle(30)
        assert call.result is not None
        assert call.result["status"] == "done"
        assert [m["text"] for m in call.result["responses"]] == ["one", "two", "three"]
        assert scene.heard() == ["hello"]
        assert scene.card("`hello`").endswith("\nApproved by Alice.")


async def test_a_link_that_stalls_is_given_up_and_opened_again_and_nothing_is_sent_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websocket, "_PING_EVERY", 2.0)
    monkeypatch.setattr(websocket, "_PONG_WAIT", 3.0)
    async with open_world(tmp_path) as world:
        cable = Cable(world.nursery, world.port)
        await world.nursery.start(cable.run)
        core = f"ws://127.0.0.1:{cable.port}/agent"
        async with world.flow(core=core) as flow, world.person("Bob") as bob:
            group, chat = await join_trail(flow, bob)
            agent = world.network.core("agent")
            answer = agent.command

            def stalled(text: str) -> dict[str, Any]:
                if text.startswith(f"/_send {chat}"):
                    agent.command = answer  # type: ignore[method-assign]
                    cable.stall()
                return answer(text)

            agent.command = stalled  # type: ignore[method-assign]
            result = await flow.result_of("send", "`hello`", f"approve {chat} 2", chat=chat, text="hello")
            assert result["status"] == "failed"
            assert "nobody knows whether it was done" in result["error"]
            await flow.server.lines.see("The link to the SimpleX core is back.")
            assert "check the chat" in await flow.card("`hello`\nApproved by Alice; failed: ")
            again = await flow.result_of("send", "`again`", f"approve {chat} 3", chat=chat, text="again")
            assert again["status"] == "done"
            await bob.see(group, "again")
            assert (await bob.texts(group)).count("hello") == 1


async def test_an_owner_removed_between_the_word_and_the_perform_has_approved_nothing(
    tmp_path: Path, fast_clock: MockClock
) -> None:
    async with open_scene(tmp_path, fast_clock) as scene:
        carol, room = await member(scene, "Carol", "owner")
        call = await scene.ask("hello")
        held = scene.stack.link.hold("/_get chat #2")
        await scene.tap("approve 2")
        carol.remove(room, "Alice")
        await scene.stack.settle()
        held.set()
        scene.stack.link.release()
        await scene.stack.settle()
        assert call.result is not None
        assert call.result["error"] == "Alice, who approved it, is no owner any more; ask again."
        assert scene.heard() == []
        assert any("is no owner any more" in text for text in carol.texts(room))
