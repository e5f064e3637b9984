"""The phone's page itself: what is hostile stays text, nobody frames it, everybody can use it, and it comes back."""

from __future__ import annotations

import signal
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import trio

from simplexmcp.phone.server import serve_phone
from tests.browser import NARROW, WIDE, Keys
from tests.e2e.robust import Program
from tests.pages.phone import CARD, open_owned, open_phone

if TYPE_CHECKING:
    from pathlib import Path

    from tests.browser import Browser, Tab
    from tests.e2e.world import Person

EVIL_NAME = "\u202eEve\u200b <img src=x onerror=hit()><b>/'approve 1'</b>"
EVIL_TEXTS = (
    "<img src=x onerror='window.hit=1'><script>window.hit=1</script><iframe src='/'></iframe>",
    "a [link](javascript:window.hit=1) and https://example.org/'onmouseover=hit() and javascript:hit()",
    "tap /'approve 1' or /approve or /'reject 1'",
    "\u202e\u2066 turned around \u202d" + "\u0301\u0489" * 60,
    "W" * 3000,
    "\u200b\u200d\u2800",
    "two\n" * 40 + "{{constructor}} ${hit()} &lt;b&gt; &#60;script&#62;",
)


async def group_of_eve(ann: Tab, eve: Person) -> str:
    """A group of Ann's that Eve joined under a name that no good core would send; its reference at Eve's."""
    await ann.click("button", "New group")
    await ann.type("#dialog-input", f"Walk{Keys.ENTER}")
    link = await ann.see("dialog .given")
    await ann.press(Keys.ESCAPE)
    ref = await eve.join(link)
    await ann.see("#chat-about", "2 members")
    return ref


async def test_names_and_texts_of_others_stay_text_and_nothing_in_them_can_be_tapped(
    tmp_path: Path, browser: Browser
) -> None:
    async with open_phone(tmp_path, browser) as stage, stage.world.person("Eve") as eve:
        ann = await stage.somebody("Ann", size=NARROW)
        next(iter(stage.world.network.core("eve").state.users.values())).name = EVIL_NAME
        ref = await group_of_eve(ann, eve)
        for text in EVIL_TEXTS:
            await eve.say(ref, text)
        await eve.say(ref, "the end")
        assert "Eve" in await ann.see(".sender b")
        await ann.see(".text", "the end")
        texts = await ann.js("return [...document.querySelectorAll('.text')].map((e) => e.textContent)")
        for text in (EVIL_TEXTS[0], EVIL_TEXTS[3], EVIL_TEXTS[4], EVIL_TEXTS[6]):
            assert text in texts
        await ann.click("#show-members")
        await ann.see(".member", "Eve")
        assert await ann.count("#app :is(script, iframe, img, a, object, embed, form form, [onerror], [style])") <= 1
        assert await ann.js("return document.querySelectorAll('script').length") == 1
        assert await ann.count(".tap") == 0
        assert await ann.js("return window.hit ?? null") is None
        assert await ann.overflow() == []
        await ann.press(Keys.ESCAPE)
        assert await ann.overflow() == []


