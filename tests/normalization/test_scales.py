"""Column scales: declared ones, and those from the data."""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from targetdp import ColumnScales, Guarantee, data_scales, declared_scales

PAID = Guarantee(2, 1.0, 2.0**-90)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


# ColumnScales and declared_scales


def test_declared_scales_cost_nothing_and_say_that_they_are_public() -> None:
    result = declared_scales([1, 2], (3.0, np.float32(4)))
    assert result.center.tolist() == [1.0, 2.0]
    assert result.scale.tolist() == [3.0, 4.0]
    assert result.source == "declared"
    assert result.spent is None
    (condition,) = result.conditions
    assert "declared public" in condition


def test_scales_are_frozen_copies() -> None:
    center, scale = np.zeros(2), np.ones(2)
    result = declared_scales(center, scale)
    center[0] = scale[0] = 9.0
    assert result.center.tolist() == [0.0, 0.0]
    assert result.scale.tolist() == [1.0, 1.0]
    for values in (result.center, result.scale):
        assert values.dtype == np.float64
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 5.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.source = "private"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("center", "scale", "message"),
    [
        ([0.0, math.nan], [1, 1], r"^center\[1\] = nan is not finite$"),
        ([math.inf, 0], [1, 1], r"^center\[0\] = inf is not finite$"),
        ([0, 0], [1, 0], r"^scale\[1\] = 0.0 is not finite and above 0$"),
        ([0, 0], [-1, 1], r"^scale\[0\] = -1.0 is not finite and above 0$"),
        ([0, 0], [1, math.inf], r"^scale\[1\] = inf is not"),
        ([0, 0], [1], r"^scale has shape \(1,\).*each of the 2 columns"),
        ([0], [1, 1], r"^scale has shape \(2,\).*each of the 1 columns"),
        ([], [], r"^center has shape \(0,\)"),
        (0.0, 1.0, r"^center has shape \(\)"),
        (np.array(0.0), 1.0, r"^center has shape \(\)"),
        ([[0.0]], [[1.0]], r"^center has shape \(1, 1\)"),
        ([[0.0], [0.0, 1.0]], [1, 1], r"^center is not a regular array"),
        ("ab", [1, 1], r"^center has shape \(\) and dtype <U2"),
        (["a", "b"], [1, 1], r"^center has shape \(2,\) and dtype <U1"),
        (None, [1], r"^center has shape \(\) and dtype object"),
        ([True], [1], r"^center has shape \(1,\) and dtype bool"),
        ([0], [1j], r"^scale has shape \(1,\) and dtype complex"),
    ],
)
def test_bad_scales_are_refused(center: Any, scale: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        declared_scales(center, scale)
    with pytest.raises(ValueError, match=message):
        ColumnScales(center, scale, "data")


@pytest.mark.parametrize("source", ["public", "", None, 1, ["declared"]])
def test_an_unknown_source_is_refused(source: Any) -> None:
    with pytest.raises(
        ValueError,
        match=r"^source = .* is not one of confidential, data, declared, earlier, private, simulated$",
    ):
        ColumnScales(np.zeros(1), np.ones(1), source)


@pytest.mark.parametrize(
    ("source", "spent"), [("declared", PAID), ("data", PAID), ("private", None), ("private", 1.0)]
)
def test_what_was_paid_belongs_to_private_scales_only(source: Any, spent: Any) -> None:
    with pytest.raises(ValueError, match=r"^spent = .* does not belong to source = "):
        ColumnScales(np.zeros(1), np.ones(1), source, spent)


# data_scales


def test_data_scales_are_mean_and_deviation() -> None:
    X = rng().normal([1.0, -2.0, 1e6], [1.0, 1e-6, 1e3], size=(500, 3))
    before = X.tobytes()
    result = data_scales(X)
    assert result.center == pytest.approx(X.mean(axis=0), rel=1e-14)
    assert result.scale == pytest.approx(X.std(axis=0), rel=1e-14)
    assert result.source == "data"
    assert result.spent is None
    (condition,) = result.conditions
    assert "only between tables that have the same column scales" in condition
    assert X.tobytes() == before


@pytest.mark.parametrize("value", [0.0, 0.1, -0.1, 1e300, 1e-300, 1 / 3])
@pytest.mark.parametrize("n", [1, 10, 997])
def test_a_constant_column_keeps_its_unit(value: float, n: int) -> None:
    """Though rounding gives 997 times 1/3 a deviation above zero."""
    X = np.column_stack([np.full(n, value), np.arange(float(n))])
    if value > 1e150:
        X = X[:, :1] / 1e200  # its square must not overflow
    assert data_scales(X).scale[0] == 1.0


def test_a_nearly_constant_column_does_not_count_as_constant() -> None:
    X = np.array([[1.0], [1.0 + 1e-9]])
    assert data_scales(X).scale[0] == pytest.approx(5e-10, rel=1e-6)


@pytest.mark.parametrize("value", [1e308, 1.7e308, 1e200])
def test_values_too_large_for_a_deviation_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match=r"^column 0 of X has values too large for a mean and a deviation"):
        data_scales([[value], [-value], [value]])
