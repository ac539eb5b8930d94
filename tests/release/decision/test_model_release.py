"""Decisions by a model of somebody else, from the request to the certificate; what one row does to a release.

Nothing waits here: the moment of publication is computed, and the clock is a test's own.
"""

import hashlib
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.models import model_of, node, row_model
from support.release import cli, make_desk, read_back, table_of, write_csv, write_parquet
from targetdp.release import Look, Refused, Released, Request, check_release, make_request, privatize, verify
from targetdp.release import _job as job_module
from targetdp.release._draws import TableChangedError
from targetdp.release._engine._local import LocalEngine
from targetdp.release._model._runner import publication_moment

COLUMNS = ("calls", "texts")
PEOPLE = 300


@pytest.fixture(autouse=True)
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long a release would have waited."""
    waits: list[float] = []
    monkeypatch.setattr(job_module, "sleep", waits.append)
    return waits


def sum_model() -> bytes:
    """The sum of both columns."""
    return bytes(
        row_model(node("ReduceSum", ["x", "axes"], ["score"]), width=2, constants={"axes": [1]})
        .SerializeToString()
    )  # fmt: skip


def nan_for(value: float) -> bytes:
    """The first column; no number for whoever has one value in it."""
    nodes = (
        node("Slice", ["x", "from", "to", "axis"], ["first"]),
        node("Sub", ["first", "value"], ["away"]),
        node("Div", ["away", "away"], ["one"]),  # 0/0 is no number
        node("Mul", ["first", "one"], ["score"]),
    )
    constants = {
        "from": np.array([0]), "to": np.array([1]), "axis": np.array([1]),
        "value": np.array([[value]], dtype=np.float32),
    }  # fmt: skip
    return bytes(row_model(*nodes, width=2, constants=constants).SerializeToString())


def greatest_of_all_rows() -> bytes:
    """Over all rows: everybody would get the answer of the greatest, were they given together."""
    nodes = (node("ReduceMax", ["x", "axes"], ["score"]),)
    return bytes(row_model(*nodes, width=2, constants={"axes": [0]}).SerializeToString())


def place(folder: Path, table: pa.Table | None = None, **policy: Any) -> pa.Table:
    made = table_of(PEOPLE) if table is None else table
    write_parquet(folder / "in.parquet", made)
    make_desk(folder, **policy)
    return made


def ask(folder: Path, model: bytes, columns: Sequence[str] = COLUMNS, **given: Any) -> Request:
    (folder / "model.onnx").write_bytes(model)
    one = {"name": "aid", "model": hashlib.sha256(model).hexdigest(), "columns": list(columns)}
    return make_request(release="decisions", B=2, epsilon=20, decisions=[one | (given or {"cut": 15.0})])


def release(
    folder: Path, request: Request, output: str = "out.parquet", table: str = "in.parquet"
) -> Released:
    return privatize(
        folder / table, folder / output, desk=folder / "desk", request=request, models=[folder / "model.onnx"]
    )


def look(folder: Path, request: Request, models: Sequence[str] = ("model.onnx",)) -> Look:
    paths = [folder / one for one in models]
    return check_release(folder / "in.parquet", desk=folder / "desk", request=request, models=paths)


def bits_of(folder: Path, output: str = "out.parquet") -> dict[str, bool]:
    made = read_back(folder / output)
    return dict(zip(made.column("name").to_pylist(), made.column("aid").to_pylist(), strict=True))


def answers(table: pa.Table, cut: float = 15.0) -> dict[str, bool]:
    total = np.asarray(table.column("calls")) + np.asarray(table.column("texts"))
    return dict(zip(table.column("name").to_pylist(), (total <= cut).tolist(), strict=True))


def test_everybody_gets_the_answer_of_her_own_row(tmp_path: Path) -> None:
    table = place(tmp_path)
    asked = ask(tmp_path, sum_model())
    done = release(tmp_path, asked)
    # At ε = 20 none of 300 answers is wrong, but once in a million times.
    assert bits_of(tmp_path) == answers(table)
    assert done.without_answer == 0
    assert verify(tmp_path / "out.parquet", request=asked).holds
    sha256 = hashlib.sha256(sum_model()).hexdigest()
    assert any(sha256 in one for one in done.certificate.conditions)
    assert [one.model for one in done.certificate.decisions] == [sha256], "whatever it is made of"


def test_a_model_that_mixes_rows_has_nothing_to_mix(tmp_path: Path) -> None:
    table = place(tmp_path)
    release(tmp_path, ask(tmp_path, greatest_of_all_rows()))
    # Of one row both columns are the greatest: the score is the last number, her own texts.
    own = np.asarray(table.column("texts")) <= 15
    expected = dict(zip(table.column("name").to_pylist(), own.tolist(), strict=True))
    assert len(set(expected.values())) == 2
    assert bits_of(tmp_path) == expected


def test_whoever_a_model_has_no_number_for_gets_a_no_and_nobody_is_refused(tmp_path: Path) -> None:
    """The model waits for the victim's value. A refusal would be an answer that nobody paid for."""
    table = table_of(PEOPLE)
    calls = np.asarray(table.column("calls")).copy()
    calls[7] = 3.0
    table = table.set_column(1, "calls", pa.array(calls))
    place(tmp_path, table)
    asked = ask(tmp_path, nan_for(3.0))
    done = release(tmp_path, asked)
    found = bits_of(tmp_path)
    victim = table.column("name")[7].as_py()
    expected = dict(zip(table.column("name").to_pylist(), list(map(bool, calls <= 15)), strict=True))
    assert expected[victim]
    assert found == expected | {victim: False}
    assert done.without_answer == 1
    assert "without_answer" not in done.certificate.text()
    assert done.certificate.text().count("no answer") == "".join(done.certificate.conditions).count(
        "no answer"
    )


