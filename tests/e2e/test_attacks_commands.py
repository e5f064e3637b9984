"""Attacks and accidents around the owner's commands: who may decide, what counts as a word, and what is answered."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from trio.testing import MockClock

from simplexmcp.commands import USAGE
from tests.e2e.stack import open_scene

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.stack import Person, Scene

ONLY_OWNERS = "Only owners approve actions."


@pytest.fixture(autouse=True)
def fast_clock() -> MockClock:
    return MockClock()


async def member(scene: Scene, name: str, role: str = "member") -> tuple[Person, str]:
    """Somebody that Alice takes into the control chat; the chat's reference there."""
    alice, stack = scene.alice, scene.stack
    entry = alice.core.command(f"/_get link {scene.room}")
    if entry["type"] == "chatCmdError":
        entry = alice.do(f"/_create link {scene.room} member")
    person = stack.person(name)
    person.join(entry["groupLink"]["connLinkContact"]["connShortLink"])
    await stack.settle(10)
    if role != "member":
        alice.set_role(scene.room, name, role)
        await stack.settle()
    return person, person.newest_group


def refusals(scene: Scene) -> list[str]:
    return [entry["reason"] for entry in scene.stack.audit() if entry["event"] == "refused-command"]


async def pending_still(scene: Scene) -> bool:
    """Whether action 2 still waits, and nothing went out."""
    return [a.number for a in scene.stack.actions.pending()] == [2] and scene.heard() == []


@pytest.mark.parametrize("role", ["member", "observer", "admin", "moderator"])
async def test_a_member_that_is_no_owner_decides_nothing_is_told_and_logged(
    tmp_path: Path, fast_clock: MockClock, role: str
) -> None:
    async with open_scene(tmp_path, fast_clock) as scene:
        mallory, room = await member(scene, "Mallory", role)
        await scene.ask("hello")
        for words in (
            "/approve 2",
            "/approve #2 2",
            "/approve #2 all",
            "/reject 2",
            "/leave #2",
            "/revoke #2",
            "/list",
        ):
            mallory.core.command(f"/_send {room} json {json.dumps([{'msgContent': {'type': 'text', 'text': words}}])}")
        await scene.stack.settle()
        assert await pending_still(scene)
        if role != "observer":  # an observer's messages do not even leave
            assert scene.sees(ONLY_OWNERS)
            assert refusals(scene) == ["not an approver"] * 7


async def test_a_member_renamed_to_the_owners_name_is_still_nobody(tmp_path: Path, fast_clock: MockClock) -> None:
    async with open_scene(tmp_path, fast_clock) as scene:
        mallory, room = await member(scene, "Mallory")
        await scene.ask("hello")
        mallory.rename("Alice")
        mallory.say(room, "/approve 2")
        await scene.stack.settle()
        assert await pending_still(scene)
        assert refusals(scene) == ["not an approver"]


async def test_a_removed_owner_decides_nothing_and_approvals_of_theirs_end(
    tmp_path: Path, fast_clock: MockClock
) -> None:
    async with open_scene(tmp_path, fast_clock) as scene:
        dora, room = await member(scene, "Dora", "owner")
        dora.say(room, "/approve #2 all")
        await scene.stack.settle()
        assert (await scene.stack.use("send", chat="#2", text="under Dora's word"))["decided_by"] == "Dora"
        scene.alice.remove(scene.room, "Dora")
        await scene.stack.settle()
        dora.core.command(f'/_send {room} json [{{"msgContent":{{"type":"text","text":"/approve 3"}}}}]')
        call = await scene.ask("after")
        assert call.result is None
        assert scene.heard() == ["under Dora's word"]
        assert not any(chat.get("approved") for chat in (await scene.stack.use("list"))["chats"])
        assert scene.sees("Dora (member ")
        await scene.tap("approve 3")
        assert scene.heard() == ["under Dora's word", "after"]


async def test_an_owner_made_a_member_again_decides_nothing(tmp_path: Path, fast_clock: MockClock) -> None:
    async with open_scene(tmp_path, fast_clock) as scene:
        dora, room = await member(scene, "Dora", "owner")
        await scene.ask("hello")
        scene.alice.set_role(scene.room, "Dora", "member")
        dora.say(room, "/approve 2")  # written before the new role reached her
        await scene.stack.settle()
        assert await pending_still(scene)


