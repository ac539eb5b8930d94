"""Odd paths, odd names, odd shapes, links in the way, and who may read what was written."""

import os
import stat
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from support.release import (
    ASKED,
    FEATURES,
    Ran,
    cli,
    hidden,
    holds,
    make_desk,
    place_with,
    read_back,
    request_of,
    table_of,
    words,
    write_parquet,
    write_scales,
)
from support.staged import states
from targetdp.release import Desk
from targetdp.release._staging import page_path

ODD = [
    "with space",
    "ünïcödé 💥",
    "new\nline",
    "semi;colon & 'quotes' \"double\"",
    "-dash",
    "~tilde",
    "$HOME",
    "a" * 200,
]


@pytest.mark.parametrize("name", ODD, ids=range(len(ODD)))
def test_any_name_of_a_folder_and_of_a_file_works(name: str, tmp_path: Path) -> None:
    folder = tmp_path / name
    folder.mkdir()
    write_scales(folder / "scales.toml")
    short = name[:100]
    source, output = write_parquet(folder / f"in {short}.parquet"), folder / f"out {short}.parquet"
    made = cli("init", source, "--scales", folder / "scales.toml", "--desk", folder / "desk")
    assert made.code == 0, made.err
    ran = cli("privatize", source, output, *ASKED, "--desk", folder / "desk")
    assert ran.code == 0, ran.err
    assert holds(output)
    assert cli("verify", output).code == 0
    assert cli("ledger", "verify", "--desk", folder / "desk").code == 0
    assert cli("status", "--desk", folder / "desk").code == 0
    assert hidden(folder) == []


def desk_for(folder: Path, table: pa.Table) -> Ran:
    """As a data holder makes one: scales of public data, which are these, and `targetdp init`."""
    source = write_parquet(folder / "in.parquet", table)
    names = folder / "features.txt"
    names.write_text("\n".join(table.column_names[1:]), encoding="utf-8")
    named = ("--source", "public", "--reason", "a test", "--other-people", "a test")
    scaled = (*named, "--out", folder / "scales.toml", "--force")
    ran = cli("scales", source, "--id", "name", "--features", f"@{names}", *scaled)
    if ran.code != 0:
        return ran
    return cli("init", source, "--scales", folder / "scales.toml", "--desk", folder / "desk")


@pytest.mark.parametrize(
    "column", ["<b>x</b>", "=1+1", "a,b", 'q"q', "tab\there", "💥", "x" * 500, "a.b", "[t]", "#no", "''"]
)
def test_any_name_of_a_column_works_or_is_refused_in_words(column: str, tmp_path: Path) -> None:
    table = table_of(40).rename_columns(["name", column, "texts", "topups"])
    made = desk_for(tmp_path, table)
    assert made.code == 0, made.err
    assert column in Desk.open(tmp_path / "desk").policy.columns.release
    for suffix in ("parquet", "csv"):
        output = tmp_path / f"out.{suffix}"
        ran = cli("privatize", tmp_path / "in.parquet", output, *ASKED, "--desk", tmp_path / "desk")
        assert "Traceback" not in ran.err
        if ran.code == 0:
            assert holds(output)
            assert set(read_back(output).column_names) == {"name", column, "texts", "topups"}
            assert "<" not in page_path(output).read_text(encoding="utf-8")
        else:
            assert ran.code == 2
            assert not output.exists()
            assert column == "=1+1"
            assert "formula" in ran.err
    assert hidden(tmp_path) == []


def wide(columns: int) -> pa.Table:
    rng = np.random.default_rng(0)
    return pa.table(
        {"name": [f"{i}" for i in range(30)]} | {f"c{j}": rng.normal(size=30) for j in range(columns)}
    )


def release(folder: Path, table: pa.Table) -> Ran:
    """A release of all columns, at a desk that `init` has made with public scales."""
    made = desk_for(folder, table)
    if made.code != 0:
        return made
    # Normal noise: what the least noise costs a filter is not told closely for so many columns.
    request = folder / "request.toml"
    request.write_text(request_of(mechanism="gaussian").text(), encoding="utf-8")
    asked = ("--request", request, "--yes", "--desk", folder / "desk")
    ran = cli("privatize", folder / "in.parquet", folder / "out.parquet", *asked)
    assert "Traceback" not in ran.err
    return ran


def test_ten_thousand_columns_are_released(tmp_path: Path) -> None:
    ran = release(tmp_path, wide(10_000))
    assert ran.code == 0, ran.err
    assert holds(tmp_path / "out.parquet")
    assert all(len(line) < 5_000 for line in ran.err.splitlines()), "nobody reads ten thousand names"


def test_no_column_at_all_is_refused(tmp_path: Path) -> None:
    source = write_parquet(tmp_path / "in.parquet", wide(0))
    ran = cli("init", source, "--desk", tmp_path / "desk")
    assert ran.code == 2
    assert "no column of" in words(ran.err)
    assert not (tmp_path / "desk").exists()


