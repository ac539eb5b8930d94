"""The policy: what the data holder allows to go out, and under which limit. Nobody else writes it."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator

from targetdp._core import check
from targetdp._files import (
    MOST_PROBLEMS,
    Constant,
    Delta,
    Distance,
    Epsilon,
    Name,
    Number,
    Reason,
    StrictModel,
    canonical,
    explain,
    read_toml,
)
from targetdp.accounting import FilterKind
from targetdp.guarantee import Guarantee
from targetdp.mechanisms import LEAST_NOISE, MOST_PROGRAMS, mechanism_names
from targetdp.release._ids import Spelling
from targetdp.release._trust._keys import fingerprint_of
from targetdp.table import ANY, AnyKind, Dialect, Encoding, columns_like, unknown_column

CLASSIC = 2.0
"""No two rows of the unit ball are farther apart: what holds there holds for any two, classic."""
ALL = "all"
"""In [gaps]: every column that has no line of its own."""
ReleaseKind = Literal["rows", "scores", "decisions"]
MECHANISMS = (LEAST_NOISE, *mechanism_names())
Mechanism = Annotated[
    str,
    BeforeValidator(lambda value: check.choice("mechanism", value, MECHANISMS)),
    Field(description=f"one of {', '.join(MECHANISMS)}"),
]


class IdPolicy(StrictModel):
    """How people are identified."""

    column: str = Field(min_length=1, description="the column that identifies a person; one row per person")
    pseudonyms: bool = Field(default=True, description="whether keyed hashes go out in place of ids")
    spelling: Spelling = Spelling()


class ColumnPolicy(StrictModel):
    """Which columns may go out."""

    release: tuple[str, ...] = Field(
        min_length=1,
        description="columns that may be released with noise; in a name, * stands for anything",
    )
    decide: tuple[str, ...] = Field(
        default=(),
        description="further columns that decisions at B = 2 may look at, which never go out themselves",
    )
    public: dict[str, Reason] = Field(
        default_factory=dict,
        description="columns that are public, each with the reason why: passed on as they are",
    )

    def allows(self, name: str) -> bool:
        """Whether a column may be released with noise, by its name alone."""
        return name not in {*self.decide, *self.public} and name in columns_like(self.release, [name])

    def of_table(self, names: Sequence[str], id_column: str) -> "ColumnPolicy":
        """The same with the names of a table's columns in place of patterns: no row has a part in it."""
        if not any(ANY in one for one in self.release):
            return self
        others = {id_column, *self.decide, *self.public}
        found = columns_like(self.release, [name for name in names if name not in others])
        # What the table does not have is told under the name that it has here.
        missing = [name for name in found if name not in names]
        return self.model_copy(update={"release": (*(name for name in names if name in found), *missing)})


class AgreedPolicy(StrictModel):
    """Who may be handed over as they are: people who agreed to it. Nothing is promised to them."""

    to: Reason = Field(description="what they agreed to, in a few words: it is told wherever they are")
    columns: tuple[str, ...] = Field(
        min_length=1, description="columns that go out as they are, about people who agreed, and no others"
    )
    at_most: Annotated[int, Field(ge=1, strict=True)] = Field(
        description="how many people may be handed over, all agreements together"
    )


class ModelPolicy(StrictModel):
    """How models are run that somebody else has made, at B = 2."""

    microseconds: Annotated[int, Field(ge=1, le=10_000, strict=True)] = Field(
        default=100,
        description="for one row, at most: it decides when a release with a model is published",
    )


@dataclass(frozen=True)
class CsvPolicy(Dialect):
    """How CSV tables are written: they are read so, and nothing is found by looking at people's rows."""

    output: Literal["plain", "same"] = "plain"
    """Whether releases as CSV are written plainly, or the same way."""


class ScalesPolicy(StrictModel):
    """Where the centers and scales of columns come from."""

    source: Literal["public", "private"] = Field(
        default="private", description="public: the desk's scales.toml; private: estimated once, and paid for"
    )
    share: Annotated[Number, Field(gt=0, lt=1)] = Field(
        default=0.1, description="of the ε of the release that estimates private scales"
    )
    sha256: str | None = Field(default=None, description="of scales.toml: the desk fills it in")


class LimitPolicy(StrictModel):
    """What all releases together may cost one person."""

    B: Distance
    epsilon: Epsilon
    delta: Delta
    filter: FilterKind = Field(
        default="renyi",
        description="what is added up: ε of pure noise, μ² of normal noise, or Rényi divergences, for any",
    )
    order: Annotated[Number, Field(gt=1, le=1e6)] | None = Field(
        default=None, description="of Rényi divergences; default: one that leaves three quarters of ε"
    )
    classic: Epsilon | None = Field(
        default=None, description="ε at distance 2, for any two rows; default: what follows from ε at B"
    )

    @model_validator(mode="after")
    def _agree(self) -> "LimitPolicy":
        if self.order is not None and self.filter != "renyi":
            raise ValueError(f'order = {self.order:g} belongs to filter = "renyi": leave it out')
        if self.classic is not None and self.classic < self.epsilon:
            raise ValueError(
                f"classic = {self.classic:g} is below epsilon = {self.epsilon:g}: rows far apart are never "
                "harder to tell apart than near ones; give the same, or more"
            )
        return self

    def value(self) -> Guarantee:
        """The limit as a guarantee."""
        return Guarantee(self.B, self.epsilon, self.delta)


