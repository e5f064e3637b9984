"""Files in the simulated network: sent, described, received with their real bytes, and cancelled."""

from __future__ import annotations

import errno
import filecmp
import gc
import json
import os
import stat
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest

from simplexmcp.sandbox import persistence
from simplexmcp.sandbox.files import received_name
from simplexmcp.sandbox.relay import DEFAULT_SERVER, OTHER_SERVER
from tests.sandbox.world import Person, World

if TYPE_CHECKING:
    from pathlib import Path

JsonObject = dict[str, Any]


class Files:
    """Two contacts who also share a group of Alice's; `ref` is a chat as each of them calls it."""

    def __init__(self, folder: Path, *, group: bool) -> None:
        self.folder = folder
        self.world = World()
        self.alice, self.bob = self.world.person("Alice"), self.world.person("Bob")
        for person in (self.alice, self.bob):
            person.do(f"/_temp_folder {folder}/tmp")
        to_bob, to_alice = self.world.connect(self.alice, self.bob)
        self.world.group(self.alice, "Trail", self.bob)
        self.to_bob, self.to_alice = ("#1", "#1") if group else (f"@{to_bob}", f"@{to_alice}")
        self.settle()
        self.alice.forget()
        self.bob.forget()

    def settle(self) -> None:
        self.world.settle()

    def make(self, size: int = 30_000, name: str = "map.bin") -> Path:
        path = self.folder / name
        path.write_bytes(bytes(n % 251 for n in range(size)))
        return path

    def send(self, path: Path, text: str = "a map", *, by: Person | None = None, **content: Any) -> JsonObject:
        """Bob sends a file; his new item."""
        message = {"msgContent": {"type": "file", "text": text, **content}, "fileSource": {"filePath": str(path)}}
        who = by or self.bob
        to = self.to_alice if who is self.bob else self.to_bob
        item: JsonObject = who.do(f"/_send {to} json", [message])["chatItems"][0]["chatItem"]
        return item

    def file(self, who: Person | None = None) -> JsonObject:
        """The file of the newest message that somebody has (by default Alice)."""
        who = who or self.alice
        items = who.chat(self.to_alice if who is self.bob else self.to_bob)["chatItems"]
        file: JsonObject = [item["file"] for item in items if "file" in item][-1]
        return file

    def state(self, who: Person | None = None) -> str:
        kind: str = self.file(who)["fileStatus"]["type"]
        return kind

    def tags(self, who: Person, *, without_progress: bool = True) -> list[str]:
        """The events about files, without those of progress."""
        return [tag for tag in who.tags() if "File" in tag and not (without_progress and "Progress" in tag)]


