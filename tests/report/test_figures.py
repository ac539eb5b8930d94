"""Figures of sweeps that are as they should be, and of sweeps that lack something."""

import hashlib
import html
import io
import json
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from PIL import Image

import targetdp
from support.release import cli, words
from support.tradeoff import TINY, study, sweep
from targetdp._core import down
from targetdp.guarantee import Guarantee
from targetdp.mechanisms import noise_mechanisms
from targetdp.programs import MARK
from targetdp.report import (
    FORMATS,
    accuracy_figure,
    choose,
    compare_noise,
    draw_all,
    epsilon_curves,
    epsilon_figure,
    first_look,
    noise_figure,
    read_program,
    save_figures,
    tradeoff_figure,
)
from targetdp.report._figures import _drawing as drawing
from targetdp.report._figures import _drawing as saving
from targetdp.report._figures._choice import Release, ShownCells, SweptProgram
from targetdp.report._figures._curves import TOGO, EpsilonCurves, NoiseComparison
from targetdp.report._figures._drawing import CAPTIONS, Drawn, rendered
from targetdp.report._figures._style import SMALL, WHITE, delta_words, epsilon_words, printable, short
from targetdp.report._figures._style import applied as style
from targetdp.tradeoff import INSIDER, STRANGER, Estimate, run, shown

GRID = (0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.0)
Kinds = tuple[str, ...]


def between(mean: float, reach: float = 0.01) -> Estimate:
    return Estimate(mean, mean - reach, mean + reach)


def release(mechanism: str, kind: str | None, price: float, protection: float, **more: Any) -> Release:
    """A price from 0 (the status quo's figures) to 1 (chance)."""
    figures = {
        "accuracy": between(0.75 - 0.15 * price),
        "singling_out": between(protection),
        "attribute_inference": between(min(1.0, protection * 1.2), 0.03),
        "inference": between(protection * 0.6, 0.03),
        "best_guess": between(0.97 if mechanism == "score" else 0.7712, 0),
        "best_guess_at_2": between(0.99991, 0),
        "distinguishing": between(protection**3, 0),
        "exact_epsilon": between(0.5122 if mechanism == "projection" else 3.9999, 0),
    }
    if kind == "aid":
        figures["exclusion_errors"] = between(700_000 + 250_000 * price, 4000)
        figures["extra_exclusion_errors"] = between(250_000 * price, 4000)
    elif kind == "lending":
        figures["profit"] = between(6000 - 30_000 * price, 300)
    return Release(mechanism, mechanism, figures=figures, **more)


def program(
    kind: str | None = "aid",
    Bs: tuple[float, ...] = GRID,
    mechanisms: Kinds = ("projection", "least-noise"),
    sizes: tuple[int, ...] = (2, 5),
    epsilons: tuple[float, ...] = (2.9999, 3.9999),
    **more: Any,
) -> SweptProgram:
    found = [release("status quo", kind, 0, 0.0)]
    for mechanism in mechanisms:
        for B in Bs:
            for epsilon in epsilons:
                loud = 0.5 if mechanism == "projection" else 0.1 * (1 + len(mechanism) % 3)
                price = (B / 2) ** (1 - loud) * (4 / epsilon) ** 0.1
                protection = 1 - 0.6 * (1 - (B / 2) ** 0.3) * (1 - loud)
                found.append(
                    release(
                        mechanism, kind, price, protection, B=B, epsilon=epsilon, delta=1 / 4202,
                        epsilon2=0.9999 if mechanism == "projection" else None,
                        k=10_000 if mechanism == "projection" else None,
                    )
                )  # fmt: skip
    found += [release("mondrian", kind, 0.05 * size, 0.95, group_size=size) for size in sizes]
    metric, best = {"aid": ("exclusion_errors", "smallest"), "lending": ("profit", "largest")}.get(
        kind or "", ("accuracy", "largest")
    )
    given: dict[str, Any] = {
        "name": f"small {kind}", "metric": metric, "best": best, "people": 4201, "simulations": 50,
        "unit": "$" if kind == "lending" else "people", "source": "synthetic", "scales": "data",
        "for_the_data_holder_only": False, "releases": tuple(found), "chance": 0.588, "kind": kind,
    } | more  # fmt: skip
    return SweptProgram(**given)


def tried_once(one: SweptProgram) -> SweptProgram:
    """One simulation: no intervals but those of attacks."""
    attacks = ("singling_out", "attribute_inference", "inference")
    return replace(
        one,
        simulations=1,
        releases=tuple(
            replace(it, figures={k: v if k in attacks else Estimate(v.mean) for k, v in it.figures.items()})
            for it in one.releases
        ),
    )


def without(one: SweptProgram, *metrics: str) -> SweptProgram:
    return replace(
        one,
        releases=tuple(
            replace(it, figures={k: v for k, v in it.figures.items() if k not in metrics})
            for it in one.releases
        ),
    )


def lossy(one: SweptProgram) -> SweptProgram:
    """Every profit is a loss."""
    return replace(
        one,
        releases=tuple(
            replace(it, figures=dict(it.figures) | {"profit": between((it.figure("profit").mean or 0) - 1e6)})
            for it in one.releases
        ),
    )


def protected(one: SweptProgram, protection: float) -> SweptProgram:
    """Every release is so private, but the status quo."""
    figures = dict.fromkeys(("singling_out", "inference", "distinguishing"), between(protection, 0.001))
    return replace(
        one,
        releases=tuple(
            it if it.mechanism == "status quo" else replace(it, figures=dict(it.figures) | figures)
            for it in one.releases
        ),
    )


