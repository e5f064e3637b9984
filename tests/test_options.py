from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from simplexmcp.arguments import Serve, serve_options
from simplexmcp.errors import UserError
from simplexmcp.options import ServeOptions, check_core, shown_core, with_password
from simplexmcp.terminal import printable

FINGERPRINT = "LcJUMfVhwD8yxjAiSaDzzGF3-kLG4Uh0Fl_ZIjrRwjI="
NAMES = json.loads((Path(__file__).parent / "data" / "wire" / "valid-names.json").read_text())


def serve(*words: str) -> ServeOptions:
    return serve_options(Serve(prog="simplexmcp serve").parse_args(list(words)))


def refusal(*words: str) -> str:
    with pytest.raises(UserError) as refused:
        serve(*words)
    assert refused.value.code == 2
    assert printable(str(refused.value)) == str(refused.value)
    return str(refused.value)


def test_the_defaults_are_those_of_the_manual(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    options = serve("my-agent")
    assert options == ServeOptions(
        name="my-agent",
        display_name="my-agent",
        data=options.data,
        data_given=False,
        port=5226,
        approve="requests",
        owners=None,
        reset_owners=False,
        expire_hours=23,
        stop_wait=10,
        qr_code="large",
        core="native",
        smp_servers=(),
        xftp_servers=(),
        log_level="warning",
        database_key_file=None,
    )
    assert options.data.is_absolute()
    assert options.data.name == "my-agent"
    assert options.phone_port is None


def test_every_option_is_taken(tmp_path: Path):
    options = serve(
        *("my-agent", "--display-name", "My Agent", "--data", str(tmp_path), "--port", "0", "--approve", "host"),
        *("--reset-owners", "--owners", "--expire-hours", "1", "--stop-wait", "0", "--qr-code", "small"),
        *("--smp-server", f"smp://{FINGERPRINT}@a.example,b.onion:5223", f"smp://{FINGERPRINT}@c.example"),
        *("--xftp-server", f"xftp://{FINGERPRINT}:pa-ss@a.example", "--smp-server", f"smp://{FINGERPRINT}@d.example"),
        *("--log-level", "debug", "--database-key-file", "/k"),
    )
    assert options == ServeOptions(
        name="my-agent",
        display_name="My Agent",
        data=tmp_path,
        data_given=True,
        port=0,
        approve="host",
        owners="",
        reset_owners=True,
        expire_hours=1,
        stop_wait=0,
        qr_code="small",
        core="native",
        smp_servers=(
            f"smp://{FINGERPRINT}@a.example,b.onion:5223",
            f"smp://{FINGERPRINT}@c.example",
            f"smp://{FINGERPRINT}@d.example",
        ),
        xftp_servers=(f"xftp://{FINGERPRINT}:pa-ss@a.example",),
        log_level="debug",
        database_key_file=Path("/k"),
    )


def test_parsing_twice_gives_lists_of_their_own():
    serve("a", "--smp-server", f"smp://{FINGERPRINT}@a.example")
    assert serve("a").smp_servers == ()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--port", "65536"], "--port is 0 to 65535, not 65536."),
        (["--port", "-1"], "--port is 0 to 65535, not -1."),
        (["--port", "x"], "Argument --port: invalid int value: 'x'. See simplexmcp serve --help"),
        (["--expire-hours", "0"], "--expire-hours is 1 to 23, not 0."),
        (["--expire-hours", "24"], "--expire-hours is 1 to 23, not 24."),
        (["--stop-wait", "61"], "--stop-wait is 0 to 60, not 61."),
        (["--por", "1"], 'There is no option "--por". Did you mean --port? See simplexmcp serve --help'),
    ],
)
def test_a_value_that_does_not_fit_gets_one_line(words: list[str], says: str):
    assert refusal("my-agent", *words) == says


@pytest.mark.parametrize("option", ["--approve", "--qr-code", "--log-level"])
def test_a_choice_that_does_not_exist_lists_those_that_do(option: str):
    assert f"{option} is one of " in refusal("my-agent", option, "maybe")


@pytest.mark.parametrize("words", [[], ["--owners", "my-agent"], ["--smp-server"]])
def test_a_missing_name_says_where_it_stands(words: list[str]):
    said = refusal(*words)
    assert "NAME is missing; it stands before --owners" in said or "--smp-server: expected at least one" in said


def test_owners_without_a_list_is_told_from_no_owners():
    assert serve("my-agent").owners is None
    assert serve("my-agent", "--owners").owners == ""
    assert serve("my-agent", "--owners", "3:Alice,7:Bob B").owners == "3:Alice,7:Bob B"
    assert serve("my-agent", "--owners", "3:Doe, Jane, 7:Bob").owners == "3:Doe, Jane, 7:Bob"
    assert serve("--owners=3:Alice", "my-agent").owners == "3:Alice"


@pytest.mark.parametrize("owners", ["Alice", "3", "3:", ":Alice", "03:Alice", "３:Alice", "3:A\n4:B", "0:A"])
def test_an_owner_that_is_not_id_and_name_is_refused(owners: str):
    assert "is not ID:NAME" in refusal("my-agent", f"--owners={owners}")


def test_a_reset_with_a_list_is_refused():
    assert "without a list" in refusal("my-agent", "--reset-owners", "--owners", "3:Alice")


@pytest.mark.parametrize(
    "core",
    [
        *(
            "native",
            "sandbox",
            "ws://127.0.0.1:5225",
            "ws://localhost:5225",
            "ws://[::1]:5225",
            "ws://127.8.0.1:1/agent",
        ),
        *("wss://chat.example", "wss://u:p@chat.example:8443/core"),
    ],
)
def test_cores_that_can_be_reached_safely_are_taken(core: str):
    assert check_core(core) == core


