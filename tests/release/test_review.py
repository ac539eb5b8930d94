"""What a hostile reviewer of the desk found: each break is a test that fails on what it was found in."""

import hashlib
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.ledgers import limit_of
from support.release import (
    look,
    make_desk,
    new_policy,
    place_with,
    release,
    request_of,
    table_of,
    write_parquet,
    write_scales,
)
from targetdp.guarantee import Guarantee
from targetdp.mechanisms import GaussianNoise, SphericalLaplace
from targetdp.release import Charge, Desk, Limit, Look, Refused, describe_request, privatize
from targetdp.release._draws import Draws, nothing_was_drawn
from targetdp.release._ledger._history import History, ReleaseRow
from targetdp.release._ledger._spending import measure
from targetdp.release._terms import _rest


def test_a_policy_that_changes_while_somebody_thinks_is_obeyed(tmp_path: Path) -> None:
    folder = place_with(tmp_path, limit=(0.25, 8.0, 1e-6), most=(4.0, 1e-6))

    def think(_: Look) -> None:
        new_policy(folder / "desk", limit=(0.25, 2.0, 1e-6), most=(1.0, 1e-6), reason="too much")
        release(folder, "another.parquet", request=request_of(epsilon=0.5))

    with pytest.raises(ValueError, match="was changed"):
        privatize(
            folder / "in.parquet", folder / "out.parquet", desk=folder / "desk",
            request=request_of(epsilon=4), confirm=think,
        )  # fmt: skip
    assert not (folder / "out.parquet").exists()
    desk = Desk.open(folder / "desk")
    with desk.ledger() as ledger:
        assert ledger.standing(Limit.of(desk.policy)).spending.fits


