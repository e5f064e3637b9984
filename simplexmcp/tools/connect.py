"""`connect`: to a person, bot, business, group or channel, after an owner's word (flow 3).

The plan is read before the card and again before the commands. The perform waits for the other side, as long
as the calls want, at most as long as the card can be edited; the wait for messages after it belongs to each
call.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, final

import trio

from simplexmcp import messages
from simplexmcp.action import Request
from simplexmcp.cards import ConnectSubject
from simplexmcp.chats import Chat, chat_of, chat_of_contact, chat_of_group
from simplexmcp.core.api import count
from simplexmcp.core.limits import json_length
from simplexmcp.errors import CoreError, Refused
from simplexmcp.states import State
from simplexmcp.tooling import ToolResult
from simplexmcp.tools.joining import Goal, View, goal_of, view_of
from simplexmcp.tools.outcome import fields, settled
from simplexmcp.tools.plan import How, Plan, check_target, classify
from simplexmcp.tools.trouble import clearly, is_link_trouble
from simplexmcp.tools.waiting import Patience, Taken, until_quiet, wall_time

if TYPE_CHECKING:
    from simplexmcp.action import Action, Progress
    from simplexmcp.inbox import Inbox
    from simplexmcp.tools.arguments import Connect
    from simplexmcp.tools.kit import Kit
    from simplexmcp.watch import Joins

__all__ = ["LONGEST_WAIT", "connect"]

_log = logging.getLogger(__name__)

LONGEST_WAIT = timedelta(hours=23, minutes=50)
"""After an action was made, its card can be edited for 24 hours."""

MESSAGE_BYTES = 10_000
"""Most bytes of a message in a request: the profile travels in the same 14,694, or 10,968 when compressed."""


async def connect(kit: Kit, arguments: Connect, call: Progress) -> ToolResult:
    """Flow 3. Raises Refused, CoreError."""
    key = ("connect", arguments.target, arguments.incognito, arguments.message)
    action = kit.actions.find(key)
    if action is None:
        check_target(arguments.target)
        if arguments.message and json_length(arguments.message) > MESSAGE_BYTES:
            raise Refused(
                f"`message` is too long for a request: at most {MESSAGE_BYTES:,} bytes; send the rest afterwards."
            )
        plan = await _plan(kit, arguments)
        if plan.verdict == "known":
            assert plan.chat is not None
            return _known(plan.chat)
        action = kit.actions.ask(_request(kit, key, plan, arguments))
    job = action.request.perform
    assert isinstance(job, _ConnectJob)
    job.wait_for(arguments.wait)
    patience = Patience(arguments.wait, arguments.idle, arguments.limit)
    with kit.actions.attached(action):
        return await _follow(kit, action, job, patience, call)


async def _plan(kit: Kit, arguments: Connect) -> Plan:
    """What the target leads to now. Raises Refused when it cannot be joined."""
    response = await kit.api.connect_plan(arguments.target)
    plan = classify(arguments.target, response, message=arguments.message is not None)
    if plan.verdict == "refuse":
        raise Refused(plan.reason)
    return plan


def _known(chat: Chat) -> ToolResult:
    return ToolResult({"status": "known", **_fields(chat), "connected": chat.state == "connected", "state": chat.state})


def _request(kit: Kit, key: tuple[Any, ...], plan: Plan, arguments: Connect) -> Request:
    given: dict[str, Any] = {"target": arguments.target, "incognito": arguments.incognito}
    if arguments.message is not None:
        given["message"] = arguments.message
    return Request(
        tool="connect",
        key=key,
        input=given,
        subject=ConnectSubject(
            plan.kind, plan.name, arguments.target, plan.host, arguments.incognito, arguments.message
        ),
        chat=None,
        perform=_ConnectJob(kit, plan, arguments),
    )


@final
class _ConnectJob:
    """The perform of a connect, and what its calls need to know of it."""

    def __init__(self, kit: Kit, plan: Plan, arguments: Connect) -> None:
        self._kit, self._plan, self._arguments = kit, plan, arguments
        self._wait = 0.0
        self._latest = 0.0
        self.started = trio.Event()
        self.started_at = 0.0
        self.connected_at: float | None = None
        self.inbox: Inbox | None = None

    @property
    def deadline(self) -> float:
        """When the wait for the other side ends, by trio's clock."""
        return min(self.started_at + self._wait, self._latest)

    @property
    def quiet_from(self) -> float | None:
        """From when the idle time counts: with a message, an answer is waited for."""
        return None if self._arguments.message is not None else self.connected_at

    def wait_for(self, seconds: float) -> None:
        """A call waits this long for the other side."""
        self._wait = max(self._wait, seconds)

    async def __call__(self, action: Action) -> dict[str, Any]:
        kit = self._kit
        with clearly():
            plan = await _plan(kit, self._arguments)
            if plan.verdict == "known" and plan.chat is not None and self._plan.name in ("", plan.name):
                self._collect(action, plan.chat)
                return self._done(plan.chat, connected=plan.chat.state == "connected")
            if plan.shown != self._plan.shown:
                raise Refused(f"{self._plan.title} changed after the request.")
            await kit.actions.confirm(action, None)
            self._begin(action)
            with kit.watch.joins() as joins:
                view = await self._join(action, plan, joins)
        if view.chat is not None and self.inbox is None:
            self._collect(action, view.chat)
        return self._done(view.chat, connected=view.connected)

    def _begin(self, action: Action) -> None:
        left = action.created + LONGEST_WAIT - self._kit.clock.now()
        self.started_at = trio.current_time()
        self._latest = self.started_at + left.total_seconds()
        self.started.set()

    def _collect(self, action: Action, chat: Chat) -> None:
        """Collect the chat's messages from now on; those that came before are read from it by the call."""
        self.inbox = action.kept.enter_context(self._kit.watch.collect(chat.ref))
        self.inbox.gap = True

    def _done(self, chat: Chat | None, *, connected: bool) -> dict[str, Any]:
        if connected:
            self.connected_at = trio.current_time()
        name = chat.name if chat is not None and chat.name else self._plan.name
        return {
            "chat": chat.ref if chat else None,
            "name": messages.shown_name(name),
            "kind": chat.kind if chat else self._plan.kind,
            "connected": connected,
        }

    async def _join(self, action: Action, plan: Plan, joins: Joins) -> View:
        """Send the request, then wait for the other side. A chat that was prepared for it goes when that
        fails."""
        prepared: Chat | None = plan.chat if plan.how in (How.PREPARED_CONTACT, How.PREPARED_GROUP) else None
        try:
            if plan.how in (How.PREPARE_CONTACT, How.PREPARE_CHANNEL):
                prepared = await self._prepare(plan)
            if prepared is not None:
                self._collect(action, prepared)
            goal = await self._ask(plan, prepared)
            if isinstance(goal, Chat):
                return View(goal, connected=True)
            view = await self._wait_until_connected(goal, joins)
            if view.rejected:
                raise Refused(f"{plan.title} rejected the request.")
        except (CoreError, Refused) as error:
            if prepared is not None and not (isinstance(error, CoreError) and is_link_trouble(error)):
                await self._delete(prepared)
            raise
        return view if view.chat is not None else replace(view, chat=prepared or plan.chat)

    async def _prepare(self, plan: Plan) -> Chat:
        api = self._kit.api
        assert plan.data is not None
        if plan.how is How.PREPARE_CHANNEL:
            made = await api.prepare_group(plan.link, plan.data, direct=False, domain=plan.domain)
        else:
            made = await api.prepare_contact(plan.link, plan.data, domain=plan.domain)
        chat = chat_of(made.get("chatInfo"))
        if chat is None:
            raise Refused("The core prepared a chat that cannot be read; look at list before asking again.")
        return chat

    async def _ask(self, plan: Plan, prepared: Chat | None) -> Goal | Chat:
        """The request itself, by the join method of the plan."""
        api, incognito, message = self._kit.api, self._arguments.incognito, self._arguments.message
        if prepared is not None and prepared.is_group:
            await api.connect_group(prepared.number, incognito, message)
            return Goal(prepared.ref)
        if prepared is not None:
            response = await api.connect_contact(prepared.number, incognito, message)
            found = goal_of(response)
            return found if isinstance(found, Chat) else Goal(prepared.ref)
        if plan.how is How.VIA_ADDRESS:
            assert plan.chat is not None
            await api.connect_via_address(plan.chat.number, incognito)
            return Goal(plan.chat.ref)
        return goal_of(await api.connect_link(plan.link, incognito))

    async def _wait_until_connected(self, goal: Goal, joins: Joins) -> View:
        while True:
            if joins.gap:
                await self._fill_gap(goal, joins)
            view = view_of(goal, joins.seen)
            if view.connected or view.rejected or trio.current_time() >= self.deadline:
                return view
            with trio.move_on_at(self.deadline):
                await joins.changed()

    async def _fill_gap(self, goal: Goal, joins: Joins) -> None:
        """Read how far the connection is, after the link came back: its signs may have been missed."""
        joins.gap = False
        ref = goal.ref or (view.chat.ref if (view := view_of(goal, joins.seen)).chat else None)
        try:
            if ref is not None:
                chat = chat_of((await self._kit.api.get_chat(ref, count(0))).get("chatInfo"))
            else:
                chat = await self._born(goal)
        except CoreError as error:
            if not is_link_trouble(error):
                _log.info("connect: after the reconnect: %s", error.tag)
            return
        if chat is not None:
            joins.found(chat, goal.connection)

    async def _born(self, goal: Goal) -> Chat | None:
        """The contact or group that came of a pending connection."""
        for contact in await self._kit.api.list_contacts():
            connection = contact.get("activeConn")
            if isinstance(connection, dict) and connection.get("connId") == goal.connection is not None:
                return chat_of_contact(contact)
        link = self._plan.link.get("connFullLink")
        for group in await self._kit.api.list_groups():
            if link is not None and group.get("viaGroupLinkUri") == link:
                return chat_of_group(group)
        return None

    async def _delete(self, chat: Chat) -> None:
        try:
            await self._kit.api.delete_chat(chat.ref, notify=False)
        except CoreError as error:
            _log.warning("connect: the prepared chat %s was not deleted: %s", chat.ref, error.tag)
        else:
            self._kit.chat_gone(chat)


