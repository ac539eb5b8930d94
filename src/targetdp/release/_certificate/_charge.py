"""What a release costs, in a form from which the cost at any distance can be derived again.

Alone, or after the release of a sample that its weights were learned from: who spends what.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from targetdp.accounting import PrivacyLoss, StatedLoss, compose
from targetdp.guarantee import Guarantee, sequential
from targetdp.mechanisms import NoiseLaw, law_of, score_rounding
from targetdp.normalization import ColumnScales, ReleaseSource


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


@dataclass(frozen=True)
class SampleRelease:
    """The release that weights were learned from, as its certificate states it.

    ``charge`` is its noise, and what its scales cost. ``scales`` are its columns' centers and scales, where
    they may be known, ``source`` says where they came from, and ``estimated_there`` whether private ones were
    estimated by that release itself, and so from its people alone.
    """

    release: str
    sha256: str
    rows: int
    guarantee: Guarantee
    charge: Charge
    scales: Mapping[str, tuple[float, float]] | None = None
    source: ReleaseSource | None = None
    estimated_there: bool = False

    def has_scales(self, features: tuple[str, ...], scales: ColumnScales) -> bool:
        """Whether its rows lie in the same scaled space: the same columns, known to be scaled alike."""
        if self.scales is None or not scales.may_be_published or set(self.scales) != set(features):
            return False
        return all(
            self.scales[name] == (float(center), float(scale))
            for name, center, scale in zip(features, scales.center, scales.scale, strict=True)
        )


@dataclass(frozen=True)
class SampleSpending:
    """What holds for people outside the sample, and for those inside it.

    ``scored`` says whether people of the sample are in the score release, too.
    """

    first: SampleRelease
    scored: bool
    some_have_left: bool
    same_scales: bool
    outside: Guarantee
    inside: Guarantee


def spending_of(
    first: SampleRelease, second: Guarantee, charge: Charge, *, scored: bool, some_have_left: bool, same: bool
) -> SampleSpending:
    """Who spends what; ``same``: both releases measure distances in one scaled space."""
    inside = _both(first, second, charge, exact=same) if scored else first.guarantee
    return SampleSpending(first, scored, some_have_left, same, second, inside)


def _both(first: SampleRelease, second: Guarantee, charge: Charge, *, exact: bool) -> Guarantee:
    """Lemma 2 or, where two rows are equally far apart in both releases, the exact curves, if smaller."""
    by_lemma = sequential(first.guarantee, second)
    if not exact or by_lemma.is_vacuous:
        return by_lemma
    losses = [*first.charge.losses(by_lemma.B), *_whatever_the_weights(charge, by_lemma.B)]
    epsilon = compose(*losses).epsilon(by_lemma.delta)
    return Guarantee(by_lemma.B, epsilon, by_lemma.delta) if 0 < epsilon < by_lemma.epsilon else by_lemma


def _whatever_the_weights(charge: Charge, distance: float) -> list[PrivacyLoss]:
    """The losses of scores, for any weights of norm at most 1: those that came were chosen after a look."""
    law = None if charge.law is None else charge.law.linear
    if law is None:
        raise TypeError("the release has no scores: beside a sample only scores are released")
    found = [law.noise.loss_at(distance + score_rounding(law.dimensions, law.scores))]
    return found if charge.scales is None else [*found, StatedLoss.of(charge.scales, distance=distance)]
