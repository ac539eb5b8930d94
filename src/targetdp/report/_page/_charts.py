"""The page's charts, drawn once: the page's script only marks points and moves lines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from targetdp.report._page._first_screen import exposed
from targetdp.report._page._svg import MARKS, Drawing, Ruler, axis, ticks
from targetdp.report._page._words import Subject, label, signed
from targetdp.tradeoff import Comparison, SettingFigures

FEWEST = 1
"""People of 1,000: whatever exposes fewer stands at this end of the axis, which says so."""

_SPARE = 1.6
"""Settings that cost more than so many times what the dearest of a kind's best costs are not drawn."""

_TICKS = {True: (1000, 300, 100, 30, 10, 3, 1), False: (1000, 100, 10, 1)}
"""People of 1,000 at the ticks of a wide chart, and of a narrow one."""

Point = tuple[float, float]


@dataclass(frozen=True)
class Layout:
    """The size of a chart on a kind of screen, and the room around what is drawn."""

    kind: str
    width: float
    height: float
    left: float = 92
    right: float = 24
    top: float = 14
    bottom: float = 52


WIDE = Layout("wide", 960, 400)
PHONE = Layout("phone", 360, 420, left=58, right=14)


def forms_of(comparison: Comparison) -> dict[str, str]:
    """Each kind of release of a sweep, with the mark that stands for it."""
    forms = dict.fromkeys(one.cell.technology.form for one in comparison.settings)
    marks = list(MARKS)
    return {form: marks[i % len(marks)] for i, form in enumerate(forms)}


def figure_of(subject: Subject, one: SettingFigures) -> float | None:
    """What is drawn upwards: the program's figure, such that more is better; today's own is no change."""
    estimate = one.figures.get(subject.metric)
    value = None if estimate is None else estimate.mean
    if value is None:
        return None
    return -value if subject.better == "smallest" else value


def _points(comparison: Comparison, subject: Subject) -> list[tuple[SettingFigures, float, float]]:
    """Settings that have a place: what attacks reached, and the program's figure."""
    return [
        (one, one.exposure.exposed, value)
        for one in comparison.settings
        if one.exposure.exposed is not None and (value := figure_of(subject, one)) is not None
    ]


def _ends(
    known: Sequence[tuple[SettingFigures, float, float]], named: Mapping[str, str]
) -> tuple[float, float]:
    """Between which figures is drawn: whatever costs far more than the best of its kind is left out."""
    values = [value for one, _, value in known if one.on_front or one.cell.name in named]
    low, high = min(values), max(values)
    return low - (high - low) * (_SPARE - 1) * 0.2, high + (high - low) * 0.06


def undrawn(comparison: Comparison, subject: Subject, named: Mapping[str, str]) -> int:
    """How many settings have no mark in the chart."""
    known = _points(comparison, subject)
    low = _ends(known, named)[0] if known else 0.0
    return len(comparison.settings) - sum(value >= low for _, _, value in known)


def tradeoff_chart(
    comparison: Comparison, subject: Subject, named: Mapping[str, str], title: str, layout: Layout
) -> Markup:
    """What each setting costs the program over how many people it exposes; ``named`` are the options."""
    drawing = Drawing(layout.width, layout.height, 13 if layout.kind == "wide" else 12)
    forms = forms_of(comparison)
    known = _points(comparison, subject)
    if not known:
        return Markup("")
    low, high = _ends(known, named)
    fewest = min(max(1000 * exposed, FEWEST) for _, exposed, _ in known)
    end = next(value for value in (30, 10, 3, FEWEST) if value <= fewest * 0.8 or value == FEWEST)
    across = Ruler(1000, end, layout.left + 16, layout.width - layout.right - 10, log=True)
    up = Ruler(low, high, layout.height - layout.bottom, layout.top)
    inner = Ruler(0, 1, layout.top, layout.height - layout.bottom)
    sides = Ruler(0, 1, layout.left, layout.width - layout.right)
    is_wide, bottom = layout.kind == "wide", layout.height - layout.bottom
    axis(
        drawing, across, bottom, [at for at in _TICKS[is_wide] if at >= end],
        lambda value: f"{value:,.0f}" if value > FEWEST else "1 or none" if is_wide else "≤ 1",
        across=True, other=inner,
    )  # fmt: skip
    axis(
        drawing, up, layout.left, ticks(low, high, 5 if is_wide else 4),
        lambda value: _on_axis(subject, value, short=not is_wide), across=False, other=sides,
    )  # fmt: skip
    below = (
        "reached by our attacks, of 1,000: fewer to the right →" if is_wide else "reached of 1,000: fewer →"
    )
    drawing.text(layout.width - layout.right, layout.height - 12, below, "axis", "end")
    drawn = [
        (one, (across(max(1000 * exposed, FEWEST)), up(value)))
        for one, exposed, value in known if value >= low
    ]  # fmt: skip
    fronts: dict[str, list[Point]] = {form: [] for form in forms}
    for one, place in drawn:
        if one.on_front:
            fronts[one.cell.technology.form].append(place)
    for number, front in enumerate(map(sorted, fronts.values())):
        if len(front) > 1:
            drawing.path(front, f"front form-{number}")
    for one, (x, y) in sorted(drawn, key=lambda each: (each[0].on_front, each[0].cell.name in named)):
        best, form = one.on_front or one.cell.name in named, one.cell.technology.form
        drawing.add(
            '<g class="pt form-{}{}" data-i="{}" transform="translate({},{}){}"><title>{}</title>'
            '<path d="{}"/></g>',
            list(forms).index(form), " best" if best else "", comparison.settings.index(one), x, y,
            "" if best else " scale(.55)", _told(subject, one), MARKS[forms[form]],
        )  # fmt: skip
        if best:
            drawing.take(x, y, 6)
    options = [(named[one.cell.name], place) for one, place in drawn if one.cell.name in named]
    for _, (x, y) in options:
        drawing.add('<circle class="ring" cx="{}" cy="{}" r="11"/>', x, y)
        drawing.take(x, y, 11)
    drawing.add('<circle class="own ring" r="11" visibility="hidden"/>')
    for name, place in options:
        drawing.name([place], name, "named", reach=15)
    # Those with the fewest places for a name choose first.
    for number, (form, front) in sorted(enumerate(fronts.items()), key=lambda each: len(each[1][1])):
        drawing.name(sorted(front, reverse=True), form, f"form form-{number}")
    return drawing.svg(title, f"chart {layout.kind}")


