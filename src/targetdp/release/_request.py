"""A request: what a program official asks a data holder for. It is never trusted."""

import hashlib
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from targetdp._core import Floats, check
from targetdp._files import (
    MOST_PROBLEMS,
    Delta,
    Distance,
    Epsilon,
    Name,
    Reason,
    StrictModel,
    canonical,
    explain,
    one_line,
    shown,
    toml_key,
    toml_value,
)
from targetdp.guarantee import Guarantee
from targetdp.mechanisms import LEAST_NOISE, MOST_PROGRAMS, MOST_SCORES, weights_matrix
from targetdp.release._decision._asked import AskedDecision, decisions_must_fit
from targetdp.release._decision._question import Question
from targetdp.release._flat import must_be_flat
from targetdp.release._policy import CLASSIC, Mechanism, ReleaseKind
from targetdp.release._trust._keys import SigningKey, is_signed
from targetdp.table import first_names

LARGEST_FILE = 2 * 2**20
"""Bytes: a weight for each of the most columns that a release may have fits in half of it."""
_SCORE = re.compile("[A-Za-z][A-Za-z0-9_]{0,62}")
"""Names of scores go into what the data holder signs: they are names, and cannot be sentences."""
_RELEASE = "^[0-9a-f]{6,64}$"
HOLDERS = frozenset(
    """
    accept_missing accept_weights agreed bounds columns desk engine for force gaps group_size id impute keep
    keep_order key keys kinds ledger limit made_for name no_sample output override part partitions plan policy
    population pseudonymize pseudonyms public reason requests sample scales scales_epsilon score_sample
    some_have_left spelling table units yes
    """.split()  # noqa: SIM905 (a list is easier to read so)
)
"""Fields that somebody might put into a request, and that are the data holder's to decide."""

TunedOn = Literal["public", "synthetic", "this-data"]


def _weights(value: Any) -> tuple[float, ...]:
    """Numbers are checked where all numbers are; pydantic would take text or a truth value for one."""
    given = value if isinstance(value, list | tuple) else [value]
    try:
        return tuple(check.number("weight", one) for one in given)
    except (TypeError, ValueError) as error:
        raise ValueError("a weight must be a finite number") from error


def _day(text: str) -> str:
    """A day as it is written in the request; words would be an instruction to whoever reads it."""
    try:
        written = date.fromisoformat(text).isoformat()
    except ValueError:
        written = None
    if written != text:
        raise ValueError(f"{shown(text)} is no day: write it as 2026-11-19")
    return text


_Weights = Annotated[tuple[float, ...], BeforeValidator(_weights, json_schema_input_type=float | list[float])]
_Id = Annotated[str, Field(pattern=_RELEASE)]


class RequestSignature(StrictModel):
    """Ed25519 over everything else in a request."""

    key: str
    value: str


