"""Downloads on the simulated network: real bytes, in contacts and groups (flows 13, 14 and 16)."""

from __future__ import annotations

import errno
import tracemalloc
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio

from simplexmcp.chats import CONTROL_KEY
from simplexmcp.errors import CoreError, LinkLost, Refused
from simplexmcp.sandbox.relay import OTHER_SERVER

if TYPE_CHECKING:
    from tests.files.scene import Scene

HALF_AN_HOUR = 30 * 60


async def why(scene: Scene, file: Any, place: str = "received", **options: Any) -> str:
    """Why a download fails."""
    with pytest.raises((Refused, CoreError)) as failed:
        await scene.get(file, place, **options)
    return str(failed.value)


class Wanted:
    """Somebody who waits for a file: its path, or why it does not come."""

    def __init__(self, scene: Scene, file: Any, place: str = "received", **options: Any) -> None:
        self.path: Path | None = None
        self.error = ""
        self.over = trio.Event()
        scene.nursery.start_soon(self._wait, scene, file, place, options)

    async def _wait(self, scene: Scene, file: Any, place: str, options: dict[str, Any]) -> None:
        try:
            self.path = await scene.get(file, place, **options)
        except (Refused, CoreError) as error:
            self.error = str(error)
        self.over.set()


# --- receiving


async def test_a_file_is_received_with_its_bytes_under_its_number_and_for_nobody_else(scene: Scene) -> None:
    file = await scene.offer(6_000_000)
    assert (await scene.downloads.relays(scene.chat, file)).unknown == ()
    path = await scene.get(file)
    kind = "group" if scene.chat.is_group else "contact"
    assert path == scene.folders.data / "files" / f"{kind}-{scene.chat.number}" / f"{file.file_id}.pdf"
    assert path.read_bytes() == (scene.folder / "bob" / "report.pdf").read_bytes()
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert scene.downloads.look(scene.chat, await scene.file(file.item)) == ("received", path)


async def test_a_file_that_the_core_made_executable_is_not(direct: Scene) -> None:
    file = await direct.offer(name="run.sh")

    def loosen(event: dict[str, Any]) -> None:
        if event["type"] == "rcvFileComplete":
            Path(event["chatItem"]["chatItem"]["file"]["fileSource"]["filePath"]).chmod(0o755)

    direct.before = loosen
    path = await direct.get(file)
    assert path.stat().st_mode & 0o777 == 0o600


async def test_the_percent_rises_to_100(direct: Scene) -> None:
    file = await direct.offer(6_000_000)
    seen: list[int] = []
    async with direct.downloads.fetch(direct.chat, file) as transfer, trio.open_nursery() as nursery:

        async def watch() -> None:
            while True:
                seen.append(transfer.percent)
                await transfer.changed()

        nursery.start_soon(watch)
        await transfer.done()
        nursery.cancel_scope.cancel()
        assert transfer.percent == 100
    assert seen == sorted(seen)
    assert 66 in seen


async def test_a_completed_download_is_given_again_without_the_core(direct: Scene) -> None:
    file = await direct.offer()
    path = await direct.get(file)
    assert await direct.get(file) == path
    assert len(direct.commands("/freceive")) == 1


async def test_leaving_the_wait_does_not_end_the_download(direct: Scene) -> None:
    file = await direct.offer(6_000_000)
    with trio.move_on_after(0.05):
        await direct.get(file)
    await trio.sleep(5)
    assert await direct.state(file.item) == "received"


async def test_a_file_with_the_number_of_an_older_one_does_not_write_over_it(direct: Scene) -> None:
    folder = direct.folders.folder(direct.chat.ref)
    folder.mkdir(parents=True)
    (folder / "1.pdf").write_bytes(b"older")
    file = await direct.offer()
    assert await direct.state(file.item) == "offered"
    path = await direct.get(file)
    assert path.stat().st_size == 30_000
    assert (folder / "1-old.pdf").read_bytes() == b"older"


async def test_two_messages_with_the_same_file_number_are_two_downloads(direct: Scene) -> None:
    old = await direct.offer()
    direct.network.faults.chunk_seconds = 100.0
    waiting = Wanted(direct, old)
    await trio.sleep(1)
    direct.core(f"/_delete item {direct.chat.ref} {old.item} internal")
    await waiting.over.wait()
    assert waiting.error.endswith("was deleted.")
    direct.network.faults.chunk_seconds = 0.1
    new = await direct.offer(40_000)
    assert new.file_id == old.file_id
    path = await direct.get(new)
    assert path.stat().st_size == 40_000


async def test_a_new_file_does_not_wait_for_an_older_one_with_its_number(direct: Scene) -> None:
    old = await direct.offer()
    direct.network.faults.chunk_seconds = 10_000.0
    waiting = Wanted(direct, old)
    await trio.sleep(1)
    direct.core(f"/_delete item {direct.chat.ref} {old.item} internal")
    direct.network.faults.chunk_seconds = 0.1
    new = await direct.offer(40_000)
    assert (new.file_id, waiting.over.is_set()) == (old.file_id, False)
    path = await direct.get(new)
    assert path.stat().st_size == 40_000
    await waiting.over.wait()
    assert waiting.error == f"The message of item {old.item} in {direct.chat.ref} was deleted."


