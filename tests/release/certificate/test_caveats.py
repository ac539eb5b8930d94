"""Conditions: each fact of a certificate asks for its own, and none is said for nothing."""

from dataclasses import replace
from typing import Any

import pytest

from targetdp.guarantee import Guarantee
from targetdp.normalization import CONDITIONS
from targetdp.release import Facts, conditions_of, format_guarantee
from targetdp.release._certificate._caveats import ALWAYS, AllReleases, statement

NEAR, CLASSIC = Guarantee(0.25, 8.0, 1e-6), Guarantee(2.0, 40.0, 1e-6)
PLAIN = Facts(
    scales="declared", public=(), columns=3, gaps={}, pseudonyms=False, tuned_on=None, engine="local",
    stated=AllReleases(NEAR, CLASSIC),
)  # fmt: skip


def test_the_least_that_is_said() -> None:
    said = conditions_of(PLAIN)
    assert said[0] == CONDITIONS["declared"][0], "the most important first"
    assert said[-1] == statement(NEAR, CLASSIC)
    assert set(ALWAYS) < set(said)
    assert len(said) == len(ALWAYS) + 5, "where scales are from, distances, accepted values, B, all releases"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"scales": "private"}, "estimated from the data under classic differential privacy and paid for"),
        ({"scales": "earlier"}, "estimated by an earlier release of this desk"),
        (
            {"public": ("region", "age")},
            "declared public were passed on as they were and are NOT protected: region, age.",
        ),
        ({"gaps": {"calls": 0.5}}, "declared, not learned: calls = 0.5."),
        ({"gaps": {"a": 0.0, "b": 0.0, "c": 0.0}}, "declared, not learned: 0 in every column."),
        ({"pseudonyms": True}, "Ids are keyed hashes"),
        ({"engine": "spark"}, "Each row's noise was keyed by a 96-bit tag of its id"),
        ({"scores": ("s",)}, "Released is one weighted sum of the protected columns (s)"),
        ({"scores": ("s", "t")}, "Released are 2 weighted sums of the protected columns (s, t)"),
        ({"learned_from": "abc"}, "from release abc: people who are in both are charged for both"),
        ({"left_out": ("abc",)}, "People of release abc were left out"),
        ({"left_out": ("abc", "def")}, "People of releases abc, def were left out"),
        ({"tuned_on": "this-data"}, "that choice is a disclosure that the guarantee does not cover"),
    ],
)
def test_each_fact_asks_for_its_own(change: dict[str, Any], said: str) -> None:
    assert any(said in condition for condition in conditions_of(replace(PLAIN, **change)))
    assert not any(said in condition for condition in conditions_of(PLAIN))


def test_what_holds_of_all_releases_is_said_in_the_same_words_everywhere() -> None:
    assert statement(NEAR, CLASSIC) == (
        "No two rows within distance 0.25 of each other in every release's own space are told apart beyond "
        "(ε = 8, δ = 1e-06) by all releases of this desk together, and no two rows at all (they are at "
        "distance 2 at most) beyond (ε = 40, δ = 1e-06). A release's own space is its columns, scaled and "
        "clipped: each further set of columns leaves fewer pairs of rows that are within 0.25 in all of them."
    )
    closer = statement(Guarantee(0.25, 8.0000001, 1.0001e-6), CLASSIC)
    assert "(ε = 8.00001, δ = 1.01e-06)" in closer, "nothing is rounded down"
    changed = statement(NEAR, CLASSIC, 2)
    assert changed.startswith(statement(NEAR, CLASSIC))
    assert " 2 limits were in force, whose δ add up: each was set without looking at releases." in changed


def test_an_unknown_fact_is_an_error_and_not_silence() -> None:
    for change in ({"scales": "data of others"}, {"tuned_on": "hope"}):
        with pytest.raises(LookupError):
            conditions_of(replace(PLAIN, **change))  # type: ignore[arg-type]


def test_a_guarantee_is_printed_and_never_rounded_down() -> None:
    assert format_guarantee(Guarantee(0.25, 4.0, 1e-6)) == "(B = 0.25, ε = 4, δ = 1e-06)"
    assert format_guarantee(Guarantee(0.25, 1.23456712, 1.2345e-6)) == "(B = 0.25, ε = 1.23457, δ = 1.24e-06)"
