"""Draws: one noise for a reservation, whatever happens to the run; nothing drawn, nothing charged."""

import errno
import json
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support.release import (
    FEATURES,
    certificate_of,
    hidden,
    holds,
    look,
    new_policy,
    nothing_changes,
    place_with,
    read_back,
    release,
    release_frame,
    request_of,
    table_of,
    values_of,
    write_csv,
    write_parquet,
)
from targetdp._core import Floats
from targetdp.noise import SecretWords
from targetdp.release import Desk, PublishedButUnsettledError, ReleaseRow, privatize
from targetdp.release._draws import Draws, TableChangedError, can_go_on, erase, is_at_work, nothing_was_drawn
from targetdp.release._engine._base import Wrote
from targetdp.release._engine._local import LocalEngine
from targetdp.release._ledger._book import Ledger
from targetdp.release._staging import Staging

BOUND = "b" * 64


def ids(*names: str) -> pa.StringArray:
    return pa.array(names, pa.string())


def columns(*rows: float) -> Floats:
    return np.array([rows])


def words_of(draws: Draws, number: int, names: pa.StringArray, block: Floats) -> bytes:
    return first_of(draws.for_batch(number, names, block))


def first_of(words: SecretWords) -> bytes:
    out = np.zeros(64, dtype=np.uint64)
    words.fill(out)
    return out.tobytes()


@pytest.fixture
def draws(tmp_path: Path) -> Iterator[Draws]:
    made = Draws.create(tmp_path / "drafts", "r1", BOUND)
    yield made
    made.close()


def again(folder: Path) -> Draws:
    found = Draws.reopen(folder / "drafts", "r1", BOUND)
    assert found is not None
    return found


# The secret itself


def test_words_are_the_same_each_time_and_differ_between_batches(draws: Draws, tmp_path: Path) -> None:
    one = words_of(draws, 0, ids("a", "b"), columns(1, 2))
    two = words_of(draws, 2, ids("c"), columns(3))
    centers = first_of(draws.for_scales("centers", np.array([1, 2])))
    scales = first_of(draws.for_scales("scales", np.array([1, 2])))
    assert words_of(draws, 0, ids("a", "b"), columns(1, 2)) == one
    draws.close()
    reopened = again(tmp_path)
    assert words_of(reopened, 0, ids("a", "b"), columns(1, 2)) == one
    assert words_of(reopened, 2, ids("c"), columns(3)) == two
    assert first_of(reopened.for_scales("centers", np.array([1, 2]))) == centers
    assert first_of(reopened.for_scales("scales", np.array([1, 2]))) == scales
    assert len({one, two, centers, scales}) == 4
    reopened.close()
    other = Draws.create(tmp_path / "drafts", "r2", BOUND)
    assert words_of(other, 0, ids("a", "b"), columns(1, 2)) != one
    other.close()


@pytest.mark.parametrize(
    ("names", "block"),
    [
        (ids("a", "c"), columns(1, 2)),
        (ids("b", "a"), columns(1, 2)),
        (ids("ab", ""), columns(1, 2)),
        (ids("a", "b"), columns(1, np.nextafter(2, 3))),
        (ids("a", "b"), columns(2, 1)),
        (ids("a"), columns(1)),
        (ids("a", "b", "c"), columns(1, 2, 3)),
    ],
)
def test_they_are_never_given_for_other_rows(
    draws: Draws, tmp_path: Path, names: pa.StringArray, block: Floats
) -> None:
    words_of(draws, 0, ids("a", "b"), columns(1, 2))
    draws.for_scales("centers", np.array([1, 2]))
    draws.for_scales("scales", np.array([1, 2]))
    draws.close()
    reopened = again(tmp_path)
    with pytest.raises(TableChangedError, match="its noise was drawn for other rows"):
        reopened.for_batch(0, names, block)
    with pytest.raises(TableChangedError):
        reopened.for_scales("centers", np.array([1, 3]))
    with pytest.raises(TableChangedError):
        reopened.for_scales("scales", np.array([1, 3]))
    reopened.close()


