"""A sample and scores by their commands: what a data holder types, sees, and is protected from."""

import io
import os
import pty
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.release import (
    ASKED,
    COMMAND,
    FEATURES,
    Ran,
    certificate_of,
    cli,
    command,
    environment,
    nothing_changes,
    read_back,
    words,
    write_parquet,
)
from support.scores import two_tables, write_weights
from targetdp.release import SigningKey, certificate_path, default_key_path
from targetdp.release._staging import page_path

LEDGER = ("--ledger", "ledger.db", "--population", "people")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    two_tables(tmp_path)
    write_weights(tmp_path / "weights.toml")
    monkeypatch.chdir(tmp_path)
    SigningKey.open(default_key_path())
    return tmp_path


def score(*arguments: Any, output: str = "scores.parquet", weights: str = "weights.toml") -> Ran:
    return cli("score", "all.parquet", weights, output, *ASKED, "--scales", "scales.toml", *arguments)


def sampled(folder: Path, *arguments: Any) -> str:
    """The sample, and the weights that were learned from it."""
    ran = cli(
        "privatize", "sampled.parquet", "sample.parquet", *ASKED, "--scales", "scales.toml", "--json",
        *arguments,
    )  # fmt: skip
    assert ran.code == 0, ran.err
    release = str(ran.json["release"])
    write_weights(folder / "weights.toml", release=release)
    return release


def test_the_story_of_a_sample_and_scores(folder: Path) -> None:
    assert cli("ledger", "limit", *LEDGER, "--B", "0.25", "--epsilon", "4.5", "--delta", "0.03").code == 0
    release = sampled(folder, *LEDGER, "--part", "sample")
    ran = score("--sample", "sample.parquet", *LEDGER, "--part", "others")
    assert ran.code == 0, ran.err
    assert ran.out == ""
    said = words(ran.err)
    assert "the scores are made of: score: 67% texts (raises it), 17% calls (raises it)" in said
    assert "80 rows, 1 score → scores.parquet: (B = 0.25, ε = 4, δ = 8.08e-28), on conditions" in said
    assert (
        "people of the sample are left out: their own release gave them (B = 0.25, ε = 4, δ = 0.0244)" in said
    )
    assert read_back(folder / "scores.parquet").column_names == ["name", "score"]
    ran = cli("verify", "scores.parquet", "--ledger", "ledger.db", "--sample", "sample.parquet", "--json")
    assert ran.json["holds"] is True
    assert {"the sample's certificate", "weights", "charge"} <= {
        check["what"] for check in ran.json["checks"]
    }
    sample = certificate_of(folder / "scores.parquet").sample
    assert sample is not None
    assert sample.release == release
    shown = cli("ledger", "show", "--ledger", "ledger.db", "--json").json
    assert shown["populations"]["people"]["spent"] <= 4.0
    assert [row["part"] for row in shown["releases"]] == ["sample", "others"]
    assert "scores," in cli("ledger", "show", "--ledger", "ledger.db").out
    # Another direction would cost these people as much again.
    with nothing_changes(folder):
        ran = score("--sample", "sample.parquet", *LEDGER, "--part", "others", output="more.parquet")
    assert ran.code == 2
    assert "population 'people': this release is refused" in ran.err


def test_a_summary_as_json(folder: Path) -> None:
    sampled(folder)
    ran = score("--sample", "sample.parquet", "--score-sample", "--json")
    assert ran.code == 0, ran.err
    summary = ran.json
    assert (summary["rows"], summary["scores"], summary["features"]) == (120, ["score"], 3)
    assert summary["guarantee"]["epsilon"] == 4.0
    assert 4.0 < summary["inside_the_sample"]["epsilon"] <= 8.0
    assert summary["for_the_data_holder_only"]["rows_clipped"] > 0
    ran = score("--no-sample", "--quiet", output="quiet.parquet")
    assert (ran.code, ran.out, ran.err) == (0, "", "")


