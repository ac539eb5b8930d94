"""`targetdp learn` and `targetdp allocate`: from a private sample to scores, from a release to a list."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from targetdp._core import up
from targetdp.cli._console import (
    Bar,
    PublicKey,
    audited,
    cells,
    emit,
    must_be_a_table,
    must_be_free,
    must_be_no_input,
    out,
    save_table,
    save_text,
    tell,
    warn,
)

HEADER = (
    "A request for scores, written by targetdp learn. The data holder runs targetdp privatize with it.",
    "Its weights were computed from rows of a private release and from labels. About the people of the",
    "release they tell nothing that the release did not (post-processing). About the labels they tell",
    "something: these few numbers. Labels belong to whoever hands this file over. Nothing else about labels",
    "is in it. Whoever is in the release below has no score: take out leave_out, and both are added up.",
    "Say who asks, and why (take away the #):",
    'asked_by = "a name"',
    'why = "a reason"',
)
TUNED_ON = ('tuned_on = "public"  # or "synthetic" or "this-data": which data B was chosen on',)

NOTHING_FOUND = (
    "the sample does not show that scores would tell anything of the target: label more people, or ask for a "
    "sample with less noise"
)

_DIGITS = 4
"""Of each weight: fewer digits tell less of the labels, and change nobody's place."""

_HEADINGS = {
    "accuracy": "accuracy", "recall": "poor reached", "exclusion_errors": "poor left out",
    "wrong_approvals": "wrong approvals", "wrong_refusals": "wrong refusals", "profit": "profit",
}  # fmt: skip
_SHARES = {"accuracy", "recall"}

TranslatedIds = Annotated[
    Path | None,
    typer.Option(
        "--ids", help="the data holder's list of ids and pseudonyms (targetdp ids), if there are any"
    ),
]


