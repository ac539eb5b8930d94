"""What keeps a release from being made, as far as rows, people and δ tell it."""

from collections.abc import Iterator, Mapping, Sequence

from targetdp._core import up
from targetdp.release._engine._base import Engine, Inspection
from targetdp.release._ledger._elsewhere import DeskElsewhere
from targetdp.release._ledger._history import History
from targetdp.release._look._columns import Problem
from targetdp.release._prepare import Prepared
from targetdp.release._terms import ReleaseTerms, is_large


def problems_of_rows(prepared: Prepared, engine: Engine, inspection: Inspection) -> Iterator[Problem]:
    """What is wrong with the rows themselves."""
    if not inspection.rows:
        why = "all its people are left out" if inspection.left_out else f"{engine.place} has no rows"
        yield Problem(why, "there is nothing to release")
        return
    numbered = engine.numbered and not prepared.left_out_releases
    if lines := inspection.tally.lines(rows_are_numbered=numbered):
        yield Problem(lines[0].removesuffix(":"), "\n".join(["", *(f"  {line}" for line in lines[1:])]))
    if inspection.repeated:
        yield Problem(
            f"id column {prepared.names.column!r} has duplicated values: {inspection.repeated:,} rows repeat "
            "an id, in the spelling of policy.toml",
            "one row per person; merge or drop the others",
        )
    if inspection.in_scales:
        yield Problem(
            f"the public scales were learned from {inspection.in_scales:,} of these people",
            "learn them from others (targetdp scales … --without TABLE leaves these out), or let them be "
            'estimated: scales.source = "private" in policy.toml; if these are other people whose ids look '
            "alike, say so on record (targetdp scales … --other-people REASON)",
        )
    yield from (
        Problem(one, "convert the model for this table's columns, or ask for others", "official")
        for one in inspection.not_taken
    )
    if prepared.request.classic:  # a column that tells nothing costs nothing there
        return
    ends = zip(prepared.features, inspection.lowest.tolist(), inspection.highest.tolist(), strict=True)
    # A column that is no number is read as 0 everywhere.
    wrong = {column for _, column in inspection.tally.counts}
    # A level that nobody has is none either: what is declared does not depend on who is there.
    numbers = {*prepared.numbers} - wrong
    constant = [name for name, low, high in ends if low == high and name in numbers]
    if constant:
        yield Problem(
            f"constant columns: {', '.join(constant[:8])}{' …' if len(constant) > 8 else ''}",
            "leave them out; the same value in every row tells nothing and costs the others noise",
        )


def delta_too_large(prepared: Prepared, terms: ReleaseTerms, rows: int) -> Iterator[Problem]:
    """A δ that was chosen for fewer people is not used for more of them in silence."""
    delta = terms.guarantee.delta
    if is_large(delta, rows) and prepared.policy.release.large_delta is None:
        yield Problem(
            f"δ = {up(delta)} is above 1/rows = {1 / rows:.3g}: it may have been chosen for fewer people",
            "leave δ out of the request, and the desk takes 1/(rows + 1) or less; or say in policy.toml why "
            'it may be so large: large_delta = "…" in [release]',
        )


def unknown_people(
    rows: int, known: Mapping[str, int], left_out: Mapping[str, int], elsewhere: Sequence[DeskElsewhere],
    history: History,
) -> Iterator[Problem]:  # fmt: skip
    """Whether people should be known and are not, or are known where they should not be."""
    remedy = "if they are other people, say why, on record: --new-people REASON"
    rows += max(left_out.values(), default=0)
    sizes = {row.release: row.title.get("rows", 0) for row in history.counted if row.people}
    shared = {release: known.get(release, 0) + left_out.get(release, 0) for release in sizes}
    # A sample is known from its table, and a table by having most of the largest release: a few people who
    # are always the same vouch for nobody else.
    most, largest = max(shared.values(), default=0), max(sizes, key=sizes.__getitem__, default="")
    if sizes and 2 * most < rows and 2 * shared[largest] < sizes[largest]:
        yield Problem(
            f"no earlier release shares half of these {rows:,} people (the most is {most:,}): ids with "
            "another spelling or salt would look so, and everybody's budget would begin anew",
            remedy,
        )
    for other in elsewhere:
        if other.known:
            yield Problem(
                f"{other.known:,} of these people are in releases of another desk of yours, {other.path}: "
                "what both release does not add up",
                f"use that desk (--desk); {remedy}",
            )
        elif other.problem is not None and not other.gone:
            yield Problem(
                f"whether desk {other.path} knows these people cannot be told: {other.problem}", remedy
            )
