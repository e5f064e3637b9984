"""The tour (`make demo`): an agent, its owner and a simulated network in one terminal, with a real MCP client.

The network is the sandbox behind a real WebSocket, the server is `serve`, the owner is a core of the network that
reads the control chat and taps. With `--keep` there is no tour: the server stays, and whoever sits at the terminal, or
at the page that it names, is the owner.
"""

from __future__ import annotations

import argparse
import json
import secrets
import sys
import tempfile
import textwrap
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import trio

from simplexmcp import serve
from simplexmcp.chats import chat_of
from simplexmcp.core.api import ChatApi
from simplexmcp.core.websocket import open_websocket
from simplexmcp.options import ServeOptions
from simplexmcp.phone.server import serve_phone
from simplexmcp.sandbox.driver import trio_clock
from simplexmcp.sandbox.network import Network
from simplexmcp.sandbox.server import serve_network
from simplexmcp.terminal import printable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from mcp import Client

__all__ = ["main"]

_OWNER = "alice"  # the owner's core
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
        except* KeyboardInterrupt:
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
                    self._show(item, edited=event["type"] == "chatItemUpdated")

    def _show(self, item: dict[str, Any], *, edited: bool) -> None:
        meta, content = item["meta"], item["content"]["msgContent"]
        text = ("[picture] " if content.get("image") else "") + str(meta["itemText"])
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


@final
class _Bob:
    """A peer with an address, who sends files to whoever connects."""

    def __init__(self, api: ChatApi) -> None:
        self._api = api
        self._ref = ""
        self._connected = trio.Event()

    async def open(self) -> str:
        """Make the address; its link."""
        await self._api.create_user("Bob", "human")
        await self._api.start()
        user = self._api.user_id
        pair = (await self._api.link.send(f"/_address {user}"))["connLinkContact"]
        settings = {"businessAddress": False, "autoAccept": {"acceptIncognito": False}}
        await self._api.link.send(f"/_address_settings {user} {json.dumps(settings)}")
        return str(pair["connShortLink"])

    async def watch(self) -> None:
        """Learn who connected, until cancelled."""
        async for event in self._api.link.events:
            if event["type"] == "contactConnected":
                self._ref = f"@{event['contact']['contactId']}"
                self._connected.set()

    async def give(self, path: Path, text: str) -> None:
        """Send a file."""
        with trio.fail_after(_PATIENCE):
            await self._connected.wait()
        _say("bob", f"sends {path.name}: {text}")
        content = {"type": "file", "text": text}
        await self._api.send_messages(self._ref, [{"msgContent": content, "fileSource": {"filePath": str(path)}}])


@dataclass(frozen=True)
class _Stage:
    """Everybody who plays: server URL, link of the control chat, the network and its port, what the server says."""

    owner: _Owner
    url: str
    link: str
    nursery: trio.Nursery
    stop: serve.Stop
    network: Network
    port: int


@asynccontextmanager
async def _stage(folder: Path, port: int, say: Callable[[str, str], None]) -> AsyncGenerator[_Stage]:
    """The network, the running server and the owner's core."""
    lines: list[str] = []
    url: list[str] = []
    ready = trio.Event()
    stop = serve.Stop()

    def out(line: str) -> None:
        lines.append(line)
        say("server", line)

    def on_ready(bound: int) -> None:
        url.append(f"http://127.0.0.1:{bound}/mcp")
        ready.set()

    async with trio.open_nursery() as nursery:
        network = Network(trio_clock(), seed=secrets.token_hex(8))
        sandbox: int = await nursery.start(serve_network, network, 0)
        say("sandbox", "A simulated network: no phones, no internet, no real people.")
        say("sandbox", f"Its cores: ws://127.0.0.1:{sandbox}/PROFILE")
        options = _options(folder, port, f"ws://127.0.0.1:{sandbox}/my-agent")
        nursery.start_soon(lambda: serve.serve(options, stop, out=out, on_ready=on_ready))
        with trio.fail_after(_PATIENCE):
            await ready.wait()
        async with open_websocket(f"ws://127.0.0.1:{sandbox}/{_OWNER}") as link:
            api = ChatApi(link)
            await api.create_user("Alice", "human")
            await api.start()
            joining = next(line for line in lines if line.startswith("https://"))
            yield _Stage(_Owner(api), url[0], joining, nursery, stop, network, sandbox)
        nursery.cancel_scope.cancel()


def _options(folder: Path, port: int, core: str) -> ServeOptions:
    return ServeOptions(
        name="my-agent", display_name="My Agent", data=folder, data_given=True, port=port, approve="requests",
        owners=None, reset_owners=False, expire_hours=23, stop_wait=2, qr_code="none", core=core, smp_servers=(),
        xftp_servers=(), log_level="warning", database_key_file=None,
    )  # fmt: skip