def of_another_kind(one: SweptProgram) -> SweptProgram:
    """Its objective is its own, and nobody here knows words for it."""
    return replace(
        one, kind="rations", metric="meals_missed", best="smallest", unit="meals",
        releases=tuple(
            replace(it, figures=dict(it.figures) | {"meals_missed": it.figure("exclusion_errors")})
            for it in one.releases
        ),
    )  # fmt: skip


ALL = ("projection", "least-noise", "score")
EVERY = (*ALL, "decision", "decision-agreed")
CROWDED = (0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.75, 1.0, 1.5, 2.0)
CONFIDENTIAL: dict[str, Any] = {"source": "confidential", "for_the_data_holder_only": True}
CASES: dict[str, tuple[SweptProgram, ...]] = {
    "the paper's two": (program(), program("lending", name="small lender")),
    "one": (program(),),
    "two of a kind, a quick grid": (
        program("lending", Bs=(0.05, 0.25, 0.75, 2.0)),
        program("lending", Bs=(0.05, 0.25, 2.0), name="other"),
    ),
    "with scores, too": (program(mechanisms=ALL), program("lending", mechanisms=ALL, name="small lender")),
    "with scores, alone": (program(mechanisms=ALL),),
    "no least noise": (program(mechanisms=("projection",)),),
    "no projection": (program(mechanisms=("least-noise",)), program("lending", mechanisms=("gaussian",))),
    "other mechanisms": (program(mechanisms=("gaussian", "staircase", "spherical-laplace")),),
    "a mechanism of tomorrow": (program(mechanisms=("projection-exact", "discrete")),),
    "no noise at all": (program(mechanisms=()),),
    "no k-anonymity, and large groups": (
        program(sizes=()),
        program("lending", sizes=(10, 20), Bs=(0.1, 2.0)),
    ),
    "classic alone": (program(Bs=(2.0,)),),
    "tried once": (tried_once(program()),),
    "losses": (lossy(program("lending")),),
    "one column": (without(program(), "attribute_inference"),),
    "undefined": (without(program("lending"), "accuracy", "profit"),),
    "another objective": (program("lottery", unit="points"),),
    "chance unknown": (
        program(chance=None, kind=None, scales=None, Bs=(0.25, 2.0)),
        program("lending", Bs=(2.0,)),
    ),
    "chance above all": (
        program(chance=0.76, Bs=(0.25, 2.0)),
        program("lending", chance=0.61, Bs=(0.25, 2.0)),
    ),
    "confidential": (program(**CONFIDENTIAL), program("lending", source="public")),
    "crowded": (
        program(
            mechanisms=EVERY,
            Bs=CROWDED,
            sizes=(2,),
            name="Ministry of Social Action " * 3,
            first_look=("3 simulations", "these people are invented"),
            **CONFIDENTIAL,
        ),
        program("lending", mechanisms=EVERY, Bs=CROWDED, name="small lender", unit="CFA francs of 2024"),
    ),
    "crowded, alone": (program(mechanisms=EVERY, Bs=CROWDED, **CONFIDENTIAL),),
    "everybody is protected": (protected(program(), 1.0), protected(program("lending"), 0.9999999)),
    "nobody is protected": (protected(program(), 0.0),),
    "of a kind that is not known here": (of_another_kind(program()), program("lottery")),
    "long names": (
        program(name="W" * 90, unit="W" * 60),
        program("lending", name="$a$ [b] 人 \n _x_ " + "word " * 30, unit="$US$"),
    ),
}


@pytest.fixture(scope="module")
def noise() -> NoiseComparison:
    return compare_noise(columns=(1, 2, 10, 30))


@pytest.fixture(scope="module")
def curves() -> EpsilonCurves:
    return epsilon_curves(distances=(0.05, 0.1, 0.25, 0.5, 1.0, 2.0))


def drawn_texts(figure: Figure) -> Iterator[Text]:
    """Every text that is on the page; tick labels beyond the ends of an axis are not."""
    hidden = set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
                if not low <= tick.get_loc() <= high:
                    hidden |= {id(tick.label1), id(tick.label2)}
    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        if text.get_visible() and text.get_text().strip() and id(text) not in hidden:
            yield text


def in_sight(figure: Figure) -> str:
    return words(" ".join(text.get_text() for text in drawn_texts(figure)))


def boxes(figure: Figure) -> list[tuple[str, Bbox]]:
    canvas: Any = FigureCanvasAgg(figure)
    renderer = canvas.get_renderer()
    for legend in figure.legends:  # only now its words find their places
        legend.draw(renderer)
    # An annotation's own extent holds its leader too: only its words are meant.
    return [(text.get_text(), Text.get_window_extent(text, renderer)) for text in drawn_texts(figure)]


def must_be_readable(figure: Figure) -> None:
    with style():
        found = boxes(figure)
        assert min(float(text.get_fontsize()) for text in drawn_texts(figure)) == SMALL >= 7
    page = figure.bbox
    for i, (name, box) in enumerate(found):
        assert page.x0 <= box.x0 <= box.x1 <= page.x1, f"{name!r} is cut off at a side"
        assert page.y0 <= box.y0 <= box.y1 <= page.y1, f"{name!r} is cut off above or below"
        inner = Bbox.from_extents(box.x0 + 0.5, box.y0 + 0.5, box.x1 - 0.5, box.y1 - 0.5)
        for other, there in found[:i]:
            assert not inner.overlaps(there), f"{name!r} and {other!r} overlap"


