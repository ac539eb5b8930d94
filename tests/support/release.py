"""What tests of releases share: small tables, desks, requests, the command line, snapshots."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from targetdp._core import Floats
from targetdp._files import toml_key, toml_value
from targetdp.cli import main
from targetdp.release import (
    Certificate,
    Desk,
    Look,
    Released,
    Request,
    certificate_path,
    check_release,
    make_request,
    privatize,
    read_certificate,
    verify_release,
)

FEATURES = ("calls", "texts", "topups")
CENTERS = (10.0, 5.0, 1.0)
SCALES = (8.0, 6.0, 2.0)
ENOUGH = 1_500
"""Rows for private scales of three columns, at half of ε = 4."""
NAMED = ("--id", "name", "--features", ",".join(FEATURES))
ASKED = ("--B", "0.25", "--epsilon", "4", "--yes")
"""What `targetdp privatize` is asked for where there is no request's file, without a question."""
LIMIT = (0.25, 100.0, 0.1)
"""B, ε and δ of a wide limit: many small releases fit."""
COMMAND = (sys.executable, "-c", "from targetdp.cli import main; main()")


@dataclass(frozen=True)
class Ran:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def people(rows: int = 60, seed: int = 0) -> dict[str, Any]:
    """Ids in no order, with leading zeros, and three features."""
    rng = np.random.default_rng(seed)
    ids = [f"{i:06d}" for i in rng.permutation(rows)]
    values = rng.normal(CENTERS, SCALES, size=(rows, len(FEATURES)))
    return {"name": ids} | {name: values[:, j] for j, name in enumerate(FEATURES)}


def table_of(rows: int = 60, seed: int = 0, **more: Any) -> pa.Table:
    return pa.table(people(rows, seed) | more)


def write_parquet(path: Path, table: pa.Table | None = None) -> Path:
    pq.write_table(table_of() if table is None else table, path)
    return path


def write_csv(path: Path, table: pa.Table | None = None) -> Path:
    pacsv.write_csv(table_of() if table is None else table, path)
    return path


def write_scales(path: Path, source: str = "public", features: Sequence[str] = FEATURES) -> Path:
    lines = [f'source = "{source}"', *(['reason = "a census"'] if source == "public" else []), "[features]"]
    for j, name in enumerate(features):
        lines.append(f"{json.dumps(name)} = {{ center = {CENTERS[j % 3]}, scale = {SCALES[j % 3]} }}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def policy_text(
    features: Sequence[str] = FEATURES,
    *,
    name: str = "people",
    id: str = "name",  # noqa: A002 (as the policy calls it)
    pseudonyms: bool = False,
    spelling: Mapping[str, Any] | None = None,
    public: Mapping[str, str] | None = None,
    decide: Sequence[str] | None = None,
    gaps: Mapping[str, float | str] | None = None,
    kinds: Mapping[str, Mapping[str, Any]] | None = None,
    scales: str = "public",
    share: float | None = None,
    limit: Sequence[float] | Mapping[str, Any] = LIMIT,
    most: Sequence[float] = (100.0, 0.5),
    large_delta: str | None = None,
    plan: Sequence[Mapping[str, Any]] = (),
    requests: Mapping[str, Any] | None = None,
    keys: Mapping[str, str] | None = None,
    approvers: Mapping[str, str] | None = None,
    agreed: Mapping[str, Any] | None = None,
    reason: str | None = None,
) -> str:
    """A policy.toml: public scales, ids in clear and a wide limit, but for what a test changes."""
    if share is None and scales == "private":
        share = 0.5  # so that small tables have enough people for them
    tables: dict[str, Mapping[str, Any]] = {
        "id": {"column": id, "pseudonyms": pseudonyms},
        "id.spelling": spelling or {},
        "columns": {"release": list(features), "decide": decide},
        "columns.public": public or {},
        **{f"kinds.{toml_key(column)}": kind for column, kind in (kinds or {}).items()},
        "gaps": gaps or {},
        "scales": {"source": scales, "share": share},
        "limit": limit
        if isinstance(limit, Mapping)
        else dict(zip(("B", "epsilon", "delta"), limit, strict=True)),
        "release": dict(zip(("epsilon", "delta"), most, strict=True)) | {"large_delta": large_delta},
        "requests": requests or {},
        "requests.keys": keys or {},
        "approvers": approvers or {},
        "agreed": agreed or {},
    }
    lines = _lines({"name": name, "reason": reason})
    for heading, fields in tables.items():
        if said := _lines(fields):
            lines += ["", f"[{heading}]", *said]
    for planned in plan:
        lines += ["", "[[plan]]", *_lines(planned)]
    return "\n".join(lines) + "\n"


def _lines(fields: Mapping[str, Any]) -> list[str]:
    return [f"{toml_key(name)} = {_toml(value)}" for name, value in fields.items() if value is not None]


def _toml(value: Any) -> str:
    """What no policy can say is written all the same: to be refused."""
    return str(value) if value == float("inf") else toml_value(value)


def make_desk(folder: Path, features: Sequence[str] = FEATURES, *, at: str = "desk", **policy: Any) -> Desk:
    """A desk in a folder, with the scales of `write_scales`; ``policy`` is that of `policy_text`."""
    scales = None
    if policy.get("scales", "public") == "public":
        scales = folder / "scales.toml"
        if not scales.exists():
            write_scales(scales, features=features)
    return Desk.create(folder / at, policy_text(features, **policy), scales=scales)


