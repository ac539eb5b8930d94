"""Names for the array types that signatures use."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Words: TypeAlias = NDArray[np.uint64]
