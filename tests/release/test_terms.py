"""Terms of a release: δ, price and conditions follow from the settings, the scales and the number of rows."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.release import FEATURES, settings
from support.scores import TWO, write_weights
from targetdp import least_noise
from targetdp.guarantee import Guarantee
from targetdp.mechanisms import LinearLaw
from targetdp.normalization import ColumnScales, confidential_scales, declared_scales
from targetdp.release._certificate._caveats import ALWAYS, NO_GUARANTEE
from targetdp.release._terms import ReleaseTerms, default_delta, make_terms

PUBLIC = declared_scales([0.0, 0.0, 0.0], [1.0, 1.0, 1.0])
PAID = Guarantee(2, 0.1, 1e-20)
PRIVATE = ColumnScales(np.zeros(3), np.ones(3), "private", PAID)
SECRET = confidential_scales([0.0, 0.0, 0.0], [1.0, 1.0, 1.0])
OWN = ColumnScales(np.zeros(3), np.ones(3), "data")


def terms(scales: ColumnScales = PUBLIC, rows: int = 1000, **given: Any) -> ReleaseTerms:
    return make_terms(settings(**given), scales, rows)


@pytest.mark.parametrize("rows", [1, 60, 5_000_000])
def test_delta_is_one_over_rows_plus_one(rows: int) -> None:
    guarantee = terms(rows=rows).guarantee
    assert guarantee == Guarantee(0.25, 4.0, 1 / (rows + 1))
    assert default_delta(rows, None) == 1 / (rows + 1)


@pytest.mark.parametrize(("rows", "parts"), [(1000, 6), (1001, 10), (12, 12)])
def test_partitions_set_the_papers_delta(rows: int, parts: int) -> None:
    made = terms(rows=rows, partitions=parts)
    assert made.guarantee is not None
    assert made.guarantee.delta == 1 / (math.ceil(rows / parts) + 1)
    assert any(f"{parts} random parts" in condition for condition in made.conditions)
    assert made.law is not None
    assert made.charge.law == made.law


def test_a_delta_that_is_given_is_kept() -> None:
    assert terms(delta=1e-7).guarantee == Guarantee(0.25, 4.0, 1e-7)


@pytest.mark.parametrize("name", ["spherical-laplace", "gaussian", "projection", "projection-exact"])
def test_a_mechanism_by_name_is_the_one_that_is_used(name: str) -> None:
    made = terms(mechanism=name)
    assert made.name == name
    assert made.guarantee == Guarantee(0.25, 4.0, 1 / 1001)
    assert made.why == f"{name} was asked for"
    assert made.law is not None
    assert made.law.dimensions == len(FEATURES)


def test_the_least_noise_is_chosen_and_said_why() -> None:
    made, gaussian = terms(), terms(mechanism="gaussian")
    assert made.law is not None
    assert gaussian.law is not None
    assert made.law.deviation_per_column <= gaussian.law.deviation_per_column
    assert made.name in made.why


def test_private_scales_add_to_the_guarantee_and_the_charge() -> None:
    made, public = terms(PRIVATE), terms()
    assert made.guarantee is not None
    assert made.guarantee.epsilon == pytest.approx(4.1, abs=1e-12)
    assert made.guarantee.epsilon >= 4.1 - 1e-15
    assert made.guarantee.delta == pytest.approx(1 / 1001 + 1e-20)
    assert made.charge.scales == PAID
    assert made.charge.unbounded is None
    assert made.law == public.law


@pytest.mark.parametrize("scales", [SECRET, OWN])
def test_scales_that_nobody_paid_for_make_the_charge_unbounded_and_the_guarantee_conditional(
    scales: ColumnScales,
) -> None:
    made = terms(scales)
    assert made.charge.unbounded == scales.conditions[0] == made.conditions[0]
    assert made.guarantee == terms().guarantee
    with pytest.raises(ValueError, match="no bound"):
        made.charge.losses(0.25)


def test_mondrian_promises_nothing_and_says_so_first() -> None:
    given: dict[str, Any] = {"mechanism": "mondrian", "group_size": 5, "B": None, "epsilon": None}
    made = terms(**given)
    assert (made.guarantee, made.law) == (None, None)
    assert made.mondrian is not None
    assert made.conditions[0] == NO_GUARANTEE == made.charge.unbounded
    assert not any("B was chosen" in c or "How B was" in c for c in made.conditions)
    with pytest.raises(ValueError, match="group_size = 5 is more than the 4 rows"):
        terms(rows=4, **given)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"keep_order": True}, "order of the input"),
        ({"keep": ("region", "age")}, "NOT protected: region, age"),
        ({"impute": {"calls": -1.5}}, "declared, not learned: calls = -1.5"),
        ({"pseudonymize": Path("k")}, "Ids are keyed hashes"),
        ({"ledger": "l", "population": "p", "part": "north"}, "This part (north) shares no person"),
        ({"tuned_on": "public"}, "B was chosen on public data"),
        ({"tuned_on": "synthetic"}, "B was chosen on synthetic data"),
        ({"tuned_on": "this-data"}, "that choice is a disclosure"),
    ],
)
def test_each_choice_is_a_condition_that_is_stated(given: dict[str, Any], said: str) -> None:
    assert any(said in condition for condition in terms(**given).conditions)
    assert not any(said in condition for condition in terms().conditions)


@pytest.mark.parametrize(("weights", "q"), [((1.0, 2.0, -1.0), 1), (TWO, 2)])
@pytest.mark.parametrize("name", ["least-noise", "gaussian", "projection-exact"])
def test_noise_of_scores_is_calibrated_for_their_number(
    tmp_path: Path, name: str, weights: Any, q: int
) -> None:
    scores = [f"score_{i}" for i in range(q)]
    made = terms(weights=write_weights(tmp_path / "w.toml", weights, scores), mechanism=name, delta=1e-5)
    plain = least_noise(Guarantee(0.25, 4.0, 1e-5), q)
    assert isinstance(made.law, LinearLaw)
    assert (made.law.dimensions, made.law.scores) == (3, q)
    if name == "least-noise":
        assert made.name == plain.name
        assert made.law.noise == plain.mechanism.law(q)
    assert made.guarantee is not None
    assert made.guarantee.is_at_least(Guarantee(0.25, 4.0, 1e-5))
    assert made.charge.law == made.law


def test_what_always_holds_is_always_said() -> None:
    for made in (terms(), terms(SECRET), terms(PRIVATE, keep_order=True)):
        assert set(ALWAYS) < set(made.conditions)
    assert any("How B was chosen is not stated" in condition for condition in terms().conditions)


def test_terms_depend_on_nothing_else() -> None:
    assert terms() == terms()
    assert terms(rows=1000) != terms(rows=1001)
