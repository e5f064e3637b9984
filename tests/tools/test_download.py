"""`download` on a small core: what is asked, what is refused, and calls that are cut at each await (flow 13)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import MockClock

from tests.fakes import ALICE, Call
from tests.tools.world import FakeCore, Wire, World, contact, group, item, member

if TYPE_CHECKING:
    from collections.abc import Callable

KNOWN = "xftp://KEY@files.example"
BOB = member(44, "Bob")


class FileCore(FakeCore):
    """A core whose files come at once; `servers` are those of every file."""

    def __init__(self) -> None:
        super().__init__()
        self.servers: list[str] = [KNOWN]
        self.told: list[str] = []
        """Servers that only the list of a newer core names."""
        self.redirects = False
        self.bytes = b"12345"

    def offer(self, ref: str, number: int, name: str = "report.pdf", **file: Any) -> int:
        """A message with a file."""
        by = BOB if ref[0] == "#" else None
        new = item(number, "look", by=by)
        new["content"]["msgContent"]["type"] = "file"
        new["file"] = {
            "fileId": number - 100, "fileName": name, "fileSize": 5, "fileStatus": {"type": "rcvInvitation"},
            "fileProtocol": "xftp",
        } | file  # fmt: skip
        self.chats[ref].items.append(new)
        return number

    def _grammar(self) -> list[tuple[str, Callable[..., Wire]]]:
        return [
            (r"/_get item info (\S+) (\d+)", self._info),
            (r"/sql chat SELECT d\.file_descr_complete.*", self._description),
            (r"/_servers 1", lambda: {"type": "userServers", "userServers": [{"xftpServers": [{"server": KNOWN}]}]}),
            (r"/freceive (\d+)( approved_relays=on)? (\S+)", self._receive),
            (r"/fcancel (\d+)", lambda _: {"type": "rcvFileCancelled"}),
            *super()._grammar(),
        ]

    def _info(self, ref: str, number: str) -> Wire:
        self._chat(ref)
        return {"type": "chatItemInfo", "chatItemInfo": {"fileXftpServers": [*self.servers, *self.told]}}

    def _description(self) -> Wire:
        replicas = "".join(f"- chunks:\n  - 1:a=:b=\n  server: {server}\n" for server in self.servers)
        more = "redirect:\n  digest: abc=\n  size: 1\n" if self.redirects else ""
        head = "chunkSize: 1\ndigest: abc=\nkey: abc=\nnonce: abc=\nparty: recipient\n"
        text = f"{head}{more}replicas:\n{replicas}size: 5\n"
        return {"type": "sQLResult", "rows": ["complete|text", f"1|{text}"]}

    def _receive(self, number: str, _approved: str | None, path: str) -> Wire:
        chat, found = next(
            (c, i) for c in self.chats.values() for i in c.items if i.get("file", {}).get("fileId") == int(number)
        )
        Path(path).write_bytes(self.bytes)
        found["file"] |= {"fileStatus": {"type": "rcvComplete"}, "fileSource": {"filePath": path}}
        entry = {"chatInfo": chat.info, "chatItem": found}
        self.emit("rcvFileComplete", chatItem=entry)
        return {"type": "rcvFileAccepted", "chatItem": entry}


@pytest.fixture
def patient_clock() -> MockClock:
    """Time jumps when nothing happened for a moment: the disk is worked on in threads, which take real time."""
    return MockClock(autojump_threshold=0.01)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return world_in(tmp_path)


def world_in(folder: Path, mode: str = "requests") -> World:
    world = World(folder, mode, core=FileCore())
    world.core.add(group(15), item(120, "hi", by=BOB))
    return world


def files(world: World) -> FileCore:
    assert isinstance(world.core, FileCore)
    return world.core


async def approved(world: World, number: int = 1) -> None:
    """The owner's word as soon as the action is there."""
    while (action := world.actions.get(number)) is None:
        await trio.sleep(0.1)
    await action.posted.wait()
    assert world.actions.approve(number, None, ALICE) is None


async def test_a_file_is_asked_for_and_given(world: World, patient_clock: MockClock) -> None:
    async with world.running():
        files(world).offer("#15", 130)
        world.nursery.start_soon(approved, world)
        result = await world.use("download", chat="#15", item=130)
        assert (result["status"], result["decided_by"]) == ("done", "Alice")
        assert Path(result["path"]).read_bytes() == b"12345"
        assert (await world.use("download", chat="#15", item=130))["status"] == "known"
        assert len(world.core.did("/freceive")) == 1