def test_a_slice_of_ids_is_what_its_rows_are(draws: Draws) -> None:
    """Batches are slices of larger tables: bytes of other rows do not count."""
    one = words_of(draws, 0, ids("x", "a", "b", "y").slice(1, 2), columns(1, 2))
    assert words_of(draws, 0, ids("a", "b"), columns(1, 2)) == one


def test_before_words_are_given_it_is_written_down_that_they_are(draws: Draws, tmp_path: Path) -> None:
    folder = tmp_path / "drafts" / "r1"
    assert not draws.begun
    assert nothing_was_drawn(tmp_path / "drafts", "r1")
    draws.for_batch(0, ids("a"), columns(1))
    assert draws.begun
    assert not nothing_was_drawn(tmp_path / "drafts", "r1")
    assert (folder / "drawn").stat().st_size == 24


def test_half_a_record_was_never_acted_on(draws: Draws, tmp_path: Path) -> None:
    path = tmp_path / "drafts" / "r1" / "drawn"
    for number in range(3):
        draws.for_batch(number, ids("a"), columns(number))
    draws.close()
    path.write_bytes(path.read_bytes()[:-5])
    reopened = again(tmp_path)
    reopened.for_batch(2, ids("other"), columns(9))
    reopened.for_batch(3, ids("other"), columns(9))
    for number in range(2):
        with pytest.raises(TableChangedError):
            reopened.for_batch(number, ids("other"), columns(9))
    reopened.close()
    assert path.stat().st_size == 4 * 24
    last = again(tmp_path)
    last.for_batch(2, ids("other"), columns(9))
    with pytest.raises(TableChangedError):
        last.for_batch(3, ids("a"), columns(9))
    last.close()


def test_a_full_disk_gives_no_words(draws: Draws, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "write", lambda *_: 7)
    with pytest.raises(OSError, match="No space left"):
        draws.for_batch(0, ids("a"), columns(1))


def test_threads_may_ask_at_once(draws: Draws, tmp_path: Path) -> None:
    found: dict[int, bytes] = {}

    def ask(number: int) -> None:
        found[number] = words_of(draws, number, ids(f"{number}"), columns(number))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    draws.close()
    reopened = again(tmp_path)
    assert {n: words_of(reopened, n, ids(f"{n}"), columns(n)) for n in range(16)} == found
    assert len(set(found.values())) == 16
    reopened.close()


