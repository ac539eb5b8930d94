"""Aid with a quota: every metric by hand, and the edges."""

import json

import numpy as np
import pytest

from targetdp._core import Floats
from targetdp.programs import TOGO_ADULTS, Aid, Folds, Welfare

CONSUMPTION = np.array([3.0, 1.0, 2.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0])
"""The three poorest of ten are 1, 2 and 0."""

SCORES = np.array([6.0, 1.0, 2.0, 7.0, 3.0, 4.5, 5.0, 8.0, 9.0, 10.0])
"""Chooses 1, 2 and 4: person 0 is left out, person 4 is let in."""


def ten(**settings: object) -> Aid:
    return Aid(CONSUMPTION, 0.3, **settings)  # type: ignore[arg-type]


def test_every_metric_by_hand() -> None:
    result = ten(population=1_000).judge(SCORES)
    assert np.flatnonzero(result.decisions).tolist() == [1, 2, 4]
    assert result.ties == 0
    expected = {
        "people": 10, "population": 1_000, "poor": 300, "eligible": 300,
        "accuracy": 0.8, "false_positive_rate": 1 / 7, "precision": 2 / 3, "recall": 2 / 3,
            "exclusion_rate": 1 / 3,
        # Of 21 pairs of a poor and another person, three are the wrong way round: 0 with 4, 5 and 6.
        "auc": 18 / 21,
        # Ranks of the scores are 6 1 2 7 3 4 5 8 9 10, of consumption 3 1 2 4 5 6 7 8 9 10.
        "spearman": 1 - 6 * (9 + 9 + 4 + 4 + 4) / 990,
        "exclusion_errors": 100, "inclusion_errors": 100,
    }  # fmt: skip
    assert result.metrics == pytest.approx(expected, abs=1e-12)


def test_with_a_matched_quota_accuracy_is_one_less_twice_the_missed_share() -> None:
    rng = np.random.default_rng(0)
    program = Aid(rng.random(4_201), population=TOGO_ADULTS)
    for _ in range(20):
        result = program.judge(rng.random(4_201))
        q = round(0.29 * 4_201) / 4_201
        assert result["precision"] == result["recall"]
        assert result["exclusion_errors"] == result["inclusion_errors"]
        assert result["accuracy"] == pytest.approx(1 - 2 * q * (1 - result["recall"]), abs=1e-12)


def test_points_of_accuracy_as_people_of_togo() -> None:
    """4.7 points / 2 × 4.95 million = 116 thousand, as in the paper."""
    n = 100_000
    y = np.arange(n, dtype=np.float64)
    program = Aid(y, population=TOGO_ADULTS)
    worse = y.copy()
    swapped = round(0.047 / 2 * n)
    worse[:swapped] += n  # so many of the poorest are taken for rich
    before, after = program.judge(y), program.judge(worse)
    assert before["accuracy"] == 1
    assert before["accuracy"] - after["accuracy"] == pytest.approx(0.047, abs=1e-9)
    assert after.against(before)["extra_exclusion_errors"][0] == pytest.approx(116_325)


def test_chance_is_a_lottery() -> None:
    assert Aid(np.arange(4_201.0)).chance == pytest.approx(0.588, abs=0.0005)
    rng = np.random.default_rng(1)
    program = Aid(rng.random(2_000))
    luck = [program.judge(rng.random(2_000))["accuracy"] for _ in range(300)]
    assert np.mean(luck) == pytest.approx(program.chance, abs=5 * np.std(luck) / np.sqrt(300))


def test_every_metric_by_group_is_that_of_the_group_alone() -> None:
    sex = ["f", "f", "m", "m", "f", "m", "f", "m", "f", "m"]
    result = ten(groups={"sex": sex}, population=1_000).judge(SCORES)
    found = result.by_group["sex"]
    women = np.array([label == "f" for label in sex])
    assert found["f"] == pytest.approx(
        {
            "people": 5, "population": 500, "poor": 200, "eligible": 200,
            "accuracy": 3 / 5, "false_positive_rate": 1 / 3, "precision": 1 / 2, "recall": 1 / 2,
            "exclusion_rate": 1 / 2,
            "auc": 4 / 6, "spearman": 1 - 6 * (4 + 1 + 1) / 120,
            "exclusion_errors": 100, "inclusion_errors": 100,
        }
    )  # fmt: skip
    for metric in ("people", "population", "poor", "eligible", "exclusion_errors", "inclusion_errors"):
        assert found["f"][metric] + found["m"][metric] == pytest.approx(result[metric])
    assert women.sum() == 5


