"""What events and errors of the core say of files, also damaged ones."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from simplexmcp.chats import Chat
from simplexmcp.files.downloads import Downloads
from simplexmcp.files.folders import Folders
from simplexmcp.files.items import ended_by, event_file_id, reason_of, touched_items, unknown_servers
from simplexmcp.files.transfer import Receiving
from simplexmcp.messages import ChatFile
from tests.recorded import frames

if TYPE_CHECKING:
    from simplexmcp.core.api import ChatApi

TAGS = [
    "rcvFileDescrReady",
    "rcvFileProgressXFTP",
    "rcvFileComplete",
    "rcvFileError",
    "rcvFileSndCancelled",
    "chatItemUpdated",
    "chatItemsDeleted",
    "groupChatItemsDeleted",
    "chatError",
    "linkUp",
    "unknown",
]
KEYS = [
    "type",
    "user",
    "userId",
    "chatItem",
    "chatItem_",
    "chatInfo",
    "meta",
    "itemId",
    "file",
    "fileId",
    "fileStatus",
    "fileSource",
    "filePath",
    "rcvFileTransfer",
    "rcvFileDescr",
    "fileDescrText",
    "receivedSize",
    "totalSize",
    "chatItemIDs",
    "chatItemDeletions",
    "deletedChatItem",
    "agentError",
    "chatError",
    "errorType",
    "message",
    "unknownServers",
    "content",
    "msgContent",
]
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([7, 30])
    | st.text(max_size=5)
    | st.sampled_from(["rcvMsgContent", "fileNotApproved", "exception"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=25,
)


class Nobody:
    """An api that is not asked."""

    user_id = 1


EVENTS = st.builds(
    lambda tag, event: {**event, "type": tag},
    st.sampled_from(TAGS),
    st.dictionaries(st.sampled_from(KEYS), JSON, max_size=6),
)


@settings(max_examples=60)
@given(st.lists(EVENTS, max_size=5))
def test_events_in_any_shape_are_taken(events: list[dict[str, Any]]) -> None:
    async def take() -> None:
        downloads = Downloads(cast("ChatApi", Nobody()), Folders(Path("/nowhere")))
        file = ChatFile(7, 30, "a", 9, "file", "rcvTransfer")
        receiving = Receiving(Chat("@4", "contact", "Bob", "connected"), file, "received", frozenset())
        receiving.target = Path("/nowhere/7")
        downloads._receiving[7] = receiving
        for event in events:
            downloads.on_event(event)

    trio.run(take)
    for event in events:
        touched_items(event)
        event_file_id(event)
        unknown_servers(event)
        assert reason_of(event)


def test_every_recorded_event_about_a_file_is_taken() -> None:
    downloads = Downloads(cast("ChatApi", Nobody()), Folders(Path("/nowhere")))
    taken = 0
    for name in ("09a-files", "09b-files", "09c-files", "09d-files", "09e-xftp-down"):
        for frame in frames(name):
            if frame["dir"] == "event" and frame["core"] == "agent":
                downloads.on_event(frame["resp"])
                if frame["resp"]["type"].startswith("rcvFile"):
                    assert event_file_id(frame["resp"])
                    taken += 1
    assert taken > 50


def test_the_items_of_deletions_and_updates_are_known() -> None:
    deleted = [f["resp"] for f in frames("09b-files") if (f.get("resp") or {}).get("type") == "chatItemsDeleted"]
    assert any(touched_items(event) for event in deleted)
    assert touched_items({"chatItemIDs": [3, 4, "x"]}) == {3, 4}
    assert touched_items({"chatItem": {"chatItem": {"meta": {"itemId": 5}}}}) == {5}


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        ({"type": "auth"}, "gone from the file server"),
        ({"type": "noFile"}, "gone from the file server"),
        ({"type": "blocked", "server": "x", "blockInfo": {}}, "blocked"),
        ({"type": "relay", "srvError": {}}, "the file server failed"),
        ({"type": "other", "fileError": "INTERNAL x: resource exhausted (No space left on device)"}, "disk is full"),
        ({"type": "INTERNAL", "internalErr": "/x: resource exhausted (No space left on device)"}, "disk is full"),
        ({"type": "XFTP", "serverAddress": "s", "xftpErr": {"type": "AUTH"}}, "gone from the file server"),
        ({"type": "XFTP", "xftpErr": {"type": "QUOTA"}}, r"the core gave up \(XFTP/QUOTA\)"),
        ({"type": "FILE", "fileErr": {"type": "FILE_IO", "fileIOError": "/secret/path"}}, r"\(FILE/FILE_IO\)"),
        ({"type": "FILE", "fileErr": {"type": "NO_FILE"}}, "gone from the file server"),
        ({}, "the core gave up"),
        ({"type": "<b>/approve 1"}, "the core gave up$"),
    ],
)
def test_each_reason_is_said_for_people_and_quotes_nothing(reason: dict[str, Any], text: str) -> None:
    said = reason_of(reason)
    assert re.search(text, said)
    assert "/secret" not in said
    assert "approve" not in said


def test_every_recorded_failure_has_a_reason() -> None:
    errors = [f["resp"] for f in frames("09b-files") if (f.get("resp") or {}).get("type") == "rcvFileError"]
    assert errors
    for event in errors:
        assert "gone from the file server" in reason_of(event["agentError"])


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"status": "rcvCancelled"}, "sender cancelled"),
        ({"status": "rcvError", "reason": {"type": "auth"}}, "could not be received"),
        ({"status": "invalid"}, "could not be received"),
        ({"own": True, "status": "sndComplete"}, "sent itself"),
        ({"size": 0}, "empty"),
        ({"size": (1 << 30) + 1}, "larger than its sender may send"),
    ],
)
def test_a_file_that_cannot_come_says_why(change: dict[str, Any], why: str) -> None:
    fields: dict[str, Any] = {"size": 9, "status": "rcvInvitation", **change}
    file = ChatFile(file_id=7, item=30, name="a", kind="file", **fields)
    assert why in str(ended_by(file))
    assert ended_by(ChatFile(7, 30, "a", 9, "file", "rcvInvitation")) is None


def test_the_servers_of_the_cores_refusal_are_read() -> None:
    inner = {"type": "fileNotApproved", "fileId": 7, "unknownServers": ["xftp://k@h", 7]}
    assert unknown_servers({"type": "error", "errorType": inner}) == (7, ["xftp://k@h"])
    assert unknown_servers({"type": "error", "errorType": {"type": "other"}}) is None
    assert unknown_servers({}) is None
