"""Tables as they come: each dialect, pattern and folder against the same table written plainly, bitwise."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.decisions import asks, decision, with_cut
from support.release import (
    FEATURES,
    certificate_of,
    cli,
    holds,
    make_desk,
    read_back,
    request_of,
    table_of,
    words,
    write_csv,
)
from support.table_files import hold_noise, mixed, released, write_dialect, write_hive
from targetdp.release import Refused, privatize
from targetdp.table import Dialect, TableError, dialect_lines, find_files, open_source
from targetdp.targeting import read_decisions, read_scores

DIALECTS = {
    "French Excel": (Dialect(";", ",", "", "cp1252"), False),
    "French, grouped": (Dialect(";", ",", " ", "cp1252"), False),
    "French, in UTF-8 with its mark": (Dialect(";", ",", " "), True),
    "German": (Dialect(";", ",", "."), False),
    "Swiss": (Dialect(";", ".", "'", "latin-1"), False),
    "British, grouped": (Dialect(",", ".", ","), False),
    "tabs": (Dialect("\t", ","), False),
    "bars in single quotes": (Dialect("|", ".", "", "utf-8", "'"), False),
    "UTF-16, tabs": (Dialect("\t", ",", "", "utf-16"), False),
    "commas for both": (Dialect(",", ","), False),
}


@pytest.fixture(autouse=True)
def noise_is_fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    hold_noise(monkeypatch)


def toml(csv: Dialect) -> str:
    return "\n".join(dialect_lines(csv))


PUBLIC: dict[str, Any] = {"public": {"town": "a list of towns"}}


@pytest.mark.parametrize("name", DIALECTS)
def test_a_release_of_each_dialect_is_that_of_the_plain_table(tmp_path: Path, name: str) -> None:
    csv, bom = DIALECTS[name]
    table = mixed()
    plain = released(tmp_path / "plain", write_dialect(tmp_path / "p.csv", table, Dialect()), **PUBLIC)
    source = write_dialect(tmp_path / "in.csv", table, csv, bom=bom)
    found = open_source(source).csv
    same_text = {found.encoding, csv.encoding} <= {"cp1252", "latin-1"}
    assert found == csv or (same_text and found.numerals == csv.numerals)
    done = released(tmp_path / "other", source, csv=toml(csv), **PUBLIC)
    assert done.path is not None
    assert plain.path is not None
    assert done.path.read_bytes() == plain.path.read_bytes()
    assert holds(done.path)
    assert f"read with {csv.text}" in done.look.read_as
    assert not done.look.doubt


@pytest.mark.parametrize("word", ["unknown", "1.5.2", "12.5"])
@pytest.mark.parametrize("name", ["French Excel", "German"])
def test_at_the_largest_b_a_word_is_one_person_s_gap_in_every_dialect(
    tmp_path: Path, name: str, word: str
) -> None:
    csv, _ = DIALECTS[name]
    table = mixed()
    texts: list[Any] = table["calls"].to_pylist()
    plain = write_dialect(
        tmp_path / "p.csv", table.set_column(1, "calls", pa.array([None, *texts[1:]])), Dialect()
    )
    source = write_dialect(tmp_path / "in.csv", table, csv)
    lines = source.read_bytes().decode(csv.encoding).splitlines()
    cells = lines[1].split(csv.separator)
    lines[1] = csv.separator.join([cells[0], word, *cells[2:]])
    source.write_bytes("\n".join([*lines, ""]).encode(csv.encoding))
    given: dict[str, Any] = {"request": asks(decision()), "gaps": {"all": 0.0}}
    one = released(tmp_path / "plain", plain, **given)
    other = released(tmp_path / "other", source, csv=toml(csv), **given)
    assert one.path is not None
    assert other.path is not None
    assert other.path.read_bytes() == one.path.read_bytes()


def test_below_it_the_word_is_counted_and_refused(tmp_path: Path) -> None:
    csv, _ = DIALECTS["French Excel"]
    source = write_dialect(tmp_path / "in.csv", table_of(), csv)
    source.write_bytes(source.read_bytes().replace(b";", b";12.5", 1).replace(b"12.5", b"", 1))
    lines = source.read_text(encoding="cp1252").splitlines()
    lines[3] = ";".join([lines[3].split(";")[0], "12.5", "1", "1"])
    source.write_text("\n".join(lines), encoding="cp1252")
    with pytest.raises(Refused, match=r"calls  1 cell that is no number, in row 3"):
        released(tmp_path / "place", source, csv=toml(csv))


# What is declared is read; what is found is never read by a release


def test_a_release_reads_what_is_declared_and_names_what_it_sees(tmp_path: Path) -> None:
    csv, _ = DIALECTS["French Excel"]
    source = write_dialect(tmp_path / "in.csv", mixed(), csv)
    with pytest.raises(
        TableError, match=r"looks written with separator=; decimal=, encoding=cp1252"
    ) as refused:
        released(tmp_path / "place", source)
    assert "[csv] in the desk's policy.toml" in str(refused.value)
    assert "damaged" not in str(refused.value)


def test_one_row_does_not_change_how_others_are_read(tmp_path: Path) -> None:
    """The first row has a comma where nobody else has: the others' numbers stay what they are."""
    table, csv = table_of(), Dialect(";", ".")
    plain = write_dialect(tmp_path / "plain.csv", table, csv)
    lines = plain.read_text(encoding="utf-8").splitlines()
    person = lines[1].split(";")[0].strip('"')
    lines[1] = ";".join([person, "3,5", "1,234,567", "2"])
    odd = tmp_path / "odd.csv"
    odd.write_text("\n".join([*lines, ""]), encoding="utf-8")
    given: dict[str, Any] = {"request": asks(with_cut(8.0)), "gaps": {"all": 0.0}, "csv": toml(csv)}
    outputs = [released(tmp_path / p.stem, p, **given) for p in (plain, odd)]
    one, other = (read_back(done.path) for done in outputs if done.path is not None)
    assert one.column_names == other.column_names
    others = [name != person for name in one["name"].to_pylist()]
    assert sum(others) == len(one) - 1
    assert one.filter(pa.array(others)).equals(other.filter(pa.array(others)))


