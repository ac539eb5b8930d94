"""What the answers of a release should have been, for people whose scores are known."""

import numpy as np
import pyarrow as pa

from targetdp._core import Floats, Integers
from targetdp.mechanisms import DecisionLaw, law_of
from targetdp.release._certificate._certificate import Certificate
from targetdp.release._certificate._contents import questions_of
from targetdp.release._decision._bits import Bits, cuts_of_people, turns_of
from targetdp.release._decision._question import Question


def true_cells(c: Certificate, decision: str, ids: pa.StringArray, scores: Floats) -> Integers:
    """The cells of people whose scores are known, at the cuts that they were held against.

    Args:
        c: The certificate of a release of decisions.
        decision: The name of one of them.
        ids: Of these people, as they are published: they say who was asked when, and so against which cut.
        scores: Theirs, in the units of the request: of columns as they are at B = 2, and below of columns as
            they were scaled and clipped.

    Returns:
        A cell for each, as `targetdp.mechanisms.DecisionLaw` counts them: yes from 0 up, no from −1 down.

    Raises:
        ValueError: The release has no such decision.

    Edges: a score that was computed elsewhere may differ in its last digits. Whoever is that near to the end
    of a cell may be taken to be in the next one.

    Example:
        >>> from targetdp.release import read_certificate
        >>> certificate = read_certificate(Path("out.certificate.json"))  # doctest: +SKIP
        >>> true_cells(certificate, "helped", ids, scores)  # doctest: +SKIP
        array([ 0, -1,  0])
    """
    at, question, law = _question(c, decision)
    batches, moved = turns_of(ids, c.release, c.rows)
    cuts = cuts_of_people((c.cuts[at],), batches)[:, 0]
    steps = question.placed(scores)
    if question.asked.cut is None:
        steps = steps + moved
    return np.where(steps <= cuts, 0, -1) if law.cells is None else law.cells.of_steps(steps, cuts)


def true_answers(c: Certificate, decision: str, scores: Floats) -> Bits:
    """The true answers of people whose scores are known, at the last cut of a release, or its only one.

    Args:
        c: The certificate of a release of decisions.
        decision: The name of one of them.
        scores: As for `true_cells`.

    Returns:
        Whether each is on the yes side of the cut.

    Raises:
        ValueError: The release has no such decision.

    Example:
        >>> from targetdp.release import read_certificate
        >>> certificate = read_certificate(Path("out.certificate.json"))  # doctest: +SKIP
        >>> true_answers(certificate, "helped", scores)  # doctest: +SKIP
        array([ True, False,  True])
    """
    at, question, _ = _question(c, decision)
    return np.asarray(question.placed(scores) <= c.cuts[at][-1])


def _question(c: Certificate, decision: str) -> tuple[int, Question, DecisionLaw]:
    law = law_of(c.mechanism.law).decision
    if law is None or decision not in c.released:
        raise ValueError(f"decision = {decision!r}: the release has {', '.join(c.released)}")
    at = c.released.index(decision)
    return at, questions_of(c, law)[at], law