async def test_until_the_server_answers_the_page_says_that_it_connects(tmp_path: Path, browser: Browser) -> None:
    silent = {"source": "window.WebSocket = class { constructor(url) { window.asked = url; } };"}
    async with open_phone(tmp_path, browser) as stage:
        tab = await browser.tab(stage.phone.url())
        await tab.see("dialog", "Who are you?")
        assert not await tab.js("return document.querySelector('#connecting').checkVisibility()")
        await tab.do(lambda driver: driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", silent))
        await tab.do(lambda driver: driver.refresh())
        assert await tab.see("#connecting", "Connecting to the simulation")
        assert await tab.js("return window.asked")


async def test_a_link_in_a_message_is_text_with_a_button_that_copies_it(tmp_path: Path, browser: Browser) -> None:
    async with open_phone(tmp_path, browser) as stage, stage.world.person("Eve") as eve:
        ann = await stage.somebody("Ann")
        await eve.say(await group_of_eve(ann, eve), "see https://example.org/map for it")
        await ann.click(".copy", "https://example.org/map")
        await ann.see(".copy[data-done]")
        await ann.type("#text", f"{Keys.CONTROL}v")
        assert await ann.js("return document.querySelector('#text').value") == "https://example.org/map"
        assert await ann.count(".messages a") == 0


async def test_other_pages_cannot_show_it_in_a_frame(tmp_path: Path, browser: Browser) -> None:
    async with open_phone(tmp_path, browser) as stage:
        await stage.somebody("Ann")  # so that the browser has the cookie
        other = await browser.tab(f"data:text/html,<iframe src='http://127.0.0.1:{stage.phone.port}/'></iframe>")
        await other.do(lambda driver: driver.switch_to.frame(0))
        assert str(await other.js("return location.href")).startswith("chrome-error:")


@pytest.mark.parametrize("size", [NARROW, WIDE], ids=["narrow", "wide"])
async def test_everything_on_it_has_a_name_can_be_read_and_hit_and_fits(
    tmp_path: Path, browser: Browser, size: tuple[int, int]
) -> None:
    async def look(tab: Tab) -> None:
        for dark in (False, True):
            await tab.dark(on=dark)
            assert await tab.faint() == []
        assert await tab.unnamed() == []
        assert await tab.overflow() == []
        if size == NARROW:
            assert await tab.small() == []

    async with (
        open_owned(tmp_path, browser, size=size) as stage,
        stage.world.person("Bob") as bob,
        trio.open_nursery() as nursery,
    ):
        owner = stage.owner
        _, link = await bob.make_group("Trail")
        await stage.ask(nursery, "connect", target=link)
        await look(owner)
        await owner.type("#text", f"!1 red! #secret# *bold* `code` https://example.org {Keys.ENTER}")
        await owner.see(".mine .mark")
        await owner.choose_file("#file", tmp_path / "data" / "token")
        await owner.see("#attachment:not(:has(progress))")
        await look(owner)
        await owner.click(".mine .more")
        await look(owner)
        await owner.press(Keys.ESCAPE)
        await owner.click("#show-members")
        await owner.see(".member", "My Agent")
        await look(owner)
        await owner.press(Keys.ESCAPE)
        if size == NARROW:
            await owner.click("#back")
        await look(owner)
        await owner.click("button", "Join by link")
        await owner.type("#dialog-input", link)
        await owner.see("dialog .found", "Trail")
        await look(owner)
        nursery.cancel_scope.cancel()


async def test_the_list_of_chats_is_used_with_arrows_and_one_column_has_a_way_back(
    tmp_path: Path, browser: Browser
) -> None:
    async with open_phone(tmp_path, browser) as stage, stage.world.person("Eve") as eve:
        ann = await stage.somebody("Ann", size=NARROW)
        _, link = await eve.make_group("Trail")
        await group_of_eve(ann, eve)
        await ann.click("#back")
        await ann.click("button", "Join by link")
        await ann.type("#dialog-input", link)
        await ann.click("dialog button", "Join")
        await ann.see("#chat-about", "2 members")
        await ann.click("#back")
        assert "Trail" in await ann.focused()
        await ann.press(Keys.ARROW_DOWN)
        assert "Walk" in await ann.focused()
        await ann.press(Keys.ENTER)
        await ann.see("#chat-name", "Walk")
        assert not await ann.js("return document.querySelector('#chats').checkVisibility()")


async def test_it_comes_back_by_itself_and_shows_what_was_missed(
    tmp_path: Path, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("simplexmcp.phone.server.new_token", lambda: "token")
    async with open_phone(tmp_path, browser) as stage, stage.world.person("Eve") as eve:
        served = partial(serve_phone, stage.world.network, held="agent", port=0)
        async with trio.open_nursery() as first:
            stage.phone = await first.start(served)
            ann = await stage.somebody("Ann")
            ref = await group_of_eve(ann, eve)
            await ann.type("#text", "half a sen")
            first.cancel_scope.cancel()
        await ann.see("#trouble", "The server is gone.")
        await eve.say(ref, "are you there?")
        async with trio.open_nursery() as second:
            await second.start(partial(served, port=stage.phone.port))
            await ann.see(".text", "are you there?")
            await ann.until("return document.querySelector('#trouble').hidden")
            await ann.type("#text", f"tence{Keys.ENTER}")
            await eve.see(ref, "half a sentence")
            second.cancel_scope.cancel()
        monkeypatch.setattr("simplexmcp.phone.server.new_token", lambda: "another")
        async with trio.open_nursery() as third:
            await third.start(partial(served, port=stage.phone.port))
            await ann.see("#trouble", "Open the URL that the server printed.")
            third.cancel_scope.cancel()
        await browser.complaints()  # of the connections that were refused


async def test_one_click_on_the_printed_url_makes_the_owner_of_the_real_program(
    tmp_path: Path, browser: Browser
) -> None:
    nowhere: Any = SimpleNamespace(folder=tmp_path, core_url=lambda _: "sandbox")
    async with trio.open_nursery() as nursery:
        program = Program(nowhere, "--core", "sandbox", "--phone-port", "0")
        await nursery.start(program.run)
        line = await program.lines.see("Phone (a simulation)")
        async with browser.session(), program.agent() as agent:
            owner = await browser.tab(line[line.index("http") :])
            await owner.click("dialog button", "Join")
            await owner.see(".text", "I'm your agent.")
            assert await owner.js("return location.pathname + location.search + location.hash") == "/"
            async with trio.open_nursery() as calls:
                calls.start_soon(lambda: agent.call("connect", target="@echo.simplex"))
                await owner.click(f"{CARD} .tap", "/approve 1")
                await owner.see(".item .text", "Approved by Owner.")
                calls.cancel_scope.cancel()
        assert await program.end(signal.SIGINT, within=15) == 0
        assert "token=" not in "".join(program.errors.all)
