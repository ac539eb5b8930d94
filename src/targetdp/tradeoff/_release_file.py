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
from targetdp.tradeoff._study import FINGERPRINT, MARK, SOURCE, fingerprint_of
from targetdp.tradeoff._technology import Cell

TUNED_ON = {"public": "public", "synthetic": "synthetic", "confidential": "this-data"}
"""What a certificate says about the data that B was chosen on."""

NOT_CLIPPED = "its rows are not clipped, as those of a release are"
"""Why nothing is promised of such a cell, and nothing can be released like it."""


FOR_A_LEDGER = "as in the sweep, and refused by a ledger; for a release put a file of public scales here"
"""Beside scales of the data, where a release file has several releases to serve."""


def can_be_made(cell: Mapping[str, Any]) -> bool:
    """Whether `targetdp privatize` can make a release like this cell."""
    return why_not(cell) is None


def why_not(cell: Mapping[str, Any]) -> str | None:
    """Why `targetdp privatize` cannot make a release like this cell, if it cannot."""
    found = Cell(**cell)
    return found.technology.why_not(found) if found.rows == "clip" else NOT_CLIPPED


def promise_of(cell: Mapping[str, Any]) -> Guarantee | None:
    """What the release of a cell promises, by its own release file; None without a guarantee."""
    found = Cell(**cell)
    return found.technology.promise(found)


def format_guarantee(promise: Guarantee) -> str:
    """A guarantee for people; neither ε nor δ is rounded to less than is visible."""
    return f"B = {exact(promise.B)}, ε = {up(promise.epsilon, 6)}, δ = {up(promise.delta)}"


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
    technology, made_of = Cell(**cell).technology, run["made_of"]
    if fingerprint_of(made_of) != run[FINGERPRINT] or cell["rows"] != made_of["told"]["rows"]:
        raise ValueError(
            f"cell {cell['name']!r}: run.json was changed by hand, and nothing is released by it; run the "
            "sweep again in a new folder"
        )
    if (reason := why_not(cell)) is not None:
        remedy = 'sweep with rows = "clip"' if reason == NOT_CLIPPED else technology.remedy
        raise ValueError(f"cell {cell['name']!r}: {reason}; {remedy}")
    given = {"scales": "data"} | run["release"]  # whoever does not say used the table's own
    settings: dict[str, Any] = {"id": given.pop("id", "id"), "features": list(run["features"])}
    own, notes = technology.release_settings(Cell(**cell), run["people"])
    if "id" not in run["release"]:
        notes["id"] = "the program file names no id: put the column that identifies a person here"
    settings |= own
    if not recommended and given["scales"] not in {"data", "private"}:
        given["scales"] = Path(given["scales"]).name
    settings |= given | {"tuned_on": TUNED_ON[run[SOURCE]]}
    known = run.get("made_of", {}).get("scales") or {"source": "data"}
    conditional = settings["scales"] == "data" or known["source"] in {"data", "confidential"}
    if settings["scales"] == "data":
        notes["scales"] = (
            "as in the sweep; the guarantee is then conditional: better a file of public scales, or private"
        )
        if technology.release_steps:
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
        head.append(f"It promises {format_guarantee(promise)} on a table of this size{condition}")
    head += technology.release_steps
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


def _one_line(name: str) -> str:
    """A name may hold anything: none of it may end the comment that it stands in."""
    return "".join(c if c.isprintable() else " " for c in name)


def _toml(value: Any) -> str:
    """JSON's texts, numbers and lists are TOML's, but for the delete character."""
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_toml(str(key))} = {_toml(part)}" for key, part in value.items())
        return f"{{ {inner} }}"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