def test_what_looks_otherwise_than_declared_is_a_warning(tmp_path: Path) -> None:
    source = write_dialect(tmp_path / "in.csv", table_of(), Dialect(";", ","))
    given: dict[str, Any] = {"request": asks(decision()), "gaps": {"all": 0.0}}
    done = released(tmp_path / "place", source, csv=toml(Dialect(";", ".")), **given)
    assert any("looks written with separator=; decimal=," in one for one in done.look.warnings)


def test_init_proposes_what_it_found_and_privatize_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    csv, _ = DIALECTS["French, grouped"]
    write_dialect(tmp_path / "in.csv", mixed(1500), csv)
    made = cli("init", "in.csv")
    assert made.code == 0, made.err
    assert "CSV, read with separator=; decimal=, thousands=space encoding=cp1252" in words(made.err)
    policy = (tmp_path / "desk" / "policy.toml").read_text(encoding="utf-8")
    assert f"\n{toml(csv)}\n" in policy
    looked = cli("privatize", "in.csv", "--check", "--B", "0.25", "--epsilon", "4")
    assert "1 file of CSV, read with separator=; decimal=, thousands=space encoding=cp1252" in words(
        looked.err
    )
    shown = cli("columns", "in.csv", "--json").json
    assert {one["name"]: one["type"] for one in shown["columns"]}["calls"] == "number"


def test_it_can_be_said_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.csv").write_text("name;x\na;1,234\nb;2,345\n", encoding="utf-8")
    refused = cli("columns", "in.csv")
    assert refused.code == 2
    assert "may part thousands or begin a fraction" in words(refused.err)
    for csv, lowest in (("separator=; decimal=,", 1.234), ("separator=; thousands=,", 1234.0)):
        assert cli("columns", "in.csv", "--json", "--csv", csv).json["columns"][1]["lowest"] == lowest
    wrong = cli("columns", "in.csv", "--csv", "separator=:")
    assert wrong.code == 2
    assert "separator = ':' is not one of" in wrong.err


