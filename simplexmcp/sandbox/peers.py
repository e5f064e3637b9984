"""The population of a new network: a directory, an echo bot, a business, and a group with people in it.

They are ordinary cores; what they do is a pure function of the events they get, carried out a moment later through the
network's queue. Their own past lies an hour back, so that it never mixes with what a user does.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simplexmcp.sandbox import addresses, pictures

if TYPE_CHECKING:
    from collections.abc import Callable

    from simplexmcp.sandbox.core import Event, SimulatedCore
    from simplexmcp.sandbox.network import Network

__all__ = ["PEOPLE", "populate", "revive"]

JsonObject = dict[str, Any]

PREFIX = "people."
"""Before the names of the population's cores, so that they are no user's profile."""

PAST = 3600.0
"""Seconds before now at which the population was made."""
THINKING = 1.1
"""Seconds until somebody answers: over one, as the times of received messages are whole seconds, and order a chat."""

PEOPLE: dict[str, JsonObject] = {
    "directory": {
        "displayName": "SimpleX Directory",
        "shortDescr": "Search for groups: send me a word",
        "peerType": "bot",
        "preferences": {
            "commands": [
                {"type": "command", "keyword": "help", "label": "Help"},
                {"type": "command", "keyword": "all", "label": "All groups"},
            ]
        },
    },
    "echo": {"displayName": "Echo Bot", "shortDescr": "Repeats what you write", "peerType": "bot"},
    "ridgeline": {"displayName": "Ridgeline", "shortDescr": "Boots, ropes and maps"},
    "mara": {"displayName": "Mara"},
    "switchback": {"displayName": "Switchback"},
    "juniper": {"displayName": "Juniper"},
}

_ADDRESSES: dict[str, tuple[str, bool, str]] = {
    "directory": ("@directory.simplex", False, "Welcome! Send me a word and I list the groups that have it. /help"),
    "echo": ("@echo.simplex", False, "I repeat what you write."),
    "ridgeline": ("@ridgeline.simplex", True, "This is Ridgeline. How can we help?"),
}

_GROUPS: dict[str, JsonObject] = {
    "trail": {
        "displayName": "Trail",
        "fullName": "",
        "shortDescr": "Hiking in the hills",
        "description": "Welcome to *Trail*. Please be kind.",
        "groupPreferences": {"history": {"enable": "on"}},
    },
    "lantern": {"displayName": "Lantern", "fullName": "", "shortDescr": "A reading group"},
}
_TALK = (
    ("mara", "The hut at the saddle is open again."),
    ("switchback", "Good. Is the path above the lake dry?"),
    ("juniper", "It was dry on Sunday."),
)
_HELP = "Send me a word: I list the groups whose name or description has it. /all lists all groups."


def populate(network: Network) -> None:
    """Make the population, with the network's clock turned back while it is made."""
    clock = network.clock
    now = [clock() - PAST]
    network.clock = lambda: now[0]
    try:
        _make(network, now)
    finally:
        network.clock = clock
    revive(network)


def revive(network: Network) -> None:
    """Start the population of a network that was made or read from a file, and let it answer."""
    for name, reaction in _REACTIONS.items():
        core = network.core(PREFIX + name)
        core.command("/_start")
        core.subscribe(_unheard)
        core.react(partial(_think, core, reaction))


def _unheard(event: Event) -> None:
    """The population has no screen: it only reacts."""


def _think(core: SimulatedCore, reaction: Callable[[SimulatedCore, Event], list[str]], event: Event) -> None:
    if core.played:
        return
    for number, command in enumerate(reaction(core, event), 1):
        core.network.schedule(core.name, "act", {"command": command}, after=THINKING * number)


# Making them


