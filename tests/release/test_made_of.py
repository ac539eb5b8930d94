"""What scores are made of, after scaling and clipping: whoever chooses the scales cannot hide a column."""

from pathlib import Path

import numpy as np
import pytest

from support.release import (
    FEATURES,
    certificate_of,
    look,
    make_desk,
    new_policy,
    normalized,
    place_with,
    release,
    table_of,
    write_parquet,
)
from targetdp._core import Floats
from targetdp.normalization import declared_scales
from targetdp.release._certificate._page import page
from targetdp.release._look._made_of import SHOWN, SINGLED_OUT, Spread, in_words, shares, singled_out

THREE = ("calls", "texts", "topups")
EQUAL = {"calls": 1.0, "texts": 1.0, "topups": 1.0}


def spread_of(covariance: Floats, n: int = 20_000) -> Spread:
    """That of normal rows, about; they are short, so that none is clipped."""
    rows = np.random.default_rng(0).multivariate_normal(np.zeros(len(covariance)), covariance, n) / 20
    return Spread.of(rows.T, declared_scales(*np.array([[0, 1]] * len(covariance)).T), whole=True)


def plain(weights: Floats) -> str:
    return in_words(THREE, weights, shares(weights, np.ones(3)))


def test_columns_are_named_by_their_part_the_largest_first() -> None:
    assert plain(np.array([1.0, -3.0, 2.0])) == (
        "64% texts (lowers it), 29% topups (raises it), 7% calls (raises it)"
    )
    row = np.array([1.0, 2.0, 3.0])
    assert plain(row) == plain(row * 1e250) == plain(row * 1e-250)
    assert plain(np.array([0.0, 5.0, 0.0])) == "100% texts (raises it), nothing of 2 columns"
    assert plain(np.array([1e-3, 5.0, 0.0])) == (
        "over 99% texts (raises it), under 1% calls (raises it), nothing of 1 column"
    )


def test_of_many_columns_the_first_are_named_and_the_rest_counted() -> None:
    names = tuple(f"c{j}" for j in range(SHOWN + 3))
    row = np.ones(len(names))
    assert in_words(names, row, shares(row, row)).endswith(" 27% 3 other columns")


def test_a_spread_is_that_of_rows_in_the_ball() -> None:
    table = table_of(500)
    scales = declared_scales((10.0, 5.0, 1.0), (8.0, 6.0, 2.0))
    columns = np.array([np.asarray(table.column(name)) for name in FEATURES])
    rows = normalized(table)
    whole = Spread.of(columns[:, :200], scales, whole=True) + Spread.of(columns[:, 200:], scales, whole=True)
    assert np.allclose(whole.covariance, np.cov(rows.T, bias=True))
    assert np.allclose(whole.variances, rows.var(axis=0))
    assert np.allclose(Spread.of(columns, scales, whole=False).variances, rows.var(axis=0))


def test_of_many_rows_some_are_looked_at() -> None:
    columns = np.random.default_rng(1).normal(size=(2, 300_000)) / 10
    found = Spread.of(columns, declared_scales([0, 0], [1, 1]), whole=True)
    assert found.weight == pytest.approx(300_000, rel=0.01)
    assert found.variances == pytest.approx([0.01, 0.01], rel=0.1)


@pytest.mark.parametrize(
    ("share", "told"), [(SINGLED_OUT - 0.02, []), (SINGLED_OUT + 0.02, ["texts"]), (1.0, ["texts"])]
)
def test_a_column_that_is_most_of_a_score_is_singled_out(share: float, told: list[str]) -> None:
    rest = np.sqrt((1 - share) / 2)
    found = singled_out(THREE, np.array([[rest, -np.sqrt(share), rest]]), spread_of(np.eye(3)))
    assert list(found) == told


def test_two_scores_together_give_what_neither_gives_alone() -> None:
    both, spread = np.array([[1.0, 1.0, 0.0], [1.0, -1.0, 0.0]]), spread_of(np.eye(3))
    assert all(not singled_out(THREE, row[None, :], spread) for row in both)
    assert singled_out(THREE, both, spread) == {"calls": pytest.approx(1.0), "texts": pytest.approx(1.0)}
    assert singled_out(THREE, both * [[1e-200], [1e200]], spread).keys() == {"calls", "texts"}
    assert singled_out(THREE, np.array([both[0], both[0] * 2]), spread) == {}


def test_a_column_that_another_one_follows_is_singled_out_by_it() -> None:
    alike = np.array([[1.0, 0.99, 0.0], [0.99, 1.0, 0.0], [0.0, 0.0, 1.0]])
    assert singled_out(THREE, np.array([[1.0, 0.0, 0.0]]), spread_of(alike)).keys() == {"calls", "texts"}


