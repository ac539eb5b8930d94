"""`targetdp learn`: from a sample and labels to a request for a score or a decision of everybody else."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from targetdp.cli._console import (
    Bar,
    PublicKey,
    audited,
    emit,
    fetches,
    must_be_free,
    must_be_no_input,
    path_or_address,
    save_text,
    tell,
    warn,
)
from targetdp.cli._targeting._learn_tables import record_of, show_plan
from targetdp.cli._targeting._sample import TranslatedIds, read_sample

FILL_IN = (
    "Say who asks, and why (take away the #):",
    'asked_by = "a name"',
    'why = "a reason"',
)
FROM_PRIVATE = (
    "A request for {what}, written by targetdp learn. The data holder runs targetdp privatize with it.",
    "Its weights were computed from rows of a private release and from labels. About the people of the",
    "release they tell nothing that the release did not (post-processing). About the labels they tell",
    "something: these few numbers. Labels belong to whoever hands this file over. Nothing else about labels",
    "is in it. Whoever is in the release below has no {one}: take out leave_out, and both are added up.",
)
FROM_AGREED = (
    "A request for {what}, written by targetdp learn. The data holder runs targetdp privatize with it.",
    "It was learned from rows of people who agreed to be used as they are, and from their labels. Nothing is",
    "promised to them: whoever has this request, above all a model that comes with it, can guess their",
    "labels. Everybody else has the promise below.",
)
TUNED_ON = ('tuned_on = "public"  # or "synthetic" or "this-data": which data B was chosen on',)

NOTHING_FOUND = (
    "the sample does not show that scores would tell anything of the target: label more people, or ask for a "
    "sample with less noise"
)

_DIGITS = 4
"""Of each weight: fewer digits tell less of the labels, and change nobody's place."""

_ONE = {"scores": "score", "decisions": "decision"}
Wanted = Literal["best", "scores", "decisions"]


