"""The people index: kept whole, for its owner alone; groups by the slow way of sets."""

import stat
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.ledgers import people
from targetdp.release._ledger._people import common, forget_people, groups_of, read_people, write_people

TAGS = st.sets(st.integers(0, 40) | st.sampled_from([2**63, 2**64 - 1]), max_size=30)


def test_it_is_kept_and_read_back(tmp_path: Path) -> None:
    folder, who = tmp_path / "people", people(3, 1, 2**64 - 1)
    sha256 = write_people(folder, "r1", who)
    assert read_people(folder, "r1", sha256).tolist() == [1, 3, 2**64 - 1]
    assert (folder / "r1.tags").stat().st_size == 3 * 8
    assert {stat.S_IMODE(p.stat().st_mode) for p in (folder, folder / "r1.tags")} == {0o700, 0o600}
    assert write_people(folder, "r2", who) == sha256, "the same people, the same file"
    forget_people(folder, "r2")
    forget_people(folder, "r2")
    assert [path.name for path in folder.iterdir()] == ["r1.tags"]


@pytest.mark.parametrize("content", [b"", b"\0" * 8, b"\0" * 23])
def test_another_file_is_not_taken_for_it(tmp_path: Path, content: bytes) -> None:
    sha256 = write_people(tmp_path / "people", "r1", people(1, 2, 3))
    (tmp_path / "people" / "r1.tags").write_bytes(content)
    with pytest.raises(ValueError, match=r"r1\.tags is not the file that the ledger has on record"):
        read_people(tmp_path / "people", "r1", sha256)
    with pytest.raises(ValueError, match=r"r2\.tags cannot be read .*so nothing more is released"):
        read_people(tmp_path / "people", "r2", sha256)


@given(TAGS, TAGS)
def test_how_many_are_in_both(one: set[int], two: set[int]) -> None:
    assert common(people(one), people(two)) == len(one & two)


@settings(max_examples=60)
@given(TAGS, st.lists(TAGS, max_size=6))
def test_groups_are_those_of_sets(who: set[int], others: list[set[int]]) -> None:
    expected: dict[frozenset[int], int] = {}
    for person in who:
        kind = frozenset(place for place, other in enumerate(others) if person in other)
        expected[kind] = expected.get(kind, 0) + 1
    assert dict(groups_of(people(who), [people(other) for other in others])) == expected


@pytest.mark.parametrize("releases", [63, 64, 65, 130])
def test_groups_of_many_releases(releases: int) -> None:
    """More than one word of bits."""
    rng = np.random.default_rng(releases)
    sets = [set(rng.choice(40, 12, replace=False).tolist()) for _ in range(releases)]
    found = dict(groups_of(people(range(40)), [people(one) for one in sets]))
    expected = {frozenset(p for p, one in enumerate(sets) if person in one) for person in range(40)}
    assert set(found) == expected
    assert sum(found.values()) == 40
