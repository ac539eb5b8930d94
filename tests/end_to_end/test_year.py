"""A year at a desk, as a timer runs it: one command, again and again, and what becomes of each month.

Exit codes and objects are those of docs/operations.md.
"""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.release import (
    FEATURES,
    Ran,
    certificate_of,
    cli,
    hidden,
    holds,
    make_desk,
    request_of,
    table_of,
    write_parquet,
)
from support.staged import states
from targetdp.cli._endings import Terminated
from targetdp.release import Desk, Ledger
from targetdp.release._engine._local import LocalEngine
from targetdp.release._staging import Staging

MONTHS = [f"2026-{month:02d}" for month in range(1, 13)]
SEEDS = {month: number for number, month in enumerate(MONTHS)}
ALWAYS = {"outcome", "exit_code", "message", "notes", "run_again", "unfinished"}
LIMIT = ("--B", "0.25", "--epsilon", "10", "--delta", "1e-3")


def arguments(month: str) -> list[str]:
    return [
        "privatize", f"features/{month}.parquet", f"releases/{month}.parquet", "--request", "request.toml",
        "--desk", "desk", "--yes", "--quiet", "--json",
    ]  # fmt: skip


def run(month: str, *more: str) -> Ran:
    """What the timer runs; all that a program needs stands on stdout."""
    ran = cli(*arguments(month), *more)
    assert set(ran.json) >= ALWAYS, ran.json
    assert ran.json["exit_code"] == ran.code
    assert ran.json["run_again"] == (
        ran.json["outcome"] in {"machine", "unsettled", "waiting", "interrupted"}
    )
    return ran


def arrives(month: str) -> None:
    """The table of a month is there, whole, in one step."""
    draft = write_parquet(Path("features/.draft.parquet"), table_of(200, seed=SEEDS[month]))
    draft.rename(f"features/{month}.parquet")


def released(month: str, *more: str) -> dict[str, Any]:
    ran = run(month, *more)
    assert (ran.code, ran.json["outcome"]) == (0, "released"), ran.err
    assert all(line.startswith("warning: ") for line in ran.err.splitlines()), "a timer hears nothing else"
    assert holds(Path(f"releases/{month}.parquet"))
    return dict(ran.json)


def again(month: str) -> dict[str, Any]:
    ran = run(month)
    assert (ran.code, ran.json["outcome"], ran.err) == (0, "already released", "")
    return dict(ran.json)


def left() -> int:
    (line,) = cli("status", "--json", "--desk", "desk").json["plan"]
    return int(line["left"])


