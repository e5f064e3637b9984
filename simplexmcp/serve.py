"""A server's life, from the lock to "Stopped." (flows 1 and 11): the nesting of the blocks here is its order of
shutdown.

Outermost the signals, then the data folder, its files, the core, and inside them the work: HTTP, actions, events and
the control chat. The first Ctrl-C ends the work in order, a second one cancels everything at once, a third leaves the
process. Whatever ends a server leaves `serve` as one bare error.
"""

from __future__ import annotations

import logging
import os
import shlex
import signal
import sys
from contextlib import closing, contextmanager
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, final
from urllib.parse import unquote, urlsplit

import trio

from simplexmcp import __version__, listener
from simplexmcp.actions import Actions
from simplexmcp.audit import Audit, read_audit
from simplexmcp.chats import chat_of_contact, chat_of_group
from simplexmcp.clock import SystemClock
from simplexmcp.core.api import ChatApi
from simplexmcp.core.link import LINK_UP
from simplexmcp.errors import CoreError, LinkLost, Refused, UserError
from simplexmcp.files.folders import Folders
from simplexmcp.files.room import FileRoom
from simplexmcp.folder import ServerInfo, disk_error, open_folder
from simplexmcp.journal import Journal
from simplexmcp.owner import Owner
from simplexmcp.owner_files import OwnerFiles, OwnerNews
from simplexmcp.recovery import finish_crashed
from simplexmcp.rejected import RejectedFiles
from simplexmcp.setup import OwnerSetup, invite_owner, open_control_chat
from simplexmcp.standing import StandingApprovals
from simplexmcp.startup import CoreSetup, Known, open_core, prepare_core
from simplexmcp.terminal import printable
from simplexmcp.tools import AgentTools
from simplexmcp.uplink import Gate, Uplink
from simplexmcp.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from simplexmcp.chats import Chat
    from simplexmcp.clock import Clock
    from simplexmcp.control import ControlChat
    from simplexmcp.core.link import Event, Link
    from simplexmcp.folder import Folder
    from simplexmcp.options import ServeOptions

__all__ = ["Stop", "run", "serve"]

_log = logging.getLogger(__name__)

# Seconds.
_RESULTS_WAIT = 2.0
_HTTP_WAIT = 5.0
_DELIVERY_LOOK = 0.1


def run(options: ServeOptions) -> int:
    """`simplexmcp serve`: the exit code. Raises UserError, and what is a defect."""
    stop = Stop()
    with _one_error(stop):
        trio.run(_with_signals, options, stop)
    if not stop.ready:
        return 130
    _print("Stopped.")
    return 0


@final
class Stop:
    """How far the server is asked to stop: `asked` by the first signal, then `everything` is cancelled. Before it is
    `ready`, the first signal does both."""

    def __init__(self) -> None:
        self.asked = trio.Event()
        self.everything = trio.CancelScope()
        self.ready = False

    async def listen(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Turn SIGINT and SIGTERM into the steps of the stop, until cancelled."""
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            task_status.started()
            seen = 0
            async for _ in signals:
                seen += 1
                self.asked.set()
                if seen > 2:
                    os._exit(130)
                if seen == 2 or not self.ready:
                    self.everything.cancel()


async def _with_signals(options: ServeOptions, stop: Stop) -> None:
    async with trio.open_nursery() as nursery:
        await nursery.start(stop.listen)
        with stop.everything:
            await serve(options, stop)
        nursery.cancel_scope.cancel()


def _print(line: str) -> None:
    """The terminal is the server's screen; it goes on without one."""
    try:
        print(line, flush=True)
    except OSError as error:
        _log.info("The terminal takes no more lines: %s", error.strerror)
        os.dup2(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC), sys.stdout.fileno())


@contextmanager
def _one_error(stop: Stop) -> Generator[None]:
    """What ends the block leaves it as one bare error: the clearest, when there are several."""
    try:
        yield
        return
    except (BaseExceptionGroup, CoreError, Refused) as error:
        causes = [cause for cause in _causes(error) if not isinstance(cause, trio.Cancelled)]
        if not causes:
            raise
        cause = min(causes, key=_rank)
        if isinstance(cause, (CoreError, Refused)):
            cause = UserError(_what_failed(cause, stop))
        for other in causes:
            _log.debug("What ended the server", exc_info=other)
    raise cause