async def test_the_agents_own_account_cannot_approve(tmp_path: Path, fast_clock: MockClock) -> None:
    async with open_scene(tmp_path, fast_clock) as scene:
        await scene.ask("hello")
        core = scene.stack.network.core("agent")
        message = json.dumps([{"msgContent": {"type": "text", "text": "/approve 2"}}])
        core.command(f"/_send {scene.stack.control.ref} json {message}")
        item = core.command(f"/_get chat {scene.stack.control.ref} count=1")["chat"]
        scene.stack.control.on_event(
            {"type": "newChatItems", "chatItems": [{"chatInfo": item["chatInfo"], "chatItem": item["chatItems"][0]}]}
        )
        await scene.stack.settle()
        assert await pending_still(scene)


async def test_words_in_another_chat_decide_nothing(tmp_path: Path, fast_clock: MockClock) -> None:
    async with open_scene(tmp_path, fast_clock) as scene:
        stack = scene.stack
        link = scene.bob.do(f"/_get link {scene.trail}")["groupLink"]["connLinkContact"]["connShortLink"]
        scene.alice.join(link)
        await stack.settle(10)
        address = scene.alice.make_address()
        stack.call("connect", target=address, wait=20)
        await stack.settle()
        await scene.tap("approve 2")
        await stack.settle(20)
        await scene.ask("hello")
        alices = [f"@{number}" for number, row in scene.alice.core.state.contacts.items() if row.conn_id is not None]
        for ref in (scene.alice.newest_group, *alices):
            scene.alice.say(ref, "/approve 3")
        scene.bob.say(scene.trail, "/approve 3")
        await stack.settle()
        assert [a.number for a in stack.actions.pending()] == [3]
        assert not any(sent.sends("#2", "hello") for sent in stack.sent)


async def test_a_quote_an_edit_and_a_live_message_are_no_words(tmp_path: Path, fast_clock: MockClock) -> None:
    async with open_scene(tmp_path, fast_clock) as scene:
        alice, room = scene.alice, scene.room
        await scene.ask("hello")
        card = next(i for i in alice.items(room) if "I want to send" in i["meta"]["itemText"])["meta"]["itemId"]
        alice.say(room, "/approve 2", quotedItemId=card)
        await scene.stack.settle()
        assert scene.card("That is no command") == (
            "That is no command: it is a reply with a quote. Send it as a message of its own."
        )
        typed = alice.say(room, "/approve 2", options=" live=on")
        await scene.stack.settle()
        body = json.dumps({"msgContent": {"type": "text", "text": "/approve 2"}, "mentions": {}})
        alice.do(f"/_update item {room} {typed} json {body}")
        old = alice.say(room, "a remark")
        await scene.stack.settle()
        alice.do(f"/_update item {room} {old} json {body}")
        await scene.stack.settle()
        assert await pending_still(scene)
        await scene.tap("approve 2")
        assert scene.heard() == ["hello"]


async def test_a_forwarded_message_is_no_word(tmp_path: Path, fast_clock: MockClock) -> None:
    async with open_scene(tmp_path, fast_clock) as scene:
        await scene.ask("hello")
        core = scene.stack.network.core("agent")
        said: list[dict[str, Any]] = []
        core.react(said.append)
        scene.alice.say(scene.room, "a remark")
        await scene.stack.settle()
        event = next(e for e in said if e["type"] == "newChatItems")
        entry = event["chatItems"][0]
        for number, mark in enumerate(({"itemForwarded": {"type": "unknown"}}, {"forwardedByMember": 9}), 5000):
            item = entry["chatItem"] | {
                "meta": entry["chatItem"]["meta"] | mark | {"itemId": number},
                "content": {"type": "rcvMsgContent", "msgContent": {"type": "text", "text": "/approve 2"}},
            }
            scene.stack.control.on_event(event | {"chatItems": [entry | {"chatItem": item}]})
        await scene.stack.settle()
        assert await pending_still(scene)
        assert refusals(scene) == ["it was forwarded"] * 2
        assert scene.card("That is no command").startswith("That is no command: it was forwarded.")


async def test_what_was_said_before_a_restart_is_handled_once_and_never_again(
    tmp_path: Path, fast_clock: MockClock
) -> None:
    async with open_scene(tmp_path, fast_clock) as scene:
        await scene.tap("approve #2 all")
        await scene.tap("revoke #2")
        for _ in range(2):
            await scene.stack.stop()
            await scene.stack.start()
        assert sum("need approval again" in text for text in scene.alice.texts(scene.room)) == 1
        call = await scene.ask("hello")
        assert call.result is None
        assert scene.heard() == []


