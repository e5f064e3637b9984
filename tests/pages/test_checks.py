"""What the other tests look for on a page is found when it is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser import NARROW

if TYPE_CHECKING:
    from tests.browser import Browser

BAD = """data:text/html,<!doctype html><title>x</title><body style="background: white">
<p style="color: %23aaa">hardly seen</p><button></button><button style="height: 10px">named</button>
<div class="scroll" style="overflow: auto"><p style="width: 2000px">wide</p></div><p style="width: 900px">wide</p>"""


async def test_what_is_faint_unnamed_small_or_too_wide_is_found(browser: Browser) -> None:
    async with browser.session():
        tab = await browser.tab(BAD, NARROW)
        assert [line for line in await tab.faint() if "hardly seen" in line]
        assert [line for line in await tab.unnamed() if line == "<button></button>"]
        assert [line for line in await tab.small() if "named" in line]
        assert len(await tab.overflow()) == 2


async def test_a_page_that_complains_fails_its_test(browser: Browser) -> None:
    async def complain() -> None:
        async with browser.session():
            tab = await browser.tab("data:text/html,<title>x</title>")
            await tab.js("console.error('something is wrong')")

    with pytest.raises(AssertionError, match="something is wrong"):
        await complain()
