"""What an error of the core means for the agent: one sentence each, with what to do instead."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from simplexmcp.errors import CoreError, Refused
from simplexmcp.terminal import printable

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["GONE_TAGS", "clearly", "is_link_trouble", "sentence"]

GONE_TAGS = frozenset(
    {
        "errorStore/contactNotFound",
        "errorStore/groupNotFound",
        "errorStore/userNotFoundByContactId",
        "errorStore/userNotFoundByGroupId",
    }
)
"""Tags that say that there is no such chat."""

_SENTENCES = {
    "link/lost": "The link to the SimpleX core was lost during the command, and nobody knows whether it was done: "
    "check the chat with history before asking again.",
    "link/down": "The SimpleX core cannot be reached now, and nothing was done; try again later.",
    "error/chatNotStarted": "The SimpleX core is not started; try again later.",
    "error/contactNotReady": "The contact is not connected, or not any more, so no message can be sent.",
    "error/contactNotActive": "The contact is not connected any more, so no message can be sent.",
    "error/contactDisabled": "The contact's relay refuses messages: the contact may have deleted the chat.",
    "error/groupUserRole": "The agent's role in this group does not allow it.",
    "error/groupMemberUserRemoved": "The agent is no member of this group any more.",
    "error/groupMemberNotFound": "There is no such member in this group.",
    "errorStore/groupMemberNotFound": "There is no such member in this group.",
    "errorStore/largeMsg": "The text is too long for one message; send it in parts.",
    "error/fileNotFound": "The core does not find the file: files are sent only by a core that runs on this computer.",
    "error/fileSize": "The file is larger than the core sends.",
    "errorStore/invalidQuote": "The message to reply to was deleted, or is no message.",
    "errorStore/chatItemNotFound": "There is no such item in this chat.",
    "errorStore/invalidMention": "The core does not find the mentioned names in the text.",
    "error/invalidConnReq": "This is no valid SimpleX link.",
    "error/unsupportedConnReq": "This link needs a newer version of SimpleX than this core.",
    "error/connReqMessageProhibited": "A request to join a group carries no message; connect without `message`.",
    "errorAgent/SMP/AUTH": "The link was deleted, or it is a one-time link that was used.",
    "errorAgent/NO_NAME_SERVERS": "No relay of this core looks up SimpleX names; use a link.",
}
_COMMAND_ERRORS = {
    "not current member": "The agent is no current member of this group, so no message can be sent.",
    "feature not allowed Files and media": "This chat does not allow files.",
    "feature not allowed Voice messages": "This chat does not allow voice messages; send it as file.",
    "feature not allowed SimpleX links": "This chat does not allow SimpleX links.",
}
_FAMILIES = (
    ("error/simplexDomainNotReady", "This SimpleX name leads to no usable link."),
    ("errorAgent/SMP/NAME/NO_RESOLVER", "No relay of this core looks up SimpleX names; use a link."),
    ("errorAgent/SMP/NAME/NOT_FOUND", "This SimpleX name is not registered."),
    ("errorAgent/SMP/NAME", "This SimpleX name cannot be looked up now; try again later, or use a link."),
    ("errorAgent/CONN/SIMPLEX", "The link was used already."),
)
_NETWORK = ("BROKER", "NETWORK", "TIMEOUT", "HOST", "PROXY", "INACTIVE")


def sentence(error: CoreError) -> str:
    """The sentence for an error of the core."""
    if error.tag in GONE_TAGS:
        return "There is no such chat; call list to see the chats."
    if known := _SENTENCES.get(error.tag):
        return known
    if error.tag == "error/commandError":
        for said, meaning in _COMMAND_ERRORS.items():
            if said in str(error):
                return meaning
    if family := next((text for start, text in _FAMILIES if error.tag.startswith(start)), None):
        return family
    if error.tag.startswith("errorAgent/") and any(part in _NETWORK for part in error.tag.split("/")):
        return f"A SimpleX relay cannot be reached now ({error.tag}); try again later."
    if error.tag.startswith("unexpected/"):
        return (
            f"The SimpleX core's answer is not understood ({printable(str(error))[:200]}), and nobody knows whether it "
            "was done: check the chat with history before asking again."
        )
    return f"The SimpleX core refused: {printable(str(error))[:300]}."


def is_link_trouble(error: CoreError) -> bool:
    """True when the link to the core went or is down: it says nothing about the command."""
    return error.tag.startswith("link/")


@contextmanager
def clearly() -> Generator[None]:
    """Raises Refused with the sentence for a CoreError of its block."""
    try:
        yield
    except CoreError as error:
        raise Refused(sentence(error)) from error
