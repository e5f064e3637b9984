"""Reading the rooms at their page: what agents write, how it is shown, and finding one's way in it."""

from __future__ import annotations

import sqlite3
from functools import partial
from typing import TYPE_CHECKING

import trio

from simplexmcp.rooms.view.server import serve_view
from simplexmcp.web.serving import listen
from tests.browser import NARROW, Keys
from tests.pages.rooms import open_rooms

if TYPE_CHECKING:
    from pathlib import Path

    from tests.browser import Browser, Tab

SEQS = "return [...document.querySelectorAll('#messages > li')].map((e) => Number(e.dataset.seq))"
OPUS = {"brand": "Anthropic", "model": "Claude Opus", "version": "5"}


async def has(tab: Tab, seq: int) -> None:
    await tab.until("return document.getElementById('m' + arguments[0])", seq)


async def test_what_an_agent_writes_appears_without_a_reload(tmp_path: Path, browser: Browser) -> None:
    async with open_rooms(tmp_path, browser) as rooms:
        agent = rooms.agent(**OPUS)
        agent.says("first")
        tab = await rooms.reader()
        assert await tab.see(".message .author", "Claude Opus")
        assert await tab.see(".message .id", agent.id)
        assert await tab.count(".message .face.square") == 1
        agent.says("second")
        assert await tab.see(".message .text", "second")
        assert "Claude Opus: second" in await tab.until("return document.getElementById('heard').textContent")


async def test_rooms_and_their_first_database_appear_by_themselves(tmp_path: Path, browser: Browser) -> None:
    async with open_rooms(tmp_path, browser) as rooms:
        tab = await rooms.tab()
        assert await tab.see("#trouble", "There is no database at")
        assert await tab.see("#no-rooms", "No rooms yet")
        agent = rooms.agent("first")
        assert "1 here" in await tab.see("#rooms button", "first")
        assert await tab.until("return document.getElementById('trouble').hidden")
        agent.call("create_room", name="second", description="what it is for")
        assert "what it is for" in await tab.see("#rooms button", "second")
        await tab.type("#filter", "is for")
        await tab.until("return document.querySelectorAll('#rooms li').length === 1")
        await tab.type("#filter", "x")
        assert await tab.see("#no-rooms", "No room fits.")


async def test_a_message_says_who_wrote_it_when_to_whom_and_what_it_answers_or_replaces(
    tmp_path: Path, browser: Browser
) -> None:
    async with open_rooms(tmp_path, browser) as rooms:
        agent, other = rooms.agent(**OPUS), rooms.agent()
        for text in ("first", "the question", "wrong"):
            agent.says(text)
        other.says("the answer", reply_to_seq=2, to=[agent.id], priority=True)
        with sqlite3.connect(rooms.path) as raw:
            raw.execute("UPDATE messages SET created_at = '2026-03-04 12:00:00' WHERE seq = 1")
            raw.execute("UPDATE messages SET created_at = '2026-03-05 12:00:00' WHERE seq > 1")
        raw.close()
        tab = await rooms.reader()
        await has(tab, 4)
        follows = "return [...document.querySelectorAll('.message')].map((e) => e.classList.contains('follows'))"
        assert await tab.js(follows) == [False, False, True, False]
        assert await tab.count(".message[data-day]") == 2
        assert f"@{agent.id}" in await tab.see("#m4 .to")
        assert await tab.see("#m4 .tag", "priority")
        assert "the question" in await tab.see("#m4 .quote", "Claude Opus")
        await tab.click("#m4 .quote")
        await tab.until("return document.activeElement.id === 'm2'")
        agent.says("right", supersedes_seq=3)
        await tab.see("#m3.superseded .chip", "replaced by #5")
        await tab.click("#m5 .chip", "replaces #3")
        await tab.until("return document.activeElement.id === 'm3'")


async def test_code_is_code_json_is_set_out_links_are_texts_and_what_is_long_is_cut_at_first(
    tmp_path: Path, browser: Browser
) -> None:
    async with open_rooms(tmp_path, browser) as rooms:
        agent = rooms.agent()
        agent.says("see `a*b`, https://example.org/x?a=1. and\n```py\nprint('<b>')\n```\nend")
        agent.says({"small": [1, 2]})
        agent.says({"large": ["x" * 20] * 40})
        agent.says("\n".join(f"line {number}" for number in range(60)))
        tab = await rooms.reader()
        await has(tab, 4)
        assert await tab.see("#m1 .text > code") == "a*b"
        assert await tab.see("#m1 pre") == "print('<b>')"
        assert await tab.see("#m1 .link .foreign") == "https://example.org/x?a=1"
        assert await tab.count(".message a") == 0
        await tab.browser.do(lambda: tab.browser.driver.set_permissions("clipboard-write", "granted"))
        await tab.click("#m1 .copy")
        await tab.until("return document.querySelector('#m1 .copy').dataset.done")
        text = "return document.querySelector('#m2 code').textContent"
        assert await tab.js(text) == '{\n  "small": [\n    1,\n    2\n  ]\n}'
        assert not await tab.js("return document.querySelector('#m3 pre').checkVisibility()")
        await tab.click("#m3 summary", "JSON")
        assert await tab.see("#m3 pre", "xxxx")
        height = "return document.querySelector('#m4 .clamp').clientHeight"
        short = await tab.js(height)
        await tab.click("#m4 button", "Show all")
        assert await tab.js(height) > 2 * short
        await tab.click("#m4 button", "Show less")
        assert await tab.js(height) == short