def test_a_journal_that_the_desk_did_not_sign_is_refused(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    first = release(folder, "first.parquet").certificate
    planted = folder / ".next.parquet.targetdp"
    planted.mkdir()
    scales = {"calls": {"center": 0.0, "scale": 1e-9}}
    journal = {"desk": first.desk.id, "release": first.release, "sha256": "0" * 64, "scales": scales}
    digest = hashlib.sha256(json.dumps(journal, sort_keys=True).encode()).hexdigest()
    (planted / "journal.json").write_text(json.dumps(journal | {"check": digest}))
    with pytest.raises(ValueError, match="not signed by this desk"):
        release(folder, "next.parquet")


def charge(kind: Any, epsilon: float) -> Charge:
    return Charge(kind(B=0.25, epsilon=epsilon, delta=1e-6).law(1))


def test_the_largest_epsilon_fits_for_everybody_and_not_only_for_who_spent_most() -> None:
    limit = limit_of(0.25, 6.0, 1e-6)
    releases = {"a": charge(GaussianNoise, 2.0), "b": charge(SphericalLaplace, 1.99)}
    people = {"a": np.arange(0, 50, dtype=np.uint64), "b": np.arange(50, 100, dtype=np.uint64)}
    history = History()
    for name, own in releases.items():
        history.releases[name] = ReleaseRow(name, "published", own, name, {}, "", 1, 1)
    spending = measure(
        history, limit, lambda row: people[row.list_name], np.arange(100, dtype=np.uint64), None
    )
    some = set()
    for kind in (GaussianNoise, SphericalLaplace):
        for epsilon in np.linspace(1.5, 4.0, 11):
            asked = charge(kind, float(epsilon))
            fits = measure(
                history, limit, lambda row: people[row.list_name], np.arange(100, dtype=np.uint64), asked
            ).fits
            assert spending.with_charge(asked) == fits
            some.add(fits)
    assert some == {True, False}


def test_a_secret_that_was_being_erased_is_not_taken_for_one_that_drew_nothing(tmp_path: Path) -> None:
    draws = Draws.create(tmp_path / "drafts", "a", "bound")
    assert nothing_was_drawn(tmp_path / "drafts", "a")
    draws.for_scales("scales", np.arange(2))
    draws.close()
    assert not nothing_was_drawn(tmp_path / "drafts", "a")
    secret = tmp_path / "drafts" / "a" / "secret"
    secret.write_bytes(bytes(secret.stat().st_size))
    (tmp_path / "drafts" / "a" / "drawn").unlink()  # and here it was killed
    assert not nothing_was_drawn(tmp_path / "drafts", "a")


def test_other_public_scales_are_another_policy_with_a_reason(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    version = release(folder, "a.parquet").certificate.desk.policy
    scales = folder / "desk" / "scales.toml"
    scales.write_text(scales.read_text().replace("scale = 8.0", "scale = 0.08"))
    with pytest.raises(Refused, match="columns are scaled in another way"):
        release(folder, "b.parquet")
    new_policy(folder / "desk", reason="the census was published again")
    scales.write_text(scales.read_text().replace("scale = 8.0", "scale = 0.08"))
    assert release(folder, "b.parquet").certificate.desk.policy == version + 1


def test_a_reason_serves_once(tmp_path: Path) -> None:
    folder = place_with(tmp_path, limit=(0.25, 20.0, 0.1))
    release(folder, "a.parquet", request=request_of(epsilon=1))
    new_policy(folder / "desk", limit=(0.25, 30.0, 0.1), reason="a second round")
    release(folder, "b.parquet", request=request_of(epsilon=1))
    new_policy(folder / "desk", limit=(0.25, 20.0, 0.1), reason="back again")
    release(folder, "c.parquet", request=request_of(epsilon=1))
    new_policy(folder / "desk", limit=(0.25, 30.0, 0.1), reason="a second round")
    with pytest.raises(Refused, match="the limit was"):
        release(folder, "d.parquet", request=request_of(epsilon=1))


@pytest.mark.parametrize("epsilon", [4.0, 0.1, 1e-3, 7.3])
def test_what_is_left_for_noise_is_exact(epsilon: float) -> None:
    asked, spent = Guarantee(0.25, epsilon, 1e-6), Guarantee(2, 0.1 * epsilon, 2.0**-90)
    rest = _rest(asked, spent)
    assert Fraction(rest.epsilon) + Fraction(spent.epsilon) <= Fraction(asked.epsilon)
    assert Fraction(rest.delta) + Fraction(spent.delta) <= Fraction(asked.delta)
    assert rest.epsilon > 0.89 * epsilon


def test_a_delta_that_no_noise_keeps_is_a_problem_and_no_crash(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    seen = look(folder, request=request_of(delta=1e-29))
    assert any("delta" in str(problem) for problem in seen.problems)


def test_a_request_cannot_write_to_the_terminal() -> None:
    asked = request_of(features=["\x1b[2K\x1b[1A fake"])
    assert "\x1b" not in "\n".join(describe_request(asked))


def test_what_an_official_says_of_tuning_is_said_as_hers(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    conditions = release(folder, request=request_of(tuned_on="public")).certificate.conditions
    assert "B was chosen on public data, as whoever asked says." in conditions


def test_a_request_that_was_answered_before_is_told(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    asked = request_of(asked_by="Ministry of Aid", epsilon=1)
    release(folder, "a.parquet", request=asked)
    assert any("answered before" in warning for warning in look(folder, request=asked).warnings)


def test_two_spellings_of_an_accent_are_one_person(tmp_path: Path) -> None:
    desk = make_desk(tmp_path, limit=(0.25, 5.0, 0.1))
    write_scales(tmp_path / "scales.toml")
    for place, accent in (("a", "\u00e9"), ("b", "e\u0301")):
        table = table_of(60)
        ids = [f"{name}{accent}" for name in table["name"].to_pylist()]
        write_parquet(tmp_path / f"{place}.parquet", table.set_column(0, "name", [ids]))
    privatize(tmp_path / "a.parquet", tmp_path / "1.parquet", desk=desk, request=request_of(epsilon=4))
    with pytest.raises(Refused, match="the limit would be passed"):
        privatize(tmp_path / "b.parquet", tmp_path / "2.parquet", desk=desk, request=request_of(epsilon=4))
