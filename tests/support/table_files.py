"""Tables written in many ways, by plain Python, and releases of them whose noise is held fixed."""

import urllib.parse
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.release import make_desk, people, release, request_of
from targetdp.release import Released, Request
from targetdp.table import Dialect

GAP = "NA"
KEY = bytes(range(32))


def hold_noise(patch: pytest.MonkeyPatch) -> None:
    """Give every release the same secret and the same name: equal tables have equal noise."""
    patch.setattr("targetdp.release._draws.fresh_keys", lambda count: [KEY] * count)
    named = SimpleNamespace(uuid4=lambda: SimpleNamespace(hex="0" * 31 + "1"))
    patch.setattr("targetdp.release._run._reservation.uuid", named)


def mixed(rows: int = 60) -> pa.Table:
    """Ids, numbers beyond a thousand, whole ones, small ones, and text with every sign of every dialect."""
    values = people(rows)
    values["calls"] = values["calls"] * 1234.5
    values["texts"] = np.round(values["texts"] * 1e6)
    towns = ["Lomé", "a;b", "c,d", 'e"f', "g'h", "i|j", "k\tl", "", "3,5", "1 234"]
    return pa.table(values | {"town": [towns[i % len(towns)] for i in range(rows)]})


def write_dialect(path: Path, table: pa.Table, csv: Dialect, *, bom: bool = False) -> Path:
    """A table as CSV, without the library's help."""
    lines = [[_quoted(name, csv) for name in table.column_names]]
    lines += [[_cell(value, csv) for value in row.values()] for row in table.to_pylist()]
    text = "".join(csv.separator.join(line) + "\r\n" for line in lines)
    path.write_bytes((b"\xef\xbb\xbf" if bom else b"") + text.encode(csv.encoding))
    return path


def _cell(value: Any, csv: Dialect) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return _quoted(value, csv)
    shown = _number(value, csv)
    return _quoted(shown, csv) if csv.separator in shown else shown


def _quoted(text: str, csv: Dialect) -> str:
    return csv.quote + text.replace(csv.quote, 2 * csv.quote) + csv.quote if csv.quote else text


def _number(value: float, csv: Dialect) -> str:
    sign, digits = "-" * (value < 0), repr(abs(value))
    whole, point, rest = digits.partition(".")
    if "e" not in digits and csv.thousands:
        groups = list[str]()
        while whole:
            whole, last = whole[:-3], whole[-3:]
            groups.insert(0, last)
        whole = (csv.thousands if csv.thousands != " " else "\N{NARROW NO-BREAK SPACE}").join(groups)
        if csv.encoding in {"cp1252", "latin-1"}:
            whole = whole.replace("\N{NARROW NO-BREAK SPACE}", "\N{NO-BREAK SPACE}")
    return sign + whole + (csv.decimal if point else "") + rest


def write_hive(folder: Path, table: pa.Table, keys: Sequence[str], *, csv: bool = False) -> Path:
    """A table in folders that name the values of some columns."""
    rest = [name for name in table.column_names if name not in keys]
    rows = table.select(list(keys)).to_pylist()
    for number, values in enumerate(dict.fromkeys(tuple(row.values()) for row in rows)):
        place = folder
        for key, value in zip(keys, values, strict=True):
            shown = "__HIVE_DEFAULT_PARTITION__" if value is None else urllib.parse.quote(str(value), safe="")
            place /= f"{key}={shown}"
        place.mkdir(parents=True)
        own = table.filter(pa.array([tuple(row.values()) == values for row in rows])).select(rest)
        if csv:
            write_dialect(place / f"{number:03d}.csv", own, Dialect())
        else:
            pq.write_table(own, place / f"{number:03d}.parquet")
    return folder


def released(
    place: Path, table: Any, *, output: str = "out.parquet", request: Request | None = None,
    engine: str | None = None, given: dict[str, Any] | None = None, csv: str = "", **policy: Any,
) -> Released:  # fmt: skip
    """A release of a table at a desk of its own; ``csv`` is the policy's part of that name, as TOML."""
    place.mkdir()
    desk = make_desk(place, **policy)
    if csv:
        with (desk.path / "policy.toml").open("a", encoding="utf-8") as file:
            file.write(f"\n[csv]\n{csv}\n")
    return release(
        place, output, table=table, desk=desk.path, request=request or request_of(**(given or {})),
        engine=engine, new_people="the same ones, written otherwise",
    )  # fmt: skip
