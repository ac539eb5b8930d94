"""A certificate of scores that says more than its weights and its sample allow is found."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.release import certificate_of
from support.scores import TWO, charged, in_folder, release_sample, release_scores, two_tables, write_weights
from targetdp import GaussianNoise, Guarantee
from targetdp.release import (
    Certificate,
    Facts,
    SigningKey,
    against_sample,
    certificate_path,
    conditions_of,
    privatize_file,
    verify_in_ledger,
    verify_release,
)
from targetdp.release._certificate._charge import Charge, SampleRelease, SampleSpending
from targetdp.release._certificate._page import page
from targetdp.release._staging import page_path

Plain = dict[str, Any]


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Columns, scores of those outside a sample, of everybody, and two scores at once."""
    folder = tmp_path_factory.mktemp("released")
    two_tables(folder)
    release_sample(folder, **charged(folder, "sample"))
    sample = folder / "sample.parquet"
    release_scores(folder, "left.parquet", sample=sample, **charged(folder, "others"))
    release_scores(folder, "both.parquet", sample=sample, score_sample=True, **charged(folder))
    write_weights(folder / "weights.toml", TWO, ("one", "two"))
    release_scores(folder, "two.parquet", no_sample=True)
    privatize_file(folder / "all.parquet", folder / "columns.parquet", in_folder(folder))
    return folder


@pytest.fixture
def folder(released: Path, tmp_path: Path) -> Path:
    return shutil.copytree(released, tmp_path / "copy")


def failed(output: Path) -> set[str]:
    found = verify_release(output, certificate_of(output))
    return {check.what for check in found.checks if check.holds is False}


def edit(output: Path, change: Callable[[Plain], Any], key: SigningKey | None = None) -> None:
    """Change a certificate and its page, and sign it again if there is a key."""
    place = certificate_path(output)
    plain = json.loads(place.read_text(encoding="utf-8"))
    change(plain)
    made = Certificate.model_validate(plain)
    made = made if key is None else made.signed(key)
    place.write_text(made.text(), encoding="utf-8")
    try:
        page_path(output).write_text(page(made), encoding="utf-8")
    except (ValueError, LookupError, TypeError):  # too strange for a page: a forger would leave it out
        page_path(output).unlink(missing_ok=True)


@pytest.mark.parametrize("name", ["left.parquet", "both.parquet", "two.parquet", "columns.parquet"])
def test_a_release_as_it_was_made_holds(released: Path, name: str) -> None:
    output = released / name
    key = SigningKey.open(released / "key.pem").public
    found = verify_release(output, certificate_of(output), key)
    assert found.holds
    whats = {check.what for check in found.checks}
    assert ({"scores", "weights"} <= whats) == (name != "columns.parquet")
    assert ("people of the sample" in whats) == (name in {"left.parquet", "both.parquet"})


@pytest.mark.parametrize("name", ["left.parquet", "both.parquet"])
def test_the_ledger_has_it_as_it_is_certified(released: Path, name: str) -> None:
    assert all(c.holds for c in verify_in_ledger(certificate_of(released / name), released / "ledger.db"))


def scaled(factor: float) -> Callable[[Plain], Any]:
    def change(c: Plain) -> None:
        law = c["mechanism"]["law"]
        law["weights"] = (np.array(law["weights"]) * factor).tolist()

    return change


EDITS: dict[str, tuple[Callable[[Plain], Any], str]] = {
    "norm above 1": (scaled(1.5), "guarantee"),
    "norm a hair above 1": (scaled(1 + 1e-6), "guarantee"),
    "a small norm, as if little were told": (scaled(0.5), "weights"),
    "weights of another number of columns": (
        lambda c: c["mechanism"]["law"]["weights"][0].append(0.0), "guarantee",
    ),
    "no weights": (lambda c: c["mechanism"]["law"].pop("weights"), "guarantee"),
    "NaN for a weight": (lambda c: c["mechanism"]["law"]["weights"][0].__setitem__(0, None), "guarantee"),
    "the noise alone": (lambda c: c["mechanism"].update(law=c["mechanism"]["law"]["noise"]), "scores"),
    "another name for the score": (lambda c: c.update(scores=["wealth"]), "columns of the file"),
    "a score more": (lambda c: c.update(scores=["score", "more"]), "scores"),
    "no scores": (lambda c: c.update(scores=None), "columns of the file"),
    "a sentence for a name": (lambda c: c.update(scores=["s), which is public. (t"]), "scores"),
    "the name of a feature": (lambda c: c.update(scores=["calls"]), "scores"),
    "features in another order": (lambda c: c.update(features=c["features"][::-1]), "column scales"),
    "less noise in fact": (
        lambda c: c["mechanism"]["law"]["noise"].update(level=c["mechanism"]["law"]["noise"]["level"] * 1.01),
        "guarantee",
    ),
    "no sample": (lambda c: c.update(sample=None), "conditions"),
    "nobody was sampled": (lambda c: c.update(no_sample=True), "who is in the sample"),
    "another release": (lambda c: c["sample"].update(release="another"), "conditions"),
    "a better sample": (
        lambda c: c["sample"]["guarantee"].update(epsilon=1.0), "the sample's guarantee",
    ),
    "less noise in the sample": (
        lambda c: c["sample"]["law"].update(scale=c["sample"]["law"]["scale"] * 0.9),
        "the sample's guarantee",
    ),
    "a sample of magic": (lambda c: c["sample"]["law"].update(family="magic"), "conditions"),
    "a sample without numbers": (lambda c: c["sample"].update(law={"family": "gaussian"}), "guarantee"),
    "weights that are zero": (scaled(0.0), "guarantee"),
    "text for weights": (lambda c: c["mechanism"]["law"].update(weights="much"), "guarantee"),
    "inside better than it is": (
        lambda c: c["sample"]["inside"].update(epsilon=c["sample"]["inside"]["epsilon"] * 0.99),
        "people of the sample",
    ),
    "inside at a larger B": (lambda c: c["sample"]["inside"].update(B=0.5), "people of the sample"),
    "inside at a smaller δ": (lambda c: c["sample"]["inside"].update(delta=0.0), "people of the sample"),
    "they have left": (lambda c: c["sample"].update(some_have_left=True), "conditions"),
}  # fmt: skip
"""What a certificate must not say, and what speaks against it, whoever signs."""


