"""All attacks on one release: which of them can be run, and what each one found."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from targetdp._core import Progress, Silent, check
from targetdp.attacks._attribute_inference import attribute_inference
from targetdp.attacks._criteria import ANSWERS, ONE_NUMBER, Answer, meaning
from targetdp.attacks._distinguishing import distinguishing
from targetdp.attacks._linkability import linkability
from targetdp.attacks._linkage import linkage
from targetdp.attacks._membership import membership
from targetdp.attacks._on_release import Behind, JoinedTables
from targetdp.attacks._protection import CONFIDENCE, Protection
from targetdp.attacks._reconstruction import reconstruction
from targetdp.attacks._score_inference import score_inference
from targetdp.attacks._singling_out import singling_out
from targetdp.normalization import PUBLISHED

MOST_PEOPLE = 20_000
"""People whose values are guessed, unless the caller says otherwise: guessing compares each with all rows."""


@dataclass(frozen=True)
class Case:
    """A release under attack, and how hard to try. ``other`` is a second release of the same people."""

    sides: JoinedTables
    rng: np.random.Generator = field(repr=False)
    other: JoinedTables | None = field(repr=False, default=None)
    people: int | None = None
    confidence: float = CONFIDENCE
    progress: Progress = field(repr=False, default_factory=Silent)


@dataclass(frozen=True)
class Finding:
    """What an attack found, or (no ``protection``) why it could not be run; either way in plain words."""

    attack: str
    protection: Protection | None
    meaning: str
    given: tuple[str, ...] = ()
    """What a derived score depends on; where there is something, it is no bound on its own."""
    done_by: str = ""
    """The function that ran, where it is another than the attack's own."""

    @property
    def answer(self) -> Answer:
        """What the attack says about the regulators' criteria."""
        return ANSWERS[self.done_by or self.attack]

    def record(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        answer = self.answer
        return {
            "attack": self.attack,
            "protection": None if self.protection is None else self.protection.record(),
            "meaning": self.meaning,
            "holds_only": list(self.given),
            "adversary": answer.adversary,
            "wp216_criteria": list(answer.criteria),
            "reaches": answer.reaches,
            "does_not_reach": answer.does_not_reach,
        }


class CannotRunError(ValueError):
    """An attack that needs something which this case does not have."""


def run_attacks(
    sides: JoinedTables,
    attacks: Sequence[str] | None = None,
    *,
    other: JoinedTables | None = None,
    people: int | None = None,
    confidence: float = CONFIDENCE,
    seed: int | None = None,
    progress: Progress | None = None,
) -> tuple[Finding, ...]:
    """Run the named attacks, or all; one that cannot be run says why, and stops nobody else.

    Each attack has randomness of its own, so that its result does not depend on which others are run.
    """
    asked = check.several("attacks", ATTACKS if attacks is None else attacks, "name attacks")
    chosen = list(dict.fromkeys(check.choice("attacks", name, ATTACKS) for name in asked))
    if not chosen:
        raise ValueError(
            f"attacks has no entries: name some of {', '.join(ATTACKS)}, or leave it out for all"
        )
    if seed is None:
        seed = int(np.random.default_rng().integers(2**63))
    seed = check.integer("seed", seed, at_least=0)
    findings = []
    for name in chosen:
        own = np.random.default_rng([seed, list(ATTACKS).index(name)])
        case = Case(sides, own, other, people, confidence, progress or Silent())
        findings.append(_finding(name, case))
    return tuple(findings)


def _finding(name: str, case: Case) -> Finding:
    done_by = name if case.sides.behind is None else ON_SCORES.get(name, name)
    try:
        found = ATTACKS[name](case)
    except CannotRunError as reason:
        return Finding(name, None, str(reason), done_by=done_by)
    except ValueError as reason:  # a table that this attack refuses
        return Finding(name, None, f"Not run: {reason}", done_by=done_by)
    given = caveats(case.sides) if found.bound == "lower" and found.score > 0 else ()
    words = meaning(done_by, found, scores=case.sides.behind is not None)
    if name == "singling_out" and case.sides.released.shape[1] == 1:
        words = f"{words} {ONE_NUMBER}"
    if given:
        words = f"Only {' and '.join(given)}: {words[0].lower()}{words[1:]}"
    return Finding(name, found, words, given, done_by)


def _singling_out(case: Case) -> Protection:
    s = case.sides
    return singling_out(s.original, s.released, confidence=case.confidence, progress=case.progress)


def _attribute_inference(case: Case) -> Protection:
    s = case.sides
    if len(s.features if s.behind is None else s.behind.features) < 2:
        raise CannotRunError("Not run: it needs two columns, one that is known and one that is guessed.")
    if s.behind is not None:
        return _score_inference(case, s.behind)
    most = case.people or MOST_PEOPLE
    return attribute_inference(
        s.original, s.released, s.holdout, columns=s.features, rng=case.rng, progress=case.progress,
        people=most if most < len(s.original) else None, confidence=case.confidence,
    )  # fmt: skip


def _score_inference(case: Case, rows: Behind) -> Protection:
    """Scores have no columns on which people could look alike: a stronger adversary takes their place."""
    most = case.people or MOST_PEOPLE
    return score_inference(
        rows.original, case.sides.released, rows.law.weights, rows.law, rows.holdout, columns=rows.features,
        people=most if most < len(rows.original) else None, rng=case.rng, progress=case.progress,
        confidence=case.confidence,
    )  # fmt: skip


def _distinguishing(case: Case) -> Protection:
    proof = case.sides.certificate
    if proof is None:
        raise CannotRunError("Not run: without a certificate the noise is not known.")
    spent = None if proof.scales.spent is None else proof.scales.spent.value()
    behind = case.sides.behind
    return distinguishing(
        case.sides.law if behind is None else behind.law, len(proof.features), scales_spent=spent,
        B=None if proof.guarantee is None else proof.guarantee.B,
    )  # fmt: skip


def caveats(sides: JoinedTables) -> tuple[str, ...]:
    """On what a derived score of this release depends, as its certificate tells: nothing, for a clean one."""
    proof = sides.certificate
    if proof is None or proof.guarantee is None:
        return ()
    found = []
    if proof.scales.source not in PUBLISHED:
        found.append("given the column scales, which tell of people too")
    if proof.not_protected:
        found.append(f"without the columns that are passed on as they are ({', '.join(proof.not_protected)})")
    return tuple(found)


def _linkage(case: Case) -> Protection:
    s = case.sides
    return linkage(
        s.original, s.released, s.law, confidence=case.confidence, rng=case.rng, progress=case.progress
    )


def _linkability(case: Case) -> Protection:
    if case.other is None:
        raise CannotRunError("Not run: it needs a second release of the same people (--second).")
    one, two = case.sides, case.other
    shared = [
        (one.features.index(name), two.features.index(name)) for name in one.features if name in two.features
    ]
    if not shared:
        raise CannotRunError("Not run: the two releases have no column in common.")
    # Two releases may be sorted by different pseudonyms: people meet by their places in the original.
    _, here, there = np.intersect1d(one.places, two.places, assume_unique=True, return_indices=True)
    if len(here) < 2:
        raise CannotRunError("Not run: the two releases have fewer than two people in common.")
    return linkability(
        one.released[here], two.released[there], shared=shared, noise_a=one.law, noise_b=two.law,
        confidence=case.confidence, rng=case.rng, progress=case.progress,
    )  # fmt: skip


def _membership(case: Case) -> Protection:
    s = case.sides
    if s.holdout is None:
        raise CannotRunError("Not run: it needs people who are not in the release (--holdout).")
    return membership(
        s.original, s.released, s.holdout, s.law, confidence=case.confidence, rng=case.rng,
        progress=case.progress,
    )  # fmt: skip


def _reconstruction(case: Case) -> Protection:
    s, law = case.sides, case.sides.law
    if law is None:
        raise CannotRunError("Not run: without a certificate of added noise there is no noise to undo.")
    return reconstruction(
        s.released, law, s.original, confidence=case.confidence, rng=case.rng, progress=case.progress
    )


ATTACKS: Mapping[str, Callable[[Case], Protection]] = MappingProxyType(
    {
        "singling_out": _singling_out,
        "attribute_inference": _attribute_inference,
        "distinguishing": _distinguishing,
        "linkage": _linkage,
        "linkability": _linkability,
        "membership": _membership,
        "reconstruction": _reconstruction,
    }
)
"""Every attack by name: a new one is one file, one line here and one answer in `criteria`."""

ON_SCORES: Mapping[str, str] = MappingProxyType({"attribute_inference": "score_inference"})
"""Attacks that another function stands for where scores were released in place of the columns."""
