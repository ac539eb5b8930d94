"""Scores: one number for each person, with the noise of one dimension, in every shape that a release has."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from support.release import (
    CENTERS,
    FEATURES,
    SCALES,
    certificate_of,
    hidden,
    holds,
    normalized,
    nothing_changes,
    people,
    read_back,
    table_of,
    values_of,
    write_csv,
    write_parquet,
)
from support.scores import TWO, WEIGHTS, in_folder, release_sample, release_scores, two_tables, write_weights
from targetdp import privatize_frame
from targetdp._core import Floats
from targetdp.guarantee import Guarantee
from targetdp.mechanisms import LinearLaw, law_of
from targetdp.normalization import declared_scales
from targetdp.release import SigningKey, SingledOutError, make_settings, privatize_file, read_release_file
from targetdp.release._certificate._contents import is_certified
from targetdp.release._certificate._page import page
from targetdp.release._staging import page_path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    two_tables(tmp_path)
    write_weights(tmp_path / "weights.toml")
    SigningKey.open(tmp_path / "key.pem")
    return tmp_path


def noise(released: pa.Table, raw: pa.Table, weights: Any = WEIGHTS) -> Floats:
    """What was added to each score, in order of ids: computed here and not by the library."""
    unit = np.atleast_2d(weights) / np.linalg.norm(np.atleast_2d(weights), 2)
    exact = normalized(raw.sort_by("name")) @ unit.T
    return np.asarray(values_of(released, released.column_names[1:]) - exact)


# What comes out


def test_id_and_score_come_out_sorted_with_a_certificate_that_holds(folder: Path) -> None:
    done = release_scores(folder)
    found = read_back(done.path)
    assert found.column_names == ["name", "score"]
    assert found.column("name").to_pylist() == sorted(read_back(folder / "all.parquet")["name"].to_pylist())
    assert found.schema.field("score").type == pa.float64()
    c = done.certificate
    assert (c.scores, c.features, c.released) == (("score",), FEATURES, ("score",))
    assert holds(done.path)
    assert hidden(folder) == []


def test_each_person_gets_his_own_score_with_the_noise_of_one_dimension(tmp_path: Path) -> None:
    """The deviation within 4% (some five standard errors of 4,000 draws): 0.9 or 1.1 of it would be found."""
    two_tables(tmp_path)
    raw = table_of(4000)
    write_parquet(tmp_path / "all.parquet", raw)
    write_weights(tmp_path / "weights.toml")
    done = release_scores(tmp_path, mechanism="gaussian", epsilon=1.0, delta=1e-3)
    law = law_of(done.certificate.mechanism.law or {})
    assert isinstance(law, LinearLaw)
    added = noise(read_back(done.path), raw)
    assert added.std() == pytest.approx(law.noise.deviation_per_column, rel=0.04)
    assert abs(added.mean()) < 5 * law.deviation_per_column / np.sqrt(4000)
    assert done.certificate.mechanism.noise_length == law.deviation_per_column


def test_one_dimension_needs_far_less_noise_than_all_columns(folder: Path) -> None:
    one = release_scores(folder, "a.parquet", delta=1e-5).certificate
    write_weights(folder / "weights.toml", TWO, ("a", "b"))
    two = release_scores(folder, "b.parquet", delta=1e-5).certificate
    three = release_scores(folder, "c.parquet", weights=None, delta=1e-5).certificate
    lengths = [c.mechanism.noise_length for c in (one, two, three)]
    assert lengths == sorted(lengths)  # type: ignore[type-var]
    assert one.mechanism.deviation_per_column == pytest.approx(0.255 * 0.25, rel=1e-3)


def test_the_size_of_weights_changes_nothing(folder: Path) -> None:
    write_weights(folder / "weights.toml", np.array(WEIGHTS) * 1e200)
    done = release_scores(folder)
    write_weights(folder / "weights.toml")
    again = release_scores(folder, "again.parquet")
    one, two = ((c.mechanism.law or {})["weights"] for c in (done.certificate, again.certificate))
    np.testing.assert_allclose(one, two, rtol=1e-12)
    assert np.linalg.norm(one) == pytest.approx(1)
    assert np.abs(noise(read_back(done.path), read_back(folder / "all.parquet"))).max() < 2


def test_features_are_matched_by_name(folder: Path) -> None:
    write_weights(folder / "weights.toml", WEIGHTS[::-1], features=FEATURES[::-1])
    done = release_scores(folder, epsilon=100.0)
    assert np.abs(noise(read_back(done.path), read_back(folder / "all.parquet"))).max() < 0.2
    np.testing.assert_allclose(
        (done.certificate.mechanism.law or {})["weights"], [np.array(WEIGHTS) / np.sqrt(6)], rtol=1e-6
    )


@pytest.mark.parametrize("output", ["scores.csv", "scores.parquet", "scores"])
@pytest.mark.parametrize("source", ["all.parquet", "all.csv"])
def test_every_shape(folder: Path, source: str, output: str) -> None:
    raw = table_of(120, region=["north", "south"] * 60)
    write_parquet(folder / "all.parquet", raw)
    write_csv(folder / "all.csv", raw)
    write_weights(folder / "weights.toml", TWO, ("one", "two"))
    asked = in_folder(folder, weights=folder / "weights.toml", keep=("region",), epsilon=50.0)
    privatize_file(folder / source, folder / output, asked)
    found = read_back(folder / output)
    assert found.column_names == ["name", "one", "two", "region"]
    assert np.abs(noise(found.drop_columns("region"), raw, TWO)).max() < 0.5
    assert holds(folder / output)


def test_the_order_of_the_input_can_be_kept(folder: Path) -> None:
    done = release_scores(folder, keep_order=True)
    assert read_back(done.path)["name"].to_pylist() == read_back(folder / "all.parquet")["name"].to_pylist()
    assert holds(done.path)


def test_pseudonyms_and_cider_and_private_scales_work_as_for_columns(folder: Path) -> None:
    hashed = release_scores(folder, "hashed.parquet", pseudonymize=folder / "p.key")
    assert all(len(name) == 64 for name in read_back(hashed.path)["name"].to_pylist())
    cider = release_scores(folder, "features.csv", made_for="cider")
    assert values_of(read_back(cider.path), ["score"]).std() == pytest.approx(1)
    (folder / "bounds.toml").write_text(
        "[features]\n" + "\n".join(f"{name} = {{ lower = -50, upper = 50 }}" for name in FEATURES)
    )
    paid = release_scores(
        folder, "paid.parquet", scales="private", bounds=folder / "bounds.toml", scales_epsilon=5.0
    )
    assert paid.certificate.guarantee is not None
    assert paid.certificate.guarantee.epsilon == pytest.approx(9.0)
    own = release_scores(folder, "own.parquet", scales="data")
    assert any("conditional guarantee" in warning for warning in own.warnings)
    assert all(holds(done.path) for done in (hashed, cider, paid, own))


@pytest.mark.parametrize(
    "mechanism", ["spherical-laplace", "gaussian", "projection", "projection-exact", "staircase"]
)
def test_a_mechanism_by_name_works_on_the_scores(folder: Path, mechanism: str) -> None:
    done = release_scores(folder, mechanism=mechanism)
    assert done.certificate.mechanism.name == mechanism
    assert holds(done.path)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_frames_are_scored_alike(folder: Path, make: Any) -> None:
    done = privatize_frame(
        make(people(50)), id="name", features=FEATURES, B=0.25, epsilon=4.0,
        scales=declared_scales(CENTERS, SCALES), weights=folder / "weights.toml",
    )  # fmt: skip
    assert list(pa.table(done.frame).column_names) == ["name", "score"]
    assert is_certified(done.frame, done.certificate)
    assert done.certificate.scores == ("score",)


def test_a_frame_leaves_a_sample_out(folder: Path) -> None:
    release_sample(folder)
    frame = read_back(folder / "all.parquet")
    done = privatize_frame(
        frame, id="name", features=FEATURES, B=0.25, epsilon=4.0, scales=str(folder / "scales.toml"),
        weights=folder / "weights.toml", sample=folder / "sample.parquet", key=folder / "key.pem",
    )  # fmt: skip
    assert done.frame.num_rows == 80
    assert done.certificate.sample is not None


# What is refused, before anything is published


@pytest.mark.parametrize("keep_order", [True, False])
def test_gaps_are_refused_and_nothing_is_left(folder: Path, keep_order: bool) -> None:
    raw = table_of(120).to_pydict()
    raw["texts"][7] = None
    write_parquet(folder / "all.parquet", pa.table(raw))
    with (
        nothing_changes(folder),
        pytest.raises(ValueError, match="texts  1 gap, in row 8"),
    ):
        release_scores(folder, keep_order=keep_order)
    assert release_scores(folder, impute=0.0).certificate.imputed == dict.fromkeys(FEATURES, 0.0)


def test_weights_that_single_out_a_column_need_a_word(folder: Path) -> None:
    write_weights(folder / "weights.toml", [0.1, 2.0, -0.1])
    with (
        nothing_changes(folder),
        pytest.raises(SingledOutError, match=r"single out 'texts' \(100%\)") as refused,
    ):
        release_scores(folder)
    assert "over 99% texts (raises it), under 1% calls (raises it)" in str(refused.value)
    assert refused.value.columns == {"texts": pytest.approx(4 / 4.02)}
    assert release_scores(folder, accept_weights=True).certificate.scores == ("score",)


def test_one_feature_alone_is_singled_out(folder: Path) -> None:
    write_weights(folder / "weights.toml", [3.0], features=["calls"])
    with pytest.raises(SingledOutError, match="'calls'"):
        release_scores(folder, features=("calls",))


def test_a_weights_file_that_changes_meanwhile_changes_nothing(folder: Path) -> None:
    """It is read once: what the data holder saw is what is released."""
    asked = in_folder(folder, weights=folder / "weights.toml")
    write_weights(folder / "weights.toml", [0.0, 1.0, 0.0], ("other",))
    done = privatize_file(folder / "all.parquet", folder / "scores.parquet", asked)
    assert done.certificate.scores == ("score",)


def test_a_release_file_names_weights_and_sample_relative_to_itself(folder: Path) -> None:
    release_sample(folder)
    place = folder / "release.toml"
    place.write_text(
        'id = "name"\nfeatures = ["calls", "texts", "topups"]\nB = 0.25\nepsilon = 4\n'
        'scales = "scales.toml"\n'
        'weights = "weights.toml"\nsample = "sample.parquet"\nkey = "key.pem"\n'
    )
    asked = make_settings(read_release_file(place))
    assert privatize_file(folder / "all.parquet", folder / "s.parquet", asked).certificate.rows == 80
    place.write_text(place.read_text() + "accept_weights = true\n")
    with pytest.raises(ValueError, match="has accept_weights: say it each time"):
        read_release_file(place)


# What is said


def test_the_page_says_what_the_scores_tell_and_who_spends_what(folder: Path) -> None:
    release_sample(folder, epsilon=2.0)
    done = release_scores(folder, sample=folder / "sample.parquet")
    text = page_path(done.path).read_text(encoding="utf-8")
    assert text == page(certificate_of(done.path))
    assert "80 rows, 1 score of 3 protected columns" in text
    assert "- **score**: 67% texts (raises it), 17% calls (raises it), 17% topups (lowers it)" in text
    assert "| outside the sample | this release | (B = 0.25, ε = 4, δ = 8.08e-28) |" in text
    assert "| inside it | the sample | (B = 0.25, ε = 2, δ = 1e-07) |" in text
    assert "They are left out here." in text
    assert "per score" in text
    assert "weights = [" not in text


def test_conditions_say_what_scores_are_and_where_the_weights_come_from(folder: Path) -> None:
    told = " ".join(release_scores(folder, "a.parquet").certificate.conditions)
    assert "Released is one weighted sum of the protected columns (score), with weights that the data" in told
    assert "It is not stated from which release, if any, the weights were learned" in told
    told = " ".join(release_scores(folder, "b.parquet", no_sample=True).certificate.conditions)
    assert "Nobody in the table is in the release that the weights were learned from" in told
    write_weights(folder / "weights.toml", TWO, ("a", "b"))
    told = " ".join(release_scores(folder, "c.parquet").certificate.conditions)
    assert "Released are 2 weighted sums of the protected columns (a, b)" in told
    told = " ".join(release_scores(folder, "d.parquet", weights=None).certificate.conditions)
    assert "weighted sum" not in told


def test_the_certificate_states_both_guarantees(folder: Path) -> None:
    first = release_sample(folder, B=0.5, epsilon=2.0).certificate
    left = release_scores(folder, "a.parquet", sample=folder / "sample.parquet").certificate
    both = release_scores(
        folder, "b.parquet", sample=folder / "sample.parquet", score_sample=True
    ).certificate
    assert first.guarantee is not None
    for c in (left, both):
        assert c.sample is not None
        assert c.guarantee is not None
        assert c.guarantee.value().is_at_least(Guarantee(0.25, 4.0, 1e-7)), "outside: this release alone"
        assert (c.sample.guarantee, c.sample.release) == (first.guarantee, first.release)
        assert c.sample.same_scales
    assert left.sample is not None
    assert left.sample.inside == first.guarantee
    assert both.sample is not None
    inside = both.sample.inside
    assert inside.B == 0.25
    assert 4.0 < inside.epsilon < 6.0
    told = next(text for text in both.conditions if "are scored, too" in text)
    assert "by the exact curves of both noises" in told
    assert "that were not chosen by looking at the first" in told
