"""The approval property, on the program's own wiring: whatever people, the agent, the network and the clock do, no
command reaches others without exactly one owner's word for it, mode host, or a standing approval in force.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import tempfile
import threading
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar
from unittest.mock import patch

import trio
from hypothesis import HealthCheck, Phase, note, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from trio.testing import MockClock

from simplexmcp.actions import Actions
from tests.e2e.oracle import Oracle, performing
from tests.e2e.stack import Pending, Person, Scene, open_scene
from tests.effort import effort

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from simplexmcp.action import Action

TEXTS = ("hello", "hello ", "a\nb", "/'approve 3'", "`x` *y*", "\u202eevil", "/approve #2 all")
REFS = ("#2", "#2", "@4", "#3", "#1")
ODD = (
    "/approve 3; /approve 4", "/approve 3 4", "/approve ３", "/approve 03", "/approve -1", "/Approve 3",
    "/approve 3\n/approve 4", "/approve 1" + "0" * 30, "/pending", "/list", "/help", "/show 3", "/approve", "approve 3",
)  # fmt: skip
LOSSES = ("", "/_send", "/_send #1", "/_send #2", "/_set custom", "/_get chat", "/_update", "/_leave", "/_connect 1")

Step = tuple[Any, ...]


def a_call(random: Random) -> Step:
    """What the agent asks for."""
    tool = random.choices(("send", "leave", "connect"), (6, 1, 2))[0]
    deliver = random.random() < 0.7
    if tool == "send":
        ref = random.choice(("#2", "#2", "#2", "@4", "@4", "#3", "#1", "#2(_support)"))
        return ("call", tool, {"chat": ref, "text": random.choice(TEXTS)}, deliver)
    if tool == "leave":
        return ("call", tool, {"chat": random.choice(("#2", "@4", "#3"))}, deliver)
    target = random.choice(("address", "second", "trail"))
    return ("call", tool, {"target": target, "incognito": random.random() < 0.3}, deliver)


def a_message(random: Random) -> Step:
    """What somebody writes into the control chat: mostly commands, some of them malformed, some said otherwise."""
    ref, number = random.choice(REFS), random.randint(1, 12)
    bound = random.choice(("", "", " 2", " 1", " 2h", " 5m"))
    text = random.choice(
        (
            f"approve {number}",
            f"approve {ref} {number}",
            f"reject {number}",
            f"approve {ref} all{bound}",
            f"revoke {ref}",
            f"leave {ref}",
        )
    )
    text = random.choice((f"/{text}", f"/{text}", f"/'{text}'", text, random.choice(ODD)))
    how = random.choice(("plain", "plain", "plain", "quote", "live", "edit", "elsewhere"))
    return ("write", random.choice(("Alice", "Dora", "Mallory", "Carl")), text, how)


def an_owners_word(random: Random) -> Step:
    """What an owner says of a chat."""
    ref, bound = random.choice(("#2", "#2", "@4")), random.choice(("", "", " 2", " 1", " 2h", " 5m"))
    text = random.choices((f"/approve {ref} all{bound}", f"/revoke {ref}", f"/leave {ref}"), (6, 2, 1))[0]
    return ("write", random.choice(("Alice", "Dora")), text, "plain")


def a_decision(random: Random) -> Step:
    """An owner decides one of the newest cards."""
    word = random.choice(("approve", "approve", "approve", "reject"))
    where = random.choice(("", "", "", "#2 ", "@4 "))
    return ("decide", random.choice(("Alice", "Alice", "Dora")), f"{word} {where}", random.choice((0, 0, 0, 1, 2, 4)))


def a_change(random: Random) -> Step:
    """What else happens in the world."""
    return random.choice(
        (
            ("role", random.choice(("Dora", "Dora", "Carl")), random.choice(("owner", "owner", "member", "observer"))),
            ("remove", random.choice(("Dora", "Mallory"))),
            ("rename", random.choice(("Alice", "Dora"))),
            ("group", random.choice(("Trail", "Trail 2"))),
            ("agent's role", random.choice(("member", "observer"))),
            ("agent removed",),
            ("link lost", random.choice(LOSSES), random.random() < 0.5),
            ("link lost", random.choice(LOSSES), random.random() < 0.5),
            ("slow", random.choice((0.0, 0.05)), random.random() < 0.5),
            ("time", random.choice((30.0, 200.0, 3 * 3600.0, 12 * 3600.0, 23.5 * 3600.0))),
            ("time", random.choice((30.0, 200.0, 3 * 3600.0, 12 * 3600.0, 23.5 * 3600.0))),
            ("stuck", random.choice(LOSSES[1:]), random.random() < 0.5),
            ("call lost", random.randint(0, 5)),
            ("restart", random.random() < 0.5, random.random() < 0.3),
            ("burst",),
            ("quiet",),
            ("quiet",),
            ("quiet",),
            ("quiet",),
        )
    )


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
        with contextlib.suppress(trio.RunFinishedError):
            trio.from_thread.run_sync(self._cancel, trio_token=self._token)
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

    seen: ClassVar[dict[str, int]] = {}

    def __init__(self) -> None:
        super().__init__()
        self.theatre = Theatre()
        self.people: dict[str, Person] = {}
        self.rooms: dict[str, str] = {}
        self.pending: list[Pending] = []
        self.burst = False
        self.steps = 0

    @property
    def scene(self) -> Scene:
        return self.theatre.scene

    def teardown(self) -> None:
        try:
            self.theatre.do(self._close)
        finally:
            self.theatre.end()

    async def _close(self) -> None:
        stack, faults = self.scene.stack, self.scene.stack.network.faults
        faults.drops.clear()
        faults.response_delay = 0
        stack.link.release()
        await stack.settle()
        self.oracle.check()
        pending = {action.number for action in stack.actions.pending()}
        self.oracle.check_cards([item["meta"]["itemText"] for item in self.scene.alice.items(self.scene.room)], pending)
        for key, value in self.oracle.counts.items():
            Approvals.seen[key] = Approvals.seen.get(key, 0) + value

    @initialize()
    def gather(self) -> None:
        self.theatre.do(self._gather)

    async def _gather(self) -> None:
        stack, alice, room = self.scene.stack, self.scene.alice, self.scene.room
        self.people, self.rooms = {"Alice": alice}, {"Alice": room}
        link = alice.do(f"/_create link {room} member")["groupLink"]["connLinkContact"]["connShortLink"]
        for name in ("Dora", "Mallory", "Carl"):
            person = stack.person(name)
            person.join(link)
            await stack.settle()
            self.people[name], self.rooms[name] = person, person.newest_group
        await stack.settle(10)
        alice.set_role(room, "Dora", "owner")
        alice.set_role(room, "Carl", "observer")
        self.links = {
            "address": self.scene.bob.make_address(),
            "second": self.scene.bob.make_group("Second")[1],
            "trail": self.scene.bob.do(f"/_get link {self.scene.trail}")["groupLink"]["connLinkContact"][
                "connShortLink"
            ],
        }
        call = stack.call("connect", target=self.links["address"], wait=20)
        await stack.settle()
        alice.say(room, "/approve 2")
        await stack.settle(30)
        assert call.result is not None
        assert (call.result["status"], call.result["chat"], self.scene.chat) == ("done", "@4", "#2"), call.result
        self.oracle = Oracle(stack, stack.control.ref)

    @invariant()
    def nothing_is_done_without_a_word(self) -> None:
        if hasattr(self, "oracle"):
            self.oracle.check()

    def act(self, what: str, *how: Any) -> None:
        do = {"call": self._call, "write": self._write, "decide": self._decide}.get(what)

        async def step() -> None:
            await (do(*how) if do else self._change(what, *how))
            if not self.burst:
                await self.scene.stack.settle()
                self.oracle.quiet()

        self.theatre.do(step)

    @rule(number=st.integers(0, 2**32))
    def something_happens(self, number: int) -> None:
        self.steps += 1
        random = Random(f"{number}/{self.steps}")
        step = random.choices((a_call, a_decision, an_owners_word, a_message, a_change), (9, 6, 2, 4, 5))[0](random)
        note(repr(step))
        if step[0] in ("restart", "quiet"):
            self.burst = False
        self.act(*step)
        if step[0] in ("burst", "stuck"):  # what was said before need not be heard by now
            self.burst = True

    async def _call(self, tool: str, given: dict[str, Any], deliver: bool) -> None:
        if tool == "connect":
            given = given | {"target": self.links[given["target"]]}
        if self.scene.stack.running:
            self.oracle.calls.append((tool, given))
            self.pending.append(self.scene.stack.call(tool, deliver=deliver, **given))

    async def _decide(self, who: str, word: str, back: int) -> None:
        await self._write(who, f"/{word}{max([2, *self.oracle.asked]) - back}", "plain")

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
            case "time":
                scene.stack.clock.jump(how[0])
            case "call lost":
                if self.pending:
                    self.pending.pop(how[0] % len(self.pending)).lose()
            case "restart":
                await self._restart(*how)
            case "stuck":
                scene.stack.link.hold(how[0], done=how[1])
            case "quiet":
                scene.stack.link.release()
            case "burst":
                pass
            case _:
                raise AssertionError(what)

    async def _restart(self, crash: bool, host: bool) -> None:
        stack = self.scene.stack
        stack.network.faults.drops.clear()
        if crash:
            await stack.kill()
        else:
            stack.link.release()
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


PHASES = (Phase.generate, Phase.shrink) if os.environ.get("SHRINK") else (Phase.generate,)
"""Shrinking a failure takes minutes: SHRINK=1 asks for it."""

SEEDS = int(os.environ.get("SEEDS", effort(3, 20)))
"""Hypothesis varies what it has after ten examples; ten new ones each time look at more. SEEDS=200 looks for long."""


def test_nothing_reaches_others_without_exactly_one_word_for_it(record_property: Callable[[str, int], None]) -> None:
    Approvals.seen = {}
    few = settings(
        max_examples=10, stateful_step_count=50, deadline=None, database=None, phases=PHASES,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    with patch.object(Actions, "_perform", marked_perform):
        for number in range(SEEDS):
            run_state_machine_as_test(seed(number)(type(f"Approvals{number}", (Approvals,), {})), settings=few)
    assert min(Approvals.seen.values()) >= SEEDS, Approvals.seen
    record_property("inputs", SEEDS * few.max_examples)
