"""Setting the control chat up at start: finding or making it, its owners, the link (flows 1 and 12)."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from simplexmcp import cards
from simplexmcp.control import ControlChat
from simplexmcp.errors import CoreError, UserError
from simplexmcp.owners import OwnerRule, entries_of, listed_members, parse_owners
from simplexmcp.qr import QrSize, qr_code
from simplexmcp.standing import KEY
from simplexmcp.terminal import has_colours, printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from simplexmcp.audit import Audit
    from simplexmcp.core.api import ChatApi, Wire
    from simplexmcp.owners import Member

__all__ = ["MENU", "OwnerSetup", "invite_owner", "open_control_chat"]

MENU: list[dict[str, Any]] = [
    {"type": "command", "keyword": "pending", "label": "Pending actions"},
    {"type": "command", "keyword": "list", "label": "Chats of the agent"},
    {"type": "command", "keyword": "leave", "label": "Leave a chat", "params": "CHAT"},
]
"""The control chat's menu: without one, the apps would not make the cards' commands tappable."""

_CURRENT = ("connected", "complete", "creator")


@dataclass(frozen=True)
class OwnerSetup:
    """What the options say about owners: `owners` None (whoever joins), empty (`--owners` alone) or a list."""

    display_name: str
    owners: str | None
    reset: bool
    qr: QrSize
    register_hint: str
    """The command that adds the agent to Claude Code."""
    phone: Callable[[str | None], str] | None = None
    """The line that shows the phone of a simulated network, with the form for a link filled in."""


async def open_control_chat(api: ChatApi, setup: OwnerSetup, audit: Audit, out: Callable[[str], None]) -> ControlChat:
    """Find or make the control chat, its menu and its members. Raises UserError, CoreError."""
    entries = parse_owners(setup.owners) if setup.owners else ()
    groups = await api.list_groups()
    group = _marked(groups)
    if entries and group is None:
        raise UserError(
            "--owners with a list needs a control chat: start with --owners alone, and join by its link.", 2
        )
    if group is not None and setup.reset:
        counter = (group["customData"].get(KEY) or {}).get("nextAction", 1)
        await api.delete_chat(f"#{group['groupId']}")
        out("The old agent control chat was deleted for all its members.")
        audit.write("owners-reset")
        group = await _make(api, setup, counter, out)
    elif group is None:
        group = await _make(api, setup, 1, out, _begun(groups))
    else:
        await _put_menu_back(api, group)
    control = ControlChat(api, group, OwnerRule(frozenset() if setup.owners is not None else None), audit, out)
    await control.load_members()
    if entries:
        chosen = listed_members(entries, control.people())
        control.rule = OwnerRule(frozenset(member.member_id for member in chosen))
    return control


async def invite_owner(control: ControlChat, api: ChatApi, setup: OwnerSetup, out: Callable[[str], None]) -> str | None:
    """Owners as the options say, and the link when nobody approves yet; the link. Raises CoreError."""
    await api.delete_group_link(control.group_id)
    if setup.owners:
        await _apply_list(control, api, out)
        _print_hints(setup, out)
        return None
    if setup.owners is None and control.approvers():
        out(f"Owners: {entries_of(control.approvers())}.")
        _print_hints(setup, out)
        return None
    control.on_joined = _Joining(control, api, setup, out)
    role: Literal["member", "observer"] = "member" if setup.owners is None else "observer"
    pair = (await api.create_group_link(control.group_id, role))["connLinkContact"]
    link = str(pair.get("connShortLink") or pair["connFullLink"])
    _print_link(link, setup, out)
    return link


def _marked(groups: list[Wire]) -> Wire | None:
    """The control chat among the groups: marked, and the agent still in it; the one with the highest counter."""
    found: list[tuple[int, Wire]] = []
    for group in groups:
        custom = group.get("customData")
        marker = custom.get(KEY) if isinstance(custom, dict) else None
        current = (group.get("membership") or {}).get("memberStatus") in _CURRENT
        if isinstance(marker, dict) and marker.get("control") is True and current:
            number = marker.get("nextAction")
            found.append((number if isinstance(number, int) else 0, group))
    return max(found, key=lambda pair: pair[0])[1] if found else None


def _begun(groups: list[Wire]) -> Wire | None:
    """A control chat that a start made and could not mark any more: the agent alone in a group with this menu."""
    for group in groups:
        made = (group.get("membership") or {}).get("memberStatus") == "creator"
        alone = (group.get("groupSummary") or {}).get("currentMembers") == 1
        menu = ((group.get("groupProfile") or {}).get("groupPreferences") or {}).get("commands")
        if made and alone and menu == MENU and not group.get("customData"):
            return group
    return None


async def _make(
    api: ChatApi, setup: OwnerSetup, counter: int, out: Callable[[str], None], begun: Wire | None = None
) -> Wire:
    preferences = {"history": {"enable": "on"}, "commands": MENU}
    profile = {"displayName": setup.display_name, "fullName": "", "groupPreferences": preferences}
    group = begun or await api.new_group(profile)
    custom = {KEY: {"control": True, "nextAction": counter}}
    await api.set_custom(f"#{group['groupId']}", custom)
    out(f'Agent control chat "{printable(setup.display_name)}" created.')
    return {**group, "customData": custom}


async def _put_menu_back(api: ChatApi, group: Wire) -> None:
    profile = group["groupProfile"]
    preferences = profile.get("groupPreferences") or {}
    if preferences.get("commands") != MENU and (group.get("membership") or {}).get("memberRole") == "owner":
        await api.update_group_profile(
            int(group["groupId"]), {**profile, "groupPreferences": {**preferences, "commands": MENU}}
        )


async def _apply_list(control: ControlChat, api: ChatApi, out: Callable[[str], None]) -> None:
    listed = control.rule.listed or frozenset()
    for member in control.people():
        if member.member_id in listed:
            if member.role != "owner":
                await api.set_member_role(control.group_id, member.number, "owner")
        else:
            await api.remove_member(control.group_id, member.number)
            out(f"{member.entry.name} (member {member.number}) is not in --owners and was removed.")
    await control.load_members()
    chosen = control.approvers()
    if len(chosen) < len(listed):
        raise UserError("The listed owners could not be made owners of the control chat: is the agent still an owner?")
    out(f"Owners: {entries_of(chosen)}.")


def _print_hints(setup: OwnerSetup, out: Callable[[str], None]) -> None:
    if setup.phone is not None:
        out(setup.phone(None))
    out(f"Add the agent to Claude Code: {setup.register_hint}")


def _print_link(link: str, setup: OwnerSetup, out: Callable[[str], None]) -> None:
    code = None
    if sys.stdout.isatty():
        columns = shutil.get_terminal_size((100, 40)).columns
        code = qr_code(link, setup.qr, columns=columns, colour=has_colours(sys.stdout))
    if code:
        out("Join the agent control chat: scan this code in the SimpleX app, or open the link on your phone.")
        out(code)
    else:
        out("Join the agent control chat: open this link on your phone, in the SimpleX app.")
    out(link)
    if setup.phone is not None:
        out(setup.phone(link))
    if code and setup.qr == "small":
        out("If the QR code does not scan, restart the server with --qr-code large or open the link.")
    if setup.owners is None:
        out("The first person who joins by the link becomes the owner; then the link is deleted.")
    else:
        out("The link adds an observer. Its ID and name are printed when it joins.")


class _Joining:
    """What happens when somebody joins by the link (flows 1 and 12)."""

    def __init__(self, control: ControlChat, api: ChatApi, setup: OwnerSetup, out: Callable[[str], None]) -> None:
        self._control, self._api, self._setup, self._out = control, api, setup, out

    async def __call__(self, member: Member) -> None:
        if not member.person or not member.current:
            self._out(f"{member.entry.name} (member {member.number}) joined and is a bot: bots approve nothing.")
            return
        who = f"{member.entry.name} joined (member {member.number})"
        shown = f"{cards.shown_name(member.entry.name)} joined (member {member.number})"
        if self._setup.owners is not None:
            await self._api.delete_group_link(self._control.group_id)
            restart = self._control.restart_line(self._control.people())
            text = "Restart the server with"
            await self._control.announce(
                f"{who}. {text} {restart}", cards.Card(f"{shown}. {text} {cards.as_code(restart)}")
            )
            return
        await self._api.delete_group_link(self._control.group_id)
        if self._control.approvers():
            await self._control.announce(
                f"{who} after the owner and is not an owner.",
                cards.Card(f"{shown} after the owner and is not an owner."),
            )
            return
        await self._make_owner(member, who)

    async def _make_owner(self, member: Member, who: str) -> None:
        try:
            await self._api.set_member_role(self._control.group_id, member.number, "owner")
        except CoreError as error:
            self._out(f"{who} but could not be made an owner: {printable(str(error))}")
            return
        await self._control.load_members()
        await self._control.post(cards.Card(cards.GREETING))
        self._out(f"{who} and is now an owner. The link is deleted.")
        self._out(f"Add the agent to Claude Code: {self._setup.register_hint}")
