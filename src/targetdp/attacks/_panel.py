"""All attacks on one release: which of them can be run, what each one found, and the worst of each kind."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from targetdp._core import Progress, Silent, check
from targetdp.attacks._declaration import (
    AS_RELEASED,
    IF_STRIPPED,
    LINKABILITY,
    QUESTIONS,
    WITHOUT_KEY,
    Answer,
    CannotRunError,
    Case,
    Situation,
    meaning,
    panel_names,
    registered,
)
from targetdp.attacks._linkage import in_common
from targetdp.attacks._on_release import JoinedTables
from targetdp.attacks._protection import CONFIDENCE, Protection
from targetdp.attacks._protection import worst as worst_setting


@dataclass(frozen=True)
class Finding:
    """What an attack found, or (no ``protection``) why it could not be run; either way in plain words.

    Args:
        attack: The attack's name.
        protection: What it found; None if it could not be run.
        meaning: The same in a sentence, or the reason.
        given: What a derived score depends on; where there is something, it is no bound on its own.
        situation: What the figure is about. A release carries ids: an attack that has to find out whose row
            is whose says what would be true if they were stripped or, where they are pseudonyms, to whoever
            lacks the key.

    Example:
        >>> Finding("linkage", None, "Not run: there are no rows.").situation
        'as released'
    """

    attack: str
    protection: Protection | None
    meaning: str
    given: tuple[str, ...] = ()
    situation: Situation = AS_RELEASED

    @property
    def answer(self) -> Answer:
        """What the attack says about the regulators' criteria."""
        return registered()[self.attack].answers

    @property
    def needs_ids(self) -> bool:
        """Whether the attack works only for somebody who can tell the ids."""
        return registered()[self.attack].ids == "used"

    def record(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        answer = self.answer
        return {
            "attack": self.attack,
            "situation": self.situation,
            "protection": None if self.protection is None else self.protection.record(),
            "meaning": self.meaning,
            "holds_only": list(self.given),
            "adversary": answer.adversary,
            "wp216_criteria": list(answer.criteria),
            "reaches": answer.reaches,
            "does_not_reach": answer.does_not_reach,
        }


def run_attacks(
    tables: JoinedTables,
    attacks: Sequence[str] | None = None,
    *,
    further: Sequence[JoinedTables] = (),
    people: int | None = None,
    confidence: float = CONFIDENCE,
    seed: int | None = None,
    progress: Progress | None = None,
) -> tuple[Finding, ...]:
    """Run the named attacks, or all; one that cannot be run says why, and stops nobody else.

    Args:
        tables: The original table and its release, person by person (`join_tables`).
        attacks: Names of attacks (`panel_names`); None for all.
        further: Other releases of the same people, with the same original. Inference, linkage and
            reconstruction use all together where rows were the same before the noise; otherwise the strongest
            single one counts.
        people: How many people's values to guess, at most; by default 20,000.
        confidence: Of the intervals.
        seed: Makes random choices repeatable. Each attack has randomness of its own, so that its result does
            not depend on which others are run.
        progress: Is told how far each attack is.

    Returns:
        What each attack found, or why it could not be run.

    Raises:
        TypeError: ``further`` has something else than joined tables.
        ValueError: ``attacks`` is empty or has an unknown name, or another argument is out of range.

    Example:
        >>> import numpy as np
        >>> people = np.random.default_rng(0).normal(size=(50, 2))
        >>> (result,) = run_attacks(JoinedTables(("calls", "texts"), people, people), ["singling_out"])
        >>> result.meaning, result.situation
        ('Everybody could be singled out by the strongest of 6 net sizes.', 'if ids were stripped')
    """
    known = panel_names()
    given = check.several("attacks", known if attacks is None else attacks, "name attacks")
    chosen = list(dict.fromkeys(check.choice("attacks", name, known) for name in given))
    if not chosen:
        raise ValueError(f"attacks has no entries: name some of {', '.join(known)}, or leave it out for all")
    others = tuple(check.several("further", further, "give joined tables"))
    for place, other in enumerate(others):
        check.instance(f"further[{place}]", other, JoinedTables)
    if seed is None:
        seed = int(np.random.default_rng().integers(2**63))
    seed = check.integer("seed", seed, at_least=0)
    findings = []
    for name in chosen:
        rng = np.random.default_rng([seed, registered()[name].place or 0])
        case = Case(tables, rng, others, people, confidence, progress or Silent())
        findings.append(_finding(name, case))
    return tuple(findings)


def _finding(name: str, case: Case) -> Finding:
    declared, situation = registered()[name], _situation(name, case)
    run = declared.on_tables
    assert run is not None  # noqa: S101 (`attack` sees to it)
    try:
        protection = run(case)
    except CannotRunError as reason:
        return Finding(name, None, str(reason), situation=situation)
    except ValueError as reason:  # a table that this attack refuses
        return Finding(name, None, f"Not run: {reason}", situation=situation)
    given: tuple[str, ...] = ()
    best_guess = protection.detail.get("best_guess")
    if protection.bound == "lower" and (protection.score > 0 or best_guess is not None):
        given = caveats((case.tables, *case.further))
    of_scores = protection.detail.get("of_scores", case.tables.rows_before_scoring is not None)
    words = meaning(name, protection, scores=of_scores)
    if case.tables.released.shape[1] == 1:
        words = f"{words} {declared.on_one_number}".rstrip()
    words = f"{words} {protection.detail.get('releases', '')}".rstrip()
    if given and protection.score > 0:
        words = f"Only {' and '.join(given)}: {words[0].lower()}{words[1:]}"
    return Finding(name, protection, words, given, situation)


def _situation(name: str, case: Case) -> Situation:
    """What a figure is about: an attack that assumes unknown order says nothing of a release with ids."""
    use = registered()[name].ids
    if use in {"used", "not needed"}:
        return AS_RELEASED
    linked = use == "unknown links" and any(_share_ids(case.tables, other) for other in case.further)
    return WITHOUT_KEY if case.tables.ids_are == "pseudonyms" and not linked else IF_STRIPPED


def _share_ids(one: JoinedTables, two: JoinedTables) -> bool:
    """Whether ids, or pseudonyms of one key, stand in both releases."""
    return one.ids is not None and two.ids is not None and in_common(one.ids, two.ids) > 0


VARIANCE = "inference, in variance"
"""The kind of attacks whose score is a share of variance: it is not compared with shares of people."""


def worst_by_kind(findings: Iterable[Finding]) -> Mapping[str, Mapping[Situation, Finding]]:
    """The attack of each kind that achieved most: as released, and without the ids.

    Kinds are the criteria of WP 216, and inference in shares of variance. Whoever has the ids can run every
    attack, so that the worst of all counts as released. Attacks that need the ids are left out of the other
    figures, but for the same pseudonyms in several releases: they link these without any key.
    Derived scores, which bound what attacks can do, are no attacks.

    Args:
        findings: What `run_attacks` found.

    Returns:
        For each kind the worst finding of each situation that was looked at.

    Example:
        >>> import numpy as np
        >>> people = np.random.default_rng(0).normal(size=(50, 2))
        >>> findings = run_attacks(JoinedTables(("calls", "texts"), people, people), ["singling_out"])
        >>> worst = worst_by_kind(findings)["singling out"]
        >>> worst["as released"].protection.score
        0.0
    """
    measured = [f for f in findings if f.protection is not None and f.protection.bound == "upper"]
    apart = {f.situation: None for f in measured if f.situation != AS_RELEASED} or {IF_STRIPPED: None}
    worst: dict[str, Mapping[Situation, Finding]] = {}
    for kind in (*QUESTIONS, VARIANCE):
        of_kind = [f for f in measured if kind in _kinds(f)]
        of_situations: dict[Situation, list[Finding]] = {AS_RELEASED: of_kind}
        for (
            situation
        ) in apart:  # what is true without the key is true without ids, and not the other way round
            true = [f for f in of_kind if situation == IF_STRIPPED or f.situation != IF_STRIPPED]
            of_situations[situation] = [f for f in true if not f.needs_ids]
        if WITHOUT_KEY in apart and kind == LINKABILITY:
            of_situations[WITHOUT_KEY] += [f for one in of_kind for f in _linked_without_key(one)]
        worst[kind] = {s: min(fs, key=_score) for s, fs in of_situations.items() if fs}
    return worst


def _linked_without_key(finding: Finding) -> Iterator[Finding]:
    """What pseudonyms that stand in several releases link, for whoever cannot tell them."""
    detail = {} if finding.protection is None else finding.protection.detail
    if detail.get("without_key"):
        protection = worst_setting(detail["without_key"], "upper", confidence=1.0)
        words = " ".join(detail["sentences"])
        yield replace(finding, protection=protection, meaning=words, situation=WITHOUT_KEY)


def _kinds(finding: Finding) -> tuple[str, ...]:
    return (VARIANCE,) if registered()[finding.attack].of_variance else finding.answer.criteria


def _score(finding: Finding) -> tuple[float, bool]:
    """By protection; of equally strong attacks one that uses the ids comes first."""
    assert finding.protection is not None  # noqa: S101 (only what was measured is compared)
    return finding.protection.score, not finding.needs_ids


def caveats(releases: Sequence[JoinedTables]) -> tuple[str, ...]:
    """On what a derived score of some releases depends, as their certificates tell: mostly on nothing."""
    proofs = [one.certificate for one in releases if one.certificate is not None]
    named = {proof.release for proof in proofs}
    conditions: dict[str, None] = {}
    for proof in proofs:
        for paid_by in set(proof.scales.releases) - {*named, *proof.left_out}:
            told = f"without what the column scales tell, which release {paid_by[:12]} has paid for"
            conditions[told] = None
        if proof.public:
            passed_on = ", ".join(proof.public)
            conditions[f"without the columns that are passed on as they are ({passed_on})"] = None
    return tuple(conditions)
