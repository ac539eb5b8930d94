"""The policy: what the data holder allows to go out, and under which limit. Nobody else writes it."""

import hashlib
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator

from targetdp._core import check
from targetdp._files import MOST_PROBLEMS, StrictModel, canonical, explain, read_toml, toml_key
from targetdp.accounting import FilterKind
from targetdp.guarantee import Guarantee
from targetdp.mechanisms import LEAST_NOISE, MOST_PROGRAMS, mechanism_names
from targetdp.release._ids import Spelling
from targetdp.release._trust._keys import fingerprint_of
from targetdp.table import AnyKind, Encoding

LONGEST_NAME, MOST_WORDS, LONGEST_REASON = 60, 6, 500
CLASSIC = 2.0
"""No two rows of the unit ball are farther apart: what holds there holds for any two, classic."""
ALL = "all"
"""In [gaps]: every column that has no line of its own."""


def _in_words(checked: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """What has the wrong type is a wrong value in a file: pydantic tells one, and lets the other through."""

    def validator(value: Any) -> Any:
        try:
            return checked(value)
        except TypeError as error:
            raise ValueError(str(error)) from error

    return validator


def plain_name(value: Any) -> str:
    """Names stand on signed pages: they name something, and cannot be sentences."""
    name = check.text("name", value, longest=LONGEST_NAME)
    plain = all(c.isalnum() or c in " _-'" or unicodedata.combining(c) for c in name)
    if not plain or len(name.split(" ")) > MOST_WORDS:
        raise ValueError(
            f"name = {name!r} is no plain name: use letters, digits, spaces, _, - and ', at most "
            f"{MOST_WORDS} words"
        )
    return name


_name = _in_words(plain_name)
_reason = _in_words(lambda value: check.text("reason", value, longest=LONGEST_REASON))
# Numbers are checked where all numbers are; pydantic would take text or a truth value for one.
_number = _in_words(lambda value: check.number("value", value))

Name = Annotated[str, BeforeValidator(_name)]
Reason = Annotated[str, BeforeValidator(_reason)]
Number = Annotated[float, BeforeValidator(_number)]
Constant = Annotated[
    float | str, BeforeValidator(lambda value: value if isinstance(value, str) else _number(value))
]
"""What stands for a missing value: a number, or a value of the column's kind."""
Distance = Annotated[Number, Field(gt=0, le=2)]
Epsilon = Annotated[Number, Field(gt=0)]
Delta = Annotated[Number, Field(gt=0, lt=1)]
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

    release: tuple[str, ...] = Field(min_length=1, description="columns that may be released with noise")
    decide: tuple[str, ...] = Field(
        default=(),
        description="further columns that decisions at B = 2 may look at, which never go out themselves",
    )
    public: dict[str, Reason] = Field(
        default_factory=dict,
        description="columns that are public, each with the reason why: passed on as they are",
    )


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
        if unknown := sorted(set(self.gaps) - {ALL, *known}):
            raise ValueError(f"gaps names {unknown[0]!r}, which is not among the columns")
        if wrong := list(self._problems_of_kinds()):
            raise ValueError("; ".join(wrong[:MOST_PROBLEMS]))
        if self.agreed is not None:
            self._agreed_columns_are_known(self.agreed.columns)
        return self

    def _problems_of_kinds(self) -> Iterator[str]:
        """What is wrong with kinds and constants, taken together."""
        ours = [*self.columns.release, *self.columns.decide]
        for name in self.kinds:
            if name not in ours:
                yield f"kinds names {name!r}, which is neither in columns.release nor in columns.decide"
        others = [self.id.column, *self.columns.public, *(name for name in ours if name not in self.kinds)]
        for name in check.twice(
            [*others, *self.encoding.expanded(name for name in ours if name in self.kinds)]
        ):
            yield f"two columns would be called {name!r}, one of them by [kinds]: rename one in the table"
        for name, value in self.gaps.items():
            try:
                kind = self.kinds.get(name)
                _number(value) if kind is None else kind.place(value)
            except (ValueError, TypeError) as error:
                yield f"gaps.{name} = {value!r}: {error}"
        for name, kind in self.kinds.items():
            if kind.gap_distance is not None and name not in self.encoding.gaps:
                yield (
                    f"kinds.{name} has gap_distance, and nothing stands for a missing value: say what does, "
                    f"in [gaps] {toml_key(name)} = …"
                )

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
        if unknown := sorted({*columns} - {*self.columns.release, *self.columns.decide}):
            raise ValueError(
                f"agreed.columns names {unknown[0]!r}, which is neither in columns.release nor in "
                "columns.decide: add it there, or leave it out"
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
        unsaid = {name for name in ("agreed", "kinds") if not getattr(self, name)}
        return hashlib.sha256(canonical(self.model_dump(mode="json", exclude=unsaid)).encode()).hexdigest()


def read_policy(path: Path) -> Policy:
    """The policy of a desk, or a ValueError that says everything that is wrong with it."""
    given = read_toml(path, "policy")
    try:
        return Policy.model_validate(given)
    except ValidationError as error:
        raise ValueError(f"policy {path}: {explain(error, Policy)}") from error
