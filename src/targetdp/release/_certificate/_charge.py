"""What a release costs, in a form from which the cost at any distance can be derived again."""

from dataclasses import asdict, dataclass
from typing import Any

from targetdp.accounting import PrivacyLoss, StatedLoss
from targetdp.guarantee import Guarantee
from targetdp.mechanisms import RowLaw, law_of


@dataclass(frozen=True)
class Charge:
    """The noise of a release, and what was paid for its scales.

    ``law`` is the noise that was drawn: its loss is known exactly at every distance. ``scales`` is what
    private column scales cost, where the release estimates them. Distances are those in the release's own
    scaled space.
    """

    law: RowLaw
    scales: Guarantee | None = None

    def losses(self, distance: float) -> tuple[PrivacyLoss, ...]:
        """The losses to compose for two rows at a distance."""
        found: list[PrivacyLoss] = [self.law.privacy_loss(distance)]
        if self.scales is not None:
            found.append(StatedLoss.of(self.scales, distance=distance))
        return tuple(found)

    def record(self) -> dict[str, Any]:
        """The charge as plain data; `charge_of` reads it back."""
        return {
            "law": self.law.record(),
            "scales": None if self.scales is None else asdict(self.scales),
        }


def charge_of(record: dict[str, Any]) -> Charge:
    """The charge that `Charge.record` wrote."""
    scales = record["scales"]
    return Charge(law_of(record["law"]), None if scales is None else Guarantee(**scales))
