"""Distinguishing protection: how little a release tells two people apart (Methods; Supplement 2.2).

An adversary who knows every row but one, and has narrowed that one down to two candidates, weighs the
release: the *privacy loss* is the logarithm of how much likelier it is under the true candidate. With 𝒰
the mean of the loss for the two candidates that are easiest to tell apart, protection is

    𝒟 = 1/(1 + 𝒰).

It is derived from the noise alone: no data, no luck, and no attack can get more on average.
"""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, get_args

from targetdp._core import check, exact
from targetdp.accounting import PrivacyLoss, StatedLoss, compose
from targetdp.attacks._declaration import INFERENCE, LINKABILITY, SINGLING_OUT, Answer, Case, attack
from targetdp.attacks._protection import Protection, Setting, worst
from targetdp.guarantee import Guarantee
from targetdp.mechanisms import Decision, DecisionLaw, Mechanism, NoiseLaw, PrivateProjection

if TYPE_CHECKING:
    from targetdp.attacks._on_release import JoinedTables  # it needs the slow libraries that read tables

Formula = Literal["exact", "as_printed", "corrected"]

FARTHEST = 2.0
"""No two rows of the unit ball are farther apart."""

WORST_CASE = "two people at distance 2"

_LEFT_OUT = "Left out of the mean: an event of probability below 2⁻⁶⁴, beyond the sampler's tail."
_NO_NOISE = "No noise of a known law: the release may tell any two people apart, and nothing is derived."
_NO_MEAN = (
    "The mean loss has no bound that is worth stating: with a probability that is not negligible (a δ of the "
    "noise, or of what was paid for the scales) a row may be given away entirely, or the scales' ε is huge."
)
_SEVERAL = "All releases count together: their losses are composed."
_AS_PRINTED = (
    "The formula as printed has 16 where Lemma 7 gives 4 and ε₁ where ε̂₁ seems meant; for Togo at B = 0.25 "
    "it gives 0.0197, not the 6.66% of the text."
)


def _headline(p: Protection) -> str:
    loss, best = p.detail.get("expected_loss"), p.detail.get("best_guess")
    if p.score <= 0 or loss is None or not math.isfinite(loss):
        return "No limit could be derived: the release may tell any two people apart."
    what = "the releases together tell" if p.detail.get("together") else "the release tells"
    average = f"Of the two people who differ the most, {what} at most {_nats(loss)} on average"
    if best is None:
        return f"{average}."
    words = f"{average}; the best guess which of them it was is right at most {_times(best)} times in 100"
    at_B = p.detail.get("at_B")
    if at_B is not None:
        words += f" (of two people {exact(at_B['distance'])} apart {_times(at_B['best_guess'])} times)"
    return f"{words}, a coin 50 times."


def _times(best_guess: float) -> int:
    """How often in 100 a guess is right, rounded up."""
    return min(100, math.ceil(best_guess * 100 - 1e-9))


def _nats(loss: float) -> str:
    """A mean loss and the factor in the odds that it stands for, both rounded up."""
    if loss < 0.001:
        return "0.001 nats (next to nothing)"
    if loss > 10:
        return f"{math.ceil(loss):,} nats (which leaves no doubt)"
    odds = math.ceil(math.exp(loss) * 100) / 100
    return f"{math.ceil(loss * 1000) / 1000:.10g} nats (odds of {odds:.10g} to 1)"


def _on_tables(case: Case) -> Protection:
    t = case.tables
    case.require(t.certificate, "Not run: without a certificate the noise is not known.")
    law, further, elsewhere = t.rows.law, [], []
    for release in case.further:
        own = release.rows.law
        if own is None:  # nothing is derived for what has no known noise
            law = None
            break
        if _scaled_alike(t, release):
            further.append(own)
        else:  # how far apart two people are there is not known: 2 at most
            elsewhere.append(own.privacy_loss(FARTHEST))
        if release.scales_spent is not None:
            elsewhere.append(StatedLoss.of(release.scales_spent, distance=FARTHEST))
    return distinguishing(
        law, len(t.rows.features), scales_spent=t.scales_spent, B=t.B, further=further, elsewhere=elsewhere
    )