async def test_a_word_that_came_while_the_server_was_down_is_answered_after_its_start(
    tmp_path: Path, fast_clock: MockClock
) -> None:
    async with open_scene(tmp_path, fast_clock) as scene:
        await scene.ask("hello")
        await scene.stack.stop()
        scene.alice.say(scene.room, "/approve 2")
        await scene.stack.settle()
        await scene.stack.start()
        assert scene.card("Action 2 is") == "Action 2 is not pending."
        assert scene.heard() == []


@pytest.mark.parametrize(
    "words",
    ["/approve 2; /approve 3", "/approve 2 3", "/approve ２", "/approve 02", "/approve -1", "/approve 1" + "0" * 30,
     "/approve 2\n/approve 3", "/approve  2", "/Approve 2", "/approve #2", "/approve all", "/approve 2 all",
     "/approve #2 all 0", "/approve #2 all 2w", "/approve #２ 2", "/approve #2 2 please", "/",
     "/''approve 2''", "/approve @2 all 2 h",
     "/approve '2'"],
    ids=ascii,
)  # fmt: skip
async def test_a_word_outside_the_grammar_does_nothing_and_gets_the_usage(
    tmp_path: Path, fast_clock: MockClock, words: str
) -> None:
    async with open_scene(tmp_path, fast_clock) as scene:
        await scene.ask("hello")
        scene.alice.say(scene.room, words)
        await scene.stack.settle()
        assert await pending_still(scene)
        assert sum(text == USAGE for text in scene.alice.texts(scene.room)) == 1


@pytest.mark.parametrize("words", ["approve 2", "please /approve 2", "\u200b/approve 2", "／approve 2", "yes", "👍"])
async def test_other_talk_is_ignored(tmp_path: Path, fast_clock: MockClock, words: str) -> None:
    async with open_scene(tmp_path, fast_clock) as scene:
        await scene.ask("hello")
        before = scene.alice.texts(scene.room)
        scene.alice.say(scene.room, words)
        await scene.stack.settle()
        assert await pending_still(scene)
        assert scene.alice.texts(scene.room) == [*before, words]


async def test_a_second_word_a_late_one_and_one_on_an_unknown_number_each_get_a_clear_answer(
    tmp_path: Path, fast_clock: MockClock
) -> None:
    async with open_scene(tmp_path, fast_clock) as scene:
        dora, room = await member(scene, "Dora", "owner")
        call = await scene.ask("hello", wait=0)
        await scene.tap("approve 2")
        assert call.result is not None
        dora.say(room, "/reject 2")
        await scene.stack.settle()
        assert scene.card("Action 2 was") == "Action 2 was already approved by Alice."
        await scene.tap("approve 2")
        assert scene.alice.texts(scene.room).count("Action 2 was already approved by Alice.") == 2
        await scene.tap("approve 99")
        assert scene.card("Action 99") == "Action 99 is not pending."
        await scene.ask("wrong chat")
        await scene.tap("approve @4 3")
        assert scene.card("Action 3 is not") == "Action 3 is not for chat (@4)."
        await scene.tap("reject #2 3")
        await scene.tap("approve 3")
        assert scene.card("Action 3 was") == "Action 3 was already rejected by Alice."
        assert scene.heard() == ["hello"]


async def test_two_owners_who_decide_at_once_make_one_outcome(tmp_path: Path, fast_clock: MockClock) -> None:
    async with open_scene(tmp_path, fast_clock) as scene:
        dora, room = await member(scene, "Dora", "owner")
        call = await scene.ask("hello")
        dora.say(room, "/reject 2")
        scene.alice.say(scene.room, "/approve 2")
        await scene.stack.settle()
        assert call.result is not None
        decided = [e for e in scene.stack.audit() if e["event"] == "decided" and e["action"] == 2]
        assert len(decided) == 1
        assert (
            (call.result["status"] == "done") == (scene.heard() == ["hello"]) == (decided[0]["decision"] == "approved")
        )
        assert scene.sees("Action 2 was already ")