def test_who_is_in_the_sample_must_be_said(folder: Path) -> None:
    sampled(folder)
    with nothing_changes(folder):
        ran = score()
    assert ran.code == 2
    assert "give that release (sample)" in ran.err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('scores = ["s"]\n[weights]\ncalls = 1\n', "has no weight for 'texts', 'topups'"),
        ('scores = ["s"]\n[weights]\ncalls = nan\ntexts = 1\ntopups = 1\n', "weights.calls = nan"),
        ('scores = ["name"]\n[weights]\ncalls = 1\ntexts = 1\ntopups = 1\n', "rename the score"),
        ("[weights", "it is not TOML"),
    ],
)
def test_bad_weights_end_with_2_and_nothing_published(folder: Path, content: str, message: str) -> None:
    (folder / "weights.toml").write_text(content)
    with nothing_changes(folder):
        ran = score()
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert "Traceback" not in ran.err


# Weights that single out a column


def test_where_nobody_can_be_asked_yes_must_be_given(folder: Path) -> None:
    write_weights(folder / "weights.toml", [0.0, 1.0, 0.1])
    with nothing_changes(folder):
        ran = score()
    assert ran.code == 2
    assert "the weights single out 'texts' (99%)" in ran.err
    assert "--yes" in ran.err
    ran = score("--yes")
    assert ran.code == 0, ran.err
    assert "the scores are made of: score: over 99% texts (raises it), under 1% topups" in words(ran.err)


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 2), ("", 2)])
def test_the_answer_decides(folder: Path, monkeypatch: pytest.MonkeyPatch, answer: str, code: int) -> None:
    write_weights(folder / "weights.toml", [0.0, 1.0, 0.1])
    monkeypatch.setattr("targetdp.cli._privatize._at_a_terminal", lambda: True)
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{answer}\n"))
    ran = score()
    assert ran.code == code
    assert "Score with these weights? [y/N]" in ran.err
    assert (folder / "scores.parquet").exists() == (code == 0)
    assert ("not confirmed: nothing was published" in ran.err) == (code != 0)


def test_at_a_terminal_the_data_holder_is_asked(folder: Path) -> None:
    write_weights(folder / "weights.toml", [0.0, 1.0, 0.1])
    arguments = ("score", "all.parquet", "weights.toml", "scores.parquet", *ASKED, "--scales", "scales.toml")
    ours, theirs = pty.openpty()
    with subprocess.Popen(  # noqa: S603
        [*COMMAND, *arguments], stdin=theirs, stdout=subprocess.DEVNULL, stderr=theirs, cwd=folder,
        env=environment(COLUMNS="300"),
    ) as process:  # fmt: skip
        os.close(theirs)
        os.write(ours, b"n\n")
        seen = b""
        try:
            while piece := os.read(ours, 65536):
                seen += piece
        except OSError:  # the other end is closed: the command has ended
            pass
    os.close(ours)
    assert b"Score with these weights? [y/N]" in seen
    assert b"single out 'texts'" in seen
    assert process.returncode == 2
    assert not (folder / "scores.parquet").exists()


# People of the sample who are not in the table


def spelled_otherwise(folder: Path, people: int) -> None:
    """So many people of the sample have a space before their id in the table."""
    sample = read_back(folder / "sample.parquet")["name"].to_pylist()[:people]
    table = read_back(folder / "all.parquet")
    names = [f" {name}" if name in sample else name for name in table["name"].to_pylist()]
    write_parquet(folder / "all.parquet", table.set_column(0, "name", pa.array(names)))


