"""What the sandbox does not do like a real core, by name, and why. A gap that is closed must leave this table."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.sandbox.conformance.replay import Finding

__all__ = ["DIFFERENT", "REFUSED", "Gap", "Refusal"]


@dataclass(frozen=True)
class Refusal:
    """Commands of a step that the sandbox refuses, saying that it does not model them."""

    recording: str
    step: str
    command: str

    def covers(self, recording: str, step: str, command: str) -> bool:
        """Whether this refusal was listed for the command."""
        return recording == self.recording and step == self.step and command.startswith(self.command)


@dataclass(frozen=True)
class Gap:
    """Differences that are known: `recording` and `step` ("" for all), and a pattern for what differs and where."""

    recording: str
    step: str
    what: str
    reason: str

    def covers(self, recording: str, finding: Finding) -> bool:
        """Whether the difference is one of these."""
        if self.recording not in ("", recording) or self.step not in ("", finding.step):
            return False
        return (
            re.search(self.what, f"{finding.what} | {finding.path} | {finding.recorded} | {finding.simulated}")
            is not None
        )


CARDS = "two contact cards: the preset contacts 2 and 3 get these addresses in the database (only to have cards)"
PATHS = "existing target; missing parent; relative path; path with spaces, quotes and unicode; encrypt=on"
GONE = "the file is gone from the server: xftp files removed"
WRONG = "send errors: missing file, empty file, directory, no permission, relative path"
QUOTED = "reply to an image with text; the quote keeps the preview?"
CANCELS = "group: the sender cancels an accepted file during the upload"
RESTARTS = "the receiver restarts during a download"
NO_FILES = "a bot user made without --create-bot-allow-files"
EDITS = "edits by the peer, direct and group; edit after it was read"
SUPPORT = "support scope: unread items of the scope are not in the main chat"
LINK_GONE = "the link is deleted while a join is in progress"
INVITED = "invitation by a contact (agent is invited): receivedGroupInvitation"
SECOND_USER = "a second user; /user switches; /_groups 2"
CONCURRENT = "concurrent chat_send_cmd calls from several threads"
MAINTENANCE = "started, then the same commands before /_start: the process restarts with -m"

REFUSED: tuple[Refusal, ...] = (
    Refusal("02b-cards-sql", CARDS, "/sql chat SELECT contact_id, contact_profile_id FROM contacts"),
    Refusal("02b-cards-sql", "/sql", "/sql chat SELECT 1 AS a"),
    Refusal("02b-cards-sql", "/sql", "/sql chat SELECT 1 WHERE 1 = 0"),
    Refusal("02b-cards-sql", "/sql", "/sql chat SELECT nothing"),
    Refusal("02b-cards-sql", "/sql", "/sql chat SELECT * FROM nothing"),
    Refusal("02b-cards-sql", "/sql", "/sql chat SELEC"),
    Refusal("02b-cards-sql", "/sql", "/sql agent PRAGMA table_info(snd_message_deliveries)"),
    Refusal("02b-cards-sql", "/sql", "/sql chat INSERT INTO xx"),
    Refusal("02b-cards-sql", "/sql", "/sql chat SELECT m.group_member_id"),
    Refusal("09a-files", "setup", "/xftp"),
    Refusal("09a-files", PATHS, "/freceive 8 encrypt=on"),
    Refusal("09b-files", GONE, "/sql agent SELECT count(*) FROM snd_files"),
)
"""Database queries but for those that are used, and files that are stored encrypted."""

RACE = "which of two things that have nothing to do with each other is first"

DIFFERENT: tuple[Gap, ...] = (
    # Everywhere
    Gap("", "", r"\| (chat|agent)Migrations \(length\)", "a simulated core has no database schema to list"),
    Gap("", "", r"rofile\.image \|.*AAAAEAAAABCAYAAAAf", "the preset contact cards have a picture of one point"),
    Gap("", "", r"^/network.*\| networkConfig\.", "the defaults are the library's, not the client's"),
    Gap("", "", r"^/_servers 1 \| userServers", "there is one relay server, and no preset operator"),
    # Files
    Gap("09a-files", PATHS, r"event in file 8", "files that are stored encrypted are not modelled"),
    Gap("09c-files", WRONG, r"filePath .*files/out\.bin", "the replay has another current folder"),
    Gap("09c-files", QUOTED, r"quotedItem\.formattedText", "the response to a quote of a name shows it unformatted"),
    # Races
    Gap("04-send", EDITS, r"sndProgress \| partial|'g before' sndSent|g after\" sndSent", RACE),
    Gap(
        "04b-size-limits", "size limits: edit", r"itemStatus|sentViaProxy|'to be edited' sndSent|'yyyyyy.*sndSent", RACE
    ),
    Gap("05-read", SUPPORT, r"around=525 .*navInfo\.afterTotal", RACE),
    Gap("07-leave-delete", "setup", r"localDisplayName \| My Agent_[23] \| My Agent_1", RACE),
    Gap("09b-files", CANCELS, r"^/fcancel 6 .*itemStatus", RACE),
    Gap("09b-files", RESTARTS, r"^event rcvFileDescrReady", RACE),
    Gap("14-misc", MAINTENANCE, r"^/_get chats .*chatItems\[0\]\.meta\.itemStatus", RACE),
    Gap("15-more", LINK_GONE, r"members\[1\]|contactAndMemberAssociated", RACE),
    Gap("15-more", NO_FILES, r"localDisplayName \| My Agent_3 \| My Agent_2", RACE),
    Gap("15b-lib", CONCURRENT, r"^/_get chats .*chats \(length\)", RACE),
    # Small things
    Gap("03-join", INVITED, "messageError", "a message of a member that the core cannot place: not modelled"),
    Gap(
        "08-owners",
        "two roles at once",
        r"membership\.memberRole",
        "messages of one batch show the role from before it",
    ),
    Gap("14-misc", SECOND_USER, r"user\.activeUser", RACE),
)
