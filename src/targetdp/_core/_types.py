"""Names for the array types that signatures use."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
"""An array of 64-bit floats."""
Integers: TypeAlias = NDArray[np.int64]
"""An array of 64-bit whole numbers."""
Words: TypeAlias = NDArray[np.uint64]
"""An array of 64-bit words: random bits."""
