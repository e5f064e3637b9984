"""After a crash: the cards of the run before get their last line (product 5, Journal)."""

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

    from simplexmcp.control import ControlChat
    from simplexmcp.journal import Entry, Journal

__all__ = ["finish_crashed"]


async def finish_crashed(
    journal: Journal, control: ControlChat, out: Callable[[str], None], returned: Callable[[], trio.Event]
) -> None:
    """Edit each card that the last run left open, and end its entry; what cannot be edited any more is let go. After a
    lost link it goes on when `returned` is set."""
    for entry in journal.left:
        number, text = entry["n"], entry.get("text")
        while True:
            back = returned()
            try:
                if isinstance(text, str):
                    await _finish(entry, text, control)
                journal.end(number)
            except LinkLost:
                await back.wait()
                continue
            except (CoreError, Refused) as error:
                out(f"Action {number} of the last run: its card could not be updated: {printable(str(error))}")
            break


async def _finish(entry: Entry, text: str, control: ControlChat) -> None:
    number, item, asking = entry["n"], entry.get("card"), f"{text}\nTap "
    if not isinstance(item, int):
        item = await control.find(asking, starts=True)
    elif not (await control.text_of(item) or asking).startswith(asking):
        return  # it got its outcome, and the crash came before the journal's end
    card = cards.Card(f"{text}\n{_last_line(entry)}", _commands(text, number))
    if item is not None:
        await control.edit(item, replace(card, picture=await control.picture_of(item)))
    elif entry.get("state") == State.PERFORMING:
        # Under a standing approval, or in mode host: it had no card, and may be done.
        await control.post(card)


def _last_line(entry: Entry) -> str:
    by = entry.get("by")
    performing = entry.get("state") == State.PERFORMING
    return cards.crashed_line(State.PERFORMING if performing else State.PENDING, by if isinstance(by, str) else None)


def _commands(text: str, number: int) -> tuple[str, ...]:
    show = f"show {number}"
    return (show,) if cards.command(show) in text else ()