def test_backups_are_told_to_leave_it_out_and_others_cannot_read_it(draws: Draws, tmp_path: Path) -> None:
    tag = tmp_path / "drafts" / "CACHEDIR.TAG"
    assert tag.read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55\n")
    draws.for_batch(0, ids("a"), columns(1))
    for path in [tmp_path / "drafts", *(tmp_path / "drafts").rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_the_fingerprints_alone_tell_nothing(draws: Draws, tmp_path: Path) -> None:
    """Keyed: whoever has a guess at a row cannot try it out on what is left on disk."""
    draws.for_batch(0, ids("a"), columns(1))
    other = Draws.create(tmp_path / "drafts", "r2", BOUND)
    other.for_batch(0, ids("a"), columns(1))
    other.close()
    one, two = ((tmp_path / "drafts" / name / "drawn").read_bytes() for name in ("r1", "r2"))
    assert one[:8] == two[:8]
    assert one[8:] != two[8:]


def test_it_is_erased_for_good(draws: Draws, tmp_path: Path) -> None:
    secret = tmp_path / "drafts" / "r1" / "secret"
    held = secret.open("rb")  # as if its blocks could still be read
    assert len(held.read().split()[0]) == 64
    draws.erase()
    held.seek(0)
    assert set(held.read()) == {0}
    held.close()
    assert not (tmp_path / "drafts" / "r1").exists()
    erase(tmp_path / "drafts" / "r1")  # again, nothing happens


def test_closing_twice_closes_nobody_else_s_file(tmp_path: Path) -> None:
    draws = Draws.create(tmp_path / "drafts", "r1", BOUND)
    draws.close()
    with (tmp_path / "other").open("w") as other:
        draws.close()
        other.write("x")
        other.flush()


def test_another_bound_or_a_damaged_secret_is_not_gone_on_with(draws: Draws, tmp_path: Path) -> None:
    drafts = tmp_path / "drafts"
    draws.close()
    assert can_go_on(drafts, "r1", BOUND, any_order=False)
    assert not can_go_on(drafts, "r1", "c" * 64, any_order=False)
    assert not can_go_on(drafts, "r2", BOUND, any_order=False)
    assert Draws.reopen(drafts, "r1", "c" * 64) is None
    assert Draws.reopen(drafts, "r2", BOUND) is None
    (drafts / "r1" / "secret").write_text("half")
    assert not can_go_on(drafts, "r1", BOUND, any_order=False)
    assert Draws.reopen(drafts, "r1", BOUND) is None
    assert not is_at_work(drafts, "r1"), "nobody has it after that"


def test_two_processes_cannot_have_the_same_draws(draws: Draws, tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from targetdp.release._draws import Draws, is_at_work; "
        f"d = Path(sys.argv[1]); print(is_at_work(d, 'r1'), Draws.reopen(d, 'r1', '{BOUND}'))"
    )

    def other() -> str:
        return subprocess.run(  # noqa: S603 (our own interpreter and script)
            [sys.executable, "-c", script, str(tmp_path / "drafts")], capture_output=True, text=True,
            check=True, timeout=60,
        ).stdout  # fmt: skip

    assert other().split() == ["True", "None"]
    assert Draws.reopen(tmp_path / "drafts", "r1", BOUND) is None, "nor can this one twice"
    draws.close()
    assert other().startswith("False <targetdp.release._draws.Draws object")


# Runs that fail


@contextmanager
def fails(what: type, name: str, error: BaseException, *, after: bool = False) -> Iterator[None]:
    """A method that raises, before or after it has done its work."""
    kept = getattr(what, name)

    def failing(self: Any, *given: Any, **more: Any) -> Any:
        if after:
            kept(self, *given, **more)
        raise error

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(what, name, failing)
        yield


def rows(folder: Path) -> list[ReleaseRow]:
    with Desk.open(folder / "desk").ledger() as ledger:
        assert ledger.verify() == []
        return list(ledger.history.releases.values())


def secrets_in(folder: Path) -> list[str]:
    drafts = folder / "desk" / "drafts"
    return sorted(path.name for path in drafts.iterdir() if path.is_dir()) if drafts.exists() else []


ENDINGS: dict[str, Callable[[], BaseException]] = {
    "Ctrl-C": KeyboardInterrupt, "SIGTERM": lambda: SystemExit(143), "memory": MemoryError,
    "disk": lambda: OSError(errno.ENOSPC, "No space left on device"), "value": lambda: ValueError("x"),
}  # fmt: skip


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("scales", ["public", "private"])
def test_a_run_that_ends_before_the_first_draw_is_freed_by_itself(
    tmp_path: Path, ending: str, scales: str
) -> None:
    error = ENDINGS[ending]()
    folder = place_with(tmp_path, 2000, scales=scales)
    what, name = (Draws, "for_scales") if scales == "private" else (LocalEngine, "write")
    with fails(what, name, error), pytest.raises(type(error)) as refused:
        release(folder)
    (row,) = rows(folder)
    assert (row.state, row.reason) == (
        "voided",
        f"the run ended before any noise was drawn: {type(error).__name__}",
    )
    assert refused.value.__notes__ == ["Nothing was drawn: the release is not charged"]
    assert secrets_in(folder) == []
    assert hidden(folder) == []
    assert not (folder / "out.parquet").exists()
    release(folder)
    assert [row.state for row in rows(folder)] == ["voided", "published"]


def drawn(folder: Path, **given: Any) -> tuple[str, bytes]:
    """A release whose run dies when all is written and nothing is published: its id, and its rows."""
    seen: list[bytes] = []
    kept = Staging.publish

    def dies(self: Staging, *more: Any) -> None:
        seen.append(self.table.read_bytes())
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Staging, "publish", dies)
        with pytest.raises(KeyboardInterrupt) as ended:
            release(folder, **given)
    assert kept is Staging.publish
    row = rows(folder)[-1]
    assert ended.value.__notes__ == [
        f"Noise was drawn: release {row.release[:12]} stays charged; run the same command again, and it is "
        "finished with the same noise, at no further cost"
    ]
    return row.release, seen[0]