def new_policy(desk: Desk | Path, features: Sequence[str] = FEATURES, **policy: Any) -> Desk:
    """The same desk after its owner has written another policy."""
    path = desk.path if isinstance(desk, Desk) else desk
    (path / "policy.toml").write_text(policy_text(features, **policy), encoding="utf-8")
    return Desk.open(path)


def request_of(**given: Any) -> Request:
    """A request that is complete, but for what a test changes (None leaves a field out)."""
    whole = {"B": 0.25, "epsilon": 4.0} | given
    return make_request(**{name: value for name, value in whole.items() if value is not None})


def release(
    folder: Path,
    output: str = "out.parquet",
    *,
    table: Any = "in.parquet",
    desk: Desk | str | Path = "desk",
    request: Request | None = None,
    engine: str | None = None,
    force: bool = False,
    new_people: str | None = None,
    **given: Any,
) -> Released:
    """A release at the desk of a folder, of the table there; ``given`` is that of `request_of`."""
    return privatize(
        folder / table if isinstance(table, str) else table, folder / output,
        desk=folder / desk if isinstance(desk, str) else desk,
        request=request or request_of(**given), engine=engine, force=force, new_people=new_people,
    )  # fmt: skip


def release_frame(table: Any, desk: Desk | Path, *, new_people: str | None = None, **given: Any) -> Released:
    """A release of a table in memory, handed back."""
    return privatize(table, desk=desk, request=request_of(**given), new_people=new_people)


def look(
    folder: Path, *, table: Any = "in.parquet", request: Request | None = None, new_people: str | None = None,
    **given: Any,
) -> Look:  # fmt: skip
    """What a release at the desk of a folder would be."""
    source, asked = folder / table if isinstance(table, str) else table, request or request_of(**given)
    return check_release(source, desk=folder / "desk", request=asked, new_people=new_people)


def place_with(folder: Path, rows: int = 60, seed: int = 0, **policy: Any) -> Path:
    """A folder with in.parquet and a desk."""
    folder.mkdir(exist_ok=True)
    write_parquet(folder / "in.parquet", table_of(rows, seed))
    make_desk(folder, **policy)
    return folder


def cli(*arguments: Any) -> Ran:
    """The command line in this process: fast, with its exit code and both streams."""
    out, err = io.StringIO(), io.StringIO()
    code = 0
    with (
        mock.patch.object(sys, "argv", ["targetdp", *map(str, arguments)]),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as left:
            code = int(left.code or 0)
    return Ran(code, out.getvalue(), err.getvalue())


def command(*arguments: Any, cwd: Path | None = None, **more: Any) -> Ran:
    """The command line as a process of its own."""
    done = subprocess.run(  # noqa: S603
        [*COMMAND, *map(str, arguments)], check=False, capture_output=True, text=True, cwd=cwd,
        timeout=120, **more,
    )  # fmt: skip
    return Ran(done.returncode, done.stdout, done.stderr)


def words(text: str) -> str:
    """Text without line breaks."""
    return " ".join(text.split())


def read_back(path: Path) -> pa.Table:
    """A released table as any reader would see it; ids of a CSV as text."""
    if path.is_dir():
        return pa.concat_tables([read_back(part) for part in sorted(path.iterdir())])
    if path.suffix == ".csv":
        names = path.read_text(encoding="utf-8").splitlines()[0].replace('"', "").split(",")
        convert = pacsv.ConvertOptions(column_types={names[0]: pa.string()}, strings_can_be_null=False)
        return pacsv.read_csv(path, convert_options=convert)
    return pq.ParquetFile(path).read()


def values_of(table: pa.Table, features: Sequence[str] = FEATURES) -> Floats:
    return np.column_stack([np.asarray(table.column(name)) for name in features])


def certificate_of(output: Path) -> Certificate:
    return read_certificate(certificate_path(output))


def holds(output: Path) -> bool:
    return verify_release(output, certificate_of(output)).holds


def snapshot(folder: Path) -> dict[str, bytes | None]:
    """Everything below a folder, hidden things too: names and contents."""
    return {
        str(path.relative_to(folder)): None if path.is_dir() else path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if not path.is_symlink()
    }


@contextmanager
def nothing_changes(folder: Path) -> Iterator[None]:
    """Whatever happens inside leaves the folder as it was, to the last byte; a desk's log may have grown."""
    before = snapshot(folder)
    yield
    after = snapshot(folder)
    for name in [name for name in before if name.endswith("log.jsonl")]:
        now, then = after[name], before[name]
        assert now is not None
        assert then is not None
        assert now.startswith(then), "lines of the log stay"
        after[name] = then
    assert sorted(after) == sorted(before)
    assert {name for name in before if before[name] != after[name]} == set()


def hidden(folder: Path) -> list[str]:
    """What a finished run must not leave: hidden folders, locks, drafts."""
    return sorted(
        p.name for p in folder.iterdir() if p.name.startswith(".") or p.name.endswith((".lock", ".new"))
    )


def normalized(table: pa.Table, features: Sequence[str] = FEATURES) -> Floats:
    """Rows of the unit ball by the scales of `write_scales`, computed here and not by the library."""
    columns = values_of(table, features)
    centers = np.array([CENTERS[j % 3] for j in range(len(features))])
    scales = np.array([SCALES[j % 3] for j in range(len(features))])
    scaled = (columns - centers) / scales
    return np.asarray(scaled / np.maximum(1.0, np.linalg.norm(scaled, axis=1))[:, None])


def environment(**more: str) -> dict[str, str]:
    return dict(os.environ) | more
