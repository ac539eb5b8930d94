"""The page's charts, as Vega-Lite by Altair. Data come later, by name: the page's controls hand them over.

One direction everywhere: to the right is more private, up serves the program better.
"""

from typing import Any, Literal

import altair as alt

from targetdp.report._page._promise import CELLS
from targetdp.report._page._words import AXES, Subject
from targetdp.tradeoff import STATUS_QUO, technology_named

Spec = dict[str, Any]

_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#999933", "#AA4499")
_SHAPES = (
    "circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left",
)  # fmt: skip
"""Okabe and Ito's colors, and two of Tol's, told apart by the color-blind; shapes say the same without."""

_BLUE, _ORANGE = "var(--chart-blue)", "var(--chart-orange)"
"""Colors of single curves and marks: the page's style has them, since blue must be lighter on black."""

_HEIGHT = 260
_NUMBER = ",.12~g"
"""Thousands are separated, and fractions are shown where there are any."""
_PALE_TEXT = 0.7
"""Faded names can still be read."""


def tradeoff_chart(subject: Subject, protection: str, kinds: list[str]) -> Spec:
    """The program's figure over one protection: a curve for each kind of noise, a point for each setting."""
    colors = alt.Scale(domain=kinds, range=[_color(kind, i) for i, kind in enumerate(kinds)])
    shapes = alt.Scale(domain=kinds, range=[_shape(kind, i) for i, kind in enumerate(kinds)])
    down = subject.better == "smallest"
    x = (
        alt.X("x:Q")
        .title(f"{AXES[protection]}  (more private →)")
        .scale(domain=[0, 1])
        .axis(tickCount=5, labelFlush=False)
    )
    y = (
        alt.Y("y:Q")
        .title(subject.axis)
        .axis(format=_NUMBER, tickCount=6)
        .scale(reverse=down, zero=False, nice=True, padding=12)
    )
    legend = alt.Legend(title=None, orient="top", columns=1, symbolSize=90, symbolOpacity=1, labelLimit=240)
    color = alt.Color("kind:N").scale(colors).legend(legend)
    shape = alt.Shape("kind:N").scale(shapes).legend(legend)
    bright = _either("datum.fits", 1, 0.45)
    base = alt.Chart(alt.NamedData("points"))
    tooltip = [
        alt.Tooltip("label:N", title="setting"),
        alt.Tooltip("y_told:N", title=subject.axis),
        alt.Tooltip("x_told:N", title=AXES[protection]),
        alt.Tooltip("guess:N", title="best guess of anyone, at B"),
        alt.Tooltip("guess_at_2:N", title="best guess, at distance 2"),
        alt.Tooltip("says:N", title="your limits"),
    ]
    lines = (
        base.transform_filter("datum.curve").mark_line(strokeWidth=1.5, opacity=0.5, aria=False)
        .encode(x=x, y=y, color=color, order="order:Q")
    )  # fmt: skip
    up_down = base.mark_rule(strokeWidth=1.5, aria=False).encode(
        x=x, y=alt.Y("y_low:Q"), y2="y_high:Q", color=color, opacity=bright
    )
    left_right = base.mark_rule(strokeWidth=1.5, aria=False).encode(
        x=alt.X("x_low:Q"), x2="x_high:Q", y=y, color=color, opacity=bright
    )
    # Hollow says the same as pale, also on a bad printer.
    points = base.mark_point(size=90, strokeWidth=1.5).encode(
        x=x, y=y, color=color, fill=alt.Fill("kind:N").scale(colors).legend(legend), shape=shape,
        opacity=_either("datum.fits", 1, 0.65), fillOpacity=_either("datum.fits", 1, 0),
        size=_either("datum.chosen", 320, 90), tooltip=tooltip, description="said:N",
    )  # fmt: skip
    ring = (
        base.transform_filter("datum.chosen")
        .mark_point(filled=False, size=700, strokeWidth=2, shape="circle", aria=False)
        .encode(x=x, y=y, color=alt.value("currentColor"))
    )
    # Curves run into each other at the private end: names of one kind stand left, of the others right.
    left, right = (
        base.transform_filter(f"datum.text != '' && datum.left == {str(side).lower()}")
        .mark_text(
            align="right" if side else "left", dy=-6, fontSize=11, aria=False,
            dx=alt.expr(f"(datum.chosen ? 18 : 9) * {-1 if side else 1}"),  # outside of the ring
        )
        .encode(
            x=x, y=y, text="text:N", color=alt.value("currentColor"),
            opacity=_either("datum.fits", 1, _PALE_TEXT),
        )
        for side in (True, False)
    )  # fmt: skip
    title = f"{subject.axis} over {AXES[protection].lower()}"
    return _spec(
        lines + up_down + left_right + points + ring + left + right,
        title,
        better="↑ serves the program better",
    )