@pytest.mark.parametrize("case", CASES)
def test_every_label_can_be_read(case: str) -> None:
    """None smaller than 7 points, none cut off, none over another; warnings would fail the test too."""
    shown = [choose(one) for one in CASES[case]]
    for draw in (accuracy_figure, tradeoff_figure):
        for caption in (False, True):
            must_be_readable(draw(shown, caption=caption))


@pytest.mark.parametrize("marked", [False, True])
def test_figures_of_the_noise_can_be_read(
    noise: NoiseComparison, curves: EpsilonCurves, marked: bool
) -> None:
    for caption in (False, True):
        for figure, own in (
            (noise_figure(noise, marked=marked, caption=caption), "Least noise is"),
            (epsilon_figure(curves, marked=marked, caption=caption), "calibrated to one claim"),
        ):
            must_be_readable(figure)
            assert (MARK in in_sight(figure)) == marked
            assert (own in in_sight(figure)) == caption


def test_the_check_itself_finds_words_over_words() -> None:
    figure = accuracy_figure([choose(program())])
    figure.text(0.3, 0.52, "one over the other", fontsize=7)
    figure.text(0.31, 0.521, "the other", fontsize=7)
    with pytest.raises(AssertionError, match="overlap"):
        must_be_readable(figure)
    figure.text(0.99, 0.01, "far too far to the right", fontsize=7)
    with pytest.raises(AssertionError, match=r"cut off|overlap"):
        must_be_readable(figure)


# Figure 2


def widths(axes: Axes) -> list[float]:
    return [round(float(bar.get_width()), 6) for bar in axes.patches if isinstance(bar, Rectangle)]


def intervals(axes: Axes) -> list[tuple[float, float]]:
    """The ends of the whiskers across."""
    return [
        (round(float(low), 6), round(float(high), 6))
        for lines in axes.collections if isinstance(lines, LineCollection)
        for (low, _), (high, _) in lines.get_segments()
    ]  # fmt: skip


def in_order(one: ShownCells) -> list[Release]:
    """The releases of Figure 2, as the paper has them."""
    found = [one.status_quo, one.alike, *map(one.classic, one.curves), *map(one.targeted, one.curves)]
    return [it for it in found if it is not None]


def test_bars_are_the_accuracies_in_the_papers_order() -> None:
    one = choose(program())
    figure = accuracy_figure([one])
    panel = figure.axes[0]
    assert widths(panel) == [round(it.figure("accuracy").mean or 0, 6) for it in in_order(one)]
    assert [label.get_text() for label in panel.get_yticklabels()] == [
        "Status quo", "k-anonymity, groups of 2", "Classic DP, B = 2", "projection as printed", "least noise",
        "Targeted DP, B = 0.25", "projection as printed", "least noise",
    ]  # fmt: skip
    assert [text.get_text() for text in panel.texts] == [
        shown(it.figure("accuracy").mean, "accuracy") for it in in_order(one)
    ]
    assert "(0.588)" in in_sight(figure)
    note = in_sight(accuracy_figure([one], caption=True))
    assert "poor people left out beyond today's 700,000" in note
    assert "the guarantee holds only between tables that have the same column scales" in note


@pytest.mark.parametrize(
    ("swept", "metric", "title", "unit"),
    [
        (
            program(), "extra_exclusion_errors", "Poor people left out",
            "people more than today (← better)",
        ),
        (program("lending"), "profit", "Profit", "$ (better →)"),
        (of_another_kind(program()), "meals_missed", "Meals missed", "meals (← better)"),
    ],
)  # fmt: skip
def test_beside_accuracy_stands_what_the_program_is_for(
    swept: SweptProgram, metric: str, title: str, unit: str
) -> None:
    """By its objective, with intervals: extra people, money with its losses, or what another kind counts."""
    one = choose(swept)
    _, panel = accuracy_figure([one]).axes
    # Nothing is beyond the status quo at the status quo, by definition: it has no interval there.
    found = [
        Estimate(0.0) if it is one.status_quo and metric.startswith("extra") else it.figure(metric)
        for it in in_order(one)
    ]
    assert widths(panel) == [round(it.mean or 0, 6) for it in found]
    assert intervals(panel) == [
        (round(it.low, 6), round(it.high, 6)) for it in found if it.low is not None and it.high is not None
    ]
    assert len(intervals(panel)) >= len(found) - 1
    left, right = panel.get_xlim()
    assert all(left <= low <= high <= right for low, high in intervals(panel))
    assert (panel.get_title(loc="left"), panel.get_xlabel()) == (f"B  {title}", unit)
    numbers = [text.get_text() for text in panel.texts]
    signed = metric.startswith("extra")
    assert numbers[1:] == [short(it.mean or 0, signed=signed) for it in found[1:]]
    assert numbers[0] == ("±0" if signed else short(found[0].mean or 0))


def test_a_program_for_accuracy_alone_has_one_panel() -> None:
    assert len(accuracy_figure([choose(program("lottery"))]).axes) == 1
    beside = accuracy_figure([choose(program()), choose(program("lottery"))])
    assert [panel.axison for panel in beside.axes] == [True, True, True, False]


def test_both_programs_have_one_scale_of_accuracy() -> None:
    aid, _, lending, _ = accuracy_figure([choose(program()), choose(program("lending"))]).axes
    assert aid.get_xlim() == lending.get_xlim()
    assert aid.get_xlim()[0] == 0