@pytest.mark.parametrize("what", EDITS)
@pytest.mark.parametrize("name", ["left.parquet"])
def test_a_false_certificate_is_found_even_if_the_holder_signs_it(folder: Path, name: str, what: str) -> None:
    output, (change, said) = folder / name, EDITS[what]
    edit(output, change)
    assert "signature" in failed(output)
    edit(output, lambda c: None, SigningKey.open(folder / "key.pem"))
    found = failed(output)
    assert said in found
    assert "signature" not in found


def test_a_sample_that_was_scored_cannot_be_said_to_be_left_out(folder: Path) -> None:
    output, key = folder / "both.parquet", SigningKey.open(folder / "key.pem")
    edit(output, lambda c: c["sample"].update(scored=False), key)
    assert "conditions" in failed(output)
    edit(output, lambda c: c["sample"].update(scored=True, inside=c["sample"]["guarantee"]), key)
    assert "people of the sample" in failed(output)


def test_weights_that_were_changed_are_told_by_the_signature(folder: Path) -> None:
    """Noise hides which of two directions was taken: only the signature can tell."""
    output = folder / "left.parquet"
    edit(output, lambda c: c["mechanism"]["law"]["weights"][0].reverse())
    assert "signature" in failed(output)
    edit(output, lambda c: None, SigningKey.open(folder / "key.pem"))
    assert failed(output) == set()
    c = certificate_of(output)
    wrong = {check.what for check in verify_in_ledger(c, folder / "ledger.db") if not check.holds}
    assert wrong == {"charge"}, "and the ledger"


def test_columns_that_claim_a_sample_are_found(folder: Path) -> None:
    output, key = folder / "columns.parquet", SigningKey.open(folder / "key.pem")
    sample = json.loads(certificate_path(folder / "left.parquet").read_text(encoding="utf-8"))["sample"]
    for claim in ({"sample": sample}, {"no_sample": True}, {"scores": ["a", "b", "c"]}):
        edit(output, lambda c, claim=claim: c.update(claim), key)  # type: ignore[misc]
        assert failed(output)
        edit(output, lambda c: c.update(sample=None, no_sample=False, scores=None), key)
        assert failed(output) == set()


def test_the_sample_s_own_certificate_is_held_against_it(folder: Path) -> None:
    sample = certificate_of(folder / "sample.parquet")
    for name in ("left.parquet", "both.parquet"):
        assert against_sample(certificate_of(folder / name), sample).holds
    assert not against_sample(certificate_of(folder / "two.parquet"), sample).holds
    assert not against_sample(
        certificate_of(folder / "left.parquet"), certificate_of(folder / "two.parquet")
    ).holds
    edit(folder / "left.parquet", lambda c: c["sample"].update(rows=39))
    assert not against_sample(certificate_of(folder / "left.parquet"), sample).holds
    moved = sample.model_copy(update={"scales": sample.scales.model_copy(update={"values": None})})
    assert not against_sample(certificate_of(folder / "both.parquet"), moved).holds


def test_one_condition_for_rows_of_both_releases_whatever_the_scales() -> None:
    """The same scales do not make the same rows: the table may have been refreshed in between."""
    said = {}
    for same in (True, False):
        facts = rounds_of(same)
        (said[same],) = (c for c in conditions_of(facts) if "are scored, too" in c)
        assert "for rows that are within B of each other in each of the two releases" in said[same]
    assert said[True].replace("the exact curves of both noises", "Lemma 2") == said[False]


def rounds_of(same: bool) -> Facts:
    law = GaussianNoise(B=0.25, epsilon=2.0, delta=1e-4)
    first = SampleRelease("r1", "0" * 64, 40, law.guarantee, Charge(law=law.law(3)))
    inside = Guarantee(0.25, 4.0, 1e-4)
    spending = SampleSpending(first, True, False, same, law.guarantee, inside)
    return Facts(
        scales="declared", has_guarantee=True, keeps_order=False, kept=(), features=3, imputed={},
        pseudonyms=False, partitions=None, tuned_on=None, engine="local", has_ledger=False, part=None,
        scores=("score",), sample_spending=spending,
    )  # fmt: skip
