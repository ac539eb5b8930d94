"""A run that dies goes on with the same bits and cuts, on the same scores, and tells nothing before."""

import os
import signal
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support.decisions import asks, bits_of, decision, near, weighted, with_cut
from support.release import (
    certificate_of,
    cli,
    hidden,
    holds,
    look,
    place_with,
    read_back,
    release,
    table_of,
    write_csv,
    write_parquet,
)
from targetdp.mechanisms import STEPS
from targetdp.release import Desk, ReleaseRow, Request
from targetdp.release._decision import _bits
from targetdp.release._decision._bits import turns_of
from targetdp.release._draws import Draws, TableChangedError
from targetdp.release._engine import _base, _local
from targetdp.release._staging import Staging

ROWS = 400
ASKED: dict[str, Request] = {
    "classic": asks(),
    "together": asks(decision(), with_cut(9.0, name="loan")),
    "near": asks(near(), B=0.25),
}


def rows(folder: Path) -> list[ReleaseRow]:
    with Desk.open(folder / "desk").ledger() as ledger:
        assert ledger.verify() == []
        return list(ledger.history.releases.values())


def secrets_in(folder: Path) -> list[str]:
    drafts = folder / "desk" / "drafts"
    return sorted(path.name for path in drafts.iterdir() if path.is_dir()) if drafts.exists() else []


@contextmanager
def dies(what: Any, name: str, *, after: bool = False) -> Iterator[list[Any]]:
    """A function that raises, before or after it has done its work; and what it was given, or has given."""
    kept, seen = getattr(what, name), list[Any]()

    def dying(*given: Any, **more: Any) -> Any:
        if after:
            seen.append(kept(*given, **more))
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(what, name, dying)
        yield seen


def interrupted(folder: Path, asked: Request, what: Any, name: str, *, after: bool = False) -> list[Any]:
    with dies(what, name, after=after) as seen, pytest.raises(KeyboardInterrupt):
        release(folder, request=asked)
    assert not (folder / "out.parquet").exists()
    return seen


# The same bits


@pytest.mark.parametrize("kind", ASKED)
def test_before_the_first_draw_nothing_is_charged(tmp_path: Path, kind: str) -> None:
    """Everybody is scored, and nobody's bit is drawn."""
    folder = place_with(tmp_path, ROWS)
    interrupted(folder, ASKED[kind], _local, "decide_all")
    assert [row.state for row in rows(folder)] == ["voided"]
    assert secrets_in(folder) == []
    release(folder, request=ASKED[kind])
    assert [row.state for row in rows(folder)] == ["voided", "published"]


PLACES: dict[str, tuple[Any, str, bool]] = {
    "drawing": (_base, "decide", False),
    "drawn": (_local, "decide_all", True),
    "writing": (_local, "write_in_order", False),
    "written": (_local, "write_in_order", True),
    "publishing": (Staging, "publish", False),
}


@pytest.mark.parametrize("kind", ASKED)
@pytest.mark.parametrize("place", PLACES)
def test_after_it_a_re_run_has_the_same_bits_and_cuts_charged_once(
    tmp_path: Path, kind: str, place: str
) -> None:
    folder = place_with(tmp_path, ROWS)
    drawn: list[Any] = []
    kept = _bits.decide

    def watched(*given: Any) -> Any:
        drawn.append(kept(*given))
        return drawn[-1]

    what, name, after = PLACES[place]
    with pytest.MonkeyPatch.context() as patch:
        if place != "drawing":
            patch.setattr(_base, "decide", watched)
        interrupted(folder, ASKED[kind], what, name, after=after)
    (row,) = rows(folder)
    assert row.state == "reserved"
    assert secrets_in(folder) == [row.release]
    assert hidden(folder) == []
    assert look(folder, request=ASKED[kind]).goes_on == row.release
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_base, "decide", watched)
        # Threads, and how a table is cut into batches, have nothing to do with it.
        patch.setattr(_local, "batch_rows", lambda _: 37)
        done = release(folder, request=ASKED[kind])
    assert done.certificate.release == row.release
    assert [one.state for one in rows(folder)] == ["published"]
    assert done.certificate.cuts == drawn[-1].cuts
    for one in drawn:
        np.testing.assert_array_equal(one.bits, drawn[-1].bits)
        assert one.cuts == drawn[-1].cuts
    assert len(drawn) == (1 if place == "drawing" else 2)
    assert holds(folder / "out.parquet")
    assert secrets_in(folder) == [], "with the secret every bit could be set right"
    assert hidden(folder) == []


