"""The terms of a release: which noise, which guarantee, on which conditions, at which price."""

import hashlib
import math
from dataclasses import dataclass
from fractions import Fraction

from targetdp._core import Words, __version__, check
from targetdp._files import canonical
from targetdp.guarantee import Guarantee, sequential
from targetdp.mechanisms import LEAST_NOISE, Decision, RowLaw, Scores, least_noise, noise_mechanisms
from targetdp.normalization import PrivateScales
from targetdp.release._certificate._agreed import WithoutPromise
from targetdp.release._certificate._caveats import Facts, conditions_of
from targetdp.release._certificate._charge import Charge
from targetdp.release._planned import lines_for
from targetdp.release._prepare import Prepared

_PURE = 2.0**-80
"""A δ that is nothing but the samplers' own, whose tails are below it."""


class TooFewPeopleError(ValueError):
    """Private scales cannot be estimated from so few people."""


@dataclass(frozen=True)
class ReleaseTerms:
    """What will be done and what may be said of it.

    ``guarantee`` includes what private scales cost, where this release estimates them (``scales``).
    """

    name: str
    law: RowLaw
    guarantee: Guarantee
    conditions: tuple[str, ...]
    charge: Charge
    why: str
    scales: PrivateScales | None
    agreed: tuple[WithoutPromise, ...] = ()
    """People to whom nothing is promised."""


def make_terms(
    prepared: Prepared, rows: int, *, epsilon: float | None = None, agreed: tuple[WithoutPromise, ...] = ()
) -> ReleaseTerms:
    """Work out the terms. Noise and price depend on request, policy and the number of rows only.

    ``epsilon`` is another than the request's, to find out what it would cost; ``agreed`` people have no
    promise.
    """
    d = check.dimensions(len(prepared.features), "number of features")
    asked = Guarantee(prepared.request.B, epsilon or prepared.request.epsilon, delta_of(prepared, rows))
    scales = None
    if prepared.estimated:
        share = prepared.policy.scales.share
        try:
            scales = PrivateScales(rows, len(prepared.estimated), share * asked.epsilon)
        except ValueError as error:
            raise TooFewPeopleError(f"{error}; {share_of_scales(prepared)}") from error
        if prepared.request.decisions:  # which have none; their scales have that of the sampler's tails
            asked = Guarantee(asked.B, asked.epsilon, scales.spent.delta)
    noise = asked if scales is None else _rest(asked, scales.spent)
    name, law, own, why = _law(prepared, noise, d)
    _must_keep(law, own)
    guarantee = own if scales is None else sequential(scales.spent, own)
    if guarantee.delta > asked.delta:
        raise ValueError(
            f"delta = {asked.delta:g} is less than {name} noise can keep: ask for {guarantee.delta:.2g} or "
            "more"
        )
    if guarantee.epsilon > asked.epsilon or guarantee.B < asked.B:
        raise RuntimeError(f"{guarantee} is weaker than {asked}, which was asked for: please report this")
    return ReleaseTerms(
        name=name, law=law, guarantee=guarantee,
        conditions=conditions_of(facts_of(prepared, is_large(guarantee.delta, rows), rows, agreed)),
        charge=Charge(law, None if scales is None else scales.spent), why=why, scales=scales, agreed=agreed,
    )  # fmt: skip


def delta_of(prepared: Prepared, rows: int) -> float:
    """The δ that was asked for or, where none was, the smaller of the policy's and 1/(rows + 1).

    Decisions have none: δ is 0, but for what scales cost that they estimate. A planned release has the
    plan's. Under a limit that counts pure ε noise is as good as pure: a δ would only make its ε larger.
    """
    request, policy = prepared.request, prepared.policy
    if request.decisions:
        return 0.0
    if request.delta is not None:
        return request.delta
    if lines := lines_for(prepared):
        return policy.plan[lines[0]].delta
    return min(policy.release.delta, _PURE if policy.limit.filter == "pure" else 1 / (rows + 1))


