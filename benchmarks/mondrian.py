"""Mondrian against anonypy, once: anonypy is slow."""

from dataclasses import dataclass

import numpy as np

from benchmarks.people import people
from benchmarks.section import Bar, Effort, Section, new_table
from benchmarks.timing import CLOCK, Say, best_call, figure
from targetdp._core import Floats
from targetdp.mechanisms import Mondrian

GROUP_SIZE = 2
COLUMNS = 10
LEAST_SPEEDUP = 1_000.0
BAR = "Mondrian, anonypy / ours"


@dataclass(frozen=True)
class Work:
    """CPU seconds for the classes alone and with a value for each class, and how many classes there are."""

    classes: float
    whole: float
    count: int


def measure(effort: Effort, say: Say) -> Section:
    """Both on one table; ours before and after anonypy."""
    n = 500 if effort.quick else 4_201
    X = people(n, COLUMNS)
    shape = f"{n:,} × {COLUMNS}"
    title = f"Mondrian at {shape}, group_size {GROUP_SIZE}: anonypy against ours"
    mechanism = Mondrian(group_size=GROUP_SIZE)
    mechanism.privatize(X)
    before = _ours(mechanism, X, effort.seconds)
    say(f"anonypy at {shape} (a minute or so)" if not effort.quick else f"anonypy at {shape}")
    try:
        theirs = _anonypy(X)
    except (ImportError, AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}"
        table = new_table(title, "anonypy did not run")
        table.add_row(reason)
        return Section([table], [Bar(BAR, None, LEAST_SPEEDUP, "at least")], {"not measured": reason})
    after = _ours(mechanism, X, effort.seconds)
    ours = Work(min(before.classes, after.classes), min(before.whole, after.whole), before.count)

    table = new_table(
        title, "work", "anonypy", "ours", "anonypy / ours", "classes: anonypy", "ours",
        caption="anonypy's data frame is built before its clock starts; it runs once.",
    )  # fmt: skip
    figures: dict[str, object] = {"rows": n, "anonypy": vars(theirs), "ours": vars(ours)}
    for name, slow, fast in (
        ("classes only", theirs.classes, ours.classes),
        ("classes and their values", theirs.whole, ours.whole),
    ):
        table.add_row(
            name, f"{slow:.2f} s", f"{fast * 1e3:.2f} ms", figure(slow / fast),
            f"{theirs.count:,}", f"{ours.count:,}",
        )  # fmt: skip
        figures[f"anonypy / ours, {name}"] = slow / fast
    bar = Bar(f"{BAR}, {shape}", theirs.whole / ours.whole, LEAST_SPEEDUP, "at least", not effort.quick)
    return Section([table], [bar], figures)


def _ours(mechanism: Mondrian, X: Floats, seconds: float) -> Work:
    return Work(
        best_call(lambda: mechanism.classes(X), 2 * seconds),
        best_call(lambda: mechanism.privatize(X), 2 * seconds),
        int(mechanism.classes(X).max()) + 1,
    )


def _anonypy(X: Floats) -> Work:
    """What `Preserver.anonymize_k_anonymity` does, with its two halves timed apart.

    It needs a sensitive column and writes one line per class and sensitive value: two values are the fewest
    that are not constant.
    """
    import anonypy  # noqa: PLC0415 (an extra)
    import pandas as pd  # noqa: PLC0415

    features = [f"x{column}" for column in range(X.shape[1])]
    frame = pd.DataFrame(X, columns=features)
    frame["sensitive"] = np.arange(len(X)) % 2
    preserver = anonypy.Preserver(frame, features, "sensitive")
    start = CLOCK()
    partitions = preserver.modrian.partition(GROUP_SIZE)
    cut = CLOCK()
    anonypy.anonymize(frame, partitions, features, "sensitive")
    return Work(cut - start, CLOCK() - start, len(partitions))
