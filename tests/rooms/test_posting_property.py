"""A room against a model of it: whatever members do in whatever order, numbers, markers and counts are right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from simplexmcp.rooms.store.database import open_database
from tests.rooms.client import InProcess

if TYPE_CHECKING:
    from simplexmcp.rooms.store.database import Database

MEMBERS = st.integers(0, 2)


class Room(RuleBasedStateMachine):
    """Three members of one room; `messages` is (number, author) of what is kept."""

    def __init__(self) -> None:
        super().__init__()
        self.database: Database = open_database(":memory:")
        self.members = [InProcess(":memory:", database=self.database) for _ in range(3)]
        self.ids = [member.enter_room(model=str(number)).agent_id for number, member in enumerate(self.members)]
        self.messages: list[tuple[int, int]] = []
        self.keys: dict[tuple[int, str], int] = {}
        self.latest = 0
        self.markers = [0, 0, 0]

    def teardown(self) -> None:
        self.database.close()

    def unread(self, who: int, above: int | None = None) -> list[int]:
        marker = self.markers[who] if above is None else above
        return [seq for seq, author in self.messages if author != who and seq > marker]

    def stored(self, who: int, posted: dict[str, Any], crossed: list[int]) -> None:
        self.latest += 1
        assert (posted["posted"], posted["seq"], posted["crossed"]) == (True, self.latest, len(crossed))
        assert posted["crossed_range"] == ({"from_seq": crossed[0], "to_seq": crossed[-1]} if crossed else None)
        self.messages.append((self.latest, who))
        if not crossed:
            self.markers[who] = self.latest

    @rule(who=MEMBERS)
    def post(self, who: int) -> None:
        crossed = self.unread(who)
        self.stored(who, self.members[who].call("post_message", content="x"), crossed)

    @rule(who=MEMBERS, key=st.sampled_from("ab"))
    def post_once(self, who: int, key: str) -> None:
        crossed = self.unread(who)
        posted = self.members[who].call("post_message", content="once", client_message_id=key)
        earlier = self.keys.get((who, key))
        if earlier is not None and (earlier, who) in self.messages:
            assert (posted["deduplicated"], posted["seq"]) == (True, earlier)
            return
        self.stored(who, posted, crossed)
        self.keys[who, key] = self.latest

    @rule(who=MEMBERS, back=st.integers(0, 4))
    def post_if_read(self, who: int, back: int) -> None:
        token = max(0, self.markers[who] - back)
        crossed, beyond = self.unread(who), self.unread(who, token)
        posted = self.members[who].call("post_message", content="x", if_last_read_seq=token)
        oldest = self.messages[0][0] if self.messages else 0
        if token < oldest - 1:
            assert (posted["rejected"], posted["oldest_retained_seq"]) == ("evidence_pruned", oldest)
        elif beyond:
            assert (posted["rejected"], posted["crossed"]) == ("stale_read", len(beyond))
            assert [message["seq"] for message in posted["crossed_messages"]] == beyond[:20]
            assert posted.get("crossed_remaining", 0) == len(beyond[20:])
        else:
            self.stored(who, posted, crossed)

    @rule(who=MEMBERS, limit=st.integers(1, 4))
    def catch_up(self, who: int, limit: int) -> None:
        unread = self.unread(who)
        page = self.members[who].call("catch_up", limit=limit)
        assert [message["seq"] for message in page["messages"]] == unread[:limit]
        rest = unread[limit:]
        assert page["remaining"] == len(rest)
        self.markers[who] = page["new_last_read_seq"]
        assert self.markers[who] == (rest[0] - 1 if rest else self.latest)

    @rule(who=MEMBERS, seq=st.integers(0, 30))
    def mark_read(self, who: int, seq: int) -> None:
        moved = self.members[who].call("mark_read", seq=seq)
        new = min(seq, self.latest)
        assert moved == {"previous": self.markers[who], "new": new, "latest": self.latest}
        self.markers[who] = new

    @rule(who=MEMBERS, keep_last=st.integers(1, 6), force=st.booleans())
    def prune(self, who: int, keep_last: int, force: bool) -> None:
        doomed = self.messages[:-keep_last]
        blocked = [seq for seq, author in doomed if any(self.markers[m] < seq for m in range(3) if m != author)]
        done = self.members[who].call("prune_messages", keep_last=keep_last, force=force)
        if blocked and not force:
            assert (done["deleted"], done["would_delete_unread"]) == (0, len(blocked))
            return
        assert done["deleted"] == len(doomed)
        self.messages = self.messages[-keep_last:]

    @invariant()
    def everyone_is_told_the_same_as_the_model(self) -> None:
        for who, member in enumerate(self.members):
            here = member.call("whoami")
            assert (here["last_read_seq"], here["unread"]) == (self.markers[who], len(self.unread(who)))
        kept = [
            (row["seq"], self.ids.index(row["agent_id"]))
            for row in self.database.all("SELECT seq, agent_id FROM messages ORDER BY seq")
        ]
        assert kept == self.messages


Room.TestCase.settings = settings(max_examples=20, stateful_step_count=25, deadline=None)
TestRoom = Room.TestCase
