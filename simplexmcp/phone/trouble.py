"""What an error of the core means for the person at the page: one sentence. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simplexmcp.phone.texts import obj, text_of

if TYPE_CHECKING:
    from simplexmcp.errors import CoreError

__all__ = ["sentence"]

_GONE = "There is no such chat any more."
_NOT_MEMBER = "You are not a member of this group any more."
_TOO_LONG = "This text is too long for one message; send it in parts."
_SENTENCES = {
    "errorStore/groupNotFound": _GONE,
    "errorStore/contactNotFound": _GONE,
    "errorStore/userNotFoundByContactId": _GONE,
    "errorStore/userNotFoundByGroupId": _GONE,
    "errorStore/chatItemNotFound": "There is no such message any more.",
    "errorStore/largeMsg": _TOO_LONG,
    "error/internalError": _TOO_LONG,
    "errorStore/invalidMention": "A mentioned name is not in the text; write it as @NAME.",
    "errorStore/invalidQuote": "This message cannot be answered: it was deleted, or it is no message.",
    "errorStore/groupMemberNotFound": "There is no such member any more.",
    "error/groupMemberNotFound": "There is no such member any more.",
    "error/groupMemberUserRemoved": _NOT_MEMBER,
    "error/groupUserRole": "Your role in this group does not allow it.",
    "error/contactNotReady": "This contact is not connected, so nothing can be sent.",
    "error/contactNotActive": "This contact deleted the chat with you, so nothing can be sent.",
    "error/invalidChatItemUpdate": "This message cannot be edited any more.",
    "error/invalidChatItemDelete": "This message cannot be deleted for everyone any more.",
    "error/invalidConnReq": "This is no SimpleX link. Copy it as a whole.",
    "error/unsupportedConnReq": "This link is of a newer version of SimpleX.",
    "error/connReqMessageProhibited": "A request to join a group carries no message.",
    "errorAgent/SMP/AUTH": "This link was deleted, or it was for one use and is used. Ask for a new one.",
    "error/fileAlreadyReceiving": "This file is being received already, or it is here.",
    "error/fileCancelled": "The sender took this file back.",
    "error/fileCancel": "This transfer has ended already.",
    "error/fileSize": "This file is too large, or empty.",
    "error/fileNotFound": "This file is not here any more. Choose it again.",
}
_COMMANDS = {
    "not current member": _NOT_MEMBER,
    "feature not allowed Files and media": "This chat does not allow files.",
    "feature not allowed SimpleX links": "This chat does not allow SimpleX links.",
    "mentions are not supported": "Only members of a group can be mentioned.",
    "does not model": "The simulation does not know this.",
}
_NAMES = "errorAgent/SMP/NAME"


def sentence(error: CoreError) -> str:
    """The sentence for an error of the core."""
    if known := _SENTENCES.get(error.tag):
        return known
    if error.tag == "error/invalidDisplayName":
        valid = text_of(obj(error.error, "errorType"), "validName")
        return f'SimpleX takes no such name; "{valid}" would do.' if valid else "SimpleX takes no such name."
    if error.tag.startswith(_NAMES):
        return "Nobody in this network has this name."
    if error.tag == "error/commandError":
        for said, meaning in _COMMANDS.items():
            if said in str(error):
                return meaning
    return f"The simulated SimpleX core refused it: {str(error)[:200]}."
