"""Whatever people do in whatever order: every command is answered, and what each sees fits together."""

from __future__ import annotations

import json
import random
import re
from typing import TYPE_CHECKING, Any

import pytest

from simplexmcp.sandbox import files, persistence
from simplexmcp.sandbox.relay import DEFAULT_SERVER, OTHER_SERVER
from tests.effort import effort
from tests.sandbox.world import Person, World

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from simplexmcp.sandbox.state import Member

JsonObject = dict[str, Any]

NAMES = ("Alice", "Bob", "Carol", "Alice")
TEXTS = ("hello", "@Bob look", "two\nlines", "x" * 900, "🧗", "/'tap me'", "https://simplex.chat/contact#/?v=1")
ROLES = ("owner", "admin", "moderator", "member", "observer")


class Crowd:
    """Four people, two with the same name, who do things at random; refusals are fine, exceptions are not."""

    def __init__(self, seed: int, folder: Path | None = None) -> None:
        self.random = random.Random(seed)
        self.folder = folder
        self.world = World()
        self.people: list[Person] = []
        for number, name in enumerate(NAMES):
            person = self.world.stranger(f"p{number}")
            user = {"profile": {"displayName": name, "fullName": ""}, "pastTimestamp": False}
            person.do("/_create user", user)
            person.do("/_start")
            self.people.append(person)
            if folder is not None:
                person.do(f"/_temp_folder {folder}/tmp{number}")
        self.links: list[JsonObject] = []

    def act(self) -> None:
        """Somebody does something."""
        who = self.random.choice(self.people)
        self.random.choice(DEEDS if self.folder is None else (*DEEDS, *([_file] * 8)))(self, who)
        if self.random.random() < 0.6:
            self.world.settle()
        elif self.random.random() < 0.5:
            self.world.now += self.random.random()
            self.world.network.deliver()

    def command(self, who: Person, text: str, value: Any = None) -> JsonObject:
        """The response, which is always an object with a tag. `U` in a command is the active user."""
        named = re.sub(r" U( |$)", rf" {who.core.state.active_user}\1", text)
        response = who.core.command(named if value is None else f"{named} {json.dumps(value)}")
        assert isinstance(response["type"], str)
        return response

    def ref(self, who: Person) -> str:
        """A chat of somebody; now and then one that may not exist."""
        state = who.core.state
        chats = [*(f"@{n}" for n in state.contacts), *(f"#{n}" for n in state.groups)]
        return self.random.choice([*chats, f"@{self.random.randrange(9)}", f"#{self.random.randrange(5)}"])

    def group(self, who: Person) -> int:
        """A group of somebody."""
        return self.random.choice([*who.core.state.groups, 1])

    def member(self, who: Person) -> int:
        """A member id of somebody."""
        return self.random.choice([*who.core.state.members, 1])

    def item(self, who: Person, ref: str) -> int:
        """An item of a chat."""
        items = [n for n, row in who.core.state.items.items() if row.chat == ref]
        return self.random.choice([*items[-6:], 1])


def _at(value: Any, *keys: str) -> Any:
    """What lies under these keys; None when the command was refused."""
    for key in keys:
        value = (value or {}).get(key)
    return value


def _link(crowd: Crowd, who: Person) -> None:
    kind = crowd.random.randrange(4)
    if kind == 0:
        response = crowd.command(who, "/_connect U")
        link = response.get("connLinkInvitation")
    elif kind == 1:
        link = crowd.command(who, "/_address U").get("connLinkContact")
        auto = {"businessAddress": crowd.random.random() < 0.3, "autoAccept": {"acceptIncognito": False}}
        crowd.command(who, "/_address_settings U", auto)
    else:
        profile: JsonObject = {"displayName": crowd.random.choice(("Team", "Crew")), "fullName": ""}
        if kind == 3:
            profile["memberAdmission"] = {"review": "all"}
        group = _at(crowd.command(who, "/_group U", profile), "groupInfo", "groupId")
        link = _at(crowd.command(who, f"/_create link #{group or 0} member"), "groupLink", "connLinkContact")
    if link is not None:
        crowd.links.append(link)


