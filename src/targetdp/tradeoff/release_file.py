"""The release file that `targetdp privatize` takes, for a cell of a sweep."""

import json
import tomllib
from collections.abc import Mapping
from typing import Any

from targetdp.programs.file import MARK as FOR_THE_HOLDER
from targetdp.release.settings import make_settings
from targetdp.tradeoff.grid import LEAST_NOISE, MONDRIAN, PROJECTION
from targetdp.tradeoff.mark import FINGERPRINT, MARK, SOURCE

TUNED_ON = {"public": "public", "synthetic": "synthetic", "confidential": "this-data"}
"""What a certificate says about the data that B was chosen on."""

_LARGEST_EPSILON2, _DEFAULT_K = 0.9999, 10_000


def release_text(run: Mapping[str, Any], cell: Mapping[str, Any]) -> str:
    """TOML with comments. It is read back and checked before it is handed over.

    Guarantees: a release of a table of the same size has the noise that the sweep measured.
    """
    given = dict(run["release"])
    notes: dict[str, str] = {}
    settings: dict[str, Any] = {"id": given.pop("id", "id"), "features": list(run["features"])}
    if "id" not in run["release"]:
        notes["id"] = "the program file names no id: put the column that identifies a person here"
    settings |= _mechanism(cell, notes)
    settings |= given | {"tuned_on": TUNED_ON[run[SOURCE]]}
    if settings["scales"] == "data":
        notes["scales"] = (
            "as in the sweep; the guarantee is then conditional: better a file of public scales, or private"
        )
    head = [
        f"Recommended by targetdp tradeoff: {cell['name']}",
        f"Program {run['program']}, {run['people']:,} people ({run[SOURCE]}), sweep {run[FINGERPRINT][:16]}",
    ]
    if run[MARK]:
        head.insert(0, FOR_THE_HOLDER)
    lines = [f"# {line}" for line in head]
    for name, value in settings.items():
        note = f"  # {notes[name]}" if name in notes else ""
        lines.append(f"{name} = {_toml(value)}{note}")
    text = "\n".join(lines) + "\n"
    make_settings(tomllib.loads(text))
    return text


def _mechanism(cell: Mapping[str, Any], notes: dict[str, str]) -> dict[str, Any]:
    name = cell["mechanism"]
    if name == MONDRIAN:
        return {"mechanism": name, "group_size": cell["group_size"]}
    found: dict[str, Any] = {
        "mechanism": name,
        "B": cell["B"],
        "epsilon": cell["epsilon"],
        "delta": cell["delta"],
    }
    notes["delta"] = "as in the sweep, for a table of its size"
    if name == PROJECTION:
        found["epsilon"] = _projection_epsilon(cell, notes)
        if cell["parts"] is not None:
            del found["delta"], notes["delta"]
            found["partitions"] = cell["parts"]
            notes["partitions"] = "sets δ from the number of rows, as the paper does"
    elif name == LEAST_NOISE:
        notes["mechanism"] = "whichever registered mechanism needs the least noise"
    return found


def _projection_epsilon(cell: Mapping[str, Any], notes: dict[str, str]) -> float:
    """The total for which a release's projection has this cell's ε₁, which alone decides its noise."""
    epsilon1 = float(cell["epsilon1"])
    total = float(f"{epsilon1 + min(_LARGEST_EPSILON2, epsilon1 / 3):.12g}")
    if abs(total - cell["epsilon"]) > 1e-9:
        notes["epsilon"] = (
            f"the cell has {cell['epsilon']:.6g}; a release splits ε in the paper's proportion, and this "
            f"total has its ε₁ = {epsilon1:g} and so its noise"
        )
    if cell["k"] != _DEFAULT_K:
        notes["mechanism"] = f"with k = {_DEFAULT_K}, not the cell's {cell['k']}"
    return total


def _toml(value: Any) -> str:
    """JSON's texts, numbers and lists are TOML's, but for the delete character."""
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_toml(str(key))} = {_toml(part)}" for key, part in value.items())
        return f"{{ {inner} }}"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
