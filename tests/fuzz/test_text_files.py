"""Everything that reads a text file meets hostile text: a value comes back or a ValueError, and nothing else.

The counts are hypothesis's (TARGETDP_FUZZ asks for more). Texts are made of what a reader knows (its own
field names), of what it does not, and of bytes that are no text at all.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.fuzz_readers import (
    JSON_READERS,
    MAY_BE_MISSING,
    READERS,
    TOML_READERS,
    file_of,
    only_value_errors,
)

TIMES = int(os.environ.get("TARGETDP_FUZZ", "25"))
QUIET = settings(
    max_examples=TIMES, deadline=None, database=None, derandomize=TIMES == 25,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)  # fmt: skip

KNOWN = (
    "name", "id", "column", "pseudonyms", "spelling", "spaces", "case", "leading_zeros", "country_code",
    "digits", "columns", "public", "gaps", "all", "source", "reason", "share", "limit", "plan",
    "requests", "accept", "keys", "tell", "release", "features", "B", "epsilon", "delta", "mechanism",
    "scores", "weights", "learned_from", "leave_out", "tuned_on", "program", "asked_by", "why", "page",
    "signature", "key", "kind", "table", "target", "quota", "groups", "grid", "loans", "amount", "revenue",
    "interest", "simulations", "seed", "model", "center", "scale", "scales", "calls", "texts", "topups",
    "format", "guarantee", "conditions", "distances", "classic", "rows", "output", "desk", "ledger", "cells",
    "csv", "separator", "decimal", "thousands", "encoding", "quote", "same", "tab", "cp1252",
    "made_of", "number", "hash", "before", "after", "approvers", "agreed", "to", "at_most", "agreement",
    "kinds", "levels", "other", "distance", "gap_distance", "yes", "no", "days", "days_from",
)  # fmt: skip
NASTY = (
    "", " ", "\x00", "../../etc/passwd", "a\nb", "=1+1", "</script><script>alert(1)</script>", "ñ" * 300,
    "💥", "\u202eevil", "-0", "NaN", "1e999", "'; DROP TABLE releases; --", "{{7*7}}", "%s%n", "\ud7ff",
)  # fmt: skip


def values() -> st.SearchStrategy[Any]:
    """Plain data of every kind, with numbers that are too large, too small, or none."""
    numbers = st.sampled_from(
        [
            0,
            -1,
            1,
            2**63,
            -(2**63) - 1,
            10**400,
            0.0,
            -0.0,
            5e-324,
            1e308,
            0.25,
            4.0,
            float("inf"),
            float("nan"),
        ]
    )
    plain = st.one_of(
        numbers, st.booleans(), st.sampled_from(NASTY), st.text(max_size=8), st.sampled_from(KNOWN)
    )
    return st.recursive(
        plain,
        lambda inner: st.one_of(
            st.lists(inner, max_size=4), st.dictionaries(st.sampled_from(KNOWN), inner, max_size=4)
        ),
        max_leaves=12,
    )


def toml(value: Any) -> str:
    """Plain data as TOML, inline."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {toml(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value, ensure_ascii=True)


documents = st.dictionaries(st.sampled_from(KNOWN), values(), max_size=12)


@pytest.mark.parametrize("name", TOML_READERS)
@QUIET
@given(document=documents)
def test_documents_of_known_names_and_odd_values(name: str, tmp_path: Path, document: dict[str, Any]) -> None:
    path = tmp_path / "file.toml"
    path.write_text("\n".join(f"{key} = {toml(value)}" for key, value in document.items()), encoding="utf-8")
    only_value_errors(TOML_READERS[name], path)


@pytest.mark.parametrize("name", JSON_READERS)
@QUIET
@given(document=documents)
def test_json_of_known_names_and_odd_values(name: str, tmp_path: Path, document: dict[str, Any]) -> None:
    path = tmp_path / file_of(name)
    path.write_text(json.dumps(document), encoding="utf-8")
    only_value_errors(READERS[name], path)


@pytest.mark.parametrize("name", READERS)
@QUIET
@given(
    data=st.one_of(
        st.binary(max_size=300), st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace"))
    )
)
def test_any_bytes(name: str, tmp_path: Path, data: bytes) -> None:
    path = tmp_path / file_of(name)
    path.write_bytes(data)
    only_value_errors(READERS[name], path)


BOMBS = {
    "arrays in arrays": "features = " + "[" * 50_000 + "]" * 50_000,
    "tables in tables": "id = " + "{a=" * 20_000 + "1" + "}" * 20_000,
    "a long dotted key": ".".join("a" for _ in range(20_000)) + " = 1",
    "a number of many digits": "epsilon = " + "9" * 100_000,
    "many keys": "\n".join(f"k{i} = 1" for i in range(50_000)),
    "a long text": 'id = "' + "x" * 5_000_000 + '"',
    "many tables": "\n".join(f"[t{i}]" for i in range(20_000)),
}


@pytest.mark.parametrize("bomb", BOMBS)
@pytest.mark.parametrize("name", TOML_READERS)
def test_bombs_are_refused_in_a_line(name: str, bomb: str, tmp_path: Path) -> None:
    path = tmp_path / "file.toml"
    path.write_text(BOMBS[bomb], encoding="utf-8")
    with pytest.raises(ValueError) as found:  # noqa: PT011 (only_value_errors looks at it)
        TOML_READERS[name](path)
    assert len(str(found.value)) < 5_000


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 100_000, "1" * 1_000_000, '"' + "x" * 3_000_000 + '"']
)
@pytest.mark.parametrize("name", JSON_READERS)
def test_json_bombs_are_refused_in_a_line(name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / file_of(name)
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError) as found:  # noqa: PT011
        READERS[name](path)
    assert len(str(found.value)) < 5_000


@pytest.mark.parametrize("name", [name for name in READERS if name not in MAY_BE_MISSING])
def test_what_is_no_file_is_refused(name: str, tmp_path: Path) -> None:
    for what in ("missing", "folder"):
        path = tmp_path / what / file_of(name)
        if what == "folder":
            path.mkdir(parents=True)
        with pytest.raises((ValueError, FileNotFoundError, IsADirectoryError), match=r".") as found:
            READERS[name](path)
        assert not isinstance(found.value, IsADirectoryError) or str(path) in str(found.value)
