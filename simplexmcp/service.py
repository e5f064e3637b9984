"""`simplexmcp install-service`: a unit of systemd, or an agent of launchd, that keeps a server running for its user.

What is hardened here needs no user namespace: inside one, folders of root seem to be another user's, and the server
would refuse a data folder in them. Nothing here runs a shell; every word goes into the file in its own quotes.
"""

from __future__ import annotations

import hashlib
import os
import plistlib
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, final

from simplexmcp.clients import own_command
from simplexmcp.errors import UserError
from simplexmcp.folder import running_pid
from simplexmcp.programs import run_program
from simplexmcp.register import command_line
from simplexmcp.terminal import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Service", "System", "install", "service_text", "this_system", "uninstall"]

System: TypeAlias = Literal["systemd", "launchd"]

_LIMIT = 60.0  # seconds for one call of systemctl or launchctl
_SPARE = 20  # seconds of a stop beyond --stop-wait: open calls get their results, HTTP and the databases close
_AGAIN = 5  # seconds until a server that failed is started again
# Where the program looks for its own and the core's folders; a service has none of the user's shell.
_KEPT = ("XDG_DATA_HOME", "XDG_CACHE_HOME", "SIMPLEX_LIBS_DIR")
_MAC_PATH = "/opt/homebrew/bin:/usr/local/bin:/usr/bin:/bin"
_NAME_LIMIT = 200  # characters of a unit's name, of 255


@final
@dataclass(frozen=True)
class Service:
    """What is to be kept running: an agent, and the words of its `serve` command after the program's."""

    name: str
    data: Path
    words: tuple[str, ...]
    stop_wait: int
    """Seconds."""

    @property
    def label(self) -> str:
        """The service's name: letters, digits, `.`, `_` and `-`, and `\\x20` for what else an agent's name may hold."""
        escaped = re.sub(rb"[^A-Za-z0-9._-]", lambda found: b"\\x%02x" % found[0][0], self.name.encode()).decode()
        if len(escaped) > _NAME_LIMIT:
            escaped = hashlib.sha256(self.name.encode()).hexdigest()[:32]
        return f"simplexmcp-{escaped}"

    def place(self, system: System) -> Path:
        """The file that the system reads."""
        if system == "launchd":
            return Path.home() / "Library" / "LaunchAgents" / f"{self.label}.plist"
        config = os.environ.get("XDG_CONFIG_HOME")
        return (Path(config) if config else Path.home() / ".config") / "systemd" / "user" / f"{self.label}.service"


def this_system() -> System:
    """The service manager of this computer."""
    return "launchd" if sys.platform == "darwin" else "systemd"


def service_text(service: Service, system: System) -> str:
    """The file for the service manager. Raises UserError for what cannot be written in it."""
    command = [*own_command(), *service.words]
    kept = {key: value for key in _KEPT if (value := os.environ.get(key))}
    return _plist(service, command, kept) if system == "launchd" else _unit(service, command, kept)


def install(service: Service, system: System) -> list[str]:
    """Writes the file and starts the service, anew when it runs. Returns lines for the person. Raises UserError."""
    text = service_text(service, system)
    place = service.place(system)
    pid = running_pid(service.data)
    if pid is not None and not place.exists():
        process = f" (process {pid})" if pid else ""
        raise UserError(f"Agent {printable(service.name)} runs already{process}. Stop that server, then try again.")
    _write(place, text)
    left = f"{printable(str(place))} is written: start it in your own way, or delete it."
    if system == "launchd":
        domain = f"gui/{os.getuid()}"
        _run("launchctl", "bootout", f"{domain}/{service.label}", check=False, left=left)
        _logs(service).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _run("launchctl", "bootstrap", domain, str(place), left=left)
        return [
            f"Installed {printable(str(place))} and started it.",
            f"What it prints: {printable(str(_logs(service)))}",
        ]
    unit = f"{service.label}.service"
    for words in (("daemon-reload",), ("enable", unit), ("restart", unit)):
        _run("systemctl", "--user", *words, left=left)
    return [
        f"Installed {printable(str(place))} and started it.",
        f"What it prints, also the owner's link: journalctl --user -u '{unit}'",
        "To keep it running when you are logged out: loginctl enable-linger",
    ]


