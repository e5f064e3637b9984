"""People of the simulated network at the phone's page: several tabs are several people."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from tests.browser import Keys
from tests.pages.phone import open_phone

if TYPE_CHECKING:
    from pathlib import Path

    from tests.browser import Browser, Tab
    from tests.pages.phone import Stage


async def write(tab: Tab, text: str) -> None:
    await tab.type("#text", text + Keys.ENTER)


async def choose(tab: Tab, message: str, action: str) -> None:
    """An entry of a message's menu."""
    await tab.click(f"{message} .more")
    await tab.click("#menu button", action)


async def walkers(stage: Stage) -> tuple[Tab, Tab]:
    """Ann made the group Walk, Ben joined it by its link."""
    ann, ben = await stage.somebody("Ann"), await stage.somebody("Ben")
    await ann.click("button", "New group")
    await ann.type("#dialog-input", f"Walk{Keys.ENTER}")
    link = await ann.see("dialog .given")
    await ann.press(Keys.ESCAPE)
    await ben.click("button", "Join by link")
    await ben.type("#dialog-input", link)
    await ben.see("dialog .found", "Walk")
    await ben.click("dialog button", "Join")
    await ben.see("#chat-about", "2 members")
    await ann.see(".event", "Ben")
    return ann, ben


async def test_two_tabs_are_two_people_who_write_to_each_other(tmp_path: Path, browser: Browser) -> None:
    async with open_phone(tmp_path, browser) as stage:
        ann, ben = await walkers(stage)
        await write(ann, "Shall we go?")
        assert await ben.see(".item:not(.mine) .text", "Shall we go?")
        assert await ben.see(".sender", "Ann")
        await ann.see(".mine .mark", "received")
        await choose(ben, ".item:not(.mine)", "Reply")
        await write(ben, "Yes, @Ann, at *seven*")
        assert "Shall we go?" in await ann.see(".quote", "you")
        style = "const s = getComputedStyle(document.querySelector('.quote')); return s.borderInlineStartWidth"
        assert await ann.js(style) not in ("0px", "1px")
        assert await ann.see(".item.me .mention.me", "@")
        assert await ann.see(".text b", "seven")


async def test_unread_messages_are_counted_until_the_chat_is_open(tmp_path: Path, browser: Browser) -> None:
    async with open_phone(tmp_path, browser) as stage:
        ann, ben = await stage.somebody("Ann"), await stage.somebody("Ben")
        await ann.click("button", "My address")
        link = await ann.see("dialog .given")
        await ann.press(Keys.ESCAPE)
        await ben.click("button", "Join by link")
        await ben.type("#dialog-input", link)
        await ben.click("dialog button", "Connect")
        await ben.see("#chat-name", "Ann")
        await ben.see("#write")
        await write(ben, "hello")
        await write(ben, "are you there?")
        # The day stands above the message and above what belongs to it.
        tops = "arguments[0].map((each) => document.querySelector(each).getBoundingClientRect().top)"
        first = ["[data-day] .bubble", "[data-day] .more"]
        bubble, more = await ben.js(f"return {tops}", first)
        assert abs(bubble - more) < 20
        await ann.see("#chats .count", "2")
        assert await ann.until("return document.title.startsWith('(2) Ann')")
        await ann.click("#chats button", "Ben")
        await ann.see(".text", "are you there?")
        await ann.until("return !document.querySelector('#chats .count') && document.title.startsWith('Ann')")
        await ben.see(".mine .mark", "received")


async def test_messages_are_edited_deleted_and_moderated(tmp_path: Path, browser: Browser) -> None:
    async with open_phone(tmp_path, browser) as stage:
        ann, ben = await walkers(stage)
        await write(ben, "at sevn")
        await ann.see(".text", "at sevn")
        await choose(ben, ".item.mine", "Edit")
        await ben.type("#text", f"{Keys.BACKSPACE}en{Keys.ENTER}")
        assert await ann.see(".item:has(.edited) .text", "at seven")
        await choose(ann, ".item:has(.edited)", "Delete as moderator")
        await ann.click("dialog button", "Delete")
        assert await ben.see(".gone", "deleted by Ann")
        await write(ann, "never mind")
        await ben.see(".text", "never mind")
        await choose(ann, ".item.mine", "Delete for everyone")
        await ann.click("dialog button", "Delete")
        assert await ben.see(".gone", "deleted")
        await ben.until("return !document.querySelector('#messages').innerText.includes('never mind')")


async def test_a_live_message_is_seen_while_it_is_written(tmp_path: Path, browser: Browser) -> None:
    async with open_phone(tmp_path, browser) as stage:
        ann, ben = await walkers(stage)
        await ann.click("#live")
        await ann.type("#text", "I am on")
        await ben.see(".item.live .text", "I am on")
        await ann.type("#text", " my way")
        await ben.see(".item.live .text", "I am on my way")
        await ann.type("#text", f"!{Keys.ENTER}")
        await ben.see(".item:not(.live) .text", "I am on my way!")
        assert await ben.count(".item:not(.event)") == 1


async def test_an_owner_changes_roles_and_removes_members(tmp_path: Path, browser: Browser) -> None:
    async with open_phone(tmp_path, browser) as stage:
        ann, ben = await walkers(stage)
        await ann.click("#show-members")
        await ann.see(".member", "Ben")
        await ann.js(
            """const roles = document.querySelector("select[aria-label='Role of Ben']");
            roles.value = "observer";
            roles.dispatchEvent(new Event("change", { bubbles: true }));"""
        )
        await ben.see("#chat-about", "you are observer")
        await ben.see("#cannot")
        assert await ben.js("return document.querySelector('#write').hidden")
        await ann.click("button", "Remove Ben")
        await ann.click("dialog button", "Remove")
        await ben.see("#chat-about", "you were removed")
        await ann.press(Keys.ESCAPE)
        assert await ann.focused() == "Members"


