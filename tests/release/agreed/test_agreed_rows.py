"""What the official reads: rows of people who agreed with a record that holds, or nothing."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.agreed import AGREED, TO, forged, handed_over, place_of_agreed
from support.release import FEATURES, cli, new_policy, read_back, release, words, write_csv, write_parquet
from targetdp.release import (
    Desk,
    SigningKey,
    agreed_rows,
    agreement_path,
    certificate_path,
    read_agreement,
    rotate_key,
    trust,
    verify_agreement,
)
from targetdp.release._trust._keys import config_folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = place_of_agreed(tmp_path)
    handed_over(place)
    return place


def as_somebody_else() -> None:
    """From now on the desk is not the user's own: somebody else reads what it has handed over."""
    (config_folder() / "desks.jsonl").unlink()


def test_what_holds_is_told(folder: Path) -> None:
    found = agreed_rows(folder / "agreed.parquet")
    desk = Desk.open(folder / "desk")
    assert (found.desk, found.desk_name, found.key) == (desk.id, "people", desk.key.public)
    assert (found.id, found.columns, found.rows, found.to) == ("name", FEATURES, 20, TO)
    assert (found.pseudonyms, found.gaps) == (False, {})
    assert found.scales is not None
    assert (found.scales.center.tolist(), found.scales.source) == ([10.0, 5.0, 1.0], "declared")
    two = found.record.scales_of(["topups", "calls"])
    assert two is not None
    assert two.center.tolist() == [1.0, 10.0]
    assert found.sha256 == found.record.output.sha256


def test_private_scales_are_told_once_they_are_paid_for(tmp_path: Path) -> None:
    place = place_of_agreed(tmp_path, 1_500, scales="private", decide=("more",))
    table = read_back(place / "in.parquet")
    write_parquet(place / "in.parquet", table.append_column("more", table["calls"]))
    handed_over(place)
    assert agreed_rows(place / "agreed.parquet").scales is None
    assert read_agreement(agreement_path(place / "agreed.parquet")).scales_source is None
    paid = release(place).certificate.scales.values
    new_policy(
        place / "desk", scales="private", decide=("more",), reason="more",
        agreed=AGREED | {"columns": (*FEATURES, "more")},
    )  # fmt: skip
    handed_over(place, "again.parquet")
    found = agreed_rows(place / "again.parquet")
    assert found.scales is None, "one column has none"
    known = found.record.scales_of(FEATURES)
    assert known is not None
    assert known.source == "earlier"
    assert known.center.tolist() == [paid[name].center for name in FEATURES]


def test_whoever_is_known_by_name_signs(folder: Path) -> None:
    key = Desk.open(folder / "desk").key.public
    as_somebody_else()
    with pytest.raises(ValueError, match="signed by nobody you have named"):
        agreed_rows(folder / "agreed.parquet")
    assert cli("verify", folder / "agreed.parquet").code == 5
    assert agreed_rows(folder / "agreed.parquet", public_key=key).rows == 20
    trust("operator", key)
    assert agreed_rows(folder / "agreed.parquet").rows == 20
    with pytest.raises(ValueError, match="another key than it is held against"):
        agreed_rows(folder / "agreed.parquet", public_key=SigningKey.open(folder / "other.pem").public)
    with pytest.raises(ValueError, match="is not an Ed25519 public key"):
        agreed_rows(folder / "agreed.parquet", public_key="x")


def test_a_newer_key_of_the_desk_is_followed(folder: Path) -> None:
    desk = Desk.open(folder / "desk")
    old = desk.key.public
    rotate_key(desk, "once a year")
    assert agreed_rows(folder / "agreed.parquet").key == old, "it is on record at one's own desk"
    (folder / "agreed.csv").rename(folder / "list.csv")
    write_csv(folder / "agreed.csv", read_back(folder / "list.csv").slice(0, 5))
    handed_over(folder, "new.parquet")
    as_somebody_else()
    trust("operator", old)
    assert agreed_rows(folder / "new.parquet").key != old


# What is forged