def _scaled_alike(one: "JoinedTables", two: "JoinedTables") -> bool:
    """Whether two releases' certificates say that any row is the same in both, before the noise.

    Rows that happen to be the same do not show it: clipping may bring together what other rows would not be.
    """
    first, second = one.certificate, two.certificate
    if first is None or second is None:
        return False
    return (first.scales.values, first.gaps, first.kinds) == (second.scales.values, second.gaps, second.kinds)


@attack(
    place=2,
    answers=Answer(
        criteria=(SINGLING_OUT, LINKABILITY, INFERENCE),
        adversary="Knows the rows of all others, the algorithm, and two candidates for the row of one "
        "person.",
        reaches="A floor under all three: whatever is singled out, linked or inferred about one person "
        "through her row, the release adds no more than this to what was known before, on average.",
        does_not_reach="A single unlucky release, which may tell more than the average; what follows "
        "from the rows of others; several rows of one person; releases that were not named; columns that are "
        "passed on without protection; scales that were neither public nor paid for; and whether a person is "
        "in the table.",
    ),
    headline=_headline,
    on_tables=_on_tables,
    ids="not needed",
)
def distinguishing(
    mechanism: Mechanism | NoiseLaw | Decision | DecisionLaw | None,
    dimensions: int,
    *,
    formula: Formula = "exact",
    B: float | None = None,
    scales_spent: Guarantee | None = None,
    further: Sequence[NoiseLaw] = (),
    elsewhere: Sequence[PrivacyLoss] = (),
) -> Protection:
    """Protection from being told apart from anyone else, derived from a mechanism or from its law.

    Args:
        mechanism: A mechanism, its law of noise or of answers, or None for a table as it is.
        dimensions: Number of columns that were released; for answers it does not matter.
        formula: ``"exact"`` takes 𝒰 from the privacy loss of the noise that is really added, for every noise
            mechanism. ``"as_printed"`` and ``"corrected"`` are the paper's, for its own algorithm with its
            own noise only (`printed_loss`, `corrected_loss`).
        B: Distance for which a second figure is put into the detail: the mechanism's own unless given; a law
            has none.
        scales_spent: What private column scales cost (a certificate states it): they tell people apart too,
            and mean losses add up.
        further: Laws of further releases of the same rows, which count together with this one.
        elsewhere: Losses of whatever else was released about the same people, as releases with other scales
            or scales that were paid for, at any distance between them.

    Returns:
        Protection, a lower bound. ``detail`` has ``expected_loss`` (𝒰, in nats); where it is exact also
        ``best_guess``, the probability that the best guess between two equally likely candidates is right,
        and ``at_B``, all three at distance B; for the paper's formulas ``exact_score`` to compare with.

    Raises:
        TypeError: ``mechanism`` is none, or the formula is for another one.
        ValueError: ``dimensions`` does not fit the law, or ``formula`` is unknown or not for this noise.

    Guarantees: the exact score is never above the truth, up to an event of probability 2⁻⁶⁴.
    Does not guarantee: anything about one release, which may tell more than the mean; anything about
    scales that were neither public nor paid for.
    Edges: 0 where no noise is added (``None`` for a table as it is, or k-anonymity), as in the paper.

    Example:
        >>> from targetdp import SphericalLaplace
        >>> result = distinguishing(SphericalLaplace(B=2, epsilon=1), 10)
        >>> round(result.score, 3), round(result.detail["best_guess"], 3)
        (0.952, 0.564)
        >>> distinguishing(None, 10).score
        0.0
        >>> from targetdp.mechanisms import Decision
        >>> round(distinguishing(Decision(B=2, epsilon=4), 10).detail["best_guess"], 3)
        0.982
    """
    d = check.dimensions(dimensions)
    check.choice("formula", formula, get_args(Formula))
    if scales_spent is not None:
        check.instance("scales_spent", scales_spent, Guarantee)
    further = check.several("further", further, "give laws of noise")
    for place, law in enumerate(further):
        check.instance(f"further[{place}]", law, NoiseLaw)
    elsewhere = check.several("elsewhere", elsewhere, "give privacy losses")
    for place, loss in enumerate(elsewhere):
        check.instance(f"elsewhere[{place}]", loss, PrivacyLoss)
    if mechanism is not None and not isinstance(mechanism, Mechanism | NoiseLaw | Decision | DecisionLaw):
        raise TypeError(f"mechanism = {mechanism!r} is not a mechanism: give one, its law of noise, or None")
    if (further or elsewhere) and formula != "exact":
        raise ValueError(f"formula = {formula!r} is for one release: use formula='exact' for several")

    def figures(distance: float) -> Mapping[str, float] | None:
        own = None if mechanism is None else mechanism.loss_between(distance, d)
        if own is None:
            return None
        scales = [] if scales_spent is None else [StatedLoss.of(scales_spent, distance=distance)]
        together = [own, *scales, *(law.privacy_loss(distance) for law in further), *elsewhere]
        return _figures(own if len(together) == 1 else compose(*together), distance)

    farthest = figures(FARTHEST)
    if mechanism is None or farthest is None:
        return _protection(math.inf, formula=formula, notes=(_NO_NOISE,))
    mean = farthest["expected_loss"]
    notes: tuple[str, ...] = (_LEFT_OUT,) if math.isfinite(mean) else (_NO_MEAN,)
    if formula == "exact":
        if B is None and mechanism.guarantee is not None:
            B = mechanism.guarantee.B
        at_B = None if B is None else figures(check.distance(B, "B"))
        if further or elsewhere:
            notes = (*notes, _SEVERAL)
        return _protection(
            mean, formula=formula, notes=notes, best_guess=farthest["best_guess"], at_B=at_B,
            together=bool(further or elsewhere),
        )  # fmt: skip
    paper = _papers_own(mechanism, formula)
    budget = (paper.B, paper.epsilon1, paper.delta1, paper.epsilon2, paper.delta2)
    if formula == "as_printed":
        papers, notes = printed_loss(*budget), (*notes, _AS_PRINTED)
    else:
        papers = corrected_loss(*budget, truncated=paper.rank is not None and paper.rank < d)
    if scales_spent is not None:
        papers += StatedLoss.of(scales_spent, distance=FARTHEST).expected()
    return _protection(
        papers, formula=formula, notes=(*notes, _compared(papers, mean)), exact_score=farthest["score"]
    )


