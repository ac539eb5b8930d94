"""How much good a transfer does to whom: utility with constant relative risk aversion."""

import math
from dataclasses import dataclass

import numpy as np

from targetdp._core import Floats, check
from targetdp.programs._people import set_fields


@dataclass(frozen=True)
class Welfare:
    """How much good a transfer does: constant relative risk aversion (CRRA).

    Someone who consumes c has utility u(c) = c^(1−ρ)/(1−ρ), or ln c for ρ = 1.

    Args:
        transfer: What everyone who is eligible gets, in the units of consumption; above 0.
        aversion: ρ, from 0 to 20. It says how fast an additional unit loses its value to richer people: at
            ρ = 3, common in studies of targeting, it is worth 8 times less to someone with twice the
            consumption; at ρ = 0 it is worth the same to all.

    Raises:
        ValueError: ``transfer`` or ``aversion`` is outside its range.

    Example:
        >>> Welfare(transfer=1.0, aversion=0.0).gains(np.array([1.0, 5.0]))
        array([1., 1.])
        >>> Welfare(transfer=1.0, aversion=1.0).gains(np.array([1.0, 5.0])).round(2)
        array([0.69, 0.18])
    """

    transfer: float
    aversion: float = 3.0

    def __post_init__(self) -> None:
        transfer = check.number("transfer", self.transfer, above=0, remedy="in the units of consumption")
        aversion = check.number("aversion", self.aversion, at_least=0, at_most=20)
        set_fields(self, transfer=transfer, aversion=aversion)

    def gains(self, consumption: Floats) -> Floats:
        """u(c + transfer) − u(c) of each person."""
        if not (consumption > 0).all():
            raise ValueError(
                f"consumption has {int((consumption <= 0).sum()):,} values that are not above 0: CRRA "
                "utility needs positive consumption; leave welfare out, or correct them"
            )
        power = 1 - self.aversion
        with np.errstate(over="ignore", invalid="ignore"):  # what is beyond all floats is refused below
            ratio = self.transfer / consumption
            far = math.log(self.transfer) - np.log(consumption)  # ln(1 + ratio), where ratio is no float
            grown = np.where(np.isinf(ratio), far, np.log1p(ratio))
            # In units of the poorest person's: c^(1−ρ) alone may be larger than any float.
            size = np.exp(power * (np.log(consumption) - math.log(consumption.min())))
            gains = grown if power == 0 else size * np.expm1(power * grown) / power
            countable = np.isfinite(gains.max() * len(gains) ** 2)  # weighted sums stay finite, too
        if not countable:
            raise ValueError(
                f"transfer = {self.transfer!r} is too large for aversion = {self.aversion!r}: with such "
                "consumption the gain in utility is larger than any number here; give what one person gets, "
                "in the units of consumption"
            )
        return np.asarray(gains)
