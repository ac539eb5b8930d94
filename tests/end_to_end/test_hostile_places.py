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
    cli,
    hidden,
    holds,
    read_back,
    table_of,
    write_parquet,
    write_scales,
)
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

PLAIN = ("--B", "0.25", "--epsilon", "4", "--scales", "data", "--mechanism", "gaussian", "--delta", "1e-3")


def asked(folder: Path) -> tuple[str, ...]:
    return (*ASKED, "--scales", str(folder / "scales.toml"), "--mechanism", "gaussian")


@pytest.mark.parametrize("name", ODD, ids=range(len(ODD)))
def test_any_name_of_a_folder_and_of_a_file_works(name: str, tmp_path: Path) -> None:
    folder = tmp_path / name
    folder.mkdir()
    write_scales(folder / "scales.toml")
    short = name[:100]
    source, output = write_parquet(folder / f"in {short}.parquet"), folder / f"out {short}.parquet"
    ran = cli(
        "privatize", source, output, *asked(folder), "--ledger", folder / "ledger.db", "--population", "p"
    )
    assert ran.code == 0, ran.err
    assert holds(output)
    assert cli("verify", output).code == 0
    assert cli("ledger", "verify", "--ledger", folder / "ledger.db").code == 0
    assert hidden(folder) == []


@pytest.mark.parametrize(
    "column", ["<b>x</b>", "=1+1", "a,b", 'q"q', "tab\there", "💥", "x" * 500, "a.b", "[t]"]
)
def test_any_name_of_a_column_works_or_is_refused_in_words(column: str, tmp_path: Path) -> None:
    table = table_of(40).rename_columns(["name", column, "texts", "topups"])
    source = write_parquet(tmp_path / "in.parquet", table)
    names = tmp_path / "features.txt"
    names.write_text(f"{column}\ntexts\ntopups\n", encoding="utf-8")
    for suffix in ("parquet", "csv"):
        output = tmp_path / f"out.{suffix}"
        ran = cli("privatize", source, output, "--id", "name", "--features", f"@{names}", *PLAIN)
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


def release(tmp_path: Path, table: pa.Table, features: list[str]) -> tuple[int, str]:
    source = write_parquet(tmp_path / "in.parquet", table)
    names = tmp_path / "features.txt"
    names.write_text("\n".join(features), encoding="utf-8")
    ran = cli(
        "privatize", source, tmp_path / "out.parquet", "--id", "name", "--features", f"@{names}", *PLAIN
    )
    assert "Traceback" not in ran.err
    return ran.code, ran.err


def test_ten_thousand_columns_are_released(tmp_path: Path) -> None:
    table = wide(10_000)
    code, err = release(tmp_path, table, table.column_names[1:])
    assert code == 0, err
    assert holds(tmp_path / "out.parquet")


def test_no_column_at_all_is_refused(tmp_path: Path) -> None:
    code, err = release(tmp_path, wide(2), [])
    assert code == 2
    assert "features" in err
    assert not (tmp_path / "out.parquet").exists()


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
    code, err = release(tmp_path, table, ["c0", "c1", "odd"])
    if code == 0:
        assert holds(tmp_path / "out.parquet")
        released = np.asarray(read_back(tmp_path / "out.parquet").column("odd"))
        assert np.isfinite(released).all()
    else:
        assert code == 2
        assert "odd" in err
        assert not (tmp_path / "out.parquet").exists()


@pytest.mark.skipif(os.name != "posix", reason="links and permissions of POSIX")
def test_a_link_in_the_way_of_what_is_written_leads_nowhere(tmp_path: Path) -> None:
    """Whoever may write into the folder must not make us overwrite a file elsewhere."""
    folder, victim = tmp_path / "place", tmp_path / "victim"
    folder.mkdir()
    victim.write_text("precious", encoding="utf-8")
    write_scales(folder / "scales.toml")
    source = write_parquet(folder / "in.parquet")
    for name in (".out.parquet.targetdp", "out.parquet.certificate.json", "out.parquet.certificate.md"):
        link = folder / name
        link.symlink_to(victim)
        ran = cli("privatize", source, folder / "out.parquet", *asked(folder))
        assert "Traceback" not in ran.err
        assert victim.read_text(encoding="utf-8") == "precious", name
        for path in folder.glob("*out.parquet*"):
            if path.is_symlink() or path.is_file():
                path.unlink()
        link.unlink(missing_ok=True)


@pytest.mark.skipif(os.name != "posix", reason="links and permissions of POSIX")
def test_only_the_owner_reads_keys_ledgers_and_confidential_scales(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TARGETDP_KEY", str(tmp_path / "own" / "signing-key.pem"))
    before = os.umask(0o000)  # whatever the user's habits are
    try:
        write_scales(tmp_path / "scales.toml")
        source = write_parquet(tmp_path / "in.parquet")
        ran = cli(
            "privatize", source, tmp_path / "out.parquet", *asked(tmp_path), "--ledger",
            tmp_path / "ledger.db", "--population", "p", "--pseudonymize", tmp_path / "pseudonyms.key",
        )  # fmt: skip
        assert ran.code == 0, ran.err
        ran = cli(
            "scales", source, "--features", ",".join(FEATURES), "--source", "confidential", "--out",
            tmp_path / "own.toml",
        )  # fmt: skip
        assert ran.code == 0, ran.err
    finally:
        os.umask(before)
    for secret in ("own/signing-key.pem", "pseudonyms.key", "ledger.db", "own.toml"):
        mode = stat.S_IMODE((tmp_path / secret).stat().st_mode)
        assert mode & 0o077 == 0, f"{secret} has {mode:o}"