async def test_after_its_time_an_action_is_expired_on_its_card_and_in_the_answer(
    tmp_path: Path, fast_clock: MockClock
) -> None:
    async with open_scene(tmp_path, fast_clock, expire_hours=1) as scene:
        call = await scene.ask("hello")
        await scene.stack.pass_time(29 * 60)
        assert not scene.sees("Action 2 expires at")
        await scene.stack.pass_time(2 * 60)
        assert scene.sees("Action 2 expires at")  # a card may have been missed
        scene.stack.clock.jump(29 * 60)  # not a tick of the program in between
        scene.alice.say(scene.room, "/approve 2")
        await scene.stack.settle()
        assert scene.card("Action 2 expired at")
        assert scene.card("`hello`").endswith("\nExpired.")
        assert call.result is not None
        assert (call.result["status"], scene.heard()) == ("expired", [])


async def test_a_card_gets_its_outcome_at_once_for_each_way_to_end(tmp_path: Path, fast_clock: MockClock) -> None:
    async with open_scene(tmp_path, fast_clock) as scene:
        await scene.ask("one")
        await scene.tap("approve 2")
        assert scene.card("`one`").endswith("\nApproved by Alice.")
        await scene.ask("two")
        await scene.tap("reject 3")
        assert scene.card("`two`").endswith("\nRejected by Alice.")
        await scene.ask("three")
        scene.bob.do(f"/_remove {scene.trail} {scene.bob.members(scene.trail)['My Agent']['groupMemberId']}")
        await scene.stack.settle()
        assert scene.card("`three`").endswith("\nFailed: `group Trail (#2) is gone.`")


async def test_the_cards_of_a_crashed_run_get_their_last_line_at_the_next_start(
    tmp_path: Path, fast_clock: MockClock
) -> None:
    async with open_scene(tmp_path, fast_clock) as scene:
        await scene.ask("waits")
        await scene.ask("was being sent")
        scene.stack.link.hold("/_send #2", done=True)
        await scene.tap("approve 3")
        await scene.stack.kill()
        await scene.stack.settle()
        await scene.stack.start()
        assert scene.card("`waits`").endswith("\nCancelled: the server stopped.")
        assert scene.card("`was being sent`").endswith(
            "\nApproved by Alice; interrupted: the server stopped. Check the chat before asking again."
        )
        await scene.tap("approve 2")
        assert scene.card("Action 2 is") == "Action 2 is not pending."
        assert scene.heard() == ["was being sent"]


async def test_a_crash_between_an_outcome_on_its_card_and_the_journal_changes_the_card_no_more(
    tmp_path: Path, fast_clock: MockClock
) -> None:
    async with open_scene(tmp_path, fast_clock) as scene:
        await scene.ask("hello")
        scene.stack.link.hold("/_update item", done=True)
        await scene.tap("approve 2")
        await scene.stack.kill()
        await scene.stack.settle()
        assert scene.card("`hello`").endswith("\nApproved by Alice.")
        await scene.stack.start()
        assert scene.card("`hello`") == "I sent a message to group Trail (#2): `hello`\nApproved by Alice."


async def test_a_card_whose_post_was_lost_with_the_link_is_found_and_told_its_outcome(
    tmp_path: Path, fast_clock: MockClock
) -> None:
    async with open_scene(tmp_path, fast_clock) as scene:
        scene.stack.network.faults.drop("agent", "/_send #1", done=True)
        call = await scene.ask("hello")
        assert call.result is not None
        assert call.result["status"] == "failed"
        assert "\nTap /" not in scene.card("`hello`")
        assert scene.card("`hello`").startswith("I want to send a message to group Trail (#2): `hello`\nFailed: ")


async def test_the_answer_to_a_word_survives_a_lost_link(tmp_path: Path, fast_clock: MockClock) -> None:
    async with open_scene(tmp_path, fast_clock) as scene:
        scene.stack.network.faults.drop("agent", "/_send #1")
        await scene.tap("approve 99")
        assert scene.card("Action 99") == "Action 99 is not pending."
        scene.stack.network.faults.drop("agent", "/_get chat #2")
        await scene.tap("approve #2 all")
        assert scene.sees("Not done: ")


