"""Distinguishing over several releases: their certificates count, not what rows happen to be."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support.release import make_desk, write_parquet
from support.release import release as release_at
from targetdp._core import Silent
from targetdp.attacks import JoinedTables, Protection, join_tables, run_attacks
from targetdp.release import Desk

COLUMNS = ("a", "b", "c")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Callable[[float | None], Desk]:
    """A desk with a table, all of whose rows are clipped by scales of 0.001 and of 0.004."""
    values = np.random.default_rng(0).normal(0, 1, (1_500, 3))
    ids = pa.array([f"{i:04d}" for i in range(1_500)])
    people = pa.table({"id": ids} | {name: values[:, j] for j, name in enumerate(COLUMNS)})

    def make(scale: float | None) -> Desk:
        folder = tmp_path_factory.mktemp("certificates")
        write_parquet(folder / "in.parquet", people)
        if scale is None:
            return make_desk(folder, COLUMNS, id="id", scales="private", share=0.5)
        lines = "".join(f"{name} = {{ center = 0.0, scale = {scale!r} }}\n" for name in COLUMNS)
        (folder / "scales.toml").write_text(
            f'source = "public"\nreason = "a"\n[features]\n{lines}', encoding="utf-8"
        )
        return make_desk(folder, COLUMNS, id="id")

    return make


def release(desk: Desk, features: tuple[str, ...] = COLUMNS, epsilon: float = 1.0) -> JoinedTables:
    folder: Path = desk.path.parent
    output = f"{len(list(folder.iterdir()))}.parquet"
    asked: dict[str, Any] = {"B": 0.5, "epsilon": epsilon, "features": features}
    done = release_at(folder, output, desk=desk, new_people="desks are compared", **asked)
    assert done.path is not None
    return join_tables(folder / "in.parquet", done.path, "id", progress=Silent())


def told_apart(*releases: JoinedTables) -> Protection:
    (found,) = run_attacks(releases[0], ["distinguishing"], further=releases[1:])
    assert found.protection is not None
    return found.protection


def near(protection: Protection) -> float:
    return float(protection.detail["at_B"]["best_guess"])


def test_what_was_paid_for_the_scales_of_a_further_release_counts(
    desk: Callable[[float | None], Desk],
) -> None:
    place = desk(None)
    private, reused = release(place, epsilon=4.0), release(place)
    assert private.certificate is not None
    assert reused.certificate is not None
    assert reused.certificate.scales.values == private.certificate.scales.values
    together, alone = told_apart(reused, private), told_apart(private)
    assert together.score < alone.score
    assert near(together) > near(alone)


def test_rows_that_are_the_same_by_clipping_are_not_scaled_alike(
    desk: Callable[[float | None], Desk],
) -> None:
    """Other people B apart by one release's scales may be four times as far apart by the other's."""
    wide, narrow = desk(0.004), desk(0.001)
    one, two, again = release(wide), release(narrow), release(wide)
    assert np.allclose(one.original, two.original)
    assert near(told_apart(one, two)) > near(told_apart(one, again)) > near(told_apart(one))


def test_the_order_of_columns_makes_no_other_scales(desk: Callable[[float | None], Desk]) -> None:
    place = desk(1.0)
    one, again, turned = release(place), release(place), release(place, ("c", "a", "b"))
    assert near(told_apart(one, turned)) == near(told_apart(one, again))
