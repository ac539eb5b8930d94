"""`targetdp privatize`: few flags, a look before anything is charged, a question, everything as JSON."""

import json
import os
import pty
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from support.release import (
    ASKED,
    COMMAND,
    Ran,
    certificate_of,
    cli,
    command,
    new_policy,
    nothing_changes,
    place_with,
    request_of,
    table_of,
    words,
    write_parquet,
)
from support.staged import states
from targetdp.cli import app

RUN = ("privatize", "in.parquet", "out.parquet", "--B", "0.25", "--epsilon", "4")
FLAGS = {"--model", "--csv", "--units",
    "--request", "--B", "--epsilon", "--desk", "--check", "--yes", "--force", "--engine", "--new-people",
    "--quiet", "--json", "--table", "--query",
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = place_with(tmp_path / "place", 200)
    monkeypatch.chdir(place)
    return place


def test_it_has_few_flags() -> None:
    command: Any = get_command(app)
    found = {flag for one in command.commands["privatize"].params for flag in one.opts if flag[0] == "-"}
    assert found == FLAGS


# Look first


@pytest.mark.parametrize("more", [(), ("--quiet",), ("--json",), ("--yes",)])
@pytest.mark.parametrize("wrong", [False, True], ids=["nothing wrong", "something wrong"])
def test_a_check_changes_nothing(folder: Path, tmp_path: Path, wrong: bool, more: tuple[str, ...]) -> None:
    if wrong:
        write_parquet(Path("in.parquet"), table_of(200, seed=3).drop_columns(["texts"]))
    config = Path(os.environ["XDG_CONFIG_HOME"])
    with nothing_changes(tmp_path), nothing_changes(config):
        ran = cli("privatize", "in.parquet", *RUN[3:], "--check", *more)
        with_output = cli(*RUN, "--check", *more)
    assert ran.code == with_output.code == (2 if wrong else 0), ran.err
    assert (folder / "out.parquet").exists() is False
    assert states(folder) == {}


def test_a_check_says_everything(folder: Path) -> None:
    said = words(cli(*RUN, "--check").err)
    for part in (
        "desk people (", "asked for at this desk", "what goes out: 3 columns about 200 people (calls, texts",
        "under their ids", "what is promised: (B = 0.25, ε = 4,", "noise: ", " on a row (rows have length at",
        "for you only:", "of rows are longer than 1 and will be clipped", "budget of those who have spent",
        "0% before", "% after", "largest ε that fits, at this B and δ:", "on these conditions: -",
        "warning: ids go out in clear", "will be clipped, so that only their",
        "(targetdp scales … --fit 0.9 on public data)",
        "nothing keeps this release from being made; nothing was charged, drawn or published",
    ):  # fmt: skip
        assert part in said, (part, said)


def test_the_largest_epsilon_fits_and_more_does_not(folder: Path) -> None:
    new_policy(folder / "desk", limit=(0.25, 2.0, 0.02), most=(3.0, 0.02))
    look = cli(*RUN, "--check", "--json").json["look"]
    largest = look["budget"]["largest_epsilon"]
    assert 0 < largest < 3
    run = ("privatize", "in.parquet", "--check", "--B", "0.25", "--epsilon")
    assert cli(*run, largest).code == 0
    assert cli(*run, 1.01 * largest).code == 7


def test_a_share_of_clipped_rows_is_told_before_anything_is_charged(folder: Path) -> None:
    ran = cli(*RUN, "--check", "--json")
    share = ran.json["look"]["clipped_for_the_data_holder_only"]
    done = cli(*RUN, "--yes", "--json").json
    assert done["for_the_data_holder_only"]["rows_clipped"] == round(share * 200)
    assert share > 0.5
    assert "widen" in ran.err


# The question


def test_without_a_terminal_it_needs_a_yes(folder: Path) -> None:
    for run in (cli, command):
        with nothing_changes(folder):
            ran = run(*RUN)
        assert (ran.code, ran.out) == (2, "")
        assert "nobody is at the terminal to say yes: look with --check, then give --yes" in ran.err
        assert "what goes out: 3 columns" in ran.err, "what it would have asked about"
    assert states(folder) == {}
    assert command(*RUN, "--yes").code == 0


def at_a_terminal(answer: str | None, *arguments: str, folder: Path) -> Ran:
    """The command at a terminal, where somebody answers its question; or, with None, presses Ctrl-C."""
    mine, its = pty.openpty()
    process = subprocess.Popen(  # noqa: S603 (our own command)
        [*COMMAND, *arguments], stdin=its, stdout=subprocess.PIPE, stderr=its, cwd=folder, text=True
    )
    os.close(its)
    shown, deadline = "", time.monotonic() + 60
    try:
        while "Release this?" not in shown:
            assert time.monotonic() < deadline, shown
            if select.select([mine], [], [], 1)[0]:
                shown += os.read(mine, 65_536).decode(errors="replace")
        assert states(folder) == {}, "nothing was charged before the answer"
        if answer is None:
            process.send_signal(signal.SIGINT)
        else:
            os.write(mine, answer.encode())
        out = process.communicate(timeout=60)[0]
    finally:
        process.kill()
        process.wait()
        os.close(mine)
    return Ran(process.returncode, out, shown)


@pytest.mark.parametrize("more", [(), ("--quiet",), ("--json",)])
def test_at_a_terminal_it_shows_everything_and_asks(folder: Path, more: tuple[str, ...]) -> None:
    ran = at_a_terminal("y\n", *RUN, *more, folder=folder)
    assert ran.code == 0, ran.err
    assert "what goes out: 3 columns about 200 people" in words(ran.err), "whoever is asked sees about what"
    assert list(states(folder).values()) == ["published"]


@pytest.mark.parametrize(("answer", "code"), [("n\n", 2), ("\n", 2), (None, 130), ("\x04", 1)])
def test_whoever_does_not_say_yes_has_released_nothing(folder: Path, answer: str | None, code: int) -> None:
    with nothing_changes(folder):
        ran = at_a_terminal(answer, *RUN, folder=folder)
    assert ran.code in {code, 1}, ran.err
    assert states(folder) == {}


# --quiet and --json


def test_quiet_silences_progress_and_no_warning(folder: Path) -> None:
    loud, quiet = cli(*RUN, "--yes"), cli(*RUN, "--yes", "--force", "--quiet")
    warnings = [line for line in loud.err.splitlines() if line.startswith("warning: ")]
    assert len(warnings) >= 2
    assert quiet.err.splitlines() == warnings
    assert quiet.out == ""


@pytest.mark.parametrize("arguments", [("in.parquet", "out.parquet"), ("in.parquet", "--check")])
def test_json_has_everything_and_nothing_else_is_on_stdout(folder: Path, arguments: tuple[str, ...]) -> None:
    ran = cli("privatize", *arguments, *ASKED, "--json")
    assert ran.code == 0, ran.err
    look = ran.json["look"]
    assert ran.json["outcome"] == ("released" if "out.parquet" in arguments else "possible")
    assert set(look) >= {
        "desk", "people", "released", "guarantee", "mechanism", "noise_length", "conditions", "budget",
        "clipped_for_the_data_holder_only", "goes_on_with", "warnings", "problems", "left_out",
    }  # fmt: skip
    assert set(look["budget"]) >= {"spent", "total", "limit", "classic", "largest_epsilon", "known"}
    warnings = [line.removeprefix("warning: ") for line in ran.err.splitlines() if line.startswith("warning")]
    assert look["warnings"] == warnings, "and people are warned all the same"
    json.dumps(look, allow_nan=False)
    if "out.parquet" in arguments:
        c = certificate_of(Path("out.parquet"))
        assert ran.json["release"] == c.release
        assert ran.json["conditions"] == list(c.conditions)


def test_an_error_is_an_object_with_everything_that_is_known(folder: Path) -> None:
    for arguments in (("in.parquet", "out.parquet", "--yes"), ("in.parquet", "--check")):
        ran = cli("privatize", *arguments, "--B", "0.25", "--epsilon", "400", "--json")
        assert ran.code == 2
        error = ran.json
        assert (error["outcome"], error["exit_code"]) == ("refused", 2)
        (problem,) = [p for p in error["look"]["problems"] if "epsilon = 400" in p["what"]]
        assert (problem["remedy"], problem["whose"]) == ("ask for at most 100", "official")
        assert problem["remedy"] in error["message"]
    absent = cli("privatize", "absent.parquet", "out.parquet", *ASKED, "--json")
    assert (absent.code, absent.json["outcome"], absent.json["run_again"]) == (6, "waiting", True)


# Scores


def test_a_request_for_scores_is_a_release_of_scores(folder: Path) -> None:
    request = request_of(
        release="scores", scores=("poverty",), weights={"calls": 3.0, "texts": -0.1, "topups": 0.2},
        asked_by="Ministry of Aid", program="Novissi",
    )  # fmt: skip
    Path("request.toml").write_text(request.text())
    ran = cli("privatize", "in.parquet", "out.parquet", "--request", "request.toml", "--yes")
    assert ran.code == 0, ran.err
    said = words(ran.err)
    assert "asked for by Ministry of Aid, for Novissi" in said
    assert "the scores are made of: poverty: over 99% calls (raises it)" in said
    assert "warning: the scores are nearly the column 'calls'" in said
    assert "200 rows, 1 score →" in said
    assert certificate_of(Path("out.parquet")).scores == ("poverty",)
    assert cli("score", "in.parquet").code == 2, "there is no such command any more"
