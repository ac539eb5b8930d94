"""People of a sample in a program's list: by their own row, and as a test of everybody else's answers."""

from dataclasses import dataclass, field
from functools import singledispatch
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from targetdp._core import Floats
from targetdp.normalization import declared_scales
from targetdp.programs import Folds
from targetdp.release import AskedDecision, Certificate, scores_by_model, true_answers
from targetdp.targeting._agreed._sample import CLASSIC, AgreedSample, scaled_rows
from targetdp.targeting._fit._kinds import fit_scores, score_kinds
from targetdp.targeting._labelled import LabelledSample, SampleOrigin
from targetdp.targeting._learn import decision_ridge
from targetdp.targeting._list._answers import DecidedByRow, PrivateAnswers
from targetdp.targeting._list._known_people import KnownPeople
from targetdp.targeting._sample_and_scores import chances_of_rows

_ANOTHER = (
    "the question is not the one that targetdp learn finds in this sample now, so that its people are judged "
    "by the question as it is, and not by one that was learned without them"
)
_SCALED_OTHERWISE = (
    "columns of the sample and of the decisions are scaled in different ways, so the question is not quite "
    "what was learned, and people of the sample are judged by it as it is: learn again from a sample with "
    "today's scales"
)


@dataclass(frozen=True, eq=False)
class SampleInList:
    """What a sample adds to a list: its people's decisions, and whose answers can be tested.

    Args:
        own: People who are decided about by their own row.
        known: People in the release whose true score is known; None if there are none.

    Example:
        >>> SampleInList(DecidedByRow(pa.array(["a"]), np.array([True])), None).own.yes.tolist()
        [True]
    """

    own: DecidedByRow
    known: KnownPeople | None = field(repr=False)


@singledispatch
def decide_by_row(
    sample: Any,
    answers: PrivateAnswers,  # noqa: ARG001 (those of what is registered below)
    rng: np.random.Generator,  # noqa: ARG001
    model: Path | None = None,  # noqa: ARG001
) -> SampleInList:
    """Decide about people of a sample by their own row, and nobody by her own label.

    People who agreed are judged by the question itself, where it is learned without them; the answers that
    were drawn for them are a test of the release. Of a private sample each row is judged by a model that was
    fitted without her, and as many get a yes as the program has places for them.

    Args:
        sample: From `read_agreed`, or from `read_labelled`.
        answers: The release, from `read_decisions`.
        rng: Draws among people who are equal at the cut.
        model: The model's file, where the question is one and people agreed.

    Returns:
        Their decisions, and their true scores, where these are known.

    Raises:
        TypeError: It is no sample.
        ValueError: The sample and the release do not belong together, or the model is missing.

    Example:
        >>> sample = read_agreed(Path("agreed.parquet"), Path("labels.csv"), rule)  # doctest: +SKIP
        >>> answers = read_decisions(Path("decisions.parquet"))  # doctest: +SKIP
        >>> decide_by_row(sample, answers, np.random.default_rng(0)).own.yes.mean()  # doctest: +SKIP
        0.29
    """
    raise TypeError(f"{type(sample).__name__} is no sample: read one by read_agreed or read_labelled")


@decide_by_row.register
def _of_agreed(
    sample: AgreedSample,
    answers: PrivateAnswers,
    rng: np.random.Generator,  # noqa: ARG001 (a question has no ties)
    model: Path | None = None,
) -> SampleInList:
    asked = _must_fit(answers, sample.origin)
    raw = np.concatenate([sample.raw, sample.unlabelled.rows])
    ids = pa.concat_arrays([sample.ids, sample.unlabelled.ids])
    scores = _scores_of(asked, _columns_of(answers.certificate, asked, sample.features, raw), model)
    blind = scores.copy()
    same = _scaled_alike(answers.certificate, sample.origin)
    found = _without_own_label(sample, asked, answers.certificate.guarantee.B) if same else None
    if found is not None:
        blind[: len(found)] = found
    notes = () if found is not None else (_ANOTHER if same else _SCALED_OTHERWISE,)
    yes = true_answers(answers.certificate, answers.name, blind)
    return SampleInList(DecidedByRow(ids, yes, notes), KnownPeople(ids, scores=scores))


