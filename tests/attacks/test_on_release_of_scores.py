"""A release of scores joined with the original: by exact scores, with the rows that they were made of."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from support.release import FEATURES, read_back, table_of, write_parquet
from support.scores import (
    EVERYBODY,
    SAMPLED,
    TWO,
    WEIGHTS,
    release_sample,
    release_scores,
    two_tables,
)
from targetdp._core import Floats, Silent
from targetdp.attacks import join_tables, run_attacks, score_inference
from targetdp.attacks._on_release import LEFT_OUT_ASIDE
from targetdp.mechanisms import LinearLaw
from targetdp.normalization import normalize, read_scales


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    two_tables(tmp_path)
    return tmp_path


def scaled(folder: Path, ids: list[str]) -> Floats:
    """The rows of people, as the mechanism saw them."""
    table = pq.read_table(folder / "all.parquet")
    values = np.column_stack([table[name].to_numpy() for name in FEATURES])
    places = {name: place for place, name in enumerate(table["name"].to_pylist())}
    rows = values[[places[i] for i in ids]]
    return np.asarray(normalize(rows, read_scales(folder / "scales.toml", FEATURES)).X)


@pytest.mark.parametrize("scores", [("score",), ("one", "two")])
def test_each_person_meets_her_own_score(folder: Path, scores: tuple[str, ...]) -> None:
    certificate = release_scores(
        folder, weights=TWO if len(scores) == 2 else WEIGHTS, scores=scores
    ).certificate
    tables = join_tables(folder / "all.parquet", folder / "scores.parquet", "name", progress=Silent())
    private = read_back(folder / "scores.parquet")
    rows = scaled(folder, private["name"].to_pylist())
    assert tables.rows_before_scoring is not None
    assert isinstance(tables.rows_before_scoring.law, LinearLaw)
    assert tables.features == scores
    assert tables.rows_before_scoring.features == FEATURES
    assert np.array_equal(tables.rows_before_scoring.original, rows)
    assert tables.original == pytest.approx(
        rows @ np.array(tables.rows_before_scoring.law.weights).T, abs=1e-15
    )
    assert np.array_equal(tables.released, np.column_stack([private[name].to_numpy() for name in scores]))
    assert tables.law is not None
    assert tables.law.dimensions == len(scores)
    assert tables.law.record() == certificate.mechanism.law["noise"]
    assert tables.holdout is None


def test_people_of_the_sample_may_be_the_holdout(folder: Path) -> None:
    sample = release_sample(folder)
    release_scores(folder, sample=sample)
    original, released = folder / "all.parquet", folder / "scores.parquet"
    with pytest.raises(ValueError, match=f"has {SAMPLED} people who are not in release"):
        join_tables(original, released, "name", progress=Silent())
    tables = join_tables(original, released, "name", progress=Silent(), rest_is_holdout=True)
    assert tables.notes == (LEFT_OUT_ASIDE.format(releases=sample.certificate.release[:12]),)
    assert tables.holdout is not None
    assert tables.rows_before_scoring is not None
    assert tables.rows_before_scoring.holdout is not None
    assert (len(tables.original), tables.holdout.shape) == (EVERYBODY - SAMPLED, (SAMPLED, 1))
    assert tables.holdout == pytest.approx(
        tables.rows_before_scoring.holdout @ np.array(tables.rows_before_scoring.law.weights).T
    )
    findings = {one.attack: one for one in run_attacks(tables, seed=1)}
    for name, one in findings.items():
        assert (one.protection is None) == (name in {"linkability", "attribute_inference"}), one.meaning
    assert "no columns on which people could look alike" in findings["attribute_inference"].meaning
    inferred = findings["insider_inference"]
    assert inferred.protection is not None
    assert list(inferred.protection.settings) == [f"h={h}, {name}" for h in (1, 2) for name in FEATURES]
    assert "whose row or score it is" in inferred.record()["adversary"]
    rows = tables.rows_before_scoring
    rng = np.random.default_rng([1, 7])  # the seed, and the attack's place
    assert inferred.protection == score_inference(
        rows.original, tables.released, rows.law.weights, rows.law, rows.holdout, columns=FEATURES, rng=rng
    )
    assert "people's scores" in findings["reconstruction"].meaning
    assert "released score" in findings["linkage"].meaning


def test_another_original_is_found_out(folder: Path) -> None:
    release_scores(folder)
    ids = table_of(EVERYBODY)["name"]
    write_parquet(folder / "all.parquet", table_of(EVERYBODY, seed=7).set_column(0, "name", ids))
    with pytest.raises(ValueError, match=r"per released column .* not by the noise of the certificate"):
        join_tables(folder / "all.parquet", folder / "scores.parquet", "name", progress=Silent())


def test_scores_and_rows_have_nothing_to_be_linked_by(folder: Path) -> None:
    sample = release_sample(folder)
    release_scores(folder, sample=sample, leave_out=None)
    one, two = (
        join_tables(folder / "all.parquet", folder / name, "name", progress=Silent(), rest_is_holdout=True)
        for name in ("scores.parquet", "sample.parquet")
    )
    assert one.notes == ()
    (finding,) = run_attacks(one, ["linkability"], further=[two])
    assert "no column in common" in finding.meaning
    again = run_attacks(one, ["linkability"], further=[one])[0]
    assert again.protection is not None
