"""Distinguishing over several releases: their certificates count, not what rows happen to be."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from support.release import cli, write_parquet
from targetdp._core import Silent
from targetdp.attacks import JoinedTables, Protection, join_tables, run_attacks

COLUMNS = ("a", "b", "c")


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., JoinedTables]:
    """Releases of a table, all of whose rows are clipped by scales of 0.001 and of 0.004."""
    folder = tmp_path_factory.mktemp("certificates")
    values = np.random.default_rng(0).normal(0, 1, (300, 3))
    ids = pa.array([f"{i:04d}" for i in range(300)])
    columns = {name: values[:, j] for j, name in enumerate(COLUMNS)}
    write_parquet(folder / "people.parquet", pa.table({"id": ids} | columns))
    bounds = "".join(f"{name} = {{ lower = -5.0, upper = 5.0 }}\n" for name in COLUMNS)
    (folder / "bounds.toml").write_text(f"[features]\n{bounds}", encoding="utf-8")

    def made(scales: float | dict[str, tuple[float, float]] | None, features: str = "a,b,c") -> JoinedTables:
        output = folder / f"{len(list(folder.iterdir()))}.parquet"
        if scales is None:
            asked: tuple[object, ...] = (
                "private",
                "--bounds",
                folder / "bounds.toml",
                "--scales-epsilon",
                "2",
                "--epsilon",
                "3",
            )
        else:
            each = dict.fromkeys(COLUMNS, (0.0, scales)) if isinstance(scales, float) else scales
            lines = "".join(
                f"{name} = {{ center = {c!r}, scale = {s!r} }}\n" for name, (c, s) in each.items()
            )
            (folder / "scales.toml").write_text(f'source = "public"\n[features]\n{lines}', encoding="utf-8")
            asked = (folder / "scales.toml", "--epsilon", "1")
        ran = cli(
            "privatize", folder / "people.parquet", output, "--id", "id", "--features", features, "--B",
            "0.5", "--quiet", "--scales", *asked,
        )  # fmt: skip
        assert ran.code == 0, ran.err
        return join_tables(folder / "people.parquet", output, "id", progress=Silent())

    return made


def told_apart(*releases: JoinedTables) -> Protection:
    (found,) = run_attacks(releases[0], ["distinguishing"], further=releases[1:])
    assert found.protection is not None
    return found.protection


def near(protection: Protection) -> float:
    return float(protection.detail["at_B"]["best_guess"])


def test_what_was_paid_for_the_scales_of_a_further_release_counts(
    release: Callable[..., JoinedTables],
) -> None:
    private = release(None)
    assert private.certificate is not None
    values = private.certificate.scales.values
    assert values is not None
    reused = release({name: (one.center, one.scale) for name, one in values.items()})
    together, alone = told_apart(reused, private), told_apart(private)
    assert together.score < alone.score
    assert near(together) > near(alone)


def test_rows_that_are_the_same_by_clipping_are_not_scaled_alike(
    release: Callable[..., JoinedTables],
) -> None:
    """Other people B apart by one release's scales may be four times as far apart by the other's."""
    one, two, again = release(0.004), release(0.001), release(0.004)
    assert np.allclose(one.original, two.original)
    assert near(told_apart(one, two)) > near(told_apart(one, again)) > near(told_apart(one))


def test_the_order_of_columns_makes_no_other_scales(release: Callable[..., JoinedTables]) -> None:
    one, again, turned = release(1.0), release(1.0), release(1.0, features="c,a,b")
    assert near(told_apart(one, turned)) == near(told_apart(one, again))
