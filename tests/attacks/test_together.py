"""Several releases of the same rows: they count together, about as one release with less noise would."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.release import FEATURES, cli, table_of, write_parquet, write_scales
from support.scores import write_weights
from targetdp import GaussianNoise, SphericalLaplace
from targetdp._core import Floats, Silent
from targetdp.attacks import (
    Case,
    Finding,
    JoinedTables,
    ReleasedValues,
    distinguishing,
    insider_inference,
    join_tables,
    linkage,
    reconstruction,
    run_attacks,
)
from targetdp.attacks._guess._observation import JointObservation, Observation
from targetdp.attacks._together import View, each_and_together
from targetdp.mechanisms import GaussianLaw, NoiseMechanism, Scores
from targetdp.normalization import clip_rows

NOISY = GaussianNoise(B=0.25, epsilon=4, delta=1e-6)
JOINTLY = ("insider_inference", "linkage", "reconstruction")


def people(n: int = 1500, d: int = 4, seed: int = 0) -> Floats:
    """Most of them longer than 1, and clipped, as in real tables: their last value is a sign."""
    rng = np.random.default_rng(seed)
    return clip_rows(rng.normal(0, 1, (n, 1)) + rng.normal(0, 1, (n, d)))


# The average


def views_of(*releases: Any) -> tuple[View, ...]:
    return each_and_together(Case(releases[0], np.random.default_rng(0), tuple(releases[1:])))


class Joined(JoinedTables):
    """Joined tables whose noise is known without a certificate."""

    noise: NoiseMechanism

    @property
    def law(self) -> Any:
        return self.noise.law(self.original.shape[1])


def released(X: Floats, noise: Any = NOISY, seed: int = 0, places: Any = None) -> JoinedTables:
    rng = np.random.default_rng(seed)
    names = tuple("abcdefgh"[: X.shape[1]])
    here = np.arange(len(X)) if places is None else np.asarray(places)
    tables = Joined(names, X[here], noise.privatize(X[here], rng), places=here)
    object.__setattr__(tables, "noise", noise)
    return tables


def test_the_average_of_two_has_half_the_variance_and_is_the_mean() -> None:
    X = people()
    one, two = released(X, seed=1), released(X, seed=2)
    *alone, both = views_of(one, two)
    assert [view.numbers for view in alone] == [(1,), (2,)]
    assert both.name == "releases 1 and 2 together"
    rows, average, noise = both.average()
    assert np.array_equal(rows, X)
    assert average == pytest.approx((one.released + two.released) / 2)
    assert noise.covariance == pytest.approx(NOISY.noise_covariance(4) / 2)
    assert noise.note == ""
    assert noise.density.normal_mixture


def test_noises_of_different_size_are_weighed_by_their_precision() -> None:
    X, louder = people(), GaussianNoise(B=0.5, epsilon=4, delta=1e-6)
    one, two = released(X, seed=1), released(X, louder, seed=2)
    _, average, noise = views_of(one, two)[-1].average()
    a, b = (1 / n.noise_covariance(4)[0, 0] for n in (NOISY, louder))
    assert average == pytest.approx((a * one.released + b * two.released) / (a + b))
    assert noise.covariance == pytest.approx(np.eye(4) / (a + b))
    spread = (average - X).var()
    assert spread == pytest.approx(1 / (a + b), rel=0.1)


def test_people_meet_by_their_places_in_whatever_order() -> None:
    X, rng = people(), np.random.default_rng(3)
    one, two = released(X, seed=1), released(X, seed=2, places=rng.permutation(1500)[:900])
    both = views_of(one, two)[-1]
    assert len(both.rows) == 900
    assert np.array_equal(both.rows, two.original[both.places[1]])
    rows, average, noise = both.average()
    assert (average - rows).var() == pytest.approx(noise.covariance[0, 0], rel=0.1)


def test_a_release_with_fewer_people_does_not_hide_the_others() -> None:
    X = people()
    few, all_again = released(X, seed=2, places=range(50)), released(X, seed=3)
    views = views_of(released(X, seed=1), few, all_again)
    assert [(v.numbers, len(v.rows)) for v in views if len(v.numbers) > 1] == [
        ((1, 2), 50),
        ((1, 3), 1500),
        ((1, 2, 3), 50),
    ]


def test_scores_add_to_rows() -> None:
    X, weights = people(), np.array([[0.5, 0.5, -0.5, 0.5]])
    mechanism = Scores(weights, GaussianNoise(B=0.05, epsilon=4, delta=1e-6))
    scores = mechanism.privatize(X, np.random.default_rng(5))
    rows = released(X, seed=1)
    shown = [ReleasedValues(rows.released, NOISY), ReleasedValues(scores, mechanism.noise, mechanism.weights)]
    once, twice = (
        insider_inference(X, some, known=[3], rng=np.random.default_rng(1)) for some in (shown[:1], shown)
    )
    assert twice.score < once.score - 0.05


def test_other_scales_and_unknown_noise_are_not_combined() -> None:
    X = people()
    other = released(X / 2, seed=2)
    unknown = JoinedTables(tuple("abcd"), X, X + 0.1)
    assert all(len(view.numbers) == 1 for view in views_of(released(X, seed=1), other, unknown))


# As strong as one release with less noise


def test_two_releases_protect_less_than_one_and_as_one_with_half_the_variance() -> None:
    X, law = people(3000), NOISY.law(4)
    half = GaussianLaw(4, law.grid / 4, law.deviation_per_column / np.sqrt(2))
    rng = np.random.default_rng(0)
    one, two, quiet = (
        ReleasedValues(X + rng.normal(0, noise.deviation_per_column, X.shape), noise)
        for noise in (law, law, half)
    )
    once, twice, halved = (
        insider_inference(X, some, known=[3], rng=np.random.default_rng(1)).score
        for some in ([one], [one, two], [quiet])
    )
    assert twice < once - 0.02
    assert twice == pytest.approx(halved, abs=0.015)


@pytest.mark.parametrize("noise", [NOISY, SphericalLaplace(B=0.25, epsilon=4)])
def test_the_panel_uses_further_releases_in_inference_linkage_and_reconstruction(noise: Any) -> None:
    X = people()
    one, two, three = (released(X, noise, seed) for seed in (1, 2, 3))
    scores: list[dict[str, float]] = []
    for further in ((), (two,), (two, three)):
        found = run_attacks(one, JOINTLY, further=further, seed=1)
        scores.append({f.attack: score(f) for f in found})
        for finding in found if further else ():
            assert finding.protection is not None
            name = "releases 1 and 2 together" if len(further) == 1 else "releases 1, 2 and 3 together"
            assert finding.protection.detail["strongest_release"] == name
            assert name in finding.meaning
    for attack in JOINTLY:
        once, twice, thrice = (some[attack] for some in scores)
        assert thrice < twice < once, attack
    # One release of the average, with its noise, is what they come to.
    rows, average, left = views_of(one, two)[-1].average()
    assert scores[1]["reconstruction"] == pytest.approx(reconstruction(average, left, rows).score, abs=0.02)
    assert scores[1]["linkage"] == pytest.approx(linkage(rows, average, left).score, abs=0.02)


def test_where_they_cannot_be_combined_the_strongest_single_one_counts() -> None:
    X = people()
    one = released(X, seed=1)
    elsewhere = clip_rows(X * np.array([1.0, 3.0, 1.5, 1.0]))
    quiet = released(elsewhere, GaussianNoise(B=0.02, epsilon=4, delta=1e-6), seed=2)
    for name in JOINTLY:
        (alone,) = run_attacks(quiet, [name], seed=1)
        (found,) = run_attacks(one, [name], further=[quiet], seed=1)
        assert found.protection is not None
        assert found.protection.detail["strongest_release"] == "release 2"
        assert score(found) == pytest.approx(score(alone), abs=0.03)
        assert "Releases 1 and 2 could not be combined" in found.meaning


def score(finding: Finding) -> float:
    assert finding.protection is not None, finding.meaning
    return finding.protection.score


# Likelihoods


def test_the_joint_density_is_the_product_of_the_parts() -> None:
    X = people(40)
    noises = (SphericalLaplace(B=0.25, epsilon=4), NOISY)
    shown = [noise.privatize(X, np.random.default_rng(i)) for i, noise in enumerate(noises)]
    parts = [Observation.of(None, noise, 4) for noise in noises]
    joint = JointObservation.of_parts(parts)
    values = np.linspace(-0.5, 0.5, 5)
    together = joint.log_density(X, np.concatenate(shown, axis=1), 2, values)
    assert together == pytest.approx(
        sum(part.log_density(X, own, 2, values) for part, own in zip(parts, shown, strict=True))
    )
    assert joint.map.shape == (8, 4)
    assert np.array_equal(joint.covariance[:4, 4:], np.zeros((4, 4)))
    assert JointObservation.of_parts(parts[:1]) is parts[0]


# What is derived


def test_several_releases_are_told_apart_as_their_losses_compose() -> None:
    law = NOISY.law(4)
    once, twice = distinguishing(law, 4, B=0.25), distinguishing(law, 4, B=0.25, further=[law])
    loss = "expected_loss"
    assert twice.detail[loss] == pytest.approx(2 * once.detail[loss], rel=1e-3)
    assert twice.detail["at_B"]["best_guess"] > once.detail["at_B"]["best_guess"]
    elsewhere = distinguishing(law, 4, B=0.25, elsewhere=[law.privacy_loss(2.0)])
    assert elsewhere.detail["at_B"]["best_guess"] > twice.detail["at_B"]["best_guess"]
    with pytest.raises(ValueError, match="is for one release"):
        distinguishing(law, 4, formula="as_printed", further=[law])


def test_bad_input_is_refused() -> None:
    X: Any = people(50)
    with pytest.raises(ValueError, match="shown has 0 entries"):
        insider_inference(X, [])
    with pytest.raises(TypeError, match=r"shown\[0\]"):
        insider_inference(X, [X])
    with pytest.raises(ValueError, match="weights are for 2 columns"):
        insider_inference(X, [ReleasedValues(X[:, 0], NOISY, [[0.6, 0.8]])])


# From files


def test_rows_and_scores_of_the_same_people_count_together(tmp_path: Path) -> None:
    write_parquet(tmp_path / "people.parquet", table_of(900))
    scales = write_scales(tmp_path / "scales.toml")
    asked = (
        "--id", "name", "--features", ",".join(FEATURES), "--B", "0.25", "--epsilon", "4", "--scales", scales,
        "--quiet",
    )  # fmt: skip
    rows, scores = tmp_path / "rows.parquet", tmp_path / "scores.parquet"
    weights = write_weights(tmp_path / "weights.toml")
    for ran in (
        cli("privatize", tmp_path / "people.parquet", rows, *asked),
        cli("score", tmp_path / "people.parquet", weights, scores, *asked, "--no-sample", "--yes"),
    ):
        assert ran.code == 0, ran.err
    one, two = (
        join_tables(tmp_path / "people.parquet", path, "name", progress=Silent()) for path in (rows, scores)
    )
    for first, second in ((one, two), (two, one)):
        alone = {f.attack: score(f) for f in run_attacks(first, JOINTLY, seed=1)}
        for finding in run_attacks(first, JOINTLY, further=[second], seed=1):
            assert finding.protection is not None
            assert "releases 1 and 2 together" in finding.protection.detail["by_release"]
            assert score(finding) <= alone[finding.attack] + 1e-9
