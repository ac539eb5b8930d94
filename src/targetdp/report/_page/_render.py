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
from pathlib import Path
from typing import Any

import jinja2

from targetdp._core import __version__
from targetdp._files import append_line
from targetdp.programs import MARK as FOR_THE_HOLDER
from targetdp.release import Facts, conditions_of
from targetdp.report._page._charts import PHONE, WIDE, curve_chart, figure_of, tradeoff_chart, undrawn
from targetdp.report._page._content import Content, dots_of, grid_of, group_headings, table_of
from targetdp.report._page._first_screen import finding, flags, question, row_headings, today_in_words, why
from targetdp.report._page._limits import asked_in_words, limits_of, missed_in_words
from targetdp.report._page._words import AT_MOST, MONEY, PROTECTIONS, glossary, label, whole
from targetdp.tradeoff import MARK, TUNED_ON, SettingFigures, large_delta, read_run, request_text

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
    delta = (
        f"δ of this sweep is for a table of {run['people']:,} rows. A table of fewer rows, or a sample of "
        "it, has a larger δ, unless the data holder's policy says otherwise: less noise, and best guesses "
        "that are right a little more often than is shown here."
    )
    return (scales, delta, *more, *PLAIN)


def stated_conditions(run: Mapping[str, Any]) -> tuple[str, ...]:
    """As the certificate of a release states them, if the holder's scales are like the sweep's, or private.

    What a desk does besides (gaps that it fills, columns that it calls public) is not known here.
    """
    declared = _scales_source(run) == "declared"
    return conditions_of(
        Facts(
            scales="declared" if declared else "private", public=(), columns=len(run["features"]), gaps={},
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

LARGEST = 1_500_000
"""Bytes of a page at most: it goes out as an attachment."""

_MOST_LISTED = 300
"""Settings in the table of all; of a larger sweep those that are the best of their kind, and the first."""

_MOST_PRINTED = 12
"""Settings in the table on paper: today, the options, those that meet the limits, those that cost least."""


def page(content: Content, *, override: str | None = None) -> str:
    """The whole page. ``override`` is the reason why an official may see figures of confidential rows."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("targetdp.report._page"), autoescape=True,
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters.update(whole=whole, packed=_packed, ended=_ended)
    comparison, subject, shown = content.comparison, content.subject, content.shown
    promise = None if shown is None else shown["promise"]
    text = environment.get_template("page.html").render(
        c=content,
        **_first_screen(content),
        **_tables(content),
        **_charts(content),
        all_limits=limits_of(subject, comparison),
        first_request="" if shown is None else _first_request(content),
        limit_words=asked_in_words(subject, comparison),
        verdict=_verdict(content),
        near=comparison.recommendation.near_misses,
        upwards=f"{subject.axis}, upwards {'fewer' if subject.better == 'smallest' else 'more'}",
        at_most=AT_MOST,
        headings=group_headings(subject),
        group_people=[whole(one.people) for one in comparison.groups.each],
        alike=[one["words"] for one in comparison.run["alike_groups"]],
        glossary=glossary(),
        conditions=plain_conditions(content.run),
        stated=stated_conditions(content.run),
        warning=None if promise is None else large_delta(promise["delta"]),
        override=override,
        version=__version__,
    )
    text = _unparted(text)
    size = len(text.encode())
    if size > LARGEST:
        raise ValueError(
            f"the page would have {size:,} bytes, more than {LARGEST:,}: report a sweep with fewer cells or "
            "groups"
        )
    return text


def _first_request(content: Content) -> str:
    """The request as the page begins, for readers without a script: with the limits that it began with."""
    number = content.data["begin"]
    limits = asked_in_words(content.subject, content.comparison)
    return request_text(content.run, content.comparison.settings[number].cell, limits=limits)


def _first_screen(content: Content) -> dict[str, Any]:
    """The question, the program as it is, why the recommended setting is, and the columns of the table."""
    comparison, subject = content.comparison, content.subject
    columns = [comparison.today, *(content.setting(one.cell) for one in comparison.options)]
    return {
        "question": question(subject, comparison.population),
        "lead": today_in_words(
            subject, comparison.today.figures, comparison.run["people"], comparison.population
        ),
        "why": why(comparison, subject),
        "flags": flags(comparison, subject),
        "rows": row_headings(subject),
        "columns": [{"cells": grid_of(comparison, subject, one), "dots": dots_of(one)} for one in columns],
        "missed": {one.name: missed_in_words(subject, one) for one in comparison.recommendation.results},
        "names": {number: name for name, number in content.data["options"]},
        "numbers": {one.cell.name: i for i, one in enumerate(comparison.settings)},
    }


def _tables(content: Content) -> dict[str, Any]:
    """The best settings of each kind, and all settings."""
    comparison, subject = content.comparison, content.subject
    named = {one.cell for one in comparison.options}
    order = sorted(
        (one for one in comparison.settings if one.on_front or one.cell.name in named),
        key=lambda one: (one.cell.technology.form, -(one.exposure.exposed or 0.0)),
    )
    place = {one.cell.name: i for i, one in enumerate(comparison.settings)}
    fitting = {one.name for one in comparison.recommendation.results if not one.excluded_by}
    printed = sorted(
        order,
        key=lambda one: (
            one is not comparison.today and one.cell.name not in named, one.cell.name not in fitting,
            -(figure_of(subject, one) or 0.0),
        ),
    )[:_MOST_PRINTED]  # fmt: skip
    best = [
        {"i": place[one.cell.name], "label": label(one.cell), "choosable": one.choosable,
         "cells": grid_of(comparison, subject, one), "why_not": "" if one.choosable else _why_not(one),
         "more": one not in printed}
        for one in order
    ]  # fmt: skip
    headings, rows = table_of(content)
    told = [
        (i, label(one.cell), one.choosable, texts)
        for i, (one, texts) in enumerate(rows)
        if len(rows) <= _MOST_LISTED or one.on_front or one.cell.name in named
    ]
    unmeasured = [heading for name, heading in PROTECTIONS.items() if heading not in headings]
    return {
        "best": best, "all_headings": headings, "all_rows": told, "unlisted": len(rows) - len(told),
        "unmeasured": unmeasured,
    }  # fmt: skip


def _why_not(one: SettingFigures) -> str:
    condition = one.cell.technology.condition
    return f"for comparison only: it needs that {condition}" if condition else "for comparison only"


def _charts(content: Content) -> dict[str, Any]:
    """Every chart, drawn."""
    named = {one.cell: one.name for one in content.comparison.options}
    title = finding(content.comparison, content.subject)
    measured = {metric for one in content.comparison.settings for metric in one.figures}
    about: dict[str, Any] = {
        "finding": title,
        "both": "inference" in measured,
        "agreed": any(one.cell.technology.condition for one in content.comparison.settings),
        "undrawn": undrawn(content.comparison, content.subject, named),
    }
    found: dict[str, Any] = about | {
        f"chart_{layout.kind}": tradeoff_chart(content.comparison, content.subject, named, title, layout)
        for layout in (WIDE, PHONE)
    }
    if (shown := content.shown) is not None:
        guess = [(at, guess) for at, _, guess in shown["curve"]]
        steps = shown["agreement"]
        sure = [(at, steps[max(0, i - 1)][1]) for i, (at, _) in enumerate(steps)]
        found |= {
            "chart_guess": curve_chart(
                "guess", guess, 2.0, "distance between the two", "How often the best guess is right"
            ),
            "chart_sure": curve_chart(
                "sure", sure, 5.0, "distance from the cut, in B", "How many decisions can be today's"
            ),
        }  # fmt: skip
    return found


def _verdict(content: Content) -> str:
    """What stands above the limits without a script."""
    advice, settings = content.comparison.recommendation, content.data["settings"]
    if not settings:
        return "This sweep has no setting that could be released with a guarantee."
    many = sum(not one.excluded_by and one.cell.why_not is None for one in advice.results)
    return f"{many} of {len(settings)} settings meet your limits."


def _ended(heading: str) -> str:
    """A heading that stands in the line of what it is about."""
    return heading if heading.endswith("?") else f"{heading}:"


def _unparted(text: str) -> str:
    """Words of which no line ends between a minus and the sign of its currency."""
    for sign in MONEY:
        text = text.replace(f"−{sign}", f"−\u2060{sign}")
    return text


def _packed(value: Any) -> str:
    """JSON as base64 of gzip, which the page's script unpacks.

    A thousand settings must fit into an e-mail, and their sentences and requests differ in numbers only.
    Whatever names are in it, it cannot end the element that holds it.
    """
    text = _unparted(json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")))
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()
