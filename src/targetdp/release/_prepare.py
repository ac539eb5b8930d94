"""What a request means at a desk: everything about a release that is settled without looking at a row."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa

from targetdp._core import Floats, Words, check
from targetdp._files import LONGEST_REASON
from targetdp.normalization import ColumnScales
from targetdp.release._agreed._named_people import learned_from_problems, people_left_out
from targetdp.release._certificate._caveats import AllReleases
from targetdp.release._decision._scoring import Scoring, scoring_of
from targetdp.release._desk import Desk
from targetdp.release._ids import Names
from targetdp.release._ledger._book import Ledger
from targetdp.release._ledger._history import History
from targetdp.release._ledger._limit import Limit
from targetdp.release._ledger._spaces import private_space, public_space, space_of_kinds
from targetdp.release._look._columns import (
    Problem,
    columns_that_are_not_released,
    columns_that_are_not_there,
    to_be_weighed_otherwise,
    weighed_that_are_no_numbers,
)
from targetdp.release._model._given import GivenModels, models_for
from targetdp.release._policy import Policy
from targetdp.release._request import Request, scores_must_differ
from targetdp.release._trust._approval import Approval, approval_of, policy_problems
from targetdp.table import Encoding


@dataclass(frozen=True)
class Recipe:
    """What an engine does to each row. It can be sent to workers; its keys are not shown when printed."""

    names: Names
    features: tuple[str, ...]
    released: tuple[str, ...]
    public: tuple[str, ...]
    encoding: Encoding
    """How columns of the table become the features."""
    left_out: Words = field(repr=False)
    estimated: tuple[int, ...]
    """Places of the features whose scales this release estimates."""
    scales: ColumnScales | None
    """Where all are known before anything is drawn, and any are needed."""
    scoring: Scoring | None = None
    """How people are scored, where one decision about each goes out."""
    models: GivenModels = field(default_factory=GivenModels, repr=False)
    """Those that score them."""
    scaled_from: Words = field(default_factory=lambda: np.empty(0, dtype=np.uint64), repr=False)
    """Loose tags of the people whom declared scales were learned from, as far as that is known."""

    @property
    def id(self) -> str:
        """The column that identifies a person."""
        return self.names.column

    @property
    def estimated_names(self) -> tuple[str, ...]:
        """These features."""
        return tuple(self.features[place] for place in self.estimated)

    @property
    def sources(self) -> tuple[str, ...]:
        """The columns of the table that features are made of."""
        return self.encoding.sources(self.features)

    @property
    def columns(self) -> list[str]:
        """All columns that are read."""
        return [self.id, *self.sources, *self.public]

    @property
    def as_they_are(self) -> bool:
        """Whether rows are neither scaled nor clipped, and whatever is missing is no problem."""
        return self.scoring is not None and self.scoring.classic

    @property
    def types(self) -> dict[str, pa.DataType]:
        """How to read what features are made of, where a file does not say it."""
        return self.encoding.types(self.features, () if self.scoring is None else self.scoring.texts)


@dataclass(frozen=True)
class Prepared:
    """A request under a policy. ``problems`` say what keeps it from being a release."""

    desk: Desk
    policy: Policy
    policy_version: int
    approval: Approval | None
    """Of the change that the policy is, where it needs one."""
    request: Request
    signer: str | None
    engine: str
    names: Names
    features: tuple[str, ...]
    weights: Floats | None = field(repr=False)
    scoring: Scoring | None = field(repr=False)
    models: GivenModels = field(repr=False)
    encoding: Encoding
    """How columns become features, as far as these need it."""
    public: dict[str, str]
    """Columns that are passed on, each with the reason why it is public."""
    known_scales: dict[str, tuple[float, float]]
    scaled_from: Words | None = field(repr=False)
    """Loose tags of the people whom declared scales were learned from; None where nobody knows."""
    scales_reason: str | None
    """Why declared scales are public."""
    scales_of: dict[str, str]
    """The releases that estimated the scales which are known, by column."""
    unscaled: tuple[str, ...]
    """Features whose public scales cannot be read: a problem."""
    left_out: Words = field(repr=False)
    left_out_releases: tuple[str, ...]
    limit: Limit | None
    """None where the policy's own plan does not fit it: a problem."""
    stated: AllReleases | None
    """What holds of all releases together."""
    new_people: str | None
    """Why people whom the ledger does not know, or other desks do, are nobody it should know."""
    problems: tuple[Problem, ...]

    @property
    def ruling(self) -> tuple[Policy, int, Approval | None]:
        """What goes on record of the policy."""
        return self.policy, self.policy_version, self.approval

    @property
    def released(self) -> tuple[str, ...]:
        """Names of the columns that come out: the features with noise, scores, or decisions."""
        return self.request.released or self.features

    @property
    def numbers(self) -> tuple[str, ...]:
        """Features that are plain numbers: no declared kind says how far apart their values are."""
        return self.encoding.numbers_only(self.features)

    @property
    def told(self) -> Encoding:
        """How columns become features, for the record; what a model takes, it takes as it is."""
        return self.encoding.used(self.features if self.scoring is None else self.scoring.numbers)

    @property
    def estimated(self) -> tuple[str, ...]:
        """Features whose scales this release estimates, and pays for."""
        if self.request.classic:
            return ()
        known = {*self.known_scales, *self.unscaled}
        return tuple(name for name in self.features if name not in known)

    @property
    def scales_source(self) -> Literal["declared", "private", "earlier", "none"]:
        """Where the column scales come from; decisions under classic privacy need none."""
        if self.request.classic:
            return "none"
        if self.policy.scales.source == "public" or not self.numbers:
            return "declared"
        return "private" if self.estimated or self.unscaled else "earlier"

    def space(self, release: str) -> dict[str, str]:
        """For each feature, which scales it has in a release: where they change, distances do."""
        if self.request.classic:  # what is told does not depend on distances
            return {}
        kinds = space_of_kinds(self.encoding, self.features)
        declared = self.policy.scales.source == "public"
        known = {
            name: public_space(center, scale) if declared else private_space(self.scales_of[name])
            for name, (center, scale) in self.known_scales.items()
            if name not in kinds
        }
        return kinds | known | dict.fromkeys(self.estimated, private_space(release))

    def recipe(self) -> Recipe:
        """What an engine needs of it."""
        estimated, known, source = self.estimated, None, self.scales_source
        if not estimated and not self.unscaled and source != "none":
            known = ColumnScales(*self._arrays(self.known_scales), source)
        return Recipe(
            self.names, self.features, self.released, tuple(self.public), self.encoding, self.left_out,
            tuple(self.features.index(name) for name in estimated), known, self.scoring, self.models,
            np.empty(0, dtype=np.uint64) if self.scaled_from is None else self.scaled_from,
        )  # fmt: skip

    def scales_with(self, drawn: ColumnScales) -> ColumnScales:
        """All scales, once those that were not known have been drawn."""
        new = zip(drawn.center.tolist(), drawn.scale.tolist(), strict=True)
        every = self.known_scales | dict(zip(self.estimated, new, strict=True))
        return ColumnScales(*self._arrays(every), "private", drawn.spent)

    def _arrays(self, scales: dict[str, tuple[float, float]]) -> tuple[Floats, Floats]:
        both = np.array([scales[name] for name in self.features])
        return both[:, 0], both[:, 1]


