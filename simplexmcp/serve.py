"""A server's life, from the lock to "Stopped." (flows 1 and 11): the nesting of the blocks here is its order of
shutdown.

Outermost the signals, then the data folder, the core, and inside them the work: events, actions, control chat, HTTP.
The first Ctrl-C ends the work in order, a second one cancels everything at once, a third leaves the process.
"""

from __future__ import annotations

import logging
import os
import shlex
import signal
import sys
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, final

import trio

from simplexmcp import __version__, listener
from simplexmcp.actions import Actions
from simplexmcp.audit import Audit
from simplexmcp.chats import chat_of_contact, chat_of_group
from simplexmcp.clock import SystemClock
from simplexmcp.core.api import ChatApi
from simplexmcp.core.link import LINK_DOWN, LINK_UP
from simplexmcp.errors import CoreError, SimplexMcpError, UserError
from simplexmcp.folder import ServerInfo, open_folder
from simplexmcp.journal import Journal
from simplexmcp.owner import Owner
from simplexmcp.recovery import finish_crashed
from simplexmcp.setup import OwnerSetup, invite_owner, open_control_chat
from simplexmcp.standing import StandingApprovals
from simplexmcp.startup import CoreSetup, open_core, prepare_core
from simplexmcp.terminal import printable
from simplexmcp.tools import AgentTools, leave_chat
from simplexmcp.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Callable

    from simplexmcp.chats import Chat
    from simplexmcp.clock import Clock
    from simplexmcp.control import ControlChat
    from simplexmcp.core.link import Event, Link
    from simplexmcp.folder import Folder
    from simplexmcp.options import ServeOptions

__all__ = ["Stop", "run", "serve"]

_log = logging.getLogger(__name__)

_RESULTS_SECONDS = 2.0
_DELIVERY_LOOK = 0.1


def run(options: ServeOptions) -> int:
    """`simplexmcp serve`: the exit code. Raises UserError."""
    try:
        return trio.run(_with_signals, options)
    except* (UserError, CoreError) as group:
        raise _first(group) from None
    return 1


def _first(group: BaseExceptionGroup[SimplexMcpError]) -> UserError:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error if isinstance(error, UserError) else UserError(f"The SimpleX core refused to start: {error}")


def gone_chat(event: Event) -> Chat | None:
    """The chat that the other side ended with this event; None for every other event."""
    match event.get("type"):
        case "contactDeletedByContact":
            return chat_of_contact(event.get("contact"))
        case "deletedMemberUser" | "groupDeleted":
            return chat_of_group(event.get("groupInfo"))
        case _:
            return None


@final
class Stop:
    """How far the server is asked to stop: `asked` by the first signal, then `at_once`."""

    def __init__(self) -> None:
        self.asked = trio.Event()
        self.ready = False

    async def listen(self, everything: trio.CancelScope, *, task_status: trio.TaskStatus[None]) -> None:
        """Turn SIGINT and SIGTERM into the steps of the stop."""
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            task_status.started()
            seen = 0
            async for _ in signals:
                seen += 1
                self.asked.set()
                if seen == 2 or not self.ready:
                    everything.cancel()
                elif seen > 2:
                    os._exit(130)


async def _with_signals(options: ServeOptions) -> int:
    stop = Stop()
    async with trio.open_nursery() as nursery:
        await nursery.start(stop.listen, nursery.cancel_scope)
        await serve(options, stop)
        nursery.cancel_scope.cancel()
    if not stop.ready:
        return 130
    _print("Stopped.")
    return 0


def _print(line: str) -> None:
    print(line, flush=True)  # the terminal is the server's screen


async def serve(
    options: ServeOptions, stop: Stop, *, out: Callable[[str], None] = _print, clock: Clock | None = None,
    on_ready: Callable[[int], None] | None = None,
) -> None:  # fmt: skip
    """Serve until `stop.asked`; `out` gets the terminal's lines, `on_ready` the port. Raises UserError, CoreError."""
    clock = clock or SystemClock()
    with open_folder(options.name, options.data, out) as folder:
        out(f"simplexmcp {__version__}")
        out(f"Data folder: {printable(str(options.data))}")
        out(f"Approval mode: {options.approve}")
        async with open_core(options, out) as link:
            server = _Server(options, folder, link, stop, out, clock)
            await server.live(on_ready)


