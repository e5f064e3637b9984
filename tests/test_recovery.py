"""After a crash: each card of the run before gets its last line, once, and no card of this run is touched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from trio.testing import MockClock

from simplexmcp.journal import read_journal
from tests.e2e.stack import open_scene

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.stack import Scene

CANCELLED = "\nCancelled: the server stopped."
INTERRUPTED = "\nApproved by Alice; interrupted: the server stopped. Check the chat before asking again."


@pytest.fixture(autouse=True)
def fast_clock() -> MockClock:
    return MockClock()


async def crash(scene: Scene) -> None:
    """The server is killed, and started again."""
    await scene.stack.kill()
    await scene.stack.settle()
    await scene.stack.start()
    await scene.stack.settle()


def left(tmp_path: Path) -> list[dict[str, Any]]:
    return read_journal(tmp_path / "data" / "actions.jsonl")


async def test_a_pending_card_is_cancelled_and_the_journal_is_empty_again(
    tmp_path: Path, fast_clock: MockClock
) -> None:
    async with open_scene(tmp_path, fast_clock) as scene:
        await scene.ask("hello")
        assert [entry["n"] for entry in left(tmp_path)] == [2]
        await crash(scene)
        assert scene.card("`hello`") == f"I want to send a message to group Trail (#2): `hello`{CANCELLED}"
        assert left(tmp_path) == []


async def test_a_card_whose_number_the_crash_kept_from_the_journal_is_found_by_its_text(
    tmp_path: Path, fast_clock: MockClock
) -> None:
    async with open_scene(tmp_path, fast_clock) as scene:
        scene.stack.link.hold("/_send #1", done=True)
        await scene.ask("hello")
        assert "card" not in left(tmp_path)[0]
        await crash(scene)
        assert scene.card("`hello`").endswith(CANCELLED)
        assert left(tmp_path) == []


async def test_a_card_that_was_never_posted_leaves_nothing(tmp_path: Path, fast_clock: MockClock) -> None:
    async with open_scene(tmp_path, fast_clock) as scene:
        scene.stack.link.hold("/_send #1")
        await scene.ask("hello")
        await crash(scene)
        assert not scene.sees("hello")
        assert left(tmp_path) == []


async def test_a_word_that_the_journal_lost_with_the_machine_is_known_from_the_audit_log(
    tmp_path: Path, fast_clock: MockClock
) -> None:
    async with open_scene(tmp_path, fast_clock) as scene:
        await scene.ask("hello")
        scene.stack.link.hold("/_send #2", done=True)
        await scene.tap("approve 2")
        await scene.stack.kill()
        journal = tmp_path / "data" / "actions.jsonl"
        kept = [line for line in journal.read_text().splitlines(keepends=True) if "performing" not in line]
        journal.write_text("".join(kept))
        await scene.stack.start()
        await scene.stack.settle()
        assert scene.card("`hello`").endswith(INTERRUPTED)
        assert scene.heard() == ["hello"]


async def test_a_number_that_only_the_audit_log_knows_is_not_given_again(tmp_path: Path, fast_clock: MockClock) -> None:
    async with open_scene(tmp_path, fast_clock) as scene:
        scene.stack.link.hold("/_set custom #1")
        await scene.ask("hello")
        await scene.stack.kill()
        (tmp_path / "data" / "actions.jsonl").write_text("")
        await scene.stack.start()
        await scene.ask("hello")
        assert scene.card("`hello`").endswith("or /'reject #2 3'")


async def test_an_outcome_that_the_crash_kept_from_its_card_is_shown_by_the_next_start(
    tmp_path: Path, fast_clock: MockClock
) -> None:
    async with open_scene(tmp_path, fast_clock) as scene:
        scene.stack.link.hold("/_update item #1")
        for number, text in ((2, "done"), (3, "rejected")):
            await scene.ask(text)
            await scene.tap(f"{'approve' if text == 'done' else 'reject'} {number}")
        await crash(scene)
        assert scene.card("`done`") == "I sent a message to group Trail (#2): `done`\nApproved by Alice."
        assert scene.card("`rejected`").endswith("\nRejected by Alice.")
        assert left(tmp_path) == []


async def test_a_long_card_keeps_its_command_to_show_it(tmp_path: Path, fast_clock: MockClock) -> None:
    async with open_scene(tmp_path, fast_clock) as scene:
        await scene.ask("x" * 13_500)
        await crash(scene)
        card = scene.card("characters not shown")
        assert "/'show 2'" in card
        assert card.endswith(CANCELLED)
        await scene.tap("show 2")
        assert scene.sees("Action 2 is not kept: its result was delivered, or there is no such number.")


async def test_a_card_that_the_owner_deleted_or_that_is_too_old_gets_its_line_as_a_message(
    tmp_path: Path, fast_clock: MockClock
) -> None:
    async with open_scene(tmp_path, fast_clock) as scene:
        await scene.ask("hello")
        await scene.stack.kill()
        scene.stack.clock.jump(25 * 3600)
        await scene.stack.start()
        await scene.stack.settle()
        assert scene.card("`hello`").endswith(CANCELLED)
        assert sum("`hello`" in text for text in scene.alice.texts(scene.room)) == 2
        assert left(tmp_path) == []


async def test_what_was_under_way_without_a_card_is_told_in_a_message(tmp_path: Path, fast_clock: MockClock) -> None:
    async with open_scene(tmp_path, fast_clock) as scene:
        await scene.tap("approve #2 all")
        scene.stack.link.hold("/_send #2", done=True)
        await scene.ask("hello")
        await crash(scene)
        assert scene.card("`hello`").endswith(INTERRUPTED)
        assert scene.heard() == ["hello"]


async def test_a_link_that_is_lost_during_it_does_not_end_it(tmp_path: Path, fast_clock: MockClock) -> None:
    async with open_scene(tmp_path, fast_clock) as scene:
        await scene.ask("one")
        await scene.ask("two")
        await scene.stack.kill()
        scene.stack.network.faults.drop("agent", "/_update item")
        await scene.stack.start()
        await scene.stack.settle(5)
        assert scene.card("`one`").endswith(CANCELLED)
        assert scene.card("`two`").endswith(CANCELLED)


async def test_the_same_request_in_the_next_run_has_a_card_of_its_own_that_is_left_alone(
    tmp_path: Path, fast_clock: MockClock
) -> None:
    async with open_scene(tmp_path, fast_clock) as scene:
        scene.stack.link.hold("/_send #1")
        await scene.ask("hello")
        await scene.stack.kill()
        await scene.stack.start()
        await scene.ask("hello")
        await scene.stack.settle(10)
        assert scene.card("`hello`").endswith("or /'reject #2 3'")
        await scene.tap("approve 3")
        assert scene.heard() == ["hello"]
