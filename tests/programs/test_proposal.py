"""What is proposed of a table: no codes, no text that looks like numbers, groups and ids by name."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from targetdp.programs import ProgramTerms, load_program, program_template, propose
from targetdp.programs._settings import make_program_settings
from targetdp.table import TableProfile, profile_table

ROWS = 60


def seen(folder: Path, columns: dict[str, Any], file: str = "people.parquet") -> TableProfile:
    data = {"calls": np.arange(ROWS) % 17, "y": np.linspace(0, 1, ROWS)} | columns
    path = folder / file
    (pacsv.write_csv if file.endswith("csv") else pq.write_table)(pa.table(data), path)
    return profile_table(path)


@pytest.mark.parametrize("file", ["people.parquet", "people.csv"])
def test_codes_are_no_features(tmp_path: Path, file: str) -> None:
    """Commune 40 is not four times commune 10; the file says that they were left out."""
    many, few = np.arange(ROWS) % 30, np.arange(ROWS) % 5
    codes = {"commune": many, "home_district": many, "ZipCode": many, "id_village": many, "psu": many * 1.0}
    kept = {"villages_visited": many, "village_size": many, "ward": few, "commune": many / 7}
    look = seen(tmp_path, codes, file)
    found = propose(look, "aid")
    assert found.features == ("calls",)
    text = program_template(found, look, Path(file), ProgramTerms("public"))
    for name in codes:
        assert f'# left out: "{name}" (by its name its numbers are codes, not amounts: add it if' in text
    assert propose(look, "aid", features=["commune"]).features == ("commune",), "who names it means it"
    assert propose(seen(tmp_path, kept, file), "aid").features == ("calls", *kept)


def test_digits_that_a_parquet_file_calls_text_are_no_numbers(tmp_path: Path) -> None:
    """A feature that is text there could not be opened."""
    look = seen(tmp_path, {"cell": [str(i % 30) for i in range(ROWS)]})
    assert look["cell"].kind == "text"
    found = propose(look, "aid")
    given = {
        "kind": "aid", "table": tmp_path / "people.parquet", "source": "public", "target": found.target,
        "features": found.features, "quota": 0.3,
    }  # fmt: skip
    assert len(load_program(make_program_settings(given)).rows) == ROWS
    assert seen(tmp_path, {"cell": [str(i % 30) for i in range(ROWS)]}, "people.csv")["cell"].is_number


def test_a_marked_group_is_one_and_no_other_is_guessed(tmp_path: Path) -> None:
    halves = ["n", "s"] * (ROWS // 2)
    assert propose(seen(tmp_path, {"sex": halves, "area": halves}), "aid").groups == ("sex", "area")
    assert propose(seen(tmp_path, {"sex": halves, "g_region": halves}), "aid").groups == ("g_region",)


def test_a_whole_number_that_is_always_different_is_no_id(tmp_path: Path) -> None:
    assert propose(seen(tmp_path, {"income": np.arange(ROWS)}), "aid").id is None
    assert propose(seen(tmp_path, {"person_id": np.arange(ROWS)}), "aid").id == "person_id"


def test_features_that_are_given_need_no_others(tmp_path: Path) -> None:
    """Where nothing could be guessed, what somebody names is still taken."""
    look = seen(tmp_path, {"calls": ["a", "b"] * (ROWS // 2), "district": np.arange(ROWS)})
    with pytest.raises(ValueError, match="features could not be guessed"):
        propose(look, "aid")
    assert propose(look, "aid", features=["district"]).features == ("district",)