def test_gaps_and_text_are_a_models_own_to_deal_with(tmp_path: Path) -> None:
    region = pa.array(["north" if i % 3 else None for i in range(PEOPLE)])
    calls = pa.array([None if i % 5 == 0 else float(i % 30) for i in range(PEOPLE)], pa.float64())
    table = table_of(PEOPLE).set_column(1, "calls", calls).append_column("region", region)
    place(tmp_path, table, decide=("region",))
    model = model_of(
        [
            node("IsNaN", ["calls"], ["gap"]),
            node("Where", ["gap", "many", "calls"], ["filled"]),
            node("LabelEncoder", ["region"], ["north"], domain="ai.onnx.ml", keys_strings=["north"],
                values_floats=[10.0], default_float=0.0),
            node("Add", ["filled", "north"], ["score"]),
        ],
        {"calls": ("float", [None, 1]), "region": ("string", [None, 1])},
        {"score": ("float", [None, 1])},
        {"many": np.array([[100.0]], dtype=np.float32)},
    ).SerializeToString()  # fmt: skip
    for name in ("in.parquet", "in.csv"):
        if name == "in.csv":
            write_csv(tmp_path / name, table)
        release(tmp_path, ask(tmp_path, model, ("calls", "region")), f"out_{name}", name)
        found = bits_of(tmp_path, f"out_{name}")
        for row in table.to_pylist():
            score = (100 if row["calls"] is None else row["calls"]) + (10 if row["region"] else 0)
            assert found[row["name"]] == (score <= 15)


@pytest.mark.parametrize("by", ["model", "weights"])
def test_a_word_in_a_csv_is_a_gap_of_one_person_and_refuses_nobody(tmp_path: Path, by: str) -> None:
    table = table_of(PEOPLE)
    place(tmp_path, table)
    calls = [str(one) for one in table.column("calls").to_pylist()]
    victim = min(
        range(PEOPLE), key=lambda i: table.column("calls")[i].as_py() + table.column("texts")[i].as_py()
    )
    calls[victim] = "unknown"
    write_csv(tmp_path / "in.csv", table.set_column(1, "calls", pa.array(calls)))
    asked = ask(tmp_path, sum_model())
    if by == "weights":
        one = {"name": "aid", "weights": dict.fromkeys(COLUMNS, 1.0), "cut": 15.0}
        asked = make_request(release="decisions", B=2, epsilon=20, decisions=[one])
        privatize(tmp_path / "in.csv", tmp_path / "out.parquet", desk=tmp_path / "desk", request=asked)
    else:
        assert release(tmp_path, asked, table="in.csv").without_answer == 1
    expected = answers(table)
    assert expected[table.column("name")[victim].as_py()]
    assert bits_of(tmp_path) == expected | {table.column("name")[victim].as_py(): False}