def _make(network: Network, now: list[float]) -> None:
    for name, profile in PEOPLE.items():
        core = network.core(PREFIX + name)
        user = {"profile": {"fullName": "", **profile}, "pastTimestamp": False}
        _do(core, f"/_create user {json.dumps(user)}")
        _do(core, "/_start")
        core.subscribe(_unheard)
    for name, (domain, business, reply) in _ADDRESSES.items():
        _make_address(network.core(PREFIX + name), name, domain, business, reply)
    _make_group(network, now, "trail", "mara", ("switchback", "juniper"))
    _make_group(network, now, "lantern", "juniper", ())
    mara = network.core(PREFIX + "mara")
    switchback = next(m.member_key for m in mara.state.members.values() if m.name == "Switchback")
    _do(mara, f"/_member role #1 {switchback} moderator")
    for name, text in _TALK:
        _settle(network, now)
        message = [{"msgContent": {"type": "text", "text": text}}]
        _do(network.core(PREFIX + name), f"/_send #1 json {json.dumps(message)}")
    _settle(network, now)


def _do(core: SimulatedCore, command: str) -> Event:
    response = core.command(command)
    assert response["type"] != "chatCmdError", (core.name, command, response)
    return response


def _make_address(core: SimulatedCore, label: str, domain: str, business: bool, reply: str) -> None:
    _do(core, "/_address 1")
    settings = {
        "businessAddress": business,
        "autoAccept": {"acceptIncognito": False},
        "autoReply": {"type": "text", "text": reply},
    }
    _do(core, f"/_address_settings 1 {json.dumps(settings)}")
    row = addresses.address_of(core)
    assert row is not None
    addresses.publish(core, row, name=domain, label=label)


def _make_group(network: Network, now: list[float], label: str, owner: str, others: tuple[str, ...]) -> None:
    core = network.core(PREFIX + owner)
    group = _do(core, f"/_group 1 {json.dumps(_GROUPS[label])}")["groupInfo"]["groupId"]
    link = _do(core, f"/_create link #{group} member")["groupLink"]["connLinkContact"]
    entry = network.find_link(link["connShortLink"])
    assert entry is not None
    entry.data["label"] = label
    for name in others:
        _settle(network, now)
        _do(network.core(PREFIX + name), f"/_connect 1 {link['connFullLink']} {link['connShortLink']}")
    _settle(network, now)


def _settle(network: Network, now: list[float]) -> None:
    while (wait := network.deliver()) is not None:
        now[0] += max(wait, 0.001)
    now[0] += 60.0


# What they do


def _messages(event: Event) -> list[tuple[str, JsonObject]]:
    """Reference and item of each received message of an event."""
    if event["type"] != "newChatItems":
        return []
    out: list[tuple[str, JsonObject]] = []
    for entry in event["chatItems"]:
        info, item = entry["chatInfo"], entry["chatItem"]
        if item["content"]["type"] != "rcvMsgContent" or item["meta"].get("forwardedByMember"):
            continue
        if info["type"] == "direct":
            out.append((f"@{info['contact']['contactId']}", item))
        elif info["type"] == "group" and "groupChatScope" not in info:
            out.append((f"#{info['groupInfo']['groupId']}", item))
    return out


def _say(ref: str, text: str, quoted: int | None = None) -> str:
    message: JsonObject = {"msgContent": {"type": "text", "text": text}}
    if quoted is not None:
        message["quotedItemId"] = quoted
    return f"/_send {ref} json {json.dumps([message], ensure_ascii=False)}"


def _send_file(ref: str, path: Path, content: JsonObject) -> str:
    message: JsonObject = {"msgContent": content, "fileSource": {"filePath": str(path)}}
    return f"/_send {ref} json {json.dumps([message], ensure_ascii=False)}"


def _directory(core: SimulatedCore, event: Event) -> list[str]:
    return [
        _say(ref, _search(core.network, item["meta"]["itemText"])) for ref, item in _messages(event) if ref[0] == "@"
    ]


def _search(network: Network, text: str) -> str:
    words = text.strip().casefold()
    if words in ("/help", "/start", ""):
        return _HELP
    needle = "" if words == "/all" else words.lstrip("/")
    found: dict[str, str] = {}
    for entry in network.links.values():
        profile = entry.data.get("groupProfile")
        if profile is None or "label" not in entry.data:
            continue
        described = f"{profile['displayName']} {profile.get('shortDescr', '')}".casefold()
        if any(part in described for part in needle.split() or [""]):
            found[profile["displayName"]] = f"{profile['displayName']}: {profile.get('shortDescr', '')}\n{entry.short}"
    if not found:
        return f"No groups found for {needle}. /help"
    count = "1 group" if len(found) == 1 else f"{len(found)} groups"
    return "\n\n".join([f"Found {count}:", *found.values()])


