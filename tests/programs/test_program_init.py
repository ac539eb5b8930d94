"""`targetdp program init`: a first look at a table, and a commented file that can be used at once."""

import re
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from targetdp.cli import _program
from targetdp.programs import (
    MARK,
    Lending,
    open_program,
    program_file,
    propose,
    read_program_file,
)
from targetdp.programs._aid_settings import AidSettings
from targetdp.programs._lending_settings import LendingSettings
from targetdp.programs._settings import make_program_settings
from targetdp.table import profile_table

ROWS = 60


def people(**change: Any) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    found = {
        "subscriber": [f"{i:05}" for i in range(ROWS)],
        "calls": rng.poisson(20, ROWS),
        "texts": rng.random(ROWS),
        "gaps": [None, *rng.random(ROWS - 1).tolist()],
        "constant": np.ones(ROWS),
        "sex": ["f", "m"] * (ROWS // 2),
        "note": [f"text {i % 30}" for i in range(ROWS)],
        "consumption": np.round(rng.random(ROWS), 3),
        "weight": rng.uniform(0.5, 2, ROWS),
        "amount": rng.integers(10, 500, ROWS),
        "repaid": [0, 1, 1] * (ROWS // 3),
    }
    return {key: value for key, value in (found | change).items() if value is not None}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table(people()), path)
    return path


def init(table: Path, out: Path, *arguments: str, kind: str = "aid") -> str:
    """What was said; errors are raised."""
    result = CliRunner().invoke(
        _program.app,
        ["init", str(table), "--kind", kind, "--out", str(out), *arguments],
        catch_exceptions=False,
    )
    assert result.exit_code == 0, result.output
    return result.output


def test_an_aid_program_is_proposed_and_can_be_opened(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "program.toml"
    words = init(table, out, "--source", "synthetic", "--population", "5000")
    settings = read_program_file(out)
    assert isinstance(settings, AidSettings)
    assert (settings.id, settings.target, settings.weights) == ("subscriber", "consumption", "weight")
    assert settings.features == ("calls", "texts", "amount", "repaid")
    assert (settings.groups, settings.quota, settings.population) == (("sex",), 0.29, 5_000)
    assert "60 rows" in words
    assert "gaps: number, 59 different, 1 missing" in words
    assert "aid program: 4 features, target consumption" in words
    text = out.read_text(encoding="utf-8")
    assert '# left out: "gaps" (has missing values: declare a constant (impute) to use it)' in text
    assert '# left out: "constant" (the same in every row)' in text
    assert '# left out: "note" (not a number: encode it to use it)' in text
    assert open_program(out).program.people.population == 5_000
    jsonschema.validate(tomllib.loads(text), program_file().model_json_schema())


def test_a_lending_program_is_proposed_and_can_be_opened(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "program.toml"
    init(table, out, "--interest", "0.01", "--currency", "NGN", "--quiet", kind="lending")
    settings = read_program_file(out)
    assert isinstance(settings, LendingSettings)
    assert (settings.target, settings.repaid, settings.parts, settings.currency) == ("repaid", 1, 1, "NGN")
    assert settings.loans is not None
    assert settings.loans.model_dump() == {"amount": "amount", "revenue": 0.15, "interest": 0.01}
    text = out.read_text(encoding="utf-8")
    assert "revenue = 0.15  # AN ASSUMPTION" in text
    assert "interest = 0.01\n" in text
    assert (
        'repaid = 1  # the value of the target that means: repaid (a guess, from the name "repaid")' in text
    )
    assert '\ncurrency = "NGN"  # of amounts and profit\n' in text
    assert open_program(out).program.people.count == ROWS
    jsonschema.validate(tomllib.loads(text), program_file().model_json_schema())


def test_what_is_given_wins(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "program.toml"
    init(
        table, out, "--id", "note", "--target", "texts", "--features", "calls,amount", "--groups", "constant",
        "--quota", "0.1",
    )  # fmt: skip
    settings = read_program_file(out)
    assert isinstance(settings, AidSettings)
    assert (settings.id, settings.target, settings.features) == ("note", "texts", ("calls", "amount"))
    assert (settings.groups, settings.quota) == (("constant",), 0.1)


def test_parts_are_written_if_asked_for(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "program.toml"
    init(table, out, "--parts", "6", "--quiet")
    assert read_program_file(out).parts == 6
    with pytest.raises(ValueError, match="parts = 0: must be greater than or equal to 1"):
        init(table, out, "--parts", "0", "--force")


def test_a_transfer_s_cost_is_proposed_in_the_currency_that_was_given(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "program.toml"
    init(table, out, "--currency", "XOF", "--quiet")
    assert read_program_file(out).money is None, "nobody said what a transfer costs"
    text = out.read_text(encoding="utf-8")
    proposed = re.sub(r"(?m)^# (?=\[transfer\]|cost|currency|counted)", "", text)
    settings = make_program_settings(tomllib.loads(proposed))
    assert isinstance(settings, AidSettings)
    assert settings.transfer is not None
    assert (settings.transfer.currency, settings.unit) == ("XOF", "households")


def test_groups_that_look_alike_are_pointed_out(tmp_path: Path) -> None:
    table, out = tmp_path / "people.parquet", tmp_path / "program.toml"
    pq.write_table(pa.table(people(sex=["F", "F ", "Homme"] * (ROWS // 3))), table)
    words = init(table, out, "--quiet").replace("\n", " ")
    assert "group column 'sex': 'F' (20 rows) and 'F ' (20 rows) look alike" in words
    assert "give them one name in the table" in words
    assert MARK in words, "how many there are is a statistic of confidential rows"
    groups = open_program(out).program.people.groups
    assert groups.labels == (("F", "F ", "Homme"),)
    assert not init(table, tmp_path / "two.toml", "--groups", "note", "--quiet")


def test_ranges_of_confidential_rows_stay_out_of_the_file(table: Path, tmp_path: Path) -> None:
    secret, public = tmp_path / "secret.toml", tmp_path / "public.toml"
    init(table, secret)
    init(table, public, "--source", "public")
    assert read_program_file(secret).source == "confidential"  # unless somebody says otherwise
    highest = f"{max(people()['consumption']):g}"
    assert highest in public.read_text(encoding="utf-8")
    text = secret.read_text(encoding="utf-8")
    assert highest not in text
    assert " to " not in "".join(line for line in text.splitlines() if line.startswith(("  ", "target")))


def test_what_is_said_of_confidential_rows_carries_the_mark(table: Path, tmp_path: Path) -> None:
    assert MARK in init(table, tmp_path / "secret.toml").replace("\n", " ")
    assert MARK not in init(table, tmp_path / "public.toml", "--source", "public").replace("\n", " ")


def test_the_table_is_never_replaced(table: Path, tmp_path: Path) -> None:
    before = table.read_bytes()
    (tmp_path / "link.toml").symlink_to(table)
    for out in (table, tmp_path / "." / "people.parquet", tmp_path / "link.toml"):
        with pytest.raises(ValueError, match="is the table itself: choose another name"):
            init(table, out, "--force")
    assert table.read_bytes() == before


def test_how_a_loan_ended_is_no_feature(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    ended = ("revenue", "net_revenue", "Interest", "interestPaid", "LATE_FEES", "profit", "days overdue")
    kept = ("interesting", "coffee", "airtime", "prepaid", "lossless")
    table, out = tmp_path / "people.parquet", tmp_path / "program.toml"
    pq.write_table(pa.table(people() | {name: rng.random(ROWS) for name in (*ended, *kept)}), table)
    init(table, out, "--source", "public", "--currency", "$", "--quiet", kind="lending")
    assert set(read_program_file(out).features) == {*kept, "calls", "texts", "consumption", "weight"}
    text = out.read_text(encoding="utf-8")
    for name in ended:
        # What is between 0 and 1 where amounts are in the hundreds is no money.
        why = "looks like rates" if name in {"revenue", "Interest"} else "by its name it is known only after"
        assert f'# left out: "{name}" ({why}' in text
    init(table, out, "--source", "public", "--quiet", "--force")
    assert set(ended) <= set(read_program_file(out).features), "of aid it says nothing"


@pytest.mark.parametrize(
    ("values", "given", "meant"),
    [([0.5, 1.5], "0.5", 0.5), ([0, 1], "0", 0), ([0, 1], "1.0", 1), ([1e15, 2.0], "1e15", 10**15)],
)
def test_the_value_that_means_repaid_is_kept_exactly(
    tmp_path: Path, values: list[float], given: str, meant: float
) -> None:
    table, out = tmp_path / "people.parquet", tmp_path / "program.toml"
    pq.write_table(pa.table(people(repaid=values * (ROWS // 2))), table)
    init(table, out, "--repaid", given, "--currency", "$", "--quiet", kind="lending")
    settings = read_program_file(out)
    assert isinstance(settings, LendingSettings)
    assert settings.repaid == meant
    program = open_program(out).program
    assert isinstance(program, Lending)
    assert program.repaid.sum() == ROWS // 2


def test_a_name_that_would_be_ambiguous_is_not_proposed_as_a_group(tmp_path: Path) -> None:
    table, out = tmp_path / "people.parquet", tmp_path / "program.toml"
    pq.write_table(pa.table(people() | {"a=b": ["x", "y"] * (ROWS // 2)}), table)
    init(table, out, "--quiet")
    assert read_program_file(out).groups == ("sex",)


def test_nothing_is_replaced_without_force(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "program.toml"
    out.write_text("mine", encoding="utf-8")
    with pytest.raises(ValueError, match=r"program file .* exists: choose another name, or replace it with"):
        init(table, out)
    assert out.read_text(encoding="utf-8") == "mine"
    init(table, out, "--force")
    assert read_program_file(out).kind == "aid"
    link = tmp_path / "link.toml"
    link.symlink_to(tmp_path / "nowhere.toml")
    with pytest.raises(ValueError, match="exists"):
        init(table, link)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.toml", "people.parquet", "program.toml"]


def test_a_file_written_meanwhile_is_not_replaced(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "program.toml"

    def look_and_dawdle(path: Path) -> Any:
        out.write_text("theirs", encoding="utf-8")
        return profile_table(path)

    monkeypatch.setattr("targetdp.table.profile_table", look_and_dawdle)
    with pytest.raises(ValueError, match="exists: choose another name"):
        init(table, out)
    assert out.read_text(encoding="utf-8") == "theirs"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["people.parquet", "program.toml"]


def test_names_of_every_kind_survive(tmp_path: Path) -> None:
    odd = ['a "quoted" one', "two\nlines", "[red]", "été", "back\\slash", "tab\there", "#", "del\x7f"]
    rng = np.random.default_rng(1)
    table = tmp_path / "strange.parquet"
    pq.write_table(pa.table({"y": rng.random(20)} | {name: rng.random(20) for name in odd}), table)
    out = tmp_path / "program.toml"
    init(table, out, "--source", "public")
    assert read_program_file(out).features == tuple(odd)
    assert len(open_program(out).rows) == 20


def test_the_table_is_named_relative_to_the_file(table: Path, tmp_path: Path) -> None:
    (tmp_path / "programs").mkdir()
    out = tmp_path / "programs" / "program.toml"
    init(table, out)
    assert 'table = "../people.parquet"' in out.read_text(encoding="utf-8")
    assert open_program(out).program.people.count == ROWS


def test_a_csv_is_looked_at_as_what_it_means(tmp_path: Path) -> None:
    table = tmp_path / "people.csv"
    pacsv.write_csv(pa.table(people(gaps=None)), table)
    look = profile_table(table)
    assert look["subscriber"].kind == "text"  # 00001 is a name
    assert (look["calls"].kind, look["texts"].kind, look["sex"].kind) == ("whole", "number", "text")
    out = tmp_path / "program.toml"
    init(table, out)
    assert read_program_file(out).id == "subscriber"
    assert open_program(out).program.people.count == ROWS


def test_only_the_first_rows_are_looked_at(table: Path) -> None:
    look = profile_table(table, rows=7)
    assert (look.rows, look.whole) == (7, False)
    assert (profile_table(table).rows, profile_table(table).whole) == (ROWS, True)


@pytest.mark.parametrize(
    ("change", "kind", "arguments", "message"),
    [
        ({"consumption": None}, "aid", (), "target could not be guessed: say which column has consumption"),
        ({"repaid": None}, "lending", (), "target could not be guessed: say which column has repayment"),
        ({"amount": None}, "lending", (), "amount could not be guessed: say which column has the loans"),
        ({}, "aid", ("--target", "income"), "target names 'income': no such column in the table"),
        ({}, "aid", ("--features", "calls,income"), "features names 'income'"),
        ({}, "lending", ("--amount", "loans"), "amount names 'loans'"),
        (
            {},
            "lending",
            (),
            r"currency is not in the table: say what its money is in \(--currency\), such as",
        ),
        ({}, "lending", ("--currency", "US dollars"), "currency = 'US dollars': must be one word of 1 to 12"),
        ({}, "lending", ("--target", "sex"), "target 'sex' is text: say which value means"),
        ({}, "lending", ("--repaid", "1e400"), "repaid = '1e400' is no finite number"),
        ({}, "lending", ("--repaid", "nan"), "repaid = 'nan' is no finite number"),
        (
            {},
            "lending",
            ("--repaid", "yes"),
            "repaid = 'yes' is no finite number: target 'repaid' has numbers",
        ),
        ({}, "aid", ("--quota", "1.5"), "quota = 1.5: must be less than 1"),
        (
            {},
            "aid",
            ("--features", "calls,consumption"),
            "features names 'consumption', which the program uses",
        ),
    ],
)
def test_what_cannot_be_guessed_must_be_said(
    tmp_path: Path, change: dict[str, Any], kind: str, arguments: tuple[str, ...], message: str
) -> None:
    table, out = tmp_path / "people.parquet", tmp_path / "program.toml"
    pq.write_table(pa.table(people(**change)), table)
    with pytest.raises(ValueError, match=message):
        init(table, out, *arguments, kind=kind)
    assert not out.exists()


def test_tables_that_cannot_be_looked_at(tmp_path: Path) -> None:
    empty = tmp_path / "empty.parquet"
    pq.write_table(pa.table({"y": pa.array([], pa.float64())}), empty)
    with pytest.raises(ValueError, match="has no rows: there is nobody to decide about"):
        profile_table(empty)
    with pytest.raises(ValueError, match="does not exist"):
        profile_table(tmp_path / "nowhere.parquet")
    pq.write_table(pa.table({"y": np.arange(5.0)}), empty)
    with pytest.raises(ValueError, match="features could not be guessed: no column is left"):
        propose(profile_table(empty), "aid")
