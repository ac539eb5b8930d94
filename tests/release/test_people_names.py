"""Ids: one spelling, tags against the library's own CMAC, and pseudonyms that are theirs."""

import os
import pickle
import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.ciphers import algorithms
from cryptography.hazmat.primitives.cmac import CMAC
from hypothesis import given
from hypothesis import strategies as st

from support.release import make_desk, read_back, release, release_frame, table_of, write_parquet
from targetdp.release import Desk, Refused, Spelling, pseudonyms
from targetdp.release._ids import Names, is_among, person_tags, tags_of
from targetdp.table import Tally

KEY = bytes(range(32))
PHONES = Spelling(country_code="228", digits=8)


def slow(ids: list[str], key: bytes) -> list[bytes]:
    """The slow twin."""
    found = []
    for name in ids:
        one = CMAC(algorithms.AES(key))
        one.update(name.encode())
        found.append(one.finalize())
    return found


def fast(ids: Any, key: bytes = KEY) -> list[bytes]:
    return [
        row.tobytes()
        for row in tags_of(ids if isinstance(ids, pa.Array) else pa.array(ids, pa.string()), key)
    ]


# Tags


def test_tags_are_the_cmac_of_every_length() -> None:
    ids = ["x" * n for n in range(300)] + [f"{n:013d}" for n in range(500)] + ["ñandú", "日本", "\0", "\0\0"]
    for key in (KEY, os.urandom(32), bytes(32), b"\xff" * 32):
        assert fast(ids, key) == slow(ids, key)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=200), max_size=20))
def test_tags_are_the_cmac_of_whatever_comes(ids: list[str]) -> None:
    assert fast(ids) == slow(ids, KEY)


def test_slices_and_single_ids() -> None:
    ids = pa.array([f"id {n}" for n in range(100)])
    assert fast(ids.slice(10, 20)) == slow(ids.slice(10, 20).to_pylist(), KEY)
    for one in ("", "y" * 1000):
        assert fast([one]) == slow([one], KEY)
    assert fast([]) == []


def test_different_ids_and_keys_have_different_tags() -> None:
    ids = pa.array([f"{n}" for n in range(100_000)])
    tags = person_tags(ids, KEY)
    assert len(np.unique(tags)) == 100_000
    assert tags.dtype == np.uint64
    assert not np.isin(person_tags(ids, bytes(32)), tags).any()


def test_a_person_s_tag_is_the_beginning_of_the_cmac() -> None:
    ids = ["a", "bb", "c" * 500]
    expected = [int.from_bytes(tag[:8], "little") for tag in slow(ids, KEY)]
    assert person_tags(pa.array(ids), KEY).tolist() == expected


def test_pseudonyms_are_the_tags_in_hex() -> None:
    ids = ["228901", "228902", ""]
    assert pseudonyms(pa.array(ids), KEY).to_pylist() == [tag.hex() for tag in slow(ids, KEY)]
    assert all(re.fullmatch("[0-9a-f]{32}", name) for name in pseudonyms(pa.array(ids), KEY).to_pylist())
    assert pseudonyms(pa.array([], pa.string()), KEY).to_pylist() == []


def test_who_is_among_others() -> None:
    others = np.array([2, 5, 9], dtype=np.uint64)
    tags = np.array([9, 1, 2, 3, 5, 10, 2**63], dtype=np.uint64)
    assert is_among(tags, others).tolist() == [True, False, True, False, True, False, False]
    assert not is_among(tags, others[:0]).any()
    assert is_among(tags[:0], others).tolist() == []


def test_names_do_not_show_their_keys_and_travel_to_workers() -> None:
    names = Names("name", Spelling(), KEY, bytes(32))
    assert KEY.hex() not in repr(names)
    assert repr(KEY) not in repr(names)
    assert pickle.loads(pickle.dumps(names)) == names  # noqa: S301 (as Spark's tasks are sent)
    ids = pa.array(["a", "b"])
    assert names.published(ids).to_pylist() == pseudonyms(ids, bytes(32)).to_pylist()
    assert Names("name", Spelling(), KEY, None).published(ids) is ids


# One spelling


