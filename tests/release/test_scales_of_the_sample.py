"""Scores in the scales that the sample has paid for: nothing is paid twice, and that is checked."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.release import FEATURES, certificate_of, values_of, write_parquet
from support.scores import charged, in_folder, release_sample, release_scores, two_tables, write_weights
from targetdp import sequential
from targetdp.accounting import StatedLoss, compose
from targetdp.mechanisms import LinearLaw, law_of, score_rounding
from targetdp.normalization import ColumnScales, private_scales
from targetdp.release import (
    Certificate,
    Ledger,
    SigningKey,
    against_sample,
    certificate_path,
    privatize_frame,
    verify_in_ledger,
    verify_release,
)
from targetdp.release._certificate._page import page
from targetdp.release._holder import Holder
from targetdp.release._staging import page_path

PAID = 20.0


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sample with private scales, and scores of the others, and of everybody, in those scales."""
    folder = tmp_path_factory.mktemp("made")
    two_tables(folder)
    bounds = "\n".join(f"{name} = {{ lower = -100, upper = 100 }}" for name in FEATURES)
    (folder / "bounds.toml").write_text(f"[features]\n{bounds}\n")
    private(folder)
    scored(folder, "left.parquet", **charged(folder, "others"))
    scored(folder, "both.parquet", score_sample=True, **charged(folder))
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made, tmp_path / "copy")


def private(folder: Path, **given: Any) -> Any:
    paid = {"scales": "private", "bounds": folder / "bounds.toml", "scales_epsilon": PAID}
    return release_sample(folder, **charged(folder, "sample") | paid | given)


def scored(folder: Path, name: str = "scores.parquet", **given: Any) -> Any:
    return release_scores(folder, name, **{"scales": "sample", "sample": folder / "sample.parquet"} | given)


def edit(output: Path, change: Callable[[dict[str, Any]], Any]) -> Certificate:
    """Change a certificate and sign it again, as only the holder could."""
    place = certificate_path(output)
    plain = json.loads(place.read_text(encoding="utf-8"))
    change(plain)
    key = SigningKey.open(output.parent / "key.pem")
    made = Certificate.model_validate(plain).signed(key)
    place.write_text(made.text(), encoding="utf-8")
    page_path(output).write_text(page(made), encoding="utf-8")
    return made


@pytest.mark.parametrize("name", ["left.parquet", "both.parquet"])
def test_the_values_are_the_sample_s_and_are_not_paid_for_again(made: Path, name: str) -> None:
    sample, c = certificate_of(made / "sample.parquet"), certificate_of(made / name)
    assert sample.scales.spent is not None
    assert sample.scales.spent.epsilon == PAID
    assert c.scales.values == sample.scales.values
    assert (c.scales.source, c.scales.spent) == ("sample", None)
    assert c.guarantee is not None
    assert c.guarantee.epsilon == 4.0, "people outside have the noise on their score alone"
    assert "paid for there. They cost people outside it nothing" in c.conditions[0]
    assert verify_release(made / name, c, SigningKey.open(made / "key.pem").public).holds
    assert all(check.holds for check in verify_in_ledger(c, made / "ledger.db"))
    assert against_sample(c, sample).holds


def test_people_inside_pay_for_the_scales_once(made: Path) -> None:
    sample, both = certificate_of(made / "sample.parquet"), certificate_of(made / "both.parquet")
    assert sample.guarantee is not None
    assert both.guarantee is not None
    assert both.sample is not None
    assert sample.scales.spent is not None
    first, inside = sample.guarantee.value(), both.sample.inside.value()
    assert first.epsilon == pytest.approx(PAID + 4.0)
    left = certificate_of(made / "left.parquet").sample
    assert left is not None
    assert left.inside.value() == first
    lemma = sequential(first, both.guarantee.value())
    assert first.epsilon < inside.epsilon <= lemma.epsilon
    # The first noise, the scales, and the second noise, each once: by their curves, or by Lemma 2.
    scores = law_of(both.mechanism.law or {})
    assert isinstance(scores, LinearLaw)
    losses = [
        law_of(sample.mechanism.law or {}).privacy_loss(inside.B),
        StatedLoss.of(sample.scales.spent.value(), distance=inside.B),
        scores.noise.loss_at(inside.B + score_rounding(3, 1)),
    ]
    by_curves = compose(*losses).epsilon(inside.delta)
    assert inside.epsilon == pytest.approx(min(by_curves, lemma.epsilon), rel=1e-9)


def test_the_ledger_charges_the_noise_and_no_scales(made: Path) -> None:
    ledger = Ledger.existing(made / "ledger.db")
    charges = {row.part: row.charge for row in ledger.releases()}
    assert charges["sample"].scales is not None
    assert (charges["others"].scales, charges["others"].unbounded) == (None, None)
    assert (charges[None].scales, charges[None].unbounded) == (None, None)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda c: c["sample"].update(spent=None), "column scales"),
        (lambda c: c["sample"].update(same_scales=False), "column scales"),
        (lambda c: c.update(sample=None), "column scales"),
        (lambda c: c["scales"].update(values=None), "column scales"),
        (lambda c: c["scales"].update(spent={"B": 2, "epsilon": 1, "delta": 0}), "column scales"),
        (lambda c: c["scales"].update(source="declared"), "conditions"),
        (lambda c: c["scales"].update(source="sample-declared"), "column scales"),
        (lambda c: c["scales"].update(estimated_here=True), "column scales"),
        (lambda c: c["sample"].update(scales="declared"), "the sample's scales"),
        (lambda c: c["conditions"].pop(0), "conditions"),
    ],
)
def test_a_false_word_about_the_scales_is_found(folder: Path, change: Any, said: str) -> None:
    output = folder / "both.parquet"
    made = edit(output, change)
    assert said in {check.what for check in verify_release(output, made).checks if check.holds is False}


