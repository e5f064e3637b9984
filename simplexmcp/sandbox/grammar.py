"""The grammar of the core's commands: one pattern for each, what it needs, and who carries it out.

A command matches whole or not at all; nothing that matches is a parse error, and which part was wrong is never said.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from simplexmcp.sandbox import (
    addresses,
    connecting,
    deleting,
    downloads,
    editing,
    errors,
    folders,
    groups,
    members,
    planning,
    preparing,
    queries,
    reading,
    sending,
    users,
)
from simplexmcp.sandbox.arguments import Arguments, is_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from simplexmcp.sandbox.core import Event, SimulatedCore

__all__ = ["parses", "run"]

ALWAYS, USER, STARTED = 0, 1, 2
"""What must be there before a command: nothing, an active user, a started chat."""

_U = r"(?P<u>\d+)"
_G = r"#(?P<g>\d+)"
_C = r"@(?P<c>\d+)"
_IDS = r"(?P<ids>\d+(?:,\d+)*)"
_JSON = r"(?P<json>.+)"
_ROLE = r"(?P<role>owner|admin|moderator|member|observer)"
_ONOFF = "(?:on|off)"
_REF = r"(?P<ref>[@#*:]\d+(?:\(_support(?::\d+)?\))?)"
_SEND = r"(?P<ref>[@#*]\d+(?:\(_support(?::\d+)?\))?(?P<as_group>\(as_group=on\))?)"
_INCOGNITO = rf"(?: incognito=(?P<incognito>{_ONOFF}))?"
_MESSAGE = r"(?: (?:text (?P<text>.+)|json (?P<json>.+)))?"
_LINKS = r"(?P<full>\S+)(?: (?P<short>https?:\S+|simplex:\S+))?"
_DOMAIN = r"(?: domain=(?P<domain>\S+))?"
_APPROVED = rf"(?: approved_relays=(?P<approved_relays>{_ONOFF}))?"
_ENCRYPT = rf"(?: encrypt=(?P<encrypt>{_ONOFF}))?"
_LIVE = rf"(?: live=(?P<live>{_ONOFF}))?"
_PAGE = (
    r"(?:count=(?P<count>\d+)|after=(?P<after>\d+) count=(?P<after_count>\d+)"
    r"|before=(?P<before>\d+) count=(?P<before_count>\d+)"
    r"|around=(?P<around>\d+) count=(?P<around_count>\d+)|initial=(?P<initial>\d+))"
)


@dataclass(frozen=True)
class _Command:
    pattern: re.Pattern[str]
    needs: int
    run: Callable[[SimulatedCore, Arguments], Event]


def _table() -> list[_Command]:
    rows: list[tuple[int, str, Callable[[SimulatedCore, Arguments], Event]]] = [
        (ALWAYS, "/version", users.version),
        (ALWAYS, "/users", users.list_users),
        (USER, "/user", users.active_user),
        (USER, r"/user (?P<name>\S+)", users.user_by_name),
        (ALWAYS, f"/_create user {_JSON}", users.create_user),
        (ALWAYS, f"/_user {_U}", users.set_active),
        (STARTED, f"/_profile {_U} {_JSON}", users.update_profile),
        (USER, rf"/_start(?: main={_ONOFF}(?: snd_files={_ONOFF})?)?", users.start),
        (ALWAYS, "/_stop", users.stop),
        (ALWAYS, "/_check running", users.check_running),
        (USER, "/network(?P<options> .+)?", users.network),
        (USER, f"/_network {_JSON}", users.set_network),
        (ALWAYS, "/_temp_folder (?P<path>.+)", folders.set_temporary),
        (ALWAYS, "/_?files_folder (?P<path>.+)", folders.set_files),
        (ALWAYS, f"/set file paths {_JSON}", folders.set_paths),
        (ALWAYS, f"/_files_encrypt {_ONOFF}", users.ok),
        (ALWAYS, "/sql (?P<base>chat|agent) (?P<query>.+)", queries.sql),
        (STARTED, f"/_servers {_U}", users.servers),
        (STARTED, "/(?P<protocol>smp|xftp) (?P<servers>.+)", users.set_servers),
        (STARTED, rf"/_groups {_U}(?: {_C})?(?: (?P<search>\S.*))?", groups.list_groups),
        (STARTED, f"/_contacts {_U}", reading.list_contacts),
        (
            USER,
            rf"/_get chats {_U}(?: pcc=(?P<pcc>{_ONOFF}))? count=(?P<count>\d+)(?: (?P<json>\{{.*))?",
            reading.list_chats,
        ),
        (STARTED, f"/_group {_U}{_INCOGNITO} {_JSON}", groups.new_group),
        (STARTED, f"/_group_profile {_G} {_JSON}", groups.update_group),
        (STARTED, rf"/_set custom (?P<ref>[#@]\d+)(?: {_JSON})?", groups.set_custom),
        (STARTED, f"/_members {_G}", members.list_members),
        (STARTED, f"/_create link {_G}(?: {_ROLE})?", groups.create_link),
        (STARTED, f"/_get link {_G}", groups.get_link),
        (STARTED, f"/_set link role {_G} {_ROLE}", groups.set_link_role),
        (STARTED, f"/_delete link {_G}", groups.delete_link),
        (STARTED, f"/_member role {_G} {_IDS} {_ROLE}", members.set_roles),
        (STARTED, rf"/_remove {_G} {_IDS}(?: messages=(?P<messages>{_ONOFF}))?", members.remove),
        (STARTED, rf"/_block {_G} {_IDS} blocked=(?P<blocked>{_ONOFF})", members.block),
        (STARTED, rf"/_accept member {_G} (?P<m>\d+) {_ROLE}", members.accept),
        (STARTED, rf"/_add {_G} (?P<contact>\d+) {_ROLE}", members.add),
        (STARTED, rf"/_join {_G}(?: .+)?", members.join),
        (STARTED, rf"/_create member contact {_G} (?P<m>\d+)", members.create_contact),
        (
            STARTED,
            rf"/_connect plan {_U} (?P<target>\S+)(?: resolve=(?P<resolve>{_ONOFF}))?(?: sig=(?P<json>.+))?",
            planning.plan,
        ),
        (
            STARTED,
            rf"/_prepare contact {_U} {_LINKS}{_DOMAIN} (?P<json>\{{.*)",
            preparing.prepare_contact,
        ),
        (
            STARTED,
            rf"/_prepare group {_U} {_LINKS}(?: direct=(?P<direct>{_ONOFF}))?{_DOMAIN} (?P<json>\{{.*)",
            preparing.prepare_group,
        ),
        (STARTED, f"/_connect contact {_C}{_INCOGNITO}{_MESSAGE}", connecting.connect_contact),
        (
            STARTED,
            rf"/_connect group {_G}{_INCOGNITO}(?: contact=\d+ owner=\S+)?{_MESSAGE}",
            connecting.connect_group,
        ),
        (STARTED, rf"/_connect contact {_U}{_INCOGNITO} (?P<contact>\d+)", connecting.connect_card),
        (STARTED, rf"/_connect {_U}{_INCOGNITO}(?: (?P<full>\S+)(?: (?P<short>\S+))?)?", connecting.connect_link),
        (STARTED, r"/(?:c|connect) (?P<target>\S+)", connecting.connect_interactive),
        (STARTED, f"/_leave {_G}", deleting.leave),
        (STARTED, rf"/_delete item {_REF} {_IDS} (?P<mode>broadcast|internalMark|internal|history)", editing.delete),
        (STARTED, f"/_delete member item {_G} {_IDS}", editing.moderate),
        (
            STARTED,
            rf"/_delete (?P<ref>[@#:]\d+)(?: (?P<mode>full|entity|messages))?(?: notify=(?P<notify>{_ONOFF}))?",
            deleting.delete,
        ),
        (
            STARTED,
            rf"/_get chat {_REF}(?: content=(?P<content>\S+))? {_PAGE}(?: search=(?P<search>.*))?",
            reading.get_chat,
        ),
        (STARTED, rf"/_get item info {_REF} (?P<item>\d+)", reading.item_info),
        (
            STARTED,
            rf"/_send {_SEND}{_LIVE}(?: ttl=(?P<ttl>default|\d+))? (?:json {_JSON}|text (?P<text>.*))",
            sending.send,
        ),
        (STARTED, rf"/_update item {_REF} (?P<item>\d+){_LIVE} json {_JSON}", editing.update),
        (STARTED, f"/_read chat items {_REF} {_IDS}", reading.read_items),
        (STARTED, f"/_read chat {_REF}", reading.read_chat),
        (STARTED, rf"/_reaction {_REF} (?P<item>\d+) (?P<add>{_ONOFF}) {_JSON}", editing.react),
        (
            STARTED,
            rf"/freceive (?P<file>\d+){_APPROVED}{_ENCRYPT}(?: inline={_ONOFF})?(?: (?P<path>.+))?",
            downloads.receive,
        ),
        (STARTED, r"/fcancel (?P<file>\d+)", downloads.cancel),
        (STARTED, r"/fstatus (?P<file>\d+)", downloads.status),
        (STARTED, f"/_address {_U}", addresses.create),
        (STARTED, f"/_delete_address {_U}", addresses.delete),
        (USER, f"/_show_address {_U}", addresses.show),
        (STARTED, f"/_address_settings {_U} {_JSON}", addresses.settings),
        (STARTED, rf"/_accept(?: incognito=(?P<incognito>{_ONOFF}))? (?P<request>\d+)", addresses.accept),
        (STARTED, r"/_reject (?P<request>\d+)", addresses.reject),
    ]
    return [_Command(_compiled(pattern), needs, handler) for needs, pattern, handler in rows]


def _compiled(pattern: str) -> re.Pattern[str]:
    """Numbers are ASCII digits, and no longer than a row's number can be."""
    return re.compile(pattern.replace(r"\d+", r"\d{1,18}"), re.DOTALL | re.ASCII)


