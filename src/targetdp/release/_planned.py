"""Which line of the policy's plan a release is, and how many of each are left."""

from collections.abc import Iterable, Sequence

from targetdp._core import exact
from targetdp.release._ledger._history import History
from targetdp.release._ledger._limit import Limit
from targetdp.release._look._columns import Problem
from targetdp.release._policy import PlannedRelease
from targetdp.release._prepare import Prepared


def beyond_the_plan(prepared: Prepared, history: History) -> Iterable[Problem]:
    """Whether the plan, if there is one, has no such release left."""
    if not prepared.policy.plan:
        return
    left = left_of_plan(prepared.limit, prepared.policy.plan, history)
    lines = lines_for(prepared)
    if not any(left[place][1] for place in lines):
        what = "the plan has none of these releases left" if lines else "the release is not in the plan"
        offered = "; ".join(line_words(*one) for one in left)
        yield Problem(what, f"the plan has {offered}", "official", spent=bool(lines))
    if prepared.estimated:
        yield Problem(
            "a plan is made of releases whose scales are known, and this one would estimate some",
            "release once without a plan, or declare public scales",
        )


def planned(prepared: Prepared, history: History) -> int | None:
    """The line of the plan that a request is, and that is not used up."""
    left = left_of_plan(prepared.limit, prepared.policy.plan, history)
    return next((place for place in lines_for(prepared) if left[place][1]), None)


def lines_for(prepared: Prepared) -> list[int]:
    """The lines of the plan that a request is, used up or not. A δ that it leaves out is the first line's."""
    request, count, plan = prepared.request, len(prepared.released), prepared.policy.plan
    found = [
        place
        for place, line in enumerate(plan)
        if (line.release, line.columns, line.B, line.epsilon, line.mechanism)
        == (request.release, count, request.B, request.epsilon, request.mechanism)
        and request.delta in {None, line.delta}
    ]
    return [place for place in found if plan[place].delta == plan[found[0]].delta]


def left_of_plan(
    limit: Limit | None, plan: Sequence[PlannedRelease], history: History
) -> list[tuple[PlannedRelease, int]]:
    """The lines of the plan, and how many releases of each are left."""
    own = None if limit is None else limit.plan_id
    used = [row.title.get("planned") for row in history.counted if row.title.get("plan") == own]
    return [(line, line.times - used.count(place)) for place, line in enumerate(plan)]


def line_words(line: PlannedRelease, left: int) -> str:
    """A line of the plan, and how many releases of it are left, in words."""
    one = {"rows": "column", "scores": "score", "decisions": "decision"}[line.release]
    of = "rows of " if line.release == "rows" else ""
    noise = "" if line.release == "decisions" else f" with {line.mechanism} noise"
    return (
        f"{of}{line.columns} {one}{'s' * (line.columns > 1)} at B = {exact(line.B)}, "
        f"ε = {exact(line.epsilon)}, δ = {exact(line.delta)}{noise}, {left} of {line.times} left"
    )
