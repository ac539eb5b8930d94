"""What is published beside decisions tells nothing of rows but through bits, and cuts made of bits."""

from pathlib import Path
from typing import Any

import pytest

from support.decisions import asks, decision, near, with_cut
from support.leaks import Told, Twins, must_be_alike, tables
from support.release import make_desk, read_back
from targetdp.release import Request

ROWS = 200
KNOWN = {"a known cut": asks(with_cut(9.0)), "near": asks(near(share=None, expected=None, cut=-0.2), B=0.25)}
SEARCHED = {
    "searched": asks(),
    "together": asks(decision(), with_cut(9.0, name="loan")),
    "searched near": asks(near(), B=0.25),
}


def told_of(folder: Path, asked: Request) -> list[Told]:
    make_desk(folder)
    twins = Twins(folder, asked)
    # At B = 2 a gap is a row as any other.
    found = []
    for table in tables(ROWS, gap=asked.B == 2).values():
        found.append(twins.release(table))
        assert read_back(folder / "out.parquet").num_rows == ROWS
    assert len(found) == (5 if asked.B == 2 else 4)
    return found


@pytest.mark.parametrize("kind", KNOWN)
def test_releases_of_neighbors_at_a_known_cut_differ_in_nothing_but_their_bits(
    tmp_path: Path, kind: str
) -> None:
    """Certificate, page, ledger, log and whatever else is at the desk: not one byte."""
    must_be_alike(told_of(tmp_path, KNOWN[kind]))


@pytest.mark.parametrize("kind", SEARCHED)
def test_where_the_cut_is_searched_they_differ_in_cuts_too(tmp_path: Path, kind: str) -> None:
    found = told_of(tmp_path, SEARCHED[kind])
    cuts: list[Any] = []
    for one in found:
        cuts.append(one.certificate.pop("cuts"))
        one.page = "\n".join(line for line in one.page.splitlines() if "were held against" not in line)
    must_be_alike(found)
    assert len({tuple(map(tuple, own)) for own in cuts}) > 1
    assert len({own[0][0] for own in cuts}) == 1, "the first is the request's"
