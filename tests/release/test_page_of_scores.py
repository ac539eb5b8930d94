"""What a certificate of scores says of people inside the sample: never more than holds for them."""

from pathlib import Path

import pytest

from support.release import certificate_of, write_scales
from support.scores import release_sample, release_scores, two_tables
from targetdp.release import Certificate, against_sample, verify_release
from targetdp.release._certificate._page import page

ALONE = "This is for this release alone. People of the sample are in two releases, which add up"


def scores_beside_a_sample(folder: Path, source: str, *, scored: bool = False) -> Certificate:
    """Scores in declared scales, after a sample with scales from somewhere else."""
    two_tables(folder)
    confidential = str(write_scales(folder / "confidential.toml", "confidential"))
    given = {"declared": {}, "data": {"scales": "data"}, "confidential": {"scales": confidential}}[source]
    release_sample(folder, **given)
    sample = folder / "sample.parquet"
    made = release_scores(folder, sample=sample, score_sample=scored).certificate
    assert verify_release(folder / "scores.parquet", made).holds
    assert against_sample(made, certificate_of(sample)).holds
    return made


@pytest.mark.parametrize("scored", [True, False])
@pytest.mark.parametrize(
    ("source", "cell", "why"),
    [
        ("data", "the data's own means and deviations", "only between samples that have the same column"),
        ("confidential", "learned from other data about the same people", "holds only given these scales"),
    ],
)
def test_a_conditional_sample_does_not_look_unconditional(
    tmp_path: Path, source: str, cell: str, why: str, scored: bool
) -> None:
    c = scores_beside_a_sample(tmp_path, source, scored=scored)
    assert c.sample is not None
    assert c.sample.scales == source
    (line,) = (line for line in page(c).splitlines() if line.startswith("| inside it |"))
    assert line.endswith(f"; conditional: its scales were {cell} |")
    (said,) = (x for x in c.conditions if x.startswith("What is stated for people inside the sample is cond"))
    assert why in said
    carries = "weights were learned under them, and may carry something about people outside the sample"
    assert (carries in said) == (source == "confidential")


def test_a_sample_with_public_scales_has_no_such_condition(tmp_path: Path) -> None:
    c = scores_beside_a_sample(tmp_path, "declared")
    assert "onditional" not in page(c)
    assert not any("inside the sample is conditional" in condition for condition in c.conditions)


def test_an_older_certificate_of_scores_does_not_say_where_the_sample_s_scales_came_from(
    tmp_path: Path,
) -> None:
    c = scores_beside_a_sample(tmp_path, "declared")
    assert c.sample is not None
    older = c.model_copy(update={"sample": c.sample.model_copy(update={"scales": None})})
    assert '"scales": null' not in older.text()
    assert Certificate.model_validate_json(older.text()) == older
    assert older.message() != c.message()
    assert against_sample(older, certificate_of(tmp_path / "sample.parquet")).holds
    assert page(older) == page(c), "its words are the same, too"


@pytest.mark.parametrize("scored", [True, False])
def test_figures_of_one_release_are_not_taken_for_those_of_two(tmp_path: Path, scored: bool) -> None:
    """Somebody inside has both: the classic ε and the ε at every distance are larger for them."""
    text = page(scores_beside_a_sample(tmp_path, "declared", scored=scored))
    promise, rest = text.split("### Inside and outside the sample")
    distances = rest.split("### What it means at other distances")[1].split("## ")[0]
    assert "As classic differential privacy" in promise
    assert (ALONE in promise, ALONE in distances) == (scored, scored)