@pytest.mark.parametrize(
    ("share", "weight", "told"), [(0.01, 0.5, True), (0.01, 0.2, False), (0.5, 0.7, False)]
)
def test_rare_values_show_through_scores_that_are_little_of_them(
    share: float, weight: float, told: bool
) -> None:
    generator = np.random.default_rng(2)
    flag = (generator.random(20_000) < share) / np.sqrt(share * (1 - share)) / 20
    others = generator.normal(size=(2, 20_000)) / 20
    spread = Spread.of(np.vstack([flag, others]) / 2, declared_scales([0] * 3, [1] * 3), whole=True)
    assert spread.rarity[0] == pytest.approx(1 / share if share < 0.1 else 1.0, rel=0.3)
    assert spread.rarity[1] == pytest.approx(3.0, rel=0.1)
    found = singled_out(THREE, np.array([[weight, np.sqrt(1 - weight**2), 0.0]]), spread)
    assert ("calls" in found) == told


# At a desk


def hostile(folder: Path) -> Path:
    """The file that made "10% of each column" one column: a tiny scale for it, huge ones for the others."""
    lines = ['source = "public"', 'reason = "a gift"', "[features]"]
    for name, scale in zip(FEATURES, (1e-9, 1e12, 1e12), strict=True):
        lines.append(f"{name} = {{ center = 10.0, scale = {scale} }}")
    (folder / "scales.toml").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture
def deceived(tmp_path: Path) -> Path:
    write_parquet(tmp_path / "in.parquet", table_of(200))
    make_desk(hostile(tmp_path))
    return tmp_path


def test_scales_cannot_make_a_score_of_all_columns_out_of_one(deceived: Path) -> None:
    seen = look(deceived, release="scores", weights=EQUAL)
    said = "\n".join([*seen.lines, *seen.warnings])
    assert "calls (raises it), under 1% texts" in said
    assert "after scaling and clipping; for you only" in said
    assert "nearly the column 'calls' (100%" in said
    assert "span 21 orders of magnitude, from 1e-09 (calls) to 1e+12" in said
    assert "'calls' is 100% of how people differ" in said
    assert "100.0% of rows are longer than 1" in said


def test_rows_under_such_scales_are_told_of_too(deceived: Path) -> None:
    said = "\n".join(look(deceived).warnings)
    assert "orders of magnitude" in said
    assert "'calls' is 100% of how people differ" in said


def test_honest_scales_raise_no_doubt(tmp_path: Path) -> None:
    place_with(tmp_path, 200)
    for seen in (look(tmp_path), look(tmp_path, release="scores", weights=EQUAL)):
        said = "\n".join(seen.warnings)
        assert "orders of magnitude" not in said
        assert "of how people differ" not in said


def test_scores_add_up_over_the_releases_of_a_desk(tmp_path: Path) -> None:
    """Each of three is harmless; together they give every column."""
    place_with(tmp_path, 300)
    weights = ({"calls": 1.0, "texts": 1.0}, {"calls": 1.0, "texts": -1.0})
    first = look(tmp_path, release="scores", weights=weights[0])
    assert "nearly the column" not in "\n".join(first.warnings)
    release(tmp_path, "first.parquet", release="scores", weights=weights[0])
    second = "\n".join(look(tmp_path, release="scores", weights=weights[1]).warnings)
    assert "the scores, with those released before, are nearly the column 'calls'" in second
    assert "nearly the column 'texts'" in second
    assert "topups" not in second


def test_earlier_scores_count_under_other_scales_too(tmp_path: Path) -> None:
    place_with(tmp_path, 300)
    release(tmp_path, "first.parquet", release="scores", weights={"calls": 1.0, "texts": 1.0})
    # The second column counts ten times as much as before: the first score is as (1, 10) by now.
    text = (tmp_path / "desk" / "scales.toml").read_text().replace("scale = 6.0", "scale = 60.0")
    (tmp_path / "desk" / "scales.toml").write_text(text)
    new_policy(tmp_path / "desk", reason="wider scales")
    said = "\n".join(look(tmp_path, release="scores", weights={"calls": 1.0, "texts": 10.0}).warnings)
    assert "nearly the column" not in said
    said = "\n".join(look(tmp_path, release="scores", weights={"calls": 1.0, "texts": 1.0}).warnings)
    assert "nearly the column 'calls'" in said


def test_nothing_of_it_goes_out(deceived: Path) -> None:
    """A certificate and its page state weights alone: the rest is a statistic that nobody paid for."""
    release(deceived, "scores.parquet", release="scores", weights=EQUAL)
    certificate = certificate_of(deceived / "scores.parquet")
    told = page(certificate)
    assert "0.577 × calls, 0.577 × texts, 0.577 × topups" in told
    assert "%" not in told.split("## What the scores tell")[1].split("##")[0]
    for text in (told, certificate.text()):
        assert "of how people differ" not in text
        assert "nearly the column" not in text
