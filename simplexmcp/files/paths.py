"""Which files an agent may not send, by their path: the rules as data. Pure.

A path is compared part by part, in one Unicode form and without regard to case or to characters that some file systems
ignore: what names the same file anywhere is the same here. Folders that hold secrets are found wherever they are, also
in a backup of a home folder. The rules stop mistakes and tricks, not a process that may read the same files: it could
copy them first. That is why an owner approves each file.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

__all__ = ["Rules", "folded", "malformed", "refusal", "within"]

_PATH_BYTES = 4096

# Folders, as consecutive parts of a path. What is in them, at any depth, is not sent.
_FOLDERS: dict[str, str] = {
    "a folder of keys or passwords": """
        .ssh .gnupg .pki .password-store .secrets .keychain .age .config/age .config/sops .config/sops/age
        .local/share/keyrings .local/share/kwalletd .local/share/gopass .config/gopass .gnome2/keyrings
        .kde/share/apps/kwallet Library/Keychains .config/op .op .config/1Password .1password .config/Bitwarden
        .config/Bitwarden CLI .config/keepassxc .config/KeePass .cache/keepassxc .config/KeeWeb .config/pass .lastpass
        Library/Application Support/1Password Library/Application Support/Bitwarden
        Library/Group Containers/2BUA8C4S2C.com.1password
        .config/Yubico .electrum .bitcoin .ethereum/keystore .config/solana .vault .step .putty .config/putty
        .local/share/wallets .monero .config/Ledger Live
    """,
    "a folder of credentials or private data": """
        .aws .azure .kube .docker .config/containers .config/gcloud .gcloud .config/gh .config/hub .config/glab-cli
        .config/git .config/gitlab .config/doctl .config/rclone .config/helm .config/heroku .config/netlify
        .config/stripe .config/configstore .config/linode-cli .config/hcloud .config/scw .config/cloudflared
        .cloudflared .config/.wrangler .config/vercel .config/com.vercel.cli .local/share/com.vercel.cli .fly
        .config/github-copilot .config/op .config/Code/User/globalStorage .config/Slack .config/discord .config/Element
        .config/Signal .local/share/TelegramDesktop .local/share/signal-cli .config/simplex .local/share/simplex
        .simplex .local/share/simplexmcp .config/openai .config/anthropic .config/Claude .codex .gemini .terraform.d
        .oci .bluemix .ibmcloud .config/neonctl .config/turso .config/fly .pulumi .chef .config/msmtp .config/mutt
        .thunderbird .config/evolution .local/share/evolution Library/Mail Library/Messages Library/Cookies
        .config/ngrok .config/ngrok2 .ngrok2 .config/tailscale .config/wireguard .config/nix/secrets .config/jgit
        .local/share/containers/auth Library/Application Support/Claude Library/Application Support/Signal
        Library/Application Support/simplex Library/Application Support/simplexmcp
        Library/Application Support/Slack Library/Application Support/gcloud
        .config/filezilla .filezilla .config/composer .composer .snowflake .config/snowflake .config/opencode
        .local/share/remmina .config/remmina .remmina .purple
    """,
    "a place of passwords or tokens": """
        .m2/settings.xml .m2/settings-security.xml .gradle/gradle.properties .config/pip/pip.conf .pip/pip.conf
        .local/share/opencode/auth.json
    """,
    "a history of commands": """
        .zsh_sessions .bash_sessions .local/share/atuin .config/nushell/history.txt .config/nushell/history.sqlite3
        .local/state/python_history
    """,
    "a browser profile": """
        .mozilla .librewolf .waterfox .tor-browser .config/google-chrome .config/google-chrome-beta
        .config/google-chrome-unstable .config/chromium .config/BraveSoftware .config/microsoft-edge
        .config/microsoft-edge-dev .config/vivaldi .config/opera .config/yandex-browser .config/falkon
        .config/qutebrowser .local/share/qutebrowser .config/mozilla .config/librewolf .cache/mozilla
        .floorp .config/thorium
        .cache/google-chrome .cache/chromium .cache/BraveSoftware .local/share/torbrowser .local/share/epiphany
        snap/firefox snap/chromium snap/brave .var/app/org.mozilla.firefox .var/app/com.google.Chrome
        .var/app/org.chromium.Chromium .var/app/com.brave.Browser .var/app/com.microsoft.Edge .config/zen .zen
        Library/Safari Library/Containers/com.apple.Safari Library/Application Support/Firefox
        Library/Application Support/Google/Chrome Library/Application Support/Chromium
        Library/Application Support/BraveSoftware Library/Application Support/Microsoft Edge
        Library/Application Support/Vivaldi Library/Application Support/Arc
        Library/Application Support/com.operasoftware.Opera
    """,
}
# Folders and files of the system, from its root.
_SYSTEM: dict[str, str] = {
    "is no file of a user, but one of the system": "/proc /sys /dev /run/user /var/run/user",
    "holds secrets of the system": """
        /run/secrets /run/credentials /etc/ssh /etc/ssl/private /etc/pki/tls/private /etc/wireguard /etc/openvpn
        /etc/letsencrypt /etc/NetworkManager/system-connections /etc/sudoers.d /etc/krb5.keytab /etc/ipsec.d /etc/ppp
        /etc/shadow /etc/shadow- /etc/gshadow /etc/gshadow- /etc/sudoers /etc/master.passwd /etc/security/opasswd
        /var/lib/sss /var/db/dslocal /var/lib/docker /var/lib/kubelet /var/run/secrets
        /var/spool/cron /var/spool/mail /var/mail /etc/kubernetes /etc/rancher /Library/Keychains
    """,
}
_FILES: dict[str, re.Pattern[str]] = {
    "a file of environment variables": re.compile(r"\.env(?:[.\-_].*)?|.+\.env|\.envrc", re.DOTALL),
    "a key file": re.compile(
        r".+\.(?:pem|key|p12|pfx|p8|pk8|jks|jceks|keystore|bks|ppk|kdbx?|agekey|gpgkey|ovpn|keytab|keychain|keychain-db|"
        r"psafe3|opvault|agilekeychain|1pux|wallet|mobileconfig|secring)|"
        r"(?:id|ssh_host)_(?:rsa|dsa|ecdsa|ed25519|ecdsa_sk|ed25519_sk|xmss)(?:_key)?(?:[.\-_~](?!pub$).*)?|"
        r"identity|secring\.gpg|wallet\.dat|trustdb\.gpg|\.vault-token|\.vault_pass.*|key4\.db|logins\.json|login data|"
        r"cookies(?:\.sqlite|\.binarycookies)?|\.xauthority|\.iceauthority|keystore\.properties",
        re.DOTALL,
    ),
    "a file of passwords or tokens": re.compile(
        r"[._]netrc(?:\.gpg)?|\.git-credentials|\.pgpass|pgpass\.conf|\.my\.cnf|\.mylogin\.cnf|\.npmrc|\.yarnrc(?:\.yml)?|"
        r"\.pypirc|\.gem_credentials|\.dockercfg|\.dockerconfigjson|kubeconfig|\.kubeconfig|\.claude\.json.*|"
        r"\.credentials(?:\.json)?|\.htpasswd|\.s3cfg|\.boto|\.passwd-s3fs|\.smbcredentials|\.fetchmailrc|\.msmtprc|"
        r"\.muttrc|\.mbsyncrc|\.offlineimaprc|\.terraformrc|terraform\.rc|.*\.tfstate(?:\.backup)?|\.erlang\.cookie|"
        r"application_default_credentials\.json|client_secret.*\.json|service[-_]?account.*\.json|oauth_creds\.json|"
        r"credentials|credentials\.(?:json|toml|ya?ml|xml|db)|secrets?\.(?:json|toml|ya?ml|env)|master\.key|"
        r"settings-security\.xml|\.databrickscfg|\.cargo-credentials|\.rclone\.conf|\.dbshell|\.ngrok\.yml",
        re.DOTALL,
    ),
    "a history of commands": re.compile(
        r"\.[a-z0-9_.\-]*_history(?:[\-.~].*)?|\.histfile|\.history|\.zhistory|\.lesshst|\.viminfo|fish_history|"
        r"psysh_history|consolehost_history\.txt|\.wget-hsts",
        re.DOTALL,
    ),
    "a database of SimpleX": re.compile(r"(?:.*simplex.*|files)_(?:chat|agent)\.db(?:[\-.].*)?", re.DOTALL),
}

_HELD = re.compile(r"[0-9]+\.held(?:[-.].*)?", re.DOTALL)  # what the core received without a request


@dataclass(frozen=True)
class Rules:
    """What the rules are about: the data folder of this agent (absolute), the home folder of its user, and files with
    secrets of the server (real paths)."""

    data: Path
    home: Path
    secrets: tuple[Path, ...] = ()

    @cached_property
    def received(self) -> Path:
        """The folder of files that came with messages: they may be sent on."""
        return self.data / "files"

    @cached_property
    def sent(self) -> Path:
        """The folder of copies that are being sent: they are not sent again."""
        return self.data / "files" / "sent"

    @cached_property
    def roots(self) -> tuple[Path, ...]:
        """Folders that are refused whatever name leads to them: to be compared by file identity."""
        system = [Path(word) for words in _SYSTEM.values() for word in _words(words)]
        return tuple([self.home.joinpath(*part) for parts in _PARTS.values() for part in parts] + system)


def malformed(path: str) -> str | None:
    """Why `path` is no absolute path that can be opened part by part; None when it is one."""
    if not path.startswith("/"):
        return "is not an absolute path"
    if "\0" in path:
        return "has a NUL character"
    try:
        size = len(path.encode())
    except UnicodeEncodeError:
        return "is not valid UTF-8"
    if size > _PATH_BYTES:
        return f"is longer than {_PATH_BYTES} bytes"
    parts = path.split("/")[1:]
    if ".." in parts or "." in parts:
        return "has `.` or `..` as a part; give the real path"
    return "names a folder" if not parts[-1] else None


def refusal(path: str, rules: Rules) -> str | None:
    """Why the file at the real path `path` is never sent, as the end of "file: PATH …"; None when no rule forbids
    it."""
    parts = folded(path)
    if any(parts == folded(str(secret)) for secret in rules.secrets):
        return "holds a secret of this server"
    if within(path, rules.data):
        if not path.startswith(f"{rules.received}/"):
            return "is in the agent's own data folder"
        if within(path, rules.sent):
            return "is a copy of a file that is being sent"
        if _HELD.fullmatch(parts[-1]):
            return "was not downloaded with your owner's approval"
        parts = parts[len(folded(str(rules.received))) :]  # what is above is the user's choice, and no secret of others
    else:
        for what, roots in _SYSTEM_PARTS.items():
            if any(parts[: len(root)] == root for root in roots):
                return what
    for what, folders in _PARTS_FOLDED.items():
        for folder in folders:
            if _contains(parts, folder, len(folded(str(rules.home)))):
                return f"is in {what}"
    for what, pattern in _FILES.items():
        if parts and pattern.fullmatch(parts[-1]):
            return f"is {what} by its name"
    return None


def within(path: str, folder: Path) -> bool:
    """True when `path` is `folder` or below it, whatever its case and Unicode form."""
    root = folded(str(folder))
    return folded(path)[: len(root)] == root


def folded(path: str) -> tuple[str, ...]:
    """The parts of an absolute path in the form in which they are compared. The folder `/private` of macOS, which
    `/etc`, `/tmp` and `/var` lead to, is left out."""
    parts = tuple(_fold(part) for part in path.split("/") if part)
    return parts[1:] if len(parts) > 1 and parts[0] == "private" else parts


def _fold(part: str) -> str:
    """Canonical caseless form; unseen characters go, as HFS+ ignores them."""
    seen = "".join(char for char in part if unicodedata.category(char) not in ("Cf", "Cc"))
    for _ in range(2):  # folding can undo a normal form, once
        seen = unicodedata.normalize("NFC", unicodedata.normalize("NFD", seen).casefold())
    return seen


def _contains(parts: tuple[str, ...], folder: tuple[str, ...], home: int) -> bool:
    """True when `folder` is in the path; one without a dot has a plain name, which counts only in a home folder: below
    two parts, such as `/home/alice`, or as many as the user's own has."""
    size = len(folder)
    places = range(len(parts) - size + 1) if folder[0].startswith(".") else {2, home}
    return any(parts[at : at + size] == folder for at in places)


def _words(text: str) -> list[str]:
    """Folders separated by blanks; a blank inside a name is before a word that is no path of its own."""
    words: list[str] = []
    for line in text.split("\n"):
        words += [word for word in re.split(r"\s+(?=[./]|Library/|snap/)", line.strip()) if word]
    return words


_PARTS = {what: [PurePosixPath(word).parts for word in _words(words)] for what, words in _FOLDERS.items()}
_PARTS_FOLDED = {what: [tuple(map(_fold, part)) for part in parts] for what, parts in _PARTS.items()}
_SYSTEM_PARTS = {what: [folded(word) for word in _words(words)] for what, words in _SYSTEM.items()}
