"""Which paths are refused, and that no other spelling of one gets through (case S30)."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplexmcp.files import paths
from simplexmcp.files.paths import Rules, folded, malformed, refusal, within

HOME = Path("/home/alice")
DATA = HOME / ".local/share/simplexmcp/agent"
RULES = Rules(DATA, HOME)


@pytest.mark.parametrize(
    "path",
    [
        "/home/alice/trail.jpg",
        "/home/alice/notes/report.pdf",
        "/tmp/build.log",
        "/home/alice/project/src/library/mail/Parser.php",
        "/home/alice/.config/nvim/init.lua",
        "/home/alice/chat_history.txt",
        "/home/alice/env.txt",
        "/home/alice/environment.md",
        "/home/alice/keys.txt",
        "/home/alice/monkey.jpg",
        "/home/alice/id_rsa.pub",
        "/home/alice/.ssh-notes/readme.txt",
        "/home/alice/procedures/proc.txt",
        "/device/dev.txt",
        f"{DATA}/files/group-15/7.pdf",
        f"{DATA}/files/group-15-left-2026-12-01/7.pdf",
        "/srv/other/.local/share/notes.txt",
    ],
)
def test_a_usual_file_is_not_refused(path: str):
    assert malformed(path) is None
    assert refusal(path, RULES) is None


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/proc/self/environ", "of the system"),
        ("/dev/zero", "of the system"),
        ("/dev/shm/x", "of the system"),
        ("/sys/class/dmi/id/product_uuid", "of the system"),
        ("/run/user/1000/x", "of the system"),
        ("/etc/shadow", "secrets of the system"),
        ("/private/etc/master.passwd", "secrets of the system"),
        ("/run/secrets/token", "secrets of the system"),
        ("/home/alice/.ssh/id_ed25519", "keys or passwords"),
        ("/home/alice/.ssh/config", "keys or passwords"),
        ("/home/bob/.ssh/known_hosts", "keys or passwords"),
        ("/backup/2026/home/alice/.gnupg/pubring.kbx", "keys or passwords"),
        ("/home/alice/.password-store/bank.gpg", "keys or passwords"),
        ("/home/alice/.local/share/keyrings/login.keyring", "keys or passwords"),
        ("/Users/alice/Library/Keychains/login.keychain-db", "keys or passwords"),
        ("/home/alice/.config/keepassxc/keepassxc.ini", "keys or passwords"),
        ("/home/alice/.aws/config", "credentials"),
        ("/home/alice/.kube/config", "credentials"),
        ("/home/alice/.docker/config.json", "credentials"),
        ("/home/alice/.config/gh/hosts.yml", "credentials"),
        ("/home/alice/.config/gcloud/access_tokens.db", "credentials"),
        ("/home/alice/.config/rclone/rclone.conf", "credentials"),
        ("/home/alice/.local/share/simplex/simplex_v1_chat.db", "credentials"),
        ("/home/alice/.mozilla/firefox/x.default/prefs.js", "browser profile"),
        ("/home/alice/.config/google-chrome/Default/History", "browser profile"),
        ("/home/alice/.config/chromium/Local State", "browser profile"),
        ("/home/alice/snap/firefox/common/x", "browser profile"),
        ("/Users/alice/Library/Application Support/Google/Chrome/Default/Login Data", "browser profile"),
        ("/home/alice/project/.env", "environment variables"),
        ("/home/alice/project/.env.production", "environment variables"),
        ("/home/alice/project/prod.env", "environment variables"),
        ("/home/alice/project/.envrc", "environment variables"),
        ("/home/alice/server.pem", "key file"),
        ("/home/alice/server.KEY", "key file"),
        ("/home/alice/passwords.kdbx", "key file"),
        ("/home/alice/putty.ppk", "key file"),
        ("/home/alice/backup/id_rsa", "key file"),
        ("/home/alice/backup/id_ed25519.bak", "key file"),
        ("/home/alice/backup/ssh_host_rsa_key", "key file"),
        ("/home/alice/backup/cookies.sqlite", "key file"),
        ("/home/alice/.netrc", "passwords or tokens"),
        ("/home/alice/.git-credentials", "passwords or tokens"),
        ("/home/alice/.npmrc", "passwords or tokens"),
        ("/home/alice/.pgpass", "passwords or tokens"),
        ("/home/alice/.claude.json", "passwords or tokens"),
        ("/home/alice/.claude.json.backup", "passwords or tokens"),
        ("/home/alice/.claude/.credentials.json", "passwords or tokens"),
        ("/home/alice/.bash_history", "history"),
        ("/home/alice/.zsh_history", "history"),
        ("/home/alice/.python_history", "history"),
        ("/home/alice/.local/share/fish/fish_history", "history"),
        (f"{DATA}/token", "own data folder"),
        (f"{DATA}/simplex_chat.db", "own data folder"),
        (f"{DATA}/audit.jsonl", "own data folder"),
        (f"{DATA}/tmp/x", "own data folder"),
        (f"{DATA}/forwarded/group-15/7.pdf", "own data folder"),
        (f"{DATA}/files", "own data folder"),
        (f"{DATA}/FILES/group-15/7.pdf", "own data folder"),
        (f"{DATA}/files/sent/send-x/a.jpg", "being sent"),
        (f"{DATA}/files/SENT/send-x/a.jpg", "being sent"),
        (f"{DATA}/files/group-15/7.held.m4a", "owner's approval"),
        (f"{DATA}/files/group-15/7.held-old.m4a", "owner's approval"),
        (f"{DATA}/files/group-15/7.held-old-2.m4a", "owner's approval"),
        (f"{DATA}/files/group-15/7.held", "owner's approval"),
        ("/home/alice/.m2/settings.xml", "passwords or tokens"),
        ("/home/alice/.gradle/gradle.properties", "passwords or tokens"),
        ("/home/alice/.config/pip/pip.conf", "passwords or tokens"),
        ("/home/alice/.databrickscfg", "passwords or tokens"),
        ("/home/alice/.local/share/opencode/auth.json", "passwords or tokens"),
        ("/home/alice/.config/filezilla/sitemanager.xml", "credentials"),
        ("/home/alice/.config/composer/auth.json", "credentials"),
        ("/home/alice/.composer/auth.json", "credentials"),
        ("/home/alice/.snowflake/config.toml", "credentials"),
        ("/home/alice/.config/opencode/opencode.json", "credentials"),
        ("/home/alice/.local/share/remmina/x.remmina", "credentials"),
        ("/home/alice/.purple/accounts.xml", "credentials"),
        ("/home/alice/.zsh_sessions/x.history", "history"),
        ("/home/alice/.bash_sessions/a.history", "history"),
        ("/home/alice/.local/share/atuin/history.db", "history"),
        ("/home/alice/.config/nushell/history.txt", "history"),
        ("/home/alice/.local/state/python_history", "history"),
        ("/home/alice/.config/psysh/psysh_history", "history"),
        ("/home/alice/.floorp/x/places.sqlite", "browser profile"),
        ("/home/alice/.config/thorium/Default/History", "browser profile"),
        ("/srv/other-agent/simplex_chat.db", "SimpleX"),
        ("/backup/simplex_agent.db-wal", "SimpleX"),
        ("/backup/simplex_v1_agent.db.bak", "SimpleX"),
        (f"{DATA}/files/group-15/7.pem", "key file"),
        ("/home/alice/.local/share/simplexmcp/other/files/group-1/7.pdf", "credentials"),
    ],
)
def test_a_file_of_secrets_is_refused_with_a_reason(path: str, why: str):
    assert why in (refusal(path, RULES) or "")


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("", "absolute"),
        ("trail.jpg", "absolute"),
        ("~/trail.jpg", "absolute"),
        ("file:///etc/passwd", "absolute"),
        ("/home/alice/../bob/x", "`..`"),
        ("/home/./alice/x", "`..`"),
        ("/home/alice/..", "`..`"),
        ("/home/alice/", "folder"),
        ("/", "folder"),
        ("/home/a\0b", "NUL"),
        ("/home/a\ud800b", "UTF-8"),
        ("/" + "a" * 5000, "longer"),
    ],
)
def test_what_is_no_plain_absolute_path_is_refused(path: str, why: str):
    assert why in (malformed(path) or "")


SECRETS = [
    "/home/alice/.ssh/config",
    "/home/alice/.config/gh/hosts.yml",
    "/home/alice/Library/Safari/History.db",
    "/home/alice/x/.env",
    "/home/alice/x/server.pem",
    "/home/alice/.bash_history",
    "/proc/self/environ",
    str(DATA / "token"),
    str(DATA / "files/sent/send-a/x"),
    str(DATA / "forwarded/contact-4/7.pdf"),
]


@given(st.sampled_from(SECRETS), st.data())
def test_no_other_spelling_of_a_refused_path_gets_through(path: str, data: st.DataObject):
    spelled = "".join(
        data.draw(st.sampled_from([char, char.upper(), char.lower(), char + "\u200c", char + "\u00ad"]))
        if char != "/"
        else data.draw(st.sampled_from(["/", "//"]))
        for char in path
    )
    assert refusal(spelled, RULES) is not None


@given(st.sampled_from(SECRETS), st.data())
def test_no_way_to_write_a_path_leads_past_a_rule(path: str, data: st.DataObject):
    parts: list[str] = []
    for part in path.split("/")[1:]:
        form = data.draw(st.sampled_from(("NFC", "NFD", "NFC")))
        written = "".join(
            data.draw(st.sampled_from((char, char.upper()))) for char in unicodedata.normalize(form, part)
        )
        unseen = data.draw(st.sampled_from(("", "\u200b", "\u2060", "\ufeff", "\u202e", "\x01")))
        detour = data.draw(st.sampled_from(("", "", "./", "/", "x/../", "..//", "\u200b./")))
        parts.append(f"{detour}{written}{unseen}")
    start, end = (
        data.draw(st.sampled_from(("/", "/", "//", "", "./", "~/", "file:///"))),
        data.draw(st.sampled_from(("", "/", "/."))),
    )
    spelled = start + "/".join(parts) + end
    assert malformed(spelled) is not None or refusal(spelled, RULES) is not None


@given(st.text(st.characters(exclude_categories=("Cs", "Cc", "Cf"), exclude_characters="/"), min_size=1, max_size=20))
def test_a_data_folder_is_found_in_each_unicode_form_and_case(name: str):
    rules = Rules(Path("/srv") / name, HOME)
    for form in ("NFC", "NFD"):
        spelled = unicodedata.normalize(form, name)
        assert refusal(f"/srv/{spelled}/token", rules) is not None
        assert refusal(f"/srv/{spelled.casefold()}/token", rules) is not None


@given(
    st.sampled_from([folder for parts in paths._PARTS.values() for folder in parts if folder[0].startswith(".")]),
    st.lists(st.sampled_from(["home", "bob", "mnt", "backup 2", "ü"]), max_size=4),
    st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="/"), min_size=1, max_size=20),
)
def test_a_folder_of_secrets_is_refused_wherever_it_lies(folder: tuple[str, ...], above: list[str], name: str):
    assert refusal("/" + "/".join([*above, *folder, name]), RULES) is not None


def test_a_data_folder_in_a_folder_of_secrets_still_lets_received_files_be_sent():
    rules = Rules(Path("/home/alice/.secrets/agent"), HOME)
    assert refusal("/home/alice/.secrets/agent/files/contact-4/7.pdf", rules) is None
    assert refusal("/home/alice/.secrets/other", rules) is not None


def test_a_path_is_within_a_folder_only_by_whole_parts():
    assert within("/srv/data/x", Path("/srv/data"))
    assert within("/srv/data", Path("/srv/data"))
    assert not within("/srv/data2/x", Path("/srv/data"))


def test_the_first_folder_of_a_mac_is_not_compared():
    assert folded("/private/tmp/X") == folded("/tmp/x")


def test_the_roots_name_the_users_own_folders_of_secrets_and_those_of_the_system():
    assert HOME / ".ssh" in RULES.roots
    assert HOME / "Library/Application Support/Google/Chrome" in RULES.roots
    assert Path("/proc") in RULES.roots


@pytest.mark.parametrize(
    "path", ["/run-time/core.key.txt", "/etc/simplexmcp/database-key", "/ETC/simplexmcp/Database-Key"]
)
def test_a_file_with_a_secret_of_the_server_is_refused(path: str):
    rules = Rules(DATA, HOME, secrets=(Path("/etc/simplexmcp/database-key"),))
    assert (refusal(path, rules) is None) == path.startswith("/run-time")
