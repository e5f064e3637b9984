"""What the owners are told of files: kept over a lost link, and no defect in it ends the server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import trio

from simplexmcp.errors import CoreError, LinkLost
from simplexmcp.owner_files import OwnerFiles, OwnerNews
from tests.e2e.filing import filing

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from simplexmcp.cards import Card
    from simplexmcp.files.outgoing import SentCopy


class Posts:
    """A control chat whose posts fail with what is in `errors`, first come first served."""

    def __init__(self, *errors: Exception) -> None:
        self.errors, self.posted, self.tries = list(errors), list[str](), 0

    async def post(self, card: Card) -> int:
        await trio.lowlevel.checkpoint()
        self.tries += 1
        if self.errors:
            raise self.errors.pop(0)
        self.posted.append(card.text)
        return 1


async def test_news_wait_for_the_link_and_come_in_their_order(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    posts, lines = Posts(LinkLost("link/down", "down"), LinkLost("link/down", "down")), list[str]()
    news = OwnerNews(posts.post, lines.append)
    nursery.start_soon(news.run)
    news.failed("one")
    news.failed("two")
    await trio.sleep(100)
    assert (posts.tries, posts.posted) == (1, [])
    for _ in range(2):
        news.link_is_back()
        await trio.sleep(1)
    assert (posts.tries, posts.posted, lines) == (4, ["one", "two"], [])


async def test_news_that_never_get_through_are_given_up_and_the_next_ones_are_told(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    posts, lines = Posts(*[LinkLost("link/down", "down")] * 5), list[str]()
    news = OwnerNews(posts.post, lines.append)
    nursery.start_soon(news.run)
    news.failed("one")
    news.failed("two")
    for _ in range(20):
        await trio.sleep(1)
        news.link_is_back()
    assert posts.posted == ["two"]
    assert len(lines) == 1


async def test_a_defect_in_a_post_does_not_end_what_the_owners_are_told(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    posts, lines = Posts(IndexError("x")), list[str]()
    news = OwnerNews(posts.post, lines.append)
    nursery.start_soon(news.run)
    news.failed("one")
    news.failed("two")
    await trio.sleep(1)
    assert posts.posted == ["two"]
    assert "Internal error" in lines[0]
    assert "IndexError" in caplog.text


async def test_a_defect_in_a_forward_is_told_and_the_server_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: Any) -> None:
        raise IndexError("x")

    monkeypatch.setattr(OwnerFiles, "_post_file", broken)
    async with filing(tmp_path) as scene, trio.open_nursery() as nursery:
        nursery.start_soon(scene.result_of_download, await scene.offered())
        await scene.card("I want to download")
        await scene.tap(f"forward {scene.chat} 2")
        assert "Internal error" in await scene.card("not received")
        assert not scene.server.ended.is_set()
        nursery.cancel_scope.cancel()


async def test_a_copy_that_cannot_be_deleted_does_not_hide_why_a_forward_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with filing(tmp_path) as scene, trio.open_nursery() as nursery:
        nursery.start_soon(scene.result_of_download, await scene.offered())
        await scene.card("I want to download")

        async def refused(*_: Any) -> list[dict[str, Any]]:
            raise CoreError("errorAgent/told", "the core said no")

        def stays(*_: Any) -> None:
            raise OSError(5, "Input/output error")

        monkeypatch.setattr("simplexmcp.owner_files._composed", lambda *_: {})
        monkeypatch.setattr("simplexmcp.files.folders._remove", stays)
        real = OwnerFiles._post_file

        async def post_file(owner_files: OwnerFiles, action: Any, file: Any, copy: SentCopy) -> None:
            with monkeypatch.context() as patch:
                patch.setattr(owner_files._api, "send_messages", refused)
                await real(owner_files, action, file, copy)

        monkeypatch.setattr(OwnerFiles, "_post_file", post_file)
        await scene.tap(f"forward {scene.chat} 2")
        assert "the core said no" in await scene.card("not received")
        nursery.cancel_scope.cancel()
