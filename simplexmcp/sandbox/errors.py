"""The error objects of the core, and the exception with which a command handler refuses."""

from __future__ import annotations

from typing import Any

__all__ = [
    "PARSE_ERROR",
    "SERVER",
    "CommandFailed",
    "agent_error",
    "command_error",
    "error",
    "not_modelled",
    "parse_error",
    "relay_unreachable",
    "smp_auth",
    "smp_error",
    "store_error",
]

SERVER = "smp://c2FuZGJveC1yZWxheS1vZi1hLXRlc3QtbmV0d29yayE=@smp.simplex.test"
"""The one relay server of the simulated network, as it stands in errors."""

PARSE_ERROR: dict[str, Any] = {
    "type": "error",
    "errorType": {"type": "commandError", "message": "Failed reading: empty"},
}


class CommandFailed(Exception):  # noqa: N818 - it is an answer, not a fault of the program
    """A command is refused with this CHATERROR object."""

    def __init__(self, chat_error: dict[str, Any]) -> None:
        super().__init__(chat_error)
        self.chat_error = chat_error


def error(tag: str, **fields: Any) -> CommandFailed:
    """`error/TAG`."""
    return CommandFailed({"type": "error", "errorType": {"type": tag, **fields}})


def command_error(message: str) -> CommandFailed:
    """`error/commandError` with the core's message."""
    return error("commandError", message=message)


def parse_error() -> CommandFailed:
    """The answer to text that is no command."""
    return CommandFailed(PARSE_ERROR)


def not_modelled(what: str) -> CommandFailed:
    """A command that the real core knows and this model does not: refused, never answered wrongly."""
    return command_error(f"the sandbox does not model {what}")


def store_error(tag: str, **fields: Any) -> CommandFailed:
    """`errorStore/TAG`."""
    return CommandFailed({"type": "errorStore", "storeError": {"type": tag, **fields}})


def agent_error(agent: dict[str, Any]) -> CommandFailed:
    """`errorAgent/…` of a command."""
    return CommandFailed({"type": "errorAgent", "agentError": agent, "agentConnId": ""})


def smp_error(smp_err: dict[str, Any], server: str = SERVER) -> CommandFailed:
    """`errorAgent/SMP/…`."""
    return agent_error({"type": "SMP", "serverAddress": server, "smpErr": smp_err})


def relay_unreachable() -> CommandFailed:
    """`errorAgent/BROKER/NETWORK`: nobody listens at the relay's address."""
    refused = "Network.Socket.connect: <socket: 16>: does not exist (Connection refused)"
    network = {"type": "connectError", "connectError": refused}
    broker = {"type": "NETWORK", "networkError": network}
    return agent_error({"type": "BROKER", "brokerAddress": SERVER, "brokerErr": broker})


def smp_auth() -> CommandFailed:
    """A link that was deleted or used up."""
    return smp_error({"type": "AUTH"})
