"""From content to one HTML file that needs nothing else: charts, controls and styles are inside it."""

import base64
import gzip
import json
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

LARGEST = 3_000_000
"""Bytes of a page at most: it goes out as an attachment."""


def page(content: Content, *, override: str | None = None) -> str:
    """The whole page. ``override`` is the reason why an official may see figures of confidential rows."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("targetdp.report._page"), autoescape=True,
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {"whole": whole, "up": up, "safe": safe_share, "packed": _packed}
    text = environment.get_template("page.html").render(
        c=content,
        specs=_specs(content),
        protections={name: PROTECTIONS[name] for name in content.data["protections"]},
        headings=PROTECTIONS,
        explained=EXPLAINED,
        glossary=glossary(),
        conditions=plain_conditions(content.run),
        stated=stated_conditions(content.run),
        warning=large_delta(content.data["delta"]),
        override=override,
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


def _packed(value: Any) -> str:
    """JSON as base64 of gzip, which the page's script unpacks.

    A thousand settings must fit into an e-mail, and their sentences and release files differ in numbers only.
    Whatever names are in it, it cannot end the element that holds it.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


@cache
def _library() -> Markup:
    """Vega, Vega-Lite and Vega-Embed in one script; it must not end the element that holds it."""
    script = vl_convert.javascript_bundle()  # type: ignore[call-arg]  # all three, by default
    if "</script" in script.lower():
        raise RuntimeError("the chart library cannot be put into a page: please report this")
    return Markup(script)  # noqa: S704 (our own dependency, not input)