@pytest.mark.parametrize(
    ("spelling", "given", "expected"),
    [
        (Spelling(), ["a", "00A", "é"], ["a", "00A", "é"]),
        (Spelling(spaces="remove"), [" a ", "\ta\n", "a b"], ["a", "a", "a b"]),
        (Spelling(case="lower"), ["AbC", "É"], ["abc", "é"]),
        (Spelling(case="upper"), ["AbC", "é"], ["ABC", "É"]),
        (Spelling(leading_zeros="drop"), ["007", "7", "70"], ["7", "7", "70"]),
        (Spelling(), ["e\u0301", "\u00e9"], ["\u00e9", "\u00e9"]),
        (
            PHONES,
            ["+228 90 12 34 56", "0022890123456", "90123456", "090123456", "22890123456", "228-90.12(34)/56"],
            ["22890123456"] * 6,
        ),
        (
            Spelling(spaces="remove", case="lower", leading_zeros="drop"), [" 00Ab "], ["ab"],
        ),
    ],
)  # fmt: skip
def test_ids_are_brought_into_one_spelling(spelling: Spelling, given: list[str], expected: list[str]) -> None:
    ids = spelling.apply(pa.array(given))
    assert ids.to_pylist() == expected
    assert spelling.apply(ids).to_pylist() == expected, "again, nothing happens"
    assert spelling.odd(ids).tolist() == []


@pytest.mark.parametrize(
    ("spelling", "given", "odd"),
    [
        (Spelling(), [" a", "a ", "a", "\ta", "a\u00a0", "é", "\u3000"], [0, 1, 3, 4, 6]),
        (PHONES, ["90123456", "9012345", "+33 90123456", "abc", ""], [1, 2, 3, 4]),
    ],
)
def test_what_no_rule_brings_into_it_is_found(spelling: Spelling, given: list[str], odd: list[int]) -> None:
    assert spelling.odd(spelling.apply(pa.array(given))).tolist() == odd


def test_country_code_and_digits_belong_together() -> None:
    for half in ({"country_code": "228"}, {"digits": 8}):
        with pytest.raises(ValueError, match="belong together: give both, or neither"):
            Spelling.model_validate(half)
    for wrong in ({"country_code": "+228", "digits": 8}, {"country_code": "228", "digits": 3}):
        with pytest.raises(ValueError, match=r"country_code|digits"):
            Spelling.model_validate(wrong)


def test_odd_ids_are_counted_in_the_table(tmp_path: Any) -> None:
    tally = Tally()
    batch = pa.record_batch({"name": ["a", " b", "c"]})
    Names("name", Spelling(), KEY, None).ids(batch, tally, 10)
    assert tally.first == {("odd id", "name"): [12]}


# At a desk


def test_one_person_in_two_spellings_is_one_person(tmp_path: Any) -> None:
    spelling = {"country_code": "228", "digits": 8}
    desk = make_desk(tmp_path, spelling=spelling, limit=(0.25, 5.0, 1e-3), most=(4.0, 1e-3))
    first = table_of(3).set_column(0, "name", [["90123456", "+228 90123457", "0022890123458"]])
    second = first.set_column(0, "name", [["+228 90 12 34 56", "90123457", "22890123458"]])
    done = release_frame(first, desk)
    assert done.frame["name"].to_pylist() == ["22890123456", "22890123457", "22890123458"]
    with pytest.raises(Refused, match="the limit would be passed"):
        release_frame(second, desk)
    twice = first.set_column(0, "name", [["90123456", "+228 90 12 34 56", "90123458"]])
    with pytest.raises(
        Refused, match=r"duplicated values: 1 rows repeat an id, in the spelling of policy.toml"
    ):
        release_frame(twice, desk)


def test_pseudonyms_follow_from_the_spelling_and_the_desk_s_key(tmp_path: Any) -> None:
    desk = make_desk(tmp_path, pseudonyms=True, spelling={"case": "lower"})
    write_parquet(tmp_path / "in.parquet", table_of(3).set_column(0, "name", [["AA", "b", "Cc"]]))
    release(tmp_path)
    expected = sorted(pseudonyms(pa.array(["aa", "b", "cc"]), Desk.open(desk.path).pseudonym_key).to_pylist())
    assert read_back(tmp_path / "out.parquet")["name"].to_pylist() == expected
