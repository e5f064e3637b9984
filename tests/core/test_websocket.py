"""The WebSocket link against a scripted core behind memory streams, on a clock that jumps."""

from __future__ import annotations

import logging
import random
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from simplexmcp.core.websocket import open_websocket
from simplexmcp.errors import CoreError, LinkLost, Refused, UserError
from tests.core.fakes import FakeCore

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager

    from simplexmcp.core.link import Link

URL = "ws://127.0.0.1:5225"


def open_link(
    core: FakeCore | None = None, dial: Any = None, others: Any = lambda _: None
) -> AbstractAsyncContextManager[Link]:
    dial = core.dial if core else dial
    return open_websocket(URL, dial=dial, now=lambda: 1000.0 + trio.current_time(), others=others)


@asynccontextmanager
async def linked() -> AsyncIterator[tuple[Link, FakeCore]]:
    """An open link to a fake core, ended with the test within a minute."""
    with trio.fail_after(3600):
        async with trio.open_nursery() as nursery:
            core = FakeCore(nursery)
            async with open_link(core) as link:
                yield link, core
            nursery.cancel_scope.cancel()


class Outcomes:
    """What became of the commands that a test sends beside each other."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.of: dict[str, list[Any]] = {}

    async def send(self, command: str) -> None:
        outcomes = self.of.setdefault(command, [])
        try:
            outcomes.append(await self.link.send(command))
        except CoreError as error:
            outcomes.append(error.tag)


async def test_a_command_gets_the_answer_with_its_id(autojump_clock: trio.testing.MockClock) -> None:
    async with linked() as (link, core), trio.open_nursery() as nursery:
        done = Outcomes(link)
        nursery.start_soon(done.send, "/user")
        request = await core.request()
        assert request["cmd"] == "/user"
        assert isinstance(request["corrId"], str)
        await core.answer(request, type="activeUser", user={"userId": 1})
        await trio.testing.wait_all_tasks_blocked()
        assert done.of == {"/user": [{"type": "activeUser", "user": {"userId": 1}}]}


async def test_answers_may_come_in_any_order(autojump_clock: trio.testing.MockClock) -> None:
    async with linked() as (link, core), trio.open_nursery() as nursery:
        done = Outcomes(link)
        for n in range(20):
            nursery.start_soon(done.send, f"/n {n}")
        requests = [await core.request() for _ in range(20)]
        for request in random.sample(requests, 20):
            await core.answer(request, echo=request["cmd"])
        await trio.testing.wait_all_tasks_blocked()
        assert done.of == {f"/n {n}": [{"type": "cmdOk", "echo": f"/n {n}"}] for n in range(20)}


async def test_commands_are_written_in_the_order_they_were_given(autojump_clock: trio.testing.MockClock) -> None:
    async with linked() as (link, core), trio.open_nursery() as nursery:
        done = Outcomes(link)
        for n in range(5):
            nursery.start_soon(done.send, f"/n {n}")
            await trio.testing.wait_all_tasks_blocked()
        assert [(await core.request())["cmd"] for _ in range(5)] == [f"/n {n}" for n in range(5)]
        nursery.cancel_scope.cancel()


async def test_the_core_s_no_is_a_core_error_with_its_tag(autojump_clock: trio.testing.MockClock) -> None:
    async with linked() as (link, core), trio.open_nursery() as nursery:
        done = Outcomes(link)
        nursery.start_soon(done.send, "/x")
        error = {"type": "errorStore", "storeError": {"type": "groupLinkNotFound"}}
        await core.answer(await core.request(), type="chatCmdError", chatError=error)
        await trio.testing.wait_all_tasks_blocked()
        assert done.of["/x"] == ["errorStore/groupLinkNotFound"]


async def test_events_come_in_order_asynchronous_errors_among_them(autojump_clock: trio.testing.MockClock) -> None:
    async with linked() as (link, core):
        error = {"type": "chatError", "chatError": {"type": "error", "errorType": {"type": "noConnectionUser"}}}
        sent = [{"type": "newChatItems", "n": 1}, error, {"type": "newChatItems", "n": 2}, {"type": "unheardOf"}]
        for event in sent:
            await core.say({"resp": event})
        assert [await link.events.receive() for _ in sent] == sent


async def test_a_core_of_the_newer_envelope_is_understood(autojump_clock: trio.testing.MockClock) -> None:
    async with linked() as (link, core), trio.open_nursery() as nursery:
        done = Outcomes(link)
        nursery.start_soon(done.send, "/x")
        nursery.start_soon(done.send, "/y")
        x, y = await core.request(), await core.request()
        await core.say({"corrId": x["corrId"], "result": {"type": "cmdOk"}})
        error = {"type": "error", "errorType": {"type": "chatNotStarted"}}
        await core.say({"corrId": y["corrId"], "error": error})
        await core.say({"error": error})
        assert await link.events.receive() == {"type": "chatError", "chatError": error}
        assert done.of == {x["cmd"]: [{"type": "cmdOk"}], y["cmd"]: ["error/chatNotStarted"]}


@pytest.mark.parametrize(
    "odd",
    [
        "no json",
        "",
        "[]",
        "7",
        "{}",
        '{"resp":7}',
        '{"resp":{"type":7}}',
        '{"corrId":7,"resp":{"type":"cmdOk"}}',
        '{"corrId":"none","resp":{"type":"cmdOk"}}',
        b"\xff\xfe\x00",
        "[" * 100_000,
        {"resp": {"type": "chatCmdError", "chatError": {"type": "error"}}},
    ],
    ids=lambda odd: str(odd)[:20],
)
async def test_what_is_no_answer_and_no_event_is_logged_and_ignored(
    odd: Any, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with linked() as (link, core), trio.open_nursery() as nursery:
        done = Outcomes(link)
        await core.say(odd)
        await core.say({"resp": {"type": "after"}})
        assert (await link.events.receive())["type"] == "after"
        assert "ignored" in caplog.text
        nursery.start_soon(done.send, "/x")
        await core.answer(await core.request())
        await trio.testing.wait_all_tasks_blocked()
        assert done.of["/x"] == [{"type": "cmdOk"}]


INVALID = {
    "resp": {
        "type": "chatCmdError",
        "chatError": {"type": "error", "errorType": {"type": "commandError", "message": "invalid request"}},
    }
}


async def test_a_refusal_without_an_id_ends_the_only_command(autojump_clock: trio.testing.MockClock) -> None:
    async with linked() as (link, core), trio.open_nursery() as nursery:
        done = Outcomes(link)
        nursery.start_soon(done.send, "/x")
        await core.request()
        await core.say(INVALID)
        await trio.testing.wait_all_tasks_blocked()
        assert done.of["/x"] == ["error/commandError"]
        assert link.down_since is None


async def test_a_refusal_without_an_id_among_several_commands_ends_the_connection(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with linked() as (link, core), trio.open_nursery() as nursery:
        done = Outcomes(link)
        nursery.start_soon(done.send, "/x")
        nursery.start_soon(done.send, "/y")
        await core.request()
        await core.request()
        await core.say(INVALID)
        assert (await link.events.receive())["type"] == "linkDown"
        assert (await link.events.receive())["type"] == "linkUp"
        await trio.testing.wait_all_tasks_blocked()
        assert done.of == {"/x": ["link/lost"], "/y": ["link/lost"]}


@pytest.mark.parametrize("broken", [True, False])
async def test_a_loss_fails_what_is_in_flight_and_says_so_among_the_events(
    broken: bool, autojump_clock: trio.testing.MockClock
) -> None:
    async with linked() as (link, core), trio.open_nursery() as nursery:
        done = Outcomes(link)
        nursery.start_soon(done.send, "/x")
        await core.request()
        await core.say({"resp": {"type": "before"}})
        core.refusing = True
        if broken:
            core.break_connection()
        else:
            await core.connection.aclose()
        assert (await link.events.receive())["type"] == "before"
        down = await link.events.receive()
        assert down["type"] == "linkDown"
        assert down["reason"]
        await trio.testing.wait_all_tasks_blocked()
        assert done.of["/x"] == ["link/lost"]
        assert link.down_since == pytest.approx(1000.0, abs=1)
        asked_at = trio.current_time()
        with pytest.raises(LinkLost) as caught:
            await link.send("/y")
        assert caught.value.tag == "link/down"
        assert trio.current_time() == asked_at
        core.refusing = False
        assert await link.events.receive() == {"type": "linkUp"}
        assert link.down_since is None
        await core.say({"resp": {"type": "after"}})
        assert (await link.events.receive())["type"] == "after"
        with trio.move_on_after(60):
            assert await core.request() is None, "a command was repeated"


async def test_it_tries_again_for_ever_at_most_every_thirty_seconds(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with linked() as (link, core):
        core.refusing = True
        core.break_connection()
        assert (await link.events.receive())["type"] == "linkDown"
        await trio.sleep(3000)
        core.refusing = False
        assert (await link.events.receive())["type"] == "linkUp"
        pauses = [b - a for a, b in zip(core.dials[1:], core.dials[2:], strict=False)]
        assert len(pauses) > 100
        assert pauses[0] <= 0.2
        assert all(15 <= pause <= 30 for pause in pauses[12:])
        assert len(set(pauses[12:])) > 50, "pauses differ from each other"
        assert link.events.statistics().current_buffer_used == 0, "one linkDown for one loss"


async def test_a_core_that_ends_each_connection_at_once_is_not_asked_in_a_hurry(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with linked() as (link, core):
        async with trio.open_nursery() as nursery:

            async def break_each() -> None:
                async for event in link.events:
                    if event["type"] == "linkUp":
                        core.break_connection()

            nursery.start_soon(break_each)
            core.break_connection()
            await trio.sleep(1000)
            nursery.cancel_scope.cancel()
        assert 30 < core.opened < 100


async def test_after_a_steady_connection_the_first_pause_is_short_again(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with linked() as (link, core):
        core.refusing = True
        core.break_connection()
        await trio.sleep(300)
        core.refusing = False
        await trio.sleep(100)
        assert link.down_since is None
        lost_at = trio.current_time()
        core.break_connection()
        await trio.sleep(5)
        assert link.down_since is None
        assert core.dials[-1] - lost_at <= 0.1


@pytest.mark.parametrize("seed", range(25))
async def test_each_command_has_one_outcome_wherever_the_connection_breaks(
    seed: int, autojump_clock: trio.testing.MockClock
) -> None:
    rng = random.Random(seed)
    seen: list[str] = []
    events: list[str] = []
    async with linked() as (link, core), trio.open_nursery() as nursery:
        done = Outcomes(link)

        async def client() -> None:
            for n in range(200):
                await trio.sleep(rng.random() / 10)
                nursery.start_soon(done.send, f"/n {n}")

        async def answers() -> None:
            async for request in core.requests:
                seen.append(request["cmd"])
                nursery.start_soon(answer, request, core.connection)

        async def answer(request: dict[str, Any], connection: Any) -> None:
            await trio.sleep(rng.random() / 5)
            if connection is core.connection and not connection.closed:
                await core.answer(request, echo=request["cmd"])

        async def listen() -> None:
            events.extend([event["type"] async for event in link.events])

        nursery.start_soon(client)
        nursery.start_soon(answers)
        nursery.start_soon(listen)
        for _ in range(8):
            await trio.sleep(rng.random() * 3)
            core.break_connection()
        await trio.sleep(120)
        nursery.cancel_scope.cancel()

    assert len(done.of) == 200
    for command, outcomes in done.of.items():
        assert len(outcomes) == 1
        if outcomes[0] == "link/down":
            assert command not in seen, "what is said not to be done was not sent"
        elif outcomes[0] != "link/lost":
            assert outcomes[0] == {"type": "cmdOk", "echo": command}
    assert len(seen) == len(set(seen)), "no command is sent twice"
    assert events == ["linkDown", "linkUp"] * (len(events) // 2)


async def test_a_cancelled_wait_leaves_the_link_usable_and_the_late_answer_is_dropped(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with linked() as (link, core), trio.open_nursery() as nursery:
        done = Outcomes(link)
        with trio.move_on_after(1):
            await link.send("/slow")
        slow = await core.request()
        nursery.start_soon(done.send, "/quick")
        quick = await core.request()
        await core.answer(slow, echo="slow")
        await core.answer(quick, echo="quick")
        await trio.testing.wait_all_tasks_blocked()
        assert done.of["/quick"] == [{"type": "cmdOk", "echo": "quick"}]
        assert not caplog.records


async def test_a_command_cancelled_before_it_is_written_is_never_sent(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with linked() as (link, core):
        with trio.CancelScope() as scope:
            scope.cancel()
            await link.send("/never")
        with trio.move_on_after(10):
            assert await core.request() is None


@pytest.mark.parametrize("steps", range(12))
async def test_a_cancellation_at_any_step_of_a_send_leaves_whole_frames(
    steps: int, autojump_clock: trio.testing.MockClock
) -> None:
    async with linked() as (link, core), trio.open_nursery() as nursery:
        done = Outcomes(link)
        async with trio.open_nursery() as inner:
            inner.start_soon(done.send, "/big " + "x" * 300_000)
            for _ in range(steps):
                await trio.lowlevel.checkpoint()
            inner.cancel_scope.cancel()
        nursery.start_soon(done.send, "/after")
        while (request := await core.request())["cmd"] != "/after":
            assert len(request["cmd"]) == 300_005
        await core.answer(request)
        await trio.testing.wait_all_tasks_blocked()
        assert done.of["/after"] == [{"type": "cmdOk"}]
        assert core.opened == 1


async def test_frames_of_five_megabytes_pass_both_ways(autojump_clock: trio.testing.MockClock) -> None:
    async with linked() as (link, core), trio.open_nursery() as nursery:
        done = Outcomes(link)
        text = "é" * (5 * 1024 * 1024)
        nursery.start_soon(done.send, text)
        request = await core.request()
        assert request["cmd"] == text
        await core.answer(request, echo=text)
        await core.say({"resp": {"type": "big", "text": text}})
        assert (await link.events.receive())["text"] == text
        assert done.of[text] == [{"type": "cmdOk", "echo": text}]


async def test_events_wait_without_limit_for_a_reader_that_is_busy(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with linked() as (link, core), trio.open_nursery() as nursery:
        for n in range(5000):
            await core.say({"resp": {"type": "event", "n": n}})
        done = Outcomes(link)
        nursery.start_soon(done.send, "/x")
        await core.answer(await core.request())
        await trio.testing.wait_all_tasks_blocked()
        assert done.of["/x"] == [{"type": "cmdOk"}]
        assert [(await link.events.receive())["n"] for _ in range(5000)] == list(range(5000))


class Silence(trio.abc.Stream):
    """A network that swallows everything once `deaf`."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self.stream = stream
        self.deaf = False

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        if not self.deaf:
            await self.stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await trio.lowlevel.checkpoint()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        data = await self.stream.receive_some(max_bytes)
        if self.deaf:
            await trio.sleep_forever()
        return data

    async def aclose(self) -> None:
        await self.stream.aclose()