def test_rows_in_another_format_get_the_same_bits_and_in_another_order_none(tmp_path: Path) -> None:
    """Words belong to people in one order; however a file is written, or read, makes no difference."""
    folder = place_with(tmp_path, ROWS)
    (done,) = interrupted(folder, asks(), _local, "decide_all", after=True)
    expected = dict(zip(table_of(ROWS)["name"].to_pylist(), done.bits[:, 0].tolist(), strict=True))
    write_csv(folder / "in.csv", table_of(ROWS))
    again = release(folder, table="in.csv", request=asks())
    out = read_back(folder / "out.parquet")
    assert [row.state for row in rows(folder)] == ["published"]
    assert bits_of(out).tolist() == [expected[name] for name in out["name"].to_pylist()]
    assert again.certificate.cuts == done.cuts
    with dies(_local, "decide_all", after=True), pytest.raises(KeyboardInterrupt):
        release(folder, "second.parquet", request=asks())
    write_csv(folder / "in.csv", table_of(ROWS).take(list(range(ROWS))[::-1]))
    with pytest.raises(TableChangedError):
        release(folder, "second.parquet", table="in.csv", request=asks())


def test_another_run_of_the_same_request_has_other_bits(tmp_path: Path) -> None:
    """At ε = 1 a quarter of all bits is wrong: which, is drawn anew, and charged anew."""
    folder = place_with(tmp_path, ROWS)
    for number in (1, 2):
        release(folder, f"{number}.parquet", request=asks(with_cut(10.0), epsilon=1.0))
    one, two = (bits_of(read_back(folder / f"{number}.parquet")) for number in (1, 2))
    differ, chance = int((one != two).sum()), 2 * 0.2689 * 0.7311
    assert abs(differ - ROWS * chance) < 5 * np.sqrt(ROWS * chance * (1 - chance))


# Other tables


def changed(place: int, by: float, name: str = "calls") -> pa.Table:
    table = table_of(ROWS)
    values = np.asarray(table[name]).copy()
    values[place] += by
    return table.set_column(table.column_names.index(name), name, [values])


CHANGED: dict[str, Callable[[], pa.Table]] = {
    "one value": lambda: changed(7, 1e-6),
    "the other column": lambda: changed(7, 1e-6, "texts"),
    "two people's rows": lambda: table_of(ROWS).set_column(
        0, "name", [[*table_of(ROWS)["name"].to_pylist()[1::-1], *table_of(ROWS)["name"].to_pylist()[2:]]]
    ),
    "another table": lambda: table_of(ROWS, 5).set_column(0, "name", table_of(ROWS)["name"]),
    "a gap": lambda: table_of(ROWS).set_column(
        1, "calls", pa.array([None, *table_of(ROWS)["calls"].to_pylist()[1:]], pa.float64())
    ),
}


@pytest.mark.parametrize("kind", ["classic", "near"])
@pytest.mark.parametrize("change", CHANGED)
def test_other_scores_never_meet_the_same_words(tmp_path: Path, change: str, kind: str) -> None:
    folder = place_with(tmp_path, ROWS, gaps={"calls": -7.25})
    interrupted(folder, ASKED[kind], _local, "decide_all", after=True)
    (row,) = rows(folder)
    write_parquet(folder / "in.parquet", CHANGED[change]())
    with pytest.raises(TableChangedError, match="charged anew") as ended:
        release(folder, request=ASKED[kind])
    assert ended.value.__notes__ == [f"Noise was drawn: release {row.release[:12]} stays charged"]
    assert [one.state for one in rows(folder)] == ["reserved"]
    assert secrets_in(folder) == []
    assert not (folder / "out.parquet").exists()
    done = release(folder, request=ASKED[kind])
    assert done.certificate.release != row.release
    with Desk.open(folder / "desk").ledger() as ledger:
        assert len(ledger.history.counted) == 2, "both are charged"


def test_what_no_score_is_made_of_may_change(tmp_path: Path) -> None:
    """The same scores get the same bits: nothing more is told."""
    folder = place_with(tmp_path, ROWS)
    interrupted(folder, asks(), _local, "decide_all", after=True)
    (row,) = rows(folder)
    write_parquet(folder / "in.parquet", changed(7, 5.0, "topups"))
    assert release(folder, request=asks()).certificate.release == row.release


