"""After a crash: the cards of the run before get the outcome that they did not come to show, or a last line (product 5,
Journal)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from simplexmcp import cards
from simplexmcp.errors import CoreError, LinkLost, Refused
from simplexmcp.states import State
from simplexmcp.terminal import printable

if TYPE_CHECKING:
    from collections.abc import Callable

    import trio

    from simplexmcp.audit import Audit
    from simplexmcp.control import ControlChat
    from simplexmcp.journal import Entry, Journal

__all__ = ["finish_crashed"]


async def finish_crashed(
    journal: Journal, control: ControlChat, audit: Audit, out: Callable[[str], None], returned: Callable[[], trio.Event]
) -> None:
    """Edit each card that the last run left open, and end its entry; what cannot be edited any more is let go. After a
    lost link it goes on when `returned` is set."""
    for entry in _as_decided(journal.left, audit, out):
        number, text = entry["n"], entry.get("text")
        while True:
            back = returned()
            try:
                if isinstance(text, str):
                    await _finish(entry, text, control)
                if "outcome" not in entry:
                    state = State.INTERRUPTED if _was_performing(entry) else State.CANCELLED
                    audit.write(state.value, action=number, crashed=True)
                journal.end(number)
            except LinkLost:
                await back.wait()
                continue
            except (CoreError, Refused) as error:
                out(f"Action {number} of the last run: its card could not be updated: {printable(str(error))}")
            break


def _as_decided(left: tuple[Entry, ...], audit: Audit, out: Callable[[str], None]) -> list[Entry]:
    """The entries, with the owners' words from the audit log: when the machine went, the journal may lack them."""
    try:
        words = {e.get("action"): e for e in (audit.entries() if left else ()) if e.get("decision") == "approved"}
    except OSError as error:
        out(f"The audit log could not be read: {error.strerror}")
        words = {}
    known = [(entry, words.get(entry["n"])) for entry in left]
    return [entry | {"state": State.PERFORMING, "by": word.get("by")} if word else entry for entry, word in known]


async def _finish(entry: Entry, text: str, control: ControlChat) -> None:
    item, asking, card = entry.get("card"), f"{text}\nTap ", _card(entry, text)
    if not isinstance(item, int):
        item = await control.find(asking, starts=True)
    elif not (await control.text_of(item) or asking).startswith(asking):
        return  # it got its outcome, and the crash came before the journal's end
    if item is not None:
        await control.edit(item, replace(card, picture=await control.picture_of(item)))
    elif _was_performing(entry):
        # Under a standing approval, or in mode host: it had no card, and may be done.
        await control.post(card)


def _card(entry: Entry, text: str) -> cards.Card:
    outcome, taps = entry.get("outcome"), entry.get("taps")
    if isinstance(outcome, str) and isinstance(taps, list):
        return cards.Card(outcome, tuple(map(str, taps)))
    by = entry.get("by")
    state = State.PERFORMING if _was_performing(entry) else State.PENDING
    last_line = cards.crashed_line(state, by if isinstance(by, str) else None)
    return cards.Card(f"{text}\n{last_line}", _commands(text, entry["n"]))


def _was_performing(entry: Entry) -> bool:
    return entry.get("state") == State.PERFORMING


def _commands(text: str, number: int) -> tuple[str, ...]:
    show = f"show {number}"
    return (show,) if cards.command(show) in text else ()
