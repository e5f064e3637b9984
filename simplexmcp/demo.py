"""The tour (`make demo`): an agent, its owner and a simulated network in one terminal, with a real MCP client.

The network is the sandbox behind a real WebSocket, the server is `serve`, the owner is a core of the network that
reads the control chat and taps. With `--keep` there is no tour: the server stays, and whoever sits at the terminal is
the owner.
"""

from __future__ import annotations

import argparse
import json
import secrets
import sys
import tempfile
import textwrap
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import trio

from simplexmcp import serve
from simplexmcp.chats import chat_of
from simplexmcp.core.api import ChatApi
from simplexmcp.core.websocket import open_websocket
from simplexmcp.options import ServeOptions
from simplexmcp.sandbox.driver import trio_clock
from simplexmcp.sandbox.network import Network
from simplexmcp.sandbox.server import serve_network
from simplexmcp.terminal import printable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from mcp import Client

__all__ = ["main"]

_PATIENCE = 30.0  # seconds for one step: more means that something is broken


def main() -> int:
    """Play the tour, or stay with `--keep`; the exit code."""
    parser = argparse.ArgumentParser(prog="simplexmcp-demo", description="A tour of simplexmcp on a simulated network.")
    parser.add_argument("--keep", action="store_true", help="stay up, with you as the owner, until Ctrl-C")
    parser.add_argument("--port", type=int, default=0, help="port of the agent server (default: a free one)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="simplexmcp-demo-") as folder:
        try:
            trio.run(_keep if options.keep else _tour, Path(folder) / "my-agent", options.port)
        except KeyboardInterrupt:
            print()
    return 0


@final
class _Owner:
    """The owner's phone: a person's core that shows the control chat, and taps."""

    def __init__(self, api: ChatApi) -> None:
        self._api = api
        self._cards: dict[int, str] = {}
        self._changed = trio.Event()
        self.ref = ""

    async def join(self, link: str) -> None:
        """Join the control chat by its link, as the apps do."""
        plan = await self._api.connect_plan(link)
        data = plan["connectionPlan"]["groupLinkPlan"]["groupSLinkData_"]
        prepared = chat_of((await self._api.prepare_group(plan["connLink"], data))["chatInfo"])
        assert prepared is not None
        self.ref = prepared.ref
        await self._api.connect_group(prepared.number, None)

    async def watch(self) -> None:
        """Show every post and every edit until cancelled."""
        async for event in self._api.link.events:
            items = event.get("chatItems") if event["type"] == "newChatItems" else [event.get("chatItem")]
            for entry in items or []:
                item = (entry or {}).get("chatItem") or {}
                if (item.get("content") or {}).get("type") == "rcvMsgContent":
                    self._show(item["meta"], edited=event["type"] == "chatItemUpdated")

    def _show(self, meta: dict[str, Any], *, edited: bool) -> None:
        text = str(meta["itemText"])
        if self._cards.get(meta["itemId"]) != text:
            self._cards[meta["itemId"]] = text
            _say("phone", ("(edited) " if edited else "") + text)
        self._changed.set()
        self._changed = trio.Event()

    async def see(self, needle: str) -> str:
        """The first post with this text, now or when it comes."""
        with trio.fail_after(_PATIENCE):
            while True:
                for text in self._cards.values():
                    if needle in text:
                        return text
                await self._changed.wait()

    async def tap(self, words: str) -> None:
        """Send a command, as a tap on a card does."""
        _say("owner", f"taps /{words}")
        await self._api.send_text(self.ref, f"/{words}")

    async def write(self, text: str) -> None:
        """Send what was typed."""
        await self._api.send_text(self.ref, text)


@asynccontextmanager
async def _stage(folder: Path, port: int) -> AsyncGenerator[tuple[_Owner, str, str, trio.Nursery, serve.Stop]]:
    """The network, the running server and the owner's core: owner, server URL, link of the control chat."""
    lines: list[str] = []
    url: list[str] = []
    ready = trio.Event()
    stop = serve.Stop()

    def out(line: str) -> None:
        lines.append(line)
        _say("server", line)

    def on_ready(bound: int) -> None:
        url.append(f"http://127.0.0.1:{bound}/mcp")
        ready.set()

    async with trio.open_nursery() as nursery:
        network = Network(trio_clock(), seed=secrets.token_hex(8))
        sandbox: int = await nursery.start(serve_network, network, 0)
        _say("sandbox", "A simulated network: no phones, no internet, no real people.")
        _say("sandbox", f"Its cores: ws://127.0.0.1:{sandbox}/PROFILE")
        options = _options(folder, port, f"ws://127.0.0.1:{sandbox}/my-agent")
        nursery.start_soon(lambda: serve.serve(options, stop, out=out, on_ready=on_ready))
        with trio.fail_after(_PATIENCE):
            await ready.wait()
        async with open_websocket(f"ws://127.0.0.1:{sandbox}/alice") as link:
            api = ChatApi(link)
            await api.create_user("Alice", "human")
            await api.start()
            joining = next(line for line in lines if line.startswith("https://"))
            yield _Owner(api), url[0], joining, nursery, stop
        nursery.cancel_scope.cancel()


def _options(folder: Path, port: int, core: str) -> ServeOptions:
    return ServeOptions(
        name="my-agent", display_name="My Agent", data=folder, data_given=True, port=port, approve="requests",
        owners=None, reset_owners=False, expire_hours=23, stop_wait=2, qr_code="none", core=core, smp_servers=(),
        xftp_servers=(), log_level="warning", database_key_file=None,
    )  # fmt: skip


async def _tour(folder: Path, port: int) -> None:
    async with _stage(folder, port) as (owner, url, link, nursery, stop):
        nursery.start_soon(owner.watch)
        _say("owner", "joins the control chat by the link")
        await owner.join(link)
        await owner.see("I'm your agent")
        token = (folder / "token").read_text("utf-8").strip()
        async with _client(url, token) as client:
            await _play(client, owner)
        stop.asked.set()
        await trio.sleep(1)
    _say("tour", "That was the tour. Next: README.md, or `make demo KEEP=1` to be the owner yourself.")


async def _play(client: Client, owner: _Owner) -> None:
    _title("1. The agent connects; the owner approves")
    target = "@directory.simplex"
    result = await _approved(client, owner, "connect", "I want to connect", "approve 1", target=target, idle=2)
    chat = result["chat"]
    _title("2. A message is sent and answered")
    await _approved(
        client, owner, "send", "I want to send", f"approve {chat} 2", chat=chat, text="hiking", wait=20, idle=2
    )
    _title("3. A standing approval: no card for this chat any more")
    await owner.tap(f"approve {chat} all")
    await owner.see("Approved for")
    await _call(client, "send", chat=chat, text="/all", wait=20, idle=2)
    await owner.tap(f"revoke {chat}")
    await owner.see("need approval again")
    _title("4. A rejection: nothing is sent")
    text = "Buy 100 shares, /'approve 4'"
    await _approved(client, owner, "send", "Buy 100 shares", f"reject {chat} 4", chat=chat, text=text)
    _title("5. What the agent sees of its chats")
    await _call(client, "list")


async def _approved(
    client: Client, owner: _Owner, tool: str, needle: str, words: str, **arguments: Any
) -> dict[str, Any]:
    """A call, and the owner's word on its card."""
    result: dict[str, Any] = {}

    async def call() -> None:
        result.update(await _call(client, tool, **arguments))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(call)
        await owner.see(needle)
        await owner.tap(words)
    return result


async def _call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    given = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    _say("agent", f"calls {tool}({given})")

    async def shown(progress: float, total: float | None, message: str | None) -> None:
        del progress, total
        _say("agent", f"waits: {message}")

    with trio.fail_after(_PATIENCE):
        answer = await client.call_tool(tool, arguments, progress_callback=shown)
    content = dict(answer.structured_content or {})
    _say("agent", f"gets {json.dumps(content, ensure_ascii=False)}")
    if answer.is_error:
        raise SystemExit(f"The tour failed: {content}")
    return content


@asynccontextmanager
async def _client(url: str, token: str) -> AsyncGenerator[Client]:
    """The MCP SDK's own client, as an agent's host would use it."""
    import httpx2
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=None) as http,
        Client(streamable_http_client(url, http_client=http), mode="legacy") as client,
    ):
        yield client


