"""`targetdp plan`: what a guarantee rules out, what noise it needs, what it means at other distances."""

import math
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.table import Table

from targetdp._core import exact, percent_up, up
from targetdp.cli._console import emit, out, tell, warn


def plan(
    B: Annotated[float, typer.Option("--B", help="distance B of the guarantee")],
    epsilon: Annotated[float, typer.Option(help="ε of the guarantee; with --releases, of the limit")],
    delta: Annotated[float, typer.Option(help="δ of the same; a common choice is 1/(people + 1)")],
    accuracy: Annotated[
        float | None,
        typer.Option(help="γ: worst-case agreement with today's decisions that is wanted, 0.5 to below 1"),
    ] = None,
    features: Annotated[int, typer.Option(help="number of columns to release")] = 10,
    scores: Annotated[
        int | None, typer.Option(help="number of scores to release, in place of columns")
    ] = None,
    releases: Annotated[
        int | None, typer.Option(help="propose a plan of so many equal releases within a limit")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON instead of tables")] = False,
) -> None:
    """What a guarantee rules out, what noise it needs, and what it means at other distances.

    With --releases: how large so many equal releases may be, for the plan of a policy.
    """
    from targetdp.mechanisms import plan as make_plan
    from targetdp.release import propose_plan

    columns = features if scores is None else scores
    if releases is not None:
        if accuracy is not None:
            raise ValueError("--releases plans for a limit: give no --accuracy")
        proposed = propose_plan(
            B=B, epsilon=epsilon, delta=delta, releases=releases, columns=columns,
            kind="rows" if scores is None else "scores",
        )  # fmt: skip
        _say_proposed(proposed, as_json=as_json)
        return
    made = make_plan(accuracy=accuracy, epsilon=epsilon, delta=delta, B=B, dimensions=columns)
    if as_json:
        emit(_plan_as_json(made))
    else:
        for table in _plan_tables(made):
            out().print(table)
        out().print(made.choice.why, highlight=False)
    warn(made.warnings)


def _say_proposed(made: Any, *, as_json: bool) -> None:
    line, limit = made.line, made.limit
    if as_json:
        emit(
            {
                "limit": limit.model_dump(mode="json"), "plan": [line.model_dump(mode="json")],
                "ways": [asdict(one) for one in made.ways], "policy": made.toml(),
            }
        )  # fmt: skip
        return
    emit("# For policy.toml, in place of its [limit]:")
    emit(made.toml())
    emit("")
    what = ("column" if line.release == "rows" else "score") + "s" * (line.columns > 1)
    shown = Table(
        title=f"{line.times:,} equal release{'s' * (line.times > 1)} of {line.columns:,} {what} within "
        f"(ε = {exact(limit.epsilon)}, δ = {exact(limit.delta)}) at B = {exact(limit.B)}",
        caption="A plan is charged whole and exactly, and takes half of δ; a filter lets each release be "
        "chosen after looking at those before it. Least noise of each; ε of all at distance 2 holds for any "
        "two rows, and is rounded up.",
        title_justify="left", caption_justify="left", min_width=78,
    )  # fmt: skip
    shown.add_column("counted by", no_wrap=True)
    for heading in ("ε of each", "noise", "deviation per column", "ε of all at distance 2"):
        shown.add_column(heading, justify="left" if heading == "noise" else "right", overflow="fold")
    for one in made.ways:
        way = "the plan" if one.way == "plan" else f"{one.way} filter"
        shown.add_row(way, exact(one.epsilon), one.family, f"{one.noise_sd:.4f}", up(one.classic, 4))
    out().print(shown)
    tell("with a plan, a desk releases nothing else")
    if line.mechanism != "least-noise":
        tell(f'a request of the plan says mechanism = "{line.mechanism}"')


def _plan_as_json(made: Any) -> dict[str, Any]:
    return {
        "guarantee": asdict(made.guarantee),
        "ceiling": made.ceiling,
        "agreement_by_distance": [
            {"distance": r, "agreement": share} for r, share in made.agreement_at.items()
        ],
        "accuracy": made.accuracy,
        "ruled_out": made.ruled_out,
        "smallest_epsilon": made.smallest_epsilon,
        "features": made.dimensions,
        "mechanism": made.choice.name,
        "why": made.choice.why,
        "noise_sd": made.choice.noise,
        "best_guess_at_B": made.choice.best_guess,
        "not_possible": made.choice.refused,
        "noise_length": made.noise_length,
        "epsilon_at_distance": [
            {"distance": r, "epsilon": epsilon, "best_guess_right": made.guess_at[r]}
            for r, epsilon in made.epsilon_at.items()
        ],
        "warnings": list(made.warnings),
    }


def _plan_tables(made: Any) -> list[Table]:
    g = made.guarantee
    noise = Table(title=f"Noise for {g} on {made.dimensions} columns", title_justify="left")
    for heading in ("mechanism", "deviation per column", "length on a row (rows: ≤ 1)", "best guess at B"):
        noise.add_column(heading, justify="left" if heading == "mechanism" else "right")
    for name, sd in sorted(made.choice.noise.items(), key=lambda item: item[1]):
        guess = percent_up(made.choice.best_guess[name])
        noise.add_row(name, f"{sd:.4f}", f"{sd * made.dimensions**0.5:.3f}", guess)

    distances = Table(
        title=f"True ε of {made.choice.name} at δ = {g.delta:.3g}",
        caption="Best guess: which of two equally likely rows a person has, by somebody who knows all "
        "other rows; a coin is right in 50%.",
        title_justify="left",
        caption_justify="left",
        min_width=78,
    )
    for heading in ("distance between two rows", "ε", "best guess is right"):
        distances.add_column(heading, justify="right")
    for r, value in made.epsilon_at.items():
        # Rounded up: nobody may read more protection than there is.
        distances.add_row(
            f"{r:g}", f"{math.ceil(value * 1000 - 1e-6) / 1000:.3f}", percent_up(made.guess_at[r])
        )
    return [_agreement(made), noise, distances]


def _agreement(made: Any) -> Table:
    """What no release can do, by the distance from the cut."""
    g, asked = made.guarantee, ""
    if made.accuracy is not None:
        asked = f"γ = {made.accuracy:g} is {'ruled out' if made.ruled_out else 'possible'}. "
    shown = Table(
        title=f"{asked}With ε = {g.epsilon:g} and δ = {g.delta:.3g}, γ is at most {up(made.ceiling, 4)}, "
        "whatever B is",
        caption="γ is how often a decision on the private data agrees with today's, for whomever it does so "
        "least; it is not a program's accuracy. B buys agreement away from the cut, for people whom only so "
        "different a row would put on its other side: the table has the most that goes with γ at its "
        "ceiling. Publishing decisions alone, one random bit each, can reach all of it; with noisy rows or "
        "scores a decision next to the cut is little more than a coin.",
        title_justify="left", caption_justify="left", min_width=78,
    )  # fmt: skip
    for heading in ("distance from the cut", "agreement with today's decision, at most"):
        shown.add_column(heading, justify="right")
    for r, share in made.agreement_at.items():
        shown.add_row(f"{r:g} to {min(2.0, r + g.B):g}", up(share, 6))
    return shown
