"""What is published beside scores tells nothing of the rows that they were made from."""

import json
from pathlib import Path

import pytest

from support.leaks import masked, tables, without_own
from support.release import certificate_of, cli, make_desk, read_back, request_of, write_parquet
from targetdp.release import certificate_path
from targetdp.release._staging import page_path

SAMPLED = 20
ROWS = 60


@pytest.mark.parametrize("leave_out", [False, True], ids=["everybody", "a sample is left out"])
def test_certificates_and_pages_of_scores(
    leave_out: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    everybody = tables(ROWS)
    seen = set()
    for number, table in enumerate(everybody.values()):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        monkeypatch.chdir(folder)
        make_desk(folder)
        # The person who differs comes first: the sample is of others.
        sampled = write_parquet(Path("sampled.parquet"), everybody["as it is"].slice(ROWS - SAMPLED))
        assert cli("privatize", sampled, "sample.parquet", "--B", "0.25", "--epsilon", "4", "--yes").code == 0
        sample = certificate_of(Path("sample.parquet")).release
        request = request_of(
            release="scores", weights={"calls": 1.0, "texts": -0.5, "topups": 2.0}, delta=1e-7,
            leave_out=[sample] if leave_out else (),
        )  # fmt: skip
        Path("request.toml").write_text(request.text())
        source = write_parquet(Path("all.parquet"), table)
        ran = cli("privatize", source, "out.parquet", "--request", "request.toml", "--yes")
        assert ran.code == 0, ran.err
        assert read_back(Path("out.parquet")).num_rows == ROWS - leave_out * SAMPLED
        certificate = without_own(json.loads(certificate_path(Path("out.parquet")).read_text("utf-8")))
        text = json.dumps(certificate, sort_keys=True)
        for own, name in ((sample, "SAMPLE"), (request.sha256, "REQUEST")):
            text = text.replace(own, name)
        seen.add((text, masked(page_path(Path("out.parquet")).read_text("utf-8"))))
    assert len(seen) == 1
