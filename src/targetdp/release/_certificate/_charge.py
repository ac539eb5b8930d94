"""What one release costs, in a form from which the cost at any distance can be derived again."""

from dataclasses import asdict, dataclass
from typing import Any

from targetdp.accounting import PrivacyLoss, StatedLoss
from targetdp.guarantee import Guarantee
from targetdp.mechanisms import NoiseLaw, law_of


@dataclass(frozen=True)
class Charge:
    """The noise of a release, what was paid for its scales, and why it may have no bound at all.

    ``law`` is the noise that was drawn: its loss is known exactly at every distance. Where only a
    guarantee is known it is ``stated`` instead, and the switch lemma carries it to other distances.
    ``scales`` is what private column scales cost. ``unbounded`` says why nothing bounds the loss
    (k-anonymity, scales that were learned from the same people); then the rest does not count.

    Distances are those in the release's own normalized space.
    """

    law: NoiseLaw | None = None
    stated: Guarantee | None = None
    scales: Guarantee | None = None
    unbounded: str | None = None

    def __post_init__(self) -> None:
        if self.unbounded is None and (self.law is None) == (self.stated is None):
            raise ValueError("a charge needs a law or a stated guarantee, not both, or a reason for no bound")

    def losses(self, distance: float) -> tuple[PrivacyLoss, ...]:
        """The losses to compose for two rows at a distance."""
        if self.unbounded is not None:
            raise ValueError(f"the loss has no bound: {self.unbounded}")
        found: list[PrivacyLoss] = []
        if self.law is not None:
            found.append(self.law.privacy_loss(distance))
        found += [StatedLoss.of(g, distance=distance) for g in (self.stated, self.scales) if g is not None]
        return tuple(found)

    def record(self) -> dict[str, Any]:
        """The charge as plain data; `charge_of` reads it back."""
        return {
            "law": None if self.law is None else self.law.record(),
            "stated": None if self.stated is None else asdict(self.stated),
            "scales": None if self.scales is None else asdict(self.scales),
            "unbounded": self.unbounded,
        }


def charge_of(record: dict[str, Any]) -> Charge:
    """The charge that `Charge.record` wrote."""
    law, stated, scales = record["law"], record["stated"], record["scales"]
    return Charge(
        law=None if law is None else law_of(law),
        stated=None if stated is None else Guarantee(**stated),
        scales=None if scales is None else Guarantee(**scales),
        unbounded=record["unbounded"],
    )
