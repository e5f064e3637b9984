"""The wheel: everything that an installation needs is in it, where shells and man look."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import simplexmcp
from simplexmcp.completion import FILES

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder], cwd=ROOT, check=True, timeout=60,
        capture_output=True,
    )  # fmt: skip
    (file,) = folder.iterdir()
    return file


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an installation, without what it depends on."""
    prefix = tmp_path_factory.mktemp("prefix")
    # Without --ignore-installed, pip takes out what this environment has.
    options = ["--ignore-installed", "--no-deps", "--no-index", "--no-compile", "--prefix", prefix]
    subprocess.run(
        [sys.executable, "-m", "pip", "install", *options, wheel], check=True, timeout=60, capture_output=True
    )
    return prefix


def test_the_wheel_holds_every_file_of_the_package(wheel: Path):
    held = set(zipfile.ZipFile(wheel).namelist())
    files = [path for path in (ROOT / "simplexmcp").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert {str(path.relative_to(ROOT)) for path in files} <= held
    assert {f"simplexmcp/completions/{name}" for name in FILES.values()} <= held
    assert not [name for name in held if name.startswith(("tests/", "docs/", "benchmarks/"))]


def test_the_pages_are_where_man_looks(installed: Path):
    pages = {path.name for path in (installed / "share" / "man" / "man1").iterdir()}
    assert pages == {path.name for path in (ROOT / "man").iterdir()}


@pytest.mark.parametrize(
    ("shell", "place"),
    [
        ("bash", "bash-completion/completions/simplexmcp"),
        ("zsh", "zsh/site-functions/_simplexmcp"),
        ("fish", "fish/vendor_completions.d/simplexmcp.fish"),
    ],
)
def test_the_completions_are_where_the_shells_look(shell: str, place: str, installed: Path):
    assert (installed / "share" / place).read_text() == (ROOT / "completions" / FILES[shell]).read_text()


def test_the_installed_program_runs_from_its_own_files(installed: Path):
    (packages,) = installed.rglob("site-packages")
    env = {**os.environ, "PYTHONPATH": str(packages)}
    script = "import simplexmcp; print(simplexmcp.__file__)"
    done = subprocess.run([sys.executable, "-c", script], env=env, cwd="/", capture_output=True, text=True, check=True)
    assert done.stdout.startswith(str(packages))
    done = subprocess.run(
        [installed / "bin" / "simplexmcp", "completion", "bash"], env=env, cwd="/", capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert done.stdout == (ROOT / "completions" / "simplexmcp.bash").read_text()


def test_the_package_says_what_it_is(wheel: Path):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = archive.read(name).decode()
    assert re.search(rf"(?m)^Version: {re.escape(simplexmcp.__version__)}$", metadata)
    assert "mcp-name: " in metadata  # the registry reads the README there
