"""What is published beside scores tells nothing of the rows that they were made from."""

from pathlib import Path
from typing import Any

import pytest

from support.leaks import Twins, must_be_alike, tables
from support.release import make_desk, read_back, request_of, write_parquet
from support.scores import WEIGHTS, release_sample

SAMPLED = 20
ROWS = 60
ASKED: dict[str, Any] = {"mechanism": "gaussian", "delta": 1e-7}


@pytest.mark.parametrize("leave_out", [False, True], ids=["everybody", "sample left out"])
def test_releases_of_scores_of_neighbors_differ_in_nothing_but_their_own(
    leave_out: bool, tmp_path: Path
) -> None:
    everybody = tables(ROWS)
    make_desk(tmp_path)
    # The person who differs comes first: the sample is of others.
    write_parquet(tmp_path / "sampled.parquet", everybody["as it is"].slice(ROWS - SAMPLED))
    sample = release_sample(tmp_path, **ASKED).certificate.release
    asked: dict[str, Any] = {"release": "scores", "weights": WEIGHTS, "learned_from": sample} | ASKED
    twins = Twins(tmp_path, request_of(**asked, leave_out=(sample,) if leave_out else ()))
    told = []
    for table in everybody.values():
        told.append(twins.release(table))
        assert read_back(tmp_path / "out.parquet").num_rows == ROWS - leave_out * SAMPLED
    must_be_alike(told)
    assert told[0].certificate["scores"]
