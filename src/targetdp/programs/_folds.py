"""The cross-validation plan: made once, and the same for every release that is compared."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Self

import numpy as np

from targetdp._core import Integers, check


@dataclass(frozen=True)
class Folds:
    """``people`` in ``k`` random parts of nearly equal size, from ``seed`` alone.

    Each person is predicted by a model that was fitted without her part. ``order`` lists all people part by
    part; part f is ``order[starts[f]:starts[f + 1]]``.

    `Folds.of` takes a plan that was made elsewhere instead; ``given`` is then the hash of it, else empty.

    Guarantees: two plans with equal numbers are equal, and never depend on features or outcomes.
    """

    people: int
    k: int = 5
    seed: int = 0
    given: str = field(init=False, default="", repr=False)
    order: Integers = field(init=False, repr=False, compare=False)
    starts: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        people = check.integer(
            "people", self.people, at_least=2, remedy="one part is held out, one is fitted"
        )
        k = check.integer("folds", self.k, at_least=2, at_most=people, remedy="every fold needs a person")
        seed = check.integer("seed", self.seed, at_least=0)
        order = np.random.default_rng(seed).permutation(people).astype(np.int64)
        order.setflags(write=False)
        starts = tuple(people * f // k for f in range(k + 1))
        for name, value in (
            ("people", people),
            ("k", k),
            ("seed", seed),
            ("order", order),
            ("starts", starts),
        ):
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, splits: Iterable[tuple[Any, Any]], seed: int = 0) -> Self:
        """The plan of a scikit-learn splitter: ``Folds.of(KFold(5, shuffle=True).split(X))``.

        Each of ``splits`` names who is fitted and who is predicted; everybody must be predicted once, by a
        model that is fitted on all others. ``seed`` is for estimators that draw.
        """
        pairs = [(np.asarray(fitted), np.asarray(predicted)) for fitted, predicted in splits]
        order = (
            np.concatenate([predicted for _, predicted in pairs]) if pairs else np.empty(0, dtype=np.int64)
        )
        everybody = np.arange(len(order))
        whole = (
            bool(pairs)
            and np.array_equal(np.sort(order), everybody)
            and all(np.array_equal(np.sort(np.concatenate(pair)), everybody) for pair in pairs)
        )
        if not whole:
            raise ValueError(
                "splits do not predict everybody once, by a model fitted on all others: give those of a "
                "splitter such as scikit-learn's KFold"
            )
        plan = cls(len(order), len(pairs), seed)
        order = order.astype(np.int64)
        order.setflags(write=False)
        starts = tuple(np.cumsum([0, *(len(predicted) for _, predicted in pairs)]).tolist())
        digest = sha256(repr(starts).encode() + order.tobytes()).hexdigest()
        for name, value in (("order", order), ("starts", starts), ("given", digest)):
            object.__setattr__(plan, name, value)
        return plan

    def __iter__(self) -> Iterator[tuple[Integers, Integers]]:
        """For each fold who is fitted and who is predicted, as scikit-learn's ``cv=`` takes it."""
        for begin, end in self.ranges():
            yield np.concatenate([self.order[:begin], self.order[end:]]), self.order[begin:end]

    def ranges(self) -> Iterator[tuple[int, int]]:
        """Where each part begins and ends in ``order``."""
        return zip(self.starts[:-1], self.starts[1:], strict=True)
