"""The page about faults tells of a whole run of the faults that there are."""

from support.docs import DOCS
from support.faults import FAULTS

_PAGE = (DOCS / "reliability.md").read_text(encoding="utf-8")


def counted() -> dict[str, int]:
    """How often each fault was injected in the last whole run, by the first three columns of the table."""
    table = _PAGE.partition("<!-- written by make faults -->")[2].partition("<!-- until here -->")[0]
    rows = [line.split(" | ") for line in table.splitlines() if line.startswith("| ")][1:]
    return {" | ".join(row[:3]).removeprefix("| "): int(row[3].replace(",", "")) for row in rows}


def test_every_fault_was_injected_often_enough() -> None:
    found = counted()
    known = {f"{fault.injected} | {fault.into} | {fault.must_hold}": name for name, fault in FAULTS.items()}
    assert set(found) == set(known), "the table is of other faults: run make faults"
    for told, times in found.items():
        assert times >= FAULTS[known[told]].whole, told


def test_the_totals_that_the_suite_is_for() -> None:
    kills = sum(fault.whole for name, fault in FAULTS.items() if name.startswith("random kills"))
    mutations = sum(fault.whole for name, fault in FAULTS.items() if name.startswith("mutations"))
    assert kills >= 200
    assert mutations >= 1000
