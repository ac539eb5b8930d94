"""What weights tell, in words; and when they tell one column."""

import numpy as np
import pytest

from targetdp.release._certificate._weights_words import SHOWN, SINGLED_OUT, in_words, singled_out

THREE = ("calls", "texts", "topups")


def test_the_largest_shares_come_first_with_their_direction() -> None:
    assert in_words(THREE, np.array([1.0, -3.0, 2.0])) == (
        "64% texts (lowers it), 29% topups (raises it), 7% calls (raises it)"
    )


def test_only_directions_count() -> None:
    row = np.array([1.0, -3.0, 2.0])
    assert in_words(THREE, row) == in_words(THREE, row * 1e250) == in_words(THREE, row * 1e-250)
    assert singled_out(THREE, np.array([[1e250, 1.0, 1.0]])) == {"calls": 1.0}


def test_columns_that_are_many_or_do_not_count_are_counted() -> None:
    names = tuple(f"c{i}" for i in range(20))
    row = np.array([10.0] * SHOWN + [1.0] * 2 + [0.0] * 10)
    words = in_words(names, row)
    assert words.count("raises it") == SHOWN
    assert words.endswith("under 1% 2 other columns, nothing of 10 columns")
    assert in_words(THREE, np.array([0.0, 5.0, 0.0])) == "100% texts (raises it), nothing of 2 columns"
    assert in_words(THREE, np.array([1e-3, 5.0, 0.0])) == (
        "over 99% texts (raises it), under 1% calls (raises it), nothing of 1 column"
    )


@pytest.mark.parametrize(
    ("share", "told"), [(SINGLED_OUT - 0.01, []), (SINGLED_OUT + 0.01, ["texts"]), (1.0, ["texts"])]
)
def test_a_column_that_holds_most_of_the_squared_weight_is_singled_out(share: float, told: list[str]) -> None:
    rest = np.sqrt((1 - share) / 2)
    found = singled_out(THREE, np.array([[rest, -np.sqrt(share), rest]]))
    assert list(found) == told
    assert all(value == pytest.approx(share) for value in found.values())


def test_several_scores_may_single_out_what_none_of_them_does() -> None:
    """From a + b and a − b anyone works out a and b."""
    both = np.array([[1.0, 1.0, 0.0], [1.0, -1.0, 0.0]])
    assert all(not singled_out(THREE, row[None, :]) for row in both)
    assert singled_out(THREE, both) == {"calls": pytest.approx(1.0), "texts": pytest.approx(1.0)}
    assert singled_out(THREE, both * [[1e-200], [1e200]]) == singled_out(THREE, both), "whatever their sizes"


def test_the_same_score_twice_tells_no_more_than_once() -> None:
    row = np.array([1.0, 1.0, 1.0])
    assert singled_out(THREE, np.array([row, row * 2])) == {}
