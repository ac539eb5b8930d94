"""Every number in docs/choosing_B.md is what its command prints."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from support.docs import DOCS, blocks, differences, printed_by
from targetdp.cli import app
from targetdp.tradeoff import Grid, at_distances

GUIDE = "choosing_B.md"
A_FEW_PEOPLE = 5 * 4_950_000 / 4_201
"""What five of the table's people count for: so much may a mean of simulations differ on other processors."""


def commands() -> dict[str, str]:
    """Each command of the guide, and what it is said to print."""
    found = [re.split(r"(?<!\\)\n", block.text, maxsplit=1) for block in blocks(GUIDE, "console")]
    return {command.removeprefix("$ ").replace("\\\n", ""): shown for command, shown in found}


def run(command: str) -> str:
    program, *arguments = shlex.split(command)
    assert program == "targetdp"
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_python_prints_what_is_shown() -> None:
    names: dict[str, Any] = {"__name__": "guide"}
    for block in blocks(GUIDE, "python"):
        assert block.shown is not None
        assert differences(block.shown, printed_by(block, names), people=A_FEW_PEOPLE) == []


def test_the_plan_is_the_plan() -> None:
    """Nothing is simulated there, so every digit counts."""
    command = next(command for command in commands() if command.startswith("targetdp plan"))
    assert run(command).split() == commands()[command].split()


def test_sweep_and_recommendation_print_what_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sweep, recommend = (command for command in commands() if command.startswith("targetdp tradeoff"))
    assert differences(commands()[sweep], run(f"{sweep} --jobs 1"), people=A_FEW_PEOPLE) == []
    printed = run(recommend)
    assert (
        differences(_without_hash(commands()[recommend]), _without_hash(printed), people=A_FEW_PEOPLE) == []
    )
    assert Path("request.toml").read_text(encoding="utf-8").strip() in printed


def _without_hash(text: str) -> str:
    """The sweep's name follows from every byte of its table, which differs between processors."""
    return re.sub(r"[0-9a-f]{64}|(?<=sweep )[0-9a-f]{16}", "", text)


def test_the_prose_says_what_was_printed() -> None:
    text = (DOCS / GUIDE).read_text(encoding="utf-8")
    plan, sweep, _ = commands().values()
    guess = {row[0]: float(row[2].rstrip("%")) for row in cells(plan, "│") if row[-1].endswith("%")}
    assert 77 < guess["0.25"] < 78
    assert 56 <= guess["0.05"] < 57
    assert f"a best guess of {guess['1']}% at distance 1 (the plan)" in text
    rows = {tuple(row[:2]): row for row in cells(sweep, "  ")}
    status_quo, rows_of_all = rows["status quo", "767,000"], rows["least-noise", "0.75"]
    quieter, chosen = rows["score", "0.75"], rows["score-laplace", "0.75"]
    today = number(status_quo[1])

    def extra(row: list[str]) -> str:
        return f"{number(row[3]) - today:,.0f}"

    assert f"beside the {status_quo[1]} whom" in text
    assert (
        f"Singling-out protection of {rows['least-noise', '0.25'][4][:4]} (`least-noise` in the sweep)"
        in text
    )
    assert f"{chosen[4][2:4]}% were not singled out" in text
    assert f"about {extra(chosen)} more poor people missed" in text
    assert f"would cost {number(chosen[3]) - number(quieter[3]):,.0f} fewer missed" in text
    assert f"leave the best guess at {quieter[8]}, which the data holder's limit excludes" in text
    assert f"it is {rows_of_all[8]}, for {extra(rows_of_all)} more missed than without privacy" in text
    assert f"the right one is found in at most {chosen[8]} of cases" in text
    assert f"inference protection of {chosen[5][:4]} is against an insider" in text
    assert f"a stranger's, leaves {chosen[6][:4]} of the same setting" in text
    assert f"leaves it at {rows['projection', '0.25'][8]} or at {quieter[8]}" in text
    known = {cell.name: cell for cell in Grid().cells(4_201)}
    curve = at_distances(known["score-laplace B=0.75 epsilon=3.9999"], 10)
    assert 74 < 100 * next(at.guess for at in curve if at.distance == 0.25) < 75


def cells(table: str, between: str) -> list[list[str]]:
    """The rows of a printed table."""
    lines = (line.strip(" │") for line in table.splitlines())
    return [
        [cell.strip() for cell in line.split(between) if cell.strip()] for line in lines if between in line
    ]


def number(text: str) -> float:
    return float(text.replace(",", ""))
