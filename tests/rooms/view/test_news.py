"""What a tab hears of the rooms, without asking."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

import trio
import trio.testing

from simplexmcp.rooms.view import news
from simplexmcp.rooms.wake import Wake
from tests.rooms.view.view import frame, viewing
from tests.web.site import closing

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    from tests.rooms.client import InProcess


def names(got: dict[str, Any]) -> set[str]:
    return {room["name"] for room in got["rooms"]}


async def test_a_tab_hears_all_rooms_first_and_then_each_that_changes(path: Path, alice: InProcess) -> None:
    alice.enter_room("a")
    alice.call("create_room", name="b")
    async with viewing(path) as view, view.socket() as stream:
        hello = await frame(stream)
        assert (hello["push"], names(hello), hello["trouble"]) == ("hello", {"a", "b"}, None)
        alice.call("post_message", content="one")
        got = await frame(stream, lambda got: got["rooms"])
        assert got["push"] == "news"
        assert [(room["name"], room["latest"]) for room in got["rooms"]] == [("a", 1)]
        alice.call("delete_room", room="b", confirm=True)
        assert (await frame(stream, lambda got: got["gone"]))["gone"] == [2]


async def test_many_tabs_hear_the_same_and_one_that_left_disturbs_nobody(path: Path, alice: InProcess) -> None:
    alice.enter_room("a")
    async with viewing(path) as view, view.socket() as first:
        async with view.socket() as second:
            assert names(await frame(first)) == names(await frame(second)) == {"a"}
            alice.call("post_message", content="one")
            for stream in (first, second):
                assert (await frame(stream, lambda got: got["rooms"]))["rooms"][0]["latest"] == 1
        alice.call("post_message", content="two")
        assert (await frame(first, lambda got: got["rooms"]))["rooms"][0]["latest"] == 2


async def test_a_write_that_changes_no_room_is_told_without_naming_one(path: Path, alice: InProcess) -> None:
    alice.enter_room("a")
    async with viewing(path) as view, view.socket() as stream:
        await frame(stream)
        alice.call("claim", key="file:x")
        got = await frame(stream)
        assert (got["push"], got["rooms"], got["gone"]) == ("news", [], [])


async def test_a_post_of_a_person_is_heard_like_any_other(path: Path, alice: InProcess) -> None:
    alice.enter_room("a")
    async with viewing(path) as view, view.socket() as stream:
        await frame(stream)
        await view.post("join", room=1, name="ann")
        assert (await frame(stream, lambda got: got["rooms"]))["rooms"][0]["members"] == 2
        await view.post("post", room=1, name="ann", body="hi")
        assert (await frame(stream, lambda got: got["rooms"]))["rooms"][0]["latest"] == 1


async def test_a_tab_hears_when_the_database_comes(
    path: Path, runtime: Callable[..., InProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(news, "POLL", 0.01)
    async with viewing(path) as view, view.socket() as stream:
        hello = await frame(stream)
        assert hello["rooms"] == []
        assert "no database" in hello["trouble"]
        runtime().enter_room("first")
        got = await frame(stream, lambda got: got["rooms"])
        assert (names(got), got["trouble"]) == ({"first"}, None)


async def test_rooms_of_a_database_that_is_gone_are_kept_while_the_trouble_is_told(
    path: Path, runtime: Callable[..., InProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(news, "_TICK", 0.05)
    with runtime() as agent:
        agent.enter_room("first")
    async with viewing(path) as view, view.socket() as stream:
        await frame(stream)
        path.rename(path.with_suffix(".aside"))
        got = await frame(stream, lambda got: got["trouble"])
        assert ("no database" in got["trouble"], got["gone"]) == (True, [])
        path.with_suffix(".aside").rename(path)
        assert (await frame(stream, lambda got: got["trouble"] is None))["gone"] == []


async def test_where_the_kernel_tells_nothing_the_file_is_asked(
    path: Path, alice: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Wake, "fileno", lambda _self: None)
    monkeypatch.setattr(news, "POLL", 0.01)
    alice.enter_room("a")
    async with viewing(path) as view, view.socket() as stream:
        await frame(stream)
        alice.call("post_message", content="one")
        assert (await frame(stream, lambda got: got["rooms"]))["rooms"][0]["latest"] == 1


async def test_nothing_is_asked_on_the_stream(path: Path, alice: InProcess) -> None:
    alice.enter_room("a")
    async with viewing(path) as view, view.socket() as stream:
        await frame(stream)
        await stream.send_message("rooms?")
        code, reason = await closing(stream)
        assert (code, "Nothing is asked" in reason) == (1008, True)


async def test_without_a_tab_the_database_is_left_alone(
    path: Path, alice: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice.enter_room("a")
    looks: list[Any] = []
    real = news.News._look

    async def counted(self: news.News) -> None:
        looks.append(self)
        await real(self)

    monkeypatch.setattr(news.News, "_look", counted)
    async with viewing(path) as view:
        alice.call("post_message", content="one")
        assert (await view.get("rooms"))[0] == 200
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert looks == []
        async with view.socket() as stream:
            assert (await frame(stream))["rooms"][0]["latest"] == 1


async def test_a_burst_of_posts_is_few_pieces_of_news(path: Path, alice: InProcess) -> None:
    alice.enter_room("a")
    async with viewing(path) as view, view.socket() as stream:
        await frame(stream)
        with sqlite3.connect(path, isolation_level=None) as writer:
            for number in range(1, 201):
                writer.execute(
                    "INSERT INTO messages (room_id, seq, agent_id, body, body_len) SELECT 1, ?, id, 'x', 1 FROM agents",
                    (number,),
                )
        writer.close()
        count = 1
        while (await frame(stream, lambda got: got["rooms"]))["rooms"][0]["latest"] < 200:
            count += 1
        assert count < 20