@pytest.mark.parametrize("more", [1, -1])
def test_other_people_are_another_release(tmp_path: Path, more: int) -> None:
    folder = place_with(tmp_path, ROWS)
    interrupted(folder, asks(), _local, "decide_all", after=True)
    table = table_of(ROWS)
    extra = pa.table({"name": ["999999"], "calls": [1.0], "texts": [1.0], "topups": [1.0]})
    write_parquet(folder / "in.parquet", pa.concat_tables([table, extra]) if more > 0 else table.slice(1))
    first = rows(folder)[0].release
    assert look(folder, request=asks()).goes_on is None
    assert release(folder, request=asks()).certificate.release != first
    assert [one.state for one in rows(folder)] == ["reserved", "published"]
    write_parquet(folder / "in.parquet", table)
    assert release(folder, "first.parquet", request=asks()).certificate.release == first


@pytest.mark.parametrize("other", [asks(epsilon=3.0), asks(decision(share=0.5)), asks(with_cut(8.0))])
def test_another_cut_or_level_never_meets_the_same_words(tmp_path: Path, other: Request) -> None:
    folder = place_with(tmp_path, ROWS)
    interrupted(folder, asks(), _local, "decide_all", after=True)
    first = rows(folder)[0].release
    assert release(folder, request=other).certificate.release != first
    assert len(rows(folder)) == 2


