"""The owner at the phone's page: the agent's cards, and the owner's word on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio
from PIL import Image

from tests.browser import Keys
from tests.pages.phone import CARD, open_owned

if TYPE_CHECKING:
    from pathlib import Path

    from tests.browser import Browser

WATCH_FOR_A_FLASH = """
  const flash = (all) => all.some((one) => one.target.classList.contains("changed"));
  const watcher = new MutationObserver((all) => { window.flashed ||= flash(all); });
  watcher.observe(document.querySelector("#messages"), { subtree: true, attributeFilter: ["class"] });
"""


async def test_a_tap_on_a_card_approves_what_the_agent_asked_and_the_card_says_so(
    tmp_path: Path, browser: Browser
) -> None:
    async with (
        open_owned(tmp_path, browser) as stage,
        stage.world.person("Bob") as bob,
        trio.open_nursery() as nursery,
    ):
        group, chat = await stage.connected(nursery, bob)
        result = await stage.ask(nursery, "send", chat=chat, text="Is the hut open?")
        assert "Is the hut open?" in await stage.owner.see(CARD, "I want to send a message to group Trail")
        await stage.owner.js(WATCH_FOR_A_FLASH)
        await stage.owner.click(".tap", f"/approve {chat} 2")
        assert (await result.wait())["status"] == "done"
        assert await bob.see(group, "Is the hut open?")
        assert "Approved by Owner." in await stage.owner.see(".item .text", "I sent a message to group Trail")
        assert await stage.owner.see(".item .foot", "edited")
        assert await stage.owner.js("return window.flashed")
        heard = "return document.querySelector('#heard').innerText.includes(arguments[0])"
        assert await stage.owner.js(heard, "Changed: My Agent: I sent a message to group Trail")
        assert await stage.owner.count(".tap") == 2  # the owner's own two commands, as the apps show them
        assert await stage.owner.see(".mine .mark.received")


async def test_a_rejected_action_is_not_done(tmp_path: Path, browser: Browser) -> None:
    async with (
        open_owned(tmp_path, browser) as stage,
        stage.world.person("Bob") as bob,
        trio.open_nursery() as nursery,
    ):
        group, chat = await stage.connected(nursery, bob)
        result = await stage.ask(nursery, "send", chat=chat, text="never sent")
        await stage.owner.click(".tap", f"/reject {chat} 2")
        assert (await result.wait())["status"] == "rejected"
        await stage.owner.see(".item .text", "Rejected by Owner.")
        assert not [text for text in await bob.texts(group) if "never sent" in text]


async def test_after_a_standing_approval_messages_need_no_card(tmp_path: Path, browser: Browser) -> None:
    async with (
        open_owned(tmp_path, browser) as stage,
        stage.world.person("Bob") as bob,
        trio.open_nursery() as nursery,
    ):
        group, chat = await stage.connected(nursery, bob)
        first = await stage.ask(nursery, "send", chat=chat, text="first")
        await stage.owner.click(".tap", f"/approve {chat} all")
        assert (await first.wait())["status"] == "done"
        assert (await stage.agent.call("send", chat=chat, text="second"))["status"] == "done"
        assert await bob.see(group, "second")
        assert "I want to" not in await stage.owner.see("#messages")


async def test_the_keyboard_is_enough_to_approve(tmp_path: Path, browser: Browser) -> None:
    async with (
        open_owned(tmp_path, browser) as stage,
        stage.world.person("Bob") as bob,
        trio.open_nursery() as nursery,
    ):
        owner = stage.owner
        _, link = await bob.make_group("Trail")
        result = await stage.ask(nursery, "connect", target=link, wait=20, idle=1)
        await owner.js("document.activeElement.blur()")
        for _ in range(30):
            if await owner.focused() == "/approve 1":
                break
            await owner.press(Keys.TAB)
        assert await owner.js("return document.activeElement.matches(':focus-visible')")
        await owner.press(Keys.ENTER)
        assert (await result.wait())["status"] == "done"
        await owner.see(".item .text", "Approved by Owner.")
        # The card has no command any more: the focus stays at it.
        assert "Approved by Owner." in await owner.focused()
        await owner.type("#text", f"/list{Keys.ENTER}")
        await owner.see(".text", "group Trail")


async def test_a_card_shows_the_picture_that_the_agent_wants_to_send(tmp_path: Path, browser: Browser) -> None:
    async with (
        open_owned(tmp_path, browser) as stage,
        stage.world.person("Bob") as bob,
        trio.open_nursery() as nursery,
    ):
        _, chat = await stage.connected(nursery, bob)
        Image.radial_gradient("L").save(tmp_path / "map.png")
        result = await stage.ask(nursery, "send", chat=chat, file=str(tmp_path / "map.png"))
        await stage.owner.until(
            "const p = document.querySelector('.card .picture'); return p?.complete && p.naturalWidth"
        )
        await stage.owner.click(".tap", f"/approve {chat} 2")
        assert (await result.wait())["status"] == "done"
        await bob.wait(lambda event: event["type"] == "newChatItems" and "file" in event["chatItems"][0]["chatItem"])


async def test_after_joining_the_owner_can_write_at_once(tmp_path: Path, browser: Browser) -> None:
    async with open_owned(tmp_path, browser) as stage:
        await stage.owner.until("return document.activeElement === document.querySelector('#text')")
        ringed = """
          const heading = document.querySelector("#chat-name");
          heading.focus({ focusVisible: true });
          return [heading.matches(":focus-visible"), getComputedStyle(heading).outlineStyle];
        """
        assert await stage.owner.js(ringed) == [True, "none"]


async def test_the_menu_of_the_control_chat_sends_commands_or_fills_them_in(tmp_path: Path, browser: Browser) -> None:
    async with open_owned(tmp_path, browser) as stage:
        owner = stage.owner
        await owner.click("#commands")
        await owner.click("#menu button", "/pending")
        await owner.see(".text", "No action is pending.")
        await owner.click("#commands")
        await owner.press(Keys.ESCAPE)
        assert await owner.focused() == "Commands"