def swap(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda plain: plain.update({name: value})


CHANGES: dict[str, Any] = {
    "to": "anything", "rows": 19, "in_all": 99, "id": "other", "pseudonyms": True, "gaps": {"calls": 1.0},
    "agreement": "b" * 32, "means": "nothing at all", "time": "2020", "library": "9",
    "columns": ["texts", "calls", "topups"], "scales": {"calls": {"center": 0.0, "scale": 1.0}},
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_whatever_is_edited_does_not_hold(folder: Path, name: str) -> None:
    forged(folder, swap(name, CHANGES[name]))
    with pytest.raises(ValueError, match=r"does not hold.*signature: does not fit"):
        agreed_rows(folder / "agreed.parquet")
    ran = cli("verify", folder / "agreed.parquet")
    assert ran.code == 1
    assert "does NOT hold" in ran.err


@pytest.mark.parametrize("name", ["to", "rows", "id", "pseudonyms", "means", "columns", "agreement"])
def test_also_where_the_desk_itself_signs_it(folder: Path, name: str) -> None:
    """What a file shows must be what is said; and the ledger knows what went out."""
    forged(folder, swap(name, CHANGES[name]), Desk.open(folder / "desk").key)
    by_file = name in {"rows", "id", "pseudonyms", "means", "columns"}
    assert verify_agreement(folder / "agreed.parquet").holds == (not by_file)
    ran = cli("verify", folder / "agreed.parquet", "--desk", folder / "desk")
    assert ran.code == (1 if by_file or name in {"to", "agreement"} else 0)


def test_a_stranger_s_record_and_another_desk_s_do_not_hold(folder: Path) -> None:
    forged(folder, lambda _: None, SigningKey.open(folder / "stranger.pem"))
    with pytest.raises(ValueError, match="signed by nobody you have named"):
        agreed_rows(folder / "agreed.parquet")
    other = place_of_agreed(folder.parent / f"{folder.name}-elsewhere")
    handed_over(other)
    shutil.copy(agreement_path(other / "agreed.parquet"), agreement_path(folder / "agreed.parquet"))
    as_somebody_else()
    trust("operator", Desk.open(folder / "desk").key.public)
    with pytest.raises(ValueError, match="signed by nobody you have named"):
        agreed_rows(folder / "agreed.parquet")


def test_another_table_does_not_hold(folder: Path) -> None:
    table = read_back(folder / "agreed.parquet")
    write_parquet(folder / "agreed.parquet", table.slice(1))
    with pytest.raises(ValueError, match="is not the one certified"):
        agreed_rows(folder / "agreed.parquet")
    (folder / "agreed.parquet").unlink()
    with pytest.raises(ValueError, match="is no file"):
        agreed_rows(folder / "agreed.parquet")


def test_without_a_record_nobody_agreed(folder: Path) -> None:
    release(folder)
    with pytest.raises(ValueError, match="have no record of an agreement"):
        agreed_rows(folder / "out.parquet")
    with pytest.raises(ValueError, match="is none"):
        agreed_rows(folder / "out.parquet", certificate_path(folder / "out.parquet"))
    ran = cli("verify", folder / "agreed.parquet", "--request", folder / "agreed.csv")
    assert ran.code == 2
    assert "rows of people who agreed answer none" in words(ran.err)


def test_a_record_under_another_name_is_taken_by_its_name(folder: Path) -> None:
    there = folder / "kept.agreement.json"
    agreement_path(folder / "agreed.parquet").rename(there)
    assert agreed_rows(folder / "agreed.parquet", there).rows == 20
    assert cli("verify", folder / "agreed.parquet", "--certificate", there).code == 0
    assert cli("verify", folder / "agreed.parquet").code == 2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"extra": 1}, "extra"),
        ({"format": "targetdp agreement 2"}, "format"),
        ({"format": "targetdp certificate 2"}, "format"),
        ({"columns": ["calls", "calls"]}, "twice"),
        ({"columns": ["name"]}, "twice"),
        ({"columns": []}, "columns"),
        ({"gaps": {"nope": 1.0}}, "not among the columns"),
        ({"gaps": {"calls": float("inf")}}, "gaps"),
        ({"scales": {}}, "belong together"),
        ({"scales": None}, "belong together"),
        ({"scales": {"calls": {"center": 0.0, "scale": 0.0}}}, "scale"),
        ({"rows": 0}, "rows"),
        ({"rows": 20.0}, "rows"),
        ({"in_all": 3}, "contradict"),
        ({"to": "a\nb"}, "to"),
        ({"agreement": "../../x"}, "agreement"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_line(folder: Path, change: dict[str, Any], said: str) -> None:
    place = agreement_path(folder / "agreed.parquet")
    plain = json.loads(place.read_text(encoding="utf-8")) | change
    place.write_text(json.dumps(plain), encoding="utf-8")
    with pytest.raises(ValueError, match=r"^agreement .* is none") as refused:
        read_agreement(place)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_only_the_form_that_targetdp_writes_is_read(folder: Path) -> None:
    place = agreement_path(folder / "agreed.parquet")
    text = place.read_text(encoding="utf-8")
    place.write_text(json.dumps(json.loads(text)), encoding="utf-8")
    with pytest.raises(ValueError, match="was edited"):
        read_agreement(place)
    place.write_text(text.replace('"to":', '"to": "x",\n  "to":', 1), encoding="utf-8")
    with pytest.raises(ValueError, match=r"was edited|is none"):
        read_agreement(place)