def test_the_disk_knows_the_scores_before_a_bit_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after private scales, which were first: a power failure must not free the words for others."""
    draws = Draws.create(tmp_path / "drafts", "r1", "b" * 64)
    draws.for_scales("centers", np.array([1, 2]))
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    tags, scores = np.arange(3, dtype=np.uint64), np.arange(3, dtype=np.int64)[:, None]
    draws.for_decisions(tags, scores)
    assert len(synced) == 1
    draws.close()
    again = Draws.reopen(tmp_path / "drafts", "r1", "b" * 64)
    assert again is not None
    for other_tags, other_scores in (
        (tags + np.uint64(1), scores),
        (tags, scores + 1),
        (tags[:2], scores[:2]),
    ):
        with pytest.raises(TableChangedError):
            again.for_decisions(other_tags, other_scores)
    again.for_decisions(tags, scores)
    again.close()


@pytest.mark.parametrize("place", [0, 5, 6, 999])
def test_scores_of_more_people_than_are_sealed_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    """Three hundred million people have more than two gigabytes of them."""
    monkeypatch.setattr("targetdp.release._draws._MOST_SEALED", 48)
    draws = Draws.create(tmp_path / "drafts", "r1", "b" * 64)
    tags, scores = np.arange(1000, dtype=np.uint64), np.arange(1000, dtype=np.int64)[:, None]
    draws.for_decisions(tags, scores)
    draws.for_decisions(tags, scores.copy())
    scores[place] += 1
    with pytest.raises(TableChangedError):
        draws.for_decisions(tags, scores)
    draws.close()


# Killed


def kill_at(folder: Path, where: str, *, after: bool = False) -> None:
    """A run in a process of its own that is killed at a call, or right after it."""
    module, _, name = where.rpartition(".")
    script = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from support.decisions import asks\n"
        "from support.release import release\n"
        "from targetdp.release._draws import Draws\n"
        "from targetdp.release._engine import _base, _local\n"
        "from targetdp.release._staging import Staging\n"
        "from targetdp.release._ledger._book import Ledger\n"
        f"kept = {where}\n"
        "def die(*given, **more):\n"
        f"    {'kept(*given, **more)' if after else 'pass'}\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        f"{module}.{name} = die\n"
        "release(Path(sys.argv[1]), request=asks())\n"
    )
    ended = subprocess.run(  # noqa: S603 (our own interpreter and script)
        [sys.executable, "-c", script, str(folder)], check=False, timeout=120,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert ended.returncode == -signal.SIGKILL


@pytest.mark.parametrize(
    ("where", "after", "states"),
    [
        ("Ledger.reserve", False, ["published"]),
        ("_local.decide_all", False, ["voided", "published"]),
        ("_base.decide", False, ["published"]),
        ("_local.write_in_order", True, ["published"]),
        ("Staging.publish", False, ["published"]),
        ("Ledger.settle", False, ["published"]),
        ("Draws.erase", False, ["published"]),
    ],
)
def test_whenever_it_is_killed_the_next_run_finishes_or_frees_it(
    tmp_path: Path, where: str, after: bool, states: list[str]
) -> None:
    folder = place_with(tmp_path, ROWS)
    kill_at(folder, where, after=after)
    begun = [row.release for row in rows(folder)]
    if where in {"Ledger.settle", "Draws.erase"}:
        with pytest.raises(ValueError, match="is the whole release of this request"):
            release(folder, request=asks())
    else:
        release(folder, request=asks())
    assert [row.state for row in rows(folder)] == states
    if states == ["published"] and begun:
        assert certificate_of(folder / "out.parquet").release == begun[0]
    assert secrets_in(folder) == []
    assert hidden(folder) == []
    assert holds(folder / "out.parquet")


# What can be seen meanwhile


PERSON = 41
CANARY = -7654.321098765
"""Her score: nobody else has one like it."""


def forms_of(score: float, steps: int) -> list[bytes]:
    """How a score, or a cut, could be written: as text, as a float, as a whole number of steps."""
    floats = [struct.pack(order + kind, score) for order in "<>" for kind in "df"]
    whole = [struct.pack(order + "q", steps) for order in "<>"]
    return [*floats, *whole, f"{score:.6g}".encode(), repr(score).encode(), str(steps).encode()]


def everything(*folders: Path) -> bytes:
    return b"\0".join(
        path.read_bytes() for folder in folders for path in sorted(folder.rglob("*")) if path.is_file()
    )


def test_no_score_is_ever_written_and_no_bit_or_cut_before_publication(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything on disk, at every step of a run and after it, but for the table itself."""
    own, temporary = tmp_path / "own", tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    folder = place_with(own, ROWS)
    table = table_of(ROWS)
    calls = np.asarray(table["calls"]).copy()
    calls[PERSON] = CANARY - 0.5 * np.asarray(table["texts"])[PERSON]
    source = tmp_path / "elsewhere"
    source.mkdir()
    write_parquet(source / "in.parquet", table.set_column(1, "calls", [calls]))
    score = float(calls[PERSON] + 0.5 * np.asarray(table["texts"])[PERSON])
    asked = asks(decision(expected=((-1e4, 0.0), (8.0, 0.3), (1e4, 1.0))))
    (question,) = asked.questions
    steps = int(question.placed(np.array([score]))[0])
    assert abs(steps) < STEPS, "it is not clipped to what others have, too"
    seen: list[bytes] = []

    def look_around(kept: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*given: Any, **more: Any) -> Any:
            seen.append(everything(own, temporary))
            done = kept(*given, **more)
            seen.append(everything(own, temporary))
            return done

        return watched

    for what, name in ((_local, "decide_all"), (_base, "decide"), (_local, "write_in_order")):
        monkeypatch.setattr(what, name, look_around(getattr(what, name)))
    with dies(Staging, "publish"), pytest.raises(KeyboardInterrupt) as ended:
        release(folder, table=source / "in.parquet", request=asked)
    left = everything(own, temporary)
    ran = cli("ledger", "show", "--desk", folder / "desk")
    told = "".join(ended.value.__notes__) + ran.out + ran.err
    log = (folder / "desk" / "log.jsonl").read_bytes()
    done = release(folder, table=source / "in.parquet", request=asked)
    (cuts,) = done.certificate.cuts
    moved = int(turns_of(pa.array([table["name"][PERSON].as_py()]), done.certificate.release, ROWS)[1][0])
    assert len(seen) == 12
    forms = [*forms_of(score, steps), *forms_of(score, steps + moved)]
    for content in (*seen, left, told.encode(), everything(own, temporary)):
        for form in forms:
            assert form not in content
    # Cuts are in the release, and nowhere before it was one; nor is the release itself.
    before = (*seen[:6], left, log, told.encode())
    for cut in set(cuts[1:]):
        for form in forms_of(question.in_own_units(cut), cut):
            assert not any(form in content for content in before)
    assert hidden(folder) == []
    assert list(temporary.iterdir()) == []
    released = (folder / "out.parquet").read_bytes()
    assert not any(released[100:400] in content for content in (*seen[:6], left))


def test_what_a_look_says_does_not_depend_on_rows(tmp_path: Path) -> None:
    """At B = 2 rows tell the data holder what a score looks at, and nothing else."""
    folder = place_with(tmp_path, ROWS)
    one = look(folder, request=asks())
    write_parquet(folder / "in.parquet", table_of(ROWS, 5).set_column(0, "name", table_of(ROWS)["name"]))
    other = look(folder, request=asks())
    own = "for you only"
    assert [line for line in one.lines if own not in line] == [x for x in other.lines if own not in x]
    assert one.record() == other.record()
    assert not np.array_equal(weighted(table_of(ROWS)), weighted(table_of(ROWS, 5)))
