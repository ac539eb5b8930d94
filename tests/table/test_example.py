"""The invented population: its size and its target's summary as in Table S1, and skew as phone use has."""

import numpy as np
import pytest
from scipy.stats import skew

from targetdp.demo import targeting
from targetdp.normalization import normalize
from targetdp.scales import data_scales
from targetdp.table.example import togo_like


def test_table_s1_size_range_and_center() -> None:
    """Table S1, Togo: 4,201 people, 10 features, target in [0.005, 1], mean 0.073, deviation 0.068."""
    people = togo_like(np.random.default_rng(1))
    assert people.X.shape == (4201, 10)
    assert len(people.names) == 10
    assert people.consumption.min() >= 0.005
    assert people.consumption.max() <= 1.0
    large = togo_like(np.random.default_rng(2), people=200_000).consumption
    assert large.mean() == pytest.approx(0.073, rel=0.05)
    assert large.std() == pytest.approx(0.068, rel=0.15)
    assert 3 < skew(large) < 6


def test_consumption_can_be_predicted_about_as_well_as_the_paper_implies() -> None:
    people = togo_like(np.random.default_rng(3))
    accuracy, missed = targeting(normalize(people.X, data_scales(people.X)).X, people.consumption)
    assert accuracy == pytest.approx(0.69, abs=0.03)
    assert missed == pytest.approx((1 - accuracy) / 2, abs=1e-9)  # with a matched quota both errors are equal


def test_features_are_correlated_and_some_are_skewed() -> None:
    X = togo_like(np.random.default_rng(4), people=50_000).X
    between = np.abs(np.asarray(np.corrcoef(X.T))[np.triu_indices(10, 1)])
    assert between.mean() > 0.15
    assert (skew(X, axis=0) > 1).sum() == 6


def test_the_same_generator_gives_the_same_people() -> None:
    a, b = (togo_like(np.random.default_rng(5), people=50) for _ in range(2))
    np.testing.assert_array_equal(a.X, b.X)
    with pytest.raises(ValueError, match="people = 0"):
        togo_like(np.random.default_rng(5), people=0)