async def test_events_of_an_older_file_with_the_same_number_are_not_taken_for_it(direct: Scene) -> None:
    file = await direct.offer()
    direct.network.faults.chunk_seconds = 50.0
    waiting = Wanted(direct, file)
    await trio.sleep(1)
    older = {"meta": {"itemId": file.item - 1}, "file": {"fileId": file.file_id}}
    direct.downloads.on_event({"type": "rcvFileSndCancelled", "chatItem": {"chatItem": older}})
    await waiting.over.wait()
    assert waiting.path is not None


async def test_a_download_that_is_wanted_again_at_once_is_not_hurt_by_the_end_of_the_failed_one(direct: Scene) -> None:
    file = await direct.offer()
    direct.network.faults.chunk_seconds = 100.0
    first = Wanted(direct, file)
    await trio.sleep(1)
    direct.network.faults.chunk_seconds = 3.0
    send = direct.link.send

    async def slow(command: str) -> dict[str, Any]:
        if command.startswith("/fcancel"):
            await trio.sleep(2)
        return await send(command)

    direct.link.send = slow  # type: ignore[method-assign]
    direct.nursery.start_soon(direct.downloads.cancel_chat, direct.chat)
    await trio.testing.wait_all_tasks_blocked()
    again = Wanted(direct, file)
    await again.over.wait()
    assert first.error == "Your owner deleted the files of this chat."
    assert again.error == ""
    assert again.path is not None
    assert again.path.exists()