def _connect(crowd: Crowd, who: Person) -> None:
    if not crowd.links:
        return
    link = crowd.random.choice(crowd.links)
    plan = crowd.command(who, f"/_connect plan U {link['connShortLink']}")
    if plan["type"] == "chatCmdError" or crowd.random.random() < 0.3:
        crowd.command(who, f"/_connect U {link['connFullLink']} {link['connShortLink']}")
        return
    details = next(v for k, v in plan["connectionPlan"].items() if k.endswith("Plan"))
    data: JsonObject = next((v for k, v in details.items() if k.endswith("SLinkData_")), {})
    links = f"{link['connFullLink']} {link['connShortLink']}"
    incognito = crowd.random.choice(("on", "off"))
    if "groupLinkPlan" in plan["connectionPlan"]:
        prepared = crowd.command(who, f"/_prepare group U {links} direct=on", data)
    else:
        prepared = crowd.command(who, f"/_prepare contact U {links}", data)
    info = _at(prepared, "chat", "chatInfo") or {}
    if info.get("type") == "group":
        crowd.command(who, f"/_connect group #{info['groupInfo']['groupId']} incognito={incognito}")
    elif info.get("type") == "direct":
        contact = info["contact"]["contactId"]
        crowd.command(who, f"/_connect contact @{contact} incognito={incognito} text hello")


def _requests(crowd: Crowd, who: Person) -> None:
    for request in list(who.core.state.requests):
        crowd.command(who, f"/{crowd.random.choice(('_accept', '_accept', '_reject'))} {request}")


def _send(crowd: Crowd, who: Person) -> None:
    ref = crowd.ref(who)
    message: JsonObject = {"msgContent": {"type": "text", "text": crowd.random.choice(TEXTS)}}
    if crowd.random.random() < 0.3:
        message["quotedItemId"] = crowd.item(who, ref)
    crowd.command(who, f"/_send {ref} json", [message] * crowd.random.choice((1, 1, 2)))


def _change(crowd: Crowd, who: Person) -> None:
    ref = crowd.ref(who)
    item = crowd.item(who, ref)
    number = ref[1:]
    text = {"msgContent": {"type": "text", "text": crowd.random.choice(TEXTS)}, "mentions": {}}
    emoji = '{"type":"emoji","emoji":"👍"}'
    crowd.command(
        who,
        crowd.random.choice(
            (
                f"/_update item {ref} {item} live=off json {json.dumps(text)}",
                f"/_delete item {ref} {item} {crowd.random.choice(('broadcast', 'internal', 'internalMark'))}",
                f"/_delete member item #{number} {item}",
                f"/_reaction {ref} {item} {crowd.random.choice(('on', 'off'))} {emoji}",
                f"/_read chat {ref}",
                f"/_read chat items {ref} {item}",
                f"/_get item info {ref} {item}",
            )
        ),
    )


def _rule(crowd: Crowd, who: Person) -> None:
    group, member = crowd.group(who), crowd.member(who)
    role = crowd.random.choice(ROLES)
    crowd.command(
        who,
        crowd.random.choice(
            (
                f"/_member role #{group} {member} {role}",
                f"/_remove #{group} {member} messages={crowd.random.choice(('on', 'off'))}",
                f"/_block #{group} {member} blocked={crowd.random.choice(('on', 'off'))}",
                f"/_accept member #{group} {member} {role}",
                f"/_set link role #{group} {role}",
                f"/_delete link #{group}",
                f"/_create link #{group} member",
                f'/_group_profile #{group} {{"displayName":"{crowd.random.choice(("Team", "Club"))}","fullName":""}}',
                f"/_add #{group} {crowd.random.randrange(3, 8)} {role}",
                f"/_join #{group}",
            )
        ),
    )


def _end(crowd: Crowd, who: Person) -> None:
    ref = crowd.ref(who)
    crowd.command(
        who,
        crowd.random.choice(
            (
                f"/_leave #{ref[1:]}",
                f"/_delete {ref} {crowd.random.choice(('full', 'entity', 'messages'))} notify=on",
                f"/_delete {ref} full notify=off",
                "/_delete_address U",
                '/_profile U {"displayName":"Alice","fullName":"A"}',
            )
        ),
    )


