"""The numbers of a certificate: each is derived again from the law of the noise, and none may be too good."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from targetdp._core import __version__
from targetdp.accounting import compose
from targetdp.guarantee import Guarantee
from targetdp.mechanisms import Cells, DecisionLaw, LinearLaw, NoiseLaw, RowLaw, law_of, unit_map
from targetdp.release._certificate._agreed import is_consistent
from targetdp.release._certificate._caveats import conditions_of
from targetdp.release._certificate._certificate import Certificate, at_distances, classic, noise_length
from targetdp.release._certificate._charge import Charge
from targetdp.release._certificate._contents import Check, questions_of
from targetdp.release._policy import CLASSIC
from targetdp.release._request import scores_must_be_plain, scores_must_differ
from targetdp.table import first_names

SLACK = 1e-9
"""Relative: another processor may round the last digits differently."""
_FAMILIES = {"projection-exact": "projection"}
"""Mechanisms whose noise has another name than they have."""


def verify_guarantee(c: Certificate) -> Iterator[Check]:
    """Derive what is stated again from the law of the noise: nothing may be too good, nothing left out."""
    yield _conditions(c)
    if c.kinds:
        yield _kinds(c)
    if c.agreed or c.together.agreed:
        good = is_consistent(c.agreed, c.rows, c.together.agreed)
        people = f"{sum(one.people for one in c.agreed):,} of {c.rows:,}, {c.together.agreed:,} in all"
        yield Check("people who agreed", good, people if good else f"{people}: that cannot be")
    yield from _scales(c)
    try:
        yield from _derived(c, c.guarantee.value(), law_of(c.mechanism.law))
    except (ValueError, TypeError, ArithmeticError) as error:
        yield Check("guarantee", False, f"the noise on record makes no sense: {error}")


def _derived(c: Certificate, stated: Guarantee, law: RowLaw) -> Iterator[Check]:
    spent = None if c.scales.spent is None else c.scales.spent.value()
    yield keeps("guarantee", law, spent, stated)
    if law.noisy is not None:
        yield from _noise(c, stated, law.noisy)
    if law.decision is not None or c.decisions:
        yield decision_check(c, law.decision)
    charge = Charge(law=law, scales=spent)
    again = at_distances(charge, stated)
    comparable = [a.distance for a in c.distances] == [a.distance for a in again]
    names = ("epsilon", "best_guess")
    yield _no_better("ε at other distances", c.distances, again, names, comparable)
    exact = classic(charge, stated)
    claimed = (c.classic.exact, c.classic.switch_lemma)
    true = (exact.exact, exact.switch_lemma)
    comparable = all(one is None or one.B == 2 for one in claimed)
    # What is promised of all releases cannot be less than what this one takes.
    near, far = c.together.near.value(), c.together.classic.value()
    good = far.B == 2 and all(
        compose(*charge.losses(one.B)).delta(one.epsilon * (1 + 1e-12)) <= one.delta * (1 + SLACK)
        for one in (near, far)
    )
    yield Check("all releases together", good, f"{near}, {far}" if good else "less than this release takes")
    yield _no_better("classic differential privacy", claimed, true, ("B", "epsilon", "delta"), comparable)


def _noise(c: Certificate, stated: Guarantee, law: NoiseLaw) -> Iterator[Check]:
    """Whether what is said of the noise is what its law says."""
    m, noise = c.mechanism, law.added
    same = (
        law.dimensions == len(c.features)
        and noise.family == _FAMILIES.get(m.name, m.name)
        and _close(m.deviation_per_column, law.deviation_per_column)
        and _close(m.noise_length, noise_length(law))
    )
    yield Check(
        "noise",
        same,
        f"{noise.family}, deviation {law.deviation_per_column:.6g}; columns: {noise.dimensions}",
    )
    yield from score_checks(c, stated, law)


def _conditions(c: Certificate) -> Check:
    if c.library != __version__:
        return Check("conditions", False, f"worded by targetdp {c.library}: verify with that version")
    try:
        good = c.conditions == conditions_of(c.facts())
    except (ValueError, TypeError, ArithmeticError) as error:
        return Check("conditions", False, f"its facts make no sense: {error}")
    return Check("conditions", good, "all are there" if good else "not those that the facts ask for")


def _kinds(c: Certificate) -> Check:
    """Whether the kinds on record are those of features, and of nothing else."""
    what = "kinds of columns"
    used = {column for column in c.sources if column in c.kinds}
    features = [feature for column, kind in c.kinds.items() for feature in kind.features(column)]
    odd = {*c.kinds} - used or {name for name in c.features if features.count(name) > 1}
    try:
        for column in {*c.kinds} & {*c.gaps}:
            c.kinds[column].place(c.gaps[column])
    except (ValueError, TypeError) as error:
        return Check(what, False, f"what stands for missing values makes no sense: {error}")
    told = first_names(f"{name}: {kind.kind}" for name, kind in c.kinds.items())
    return Check(what, not odd, told if not odd else f"{first_names(odd)}: not those of the features")


def _scales(c: Certificate) -> Iterator[Check]:
    """Private scales that this release estimated, and no others, were paid for here, at B = 2."""
    s = c.scales
    if s.source == "none":
        nothing = s.spent is None and not (s.values or s.estimated or s.releases or s.reason)
        good = nothing and bool(c.decisions) and c.guarantee.B == CLASSIC
        told = "none: rows were taken as they are" if good else "none, and the promise needs some"
        yield Check("column scales", good, told)
        return
    kinds = c.encoding.scales(c.features)
    numbers = tuple(name for name in c.features if name not in kinds)
    good = (s.spent is not None) == (s.source == "private") and (s.spent is None or s.spent.B == 2)
    good &= tuple(s.values) == c.features and (s.source == "declared" or bool(numbers))
    good &= (s.reason is not None) == (s.source == "declared" and bool(numbers))
    # What a kind declares is derived again from it.
    good &= all((s.values[name].center, s.values[name].scale) == own for name, own in kinds.items())
    good &= bool(s.estimated) == (s.source == "private") and set(s.estimated) <= set(numbers)
    earlier = s.source != "declared" and set(s.estimated) != set(numbers)
    good &= bool(s.releases) == earlier
    paid_for = {
        "declared": "not paid for",
        "private": "paid for, on the data holder's word",
        "earlier": "paid for by an earlier release, on the data holder's word",
    }[s.source]
    yield Check("column scales", good, f"{s.source}, {paid_for}")


def decision_check(c: Certificate, law: DecisionLaw | None) -> Check:
    """Whether what was asked is what the law says, so that the promise is for it."""
    what, names = "decisions", tuple(one.name for one in c.decisions)
    if law is None or c.scores:
        return Check(what, False, "no law is on record that would make them")
    try:
        scores_must_differ(scores_must_be_plain(names, "name"), (c.id, *c.features, *c.public))
        columns = tuple(dict.fromkeys(name for one in c.decisions for name in one.takes))
        good = columns == c.features and law.programs == len(names) and c.mechanism.name == law.family
        asked = questions_of(c, law)
        if law.cells is not None:
            # Cells must be as wide as B and its rounding; another score than was asked for tells otherwise.
            good &= law.cells.width >= Cells.hiding(c.guarantee.B, law.cells.score).width
            good &= asked[0].fits(law.cells.score, c.guarantee.B)
    except (ValueError, TypeError, ArithmeticError) as error:
        return Check(what, False, str(error))
    good &= c.mechanism.deviation_per_column is None and c.mechanism.noise_length is None
    # What a question means depends on B: of columns as they are at B = 2, of scaled rows below.
    good &= (law.cells is None) == (c.guarantee.B == CLASSIC) == (c.scales.source == "none")
    return Check(what, good, ", ".join(names) if good else "are not what the law on record is for")


def _no_better(
    what: str, stated: Sequence[object], again: Sequence[object], names: Sequence[str], comparable: bool
) -> Check:
    """Stated numbers must be at least those derived again (None: nothing is promised)."""
    good = comparable and len(stated) == len(again)
    for one, two in zip(stated, again, strict=False):
        for name in names:
            claimed, true = getattr(one, name, None), getattr(two, name, None)
            good &= claimed is None or (true is not None and claimed >= true * (1 - SLACK))
    return Check(what, good, "derived again" if good else "stated better than the noise allows")


def _close(a: float | None, b: float) -> bool:
    return a is not None and math.isclose(a, b, rel_tol=SLACK)


# Scores of a certificate against their own weights.


def score_checks(c: Certificate, stated: Guarantee, law: NoiseLaw) -> Iterator[Check]:
    """Whether what is said of scores and weights can be true."""
    linear = law.linear
    if linear is None:
        if c.scores or c.learned_from is not None:
            yield Check("scores", False, "no weights are on record that would make them")
        return
    yield _names(c, linear)
    yield _weights(linear, stated.B)


def _names(c: Certificate, law: LinearLaw) -> Check:
    try:
        names = scores_must_differ(scores_must_be_plain(c.scores), (c.id, *c.features, *c.public))
    except ValueError as error:
        return Check("scores", False, str(error))
    return Check("scores", len(names) == law.scores, ", ".join(names) or "none is named")


def _weights(law: LinearLaw, B: float) -> Check:
    """Divided by their norm: longer weights leak, and shorter ones would look safer than they are."""
    given = np.array(law.weights)
    good = bool(np.allclose(given, unit_map(given, B), rtol=1e-6, atol=1e-12))
    return Check("weights", good, "of norm 1" if good else "are not divided by their norm")


def keeps(what: str, law: RowLaw, spent: Guarantee | None, stated: Guarantee) -> Check:
    """Lemma 2: what is left of ε and δ after the scales must cover what was drawn."""
    epsilon = stated.epsilon - (spent.epsilon if spent else 0.0)
    delta = stated.delta - (spent.delta if spent else 0.0)
    true = law.privacy_loss(stated.B).delta(max(0.0, epsilon) * (1 + 1e-12))
    return Check(
        what,
        epsilon > 0 and true <= delta * (1 + SLACK),
        f"{stated} derived again from the law of {law.added.family}: δ = {true:.3g} at its ε",
    )
