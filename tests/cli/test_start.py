"""The command line answers at once: --help and Tab import none of the slow libraries. No clock is asked."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.release import ASKED, place_with
from targetdp.attacks import panel_names
from targetdp.cli import _console as completion
from targetdp.mechanisms import LEAST_NOISE, noise_mechanisms
from targetdp.tradeoff._programs import BUILT_IN

SLOW = (
    "cryptography", "dp_accounting", "jinja2", "joblib", "matplotlib", "narwhals", "numba",
    "numpy", "pandas", "pyarrow", "pydantic", "pyspark", "scipy", "sklearn",
)  # fmt: skip
BY_TYPER = {"pydantic"}
"""Typer 0.29 checks the arguments of a command by it; `targetdp --help` has none."""

ALL_HELP = """
import contextlib, io, sys
from typer.main import get_command
from targetdp.cli import app

def walk(command, path):
    yield path
    for name, below in getattr(command, "commands", {}).items():
        yield from walk(below, [*path, name])

for path in walk(get_command(app), []):
    EXTRA
    with contextlib.redirect_stdout(io.StringIO()) as out:
        app([*path, "--help"], standalone_mode=False, prog_name="targetdp")
    assert "Usage: targetdp" in out.getvalue(), path
    slow = sorted(name for name in SLOW if name in sys.modules)
    print("targetdp", *path, ":", *slow)
"""


def help_of_everything(extra: str = "pass") -> dict[str, list[str]]:
    """Every command with the slow libraries that are imported when its help has been shown."""
    script = ALL_HELP.replace("EXTRA", extra).replace("SLOW", repr(SLOW))
    run = subprocess.run(  # noqa: S603 (our own interpreter and script)
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120
    )
    assert run.returncode == 0, run.stderr
    lines = (line.split(" :") for line in run.stdout.splitlines())
    return {command: slow.split() for command, slow in lines}


def test_no_help_imports_a_slow_library() -> None:
    found = help_of_everything()
    assert {
        "targetdp",
        "targetdp plan",
        "targetdp tradeoff run",
        "targetdp ledger show",
        "targetdp privatize",
    } <= set(found)
    assert len(found) > 20
    slow = {command: set(names) - BY_TYPER for command, names in found.items()}
    assert not any(slow.values()), f"import these inside the function that needs them: {slow}"
    assert found["targetdp"] == []


def test_a_slow_import_would_be_noticed() -> None:
    found = help_of_everything("if path == ['plan']: import numpy")
    assert found["targetdp"] == []
    assert "numpy" in found["targetdp plan"]


TRIED = """
import sys
from targetdp.cli import main
sys.argv = ["targetdp", *ARGUMENTS]
try:
    main()
finally:
    print("\\n", *(name for name in SLOW if name in sys.modules))
"""


@pytest.mark.parametrize(
    ("arguments", "message", "needed"),
    [
        (("in.parquet",), "OUTPUT must be given", set()),
        (("nowhere.parquet", "out.parquet"), "nowhere.parquet", {"numpy", "pyarrow"}),
        (("words.csv", "out.parquet"), "words.csv", {"numpy", "pyarrow"}),
    ],
)
def test_what_is_no_table_is_refused_before_anything_slow_is_imported(
    arguments: tuple[str, ...], message: str, needed: set[str], tmp_path: Path
) -> None:
    """A typing error is answered at once; reading takes numpy and pyarrow, and no more."""
    (tmp_path / "words.csv").touch()
    given = ["privatize", *arguments, "--B", "0.25", "--epsilon", "4"]
    script = TRIED.replace("ARGUMENTS", repr(given)).replace("SLOW", repr(SLOW))
    run = subprocess.run(  # noqa: S603 (our own interpreter and script)
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120, cwd=tmp_path
    )
    code = 6 if "nowhere.parquet" in arguments else 2
    assert (run.returncode, message in run.stderr) == (code, True), run.stderr
    assert set(run.stdout.split()) - BY_TYPER <= needed


STATISTICS = ("scipy.stats", "sklearn")
"""Libraries for evaluations: half a second that no release needs."""


def of_statistics(script: str, folder: Path) -> list[str]:
    """Which of them a script imports; it must come to its end."""
    script += f"\nimport sys; print('\\n', *(name for name in {STATISTICS} if name in sys.modules))"
    run = subprocess.run(  # noqa: S603 (our own interpreter and script)
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120, cwd=folder
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()[-1].split()


def test_no_release_imports_a_library_of_statistics(tmp_path: Path) -> None:
    """Nor do its law, any other law, and checking it."""
    place_with(tmp_path)
    released = f"""
