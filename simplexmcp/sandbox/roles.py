"""Roles and member statuses: their order, and the refusals that follow from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simplexmcp.sandbox import errors
from simplexmcp.sandbox.shapes import CURRENT

if TYPE_CHECKING:
    from simplexmcp.sandbox.core import SimulatedCore
    from simplexmcp.sandbox.state import Group, Member

__all__ = ["ACTIVE", "PENDING", "REMOVED", "at_least", "is_current", "require_role"]

_ORDER = ("relay", "observer", "author", "member", "moderator", "admin", "owner")

ACTIVE = frozenset({"connected", "complete", "creator", "pending_approval", "pending_review"})
"""Statuses of a member that can send."""

PENDING = frozenset({"pending_approval", "pending_review"})
REMOVED = frozenset({"rejected", "removed", "left", "deleted"})


def at_least(role: str, needed: str) -> bool:
    """Whether `role` is `needed` or above it."""
    return _ORDER.index(role) >= _ORDER.index(needed)


def is_current(member: Member) -> bool:
    """Whether this is a current member."""
    return member.status in CURRENT


def require_role(core: SimulatedCore, group: Group, needed: str) -> None:
    """Refuse what the own role or membership does not allow."""
    own = core.membership(group)
    if not at_least(own.role, needed):
        raise errors.error("groupUserRole", groupInfo=core.group_json(group), requiredRole=needed)
    if own.status == "invited":
        raise errors.error("groupNotJoined", groupInfo=core.group_json(group))
    if own.status in REMOVED:
        raise errors.error("groupMemberUserRemoved")
    if own.status not in ACTIVE:
        raise errors.error("groupMemberNotActive")
