"""An engine declares itself: one new file, and settings, flags, completion and the job know it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.release import ASKED, settings, write_parquet, write_scales
from targetdp._core import declared
from targetdp.release._engine._base import engine_of

NEW = '''
"""The engine for one machine, under another name."""

from targetdp.release._engine._base import named
from targetdp.release._engine._local import run


@named("elsewhere")
def run_elsewhere(table, target, holder, progress):
    print("an engine of somebody else's")
    return run(table, target, holder, progress)
'''
BY_COMMAND = """
import sys
import targetdp.release._engine as engines

engines.__path__.append(sys.argv.pop(1))
from targetdp.cli import main

main()
"""


def by_command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command of a package that has one more file in its folder of engines."""
    (folder / "engines").mkdir(exist_ok=True)
    (folder / "engines" / "_elsewhere.py").write_text(NEW)
    return subprocess.run(  # noqa: S603 (our own interpreter and script)
        [sys.executable, "-c", BY_COMMAND, str(folder / "engines"), *words],
        capture_output=True, text=True, check=False, timeout=120, cwd=folder,
        env=os.environ | {"TARGETDP_KEY": str(folder / "key.pem"), "COLUMNS": "200"},
    )  # fmt: skip


def test_a_new_engine_is_one_new_file(tmp_path: Path) -> None:
    table = write_parquet(tmp_path / "in.parquet")
    scales = write_scales(tmp_path / "scales.toml")
    asked = (*ASKED, "--scales", str(scales), "--engine", "elsewhere")
    done = by_command(tmp_path, "privatize", str(table), "out.parquet", *asked)
    assert done.returncode == 0, done.stderr
    assert "an engine of somebody else's" in done.stdout
    assert '"engine": "elsewhere"' in (tmp_path / "out.parquet.certificate.json").read_text()
    assert by_command(tmp_path, "verify", "out.parquet").returncode == 0
    assert "elsewhere|local|spark" in by_command(tmp_path, "privatize", "--help").stdout
    assert '"elsewhere"' in by_command(tmp_path, "schema", "release").stdout


def test_engines_are_those_that_declare_themselves() -> None:
    assert declared("targetdp.release._engine") == ("local", "spark")
    with pytest.raises(ValueError, match="engine"):
        settings(engine="elsewhere")


def test_an_engine_is_imported_alone() -> None:
    script = (
        "import sys; from targetdp.release._engine._base import engine_of; engine_of('local'); "
        "print(*(name for name in ('pyspark', 'targetdp.release._engine._spark') if name in sys.modules))"
    )
    run = subprocess.run(  # noqa: S603 (our own interpreter and script)
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120
    )
    assert run.stdout.split() == []
    assert engine_of("local").__module__ == "targetdp.release._engine._local"
