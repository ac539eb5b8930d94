"""A program for some of its people: those whom the second round is about."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from targetdp.programs.aid import Aid
from targetdp.programs.base import Program
from targetdp.programs.lending import Lending, Loans
from targetdp.programs.ranking import Truths


def part_of(program: Program, who: Truths, *, whole: bool = False) -> Aid | Lending:
    """The same program for the people of ``who``: its quota, threshold, groups and money.

    They stand for their share of the population or, with ``whole``, for all of it. A quota holds once among
    them, whatever the program's rule: they are decided about together.
    """
    places = np.flatnonzero(check_mask(who, program.people.count))
    if not len(places):
        raise ValueError("who holds nobody: a program needs people")
    people = program.people
    share = 1.0 if whole else float(people.weights[places].sum() / people.weights.sum())
    if isinstance(program, Aid):
        return Aid(
            program.consumption[places], program.quota, people.population * share,
            None if program.weights is None else np.asarray(program.weights)[places],
            _groups(program.groups, places), program.model, program.welfare,
        )  # fmt: skip
    if isinstance(program, Lending):
        loans = program.loans
        return Lending(
            program.repaid[places],
            Loans(loans.amount[places], loans.revenue[places], loans.interest[places]),
            program.threshold, people.population * share, _groups(program.groups, places), program.model,
        )  # fmt: skip
    raise TypeError(f"program = {program!r} is neither aid nor lending: two rounds are made for these")


def check_mask(who: Any, count: int) -> Truths:
    """True or false for each person."""
    mask = np.asarray(who)
    if mask.dtype != np.bool_ or mask.shape != (count,):
        raise ValueError(
            f"who has shape {mask.shape} and type {mask.dtype}: give true or false for each of the {count:,}"
        )
    return mask


def _groups(
    groups: Mapping[str, Sequence[Any]] | None, places: np.ndarray[Any, Any]
) -> dict[str, list[Any]] | None:
    return None if groups is None else {name: [values[i] for i in places] for name, values in groups.items()}
