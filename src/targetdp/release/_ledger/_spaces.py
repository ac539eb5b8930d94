"""Spaces: by which scales and maps a column was released. Rows that are near in one may be far in another."""

from collections.abc import Sequence

from targetdp.table import Encoding, missing_name


def public_space(center: float, scale: float) -> str:
    """Which scales a column has: declared ones are told by their values."""
    return f"public {center!r} {scale!r}"


def private_space(release: str) -> str:
    """Which scales a column has: estimated ones are told by the release that has estimated them."""
    return f"private {release}"


def space_of_kinds(encoding: Encoding, features: Sequence[str]) -> dict[str, str]:
    """Which maps and scales features of kinds have, and their columns: these may have been numbers before."""
    declared = encoding.scales(features)
    marks = {name: encoding.mark(encoding.source(name)) for name in declared}
    columns = {
        told: f"map {mark}"
        for name, mark in marks.items()
        if encoding.kinds[encoding.source(name)].kind != "number"  # whose number keeps the scales it has
        for told in (encoding.source(name), missing_name(encoding.source(name)))
    }
    return {name: told for name, told in columns.items() if name not in features} | {
        name: f"kind {marks[name]} {center!r} {scale!r}" for name, (center, scale) in declared.items()
    }