@fetches("sample")
def learn(
    sample: Annotated[
        Path,
        typer.Argument(
            help="a private sample (targetdp privatize), or rows of people who agreed", parser=path_or_address
        ),
    ],
    labels: Annotated[Path, typer.Argument(help="your labels (Parquet or CSV): id, target, loans")],
    program: Annotated[Path, typer.Option(help="program file: kind, target and, for aid, quota")],
    request: Annotated[Path, typer.Option("--out", help="request to write (TOML); a model goes beside it")],
    release: Annotated[
        Wanted, typer.Option(help="what to ask for; best: whichever is, for the program")
    ] = "best",
    id: Annotated[  # noqa: A002
        str | None, typer.Option(help="id column of LABELS; default: the program's, or the sample's")
    ] = None,
    ids: TranslatedIds = None,
    certificate: Annotated[
        Path | None, typer.Option(help="the sample's certificate, or record; default: beside SAMPLE")
    ] = None,
    public_key: PublicKey = None,
    B: Annotated[
        float | None, typer.Option("--B", help="B of the release; default: the sample's, or 2")
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="ε of the release; default: the private sample's")
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(help="δ of scores; default: none is asked for, and the desk settles it"),
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
    """Learn whom to choose, say what to expect of rows, a score and a decision, and write the best request.

    From a private sample weights are learned that know its noise. From people who agreed to be used as they
    are (targetdp agree), who have no promise, whichever of a linear, an additive and a boosted score is best.
    """
    import numpy as np

    from targetdp._core import check
    from targetdp.programs import read_decision_rule
    from targetdp.targeting import compare_epsilons, plan_release

    check.number("confidence", confidence, above=0, below=1)
    check.integer("seed", seed, at_least=0)
    if delta is not None:
        check.number("delta", delta, above=0, below=1)
    model = request.with_suffix(".onnx")
    if model == request:
        raise ValueError(
            f"out = {request} is named as a model is: call the request *.toml; a model goes beside it"
        )
    must_be_free("out", request, force=force)
    must_be_free("model", model, force=force)
    must_be_no_input(request, sample, labels, program, ids)
    must_be_no_input(model, sample, labels, program, ids)
    settings = read_decision_rule(program)
    with Bar(quiet=quiet) as bar:
        found = read_sample(
            sample, labels, settings, id_column=id, ids=ids, proof=certificate, public_key=public_key,
            progress=bar,
        )  # fmt: skip
        asked = _asked(found, B, epsilon, delta)
        bar.phase("learning", None)
        plan = plan_release(
            found, asked, np.random.default_rng(seed), release=release, mechanism=mechanism,
            confidence=confidence,
        )  # fmt: skip
        others = []
        if plan.release == "scores":
            others = list(
                compare_epsilons(found.weighed, asked, np.random.default_rng(seed), mechanism=mechanism)
            )
    wanted, comments = _request(found, plan, asked, delta, mechanism, settings)
    handed = [request]
    if plan.release == "decisions" and plan.decisions.file is not None:
        save_text(model, plan.decisions.file)
        handed.append(model)
    save_text(request, wanted.text(*comments))
    notes, warnings = found.notes, _warnings(plan)
    if as_json:
        record = record_of(found, plan, others, settings) | {"request": wanted.sha256}
        emit(record | {"notes": notes, "warnings": warnings})
    else:
        show_plan(found, plan, others, settings)
    if not quiet:
        for note in notes:
            tell(note)
        tell(f"{plan.release}: {plan.why}")
        tell(_next(plan, handed))
    warn(warnings)


def _asked(found: Any, B: float | None, epsilon: float | None, delta: float | None) -> Any:
    """What is asked of everybody else: as of a private sample, but for what is given.

    Where no δ is given the desk settles it; the sample's, or 1 in its people, stands for it here.
    """
    from targetdp.guarantee import Guarantee

    first = found.promise
    if first is None:
        if epsilon is None:
            raise ValueError(
                "epsilon = None: people who agreed have no promise that it could be taken from; give "
                "--epsilon, such as 4, and --B, if it is not to be 2"
            )
        first = Guarantee(2.0, epsilon, 1 / (found.program.people.count + 1))
    return Guarantee(
        first.B if B is None else B,
        first.epsilon if epsilon is None else epsilon,
        first.delta if delta is None else delta,
    )


def _request(
    found: Any, plan: Any, asked: Any, delta: float | None, mechanism: str, settings: Any
) -> tuple[Any, tuple[str, ...]]:
    """The request, and what is said in it."""
    from targetdp.release import make_request

    own, private = found.origin, found.promise is not None
    given: dict[str, Any] = {
        "release": plan.release, "B": asked.B, "epsilon": asked.epsilon, "learned_from": own.release,
        "program": settings.kind,
    }  # fmt: skip
    if private:
        given |= {"leave_out": (own.release,)}
        if own.tuned_on is not None and asked.B == found.promise.B:
            given |= {"tuned_on": own.tuned_on}
    if plan.release == "scores":
        weights = dict(zip(found.features, _short(plan.scores.w), strict=True))
        given |= {"delta": delta, "mechanism": mechanism, "weights": weights}
        what = "scores"
    else:
        given |= {"decisions": [plan.decisions.asked.model_dump(exclude_none=True)]}
        what = "decisions"
    head = FROM_PRIVATE if private else FROM_AGREED
    comments = tuple(line.format(what=what, one=_ONE[what]) for line in head)
    wanted = make_request(**given)
    return wanted, (*comments, *FILL_IN, *(TUNED_ON if wanted.tuned_on is None else ()))


def _next(plan: Any, handed: list[Path]) -> str:
    """What has been written, and what to do with it."""
    if plan.release == "scores":
        what = f"a request for scores, with weights of {len(plan.scores.w)} features"
        then = "with the scores"
    else:
        what = f"a request for decisions by a score that is {plan.decisions.kind}"
        then = "with the decisions"
    files = " and ".join(map(str, handed))
    model = f" (with --model {handed[1].name})" if len(handed) > 1 else ""
    return (
        f"{what} → {files}; read it, say in it who asks and why, and hand it to the data holder, who runs "
        f"targetdp privatize --request{model}; {then}, run targetdp allocate"
    )


def _warnings(plan: Any) -> tuple[str, ...]:
    """What should be known before anyone relies on the figures."""
    found = plan.expectation.difference
    weights = plan.scores.weights if plan.release == "scores" else plan.decisions.weights
    warnings = [NOTHING_FOUND] if weights is not None and not weights.tells else []
    if found is not None and found.is_odd:
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
