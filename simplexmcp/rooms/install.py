"""`simplexmcp rooms install CLIENT`: the server and the hooks in a client's settings, and out again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simplexmcp.rooms.clients import hooks_edit, wait_edit
from simplexmcp.rooms.register import order_of, register, show, unregister

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simplexmcp.rooms.edits import Edit
    from simplexmcp.rooms.register import Order

__all__ = ["HELP", "run"]

HELP = """\
Usage: simplexmcp rooms install claude|codex|gemini|agy [options]

Adds the rooms server to an agent's client, and hooks that tell the agent of unread messages directed at it: while it
works, when its user writes, and once when it wants to end. (agy has no hooks: the server alone.)

  --undo       takes both out again
  --dry-run    only shows what would be changed
  --force      replaces a server entry of another program
  --help       this text

Other settings stay as they are. Exit codes: 0 done, 1 failed, 2 wrong usage.
"""


def run(argv: Sequence[str]) -> int:
    """The program; its exit code. Raises UserError."""
    order = order_of(argv, HELP)
    if order is None:
        return 0
    _edits(order)  # a file that does not read as what it should be ends it before anything is changed
    if order.undo:
        unregister(order)
    else:
        register(order)
    edits = _edits(order)
    for edit in edits:
        show(order, edit)
    if not order.dry_run and order.client.hooks is not None:
        _tell(order, changed=any(edit.before != edit.after for edit in edits))
    return 0


def _edits(order: Order) -> list[Edit]:
    wanted = not order.undo
    found = (wait_edit(order.client, wanted=wanted), hooks_edit(order.client, wanted=wanted))
    return [edit for edit in found if edit is not None]


def _tell(order: Order, *, changed: bool) -> None:
    title = order.client.title
    if order.undo:
        print(f"Removed from {title}: hooks." if changed else f"{title} has no hooks of this program.")
        return
    print(f"Added to {title}: hooks." if changed else f"{title} has the hooks already.")
    if changed and order.client.note:
        print(order.client.note)
