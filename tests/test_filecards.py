"""Cards about files: the texts of flows 13 to 16, names and paths in code, pictures that fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplexmcp import cards, filecards
from simplexmcp.cards import Attachment, Card, DownloadSubject, Outcome, SendSubject
from simplexmcp.chats import Chat
from simplexmcp.states import State
from tests.test_cards import BOT, DONE, TRAIL, foreign, found

REPORT = DownloadSubject(TRAIL, 30, "Switchback", "report.pdf", 2_516_582)
PICTURE = "data:image/jpg;base64,/9j/4AAQ"
TRAIL_MAP = Attachment("image", "/home/alice/trail.jpg", 156_672, "00" * 32, preview=PICTURE)
ADMINS = Chat(ref="#15(_support:4)", kind="group", name="Trail", state="connected")


def test_the_card_of_a_download_is_that_of_flow_13() -> None:
    card = cards.asking(REPORT, 7)
    assert card.text == (
        "I want to download a file from Switchback in group Trail (#15): `report.pdf`, 2.4 MB\nServers: known.\n"
        "Tap /'receive #15 7', /'receive #15 7 all', /'forward #15 7' or /'reject #15 7'"
    )
    assert found(card) == card.commands == ("receive #15 7", "receive #15 7 all", "forward #15 7", "reject #15 7")
    assert cards.outcome_card(REPORT, 7, DONE).text == (
        "I downloaded a file from Switchback in group Trail (#15): `report.pdf`, 2.4 MB\nServers: known.\n"
        "Approved by Alice."
    )


def test_a_file_of_a_contact_names_the_contact_once() -> None:
    text = cards.asking(replace(REPORT, chat=BOT, sender=None), 7).text
    assert text.startswith("I want to download a file from bot Helper (@4): `report.pdf`, 2.4 MB\n")


def test_a_card_with_unknown_servers_names_them_and_offers_no_approval_of_later_files() -> None:
    card = cards.asking(replace(REPORT, hosts=("files.example", "x.example:443")), 7)
    assert "that would see its IP address: `files.example`, `x.example:443`\n" in card.text
    assert found(card) == card.commands == ("receive #15 7", "forward #15 7", "reject #15 7")


def test_every_unknown_server_is_named_whole() -> None:
    hosts = (*(f"h{n}.example" for n in range(31)), "a" * 490 + ".example")
    card = cards.asking(replace(REPORT, hosts=hosts), 7)
    assert all(f"`{host}`" in card.text for host in hosts)
    assert cards.fits(card)


def test_a_download_under_a_standing_approval_shows_how_to_end_it() -> None:
    card = cards.outcome_card(REPORT, 7, Outcome(State.DONE, by="Alice", standing=True))
    assert card.text.endswith("\nFiles approved for this chat by Alice. /'receive #15 off'")
    assert found(card) == card.commands == ("receive #15 off",)


def test_the_approval_of_files_of_a_support_chat_is_ended_for_the_group() -> None:
    card = cards.outcome_card(replace(REPORT, chat=ADMINS), 7, Outcome(State.DONE, by="Alice", standing=True))
    assert card.commands == ("receive #15 off",)


def test_the_card_of_a_send_with_a_file_is_that_of_flow_15_and_offers_no_standing_approval() -> None:
    card = cards.asking(SendSubject(TRAIL, "trail map", None, (), TRAIL_MAP), 7)
    assert card.text == (
        "I want to send a message to group Trail (#15): `trail map`\n"
        "attaching image `/home/alice/trail.jpg`, 153 KB\nTap /'approve #15 7' or /'reject #15 7'"
    )
    assert found(card) == card.commands == ("approve #15 7", "reject #15 7")
    assert card.picture == PICTURE


def test_a_file_without_a_caption_and_with_metadata() -> None:
    file = replace(TRAIL_MAP, kind="file", metadata=True, preview=None)
    card = cards.asking(SendSubject(TRAIL, "", None, (), file), 7)
    assert card.text.startswith(
        "I want to send a message to group Trail (#15)\nattaching file `/home/alice/trail.jpg`, 153 KB\n"
        "The file goes as it is, with its metadata"
    )
    assert card.picture is None


def test_the_outcome_keeps_the_picture_of_its_card() -> None:
    subject = SendSubject(TRAIL, "trail map", None, (), TRAIL_MAP)
    assert cards.outcome_card(subject, 7, DONE).picture == PICTURE


def test_a_picture_that_has_no_room_beside_the_text_is_left_out_and_stays_out() -> None:
    large = replace(TRAIL_MAP, preview="data:image/jpg;base64," + "A" * 13_900)
    beside = SendSubject(TRAIL, "x" * 300, None, (), large)
    assert cards.asking(beside, 7).picture == large.preview
    failed = cards.outcome_card(beside, 7, Outcome(State.FAILED, by="Alice", error="e" * 1_500))
    assert failed.picture == large.preview
    assert cards.fits(failed)
    crowded = SendSubject(TRAIL, "x" * 3_000, None, (), large)
    assert cards.asking(crowded, 7).picture is None
    assert cards.outcome_card(crowded, 7, DONE).picture is None


@pytest.mark.parametrize(
    "preview",
    [
        None,
        "",
        "https://example.org/a.jpg",
        "data:text/html;base64,AAAA",
        "data:image/svg+xml;base64,AAAA",
        "data:image/jpg;base64,AA<script>",
        "data:image/jpg;base64," + "A" * 14_000,
        5,
    ],
)
def test_what_the_apps_would_not_show_is_no_picture(preview: Any) -> None:
    assert cards.picture(preview) is None
    assert cards.asking(replace(REPORT, preview=preview), 7).picture is None


@given(foreign, foreign, foreign, st.integers(1, 2**40), st.none() | foreign, st.lists(foreign, max_size=10))
def test_only_the_commands_that_are_meant_are_active_whatever_a_file_is_called(
    chat: str, name: str, host: str, size: int, sender: str | None, hosts: list[str]
) -> None:
    subject = DownloadSubject(replace(TRAIL, name=chat), 30, sender, name, size, tuple(hosts))
    file = Attachment("file", f"/{name}", size, "0" * 64, metadata=True)
    posts = [
        cards.asking(subject, 7),
        cards.outcome_card(subject, 7, Outcome(State.FAILED, by=host, error=name)),
        cards.pending_line(subject, 7, "12:00"),
        cards.asking(SendSubject(subject.chat, "", None, (), file), 7),
        filecards.is_a_download(subject, 7),
        filecards.files_approved(subject.chat, host),
        filecards.files_need_approval(subject.chat, had=True),
        filecards.not_received(7, name),
        filecards.kept(subject.chat, f"/{name}", 3, size),
        filecards.refused_file(name, host),
    ]
    for card in posts:
        assert found(card) == card.commands, card.text


def test_the_texts_of_flow_16() -> None:
    business = Chat(ref="#9", kind="business", name="Ridgeline", state="left")
    assert filecards.kept(business, "/data/files/group-9", 3, 2_202_010) == Card(
        "Files from business Ridgeline (#9) are kept in `/data/files/group-9`: 3 files, 2.1 MB. /'delete #9 files'",
        ("delete #9 files",),
    )
    assert filecards.deleted("#9", 3, 2_202_010).text == "Deleted 3 files from chat (#9), 2.1 MB."
    assert filecards.deleted("#9", 1, 10).text == "Deleted 1 file from chat (#9), 10 bytes."
    assert filecards.deleted("#9", 0, 0).text == "There are no files from chat (#9)."


def test_a_very_long_name_is_cut_and_counted() -> None:
    assert "… (5000 characters)`" in cards.asking(replace(REPORT, name="a" * 5_000), 7).text


def test_an_approve_on_a_download_is_answered_with_its_commands() -> None:
    assert filecards.is_a_download(REPORT, 7).text == (
        "Action 7 is a download: /'receive #15 7', /'receive #15 7 all', /'forward #15 7' or /'reject #15 7'"
    )


def test_a_pending_download_is_listed_with_its_commands() -> None:
    assert cards.pending_line(REPORT, 7, "12:00").text == (
        "Action 7: download `report.pdf` from group Trail (#15), expires at 12:00. /'receive #15 7' /'reject #15 7'"
    )
