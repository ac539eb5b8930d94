"""A test of drawn answers on people whose truth is known: it finds faults, not fraud."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from targetdp._core import Floats, Progress, Silent
from targetdp.programs import Truths
from targetdp.release import true_cells
from targetdp.table import check_columns, open_source, read_people
from targetdp.targeting._labelled import as_pseudonyms
from targetdp.targeting._list._answers import PrivateAnswers

_ODD, _IMPOSSIBLE = 1e-3, 1e-9
"""p-values of the test on known people: below the first it warns, below the second no list is made."""


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
        look = (
            "look whether scores are in the units of the request, ids those of the release, and rows still "
            "what they were when you got them; then ask "
        )
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
    below α with a probability of at most α at B = 2; nearly so below, where cuts, and with them the chances
    of errors, follow from earlier answers. Does not guarantee: that answers of other people were drawn so.
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
