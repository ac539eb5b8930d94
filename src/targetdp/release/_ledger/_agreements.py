"""People who agreed to be handed over as they are: who they are, and what is not promised to them.

Their rows went out, by an entry of the ledger, so that nothing is promised to them about these columns. What
is released of these columns alone therefore counts for nobody who agreed, and in full for everybody else.
Whoever is released with any other column is charged as everybody is.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from targetdp._core import Words, check
from targetdp.release._ids import is_among
from targetdp.release._ledger._people import Listed

NOBODY = np.empty(0, dtype=np.uint64)
LISTED = "agreed-"
"""With which names of lists begin."""
SHORT = 12
"""Digits of an id that people are shown."""


@dataclass(frozen=True)
class AgreementRow:
    """One agreement as the ledger knows it.

    ``people`` is the SHA-256 of the file that says who agreed, of which nobody was erased unless
    ``list_changed``. ``rows`` is how many people there were when their rows went out, ``in_all`` how many
    the desk had handed over by then. ``sha256`` is that of the table that went out.
    """

    agreement: str
    people: str
    columns: tuple[str, ...]
    to: str
    rows: int
    in_all: int
    sha256: str
    title: Mapping[str, Any]
    time: str
    entry: int
    list_changed: bool = False

    @property
    def list_name(self) -> str:
        """What its list of people is called."""
        return f"{LISTED}{self.agreement}"

    @property
    def name(self) -> str:
        """Its id, as entries name it."""
        return self.agreement

    def covers(self, features: Iterable[str] | None) -> bool:
        """Whether its people agreed to all of some columns; of none, or unknown ones, nobody did."""
        asked = {*(features or ())}
        return bool(asked) and asked <= {*self.columns}


@dataclass
class AgreedPeople:
    """Whom releases do not count for, by the columns that these are made of.

    Only who is on a list that is the one on record is left out: a missing or an altered one is an error.

    Does not guarantee: that two people never share a tag of 64 bits, of whom one agreed. In one table they
    would be refused as one person twice. That anybody else has the tag of one of n people has probability
    n·2⁻⁶⁴, and ids cannot be chosen for it without the desk's key.
    """

    agreements: Sequence[AgreementRow]
    people_of: Callable[[AgreementRow], Words]
    _lists: dict[str, Words] = field(default_factory=dict)
    _known: dict[frozenset[str] | None, Words] = field(default_factory=dict)

    def list_of(self, row: AgreementRow) -> Words:
        """Who agreed to it."""
        if row.agreement not in self._lists:
            self._lists[row.agreement] = self.people_of(row)
        return self._lists[row.agreement]

    def outside(self, features: Iterable[str] | None) -> Words:
        """Whom a release of these columns does not count for: sorted tags."""
        key = None if features is None else frozenset(features)
        if key not in self._known:
            found = [self.list_of(row) for row in self.agreements if row.covers(key)]
            self._known[key] = np.unique(np.concatenate(found)) if found else NOBODY
        return self._known[key]

    def charged(self, people: Words, features: Iterable[str] | None) -> Words:
        """Those of some people whom a release of these columns counts for."""
        outside = self.outside(features)
        return people[~is_among(people, outside)] if len(outside) else people

    def counts(self, people: Words, features: Iterable[str]) -> dict[str, int]:
        """How many of some people each agreement leaves without a promise; everybody counts once."""
        wanted, left, found = frozenset(features), people, {}
        for row in self.agreements:
            if row.covers(wanted):
                own = is_among(left, self.list_of(row))
                found[row.agreement] = int(own.sum())
                left = left[~own]
        return found

    def in_all(self, more: Words) -> int:
        """How many people were handed over once some more are; who was erased counts again."""
        lists = [self.list_of(row) for row in self.agreements]
        erased = sum(row.rows - len(tags) for row, tags in zip(self.agreements, lists, strict=True))
        return len(np.unique(np.concatenate([*lists, more]))) + erased


def features_of(row: Listed) -> list[str] | None:
    """The columns that a release is made of; None where its record does not say it."""
    found = row.title.get("features")
    named = isinstance(found, list) and all(isinstance(name, str) for name in found)
    return found if named else None


def agreement_of(agreement: str, body: Mapping[str, Any], before: int, time: str, entry: int) -> AgreementRow:
    """The agreement that an entry tells of; ``before`` is how many people were handed over before it."""
    rows, in_all = (check.integer(name, body[name], at_least=1) for name in ("rows", "in_all"))
    if in_all < max(rows, before):
        raise ValueError(f"{in_all:,} people in all are fewer than {max(rows, before):,}")
    columns = tuple(map(str, body["columns"]))
    if not columns:
        raise ValueError("it has no columns")
    return AgreementRow(
        agreement=agreement, people=str(body["people"]), columns=columns, to=str(body["to"]), rows=rows,
        in_all=in_all, sha256=str(body["sha256"]), title=body["title"], time=time, entry=entry,
    )  # fmt: skip
