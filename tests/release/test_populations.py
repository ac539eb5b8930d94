"""A sample and scores in one ledger: nobody's spending is hidden behind the name of a part."""

import math
import threading
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from support.release import nothing_changes, read_back, write_parquet
from support.scores import charged, release_sample, release_scores, two_tables, write_weights
from targetdp.guarantee import Guarantee
from targetdp.release import Head, Ledger, LimitExceeded, SigningKey, verify_in_ledger

LIMIT = Guarantee(0.25, 6.0, 1e-6)
"""One release of ε = 4 fits, and two do not, unless nobody is in both."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    two_tables(tmp_path)
    return tmp_path


def limited(folder: Path, limit: Guarantee = LIMIT) -> Ledger:
    ledger = Ledger(folder / "ledger.db", SigningKey.open(folder / "key.pem"))
    ledger.set_limit("people", limit)
    return ledger


def spent(folder: Path) -> float:
    return Ledger.existing(folder / "ledger.db").standing("people").spent


# What must be said before anything is scored


@pytest.mark.parametrize("ledger", [False, True])
def test_weights_that_name_their_release_need_an_answer(folder: Path, ledger: bool) -> None:
    done = release_sample(folder)
    given = charged(folder) if ledger else {}
    with nothing_changes(folder), pytest.raises(ValueError, match="give that release") as refused:
        release_scores(folder, **given)
    assert done.certificate.release in str(refused.value)
    for remedy in ("(sample)", "(score_sample)", "(no_sample)"):
        assert remedy in str(refused.value)
    assert release_scores(folder, no_sample=True, **given).certificate.rows == 120


def test_a_named_part_needs_an_answer_whatever_the_weights_say(folder: Path) -> None:
    write_weights(folder / "weights.toml")
    with pytest.raises(ValueError, match="part = 'others' says that nobody here is in another part"):
        release_scores(folder, **charged(folder, "others"))
    release_scores(folder, no_sample=True, **charged(folder, "others"))
    assert release_scores(folder, "everybody.parquet", **charged(folder)).certificate.no_sample is False


# Left out: nobody is in both


def test_two_parts_spend_the_larger_of_both_rounds(folder: Path) -> None:
    limited(folder)
    release_sample(folder, **charged(folder, "sample"))
    before = spent(folder)
    done = release_scores(folder, sample=folder / "sample.parquet", **charged(folder, "others"))
    assert not any("adds them up" in warning for warning in done.warnings)
    assert spent(folder) == pytest.approx(max(before, 4.0), rel=0.01)
    row = Ledger.existing(folder / "ledger.db").release(done.certificate.release)
    assert row.title["sample"] == {"release": done.certificate.sample.release, "scored": False}  # type: ignore[union-attr]
    assert row.title["scores"] == ["score"]


@pytest.mark.parametrize(("one", "two"), [(None, "others"), ("sample", None), (None, None), ("a", "a")])
def test_without_two_names_the_ledger_adds_up_and_that_is_said(
    folder: Path, one: str | None, two: str | None
) -> None:
    """More than anybody spends, so it is safe, and a waste."""
    release_sample(folder, **charged(folder, one))
    given = {"sample": folder / "sample.parquet"} | charged(folder, two)
    done = release_scores(folder, **given)
    assert any("the ledger adds them up" in warning for warning in done.warnings)
    if one is None and two is not None:
        limited(folder)
        assert spent(folder) > 6.0
        with pytest.raises(LimitExceeded):
            release_scores(folder, "more.parquet", **given)


@pytest.mark.parametrize("first", ["charged", "elsewhere", "nowhere"])
def test_people_who_are_scored_again_keep_the_name_of_their_part(folder: Path, first: str) -> None:
    """Wherever the sample itself was charged: scores that leave it out have the same people."""
    where = {"charged": charged(folder, "sample"), "nowhere": {}}
    where["elsewhere"] = charged(folder, "sample") | {"population": "pilot"}
    release_sample(folder, **where[first])
    sample = folder / "sample.parquet"
    release_scores(folder, sample=sample, **charged(folder, "others"))
    for other in (charged(folder, "the rest"), charged(folder, "others") | {"population": "pilot"}):
        with (
            nothing_changes(folder),
            pytest.raises(ValueError, match="may be in these scores and in release"),
        ):
            release_scores(folder, "b.parquet", sample=sample, **other)
    release_scores(folder, "b.parquet", sample=sample, **charged(folder, "others"))
    release_scores(folder, "c.parquet", sample=sample, **charged(folder))
    limited(folder, Guarantee(0.25, 40.0, 1e-6))
    assert 11.5 < spent(folder) <= (16.0 if first == "charged" else 12.0)


def test_names_are_compared_as_the_ledger_spells_them(folder: Path) -> None:
    one, two = (unicodedata.normalize(form, "région") for form in ("NFC", "NFD"))
    assert one != two
    release_sample(folder, **charged(folder, one))
    given = {"sample": folder / "sample.parquet"} | charged(folder, two) | {"population": two}
    done = release_scores(folder, **given)
    assert done.certificate.ledger is not None
    assert (done.certificate.ledger.population, done.certificate.ledger.part) == (one, one)
    assert all(check.holds for check in verify_in_ledger(done.certificate, folder / "ledger.db"))
    with pytest.raises(ValueError, match="may be in these scores"):
        release_scores(folder, "b.parquet", **given | {"part": "others"})


def test_two_runs_at_once_cannot_both_name_a_part(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have found nothing against their names before either is charged."""
    release_sample(folder, **charged(folder, "sample"))
    both_are_here, reserve = threading.Barrier(2, timeout=60), Ledger.reserve
    refused: list[str] = []

    def together(self: Ledger, *arguments: Any, **named: Any) -> Head:
        both_are_here.wait()
        return reserve(self, *arguments, **named)

    def run(part: str) -> None:
        try:
            release_scores(
                folder, f"{part}.parquet", sample=folder / "sample.parquet", **charged(folder, part)
            )
        except ValueError as error:
            refused.append(str(error))

    monkeypatch.setattr(Ledger, "reserve", together)
    runs = [threading.Thread(target=run, args=(part,)) for part in "ab"]
    for one in runs:
        one.start()
    for one in runs:
        one.join()
    assert len(refused) == 1
    assert "somebody may be in these scores and in release" in refused[0]
    assert (folder / "a.parquet").exists() != (folder / "b.parquet").exists()
    assert len([row for row in Ledger.existing(folder / "ledger.db").releases() if row.counts]) == 2