def uninstall(service: Service, system: System) -> list[str]:
    """Stops the service and takes its file away; the agent's data stays. Raises UserError."""
    place = service.place(system)
    if not place.exists():
        raise UserError(f"Agent {printable(service.name)} has no service: there is no {printable(str(place))}.")
    left = f"Stop the service in your own way, and delete {printable(str(place))}."
    if system == "launchd":
        _run("launchctl", "bootout", f"gui/{os.getuid()}/{service.label}", check=False, left=left)
    else:
        _run("systemctl", "--user", "disable", "--now", f"{service.label}.service", left=left)
    try:
        place.unlink()
    except OSError as error:
        raise UserError(f"{printable(str(place))}: {error.strerror}. Delete it yourself.") from error
    if system == "systemd":
        _run("systemctl", "--user", "daemon-reload", left="The service is gone all the same.")
    again = command_line("serve", service.name, None)
    return [
        f"Stopped the service and removed {printable(str(place))}.",
        f"To run the agent by hand: {printable(again)}",
    ]


def _unit(service: Service, command: Sequence[str], environment: dict[str, str]) -> str:
    if re.search(r"""["'\\]|[^ -~\w]""", command[0]):
        command = ["/usr/bin/env", *command]  # systemd takes such names as arguments only
    program, *words = command
    lines = [
        "# Written by simplexmcp install-service; it writes this file anew.",
        "[Unit]",
        f"Description=simplexmcp agent {_specifiers(service.name)}",
        "Documentation=man:simplexmcp-serve(1)",
        "StartLimitIntervalSec=0",
        "",
        "[Service]",
        "Type=exec",
        f"ExecStart={' '.join([_quoted(program), *(_quoted(word, variables=True) for word in words)])}",
        *(f"Environment={_quoted(f'{key}={value}')}" for key, value in environment.items()),
        "Restart=on-failure",
        f"RestartSec={_AGAIN}",
        "# Wrong options do not get better by another start.",
        "RestartPreventExitStatus=2",
        "SuccessExitStatus=130",
        "KillSignal=SIGTERM",
        f"TimeoutStopSec={service.stop_wait + _SPARE}",
        "UMask=0077",
        "LimitCORE=0",
        "NoNewPrivileges=yes",
        "LockPersonality=yes",
        "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK",
        "RestrictNamespaces=yes",
        "RestrictRealtime=yes",
        "RestrictSUIDSGID=yes",
        "SystemCallArchitectures=native",
        "",
        "[Install]",
        "WantedBy=default.target",
    ]
    return "".join(f"{line}\n" for line in lines)


def _plist(service: Service, command: Sequence[str], environment: dict[str, str]) -> str:
    logs = str(_logs(service))
    entry = {
        "Label": service.label,
        "ProgramArguments": list(command),
        "EnvironmentVariables": {"PATH": _MAC_PATH, **environment},
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 30,
        "ExitTimeOut": service.stop_wait + _SPARE,
        "Umask": 0o077,
        "HardResourceLimits": {"Core": 0},
        "StandardOutPath": logs,
        "StandardErrorPath": logs,
    }
    try:
        return plistlib.dumps(entry, sort_keys=False).decode()
    except ValueError as error:
        raise UserError("A name or path with control characters cannot be in a plist. Choose another.", 2) from error


def _logs(service: Service) -> Path:
    return Path.home() / "Library" / "Logs" / "simplexmcp" / f"{service.label}.log"


def _quoted(word: str, *, variables: bool = False) -> str:
    """A word of a unit file, in which nothing is special; `variables`: where systemd would put in `$NAME`."""
    escaped = "".join(_escaped(character) for character in word)
    return f'"{_specifiers(escaped.replace("$", "$$") if variables else escaped)}"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if character.isprintable() or character == " ":
        return character
    return "".join(rf"\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))


def _specifiers(text: str) -> str:
    return text.replace("%", "%%")


def _write(place: Path, text: str) -> None:
    new = place.with_name(f"{place.name}.new")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "w") as file:
            file.write(text)
        new.replace(place)
    except OSError as error:
        raise UserError(
            f"{printable(str(place))}: {error.strerror}. Repair it, or see what it would be: --print"
        ) from error


def _run(*words: str, left: str, check: bool = True) -> None:
    """One call of the service manager; `left` says what is to be done when it fails. Raises UserError."""
    program = words[0]
    if shutil.which(program) is None:
        raise UserError(f"There is no {program} here. {left}")
    done = run_program(words, _LIMIT, left)
    if check and done.returncode:
        said = printable(" ".join((done.stderr.strip() or done.stdout.strip() or str(done.returncode)).split()))
        raise UserError(f"{printable(' '.join(words))} failed: {said}. {left}")
