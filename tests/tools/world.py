"""A small core for the tests of the tools: chats in memory behind the real ChatApi, with a checkpoint on both sides of
every command, so that a call can be cancelled before a command is done and after it."""

from __future__ import annotations

import json
import re
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import trio

from simplexmcp.core.api import ChatApi
from simplexmcp.errors import CoreError
from simplexmcp.files.room import FileRoom
from simplexmcp.standing import StandingApprovals
from simplexmcp.tools import AgentTools
from simplexmcp.watch import Watch
from tests import fakes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from simplexmcp.tooling import ToolResult

Wire = dict[str, Any]
USER = {"userId": 1, "localDisplayName": "My Agent", "profile": {"displayName": "My Agent"}}
LINK = {
    "connFullLink": "simplex:/contact#/?v=2-7&smp=smp%3A%2F%2Fkey%40relay.example%2Fq",
    "connShortLink": "https://relay.example/a#KEY",
}


def contact(number: int, name: str = "Helper", *, bot: bool = True, status: str | None = "ready", **more: Any) -> Wire:
    profile = {"displayName": name, "fullName": "", **({"peerType": "bot"} if bot else {})}
    connection = {
        "activeConn": {
            "connId": 10 + number,
            "agentConnId": f"conn-{name}",
            "connStatus": {"type": status},
            "authErrCounter": 0,
        }
    }
    return {
        "contactId": number,
        "localDisplayName": name,
        "profile": profile,
        "contactStatus": "active",
        "createdAt": "2026-11-30T21:00:00Z",
        **(connection if status else {}),
        **more,
    }


def group(number: int, name: str = "Trail", *, role: str = "member", status: str = "connected", **more: Any) -> Wire:
    membership = {"groupMemberId": 1, "memberId": f"me-{name}", "memberRole": role, "memberStatus": status}
    return {
        "groupId": number,
        "useRelays": False,
        "localDisplayName": name,
        "createdAt": "2026-11-30T21:00:00Z",
        "groupProfile": {"displayName": name, "fullName": ""},
        "membership": membership,
        **more,
    }


def member(number: int, name: str, **more: Any) -> Wire:
    return {
        "groupMemberId": number,
        "memberId": f"m-{number}",
        "memberRole": "member",
        "memberStatus": "connected",
        "localDisplayName": name,
        "memberProfile": {"displayName": name, "fullName": ""},
        **more,
    }


def info(chat: Wire) -> Wire:
    return {"type": "direct", "contact": chat} if "contactId" in chat else {"type": "group", "groupInfo": chat}


def item(
    number: int,
    text: str = "hello",
    *,
    own: bool = False,
    unread: bool = True,
    by: Wire | None = None,
    live: bool = False,
    service: bool = False,
    **meta: Any,
) -> Wire:
    way = "Snd" if own else "Rcv"
    side = {"type": f"group{way}", **({} if own else {"groupMember": by})} if by else {"type": f"direct{way}"}
    tag = "sndMsgContent" if own else "rcvMsgContent"
    content = {"type": tag, "msgContent": {"type": "text", "text": text}}
    if service:
        content = {"type": "rcvGroupEvent", "rcvGroupEvent": {"type": "userRole", "role": "member"}}
    return {
        "chatDir": side,
        "meta": {
            "itemId": number,
            "itemTs": f"2026-11-30T21:00:{number % 60:02}Z",
            "itemText": text,
            "itemEdited": False,
            "itemStatus": {"type": "sndNew" if own else "rcvNew" if unread else "rcvRead"},
            "userMention": False,
            **({"itemLive": True} if live else {}),
            **meta,
        },
        "content": content,
        "mentions": {},
        "reactions": [],
    }


@dataclass
class FakeChat:
    info: Wire
    items: list[Wire] = field(default_factory=list)

    def unread(self) -> list[Wire]:
        return [i for i in self.items if i["meta"]["itemStatus"]["type"] == "rcvNew"]


