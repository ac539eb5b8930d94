"""Scales files: round trips of any name, what is missing, what is confidential."""

import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from targetdp.normalization import declared_scales, read_scales, scales_text
from targetdp.normalization._scales_file import Origin

ODD = (
    "plain", 'with "quotes"', "it's", "a.b.c", "naïve — 名前 🙂", "tab\tand\nbreak", "back\\slash",
    "delete\x7f", "nul\x00", "escape\x1b", "next\x85line", "", " spaced ", "[features]", "#comment", "a = 1",
)  # fmt: skip


def saved(path: Path, features: tuple[str, ...], origin: Origin = "public") -> Path:
    center = np.arange(len(features)) / 3 - 1e-17
    scales = declared_scales(center, np.exp(np.arange(len(features)) * 7.0 - 30))
    path.write_bytes(scales_text(scales, features, origin, "a census").encode())
    return path


def test_odd_names_survive_the_round_trip(tmp_path: Path) -> None:
    place = saved(tmp_path / "scales.toml", ODD)
    read = read_scales(place, ODD)
    assert (read.center == np.arange(len(ODD)) / 3 - 1e-17).all()
    assert (read.scale == np.exp(np.arange(len(ODD)) * 7.0 - 30)).all()


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=5, unique=True))
def test_any_names_survive_as_toml(names: list[str]) -> None:
    scales = declared_scales(np.zeros(len(names)), np.ones(len(names)))
    read = tomllib.loads(scales_text(scales, names, "public", "a census"))
    assert list(read["features"]) == names
    assert read["source"] == "public"


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(min_value=5e-324, max_value=1e308))
def test_numbers_survive_to_the_last_bit(center: float, scale: float) -> None:
    text = scales_text(declared_scales([center], [scale]), ["x"], "public", "a census")
    assert tomllib.loads(text)["features"]["x"] == {"center": center, "scale": scale}


def test_scales_come_in_the_order_that_is_asked_for(tmp_path: Path) -> None:
    place = saved(tmp_path / "scales.toml", ("a", "b", "c"))
    assert list(read_scales(place, ("c", "a")).center) == [2 / 3 - 1e-17, -1e-17]


def test_public_and_confidential_scales_are_told_apart(tmp_path: Path) -> None:
    public = read_scales(saved(tmp_path / "p.toml", ("a",)), ("a",))
    secret = read_scales(saved(tmp_path / "c.toml", ("a",), "confidential"), ("a",))
    assert (public.source, public.may_be_published) == ("declared", True)
    assert (secret.source, secret.may_be_published) == ("confidential", False)
    assert "CONFIDENTIAL" in (tmp_path / "c.toml").read_text()
    assert "CONFIDENTIAL" not in (tmp_path / "p.toml").read_text()


def test_features_that_are_not_there_are_all_named(tmp_path: Path) -> None:
    place = saved(tmp_path / "scales.toml", ("a",))
    with pytest.raises(ValueError, match="says nothing of b, c: add them, or drop these features"):
        read_scales(place, ("a", "b", "c"))


PUBLIC = 'source = "public"\nreason = "a census"\n[features]\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('source = "public"\n[features]\na = { center = 0, scale = 1 }\n', "needs a reason"),
        ('source = "public"\nreason = "a census"\n', "features"),
        ('source = "hearsay"\n[features]\na = { center = 0, scale = 1 }\n', "source = 'hearsay'"),
        ("[features]\na = { center = 0, scale = 1 }\n", "source must be given"),
        (
            PUBLIC + "a = { center = 0, scale = 0 }\n",
            "features.a.scale = 0",
        ),
        (
            PUBLIC + "a = { center = nan, scale = 1 }\n",
            "features.a.center = nan",
        ),
        (
            PUBLIC + "a = { center = 0, scale = inf }\n",
            "features.a.scale = inf",
        ),
        (
            PUBLIC + "a = { center = 0, scale = 1, x = 2 }\n",
            "features.a.x is no field",
        ),
        ("source = public\n", "cannot be read"),
    ],
)
def test_a_bad_scales_file_is_named_with_what_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    place = tmp_path / "scales.toml"
    place.write_text(text)
    with pytest.raises(ValueError, match=r".") as refused:
        read_scales(place, ("a",))
    assert f"scales file {place}" in str(refused.value)
    assert message in str(refused.value)
