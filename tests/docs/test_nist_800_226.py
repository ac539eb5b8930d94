"""docs/nist_800_226.md: its figures, and that no row leaves out what it must say."""

import math
import re

from support.docs import DOCS
from targetdp.mechanisms import SphericalLaplace
from targetdp.release import Limit
from targetdp.release._policy import LimitPolicy

TEXT = (DOCS / "nist_800_226.md").read_text(encoding="utf-8")


def test_the_classic_guarantee_of_the_usual_settings() -> None:
    noise = SphericalLaplace(B=0.25, epsilon=4, delta=1e-6)
    epsilon = noise.epsilon(distance=2, delta=1e-6, dimensions=10)
    assert f"told apart by at most ε = {math.ceil(10 * epsilon) / 10:g} at the same δ" in TEXT
    limit = Limit.within(LimitPolicy(B=0.25, epsilon=10, delta=1e-6), ())
    assert f"has ε = {math.ceil(1000 * limit.classic.epsilon) / 1000:g} at distance 2" in TEXT


def test_every_hazard_has_an_answer_a_place_and_what_stays_open() -> None:
    rows = [line.strip("|").split("|") for line in TEXT.splitlines() if re.match(r"\| [\d–]+ \|", line)]
    assert [int(row[0]) for row in rows if row[0].strip() != "–"] == list(range(1, 26))
    for row in rows:
        assert len(row) == 5, row
        assert all(cell.strip() for cell in row), row
