"""The request for a cell of a sweep: what an official sends to the data holder."""

import unicodedata
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal

from targetdp._core import exact, up
from targetdp.guarantee import Guarantee
from targetdp.programs import MARK as FOR_THE_HOLDER
from targetdp.release import format_guarantee, make_request
from targetdp.tradeoff._rows import larger_by_parts
from targetdp.tradeoff._study import FINGERPRINT, FIRST_LOOK, MARK, SOURCE, fingerprint_of
from targetdp.tradeoff._technology import NOT_CLIPPED, Cell

TUNED_ON: Mapping[str, Literal["public", "synthetic", "this-data"]] = MappingProxyType(
    {"public": "public", "synthetic": "synthetic", "confidential": "this-data"}
)
"""What a certificate says about the data that B was chosen on."""

_LONGEST, _MOST_WORDS = 60, 6
"""Characters and words of a name that stands on a signed page."""

_TO_FILL_IN = (
    "Say who asks, and why: fill in these lines, and take away their #.",
    'asked_by = "…"',
    'asked_on = "…"',
    'why = "…"',
)


LARGE_DELTA = 0.01
"""From here on whoever reads it is warned."""


def large_delta(delta: float | None) -> str | None:
    """The warning that a release with this δ would come with.

    Args:
        delta: That of a cell; None without a guarantee.

    Returns:
        The warning, or None if there is none.

    Example:
        >>> print(large_delta(1e-6))
        None
    """
    if delta is None or delta <= LARGE_DELTA:
        return None
    return (
        f"δ = {up(delta, 2)} is large: noise that is added gives nobody's row away altogether, but the "
        "promise no longer says so; 1/(rows + 1) or less is usual"
    )


def request_text(
    run: Mapping[str, Any], cell: Cell, *, recommended: bool = False, limits: Sequence[str] = ()
) -> str:
    """Write the request for a cell: TOML with comments, read back and checked before it is handed over.

    Args:
        run: The sweep's record, as `read_run` has it.
        cell: One of its cells.
        recommended: Whether the request says that it was recommended, or that it was chosen.
        limits: What it was chosen by, in words.

    Returns:
        The text of ``request.toml``.

    Raises:
        ValueError: ``run`` was changed by hand, or no request can ask for such a release (k-anonymity, a
            projection with another k or in parts, rows that are not clipped).

    Guarantees: it names nothing that the data holder decides. On a table of the same size a release by it
    promises at least what the cell does.
    Edges: the release has the noise that the sweep measured if its δ and its column scales are those of the
    sweep, which the data holder decides.

    Example:
        >>> from targetdp.tradeoff import find_sweep
        >>> sweep = find_sweep("togo", quick=True)
        >>> print(request_text(sweep.record(), sweep.cells[1]).splitlines()[0])
        # Chosen from a sweep of targetdp tradeoff: projection B=0.05 epsilon1=3 epsilon2=0.9999
    """
    if fingerprint_of(run["made_of"]) != run[FINGERPRINT] or cell.rows != _public(run)["rows"]:
        raise ValueError(
            f"cell {cell.name!r}: run.json was changed by hand, and nothing is asked for by it; run the "
            "sweep again in a new folder"
        )
    if (reason := cell.why_not) is not None:
        remedy = 'sweep with rows = "clip"' if reason == NOT_CLIPPED else cell.technology.remedy
        raise ValueError(f"cell {cell.name!r}: {reason}; {remedy}")
    promise = cell.promise
    assert promise is not None  # noqa: S101 (whatever can be asked for has one)
    asked = make_request(
        features=run["features"],
        B=promise.B,
        epsilon=promise.epsilon,
        delta=promise.delta if _is_small(promise, run["people"]) else None,
        mechanism=cell.technology.request_mechanism,
        tuned_on=TUNED_ON[run[SOURCE]],
        program=_plain_name(run["program"]),
        page=_fingerprint(run),
        limits=tuple(limits),
        sample_only=cell.technology.sample_first,
    )
    return asked.text(*_comments(run, cell, promise, recommended=recommended))


def _comments(
    run: Mapping[str, Any], cell: Cell, promise: Guarantee, *, recommended: bool
) -> tuple[str, ...]:
    """What whoever reads a request should know."""
    by, people = "Recommended by" if recommended else "Chosen from a sweep of", run["people"]
    quick, warning = _public(run).get(FIRST_LOOK), large_delta(promise.delta)
    sweep = _fingerprint(run)
    said = (
        FOR_THE_HOLDER if run[MARK] else None,
        f"{by} targetdp tradeoff: {cell.name}",
        f"Program {run['program']}, {people:,} people ({run[SOURCE]})"
        + ("" if sweep is None else f", sweep {sweep[:16]}"),
        _what_is_asked(promise, people),
        f"Made from a quick look: {'; '.join(quick)}" if quick else None,
        f"Warning: {warning}" if warning else None,
        *cell.technology.request_comments(cell),
        *_TO_FILL_IN,
    )
    return tuple(line for line in said if line is not None)


def _fingerprint(run: Mapping[str, Any]) -> str | None:
    """The sweep's, if it may be published: whoever knows all rows but one could find the last by a hash."""
    return None if run[MARK] else str(run[FINGERPRINT])


def _is_small(promise: Guarantee, people: int) -> bool:
    """Whether a sweep had a smaller δ than a desk takes for so many people: then it is asked for."""
    return promise.delta * (people + 1) < 1 - 1e-9


def _what_is_asked(promise: Guarantee, people: int) -> str:
    if _is_small(promise, people):
        return f"It asks for {format_guarantee(promise)}, as the sweep had it."
    more = larger_by_parts(promise.delta, people)
    return (
        f"It asks for B = {exact(promise.B)} and ε = {up(promise.epsilon, 6)}, and the desk takes δ: the "
        f"smaller of its policy's and 1/(rows + 1). The sweep had δ = {up(promise.delta)}{more}: a smaller "
        f"one{', as a release has it,' if more else ''} means more noise."
    )


def _public(run: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = run["made_of"]["public_record"]
    return found


def _plain_name(name: str) -> str | None:
    """A program may be called anything, and goes on a page that is signed: its words without signs."""
    whole = unicodedata.normalize("NFC", name)
    words = "".join(c if c.isalnum() or c in "_-'" or unicodedata.combining(c) else " " for c in whole)
    return " ".join(words.split()[:_MOST_WORDS])[:_LONGEST].strip() or None
