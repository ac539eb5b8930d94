"""Parts and samples whatever the order, the population, and the state of the ledger."""

from pathlib import Path
from typing import Any

import pytest

from support.release import nothing_changes, read_back, write_parquet
from support.scores import charged, release_sample, release_scores, two_tables, write_weights
from targetdp.guarantee import Guarantee
from targetdp.release import Head, Ledger, PublishedButUnsettledError, SigningKey


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    two_tables(tmp_path)
    return tmp_path


def named(warnings: tuple[str, ...]) -> str:
    """What the data holder is told that the name of a part declares."""
    return "".join(warning for warning in warnings if "declares that nobody in this table is in" in warning)


def test_a_part_of_features_is_told_what_it_declares_too(folder: Path) -> None:
    """A second sample, after the scores, has people who were scored."""
    assert named(release_sample(folder, **charged(folder, "sample")).warnings) == ""
    release_scores(folder, sample=folder / "sample.parquet", **charged(folder, "others"))
    write_parquet(folder / "sampled.parquet", read_back(folder / "all.parquet").slice(40, 40))
    done = release_sample(folder, "two.parquet", **charged(folder, "sample two"))
    for part in ("sample", "others"):
        assert f"(part {part!r})" in named(done.warnings)
    assert named(release_sample(folder, "three.parquet", **charged(folder)).warnings) == ""


def test_no_sample_is_told_what_it_declares_whatever_the_population(folder: Path) -> None:
    one = release_sample(folder, **charged(folder, "sample")).certificate
    two = release_scores(folder, sample=folder / "sample.parquet", **charged(folder, "others")).certificate
    elsewhere = charged(folder) | {"population": "pilot"}
    done = release_scores(folder, "n.parquet", no_sample=True, **elsewhere)
    (told,) = (warning for warning in done.warnings if warning.startswith("no_sample declares"))
    assert repr(one.release) in told
    for tied in (one, two):
        assert tied.ledger is not None
        assert f"entry {tied.ledger.number} (population 'people', part {tied.ledger.part!r})" in told
    # Where all of it adds up, or has nothing to do with these weights, nothing is declared.
    quiet = [release_scores(folder, "m.parquet", no_sample=True, **charged(folder))]
    write_weights(folder / "weights.toml", release="another")
    quiet.append(release_scores(folder, "o.parquet", no_sample=True, **elsewhere))
    assert not any(warning.startswith("no_sample declares") for q in quiet for warning in q.warnings)


def test_the_sample_s_certificate_proves_that_the_ledger_was_put_back(folder: Path) -> None:
    ledger = Ledger(folder / "ledger.db", SigningKey.open(folder / "key.pem"))
    ledger.set_limit("people", Guarantee(0.25, 6.0, 1e-6))
    before = {name: (folder / name).read_bytes() for name in ("ledger.db", "ledger.db.head")}
    release_sample(folder, **charged(folder, "sample"))
    for name, content in before.items():
        (folder / name).write_bytes(content)
    for part in ("others", None):
        with (
            nothing_changes(folder),
            pytest.raises(ValueError, match=r"the ledger does not have the sample.*the tail was cut"),
        ):
            release_scores(folder, sample=folder / "sample.parquet", **charged(folder, part))


def test_a_sample_that_was_scored_counts_for_good(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its run was killed before it could tell the ledger, and its files were moved away."""

    def killed(*arguments: Any) -> Head:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "settle", killed)
        with pytest.raises(PublishedButUnsettledError):
            release_sample(folder, **charged(folder, "sample"))
    ledger = Ledger.existing(folder / "ledger.db", SigningKey.open(folder / "key.pem"))
    (row,) = ledger.releases()
    assert row.state == "reserved"
    write_weights(folder / "weights.toml", release=row.release)
    release_scores(folder, sample=folder / "sample.parquet", score_sample=True, **charged(folder))
    assert ledger.release(row.release).state == "published"
    with pytest.raises(ValueError, match="is published: only what is reserved"):
        ledger.void(row.release, "killed")
