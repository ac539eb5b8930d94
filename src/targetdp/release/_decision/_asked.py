"""What a request says of each decision: what people are judged by, and where the cut is."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, model_validator

from targetdp._core import Floats, check
from targetdp._files import Number, StrictModel
from targetdp.release._decision._cuts import MOST_KNOTS
from targetdp.release._policy import CLASSIC

Share = Annotated[Number, Field(ge=0, le=1)]
_MOST_BENDS = 1024
_MOST_NAMED = 12


class Curve(StrictModel):
    """A piecewise linear function of one column; constant beyond its first and last knot."""

    knots: tuple[Number, ...] = Field(min_length=1, max_length=_MOST_BENDS)
    values: tuple[Number, ...] = Field(min_length=1, max_length=_MOST_BENDS)

    @model_validator(mode="after")
    def _fit(self) -> "Curve":
        if len(self.knots) != len(self.values):
            raise ValueError(
                f"{len(self.knots)} knots and {len(self.values)} values: give a value for each knot"
            )
        if any(b <= a for a, b in pairwise(self.knots)):
            raise ValueError("knots must rise: give each above the one before it")
        return self


class AskedDecision(StrictModel):
    """One decision about each person: her score, and the cut that it is held against.

    Args:
        name: Of the column that comes out.
        weights: A linear score: a weight for each column.
        additive: An additive score: a piecewise linear function of each column.
        model: Any other score: SHA-256 of an ONNX file, which the data holder gets apart; at B = 2 only.
        columns: Those that a model takes, in its order.
        yes: Whether scores below the cut are a yes, or those above; the cut itself is a yes both times.
        cut: The cut itself, where it is known.
        share: The share of people who are to get a yes, where the cut is to be found.
        expected: Pairs of a cut and the share of yes that is expected there: where the search begins.

    Edges: at B = 2 weights, knots and cuts are for columns in the table's own units: nothing is scaled or
    clipped. Below, they are for columns as the desk scales them.
    """

    name: str = Field(default="decision", description="of the column that comes out")
    weights: dict[str, Number] | None = Field(default=None, min_length=1, description="by column")
    additive: dict[str, Curve] | None = Field(
        default=None, min_length=1, description="by column: knots, and the function's values there"
    )
    model: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = Field(
        default=None, description="SHA-256 of an ONNX file; at B = 2"
    )
    columns: tuple[str, ...] | None = Field(
        default=None, min_length=1, description="those that a model takes, in its order"
    )
    yes: Literal["below", "above"] = Field(default="below", description="on which side of the cut a yes is")
    cut: Number | None = Field(default=None, description="the cut itself, where it is known")
    share: Annotated[Number, Field(gt=0, lt=1)] | None = Field(
        default=None, description="of people who are to get a yes, where the cut is to be found"
    )
    expected: tuple[tuple[Number, Share], ...] | None = Field(
        default=None,
        min_length=2,
        max_length=MOST_KNOTS,
        description="cuts, and the share of yes that is expected at each",
    )

    @model_validator(mode="after")
    def _agree(self) -> "AskedDecision":
        judged = [name for name in ("weights", "additive", "model") if getattr(self, name) is not None]
        if len(judged) != 1:
            raise ValueError(
                f"{self.name}: {' and '.join(judged) or 'nothing'} given for what people are judged by; give "
                "one of weights, additive and model"
            )
        if (self.columns is None) == (self.model is not None):
            raise ValueError(f"{self.name}: columns are those that a model takes: give them with a model")
        if twice := check.twice(self.columns or ()):
            raise ValueError(f"{self.name}: columns names {twice[0]!r} twice: name each column once")
        check.dimensions(len(self.takes), "number of columns")
        if self.weights is not None and not any(self.weights.values()):
            raise ValueError(f"{self.name}: all weights are 0: a score must depend on some column")
        if self.additive is not None and all(len({*one.values}) == 1 for one in self.additive.values()):
            raise ValueError(f"{self.name}: all curves are flat: a score must depend on some column")
        if (self.cut is None) == (self.share is None) or (self.share is None) != (self.expected is None):
            raise ValueError(
                f"{self.name}: give cut, where it is known; or share and expected, and it is found on the way"
            )
        if self.expected is not None:
            _must_rise(self.name, self.expected, self.yes)
        return self

    @property
    def takes(self) -> tuple[str, ...]:
        """The columns that are looked at."""
        return tuple(self.weights or self.additive or self.columns or ())

    def scores_of(self, columns: Mapping[str, Floats]) -> Floats:
        """Scores of people by weights or curves; NaN for whoever has a gap.

        Args:
            columns: Those that are taken, in the units of the request.

        Returns:
            A number for each person.

        Raises:
            ValueError: A model is what people are judged by.
        """
        if self.model is not None:
            raise ValueError(f"{self.name}: a model judges people, which the data holder runs")
        total = np.zeros(len(next(iter(columns.values()))))
        with np.errstate(all="ignore"):
            # Column by column: so a row's sum does not depend on where in a batch it stands.
            for name, weight in (self.weights or {}).items():
                total += weight * columns[name]
            for name, curve in (self.additive or {}).items():
                found = np.interp(columns[name], curve.knots, curve.values)
                # A curve of one knot would have a value for a missing one, too.
                total += np.where(np.isnan(columns[name]), np.nan, found)
        return total

    @property
    def sign(self) -> int:
        """By which score and cut are multiplied so that a yes is below."""
        return 1 if self.yes == "below" else -1


def _must_rise(name: str, expected: Iterable[tuple[float, float]], yes: str) -> None:
    """Cuts rise, and with them the share of yes, or of no."""
    pairs = tuple(expected)
    shares = [share if yes == "below" else -share for _, share in pairs]
    if any(b[0] <= a[0] for a, b in pairwise(pairs)) or shares != sorted(shares):
        way = "rise" if yes == "below" else "fall"
        raise ValueError(
            f"{name}: expected must have rising cuts, and shares of yes that {way} with them: order the "
            "pairs by their cuts"
        )
    if shares[0] == shares[-1]:
        raise ValueError(
            f"{name}: expected has the same share everywhere: no cut would change anything; give cuts "
            "farther apart"
        )


def decisions_must_fit(decisions: Sequence[AskedDecision], B: float, others: Mapping[str, Any]) -> None:
    """Refuse decisions that cannot be taken together at a distance, or beside other fields of a request."""
    if not decisions:
        raise ValueError('release = "decisions" needs [[decisions]]: what is decided about each person')
    if wrong := [name for name, value in others.items() if value is not None]:
        raise ValueError(
            f"{', '.join(wrong)} is not for decisions: each names its columns, none has noise or a δ; "
            "leave it out"
        )
    if len(decisions) > 1 and B != CLASSIC:
        raise ValueError(
            f"B = {B:g}: several decisions are taken together at B = 2 only; ask for one, or for B = 2"
        )
    columns = {name for one in decisions for name in one.takes}
    check.dimensions(len(columns), "number of columns")


def describe_decision(asked: AskedDecision) -> str:
    """What is decided, in words."""
    by = f"the model {asked.model} of"
    if asked.model is None:
        by = "a weighted sum of" if asked.weights is not None else "a sum of curves of"
    if asked.cut is not None:
        cut = f"at {'most' if asked.yes == 'below' else 'least'} {asked.cut:.12g}"
    else:
        cut = f"{asked.yes} a cut that {100 * (asked.share or 0.0):.4g}% of people are on the yes side of"
    # Whoever asks names columns, and a data holder reads this: no name ends the line that it stands in.
    names = ("".join(c if c.isprintable() else "?" for c in name) for name in asked.takes[:_MOST_NAMED])
    more = len(asked.takes) - _MOST_NAMED
    columns = ", ".join(names) + (f" and {more:,} more" if more > 0 else "")
    return f"{asked.name}: yes where {by} {columns} is {cut}"