@pytest.mark.parametrize("scales", ["public", "private"])
@pytest.mark.parametrize("given", [{}, {"release": "scores", "weights": {"calls": 1, "texts": -2}}])
def test_after_the_first_draw_a_re_run_publishes_the_very_same_noise_charged_once(
    tmp_path: Path, scales: str, given: dict[str, Any]
) -> None:
    folder = place_with(tmp_path, 2000, scales=scales, limit=(0.25, 6.0, 1e-2), most=(4.0, 1e-2))
    identity, content = drawn(folder, **given)
    assert [row.state for row in rows(folder)] == ["reserved"]
    assert secrets_in(folder) == [identity]
    assert hidden(folder) == []
    seen = look(folder, **given)
    assert (seen.goes_on, seen.problems) == (identity, ()), "it fits: it is charged already"
    assert any(
        "this run finishes it with the same noise, and charges nothing more" in line for line in seen.lines
    )
    done = release(folder, **given)
    assert (folder / "out.parquet").read_bytes() == content
    assert done.certificate.release == identity
    (row,) = rows(folder)
    assert (row.state, row.entry) == ("published", done.certificate.ledger.number)
    assert holds(folder / "out.parquet")
    assert secrets_in(folder) == [], "with the key all noise could be taken off"


def test_a_re_run_may_go_elsewhere_and_in_another_format(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    identity, _ = drawn(folder)
    expected = values_of(read_back(folder / "again.csv")) if (folder / "again.csv").exists() else None
    assert expected is None
    done = release(folder, "again.csv")
    assert done.certificate.release == identity
    other = release(folder, "other.csv")
    assert other.certificate.release != identity
    assert not np.isin(
        values_of(read_back(folder / "again.csv")), values_of(read_back(folder / "other.csv"))
    ).any()


def test_a_frame_repeats_its_noise_too(tmp_path: Path) -> None:
    folder, table = place_with(tmp_path), table_of()
    held: list[pa.Table] = []
    kept = LocalEngine.write

    def watched(self: LocalEngine, job: Any, output: Any, *more: Any) -> int:
        kept(self, job, output, *more)
        held.append(pa.concat_tables(output._tables))
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalEngine, "write", watched)
        with pytest.raises(KeyboardInterrupt):
            release_frame(table, folder / "desk")
    done = release_frame(table, folder / "desk")
    assert done.frame.equals(held[0])
    assert [row.state for row in rows(folder)] == ["published"]


CHANGED: dict[str, Callable[[pa.Table], pa.Table]] = {
    "a value": lambda t: t.set_column(1, "calls", [np.asarray(t["calls"]) + (np.arange(len(t)) == 7)]),
    "the order": lambda t: t.take(list(range(len(t)))[::-1]),
}