async def test_the_pinned_text_can_be_folded_and_stays_so(tmp_path: Path, browser: Browser) -> None:
    async with open_rooms(tmp_path, browser) as rooms:
        rooms.agent().call("set_room_intro", text="# Rules\nSecond line")
        tab = await rooms.reader()
        assert "Second line" in await tab.see("#pinned-text")
        await tab.click("#pinned summary")
        await tab.until("return !document.getElementById('pinned').open")
        await tab.js("location.reload()")
        assert await tab.see("#pinned-first", "# Rules")
        assert not await tab.js("return document.getElementById('pinned').open")


async def test_earlier_messages_are_loaded_on_demand_and_the_place_is_kept(tmp_path: Path, browser: Browser) -> None:
    async with open_rooms(tmp_path, browser) as rooms:
        agent = rooms.agent()
        for number in range(1, 251):
            agent.says(f"number {number}")
        tab = await rooms.reader()
        await has(tab, 250)
        assert await tab.js(SEQS) == list(range(151, 251))
        await tab.js("document.getElementById('scroll').scrollTop = 0")
        top = "return document.getElementById('m152').getBoundingClientRect().top"
        before = await tab.js(top)
        await tab.click("#older")
        await has(tab, 51)
        assert abs(await tab.js(top) - before) < 2
        await tab.js("document.getElementById('scroll').scrollTop = 0")
        await tab.click("#older")
        await tab.until("return document.getElementById('older').hidden")
        assert await tab.js(SEQS) == list(range(1, 251))


async def test_new_messages_wait_for_who_reads_further_up(tmp_path: Path, browser: Browser) -> None:
    async with open_rooms(tmp_path, browser) as rooms:
        agent = rooms.agent()
        for number in range(1, 41):
            agent.says(f"number {number}")
        tab = await rooms.reader()
        await has(tab, 40)
        await tab.js("document.getElementById('scroll').scrollTop = 0")
        await tab.see("#newest", "Newest")
        agent.says("a new one")
        await tab.see("#newest", "1 new")
        assert await tab.js("return document.getElementById('scroll').scrollTop") == 0
        await tab.click("#newest")
        await tab.until("return document.getElementById('newest').hidden")
        agent.says("and another")
        await has(tab, 42)
        end = "const s = document.getElementById('scroll'); return s.scrollHeight - s.scrollTop - s.clientHeight < 2"
        await tab.until(end)


async def test_a_search_says_what_it_found_and_a_found_message_opens_where_it_stands(
    tmp_path: Path, browser: Browser
) -> None:
    async with open_rooms(tmp_path, browser) as rooms:
        agent = rooms.agent()
        for number in range(1, 401):
            agent.says("the needle" if number == 120 else f"number {number}")
        tab = await rooms.reader()
        await has(tab, 400)
        await tab.click("#do-search")
        await tab.type("#query", f"nowhere{Keys.ENTER}")
        await tab.see("#found", "Nothing fits.")
        await tab.type("#query", f' "open{Keys.ENTER}')
        await tab.see("#found", "The query cannot be read")
        assert len(await rooms.browser.complaints()) == 1  # Chromium's note of the status 400
        await tab.type("#query", f"{Keys.CONTROL}a{Keys.CONTROL}needle{Keys.ENTER}")
        await tab.see("#found", "1 message")
        await tab.click("#matches button", "needle")
        await tab.until("return document.activeElement.id === 'm120'")
        seqs = await tab.js(SEQS)
        assert seqs == list(range(91, 191))
        agent.says("meanwhile")
        await tab.see("#newest", "1 new")
        assert await tab.js(SEQS) == seqs
        await tab.click("#later")
        await has(tab, 191)
        await tab.click("#newest")
        await has(tab, 401)
        assert await tab.js(SEQS) == list(range(302, 402))
        await tab.js("location.hash = '#1/7'")
        await tab.until("return document.activeElement.id === 'm7'")