# Figure 3


def test_up_is_better_and_right_is_private_in_every_panel() -> None:
    figure = tradeoff_figure([choose(program()), choose(program("lending"))])
    assert len(figure.axes) == 6
    for axes in figure.axes:
        (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
        assert left > 1000 > right > 0
        assert axes.get_xscale() == "log"
        assert (bottom > top) == ("Exclusion errors (people)" in axes.get_ylabel())
        assert axes.get_xlabel() == "Not protected, per 1,000 (more private →)"
        assert axes.get_ylabel().endswith("(more accurate →)")
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    # Row by row: the left column is the first program's, as in the paper.
    assert [title[0] for title in titles] == list("ADBECF")
    assert "Profit ($)" in figure.axes[1].get_ylabel()
    for left_panel, right_panel in zip(figure.axes[::2], figure.axes[1::2], strict=True):
        assert left_panel.get_xlim() == right_panel.get_xlim()


@pytest.mark.parametrize(
    ("protection", "stands_at", "said"),
    [
        (1.0, 100.0, "≤ 100"),  # nothing else is known of how few there are
        (0.99, 10.0, None),
        (0.9993, 0.7, None),
        (0.9999999, 0.1, "≤ 0.1"),
        (0.3, 700.0, None),
    ],
)
def test_nobody_falls_off_the_end_of_the_axis(protection: float, stands_at: float, said: str | None) -> None:
    """A log axis has no 0: it stands at the end, which is never more private and says what it is."""
    one = choose(protected(program(sizes=()), protection))
    panel = tradeoff_figure([one]).axes[0]
    left, right = panel.get_xlim()
    places = [float(x) for line in panel.lines for x in np.atleast_1d(line.get_xdata())]
    assert all(right < x < left for x in places if x >= stands_at)
    assert min(abs(x / stands_at - 1) for x in places) < 1e-9
    assert all(x >= 1000 * (1 - protection) - 1.0001 for x in places)  # an interval's end, of 0.001
    ticks = [label.get_text() for label in panel.get_xticklabels()]
    assert [tick for tick in ticks if "≤" in tick] == ([] if said is None else [said])
    if said is not None:
        at = float(panel.get_xticks()[ticks.index(said)])
        assert at == pytest.approx(stands_at)


def test_a_zero_stands_within_a_power_of_ten_of_the_smallest_that_is_none() -> None:
    """So that 0 of 150 people does not look as if it were 0 of 10,000."""
    panel = tradeoff_figure([choose(protected(program(sizes=(2,)), 1.0))]).axes[0]
    assert "≤ 100" in [label.get_text() for label in panel.get_xticklabels()]
    mixed = program()
    alike = tuple(
        replace(it, figures=dict(it.figures) | {"singling_out": between(1.0)}) if it.group_size == 2 else it
        for it in mixed.releases
    )
    panel = tradeoff_figure([choose(without_the_loudest(replace(mixed, releases=alike)))]).axes[0]
    assert "≤ 10" in [label.get_text() for label in panel.get_xticklabels()]


def without_the_loudest(one: SweptProgram) -> SweptProgram:
    return replace(one, releases=tuple(it for it in one.releases if it.B is None or it.B <= 1))


def test_inference_is_the_best_attackers_and_the_papers_own_stands_in_the_caption() -> None:
    """The middle panel once drew the stranger's figure, which flatters."""
    one = choose(program(mechanisms=("least-noise", "score")))
    figure = tradeoff_figure([one], caption=True)
    panel = figure.axes[1]
    release = one.targeted("least-noise")
    assert release is not None
    places = {round(float(x), 6) for line in panel.lines for x in np.atleast_1d(line.get_xdata())}
    own, papers = (release.figure(name).mean or 0.0 for name in ("inference", "attribute_inference"))
    assert round(1000 * (1 - own), 6) in places
    assert round(1000 * (1 - papers), 6) not in places
    assert panel.get_title(loc="left") == "B  Inference (best attacker)"
    note = in_sight(figure)
    assert INSIDER in note
    assert STRANGER in note
    assert f"Targeted DP by least noise {down(own)}, the paper's {down(papers)}" in note
    for draw in (tradeoff_figure, accuracy_figure):
        note = in_sight(draw([one], caption=True))
        assert "least noise at B = 0.25 77.2% and 100.0%; least noise at B = 2 77.2% and 100.0%" in note
        assert "score at B = 0.25 97.0% and 100.0%" in note


def test_one_guarantee_leaves_very_different_guesses(curves: EpsilonCurves) -> None:
    note = in_sight(epsilon_figure(curves, caption=True))
    assert "right, at distance B and at distance 2: projection as printed 53.8% and 77.5%;" in note
    assert "spherical Laplace 77.2% and 100.0%." in note


@pytest.mark.usefixtures("quick")
def test_captions_are_in_the_files_and_in_sight_only_if_asked_for(tmp_path: Path) -> None:
    bare, noted = (draw_all([program(Bs=(0.25, 2.0))], caption=caption) for caption in (False, True))
    save_figures(bare, tmp_path / "bare")
    beside = (tmp_path / "bare" / CAPTIONS).read_text(encoding="utf-8")
    for without_it, with_it in zip(bare, noted, strict=True):
        said = words(without_it.caption)
        assert len(said) > 200
        assert said == words(with_it.caption)
        assert said not in in_sight(without_it.figure)
        assert said in in_sight(with_it.figure)
        assert with_it.figure.get_figheight() > without_it.figure.get_figheight()
        assert said in words(beside)
        with Image.open(tmp_path / "bare" / f"{without_it.name}.png") as image:
            assert words(image.info["Description"]) == said
        svg = html.unescape((tmp_path / "bare" / f"{without_it.name}.svg").read_text(encoding="utf-8"))
        assert said in words(svg)


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("caption", [True, False])
def test_a_quick_look_says_so_in_every_figure_that_is_drawn_from_it(quick: bool, caption: bool) -> None:
    reasons = ("5 simulations of each release with noise", "these people are invented")
    shown = [choose(program(first_look=reasons if quick else ())), choose(program("lending"))]
    flag = f"Quick look, nothing to decide by: small aid: {reasons[0]}; small aid: {reasons[1]}."
    for draw in (accuracy_figure, tradeoff_figure):
        one = Drawn("a", "A", draw(shown, caption=caption), False, first_look(shown))
        assert in_sight(one.figure).count(flag) == quick
        image = Image.open(io.BytesIO(rendered(one, "png")))
        assert (flag in image.info.get("Description", "")) == quick
        assert (flag.encode() in rendered(one, "svg")) == quick


def test_what_is_true_of_both_programs_is_said_once() -> None:
    both = ("these people are invented",)
    shown = [
        choose(program(first_look=("3 simulations", *both))),
        choose(program("lending", first_look=both)),
    ]
    assert first_look(shown) == ("small aid: 3 simulations", *both)


def test_a_quick_look_and_the_mark_stand_together() -> None:
    figure = accuracy_figure([choose(program(first_look=("3 simulations",), **CONFIDENTIAL))])
    must_be_readable(figure)
    assert MARK in in_sight(figure)
    assert "Quick look, nothing to decide by: 3 simulations." in in_sight(figure)


def test_stars_and_curves_are_where_the_figures_are() -> None:
    one = choose(program())
    axes = tradeoff_figure([one]).axes[0]
    spots: dict[tuple[int, bool], Any] = {}
    curves = []
    for line in axes.lines:
        points: Any = line.get_xydata()
        marker: Any = line.get_marker()
        if isinstance(marker, tuple):
            spots[marker[0], line.get_markerfacecolor() != WHITE] = points[0]
        elif len(points) > 2:
            curves.append([tuple(point) for point in points])
    at = {
        (5, True): one.status_quo, (4, True): one.alike,
        (8, False): one.classic("projection"), (8, True): one.classic("least-noise"),
        (6, False): one.targeted("projection"), (6, True): one.targeted("least-noise"),
    }  # fmt: skip
    assert set(spots) == set(at)
    for key, it in at.items():
        assert it is not None
        assert tuple(spots[key]) == spot(it)
    assert curves == [[spot(it) for it in curve] for curve in one.curves.values()]
    assert [len(curve) for curve in curves] == [len(GRID)] * 2


def spot(it: Release) -> tuple[float, float | None]:
    """So many of 1,000 are not protected; the axis ends at 10, by the smallest that is not 0."""
    return max(10.0, 1000 * (1 - (it.figure("singling_out").mean or 0))), it.figure("exclusion_errors").mean


def test_points_carry_their_B() -> None:
    one = choose(program(Bs=(0.05, 0.25, 2.0), mechanisms=("least-noise",)))
    told = {text.get_text() for text in tradeoff_figure([one]).axes[0].texts}
    assert {"status quo", "groups of 2", "0.05", "0.25", "2"} <= told


def test_a_panel_without_figures_says_so() -> None:
    figure = tradeoff_figure([choose(without(program(), "inference"))])
    said = [any("not measured" in text.get_text() for text in axes.texts) for axes in figure.axes]
    assert said == [False, True, False]


# Which releases


def test_the_papers_points_are_chosen_where_they_are() -> None:
    aid, lending = choose(program()), choose(program("lending"))
    assert (aid.B, aid.epsilon) == (0.25, 3.9999)
    assert (lending.B, lending.epsilon) == (0.1, 2.9999)
    assert aid.notes() == lending.notes() == ()


def test_otherwise_the_nearest_and_the_figure_says_which() -> None:
    one = choose(program("lending", Bs=(0.05, 0.2, 2.0), epsilons=(1.0, 9.0), sizes=(7, 3)))
    assert one.B == 0.2  # as far from 0.1 as 0.05 is, by ratio: the larger hides more
    assert one.epsilon == 1.0  # a ratio of 2.9999 against 3.0001
    assert one.alike is not None
    assert one.alike.group_size == 3
    assert [note.partition(": ")[2] for note in one.notes()] == [
        "targeted DP is shown at B = 0.2, nearest to the paper's 0.1",
        "ε = 1 is shown, the nearest to the paper's 2.9999",
        "the smallest groups alike are of 3",
    ]
    labels = [label.get_text() for label in accuracy_figure([one]).axes[0].get_yticklabels()]
    assert "Targeted DP, B = 0.2" in labels


def test_three_mechanisms_are_drawn_and_the_others_named() -> None:
    one = choose(program(mechanisms=("gaussian", "least-noise", "staircase", "score", "projection")))
    assert list(one.curves) == ["projection", "least-noise", "score"]
    assert one.left_out == ("gaussian", "staircase")
    assert "not drawn are gaussian, staircase" in one.notes()[-1]


def test_of_several_projections_with_one_epsilon_the_papers_is_taken() -> None:
    whole = program(Bs=(2.0,), mechanisms=("projection",), epsilons=(3.9999,))
    (made,) = whole.noisy
    others = (replace(made, epsilon2=0.5), replace(made, k=100), made, replace(made, k=20_000, epsilon2=0.99))
    one = choose(replace(whole, releases=(whole.status_quo, *others)))
    assert one.curves["projection"] == (made,)


# Numbers


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (195_973, "196K"), (-18_442, "−18.4K"), (0.4, "0"), (-0.4, "0"), (999.4, "999"), (999.6, "1.00K"),
        (9_996, "10.0K"), (99_960, "100K"), (999_600, "1.00M"), (1_250_000, "1.25M"), (-12, "−12"),
    ],
)  # fmt: skip
def test_short_numbers(value: float, told: str) -> None:
    assert short(value) == told


