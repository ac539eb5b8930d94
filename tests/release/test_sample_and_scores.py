"""Who spends what when weights were learned from an earlier release."""

from typing import Any

import numpy as np
import pytest

from targetdp import GaussianNoise, Guarantee, SphericalLaplace, Staircase, sequential
from targetdp.accounting import compose
from targetdp.mechanisms import Scores
from targetdp.normalization import ColumnScales, confidential_scales, declared_scales
from targetdp.release import spending_of
from targetdp.release._certificate._charge import Charge, SampleRelease, SampleSpending

FIRST = GaussianNoise(B=0.25, epsilon=2.0, delta=1e-4)
NOISE = GaussianNoise(B=0.5, epsilon=3.0, delta=1e-5)
SPENT = Guarantee(2, 0.1, 1e-12)


def first(scales: Guarantee | None = None, **more: Any) -> SampleRelease:
    own = FIRST.guarantee if scales is None else sequential(scales, FIRST.guarantee)
    return SampleRelease("r1", "0" * 64, 40, own, Charge(law=FIRST.law(3), scales=scales), **more)


def together(
    one: SampleRelease, *, scored: bool, same: bool, weights: Any = (1.0, 2.0, -1.0), noise: Any = NOISE
) -> SampleSpending:
    charge = Charge(law=Scores(weights, noise).law(3))
    return spending_of(one, noise.guarantee, charge, scored=scored, some_have_left=False, same=same)


@pytest.mark.parametrize("same", [True, False])
def test_who_is_left_out_spends_the_sample_alone(same: bool) -> None:
    found = together(first(), scored=False, same=same)
    assert (found.inside, found.outside) == (FIRST.guarantee, NOISE.guarantee)


def test_who_is_scored_spends_both_by_lemma_2_where_scales_differ() -> None:
    found = together(first(), scored=True, same=False)
    assert found.inside == sequential(FIRST.guarantee, NOISE.guarantee) == Guarantee(0.25, 5.0, 1.1e-4)
    assert found.outside == NOISE.guarantee


def test_exact_curves_are_used_where_scales_are_the_same_and_are_no_better_than_the_truth() -> None:
    """Normal noise composes exactly: the squares of distances over deviations add up."""
    found = together(first(), scored=True, same=True)
    assert found.inside.B == 0.25
    assert found.inside.delta == pytest.approx(1.1e-4)
    losses = [m.privacy_loss(distance=0.25, dimensions=1) for m in (FIRST, NOISE)]
    true = compose(*losses).epsilon(found.inside.delta)
    assert true <= found.inside.epsilon < true * (1 + 1e-6) < 5.0
    # The scores' B is twice as large, so that at the first one's it costs about half.
    assert found.inside.epsilon < 3.5


def test_what_is_stated_does_not_depend_on_weights_that_came_after_a_look() -> None:
    drawn = np.random.default_rng(3).normal(size=(4, 3))
    stated = {together(first(), scored=True, same=True, weights=w).inside for w in drawn}
    assert len(stated) == 1


@pytest.mark.parametrize("noise", [Staircase(B=0.25, epsilon=1.0), SphericalLaplace(B=0.25, epsilon=1.0)])
def test_never_more_than_lemma_2_and_never_less_than_either(noise: Any) -> None:
    found = together(first(), scored=True, same=True, noise=noise).inside
    lemma = sequential(FIRST.guarantee, noise.guarantee)
    assert FIRST.guarantee.epsilon * 0.9 < found.epsilon <= lemma.epsilon
    assert (found.B, found.delta) == (lemma.B, lemma.delta)


def test_scales_that_were_paid_for_count() -> None:
    plain, paid = (together(first(spent), scored=True, same=True).inside for spent in (None, SPENT))
    assert plain.epsilon < paid.epsilon <= 5.1
    charge = Charge(law=Scores([1.0, 1.0, 1.0], NOISE).law(3), scales=SPENT)
    own = sequential(SPENT, NOISE.guarantee)
    both = spending_of(first(), own, charge, scored=True, some_have_left=False, same=True).inside
    assert plain.epsilon < both.epsilon <= 5.1


def test_only_scores_are_released_beside_a_sample() -> None:
    with pytest.raises(TypeError, match="has no scores"):
        spending_of(
            first(), NOISE.guarantee, Charge(law=NOISE.law(3)), scored=True, some_have_left=False, same=True
        )


KNOWN = {"a": (1.0, 2.0), "b": (3.0, 4.0)}
SAME = declared_scales([3.0, 1.0], [4.0, 2.0])


@pytest.mark.parametrize(
    ("known", "features", "scales", "same"),
    [
        (KNOWN, ("b", "a"), SAME, True),
        (KNOWN, ("a", "b"), SAME, False),
        (KNOWN, ("b", "a"), declared_scales([3.0, 1.0], [4.0, np.nextafter(2.0, 3.0)]), False),
        (KNOWN, ("b", "a"), confidential_scales([3.0, 1.0], [4.0, 2.0]), False),
        (KNOWN, ("b", "a"), ColumnScales(np.array([3.0, 1.0]), np.array([4.0, 2.0]), "private", SPENT), True),
        (KNOWN | {"c": (0.0, 1.0)}, ("b", "a"), SAME, False),
        ({"b": (3.0, 4.0)}, ("b", "a"), SAME, False),
        (None, ("b", "a"), SAME, False),
    ],
)
def test_the_same_space_is_the_same_columns_scaled_alike(
    known: dict[str, tuple[float, float]] | None, features: tuple[str, ...], scales: ColumnScales, same: bool
) -> None:
    assert first(scales=None).has_scales(features, scales) is False
    one = SampleRelease("r1", "0" * 64, 40, FIRST.guarantee, Charge(law=FIRST.law(3)), known)
    assert one.has_scales(features, scales) is same
