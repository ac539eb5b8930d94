"""The release file that `targetdp privatize` takes, for a cell of a sweep."""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from targetdp._core import exact, up
from targetdp.guarantee import Guarantee
from targetdp.programs import MARK as FOR_THE_HOLDER
from targetdp.release import LARGE_DELTA, make_settings
from targetdp.tradeoff._study import FINGERPRINT, FIRST_LOOK, MARK, SOURCE, fingerprint_of
from targetdp.tradeoff._technology import NOT_CLIPPED, Cell

TUNED_ON = {"public": "public", "synthetic": "synthetic", "confidential": "this-data"}
"""What a certificate says about the data that B was chosen on."""

CONDITIONAL = "as in the sweep; the guarantee is then conditional: better a file of public scales, or private"
"""Beside scales of the data in a release file."""

FOR_A_LEDGER = "as in the sweep, and refused by a ledger; for a release put a file of public scales here"
"""Beside scales of the data, where a release file has several releases to serve."""


def format_guarantee(promise: Guarantee) -> str:
    """Write a guarantee for people; neither ε nor δ is rounded to less than is visible.

    Args:
        promise: What is promised.

    Returns:
        B, ε and δ in a line.

    Example:
        >>> format_guarantee(Guarantee(0.25, 4.0, 1 / 4202))
        'B = 0.25, ε = 4, δ = 0.000238'
    """
    return f"B = {exact(promise.B)}, ε = {up(promise.epsilon, 6)}, δ = {up(promise.delta)}"


def large_delta(delta: float | None) -> str | None:
    """The warning that a release with this δ would come with.

    Args:
        delta: That of a cell; None without a guarantee.

    Returns:
        The warning, or None if there is none.

    Example:
        >>> print(large_delta(1e-6))
        None
    """
    if delta is None or delta <= LARGE_DELTA:
        return None
    return (
        f"δ = {up(delta, 2)} is large: the promise allows that somebody's row is given away altogether with "
        "that probability; 1/(rows + 1) or less is usual"
    )


def release_text(run: Mapping[str, Any], cell: Cell, *, recommended: bool = False) -> str:
    """Write the release file of a cell: TOML with comments, read back and checked before it is handed over.

    Args:
        run: The sweep's record, as `read_run` has it.
        cell: One of its cells.
        recommended: Whether the file says that it was recommended, and names a scales file by where it is.
            One that is chosen on a page, which travels, names it without its folder.

    Returns:
        The text of the file.

    Raises:
        ValueError: ``run`` was changed by hand, or `targetdp privatize` cannot make such a release (a
            projection with another k, rows that are not clipped).

    Guarantees: a release of a table of the same size has the noise that the sweep measured.

    Example:
        >>> from targetdp.tradeoff import find_sweep
        >>> sweep = find_sweep("togo", quick=True)
        >>> print(release_text(sweep.record(), sweep.cells[1]).splitlines()[2])
        # It promises B = 0.05, ε = 3.9999, δ = 0.000238 on a table of this size, on conditions (see scales)
    """
    technology, made_of = cell.technology, run["made_of"]
    if fingerprint_of(made_of) != run[FINGERPRINT] or cell.rows != made_of["public_record"]["rows"]:
        raise ValueError(
            f"cell {cell.name!r}: run.json was changed by hand, and nothing is released by it; run the "
            "sweep again in a new folder"
        )
    if (reason := cell.why_not) is not None:
        remedy = 'sweep with rows = "clip"' if reason == NOT_CLIPPED else technology.remedy
        raise ValueError(f"cell {cell.name!r}: {reason}; {remedy}")
    given = {"scales": "data"} | run["release"]  # whoever does not say used the table's own
    settings: dict[str, Any] = {"id": given.pop("id", "id"), "features": list(run["features"])}
    own, notes = technology.release_settings(cell, run["people"])
    if "id" not in run["release"]:
        notes["id"] = "the program file names no id: put the column that identifies a person here"
    settings |= own
    if not recommended and given["scales"] not in {"data", "private"}:
        given["scales"] = Path(given["scales"]).name
    settings |= given | {"tuned_on": TUNED_ON[run[SOURCE]]}
    known = made_of.get("scales") or {"source": "data"}
    conditional = settings["scales"] == "data" or known["source"] in {"data", "confidential"}
    if settings["scales"] == "data":
        notes["scales"] = FOR_A_LEDGER if technology.release_steps else CONDITIONAL
    elif conditional:
        notes["scales"] = "learned from confidential data: the guarantee holds given these scales only"
    head = [
        f"{'Recommended by' if recommended else 'Chosen from a sweep of'} targetdp tradeoff: {cell.name}",
        f"Program {_one_line(run['program'])}, {run['people']:,} people ({run[SOURCE]}), "
        f"sweep {run[FINGERPRINT][:16]}",
    ]
    if cell.promise is not None:
        condition = ", on conditions (see scales)" if conditional else ""
        head.append(f"It promises {format_guarantee(cell.promise)} on a table of this size{condition}")
    if quick := made_of["public_record"].get(FIRST_LOOK):
        head.append(f"Made from a quick look: {'; '.join(quick)}")
    head += technology.release_steps
    if (warning := large_delta(cell.delta)) is not None:
        head.append(f"Warning: {warning}")
    if run[MARK]:
        head.insert(0, FOR_THE_HOLDER)
    lines = [f"# {line}" for line in head]
    for name, value in settings.items():
        note = f"  # {notes[name]}" if name in notes else ""
        lines.append(f"{name} = {_toml(value)}{note}")
    text = "\n".join(lines) + "\n"
    make_settings(tomllib.loads(text))
    return text


def _one_line(name: str) -> str:
    """A name may hold anything: none of it may end the comment that it stands in."""
    return "".join(c if c.isprintable() else " " for c in name)


def _toml(value: Any) -> str:
    """JSON's texts, numbers and lists are TOML's, but for the delete character."""
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_toml(str(key))} = {_toml(part)}" for key, part in value.items())
        return f"{{ {inner} }}"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