def test_guarantees_are_rounded_up_only() -> None:
    assert words(epsilon_words(0.51215001)) == "ε = 0.5122"
    assert words(epsilon_words(3.9999)) == "ε = 3.9999"
    assert words(epsilon_words(float("inf"))) == "no finite ε"
    for people in range(10, 5000):
        assert words(delta_words(1 / people)) == f"δ = 1/{people:,}" if people > 10 else True
    assert words(delta_words(0.00024)) == "δ = 1/4,166"
    assert words(delta_words(0.2501)) == "δ = 0.251"
    assert words(delta_words(0)) == "δ = 0"


def test_words_of_others_become_one_line_that_can_be_drawn() -> None:
    assert printable("a\n b\t c") == "a b c"
    assert printable("人ε") == "?ε"
    assert printable("x" * 50) == "x" * 29 + "…"


# The noise


def test_noise_is_the_mechanisms_own(noise: NoiseComparison) -> None:
    assert noise.quietest == ("staircase", *["spherical-laplace"] * 3)
    at_ten = {name: values[2] for name, values in noise.noise.items()}
    assert at_ten == pytest.approx(
        {"projection": 5.473, "gaussian": 0.909, "spherical-laplace": 0.712, "least-noise": 0.712}, abs=1e-3
    )
    assert noise.noise["least-noise"][0] == pytest.approx(0.2549, abs=1e-4)


