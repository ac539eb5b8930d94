"""Every command of docs/scores.md runs, in order, and what it is said to do is done."""

import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from support.docs import DOCS, Block, printed_by
from support.release import cli, read_back, words
from targetdp import Guarantee, Staircase
from targetdp._core import up
from targetdp.theorem1 import accuracy_ceiling

TEXT = (DOCS / "scores.md").read_text(encoding="utf-8")


def test_the_commands_run_one_after_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said: dict[str, str] = {}
    names: dict[str, Any] = {"__name__": "document"}
    for language, text in re.findall(
        r"^```(console|python|toml)\n(.*?)^```", TEXT, flags=re.DOTALL | re.MULTILINE
    ):
        if language == "toml":
            (tmp_path / "program.toml").write_text(text, encoding="utf-8")
            continue
        if language == "python":
            assert printed_by(Block(language, text, None), names) == ""
            continue
        for line in text.splitlines():
            program, *arguments = shlex.split(line)
            assert program == "targetdp"
            ran = cli(*arguments)
            assert ran.code == 0, (line, ran.err)
            said[arguments[0]] = words(ran.out + ran.err)
    assert set(said) == {
        "example", "scales", "init", "privatize", "ids", "learn", "verify", "allocate",
    }  # fmt: skip
    assert "What to expect of scores" in said["learn"]
    compared = [re.search(rf"{name}[ │]+(0\.\d+)", said["learn"]) for name in ("scores", "decisions")]
    score, decision = (float(one[1]) for one in compared if one is not None)
    assert abs(score - decision) < 0.02, "a decision is as good here, the page says"
    assert "750 people are left out" in said["privatize"]
    assert pq.read_metadata(tmp_path / "scores.parquet").num_rows == 750
    decisions = pacsv.read_csv(tmp_path / "decisions.csv")
    assert decisions.column_names == ["phone", "chance", "decision", "based_on"]
    assert decisions["decision"].to_pylist().count("aid") == round(0.29 * 1500)
    # The list to pay by has ids again, and as many poor people as the decisions reach: a lottery has 0.29.
    people = pq.read_table(tmp_path / "features.parquet")["phone"].to_pylist()
    paid = read_back(tmp_path / "to_pay.csv")["id"].to_pylist()
    assert len(set(paid)) == round(0.29 * 1500)
    assert set(paid) <= set(people)
    consumption = pq.read_table(tmp_path / "togo.parquet")["consumption"].to_pylist()
    poor = {people[place] for place in np.argsort(consumption)[: round(0.29 * 1500)]}
    assert len(poor & set(paid)) > 0.4 * len(paid)
    # Nobody is in both releases, so nobody has spent more than one of them.
    people = cli("ledger", "show", "--json").json["people"]
    assert [level["people"] for level in people] == [750, 750]
    assert all(0.3 < level["spent_of_the_limit"] < 0.6 for level in people)


def test_numbers_that_are_derived() -> None:
    assert f"a deviation of {Staircase(B=1.0, epsilon=4.0).noise_sd(1):.3f}·B" in TEXT
    for epsilon in (4.0, 1.0):
        assert f"{up(accuracy_ceiling(Guarantee(0.25, epsilon)))} for ε = {epsilon:g}" in TEXT
