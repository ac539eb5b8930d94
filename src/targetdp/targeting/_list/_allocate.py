"""Who gets it: everybody's chance, from her private score or her row of the sample, and a program's rule."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from targetdp._core import Floats, Progress, Silent
from targetdp.mechanisms import LinearLaw, law_of
from targetdp.programs import Folds, ScoredProgram, Truths
from targetdp.release import Certificate, certified
from targetdp.table import read_people
from targetdp.targeting._agreed._sample import Sample
from targetdp.targeting._denoise import ScoreNoise
from targetdp.targeting._labelled import SampleOrigin
from targetdp.targeting._learn import LearnedWeights, weights_along
from targetdp.targeting._sample_and_scores import chances_of_rows, chances_of_scores

BESIDE_ID = ("chance", "decision", "based_on")
"""Columns of a table of decisions."""

_SAME = 0.99
"""Cosine from which on two directions are one: weights are handed over with four digits."""


@dataclass(frozen=True, eq=False)
class PrivateScores:
    """One released score for each of ``ids``, and the law that it was made under."""

    certificate: Certificate
    law: LinearLaw
    ids: pa.StringArray = field(repr=False)
    values: Floats = field(repr=False)


@dataclass(frozen=True, eq=False)
class Decisions:
    """Everybody's chance to be poor, or to repay, and who is chosen; sorted by id.

    ``by_score`` says whose chance is from a score; all others are people of the sample.
    """

    program: ScoredProgram = field(repr=False)
    id: str
    ids: pa.StringArray = field(repr=False)
    chances: Floats = field(repr=False)
    chosen: Truths = field(repr=False)
    by_score: Truths = field(repr=False)
    notes: tuple[str, ...]

    def table(self) -> pa.Table:
        """``chance``, ``decision`` (aid or loan, or none) and what it is ``based_on``, beside the id."""
        words = pa.array(["none", self.program.words.given]).take(pa.array(self.chosen.astype(np.int8)))
        basis = pa.array(["row of the sample", "score"]).take(pa.array(self.by_score.astype(np.int8)))
        return pa.table(
            [self.ids, pa.array(np.round(self.chances, 6)), words, basis],
            names=[self.id, *BESIDE_ID],
        )

    def record(self) -> dict[str, Any]:
        """Plain data: how many people, and what their chances add up to."""
        chances, chosen = self.chances, self.chosen
        return {
            "format": "targetdp decisions 1",
            "program": self.program.kind,
            "people": len(chances),
            "by_score": int(self.by_score.sum()),
            "by_row_of_the_sample": int((~self.by_score).sum()),
            "chosen": int(chosen.sum()),
            "chosen_rightly_by_the_chances": round(float(chances[chosen].sum()), 1),
            "missed_by_the_chances": round(float(chances[~chosen].sum()), 1),
        }


def read_scores(
    path: Path,
    certificate: Path | None = None,
    public_key: str | None = None,
    progress: Progress | None = None,
) -> PrivateScores:
    """A release of one score for each person; its certificate must hold for the file.

    Args:
        path: The released scores.
        certificate: Their certificate; beside the file unless given.
        public_key: The data holder's, to check the signature with.
        progress: Whom to tell how far reading is.

    Returns:
        Scores by id, and the law of their noise.

    Raises:
        ValueError: The certificate does not hold, or the release has no scores, or several of each person.

    Example:
        >>> read_scores(Path("scores.parquet")).values.shape  # doctest: +SKIP
        (20788,)
    """
    proof = certified("scores", path, certificate, public_key)
    law = law_of(proof.mechanism.law).linear
    if proof.decisions:
        raise ValueError(
            f"release {path} holds no scores, but decisions ({', '.join(proof.released)}): they need neither "
            "sample nor labels; leave these out"
        )
    if law is None or len(proof.scores) != 1:
        many = f"{len(proof.scores)} scores for each person" if proof.scores else "no scores"
        raise ValueError(
            f"release {path} holds {many}: decide by a release of one score, as targetdp learn asks for it"
        )
    released = read_people(
        "scores", path, proof.id, proof.released, progress=progress or Silent(), csv=proof.output.dialect
    )
    return PrivateScores(proof, law, released.ids, released.rows[:, 0])


def allocate(scores: PrivateScores, sample: Sample, rng: np.random.Generator, *, folds: int = 5) -> Decisions:
    """Chances of all who have a score or are in the sample, and whom the program's rule chooses.

    Aid goes to the program's share of all of them, those with the highest chances to be poor; loans to all
    with a chance to repay above its threshold. Whoever has a score is judged by it, all others by their
    private row and a model that was fitted without them. Nobody's own label counts, so that being asked in
    the survey is no advantage.

    Args:
        scores: The score release, from `read_scores`.
        sample: The sample with its labels, from `read_labelled` or `read_agreed`.
        rng: Draws among people with equal chances at the cut.
        folds: Parts of the cross-validation that predicts people of the sample.

    Returns:
        Everybody's chance, who is chosen, and what each decision is based on.

    Raises:
        ValueError: Scores are of other columns than the sample's, were learned from another sample, or name
            people in another way.

    Guarantees: post-processing of both releases, as far as their rows are concerned.

    Example:
        >>> from targetdp.targeting import read_labelled, read_scores
        >>> scores = read_scores(Path("scores.parquet"))  # doctest: +SKIP
        >>> sample = read_labelled(Path("private.parquet"), Path("labels.csv"), program)  # doctest: +SKIP
        >>> allocate(scores, sample, np.random.default_rng(0)).table()  # doctest: +SKIP
    """
    if scores.certificate.id in BESIDE_ID:
        raise ValueError(
            f"the scores' id column is named {scores.certificate.id!r}, as a column of decisions is: ask the "
            "data holder to rename it"
        )
    notes = _must_fit(scores.certificate, sample.origin)
    sample = sample.weighed
    learned, more = _learned(scores, sample)
    program, line = sample.program, sample.program.line()
    inside = chances_of_rows(
        sample.rows, program.outcomes, learned, Folds(program.people.count, folds), line,
        program.people.fit_weights, sample.unlabelled.rows,
    )  # fmt: skip
    inside_ids = pa.concat_arrays([sample.ids, sample.unlabelled.ids])
    outside = chances_of_scores(scores.values, ScoreNoise.of(scores.law), learned, line)
    # A score knows more of somebody than a noisy row of all columns, and less than a row without noise.
    by_row = _not_in(inside_ids, scores.ids) if sample.promise is not None else _all(inside_ids)
    scored = _not_in(scores.ids, inside_ids.filter(by_row))
    ids = pa.concat_arrays([scores.ids.filter(scored), inside_ids.filter(by_row)])
    chances = np.concatenate([outside[_truths(scored)], inside[_truths(by_row)]])
    by_score = np.arange(len(ids)) < int(_truths(scored).sum())
    order = np.asarray(pc.sort_indices(ids).to_numpy())
    chances, by_score = np.clip(chances[order], 0.0, 1.0), by_score[order]
    return Decisions(
        program, scores.certificate.id, ids.take(pa.array(order)), chances, program.choose(chances, rng),
        by_score, (*notes, *more),
    )  # fmt: skip


def _not_in(ids: pa.StringArray, others: pa.StringArray) -> pa.BooleanArray:
    return pc.invert(pc.is_in(ids, value_set=others))


def _all(ids: pa.StringArray) -> pa.BooleanArray:
    return pa.array(np.ones(len(ids), dtype=np.bool_))


def _truths(which: pa.BooleanArray) -> Truths:
    return np.asarray(which.to_numpy(zero_copy_only=False))


def _must_fit(scores: Certificate, sample: SampleOrigin) -> tuple[str, ...]:
    """Both name people alike, are of the same columns and, if the scores say so, belong together."""
    if scores.pseudonyms != sample.pseudonyms or (scores.pseudonyms and scores.desk.id != sample.desk):
        ours = f"pseudonyms of desk {scores.desk.name}" if scores.pseudonyms else "ids in clear"
        theirs = f"pseudonyms of desk {sample.desk_name}" if sample.pseudonyms else "ids in clear"
        raise ValueError(
            f"scores and sample name people in different ways ({ours} and {theirs}), so that nobody is found "
            "in both: give two releases of one desk"
        )
    if set(scores.features) != set(sample.features):
        odd = sorted(set(scores.features) ^ set(sample.features))
        raise ValueError(
            f"scores and sample are made of different columns ({', '.join(odd[:5])}): give the sample that "
            "the weights were learned from"
        )
    named = [one for one in (scores.learned_from, *scores.left_out) if one is not None]
    if named and not any(sample.release.startswith(one) for one in named):
        raise ValueError(
            f"the scores name release {named[0]} as the one that they were learned from or leave out, and "
            f"the sample is {sample.release}: give that one"
        )
    if {name: (one.center, one.scale) for name, one in scores.scales.values.items()} != sample.scales:
        return (
            "columns of the sample and of the scores are scaled in different ways, so a score is not quite "
            "what was learned: learn again from a sample with today's scales",
        )
    return ()


def _learned(scores: PrivateScores, sample: Sample) -> tuple[LearnedWeights, tuple[str, ...]]:
    """What the sample tells about scores of the released direction."""
    places = [scores.certificate.features.index(name) for name in sample.features]
    w = np.array(scores.law.weights[0])[places]
    w = w / np.linalg.norm(w)
    again = sample.learn(scores.law.deviation_per_column**2)
    agreement = float(again.w @ w)
    if agreement >= _SAME:
        return again, ()
    given = weights_along(again, w, sample.program, sample.rows, sample.noise_covariance)
    if given.covariance <= 0:
        raise ValueError(
            "in the sample the target does not rise with these scores: were they made with other weights, or "
            "for other labels? Learn again, and ask for scores with those weights"
        )
    return given, (
        f"the scores are not along the weights that targetdp learn would find now (cosine {agreement:.2f}): "
        "another ε, other labels, or weights of your own; they are read along the weights they have",
    )