class FakeCore:
    """The link, and the model behind it. `fail` maps the start of a command to what it raises, once."""

    def __init__(self) -> None:
        self.chats: dict[str, FakeChat] = {}
        self.members: dict[int, list[Wire]] = {}
        self.plans: dict[str, Wire] = {}
        self.commands: list[str] = []
        self.fail: dict[str, Exception] = {}
        self.listeners: list[Callable[[Wire], None]] = []
        self.on_command: dict[str, Callable[[], None]] = {}
        self.next_item = 100
        self.down_since: float | None = None

    # what the others do

    def emit(self, tag: str, **fields: Any) -> None:
        for listener in self.listeners:
            listener({"type": tag, "user": USER, **fields})

    def add(self, chat: Wire, *items: Wire, scope: Wire | None = None) -> str:
        chat_info = info(chat) | ({"groupChatScope": scope} if scope else {})
        ref = f"@{chat['contactId']}" if "contactId" in chat else f"#{chat['groupId']}"
        ref += "" if scope is None else "(_support)"
        self.chats[ref] = FakeChat(chat_info, list(items))
        return ref

    def arrive(self, ref: str, *texts: str, quiet: bool = False, **more: Any) -> list[int]:
        """Messages from the other side; `quiet`: their events are lost."""
        numbers: list[int] = []
        for text in texts:
            self.next_item += 1
            new = item(self.next_item, text, **more)
            self.chats[ref].items.append(new)
            numbers.append(self.next_item)
            if not quiet:
                self.emit("newChatItems", chatItems=[{"chatInfo": self.chats[ref].info, "chatItem": new}])
        return numbers

    def change(self, ref: str, number: int, **meta: Any) -> None:
        """An edit, or the next state of a live message."""
        found = next(i for i in self.chats[ref].items if i["meta"]["itemId"] == number)
        text = meta.pop("text", None)
        found["meta"] = {k: v for k, v in {**found["meta"], **meta}.items() if v is not None}
        if text is not None:
            found["content"] = {"type": "rcvMsgContent", "msgContent": {"type": "text", "text": text}}
        self.emit("chatItemUpdated", chatItem={"chatInfo": self.chats[ref].info, "chatItem": found})

    # the link

    async def send(self, command: str) -> Wire:
        await trio.lowlevel.checkpoint()
        self.commands.append(command)
        for start in [s for s in self.fail if command.startswith(s)]:
            raise self.fail.pop(start)
        response = self._answer(command)
        for start in [s for s in self.on_command if command.startswith(s)]:
            self.on_command.pop(start)()
        await trio.lowlevel.checkpoint()
        return {"user": USER, **response}

    def did(self, start: str) -> list[str]:
        return [c for c in self.commands if c.startswith(start)]

    def _answer(self, command: str) -> Wire:
        for pattern, answer in self._grammar():
            if found := re.fullmatch(pattern, command, re.DOTALL):
                return answer(*found.groups())
        raise CoreError("error/commandError", f"error/commandError: {command}")

    def _grammar(self) -> list[tuple[str, Callable[..., Wire]]]:
        return [
            (r"/user", lambda: {"type": "activeUser"}),
            (r"/_get chats 1 pcc=on count=\d+", self._list),
            (r"/_get chat (\S+) (\w+)=(\d+)(?: count=(\d+))?(?: search=(.*))?", self._get),
            (r"/_send (\S+) json (.*)", self._send),
            (r"/_read chat items (\S+) ([\d,]+)", self._read),
            (r"/_members #(\d+)", self._list_members),
            (r"/_connect plan 1 (\S+)", self._plan),
            (r"/_prepare contact 1 (\S+) (\S+) (?:domain=(\S+) )?(.*)", self._prepare),
            (r"/_prepare group 1 (\S+) (\S+) direct=off (.*)", self._prepare_channel),
            (
                r"/_connect contact @(\d+) .*",
                lambda n: {"type": "startedConnectionToContact", "contact": self._chat(f"@{n}").info["contact"]},
            ),
            (
                r"/_connect group #(\d+) .*",
                lambda n: {"type": "startedConnectionToGroup", "groupInfo": self._chat(f"#{n}").info["groupInfo"]},
            ),
            (
                r"/_connect contact 1 incognito=\w+ (\d+)",
                lambda n: {"type": "sentInvitationToContact", "contact": self._chat(f"@{n}").info["contact"]},
            ),
            (r"/_connect 1 incognito=\w+ .*", lambda: {"type": "sentInvitation", "connection": {"pccConnId": 77}}),
            (
                r"/_contacts 1",
                lambda: {
                    "type": "contactsList",
                    "contacts": [c.info["contact"] for c in self.chats.values() if "contact" in c.info],
                },
            ),
            (
                r"/_groups 1",
                lambda: {
                    "type": "groupsList",
                    "groups": [c.info["groupInfo"] for c in self.chats.values() if "groupInfo" in c.info],
                },
            ),
            (r"/_leave #(\d+)", self._leave),
            (r"/_delete (\S+) full(?: notify=off)?", self._delete),
        ]

    def _chat(self, ref: str) -> FakeChat:
        if ref not in self.chats:
            raise CoreError("errorStore/groupNotFound" if ref[0] == "#" else "errorStore/contactNotFound", "not found")
        return self.chats[ref]

    def _list(self) -> Wire:
        chats = [
            {"chatInfo": c.info, "chatItems": c.items[-1:], "chatStats": self._stats(c)}
            for ref, c in self.chats.items()
            if "(" not in ref
        ]
        return {"type": "apiChats", "chats": chats}

    def _stats(self, chat: FakeChat | None) -> Wire:
        unread = chat.unread() if chat else []
        first = unread[0]["meta"]["itemId"] if unread else 0
        return {
            "unreadCount": len(unread),
            "unreadMentions": 0,
            "reportsCount": 0,
            "minUnreadItemId": first,
            "unreadChat": False,
        }

    def _get(self, ref: str, page: str, number: str, n: str | None, search: str | None) -> Wire:
        chat = self._chat(ref)
        items = [i for i in chat.items if search is None or search.casefold() in i["meta"]["itemText"].casefold()]
        ids = [i["meta"]["itemId"] for i in items]
        stats = self._stats(chat if page in ("around", "initial") else None)
        if page == "count":
            found = items[max(0, len(items) - int(number)) :] if int(number) else []
        elif page == "initial":
            found = items[-int(number) :]
        else:
            if int(number) not in ids:
                raise CoreError("errorStore/chatItemNotFound", "errorStore/chatItemNotFound")
            at, size = ids.index(int(number)), int(n or 0)
            found = {
                "after": items[at + 1 : at + 1 + size],
                "before": items[max(0, at - size) : at],
                "around": items[max(0, at - size) : at + 1 + size],
            }[page]
        return {
            "type": "apiChat",
            "chat": {"chatInfo": chat.info, "chatItems": json.loads(json.dumps(found)), "chatStats": stats},
        }

    def _send(self, ref: str, composed: str) -> Wire:
        chat = self._chat(ref)
        self.next_item += 1
        by = member(1, "My Agent") if ref[0] == "#" else None
        new = item(self.next_item, json.loads(composed)[0]["msgContent"]["text"], own=True, by=by)
        chat.items.append(new)
        return {"type": "newChatItems", "chatItems": [{"chatInfo": chat.info, "chatItem": new}]}

    def _read(self, ref: str, ids: str) -> Wire:
        numbers = {int(i) for i in ids.split(",")}
        for i in self._chat(ref).items:
            if i["meta"]["itemId"] in numbers and i["meta"]["itemStatus"]["type"] == "rcvNew":
                i["meta"]["itemStatus"] = {"type": "rcvRead"}
        return {"type": "itemsReadForChat", "chatInfo": self._chat(ref).info}

    def _list_members(self, number: str) -> Wire:
        found = self.members.get(int(number), [])
        return {
            "type": "groupMembers",
            "group": {"groupInfo": self._chat(f"#{number}").info["groupInfo"], "members": found},
        }

    def _plan(self, target: str) -> Wire:
        if target not in self.plans:
            raise CoreError("errorAgent/SMP/AUTH", "errorAgent/SMP/AUTH")
        return {"type": "connectionPlan", "connLink": LINK, **self.plans[target]}

    def _free(self, sigil: str) -> int:
        taken = [int(ref[1:].partition("(")[0]) for ref in self.chats if ref[0] == sigil]
        return max(taken, default=3) + 1

    def _prepare(self, _full: str, _short: str, _domain: str | None, data: str) -> Wire:
        offered = json.loads(data)
        name = offered["profile"]["displayName"]
        if offered.get("business"):
            made = group(
                self._free("#"), name, status="unknown", businessChat={"chatType": "business"}, preparedGroup={}
            )
        else:
            bot = offered["profile"].get("peerType") == "bot"
            made = contact(self._free("@"), name, bot=bot, status=None, preparedContact={"uiConnLinkType": "con"})
        return self._prepared(made)

    def _prepare_channel(self, _full: str, _short: str, data: str) -> Wire:
        name = json.loads(data)["groupProfile"]["displayName"]
        return self._prepared(group(self._free("#"), name, status="unknown", preparedGroup={}))

    def _prepared(self, made: Wire) -> Wire:
        ref = self.add(made)
        self.arrive(ref, "Welcome!", quiet=True)
        return {"type": "newPreparedChat", "chat": {"chatInfo": self.chats[ref].info, "chatItems": [], "chatStats": {}}}

    def _leave(self, number: str) -> Wire:
        left = self._chat(f"#{number}").info["groupInfo"]
        left["membership"]["memberStatus"] = "left"
        return {"type": "leftMemberUser", "groupInfo": left}

    def _delete(self, ref: str) -> Wire:
        chat = self._chat(ref)
        if ref[0] == "#" and chat.info["groupInfo"]["membership"]["memberStatus"] == "connected":
            raise CoreError("error/groupUserRole", "error/groupUserRole")
        del self.chats[ref]
        return {"type": "groupDeletedUser" if ref[0] == "#" else "contactDeleted"}


