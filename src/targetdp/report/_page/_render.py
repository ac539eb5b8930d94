"""The page as one HTML file that needs nothing else: charts, controls and styles are inside it.

Also what the guarantee of a setting rests on, in plain words and as a certificate would state it, and who may
read a page.
"""

import base64
import gzip
import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import vl_convert
from markupsafe import Markup

from targetdp._core import __version__, up
from targetdp._files import append_line
from targetdp.programs import MARK as FOR_THE_HOLDER
from targetdp.release import Facts, conditions_of
from targetdp.report._page import _charts as charts
from targetdp.report._page._content import Content
from targetdp.report._page._promise import EPSILONS, agreement_curves
from targetdp.report._page._words import EXPLAINED, PROTECTIONS, glossary, whole
from targetdp.tradeoff import MARK, TUNED_ON, large_delta, read_run, technology_named

_UNITS = {
    "data": "units of the table's own spread",
    "declared": "units that were declared public",
    "confidential": "units that were learned from confidential data",
}
"""Of the columns of a sweep; others were estimated privately."""

PLAIN = (
    "It protects a person's row, among rows that are similar. It does not hide who is in the table, nor how "
    "many people there are.",
    "People who are clearly different stay different: that is what targeting needs, and it can be seen.",
    "It is about one release. Every further release about the same people adds up; the data holder's ledger "
    "counts them.",
    "One row for each person. Someone with several rows is protected less.",
    "What is true of a whole group can still be learned, also about people who are not in the table.",
    "Columns that the data holder has declared public go out as they are, and are not protected.",
    "Attacks that we ran show what attackers achieve at the least, so that people are at most so well "
    "protected. Only the guarantee speaks of all attackers.",
    "Figures of the program come from simulations on the people of this sweep. Intervals tell how much other "
    "noise and another sample of people would change them.",
)


def plain_conditions(run: Mapping[str, Any]) -> tuple[str, ...]:
    """For an official, the most important first."""
    units = _UNITS.get(_scales_source(run), "units that were estimated privately")
    scales = (
        f"In this sweep each column was measured in {units}. In a release it is measured in the data "
        "holder's: public ones, or ones that are estimated privately, for a part of ε. In other units the "
        "same B is another distance."
    )
    parts = run["made_of"]["grid"].get("parts")
    more = () if parts is None else (
        f"δ is the paper's for {parts} random parts of the table: about {parts} times the usual, a weaker "
        "promise to each person. A release has the usual δ, or less, and more noise than was measured here.",
    )  # fmt: skip
    return (scales, *more, *PLAIN)


def stated_conditions(run: Mapping[str, Any]) -> tuple[str, ...]:
    """As the certificate of a release states them, if the holder's scales are like the sweep's, or private.

    What a desk does besides (gaps that it fills, columns that it calls public) is not known here.
    """
    declared = _scales_source(run) == "declared"
    return conditions_of(
        Facts(
            scales="declared" if declared else "private", public=(), features=len(run["features"]), gaps={},
            pseudonyms=True, tuned_on=TUNED_ON[run["source"]], engine="local",
        )
    )  # fmt: skip


def _scales_source(run: Mapping[str, Any]) -> str:
    """Where the scales came from; a sweep that does not say used the table's own."""
    known = run["made_of"].get("scales")
    return "data" if known is None else str(known["source"])


# Who may read a page: figures of confidential rows are for the data holder, unless it decides otherwise.

OVERRIDES = "overrides.jsonl"
"""In the folder of a sweep: every page of confidential rows that was made for others, with the reason."""


def check_audience(folder: Path, audience: str | None, override: str | None) -> None:
    """Refuse a page that its reader must not see, before any work is done."""
    marked = bool(read_run(folder)[MARK])
    if override is not None and not marked:
        raise ValueError("show-confidential was given, but these rows are not confidential: leave it out")
    if override is not None and not override.strip():
        raise ValueError("show-confidential = '' gives no reason: say who decided, and why")
    if override is not None and audience == "data-holder":
        raise ValueError("show-confidential is for a page that others see: leave it out for the data holder")
    if audience == "official" and marked and override is None:
        raise ValueError(
            f"for = official: {FOR_THE_HOLDER[0].lower()}{FOR_THE_HOLDER[1:]} Run the sweep on a public or "
            "older survey, an invented population or people who agreed; or, if the data holder decides to "
            "show them all the same, give the reason with --show-confidential"
        )


def record_override(folder: Path, reason: str, page: str) -> None:
    """Put on record that a page of confidential rows was made for others: when, why, and which."""
    line = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "reason": reason,
        "sha256": hashlib.sha256(page.encode()).hexdigest(),
    }
    append_line(folder / OVERRIDES, json.dumps(line, ensure_ascii=False))


# The HTML.

LARGEST = 3_000_000
"""Bytes of a page at most: it goes out as an attachment."""


def page(content: Content, *, override: str | None = None) -> str:
    """The whole page. ``override`` is the reason why an official may see figures of confidential rows."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("targetdp.report._page"), autoescape=True,
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {"whole": whole, "up": up, "packed": _packed}
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
        specs["chart-ceiling"] = charts.ceiling_chart() | {
            "datasets": {"ceilings": _named(agreement_curves(data["delta"])), "chosen": []}
        }
        # Between computed points the higher one is drawn: a score's ε jumps.
        specs["chart-epsilon"] = charts.distance_chart("epsilon", "exact ε", None, "~g", ".5~g")
        specs["chart-guess"] = charts.distance_chart("guess", "best guess is right", [0.5, 1.0], ".0%", ".1%")
    if data["groups"]["of"]:
        specs["chart-groups"] = charts.group_chart(content.subject.by_group[0][1], len(data["groups"]["of"]))
    return specs


def _named(curves: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each curve has its name at its first step, and figures that are not rounded to a lower ceiling."""
    return [
        curve
        | {
            "name": f"ε = {curve['epsilon']}" if curve["cell"] == 0 else "",
            "top": curve["epsilon"] == f"{EPSILONS[-1]:g}",
            "told": up(curve["share"], 4),
        }
        for curve in curves
    ]


def _packed(value: Any) -> str:
    """JSON as base64 of gzip, which the page's script unpacks.

    A thousand settings must fit into an e-mail, and their sentences and requests differ in numbers only.
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