def _outage(crowd: Crowd, who: Person) -> None:
    if crowd.random.random() < 0.5:
        crowd.world.network.relay_up(crowd.random.random() < 0.7)
    else:
        crowd.command(who, crowd.random.choice(("/_stop", "/_start", "/_start")))


def _file(crowd: Crowd, who: Person) -> None:
    """Somebody sends a file, or does something to one; now and then the servers are down."""
    assert crowd.folder is not None
    source = crowd.folder / f"source{crowd.random.randrange(3)}.bin"
    source.write_bytes(bytes(crowd.random.choice((0, 700, 3_000_000))))
    message = {"msgContent": {"type": "file", "text": "file"}, "fileSource": {"filePath": str(source)}}
    number = crowd.random.choice([*who.core.state.files, 1])
    deed = crowd.random.randrange(8)
    if deed < 3:
        crowd.command(who, f"/_send {crowd.ref(who)} json", [message])
    elif deed < 5:
        approved = crowd.random.choice(("", " approved_relays=on"))
        crowd.command(who, f"/freceive {number}{approved} {crowd.folder}/{crowd.random.randrange(10**6)}")
    elif deed == 5:
        crowd.command(who, f"/fcancel {number}")
    elif deed == 6:
        crowd.command(who, f"/xftp {crowd.random.choice((DEFAULT_SERVER, OTHER_SERVER))}")
    else:
        crowd.random.choice((crowd.world.network.files.down, crowd.world.network.files.up))()


def _switch(crowd: Crowd, who: Person) -> None:
    if len(who.core.state.users) == 1:
        user = {"profile": {"displayName": "Other", "fullName": ""}, "pastTimestamp": False}
        crowd.command(who, "/_create user", user)
    crowd.command(who, f"/_user {crowd.random.choice((1, 1, 2))}")


DEEDS: tuple[Callable[[Crowd, Person], None], ...] = (
    *([_link] * 2),
    *([_connect] * 4),
    *([_send] * 5),
    *([_change] * 4),
    *([_rule] * 2),
    _requests,
    _end,
    _outage,
    _switch,
)


def _check(person: Person) -> None:
    """All that a person can look at is there and agrees."""
    person.core.command("/_start")
    state = person.core.state
    for user in state.users:
        person.do(f"/_user {user}")
        _check_chats(person, user)
    assert all(group.membership in state.members for group in state.groups.values())
    assert all(member.group_id in state.groups for member in state.members.values())
    assert all(member.profile_id in state.profiles for member in state.members.values())
    assert all(contact.profile_id in state.profiles for contact in state.contacts.values())
    known = {f"@{n}" for n in state.contacts} | {f"#{n}" for n in state.groups}
    assert all(item.chat in known for item in state.items.values())
    owners = {row.item_id: row.file_id for row in state.files.values() if row.item_id is not None}
    assert owners == {item.item_id: item.file for item in state.items.values() if item.file is not None}
    shared = [(item.chat, item.shared_id) for item in state.items.values() if item.shared_id is not None]
    assert len(shared) == len(set(shared)), "a message came twice"


def _check_chats(person: Person, user: int) -> None:
    for entry in person.do(f"/_get chats {user} pcc=on count=500")["chats"]:
        info, stats = entry["chatInfo"], entry["chatStats"]
        if info["type"] not in ("direct", "group"):
            continue
        number = info["contact"]["contactId"] if info["type"] == "direct" else info["groupInfo"]["groupId"]
        ref = f"{'@' if info['type'] == 'direct' else '#'}{number}"
        items = person.chat(ref, "count=1000")["chatItems"]
        ids = [item["meta"]["itemId"] for item in items]
        assert len(ids) == len(set(ids))
        unread = [item["meta"]["itemId"] for item in items if item["meta"]["itemStatus"]["type"] == "rcvNew"]
        assert stats["unreadCount"] == len(unread)
        assert stats["minUnreadItemId"] == (unread[0] if unread else 0)
        for place in range(0, len(ids), 3):
            around = person.chat(ref, f"around={ids[place]} count=1")["chatItems"]
            assert [item["meta"]["itemId"] for item in around] == ids[max(0, place - 1) : place + 2]
        if ref[0] == "#":
            # Two members have one name only if they are one person, who left and came again.
            people: dict[str, set[str]] = {}
            for member in person.do(f"/_members {ref}")["group"]["members"]:
                if (whose := _whose(person, member["groupMemberId"])) is not None:
                    people.setdefault(member["localDisplayName"], set()).add(whose)
            assert all(len(one) == 1 for one in people.values())


