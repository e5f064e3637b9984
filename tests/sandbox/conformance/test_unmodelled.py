"""Channels over relays: the steps of the recordings that the sandbox does not model, by name. It refuses
their commands in clear words, and never answers them wrongly."""

from __future__ import annotations

import json

import pytest

from tests.sandbox.conformance.pair import Pair

CHANNEL = "Alice adds the relay and makes a channel"
FILE = {"msgContent": {"type": "file", "text": "x"}, "fileSource": {"filePath": "/srv/agent/files/x.bin"}}
POST = [{"msgContent": {"type": "text", "text": "as the channel"}}]

UNMODELLED = (
    ("03b-channel", CHANNEL, "/relays"),
    ("03b-channel", CHANNEL, "/relays name=relay https://127.0.0.1/r#0gl0L72Y41LF0nkDHyQ_6c?p=7001"),
    ("03b-channel", CHANNEL, "/public group relays=1 #news"),
    ("03b-channel", "prepare (direct=off), connect", "/_prepare group 1 {full} {short} direct=off {profile}"),
    ("03b-channel", "posts: as the channel, as Alice", f"/_send #1(as_group=on) json {json.dumps(POST)}"),
    ("03b-channel", "edit, delete, file in the channel", f"/_send #1(as_group=on) json {json.dumps([FILE])}"),
    ("09a-files", "setup", "/xftp"),
)
"""(recording, step, command): the recordings themselves are not replayed."""


@pytest.mark.parametrize(("recording", "step", "command"), UNMODELLED)
def test_a_command_that_is_not_modelled_is_refused_in_clear_words(recording: str, step: str, command: str) -> None:
    pair = Pair()
    link = pair.do("agent", "/_get link #1")["groupLink"]["connLinkContact"]
    profile = json.dumps({"groupProfile": {"displayName": "news", "fullName": ""}})
    for key, value in (("full", link["connFullLink"]), ("short", link["connShortLink"]), ("profile", profile)):
        command = command.replace(f"{{{key}}}", value)
    answer = pair.do("agent", command)
    assert answer["type"] == "chatCmdError", f"{recording} {step!r} works now: replay it"
    message = answer["chatError"]["errorType"]["message"]
    assert message.startswith("the sandbox does not model "), f"{recording} {step!r}"


@pytest.mark.parametrize("command", ["/freceive 1 /srv/agent/files/x.bin", "/fcancel 1"])
def test_there_is_no_file_to_receive_or_to_cancel(command: str) -> None:
    error = Pair().do("agent", command)["chatError"]
    assert error["type"] == "errorStore"
    assert error["storeError"]["fileId"] == 1