@pytest.mark.parametrize(
    ("models", "said"),
    [((), "which is not here"), (("other.onnx",), "which the request does not name")],
)
def test_the_file_must_be_the_one_that_was_asked_for(
    tmp_path: Path, models: tuple[str, ...], said: str
) -> None:
    place(tmp_path)
    asked = ask(tmp_path, sum_model())
    (tmp_path / "other.onnx").write_bytes(greatest_of_all_rows())
    assert any(said in problem.what for problem in look(tmp_path, asked, models).problems)
    with pytest.raises(Refused, match=said):
        privatize(
            tmp_path / "in.parquet", tmp_path / "out.parquet", desk=tmp_path / "desk", request=asked,
            models=[tmp_path / one for one in models],
        )  # fmt: skip


def test_columns_that_a_model_does_not_take_are_found_by_their_types_before_anything_is_charged(
    tmp_path: Path,
) -> None:
    table = table_of(PEOPLE).append_column("region", pa.array(["a"] * PEOPLE))
    place(tmp_path, table, decide=("region",))
    three = look(tmp_path, ask(tmp_path, sum_model(), ("calls", "texts", "topups"))).problems
    assert any("it takes 2 columns" in problem.what for problem in three)
    text = look(tmp_path, ask(tmp_path, sum_model(), ("calls", "region"))).problems
    assert any("the model takes a number" in problem.what for problem in text)


def test_the_data_holder_is_told_what_a_model_looks_at(tmp_path: Path) -> None:
    place(tmp_path)
    told = "\n".join(look(tmp_path, ask(tmp_path, sum_model())).lines)
    assert "for you only: aid looks at" in told
    assert "would get a yes at the first cut" in told
    assert "“age > 60” is one, too" in told
    assert "confined by" in told


# When it is published