def named(warnings: tuple[str, ...]) -> str:
    """What the data holder is told that the name of a part declares."""
    return "".join(warning for warning in warnings if "declares that nobody in this table is in" in warning)


def test_what_the_name_of_a_part_declares_is_told(folder: Path) -> None:
    """Weights may come from another release than they say: nothing in the files tells."""
    one = release_sample(folder, **charged(folder, "sample"))
    everybody = read_back(folder / "all.parquet")
    write_parquet(folder / "sampled.parquet", everybody.slice(40, 40))
    release_sample(folder, "two.parquet", **charged(folder, "sample two"))
    write_weights(folder / "weights.toml", release=one.certificate.release)
    done = release_scores(folder, sample=folder / "sample.parquet", **charged(folder, "others"))
    assert "(part 'sample two')" in named(done.warnings)
    assert "(part 'sample')" not in named(done.warnings), "that one is known"
    again = release_scores(folder, "b.parquet", no_sample=True, **charged(folder, "the rest"))
    for part in ("sample", "sample two", "others"):
        assert f"(part {part!r})" in named(again.warnings)
    last = release_scores(folder, "c.parquet", no_sample=True, **charged(folder))
    assert named(last.warnings) == "", "without a part nothing is declared"
    (condition,) = (c for c in done.certificate.conditions if one.certificate.release in c)
    assert "learned, as was declared, are left out, so that nobody is in both of these two" in condition


def test_a_long_list_of_parts_is_cut(folder: Path) -> None:
    write_weights(folder / "weights.toml")
    ledger = limited(folder)
    charge = release_scores(folder, no_sample=True, **charged(folder, "0"))
    row = ledger.release(charge.certificate.release)
    for number in range(1, 12):
        ledger.reserve("people", f"r{number}", row.charge, part=str(number))
    ledger.void("r3", "nothing was published")
    done = release_scores(folder, "b.parquet", no_sample=True, **charged(folder, "new"))
    assert named(done.warnings).count("(part ") == 8
    assert "and 3 more" in named(done.warnings)
    assert "(part '3')" not in named(done.warnings)