async def test_what_was_not_seen_is_counted_in_the_list_and_the_title(tmp_path: Path, browser: Browser) -> None:
    async with open_rooms(tmp_path, browser) as rooms:
        rooms.agent("hall").says("old")
        agent = rooms.agent("side")
        agent.says("old")
        tab = await rooms.reader("hall")
        await has(tab, 1)
        assert await tab.count("#rooms .count") == 0
        agent.says("new")
        agent.says("newer")
        await tab.see("#rooms .count", "2")
        await tab.until("return document.title === '(2) hall · Rooms'")
        await tab.click("#rooms button", "side")
        await has(tab, 3)
        await tab.until("return document.title === 'side · Rooms'")
        assert await tab.count("#rooms .count") == 0
        await tab.js("location.reload()")
        await has(tab, 3)
        assert await tab.count("#rooms .count") == 0


async def test_the_panel_shows_who_is_here_what_is_claimed_and_what_waits_to_be_read(
    tmp_path: Path, browser: Browser
) -> None:
    async with open_rooms(tmp_path, browser) as rooms:
        agent, other = rooms.agent(**OPUS), rooms.agent()
        tab = await rooms.reader()
        assert "active" in await tab.see("#agents li", "Claude Opus")
        other.call("claim", key="file:a.py", note="for the reader")
        assert "for the reader" in await tab.see("#claims li", "file:a.py")
        other.says("look", to=[agent.id])
        assert "1 message" in await tab.see("#waiting li", "Claude Opus")
        other.call("leave_room")
        await tab.see("#agents li.left", "left")
        await tab.click("#close-panel")
        await tab.until("return document.getElementById('panel').hidden")
        assert await tab.focused() == "People"
        await tab.js("location.reload()")
        await tab.see("#room-name", "hall")
        assert await tab.js("return document.getElementById('panel').hidden")


async def test_a_lost_server_is_told_and_the_page_comes_back_with_what_it_missed(
    tmp_path: Path, browser: Browser
) -> None:
    async with open_rooms(tmp_path, browser) as rooms:
        agent = rooms.agent()
        agent.says("before")
        tab = await rooms.reader()
        await has(tab, 1)
        rooms.view.end.cancel()
        await tab.see("#trouble", "The connection is lost")
        agent.says("meanwhile")
        async with trio.open_nursery() as nursery:
            await nursery.start(partial(serve_view, str(rooms.path), listen(rooms.view.port), token=None))
            await tab.see(".message .text", "meanwhile")
            assert await tab.js("return document.getElementById('trouble').hidden")
            assert await rooms.browser.complaints()
            # The page goes before its server does, so that it has nothing to complain of once more.
            await tab.do(lambda driver: driver.get("about:blank"))
            nursery.cancel_scope.cancel()


async def test_the_page_is_used_by_keyboard_alone_and_every_control_has_a_name(
    tmp_path: Path, browser: Browser
) -> None:
    async with open_rooms(tmp_path, browser) as rooms:
        rooms.agent("a").says("in a")
        rooms.agent("b").says("in b")
        tab = await rooms.tab()
        await tab.see("#rooms button", "b")
        await tab.press(Keys.TAB, Keys.TAB)
        first = await tab.focused()
        await tab.press(Keys.ARROW_DOWN)
        assert await tab.focused() != first
        await tab.press(Keys.ENTER)
        await tab.see("#room-name")
        assert await tab.js("return document.activeElement.id") == "room-name"
        await tab.press(Keys.TAB, Keys.ENTER)
        assert await tab.js("return document.activeElement.id") == "query"
        await tab.press(Keys.ESCAPE, Keys.TAB, Keys.TAB, Keys.ENTER)
        assert await tab.focused() == "Choose my name"
        await tab.press(Keys.ESCAPE)
        assert await tab.focused() == "More about this room"
        assert await tab.unnamed() == []
        assert await tab.overflow() == []


async def test_on_a_phones_width_there_is_one_column_that_a_finger_can_use(tmp_path: Path, browser: Browser) -> None:
    async with open_rooms(tmp_path, browser) as rooms:
        agent = rooms.agent(**OPUS)
        agent.call("set_room_intro", text="Rules " * 50)
        agent.says("w" * 3000 + " https://example.org/" + "x" * 300, to=[agent.id, "a" * 200])
        agent.says({"key": "v" * 2000})
        agent.says("right", supersedes_seq=1, reply_to_seq=1, priority=True)

        async def check() -> None:
            assert await tab.overflow() == []
            assert await tab.small() == []
            assert await tab.unnamed() == []

        tab = await rooms.tab(size=NARROW)
        await tab.see("#rooms button", "hall")
        assert not await tab.js("return document.getElementById('main').checkVisibility()")
        await check()
        await tab.click("#rooms button", "hall")
        await has(tab, 3)
        assert not await tab.js("return document.querySelector('nav').checkVisibility()")
        await check()
        await tab.click("#do-panel")
        await tab.see("#agents", "Claude Opus")
        await check()
        await tab.press(Keys.ESCAPE)
        await tab.until("return document.getElementById('panel').hidden")
        await tab.click("#back")
        await tab.see("#rooms button", "hall")