def test_wide_tables_are_compared_too() -> None:
    wide = compare_noise(columns=(201,))
    assert wide.noise["projection"][0] == pytest.approx(
        noise_mechanisms()["projection"](TOGO).noise_sd(201) / TOGO.B
    )


def test_epsilon_is_the_mechanisms_own_and_the_claim_at_B(curves: EpsilonCurves) -> None:
    at_B = curves.distances.index(0.25)
    assert curves.epsilon["gaussian"][at_B] == pytest.approx(4, abs=1e-6)
    assert curves.epsilon["spherical-laplace"][at_B] == pytest.approx(4, abs=1e-6)
    assert curves.epsilon["projection"][at_B] == pytest.approx(0.512, abs=1e-3)
    assert curves.quietest == "spherical-laplace"
    for values in curves.epsilon.values():
        assert list(values) == sorted(values)
    other = epsilon_curves(Guarantee(0.5, 1.0, 1e-5), dimensions=3, distances=(0.5,))
    assert other.epsilon["gaussian"][0] == pytest.approx(1, abs=1e-6)


# Pure, and the same every time


def test_drawing_leaves_no_trace() -> None:
    with mpl.rc_context({"font.size": 20, "savefig.dpi": 40}):
        before = dict(mpl.rcParams)
        figure = accuracy_figure([choose(program())])
        rendered(Drawn("x", "x", figure, marked=False), "png")
        assert dict(mpl.rcParams) == before
        theirs = rendered(Drawn("x", "x", figure, marked=False), "svg")
    again = accuracy_figure([choose(program())])
    assert rendered(Drawn("x", "x", again, marked=False), "svg") == theirs


def hashes() -> list[str]:
    """Of a figure in every format; also called in a process of its own."""
    figure = accuracy_figure([choose(program(Bs=(2.0,)))])
    made = Drawn("x", "ε", figure, marked=True)
    return [hashlib.sha256(rendered(made, kind)).hexdigest() for kind in FORMATS]


def test_another_process_gives_the_same_bytes_and_no_pyplot() -> None:
    """Hashes of strings differ from process to process, and a file's bytes must not."""
    module = Path(__file__)
    script = f"import sys, {module.stem} as it; print(*it.hashes(), 'matplotlib.pyplot' in sys.modules)"
    here, path = hashes(), os.pathsep.join([str(module.parent), str(module.parents[1]), *sys.path])
    assert len(set(here)) == len(FORMATS)
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120,
        env=os.environ | {"PYTHONHASHSEED": "1", "PYTHONPATH": path},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [*here, "False"]


# Files


def names() -> set[str]:
    return {CAPTIONS, *(f"{name}.{kind}" for name in drawing.figures() for kind in FORMATS)}


def plain(*, marked: bool = False) -> tuple[Drawn, ...]:
    """As many figures as there are, quickly written."""
    made = []
    for one in drawing.figures().values():
        figure = Figure(figsize=(1, 1))
        figure.text(0.1, 0.5, "ε")
        made.append(Drawn(one.name, one.title, figure, marked))
    return tuple(made)


