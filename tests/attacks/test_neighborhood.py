"""The crowd within B, by hand and against all pairs."""

import json
from typing import Any

import numpy as np
import pytest

from targetdp import data_scales, normalize
from targetdp.attacks import Neighborhood, in_a_sentence, neighborhood


def test_by_hand() -> None:
    X = np.array([[0.0, 0.0], [0.25, 0.0], [0.5, 0.0], [0.0, 0.0], [-0.9, 0.0]])
    found = neighborhood(X, 0.25)  # exactly B counts
    assert found.crowd.tolist() == [2, 3, 1, 2, 0]
    assert found.typical == 2
    assert found.alone == 0.2
    assert found.sentence() == (
        "At B = 0.25 a typical person has 2 others who look alike; 20.0% of people have nobody."
    )


def test_against_all_pairs() -> None:
    raw = np.random.default_rng(0).standard_normal((700, 5))
    ready = normalize(raw, data_scales(raw))
    apart = np.linalg.norm(ready.X[:, None] - ready.X[None], axis=2)
    for B in (0.05, 0.5, 1.0, 2.0):
        found = neighborhood(ready, B)
        assert np.array_equal(found.crowd, (apart <= B).sum(axis=1) - 1)
        assert found.quantiles()[0.5] == np.median(found.crowd)
    assert (neighborhood(ready, 2.0).crowd == 699).all()  # classic differential privacy: everyone


def test_rows_are_clipped_as_a_mechanism_would() -> None:
    X = np.array([[3.0, 0.0], [9.0, 0.0], [0.9, 0.0]])
    assert neighborhood(X, 0.05).crowd.tolist() == [1, 1, 0]


def test_a_sample_of_people_against_everyone() -> None:
    X = np.random.default_rng(1).standard_normal((500, 3)) / 5
    sample = neighborhood(X, 0.2, people=100, rng=np.random.default_rng(2))
    assert len(sample.crowd) == 100
    assert sample.people == 500
    assert sample.record()["looked_at"] == 100
    assert json.loads(json.dumps(sample.record()))["quantiles"]["0.5"] == sample.typical
    assert set(sample.crowd) <= set(neighborhood(X, 0.2).crowd)


def test_one_person_and_the_word_for_one_other() -> None:
    assert neighborhood([[0.5]], 0.1).crowd.tolist() == [0]
    assert "1 other who looks alike" in Neighborhood(0.1, 2, np.array([1, 1])).sentence()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"B": 0}, r"B = 0.0 is outside \(0, 2\]"),
        ({"B": 2.5}, r"B = 2.5 is outside \(0, 2\]"),
        ({"people": 3}, "people = 3 is outside 1 to 2: the table has 2 rows"),
        ({"people": 0}, "people = 0"),
        ({"people": 1, "rng": 5}, "rng = 5 is not a numpy Generator"),
        ({"X": np.ones(3)}, "X has shape"),
    ],
)
def test_bad_input(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        neighborhood(**({"X": np.eye(2), "B": 0.5} | arguments))  # type: ignore[arg-type]


def test_a_sample_never_says_all_or_none() -> None:
    assert in_a_sentence(0.1, 0.0, 1.0, 5_000, 20_788) == (
        "At B = 0.1 a typical person has 0 others who look alike; more than 99.9% of people have nobody (of "
        "5,000 people looked at)."
    )
    assert "fewer than 0.1% of people have nobody (of 10 people" in in_a_sentence(0.1, 3.0, 0.0, 10, 20)
    assert in_a_sentence(0.1, 1.0, 1.0, 20, 20).endswith("1 other who looks alike; all people have nobody.")