class ReleasePolicy(StrictModel):
    """What one release may ask for at most."""

    epsilon: Epsilon
    delta: Delta
    large_delta: Reason | None = Field(
        default=None, description="why δ may be above 1/rows, where a request asks for that"
    )


class PlannedRelease(StrictModel):
    """A kind of release that is planned, and how many times: exactly so, since all are charged at once."""

    release: ReleaseKind
    columns: Annotated[int, Field(ge=1, strict=True)] = Field(
        description="how many columns, scores or decisions it has: the noise depends on it"
    )
    B: Distance
    epsilon: Epsilon
    delta: Annotated[Number, Field(ge=0, lt=1)] = Field(default=0, description="0 for decisions, only")
    mechanism: Mechanism = LEAST_NOISE
    times: Annotated[int, Field(ge=1, strict=True)] = 1

    @model_validator(mode="after")
    def _agree(self) -> "PlannedRelease":
        if (self.release == "decisions") != (self.delta == 0):
            raise ValueError(
                f"delta = {self.delta:g} with {self.release}: rows and scores need one above 0, decisions "
                "have none"
            )
        if self.release == "decisions" and self.mechanism != LEAST_NOISE:
            raise ValueError(
                f"mechanism = {self.mechanism!r} with decisions: they have no noise; leave it out"
            )
        if self.release == "decisions" and self.columns > (MOST_PROGRAMS if self.B == CLASSIC else 1):
            raise ValueError(
                f"columns = {self.columns} with decisions at B = {self.B:g}: up to {MOST_PROGRAMS} are taken "
                "together at B = 2, and one below"
            )
        return self


class RequestsPolicy(StrictModel):
    """Whose requests are answered."""

    accept: Literal["any", "signed"] = Field(
        default="any", description="any: after you have looked at it; signed: only by one of the keys"
    )
    keys: dict[Name, str] = Field(
        default_factory=dict, description="public keys of officials, by their names"
    )
    tell: bool = Field(default=True, description="whether an official may be told what would be accepted")

    @model_validator(mode="after")
    def _has_keys(self) -> "RequestsPolicy":
        for key in self.keys.values():
            fingerprint_of(key)
        if self.accept == "signed" and not self.keys:
            raise ValueError('accept = "signed" needs keys: name at least one in [requests.keys]')
        return self

    def name_of(self, key: str) -> str | None:
        """The name under which a key is pinned."""
        return next((name for name, own in self.keys.items() if own == key), None)


