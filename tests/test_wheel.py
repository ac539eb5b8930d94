"""The wheel holds all that the package needs to run: templates, scripts and styles beside the code.

Whether it installs into an empty environment and works there is tried by `make wheel`, which needs a package
index; this needs only the build backend.
"""

import os
import subprocess
import sys
import tomllib
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
BACKEND = PROJECT["build-system"]["build-backend"].partition(".")[0]

needs_the_backend = pytest.mark.skipif(
    find_spec(BACKEND) is None and os.environ.get("TARGETDP_REQUIRE_WHEEL") != "1",
    reason=f"no {BACKEND} here, which builds the wheel: pip install {BACKEND}, or make wheel",
)


def files_of_the_package(source: Path) -> set[str]:
    """What a wheel must hold: everything in the tree but what Python and numba leave behind there."""
    return {
        path.relative_to(source).as_posix()
        for path in (source / "targetdp").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_package_is_more_than_code() -> None:
    """Otherwise the next test would have nothing to find."""
    others = {Path(name).suffix for name in files_of_the_package(ROOT / "src")}
    assert {".py", ".html", ".css", ".js"} <= others


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    place = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    run = subprocess.run(  # noqa: S603
        [*command, "--no-index", "--wheel-dir", str(place), str(ROOT)],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    (built,) = place.glob("targetdp-*.whl")
    return zipfile.ZipFile(built)


@needs_the_backend
def test_the_wheel_holds_every_file_of_the_package(wheel: zipfile.ZipFile) -> None:
    held = {name for name in wheel.namelist() if name.startswith("targetdp/")}
    assert held == files_of_the_package(ROOT / "src")


@needs_the_backend
def test_the_wheel_says_what_it_is(wheel: zipfile.ZipFile) -> None:
    (facts,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    text = wheel.read(facts).decode()
    assert f"\nVersion: {PROJECT['project']['version']}\n" in text
    assert "\nLicense-Expression: Apache-2.0\n" in text
    commands = wheel.read(facts.replace("METADATA", "entry_points.txt")).decode()
    assert "targetdp=targetdp.cli:main" in commands.replace(" ", "")
