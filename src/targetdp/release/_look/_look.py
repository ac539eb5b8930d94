"""A look before a release: what would go out, at what price, and everything that keeps it from going out."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

from targetdp._core import NothingLeftError, down, up
from targetdp.mechanisms import DROWNED, STEPS, DecisionLaw
from targetdp.release._agreed._named_people import agreed_in
from targetdp.release._certificate._agreed import no_promise
from targetdp.release._certificate._caveats import DELTA, format_guarantee
from targetdp.release._certificate._certificate import noise_length
from targetdp.release._decision._asked import describe_decision
from targetdp.release._draws import can_go_on
from targetdp.release._engine._base import Engine, Inspection
from targetdp.release._ledger._book import Ledger
from targetdp.release._ledger._elsewhere import DeskElsewhere
from targetdp.release._ledger._history import History
from targetdp.release._ledger._spending import Spending, over_limit, percent
from targetdp.release._look._columns import Problem
from targetdp.release._look._looks_at import looks_at
from targetdp.release._look._made_of import doubts, made_of
from targetdp.release._look._problems import delta_too_large, problems_of_rows, unknown_people
from targetdp.release._planned import beyond_the_plan, left_of_plan, planned
from targetdp.release._prepare import Prepared
from targetdp.release._staging import belongs, certificate_path
from targetdp.release._terms import ReleaseTerms, TooFewPeopleError, bound_of, make_terms

MANY_CLIPPED = 0.5
"""Share of rows that are clipped from which on the scales look wrong."""
_STEPS = 12
_ONE = {"rows": "column", "scores": "score", "decisions": "decision"}


class Refused(ValueError):  # noqa: N818 (it is what happened, and reads as such)
    """A release cannot be made; everything that keeps it from being made."""

    def __init__(self, look: "Look") -> None:
        self.look = look
        count = len(look.problems)
        listed = "\n".join(f"  - {problem}" for problem in look.problems)
        reply = f"\n{look.reply}" if look.reply else ""
        super().__init__(
            f"{count} thing{'s keep' if count > 1 else ' keeps'} this release from being made:\n{listed}"
            f"{reply}\nnothing was charged and nothing was published"
        )


class NothingLeft(Refused, NothingLeftError):  # noqa: N818 (as above)
    """Nothing but the limit, or the plan, keeps a release from being made: too little of it is left."""


@dataclass(frozen=True)
class Look:
    """Everything that is known before anything is drawn. It is for the data holder's eyes.

    ``terms`` and ``spending`` are None where a problem leaves nothing to work them out for; ``goes_on`` is
    the release of an earlier run that this one would finish, at no further cost.
    """

    prepared: Prepared
    inspection: Inspection
    terms: ReleaseTerms | None
    spending: Spending | None
    problems: tuple[Problem, ...]
    goes_on: str | None = None
    asked_before: str | None = None
    """The newest release that answered the same request."""
    planned: int | None = None
    """The line of the plan that the release is."""
    elsewhere: tuple[DeskElsewhere, ...] = ()
    """Other desks of the data holder that know some of these people, or cannot be asked."""
    history: History = field(default_factory=History, repr=False)
    looks_at: tuple[str, ...] = field(default=(), repr=False)
    """What decisions look at, in words."""
    watched: bool = True
    """Whether the data holder's configuration had a mark of the ledger, before the release."""
    read_as: str = ""
    """Which files the table is, and how they are read."""
    doubt: str = ""
    """How CSV files look written, where that is not as they are read."""

    @property
    def refusal(self) -> Refused:
        """What to raise if there are problems."""
        return (NothingLeft if all(one.spent for one in self.problems) else Refused)(self)

    @property
    def clipped(self) -> float | None:
        """The share of rows that are longer than 1 and will be clipped, where scales are known already."""
        count, seen = self.inspection.clipped, self.inspection
        return None if count is None or not seen.rows or seen.tally.counts else count / seen.rows

    @cached_property
    def largest_epsilon(self) -> float | None:
        """The largest ε that still fits, for this B and δ and these people; None if none does."""
        if self.spending is None or self.planned is not None:
            return None
        asked, high = self.prepared.request.epsilon, self.prepared.policy.release.epsilon
        if (self.spending.fits and asked == high) or self._fits(high):
            return high
        # Private scales cannot be had for a small ε, and below it nothing fits: begin with one that does.
        low = asked if asked < high and self._fits(asked) else 0.0
        for _ in range(_STEPS):
            middle = (low + high) / 2
            low, high = (middle, high) if self._fits(middle) else (low, middle)
        return low or None

    def _fits(self, epsilon: float) -> bool:
        try:
            terms = make_terms(self.prepared, max(1, self.inspection.rows), epsilon=epsilon)
        except (ValueError, OverflowError):
            return False
        return self.spending is not None and self.spending.with_charge(terms.charge)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the data holder should think about before it goes out."""
        return tuple(self._warnings())

    def _warnings(self) -> Iterator[str]:
        p, terms = self.prepared, self.terms
        if not p.desk.was_known:
            yield f"you have never used this desk before: {p.desk.path}; is it yours, and not a copy?"
        elif self.history.counted and not self.watched:
            yield "your configuration has no mark of this ledger: only certificates would tell an older copy"
        unknown = [other for other in self.elsewhere if other.gone or (other.problem and p.new_people)]
        for one in unknown:
            yield f"whether desk {one.path} knows these people cannot be told: {one.problem}"
        if self.doubt:
            yield f"the table looks written with {self.doubt}, and is read otherwise: see [csv] of the policy"
        if p.request.sample_only:
            yield "this is asked for about a labelled sample only: the table should have nobody else's row"
        if self.asked_before:
            yield f"this very request was answered before (release {self.asked_before[:12]}): it costs again"
        if p.public:
            yield f"passed on as they are, NOT protected: {', '.join(p.public)}"
        if not p.policy.id.pseudonyms:
            yield "ids go out in clear: whoever gets the table knows whose row is whose"
        if self.clipped is not None and self.clipped > MANY_CLIPPED:
            remedy = (
                "widen the scales (targetdp scales … --fit 0.9 on public data)"
                if p.policy.scales.source == "public"
                else "that is usual with many columns, each scaled for itself; wider scales can be declared "
                "public"
            )
            yield (
                f"{self.clipped:.1%} of rows are longer than 1 and will be clipped, so that only their "
                f"direction is left; {remedy}"
            )
        yield from doubts(p, self.inspection.spread, self.history)
        if terms is None or terms.law.noisy is None:
            return
        length = noise_length(terms.law.noisy)
        if length > DROWNED:
            fewer = (
                "release fewer columns, or learn on a private sample first and release a score"
                if p.weights is None else "ask for fewer scores, or a larger ε"
            )  # fmt: skip
            yield (
                f"the noise on a row has length {length:.2g}, and rows at most 1: it drowns any one person's "
                f"signal; {fewer}"
            )

    @property
    def lines(self) -> list[str]:
        """All of it in words, line by line."""
        p, rows = self.prepared, self.inspection.rows
        request = p.request
        count, one = len(p.released), _ONE[request.release]
        what = f"{count} {one}{'s' if count > 1 else ''}"
        asked = [f"asked for by {request.asked_by}" if request.asked_by else "asked for at this desk"]
        asked += [f"for {request.program}"] if request.program else []
        asked += [f"on {request.asked_on}"] if request.asked_on else []
        asked += [f"because “{request.why}”"] if request.why else []
        if p.signer is None and request.asked_by:
            asked.append("not signed")
        if p.signer is not None:
            asked.append(f"signed by {p.policy.requests.name_of(p.signer) or 'a key without a name here'}")
        lines = [
            f"desk {p.policy.name} ({p.desk.path})",
            *([f"table {self.read_as}"] if self.read_as else []),
            ", ".join(asked),
            *(f"who asks wants, in their words: “{limit}”" for limit in request.limits),
            f"what goes out: {what} about {rows:,} people ({', '.join(p.released[:12])}"
            f"{', …' if len(p.released) > 12 else ''}), "
            + ("under pseudonyms" if p.policy.id.pseudonyms else "under their ids")
            + (f"; {self.inspection.left_out:,} people are left out" if p.left_out_releases else ""),
        ]
        if p.weights is not None and p.features:
            lines.append(made_of(p, p.weights, self.inspection.spread))
        if self.terms is not None:
            lines += [f"no promise: {one}" for one in no_promise(self.terms.agreed, rows)]
        lines += [*(describe_decision(one) for one in request.decisions), *self.looks_at]
        if self.terms is not None:
            lines += self._promise(self.terms)
        lines += self._within()
        if self.clipped is not None:
            lines.append(f"for you only: {self.clipped:.1%} of rows are longer than 1 and will be clipped")
        elif p.estimated:
            lines.append(
                "how many rows are clipped is known when the scales are drawn, and that is with the release"
            )
        lines += self._budget()
        if self.terms is not None:
            lines += ["on these conditions:", *(f"  - {condition}" for condition in self.terms.conditions)]
        if self.goes_on is not None:
            lines.append(
                f"release {self.goes_on[:12]} was begun and not finished: this run finishes it with the same "
                "noise, and charges nothing more"
            )
        return lines

    def _promise(self, terms: ReleaseTerms) -> list[str]:
        lines = [f"what is promised: {format_guarantee(terms.guarantee)}, on the conditions below"]
        if terms.law.noisy is not None:
            length = noise_length(terms.law.noisy)
            lines += [
                DELTA,
                f"noise: {terms.name}, length {length:.2g} on a row (rows have length at most 1)",
            ]
        if terms.law.decision is not None:
            lines.append(_how_often_right(terms.law.decision))
        if terms.scales is not None:
            lines.append(
                f"of this, ε = {up(terms.scales.epsilon, 4)} pays for the scales of "
                f"{len(self.prepared.estimated)} columns, which later releases reuse"
            )
        return lines

    def _within(self) -> list[str]:
        """What distance B means for columns that are no plain numbers."""
        p = self.prepared
        return [] if p.request.classic else [
            f"within B, {line}" for line in p.encoding.within(p.features, p.request.B)
        ]  # fmt: skip

    def _budget(self) -> list[str]:
        s = self.spending
        if s is None:
            return []
        if self.planned is not None:
            p = self.prepared
            line, left = left_of_plan(p.limit, p.policy.plan, self.history)[self.planned]
            lines = [f"it is one of {left} of {line.times} that the plan has left, which is charged whole"]
        else:
            lines = [
                f"budget of those who have spent most: {percent(s.spent)} before, {percent(s.total)} after"
            ]
        if (largest := self.largest_epsilon) is not None:
            lines.append(f"largest ε that fits, at this B and δ: {float(down(largest, 3)):g}")
        if s.known:
            listed = ", ".join(f"{count:,} in {release[:12]}" for release, count in s.known.items())
            lines.append(f"of these people the ledger knows: {listed}")
        return lines

    @property
    def reply(self) -> str:
        """What may be told the official whose request is refused: what would be accepted."""
        if not self.prepared.policy.requests.tell or all(p.whose != "official" for p in self.problems):
            return ""
        policy, parts = self.prepared.policy, []
        if policy.plan:
            return "you may tell who asked: this desk releases what it has planned, and nothing else"
        request = self.prepared.request
        columns = policy.columns.release + (policy.columns.decide if request.classic else ())
        parts.append(f"columns among {', '.join(columns[:20])}")
        most = policy.release.epsilon if self.spending is None else self.largest_epsilon
        if most is None:
            return "you may tell who asked: nothing more about these people fits the limit of this desk"
        parts.append(f"B = {request.B:g} with ε up to {float(down(most, 3)):g}")
        if not request.decisions:
            parts.append(f"δ up to {policy.release.delta:g}, or none given")
        if policy.requests.accept == "signed":
            parts.append("signed with a key that the desk knows")
        return f"you may tell who asked: this desk would accept {'; '.join(parts)}"

    def record(self) -> dict[str, Any]:
        """All of it as plain data."""
        s, terms = self.spending, self.terms
        return {
            "desk": self.prepared.policy.name,
            "table": self.read_as or None,
            "people": self.inspection.rows,
            "left_out": self.inspection.left_out,
            "released": list(self.prepared.released),
            "guarantee": None if terms is None else {
                "B": terms.guarantee.B, "epsilon": terms.guarantee.epsilon, "delta": terms.guarantee.delta,
            },
            "mechanism": None if terms is None else terms.name,
            "noise_length": (
                None if terms is None or terms.law.noisy is None else noise_length(terms.law.noisy)
            ),
            "within_B": self._within(),
            "conditions": [] if terms is None else list(terms.conditions),
            "without_promise": [] if terms is None else [one.model_dump() for one in terms.agreed],
            "clipped_for_the_data_holder_only": self.clipped,
            "budget": None if s is None else {
                "spent": _finite(s.spent), "total": _finite(s.total), "limit": asdict(s.limit.stated),
                "classic": asdict(s.limit.classic), "largest_epsilon": self.largest_epsilon,
                "known": dict(s.known),
            },
            "goes_on_with": self.goes_on,
            "warnings": list(self.warnings),
            "problems": [{"what": p.what, "remedy": p.remedy, "whose": p.whose} for p in self.problems],
        }  # fmt: skip

    def _repr_html_(self) -> str:
        items = [
            *self.lines,
            *(f"warning: {w}" for w in self.warnings),
            *(f"problem: {p}" for p in self.problems),
        ]
        return "<ul>" + "".join(f"<li>{escape(str(item))}</li>" for item in items) + "</ul>"


def _how_often_right(law: DecisionLaw) -> str:
    """What bits are worth."""
    right = float(law.agreement([0.0])[0])
    if law.cells is None:
        return f"an answer is the true one in {right:.1%} of all draws, whoever it is about"
    farther = float(law.agreement([law.cells.width / STEPS])[0])
    return (
        f"an answer is the true one in {right:.1%} of all draws next to the cut, in {farther:.2%} one B "
        "away, and more often farther from it"
    )


def look(prepared: Prepared, engine: Engine, inspection: Inspection, ledger: Ledger) -> Look:
    """Put together what is known, and all that is wrong."""
    problems = [*prepared.problems, *problems_of_rows(prepared, engine, inspection)]
    terms = spending = goes_on = line = None
    history = ledger.history
    elsewhere = tuple(prepared.desk.known_elsewhere(inspection.people)) if inspection.rows else ()
    if inspection.rows and prepared.features and prepared.limit is not None:
        agreed = agreed_in(
            prepared.request, ledger, inspection.people, prepared.features, prepared.left_out_releases
        )
        try:
            terms = make_terms(prepared, inspection.rows, agreed=agreed)
        except TooFewPeopleError as error:
            problems.append(Problem("private scales cannot be estimated from so few people", str(error)))
        except ValueError as error:
            problems.append(Problem("no noise keeps this promise here", str(error), "official"))
        if terms is not None:
            problems += delta_too_large(prepared, terms, inspection.rows)
            goes_on = None if problems else _unfinished(prepared, terms, engine, inspection, history)
            line = planned(prepared, history) if goes_on is None else None
            # What is planned, or an earlier run has reserved, is charged already.
            charge = terms.charge if goes_on is None and line is None else None
            space = prepared.space(goes_on or "")
            spending = ledger.measure(prepared.limit, inspection.people, charge, space, prepared.features)
            if not spending.fits:
                remedy = "ask for a smaller ε, or leave out people who are in earlier releases"
                problems.append(
                    Problem(f"the limit would be passed: {over_limit(spending)}", remedy, "official", True)
                )
    if goes_on is None:
        problems += beyond_the_plan(prepared, history)
        if spending is not None and prepared.new_people is None:
            left_out = dict.fromkeys(prepared.left_out_releases, inspection.left_out)
            problems += unknown_people(inspection.rows, spending.known, left_out, elsewhere, history)
    asked = [
        row.release for row in history.counted
        if row.title.get("request") == prepared.request.sha256 and row.release != goes_on
    ]  # fmt: skip
    before = asked[-1] if asked and prepared.request.asked_by else None
    decided = None if terms is None or problems else terms.law.decision
    seen = () if decided is None else looks_at(prepared, decided, inspection.sample)
    return Look(
        prepared, inspection, terms, spending, tuple(problems), goes_on, before, line, elsewhere, history,
        seen, ledger.is_watched, engine.read_as, engine.doubt,
    )  # fmt: skip


def _unfinished(
    prepared: Prepared, terms: ReleaseTerms, engine: Engine, inspection: Inspection, history: History
) -> str | None:
    """The release that an earlier run began and did not finish, and whose draws this one would repeat."""
    reserved = [row for row in history.releases.values() if row.state == "reserved"]
    desk, bound = prepared.desk, bound_of(prepared, terms, inspection.people) if reserved else ""
    for row in reserved:
        if row.title.get("bound") != bound:
            continue
        # What is published, and only its ledger was not told, is done: another output is another release.
        journals = desk.drafts.glob("to-*/.*.targetdp/journal.json")
        proofs = (certificate_path(Path(row.title["output"])), *journals)
        done = any(belongs(path, row.release) for path in proofs)
        if not done and can_go_on(desk.drafts, row.release, bound, any_order=not engine.can_repeat):
            return row.release
    return None


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