def ceiling_chart() -> Spec:
    """The highest agreement with today's decisions over the distance from the cut, for a few ε."""
    base = alt.Chart(alt.NamedData("ceilings"))
    x = alt.X("cell:Q").title("distance from the cut, in units of B").scale(domain=[0, CELLS]).axis(
        values=list(range(CELLS + 1)), format="~g", labelFlush=False
    )  # fmt: skip
    y = alt.Y("share:Q").title("highest possible agreement").scale(domain=[0.5, 1.0])
    told = alt.Tooltip("told:N", title="agreement at most")
    curves = base.mark_line(interpolate="step-after", strokeWidth=1.5, opacity=0.75).encode(
        x=x, y=y, detail="epsilon:N", color=alt.value(_BLUE),
        strokeDash=alt.StrokeDash("epsilon:N").legend(None),
        tooltip=[alt.Tooltip("epsilon:N", title="ε"), alt.Tooltip("cell:Q", title="distance in B"), told],
    )  # fmt: skip
    # The top curve's name stands above it, where nothing else is; the others' below their own step.
    names = base.transform_filter("datum.name != ''").mark_text(
        align="left", dx=3, dy=alt.expr("datum.top ? -7 : 9"), fontSize=11
    ).encode(x=x, y=y, text="name:N", color=alt.value("currentColor"))  # fmt: skip
    mark = alt.Chart(alt.NamedData("chosen")).encode(x=x, y=y)
    chosen = mark.mark_line(interpolate="step-after", strokeWidth=3).encode(
        color=alt.value(_ORANGE),
        tooltip=[alt.Tooltip("label:N", title="chosen setting"),
                 alt.Tooltip("cell:Q", title="distance in B"), told],
    )  # fmt: skip
    name = mark.transform_filter("datum.name != ''").mark_text(
        align="right", dx=-4, dy=14, fontSize=12, fontWeight="bold"
    ).encode(text="name:N", color=alt.value("currentColor"))  # fmt: skip
    return _spec(curves + names + chosen + name, "Highest possible agreement by distance from the cut")


def distance_chart(field: str, title: str, domain: list[float] | None, fmt: str, told: str) -> Spec:
    """What the noise means at any distance: ``epsilon``, or the best ``guess``; in steps, never below.

    ``fmt`` is how the axis has its numbers, ``told`` how tooltips have them.
    """
    base = alt.Chart(alt.NamedData("curve"))
    x = (
        alt.X("r:Q").title("distance between the two rows  (less alike →)").scale(domain=[0, 2])
        .axis(tickCount=5, labelFlush=False)
    )  # fmt: skip
    scale = alt.Scale(domain=domain) if domain else alt.Scale(zero=True)
    # A vertical title is turned: its arrow to the left points down.
    y = alt.Y(f"{field}:Q").title(f"{title}  (← more private)").scale(scale).axis(format=fmt)
    # In steps: between two points the higher one is shown, never less than there is.
    shape: Literal["step-before"] = "step-before"
    line = base.mark_line(strokeWidth=1.5, color=_BLUE, interpolate=shape).encode(x=x, y=y)
    dots = base.mark_point(filled=True, size=60, opacity=1).encode(
        x=x, y=y,
        color=_either("datum.is_B", _ORANGE, _BLUE),
        shape=_either("datum.is_B", "diamond", "circle"),
        size=_either("datum.is_B", 200, 30),
        tooltip=[alt.Tooltip("r:Q", title="distance"), alt.Tooltip(f"{field}:Q", title=title, format=told)],
    )  # fmt: skip
    name = base.transform_filter("datum.is_B").mark_text(
        align="left", dx=10, dy=12, fontSize=12, fontWeight="bold"
    ).encode(x=x, y=y, text="name:N", color=alt.value("currentColor"))  # fmt: skip
    return _spec(line + dots + name, f"{title} over distance")


def group_chart(heading: str, groups: int) -> Spec:
    """The change for each group, with its interval; no change is the line at 0."""
    base = alt.Chart(alt.NamedData("groups"))
    y = alt.Y("name:N").title(None).sort(None).axis(labelLimit=220)
    zero = alt.Chart(alt.NamedData("zero")).mark_rule(strokeDash=[4, 3], opacity=0.7).encode(
        x="x:Q", color=alt.value("currentColor")
    )  # fmt: skip
    reach = base.mark_rule(strokeWidth=2).encode(
        x=alt.X("low:Q")
        .title(f"{heading}, against today")
        .axis(format=_NUMBER, tickCount=5, labelFlush=False),
        x2="high:Q", y=y, color=alt.value(_BLUE),
    )  # fmt: skip
    dots = base.mark_point(filled=True, size=80, color=_BLUE, opacity=1).encode(
        x="mean:Q", y=y,
        tooltip=[alt.Tooltip("name:N", title="group"), alt.Tooltip("told:N", title=heading)],
    )  # fmt: skip
    return _spec(zero + reach + dots, f"{heading} by group", height=24 * groups + 10)


def _spec(chart: Any, description: str, height: Any = _HEIGHT, better: str | None = None) -> Spec:
    if better is not None:
        chart = chart.properties(
            title=alt.Title(better, anchor="start", fontSize=12, fontWeight="normal", color="currentColor")
        )
    spec: Spec = (
        chart.properties(
            width="container", height=height, description=description, background="transparent",
            # `resize`: names of points that come later need room, too.
            autosize=alt.AutoSizeParams(type="fit-x", contains="padding", resize=True),
        )
        .configure(font="system-ui, sans-serif")
        .configure_view(stroke=None)
        .configure_axis(
            labelColor="currentColor", titleColor="currentColor", domainColor="currentColor",
            tickColor="currentColor", gridColor="currentColor", gridOpacity=0.12, labelFontSize=11,
            titleFontSize=12, titleFontWeight="normal",
        )
        .configure_legend(labelColor="currentColor", titleColor="currentColor", labelFontSize=12)
        .to_dict()
    )  # fmt: skip
    spec.pop("$schema", None)  # the page carries its own Vega-Lite, and no address of any host
    return spec


def _either(test: str, yes: Any, no: Any) -> Any:
    """One value where a test of the data holds, another where it does not."""
    return alt.when(test).then(alt.value(yes)).otherwise(alt.value(no))


def _color(kind: str, at: int) -> str:
    return "#767676" if kind == _today() else _COLORS[at % len(_COLORS)]


def _shape(kind: str, at: int) -> str:
    return _SHAPES[0] if kind == _today() else _SHAPES[1:][(at - 1) % (len(_SHAPES) - 1)]


def _today() -> str:
    return technology_named(STATUS_QUO).label
