"""A certificate of scores that says more than its weights and its sample allow is found."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.release import certificate_of, place_with, release
from targetdp.release import (
    Certificate,
    Ledger,
    SigningKey,
    certificate_path,
    verify_in_ledger,
    verify_release,
)
from targetdp.release._certificate._page import page
from targetdp.release._staging import page_path

Plain = dict[str, Any]
TWO = {"calls": [1.0, 1.0], "texts": [-1.0, 1.0], "topups": [0.0, -2.0]}


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Columns, a score whose weights were learned from them, and two scores."""
    folder = place_with(tmp_path_factory.mktemp("released"), 120)
    first = release(folder, "columns.parquet").certificate.release
    weights = {"calls": 1.0, "texts": 2.0, "topups": -1.0}
    release(folder, "one.parquet", release="scores", weights=weights, learned_from=first)
    release(folder, "two.parquet", release="scores", weights=TWO, scores=("one", "two"))
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


def key_of(folder: Path) -> SigningKey:
    """The desk's own key; the folder may be a copy, which is no desk of anybody."""
    return SigningKey.open(folder / "desk" / "keys" / "signing.pem", create=False)


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
    "no scores": (lambda c: c.update(scores=[]), "columns of the file"),
    "a sentence for a name": (lambda c: c.update(scores=["s), which is public. (t"]), "scores"),
    "the name of a feature": (lambda c: c.update(scores=["calls"]), "scores"),
    "features in another order": (lambda c: c.update(features=c["features"][::-1]), "column scales"),
    "less noise in fact": (
        lambda c: c["mechanism"]["law"]["noise"].update(level=c["mechanism"]["law"]["noise"]["level"] * 1.01),
        "guarantee",
    ),
    "learned from another release": (lambda c: c.update(learned_from="abcdef"), "conditions"),
    "learned from nothing": (lambda c: c.update(learned_from=None), "conditions"),
    "others were left out": (lambda c: c.update(left_out=["abcdef"]), "conditions"),
    "weights that are zero": (scaled(0.0), "guarantee"),
    "text for weights": (lambda c: c["mechanism"]["law"].update(weights="much"), "guarantee"),
}  # fmt: skip
"""What a certificate must not say, and what speaks against it, whoever signs."""


@pytest.mark.parametrize("what", EDITS)
def test_a_false_certificate_is_found_even_if_the_holder_signs_it(folder: Path, what: str) -> None:
    output, (change, said) = folder / "one.parquet", EDITS[what]
    edit(output, change)
    assert "signature" in failed(output)
    edit(output, lambda c: None, key_of(folder))
    found = failed(output)
    assert said in found
    assert "signature" not in found


def test_weights_that_were_changed_are_told_by_the_signature_and_the_ledger(folder: Path) -> None:
    """Noise hides which of two directions was taken: nothing in the table can tell."""
    output = folder / "one.parquet"
    edit(output, lambda c: c["mechanism"]["law"]["weights"][0].reverse())
    assert "signature" in failed(output)
    edit(output, lambda c: None, key_of(folder))
    assert failed(output) == set()
    with Ledger(folder / "desk" / "ledger.db") as ledger:
        found = verify_in_ledger(certificate_of(output), ledger)
        assert {check.what for check in found if not check.holds} == {"charge"}


@pytest.mark.parametrize("claim", [{"learned_from": "abcdef"}, {"scores": ["a", "b", "c"]}])
def test_columns_that_claim_to_be_scores_are_found(folder: Path, claim: Plain) -> None:
    output = folder / "columns.parquet"
    edit(output, lambda c: c.update(claim), key_of(folder))
    assert {"scores", "conditions"} <= failed(output)


def test_scores_that_claim_to_be_others_are_found(folder: Path) -> None:
    output = folder / "two.parquet"
    edit(output, lambda c: c.update(scores=["two", "one"]), key_of(folder))
    assert "columns of the file" in failed(output)