async def test_a_link_in_the_place_of_the_chats_folder_is_not_followed(direct: Scene, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    folder = direct.folders.folder(direct.chat.ref)
    folder.parent.mkdir()
    folder.symlink_to(elsewhere)
    assert "cannot be kept on the disk" in await why(direct, await direct.offer())
    assert list(elsewhere.iterdir()) == []


# --- before the upload, and relays


async def test_relays_are_known_when_the_sender_has_uploaded_the_file(scene: Scene) -> None:
    scene.network.faults.upload_seconds = 900.0
    scene.send(scene.make())
    await trio.sleep(20)
    said: list[float] = []
    began = trio.current_time()
    file = await scene.newest()
    relays = await scene.downloads.relays(scene.chat, file, lambda: said.append(trio.current_time()))
    assert relays.unknown == ()
    assert relays.certain
    assert said == [pytest.approx(began, abs=5)]
    assert 800 < trio.current_time() - began < 950


async def test_a_wait_for_the_upload_ends_with_the_message(scene: Scene) -> None:
    scene.network.faults.upload_seconds = 900.0
    number = scene.send(scene.make())
    await trio.sleep(20)
    file = await scene.newest()
    began = trio.current_time()
    scene.nursery.start_soon(_later, 5, scene, f"/_delete item {scene.to_agent} {number} broadcast")
    with pytest.raises(Refused, match=rf"item {file.item} in {scene.chat.ref} was deleted"):
        await scene.downloads.relays(scene.chat, file)
    assert trio.current_time() - began < 10


async def test_a_wait_for_the_upload_ends_when_the_sender_cancels(scene: Scene) -> None:
    scene.network.faults.upload_seconds = 900.0
    scene.send(scene.make())
    await trio.sleep(20)
    file = await scene.newest()
    scene.nursery.start_soon(_later, 5, scene, "/fcancel 1")
    with pytest.raises(Refused, match="sender cancelled"):
        await scene.downloads.relays(scene.chat, file)


async def _later(seconds: float, scene: Scene, command: str) -> None:
    await trio.sleep(seconds)
    scene.bob.do(command)


async def test_unknown_relays_are_named_and_used_only_when_they_were_approved(scene: Scene) -> None:
    scene.bob.do(f"/xftp {OTHER_SERVER}")
    file = await scene.offer()
    relays = await scene.downloads.relays(scene.chat, file)
    assert relays.hosts == ("files.elsewhere.test",)
    assert "not known here and were not approved" in await why(scene, file)
    assert scene.left() == []
    assert await scene.state(file.item) == "offered"
    path = await scene.get(file, approved=relays)
    assert path.stat().st_size == 30_000
    assert [command.split()[2] == "approved_relays=on" for command in scene.commands("/freceive")] == [False, True]


async def test_a_known_relay_is_never_approved(direct: Scene) -> None:
    file = await direct.offer()
    direct.bob.do(f"/xftp {OTHER_SERVER}")
    other = await direct.offer(name="other.pdf")
    named = await direct.downloads.relays(direct.chat, other)
    await direct.get(file, approved=named)
    assert "approved_relays" not in direct.commands("/freceive")[0]


async def test_other_relays_than_those_of_the_card_are_not_approved(direct: Scene) -> None:
    direct.bob.do(f"/xftp {OTHER_SERVER}")
    first = await direct.offer()
    named = await direct.downloads.relays(direct.chat, first)
    direct.bob.do(f"/xftp {OTHER_SERVER.replace('elsewhere', 'third')}")
    second = await direct.offer(name="second.pdf")
    assert await why(direct, second, approved=named) == "The file servers changed after the request."
    assert direct.commands("/freceive") == []


async def test_relays_that_show_up_after_the_acceptance_end_the_download_also_where_the_core_is_silent(
    scene: Scene,
) -> None:
    scene.bob.do(f"/xftp {OTHER_SERVER}")
    scene.network.faults.upload_seconds = 300.0
    scene.send(scene.make())
    await trio.sleep(20)
    file = await scene.newest()
    began = trio.current_time()
    assert "not known here and were not approved" in await why(scene, file)
    assert trio.current_time() - began < 330
    assert scene.left() == []
    assert (await scene.downloads.relays(scene.chat, file)).hosts == ("files.elsewhere.test",)


async def test_relays_are_known_after_a_restart_from_the_cores_database(direct: Scene) -> None:
    direct.bob.do(f"/xftp {OTHER_SERVER}")
    file = await direct.offer()
    await direct.restart()
    assert (await direct.downloads.relays(direct.chat, file)).hosts == ("files.elsewhere.test",)
    assert len(direct.commands("/sql")) == 1


async def test_relays_that_no_description_shows_are_named_by_the_cores_refusal(direct: Scene) -> None:
    direct.bob.do(f"/xftp {OTHER_SERVER}")
    file = await direct.offer()
    await direct.restart()
    no_sql = {"type": "error", "errorType": {"type": "commandError", "message": "Failed reading: empty"}}
    direct.network.faults.fail("/sql", no_sql, core="agent", times=100)
    relays = await direct.downloads.relays(direct.chat, file)
    assert (relays.unknown, relays.certain) == ((), False)
    assert "not known here and were not approved" in await why(direct, file)
    relays = await direct.downloads.relays(direct.chat, file)
    assert relays.hosts == ("files.elsewhere.test",)
    assert (await direct.get(file, approved=relays)).stat().st_size == 30_000


async def test_the_servers_that_a_newer_core_names_are_taken_from_it(direct: Scene) -> None:
    file = await direct.offer()
    send = direct.link.send

    async def newer(command: str) -> dict[str, Any]:
        response = await send(command)
        if response["type"] == "chatItemInfo":
            response["chatItemInfo"]["fileXftpServers"] = [OTHER_SERVER]
        return response

    direct.link.send = newer  # type: ignore[method-assign]
    assert (await direct.downloads.relays(direct.chat, file)).hosts == ("files.elsewhere.test",)


@pytest.mark.parametrize("newer", [False, True])
@pytest.mark.parametrize("more", ['"redirect":', "redirect:\n  digest: abc=\n  size: 1", "  server:  xftp://k@h"])
async def test_a_description_that_could_hide_more_relays_is_approved_by_nobody(
    direct: Scene, more: str, newer: bool
) -> None:
    direct.network.faults.tells_servers = newer

    def worsen(event: dict[str, Any]) -> None:
        if event["type"] == "rcvFileDescrReady":
            event["rcvFileDescr"]["fileDescrText"] += f"{more}\n"

    direct.before = worsen
    known = await direct.offer()
    assert (await direct.downloads.relays(direct.chat, known)).certain is False
    direct.bob.do(f"/xftp {OTHER_SERVER}")
    unknown = await direct.offer(name="other.pdf")
    with pytest.raises(Refused, match="hides file servers"):
        await direct.downloads.relays(direct.chat, unknown)
    assert (await direct.get(known)).exists()


async def test_what_a_newer_core_names_is_all_only_when_the_description_can_be_read(direct: Scene) -> None:
    direct.network.faults.tells_servers = True
    known = await direct.offer()
    direct.bob.do(f"/xftp {OTHER_SERVER}")
    unknown = await direct.offer(name="other.pdf")
    await direct.restart()
    assert (await direct.downloads.relays(direct.chat, unknown)).hosts == ("files.elsewhere.test",)
    no_sql = {"type": "error", "errorType": {"type": "commandError", "message": "Failed reading: empty"}}
    direct.network.faults.fail("/sql", no_sql, core="agent", times=100)
    with pytest.raises(Refused, match="hides file servers"):
        await direct.downloads.relays(direct.chat, unknown)
    assert (await direct.downloads.relays(direct.chat, known)).certain is False
    assert (await direct.get(known)).exists()


async def test_a_file_that_is_here_already_has_no_relays_to_approve(direct: Scene) -> None:
    direct.bob.do(f"/xftp {OTHER_SERVER}")
    file = await direct.offer()
    relays = await direct.downloads.relays(direct.chat, file)
    await direct.get(file, "forwarded", approved=relays)
    assert (await direct.downloads.relays(direct.chat, file)).unknown == ()


async def test_a_wait_for_the_upload_goes_on_over_errors_but_does_not_begin_with_one(direct: Scene) -> None:
    direct.network.faults.upload_seconds = 200.0
    direct.send(direct.make())
    await trio.sleep(20)
    file = await direct.newest()
    busy = {"type": "errorStore", "storeError": {"type": "dBBusyError", "message": "busy"}}
    direct.network.faults.fail("/_get chat", busy)
    with pytest.raises(CoreError):
        await direct.downloads.relays(direct.chat, file)

    def fail() -> None:
        direct.network.faults.fail("/_get chat", busy)

    assert (await direct.downloads.relays(direct.chat, file, fail)).unknown == ()


async def test_the_key_of_a_file_is_never_logged(direct: Scene, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    direct.bob.do(f"/xftp {OTHER_SERVER}")
    file = await direct.offer()
    text = await direct.api.file_description(file.file_id)
    assert text is not None
    key = next(line for line in text.split("\n") if line.startswith("key: ")).removeprefix("key: ")
    relays = await direct.downloads.relays(direct.chat, file)
    await why(direct, file)
    await direct.get(file, approved=relays)
    assert key not in caplog.text
    assert key not in repr(vars(direct.downloads._describing))


# --- one download for two


async def test_a_forward_gets_its_file_elsewhere_and_the_agent_sees_it_offered(scene: Scene) -> None:
    file = await scene.offer()
    async with scene.downloads.fetch(scene.chat, file, "forwarded") as transfer:
        path = await transfer.done()
    assert path.relative_to(scene.folders.data).parts[0] == "forwarded"
    assert await scene.state(file.item) == "offered"
    received = await scene.get(file)
    assert received.relative_to(scene.folders.data).parts[0] == "files"
    assert await scene.state(file.item) == "received"
    assert scene.left() == [str(received.relative_to(scene.folders.data))]
    assert len(scene.commands("/freceive")) == 1


async def test_the_agents_download_shares_that_of_a_forward_and_waits_for_its_copy(direct: Scene) -> None:
    file = await direct.offer(6_000_000)
    async with direct.downloads.fetch(direct.chat, file, "forwarded") as transfer:
        agent = Wanted(direct, file)
        path = await transfer.done()
        await trio.sleep(300)
        assert agent.path is None
        assert path.exists()
    await agent.over.wait()
    assert agent.path is not None
    assert agent.path.parent == direct.folders.folder(direct.chat.ref)
    assert not path.exists()
    assert len(direct.commands("/freceive")) == 1


async def test_a_forward_shares_the_agents_download(direct: Scene) -> None:
    file = await direct.offer(6_000_000)
    agent = Wanted(direct, file)
    await trio.sleep(0.05)
    path = await direct.get(file, "forwarded")
    await agent.over.wait()
    assert agent.path == path
    assert len(direct.commands("/freceive")) == 1


async def test_a_failure_is_told_to_both(direct: Scene) -> None:
    file = await direct.offer(6_000_000)
    direct.network.faults.chunk_seconds = 50.0
    both = [Wanted(direct, file), Wanted(direct, file, "forwarded")]
    await trio.sleep(1)
    direct.network.files.remove_all()
    for one in both:
        await one.over.wait()
        assert "gone from the file server" in one.error
    assert direct.left() == []


# --- what ends a download


async def test_a_sender_who_cancels_ends_the_download_and_leaves_no_empty_file(scene: Scene) -> None:
    scene.network.faults.upload_seconds = 300.0
    scene.send(scene.make())
    await trio.sleep(20)
    file = await scene.newest()
    scene.nursery.start_soon(_later, 5, scene, "/fcancel 1")
    assert await why(scene, file) == "The sender cancelled the file."
    assert scene.left() == []
    assert await why(scene, file) == "The sender cancelled the file."


async def test_a_deleted_message_ends_its_download_and_leaves_no_empty_file(scene: Scene) -> None:
    scene.network.faults.upload_seconds = 300.0
    number = scene.send(scene.make())
    await trio.sleep(20)
    file = await scene.newest()
    scene.nursery.start_soon(_later, 5, scene, f"/_delete item {scene.to_agent} {number} broadcast")
    assert await why(scene, file) == f"The message of item {file.item} in {scene.chat.ref} was deleted."
    assert scene.left() == []


async def test_a_message_that_was_deleted_without_an_event_ends_its_download_within_a_minute(direct: Scene) -> None:
    file = await direct.offer()
    direct.network.faults.chunk_seconds = 10_000.0
    waiting = Wanted(direct, file)
    await trio.sleep(1)
    direct.core(f"/_delete item {direct.chat.ref} {file.item} internal")
    began = trio.current_time()
    await waiting.over.wait()
    assert waiting.error == f"The message of item {file.item} in {direct.chat.ref} was deleted."
    assert trio.current_time() - began <= 60


async def test_a_deleted_chat_ends_its_downloads(direct: Scene) -> None:
    file = await direct.offer()
    direct.network.faults.chunk_seconds = 10_000.0
    waiting = Wanted(direct, file)
    await trio.sleep(1)
    await direct.api.delete_chat(direct.chat.ref)
    await waiting.over.wait()
    assert waiting.error.endswith("was deleted.")


async def test_a_chat_that_was_left_ends_its_downloads_at_once(direct: Scene) -> None:
    file = await direct.offer()
    direct.network.faults.chunk_seconds = 10_000.0
    waiting = Wanted(direct, file)
    await trio.sleep(1)
    direct.downloads.chat_gone(direct.chat)
    await trio.testing.wait_all_tasks_blocked()
    assert waiting.error == f"The chat {direct.chat.base} is gone."
    assert direct.left() == []


async def test_half_an_hour_without_progress_fails_and_cancels(scene: Scene) -> None:
    scene.network.faults.chunk_seconds = 10 * 60.0
    scene.network.faults.upload_seconds = 1.0
    scene.send(scene.make(6_000_000))
    await trio.sleep(45 * 60)
    file = await scene.newest()
    began = trio.current_time()
    waiting = Wanted(scene, file)
    await trio.sleep(11 * 60)  # one of three chunks
    scene.network.files.stall("agent")
    await waiting.over.wait()
    assert waiting.error == "The download made no progress for 30 minutes and was cancelled."
    assert HALF_AN_HOUR <= trio.current_time() - began - 10 * 60 <= HALF_AN_HOUR + 60
    assert (await scene.file(file.item)).status == "rcvInvitation"
    assert scene.left() == []


async def test_a_slow_download_with_progress_goes_on(direct: Scene) -> None:
    direct.network.faults.chunk_seconds = 25 * 60.0
    direct.send(direct.make(6_000_000))
    await trio.sleep(90 * 60)
    began = trio.current_time()
    await direct.get(await direct.newest())
    assert trio.current_time() - began >= 75 * 60


async def test_a_server_that_is_down_for_minutes_only_delays(direct: Scene) -> None:
    file = await direct.offer()
    direct.network.files.down()
    waiting = Wanted(direct, file)
    await trio.sleep(20 * 60)
    direct.network.files.up()
    await waiting.over.wait()
    assert waiting.path is not None


async def test_a_file_that_is_gone_from_the_server_says_so_and_cannot_be_received_again(direct: Scene) -> None:
    file = await direct.offer()
    direct.network.files.remove_all()
    assert "gone from the file server" in await why(direct, file)
    assert "gone from the file server" in await why(direct, file)
    assert await direct.state(file.item) == "failed"
    assert direct.left() == []


async def test_a_disk_that_gets_full_ends_the_download_and_no_part_stays(scene: Scene) -> None:
    file = await scene.offer(6_000_000)
    scene.network.faults.download_errors["agent"] = errno.ENOSPC
    assert await why(scene, file) == "The file could not be received: the disk is full."
    assert scene.left() == []
    other = await scene.offer(name="other.pdf")
    assert (await scene.get(other)).stat().st_size == 30_000


async def test_a_file_that_the_disk_has_no_room_for_is_not_begun(direct: Scene) -> None:
    direct.room = 100 << 20
    file = await direct.offer(20_000_000)
    assert await why(direct, file) == "The disk has no room for a file of 19.1 MB."
    assert direct.commands("/freceive") == []


async def test_a_target_that_the_core_cannot_make_is_a_clear_refusal(direct: Scene) -> None:
    file = await direct.offer()
    for tag in ("fileWrite", "fileAlreadyExists"):
        error = {"type": "error", "errorType": {"type": tag, "filePath": "/x", "message": "resource exhausted"}}
        direct.network.faults.fail("/freceive", error)
        assert "file" in await why(direct, file)
    assert (await direct.get(file)).exists()


async def test_a_file_that_cannot_take_the_place_of_its_target_fails_and_is_cancelled(direct: Scene) -> None:
    direct.network.faults.download_errors["agent"] = errno.EXDEV
    file = await direct.offer()
    began = trio.current_time()
    assert await why(direct, file) == "The core could not write the file to the disk."
    assert trio.current_time() - began < 60
    assert direct.left() == []


async def test_a_sender_that_lies_about_the_size_is_refused(scene: Scene) -> None:
    scene.network.faults.announced["bob"] = 10
    file = await scene.offer(12 << 20)
    assert file.size == 10
    assert await why(scene, file) == "The file is larger than its sender said; it is not received."
    assert scene.left() == []


async def test_bytes_beyond_the_announced_size_end_the_download(direct: Scene) -> None:
    file = await direct.offer()
    direct.network.faults.chunk_seconds = 100.0
    waiting = Wanted(direct, file)
    await trio.sleep(1)
    huge = {"type": "rcvFileProgressXFTP", "receivedSize": 1, "totalSize": 30_000 + (11 << 20)}
    direct.downloads.on_event({**huge, "rcvFileTransfer": {"fileId": file.file_id}})
    await waiting.over.wait()
    assert waiting.error == "The file is larger than its sender said; the download was cancelled."
    assert (await direct.file(file.item)).status == "rcvInvitation"


async def test_a_file_that_was_complete_before_it_could_be_cancelled_does_not_stay(direct: Scene) -> None:
    file = await direct.offer()

    def hasten(event: dict[str, Any]) -> None:
        if event["type"] == "rcvFileProgressXFTP":
            event["totalSize"] = 30_000 + (11 << 20)

    direct.before = hasten
    assert "the download was cancelled" in await why(direct, file)
    assert len(direct.commands("/fcancel")) == 1
    assert direct.left() == []


async def test_a_file_that_came_larger_than_announced_is_deleted(direct: Scene) -> None:
    file = await direct.offer()

    def grow(event: dict[str, Any]) -> None:
        if event["type"] == "rcvFileComplete":
            path = Path(event["chatItem"]["chatItem"]["file"]["fileSource"]["filePath"])
            with path.open("ab") as grown:
                grown.truncate(30_000 + (10 << 20) + 1)

    direct.before = grow
    assert "larger than its sender said" in await why(direct, file)
    assert direct.left() == []


async def test_a_received_file_that_its_reader_changed_stays(direct: Scene) -> None:
    file = await direct.offer()
    path = await direct.get(file)
    path.write_bytes(bytes(20 << 20))
    await trio.testing.wait_all_tasks_blocked()
    assert await direct.get(file) == path
    assert path.stat().st_size == 20 << 20


async def test_a_received_file_that_is_missing_from_its_folder_is_failed(direct: Scene) -> None:
    file = await direct.offer()
    (await direct.get(file)).unlink()
    await trio.testing.wait_all_tasks_blocked()
    assert await direct.state(file.item) == "failed"
    assert await why(direct, file) == "The file was received, but it is not in its folder any more."


async def test_an_error_of_a_minutely_look_is_tried_again(direct: Scene) -> None:
    file = await direct.offer()
    direct.network.faults.chunk_seconds = 200.0
    waiting = Wanted(direct, file)
    await trio.sleep(1)
    busy = {"type": "errorStore", "storeError": {"type": "dBBusyError", "message": "busy"}}
    direct.network.faults.fail("/_get chat", busy, times=2)
    await waiting.over.wait()
    assert waiting.path is not None


# --- a link that is lost


async def test_an_acceptance_that_was_lost_but_done_goes_on(direct: Scene) -> None:
    file = await direct.offer(6_000_000)
    direct.network.faults.drop("agent", "/freceive", done=True)
    path = await direct.get(file)
    assert path.stat().st_size == 6_000_000
    assert len(direct.commands("/freceive")) == 1


async def test_an_acceptance_that_was_lost_undone_fails_and_is_not_repeated(direct: Scene) -> None:
    file = await direct.offer()
    direct.network.faults.drop("agent", "/freceive")
    assert "ask again" in await why(direct, file)
    assert len(direct.commands("/freceive")) == 1
    assert (await direct.get(file)).exists()


async def test_a_download_survives_a_link_that_comes_back(direct: Scene) -> None:
    file = await direct.offer(6_000_000)
    direct.network.faults.chunk_seconds = 30.0
    waiting = Wanted(direct, file)
    await trio.sleep(1)
    direct.network.faults.drop("agent", "/user")
    with suppress(CoreError):
        await direct.api.active_user()
    await waiting.over.wait()
    assert waiting.path is not None


async def test_a_core_that_stays_away_fails_the_download_and_is_told_to_end_it_when_it_is_back(direct: Scene) -> None:
    file = await direct.offer()
    direct.network.faults.chunk_seconds = 10_000.0
    waiting = Wanted(direct, file)
    await trio.sleep(1)
    send = direct.link.send

    async def down(command: str) -> dict[str, Any]:
        raise LinkLost("link/down", "down")

    direct.link.send = down  # type: ignore[method-assign]
    began = trio.current_time()
    await waiting.over.wait()
    assert "link to the SimpleX core was lost" in waiting.error
    assert trio.current_time() - began <= 120
    assert direct.left() == []
    direct.link.send = send  # type: ignore[method-assign]
    direct.downloads.on_event({"type": "linkUp"})
    await trio.sleep(1)
    assert (await direct.file(file.item)).status == "rcvInvitation"


# --- after a restart, and without a request


async def test_a_download_that_the_core_went_on_with_is_joined(scene: Scene) -> None:
    file = await scene.offer(6_000_000)
    scene.network.faults.chunk_seconds = 20.0
    Wanted(scene, file)
    await trio.sleep(1)
    await scene.restart()
    path = await scene.get(file)
    assert path.read_bytes() == (scene.folder / "bob" / "report.pdf").read_bytes()
    assert len(scene.commands("/freceive")) == 1


async def test_a_stopped_server_tells_those_who_wait_and_leaves_the_core_at_work(direct: Scene) -> None:
    file = await direct.offer(6_000_000)
    waiting = Wanted(direct, file)
    await trio.sleep(0.05)
    await direct.restart()
    await waiting.over.wait()
    assert waiting.error == "The server stopped while the file was received."
    await trio.sleep(5)
    assert await direct.state(file.item) == "received"
    path = await direct.get(file)
    assert path.stat().st_mode & 0o777 == 0o600
    assert len(direct.commands("/freceive")) == 1


async def test_nothing_is_fetched_before_the_start_and_after_the_end(direct: Scene) -> None:
    file = await direct.offer()
    direct._running.cancel()
    await trio.testing.wait_all_tasks_blocked()
    assert "stopping" in await why(direct, file)


async def test_a_file_that_the_core_received_by_itself_is_moved_and_shown_as_offered(scene: Scene) -> None:
    file = await scene.offer(5_000, "voice.m4a")
    alone = scene.folders.data / "tmp" / "voice.m4a"
    scene.core(f"/freceive {file.file_id} {alone}")
    await trio.sleep(5)
    assert not alone.exists()
    folder = scene.folders.folder(scene.chat.ref)
    assert [path.name for path in folder.iterdir()] == [f"{file.file_id}.held.m4a"]
    assert scene.downloads.look(scene.chat, await scene.file(file.item)) == ("offered", None)
    path = await scene.get(file)
    assert path == folder / f"{file.file_id}.m4a"
    assert path.stat().st_size == 5_000
    assert await scene.state(file.item) == "received"
    assert len(scene.left()) == 1


async def test_a_file_that_came_by_itself_while_nobody_listened_is_found_only_in_full(direct: Scene) -> None:
    direct._running.cancel()
    file = await direct.offer(5_000, "voice.m4a")
    alone = direct.folders.data / "tmp" / "voice.m4a"
    direct.core(f"/freceive {file.file_id} {alone}")
    await trio.sleep(5)
    await direct.restart()
    assert await direct.state(file.item) == "offered"
    whole = alone.read_bytes()
    alone.write_bytes(whole[:100])
    assert await direct.state(file.item) == "failed"
    assert "not in its folder" in await why(direct, file)
    assert alone.exists()
    alone.write_bytes(whole)
    assert (await direct.get(file)).read_bytes() == whole


async def test_a_file_that_the_core_receives_by_itself_is_joined_by_a_download(direct: Scene) -> None:
    file = await direct.offer(5_000, "voice.m4a")
    direct.network.faults.chunk_seconds = 20.0
    alone = direct.folders.data / "tmp" / "voice.m4a"
    direct.core(f"/freceive {file.file_id} {alone}")
    path = await direct.get(file)
    assert path.stat().st_size == 5_000
    assert not alone.exists()


async def test_what_another_profile_of_the_core_gets_is_none_of_the_agents_business(direct: Scene) -> None:
    file = await direct.offer(5_000, "voice.m4a")
    alone = direct.folders.data / "tmp" / "voice.m4a"
    direct._running.cancel()
    direct.core(f"/freceive {file.file_id} {alone}")
    await trio.sleep(5)
    complete = next(event for event in direct.seen if event["type"] == "rcvFileComplete")
    await direct.restart()
    direct.downloads.on_event({**complete, "user": {**complete["user"], "userId": 2}})
    await trio.sleep(1)
    assert alone.exists()


@pytest.mark.parametrize("end", ["/fcancel 1", "/_delete item {chat} {number} broadcast"])
async def test_a_resumed_download_that_ends_leaves_no_empty_file(scene: Scene, end: str) -> None:
    scene.network.faults.upload_seconds = 300.0
    number = scene.send(scene.make())
    await trio.sleep(20)
    file = await scene.newest()
    Wanted(scene, file)
    await trio.sleep(1)
    assert len(scene.left()) == 1
    await scene.restart()
    scene.bob.do(end.format(chat=scene.to_agent, number=number))
    await trio.sleep(5)
    assert scene.left() == []


async def test_a_resumed_download_that_fails_is_only_the_cores_business(direct: Scene) -> None:
    file = await direct.offer(6_000_000)
    direct.network.faults.chunk_seconds = 20.0
    Wanted(direct, file)
    await trio.sleep(1)
    await direct.restart()
    direct.network.files.remove_all()
    await trio.sleep(60)
    assert await direct.state(file.item) == "failed"
    assert direct.left() == []


async def test_a_path_of_a_core_with_an_own_folder_for_files_is_not_looked_for_here(
    direct: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = direct.folder / "own"
    own.mkdir()
    monkeypatch.chdir(own)
    direct.core(f"/_files_folder {own}")
    file = await direct.offer(5_000, "voice.m4a")
    direct.network.faults.chunk_seconds = 90.0
    direct.core(f"/freceive {file.file_id}")
    assert "not on this computer" in await why(direct, file)
    assert (own / "voice.m4a").exists()
    assert await direct.state(file.item) == "failed"
    assert "not in its folder" in await why(direct, file)


async def test_a_download_that_is_wanted_again_is_not_cancelled_late(direct: Scene) -> None:
    file = await direct.offer()
    direct.network.faults.chunk_seconds = 10_000.0
    first = Wanted(direct, file)
    await trio.sleep(1)
    send = direct.link.send

    async def down(command: str) -> dict[str, Any]:
        raise LinkLost("link/down", "down")

    direct.link.send = down  # type: ignore[method-assign]
    await first.over.wait()
    direct.link.send = send  # type: ignore[method-assign]
    again = Wanted(direct, file)
    await trio.sleep(1)
    direct.downloads.on_event({"type": "linkUp"})
    await trio.sleep(5)
    assert not again.over.is_set()
    assert (await direct.file(file.item)).status == "rcvTransfer"


async def test_what_owners_send_to_the_control_chat_stays_where_the_core_put_it(direct: Scene) -> None:
    def mark(event: dict[str, Any]) -> None:
        if event["type"] == "rcvFileComplete":
            event["chatItem"]["chatInfo"]["contact"]["customData"] = {CONTROL_KEY: {"control": True}}

    direct.before = mark
    file = await direct.offer(5_000, "voice.m4a")
    alone = direct.folders.data / "tmp" / "voice.m4a"
    direct.core(f"/freceive {file.file_id} {alone}")
    await trio.sleep(5)
    assert alone.exists()
    assert direct.left() == []


async def test_a_file_whose_number_was_given_again_is_not_cancelled_late(direct: Scene) -> None:
    old = await direct.offer()
    direct.network.faults.chunk_seconds = 10_000.0
    waiting = Wanted(direct, old)
    await trio.sleep(1)
    send = direct.link.send

    async def down(command: str) -> dict[str, Any]:
        raise LinkLost("link/down", "down")

    direct.link.send = down  # type: ignore[method-assign]
    await waiting.over.wait()
    direct.link.send = send  # type: ignore[method-assign]
    direct.core(f"/_delete item {direct.chat.ref} {old.item} internal")
    direct.network.faults.chunk_seconds = 0.1
    new = await direct.offer()
    assert new.file_id == old.file_id
    direct.network.faults.chunk_seconds = 10_000.0
    alone = direct.folders.data / "tmp" / "x"
    direct.core(f"/freceive {new.file_id} {alone}")
    direct.sent.clear()
    direct.downloads.on_event({"type": "linkUp"})
    await trio.sleep(5)
    assert direct.commands("/fcancel") == []
    assert (await direct.file(new.item)).status == "rcvTransfer"


async def test_a_large_file_takes_no_memory(direct: Scene) -> None:
    direct.network.faults.chunk_seconds = 0.001
    path = direct.make(1, "big.bin")
    with path.open("r+b") as file:
        file.truncate(40 << 20)
    direct.send(path)
    await trio.sleep(20)
    file_there = await direct.newest()
    await direct.downloads.relays(direct.chat, file_there)
    tracemalloc.start()
    try:
        received = await direct.get(file_there)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
    assert received.stat().st_size == 40 << 20


# --- `/delete CHAT files`


async def test_cancelling_a_chat_ends_its_downloads_in_the_core_too(scene: Scene) -> None:
    first, second = await scene.offer(), await scene.offer(name="second.pdf")
    scene.network.faults.chunk_seconds = 10_000.0
    waiting = Wanted(scene, first)
    await trio.sleep(1)
    await scene.restart()
    await waiting.over.wait()
    waiting = Wanted(scene, second)
    await trio.sleep(1)
    assert await scene.downloads.cancel_chat(scene.chat) == 2
    await waiting.over.wait()
    assert waiting.error == "Your owner deleted the files of this chat."
    for file in (first, second):
        assert (await scene.file(file.item)).status == "rcvInvitation"
    assert scene.left() == []


async def test_resumed_downloads_are_found_on_every_page(direct: Scene) -> None:
    file = await direct.offer()
    direct.network.faults.chunk_seconds = 10_000.0
    Wanted(direct, file)
    await trio.sleep(1)
    await direct.restart()
    for number in range(250):
        direct.core(f'/_send {direct.chat.ref} json [{{"msgContent":{{"type":"text","text":"{number}"}}}}]')
    assert await direct.downloads.cancel_chat(direct.chat) == 1
    assert (await direct.file(file.item)).status == "rcvInvitation"


async def test_cancelling_a_chat_that_was_left_finds_nothing(direct: Scene) -> None:
    await direct.api.delete_chat(direct.chat.ref)
    assert await direct.downloads.cancel_chat(direct.chat) == 0


async def test_a_defect_in_a_download_fails_it_alone(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    file = await scene.offer()
    with monkeypatch.context() as patch:

        async def broken(*_: Any) -> None:
            raise IndexError("x")

        patch.setattr(scene.downloads._carrier, "_wait", broken)
        assert "Internal error" in await why(scene, file)
        patch.setattr(scene.downloads._carrier, "carry", broken)
        assert "Internal error" in await why(scene, file)
    assert scene.left() == []


async def test_a_defect_in_taking_in_a_file_ends_nothing(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: Any) -> None:
        raise IndexError("x")

    monkeypatch.setattr(scene.downloads._carrier, "hold", broken)
    file = await scene.offer()
    await scene.api.receive_file(file.file_id, str(scene.folder / "elsewhere.pdf"), False)
    await trio.sleep(60)
    assert "IndexError" in caplog.text
    monkeypatch.undo()
    assert (await scene.get(await scene.offer(name="b.pdf"))).exists()