def printed_loss(B: float, epsilon1: float, delta1: float, epsilon2: float, delta2: float) -> float:
    """The Supplement's 𝒰 to the letter, with the switch lemma's ε̂ = sε and δ̂ = min(1, …), s = ⌈2/B⌉.

    𝒰 = ε̂₁²/(4(ln(1/δ̂₁) + ε₁)) + ε̂₂²/(16·ln(1.25/δ̂₂)).

    Three things are odd. Lemma 7 gives 4 where it has 16; the first denominator has ε₁ where ε̂₁ seems
    meant; and Step 4 counts although it changes nothing at full rank. It is a bound all the same, a loose
    one, for every R that is no longer than Proposition 1 says: δ̂ ≥ δ and s ≥ 2/B make the first term at
    least (2/B)²·E₃, and covariances of two rows are never farther apart than √2, so that even 16 is twice as
    careful as need be. With ε̂₁ below and δ̂₁ capped at 1 it
    would be ε̂₁/4 for small B: no bound, since the true loss grows with the square of 2/B.
    For Togo it gives the text's 83.5% at B = 2, but 1.97% at B = 0.25, where the text has 6.66%.

    Args:
        B: Distance of the guarantee.
        epsilon1: ε of Step 3.
        delta1: δ of Step 3.
        epsilon2: ε of Step 4.
        delta2: δ of Step 4.

    Returns:
        The mean privacy loss, in nats.

    Raises:
        ValueError: The numbers make no guarantee.

    Example:
        >>> delta = 1 / 4202
        >>> round(1 / (1 + printed_loss(2, 3, delta * 2 / 3, 0.9999, delta / 3)), 3)
        0.835
    """
    step3, step4 = Guarantee(B, epsilon1, delta1).classic(), Guarantee(B, epsilon2, delta2).classic()
    return step3.epsilon**2 / (4 * (math.log(1 / step3.delta) + epsilon1)) + step4.epsilon**2 / (
        16 * math.log(1.25 / step4.delta)
    )