@pytest.mark.parametrize("change", CHANGED)
def test_with_another_table_it_stops_stays_charged_and_the_secret_is_erased(
    tmp_path: Path, change: str
) -> None:
    folder = place_with(tmp_path)
    identity, _ = drawn(folder)
    write_parquet(folder / "in.parquet", CHANGED[change](table_of()))
    with pytest.raises(
        TableChangedError, match="run again for a new release, which is charged anew"
    ) as ended:
        release(folder)
    assert ended.value.__notes__ == [f"Noise was drawn: release {identity[:12]} stays charged"]
    assert secrets_in(folder) == []
    assert not (folder / "out.parquet").exists()
    assert [row.state for row in rows(folder)] == ["reserved"]
    done = release(folder)
    assert done.certificate.release != identity
    assert [row.state for row in rows(folder)] == ["reserved", "published"]
    with Desk.open(folder / "desk").ledger() as ledger:
        assert len(ledger.history.counted) == 2


def test_private_scales_of_other_values_stop_it_before_anything_else(tmp_path: Path) -> None:
    folder = place_with(tmp_path, 2000, scales="private")
    drawn(folder)
    write_parquet(folder / "in.parquet", CHANGED["a value"](table_of(2000)))
    with pytest.raises(TableChangedError):
        release(folder)
    assert secrets_in(folder) == []


def test_where_rows_come_in_any_order_in_any_order_are_gone_on_with(draws: Draws, tmp_path: Path) -> None:
    drafts = tmp_path / "drafts"

    def goes_on(*, any_order: bool) -> bool:
        draws.close()
        return can_go_on(drafts, "r1", BOUND, any_order=any_order)

    assert goes_on(any_order=True), "nothing was drawn"
    draws = again(tmp_path)
    draws.for_scales("centers", np.array([1, 2]))
    draws.for_scales("scales", np.array([1, 2]))
    assert draws.in_any_order
    assert goes_on(any_order=True)
    draws = again(tmp_path)
    draws.for_rows()
    assert not draws.in_any_order
    assert not goes_on(any_order=True)
    assert goes_on(any_order=False)


@pytest.mark.parametrize(
    "given", [{"epsilon": 4.5}, {"features": ("calls", "texts")}, {"why": "another one"}, {"delta": 1e-3}]
)
def test_another_request_is_another_release(tmp_path: Path, given: dict[str, Any]) -> None:
    folder = place_with(tmp_path)
    identity, _ = drawn(folder)
    done = release(folder, **given)
    assert done.certificate.release != identity
    assert [row.state for row in rows(folder)] == ["reserved", "published"]
    assert secrets_in(folder) == [identity], "what was begun can still be finished"
    assert release(folder, "first.parquet").certificate.release == identity
    assert secrets_in(folder) == []


