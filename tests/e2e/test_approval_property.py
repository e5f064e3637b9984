"""The approval property, on the program's own wiring: whatever people, the agent, the network and the clock do, no
command reaches others without exactly one owner's word for it, mode host, or a standing approval in force.
"""

from __future__ import annotations

import json
import queue
import shutil
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import trio
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from trio.testing import MockClock

from simplexmcp.actions import Actions
from tests.e2e.oracle import Oracle, performing
from tests.e2e.stack import Pending, Person, Scene, open_scene

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from simplexmcp.action import Action

TEXTS = st.sampled_from(["hello", "hello ", "a\nb", "/'approve 2'", "`x` *y*", "\u202eevil", "/approve #2 all"])
CALLS = st.one_of(
    st.builds(
        lambda chat, text: ("send", {"chat": chat, "text": text}),
        st.sampled_from(["#2", "#2", "@1", "@1", "#3", "#1", "#2(_support)"]),
        TEXTS,
    ),
    st.builds(lambda chat: ("leave", {"chat": chat}), st.sampled_from(["#2", "@1", "#3"])),
    st.builds(
        lambda target, incognito: ("connect", {"target": target, "incognito": incognito}),
        st.sampled_from(["address", "second", "trail"]),
        st.booleans(),
    ),
)
NUMBERS = st.integers(1, 9)
WHO = st.sampled_from(["Alice", "Alice", "Dora", "Mallory", "Robo"])
HOW = st.sampled_from(["plain"] * 4 + ["quote", "live", "edit", "elsewhere"])
REFS = st.sampled_from(["#2", "#2", "@1", "#3", "#1"])
CHANGES = st.one_of(
    st.tuples(
        st.just("role"),
        st.sampled_from(["Dora", "Dora", "Robo"]),
        st.sampled_from(["owner", "owner", "member", "observer", "admin"]),
    ),
    st.tuples(st.just("remove"), st.sampled_from(["Dora", "Mallory"])),
    st.tuples(st.just("rename"), st.sampled_from(["Alice", "Dora"])),
    st.tuples(st.just("group"), st.sampled_from(["Trail", "Trail 2"])),
    st.tuples(st.just("agent's role"), st.sampled_from(["member", "observer"])),
    st.just(("agent removed",)),
    st.tuples(
        st.just("link lost"),
        st.sampled_from(
            ["", "/_send", "/_send #1", "/_send #2", "/_set custom", "/_get chat", "/_update", "/_leave", "/_connect 1"]
        ),
        st.booleans(),
    ),
    st.tuples(st.just("slow"), st.sampled_from([0.0, 0.05]), st.booleans()),
)


def about_a_chat() -> st.SearchStrategy[str]:
    """An owner's word on a chat."""
    standing = st.builds("approve {} all{}".format, REFS, st.sampled_from(["", "", " 2", " 1", " 2h", " 5m"]))
    return st.one_of(standing, standing, st.builds("{} {}".format, st.sampled_from(["revoke", "leave"]), REFS))


def words() -> st.SearchStrategy[str]:
    """What somebody writes into the control chat: mostly commands, some of them malformed."""
    decide = st.builds("{} {}".format, st.sampled_from(["approve", "approve", "reject"]), NUMBERS)
    bound = st.builds("{} {} {}".format, st.sampled_from(["approve", "approve", "reject"]), REFS, NUMBERS)
    odd = st.sampled_from(
        ["approve 3; /approve 4", "approve 3 4", "approve ３", "approve 03", "approve -1", "Approve 3",
         "approve 3\n/approve 4", "approve 1" + "0" * 30, "pending", "list", "help", "show 3", "approve", ""]
    )  # fmt: skip
    typed = st.one_of(decide, bound, about_a_chat(), odd)
    return st.builds(lambda form, text: form.format(text), st.sampled_from(["/{}", "/{}", "/'{}'", "{}"]), typed)