def _causes(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _causes(inner)
    else:
        yield error


def _rank(error: BaseException) -> int:
    if isinstance(error, KeyboardInterrupt):
        return 0
    return 1 if isinstance(error, UserError) else 3 if isinstance(error, CoreError) else 2


def _what_failed(error: CoreError | Refused, stop: Stop) -> str:
    if isinstance(error, LinkLost) and not stop.ready:
        return "The link to the SimpleX core was lost during the start. Start again when the core runs."
    how = "failed" if stop.ready else "refused to start"
    return f"The SimpleX core {how}: {printable(str(error))}"


def gone_chat(event: Event) -> Chat | None:
    """The chat that the other side ended with this event; None for every other event."""
    match event.get("type"):
        case "contactDeletedByContact":
            return chat_of_contact(event.get("contact"))
        case "deletedMemberUser" | "groupDeleted":
            return chat_of_group(event.get("groupInfo"))
        case _:
            return None


async def serve(
    options: ServeOptions, stop: Stop, *, out: Callable[[str], None] = _print, clock: Clock | None = None,
    on_ready: Callable[[int], None] | None = None,
) -> None:  # fmt: skip
    """Serve until `stop.asked`; `out` gets the terminal's lines, `on_ready` the port. Raises UserError."""
    clock = clock or SystemClock()
    with _one_error(stop), open_folder(options.name, options.data, out) as folder:
        out(f"simplexmcp {__version__}")
        out(f"Data folder: {printable(str(options.data))}")
        out(f"Approval mode: {options.approve}")
        if options.port:
            listener.check_port(options.port)
        _empty_sent(folder)
        async with open_core(options, out) as core:
            await _Server(options, folder, core.link, stop, out, clock, core.phone).live(on_ready)


def _secrets(folder: Folder, options: ServeOptions) -> tuple[str, ...]:
    password = urlsplit(options.core).password or ""
    return (folder.token, password, unquote(password))


def _empty_sent(folder: Folder) -> None:
    """Copies that the last run made for sending are not needed any more. Raises UserError."""
    folders = Folders(folder.path.resolve())
    try:
        folders.empty_sent()
    except OSError as error:
        raise disk_error(folders.sent, error) from error


def _core_setup(options: ServeOptions, folder: Folder) -> CoreSetup:
    # A core on another machine has folders of its own; ours mean nothing there.
    try:
        temp_folder = None if options.core.startswith("wss:") else folder.subfolder("tmp")
    except OSError as error:
        raise disk_error(folder.path / "tmp", error) from error
    return CoreSetup(
        display_name=options.display_name, temp_folder=temp_folder, smp_servers=options.smp_servers,
        xftp_servers=options.xftp_servers, own_database=not options.core.startswith("ws"),
    )  # fmt: skip


@final
class _Server:
    """The parts of a running server, put together."""

    def __init__(
        self, options: ServeOptions, folder: Folder, link: Link, stop: Stop, out: Callable[[str], None], clock: Clock,
        phone: Callable[[str | None], str] | None = None,
    ) -> None:  # fmt: skip
        self._options, self._folder = options, folder
        self._link, self._stop, self._out, self._clock = link, stop, out, clock
        self._phone = phone
        self._gate = Gate(link)
        self._api = ChatApi(self._gate)
        self._watch = Watch()
        self._closing = listener.Closing()
        self._ready = False
        self._failed: UserError | None = None
        self._setup = _core_setup(options, folder)

    async def live(self, on_ready: Callable[[int], None] | None) -> None:
        """From the opened core to the last delivery. Raises UserError, CoreError."""
        path, secrets = self._folder.path, _secrets(self._folder, self._options)
        with (
            closing(Audit(path / "audit.jsonl", self._clock, secrets)) as self._audit,
            closing(Journal(path / "actions.jsonl")) as self._journal,
        ):
            await self._live(on_ready)
        if self._failed is not None:
            raise self._failed

    async def _live(self, on_ready: Callable[[int], None] | None) -> None:
        await prepare_core(self._api, self._setup)
        owners = self._owners()
        control = await open_control_chat(self._api, owners, self._audit, self._out)
        control.skip_numbers(self._last_number())
        actions = self._actions(control)
        async with trio.open_nursery() as http:
            await self._work(http, control, actions, owners, on_ready)
            # By now every call has its end; what is still being written has a last moment.
            http.cancel_scope.deadline = trio.current_time() + _HTTP_WAIT
        await self._deliver(control, actions.cards_at_stop)

    def _last_number(self) -> int:
        """The last number that an earlier run gave an action and may not have stored in the control chat: it is in the
        audit log, and what outlives the machine in the journal, before it is stored."""
        named = (entry.get("action") for entry in read_audit(self._folder.path / "audit.jsonl"))
        numbers = [number for number in named if isinstance(number, int)]
        return max([*numbers, *(entry["n"] for entry in self._journal.left)], default=0)

    def _owners(self) -> OwnerSetup:
        options = self._options
        hint = f"simplexmcp register {shlex.quote(options.name)}"
        if options.data_given:
            hint += f" --data {shlex.quote(str(options.data))}"
        return OwnerSetup(
            display_name=options.display_name, owners=options.owners, reset=options.reset_owners, qr=options.qr_code,
            register_hint=printable(hint), phone=self._phone,
        )  # fmt: skip

    def _actions(self, control: ControlChat) -> Actions:
        standing = StandingApprovals(self._api, control, self._clock, enabled=self._options.approve == "requests")
        return Actions(
            control, standing, self._journal, self._audit, self._clock,
            mode=self._options.approve, expire=timedelta(hours=self._options.expire_hours), log=self._out,
            rejected=RejectedFiles(read_audit(self._folder.path / "audit.jsonl")),
        )  # fmt: skip

    async def _work(
        self, http: trio.Nursery, control: ControlChat, actions: Actions, owners: OwnerSetup,
        on_ready: Callable[[int], None] | None,
    ) -> None:  # fmt: skip
        news = OwnerNews(control.post, self._out)
        secret = (self._options.database_key_file, self._options.core_password_file)
        files = FileRoom(
            self._api, self._folder.path, self._audit, self._clock, news, secrets=[path for path in secret if path]
        )
        tools = AgentTools(self._api, actions, self._watch, self._clock, files)
        port: int = await http.start(
            partial(
                listener.serve, tools, port=self._options.port, token=self._folder.token,
                ready=lambda: self._ready, closing=self._closing,
            )
        )  # fmt: skip
        self._write_server(port)
        async with trio.open_nursery() as nursery:
            await nursery.start(files.run)
            await nursery.start(actions.run)
            nursery.start_soon(news.run)
            await invite_owner(control, self._api, owners, self._out)
            hearing = trio.CancelScope()
            nursery.start_soon(self._hear, hearing, control, tools, actions, files)
            control.note_approvers()
            self._ready = True
            self._stop.ready = True
            self._out(f"Listening on http://127.0.0.1:{port}/mcp")
            if on_ready is not None:
                on_ready(port)
            await self._stop.asked.wait()
            self._closing.refuse("The server is stopping; ask again after its next start.")
            hearing.cancel()
            await self._end_calls(actions, tools)
            nursery.cancel_scope.cancel()

    def _write_server(self, port: int) -> None:
        info = ServerInfo(
            url=f"http://127.0.0.1:{port}/mcp", port=port, expire_hours=self._options.expire_hours,
            version=__version__, pid=os.getpid(), started=self._clock.now(),
        )  # fmt: skip
        try:
            self._folder.write_server(info)
        except OSError as error:
            raise disk_error(self._folder.path / "server.json", error) from error

    async def _hear(
        self, hearing: trio.CancelScope, control: ControlChat, tools: AgentTools, actions: Actions, files: FileRoom
    ) -> None:
        """Everything that follows what the core tells; it ends with the first step of a stop."""
        core = ChatApi(self._link)
        known = Known(self._api.user_id, control.group_id, control.member_id)

        async def prepare() -> None:
            try:
                await prepare_core(core, self._setup, known)
            except UserError as error:
                self._failed = error
                self._stop.asked.set()
                await trio.sleep_forever()

        def hand_on(event: Event) -> None:
            files.on_event(event)
            control.on_event(event)
            self._watch.on_event(event)
            tools.on_event(event)
            if event.get("type") == LINK_UP:
                actions.link_is_back()
            if (gone := gone_chat(event)) and not gone.is_control:
                actions.chat_gone(gone)

        uplink = Uplink(
            self._link, self._gate, self._audit, self._out,
            prepare=prepare, hand_on=hand_on, now=lambda: self._clock.now().timestamp(),
        )  # fmt: skip
        forwards = OwnerFiles(actions, self._api, self._audit, files, control.post, control_ref=control.ref)
        owner = Owner(
            actions, self._api, self._audit, self._clock, self._out,
            control_ref=control.ref, leave=tools.leave, files=forwards,
        )  # fmt: skip
        with hearing:
            async with trio.open_nursery() as nursery:
                await nursery.start(forwards.run)
                nursery.start_soon(uplink.run)
                nursery.start_soon(control.run, owner)
                nursery.start_soon(self._load_chats, actions, files, uplink)
                nursery.start_soon(
                    finish_crashed, self._journal, control, self._audit, self._out, lambda: uplink.returned
                )

    async def _load_chats(self, actions: Actions, files: FileRoom, uplink: Uplink) -> None:
        """Learn which standing approvals end by themselves, and which folders of files are of chats that are gone."""
        while True:
            returned = uplink.returned
            try:
                chats = {f"#{wire['groupId']}": wire for wire in await self._api.list_groups()}
                chats |= {f"@{wire['contactId']}": wire for wire in await self._api.list_contacts()}
            except LinkLost:
                await returned.wait()
                continue
            except CoreError as error:
                _log.warning("The chats' standing approvals could not be read: %s", error)
                return
            for ref, wire in chats.items():
                actions.standing.remember(ref, wire.get("customData") or {})
            try:
                files.know({ref: str(wire.get("createdAt") or "") for ref, wire in chats.items()})
            except OSError as error:
                _log.warning("The folders of files could not be read: %s", error.strerror)
            return

    async def _end_calls(self, actions: Actions, tools: AgentTools) -> None:
        """Every open call gets its result, every action its outcome; then the HTTP server ends."""
        tools.stop()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._closing.drained, _RESULTS_WAIT)
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
                self._out(f"Whether the cards were sent is not known: {error}")
