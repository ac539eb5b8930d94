"""A charge: written to the ledger and read back, it costs the same at every distance."""

import json

import pytest

from targetdp.accounting import compose
from targetdp.guarantee import Guarantee
from targetdp.mechanisms import GaussianNoise, NoiseMechanism, Scores, SphericalLaplace, Staircase
from targetdp.release import Charge
from targetdp.release._certificate._charge import charge_of

MECHANISMS: list[tuple[NoiseMechanism, int]] = [
    (GaussianNoise(B=0.25, epsilon=1.0, delta=1e-5), 3),
    (SphericalLaplace(B=0.25, epsilon=1.0, delta=1e-5), 3),
    (Staircase(B=0.25, epsilon=1.0), 1),
    (Scores([[1.0, 2.0, -1.0]], SphericalLaplace(B=0.25, epsilon=1.0)), 3),
]


@pytest.mark.parametrize("scales", [None, Guarantee(2, 0.5, 1e-20)])
@pytest.mark.parametrize(("mechanism", "d"), MECHANISMS, ids=lambda m: type(m).__name__)
def test_it_is_read_back_as_it_was_written(
    mechanism: NoiseMechanism, d: int, scales: Guarantee | None
) -> None:
    charge = Charge(mechanism.law(d), scales)
    again = charge_of(json.loads(json.dumps(charge.record())))
    assert again == charge
    assert hash(again) == hash(charge), "so that what is composed once is known again"
    for distance in (0.1, 0.25, 2.0):
        one, two = (compose(*c.losses(distance)).delta(1.5) for c in (charge, again))
        assert one == two


def test_scales_are_part_of_the_loss() -> None:
    law = MECHANISMS[0][0].law(3)
    alone, paid = Charge(law), Charge(law, Guarantee(2, 0.5, 0))
    assert (len(alone.losses(0.25)), len(paid.losses(0.25))) == (1, 2)
    assert compose(*paid.losses(0.25)).epsilon(1e-6) > compose(*alone.losses(0.25)).epsilon(1e-6)


@pytest.mark.parametrize(
    "record", [{}, {"law": None, "scales": None}, {"law": {"family": "magic"}, "scales": None}]
)
def test_what_is_no_charge_is_an_error(record: dict[str, object]) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        charge_of(record)
