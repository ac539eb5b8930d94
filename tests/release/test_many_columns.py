"""A thousand columns: one policy, no list typed by hand, and messages that stay short."""

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support.release import (
    certificate_of,
    cli,
    holds,
    look,
    make_desk,
    new_policy,
    policy_text,
    release,
    table_of,
    words,
    write_parquet,
)
from targetdp.release import Desk, Policy, Refused, read_policy
from targetdp.release import make_desk as propose_desk
from targetdp.release._proposal import in_patterns


def wide(columns: int = 1000, rows: int = 70) -> pa.Table:
    """Cider's shape: numbers with gaps from outer joins, and a region."""
    rng = np.random.default_rng(2)
    made: dict[str, Any] = {"name": [f"0{i:09d}" for i in range(rows)]}
    for place in range(columns):
        values = rng.gamma(2.0, 50.0, rows)
        values[place % rows] = np.nan
        made[f"{('call', 'text')[place % 2]}_{place}"] = values
    return pa.table(made | {"region": ["a", "b"] * (rows // 2)})


@pytest.mark.parametrize("count", [60, 1000])
def test_init_proposes_patterns_and_says_little(tmp_path: Path, count: int) -> None:
    table = write_parquet(tmp_path / "in.parquet", wide(count))
    ran = cli("init", table, "--desk", tmp_path / "desk")
    assert ran.code == 0
    assert len(ran.err) < 2_000
    assert f"{count:,} columns gaps: call_0, text_1, call_2, … [gaps] all = 0" in words(ran.err)
    text = (tmp_path / "desk" / "policy.toml").read_text(encoding="utf-8")
    assert len(text) < 5_000
    assert tomllib.loads(text)["columns"]["release"] == ["call*", "text*"]
    assert "# [kinds.region]" in text
    resolved = read_policy(tmp_path / "desk" / "policy.toml").of_table(wide(count).column_names)
    assert len(resolved.columns.release) == count


def test_a_policy_of_patterns_and_one_line_for_gaps_releases_all_of_them(tmp_path: Path) -> None:
    write_parquet(tmp_path / "in.parquet", wide(200))
    scales = ['source = "public"', 'reason = "a census"', "[features]"]
    scales += [f"{n} = {{ center = 100.0, scale = 800.0 }}" for n in wide(200, 2).column_names[1:-1]]
    (tmp_path / "scales.toml").write_text("\n".join(scales), encoding="utf-8")
    make_desk(tmp_path, ("call*", "text*"), gaps={"all": 0})
    release(tmp_path)
    c = certificate_of(tmp_path / "out.parquet")
    assert len(c.features) == 200
    assert "constants that were declared, not learned: 0 in every column." in " ".join(c.conditions)
    assert holds(tmp_path / "out.parquet")


def test_gaps_in_a_thousand_columns_are_one_short_line(tmp_path: Path) -> None:
    write_parquet(tmp_path / "in.parquet", wide())
    make_desk(tmp_path, ("call*", "text*"), scales="private")
    with pytest.raises(Refused) as refused:
        release(tmp_path)
    assert len(str(refused.value)) < 1_500
    assert "1,000 columns  gaps: call_0, text_1, call_2, …  [gaps] all = 0" in str(refused.value)


def test_uncommented_templates_are_a_policy(tmp_path: Path) -> None:
    """What init proposes for text works once its owner has declared levels and given it to release."""
    write_parquet(tmp_path / "in.parquet", table_of(60, region=["a", "b"] * 30))
    propose_desk(tmp_path / "in.parquet", tmp_path / "desk")
    path = tmp_path / "desk" / "policy.toml"
    lines = path.read_text(encoding="utf-8").splitlines()
    at = lines.index(next(line for line in lines if line.startswith("# [kinds.region]")))
    for place in range(at, at + 5):
        lines[place] = lines[place].removeprefix("# ")
    text = (
        "\n".join(lines)
        .replace('["…", "…"]', '["a", "b"]')
        .replace('  "topups",', '  "topups",\n  "region",')
    )
    path.write_text(text, encoding="utf-8")
    assert Desk.open(tmp_path / "desk").policy.encoding.expanded(["region"]) == (
        "region=a", "region=b", "region=other",
    )  # fmt: skip


def test_levels_are_printed_for_the_holder_alone(tmp_path: Path) -> None:
    table = table_of(60, region=["a", "b", "b"] * 20, calls_made=range(60))
    ran = cli("columns", write_parquet(tmp_path / "in.parquet", table), "--levels", "region")
    assert (ran.code, ran.out.strip()) == (0, 'levels = ["b", "a"]')
    assert "For the data holder's eyes only" in " ".join(ran.err.split())
    missing = cli("columns", tmp_path / "in.parquet", "--levels", "regin")
    assert missing.code != 0
    assert "did you mean 'region'?" in " ".join(missing.err.split())


def test_the_header_alone_decides_what_a_pattern_stands_for(tmp_path: Path) -> None:
    policy = Policy.model_validate(
        tomllib.loads(
            policy_text(
                ("a_*", "b"), id="a_id", decide=("a_text",), public={"a_public": "why"}, scales="private"
            )
        )
    )
    resolved = policy.of_table(["b", "a_id", "a_text", "a_2", "a_public", "a_1", "other"])
    assert resolved.columns.release == ("b", "a_2", "a_1")
    assert policy.of_table(["a_id", "c"]).columns.release == ("a_*", "b")  # told as missing
    plain = Policy.model_validate(tomllib.loads(policy_text(("a", "b"), scales="private")))
    assert plain.of_table(["a"]) is plain


def test_a_pattern_that_stands_for_nothing_is_told(tmp_path: Path) -> None:
    write_parquet(tmp_path / "in.parquet", table_of(60))
    make_desk(tmp_path, ("calls", "night_*"), scales="private")
    assert "has no column 'night_*'" in " ".join(map(str, look(tmp_path).problems))


def test_a_pattern_that_is_added_is_put_on_record(tmp_path: Path) -> None:
    write_parquet(tmp_path / "in.parquet", table_of(60))
    make_desk(tmp_path, ("calls",))
    release(tmp_path)
    new_policy(tmp_path / "desk", ("calls", "t*"))
    assert "t* may be released" in " ".join(map(str, look(tmp_path).problems))


@pytest.mark.parametrize(
    ("names", "others", "expected"),
    [
        ([f"call_{i}" for i in range(60)], ["id"], ("call*",)),
        ([f"call_{i}" for i in range(60)], ["id", "call_region"], tuple(f"call_{i}" for i in range(60))),
        ([f"{i}" for i in range(60)], ["id"], tuple(map(str, range(60)))),
        (["a", "b"], ["id"], ("a", "b")),
    ],
)
def test_patterns_stand_for_nothing_else(
    names: list[str], others: list[str], expected: tuple[str, ...]
) -> None:
    assert in_patterns(names, [*others, *names]) == expected


def test_scales_are_learned_for_a_pattern_of_columns(tmp_path: Path) -> None:
    table = write_parquet(tmp_path / "other.parquet", wide(6).drop_columns(["region"]))
    ran = cli(
        "scales", table, "--features", "*", "--source", "public", "--out", tmp_path / "scales.toml",
        "--reason", "people of another country", "--impute", "0",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    found = tomllib.loads((tmp_path / "scales.toml").read_text(encoding="utf-8"))["features"]
    assert list(found) == wide(6).column_names[1:-1]
