"""Theorem 1 as the page computes it, against the package; never rounded to a lower ceiling."""

import numpy as np

from targetdp.guarantee import Guarantee
from targetdp.theorem1 import accuracy_ceiling

from .conftest import Opened, Recipe

SHOWN = """(points) => points.map(([B, epsilon]) => {
  document.getElementById("t-B").value = B;
  const field = document.getElementById("t-epsilon");
  field.value = epsilon;
  field.dispatchEvent(new Event("input"));
  return document.getElementById("t-ceiling").textContent;
})"""


def points(rng: np.random.Generator, many: int) -> list[tuple[float, float, float]]:
    """B, half of them 2/m exactly or its neighbor among the floats; ε and δ from tiny to large."""
    found = []
    for i in range(many):
        B = float(rng.uniform(0.01, 2))
        if i % 2:
            B = 2 / float(rng.integers(1, 200))
            B = min(2.0, float(np.nextafter(B, rng.choice([0.0, B, 3.0]))))
        epsilon = float(np.exp(rng.uniform(np.log(1e-3), np.log(20))))
        found.append((B, epsilon, float(rng.choice([0.0, 1e-9, 1e-4, rng.random()]))))
    return found


def test_the_formula_is_the_packages(opened: Opened) -> None:
    page = opened("aid")
    given = [*points(np.random.default_rng(1), 300), (2.0, 800.0, 0.5), (1e-3, 1e-6, 0.0)]
    found = page.evaluate("(points) => points.map((point) => targetdpPage.ceiling(...point))", given)
    truth = [accuracy_ceiling(Guarantee(*point)) for point in given]
    np.testing.assert_allclose(found, truth, rtol=1e-12, atol=1e-12)
    assert len({round(x, 3) for x in truth}) > 100  # not all of them 1


def test_what_is_shown_is_never_below_the_ceiling(opened: Opened, page_of: Recipe) -> None:
    """Also where the digit after the last one shown is a 0: just above a millionth."""
    page = opened("aid")
    delta = next(cell.delta for cell in page_of("aid").cells.values() if cell.delta is not None)
    near = []
    for B, epsilon, _ in points(np.random.default_rng(2), 20_000):
        above = (accuracy_ceiling(Guarantee(B, epsilon, delta)) * 1e6) % 1
        if 0 < above < 2e-3:
            near.append((B, epsilon))
    assert len(near) >= 10
    given = [*near[:50], *((B, epsilon) for B, epsilon, _ in points(np.random.default_rng(3), 300))]
    shown = page.evaluate(SHOWN, [[repr(B), repr(epsilon)] for B, epsilon in given])
    for (B, epsilon), text in zip(given, shown, strict=True):
        truth = accuracy_ceiling(Guarantee(B, epsilon, delta))
        assert truth <= float(text) < truth + 1.001e-6


def test_points_where_there_is_no_guarantee_are_called_so(opened: Opened) -> None:
    page = opened("aid")
    for text in page.evaluate(SHOWN, [["0", "1"], ["2.1", "1"], ["1", "0"], ["", "1"], ["1", "-3"]]):
        assert "B must lie in (0, 2], ε above 0" in text


def test_the_chosen_setting_has_its_own_ceiling(opened: Opened, page_of: Recipe) -> None:
    page = opened("aid")
    cells = page_of("aid").cells
    for metric in ("singling_out", "distinguishing"):
        page.locator(f"#r-{metric}").fill("0")
    for name in page.evaluate("targetdpPage.fitting()")[::5]:
        cell = cells[name]
        page.locator(f'#settings input[value="{list(cells).index(name)}"]').check()
        said = page.locator("#ceiling-said").inner_text()
        epsilon = float(said.split("ε = ")[1].split(",")[0])
        assert epsilon == cell.epsilon or cell.mechanism == "projection"  # its release has another ε
        truth = accuracy_ceiling(Guarantee(cell.B or 0.0, epsilon, cell.delta or 0.0))
        shown = float(said.split("γ = ")[1].split(":")[0].rstrip("."))
        assert truth <= shown < truth + 1.001e-6
        assert ("rules out next to nothing" in said) == (truth > 0.999)
