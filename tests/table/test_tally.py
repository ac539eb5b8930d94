"""Counts of what is wrong, joined over batches, and problems in the order of the columns."""

import pyarrow as pa

from targetdp.table import Tally


def test_tallies_of_batches_in_any_order_are_one_tally() -> None:
    first, second = Tally(), Tally(columns=("x", "y"))
    first.add("missing", "x", [0, 1, 2, 3], 50)
    second.add("missing", "x", [9], 0)
    second.add("infinite", "x", [0], 0)
    first.merge(second)
    assert first.counts == {("missing", "x"): 5, ("infinite", "x"): 1}
    assert first.first["missing", "x"] == [10, 51, 52]
    assert first.lines()[0] == "1 of 2 columns cannot be released as it is:"


def test_nothing_is_said_where_all_is_well() -> None:
    Tally(columns=("x",)).raise_if_any()
    assert Tally().lines() == ()
    assert Tally().problems() == ()


def test_problems_stand_in_the_order_of_the_columns_behind_the_id() -> None:
    tally = Tally(columns=("z", "a"))
    for column, problem in {"a": "missing", "z": "infinite", "name": "missing or empty id"}.items():
        tally.add(problem, column, [0], 0)
    assert [(p.column, p.kind) for p in tally.problems()] == [
        ("name", "id"),
        ("z", "infinite"),
        ("a", "gaps"),
    ]
    assert tally.lines()[0] == "3 of 3 columns cannot be released as they are:"


def test_a_column_that_is_text_in_one_batch_is_text() -> None:
    tally = Tally()
    tally.add_type("x", pa.array(["1", "2", "?"]), 0)
    tally.add_type("x", pa.array(["a", "b", "c"]), 3)
    tally.add_type("x", pa.array(["1", "2", "3"]), 6)
    assert [(p.what, p.kind) for p in tally.problems()] == [("text", "text")]
