"""The certificate's page: every promise, condition and number of the certificate, in words."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.release import settings
from targetdp._core import percent_up, up
from targetdp.guarantee import Guarantee
from targetdp.normalization import ColumnScales, confidential_scales, declared_scales
from targetdp.release import Certificate, SigningKey
from targetdp.release._certificate._certificate import LedgerMark, Output, make_certificate, stated
from targetdp.release._certificate._page import page
from targetdp.release._terms import make_terms

PUBLIC = declared_scales([1234.5, 2.0, 3.0], [67.25, 1.0, 1.0])
MARK = LedgerMark(
    population="subscribers", part="north", ledger_id="a" * 32, number=3, hash="c" * 64, override="the board"
)


def made(scales: ColumnScales = PUBLIC, mark: LedgerMark | None = None, **given: Any) -> Certificate:
    asked = settings(**given)
    output = Output(format="csv", files=(), sha256="d" * 64)
    return make_certificate(
        "release-1", asked, make_terms(asked, scales, 12345), scales, 12345, output, mark, "9.9"
    )


def test_it_states_the_guarantee_with_all_conditions() -> None:
    c = made(tuned_on="this-data")
    text = page(c)
    assert "**(B = 0.25, ε = 4, δ = 8.1e-05)-targeted differential privacy**" in text
    assert "12,345 rows, 3 protected columns" in text
    for condition in c.conditions:
        assert f"- {condition}\n" in text
    assert "release-1" in text
    assert "d" * 64 in text


def test_it_shows_epsilon_at_every_distance_and_marks_B() -> None:
    c = made(B=0.3)
    text = page(c)
    for at in c.distances:
        assert at.epsilon is not None
        mark = " (B)" if at.distance == 0.3 else ""
        assert f"| {at.distance:g}{mark} | {up(at.epsilon, 4)} | {percent_up(at.best_guess)} |" in text
    assert text.count("(B) |") == 1


def test_public_scales_are_printed_and_others_are_not() -> None:
    assert "| calls | 1234.5 | 67.25 |" in page(made())
    secret = page(made(confidential_scales([1234.5] * 3, [67.25] * 3)))
    own = page(made(ColumnScales(np.full(3, 1234.5), np.full(3, 67.25), "data")))
    for text in (secret, own):
        assert "1234.5" not in text
        assert "67.25" not in text
        assert "(not printed)" in text
    c = made()
    spent = stated(Guarantee(2, 0.1, 1e-20))
    paid = page(c.model_copy(update={"scales": c.scales.model_copy(update={"spent": spent})}))
    assert "Paid for the scales (included above): ε = 0.1, δ = 1e-20" in paid


def test_what_is_not_protected_stands_out() -> None:
    assert "**Not protected: region, age.**" in page(made(keep=("region", "age")))
    assert "Not protected" not in page(made())


def test_without_a_guarantee_it_claims_none() -> None:
    text = page(made(mechanism="mondrian", group_size=5, B=None, epsilon=None))
    assert "## No guarantee" in text
    assert "groups of 5 or more" in text
    assert "targeted differential privacy**" not in text
    assert "true ε" not in text


def test_ledger_override_and_signature_are_shown(tmp_path: Path) -> None:
    key = SigningKey.open(tmp_path / "k.pem")
    given: dict[str, Any] = {
        "ledger": "l",
        "population": "subscribers",
        "part": "north",
        "override": "the board",
    }
    text = page(made(mark=MARK, **given).signed(key))
    assert "Charged to population subscribers, part north: entry 3 of ledger" in text
    assert "**The limit of this population was overridden**: the board" in text
    assert key.fingerprint in text
    assert "overridden" not in page(made())


def test_order_and_shape_are_told() -> None:
    assert "- Rows: sorted by id" in page(made())
    assert "- Rows: in the order of the input" in page(made(keep_order=True))
    assert "Shaped for cider" in page(made(made_for="cider"))


@pytest.mark.parametrize("count", [50, 51])
def test_a_page_stays_a_page_for_many_columns(count: int) -> None:
    names = tuple(f"c{i:03d}" for i in range(count))
    scales = declared_scales(np.zeros(count), np.ones(count))
    text = page(made(scales, features=names))
    assert text.count("| c0") == 50
    assert ("and 1 more, in the JSON certificate." in text) == (count > 50)


def test_a_name_with_bars_and_breaks_does_not_break_the_page() -> None:
    text = page(made(features=("a|b", "c\nd", "e"), keep=("x\n## The guarantee",)))
    assert "\n## The guarantee\n" in text
    assert text.count("\n## The guarantee") == 1
    assert not any(line.startswith("d |") for line in text.splitlines())
