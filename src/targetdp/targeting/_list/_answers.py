"""From a release of decisions to the list of a program."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from targetdp._core import Progress, Silent
from targetdp.mechanisms import DecisionLaw, law_of
from targetdp.programs import ProgramSettings, Truths
from targetdp.release import Certificate, certified
from targetdp.table import read_people

BESIDE_ID = ("answer", "decision", "based_on")
"""Columns of a list."""


@dataclass(frozen=True, eq=False)
class PrivateAnswers:
    """The answers of one decision, drawn for each of ``ids``, and the law that they were drawn by."""

    certificate: Certificate
    law: DecisionLaw
    name: str
    ids: pa.StringArray = field(repr=False)
    yes: Truths = field(repr=False)


@dataclass(frozen=True, eq=False)
class DecidedByRow:
    """People of a sample, whom their own row decides about: nothing of it is drawn.

    Args:
        ids: As they are published.
        yes: Whether each has a yes.
        notes: What should be known about them.

    Example:
        >>> DecidedByRow(pa.array(["a", "b"]), np.array([True, False])).yes.tolist()
        [True, False]
    """

    ids: pa.StringArray = field(repr=False)
    yes: Truths = field(repr=False)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class ProgramList:
    """Who is chosen by answers and, where there are too many or too few yes, by lots; sorted by id.

    Args:
        answers: The release, and of it one decision.
        given: What the chosen get, in one word: ``"loan"``.
        ids: Of everybody who is decided about.
        yes: Whether each has a yes: drawn, or by her own row of the sample.
        by_row: Whose yes or no is by her own row.
        chosen: Whether each person is.
        notes: What should be known about people of the sample.
    """

    answers: PrivateAnswers
    given: str
    ids: pa.StringArray = field(repr=False)
    yes: Truths = field(repr=False)
    by_row: Truths = field(repr=False)
    chosen: Truths = field(repr=False)
    notes: tuple[str, ...] = ()

    @property
    def lots(self) -> int:
        """How many were put on the list without a yes, or taken off it in spite of one."""
        return int((self.chosen != self.yes).sum())

    def table(self) -> pa.Table:
        """``answer``, ``decision`` and what it is ``based_on``, beside the id."""
        basis = np.where(self.chosen != self.yes, 2, self.by_row)
        return pa.table(
            [
                self.ids,
                _words("no", "yes", self.yes),
                _words("none", self.given, self.chosen),
                pa.array(["answer", "row of the sample", "lot"]).take(pa.array(basis.astype(np.int8))),
            ],
            names=[self.answers.certificate.id, *BESIDE_ID],
        )

    def record(self) -> dict[str, Any]:
        """Plain data: how many, and what the law tells about them."""
        answers, law = self.answers, self.answers.law
        return {
            "format": "targetdp list 2",
            "release": answers.certificate.release,
            "decision": answers.name,
            "people": len(self.yes),
            "by_row_of_the_sample": int(self.by_row.sum()),
            "yes": int(self.yes.sum()),
            "chosen": int(self.chosen.sum()),
            "lots": self.lots,
            "agreement": {
                "value": float(law.agreement(0.0)[0]),
                "meaning": "how often a drawn answer is the true one"
                + ("" if law.cells is None else ", next to the cut; farther from it, more often"),
            },
            "true_yes": None if law.cells is not None else _true_yes(answers),
            "chosen_without_a_true_yes": None if law.cells is not None else round(self._wrongly(), 1),
        }

    @property
    def words(self) -> tuple[str, ...]:
        """The same, for people."""
        told = self.record()
        people, yes, chosen, lots = (told[name] for name in ("people", "yes", "chosen", "lots"))
        law, true, wrongly = self.answers.law, told["true_yes"], told["chosen_without_a_true_yes"]
        by_lot = "no lots were needed"
        if chosen != yes:
            who = "taken off, of those with a yes" if chosen < yes else "put on it, of those with a no"
            by_lot = f"{lots:,} people were {who}, by lot"
        said = [
            f"{self.given} for {chosen:,} of {people:,} people: {yes:,} have a yes of {self.answers.name!r}, "
            f"and {by_lot}",
            f"a drawn answer is the true one in {float(law.agreement(0.0)[0]):.1%} of all draws"
            + ("" if law.cells is None else " next to the cut, and more often farther from it"),
        ]
        if told["by_row_of_the_sample"]:
            blind = ", and not by their own label: being asked in a survey is no advantage"
            said.append(
                f"{told['by_row_of_the_sample']:,} people of the sample are decided about by their own row"
                + ("" if self.notes else blind)  # a note says that the question may know their labels
            )
        if true is not None:
            said.append(
                f"the true answer is yes for {true['share']:.1%} of people in the release (± "
                f"{2 * true['standard_error']:.1%}, two standard errors); of those on the list by a drawn "
                f"answer it is no for about {wrongly:,.0f}"
            )
        return tuple(said)

    def _wrongly(self) -> float:
        """How many of those chosen by drawn answers have a no as the true one, where all errors are alike."""
        law, drawn, chosen = self.answers.law, self.yes[~self.by_row], self.chosen[~self.by_row]
        wrong = 1 - float(law.agreement(0.0)[0])
        share = min(1.0, max(0.0, law.unbiased_share(float(self.answers.yes.mean()))))
        # Of a yes, and of a no, by Bayes: which share has no as the true answer.
        of_yes = (1 - share) * wrong / ((1 - share) * wrong + share * (1 - wrong))
        of_no = (1 - share) * (1 - wrong) / ((1 - share) * (1 - wrong) + share * wrong)
        return float(of_yes * (chosen & drawn).sum() + of_no * (chosen & ~drawn).sum())


def _words(no: str, yes: str, which: Truths) -> pa.Array:
    return pa.array([no, yes]).take(pa.array(which.astype(np.int8)))


def _true_yes(answers: PrivateAnswers) -> dict[str, float]:
    """The share of people whose true answer is yes, without bias, and its standard error."""
    law, people = answers.law, len(answers.yes)
    right = float(law.agreement(0.0)[0])
    error = (right * (1 - right) / people) ** 0.5 / (2 * right - 1)
    return {"share": law.unbiased_share(float(answers.yes.mean())), "standard_error": error}


def read_decisions(
    path: Path,
    decision: str | None = None,
    certificate: Path | None = None,
    public_key: str | None = None,
    progress: Progress | None = None,
) -> PrivateAnswers:
    """A release of decisions; its certificate must hold for the file.

    Args:
        path: The released decisions.
        decision: Which one of them; it need not be named where there is one only.
        certificate: Their certificate; beside the file unless given.
        public_key: The data holder's, to check the signature with.
        progress: Whom to tell how far reading is.

    Returns:
        Answers by id, and the law that they were drawn by.

    Raises:
        ValueError: The certificate does not hold, the release has no decisions, or not the one that is named.

    Example:
        >>> read_decisions(Path("decisions.parquet")).yes.mean()  # doctest: +SKIP
        0.2931
    """
    proof = certified("decisions", path, certificate, public_key)
    law = law_of(proof.mechanism.law).decision
    if law is None:
        raise ValueError(
            f"release {path} holds no decisions, but {proof.kind}: scores are allocated with the sample that "
            "they were learned from and its labels (SAMPLE and LABELS)"
        )
    if decision is None and len(proof.released) > 1:
        raise ValueError(
            f"release {path} has {len(proof.released)} decisions ({', '.join(proof.released)}): say which "
            "one is meant (--decision)"
        )
    name = proof.released[0] if decision is None else decision
    if name not in proof.released:
        raise ValueError(f"decision = {name!r}: release {path} has {', '.join(proof.released)}")
    released = read_people(
        "decisions",
        path,
        proof.id,
        [name],
        progress=progress or Silent(),
        kind=pa.bool_(),
        csv=proof.output.dialect,
    )
    return PrivateAnswers(proof, law, name, released.ids, released.rows[:, 0] == 1)


def list_people(
    answers: PrivateAnswers,
    settings: ProgramSettings,
    rng: np.random.Generator,
    own: DecidedByRow | None = None,
) -> ProgramList:
    """Whom the program's rule chooses by drawn answers, and people of a sample by their own row.

    A quota is filled exactly: lots are drawn among the yes if there are more than places, and among the no if
    there are fewer. Without a quota everybody is chosen whose answer is yes.

    Args:
        answers: The release of decisions, from `read_decisions`.
        settings: The program, from `targetdp.programs.read_decision_rule`.
        rng: Draws the lots.
        own: People of the sample, from `decide_by_row`, if there are any.

    Returns:
        Who is chosen, and how many lots there were.

    Raises:
        ValueError: The release's id column is named as a column of a list is.

    Guarantees: post-processing of the release, as far as people outside the sample are concerned.

    Example:
        >>> rule = read_decision_rule(Path("program.toml"))  # doctest: +SKIP
        >>> answers = read_decisions(Path("decisions.parquet"))  # doctest: +SKIP
        >>> list_people(answers, rule, np.random.default_rng(0)).lots  # doctest: +SKIP
        12
    """
    if answers.certificate.id in BESIDE_ID:
        raise ValueError(
            f"the release's id column is named {answers.certificate.id!r}, as a column of a list is: ask the "
            "data holder to rename it"
        )
    if own is None:
        chosen = settings.choose(answers.yes, rng)
        nobody = np.zeros(len(chosen), dtype=np.bool_)
        return ProgramList(answers, settings.given, answers.ids, answers.yes, nobody, chosen)
    outside = pc.invert(pc.is_in(answers.ids, value_set=own.ids))
    drawn = np.asarray(outside.to_numpy(zero_copy_only=False))
    ids = pa.concat_arrays([answers.ids.filter(outside), own.ids])
    order = np.asarray(pc.sort_indices(ids).to_numpy())
    yes = np.concatenate([answers.yes[drawn], own.yes])[order]
    by_row = (np.arange(len(ids)) >= int(drawn.sum()))[order]
    chosen = settings.choose(yes, rng)
    return ProgramList(
        answers, settings.given, ids.take(pa.array(order)), yes, by_row, chosen, own.notes
    )  # fmt: skip
