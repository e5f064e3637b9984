"""A person's seat at the page of the rooms: joining, writing, reading on, leaving; and texts that want to break out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.browser import Keys
from tests.pages.rooms import open_rooms

if TYPE_CHECKING:
    from pathlib import Path

    from tests.browser import Browser, Tab
    from tests.pages.rooms import Agent

HOSTILE = (
    "<script>window.broken = 1</script><img src=x onerror='window.broken = 1'><svg onload='window.broken = 1'>"
    "\" onclick='window.broken = 1' [x](javascript:window.broken=1) javascript:window.broken=1"
    " <a href='https://evil.example'>x</a> ${window.broken = 1} {{constructor.constructor('window.broken = 1')()}}"
    " \u202e\u200b\ufeff https://evil.example/<script>"
)
ACTIVE = "script:not([src]), img, svg, iframe, object, embed, a, style, form:not([id]), [onclick], [onerror], [onload]"


async def has(tab: Tab, seq: int) -> None:
    await tab.until("return document.getElementById('m' + arguments[0])", seq)


def marker(agent: Agent, name: str) -> int:
    return agent.database.value("SELECT last_read_seq FROM memberships WHERE agent_id = ?", name)


async def test_somebody_joins_with_a_name_writes_and_replies(tmp_path: Path, browser: Browser) -> None:
    async with open_rooms(tmp_path, browser) as rooms:
        agent = rooms.agent()
        agent.says("anybody here?")
        tab = await rooms.member("ann")
        await tab.see("#my-name", "ann")
        assert await tab.see("#agents li", "ann")
        await tab.type("#text", f"yes, @{agent.id}{Keys.ENTER}")
        await tab.see("#m2.mine .you")
        assert await tab.see("#m2 .text .mention", agent.id)
        heard = agent.call("catch_up")["messages"]
        assert [(one["from"], one["content"], one["to"]) for one in heard] == [("ann", f"yes, @{agent.id}", [agent.id])]
        agent.says("good, @ann", to=["ann"])
        await tab.see("#m3.for-me .mention.me", "@ann")
        await tab.click("#m1 .reply")
        await tab.see("#reply", "anybody here?")
        await tab.press(Keys.ESCAPE)
        await tab.until("return document.getElementById('reply').hidden")
        await tab.click("#m3 .reply")
        await tab.type("#text", f"first{Keys.SHIFT}{Keys.ENTER}{Keys.SHIFT}second{Keys.ENTER}")
        await tab.see("#m4 .quote", "good")
        reply = agent.call("catch_up")["messages"][0]
        assert (reply["content"], reply["reply_to"]["seq"]) == ("first\nsecond", 3)
        assert await tab.js("return document.getElementById('reply').hidden")


async def test_what_was_not_sent_is_kept_for_each_room(tmp_path: Path, browser: Browser) -> None:
    async with open_rooms(tmp_path, browser) as rooms:
        rooms.agent("hall")
        rooms.agent("side")
        tab = await rooms.member("ann")
        await tab.type("#text", "half a sen")
        await tab.click("#rooms button", "side")
        await tab.see("#room-name", "side")
        await tab.click("#do-join", "Join as ann")
        await tab.see("#text")
        assert await tab.js("return document.getElementById('text').value") == ""
        await tab.click("#rooms button", "hall")
        await tab.until("return document.getElementById('text').value === 'half a sen'")
        await tab.js("location.reload()")
        await tab.until("return document.getElementById('text').value === 'half a sen'")


async def test_what_is_looked_at_counts_as_read(tmp_path: Path, browser: Browser) -> None:
    async with open_rooms(tmp_path, browser) as rooms:
        agent = rooms.agent()
        for number in range(1, 41):
            agent.says(f"number {number}")
        tab = await rooms.member("ann")
        await has(tab, 40)
        await tab.until(
            "return fetch('/api/me?room=1&name=ann').then((r) => r.json()).then((me) => me.last_read_seq === 40)"
        )
        await tab.js("document.getElementById('scroll').scrollTop = 0")
        await tab.see("#newest")
        agent.says("not looked at")
        await tab.see("#newest", "1 new")
        assert marker(agent, "ann") == 40
        await tab.click("#newest")
        await tab.until(
            "return fetch('/api/me?room=1&name=ann').then((r) => r.json()).then((me) => me.last_read_seq === 41)"
        )


async def test_messages_that_were_never_loaded_are_not_read_until_one_says_so(tmp_path: Path, browser: Browser) -> None:
    async with open_rooms(tmp_path, browser) as rooms:
        agent = rooms.agent()
        for number in range(1, 131):
            agent.says(f"number {number}")
        tab = await rooms.member("ann")
        await has(tab, 130)
        await tab.type("#text", f"hello{Keys.ENTER}")
        await has(tab, 131)
        assert marker(agent, "ann") == 0
        await tab.click("#more")
        await tab.click("#menu button", "Mark all as read")
        await tab.until(
            "return fetch('/api/me?room=1&name=ann').then((r) => r.json()).then((me) => me.last_read_seq === 131)"
        )


async def test_one_can_leave_and_come_back_and_another_name_leaves_the_seats_of_the_old_one(
    tmp_path: Path, browser: Browser
) -> None:
    async with open_rooms(tmp_path, browser) as rooms:
        agent = rooms.agent()
        tab = await rooms.member("ann")
        await tab.click("#more")
        await tab.click("#menu button", "Leave the room")
        await tab.see("#do-join", "Join as ann")
        assert [one["present"] for one in agent.call("list_agents")["agents"] if one["id"] == "ann"] == [False]
        await tab.click("#do-join")
        await tab.see("#text")
        await tab.click("#rename")
        await tab.type("#dialog-input", f"{Keys.CONTROL}a{Keys.CONTROL}{agent.id}{Keys.ENTER}")
        await tab.see("dialog [role=alert]", "is an LLM persona")
        await tab.type("#dialog-input", f"{Keys.CONTROL}a{Keys.CONTROL}bea{Keys.ENTER}")
        await tab.see("#my-name", "bea")
        await tab.type("#text", f"it is me{Keys.ENTER}")
        await tab.see("#m1.mine")
        present = {one["id"]: one["present"] for one in agent.call("list_agents")["agents"]}
        assert (present["ann"], present["bea"]) == (False, True)
        assert len(await rooms.browser.complaints()) == 1


async def test_a_room_is_deleted_only_after_a_confirmation_and_is_gone_for_everybody(
    tmp_path: Path, browser: Browser
) -> None:
    async with open_rooms(tmp_path, browser) as rooms:
        agent = rooms.agent()
        agent.says("text")
        other = await rooms.reader()
        tab = await rooms.reader()
        for agrees in (False, True):
            await tab.click("#more")
            await tab.click("#menu button", "Delete the room")
            await tab.see("dialog", "cannot be brought back")
            await tab.click("dialog button", "Delete the room" if agrees else "Cancel")
            await tab.until("return !document.getElementById('dialog').open")
            assert agrees or agent.call("list_rooms")["total"] == 1
        for one in (tab, other):
            await one.see("#no-rooms", "No rooms yet")
            await one.see("#nothing")
        assert agent.call("list_rooms")["total"] == 0


async def test_texts_that_want_to_break_out_stay_texts(tmp_path: Path, browser: Browser) -> None:
    async with open_rooms(tmp_path, browser) as rooms:
        agent = rooms.agent("x" + HOSTILE[:180], brand="b" + HOSTILE[:90], model="m" + HOSTILE[:90], version="1")
        agent.call("set_room_intro", text=HOSTILE)
        agent.call("set_role", role=HOSTILE[:190])
        agent.call("claim", key=HOSTILE[:400], note=HOSTILE)
        agent.says(HOSTILE)
        agent.says({HOSTILE: [HOSTILE]})
        agent.says(f"```\n{HOSTILE}\n```\n`{HOSTILE}` \n\n# {HOSTILE}", to=[agent.id, HOSTILE[:100]], reply_to_seq=1)
        agent.says(HOSTILE, supersedes_seq=1, priority=True)
        await rooms.view.post("join", room=1, name="ann")
        await rooms.view.post("post", room=1, name="ann", body=HOSTILE)
        tab = await rooms.tab("/?<img src=x onerror=window.broken=1>#1/<script>window.broken=1</script>")
        await tab.click("#rooms button", "<script>")
        await has(tab, 5)
        await tab.see("#agents li", "<script>")
        await tab.see("#claims li", "<script>")
        await tab.see("#pinned-text", "<script>")
        await tab.click("#m3 .quote")
        await tab.click("#do-search")
        await tab.type("#query", f"broken{Keys.ENTER}")
        await tab.see("#matches button", "<script>")
        shown = await tab.js("return [...document.querySelectorAll(arguments[0])].map((e) => e.outerHTML)", ACTIVE)
        assert [one for one in shown if "icon" not in one] == []
        assert await tab.js("return window.broken ?? null") is None
        text = await tab.js("return document.querySelector('#m1 .text').textContent")
        assert text.startswith("<script>window.broken = 1</script><img src=x")
        assert await tab.overflow() == []
        await tab.click("#more")
        await tab.click("#menu button", "Delete the room")
        await tab.see("dialog", "<script>")
        assert await tab.js("return window.broken ?? null") is None
