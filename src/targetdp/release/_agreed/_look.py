"""A look before people who agreed are handed over: who goes out, with what, and what keeps them from it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from targetdp._core import Progress
from targetdp._files import toml_value
from targetdp.normalization import read_scales_file
from targetdp.release._agreed._record import plain_scales
from targetdp.release._agreed._rows import FoundRows, NamedPeople, find_rows, people_named
from targetdp.release._certificate._agreed import MEANS
from targetdp.release._desk import Desk
from targetdp.release._ledger._agreements import SHORT
from targetdp.release._ledger._book import Ledger
from targetdp.release._ledger._history import History
from targetdp.release._look._columns import Problem, columns_that_are_not_there
from targetdp.release._policy import AgreedPolicy, Policy
from targetdp.release._public_scales import must_be_public
from targetdp.release._trust._approval import Approval, approval_of, policy_problems
from targetdp.table import Source

_SHOWN = 8
"""Names that a message has."""


class NotHandedOver(ValueError):  # noqa: N818 (it is what happened, and reads as such)
    """People cannot be handed over; everything that keeps them from it."""

    def __init__(self, look: "AgreementLook") -> None:
        self.look = look
        count = len(look.problems)
        listed = "\n".join(f"  - {problem}" for problem in look.problems)
        super().__init__(
            f"{count} thing{'s keep' if count > 1 else ' keeps'} these people from being handed over:\n"
            f"{listed}\nnothing went on record and nothing was handed over"
        )


@dataclass(frozen=True)
class AgreementLook:
    """Everything that is known before people who agreed are handed over. It is for the data holder's eyes.

    Args:
        desk: The desk.
        ruling: Its policy, which version it is, and an approval where it needs one.
        agreed: What the policy says of people who agreed; None if it says nothing.
        found: What the table has of them; None where that was not looked at.
        in_all: How many people would have been handed over by then.
        known: In how many earlier releases of the ledger how many of them are.
        again: The agreement that has handed over the very same people with the same words before.
        scales: The scales of their columns, as a record has them.
        problems: What keeps them from being handed over.
    """

    desk: Desk
    ruling: tuple[Policy, int, Approval | None]
    agreed: AgreedPolicy | None
    found: FoundRows | None = field(repr=False)
    in_all: int
    known: dict[str, int]
    scales: dict[str, Any] = field(repr=False)
    history: History = field(repr=False)
    problems: tuple[Problem, ...] = ()

    @property
    def gaps(self) -> dict[str, float]:
        """Declared constants that stand for missing values of these columns."""
        return {} if self.found is None else dict(self.found.filled)

    @property
    def lines(self) -> list[str]:
        """All of it in words, line by line."""
        policy, found = self.ruling[0], self.found
        lines = [f"desk {policy.name} ({self.desk.path})"]
        if self.agreed is None or found is None:
            return lines
        under = "pseudonyms" if policy.id.pseudonyms else "their ids"
        lines += [
            f"who goes out: {found.rows.num_rows:,} people of {found.in_table:,}, under {under}",
            f"what of them, AS IT IS, without noise: {_some(self.agreed.columns)}",
            f"what they agreed to: “{self.agreed.to}”",
            f"what it means: {MEANS}",
            f"handed over with these: {self.in_all:,} people of at most {self.agreed.at_most:,}",
        ]
        if self.gaps:
            said = ", ".join(f"{name} = {value:g}" for name, value in self.gaps.items())
            lines.append(f"missing values are filled with declared constants: {said}")
        if found.gaps:
            said = ", ".join(f"{count:,} of {name}" for name, count in found.gaps.items())
            lines.append(f"missing values stay missing: {said}")
        if self.known:
            listed = ", ".join(f"{count:,} in {name[:SHORT]}" for name, count in self.known.items())
            lines.append(f"of these people the ledger knows: {listed}")
        return lines

    def record(self) -> dict[str, Any]:
        """All of it as plain data."""
        found, agreed = self.found, self.agreed
        return {
            "desk": self.ruling[0].name,
            "people": 0 if found is None else found.rows.num_rows,
            "in_table": 0 if found is None else found.in_table,
            "columns": [] if agreed is None else list(agreed.columns),
            "to": None if agreed is None else agreed.to,
            "means": MEANS,
            "in_all": self.in_all,
            "at_most": None if agreed is None else agreed.at_most,
            "gaps": self.gaps,
            "missing": {} if found is None else dict(found.gaps),
            "known": self.known,
            "problems": [{"what": p.what, "remedy": p.remedy, "whose": p.whose} for p in self.problems],
        }


def look_at_people(
    desk: Desk, ledger: Ledger, source: Source, people: Path, column: str | None, progress: Progress
) -> AgreementLook:
    """Put together what is known of people who agreed, and all that is wrong."""
    policy, history, names = desk.policy, ledger.history, desk.names()
    for_table = policy.of_table(source.columns)
    version = history.policy_version + (history.policy != policy)
    problems = [Problem(*one) for one in policy_problems(desk, history)]
    ruling = (policy, version, approval_of(desk, history)[0])
    agreed = policy.agreed
    if agreed is None:
        problems.append(Problem("policy.toml lets nobody be handed over", _remedy(for_table)))
        return AgreementLook(desk, ruling, None, None, 0, {}, {}, history, tuple(problems))
    named = people_named(names, people, column)
    problems += _problems_of_list(named, people)
    missing = [one for one in (names.column, *agreed.columns) if one not in source.columns]
    problems += columns_that_are_not_there(missing, source.columns, f"table {source}")
    if names.column in missing:
        return AgreementLook(desk, ruling, agreed, None, 0, {}, {}, history, tuple(problems))
    columns = [name for name in agreed.columns if name not in missing]
    found = find_rows(source, names, named.ids, for_table, columns, progress)
    problems += _problems_of_rows(found, names.column, source)
    in_all = ledger.agreed.in_all(found.people) + history.lost_agreed
    if in_all > agreed.at_most:
        problems.append(
            Problem(
                f"{in_all:,} people would be handed over in all, and policy.toml lets at most "
                f"{agreed.at_most:,}",
                "hand over fewer, or raise at_most in [agreed], which goes on record with its reason",
            )
        )
    try:
        scales = _scales(desk, history, columns)
    except ValueError as error:
        problems.append(Problem(str(error), "see scales.toml at the desk"))
        scales = plain_scales("", {})
    lists = ((row.release, ledger.people_of(row)) for row in history.counted if row.people)
    shared = {name: len(np.intersect1d(found.people, tags, assume_unique=True)) for name, tags in lists}
    known = {name: count for name, count in shared.items() if count}
    return AgreementLook(
        desk, ruling, agreed, found, in_all, known, scales, history, tuple(problems)
    )  # fmt: skip


def _remedy(policy: Policy) -> str:
    """The lines that are missing, all of them, to be pasted."""
    ours = policy.columns.release or policy.columns.decide
    columns = toml_value([name for name in ours if name not in policy.kinds])
    return (
        "if people agreed to it, say so there, on record:\n"
        f'    [agreed]\n    to = "what they agreed to"\n    columns = {columns}\n    at_most = 1000'
    )


def _problems_of_list(named: NamedPeople, people: Path) -> Iterator[Problem]:
    if named.twice:
        yield Problem(
            f"{people} names {len(named.twice):,} people twice: {_some(named.twice)}", "name each once"
        )
    if named.wrong:
        yield Problem(f"ids of {people} are none", "\n".join(["", *(f"  {line}" for line in named.wrong)]))


def _problems_of_rows(found: FoundRows, id_column: str, source: Source) -> Iterator[Problem]:
    if not found.rows.num_rows:
        yield Problem(f"none of these people is in table {source}", "there is nobody to hand over")
    if found.absent:
        yield Problem(
            f"{len(found.absent):,} of these people are not in table {source}: {_some(found.absent)}",
            "list ids as the table has them, and only those who are in it",
        )
    if found.repeated:
        yield Problem(
            f"id column {id_column!r} has duplicated values: {found.repeated:,} rows repeat an id, in the "
            "spelling of policy.toml",
            "one row per person; merge or drop the others",
        )
    if found.wrong:
        listed = "\n".join(["", *(f"  {line}" for line in found.wrong)])
        yield Problem("some values cannot be handed over as they are", listed)


def _scales(desk: Desk, history: History, columns: list[str]) -> dict[str, Any]:
    """The scales of columns that anybody may know: public ones, or those that a release has paid for."""
    if desk.policy.scales.source == "public":
        must_be_public(desk.scales.file)
        known = read_scales_file(desk.scales.file).features
        return plain_scales("declared", {n: (known[n].center, known[n].scale) for n in columns if n in known})
    paid = history.scales()
    values = {n: (paid[n]["center"], paid[n]["scale"]) for n in columns if n in paid}
    return plain_scales("earlier", values)


def _some(names: "pa.StringArray | tuple[str, ...] | list[str]") -> str:
    more = len(names) - _SHOWN
    shown = ("".join(c if c.isprintable() else "?" for c in str(name)) for name in names[:_SHOWN])
    return ", ".join(shown) + (f" and {more:,} more" if more > 0 else "")
