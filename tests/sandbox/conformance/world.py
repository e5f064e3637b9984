"""What happened around the cores while a recording was made: processes that ended, servers that were down, and the
commands whose frames were left out of a file."""

from __future__ import annotations

__all__ = ["CUT", "LONGEST", "NOT_REPLAYED", "ONLY", "PEOPLE", "SECOND", "USERLESS", "WORLD"]

PEOPLE: dict[str, dict[str, object]] = {
    "agent": {"displayName": "My Agent", "fullName": "", "peerType": "bot"},
    "alice": {"displayName": "Alice", "fullName": ""},
    "bob": {"displayName": "Bob", "fullName": ""},
    "carol": {"displayName": "Carol", "fullName": ""},
    "helper": {"displayName": "Helper Bot", "fullName": "", "peerType": "bot"},
    "shop": {"displayName": "Shop", "fullName": ""},
    "agent without files": {
        "displayName": "My Agent",
        "fullName": "",
        "peerType": "bot",
        "preferences": {"files": {"allow": "no"}},
    },
}
"""The profile of each core's user."""

USERLESS = frozenset({("01-first-start-lib", "agent"), ("15b-lib", "agent")})
"""Cores that a recording begins without a user."""

SECOND = {("15-more", "agent"): (166, "agent without files")}
"""From this line on the name stands for another core, with an own database."""

LONGEST = "the longest text of the recording"
Action = tuple[str, ...]

WORLD: dict[tuple[str, int], tuple[Action, ...]] = {
    ("05-read", 187): (
        *(
            (
                "send",
                "bob",
                "@4",
                *(f"m{n:03d}{' https://example.com/' if n % 50 == 8 else ''}" for n in range(k, k + 50)),
            )
            for k in range(1, 250, 50)
        ),
        *(("send", "bob", "#1", *(f"g{n:03d}" for n in range(k, k + 50))) for k in range(1, 250, 50)),
    ),
    ("06-custom-data", 208): (("stop", "agent"), ("start", "agent")),
    ("09a-files", 282): (("other file system", "agent"),),
    ("09b-files", 228): (("file server", "empty"),),
    ("09b-files", 253): (("file server", "down"),),
    ("09b-files", 266): (("file server", "up"),),
    ("09b-files", 292): (("stop", "agent"),),
    ("09b-files", 293): (("start", "agent"),),
    ("09b-files", 270): (("chunks take", "1.0"),),
    ("09c-files", 161): (("chunks take", "5.1"),),
    ("09c-files", 170): (("chunks take", "0.1"),),
    ("09e-xftp-down", 24): (("file server", "down"),),
    ("09e-xftp-down", 39): (("file server", "up"),),
    ("10-restart", 163): (("stop", "agent"),),
    ("10-restart", 184): (("start", "agent"),),
    ("10-restart", 203): (("stop", "agent"),),
    ("10-restart", 205): (("start", "agent"),),
    ("10-restart", 207): (("stop", "agent"),),
    ("10-restart", 209): (("start", "agent"),),
    ("10-restart", 213): (("stop", "agent"),),
    ("10-restart", 217): (("start", "agent"),),
    ("10-restart", 221): (("stop", "agent"),),
    ("10-restart", 224): (("start", "agent"),),
    ("10-restart", 230): (("relay", "down"),),
    ("10-restart", 324): (("stop", "agent"),),
    ("10-restart", 327): (("start", "agent"),),
    ("10-restart", 332): (("relay", "up"),),
    ("10-restart", 343): tuple(("send", "bob", "@4", f"nobody listens {n}") for n in range(30)),
    ("10-restart", 377): (("stop", "agent"),),
    ("12-websocket", 90): tuple(("send", "bob", "@4", f"to two clients {n}") for n in range(40)),
    ("14-misc", 67): (("send", "agent", "@4", LONGEST),),
    ("14-misc", 91): (("stop", "agent"),),
    ("15-more", 153): (("stop", "agent"), ("start", "agent")),
}
"""(recording, line) → what happens there."""

CUT = frozenset({
    ("05-read", "250 messages from Bob, direct then group"),
    ("10-restart", "the event queue without a client: 30 messages while no WebSocket client is connected"),
    ("12-websocket", "two clients on one CLI: who gets which events"),
    ("12-websocket", "two clients, events of own sends"),
    ("14-misc", "random text of 93 symbols in a direct (post-quantum) chat, the largest size"),
})  # fmt: skip
"""Steps of which frames were left out of the file: more events than recorded are right there."""

ONLY = {"13-ids": "agent"}
"""Recordings that hold the events of one core only."""

NOT_REPLAYED = {
    ("10-restart", "-m without a user; wrong key; port in use; two processes on one database"): (
        "two processes that use one database"
    ),
    ("12-websocket", "disconnect during a command (/_connect 1), then reconnect: was it done?"): (
        "a process that loses a command of a client that went away"
    ),
    ("12-websocket", "disconnect right after /_send"): "a process that loses a command of a client that went away",
    ("12-websocket", "abrupt disconnect (TCP reset without a close frame) with events flowing"): (
        "events that were read by a client that went away; frames left out of the recording"
    ),
    ("12-websocket", "handshake: Origin header, other Host, subprotocol, path, plain HTTP"): (
        "events that were read by other clients"
    ),
    ("15-more", "-q 10 and no client: 40 messages"): "a full event queue of a process; frames left out",
}
"""Steps that are about a process and its connections, not about a core: nothing of them is sent or compared."""