def test_many_who_are_said_to_have_left_need_a_word(folder: Path) -> None:
    sampled(folder)
    spelled_otherwise(folder, 39)
    left = ("--sample", "sample.parquet", "--some-have-left")
    with nothing_changes(folder):
        ran = score(*left)
    assert ran.code == 2
    assert "39 of the 40 people of sample sample.parquet are not in the table" in words(ran.err)
    assert "--yes" in ran.err
    ran = score(*left, "--yes")
    assert ran.code == 0, ran.err
    assert "warning: 39 of the 40 people of sample sample.parquet were not found" in words(ran.err)


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 2)])
def test_at_a_terminal_that_is_asked(
    folder: Path, monkeypatch: pytest.MonkeyPatch, answer: str, code: int
) -> None:
    sampled(folder)
    spelled_otherwise(folder, 3)
    monkeypatch.setattr("targetdp.cli._privatize._at_a_terminal", lambda: True)
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{answer}\n"))
    ran = score("--sample", "sample.parquet", "--some-have-left")
    assert ran.code == code
    assert "Have they all left? [y/N]" in ran.err
    assert (folder / "scores.parquet").exists() == (code == 0)


def test_a_few_who_left_are_told_of(folder: Path) -> None:
    sampled(folder)
    spelled_otherwise(folder, 2)
    ran = score("--sample", "sample.parquet", "--some-have-left", "--json")
    assert ran.code == 0, ran.err
    assert any("2 of the 40 people" in warning for warning in ran.json["warnings"])


# What a part declares, and the sample behind scores


def test_what_a_part_declares_is_said_to_the_data_holder(folder: Path) -> None:
    sampled(folder, *LEDGER, "--part", "sample")
    ran = score("--no-sample", *LEDGER, "--part", "others")
    assert ran.code == 0, ran.err
    assert "warning: part 'others' declares that nobody in this table is in these releases" in words(ran.err)
    assert "(part 'sample')" in ran.err


def test_verify_does_not_believe_a_sample_without_its_file_or_signature(folder: Path) -> None:
    sampled(folder)
    assert score("--sample", "sample.parquet").code == 0
    key = SigningKey.open(default_key_path()).public
    for more in ((), ("--public-key", key)):
        ran = cli("verify", "scores.parquet", "--sample", "sample.parquet", "--json", *more)
        assert (ran.code, ran.json["holds"]) == (0, True)
        assert {"sample: signature", "sample: file sample.parquet", "sample: guarantee"} <= {
            check["what"] for check in ran.json["checks"]
        }
    true = certificate_of(folder / "sample.parquet")
    fakes = {
        "sample: signature": true.model_copy(update={"signature": None}),
        "sample: conditions": true.model_copy(update={"conditions": ("Everything is fine.",)}),
        "sample: signer": true.signed(SigningKey.open(folder / "stranger.pem")),
    }
    place = certificate_path(folder / "sample.parquet")
    page_path(folder / "sample.parquet").unlink()  # which would tell, too
    for wrong, fake in fakes.items():
        place.write_text(fake.text(), encoding="utf-8")
        ran = cli("verify", "scores.parquet", "--sample", "sample.parquet", "--json")
        assert ran.code == 1
        assert wrong in {check["what"] for check in ran.json["checks"] if check["holds"] is False}
    place.write_text(true.text(), encoding="utf-8")
    (folder / "sample.parquet").unlink()
    ran = cli("verify", "scores.parquet", "--sample", "sample.parquet")
    assert ran.code == 1
    assert "sample: file" in ran.out


def test_scores_in_the_scales_that_the_sample_has_paid_for(folder: Path) -> None:
    bounds = "\n".join(f"{name} = {{ lower = -100, upper = 100 }}" for name in FEATURES)
    (folder / "bounds.toml").write_text(f"[features]\n{bounds}\n")
    paid = ("--scales", "private", "--bounds", "bounds.toml", "--scales-epsilon", "20")
    sampled(folder, *paid)  # the last of two --scales counts
    ran = score("--sample", "sample.parquet", "--scales", "sample", "--json")
    assert ran.code == 0, ran.err
    assert ran.json["guarantee"]["epsilon"] == 4.0
    assert ran.json["inside_the_sample"]["epsilon"] == pytest.approx(24.0)
    assert not any("are not known to be those of the sample" in warning for warning in ran.json["warnings"])
    assert cli("verify", "scores.parquet", "--sample", "sample.parquet").code == 0