@pytest.mark.usefixtures("quick")
def test_all_figures_in_three_formats(tmp_path: Path) -> None:
    made = draw_all([program(Bs=(0.25, 2.0))])
    assert not any(MARK in words(text.get_text()) for one in made for text in drawn_texts(one.figure))
    sizes = save_figures(made, tmp_path / "figures")
    there = {path.name: path.stat().st_size for path in (tmp_path / "figures").iterdir()}
    assert set(there) == names()
    assert there == sizes
    assert [path.name for path in tmp_path.iterdir()] == ["figures"]
    for path in (tmp_path / "figures").iterdir():
        content = path.read_bytes()
        start = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF", "md": b"`figure2_accuracy`: **"}
        assert content.startswith(start[path.suffix[1:]])
        assert MARK.encode() not in content
        assert not re.search(rb"CreationDate|<dc:date>", content)
    with Image.open(tmp_path / "figures" / "figure3_tradeoff.png") as image:
        assert image.info["dpi"][0] == pytest.approx(300, abs=0.1)
        assert image.width == pytest.approx(3.5 * 300, abs=1)


def test_older_figures_are_replaced_only_by_force_and_others_stay(tmp_path: Path) -> None:
    place = tmp_path / "figures"
    place.mkdir()
    (place / "mine.txt").write_text("mine")
    (place / "noise_by_columns.svg").write_text("old")
    with pytest.raises(ValueError, match=r"noise_by_columns\.svg exists.*--force"):
        save_figures(plain(), place)
    assert {path.name for path in place.iterdir()} == {"mine.txt", "noise_by_columns.svg"}
    save_figures(plain(), place, force=True)
    assert {path.name for path in place.iterdir()} == {"mine.txt", *names()}
    assert (place / "noise_by_columns.svg").read_bytes().startswith(b"<?xml")
    assert (place / "mine.txt").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["figures"]


@pytest.mark.parametrize("failing", [0, 3, 7, 13])
def test_an_error_halfway_leaves_everything_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    place = tmp_path / "figures"
    place.mkdir()
    (place / "figure2_accuracy.png").write_text("old")
    (place / "epsilon_by_distance.pdf").write_text("old")
    moves = Path.rename
    count = iter(range(100))

    def rename(self: Path, target: Path) -> Path:
        if next(count) == failing:
            raise OSError(28, "No space left on device")
        return moves(self, target)

    monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises(OSError, match="No space"):
        save_figures(plain(), place, force=True)
    monkeypatch.undo()
    assert {path.name: path.read_text() for path in place.iterdir()} == {
        "figure2_accuracy.png": "old",
        "epsilon_by_distance.pdf": "old",
    }
    assert [path.name for path in tmp_path.iterdir()] == ["figures"]


def test_a_figure_that_cannot_be_drawn_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = plain()

    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr(made[-1].figure, "savefig", fail)
    with pytest.raises(RuntimeError, match="no"):
        save_figures(made, tmp_path / "figures")
    assert not list(tmp_path.iterdir())


def test_places_that_cannot_be_written_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder" / "figure2_accuracy.pdf").mkdir(parents=True)
    for place, reason in (
        (tmp_path / "file", "is a file"),
        (tmp_path / "not" / "there", "does not exist"),
        (tmp_path / "folder", "is a folder"),
    ):
        with pytest.raises(ValueError, match=reason):
            save_figures(plain(), place, force=True)


@pytest.mark.usefixtures("quick")
def test_one_confidential_sweep_marks_every_figure() -> None:
    secret = program("lending", Bs=(2.0,), **CONFIDENTIAL)
    made = draw_all([program(Bs=(2.0,), source="public"), secret])
    for one in made:
        assert one.marked
        assert any(MARK in words(text.get_text()) for text in drawn_texts(one.figure)), one.name


def test_marked_files_say_so_and_are_for_their_owner_alone(tmp_path: Path) -> None:
    save_figures(plain(marked=True), tmp_path / "figures")
    assert (tmp_path / "figures").stat().st_mode & 0o777 == 0o700
    for path in (tmp_path / "figures").iterdir():
        assert path.stat().st_mode & 0o777 == 0o600
        if path.suffix == ".png":
            with Image.open(io.BytesIO(path.read_bytes())) as image:
                assert image.info["Description"] == MARK
        else:
            assert MARK.encode() in path.read_bytes()


def test_one_program_or_two() -> None:
    for count in (0, 3):
        with pytest.raises(ValueError, match=f"{count} sweeps: the paper's figures hold one program or two"):
            draw_all([program()] * count)


# A new figure

NEW_FIGURE = """
from matplotlib.figure import Figure
from targetdp.report._figures._drawing import figure

@figure("people", title="How many people each program has", place=9, caption=lambda shown: "All of them.")
def people_figure(shown, *, caption=False):
    sheet = Figure(figsize=(1, 1))
    sheet.text(0.1, 0.5, " ".join(str(one.program.people) for one in shown))
    return sheet
"""