@decide_by_row.register
def _of_private(
    sample: LabelledSample,
    answers: PrivateAnswers,
    rng: np.random.Generator,
    model: Path | None = None,
) -> SampleInList:
    _must_fit(answers, sample.origin)
    if model is not None:
        raise ValueError(f"model = {model}: a private sample is not judged by it; leave it out")
    program = sample.program
    ridge = decision_ridge(sample.rows, sample.noise_covariance, program.people.fit_weights)
    chances = chances_of_rows(
        sample.rows, program.outcomes, sample.learn(ridge), Folds(program.people.count), program.line(),
        program.people.fit_weights, sample.unlabelled.rows,
    )  # fmt: skip
    ids = pa.concat_arrays([sample.ids, sample.unlabelled.ids])
    # Whoever has a drawn answer, too, is decided about by that: it knows more of her than a noisy row.
    alone = pc.invert(pc.is_in(ids, value_set=answers.ids))
    here = np.asarray(alone.to_numpy(zero_copy_only=False))
    yes = program.choose(chances[here], rng)
    return SampleInList(DecidedByRow(ids.filter(alone), yes), None)


def _must_fit(answers: PrivateAnswers, sample: SampleOrigin) -> AskedDecision:
    """The question, once release and sample are found to belong together."""
    proof = answers.certificate
    if proof.pseudonyms != sample.pseudonyms or (proof.pseudonyms and proof.desk.id != sample.desk):
        raise ValueError(
            "decisions and sample name people in different ways, so that nobody is found in both: give a "
            "release and a sample of one desk"
        )
    named = [one for one in (proof.learned_from, *proof.left_out) if one is not None]
    if named and not any(sample.release.startswith(one) for one in named):
        raise ValueError(
            f"the decisions name {named[0]} as what they were learned from or leave out, and the sample is "
            f"{sample.release}: give that one"
        )
    asked = next(one for one in proof.decisions if one.name == answers.name)
    if missing := [name for name in asked.takes if name not in sample.features]:
        raise ValueError(
            f"the decision looks at {', '.join(missing[:5])}, which the sample does not have: give the "
            "sample that it was learned from"
        )
    return asked


def _columns_of(
    proof: Certificate, asked: AskedDecision, features: tuple[str, ...], raw: Floats
) -> dict[str, Floats]:
    """The columns of a question as the release has looked at them: its own scales, and no other columns."""
    rows = raw[:, [features.index(name) for name in asked.takes]]
    if proof.guarantee.B < CLASSIC:
        both = [proof.scales.values[name] for name in asked.takes]
        rows = scaled_rows(rows, declared_scales([one.center for one in both], [one.scale for one in both]))
    return dict(zip(asked.takes, rows.T, strict=True))


def _scaled_alike(proof: Certificate, sample: SampleOrigin) -> bool:
    """Whether a release has the scales of the sample; at B = 2 it has none."""
    values = proof.scales.values.items()
    return all(sample.scales.get(name) == (one.center, one.scale) for name, one in values)


def _scores_of(asked: AskedDecision, columns: dict[str, Floats], model: Path | None) -> Floats:
    """The true score of each row, in the units of the question."""
    if asked.model is None:
        return asked.scores_of(columns)
    if model is None:
        raise ValueError(
            f"the decision is made by a model with SHA-256 {asked.model}: give its file (--model), as it was "
            "handed to the data holder"
        )
    return scores_by_model(model, asked, pa.table(columns))


def _without_own_label(sample: AgreedSample, asked: AskedDecision, B: float) -> Floats | None:
    """Scores of people with a label by fits without them; None if the question is not what is fitted here."""
    for name, kind in score_kinds().items():
        if getattr(asked, kind.request_field) is None:
            continue
        try:
            fits = fit_scores(sample.rows_for(B), sample.program, classic=B == CLASSIC, kinds=[name])
        except ValueError:
            continue
        again = AskedDecision.model_validate(
            asked.model_dump(exclude_none=True, exclude={"weights", "additive", "model", "columns"})
            | fits[0].score.asked(sample.features)
        )
        if again == asked:
            return fits[0].own
    return None
