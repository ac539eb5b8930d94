"""People whom a request names by a release or an agreement: left out, or learned from."""

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np

from targetdp._core import Words
from targetdp.release._certificate._agreed import WithoutPromise
from targetdp.release._ledger._agreements import NOBODY, SHORT, AgreementRow
from targetdp.release._ledger._book import Ledger
from targetdp.release._ledger._history import History, ReleaseRow
from targetdp.release._request import Request

Wrong = tuple[str, str, Literal["official"]]
"""What is wrong, what to do about it, and who can."""


def people_left_out(request: Request, ledger: Ledger) -> tuple[Words, tuple[str, ...], list[Wrong]]:
    """The tags of people whom a request leaves out, of which releases and agreements, and what is wrong."""
    found: list[Words] = []
    names: list[str] = []
    wrong: list[Wrong] = []
    for prefix in request.leave_out:
        try:
            row = _named(ledger.history, prefix)
        except ValueError as error:
            wrong.append((str(error), "leave out the people of a release of this desk", "official"))
            continue
        if isinstance(row, ReleaseRow) and row.state != "published":
            told = f"release {row.release[:SHORT]} is not published"
            wrong.append((told, "its people can be left out once it is", "official"))
            continue
        found.append(ledger.people_of(row))
        names.append(row.name)
    return (np.unique(np.concatenate(found)) if found else NOBODY), tuple(names), wrong


def learned_from_problems(request: Request, history: History) -> Iterator[Wrong]:
    """Whether it is clear which agreement a question was learned from, where it was from one."""
    prefix = request.learned_from or ""
    agreed = history.agreements_like(prefix)
    both = [*agreed, *(name for name in history.releases if name.startswith(prefix))]
    if agreed and len(both) > 1:
        yield (
            f"learned_from = {prefix!r}: {len(both)} releases and agreements begin so",
            "give more of its id",
            "official",
        )


def agreed_in(
    request: Request, ledger: Ledger, people: Words, features: Sequence[str], left_out: Sequence[str]
) -> tuple[WithoutPromise, ...]:
    """The people of a release who agreed to be handed over with its columns, by agreement.

    Agreements that the request names are told of, too, if nobody of theirs is in it.
    """
    history = ledger.history
    counts = ledger.agreed.counts(people, features)
    named = {*left_out, *(row.agreement for row in history.agreements_like(request.learned_from or ""))}
    return tuple(
        WithoutPromise(agreement=name, to=row.to, people=counts.get(name, 0))
        for name, row in history.agreements.items()
        if counts.get(name) or name in named
    )


def _named(history: History, prefix: str) -> ReleaseRow | AgreementRow:
    """What a request names by the beginning of its id; a ValueError unless there is exactly one."""
    agreed = history.agreements_like(prefix)
    if len(agreed) == 1 and not any(name.startswith(prefix) for name in history.releases):
        return agreed[0]
    if agreed:
        raise ValueError(f"release = {prefix!r}: several releases and agreements begin so")
    return history.find(prefix)