@asynccontextmanager
async def silenced() -> AsyncIterator[tuple[Link, FakeCore, list[Silence]]]:
    streams: list[Silence] = []
    with trio.fail_after(3600):
        async with trio.open_nursery() as nursery:
            core = FakeCore(nursery)

            async def dial(address: Any) -> trio.abc.Stream:
                streams.append(Silence(await core.dial(address)))
                return streams[-1]

            async with open_link(dial=dial) as link:
                yield link, core, streams
            nursery.cancel_scope.cancel()


async def test_a_core_that_answers_pings_keeps_its_connection_for_days(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with silenced() as (link, core, streams):
        with trio.move_on_after(3000):
            await link.events.receive()
        assert len(streams) == 1
        assert core.opened == 1


async def test_a_core_that_is_gone_without_a_word_is_found_by_its_missing_pong(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with silenced() as (link, _core, streams), trio.open_nursery() as nursery:
        done = Outcomes(link)
        streams[0].deaf = True
        lost_at = trio.current_time()
        nursery.start_soon(done.send, "/x")
        assert (await link.events.receive())["type"] == "linkDown"
        assert trio.current_time() - lost_at < 60
        assert done.of["/x"] == ["link/lost"]
        assert (await link.events.receive())["type"] == "linkUp"


async def test_a_core_that_works_on_two_commands_may_leave_pings_unanswered_for_minutes(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with silenced() as (link, _core, streams), trio.open_nursery() as nursery:
        done = Outcomes(link)
        nursery.start_soon(done.send, "/slow")
        nursery.start_soon(done.send, "/next")
        await trio.testing.wait_all_tasks_blocked()
        streams[0].deaf = True
        with trio.move_on_after(240):
            await link.events.receive()
        assert link.down_since is None
        assert (await link.events.receive())["type"] == "linkDown"


async def test_a_core_that_does_not_answer_at_first_is_a_user_error(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def dial(_: Any) -> trio.abc.Stream:
        await trio.sleep_forever()
        raise AssertionError

    with pytest.raises(UserError, match="does not answer") as caught:
        async with open_link(dial=dial):
            pass
    assert "simplex-chat -p 5225" in str(caught.value)
    assert "\n" not in str(caught.value)


async def test_nothing_there_at_first_is_a_user_error_that_says_how_to_start_it(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    core = FakeCore(nursery)
    core.refusing = True
    with pytest.raises(UserError) as caught:
        async with open_link(core):
            pass
    assert str(caught.value) == (
        "No SimpleX core at ws://127.0.0.1:5225: nothing listens there. Start it with: "
        "simplex-chat -p 5225 -d FOLDER/simplex --create-bot-display-name NAME"
    )
    assert caught.value.code == 1


async def test_an_error_of_the_body_leaves_the_link_bare(autojump_clock: trio.testing.MockClock) -> None:
    class OwnError(Exception):
        pass

    async with trio.open_nursery() as nursery:
        core = FakeCore(nursery)
        with pytest.raises(OwnError):
            async with open_link(core):
                raise OwnError
        nursery.cancel_scope.cancel()


async def test_the_end_tells_the_core_and_closes_the_events(autojump_clock: trio.testing.MockClock) -> None:
    async with trio.open_nursery() as nursery:
        core = FakeCore(nursery)
        async with open_link(core) as link:
            began = trio.current_time()
        assert trio.current_time() == began
        assert core.connection.closed.code == 1000
        with pytest.raises(trio.EndOfChannel):
            await link.events.receive()
        with pytest.raises(LinkLost, match="closed"):
            await link.send("/x")
        nursery.cancel_scope.cancel()


async def test_the_end_fails_commands_that_are_still_in_flight(autojump_clock: trio.testing.MockClock) -> None:
    async with trio.open_nursery() as nursery:
        core = FakeCore(nursery)
        async with open_link(core) as link:
            done = Outcomes(link)
            nursery.start_soon(done.send, "/x")
            await core.request()
        await trio.testing.wait_all_tasks_blocked()
        assert done.of["/x"] == ["link/lost"]
        nursery.cancel_scope.cancel()


async def test_the_end_does_not_wait_for_a_core_that_is_silent(autojump_clock: trio.testing.MockClock) -> None:
    async with trio.open_nursery() as nursery:
        core = FakeCore(nursery)
        silence: list[Silence] = []

        async def dial(address: Any) -> trio.abc.Stream:
            silence.append(Silence(await core.dial(address)))
            return silence[0]

        async with open_link(dial=dial):
            silence[0].deaf = True
            began = trio.current_time()
        assert trio.current_time() - began <= 2
        nursery.cancel_scope.cancel()


async def test_the_end_while_the_link_is_down_comes_at_once(autojump_clock: trio.testing.MockClock) -> None:
    async with trio.open_nursery() as nursery:
        core = FakeCore(nursery)
        async with open_link(core) as link:
            core.refusing = True
            core.break_connection()
            await trio.sleep(100)
            began = trio.current_time()
        assert trio.current_time() == began
        assert link.down_since is not None
        nursery.cancel_scope.cancel()


async def test_a_cancelled_body_ends_without_waiting(autojump_clock: trio.testing.MockClock) -> None:
    async with trio.open_nursery() as nursery:
        core = FakeCore(nursery)
        with trio.move_on_after(5) as scope:
            async with open_link(core):
                await trio.sleep_forever()
        assert scope.cancelled_caught
        assert trio.current_time() == pytest.approx(5)
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("steps", range(40))
async def test_a_cancellation_at_any_step_of_opening_leaves_nothing_behind(
    steps: int, autojump_clock: trio.testing.MockClock
) -> None:
    async with trio.open_nursery() as nursery:
        core = FakeCore(nursery)

        async def use() -> None:
            async with open_link(core) as link:
                await link.send("/x")

        async with trio.open_nursery() as inner:
            inner.start_soon(use)
            for _ in range(steps):
                await trio.lowlevel.checkpoint()
            inner.cancel_scope.cancel()
        nursery.cancel_scope.cancel()


async def test_what_no_link_can_carry_is_refused_before_it_is_sent(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with linked() as (link, core):
        for command in ("/x \ud800", "/x \0"):
            with pytest.raises(Refused):
                await link.send(command)
        with trio.move_on_after(1):
            assert await core.request() is None


async def test_nothing_of_what_is_sent_or_received_is_logged(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with linked() as (link, core), trio.open_nursery() as nursery:
        done = Outcomes(link)
        nursery.start_soon(done.send, "/_send @4 json SECRET-OUT")
        await core.request()
        await core.say("SECRET-IN")
        await core.say({"resp": {"type": "x", "text": "SECRET-IN"}})
        await core.say({"corrId": "99", "resp": {"type": "SECRET-IN"}})
        await link.events.receive()
        await trio.testing.wait_all_tasks_blocked()
        core.break_connection()
        assert (await link.events.receive())["type"] == "linkDown"
    assert "SECRET" not in caplog.text


async def test_another_client_of_the_core_is_reported_once_and_its_end_too(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    count = 0
    async with trio.open_nursery() as nursery:
        core = FakeCore(nursery)
        async with open_link(core, others=lambda _: count) as link:
            await trio.sleep(100)
            assert link.events.statistics().current_buffer_used == 0
            count = 2
            assert await link.events.receive() == {"type": "linkShared", "clients": 2}
            assert "2" in caplog.text
            await trio.sleep(100)
            assert link.events.statistics().current_buffer_used == 0
            count = 0
            assert await link.events.receive() == {"type": "linkShared", "clients": 0}
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    "noise",
    [
        b"\xff" * 64,
        b"\x81\x02\xff\xfe",
        b"\x81\x82abcdxx",
        b"\x88\x01\x00",
        b"\x83\x00",
        b"\x09\x05ping!",
        b"GET / HTTP/1.1\r\n\r\n",
    ],
    ids=["reserved bits", "no UTF-8", "masked", "half a close code", "unknown kind", "half a ping", "HTTP"],
)
async def test_bytes_that_are_no_websocket_end_the_connection_and_not_the_link(
    noise: bytes, autojump_clock: trio.testing.MockClock
) -> None:
    async with linked() as (link, core), trio.open_nursery() as nursery:
        done = Outcomes(link)
        nursery.start_soon(done.send, "/x")
        await core.request()
        await core.stream.send_all(noise)
        assert (await link.events.receive())["type"] == "linkDown"
        assert (await link.events.receive())["type"] == "linkUp"
        assert done.of["/x"] == ["link/lost"]
        nursery.start_soon(done.send, "/y")
        await core.answer(await core.request())
        await trio.testing.wait_all_tasks_blocked()
        assert done.of["/y"] == [{"type": "cmdOk"}]
