"""Scores of a certificate against their own weights, and what is stated for the people of a sample."""

from collections.abc import Iterator

import numpy as np

from targetdp.guarantee import Guarantee
from targetdp.mechanisms.law import NoiseLaw
from targetdp.mechanisms.linear import LinearLaw, unit_map
from targetdp.release.caveats import told
from targetdp.release.certificate import Certificate, Sample, noise_of
from targetdp.release.charge import Charge
from targetdp.release.findings import Check
from targetdp.release.two_rounds import two_rounds
from targetdp.release.weights_file import must_be_plain, must_differ

SLACK = 1e-9
"""Relative: another processor may round the last digits differently."""


def score_checks(
    c: Certificate, stated: Guarantee, law: NoiseLaw, spent: Guarantee | None
) -> Iterator[Check]:
    """Whether what is said of scores, weights and the sample can be true."""
    if not isinstance(law, LinearLaw):
        if c.scores is not None or c.sample is not None or c.no_sample:
            yield Check("scores", False, "no weights are on record that would make them")
        return
    yield _names(c, law)
    yield _weights(law, stated.B)
    if c.sample is None:
        return
    nobody = not c.no_sample and not (c.sample.scored and c.sample.some_have_left)
    yield Check(
        "who is in the sample", nobody, "one of left out and scored" if nobody else "contradicts itself"
    )
    yield from _sample(c.sample, stated, Charge(law=law, scales=spent))


def against_sample(c: Certificate, sample: Certificate) -> Check:
    """Whether a certificate says of its sample what the sample's own certificate does."""
    s = c.sample
    what = "the sample's certificate"
    if s is None:
        return Check(what, False, "this release names no sample")
    stated = (s.release, s.sha256, s.rows, s.guarantee, s.law, s.spent)
    own = (
        sample.release, sample.output.sha256, sample.rows, sample.guarantee, sample.mechanism.law,
        sample.scales.spent,
    )  # fmt: skip
    same_scales = (
        c.scales.values is not None
        and sample.scales.values is not None
        and dict(c.scales.values) == dict(sample.scales.values)
    )
    good = stated == own and (same_scales or not s.same_scales)
    if s.scales is not None:  # an older version did not say
        good &= s.scales == sample.scales.source
        good &= c.scales.source != "sample" or sample.scales.estimated_here
    return Check(what, good, "says the same" if good else "says something else than is stated here")


def _names(c: Certificate, law: LinearLaw) -> Check:
    try:
        names = must_differ(must_be_plain(c.scores or ()), (c.id, *c.features, *c.not_protected))
    except ValueError as error:
        return Check("scores", False, str(error))
    return Check("scores", len(names) == law.scores, ", ".join(names) or "none is named")


def _weights(law: LinearLaw, B: float) -> Check:
    """Divided by their norm: longer weights leak, and shorter ones would look safer than they are."""
    given = np.array(law.weights)
    good = bool(np.allclose(given, unit_map(given, B), rtol=1e-6, atol=1e-12))
    return Check("weights", good, "of norm 1" if good else "are not divided by their norm")


def _sample(s: Sample, stated: Guarantee, charge: Charge) -> Iterator[Check]:
    first = s.first()
    own = first.charge.law
    if own is None:
        yield Check("the sample's guarantee", False, "its noise is not on record")
        return
    if s.scales is not None:
        paid = (s.spent is not None) == (s.scales == "private")
        yield Check("the sample's scales", paid, f"{s.scales}, {'' if s.spent else 'not '}paid for")
    yield keeps("the sample's guarantee", own, first.charge.scales, first.guarantee)
    again = two_rounds(
        first, stated, charge, scored=s.scored, some_have_left=s.some_have_left, same=s.same_scales
    ).inside
    inside = s.inside.value()
    good = (
        inside.B <= again.B
        and inside.epsilon >= again.epsilon * (1 - SLACK)
        and inside.delta >= again.delta * (1 - SLACK)
    )
    yield Check(
        "people of the sample", good, f"{told(inside)}, derived again" if good else "stated better than it is"
    )


def keeps(what: str, law: NoiseLaw, spent: Guarantee | None, stated: Guarantee) -> Check:
    """Lemma 2: what is left of ε and δ after the scales must cover the noise."""
    epsilon = stated.epsilon - (spent.epsilon if spent else 0.0)
    delta = stated.delta - (spent.delta if spent else 0.0)
    true = law.privacy_loss(stated.B).delta(max(0.0, epsilon) * (1 + 1e-12))
    return Check(
        what,
        epsilon > 0 and true <= delta * (1 + SLACK),
        f"{stated} derived again from {noise_of(law).family} noise: δ = {true:.3g} at its ε",
    )