_COMMANDS = _table()

_UNMODELLED = re.compile(
    r"/(?:_set_file_to_receive|_report|_forward|_invite member contact|_archive|_ttl|_db|_call|_tags"
    r"|_create tag|_switch|_sync|_verify|_get code|_ntf|_app settings|_remote|_note|_create \*|_public group"
    r"|relays|public group|(?:smp|xftp)$)\b"
)
"""Commands of the real core that this model refuses in words of its own."""


def parses(text: str) -> bool:
    """Whether a text has the form of a command (its JSON is not looked at)."""
    command = text.rstrip()
    return _UNMODELLED.match(command) is not None or any(row.pattern.fullmatch(command) for row in _COMMANDS)


def run(core: SimulatedCore, text: str) -> Event:
    """The response to a command; raises CommandFailed."""
    command = text.rstrip()
    if not is_text(command):
        raise errors.parse_error()
    if _UNMODELLED.match(command):
        _require(core, STARTED)
        raise errors.not_modelled(command.partition(" ")[0])
    for row in _COMMANDS:
        if (match := row.pattern.fullmatch(command)) is not None:
            arguments = Arguments(match.groupdict())
            return _checked(core, row, arguments)
    raise errors.parse_error()


def _require(core: SimulatedCore, needs: int) -> None:
    """Refuse a command whose user or started chat is missing."""
    if needs >= USER:
        _ = core.user
    if needs == STARTED and not core.started:
        raise errors.error("chatNotStarted")


def _checked(core: SimulatedCore, row: _Command, arguments: Arguments) -> Event:
    _require(core, row.needs)
    if row.needs >= USER:
        active = core.user.user_id
        if arguments.has("u") and arguments.number("u") != active:
            raise errors.error("differentActiveUser", commandUserId=arguments.number("u"), activeUserId=active)
    return row.run(core, arguments)
