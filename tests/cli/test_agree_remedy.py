"""What `targetdp agree` says where the policy lets nobody be handed over: lines that work when pasted."""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from support.release import cli, write_csv

COLUMNS = [*(f"c{i}" for i in range(11)), 'calls "at night"']


def test_the_lines_of_the_remedy_can_be_pasted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = np.random.default_rng(1).normal(size=(30, len(COLUMNS)))
    names = [f"p{i}" for i in range(30)]
    write_csv(tmp_path / "in.csv", pa.table({"name": names} | dict(zip(COLUMNS, rows.T, strict=True))))
    write_csv(tmp_path / "agreed.csv", pa.table({"name": names[:5]}))
    assert cli("init", "in.csv", "--id", "name").code == 0
    refused = cli("agree", "in.csv", "agreed.csv", "--check")
    assert refused.code == 2
    lines = re.search(r"^    \[agreed\]\n(?:    \w+ = .+\n){3}", refused.err, flags=re.MULTILINE)
    assert lines is not None
    with (tmp_path / "desk" / "policy.toml").open("a", encoding="utf-8") as policy:
        policy.write("\n" + lines[0])
    seen = cli("agree", "in.csv", "agreed.csv", "agreed.parquet", "--yes", "--json")
    assert seen.code == 0, seen.err
    assert seen.json["columns"] == COLUMNS
