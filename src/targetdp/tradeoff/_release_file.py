"""The release file that `targetdp privatize` takes, for a cell of a sweep."""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from targetdp._core import exact, up
from targetdp.guarantee import Guarantee
from targetdp.mechanisms import LEAST_NOISE
from targetdp.programs import MARK as FOR_THE_HOLDER
from targetdp.programs import TWO_ROUNDS
from targetdp.release import LARGE_DELTA, make_settings
from targetdp.tradeoff._grid import MONDRIAN, PROJECTION
from targetdp.tradeoff._mark import FINGERPRINT, MARK, SOURCE

TUNED_ON = {"public": "public", "synthetic": "synthetic", "confidential": "this-data"}
"""What a certificate says about the data that B was chosen on."""

_LARGEST_EPSILON2, _RELEASED_K = 0.9999, 10_000

CANNOT = f"privatize cannot make it: k is not {_RELEASED_K:,}"
"""Release settings have no k, and another k is other noise."""

NOT_CLIPPED = "its rows are not clipped, as those of a release are"
"""Why nothing is promised of such a cell, and nothing can be released like it."""


IN_TWO_ROUNDS = (
    "Two rounds, with this one file and one scales file for both:",
    "1. targetdp privatize, for the labelled sample only (with a ledger: --part sample)",
    "2. targetdp learn, by whoever has the labels: it makes a weights file",
    "3. targetdp score, for everybody else, with the weights and --sample (with a ledger: --part others)",
    "4. targetdp decide, by whoever has the labels: it applies the program to both releases",
    "Nobody is in both releases, so that nobody spends more than this promise. Scales that are estimated",
    "privately for step 1 add their price for the sample's people; step 3 then takes --scales sample",
)
"""What a release file says of a cell that is two releases."""

FOR_A_LEDGER = "as in the sweep, and refused by a ledger; for a release put a file of public scales here"
"""Beside scales of the data, where a release file has two releases to serve."""


def can_be_made(cell: Mapping[str, Any]) -> bool:
    """Whether `targetdp privatize` can make a release like this cell."""
    return why_not(cell) is None


def why_not(cell: Mapping[str, Any]) -> str | None:
    """Why `targetdp privatize` cannot make a release like this cell, if it cannot."""
    if cell["rows"] != "clip":
        return NOT_CLIPPED
    return CANNOT if cell["mechanism"] == PROJECTION and cell["k"] != _RELEASED_K else None


def promise_of(cell: Mapping[str, Any]) -> Guarantee | None:
    """What the release of a cell promises, by its own release file; None without a guarantee.

    A projection's ε may be another than the cell's: a release splits its ε in the paper's proportion, and is
    asked for the total at which its ε₁, and so its noise, is the cell's.
    """
    if cell["epsilon"] is None or cell["rows"] != "clip":
        return None
    epsilon = _projection_epsilon(cell) if cell["mechanism"] == PROJECTION else float(cell["epsilon"])
    return Guarantee(cell["B"], epsilon, cell["delta"])


def told(promise: Guarantee) -> str:
    """A guarantee for people; neither ε nor δ is rounded to less than is visible."""
    return f"B = {exact(promise.B)}, ε = {up(promise.epsilon, 6)}, δ = {up(promise.delta)}"


def larger_by_parts(delta: float, people: int) -> str:
    """In words, how much larger than usual a δ is that was set from the number of random parts; or nothing.

    Cells without parts share it, since all are compared at one (B, ε, δ).
    """
    times = delta * (people + 1)
    return f", {times:.3g} times the usual 1/(rows + 1)" if times > 1.001 else ""


def large_delta(delta: float | None) -> str | None:
    """The warning that a release with this δ would come with."""
    if delta is None or delta <= LARGE_DELTA:
        return None
    return (
        f"δ = {up(delta, 2)} is large: the promise allows that somebody's row is given away altogether with "
        "that probability; 1/(rows + 1) or less is usual"
    )