def test_the_moment_of_publication_is_made_of_rows_and_policy_alone(
    tmp_path: Path, slept: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock that stands still but for what the model takes: however long that is, the moment is one."""
    place(tmp_path)
    clock, kept, looked = [100.0], LocalEngine.write, vars(job_module)["look"]
    monkeypatch.setattr(job_module, "monotonic", lambda: clock[0])

    def slowly(self: LocalEngine, *given: Any) -> Any:
        clock[0] += 3.0
        return kept(self, *given)

    asked = ask(tmp_path, sum_model())
    release(tmp_path, asked, "quick.parquet")
    assert slept == [publication_moment(PEOPLE + 3 * PEOPLE, 100)]
    monkeypatch.setattr(LocalEngine, "write", slowly)
    release(tmp_path, asked, "slow.parquet")
    assert slept[1] == slept[0] - 3.0

    def slow_look(*given: Any) -> Any:
        clock[0] += 2.0
        return looked(*given)

    # A look runs models on some people's rows, too, before anything is charged.
    monkeypatch.setattr(job_module, "look", slow_look)
    release(tmp_path, asked, "slow_look.parquet")
    assert slept[2] == slept[1] - 2.0


def test_every_model_has_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place(tmp_path)
    (one,) = ask(tmp_path, sum_model()).decisions
    two = [one.model_dump(exclude_none=True) | {"name": name} for name in ("aid", "more")]
    rows: list[int] = []

    def moment(number: int, *_: Any, **__: Any) -> int:
        rows.append(number)
        return 0

    monkeypatch.setattr(job_module, "publication_moment", moment)
    release(tmp_path, make_request(release="decisions", B=2, epsilon=20, decisions=two[:1]), "one.parquet")
    release(tmp_path, make_request(release="decisions", B=2, epsilon=20, decisions=two), "two.parquet")
    assert rows == [4 * PEOPLE, 8 * PEOPLE]


def test_what_can_be_seen_of_files_is_from_after_the_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The certificate's time and those of all files: a moment that the work had no part in."""
    place(tmp_path)
    asked, moments = ask(tmp_path, sum_model()), []

    def wait(_: float) -> None:
        for path in tmp_path.rglob("*"):
            if ".out" in str(path) and path.is_file():
                os.utime(path, (1, 1))  # long ago
        moments.append(time.time())

    monkeypatch.setattr(job_module, "sleep", wait)
    release(tmp_path, asked)
    (moment,) = moments
    for path in (*tmp_path.glob("out.parquet*"),):
        assert path.stat().st_mtime >= moment - 0.1, path


# A run that dies


def test_a_rerun_has_the_same_answers_though_the_model_would_answer_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers are kept, sealed, with the draws; no score is on disk in clear, and nothing stays."""
    table = place(tmp_path)
    asked = ask(tmp_path, sum_model())
    with monkeypatch.context() as patch:
        patch.setattr(job_module, "make_certificate", _fail)
        with pytest.raises(RuntimeError, match="power cut"):
            release(tmp_path, asked)
    (draft,) = [path for path in (tmp_path / "desk" / "drafts").iterdir() if path.is_dir()]
    (kept,) = draft.glob("answers *")
    assert kept.stat().st_mode & 0o077 == 0
    # With a fixed cut each score is 0 or 1: in clear, all bytes but a few would be 0.
    assert kept.read_bytes().count(0) < len(kept.read_bytes()) / 50

    class Otherwise:
        """A model that answers yes now, whoever it is."""

        without_answer, confined_by = 0, "nothing"

        def __init__(self, *_: Any, **__: Any) -> None: ...

        def __enter__(self) -> "Otherwise":
            return self

        def __exit__(self, *_: object) -> None: ...

        def scores(self, rows: pa.Table) -> Any:
            return np.full(rows.num_rows, -1e9)

    from targetdp.release._model import _given

    monkeypatch.setattr(_given, "ModelRunner", Otherwise)
    release(tmp_path, asked)
    assert bits_of(tmp_path) == answers(table)
    assert not draft.exists()


def test_a_rerun_on_other_rows_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = place(tmp_path)
    asked = ask(tmp_path, sum_model())
    with monkeypatch.context() as patch:
        patch.setattr(job_module, "make_certificate", _fail)
        with pytest.raises(RuntimeError, match="power cut"):
            release(tmp_path, asked)
    texts = np.asarray(table.column("texts")).copy()
    texts[3] += 1e-9
    pq.write_table(table.set_column(2, "texts", pa.array(texts)), tmp_path / "in.parquet")
    with pytest.raises(TableChangedError):
        release(tmp_path, asked)


def test_a_rerun_on_other_texts_of_a_dictionary_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def table(first: str) -> pa.Table:
        region = pa.array([first if i % 2 else "south" for i in range(PEOPLE)]).dictionary_encode()
        return table_of(PEOPLE).append_column("region", region)

    place(tmp_path, table("north"), decide=("region",))
    model = model_of(
        [node("LabelEncoder", ["region"], ["score"], domain="ai.onnx.ml", keys_strings=["north"],
            values_floats=[10.0], default_float=20.0)],
        {"region": ("string", [None, 1])},
        {"score": ("float", [None, 1])},
    ).SerializeToString()  # fmt: skip
    asked = ask(tmp_path, model, ("region",))
    with monkeypatch.context() as patch:
        patch.setattr(job_module, "make_certificate", _fail)
        with pytest.raises(RuntimeError, match="power cut"):
            release(tmp_path, asked)
    pq.write_table(table("other"), tmp_path / "in.parquet")
    with pytest.raises(TableChangedError):
        release(tmp_path, asked)


def test_a_model_may_decide_twice_on_other_columns(tmp_path: Path) -> None:
    table = place(tmp_path)
    one = ask(tmp_path, sum_model()).decisions[0].model_dump(exclude_none=True)
    other = one | {"name": "other", "columns": ["calls", "topups"]}
    release(tmp_path, make_request(release="decisions", B=2, epsilon=20, decisions=[one, other]))
    made = read_back(tmp_path / "out.parquet")
    found = dict(zip(made.column("name").to_pylist(), made.column("other").to_pylist(), strict=True))
    expected = answers(table.set_column(2, "texts", table.column("topups")))
    assert bits_of(tmp_path) == answers(table) != expected
    assert found == expected


def test_the_command_line_takes_models(tmp_path: Path) -> None:
    place(tmp_path)
    asked = ask(tmp_path, sum_model())
    (tmp_path / "request.toml").write_text(asked.text())
    given = (
        "privatize", tmp_path / "in.parquet", "--request", tmp_path / "request.toml",
        "--desk", tmp_path / "desk", "--model", tmp_path / "model.onnx",
    )  # fmt: skip
    assert cli(*given, "--check").code == 0
    ran = cli(*given, tmp_path / "out.parquet", "--yes", "--json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["for_the_data_holder_only"]["rows_without_answer"] == 0


def _fail(*_: Any, **__: Any) -> Any:
    raise RuntimeError("power cut")
