"""Every command of docs/scores.md runs, in order, and what it is said to do is done."""

import re
import shlex
from pathlib import Path

import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from support.docs import DOCS, Block, printed_by
from support.release import cli, words
from targetdp import Guarantee, Staircase
from targetdp._core import up
from targetdp.theorem1 import accuracy_ceiling

TEXT = (DOCS / "scores.md").read_text(encoding="utf-8")


def test_the_commands_run_one_after_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said: dict[str, str] = {}
    for language, text in re.findall(
        r"^```(console|python|toml)\n(.*?)^```", TEXT, flags=re.DOTALL | re.MULTILINE
    ):
        if language == "toml":
            (tmp_path / "program.toml").write_text(text, encoding="utf-8")
            continue
        if language == "python":
            assert printed_by(Block(language, text, None), {"__name__": "document"}) == ""
            continue
        for line in text.splitlines():
            program, *arguments = shlex.split(line)
            assert program == "targetdp"
            ran = cli(*arguments)
            assert ran.code == 0, (line, ran.err)
            said[arguments[0]] = words(ran.out + ran.err)
    assert set(said) == {"example", "scales", "ledger", "privatize", "learn", "score", "verify", "allocate"}
    assert "What to expect of scores" in said["learn"]
    assert "people of the sample are left out" in said["score"]
    assert pq.read_metadata(tmp_path / "scores.parquet").num_rows == 750
    decisions = pacsv.read_csv(tmp_path / "decisions.csv")
    assert decisions.column_names == ["id", "chance", "decision", "based_on"]
    assert decisions["decision"].to_pylist().count("aid") == round(0.29 * 1500)
    # Nobody is in both releases, so a second score would be too much for the others.
    again = cli(
        "score", "features.parquet", "weights.toml", "again.parquet", "--release", "release.toml", "--sample",
        "private_sample.parquet", "--ledger", "ledger.db", "--population", "subscribers", "--part", "others",
    )  # fmt: skip
    assert again.code == 2
    assert "is refused" in again.err


def test_numbers_that_are_derived() -> None:
    assert f"a deviation of {Staircase(B=1.0, epsilon=4.0).noise_sd(1):.3f}·B" in TEXT
    for epsilon in (4.0, 1.0):
        assert f"{up(accuracy_ceiling(Guarantee(2.0, epsilon)))} for ε = {epsilon:g}" in TEXT
    assert accuracy_ceiling(Guarantee(0.25, 4.0)) <= 1 - 1e-14