import sys
from targetdp.cli import main
from targetdp.mechanisms._law import all_laws
for words in (["privatize", "in.parquet", "out.parquet", *{ASKED}], ["verify", "out.parquet"]):
    sys.argv = ["targetdp", *words]
    try:
        main()
    except SystemExit as left:
        assert not left.code, words
all_laws()
"""
    assert of_statistics(released, tmp_path) == []
    assert (tmp_path / "out.parquet").exists()
    assert of_statistics("from scipy import stats", tmp_path) == ["scipy.stats"], "it would be noticed"


def test_a_warning_is_told_without_the_line_of_code_behind_it() -> None:
    script = (
        "import warnings; from targetdp.cli import _main as cli; "
        "cli.app = lambda: warnings.warn('mind the gap'); cli.main()"
    )
    run = subprocess.run(  # noqa: S603 (our own interpreter and script)
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
    assert (run.returncode, run.stderr) == (0, "warning: mind the gap\n")


def offered(words: str, folder: Path) -> list[str]:
    """What bash is told when Tab is pressed behind these words, by what --show-completion prints."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash: its completion cannot be tried")
    *before, last = words.split(" ")
    ask = "\n".join(
        (
            'eval "$(targetdp --show-completion bash)"',
            "[[ $(complete -p targetdp) == *'-o default'* ]] || exit 9",  # nothing offered: files are
            f"COMP_WORDS=({' '.join(before)} '{last}'); COMP_CWORD={len(before)}",
            "_targetdp_completion targetdp",
            'printf "%s\\n" "${COMPREPLY[@]}"',
        )
    )
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    run = subprocess.run(  # noqa: S603 (our own script)
        [bash, "--norc", "-c", ask],
        capture_output=True, text=True, check=False, timeout=120, cwd=folder, env=os.environ | {"PATH": path},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return run.stdout.split()


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("targetdp pr", ["privatize", "program"]),
        ("targetdp ledger ", ["show", "log", "export", "verify", "resume", "withdraw", "erase"]),
        ("targetdp request s", ["sign", "show"]),
        ("targetdp privatize people.parquet out.parquet --engine ", ["local", "spark"]),
        ("targetdp privatize people.parquet out.parquet --e", ["--epsilon", "--engine"]),
        ("targetdp learn s.parquet l.csv --mechanism s", ["spherical-laplace", "staircase"]),
        ("targetdp attack a.parquet b.parquet --attacks linkage,linkage", ["linkage,linkage_by_id"]),
        ("targetdp attack ", ["release", "audit", "people.parquet"]),
        ("targetdp attack p", ["people.parquet"]),
        ("targetdp attack audit --mechanism st", ["staircase"]),
        ("targetdp report ", ["page", "figures"]),
        ("targetdp report figures results --fo", ["--force"]),
        ("targetdp tradeoff t", ["togo"]),
        ("targetdp tradeoff m", ["mine.toml"]),
        ("targetdp tradeoff togo --see", ["--seed"]),
        ("targetdp privatize peo", []),
    ],
)
def test_tab_offers_names_and_leaves_files_to_the_shell(words: str, names: list[str], tmp_path: Path) -> None:
    for name in ("mine.toml", "people.parquet"):
        (tmp_path / name).touch()
    assert offered(words, tmp_path) == names


def test_what_is_offered_is_what_is_taken() -> None:
    assert completion.noises() == tuple(noise_mechanisms())
    assert completion.audited("") == [LEAST_NOISE, *noise_mechanisms()]
    assert completion.attack_names() == tuple(sorted(panel_names()))
    assert tuple(BUILT_IN) == completion.PROGRAMS


def test_program_files_are_offered_with_their_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "files" / "deeper").mkdir(parents=True)
    for name in ("aid.toml", "aid.csv", ".hidden.toml"):
        (tmp_path / "files" / name).touch()
    monkeypatch.chdir(tmp_path)
    assert completion.programs("") == ["togo", "nigeria", "files/"]
    assert completion.programs("files/") == ["files/aid.toml", "files/deeper/"]
    assert completion.programs("files/.") == ["files/.hidden.toml"]
    assert completion.programs(f"{tmp_path}/files/a") == [f"{tmp_path}/files/aid.toml"]
    assert completion.programs("nowhere/a") == []
    assert completion.tables("files/") == ["files/aid.csv", "files/deeper/"]
    assert completion.folders("") == ["files/"]
