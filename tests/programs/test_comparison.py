"""A release beside the status quo, classic differential privacy and k-anonymity."""

import json

import numpy as np
import pytest

from targetdp import Guarantee
from targetdp.mechanisms import Mondrian, NoiseMechanism, Partitioned, PrivateProjection, SphericalLaplace
from targetdp.mechanisms.choice import REGISTER
from targetdp.normalization import clip_rows
from targetdp.programs.aid import Aid
from targetdp.programs.comparison import Comparison, baselines, classic, compare
from targetdp.programs.folds import Folds
from targetdp.programs.lending import Lending, loans_at_rates
from targetdp.typing import Floats

SMALL = SphericalLaplace(B=0.2, epsilon=4.0, delta=1e-3)


def people(n: int = 600) -> tuple[Floats, Floats, list[str]]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 4))
    y = np.exp(X @ np.array([0.8, -0.5, 0.3, 0.0]) + 0.3 * rng.standard_normal(n))
    return X, y, ["f" if u < 0.4 else "m" for u in rng.random(n)]


def aid() -> tuple[Aid, Floats]:
    X, y, sex = people()
    return Aid(y, groups={"sex": sex}, population=60_000), X


def compared(**settings: object) -> Comparison:
    program, X = aid()
    arguments: dict[str, object] = {"rng": np.random.default_rng(1), "simulations": 6, "group_sizes": (2, 10)}
    return compare(program, clip_rows(X), Folds(len(X)), SMALL, **(arguments | settings))  # type: ignore[arg-type]


def test_everything_is_there_and_in_its_place() -> None:
    found = compared()
    assert list(found.entries) == ["status quo", "release", "classic", "k-anonymity 2", "k-anonymity 10"]
    assert [len(entry.results) for entry in found.entries.values()] == [1, 6, 6, 1, 1]
    accuracy = {name: entry.metrics["accuracy"] for name, entry in found.entries.items()}
    assert accuracy["status quo"] > accuracy["release"] > accuracy["classic"] + 0.02
    extra = found["release"].against["extra_exclusion_errors"]
    change = found["release"].changes
    assert change is not None
    assert extra == pytest.approx(change.everybody["exclusion_errors"].difference)
    assert found["classic"].against["extra_exclusion_errors"] > extra > 0
    assert found["status quo"].changes is None


def test_entries_do_not_depend_on_each_other() -> None:
    one, two = compared(group_sizes=(3, 10)), compared(group_sizes=(10,), simulations=2)
    assert one["k-anonymity 10"].record() == two["k-anonymity 10"].record()
    for a, b in zip(one["release"].results[:2], two["release"].results, strict=True):
        assert (a.decisions == b.decisions).all()


def test_each_entry_has_noise_of_its_own() -> None:
    """A release at B = 2 is classic differential privacy: the same mechanism, other draws."""
    program, X = aid()
    whole = classic(SMALL)
    found = compare(program, X, Folds(len(X)), whole, rng=np.random.default_rng(1), group_sizes=(2,))
    assert found["release"].mechanism == found["classic"].mechanism
    assert (found["release"].results[0].scores != found["classic"].results[0].scores).any()


def test_the_same_seed_gives_the_same_figures() -> None:
    assert compared().record() == compared().record()
    assert compared().record() != compared(rng=np.random.default_rng(2)).record()


def test_the_paper_compares_group_sizes_2_to_10() -> None:
    assert list(baselines(SMALL)) == [
        "status quo",
        "classic",
        *(f"k-anonymity {size}" for size in range(2, 11)),
    ]
    assert baselines(SMALL)["k-anonymity 7"] == Mondrian(7)


@pytest.mark.parametrize("name", sorted(REGISTER))
def test_classic_is_the_same_mechanism_over_the_whole_ball(name: str) -> None:
    release = REGISTER[name](Guarantee(0.25, 3.0, 1e-4))
    whole = classic(release)
    assert type(whole) is type(release)
    expected = Guarantee(2.0, release.guarantee.epsilon, release.guarantee.delta)
    assert whole.guarantee == expected
    assert whole.noise_sd(1) == pytest.approx(8 * release.noise_sd(1), rel=1e-6)


def test_classic_of_parts_and_of_the_papers_projection() -> None:
    projection = PrivateProjection(B=0.1, epsilon1=2, epsilon2=0.5, delta1=1e-3, delta2=1e-3, k=77, rank=2)
    whole = classic(projection)
    assert isinstance(whole, PrivateProjection)
    assert (whole.B, whole.k, whole.rank, whole.epsilon2) == (2.0, 77, 2, 0.5)
    parts: NoiseMechanism = Partitioned(SMALL, parts=3, rows=600)
    inside = classic(parts)
    assert isinstance(inside, Partitioned)
    assert inside.guarantee == Guarantee(2.0, 4.0, 1 / 201)
    assert inside.parts == 3


def test_rows_are_clipped_for_the_status_quo_too_and_what_that_costs_can_be_seen() -> None:
    program, X = aid()
    inside = compare(
        program, X, Folds(len(X)), SMALL, rng=np.random.default_rng(1), simulations=6, group_sizes=(2, 10)
    )  # fmt: skip
    assert inside.record() == compared().record()
    seen = compared(unclipped=X)
    assert list(seen.entries)[:2] == ["status quo", "not clipped"]
    assert seen["not clipped"].metrics["accuracy"] > seen["status quo"].metrics["accuracy"]
    assert seen["release"].record() == compared()["release"].record()


def test_groups_and_words() -> None:
    found = compared()
    record = json.loads(json.dumps(found.record(), allow_nan=False))
    assert set(record[1]["groups"]["sex"]) == {"f", "m"}
    assert record[1]["guarantee"] == {"B": 0.2, "epsilon": 4.0, "delta": 0.001}
    assert record[3]["guarantee"] is None
    assert record[1]["changes"]["groups"]["sex"]["f"]["exclusion_errors"]["interval"]
    assert found.summary[0].startswith("status quo: Aid for 17,400 people")
    assert "more than without privacy (95% interval +" in found.summary[2]
    assert found["release"].by_group["sex"]["f"]["accuracy"] == pytest.approx(
        np.mean([result.by_group["sex"]["f"]["accuracy"] for result in found["release"].results])
    )


def test_lending_has_relative_profit() -> None:
    X, y, _ = people()
    money = loans_at_rates(np.full(len(y), 100.0), revenue=0.3, interest=0.01)
    program = Lending((y > 0.7).astype(np.float64), money)
    found = compare(
        program, X, Folds(len(X)), SMALL, rng=np.random.default_rng(0), simulations=3, group_sizes=(2,)
    )  # fmt: skip
    relative = found["release"].against["relative_profit"]
    assert relative == pytest.approx(
        found["release"].metrics["profit"] / found["status quo"].metrics["profit"]
    )
    assert "less than without privacy" in found["classic"].summary


def test_bad_arguments() -> None:
    program, X = aid()
    with pytest.raises(TypeError, match=r"mechanism = .* is not a NoiseMechanism"):
        compare(program, X, Folds(600), Mondrian(2))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="simulations = 0 is outside 1 to any"):
        compare(program, X, Folds(600), SMALL, simulations=0)
    with pytest.raises(ValueError, match="name = 'best' is not one of"):
        compared()["best"]
