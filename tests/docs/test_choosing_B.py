"""Every number in docs/choosing_B.md is what its command prints."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from support.docs import DOCS, blocks, differences, printed_by
from targetdp.cli import app
from targetdp.report import at_distances
from targetdp.tradeoff import Grid

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
    assert Path("release.toml").read_text(encoding="utf-8").strip() in printed


def _without_hash(text: str) -> str:
    """The sweep's name follows from every byte of its table, which differs between processors."""
    return re.sub(r"sweep [0-9a-f]{16}", "sweep", text)


def test_the_prose_says_what_was_printed() -> None:
    text = (DOCS / GUIDE).read_text(encoding="utf-8")
    plan, sweep, _ = commands().values()
    guess = {row[0]: float(row[2].rstrip("%")) for row in cells(plan, "│") if row[-1].endswith("%")}
    assert 77 < guess["0.25"] < 78
    assert 56 <= guess["0.05"] < 57
    assert f"a best guess of {guess['1']}% at distance 1 (the plan)" in text
    rows = {tuple(row[:2]): row for row in cells(sweep, "  ")}
    status_quo, one, two = (
        rows["status quo", "767,067"],
        rows["least-noise", "0.25"],
        rows["score", "0.25"],
    )
    more = rows["score", "0.75"]
    today = number(status_quo[1])

    def extra(row: list[str]) -> str:
        return f"{round(number(row[3]) - today, -3):,.0f}"

    assert f"beside the {status_quo[1][:3]},000 whom" in text
    assert f"Singling-out protection of {one[5][:4]} (`least-noise` in the sweep)" in text
    assert f"{two[5][2:4]}% were not singled out" in text
    assert f"about {extra(two)} more poor people missed" in text
    assert f"for {extra(one)} more missed. The decision page" in text
    assert f"for {extra(more)} more missed than without privacy" in text
    assert number(more[3]) < number(one[3])
    known = {cell.name: cell for cell in Grid().cells(4_201)}

    def guess_at_a_quarter(name: str) -> float:
        curve = at_distances(known[name], 10)
        return 100 * next(at.guess for at in curve if at.distance == 0.25)

    assert 96 < guess_at_a_quarter("score B=0.25 epsilon=3.9999") < 97
    assert 88 < guess_at_a_quarter("score B=0.75 epsilon=3.9999") < 89


def cells(table: str, between: str) -> list[list[str]]:
    """The rows of a printed table."""
    lines = (line.strip(" │") for line in table.splitlines())
    return [
        [cell.strip() for cell in line.split(between) if cell.strip()] for line in lines if between in line
    ]


def number(text: str) -> float:
    return float(text.replace(",", ""))