async def _keep(folder: Path, port: int) -> None:
    """Stay up; the terminal is the owner's phone once it has joined."""
    async with _stage(folder, port) as (owner, url, link, nursery, _):
        _title("It stays up until Ctrl-C")
        print(f"MCP endpoint:  {url}")
        print(f"Owner's link:  {link}")
        print(f"Claude Code:   simplexmcp register my-agent --data {folder}")
        print(f"Its headers:   {folder / 'headers.json'}", flush=True)
        if not sys.stdin.isatty():
            await trio.sleep_forever()
        print("Press Enter to join as the owner here; then type the owner's commands, such as /approve 1 or /help.")
        await _typed()
        nursery.start_soon(owner.watch)
        await owner.join(link)
        while (line := await _typed()) is not None:
            if line.strip():
                await owner.write(line.strip())
        await trio.sleep_forever()


async def _typed() -> str | None:
    """A typed line; None at the end of the input. The thread that reads it may outlive a Ctrl-C."""
    line = await trio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True)
    return line or None


def _title(text: str) -> None:
    print(f"\n--- {text} ---", flush=True)


def _say(who: str, text: str) -> None:
    """One line, or several, of one of the players."""
    first = f"{who:>8} | "
    for line in text.split("\n"):
        wrapped = textwrap.wrap(printable(line), 110, break_long_words=False, break_on_hyphens=False) or [""]
        for part in wrapped:
            print(first + part, flush=True)
            first = " " * 8 + " | "


if __name__ == "__main__":
    sys.exit(main())
