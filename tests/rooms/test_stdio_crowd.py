"""Several server processes on one database: numbers, takeovers, and processes that are killed."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from simplexmcp.rooms.protocol import read_result
from tests.rooms.client import InProcess, Server
from tests.rooms.watchers import until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def stored(path: Path) -> list[tuple[int, str, str]]:
    """All messages of the database: number, author, text."""
    with InProcess(path) as reader:
        rows = reader.database.all("SELECT seq, agent_id, body FROM messages ORDER BY seq")
    return [(row["seq"], row["agent_id"], row["body"]) for row in rows]


def together(works: list[Callable[[], None]]) -> None:
    """Runs the works at the same time."""
    faults: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - told to the test below
            faults.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []


@pytest.mark.parametrize("writers", [2, 4, 16])
def test_processes_that_post_at_once_share_one_dense_row_of_numbers(
    server: Callable[..., Server], path: Path, writers: int
):
    crowd = [server(handshake=False) for _ in range(writers)]
    each = 160 // writers
    answered: dict[int, tuple[str, str]] = {}

    def work(talk: Server) -> Callable[[], None]:
        def run() -> None:
            author = talk.enter_room("hall").agent_id
            for number in range(each):
                content = f"{author} {number}"
                seq = talk.call("post_message", content=content)["seq"]
                assert seq not in answered
                answered[seq] = (author, content)

        return run

    together([work(talk) for talk in crowd])
    assert [(seq, *answered[seq]) for seq in sorted(answered)] == stored(path)
    assert sorted(answered) == list(range(1, writers * each + 1))


def test_a_killed_process_loses_nothing_that_it_answered(server: Callable[..., Server], path: Path):
    victims = [server(handshake=False) for _ in range(3)]
    answered: list[str] = []

    def work(talk: Server, limit: int) -> Callable[[], None]:
        def run() -> None:
            author = talk.enter_room("hall").agent_id
            keys = {talk.start("post_message", content=f"{author} {n}"): f"{author} {n}" for n in range(300)}
            for count, (key, content) in enumerate(keys.items()):
                if count == limit:
                    talk.process.kill()  # while it posts
                try:
                    answer = talk.answer(key)
                except EOFError:
                    return
                assert json.loads(read_result(answer["result"])[1])["posted"] is True
                answered.append(content)

        return run

    together([work(talk, limit) for talk, limit in zip(victims, (5, 20, 60), strict=True)])
    rows = stored(path)
    assert {content for _, _, content in rows} >= set(answered)
    assert len(answered) >= 5 + 20 + 60
    assert [seq for seq, _, _ in rows] == list(range(1, len(rows) + 1))
    with InProcess(path) as other:
        assert other.database.value("PRAGMA integrity_check") == "ok"
        other.enter_room("hall")
        assert other.call("post_message", content="life goes on")["seq"] == len(rows) + 1


def test_a_post_that_was_never_answered_is_sent_again_and_stored_once(server: Callable[..., Server], path: Path):
    first = server()
    persona = first.enter_room("hall")
    posted = first.call("post_message", content="once", client_message_id="k1")
    first.kill()  # whether its answer arrived is not known to the next session
    second = server()
    second.resume(persona)
    second.call("join_room", room="hall")
    again = second.call("post_message", content="once", client_message_id="k1")
    assert (again["seq"], again["deduplicated"]) == (posted["seq"], True)
    assert len(stored(path)) == 1


def test_two_processes_that_drain_one_personas_backlog_share_it_out_without_gap_or_double(
    server: Callable[..., Server], runtime: Callable[..., InProcess]
):
    writer = runtime()
    first, second = server(), server()
    persona = first.enter_room("hall")
    writer.enter_room("hall")
    for number in range(120):
        writer.call("post_message", content=str(number))
    got: list[list[str]] = [[], []]

    def drain(talk: Server, into: list[str]) -> None:
        while True:
            failed, text = talk.text("catch_up", room="hall", limit=3)
            page: dict[str, Any] = json.loads(text)
            if failed:
                assert page["code"] == "persona_lost"
                return
            if not page["messages"]:
                return
            into.extend(message["content"] for message in page["messages"])

    def take_over() -> None:
        until(lambda: len(got[0]) >= 9)  # the first one is in the middle of it
        second.resume(persona)
        drain(second, got[1])

    together([lambda: drain(first, got[0]), take_over])
    assert got[0] + got[1] == [str(number) for number in range(120)]
    assert got[0]
    assert first.call("whoami") == {"bound": False, "joined": False}
