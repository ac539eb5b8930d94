"""From a release of decisions to the list of a program, and a test of it on people whose truth is known."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from targetdp._core import Floats, Progress, Silent
from targetdp.mechanisms import DecisionLaw, law_of
from targetdp.programs import ProgramSettings, Truths
from targetdp.release import Certificate, certified, true_cells
from targetdp.table import check_columns, open_source, read_people
from targetdp.targeting._labelled import as_pseudonyms

BESIDE_ID = ("answer", "decision", "based_on")
"""Columns of a list."""


_ODD, _IMPOSSIBLE = 1e-3, 1e-9
"""p-values of the test on known people: below the first it warns, below the second no list is made."""


@dataclass(frozen=True, eq=False)
class PrivateAnswers:
    """The answers of one decision, drawn for each of ``ids``, and the law that they were drawn by."""

    certificate: Certificate
    law: DecisionLaw
    name: str
    ids: pa.StringArray = field(repr=False)
    yes: Truths = field(repr=False)


@dataclass(frozen=True, eq=False)
class ProgramList:
    """Who is chosen by drawn answers and, where there are too many or too few yes, by lots; sorted by id.

    Args:
        answers: The release, and of it one decision.
        given: What the chosen get, in one word: ``"loan"``.
        chosen: Whether each person is.
    """

    answers: PrivateAnswers
    given: str
    chosen: Truths = field(repr=False)

    @property
    def lots(self) -> int:
        """How many were put on the list without a yes, or taken off it in spite of one."""
        return int((self.chosen != self.answers.yes).sum())

    def table(self) -> pa.Table:
        """``answer`` (as it was drawn), ``decision`` and what it is ``based_on``, beside the id."""
        by_lot = self.chosen != self.answers.yes
        return pa.table(
            [
                self.answers.ids,
                _words("no", "yes", self.answers.yes),
                _words("none", self.given, self.chosen),
                _words("answer", "lot", by_lot),
            ],
            names=[self.answers.certificate.id, *BESIDE_ID],
        )

    def record(self) -> dict[str, Any]:
        """Plain data: how many, and what the law tells about them."""
        answers, law = self.answers, self.answers.law
        return {
            "format": "targetdp list 1",
            "release": answers.certificate.release,
            "decision": answers.name,
            "people": len(answers.yes),
            "yes": int(answers.yes.sum()),
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
        if true is not None:
            said.append(
                f"the true answer is yes for {true['share']:.1%} of people (± "
                f"{2 * true['standard_error']:.1%}, two standard errors); of those on the list it is no for "
                f"about {wrongly:,.0f}"
            )
        return tuple(said)

    def _wrongly(self) -> float:
        """How many of the chosen are to be expected whose true answer is no, where all errors are alike."""
        law, drawn = self.answers.law, self.answers.yes
        wrong = 1 - float(law.agreement(0.0)[0])
        share = min(1.0, max(0.0, law.unbiased_share(float(drawn.mean()))))
        # Of a yes, and of a no, by Bayes: which share has no as the true answer.
        of_yes = (1 - share) * wrong / ((1 - share) * wrong + share * (1 - wrong))
        of_no = (1 - share) * (1 - wrong) / ((1 - share) * (1 - wrong) + share * wrong)
        return float(of_yes * (self.chosen & drawn).sum() + of_no * (self.chosen & ~drawn).sum())


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
        "decisions", path, proof.id, [name], progress=progress or Silent(), kind=pa.bool_()
    )
    return PrivateAnswers(proof, law, name, released.ids, released.rows[:, 0] == 1)


def list_people(answers: PrivateAnswers, settings: ProgramSettings, rng: np.random.Generator) -> ProgramList:
    """Whom the program's rule chooses by drawn answers.

    A quota is filled exactly: lots are drawn among the yes if there are more than places, and among the no if
    there are fewer. Without a quota everybody is chosen whose answer is yes.

    Args:
        answers: The release of decisions, from `read_decisions`.
        settings: The program, from `targetdp.programs.read_decision_rule`.
        rng: Draws the lots.

    Returns:
        Who is chosen, and how many lots there were.

    Raises:
        ValueError: The release's id column is named as a column of a list is.

    Guarantees: post-processing of the release.

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
    return ProgramList(answers, settings.given, settings.choose(answers.yes, rng))


# The test on people whose true answer is known.


@dataclass(frozen=True, eq=False)
class KnownPeople:
    """People whose truth is known, by their ids in a release: their scores, or their true answers.

    Args:
        ids: Theirs, as they are published.
        scores: In the units of the request; None where answers are known.
        answers: Whether the true answer is yes; None where scores are known.
    """

    ids: pa.StringArray = field(repr=False)
    scores: Floats | None = field(default=None, repr=False)
    answers: Truths | None = field(default=None, repr=False)