def is_large(delta: float, rows: int) -> bool:
    """Whether a δ is above 1/rows: then it needs the data holder's word."""
    return delta > 1 / rows


def share_of_scales(prepared: Prepared) -> str:
    """Which ε private scales get: advice about it means theirs, not the one that is asked for."""
    share = prepared.policy.scales.share
    return f"scales get {share:g} of the ε that is asked for (scales.share in policy.toml)"


def _rest(asked: Guarantee, spent: Guarantee) -> Guarantee:
    """What is left for the noise when the scales are paid for; the sum never exceeds what was asked for."""
    epsilon, delta = asked.epsilon - spent.epsilon, asked.delta - spent.delta
    # In exact arithmetic: floats would take a sum for smaller than it is.
    while Fraction(spent.epsilon) + Fraction(epsilon) > Fraction(asked.epsilon):
        epsilon = math.nextafter(epsilon, 0)
    while Fraction(spent.delta) + Fraction(delta) > Fraction(asked.delta):
        delta = math.nextafter(delta, 0)
    return Guarantee(asked.B, epsilon, delta)


def _law(prepared: Prepared, asked: Guarantee, d: int) -> tuple[str, RowLaw, Guarantee, str]:
    """What keeps a promise: its name, its law, what it guarantees by itself, and why it was chosen."""
    wanted = prepared.request.mechanism
    if prepared.scoring is not None:
        questions = prepared.scoring.questions
        decision = Decision(
            B=asked.B, epsilon=asked.epsilon, score=questions[0].score, programs=len(questions)
        )
        law = decision.law()
        return law.family, law, decision.guarantee, "a bit says the least that a decision needs"
    if wanted == LEAST_NOISE:
        choice = least_noise(asked, len(prepared.released))
        name, mechanism, why = choice.name, choice.mechanism, choice.why
    else:
        name, mechanism = wanted, noise_mechanisms()[wanted](asked)
        why = f"{name} was asked for"
    if prepared.weights is not None:
        mechanism = Scores(prepared.weights, mechanism)
    return name, mechanism.law(d), mechanism.guarantee, why


def _must_keep(law: RowLaw, guarantee: Guarantee) -> None:
    """No release before its law was checked against its claim, by the way that verifying takes."""
    if law.privacy_loss(guarantee.B).delta(guarantee.epsilon) > guarantee.delta:
        raise RuntimeError(f"the {law.family} law does not keep {guarantee}: please report this")


def facts_of(
    prepared: Prepared, large_delta: bool, rows: int, agreed: tuple[WithoutPromise, ...] = ()
) -> Facts:
    """What the conditions of a release depend on."""
    request = prepared.request
    return Facts(
        scales=prepared.scales_source, public=tuple(prepared.public),
        columns=len(prepared.encoding.sources(prepared.features)), gaps=prepared.told.gaps,
        kinds=prepared.told.kinds, pseudonyms=prepared.names.pseudonym_key is not None,
        tuned_on=request.tuned_on, engine=prepared.engine, scores=request.scores, decisions=request.decisions,
        learned_from=request.learned_from,
        left_out=prepared.left_out_releases, stated=prepared.stated, large_delta=large_delta,
        rows=rows, agreed=agreed,
    )  # fmt: skip


def bound_of(prepared: Prepared, terms: ReleaseTerms, people: Words) -> str:
    """A hash of what must be the same for a re-run to repeat draws; rows are seen to as they come."""
    everything = {
        "request": prepared.request.sha256, "policy": prepared.policy.sha256, "engine": prepared.engine,
        "charge": terms.charge.record(), "scales": prepared.known_scales, "library": __version__,
        "people": hashlib.sha256(people.data).hexdigest(),
    }  # fmt: skip
    return hashlib.sha256(canonical(everything).encode()).hexdigest()
