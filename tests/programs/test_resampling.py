"""Resamples: the variance of a sum is that of the survey's design, whatever clusters and strata it has."""

from typing import Any

import numpy as np
import pytest

from targetdp._core import Floats
from targetdp.programs import Aid, Lending, Resamples, Result, loans_at_rates
from targetdp.programs import _resampling as resampling
from targetdp.programs._people import people_of
from targetdp.programs._resampling import DrawnUnits, half_widths


def sums(values: Floats, **design: Any) -> Floats:
    """The sum of people's values in each of many resamples."""
    people = people_of(len(values), **design)
    return Resamples.of(people, 3, 20_000)._sums(values)[:20_000, 0]  # by clusters, where there are any


def linearized(values: Floats, clusters: Any, strata: Any) -> float:
    """The textbook's variance of a total, centered as resamples of one total weight are: by residuals."""
    residuals, variance = values - values.mean(), 0.0
    for stratum in set(strata.tolist()):
        inside = strata == stratum
        totals = np.array([residuals[inside & (clusters == c)].sum() for c in set(clusters[inside].tolist())])
        m = len(totals)
        variance += m / (m - 1) * float(((totals - totals.mean()) ** 2).sum())
    return variance


def test_people_drawn_alone() -> None:
    values = np.random.default_rng(0).exponential(size=300)
    drawn = sums(values)
    assert drawn.mean() == pytest.approx(values.sum(), rel=0.002)
    assert drawn.var() == pytest.approx(300 * values.var(ddof=1), rel=0.05)


def test_clusters_and_strata() -> None:
    rng = np.random.default_rng(1)
    clusters = np.repeat(np.arange(60), 10)
    strata = clusters // 15
    values = rng.normal(size=600) + rng.normal(size=60)[clusters] + 2.0 * strata
    whole = sums(values, clusters=clusters.tolist(), strata=strata.tolist())
    assert whole.var() == pytest.approx(linearized(values, clusters, strata), rel=0.05)
    alone, unstratified = sums(values), sums(values, clusters=clusters.tolist())
    assert alone.var() < 0.7 * whole.var() < 0.7 * unstratified.var()  # each part of the design tells


def test_a_stratum_with_one_cluster_is_united_with_another() -> None:
    strata = np.array([0, 0, 1, 2, 2, 3])
    stratum, sizes = resampling._united(strata)
    assert stratum.tolist() == [0, 0, 1, 1, 1, 1]
    assert sizes.tolist() == [2, 4]
    stratum, _ = resampling._united(np.arange(4))
    assert stratum.tolist() == [0, 0, 1, 1]
    with pytest.raises(ValueError, match="people has 1 cluster"):
        Resamples.of(people_of(4, clusters=["one"] * 4), 0)


def test_random_groups_of_a_large_table_tell_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    values, strata = rng.exponential(size=1_000), rng.integers(0, 3, 1_000)
    alone = sums(values, strata=strata.tolist()).var()
    monkeypatch.setattr(resampling, "MOST_CLUSTERS", 300)
    grouped = Resamples.of(people_of(1_000, strata=strata.tolist()), 5, 20_000)
    (way,) = grouped.ways
    assert 240 < way.times.shape[1] <= 300
    assert way.degrees == way.times.shape[1] - 3
    for group in range(way.times.shape[1]):
        assert len(set(strata[way.units == group])) == 1
    assert grouped._sums(values)[:, 0].var() == pytest.approx(alone, rel=0.25)  # 250 groups: 9% each way


def programs() -> list[tuple[Any, Floats]]:
    rng = np.random.default_rng(4)
    n = 500
    groups = {"sex": rng.choice(["f", "m"], n).tolist(), "place": rng.choice(["a", "b", "c"], n).tolist()}
    weights = rng.uniform(0.5, 3, n)
    aid = Aid(rng.random(n), 0.3, population=9_000, weights=weights, groups=groups)
    loans = loans_at_rates(rng.exponential(100, n), revenue=0.2, interest=0.02)
    lending = Lending((rng.random(n) < 0.7).astype(np.float64), loans, population=9_000, groups=groups)
    return [(aid, rng.random(n)), (lending, rng.random(n))]


