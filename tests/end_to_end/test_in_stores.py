"""Releases from and to an object store: whole with a certificate, or none; also when somebody is killed."""

import json
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, cast

import pytest

from support import stores
from support.faults import some
from support.release import (
    cli,
    hidden,
    read_back,
    request_of,
    table_of,
    words,
    write_parquet,
)
from support.staged import drawn, keep, place, put_back, room_for, states
from support.stores import Store
from support.zygote import Harm, Zygote
from targetdp.release import (
    Desk,
    certificate_path,
    fetched,
    privatize,
    read_certificate,
    verify_in_ledger,
    verify_release,
)
from targetdp.release._remote._in_store import StoreStaging
from targetdp.table import StoredTable, TableError

OUTPUT = "s3://bucket/out/people.parquet"
RUN = ("privatize", "in.parquet", OUTPUT, "--request", "request.toml", "--yes")
WHOLE = ["out/people.parquet", "out/people.parquet.certificate.json", "out/people.parquet.certificate.md"]


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    with stores.started() as started:
        for name, value in started.environment.items():
            monkeypatch.setenv(name, value)
        yield started


def run(
    zygote: Zygote, store: Store, folder: Path, *arguments: str, die_at: int = -1
) -> tuple[bool, int | None, str]:
    """A run of which the store kills the process at a request: whether it did, exit code and words."""
    (store.pid,) = zygote._start(folder, [arguments], [Harm()], store.environment)
    store.changes, store.die_at = 0, die_at
    (ended,) = zygote._wait()
    store.pid = None
    return ended.killed, ended.code, words(ended.words)


def release_there(folder: Path, output: str = OUTPUT) -> str | None:
    """What a reader finds: nothing, or a release whose certificate holds and that the ledger counts."""
    try:
        with fetched(output) as path, Desk.open(folder / "desk").ledger() as ledger:
            if not certificate_path(path).exists():
                return None
            c = read_certificate(certificate_path(path))
            found = verify_release(path, c).also(verify_in_ledger(c, ledger))
            assert found.holds, found.failed
            assert ledger.release(c.release).counts
            return c.release
    except TableError:
        return None


def nothing_is_left(store: Store, folder: Path) -> None:
    assert [name for name in store.names() if "/." in name] == []
    assert [path.name for path in (folder / "desk" / "drafts").iterdir()] == ["CACHEDIR.TAG"]
    assert hidden(folder) == []


@pytest.mark.parametrize("after", [False, True], ids=["before a request", "after it"])
@pytest.mark.parametrize("force", [False, True], ids=["a new release", "an older one is replaced"])
def test_it_survives_kills_at_requests_to_the_store(
    store: Store, zygote: Zygote, tmp_path: Path, *, force: bool, after: bool
) -> None:
    """The limit has room for no more than is published: nothing may be charged twice."""
    folder = place(tmp_path / "place", 60, limit=room_for(2 if force else 1))
    arguments = (*RUN, "--force") if force else RUN
    older = None
    if force:
        assert run(zygote, store, folder, *RUN)[1] == 0
        older = release_there(folder)
    kept, before = (
        keep(folder, tmp_path / "kept"),
        {name: store.get(f"bucket/{name}") for name in store.names()},
    )
    assert run(zygote, store, folder, *arguments)[1] == 0
    calls, store.after = store.changes, after
    assert calls > 15, "it was watched"
    outcomes = set()
    for die_at in some(range(calls), 6):
        put_back(folder, kept)
        store.files().delete_dir_contents("bucket")
        for name, content in before.items():
            store.put(f"bucket/{name}", content)
        killed, code, said = run(zygote, store, folder, *arguments, die_at=die_at)
        assert killed or code == 0, said
        there, begun = release_there(folder), drawn(folder)
        assert there in {None, older} or begun <= {there}
        _, code, said = run(zygote, store, folder, *arguments)
        if there not in {None, older} and not force:
            whole = f"{OUTPUT} is the whole release of this request" in said
            assert (code == 0 and whole) or (code == 2 and f"output {OUTPUT} exists" in said), said
            assert release_there(folder) == there
            outcomes.add("published")
        elif there not in {None, older}:  # the ledger was told, and there is no room for another one
            assert release_there(folder) == there
            outcomes.add("published")
        else:
            assert code == 0, said
            assert begun <= {release_there(folder)}, "what noise was drawn for is finished, and no other one"
            outcomes.add("finished")
        assert set(states(folder).values()) <= {"published", "voided"}
        assert sorted(store.names()) == WHOLE
        nothing_is_left(store, folder)
    assert "finished" in outcomes


