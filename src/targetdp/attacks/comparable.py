"""Tables in units in which their columns can be compared, and rows that two tables share."""

import numpy as np

from targetdp.typing import Floats, Integers

SMALLEST, LARGEST = 1e-140, 1e140
"""Squares of larger or smaller values leave the range of floats."""


def must_have_squares(*tables: Floats) -> None:
    """Refuse values whose squares overflow, or underflow altogether."""
    largest = max(float(np.abs(table).max()) for table in tables)
    if largest > LARGEST or 0 < largest < SMALLEST:
        raise ValueError(
            f"the largest value is {largest:g}, outside {SMALLEST:g} to {LARGEST:g}: distances would leave "
            "the range of floats; rescale all tables alike"
        )


def units_of(released: Floats) -> Floats:
    """Deviations of the released columns, 1 for those without any: no column counts for its unit alone."""
    constant = released.min(axis=0) == released.max(axis=0)
    return np.where(constant, 1.0, released.std(axis=0))


def released_directions(released: Floats) -> Floats | None:
    """The directions in which released rows lie (d×r), where those are fewer than columns; else None.

    What a truncated mechanism leaves out of a row tells nothing of whose it is, and must not count.
    """
    if len(released) <= released.shape[1]:
        return None
    _, lengths, directions = np.linalg.svd(released, full_matrices=False)
    seen = lengths > 1e-9 * lengths[0]
    return None if seen.all() or not seen.any() else np.ascontiguousarray(directions[seen].T)


def group_numbers(rows: Floats) -> Integers:
    """A number for each row, the same for equal rows."""
    order = np.lexsort(rows.T)
    new = (rows[order[1:]] != rows[order[:-1]]).any(axis=1)
    group = np.zeros(len(rows), dtype=np.int64)
    group[order[1:]] = np.cumsum(new)
    return group


def rows_in_common(one: Floats, two: Floats) -> tuple[Integers, Integers, Integers]:
    """Places of rows of one table and of another that may be equal, and a number for each of those rows.

    Numbers are for the places of the first table, then for those of the second; equal rows have equal ones.
    """
    mine, theirs = np.arange(len(one)), np.arange(len(two))
    for j in range(one.shape[1]):  # noise leaves next to nothing of this after one column
        mine = mine[np.isin(one[mine, j], two[theirs, j])]
        theirs = theirs[np.isin(two[theirs, j], one[mine, j])]
    rows = np.concatenate([one[mine], two[theirs]])
    return mine, theirs, group_numbers(rows) if len(rows) else np.empty(0, dtype=np.int64)


def shared_note(table: Floats, holdout: Floats) -> list[str]:
    """What to say if people of the holdout have the very rows of people in the release."""
    mine, _, group = rows_in_common(table, holdout)
    shared = int(np.isin(group[len(mine) :], group[: len(mine)]).sum())
    if not shared:
        return []
    return [
        f"{shared} of {len(holdout)} people in the holdout have exactly the row of somebody in the release: "
        "if they are the same people, protection is overstated."
    ]
