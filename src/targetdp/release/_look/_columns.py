"""The columns that a request is about: whether the policy releases them, and the table has them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from targetdp._files import did_you_mean
from targetdp.release._request import Request
from targetdp.table import Encoding, first_names

_MOST_NAMED = 8


@dataclass(frozen=True)
class Problem:
    """Why a release cannot be made, and what to do about it.

    ``whose`` says who can mend it: the official who asks, or the data holder; ``spent``, whether it is that
    too little is left of a limit or a plan.
    """

    what: str
    remedy: str
    whose: Literal["official", "holder"] = "holder"
    spent: bool = False

    def __str__(self) -> str:
        return f"{self.what}: {self.remedy}"


def columns_that_are_not_released(
    features: Iterable[str], allowed: Sequence[str], encoding: Encoding
) -> Iterable[Problem]:
    refused = [name for name in features if encoding.source(name) not in allowed]
    if refused:
        meant = did_you_mean(refused[0], [*allowed, *encoding.expanded(allowed)])
        yield Problem(
            f"the policy releases no {_some(refused)}",
            f"{f'{meant} Ask' if meant else 'ask'} for some of {_some(allowed)}",
            "official",
        )


def weighed_that_are_no_numbers(request: Request, encoding: Encoding) -> tuple[str, ...]:
    """Columns that are weighed, and become several features: which of them is not said."""
    weighed = [*(request.weights or {})]
    weighed += [name for one in request.decisions if one.model is None for name in one.takes]
    return tuple(dict.fromkeys(name for name in weighed if not encoding.is_feature(name)))


def to_be_weighed_otherwise(names: Iterable[str], encoding: Encoding) -> Iterable[Problem]:
    for name in names:
        made = first_names(encoding.expanded([name]), _MOST_NAMED)
        yield Problem(f"{name} is no number", f"weigh what is made of it: {made}", "official")


def columns_that_are_not_there(
    needed: Sequence[str], columns: Sequence[str], place: str
) -> Iterable[Problem]:
    missing = [name for name in needed if name not in columns]
    for name in missing[:_MOST_NAMED]:
        meant = did_you_mean(name, columns) or f"it has {_some(columns)}."
        yield Problem(f"{place} has no column {name!r}", f"{meant} Correct the table, or policy.toml")
    if len(missing) > _MOST_NAMED:
        yield Problem(f"and {len(missing) - _MOST_NAMED:,} more columns are missing", "see policy.toml")


def _some(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    shown = ("".join(c if c.isprintable() else "?" for c in name) for name in names[:_MOST_NAMED])
    return ", ".join(shown) + (f" and {more:,} more" if more > 0 else "")
