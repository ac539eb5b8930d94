"""An example table in memory, and what its columns are for."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from targetdp.typing import Floats

ID = "id"
"""The column that says whose row it is, in every example."""


@dataclass(frozen=True, eq=False)
class Example:
    """A table and the roles of its columns: features, the targeting variable, groups, and money."""

    name: str
    table: pa.Table
    features: tuple[str, ...]
    target: str
    groups: tuple[str, ...] = ()
    money: tuple[str, ...] = ()

    @cached_property
    def ids(self) -> NDArray[np.str_]:
        """Whose row each one is."""
        return self.column(ID).astype(np.str_)

    @cached_property
    def X(self) -> Floats:
        """The features, one row for each person."""
        return np.column_stack([self.column(name).astype(np.float64) for name in self.features])

    @cached_property
    def y(self) -> Floats:
        """The targeting variable."""
        return self.column(self.target).astype(np.float64)

    def column(self, name: str) -> NDArray[Any]:
        """One column: numbers, or texts for a group."""
        values: NDArray[Any] = self.table[name].to_numpy()
        return values