def corrected_loss(
    B: float, epsilon1: float, delta1: float, epsilon2: float, delta2: float, *, truncated: bool
) -> float:
    """𝒰 as the paper's own lemmas give it: Gaussian losses grow with the square of the distance.

    𝒰 = (2/B)²·(E₃ + E₄),  E₃ = ε₁²/(4(ln(1/δ₁) + ε₁)),  E₄ = ε₂²/(4·ln(1.25/δ₂)),

    with E₄ only where V is ``truncated`` (rank < d): else Steps 4 and 5 cancel. Loose by about a factor d,
    as Lemma 5's sensitivity is by √d.
    """
    step3 = epsilon1**2 / (4 * (math.log(1 / delta1) + epsilon1))
    step4 = epsilon2**2 / (4 * math.log(1.25 / delta2)) if truncated else 0.0
    return (FARTHEST / B) ** 2 * (step3 + step4)


def score_of(expected_loss: float) -> float:
    """𝒟 = 1/(1 + 𝒰), rounded down; 0 for a mean without bound."""
    return math.nextafter(1 / (1 + expected_loss), 0.0)


def _figures(loss: PrivacyLoss, distance: float) -> Mapping[str, float]:
    """Mean loss, score and best guess for two people at a distance."""
    mean = loss.expected()
    return MappingProxyType(
        {
            "distance": distance,
            "expected_loss": mean,
            "score": score_of(mean),
            "best_guess": loss.best_guess(),
        }
    )


def _papers_own(
    mechanism: Mechanism | NoiseLaw | Decision | DecisionLaw, formula: Formula
) -> PrivateProjection:
    """The paper's algorithm with the paper's noise, also inside of its partition strategy."""
    mechanism = getattr(mechanism, "on_whole_tables", mechanism)
    if not isinstance(mechanism, PrivateProjection):
        raise TypeError(
            f"formula = {formula!r} is for a PrivateProjection, not for a {type(mechanism).__name__}: "
            "use formula='exact'"
        )
    if mechanism.calibration != "printed":
        raise ValueError(
            f"formula = {formula!r} is for the paper's noise, but calibration = {mechanism.calibration!r} "
            "adds less: use formula='exact'"
        )
    return mechanism


def _compared(papers: float, exact: float) -> str:
    if papers >= exact:
        return f"It is a bound here, no tighter than the exact score of {_down(exact)}."
    return f"It claims more protection than the exact score of {_down(exact)}: believe that one."


def _down(loss: float) -> str:
    """The score of a mean loss, rounded to less protection."""
    return f"{math.floor(score_of(loss) * 1e4) / 1e4:.4f}"


def _protection(
    expected_loss: float, *, formula: Formula, notes: tuple[str, ...], **detail: Any
) -> Protection:
    score = score_of(expected_loss)
    return worst(
        {WORST_CASE: Setting(score, (score, score))},
        "lower",
        confidence=1.0,
        formula=formula,
        expected_loss=expected_loss,
        notes=notes,
        **detail,
    )