def test_the_command_line_stands_in_place_of_the_policy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    csv, _ = DIALECTS["French, grouped"]
    write_dialect(tmp_path / "in.csv", mixed(), csv)
    write_dialect(tmp_path / "plain.csv", mixed(), Dialect())
    outputs = []
    for name, more in (("plain", ()), ("in", ("--csv", csv.text))):
        place = tmp_path / f"desk of {name}"
        place.mkdir()
        make_desk(place)
        monkeypatch.chdir(place)
        done = cli(
            "privatize", tmp_path / f"{name}.csv", "out.parquet", "--B", "0.25", "--epsilon", "4", "--yes",
            "--new-people", "the same ones", *more,
        )  # fmt: skip
        assert done.code == 0, done.err
        outputs.append((place / "out.parquet").read_bytes())
    assert outputs[0] == outputs[1]


# The same dialect on the way out


@pytest.mark.parametrize("kind", ["rows", "decisions"])
@pytest.mark.parametrize("name", ["French Excel", "German", "UTF-16, tabs", "commas for both"])
def test_a_release_in_the_same_dialect_has_the_same_values_and_holds(
    tmp_path: Path, name: str, kind: str
) -> None:
    csv, _ = DIALECTS[name]
    source = write_dialect(tmp_path / "in.csv", mixed(), csv)
    request = asks(decision()) if kind == "decisions" else None
    plain, same = (
        released(
            tmp_path / how, source, output="out.csv", request=request, csv=f'{toml(csv)}\noutput = "{how}"',
            **PUBLIC,
        )
        for how in ("plain", "same")
    )  # fmt: skip
    assert plain.path is not None
    assert same.path is not None
    content = same.path.read_bytes().decode(csv.encoding)
    assert content.startswith(f'"name"{csv.separator}"')
    written = replace(csv, thousands="")
    assert certificate_of(same.path).output.csv == written
    assert certificate_of(plain.path).output.csv is None
    assert '"csv": ' not in plain.path.with_name("out.csv.certificate.json").read_text(encoding="utf-8")
    for done in (plain.path, same.path):
        assert holds(done)
        assert cli("verify", done).code == 0
    kinds = dict.fromkeys(plain.certificate.released, pa.bool_() if request else pa.float64())
    tables = [
        pa.Table.from_batches(open_source(p, csv=d).batches([*plain.certificate.columns], kinds, 1000))
        for p, d in ((plain.path, Dialect()), (same.path, written))
    ]
    assert tables[0].equals(tables[1])


@pytest.mark.parametrize("name", ["French Excel", "UTF-16, tabs", "commas for both"])
def test_whoever_reads_a_certified_release_reads_its_dialect(tmp_path: Path, name: str) -> None:
    """Scores and decisions for a list, and rows for an attack: the same numbers as from the plain file."""
    csv, _ = DIALECTS[name]
    source = write_dialect(tmp_path / "in.csv", table_of(200), csv)
    scores = request_of(release="scores", weights={"calls": 1.0, "texts": 2.0})
    asked = {"scores": scores, "decisions": asks(decision()), "rows": request_of()}
    files = {
        (kind, how): released(
            tmp_path / f"{kind} {how}", source, output="out.csv", request=request,
            csv=f'{toml(csv)}\noutput = "{how}"',
        ).path
        for kind, request in asked.items() for how in ("plain", "same")
    }  # fmt: skip

    def of(kind: str, how: str) -> Path:
        path = files[kind, how]
        assert path is not None
        return path

    one, other = (read_scores(of("scores", how)) for how in ("plain", "same"))
    assert one.ids.equals(other.ids)
    assert one.values.tobytes() == other.values.tobytes()
    yes, also = (read_decisions(of("decisions", how)).yes for how in ("plain", "same"))
    assert yes.tobytes() == also.tobytes()
    attacked = [
        cli("attack", source, of("rows", how), "--id", "name", "--attacks", "linkage", "--json")
        for how in ("plain", "same")
    ]
    assert attacked[1].code == 0, attacked[1].err
    assert attacked[0].code == 0, attacked[0].err


def test_a_certificate_with_another_dialect_is_no_certificate(tmp_path: Path) -> None:
    csv, _ = DIALECTS["French Excel"]
    source = write_dialect(tmp_path / "in.csv", mixed(), csv)
    done = released(
        tmp_path / "place", source, output="out.csv", csv=f'{toml(csv)}\noutput = "same"'
    )  # fmt: skip
    assert done.path is not None
    certificate = done.path.with_name("out.csv.certificate.json")
    text = certificate.read_text(encoding="utf-8")
    certificate.write_text(text.replace('"thousands": ""', '"thousands": "\'"'), encoding="utf-8")
    assert not holds(done.path)