@pytest.fixture(params=[False, True], ids=["direct", "group"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Files:
    return Files(tmp_path, group=request.param)


@pytest.fixture
def direct(tmp_path: Path) -> Files:
    return Files(tmp_path, group=False)


def test_a_file_arrives_with_its_bytes_at_the_path_that_was_asked_for(files: Files) -> None:
    path, target = files.make(6_000_000), files.folder / "received.bin"
    sent = files.send(path)
    assert sent["file"]["fileStatus"] == {"type": "sndStored"}
    files.settle()
    assert files.tags(files.bob) == ["sndFileCompleteXFTP"]
    assert files.tags(files.alice) == ["rcvFileDescrReady"]
    assert files.state() == "rcvInvitation"
    assert "fileSource" not in files.file()
    response = files.alice.do(f"/freceive 1 {target}")
    assert response["type"] == "rcvFileAccepted"
    assert response["chatItem"]["chatItem"]["file"]["fileStatus"] == {"type": "rcvAccepted"}
    assert files.alice.tags()[-1] == "rcvFileStart"
    assert target.read_bytes() == b""
    files.settle()
    assert target.read_bytes() == path.read_bytes()
    assert files.file()["fileStatus"] == {"type": "rcvComplete"}
    assert [e["receivedSize"] for e in files.alice.got("rcvFileProgressXFTP")] == [4194304, 5242880, 6291456]
    assert list((files.folder / "tmp").iterdir()) == []


def test_the_description_names_the_server_and_the_chunks(direct: Files) -> None:
    direct.send(direct.make(6_000_000))
    direct.settle()
    text = direct.alice.got("rcvFileDescrReady")[0]["rcvFileDescr"]["fileDescrText"]
    assert f"  server: {DEFAULT_SERVER}\n" in text
    assert text.startswith("chunkSize: 4mb\ndigest: ")
    assert text.endswith("size: 6mb\n")
    assert len([line for line in text.splitlines() if line.startswith("  - ")]) == 3
    query = (
        "/sql chat SELECT d.file_descr_complete, d.file_descr_text FROM rcv_files r "
        "JOIN xftp_file_descriptions d ON d.file_descr_id = r.file_descr_id WHERE r.file_id = 1"
    )
    assert direct.alice.do(query)["rows"][1] == f"1|{text}"


def test_a_file_accepted_before_its_description_begins_by_itself(files: Files) -> None:
    files.world.network.faults.upload_seconds = 300.0
    path, target = files.make(), files.folder / "received.bin"
    files.send(path)
    while not files.alice.got("newChatItems"):
        files.world.now += files.world.network.deliver() or 0.0
    files.alice.do(f"/freceive 1 {target}")
    assert files.alice.refused(f"/freceive 1 {target}x")["type"] == "fileAlreadyReceiving"
    files.settle()
    assert files.tags(files.alice) == ["rcvFileDescrReady", "rcvFileStart", "rcvFileComplete"]
    assert target.read_bytes() == path.read_bytes()


def test_unknown_servers_are_refused_until_they_are_approved(files: Files) -> None:
    files.bob.do(f"/xftp {OTHER_SERVER}")
    path, target = files.make(), files.folder / "received.bin"
    files.send(path)
    files.settle()
    for option in ("", " approved_relays=off"):
        refused = files.alice.refused(f"/freceive 1{option} {target}")
        assert refused == {"type": "fileNotApproved", "fileId": 1, "unknownServers": [OTHER_SERVER]}
    assert not target.exists()
    files.settle()
    shown = files.alice.got("chatItemUpdated")[-1]["chatItem"]["chatItem"]["file"]
    assert shown["fileStatus"] == {"type": "rcvInvitation"}
    assert shown["fileSource"] == {"filePath": str(target)}
    files.alice.do(f"/freceive 1 approved_relays=on {target}")
    files.settle()
    assert target.read_bytes() == path.read_bytes()


def test_unknown_servers_that_show_up_later_are_silent_in_a_group(files: Files) -> None:
    files.bob.do(f"/xftp {OTHER_SERVER}")
    files.world.network.faults.upload_seconds = 60.0
    target = files.folder / "received.bin"
    files.send(files.make())
    while not files.alice.got("newChatItems"):
        files.world.now += files.world.network.deliver() or 0.0
    files.alice.do(f"/freceive 1 {target}")
    files.settle()
    assert files.alice.tags()[-1] == ("chatItemUpdated" if files.to_bob == "#1" else "chatError")
    assert files.state() == "rcvInvitation"
    assert not target.exists()


def test_a_download_that_was_cancelled_can_be_done_again(files: Files) -> None:
    path, target = files.make(6_000_000), files.folder / "received.bin"
    files.send(path)
    files.settle()
    files.alice.do(f"/freceive 1 {target}")
    response = files.alice.do("/fcancel 1")
    assert response["type"] == "rcvFileCancelled"
    assert not target.exists()
    files.settle()
    assert files.state() == "rcvInvitation"
    files.alice.do(f"/freceive 1 {target}")
    files.settle()
    assert target.read_bytes() == path.read_bytes()
    assert files.alice.refused("/fcancel 1")["message"] == "file transfer is complete"


def test_a_sender_who_cancels_ends_the_download(files: Files) -> None:
    target = files.folder / "received.bin"
    files.send(files.make(6_000_000))
    files.settle()
    files.alice.do(f"/freceive 1 {target}")
    assert files.bob.do("/fcancel 1")["type"] == "sndFileCancelled"
    files.settle()
    assert files.tags(files.alice)[-1] == "rcvFileSndCancelled"
    assert files.state() == "rcvCancelled"
    assert files.state(files.bob) == "sndCancelled"
    assert files.alice.refused(f"/freceive 1 {target}2")["type"] == "fileCancelled"
    for who in (files.alice, files.bob):
        assert who.refused("/fcancel 1")["message"] == "file already cancelled"


def test_a_stalled_upload_goes_on_when_it_is_let(files: Files) -> None:
    files.world.network.files.stall("bob")
    files.send(files.make())
    files.settle()
    assert files.tags(files.alice) == []
    files.world.network.files.resume("bob")
    files.settle()
    assert files.tags(files.alice) == ["rcvFileDescrReady"]


def test_json_of_events_can_be_written_out(files: Files) -> None:
    files.send(files.make())
    files.settle()
    assert json.loads(json.dumps(files.alice.events)) == files.alice.events


# Targets


def test_a_target_that_cannot_be_is_refused_and_the_file_stays_offered(direct: Files) -> None:
    direct.send(direct.make())
    direct.settle()
    existing = direct.folder / "there"
    existing.touch()
    assert direct.alice.refused(f"/freceive 1 {existing}") == {"type": "fileAlreadyExists", "filePath": str(existing)}
    nowhere = f"{direct.folder}/none/x"
    refused = direct.alice.refused(f"/freceive 1 {nowhere}")
    reason = "does not exist (No such file or directory)"
    assert refused == {"type": "fileWrite", "filePath": nowhere, "message": f"{nowhere}: withBinaryFile: {reason}"}
    assert direct.state() == "rcvInvitation"


def test_a_folder_as_the_target_gets_a_name_that_is_free(direct: Files) -> None:
    folder = direct.folder / "received"
    folder.mkdir()
    for number in (1, 2):
        direct.send(direct.make(name="a.tar.gz"))
        direct.settle()
        direct.alice.do(f"/freceive {number} {folder}")
        direct.settle()
    assert sorted(path.name for path in folder.iterdir()) == ["a.tar.gz", "a_1.tar.gz"]


def test_without_a_target_the_file_comes_into_the_folder_for_files_or_the_temporary_one(direct: Files) -> None:
    direct.send(direct.make(name="one.bin"))
    direct.send(direct.make(name="two.bin"))
    direct.settle()
    direct.alice.do("/freceive 1")
    direct.settle()
    assert direct.alice.got("rcvFileComplete")[-1]["chatItem"]["chatItem"]["file"]["fileSource"] == {
        "filePath": f"{direct.folder}/tmp/one.bin"
    }
    direct.alice.do(f"/_files_folder {direct.folder}/kept")
    direct.alice.do("/freceive 2")
    direct.settle()
    assert direct.file()["fileSource"] == {"filePath": "two.bin"}
    assert (direct.folder / "kept" / "two.bin").stat().st_size == 30_000


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_the_mode_of_a_received_file_is_that_of_the_umask(direct: Files, umask: int, mode: int) -> None:
    target = direct.folder / "received"
    direct.send(direct.make())
    direct.settle()
    before = os.umask(umask)
    try:
        direct.alice.do(f"/freceive 1 {target}")
        assert stat.S_IMODE(target.stat().st_mode) == mode
        direct.settle()
    finally:
        os.umask(before)
    assert stat.S_IMODE(target.stat().st_mode) == mode


# What is refused, and what goes wrong


@pytest.mark.parametrize("path", ["", "none.bin", "~/x", ".", "/dev/null", "x" * 5000, "a\0b"])
def test_what_is_no_file_is_not_sent(direct: Files, path: str) -> None:
    message = {"msgContent": {"type": "file", "text": ""}, "fileSource": {"filePath": path}}
    assert direct.bob.refused(f"/_send {direct.to_alice} json", [message]) == {"type": "fileNotFound", "message": path}
    assert direct.bob.core.state.files == {}


def test_more_than_a_gibibyte_is_not_sent(direct: Files) -> None:
    path = direct.folder / "huge.bin"
    with path.open("wb") as file:
        file.truncate((1 << 30) + 1)
    message = {"msgContent": {"type": "file", "text": ""}, "fileSource": {"filePath": str(path)}}
    refused = direct.bob.refused(f"/_send {direct.to_alice} json", [message])
    assert refused == {"type": "fileSize", "filePath": str(path)}


def test_an_empty_file_is_sent_and_dropped_by_the_receiver_with_its_message(files: Files) -> None:
    files.send(files.make(0), "empty")
    files.settle()
    assert files.state(files.bob) == "sndComplete"
    assert "empty" not in files.alice.texts(files.to_bob)
    errors = [event["chatError"] for event in files.alice.got("chatError")]
    assert [next(iter(v for v in e.values() if isinstance(v, dict)))["type"] for e in errors] == [
        "fileSize",
        "fileIdNotFoundBySharedMsgId",
    ]


def test_a_message_that_is_too_large_leaves_an_upload_of_its_own(files: Files) -> None:
    content = {"type": "file", "text": "x" * 15_500}
    message = {"msgContent": content, "fileSource": {"filePath": str(files.make())}}
    to = files.to_alice
    assert files.bob.refused(f"/_send {to} json", [message]) == {"type": "largeMsg"}
    files.settle()
    ended = files.bob.got("sndStandaloneFileComplete")
    assert len(ended[0]["rcvURIs"]) == 4
    assert files.alice.events == []
    assert files.send(files.make())["file"]["fileId"] == 2


def test_a_failed_upload_is_told_to_the_sender_only(files: Files) -> None:
    files.world.network.faults.upload_errors["bob"] = "no room"
    files.send(files.make())
    files.settle()
    assert files.tags(files.bob) == ["sndFileError"]
    assert files.file(files.bob)["fileStatus"]["type"] == "sndError"
    assert files.state() == "rcvInvitation"


def test_a_source_that_is_removed_during_the_upload_ends_it(direct: Files) -> None:
    path = direct.make(6_000_000)
    direct.send(path)
    path.unlink()
    direct.settle()
    assert direct.tags(direct.bob) == ["sndFileError"]


def test_a_file_that_is_gone_from_the_server_fails_for_good(files: Files) -> None:
    target = files.folder / "received"
    files.send(files.make())
    files.settle()
    files.world.network.files.remove_all()
    files.alice.do(f"/freceive 1 {target}")
    files.settle()
    event = files.alice.got("rcvFileError")[0]
    assert event["agentError"] == {"type": "XFTP", "serverAddress": DEFAULT_SERVER, "xftpErr": {"type": "AUTH"}}
    assert files.file()["fileStatus"] == {"type": "rcvError", "rcvFileError": {"type": "auth"}}
    assert not target.exists()
    assert files.alice.refused(f"/freceive 1 {target}")["type"] == "fileAlreadyReceiving"
    assert files.alice.refused("/fcancel 1")["message"] == "file already cancelled"


def test_the_servers_keep_a_file_for_two_days(direct: Files) -> None:
    direct.send(direct.make())
    direct.settle()
    direct.world.now += 48 * 3600 + 60
    direct.alice.do(f"/freceive 1 {direct.folder}/received")
    direct.settle()
    assert direct.tags(direct.alice)[-1] == "rcvFileError"


def test_old_files_make_room_on_the_servers(direct: Files) -> None:
    for _ in range(2):
        direct.send(direct.make())
        direct.settle()
        direct.world.now += 49 * 3600
    folder = direct.world.network.files.place("x").parent
    assert len(list(folder.iterdir())) == 1


def test_a_server_that_is_down_is_waited_for_without_a_word(files: Files) -> None:
    path, target = files.make(), files.folder / "received"
    files.send(path)
    files.settle()
    files.world.network.files.down()
    files.alice.do(f"/freceive 1 {target}")
    files.settle()
    assert files.file()["fileStatus"] == {"type": "rcvTransfer", "rcvProgress": 0, "rcvTotal": 1}
    assert target.read_bytes() == b""
    files.world.network.files.up()
    files.settle()
    assert target.read_bytes() == path.read_bytes()


def test_a_full_disk_fails_the_download_and_leaves_nothing(direct: Files) -> None:
    direct.send(direct.make(6_000_000))
    direct.settle()
    direct.world.network.faults.download_errors["alice"] = errno.ENOSPC
    direct.alice.do(f"/freceive 1 {direct.folder}/received")
    direct.settle()
    error = direct.alice.got("rcvFileError")[0]["agentError"]
    assert error["type"] == "INTERNAL"
    assert "No space left on device" in error["internalErr"]
    assert sorted(path.name for path in direct.folder.rglob("*")) == ["map.bin", "tmp"]


def test_a_target_on_another_file_system_stays_empty_for_ever(direct: Files) -> None:
    target = direct.folder / "received"
    direct.send(direct.make())
    direct.settle()
    direct.world.network.faults.download_errors["alice"] = errno.EXDEV
    direct.alice.do(f"/freceive 1 {target}")
    direct.settle()
    error = direct.alice.got("chatError")[-1]["chatError"]["errorType"]
    assert error["type"] == "exception"
    assert "Invalid cross-device link" in error["message"]
    assert direct.state() == "rcvTransfer"
    assert target.read_bytes() == b""
    direct.alice.do("/fcancel 1")
    assert direct.state() == "rcvInvitation"
    assert not target.exists()


def test_a_description_of_more_than_was_announced_is_refused(direct: Files) -> None:
    direct.world.network.faults.announced["bob"] = 10
    direct.send(direct.make(12_000_000))
    direct.settle()
    assert direct.file()["fileSize"] == 10
    assert direct.alice.refused(f"/freceive 1 {direct.folder}/received")["type"] == "fileRcvChunk"
    assert not (direct.folder / "received").exists()


@pytest.mark.parametrize("name", ["a/b", "../../etc/passwd", "..", "\0", ""])
def test_only_the_last_part_of_a_received_name_is_kept(name: str) -> None:
    assert "/" not in received_name(name)
    assert "\0" not in received_name(name)
    assert received_name(name)


def test_a_download_that_is_led_to_other_servers_is_aborted_and_can_be_accepted_again(files: Files) -> None:
    path, target = files.make(), files.folder / "received"
    files.send(path)
    files.settle()
    files.world.network.faults.redirected.add("alice")
    files.alice.do(f"/freceive 1 {target}")
    files.settle()
    assert files.alice.tags()[-1] == "chatItemUpdated"
    assert files.state() == "rcvAborted"
    files.alice.do(f"/freceive 1 approved_relays=on {target}")
    files.settle()
    assert target.read_bytes() == path.read_bytes()


def test_only_the_unknown_ones_of_several_servers_are_named(direct: Files) -> None:
    direct.bob.do(f"/xftp {DEFAULT_SERVER} {OTHER_SERVER}")
    direct.send(direct.make(6_000_000))
    direct.settle()
    refused = direct.alice.refused(f"/freceive 1 {direct.folder}/received")
    assert refused["unknownServers"] == [OTHER_SERVER]


@pytest.mark.parametrize("how", ["a proxy", "the same server with a password"])
def test_servers_that_learn_nothing_or_are_known_need_no_approval(direct: Files, how: str) -> None:
    target = direct.folder / "received"
    direct.bob.do(f"/xftp {OTHER_SERVER}")
    direct.send(direct.make())
    direct.settle()
    direct.alice.do("/network socks=on" if how == "a proxy" else f"/xftp {OTHER_SERVER.replace('@', ':secret@')}")
    direct.alice.do(f"/freceive 1 {target}")
    direct.settle()
    assert target.stat().st_size == 30_000


def test_a_core_that_tells_the_servers_of_a_file_names_them(direct: Files) -> None:
    direct.world.network.faults.tells_servers = True
    direct.send(direct.make())
    direct.settle()
    item = [i for i in direct.alice.chat(direct.to_bob)["chatItems"] if "file" in i][-1]["meta"]["itemId"]
    info = direct.alice.do(f"/_get item info {direct.to_bob} {item}")["chatItemInfo"]
    assert info["fileXftpServers"] == [DEFAULT_SERVER]


# Deleting and leaving


@pytest.mark.parametrize("accepted", [False, True], ids=["offered", "accepted"])
def test_a_sender_who_deletes_the_message_takes_its_file_back(files: Files, accepted: bool) -> None:
    files.world.network.files.stall("bob")
    target = files.folder / "received"
    item = files.send(files.make())["meta"]["itemId"]
    files.settle()
    if accepted:
        files.alice.do(f"/freceive 1 {target}")
    files.bob.do(f"/_delete item {files.to_alice} {item} broadcast")
    files.settle()
    files.world.network.files.resume("bob")
    files.settle()
    assert files.state() == "rcvCancelled"
    assert files.state(files.bob) == "sndCancelled"
    assert target.exists() == accepted
    assert files.tags(files.alice) == []


def test_the_number_of_a_file_is_given_again_when_its_message_is_gone(direct: Files) -> None:
    for _ in range(2):
        direct.send(direct.make())
        direct.settle()
        assert direct.file()["fileId"] == 1
        item = [i for i in direct.alice.chat(direct.to_bob)["chatItems"] if "file" in i][-1]
        direct.alice.do(f"/_delete item {direct.to_bob} {item['meta']['itemId']} internal")
    assert direct.alice.refused("/freceive 1 x")["type"] == "userNotFoundByFileId"


def test_leaving_a_group_cancels_its_downloads(tmp_path: Path) -> None:
    group = Files(tmp_path, group=True)
    group.world.network.files.stall("alice")
    target = tmp_path / "received"
    group.send(group.make())
    group.settle()
    group.alice.do(f"/freceive 1 {target}")
    group.alice.do("/_leave #1")
    group.world.network.files.resume("alice")
    group.settle()
    assert group.state() == "rcvCancelled"
    assert target.read_bytes() == b""
    group.alice.do("/_delete #1")
    assert group.alice.core.state.files == {}


def test_with_a_files_folder_deleting_a_message_deletes_its_file_even_the_original(direct: Files) -> None:
    path = direct.make()
    direct.bob.do(f"/_files_folder {direct.folder}/kept")
    item = direct.send(path)["meta"]["itemId"]
    direct.settle()
    direct.bob.do(f"/_delete item {direct.to_alice} {item} internal")
    assert not path.exists()


# History, restarts, size


def test_a_joiner_gets_the_files_of_the_history(tmp_path: Path) -> None:
    group = Files(tmp_path, group=True)
    group.alice.do("/_group_profile #1", {
        "displayName": "Trail", "fullName": "", "groupPreferences": {"history": {"enable": "on"}},
    })  # fmt: skip
    group.settle()
    path, target = group.make(), tmp_path / "received"
    group.send(path, "in history")
    group.settle()
    carol = group.world.person("Carol")
    carol.do(f"/_temp_folder {tmp_path}/tmp")
    link = group.alice.do("/_get link #1")["groupLink"]["connLinkContact"]
    group.world.join(carol, link)
    assert "in history" in carol.texts("#1")
    assert carol.tags().count("rcvFileDescrReady") == 1
    carol.do(f"/freceive 1 {target}")
    group.settle()
    assert target.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("what", ["the core", "the network"])
def test_a_restart_in_the_middle_of_a_download_goes_on_without_a_command(direct: Files, what: str) -> None:
    path, target = direct.make(6_000_000), direct.folder / "received"
    state = direct.folder / "net.json"
    direct.world.network.files.keep_in(persistence.files_of(state))
    direct.send(path)
    direct.settle()
    direct.alice.do(f"/freceive 1 {target}")
    direct.world.now += 0.15
    direct.world.network.deliver()
    assert direct.state() == "rcvTransfer"
    world, alice = direct.world, direct.alice
    if what == "the network":
        persistence.save(direct.world.network, state)
        world = World(network=persistence.load(state, direct.world.clock))
        world.now = direct.world.now
        world.network.clock = world.clock
        alice = Person(world, "alice")
    else:
        alice.do("/_stop")
        world.settle()
        alice.forget()
    assert target.read_bytes() == b""
    alice.do("/_start")
    world.settle()
    assert [tag for tag in alice.tags() if "File" in tag][-1] == "rcvFileComplete"
    assert "rcvFileStart" not in alice.tags()
    assert target.read_bytes() == path.read_bytes()


def test_a_hundred_mebibytes_go_through_with_flat_memory(direct: Files) -> None:
    path, target = direct.folder / "large.bin", direct.folder / "received"
    with path.open("wb") as file:
        for block in range(100):
            file.write(bytes([block]) * (1 << 20))
    tracemalloc.start()
    try:
        direct.send(path)
        direct.settle()
        direct.alice.do(f"/freceive 1 {target}")
        direct.settle()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert filecmp.cmp(path, target, shallow=False)
    assert peak < 12 << 20


def test_the_bytes_on_the_servers_end_with_the_network(tmp_path: Path) -> None:
    here = Files(tmp_path, group=False)
    here.send(here.make())
    here.settle()
    folder = here.world.network.files.place("x").parent
    assert folder.is_dir()
    del here
    gc.collect()
    assert not folder.exists()
