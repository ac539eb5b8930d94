"""Private scales of a release: two draws from two passes, and what happens when these tell of no scale."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support.release import (
    ASKED,
    ENOUGH,
    certificate_of,
    cli,
    hidden,
    holds,
    look,
    make_desk,
    new_policy,
    place_with,
    release,
    table_of,
    words,
    write_parquet,
    write_scales,
)
from targetdp.normalization import PrivateScales, UntoldScalesError
from targetdp.release import Desk, ReleaseRow
from targetdp.release._draws import Draws, TableChangedError
from targetdp.release._engine._local import LocalEngine


def rows(folder: Path) -> list[ReleaseRow]:
    with Desk.open(folder / "desk").ledger() as ledger:
        assert ledger.verify() == []
        return list(ledger.history.releases.values())


def secrets_in(folder: Path) -> list[str]:
    return sorted(place.parent.name for place in (folder / "desk" / "drafts").glob("*/secret"))


def with_zeros(share: float = 0.01, rows: int = ENOUGH) -> pa.Table:
    """People of whom nearly all have no texts."""
    table = table_of(rows)
    texts = np.where(np.arange(rows) < share * rows, np.asarray(table["texts"]), 0.0)
    return table.set_column(2, "texts", pa.array(texts))


def place_with_zeros(folder: Path, **policy: Any) -> Path:
    write_parquet(folder / "in.parquet", with_zeros())
    make_desk(folder, scales="private", **policy)
    return folder


@contextmanager
def patched(owner: Any, name: str, value: Any) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, value)
        yield


# A column without a scale


def test_a_column_without_a_scale_is_refused_after_the_draw_and_a_re_run_repeats_it(tmp_path: Path) -> None:
    folder = place_with_zeros(tmp_path, limit=(0.25, 6.0, 1e-2), most=(4.0, 1e-2))
    assert look(folder).problems == (), "whether there is a scale is not told before it is paid for"
    told = []
    for _ in range(3):
        with pytest.raises(UntoldScalesError) as refused:
            release(folder)
        told.append((str(refused.value), refused.value.__notes__))
    (row,) = rows(folder)
    assert row.state == "reserved"
    assert told[0] == told[1] == told[2]
    assert told[0] == (
        "private scales were drawn, and cannot be used (column 'texts': fewer than about 5% of people "
        "differ from 0): leave these columns out, or declare public scales; what was drawn is paid for",
        [
            f"Nothing was published, and release {row.release[:12]} stays charged: its draws have told this; "
            "the same command repeats it, at no further cost"
        ],
    )
    assert secrets_in(folder) == [row.release], "so that it can be repeated"
    assert not (folder / "out.parquet").exists()
    assert hidden(folder) == []
    seen = look(folder)
    assert seen.spending is not None
    assert seen.goes_on == row.release


def test_without_that_column_the_release_is_made_and_both_are_charged(tmp_path: Path) -> None:
    folder = place_with_zeros(tmp_path)
    with pytest.raises(UntoldScalesError):
        release(folder)
    done = release(folder, features=("calls", "topups"))
    assert done.certificate.scales.estimated == ("calls", "topups")
    assert [row.state for row in rows(folder)] == ["reserved", "published"]
    with Desk.open(folder / "desk").ledger() as ledger:
        assert len(ledger.history.counted) == 2
    assert holds(folder / "out.parquet")


def test_public_scales_are_a_way_out(tmp_path: Path) -> None:
    folder = place_with_zeros(tmp_path)
    with pytest.raises(UntoldScalesError):
        release(folder)
    write_scales(folder / "desk" / "scales.toml")
    new_policy(folder / "desk", reason="a census has them")
    assert release(folder).certificate.scales.source == "declared"


def test_the_command_says_it_and_ends_as_a_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place_with_zeros(tmp_path)
    monkeypatch.chdir(tmp_path)
    ran = [cli("privatize", "in.parquet", "out.parquet", *ASKED, "--quiet") for _ in range(2)]
    assert ran[0] == ran[1]
    assert ran[0].code == 2
    for part in ("column 'texts': fewer than about 5% of people differ from 0", "stays charged"):
        assert part in words(ran[0].err)
    log = (tmp_path / "desk" / "log.jsonl").read_text(encoding="utf-8")
    assert "UntoldScalesError" in log
    assert "texts" not in log.splitlines()[-1], "its kind, and no more"


def test_other_rows_are_not_refused_with_the_same_draws(tmp_path: Path) -> None:
    folder = place_with_zeros(tmp_path)
    with pytest.raises(UntoldScalesError):
        release(folder)
    write_parquet(folder / "in.parquet", with_zeros(0.5))
    with pytest.raises(TableChangedError):
        release(folder)
    assert secrets_in(folder) == []
    release(folder)
    assert [row.state for row in rows(folder)] == ["reserved", "published"]


# Between the two draws


def test_a_run_that_ends_between_centers_and_scales_is_gone_on_with(tmp_path: Path) -> None:
    """The second run gets the very scales that the first would have got, and pays nothing."""
    drawn: list[Any] = []
    kept = PrivateScales.draw_centers

    def draw_centers(self: PrivateScales, *given: Any) -> Any:
        drawn.append(kept(self, *given))
        return drawn[-1]

    def dies(*_: Any) -> None:
        raise KeyboardInterrupt

    folder = place_with(tmp_path, ENOUGH, scales="private", limit=(0.25, 6.0, 1e-2), most=(4.0, 1e-2))
    with patched(PrivateScales, "draw_centers", draw_centers):
        with patched(LocalEngine, "count", dies), pytest.raises(KeyboardInterrupt) as ended:
            release(folder)
        (row,) = rows(folder)
        assert ended.value.__notes__[0].endswith("finished with the same noise, at no further cost")
        with patched(PrivateScales, "draw_scales", dies), pytest.raises(KeyboardInterrupt):
            release(folder)
        done = release(folder)
    assert len(drawn) == 3
    assert drawn[0].tolist() == drawn[1].tolist() == drawn[2].tolist()
    assert done.certificate.release == row.release
    assert [one.center for one in done.certificate.scales.values.values()] == drawn[0].tolist()
    assert [row.state for row in rows(folder)] == ["published"]
    assert holds(folder / "out.parquet")


@pytest.mark.parametrize("step", ["centers", "scales"])
def test_other_values_are_found_at_either_step(tmp_path: Path, step: str) -> None:
    """Words for scales are never given for other counts, also where those for centers were the same."""
    folder = place_with(tmp_path, ENOUGH, scales="private")
    with patched(LocalEngine, "write", _dies), pytest.raises(KeyboardInterrupt):
        release(folder)
    kept = Draws.for_scales

    def other(self: Draws, at: Any, counts: Any) -> Any:
        if at == step:
            counts = counts.copy()
            counts[0, [0, -1]] += [1, -1]
        return kept(self, at, counts)

    with patched(Draws, "for_scales", other), pytest.raises(TableChangedError):
        release(folder)
    assert secrets_in(folder) == []


def _dies(*_: Any) -> None:
    raise KeyboardInterrupt


def test_a_table_that_loses_rows_between_the_passes_is_found(tmp_path: Path) -> None:
    folder = place_with(tmp_path, ENOUGH, scales="private")
    kept = LocalEngine.count

    def fewer(self: LocalEngine, *given: Any) -> Any:
        counts = kept(self, *given).copy()
        counts[1, counts[1].argmax()] -= 1
        return counts

    with (
        patched(LocalEngine, "count", fewer),
        pytest.raises(ValueError, match=r"had 1,500 rows at first, and not so many then"),
    ):
        release(folder)
    done = release(folder)
    assert [row.state for row in rows(folder)] == ["published"], "nothing was drawn for what had changed"
    assert done.certificate.rows == ENOUGH


def test_the_second_pass_is_made_only_where_scales_are_estimated(tmp_path: Path) -> None:
    folder, passes = place_with(tmp_path, ENOUGH, scales="private"), []
    kept = LocalEngine.count

    def count(self: LocalEngine, recipe: Any, *more: Any) -> Any:
        passes.append(recipe.estimated_names)
        return kept(self, recipe, *more)

    with patched(LocalEngine, "count", count):
        release(folder, "a.parquet", features=("texts",))
        release(folder, "b.parquet")
        release(folder, "c.parquet")
    assert passes == [("texts",), ("calls", "topups")]


def test_scales_of_a_desk_are_those_of_its_certificates_after_its_ledger_was_lost(tmp_path: Path) -> None:
    """What a witness tells of estimated scales is what the ledger had."""
    folder = place_with(tmp_path, ENOUGH, scales="private")
    release(folder, "a.parquet")
    (row,) = rows(folder)
    values = certificate_of(folder / "a.parquet").scales.values
    assert row.scales == {name: {"center": one.center, "scale": one.scale} for name, one in values.items()}
