"""Actions: what the agent asks for, decided once and performed once (flows 3 to 11).

The table of `states` moves an action; this module gives it a number, a card, an approval and a task. A call finds an
action by its key and attaches, so that two equal calls make one action. The perform runs in the nursery here, not in
the call: losing the call ends nothing but its wait. Nothing goes out of a perform before `confirm`, which looks once
more at what carries the action and at what it is bound to.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, final

import trio

from simplexmcp import cards
from simplexmcp.action import Action, Request
from simplexmcp.clock import hhmm
from simplexmcp.errors import CoreError, LinkLost, Refused
from simplexmcp.rejected import RejectedFiles
from simplexmcp.states import FINAL, Move, State, move
from simplexmcp.subjects import DownloadSubject
from simplexmcp.terminal import printable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator
    from datetime import datetime

    from simplexmcp.action import Board, Mode, Progress
    from simplexmcp.audit import Audit
    from simplexmcp.chats import Chat
    from simplexmcp.clock import Clock
    from simplexmcp.journal import Journal
    from simplexmcp.standing import Approver, Grant, StandingApprovals

__all__ = ["PENDING_LIMIT", "Action", "Actions", "Request"]

_log = logging.getLogger(__name__)

PENDING_LIMIT = 50
"""Actions that may wait for an approver at once."""

_REMINDER = timedelta(minutes=30)
_TICK = 60.0
_PAST = 1000
_EDIT_SECONDS = 20.0


@final
class Actions:
    """All actions of a run. `run` is its life; `stop` ends every action with an outcome."""

    def __init__(
        self, board: Board, standing: StandingApprovals, journal: Journal, audit: Audit, clock: Clock, *,
        mode: Mode, expire: timedelta, log: Callable[[str], None], rejected: RejectedFiles | None = None,
    ) -> None:  # fmt: skip
        self._board, self.standing, self._journal, self._audit, self._clock = (
            board,
            standing,
            journal,
            audit,
            clock,
        )
        self.files = standing.of_files()
        self.mode, self._expire, self._say = mode, expire, log
        self._actions: dict[int, Action] = {}
        self._by_key: dict[tuple[Any, ...], Action] = {}
        self._past: OrderedDict[int, str] = OrderedDict()
        self._rejected = RejectedFiles() if rejected is None else rejected
        self._nursery: trio.Nursery | None = None
        self._stopping = False
        self._showing = 0
        self._shown = trio.Event()
        self._link_back = trio.Event()
        self.cards_at_stop = 0

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Performs and expires until cancelled."""
        async with trio.open_nursery() as self._nursery:
            task_status.started()
            while True:
                await self.standing.next_end(_TICK)
                await self.tick()

    # What the tools use

    def find(self, key: tuple[Any, ...]) -> Action | None:
        """The action of an equal call that was not delivered yet (flow 10)."""
        return self._by_key.get(key)

    def ask(self, request: Request) -> Action:
        """The action for a request: the one with its key, or a new one. Raises Refused when none can be asked."""
        if found := self.find(request.key):
            return found
        host, grant = self.mode == "host", None if self.mode == "host" else self._standing(request)
        self._admit(asks=not host and grant is None)
        now = self._clock.now()
        action = Action(self._board.take_number(), request, now, now + self._expire)
        if grant is not None:
            action.grant, action.by = grant, grant.by
        action.host = host
        card = cards.asking(request.subject, action.number)
        if not action.direct and not cards.fits(card):
            raise Refused("The text is too long for a card that your owner can read; send it in parts.")
        self._actions[action.number] = self._by_key[request.key] = action
        if action.direct:
            self._step(action, Move.APPROVE)
        self._audit.write(
            "created", action=action.number, tool=action.tool, chat=action.ref, state=action.state.value,
            by=action.decided_by, standing=True if grant else None,
        )  # fmt: skip
        self._start(self._open, action, card)
        return action

    async def confirm(self, action: Action, chat: Chat | None) -> None:
        """The last look before a perform's first outgoing command; `chat` is the target, just read. Raises Refused when
        it is not what the card showed, or when the standing approval that carries the action holds no more."""
        if action.state is not State.PERFORMING:
            raise Refused(f"Action {action.number} is {action.state.value}.")
        bound = action.request.chat
        if bound is not None and (chat is None or chat.identity != bound.identity):
            raise Refused(f"{bound.kind} {bound.name} ({bound.ref}) changed after the request.")
        if action.grant is None:
            if action.by is not None and self._board.approver(action.by.member_id) is None:
                raise Refused(f"{action.by.name}, who approved it, is no owner any more; ask again.")
            return
        assert chat is not None
        files = action.request.files
        used = await (self.files.use(chat.base, chat.custom) if files else self.standing.use(chat.ref, chat.custom))
        if used is None or used[0].by.member_id != action.grant.by.member_id:
            raise Refused("The standing approval of this chat ended; send it again to ask your owner.")
        if used[1]:
            self._start(self._tell, cards.approval_ended(chat))

    async def finished(self, action: Action, call: Progress) -> None:
        """Wait for the outcome; says what the action waits for while it is pending."""
        if not action.decided.is_set():
            call.say(f"Action {action.number} waits for an approver until {self._time(action.expires)}.")
            await action.decided.wait()
        await action.ended.wait()

    @contextmanager
    def attached(self, action: Action) -> Generator[None]:
        """Counts an open call."""
        action.open += 1
        try:
            yield
        finally:
            action.open -= 1

    def settle(self, action: Action) -> None:
        """Its result reached the agent: forget it. An equal call is a new action from now on."""
        if action.state in FINAL:
            self._forget(action)

    def listed(self) -> list[Action]:
        """Every action whose result was not delivered, oldest first."""
        return list(self._actions.values())

    # What the owner does

    def approve(self, number: int, ref: str | None, by: Approver) -> str | None:
        """Perform action N; the reply when it does not, None when it does."""
        action = self._actions.get(number)
        if (reply := self._not_pending(action, number, ref)) or action is None:
            return reply
        if not action.posted.is_set():  # the owner's tap may overtake the answer that posted the card
            self._start(self._approve_when_posted, action, ref, by)
            return None
        action.by = by
        self._step(action, Move.APPROVE)
        self._audit.write("decided", action=number, decision="approved", by=by.name, member=by.member)
        self._start(self._perform, action)
        return None

    async def _approve_when_posted(self, action: Action, ref: str | None, by: Approver) -> None:
        await action.posted.wait()
        if reply := self.approve(action.number, ref, by):
            await self._tell(cards.Card(reply))

    def reject(self, number: int, ref: str | None, by: Approver) -> str | None:
        """Reject action N; the reply when it does not, None when it does."""
        action = self._actions.get(number)
        if (reply := self._not_pending(action, number, ref)) or action is None:
            return reply
        action.by = by
        subject = action.request.subject
        kept = self._rejected.add(subject.chat, subject.item) if isinstance(subject, DownloadSubject) else {}
        self._audit.write("decided", action=number, decision="rejected", by=by.name, member=by.member, **kept)
        self._end(action, Move.REJECT)
        return None

    def not_pending(self, number: int, ref: str | None) -> str | None:
        """The reply when action N (of chat `ref`) cannot be decided; None when it can."""
        return self._not_pending(self._actions.get(number), number, ref)

    def was_rejected(self, chat: Chat, item: int) -> bool:
        """Whether an owner rejected the file of an item, in this run or before: no standing approval carries it."""
        return self._rejected.holds(chat, item)

    def approve_sends(self, ref: str, by: Approver) -> None:
        """Approve each pending send to a chat that has a card (flow 6)."""
        for action in self.pending():
            if action.ref == ref and action.request.standing and action.card is not None:
                self.approve(action.number, ref, by)

    def pending(self) -> list[Action]:
        """The actions that wait for an approver, oldest first."""
        return [action for action in self._actions.values() if action.state is State.PENDING]

    def get(self, number: int) -> Action | None:
        """An action of this run whose result was not delivered."""
        return self._actions.get(number)

    def chat_gone(self, chat: Chat, *, but: Action | None = None) -> None:
        """A chat went, its number may be given again: its pending actions fail, its approval ends."""
        self.standing.forget(chat.ref)
        self.files.forget(chat.base)
        for action in self.pending():
            if action.base == chat.base and action is not but:
                action.error = f"{chat.kind} {chat.name} ({chat.ref}) is gone."
                self._end(action, Move.GONE)

    async def tick(self) -> None:
        """Expire what is due, remind of what soon is, end approvals whose time is over (flow 9)."""
        self.expire_due()
        now = self._clock.now()
        for action in self.pending():
            early = action.expires - _REMINDER
            if not action.reminded and now >= early and action.created < early and action.card is not None:
                action.reminded = True
                self._start(self._tell, cards.reminder(action.number, self._time(action.expires)))
        await self.files.end_due()  # they have no end of their own: what a lost link kept back is stored
        for ref in await self.standing.end_due():
            self._start(self._tell, cards.approval_over(ref))

    def expire_due(self) -> None:
        """Expire what is due; forget what ended, was never fetched, and is past its expiry."""
        now = self._clock.now()
        for action in list(self._actions.values()):
            if not action.is_due(now):
                continue
            if action.state is State.PENDING:
                self._end(action, Move.DUE)
            elif action.state in FINAL and action.open == 0:
                self._forget(action)

    def link_is_back(self) -> None:
        """The link to the core is there again: what could not be shown is shown now."""
        self._link_back.set()
        self._link_back = trio.Event()

    async def stop(self) -> int:
        """End every action (flow 11): how many were cancelled or interrupted. The edits of their cards are done, or
        given up after a time, when this returns."""
        self._stopping = True
        self.link_is_back()  # what still waits for it tries once more, then gives up
        ended = 0
        for action in list(self._actions.values()):
            if action.state not in FINAL:
                ended += 1
                if not action.posted.is_set():  # nothing was performed yet, whatever would have carried it
                    action.state = State.PENDING
                self._end(action, Move.STOP)
                action.scope.cancel()
        with trio.move_on_after(_EDIT_SECONDS):
            while self._showing:
                await self._shown.wait()
        return ended

    # The life of one action

    def _admit(self, *, asks: bool) -> None:
        if self._stopping:
            raise Refused("The server is stopping; ask again after its next start.")
        if reason := self._board.refusal():
            raise Refused(reason)
        if asks and len(self.pending()) >= PENDING_LIMIT:
            raise Refused(f"{PENDING_LIMIT} actions wait for an approver; wait for them or ask your owner.")

    def _standing(self, request: Request) -> Grant | None:
        # An approval is for the chat itself: a conversation with a group's admins has other readers. Files from it are
        # the agent's to read as those of the group are.
        chat = request.chat
        if request.files and chat:
            return self.files.holds(chat.base, chat.custom)
        return self.standing.holds(chat.ref, chat.custom) if request.standing and chat and not chat.scoped else None

    def _start(self, task: Callable[..., Awaitable[Any]], *args: Any) -> None:
        assert self._nursery is not None
        self._nursery.start_soon(task, *args)

    async def _open(self, action: Action, card: cards.Card) -> None:
        """Store the number, write the journal, then post the card, or perform at once under an approval."""
        try:
            head = card.text.rpartition("\n")[0]
            self._journal.write(action.number, text=head, state=action.state.value, by=action.decided_by)
            await self._board.save_counter()
            if action.state is State.PENDING:
                action.shown = True
                action.card = await self._board.post(card)
                self._journal.write(action.number, durable=False, card=action.card)
        except (CoreError, Refused) as error:
            if isinstance(error, LinkLost) and error.tag != "link/down":
                action.unsure = card.text
            if action.state not in FINAL:
                why = "the link to the SimpleX core was lost. Nothing was done; ask again later."
                told = why if isinstance(error, LinkLost) else printable(str(error))
                action.error = f"The action could not be asked: {told}"
                self._end(action, Move.GONE if action.state is State.PENDING else Move.FAIL)
        finally:
            action.posted.set()
        if action.state is State.PERFORMING and action.direct:
            await self._perform(action)

    async def _perform(self, action: Action) -> None:
        with action.scope:
            try:
                self._audit.secure()  # that is what outlives the machine; the journal's line need not
                self._journal.write(action.number, durable=False, state=action.state.value, by=action.decided_by)
                result = await action.request.perform(action)
            except (CoreError, Refused) as error:
                self._fail(action, printable(str(error)))
            except Exception:  # noqa: BLE001 - a defect in a tool must not end the server, and its action must have an outcome
                _log.exception("action %d", action.number)
                self._fail(action, "Internal error; look at the server's log, and at the chat before asking again.")
            else:
                if action.state is State.PERFORMING:
                    action.result = result
                    self._end(action, Move.SUCCEED)

    def _fail(self, action: Action, error: str) -> None:
        if action.state is State.PERFORMING:
            action.error = error
            self._end(action, Move.FAIL)

    def _step(self, action: Action, what: Move) -> None:
        target = move(action.state, what)
        if target is None:
            raise AssertionError(f"{action.state} has no {what}")
        action.state = target
        if target is not State.PENDING:
            action.decided.set()
        if target is State.PERFORMING:
            action.started = self._clock.now()

    def _end(self, action: Action, what: Move) -> None:
        """Give the action its outcome, once; then show it on the card."""
        self._step(action, what)
        self._past[action.number] = action.reply(self._clock.now())
        while len(self._past) > _PAST:
            self._past.popitem(last=False)
        action.ended.set()
        event = "performed" if action.state is State.DONE else action.state.value
        self._audit.write(event, action=action.number, tool=action.tool, chat=action.ref, error=action.error)
        card = cards.outcome_card(action.request.subject, action.number, action.outcome)
        self._keep_outcome(action, card)
        if action.host and action.state is State.DONE:
            self._say(f"Action {action.number}: performed without approval (mode host).")
        self._showing += 1
        self._start(self._show, action, card)

    def _keep_outcome(self, action: Action, card: cards.Card) -> None:
        """For the next start, if this run does not come to show it."""
        try:
            self._journal.write(action.number, durable=False, outcome=card.text, taps=card.commands)
        except Refused as error:
            _log.warning("The outcome of action %d is not kept: %s", action.number, error)

    async def _show(self, action: Action, card: cards.Card) -> None:
        try:
            await action.posted.wait()
            await self._show_outcome(action, card)
            if self._stopping and (action.card is not None or action.direct):
                self.cards_at_stop += 1
            self._journal.end(action.number)
        except (CoreError, Refused) as error:
            self._say(f"Action {action.number}: its card could not be updated: {printable(str(error))}")
        finally:
            self._showing -= 1
            self._shown.set()
            self._shown = trio.Event()

    async def _show_outcome(self, action: Action, card: cards.Card) -> None:
        """Edit the card, or post the outcome of an action without one; over a lost link, when it is back."""
        while True:
            back, posting = self._link_back, False
            try:
                if action.card is None and action.unsure is not None:
                    action.card = await self._board.find(action.unsure)
                if action.card is not None:
                    await self._board.edit(action.card, card)
                elif action.direct and action.state is not State.CANCELLED:
                    posting = True
                    await self._board.post(card)
            except LinkLost as error:
                # A post that was in flight may be there already; an edit is the same when it is made twice.
                if self._stopping or (posting and error.tag != "link/down"):
                    raise
                await back.wait()
            else:
                return

    async def _tell(self, card: cards.Card) -> None:
        try:
            await self._board.post(card)
        except (CoreError, Refused) as error:
            self._say(f"A message to the control chat was not sent: {printable(str(error))}")

    def _forget(self, action: Action) -> None:
        self._actions.pop(action.number, None)
        if self._by_key.get(action.request.key) is action:
            del self._by_key[action.request.key]
        action.kept.close()

    # Replies

    def _not_pending(self, action: Action | None, number: int, ref: str | None) -> str | None:
        if action is None:
            return self._past.get(number, f"Action {number} is not pending.")
        if ref is not None and action.ref != ref:
            return f"Action {number} is not for {inert_ref(ref)}."
        return None if action.state is State.PENDING and action.shown else action.reply(self._clock.now())

    def _time(self, moment: datetime) -> str:
        return hhmm(moment, self._clock.now())


def inert_ref(ref: str) -> str:
    """A chat's reference in a sentence: in parentheses, since `#9` alone is active in the core's markdown."""
    return f"chat ({ref})"
