"""A release against its request: what was asked for, by whom, no more and no less."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.release import certificate_of, cli, place_with, release, request_of
from targetdp.release import Certificate, Request, SigningKey, certificate_path, verify
from targetdp.release._certificate._asked import request_checks

SCORES: dict[str, Any] = {
    "release": "scores", "weights": {"calls": 1.0, "texts": 2.0, "topups": -1.0}, "program": "aid",
    "asked_by": "the ministry", "why": "who gets it", "tuned_on": "public",
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = place_with(tmp_path_factory.mktemp("asked"))
    official = SigningKey.open(made / "official.pem")
    signed = request_of(**SCORES).signed(official)
    (made / "request.toml").write_text(signed.text())
    (made / "rows.toml").write_text(request_of(features=("calls", "texts"), delta=1e-6).text())
    release(made, "scores.parquet", request=signed)
    release(made, "rows.parquet", features=("calls", "texts"), delta=1e-6)
    return made


def test_what_was_released_is_what_was_asked_for(folder: Path) -> None:
    for name, file in (("scores.parquet", "request.toml"), ("rows.parquet", "rows.toml")):
        ran = cli("verify", folder / name, "--request", folder / file, "--json")
        assert ran.code == 0, ran.out + ran.err
        asked = [one for one in ran.json["checks"] if one["what"] in {"request", "what was asked for"}]
        assert [one["holds"] for one in asked] == [True, True]
    # Without a request nothing is said of one.
    found = verify(folder / "rows.parquet")
    assert found.holds
    assert not any("asked" in check.what for check in found.checks)


OTHERS: dict[str, dict[str, Any]] = {
    "ε": {"epsilon": 3.9},
    "B": {"B": 0.3},
    "δ": {"delta": 1e-9},
    "noise": {"mechanism": "gaussian"},
    "weights": {"weights": {"calls": 1.0, "texts": 2.0, "topups": -1.1}},
    "columns": {"weights": {"calls": 1.0, "texts": 2.0}},
    "rows": {"release": "rows", "weights": None},
    "name": {"scores": ("other",)},
    "people": {"leave_out": ("abcdef",)},
    "who": {"asked_by": "somebody else"},
    "why": {"why": "because"},
    "tuning": {"tuned_on": "synthetic"},
}


@pytest.mark.parametrize("what", OTHERS)
def test_any_other_request_is_found(folder: Path, what: str) -> None:
    other = request_of(**(SCORES | OTHERS[what]))
    (folder / "other.toml").write_text(other.text())
    ran = cli("verify", folder / "scores.parquet", "--request", folder / "other.toml", "--json")
    assert ran.code == 1
    failed = {one["what"] for one in ran.json["checks"] if one["holds"] is False}
    assert failed >= {"request", "who asked"}
    assert ("what was asked for" in failed) == (what != "δ")  # less than any δ was released


def test_another_signer_or_none_is_found(folder: Path) -> None:
    other = request_of(**SCORES).signed(SigningKey.open(folder / "other.pem"))
    for asked in (other, request_of(**SCORES)):
        checks = {c.what: c.holds for c in request_checks(certificate_of(folder / "scores.parquet"), asked)}
        assert checks == {"request": True, "who asked": False, "what was asked for": True}


def test_a_request_that_was_edited_after_it_was_signed_is_found(folder: Path) -> None:
    signed = request_of(**SCORES).signed(SigningKey.open(folder / "official.pem"))
    edited = signed.model_copy(update={"epsilon": 3.0})
    checks = {c.what: c for c in request_checks(certificate_of(folder / "scores.parquet"), edited)}
    assert "does not fit" in checks["who asked"].detail
    assert checks["what was asked for"].holds is False


TOO_MUCH: dict[str, Callable[[Request, Certificate], Certificate]] = {
    "a larger ε": lambda _, c: c.model_copy(
        update={"guarantee": c.guarantee.model_copy(update={"epsilon": 8.0})}
    ),
    "other people left out": lambda _, c: c.model_copy(update={"left_out": ("ab" * 16,)}),
    "more columns": lambda _, c: c.model_copy(update={"features": (*c.features, "more")}),
}


@pytest.mark.parametrize("what", TOO_MUCH)
def test_a_certificate_that_cites_a_request_and_does_more_is_found(folder: Path, what: str) -> None:
    """The holder signs it, and cites the right request."""
    asked = request_of(**SCORES)
    forged = TOO_MUCH[what](asked, certificate_of(folder / "scores.parquet"))
    checks = {c.what: c.holds for c in request_checks(forged, asked)}
    assert checks["request"] is True
    assert checks["what was asked for"] is False


def test_a_request_that_is_none_is_bad_input(folder: Path) -> None:
    place = certificate_path(folder / "scores.parquet")
    ran = cli("verify", folder / "scores.parquet", "--request", place)
    assert ran.code == 2
    assert "request" in ran.err
