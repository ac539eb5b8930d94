"""What no algorithm can do, as the page computes it, against the package; never below the truth."""

import numpy as np

from targetdp.guarantee import Guarantee
from targetdp.theorem1 import accuracy_ceiling, agreement_by_distance

from .conftest import Opened, Recipe

SHOWN = """(points) => points.map(([epsilon, distance]) => {
  document.getElementById("t-distance").value = distance;
  const field = document.getElementById("t-epsilon");
  field.value = epsilon;
  field.dispatchEvent(new Event("input"));
  return document.getElementById("t-ceiling").textContent;
})"""


def points(rng: np.random.Generator, many: int) -> list[tuple[float, float, float]]:
    """ε and δ from tiny to large; distances in units of B, half of them at the cut, or whole."""
    return [
        (
            float(np.exp(rng.uniform(np.log(1e-3), np.log(20)))),
            float(rng.choice([0.0, 1e-9, 1e-4, rng.random()])),
            float(rng.choice([0.0, float(rng.integers(0, 6)), rng.uniform(0, 6), rng.uniform(0, 6)])),
        )
        for _ in range(many)
    ]


def highest(epsilon: float, delta: float, distance: float) -> float:
    """The package's, at a B of a quarter."""
    return agreement_by_distance(Guarantee(0.25, epsilon, delta), [distance / 4])[0]


def test_the_formula_is_the_packages(opened: Opened) -> None:
    page = opened("aid")
    given = [*points(np.random.default_rng(1), 300), (800.0, 0.5, 3.0), (800.0, 0.0, 0.0), (1e-6, 0.0, 1.0)]
    found = page.evaluate("(points) => points.map((point) => targetdpPage.agreement(...point))", given)
    truth = [highest(*point) for point in given]
    np.testing.assert_allclose(found, truth, rtol=1e-12, atol=1e-12)
    assert len({round(x, 3) for x in truth}) > 80  # not all of them 1


def test_what_is_shown_is_never_below_the_truth(opened: Opened, page_of: Recipe) -> None:
    """Also where the digit after the last one shown is a 0: just above a millionth."""
    page = opened("aid")
    delta = next(cell.delta for cell in page_of("aid").cells.values() if cell.delta is not None)
    near = []
    for epsilon, _, distance in points(np.random.default_rng(2), 20_000):
        above = (highest(epsilon, delta, distance) * 1e6) % 1
        if 0 < above < 2e-3:
            near.append((epsilon, distance))
    assert len(near) >= 10
    given = [*near[:50], *((epsilon, at) for epsilon, _, at in points(np.random.default_rng(3), 300))]
    shown = page.evaluate(SHOWN, [[repr(epsilon), repr(distance)] for epsilon, distance in given])
    for (epsilon, distance), text in zip(given, shown, strict=True):
        truth = highest(epsilon, delta, distance)
        assert truth <= float(text) < truth + 1.001e-6


def test_points_where_there_is_no_guarantee_are_called_so(opened: Opened) -> None:
    page = opened("aid")
    for text in page.evaluate(SHOWN, [["0", "1"], ["1", "-1"], ["", "1"], ["1", ""], ["-3", "1"]]):
        assert "ε must be above 0, the distance 0 or more" in text


def test_the_chosen_setting_has_its_own_ceiling(opened: Opened, page_of: Recipe) -> None:
    page = opened("aid")
    cells = page_of("aid").cells
    for metric in ("singling_out", "distinguishing"):
        page.locator(f"#r-{metric}").fill("0")
    classic = set()
    for name in page.evaluate("targetdpPage.fitting()")[::5]:
        cell = cells[name]
        page.locator(f'#settings input[value="{list(cells).index(name)}"]').check()
        said = page.locator("#ceiling-said").inner_text()
        promise = cell.promise
        assert promise is not None
        assert promise.epsilon == cell.epsilon or cell.mechanism == "projection"  # its release has another ε
        shown = [float(part.split()[0].rstrip(",;.")) for part in said.split("at most ")[1:]]
        away = [0.0] if cell.B == 2 else [0.0, promise.B]
        classic.add(len(away))
        for told, truth in zip(shown, agreement_by_distance(promise, away), strict=True):
            assert truth <= told < truth + 1.001e-6
        assert ("at every distance below 2" in said) == (cell.B == 2)
        assert shown[0] >= accuracy_ceiling(promise)
    assert classic == {1, 2}, "a setting at B = 2, and others, were chosen"
