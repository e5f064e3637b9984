"""The phone of real processes: their printed address, and their end while a tab is open."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio

from tests.phone.tabs import Browser

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@asynccontextmanager
async def running(errors: Path, *words: str) -> AsyncIterator[trio.Process]:
    """A process of Python whose output is read by the test."""
    with errors.open("wb") as err, trio.fail_after(30):
        process = await trio.lowlevel.open_process([sys.executable, *words], stdout=subprocess.PIPE, stderr=err)
        assert process.stdout is not None
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            with trio.CancelScope(shield=True):
                await process.wait()
                await process.stdout.aclose()


async def said_until(process: trio.Process, end: str) -> str:
    """What it prints until this text."""
    assert process.stdout is not None
    said = b""
    while end.encode() not in said:
        said += (part := await process.stdout.receive_some())
        assert part, said
    return said.decode()


async def test_the_printed_address_works_and_ctrl_c_ends_the_program_at_once_with_a_tab_open(tmp_path: Path) -> None:
    words = ("-m", "simplexmcp", "sandbox", "--port", "0", "--phone-port", "0")
    async with running(tmp_path / "err", *words) as process:
        found = re.search(r"Phone \(a simulation\): (http://\S+)", await said_until(process, "Ctrl-C"))
        assert found is not None
        browser = Browser(found[1])
        await browser.load()
        async with browser.tab("owner") as tab:
            process.send_signal(signal.SIGINT)
            await tab.until(lambda: tab.closed)
            assert tab.closed == (1001, "The server ended.")
            with trio.fail_after(20):
                assert await process.wait() == 0
        await browser.http.aclose()
    assert (tmp_path / "err").read_text() == ""


async def test_the_demo_that_stays_prints_the_address_of_its_page_first(tmp_path: Path) -> None:
    async with running(tmp_path / "err", "-m", "simplexmcp.demo", "--keep") as process:
        said = await said_until(process, "Its headers:")
        assert re.match(r"Phone \(a simulation.*\): http://127\.0\.0\.1:\d+/join\?link=https%3A\S+&token=\S+\n", said)
        process.send_signal(signal.SIGINT)
        with trio.fail_after(10):
            assert await process.wait() == 0
