"""What a page is about: how a program's figure is called, in which units, and which way is better."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from targetdp.report.page.numbers import money, people


@dataclass(frozen=True)
class Subject:
    """The figure that a program is for, as a page speaks of it.

    ``metric`` is what is plotted and limited, ``absolute`` what today's figure is told in. ``by_group`` are
    the figures of "who bears it", each with its heading; the first is drawn.
    """

    kind: str
    metric: str
    absolute: str
    better: Literal["smallest", "largest"]
    axis: str
    limit: str
    unit: str
    by_group: tuple[tuple[str, str], ...]

    def told(self, value: float) -> str:
        """A value of the figure, for people."""
        return people(value) if self.kind == "aid" else self.amount(value)

    def amount(self, value: float) -> str:
        """An amount in the program's unit, or a plain number where it has none."""
        return f"{value:.4g}" if self.unit == "people" else money(value, self.unit)


def subject_of(run: Mapping[str, Any]) -> Subject:
    """The subject of a sweep's page."""
    unit = str(run["made_of"].get("unit", "people"))
    if run["kind"] == "aid":
        return Subject(
            kind="aid", metric="extra_exclusion_errors", absolute="exclusion_errors", better="smallest",
            axis="more poor people missed than today", limit="At most so many more poor people missed",
            unit=unit,
            by_group=(
                ("extra_exclusion_errors", "more poor people missed"),
                ("eligible", "people who get aid"),
            ),
        )  # fmt: skip
    metric, best = run["objective"]["metric"], run["objective"]["best"]
    lending = run["kind"] == "lending"
    return Subject(
        kind=run["kind"], metric=metric, absolute=metric, better=best,
        axis=f"{metric.replace('_', ' ')}" + (f" ({unit})" if lending else ""),
        limit=f"{metric.replace('_', ' ').capitalize()} of at least" if best == "largest"
        else f"{metric.replace('_', ' ').capitalize()} of at most",
        unit=unit,
        by_group=(("extra_profit", "change of profit"), ("approvals", "loans")) if lending
        else ((metric, metric.replace("_", " ")),),
    )  # fmt: skip
