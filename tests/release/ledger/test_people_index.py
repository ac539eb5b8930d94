"""The people index: kept whole, for its owner alone; sums by the slow way of sets and dictionaries."""

import stat
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.ledgers import people
from targetdp.release._ledger._people import Sums, forget_people, people_path, read_people, write_people

TAGS = st.sets(st.integers(0, 40) | st.sampled_from([2**63, 2**64 - 1]), max_size=30)


def test_it_is_kept_and_read_back(tmp_path: Path) -> None:
    folder, who = tmp_path / "people", people(3, 1, 2**64 - 1)
    sha256 = write_people(folder, "r1", who)
    path = people_path(folder, "r1", sha256, erased=False)
    assert path == folder / "r1.tags"
    assert read_people(path, "r1", sha256).tolist() == [1, 3, 2**64 - 1]
    assert path.stat().st_size == 3 * 8
    assert {stat.S_IMODE(p.stat().st_mode) for p in (folder, path)} == {0o700, 0o600}
    assert write_people(folder, "r2", who) == sha256, "the same people, the same file"
    for _ in range(2):
        forget_people(folder, "r2")
    assert [found.name for found in folder.iterdir()] == ["r1.tags"]


def test_a_list_that_somebody_was_erased_from_lies_beside_the_one_before(tmp_path: Path) -> None:
    folder = tmp_path / "people"
    before = write_people(folder, "r1", people(1, 2, 3))
    after = write_people(folder, "r1", people(1, 3), erased=True)
    one = people_path(folder, "r1", before, erased=False)
    other = people_path(folder, "r1", after, erased=True)
    assert read_people(one, "r1", before).tolist() == [1, 2, 3]
    assert read_people(other, "r1", after).tolist() == [1, 3]
    assert stat.S_IMODE(other.stat().st_mode) == 0o600
    forget_people(folder, "r1", but=other)
    assert list(folder.iterdir()) == [other]


@pytest.mark.parametrize("content", [b"", b"\0" * 8, b"\0" * 23])
def test_another_file_is_not_taken_for_it(tmp_path: Path, content: bytes) -> None:
    sha256 = write_people(tmp_path, "r1", people(1, 2, 3))
    (tmp_path / "r1.tags").write_bytes(content)
    with pytest.raises(ValueError, match=r"r1\.tags is not the file that the ledger has on record"):
        read_people(tmp_path / "r1.tags", "r1", sha256)
    with pytest.raises(ValueError, match=r"r2\.tags cannot be read .*so nothing more is released"):
        read_people(tmp_path / "r2.tags", "r2", sha256)


@settings(max_examples=60)
@given(TAGS, st.lists(st.tuples(TAGS, st.integers(0, 9), st.integers(0, 9)), max_size=6))
def test_sums_are_those_of_dictionaries(who: set[int], charged: list[tuple[set[int], int, int]]) -> None:
    sums = Sums(people(who), 2)
    expected = {person: np.zeros(2) for person in who}
    for others, one, two in charged:
        assert sums.known(people(others)) == len(who & others)
        assert sums.add(people(others), np.array([one, two], dtype=float)) == len(who & others)
        for person in who & others:
            expected[person] += (one, two)
    found = dict(zip(sums.tags.tolist(), sums.amounts.tolist(), strict=True))
    assert found == {person: amounts.tolist() for person, amounts in expected.items()}
    most = np.max([*expected.values(), np.zeros(2)], axis=0)
    assert sums.most().tolist() == most.tolist()


@settings(max_examples=60)
@given(TAGS, TAGS)
def test_who_is_new_has_spent_nothing(who: set[int], others: set[int]) -> None:
    sums = Sums(people(who), 1)
    sums.add(people(who), np.ones(1))
    wide = sums.united_with(people(others))
    found = dict(zip(wide.tags.tolist(), wide.amounts[:, 0].tolist(), strict=True))
    assert found == {person: float(person in who) for person in who | others}
