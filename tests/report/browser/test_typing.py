"""Numbers as people type them into the page's sentences."""

import pytest

from targetdp.tradeoff import Constraint, recommend

from .conftest import Opened, Recipe
from .reading import chosen, fitting, limit, unreadable

FIXED = Constraint("accuracy", at_least=0.1)
"""What the page was asked for, and has no field for."""


def test_a_decimal_comma_is_a_decimal_comma(opened: Opened, page_of: Recipe) -> None:
    """Typing 0,9 left the limit at 0, with the download enabled."""
    made, page = page_of("aid"), opened("aid")

    def names(limited: Constraint) -> list[str]:
        return [one.name for one in recommend(made.sweep, [limited, FIXED]).results if not one.excluded_by]

    counts = set()
    for typed, value in (
        ("60,5", 0.605), ("60.5", 0.605), (" 60,50 ", 0.605), (",6", 0.006), ("6e1", 0.6), ("100", 1.0),
    ):  # fmt: skip
        page.locator("#n-singling_out").fill(typed)
        assert fitting(page) == names(Constraint("singling_out", at_least=value))
        assert unreadable(page) == ""
        counts.add(len(fitting(page)))
    page.locator("#n-singling_out").fill("")
    for typed, value in (
        ("1 234,5", 1234.5), ("1,234,567", 1234567.0), ("−0,5", -0.5), ("1,234.5", 1234.5), ("-300", -300.0),
    ):  # fmt: skip
        page.locator("#n-extra_exclusion_errors").fill(typed)
        assert fitting(page) == names(Constraint("extra_exclusion_errors", at_most=value))
        assert unreadable(page) == ""
        counts.add(len(fitting(page)))
    assert len(counts) >= 4


@pytest.mark.parametrize(
    ("field", "typed"),
    [("singling_out", "0,9,1"), ("singling_out", "abc"), ("singling_out", "100,5"), ("singling_out", "-0.1"),
     ("best_guess", "49,9"), ("extra_exclusion_errors", "9,840"), ("extra_exclusion_errors", "12 people"),
     ("extra_exclusion_errors", "--1"), ("extra_exclusion_errors", "1e")],
)  # fmt: skip
def test_while_a_field_cannot_be_read_nothing_is_downloaded(opened: Opened, field: str, typed: str) -> None:
    """The limit before it still holds, and the page says so."""
    page = opened("aid")
    before, first = fitting(page), chosen(page)
    assert page.locator("#download").is_enabled()
    page.locator(f"#n-{field}").fill(typed)
    assert page.locator("#download").is_disabled()
    assert f"“{typed}” is no number" in unreadable(page)
    assert page.locator(f"#n-{field}").get_attribute("aria-invalid") == "true"
    assert (fitting(page), chosen(page)) == (before, first)
    limit(page, inference="0")  # another field does not mend this one
    assert page.locator("#download").is_disabled()
    page.locator(f"#n-{field}").fill("")
    assert page.locator("#download").is_enabled()
    assert unreadable(page) == ""
    page.locator(f"#n-{field}").fill(typed)
    page.locator("#reset").click()
    assert page.locator("#download").is_enabled()
    assert page.locator(f"#n-{field}").get_attribute("aria-invalid") == "false"
    assert (fitting(page), chosen(page)) == (before, first)
