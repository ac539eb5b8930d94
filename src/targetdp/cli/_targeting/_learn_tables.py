"""What `targetdp learn` shows people, and what it hands to programs."""

from typing import Any

from rich.table import Table
from rich.text import Text

from targetdp._core import up
from targetdp.cli._console import cells, out

_HEADINGS = {
    "accuracy": "accuracy", "recall": "poor reached", "exclusion_errors": "poor left out",
    "wrong_approvals": "wrong approvals", "wrong_refusals": "wrong refusals", "profit": "profit",
}  # fmt: skip
_SHARES = {"accuracy", "recall"}


def record_of(found: Any, plan: Any, others: Any, settings: Any) -> dict[str, Any]:
    from dataclasses import asdict

    from targetdp.theorem1 import accuracy_ceiling

    def score(one: Any) -> dict[str, Any]:
        return {
            "guarantee": asdict(one.guarantee), "mechanism": one.mechanism, "noise_sd": one.deviation,
        }  # fmt: skip

    def values(expectation: Any) -> dict[str, float]:
        return {name: one.value for name, one in expectation.figures.items()}

    decisions, difference = plan.decisions, plan.expectation.difference
    guarantee = plan.scores.guarantee if plan.release == "scores" else decisions.guarantee
    return {
        "format": "targetdp learned 2",
        "release": plan.release,
        "why": plan.why,
        "learned_from": found.origin.release,
        "sample": "private" if found.promise is not None else "agreed, without a promise",
        "program": settings.kind,
        "people": found.program.people.count,
        "population": found.program.people.population,
        "unit": settings.unit,
        "target_scale": plan.scores.weights.scale.name,
        "chance": found.program.chance,
        "confidence": plan.expectation.confidence,
        "scores": score(plan.scores),
        "decisions": {
            "guarantee": asdict(decisions.guarantee), "kind": decisions.kind, "tried": decisions.tried,
            "left_out": decisions.left_out,
            "agreement_next_to_the_cut": float(decisions.law.agreement(0.0)[0]),
        },
        "ceiling": {
            "largest_agreement": accuracy_ceiling(guarantee),
            "meaning": "for any algorithm with this ε and δ, whatever B is, there are people next to the cut "
            "whose decisions agree with those made without privacy no more often than this; it is not an "
            "accuracy",
        },
        "expected": {
            name: {"value": one.value, "interval": [one.low, one.high]}
            for name, one in plan.expectation.figures.items()
        },
        "kinds": {
            name: {
                "expected": dict(one.figures), "best_guess": one.best_guess,
                "best_guess_at_2": one.best_guess_at_2,
            }
            for name, one in plan.kinds.items()
        },
        "other_epsilons": [score(one) | {"expected": values(one.expectation)} for one in others]
        or [{"epsilon": epsilon, "expected": dict(one)} for epsilon, one in decisions.others.items()],
        "checked_on_the_sample": None if difference is None else asdict(difference),
    }  # fmt: skip


def show_plan(found: Any, plan: Any, others: Any, settings: Any) -> None:
    names = [name for name in plan.expectation.figures if name != "recall"]
    tables = [_expected(found, plan, settings), _kinds(plan, names, settings)]
    if plan.release == "decisions" and len(plan.decisions.tried) > 1:
        tables.append(_tried(plan, names, settings))
    tables.append(_other_epsilons(plan, others, names, settings))
    for table in tables:
        out().print(table, highlight=False)


def _expected(found: Any, plan: Any, settings: Any) -> Table:
    words = found.program.words
    people = f"{found.program.people.population:,.0f} people"
    counts = words.counts if "profit" in plan.expectation.figures else "Counts"
    chosen = plan.scores if plan.release == "scores" else plan.decisions
    name = plan.scores.weights.scale.name
    scale = "" if name == "as given" else f", on a {name} scale"
    who = "people" if found.promise is not None else "people who agreed and have no promise"
    table = Table(
        title=Text(
            f"What to expect of {plan.release} under {chosen.guarantee}, learned from "
            f"{found.program.people.count:,} {who}{scale}"
        ),
        title_justify="left",
        min_width=78,
        caption=f"{counts} are of {people}. {words.blind} has an accuracy of "
        f"{found.program.chance:.3f}. Figures hold for people like those of the sample.\n"
        f"{_ceiling(chosen.guarantee)}",
        caption_justify="left",
    )
    for heading in ("figure", "expected", f"{plan.expectation.confidence:.0%} interval"):
        table.add_column(heading, justify="left" if heading == "figure" else "right")
    for name, one in plan.expectation.figures.items():
        low, high = _number(name, one.low), _number(name, one.high)
        table.add_row(*cells(_heading(name, settings), _number(name, one.value), f"{low} to {high}"))
    return table