class World:
    """The tools on the small core, with real actions and a control chat that keeps its cards."""

    def __init__(self, folder: Path, mode: str = "requests", core: FakeCore | None = None) -> None:
        self.core = core or FakeCore()
        self.api = ChatApi(self.core)  # type: ignore[arg-type]
        self.watch = Watch()
        self.desk = fakes.Desk(folder, mode)
        self.actions, self.board = self.desk.actions, self.desk.board
        self.actions.standing = StandingApprovals(self.api, self.board, fakes.TrioClock(), enabled=mode == "requests")
        self.actions.files = self.actions.standing.of_files()
        self.news = fakes.News()
        self.files = FileRoom(self.api, folder, self.desk.audit, fakes.TrioClock(), self.news)
        self.tools: AgentTools
        self.nursery: trio.Nursery

    @asynccontextmanager
    async def running(self) -> AsyncIterator[World]:
        await self.api.active_user()
        self.tools = AgentTools(self.api, self.actions, self.watch, fakes.TrioClock(), self.files)
        self.core.listeners += [self.files.on_event, self.watch.on_event, self.tools.on_event]
        async with self.desk.running(), trio.open_nursery() as self.nursery:
            await self.nursery.start(self.files.run)
            yield self
            self.nursery.cancel_scope.cancel()

    async def call(self, name: str, call: fakes.Call | None = None, /, **arguments: Any) -> ToolResult:
        """One call; its answer reaches nobody until `settle` is called."""
        return await self.tools.call(name, arguments, call or fakes.Call())

    async def use(self, name: str, call: fakes.Call | None = None, /, **arguments: Any) -> Wire:
        """One call whose answer reaches the agent."""
        result = await self.call(name, call, **arguments)
        if result.settle is not None:
            result.settle()
        return result.content

    def start(self, name: str, call: fakes.Call | None = None, /, **arguments: Any) -> Running:
        """A call in the background."""
        running = Running()
        self.nursery.start_soon(running.run, self, name, call or fakes.Call(), arguments)
        return running

    async def cancelled_after(self, steps: int, name: str, /, **arguments: Any) -> Running:
        """A call that is cancelled at its await number `steps`, unless it ends before."""
        running = Running()
        cancel = _CancelAt(running, steps)
        trio.lowlevel.add_instrument(cancel)
        self.nursery.start_soon(running.run, self, name, fakes.Call(), arguments, name="the call")
        await running.done.wait()
        trio.lowlevel.remove_instrument(cancel)
        return running

    async def approve(self, number: int = 1) -> str | None:
        """The owner's tap, once the card is posted."""
        await self.posted(number)
        return self.actions.approve(number, None, fakes.ALICE)

    async def posted(self, number: int = 1) -> None:
        while (action := self.actions.get(number)) is None:
            await trio.lowlevel.checkpoint()
        await action.posted.wait()


class _CancelAt(trio.abc.Instrument):
    """Cancels the task called "the call" when it yields for the n-th time."""

    def __init__(self, running: Running, steps: int) -> None:
        self._running, self._left = running, steps

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        if task.name == "the call":
            self._left -= 1
            if self._left == 0:
                self._running.scope.cancel()


class Running:
    """A call in the background: its answer, and how to lose it."""

    def __init__(self) -> None:
        self.content: Wire | None = None
        self.scope = trio.CancelScope()
        self.done = trio.Event()

    async def run(self, world: World, name: str, call: fakes.Call, arguments: Wire) -> None:
        with self.scope:
            self.content = await world.use(name, call, **arguments)
        self.done.set()

    async def result(self) -> Wire:
        await self.done.wait()
        assert self.content is not None
        return self.content
