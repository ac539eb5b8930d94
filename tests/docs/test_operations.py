"""docs/operations.md: its script, units and backup do what they say, and its tables are what the code has."""

import configparser
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest

from support.docs import DOCS, blocks
from support.release import Ran, certificate_of, cli, holds, make_desk, request_of, table_of, write_parquet
from targetdp.cli._endings import _FAILED, Outcome, ending_record

PAGE = "operations.md"
TEXT = (DOCS / PAGE).read_text(encoding="utf-8")
HOME = "/srv/operator"


def shell(name: str) -> str:
    """The one block of shell that has a word."""
    (found,) = (block.text for block in blocks(PAGE, "bash") if name in block.text)
    return found


def rows_of(heading: str) -> list[list[str]]:
    """The cells of the table below a line of headings."""
    lines = TEXT[TEXT.index(heading) :].partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the page supposes: a desk with a plan, a signed request, and the script, all in a folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    for folder in ("features", "releases", "ended", "backup"):
        Path(folder).mkdir()
    asked = ("--releases", "12", "--B", "0.25", "--epsilon", "10", "--delta", "1e-3", "--features", "3")
    proposed = cli("plan", *asked, "--json").json
    (line,) = proposed["plan"]
    make_desk(tmp_path, pseudonyms=True, limit=proposed["limit"], most=(10.0, 1e-3), plan=[line])
    text = request_of(**{name: line[name] for name in ("B", "epsilon", "delta", "mechanism")}).text()
    Path("request.toml").write_text(text, encoding="utf-8")
    assert cli("request", "sign", "request.toml", "--out", "signed.toml").code == 0
    Path("monthly.sh").write_text(shell("#!/bin/sh").replace(HOME, str(tmp_path)), encoding="utf-8")
    return tmp_path


def monthly(*month: str) -> tuple[int, dict[str, Any]]:
    """Run the script, as a timer does; its exit code, and the object that it keeps."""
    done = subprocess.run(["sh", "monthly.sh", *month], check=False, capture_output=True, timeout=120)  # noqa: S603, S607
    assert done.stdout + done.stderr == b"", "no mail"
    (name,) = month or (max(path.stem for path in Path("ended").glob("*.json")),)
    return done.returncode, json.loads(Path(f"ended/{name}.json").read_text(encoding="utf-8"))


def release_of(month: str) -> Ran:
    write_parquet(Path(f"features/{month}.parquet"), table_of(200, seed=int(month[-2:])))
    return cli(
        "privatize", f"features/{month}.parquet", f"releases/{month}.parquet", "--request", "signed.toml",
        "--desk", "desk", "--yes", "--quiet", "--json",
    )  # fmt: skip


def test_the_script_is_run_by_a_timer_day_after_day(home: Path) -> None:
    code, ended = monthly()
    assert (code, ended["outcome"]) == (6, "waiting"), "of this month, whichever it is"
    write_parquet(Path("features/2026-10.parquet"), table_of(200))
    for outcome in ("released", "already released"):
        code, ended = monthly("2026-10")
        assert (code, ended["outcome"]) == (0, outcome)
    assert holds(Path("releases/2026-10.parquet"))
    assert "warning: " in Path("ended/warnings.txt").read_text(encoding="utf-8")


def test_the_timers_run_the_script() -> None:
    script = f"{HOME}/monthly.sh"
    assert f"`{script}`" in TEXT
    (line,) = (block.text.strip() for block in blocks(PAGE, "text"))
    *when, command = line.split()
    assert [re.fullmatch(r"\*|\d+", one) is not None for one in when] == [True] * 5
    assert (when[2:], command) == (["*", "*", "*"], script), "every day"
    service, timer = (configparser.ConfigParser(interpolation=None) for _ in range(2))
    for unit, block in zip((service, timer), blocks(PAGE, "ini"), strict=True):
        unit.optionxform = str  # type: ignore[assignment, method-assign]
        unit.read_string(block.text)
    assert (service["Service"]["ExecStart"], service["Service"]["Type"]) == (script, "oneshot")
    assert service["Service"]["SuccessExitStatus"] == str(codes()["waiting"])
    assert re.fullmatch(r"\*-\*-\* \d\d:\d\d", timer["Timer"]["OnCalendar"])


