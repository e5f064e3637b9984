"""One simulated core: takes commands as text, answers with the core's objects, and gives events to its subscriber.

The verbs are in other modules, as functions that get the core: the commands by the table in `grammar`, what comes from
other cores by the table in `receiving`. Here is what they all need: ids, times, items, events, sending.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from simplexmcp.sandbox import errors, itemshapes, shapes
from simplexmcp.sandbox.items import ItemIndex
from simplexmcp.sandbox.state import CoreState, Profile, free_id
from simplexmcp.sandbox.times import local_time

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    from simplexmcp.sandbox.network import Delivery, Network
    from simplexmcp.sandbox.state import Connection, Contact, Group, Item, Member, User

__all__ = ["Event", "SimulatedCore"]

JsonObject = dict[str, Any]
Event = dict[str, Any]

QUEUE_SIZE = 1024
"""Events that are kept while nobody listens; then the core processes no more messages until somebody does."""

_TICK = 0.000_001_37
"""Seconds between two moments of one core, so that no two rows have the same time."""


class SimulatedCore:
    """The core of one profile. Not started and without a user at first."""

    def __init__(self, network: Network, state: CoreState) -> None:
        self.network = network
        self.state = state
        self.index = ItemIndex(state)
        self.started = False
        self.parked: list[Delivery] = []
        self.network_config: JsonObject | None = None
        self.queue_size = QUEUE_SIZE
        self.cli = False
        self.played = False
        """Whether a person at this computer acts as this profile: then a member of the population does nothing."""
        self.files_folder: Path | None = None
        self.temp_folder: Path | None = None
        self._acting: User | None = None
        self._subscriber: Callable[[Event], None] | None = None
        self._kept: list[Event] = []
        self._answering: list[Event] | None = None
        self._reactions: list[Callable[[Event], None]] = []
        self._watchers: list[Callable[[Event], None]] = []

    @property
    def name(self) -> str:
        """The profile's name: its path on the server."""
        return self.state.name

    # Commands and events

    def command(self, text: str) -> Event:
        """The response to one command; a refusal is `{"type": "chatCmdError", "chatError": CHATERROR}`."""
        from simplexmcp.sandbox import grammar

        faults = self.network.faults
        if refused := faults.refusal(self.name, text):
            return {"type": "chatCmdError", "chatError": refused}
        if faults.response_first:
            self._answering = []
        try:
            response = grammar.run(self, text)
        except errors.CommandFailed as e:
            response = {"type": "chatCmdError", "chatError": e.chat_error}
        finally:
            held, self._answering = self._answering, None
            self.network.touched()
        for event in held or ():
            self.network.schedule(self.name, "event", {"event": event})
        for see in self._watchers:
            see(response)
        return response

    def subscribe(self, on_event: Callable[[Event], None] | None) -> None:
        """Give all events to this function from now on, those first that came while nobody listened."""
        self._subscriber = on_event
        if on_event is None:
            return
        kept, self._kept = self._kept, []
        for event in kept:
            on_event(event)
        if self.started:
            parked, self.parked = self.parked, []
            self.network.reschedule(parked)

    def react(self, reaction: Callable[[Event], None]) -> None:
        """Let a member of the population see each event (it does not take it from the subscriber)."""
        self._reactions.append(reaction)

    def watch(self, see: Callable[[Event], None]) -> None:
        """Let somebody see each event and each response to a command, whoever gave it, without taking them from the
        subscriber. From then on events that nobody takes hold nothing up: the oldest are forgotten."""
        self._watchers.append(see)
        if self.started:
            parked, self.parked = self.parked, []
            self.network.reschedule(parked)

    def emit(self, tag: str, **fields: Any) -> None:
        """An event now: before the response when a command is running."""
        self.emit_raw(self.event(tag, **fields))

    def event(self, tag: str, **fields: Any) -> Event:
        """A response or event with its user."""
        return {"type": tag, "user": self.user_json(), **fields}

    def emit_raw(self, event: Event) -> None:
        """An event that has no user."""
        if self._answering is not None:
            self._answering.append(event)
        elif delay := self.network.faults.event_delay:
            self.network.schedule(self.name, "event", {"event": event}, after=delay)
        else:
            self._publish(event)

    def emit_later(self, tag: str, **fields: Any) -> None:
        """An event that the core sends right after the response of the running command."""
        if self.network.faults.events_first:
            self.emit(tag, **fields)
        else:
            self.network.schedule(self.name, "event", {"event": self.event(tag, **fields)})

    def emit_raw_later(self, event: Event) -> None:
        """The same for an event without a user."""
        self.network.schedule(self.name, "event", {"event": event})

    def _publish(self, event: Event) -> None:
        for reaction in (*self._reactions, *self._watchers):
            reaction(event)
        for one in self.network.faults.distort(event):
            if self._subscriber is None:
                self._kept.append(one)
                if self._watchers:
                    del self._kept[: -self.queue_size]
            else:
                self._subscriber(one)

    # What the network gives it to do

    def perform(self, delivery: Delivery) -> None:
        """Do one delivery; a core that is not started keeps it for its start."""
        if delivery.do == "event":
            self._publish(delivery.data["event"])
        elif delivery.do == "act":
            self.command(delivery.data["command"])
        elif not self.started or (len(self._kept) >= self.queue_size and not self._watchers):
            self.parked.append(delivery)
        else:
            from simplexmcp.sandbox import receiving

            receiving.perform(self, delivery)

    # Users

    @property
    def user(self) -> User:
        """The active user, or that of the chat where something happens now; else `noActiveUser`."""
        if self._acting is not None:
            return self._acting
        if self.state.active_user is None:
            raise errors.error("noActiveUser")
        return self.state.users[self.state.active_user]

    @contextmanager
    def acting_for(self, user_id: int | None) -> Generator[None]:
        """Something happens in a chat of this user, who need not be the active one (None: who is)."""
        self._acting = None if user_id is None else self.state.users[user_id]
        try:
            yield
        finally:
            self._acting = None

    def user_json(self) -> JsonObject:
        """USER of that user."""
        return shapes.user(self.state, self.user)

    # Times and ids

    def now(self) -> str:
        """The local time; later than any the core has given before."""
        self.state.clock = max(self.network.clock(), self.state.clock + _TICK)
        return local_time(self.state.clock)

    def seconds(self) -> float:
        """The clock of the network, seconds since the epoch."""
        return self.network.clock()

    def add_profile(self, data: JsonObject, *, incognito: bool = False) -> Profile:
        """A new row of contact profiles."""
        row = Profile(free_id(self.state.profiles), data, incognito)
        self.state.profiles[row.profile_id] = row
        return row

    def drop_profile(self, profile_id: int | None) -> None:
        """Delete a profile, unless a row still shows it."""
        state = self.state
        shown: tuple[dict[int, Any], ...] = (state.users, state.contacts, state.members, state.requests)
        if not any(row.profile_id == profile_id for table in shown for row in table.values()):
            state.profiles.pop(profile_id or 0, None)

    def take_name(self, wanted: str, user: User | None = None) -> str:
        """A local display name: the wanted one, or with the next free number (`Alice_1`)."""
        prefix = f"{(user or self.user).user_id}:"
        taken = [row[1] for key, row in self.state.names.items() if key.startswith(prefix) and row[0] == wanted]
        suffix = max(taken) + 1 if taken else 0
        name = f"{wanted}_{suffix}" if suffix else wanted
        while prefix + name in self.state.names:
            suffix += 1
            name = f"{wanted}_{suffix}"
        self.state.names[prefix + name] = [wanted, suffix]
        return name

    def free_name(self, name: str) -> None:
        """A chat or member is gone: its local name can be used again, unless another row still has it."""
        state, mine = self.state, self.user.user_id
        in_use = (
            any(c.name == name and c.user_id == mine for c in state.contacts.values())
            or any(g.name == name and g.user_id == mine for g in state.groups.values())
            or any(m.name == name and m.category != "user" and self._is_mine(m) for m in state.members.values())
            or self.user.name == name
        )
        if not in_use:
            state.names.pop(f"{mine}:{name}", None)

    def _is_mine(self, member: Member) -> bool:
        group = self.state.groups.get(member.group_id)
        return group is not None and group.user_id == self.user.user_id

    # Rows by id

    def contact(self, contact_id: int) -> Contact:
        """A contact of the active user, or `contactNotFound`."""
        row = self.state.contacts.get(contact_id)
        if row is None or row.user_id != self.user.user_id:
            raise errors.store_error("contactNotFound", contactId=contact_id)
        return row

    def group(self, group_id: int) -> Group:
        """A group of the active user, or `groupNotFound`."""
        row = self.state.groups.get(group_id)
        if row is None or row.user_id != self.user.user_id:
            raise errors.store_error("groupNotFound", groupId=group_id)
        return row

    def membership(self, group: Group) -> Member:
        """The own membership of a group."""
        return self.state.members[group.membership]

    def conn_of(self, row: Contact | Member) -> Connection | None:
        """The connection of a contact or member, if it has one."""
        return None if row.conn_id is None else self.state.connections.get(row.conn_id)

    def conn_by_agent_id(self, agent_id: str) -> Connection | None:
        """The connection with this agent id."""
        return next((c for c in self.state.connections.values() if c.agent_id == agent_id), None)

    def drop_chat(self, ref: str, *, banner: bool = True) -> None:
        """Delete all items of a chat, or all but its banner."""
        from simplexmcp.sandbox import files

        for number in self.index.drop_chat(ref):
            if not banner and self.state.items[number].content["type"] == "chatBanner":
                self.index.add(self.state.items[number])
            else:
                files.drop(self, self.state.items.pop(number))

    def drop_contact(self, contact: Contact) -> None:
        """Delete a contact with its items, requests and names; its connection is the caller's business."""
        state = self.state
        self.drop_chat(f"@{contact.contact_id}")
        del state.contacts[contact.contact_id]
        state.requests.pop(contact.request_id or 0, None)
        for member in state.members.values():
            if member.contact_id == contact.contact_id:
                member.contact_id = None
        self.drop_profile(contact.profile_id)
        self.free_name(contact.name)

    def forget_connection(self, conn: Connection) -> None:
        """Delete a connection's row; what is on its way over it still goes."""
        self.state.connections.pop(conn.conn_id, None)
        table: dict[int, Any] = self.state.members if conn.kind == "member" else self.state.contacts
        owner = table.get(conn.entity_id or 0)
        if owner is not None and owner.conn_id == conn.conn_id:
            owner.conn_id = None

    # Shapes of the current state

    def contact_json(self, row: Contact) -> JsonObject:
        """CONTACT."""
        return shapes.contact(self.state, row)

    def group_json(self, row: Group, *, members: int | None = None) -> JsonObject:
        """GROUPINFO."""
        return shapes.group_info(self.state, row, members=members)

    def member_json(self, row: Member) -> JsonObject:
        """GROUPMEMBER with its connection."""
        return shapes.group_member(self.state, row)

    def item_json(self, row: Item, *, fresh: bool = False, members: int | None = None) -> JsonObject:
        """ACHATITEM; `fresh` as in newChatItems."""
        return itemshapes.achat_item(self.state, row, self.seconds(), fresh=fresh, members=members)

    def emit_items(self, *rows: Item, members: int | None = None) -> None:
        """`newChatItems` with these items."""
        self.emit("newChatItems", chatItems=[self.item_json(row, fresh=True, members=members) for row in rows])

    def emit_items_later(self, *rows: Item, members: int | None = None) -> None:
        """The same right after the response."""
        shown = [self.item_json(row, fresh=True, members=members) for row in rows]
        self.emit_later("newChatItems", chatItems=shown)

    # Sending

    def post(self, conn: Connection, body: JsonObject, *, after: float = 0.0) -> None:
        """A step of a handshake: goes to the other side of the connection without being counted or reported."""
        from simplexmcp.sandbox.network import HOP

        assert conn.peer is not None
        data = {"to": conn.peer[1], "from": conn.agent_id, "bodies": [body], "ts": self.seconds()}
        self.network.schedule(conn.peer[0], "msg", data, after=HOP + after)

    def after(self, step: str, seconds: float, **data: Any) -> None:
        """Go on later with a step of a handshake."""
        self.network.schedule(self.name, step, data, after=seconds)

    def send(
        self,
        conn: Connection,
        bodies: list[JsonObject],
        *,
        items: list[int] | None = None,
        files: list[int] | None = None,
        after: float = 0.0,
    ) -> None:
        """Hand messages for one connection to the relay; statuses of `items` follow what happens to them, and `files`
        are sent when the relay has these."""
        from simplexmcp.sandbox.network import HOP

        data = {"conn": conn.agent_id, "peer": conn.peer, "bodies": bodies, "items": items or []}
        data |= {"files": files} if files else {}
        self.network.schedule(self.name, "sent", data, after=HOP / 2 + after)
