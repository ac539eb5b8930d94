"""Two processes at once: on one budget, on one output, on one new key."""

from pathlib import Path

from support.release import (
    ASKED,
    cli,
    hidden,
    holds,
    read_back,
    table_of,
    words,
    write_parquet,
    write_scales,
)
from support.zygote import Zygote
from targetdp.release import Ledger


def place(folder: Path, rows: int) -> None:
    write_parquet(folder / "in.parquet", table_of(rows))
    write_scales(folder / "scales.toml")


def together(zygote: Zygote, folder: Path, *runs: tuple[str, ...], **more: str) -> list[tuple[int, str]]:
    """Start all runs at the same time; their exit codes and words."""
    done = zygote.together(folder, *(("privatize", *run) for run in runs), **more)
    assert not any("Traceback" in ended.err for ended in done), done
    return [(-1 if ended.code is None else ended.code, words(ended.err)) for ended in done]


def test_of_three_that_race_for_the_last_budget_one_publishes(zygote: Zygote, tmp_path: Path) -> None:
    place(tmp_path, 30_000)
    limit = ("--B", "0.25", "--epsilon", "4.2", "--delta", "1e-4")
    book = ("--ledger", str(tmp_path / "ledger.db"), "--population", "people")
    assert cli("ledger", "limit", *book, *limit).code == 0
    plain = (*ASKED, "--scales", "scales.toml", "--mechanism", "gaussian", *book)
    done = together(zygote, tmp_path, *(("in.parquet", f"out{i}.parquet", *plain) for i in range(3)))
    assert sorted(code for code, _ in done) == [0, 2, 2]
    for i, (code, said) in enumerate(done):
        assert (tmp_path / f"out{i}.parquet").exists() == (code == 0)
        if code == 0:
            assert holds(tmp_path / f"out{i}.parquet")
        else:
            assert "requested ε" in said
            assert "remaining" in said
    ledger = Ledger.existing(tmp_path / "ledger.db")
    assert ledger.verify() == []
    assert [row.state for row in ledger.releases() if row.counts] == ["published"]
    assert ledger.standing("people").spent <= 4.2
    assert hidden(tmp_path) == []


def test_of_two_that_write_the_same_output_one_wins(zygote: Zygote, tmp_path: Path) -> None:
    place(tmp_path, 200_000)
    run = ("in.parquet", "out.parquet", *ASKED, "--scales", "scales.toml", "--mechanism", "gaussian")
    done = together(zygote, tmp_path, run, run)
    assert sorted(code for code, _ in done) == [0, 2]
    (said,) = (said for code, said in done if code == 2)
    assert "another run is writing out.parquet" in said or "output out.parquet exists" in said
    assert holds(tmp_path / "out.parquet")
    assert hidden(tmp_path) == []


def test_two_first_runs_share_one_new_key_and_one_new_ledger(zygote: Zygote, tmp_path: Path) -> None:
    """A run whose new key came second must try again: its pseudonyms would be others."""
    place(tmp_path, 500)
    book = ("--ledger", "ledger.db", "--population", "people", "--pseudonymize", "pseudonyms.key")
    plain = (*ASKED, "--scales", "scales.toml", "--mechanism", "gaussian", *book)
    done = together(
        zygote, tmp_path, *(("in.parquet", f"out{i}.parquet", *plain) for i in range(2)),
        TARGETDP_KEY=str(tmp_path / "key.pem"),
    )  # fmt: skip
    assert sorted(code for code, _ in done) in ([0, 0], [0, 2]), done
    for i, (code, said) in enumerate(done):
        if code:
            assert "pseudonyms.key was made by another run meanwhile" in said
            assert not (tmp_path / f"out{i}.parquet").exists()
            again = together(
                zygote,
                tmp_path,
                ("in.parquet", f"out{i}.parquet", *plain),
                TARGETDP_KEY=str(tmp_path / "key.pem"),
            )
            assert again[0][0] == 0, again
    names = [read_back(tmp_path / f"out{i}.parquet")["name"].to_pylist() for i in range(2)]
    assert names[0] == names[1], "one key, one pseudonym for a person"
    assert all(holds(tmp_path / f"out{i}.parquet") for i in range(2))
    ledger = Ledger.existing(tmp_path / "ledger.db")
    assert ledger.verify() == []
    assert [row.state for row in ledger.releases()] == ["published", "published"]
