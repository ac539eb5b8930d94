"""From content to one HTML file that needs nothing else: charts, controls and styles are inside it."""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import jinja2
import vl_convert
from markupsafe import Markup

from targetdp._core import __version__, up
from targetdp.report._page import _charts as charts
from targetdp.report._page._conditions import plain_conditions, stated_conditions
from targetdp.report._page._content import Content
from targetdp.report._page._promise import EPSILONS, SMALLEST, ceiling_curves
from targetdp.report._page._words import EXPLAINED, PROTECTIONS, glossary, safe_share, whole
from targetdp.tradeoff import large_delta, technology_named

# A page's data made small: what settings share is written once. `templates/unfold.js` is the inverse.
#
# A thousand settings must still fit into an e-mail. Their sentences and release files differ in numbers
# only, so that each is kept as its pattern and the numbers that go into it; what depends on B alone is kept
# once for each B; and of curves, which share most of their distances, the heights are kept.

Data = dict[str, Any]

_NUMBER = re.compile(r"([0-9][0-9.,]*)")
_TEXTS = ("cost", "derived", "promise_told", "toml")
_BY_B = ("crowd", "profiles")


def packed(data: Mapping[str, Any]) -> Data:
    """The data as a page carries them."""
    choosable = [cell for cell in data["cells"] if cell["choosable"]]
    patterns: dict[tuple[str, ...], int] = {}
    places: dict[float, int] = {}
    by_B: list[Data] = []
    for cell in choosable:
        if cell["B"] not in places:
            places[cell["B"]] = len(by_B)
            by_B.append({name: cell[name] for name in _BY_B})
    everywhere = [{at[0] for at in cell["curve"]} for cell in choosable]
    shared = sorted(set.intersection(*everywhere)) if everywhere else []
    cells = []
    for cell in data["cells"]:
        small = cell | {"label": _text(cell["label"], patterns)}
        if cell["choosable"]:
            small |= {name: _text(cell[name], patterns) for name in _TEXTS}
            small |= {
                "exchange": [_text(line, patterns) for line in cell["exchange"]],
                "curve": _curve(cell["curve"], shared),
                "by_B": places[cell["B"]],
            }
        cells.append({name: value for name, value in small.items() if name not in _BY_B})
    return {**data, "cells": cells, "patterns": list(patterns), "by_B": by_B, "distances": shared}


def _text(text: str, patterns: dict[tuple[str, ...], int]) -> tuple[int, str]:
    """The number of the text's pattern (all that is no number), and its numbers."""
    pieces = _NUMBER.split(text)
    return patterns.setdefault(tuple(pieces[::2]), len(patterns)), " ".join(pieces[1::2])


def _curve(curve: Sequence[Sequence[float | None]], shared: Sequence[float]) -> Data:
    """At shared distances the best guess, and ε where it is known; all of the others."""
    known = {at[0]: at for at in curve}
    return {
        "guess": [known[r][2] for r in shared],
        "epsilon": {i: known[r][1] for i, r in enumerate(shared) if known[r][1] is not None},
        "own": [at for at in curve if at[0] not in set(shared)],
    }


LARGEST = 3_000_000
"""Bytes of a page at most: it goes out as an attachment."""


def page(content: Content, *, override: str | None = None) -> str:
    """The whole page. ``override`` is the reason why an official may see figures of confidential rows."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("targetdp.report._page"), autoescape=True,
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {"whole": whole, "up": up, "safe": safe_share, "json": _script_json}
    text = environment.get_template("page.html").render(
        c=content,
        run=content.run,
        subject=content.subject,
        data=content.data,
        small=packed(content.data),
        chosen=content.chosen,
        specs=_specs(content),
        protections={name: PROTECTIONS[name] for name in content.data["protections"]},
        headings=PROTECTIONS,
        explained=EXPLAINED,
        glossary=glossary(),
        conditions=plain_conditions(content.run),
        stated=stated_conditions(content.run),
        warning=large_delta(content.data["delta"]),
        mark=content.mark,
        override=override,
        data_population=content.population,
        library=_library(),
        version=__version__,
        scales=content.run["made_of"].get("scales"),
    )
    size = len(text.encode())
    if size > LARGEST:
        raise ValueError(
            f"the page would have {size:,} bytes, more than {LARGEST:,}: report a sweep with fewer cells or "
            "groups"
        )
    return text


def _specs(content: Content) -> dict[str, Any]:
    """Every chart of the page by the id of its place."""
    data, subject = content.data, content.subject
    kinds = list(dict.fromkeys(technology_named(cell["mechanism"]).label for cell in data["cells"]))
    specs = {f"chart-{name}": charts.tradeoff_chart(subject, name, kinds) for name in data["protections"]}
    if data["delta"] is not None:
        smallest = min(SMALLEST, *(cell["B"] for cell in data["cells"] if cell["B"] is not None))
        specs["chart-ceiling"] = charts.ceiling_chart(smallest) | {
            "datasets": {"ceilings": _named(ceiling_curves(data["delta"], smallest)), "chosen": []}
        }
        # For several columns ε bends upwards (tested), so that straight lines are never below it.
        one = len(content.run["features"]) == 1
        specs["chart-epsilon"] = charts.distance_chart("epsilon", "exact ε", None, "~g", steps=one)
        specs["chart-guess"] = charts.distance_chart("guess", "best guess is right", [0.5, 1.0], ".0%")
    if data["groups"]["of"]:
        specs["chart-groups"] = charts.group_chart(data["groups"]["headings"][0], len(data["groups"]["of"]))
    return specs


def _named(curves: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each curve has its name at its last long step, and figures that are not rounded to a lower ceiling."""
    return [
        curve
        | {
            "name": f"ε = {curve['epsilon']}" if curve["B"] == 1 else "",
            "top": curve["epsilon"] == f"{EPSILONS[-1]:g}",
            "told": up(curve["ceiling"], 4),
        }
        for curve in curves
    ]


def _script_json(value: Any) -> Markup:
    """JSON that can stand inside a script element, whatever names are in it."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for odd in "<>&\u2028\u2029":
        text = text.replace(odd, f"\\u{ord(odd):04x}")
    return Markup(text)  # noqa: S704 (escaped above)


@cache
def _library() -> Markup:
    """Vega, Vega-Lite and Vega-Embed in one script; it must not end the element that holds it."""
    script = vl_convert.javascript_bundle()  # type: ignore[call-arg]  # all three, by default
    if "</script" in script.lower():
        raise RuntimeError("the chart library cannot be put into a page: please report this")
    return Markup(script)  # noqa: S704 (our own dependency, not input)
