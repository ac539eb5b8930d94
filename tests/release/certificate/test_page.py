"""The certificate's page: every promise, condition and number of the certificate, in words."""

from pathlib import Path

import numpy as np
import pytest

from support.certificates import certificate_by as made
from support.release import FEATURES
from targetdp._core import percent_up, up
from targetdp.release import SigningKey
from targetdp.release._certificate._page import page, page_html

SCORES = {"calls": 1.0, "texts": 2.0, "topups": -1.0}


def test_it_states_the_guarantee_with_all_conditions() -> None:
    c = made(12345, tuned_on="this-data")
    text = page(c)
    assert "**(B = 0.25, ε = 4, δ = 8.1e-05)-targeted differential privacy**" in text
    assert "12,345 rows, 3 protected columns" in text
    assert "by the desk *people*" in text
    for condition in c.conditions:
        assert f"- {condition}\n" in text
        assert condition.replace("'", "&#x27;") in page_html(c)
    for said in (c.release, c.output.sha256, c.desk.id, c.request.sha256, c.ledger.hash):
        assert said in text


def test_it_shows_epsilon_at_every_distance_and_marks_B() -> None:
    c = made(B=0.3)
    text = page(c)
    for at in c.distances:
        assert at.epsilon is not None
        mark = " (B)" if at.distance == 0.3 else ""
        assert f"| {at.distance:g}{mark} | {up(at.epsilon, 4)} | {percent_up(at.best_guess)} |" in text
    assert text.count("(B) |") == 1


def test_scales_are_printed_with_where_they_come_from_and_what_they_cost() -> None:
    text = page(made())
    assert "| calls | 10 | 8 |" in text
    assert "- Column scales: declared public" in text
    assert "Paid for the scales" not in text
    paid = page(made(50_000, {"scales": "private", "share": 0.1}))
    assert "- Column scales: estimated from the data under classic differential privacy, and paid for" in paid
    assert "- Paid for the scales (included above): ε = 0.4, δ = " in paid


def test_what_is_public_stands_out_with_the_holder_s_reason() -> None:
    text = page(made(policy={"public": {"region": "it is on the list", "age": "a|b"}}))
    assert "**Not protected**, since the data holder declared them public:" in text
    assert "| region | it is on the list |" in text
    assert "| age | a&#124;b |" in text
    assert "Not protected" not in page(made())


def test_words_of_whoever_asked_are_quoted_as_such() -> None:
    text = page(made(asked_by="Ministry of Aid", program="Novissi", why="**safe** for everybody"))
    assert "Asked for by “Ministry of Aid”, for the program “Novissi” (the words of whoever asked)." in text
    assert "\n> **safe** for everybody\n\n(the words of whoever asked)\n" in text
    assert "Asked for by" not in page(made())
    alone = page(made(why="because"))
    assert "\n> because\n" in alone


def test_ledger_and_signatures_are_shown(tmp_path: Path) -> None:
    key = SigningKey.open(tmp_path / "k.pem")
    text = page(made().signed(key))
    assert f"- Charged: entry 3 of ledger {'a' * 32}, hash {'c' * 64}" in text
    assert f"- Signed with Ed25519 key {key.fingerprint}" in text
    assert "Signed with" not in page(made())
    c = made()
    asked = c.request.model_copy(update={"signer": key.public})
    assert f", signed with key {key.fingerprint}" in page(c.model_copy(update={"request": asked}))


def test_scores_are_told_in_words() -> None:
    text = page(made(release="scores", weights=SCORES))
    assert "999 rows, 1 score of 3 protected columns" in text
    assert "- **score**: 0.816 × texts, 0.408 × calls, -0.408 × topups" in text
    assert "per score" in text
    assert "What the scores tell" not in page(made())


def test_classic_privacy_says_where_there_is_none() -> None:
    assert "the switch lemma gives nothing" in page(made())
    text = page(made(mechanism="gaussian", delta=1e-14, epsilon=2.0))
    assert "the switch lemma gives ε = 16, δ = " in text


@pytest.mark.parametrize("count", [50, 51])
def test_a_page_stays_a_page_for_many_columns(count: int) -> None:
    names = tuple(f"c{i:03d}" for i in range(count))
    text = page(made(features=names))
    assert text.count("| c0") == 50
    assert ("and 1 more, in the JSON certificate." in text) == (count > 50)


def test_a_name_with_bars_and_breaks_does_not_break_the_page() -> None:
    names = ("a|b", "c\nd", "<script>")
    text = page(made(features=names, policy={"public": {"x\n## The guarantee": "why"}}))
    assert "\n## The guarantee\n" in text
    assert text.count("\n## The guarantee") == 1
    assert not any(line.startswith("d |") for line in text.splitlines())
    assert "<script>" not in text


def test_numbers_are_never_rounded_to_the_better() -> None:
    for epsilon in (np.pi, 1.0000001, 0.123456789):
        text = page(made(epsilon=epsilon))
        told = float(text.split("ε = ")[1].split(",")[0])
        assert told >= epsilon * (1 - 1e-12)
    assert len(FEATURES) == 3