async def _follow(kit: Kit, action: Action, job: _ConnectJob, patience: Patience, call: Progress) -> ToolResult:
    """Wait for the outcome, then for messages; marks what is given read."""
    ended_before = action.ended.is_set()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_tell_connecting, kit, action, job, call)
        await kit.actions.finished(action, call)
        nursery.cancel_scope.cancel()
    result = fields(action) | action.result
    if action.state is not State.DONE:
        return settled(kit, action, result, [])
    if job.inbox is None:
        return settled(kit, action, result | {"messages": [], "more": 0}, [])
    ref = action.result["chat"]
    since = trio.current_time() if ended_before else job.started_at
    if not action.result["connected"]:
        patience = replace(patience, wait=0)
    await until_quiet(kit, ref, job.inbox, patience, call, since=since, quiet_from=job.quiet_from)
    taken = Taken.of(kit, job.inbox.ready(), patience.limit, job.inbox.live() + job.inbox.overflow())
    given: list[int] = []
    if taken.arrivals and not job.inbox.gone:
        given = await kit.give(ref, taken.arrivals, keep=job.inbox)
    return settled(kit, action, result | {"messages": taken.shown, "more": taken.more}, given)


async def _tell_connecting(kit: Kit, action: Action, job: _ConnectJob, call: Progress) -> None:
    """The progress text once the action is performed."""
    await action.decided.wait()
    await job.started.wait()
    until = wall_time(kit.clock.now(), job.deadline)
    call.say(f"Action {action.number} waits for the connection until {until}.")


def _fields(chat: Chat) -> dict[str, Any]:
    return {"chat": chat.ref, "name": messages.shown_name(chat.name), "kind": chat.kind}