def prepare(
    desk: Desk, ledger: Ledger, request: Request, columns: Sequence[str], place: str, engine: str,
    new_people: str | None = None, models: Sequence[Path | str] = (),
) -> Prepared:  # fmt: skip
    """Hold a request against the desk's policy and a table's columns, and settle what follows from them.

    Everything that is wrong is among the result's ``problems``; only what leaves nothing to look at is an
    error.
    """
    policy, history = desk.policy, ledger.history
    version = history.policy_version + (history.policy != policy)
    problems = [Problem(*one) for one in policy_problems(desk, history)]
    signer = _signer(request, policy, problems)
    here = policy.of_table(columns)
    encoding, wanted = here.encoding, request.columns or here.columns.release
    # Whoever asks for rows names columns or features of them; what is weighed are features.
    features = encoding.expanded(wanted) if request.release == "rows" else wanted
    may_go_out = here.columns.release + (policy.columns.decide if request.classic else ())
    problems += columns_that_are_not_released(features, may_go_out, encoding)
    no_numbers = weighed_that_are_no_numbers(request, encoding)
    problems += to_be_weighed_otherwise(no_numbers, encoding)
    public, sources = dict(policy.columns.public), encoding.sources(features)
    problems += columns_that_are_not_there((policy.id.column, *sources, *public), columns, place)
    problems += _beyond_the_policy(request, policy)
    if request.released:
        try:
            scores_must_differ(request.released, (policy.id.column, *features, *sources, *public))
        except ValueError as error:
            told = str(error).removesuffix(": choose another name")
            problems.append(Problem(told, "ask for it under another name", "official"))
    there = {*columns} & {*may_go_out} - {*no_numbers}
    allowed = tuple(name for name in features if encoding.source(name) in there)
    encoding = encoding.used(allowed)
    scaled = () if request.classic else encoding.numbers_only(allowed)
    known, scales_of, unscaled = _scales(desk, scaled, history, problems)
    known |= {} if request.classic else encoding.scales(allowed)
    scaled_from, reason = _record_of_scales(desk, scaled, problems)
    given = models_for(request.decisions, models, policy.models.microseconds)
    problems += [Problem(one, "nobody's rows were looked at for that", "official") for one in given.problems]
    limit = _limit(policy, problems)
    left_out, rows, wrong = people_left_out(request, ledger)
    problems += [Problem(*one) for one in (*wrong, *learned_from_problems(request, history))]
    return Prepared(
        desk=desk, policy=policy, policy_version=version, approval=approval_of(desk, history)[0],
        request=request, signer=signer, engine=engine,
        names=desk.names(), features=allowed,
        weights=request.weights_for(allowed) if request.weights is not None else None,
        scoring=scoring_of(request.questions, encoding, given.texts(request.decisions))
        if request.decisions
        else None,
        models=given,
        encoding=encoding, public={n: why for n, why in public.items() if n in columns},
        scaled_from=scaled_from, scales_reason=reason, known_scales=known, scales_of=scales_of,
        unscaled=unscaled, left_out=left_out, left_out_releases=rows,
        limit=limit, stated=None if limit is None else _stated(history, limit, problems),
        new_people=None
        if new_people is None
        else check.text("new_people", new_people, longest=LONGEST_REASON),
        problems=tuple(problems),
    )  # fmt: skip