@pytest.mark.parametrize(
    ("core", "says"),
    [
        ("ws://192.168.1.2:5225", "is not on this computer"),
        ("ws://0.0.0.0:5225", "is not on this computer"),
        ("ws://localhost.evil.example:5225", "is not on this computer"),
        ("ws://127.0.0.1@evil.example:5225", "is not on this computer"),
        ("ws://127.0.0.1.evil.example:1", "is not on this computer"),
        ("ws://127.0.0.1", "has no port"),
        *(
            (core, "--core is native, sandbox, ws://HOST:PORT")
            for core in ("", "Native", "http://127.0.0.1:1", "ws://")
        ),
        *(
            (core, "--core is native, sandbox, ws://HOST:PORT")
            for core in (
                "ws://127.0.0.1:99999",
                "ws://127.0.0.1:x",
                "wss://a b",
                "wss://a\n",
                "wss://[::1",
                "wss://a?b",
            )
        ),
    ],
)
def test_other_cores_are_refused(core: str, says: str):
    assert says in refusal("my-agent", f"--core={core}")


@pytest.mark.parametrize("core", ["ws://me:s3cret@evil.example:1", "wss://me:s3cret@a/?x", "ws://me:s3cret@127.0.0.1"])
def test_a_refusal_shows_no_password(core: str):
    assert "s3cret" not in refusal("my-agent", "--core", core)
    assert "s3cret" not in shown_core(core)


def test_the_password_of_a_core_comes_from_a_private_file(tmp_path: Path):
    """S15: what is on the command line is seen by every user of the computer."""
    file = tmp_path / "password"
    file.write_text("s3:cr@t\nmore\n")
    file.chmod(0o600)
    options = serve("my-agent", "--core", "wss://me@chat.example", "--core-password-file", str(file))
    assert options.core == "wss://me:s3%3Acr%40t@chat.example"
    file.chmod(0o640)
    assert "Others may read" in refusal("my-agent", "--core", "wss://me@a", "--core-password-file", str(file))


def test_a_secret_may_be_mounted_as_a_symlink_but_not_be_something_else(tmp_path: Path):
    (tmp_path / "data").write_text("s3cret")
    (tmp_path / "data").chmod(0o400)
    (tmp_path / "password").symlink_to("data")
    words = ("my-agent", "--core", "wss://me@a", "--core-password-file")
    assert serve(*words, str(tmp_path / "password")).core == "wss://me:s3cret@a"
    os.mkfifo(tmp_path / "fifo", 0o600)
    for other in (tmp_path / "fifo", tmp_path, Path("/dev/null")):
        assert "is not a regular file of yours" in refusal(*words, str(other)) or other == tmp_path


@pytest.mark.parametrize("core", ["native", "ws://me@127.0.0.1:1", "wss://chat.example", "wss://me:other@chat.example"])
def test_a_password_file_goes_with_a_user_of_a_proxy_only(core: str):
    with pytest.raises(UserError, match="goes with --core wss://USER@HOST"):
        with_password(core, "s3cret")


@pytest.mark.parametrize("content", [b"", b"\nsecond", b"\xff"])
def test_a_file_without_a_secret_is_refused(tmp_path: Path, content: bytes):
    file = tmp_path / "password"
    file.write_bytes(content)
    file.chmod(0o600)
    refusal("my-agent", "--core", "wss://me@a", "--core-password-file", str(file))
    file.unlink()
    assert "No such file" in refusal("my-agent", "--core", "wss://me@a", "--core-password-file", str(file))


def test_the_phone_is_only_for_a_simulated_network():
    assert serve("my-agent", "--core", "sandbox", "--phone-port", "0").phone_port == 0
    for core in ("native", "ws://127.0.0.1:5225"):
        assert "--phone-port goes with --core sandbox" in refusal("my-agent", "--core", core, "--phone-port", "5231")
    for port in ("-1", "65536", "x"):
        assert "--phone-port" in refusal("my-agent", "--core", "sandbox", "--phone-port", port)


def test_a_key_file_is_for_the_native_core():
    assert "--core native" in refusal("my-agent", "--core", "sandbox", "--database-key-file", "/k")


@pytest.mark.parametrize(
    "relay",
    [
        *("a.example", f"smp://{FINGERPRINT}", "smp://short@a.example", f"xftp://{FINGERPRINT}@a.example"),
        *(f"smp://{FINGERPRINT}@a.example /_delete #1", f"smp://{FINGERPRINT}@a.example\n/quit"),
    ],
)
def test_what_is_no_relay_is_refused(relay: str):
    assert "is not smp://FINGERPRINT@HOST" in refusal("my-agent", "--smp-server", relay)


def test_the_same_relay_twice_is_one():
    relay = f"xftp://{FINGERPRINT}@a.example"
    assert serve("my-agent", "--xftp-server", relay, relay).xftp_servers == (relay,)


@pytest.mark.parametrize(("name", "valid"), NAMES.items())
def test_display_names_are_those_of_the_core(name: str, valid: str):
    if name == valid and name:
        assert serve("my-agent", f"--display-name={name}").display_name == name
    else:
        said = refusal("my-agent", f"--display-name={name}")
        assert "doesn't fit as a name in SimpleX" in said
        assert f'--display-name "{valid}" does.' in said if valid else "give another" in said


def test_an_agent_name_that_can_not_be_shown_asks_for_another_name_in_simplex():
    assert refusal("it's me") == (
        'Agent name "it\'s me" doesn\'t fit as a name in SimpleX; --display-name "its me" does.'
    )
    assert serve("it's me", "--display-name", "It is me").name == "it's me"
