"""What is asked of a setting, as options that commands share."""

from typing import Annotated, Any

import typer

SinglingOut = Annotated[float | None, typer.Option(help="protection of at least so much, 0 to 1")]
AttributeInference = Annotated[float | None, typer.Option(help="protection of at least so much")]
Distinguishing = Annotated[float | None, typer.Option(help="protection of at least so much")]
MaxExclusionErrors = Annotated[
    float | None, typer.Option(help="poor people left out beyond those of the status quo, at most")
]
MinProfit = Annotated[float | None, typer.Option(help="the lender's profit, at least")]
AtLeast = Annotated[
    list[str] | None, typer.Option(help="any metric: accuracy=0.68; may be given several times")
]
AtMost = Annotated[list[str] | None, typer.Option(help="any metric: exclusion_errors=800000; several times")]


def limits(
    *, singling_out: float | None, attribute_inference: float | None, distinguishing: float | None,
    max_exclusion_errors: float | None, min_profit: float | None, at_least: list[str] | None,
    at_most: list[str] | None,
) -> list[Any]:  # fmt: skip
    """The constraints that were given."""
    from targetdp.tradeoff.standing import Constraint  # noqa: PLC0415 (slow to import: keep --help quick)

    floors = {
        "singling_out": singling_out, "attribute_inference": attribute_inference,
        "distinguishing": distinguishing, "profit": min_profit,
    }  # fmt: skip
    asked = [Constraint(metric, at_least=value) for metric, value in floors.items() if value is not None]
    if max_exclusion_errors is not None:
        asked.append(Constraint("extra_exclusion_errors", at_most=max_exclusion_errors))
    asked += [Constraint(metric, at_least=value) for metric, value in map(_limit, at_least or ())]
    return asked + [Constraint(metric, at_most=value) for metric, value in map(_limit, at_most or ())]


def _limit(text: str) -> tuple[str, float]:
    metric, _, value = text.partition("=")
    try:
        return metric.strip().replace("-", "_"), float(value)
    except ValueError as error:
        raise ValueError(f"{text!r} is not a metric and a number: write it as accuracy=0.68") from error