def killed(month: str) -> None:
    """The same command in a process of its own, killed when half of the rows have noise."""
    script = (
        "import os, signal\nfrom targetdp.cli import main\nfrom targetdp.release._engine import _local\n"
        "_local.write_in_order = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\nmain()"
    )
    ended = subprocess.run(  # noqa: S603 (our own interpreter and script)
        [sys.executable, "-c", script, *arguments(month)], capture_output=True, check=False, timeout=120
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr


@pytest.fixture
def year(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A desk with a plan for twelve equal releases, and a request that fits it."""
    monkeypatch.chdir(tmp_path)
    for folder in ("features", "releases"):
        Path(folder).mkdir()
    proposed = cli("plan", "--releases", "12", *LIMIT, "--features", "3", "--json").json
    (line,) = proposed["plan"]
    make_desk(tmp_path, pseudonyms=True, limit=proposed["limit"], most=(10.0, 1e-3), plan=[line])
    asked = {name: line[name] for name in ("B", "epsilon", "delta", "mechanism")}
    request = request_of(**asked, asked_by="Ministry", program="Novissi").text()
    Path("request.toml").write_text(request, encoding="utf-8")
    return tmp_path


def full(*_: Any, **__: Any) -> None:
    raise OSError(28, os.strerror(28))


def test_a_year(year: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    winter(year, *MONTHS[:3])
    spring(monkeypatch, *MONTHS[3:6])
    summer(*MONTHS[6:8])
    autumn(*MONTHS[8:])
    the_next_year(year)


def winter(year: Path, january: str, february: str, march: str) -> None:
    # January: the table comes late. Nobody has to do anything; the timer runs again.
    ran = run(january)
    assert (ran.code, ran.json["outcome"]) == (6, "waiting")
    assert states(year) == {}
    arrives(january)
    first = released(january)
    assert first["certificate"] == f"releases/{january}.parquet.certificate.json"
    assert left() == 11

    # February: the timer runs daily, and nothing is made or charged twice.
    arrives(february)
    second = released(february)
    for _ in range(2):
        found = again(february)
        assert found["release"] == second["release"]
    assert (len(states(year)), left()) == (2, 10)

    # March: killed in the middle. It counts, `status` says so, and the next run finishes it.
    arrives(march)
    killed(march)
    status = cli("status", "--json", "--desk", "desk").json
    (unfinished,) = status["unsettled"]
    assert any("run the same command again" in step for step in status["next"])
    assert left() == 9, "it is charged"
    assert released(march)["release"] == unfinished
    assert (len(states(year)), left()) == (3, 9)


def spring(monkeypatch: pytest.MonkeyPatch, april: str, may: str, june: str) -> None:
    # April: the machine is shut down meanwhile.
    arrives(april)

    def stopped(*_: Any, **__: Any) -> None:
        raise Terminated

    with monkeypatch.context() as patch:
        patch.setattr("targetdp.release._engine._local.write_in_order", stopped)
        ran = run(april)
    assert (ran.code, ran.json["outcome"]) == (143, "interrupted")
    assert released(april)["release"] == ran.json["unfinished"]

    # May: the disk is full before anything is charged; June: when the ledger is to be told.
    arrives(may)
    with monkeypatch.context() as patch:
        patch.setattr(LocalEngine, "inspect", full)
        ran = run(may)
    assert (ran.code, ran.json["outcome"], ran.json["unfinished"]) == (3, "machine", None)
    released(may)
    arrives(june)
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "settle", full)
        ran = run(june)
    assert (ran.code, ran.json["outcome"]) == (4, "unsettled")
    assert cli("status", "--json", "--desk", "desk").json["unsettled"], "what an alert is for"
    assert again(june)["release"] == certificate_of(Path(f"releases/{june}.parquet")).release
    assert cli("status", "--json", "--desk", "desk").json["unsettled"] == []


def summer(july: str, august: str) -> None:
    # July: two timers at once. One waits for another day.
    arrives(july)
    with Staging(Path(f"releases/{july}.parquet"), force=False) as other:
        other.begin(lambda _: None)
        ran = run(july)
    assert (ran.code, ran.json["outcome"]) == (6, "waiting")
    assert "another run is writing" in ran.json["message"]
    released(july)

    # August: somebody corrects the table, after its release. That is not silently taken for done.
    arrives(august)
    released(august)
    write_parquet(Path(f"features/{august}.parquet"), table_of(200, seed=5))
    ran = run(august)
    assert (ran.code, ran.json["outcome"]) == (2, "refused")
    assert "was made of another table" in ran.json["message"]


def autumn(september: str, *rest: str) -> None:
    # September: half of a column is missing, and comes the next day.
    gaps = table_of(200).set_column(1, "calls", [[None, *range(199)]])
    write_parquet(Path(f"features/{september}.parquet"), gaps)
    ran = run(september)
    assert (ran.code, ran.json["outcome"]) == (2, "refused")
    assert [one["whose"] for one in ran.json["look"]["problems"]] == ["holder"]
    for month in (september, *rest):
        arrives(month)
        released(month)
    assert left() == 0


def the_next_year(year: Path) -> None:
    # January: the plan is spent, and says so as often as it is asked.
    write_parquet(Path("features/2027-01.parquet"), table_of(200))
    for _ in range(2):
        ran = run("2027-01")
        assert (ran.code, ran.json["outcome"]) == (7, "spent")
        assert "the plan has none of these releases left" in ran.json["message"]
    assert sorted(states(year).values()) == ["published"] * 12
    assert hidden(year / "releases") == []
    with Desk.open("desk").ledger() as ledger:
        assert ledger.verify() == []

    text = Path("desk/log.jsonl").read_text(encoding="utf-8")
    plain = re.sub(r'[0-9a-f]{12,}|\d{4}-\d\d-\d\dT[^"]*', "", text)  # digits of a hash may be anybody's
    said = [json.loads(line) for line in text.splitlines()]
    told = "; ".join(line["event"] for line in said)
    assert re.sub(r"(released; )+", "released; ", told) == (
        "made; waiting; released; already released; already released; goes on; released; failed; goes on; "
        "released; failed; released; not settled; already released; waiting; released; failed; refused; "
        "released; refused; refused"
    )
    assert (
        len({line.get("request") for line in said if line["event"] not in {"made", "goes on"}} - {None}) == 1
    )
    for month in MONTHS:
        table = table_of(200, seed=SEEDS[month])
        values = {f"{value:.6g}" for name in FEATURES for value in table[name].to_pylist()}
        assert not [one for one in values | set(table["name"].to_pylist()) if len(one) > 5 and one in plain]


def test_two_timers_that_start_together_make_one_release(year: Path) -> None:
    arrives(MONTHS[0])
    command = [sys.executable, "-m", "targetdp", *arguments(MONTHS[0])]
    both = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # noqa: S603
        for _ in range(2)
    ]
    outcomes = sorted(json.loads(one.communicate(timeout=120)[0])["outcome"] for one in both)
    assert outcomes in (["already released", "released"], ["released", "waiting"])
    assert list(states(year).values()) == ["published"]


def test_without_a_plan_status_says_what_the_next_month_costs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_parquet(Path("in.parquet"), table_of(200))
    make_desk(tmp_path, limit=(0.25, 20.0, 1e-3))
    assert cli("status", "--json").json["again"] is None
    asked = ("--B", "0.25", "--epsilon", "4", "--yes")
    assert cli("privatize", "in.parquet", "0.parquet", *asked).code == 0
    told = cli("status", "--json").json
    count = told["again"]["times"]
    assert 1 <= count < 10
    assert told["again"]["takes"] == pytest.approx(told["spent_of_the_limit"]), (
        "the first one is all there is"
    )
    assert f"{count} such fit" in " ".join(cli("status").out.split())
    codes = [cli("privatize", "in.parquet", f"{one}.parquet", *asked).code for one in range(1, count + 2)]
    assert codes == [0] * count + [7], "so many fit, and no more"
    assert cli("status", "--json").json["again"]["times"] == 0
    assert "none fits" in " ".join(cli("status").out.split())