def _echo(core: SimulatedCore, event: Event) -> list[str]:
    if event["type"].startswith("rcvFile") and _chat_type(event) != "direct":
        return []
    if event["type"] == "rcvFileDescrReady":
        number = event["rcvFileTransfer"]["fileId"]
        return [f"/freceive {number} approved_relays=on {_own_folder(core)}"]
    if event["type"] == "rcvFileComplete":
        item = event["chatItem"]["chatItem"]
        ref = f"@{event['chatItem']['chatInfo']['contact']['contactId']}"
        return [_send_file(ref, Path(item["file"]["fileSource"]["filePath"]), item["content"]["msgContent"])]
    if event["type"] in ("sndFileCompleteXFTP", "sndFileError"):
        Path(event["fileTransferMeta"]["filePath"]).unlink(missing_ok=True)
    said = [(ref, item) for ref, item in _messages(event) if ref[0] == "@" and "file" not in item]
    return [_say(ref, item["meta"]["itemText"]) for ref, item in said]


def _chat_type(event: Event) -> str:
    """The kind of chat that an event of a file is about; "" for one that names no item."""
    item = event.get("chatItem") or event.get("chatItem_")
    return "" if item is None else str(item["chatInfo"]["type"])


def _own_folder(core: SimulatedCore) -> Path:
    """Where a member of the population keeps files."""
    folder = core.network.files.place(core.name)
    folder.mkdir(exist_ok=True)
    core.temp_folder = folder / "tmp"
    return folder


def _business(core: SimulatedCore, event: Event) -> list[str]:
    del core
    out: list[str] = []
    for ref, item in _messages(event):
        asked = "?" in item["meta"]["itemText"]
        text = "We are open from 9 to 18, Monday to Saturday." if asked else "Thank you. A colleague will answer soon."
        out.append(_say(ref, text, item["meta"]["itemId"] if item["meta"].get("itemSharedMsgId") else None))
    return out


_NAMES = frozenset(profile["displayName"] for profile in PEOPLE.values())


def _member(answer: str) -> Callable[[SimulatedCore, Event], list[str]]:
    """A member of a group: answers strangers who mention or quote it."""

    def react(core: SimulatedCore, event: Event) -> list[str]:
        del core
        out: list[str] = []
        for ref, item in _messages(event):
            author = item["chatDir"].get("groupMember", {}).get("memberProfile", {}).get("displayName")
            if author not in _NAMES and item["meta"]["userMention"]:
                out.append(_say(ref, answer, item["meta"]["itemId"]))
        return out

    return react


def _owner(core: SimulatedCore, event: Event) -> list[str]:
    """The owner of Trail greets who joins, and answers as a member."""
    if event["type"] == "joinedGroupMember" and event["member"]["memberProfile"]["displayName"] not in _NAMES:
        name = event["member"]["memberProfile"]["displayName"]
        return [_say(f"#{event['groupInfo']['groupId']}", f"Welcome, {name}.")]
    return _member("I will look it up.")(core, event)


def _mapmaker(core: SimulatedCore, event: Event) -> list[str]:
    """Juniper, who sends the map to who asks for it in the group."""
    answers = _member("I have a map of it somewhere.")(core, event)
    asked = [ref for ref, item in _messages(event) if answers and "map" in item["meta"]["itemText"].casefold()]
    if not asked:
        return answers
    path = _own_folder(core) / "trail-map.png"
    path.write_bytes(pictures.hills())
    content: JsonObject = {"type": "image", "text": "The way around the lake", "image": pictures.preview()}
    return [*answers, *(_send_file(ref, path, content) for ref in asked)]


_REACTIONS: dict[str, Callable[[SimulatedCore, Event], list[str]]] = {
    "directory": _directory,
    "echo": _echo,
    "ridgeline": _business,
    "mara": _owner,
    "switchback": _member("Take the path on the left, it is dry."),
    "juniper": _mapmaker,
}