def test_other_values_than_the_sample_s_are_found_by_its_certificate(folder: Path) -> None:
    made = edit(
        folder / "left.parquet", lambda c: c["scales"]["values"]["calls"].update(scale=1e3)
    )  # fmt: skip
    assert not against_sample(made, certificate_of(folder / "sample.parquet")).holds


def test_declared_scales_of_a_sample_are_declared_for_these_people_too(tmp_path: Path) -> None:
    """Public for the sample may have been learned from exactly the people who are scored now."""
    two_tables(tmp_path)
    release_sample(tmp_path)
    done = scored(tmp_path)
    c, sample = done.certificate, certificate_of(tmp_path / "sample.parquet")
    assert c.scales.source == "sample-declared"
    assert c.scales.values == sample.scales.values
    assert c.sample is not None
    assert (c.sample.same_scales, c.sample.scales) == (True, "declared")
    assert "that they were not learned from these people either was declared, too" in c.conditions[0]
    assert c.conditions[0] not in sample.conditions
    assert any("not learned from the people who are scored now, either" in told for told in done.warnings)
    assert c.classic.exact is not None
    assert verify_release(tmp_path / "scores.parquet", c).holds
    assert against_sample(c, sample).holds
    again = release_scores(tmp_path, "again.parquet", sample=tmp_path / "sample.parquet")
    assert again.certificate.scales.source == "declared", "the same file, given again, is declared again"
    assert not any("scored now" in told for told in again.warnings)
    forged = edit(tmp_path / "scores.parquet", lambda c: c["sample"].update(scales="confidential"))
    found = verify_release(tmp_path / "scores.parquet", forged).checks
    assert "column scales" in {check.what for check in found if check.holds is False}
    assert not against_sample(forged, sample).holds


def test_private_scales_that_a_sample_was_given_are_not_taken_over(tmp_path: Path) -> None:
    """Estimated from everybody: whoever is outside the sample has not paid for them."""
    everybody = two_tables(tmp_path)
    of_everybody = private_scales(
        values_of(everybody), lower=[-100.0] * 3, upper=[100.0] * 3, epsilon=PAID
    )  # fmt: skip
    done = privatize_frame(
        everybody.slice(0, 40), scales=of_everybody, id="name", features=FEATURES, B=0.25, epsilon=4.0,
        delta=1e-7, key=tmp_path / "key.pem",
    )  # fmt: skip
    assert done.certificate.scales.source == "private"
    assert done.certificate.scales.estimated_here is False
    sample = write_parquet(tmp_path / "sample.parquet", done.frame)
    certificate_path(sample).write_text(done.certificate.text(), encoding="utf-8")
    write_weights(tmp_path / "weights.toml", release=done.certificate.release)
    with pytest.raises(ValueError, match="private scales that it was given, or an older version made it"):
        scored(tmp_path)
    # Nor by hand, with the sample's own values.
    asked = in_folder(tmp_path, weights=tmp_path / "weights.toml", scales="in Python", sample=sample)
    by_hand = ColumnScales(of_everybody.center, of_everybody.scale, "sample")
    with pytest.raises(ValueError, match="scales are not those that the sample has paid for"):
        Holder(asked, by_hand).terms(by_hand, 80)


def test_a_frame_that_estimates_its_scales_says_so(made: Path, tmp_path: Path) -> None:
    assert certificate_of(made / "sample.parquet").scales.estimated_here is True
    for name in ("left.parquet", "both.parquet"):
        assert certificate_of(made / name).scales.estimated_here is False
    done = privatize_frame(
        two_tables(tmp_path), scales="private", bounds=made / "bounds.toml", scales_epsilon=PAID, id="name",
        features=FEATURES, B=0.25, epsilon=4.0, key=tmp_path / "key.pem",
    )  # fmt: skip
    assert done.certificate.scales.estimated_here is True


def test_scores_do_not_hold_against_a_sample_that_was_given_its_scales(folder: Path) -> None:
    scores = certificate_of(folder / "left.parquet")
    given = edit(folder / "sample.parquet", lambda c: c["scales"].update(estimated_here=False))
    assert not against_sample(scores, given).holds


def test_scales_that_nobody_paid_for_cannot_be_taken_over(tmp_path: Path) -> None:
    two_tables(tmp_path)
    release_sample(tmp_path, scales="data")
    with pytest.raises(ValueError, match=r"scales that were not paid for \(data\), and so not published"):
        scored(tmp_path)


def test_other_features_have_no_scales(folder: Path) -> None:
    weights = folder / "weights.toml"
    weights.write_text('scores = ["s"]\n[weights]\ncalls = 1\ntexts = 1\n')
    with pytest.raises(ValueError, match="'sample' needs these same features"):
        scored(folder, features=("calls", "texts"))


@pytest.mark.parametrize("sampled", [True, False])
def test_nobody_can_say_that_other_scales_are_the_sample_s(folder: Path, sampled: bool) -> None:
    other = ColumnScales(np.ones(3), np.ones(3), "sample")
    asked = in_folder(
        folder, weights=folder / "weights.toml", scales="given in Python", no_sample=not sampled,
        **({"sample": folder / "sample.parquet"} if sampled else {}),
    )  # fmt: skip
    with pytest.raises(ValueError, match="scales are not those that the sample has paid for"):
        Holder(asked, other).terms(other, 80)
    declared = ColumnScales(np.ones(3), np.ones(3), "sample-declared")
    with pytest.raises(ValueError, match="scales are not those that were declared for the sample"):
        Holder(asked, declared).terms(declared, 80)
