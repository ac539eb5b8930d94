"""The scikit-learn transformer: its contract, its repeatability, and that its noise is the mechanism's."""

import inspect
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils import Tags
from sklearn.utils.estimator_checks import check_estimator

from targetdp import SimulatedPrivacy
from targetdp._core import Floats
from targetdp.mechanisms import NoiseMechanism, noise_mechanisms
from targetdp.normalization import data_scales, normalize

NAMES = ["least-noise", *noise_mechanisms()]

REPEATS = {"check_pipeline_consistency", "check_transformer_data_not_an_array", "check_transformer_general"}
"""Checks that call twice and compare: scikit-learn itself skips them for what says it is random."""

ENVIRONMENT = {"check_array_api_input"}
"""Skipped unless SCIPY_ARRAY_API is set, which has nothing to do with this estimator."""

ROWWISE = {"check_methods_sample_order_invariance", "check_methods_subset_invariance"}
"""Checks that the output of a row depends on that row alone. Noise depends on its place in the stream."""


def rows(n: int = 300, d: int = 4, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).normal(
        [1.0, 20.0, -3.0, 0.0][:d], [1.0, 9.0, 0.1, 2.0][:d], size=(n, d)
    )


def columns_for(name: str) -> int:
    return 1 if name == "staircase" else 4


# The contract