def codes() -> dict[str, int]:
    """The exit codes of what failed, by outcome; the one of SIGTERM for interruptions."""
    return {outcome: code for _, outcome, code in reversed(_FAILED)}


def test_the_table_of_exit_codes_is_that_of_the_code() -> None:
    told = [(row[0], row[1].strip("`"), row[3]) for row in rows_of("| exit code | outcome |")]
    assert {outcome for _, outcome, _ in told} == {*get_args(Outcome), "none"}
    known = codes()
    for numbers, outcome, remedy in told:
        if outcome == "none":
            assert (numbers, remedy) == ("137", "run again")
        elif outcome == "interrupted":
            assert {int(one) for one in numbers.split(", ")} == {130, 143}
        else:
            assert int(numbers) == known.get(outcome, 0)
        if outcome in known:
            again = ending_record(outcome, known[outcome], "")["run_again"]  # type: ignore[arg-type]
            assert again == remedy.endswith("run again"), outcome


def test_the_object_has_the_fields_that_are_told(home: Path) -> None:
    told = [re.findall(r"`(\w+)`", row[0]) for row in rows_of("| field | what it says |")]
    always, further = [name for row in told[:4] for name in row], [name for row in told[4:] for name in row]
    assert set(ending_record("refused", 2, "")) == set(always)
    assert set(release_of("2026-01").json) >= {*always, *further}
    assert set(cli("plan", "--json").json) == set(always), "of any command that failed"


def test_what_is_watched_is_in_the_status(home: Path) -> None:
    release_of("2026-01")
    status = cli("status", "--desk", "desk", "--json").json
    for row in rows_of("| alert when | because |"):
        named = re.findall(r"`([a-z_.]+)`", row[0] + row[1]) if row[0].startswith("`status`") else []
        for name in set(named) - {"status", "again.times"}:
            assert name in status or name in status["plan"][0], name
    assert (status["plan"][0]["left"], status["again"]) == (11, None)


def test_a_backup_that_is_put_back_is_told_of_what_it_forgot(home: Path) -> None:
    """With the page's own command for the backup, and its own for what comes after it."""
    release_of("2026-01")
    (drafts := Path("desk/drafts")).mkdir(exist_ok=True)
    (drafts / "secret").touch()
    subprocess.run(["sh", "-c", shell("tar ")], check=True, timeout=60)  # noqa: S603, S607
    second = release_of("2026-02").json
    shutil.rmtree("desk")
    (backup,) = Path("backup").iterdir()
    subprocess.run(["tar", "--extract", "--file", backup], check=True, timeout=60)  # noqa: S603, S607
    assert not (drafts / "secret").exists()
    refused = release_of("2026-03")
    assert (refused.code, "the tail was cut" in refused.json["message"]) == (2, True)
    resumed = cli(
        "ledger", "resume", "--reason", "restored from a backup",
        *Path("releases").glob("*.certificate.json"), "--desk", "desk",
    )  # fmt: skip
    assert resumed.code == 0, resumed.err
    status = cli("status", "--desk", "desk", "--json").json
    assert status["plan"][0]["left"] == 10, "the lost one was of the plan, and counts as such"
    assert "may have been" in status["statement"]
    assert release_of("2026-03").code == 0
    assert cli("ledger", "verify", *Path("releases").glob("*.certificate.json"), "--desk", "desk").code == 0
    again = release_of("2026-02")
    assert again.code == 2, "its table was written anew"
    assert certificate_of(Path("releases/2026-02.parquet")).release == second["release"]


def test_the_log_may_be_moved_away(home: Path) -> None:
    (moved,) = re.findall(r"`(mv desk/log[^`]+)`", TEXT)
    release_of("2026-01")
    subprocess.run(["sh", "-c", moved], check=True, timeout=60)  # noqa: S603, S607
    assert release_of("2026-02").code == 0
    assert [json.loads(line)["event"] for line in Path("desk/log.jsonl").read_text().splitlines()] == [
        "released"
    ]
    assert cli("ledger", "log", "--desk", "desk").code == 0