@dataclass(frozen=True)
class KnownPeopleCheck:
    """What came of the test: of so many people, how many drawn answers are wrong, and how many were expected.

    ``p_value`` is at most α with a probability of at most α, if answers were drawn as the certificate says.
    ``elsewhere`` people are known and not in the release.

    Example:
        >>> KnownPeopleCheck(people=400, wrong=9, expected=7.2, p_value=0.6, elsewhere=0).words
        'of 400 people whose truth is known, 9 have a wrong answer; 7.2 were to be expected (p = 0.6)'
    """

    people: int
    wrong: int
    expected: float
    p_value: float
    elsewhere: int

    @property
    def words(self) -> str:
        """What was found, in a sentence."""
        others = f" ({self.elsewhere:,} more are not in the release)" if self.elsewhere else ""
        return (
            f"of {self.people:,} people whose truth is known{others}, {self.wrong:,} have a wrong answer; "
            f"{self.expected:,.1f} were to be expected (p = {self.p_value:.2g})"
        )

    def warnings(self) -> tuple[str, ...]:
        """What should be known before anyone relies on the release.

        Raises:
            ValueError: Answers cannot be such by chance.
        """
        look = "look whether scores are in the units of the request, and ids those of the release; then ask "
        if self.p_value < _IMPOSSIBLE:
            raise ValueError(
                f"{self.words}: by the law of this release that does not happen, so {look}the data holder. "
                "No list was made"
            )
        if self.p_value < _ODD:
            return (f"{self.words}: that is hardly chance. Before you rely on this list, {look}the holder",)
        return ()

    @property
    def meaning(self) -> str:
        """What it can find, and what not."""
        return (
            "this test finds faults, not fraud: whoever knows whose truth you know can draw these people's "
            "answers well, and nobody else's"
        )

    def record(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def known_people_check(answers: PrivateAnswers, known: KnownPeople) -> KnownPeopleCheck:
    """Hold drawn answers against the truth, where it is known.

    Each person's turn, and with it her cut, follows from the certificate and the ids of the release. Her
    score then tells her true answer and, below B = 2, how far from the cut she is: with which chance her
    answer is wrong. Too many wrong answers are as surprising as too few.

    Args:
        answers: The release, from `read_decisions`.
        known: Some of its people, from `read_known`.

    Returns:
        How many answers are wrong, how many were to be expected, and how surprising that is.

    Raises:
        ValueError: None of these people is in the release; or only their answers are known, and the cut was
            searched for, or errors depend on the distance from it.

    Guarantees: if answers were drawn as certified, from the same scores and whoever is known, the p-value is
    below α with a probability of at most α. Does not guarantee: that answers of other people were drawn so.
    It finds faults, not fraud: whoever knows whom you know can draw these people's answers well.

    Example:
        >>> known = read_known(Path("agreed.csv"), answers)  # doctest: +SKIP
        >>> known_people_check(answers, known).p_value > 0.001  # doctest: +SKIP
        True
    """
    law, proof = answers.law, answers.certificate
    where = pc.index_in(known.ids, value_set=answers.ids)
    here = np.asarray(where.is_valid().to_numpy(zero_copy_only=False))
    places = np.asarray(where.drop_null().to_numpy(zero_copy_only=False), dtype=np.int64)
    if not len(places):
        raise ValueError(
            f"none of {len(here):,} known people is in the release: give ids as they are published there, "
            f"such as {answers.ids[0].as_py()!r}"
        )
    if known.scores is not None:
        cells = true_cells(proof, answers.name, answers.ids.take(places), known.scores[here])
    else:
        cells = _cells_of_answers(answers, known, here)
    wrong = (cells >= 0) != answers.yes[places]
    return KnownPeopleCheck(
        people=len(places),
        wrong=int(wrong.sum()),
        expected=float(law.chance_of_error(cells).sum()),
        p_value=law.p_value(cells, answers.yes[places]),
        elsewhere=int((~here).sum()),
    )


def _cells_of_answers(answers: PrivateAnswers, known: KnownPeople, here: Truths) -> NDArray[np.int64]:
    asked = next(one for one in answers.certificate.decisions if one.name == answers.name)
    if asked.cut is None or answers.law.cells is not None or known.answers is None:
        why = "the cut was searched for"
        if asked.cut is not None:
            why = "how often an answer is wrong depends on the distance from the cut"
        raise ValueError(
            f"answer tells too little of known people: {why}. Give their score, in the units of the request"
        )
    return np.where(known.answers[here], 0, -1)


def read_known(
    path: Path,
    answers: PrivateAnswers,
    *,
    id_column: str | None = None,
    ids: Path | None = None,
    progress: Progress | None = None,
) -> KnownPeople:
    """Read a table of people whose score, or true answer, is known.

    Args:
        path: The table (Parquet or CSV): the id, and ``score`` (a number in the units of the request) or
            ``answer`` (true or false).
        answers: The release that they are in.
        id_column: Where the ids are; by default in the column that is the release's.
        ids: List of ids and pseudonyms, as `targetdp ids` writes it, where the table has ids that are not
            those of the release.
        progress: Whom to tell how far reading is.

    Returns:
        Ids as in the release, with scores or answers.

    Raises:
        ValueError: A column is not there, a value is missing, or an id is there twice.

    Example:
        >>> read_known(Path("agreed.csv"), answers).scores  # doctest: +SKIP
        array([0.31, 0.77])
    """
    name = id_column or answers.certificate.id
    columns = open_source(path).columns
    check_columns(columns, f"known {path}", id=[name])
    found = [column for column in ("score", "answer") if column in columns]
    if len(found) != 1:
        raise ValueError(
            f"known {path} has {' and '.join(found) or 'neither score nor answer'}: give one column, score "
            "(in the units of the request) or, where the request names the cut, answer (true or false)"
        )
    kind = pa.float64() if found == ["score"] else pa.bool_()
    people = read_people("known", path, name, found, progress=progress or Silent(), kind=kind)
    values = people.rows[:, 0]
    own = people.ids if ids is None else as_pseudonyms(people.ids, ids)
    if found == ["score"]:
        return KnownPeople(own, scores=values)
    if not np.isin(values, (0, 1)).all():
        raise ValueError(f"known {path} has other answers than true and false: give the true answer of each")
    return KnownPeople(own, answers=values == 1)