def release_text(run: Mapping[str, Any], cell: Mapping[str, Any], *, recommended: bool = False) -> str:
    """TOML with comments. It is read back and checked before it is handed over.

    One that is ``recommended`` says so, and names a scales file by where it is; one that is chosen on a page,
    which travels, by its name only.

    Guarantees: a release of a table of the same size has the noise that the sweep measured. A cell of which
    that cannot be said (a projection with another k than a release's) is refused.
    """
    if (reason := why_not(cell)) is not None:
        remedy = 'with rows = "clip"' if reason == NOT_CLIPPED else f"the grid with k = [{_RELEASED_K}]"
        raise ValueError(f"cell {cell['name']!r}: {reason}; sweep {remedy}")
    given = {"scales": "data"} | run["release"]  # whoever does not say used the table's own
    notes: dict[str, str] = {}
    settings: dict[str, Any] = {"id": given.pop("id", "id"), "features": list(run["features"])}
    if "id" not in run["release"]:
        notes["id"] = "the program file names no id: put the column that identifies a person here"
    settings |= _mechanism(cell, notes, run["people"])
    if not recommended and given["scales"] not in {"data", "private"}:
        given["scales"] = Path(given["scales"]).name
    settings |= given | {"tuned_on": TUNED_ON[run[SOURCE]]}
    known = run.get("made_of", {}).get("scales") or {"source": "data"}
    conditional = settings["scales"] == "data" or known["source"] in {"data", "confidential"}
    if settings["scales"] == "data":
        notes["scales"] = (
            "as in the sweep; the guarantee is then conditional: better a file of public scales, or private"
        )
        if cell["mechanism"] == TWO_ROUNDS:
            notes["scales"] = FOR_A_LEDGER
    elif conditional:
        notes["scales"] = "learned from confidential data: the guarantee holds given these scales only"
    head = [
        f"{'Recommended by' if recommended else 'Chosen from a sweep of'} targetdp tradeoff: {cell['name']}",
        f"Program {_one_line(run['program'])}, {run['people']:,} people ({run[SOURCE]}), "
        f"sweep {run[FINGERPRINT][:16]}",
    ]
    promise = promise_of(cell)
    if promise is not None:
        condition = ", on conditions (see scales)" if conditional else ""
        head.append(f"It promises {told(promise)} on a table of this size{condition}")
    if cell["mechanism"] == TWO_ROUNDS:
        head += IN_TWO_ROUNDS
    if (warning := large_delta(cell["delta"])) is not None:
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


def _mechanism(cell: Mapping[str, Any], notes: dict[str, str], people: int) -> dict[str, Any]:
    name = cell["mechanism"]
    if name == MONDRIAN:
        return {"mechanism": name, "group_size": cell["group_size"]}
    found: dict[str, Any] = {
        "mechanism": name,
        "B": cell["B"],
        "epsilon": cell["epsilon"],
        "delta": cell["delta"],
    }
    more = larger_by_parts(cell["delta"], people)
    notes["delta"] = f"as in the sweep{more}: for a larger table take 1/(rows + 1), or less"
    if name == PROJECTION:
        found["epsilon"] = _projection_epsilon(cell)
        if abs(found["epsilon"] - cell["epsilon"]) > 1e-9:
            notes["epsilon"] = (
                f"the cell has {cell['epsilon']:.6g}; a release splits ε in the paper's proportion, and this "
                f"total has its ε₁ = {cell['epsilon1']:g} and so its noise"
            )
        if cell["parts"] is not None:
            del found["delta"], notes["delta"]
            found["partitions"] = cell["parts"]
            notes["partitions"] = (
                f"sets δ from the number of rows, as the paper does: {up(cell['delta'])} for {people:,} "
                f"rows{more}"
            )
    elif name in {LEAST_NOISE, TWO_ROUNDS}:
        found["mechanism"] = LEAST_NOISE
        notes["mechanism"] = "whichever registered mechanism needs the least noise"
    return found


def _projection_epsilon(cell: Mapping[str, Any]) -> float:
    """The total for which a release's projection has this cell's ε₁, which alone decides its noise."""
    epsilon1 = float(cell["epsilon1"])
    return float(f"{epsilon1 + min(_LARGEST_EPSILON2, epsilon1 / 3):.12g}")


def _one_line(name: str) -> str:
    """A name may hold anything: none of it may end the comment that it stands in."""
    return "".join(c if c.isprintable() else " " for c in name)


def _toml(value: Any) -> str:
    """JSON's texts, numbers and lists are TOML's, but for the delete character."""
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_toml(str(key))} = {_toml(part)}" for key, part in value.items())
        return f"{{ {inner} }}"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