def test_one_score_after_another_is_stopped_by_the_limit(folder: Path) -> None:
    """An official who asks for ten directions of ten columns would have the rows at last."""
    limited(folder, Guarantee(0.25, 4.5, 1e-6))
    release_sample(folder, **charged(folder, "sample"))
    made = 0
    for number in range(10):
        write_weights(folder / "weights.toml", [math.cos(number), math.sin(number), 1.0])
        try:
            release_scores(
                folder, f"scores{number}.parquet", epsilon=1.0, sample=folder / "sample.parquet",
                **charged(folder, "others"),
            )  # fmt: skip
        except LimitExceeded as refused:
            assert "limit 4.5" in str(refused)  # noqa: PT017
            break
        made += 1
    assert made == 4
    assert not (folder / "scores4.parquet").exists()
    assert spent(folder) <= 4.5


# Scored, too: both add up


def test_scoring_the_sample_charges_everybody(folder: Path) -> None:
    release_sample(folder, epsilon=2.0, **charged(folder, "sample"))
    done = release_scores(
        folder, epsilon=2.0, sample=folder / "sample.parquet", score_sample=True, **charged(folder)
    )
    assert done.certificate.rows == 120
    limited(folder)
    assert 3.5 < spent(folder) <= 4.0, "the sample's people have both, and the ledger knows it"


def test_scores_of_the_sample_are_charged_to_everybody_and_its_own_population(folder: Path) -> None:
    release_sample(folder, **charged(folder, "sample"))
    given: dict[str, Any] = {"sample": folder / "sample.parquet", "score_sample": True}
    for part in ("sample", "others"):
        with pytest.raises(ValueError, match="leave out part, so that everybody is charged"):
            release_scores(folder, **given, **charged(folder, part))
    with pytest.raises(ValueError, match="which was charged to population 'people', part 'sample'"):
        release_scores(folder, **given, **(charged(folder) | {"population": "others"}))


@pytest.mark.parametrize("order", [(True, False), (False, True)])
def test_people_who_are_scored_in_both_ways_spend_all_of_it(folder: Path, order: tuple[bool, bool]) -> None:
    """Whoever is outside the sample is in both of these, whichever comes first."""
    release_sample(folder, epsilon=0.5, **charged(folder, "sample"))
    for scored in order:
        release_scores(
            folder, f"{scored}.parquet", sample=folder / "sample.parquet", score_sample=scored,
            **charged(folder, None if scored else "others"),
        )  # fmt: skip
    limited(folder, Guarantee(0.25, 40.0, 1e-6))
    assert 7.5 < spent(folder) <= 8.0


def test_a_sample_that_the_ledger_does_not_know_cannot_be_added_up(folder: Path) -> None:
    release_sample(folder)
    given: dict[str, Any] = {"sample": folder / "sample.parquet"} | charged(folder)
    with pytest.raises(ValueError, match="does not count in this ledger: it would not add up"):
        release_scores(folder, score_sample=True, **given)
    assert not (folder / "ledger.db").exists()
    limited(folder)
    with pytest.raises(ValueError, match="does not count in this ledger"):
        release_scores(folder, score_sample=True, **given)
    done = release_scores(folder, **given)
    assert any("what its people spent is not in its sum" in warning for warning in done.warnings)


def test_a_sample_that_was_voided_is_not_taken_for_nothing(folder: Path) -> None:
    """The file is there, and another ledger of the same holder believes that its run failed."""
    key = SigningKey.open(folder / "key.pem")
    name = release_sample(folder, **charged(folder, "sample")).certificate.release
    charge = Ledger.existing(folder / "ledger.db").release(name).charge
    other = Ledger(folder / "other.db", key)
    other.reserve("people", name, charge, part="sample")
    other.void(name, "the run failed")
    with pytest.raises(ValueError, match="the ledger does not have the sample"):
        release_scores(
            folder, sample=folder / "sample.parquet", ledger=folder / "other.db", population="people",
            part="others",
        )  # fmt: skip
