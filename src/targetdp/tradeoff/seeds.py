"""Where a simulation's randomness comes from: its place in the grid, and nothing else.

Not the order of the work, not the number of workers, not which other cells the grid has.
"""

from typing import Literal

import numpy as np

from targetdp.tradeoff.grid import Cell

Use = Literal["release", "program", "holdout", "working set", "attack", "scores", "informed"]

_USES: tuple[Use, ...] = ("release", "program", "holdout", "working set", "attack", "scores", "informed")
"""In an order that must stay: each use has a stream of its own, so that none can shift another's draws."""


def generator(seed: int, cell: Cell, simulation: int, use: Use) -> np.random.Generator:
    """The generator for one use in one simulation of a cell."""
    place = (cell.key >> 32, cell.key & 0xFFFFFFFF, simulation, _USES.index(use))
    return np.random.Generator(np.random.PCG64DXSM(np.random.SeedSequence(seed, spawn_key=place)))