def test_other_scales_than_those_of_the_release_file(folder: Path) -> None:
    """What the file says of private scales does not stand against a flag for others."""
    bounds = "\n".join(f"{name} = {{ lower = -100, upper = 100 }}" for name in FEATURES)
    (folder / "bounds.toml").write_text(f"[features]\n{bounds}\n")
    (folder / "private.toml").write_text(
        f'id = "name"\nfeatures = {list(FEATURES)}\nB = 0.25\nepsilon = 4\n'
        'scales = "private"\nbounds = "bounds.toml"\nscales_epsilon = 20\n'
    )
    given = ("--release", "private.toml", "--json")
    ran = cli("privatize", "sampled.parquet", "sample.parquet", *given)
    assert ran.code == 0, ran.err
    write_weights(folder / "weights.toml", release=ran.json["release"])
    scoring = ("score", "all.parquet", "weights.toml")
    for scales, source, paid in (
        ("sample", "sample", 4.0), ("scales.toml", "declared", 4.0), ("private", "private", 24.0),
    ):  # fmt: skip
        ran = cli(*scoring, f"in_{source}.parquet", *given, "--sample", "sample.parquet", "--scales", scales)
        assert ran.code == 0, ran.err
        assert ran.json["guarantee"]["epsilon"] == pytest.approx(paid)
        assert certificate_of(folder / f"in_{source}.parquet").scales.source == source
    with nothing_changes(folder):
        ran = cli(
            *scoring, "x.parquet", *given, "--sample", "sample.parquet", "--scales", "sample", "--bounds",
            "bounds.toml",
        )  # fmt: skip
    assert ran.code == 2
    assert "bounds and scales_epsilon belong to scales = 'private'" in ran.err


def test_what_holds_in_a_conditional_sample_is_not_told_without_its_condition(folder: Path) -> None:
    sampled(folder, "--scales", "data")
    ran = score("--sample", "sample.parquet")
    assert ran.code == 0, ran.err
    assert "(B = 0.25, ε = 4, δ = 0.0244), given its scales (data)" in words(ran.err)


# Its neighbors


def test_privatize_does_not_score_by_accident(folder: Path) -> None:
    (folder / "release.toml").write_text(
        'id = "name"\nfeatures = ["calls", "texts", "topups"]\nB = 0.25\nepsilon = 4\n'
        'scales = "scales.toml"\nweights = "weights.toml"\n'
    )
    ran = cli("privatize", "all.parquet", "x.parquet", "--release", "release.toml")
    assert ran.code == 2
    assert "targetdp score makes scores" in ran.err
    ran = cli("score", "all.parquet", "weights.toml", "x.parquet", "--release", "release.toml")
    assert ran.code == 0, ran.err


def test_scores_are_attacked_as_scores(folder: Path) -> None:
    assert score().code == 0
    ran = cli("attack", "all.parquet", "scores.parquet", "--id", "name")
    assert ran.code == 0, ran.err
    assert "120 people, 1 score of 3 columns" in ran.out


def test_the_schema_of_a_weights_file_is_printed() -> None:
    ran = cli("schema", "weights")
    assert ran.code == 0
    assert ran.json["title"] == "targetdp weights"


def test_help_names_every_choice_about_the_sample() -> None:
    ran = command("score", "--help", env=environment(COLUMNS="200"))
    assert ran.code == 0
    for flag in ("--sample", "--score-sample", "--some-have-left", "--no-sample", "--yes", "--features"):
        assert flag in ran.out


def test_a_forged_score_is_found(folder: Path) -> None:
    assert score().code == 0
    table = read_back(folder / "scores.parquet")
    pq.write_table(table.rename_columns(["name", "wealth"]), folder / "scores.parquet")
    ran = cli("verify", "scores.parquet")
    assert ran.code == 1