@pytest.mark.parametrize(("program", "scores"), programs())
def test_sums_and_rates_of_the_sample_itself_are_its_figures(program: Any, scores: Floats) -> None:
    result: Result = program.judge(scores, np.random.default_rng(0))
    people = program.people
    once = Resamples(people, (DrawnUnits(np.arange(people.count), np.ones((1, people.count)), 1),))
    parts = {name: values[0] for name, values in once.sums(result).items()}
    for name, values in parts.items():
        assert values == pytest.approx(result.figures[name]), name
    rates = result.rates(parts, once.wanted(result)[0], once.population()[0])
    assert len(rates) == 5
    for name, values in rates.items():
        assert values == pytest.approx(result.figures[name]), name


def test_a_quota_holds_in_every_resample() -> None:
    program, scores = programs()[0]
    result = program.judge(scores)
    eligible = Resamples.of(program.people, 0).sums(result)["eligible"][:, 0]
    assert eligible == pytest.approx(np.full(200, result["eligible"]))


def village(rng: np.random.Generator, clusters: int, each: int) -> tuple[Floats, list[int]]:
    """People whose values hang on their village."""
    where = np.repeat(np.arange(clusters), each)
    return rng.normal(size=clusters)[where] + 0.3 * rng.normal(size=clusters * each), where.tolist()


@pytest.mark.parametrize("clusters", [4, 8, 20])
def test_few_clusters_have_students_quantile(clusters: int) -> None:
    """300 samples, means of 0: 95% is 285 ± 4 deviations of 3.8; normal quantiles reach far fewer."""
    rng, covered = np.random.default_rng(clusters), 0
    for _ in range(300):
        values, where = village(rng, clusters, 5)
        people = people_of(len(values), clusters=where)
        resamples = Resamples.of(people, 0)
        reach = half_widths(resamples, resamples._sums(values), 0.05, noise=np.zeros((1, 1)))
        covered += abs(values.sum()) <= reach[0]
    assert covered >= 270


def test_a_group_in_one_cluster_is_not_more_certain_for_it() -> None:
    """Naming clusters must not make an interval narrower: within one of them people still vary."""
    rng = np.random.default_rng(0)
    where = np.repeat(np.arange(40), 20)
    groups = {"place": ["capital" if c == 0 else "rest" for c in where]}
    y, scores = rng.random(800), rng.random(800)
    widths = {}
    for clusters in (None, where.tolist()):
        program = Aid(y, 0.3, groups=groups, clusters=clusters)
        result, resamples = program.judge(scores), Resamples.of(program.people, 0)
        sums = resamples.sums(result)
        rate = result.rates(sums, resamples.wanted(result), resamples.population())["exclusion_rate"]
        widths[clusters is None] = half_widths(resamples, rate, 0.05, noise=np.zeros((1, 3)))[1]
    assert widths[False] >= 0.9 * widths[True]


def test_a_share_of_nobody_in_many_resamples_is_not_known() -> None:
    """A group whose people live in one of two clusters of a stratum: half of all resamples lack it."""
    where, strata = [0] * 50 + [1] * 50 + [2] * 50 + [3] * 50, [0] * 100 + [1] * 100
    program = Aid(
        np.arange(200.0), 0.5, groups={"g": ["few"] * 50 + ["rest"] * 150}, clusters=where, strata=strata
    )
    result, resamples = program.judge(np.arange(200.0)[::-1]), Resamples.of(program.people, 0)
    rates = result.rates(resamples.sums(result), resamples.wanted(result), resamples.population())
    reach = half_widths(resamples, rates["exclusion_rate"], 0.05, noise=np.zeros((1, 3)))
    assert np.isinf(reach[1])
    assert np.isfinite(reach[0])