def _stated(history: History, limit: Limit, problems: list[Problem]) -> AllReleases | None:
    """What holds of all releases together; that nothing does is a problem."""
    try:
        return history.stated(limit)
    except ValueError as error:
        problems.append(Problem(str(error), "no further release can be made at this desk"))
        return None


def _limit(policy: Policy, problems: list[Problem]) -> Limit | None:
    """What all releases may cost together; a plan that does not fit is a problem."""
    try:
        return Limit.of(policy)
    except ValueError as error:
        problems.append(Problem(str(error), "plan less, or raise [limit]; targetdp plan --releases proposes"))
        return None


def _signer(request: Request, policy: Policy, problems: list[Problem]) -> str | None:
    """Who signed a request; a request that is not accepted is a problem."""
    try:
        key = request.signer
    except ValueError as error:
        problems.append(Problem(str(error), "nothing is released to whoever changed it", "official"))
        return None
    name = None if key is None else policy.requests.name_of(key)
    if policy.requests.accept == "signed" and name is None:
        by = "not signed" if key is None else "signed by nobody whom [requests.keys] names"
        problems.append(
            Problem(
                f"the request is {by}",
                "whoever asks signs it (targetdp request sign), and you name her key in policy.toml",
                "official",
            )
        )
    return key


def _beyond_the_policy(request: Request, policy: Policy) -> Iterable[Problem]:
    """What one release asks for too much of."""
    most = policy.release
    if request.epsilon > most.epsilon:
        yield Problem(
            f"epsilon = {request.epsilon:g} is more than one release may have",
            f"ask for at most {most.epsilon:g}", "official",
        )  # fmt: skip
    if request.delta is not None and request.delta > most.delta:
        yield Problem(
            f"delta = {request.delta:g} is more than one release may have",
            f"ask for at most {most.delta:g}, or leave it out", "official",
        )  # fmt: skip


def _scales(
    desk: Desk, features: tuple[str, ...], history: History, problems: list[Problem]
) -> tuple[dict[str, tuple[float, float]], dict[str, str], tuple[str, ...]]:
    """The scales that are known before anything is drawn, which releases have them, and what has none."""
    policy = desk.policy
    if policy.scales.source == "public":
        try:
            scales = desk.scales.of(features) if features else None
        except ValueError as error:
            problems.append(Problem(str(error), "see scales.toml at the desk"))
            scales = None
        if scales is None:
            return {}, {}, features
        both = zip(scales.center.tolist(), scales.scale.tolist(), strict=True)
        return dict(zip(features, both, strict=True)), {}, ()
    earlier = history.scales()
    known = {name: (earlier[name]["center"], earlier[name]["scale"]) for name in features if name in earlier}
    return known, {name: str(earlier[name]["release"]) for name in known}, ()


def _record_of_scales(
    desk: Desk, scaled: tuple[str, ...], problems: list[Problem]
) -> tuple[Words | None, str | None]:
    """Whom public scales were learned from, where that is known, and why they are public."""
    nobody = np.empty(0, dtype=np.uint64)
    if desk.policy.scales.source != "public" or not scaled:
        return nobody, None
    try:
        record = desk.scales.record
    except ValueError:  # said before, with the scales themselves
        record = None
    if record is None:
        return None, None
    try:
        return nobody if record.other_people is not None else desk.scales.people(), record.reason
    except ValueError as error:
        problems.append(Problem(str(error), "see scales.toml at the desk"))
        return None, record.reason