def _whose(person: Person, member: int) -> str | None:
    """The core at the other end of a member's connection."""
    conn = person.core.conn_of(person.core.state.members[member])
    return None if conn is None or conn.peer is None else conn.peer[0]


@pytest.mark.parametrize("seed", range(effort(8, 50)))
def test_every_command_is_answered_and_the_views_agree(seed: int) -> None:
    crowd = Crowd(seed)
    for _ in range(120):
        crowd.act()
    crowd.world.network.relay_up()
    for person in crowd.people:
        person.core.command("/_start")
    crowd.world.settle()
    for person in crowd.people:
        _check(person)
    json.dumps([person.events for person in crowd.people])


@pytest.mark.parametrize("seed", range(100, 100 + effort(3, 12)))
def test_a_restart_in_the_middle_changes_nothing(seed: int, tmp_path: Any) -> None:
    crowd = Crowd(seed)
    for _ in range(80):
        crowd.act()
    path = tmp_path / "net.json"
    persistence.save(crowd.world.network, path)
    again = persistence.load(path, crowd.world.clock)
    assert persistence.dump(again) == persistence.dump(crowd.world.network)


@pytest.mark.parametrize("seed", range(300, 300 + effort(5, 24)))
def test_files_of_whatever_happens_to_them_end_whole_or_not_at_all(seed: int, tmp_path: Path) -> None:
    crowd = Crowd(seed, tmp_path)
    crowd.links.append(crowd.world.group(crowd.people[0], "Team", *crowd.people[1:]))
    for _ in range(120):
        crowd.act()
    crowd.world.network.relay_up()
    crowd.world.network.files.up()
    for person in crowd.people:
        person.core.command("/_start")
    crowd.world.settle()
    for person in crowd.people:
        _check(person)
        for row in person.core.state.files.values():
            if row.status["type"] == "rcvComplete":
                assert files.real_path(person.core, row.path or "").stat().st_size == row.size
    assert not [path for folder in tmp_path.glob("tmp*") for path in folder.iterdir()]


CURRENT = ("complete", "connected", "creator")


def _known(person: Person, group: int, member_id: str) -> bool:
    """Whether somebody has the member as a current one in this group."""
    return any(
        row.group_id == group and row.member_id == member_id and row.category != "user" and row.status in CURRENT
        for row in person.core.state.members.values()
    )


def _membership(person: Person, group: int) -> Member:
    state = person.core.state
    return state.members[state.groups[group].membership]


def _counted(person: Person, group: int, text: str) -> int:
    return sum(row.chat == f"#{group}" and row.text == text for row in person.core.state.items.values())


def test_what_a_member_says_comes_once_to_everyone_who_has_it_as_a_member() -> None:
    assert sum(_heard(seed) for seed in range(200, 212)) > 100


def _heard(seed: int) -> int:
    """How many messages were heard in the groups of a crowd that met and then did this and that."""
    crowd = Crowd(seed)
    link = crowd.world.group(crowd.people[0], "Team", *crowd.people[1:])
    crowd.links.append(link)
    for _ in range(60):
        crowd.act()
    crowd.world.network.relay_up()
    for person in crowd.people:
        person.core.command("/_start")
    crowd.world.settle()
    heard = 0
    for person in crowd.people:
        for group in list(person.core.state.groups):
            text = f"{person.core.name} says {group}"
            if crowd.command(person, f"/_send #{group} text {text}")["type"] == "chatCmdError":
                continue
            crowd.world.settle()
            own = _membership(person, group)
            for other in (p for p in crowd.people if p is not person):
                for theirs in list(other.core.state.groups):
                    them = _membership(other, theirs)
                    mutual = _known(person, group, them.member_id) and _known(other, theirs, own.member_id)
                    expected = int(mutual and them.status in CURRENT)
                    assert _counted(other, theirs, text) == expected, (seed, text, other.core.name, theirs)
                    heard += expected
    return heard
