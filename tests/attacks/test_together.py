"""Several releases of the same rows: they count together, about as one release with less noise would."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.release import place_with, release
from support.scores import release_scores
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
from targetdp.attacks._match._known_noise import in_scores
from targetdp.attacks._match._together import View, each_and_together
from targetdp.attacks._on_release import RowsBeforeScoring
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
    place_with(tmp_path, rows=900)
    release(tmp_path, "rows.parquet")
    release_scores(tmp_path, table="in.parquet")
    one, two = (
        join_tables(tmp_path / "in.parquet", tmp_path / name, "name", progress=Silent())
        for name in ("rows.parquet", "scores.parquet")
    )
    for first, second in ((one, two), (two, one)):
        alone = {f.attack: score(f) for f in run_attacks(first, JOINTLY, seed=1)}
        for finding in run_attacks(first, JOINTLY, further=[second], seed=1):
            assert finding.protection is not None
            assert "releases 1 and 2 together" in finding.protection.detail["by_release"]
            assert score(finding) <= alone[finding.attack] + 1e-9


# Which are seen together, and what is said of it


def test_the_order_of_further_releases_changes_nothing() -> None:
    """Two halves, the quiet one last: it was never combined, since the halves share nobody."""
    X, quiet = people(), GaussianNoise(B=0.15, epsilon=4, delta=1e-6)
    one, low = released(X, seed=1), released(X, seed=2, places=range(750))
    high = released(X, quiet, seed=3, places=range(750, 1500))
    sets = []
    for further in ((low, high), (high, low)):
        views = [view for view in views_of(one, *further) if len(view.numbers) > 1]
        sets.append({(id(v.releases[-1]), len(v.rows)) for v in views})
        (found,) = run_attacks(one, ["linkage"], further=further, seed=1)
        assert "could not be combined" not in found.meaning
        assert found.protection is not None
        number = 3 if further[0] is low else 2
        assert found.protection.detail["strongest_release"] == f"releases 1 and {number} together"
    assert sets[0] == sets[1] == {(id(low), 750), (id(high), 750)}


def test_releases_that_only_share_people_with_each_other_are_combined() -> None:
    X = people()
    releases = [released(X, seed=i, places=range(*ends)) for i, ends in enumerate(((0, 500), (500, 1500)))]
    again = released(X, seed=5, places=range(700, 1500))
    assert [v.numbers for v in views_of(*releases, again)] == [(1,), (2,), (3,), (2, 3)]


def test_columns_in_another_order_are_the_same_columns() -> None:
    X = people()
    one, turned = released(X, seed=1), released(X[:, ::-1], seed=2)
    object.__setattr__(turned, "features", one.features[::-1])
    both = views_of(one, turned)[-1]
    rows, average, noise = both.average()
    assert np.array_equal(rows, X)
    assert average == pytest.approx((one.released + turned.released[:, ::-1]) / 2)
    assert noise.covariance == pytest.approx(NOISY.noise_covariance(4) / 2)
    found = run_attacks(one, JOINTLY, further=[turned], seed=1)
    same = run_attacks(one, JOINTLY, further=[released(X, seed=2)], seed=1)
    for mine, plain in zip(found, same, strict=True):
        assert score(mine) == pytest.approx(score(plain), abs=0.03)


def test_one_person_with_another_row_stops_nobody_else() -> None:
    X = people()
    other = X.copy()
    other[5] /= 2
    both = views_of(released(X, seed=1), released(other, seed=2))[-1]
    assert both.numbers == (1, 2)
    assert np.array_equal(both.rows, np.delete(X, 5, axis=0))


def held_out(X: Floats, here: Any, seed: int, holdout: Any = None) -> JoinedTables:
    """A release of some people of X, with others as its holdout."""
    tables = released(X, seed=seed, places=here)
    if holdout is not None:
        object.__setattr__(tables, "holdout", X[holdout])
        object.__setattr__(tables, "holdout_places", np.asarray(holdout))
    return tables


def test_people_of_a_release_are_no_outsiders() -> None:
    X = people()
    one, fewer = held_out(X, range(1000), 1), held_out(X, range(400), 2, range(400, 1500))
    assert all(view.holdout is None for view in views_of(one, fewer))  # nobody said that there is one
    said = held_out(X, range(1000), 1, range(1000, 1500))
    more = held_out(X, range(200, 1100), 3, [*range(200), *range(1100, 1500)])
    for view in views_of(said, more):
        assert view.holdout is not None
        assert np.array_equal(view.holdout, X[1100:])


def of_scores(X: Floats, B: float, seed: int) -> JoinedTables:
    """A release of one score, the same weights every time."""
    mechanism = Scores(np.full((1, 4), 0.5), GaussianNoise(B=B, epsilon=4, delta=1e-6))
    law = mechanism.law(4).linear
    assert law is not None
    rows = RowsBeforeScoring(tuple("abcd"), law, X, None)
    values = mechanism.privatize(X, np.random.default_rng(seed))
    return JoinedTables(("score",), in_scores(X, law), values, rows_before_scoring=rows)


def test_shares_of_variance_of_rows_and_of_scores_are_not_compared() -> None:
    X = people()
    rows, scores = released(X, seed=1), of_scores(X, 0.02, 2)
    (found,) = run_attacks(rows, ["reconstruction"], further=[scores], seed=1)
    assert found.protection is not None
    assert found.protection.detail["strongest_release"] == "releases 1 and 2 together"
    assert "people's values" in found.meaning
    assert "For scores, which are not compared with rows, protection was 0.0" in found.meaning
    (found,) = run_attacks(scores, ["reconstruction"], further=[rows], seed=1)
    assert found.protection is not None
    assert found.protection.detail["strongest_release"] == "release 1"
    assert "people's scores" in found.meaning
    assert "For rows, which are not compared with scores, protection was" in found.meaning


def test_the_words_are_those_of_the_strongest_release() -> None:
    X = people()
    elsewhere = released(clip_rows(X * [1.0, 3.0, 1.5, 1.0]), GaussianNoise(B=0.01, epsilon=4, delta=1e-6), 2)
    (found,) = run_attacks(of_scores(X, 2.0, 1), ["linkage"], further=[elsewhere], seed=1)
    assert "released row" in found.meaning
    assert "Strongest: release 2 for 1,500 people." in found.meaning


def test_the_insider_uses_a_further_release_beside_one_of_a_single_column() -> None:
    X = people()
    (found,) = run_attacks(released(X[:, :1], seed=1), ["insider_inference"], further=[released(X, seed=2)])
    assert found.protection is not None
    assert found.protection.detail["strongest_release"] == "release 2"
    assert any("Not used: release 1: " in note for note in found.protection.detail["notes"])
    (alone,) = run_attacks(released(X[:, :1], seed=1), ["insider_inference"])
    assert alone.protection is None


def test_another_releases_figure_is_said_to_be_its() -> None:
    X = people()
    unknown = JoinedTables(tuple("abcd"), X, X + 0.1)
    (found,) = run_attacks(unknown, ["reconstruction"], further=[released(X, seed=1)], seed=1)
    assert "Strongest: release 2 for 1,500 people." in found.meaning
    assert found.protection is not None
    assert any("Not used: release 1: without a certificate" in n for n in found.protection.detail["notes"])
    (alone,) = run_attacks(unknown, ["reconstruction"], seed=1)
    assert alone.meaning.startswith("Not run: without a certificate of added noise")


def test_linkability_counts_the_people_in_common() -> None:
    X, quiet = people(), GaussianNoise(B=0.02, epsilon=4, delta=1e-6)
    one = released(X, quiet, seed=1, places=range(800))
    others = [
        released(X, quiet, seed=2, places=range(500, 1500)),
        released(X, quiet, seed=3, places=[1, 2, 1400]),
    ]
    (found,) = run_attacks(one, ["linkability"], further=others, seed=1)
    assert found.protection is not None
    people_of = {"release 2": "300", "release 3": "2"}[found.protection.detail["strongest_release"]]
    assert f"for {people_of} people." in found.meaning