@pytest.mark.parametrize(
    "column",
    [
        pa.array([2**63 - 1, -(2**63)] + [0] * 28), pa.array([5e-324, -5e-324] + [1.0] * 28),
        pa.array([1.7e308, -1.7e308] + [1.0] * 28), pa.array([True, False] * 15),
        pa.array(["1", "x"] * 15), pa.array([b"1"] * 30), pa.array([[1.0]] * 30), pa.array([{"a": 1.0}] * 30),
        pa.array([None] * 30), pa.array([float("inf")] + [1.0] * 29),
        pa.array(["1.5", "2"] * 15).dictionary_encode(),
    ],
    ids=["large ints", "denormals", "huge", "truths", "texts", "bytes", "lists", "structs", "nothing",
         "infinite", "a dictionary"],
)  # fmt: skip
def test_odd_values_are_released_rightly_or_refused_in_words(column: pa.Array, tmp_path: Path) -> None:
    table = wide(2).append_column("odd", column)
    write_parquet(tmp_path / "in.parquet", table)
    make_desk(tmp_path, features=("c0", "c1", "odd"))
    ran = cli(
        "privatize", tmp_path / "in.parquet", tmp_path / "out.parquet", *ASKED, "--desk", tmp_path / "desk"
    )
    assert "Traceback" not in ran.err
    if ran.code == 0:
        assert holds(tmp_path / "out.parquet")
        released = np.asarray(read_back(tmp_path / "out.parquet").column("odd"))
        assert np.isfinite(released).all()
    else:
        assert ran.code == 2
        assert "odd" in ran.err
        assert not (tmp_path / "out.parquet").exists()
        assert states(tmp_path) == {}


@pytest.mark.skipif(os.name != "posix", reason="links and permissions of POSIX")
def test_a_link_in_the_way_of_what_is_written_leads_nowhere(tmp_path: Path) -> None:
    """Whoever may write into the folder must not make us overwrite a file elsewhere."""
    folder, victim = tmp_path / "place", tmp_path / "victim"
    folder.mkdir()
    victim.write_text("precious", encoding="utf-8")
    make_desk(folder)
    source = write_parquet(folder / "in.parquet")
    for name in (
        ".out.parquet.targetdp", ".out.parquet.targetdp.lock", "out.parquet.certificate.json",
        "out.parquet.certificate.md",
    ):  # fmt: skip
        link = folder / name
        link.symlink_to(victim)
        ran = cli("privatize", source, folder / "out.parquet", *ASKED, "--desk", folder / "desk")
        assert "Traceback" not in ran.err
        assert victim.read_text(encoding="utf-8") == "precious", name
        for path in folder.glob("*out.parquet*"):
            if path.is_symlink() or path.is_file():
                path.unlink()
        link.unlink(missing_ok=True)


@pytest.mark.skipif(os.name != "posix", reason="links and permissions of POSIX")
def test_only_the_owner_reads_the_desk_and_what_is_confidential(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TARGETDP_KEY", str(tmp_path / "own" / "signing-key.pem"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    before = os.umask(0o000)  # whatever the user's habits are
    try:
        folder = place_with(tmp_path / "place", pseudonyms=True)
        desk = ("--desk", folder / "desk")
        ran = cli("privatize", folder / "in.parquet", folder / "out.parquet", *ASKED, *desk)
        assert ran.code == 0, ran.err
        ran = cli(
            "scales", folder / "in.parquet", "--features", ",".join(FEATURES), "--source", "confidential",
            "--out", tmp_path / "own.toml",
        )  # fmt: skip
        assert ran.code == 0, ran.err
        ran = cli("ids", folder / "in.parquet", tmp_path / "who.csv", "--column", "name", *desk)
        assert ran.code == 0, ran.err
        request = folder / "request.toml"
        request.write_text('release = "rows"\nB = 0.25\nepsilon = 4\n')
        assert cli("request", "sign", request, "--out", tmp_path / "signed.toml").code == 0
    finally:
        os.umask(before)
    secret = list((folder / "desk").rglob("*"))
    assert {path.name for path in secret} >= {
        "keys", "people", "drafts", "signing.pem", "tags.key", "pseudonyms.key", "ledger.db",
        "ledger.db.head", "log.jsonl", "policy.toml", "desk.json",
    }  # fmt: skip
    for path in (
        folder / "desk", *secret, tmp_path / "own" / "signing-key.pem", tmp_path / "own.toml",
        tmp_path / "who.csv", tmp_path / "config" / "targetdp" / "desks.jsonl",
    ):  # fmt: skip
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode & 0o077 == 0, f"{path} has {mode:o}"


@pytest.mark.skipif(os.name != "posix", reason="links and permissions of POSIX")
def test_a_desk_that_others_can_read_is_refused(tmp_path: Path) -> None:
    folder = place_with(tmp_path / "place")
    (folder / "desk").chmod(0o750)
    ran = cli("privatize", folder / "in.parquet", folder / "out.parquet", *ASKED, "--desk", folder / "desk")
    assert (ran.code, "chmod 700" in ran.err) == (2, True)
    assert not (folder / "out.parquet").exists()
