"""Attribute inference in Anonymeter's mode: what Anonymeter 1.0.0 and 1.1.0 answered (`anonymeter/`)."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from targetdp._core import Silent
from targetdp.attacks import attribute_inference, near, near_by_anonymeter, nearest, prepare

RECORDED = sorted((Path(__file__).parent / "anonymeter").glob("*.npz"))


def recorded_cases() -> list[Any]:
    return [
        pytest.param(path, name, id=f"{path.stem} {name}")
        for path in RECORDED
        for name in sorted({key.split("/")[0] for key in np.load(path).files})
    ]


def test_both_versions_were_recorded() -> None:
    assert [path.stem for path in RECORDED] == ["anonymeter-1.0.0", "anonymeter-1.1.0"]


@pytest.mark.parametrize(("path", "name"), recorded_cases())
def test_guesses_are_anonymeters(path: Path, name: str) -> None:
    """The same rows, where it has one nearest row; one of the equally near ones, where there are several."""
    record = np.load(path)
    released = record[f"{name}/released"]
    exhausted = attribute_inference(
        record[f"{name}/in"], released, record[f"{name}/out"],
        known=[released.shape[1] - 1], compatibility="anonymeter",
    )  # fmt: skip
    for side, p in (("in", "p_release"), ("out", "p_holdout")):
        people = record[f"{name}/{side}"]
        both = np.concatenate([people, released])
        width = both.max(axis=0) - both.min(axis=0)
        sides = prepare(people, released, np.where(width == 0, 1, width))
        tried = zip(record[f"{name}/known"], record[f"{name}/secret"], strict=True)
        for number, (mask, secret) in enumerate(tried):
            known = np.flatnonzero(mask)
            rows, theirs = nearest(sides, known.tolist(), Silent()), record[f"{name}/rows {side}"][number]
            apart = np.zeros((len(people), len(released)))
            for k in known:
                apart += np.abs(sides.people[:, k, None] - sides.released[None, :, k])
            is_nearest = apart == apart.min(axis=1, keepdims=True)
            everyone = np.arange(len(people))
            assert is_nearest[everyone, theirs].all()
            assert is_nearest[everyone, rows].all()
            alone = is_nearest.sum(axis=1) == 1
            assert (rows[alone] == theirs[alone]).all()
            # Successes: theirs by our copy of their rule, ours between the luckless and the lucky choice.
            actual = people[:, secret]
            right = near_by_anonymeter(released[None, :, secret], actual[:, None], 0.05)
            counted = record[f"{name}/right {side}"][number]
            assert right[everyone, theirs].sum() == counted
            if len(known) == released.shape[1] - 1:
                ours = len(people) * (1 - exhausted.detail[p][f"h={len(known)}, column {secret}"])
                luckless = (right | ~is_nearest).all(axis=1).sum()
                lucky = (right & is_nearest).any(axis=1).sum()
                assert luckless - 1e-9 <= ours <= lucky + 1e-9
                if alone.all():
                    assert ours == pytest.approx(counted)


def test_recorded_tables_have_ties_and_none() -> None:
    """Comparing as sets must not hide a comparison of rows, nor the other way round."""
    record = np.load(RECORDED[0])
    assert len(np.unique(record["signs/released"][:, 0])) == len(record["signs/released"])
    assert len(np.unique(record["ties/released"], axis=0)) < len(record["ties/released"])
    assert (record["signs/released"] < 0).any()


def test_anonymeter_counts_every_negative_guess() -> None:
    actual = np.array([5.0, 5.0, 5.0, -5.0, -5.0, 0.0, 0.0])
    guess = np.array([5.1, 4.0, -80.0, -5.1, 40.0, -1e-9, -1e-12])
    assert near_by_anonymeter(guess, actual, 0.05).tolist() == [True, False, True, True, False, True, False]
    assert near(guess, actual, 0.05, 0.0).tolist() == [True, False, False, True, False, False, False]
    assert near(guess, actual, 0.05, 1e-9).tolist() == [True, False, False, True, False, True, True]


def test_compatibility_says_what_it_is_for() -> None:
    X = np.random.default_rng(11).standard_normal((100, 3))
    found = attribute_inference(X, X[::-1], compatibility="anonymeter", rng=np.random.default_rng(0))
    assert any("negative guess" in note for note in found.detail["notes"])
    assert found.detail["compatibility"] == "anonymeter"
    assert found.detail["zeros"] == {}
