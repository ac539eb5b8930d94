"""What is wrong with a program's table, in one message: missing and infinite values, and what to do."""

from targetdp.programs.file import AnySettings
from targetdp.release.columns import Tally


def must_be_whole(tally: Tally, settings: AnySettings) -> None:
    """Raise one error for everything that was found; row numbers count from 1, without a header."""
    if tally.counts:
        found = (_complaint(tally, key, settings) for key in sorted(tally.counts))
        raise ValueError("; ".join(found))


def _complaint(tally: Tally, key: tuple[str, str], settings: AnySettings) -> str:
    problem, column = key
    count, rows = tally.counts[key], ", ".join(str(row) for row in tally.first[key])
    where = f"(first in row {rows})"
    if problem == "missing" and column == settings.target:
        return (
            f"target {column!r} is missing in {count:,} row{'s' if count > 1 else ''} {where}: leave out "
            "people whose outcome is not known"
        )
    what = f"column {column!r} has {count:,} {problem} value{'s' if count > 1 else ''} {where}"
    if problem == "missing" and column in settings.features:
        return (
            f"{what}: declare a constant for them in the program file (impute), take the column out of the "
            "features, or leave these people out"
        )
    remedy = {
        "missing": "the program needs it of everybody; fill in what is true, or leave these people out",
        "missing or empty id": "every row needs an id; or leave id out of the program file",
    }
    return f"{what}: {remedy.get(problem, 'correct them, or leave these people out')}"