class Policy(StrictModel):
    """What a data holder allows.

    Args:
        name: What the desk is called, wherever something goes out.
        id: How people are identified.
        columns: Which columns may go out.
        kinds: Of columns that are no plain numbers: how a value becomes numbers, the same for every table.
        gaps: Declared constants for missing values, by column.
        scales: Where centers and scales of columns come from.
        csv: How CSV tables are written.
        models: How models are run that somebody else has made.
        agreed: Whether people who agreed to it may be handed over as they are; without it, nobody is.
        limit: What all releases together may cost one person.
        release: What one release may ask for at most.
        plan: Releases that are planned; without one, any within the limit.
        requests: Whose requests are answered.
        approvers: Public keys of people of whom one must sign whatever loosens the policy.
        reason: Why the policy was last changed.
    """

    model_config = ConfigDict(title="targetdp policy")

    name: Name
    id: IdPolicy
    columns: ColumnPolicy
    kinds: dict[str, AnyKind] = Field(
        default_factory=dict,
        description="by column: yes-or-no, categories, ordered levels and dates, and how they become numbers",
    )
    gaps: dict[str, Constant] = Field(
        default_factory=dict,
        description="declared constants for missing values, by column, or for all columns of numbers",
    )
    scales: ScalesPolicy = ScalesPolicy()
    csv: CsvPolicy = Field(default=CsvPolicy(), description="how CSV tables are written")
    models: ModelPolicy = ModelPolicy()
    agreed: AgreedPolicy | None = Field(
        default=None, description="people who agreed to be handed over as they are; without it, nobody is"
    )
    limit: LimitPolicy
    release: ReleasePolicy
    plan: tuple[PlannedRelease, ...] = ()
    requests: RequestsPolicy = RequestsPolicy()
    approvers: dict[Name, str] = Field(
        default_factory=dict,
        description="public keys, by names, of people of whom one must sign whatever loosens the policy",
    )
    reason: Reason | None = Field(default=None, description="why the policy was last loosened")

    @field_validator("columns")
    @classmethod
    def _differ(cls, columns: ColumnPolicy) -> ColumnPolicy:
        twice = check.twice([*columns.release, *columns.decide, *columns.public])
        if twice:
            raise ValueError(
                f"column {twice[0]!r} is named twice: it is released with noise, or decided by, or public"
            )
        return columns

    @field_validator("approvers")
    @classmethod
    def _have_keys(cls, approvers: dict[str, str]) -> dict[str, str]:
        for key in approvers.values():
            fingerprint_of(key)
        return approvers

    @model_validator(mode="after")
    def _agree(self) -> "Policy":
        others = {*self.columns.release, *self.columns.decide, *self.columns.public}
        known = {self.id.column, *others}
        if self.id.column in others:
            raise ValueError(f"column {self.id.column!r} identifies people: it cannot be released as another")
        if unknown := sorted(name for name in {*self.gaps} - {ALL, *known} if not self.columns.allows(name)):
            named = unknown_column(unknown[0], known)
            raise ValueError(f"gaps names {named}, which is not among the columns")
        if wrong := list(self._problems_of_kinds()):
            raise ValueError("; ".join(wrong[:MOST_PROBLEMS]))
        if self.agreed is not None:
            self._agreed_columns_are_known(self.agreed.columns)
        return self

    def _problems_of_kinds(self) -> Iterator[str]:
        """What is wrong with kinds and constants, taken together."""
        ours = [*self.columns.release, *self.columns.decide]
        for name in self.kinds:
            if name not in self.columns.decide and not self.columns.allows(name):
                yield f"kinds names {name!r}, which is neither in columns.release nor in columns.decide"
        others = [self.id.column, *self.columns.public, *(name for name in ours if name not in self.kinds)]
        for name in check.twice(
            [*others, *self.encoding.expanded(name for name in ours if name in self.kinds)]
        ):
            yield f"two columns would be called {name!r}, one of them by [kinds]: rename one in the table"
        if isinstance(self.gaps.get(ALL), str):
            yield f"gaps.{ALL} = {self.gaps[ALL]!r}: it is for all columns of numbers; give a number"
            return
        yield from self.encoding.problems()

    def of_table(self, names: Sequence[str]) -> "Policy":
        """What it says of a table with these columns; a ValueError if that makes no sense."""
        columns = self.columns.of_table(names, self.id.column)
        if columns is self.columns:
            return self
        own = {name: getattr(self, name) for name in Policy.model_fields}
        try:
            return Policy.model_validate(own | {"columns": columns})
        except ValidationError as error:
            raise ValueError(f"policy, for this table: {explain(error, Policy)}") from error

    @cached_property
    def encoding(self) -> Encoding:
        """How columns become numbers, and what stands for missing values."""
        every = self.gaps.get(ALL)
        plain = (
            name
            for name in (*self.columns.release, *self.columns.decide)
            if getattr(self.kinds.get(name), "kind", "number") == "number"
        )
        gaps = {} if every is None else dict.fromkeys(plain, every)
        return Encoding(self.kinds, gaps | {name: value for name, value in self.gaps.items() if name != ALL})

    def _agreed_columns_are_known(self, columns: Sequence[str]) -> None:
        if twice := check.twice(columns):
            raise ValueError(f"agreed.columns names {twice[0]!r} twice: name each column once")
        known = (*self.columns.release, *self.columns.decide)
        if unknown := sorted(
            name for name in {*columns} - {*self.columns.decide} if not self.columns.allows(name)
        ):
            named = f"agreed.columns names {unknown_column(unknown[0], known)}, which is"
            raise ValueError(
                f"{named} neither in columns.release nor in columns.decide: leave it out, or add it"
            )
        if kinds := sorted({*columns} & {*self.kinds}):
            raise ValueError(
                f"agreed.columns names {kinds[0]!r}, which has a kind: only plain numbers, and text of "
                "columns.decide, are handed over as they are; leave it out"
            )

    @property
    def sha256(self) -> str:
        """Of everything that the policy says, comments apart."""
        # Certificates have this number: what a policy does not say must not change it.
        usual: dict[str, object] = {"agreed": None, "csv": CsvPolicy(), "kinds": {}}
        unsaid = {name for name, value in usual.items() if getattr(self, name) == value}
        return hashlib.sha256(canonical(self.model_dump(mode="json", exclude=unsaid)).encode()).hexdigest()


def read_policy(path: Path) -> Policy:
    """The policy of a desk, or a ValueError that says everything that is wrong with it."""
    given = read_toml(path, "policy")
    try:
        return Policy.model_validate(given)
    except ValidationError as error:
        raise ValueError(f"policy {path}: {explain(error, Policy)}") from error
