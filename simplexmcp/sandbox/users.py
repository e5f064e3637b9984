"""Users of a core, its life (start, stop), its network settings and servers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from simplexmcp.sandbox import errors, profiles
from simplexmcp.sandbox.arguments import profile_argument
from simplexmcp.sandbox.names import valid_name
from simplexmcp.sandbox.relay import DEFAULT_SERVER
from simplexmcp.sandbox.shapes import user as user_shape
from simplexmcp.sandbox.state import Contact, User, free_id
from simplexmcp.sandbox.targets import full_link

if TYPE_CHECKING:
    from simplexmcp.sandbox.arguments import Arguments
    from simplexmcp.sandbox.core import Event, SimulatedCore

__all__ = [
    "active_user",
    "check_name",
    "check_running",
    "create_user",
    "list_users",
    "network",
    "ok",
    "servers",
    "set_active",
    "set_network",
    "set_servers",
    "start",
    "stop",
    "update_profile",
    "user_by_name",
    "version",
]

JsonObject = dict[str, Any]

VERSION = "7.0.0.6"

_PRESETS = (
    ("SimpleX Status", "Automatic server status and app release updates", "bot"),
    ("Ask SimpleX Team", "Send questions about SimpleX Chat app and your suggestions", None),
)

_PICTURE = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5E"
    "rkJggg=="
)

_NETWORK: JsonObject = {
    "socksMode": "always",
    "hostMode": "onionViaSocks",
    "requiredHostMode": False,
    "sessionMode": "session",
    "smpProxyMode": "never",
    "smpProxyFallback": "allow",
    "smpWebPortServers": "preset",
    "tcpConnectTimeout": {"backgroundTimeout": 45000000, "interactiveTimeout": 15000000},
    "tcpTimeout": {"backgroundTimeout": 30000000, "interactiveTimeout": 10000000},
    "tcpTimeoutPerKb": 5000,
    "rcvConcurrency": 8,
    "tcpKeepAlive": {"keepIdle": 30, "keepIntvl": 15, "keepCnt": 4},
    "smpPingInterval": 600000000,
    "smpPingCount": 3,
    "logTLSErrors": False,
}


_CLI_NETWORK: JsonObject = {
    **_NETWORK,
    "hostMode": "public",
    "smpProxyMode": "unknown",
    "smpProxyFallback": "allowProtected",
    "tcpConnectTimeout": {"backgroundTimeout": 31500000, "interactiveTimeout": 10500000},
    "tcpTimeout": {"backgroundTimeout": 21000000, "interactiveTimeout": 7000000},
}


def version(core: SimulatedCore, a: Arguments) -> Event:
    """`/version`; the lists of migrations are cut short."""
    del core, a
    migration = {"upName": "20220101_initial", "withDown": False}
    info = {"version": VERSION, "simplexmqVersion": "7.0.0.3", "simplexmqCommit": ""}
    return {
        "type": "versionInfo",
        "versionInfo": info,
        "chatMigrations": [migration],
        "agentMigrations": [migration],
    }


def check_name(name: str) -> None:
    """Refuse a display name that is not in its normal form."""
    if (valid := valid_name(name)) != name or not name:
        raise errors.error("invalidDisplayName", displayName=name, validName=valid)


def list_users(core: SimulatedCore, a: Arguments) -> Event:
    """`/users`."""
    del a
    state = core.state
    users = [{"user": user_shape(state, row), "unreadCount": _unread(core, row)} for row in state.users.values()]
    return {"type": "usersList", "users": users}


def _unread(core: SimulatedCore, user: User) -> int:
    state = core.state
    mine = {f"@{c.contact_id}" for c in state.contacts.values() if c.user_id == user.user_id}
    mine |= {f"#{g.group_id}" for g in state.groups.values() if g.user_id == user.user_id}
    return sum(i.status["type"] == "rcvNew" and i.chat in mine for i in state.items.values())


def active_user(core: SimulatedCore, a: Arguments) -> Event:
    """`/user`."""
    del a
    return {"type": "activeUser", "user": core.user_json()}


def user_by_name(core: SimulatedCore, a: Arguments) -> Event:
    """`/user NAME` of the interactive client: make this user the active one."""
    named = next((u for u in core.state.users.values() if u.name == a.text("name")), None)
    if named is None:
        raise errors.error("userUnknown")
    core.state.active_user = named.user_id
    return active_user(core, a)


def create_user(core: SimulatedCore, a: Arguments) -> Event:
    """`/_create user JSON`: the user, two preset cards and a folder for notes."""
    request = a.object()
    if not isinstance(request.get("pastTimestamp"), bool):
        raise errors.parse_error()
    given = request.get("profile")
    profile = profiles.random_profile(core) if given is None else profile_argument(given)
    check_name(profile["displayName"])
    state = core.state
    if any(u.name == profile["displayName"] for u in state.users.values()):
        raise errors.error("userExists", contactName=profile["displayName"])
    now = core.now()
    row = User(
        user_id=free_id(state.users),
        contact_id=free_id(state.contacts),
        profile_id=core.add_profile(profile).profile_id,
        name=profile["displayName"],
        order=len(state.users) + 1,
        notes_id=len(state.users) + 1,
        created=now,
    )
    state.users[row.user_id] = row
    state.active_user = row.user_id
    core.take_name(row.name)
    self_contact = Contact(row.contact_id, row.user_id, row.name, row.profile_id, now, now, now, used=False)
    state.contacts[row.contact_id] = self_contact
    for name, description, kind in _PRESETS:
        _add_card(core, row, name, description, kind)
    return active_user(core, a)


def _add_card(core: SimulatedCore, user: User, name: str, description: str, kind: str | None) -> None:
    data: JsonObject = {
        "displayName": name,
        "fullName": "",
        "shortDescr": description,
        "image": _PICTURE,
        "contactLink": full_link("contact", f"preset-{name.split(maxsplit=1)[0].lower()}", "A" * 32),
    }
    if kind:
        data["peerType"] = kind
    now = core.now()
    profile_id = core.add_profile(data).profile_id
    number = free_id(core.state.contacts)
    row = Contact(number, user.user_id, core.take_name(name), profile_id, now, now, now)
    core.state.contacts[number] = row


def set_active(core: SimulatedCore, a: Arguments) -> Event:
    """`/_user U`."""
    number = a.number("u")
    if number not in core.state.users:
        raise errors.store_error("userNotFound", userId=number)
    core.state.active_user = number
    core.state.users[number].order = max(u.order for u in core.state.users.values()) + 1
    return active_user(core, a)


def update_profile(core: SimulatedCore, a: Arguments) -> Event:
    """`/_profile U PROFILE`: contacts get it now, groups with the next message."""
    return profiles.update(core, profile_argument(a.json()))


def start(core: SimulatedCore, a: Arguments) -> Event:
    """`/_start`: what waited for the core is delivered from now on."""
    del a
    if core.started:
        return {"type": "chatRunning"}
    core.started = True
    parked, core.parked = core.parked, []
    core.network.reschedule(parked)
    return {"type": "chatStarted"}


def stop(core: SimulatedCore, a: Arguments) -> Event:
    """`/_stop`."""
    del a
    core.started = False
    return {"type": "chatStopped"}


def check_running(core: SimulatedCore, a: Arguments) -> Event:
    """`/_check running`."""
    del a
    return {"type": "chatRunning" if core.started else "chatStopped"}


_OPTION = re.compile(
    r"(?: socks=(?P<socks>off|on|\S+:\d+))(?: socks-mode=(?P<socks_mode>always|onion))?"
    r"(?: host-mode=(?P<host>onion|public))?(?P<required> required-host-mode)?"
    r"(?: smp-proxy=(?P<proxy>always|unknown|unprotected|never))?"
    r"(?: smp-proxy-fallback=(?P<fallback>yes|protected|no))?"
    r"(?: smp-web-port-servers=(?P<web>all|preset|off))?(?: timeout=(?P<timeout>\d+))?(?: log=(?P<log>on|off))?"
)
_FALLBACK = {"yes": "allow", "protected": "allowProtected", "no": "prohibit"}


def network(core: SimulatedCore, a: Arguments) -> Event:
    """`/network [options]`."""
    config = dict(core.network_config or (_CLI_NETWORK if core.cli else _NETWORK))
    if a.has("options"):
        m = _OPTION.fullmatch(a.text("options"))
        if m is None:
            raise errors.parse_error()
        _merge_network(config, m)
    core.network_config = config
    return {"type": "networkConfig", "networkConfig": config}


def _merge_network(config: JsonObject, m: re.Match[str]) -> None:
    config.pop("socksProxy", None)
    if m["socks"] == "off":
        config["hostMode"] = "public"
    else:
        config["socksProxy"] = ":9050" if m["socks"] == "on" else m["socks"]
        config["hostMode"] = "onionViaSocks"
    values = {
        "socksMode": m["socks_mode"],
        "hostMode": m["host"],
        "requiredHostMode": True if m["required"] else None,
        "smpProxyMode": m["proxy"],
        "smpProxyFallback": _FALLBACK.get(m["fallback"] or ""),
        "smpWebPortServers": m["web"],
        "logTLSErrors": None if m["log"] is None else m["log"] == "on",
    }
    config.update((key, value) for key, value in values.items() if value is not None)


def set_network(core: SimulatedCore, a: Arguments) -> Event:
    """`/_network JSON`: the whole configuration."""
    config = a.object()
    if any(key not in config for key in ("socksMode", "hostMode", "sessionMode", "smpProxyMode", "smpProxyFallback")):
        raise errors.parse_error()
    core.network_config = config
    return {"type": "cmdOk"}


def ok(core: SimulatedCore, a: Arguments) -> Event:
    """A setting that changes nothing here: file encryption."""
    del core, a
    return {"type": "cmdOk"}


def servers(core: SimulatedCore, a: Arguments) -> Event:
    """`/_servers U`: the network's own servers, as custom ones."""
    del a
    kept = core.state.servers
    smp = kept.get("smp", [errors.SERVER])
    xftp = kept.get("xftp", [DEFAULT_SERVER])
    entry = {
        "smpServers": [_server(n, s) for n, s in enumerate(smp, 1)],
        "xftpServers": [_server(n, s) for n, s in enumerate(xftp, len(smp) + 1)],
        "chatRelays": [],
    }
    return core.event("userServers", userServers=[entry])


def _server(number: int, server: str) -> JsonObject:
    return {"serverId": number, "server": server, "preset": False, "enabled": True, "deleted": False}


def set_servers(core: SimulatedCore, a: Arguments) -> Event:
    """`/smp …`, `/xftp …`: remembered and shown. All messages go over the network's one relay; files go to the servers
    given here, and are fetched without asking from these only."""
    core.state.servers[a.text("protocol")] = a.text("servers").split()
    return {"type": "cmdOk"}
