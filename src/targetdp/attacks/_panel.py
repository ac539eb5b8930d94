"""All attacks on one release: which of them can be run, and what each one found."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from targetdp._core import Progress, Silent, check
from targetdp.attacks._declaration import Answer, CannotRunError, Case, meaning, panel_names, registered
from targetdp.attacks._on_release import JoinedTables
from targetdp.attacks._protection import CONFIDENCE, Protection
from targetdp.normalization import PUBLISHED


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
        return registered()[self.done_by or self.attack].answers

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


def run_attacks(
    tables: JoinedTables,
    attacks: Sequence[str] | None = None,
    *,
    second: JoinedTables | None = None,
    people: int | None = None,
    confidence: float = CONFIDENCE,
    seed: int | None = None,
    progress: Progress | None = None,
) -> tuple[Finding, ...]:
    """Run the named attacks, or all; one that cannot be run says why, and stops nobody else.

    Args:
        tables: The original table and its release, person by person (`join_tables`).
        attacks: Names of attacks (`panel_names`); None for all.
        second: Another release of the same people, for attacks that link the two.
        people: How many people's values to guess, at most; by default 20,000.
        confidence: Of the intervals.
        seed: Makes random choices repeatable. Each attack has randomness of its own, so that its result does
            not depend on which others are run.
        progress: Is told how far each attack is.

    Returns:
        What each attack found, or why it could not be run.

    Raises:
        ValueError: ``attacks`` is empty or has an unknown name, or another argument is out of range.

    Example:
        >>> import numpy as np
        >>> people = np.random.default_rng(0).normal(size=(50, 2))
        >>> (result,) = run_attacks(JoinedTables(("calls", "texts"), people, people), ["singling_out"])
        >>> result.meaning
        'Everybody could be singled out by the strongest of 6 net sizes.'
    """
    known = panel_names()
    given = check.several("attacks", known if attacks is None else attacks, "name attacks")
    chosen = list(dict.fromkeys(check.choice("attacks", name, known) for name in given))
    if not chosen:
        raise ValueError(f"attacks has no entries: name some of {', '.join(known)}, or leave it out for all")
    if seed is None:
        seed = int(np.random.default_rng().integers(2**63))
    seed = check.integer("seed", seed, at_least=0)
    findings = []
    for name in chosen:
        rng = np.random.default_rng([seed, registered()[name].place or 0])
        case = Case(tables, rng, second, people, confidence, progress or Silent())
        findings.append(_finding(name, case))
    return tuple(findings)


def _finding(name: str, case: Case) -> Finding:
    known, scored = registered(), case.tables.rows_before_scoring is not None
    done_by = (known[name].on_scores if scored else None) or name
    run = known[done_by].on_tables
    assert run is not None  # noqa: S101 (`attack` sees to it)
    try:
        protection = run(case)
    except CannotRunError as reason:
        return Finding(name, None, str(reason), done_by=done_by)
    except ValueError as reason:  # a table that this attack refuses
        return Finding(name, None, f"Not run: {reason}", done_by=done_by)
    given = caveats(case.tables) if protection.bound == "lower" and protection.score > 0 else ()
    words = meaning(done_by, protection, scores=scored)
    if case.tables.released.shape[1] == 1:
        words = f"{words} {known[name].on_one_number}".rstrip()
    if given:
        words = f"Only {' and '.join(given)}: {words[0].lower()}{words[1:]}"
    return Finding(name, protection, words, given, done_by)


def caveats(tables: JoinedTables) -> tuple[str, ...]:
    """On what a derived score of this release depends, as its certificate tells: nothing, for a clean one."""
    proof = tables.certificate
    if proof is None or proof.guarantee is None:
        return ()
    conditions = []
    if proof.scales.source not in PUBLISHED:
        conditions.append("given the column scales, which tell of people too")
    if proof.not_protected:
        passed_on = ", ".join(proof.not_protected)
        conditions.append(f"without the columns that are passed on as they are ({passed_on})")
    return tuple(conditions)