async def _tour(folder: Path, port: int) -> None:
    async with _stage(folder, port, _say) as stage:
        owner = stage.owner
        stage.nursery.start_soon(owner.watch)
        _say("owner", "joins the control chat by the link")
        await owner.join(stage.link)
        await owner.see("I'm your agent")
        token = (folder / "token").read_text("utf-8").strip()
        async with (
            _client(stage.url, token) as client,
            open_websocket(f"ws://127.0.0.1:{stage.port}/bob") as link,
        ):
            chat = await _play(client, owner)
            await _send_picture(client, owner, chat, folder.parent)
            bob = _Bob(ChatApi(link))
            address = await bob.open()
            stage.nursery.start_soon(bob.watch)
            await _receive_file(client, owner, bob, address, folder.parent)
        stage.stop.asked.set()
        await trio.sleep(1)
    _say("tour", "That was the tour. Next: README.md, or `make demo KEEP=1` to be the owner yourself.")


async def _play(client: Client, owner: _Owner) -> str:
    """Messages; the chat that they went to."""
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
    return str(chat)


async def _send_picture(client: Client, owner: _Owner, chat: str, folder: Path) -> None:
    """A picture goes without its metadata; its preview is on the card."""
    from PIL import Image

    _title("6. A file is sent: the owner sees the picture first")
    path = folder / "trail-map.png"
    Image.radial_gradient("L").save(path)
    await _approved(
        client, owner, "send", "attaching image", f"approve {chat} 5", chat=chat, text="The trail map", file=str(path)
    )
    _title("7. A key is not sent, whatever it is called")
    key = folder / "notes.txt"
    key.write_text(f"-----BEGIN OPENSSH PRIVATE KEY-----\n{'b3BlbnNzaC1rZXktdjE' * 8}\n", "utf-8")
    await _call(client, "send", refused=True, chat=chat, file=str(key))
    await owner.see("it was refused")


async def _receive_file(client: Client, owner: _Owner, bob: _Bob, address: str, folder: Path) -> None:
    """A file of a peer is fetched after the owner's word."""
    _title("8. A file is received")
    connected = await _approved(client, owner, "connect", "contact Bob", "approve 6", target=address, wait=20, idle=1)
    chat = connected["chat"]
    report = folder / "report.txt"
    report.write_text("The bridge at mile 12 is closed.\n" * 40, "utf-8")
    await bob.give(report, "our report")
    shown = (await _call(client, "receive", chat=chat, wait=20))["messages"]
    item = next(message["item"] for message in shown if "file" in message)
    result = await _approved(client, owner, "download", "`report.txt`", f"receive {chat} 7", chat=chat, item=item)
    same = await trio.Path(result["path"]).read_bytes() == report.read_bytes()
    _say("tour", f"The file is here, {'byte for byte' if same else 'DAMAGED'}.")


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


async def _call(client: Client, tool: str, *, refused: bool = False, **arguments: Any) -> dict[str, Any]:
    given = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    _say("agent", f"calls {tool}({given})")

    async def shown(progress: float, total: float | None, message: str | None) -> None:
        del progress, total
        _say("agent", f"waits: {message}")

    with trio.fail_after(_PATIENCE):
        answer = await client.call_tool(tool, arguments, progress_callback=shown)
    content = dict(answer.structured_content or {})
    _say("agent", f"gets {json.dumps(content, ensure_ascii=False)}")
    if answer.is_error is not refused:
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
    """Stay up; the page is the owner's phone, and the terminal too once it has joined."""
    screen = _Screen()
    async with _stage(folder, port, screen.say) as stage:
        owner = stage.owner
        phone = await stage.nursery.start(partial(serve_phone, stage.network, held="", owner=_OWNER, port=None))
        print(phone.line(stage.link), flush=True)
        screen.open()
        _title("It stays up until Ctrl-C")
        print("Open the page above in a browser: it joins as the owner with one click.")
        print(f"MCP endpoint:  {stage.url}")
        print(f"Owner's link:  {stage.link}")
        print(f"Claude Code:   simplexmcp register my-agent --data {folder}")
        print(f"Its headers:   {folder / 'headers.json'}", flush=True)
        if not sys.stdin.isatty():
            await trio.sleep_forever()
        print("Or press Enter to join as the owner here; then type the owner's commands, such as /approve 1 or /help.")
        await _typed()
        stage.nursery.start_soon(owner.watch)
        await owner.join(stage.link)
        while (line := await _typed()) is not None:
            if line.strip():
                await owner.write(line.strip())
        await trio.sleep_forever()


async def _typed() -> str | None:
    """A typed line; None at the end of the input. The thread that reads it may outlive a Ctrl-C."""
    line = await trio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True)
    return line or None


@final
class _Screen:
    """What is said, held back until the page's address stands above it."""

    def __init__(self) -> None:
        self._held: list[tuple[str, str]] | None = []

    def say(self, who: str, text: str) -> None:
        """Show it, now or later."""
        if self._held is None:
            _say(who, text)
        else:
            self._held.append((who, text))

    def open(self) -> None:
        """Show what was held back, and the rest at once."""
        held, self._held = self._held or [], None
        for who, text in held:
            _say(who, text)


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