@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        ({"fileStatus": {"type": "rcvCancelled"}}, "The sender cancelled the file."),
        ({"fileStatus": {"type": "rcvError"}}, "The file could not be received: the core gave up."),
        ({"fileSize": 2**31}, "The file is larger than its sender may send (2147483648 bytes); it is not received."),
        ({"fileSize": 0}, "The sender announced an empty file; it is not received."),
        ({"fileId": 0}, "Item 130 in #15 has no file."),
        ({"fileId": "7"}, "Item 130 in #15 has no file."),
    ],
)
async def test_a_file_that_cannot_come_is_refused_without_a_card(
    world: World, file: dict[str, Any], sentence: str, patient_clock: MockClock
) -> None:
    async with world.running():
        files(world).offer("#15", 130, **file)
        assert (await world.use("download", chat="#15", item=130))["error"] == sentence
        assert world.board.posts == []
        assert world.core.did("/freceive") == []


async def test_a_message_that_was_deleted_and_one_of_another_conversation_are_refused(
    world: World, patient_clock: MockClock
) -> None:
    async with world.running():
        files(world).offer("#15", 130)
        world.core.chats["#15"].items[-1]["meta"]["itemDeleted"] = {"type": "deleted"}
        result = await world.use("download", chat="#15", item=130)
        assert result["error"] == "The message of item 130 in #15 was deleted."
        world.core.add(group(15), scope={"type": "memberSupport"})
        files(world).offer("#15(_support)", 140)
        result = await world.use("download", chat="#15", item=140)
        assert result["error"] == "Item 140 is no message of #15; use history to find the message."


@pytest.mark.parametrize("change", [{"fileName": "other.pdf"}, {"fileSize": 6}, {"fileId": 77}])
async def test_a_file_that_changed_after_the_card_is_not_fetched(
    world: World, change: dict[str, Any], patient_clock: MockClock
) -> None:
    async with world.running():
        files(world).offer("#15", 130)
        running = world.start("download", chat="#15", item=130)
        await trio.sleep(1)
        world.core.chats["#15"].items[-1]["file"] |= change
        assert world.actions.approve(1, "#15", ALICE) is None
        await running.done.wait()
        assert running.content is not None
        assert running.content["error"] == "The file of item 130 in #15 changed after the request."
        assert world.core.did("/freceive") == []


async def test_a_sender_with_the_same_name_is_another(world: World, patient_clock: MockClock) -> None:
    async with world.running():
        files(world).offer("#15", 130)
        running = world.start("download", chat="#15", item=130)
        await trio.sleep(1)
        world.core.chats["#15"].items[-1]["chatDir"]["groupMember"] = {**BOB, "memberId": "another"}
        assert world.actions.approve(1, "#15", ALICE) is None
        await running.done.wait()
        assert running.content is not None
        assert running.content["status"] == "failed"
        assert world.core.did("/freceive") == []


async def test_unknown_servers_are_approved_only_by_a_card_that_names_them(
    world: World, patient_clock: MockClock
) -> None:
    async with world.running():
        files(world).servers = ["xftp://KEY@elsewhere.example"]
        files(world).offer("#15", 130)
        files(world).offer("#15", 131)
        world.nursery.start_soon(approved, world)
        assert (await world.use("download", chat="#15", item=130))["status"] == "done"
        assert "`elsewhere.example`" in world.board.posts[0]
        assert " approved_relays=on " in world.core.did("/freceive")[0]
        # A server that the card did not name: the description changed meanwhile.
        running = world.start("download", chat="#15", item=131)
        await trio.sleep(1)
        files(world).servers = ["xftp://KEY@third.example"]
        assert world.actions.approve(2, "#15", ALICE) is None
        await running.done.wait()
        assert running.content is not None
        assert running.content["error"] == "The file servers changed after the request."
        assert len(world.core.did("/freceive")) == 1


@pytest.mark.parametrize(
    ("servers", "told"),
    [
        ([f"xftp://KEY@{'a' * 470}{n}.example" for n in range(32)], []),
        ([KNOWN], [f"xftp://KEY@evil{n}.example" for n in range(33)]),
        ([KNOWN], [f"xftp://KEY@{'a' * 15_000}.example"]),
    ],
)
async def test_a_file_on_more_unknown_servers_than_a_card_can_name_is_refused(
    world: World, servers: list[str], told: list[str], patient_clock: MockClock
) -> None:
    async with world.running():
        files(world).servers, files(world).told = servers, told
        files(world).offer("#15", 130)
        result = await world.use("download", chat="#15", item=130)
        assert result["error"] == (
            f"The file is on {len(told or servers)} servers that the agent does not know; "
            "a card cannot name them all, so it is not received."
        )
        assert world.board.posts == []