async def test_a_flood_of_requests_is_capped_and_the_owner_is_not_flooded(
    tmp_path: Path, fast_clock: MockClock
) -> None:
    async with open_scene(tmp_path, fast_clock, expire_hours=1) as scene:
        stack = scene.stack
        calls = [stack.call("send", chat="#2", text=f"message {n}") for n in range(500)]
        await stack.settle(5)
        refused = [call.result["error"] for call in calls if call.result is not None]
        assert refused == ["50 actions wait for an approver; wait for them or ask your owner."] * 450
        assert sum("I want to send" in text for text in scene.alice.texts(scene.room)) == 50
        await scene.tap("pending")
        assert (
            sum(f"Action {n}: a message" in t for t in scene.alice.texts(scene.room)[-4:] for n in range(2, 52)) == 50
        )
        await stack.pass_time(3601)
        assert all(call.result is not None for call in calls)
        assert sum("Expired." in text for text in scene.alice.texts(scene.room)) == 50
        assert sum("expires at" in t and t.startswith("Action") for t in scene.alice.texts(scene.room)) >= 50
        assert scene.heard() == []


async def test_the_log_names_who_asked_who_decided_and_what_happened_and_no_text(
    tmp_path: Path, fast_clock: MockClock
) -> None:
    async with open_scene(tmp_path, fast_clock) as scene:
        await scene.ask("a very secret text")
        await scene.tap("approve 2")
        entries = [e for e in scene.stack.audit() if e.get("action") == 2]
        assert [(e["event"], e.get("by"), e.get("decision")) for e in entries] == [
            ("created", None, None),
            ("decided", "Alice", "approved"),
            ("performed", None, None),
        ]
        assert "secret text" not in (tmp_path / "data" / "audit.jsonl").read_text()


async def test_a_server_with_nobody_to_approve_asks_nothing(tmp_path: Path, fast_clock: MockClock) -> None:
    async with open_scene(tmp_path, fast_clock) as scene:
        scene.alice.do(f"/_leave {scene.room}")
        await scene.stack.settle()
        error = (await scene.stack.use("send", chat="#2", text="hello"))["error"]
        assert error.startswith("The agent has no approving owner. Nothing was asked")


@pytest.mark.parametrize("how", ["removed", "demoted", "left"])
async def test_an_owner_who_is_gone_approves_nothing_also_while_the_control_chat_is_stuck(
    tmp_path: Path, fast_clock: MockClock, how: str
) -> None:
    async with open_scene(tmp_path, fast_clock) as scene:
        dora, room = await member(scene, "Dora", "owner")
        dora.say(room, "/approve #2 all")
        await scene.stack.settle()
        stuck = scene.stack.link.hold("/_send #1")
        await scene.tap("pending")
        match how:
            case "removed":
                scene.alice.remove(scene.room, "Dora")
            case "demoted":
                scene.alice.set_role(scene.room, "Dora", "member")
            case "left":
                dora.do(f"/_leave {room}")
        await scene.stack.settle()
        await scene.ask("under Dora's word")
        assert scene.heard() == []
        stuck.set()
        await scene.stack.settle()
        assert scene.heard() == []
        assert scene.sees("Dora (member ")


async def test_a_name_with_escape_sequences_steers_no_terminal(tmp_path: Path, fast_clock: MockClock) -> None:
    async with open_scene(tmp_path, fast_clock) as scene:
        core = scene.stack.network.core("agent").state
        evil = "T\x1b]52;c;AAAA\x07\x1b[2J\r\u202ex"
        core.groups[2].profile = {**core.groups[2].profile, "displayName": evil}
        for row in core.members.values():
            if row.role == "owner" and row.category != "user" and row.group_id == 1:
                core.profiles[row.profile_id].data["displayName"] = evil
        await scene.stack.control.load_members()
        await scene.tap("leave #2")
        scene.alice.do(f"/_leave {scene.room}")
        await scene.stack.settle()
        printed = "".join(scene.stack.lines)
        assert "requested by" in printed
        assert "is no longer an owner" in printed
        assert not any(char in printed for char in "\x1b\x07\r\u202e")


async def test_a_word_on_a_number_whose_card_nobody_can_have_seen_yet_is_none(
    tmp_path: Path, fast_clock: MockClock
) -> None:
    async with open_scene(tmp_path, fast_clock) as scene:
        scene.stack.link.hold("/_set custom #1")
        await scene.ask("hello")
        await scene.tap("approve 2")
        await scene.tap("reject 2")
        assert scene.alice.texts(scene.room).count("Action 2 is not pending.") == 2
        scene.stack.link.release()
        await scene.stack.settle()
        assert await pending_still(scene)
        await scene.tap("approve 2")
        assert scene.heard() == ["hello"]
