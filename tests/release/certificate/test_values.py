"""Released values against the stated noise: none is found missing that is there, and most that is missing."""

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy.stats import binom, chi

from support.outside import CREDIT, VIETNAM, needs
from targetdp._core import Floats
from targetdp.guarantee import Guarantee
from targetdp.mechanisms import (
    GaussianNoise,
    NoiseLaw,
    Scores,
    SphericalLaplace,
    Staircase,
    least_noise,
    noise_mechanisms,
)
from targetdp.noise import PublicWords
from targetdp.normalization import data_scales, normalize
from targetdp.release._certificate._values import LEVEL, _chance, _tail, has_the_noise, rows_looked_at


def law_at(B: float, d: int, epsilon: float = 4.0, delta: float = 1e-6) -> NoiseLaw:
    return least_noise(Guarantee(B, epsilon, delta), d).mechanism.law(d)


def score_law(B: float, d: int) -> NoiseLaw:
    weights = np.ones((1, d))
    return Scores(weights, least_noise(Guarantee(B, 4.0, 1e-6), 1).mechanism).law(d)


def with_noise(rows: Floats, law: NoiseLaw, seed: int = 1) -> Floats:
    return law.add_to(rows, PublicWords(seed))


LAWS = {
    "normal": GaussianNoise(B=0.25, epsilon=4, delta=1e-6).law(5),
    "laplace": SphericalLaplace(B=0.25, epsilon=4).law(5),
    "staircase": Staircase(B=0.25, epsilon=4).law(1),
    "projection": noise_mechanisms()["projection-exact"](Guarantee(0.25, 4.0, 1e-6)).law(5),
}


def tables(d: int, n: int = 3000) -> dict[str, Floats]:
    """Tables of the ball, among them those that look most like no noise."""
    rng = np.random.default_rng(3)
    spread = rng.normal(size=(n, d))
    on_surface = spread / np.linalg.norm(spread, axis=1)[:, None]
    return {
        "all zero": np.zeros((n, d)),
        "all the same": np.tile(on_surface[:1], (n, 1)),
        "two points": on_surface[rng.integers(2, size=n)],
        "surface": on_surface,
        "inside": on_surface * rng.random((n, 1)),
    }


@pytest.mark.parametrize("kind", LAWS)
def test_no_honest_release_is_suspected_whatever_its_rows_are(kind: str) -> None:
    law = LAWS[kind]
    for name, rows in tables(law.dimensions).items():
        for seed in range(5):
            assert has_the_noise(with_noise(rows, law, seed), law) is not False, (name, seed)


@pytest.mark.parametrize("kind", LAWS)
def test_half_of_the_noise_is_found_on_rows_that_are_short(kind: str) -> None:
    law = LAWS[kind]
    zero = np.zeros((3000, law.dimensions))
    assert has_the_noise(with_noise(zero, law) / 2, law) is False


def test_the_level_is_kept_by_a_computation_of_its_own() -> None:
    """For normal noise chances are those of a chi distribution, which nobody here has drawn."""
    d, deviation = 5, LAWS["normal"].deviation_per_column
    drawn = LAWS["normal"].add_to(np.zeros((100_000, d)), PublicWords(0))
    lengths = np.linalg.norm(drawn, axis=1)
    for t in np.quantile(lengths, [0.02, 0.1, 0.5, 0.9, 0.98]):
        assert _chance(lengths <= t) >= chi(d).cdf(t / deviation)
        assert _chance(lengths <= t) <= chi(d).cdf(t / deviation) * 1.2 + 0.01
    assert _chance(lengths <= 1e9) == 1.0
    assert _tail(7, 10, 0.5) == pytest.approx(sum(binom.pmf(k, 10, 0.5) for k in range(7, 11)))


def test_noise_that_is_missing_in_one_direction_is_found() -> None:
    """No length tells: in the other directions there is more."""
    law = law_at(0.5, 6)
    rng = np.random.default_rng(0)
    rows = tables(6, 20_000)["inside"]
    quiet = rng.normal(size=6)
    quiet /= np.linalg.norm(quiet)
    noisy = with_noise(rows, law)
    noise = noisy - rows
    without = rows + (noise - np.outer(noise @ quiet, quiet)) * 2
    assert has_the_noise(noisy, law) is True
    assert has_the_noise(without, law) is False


def test_what_values_can_tell_follows_from_the_law() -> None:
    rows = tables(10, 4000)["surface"]
    assert has_the_noise(rows, law_at(0.25, 10)) is False
    assert has_the_noise(with_noise(rows, law_at(0.25, 10)), law_at(0.25, 10)) is True
    for B in (0.05, 0.1):
        assert has_the_noise(rows, law_at(B, 10)) is None
    few = tables(4, 4000)["surface"]
    assert has_the_noise(few, law_at(0.25, 4)) is None
    assert has_the_noise(few, law_at(0.5, 4)) is False
    scores = rows[:, :1]
    for B in (0.1, 0.25, 0.5):
        assert has_the_noise(scores, score_law(B, 10)) is None
    assert has_the_noise(scores, score_law(2.0, 10)) is False
    # Of a handful of rows nobody can tell.
    assert has_the_noise(rows[:3], law_at(0.25, 10)) is None


def test_columns_of_thousands_are_looked_at_in_fewer_rows() -> None:
    assert rows_looked_at(10) == 200_000
    assert rows_looked_at(1000) == 4000
    assert rows_looked_at(10**7) == 1
    law = law_at(0.25, 300)
    rows = np.zeros((500, 300))
    assert has_the_noise(rows, law) is False
    assert has_the_noise(with_noise(rows, law), law) is True


def test_the_level_is_far_below_what_anybody_repeats() -> None:
    assert LEVEL <= 1e-9


@needs(VIETNAM, CREDIT)
@pytest.mark.parametrize(("path", "columns"), [(VIETNAM, 10), (CREDIT, 15)])
def test_real_tables_without_noise_are_caught(path: str, columns: int) -> None:
    table = pq.read_table(path)
    names = [n for n in table.column_names if n not in {"id", "target", "weight"}][:columns]
    X = np.column_stack([np.asarray(table.column(name), dtype=float) for name in names])
    rows = normalize(X, data_scales(X)).X
    law = law_at(0.25, rows.shape[1])
    assert has_the_noise(rows, law) is False
    assert has_the_noise(with_noise(rows, law), law) is True
    assert has_the_noise(rows, law_at(0.1, rows.shape[1])) is not True  # two columns may be alike