def _on_axis(subject: Subject, value: float, *, short: bool) -> str:
    """A value as it stands at a tick: today's is 0 where changes are drawn."""
    own = -value if subject.better == "smallest" else value
    if short and abs(own) >= 10_000:
        text = f"{own / 1000:,.0f}K".replace("-", "−")
        return f"+{text}" if subject.objective.people is not None and own > 0 else text
    return _in_words(subject, own)


def _in_words(subject: Subject, value: float) -> str:
    return signed(value) if subject.objective.people is not None else subject.in_words(value)


def _told(subject: Subject, one: SettingFigures) -> str:
    """What a point says when it is pointed at."""
    estimate = one.figures[subject.metric]
    told = "–" if estimate.mean is None else _in_words(subject, estimate.mean)
    what = f" {subject.axis}" if subject.objective.people else ""
    condition = one.cell.technology.condition
    only = f"; only if {condition}" if condition else ""
    reached = exposed(one.exposure.exposed or 0.0)
    return f"{label(one.cell)}: {told}{what}; attacks reached {reached}{only}"


# Curves of one setting: chances over a distance, drawn at the higher end between computed points.

CURVE = Layout("curve", 560, 240, left=56, right=20)


def steps(points: Sequence[Point], farthest: float) -> str:
    """The path of a curve: from each point on the value of the next, which is the higher one."""
    across, up = _scales(farthest)
    begin, first = points[0]
    path = f"M{across(begin):g},{up(first):g}"
    return path + "".join(f"V{up(value):g}H{across(at):g}" for at, value in points[1:])


def _scales(farthest: float) -> tuple[Ruler, Ruler]:
    across = Ruler(0, farthest, CURVE.left, CURVE.width - CURVE.right)
    return across, Ruler(0.5, 1, CURVE.height - CURVE.bottom, CURVE.top)


def curve_chart(name: str, points: Sequence[Point], farthest: float, below: str, title: str) -> Markup:
    """A chance from a coin's to certainty over a distance; the script moves its line by the same scales."""
    drawing = Drawing(CURVE.width, CURVE.height)
    across, up = _scales(farthest)
    inner = Ruler(0, 1, CURVE.top, CURVE.height - CURVE.bottom)
    sides = Ruler(0, 1, CURVE.left, CURVE.width - CURVE.right)
    low = CURVE.height - CURVE.bottom
    axis(drawing, across, low, ticks(0, farthest), lambda value: f"{value:g}", across=True, other=inner)
    axis(drawing, up, CURVE.left, ticks(0.5, 1), lambda v: f"{100 * v:.0f}", across=False, other=sides)
    drawing.text(CURVE.width - CURVE.right, CURVE.height - 12, below, "axis", "end")
    drawing.add(
        '<path class="curve" data-curve="{}" data-farthest="{}" data-box="{},{},{},{}" d="{}"/>',
        name, farthest, CURVE.left, CURVE.width - CURVE.right, low, CURVE.top,
        steps(points, farthest) if points else "",
    )  # fmt: skip
    return drawing.svg(title, "chart curve-chart")