@final
class _Server:
    """The parts of a running server, put together."""

    def __init__(
        self,
        options: ServeOptions,
        folder: Folder,
        link: Link,
        stop: Stop,
        out: Callable[[str], None],
        clock: Clock,
    ) -> None:
        self._options, self._folder, self._link, self._stop = options, folder, link, stop
        self._out, self._clock = out, clock
        self._api = ChatApi(link)
        self._audit = Audit(folder.path / "audit.jsonl", clock, secrets=(folder.token,))
        self._journal = Journal(folder.path / "actions.jsonl")
        self._watch = Watch()
        self._closing = listener.Closing()
        self._ready = False
        # A core on another machine has folders of its own; ours mean nothing there.
        self._setup = CoreSetup(
            display_name=options.display_name,
            temp_folder=None if options.core.startswith("wss:") else folder.subfolder("tmp"),
            smp_servers=options.smp_servers,
            xftp_servers=options.xftp_servers,
            own_database=not options.core.startswith("ws"),
        )

    async def live(self, on_ready: Callable[[int], None] | None) -> None:
        """From the prepared core to the last delivery."""
        try:
            await prepare_core(self._api, self._setup)
            owners = self._owners()
            control = await open_control_chat(self._api, owners, self._audit, self._out)
            actions = self._actions(control)
            await self._work(control, actions, owners, on_ready)
            await self._deliver(control, actions.cards_at_stop)
        finally:
            self._journal.close()
            self._audit.close()

    def _owners(self) -> OwnerSetup:
        options = self._options
        hint = f"simplexmcp register {shlex.quote(options.name)}"
        if options.data_given:
            hint += f" --data {shlex.quote(str(options.data))}"
        return OwnerSetup(
            display_name=options.display_name, owners=options.owners, reset=options.reset_owners, qr=options.qr_code,
            register_hint=printable(hint),
        )  # fmt: skip

    def _actions(self, control: ControlChat) -> Actions:
        standing = StandingApprovals(self._api, control, self._clock, enabled=self._options.approve == "requests")
        return Actions(
            control, standing, self._journal, self._audit, self._clock,
            mode=self._options.approve, expire=timedelta(hours=self._options.expire_hours), log=self._out,
        )  # fmt: skip

    async def _work(
        self,
        control: ControlChat,
        actions: Actions,
        owners: OwnerSetup,
        on_ready: Callable[[int], None] | None,
    ) -> None:
        tools = AgentTools(self._api, actions, self._watch, self._clock)
        owner = Owner(
            actions, self._api, self._audit, self._clock, self._out, control_ref=control.ref,
            leave=partial(leave_chat, self._api),
        )  # fmt: skip
        async with trio.open_nursery() as nursery:
            serve_http = partial(
                listener.serve, tools, port=self._options.port, token=self._folder.token,
                ready=lambda: self._ready, closing=self._closing,
            )  # fmt: skip
            port: int = await nursery.start(serve_http)
            self._folder.write_server(self._server_info(port))
            await nursery.start(actions.run)
            await self._load_approvals(actions)
            await invite_owner(control, self._api, owners, self._out)
            nursery.start_soon(self._pump, control, tools, actions)
            nursery.start_soon(control.run, owner)
            nursery.start_soon(finish_crashed, self._journal, control, self._api, self._out)
            self._ready = True
            self._stop.ready = True
            self._out(f"Listening on http://127.0.0.1:{port}/mcp")
            if on_ready is not None:
                on_ready(port)
            await self._stop.asked.wait()
            await self._end_calls(actions, tools)
            nursery.cancel_scope.cancel()

    def _server_info(self, port: int) -> ServerInfo:
        return ServerInfo(
            url=f"http://127.0.0.1:{port}/mcp", port=port, expire_hours=self._options.expire_hours,
            version=__version__, pid=os.getpid(), started=self._clock.now(),
        )  # fmt: skip

    async def _load_approvals(self, actions: Actions) -> None:
        for wire in await self._api.list_groups():
            actions.standing.remember(f"#{wire['groupId']}", wire.get("customData") or {})
        for wire in await self._api.list_contacts():
            actions.standing.remember(f"@{wire['contactId']}", wire.get("customData") or {})

    async def _pump(self, control: ControlChat, tools: AgentTools, actions: Actions) -> None:
        """Hand every event on, in order; after a lost link, bring the core back to where it was first."""
        async for event in self._link.events:
            if event.get("type") == LINK_DOWN:
                self._out("The link to the SimpleX core was lost; trying again until it is back.")
            elif event.get("type") == LINK_UP:
                try:
                    await prepare_core(self._api, self._setup)
                except CoreError as error:
                    _log.warning("after a lost link: %s", error)
                    continue
                self._out("The link to the SimpleX core is back.")
                actions.link_is_back()
            control.on_event(event)
            self._watch.on_event(event)
            tools.on_event(event)
            if (gone := gone_chat(event)) and not gone.is_control:
                actions.chat_gone(gone)

    async def _end_calls(self, actions: Actions, tools: AgentTools) -> None:
        self._closing.refuse("The server is stopping; ask again after its next start.")
        tools.stop()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._closing.drained, _RESULTS_SECONDS)
            ended = await actions.stop()
        self._closing.finish("The server stopped.")
        if ended:
            self._out(f"Cancelled {ended} action{'' if ended == 1 else 's'}.")

    async def _deliver(self, control: ControlChat, edited: int) -> None:
        """Wait for the delivery of the last edits: until the core's queue for the control chat is empty (flow 11)."""
        wait = self._options.stop_wait
        if not edited or not wait:
            return
        what = "1 cancelled card" if edited == 1 else f"{edited} cancelled cards"
        self._out(f"Stopping: sending {what}, up to {wait} s. Ctrl-C to stop now.")
        with trio.move_on_after(wait):
            try:
                connections = await self._api.connection_ids(control.group_id)
                while await self._api.pending_deliveries(connections):  # noqa: ASYNC110 - the core says it only when asked
                    await trio.sleep(_DELIVERY_LOOK)
            except CoreError as error:
                self._out(f"delivery wait: {error}")
