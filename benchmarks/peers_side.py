"""The peers' half of the noise benchmark: run by `peers.py` in an environment of the peers' own.

Each line on stdin asks for a round; the answer is a line of JSON with CPU seconds per value.
"""

import json
import sys
import time
import warnings
from collections.abc import Callable

VALUES = 5_000


def main() -> None:
    """Answer until stdin ends; first say which versions there are."""
    warnings.simplefilter("ignore")
    from importlib.metadata import version  # noqa: PLC0415

    sides = {"OpenDP": _opendp(), "diffprivlib": _diffprivlib()}
    for side in sides.values():
        side()  # whatever is loaded at the first call
    print(json.dumps({name: version(name.lower()) for name in sides}), flush=True)
    for _ in sys.stdin:
        print(json.dumps({name: _seconds(side) for name, side in sides.items()}), flush=True)


def _seconds(side: Callable[[], object]) -> float:
    begin = time.process_time()
    side()
    return (time.process_time() - begin) / VALUES


def _opendp() -> Callable[[], object]:
    """The Gaussian mechanism on a vector of floats: exact, discrete noise on a grid."""
    import opendp.prelude as dp  # type: ignore[import-not-found]  # noqa: PLC0415

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l2_distance(T=float)
    mechanism = space >> dp.m.then_gaussian(scale=1.0)
    values = [0.0] * VALUES
    return lambda: mechanism(values)


def _diffprivlib() -> Callable[[], object]:
    """The analytic Gaussian mechanism, which takes a value at a time."""
    from diffprivlib.mechanisms import GaussianAnalytic  # type: ignore[import-not-found]  # noqa: PLC0415

    mechanism = GaussianAnalytic(epsilon=1.0, delta=1e-5, sensitivity=1.0)
    return lambda: [mechanism.randomise(0.0) for _ in range(VALUES)]


if __name__ == "__main__":
    main()
