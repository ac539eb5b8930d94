"""A program for some of its people: the same rules, their own outcomes."""

import numpy as np
import pytest

from targetdp.programs import Aid, Lending, Welfare, loans_at_rates
from targetdp.targeting._sample_and_scores import part_of


def test_aid_for_some() -> None:
    y = np.arange(1.0, 101.0)
    weights = np.where(np.arange(100) < 50, 3.0, 1.0)
    program = Aid(y, 0.2, 4_000, weights, {"half": ["a"] * 50 + ["b"] * 50}, welfare=Welfare(1.0))
    part = part_of(program, np.arange(100) >= 25)
    assert isinstance(part, Aid)
    np.testing.assert_array_equal(part.consumption, y[25:])
    assert part.quota == 0.2
    assert part.people.population == pytest.approx(4_000 * 125 / 200)
    assert part.people.groups.labels == (("a", "b"),)
    assert part.welfare == program.welfare
    np.testing.assert_allclose(part.people.weights[:25] / part.people.weights[-1], 3.0)
    whole = part_of(program, np.arange(100) >= 25, whole=True)
    assert whole.people.population == 4_000


def test_lending_to_some() -> None:
    repaid = (np.arange(20) % 3 > 0).astype(float)
    program = Lending(repaid, loans_at_rates(np.arange(1.0, 21.0), revenue=0.2, interest=0.01), 0.6)
    part = part_of(program, repaid == 0)
    assert isinstance(part, Lending)
    assert not part.repaid.any()
    np.testing.assert_array_equal(part.money.amount, program.money.amount[repaid == 0])
    np.testing.assert_allclose(part.money.revenue, 0.2 * part.money.amount)
    assert part.threshold == 0.6
    assert part.people.population == part.people.count == int((repaid == 0).sum())


def test_bad_arguments() -> None:
    program = Aid(np.arange(1.0, 11.0), 0.2)
    with pytest.raises(ValueError, match="nobody"):
        part_of(program, np.zeros(10, dtype=bool))
    with pytest.raises(ValueError, match="true or false"):
        part_of(program, np.ones(9, dtype=bool))
    with pytest.raises(ValueError, match="true or false"):
        part_of(program, np.arange(10))  # type: ignore[arg-type]