class Request(StrictModel):
    """What somebody asks for. Nothing else is a field: the rest is the data holder's to decide.

    Args:
        release: ``"rows"``, all features with noise, ``"scores"``, weighted sums of them, or
            ``"decisions"``, one yes or no for each person.
        features: The columns that are asked for; None for all that the policy allows.
        B: People within this distance are hidden from each other.
        epsilon: ε of the guarantee.
        delta: δ of the guarantee; None for the smaller of the policy's and 1/(rows + 1).
        mechanism: Which noise; by default the least that keeps the promise.
        scores: Names of the scores.
        weights: For each feature one weight, or one for each score.
        decisions: What is decided about each person; several are taken together, at B = 2.
        learned_from: The release that weights, or what decisions rest on, were learned from.
        leave_out: Releases whose people are left out.
        tuned_on: Which data the setting was chosen on.
        program: What the release is for.
        asked_by: Who asks.
        asked_on: On which day, as in ``"2026-11-19"``.
        why: Why.
        limits: What whoever asks wants at the least, in their own words.
        page: Fingerprint of the page or sweep that the setting was chosen on.
        signature: Of whoever asks.

    Example:
        >>> Request(B=0.25, epsilon=4).guarantee(delta=1e-6)
        Guarantee(B=0.25, epsilon=4.0, delta=1e-06)
    """

    model_config = ConfigDict(title="targetdp request")

    release: ReleaseKind = Field(
        default="rows",
        description="rows: all features with noise; scores: weighted sums of them; decisions: yes or no",
    )
    features: tuple[str, ...] | None = Field(
        default=None,
        min_length=1,
        description="columns that are asked for; by default all that the policy allows",
    )
    B: Distance = Field(description="people within this distance are hidden from each other")
    epsilon: Epsilon = Field(description="ε of the guarantee")
    delta: Delta | None = Field(
        default=None,
        description="δ of the guarantee; by default the smaller of the policy's and 1/(rows + 1)",
    )
    mechanism: Mechanism = LEAST_NOISE
    scores: tuple[str, ...] = Field(default=(), description="names of the scores; by default one, score")
    weights: dict[str, _Weights] | None = Field(
        default=None, min_length=1, description="by feature: one number, or one for each score"
    )
    decisions: tuple[AskedDecision, ...] = Field(
        default=(), max_length=MOST_PROGRAMS, description="what is decided about each person"
    )
    learned_from: _Id | None = Field(
        default=None,
        description="id of the release, or agreement, that what is asked was learned from",
    )
    leave_out: tuple[_Id, ...] = Field(
        default=(), max_length=100, description="ids of releases, or agreements, whose people are left out"
    )
    tuned_on: TunedOn | None = Field(default=None, description="which data the setting was chosen on")
    sample_only: bool = Field(default=False, strict=True, description="only people of a labelled sample")
    program: Name | None = Field(default=None, description="what the release is for")
    asked_by: Name | None = Field(default=None, description="who asks")
    asked_on: Annotated[str, AfterValidator(_day)] | None = Field(
        default=None, description="on which day, as in 2026-11-19"
    )
    why: Reason | None = Field(default=None, description="why")
    limits: tuple[Reason, ...] = Field(
        default=(), max_length=20, description="what whoever asks wants at the least, in words"
    )
    page: Annotated[str, Field(pattern="^[0-9a-f]{16,64}$")] | None = Field(
        default=None, description="fingerprint of the page or sweep that the setting was chosen on"
    )
    signature: RequestSignature | None = None

    @model_validator(mode="before")
    @classmethod
    def _names_no_field_of_the_holder(cls, given: Any) -> Any:
        named = sorted(HOLDERS & set(given)) if isinstance(given, Mapping) else []
        if named:
            raise ValueError(
                f"{', '.join(named)}: the data holder decides about that, in policy.toml, and no request "
                "does; leave it out"
            )
        return given

    @field_validator("features")
    @classmethod
    def _once_each(cls, features: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if twice := check.twice(features or ()):
            raise ValueError(f"features names {twice[0]!r} twice: name each column once")
        return features

    @model_validator(mode="after")
    def _agree(self) -> "Request":
        kinds = {"scores": ("scores", "weights"), "decisions": ("decisions",)}
        for kind, names in kinds.items():
            wrong = [name for name in names if getattr(self, name)]
            if wrong and kind != self.release:
                raise ValueError(f'{", ".join(wrong)} belongs to release = "{kind}"')
        if self.sample_only and self.release != "rows":
            raise ValueError('sample_only belongs to release = "rows": leave it out')
        if self.release == "rows":
            if self.learned_from is not None:
                raise ValueError('learned_from belongs to release = "scores" or "decisions"')
            return self
        if self.release == "decisions":
            noise = None if self.mechanism == LEAST_NOISE else self.mechanism
            others = {"features": self.features, "delta": self.delta, "mechanism": noise}
            decisions_must_fit(self.decisions, self.B, others)
            scores_must_differ(scores_must_be_plain(self.released, "decisions.name"))
            _ = self.questions
            return self
        if self.weights is None:
            raise ValueError('release = "scores" needs weights: a number for each feature')
        if not self.scores:
            object.__setattr__(self, "scores", ("score",))
        if len(self.scores) > MOST_SCORES:
            raise ValueError(
                f"scores names {len(self.scores):,} columns: at most {MOST_SCORES}, since each is paid for "
                "with noise on all of them"
            )
        scores_must_differ(scores_must_be_plain(self.scores))
        q = len(self.scores)
        wrong = [name for name, row in self.weights.items() if len(row) != q]
        if wrong:
            raise ValueError(
                f"{first_names(map(shown, wrong), MOST_PROBLEMS)}: {len(self.weights[wrong[0]])} weights, "
                f"and {q} "
                f"score{'s are' if q > 1 else ' is'} asked for; give one weight for each"
            )
        check.dimensions(len(self.weights), "number of features")
        _ = self.matrix
        if self.features is not None and set(self.features) != set(self.weights):
            raise ValueError("features and weights name different columns: leave out features")
        return self

    @cached_property
    def questions(self) -> tuple[Question, ...]:
        """The decisions as they are taken."""
        return tuple(Question.of(one, self.B) for one in self.decisions)

    @property
    def released(self) -> tuple[str, ...]:
        """Names of the scores or decisions that come out in place of features."""
        return self.scores or tuple(one.name for one in self.decisions)

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The columns that are asked for; None for all that the policy allows."""
        if self.decisions:
            return tuple(dict.fromkeys(name for one in self.decisions for name in one.takes))
        return tuple(self.weights) if self.weights is not None else self.features

    @property
    def classic(self) -> bool:
        """Whether decisions are made of columns as they are, under classic differential privacy."""
        return self.release == "decisions" and self.B == CLASSIC

    @cached_property
    def matrix(self) -> Floats:
        """A row of weights for each score, a column for each feature in the order of ``weights``."""
        return weights_matrix(np.array(list((self.weights or {}).values())).T)

    def weights_for(self, features: Sequence[str]) -> Floats:
        """The weights for features in another order; they are the same ones."""
        places = {name: place for place, name in enumerate(self.weights or {})}
        return np.ascontiguousarray(self.matrix[:, [places[name] for name in features]])

    def guarantee(self, delta: float) -> Guarantee:
        """What is asked for, with the δ that the desk has settled."""
        return Guarantee(self.B, self.epsilon, delta)

    # Pydantic would compare the matrix, too, which is no yes or no.
    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Request):
            return NotImplemented
        return (self._content(), self.signature) == (other._content(), other.signature)

    def __hash__(self) -> int:
        return hash(self._content())

    @property
    def sha256(self) -> str:
        """Of everything that is asked for, comments and signature apart."""
        return hashlib.sha256(self._content().encode()).hexdigest()

    def message(self) -> bytes:
        """What is signed of a request. The words keep a signature from passing for one of something else."""
        return f"targetdp request {self._content()}".encode()

    def signed(self, key: SigningKey) -> "Request":
        """The request with somebody's signature."""
        return self.model_copy(
            update={"signature": RequestSignature(key=key.public, value=key.sign(self.message()))}
        )

    @property
    def signer(self) -> str | None:
        """The public key that signed it; a ValueError if the signature does not fit."""
        if self.signature is None:
            return None
        if not is_signed(self.signature.key, self.signature.value, self.message()):
            raise ValueError(
                "signature does not fit the request: it was changed after it was signed; sign it again"
            )
        return self.signature.key

    def _content(self) -> str:
        return canonical(self.model_dump(mode="json", exclude={"signature"}))

    def text(self, *comments: str) -> str:
        """The request as a file (TOML), read back and compared before it is handed over."""
        plain = self.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
        decisions = plain.pop("decisions", [])
        tables = {name: plain.pop(name) for name in ("weights", "signature") if name in plain}
        lines = [f"# {one_line(comment)}" for comment in comments]
        lines.append(f"release = {toml_value(self.release)}")
        lines += [f"{name} = {toml_value(value)}" for name, value in plain.items() if name != "release"]
        for one in decisions:
            inner = {name: one.pop(name) for name in ("weights", "additive") if name in one}
            lines += ["", "[[decisions]]", *(f"{name} = {toml_value(value)}" for name, value in one.items())]
            for name, table in inner.items():
                lines += [f"[decisions.{name}]", *_entries(table)]
        for name, table in tables.items():
            lines += ["", f"[{name}]", *_entries(table)]
        text = "\n".join(lines) + "\n"
        if parse_request(text).model_dump() != self.model_dump():  # cached arrays are no fields
            raise ValueError("the request cannot be written as a file: name each column in plain characters")
        return text


def _entries(table: Mapping[str, Any]) -> Iterable[str]:
    """The lines of a table; a list of one is written as the one."""
    for key, value in table.items():
        one = isinstance(value, list) and len(value) == 1
        yield f"{toml_key(key)} = {toml_value(value[0] if one else value)}"


def read_request(path: Path) -> Request:
    """The request in a file, or a ValueError that says everything that is wrong with it."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise ValueError(f"request {path} cannot be read: {error.strerror}") from error
    if len(data) > LARGEST_FILE:
        raise ValueError(f"request {path} has more than {LARGEST_FILE:,} bytes: ask for fewer scores")
    try:
        return parse_request(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError(f"request {path} cannot be read: it is not UTF-8 text") from error
    except (ValueError, TypeError) as error:
        raise ValueError(f"request {path}: {error}") from error


def parse_request(text: str) -> Request:
    """The request in a text, or a ValueError."""
    must_be_flat(text)
    try:
        return Request.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"it is not TOML: {error}") from error
    except ValidationError as error:
        raise ValueError(explain(error, Request)) from error
    except ValueError as error:  # thousands of digits, which Python does not turn into a number
        raise ValueError(f"a number in it cannot be read: {error}") from error
    except RecursionError as error:
        raise ValueError("it is nested too deeply: a request has plain fields and a few tables") from error


def make_request(**given: Any) -> Request:
    """A request from plain values, or a ValueError that names every field that is wrong."""
    try:
        return Request.model_validate(given)
    except ValidationError as error:
        raise ValueError(f"the request: {explain(error, Request)}") from error


def scores_must_be_plain(scores: tuple[str, ...], field: str = "scores") -> tuple[str, ...]:
    """Whoever asks for scores names them, and the data holder signs it: no name may say anything more."""
    for name in scores:
        if not _SCORE.fullmatch(name):
            raise ValueError(
                f"{field} = {shown(name)} is no plain name: use a letter, then up to 62 letters, digits or "
                "_, without accents"
            )
    return scores


def scores_must_differ(scores: tuple[str, ...], others: Iterable[str] = ()) -> tuple[str, ...]:
    """No score may have another's name, also for tools that do not tell capital letters from small ones."""
    taken = {name.casefold(): name for name in others}
    for name in scores:
        if (plain := name.casefold()) in taken:
            raise ValueError(
                f"{name!r} has the name of column {taken[plain]!r}, or one that many tools take for it: "
                "choose another name"
            )
        taken[plain] = name
    return scores