def _kinds(plan: Any, names: list[str], settings: Any) -> Table:
    """Rows, scores and decisions side by side, with what each tells."""
    promise = plan.decisions.guarantee
    table = Table(
        title=f"The same promise, B = {promise.B:g} and ε = {up(promise.epsilon)}, kept in other ways",
        title_justify="left",
        min_width=78,
        caption="Best guess: how often any attacker can be right about which of two rows, B or 2 apart, "
        "somebody has; a coin is right in 50%. Of decisions: across the cut; on one side of it, at B = 2, it "
        "is 50%.",
        caption_justify="left",
    )
    for heading in ("release", *(_heading(name, settings) for name in names), "best guess at B", "at 2"):
        table.add_column(heading, justify="left" if heading == "release" else "right")
    for name, one in plan.kinds.items():
        figures = [_number(metric, one.figures[metric]) for metric in names]
        guesses = [f"{up(100 * guess, 3)}%" for guess in (one.best_guess, one.best_guess_at_2)]
        table.add_row(*cells(("→ " if name == plan.release else "  ") + name, *figures, *guesses))
    return table


def _tried(plan: Any, names: list[str], settings: Any) -> Table:
    table = Table(
        title="Scores that were tried for decisions, by cross-validation",
        title_justify="left",
        min_width=78,
        caption=". ".join([_by_how_much(plan), *_not_tried(plan)]),
        caption_justify="left",
    )
    for heading in ("score", *(_heading(name, settings) for name in names)):
        table.add_column(heading, justify="left" if heading == "score" else "right")
    for kind, figures in plan.decisions.tried.items():
        mark = "→ " if kind == plan.decisions.kind else "  "
        table.add_row(*cells(mark + kind, *(_number(name, figures[name]) for name in names)))
    return table


def _by_how_much(plan: Any) -> str:
    """How much better the best score is than the others."""
    tried, best = plan.decisions.tried, plan.decisions.kind
    gaps = [
        f"{name} by {100 * (tried[best]['accuracy'] - figures['accuracy']):.1f} points"
        for name, figures in tried.items()
        if name != best
    ]
    return f"The {best} one is taken; in accuracy it is better than the {' and the '.join(gaps)}"


def _not_tried(plan: Any) -> list[str]:
    return [f"Not tried: {name} ({why})" for name, why in plan.decisions.left_out.items()]


def _other_epsilons(plan: Any, others: Any, names: list[str], settings: Any) -> Table:
    """What more or less ε would buy."""
    table = Table(
        title=f"What more or less ε would buy for the {plan.release} (B = {plan.decisions.guarantee.B:g})",
        title_justify="left",
        min_width=78,
        caption="The sample stays as it was; its noise, if it has any, is in all of these.",
        caption_justify="left",
    )
    second = "noise on a score" if plan.release == "scores" else "right next to the cut"
    for heading in ("ε", second, *(_heading(name, settings) for name in names)):
        table.add_column(heading, justify="right")
    if plan.release == "scores":
        rows = [
            (one.guarantee.epsilon, f"{one.deviation:.4f}",
             {name: each.value for name, each in one.expectation.figures.items()})
            for one in others
        ]  # fmt: skip
    else:
        from targetdp.guarantee import Guarantee
        from targetdp.theorem1 import accuracy_ceiling

        B = plan.decisions.guarantee.B
        rows = [
            (epsilon, f"{accuracy_ceiling(Guarantee(B, epsilon)):.1%}", figures)
            for epsilon, figures in plan.decisions.others.items()
        ]
    for epsilon, told, figures in rows:
        table.add_row(*cells(up(epsilon), told, *(_number(name, figures[name]) for name in names)))
    return table


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