class Repeatable(SimulatedPrivacy):
    """The same transformer without the tag that excuses it from being called twice."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = False
        return tags


def by_status(estimator: SimulatedPrivacy) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {"passed": set(), "skipped": set(), "failed": set(), "xfail": set()}
    for result in check_estimator(estimator, on_skip=None, on_fail=None):
        found[result["status"]].add(result["check_name"])
    return found


def test_it_keeps_scikit_learns_contract() -> None:
    """Nothing fails, and only what is meant for deterministic estimators is skipped."""
    found = by_status(SimulatedPrivacy())
    assert not found["failed"]
    assert not found["xfail"]
    assert found["skipped"] - ENVIRONMENT == REPEATS
    assert len(found["passed"]) > 30


def test_with_a_fixed_random_state_it_passes_what_is_skipped_too() -> None:
    """All but the two checks that noise cannot pass."""
    found = by_status(Repeatable(random_state=0))
    assert found["failed"] == ROWWISE
    assert found["skipped"] <= ENVIRONMENT
    assert found["passed"] >= REPEATS


def test_it_says_that_it_is_random() -> None:
    assert SimulatedPrivacy().__sklearn_tags__().non_deterministic


def test_parameters_are_kept_as_they_came() -> None:
    parameters = {"mechanism": "gaussian", "B": 0.5, "epsilon": 2, "delta": 1e-6, "random_state": 3}
    estimator = SimulatedPrivacy(**parameters)  # type: ignore[arg-type]
    assert estimator.get_params() == parameters
    assert clone(estimator).get_params() == parameters
    assert set(inspect.signature(SimulatedPrivacy).parameters) == set(parameters)


# Inside pipelines


def test_it_works_in_a_pipeline_and_more_noise_predicts_worse() -> None:
    X = rows(2000)
    y = X[:, 0] + X[:, 1] / 9
    scores = []
    for B in (1e-3, 0.1, 1.0):
        pipeline = make_pipeline(SimulatedPrivacy(B=B, random_state=0), Ridge())
        scores.append(pipeline.fit(X[:1000], y[:1000]).score(X[1000:], y[1000:]))
    assert scores[0] > scores[1] > scores[2]
    assert scores[0] > 0.7


def test_a_grid_search_over_B_runs_and_prefers_the_least_noise() -> None:
    X = rows(600)
    y = X[:, 0] + X[:, 1] / 9
    pipeline = make_pipeline(SimulatedPrivacy(random_state=0), Ridge())
    search = GridSearchCV(pipeline, {"simulatedprivacy__B": [0.01, 0.5, 2.0]}, cv=3, error_score="raise")
    search.fit(X, y)
    assert search.best_params_ == {"simulatedprivacy__B": 0.01}
    means = search.cv_results_["mean_test_score"]
    assert means[0] > means[1] > means[2]


# What it does


@pytest.mark.parametrize("name", NAMES)
def test_it_is_scaling_clipping_and_the_mechanism(name: str) -> None:
    X = rows(d=columns_for(name))
    before = X.tobytes()
    estimator = SimulatedPrivacy(name, B=0.5, random_state=7).fit(X)
    seed = np.random.RandomState(7).randint(0, 2**31 - 1)
    table = normalize(X, data_scales(X)).X
    expected = estimator.mechanism_.privatize(table, np.random.default_rng(seed))
    assert np.array_equal(estimator.transform(X), expected)
    assert X.tobytes() == before
    assert estimator.mechanism_.guarantee.B == 0.5
    assert estimator.mechanism_.guarantee.epsilon == pytest.approx(4.0)
    if name in noise_mechanisms():
        assert type(estimator.mechanism_) is type(noise_mechanisms()[name](estimator.mechanism_.guarantee))


def test_scales_are_those_of_the_training_rows() -> None:
    train, test = rows(seed=1), rows(seed=2) + 100.0
    estimator = SimulatedPrivacy(random_state=0).fit(train)
    assert np.array_equal(estimator.scales_.center, data_scales(train).center)
    seed = np.random.RandomState(0).randint(0, 2**31 - 1)
    expected = estimator.mechanism_.privatize(
        normalize(test, data_scales(train)).X, np.random.default_rng(seed)
    )
    assert np.array_equal(estimator.transform(test), expected)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_random_state_repeats_and_another_does_not(name: str) -> None:
    X = rows(d=columns_for(name))
    first = SimulatedPrivacy(name, random_state=1)
    out = first.fit_transform(X)
    assert np.array_equal(out, first.transform(X))
    assert np.array_equal(out, clone(first).fit_transform(X))
    assert not (out == SimulatedPrivacy(name, random_state=2).fit_transform(X)).all(axis=1).any()


def test_without_a_random_state_nothing_repeats() -> None:
    X = rows()
    estimator = SimulatedPrivacy().fit(X)
    assert not np.array_equal(estimator.transform(X), estimator.transform(X))


def test_a_random_state_that_is_a_stream_moves_on() -> None:
    X = rows()
    estimator = SimulatedPrivacy(random_state=np.random.RandomState(0)).fit(X)
    first, second = estimator.transform(X), estimator.transform(X)
    assert not np.array_equal(first, second)
    assert np.array_equal(first, SimulatedPrivacy(random_state=0).fit_transform(X))


@pytest.mark.parametrize("name", NAMES)
def test_the_noise_has_the_mechanisms_deviation(name: str) -> None:
    """60,000 rows of zeros: 3% are at least 5 standard errors, a false alarm below 10⁻⁶.

    The relative variance of a mean of squares is (kurtosis − 1)/60,000; the largest kurtosis is the
    Laplace distribution's 6 in one dimension, which makes 3% in the deviation 6.5 standard errors.
    """
    n, d = 60_000, columns_for(name)
    estimator = SimulatedPrivacy(name, B=0.5, epsilon=2.0, random_state=3).fit(rows(d=d))
    X = np.tile(estimator.scales_.center, (n, 1))
    noise = estimator.transform(X)
    claimed = estimator.mechanism_.noise_sd(d)
    assert isinstance(estimator.mechanism_, NoiseMechanism)
    assert np.sqrt((noise**2).mean()) == pytest.approx(claimed, rel=0.03)
    assert np.abs(noise.mean(axis=0)).max() < 5.3 * claimed / np.sqrt(n)


def test_least_noise_has_the_least_noise() -> None:
    X = rows()
    deviations = {
        name: SimulatedPrivacy(name).fit(X).mechanism_.noise_sd(4) for name in NAMES if name != "staircase"
    }
    assert deviations["least-noise"] == min(deviations.values())


# What it refuses


@pytest.mark.parametrize("mechanism", ["nothing", "", "Gaussian", None, 3, ["gaussian"], {}, True])
def test_an_unknown_mechanism_is_refused(mechanism: Any) -> None:
    with pytest.raises(ValueError, match=r"^mechanism = .* is not one of gaussian, least-noise, ") as caught:
        SimulatedPrivacy(mechanism).fit(rows())
    assert all(name in str(caught.value) for name in NAMES)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"B": 0}, r"^B = 0.0 is outside \(0, 2\]"),
        ({"B": "1"}, r"^B = '1' is not a number"),
        ({"epsilon": -1}, r"^epsilon = -1.0 is outside \(0, inf\)"),
        ({"epsilon": None}, r"^epsilon = None is not a number"),
        ({"delta": 1.5}, r"^delta = 1.5 is outside \[0, 1\]"),
        ({"mechanism": "gaussian", "delta": 0}, r"^delta = 0.0 is outside \[1e-20, 1\)"),
        ({"mechanism": "gaussian", "epsilon": 101}, r"^epsilon = 101.0 is outside \[0.0001, 100\]"),
    ],
)
def test_bad_parameters_are_refused_when_it_is_fitted(change: dict[str, Any], message: str) -> None:
    estimator = SimulatedPrivacy(**change)
    with pytest.raises((TypeError, ValueError), match=message):
        estimator.fit(rows())


@pytest.mark.parametrize("random_state", ["seed", 1.5, -1, [1], np.random.default_rng(0)])
def test_a_bad_random_state_is_refused(random_state: Any) -> None:
    with pytest.raises(ValueError, match=r"cannot be used to seed|Seed must be"):
        SimulatedPrivacy(random_state=random_state).fit(rows()).transform(rows())


def test_the_staircase_refuses_more_than_one_column() -> None:
    with pytest.raises(ValueError, match=r"exactly 1 column"):
        SimulatedPrivacy("staircase").fit_transform(rows())


def test_another_number_of_columns_is_refused() -> None:
    estimator = SimulatedPrivacy().fit(rows())
    with pytest.raises(ValueError, match="3 features"):
        estimator.transform(rows(d=3))