@pytest.mark.usefixtures("quick")
def test_a_new_figure_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Declared in a file of its own, it is drawn, named, written and guarded like the others."""
    before = list(drawing.figures())
    monkeypatch.setattr(drawing, "_FIGURES", dict(drawing._FIGURES))
    (tmp_path / "new_figure.py").write_text(NEW_FIGURE, encoding="utf-8")
    runpy.run_path(str(tmp_path / "new_figure.py"))
    made = draw_all([program(Bs=(2.0,))])
    assert [one.name for one in made] == [*before, "people"]
    assert [text.get_text() for text in drawn_texts(made[-1].figure)] == ["4201"]
    save_figures(made, tmp_path / "figures")
    assert (tmp_path / "figures" / "people.pdf").exists()
    with pytest.raises(ValueError, match="exists: choose another folder"):
        drawing.must_be_free(tmp_path / "figures", force=False)


def test_the_documentation_has_every_figure() -> None:
    text = (Path(__file__).parents[2] / "docs" / "figures.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE) == list(drawing.figures())


# The command


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """An aid program, tried once, and a lender's, confidential, three times."""
    place = tmp_path_factory.mktemp("sweeps")
    run(sweep(grid=TINY, simulations=1), place / "aid", jobs=1)
    lender = study("confidential", lending=True, unit="€")
    run(sweep(study=lender, grid=replace(TINY, B=(0.1, 2.0), epsilon2=(0.4, 0.9))), place / "lending", jobs=1)
    return place / "aid", place / "lending"


@pytest.fixture
def quick(noise: NoiseComparison, curves: EpsilonCurves, monkeypatch: pytest.MonkeyPatch) -> None:
    """The noise of few columns: that of many takes seconds."""
    known = drawing.figures()
    noisy = replace(known["noise_by_columns"], data=lambda: noise)
    curved = replace(known["epsilon_by_distance"], data=lambda: curves)
    monkeypatch.setattr(drawing, "_FIGURES", known | {noisy.name: noisy, curved.name: curved})


def test_a_sweep_is_read_as_it_was_run(swept: tuple[Path, Path]) -> None:
    aid, lending = map(read_program, swept)
    assert (aid.metric, aid.best, aid.simulations, aid.people) == ("exclusion_errors", "smallest", 1, 150)
    assert (lending.metric, lending.unit, lending.scales) == ("profit", "€", None)
    assert lending.for_the_data_holder_only
    assert not aid.for_the_data_holder_only
    assert aid.status_quo.figure("accuracy").low is not None  # it knows sampling, with one simulation too
    assert choose(lending).B == 0.1
    assert choose(lending).epsilon == 3.4  # of 3.4 and 3.9
    assert aid.chance == pytest.approx(1 - 2 * 0.3 * 0.7)


@pytest.mark.usefixtures("quick")
def test_the_command_draws_writes_and_says_what(
    swept: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saving, "FORMATS", ("svg",))
    aid, lending = swept
    files = {f"{name}.svg" for name in drawing.figures()}
    one = cli("report", "figures", aid, "--out", tmp_path / "one", "--json")
    assert one.code == 0, one.err
    record = json.loads(one.out)
    assert record["for_the_data_holder_only"] is False
    assert record["first_look"] == list(read_program(aid).first_look)
    assert "these people are invented" in record["first_look"]
    assert "Quick look, nothing to decide by: 1 simulation of each" in words(one.err)
    assert {file for figure in record["figures"] for file in figure["files"]} == files
    assert "whiskers: 95% intervals" in record["figures"][0]["caption"].lower()
    assert MARK not in words(one.out + one.err)
    both = cli("report", "figures", aid, lending, "--out", tmp_path / "both")
    assert both.code == 0, both.err
    assert {path.name for path in (tmp_path / "both").iterdir()} == files | {CAPTIONS}
    assert "figure2_accuracy" in both.out
    assert MARK in words(both.out)
    assert MARK in words(both.err)
    assert "ε = 3.4 is shown, the nearest to the paper's 2.9999" in words(both.err)
    assert "5 files" in both.err
    again = cli("report", "figures", aid, lending, "--out", tmp_path / "both")
    assert (again.code, again.out) == (2, "")
    assert "exists: choose another folder" in words(again.err)
    bare = tall(tmp_path / "both" / "figure2_accuracy.svg")
    noted = cli("report", "figures", aid, lending, "--out", tmp_path / "both", "--force", "--caption")
    assert noted.code == 0, noted.err
    assert tall(tmp_path / "both" / "figure2_accuracy.svg") > bare + 20


def tall(svg: Path) -> float:
    """Points."""
    found = re.search(r'<svg [^>]*height="([\d.]+)pt"', svg.read_text(encoding="utf-8"))
    assert found is not None
    return float(found[1])


@pytest.mark.usefixtures("quick")
def test_the_command_refuses_before_it_draws(swept: tuple[Path, Path], tmp_path: Path) -> None:
    aid, _ = swept
    (tmp_path / "empty").mkdir()
    for arguments, reason in (
        ((aid, aid), "named twice"),
        ((tmp_path / "empty",), "is no folder of a sweep"),
        ((tmp_path / "nothing",), "is no folder of a sweep"),
    ):
        done = cli("report", "figures", *arguments, "--out", tmp_path / "figures")
        assert done.code == 2
        assert reason in words(done.err)
        assert not (tmp_path / "figures").exists()


def test_a_record_of_another_version_is_refused_in_words(
    swept: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def old(folder: Path) -> Any:
        raise KeyError("release")

    monkeypatch.setattr("targetdp.report._figures._choice.read_figures", old)
    with pytest.raises(ValueError, match="lacks 'release', so it was made by another version"):
        read_program(swept[0])


def test_help_does_not_wait_for_matplotlib() -> None:
    script = "import sys, targetdp.cli; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.strip() == "False"


def test_without_matplotlib_the_command_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(targetdp, "report", targetdp.report)  # which comes back when the test ends
    for name in [name for name in sys.modules if name.startswith("targetdp.report")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = cli("report", "figures", tmp_path, "--out", tmp_path / "figures")
    assert done.code == 3
    assert "pip install 'targetdp[report]'" in done.err