async def test_names_are_completed_in_mentions(tmp_path: Path, browser: Browser) -> None:
    async with open_phone(tmp_path, browser) as stage:
        ann, ben = await walkers(stage)
        await ann.type("#text", "hi @b")
        await ann.see("#names li", "Ben")
        await ann.press(Keys.ENTER)
        await ann.press(Keys.ENTER)
        assert await ben.see(".mention.me", "@Ben")


async def test_a_file_goes_from_one_to_the_other_with_its_progress(tmp_path: Path, browser: Browser) -> None:
    async with open_phone(tmp_path, browser) as stage:
        stage.world.network.faults.upload_seconds = 0.2
        stage.world.network.faults.chunk_seconds = 0.2
        ann, ben = await walkers(stage)
        content = bytes(range(256)) * 1000
        await trio.Path(tmp_path / "map.bin").write_bytes(content)
        await ann.choose_file("#file", tmp_path / "map.bin")
        await ann.see("#attachment:not(:has(progress))", "map.bin")
        await write(ann, "the map")
        await ann.see(".mine .file progress")
        await ben.click(".file button", "Download map.bin")
        await ben.see(".file progress")
        await ben.see(".file .state", "downloaded")
        await ben.click(".file a", "Save map.bin")
        saved = trio.Path(browser.downloads / "map.bin")
        with trio.fail_after(10):
            while not await saved.exists():
                await trio.sleep(0.02)
        assert await saved.read_bytes() == content


async def test_the_form_for_joining_says_what_a_link_leads_to(tmp_path: Path, browser: Browser) -> None:
    async with open_phone(tmp_path, browser) as stage, stage.world.person("Eve") as eve:
        _, link = await eve.make_group("Trail")
        ann = await stage.somebody("Ann")
        await ann.click("button", "Join by link")
        await ann.type("#dialog-input", "hello")
        await ann.see("dialog .found", "This is no SimpleX link.")
        await ann.type("#dialog-input", f"{Keys.CONTROL}a{Keys.NULL}{link}x")
        await ann.see("dialog .found", "This link was deleted")
        assert await ann.js("return document.querySelector('dialog [type=submit]').disabled")
        await ann.type("#dialog-input", Keys.BACKSPACE)
        await ann.see("dialog .found", "Trail")
        await ann.click("dialog button", "Join")
        await ann.see("#chat-about", "2 members")
        await ann.click("button", "Join by link")
        await ann.type("#dialog-input", link)
        await ann.click("dialog button", "Open the chat")
        await ann.see("#chat-name", "Trail")


async def test_a_quote_leads_to_its_message_however_old_and_there_is_a_way_back(
    tmp_path: Path, browser: Browser
) -> None:
    async with open_phone(tmp_path, browser) as stage, stage.world.person("Eve") as eve:
        ann = await stage.somebody("Ann")
        await ann.click("button", "New group")
        await ann.type("#dialog-input", f"Walk{Keys.ENTER}")
        ref = await eve.join(await ann.see("dialog .given"))
        await ann.press(Keys.ESCAPE)
        first = await eve.say(ref, "the first")
        for number in range(110):
            await eve.say(ref, f"number {number}")
        await eve.say(ref, "the last", quotedItemId=first)
        await ann.see(".text", "the last")
        await ann.do(lambda driver: driver.refresh())
        await ann.click("#chats button", "Walk")
        await ann.see(".text", "the last")
        shown = await ann.count(".item")
        assert shown <= 50
        await ann.click("#older")
        await ann.until("return document.querySelectorAll('.item').length > arguments[0]", shown)
        assert "number 1\n" not in await ann.see("#messages")
        await ann.click(".quote")
        assert "the first" in await ann.see(".item:focus")
        await ann.click("#newest")
        await ann.see(".item:last-child .text", "the last")
        await ann.until(
            "const s = document.querySelector('#scroll'); return s.scrollHeight - s.scrollTop - s.clientHeight < 2"
        )


async def test_an_invitation_of_a_contact_to_a_group_is_accepted(tmp_path: Path, browser: Browser) -> None:
    async with open_phone(tmp_path, browser) as stage, stage.world.person("Eve") as eve:
        ann = await stage.somebody("Ann")
        await ann.click("button", "Join by link")
        await ann.type("#dialog-input", await eve.make_address())
        await ann.click("dialog button", "Connect")
        contact = await eve.contact()
        group, _ = await eve.make_group("Trail")
        await eve.api.link.send(f"/_add {group} {contact[1:]} member")
        await ann.see(".event", "Eve invites you to the group Trail as member")
        await ann.click("#chats button:has(.square)", "Trail")
        await ann.see("#why", "You have not joined yet.")
        await ann.click("#accept", "Join")
        await ann.see("#chat-about", "2 members")
        assert await ann.until("return document.activeElement === document.querySelector('#text')")
        await write(ann, "Here I am")
        assert await eve.see(group, "Here I am")


async def test_who_leaves_a_group_can_read_it_and_delete_it(tmp_path: Path, browser: Browser) -> None:
    async with open_phone(tmp_path, browser) as stage:
        _, ben = await walkers(stage)
        await ben.click("#chat-more")
        await ben.click("#menu button", "Leave")
        await ben.click("dialog button", "Leave")
        await ben.see("#chat-about", "you left")
        await ben.click("#chat-more")
        await ben.click("#menu button", "Delete the chat")
        await ben.click("dialog button.risky")
        await ben.see("#nothing")
        await ben.see("#no-chats")