def test_a_group_of_one_person() -> None:
    result = ten(groups={"g": ["one"] + ["other"] * 9}).judge(SCORES)
    one = result.by_group["g"]["one"]
    assert (one["people"], one["poor"], one["recall"], one["exclusion_errors"]) == (1, 1, 0, 1)
    undefined = ("precision", "false_positive_rate", "auc", "spearman")
    assert all(np.isnan(one[metric]) for metric in undefined)
    record = result.record()["groups"]["g"]["one"]
    assert all(record[metric] is None for metric in undefined)


def test_predictions_that_are_all_the_same_are_a_lottery() -> None:
    program = ten()
    times = np.zeros(10)
    for seed in range(2_000):
        result = program.judge(np.full(10, 7.0), np.random.default_rng(seed))
        assert result.ties == 10
        times += result.decisions
    assert times == pytest.approx(600, abs=5 * np.sqrt(2_000 * 0.3 * 0.7))
    assert result["auc"] == 0.5
    assert np.isnan(result["spearman"])
    assert "10 were tied for the last places, which were drawn" in result.summary


def test_people_with_the_same_row_are_tied() -> None:
    """k-anonymity makes rows equal: rounding must not decide who of them gets aid."""
    rng = np.random.default_rng(0)
    rows = np.repeat(rng.standard_normal((40, 6)), 25, axis=0) * 0.3
    program = Aid(np.exp(rng.standard_normal(1_000)))
    folds = Folds(1_000)
    scores = program.evaluate(rows, folds, rng).scores
    for _, held_out in folds:
        for group in range(40):
            alike = held_out[(held_out // 25) == group]
            assert len(set(scores[alike].tolist())) <= 1


@pytest.mark.parametrize(
    ("quota", "eligible", "nan"),
    [
        (0.01, 0, {"precision", "recall", "exclusion_rate", "auc"}),
        (0.99, 10, {"false_positive_rate", "auc"}),
    ],
)
def test_quotas_that_choose_nobody_or_everybody(quota: float, eligible: int, nan: set[str]) -> None:
    result = Aid(CONSUMPTION, quota).judge(SCORES)
    assert result["eligible"] == eligible
    assert result["accuracy"] == 1
    assert {name for name, value in result.metrics.items() if np.isnan(value)} == nan
    assert result.summary


def test_all_who_are_tied_at_the_poverty_line_are_poor() -> None:
    y = np.array([1.0, 2, 2, 2, 5, 6, 7, 8, 9, 10])
    result = Aid(y, 0.3).judge(y + np.arange(10) * 1e-3)
    assert (result["poor"], result["eligible"], result["exclusion_errors"]) == (4, 3, 1)
    assert (result["precision"], result["recall"]) == (1, 0.75)


def test_weights_are_people() -> None:
    """Everyone of weight w is w people of weight 1."""
    weights = np.array([1, 2, 1, 3, 1, 2, 1, 1, 2, 2])
    many = np.repeat(np.arange(10), weights)
    weighted = Aid(CONSUMPTION, 0.25, 1_600, weights).judge(SCORES)
    repeated = Aid(CONSUMPTION[many], 0.25, 1_600).judge(SCORES[many])
    ignored = {"people", "spearman"}
    assert {k: v for k, v in weighted.metrics.items() if k not in ignored} == pytest.approx(
        {k: v for k, v in repeated.metrics.items() if k not in ignored}
    )
    assert weighted["spearman"] == pytest.approx(repeated["spearman"])


def test_weights_count_in_the_fit() -> None:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((200, 3))
    y = np.exp(X[:, 0] * (rng.random(200) < 0.5) + X[:, 1])
    folds = Folds(200)
    plain = Aid(y).evaluate(X, folds, rng).scores
    weighted = Aid(y, weights=np.exp(rng.standard_normal(200))).evaluate(X, folds, rng).scores
    assert np.abs(plain - weighted).max() > 1e-3


# Social welfare


@pytest.mark.parametrize("aversion", [0.0, 0.5, 1.0, 3.0])
def test_welfare_is_the_share_of_the_best_gain(aversion: float) -> None:
    def utility(c: Floats) -> Floats:
        return np.log(c) if aversion == 1 else c ** (1 - aversion) / (1 - aversion)

    result = ten(welfare=Welfare(0.5, aversion)).judge(SCORES)
    gains = utility(CONSUMPTION + 0.5) - utility(CONSUMPTION)
    assert result["welfare"] == pytest.approx(gains[[1, 2, 4]].sum() / gains[[1, 2, 0]].sum())
    assert ten(welfare=Welfare(0.5, aversion)).judge(CONSUMPTION)["welfare"] == pytest.approx(1)


def test_aversion_weighs_the_poor() -> None:
    """Leaving out the poorest hurts more than leaving out the third poorest, unless nobody minds."""
    without_poorest = np.where(CONSUMPTION == 1, 99, CONSUMPTION)
    without_third = np.where(CONSUMPTION == 3, 99, CONSUMPTION)
    for aversion, harm in ((0.0, False), (3.0, True)):
        program = ten(welfare=Welfare(0.1, aversion))
        first, third = (program.judge(scores)["welfare"] for scores in (without_poorest, without_third))
        assert (first < third - 0.1) == harm
    extreme = Aid(np.array([1e-200, 1.0, 2.0, 3.0]), 0.5, welfare=Welfare(1e-3, 20.0))
    assert np.isfinite(extreme.judge(np.arange(4.0))["welfare"])


@pytest.mark.parametrize("aversion", [1.0, 1.5, 3.0, 20.0])
def test_the_welfare_of_a_huge_transfer_is_that_of_a_large_one_and_more(aversion: float) -> None:
    """Beside 1e308 nobody's consumption counts: u(c + t) − u(c) is −u(c), or ln t − ln c."""
    result = ten(welfare=Welfare(1e308, aversion)).judge(SCORES)
    small = CONSUMPTION / 1_000  # so that transfer / consumption is no float
    same = Aid(small, 0.3, welfare=Welfare(1e308, aversion)).judge(SCORES)
    gains, tiny = (
        np.log(1e308) - np.log(c) if aversion == 1 else (c / c[0]) ** (1 - aversion)
        for c in (CONSUMPTION, small)
    )
    for found, of in ((result, gains), (same, tiny)):
        assert found["welfare"] == pytest.approx(of[[1, 2, 4]].sum() / of[[1, 2, 0]].sum())


@pytest.mark.parametrize(
    ("transfer", "aversion", "consumption"),
    [(1e308, 0.0, CONSUMPTION), (1e308, 0.5, CONSUMPTION * 1e-320), (1.0, 0.0, np.array([1e-300, 1, 1e300]))],
)
def test_a_gain_beyond_all_numbers_is_refused(transfer: float, aversion: float, consumption: Floats) -> None:
    with pytest.raises(ValueError, match=r"transfer = .* is too large for aversion = .*in the units of"):
        Aid(consumption, 0.3, welfare=Welfare(transfer, aversion))


def test_a_population_is_one_number_however_it_is_written() -> None:
    assert repr(ten(population=500).population) == repr(ten(population=500.0).population) == "500.0"
    assert ten().population is None


def test_without_welfare_there_is_none() -> None:
    assert "welfare" not in ten().judge(SCORES).metrics


# From features to a result


def test_evaluate_predicts_then_judges() -> None:
    rng = np.random.default_rng(4)
    X = rng.standard_normal((300, 4))
    y = 10 + X @ np.array([1.0, -1, 0.5, 0]) + 0.3 * rng.standard_normal(300)
    result = Aid(y).evaluate(X, Folds(300), rng)
    assert result["spearman"] > 0.9
    noise = Aid(y).evaluate(rng.standard_normal((300, 4)), Folds(300), rng)
    assert noise["accuracy"] == pytest.approx(Aid(y).chance, abs=0.1)


def test_a_record_is_plain_and_names_nobody() -> None:
    result = ten(groups={"sex": list("fmfmfmfmfm")}).judge(SCORES)
    text = json.dumps(result.record(), allow_nan=False)
    assert "decisions" not in text
    assert "scores" not in text
    assert result.summary in json.loads(text)["summary"]
    assert result.summary == (
        "Aid for 3 people: of 3 poor people 1 (33%) are left out and 1 others get it (accuracy 0.800, chance "
        "is 0.580)."
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"quota": 0.0}, r"quota = 0.0 is outside \(0, 1\): the share of people who get aid"),
        ({"quota": 1.0}, r"quota = 1.0 is outside \(0, 1\)"),
        ({"population": 0}, r"population = 0.0 is outside \[1, inf\)"),
        ({"weights": [1.0] * 9}, "weights has 9 entries: there are 10 people"),
        ({"weights": [1.0] * 9 + [0.0]}, r"weights\[9\] = 0.0 is not above 0"),
        ({"groups": {"sex": ["f"] * 3}}, "group column 'sex' has 3 entries: there are 10 people"),
        ({"consumption": [1.0, np.nan, 3.0]}, "consumption has 1 values that are NaN or infinite"),
        ({"consumption": [[1.0, 2.0]]}, "consumption has shape .*: give one number for each person"),
        ({"consumption": [0.0, 1.0, 2.0], "welfare": Welfare(1.0)}, "1 values that are not above 0: CRRA"),
    ],
)
def test_bad_settings(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Aid(**({"consumption": CONSUMPTION} | settings))  # type: ignore[arg-type]


@pytest.mark.parametrize(("transfer", "aversion"), [(0.0, 3.0), (-1.0, 3.0), (1.0, -0.1), (1.0, 21.0)])
def test_bad_welfare(transfer: float, aversion: float) -> None:
    with pytest.raises(ValueError, match="is outside"):
        Welfare(transfer, aversion)


def test_too_many_groups() -> None:
    with pytest.raises(ValueError, match="1,001 different values, more than 1,000: these are no groups"):
        Aid(np.arange(1_001.0), groups={"name": [str(i) for i in range(1_001)]})
    # Column a=b with group c, and column a with group b=c, would both be told as a=b=c.
    with pytest.raises(ValueError, match="group column 'a=b' has = in its name"):
        Aid(np.arange(10.0), groups={"a=b": ["c"] * 10})
    assert list(Aid(np.arange(10.0), groups={"a": ["b=c"] * 10}).judge(np.arange(10.0)).by_group["a"]) == [
        "b=c"
    ]


def test_features_of_other_people_are_refused() -> None:
    with pytest.raises(ValueError, match="X has 9 people: the program's outcomes are of 10"):
        ten().evaluate(np.zeros((9, 2)), Folds(10))
    with pytest.raises(ValueError, match="folds has 9 people: the program's outcomes are of 10"):
        ten().evaluate(np.zeros((10, 2)), Folds(9))
    with pytest.raises(ValueError, match="scores has 3 entries: there are 10 people"):
        ten().judge([1.0, 2.0, 3.0])
    with pytest.raises(TypeError, match="rng = 3 is not a numpy Generator"):
        ten().judge(SCORES, rng=3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="metric = 'luck' is not one of accuracy"):
        ten().judge(SCORES)["luck"]


@pytest.mark.parametrize("weighted", [False, True])
def test_a_quota_per_fold_makes_each_fold_a_program_of_its_own(weighted: bool) -> None:
    rng = np.random.default_rng(4)
    y, scores = rng.lognormal(size=103), rng.normal(size=103)
    weights = rng.uniform(0.5, 2, 103) if weighted else None
    sex = ["f" if x else "m" for x in rng.random(103) < 0.4]
    folds, welfare = Folds(103, 4), Welfare(0.2)
    aid = Aid(y, 0.3, 5_000, weights, {"sex": sex}, welfare=welfare, quota_rule="per fold")
    found = aid.judge(scores, np.random.default_rng(0), folds)
    alone, sizes = [], []
    for _, members in folds:
        share = 1.0 if weights is None else weights[members].sum() / weights.sum()
        sizes.append(len(members) / 103 if weights is None else share)
        alone.append(
            Aid(
                y[members], 0.3, 5_000 * sizes[-1], None if weights is None else weights[members],
                {"sex": [sex[i] for i in members]}, welfare=welfare,
            ).judge(scores[members])
        )  # fmt: skip
    for name in ("people", "population", "poor", "eligible", "exclusion_errors", "inclusion_errors"):
        assert found[name] == pytest.approx(sum(one[name] for one in alone)), name
        women = [one.by_group["sex"]["f"][name] for one in alone]
        assert found.by_group["sex"]["f"][name] == pytest.approx(sum(women)), name
    for name in ("accuracy", "recall", "precision", "false_positive_rate", "auc", "spearman", "welfare"):
        assert found[name] == pytest.approx(np.mean([one[name] for one in alone])), name
    assert found.decisions.sum() == sum(one.decisions.sum() for one in alone)
    assert found["exclusion_errors"] == pytest.approx(
        float((found.parts["exclusion_errors"].values * aid.people.weights).sum() * aid.people.each)
    )


def test_a_group_that_a_fold_lacks_is_counted_in_the_others() -> None:
    folds = Folds(40, 4)
    member = int(folds.order[0])  # alone in her group, and in one fold
    aid = Aid(
        np.arange(40.0),
        0.25,
        groups={"village": [str(i == member) for i in range(40)]},
        quota_rule="per fold",
    )
    alone = aid.judge(np.arange(40.0), folds=folds).by_group["village"]["True"]
    assert (alone["people"], alone["accuracy"]) == (1, 1.0)


def test_a_quota_per_fold_needs_folds() -> None:
    with pytest.raises(TypeError, match="folds"):
        Aid(np.arange(10.0), 0.3, quota_rule="per fold").judge(np.arange(10.0))
    with pytest.raises(ValueError, match="quota_rule = 'each' is not one of once, per fold"):
        Aid(np.arange(10.0), 0.3, quota_rule="each")  # type: ignore[arg-type]


def test_folds_must_be_of_these_people_and_each_have_a_place_to_give() -> None:
    aid = Aid(np.arange(40.0), 0.25, quota_rule="per fold")
    with pytest.raises(ValueError, match="folds has 30 people: the program has 40"):
        aid.judge(np.arange(40.0), folds=Folds(30, 5))
    with pytest.raises(ValueError, match="of a fold of 2 people is nobody"):
        aid.judge(np.arange(40.0), folds=Folds(40, 20))
