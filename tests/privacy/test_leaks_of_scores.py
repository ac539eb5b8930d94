"""What is published beside scores tells nothing of the rows that they were made from."""

import json
from pathlib import Path

import pytest

from support.leaks import masked, tables, without_own
from support.release import ASKED, cli, read_back, write_parquet, write_scales
from support.scores import write_weights
from targetdp.release import certificate_path
from targetdp.release._staging import page_path

SAMPLED = 20
ROWS = 60


@pytest.mark.parametrize("leave_out", [False, True], ids=["no sample", "sample left out"])
def test_certificates_and_pages_of_scores(
    leave_out: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_scales(tmp_path / "scales.toml")
    write_weights(tmp_path / "weights.toml")
    asked = (*ASKED, "--delta", "1e-7", "--scales", "scales.toml")
    everybody = tables(ROWS)
    # The person who differs comes first: the sample is of others.
    write_parquet(Path("sampled.parquet"), everybody["as it is"].slice(ROWS - SAMPLED))
    assert cli("privatize", "sampled.parquet", "sample.parquet", *asked).code == 0
    sample = ("--sample", "sample.parquet") if leave_out else ("--no-sample",)
    seen = set()
    for table in everybody.values():
        source = write_parquet(Path("all.parquet"), table)
        ran = cli("score", source, "weights.toml", "out.parquet", *asked, *sample, "--force")
        assert ran.code == 0, ran.err
        assert read_back(Path("out.parquet")).num_rows == ROWS - leave_out * SAMPLED
        certificate = without_own(json.loads(certificate_path(Path("out.parquet")).read_text("utf-8")))
        page = masked(page_path(Path("out.parquet")).read_text("utf-8"))
        seen.add((json.dumps(certificate, sort_keys=True), page))
    assert len(seen) == 1