class Theatre:
    """A trio loop in a thread of its own, with a scene in it; `do` runs something there and waits for it."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="simplexmcp-"))
        self.clock = MockClock()
        self.scene: Scene
        self._ready: queue.SimpleQueue[trio.lowlevel.TrioToken | BaseException] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        answer = self._ready.get()
        if isinstance(answer, BaseException):
            raise answer
        self._token = answer
        self.error: BaseException | None = None

    def _run(self) -> None:
        try:
            trio.run(self._main, clock=self.clock)
        except BaseException as error:  # noqa: BLE001 - given to the thread that waits
            self.error = error
            self._ready.put(error)

    async def _main(self) -> None:
        async with open_scene(self.folder, self.clock) as self.scene:
            self._scope = trio.CancelScope()
            self._ready.put(trio.lowlevel.current_trio_token())
            with self._scope:
                await trio.sleep_forever()

    def do(self, what: Callable[..., Awaitable[Any]], *args: Any) -> Any:
        try:
            return trio.from_thread.run(what, *args, trio_token=self._token)
        except trio.RunFinishedError:
            raise self.error or AssertionError("the loop ended") from None

    def end(self) -> None:
        try:
            trio.from_thread.run_sync(self._cancel, trio_token=self._token)
        except trio.RunFinishedError:
            pass
        self._thread.join()
        shutil.rmtree(self.folder)
        if self.error is not None:
            raise self.error

    def _cancel(self) -> None:
        self._scope.cancel()


async def marked_perform(actions: Actions, action: Action) -> None:
    """A perform whose commands the oracle can tell."""
    token = performing.set(action)
    try:
        await _PERFORM(actions, action)
    finally:
        performing.reset(token)


_PERFORM = Actions._perform


class Approvals(RuleBasedStateMachine):
    """People, the agent, the network and the clock against the server."""

    seen: dict[str, int] = {}

    def __init__(self) -> None:
        super().__init__()
        self.theatre = Theatre()
        self.people: dict[str, Person] = {}
        self.rooms: dict[str, str] = {}
        self.pending: list[Pending] = []
        self.burst = False

    @property
    def scene(self) -> Scene:
        return self.theatre.scene

    def teardown(self) -> None:
        for key, value in self.oracle.counts.items():
            Approvals.seen[key] = Approvals.seen.get(key, 0) + value
        self.theatre.end()

    @initialize()
    def gather(self) -> None:
        self.theatre.do(self._gather)

    async def _gather(self) -> None:
        stack, alice, room = self.scene.stack, self.scene.alice, self.scene.room
        self.people, self.rooms = {"Alice": alice}, {"Alice": room}
        link = alice.do(f"/_create link {room} member")["groupLink"]["connLinkContact"]["connShortLink"]
        for name in ("Dora", "Mallory", "Robo"):
            person = stack.person(name, bot=name == "Robo")
            person.join(link)
            await stack.settle()
            self.people[name], self.rooms[name] = person, person.newest_group
        await stack.settle(10)
        alice.set_role(room, "Dora", "owner")
        alice.set_role(room, "Robo", "owner")
        self.links = {
            "address": self.scene.bob.make_address(),
            "second": self.scene.bob.make_group("Second")[1],
            "trail": self.scene.bob.do(f"/_get link {self.scene.trail}")["groupLink"]["connLinkContact"]["connShortLink"],
        }
        call = stack.call("connect", target=self.links["address"], wait=20)
        await stack.settle()
        alice.say(room, "/approve 2")
        await stack.settle(30)
        assert call.result is not None
        assert (call.result["status"], call.result["chat"], self.scene.chat) == ("done", "@1", "#2"), call.result
        self.oracle = Oracle(stack, stack.control.ref)

    @invariant()
    def nothing_is_done_without_a_word(self) -> None:
        if hasattr(self, "oracle"):
            self.oracle.check()

    def act(self, what: Callable[..., Awaitable[None]], *args: Any) -> None:
        async def step() -> None:
            await what(*args)
            if self.burst:
                return
            await self.scene.stack.settle()
            self.oracle.quiet()

        self.theatre.do(step)

    # The agent

    @rule(call=CALLS, deliver=st.sampled_from([True, True, False]))
    def the_agent_calls(self, call: tuple[str, dict[str, Any]], deliver: bool) -> None:
        self.act(self._call, *call, deliver)

    @rule(text=TEXTS)
    def the_agent_sends_to_the_group(self, text: str) -> None:
        self.act(self._call, "send", {"chat": "#2", "text": text}, True)

    async def _call(self, tool: str, given: dict[str, Any], deliver: bool) -> None:
        if tool == "connect":
            given = given | {"target": self.links[given["target"]]}
        if self.scene.stack.running:
            self.oracle.calls.append((tool, given))
            self.pending.append(self.scene.stack.call(tool, deliver=deliver, **given))

    @rule(which=st.integers(0, 5))
    def a_call_is_lost(self, which: int) -> None:
        async def lose() -> None:
            if self.pending:
                self.pending.pop(which % len(self.pending)).lose()

        self.act(lose)

    # People in the control chat

    @rule(who=WHO, text=words(), how=HOW)
    def somebody_writes(self, who: str, text: str, how: str) -> None:
        self.act(self._write, who, text, how)

    @rule(who=st.sampled_from(["Alice", "Dora"]), text=about_a_chat())
    def an_owner_speaks_of_a_chat(self, who: str, text: str) -> None:
        self.act(self._write, who, f"/{text}", "plain")

    @rule(who=st.sampled_from(["Alice", "Dora"]), back=st.integers(0, 2), word=st.sampled_from(["approve", "approve", "reject"]))
    def an_owner_decides_a_recent_card(self, who: str, back: int, word: str) -> None:
        async def decide() -> None:
            number = max([2, *self.oracle.asked]) - back
            await self._write(who, f"/{word} {number}", "plain")

        self.act(decide)

    async def _write(self, who: str, text: str, how: str) -> None:
        person, room = self.people[who], self.rooms[who]
        if how == "elsewhere":
            self._try(self.scene.bob, self.scene.trail, text)
        elif how == "quote":
            items = [i for i in person.items(room) if i["content"]["type"] == "rcvMsgContent"]
            if items:
                self._try(person, room, text, quotedItemId=items[-1]["meta"]["itemId"])
        elif how == "live":
            self._try(person, room, text, options=" live=on")
        elif how == "edit":
            item = self._try(person, room, "never mind")
            await self.scene.stack.settle(0.5)
            if item is not None:
                body = json.dumps({"msgContent": {"type": "text", "text": text}, "mentions": {}})
                person.core.command(f"/_update item {room} {item} json {body}")
        else:
            self._try(person, room, text)

    @staticmethod
    def _try(person: Person, room: str, text: str, options: str = "", **composed: Any) -> int | None:
        """Write, when the person still can."""
        message = {"msgContent": {"type": "text", "text": text}, **composed}
        answer = person.core.command(f"/_send {room}{options} json {json.dumps([message])}")
        return answer["chatItems"][0]["chatItem"]["meta"]["itemId"] if answer["type"] == "newChatItems" else None

    # The world

    @rule(change=CHANGES)
    def the_world_changes(self, change: tuple[Any, ...]) -> None:
        self.act(self._change, *change)

    async def _change(self, what: str, *how: Any) -> None:
        scene, faults = self.scene, self.scene.stack.network.faults
        match what:
            case "role":
                name, role = how
                if member := scene.alice.members(scene.room).get(name):
                    scene.alice.core.command(f"/_member role {scene.room} {member['groupMemberId']} {role}")
            case "remove":
                if member := scene.alice.members(scene.room).get(how[0]):
                    scene.alice.core.command(f"/_remove {scene.room} {member['groupMemberId']}")
            case "rename":
                profile = {"displayName": how[0], "fullName": ""}
                self.people["Mallory"].core.command(f"/_profile 1 {json.dumps(profile)}")
            case "group":
                preferences = {"history": {"enable": "on"}}
                profile = {"displayName": how[0], "fullName": "", "groupPreferences": preferences}
                scene.bob.do(f"/_group_profile {scene.trail} {json.dumps(profile)}")
            case "agent's role":
                if member := scene.bob.members(scene.trail).get("My Agent"):
                    scene.bob.core.command(f"/_member role {scene.trail} {member['groupMemberId']} {how[0]}")
            case "agent removed":
                if member := scene.bob.members(scene.trail).get("My Agent"):
                    scene.bob.core.command(f"/_remove {scene.trail} {member['groupMemberId']}")
            case "link lost":
                faults.drop("agent", how[0], done=how[1])
            case "slow":
                faults.response_delay, faults.events_first = how
            case _:
                raise AssertionError(what)

    @rule(seconds=st.sampled_from([30.0, 200.0, 3600.0, 3 * 3600.0, 12 * 3600.0]))
    def time_passes(self, seconds: float) -> None:
        async def wait() -> None:
            self.scene.stack.clock.jump(seconds)

        self.act(wait)

    @rule()
    def much_happens_at_once(self) -> None:
        self.burst = True

    @rule()
    def it_becomes_quiet(self) -> None:
        async def rest() -> None:
            self.burst = False

        self.act(rest)

    @rule(crash=st.booleans(), host=st.sampled_from([False, False, False, True]))
    def the_server_restarts(self, crash: bool, host: bool) -> None:
        self.burst = False
        self.act(self._restart, crash, host)

    async def _restart(self, crash: bool, host: bool) -> None:
        stack = self.scene.stack
        stack.network.faults.drops.clear()
        if crash:
            await stack.kill()
        else:
            await stack.settle()
            await stack.stop()
        for pending in self.pending:
            pending.lose()
        self.pending.clear()
        await stack.settle()
        self.oracle.quiet()
        self.oracle.run += 1
        self.oracle.host = host
        await stack.start(approve="host" if host else "requests")


def test_nothing_reaches_others_without_exactly_one_word_for_it() -> None:
    Approvals.seen = {}
    with patch.object(Actions, "_perform", marked_perform):
        run_state_machine_as_test(
            Approvals,
            settings=settings(
                max_examples=40,
                stateful_step_count=40,
                derandomize=True,
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
    print(Approvals.seen)
    assert all(count > 0 for count in Approvals.seen.values()), Approvals.seen
