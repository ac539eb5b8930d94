"""What B means in a table: how many others lie within B of each person, who are hidden among them."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from targetdp._core import Floats, Integers, Progress, Silent, check
from targetdp.attacks._declaration import Answer, attack
from targetdp.attacks._search._tree import count_within
from targetdp.normalization import Normalized, clip_rows

QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


@dataclass(frozen=True)
class Neighborhood:
    """For each person (of those who were looked at) how many others lie within B.

    It is a statistic of the original rows: for the data holder's eyes, unless they are public or invented.

    Args:
        B: The distance.
        people: How many people the table has.
        crowd: For each person who was looked at, how many others are within B.

    Example:
        >>> result = neighborhood([[0.0], [0.1], [0.9]], B=0.25)
        >>> result.crowd.tolist(), round(result.alone, 2)
        ([1, 1, 0], 0.33)
    """

    B: float
    people: int
    crowd: Integers = field(repr=False)

    @property
    def typical(self) -> float:
        """The median crowd."""
        return float(np.median(self.crowd))

    @property
    def alone(self) -> float:
        """The share of people with nobody within B: the guarantee gives them no other person to look like."""
        return float(np.mean(self.crowd == 0))

    def quantiles(self) -> dict[float, float]:
        """The distribution of the crowd in a few numbers."""
        return {q: float(np.quantile(self.crowd, q)) for q in QUANTILES}

    def record(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {
            "B": self.B,
            "people": self.people,
            "looked_at": len(self.crowd),
            "typical": self.typical,
            "alone": self.alone,
            "quantiles": {f"{q:g}": crowd for q, crowd in self.quantiles().items()},
            "sentence": self.sentence(),
        }

    def sentence(self) -> str:
        """What an official can read."""
        return in_a_sentence(self.B, self.typical, self.alone, len(self.crowd), self.people)


def in_a_sentence(B: float, typical: float, alone: float, looked_at: int, people: int) -> str:
    """Say for an official what B means. A sample is called one, and never says "all" or "none" of everybody.

    Args:
        B: The distance.
        typical: The median number of others within B.
        alone: The share of people with nobody within B.
        looked_at: How many people were looked at.
        people: How many people there are.

    Returns:
        The sentence.

    Example:
        >>> in_a_sentence(0.25, 37.0, 0.04, 500, 500)
        'At B = 0.25 a typical person has 37 others who look alike; 4.0% of people have nobody.'
    """
    many = math.floor(typical)
    crowd = f"{many:,} {'other who looks' if many == 1 else 'others who look'}"
    sampled = looked_at < people
    sample = f" (of {looked_at:,} people looked at)" if sampled else ""
    return (
        f"At B = {B:.12g} a typical person has {crowd} alike; {_nobody(alone, sampled)} have nobody{sample}."
    )


def _nobody(alone: float, sampled: bool) -> str:
    """The share of people who are alone, rounded up, but "all" and "none" only if it is so."""
    if alone in {0.0, 1.0} and not sampled:
        return "none" if alone == 0 else "all people"
    if alone == 0:
        return "fewer than 0.1% of people"
    percent = math.ceil(alone * 1000 - 1e-9) / 10
    return f"{percent:.1f}% of people" if percent < 100 else "more than 99.9% of people"


@attack(
    answers=Answer(
        criteria=(),
        adversary="None: this is no attack. It counts, in the original table, the people within B of each.",
        reaches="What the distance B means: how many others a person is hard to tell from by the guarantee.",
        does_not_reach="Any criterion. A large crowd is no protection without the noise, and a person "
        "without a crowd is still protected from being told from any row within B.",
    ),
)
def neighborhood(
    X: Any,
    B: float,
    *,
    people: int | None = None,
    rng: np.random.Generator | None = None,
    progress: Progress | None = None,
) -> Neighborhood:
    """Count, for each person, the others whose rows lie within distance B.

    Args:
        X: Rows as a mechanism sees them, in the unit ball (`normalize`); longer rows are clipped, as every
            mechanism does.
        B: The distance.
        people: Look at a random sample of so many, against everyone.
        rng: Randomness of the sample; fresh unless given.
        progress: Is told how far the count is.

    Returns:
        How many others are within B of each person.

    Raises:
        ValueError: X has values that are not finite, B is not between 0 and 2, or ``people`` is out of range.

    Guarantees: exact counts; a distance of exactly B counts as within.
    Does not guarantee: that noise at (B, ε, δ) hides a person among that crowd for sure. Indistinguishable is
    meant up to ε and δ, for each pair.

    Example:
        >>> neighborhood([[0.0], [0.1], [0.2], [0.9]], B=0.15).sentence()
        'At B = 0.15 a typical person has 1 other who looks alike; 25.0% of people have nobody.'
    """
    rows = clip_rows(check.table(X.X if isinstance(X, Normalized) else X))
    B = check.distance(B, "B")
    n = len(rows)
    queries: Floats = rows
    if people is not None:
        size = check.integer("people", people, at_least=1, at_most=n, remedy=f"the table has {n} rows")
        generator = check.generator(rng) or np.random.default_rng()
        queries = rows[np.sort(generator.choice(n, size, replace=False))]
    progress = progress or Silent()
    progress.phase("crowd within B", len(queries))
    closer, equal = count_within(rows, queries, np.full(len(queries), B * B), progress=progress)
    crowd = closer + equal - 1  # everyone is within B of herself
    crowd.setflags(write=False)
    return Neighborhood(B, n, crowd)