def test_an_error_of_the_store_leaves_what_was_there(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = place(tmp_path / "place", 60)
    monkeypatch.chdir(folder)
    assert cli(*RUN).code == 0
    older = release_there(folder)
    for number in (0, 9, 14, 20):
        store.changes, store.refuse_from = 0, number
        failed = cli(*RUN, "--force")
        store.refuse_from = None
        assert failed.code == 3, words(failed.err)
        assert "not now" in words(failed.err)
        assert "open-sesame" not in failed.err
        assert "run the same command again" in words(failed.err)
        again = cli(*RUN, "--force")
        assert again.code == 0, words(again.err)
        assert release_there(folder) not in {None, older}
        nothing_is_left(store, folder)


def test_where_nobody_can_tell_it_counts_as_published(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store falls silent while the certificate takes its name: the exit code says so."""
    folder = place(tmp_path / "place", 60)
    monkeypatch.chdir(folder)
    assert cli(*RUN).code == 0
    store.changes = 0
    assert cli(*RUN, "--force").code == 0
    calls, codes = store.changes, set()
    for number in range(calls - 12, calls - 4):
        store.changes, store.refuse_from, store.silent = 0, number, True
        ended = cli(*RUN, "--force")
        store.refuse_from, store.silent = None, False
        codes.add(ended.code)
        assert ended.code in {0, 3, 4}, words(ended.err)
        if ended.code == 4:
            assert "the release IS published" in words(ended.err)
        assert "reserved" in states(folder).values() or ended.code != 3
        again = cli(*RUN, "--force")
        assert again.code == 0, words(again.err)
        assert set(states(folder).values()) == {"published"}
        assert release_there(folder) is not None
        nothing_is_left(store, folder)
    assert codes == {3, 4}


def test_what_has_no_certificate_is_no_release(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = place(tmp_path / "place", 60)
    monkeypatch.chdir(folder)
    assert cli(*RUN).code == 0
    assert cli("verify", OUTPUT).code == 0
    store.files().delete_file(f"bucket/{WHOLE[1]}")
    refused = cli("verify", OUTPUT)
    assert refused.code == 2
    assert "certificate" in words(refused.err)
    assert "cannot be read: No such file" in words(refused.err)
    forced = cli(*RUN, "--force")
    assert forced.code == 2
    assert "is not a release with a certificate: --force replaces nothing else" in words(forced.err)
    assert cli("verify", "s3://bucket/out/absent.parquet").code == 6, "it may come yet"


def test_a_folder_of_parts_replaces_another_one(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = place(tmp_path / "place", 60)
    monkeypatch.chdir(folder)
    monkeypatch.setattr("targetdp.table._sink.ROWS_PER_PART", 64)
    write_parquet(folder / "in.parquet", table_of(200))
    output = "s3://bucket/out/parts"
    asked = ("--B", "0.25", "--epsilon", "4", "--yes")
    assert cli("privatize", "in.parquet", output, *asked).code == 0
    first, names = release_there(folder, output), store.names()
    write_parquet(folder / "in.parquet", table_of(60))
    done = cli("privatize", "in.parquet", output, *asked, "--force")
    assert done.code == 0, words(done.err)
    assert release_there(folder, output) not in {None, first}
    assert len(store.names()) <= len(names)
    nothing_is_left(store, folder)


def test_a_table_in_a_store_is_released_as_on_disk(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = place(tmp_path / "place", 60)
    monkeypatch.chdir(folder)
    store.put("bucket/in/part-0.parquet", (folder / "in.parquet").read_bytes())
    looked = cli("privatize", "s3://bucket/in", "--check", "--B", "0.25", "--epsilon", "4")
    assert looked.code == 0, words(looked.err)
    table = "s3://bucket/in/part-0.parquet"
    done = privatize(table, "out.parquet", desk=folder / "desk", request=request_of())
    assert read_back(folder / "out.parquet").num_rows == done.certificate.rows == 60
    nothing_is_left(store, folder)
    absent = cli("privatize", "s3://bucket/absent.parquet", *RUN[2:])
    assert absent.code == 6, "a timer tries again"
    assert "input s3://bucket/absent.parquet does not exist: check the name" in words(absent.err)
    for wrong, message in (
        ("s3://bucket/out", "overlap"),
        ("s3://bucket/o%75t", "overlap"),
        (f"{OUTPUT}?region=us-east-1", "overlap"),
        ("nowhere://bucket/x", "nowhere://… cannot be opened"),
    ):
        refused = cli("privatize", wrong, *RUN[2:])
        assert refused.code == 2
        assert message in words(refused.err)


def test_the_same_command_again_finds_that_it_was_done(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = place(tmp_path / "place", 60)
    monkeypatch.chdir(folder)
    assert cli(*RUN).code == 0
    there = release_there(folder)
    again = cli(*RUN, "--json")
    assert again.code == 0, words(again.err)
    assert again.json["outcome"] == "already released"
    assert (again.json["output"], again.json["release"]) == (OUTPUT, there)
    write_parquet(folder / "in.parquet", table_of(61))
    other = cli(*RUN)
    assert other.code == 2
    assert "was made of another table" in words(other.err)
    store.files().delete_file(f"bucket/{WHOLE[0]}")
    assert cli(*RUN).code == 2
    assert list(states(folder).values()) == ["published"]
    nothing_is_left(store, folder)


def test_two_runs_to_one_output_do_not_meet(store: Store, zygote: Zygote, tmp_path: Path) -> None:
    folder = place(tmp_path / "place", 60, limit=room_for(1))
    ended = zygote.together(folder, RUN, RUN, **store.environment)
    # The other one comes too early, or finds what was made.
    assert sorted(one.code or 0 for one in ended) in ([0, 0], [0, 6]), [one.words for one in ended]
    assert release_there(folder) is not None
    nothing_is_left(store, folder)
    assert list(states(folder).values()) == ["published"]


def test_people_who_agreed_are_not_handed_over_into_a_store(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = place(tmp_path / "place", 60)
    monkeypatch.chdir(folder)
    (folder / "agreed.csv").write_text("name\n000003\n")
    refused = cli("agree", "in.parquet", "agreed.csv", "s3://bucket/agreed.parquet", "--yes")
    assert refused.code == 2
    assert store.names() == []
    assert not os.path.lexists(folder / "s3:")


def test_a_name_in_a_store_does_not_lead_out_of_the_copy(store: Store, tmp_path: Path) -> None:
    """A key may say anything, and whoever may write there wrote it."""
    store.put("bucket/june/part-0.parquet", write_parquet(tmp_path / "in.parquet").read_bytes())
    store.plant("bucket", "june/../../../planted.txt", b"planted")
    folder = tmp_path / "a" / "b" / "c"
    folder.mkdir(parents=True)
    with pytest.raises(TableError, match=r"'\.\.' in it, which leads elsewhere"):
        StoredTable("s3://bucket/june").fetch(folder)
    assert list(tmp_path.rglob("planted*")) == []


@pytest.mark.parametrize("name", ["out/people.parquet", "out/people.parquet.certificate.md"])
def test_what_others_put_there_meanwhile_is_not_taken_away(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    folder = place(tmp_path / "place", 60)

    def release(confirm: Any = None) -> None:
        privatize(folder / "in.parquet", OUTPUT, desk=folder / "desk", request=request_of(), confirm=confirm)

    with pytest.raises(ValueError, match="exists: choose another name"):
        release(lambda _: store.put(f"bucket/{name}", b"the only copy"))
    assert store.get(f"bucket/{name}") == b"the only copy"
    store.files().delete_file(f"bucket/{name}")
    real = StoreStaging._move

    def late(staging: StoreStaging, here: PurePosixPath, there: PurePosixPath) -> None:
        real(staging, here, there)
        if there.name == "people.parquet":
            store.put(f"bucket/{name}", b"the only copy")
            raise OSError("the store went away")

    monkeypatch.setattr(StoreStaging, "_move", late)
    with pytest.raises(OSError, match="went away"):
        release()
    assert store.get(f"bucket/{name}") == b"the only copy"


def test_what_is_published_in_a_store_is_not_finished_elsewhere(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its ledger was not told; the same request to another output is another release."""
    folder = place(tmp_path / "place", 60)
    monkeypatch.chdir(folder)

    def full(*_: Any) -> None:
        raise OSError(28, "no space")

    with monkeypatch.context() as patched:
        patched.setattr("targetdp.release._ledger._book.Ledger.settle", full)
        assert cli(*RUN).code == 4
    first = json.loads(store.get(f"bucket/{WHOLE[1]}"))["release"]
    assert cli("privatize", "in.parquet", "b.csv", *RUN[3:]).code == 0
    assert read_certificate(certificate_path(folder / "b.csv")).release != first
    again = cli(*RUN)
    assert again.code == 0, words(again.err)
    assert release_there(folder) == first
    assert list(states(folder).values()) == ["published", "published"]


def test_an_older_release_that_was_set_aside_is_never_deleted(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that dies leaves it under a name with a dot; then somebody writes a certificate there."""
    folder = place(tmp_path / "place", 60)
    monkeypatch.chdir(folder)
    assert cli(*RUN).code == 0
    older = store.get(f"bucket/{WHOLE[0]}")
    real = StoreStaging._move

    def dies(staging: StoreStaging, here: PurePosixPath, there: PurePosixPath) -> None:
        if there.name == "people.parquet.certificate.json":
            raise KeyboardInterrupt
        real(staging, here, there)

    def tidies_nothing(staging: StoreStaging, *_: Any) -> None:
        os.close(cast("int", staging._lock))
        staging._lock = None

    with monkeypatch.context() as patched:
        patched.setattr(StoreStaging, "_move", dies)
        patched.setattr(StoreStaging, "__exit__", tidies_nothing)
        with pytest.raises(BaseException):  # noqa: B017, PT011 (as if it were killed)
            privatize(folder / "in.parquet", OUTPUT, desk=folder / "desk", request=request_of(), force=True)
    store.put(f"bucket/{WHOLE[1]}", b"{}")
    refused = cli(*RUN, "--force")
    assert refused.code == 2, words(refused.err)
    assert "an older release lies under" in words(refused.err)
    (aside,) = [name for name in store.names() if "/old/table" in name]
    assert store.get(f"bucket/{aside}") == older
    store.files().delete_file(f"bucket/{WHOLE[1]}")
    assert cli(*RUN, "--force").code == 0
    assert sorted(store.names()) == WHOLE


def test_force_replaces_no_folder_that_somebody_put_something_into(store: Store, tmp_path: Path) -> None:
    folder = place(tmp_path / "place", 60)
    output, name = "s3://bucket/out/parts", "bucket/out/parts/notes.txt"

    def release(**given: Any) -> None:
        privatize(folder / "in.parquet", output, desk=folder / "desk", request=request_of(), **given)

    release()
    with pytest.raises(ValueError, match="--force replaces nothing else"):
        release(force=True, confirm=lambda _: store.put(name, b"precious"))
    assert store.get(name) == b"precious"


def test_a_run_that_ends_takes_no_folder_from_under_another_one(store: Store, tmp_path: Path) -> None:
    folder = place(tmp_path / "place", 60)
    one, other = (StoreStaging(OUTPUT, folder / "desk", force=False) for _ in range(2))
    with one:
        pass
    with other:
        assert other.output.parent.is_dir()
    nothing_is_left(store, folder)