async def test_a_card_names_each_of_many_unknown_servers(world: World, patient_clock: MockClock) -> None:
    async with world.running():
        files(world).servers = [f"xftp://KEY@evil{n}.example" for n in range(20)]
        files(world).offer("#15", 130)
        world.nursery.start_soon(approved, world)
        assert (await world.use("download", chat="#15", item=130))["status"] == "done"
        assert all(f"`evil{n}.example`" in world.board.posts[0] for n in range(20))


async def test_a_redirect_that_the_cores_list_of_servers_hides_is_refused(
    world: World, patient_clock: MockClock
) -> None:
    async with world.running():
        files(world).servers = ["xftp://KEY@outer.example"]
        files(world).redirects = True
        files(world).offer("#15", 130)
        result = await world.use("download", chat="#15", item=130)
        assert result["error"] == "The file is described in a way that hides file servers; it is not received."
        assert world.board.posts == []


async def test_a_received_file_that_is_missing_is_refused_without_a_card(
    world: World, patient_clock: MockClock
) -> None:
    async with world.running():
        files(world).offer("#15", 130)
        world.nursery.start_soon(approved, world)
        done = await world.use("download", chat="#15", item=130)
        Path(done["path"]).unlink()
        posts = list(world.board.posts)
        result = await world.use("download", chat="#15", item=130)
        assert result["error"] == (
            "The file of item 130 in #15 was received before and is not there any more; "
            "it can be received again only when its sender sends it again."
        )
        assert world.board.posts == posts


async def test_a_sender_who_was_renamed_after_the_card_is_another(world: World, patient_clock: MockClock) -> None:
    async with world.running():
        files(world).offer("#15", 130)
        running = world.start("download", chat="#15", item=130)
        await trio.sleep(1)
        renamed = {**BOB, "localDisplayName": "Alice", "memberProfile": {"displayName": "Alice", "fullName": ""}}
        world.core.chats["#15"].items[-1]["chatDir"]["groupMember"] = renamed
        assert world.actions.approve(1, "#15", ALICE) is None
        await running.done.wait()
        assert running.content is not None
        assert running.content["error"] == "The file of item 130 in #15 changed after the request."
        assert world.core.did("/freceive") == []


async def test_in_mode_host_no_unknown_server_is_used(tmp_path: Path, patient_clock: MockClock) -> None:
    world = world_in(tmp_path, mode="host")
    async with world.running():
        files(world).servers = ["xftp://KEY@elsewhere.example"]
        files(world).offer("#15", 130)
        result = await world.use("download", chat="#15", item=130)
        assert result["error"] == (
            "The file is on servers that the agent does not know (elsewhere.example); in mode host none is approved."
        )
        files(world).servers = [KNOWN]
        assert (await world.use("download", chat="#15", item=130))["status"] == "done"


async def test_a_call_that_is_cut_at_any_await_makes_one_action_and_fetches_once(
    tmp_path: Path, patient_clock: MockClock
) -> None:
    for step in range(1, 60):
        (tmp_path / str(step)).mkdir()
        world = world_in(tmp_path / str(step))
        async with world.running():
            files(world).offer("#15", 130)
            world.nursery.start_soon(approved, world)
            cut = await world.cancelled_after(step, "download", chat="#15", item=130)
            result = cut.content or await world.use("download", chat="#15", item=130)
            assert (result["status"], result["action"]) == ("done", 1)
            assert len(world.core.did("/freceive")) == 1
            if cut.content is not None:
                return
    raise AssertionError("the call never ended")


async def test_the_texts_of_a_wait_name_the_item_and_the_time(world: World, patient_clock: MockClock) -> None:
    async with world.running():
        files(world).offer("#15", 130)
        call = Call()
        world.nursery.start_soon(approved, world)
        await world.use("download", call, chat="#15", item=130)
        assert call.said[0].startswith("Action 1 waits for an approver until ")


async def test_a_file_of_a_contact_names_no_member(world: World, patient_clock: MockClock) -> None:
    async with world.running():
        world.core.add(contact(4))
        files(world).offer("@4", 130)
        world.nursery.start_soon(approved, world)
        await world.use("download", chat="@4", item=130)
        assert world.board.posts[0].startswith("I want to download a file from bot Helper (@4): `report.pdf`, 5 bytes")