def test_text_that_may_have_no_place_in_the_encoding_is_refused_before_anything_is_charged(
    tmp_path: Path,
) -> None:
    pq.write_table(mixed(), tmp_path / "in.parquet")
    csv = f'{toml(DIALECTS["French Excel"][0])}\noutput = "same"'
    with pytest.raises(ValueError, match="may have no place in cp1252"):
        released(tmp_path / "place", tmp_path / "in.parquet", output="out.csv", csv=csv)
    assert not (tmp_path / "place" / "out.csv").exists()
    spelled = tmp_path / "in.csv"
    write_dialect(spelled, mixed(), DIALECTS["French Excel"][0])
    with pytest.raises(ValueError, match=r"letters that \[id.spelling\] makes may have no place"):
        released(tmp_path / "upper", spelled, output="out.csv", csv=csv, spelling={"case": "upper"})


def test_spreadsheets_know_one_quote_only(tmp_path: Path) -> None:
    """What another one quotes, they read as text, separators and all."""
    csv, _ = DIALECTS["bars in single quotes"]
    source = write_dialect(tmp_path / "in.csv", table_of(), csv)
    with pytest.raises(ValueError, match="spreadsheets know no other than '\"'"):
        released(tmp_path / "place", source, output="out.csv", csv=f'{toml(csv)}\noutput = "same"')
    assert not (tmp_path / "place" / "out.csv").exists()


# Several files


def parts(folder: Path, suffix: str = ".parquet") -> list[Path]:
    folder.mkdir()
    table = table_of(90)
    files = [folder / f"part-{i}{suffix}" for i in range(3)]
    for i, file in enumerate(files):
        own = table.slice(30 * i, 30)
        if suffix == ".csv":
            write_csv(file, own)
        else:
            pq.write_table(own, file)
    (folder / "part-0.txt").write_text("no table", encoding="utf-8")
    return files


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_a_pattern_a_list_and_a_folder_are_one_table(tmp_path: Path, suffix: str) -> None:
    files = parts(tmp_path / "parts", suffix)
    folder = released(tmp_path / "folder", tmp_path / "parts").path
    assert folder is not None
    ways: dict[str, Any] = {
        "pattern": tmp_path / "parts" / "part-*", "list": [str(file) for file in files],
        "both": [files[0], str(tmp_path / "parts" / "part-[12].*")],
        "deep": tmp_path / "parts" / "**" / f"*{suffix}",
    }  # fmt: skip
    for way, table in ways.items():
        done = released(tmp_path / way, table).path
        assert done is not None
        assert done.read_bytes() == folder.read_bytes(), way


def test_several_names_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [str(file) for file in parts(tmp_path / "parts")]
    make_desk(tmp_path)
    monkeypatch.chdir(tmp_path)
    asked = ("--B", "0.25", "--epsilon", "4")
    seen = [
        cli("privatize", *names, "--check", "--json", *asked).json
        for names in (files, [*files, "out.parquet"], ["parts"], ["parts/part-*.parquet", "out.parquet"])
    ]
    assert [one["look"]["people"] for one in seen] == [90] * 4
    forgotten = cli("privatize", *files, "--yes", *asked)
    assert forgotten.code == 2
    assert "exists, and as the last name it is where the release would go" in words(forgotten.err)
    done = cli("privatize", *files, "out.parquet", "--yes", *asked)
    assert done.code == 0, done.err
    # An output that is a release is no table to a look, either.
    again = cli("privatize", *files, "out.parquet", "--check", "--json", *asked)
    assert again.json["look"]["people"] == 90
    assert cli("columns", *files, "--json").json["rows"] == 90


def test_what_cannot_be_one_table_is_refused_with_its_names(tmp_path: Path) -> None:
    files = parts(tmp_path / "parts")
    write_csv(tmp_path / "parts" / "other.csv", table_of(3))
    pq.write_table(table_of(3).rename_columns(["id", "a", "b", "c"]), tmp_path / "parts" / "odd.parquet")
    (tmp_path / "link.parquet").symlink_to(files[0])
    (tmp_path / "empty").mkdir()
    cases: dict[str, Any] = {
        "as a pattern it fits nothing": tmp_path / "parts" / "none-*.parquet",
        "fits 1 name, and none is a table": tmp_path / "parts" / "*.txt",
        "mixes Parquet and CSV files": tmp_path / "parts",
        "other columns than part-0.parquet": [files[0], tmp_path / "parts" / "odd.parquet"],
        "is named twice": [files[0], files[1], files[0]],
        "is the same file as": [files[0], tmp_path / "link.parquet"],
        "holds no part files": tmp_path / "empty",
        "no input was named": [],
        "does not exist: check the name": [files[0], tmp_path / "absent.parquet"],
    }
    for message, table in cases.items():
        with pytest.raises(TableError, match=message):
            open_source(table)
    with pytest.raises(TableError, match="no folder beside what is in it"):
        find_files([tmp_path / "parts", files[0]])


