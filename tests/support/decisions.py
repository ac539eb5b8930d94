"""What tests of decisions share: what is asked, true answers, and releases whose certificates are forged."""

import math
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from support.release import certificate_of, request_of
from targetdp._core import Floats
from targetdp.release import Certificate, Check, Desk, Request, Verification, certificate_path, verify
from targetdp.release._certificate._caveats import conditions_of
from targetdp.release._certificate._contents import output_of
from targetdp.release._certificate._page import page
from targetdp.release._staging import page_path
from targetdp.table import Written

Bits = NDArray[np.bool_]
WEIGHTS = {"calls": 1.0, "texts": 0.5}
EXPECTED = ((-20.0, 0.0), (8.0, 0.3), (60.0, 1.0))
"""Of the weighted sum of `table_of`'s columns as they are: roughly right."""
NEAR_EXPECTED = ((-1.0, 0.0), (-0.3, 0.3), (1.0, 1.0))
"""The same of its columns as `write_scales` scales them."""
CURVES = {
    "calls": {"knots": (0.0, 10.0, 20.0), "values": (0.0, 1.0, 1.5)},
    "topups": {"knots": (-1.0, 3.0), "values": (1.0, 0.0)},
}
NEAR_CURVES = {
    "calls": {"knots": (-1.0, 0.0, 1.0), "values": (-1.0, 0.0, 0.5)},
    "topups": {"knots": (-0.5, 0.5), "values": (1.0, 0.0)},
}


def decision(**given: Any) -> dict[str, Any]:
    """One decision that can be asked at B = 2, but for what a test changes (None leaves a field out)."""
    whole = {"name": "aid", "weights": WEIGHTS, "share": 0.3, "expected": EXPECTED} | given
    return {name: value for name, value in whole.items() if value is not None}


def with_cut(cut: float, **given: Any) -> dict[str, Any]:
    """The same with a cut that is known."""
    return decision(cut=cut, **{"share": None, "expected": None} | given)


def near(**given: Any) -> dict[str, Any]:
    """One decision that can be asked below B = 2."""
    return decision(**{"expected": NEAR_EXPECTED} | given)


def asks(*decisions: dict[str, Any], **given: Any) -> Request:
    """A request for decisions, at B = 2 and ε = 4 but for what a test changes."""
    wanted = decisions or (decision(),)
    return request_of(**{"release": "decisions", "B": 2.0, "decisions": list(wanted)} | given)


def weighted(table: pa.Table, weights: dict[str, float] | None = None) -> Floats:
    """A weighted sum of columns as they are, computed here and not by the library."""
    pairs = (weights or WEIGHTS).items()
    return np.asarray(sum(weight * np.asarray(table.column(name)) for name, weight in pairs))


def bits_of(table: pa.Table, name: str = "aid") -> Bits:
    return np.asarray(table.column(name).to_numpy(zero_copy_only=False), dtype=np.bool_)


def within_five(count: int, people: int, chance: float) -> bool:
    """Whether a binomial count is within five standard errors of what is expected."""
    return abs(count - people * chance) <= 5 * math.sqrt(people * chance * (1 - chance)) + 1


# Certificates that are really signed, so that only what is checked can find what is wrong.


def forge(
    output: Path,
    desk: Desk,
    change: Callable[[dict[str, Any]], None] | None = None,
    table: pa.Table | None = None,
    *,
    conditions: bool = True,
) -> Certificate:
    """Write another table, or another certificate, signed with the desk's own key, hashes and page right."""
    c = certificate_of(output)
    if table is not None:
        pq.write_table(table, output)
    data = output.read_bytes()
    written = Written(output.name, len(data), sha256(data).hexdigest())
    plain = c.model_copy(update={"output": output_of("parquet", [written], output.name)}).model_dump()
    if change is not None:
        change(plain)
    made = Certificate.model_validate(plain)
    if conditions:  # whoever forges states those that the changed facts ask for
        made = made.model_copy(update={"conditions": conditions_of(made.facts())})
    made = made.signed(desk.key)
    certificate_path(output).write_text(made.text(), encoding="utf-8")
    page_path(output).unlink(missing_ok=True)  # it may not be possible to write one of what makes no sense
    return made


def with_page(output: Path) -> None:
    """The page that belongs to whatever certificate is there."""
    page_path(output).write_text(page(certificate_of(output)), encoding="utf-8")


def failed(output: Path, request: Request | None = None) -> list[str]:
    """What `verify` finds wrong, by the names of its checks."""
    return [one.what for one in verify(output, request=request).failed]


def check_named(found: Verification, what: str) -> Check:
    (one,) = [check for check in found.checks if check.what == what]
    return one


def with_bits(table: pa.Table, bits: Bits, name: str = "aid") -> pa.Table:
    """A released table with other answers."""
    place = table.column_names.index(name)
    return table.set_column(place, table.schema.field(name), pa.array(bits))


def batches_of_people(ids: Sequence[str], release: str) -> Any:
    """In which batch people were asked, derived here again: by a keyed hash of each published id."""
    from targetdp.release._ids import tags_of

    key = sha256(f"targetdp turns {release}".encode()).digest()
    first = tags_of(pa.array(ids, pa.string()), key).view(np.uint64)[:, 0]
    ends = [len(ids)]
    while 3 * ends[-1] // 4 >= 48:
        ends.append(3 * ends[-1] // 4)
    shares = [end / len(ids) for end in ends[:0:-1]]
    return np.array([sum(int(tag) / 2**64 >= share for share in shares) for tag in first], dtype=np.uint8)
