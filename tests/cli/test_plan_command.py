"""`targetdp plan`: what a guarantee rules out, and for a year of releases."""

import tomllib

import pytest

from support.release import cli, words

LIMIT = ("--B", "0.25", "--epsilon", "4", "--delta", "1e-6")


def test_what_no_algorithm_can_do_is_told_with_an_accuracy_and_without() -> None:
    for more, told in (((), ""), (("--accuracy", "0.9"), "γ = 0.9 is possible. ")):
        ran = cli("plan", *LIMIT, *more)
        assert ran.code == 0, ran.err
        assert f"{told}With ε = 4 and δ = 1e-06, γ is at most 0.9821, whatever B is" in words(ran.out)
        assert "deviation per column" in ran.out
    record = cli("plan", *LIMIT, "--json").json
    assert (record["accuracy"], record["ruled_out"], record["smallest_epsilon"]) == (None, None, None)
    assert [round(one["agreement"], 4) for one in record["agreement_by_distance"][:2]] == [0.982, 0.9997]


def test_a_year_is_proposed_in_lines_to_paste() -> None:
    ran = cli("plan", "--releases", "12", *LIMIT, "--scores", "2")
    assert ran.code == 0, ran.err
    lines = tomllib.loads(ran.out[: ran.out.index("12 equal releases")])
    assert (lines["limit"]["epsilon"], lines["limit"]["filter"]) == (4, "renyi")
    (line,) = lines["plan"]
    assert (line["release"], line["columns"], line["times"]) == ("scores", 2, 12)
    for part in (
        "12 equal releases of 2 scores within (ε = 4, δ = 1e-06) at B = 0.25", "the plan", "pure filter",
        "gaussian filter", "renyi filter", "ε of all at distance 2",
    ):  # fmt: skip
        assert part in words(ran.out)
    record = cli("plan", "--releases", "12", *LIMIT, "--scores", "2", "--json").json
    assert record["plan"] == [line]
    assert tomllib.loads(record["policy"]) == lines


def test_many_releases_may_want_normal_noise() -> None:
    ran = cli("plan", "--releases", "300", *LIMIT)
    assert ran.code == 0, ran.err
    assert 'a request of the plan says mechanism = "gaussian"' in ran.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (LIMIT[2:], "Missing option '--B'"),
        (("--releases", "2", *LIMIT, "--accuracy", "0.9"), "no --accuracy"),
        (("--releases", "0", *LIMIT), "releases = 0"),
    ],
)
def test_what_is_missing_is_said(arguments: tuple[str, ...], said: str) -> None:
    ran = cli("plan", *arguments)
    assert (ran.code, said in ran.err) == (2, True), ran.err