def test_other_people_or_another_policy_are_another_release(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    identity, _ = drawn(folder)
    write_parquet(folder / "in.parquet", table_of().slice(1))
    assert release(folder, "a.parquet").certificate.release != identity
    write_parquet(folder / "in.parquet", table_of())
    new_policy(folder / "desk", most=(50.0, 0.5))
    assert release(folder, "b.parquet").certificate.release != identity
    assert rows(folder)[0].state == "reserved"


def test_a_damaged_secret_is_a_new_charge(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    identity, _ = drawn(folder)
    (folder / "desk" / "drafts" / identity / "secret").write_text("half\n")
    assert look(folder).goes_on is None
    assert release(folder).certificate.release != identity


def test_a_planned_release_that_was_begun_can_be_finished(tmp_path: Path) -> None:
    line = {"release": "rows", "columns": 3, "B": 0.25, "epsilon": 4.0, "delta": 1e-4}
    folder = place_with(tmp_path, plan=[line])
    identity, content = drawn(folder)
    assert release(folder).certificate.release == identity
    assert (folder / "out.parquet").read_bytes() == content


def test_a_csv_is_repeated_as_it_is_read(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    write_csv(folder / "in.csv")
    identity, content = drawn(folder, table="in.csv")
    assert release(folder, table="in.csv").certificate.release == identity
    assert (folder / "out.parquet").read_bytes() == content


def test_many_batches_and_threads_repeat_the_same_noise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("targetdp.release._engine._local.batch_rows", lambda _: 97)
    folder = place_with(tmp_path, 3000)
    _, content = drawn(folder)
    release(folder)
    assert (folder / "out.parquet").read_bytes() == content
    values = values_of(read_back(folder / "out.parquet"))
    assert len(np.unique(values[:, 0])) > 2900, "no two batches have the same noise"


# Runs that are killed


def kill_at(folder: Path, where: str) -> None:
    """A run in a process of its own that is killed at a call."""
    script = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from support.release import release\n"
        "import targetdp.release._job as job\n"
        "from targetdp.release._draws import Draws\n"
        "from targetdp.release._staging import Staging\n"
        "from targetdp.release._ledger._book import Ledger\n"
        "def die(*_, **__):\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        f"{where} = die\n"
        "release(Path(sys.argv[1]))\n"
    )
    ended = subprocess.run(  # noqa: S603 (our own interpreter and script)
        [sys.executable, "-c", script, str(folder)], check=False, timeout=120,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert ended.returncode == -signal.SIGKILL


@pytest.mark.parametrize(
    ("where", "states", "left"),
    [
        ("Ledger.reserve", ["published"], 1),
        ("Draws.for_batch", ["voided", "published"], 1),
        ("Staging.publish", ["published"], 1),
        ("Ledger.settle", ["published"], 1),
        ("Draws.erase", ["published"], 1),
    ],
)
def test_whenever_a_run_is_killed_the_next_one_finishes_or_frees_it(
    tmp_path: Path, where: str, states: list[str], left: int
) -> None:
    folder = place_with(tmp_path)
    kill_at(folder, where)
    assert len(secrets_in(folder)) == left
    if where in {"Ledger.settle", "Draws.erase"}:
        # All of it can be read: the ledger is told, and then it exists.
        before = certificate_of(folder / "out.parquet").release
        with pytest.raises(ValueError, match="is the whole release of this request"):
            release(folder)
        assert certificate_of(folder / "out.parquet").release == before
    else:
        release(folder)
    assert [row.state for row in rows(folder)] == states
    assert secrets_in(folder) == []
    assert hidden(folder) == []
    assert holds(folder / "out.parquet")


def test_a_secret_of_a_settled_release_is_erased_by_whatever_runs_next(tmp_path: Path) -> None:
    """Also if that is about something else."""
    folder = place_with(tmp_path)
    with fails(Draws, "erase", KeyboardInterrupt()), pytest.raises(PublishedButUnsettledError):
        release(folder)
    assert len(secrets_in(folder)) == 1
    release(folder, "other.parquet", epsilon=1.0)
    assert secrets_in(folder) == []


def test_a_killed_run_that_drew_nothing_is_freed_by_the_next(tmp_path: Path) -> None:
    folder = place_with(tmp_path, limit=(0.25, 6.0, 1e-2), most=(4.0, 1e-2))
    kill_at(folder, "Draws.for_batch")
    (row,) = rows(folder)
    assert row.state == "reserved"
    done = release(folder)
    assert rows(folder)[0].state == "voided"
    assert done.certificate.release != row.release, "a new one, that fits since the other is free"


def test_what_another_run_is_making_is_neither_freed_nor_gone_on_with(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    meanwhile: list[str] = []
    kept = LocalEngine.write

    def slow(self: LocalEngine, *given: Any) -> Wrote:
        if not meanwhile:
            meanwhile.append("")
            assert look(folder).goes_on is None
            meanwhile.append(release(folder, "second.parquet").certificate.release)
        return kept(self, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalEngine, "write", slow)
        first = release(folder, "first.parquet").certificate.release
    assert first != meanwhile[1]
    assert [row.state for row in rows(folder)] == ["published", "published"]


def test_a_re_run_that_another_one_has_overtaken_waits(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    identity, _ = drawn(folder)
    held: list[Draws] = []

    def overtaken(seen: Any) -> None:
        assert seen.goes_on == identity
        found = Draws.reopen(folder / "desk" / "drafts", identity, seen_bound(folder, identity))
        assert found is not None
        held.append(found)

    with pytest.raises(
        ValueError, match=f"release {identity[:12]}, which this run would have finished, is being"
    ):
        privatize(folder / "in.parquet", folder / "out.parquet", desk=folder / "desk", request=request_of(),
                  confirm=overtaken)  # fmt: skip
    held[0].close()
    assert release(folder).certificate.release == identity


def seen_bound(folder: Path, release: str) -> str:
    return (folder / "desk" / "drafts" / release / "secret").read_text().split()[1]


# When the ledger itself fails


def test_a_mark_that_cannot_be_written_after_the_charge_frees_it(tmp_path: Path) -> None:
    """The entry is in the ledger, and nobody was told: the run, or the next one, frees it."""
    from targetdp.release._ledger._chain import Chain

    folder = place_with(tmp_path)
    release(folder, "before.parquet")
    failing, kept = [True], Chain._write_mark

    def full(self: Chain, *given: Any) -> None:
        last = self.reading.entries[-1]
        if failing[0] and last.kind == "reserved" and last.number > 4:
            failing[0] = False
            raise OSError(errno.ENOSPC, "No space left on device")
        kept(self, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Chain, "_write_mark", full)
        with pytest.raises(OSError, match="No space"):
            release(folder)
    assert [row.state for row in rows(folder)] == ["published", "voided"]
    assert secrets_in(folder) == []


def test_a_failure_to_free_leaves_it_for_the_next_run_of_the_same_process(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    full = OSError(errno.ENOSPC, "No space left on device")
    with (
        fails(Ledger, "free", full),
        fails(LocalEngine, "write", full),
        pytest.raises(OSError, match="No space"),
    ):
        release(folder)
    assert rows(folder)[0].state == "reserved"
    release(folder)
    assert [row.state for row in rows(folder)] == ["voided", "published"]
    assert secrets_in(folder) == []


def test_a_log_that_cannot_be_written_hides_nothing(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    with fails(Desk, "log", OSError(errno.ENOSPC, "No space")), pytest.raises(PublishedButUnsettledError):
        release(folder)
    assert [row.state for row in rows(folder)] == ["published"]
    assert secrets_in(folder) == []
    with pytest.raises(ValueError, match="is the whole release"):
        release(folder)
    assert hidden(folder) == []


def test_a_frame_that_cannot_be_settled_is_handed_to_nobody_and_can_be_repeated(tmp_path: Path) -> None:
    folder, table = place_with(tmp_path), table_of()
    with fails(Ledger, "settle", OSError(errno.ENOSPC, "No space")), pytest.raises(OSError, match="No space"):
        release_frame(table, folder / "desk")
    (row,) = rows(folder)
    assert row.state == "reserved"
    assert release_frame(table, folder / "desk").certificate.release == row.release
    assert [row.state for row in rows(folder)] == ["published"]


def test_of_an_error_only_its_kind_goes_on_record(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    with (
        fails(LocalEngine, "write", ValueError("person 000007 has 3 calls")),
        pytest.raises(ValueError, match="3"),
    ):
        release(folder)
    with Desk.open(folder / "desk").ledger() as ledger:
        assert not any("000007" in entry.body for entry in ledger.entries)
    assert "000007" not in (folder / "desk" / "log.jsonl").read_text()
    last = json.loads((folder / "desk" / "log.jsonl").read_text().splitlines()[-1])
    assert (last["event"], last["kind"], last["drawn"]) == ("failed", "ValueError", False)


def test_a_refusal_touches_no_draws(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    with nothing_changes(folder / "desk" / "keys"), pytest.raises(ValueError, match="more than one release"):
        release(folder, epsilon=1e4)
    assert secrets_in(folder) == []
    assert look(folder).prepared.features == FEATURES