def learn(
    sample: Annotated[Path, typer.Argument(help="the private sample, as targetdp privatize released it")],
    labels: Annotated[Path, typer.Argument(help="your labels (Parquet or CSV): id, target, loans")],
    program: Annotated[Path, typer.Option(help="program file: kind, target and, for aid, quota")],
    request: Annotated[Path, typer.Option("--out", help="request for scores to write (TOML)")],
    id: Annotated[  # noqa: A002
        str | None, typer.Option(help="id column of LABELS; default: the program's, or the sample's")
    ] = None,
    ids: TranslatedIds = None,
    certificate: Annotated[
        Path | None, typer.Option(help="the sample's certificate; default: SAMPLE.certificate.json")
    ] = None,
    public_key: PublicKey = None,
    B: Annotated[float | None, typer.Option("--B", help="B of the scores; default: the sample's")] = None,
    epsilon: Annotated[float | None, typer.Option(help="ε of the scores; default: the sample's")] = None,
    delta: Annotated[
        float | None,
        typer.Option(help="δ of the scores; default: none is asked for, and the desk settles it"),
    ] = None,
    mechanism: Annotated[
        str, typer.Option(help="noise on a score that is asked for", autocompletion=audited)
    ] = "least-noise",
    confidence: Annotated[float, typer.Option(help="of the intervals")] = 0.95,
    seed: Annotated[int, typer.Option(help="of the samples that intervals are made from")] = 0,
    force: Annotated[bool, typer.Option(help="replace a request that exists")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON instead of tables")] = False,
    quiet: Annotated[bool, typer.Option(help="no progress and no words")] = False,
) -> None:
    """Learn weights that know the noise of sample and scores, say what to expect, and write a request."""
    import numpy as np

    from targetdp._core import check
    from targetdp.programs import read_decision_rule
    from targetdp.release import make_request
    from targetdp.targeting import compare_epsilons, plan_scores, read_labelled

    check.number("confidence", confidence, above=0, below=1)
    check.integer("seed", seed, at_least=0)
    if delta is not None:
        check.number("delta", delta, above=0, below=1)
    must_be_free("out", request, force=force)
    must_be_no_input(request, sample, labels, program, ids)
    settings = read_decision_rule(program)
    with Bar(quiet=quiet) as bar:
        found = read_labelled(
            sample, labels, settings, id_column=id, ids=ids, certificate=certificate, public_key=public_key,
            progress=bar,
        )  # fmt: skip
        proof = found.certificate
        asked = _asked(proof, B, epsilon, delta)
        bar.phase("learning", None)
        plan = plan_scores(
            found, asked, np.random.default_rng(seed), mechanism=mechanism, confidence=confidence
        )
        others = compare_epsilons(found, asked, np.random.default_rng(seed), mechanism=mechanism)
    scores = make_request(
        release="scores", B=asked.B, epsilon=asked.epsilon, delta=delta, mechanism=mechanism,
        weights=dict(zip(proof.features, _short(plan.w), strict=True)), learned_from=proof.release,
        leave_out=(proof.release,), tuned_on=proof.tuned_on if asked.B == proof.guarantee.B else None,
        program=settings.kind,
    )  # fmt: skip
    save_text(request, scores.text(*HEADER, *(TUNED_ON if scores.tuned_on is None else ())))
    notes, warnings = found.notes, _warnings(plan)
    if as_json:
        record = _record(found, plan, others, settings) | {"request": scores.sha256}
        emit(record | {"notes": notes, "warnings": warnings})
    else:
        _show(found, plan, others, settings)
    if not quiet:
        for note in notes:
            tell(note)
        tell(
            f"a request for scores, with weights of {len(plan.w)} features → {request}; read it, say in it "
            "who asks and why, and hand it to the data holder, who runs targetdp privatize --request; with "
            "the scores, run targetdp allocate"
        )
    warn(warnings)


def _asked(proof: Any, B: float | None, epsilon: float | None, delta: float | None) -> Any:
    """What is asked of the scores: as of the sample, but for what is given.

    Where no δ is given the desk settles it; the sample's stands for it here.
    """
    from targetdp.guarantee import Guarantee

    first = proof.guarantee
    return Guarantee(
        first.B if B is None else B,
        first.epsilon if epsilon is None else epsilon,
        first.delta if delta is None else delta,
    )


def _warnings(plan: Any) -> tuple[str, ...]:
    """What should be known before anyone relies on the figures."""
    found = plan.expectation.difference
    warnings = [] if plan.weights.tells else [NOTHING_FOUND]
    if found.is_odd:
        warnings.append(
            f"on the sample's own scores {found.counted:.1%} of people are decided about rightly; two normal "
            f"distributions, which figures for other noise rest on, say {found.smooth:.1%}. The target does "
            "not follow the score along a line (the poor may be in the middle of a column, or a group of "
            "their own), so rely on the interval, not on the figure. A column that says who is in such a "
            "group, or that is far from usual, may help"
        )
    return tuple(warnings)


def _short(w: Any) -> list[float]:
    """Weights with few digits; the largest is always there, so that they are never all 0."""
    return [float(f"{value:.{_DIGITS}g}") for value in w.tolist()]


def _record(found: Any, plan: Any, others: Any, settings: Any) -> dict[str, Any]:
    from dataclasses import asdict

    from targetdp.theorem1 import accuracy_ceiling

    def record(one: Any) -> dict[str, Any]:
        return {
            "guarantee": asdict(one.guarantee), "mechanism": one.mechanism,
            "noise_sd": one.expectation.deviation,
        }  # fmt: skip

    return {
        "format": "targetdp learned 1",
        "release": found.certificate.release,
        "program": settings.kind,
        "people": found.program.people.count,
        "population": found.program.people.population,
        "unit": settings.unit,
        "target_scale": plan.weights.scale.name,
        "chance": found.program.chance,
        "confidence": plan.expectation.confidence,
        "scores": record(plan),
        "ceiling": {
            "largest_agreement": accuracy_ceiling(plan.guarantee),
            "meaning": "for any algorithm with this ε and δ, whatever B is, there are people next to the cut "
            "whose decisions agree with those made without privacy no more often than this; it is not an "
            "accuracy",
        },
        "expected": {
            name: {"value": one.value, "interval": [one.low, one.high]}
            for name, one in plan.expectation.figures.items()
        },
        "other_epsilons": [
            record(one) | {"expected": {name: e.value for name, e in one.expectation.figures.items()}}
            for one in others
        ],
        "checked_on_the_sample": asdict(plan.expectation.difference),
    }


def _show(found: Any, plan: Any, others: Any, settings: Any) -> None:
    people = f"{found.program.people.population:,.0f} people"
    words = found.program.words
    counts = words.counts if "profit" in plan.expectation.figures else "Counts"
    scale = "" if plan.weights.scale.name == "as given" else f", on a {plan.weights.scale.name} scale"
    expected = Table(
        title=Text(
            f"What to expect of scores under {plan.guarantee}, learned from {found.program.people.count:,} "
            f"people{scale}"
        ),
        title_justify="left",
        min_width=78,
        caption=f"{counts} are of {people}. {words.blind} has an accuracy of "
        f"{found.program.chance:.3f}. Figures hold for people like those of the sample.\n"
        f"{_ceiling(plan.guarantee)}",
        caption_justify="left",
    )
    for heading in ("figure", "expected", f"{plan.expectation.confidence:.0%} interval"):
        expected.add_column(heading, justify="left" if heading == "figure" else "right")
    for name, one in plan.expectation.figures.items():
        low, high = _number(name, one.low), _number(name, one.high)
        expected.add_row(*cells(_heading(name, settings), _number(name, one.value), f"{low} to {high}"))
    names = [name for name in plan.expectation.figures if name != "recall"]
    more = Table(
        title=f"What more or less ε would buy for the scores (B = {plan.guarantee.B:g})",
        title_justify="left",
        min_width=78,
        caption="The sample stays as it was; its noise is in all of these.",
        caption_justify="left",
    )
    for heading in ("ε", "noise on a score", *(_heading(name, settings) for name in names)):
        more.add_column(heading, justify="right")
    for one in others:
        figures = [_number(name, one.expectation[name].value) for name in names]
        more.add_row(*cells(up(one.guarantee.epsilon), f"{one.expectation.deviation:.4f}", *figures))
    for table in (expected, more):
        out().print(table, highlight=False)


def _ceiling(guarantee: Any) -> str:
    """What no algorithm with this guarantee can do."""
    from targetdp.theorem1 import accuracy_ceiling

    most = up(accuracy_ceiling(guarantee), 4)
    return (
        "For any algorithm with this ε and δ, whatever B is, there are people next to the cut whose "
        f"decisions agree with those made without privacy no more often than γ = {most}. "
        "γ is not this accuracy, which compares with the truth, and for people like yours."
    )


def _heading(name: str, settings: Any) -> str:
    return f"{_HEADINGS[name]} ({settings.unit})" if name == "profit" else _HEADINGS[name]


def _number(name: str, value: float) -> str:
    return f"{value:.3f}" if name in _SHARES else f"{value:,.0f}"


# `targetdp allocate`: who gets aid, or a loan, from released scores or decisions.


def allocate(
    release: Annotated[Path, typer.Argument(help="private decisions; or scores, as targetdp learn asks")],
    sample: Annotated[
        Path | None, typer.Argument(help="for scores: the private sample that weights were learned from")
    ] = None,
    labels: Annotated[
        Path | None, typer.Argument(help="for scores: your labels, as targetdp learn took them")
    ] = None,
    *,
    program: Annotated[Path, typer.Option(help="program file: kind, target and, for aid, quota")],
    output: Annotated[
        Path, typer.Option("--out", help="list to write, *.csv or *.parquet: id, chance or answer, decision")
    ],
    decision: Annotated[
        str | None, typer.Option(help="which decision of the release, if there are several")
    ] = None,
    known: Annotated[
        Path | None,
        typer.Option(help="people whose truth is known, to test decisions on: id, and score or answer"),
    ] = None,
    id: Annotated[  # noqa: A002
        str | None,
        typer.Option(help="id column of LABELS or of --known; default: the program's, or the release's"),
    ] = None,
    ids: TranslatedIds = None,
    certificate: Annotated[
        Path | None, typer.Option(help="that of RELEASE; default: RELEASE.certificate.json")
    ] = None,
    sample_certificate: Annotated[
        Path | None, typer.Option(help="the sample's certificate; default: SAMPLE.certificate.json")
    ] = None,
    public_key: PublicKey = None,
    seed: Annotated[int, typer.Option(help="of the lots among people who are equal at the cut")] = 0,
    force: Annotated[bool, typer.Option(help="replace a list that exists")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
    quiet: Annotated[bool, typer.Option(help="no progress and no words")] = False,
) -> None:
    """Decide about everybody: by drawn decisions; or by scores, and people of the sample by their row."""
    import numpy as np

    from targetdp._core import check
    from targetdp.programs import read_decision_rule

    check.integer("seed", seed, at_least=0)
    must_be_free("out", output, force=force)
    must_be_a_table(output)
    must_be_no_input(output, release, sample, labels, program, ids, known)
    if (sample is None) != (labels is None) or (sample is None and sample_certificate is not None):
        raise ValueError("scores need SAMPLE and LABELS, and decisions neither: give both, or none of them")
    if sample is not None and (decision is not None or known is not None):
        raise ValueError("--decision and --known are for a release of decisions: leave SAMPLE and LABELS out")
    settings, rng = read_decision_rule(program), np.random.default_rng(seed)
    with Bar(quiet=quiet) as bar:
        how = {"certificate": certificate, "public_key": public_key, "progress": bar}
        if sample is None or labels is None:
            made = _by_answers(release, settings, rng, decision, known, {"id_column": id, "ids": ids}, how)
        else:
            found = {"id_column": id, "ids": ids, "certificate": sample_certificate}
            made = _by_scores(release, sample, labels, settings, rng, found, how)
    save_table(made.table, output, force=force)
    if as_json:
        emit(made.record | {"seed": seed, "notes": [*made.notes, *made.warnings]})
    if not quiet:
        for line in (*made.notes, *made.words, f"lots were drawn with seed {seed}; the list → {output}"):
            tell(line)
        if made.pseudonyms:
            tell(
                "people have pseudonyms: the data holder translates the list of those who get "
                f"{settings.given} back (targetdp ids --back)"
            )
    warn(made.warnings)


@dataclass(frozen=True)
class _Allocated:
    """A list, and what is said of it."""

    table: Any
    record: dict[str, Any]
    words: tuple[str, ...]
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    pseudonyms: bool


def _by_scores(
    path: Path, sample: Path, labels: Path, settings: Any, rng: Any, found: Any, how: Any
) -> _Allocated:
    from targetdp.targeting import allocate as allocate_by
    from targetdp.targeting import read_labelled, read_scores

    scores = read_scores(path, **how)
    labelled = read_labelled(sample, labels, settings, **how | found)
    how["progress"].phase("deciding", None)
    decisions = allocate_by(scores, labelled, rng)
    record, words = decisions.record(), decisions.program.words
    right, missed = record["chosen_rightly_by_the_chances"], record["missed_by_the_chances"]
    said = (
        f"{words.article} for {record['chosen']:,} of {record['people']:,} people ({record['by_score']:,} "
        f"decided by their score, {record['by_row_of_the_sample']:,} by their row of the sample)",
        f"as far as the chances tell, {words.outcome.format(right=right, missed=missed)}",
    )
    return _Allocated(
        decisions.table(), record, said, labelled.notes, decisions.notes, scores.certificate.pseudonyms
    )


def _by_answers(
    path: Path, settings: Any, rng: Any, decision: str | None, known: Path | None, found: Any, how: Any
) -> _Allocated:
    from targetdp.targeting import known_people_check, list_people, read_decisions, read_known

    answers = read_decisions(path, decision, **how)
    test, warnings = None, tuple[str, ...]()
    if known is not None:
        test = known_people_check(answers, read_known(known, answers, progress=how["progress"], **found))
        warnings = test.warnings()
    elif found["ids"] is not None:
        raise ValueError("--ids translates the ids of --known, or of LABELS: leave it out")
    made = list_people(answers, settings, rng)
    record = made.record() | {"program": settings.kind, "known": None if test is None else test.record()}
    said = (*made.words, *(() if test is None else (test.words, test.meaning)))
    return _Allocated(made.table(), record, said, (), warnings, answers.certificate.pseudonyms)
