"""Private keys are found by what a file holds, and texts about keys are not taken for keys (case S30)."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplexmcp.files.keys import KeyScan

if TYPE_CHECKING:
    from pathlib import Path

BODY = base64.b64encode(bytes(range(200))).decode()


def pem(label: str, headers: str = "") -> bytes:
    lines = "\n".join(BODY[at : at + 64] for at in range(0, len(BODY), 64))
    return f"-----BEGIN {label}-----\n{headers}{lines}\n-----END {label}-----\n".encode()


KEYS = {
    "pkcs8": pem("PRIVATE KEY"),
    "rsa": pem("RSA PRIVATE KEY"),
    "encrypted rsa": pem("RSA PRIVATE KEY", "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123456789ABCDEF\n\n"),
    "encrypted": pem("ENCRYPTED PRIVATE KEY"),
    "openssh": pem("OPENSSH PRIVATE KEY"),
    "pgp": pem("PGP PRIVATE KEY BLOCK", "Version: GnuPG v2\nComment: none of yours\n\n"),
    "pgp without headers": pem("PGP PRIVATE KEY BLOCK", "\n"),
    "ssh2": f"---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\n{BODY}\n".encode(),
    "indented": b"key: |\n" + b"".join(b"    " + line + b"\n" for line in pem("PRIVATE KEY").splitlines()),
    "crlf": pem("PRIVATE KEY").replace(b"\n", b"\r\n"),
    "json": json.dumps({"type": "service_account", "private_key": pem("PRIVATE KEY").decode()}).encode(),
    "utf-16": pem("PRIVATE KEY").decode().encode("utf-16"),
    "utf-16 be": pem("PRIVATE KEY").decode().encode("utf-16-be"),
    "age": b"# created: 2026-11-30\nAGE-SECRET-KEY-1" + b"QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L" * 2 + b"\n",
    "age in small letters": b"age-secret-key-1" + b"qpzry9x8gf2tvdw0s3jn54khce6mua7l" * 2,
    "putty": b"PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\n",
    "wireguard": b"[Interface]\nPrivateKey = " + base64.b64encode(bytes(32)) + b"\n",
    "minisign": b"untrusted comment: minisign encrypted secret key\n" + BODY.encode(),
    "gnupg file": b"Key: (protected-private-key (ecc (curve Ed25519)))",
    "gnupg canonical": b"(21:protected-private-key(3:rsa(1:n257:",
    "openssh binary": b"openssh-key-v1\0" + bytes(40),
    "pkcs8 der": bytes.fromhex("302e020100300506032b657004220420") + bytes(range(32)),
    "pkcs1 der": bytes.fromhex("308204a30201000282010100") + bytes(range(200)),
    "sec1 der": bytes.fromhex("30770201010420") + bytes(range(100)),
    "pkcs12": bytes.fromhex("308209c60201033082098c") + bytes(range(200)),
    "java": bytes.fromhex("feedfeed0000000200000001") + bytes(40),
    "keepass": bytes.fromhex("03d9a29a67fb4bb5") + bytes(40),
    "pgp binary": bytes.fromhex("9503980465f0000001") + bytes(range(200)),
    "pgp binary, new format": bytes.fromhex("c5580465f0000016") + bytes(range(90)),
}


@pytest.mark.parametrize("name", KEYS)
def test_a_key_is_found(name: str):
    assert KeyScan().feed(KEYS[name])


TEXTS_ABOUT_KEYS = {
    "documentation": b"A key begins with -----BEGIN RSA PRIVATE KEY----- and ends with -----END RSA PRIVATE KEY-----.",
    "source code": b'if line == "-----BEGIN OPENSSH PRIVATE KEY-----":\n    raise ValueError("a key")\n',
    "cut out": b"-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----\n",
    "certificate": pem("CERTIFICATE"),
    "public key": pem("PUBLIC KEY"),
    "pgp message": pem("PGP MESSAGE"),
    "pgp public": pem("PGP PUBLIC KEY BLOCK"),
    "age recipient": b"age1" + b"qpzry9x8gf2tvdw0s3jn54khce6mua7l" * 2,
    "ssh public": b"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIK alice@host\n",
    "certificate der": bytes.fromhex("308203b53082029da0030201020214") + bytes(range(200)),
    "pdf": b"%PDF-1.7\n" + bytes(range(256)),
    "png": b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
    "zeros": bytes(5000),
    "gnupg program": b"\x7fELF\0\0(private-key (rsa (n %m)))\0(21:protected-private-key(3:rsa\0",
    "empty": b"",
}


@pytest.mark.parametrize("name", TEXTS_ABOUT_KEYS)
def test_what_is_only_about_keys_is_no_key(name: str):
    assert KeyScan().feed(TEXTS_ABOUT_KEYS[name]) is None


@pytest.mark.parametrize("name", ["pkcs8", "encrypted rsa", "openssh", "age", "putty", "json", "wireguard"])
@given(data=st.data())
def test_a_key_is_found_wherever_it_begins_and_the_chunks_end(name: str, data: st.DataObject):
    before = data.draw(st.integers(0, 3000))
    whole = b"a line of text\n" * (before // 15) + b"\n" + KEYS[name] + b"\n" + b"more text\n" * 500
    cut = data.draw(st.integers(1, len(whole)))
    scan = KeyScan()
    assert scan.feed(whole[:cut]) or scan.feed(whole[cut:])


BEGIN = b"-----BEGIN RSA PRIVATE KEY-----"
BUSY = {
    "headers that look like one another": BEGIN + (b"A: " + b" " * 190) * 5000,
    "headers without an end": BEGIN + b"A: A: " * 170_000,
    "many beginnings": BEGIN * 33_000,
    "blanks": BEGIN + b" \\n" * 340_000,
    "lines": b"\n" * 1_000_000 + b"PrivateKey" + b"\n" * 40_000,
    "assignments": b"PrivateKey" * 100_000 + b" =" * 10_000,
    "comment": b"untrusted comment: " + b"secret key" * 100_000,
    "letters": BEGIN + b"A" * 15 + b"-" + b"A-" * 500_000,
    "wide": BEGIN.decode().encode("utf-16") + b"A\0:\0 \0" * 170_000,
    "s-expressions": b"Key: (private-key" * 60_000,
}


@pytest.mark.parametrize("name", BUSY)
def test_no_file_keeps_the_search_busy(name: str):
    begun = time.process_time()
    KeyScan().feed(BUSY[name])
    assert time.process_time() - begun < 2


@given(st.binary(max_size=3000))
def test_any_bytes_are_taken(data: bytes):
    KeyScan().feed(data)


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs ssh-keygen")
@pytest.mark.parametrize(("kind", "form"), [("ed25519", "RFC4716"), ("rsa", "PEM"), ("ecdsa", "PKCS8")])
def test_a_key_that_ssh_keygen_made_is_found_and_its_public_half_is_not(tmp_path: Path, kind: str, form: str):
    command = ["ssh-keygen", "-q", "-t", kind, "-m", form, "-N", "", "-f", str(tmp_path / "k")]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    assert KeyScan().feed((tmp_path / "k").read_bytes())
    assert KeyScan().feed((tmp_path / "k.pub").read_bytes()) is None


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
@pytest.mark.parametrize("form", ["PEM", "DER"])
@pytest.mark.parametrize("kind", [["RSA", "-pkeyopt", "rsa_keygen_bits:1024"], ["ED25519"]])
def test_a_key_that_openssl_made_is_found(tmp_path: Path, form: str, kind: list[str]):
    command = ["openssl", "genpkey", "-algorithm", *kind, "-outform", form, "-out", str(tmp_path / "k")]
    subprocess.run(command, check=True, capture_output=True)
    assert KeyScan().feed((tmp_path / "k").read_bytes())
