"""A proposed plan fits the limit that it is for, and the next larger one does not."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from support.release import certificate_of, cli, place_with, policy_text
from targetdp.release import Limit, Policy, propose_plan

SHAPES: list[dict[str, Any]] = [
    {"B": 0.25, "epsilon": 10, "delta": 1e-6, "releases": 12, "columns": 3},
    {"B": 0.25, "epsilon": 4, "delta": 1e-6, "releases": 12, "columns": 1, "kind": "scores"},
    {"B": 0.1, "epsilon": 2.5, "delta": 1e-4, "releases": 1, "columns": 2},
    {"B": 2.0, "epsilon": 8, "delta": 1e-6, "releases": 3, "columns": 1, "kind": "scores"},
    {"B": 0.25, "epsilon": 0.01, "delta": 1e-6, "releases": 200, "columns": 10},
]


def policy_of(lines: str) -> Policy:
    """A policy with these lines in place of its limit."""
    given = tomllib.loads(policy_text())
    return Policy.model_validate(
        {name: given[name] for name in given if name != "limit"} | tomllib.loads(lines)
    )


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_lines_fit_a_policy_and_the_next_larger_do_not(shape: dict[str, Any]) -> None:
    made = propose_plan(**shape)
    limit = Limit.of(policy_of(made.toml()))
    assert limit.plan == (made.line,)
    assert (limit.stated.B, limit.stated.epsilon, limit.stated.delta) == (
        shape["B"], shape["epsilon"], shape["delta"],
    )  # fmt: skip
    assert limit.classic.epsilon == made.ways[0].classic
    own = made.line.epsilon
    more = float(f"{own * (1 + 1e-9) + 10 ** (int(f'{own:e}'.split('e')[1]) - 2):.3g}")
    assert own < more < 1.011 * own
    line = f"epsilon = {own:g}  #"
    assert made.toml().count(line) == 1
    with pytest.raises(ValueError, match="which is more than the limit"):
        Limit.of(policy_of(made.toml().replace(line, f"epsilon = {more:g}  #")))


def test_filters_are_compared_with_it() -> None:
    made = propose_plan(B=0.25, epsilon=10, delta=1e-6, releases=12, columns=3)
    assert [one.way for one in made.ways] == ["plan", "pure", "gaussian", "renyi"]
    plan, pure, _, renyi = made.ways
    assert pure.epsilon <= 10 / 12
    assert pure.noise_sd > plan.noise_sd, "many releases cost less than their sum"
    assert renyi.noise_sd > plan.noise_sd, "and whoever may choose after looking pays for it"
    assert renyi.mechanism == plan.mechanism == "least-noise"
    assert all(one.classic >= 10 for one in made.ways)


def test_one_pure_release_may_take_the_whole_limit() -> None:
    made = propose_plan(B=0.25, epsilon=4, delta=1e-6, releases=1, columns=1, kind="scores")
    assert made.line.epsilon == pytest.approx(4, rel=0.01)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"releases": 0}, "releases = 0"),
        ({"releases": 1001}, "outside 1 to 1000"),
        ({"columns": 0}, "0"),
        ({"delta": 0.0}, "a limit needs some"),
        ({"B": 3.0}, "B = 3"),
        ({"epsilon": 1e-4, "releases": 1000}, "not even 1000 tiny releases fit"),
    ],
)
def test_what_cannot_be_planned_is_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        propose_plan(**{"B": 0.25, "epsilon": 4, "delta": 1e-6, "releases": 2, "columns": 1} | wrong)


def test_a_desk_releases_what_was_planned_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the command's lines to the last release of the year."""
    place = place_with(tmp_path / "place", 60, pseudonyms=True)
    monkeypatch.chdir(place)
    asked = ("--B", "0.25", "--epsilon", "4", "--delta", "1e-3", "--features", "3")
    lines = cli("plan", "--releases", "2", *asked, "--json").json
    policy = Path("desk/policy.toml")
    before, _, after = policy.read_text().partition("[limit]")
    policy.write_text(f"{before}{lines['policy']}\n[release]{after.partition('[release]')[2]}")
    run = ("--B", "0.25", "--epsilon", lines["plan"][0]["epsilon"], "--yes")
    for number in (1, 2):
        status = cli("status").out
        assert f"{number - 1} of 2 releases made; all are charged already" in status
        ran = cli("privatize", "in.parquet", f"{number}.parquet", *run)
        assert ran.code == 0, ran.err
        assert certificate_of(Path(f"{number}.parquet")).guarantee.delta == lines["plan"][0]["delta"]
    assert cli("privatize", "in.parquet", "3.parquet", *run).code == 7
    assert "Plan: 2 of 2 releases made" in cli("ledger", "show").out
    pure = cli("ledger", "show", "--json").json["pure_epsilon"]
    assert pure > 2 * lines["plan"][0]["epsilon"], "with a δ, the largest loss is more than ε"