def test_a_name_that_exists_is_no_pattern(tmp_path: Path) -> None:
    pq.write_table(table_of(3), tmp_path / "a[1].parquet")
    pq.write_table(table_of(5), tmp_path / "a1.parquet")
    assert open_source(tmp_path / "a[1].parquet").count() == 3


def test_an_output_must_not_be_among_the_inputs(tmp_path: Path) -> None:
    files = parts(tmp_path / "parts")
    with pytest.raises(ValueError, match="overlap: choose an output elsewhere"):
        released(tmp_path / "place", [files[0], files[1]], output=str(files[1]))


# Folders that name columns


def with_regions(rows: int = 90) -> pa.Table:
    """Sorted by region and month, so that rows come in the same order from folders and from files."""
    table = table_of(rows)
    regions = ["a/b c", "north", None]
    return pa.table(
        {name: table[name] for name in table.column_names}
        | {
            "region": [regions[3 * i // rows] for i in range(rows)],
            "month": pa.array([1 + (9 * i // rows) % 3 for i in range(rows)], pa.int64()),
        }
    )


def plain_parts(folder: Path, table: pa.Table, *, csv: bool) -> Path:
    """The same rows in as many files, with all columns inside."""
    folder.mkdir()
    keys = [(row["region"], row["month"]) for row in table.select(["region", "month"]).to_pylist()]
    for number, key in enumerate(dict.fromkeys(keys)):
        own = table.filter(pa.array([one == key for one in keys]))
        if csv:
            write_dialect(folder / f"{number:03d}.csv", own, Dialect())
        else:
            pq.write_table(own, folder / f"{number:03d}.parquet")
    return folder


@pytest.mark.parametrize("csv", [False, True])
def test_columns_of_folders_are_columns(tmp_path: Path, csv: bool) -> None:
    """One is public, one a feature; values in folders' names are decoded, and missing ones are missing."""
    table = with_regions()
    order = ["name", *FEATURES, "region", "month"]
    hive = write_hive(tmp_path / "hive", table, ["region", "month"], csv=csv)
    plain = plain_parts(tmp_path / "plain", table.select(order), csv=csv)
    source = open_source(hive)
    assert source.columns == tuple(order)
    assert source.described.endswith("folders give region, month")
    assert source.types(["region", "month"]) == (
        {"region": pa.string(), "month": pa.string()} if csv else {"region": pa.string(), "month": pa.int64()}
    )
    # Both in the order of the folders' names, as files are read.
    paths = [file.relative_to(hive) for file in source.files]
    first = open_source(plain)
    names = [
        batch.column("name").to_pylist()
        for one in first.one_by_one()
        for batch in one.batches(["name"], {}, 99)
    ]
    by_people = {tuple(name): file for name, file in zip(names, first.files, strict=True)}
    for number, one in enumerate(source.one_by_one()):
        (batch,) = one.batches(["name"], {}, 99)
        by_people[tuple(batch.column("name").to_pylist())].rename(plain / f"x{number:03d}{paths[0].suffix}")
    given: dict[str, Any] = {"features": (*FEATURES, "month"), "public": {"region": "a list"}}
    outputs = [released(tmp_path / f"of {one.name}", one, **given).path for one in (hive, plain)]
    assert outputs[0] is not None
    assert outputs[1] is not None
    assert outputs[0].read_bytes() == outputs[1].read_bytes()
    assert holds(outputs[0])
    found = {
        row["name"]: row["region"] for row in read_back(outputs[0]).select(["name", "region"]).to_pylist()
    }
    empty = "" if csv else None
    assert found == {row["name"]: row["region"] or empty for row in table.to_pylist()}


def test_a_folder_can_name_the_id(tmp_path: Path) -> None:
    table = table_of(8)
    hive = write_hive(tmp_path / "hive", table, ["name"])
    assert open_source(hive).types(["name"]) == {"name": pa.string()}  # with leading zeros
    plain = tmp_path / "plain"
    plain.mkdir()
    for number, row in enumerate(sorted(table.to_pylist(), key=lambda row: row["name"])):
        pq.write_table(pa.Table.from_pylist([row]), plain / f"{number}.parquet")
    one, other = (released(tmp_path / f"of {p.name}", p).path for p in (hive, plain))
    assert one is not None
    assert other is not None
    assert one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize("csv", [False, True])
def test_a_word_in_a_folder_s_name_is_a_gap_of_its_people_or_refused(tmp_path: Path, csv: bool) -> None:
    def place(name: str, value: Any) -> Path:
        table = table_of(60)
        level = pa.array(["1" if i < 30 else value for i in range(60)], pa.string())
        return write_hive(tmp_path / name, table.append_column("level", level), ["level"], csv=csv)

    features = (*FEATURES, "level")
    request = asks(decision(weights={"calls": 1.0, "level": 2.0}))
    given: dict[str, Any] = {"features": features, "gaps": {"all": 0.0}}
    word, gap = (
        released(tmp_path / f"of {p.name}", p, request=request, **given).path
        for p in (place("word", "unknown"), place("gap", None))
    )
    assert word is not None
    assert gap is not None
    # The order of files is that of folders' names, so people are compared and not bytes.
    assert sorted(read_back(word)["name"].to_pylist()) == sorted(read_back(gap)["name"].to_pylist())
    with pytest.raises(Refused, match=r"level  (30 cells that are no numbers|text)"):
        released(tmp_path / "rows", tmp_path / "word", **given)


def test_folders_that_cannot_be_columns_are_refused(tmp_path: Path) -> None:
    def two(first: str, second: str) -> Path:
        place = tmp_path / str(len(list(tmp_path.iterdir())))
        for folder in (first, second):
            (place / folder).mkdir(parents=True)
            pq.write_table(table_of(3), place / folder / "a.parquet")
        return place

    cases = {
        "has a column 'calls' in its files, and folders named calls=": two("calls=1", "calls=2"),
        "all parts must have the same columns": two("region=1", "month=2"),
        "two of its folders name one column": two("a=1/a=2", "a=2/a=2"),
        "is no text in UTF-8": two("a=%FF", "a=1"),
    }
    for message, place in cases.items():
        with pytest.raises(TableError, match=message):
            open_source(place)


def test_which_folders_count_does_not_depend_on_how_a_table_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above what is named nothing counts: a release beside month=… is what it was."""
    inside = tmp_path / "year=2026"
    write_hive(inside, with_regions(), ["region", "month"])
    monkeypatch.chdir(inside)
    everything = open_source(Path()).folders
    files = [str(file) for file in open_source(Path()).files]
    assert set(everything) == {"region", "month"}
    for named in ("*", "region=*/month=*", "*/*/*.parquet", files, inside, str(inside / "**" / "*.parquet")):
        assert open_source(named).folders == everything, named
    assert open_source(files[0]).folders == {}
    assert set(open_source([inside]).folders) == {"region", "month"}
    assert set(open_source(tmp_path).folders) == {"year", "region", "month"}


@pytest.mark.parametrize("output", ["private.parquet", "private"])
def test_a_release_among_parts_is_refused_by_name(tmp_path: Path, output: str) -> None:
    """Its rows are of a release, and with pseudonyms nobody would see them twice."""
    files = parts(tmp_path / "parts")
    make_desk(tmp_path, pseudonyms=True)
    place = tmp_path / "parts" / output

    def release(table: Any) -> None:
        privatize(table, tmp_path / "out.csv", desk=tmp_path / "desk", request=request_of())

    privatize(str(tmp_path / "parts" / "part-*.parquet"), place, desk=tmp_path / "desk", request=request_of())
    deep = tmp_path / "parts" / "**" / "*"
    for table in (tmp_path / "parts", deep, [*files, place], tmp_path / "parts" / "priv*"):
        with pytest.raises(
            TableError, match=rf"input .*{output} is a release \(its certificate lies beside it"
        ):
            release(table)
