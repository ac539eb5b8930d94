"""Every registered mechanism, at every ε and number of columns of a grid, under one total confidence.

All audits together refute a true claim with probability at most 10⁻⁴: each has a share of that. Broken twins
of the same mechanisms, which promise the same with less noise, are caught.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from targetdp import Guarantee, PrivateProjection
from targetdp._core import Floats
from targetdp.attacks import audit, audit_rows
from targetdp.mechanisms import NoiseMechanism, Scores, noise_mechanisms

TOTAL = 1e-4
"""The chance that any of these tests fails although every claim is true."""
EPSILONS, COLUMNS, DISTANCES = (0.5, 1.0, 2.0, 4.0, 8.0), (1, 3, 10, 50), (0.25, 2.0)
RUNS = 40_000
DELTA = 1e-3
_TWINS = {"projection": 8.0}
"""ε at which a twin is tried, if not 2: as printed the projection is much louder than its claim needs."""


@dataclass(frozen=True)
class Claim:
    name: str
    epsilon: float
    d: int
    B: float

    def mechanism(self) -> NoiseMechanism:
        asked = Guarantee(self.B, self.epsilon, DELTA)
        if self.name == "scores":
            return Scores(np.eye(1, self.d) + 0.5, noise_mechanisms()["spherical-laplace"](asked))
        return noise_mechanisms()[self.name](asked)


def claims() -> Iterator[Claim]:
    for name in (*noise_mechanisms(), "scores"):
        for epsilon in EPSILONS:
            for d in COLUMNS:
                if name != "staircase" or d == 1:
                    yield Claim(
                        name, epsilon, d, DISTANCES[0] if epsilon in {0.5, 2.0, 8.0} else DISTANCES[1]
                    )


GRID = tuple(claims())


def test_the_grid_has_every_mechanism() -> None:
    assert {claim.name for claim in GRID} == {*noise_mechanisms(), "scores"}
    assert len(GRID) >= 100


@pytest.mark.parametrize("name", [*noise_mechanisms(), "scores"])
def test_no_claim_of_the_grid_is_refuted(name: str) -> None:
    seen = []
    for claim in GRID:
        if claim.name == name:
            found = audit(claim.mechanism(), dimensions=claim.d, runs=RUNS, confidence=1 - TOTAL / len(GRID))
            assert found.holds, f"{claim}: {found.sentence}"
            assert found.exact is not None
            seen.append(found.epsilon / found.exact)
    # An audit that could not find anything would hold, too: some come close to the truth.
    assert max(seen) > 0.5


@pytest.mark.parametrize("name", [*noise_mechanisms(), "scores"])
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_a_twin_with_less_noise_is_caught(name: str, share: float) -> None:
    """Everything as before, but for the noise: a tenth of it, or a half."""
    claim = next(
        c
        for c in GRID
        if c.name == name and c.epsilon == _TWINS.get(name, 2.0) and c.d == (1 if name == "staircase" else 3)
    )
    mechanism = claim.mechanism()
    guarantee = mechanism.guarantee

    along = np.zeros(claim.d)
    along[0] = 1.0
    if isinstance(mechanism, PrivateProjection):
        along = mechanism.public_projection(claim.d).directions[:, -1]
    if isinstance(mechanism, Scores):
        along = np.array(mechanism.weights)[0] / np.linalg.norm(mechanism.weights)

    def broken(X: Floats) -> Floats:
        released = mechanism.privatize(X)
        if isinstance(mechanism, Scores):  # as rows again, which an audit compares
            released = released * along
        return X + share * (released - X)

    x = along * guarantee.B / 2
    truth = mechanism.epsilon(distance=guarantee.B, delta=guarantee.delta, dimensions=claim.d)
    found = audit_rows(broken, x, -x, runs=RUNS, delta=guarantee.delta, confidence=1 - TOTAL)
    assert found.refutes(truth)
